//! `cvc_stream_*` and `cvc_event_*`.

use super::arguments::{self, out};
use super::constants::*;
use super::error::{guard, guard_release};
use super::structs::*;
use crate::backend;
use crate::cache;
use crate::error::{Error, Result, Status};
use crate::timeline;

fn ready(done: bool, what: &str) -> Result<()> {
    if done {
        return Ok(());
    }
    Err(Error::new(
        Status::NotReady,
        format!("{what} has work that still runs"),
    ))
}

/// A stream of `device`, non-blocking unless `flags` has `CVC_STREAM_BLOCKING`.
///
/// @param[out] stream to be destroyed with `cvc_stream_destroy`
#[no_mangle]
pub unsafe extern "C" fn cvc_stream_create(
    device: i32,
    flags: u32,
    stream: *mut cvc_stream_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let stream = unsafe { out(stream, std::ptr::null_mut(), "stream") }?;
        let flags = arguments::flags(flags, CVC_STREAM_BLOCKING, "flags")?;
        let device = arguments::device(device)?;
        let handle = timeline::create(device, flags & CVC_STREAM_BLOCKING != 0)?;
        *stream = std::ptr::without_provenance_mut(handle);
        Ok(())
    })
}

/// Destroys a stream of `cvc_stream_create`. Returns at once; what is queued still runs, and memory that it uses stays
/// reserved until it is done. No other call may use the handle meanwhile or afterwards.
#[no_mangle]
pub extern "C" fn cvc_stream_destroy(stream: cvc_stream_t) -> cvc_status_t {
    guard_release(|| timeline::destroy(stream as usize))
}

/// Tells the library that a stream of somebody else lives until `cvc_stream_unregister`, so that it may order work on it
/// at any time. Without it such a stream is touched only in calls that pass it, each of which records an event there, and
/// calls that pass it while it captures give `CVC_STATUS_CAPTURING`: it cannot be asked then who it is.
///
/// @param flags 0 or `CVC_STREAM_ANNOUNCES_CAPTURES`, which is accepted; captures are looked for in any case
#[no_mangle]
pub extern "C" fn cvc_stream_register(
    device: i32,
    stream: cvc_stream_t,
    flags: u32,
) -> cvc_status_t {
    guard(|| {
        arguments::flags(flags, CVC_STREAM_ANNOUNCES_CAPTURES, "flags")?;
        let device = arguments::device(device)?;
        timeline::register(device, stream as usize)
    })
}

/// Ends what `cvc_stream_register` began, before the stream's owner destroys it. A stream that `cvc_mem_record_stream` named,
/// or that an export was given, is kept alive until the free or the deleter all the same.
#[no_mangle]
pub extern "C" fn cvc_stream_unregister(stream: cvc_stream_t) -> cvc_status_t {
    guard_release(|| timeline::unregister(stream as usize))
}

/// `CVC_STATUS_OK` when all that is queued on the stream is done, `CVC_STATUS_NOT_READY` while it is not.
#[no_mangle]
pub extern "C" fn cvc_stream_query(stream: cvc_stream_t) -> cvc_status_t {
    guard(|| {
        let stream = arguments::stream_alone(stream)?;
        ready(stream.query()?, "stream")
    })
}

/// Waits for all that is queued on the stream, and retires pending entries that it kept.
///
/// @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
#[no_mangle]
pub extern "C" fn cvc_stream_synchronize(stream: cvc_stream_t, timeout_ns: i64) -> cvc_status_t {
    guard(|| {
        let stream = arguments::stream_alone(stream)?;
        let done = stream.synchronize(arguments::deadline(timeout_ns)?)?;
        arguments::done_in_time(done, timeout_ns)?;
        cache::retire_everywhere(stream.device());
        Ok(())
    })
}

/// Makes work queued on `waits` from now on come after all that is queued on `waited_for` by now. On the GPU; the host does
/// not wait. A stream does not wait for itself. One that waits for a stream that captures joins the capture.
/// `CVC_STATUS_CAPTURING` where `waits` captures and `waited_for` does not, or in another capture; where `waits` is the legacy
/// stream and `waited_for` captures; or where one of them captures and is neither of `cvc_stream_create` nor registered.
#[no_mangle]
pub extern "C" fn cvc_stream_wait_stream(
    waits: cvc_stream_t,
    waited_for: cvc_stream_t,
) -> cvc_status_t {
    guard(|| {
        let named =
            |stream, name| arguments::stream_alone(stream).map_err(|error| error.of_argument(name));
        named(waits, "waits")?.wait_for_stream(named(waited_for, "waited_for")?)
    })
}

/// Makes work queued on the stream from now on come after the event's latest record; where that lies in a capture, the
/// stream joins it. An event that is not of `cvc_event_create` is left to the driver to judge.
///
/// `CVC_STATUS_CAPTURING` where the stream captures and the record lies outside of its capture or does not exist, where the
/// stream is the legacy one and the record lies in a capture, or where the stream captures and is neither of
/// `cvc_stream_create` nor registered.
#[no_mangle]
pub extern "C" fn cvc_stream_wait_event(stream: cvc_stream_t, event: cvc_event_t) -> cvc_status_t {
    guard(|| timeline::stream_wait_event(arguments::stream_alone(stream)?, event as usize))
}

/// A number that no other stream of the process has or will have, unlike the handle.
#[no_mangle]
pub unsafe extern "C" fn cvc_stream_get_id(stream: cvc_stream_t, id: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let id = unsafe { out(id, 0, "id") }?;
        *id = backend::current()?
            .stream_identify(arguments::stream_alone(stream)?.handle())?
            .id;
        Ok(())
    })
}

/// The stream's device.
#[no_mangle]
pub unsafe extern "C" fn cvc_stream_get_device(
    stream: cvc_stream_t,
    device: *mut i32,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let device = unsafe { out(device, 0, "device") }?;
        *device = arguments::stream_alone(stream)?.device();
        Ok(())
    })
}

/// An event of `device`.
///
/// @param flags 0 or `CVC_EVENT_TIMING`
/// @param[out] event to be destroyed with `cvc_event_destroy`
#[no_mangle]
pub unsafe extern "C" fn cvc_event_create(
    device: i32,
    flags: u32,
    event: *mut cvc_event_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let event = unsafe { out(event, std::ptr::null_mut(), "event") }?;
        let flags = arguments::flags(flags, CVC_EVENT_TIMING, "flags")?;
        let device = arguments::device(device)?;
        let handle = timeline::event_create(device, flags & CVC_EVENT_TIMING != 0)?;
        *event = std::ptr::without_provenance_mut(handle);
        Ok(())
    })
}

/// Destroys an event of `cvc_event_create`; waits that were queued on it still hold.
#[no_mangle]
pub extern "C" fn cvc_event_destroy(event: cvc_event_t) -> cvc_status_t {
    guard_release(|| timeline::event_destroy(event as usize))
}

/// Records the event behind all that is queued on the stream, in place of its earlier record. Once the process has had raw
/// memory, an event of the library's own is recorded beside it, for `cvc_mem_free_after_event`.
#[no_mangle]
pub extern "C" fn cvc_event_record(event: cvc_event_t, stream: cvc_stream_t) -> cvc_status_t {
    guard(|| timeline::event_record(event as usize, arguments::stream_alone(stream)?))
}

/// `CVC_STATUS_OK` when the latest record is done, or there was none; `CVC_STATUS_NOT_READY` while it is not;
/// `CVC_STATUS_CAPTURING` when it lies in a capture.
#[no_mangle]
pub extern "C" fn cvc_event_query(event: cvc_event_t) -> cvc_status_t {
    guard(|| ready(timeline::event_query(event as usize)?, "event"))
}

/// Waits for the latest record; `CVC_STATUS_CAPTURING` when that lies in a capture.
///
/// @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
#[no_mangle]
pub extern "C" fn cvc_event_synchronize(event: cvc_event_t, timeout_ns: i64) -> cvc_status_t {
    guard(|| {
        let done = timeline::event_synchronize(event as usize, arguments::deadline(timeout_ns)?)?;
        arguments::done_in_time(done, timeout_ns)
    })
}

/// Milliseconds from one record to the other. Both events have `CVC_EVENT_TIMING`, and their records are done;
/// `CVC_STATUS_CAPTURING` when one lies in a capture.
#[no_mangle]
pub unsafe extern "C" fn cvc_event_elapsed_ms(
    start: cvc_event_t,
    end: cvc_event_t,
    milliseconds: *mut f32,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let milliseconds = unsafe { out(milliseconds, 0.0, "milliseconds") }?;
        *milliseconds = timeline::event_elapsed_ms(start as usize, end as usize)?;
        Ok(())
    })
}
