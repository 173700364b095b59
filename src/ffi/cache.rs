//! `cvc_cache_*`: handles of caches, limits, counts, clearing.

use std::sync::OnceLock;

use parking_lot::Mutex;

use super::arguments::{self, handle, opaque, out};
use super::constants::*;
use super::error::{guard, guard_release};
use super::structs::*;
use crate::cache::{self, Cache, Scope};
use crate::error::{Result, Status};
use crate::fail;
use crate::memory;
use crate::object::{self, Handle, ObjectKind};
use crate::op::resize_store;

struct Default {
    cache: &'static Cache,
    handle: Handle,
}

static DEFAULT: OnceLock<Default> = OnceLock::new();

fn default_cache() -> Result<&'static Default> {
    static MAKING: Mutex<()> = Mutex::new(());
    if let Some(default) = DEFAULT.get() {
        return Ok(default);
    }
    let _making = MAKING.lock();
    if let Some(default) = DEFAULT.get() {
        return Ok(default);
    }
    let (cache, handle) = object::create_cache(None)?;
    Ok(DEFAULT.get_or_init(|| Default { cache, handle }))
}

/// The cache that a handle means.
#[inline(always)]
pub fn find(cache: cvc_cache_t) -> Result<&'static Cache> {
    match DEFAULT.get() {
        Some(default) if default.handle == handle(cache) => Ok(default.cache),
        _ => find_other(cache),
    }
}

#[cold]
fn find_other(cache: cvc_cache_t) -> Result<&'static Cache> {
    object::acquire(handle(cache), ObjectKind::Cache, "cache").map(|object| object.cache())
}

fn is_default(cache: cvc_cache_t) -> bool {
    DEFAULT
        .get()
        .is_some_and(|default| default.handle == handle(cache))
}

/// The process's own cache, which every language shares. It lives as long as the process: retain and release do nothing.
#[no_mangle]
pub unsafe extern "C" fn cvc_cache_default(cache: *mut cvc_cache_t) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let cache = unsafe { out(cache, std::ptr::null_mut(), "cache") }?;
        *cache = opaque(default_cache()?.handle);
        Ok(())
    })
}

/// A cache of its own: another index with retention limits of its own, over the process's one pool of memory.
///
/// @param options may be null
/// @param[out] cache to be released with `cvc_cache_release`; objects may outlive it
#[no_mangle]
pub unsafe extern "C" fn cvc_cache_create(
    options: *const cvc_cache_options_t,
    cache: *mut cvc_cache_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointers.
        let cache = unsafe { out(cache, std::ptr::null_mut(), "cache") }?;
        let mut limit = None;
        if !options.is_null() {
            // SAFETY: as above.
            let options = unsafe { arguments::read(options, "options") }?;
            arguments::flags(options.flags, 0, "options.flags")?;
            if options.limit < -1 {
                fail!(
                    Status::InvalidLimit,
                    "options.limit is {}, expected -1 (half of the device) or more",
                    options.limit
                );
            }
            limit = u64::try_from(options.limit).ok();
        }
        *cache = opaque(object::create_cache(limit)?.1);
        Ok(())
    })
}

/// Adds a reference.
#[no_mangle]
pub extern "C" fn cvc_cache_retain(cache: cvc_cache_t) -> cvc_status_t {
    guard(|| {
        if is_default(cache) {
            return Ok(());
        }
        object::retain(handle(cache), ObjectKind::Cache, "cache")
    })
}

/// Drops a reference. With the last one the cache keeps nothing any more: what it held goes back once its work is done;
/// live objects stay valid. Waits for nothing.
#[no_mangle]
pub extern "C" fn cvc_cache_release(cache: cvc_cache_t) -> cvc_status_t {
    guard_release(|| {
        if is_default(cache) {
            return Ok(());
        }
        object::release(handle(cache), ObjectKind::Cache, "cache")
    })
}

/// Waits for pending work, then gives idle and pending memory back to the driver. Live objects stay valid, but are not
/// indexed any more. `CVC_STATUS_CAPTURING` where a stream with such work captures; nothing has changed then.
///
/// @param device ordinal, or -1: the current one
/// @param scope `CVC_SCOPE_GLOBAL`: every thread's entries, and what was given up on the device with work queued, by any
///   cache; `CVC_SCOPE_LOCAL`: the calling thread's
#[no_mangle]
pub extern "C" fn cvc_cache_clear(
    cache: cvc_cache_t,
    device: i32,
    scope: cvc_scope_t,
) -> cvc_status_t {
    guard(|| {
        let scope = arguments::scope(scope)?;
        let device = arguments::device(device)?;
        cache::clear(find(cache)?, device, scope)?;
        if scope == Scope::Global {
            resize_store::clear(device);
        }
        Ok(())
    })
}

/// The number of indexed entries: live, idle and pending; wraps count, and so does, at 0 bytes, the idle shell that the last
/// wrap of a kind leaves for the next. Views and streams do not.
#[no_mangle]
pub unsafe extern "C" fn cvc_cache_count(
    cache: cvc_cache_t,
    device: i32,
    scope: cvc_scope_t,
    count: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let count = unsafe { out(count, 0, "count") }?;
        let scope = arguments::scope(scope)?;
        *count = cache::count(find(cache)?, arguments::device(device)?, scope);
        Ok(())
    })
}

/// The bytes that indexed entries of all threads are charged.
#[no_mangle]
pub unsafe extern "C" fn cvc_cache_bytes(
    cache: cvc_cache_t,
    device: i32,
    bytes: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let bytes = unsafe { out(bytes, 0, "bytes") }?;
        *bytes = cache::bytes(find(cache)?, arguments::device(device)?)?;
        Ok(())
    })
}

/// The retention limit; half of the device's memory until it is set.
#[no_mangle]
pub unsafe extern "C" fn cvc_cache_get_limit(
    cache: cvc_cache_t,
    device: i32,
    bytes: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let bytes = unsafe { out(bytes, 0, "bytes") }?;
        *bytes = cache::get_limit(find(cache)?, arguments::device(device)?)?;
        Ok(())
    })
}

/// Sets the retention limit and evicts down to it, from any thread at any time. It bounds what is retained, and never
/// refuses an allocation: what does not fit is not indexed. Pending entries stay charged until their work is done. 0
/// retains nothing. More than the device has is accepted, with a warning; a negative limit is
/// `CVC_STATUS_INVALID_LIMIT`.
#[no_mangle]
pub extern "C" fn cvc_cache_set_limit(cache: cvc_cache_t, device: i32, bytes: i64) -> cvc_status_t {
    guard(|| cache::set_limit(find(cache)?, arguments::device(device)?, bytes))
}

/// All counts and bytes of one device. Asks the driver what is complete, and does not wait.
#[no_mangle]
pub unsafe extern "C" fn cvc_cache_stats(
    cache: cvc_cache_t,
    device: i32,
    stats: *mut cvc_cache_stats_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let size = unsafe { arguments::check_out(stats, "stats") }?;
        let device = arguments::device(device)?;
        let now = cache::stats(find(cache)?, device)?;
        let counters = &now.counters;
        let value = cvc_cache_stats_t {
            struct_size: size,
            limit_bytes: now.limit,
            count: now.count,
            bytes: now.bytes,
            peak_bytes: now.peak,
            live_count: counters.total_count - counters.held_count,
            live_bytes: counters.total_bytes - counters.held_bytes,
            unindexed_count: counters.total_count - counters.indexed_count,
            unindexed_bytes: counters.total_bytes - counters.indexed_bytes,
            idle_count: counters.held_count - now.pending_count,
            idle_bytes: counters.held_bytes - now.pending_bytes,
            pending_count: now.pending_count,
            pending_bytes: now.pending_bytes,
            wrapped_count: counters.wrapped_count,
            view_count: now.views,
            hits_exact: counters.hits_exact,
            hits_fit: counters.hits_fit,
            hits_pending: counters.hits_pending,
            misses: counters.misses,
            evictions: counters.evictions,
            live_handles: counters.total_count - counters.held_count
                + counters.wrapped_count
                + now.views,
            driver_bytes: now.driver_bytes,
            free_bytes: now.free_bytes,
        };
        // SAFETY: checked above.
        unsafe { arguments::write(stats, size, &value) };
        Ok(())
    })
}

/// Makes the present bytes the peak.
#[no_mangle]
pub extern "C" fn cvc_cache_reset_peak(cache: cvc_cache_t, device: i32) -> cvc_status_t {
    guard(|| cache::reset_peak(find(cache)?, arguments::device(device)?))
}

/// Gives memory that is in no object back to the driver, down to `keep_bytes`. Touches no idle entry; waits for no work,
/// where the device has virtual memory (on any other the driver itself waits when it frees).
#[no_mangle]
pub extern "C" fn cvc_cache_trim(cache: cvc_cache_t, device: i32, keep_bytes: u64) -> cvc_status_t {
    guard(|| {
        find(cache)?;
        let device = arguments::device(device)?;
        resize_store::clear(device);
        memory::trim(device, keep_bytes);
        Ok(())
    })
}

/// Waits for the work of pending entries and retires them: they become idle, or go back where they pass the limit. So does
/// what was given up on the device with work queued, by any cache. `CVC_STATUS_CAPTURING` where a stream with such work
/// captures.
///
/// @param timeout_ns -1: no timeout; else `CVC_STATUS_NOT_READY` when it passes first
#[no_mangle]
pub extern "C" fn cvc_cache_synchronize(
    cache: cvc_cache_t,
    device: i32,
    timeout_ns: i64,
) -> cvc_status_t {
    guard(|| {
        let device = arguments::device(device)?;
        let done = cache::synchronize(find(cache)?, device, arguments::deadline(timeout_ns)?)?;
        arguments::done_in_time(done, timeout_ns)
    })
}

/// Ends the calling thread's part of the cache, as the thread's end does: its live objects become unindexed, what it held
/// goes to a shared index. Makes no GPU call. For scoped threads and thread pools; the thread may go on using the cache.
#[no_mangle]
pub extern "C" fn cvc_cache_thread_detach(cache: cvc_cache_t) -> cvc_status_t {
    guard(|| {
        cache::detach(find(cache)?);
        Ok(())
    })
}
