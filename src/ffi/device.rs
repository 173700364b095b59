//! `cvc_backend` and `cvc_device_*`.

use std::ffi::c_char;

use super::arguments::{self, out};
use super::constants::*;
use super::error::guard;
use super::structs::*;
use crate::backend::{self, BackendKind};
use crate::cache;
use crate::timeline;

fn backend_code(kind: BackendKind) -> cvc_backend_t {
    match kind {
        BackendKind::Host => CVC_BACKEND_HOST,
        BackendKind::Cuda => CVC_BACKEND_CUDA,
    }
}

/// What the process runs on, chosen at the first call that needs it: `CVC_BACKEND=cuda|host`, or `auto` (the default),
/// which takes the host only where no CUDA driver is installed. An error, such as `CVC_STATUS_NO_DRIVER`, stays.
#[no_mangle]
pub unsafe extern "C" fn cvc_backend(backend: *mut cvc_backend_t) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let backend = unsafe { out(backend, 0, "backend") }?;
        *backend = backend_code(backend::current()?.kind());
        Ok(())
    })
}

/// The number of devices; their ordinals are 0 to one less.
#[no_mangle]
pub unsafe extern "C" fn cvc_device_count(count: *mut i32) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let count = unsafe { out(count, 0, "count") }?;
        *count = backend::current()?.device_count();
        Ok(())
    })
}

/// Name and memory of a device.
#[no_mangle]
pub unsafe extern "C" fn cvc_device_get_info(
    device: i32,
    info: *mut cvc_device_info_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(info, "info") }?;
        let device = arguments::device(device)?;
        let backend = backend::current()?;
        let known = backend.device_info(device)?;
        let mut name = [0 as c_char; 256];
        for (place, byte) in name.iter_mut().take(255).zip(known.name.bytes()) {
            *place = byte as c_char;
        }
        let value = cvc_device_info_t {
            struct_size: size,
            backend: backend_code(backend.kind()),
            reserved: 0,
            total_memory: known.total_memory,
            free_memory: backend.memory_free_bytes(device)?,
            name,
        };
        // SAFETY: checked above.
        unsafe { arguments::write(info, size, &value) };
        Ok(())
    })
}

/// The calling thread's current device.
#[no_mangle]
pub unsafe extern "C" fn cvc_device_get_current(device: *mut i32) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let device = unsafe { out(device, 0, "device") }?;
        *device = backend::current()?.current_device()?;
        Ok(())
    })
}

/// Sets the calling thread's current device; on CUDA its primary context becomes current.
#[no_mangle]
pub extern "C" fn cvc_device_set_current(device: i32) -> cvc_status_t {
    guard(|| backend::current()?.set_current_device(arguments::device(device)?))
}

/// Waits for all work of the device, then retires the pending entries of every cache. On a GPU this breaks captures that
/// run on it.
///
/// @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
#[no_mangle]
pub extern "C" fn cvc_device_synchronize(device: i32, timeout_ns: i64) -> cvc_status_t {
    guard(|| {
        let device = arguments::device(device)?;
        let done = timeline::device_synchronize(device, arguments::deadline(timeout_ns)?)?;
        arguments::done_in_time(done, timeout_ns)?;
        cache::retire_everywhere(device);
        Ok(())
    })
}
