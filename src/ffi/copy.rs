//! `cvc_copy`, `cvc_upload`, `cvc_download`, `cvc_fill_zero`.

use std::ffi::c_void;

use super::arguments;
use super::constants::*;
use super::error::guard;
use super::structs::*;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::ObjectRef;
use crate::op::copy;

/// Copies a tensor's elements into one of the same shape and dtype, whatever the strides of both.
#[no_mangle]
pub extern "C" fn cvc_copy(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dst: cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        let (src, dst) = (
            arguments::tensor(src, "src")?,
            arguments::tensor(dst, "dst")?,
        );
        copy::copy(arguments::stream(stream, src.device())?, &src, &dst)
    })
}

unsafe fn host_strides(strides: *const i64, tensor: &ObjectRef) -> Option<Vec<i64>> {
    if strides.is_null() {
        return None;
    }
    let rank = tensor.tensor().0.rank as usize;
    // SAFETY: the caller's array has a stride for each dimension.
    Some(unsafe { std::slice::from_raw_parts(strides, rank) }.to_vec())
}

fn check_host(pointer: *const c_void, tensor: &ObjectRef, name: &str) -> Result<()> {
    if pointer.is_null() && !tensor.tensor().0.is_empty() {
        fail!(
            Status::NullPointer,
            "{name} is null, expected host memory for the tensor's elements"
        );
    }
    Ok(())
}

/// Copies host memory into a tensor, in the stream's order. `src` stays valid and unchanged until the stream has passed. On
/// CUDA the driver may keep the caller until then, where `src` is not pinned.
///
/// @param src_strides bytes, one a dimension of `dst`; null: packed
#[no_mangle]
pub unsafe extern "C" fn cvc_upload(
    stream: cvc_stream_t,
    src: *const c_void,
    src_strides: *const i64,
    dst: cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        let dst = arguments::tensor(dst, "dst")?;
        check_host(src, &dst, "src")?;
        // SAFETY: the caller's array.
        let strides = unsafe { host_strides(src_strides, &dst) };
        copy::upload(
            arguments::stream(stream, dst.device())?,
            src as usize as u64,
            strides.as_deref(),
            &dst,
        )
    })
}

/// Copies a tensor into host memory, in the stream's order. `dst` stays valid until the stream has passed, and holds the
/// elements from then on. On CUDA the driver keeps the caller until then, where `dst` is not pinned.
///
/// @param dst_strides bytes, one a dimension of `src`; null: packed
#[no_mangle]
pub unsafe extern "C" fn cvc_download(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dst: *mut c_void,
    dst_strides: *const i64,
) -> cvc_status_t {
    guard(|| {
        let src = arguments::tensor(src, "src")?;
        check_host(dst, &src, "dst")?;
        // SAFETY: the caller's array.
        let strides = unsafe { host_strides(dst_strides, &src) };
        copy::download(
            arguments::stream(stream, src.device())?,
            &src,
            dst as usize as u64,
            strides.as_deref(),
        )
    })
}

/// Writes zero bytes over a tensor's elements, in the stream's order.
#[no_mangle]
pub extern "C" fn cvc_fill_zero(stream: cvc_stream_t, tensor: cvc_tensor_t) -> cvc_status_t {
    guard(|| {
        let tensor = arguments::tensor(tensor, "tensor")?;
        copy::fill_zero(arguments::stream(stream, tensor.device())?, &tensor)
    })
}
