//! Counts and bytes, summed over the threads' indexes.

use std::sync::atomic::Ordering;

use super::clear::Scope;
use super::counters::Counters;
use super::retire::drop_done;
use super::{lock_drained, thread, Cache, CACHES};
use crate::error::Result;
use crate::memory;
use crate::timeline::Looks;

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

/// Indexed live, idle and pending entries.
pub fn count(cache: &'static Cache, device: i32, scope: Scope) -> u64 {
    let indexes = match scope {
        Scope::Global => cache.all_indexes(),
        Scope::Local => vec![thread::index(cache)],
    };
    drop_done(&indexes, device, Looks::ALL, false);
    let counts = indexes.iter().map(|index| {
        lock_drained(index)
            .device(device)
            .map_or(0, |own| own.indexed_entries())
    });
    counts.sum()
}

/// Bytes charged to the cache, over all threads.
pub fn bytes(cache: &'static Cache, device: i32) -> Result<u64> {
    drop_done(&cache.all_indexes(), device, Looks::ALL, false);
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
    let indexes = cache.all_indexes();
    drop_done(&indexes, device, Looks::ALL, true);
    let state = cache.device(device)?;
    let mut sum = Stats {
        limit: state.retention.limit(),
        views: state.views.load(Ordering::Relaxed),
        ..Stats::default()
    };
    for index in indexes {
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
