//! `cvc_host_latch_*`, `cvc_host_step*` and `cvc_host_capture_*`: holds on streams, work in steps and captures, so that tests
//! decide what runs when.

use super::arguments::{self, out};
use super::constants::*;
use super::error::guard;
use super::structs::*;
use crate::backend::{self, host, wrap, Stepping};
use crate::error::{Result, Status};
use crate::fail;

/// Queues a hold on the stream: what is queued after it runs only once `cvc_host_latch_open` was called.
#[no_mangle]
pub unsafe extern "C" fn cvc_host_latch_create(
    stream: cvc_stream_t,
    latch: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let latch = unsafe { out(latch, 0, "latch") }?;
        let stream = arguments::stream_alone(stream)?;
        *latch = backend::current()?.latch_create(stream.device(), stream.handle())?;
        Ok(())
    })
}

/// Lets the stream of the latch go on. Each latch is opened once.
#[no_mangle]
pub extern "C" fn cvc_host_latch_open(latch: u64) -> cvc_status_t {
    guard(|| backend::current()?.latch_open(latch))
}

fn stepping() -> Result<&'static dyn Stepping> {
    match backend::current()?.stepping() {
        Some(stepping) => Ok(stepping),
        None => fail!(
            Status::NotSupported,
            "the backend is CUDA, which runs queued work by itself; CVC_BACKEND=host has steps"
        ),
    }
}

/// How many items of queued work may run now: the oldest of each stream, where it waits for nothing. For a host backend
/// whose work runs in steps, by `CVC_INSTRUMENT_STEPPED` or `CVC_HOST_EXECUTOR=stepped`; this and the functions below give
/// `CVC_STATUS_NOT_SUPPORTED` elsewhere.
///
/// Queued work then runs on the thread that takes the step, one item at a time, in whichever order the caller picks; the
/// same picks give the same run. `synchronize` and the other waits of the host run what they need, each stream's oldest
/// first, and wait only for latches; a wait with a timeout of 0 and a query run nothing.
#[no_mangle]
pub unsafe extern "C" fn cvc_host_step_count(count: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let count = unsafe { out(count, 0, "count") }?;
        *count = stepping()?.runnable()?.len() as u64;
        Ok(())
    })
}

/// What the item at that place is, counted from 0; the longest ready comes first.
#[no_mangle]
pub unsafe extern "C" fn cvc_host_step_get(index: u64, step: *mut cvc_host_step_t) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(step, "step") }?;
        let runnable = stepping()?.runnable()?;
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(item) = runnable.get(place) else {
            fail!(
                Status::InvalidIndex,
                "index is {index}, expected less than {}, which is how many items may run",
                runnable.len()
            );
        };
        let value = cvc_host_step_t {
            struct_size: size,
            stream_id: item.stream,
            device: item.device,
            kind: match item.kind {
                host::StepKind::Work => CVC_HOST_STEP_WORK,
                host::StepKind::Record => CVC_HOST_STEP_RECORD,
            },
        };
        // SAFETY: checked above.
        unsafe { arguments::write(step, size, &value) };
        Ok(())
    })
}

/// Runs the item at that place.
#[no_mangle]
pub extern "C" fn cvc_host_step(index: u64) -> cvc_status_t {
    guard(|| stepping()?.run_one(index))
}

/// Runs what the stream's queued work needs, on other streams too, as far as latches let it.
///
/// @param[out] steps gets how many items were run
#[no_mangle]
pub unsafe extern "C" fn cvc_host_step_stream(
    stream: cvc_stream_t,
    steps: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let steps = unsafe { out(steps, 0, "steps") }?;
        let stream = arguments::stream_alone(stream)?;
        *steps = stepping()?.run_stream(stream.device(), stream.handle())?;
        Ok(())
    })
}

/// Runs all that may run, the longest ready first, until nothing may.
///
/// @param[out] steps gets how many items were run
#[no_mangle]
pub unsafe extern "C" fn cvc_host_step_all(steps: *mut u64) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let steps = unsafe { out(steps, 0, "steps") }?;
        *steps = stepping()?.run_all()?;
        Ok(())
    })
}

/// Begins a capture on the stream, as `cuStreamBeginCapture` does in relaxed mode: until it ends, what is queued there goes
/// into a graph, which is never run, and streams that wait for an event recorded there join. So the rules for captures can
/// be tested without a GPU. Unlike in CUDA any of its streams may end it, joined or not. For the host backend with `CVC_INSTRUMENT_CAPTURES`, else `CVC_STATUS_NOT_SUPPORTED`.
///
/// `CVC_STATUS_CAPTURING` for a stream that captures, `CVC_STATUS_INVALID_STREAM` for the legacy stream, which cannot.
#[no_mangle]
pub extern "C" fn cvc_host_capture_begin(stream: cvc_stream_t) -> cvc_status_t {
    guard(|| {
        wrap::CAPTURES.check()?;
        let stream = arguments::stream_alone(stream)?;
        stream.check_not_capturing()?;
        wrap::capture::begin(backend::current()?, stream.device(), stream.handle())
    })
}

/// Ends the stream's capture, and with it that of the streams that joined. The graph is thrown away.
///
/// `CVC_STATUS_INVALID_STREAM` for a stream that does not capture; `CVC_STATUS_CAPTURING` where a call has broken the capture,
/// as it would in CUDA: it has ended all the same, and the message says what that was. The library's calls break none, other
/// than those that say so.
#[no_mangle]
pub extern "C" fn cvc_host_capture_end(stream: cvc_stream_t) -> cvc_status_t {
    guard(|| {
        wrap::CAPTURES.check()?;
        wrap::capture::end(backend::current()?, stream as backend::StreamHandle)
    })
}
