//! One thread's index of one cache, behind its lock, and the list on which other threads leave what they released.

use parking_lot::{Mutex, MutexGuard};

use super::device_index::DeviceIndex;
use super::entry::Entry;
use super::limit::Retention;
use super::remote::RemoteList;

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
    remote: RemoteList<Entry>,
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
            remote: RemoteList::new(),
        }
    }

    /// The lock alone: releases of other threads may wait to be taken in.
    #[inline(always)]
    pub fn lock(&self) -> MutexGuard<'_, IndexState> {
        self.state.lock()
    }

    #[inline(always)]
    pub fn has_remote(&self) -> bool {
        self.remote.has_any()
    }

    /// Leaves a released entry for the owner; `false` when the index is closed, and then the caller takes it in itself.
    ///
    /// # Safety
    /// `entry` is the caller's alone and counted here.
    pub unsafe fn push_remote(&self, entry: *mut Entry) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.remote.push(entry) }
    }

    /// Takes what other threads released, oldest first. The caller holds the lock.
    pub fn take_remote(&self, close: bool) -> Vec<*mut Entry> {
        self.remote.take(close)
    }

    /// Ready for another thread. The caller has seen that nothing is counted here.
    pub fn reopen(&self) {
        *self.state.lock() = IndexState::default();
        self.remote.reopen();
    }
}
