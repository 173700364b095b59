//! Raw memory in steps and under the race checker: what each way of freeing it waits for, and what it does not.

mod c_interface;

use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard};

use c_interface::*;
use cvc::backend::{self, Fill2d};

const BYTES: usize = 4096;
const NONE: cvc_stream_t = without_provenance_mut(usize::MAX);

/// Steps and races are the process's: one test at a time, with nothing idle.
fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(CVC_INSTRUMENT_STEPPED | CVC_INSTRUMENT_RACE_CHECK | CVC_INSTRUMENT_COUNT_CALLS);
    assert_eq!(runnable(), 0);
    clear();
    // SAFETY: no preconditions.
    ok(unsafe { cvc_host_race_forget() });
    guard
}

/// Runs what is left, and finds every byte given back.
fn end() {
    step_all();
    for kept in KEPT.lock().unwrap().drain(..) {
        free(without_provenance_mut(kept), NONE);
    }
    clear();
    assert_no_races();
    let after = stats(default_cache());
    assert_eq!(
        (after.live_handles, after.bytes, after.driver_bytes),
        (0, 0, 0)
    );
}

fn clear() {
    // SAFETY: the cache's handle.
    ok(unsafe { cvc_cache_clear(default_cache(), 0, CVC_SCOPE_GLOBAL) });
}

fn step_all() {
    let mut steps = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_host_step_all(&mut steps) });
}

fn alloc(stream: cvc_stream_t) -> *mut c_void {
    let mut ptr = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_mem_alloc(default_cache(), 0, BYTES, 0, stream, &mut ptr) });
    ptr
}

fn free(ptr: *mut c_void, stream: cvc_stream_t) {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_mem_free(default_cache(), ptr, stream) });
}

fn record_stream(ptr: *mut c_void, stream: cvc_stream_t) {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_mem_record_stream(default_cache(), ptr, stream) });
}

fn free_after(ptr: *mut c_void, event: cvc_event_t) {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_mem_free_after_event(default_cache(), ptr, event) });
}

/// Work of somebody else, of which the library hears nothing.
fn launch(stream: cvc_stream_t, ptr: *mut c_void) {
    launch_bytes(stream, ptr, BYTES as u64);
}

fn launch_bytes(stream: cvc_stream_t, ptr: *mut c_void, bytes: u64) {
    let fill = Fill2d {
        dst: ptr as u64,
        pitch: bytes,
        width: bytes,
        height: 1,
    };
    let backend = backend::current().expect("it has started");
    let queued = backend.fill_zero_2d(0, stream as usize, &fill);
    queued.expect("the stream lives");
}

fn destroy_foreign(stream: cvc_stream_t) {
    let backend = backend::current().expect("it has started");
    let destroyed = backend.stream_destroy(0, stream as usize);
    destroyed.expect("it lives");
}

fn new_event() -> cvc_event_t {
    let mut event = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_event_create(0, 0, &mut event) });
    event
}

fn record(event: cvc_event_t, stream: cvc_stream_t) {
    // SAFETY: handles that are good.
    ok(unsafe { cvc_event_record(event, stream) });
}

fn destroy_event(event: cvc_event_t) {
    // SAFETY: a handle that is good.
    ok(unsafe { cvc_event_destroy(event) });
}

fn wait_stream(waits: cvc_stream_t, waited_for: cvc_stream_t) {
    // SAFETY: handles that are good.
    ok(unsafe { cvc_stream_wait_stream(waits, waited_for) });
}

/// What other look-ups gave, kept so that the next one does not find it.
static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Whether a look-up for `stream` gives `ptr`: then it is used there at once, and freed there.
#[track_caller]
fn is_taken(ptr: *mut c_void, stream: cvc_stream_t) -> bool {
    let found = alloc(stream);
    if found != ptr {
        KEPT.lock().unwrap().push(found as usize);
        return false;
    }
    if stream == NONE {
        // Its work is done, says the library: so anybody may use it.
        let user = new_stream(0);
        launch(user, found);
        free(found, user);
        destroy(user);
    } else {
        launch(stream, found);
        free(found, stream);
    }
    true
}

#[test]
fn a_loop_on_one_stream_has_one_address_and_asks_nothing() {
    let _one = begin();
    let stream = new_stream(0);
    let ptr = alloc(stream);
    launch(stream, ptr);
    free(ptr, stream);
    let backend_calls = calls_of(|| {
        for _ in 0..100 {
            let again = alloc(stream);
            assert_eq!(again, ptr);
            free(again, stream);
        }
    });
    let asked: Vec<_> = backend_calls
        .iter()
        .filter(|(name, _)| name != "stream_is_capturing" && name != "current_device")
        .collect();
    assert!(asked.is_empty(), "{asked:?}");
    destroy(stream);
    end();
}

#[test]
fn a_free_covers_what_is_queued_by_then_on_its_stream() {
    let _one = begin();
    let (a, b) = (new_stream(0), new_stream(0));
    let ptr = alloc(a);
    launch(a, ptr);
    free(ptr, a);
    assert!(!is_taken(ptr, b));
    assert!(!is_taken(ptr, NONE));
    wait_stream(b, a);
    assert!(is_taken(ptr, b));
    destroy(a);
    destroy(b);
    end();
}

#[test]
fn a_recorded_stream_counts_up_to_the_free() {
    let _one = begin();
    for foreign in [false, true] {
        clear();
        let a = new_stream(0);
        let b = if foreign {
            foreign_stream()
        } else {
            new_stream(0)
        };
        let ptr = alloc(a);
        record_stream(ptr, b);
        record_stream(ptr, b);
        wait_stream(b, a);
        step_all();
        // After the record and before the free, as a prefetch does it.
        launch(b, ptr);
        let records = calls_of(|| free(ptr, a));
        let events = records.iter().find(|(name, _)| name == "event_record");
        assert_eq!(events.map(|(_, count)| *count), foreign.then_some(1));
        assert!(!is_taken(ptr, a), "the other stream's work still runs");
        if foreign {
            destroy_foreign(b);
        } else {
            destroy(b);
        }
        step_all();
        assert!(is_taken(ptr, NONE));
        destroy(a);
    }
    end();
}

/// Of many streams those that are over are forgotten: no stream that lives, and none whose work still runs.
#[test]
fn however_many_streams_are_recorded_each_counts_at_the_free() {
    let _one = begin();
    let owner = new_stream(0);
    for (goes, works) in [(false, 0), (false, 38), (true, 0), (true, 38)] {
        let ptr = alloc(owner);
        let streams: Vec<cvc_stream_t> = (0..40).map(|_| new_stream(0)).collect();
        for (number, &stream) in streams.iter().enumerate() {
            record_stream(ptr, stream);
            if goes {
                if number == works {
                    launch(stream, ptr);
                }
                destroy(stream);
            }
        }
        if !goes {
            // It was recorded with nothing queued, and many others after it.
            launch(streams[works], ptr);
        }
        free(ptr, owner);
        assert!(!is_taken(ptr, owner));
        assert!(!is_taken(ptr, NONE));
        step_all();
        assert!(is_taken(ptr, NONE));
        if !goes {
            streams.into_iter().for_each(destroy);
        }
        step_all();
        clear();
    }
    destroy(owner);
    end();
}

#[test]
fn memory_outlives_the_streams_that_used_it() {
    let _one = begin();
    let (a, b) = (new_stream(0), new_stream(0));
    let ptr = alloc(a);
    record_stream(ptr, b);
    // The library hears of no access on either stream until they are gone.
    launch(b, ptr);
    destroy(b);
    destroy(a);
    // Streams that might be taken for the old ones.
    let others: Vec<_> = (0..8).map(|_| new_stream(0)).collect();
    free(ptr, NONE);
    for &other in &others {
        assert!(!is_taken(ptr, other));
    }
    assert!(!is_taken(ptr, NONE));
    step_all();
    assert!(is_taken(ptr, NONE));
    others.into_iter().for_each(destroy);
    end();
}

#[test]
fn a_destroyed_stream_is_not_taken_for_a_later_one() {
    let _one = begin();
    let (a, b) = (new_stream(0), new_stream(0));
    let ptr = alloc(a);
    record_stream(ptr, b);
    launch(b, ptr);
    destroy(b);
    step_all();
    let others: Vec<_> = (0..8).map(|_| new_stream(0)).collect();
    let latches: Vec<_> = others.iter().map(|other| hold(*other)).collect();
    free(ptr, NONE);
    assert!(is_taken(ptr, NONE), "none of the held streams used it");
    latches.into_iter().for_each(let_go);
    step_all();
    others.into_iter().for_each(destroy);
    destroy(a);
    end();
}

#[test]
fn a_recorded_stream_counts_after_it_was_unregistered() {
    let _one = begin();
    let (a, b) = (new_stream(0), foreign_stream());
    // SAFETY: a stream that lives until the end.
    ok(unsafe { cvc_stream_register(0, b, 0) });
    let ptr = alloc(a);
    record_stream(ptr, b);
    launch(b, ptr);
    // SAFETY: as above.
    ok(unsafe { cvc_stream_unregister(b) });
    launch(b, ptr);
    free(ptr, a);
    let mut ran = 0;
    // The first of the two launches and what the library recorded behind it.
    while runnable() > 0 && ran < 2 {
        step(0);
        ran += 1;
    }
    assert!(!is_taken(ptr, a));
    step_all();
    assert!(is_taken(ptr, a));
    destroy(a);
    destroy_foreign(b);
    end();
}

#[test]
fn a_threads_own_stream_counts_though_another_thread_frees() {
    let _one = begin();
    for ends_before in [false, true] {
        clear();
        let a = new_stream(0);
        let ptr = alloc(a);
        let address = ptr as usize;
        let (freed, wait) = channel::<()>();
        let (launched, begun) = channel();
        let user = std::thread::spawn(move || {
            let ptr = without_provenance_mut(address);
            record_stream(ptr, OWN_STREAM);
            launch(OWN_STREAM, ptr);
            launched.send(()).expect("the test goes on");
            if !ends_before {
                let _ = wait.recv();
            }
        });
        begun.recv().expect("the thread launches");
        let user = if ends_before {
            user.join().expect("its stream is its own");
            None
        } else {
            Some(user)
        };
        // Here the stream of that name is another one.
        free(ptr, NONE);
        assert!(!is_taken(ptr, OWN_STREAM));
        assert!(!is_taken(ptr, a));
        assert!(!is_taken(ptr, NONE));
        step_all();
        assert!(is_taken(ptr, NONE));
        drop(freed);
        if let Some(user) = user {
            user.join().expect("its stream is its own");
        }
        step_all();
        destroy(a);
    }
    end();
}

#[test]
fn an_event_frees_what_it_covers_while_its_stream_goes_on() {
    let _one = begin();
    for foreign in [false, true] {
        clear();
        let b = if foreign {
            foreign_stream()
        } else {
            new_stream(0)
        };
        let (a, event) = (new_stream(0), new_event());
        let ptr = alloc(a);
        record_stream(ptr, b);
        launch(b, ptr);
        record(event, b);
        let backend = backend::current().expect("it has started");
        let latch = backend.latch_create(0, b as usize);
        let latch = latch.expect("it takes latches");
        free_after(ptr, event);
        assert!(!is_taken(ptr, a));
        assert!(!is_taken(ptr, NONE));
        // The event is the caller's again.
        record(event, a);
        destroy_event(event);
        step_all();
        assert!(is_taken(ptr, NONE), "the stream is held behind the event");
        let_go(latch);
        step_all();
        destroy(a);
        if foreign {
            destroy_foreign(b);
        } else {
            destroy(b);
        }
    }
    end();
}

#[test]
fn an_event_of_a_stream_that_is_gone_speaks_for_no_later_one() {
    let _one = begin();
    let kept = alloc(NONE); // there is raw memory: records are marked
    let (gone, event) = (new_stream(0), new_event());
    record(event, gone);
    step_all();
    destroy(gone);
    // One of these has what is left of the stream inside the library.
    let later: Vec<_> = (0..4).map(|_| new_stream(0)).collect();
    for &stream in &later {
        let ptr = alloc(NONE);
        record_stream(ptr, stream);
        launch(stream, ptr);
        free_after(ptr, event);
        assert!(!is_taken(ptr, NONE), "its work is queued");
        step_all();
    }
    free(kept, NONE);
    destroy_event(event);
    later.into_iter().for_each(destroy);
    end();
}

#[test]
fn an_event_of_an_ended_threads_own_stream_speaks_for_no_later_threads() {
    let _one = begin();
    let (kept, event) = (alloc(NONE), new_event());
    let handle = event as usize;
    let recorder = std::thread::spawn(move || {
        record(without_provenance_mut(handle), OWN_STREAM);
        synchronize(OWN_STREAM);
    });
    recorder.join().expect("its stream is its own");
    // The stream of one of these has what is left of that one inside the library.
    let (mut later, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        let ptr = alloc(NONE);
        let address = ptr as usize;
        let (launched, begun) = channel();
        let (end, wait) = channel::<()>();
        later.push(std::thread::spawn(move || {
            let ptr = without_provenance_mut(address);
            record_stream(ptr, OWN_STREAM);
            launch(OWN_STREAM, ptr);
            launched.send(()).expect("the test goes on");
            let _ = wait.recv();
        }));
        ends.push(end);
        begun.recv().expect("the thread launches");
        free_after(ptr, event);
        assert!(!is_taken(ptr, NONE), "its work is queued");
        step_all();
    }
    drop(ends);
    for thread in later {
        thread.join().expect("its stream is its own");
    }
    free(kept, NONE);
    destroy_event(event);
    end();
}

#[test]
fn memory_freed_after_an_event_is_ready_for_work_that_waited_for_it() {
    let _one = begin();
    let (a, b, event) = (new_stream(0), new_stream(0), new_event());
    let ptr = alloc(a);
    wait_stream(b, a);
    launch(b, ptr);
    record(event, b);
    // SAFETY: handles that are good.
    ok(unsafe { cvc_stream_wait_event(a, event) });
    free_after(ptr, event);
    assert!(is_taken(ptr, a));
    destroy_event(event);
    destroy(a);
    destroy(b);
    end();
}

/// An event of the library's own from before the launches tells nothing of them, though no number was taken between.
#[test]
fn an_older_event_of_the_library_does_not_stand_for_the_callers() {
    let _one = begin();
    let (a, b, event) = (new_stream(0), new_stream(0), new_event());
    let ptr = alloc(a);
    let tensor = create(default_cache(), &hwc(8, 8, 1), b);
    // SAFETY: handles that are good.
    unsafe {
        ok(cvc_fill_zero(b, tensor));
        // The library records an event on the other stream.
        ok(cvc_tensor_begin_access(tensor, a, CVC_ACCESS_WRITE));
    }
    let latch = hold(b);
    launch(b, ptr);
    record(event, b);
    free_after(ptr, event);
    step_all();
    // It is seen complete here.
    assert!(!is_taken(ptr, a));
    assert!(!is_taken(ptr, NONE));
    let_go(latch);
    step_all();
    assert!(is_taken(ptr, NONE));
    release(tensor);
    destroy_event(event);
    destroy(a);
    destroy(b);
    end();
}

/// What the stream has waited for since the event does not come before the event.
#[test]
fn a_wait_after_the_event_does_not_stand_for_one_before() {
    let _one = begin();
    let (a, b, event) = (new_stream(0), new_stream(0), new_event());
    let ptr = alloc(a);
    let latch = hold(a);
    launch(a, ptr);
    free(ptr, a);
    record(event, b);
    wait_stream(b, a);
    // Still with the first work on it, which its new owner never touches.
    assert_eq!(alloc(a), ptr);
    free_after(ptr, event);
    step_all();
    assert!(!is_taken(ptr, NONE), "the work on the first stream is held");
    let_go(latch);
    step_all();
    assert!(is_taken(ptr, NONE));
    destroy_event(event);
    destroy(a);
    destroy(b);
    end();
}

#[test]
fn many_events_on_one_stream_keep_few_of_the_librarys() {
    let _one = begin();
    let (stream, event) = (new_stream(0), new_event());
    free(alloc(stream), stream);
    let made = calls_of(|| {
        for _ in 0..200 {
            record(event, stream);
            step_all();
        }
    });
    let made = made.iter().find(|(name, _)| name == "event_create");
    assert!(made.is_none_or(|(_, count)| *count <= 16), "{made:?}");
    destroy_event(event);
    destroy(stream);
    end();
}

#[test]
fn a_refused_free_changes_nothing() {
    let _one = begin();
    let cache = default_cache();
    let (a, event) = (new_stream(0), new_event());
    let ptr = alloc(a);
    let inside = ptr.wrapping_byte_add(64);
    let before = stats(cache);
    // SAFETY: addresses that are only named, handles that are good or are said to be bad.
    unsafe {
        let mut other = null_mut();
        ok(cvc_cache_create(std::ptr::null(), &mut other));
        for (status, part) in [
            (
                cvc_mem_free(cache, inside, a),
                "64 bytes inside of the 4096",
            ),
            (cvc_mem_free(other, ptr, a), "memory of another cache"),
            (
                cvc_mem_record_stream(other, ptr, a),
                "memory of another cache",
            ),
            (
                cvc_mem_free_after_event(cache, ptr, null_mut()),
                "event is null",
            ),
            (cvc_mem_free_after_event(cache, ptr, event), "has no record"),
            (cvc_mem_record_stream(cache, ptr, NONE), "CVC_STREAM_NONE"),
        ] {
            assert_ne!(status, CVC_STATUS_OK, "{part}");
            assert_eq!(stats(cache).live_handles, before.live_handles, "{part}");
        }
        ok(cvc_cache_release(other));
    }
    free(ptr, a);
    // SAFETY: as above.
    let twice = unsafe { cvc_mem_free(cache, ptr, a) };
    assert_eq!(twice, CVC_STATUS_INVALID_ARGUMENT);
    assert!(message().contains("no memory that is allocated"));
    destroy_event(event);
    destroy(a);
    end();
}

/// An export keeps its consumer's stream in mind, as a record does.
#[test]
fn an_export_that_outlives_its_consumers_stream_lets_its_memory_go() {
    // What the deleter of DLPack's struct takes, up to the deleter.
    #[repr(C)]
    struct Managed {
        tensor: [u64; 6],
        context: *mut c_void,
        deleter: unsafe extern "C" fn(*mut Managed),
    }
    let _one = begin();
    let (a, b) = (new_stream(0), new_stream(0));
    let tensor = create(default_cache(), &hwc(8, 8, 1), a);
    let ptr = without_provenance_mut(data(tensor) as usize);
    let mut managed = null_mut();
    // SAFETY: a handle that is good, and a place for the result.
    ok(unsafe { cvc_tensor_to_dlpack(tensor, b, 0, &mut managed) });
    launch_bytes(b, ptr, 64);
    destroy(b);
    let others: Vec<_> = (0..8).map(|_| new_stream(0)).collect();
    let managed: *mut Managed = managed.cast();
    // SAFETY: an export, which is deleted once.
    unsafe { ((*managed).deleter)(managed) };
    release(tensor);
    let other = create(default_cache(), &hwc(8, 8, 1), a);
    assert_ne!(data(other), ptr as u64, "its consumer's work still runs");
    step_all();
    let again = create(default_cache(), &hwc(8, 8, 1), a);
    assert_eq!(data(again), ptr as u64);
    release(other);
    release(again);
    others.into_iter().for_each(destroy);
    destroy(a);
    end();
}
