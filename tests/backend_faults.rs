//! Every call of the backend fails once, at every place of a short program: an error each time, accounts that add up,
//! nothing reused early, and all as before once the fault is gone.

mod c_interface;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

use c_interface::*;
use cvc::backend::wrap::Call;
use cvc::backend::Fill2d;

const SIDE: i64 = 24;
const BYTES: usize = (SIDE * SIDE * 3) as usize;

fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(CVC_INSTRUMENT_FAULTS | CVC_INSTRUMENT_RACE_CHECK);
    guard
}

/// What the program's calls came to.
#[derive(Default)]
struct Outcome {
    errors: Vec<(&'static str, i32, String)>,
    /// Downloads that succeeded gave these.
    results: Vec<(usize, Vec<u8>)>,
}

impl Outcome {
    /// Notes a status; whether it is success.
    fn note(&mut self, what: &'static str, status: i32) -> bool {
        if status != CVC_STATUS_OK {
            self.errors.push((what, status, message()));
        }
        status == CVC_STATUS_OK
    }
}

/// Writes on two streams, reads on the other, releases with work queued, reuses, asks and waits.
fn program(cache: cvc_cache_t) -> Outcome {
    let mut outcome = Outcome::default();
    let desc = hwc(SIDE, SIDE, 3);
    let mut streams = [null_mut(); 2];
    let mut buffers = Vec::new();
    // SAFETY: handles that are good, and places for results that live until the streams are through.
    unsafe {
        for stream in &mut streams {
            outcome.note("stream_create", cvc_stream_create(0, 0, stream));
        }
        let foreign = foreign_stream();
        let pairs = [
            [streams[0], streams[1]],
            [streams[1], streams[0]],
            [streams[0], streams[1]],
            [OWN_STREAM, streams[0]],
            [streams[1], foreign],
        ];
        for (round, [writer, reader]) in pairs.into_iter().enumerate() {
            let value = 10 * round as u8 + 7;
            let source = vec![value; BYTES];
            let mut got = vec![0u8; BYTES];
            if writer.is_null() || reader.is_null() {
                continue;
            }
            let latch = if round == 1 {
                hold_or_none(writer)
            } else {
                None
            };
            let (status, tensor) = try_create(cache, &desc, writer);
            let mut whole = outcome.note("create", status);
            if whole {
                let status = cvc_upload(writer, source.as_ptr().cast(), std::ptr::null(), tensor);
                whole &= outcome.note("upload", status);
                let mut flipped = null_mut();
                let status = cvc_op_flip_new(reader, tensor, 1, &mut flipped);
                let made = outcome.note("flip", status);
                whole &= made;
                // A second writer, that must not run before the reader.
                outcome.note("fill_zero", cvc_fill_zero(writer, tensor));
                outcome.note("release", cvc_tensor_release(tensor));
                if made {
                    let place = got.as_mut_ptr().cast();
                    let status = cvc_download(reader, flipped, place, std::ptr::null());
                    whole &= outcome.note("download", status);
                    outcome.note("release", cvc_tensor_release(flipped));
                    // Would take the flipped memory if it were offered too early.
                    let (status, early) = try_create(cache, &desc, writer);
                    if outcome.note("create", status) {
                        outcome.note("fill_zero", cvc_fill_zero(writer, early));
                        outcome.note("release", cvc_tensor_release(early));
                    }
                }
            }
            if let Some(latch) = latch {
                let_go_surely(latch);
            }
            outcome.note(
                "query",
                match cvc_stream_query(reader) {
                    CVC_STATUS_NOT_READY => CVC_STATUS_OK,
                    status => status,
                },
            );
            outcome.note("synchronize", cvc_stream_synchronize(writer, -1));
            let read = outcome.note("synchronize", cvc_stream_synchronize(reader, -1));
            if whole && read {
                outcome.results.push((round, got.clone()));
            }
            buffers.push((source, got));
        }
        let mut event = null_mut();
        if !streams[0].is_null() && outcome.note("event_create", cvc_event_create(0, 0, &mut event))
        {
            outcome.note("event_record", cvc_event_record(event, streams[0]));
            outcome.note(
                "wait_event",
                match streams[1].is_null() {
                    true => CVC_STATUS_OK,
                    false => cvc_stream_wait_event(streams[1], event),
                },
            );
            outcome.note("event_synchronize", cvc_event_synchronize(event, -1));
            if !outcome.note("event_destroy", cvc_event_destroy(event)) {
                end_plan_and_keep_hits();
                ok(cvc_event_destroy(event));
            }
        }
        outcome.note("device_synchronize", cvc_device_synchronize(0, -1));
        outcome.note("clear", cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL));
        for stream in streams.into_iter().filter(|stream| !stream.is_null()) {
            if !outcome.note("stream_destroy", cvc_stream_destroy(stream)) {
                end_plan_and_keep_hits();
                ok(cvc_stream_destroy(stream));
            }
        }
        if !foreign.is_null() {
            let backend = cvc::backend::current().expect("it has started");
            while backend.stream_destroy(0, foreign as usize).is_err() {}
        }
        // Whatever failed above, the buffers must live until no queued copy uses them.
        let backend = cvc::backend::current().expect("it has started");
        while backend.device_synchronize(0, None) != Ok(true) {}
    }
    drop(buffers);
    outcome
}

static HITS: Mutex<u64> = Mutex::new(0);

fn end_plan_and_keep_hits() {
    *HITS.lock().unwrap() += end_plan();
}

fn hold_or_none(stream: cvc_stream_t) -> Option<u64> {
    let mut latch = 0;
    // SAFETY: a place for the result.
    let status = unsafe { cvc_host_latch_create(stream, &mut latch) };
    (status == CVC_STATUS_OK).then_some(latch)
}

fn let_go_surely(latch: u64) {
    // The plan may have this call fail too, once.
    // SAFETY: no preconditions.
    while unsafe { cvc_host_latch_open(latch) } != CVC_STATUS_OK {}
}

/// Has every call fail with each status at each place that `attempt` reaches. It gets a name for that, and gives how often
/// the plan was hit. Returns the calls that were reached, each with a status and at how many places.
fn walk(statuses: &[i32], mut attempt: impl FnMut(&str) -> u64) -> Vec<(&'static str, i32, u64)> {
    let mut walked = Vec::new();
    for &status in statuses {
        for call in Call::ALL {
            let name = call.name().to_str().expect("ASCII");
            if matches!(name, "kind" | "device_count") {
                continue;
            }
            let mut places = 0;
            loop {
                assert!(places < 500, "{name} is called without end");
                *HITS.lock().unwrap() = 0;
                plan(name, places, 1, status);
                if attempt(&format!("{name} {places} with status {status}")) == 0 {
                    break;
                }
                places += 1;
            }
            if places > 0 {
                walked.push((name, status, places));
            }
        }
    }
    walked
}

fn assert_reached(walked: &[(&str, i32, u64)], names: &[&str]) {
    let faults: u64 = walked.iter().map(|(_, _, places)| places).sum();
    println!("{faults} faults: {walked:?}");
    for name in names {
        assert!(
            walked.iter().any(|(walked, _, _)| walked == name),
            "{name} was not reached"
        );
    }
}

#[test]
fn every_call_fails_at_every_place() {
    let _one = begin();
    let cache = default_cache();
    let statuses = [
        CVC_STATUS_DEVICE_ERROR,
        CVC_STATUS_OUT_OF_MEMORY,
        CVC_STATUS_NOT_READY,
    ];
    let walked = walk(&statuses, |at| {
        let outcome = program(cache);
        let hits = end_plan() + *HITS.lock().unwrap();
        check(cache, at, &outcome, hits);
        hits
    });
    assert_reached(
        &walked,
        &[
            "memory_allocate",
            "memory_free",
            "stream_create",
            "event_record",
            "launch",
            "copy_2d",
        ],
    );
}

fn check(cache: cvc_cache_t, at: &str, outcome: &Outcome, hits: u64) {
    for (what, status, message) in &outcome.errors {
        assert!(
            !message.is_empty(),
            "{at}: {what} gave {status} and no message"
        );
    }
    if hits == 0 {
        assert!(outcome.errors.is_empty(), "{at}: {:?}", outcome.errors);
        assert_eq!(outcome.results.len(), 5, "{at}");
    }
    for (round, got) in &outcome.results {
        let expected = 10 * *round as u8 + 7;
        let wrong = got.iter().position(|value| *value != expected);
        assert_eq!(
            wrong, None,
            "{at}: the result of round {round} was overwritten"
        );
    }
    assert!(races() == 0, "{at}: {}", race_report());
    assert_accounts_add_up(cache, at);
    assert_eq!(stats(cache).live_handles, 0, "{at}");
    // SAFETY: the cache's handle.
    unsafe {
        ok(cvc_device_synchronize(0, -1));
        ok(cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL));
    }
    let after = stats(cache);
    assert_eq!(
        (after.bytes, after.driver_bytes),
        (0, 0),
        "{at}: {:?}",
        outcome.errors
    );
}

/// Resizes a batch of three images to three sizes; the result's images are taken one by one, with tables beside them.
fn resize_a_batch(cache: cvc_cache_t, stream: cvc_stream_t) -> Outcome {
    const SIZES: [i32; 6] = [20, 30, 9, 11, 40, 8];
    let mut outcome = Outcome::default();
    let (mut batch, mut resized) = (null_mut(), null_mut());
    let mut images = Vec::new();
    // SAFETY: handles and places for results.
    unsafe {
        for width in [16, 24, 33] {
            let desc = cvc_image_desc_t {
                struct_size: std::mem::size_of::<cvc_image_desc_t>(),
                device: 0,
                format: CVC_FORMAT_RGB8,
                width,
                height: 12,
                row_align: 0,
                base_align: 0,
            };
            let mut image = null_mut();
            let status = cvc_image_create(cache, &desc, stream, &mut image);
            if outcome.note("image_create", status) {
                images.push(image);
            }
        }
        let status = cvc_image_batch_create(cache, 0, 3, stream, &mut batch);
        if outcome.note("batch_create", status) {
            let count = images.len() as i32;
            let pushed = cvc_image_batch_push(batch, images.as_ptr(), count);
            outcome.note("push", pushed);
            if count == 3 {
                let (sizes, filter) = (SIZES.as_ptr(), CVC_FILTER_LINEAR);
                let status = cvc_op_pillow_resize_var_shape_new(
                    stream,
                    batch,
                    sizes,
                    3,
                    filter,
                    0,
                    &mut resized,
                );
                if outcome.note("resize", status) {
                    let released = cvc_image_batch_release(resized);
                    outcome.note("release", released);
                } else {
                    assert!(resized.is_null());
                }
            }
            outcome.note("release", cvc_image_batch_release(batch));
        }
        for image in images {
            outcome.note("release", cvc_image_release(image));
        }
        outcome.note("synchronize", cvc_stream_synchronize(stream, -1));
        let cleared = cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL);
        outcome.note("clear", cleared);
    }
    outcome
}

#[test]
fn a_batch_fails_half_way() {
    let _one = begin();
    let cache = default_cache();
    let stream = new_stream(0);
    // The tables of resize coefficients stay for later calls: what they take is what the first run leaves.
    let first = resize_a_batch(cache, stream);
    assert!(first.errors.is_empty(), "{:?}", first.errors);
    let kept = stats(cache).driver_bytes;
    let mut faults = 0;
    for name in Call::ALL
        .iter()
        .map(|call| call.name().to_str().expect("ASCII"))
    {
        if matches!(name, "kind" | "device_count") {
            continue;
        }
        for place in 0.. {
            assert!(place < 500, "{name} is called without end");
            plan(name, place, 1, CVC_STATUS_DEVICE_ERROR);
            let outcome = resize_a_batch(cache, stream);
            let hits = end_plan();
            for (what, status, message) in &outcome.errors {
                assert!(!message.is_empty(), "{what} gave {status} and no message");
            }
            assert_accounts_add_up(cache, name);
            assert_no_races();
            synchronize(stream);
            // SAFETY: the cache's handle.
            ok(unsafe { cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL) });
            let after = stats(cache);
            let left = (after.live_handles, after.bytes, after.driver_bytes);
            assert_eq!(left, (0, 0, kept), "{name} {place}: {:?}", outcome.errors);
            if hits == 0 {
                assert!(outcome.errors.is_empty(), "{name}: {:?}", outcome.errors);
                break;
            }
            faults += 1;
        }
    }
    assert!(faults > 20, "only {faults} faults");
    destroy(stream);
}

/// Work of somebody else on raw memory, of which the library hears nothing.
fn launch(stream: cvc_stream_t, ptr: *mut c_void) -> i32 {
    let bytes = BYTES as u64;
    let fill = Fill2d {
        dst: ptr as u64,
        pitch: bytes,
        width: bytes,
        height: 1,
    };
    let backend = cvc::backend::current().expect("it has started");
    match backend.fill_zero_2d(0, stream as usize, &fill) {
        Ok(()) => CVC_STATUS_OK,
        Err(_) => CVC_STATUS_DEVICE_ERROR,
    }
}

/// Frees by `free`; where that fails the memory is still there, and goes once the fault is gone.
fn free_surely(outcome: &mut Outcome, what: &'static str, free: impl Fn() -> i32) {
    if !outcome.note(what, free()) {
        end_plan_and_keep_hits();
        ok(free());
    }
}

/// Raw memory on a stream of the library's, on a foreign one and on the thread's own, freed in each way and used anew.
fn use_raw_memory(cache: cvc_cache_t) -> Outcome {
    const NONE: cvc_stream_t = std::ptr::without_provenance_mut(usize::MAX);
    let mut outcome = Outcome::default();
    let (mut own, mut event) = (null_mut(), null_mut());
    // SAFETY: handles that are good, and places for results.
    unsafe {
        outcome.note("stream_create", cvc_stream_create(0, 0, &mut own));
        outcome.note("event_create", cvc_event_create(0, 0, &mut event));
        let foreign = foreign_stream();
        for round in 0..8 {
            let first = if round % 4 == 3 { OWN_STREAM } else { own };
            if first.is_null() || foreign.is_null() || event.is_null() {
                continue;
            }
            let mut ptr = null_mut();
            let status = cvc_mem_alloc(cache, 0, BYTES, 0, first, &mut ptr);
            if !outcome.note("alloc", status) {
                assert!(ptr.is_null());
                continue;
            }
            outcome.note("launch", launch(first, ptr));
            let recorded = cvc_mem_record_stream(cache, ptr, foreign);
            let waited = cvc_stream_wait_stream(foreign, first);
            let recorded = outcome.note("record_stream", recorded);
            let on_both = outcome.note("wait_stream", waited) && recorded;
            if on_both {
                outcome.note("launch", launch(foreign, ptr));
            }
            let by_event = round % 4 == 1
                && on_both
                && outcome.note("event_record", cvc_event_record(event, foreign));
            if by_event {
                free_surely(&mut outcome, "free_after_event", || {
                    cvc_mem_free_after_event(cache, ptr, event)
                });
            } else if round % 4 == 2
                && outcome.note("synchronize", cvc_stream_synchronize(first, -1))
            {
                free_surely(&mut outcome, "free", || cvc_mem_free(cache, ptr, NONE));
            } else {
                free_surely(&mut outcome, "free", || cvc_mem_free(cache, ptr, first));
            }
            // Would take the memory if it were offered too early.
            let mut early = null_mut();
            let status = cvc_mem_alloc(cache, 0, BYTES, 0, own, &mut early);
            if outcome.note("alloc", status) {
                outcome.note("launch", launch(own, early));
                free_surely(&mut outcome, "free", || cvc_mem_free(cache, early, own));
            }
        }
        end_plan_and_keep_hits();
        let backend = cvc::backend::current().expect("it has started");
        assert_eq!(backend.device_synchronize(0, None), Ok(true));
        ok(cvc_device_synchronize(0, -1));
        if !event.is_null() {
            ok(cvc_event_destroy(event));
        }
        if !own.is_null() {
            ok(cvc_stream_destroy(own));
        }
        if !foreign.is_null() {
            // What failed to be recorded there is seen complete by this.
            ok(cvc_stream_query(foreign));
            let destroyed = backend.stream_destroy(0, foreign as usize);
            destroyed.expect("it lives");
        }
        ok(cvc_stream_query(OWN_STREAM));
    }
    outcome
}

#[test]
fn raw_memory_fails_at_every_place() {
    let _one = begin();
    let cache = default_cache();
    let statuses = [
        CVC_STATUS_DEVICE_ERROR,
        CVC_STATUS_OUT_OF_MEMORY,
        CVC_STATUS_CAPTURING,
        CVC_STATUS_NOT_READY,
    ];
    let walked = walk(&statuses, |at| {
        let outcome = use_raw_memory(cache);
        let hits = *HITS.lock().unwrap();
        for (what, status, message) in &outcome.errors {
            let launched = *what == "launch";
            assert!(
                launched || !message.is_empty(),
                "{at}: {what} gave {status}"
            );
        }
        assert!(races() == 0, "{at}: {}", race_report());
        assert_accounts_add_up(cache, at);
        // SAFETY: the cache's handle.
        ok(unsafe { cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL) });
        let after = stats(cache);
        let left = (after.live_handles, after.bytes, after.driver_bytes);
        assert_eq!(left, (0, 0, 0), "{at}: {:?}", outcome.errors);
        if hits == 0 {
            assert!(outcome.errors.is_empty(), "{at}: {:?}", outcome.errors);
        }
        hits
    });
    assert_reached(
        &walked,
        &["memory_allocate", "event_record", "stream_is_capturing"],
    );
}

#[test]
fn a_plan_is_checked() {
    let _one = begin();
    // SAFETY: names that are not those of calls.
    unsafe {
        assert_eq!(
            cvc_host_fault(c"launches".as_ptr(), 0, 1, CVC_STATUS_DEVICE_ERROR),
            CVC_STATUS_INVALID_ARGUMENT
        );
        assert_eq!(
            cvc_host_fault(std::ptr::null(), 0, 1, CVC_STATUS_DEVICE_ERROR),
            CVC_STATUS_NULL_POINTER
        );
        assert_eq!(
            cvc_host_fault(c"launch".as_ptr(), 0, 1, CVC_STATUS_OK),
            CVC_STATUS_INVALID_ENUM
        );
    }
}
