//! The race checker: reports each access to memory that is not ordered after the previous conflicting one.
//!
//! It sees what is asked of the backend and nothing else: it knows of no cache and shares nothing with `timeline`, so that
//! it can catch the library being wrong. Order comes from the stream, from events recorded and waited for, from the legacy
//! stream's rules, and from what the host has seen complete by waits and queries; the last is one clock for all threads.

mod clock;
pub mod report;
mod shadow;
mod state;

use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;

use self::state::State;
use crate::backend::{
    Backend, BackendKind, ByteRange, Copy2d, CopyKind, DeviceInfo, DevicePointer, EventHandle,
    Fill2d, Launch, Stepping, StreamHandle, StreamIdentity,
};
use crate::error::Result;

pub struct RaceChecker {
    inner: Box<dyn Backend>,
    /// Held over what queues, so that the checker's order is the queue's; not over waits.
    state: Mutex<State>,
}

/// Of more rows than these the bytes between are taken to be touched too.
const MAX_ROWS: u64 = 4096;

impl RaceChecker {
    pub fn new(inner: Box<dyn Backend>) -> RaceChecker {
        RaceChecker {
            inner,
            state: Mutex::default(),
        }
    }

    /// Queues something, and notes it where that succeeded.
    fn queue<T>(
        &self,
        queue: impl FnOnce() -> Result<T>,
        note: impl FnOnce(&mut State, &T),
    ) -> Result<T> {
        let mut state = self.state.lock();
        let result = queue();
        if let Ok(value) = &result {
            note(&mut state, value);
        }
        result
    }

    /// Asks or waits for what is queued by now; the host has seen it complete where the answer is yes.
    fn look(
        &self,
        queued: impl FnOnce(&mut State) -> clock::Clock,
        look: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        let queued = queued(&mut self.state.lock());
        let done = look()?;
        if done {
            self.state.lock().seen_complete(&queued);
        }
        Ok(done)
    }
}

/// The bytes of some rows.
fn rows(start: u64, pitch: u64, width: u64, height: u64, write: bool) -> SmallVec<[ByteRange; 2]> {
    let range = |start, length| ByteRange {
        start,
        length,
        write,
    };
    let mut ranges = SmallVec::new();
    if width == 0 || height == 0 {
        return ranges;
    }
    if height == 1 || pitch <= width || height > MAX_ROWS {
        let span = (height - 1).saturating_mul(pitch).saturating_add(width);
        ranges.push(range(start, span));
    } else {
        ranges.extend((0..height).map(|row| range(start + row * pitch, width)));
    }
    ranges
}

impl Backend for RaceChecker {
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
        stream_identify(stream: StreamHandle) -> Result<StreamIdentity>;
        stream_is_capturing(device: i32, stream: StreamHandle) -> Result<bool>;
        stream_capture(device: i32, stream: StreamHandle) -> Result<Option<u64>>;
        event_create(device: i32, timing: bool) -> Result<EventHandle>;
        event_elapsed_ms(device: i32, start: EventHandle, end: EventHandle) -> Result<f32>;
        latch_create(device: i32, stream: StreamHandle) -> Result<u64>;
        latch_open(latch: u64) -> Result<()>;
        stepping() -> Option<&dyn Stepping>;
    }

    fn memory_free(&self, device: i32, pointer: DevicePointer, bytes: u64) -> Result<()> {
        let given_up = ByteRange {
            start: pointer,
            length: bytes,
            write: true,
        };
        self.state.lock().host_access("frees", given_up);
        // Under the lock: the next owner of the bytes must not come before they are forgotten.
        self.queue(
            || self.inner.memory_free(device, pointer, bytes),
            |state, ()| state.freed(pointer, bytes),
        )
    }

    fn stream_create(&self, device: i32, blocking: bool) -> Result<StreamHandle> {
        self.queue(
            || self.inner.stream_create(device, blocking),
            |state, handle| state.created(device, *handle, blocking),
        )
    }

    fn stream_destroy(&self, device: i32, stream: StreamHandle) -> Result<()> {
        self.queue(
            || self.inner.stream_destroy(device, stream),
            |state, ()| state.destroyed(stream),
        )
    }

    fn stream_query(&self, device: i32, stream: StreamHandle) -> Result<bool> {
        self.look(
            |state| state.queued_on(device, stream),
            || self.inner.stream_query(device, stream),
        )
    }

    fn stream_synchronize(
        &self,
        device: i32,
        stream: StreamHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.look(
            |state| state.queued_on(device, stream),
            || self.inner.stream_synchronize(device, stream, timeout),
        )
    }

    fn stream_wait_event(
        &self,
        device: i32,
        stream: StreamHandle,
        event: EventHandle,
    ) -> Result<()> {
        self.queue(
            || self.inner.stream_wait_event(device, stream, event),
            |state, ()| state.waits_for(device, stream, event),
        )
    }

    fn event_destroy(&self, device: i32, event: EventHandle) -> Result<()> {
        self.queue(
            || self.inner.event_destroy(device, event),
            |state, ()| state.event_destroyed(event),
        )
    }

    fn event_record(&self, device: i32, event: EventHandle, stream: StreamHandle) -> Result<()> {
        self.queue(
            || self.inner.event_record(device, event, stream),
            |state, ()| state.recorded(device, stream, event),
        )
    }

    fn event_query(&self, device: i32, event: EventHandle) -> Result<bool> {
        self.look(
            |state| state.event(event),
            || self.inner.event_query(device, event),
        )
    }

    fn event_synchronize(
        &self,
        device: i32,
        event: EventHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.look(
            |state| state.event(event),
            || self.inner.event_synchronize(device, event, timeout),
        )
    }

    fn copy_2d(&self, device: i32, stream: StreamHandle, copy: &Copy2d) -> Result<()> {
        let what = match copy.kind {
            CopyKind::HostToDevice => "copy from the host",
            CopyKind::DeviceToHost => "copy to the host",
            CopyKind::DeviceToDevice => "copy",
        };
        let mut ranges = rows(copy.src, copy.src_pitch, copy.width, copy.height, false);
        ranges.extend(rows(
            copy.dst,
            copy.dst_pitch,
            copy.width,
            copy.height,
            true,
        ));
        self.queue(
            || self.inner.copy_2d(device, stream, copy),
            |state, ()| state.access(device, stream, what, ranges),
        )
    }

    fn fill_zero_2d(&self, device: i32, stream: StreamHandle, fill: &Fill2d) -> Result<()> {
        let ranges = rows(fill.dst, fill.pitch, fill.width, fill.height, true);
        self.queue(
            || self.inner.fill_zero_2d(device, stream, fill),
            |state, ()| state.access(device, stream, "fill", ranges),
        )
    }

    fn launch(&self, device: i32, stream: StreamHandle, launch: &Launch) -> Result<()> {
        self.queue(
            || self.inner.launch(device, stream, launch),
            |state, ()| {
                let ranges = launch.ranges.iter().copied();
                state.access(device, stream, launch.kernel.name, ranges);
            },
        )
    }

    fn device_synchronize(&self, device: i32, timeout: Option<Duration>) -> Result<bool> {
        self.look(
            |state| state.queued_on_device(device),
            || self.inner.device_synchronize(device, timeout),
        )
    }

    fn announce_access(
        &self,
        device: i32,
        stream: Option<StreamHandle>,
        range: ByteRange,
    ) -> Result<()> {
        self.inner.announce_access(device, stream, range)?;
        let mut state = self.state.lock();
        match stream {
            Some(stream) => state.access(device, stream, "announced work", [range]),
            None if range.write => state.host_access("writes", range),
            None => state.host_access("reads", range),
        }
        Ok(())
    }
}
