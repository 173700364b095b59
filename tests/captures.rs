//! Streams that capture graphs: nothing from outside enters a capture, and nothing that happens in one counts outside.

mod c_interface;

use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

use c_interface::*;

const SIDE: i64 = 16;
const NO_STREAM: cvc_stream_t = usize::MAX as cvc_stream_t;
const LEGACY: cvc_stream_t = 1 as cvc_stream_t;

/// Captures, queued work and the reports are the process's: one test at a time.
fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(CVC_INSTRUMENT_STEPPED | CVC_INSTRUMENT_RACE_CHECK | CVC_INSTRUMENT_CAPTURES);
    // SAFETY: no preconditions.
    ok(unsafe { cvc_host_race_forget() });
    // What the ends of the last test's streams have queued.
    run_all();
    guard
}

struct Capture(cvc_stream_t);

impl Capture {
    fn begin(stream: cvc_stream_t) -> Capture {
        // SAFETY: a stream.
        ok(unsafe { cvc_host_capture_begin(stream) });
        Capture(stream)
    }

    fn end(self) {
        // SAFETY: a stream that captures.
        ok(unsafe { cvc_host_capture_end(self.0) });
    }
}

fn tensor(stream: cvc_stream_t) -> cvc_tensor_t {
    create(default_cache(), &hwc(SIDE, SIDE, 1), stream)
}

fn try_fill(stream: cvc_stream_t, tensor: cvc_tensor_t) -> i32 {
    // SAFETY: handles.
    unsafe { cvc_fill_zero(stream, tensor) }
}

fn wait_stream(waits: cvc_stream_t, waited_for: cvc_stream_t) -> i32 {
    // SAFETY: handles.
    unsafe { cvc_stream_wait_stream(waits, waited_for) }
}

#[test]
fn what_would_enter_a_capture_is_refused_and_leaves_no_trace() {
    let _one = begin();
    let (stream, other) = (new_stream(0), new_stream(0));
    let (first, second) = (tensor(other), tensor(other));
    let (mut event, mut made) = (null_mut(), null_mut());
    fill(other, first);
    // SAFETY: handles and places for results.
    unsafe {
        ok(cvc_event_create(0, 0, &mut event));
        ok(cvc_event_record(event, other));
        let before = stats(default_cache());
        let capture = Capture::begin(stream);
        let refused = [
            try_fill(stream, second),
            cvc_copy(stream, first, second),
            cvc_op_flip(stream, second, second, 0),
            cvc_op_flip_new(stream, second, 0, &mut made),
            cvc_tensor_begin_access(first, stream, CVC_ACCESS_READ),
            cvc_tensor_end_access(first, stream, CVC_ACCESS_READ),
            cvc_stream_wait_event(stream, event),
            wait_stream(stream, other),
            cvc_stream_query(stream),
            cvc_stream_synchronize(stream, -1),
            cvc_host_capture_begin(stream),
        ];
        assert_eq!(refused, [CVC_STATUS_CAPTURING; 11]);
        capture.end();
        assert_eq!(cvc_host_capture_end(stream), CVC_STATUS_INVALID_STREAM);
        assert_eq!(cvc_host_capture_begin(LEGACY), CVC_STATUS_INVALID_STREAM);
        let after = stats(default_cache());
        let counted = |stats: &cvc_cache_stats_t| (stats.live_handles, stats.count, stats.bytes);
        assert_eq!(counted(&before), counted(&after));
        // The other stream's work is the only one.
        assert_eq!(runnable(), 1);
        run_all();
        fill(stream, second);
        run_all();
        assert_no_races();
        ok(cvc_event_destroy(event));
    }
    release(first);
    release(second);
    destroy(stream);
    destroy(other);
}

/// The stream that joins a capture, and leaves it with its end, has waited for nothing of what is queued outside.
#[test]
fn a_wait_inside_a_capture_orders_nothing_outside() {
    let _one = begin();
    let (writer, reader) = (new_stream(0), new_stream(0));
    let (written, copy) = (tensor(writer), tensor(reader));
    let mut event = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_event_create(0, 0, &mut event) });
    for by_event in [false, true] {
        fill(writer, written);
        let capture = Capture::begin(writer);
        if by_event {
            // SAFETY: handles.
            unsafe {
                ok(cvc_event_record(event, writer));
                ok(cvc_stream_wait_event(reader, event));
            }
        } else {
            ok(wait_stream(reader, writer));
        }
        assert_eq!(
            try_fill(reader, copy),
            CVC_STATUS_CAPTURING,
            "it has joined"
        );
        capture.end();
        // SAFETY: handles.
        ok(unsafe { cvc_copy(reader, written, copy) });
        run_all();
        assert_no_races();
    }
    // SAFETY: a handle, destroyed once.
    ok(unsafe { cvc_event_destroy(event) });
    release(written);
    release(copy);
    destroy(writer);
    destroy(reader);
}

/// An event that was last recorded in a capture stands for what it stood for before, not for the stream's work.
#[test]
fn a_record_inside_a_capture_stands_for_nothing_outside() {
    let _one = begin();
    let stream = new_stream(0);
    let mut event = null_mut();
    let mut memory = null_mut();
    // SAFETY: handles and places for results.
    unsafe {
        ok(cvc_event_create(0, 0, &mut event));
        ok(cvc_mem_alloc(
            default_cache(),
            0,
            512,
            0,
            stream,
            &mut memory,
        ));
        let capture = Capture::begin(stream);
        ok(cvc_event_record(event, stream));
        assert_eq!(cvc_event_query(event), CVC_STATUS_CAPTURING);
        let freed = cvc_mem_free_after_event(default_cache(), memory, event);
        assert_eq!(freed, CVC_STATUS_INVALID_EVENT, "{}", message());
        assert_eq!(
            cvc_mem_free(default_cache(), memory, stream),
            CVC_STATUS_CAPTURING
        );
        assert_eq!(
            cvc_mem_record_stream(default_cache(), memory, stream),
            CVC_STATUS_CAPTURING
        );
        capture.end();
        ok(cvc_mem_free(default_cache(), memory, stream));
        ok(cvc_event_destroy(event));
    }
    run_all();
    destroy(stream);
}

/// Each capture is an island: the driver would end both that a wait connects.
#[test]
fn a_wait_between_two_captures_is_refused() {
    let _one = begin();
    let (first, second, free) = (new_stream(0), new_stream(0), new_stream(0));
    let (mut event, mut fresh) = (null_mut(), null_mut());
    // SAFETY: handles and places for results.
    unsafe {
        ok(cvc_event_create(0, 0, &mut event));
        ok(cvc_event_create(0, 0, &mut fresh));
        let one = Capture::begin(first);
        let other = Capture::begin(second);
        ok(cvc_event_record(event, first));
        for refused in [
            cvc_stream_wait_event(second, event),
            wait_stream(second, first),
            wait_stream(first, second),
            cvc_stream_wait_event(first, fresh),
            cvc_stream_wait_event(LEGACY, event),
            wait_stream(LEGACY, first),
        ] {
            assert_eq!(refused, CVC_STATUS_CAPTURING);
            assert!(message().contains("captur"), "{}", message());
        }
        // Inside its own capture the same waits are the graph's.
        ok(cvc_stream_wait_event(first, event));
        ok(cvc_stream_wait_event(free, event));
        ok(wait_stream(first, free));
        assert_eq!(wait_stream(second, free), CVC_STATUS_CAPTURING);
        // An event that was recorded anew belongs to where that was.
        ok(cvc_event_record(event, second));
        ok(cvc_stream_wait_event(second, event));
        assert_eq!(cvc_stream_wait_event(first, event), CVC_STATUS_CAPTURING);
        one.end();
        other.end();
        ok(cvc_event_destroy(event));
        ok(cvc_event_destroy(fresh));
    }
    for stream in [first, second, free] {
        destroy(stream);
    }
}

/// What an event of somebody else's stands for the driver knows.
#[test]
fn a_capture_may_wait_for_foreign_events_of_its_own() {
    let _one = begin();
    let backend = cvc::backend::current().expect("it has started");
    let handle = backend.event_create(0, false).expect("it makes events");
    let event: cvc_event_t = std::ptr::without_provenance_mut(handle);
    let (first, second) = (new_stream(0), new_stream(0));
    let capture = Capture::begin(first);
    // SAFETY: handles.
    unsafe {
        ok(cvc_event_record(event, first));
        ok(cvc_stream_wait_event(second, event));
        ok(cvc_stream_wait_event(first, event));
    }
    capture.end();
    backend.event_destroy(0, handle).expect("nobody uses it");
    destroy(first);
    destroy(second);
}

#[test]
fn the_host_does_not_look_at_an_event_that_is_recorded_in_a_capture() {
    let _one = begin();
    let stream = new_stream(0);
    let mut events = [null_mut(); 2];
    // SAFETY: handles and places for results.
    unsafe {
        for event in &mut events {
            ok(cvc_event_create(0, CVC_EVENT_TIMING, event));
            ok(cvc_event_record(*event, stream));
        }
        run_all();
        let [captured, live] = events;
        let capture = Capture::begin(stream);
        ok(cvc_event_record(captured, stream));
        let mut milliseconds = 0.0;
        for refused in [
            cvc_event_query(captured),
            cvc_event_synchronize(captured, -1),
            cvc_event_synchronize(captured, 0),
            cvc_event_elapsed_ms(captured, live, &mut milliseconds),
            cvc_event_elapsed_ms(live, captured, &mut milliseconds),
        ] {
            assert_eq!(refused, CVC_STATUS_CAPTURING);
            assert!(
                message().contains(&format!("{captured:?}")),
                "{}",
                message()
            );
        }
        ok(cvc_event_query(live));
        capture.end();
        // Also after the end: the record is the graph's for good.
        assert_eq!(cvc_event_query(captured), CVC_STATUS_CAPTURING);
        ok(cvc_event_record(captured, stream));
        ok(cvc_stream_synchronize(stream, -1));
        ok(cvc_event_elapsed_ms(live, captured, &mut milliseconds));
        for event in events {
            ok(cvc_event_destroy(event));
        }
    }
    destroy(stream);
}

/// It is the one call here that does, and says so; and the capture tells of it.
#[test]
fn a_wait_for_the_device_breaks_captures() {
    let _one = begin();
    let stream = new_stream(0);
    let capture = Capture::begin(stream);
    // SAFETY: no preconditions.
    unsafe {
        assert_eq!(cvc_device_synchronize(0, -1), CVC_STATUS_CAPTURING);
        assert_eq!(cvc_host_capture_end(capture.0), CVC_STATUS_CAPTURING);
        assert!(message().contains("a wait for the device"), "{}", message());
        assert_eq!(
            cvc_host_capture_end(capture.0),
            CVC_STATUS_INVALID_STREAM,
            "it has ended"
        );
        ok(cvc_device_synchronize(0, -1));
    }
    destroy(stream);
}

/// What the consumer of an export had queued before its capture counts, though it cannot be asked about meanwhile.
#[test]
fn an_export_that_ends_while_its_consumer_captures_is_noted() {
    let _one = begin();
    let (consumer, writer) = (new_stream(0), new_stream(0));
    let own = tensor(writer);
    let mut managed = null_mut();
    // SAFETY: handles and a place for the result; the work of the consumer is told of, as its owner would queue it.
    unsafe {
        ok(cvc_tensor_to_dlpack(own, consumer, 1, &mut managed));
        ok(cvc_host_race_access(
            0,
            consumer,
            std::ptr::with_exposed_provenance(data(own) as usize),
            16,
            CVC_ACCESS_READ,
        ));
    }
    let capture = Capture::begin(consumer);
    let deleter = managed.cast::<[usize; 4]>();
    // SAFETY: a DLManagedTensorVersioned: two words for the version and the context, then the deleter.
    unsafe {
        let delete: unsafe extern "C" fn(*mut std::ffi::c_void) =
            std::mem::transmute((*deleter)[2]);
        delete(managed);
    }
    assert_eq!(
        try_fill(writer, own),
        CVC_STATUS_CAPTURING,
        "nobody can say when"
    );
    capture.end();
    fill(writer, own);
    run_all();
    assert_no_races();
    release(own);
    destroy(consumer);
    destroy(writer);
}

/// All that a clear has to wait for is asked first: where that fails the cache is as it was.
#[test]
fn a_clear_that_a_capture_refuses_changes_nothing() {
    let _one = begin();
    let (stream, mut closed) = (new_stream(0), null_mut());
    // SAFETY: handles and a place for the result.
    unsafe {
        ok(cvc_cache_create(std::ptr::null(), &mut closed));
        // Its block goes back once its work is done, and no cache has it any more.
        let behind = create(closed, &hwc(SIDE, SIDE, 1), stream);
        fill(stream, behind);
        let idle = create(default_cache(), &hwc(SIDE, SIDE, 3), NO_STREAM);
        release(idle);
        let capture = Capture::begin(stream);
        release(behind);
        ok(cvc_cache_release(closed));
        let before = stats(default_cache());
        for refused in [
            cvc_cache_clear(default_cache(), 0, CVC_SCOPE_GLOBAL),
            cvc_cache_synchronize(default_cache(), 0, -1),
        ] {
            assert_eq!(refused, CVC_STATUS_CAPTURING);
            let after = stats(default_cache());
            assert_eq!(before.idle_bytes, after.idle_bytes);
            assert_eq!(before.count, after.count);
        }
        capture.end();
        ok(cvc_cache_clear(default_cache(), 0, CVC_SCOPE_GLOBAL));
        assert_eq!(stats(default_cache()).driver_bytes, 0);
    }
    destroy(stream);
}

#[test]
fn memory_that_a_capture_writes_is_not_wrapped() {
    let _one = begin();
    let (stream, mut wrapped) = (new_stream(0), null_mut());
    let own = tensor(stream);
    // SAFETY: plain numbers and pointers, handles and a place for the result.
    unsafe {
        let mut data: cvc_tensor_data_t = std::mem::zeroed();
        data.struct_size = std::mem::size_of_val(&data);
        ok(cvc_tensor_get_data(own, &mut data));
        let wrap = |stream, wrapped: &mut cvc_tensor_t| {
            cvc_tensor_wrap(default_cache(), &data, None, null_mut(), stream, wrapped)
        };
        let before = stats(default_cache());
        let capture = Capture::begin(stream);
        assert_eq!(wrap(stream, &mut wrapped), CVC_STATUS_CAPTURING);
        assert!(wrapped.is_null());
        let after = stats(default_cache());
        assert_eq!(before.wrapped_count, after.wrapped_count);
        capture.end();
        ok(wrap(stream, &mut wrapped));
        release(wrapped);
    }
    run_all();
    release(own);
    destroy(stream);
}

/// Memory whose work is queued cannot be waited for from inside a capture, however little is left.
#[test]
fn under_pressure_a_capturing_stream_gets_no_pending_memory() {
    let _one = begin();
    let (stream, other) = (new_stream(0), new_stream(0));
    let mut cache = null_mut();
    let desc = hwc(SIDE, SIDE, 1);
    // SAFETY: handles and a place for the result.
    unsafe {
        ok(cvc_cache_create(std::ptr::null(), &mut cache));
        // Room for one.
        ok(cvc_cache_set_limit(cache, 0, 512));
    }
    let pending = create(cache, &desc, other);
    let at = data(pending);
    fill(other, pending);
    release(pending);
    let capture = Capture::begin(stream);
    let fresh = create(cache, &desc, stream);
    assert_ne!(data(fresh), at, "it was to wait for the other stream");
    capture.end();
    // Outside of a capture the same request waits on the GPU.
    let waited = create(cache, &desc, stream);
    assert_eq!(data(waited), at);
    fill(stream, waited);
    run_all();
    assert_no_races();
    release(fresh);
    release(waited);
    run_all();
    // SAFETY: a handle, released once.
    ok(unsafe { cvc_cache_release(cache) });
    destroy(stream);
    destroy(other);
}

/// While a stream that orders with the legacy stream captures, CUDA lets nobody use that.
#[test]
fn the_legacy_stream_is_left_alone_beside_a_blocking_capture() {
    let _one = begin();
    let (blocking, plain) = (new_stream(CVC_STREAM_BLOCKING), new_stream(0));
    let own = tensor(NO_STREAM);
    let capture = Capture::begin(plain);
    fill(LEGACY, own);
    capture.end();
    // Else what comes after that needs an event of the legacy stream's, which nobody records meanwhile.
    synchronize(LEGACY);
    let capture = Capture::begin(blocking);
    assert_eq!(try_fill(LEGACY, own), CVC_STATUS_CAPTURING);
    assert_eq!(wait_stream(LEGACY, plain), CVC_STATUS_CAPTURING);
    // SAFETY: a default stream.
    let asked = unsafe { [cvc_stream_query(LEGACY), cvc_stream_synchronize(LEGACY, -1)] };
    assert_eq!(asked, [CVC_STATUS_CAPTURING; 2]);
    fill(plain, own);
    capture.end();
    fill(LEGACY, own);
    run_all();
    assert_no_races();
    release(own);
    destroy(blocking);
    destroy(plain);
}

/// A foreign stream's handle says who it is only outside of captures.
#[test]
fn a_foreign_stream_that_captures_is_not_known() {
    let _one = begin();
    let backend = cvc::backend::current().expect("it has started");
    let handle = backend.stream_create(0, false).expect("it makes streams");
    let stream: cvc_stream_t = std::ptr::without_provenance_mut(handle);
    let own = tensor(NO_STREAM);
    fill(stream, own);
    let capture = Capture::begin(stream);
    assert_eq!(try_fill(stream, own), CVC_STATUS_CAPTURING);
    // What it has queued before is not lost: another stream's work comes after it.
    let other = new_stream(0);
    fill(other, own);
    capture.end();
    fill(stream, own);
    run_all();
    assert_no_races();
    release(own);
    destroy(other);
    backend
        .stream_destroy(0, handle)
        .expect("nobody uses it any more");
}
