//! One thread's index of one cache, behind its lock, and the list on which other threads leave what they released.

use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::device_index::DeviceIndex;
use super::entry::Entry;
use super::limit::Retention;

/// Closed to remote releases: its thread has ended.
const CLOSED: *mut Entry = std::ptr::without_provenance_mut(1);

#[derive(Default)]
pub struct IndexState {
    /// Its thread has ended.
    pub closed: bool,
    pub devices: Vec<Option<Box<DeviceIndex>>>,
}

// SAFETY: the pointers inside lead to entries and tables that only the holder of the index's lock touches.
unsafe impl Send for IndexState {}

/// An index and the list on which other threads leave what they released.
pub struct Index {
    state: Mutex<IndexState>,
    remote: AtomicPtr<Entry>,
}

impl IndexState {
    /// Its thread has ended, and nothing is live or held here any more.
    pub fn is_over(&self) -> bool {
        self.closed
            && self.devices.iter().flatten().all(|device| {
                let counters = &device.counters;
                counters.total_count + counters.wrapped_count == 0 && device.waiting.is_empty()
            })
    }

    #[inline(always)]
    pub fn device(&mut self, device: i32) -> Option<&mut DeviceIndex> {
        self.devices.get_mut(device as usize)?.as_deref_mut()
    }

    pub fn device_or_new(
        &mut self,
        device: i32,
        retention: &'static Retention,
    ) -> &mut DeviceIndex {
        let place = device as usize;
        if self.devices.len() <= place {
            self.devices.resize_with(place + 1, || None);
        }
        self.devices[place].get_or_insert_with(|| Box::new(DeviceIndex::new(retention)))
    }
}

impl Index {
    pub fn new() -> Index {
        Index {
            state: Mutex::new(IndexState::default()),
            remote: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The lock alone: releases of other threads may wait to be taken in.
    #[inline(always)]
    pub fn lock(&self) -> MutexGuard<'_, IndexState> {
        self.state.lock()
    }

    #[inline(always)]
    pub fn has_remote(&self) -> bool {
        let head = self.remote.load(Ordering::Relaxed);
        !head.is_null() && head != CLOSED
    }

    /// Leaves a released entry for the owner; `false` when the index is closed, and then the caller takes it in itself.
    ///
    /// # Safety
    /// `entry` is the caller's alone and counted here.
    pub unsafe fn push_remote(&self, entry: *mut Entry) -> bool {
        let mut head = self.remote.load(Ordering::Relaxed);
        loop {
            if head == CLOSED {
                return false;
            }
            // SAFETY: the caller's promise; it stays the caller's until the exchange below succeeds.
            unsafe { (*entry).remote_next = head };
            match self.remote.compare_exchange_weak(
                head,
                entry,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => head = now,
            }
        }
    }

    /// Takes what other threads released, oldest first. The caller holds the lock.
    pub fn take_remote(&self, close: bool) -> Vec<*mut Entry> {
        let replacement = if close { CLOSED } else { std::ptr::null_mut() };
        if !close && !self.has_remote() {
            return Vec::new();
        }
        let mut entry = self.remote.swap(replacement, Ordering::AcqRel);
        let mut out = Vec::new();
        while !entry.is_null() && entry != CLOSED {
            out.push(entry);
            // SAFETY: entries on the list are this index's since the exchange that put them there.
            entry = unsafe { (*entry).remote_next };
        }
        out.reverse();
        out
    }

    /// Ready for another thread. The caller has seen that nothing is counted here.
    pub fn reopen(&self) {
        *self.state.lock() = IndexState::default();
        self.remote.store(std::ptr::null_mut(), Ordering::Release);
    }
}
