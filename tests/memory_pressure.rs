//! A device without memory: in which order the library looks for some, what it waits for, and what it asks the driver.

mod c_interface;

use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard};

use c_interface::*;
use cvc::backend;

const DEVICE_BYTES: u64 = 1 << 20;
const NO_STREAM: cvc_stream_t = usize::MAX as cvc_stream_t;
/// Of both there is never room for two.
const MOST: i64 = 700 << 10;
const HALF: i64 = 600 << 10;

/// The device is the process's: one test at a time, with nothing left on it.
fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    std::env::set_var("CVC_HOST_MEMORY", DEVICE_BYTES.to_string());
    start(CVC_INSTRUMENT_STEPPED | CVC_INSTRUMENT_COUNT_CALLS | CVC_INSTRUMENT_RACE_CHECK);
    // SAFETY: no preconditions.
    unsafe {
        ok(cvc_cache_clear(default_cache(), 0, CVC_SCOPE_GLOBAL));
        // So that it is the device that has no more.
        ok(cvc_cache_set_limit(
            default_cache(),
            0,
            4 * DEVICE_BYTES as i64,
        ));
    }
    assert_eq!(taken(), 0);
    guard
}

/// What the device itself says is taken, which is the library's account.
fn taken() -> u64 {
    let account = stats(default_cache()).driver_bytes;
    assert_eq!(account, unseen());
    account
}

/// The same without a look at what is done.
fn unseen() -> u64 {
    let backend = backend::current().expect("it has started");
    let free = backend.memory_free_bytes(0).expect("there is a device");
    DEVICE_BYTES - free
}

fn new_cache() -> cvc_cache_t {
    let mut cache = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_create(null(), &mut cache) });
    cache
}

fn close(cache: cvc_cache_t) {
    // SAFETY: a handle, released once.
    ok(unsafe { cvc_cache_release(cache) });
}

fn bytes(count: i64) -> cvc_tensor_desc_t {
    hwc(1, count, 1)
}

fn of(calls: &[(String, u64)], name: &str) -> u64 {
    let named = calls.iter().find(|(known, _)| known == name);
    named.map_or(0, |(_, count)| *count)
}

fn waits(calls: &[(String, u64)]) -> u64 {
    let waits = calls
        .iter()
        .filter(|(name, _)| name.ends_with("_synchronize"));
    waits.map(|(_, count)| count).sum()
}

/// A tensor of a closed cache, released with its work queued: its block goes back at some later call.
fn leave_behind(stream: cvc_stream_t, count: i64) {
    let cache = new_cache();
    let tensor = create(cache, &bytes(count), stream);
    fill(stream, tensor);
    release(tensor);
    close(cache);
}

#[test]
fn blocks_whose_work_is_done_come_first() {
    let _one = begin();
    let stream = new_stream(0);
    leave_behind(stream, MOST);
    run_all();
    let calls = calls_of(|| {
        let tensor = create(default_cache(), &bytes(HALF), NO_STREAM);
        release(tensor);
    });
    assert_eq!((of(&calls, "memory_allocate"), waits(&calls)), (2, 0));
    // The same with room: a new block comes from the driver at once, and only one.
    leave_behind(stream, 1000);
    run_all();
    let other = new_cache();
    let calls = calls_of(|| release(create(other, &bytes(2000), NO_STREAM)));
    assert_eq!(of(&calls, "memory_allocate"), 1);
    close(other);
    taken();
    destroy(stream);
}

#[test]
fn idle_memory_of_other_caches_goes_without_a_wait() {
    let _one = begin();
    let other = new_cache();
    // SAFETY: no preconditions.
    ok(unsafe { cvc_cache_set_limit(other, 0, DEVICE_BYTES as i64) });
    release(create(other, &bytes(MOST), NO_STREAM));
    let calls = calls_of(|| release(create(default_cache(), &bytes(HALF), NO_STREAM)));
    assert_eq!((of(&calls, "memory_allocate"), waits(&calls)), (2, 0));
    assert_eq!(stats(other).idle_bytes, 0);
    taken();
    close(other);
}

#[test]
fn pending_memory_is_waited_for_as_the_last_resort() {
    let _one = begin();
    let (stream, other) = (new_stream(0), new_cache());
    let pending = create(other, &bytes(MOST), stream);
    fill(stream, pending);
    release(pending);
    let calls = calls_of(|| release(create(default_cache(), &bytes(HALF), NO_STREAM)));
    assert_eq!(
        of(&calls, "memory_allocate"),
        3,
        "with no wait, and with one"
    );
    assert!(waits(&calls) > 0);
    assert_eq!(runnable(), 0);
    // Also what nobody has any more.
    // SAFETY: no preconditions.
    ok(unsafe { cvc_cache_clear(default_cache(), 0, CVC_SCOPE_GLOBAL) });
    leave_behind(stream, MOST);
    let calls = calls_of(|| release(create(default_cache(), &bytes(HALF), NO_STREAM)));
    assert!(waits(&calls) > 0);
    taken();
    close(other);
    destroy(stream);
}

#[test]
fn where_nothing_can_go_the_driver_is_asked_no_more_than_twice() {
    let _one = begin();
    let live = create(default_cache(), &bytes(MOST), NO_STREAM);
    let calls = calls_of(|| {
        let (status, tensor) = try_create(default_cache(), &bytes(HALF), NO_STREAM);
        assert_eq!(status, CVC_STATUS_OUT_OF_MEMORY);
        assert!(tensor.is_null());
    });
    assert_eq!((of(&calls, "memory_allocate"), waits(&calls)), (2, 0));
    release(live);
    taken();
}

/// Memory that fits goes to the caller's stream after a wait on the GPU, and nobody waits on the host.
#[test]
fn memory_of_the_same_cache_is_waited_for_on_the_gpu() {
    let _one = begin();
    let (first, second) = (new_stream(0), new_stream(0));
    let pending = create(default_cache(), &bytes(MOST), first);
    let at = data(pending);
    fill(first, pending);
    release(pending);
    let calls = calls_of(|| {
        let waited = create(default_cache(), &bytes(MOST), second);
        assert_eq!(data(waited), at);
        fill(second, waited);
        release(waited);
    });
    let made = (
        of(&calls, "memory_allocate"),
        of(&calls, "stream_wait_event"),
        waits(&calls),
    );
    assert_eq!(made, (1, 1, 0));
    run_all();
    assert_no_races();
    taken();
    destroy(first);
    destroy(second);
}

/// Coefficients of a resize can be computed again: an allocation that needs their memory gets it.
#[test]
fn tables_of_coefficients_go_where_memory_is_short() {
    let _one = begin();
    let stream = new_stream(0);
    let (rows, less) = (4000, 2000);
    let src = create(default_cache(), &hwc(rows, 1, 1), stream);
    let mut dst = null_mut();
    fill(stream, src);
    // SAFETY: handles and a place for the result.
    ok(unsafe { cvc_op_pillow_resize_new(stream, src, less, 1, CVC_FILTER_LANCZOS, 0, &mut dst) });
    synchronize(stream);
    release(src);
    release(dst);
    // SAFETY: no preconditions.
    ok(unsafe { cvc_cache_clear(default_cache(), 0, CVC_SCOPE_LOCAL) });
    let kept = taken();
    assert!(kept > DEVICE_BYTES - MOST as u64, "{kept} bytes of tables");
    let calls = calls_of(|| release(create(default_cache(), &bytes(MOST), NO_STREAM)));
    assert_eq!(waits(&calls), 0);
    destroy(stream);
}

#[test]
fn trim_gives_back_what_is_done() {
    let _one = begin();
    let stream = new_stream(0);
    leave_behind(stream, 5000);
    let before = unseen();
    assert!(before >= 5000);
    run_all();
    let calls = calls_of(|| {
        // SAFETY: no preconditions.
        ok(unsafe { cvc_cache_trim(default_cache(), 0, before) });
    });
    assert_eq!(of(&calls, "memory_free"), 0, "so much may stay");
    let calls = calls_of(|| {
        // SAFETY: no preconditions.
        ok(unsafe { cvc_cache_trim(default_cache(), 0, before - 1) });
    });
    assert_eq!(of(&calls, "memory_free"), 1);
    taken();
    destroy(stream);
}

#[test]
fn a_cache_retains_half_of_the_device_unless_told_otherwise() {
    let _one = begin();
    let cache = new_cache();
    let mut limit = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_get_limit(cache, 0, &mut limit) });
    assert_eq!(limit, DEVICE_BYTES as i64 / 2);
    close(cache);
}
