//! What the library asks of its backend, counted: nothing for a hit, no waits below the limit, few events.

mod c_interface;

use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

use c_interface::*;

/// The counts are the process's: one test at a time.
fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(CVC_INSTRUMENT_COUNT_CALLS);
    // What the test before has left is nobody's to count.
    // SAFETY: the cache's handle.
    ok(unsafe { cvc_cache_clear(default_cache(), 0, CVC_SCOPE_GLOBAL) });
    guard
}

fn count(calls: &[(String, u64)], name: &str) -> u64 {
    let found = calls.iter().find(|(call, _)| call == name);
    found.map_or(0, |(_, count)| *count)
}

const WAITS: [&str; 3] = [
    "stream_synchronize",
    "event_synchronize",
    "device_synchronize",
];

#[track_caller]
fn assert_no_waits(calls: &[(String, u64)]) {
    for name in WAITS {
        assert_eq!(count(calls, name), 0, "{calls:?}");
    }
}

fn destroy_foreign(stream: cvc_stream_t) {
    let backend = cvc::backend::current().expect("the host backend starts");
    backend
        .stream_synchronize(0, stream as usize, None)
        .expect("it lives");
    backend
        .stream_destroy(0, stream as usize)
        .expect("it lives");
}

/// Flips from one tensor to the next and back, all results from the cache.
fn chain(stream: cvc_stream_t, rounds: usize) {
    let cache = default_cache();
    for _ in 0..rounds {
        let source = create(cache, &hwc(16, 16, 3), stream);
        // SAFETY: handles and places for results.
        unsafe {
            let (mut first, mut second) = (null_mut(), null_mut());
            ok(cvc_fill_zero(stream, source));
            ok(cvc_op_flip_new(stream, source, 0, &mut first));
            release(source);
            ok(cvc_op_flip_new(stream, first, 1, &mut second));
            release(first);
            release(second);
        }
    }
}

#[test]
fn calls_have_names_and_are_counted() {
    let _one = begin();
    let stream = new_stream(0);
    let calls = calls_of(|| {
        let tensor = create(default_cache(), &hwc(3, 5, 7), stream);
        // SAFETY: handles.
        ok(unsafe { cvc_fill_zero(stream, tensor) });
        release(tensor);
    });
    assert_eq!(count(&calls, "fill_zero_2d"), 1, "{calls:?}");
    assert_eq!(count(&calls, "memory_allocate"), 1, "{calls:?}");
    // SAFETY: a wrong name and a place for the count.
    let status = unsafe { cvc_backend_call_count(c"launches".as_ptr(), &mut 0) };
    assert_eq!(status, CVC_STATUS_INVALID_ARGUMENT);
    assert!(message().contains("launches"), "{}", message());
    assert_eq!(calls_of(|| ()), []);
    destroy(stream);
}

#[test]
fn a_hit_calls_nothing() {
    let _one = begin();
    let cache = default_cache();
    let foreign = foreign_stream();
    // SAFETY: the stream lives until it is unregistered.
    ok(unsafe { cvc_stream_register(0, foreign, CVC_STREAM_ANNOUNCES_CAPTURES) });
    for stream in [new_stream(0), foreign] {
        let desc = hwc(24, 32, 3);
        release(create(cache, &desc, stream));
        let idle = calls_of(|| (0..100).for_each(|_| release(create(cache, &desc, stream))));
        assert_eq!(idle, [], "idle memory");

        let latch = hold(stream);
        let tensor = create(cache, &desc, stream);
        // SAFETY: handles.
        ok(unsafe { cvc_fill_zero(stream, tensor) });
        release(tensor);
        let pending = calls_of(|| (0..100).for_each(|_| release(create(cache, &desc, stream))));
        assert_eq!(pending, [], "pending memory on the stream of its work");
        let_go(latch);
        synchronize(stream);
    }
    // SAFETY: as above.
    ok(unsafe { cvc_stream_unregister(foreign) });
    destroy_foreign(foreign);
}

#[test]
fn below_the_limit_nothing_waits_on_the_host() {
    let _one = begin();
    let cache = default_cache();
    let (first, second) = (new_stream(0), new_stream(0));
    let latch = hold(first);
    let calls = calls_of(|| {
        for height in 1..40 {
            let tensor = create(cache, &hwc(height, 40, 3), first);
            // SAFETY: handles and places for results.
            unsafe {
                let mut flipped = null_mut();
                ok(cvc_fill_zero(first, tensor));
                ok(cvc_op_flip_new(second, tensor, 1, &mut flipped));
                ok(cvc_fill_zero(first, tensor));
                release(tensor);
                release(flipped);
            }
        }
        chain(first, 20);
        chain(second, 20);
    });
    assert_no_waits(&calls);
    assert!(count(&calls, "launch") >= 100, "{calls:?}");
    let_go(latch);
    synchronize(first);
    synchronize(second);
    destroy(first);
    destroy(second);
}

#[test]
fn a_loop_on_one_known_stream_records_no_event() {
    let _one = begin();
    let foreign = foreign_stream();
    // SAFETY: the stream lives until it is unregistered.
    ok(unsafe { cvc_stream_register(0, foreign, 0) });
    for stream in [new_stream(0), foreign, CVC_LEGACY] {
        chain(stream, 3);
        let calls = calls_of(|| chain(stream, 100));
        assert_eq!(count(&calls, "event_record"), 0, "{calls:?}");
        assert_eq!(count(&calls, "event_create"), 0, "{calls:?}");
        assert_eq!(count(&calls, "stream_wait_event"), 0, "{calls:?}");
        assert_eq!(count(&calls, "memory_allocate"), 0, "{calls:?}");
        assert_no_waits(&calls);
        synchronize(stream);
    }
    // SAFETY: as above.
    ok(unsafe { cvc_stream_unregister(foreign) });
    destroy_foreign(foreign);
}

const CVC_LEGACY: cvc_stream_t = std::ptr::without_provenance_mut(1);

#[test]
fn a_foreign_stream_costs_an_event_a_submission() {
    let _one = begin();
    let foreign = foreign_stream();
    for stream in [foreign, OWN_STREAM] {
        chain(stream, 3);
        // Three submissions a round.
        let calls = calls_of(|| chain(stream, 100));
        assert_eq!(count(&calls, "launch") + count(&calls, "fill_zero_2d"), 300);
        let events = count(&calls, "event_record");
        assert!((1..=300).contains(&events), "{calls:?}");
        assert_no_waits(&calls);
        synchronize(stream);
    }
    destroy_foreign(foreign);
}

#[test]
fn instruments_are_asked_for_before_the_first_call() {
    let _one = begin();
    let stream = new_stream(0);
    // SAFETY: no preconditions.
    unsafe {
        ok(cvc_backend_instrument(CVC_INSTRUMENT_COUNT_CALLS));
        assert_eq!(cvc_backend_instrument(1 << 31), CVC_STATUS_INVALID_ENUM);
    }
    destroy(stream);
}
