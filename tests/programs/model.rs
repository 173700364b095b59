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

/// By stream: everything up to that access comes before.
type Clock = Vec<u64>;

fn join(clock: &mut Clock, other: &[u64]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

fn at(clock: &[u64], stream: StreamId) -> u64 {
    clock.get(stream).copied().unwrap_or(0)
}

/// What a stream's next work comes after. The library may record an event at once or use an older one, and an event covers
/// more than it is asked for: so there is what is surely ordered, and what may be.
#[derive(Clone, Default)]
struct Order {
    surely: Clock,
    perhaps: Clock,
}

/// What an event stands for: (stream, its last access, what that came after).
#[derive(Clone)]
pub struct Recorded(StreamId, u64, Order);

#[derive(Clone)]
struct Access {
    stream: StreamId,
    sequence: u64,
    write: bool,
    /// What this access surely came after.
    after: Clock,
}

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
    Gone,
}

pub struct Memory {
    pub cache: CacheId,
    pub device: usize,
    class: u16,
    shape: u16,
    pub bytes: u64,
    pub state: State,
    /// The index that counts it.
    owner: IndexId,
    accesses: Vec<Access>,
    /// Its work was seen complete when it was released.
    was_done: bool,
}

struct Index {
    cache: CacheId,
    /// Its thread has ended.
    closed: bool,
    shared: bool,
    /// Released by other threads and not yet taken in, oldest first.
    remote: Vec<MemoryId>,
}

pub struct Cache {
    pub shared: IndexId,
    /// The threads' indexes.
    order: Vec<IndexId>,
    pub limit: [u64; 2],
    charged: [u64; 2],
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
}

pub struct Wanted {
    pub cache: CacheId,
    pub index: IndexId,
    pub device: usize,
    pub class: u16,
    pub shape: u16,
    pub bytes: u64,
    pub stream: Option<StreamId>,
}

/// How memory came to be given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// As the model follows it.
    Clear,
    /// With a wait or without: with one, something was evicted first.
    Unclear,
    /// By a wait though the limit has room, which only a driver without memory explains.
    ByShortage,
}

#[derive(Default)]
pub struct Model {
    /// Without it only what is safe is checked: no account, no duty to reuse. See `settled`.
    pub exact: bool,
    /// By stream: seen complete up to that access.
    pub seen: Clock,
    order: Vec<Order>,
    pub last: Clock,
    pub memories: Vec<Memory>,
    /// Live and held ones.
    present: Vec<MemoryId>,
    /// Held ones, the longest held first.
    held: Vec<MemoryId>,
    indexes: Vec<Index>,
    pub caches: Vec<Cache>,
    /// By cache and device.
    pub counters: Vec<[Totals; 2]>,
    /// Blocks whose object is gone and whose work is not seen complete.
    deferred: Vec<MemoryId>,
    pub driver: [u64; 2],
    pub decisions: Decisions,
}

type Judged<T> = Result<T, String>;

impl Model {
    // ---- streams -------------------------------------------------------------------------------------------------

    pub fn new_stream(&mut self, last: u64, seen: u64) -> StreamId {
        self.order.push(Order::default());
        self.last.push(last);
        self.seen.push(seen);
        self.order.len() - 1
    }

    fn come_after(&mut self, stream: StreamId, recorded: &Recorded) {
        let Recorded(other, last, order) = recorded;
        let mut own = vec![0; other + 1];
        own[*other] = *last;
        let mine = &mut self.order[stream];
        join(&mut mine.surely, &order.surely);
        join(&mut mine.surely, &own);
        join(&mut mine.perhaps, &order.perhaps);
        join(&mut mine.perhaps, &own);
    }

    pub fn record(&self, stream: StreamId) -> Recorded {
        Recorded(stream, self.last[stream], self.order[stream].clone())
    }

    /// `stream` waits for all that the record covers.
    pub fn wait(&mut self, stream: StreamId, recorded: &Recorded) {
        if stream != recorded.0 {
            self.come_after(stream, recorded);
        }
    }

    /// After a fault nobody is sure which waits were made.
    pub fn forget_order(&mut self) {
        self.order.iter_mut().for_each(|order| order.surely.clear());
    }

    fn is_done(&self, access: &Access) -> bool {
        access.sequence <= self.seen[access.stream]
    }

    fn done(&self, memory: MemoryId) -> bool {
        self.memories[memory]
            .accesses
            .iter()
            .all(|a| self.is_done(a))
    }

    /// The work that is queued on `stream` next comes after the access.
    fn is_ordered(&self, access: &Access, stream: StreamId, clock: &Clock) -> bool {
        access.stream == stream
            || self.is_done(access)
            || at(clock, access.stream) >= access.sequence
    }

    fn surely_ready(&self, memory: MemoryId, stream: Option<StreamId>) -> bool {
        self.ready(memory, stream, |order| &order.surely)
    }

    fn perhaps_ready(&self, memory: MemoryId, stream: Option<StreamId>) -> bool {
        self.ready(memory, stream, |order| &order.perhaps)
    }

    fn ready(
        &self,
        memory: MemoryId,
        stream: Option<StreamId>,
        clock: fn(&Order) -> &Clock,
    ) -> bool {
        self.memories[memory]
            .accesses
            .iter()
            .all(|access| match stream {
                Some(stream) => self.is_ordered(access, stream, clock(&self.order[stream])),
                None => self.is_done(access),
            })
    }

    /// Before work of that kind: a reader waits for writes, a writer for everything.
    pub fn begin_access(&mut self, memory: MemoryId, stream: StreamId, write: bool) {
        for access in self.memories[memory].accesses.clone() {
            let surely = self.is_ordered(&access, stream, &self.order[stream].surely);
            if !(write || access.write) || surely {
                continue;
            }
            let mut order = Order {
                surely: access.after.clone(),
                perhaps: self.order[access.stream].perhaps.clone(),
            };
            let mut latest = vec![0; access.stream + 1];
            latest[access.stream] = self.last[access.stream];
            join(&mut order.perhaps, &latest);
            self.come_after(stream, &Recorded(access.stream, access.sequence, order));
        }
    }

    /// The work is queued and has that number. What it was ordered after need not be remembered any more where it wrote.
    pub fn end_access(&mut self, memory: MemoryId, stream: StreamId, write: bool, sequence: u64) {
        self.last[stream] = self.last[stream].max(sequence);
        let mut accesses = std::mem::take(&mut self.memories[memory].accesses);
        let surely = &self.order[stream].surely;
        if write {
            accesses.retain(|access| !self.is_ordered(access, stream, surely));
        } else {
            accesses.retain(|access| access.write || access.stream != stream);
        }
        accesses.push(Access {
            stream,
            sequence,
            write,
            after: surely.clone(),
        });
        self.memories[memory].accesses = accesses;
    }

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

    fn add_index(&mut self, cache: CacheId, shared: bool) -> IndexId {
        self.indexes.push(Index {
            cache,
            closed: false,
            shared,
            remote: Vec::new(),
        });
        self.indexes.len() - 1
    }

    pub fn new_index(&mut self, cache: CacheId) -> IndexId {
        let index = self.add_index(cache, false);
        self.caches[cache].order.push(index);
        index
    }

    fn all_indexes(&self, cache: CacheId) -> Vec<IndexId> {
        let mut all = self.caches[cache].order.clone();
        all.push(self.caches[cache].shared);
        all
    }

    fn of_index(&self, list: &[MemoryId], index: IndexId, device: usize) -> Vec<MemoryId> {
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
        self.indexes[index].closed = true;
        self.forget_if_over(cache, index);
    }

    fn forget_if_over(&mut self, cache: CacheId, index: IndexId) {
        let counted = self
            .present
            .iter()
            .any(|id| self.memories[*id].owner == index);
        if self.indexes[index].closed && !counted {
            self.caches[cache].order.retain(|known| *known != index);
        }
    }

    // ---- the retention limit -------------------------------------------------------------------------------------

    fn charge(&mut self, id: MemoryId) {
        let Memory {
            cache,
            device,
            bytes,
            ..
        } = self.memories[id];
        self.caches[cache].charged[device] += bytes;
    }

    fn give_back(&mut self, id: MemoryId) {
        let Memory {
            cache,
            device,
            bytes,
            ..
        } = self.memories[id];
        self.caches[cache].charged[device] -= bytes;
    }

    fn has_room(&self, cache: CacheId, device: usize, bytes: u64) -> bool {
        self.caches[cache].charged[device] + bytes <= self.caches[cache].limit[device]
    }

    fn unindex(&mut self, id: MemoryId) {
        self.give_back(id);
        self.memories[id].state = State::Live { indexed: false };
        self.decisions.unindexed += 1;
    }

    fn unindex_live(&mut self, index: IndexId, device: usize) {
        for id in self.of_index(&self.present, index, device) {
            if self.memories[id].state == (State::Live { indexed: true }) {
                self.unindex(id);
            }
        }
    }

    /// Evicts what is done of one index, the longest held first, until `room` bytes more stay within the limit.
    fn evict(&mut self, cache: CacheId, index: IndexId, device: usize, room: u64) {
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
    fn enforce(&mut self, cache: CacheId, index: IndexId, device: usize, room: u64) {
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

    // ---- giving out ----------------------------------------------------------------------------------------------

    /// Held memory of an index that is large enough and of the right class; with `shape`, of just that shape.
    fn candidates(&self, wanted: &Wanted, index: IndexId, shape: Option<u16>) -> Vec<MemoryId> {
        let mut found = self.of_index(&self.held, index, wanted.device);
        found.retain(|id| {
            let memory = &self.memories[*id];
            memory.class == wanted.class
                && memory.bytes >= wanted.bytes
                && shape.is_none_or(|shape| memory.shape == shape)
        });
        found
    }

    /// One of these has to be found. A look-up looks at the oldest of each stream, not at all: so it surely finds one that
    /// was done when it was released, one whose work is all on the stream, and any where all are ready.
    fn must_find(&self, among: &[MemoryId], stream: Option<StreamId>) -> bool {
        let ready = |id: &MemoryId| self.surely_ready(*id, stream);
        let at_once = |id: &MemoryId| {
            let memory = &self.memories[*id];
            memory.was_done
                || memory
                    .accesses
                    .iter()
                    .all(|access| Some(access.stream) == stream)
        };
        !among.is_empty() && (among.iter().all(ready) || among.iter().any(at_once))
    }

    /// The smallest size at which a look-up surely finds something that fits.
    fn must_fit(&self, wanted: &Wanted, index: IndexId) -> Option<u64> {
        let all = self.candidates(wanted, index, None);
        let mut sizes: Vec<u64> = all.iter().map(|id| self.memories[*id].bytes).collect();
        sizes.sort_unstable();
        sizes.into_iter().find(|size| {
            let of_size = |id: &&MemoryId| self.memories[**id].bytes == *size;
            let same: Vec<_> = all.iter().filter(of_size).copied().collect();
            self.must_find(&same, wanted.stream)
        })
    }

    fn must_exact(&self, wanted: &Wanted, index: IndexId) -> bool {
        let exact = self.candidates(wanted, index, Some(wanted.shape));
        self.must_find(&exact, wanted.stream)
    }

    /// The library gave memory that it held.
    pub fn reuse(&mut self, wanted: &Wanted, id: MemoryId) -> Judged<Reuse> {
        if self.exact {
            self.take_in(wanted.index);
        } else {
            // What other threads released may have been taken in since.
            let lists = self.indexes.iter_mut().map(|index| &mut index.remote);
            for list in lists.filter(|list| list.contains(&id)) {
                list.retain(|released| *released != id);
                self.memories[id].state = State::Held { transient: true };
            }
        }
        let memory = &self.memories[id];
        if let State::Live { .. } = memory.state {
            return Err(format!(
                "memory {id} was given out while it can be observed"
            ));
        }
        if memory.cache != wanted.cache || memory.device != wanted.device {
            return Err(format!("memory {id} is of another cache or device"));
        }
        if memory.class != wanted.class || memory.bytes < wanted.bytes {
            return Err(format!(
                "memory {id} of class {} and {} bytes was given for class {} and {} bytes",
                memory.class, memory.bytes, wanted.class, wanted.bytes
            ));
        }
        if !self.exact {
            self.memories[id].state = State::Live { indexed: false };
            self.memories[id].shape = wanted.shape;
            self.memories[id].owner = wanted.index;
            self.held.retain(|held| *held != id);
            if !self.present.contains(&id) {
                self.present.push(id);
            }
            return Ok(Reuse::Clear);
        }
        let State::Held { transient } = memory.state else {
            return Err(format!(
                "memory {id} was given out after it went back to the driver"
            ));
        };
        let shared = self.caches[wanted.cache].shared;
        let from_shared = memory.owner == shared && memory.owner != wanted.index;
        if !from_shared && memory.owner != wanted.index {
            return Err(format!("memory {id} is another thread's"));
        }
        let exact = memory.shape == wanted.shape;
        let size = memory.bytes;
        let mut how = Reuse::Clear;
        if self.perhaps_ready(id, wanted.stream) {
            self.judge_choice(wanted, exact, size, from_shared)?;
            let room = self.has_room(wanted.cache, wanted.device, wanted.bytes);
            if !room && !self.surely_ready(id, wanted.stream) {
                how = Reuse::Unclear;
            }
        } else {
            if wanted.stream.is_none() {
                return Err(format!(
                    "memory {id} has work queued, and the caller named no stream"
                ));
            }
            self.must_not_find(wanted)?;
            if self.index_room(wanted) {
                how = Reuse::ByShortage;
            }
            if !exact {
                let index = if from_shared { shared } else { wanted.index };
                if !self
                    .candidates(wanted, index, Some(wanted.shape))
                    .is_empty()
                {
                    return Err("a wait for memory of another shape than there was".into());
                }
            }
            self.decisions.waits += 1;
        }
        let done = self.done(id);
        let counters = &mut self.counters[wanted.cache][wanted.device];
        let decisions = &mut self.decisions;
        if exact {
            counters.exact += 1;
            decisions.exact += 1;
        } else {
            counters.fit += 1;
            decisions.fit += 1;
        }
        if !done {
            counters.pending_hits += 1;
            decisions.pending += 1;
        }
        decisions.steals += u64::from(from_shared);
        self.held.retain(|held| *held != id);
        // What was charged for its pending work alone is charged again only where the limit has room.
        let mut indexed = true;
        if transient {
            self.give_back(id);
            indexed = self.has_room(wanted.cache, wanted.device, size);
            if indexed {
                self.charge(id);
            }
        }
        let memory = &mut self.memories[id];
        memory.state = State::Live { indexed };
        memory.owner = wanted.index;
        memory.shape = wanted.shape;
        if done {
            memory.accesses.clear();
        }
        if let Some(stream) = wanted.stream {
            self.begin_access(id, stream, true);
        }
        Ok(how)
    }

    /// Own memory comes before what ended threads left, the exact shape before another, a small one before a larger one.
    fn judge_choice(
        &self,
        wanted: &Wanted,
        exact: bool,
        size: u64,
        from_shared: bool,
    ) -> Judged<()> {
        let shared = self.caches[wanted.cache].shared;
        let index = if from_shared { shared } else { wanted.index };
        if from_shared && self.must_fit(wanted, wanted.index).is_some() {
            return Err("an ended thread's memory was taken though the own index had some".into());
        }
        if !exact && self.must_exact(wanted, index) {
            return Err("memory of another shape was taken though there was the exact one".into());
        }
        match self.must_fit(wanted, index) {
            Some(smaller) if !exact && smaller < size => Err(format!(
                "{size} bytes were taken though there were {smaller}"
            )),
            _ => Ok(()),
        }
    }

    fn must_not_find(&self, wanted: &Wanted) -> Judged<()> {
        for index in [wanted.index, self.caches[wanted.cache].shared] {
            if self.must_fit(wanted, index).is_some() || self.must_exact(wanted, index) {
                return Err("there was memory that was ready".into());
            }
        }
        Ok(())
    }

    /// Whether new memory of that size is indexed, after eviction where it has to be.
    fn index_room(&mut self, wanted: &Wanted) -> bool {
        let &Wanted {
            cache,
            index,
            device,
            bytes,
            ..
        } = wanted;
        if bytes > self.caches[cache].limit[device] {
            return false;
        }
        self.enforce(cache, index, device, bytes);
        self.has_room(cache, device, bytes)
    }

    fn must_not_wait(&self, wanted: &Wanted) -> Judged<()> {
        for index in [wanted.index, self.caches[wanted.cache].shared] {
            if wanted.stream.is_some() && !self.candidates(wanted, index, None).is_empty() {
                return Err("pending memory was to be reused after a wait on the GPU".into());
            }
        }
        Ok(())
    }

    /// The library took new memory.
    pub fn new_memory(&mut self, wanted: &Wanted) -> Judged<MemoryId> {
        let mut indexed = false;
        if self.exact {
            self.take_in(wanted.index);
            self.must_not_find(wanted)?;
            indexed = self.index_room(wanted);
            if !indexed {
                self.must_not_wait(wanted)?;
                self.decisions.over_the_limit += 1;
            }
            self.counters[wanted.cache][wanted.device].misses += 1;
            self.decisions.new_memory += 1;
        }
        let id = self.memories.len();
        self.memories.push(Memory {
            cache: wanted.cache,
            device: wanted.device,
            class: wanted.class,
            shape: wanted.shape,
            bytes: wanted.bytes,
            state: State::Live { indexed },
            owner: wanted.index,
            accesses: Vec::new(),
            was_done: false,
        });
        self.present.push(id);
        if indexed {
            self.charge(id);
        }
        self.driver[wanted.device] += Self::taken(wanted.bytes);
        Ok(id)
    }

    /// The library had no memory: then nothing that fits is held, for a caller that can be made to wait.
    pub fn refused(&mut self, wanted: &Wanted) -> Judged<()> {
        if self.exact {
            self.must_not_wait(wanted)?;
        }
        Ok(())
    }

    // ---- taking back ---------------------------------------------------------------------------------------------

    /// The driver gives whole granules.
    fn taken(bytes: u64) -> u64 {
        bytes.next_multiple_of(512)
    }

    /// Out of the index, and back to the driver once its work is done.
    fn leave(&mut self, id: MemoryId) {
        self.held.retain(|held| *held != id);
        self.give_back(id);
        self.drop_memory(id);
    }

    fn drop_memory(&mut self, id: MemoryId) {
        self.memories[id].state = State::Gone;
        self.present.retain(|present| *present != id);
        let Memory { device, bytes, .. } = self.memories[id];
        if self.done(id) {
            self.driver[device] -= Self::taken(bytes);
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
        } else if !self.indexes[owner].closed && !self.indexes[owner].shared {
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
    fn hold(&mut self, id: MemoryId, may_drop: bool) {
        let done = self.done(id);
        let indexed = self.memories[id].state == State::Live { indexed: true };
        self.memories[id].was_done = done;
        if !indexed {
            if done && may_drop {
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
    fn take_in(&mut self, index: IndexId) {
        for id in std::mem::take(&mut self.indexes[index].remote) {
            self.hold(id, true);
        }
    }

    fn take_in_remote(&mut self, cache: CacheId) {
        for index in 0..self.indexes.len() {
            if self.indexes[index].cache != cache {
                continue;
            }
            self.take_in(index);
        }
    }

    fn drop_done_transients(&mut self, index: IndexId, device: usize) {
        for id in self.of_index(&self.held, index, device) {
            if self.memories[id].state == (State::Held { transient: true }) && self.done(id) {
                self.leave(id);
            }
        }
    }

    /// What each submission does for the calling thread, where it sees that something waits to go.
    pub fn retire(&mut self, cache: CacheId, index: Option<IndexId>, device: usize) {
        for index in index.into_iter().chain([self.caches[cache].shared]) {
            let held = self.of_index(&self.held, index, device);
            let transient = State::Held { transient: true };
            let waits = held.iter().any(|id| self.memories[*id].state == transient);
            if waits || !self.has_room(cache, device, 0) {
                self.retire_index(cache, index, device);
            }
        }
    }

    fn retire_index(&mut self, cache: CacheId, index: IndexId, device: usize) {
        self.take_in(index);
        self.drop_done_transients(index, device);
        self.evict(cache, index, device, 0);
    }

    /// What a wait on the host does for every thread. `true`: the limit is passed and several threads have something to give
    /// up; which goes first is nobody's promise, so it is not followed.
    pub fn retire_all(&mut self, cache: CacheId, device: usize) -> bool {
        let indexes = self.all_indexes(cache);
        let (mut over, mut could_give) = (false, 0);
        for index in &indexes {
            over |= !self.has_room(cache, device, 0);
            let mut given = self.of_index(&self.held, *index, device);
            given.retain(|id| self.done(*id));
            could_give += usize::from(!given.is_empty());
        }
        for index in indexes {
            self.retire_index(cache, index, device);
        }
        over && could_give > 1
    }

    /// After a wait for all that is held there.
    pub fn clear(&mut self, cache: CacheId, device: usize, own: Option<IndexId>) -> Judged<()> {
        let all = own.map_or_else(|| self.all_indexes(cache), |index| vec![index]);
        let waited = all.into_iter().all(|index| {
            let held = self.of_index(&self.held, index, device);
            held.into_iter().all(|id| self.done(id))
        });
        if !waited {
            return Err("cleared without a wait".into());
        }
        self.give_up(cache, device, own);
        Ok(())
    }

    fn give_up(&mut self, cache: CacheId, device: usize, own: Option<IndexId>) {
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
    /// cache: what it still has goes with the next work on it, or the next wait.
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
                self.driver[self.memories[id].device] -= Self::taken(self.memories[id].bytes);
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
                self.driver[memory.device] += Self::taken(memory.bytes);
                self.present.push(id);
            } else {
                memory.state = State::Gone;
            }
        }
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
        all.len() as u64
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
                State::Gone => {}
            }
        }
        totals.count = totals.live.0 - totals.unindexed.0 + totals.idle.0 + totals.pending.0;
        totals
    }
}
