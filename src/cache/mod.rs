//! What may be reused, and when: index, match, retention limit, eviction, thread scopes.
//!
//! Each thread has an index of its own in each cache, behind a lock that others take only for moments: to count, to clear,
//! to evict before new memory is taken. What a thread leaves behind at its end goes to the cache's shared index.

mod acquire;
mod atomics;
mod clear;
mod counters;
mod device_index;
mod entry;
mod evict;
mod index;
mod limit;
mod memo;
mod remote;
mod retire;
mod stats;
mod table;
mod thread;
mod wrap;

use std::sync::atomic::AtomicU64;
use std::sync::OnceLock;

use parking_lot::Mutex;

pub use acquire::{acquire, Acquired};
pub use clear::{clear, close, synchronize, Scope};
pub use entry::{Entry, OwnerRelease};
pub use memo::{note, recall, RawRequest, MEMO_WORDS};
pub use retire::{retire, retire_everywhere};
pub use stats::{bytes, count, reset_peak, stats, Stats};
pub use table::{ClassKey, Request, Resolved, MAX_DIMS};
pub use thread::detach;
pub use wrap::{acquire as acquire_wrap, release as release_wrap, ShellKind};

use crate::backend;
use crate::error::{Result, Status};
use crate::fail;
use crate::memory;
use crate::observe::log;
use crate::observe::mistake::{self, Mistake};
use crate::timeline::Looks;
use device_index::{Held, Release};
use index::Index;
use limit::Retention;

const MAX_DEVICES: usize = 64;

/// How the layer above makes entries and takes them back. `give` gets entries that own nothing any more.
pub struct Hooks {
    pub take: fn() -> Result<*mut Entry>,
    pub give: fn(*mut Entry),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();
static CACHES: Mutex<Vec<&'static Cache>> = Mutex::new(Vec::new());

pub fn set_hooks(hooks: Hooks) {
    let _ = HOOKS.set(hooks);
    memory::set_reclaimer(clear::reclaim);
}

fn hooks() -> &'static Hooks {
    match HOOKS.get() {
        Some(hooks) => hooks,
        None => unreachable!("the object layer sets the hooks before it makes a cache"),
    }
}

/// One index of objects with its own retention limits, over the process's one pool.
pub struct Cache {
    /// Retention limit of every device at its first use; `None`: half of the device's memory.
    initial_limit: Option<u64>,
    devices: [OnceLock<CacheDevice>; MAX_DEVICES],
    /// Every index that something is counted in, `shared` aside.
    indexes: Mutex<Vec<&'static Index>>,
    spare_indexes: Mutex<Vec<&'static Index>>,
    /// What ended threads have left.
    shared: Index,
}

pub struct CacheDevice {
    pub(crate) retention: Retention,
    /// Live views: they own no memory and belong to no index.
    pub views: AtomicU64,
}

// SAFETY: entries behind the raw pointers of an index are touched only under that index's lock, or by their one owner.
unsafe impl Sync for Cache {}
// SAFETY: as above.
unsafe impl Send for Cache {}

impl Cache {
    /// A new cache; it is never freed, so that objects that outlive its handle stay valid.
    pub fn create(initial_limit: Option<u64>) -> &'static Cache {
        let cache: &'static Cache = Box::leak(Box::new(Cache {
            initial_limit,
            devices: [const { OnceLock::new() }; MAX_DEVICES],
            indexes: Mutex::new(Vec::new()),
            spare_indexes: Mutex::new(Vec::new()),
            shared: Index::new(),
        }));
        CACHES.lock().push(cache);
        cache
    }

    /// The state of a device (a valid ordinal). Its first use takes the default limit.
    pub fn device(&self, device: i32) -> Result<&CacheDevice> {
        let place = &self.devices[device as usize];
        if let Some(known) = place.get() {
            return Ok(known);
        }
        // The device's first use loads its kernels, so that no launch does.
        backend::current()?.memory_free_bytes(device)?;
        let limit = match self.initial_limit {
            Some(limit) => {
                warn_if_larger(device, limit)?;
                limit
            }
            None => backend::current()?.device_info(device)?.total_memory / 2,
        };
        let views = AtomicU64::new(0);
        Ok(place.get_or_init(|| CacheDevice {
            retention: Retention::new(limit),
            views,
        }))
    }

    fn new_index(&self) -> &'static Index {
        let index = match self.spare_indexes.lock().pop() {
            Some(index) => {
                index.reopen();
                index
            }
            None => Box::leak(Box::new(Index::new())),
        };
        self.indexes.lock().push(index);
        index
    }

    fn recycle_index(&self, index: &'static Index) {
        let mut indexes = self.indexes.lock();
        if let Some(place) = indexes.iter().position(|known| std::ptr::eq(*known, index)) {
            indexes.swap_remove(place);
            self.spare_indexes.lock().push(index);
        }
    }

    fn all_indexes(&'static self) -> Vec<&'static Index> {
        let mut all = self.indexes.lock().clone();
        all.push(&self.shared);
        all
    }
}

fn warn_if_larger(device: i32, limit: u64) -> Result<()> {
    let total = backend::current()?.device_info(device)?.total_memory;
    if limit > total {
        log::write(
            log::Level::Warning,
            format_args!("cache limit is {limit} bytes, more than the {total} bytes that device {device} has"),
        );
    }
    Ok(())
}

pub fn get_limit(cache: &Cache, device: i32) -> Result<u64> {
    Ok(cache.device(device)?.retention.limit())
}

/// Sets the retention limit and evicts down to it. Pending entries stay charged; if live ones alone pass the limit, those
/// of the calling thread lose their index entry.
pub fn set_limit(cache: &'static Cache, device: i32, bytes: i64) -> Result<()> {
    let Ok(limit) = u64::try_from(bytes) else {
        fail!(
            Status::InvalidLimit,
            "bytes is {bytes}, expected a cache limit that is not negative"
        );
    };
    warn_if_larger(device, limit)?;
    let retention = &cache.device(device)?.retention;
    retention.set_limit(limit);
    if mistake::is(Mistake::LoweredLimitKeeps) {
        return Ok(());
    }
    enforce_limit(cache, device, 0, Looks::ALL);
    if retention.is_over() {
        let index = thread::index(cache);
        if let Some(own) = lock_drained(index).device(device) {
            own.unindex_live();
        }
    }
    Ok(())
}

/// Evicts what is done of the calling thread's index and the shared one, the longest held first, until `room` bytes more
/// would stay within the limit.
fn enforce_limit(cache: &'static Cache, device: i32, room: u64, looks: Looks) {
    if cache.devices[device as usize]
        .get()
        .is_some_and(|known| known.retention.has_room(room))
    {
        return;
    }
    let indexes = [thread::index(cache), &cache.shared];
    retire::ask(&indexes, device, looks, true);
    for index in indexes {
        let evicted = match lock_drained(index).device(device) {
            Some(own) => own.evict(looks, |retention| !retention.has_room(room)),
            None => continue,
        };
        free_entries(evicted);
    }
}

/// What `DeviceIndex::remembered` says of the calling thread's index.
#[cfg(test)]
pub fn remembered(cache: &'static Cache, device: i32) -> ([usize; 3], u64) {
    let index = thread::index(cache);
    let mut state = index.lock();
    let own = state.device(device).expect("the device was used");
    own.remembered()
}

/// The index's lock, with what other threads released taken in.
fn lock_drained(index: &'static Index) -> parking_lot::MutexGuard<'static, index::IndexState> {
    let mut state = index.lock();
    if index.has_remote() {
        let mut dropped = Vec::new();
        for entry in index.take_remote(false) {
            // SAFETY: entries on the list are this index's.
            unsafe {
                if let Some(device) = state.device((*entry).device) {
                    if let Held::Drop(entry) = device.hold(entry, Release::List) {
                        dropped.push(entry);
                    }
                }
            }
        }
        if !dropped.is_empty() {
            // Freeing may call the driver, which must not happen under the lock.
            drop(state);
            free_entries(dropped);
            state = index.lock();
        }
    }
    state
}

/// Gives the entries' blocks to the pool and the entries back; returns their bytes. No index lock is held.
fn free_entries(entries: Vec<*mut Entry>) -> u64 {
    let mut bytes = 0;
    for entry in entries {
        // SAFETY: the entries were taken out of all lists and are the caller's alone.
        unsafe {
            let accesses = std::mem::take((*entry).accesses.get_mut());
            if let Some(block) = (*entry).block.take() {
                memory::release(block, accesses);
            }
            bytes += (*entry).charge;
            (*entry).charge = 0;
        }
        (hooks().give)(entry);
    }
    bytes
}

/// Takes in an entry whose last reference is gone, from any thread.
///
/// # Safety
/// `entry` came from `acquire`, is no wrap, and is the caller's alone.
#[inline(always)]
pub unsafe fn release(cache: &'static Cache, entry: *mut Entry) {
    // SAFETY: the caller's promise; indexes are never freed.
    unsafe {
        let mut index: &'static Index = &*(*entry).owner;
        if !thread::owns(index) {
            if !mistake::is(Mistake::ReleaseWithoutOwnersList) {
                release_elsewhere(cache, index, entry);
                return;
            }
            index = thread::index(cache);
        }
        let mut state = index.lock();
        // Read now: once the lock is let go the entry may be somebody else's.
        let place = (*entry).device;
        let Some(device) = state.device(place) else {
            return;
        };
        let held = device.hold(entry, Release::Call);
        let over = device.retention.is_over();
        drop(state);
        if let Held::Drop(entry) = held {
            free_entries(vec![entry]);
        }
        if over {
            enforce_limit(cache, place, 0, Looks::FEW);
        }
    }
}

/// Like `release`, for an entry that is not to be used again: its bytes go to the pool.
///
/// # Safety
/// As `release`.
#[cold]
pub unsafe fn discard(cache: &'static Cache, entry: *mut Entry) {
    // SAFETY: the caller's promise; indexes are never freed.
    unsafe {
        let index: &'static Index = &*(*entry).owner;
        let mut state = index.lock();
        let Some(device) = state.device((*entry).device) else {
            return;
        };
        if let Held::Kept = device.hold(entry, Release::Call) {
            device.take_out(entry);
            device.retention.give_back((*entry).charge);
        }
        let over = state.is_over();
        drop(state);
        free_entries(vec![entry]);
        if over {
            cache.recycle_index(index);
        }
    }
}

#[cold]
unsafe fn release_elsewhere(cache: &'static Cache, index: &'static Index, entry: *mut Entry) {
    // SAFETY: as in `release`.
    unsafe {
        let closed = cache.devices[(*entry).device as usize]
            .get()
            .is_some_and(|known| known.retention.is_closed());
        // In a closed cache no look-up would take it off the owner's list.
        if !closed && !std::ptr::eq(index, &cache.shared) && index.push_remote(entry) {
            return;
        }
        let mut state = index.lock();
        let place = (*entry).device;
        let Some(device) = state.device(place) else {
            return;
        };
        match device.hold(entry, Release::Call) {
            Held::Drop(entry) => {
                let over = state.is_over();
                drop(state);
                free_entries(vec![entry]);
                if over {
                    cache.recycle_index(index);
                }
            }
            Held::Kept if std::ptr::eq(index, &cache.shared) => {}
            Held::Kept => {
                // The owner's thread has ended: what is still pending belongs in the shared index.
                let key = device.take_out(entry);
                let retention = device.retention;
                let mut shared = cache.shared.lock();
                (*entry).owner = &cache.shared;
                (*entry).transient = true;
                shared
                    .device_or_new(place, retention)
                    .adopt_held(entry, &key);
                drop(shared);
                let over = state.is_over();
                drop(state);
                if over {
                    cache.recycle_index(index);
                }
            }
        }
    }
}
