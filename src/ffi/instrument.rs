//! `cvc_backend_instrument`, `cvc_backend_call_*`, `cvc_host_fault*`, `cvc_host_race_*`: instruments around the backend, for tests of the library and of its
//! users.

use std::ffi::{c_char, c_void, CStr};

use super::arguments::{self, out};
use super::constants::*;
use super::error::{copy_text, guard};
use super::structs::*;
use crate::backend::wrap::{self, counter, fault, race, Call};
use crate::backend::{self, ByteRange};
use crate::error::{Result, Status};
use crate::fail;
use crate::timeline::AccessKind;

/// The call of that name.
pub(super) unsafe fn call_of_name(name: *const c_char, argument: &str) -> Result<Call> {
    if name.is_null() {
        fail!(
            Status::NullPointer,
            "{argument} is null, expected the name of a call"
        );
    }
    // SAFETY: the caller's string.
    let name = unsafe { CStr::from_ptr(name) };
    match Call::from_name(name.to_bytes()) {
        Some(call) => Ok(call),
        None => fail!(
            Status::InvalidArgument,
            "{argument} is {name:?}, expected a name that cvc_backend_call_name gives"
        ),
    }
}

/// Asks for instruments around the backend of this process, before anything else is called: they are put in place when the
/// backend is chosen, and cost nothing where they are not. Each can be had from the environment too, by a variable that is
/// 1: `CVC_COUNT_CALLS`, `CVC_FAULTS`, `CVC_HOST_RACE_CHECK`, `CVC_HOST_CAPTURES`; steps by `CVC_HOST_EXECUTOR=stepped`.
/// `CVC_STATUS_NOT_SUPPORTED` where the backend is in use already without one of them.
///
/// @param instruments `CVC_INSTRUMENT_*`, added up
#[no_mangle]
pub extern "C" fn cvc_backend_instrument(instruments: u32) -> cvc_status_t {
    const KNOWN: u32 = CVC_INSTRUMENT_COUNT_CALLS
        | CVC_INSTRUMENT_FAULTS
        | CVC_INSTRUMENT_RACE_CHECK
        | CVC_INSTRUMENT_STEPPED
        | CVC_INSTRUMENT_CAPTURES;
    guard(|| wrap::want(arguments::flags(instruments, KNOWN, "instruments")?))
}

/// The name of the backend's call of that number, counted from 0, such as "launch" or "event_record"; null past the last
/// one. Static.
#[no_mangle]
pub extern "C" fn cvc_backend_call_name(index: u32) -> *const c_char {
    match Call::ALL.get(index as usize) {
        Some(call) => call.name().as_ptr(),
        None => std::ptr::null(),
    }
}

/// How often the library has called its backend by that name since the last reset, over all threads. Needs
/// `CVC_INSTRUMENT_COUNT_CALLS`.
#[no_mangle]
pub unsafe extern "C" fn cvc_backend_call_count(
    name: *const c_char,
    count: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointers.
        let (count, call) = unsafe { (out(count, 0, "count")?, call_of_name(name, "name")?) };
        wrap::COUNTER.check()?;
        *count = counter::count(call);
        Ok(())
    })
}

/// Counts from 0 again.
#[no_mangle]
pub extern "C" fn cvc_backend_call_reset() -> cvc_status_t {
    guard(|| {
        wrap::COUNTER.check()?;
        counter::reset();
        Ok(())
    })
}

/// Plans a fault, on any backend: after the next `skip` calls of that name, `count` of them fail with `status` without
/// being made. Needs `CVC_INSTRUMENT_FAULTS`. Several faults may be planned.
///
/// With `CVC_STATUS_NOT_READY`, a query of a stream or an event says that its work is not done, and a wait that its time
/// has passed: an event that never completes. A wait without a timeout fails then, since it would not end. The calls "kind" and
/// "device_count" cannot fail.
///
/// @param call as `cvc_backend_call_name` gives it
/// @param status not ready, out of memory, not supported, device error, context lost (of which later calls know nothing, other
/// than on a GPU) or capturing
#[no_mangle]
pub unsafe extern "C" fn cvc_host_fault(
    call: *const c_char,
    skip: u64,
    count: u64,
    status: cvc_status_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's string.
        let call = unsafe { call_of_name(call, "call") }?;
        wrap::FAULTS.check()?;
        fault::plan(call, skip, count, status)
    })
}

/// How many calls have failed by the plan since `cvc_host_fault_clear`.
#[no_mangle]
pub unsafe extern "C" fn cvc_host_fault_hits(hits: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let hits = unsafe { out(hits, 0, "hits") }?;
        wrap::FAULTS.check()?;
        *hits = fault::hits();
        Ok(())
    })
}

/// Forgets all planned faults.
#[no_mangle]
pub extern "C" fn cvc_host_fault_clear() -> cvc_status_t {
    guard(|| {
        wrap::FAULTS.check()?;
        fault::clear();
        Ok(())
    })
}

/// How many races were found since `cvc_host_race_forget`. Needs `CVC_INSTRUMENT_RACE_CHECK`.
///
/// A race is an access of queued work to bytes that other work touched before, one of them writing, where nothing orders
/// the later one after the earlier: no stream, no event that was recorded and waited for, no rule of the legacy stream,
/// no wait or query of the host that saw the earlier one complete. Whether they ran in the wrong order does not matter. Copies,
/// fills and launches of the library are seen by themselves; launches of others where `cvc_tensor_end_access` or
/// `cvc_host_race_access` announces them; memory that is given back counts as written by the host.
#[no_mangle]
pub unsafe extern "C" fn cvc_host_race_count(count: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let count = unsafe { out(count, 0, "count") }?;
        wrap::RACES.check()?;
        *count = race::report::count();
        Ok(())
    })
}

/// The first hundred races, a line each: both accesses by number and kind, their streams, the bytes, and what would have
/// ordered them.
///
/// @param[out] buffer gets the text and a NUL, cut to `length`; may be null when `length` is 0
/// @param[out] needed gets the bytes of the whole text with its NUL; may be null
#[no_mangle]
pub unsafe extern "C" fn cvc_host_race_report(
    buffer: *mut c_char,
    length: usize,
    needed: *mut usize,
) -> cvc_status_t {
    guard(|| {
        if buffer.is_null() && length > 0 {
            fail!(
                Status::NullPointer,
                "buffer is null and length is {length}, expected 0"
            );
        }
        wrap::RACES.check()?;
        // SAFETY: the caller's buffer of `length` bytes.
        unsafe { copy_text(&race::report::text(), buffer, length, needed) };
        Ok(())
    })
}

/// Forgets the races that were found.
#[no_mangle]
pub extern "C" fn cvc_host_race_forget() -> cvc_status_t {
    guard(|| {
        wrap::RACES.check()?;
        race::report::forget();
        Ok(())
    })
}

/// Tells the race checker that work of the caller's own, queued on `stream` by now, touches these bytes; with
/// `CVC_STREAM_NONE`, that the host touches them now. It orders nothing.
#[no_mangle]
pub extern "C" fn cvc_host_race_access(
    device: i32,
    stream: cvc_stream_t,
    pointer: *const c_void,
    bytes: u64,
    access: cvc_access_t,
) -> cvc_status_t {
    guard(|| {
        let device = arguments::device(device)?;
        let stream = arguments::stream_or_none(stream, device)?;
        let range = ByteRange {
            start: pointer as u64,
            length: bytes,
            write: arguments::access(access)? == AccessKind::Write,
        };
        wrap::RACES.check()?;
        let handle = stream.map(|stream| stream.handle());
        backend::current()?.announce_access(device, handle, range)
    })
}
