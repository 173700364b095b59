//! `cvc_op_*_var_shape`: flip, pillow_resize and normalize on batches of images of different sizes.
//!
//! What all of them have in common stands at the first one, so that the header has it.

use super::arguments::{self, opaque, out};
use super::constants::*;
use super::error::guard;
use super::operators::{array_length, normalization, resampling};
use super::structs::*;
use crate::object::Format;
use crate::op::{flip, normalize, pillow_resize};

/// Mirrors each image by a code of its own. Images of `dst` have the sizes and formats of those of `src`, or are them.
///
/// What all operators on batches have in common, beside what `cvc_op_flip` says: formats are not subsampled and have one
/// plane, or one plane a channel. Both batches hold as many images, at the time of the call. Images of `dst` share no
/// memory with each other, nor with one of `src`, except that each may be its own source where the operator says so. The
/// `_new` forms make a batch of the capacity of `src`, with an image for each of its images, all from the cache of `src`;
/// the images go with the batch.
///
/// Errors that all have: `CVC_STATUS_SHAPE_MISMATCH` (another number of images, or other sizes), `CVC_STATUS_DTYPE_MISMATCH`
/// (other formats), `CVC_STATUS_NOT_SUPPORTED` (a format), `CVC_STATUS_DEVICE_MISMATCH`, `CVC_STATUS_INVALID_ARGUMENT`
/// (memory overlaps), `CVC_STATUS_INVALID_STREAM`, `CVC_STATUS_CAPTURING`, and those of handles and pointers. Of the codes:
/// `CVC_STATUS_SHAPE_MISMATCH` (too few), `CVC_STATUS_DTYPE_MISMATCH`, `CVC_STATUS_INVALID_RANK`,
/// `CVC_STATUS_INVALID_LAYOUT`.
///
/// @param flip_codes S32 of one dimension, one code an image or more: 0 reverses the rows, 1 the columns, -1 both, any
///   other copies. Read by the queued work, in order with other work on it
#[no_mangle]
pub extern "C" fn cvc_op_flip_var_shape(
    stream: cvc_stream_t,
    src: cvc_image_batch_t,
    dst: cvc_image_batch_t,
    flip_codes: cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        let src = arguments::image_batch(src, "src")?;
        let dst = arguments::image_batch(dst, "dst")?;
        let codes = arguments::tensor(flip_codes, "flip_codes")?;
        let stream = arguments::stream(stream, src.device())?;
        flip::flip_var_shape(stream, &src, &dst, &codes)
    })
}

/// As `cvc_op_flip_var_shape`, into a batch from the cache.
///
/// @param[out] dst to be released with `cvc_image_batch_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_flip_var_shape_new(
    stream: cvc_stream_t,
    src: cvc_image_batch_t,
    flip_codes: cvc_tensor_t,
    dst: *mut cvc_image_batch_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let src = arguments::image_batch(src, "src")?;
        let codes = arguments::tensor(flip_codes, "flip_codes")?;
        let stream = arguments::stream(stream, src.device())?;
        *dst = opaque(flip::flip_var_shape_new(stream, &src, &codes)?);
        Ok(())
    })
}

/// Resizes each image as `cvc_op_pillow_resize` does, to the size of its image in `dst`, which has its format.
///
/// Errors: those of `cvc_op_flip_var_shape` and `cvc_op_pillow_resize`.
#[no_mangle]
pub extern "C" fn cvc_op_pillow_resize_var_shape(
    stream: cvc_stream_t,
    src: cvc_image_batch_t,
    dst: cvc_image_batch_t,
    filter: cvc_filter_t,
    flags: u32,
) -> cvc_status_t {
    guard(|| {
        let resampling = resampling(filter, flags)?;
        let src = arguments::image_batch(src, "src")?;
        let dst = arguments::image_batch(dst, "dst")?;
        let stream = arguments::stream(stream, src.device())?;
        pillow_resize::pillow_resize_var_shape(stream, &src, &dst, &resampling)
    })
}

/// As `cvc_op_pillow_resize_var_shape`, into a batch from the cache.
///
/// @param sizes width and height of each image, 1 to 2^30 pixels; else `CVC_STATUS_INVALID_SHAPE`
/// @param count how many sizes: as many as `src` holds images, else `CVC_STATUS_SHAPE_MISMATCH`
/// @param[out] dst to be released with `cvc_image_batch_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_pillow_resize_var_shape_new(
    stream: cvc_stream_t,
    src: cvc_image_batch_t,
    sizes: *const i32,
    count: i32,
    filter: cvc_filter_t,
    flags: u32,
    dst: *mut cvc_image_batch_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let resampling = resampling(filter, flags)?;
        let src = arguments::image_batch(src, "src")?;
        let length = array_length(sizes, count, "sizes")?;
        let sizes: &[[i32; 2]] = match length {
            0 => &[],
            // SAFETY: the caller's array of a width and a height for each of `count` images.
            _ => unsafe { std::slice::from_raw_parts(sizes.cast(), length) },
        };
        let stream = arguments::stream(stream, src.device())?;
        let handle = pillow_resize::pillow_resize_var_shape_new(stream, &src, sizes, &resampling)?;
        *dst = opaque(handle);
        Ok(())
    })
}

/// Normalizes each image as `cvc_op_normalize` does. Base and scale have 1 row and 1 column; their N is 1 or the number of
/// images, their C is 1 or the channels of every image. Images of `dst` have the sizes, channels and planes of those of
/// `src`, in any format; where elements are of one size they may be them.
///
/// Errors: those of `cvc_op_flip_var_shape` and `cvc_op_normalize`.
#[no_mangle]
pub unsafe extern "C" fn cvc_op_normalize_var_shape(
    stream: cvc_stream_t,
    src: cvc_image_batch_t,
    dst: cvc_image_batch_t,
    params: *const cvc_normalize_params_t,
) -> cvc_status_t {
    guard(|| {
        let src = arguments::image_batch(src, "src")?;
        let dst = arguments::image_batch(dst, "dst")?;
        // SAFETY: the caller's pointer.
        let (normalization, _) = unsafe { normalization(params) }?;
        let stream = arguments::stream(stream, src.device())?;
        normalize::normalize_var_shape(stream, &src, &dst, &normalization)
    })
}

/// As `cvc_op_normalize_var_shape`, into a batch from the cache.
///
/// @param dst_format of all images of the result; `CVC_FORMAT_NONE`: each has that of its source
/// @param[out] dst to be released with `cvc_image_batch_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_normalize_var_shape_new(
    stream: cvc_stream_t,
    src: cvc_image_batch_t,
    params: *const cvc_normalize_params_t,
    dst_format: cvc_format_t,
    dst: *mut cvc_image_batch_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let src = arguments::image_batch(src, "src")?;
        // SAFETY: as above.
        let (normalization, _) = unsafe { normalization(params) }?;
        let format = match dst_format {
            CVC_FORMAT_NONE => None,
            code => Some(Format::from_code(code, "dst_format")?),
        };
        let stream = arguments::stream(stream, src.device())?;
        let handle = normalize::normalize_var_shape_new(stream, &src, &normalization, format)?;
        *dst = opaque(handle);
        Ok(())
    })
}
