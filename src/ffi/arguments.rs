//! Reading what callers pass: structs of any age, pointers, streams, handles.

use std::ffi::c_char;
use std::mem::size_of;

use super::constants::*;
use super::structs::*;
use crate::backend::{self, STREAM_PER_THREAD};
use crate::cache::Scope;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, ObjectKind, ObjectRef};
use crate::timeline::{self, AccessKind, Deadline, Stream};

/// Structs larger than this are no version of anything.
const MAX_STRUCT_SIZE: usize = 1 << 16;

/// A `#[repr(C)]` struct of the interface whose first field is `struct_size` and which may be all zeros.
///
/// # Safety
/// Both are true of the type.
pub unsafe trait Struct: Copy {
    /// Its size in the first version that had it.
    const FIRST_SIZE: usize;
}

macro_rules! structs {
    ($($name:ty)*) => {
        // SAFETY: each begins with `struct_size` and has only integers, floats and raw pointers.
        $(unsafe impl Struct for $name { const FIRST_SIZE: usize = size_of::<$name>(); })*
    };
}

structs!(cvc_cache_options_t cvc_device_info_t cvc_cache_stats_t cvc_tensor_desc_t cvc_tensor_data_t cvc_image_desc_t
    cvc_image_data_t cvc_image_batch_data_t cvc_tensor_batch_data_t cvc_format_info_t cvc_normalize_params_t
    cvc_preprocess_params_t cvc_host_step_t);

#[inline(always)]
fn struct_size<T: Struct>(pointer: *const T, name: &str) -> Result<usize> {
    if pointer.is_null() {
        fail!(
            Status::NullPointer,
            "{name} is null, expected a pointer to a struct"
        );
    }
    // SAFETY: every struct begins with its size, in the caller's memory.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    if size < T::FIRST_SIZE || size > MAX_STRUCT_SIZE {
        fail!(
            Status::InvalidStructSize,
            "{name}.struct_size is {size}, expected sizeof, which is {} in this version",
            size_of::<T>()
        );
    }
    Ok(size)
}

/// The struct as this version knows it. Bytes that it does not know must be zero.
#[inline]
pub unsafe fn read<T: Struct>(pointer: *const T, name: &str) -> Result<T> {
    let size = struct_size(pointer, name)?;
    if size == size_of::<T>() {
        // SAFETY: the caller says that it has this size.
        return Ok(unsafe { pointer.read_unaligned() });
    }
    // SAFETY: as above; all zeros is a value of every struct.
    unsafe {
        let mut value: T = std::mem::zeroed();
        let known = size.min(size_of::<T>());
        std::ptr::copy_nonoverlapping(
            pointer.cast::<u8>(),
            std::ptr::from_mut(&mut value).cast(),
            known,
        );
        for i in size_of::<T>()..size {
            if *pointer.cast::<u8>().add(i) != 0 {
                fail!(
                    Status::InvalidStructSize,
                    "{name}.struct_size is {size} and byte {i} is not zero, which a newer version may understand; this \
                     one knows {} bytes",
                    size_of::<T>()
                );
            }
        }
        Ok(value)
    }
}

/// Checks a struct that results go to.
pub unsafe fn check_out<T: Struct>(pointer: *mut T, name: &str) -> Result<usize> {
    struct_size(pointer, name)
}

/// Writes results over the caller's struct, as much as it has; its `struct_size` stays.
pub unsafe fn write<T: Struct>(pointer: *mut T, size: usize, value: &T) {
    let header = size_of::<usize>();
    let known = size.min(size_of::<T>());
    // SAFETY: the caller's struct has `size` bytes, as `check_out` saw.
    unsafe {
        let from = std::ptr::from_ref(value).cast::<u8>();
        std::ptr::copy_nonoverlapping(
            from.add(header),
            pointer.cast::<u8>().add(header),
            known - header,
        );
    }
}

/// The place for a result, set to `nothing` at once, so that it is that on failure.
#[inline(always)]
pub unsafe fn out<'a, T>(pointer: *mut T, nothing: T, name: &str) -> Result<&'a mut T> {
    // SAFETY: the caller's pointer.
    match unsafe { pointer.as_mut() } {
        Some(place) => {
            *place = nothing;
            Ok(place)
        }
        None => fail!(
            Status::NullPointer,
            "{name} is null, expected a pointer to the result"
        ),
    }
}

/// A handle as the object layer takes it.
#[inline]
pub fn handle<T>(pointer: *mut T) -> object::Handle {
    pointer as usize as object::Handle
}

/// A handle as C takes it.
#[inline]
pub fn opaque<T>(handle: object::Handle) -> *mut T {
    std::ptr::without_provenance_mut(handle as usize)
}

pub fn tensor(tensor: cvc_tensor_t, name: &str) -> Result<ObjectRef> {
    object::acquire(handle(tensor), ObjectKind::Tensor, name)
}

pub fn image(image: cvc_image_t, name: &str) -> Result<ObjectRef> {
    object::acquire(handle(image), ObjectKind::Image, name)
}

pub fn image_batch(batch: cvc_image_batch_t, name: &str) -> Result<ObjectRef> {
    object::acquire(handle(batch), ObjectKind::ImageBatch, name)
}

pub fn tensor_batch(batch: cvc_tensor_batch_t, name: &str) -> Result<ObjectRef> {
    object::acquire(handle(batch), ObjectKind::TensorBatch, name)
}

pub const STREAM_NONE: usize = usize::MAX;

/// The stream of a call for `device`; `None` for `CVC_STREAM_NONE`.
#[inline(always)]
pub fn stream_or_none(stream: cvc_stream_t, device: i32) -> Result<Option<&'static Stream>> {
    if stream as usize == STREAM_NONE {
        return Ok(None);
    }
    if is_default(stream) {
        check_default_stream(stream as usize, device)?;
    }
    timeline::resolve(stream as usize, device).map(Some)
}

/// One of CUDA's default streams, which are those of the thread's current device.
#[inline(always)]
pub fn is_default(stream: cvc_stream_t) -> bool {
    stream as usize <= STREAM_PER_THREAD
}

/// The default streams are those of the thread's current device, as in CUDA.
fn check_default_stream(handle: usize, device: i32) -> Result<()> {
    let current = self::device(-1)?;
    if current != device {
        fail!(
            Status::DeviceMismatch,
            "stream is {handle}, a default stream of the thread's current device {current}, expected a stream of device \
             {device}"
        );
    }
    Ok(())
}

/// The stream of a call that needs one.
pub fn stream(stream: cvc_stream_t, device: i32) -> Result<&'static Stream> {
    match stream_or_none(stream, device)? {
        Some(stream) => Ok(stream),
        None => fail!(
            Status::InvalidStream,
            "stream is CVC_STREAM_NONE, expected a stream to queue work on"
        ),
    }
}

/// The stream of a call that names no device: a default stream is that of the thread's current device.
pub fn stream_alone(stream: cvc_stream_t) -> Result<&'static Stream> {
    let handle = stream as usize;
    if handle == STREAM_NONE {
        fail!(
            Status::InvalidStream,
            "stream is CVC_STREAM_NONE, expected a stream"
        );
    }
    timeline::resolve_alone(handle)
}

pub fn scope(scope: cvc_scope_t) -> Result<Scope> {
    match scope {
        CVC_SCOPE_GLOBAL => Ok(Scope::Global),
        CVC_SCOPE_LOCAL => Ok(Scope::Local),
        _ => fail!(
            Status::InvalidEnum,
            "scope is {scope}, expected CVC_SCOPE_GLOBAL (0) or CVC_SCOPE_LOCAL (1)"
        ),
    }
}

pub fn access(access: cvc_access_t) -> Result<AccessKind> {
    match access {
        CVC_ACCESS_READ => Ok(AccessKind::Read),
        CVC_ACCESS_WRITE | CVC_ACCESS_READ_WRITE => Ok(AccessKind::Write),
        _ => fail!(
            Status::InvalidEnum,
            "access is {access}, expected CVC_ACCESS_READ (1), CVC_ACCESS_WRITE (2) or CVC_ACCESS_READ_WRITE (3)"
        ),
    }
}

/// Refuses flag bits that this version does not know.
#[inline(always)]
pub fn flags(flags: u32, known: u32, name: &str) -> Result<u32> {
    if flags & !known != 0 {
        fail!(
            Status::InvalidEnum,
            "{name} is {flags:#x}, expected no bits but {known:#x}"
        );
    }
    Ok(flags)
}

#[inline(always)]
pub fn layout_bytes(layout: &[c_char; 16]) -> [u8; 16] {
    // SAFETY: both are 16 bytes, and every bit pattern is a byte.
    unsafe { std::mem::transmute(*layout) }
}

/// When a wait ends: never for -1.
pub fn deadline(timeout_ns: i64) -> Result<Deadline> {
    if timeout_ns < -1 {
        fail!(
            Status::InvalidArgument,
            "timeout_ns is {timeout_ns}, expected nanoseconds, or -1 for no timeout"
        );
    }
    Ok(Deadline::after_ns(timeout_ns))
}

/// `true` is done; `false` says that the timeout passed first.
pub fn done_in_time(done: bool, timeout_ns: i64) -> Result<()> {
    if !done {
        fail!(
            Status::NotReady,
            "timeout_ns is {timeout_ns}, and the work still runs after that time"
        );
    }
    Ok(())
}

/// A device argument, checked; -1 is the current one.
#[inline(always)]
pub fn device(device: i32) -> Result<i32> {
    backend::device(device, "device")
}

/// A struct's device, checked likewise.
#[inline(always)]
pub fn device_of(device: i32, name: &str) -> Result<i32> {
    backend::device(device, name)
}
