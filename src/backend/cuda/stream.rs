//! Streams and events: who a handle names, queries and waits that leave captures alone.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use super::codes;
use super::context::{call, Device, Plain, Session};
use super::driver::Driver;
use crate::backend::{EventHandle, StreamHandle, StreamIdentity, STREAM_LEGACY, STREAM_PER_THREAD};
use crate::error::{Result, Status};
use crate::fail;

const NON_BLOCKING: u32 = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
const DISABLE_TIMING: u32 = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;

/// Identities of default streams lie above every number that the driver counts up to.
const LEGACY_IDENTITY: u64 = 1 << 63;
const PER_THREAD_IDENTITY: u64 = 3 << 62;

pub fn is_default(stream: StreamHandle) -> bool {
    stream <= STREAM_PER_THREAD
}

/// Whether a number can be a handle at all: the driver's are aligned addresses of user space.
fn is_plausible(handle: usize) -> bool {
    handle >= 4096 && handle % 8 == 0 && (handle as u64) < 1 << 56
}

#[inline]
pub fn check_stream(stream: StreamHandle) -> Result<()> {
    if is_default(stream) || is_plausible(stream) {
        return Ok(());
    }
    fail!(
        Status::InvalidStream,
        "stream is {stream:#x}, expected a CUstream or one of the default streams 0, 1 and 2"
    )
}

#[inline]
pub fn check_event(event: EventHandle) -> Result<()> {
    if is_plausible(event) {
        return Ok(());
    }
    fail!(
        Status::InvalidEvent,
        "event is {event:#x}, expected a CUevent"
    )
}

/// A number for the calling thread that no other thread ever has.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// The identity of one of the default streams of a device, as the calling thread means it.
pub fn default_identity(stream: StreamHandle, device: i32) -> StreamIdentity {
    let id = if stream <= STREAM_LEGACY {
        LEGACY_IDENTITY | device as u64
    } else {
        PER_THREAD_IDENTITY | thread_number() << 16 | device as u64
    };
    StreamIdentity { id, device }
}

/// The device whose primary context this is, made by us or by others. No other device is asked.
fn device_of_context<'a>(
    plain: &Plain,
    devices: &'a [Device],
    context: usize,
) -> Result<Option<&'a Device>> {
    let known = |device: &&Device| device.ready_context() == Some(context);
    if let Some(device) = devices.iter().find(known) {
        return Ok(Some(device));
    }
    // SAFETY: the stream lives, and so does its context.
    let visit = unsafe { plain.visit(context) }?;
    let handle = plain.current_device()?;
    drop(visit);
    match devices.iter().find(|device| device.is(handle)) {
        Some(device) if device.is_primary(context)? => Ok(Some(device)),
        _ => Ok(None),
    }
}

/// Who a created stream's handle names. Some context has to be current, whichever it is.
pub fn identify(
    driver: &'static Driver,
    devices: &[Device],
    stream: StreamHandle,
) -> Result<StreamIdentity> {
    // A failure tells of the stream's context, which may not be the current one.
    let plain = Plain { driver };
    let mut context = 0;
    // SAFETY: the caller keeps the stream alive; `context` is writable.
    unsafe { call!(plain, cuStreamGetCtx(stream, &mut context))? };
    let Some(device) = device_of_context(&plain, devices, context)? else {
        fail!(
            Status::InvalidStream,
            "stream {stream:#x} belongs to context {context:#x}, which is no device's primary context; expected a \
             stream of a primary context (the CUDA runtime's own)"
        );
    };
    // The driver ends the capture of a stream that is asked for its number.
    if is_capturing(&device.enter()?, stream)? {
        fail!(
            Status::Capturing,
            "stream is {stream:#x}, which is capturing a graph, and which stream that is cannot be asked meanwhile; \
             expected one that is not, or that was registered before its capture began"
        );
    }
    let mut id = 0;
    // SAFETY: as above.
    unsafe { call!(plain, cuStreamGetId(stream, &mut id))? };
    Ok(StreamIdentity {
        id,
        device: device.ordinal,
    })
}

pub fn create(session: &Session, blocking: bool) -> Result<StreamHandle> {
    let mut stream = 0;
    let flags = if blocking { 0 } else { NON_BLOCKING };
    // SAFETY: `stream` is writable.
    unsafe { call!(session, cuStreamCreate(&mut stream, flags))? };
    Ok(stream)
}

pub fn destroy(session: &Session, stream: StreamHandle) -> Result<()> {
    // SAFETY: the caller owns the stream and uses it no more.
    unsafe { call!(session, cuStreamDestroy_v2(stream)) }
}

/// Whether the stream captures, or did until an error ended it.
///
/// Errors: `Capturing` for the legacy stream while a blocking stream captures: nothing may use it then.
pub fn is_capturing(session: &Session, stream: StreamHandle) -> Result<bool> {
    let mut state = 0;
    // SAFETY: the caller keeps the stream alive; `state` is writable.
    unsafe { call!(session, cuStreamIsCapturing(stream, &mut state))? };
    Ok(is_capture(state))
}

/// The number of the capture that the stream is in, or was until an error ended it.
///
/// Errors: as `is_capturing`.
pub fn capture(session: &Session, stream: StreamHandle) -> Result<Option<u64>> {
    let (mut state, mut number) = (0, 0);
    // SAFETY: the caller keeps the stream alive; `state` and `number` are writable, and the rest is not asked for.
    unsafe {
        call!(
            session,
            cuStreamGetCaptureInfo_v2(
                stream,
                &mut state,
                &mut number,
                null_mut(),
                null_mut(),
                null_mut()
            )
        )?;
    }
    Ok(is_capture(state).then_some(number))
}

fn is_capture(state: u32) -> bool {
    state != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE as u32
}

/// A query or a wait would break the capture of the stream that it asks about.
fn refuse_capturing(session: &Session, stream: StreamHandle) -> Result<()> {
    if is_capturing(session, stream)? {
        fail!(
            Status::Capturing,
            "stream {stream:#x} is capturing, which a query or a wait would break; expected one that is not"
        );
    }
    Ok(())
}

/// `NOT_READY` is an answer, everything else but success is an error.
fn ready(session: &Session, code: u32, function: &'static str) -> Result<bool> {
    if code == codes::NOT_READY {
        return Ok(false);
    }
    session.check(code, function).map(|()| true)
}

pub fn query(session: &Session, stream: StreamHandle) -> Result<bool> {
    refuse_capturing(session, stream)?;
    let _relaxed = session.relaxed()?;
    // SAFETY: the caller keeps the stream alive.
    let code = unsafe { (session.driver.cuStreamQuery)(stream) };
    ready(session, code, "cuStreamQuery")
}

pub fn synchronize(
    session: &Session,
    stream: StreamHandle,
    timeout: Option<Duration>,
) -> Result<bool> {
    if let Some(timeout) = timeout {
        return poll(timeout, || query(session, stream));
    }
    refuse_capturing(session, stream)?;
    let _relaxed = session.relaxed()?;
    // SAFETY: the caller keeps the stream alive.
    unsafe { call!(session, cuStreamSynchronize(stream))? };
    Ok(true)
}

pub fn wait_event(session: &Session, stream: StreamHandle, event: EventHandle) -> Result<()> {
    // SAFETY: the caller keeps both alive.
    unsafe { call!(session, cuStreamWaitEvent(stream, event, 0)) }
}

pub fn create_event(session: &Session, timing: bool) -> Result<EventHandle> {
    let mut event = 0;
    let flags = if timing { 0 } else { DISABLE_TIMING };
    // SAFETY: `event` is writable.
    unsafe { call!(session, cuEventCreate(&mut event, flags))? };
    Ok(event)
}

pub fn destroy_event(session: &Session, event: EventHandle) -> Result<()> {
    // SAFETY: the caller owns the event and uses it no more.
    unsafe { call!(session, cuEventDestroy_v2(event)) }
}

pub fn record(session: &Session, event: EventHandle, stream: StreamHandle) -> Result<()> {
    // SAFETY: the caller keeps both alive.
    unsafe { call!(session, cuEventRecord(event, stream)) }
}

pub fn query_event(session: &Session, event: EventHandle) -> Result<bool> {
    let _relaxed = session.relaxed()?;
    // SAFETY: the caller keeps the event alive.
    let code = unsafe { (session.driver.cuEventQuery)(event) };
    ready(session, code, "cuEventQuery")
}

pub fn synchronize_event(
    session: &Session,
    event: EventHandle,
    timeout: Option<Duration>,
) -> Result<bool> {
    if let Some(timeout) = timeout {
        return poll(timeout, || query_event(session, event));
    }
    let _relaxed = session.relaxed()?;
    // SAFETY: the caller keeps the event alive.
    unsafe { call!(session, cuEventSynchronize(event))? };
    Ok(true)
}

/// Errors: `InvalidEvent` for an event without timing or without a record, `NotReady` before both have passed.
pub fn elapsed_ms(session: &Session, start: EventHandle, end: EventHandle) -> Result<f32> {
    let between = |start: EventHandle, end: EventHandle, milliseconds: &mut f32| {
        // SAFETY: the caller keeps both alive; `milliseconds` is writable.
        unsafe {
            match session.driver.cuEventElapsedTime_v2 {
                Some(elapsed) => elapsed(milliseconds, start, end),
                None => (session.driver.cuEventElapsedTime)(milliseconds, start, end),
            }
        }
    };
    let mut milliseconds = 0.0;
    let code = between(start, end, &mut milliseconds);
    if code == codes::INVALID_HANDLE {
        // The driver does not say which; one of them has no time between itself and itself either.
        for (name, event) in [("start", start), ("end", end)] {
            if between(event, event, &mut milliseconds) == codes::INVALID_HANDLE {
                fail!(
                    Status::InvalidEvent,
                    "{name} is event {event:#x}, which has no timing or was never recorded; expected one created with \
                     timing and recorded"
                );
            }
        }
    }
    let function = match session.driver.cuEventElapsedTime_v2 {
        Some(_) => "cuEventElapsedTime_v2",
        None => "cuEventElapsedTime",
    };
    session.check(code, function)?;
    Ok(milliseconds)
}

/// Waits for all work of the device's context. Breaks captures of its streams, whatever their mode.
pub fn synchronize_device(session: &Session, timeout: Option<Duration>) -> Result<bool> {
    let Some(timeout) = timeout else {
        let _relaxed = session.relaxed()?;
        // SAFETY: the context is current.
        unsafe { call!(session, cuCtxSynchronize())? };
        return Ok(true);
    };
    let Some(record_context) = session.driver.cuCtxRecordEvent else {
        fail!(
            Status::NotSupported,
            "a wait for a whole device with a timeout needs cuCtxRecordEvent, which CUDA 12.5 brought; pass no timeout"
        );
    };
    let event = create_event(session, false)?;
    // SAFETY: the context is current and the event was just made.
    let code = unsafe { record_context(session.ready.context, event) };
    let waited = session
        .check(code, "cuCtxRecordEvent")
        .and_then(|()| poll(timeout, || query_event(session, event)));
    // The driver keeps what a destroyed event still needs.
    let destroyed = session
        .device
        .release(|session| destroy_event(session, event));
    let done = waited?;
    destroyed.map(|()| done)
}

/// Asks until the answer is yes or the time has passed: often at first, then up to 200 microseconds apart.
fn poll(timeout: Duration, mut ask: impl FnMut() -> Result<bool>) -> Result<bool> {
    const LONGEST: Duration = Duration::from_micros(200);
    // A deadline beyond what the clock can tell is none.
    let deadline = Instant::now().checked_add(timeout);
    let mut pause = Duration::from_micros(1);
    loop {
        if ask()? {
            return Ok(true);
        }
        let left = match deadline {
            Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            None => LONGEST,
        };
        if left.is_zero() {
            return Ok(false);
        }
        if pause < Duration::from_micros(10) {
            std::thread::yield_now();
        } else {
            std::thread::sleep(pause.min(left));
        }
        pause = (pause * 2).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_streams_have_an_identity_of_their_own_for_each_device_and_thread() {
        let here = default_identity(STREAM_PER_THREAD, 0);
        assert_eq!(here, default_identity(STREAM_PER_THREAD, 0));
        let there = std::thread::spawn(|| default_identity(STREAM_PER_THREAD, 0));
        let there = there.join().expect("the thread ends");
        let legacy = default_identity(0, 0);
        assert_eq!(legacy, default_identity(STREAM_LEGACY, 0));
        let other_device = default_identity(STREAM_LEGACY, 1);
        let other_thread_stream = default_identity(STREAM_PER_THREAD, 1);
        let mut ids = [here, there, legacy, other_device, other_thread_stream].map(|one| one.id);
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:x?}");
    }

    #[test]
    fn a_poll_asks_once_at_least_and_stops_at_the_first_yes_or_error() {
        let mut asked = 0;
        let answer = poll(Duration::ZERO, || {
            asked += 1;
            Ok(false)
        });
        assert_eq!((answer, asked), (Ok(false), 1));
        let answer = poll(Duration::MAX, || {
            asked += 1;
            Ok(asked == 6)
        });
        assert_eq!((answer, asked), (Ok(true), 6));
        let answer = poll(Duration::MAX, || fail!(Status::ContextLost, "gone"));
        assert_eq!(
            answer.map_err(|error| error.status),
            Err(Status::ContextLost)
        );
    }

    #[test]
    fn numbers_that_are_no_handles_are_refused() {
        for stream in [3, 4095, 4097, usize::MAX, usize::MAX - 7, 1 << 63] {
            let error = check_stream(stream).expect_err("no stream");
            assert_eq!(error.status, Status::InvalidStream);
            assert!(error.message.contains(&format!("{stream:#x}")));
            assert_eq!(
                check_event(stream).map_err(|error| error.status),
                Err(Status::InvalidEvent)
            );
        }
        assert!(check_event(1).is_err() && check_event(0).is_err());
        for stream in [0, 1, 2, 4096, 0x5555_5555_0008] {
            assert!(check_stream(stream).is_ok());
        }
    }
}
