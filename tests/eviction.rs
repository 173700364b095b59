//! What leaves the cache, when, and in which order: over the limit, where memory is short, and once its work is done.

mod c_interface;

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use c_interface::*;
use cvc::backend;

const DEVICE_BYTES: u64 = 1 << 20;
/// What the tensors here are charged.
const UNIT: i64 = 64 << 10;
const NO_STREAM: cvc_stream_t = usize::MAX as cvc_stream_t;

/// The device is the process's: one test at a time, with nothing left on it.
fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    std::env::set_var("CVC_HOST_MEMORY", DEVICE_BYTES.to_string());
    start(
        CVC_INSTRUMENT_STEPPED
            | CVC_INSTRUMENT_COUNT_CALLS
            | CVC_INSTRUMENT_RACE_CHECK
            | CVC_INSTRUMENT_FAULTS,
    );
    // SAFETY: no preconditions.
    ok(unsafe { cvc_cache_clear(default_cache(), 0, CVC_SCOPE_GLOBAL) });
    assert_eq!(taken(), 0);
    guard
}

/// Bytes of the device that are taken, without a look of the library at what is done.
fn taken() -> u64 {
    let backend = backend::current().expect("it has started");
    DEVICE_BYTES - backend.memory_free_bytes(0).expect("there is a device")
}

/// A cache with room for so many units.
fn cache_of(units: i64) -> cvc_cache_t {
    let mut cache = null_mut();
    // SAFETY: a place for the result.
    unsafe {
        ok(cvc_cache_create(null(), &mut cache));
        ok(cvc_cache_set_limit(cache, 0, units * UNIT));
    }
    cache
}

fn close(cache: cvc_cache_t) {
    // SAFETY: a handle, released once.
    ok(unsafe { cvc_cache_release(cache) });
}

/// A tensor of `units`; each width is a shape of its own, and none fits another's.
fn unit(cache: cvc_cache_t, units: i64, stream: cvc_stream_t) -> cvc_tensor_t {
    create(cache, &hwc(units, UNIT, 1), stream)
}

/// Releases it with its work queued on the stream.
fn release_busy(tensor: cvc_tensor_t, stream: cvc_stream_t) {
    fill(stream, tensor);
    release(tensor);
}

/// Work on memory that the cache has nothing to do with.
fn submit(stream: cvc_stream_t, other: cvc_tensor_t) {
    fill(stream, other);
}

/// Runs what is queued on this stream alone.
fn run_stream(stream: cvc_stream_t) {
    let mut steps = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_host_step_stream(stream, &mut steps) });
    assert!(steps > 0);
}

fn of(calls: &[(String, u64)], name: &str) -> u64 {
    let named = calls.iter().find(|(known, _)| known == name);
    named.map_or(0, |(_, count)| *count)
}

/// What is over the limit goes with its release where its work is done, and with the next submission where it was not.
#[test]
fn memory_over_the_limit_goes_as_soon_as_its_work_is_done() {
    let _one = begin();
    let (stream, none, roomy) = (new_stream(0), cache_of(0), cache_of(4));
    let other = unit(roomy, 1, stream);
    let done = unit(none, 1, stream);
    let calls = calls_of(|| release(done));
    assert_eq!(of(&calls, "memory_free"), 1, "its work is done");
    release_busy(unit(none, 1, stream), stream);
    assert_eq!(taken(), 2 * UNIT as u64);
    run_all();
    assert_eq!(taken(), 2 * UNIT as u64, "nobody has looked");
    // Submissions look at the caches of what they touch.
    let own = unit(none, 2, stream);
    run_all();
    let calls = calls_of(|| submit(stream, own));
    assert_eq!(of(&calls, "memory_free"), 1);
    run_all();
    release(own);
    release(other);
    close(none);
    close(roomy);
    destroy(stream);
}

/// A thread's own releases are not left for later, also where it used another cache last.
#[test]
fn whichever_cache_was_used_last_memory_over_the_limit_goes_at_its_release() {
    let _one = begin();
    let (none, other) = (cache_of(0), cache_of(4));
    let over = unit(none, 1, NO_STREAM);
    release(unit(other, 2, NO_STREAM));
    let calls = calls_of(|| release(over));
    assert_eq!(of(&calls, "memory_free"), 1);
    close(none);
    close(other);
}

static REPORTED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn report(level: cvc_log_level_t, _: *const c_char, _: *mut c_void) {
    assert_eq!(level, CVC_LOG_ERROR);
    REPORTED.fetch_add(1, Ordering::SeqCst);
}

/// What the driver does not take back is tried again at each look, and reported once.
#[test]
fn a_refused_block_is_reported_once() {
    let _one = begin();
    let (stream, none, keeping) = (new_stream(0), cache_of(0), cache_of(4));
    let own = unit(keeping, 1, stream);
    // SAFETY: a name, and a function that stays.
    unsafe {
        ok(cvc_set_log_callback(Some(report), null_mut()));
        ok(cvc_host_fault(
            c"memory_free".as_ptr(),
            0,
            3,
            CVC_STATUS_DEVICE_ERROR,
        ));
    }
    release(unit(none, 2, NO_STREAM));
    assert_eq!(taken(), 3 * UNIT as u64);
    for left in [3, 3, 1] {
        submit(stream, own);
        assert_eq!(taken(), left * UNIT as u64);
    }
    assert_eq!(REPORTED.load(Ordering::SeqCst), 1);
    // SAFETY: no preconditions.
    unsafe {
        ok(cvc_host_fault_clear());
        ok(cvc_set_log_callback(None, null_mut()));
    }
    run_all();
    release(own);
    close(none);
    close(keeping);
    destroy(stream);
}

static DETACHES: AtomicPtr<cvc_cache> = AtomicPtr::new(null_mut());

unsafe extern "C" fn detach(_: cvc_log_level_t, _: *const c_char, _: *mut c_void) {
    let cache = DETACHES.swap(null_mut(), Ordering::SeqCst);
    // SAFETY: a handle.
    ok(unsafe { cvc_cache_thread_detach(cache) });
}

/// A callback of messages may call the library: it runs when the call that wrote the message is over.
#[test]
fn a_log_callback_may_end_the_threads_part_of_the_cache() {
    let _one = begin();
    let cache = cache_of(1);
    DETACHES.store(cache, Ordering::SeqCst);
    release(unit(cache, 1, NO_STREAM));
    // SAFETY: a name, and a function that stays.
    unsafe {
        ok(cvc_set_log_callback(Some(detach), null_mut()));
        ok(cvc_host_fault(
            c"memory_free".as_ptr(),
            0,
            1,
            CVC_STATUS_DEVICE_ERROR,
        ));
    }
    // Another layout, so that the first has to go, which the driver refuses.
    let mut other = hwc(1, 1, UNIT);
    other.dtype = CVC_DTYPE_S8;
    let tensor = create(cache, &other, NO_STREAM);
    assert!(DETACHES.load(Ordering::SeqCst).is_null(), "it was called");
    let now = stats(cache);
    assert_eq!((now.live_count, now.live_bytes), (1, UNIT as u64));
    // SAFETY: no preconditions.
    unsafe {
        ok(cvc_host_fault_clear());
        ok(cvc_set_log_callback(None, null_mut()));
    }
    release(tensor);
    close(cache);
    stats(default_cache());
}

/// A lowered limit evicts what is done at once, and at later submissions what was pending.
#[test]
fn a_lowered_limit_reaches_pending_memory_later() {
    let _one = begin();
    let (stream, cache) = (new_stream(0), cache_of(8));
    let own = unit(cache, 4, stream);
    let three = [(); 3].map(|()| unit(cache, 1, stream));
    for tensor in three {
        release_busy(tensor, stream);
    }
    // SAFETY: a handle.
    ok(unsafe { cvc_cache_set_limit(cache, 0, 2 * UNIT) });
    assert_eq!(taken(), 7 * UNIT as u64);
    run_all();
    submit(stream, own);
    assert_eq!(taken(), 6 * UNIT as u64);
    run_all();
    release(own);
    close(cache);
    destroy(stream);
}

static TOLD: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn tell(_: *mut c_void) {
    TOLD.fetch_add(1, Ordering::SeqCst);
}

/// Whoever owns wrapped memory hears at a submission that nobody uses it any more, with nothing else to retire.
#[test]
fn owners_of_wraps_are_told_at_submissions() {
    let _one = begin();
    for closes_before in [None, Some(true), Some(false)] {
        tell_at_a_submission(closes_before);
    }
}

/// `closes_before`: the wrap's cache is closed before it is released, or after that; or is not.
fn tell_at_a_submission(closes_before: Option<bool>) {
    let (stream, cache, other) = (new_stream(0), cache_of(8), cache_of(8));
    let owned = unit(other, 1, stream);
    let mut wrapped = null_mut();
    // SAFETY: plain numbers and pointers; `owned` outlives the wrap.
    unsafe {
        let mut data: cvc_tensor_data_t = std::mem::zeroed();
        data.struct_size = std::mem::size_of_val(&data);
        ok(cvc_tensor_get_data(owned, &mut data));
        ok(cvc_tensor_wrap(
            cache,
            &data,
            Some(tell),
            null_mut(),
            stream,
            &mut wrapped,
        ));
    }
    let own = match closes_before {
        None => unit(cache, 2, stream),
        Some(_) => unit(other, 2, stream),
    };
    TOLD.store(0, Ordering::SeqCst);
    if closes_before == Some(true) {
        close(cache);
    }
    release_busy(wrapped, stream);
    if closes_before == Some(false) {
        close(cache);
    }
    submit(stream, own);
    assert_eq!(TOLD.load(Ordering::SeqCst), 0, "its work is queued");
    run_all();
    submit(stream, own);
    assert_eq!(TOLD.load(Ordering::SeqCst), 1);
    run_all();
    release(own);
    release(owned);
    if closes_before.is_none() {
        close(cache);
    }
    close(other);
    destroy(stream);
}

/// Where the driver has no memory left, as many bytes are evicted as are needed, the longest held first.
#[test]
fn no_more_is_evicted_than_is_needed() {
    let _one = begin();
    let (other, cache) = (cache_of(16), cache_of(16));
    for units in [1, 2] {
        let mut held: Vec<cvc_tensor_t> = (0..16).map(|_| unit(other, 1, NO_STREAM)).collect();
        assert_eq!(taken(), DEVICE_BYTES);
        let firsts: Vec<u64> = held[..units].iter().map(|tensor| data(*tensor)).collect();
        held.drain(..).for_each(release);
        let calls = calls_of(|| {
            let tensor = unit(cache, units as i64, NO_STREAM);
            assert_eq!(data(tensor), firsts[0], "the longest held went");
            release(tensor);
        });
        assert_eq!(of(&calls, "memory_free"), units as u64);
        assert_eq!(of(&calls, "memory_allocate"), 2);
        for held in [cache, other] {
            // SAFETY: a handle.
            ok(unsafe { cvc_cache_clear(held, 0, CVC_SCOPE_GLOBAL) });
        }
    }
    close(other);
    close(cache);
}

/// Room is made first of what was to go in any case, then of the longest held.
#[test]
fn what_only_waits_for_its_work_goes_before_idle_memory() {
    let _one = begin();
    let (stream, cache) = (new_stream(0), cache_of(4));
    // Over the limit when it is released: it only waits for its work.
    let waiting = unit(cache, 2, stream);
    fill(stream, waiting);
    // SAFETY: a handle.
    unsafe {
        ok(cvc_cache_set_limit(cache, 0, 0));
        release(waiting);
        ok(cvc_cache_set_limit(cache, 0, 4 * UNIT));
    }
    release(unit(cache, 1, NO_STREAM));
    run_all();
    let calls = calls_of(|| {
        // More than both have; the room that the first makes is enough.
        let tensor = unit(cache, 3, NO_STREAM);
        release(tensor);
    });
    assert_eq!(of(&calls, "memory_free"), 1);
    assert_eq!(stats(cache).idle_bytes, 4 * UNIT as u64);
    close(cache);
    destroy(stream);
}

/// A look-up passes by a bounded number of entries whose work goes on, however many there are.
#[test]
fn a_look_up_passes_by_64_pending_entries_at_most() {
    let _one = begin();
    for (pending, found) in [(63, true), (64, false)] {
        let (busy, stream) = (new_stream(0), new_stream(0));
        let mut cache = null_mut();
        let small = hwc(1, 512, 1);
        let want = hwc(2, 512, 1);
        // SAFETY: a place for the result.
        unsafe {
            ok(cvc_cache_create(null(), &mut cache));
            ok(cvc_cache_set_limit(cache, 0, (pending + 2) * 512));
        }
        let all: Vec<cvc_tensor_t> = (0..pending).map(|_| create(cache, &small, busy)).collect();
        let done = create(cache, &want, stream);
        fill(stream, done);
        for tensor in all {
            release_busy(tensor, busy);
        }
        release(done);
        // Known to be done, whoever is asked.
        synchronize(stream);
        // Another layout, which nothing here fits.
        let mut other = hwc(1, 2, 512);
        other.layout = Default::default();
        other.layout[..3].copy_from_slice(&[b'C' as i8, b'H' as i8, b'W' as i8]);
        let mut tensor = null_mut();
        let calls = calls_of(|| tensor = create(cache, &other, stream));
        assert_eq!(of(&calls, "memory_free") > 0, found, "{pending} before it");
        release(tensor);
        run_all();
        close(cache);
        destroy(busy);
        destroy(stream);
    }
}

/// Each submission asks about eight streams; those that it asked about come last next time.
#[test]
fn submissions_ask_about_all_streams_in_turn() {
    let _one = begin();
    let (cache, own_stream) = (cache_of(0), new_stream(0));
    let own = unit(cache, 1, own_stream);
    let streams: Vec<cvc_stream_t> = (0..10).map(|_| new_stream(0)).collect();
    // Ever larger, so that none takes another's memory.
    for (granules, &stream) in (1..).zip(&streams) {
        release_busy(create(cache, &hwc(granules, 512, 1), stream), stream);
    }
    submit(own_stream, own);
    let before = taken();
    run_stream(streams[8]);
    submit(own_stream, own);
    assert_eq!(taken(), before - 9 * 512, "its turn has come");
    run_stream(streams[5]);
    submit(own_stream, own);
    submit(own_stream, own);
    assert_eq!(taken(), before - (9 + 6) * 512);
    run_all();
    release(own);
    close(cache);
    for stream in streams {
        destroy(stream);
    }
    destroy(own_stream);
}
