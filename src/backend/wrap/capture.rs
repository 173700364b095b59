//! Captures of graphs as CUDA has them, for the host backend: what is queued on a capturing stream goes into a graph, which
//! nobody runs here. It lies outside of the race checker, which sees what is really done.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::backend::{
    Backend, BackendKind, ByteRange, Copy2d, DeviceInfo, DevicePointer, EventHandle, Fill2d,
    Launch, Stepping, StreamHandle, StreamIdentity, STREAM_LEGACY, STREAM_PER_THREAD,
};
use crate::error::{Result, Status};
use crate::fail;

#[derive(Default)]
struct State {
    /// By the stream's id, which capture it is in.
    capturing: HashMap<u64, Captured>,
    /// Events whose latest record lies in a capture.
    records: HashMap<EventHandle, u64>,
    /// Captures that a call has broken, and how.
    broken: HashMap<u64, &'static str>,
    /// Created streams that order with the legacy stream, by handle.
    blocking: Vec<StreamHandle>,
    captures: u64,
}

#[derive(Clone, Copy)]
struct Captured {
    capture: u64,
    device: i32,
    blocking: bool,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with_state<R>(body: impl FnOnce(&mut State) -> R) -> R {
    body(STATE.lock().get_or_insert_with(State::default))
}

impl State {
    fn break_capture(&mut self, capture: Option<u64>, how: &'static str) {
        let goes_on = |capture: &u64| self.capturing.values().any(|of| of.capture == *capture);
        if let Some(capture) = capture.filter(goes_on) {
            self.broken.entry(capture).or_insert(how);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A question, which harms no capture.
    Ask,
    Touch,
}

/// The capture that the stream is in.
///
/// Errors: `Capturing` for the legacy stream while a blocking stream captures: nothing may use it then.
fn find(
    device: i32,
    identity: StreamIdentity,
    handle: StreamHandle,
    how: Use,
) -> Result<Option<u64>> {
    with_state(|state| {
        if is_legacy(handle) {
            let all = state.capturing.values().copied();
            let is_beside = |captured: &Captured| captured.blocking && captured.device == device;
            let beside: Vec<Captured> = all.filter(is_beside).collect();
            if !beside.is_empty() {
                if how == Use::Touch {
                    for captured in beside {
                        state.break_capture(Some(captured.capture), "a use of the legacy stream");
                    }
                }
                fail!(
                    Status::Capturing,
                    "stream is the legacy stream, and a blocking stream is capturing; expected another one meanwhile"
                );
            }
        }
        let captured = state.capturing.get(&identity.id);
        Ok(captured.map(|captured| captured.capture))
    })
}

fn is_legacy(handle: StreamHandle) -> bool {
    matches!(handle, 0 | STREAM_LEGACY)
}

fn is_blocking(state: &State, handle: StreamHandle) -> bool {
    handle == STREAM_PER_THREAD || state.blocking.contains(&handle)
}

/// Begins a capture on a stream that is in none.
pub fn begin(backend: &dyn Backend, device: i32, stream: StreamHandle) -> Result<()> {
    let identity = backend.stream_identify(stream)?;
    if is_legacy(stream) {
        fail!(
            Status::InvalidStream,
            "stream is the legacy stream, which cannot capture; expected another one"
        );
    }
    with_state(|state| {
        if state.capturing.contains_key(&identity.id) {
            fail!(
                Status::Capturing,
                "stream is {stream:#x}, which is capturing; expected one that is not"
            );
        }
        state.captures += 1;
        let captured = Captured {
            capture: state.captures,
            device,
            blocking: is_blocking(state, stream),
        };
        state.capturing.insert(identity.id, captured);
        Ok(())
    })
}

/// Ends the stream's capture, and with it that of all streams that joined it.
///
/// Errors: `Capturing` where a call has broken the capture; it ends all the same.
pub fn end(backend: &dyn Backend, stream: StreamHandle) -> Result<()> {
    // A created stream's handle is its id, and it cannot be asked for that now.
    let id = match stream {
        STREAM_PER_THREAD => backend.stream_identify(stream)?.id,
        _ => stream as u64,
    };
    with_state(|state| {
        let Some(ended) = state.capturing.get(&id).copied() else {
            fail!(
                Status::InvalidStream,
                "stream is {stream:#x}, which is not capturing; expected one that is"
            );
        };
        let goes_on = |captured: &Captured| captured.capture != ended.capture;
        state.capturing.retain(|_, captured| goes_on(captured));
        if let Some(how) = state.broken.remove(&ended.capture) {
            fail!(
                Status::Capturing,
                "stream is {stream:#x}, whose capture was broken by {how}; expected one that was left alone"
            );
        }
        Ok(())
    })
}

fn refuse<T>(what: &str) -> Result<T> {
    fail!(
        Status::Capturing,
        "{what} of a stream that is capturing, expected one that is not"
    )
}

pub struct Captures {
    inner: Box<dyn Backend>,
}

impl Captures {
    pub fn new(inner: Box<dyn Backend>) -> Captures {
        Captures { inner }
    }

    fn capture_of(&self, device: i32, stream: StreamHandle, how: Use) -> Result<Option<u64>> {
        find(device, self.inner.stream_identify(stream)?, stream, how)
    }

    /// Queues it, or leaves it to the graph.
    fn queue(
        &self,
        device: i32,
        stream: StreamHandle,
        queue: impl FnOnce(&dyn Backend) -> Result<()>,
    ) -> Result<()> {
        match self.capture_of(device, stream, Use::Touch)? {
            Some(_) => Ok(()),
            None => queue(&*self.inner),
        }
    }

    fn refuse_recorded_in_one(&self, event: EventHandle) -> Result<()> {
        with_state(|state| {
            let capture = state.records.get(&event).copied();
            state.break_capture(capture, "a look at an event that is recorded in it");
            match capture {
                Some(_) => refuse("the event's latest record is one"),
                None => Ok(()),
            }
        })
    }
}

impl Backend for Captures {
    forwarded! {
        kind() -> BackendKind;
        device_count() -> i32;
        device_info(device: i32) -> Result<DeviceInfo>;
        block_shared_bytes(device: i32) -> u32;
        check_device(device: i32) -> Result<()>;
        memory_free_bytes(device: i32) -> Result<u64>;
        current_device() -> Result<i32>;
        set_current_device(device: i32) -> Result<()>;
        pointer_device(pointer: DevicePointer) -> Result<Option<i32>>;
        memory_allocate(device: i32, bytes: u64) -> Result<DevicePointer>;
        memory_free(device: i32, pointer: DevicePointer, bytes: u64) -> Result<()>;
        event_create(device: i32, timing: bool) -> Result<EventHandle>;
        latch_open(latch: u64) -> Result<()>;
        stepping() -> Option<&dyn Stepping>;
    }

    fn stream_create(&self, device: i32, blocking: bool) -> Result<StreamHandle> {
        let stream = self.inner.stream_create(device, blocking)?;
        if blocking {
            with_state(|state| state.blocking.push(stream));
        }
        Ok(stream)
    }

    fn stream_destroy(&self, device: i32, stream: StreamHandle) -> Result<()> {
        let identity = self.inner.stream_identify(stream);
        self.inner.stream_destroy(device, stream)?;
        with_state(|state| {
            state.blocking.retain(|known| *known != stream);
            // Its capture can be ended by nobody any more.
            if let Some(gone) = identity
                .ok()
                .and_then(|own| state.capturing.remove(&own.id))
            {
                let goes_on = |captured: &Captured| captured.capture != gone.capture;
                state.capturing.retain(|_, captured| goes_on(captured));
            }
        });
        Ok(())
    }

    /// A created stream cannot be asked who it is while it captures.
    fn stream_identify(&self, stream: StreamHandle) -> Result<StreamIdentity> {
        let identity = self.inner.stream_identify(stream)?;
        let is_default = is_legacy(stream) || stream == STREAM_PER_THREAD;
        if !is_default && with_state(|state| state.capturing.contains_key(&identity.id)) {
            return refuse("the number");
        }
        Ok(identity)
    }

    fn stream_query(&self, device: i32, stream: StreamHandle) -> Result<bool> {
        // The CUDA backend itself looks first.
        match self.capture_of(device, stream, Use::Ask)? {
            Some(_) => refuse("a query"),
            None => self.inner.stream_query(device, stream),
        }
    }

    fn stream_synchronize(
        &self,
        device: i32,
        stream: StreamHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        // As above.
        match self.capture_of(device, stream, Use::Ask)? {
            Some(_) => refuse("a wait"),
            None => self.inner.stream_synchronize(device, stream, timeout),
        }
    }

    /// A stream that waits for a record in a capture joins that.
    fn stream_wait_event(
        &self,
        device: i32,
        stream: StreamHandle,
        event: EventHandle,
    ) -> Result<()> {
        let identity = self.inner.stream_identify(stream)?;
        let own = find(device, identity, stream, Use::Touch)?;
        let recorded = with_state(|state| state.records.get(&event).copied());
        match (own, recorded) {
            (None, None) => self.inner.stream_wait_event(device, stream, event),
            (Some(own), Some(recorded)) if own == recorded => Ok(()),
            (None, Some(recorded)) if !is_legacy(stream) => with_state(|state| {
                if !state.capturing.values().any(|of| of.capture == recorded) {
                    return refuse("a wait for an event");
                }
                let captured = Captured {
                    capture: recorded,
                    device,
                    blocking: is_blocking(state, stream),
                };
                state.capturing.insert(identity.id, captured);
                Ok(())
            }),
            _ => with_state(|state| {
                for capture in [own, recorded] {
                    state.break_capture(capture, "a wait that leads out of it or into it");
                }
                refuse("a wait for what is outside of the capture")
            }),
        }
    }

    fn stream_is_capturing(&self, device: i32, stream: StreamHandle) -> Result<bool> {
        Ok(self.stream_capture(device, stream)?.is_some())
    }

    fn stream_capture(&self, device: i32, stream: StreamHandle) -> Result<Option<u64>> {
        self.capture_of(device, stream, Use::Ask)
    }

    fn event_destroy(&self, device: i32, event: EventHandle) -> Result<()> {
        self.inner.event_destroy(device, event)?;
        with_state(|state| state.records.remove(&event));
        Ok(())
    }

    fn event_record(&self, device: i32, event: EventHandle, stream: StreamHandle) -> Result<()> {
        match self.capture_of(device, stream, Use::Touch)? {
            Some(capture) => {
                with_state(|state| state.records.insert(event, capture));
                Ok(())
            }
            None => {
                self.inner.event_record(device, event, stream)?;
                with_state(|state| state.records.remove(&event));
                Ok(())
            }
        }
    }

    fn event_query(&self, device: i32, event: EventHandle) -> Result<bool> {
        self.refuse_recorded_in_one(event)?;
        self.inner.event_query(device, event)
    }

    fn event_synchronize(
        &self,
        device: i32,
        event: EventHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.refuse_recorded_in_one(event)?;
        self.inner.event_synchronize(device, event, timeout)
    }

    /// Breaks the captures of all streams of the device.
    fn device_synchronize(&self, device: i32, timeout: Option<Duration>) -> Result<bool> {
        let breaks = with_state(|state| {
            let all = state.capturing.values().copied();
            let here: Vec<Captured> = all.filter(|captured| captured.device == device).collect();
            for captured in &here {
                state.break_capture(Some(captured.capture), "a wait for the device");
            }
            !here.is_empty()
        });
        match breaks {
            true => refuse("a wait for the device"),
            false => self.inner.device_synchronize(device, timeout),
        }
    }

    fn event_elapsed_ms(&self, device: i32, start: EventHandle, end: EventHandle) -> Result<f32> {
        self.refuse_recorded_in_one(start)?;
        self.refuse_recorded_in_one(end)?;
        self.inner.event_elapsed_ms(device, start, end)
    }

    fn copy_2d(&self, device: i32, stream: StreamHandle, copy: &Copy2d) -> Result<()> {
        self.queue(device, stream, |inner| inner.copy_2d(device, stream, copy))
    }

    fn fill_zero_2d(&self, device: i32, stream: StreamHandle, fill: &Fill2d) -> Result<()> {
        self.queue(device, stream, |inner| {
            inner.fill_zero_2d(device, stream, fill)
        })
    }

    fn launch(&self, device: i32, stream: StreamHandle, launch: &Launch) -> Result<()> {
        self.queue(device, stream, |inner| inner.launch(device, stream, launch))
    }

    fn latch_create(&self, device: i32, stream: StreamHandle) -> Result<u64> {
        match self.capture_of(device, stream, Use::Touch)? {
            Some(_) => refuse("a latch"),
            None => self.inner.latch_create(device, stream),
        }
    }

    fn announce_access(
        &self,
        device: i32,
        stream: Option<StreamHandle>,
        range: ByteRange,
    ) -> Result<()> {
        match stream {
            Some(named) => self.queue(device, named, |inner| {
                inner.announce_access(device, stream, range)
            }),
            None => self.inner.announce_access(device, stream, range),
        }
    }
}
