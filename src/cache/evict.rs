//! What leaves an index: evicted entries, those that were only pending, and live ones that lose their index entry.

use super::device_index::DeviceIndex;
use super::entry::{Entry, HOME_DONE};
use super::limit::Retention;
use crate::observe::mistake::{self, Mistake};
use crate::timeline::{Accesses, Looks, Polls};

/// Whether the entry's work is known to be done. Under an index's lock nobody asks the driver: see `retire.rs`.
unsafe fn is_done(entry: *mut Entry) -> bool {
    // SAFETY: the entry is held by the index whose lock the caller has.
    unsafe { (*entry).accesses.get_mut().is_done() }
}

impl DeviceIndex {
    /// Every held entry: first those that leave the index once they are done, then the others, the longest held first.
    pub(super) fn held(&self) -> impl Iterator<Item = *mut Entry> {
        self.transients.iter().chain(self.ages.iter())
    }

    /// Something is held that is to go once it is done.
    pub fn waits(&mut self) -> bool {
        !self.transients.is_empty() || !self.waiting.is_empty() || self.retention.is_over()
    }

    /// Notes which streams are waited for by what may have to go: over the limit, or with `all`, that is everything.
    pub fn note_open(&self, polls: &mut Polls, all: bool) {
        // SAFETY: the entries are held by this index, whose lock the caller has, so nobody changes their accesses.
        let accesses = |entry: *mut Entry| unsafe { &*(*entry).accesses.data_ptr() };
        polls.note(self.transients.iter().map(accesses));
        polls.note(self.waiting.iter().copied().map(accesses));
        if all || self.retention.is_over() {
            polls.note(self.ages.iter().map(accesses));
        }
    }

    /// Evicts entries of `bytes` together, as far as they are done.
    pub fn evict_bytes(&mut self, bytes: u64) -> Vec<*mut Entry> {
        let before = self.counters.held_bytes;
        let target = before.saturating_sub(bytes);
        let mut left = before;
        let mut out = Vec::new();
        for entry in self.held() {
            if left <= target {
                break;
            }
            // SAFETY: the entry is held by this index; the iterator is already past it.
            unsafe {
                if is_done(entry) {
                    left -= (*entry).charge;
                    self.evict_one(entry);
                    out.push(entry);
                }
            }
        }
        out
    }

    unsafe fn evict_one(&mut self, entry: *mut Entry) {
        // SAFETY: the entry is held by this index.
        unsafe {
            self.unlink(entry);
            if !mistake::is(Mistake::EvictionKeepsCharge) {
                self.retention.give_back((*entry).charge);
            }
            self.counters.evictions += 1;
            self.leave(entry);
        }
    }

    /// Takes out held entries that are done while `more` says so, passing by as many open ones as `looks` has entries. They
    /// are given back to the retention's account.
    pub fn evict(&mut self, looks: Looks, more: impl Fn(&Retention) -> bool) -> Vec<*mut Entry> {
        let mut out = Vec::new();
        let mut passed_by = 0;
        // What is over the limit for its work alone goes by itself once that is done: it does not hide the others.
        let transients = self.transients.iter().take(looks.entries / 2);
        for entry in transients.chain(self.ages.iter()) {
            if !more(self.retention) || passed_by >= looks.entries {
                break;
            }
            // SAFETY: as in `evict_bytes`.
            unsafe {
                if is_done(entry) || mistake::is(Mistake::EvictPending) {
                    self.evict_one(entry);
                    out.push(entry);
                } else {
                    passed_by += 1;
                }
            }
        }
        out
    }

    /// Takes out held entries that leave the index once they are done and are. The order is that of `Looks::take_done`.
    pub fn take_done_transients(&mut self, looks: Looks) -> Vec<*mut Entry> {
        let mut out = Vec::new();
        let mut open = 0;
        let last = self.transients.newest();
        for entry in self.transients.iter().take(looks.entries) {
            // SAFETY: as in `evict_bytes`.
            unsafe {
                if is_done(entry) {
                    self.unlink(entry);
                    self.retention.give_back((*entry).charge);
                    self.leave(entry);
                    out.push(entry);
                } else if open < looks.open {
                    open += 1;
                    self.transients.remove(entry);
                    self.transients.push(entry);
                }
            }
            if Some(entry) == last {
                break;
            }
        }
        out
    }

    /// Like `take_done_transients`, for wraps whose owners wait to hear.
    pub fn take_done_waiting(&mut self, looks: Looks) -> Vec<*mut Entry> {
        // SAFETY: waiting wraps belong to this index.
        looks.take_done(&mut self.waiting, |entry| unsafe { is_done(*entry) })
    }

    /// Count and bytes of the held entries whose work is not known to be done.
    pub fn pending(&mut self) -> (u64, u64) {
        let (mut count, mut bytes) = (0, 0);
        for entry in self.held() {
            // SAFETY: the entry is held by this index.
            unsafe {
                if (*entry).home != HOME_DONE && !is_done(entry) {
                    count += 1;
                    bytes += (*entry).charge;
                }
            }
        }
        (count, bytes)
    }

    /// The open accesses of everything held here, to be waited for outside the lock.
    pub fn open_accesses(&mut self) -> Accesses {
        let mut all = Accesses::default();
        for entry in self.held().chain(self.waiting.iter().copied()) {
            // SAFETY: the entry is held by this index.
            let accesses = unsafe { (*entry).accesses.get_mut() };
            if !accesses.is_done() {
                all.merge(accesses);
            }
        }
        all
    }

    /// Makes every live entry unindexed and gives its charge back.
    pub fn unindex_live(&mut self) {
        self.epoch += 1;
        let counters = &mut self.counters;
        self.retention
            .give_back(counters.indexed_bytes - counters.held_bytes);
        counters.indexed_count = counters.held_count;
        counters.indexed_bytes = counters.held_bytes;
        counters.indexed_wrapped = 0;
        // Held entries stay indexed.
        for entry in self.held() {
            // SAFETY: the entry is held by this index.
            unsafe { (*entry).epoch = self.epoch };
        }
    }

    /// Entries that `count` tells.
    pub fn indexed_entries(&self) -> u64 {
        let shells = self.shells.iter().map(Vec::len).sum::<usize>() + self.waiting.len();
        self.counters.indexed_count + self.counters.indexed_wrapped + shells as u64
    }
}
