//! Wraps in the model: memory of the program's own that the library lends a handle. It is charged to nobody, kept by nobody and
//! given to nobody else; its owner is told once, when nobody observes it any more and its work is seen complete.

use super::happens_before::Clock;
use super::model::*;

impl Model {
    /// A wrap by the thread of `index`. `true` where an earlier wrap of that thread has left an idle shell for it; the other
    /// shells go, unless they are to be kept.
    pub fn wrap(
        &mut self,
        cache: CacheId,
        index: IndexId,
        device: usize,
        keeps_shells: bool,
    ) -> (MemoryId, bool) {
        let mut has_shell = false;
        if self.exact {
            self.retire(cache, Some(index), device);
            let shells = &mut self.indexes[index].shells[device];
            has_shell = *shells > 0;
            *shells = match keeps_shells {
                true => shells.saturating_sub(1),
                false => 0,
            };
            self.decisions.shells += u64::from(has_shell);
        }
        let id = self.memories.len();
        self.memories.push(Memory {
            cache,
            device,
            class: u16::MAX,
            shape: 0,
            bytes: 0,
            slack: 0,
            state: State::Wrapped { indexed: true },
            owner: index,
            accesses: Vec::new(),
            was_done: false,
        });
        self.wraps.push(id);
        (id, has_shell)
    }

    /// The last reference to a wrap is gone. `index` and `after` as in `release`.
    pub(super) fn release_wrap(&mut self, id: MemoryId, index: Option<IndexId>, after: Clock) {
        let Memory { cache, owner, .. } = self.memories[id];
        let indexed = self.memories[id].state == State::Wrapped { indexed: true };
        self.memories[id].state = State::Untold { indexed };
        if !self.exact {
            return;
        }
        self.seen = after;
        if self.done(id) {
            self.tell(id, index);
        } else {
            self.decisions.told_later += 1;
            if self.indexes[owner].closed {
                self.memories[id].owner = self.caches[cache].shared;
            }
        }
        self.forget_if_over(cache, owner);
    }

    /// The owner is told by the thread of that index. Where it was that thread's wrap, and is indexed still, an idle shell stays.
    fn tell(&mut self, id: MemoryId, by: Option<IndexId>) {
        let Memory { owner, device, .. } = self.memories[id];
        if by == Some(owner) && self.memories[id].state == (State::Untold { indexed: true }) {
            self.indexes[owner].shells[device] += 1;
        }
        self.memories[id].state = State::Gone;
        self.wraps.retain(|wrap| *wrap != id);
        self.told.push(id);
    }

    fn is_untold(&self, id: MemoryId) -> bool {
        matches!(self.memories[id].state, State::Untold { .. })
    }

    /// Wraps of an index whose owners wait to hear.
    pub(super) fn untold(&self, index: IndexId, device: usize) -> Vec<MemoryId> {
        let mut found = self.of_index(&self.wraps, index, device);
        found.retain(|id| self.is_untold(*id));
        found
    }

    pub(super) fn tell_what_is_done(&mut self, index: IndexId, device: usize, by: Option<IndexId>) {
        for id in self.untold(index, device) {
            if self.done(id) {
                self.tell(id, by);
            }
        }
    }

    /// Nobody looks into a closed cache: its wraps' owners hear from whoever retires anything.
    pub fn tell_of_closed_caches(&mut self) {
        for id in self.wraps.clone() {
            let closed = self.caches[self.memories[id].cache].closed;
            if closed && self.is_untold(id) && self.done(id) {
                self.tell(id, None);
            }
        }
    }

    /// No wrap of the index is counted while it lives, or leaves a shell.
    pub(super) fn unindex_wraps(&mut self, index: IndexId, device: usize) {
        for id in self.of_index(&self.wraps, index, device) {
            if let State::Wrapped { indexed } | State::Untold { indexed } =
                &mut self.memories[id].state
            {
                *indexed = false;
            }
        }
    }

    /// A thread's end makes no call of anybody's: owners hear from whoever looks at the shared index.
    pub(super) fn end_wraps(&mut self, cache: CacheId, index: IndexId) {
        for device in 0..2 {
            self.unindex_wraps(index, device);
            for id in self.untold(index, device) {
                self.memories[id].owner = self.caches[cache].shared;
            }
        }
        self.indexes[index].shells = [0; 2];
    }

    /// All work was waited for and all caches were cleared.
    pub(super) fn settle_wraps(&mut self) {
        for id in self.wraps.clone() {
            self.memories[id].accesses.clear();
            match self.memories[id].state {
                State::Untold { .. } => self.tell(id, None),
                _ => self.memories[id].state = State::Wrapped { indexed: false },
            }
        }
        for index in &mut self.indexes {
            index.shells = [0; 2];
        }
    }

    /// What they add to the entries of an index: live ones that are indexed, those whose owner waits to hear, idle shells.
    pub(super) fn wrap_entries(&self, index: IndexId, device: usize) -> u64 {
        let mut wraps = self.of_index(&self.wraps, index, device);
        wraps.retain(|id| self.memories[*id].state != State::Wrapped { indexed: false });
        wraps.len() as u64 + self.indexes[index].shells[device]
    }

    pub(super) fn live_wraps(&self, cache: CacheId, device: usize) -> u64 {
        let live = |id: &&MemoryId| {
            let memory = &self.memories[**id];
            let wrapped = matches!(memory.state, State::Wrapped { .. });
            wrapped && memory.cache == cache && memory.device == device
        };
        self.wraps.iter().filter(live).count() as u64
    }

    /// The library told the owner. `followed`: at the moment that the model says; else whenever its work is done, which the race
    /// checker knows.
    pub fn owner_heard(&mut self, id: MemoryId, followed: bool) -> Judged<()> {
        if let Some(place) = self.told.iter().position(|told| *told == id) {
            self.told.remove(place);
            return Ok(());
        }
        if !self.is_untold(id) {
            return Err(format!(
                "the owner of wrap {id} was told while it can be observed"
            ));
        }
        if followed {
            return Err(format!("the owner of wrap {id} was told unexpectedly"));
        }
        self.tell(id, None);
        self.told.pop();
        Ok(())
    }

    /// Nobody waits to hear any more who should have heard.
    pub fn all_have_heard(&self) -> Judged<()> {
        match self.told.first() {
            Some(id) => Err(format!("the owner of wrap {id} was not told")),
            None => Ok(()),
        }
    }
}
