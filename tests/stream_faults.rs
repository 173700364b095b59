//! Events and streams whose calls fail: what they stand for stays as it was, and nothing is reused early.

mod c_interface;

use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

use c_interface::*;

const SIDE: i64 = 16;

fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(CVC_INSTRUMENT_FAULTS | CVC_INSTRUMENT_RACE_CHECK);
    guard
}

#[test]
fn an_event_that_never_completes_keeps_its_memory() {
    let _one = begin();
    let cache = default_cache();
    let desc = hwc(SIDE, SIDE, 3);
    let (first, second) = (new_stream(0), new_stream(0));
    let tensor = create(cache, &desc, first);
    let place = data(tensor);
    // SAFETY: handles.
    ok(unsafe { cvc_fill_zero(first, tensor) });
    for name in [
        "event_query",
        "event_synchronize",
        "stream_query",
        "stream_synchronize",
    ] {
        plan(name, 0, u64::MAX, CVC_STATUS_NOT_READY);
    }
    release(tensor);
    let other = create(cache, &desc, second);
    assert_ne!(
        data(other),
        place,
        "taken although its work is not seen complete"
    );
    release(other);
    // SAFETY: no preconditions.
    unsafe {
        assert_eq!(cvc_stream_query(first), CVC_STATUS_NOT_READY);
        assert_eq!(
            cvc_stream_synchronize(first, 1_000_000),
            CVC_STATUS_NOT_READY
        );
        assert_eq!(cvc_stream_synchronize(first, -1), CVC_STATUS_DEVICE_ERROR);
        assert!(message().contains("no timeout"), "{}", message());
        assert_eq!(
            cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL),
            CVC_STATUS_DEVICE_ERROR
        );
    }
    assert!(stats(cache).pending_bytes > 0);
    assert_accounts_add_up(cache, "while the event does not complete");
    assert!(end_plan() > 0);
    synchronize(first);
    // SAFETY: the cache's handle.
    ok(unsafe { cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL) });
    assert_eq!(stats(cache).driver_bytes, 0);
    destroy(first);
    destroy(second);
}

/// The driver's event still has the earlier record, and so has the library.
#[test]
fn a_record_that_fails_leaves_the_earlier_one() {
    let _one = begin();
    let cache = default_cache();
    let stream = new_stream(0);
    let (mut event, mut ptr) = (null_mut(), null_mut());
    // SAFETY: places for the results, and handles.
    unsafe {
        ok(cvc_event_create(0, 0, &mut event));
        ok(cvc_mem_alloc(cache, 0, 512, 0, stream, &mut ptr));
        ok(cvc_event_record(event, stream));
        for call in ["event_record", "stream_is_capturing"] {
            plan(call, 0, 1, CVC_STATUS_DEVICE_ERROR);
            assert_eq!(cvc_event_record(event, stream), CVC_STATUS_DEVICE_ERROR);
            assert_eq!(end_plan(), 1);
        }
        ok(cvc_mem_free_after_event(cache, ptr, event));
        ok(cvc_event_destroy(event));
        ok(cvc_stream_destroy(stream));
        ok(cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL));
    }
    assert_eq!(stats(cache).driver_bytes, 0);
}

/// Work whose event could not be recorded, on a stream that the library does not know by that handle any more.
#[test]
fn a_wait_for_the_device_ends_work_without_an_event() {
    let _one = begin();
    let cache = default_cache();
    let desc = hwc(SIDE, SIDE, 3);
    let foreign = foreign_stream();
    for stream in [OWN_STREAM, foreign] {
        let tensor = create(cache, &desc, stream);
        plan("event_record", 0, 1, CVC_STATUS_DEVICE_ERROR);
        // SAFETY: handles.
        unsafe { assert_eq!(cvc_fill_zero(stream, tensor), CVC_STATUS_DEVICE_ERROR) };
        assert_eq!(end_plan(), 1);
        release(tensor);
        if stream == foreign {
            // SAFETY: a stream that lives.
            ok(unsafe { cvc_stream_register(0, stream, 0) });
        }
        // SAFETY: the cache's handle.
        unsafe {
            assert_eq!(
                cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL),
                CVC_STATUS_INVALID_STREAM
            );
            ok(cvc_device_synchronize(0, -1));
            ok(cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL));
        }
        assert_eq!(stats(cache).driver_bytes, 0);
    }
    // SAFETY: a registered stream, which nobody uses any more.
    ok(unsafe { cvc_stream_unregister(foreign) });
    let backend = cvc::backend::current().expect("it has started");
    backend
        .stream_destroy(0, foreign as usize)
        .expect("it lives");
}

/// Where the event behind open work cannot be recorded the stream lives on, unless its context is lost with all of its work.
#[test]
fn a_stream_with_work_is_destroyed_with_its_event_or_not_at_all() {
    let _one = begin();
    let tensor = create(default_cache(), &hwc(SIDE, SIDE, 3), null_mut());
    for (status, expected) in [
        (CVC_STATUS_DEVICE_ERROR, CVC_STATUS_DEVICE_ERROR),
        (CVC_STATUS_CONTEXT_LOST, CVC_STATUS_OK),
    ] {
        let stream = new_stream(0);
        let latch = hold(stream);
        fill(stream, tensor);
        plan("event_record", 0, 1, status);
        // SAFETY: a handle, destroyed once.
        let destroyed = unsafe { cvc_stream_destroy(stream) };
        assert_eq!(destroyed, expected, "{}", message());
        assert_eq!(end_plan(), 1);
        if destroyed != CVC_STATUS_OK {
            fill(stream, tensor);
            destroy(stream);
        }
        let_go(latch);
        // SAFETY: no preconditions.
        ok(unsafe { cvc_device_synchronize(0, -1) });
    }
    release(tensor);
    assert_no_races();
}

/// A foreign stream is touched only inside a call that passes it, also where that call's event failed.
#[test]
fn a_foreign_stream_without_an_event_is_not_asked() {
    let _one = begin();
    let cache = default_cache();
    let desc = hwc(SIDE, SIDE, 3);
    let stream = foreign_stream();
    let tensor = create(cache, &desc, stream);
    plan("event_record", 0, u64::MAX, CVC_STATUS_DEVICE_ERROR);
    // SAFETY: handles.
    let filled = unsafe { cvc_fill_zero(stream, tensor) };
    assert_eq!(filled, CVC_STATUS_DEVICE_ERROR);
    end_plan();
    release(tensor);
    // It may be gone by now: any question about it would be one too many.
    plan("stream_query", 0, u64::MAX, CVC_STATUS_DEVICE_ERROR);
    let other = create(cache, &desc, null_mut());
    let mut count = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_count(cache, 0, CVC_SCOPE_GLOBAL, &mut count) });
    assert!(stats(cache).pending_count >= 1);
    assert_eq!(end_plan(), 0);
    release(other);
    // SAFETY: no preconditions.
    ok(unsafe { cvc_device_synchronize(0, -1) });
    assert_eq!(stats(cache).pending_count, 0);
}

/// A wait that is queued has happened, whatever fails after it.
#[test]
fn a_wait_for_an_event_fails_before_it_is_queued_or_not_at_all() {
    let _one = begin();
    let (first, second) = (new_stream(0), new_stream(0));
    let tensor = create(default_cache(), &hwc(SIDE, SIDE, 3), first);
    let mut event = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_event_create(0, 0, &mut event) });
    for wait_for_event in [true, false] {
        let latch = hold(first);
        fill(first, tensor);
        // SAFETY: handles.
        ok(unsafe { cvc_event_record(event, first) });
        plan("stream_is_capturing", 0, u64::MAX, CVC_STATUS_DEVICE_ERROR);
        // SAFETY: handles.
        ok(unsafe {
            match wait_for_event {
                true => cvc_stream_wait_event(second, event),
                false => cvc_stream_wait_stream(second, first),
            }
        });
        end_plan();
        // SAFETY: handles.
        ok(unsafe { cvc_copy(second, tensor, tensor) });
        fill(second, tensor);
        let_go(latch);
        synchronize(second);
    }
    // SAFETY: a handle, destroyed once.
    ok(unsafe { cvc_event_destroy(event) });
    release(tensor);
    destroy(first);
    destroy(second);
    assert_no_races();
}
