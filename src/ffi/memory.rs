//! `cvc_mem_*`: raw memory from the cache, known by its address.

use std::ffi::c_void;

use super::arguments::{self, handle, out};
use super::cache;
use super::constants::*;
use super::error::{guard, guard_release};
use super::structs::*;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, TakenMemory};
use crate::timeline::Stream;

/// The memory at that address; `None` for null, which is no memory.
fn take(cache: cvc_cache_t, ptr: *mut c_void) -> Result<Option<TakenMemory>> {
    if ptr.is_null() {
        return cache::find(cache).map(|_| None);
    }
    match TakenMemory::new(handle(cache), ptr as u64) {
        Ok(taken) => Ok(Some(taken)),
        // A cache that is none is the first thing to say.
        Err(error) => cache::find(cache).and(Err(error)),
    }
}

/// The stream of a free. In a lost context no handle can be looked at, and nothing runs any more.
fn stream_of_free(stream: cvc_stream_t, device: i32) -> Result<Option<&'static Stream>> {
    match arguments::stream_or_none(stream, device) {
        Err(error) if error.status == Status::ContextLost => Ok(None),
        resolved => resolved,
    }
}

/// Raw memory of the device from the cache: idle memory of just this size, in granules of 512 bytes, and alignment, else
/// the smallest idle raw memory of that alignment that is large enough, else new memory. It counts in the cache's limits and statistics as a
/// tensor does, by its whole granules. Its bytes are whatever was there. Never waits on the host, but for pending memory
/// before it would report out-of-memory. What an alignment above 512 takes beyond the bytes is charged to nobody: it counts
/// in `free_bytes`.
///
/// The library does not see what uses the memory. Work on other streams than `stream` is ordered by the caller, and
/// named by `cvc_mem_record_stream` or an event before the memory is freed.
///
/// @param bytes 0 gives null, which needs no `cvc_mem_free`; `CVC_STATUS_OVERFLOW` for sizes that pass 63 bits
/// @param alignment of the address: 0, for 512, or a power of two up to 2^32
/// @param stream whose queued work may use the memory: memory with work ordered before that is considered too;
///   `CVC_STREAM_NONE`: only memory whose work is done
/// @param[out] ptr to be freed with `cvc_mem_free` or `cvc_mem_free_after_event` of the same cache, from any thread
#[no_mangle]
pub unsafe extern "C" fn cvc_mem_alloc(
    cache: cvc_cache_t,
    device: i32,
    bytes: usize,
    alignment: usize,
    stream: cvc_stream_t,
    ptr: *mut *mut c_void,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let ptr = unsafe { out(ptr, std::ptr::null_mut(), "ptr") }?;
        let owner = handle(cache);
        let cache = cache::find(cache)?;
        let device = arguments::device(device)?;
        let stream = arguments::stream_or_none(stream, device)?;
        let (bytes, alignment) = (bytes as u64, alignment as u64);
        let address = object::memory_alloc(cache, owner, device, bytes, alignment, stream)?;
        *ptr = std::ptr::with_exposed_provenance_mut(address as usize);
        Ok(())
    })
}

/// Frees memory of `cvc_mem_alloc`: it may be used at once by work that comes after all that is queued by now on `stream`
/// and on every stream that `cvc_mem_record_stream` named. Waits for nothing. Works from any thread, after the cache's last
/// release too, and once a created stream of the memory's use is destroyed. When it fails the memory stays the caller's:
/// `CVC_STATUS_INVALID_ARGUMENT` for an address that is not allocated, such as one that was freed before,
/// `CVC_STATUS_CAPTURING` while one of the streams captures.
///
/// @param cache the one that the memory came from
/// @param ptr null does nothing
/// @param stream of the memory's device; `CVC_STREAM_NONE`: no work uses the memory any more, but for what is on the
///   streams that were named
#[no_mangle]
pub extern "C" fn cvc_mem_free(
    cache: cvc_cache_t,
    ptr: *mut c_void,
    stream: cvc_stream_t,
) -> cvc_status_t {
    guard_release(|| match take(cache, ptr)? {
        Some(taken) => {
            let stream = stream_of_free(stream, taken.device())?;
            taken.free(stream)
        }
        None => Ok(()),
    })
}

/// Says that work on `stream` uses the memory, up to when it is freed: called once, before or after the first such launch. The
/// stream is looked at again when the memory is freed, so its owner keeps it until then; one of `cvc_stream_create` may be
/// destroyed before. A thread's own default stream counts with the legacy stream if another thread frees the memory.
/// Orders nothing by itself. `CVC_STATUS_CAPTURING` while the stream captures.
///
/// @param ptr null does nothing
/// @param stream of the memory's device
#[no_mangle]
pub extern "C" fn cvc_mem_record_stream(
    cache: cvc_cache_t,
    ptr: *mut c_void,
    stream: cvc_stream_t,
) -> cvc_status_t {
    guard(|| {
        if ptr.is_null() {
            return cache::find(cache).map(drop);
        }
        let recorded = object::memory_record_stream(handle(cache), ptr as u64, |device| {
            arguments::stream(stream, device)
        });
        match recorded {
            // A cache that is none is the first thing to say.
            Err(error) if error.status == Status::InvalidArgument => {
                cache::find(cache).and(Err(error))
            }
            recorded => recorded,
        }
    })
}

/// Frees memory of `cvc_mem_alloc`: it may be used as soon as what the event's latest record covers is done, or by work that is
/// ordered after that record, though the event's stream goes on with later work. The event may be recorded anew or destroyed
/// right after the call. Streams that `cvc_mem_record_stream` named count as in `cvc_mem_free`, except the event's own.
/// When it fails the memory stays the caller's: `CVC_STATUS_CAPTURING` while one of those captures.
///
/// @param event of `cvc_event_create`, on the memory's device, recorded outside of a capture; `CVC_STATUS_INVALID_EVENT`
///   for any other, of which the library does not know what it covers: wait for it on a stream, and free on that
#[no_mangle]
pub extern "C" fn cvc_mem_free_after_event(
    cache: cvc_cache_t,
    ptr: *mut c_void,
    event: cvc_event_t,
) -> cvc_status_t {
    guard_release(|| {
        if event.is_null() {
            fail!(
                Status::InvalidEvent,
                "event is null, expected one from cvc_event_create"
            );
        }
        match take(cache, ptr)? {
            Some(taken) => taken.free_after_event(event as usize),
            None => Ok(()),
        }
    })
}
