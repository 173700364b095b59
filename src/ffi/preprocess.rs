//! `cvc_op_preprocess*`: what comes before a network, in one call.

use std::ffi::c_char;

use super::arguments::{self, opaque, out};
use super::constants::*;
use super::error::guard;
use super::operators::{array_length_of, normalization, resampling_of};
use super::structs::*;
use super::tensor::layout_text;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::Dtype;
use crate::op::convert_to::Conversion;
use crate::op::convert_to_params::Rounding;
use crate::op::normalize::Normalization;
use crate::op::nv12_params::ColorMatrix;
use crate::op::preprocess::{
    self, images_of_batch, images_of_tensor, Crop, Preprocessing, Range, Wanted,
};

/// Makes network input of images: crop, pillow_resize, flip, exchange of channels 0 and 2, convert_to, normalize and
/// reformat, in this order, any of them, with the bits of the operators called one after the other. Images are resized
/// to the height and width of `dst`; what has them after the crop is not resized. `dst` is of layout NHWC, HWC, NCHW or
/// CHW, has the images and channels of `src`, the dtype that the last step gives (any that normalize takes where that is
/// there), and shares no memory with an input. `src` is of any layout with an H and a W.
///
/// NV12: with `CVC_PREPROCESS_NV12` or `CVC_PREPROCESS_NV12_FULL_RANGE`, `src` is U8 of one channel, and an image of even
/// height and width has height rows of luma, and behind them height / 2 rows of pairs of Cb and Cr. What is left by the
/// crop becomes R, G and B of U8 before it is resized, by integers: each chroma sample is taken for all four pixels that
/// it belongs to, coefficients have 20 fraction bits, and sums are rounded to the nearest and clipped.
///
/// Errors beside those of the operators: `CVC_STATUS_INVALID_SHAPE` (a crop that is empty or not within its image; NV12 of
/// other than 3/2 of an even height, and an even width; a side of more than 2^30 pixels that is resized),
/// `CVC_STATUS_SHAPE_MISMATCH` (`params.crop_count` is not 0, 1 or the images of `src`; `dst` has other images or
/// channels), `CVC_STATUS_INVALID_LAYOUT` (`dst`), `CVC_STATUS_DTYPE_MISMATCH` (`dst` is not of the last step's dtype; NV12
/// of other than U8 of one channel), `CVC_STATUS_NOT_SUPPORTED` (channels exchanged where there are less than 3),
/// `CVC_STATUS_INVALID_ENUM` (flags, filter, round, color matrix, dtype), `CVC_STATUS_INVALID_STRUCT_SIZE`,
/// `CVC_STATUS_NULL_POINTER`. Memory between two steps comes from the cache of `src`: `CVC_STATUS_OUT_OF_MEMORY`,
/// `CVC_STATUS_LIMIT_EXCEEDED`.
///
/// @param params the `dst_dtype` of its `normalize` is not looked at but for being valid
#[no_mangle]
pub unsafe extern "C" fn cvc_op_preprocess(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    dst: cvc_tensor_t,
    params: *const cvc_preprocess_params_t,
) -> cvc_status_t {
    guard(|| {
        let (src, dst) = (
            arguments::tensor(src, "src")?,
            arguments::tensor(dst, "dst")?,
        );
        // SAFETY: the caller's pointer.
        let request = unsafe { request(params, NV12_FLAGS, || images_of_tensor(&src)) }?;
        let stream = arguments::stream(stream, src.device())?;
        preprocess::preprocess(stream, &src, &dst, &request)
    })
}

/// As `cvc_op_preprocess`, into a tensor from the cache, of the dtype that the last step gives: `params.normalize`'s
/// `dst_dtype`, or what it normalizes where that is `CVC_DTYPE_NONE`.
///
/// @param height, width pixels, 1 to 2^30; else `CVC_STATUS_INVALID_SHAPE`
/// @param layout of the result, NUL-terminated; without an N for one image alone, else `CVC_STATUS_SHAPE_MISMATCH`
/// @param[out] dst to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_preprocess_new(
    stream: cvc_stream_t,
    src: cvc_tensor_t,
    params: *const cvc_preprocess_params_t,
    height: i64,
    width: i64,
    layout: *const c_char,
    dst: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let src = arguments::tensor(src, "src")?;
        // SAFETY: as above.
        let request = unsafe { request(params, NV12_FLAGS, || images_of_tensor(&src)) }?;
        // SAFETY: the caller's text.
        let wanted = unsafe { wanted(height, width, layout) }?;
        let stream = arguments::stream(stream, src.device())?;
        let handle = preprocess::preprocess_new(stream, &src, &wanted, &request)?;
        *dst = opaque(handle);
        Ok(())
    })
}

/// As `cvc_op_preprocess`, on a batch of images of any sizes and formats, into one tensor, whose N is the number of images.
/// Formats are those of the operators on batches, and NV12, NV12_ER, NV21 and NV21_ER, of any size; all images have the
/// same number of channels, NV12 three. The flags for NV12 tensors are refused (`CVC_STATUS_INVALID_ENUM`).
///
/// Errors: those of `cvc_op_preprocess` and `cvc_op_flip_var_shape`.
///
/// @param params base and scale of its `normalize` may be those of each image by their N
#[no_mangle]
pub unsafe extern "C" fn cvc_op_preprocess_var_shape(
    stream: cvc_stream_t,
    src: cvc_image_batch_t,
    dst: cvc_tensor_t,
    params: *const cvc_preprocess_params_t,
) -> cvc_status_t {
    guard(|| {
        let src = arguments::image_batch(src, "src")?;
        let dst = arguments::tensor(dst, "dst")?;
        // SAFETY: the caller's pointer.
        let request = unsafe { request(params, 0, || images_of_batch(&src)) }?;
        let stream = arguments::stream(stream, src.device())?;
        preprocess::preprocess_var_shape(stream, &src, &dst, &request)
    })
}

/// As `cvc_op_preprocess_var_shape`, into a tensor from the cache. Where no step makes dtypes alike, those of all images
/// are (`CVC_STATUS_DTYPE_MISMATCH`). An empty batch gives a tensor of no images and three channels.
///
/// @param height, width pixels, 1 to 2^30; else `CVC_STATUS_INVALID_SHAPE`
/// @param layout of the result, NUL-terminated; without an N for one image alone, else `CVC_STATUS_SHAPE_MISMATCH`
/// @param[out] dst to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_op_preprocess_var_shape_new(
    stream: cvc_stream_t,
    src: cvc_image_batch_t,
    params: *const cvc_preprocess_params_t,
    height: i64,
    width: i64,
    layout: *const c_char,
    dst: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let dst = unsafe { out(dst, std::ptr::null_mut(), "dst") }?;
        let src = arguments::image_batch(src, "src")?;
        // SAFETY: as above.
        let request = unsafe { request(params, 0, || images_of_batch(&src)) }?;
        // SAFETY: the caller's text.
        let wanted = unsafe { wanted(height, width, layout) }?;
        let stream = arguments::stream(stream, src.device())?;
        let handle = preprocess::preprocess_var_shape_new(stream, &src, &wanted, &request)?;
        *dst = opaque(handle);
        Ok(())
    })
}

const NV12_FLAGS: u32 = CVC_PREPROCESS_NV12 | CVC_PREPROCESS_NV12_FULL_RANGE;

/// What `params` asks for; `more_flags` are known beside those of every source, which has so many images.
unsafe fn request(
    params: *const cvc_preprocess_params_t,
    more_flags: u32,
    images: impl FnOnce() -> i64,
) -> Result<Preprocessing> {
    // SAFETY: the caller's pointer.
    let params = unsafe { arguments::read(params, "params") }?;
    let known = CVC_PREPROCESS_FLIP | CVC_PREPROCESS_SWAP_CHANNELS | more_flags;
    let flags = arguments::flags(params.flags, known, "params.flags")?;
    let nv12 = match flags & NV12_FLAGS {
        0 => None,
        CVC_PREPROCESS_NV12 => Some(Range::Limited),
        CVC_PREPROCESS_NV12_FULL_RANGE => Some(Range::Full),
        _ => fail!(
            Status::InvalidEnum,
            "params.flags is {flags:#x}, expected CVC_PREPROCESS_NV12 or CVC_PREPROCESS_NV12_FULL_RANGE, not both"
        ),
    };
    let conversion = match params.convert_dtype {
        CVC_DTYPE_NONE => None,
        code => Some((
            Dtype::from_code(code, "params.convert_dtype")?,
            Conversion {
                alpha: params.alpha,
                beta: params.beta,
                rounding: preprocess::in_params(Rounding::from_code(params.round))?,
            },
        )),
    };
    // SAFETY: the caller's pointers.
    let (crops, normalized) = unsafe { (crops(&params, images)?, normalized(params.normalize)?) };
    let (normalization, normalized_dtype) = normalized.unzip();
    Ok(Preprocessing {
        crops,
        resampling: preprocess::in_params(resampling_of(
            params.filter,
            params.resize_flags,
            "params.resize_flags",
        ))?,
        flip_code: (flags & CVC_PREPROCESS_FLIP != 0).then_some(params.flip_code),
        swap_channels: flags & CVC_PREPROCESS_SWAP_CHANNELS != 0,
        conversion,
        normalization,
        normalized_dtype: normalized_dtype.flatten(),
        nv12,
        matrix: ColorMatrix::from_code(params.color_matrix, "params.color_matrix")?,
    })
}

unsafe fn crops(
    params: &cvc_preprocess_params_t,
    images: impl FnOnce() -> i64,
) -> Result<Vec<Crop>> {
    let count = (params.crop_count, "params.crop_count");
    let length = array_length_of(params.crops, count, "params.crops")?;
    if length > 1 {
        preprocess::check_crop_count(length, images())?;
    }
    let one = |index: usize| {
        // SAFETY: the caller's array of `length` rectangles.
        let crop = unsafe { params.crops.add(index).read_unaligned() };
        Crop {
            x: crop.x,
            y: crop.y,
            width: crop.width,
            height: crop.height,
        }
    };
    Ok((0..length).map(one).collect())
}

unsafe fn normalized(
    params: *const cvc_normalize_params_t,
) -> Result<Option<(Normalization, Option<Dtype>)>> {
    if params.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's pointer.
    preprocess::in_normalize(unsafe { normalization(params) }).map(Some)
}

unsafe fn wanted(height: i64, width: i64, layout: *const c_char) -> Result<Wanted> {
    Ok(Wanted {
        height,
        width,
        // SAFETY: the caller's text.
        layout: unsafe { layout_text(layout, "layout") }?,
    })
}
