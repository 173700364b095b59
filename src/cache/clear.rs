//! Giving everything back: clear, synchronize, and what the pool asks for when the driver has no memory left.

use super::index::Index;
use super::retire::{ask, retire_all};
use super::{free_entries, lock_drained, thread, wrap, Cache, CACHES};
use crate::error::Result;
use crate::memory::{self, Reclaim};
use crate::observe::mistake::{self, Mistake};
use crate::timeline::{self, Deadline, Looks};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every thread's entries, and what ended threads have left.
    Global,
    /// The calling thread's.
    Local,
}

fn indexes(cache: &'static Cache, scope: Scope) -> Vec<&'static Index> {
    match scope {
        Scope::Global => cache.all_indexes(),
        Scope::Local => vec![thread::index(cache)],
    }
}

/// Waits for the work of everything held, in slices if the deadline says so; `false` when it passed first.
fn wait_for_held(
    cache: &'static Cache,
    device: i32,
    scope: Scope,
    deadline: Deadline,
) -> Result<bool> {
    for index in indexes(cache, scope) {
        let open = match lock_drained(index).device(device) {
            Some(own) => own.open_accesses(),
            None => continue,
        };
        if !open.wait(deadline)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits for pending work, then gives every held entry's memory back and makes live ones unindexed.
pub fn clear(cache: &'static Cache, device: i32, scope: Scope) -> Result<()> {
    if !mistake::is(Mistake::ClearDoesNotWait) {
        // All waits come first: where one fails nothing has changed.
        wait_for_held(cache, device, scope, Deadline::NEVER)?;
        if scope == Scope::Global {
            memory::wait_for_deferred(device, Deadline::NEVER)?;
        }
    }
    for index in indexes(cache, scope) {
        let mut state = lock_drained(index);
        let Some(own) = state.device(device) else {
            continue;
        };
        own.unindex_live();
        let held_bytes = own.counters.held_bytes;
        let held: Vec<_> = own.take_all().into_iter().map(|(entry, _)| entry).collect();
        own.retention.give_back(held_bytes);
        let shells: Vec<_> = own.shells.iter_mut().flat_map(std::mem::take).collect();
        let told = own.take_done_waiting(Looks::ALL);
        drop(state);
        free_entries(held);
        free_entries(shells);
        for entry in told {
            // SAFETY: just taken out of the waiting list, its work done.
            unsafe { wrap::finish(entry) };
        }
    }
    memory::collect(device, Looks::ALL);
    Ok(())
}

/// Ends a cache whose last handle is gone: keeps nothing from now on, and gives back what it held as soon as its work is
/// done. Waits for nothing; live objects go on living.
pub fn close(cache: &'static Cache) {
    // No thread's memo serves the handle any more.
    timeline::forget_lookups();
    for place in 0..super::MAX_DEVICES {
        let Some(device) = cache.devices[place].get() else {
            continue;
        };
        device.retention.close();
        for index in cache.all_indexes() {
            let mut state = lock_drained(index);
            let Some(own) = state.device(place as i32) else {
                continue;
            };
            own.unindex_live();
            let held_bytes = own.counters.held_bytes;
            let held: Vec<_> = own.take_all().into_iter().map(|(entry, _)| entry).collect();
            own.retention.give_back(held_bytes);
            let waiting = std::mem::take(&mut own.waiting);
            drop(state);
            free_entries(held);
            // SAFETY: wraps that waited here, and are in no list by now.
            unsafe { wrap::leave_behind(waiting) };
        }
    }
}

/// Waits for pending entries of all threads and retires them; `false` when the deadline passed first.
pub fn synchronize(cache: &'static Cache, device: i32, deadline: Deadline) -> Result<bool> {
    let done = wait_for_held(cache, device, Scope::Global, deadline)?
        && memory::wait_for_deferred(device, deadline)?;
    if done {
        retire_all(cache, device);
        memory::collect(device, Looks::ALL);
    }
    Ok(done)
}

/// Evicts held entries of every cache and thread until `bytes` have gone back. No index lock is held by the caller.
pub fn reclaim(device: i32, bytes: u64, how: Reclaim) -> u64 {
    let caches = CACHES.lock().clone();
    let mut freed = 0;
    for cache in caches {
        if how == Reclaim::Waiting
            && wait_for_held(cache, device, Scope::Global, Deadline::NEVER).is_err()
        {
            continue;
        }
        let indexes = cache.all_indexes();
        ask(&indexes, device, Looks::ALL, true);
        for index in indexes {
            let mut state = lock_drained(index);
            let Some(own) = state.device(device) else {
                continue;
            };
            let out = own.evict_bytes(bytes.saturating_sub(freed));
            drop(state);
            freed += free_entries(out);
        }
    }
    freed
}
