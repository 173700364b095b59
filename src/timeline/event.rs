//! The events that callers create, record and wait for, and what the latest record of each stands for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use super::access::{Access, AccessKind};
use super::event_pool::Waits;
use super::registry::check_device;
use super::stream::{Deadline, Stream};
use crate::backend::{self, EventHandle};
use crate::error::{Result, Status};
use crate::fail;
use crate::observe::mistake::{self, Mistake};

struct EventState {
    device: i32,
    /// Held while a record is made, so that the driver's latest record is the latest here.
    order: Arc<Mutex<()>>,
    /// Counts records: a look at the event is believed only if none began meanwhile.
    version: u64,
    recorded: Option<Recorded>,
    /// The record before one that is being made.
    before: Option<Recorded>,
}

#[derive(Clone)]
struct Recorded {
    version: u64,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Live(LivePlace),
    /// In the capture of that number: the record is the graph's, and tells nothing of the live timeline.
    Capture(u64),
}

#[derive(Clone)]
struct LivePlace {
    stream: &'static Stream,
    /// Who the stream was: its slot may be another one's by now.
    stream_id: u64,
    covers: u64,
    waits: Waits,
    /// The place of the record: see `mark_events`.
    mark: Option<u64>,
}

/// See `mark_events`.
static EVENTS_ARE_MARKED: AtomicBool = AtomicBool::new(false);
static EVENTS: LazyLock<Mutex<HashMap<EventHandle, EventState>>> = LazyLock::new(Mutex::default);

pub fn event_create(device: i32, timing: bool) -> Result<EventHandle> {
    let event = backend::current()?.event_create(device, timing)?;
    EVENTS.lock().insert(
        event,
        EventState {
            device,
            order: Arc::default(),
            version: 0,
            recorded: None,
            before: None,
        },
    );
    Ok(event)
}

pub fn event_destroy(event: EventHandle) -> Result<()> {
    let device = event_device(event, "event")?;
    // Removed first: once destroyed, its handle may be another event's.
    let state = EVENTS.lock().remove(&event);
    let destroyed = backend::current()?.event_destroy(device, event);
    if let (Err(_), Some(state)) = (&destroyed, state) {
        EVENTS.lock().insert(event, state);
    }
    destroyed
}

/// The device of an event of `cvc_event_create`; for others the calling thread's current device.
fn event_device(event: EventHandle, argument: &str) -> Result<i32> {
    if event == 0 {
        fail!(
            Status::InvalidEvent,
            "{argument} is null, expected one from cvc_event_create"
        );
    }
    if let Some(state) = EVENTS.lock().get(&event) {
        return Ok(state.device);
    }
    backend::current()?.current_device()
}

/// Records `event` behind everything queued on the stream.
pub fn event_record(event: EventHandle, stream: &'static Stream) -> Result<()> {
    check_device(
        stream.handle(),
        stream.device(),
        event_device(event, "event")?,
    )?;
    let order = EVENTS.lock().get(&event).map(|state| state.order.clone());
    let _order = order.as_ref().map(|order| order.lock());
    let version = EVENTS.lock().get_mut(&event).map(|state| {
        state.version += 1;
        if let Some(recorded) = state.recorded.take() {
            state.before = Some(recorded);
        }
        state.version
    });
    let (recorded, result) = match record(event, stream, version) {
        Ok(recorded) => (Some(recorded), Ok(())),
        Err(error) => (None, Err(error)),
    };
    if let (Some(version), Some(state)) = (version, EVENTS.lock().get_mut(&event)) {
        if state.version == version {
            // Where it failed the driver still has the one before.
            let before = state.before.take();
            state.recorded = recorded.unwrap_or(before);
        }
    }
    result
}

/// What the driver's record stands for; `None` for an event of somebody else's, which has no `version`.
fn record(
    event: EventHandle,
    stream: &'static Stream,
    version: Option<u64>,
) -> Result<Option<Recorded>> {
    let capture = stream.capture()?;
    let mark = match version {
        Some(_) if capture.is_none() && EVENTS_ARE_MARKED.load(Ordering::Acquire) => {
            Some(stream.mark()?)
        }
        _ => None,
    };
    let (covers, waits) = stream.record_now(event)?;
    let place = match capture {
        Some(capture) => Place::Capture(capture),
        None => Place::Live(LivePlace {
            stream,
            stream_id: stream.id(),
            covers,
            waits,
            mark,
        }),
    };
    Ok(version.map(|version| Recorded { version, place }))
}

/// From now on `event_record` marks its place with an event of the library's own, for `event_access`: a user's event may be
/// recorded anew or destroyed while memory still waits for its record.
pub fn mark_events() {
    if !EVENTS_ARE_MARKED.load(Ordering::Relaxed) {
        EVENTS_ARE_MARKED.store(true, Ordering::Release);
    }
}

/// The access that stands for all that the event's latest record covers, for memory of `device`, and the id of its stream;
/// `None` where that record is older than `mark_events`. While a record is being made, the one before it may be the latest.
pub fn event_access(event: EventHandle, device: i32) -> Result<Option<(Access, u64)>> {
    let events = EVENTS.lock();
    let Some(state) = events.get(&event) else {
        fail!(
            Status::InvalidEvent,
            "event is {event:#x}, expected one from cvc_event_create that still lives"
        );
    };
    if state.device != device {
        fail!(
            Status::DeviceMismatch,
            "event is {event:#x} of device {}, expected an event of device {device}",
            state.device
        );
    }
    let latest = state.recorded.as_ref().or(state.before.as_ref());
    let Some(Place::Live(recorded)) = latest.map(|recorded| &recorded.place) else {
        fail!(
            Status::InvalidEvent,
            "event is {event:#x}, which has no record outside of captures, expected one that cvc_event_record recorded"
        );
    };
    Ok(recorded.mark.map(|sequence| {
        let access = Access {
            stream: recorded.stream,
            sequence,
            kind: AccessKind::Write,
        };
        (access, recorded.stream_id)
    }))
}

fn recorded(event: EventHandle) -> Option<Recorded> {
    EVENTS
        .lock()
        .get(&event)
        .and_then(|state| state.recorded.clone())
}

/// What `event` stands for, if it is still what `before` says: else somebody records it anew at this moment, and what the
/// driver said may be about that.
fn unchanged(event: EventHandle, before: Option<Recorded>) -> Option<LivePlace> {
    let before = before?;
    let is_same = recorded(event).is_some_and(|now| now.version == before.version);
    match before.place {
        Place::Live(place) if is_same => Some(place),
        _ => None,
    }
}

/// The event's latest record, for a call by which the host looks at it. The driver would end the capture that such a record
/// lies in (law 11).
fn recorded_outside_captures(event: EventHandle, argument: &str) -> Result<Option<Recorded>> {
    let (latest, replaced) = match EVENTS.lock().get(&event) {
        Some(state) => (state.recorded.clone(), state.before.clone()),
        None => (None, None),
    };
    // While a record is being made, the driver may still have the one before.
    let known = latest.as_ref().or(replaced.as_ref());
    if let Some(Place::Capture(_)) = known.map(|recorded| &recorded.place) {
        fail!(
            Status::Capturing,
            "{argument} is {event:#x}, whose latest record lies in a capture, where the host cannot look at it; expected an \
             event that was recorded outside of captures"
        );
    }
    Ok(latest)
}

pub fn event_query(event: EventHandle) -> Result<bool> {
    let device = event_device(event, "event")?;
    let before = recorded_outside_captures(event, "event")?;
    let done = backend::current()?.event_query(device, event)?;
    if let (true, Some(recorded)) = (done, unchanged(event, before)) {
        if mistake::is(Mistake::EventQueryMarksTooFar) {
            recorded.stream.all_done(recorded.stream.last_submitted());
        }
        recorded.stream.all_done(recorded.covers);
    }
    Ok(done)
}

pub fn event_synchronize(event: EventHandle, deadline: Deadline) -> Result<bool> {
    let device = event_device(event, "event")?;
    let before = recorded_outside_captures(event, "event")?;
    let done = backend::current()?.event_synchronize(device, event, deadline.remaining())?;
    if let (true, Some(recorded)) = (done, unchanged(event, before)) {
        recorded.stream.all_done(recorded.covers);
    }
    Ok(done)
}

pub fn event_elapsed_ms(start: EventHandle, end: EventHandle) -> Result<f32> {
    let device = event_device(start, "start")?;
    event_device(end, "end")?;
    recorded_outside_captures(start, "start")?;
    recorded_outside_captures(end, "end")?;
    backend::current()?.event_elapsed_ms(device, start, end)
}

/// Makes the stream wait for the event's latest record. What an event of somebody else's stands for only the driver knows.
pub fn stream_wait_event(stream: &'static Stream, event: EventHandle) -> Result<()> {
    event_device(event, "event")?;
    let before = recorded(event);
    let capture = stream.capture()?;
    match before.as_ref().map(|recorded| &recorded.place) {
        Some(Place::Capture(other)) => stream.check_wait_for_capture(capture, *other)?,
        Some(Place::Live(_)) => stream.check_wait_for_live(capture, "an event's record")?,
        None if EVENTS.lock().contains_key(&event) => {
            stream.check_wait_for_live(capture, "an event without a record")?;
        }
        None => {}
    }
    backend::current()?.stream_wait_event(stream.device(), stream.handle(), event)?;
    // The wait is done: nothing that follows may fail. In a capture it is the graph's, not the stream's.
    if capture.is_some() || stream.is_capturing().unwrap_or(true) {
        return Ok(());
    }
    if let Some(recorded) = unchanged(event, before) {
        stream.remember_wait(recorded.stream, recorded.covers, &recorded.waits);
    }
    Ok(())
}
