//! `cvc_op_*` on tensors: flip, pillow_resize, convert_to, normalize, reformat. Those on image batches are in
//! `operators_var_shape.rs`.
//!
//! What all of them have in common stands at the first one, so that the header has it.

use std::ffi::c_char;

use super::arguments::{self, opaque, out};
use super::constants::*;
use super::error::guard;
use super::structs::*;
use super::tensor::layout_text;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::Dtype;
use crate::op::convert_to::{self, Conversion};
use crate::op::convert_to_params::Rounding;
use crate::op::flip;
use crate::op::normalize::{self, Factor, Normalization};
use crate::op::pillow_resize::{self, Resampling};
use crate::op::reformat;
use crate::op::resize_table::{PassOrderRule, ResizeFilter};

/// Mirrors images of any dtype. `dst` has the layout, shape and dtype of `src`, or is `src`: then it works in place.
///
/// What all operators have in common: they queue work on `stream` and return. Everything is checked before, and a call
/// that fails has changed nothing. Inputs and outputs are ordered, on the GPU, against what any stream does with them:
/// reads run together, a write waits for all. All tensors are of one device, which is the stream's. A layout has labels
/// among N, C, H and W, and a W; what is missing counts as 1. Lanes of a vector dtype are channels; there are 1 to 4 of
/// them. A tensor with a dimension of 0 is valid, and nothing is done. An output may be the input itself where the
/// operator says so; else it shares no memory with any input. The `_new` forms take their output from the cache of `src`,
/// with the default alignment and `stream` as its consumer.
///
/// Errors that all have: `CVC_STATUS_DEVICE_MISMATCH` (a tensor or the stream is of another device than `src`),
/// `CVC_STATUS_INVALID_LAYOUT` (none, one with other labels, or not that of `src`), `CVC_STATUS_INVALID_SHAPE` (more than 4
/// channels), `CVC_STATUS_SHAPE_MISMATCH`, `CVC_STATUS_DTYPE_MISMATCH`, `CVC_STATUS_NOT_SUPPORTED` (vectors in several
/// planes), `CVC_STATUS_INVALID_ARGUMENT` (`dst` overlaps an input), `CVC_STATUS_INVALID_STREAM`, `CVC_STATUS_CAPTURING`,
/// and those of handles and pointers. The `_new` forms may also end with `CVC_STATUS_OUT_OF_MEMORY` or
/// `CVC_STATUS_LIMIT_EXCEEDED`.
///
/// @param flip_code 0 reverses the rows, more than 0 the columns, less than 0 both
#[no_mangle]
pub extern "C" fn cvc_op_flip(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dst: cvc_tensor_t,
    flip_code: i32,
) -> cvc_status_t {
    guard(|| {
        let (src, dst) = (
            arguments::tensor(src, "src")?,
            arguments::tensor(dst, "dst")?,
        );
        flip::flip(
            arguments::stream(stream, src.device())?,
            &src,
            &dst,
            flip_code,
        )
    })
}

/// As `cvc_op_flip`, into a tensor from the cache.
///
/// @param[out] dst to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_flip_new(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    flip_code: i32,
    dst: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let src = arguments::tensor(src, "src")?;
        let stream = arguments::stream(stream, src.device())?;
        *dst = opaque(flip::flip_new(stream, &src, flip_code)?);
        Ok(())
    })
}

/// Filter and flags of a resize.
pub(super) fn resampling(filter: cvc_filter_t, flags: u32) -> Result<Resampling> {
    resampling_of(filter, flags, "flags")
}

/// Likewise, the flags being in an argument of that name.
pub(super) fn resampling_of(filter: cvc_filter_t, flags: u32, name: &str) -> Result<Resampling> {
    let filter = ResizeFilter::from_code(filter)?;
    let known = CVC_RESIZE_PILLOW_12_PASS_ORDER | CVC_RESIZE_PREMULTIPLY_ALPHA;
    let flags = arguments::flags(flags, known, name)?;
    Ok(Resampling {
        filter,
        order: if flags & CVC_RESIZE_PILLOW_12_PASS_ORDER != 0 {
            PassOrderRule::Pillow12
        } else {
            PassOrderRule::Pillow13
        },
        premultiply_alpha: flags & CVC_RESIZE_PREMULTIPLY_ALPHA != 0,
    })
}

/// Resizes with Pillow's filters, channel by channel. U8 gets the bits of Pillow's `Image.resize` for modes L and RGB, U16
/// those of I;16, F32 those of F, S32 those of I where these do not overflow; S8, S16, F16 and F64 are computed likewise,
/// in double. NEAREST takes U32 too. `dst` has the layout, dtype, images and channels of `src`, the height and width to
/// resize to, and shares no memory with it; both layouts have an H.
///
/// Errors beside those of `cvc_op_flip`: `CVC_STATUS_INVALID_ENUM` (`filter`, `flags`), `CVC_STATUS_NOT_SUPPORTED` (AREA; a
/// dtype that is not named above; premultiplied alpha of other than U8 with 2 or 4 channels), `CVC_STATUS_INVALID_SHAPE`
/// (a side of more than 2^30 pixels, or `src` without any), `CVC_STATUS_OUT_OF_MEMORY` (for the filter's coefficients,
/// which are kept for later calls).
///
/// @param flags 0, or `CVC_RESIZE_PILLOW_12_PASS_ORDER` and `CVC_RESIZE_PREMULTIPLY_ALPHA`
#[no_mangle]
pub extern "C" fn cvc_op_pillow_resize(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dst: cvc_tensor_t,
    filter: cvc_filter_t,
    flags: u32,
) -> cvc_status_t {
    guard(|| {
        let resampling = resampling(filter, flags)?;
        let (src, dst) = (
            arguments::tensor(src, "src")?,
            arguments::tensor(dst, "dst")?,
        );
        let stream = arguments::stream(stream, src.device())?;
        pillow_resize::pillow_resize(stream, &src, &dst, &resampling)
    })
}

/// As `cvc_op_pillow_resize`, into a tensor from the cache.
///
/// @param height, width pixels, 1 to 2^30; else `CVC_STATUS_INVALID_SHAPE`
/// @param[out] dst to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_pillow_resize_new(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    height: i64,
    width: i64,
    filter: cvc_filter_t,
    flags: u32,
    dst: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let resampling = resampling(filter, flags)?;
        let src = arguments::tensor(src, "src")?;
        let stream = arguments::stream(stream, src.device())?;
        let handle = pillow_resize::pillow_resize_new(stream, &src, (height, width), &resampling)?;
        *dst = opaque(handle);
        Ok(())
    })
}

/// Converts elements: `dst = saturate(alpha * src + beta)`, the product rounded, then the sum, in float; in double where
/// either side is F64 or an integer of 32 or 64 bits. An integer result is rounded as `round` says and clamped; NaN gives
/// 0. `dst` has the layout and shape of `src`, and as many lanes; it may be `src` itself, or a view of it with elements of
/// the same size.
///
/// Errors beside those of `cvc_op_flip`: `CVC_STATUS_INVALID_VALUE` (`alpha` or `beta` is NaN or infinite),
/// `CVC_STATUS_INVALID_ENUM` (`round`), `CVC_STATUS_NOT_SUPPORTED` (complex elements).
#[no_mangle]
pub extern "C" fn cvc_op_convert_to(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dst: cvc_tensor_t,
    alpha: f64,
    beta: f64,
    round: cvc_round_t,
) -> cvc_status_t {
    guard(|| {
        let rounding = Rounding::from_code(round)?;
        let (src, dst) = (
            arguments::tensor(src, "src")?,
            arguments::tensor(dst, "dst")?,
        );
        let stream = arguments::stream(stream, src.device())?;
        let conversion = Conversion {
            alpha,
            beta,
            rounding,
        };
        convert_to::convert_to(stream, &src, &dst, &conversion)
    })
}

/// As `cvc_op_convert_to`, into a tensor from the cache.
///
/// @param dtype of the result, with as many lanes as that of `src`
/// @param[out] dst to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_convert_to_new(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dtype: cvc_dtype_t,
    alpha: f64,
    beta: f64,
    round: cvc_round_t,
    dst: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let dtype = Dtype::from_code(dtype, "dtype")?;
        let rounding = Rounding::from_code(round)?;
        let src = arguments::tensor(src, "src")?;
        let stream = arguments::stream(stream, src.device())?;
        let conversion = Conversion {
            alpha,
            beta,
            rounding,
        };
        *dst = opaque(convert_to::convert_to_new(
            stream,
            &src,
            dtype,
            &conversion,
        )?);
        Ok(())
    })
}

fn factor(tensor: cvc_tensor_t, values: [f32; 4], count: i32, name: &str) -> Result<Factor> {
    if tensor.is_null() {
        return Ok(Factor::Values { values, count });
    }
    Ok(Factor::Tensor(arguments::tensor(tensor, name)?))
}

/// What `params` asks for, and its `dst_dtype`.
pub(super) unsafe fn normalization(
    params: *const cvc_normalize_params_t,
) -> Result<(Normalization, Option<Dtype>)> {
    // SAFETY: the caller's pointer.
    let params = unsafe { arguments::read(params, "params") }?;
    let flags = arguments::flags(params.flags, CVC_NORMALIZE_SCALE_IS_STDDEV, "params.flags")?;
    let dtype = match params.dst_dtype {
        CVC_DTYPE_NONE => None,
        code => Some(Dtype::from_code(code, "params.dst_dtype")?),
    };
    let normalization = Normalization {
        base: factor(
            params.base,
            params.base_values,
            params.base_count,
            "params.base",
        )?,
        scale: factor(
            params.scale,
            params.scale_values,
            params.scale_count,
            "params.scale",
        )?,
        global_scale: params.global_scale,
        global_shift: params.global_shift,
        epsilon: params.epsilon,
        scale_is_deviation: flags & CVC_NORMALIZE_SCALE_IS_STDDEV != 0,
    };
    Ok((normalization, dtype))
}

/// Normalizes elements: `dst = saturate((src - base) * scale * global_scale + global_shift)`, each step rounded, in float;
/// in double where either side is F64. With `CVC_NORMALIZE_SCALE_IS_STDDEV`, 1 / sqrt(scale * scale + epsilon) takes the
/// place of `scale`. An integer result is rounded to nearest, halves to even, and clamped; NaN gives 0. Dtypes are U8, S8,
/// U16, S16, S32, F16, F32 and F64. `dst` has the layout and shape of `src`, and as many lanes; it may be `src` itself, or
/// a view of it with elements of the same size.
///
/// Errors beside those of `cvc_op_flip`: `CVC_STATUS_NOT_SUPPORTED` (another dtype), `CVC_STATUS_INVALID_VALUE` (a value is
/// NaN or infinite, or a negative epsilon), `CVC_STATUS_INVALID_ENUM` (`params.flags`), `CVC_STATUS_INVALID_ARGUMENT` (a
/// count of values that is neither 1 nor the channels; `dst` overlaps base or scale), `CVC_STATUS_SHAPE_MISMATCH` (a
/// dimension of base or scale that is neither 1 nor that of `src`), `CVC_STATUS_DTYPE_MISMATCH` (base or scale is not F32).
///
/// @param params its `dst_dtype` is not looked at but for being valid
#[no_mangle]
pub unsafe extern "C" fn cvc_op_normalize(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dst: cvc_tensor_t,
    params: *const cvc_normalize_params_t,
) -> cvc_status_t {
    guard(|| {
        let (src, dst) = (
            arguments::tensor(src, "src")?,
            arguments::tensor(dst, "dst")?,
        );
        // SAFETY: the caller's pointer.
        let (normalization, _) = unsafe { normalization(params) }?;
        let stream = arguments::stream(stream, src.device())?;
        normalize::normalize(stream, &src, &dst, &normalization)
    })
}

/// As `cvc_op_normalize`, into a tensor from the cache of dtype `params.dst_dtype`.
///
/// @param[out] dst to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_normalize_new(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    params: *const cvc_normalize_params_t,
    dst: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let src = arguments::tensor(src, "src")?;
        // SAFETY: as above.
        let (normalization, dtype) = unsafe { normalization(params) }?;
        let stream = arguments::stream(stream, src.device())?;
        *dst = opaque(normalize::normalize_new(
            stream,
            &src,
            dtype,
            &normalization,
        )?);
        Ok(())
    })
}

/// Copies elements of any dtype between NHWC and NCHW, HWC and CHW, NWC and NCW, WC and CW, any number of channels; or to
/// other strides in the same layout, which packs rows or unpacks them. `dst` has the dtype and extents of `src`; with
/// the same layout it may be `src` itself, and nothing is done.
///
/// Errors as those of `cvc_op_flip`; `CVC_STATUS_INVALID_LAYOUT` for any other pair of layouts.
#[no_mangle]
pub extern "C" fn cvc_op_reformat(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dst: cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        let (src, dst) = (
            arguments::tensor(src, "src")?,
            arguments::tensor(dst, "dst")?,
        );
        reformat::reformat(arguments::stream(stream, src.device())?, &src, &dst)
    })
}

/// As `cvc_op_reformat`, into a tensor from the cache.
///
/// @param layout of the result, NUL-terminated
/// @param[out] dst to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_reformat_new(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    layout: *const c_char,
    dst: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let src = arguments::tensor(src, "src")?;
        // SAFETY: the caller's text.
        let layout = unsafe { layout_text(layout, "layout") }?;
        let stream = arguments::stream(stream, src.device())?;
        *dst = opaque(reformat::reformat_new(stream, &src, layout)?);
        Ok(())
    })
}

/// Refuses a count of array entries that is negative, or entries at null.
pub(super) fn array_length<T>(array: *const T, count: i32, name: &str) -> Result<usize> {
    array_length_of(array, (count, "count"), name)
}

/// Likewise, the count being in an argument of that name.
pub(super) fn array_length_of<T>(
    array: *const T,
    (count, count_name): (i32, &str),
    name: &str,
) -> Result<usize> {
    let Ok(length) = usize::try_from(count) else {
        fail!(
            Status::InvalidArgument,
            "{count_name} is {count}, expected 0 or more"
        );
    };
    if length > 0 && array.is_null() {
        fail!(
            Status::NullPointer,
            "{name} is null, expected {count} entries"
        );
    }
    Ok(length)
}
