//! What leaves an index: evicted entries, those that were only pending, and live ones that lose their index entry.

use super::device_index::DeviceIndex;
use super::entry::{Entry, HOME_DONE};
use super::limit::Retention;
use crate::timeline::Accesses;

impl DeviceIndex {
    /// Evicts entries of `bytes` together, asking the driver about each.
    pub fn evict_bytes(&mut self, bytes: u64) -> Vec<*mut Entry> {
        let before = self.counters.held_bytes;
        let target = before.saturating_sub(bytes);
        let mut left = before;
        let mut sizes = self.ages.iter();
        let mut out = Vec::new();
        while left > target {
            let Some(entry) = sizes.next() else { break };
            // SAFETY: the entry is held by this index; the iterator is already past it.
            unsafe {
                if Self::is_done(entry, &mut { u32::MAX }) {
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
            self.retention.give_back((*entry).charge);
            self.counters.evictions += 1;
            self.leave(entry);
        }
    }

    /// Takes out held entries whose work is seen complete, the longest held first, while `more` says so. They are given
    /// back to the retention's account.
    pub fn evict(
        &mut self,
        budget: &mut u32,
        mut more: impl FnMut(&Retention) -> bool,
    ) -> Vec<*mut Entry> {
        let mut out = Vec::new();
        let mut open_looked_at = 0;
        let mut next = self.ages.iter();
        while more(self.retention) && open_looked_at < 64 {
            let Some(entry) = next.next() else { break };
            // SAFETY: the entry is held by this index; the iterator is already past it.
            unsafe {
                if !Self::is_done(entry, budget) {
                    open_looked_at += 1;
                    continue;
                }
                self.evict_one(entry);
            }
            out.push(entry);
        }
        out
    }

    /// Takes out the held entries that leave the index once they are done and are.
    pub fn take_done_transients(&mut self, budget: &mut u32) -> Vec<*mut Entry> {
        let mut out = Vec::new();
        if self.counters.transient_count == 0 {
            return out;
        }
        let mut left = self.counters.transient_count;
        let mut next = self.ages.iter();
        while left > 0 {
            let Some(entry) = next.next() else { break };
            if *budget == 0 {
                break;
            }
            // SAFETY: as in `evict`.
            unsafe {
                if !(*entry).transient {
                    continue;
                }
                left -= 1;
                if Self::is_done(entry, budget) {
                    self.unlink(entry);
                    self.retention.give_back((*entry).charge);
                    self.leave(entry);
                    out.push(entry);
                }
            }
        }
        out
    }

    unsafe fn is_done(entry: *mut Entry, budget: &mut u32) -> bool {
        // SAFETY: the entry is held by the index whose lock the caller has.
        let accesses = unsafe { (*entry).accesses.get_mut() };
        if accesses.is_done() {
            return true;
        }
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        accesses.poll()
    }

    /// Count and bytes of the held entries whose work is not seen complete, after asking the driver.
    pub fn pending(&mut self) -> (u64, u64) {
        let (mut count, mut bytes) = (0, 0);
        let mut budget = u32::MAX;
        for entry in self.ages.iter() {
            // SAFETY: the entry is held by this index.
            unsafe {
                if (*entry).home != HOME_DONE && !Self::is_done(entry, &mut budget) {
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
        for entry in self.ages.iter().chain(self.waiting.iter().copied()) {
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
        for entry in self.ages.iter() {
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
