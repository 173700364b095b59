//! The steps on streams, events, threads, limits and caches, the planned faults, and a program's end.

use std::ffi::CString;
use std::ptr::null_mut;

use cvc::backend;

use super::c_interface::*;
use super::captures::Refusal;
use super::look::*;
use super::print::fault_status;
use super::program::*;
use super::raw::Mark;
use super::run::*;
use super::slots::*;

type Numbers = [u16; 4];

impl Runner {
    pub(super) fn other_step(&mut self, thread: usize, what: What, numbers: Numbers) {
        let device = usize::from(numbers[0] % 2);
        match what {
            What::NewStream => self.new_stream(thread, numbers),
            What::EndStream => self.end_stream(thread, numbers[0]),
            What::Register => self.register(thread, numbers[0]),
            What::WaitStream => self.wait_stream(thread, numbers),
            What::RecordEvent => self.record_event(thread, numbers),
            What::WaitEvent => self.wait_event(thread, numbers),
            What::QueryEvent | What::SyncEvent => self.ask_event(thread, what, numbers[0]),
            What::QueryStream | What::SyncStream => self.ask_stream(thread, what, numbers[0]),
            What::SyncDevice => self.sync_device(thread, device),
            What::SyncCache => self.sync_cache(thread, numbers),
            What::SetLimit => self.limit(thread, numbers),
            What::Clear => self.clear(thread, numbers),
            What::Trim => {
                let cache = self.caches[0];
                // SAFETY: no preconditions.
                self.call(thread, &[], || unsafe {
                    cvc_cache_trim(cache, device as i32, 0)
                });
            }
            What::Count => self.count(thread, numbers[0]),
            What::EndThread => self.end_thread(thread),
            What::Detach => self.detach(thread, numbers[0]),
            What::NewCache => self.new_cache(thread, numbers[0]),
            What::EndCache => self.end_cache(thread),
            What::Fault => self.plan(numbers),
            _ => self.settle(),
        }
    }

    fn new_stream(&mut self, thread: usize, [slot, flavour, ..]: Numbers) {
        let slot = slot % STREAMS;
        if self.streams[usize::from(slot)].is_some() {
            return;
        }
        let device = usize::from(slot == STREAM_OF_DEVICE_1);
        let (origin, blocking) = match flavour % 4 {
            0 => (Origin::Created, false),
            1 => (Origin::Created, true),
            2 => (Origin::Foreign, false),
            _ => (Origin::Registered, false),
        };
        let handle = if origin == Origin::Created {
            let mut stream = null_mut();
            let flags = if blocking { CVC_STREAM_BLOCKING } else { 0 };
            // SAFETY: a place for the result.
            let made = self.call(thread, &[], || unsafe {
                cvc_stream_create(device as i32, flags, &mut stream)
            });
            if !made {
                return;
            }
            stream as usize
        } else {
            let backend = backend::current().expect("it has started");
            backend
                .stream_create(device as i32, blocking)
                .expect("there are streams")
        };
        let mut origin = origin;
        if origin == Origin::Registered {
            let stream = std::ptr::without_provenance_mut(handle);
            // SAFETY: a stream that lives until it is unregistered.
            let done = self.call(thread, &[], || unsafe {
                cvc_stream_register(device as i32, stream, 0)
            });
            if !done {
                origin = Origin::Foreign;
            }
        }
        self.forget_name(slot);
        let life = self.new_life();
        self.streams[usize::from(slot)] = Some(NamedStream {
            handle,
            life,
            device,
            origin,
            is_blocking: blocking,
        });
    }

    fn is_lent_to(&self, slot: u16) -> bool {
        let names = |export: &Export| export.consumer.is_some_and(|place| place.name == slot);
        self.exports.iter().flatten().any(names)
    }

    /// Queued work still runs. An export's stream lives until the export ends, one that raw memory was used on until the free.
    fn end_stream(&mut self, thread: usize, slot: u16) {
        let slot = slot % STREAMS;
        if self.is_lent_to(slot) {
            return;
        }
        let Some(stream) = &self.streams[usize::from(slot)] else {
            return;
        };
        let (handle, device, origin) = (stream.handle, stream.device, stream.origin);
        let (life, held) = (stream.life, self.is_held(stream));
        // A capture keeps its streams.
        if self.captures.has(life) || self.is_kept_for_memory(slot, false) {
            return;
        }
        let native = std::ptr::without_provenance_mut(handle);
        let destroy = || match origin {
            // SAFETY: a stream that nobody uses any more.
            Origin::Created => unsafe { cvc_stream_destroy(native) },
            // SAFETY: as above.
            Origin::Registered => unsafe { cvc_stream_unregister(native) },
            Origin::Foreign => CVC_STATUS_OK,
        };
        let done = self.call(thread, &[], destroy);
        self.note_end(slot);
        if !done {
            return;
        }
        if origin != Origin::Created {
            let backend = backend::current().expect("it has started");
            if backend.stream_destroy(device as i32, handle).is_err() {
                self.look_for_a_fault();
                backend
                    .stream_destroy(device as i32, handle)
                    .expect("the fault is over");
            }
        }
        self.tally.held_streams_ended += u64::from(held);
        self.is_kept_for_memory(slot, true);
        let after_a_free = origin != Origin::Created && self.just_freed_on.contains(&life);
        self.tally.foreign_ended_after_a_free += u64::from(after_a_free);
        self.streams[usize::from(slot)] = None;
        self.forget_name(slot);
    }

    /// A foreign stream becomes registered, a registered one foreign.
    fn register(&mut self, thread: usize, slot: u16) {
        let slot = slot % STREAMS;
        if self.is_lent_to(slot) {
            return;
        }
        let Some(stream) = &self.streams[usize::from(slot)] else {
            return;
        };
        if self.captures.has(stream.life) {
            return;
        }
        let (device, origin, held) = (stream.device as i32, stream.origin, self.is_held(stream));
        let native = std::ptr::without_provenance_mut(stream.handle);
        let (done, now) = match origin {
            Origin::Created => return,
            // SAFETY: a stream that lives.
            Origin::Foreign => (
                self.call(thread, &[], || unsafe {
                    cvc_stream_register(device, native, 0)
                }),
                Origin::Registered,
            ),
            // SAFETY: as above.
            Origin::Registered => (
                self.call(thread, &[], || unsafe { cvc_stream_unregister(native) }),
                Origin::Foreign,
            ),
        };
        self.note_end(slot);
        if let (true, Some(stream)) = (done, &mut self.streams[usize::from(slot)]) {
            stream.origin = now;
            // The library goes on with a stream that somebody holds, as its owner's.
            if now == Origin::Registered || !held {
                self.forget_name(slot);
            }
        }
    }

    /// A stream for a call that names no device: a default stream is that of device 0.
    pub(super) fn stream_alone(&mut self, name: u16, thread: usize) -> Option<Place> {
        let device = usize::from(name == STREAM_OF_DEVICE_1);
        self.stream(name, device, thread)
    }

    fn wait_stream(&mut self, thread: usize, [name, other, ..]: Numbers) {
        let (Some(waits), Some(other)) = (
            self.stream_alone(name, thread),
            self.stream_alone(other, thread),
        ) else {
            return;
        };
        self.wait_for_stream(thread, waits, other);
    }

    pub(super) fn wait_for_stream(&mut self, thread: usize, waits: Place, other: Place) -> bool {
        let refusal = self.stream_wait_refusal(waits, other);
        // SAFETY: handles.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_stream_wait_stream(waits.handle, other.handle)
        });
        let is_joined = done && self.joins(waits, self.capture_of(other));
        if done && !is_joined {
            let recorded = self.model.record(other.stream);
            self.model.wait(waits.stream, &recorded);
            let now = self.count_on();
            self.comes_after(waits.life, other.life, now);
        }
        done
    }

    fn record_event(&mut self, thread: usize, [event, name, ..]: Numbers) {
        let event = usize::from(event % EVENTS);
        if name == STREAM_OF_DEVICE_1 || self.is_event_kept(event) {
            return;
        }
        let Some(place) = self.stream_alone(name, thread) else {
            return;
        };
        let handle = self.events[event];
        let before = place.pointer.last_submitted();
        let barred = name == LEGACY && self.captures.bar_legacy();
        let refusal = Refusal::when(barred || self.captures.is_unknown(place.life));
        // SAFETY: handles.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_event_record(handle, place.handle)
        });
        if refusal == Refusal::Surely {
            return;
        }
        let capture = self.capture_of(place);
        if done {
            self.captures.records[event] = capture;
        }
        if capture.is_some() {
            if done {
                (self.recorded[event], self.marks[event]) = (None, None);
            }
            return;
        }
        // The library may have numbered the place, and left an event of its own there.
        let mark = place.pointer.last_submitted();
        self.model.last[place.stream] = mark;
        self.recorded[event] = done.then(|| self.model.record(place.stream));
        if done {
            self.marks[event] = Some(Mark {
                life: place.life,
                stream: place.stream,
                pointer: place.pointer,
                number: self.count_on(),
                sequence: (mark > before).then_some(mark),
                recorded: self.model.record(place.stream),
            });
        }
    }

    fn wait_event(&mut self, thread: usize, [event, name, ..]: Numbers) {
        let event = usize::from(event % EVENTS);
        let Some(place) = self.stream_alone(name, thread) else {
            return;
        };
        let handle = self.events[event];
        let refusal = self.event_wait_refusal(place, event);
        // SAFETY: handles.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_stream_wait_event(place.handle, handle)
        });
        if done && self.joins(place, self.captures.records[event]) {
            return;
        }
        if let (true, Some(recorded)) = (done, &self.recorded[event]) {
            self.model.wait(place.stream, recorded);
        }
        if let (true, Some(mark)) = (done, &self.marks[event]) {
            let (life, number) = (mark.life, mark.number);
            self.comes_after(place.life, life, number);
        }
    }

    fn ask_event(&mut self, thread: usize, what: What, event: u16) {
        let event = usize::from(event % EVENTS);
        let (handle, asks) = (self.events[event], what == What::QueryEvent);
        let refusal = Refusal::when(self.captures.records[event].is_some());
        let allowed = [CVC_STATUS_NOT_READY];
        // SAFETY: a handle.
        self.call_as(thread, refusal, &allowed[usize::from(!asks)..], || unsafe {
            match asks {
                true => cvc_event_query(handle),
                false => cvc_event_synchronize(handle, -1),
            }
        });
    }

    fn ask_stream(&mut self, thread: usize, what: What, name: u16) {
        let Some(place) = self.stream_alone(name, thread) else {
            return;
        };
        let barred = name == LEGACY && self.captures.bar_legacy();
        let refusal = Refusal::when(barred || self.captures.refuse(place.life));
        if what == What::QueryStream {
            let allowed = [CVC_STATUS_NOT_READY];
            // SAFETY: a handle.
            self.call_as(thread, refusal, &allowed, || unsafe {
                cvc_stream_query(place.handle)
            });
            return;
        }
        // SAFETY: a handle.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_stream_synchronize(place.handle, -1)
        });
        if done {
            self.retire_everywhere(thread, usize::from(name == STREAM_OF_DEVICE_1));
        }
    }

    fn retire_everywhere(&mut self, thread: usize, device: usize) {
        if self.model.exact {
            self.see();
            for cache in 0..self.caches.len() {
                let own = self.index(thread, cache);
                self.unsure |= self.model.retire_all(cache, device, own);
            }
            self.model.tell_of_closed_caches();
        }
    }

    fn sync_device(&mut self, thread: usize, device: usize) {
        let refusal = self.break_captures(device);
        // SAFETY: no preconditions.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_device_synchronize(device as i32, -1)
        });
        if done {
            self.retire_everywhere(thread, device);
            self.read_downloads(Some(device));
        }
    }

    fn sync_cache(&mut self, thread: usize, [cache, device, ..]: Numbers) {
        let (Some(cache), device) = (self.cache(cache), usize::from(device % 2)) else {
            return;
        };
        let (handle, refusal) = (self.caches[cache], self.refusal_to_wait());
        // SAFETY: no preconditions.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_cache_synchronize(handle, device as i32, -1)
        });
        if done && self.model.exact {
            self.see();
            let own = self.index(thread, cache);
            self.unsure |= self.model.retire_all(cache, device, own);
        }
    }

    fn limit(&mut self, thread: usize, [limit, cache, device, _]: Numbers) {
        let (Some(cache), device) = (self.cache(cache), usize::from(device % 2)) else {
            return;
        };
        let bytes = LIMITS[usize::from(limit) % LIMITS.len()];
        let handle = self.caches[cache];
        if self.call(thread, &[], || set_limit(handle, device, bytes)) {
            if let Some(index) = self.index(thread, cache) {
                self.model.set_limit(cache, index, device, bytes as u64);
            }
        }
    }

    fn clear(&mut self, thread: usize, [local, cache, device, _]: Numbers) {
        let (Some(cache), device) = (self.cache(cache), usize::from(device % 2)) else {
            return;
        };
        let scope = if local % 2 == 1 {
            CVC_SCOPE_LOCAL
        } else {
            CVC_SCOPE_GLOBAL
        };
        let (handle, refusal) = (self.caches[cache], self.refusal_to_wait());
        // SAFETY: no preconditions.
        let done = self.call_as(thread, refusal, &[], || unsafe {
            cvc_cache_clear(handle, device as i32, scope)
        });
        if done && self.model.exact {
            // A wait for one stream may have been one for what that had waited for.
            self.ask_all();
            self.look_for_a_fault();
        }
        if done && self.model.exact {
            self.see();
            let own = self.index(thread, cache).filter(|_| local % 2 == 1);
            let judged = self.model.clear(cache, device, own);
            self.judged(judged);
        }
    }

    fn count(&mut self, thread: usize, cache: u16) {
        let Some(cache) = self.cache(cache) else {
            return;
        };
        let handle = self.caches[cache];
        let (mut all, mut own) = (0, 0);
        self.threads.on(thread, || {
            // SAFETY: places for the results.
            unsafe {
                ok(cvc_cache_count(handle, 0, CVC_SCOPE_GLOBAL, &mut all));
                ok(cvc_cache_count(handle, 0, CVC_SCOPE_LOCAL, &mut own));
            }
        });
        assert!(
            own <= all,
            "{own} entries are the thread's own and {all} everybody's"
        );
        self.look_for_a_fault();
        if let (true, Some(index)) = (self.model.exact, self.index(thread, cache)) {
            self.model.look();
            let expected = (
                self.model.totals(cache, 0).count,
                self.model.count_of(index, 0),
            );
            assert_eq!((all, own), expected, "entries of all threads, and of one");
        }
    }

    fn end_indexes(&mut self, thread: usize) {
        for (cache, index) in std::mem::take(&mut self.own_indexes[thread])
            .into_iter()
            .enumerate()
        {
            if index != NO_INDEX {
                self.model.end_index(cache, index);
            }
        }
        self.known_as
            .retain(|(name, whose, _), _| *name != PER_THREAD || *whose != thread);
        self.per_thread_used[thread] = false;
    }

    fn end_thread(&mut self, thread: usize) {
        if thread == 0 || !self.threads.runs(thread) {
            return;
        }
        self.threads.end(thread);
        self.tally.threads_ended += 1;
        self.end_indexes(thread);
    }

    fn detach(&mut self, thread: usize, cache: u16) {
        let Some(cache) = self.cache(cache) else {
            return;
        };
        let handle = self.caches[cache];
        // SAFETY: no preconditions.
        self.call(thread, &[], || unsafe { cvc_cache_thread_detach(handle) });
        if let Some(index) = self.index(thread, cache) {
            self.model.end_index(cache, index);
        }
        self.make_index(thread, cache);
    }

    fn new_cache(&mut self, thread: usize, limit: u16) {
        if self.cache(1).is_some() {
            return;
        }
        let limit = LIMITS[usize::from(limit) % LIMITS.len()];
        let options = cvc_cache_options_t {
            struct_size: std::mem::size_of::<cvc_cache_options_t>(),
            flags: 0,
            limit,
        };
        let mut cache = null_mut();
        // SAFETY: options and a place for the result.
        if self.call(thread, &[], || unsafe {
            cvc_cache_create(&options, &mut cache)
        }) {
            self.add_cache(cache, limit);
        }
    }

    fn end_cache(&mut self, thread: usize) {
        let Some(cache) = self.cache(1) else {
            return;
        };
        let handle = self.caches[cache];
        // SAFETY: a handle, released once.
        self.call(thread, &[], || unsafe { cvc_cache_release(handle) });
        self.tally.caches_closed += 1;
        self.model.close(cache);
    }

    fn plan(&mut self, [call, skip, status, _]: Numbers) {
        let call = usize::from(call) % FAULTY_CALLS.len();
        self.end_plan();
        let name = FAULTY_CALLS[call];
        let text = CString::new(name).expect("no name has a zero");
        let status = match fault_status(name, status) {
            "OUT_OF_MEMORY" => CVC_STATUS_OUT_OF_MEMORY,
            "NOT_READY" => CVC_STATUS_NOT_READY,
            _ => CVC_STATUS_DEVICE_ERROR,
        };
        // SAFETY: a name.
        ok(unsafe { cvc_host_fault(text.as_ptr(), u64::from(skip % 3), 1, status) });
        self.planned = Some(call);
    }

    /// Lets go of everything, and looks whether all has gone back.
    pub fn end(mut self) -> Tally {
        self.end_plan();
        self.end_captures();
        for export in 0..EXPORTS {
            self.end_export(0, export);
        }
        for slot in 0..TENSORS {
            self.release_tensor(0, slot);
        }
        for slot in 0..IMAGES {
            self.release_image(0, slot);
        }
        for slot in 0..BATCHES {
            self.release_batch(0, slot);
            self.release_tensor_batch(0, slot);
        }
        let mut frees = (0..RAWS).chain(0..RAWS);
        for slot in frees.by_ref().take(RAWS.into()) {
            self.free(0, [slot, NO_STREAM, 0, 0]);
        }
        self.settle();
        // What could not name all streams that worked on it.
        for slot in frees {
            self.free(0, [slot, NO_STREAM, 0, 0]);
        }
        self.settle();
        for thread in 1..THREADS as usize {
            self.end_thread(thread);
        }
        self.end_cache(0);
        self.settle();
        for slot in 0..STREAMS {
            self.end_stream(0, slot);
        }
        for event in self.events {
            // SAFETY: a handle, destroyed once.
            ok(unsafe { cvc_event_destroy(event) });
        }
        for device in 0..2 {
            let after = stats_of(self.caches[0], device);
            let left = (after.live_handles, after.bytes, after.driver_bytes);
            assert_eq!(left, (0, 0, 0), "what is left on device {device}");
        }
        assert_no_races();
        self.tally_up();
        self.tally
    }
}
