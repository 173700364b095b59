//! `cvc_image_batch_*`.

use super::arguments::{self, handle, opaque, out};
use super::cache;
use super::constants::*;
use super::error::{guard, guard_release};
use super::structs::*;
use super::tensor::charge;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, ObjectKind, ObjectRef};

/// An empty batch for up to `capacity` images, from the cache as `cvc_tensor_create` makes tensors. It is charged the
/// device memory of its records.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_batch_create(
    cache: cvc_cache_t,
    device: i32,
    capacity: i32,
    stream: cvc_stream_t,
    batch: *mut cvc_image_batch_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let batch = unsafe { out(batch, std::ptr::null_mut(), "batch") }?;
        let cache = cache::find(cache)?;
        let device = arguments::device(device)?;
        let stream = arguments::stream_or_none(stream, device)?;
        *batch = opaque(object::image_batch_create(cache, device, capacity, stream)?);
        Ok(())
    })
}

/// Reads an array of handles.
unsafe fn images(images: *const cvc_image_t, count: i32) -> Result<Vec<ObjectRef>> {
    let Ok(length) = usize::try_from(count) else {
        fail!(
            Status::InvalidArgument,
            "count is {count}, expected 0 or more"
        );
    };
    if length > 0 && images.is_null() {
        fail!(
            Status::NullPointer,
            "images is null, expected {count} image handles"
        );
    }
    // SAFETY: the caller's array of `count` handles.
    (0..length)
        .map(|i| unsafe { arguments::image(*images.add(i), &format!("images[{i}]")) })
        .collect()
}

/// Adds images at the end, all or none, and keeps them.
/// `CVC_STATUS_CAPACITY_EXCEEDED` over the capacity.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_batch_push(
    batch: cvc_image_batch_t,
    images: *const cvc_image_t,
    count: i32,
) -> cvc_status_t {
    guard(|| {
        let batch = arguments::image_batch(batch, "batch")?;
        // SAFETY: the caller's array.
        batch.push_images(unsafe { self::images(images, count) }?)
    })
}

/// Removes the last `count` images; `CVC_STATUS_CAPACITY_UNDERFLOW` when there are fewer.
#[no_mangle]
pub extern "C" fn cvc_image_batch_pop(batch: cvc_image_batch_t, count: i32) -> cvc_status_t {
    guard(|| {
        arguments::image_batch(batch, "batch")?
            .image_batch()
            .pop(count)
    })
}

/// Removes all images.
#[no_mangle]
pub extern "C" fn cvc_image_batch_clear(batch: cvc_image_batch_t) -> cvc_status_t {
    guard(|| {
        arguments::image_batch(batch, "batch")?
            .image_batch()
            .clear();
        Ok(())
    })
}

/// One image of the batch.
///
/// @param[out] image a reference of its own, to be released
#[no_mangle]
pub unsafe extern "C" fn cvc_image_batch_get(
    batch: cvc_image_batch_t,
    index: i32,
    image: *mut cvc_image_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let image = unsafe { out(image, std::ptr::null_mut(), "image") }?;
        *image = opaque(
            arguments::image_batch(batch, "batch")?
                .image_batch()
                .get(index)?
                .share()?,
        );
        Ok(())
    })
}

/// What the batch holds, and its records in device memory.
///
/// @param stream the records are written there, and `records` and `formats` are valid for work queued on it from then on;
///   `CVC_STREAM_NONE`: nothing is written, and both are null
#[no_mangle]
pub unsafe extern "C" fn cvc_image_batch_get_data(
    batch: cvc_image_batch_t,
    stream: cvc_stream_t,
    data: *mut cvc_image_batch_data_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(data, "data") }?;
        let batch = arguments::image_batch(batch, "batch")?;
        let stream = arguments::stream_or_none(stream, batch.device())?;
        if let Some(stream) = stream {
            object::image_batch_upload(&batch, stream)?;
        }
        let body = batch.image_batch();
        let info = body.info();
        let address =
            |address: u64| std::ptr::without_provenance_mut(stream.map_or(0, |_| address as usize));
        let value = cvc_image_batch_data_t {
            struct_size: size,
            device: batch.device(),
            count: info.count,
            capacity: body.capacity,
            unique_format: info
                .unique_format
                .map_or(CVC_FORMAT_NONE, |format| format.code()),
            max_width: info.max_width,
            max_height: info.max_height,
            records: address(body.data),
            formats: address(body.formats_address()),
        };
        // SAFETY: checked above.
        unsafe { arguments::write(data, size, &value) };
        Ok(())
    })
}

/// A number for the resource, as `cvc_tensor_get_id`.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_batch_get_id(
    batch: cvc_image_batch_t,
    id: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let id = unsafe { out(id, 0, "id") }?;
        *id = arguments::image_batch(batch, "batch")?.id();
        Ok(())
    })
}

/// The bytes that the batch itself is charged, its images aside.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_batch_nbytes(
    batch: cvc_image_batch_t,
    nbytes: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let nbytes = unsafe { out(nbytes, 0, "nbytes") }?;
        *nbytes = charge(&arguments::image_batch(batch, "batch")?);
        Ok(())
    })
}

/// Adds a reference.
#[no_mangle]
pub extern "C" fn cvc_image_batch_retain(batch: cvc_image_batch_t) -> cvc_status_t {
    guard(|| object::retain(handle(batch), ObjectKind::ImageBatch, "batch"))
}

/// Drops a reference; with the last one the batch lets go of its images.
#[no_mangle]
pub extern "C" fn cvc_image_batch_release(batch: cvc_image_batch_t) -> cvc_status_t {
    guard_release(|| object::release(handle(batch), ObjectKind::ImageBatch, "batch"))
}
