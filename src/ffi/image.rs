//! `cvc_image_*` and `cvc_format_get_info`.

use std::ffi::c_void;

use super::arguments::{self, handle, opaque, out};
use super::cache;
use super::constants::*;
use super::error::{guard, guard_release};
use super::structs::*;
use super::tensor::{charge, check_device_pointer, foreign};
use crate::object::{self, ForeignPlane, Format, ImageDesc, ImageRequest, ObjectKind};

/// Planes, channels and subsampling of a format.
#[no_mangle]
pub unsafe extern "C" fn cvc_format_get_info(
    format: cvc_format_t,
    info: *mut cvc_format_info_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(info, "info") }?;
        let known = Format::from_code(format, "format")?.info();
        let mut value = cvc_format_info_t {
            struct_size: size,
            plane_count: known.plane_count as i32,
            channel_count: known.channel_count as i32,
            plane_dtype: [CVC_DTYPE_NONE; CVC_MAX_PLANES],
            plane_width_shift: [0; CVC_MAX_PLANES],
            plane_height_shift: [0; CVC_MAX_PLANES],
        };
        for (i, plane) in known.planes().iter().enumerate() {
            value.plane_dtype[i] = plane.dtype.code();
            value.plane_width_shift[i] = plane.width_shift as i32;
            value.plane_height_shift[i] = plane.height_shift as i32;
        }
        // SAFETY: checked above.
        unsafe { arguments::write(info, size, &value) };
        Ok(())
    })
}

/// An image from the cache, as `cvc_tensor_create` makes tensors: an idle one of the same size, else the smallest idle one
/// of the same device and format that is large enough, else new memory.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_create(
    cache: cvc_cache_t,
    desc: *const cvc_image_desc_t,
    stream: cvc_stream_t,
    image: *mut cvc_image_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointers.
        let image = unsafe { out(image, std::ptr::null_mut(), "image") }?;
        let cache = cache::find(cache)?;
        // SAFETY: as above.
        let desc = unsafe { arguments::read(desc, "desc") }?;
        let request = ImageRequest {
            device: arguments::device_of(desc.device, "desc.device")?,
            format: desc.format,
            width: desc.width,
            height: desc.height,
            row_align: desc.row_align,
            base_align: desc.base_align,
        };
        let stream = arguments::stream_or_none(stream, request.device)?;
        *image = opaque(object::image_create(cache, &request, stream)?);
        Ok(())
    })
}

/// An image around planes of somebody else, charged nothing. `release`, `context` and `stream` as in `cvc_tensor_wrap`.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_wrap(
    cache: cvc_cache_t,
    data: *const cvc_image_data_t,
    release: cvc_release_fn,
    context: *mut c_void,
    stream: cvc_stream_t,
    image: *mut cvc_image_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointers.
        let image = unsafe { out(image, std::ptr::null_mut(), "image") }?;
        let cache = cache::find(cache)?;
        // SAFETY: as above.
        let data = unsafe { arguments::read(data, "data") }?;
        let device = arguments::device_of(data.device, "data.device")?;
        let format = Format::from_code(data.format, "data.format")?;
        let planes = data.planes.map(|plane| ForeignPlane {
            address: plane.data as usize as u64,
            row_stride: plane.row_stride,
            width: plane.width,
            height: plane.height,
        });
        let desc = ImageDesc::wrap(
            device,
            format,
            data.width,
            data.height,
            data.plane_count,
            &planes,
        )?;
        for (i, plane) in desc.planes().iter().enumerate() {
            check_device_pointer(plane.offset, device, &format!("data.planes[{i}].data"))?;
        }
        let foreign = foreign(release, context, stream, device, data.flags)?;
        *image = opaque(object::image_wrap(cache, desc, &foreign)?);
        Ok(())
    })
}

/// Where the image's planes lie; the pointers stay valid while a reference does.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_get_data(
    image: cvc_image_t,
    data: *mut cvc_image_data_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(data, "data") }?;
        let image = arguments::image(image, "image")?;
        let (desc, base) = image.image();
        let nothing = cvc_image_plane_t {
            data: std::ptr::null_mut(),
            row_stride: 0,
            width: 0,
            height: 0,
        };
        let mut value = cvc_image_data_t {
            struct_size: size,
            device: desc.device,
            format: desc.format.code(),
            width: desc.width,
            height: desc.height,
            plane_count: desc.plane_count as i32,
            flags: 0,
            planes: [nothing; CVC_MAX_PLANES],
        };
        for (place, plane) in value.planes.iter_mut().zip(desc.planes()) {
            *place = cvc_image_plane_t {
                data: std::ptr::without_provenance_mut(base.wrapping_add(plane.offset) as usize),
                row_stride: plane.row_stride,
                width: plane.width,
                height: plane.height,
            };
        }
        // SAFETY: checked above.
        unsafe { arguments::write(data, size, &value) };
        Ok(())
    })
}

/// A number for the resource, as `cvc_tensor_get_id`.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_get_id(image: cvc_image_t, id: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let id = unsafe { out(id, 0, "id") }?;
        *id = arguments::image(image, "image")?.id();
        Ok(())
    })
}

/// The bytes that the image is charged; 0 for wraps.
#[no_mangle]
pub unsafe extern "C" fn cvc_image_nbytes(image: cvc_image_t, nbytes: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let nbytes = unsafe { out(nbytes, 0, "nbytes") }?;
        *nbytes = charge(&arguments::image(image, "image")?);
        Ok(())
    })
}

/// As `cvc_tensor_begin_access`.
#[no_mangle]
pub extern "C" fn cvc_image_begin_access(
    image: cvc_image_t,
    stream: cvc_stream_t,
    access: cvc_access_t,
) -> cvc_status_t {
    guard(|| {
        let kind = arguments::access(access)?;
        let image = arguments::image(image, "image")?;
        object::begin_access(&image, arguments::stream(stream, image.device())?, kind)
    })
}

/// As `cvc_tensor_end_access`.
#[no_mangle]
pub extern "C" fn cvc_image_end_access(
    image: cvc_image_t,
    stream: cvc_stream_t,
    access: cvc_access_t,
) -> cvc_status_t {
    guard(|| {
        let kind = arguments::access(access)?;
        let image = arguments::image(image, "image")?;
        object::end_access(&image, arguments::stream(stream, image.device())?, kind)
    })
}

/// As `cvc_tensor_synchronize`.
#[no_mangle]
pub extern "C" fn cvc_image_synchronize(image: cvc_image_t, timeout_ns: i64) -> cvc_status_t {
    guard(|| {
        let image = arguments::image(image, "image")?;
        let done = object::synchronize(&image, arguments::deadline(timeout_ns)?)?;
        arguments::done_in_time(done, timeout_ns)
    })
}

/// Adds a reference.
#[no_mangle]
pub extern "C" fn cvc_image_retain(image: cvc_image_t) -> cvc_status_t {
    guard(|| object::retain(handle(image), ObjectKind::Image, "image"))
}

/// Drops a reference, as `cvc_tensor_release`.
#[no_mangle]
pub extern "C" fn cvc_image_release(image: cvc_image_t) -> cvc_status_t {
    guard_release(|| object::release(handle(image), ObjectKind::Image, "image"))
}
