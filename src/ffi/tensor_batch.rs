//! `cvc_tensor_batch_*`.

use super::arguments::{self, handle, opaque, out};
use super::cache;
use super::constants::*;
use super::error::{guard, guard_release};
use super::structs::*;
use super::tensor::charge;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, ObjectKind, ObjectRef};

/// An empty batch for up to `capacity` tensors, from the cache as `cvc_tensor_create` makes tensors. It is charged the
/// device memory of its records.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_batch_create(
    cache: cvc_cache_t,
    device: i32,
    capacity: i32,
    stream: cvc_stream_t,
    batch: *mut cvc_tensor_batch_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let batch = unsafe { out(batch, std::ptr::null_mut(), "batch") }?;
        let cache = cache::find(cache)?;
        let device = arguments::device(device)?;
        let stream = arguments::stream_or_none(stream, device)?;
        *batch = opaque(object::tensor_batch_create(
            cache, device, capacity, stream,
        )?);
        Ok(())
    })
}

/// Reads an array of handles.
unsafe fn tensors(tensors: *const cvc_tensor_t, count: i32) -> Result<Vec<ObjectRef>> {
    let Ok(length) = usize::try_from(count) else {
        fail!(
            Status::InvalidArgument,
            "count is {count}, expected 0 or more"
        );
    };
    if length > 0 && tensors.is_null() {
        fail!(
            Status::NullPointer,
            "tensors is null, expected {count} tensor handles"
        );
    }
    // SAFETY: the caller's array of `count` handles.
    (0..length)
        .map(|i| unsafe { arguments::tensor(*tensors.add(i), &format!("tensors[{i}]")) })
        .collect()
}

/// Adds tensors at the end, all or none, and keeps them. All have the rank, dtype and layout of the
/// first one; an empty batch takes any.
/// `CVC_STATUS_CAPACITY_EXCEEDED` over the capacity.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_batch_push(
    batch: cvc_tensor_batch_t,
    tensors: *const cvc_tensor_t,
    count: i32,
) -> cvc_status_t {
    guard(|| {
        let batch = arguments::tensor_batch(batch, "batch")?;
        // SAFETY: the caller's array.
        batch.push_tensors(unsafe { self::tensors(tensors, count) }?)
    })
}

/// Removes the last `count` tensors; `CVC_STATUS_CAPACITY_UNDERFLOW` when there are fewer.
#[no_mangle]
pub extern "C" fn cvc_tensor_batch_pop(batch: cvc_tensor_batch_t, count: i32) -> cvc_status_t {
    guard(|| {
        arguments::tensor_batch(batch, "batch")?
            .tensor_batch()
            .pop(count)
    })
}

/// Removes all tensors.
#[no_mangle]
pub extern "C" fn cvc_tensor_batch_clear(batch: cvc_tensor_batch_t) -> cvc_status_t {
    guard(|| {
        arguments::tensor_batch(batch, "batch")?
            .tensor_batch()
            .clear();
        Ok(())
    })
}

/// One tensor of the batch.
///
/// @param[out] tensor a reference of its own, to be released
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_batch_get(
    batch: cvc_tensor_batch_t,
    index: i32,
    tensor: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let tensor = unsafe { out(tensor, std::ptr::null_mut(), "tensor") }?;
        *tensor = opaque(
            arguments::tensor_batch(batch, "batch")?
                .tensor_batch()
                .get(index)?
                .share()?,
        );
        Ok(())
    })
}

/// Puts a tensor in the place of another, as `cvc_tensor_batch_push` would take it.
#[no_mangle]
pub extern "C" fn cvc_tensor_batch_set(
    batch: cvc_tensor_batch_t,
    index: i32,
    tensor: cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        let batch = arguments::tensor_batch(batch, "batch")?;
        object::tensor_batch_set(&batch, index, arguments::tensor(tensor, "tensor")?)
    })
}

/// What the batch holds, and its records in device memory; `stream` as in `cvc_image_batch_get_data`.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_batch_get_data(
    batch: cvc_tensor_batch_t,
    stream: cvc_stream_t,
    data: *mut cvc_tensor_batch_data_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(data, "data") }?;
        let batch = arguments::tensor_batch(batch, "batch")?;
        let stream = arguments::stream_or_none(stream, batch.device())?;
        if let Some(stream) = stream {
            object::tensor_batch_upload(&batch, stream)?;
        }
        let body = batch.tensor_batch();
        let info = body.info();
        let value = cvc_tensor_batch_data_t {
            struct_size: size,
            device: batch.device(),
            count: info.count,
            capacity: body.capacity,
            rank: info.first.map_or(-1, |desc| desc.rank as i32),
            dtype: info.first.map_or(CVC_DTYPE_NONE, |desc| desc.dtype.code()),
            layout: info.first.map_or([0; 16], |desc| desc.layout.to_chars()),
            records: std::ptr::without_provenance_mut(stream.map_or(0, |_| body.data as usize)),
        };
        // SAFETY: checked above.
        unsafe { arguments::write(data, size, &value) };
        Ok(())
    })
}

/// A number for the resource, as `cvc_tensor_get_id`.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_batch_get_id(
    batch: cvc_tensor_batch_t,
    id: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let id = unsafe { out(id, 0, "id") }?;
        *id = arguments::tensor_batch(batch, "batch")?.id();
        Ok(())
    })
}

/// The bytes that the batch itself is charged, its tensors aside.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_batch_nbytes(
    batch: cvc_tensor_batch_t,
    nbytes: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let nbytes = unsafe { out(nbytes, 0, "nbytes") }?;
        *nbytes = charge(&arguments::tensor_batch(batch, "batch")?);
        Ok(())
    })
}

/// Adds a reference.
#[no_mangle]
pub extern "C" fn cvc_tensor_batch_retain(batch: cvc_tensor_batch_t) -> cvc_status_t {
    guard(|| object::retain(handle(batch), ObjectKind::TensorBatch, "batch"))
}

/// Drops a reference; with the last one the batch lets go of its tensors.
#[no_mangle]
pub extern "C" fn cvc_tensor_batch_release(batch: cvc_tensor_batch_t) -> cvc_status_t {
    guard_release(|| object::release(handle(batch), ObjectKind::TensorBatch, "batch"))
}
