//! What a request may be given, and what it must be: the model's part that judges a look-up.

use super::model::*;

pub struct Wanted {
    pub cache: CacheId,
    pub index: IndexId,
    pub device: usize,
    pub class: u16,
    pub shape: u16,
    pub bytes: u64,
    /// What new memory takes beyond that, for its alignment.
    pub slack: u64,
    pub stream: Option<StreamId>,
    pub waiting: Waiting,
}

/// Whether a request can be served by a wait on the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It names no stream, or one that captures.
    Never,
    /// Not for work of streams where no event can be recorded now.
    For {
        stream: StreamId,
        barred: Vec<StreamId>,
    },
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

impl Model {
    /// Held memory of an index that is large enough and of the right class; with `shape`, of just that shape.
    pub(super) fn candidates(
        &self,
        wanted: &Wanted,
        index: IndexId,
        shape: Option<u16>,
    ) -> Vec<MemoryId> {
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
    pub(super) fn must_find(&self, among: &[MemoryId], stream: Option<StreamId>) -> bool {
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
    pub(super) fn must_fit(&self, wanted: &Wanted, index: IndexId) -> Option<u64> {
        let all = self.candidates(wanted, index, None);
        let mut sizes: Vec<u64> = all.iter().map(|id| self.memories[*id].bytes).collect();
        sizes.sort_unstable();
        sizes.into_iter().find(|size| {
            let of_size = |id: &&MemoryId| self.memories[**id].bytes == *size;
            let same: Vec<_> = all.iter().filter(of_size).copied().collect();
            self.must_find(&same, wanted.stream)
        })
    }

    pub(super) fn must_exact(&self, wanted: &Wanted, index: IndexId) -> bool {
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
            if wanted.waiting == Waiting::Never {
                return Err(format!(
                    "memory {id} has work queued, and the caller named no stream or one that captures"
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
    pub(super) fn judge_choice(
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

    pub(super) fn must_not_find(&self, wanted: &Wanted) -> Judged<()> {
        for index in [wanted.index, self.caches[wanted.cache].shared] {
            if self.must_fit(wanted, index).is_some() || self.must_exact(wanted, index) {
                return Err("there was memory that was ready".into());
            }
        }
        Ok(())
    }

    /// Whether new memory of that size is indexed, after eviction where it has to be.
    pub(super) fn index_room(&mut self, wanted: &Wanted) -> bool {
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

    pub(super) fn must_not_wait(&self, wanted: &Wanted) -> Judged<()> {
        if wanted.waiting == Waiting::Never || self.fails_to_wait(wanted) {
            return Ok(());
        }
        for index in [wanted.index, self.caches[wanted.cache].shared] {
            if !self.candidates(wanted, index, None).is_empty() {
                return Err("pending memory was to be reused after a wait on the GPU".into());
            }
        }
        Ok(())
    }

    /// A wait for memory that is held may be refused, and that memory then goes.
    pub fn fails_to_wait(&self, wanted: &Wanted) -> bool {
        let Waiting::For { stream, barred } = &wanted.waiting else {
            return false;
        };
        if barred.is_empty() {
            return false;
        }
        let indexes = [wanted.index, self.caches[wanted.cache].shared];
        let held = indexes.map(|index| self.candidates(wanted, index, None));
        let mut held = held.iter().flatten();
        held.any(|id| self.waits_for_one_of(barred, *id, *stream, true))
    }

    /// A stream that captures was given other memory, though a wait would have made some ready.
    fn note_spared_wait(&mut self, wanted: &Wanted) {
        if wanted.stream.is_some() && wanted.waiting == Waiting::Never {
            let held = self.candidates(wanted, wanted.index, None);
            self.decisions.spared_waits += u64::from(!held.is_empty());
        }
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
                self.note_spared_wait(wanted);
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
            slack: wanted.slack,
            state: State::Live { indexed },
            owner: wanted.index,
            accesses: Vec::new(),
            was_done: false,
        });
        self.present.push(id);
        if indexed {
            self.charge(id);
        }
        self.driver[wanted.device] += self.taken(id);
        Ok(id)
    }

    /// The library had no memory: then nothing that fits is held, for a caller that can be made to wait.
    pub fn refused(&mut self, wanted: &Wanted) -> Judged<()> {
        if self.exact {
            self.must_not_wait(wanted)?;
        }
        Ok(())
    }
}
