//! The whole cache, naively: which memory there is, who may be given it, what it is charged to.
//!
//! It knows of no addresses, events, lists or locks. It is told what the library did where the library may choose (which
//! of the allowed pieces it gave), and says whether that was allowed; all else it computes, and the accounts must come out
//! equal to the byte. One thing it takes from the library: how far each stream is *seen* complete. Whether that is true
//! the race checker proves, which shares no code with the library's timeline.

pub type StreamId = usize;
pub type MemoryId = usize;
pub type IndexId = usize;
pub type CacheId = usize;

use super::happens_before::{Access, Clock, Order};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Somebody observes it. `indexed`: charged to the retention limit.
    Live {
        indexed: bool,
    },
    /// Released and kept, always charged. `transient`: leaves as soon as its work is seen complete.
    Held {
        transient: bool,
    },
    /// Memory of the program's own, which somebody observes: see `wrapped.rs`.
    Wrapped {
        indexed: bool,
    },
    /// Nobody observes the wrap any more, and its owner waits to hear.
    Untold {
        indexed: bool,
    },
    Gone,
}

pub struct Memory {
    pub cache: CacheId,
    pub device: usize,
    pub(super) class: u16,
    pub(super) shape: u16,
    pub bytes: u64,
    /// What the driver gives beyond that, for an alignment; charged to nobody.
    pub(super) slack: u64,
    pub state: State,
    /// The index that counts it.
    pub(super) owner: IndexId,
    pub(super) accesses: Vec<Access>,
    /// Its work was seen complete when it was released.
    pub(super) was_done: bool,
}

pub(super) struct Index {
    pub(super) cache: CacheId,
    /// Its thread has ended.
    pub(super) closed: bool,
    pub(super) shared: bool,
    /// Released by other threads and not yet taken in, oldest first.
    pub(super) remote: Vec<MemoryId>,
    /// By device, what wraps have left for the thread's next ones.
    pub(super) shells: [u64; 2],
}

pub struct Cache {
    pub shared: IndexId,
    /// The threads' indexes.
    pub(super) order: Vec<IndexId>,
    pub limit: [u64; 2],
    pub(super) charged: [u64; 2],
    pub closed: bool,
}

/// What `cvc_cache_stats` has to say. Counters count from any point that both sides share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub limit: u64,
    pub bytes: u64,
    pub count: u64,
    pub live: (u64, u64),
    pub unindexed: (u64, u64),
    pub idle: (u64, u64),
    pub pending: (u64, u64),
    pub wrapped: u64,
    pub exact: u64,
    pub fit: u64,
    pub pending_hits: u64,
    pub misses: u64,
    pub evictions: u64,
    pub driver: u64,
}

/// How often the library decided what; the programs are to reach all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decisions {
    pub exact: u64,
    pub fit: u64,
    pub pending: u64,
    pub waits: u64,
    pub new_memory: u64,
    pub steals: u64,
    pub owners_list: u64,
    pub evictions: u64,
    pub unindexed: u64,
    pub over_the_limit: u64,
    pub deferred: u64,
    /// Wraps in the idle shell of an earlier one.
    pub shells: u64,
    /// Requests on a stream that captures, which must not wait.
    pub spared_waits: u64,
    /// Owners of wraps that had to wait for queued work.
    pub told_later: u64,
}

#[derive(Default)]
pub struct Model {
    /// Without it only what is safe is checked: no account, no duty to reuse. See `settled`.
    pub exact: bool,
    /// By stream: seen complete up to that access.
    pub seen: Clock,
    pub(super) order: Vec<Order>,
    pub last: Clock,
    pub memories: Vec<Memory>,
    /// Live and held ones.
    pub(super) present: Vec<MemoryId>,
    /// Held ones, the longest held first.
    pub(super) held: Vec<MemoryId>,
    /// Those that are observed, and those whose owner waits to hear.
    pub(super) wraps: Vec<MemoryId>,
    /// Wraps whose owner was to hear since `owner_heard` last said who did.
    pub(super) told: Vec<MemoryId>,
    pub(super) indexes: Vec<Index>,
    pub caches: Vec<Cache>,
    /// By cache and device.
    pub counters: Vec<[Totals; 2]>,
    /// Blocks whose object is gone and whose work is not seen complete.
    pub(super) deferred: Vec<MemoryId>,
    pub driver: [u64; 2],
    pub decisions: Decisions,
}

pub(super) type Judged<T> = Result<T, String>;

impl Model {
    // ---- caches and threads --------------------------------------------------------------------------------------

    pub fn new_cache(&mut self, limit: [u64; 2]) -> CacheId {
        let shared = self.add_index(self.caches.len(), true);
        self.caches.push(Cache {
            shared,
            order: Vec::new(),
            limit,
            charged: [0; 2],
            closed: false,
        });
        self.counters.push(Default::default());
        self.caches.len() - 1
    }

    pub(super) fn add_index(&mut self, cache: CacheId, shared: bool) -> IndexId {
        self.indexes.push(Index {
            cache,
            closed: false,
            shared,
            remote: Vec::new(),
            shells: [0; 2],
        });
        self.indexes.len() - 1
    }

    pub fn new_index(&mut self, cache: CacheId) -> IndexId {
        let index = self.add_index(cache, false);
        self.caches[cache].order.push(index);
        index
    }

    pub(super) fn all_indexes(&self, cache: CacheId) -> Vec<IndexId> {
        let mut all = self.caches[cache].order.clone();
        all.push(self.caches[cache].shared);
        all
    }

    pub(super) fn of_index(
        &self,
        list: &[MemoryId],
        index: IndexId,
        device: usize,
    ) -> Vec<MemoryId> {
        let here = |id: &&MemoryId| {
            let memory = &self.memories[**id];
            memory.owner == index && memory.device == device
        };
        list.iter().filter(here).copied().collect()
    }

    /// A thread's end: what is live is not indexed any more, what is held goes to the shared index until it is done.
    pub fn end_index(&mut self, cache: CacheId, index: IndexId) {
        if !self.exact {
            self.indexes[index].closed = true;
            return;
        }
        for memory in std::mem::take(&mut self.indexes[index].remote) {
            self.hold(memory, false);
        }
        for id in self.present.clone() {
            if self.memories[id].owner != index {
                continue;
            }
            match self.memories[id].state {
                State::Live { indexed: true } => self.unindex(id),
                State::Held { .. } => {
                    self.memories[id].state = State::Held { transient: true };
                    self.memories[id].owner = self.caches[cache].shared;
                }
                _ => {}
            }
        }
        self.end_wraps(cache, index);
        self.indexes[index].closed = true;
        self.forget_if_over(cache, index);
    }

    pub(super) fn forget_if_over(&mut self, cache: CacheId, index: IndexId) {
        let mut all = self.present.iter().chain(&self.wraps);
        let counted = all.any(|id| self.memories[*id].owner == index);
        if self.indexes[index].closed && !counted {
            self.caches[cache].order.retain(|known| *known != index);
        }
    }

    // ---- the retention limit -------------------------------------------------------------------------------------

    pub(super) fn charge(&mut self, id: MemoryId) {
        let Memory {
            cache,
            device,
            bytes,
            ..
        } = self.memories[id];
        self.caches[cache].charged[device] += bytes;
    }

    pub(super) fn give_back(&mut self, id: MemoryId) {
        let Memory {
            cache,
            device,
            bytes,
            ..
        } = self.memories[id];
        self.caches[cache].charged[device] -= bytes;
    }

    pub(super) fn has_room(&self, cache: CacheId, device: usize, bytes: u64) -> bool {
        self.caches[cache].charged[device] + bytes <= self.caches[cache].limit[device]
    }

    pub(super) fn unindex(&mut self, id: MemoryId) {
        self.give_back(id);
        self.memories[id].state = State::Live { indexed: false };
        self.decisions.unindexed += 1;
    }

    pub(super) fn unindex_live(&mut self, index: IndexId, device: usize) {
        for id in self.of_index(&self.present, index, device) {
            if self.memories[id].state == (State::Live { indexed: true }) {
                self.unindex(id);
            }
        }
        self.unindex_wraps(index, device);
    }

    /// Evicts what is done of one index, the longest held first, until `room` bytes more stay within the limit.
    pub(super) fn evict(&mut self, cache: CacheId, index: IndexId, device: usize, room: u64) {
        for transient in [true, false] {
            for id in self.of_index(&self.held, index, device) {
                if self.has_room(cache, device, room) {
                    return;
                }
                if self.memories[id].state == (State::Held { transient }) && self.done(id) {
                    self.leave(id);
                    self.counters[cache][device].evictions += 1;
                    self.decisions.evictions += 1;
                }
            }
        }
    }

    /// Makes room with what the calling thread and ended threads hold.
    pub(super) fn enforce(&mut self, cache: CacheId, index: IndexId, device: usize, room: u64) {
        for index in [index, self.caches[cache].shared] {
            if !self.has_room(cache, device, room) {
                self.take_in(index);
            }
        }
        self.evict(cache, index, device, room);
        self.evict(cache, self.caches[cache].shared, device, room);
    }

    pub fn set_limit(&mut self, cache: CacheId, index: IndexId, device: usize, limit: u64) {
        self.caches[cache].limit[device] = limit;
        if !self.exact {
            return;
        }
        self.enforce(cache, index, device, 0);
        if !self.has_room(cache, device, 0) {
            self.unindex_live(index, device);
        }
    }

    // ---- taking back ---------------------------------------------------------------------------------------------

    /// What the driver gave for it, in whole granules.
    pub(super) fn taken(&self, id: MemoryId) -> u64 {
        let memory = &self.memories[id];
        memory.bytes.next_multiple_of(512) + memory.slack
    }

    /// Out of the index, and back to the driver once its work is done.
    pub(super) fn leave(&mut self, id: MemoryId) {
        self.held.retain(|held| *held != id);
        self.give_back(id);
        self.drop_memory(id);
    }

    pub(super) fn drop_memory(&mut self, id: MemoryId) {
        self.memories[id].state = State::Gone;
        self.present.retain(|present| *present != id);
        let device = self.memories[id].device;
        if self.done(id) {
            self.driver[device] -= self.taken(id);
        } else {
            self.deferred.push(id);
            self.decisions.deferred += 1;
        }
    }

    /// The last reference is gone. `index`: the calling thread's. `after`: what is seen complete after the call, which may
    /// have asked about an access that ended in it.
    pub fn release(&mut self, id: MemoryId, index: Option<IndexId>, after: Clock) {
        let Memory {
            cache,
            device,
            owner,
            ..
        } = self.memories[id];
        if let State::Wrapped { .. } = self.memories[id].state {
            return self.release_wrap(id, index, after);
        }
        if !self.exact {
            self.memories[id].state = State::Held { transient: false };
            self.held.push(id);
            return;
        }
        if index == Some(owner) {
            let was_done = self.done(id);
            self.seen = after;
            self.hold(id, true);
            self.memories[id].was_done = was_done;
            if !self.has_room(cache, device, 0) {
                self.enforce(cache, owner, device, 0);
            }
        } else if !self.caches[cache].closed
            && !self.indexes[owner].closed
            && !self.indexes[owner].shared
        {
            self.indexes[owner].remote.push(id);
            self.decisions.owners_list += 1;
        } else {
            self.seen = after;
            self.hold(id, true);
            if let State::Held { .. } = self.memories[id].state {
                self.memories[id].state = State::Held { transient: true };
                self.memories[id].owner = self.caches[cache].shared;
            }
            self.forget_if_over(cache, owner);
        }
    }

    /// What was indexed stays. What was not goes back, once its work is done: until then it is charged and may be reused.
    /// A thread's end drops nothing itself.
    pub(super) fn hold(&mut self, id: MemoryId, may_drop: bool) {
        let done = self.done(id);
        let indexed = self.memories[id].state == State::Live { indexed: true };
        self.memories[id].was_done = done;
        // A closed cache keeps nothing back for another look.
        let closed = self.caches[self.memories[id].cache].closed;
        if !indexed {
            if (done || closed) && may_drop {
                return self.drop_memory(id);
            }
            self.charge(id);
        }
        self.memories[id].state = State::Held {
            transient: !indexed,
        };
        self.held.push(id);
    }

    /// What other threads released.
    pub(super) fn take_in(&mut self, index: IndexId) {
        for id in std::mem::take(&mut self.indexes[index].remote) {
            self.hold(id, true);
        }
    }

    pub(super) fn take_in_remote(&mut self, cache: CacheId) {
        for index in 0..self.indexes.len() {
            if self.indexes[index].cache != cache {
                continue;
            }
            self.take_in(index);
        }
    }

    pub(super) fn drop_done_transients(&mut self, index: IndexId, device: usize) {
        for id in self.of_index(&self.held, index, device) {
            if self.memories[id].state == (State::Held { transient: true }) && self.done(id) {
                self.leave(id);
            }
        }
    }

    /// What each submission does for the calling thread, where it sees that something waits to go.
    pub fn retire(&mut self, cache: CacheId, own: Option<IndexId>, device: usize) {
        for index in own.into_iter().chain([self.caches[cache].shared]) {
            let held = self.of_index(&self.held, index, device);
            let transient = State::Held { transient: true };
            let waits = held.iter().any(|id| self.memories[*id].state == transient);
            let waits = waits || !self.untold(index, device).is_empty();
            if waits || !self.has_room(cache, device, 0) {
                self.retire_index(cache, index, device, own);
            }
        }
        self.tell_of_closed_caches();
    }

    /// `own`: the calling thread's index.
    fn retire_index(
        &mut self,
        cache: CacheId,
        index: IndexId,
        device: usize,
        own: Option<IndexId>,
    ) {
        self.take_in(index);
        self.drop_done_transients(index, device);
        self.evict(cache, index, device, 0);
        self.tell_what_is_done(index, device, own);
    }

    /// What a wait on the host does for every thread. `true`: the limit is passed and several threads have something to give
    /// up; which goes first is nobody's promise, so it is not followed.
    pub fn retire_all(&mut self, cache: CacheId, device: usize, own: Option<IndexId>) -> bool {
        let indexes = self.all_indexes(cache);
        let (mut over, mut could_give) = (false, 0);
        for index in &indexes {
            over |= !self.has_room(cache, device, 0);
            let mut given = self.of_index(&self.held, *index, device);
            given.retain(|id| self.done(*id));
            could_give += usize::from(!given.is_empty());
        }
        for index in indexes {
            self.retire_index(cache, index, device, own);
        }
        over && could_give > 1
    }

    /// After a wait for all that is held there.
    pub fn clear(&mut self, cache: CacheId, device: usize, own: Option<IndexId>) -> Judged<()> {
        let all = own.map_or_else(|| self.all_indexes(cache), |index| vec![index]);
        let waited = all.iter().all(|index| {
            let mut held = self.of_index(&self.held, *index, device);
            held.extend(self.untold(*index, device));
            held.into_iter().all(|id| self.done(id))
        });
        if !waited {
            return Err("cleared without a wait".into());
        }
        self.give_up(cache, device, own);
        for index in all {
            self.indexes[index].shells[device] = 0;
            self.tell_what_is_done(index, device, None);
        }
        Ok(())
    }

    pub(super) fn give_up(&mut self, cache: CacheId, device: usize, own: Option<IndexId>) {
        let indexes = own.map_or_else(|| self.all_indexes(cache), |index| vec![index]);
        for index in indexes {
            self.take_in(index);
            self.unindex_live(index, device);
            for id in self.of_index(&self.held, index, device) {
                self.leave(id);
            }
        }
    }

    /// The last handle of a cache is gone: it keeps nothing from now on, and waits for nothing.
    pub fn close(&mut self, cache: CacheId) {
        self.caches[cache].limit = [0; 2];
        self.caches[cache].closed = true;
        if !self.exact {
            return;
        }
        self.take_in_remote(cache);
        for device in 0..2 {
            self.give_up(cache, device, None);
        }
    }

    /// Whoever counts takes in what other threads released, and drops what only waited for its work. Nobody counts a closed
    /// cache.
    pub fn look(&mut self) {
        for cache in 0..self.caches.len() {
            if self.caches[cache].closed {
                continue;
            }
            self.take_in_remote(cache);
            for device in 0..2 {
                for index in self.all_indexes(cache) {
                    self.drop_done_transients(index, device);
                }
            }
        }
        for id in std::mem::take(&mut self.deferred) {
            if self.done(id) {
                self.driver[self.memories[id].device] -= self.taken(id);
            } else {
                self.deferred.push(id);
            }
        }
    }

    /// All work was waited for and all caches were cleared: whatever was not followed before, only what is observed is
    /// left, and nothing of it is indexed.
    pub fn settled(&mut self, exact: bool) {
        self.driver = [0; 2];
        self.held.clear();
        self.deferred.clear();
        for index in &mut self.indexes {
            for id in std::mem::take(&mut index.remote) {
                self.memories[id].state = State::Gone;
            }
        }
        for cache in &mut self.caches {
            cache.charged = [0; 2];
        }
        for id in std::mem::take(&mut self.present) {
            let memory = &mut self.memories[id];
            memory.accesses.clear();
            if let State::Live { .. } = memory.state {
                memory.state = State::Live { indexed: false };
                let device = memory.device;
                self.driver[device] += self.taken(id);
                self.present.push(id);
            } else {
                memory.state = State::Gone;
            }
        }
        self.settle_wraps();
        for cache in 0..self.caches.len() {
            for index in self.all_indexes(cache) {
                self.forget_if_over(cache, index);
            }
        }
        self.exact = exact;
    }

    /// Entries of one thread that are indexed.
    pub fn count_of(&self, index: IndexId, device: usize) -> u64 {
        let mut all = self.of_index(&self.present, index, device);
        all.retain(|id| self.memories[*id].state != State::Live { indexed: false });
        all.len() as u64 + self.wrap_entries(index, device)
    }

    pub fn totals(&self, cache: CacheId, device: usize) -> Totals {
        let mut totals = self.counters[cache][device];
        totals.limit = self.caches[cache].limit[device];
        totals.bytes = self.caches[cache].charged[device];
        totals.driver = self.driver[device];
        let add = |sum: &mut (u64, u64), bytes: u64| *sum = (sum.0 + 1, sum.1 + bytes);
        for id in &self.present {
            let memory = &self.memories[*id];
            if memory.cache != cache || memory.device != device {
                continue;
            }
            match memory.state {
                State::Live { indexed } => {
                    add(&mut totals.live, memory.bytes);
                    if !indexed {
                        add(&mut totals.unindexed, memory.bytes);
                    }
                }
                State::Held { .. } if self.done(*id) => add(&mut totals.idle, memory.bytes),
                State::Held { .. } => add(&mut totals.pending, memory.bytes),
                State::Wrapped { .. } | State::Untold { .. } | State::Gone => {}
            }
        }
        totals.count = totals.live.0 - totals.unindexed.0 + totals.idle.0 + totals.pending.0;
        for index in self.all_indexes(cache) {
            totals.count += self.wrap_entries(index, device);
        }
        totals.wrapped = self.live_wraps(cache, device);
        totals
    }
}
