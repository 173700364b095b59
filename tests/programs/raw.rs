//! The steps on raw memory: the program's own work on it, and frees that cover that work.

use std::ffi::c_void;
use std::ptr::null_mut;

use cvc::backend::{self, Copy2d, CopyKind};
use cvc::object::memory_id;
use cvc::timeline::Stream;

use super::c_interface::*;
use super::captures::Refusal;
use super::happens_before::Recorded;
use super::model::*;
use super::program::*;
use super::run::*;
use super::slots::*;

type Numbers = [u16; 4];

/// Work of the program's own, or the request that gave the memory: what comes next on other streams comes after that.
struct Use {
    life: Life,
    name: u16,
    number: u64,
    write: bool,
    /// Only the request.
    is_request: bool,
    /// Streams whose work from that number on comes after this.
    before: Vec<(Life, u64)>,
}

impl Use {
    /// What `life` has queued up to `number`, and so what an event there covers, comes after this or is it.
    fn is_covered(&self, life: Life, number: u64) -> bool {
        (self.life == life && self.number < number)
            || self.before.iter().any(|(l, n)| *l == life && *n < number)
    }
}

/// A stream that `cvc_mem_record_stream` named.
struct Held {
    life: Life,
    stream: StreamId,
    pointer: &'static Stream,
}

pub(super) struct Raw {
    pointer: usize,
    memory: MemoryId,
    /// Kept after its last release too.
    cache: cvc_cache_t,
    device: usize,
    bytes: usize,
    /// The first of its bytes, where the program has written them.
    first: Option<u8>,
    uses: Vec<Use>,
    held: Vec<Held>,
    /// The event that covers work on a stream that has ended: it is recorded nowhere else before the free.
    event: Option<usize>,
}

/// So many streams are held at most: the library lets go of some of many that are gone.
const MOST_HELD: usize = 12;

impl Raw {
    fn holds(&self, life: Life) -> bool {
        self.held.iter().any(|held| held.life == life)
    }
}

/// Where an event was last recorded.
pub(super) struct Mark {
    pub(super) life: Life,
    pub(super) stream: StreamId,
    pub(super) pointer: &'static Stream,
    pub(super) number: u64,
    /// The library's own mark at that place; none is made before there is raw memory.
    pub(super) sequence: Option<u64>,
    pub(super) recorded: Recorded,
}

fn memory(pointer: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(pointer)
}

impl Runner {
    pub(super) fn raw_step(&mut self, thread: usize, what: What, numbers: Numbers) {
        match what {
            What::Alloc => self.alloc(thread, numbers),
            What::Work => self.work(thread, numbers),
            What::RecordStream => self.record_stream(thread, numbers),
            What::Free => self.free(thread, numbers),
            _ => self.free_after_event(thread, numbers),
        }
    }

    /// The next number of the program's own order.
    pub(super) fn count_on(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// The work that `life` queues from now on comes after what `other` had queued up to `number`.
    pub(super) fn comes_after(&mut self, life: Life, other: Life, number: u64) {
        let now = self.count_on();
        for raw in self.raws.iter_mut().flatten() {
            for one in &mut raw.uses {
                if one.is_covered(other, number) {
                    one.before.push((life, now));
                }
            }
        }
    }

    /// All that was queued is done, and the host has seen it.
    pub(super) fn forget_uses(&mut self) {
        for raw in self.raws.iter_mut().flatten() {
            raw.uses.clear();
            raw.event = None;
        }
    }

    /// Its owner keeps a stream for raw memory: work on it is not covered yet, or a stream that the library did not create
    /// is held. Where events cover the work they are kept in its place, with `keep_events`.
    pub(super) fn is_kept_for_memory(&mut self, slot: u16, keep_events: bool) -> bool {
        let Some(stream) = &self.streams[usize::from(slot)] else {
            return false;
        };
        let (life, created) = (stream.life, stream.origin == Origin::Created);
        for raw in self.raws.iter_mut().flatten() {
            if raw.holds(life) {
                if !created {
                    return true;
                }
                continue;
            }
            let own = |one: &&Use| one.life == life && !one.is_request;
            let left: Vec<&Use> = raw.uses.iter().filter(own).collect();
            if left.is_empty() {
                continue;
            }
            let marks = self.marks.iter().enumerate();
            let mut covers = marks.filter_map(|(event, mark)| {
                let mark = mark.as_ref()?;
                let covered = |one: &&Use| one.is_covered(mark.life, mark.number);
                left.iter().all(covered).then_some(event)
            });
            let event = covers.find(|event| raw.event.unwrap_or(*event) == *event);
            if event.is_none() {
                return true;
            }
            if keep_events {
                raw.event = event;
            }
        }
        false
    }

    /// Memory is to be freed after the event's record of now.
    pub(super) fn is_event_kept(&self, event: usize) -> bool {
        let mut raws = self.raws.iter().flatten();
        raws.any(|raw| raw.event == Some(event))
    }

    pub(super) fn is_held(&self, stream: &NamedStream) -> bool {
        let mut raws = self.raws.iter().flatten();
        raws.any(|raw| raw.holds(stream.life))
    }

    fn alloc(&mut self, thread: usize, [slot, kind, name, cache]: Numbers) {
        let slot = usize::from(slot % RAWS);
        let device = usize::from(slot == usize::from(RAW_OF_DEVICE_1));
        let kind = &RAW_KINDS[usize::from(kind) % RAW_KINDS.len()];
        let Some(cache) = self.cache(cache).filter(|_| self.raws[slot].is_none()) else {
            return;
        };
        let Ok(place) = self.consumer(name, device, thread) else {
            return;
        };
        let wanted = self.wanted(thread, cache, device, &Form::of_raw(kind), place);
        let (handle, stream) = (self.caches[cache], Self::none_or(place));
        let mut pointer = null_mut();
        let refusal = self.request_refusal(place);
        // SAFETY: a place for the result.
        let made = self.call_as(thread, refusal, &[CVC_STATUS_OUT_OF_MEMORY], || unsafe {
            cvc_mem_alloc(
                handle,
                device as i32,
                kind.bytes,
                kind.alignment,
                stream,
                &mut pointer,
            )
        });
        if !made {
            return self.not_made(&wanted, refusal);
        }
        let pointer = pointer.expose_provenance();
        let id = memory_id(pointer as u64).expect("it was just given");
        let memory = self.obtained(id, &wanted);
        self.note_address(memory, pointer as u64);
        let aligned = pointer % kind.alignment.max(1) == 0;
        assert!(aligned, "{pointer:#x} for {}", kind.alignment);
        let mut raw = Raw {
            pointer,
            memory,
            cache: handle,
            device,
            bytes: kind.bytes,
            first: None,
            uses: Vec::new(),
            held: Vec::new(),
            event: None,
        };
        if let Some(place) = place {
            raw.uses.push(Use {
                life: place.life,
                name: place.name,
                number: self.count_on(),
                write: true,
                is_request: true,
                before: Vec::new(),
            });
        }
        self.raws[slot] = Some(raw);
    }

    /// The stream of that name is still the one it was.
    fn same_stream(
        &mut self,
        name: u16,
        life: Life,
        device: usize,
        thread: usize,
    ) -> Option<Place> {
        let place = self.stream(name, device, thread);
        place.filter(|place| place.life == life)
    }

    /// Makes the stream wait for what others did with the memory, as far as work of that kind has to.
    fn order_work(&mut self, slot: usize, place: Place, write: bool, thread: usize) -> bool {
        let now = self.count_on();
        let Some(raw) = &self.raws[slot] else {
            return false;
        };
        let device = raw.device;
        let open = raw.uses.iter().filter(|one| one.write || write);
        let open = open.filter(|one| !one.is_covered(place.life, now));
        let open: Vec<_> = open.map(|one| (one.name, one.life)).collect();
        for (name, life) in open {
            let Some(other) = self.same_stream(name, life, device, thread) else {
                return false;
            };
            // It would join the capture.
            if self.captures.refuse(life) {
                return false;
            }
            if !self.wait_for_stream(thread, place, other) {
                return false;
            }
        }
        true
    }

    /// A copy to or from the memory, past the library.
    fn work(&mut self, thread: usize, [slot, name, write, first]: Numbers) {
        let (slot, write) = (usize::from(slot % RAWS), write % 2 == 1);
        let Some((device, bytes)) = self.raws[slot].as_ref().map(|raw| (raw.device, raw.bytes))
        else {
            return;
        };
        let Some(place) = self.stream(name, device, thread) else {
            return;
        };
        // It would go into the graph, which is never run.
        if self.captures.refuse(place.life) {
            return;
        }
        // Another thread that frees the memory could not name it.
        let named = name != PER_THREAD || self.hold(thread, slot, place);
        if !named || !self.order_work(slot, place, write, thread) {
            return;
        }
        let Some(raw) = &mut self.raws[slot] else {
            return;
        };
        let (first, pointer) = (first as u8, raw.pointer as u64);
        let mut buffer = match write {
            true => counted_from(first, bytes).into_boxed_slice(),
            false => vec![0; bytes].into_boxed_slice(),
        };
        let host = buffer.as_mut_ptr().expose_provenance() as u64;
        let (kind, src, dst) = match write {
            true => (CopyKind::HostToDevice, host, pointer),
            false => (CopyKind::DeviceToHost, pointer, host),
        };
        let first_read = raw.first.filter(|_| !write);
        let values = first_read.map(|first| counted_from(first, bytes));
        let queued = self.own_copy(thread, place, kind, [src, dst], bytes);
        let number = self.count_on();
        let Some(raw) = &mut self.raws[slot] else {
            return;
        };
        if write {
            raw.first = queued.then_some(first);
        }
        match values.filter(|_| queued) {
            Some(values) => self.downloads.push(Download {
                device,
                got: buffer,
                values,
            }),
            None => self.sources.push(buffer),
        }
        if queued {
            raw.uses.push(Use {
                life: place.life,
                name,
                number,
                write,
                is_request: false,
                before: Vec::new(),
            });
        }
    }

    /// Work of the program's own, past the library. Whether it was queued.
    pub(super) fn own_copy(
        &mut self,
        thread: usize,
        place: Place,
        kind: CopyKind,
        [src, dst]: [u64; 2],
        bytes: usize,
    ) -> bool {
        let copy = Copy2d {
            kind,
            src,
            src_pitch: bytes as u64,
            dst,
            dst_pitch: bytes as u64,
            width: bytes as u64,
            height: 1,
        };
        let (device, handle) = (place.pointer.device(), place.handle as usize);
        let queued = self.threads.on(thread, || {
            let backend = backend::current().expect("it has started");
            backend.copy_2d(device, handle, &copy)
        });
        self.look_for_a_fault();
        assert!(queued.is_ok() || self.fault_was_hit, "{queued:?}");
        queued.is_ok()
    }

    /// Names the stream, once.
    fn hold(&mut self, thread: usize, slot: usize, place: Place) -> bool {
        let Some(raw) = &self.raws[slot] else {
            return false;
        };
        let same = |held: &Held| std::ptr::eq(held.pointer, place.pointer);
        if raw.held.iter().any(same) {
            return true;
        }
        if raw.held.len() >= MOST_HELD {
            return false;
        }
        let (cache, pointer) = (raw.cache, raw.pointer);
        let refusal = Refusal::when(self.captures.refuse(place.life));
        // SAFETY: handles.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_mem_record_stream(cache, memory(pointer), place.handle)
        });
        if let (true, Some(raw)) = (done, &mut self.raws[slot]) {
            raw.held.push(Held {
                life: place.life,
                stream: place.stream,
                pointer: place.pointer,
            });
            self.tally.streams_recorded += 1;
        }
        done
    }

    fn record_stream(&mut self, thread: usize, [slot, name, ..]: Numbers) {
        let slot = usize::from(slot % RAWS);
        let Some(device) = self.raws[slot].as_ref().map(|raw| raw.device) else {
            return;
        };
        if let Some(place) = self.stream(name, device, thread) {
            self.hold(thread, slot, place);
        }
    }

    /// Names the streams that have worked on the memory and that a free on `place`, or after `event`, would leave out. `false`
    /// where one cannot be named.
    fn name_the_rest(
        &mut self,
        thread: usize,
        slot: usize,
        place: Option<Place>,
        event: Option<usize>,
    ) -> bool {
        let now = self.count_on();
        let Some(raw) = &self.raws[slot] else {
            return false;
        };
        let mark = event.and_then(|event| self.marks[event].as_ref());
        let device = raw.device;
        let own = raw.uses.iter().filter(|one| !one.is_request);
        let left_out = own.filter(|one| {
            let mut held = raw.held.iter();
            let counts = |held: &Held| !mark.is_some_and(|mark| mark.is_of(held));
            !(place.is_some_and(|place| one.is_covered(place.life, now))
                || mark.is_some_and(|mark| one.is_covered(mark.life, mark.number))
                || held.any(|held| counts(held) && one.is_covered(held.life, now)))
        });
        let left_out: Vec<_> = left_out.map(|one| (one.name, one.life)).collect();
        let own = mark.map(|mark| (mark.life, mark.sequence.is_some()));
        left_out.into_iter().all(|(name, life)| {
            // Of the event's own stream only what the event covers counts.
            let user = self.same_stream(name, life, device, thread);
            own != Some((life, true)) && user.is_some_and(|user| self.hold(thread, slot, user))
        })
    }

    /// Frees on the stream, after naming those that would be left out.
    pub(super) fn free(&mut self, thread: usize, [slot, name, ..]: Numbers) {
        let slot = usize::from(slot % RAWS);
        let Some((device, event)) = self.raws[slot].as_ref().map(|raw| (raw.device, raw.event))
        else {
            return;
        };
        if let Some(event) = event {
            return self.free_after_event(thread, [slot as u16, event as u16, 0, 0]);
        }
        let Ok(place) = self.consumer(name, device, thread) else {
            return;
        };
        if !self.name_the_rest(thread, slot, place, None) {
            return;
        }
        let Some((cache, pointer)) = self.raws[slot].as_ref().map(|raw| (raw.cache, raw.pointer))
        else {
            return;
        };
        let stream = Self::none_or(place);
        let refusal = self.free_refusal(thread, slot, place, None);
        // SAFETY: handles.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_mem_free(cache, memory(pointer), stream)
        });
        if let Some(raw) = self.raws[slot].take_if(|_| done) {
            self.tally.freed += 1;
            let streams = place.map(|place| Held {
                life: place.life,
                stream: place.stream,
                pointer: place.pointer,
            });
            self.freed(thread, &raw, streams, None);
        }
    }

    /// Whether a free is refused: it would have to record an event on a stream that captures. For another thread's own stream
    /// the legacy stream stands in.
    fn free_refusal(
        &self,
        thread: usize,
        slot: usize,
        place: Option<Place>,
        event: Option<usize>,
    ) -> Refusal {
        let mark = event.and_then(|event| self.marks[event].as_ref());
        let held = self.raws[slot].iter().flat_map(|raw| &raw.held);
        let held = held.filter(|held| !mark.is_some_and(|mark| mark.is_of(held)));
        let mut lives = held.map(|held| held.life);
        let of_others = |life: Life| {
            let mut threads = self.thread_lives.iter().enumerate();
            threads.any(|(other, own)| other != thread && *own == life && self.threads.runs(other))
        };
        let captures = |life: Life| {
            self.captures.refuse(life) || (of_others(life) && self.captures.bar_legacy())
        };
        let named = place.is_some_and(|place| self.captures.refuse(place.life));
        Refusal::when(named || lives.any(captures))
    }

    fn free_after_event(&mut self, thread: usize, [slot, event, ..]: Numbers) {
        let (slot, event) = (usize::from(slot % RAWS), usize::from(event % EVENTS));
        let of_device_0 = self.raws[slot].as_ref().filter(|raw| raw.device == 0);
        if let (Some(raw), Some(_)) = (of_device_0, self.captures.records[event]) {
            let (cache, pointer, handle) = (raw.cache, raw.pointer, self.events[event]);
            // SAFETY: handles.
            let freed = self.call(thread, &[CVC_STATUS_INVALID_EVENT], || unsafe {
                cvc_mem_free_after_event(cache, memory(pointer), handle)
            });
            assert!(!freed, "a record in a capture stands for nothing outside");
            return;
        }
        let (Some(raw), Some(_)) = (&self.raws[slot], &self.marks[event]) else {
            return;
        };
        if raw.device != 0 || raw.event.is_some_and(|kept| kept != event) {
            return;
        }
        let (cache, pointer, handle) = (raw.cache, raw.pointer, self.events[event]);
        if !self.name_the_rest(thread, slot, None, Some(event)) {
            return;
        }
        let refusal = self.free_refusal(thread, slot, None, Some(event));
        // SAFETY: handles.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_mem_free_after_event(cache, memory(pointer), handle)
        });
        if let Some(raw) = self.raws[slot].take_if(|_| done) {
            self.tally.freed_after_events += 1;
            self.freed(thread, &raw, None, Some(event));
        }
    }

    /// Notes what the free left to wait for: the event's record, the stream of the call, and those that were named.
    fn freed(&mut self, thread: usize, raw: &Raw, stream: Option<Held>, event: Option<usize>) {
        let mark = event.and_then(|event| self.marks[event].as_ref());
        if let Some((mark, sequence)) = mark.and_then(|mark| Some((mark, mark.sequence?))) {
            let order = mark.recorded.clone();
            self.model
                .add_access(raw.memory, mark.stream, sequence, Some(&order));
        }
        let others = raw.held.iter();
        let others = others.filter(|held| !mark.is_some_and(|mark| mark.is_of(held)));
        let mut pointers: Vec<&'static Stream> = Vec::new();
        let mut lives = Vec::new();
        for held in stream.iter().chain(others) {
            lives.push(held.life);
            if !pointers
                .iter()
                .any(|known| std::ptr::eq(*known, held.pointer))
            {
                pointers.push(held.pointer);
                let sequence = held.pointer.last_submitted();
                self.model
                    .add_access(raw.memory, held.stream, sequence, None);
            }
        }
        self.just_freed_on = lives;
        self.let_go(raw.memory, thread);
        if self.model.exact {
            let Memory { cache, device, .. } = self.model.memories[raw.memory];
            let index = self.index(thread, cache);
            self.model.retire(cache, index, device);
        }
    }
}

impl Mark {
    /// The free leaves out a stream that was named where it is the event's own.
    fn is_of(&self, held: &Held) -> bool {
        let same = std::ptr::eq(self.pointer, held.pointer) && self.life == held.life;
        same && self.sequence.is_some()
    }
}
