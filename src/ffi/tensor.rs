//! `cvc_tensor_*`: make, wrap, view, inspect, order, release. DLPack is in `dlpack.rs`.

use std::ffi::{c_char, c_void};

use super::arguments::{self, handle, opaque, out};
use super::cache;
use super::constants::*;
use super::error::{guard, guard_release};
use super::structs::*;
use crate::backend;
use crate::cache::{RawRequest, MEMO_WORDS};
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{
    self, Dtype, ForeignMemory, Format, Layout, ObjectKind, ObjectRef, TensorDesc, TensorRequest,
    MAX_RANK,
};
use crate::timeline;

#[inline(always)]
fn rank(rank: i32, name: &str) -> Result<usize> {
    match usize::try_from(rank) {
        Ok(rank @ 1..=MAX_RANK) => Ok(rank),
        _ => fail!(
            Status::InvalidRank,
            "{name} is {rank}, expected 1 to {MAX_RANK}"
        ),
    }
}

#[inline(always)]
fn request<'a>(
    desc: &'a cvc_tensor_desc_t,
    shape: &'a [i64; MAX_RANK],
) -> Result<TensorRequest<'a>> {
    arguments::flags(desc.flags, 0, "desc.flags")?;
    Ok(TensorRequest {
        device: arguments::device_of(desc.device, "desc.device")?,
        shape: &shape[..rank(desc.rank, "desc.rank")?],
        dtype: desc.dtype,
        layout: arguments::layout_bytes(&desc.layout),
        row_align: desc.row_align,
        base_align: desc.base_align,
    })
}

/// What a tensor is, for C.
pub(super) fn data_of(desc: &TensorDesc, data: u64, struct_size: usize) -> cvc_tensor_data_t {
    cvc_tensor_data_t {
        struct_size,
        device: desc.device,
        rank: desc.rank as i32,
        shape: desc.shape,
        strides: desc.strides,
        dtype: desc.dtype.code(),
        layout: desc.layout.to_chars(),
        flags: 0,
        data: std::ptr::without_provenance_mut(data as usize),
    }
}

/// A tensor from the cache: an idle one of the same shape and strides, else the smallest idle one of the same device,
/// dtype and layout that is large enough, else new memory. Its bytes are whatever was there. Never waits on the host, but
/// for pending memory before it would report out-of-memory.
///
/// @param stream whose queued work may use the tensor: memory with work ordered before that is considered too;
///   `CVC_STREAM_NONE`: only memory whose work is done. Where it captures, what it had queued before the capture counts as
///   ordered: launch the graph behind that, or pass `CVC_STREAM_NONE`
/// @param[out] tensor to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_create(
    cache: cvc_cache_t,
    desc: *const cvc_tensor_desc_t,
    stream: cvc_stream_t,
    tensor: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointers.
        let tensor = unsafe { out(tensor, std::ptr::null_mut(), "tensor") }?;
        // SAFETY: as above.
        let raw = unsafe { raw_request(desc, cache, stream) };
        if let Some(known) = raw.as_ref().and_then(object::tensor_recall) {
            *tensor = opaque(known);
            return Ok(());
        }
        // SAFETY: as above.
        *tensor = opaque(unsafe { create(cache, desc, stream, raw.as_ref()) }?);
        Ok(())
    })
}

/// The words of a descriptor that is just as this version knows it.
#[inline(always)]
unsafe fn raw_request<'a>(
    desc: *const cvc_tensor_desc_t,
    cache: cvc_cache_t,
    stream: cvc_stream_t,
) -> Option<RawRequest<'a>> {
    const _: () = assert!(size_of::<cvc_tensor_desc_t>() == MEMO_WORDS * 8);
    if desc.is_null() || !desc.is_aligned() {
        return None;
    }
    // SAFETY: the caller's struct begins with its size, which says that it has all these words; it has no padding.
    unsafe {
        if (*desc).struct_size != size_of::<cvc_tensor_desc_t>() {
            return None;
        }
        // It decides what the request means: which device, and whose default stream.
        let of_current = (*desc).device == CVC_DEVICE_CURRENT || arguments::is_default(stream);
        let current_device = match of_current {
            true => backend::current().ok()?.current_device().ok()?,
            false => -1,
        };
        Some(RawRequest {
            words: &*desc.cast(),
            cache: handle(cache),
            stream: stream as usize,
            current_device,
            epoch: timeline::epoch(),
        })
    }
}

#[cold]
unsafe fn create(
    cache: cvc_cache_t,
    desc: *const cvc_tensor_desc_t,
    stream: cvc_stream_t,
    raw: Option<&RawRequest>,
) -> Result<object::Handle> {
    let cache = cache::find(cache)?;
    // SAFETY: the caller's pointer.
    let desc = unsafe { arguments::read(desc, "desc") }?;
    let request = request(&desc, &desc.shape)?;
    let stream = arguments::stream_or_none(stream, request.device)?;
    object::tensor_create(cache, &request, stream, raw)
}

/// The descriptor of a tensor for `count` images: NHWC for a format of one plane, NCHW for one of a plane a channel.
/// `CVC_STATUS_NOT_SUPPORTED` for any other.
///
/// @param[out] desc with its `struct_size` set
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_desc_from_image(
    device: i32,
    count: i32,
    width: i32,
    height: i32,
    format: cvc_format_t,
    row_align: i64,
    desc: *mut cvc_tensor_desc_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(desc, "desc") }?;
        let format = Format::from_code(format, "format")?;
        let device = arguments::device(device)?;
        let known = TensorDesc::from_image_spec(device, count, width, height, format, row_align)?;
        let value = cvc_tensor_desc_t {
            struct_size: size,
            device,
            rank: known.rank as i32,
            shape: known.shape,
            dtype: known.dtype.code(),
            layout: known.layout.to_chars(),
            flags: 0,
            row_align,
            base_align: 0,
        };
        // SAFETY: checked above.
        unsafe { arguments::write(desc, size, &value) };
        Ok(())
    })
}

/// The bytes that a tensor of this descriptor is charged when new memory is taken for it.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_desc_nbytes(
    desc: *const cvc_tensor_desc_t,
    nbytes: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointers.
        let nbytes = unsafe { out(nbytes, 0, "nbytes") }?;
        // SAFETY: as above.
        let desc = unsafe { arguments::read(desc, "desc") }?;
        *nbytes = request(&desc, &desc.shape)?.resolve()?.nbytes;
        Ok(())
    })
}

/// Refuses an address that the backend knows to be no memory of the device.
pub(super) fn check_device_pointer(pointer: u64, device: i32, name: &str) -> Result<()> {
    let known = match backend::current()?.pointer_device(pointer) {
        Err(error) if error.status == Status::InvalidArgument => fail!(
            Status::InvalidArgument,
            "{name} is {pointer:#x}, which the driver does not know (pageable host memory?); expected memory of device \
             {device}, or pinned or managed memory"
        ),
        known => known?,
    };
    match known {
        Some(known) if known != device => fail!(
            Status::DeviceMismatch,
            "{name} is {pointer:#x}, memory of {}, expected memory of device {device}",
            if known < 0 {
                "the host".to_string()
            } else {
                format!("device {known}")
            }
        ),
        _ => Ok(()),
    }
}

/// How foreign memory comes in.
pub(super) fn foreign(
    release: cvc_release_fn,
    context: *mut c_void,
    stream: cvc_stream_t,
    device: i32,
    flags: u32,
) -> Result<ForeignMemory> {
    let flags = arguments::flags(flags, CVC_WRAP_KEEP_SHELLS, "data.flags")?;
    Ok(ForeignMemory {
        release,
        context,
        producer: arguments::stream_or_none(stream, device)?,
        keep_shells: flags & CVC_WRAP_KEEP_SHELLS != 0,
    })
}

/// A tensor around memory of somebody else, charged nothing. Its last dimension is packed (the last two where the layout
/// ends with C), strides decrease and do not overlap; dimensions are 1 or more. `CVC_STATUS_INVALID_ARGUMENT` for memory that
/// the driver does not know, such as pageable host memory, `CVC_STATUS_DEVICE_MISMATCH` for that of another device.
///
/// @param release called once with `context` when nobody observes the tensor any more and its work is done; may be null.
///   Not called when this fails
/// @param stream whose queued work writes the memory: every use comes after it; `CVC_STREAM_NONE`: none does.
///   `CVC_STATUS_CAPTURING` where it captures
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_wrap(
    cache: cvc_cache_t,
    data: *const cvc_tensor_data_t,
    release: cvc_release_fn,
    context: *mut c_void,
    stream: cvc_stream_t,
    tensor: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointers.
        let tensor = unsafe { out(tensor, std::ptr::null_mut(), "tensor") }?;
        let cache = cache::find(cache)?;
        // SAFETY: as above.
        let data = unsafe { arguments::read(data, "data") }?;
        let rank = rank(data.rank, "data.rank")?;
        let device = arguments::device_of(data.device, "data.device")?;
        let dtype = Dtype::from_code(data.dtype, "data.dtype")?;
        let layout = Layout::from_chars(&data.layout, "data.layout")?;
        let desc = TensorDesc::wrap(
            device,
            &data.shape[..rank],
            &data.strides[..rank],
            dtype,
            layout,
        )?;
        let address = data.data as usize as u64;
        dtype.check_address(address, "data.data")?;
        check_device_pointer(address, device, "data.data")?;
        let foreign = foreign(release, context, stream, device, data.flags)?;
        *tensor = opaque(object::tensor_wrap(cache, desc, address, &foreign)?);
        Ok(())
    })
}

/// A view of a whole image as a tensor of one sample: NHWC where one plane has several channels, else NCHW. Keeps the
/// image. `CVC_STATUS_NOT_SUPPORTED` for subsampled or semi-planar formats.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_from_image(
    image: cvc_image_t,
    tensor: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let tensor = unsafe { out(tensor, std::ptr::null_mut(), "tensor") }?;
        *tensor = opaque(object::tensor_from_image(&arguments::image(
            image, "image",
        )?)?);
        Ok(())
    })
}

/// A view of one plane of an image as a tensor HWC, for any format. Keeps the image.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_from_image_plane(
    image: cvc_image_t,
    plane: i32,
    tensor: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let tensor = unsafe { out(tensor, std::ptr::null_mut(), "tensor") }?;
        *tensor = opaque(object::tensor_from_plane(
            &arguments::image(image, "image")?,
            plane,
        )?);
        Ok(())
    })
}

/// A view of the same memory with another shape of the same volume. Keeps the memory out of reuse while it lives.
///
/// @param desc its rank, shape and layout count; dtype must be the tensor's or `CVC_DTYPE_NONE`
/// @param[out] view to be released with `cvc_tensor_release`
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_reshape(
    tensor: cvc_tensor_t,
    desc: *const cvc_tensor_desc_t,
    view: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointers.
        let view = unsafe { out(view, std::ptr::null_mut(), "view") }?;
        let parent = arguments::tensor(tensor, "tensor")?;
        // SAFETY: as above.
        let desc = unsafe { arguments::read(desc, "desc") }?;
        let rank = rank(desc.rank, "desc.rank")?;
        let layout = Layout::from_chars(&desc.layout, "desc.layout")?;
        if desc.dtype != CVC_DTYPE_NONE {
            let dtype = Dtype::from_code(desc.dtype, "desc.dtype")?;
            let expected = parent.tensor().0.dtype;
            if dtype != expected {
                fail!(
                    Status::DtypeMismatch,
                    "desc.dtype is {}, expected {}, as the tensor, or CVC_DTYPE_NONE",
                    dtype.name(),
                    expected.name()
                );
            }
        }
        *view = opaque(object::tensor_reshape(
            &parent,
            &desc.shape[..rank],
            layout,
        )?);
        Ok(())
    })
}

/// Where the tensor lies. The pointer stays valid while a reference does; work that uses it is announced with
/// `cvc_tensor_begin_access` and `cvc_tensor_end_access`.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_get_data(
    tensor: cvc_tensor_t,
    data: *mut cvc_tensor_data_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(data, "data") }?;
        let tensor = arguments::tensor(tensor, "tensor")?;
        let (desc, address) = tensor.tensor();
        // SAFETY: checked above.
        unsafe { arguments::write(data, size, &data_of(desc, address, size)) };
        Ok(())
    })
}

/// A number for the resource: memory that the cache hands out again keeps it, and so does a wrap's shell.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_get_id(tensor: cvc_tensor_t, id: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let id = unsafe { out(id, 0, "id") }?;
        *id = arguments::tensor(tensor, "tensor")?.id();
        Ok(())
    })
}

/// The bytes that the tensor is charged: its memory's whole capacity; 0 for wraps and views.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_nbytes(tensor: cvc_tensor_t, nbytes: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let nbytes = unsafe { out(nbytes, 0, "nbytes") }?;
        *nbytes = charge(&arguments::tensor(tensor, "tensor")?);
        Ok(())
    })
}

pub(super) fn charge(object: &ObjectRef) -> u64 {
    if object.is_view() {
        0
    } else {
        object.entry.charge()
    }
}

/// Before a launch of your own: makes the stream wait, on the GPU, for what must come before an access of this kind. Reads
/// run beside reads; a write waits for all.
#[no_mangle]
pub extern "C" fn cvc_tensor_begin_access(
    tensor: cvc_tensor_t,
    stream: cvc_stream_t,
    access: cvc_access_t,
) -> cvc_status_t {
    guard(|| {
        let kind = arguments::access(access)?;
        let tensor = arguments::tensor(tensor, "tensor")?;
        object::begin_access(&tensor, arguments::stream(stream, tensor.device())?, kind)
    })
}

/// After a launch of your own: notes the access. It covers everything queued on the stream by now.
#[no_mangle]
pub extern "C" fn cvc_tensor_end_access(
    tensor: cvc_tensor_t,
    stream: cvc_stream_t,
    access: cvc_access_t,
) -> cvc_status_t {
    guard(|| {
        let kind = arguments::access(access)?;
        let tensor = arguments::tensor(tensor, "tensor")?;
        object::end_access(&tensor, arguments::stream(stream, tensor.device())?, kind)
    })
}

/// Waits on the host for all noted work on the tensor's memory. `CVC_STATUS_CAPTURING` where a stream of that work captures and
/// nothing tells when it is done.
///
/// @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
#[no_mangle]
pub extern "C" fn cvc_tensor_synchronize(tensor: cvc_tensor_t, timeout_ns: i64) -> cvc_status_t {
    guard(|| {
        let tensor = arguments::tensor(tensor, "tensor")?;
        let done = object::synchronize(&tensor, arguments::deadline(timeout_ns)?)?;
        arguments::done_in_time(done, timeout_ns)
    })
}

/// The stream of the latest noted access; `CVC_STREAM_NONE` when none is open.
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_last_stream(
    tensor: cvc_tensor_t,
    stream: *mut cvc_stream_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let stream = unsafe { out(stream, std::ptr::null_mut(), "stream") }?;
        let last = object::last_stream(&arguments::tensor(tensor, "tensor")?);
        *stream = std::ptr::without_provenance_mut(
            last.map_or(arguments::STREAM_NONE, |last| last.handle()),
        );
        Ok(())
    })
}

/// Adds a reference.
#[no_mangle]
pub extern "C" fn cvc_tensor_retain(tensor: cvc_tensor_t) -> cvc_status_t {
    guard(|| object::retain(handle(tensor), ObjectKind::Tensor, "tensor"))
}

/// Drops a reference. With the last one the handle is stale at once; the memory is reused when no view, export or batch
/// holds it, by work that is ordered after its own.
#[no_mangle]
pub extern "C" fn cvc_tensor_release(tensor: cvc_tensor_t) -> cvc_status_t {
    guard_release(|| object::release(handle(tensor), ObjectKind::Tensor, "tensor"))
}

/// A layout argument that is text.
pub(super) unsafe fn layout_text(layout: *const c_char, name: &str) -> Result<Layout> {
    if layout.is_null() {
        fail!(
            Status::NullPointer,
            "{name} is null, expected a layout such as \"NHWC\""
        );
    }
    // SAFETY: the caller's NUL-terminated text.
    let text = unsafe { std::ffi::CStr::from_ptr(layout) };
    match text.to_str() {
        Ok(text) => Layout::parse(text),
        Err(_) => fail!(
            Status::InvalidLayout,
            "{name} is {text:?}, expected labels such as \"NHWC\""
        ),
    }
}
