//! Runs a program through the C interface beside the model, and compares: each status, which memory was given, every
//! account, every byte that is read, and no race.

use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::Once;

use cvc::backend::StreamHandle;
use cvc::timeline::{self, Stream};

use super::c_interface::*;
use super::captures::{Captures, Refusal};
use super::choice::{Reuse, Wanted};
use super::happens_before::Recorded;
use super::look::*;
use super::model::*;
use super::program::*;
use super::raw::{Mark, Raw};
use super::slots::*;
use super::threads::Threads;
use super::wraps::Pieces;

/// Bytes of each device: enough for most programs, and little enough to run out.
pub(super) const DEVICE_BYTES: u64 = 256 << 10;

pub(super) const NO_INDEX: IndexId = usize::MAX;

/// The process's backend, in steps, with the race checker and the fault plan.
pub fn start_backend() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| {
        std::env::set_var("CVC_HOST_MEMORY", DEVICE_BYTES.to_string());
        std::env::set_var("CVC_HOST_DEVICES", "2");
        start(
            CVC_INSTRUMENT_STEPPED
                | CVC_INSTRUMENT_RACE_CHECK
                | CVC_INSTRUMENT_FAULTS
                | CVC_INSTRUMENT_CAPTURES,
        );
    });
}

pub struct Runner {
    pub(super) watch: Watch,
    pub(super) model: Model,
    pub(super) threads: Threads,
    pub(super) caches: Vec<cvc_cache_t>,
    pub(super) own_indexes: [Vec<IndexId>; THREADS as usize],
    pub(super) streams: [Option<NamedStream>; STREAMS as usize],
    pub(super) pointers: Vec<&'static Stream>,
    /// By slot and thread, who a name last was.
    pub(super) known_as: HashMap<(u16, usize, usize), StreamId>,
    pub(super) per_thread_used: [bool; THREADS as usize],
    pub(super) events: [cvc_event_t; EVENTS as usize],
    pub(super) recorded: [Option<Recorded>; EVENTS as usize],
    pub(super) tensors: [Option<Tensor>; TENSORS as usize],
    pub(super) images: [Option<Image>; IMAGES as usize],
    pub(super) batches: [Option<Batch>; BATCHES as usize],
    pub(super) exports: [Option<Export>; EXPORTS as usize],
    pub(super) raws: [Option<Raw>; RAWS as usize],
    pub(super) tensor_batches: [Option<TensorBatch>; BATCHES as usize],
    pub(super) pieces: Pieces,
    pub(super) captures: Captures,
    pub(super) marks: [Option<Mark>; EVENTS as usize],
    /// Of the program's own order: see `count_on`.
    pub(super) now: u64,
    pub(super) lives: Life,
    /// By thread, of its own default stream.
    pub(super) thread_lives: [Life; THREADS as usize],
    /// The streams of the last free.
    pub(super) just_freed_on: Vec<Life>,
    /// By memory.
    pub(super) values: Vec<Option<Vec<u8>>>,
    pub(super) references: Vec<u32>,
    pub(super) addresses: Vec<Option<u64>>,
    pub(super) lent: Vec<bool>,
    pub(super) ids: HashMap<u64, MemoryId>,
    pub(super) sources: Vec<Box<[u8]>>,
    pub(super) downloads: Vec<Download>,
    pub(super) planned: Option<usize>,
    pub(super) fault_was_hit: bool,
    /// A fault was hit since all was settled.
    pub(super) doubtful: bool,
    /// Also before this step.
    pub(super) was_doubtful: bool,
    pub(super) last_status: i32,
    /// The library did what may or may not evict: after this step everything is settled.
    pub(super) unsure: bool,
    pub(super) views: u64,
    pub(super) counted: [Totals; 2],
    pub(super) tally: Tally,
}

pub(super) fn set_limit(cache: cvc_cache_t, device: usize, bytes: i64) -> i32 {
    // SAFETY: no preconditions.
    unsafe { cvc_cache_set_limit(cache, device as i32, bytes) }
}

impl Runner {
    pub fn begin(watch: Watch) -> Runner {
        let mut runner = Runner {
            watch,
            model: Model::default(),
            threads: Threads::default(),
            caches: Vec::new(),
            own_indexes: Default::default(),
            streams: Default::default(),
            pointers: Vec::new(),
            known_as: HashMap::new(),
            per_thread_used: [false; THREADS as usize],
            events: [null_mut(); EVENTS as usize],
            recorded: Default::default(),
            tensors: Default::default(),
            images: Default::default(),
            batches: Default::default(),
            exports: Default::default(),
            raws: Default::default(),
            tensor_batches: Default::default(),
            pieces: Pieces::default(),
            captures: Captures::default(),
            marks: Default::default(),
            now: 0,
            lives: LIFE_OF_LEGACY,
            thread_lives: Default::default(),
            just_freed_on: Vec::new(),
            values: Vec::new(),
            references: Vec::new(),
            addresses: Vec::new(),
            lent: Vec::new(),
            ids: HashMap::new(),
            sources: Vec::new(),
            downloads: Vec::new(),
            planned: None,
            fault_was_hit: false,
            doubtful: false,
            was_doubtful: false,
            last_status: CVC_STATUS_OK,
            unsure: false,
            views: 0,
            counted: Default::default(),
            tally: Tally::default(),
        };
        runner.model.exact = watch == Watch::EachStep;
        runner.thread_lives[0] = runner.new_life();
        runner.add_cache(default_cache(), FIRST_LIMIT);
        runner.counted = runner.model.counters[0];
        for event in &mut runner.events {
            // SAFETY: a place for the result.
            ok(unsafe { cvc_event_create(0, 0, event) });
        }
        runner
    }

    pub(super) fn add_cache(&mut self, cache: cvc_cache_t, limit: i64) {
        let id = self.model.new_cache([limit as u64; 2]);
        self.caches.push(cache);
        for device in 0..2 {
            ok(set_limit(cache, device, limit));
            self.take_counters(id, device);
        }
        for thread in 0..THREADS as usize {
            if self.threads.runs(thread) {
                self.make_index(thread, id);
            }
        }
    }

    pub(super) fn new_life(&mut self) -> Life {
        self.lives += 1;
        self.lives
    }

    /// The model counts on from what the library has counted.
    pub(super) fn take_counters(&mut self, cache: CacheId, device: usize) -> cvc_cache_stats_t {
        let now = stats_of(self.caches[cache], device);
        self.model.counters[cache][device] = Totals {
            exact: now.hits_exact,
            fit: now.hits_fit,
            pending_hits: now.hits_pending,
            misses: now.misses,
            evictions: now.evictions,
            ..Totals::default()
        };
        now
    }

    /// The thread's index of the cache, made by its first look.
    pub(super) fn make_index(&mut self, thread: usize, cache: CacheId) {
        let handle = self.caches[cache];
        self.threads.on(thread, || {
            let mut count = 0;
            // SAFETY: a place for the result.
            ok(unsafe { cvc_cache_count(handle, 0, CVC_SCOPE_LOCAL, &mut count) });
        });
        let index = self.model.new_index(cache);
        let own = &mut self.own_indexes[thread];
        own.resize(own.len().max(cache + 1), NO_INDEX);
        own[cache] = index;
    }

    pub(super) fn begin_thread(&mut self, thread: usize) {
        if self.threads.runs(thread) {
            return;
        }
        self.threads.begin(thread);
        self.thread_lives[thread] = self.new_life();
        for cache in 0..self.caches.len() {
            if !self.model.caches[cache].closed {
                self.make_index(thread, cache);
            }
        }
    }

    /// `None`: the cache was closed before the thread used it.
    pub(super) fn index(&self, thread: usize, cache: CacheId) -> Option<IndexId> {
        let index = self.own_indexes[thread].get(cache).copied();
        index.filter(|index| *index != NO_INDEX)
    }

    pub(super) fn cache(&self, number: u16) -> Option<CacheId> {
        let open = |cache: &CacheId| !self.model.caches[*cache].closed;
        match number {
            0 => Some(0),
            _ => (1..self.caches.len()).rev().find(open),
        }
    }

    // ---- calls -----------------------------------------------------------------------------------------------------

    /// Makes a call on the thread. Whether it succeeded; it may fail only where a fault was hit, or as `allowed` says.
    pub(super) fn call(
        &mut self,
        thread: usize,
        allowed: &[i32],
        job: impl FnOnce() -> i32,
    ) -> bool {
        self.call_as(thread, Refusal::Never, allowed, job)
    }

    /// `call`, of which is known whether captures refuse it.
    pub(super) fn call_as(
        &mut self,
        thread: usize,
        refusal: Refusal,
        allowed: &[i32],
        job: impl FnOnce() -> i32,
    ) -> bool {
        let (status, text) = self.threads.on(thread, || {
            let status = job();
            let failed = status != CVC_STATUS_OK;
            (status, if failed { message() } else { String::new() })
        });
        self.last_status = status;
        self.look_for_a_fault();
        // Work whose event could not be recorded is in the way of whoever has to wait for it.
        let in_the_way = self.doubtful && status == CVC_STATUS_INVALID_STREAM;
        let may_fail = self.fault_was_hit || in_the_way || allowed.contains(&status);
        if refusal == Refusal::Surely && !self.fault_was_hit {
            assert_eq!(status, CVC_STATUS_CAPTURING, "beside a capture: {text}");
        }
        if status == CVC_STATUS_CAPTURING && refusal != Refusal::Never {
            self.tally.refused_for_captures += 1;
            self.tally.refused_to_wait += u64::from(refusal == Refusal::Perhaps);
            return false;
        }
        if status == CVC_STATUS_OK || may_fail {
            return status == CVC_STATUS_OK;
        }
        panic!("status {status}: {text}");
    }

    pub(super) fn look_for_a_fault(&mut self) {
        let Some(call) = self.planned else {
            return;
        };
        let mut hits = 0;
        // SAFETY: a place for the result.
        ok(unsafe { cvc_host_fault_hits(&mut hits) });
        if hits > 0 {
            self.tally.faults[call] += 1;
            self.end_plan();
            self.fault_was_hit = true;
            self.doubtful = true;
            self.model.exact = false;
            self.model.forget_order();
        }
    }

    pub(super) fn end_plan(&mut self) {
        self.planned = None;
        // SAFETY: no preconditions.
        ok(unsafe { cvc_host_fault_clear() });
    }

    /// The stream of that name for work on `device`, as the thread sees it.
    pub(super) fn stream(&mut self, name: u16, device: usize, thread: usize) -> Option<Place> {
        let (handle, life): (StreamHandle, Life) = match name {
            // In a call the default streams are those of the thread's current device.
            LEGACY if device == 0 => (1, LIFE_OF_LEGACY),
            PER_THREAD if device == 0 => (2, self.thread_lives[thread]),
            _ => {
                let named = self.streams.get(name as usize)?.as_ref()?;
                if named.device != device {
                    return None;
                }
                if self.captures.is_unknown(named.life) {
                    return self.place_as_before(name, device, named);
                }
                (named.handle, named.life)
            }
        };
        let resolve = || timeline::resolve(handle, device as i32);
        let pointer = self.threads.on(thread, resolve).ok();
        self.look_for_a_fault();
        let pointer = pointer?;
        let whose = if name == PER_THREAD { thread } else { 0 };
        self.per_thread_used[thread] |= name == PER_THREAD;
        let key = (name, whose, device);
        let known = self.known_as.get(&key).copied();
        let same = |id: &StreamId| std::ptr::eq(self.pointers[*id], pointer);
        let stream = known.filter(same).unwrap_or_else(|| {
            self.pointers.push(pointer);
            let (last, seen) = (pointer.last_submitted(), pointer.completed());
            self.model.new_stream(last, seen)
        });
        self.known_as.insert(key, stream);
        self.model.last[stream] = pointer.last_submitted();
        Some(Place {
            handle: std::ptr::without_provenance_mut(handle),
            stream,
            pointer,
            life,
            name,
        })
    }

    /// Somebody else's stream while it captures: the library does not know it then.
    fn place_as_before(&self, name: u16, device: usize, named: &NamedStream) -> Option<Place> {
        let stream = *self.known_as.get(&(name, 0, device))?;
        Some(Place {
            handle: std::ptr::without_provenance_mut(named.handle),
            stream,
            pointer: self.pointers[stream],
            life: named.life,
            name,
        })
    }

    /// The end of a stream that is held is numbered too, and its event covers that.
    pub(super) fn note_end(&mut self, name: u16) {
        for ((known, ..), stream) in &self.known_as {
            if *known == name {
                self.model.last[*stream] = self.pointers[*stream].last_submitted();
            }
        }
    }

    pub(super) fn forget_name(&mut self, name: u16) {
        self.known_as.retain(|(known, _, _), _| *known != name);
    }

    pub(super) fn see(&mut self) {
        for (seen, pointer) in self.model.seen.iter_mut().zip(&self.pointers) {
            *seen = pointer.completed();
        }
    }

    /// Makes a call that queues work on `place`, which reads and writes these. `None`: a capture refused it, and nothing has
    /// changed. Else whether all was queued.
    pub(super) fn submit(
        &mut self,
        thread: usize,
        place: Place,
        accesses: &[(MemoryId, bool)],
        job: impl FnOnce() -> i32,
    ) -> Option<bool> {
        let refusal = self.refusal_of(place, accesses);
        let whole = self.call_as(thread, refusal, &[], job);
        if self.last_status == CVC_STATUS_CAPTURING {
            self.half_begin(place, accesses, refusal);
            return None;
        }
        self.submitted(place, thread, accesses);
        Some(whole)
    }

    /// A call was refused: where it had to wait for several streams it may have waited for some.
    pub(super) fn half_begin(
        &mut self,
        place: Place,
        accesses: &[(MemoryId, bool)],
        refusal: Refusal,
    ) {
        if refusal == Refusal::Perhaps {
            for (memory, write) in accesses {
                self.model.half_begin_access(*memory, place.stream, *write);
            }
        }
    }

    /// Work was queued, or failed to be, that reads and writes these.
    pub(super) fn submitted(&mut self, place: Place, thread: usize, accesses: &[(MemoryId, bool)]) {
        let mut each: Vec<(MemoryId, bool)> = accesses.to_vec();
        each.sort_by_key(|(memory, write)| (*memory, !*write));
        each.dedup_by_key(|(memory, _)| *memory);
        for (memory, write) in &each {
            self.model.begin_access(*memory, place.stream, *write);
        }
        let sequence = place.pointer.last_submitted();
        for (memory, write) in &each {
            self.model
                .end_access(*memory, place.stream, *write, sequence);
        }
        if let (Some((first, _)), true) = (each.first(), self.model.exact) {
            let Memory { cache, device, .. } = self.model.memories[*first];
            let of_one = |(id, _): &(MemoryId, bool)| self.model.memories[*id].cache == cache;
            // Whichever object comes first in memory decides whose entries retire.
            self.unsure |= !each.iter().all(of_one);
            // A thread that began after a cache was closed has had no index of it.
            let index = self.index(thread, cache);
            self.model.retire(cache, index, device);
        }
    }

    pub(super) fn judged<T>(&self, judged: Result<T, String>) -> T {
        match judged {
            Ok(value) => value,
            Err(text) => panic!("the model says: {text}"),
        }
    }

    /// The library gave an object, with this id: memory that it kept, or new memory.
    pub(super) fn obtained(&mut self, id: u64, wanted: &Wanted) -> MemoryId {
        self.unsure |= self.model.exact && self.model.fails_to_wait(wanted);
        let known = self.ids.get(&id).copied();
        let memory = match known {
            Some(memory) => {
                let judged = self.model.reuse(wanted, memory);
                match self.judged(judged) {
                    Reuse::Clear => {}
                    Reuse::Unclear => self.unsure = true,
                    Reuse::ByShortage => {
                        self.explained_by_shortage(wanted, "a wait below the limit");
                    }
                }
                memory
            }
            None => {
                let judged = self.model.new_memory(wanted);
                let memory = self.judged(judged);
                self.learn_capacity(memory);
                self.ids.insert(id, memory);
                assert!(!self.pieces.has_wrap_of(id), "a wrap was given out");
                self.new_memory(None);
                memory
            }
        };
        self.values[memory] = None;
        self.references[memory] = 1;
        memory
    }

    /// The model has one memory more, which somebody observes.
    pub(super) fn new_memory(&mut self, values: Option<Vec<u8>>) {
        self.values.push(values);
        self.references.push(1);
        self.addresses.push(None);
        self.lent.push(false);
    }

    /// A call that failed by a fault may have left memory behind that nobody saw; what it holds, the account tells.
    pub(super) fn learn_capacity(&mut self, memory: MemoryId) {
        if !self.was_doubtful {
            return;
        }
        let Memory { cache, device, .. } = self.model.memories[memory];
        if !self.model.caches[cache].closed {
            let all = stats_of(self.caches[cache], device).live_bytes;
            let live = self.model.memories.iter().zip(&self.references);
            let others = live
                .filter(|(of, count)| **count > 0 && of.cache == cache && of.device == device)
                .map(|(of, _)| of.bytes)
                .sum::<u64>();
            self.model.memories[memory].bytes = all - others;
        }
    }

    /// Only a driver that may have had no memory explains what happened.
    pub(super) fn explained_by_shortage(&mut self, wanted: &Wanted, what: &str) {
        let (taken, bytes) = (self.model.driver[wanted.device], wanted.bytes);
        // Memory is in pieces: half of the device may be free and no piece large enough.
        assert!(
            taken + bytes > DEVICE_BYTES / 2,
            "{what}, with {taken} of {DEVICE_BYTES} bytes taken"
        );
        self.unsure = true;
    }

    pub(super) fn refused(&mut self, wanted: &Wanted) {
        if !self.doubtful {
            self.tally.out_of_memory += 1;
            self.unsure |= self.model.exact && self.model.fails_to_wait(wanted);
            let judged = self.model.refused(wanted);
            self.judged(judged);
            if self.model.exact {
                self.explained_by_shortage(wanted, "out of memory");
            }
        }
    }

    pub(super) fn let_go(&mut self, memory: MemoryId, thread: usize) {
        self.references[memory] -= 1;
        if self.references[memory] == 0 {
            let cache = self.model.memories[memory].cache;
            let index = self.index(thread, cache);
            let after = self
                .pointers
                .iter()
                .map(|pointer| pointer.completed())
                .collect();
            self.model.release(memory, index, after);
        }
    }

    pub(super) fn wanted(
        &self,
        thread: usize,
        cache: CacheId,
        device: usize,
        form: &Form,
        place: Option<Place>,
    ) -> Wanted {
        let index = self.index(thread, cache);
        Wanted {
            cache,
            index: index.unwrap_or(NO_INDEX),
            device,
            class: form.class,
            shape: form.shape,
            bytes: form.bytes,
            slack: form.slack,
            stream: place.map(|place| place.stream),
            waiting: self.waiting_of(place),
        }
    }

    /// A request on a stream that nobody knows now is refused, other ones are not: they take no part in a capture.
    pub(super) fn request_refusal(&mut self, place: Option<Place>) -> Refusal {
        let lives = place.map(|place| place.life);
        let captures = lives.is_some_and(|life| self.captures.has(life));
        let is_unknown = lives.is_some_and(|life| self.captures.is_unknown(life));
        self.tally.requests_in_captures += u64::from(captures && !is_unknown);
        Refusal::when(is_unknown)
    }

    pub(super) fn tensor_id(&self, handle: cvc_tensor_t) -> u64 {
        let mut id = 0;
        // SAFETY: a handle and a place for the result.
        ok(unsafe { cvc_tensor_get_id(handle, &mut id) });
        id
    }

    /// No other memory that exists has these bytes.
    pub(super) fn note_address(&mut self, memory: MemoryId, start: u64) {
        let new = &self.model.memories[memory];
        self.addresses[memory] = Some(start);
        for (other, address) in self.addresses.iter().enumerate() {
            let (Some(address), of) = (address, &self.model.memories[other]) else {
                continue;
            };
            if other != memory && self.references[other] > 0 && of.device == new.device {
                let apart = start + new.bytes <= *address || address + of.bytes <= start;
                assert!(apart, "two live objects share bytes");
            }
        }
    }

    pub fn step(&mut self, step: &Step) {
        self.tally.steps += 1;
        self.fault_was_hit = false;
        self.was_doubtful = self.doubtful;
        let thread = usize::from(step.thread % THREADS);
        if step.what != What::EndThread {
            self.begin_thread(thread);
        }
        let numbers = step.numbers;
        match step.what {
            What::HostStep => self.host_step(numbers[0]),
            What::HostAll => {
                let mut steps = 0;
                // SAFETY: a place for the result.
                ok(unsafe { cvc_host_step_all(&mut steps) });
            }
            What::Create => self.create(thread, numbers),
            What::Wrap => self.wrap(thread, numbers),
            What::ReleaseTensor => self.release_tensor(thread, numbers[0]),
            What::View => self.view(thread, numbers),
            What::Upload => self.upload(thread, numbers),
            What::Fill => self.fill(thread, numbers),
            What::Flip => self.flip(thread, numbers),
            What::FlipNew => self.flip_new(thread, numbers),
            What::Copy => self.copy(thread, numbers),
            What::Download => self.download(thread, numbers),
            What::Launch => self.launch(thread, numbers),
            What::Export => self.export(thread, numbers),
            What::EndExport => self.end_export(thread, numbers[0]),
            What::NewImage => self.new_image(thread, numbers),
            What::ReleaseImage => self.release_image(thread, numbers[0]),
            What::ImageView => self.image_view(thread, numbers),
            What::NewBatch => self.new_batch(thread, numbers),
            What::Push => self.push(thread, numbers),
            What::ReleaseBatch => self.release_batch(thread, numbers[0]),
            What::FlipBatch => self.flip_batch(thread, numbers),
            What::NewTensorBatch => self.new_tensor_batch(thread, numbers),
            What::PushTensor => self.push_tensor(thread, numbers),
            What::SetTensor => self.set_tensor(thread, numbers),
            What::GetTensor => self.get_tensor(thread, numbers),
            What::PopTensors => self.pop_tensors(thread, numbers),
            What::ClearTensors => self.clear_tensors(thread, numbers[0]),
            What::WriteRecords => self.write_records(thread, numbers),
            What::ReleaseTensorBatch => self.release_tensor_batch(thread, numbers[0]),
            What::BeginCapture => self.begin_capture(thread, numbers[0]),
            What::EndCapture => self.end_capture(thread, numbers[0]),
            What::Alloc | What::Work | What::RecordStream | What::Free | What::FreeAfterEvent => {
                self.raw_step(thread, step.what, numbers)
            }
            _ => self.other_step(thread, step.what, numbers),
        }
        self.look_for_a_fault();
        self.check();
    }

    pub(super) fn host_step(&mut self, number: u16) {
        let runnable = runnable();
        if runnable > 0 {
            super::c_interface::step(u64::from(number) % runnable);
        }
    }
}
