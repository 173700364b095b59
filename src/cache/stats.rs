//! Counts and bytes, summed over the threads' indexes.

use std::sync::atomic::Ordering;

use super::clear::Scope;
use super::counters::Counters;
use super::{free_entries, lock_drained, thread, Cache, CACHES};
use crate::error::Result;
use crate::memory;

/// One device of one cache. Exact whenever no call is in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub limit: u64,
    pub count: u64,
    pub bytes: u64,
    pub peak: u64,
    pub pending_count: u64,
    pub pending_bytes: u64,
    pub counters: Counters,
    pub views: u64,
    pub driver_bytes: u64,
    pub free_bytes: u64,
}

/// What ended threads have left and is done goes as soon as somebody counts.
fn drop_done_shared(cache: &'static Cache, device: i32) {
    let done = match cache.shared.lock().device(device) {
        Some(shared) => shared.take_done_transients(&mut { u32::MAX }),
        None => return,
    };
    free_entries(done);
}

/// Indexed live, idle and pending entries.
pub fn count(cache: &'static Cache, device: i32, scope: Scope) -> u64 {
    let mut count = 0;
    if scope == Scope::Global {
        drop_done_shared(cache, device);
        for index in cache.all_indexes() {
            count += lock_drained(index)
                .device(device)
                .map_or(0, |own| own.indexed_entries());
        }
        return count;
    }
    lock_drained(thread::index(cache))
        .device(device)
        .map_or(0, |own| own.indexed_entries())
}

/// Bytes charged to the cache, over all threads.
pub fn bytes(cache: &'static Cache, device: i32) -> Result<u64> {
    drop_done_shared(cache, device);
    for index in cache.all_indexes() {
        drop(lock_drained(index));
    }
    Ok(cache.device(device)?.retention.bytes())
}

pub fn reset_peak(cache: &Cache, device: i32) -> Result<()> {
    cache.device(device)?.retention.reset_peak();
    Ok(())
}

/// Bytes of the objects of all caches, live and held.
fn bytes_in_objects(device: i32) -> u64 {
    let caches = CACHES.lock().clone();
    let indexes = caches.into_iter().flat_map(Cache::all_indexes);
    indexes
        .map(|index| {
            index
                .lock()
                .device(device)
                .map_or(0, |own| own.counters.total_bytes)
        })
        .sum()
}

pub fn stats(cache: &'static Cache, device: i32) -> Result<Stats> {
    drop_done_shared(cache, device);
    let state = cache.device(device)?;
    let mut sum = Stats {
        limit: state.retention.limit(),
        views: state.views.load(Ordering::Relaxed),
        ..Stats::default()
    };
    for index in cache.all_indexes() {
        let mut guard = lock_drained(index);
        let Some(own) = guard.device(device) else {
            continue;
        };
        sum.count += own.indexed_entries();
        let (count, bytes) = own.pending();
        sum.pending_count += count;
        sum.pending_bytes += bytes;
        sum.counters.add(&own.counters);
    }
    sum.bytes = state.retention.bytes();
    sum.peak = state.retention.peak();
    sum.driver_bytes = memory::driver_bytes(device);
    sum.free_bytes = sum.driver_bytes.saturating_sub(bytes_in_objects(device));
    Ok(sum)
}
