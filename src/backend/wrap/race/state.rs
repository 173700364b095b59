//! What the checker knows: a clock a stream, a clock an event, one of the host, and who touched which bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::clock::{Clock, StreamNumber};
use super::report;
use super::shadow::{Access, Shadow};
use crate::backend::{ByteRange, EventHandle, StreamHandle, STREAM_LEGACY, STREAM_PER_THREAD};

/// Who a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Legacy(i32),
    PerThread(i32, u64),
    Other(StreamHandle),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Legacy,
    /// Orders with the legacy stream.
    Blocking,
    NonBlocking,
}

struct Stream {
    key: Key,
    kind: Kind,
    device: i32,
    destroyed: bool,
    /// What work that is queued here from now on comes after; its own ticks too.
    clock: Clock,
}

#[derive(Default)]
pub struct State {
    numbers: HashMap<Key, StreamNumber>,
    streams: HashMap<StreamNumber, Stream>,
    next_stream: StreamNumber,
    events: HashMap<EventHandle, Clock>,
    /// What the host has seen complete: all that is queued from now on comes after it, whichever thread queues it.
    host: Clock,
    shadow: Shadow,
    accesses: u64,
    swept_at: u64,
}

/// So many accesses later, what is over is forgotten.
const SWEEP_EVERY: u64 = 1024;

fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static OWN: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    OWN.with(|own| *own)
}

impl State {
    pub fn created(&mut self, device: i32, handle: StreamHandle, blocking: bool) {
        let kind = if blocking {
            Kind::Blocking
        } else {
            Kind::NonBlocking
        };
        self.add(Key::Other(handle), device, kind);
    }

    /// What is queued still runs, and the legacy stream still waits for it.
    pub fn destroyed(&mut self, handle: StreamHandle) {
        let number = self.numbers.remove(&Key::Other(handle));
        if let Some(stream) = number.and_then(|number| self.streams.get_mut(&number)) {
            stream.destroyed = true;
        }
    }

    fn add(&mut self, key: Key, device: i32, kind: Kind) -> StreamNumber {
        let number = self.next_stream;
        self.next_stream += 1;
        self.numbers.insert(key, number);
        let stream = Stream {
            key,
            kind,
            device,
            destroyed: false,
            clock: Clock::default(),
        };
        self.streams.insert(number, stream);
        number
    }

    fn number(&mut self, device: i32, handle: StreamHandle) -> StreamNumber {
        let (key, kind) = match handle {
            0 | STREAM_LEGACY => (Key::Legacy(device), Kind::Legacy),
            STREAM_PER_THREAD => (Key::PerThread(device, thread_number()), Kind::Blocking),
            _ => (Key::Other(handle), Kind::NonBlocking),
        };
        match self.numbers.get(&key) {
            Some(number) => *number,
            None => self.add(key, device, kind),
        }
    }

    /// The clock of everything that the stream must finish to be done: the legacy stream's work waits for blocking streams.
    pub fn queued_on(&mut self, device: i32, handle: StreamHandle) -> Clock {
        let number = self.number(device, handle);
        let stream = &self.streams[&number];
        let mut clock = stream.clock.clone();
        let others: Option<Kind> = match stream.kind {
            Kind::Legacy => Some(Kind::Blocking),
            Kind::Blocking | Kind::NonBlocking => None,
        };
        self.join_all(&mut clock, device, others);
        clock
    }

    /// The clock of everything that the device must finish to be done.
    pub fn queued_on_device(&self, device: i32) -> Clock {
        let mut clock = Clock::default();
        for kind in [Kind::Legacy, Kind::Blocking, Kind::NonBlocking] {
            self.join_all(&mut clock, device, Some(kind));
        }
        clock
    }

    fn join_all(&self, clock: &mut Clock, device: i32, kind: Option<Kind>) {
        for stream in self.streams.values() {
            if stream.device == device && Some(stream.kind) == kind {
                clock.join(&stream.clock);
            }
        }
    }

    /// Something is queued on the stream: it comes after what the legacy order puts before it.
    fn queue(&mut self, device: i32, handle: StreamHandle) -> StreamNumber {
        let number = self.number(device, handle);
        let before = match self.streams[&number].kind {
            Kind::Legacy => Some(Kind::Blocking),
            Kind::Blocking => Some(Kind::Legacy),
            Kind::NonBlocking => None,
        };
        if before.is_some() {
            let mut clock = std::mem::take(&mut self.stream(number).clock);
            self.join_all(&mut clock, device, before);
            self.stream(number).clock = clock;
        }
        number
    }

    fn stream(&mut self, number: StreamNumber) -> &mut Stream {
        match self.streams.get_mut(&number) {
            Some(stream) => stream,
            None => unreachable!("numbers are those of streams"),
        }
    }

    pub fn recorded(&mut self, device: i32, handle: StreamHandle, event: EventHandle) {
        let number = self.queue(device, handle);
        let clock = self.stream(number).clock.clone();
        self.events.insert(event, clock);
    }

    pub fn waits_for(&mut self, device: i32, handle: StreamHandle, event: EventHandle) {
        let number = self.queue(device, handle);
        let clock = self.event(event);
        self.stream(number).clock.join(&clock);
    }

    /// What the event's latest record covers.
    pub fn event(&self, event: EventHandle) -> Clock {
        self.events.get(&event).cloned().unwrap_or_default()
    }

    pub fn event_destroyed(&mut self, event: EventHandle) {
        self.events.remove(&event);
    }

    /// The host has seen all of this complete.
    pub fn seen_complete(&mut self, clock: &Clock) {
        self.host.join(clock);
    }

    /// Work that touches these bytes was queued on the stream.
    pub fn access(
        &mut self,
        device: i32,
        handle: StreamHandle,
        what: &'static str,
        ranges: impl IntoIterator<Item = ByteRange>,
    ) {
        let number = self.queue(device, handle);
        let own = &mut self.stream(number).clock;
        let tick = own.get(number) + 1;
        own.raise(number, tick);
        self.accesses += 1;
        let mut access = Access {
            number: self.accesses,
            what,
            stream: number,
            tick,
            write: false,
        };
        let (host, own) = (&self.host, &self.streams[&number].clock);
        let is_before = |earlier: &Access| {
            earlier.tick <= own.get(earlier.stream).max(host.get(earlier.stream))
        };
        let mut raced = false;
        for range in ranges {
            let (start, end) = (range.start, range.start.saturating_add(range.length));
            if start >= end {
                continue;
            }
            access.write = range.write;
            // One report for one access: what follows is most likely the same mistake.
            if !raced {
                if let Some(conflict) = self.shadow.conflict(start, end, range.write, is_before) {
                    raced = true;
                    let names = [self.name(conflict.earlier.stream), self.name(number)];
                    report::add(report::between(&conflict, &access, &names));
                }
            }
            self.shadow.note(start, end, access, is_before);
        }
        if self.accesses >= self.swept_at + SWEEP_EVERY {
            self.sweep();
        }
    }

    /// The host itself touches these bytes, or gives them up.
    pub fn host_access(&mut self, what: &str, range: ByteRange) {
        let (start, end) = (range.start, range.start.saturating_add(range.length));
        let host = &self.host;
        let is_before = |earlier: &Access| earlier.tick <= host.get(earlier.stream);
        if let Some(conflict) = self.shadow.conflict(start, end, range.write, is_before) {
            let name = self.name(conflict.earlier.stream);
            report::add(report::with_host(&conflict, what, &name));
        }
    }

    /// The bytes are nobody's any more.
    pub fn freed(&mut self, start: u64, bytes: u64) {
        self.shadow.forget(start, start.saturating_add(bytes));
    }

    fn name(&self, number: StreamNumber) -> String {
        match self.streams.get(&number).map(|stream| stream.key) {
            Some(Key::Legacy(device)) => format!("the legacy stream of device {device}"),
            Some(Key::PerThread(device, thread)) => {
                format!("the own stream of thread {thread} of device {device}")
            }
            Some(Key::Other(handle)) => format!("stream {handle:#x}"),
            None => "a stream that is gone".to_string(),
        }
    }

    /// Forgets what is over, so that a long program needs no more memory than a short one.
    fn sweep(&mut self) {
        self.swept_at = self.accesses;
        let host = &self.host;
        let is_open = |stream: StreamNumber, tick: u64| tick > host.get(stream);
        self.shadow
            .sweep(|access| !is_open(access.stream, access.tick));
        for clock in self.events.values_mut() {
            clock.retain(is_open);
        }
        self.streams.retain(|number, stream| {
            let over = stream.destroyed && !is_open(*number, stream.clock.get(*number));
            // A stream keeps count of its own ticks.
            let own = *number;
            stream
                .clock
                .retain(|number, tick| number == own || is_open(number, tick));
            !over
        });
        let streams = &self.streams;
        self.host.retain(|number, _| streams.contains_key(&number));
    }
}
