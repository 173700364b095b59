//! What the runner looks at: accounts against the model's, values that were read, races, and how often what was reached.

use super::c_interface::*;
use super::model::*;
use super::program::*;
use super::run::*;

/// What the programs reached, all together.
#[derive(Default)]
pub struct Tally {
    pub steps: u64,
    pub decisions: Decisions,
    /// Of every cache, by its own counters: also where no model follows.
    pub exact: u64,
    pub fit: u64,
    pub pending: u64,
    pub misses: u64,
    pub evictions: u64,
    pub out_of_memory: u64,
    pub downloads: u64,
    pub settled: u64,
    pub threads_ended: u64,
    pub caches_closed: u64,
    pub freed: u64,
    pub freed_after_events: u64,
    pub streams_recorded: u64,
    /// Created streams that were destroyed while raw memory held them.
    pub held_streams_ended: u64,
    /// Streams of others that were destroyed as soon as a free had named them.
    pub foreign_ended_after_a_free: u64,
    pub owners_told: u64,
    /// Tensors that nobody but a batch had when it gave them up.
    pub last_held_by_batches: u64,
    pub batch_calls_refused: u64,
    pub captures: u64,
    pub captures_joined: u64,
    /// By a wait for the device.
    pub captures_broken: u64,
    /// Calls that captures refused, and those of them that would have had to wait for a captured stream's work.
    pub refused_for_captures: u64,
    pub refused_to_wait: u64,
    pub requests_in_captures: u64,
    pub faults: [u64; FAULTY_CALLS.len()],
}

pub fn stats_of(cache: cvc_cache_t, device: usize) -> cvc_cache_stats_t {
    // SAFETY: plain numbers.
    let mut stats: cvc_cache_stats_t = unsafe { std::mem::zeroed() };
    stats.struct_size = std::mem::size_of_val(&stats);
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_stats(cache, device as i32, &mut stats) });
    stats
}

pub(super) fn totals(of: &cvc_cache_stats_t) -> Totals {
    Totals {
        limit: of.limit_bytes,
        bytes: of.bytes,
        count: of.count,
        live: (of.live_count, of.live_bytes),
        unindexed: (of.unindexed_count, of.unindexed_bytes),
        idle: (of.idle_count, of.idle_bytes),
        pending: (of.pending_count, of.pending_bytes),
        wrapped: of.wrapped_count,
        exact: of.hits_exact,
        fit: of.hits_fit,
        pending_hits: of.hits_pending,
        misses: of.misses,
        evictions: of.evictions,
        driver: of.driver_bytes,
    }
}

impl Runner {
    /// Waits for all work, ends every fault, clears every cache: from here on all is known again.
    pub(super) fn settle(&mut self) {
        self.end_plan();
        self.end_captures();
        self.unsure = false;
        self.doubtful = false;
        self.tally.settled += 1;
        for thread in 0..THREADS as usize {
            if self.per_thread_used[thread] && self.threads.runs(thread) {
                let own = std::ptr::without_provenance_mut(2);
                self.threads.on(thread, || synchronize(own));
            }
        }
        for device in 0..2 {
            // SAFETY: no preconditions.
            ok(unsafe { cvc_device_synchronize(device, -1) });
        }
        for cache in 0..self.caches.len() {
            for device in 0..2 {
                if !self.model.caches[cache].closed {
                    // SAFETY: no preconditions.
                    ok(unsafe { cvc_cache_clear(self.caches[cache], device, CVC_SCOPE_GLOBAL) });
                }
            }
        }
        self.read_downloads(None);
        self.read_records();
        self.sources.clear();
        self.forget_uses();
        for (last, pointer) in self.model.last.iter_mut().zip(&self.pointers) {
            *last = pointer.last_submitted();
        }
        self.see();
        self.model.settled(true);
        self.hear();
        for cache in 0..self.caches.len() {
            for device in 0..2 {
                if !self.model.caches[cache].closed {
                    self.take_counters(cache, device);
                }
            }
        }
        self.compare();
        self.model.exact = self.watch == Watch::EachStep;
    }

    pub(super) fn read_downloads(&mut self, device: Option<usize>) {
        for download in std::mem::take(&mut self.downloads) {
            if device.is_some_and(|device| device != download.device) {
                self.downloads.push(download);
                continue;
            }
            let mut pairs = download.got.iter().zip(&download.values);
            let wrong = pairs.position(|(got, value)| got != value);
            let bytes = download.got.len();
            assert_eq!(wrong, None, "a download of {bytes} bytes has a wrong value");
            self.tally.downloads += 1;
        }
    }

    /// Every account of every open cache, to the byte.
    pub(super) fn compare(&mut self) {
        // What one cache lets go when it is looked at, the driver's account shows in the others.
        for cache in 1..self.caches.len() {
            if !self.model.caches[cache].closed {
                for device in 0..2 {
                    stats_of(self.caches[cache], device);
                }
            }
        }
        for cache in 0..self.caches.len() {
            if self.model.caches[cache].closed {
                continue;
            }
            for device in 0..2 {
                let now = stats_of(self.caches[cache], device);
                self.look_for_a_fault();
                if self.fault_was_hit {
                    return;
                }
                let (library, model) = (totals(&now), self.model.totals(cache, device));
                if library != model {
                    // More was evicted than the limit asks for: only a driver without memory explains that.
                    let nearly_full = self.model.driver[device] > DEVICE_BYTES / 2;
                    if library.evictions > model.evictions && nearly_full {
                        self.unsure = true;
                        continue;
                    }
                    panic!(
                        "cache {cache}, device {device}:\nlibrary {library:?}\nmodel   {model:?}"
                    );
                }
            }
        }
    }

    /// A view is counted by its memory's cache, which tells nobody once it is closed.
    pub(super) fn check_views(&self) {
        if self.model.caches.iter().any(|cache| cache.closed) {
            return;
        }
        let devices = self
            .caches
            .iter()
            .flat_map(|cache| [(cache, 0), (cache, 1)]);
        let all = devices.map(|(cache, device)| stats_of(*cache, device));
        let views: u64 = all
            .map(|now| {
                let owned = now.live_count + now.wrapped_count;
                assert_eq!(now.live_handles, owned + now.view_count);
                now.view_count
            })
            .sum();
        assert_eq!(views, self.views, "views");
    }

    pub(super) fn tally_up(&mut self) {
        for device in 0..2 {
            let now = totals(&stats_of(self.caches[0], device));
            let then = self.counted[device];
            self.tally.exact += now.exact - then.exact;
            self.tally.fit += now.fit - then.fit;
            self.tally.pending += now.pending_hits - then.pending_hits;
            self.tally.misses += now.misses - then.misses;
            self.tally.evictions += now.evictions - then.evictions;
        }
        self.tally.decisions = self.model.decisions;
    }

    pub(super) fn check_sums(&self) {
        for device in 0..2 {
            let now = stats_of(self.caches[0], device);
            let held = now.idle_bytes + now.pending_bytes;
            assert_eq!(now.bytes, now.live_bytes - now.unindexed_bytes + held);
            assert!(now.driver_bytes >= now.live_bytes + held);
        }
    }

    /// So that the library knows all that can be known. Whether each stream gave an answer.
    pub(super) fn ask_all(&self) -> bool {
        let mut answered = true;
        for pointer in &self.pointers {
            if pointer.completed() != pointer.last_submitted() {
                answered &= pointer.poll();
            }
        }
        answered
    }

    pub(super) fn check(&mut self) {
        assert_no_races();
        if self.model.exact && !self.unsure {
            let failed = !self.ask_all();
            self.look_for_a_fault();
            // A stream that the library may not touch any more has no answer.
            let may_fail = self.doubtful || self.captures.bar_legacy();
            assert!(!failed || may_fail, "a stream could not be asked");
        }
        self.hear();
        if self.model.exact && !self.unsure {
            self.see();
            self.model.look();
            self.compare();
            self.check_views();
        } else if self.tally.steps % 64 == 0 {
            // Seldom, since who counts asks every stream.
            self.check_sums();
            self.check_views();
            self.look_for_a_fault();
        }
        if self.unsure {
            self.settle();
        }
    }
}
