//! Queued work in steps: what may run, in which order a caller picks, and what the host's waits run by themselves.

mod c_interface;

use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

use c_interface::*;

/// Steps are the process's: one test at a time.
fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(CVC_INSTRUMENT_STEPPED);
    assert_eq!(runnable(), 0);
    guard
}

fn step_at(index: u64) -> (i32, cvc_host_step_t) {
    // SAFETY: plain numbers.
    let mut step: cvc_host_step_t = unsafe { std::mem::zeroed() };
    step.struct_size = std::mem::size_of_val(&step);
    // SAFETY: a place for the result.
    let status = unsafe { cvc_host_step_get(index, &mut step) };
    (status, step)
}

fn query(stream: cvc_stream_t) -> i32 {
    // SAFETY: no preconditions.
    unsafe { cvc_stream_query(stream) }
}

const SIDE: i64 = 8;
const BYTES: usize = (SIDE * SIDE) as usize;

fn upload(stream: cvc_stream_t, from: &[u8], tensor: cvc_tensor_t) {
    // SAFETY: the slice outlives the work, as every test waits for it.
    ok(unsafe { cvc_upload(stream, from.as_ptr().cast(), std::ptr::null(), tensor) });
}

fn download(stream: cvc_stream_t, tensor: cvc_tensor_t, to: &mut [u8]) {
    // SAFETY: as above.
    ok(unsafe { cvc_download(stream, tensor, to.as_mut_ptr().cast(), std::ptr::null()) });
}

#[test]
fn nothing_runs_before_its_step() {
    let _one = begin();
    let stream = new_stream(0);
    let tensor = create(default_cache(), &hwc(SIDE, SIDE, 1), stream);
    let (ones, mut got) = ([1u8; BYTES], [0u8; BYTES]);
    upload(stream, &ones, tensor);
    download(stream, tensor, &mut got);
    assert_eq!(query(stream), CVC_STATUS_NOT_READY);
    assert_eq!(query(stream), CVC_STATUS_NOT_READY, "a query runs nothing");
    let (status, item) = step_at(0);
    assert_eq!(
        (status, item.kind, item.device),
        (CVC_STATUS_OK, CVC_HOST_STEP_WORK, 0)
    );
    assert_eq!(runnable(), 1, "a stream's second item waits for its first");
    step(0);
    assert_eq!(got, [0; BYTES]);
    step(0);
    assert_eq!(got, [1; BYTES]);
    assert_eq!((runnable(), query(stream)), (0, CVC_STATUS_OK));
    // SAFETY: no preconditions.
    assert_eq!(unsafe { cvc_host_step(0) }, CVC_STATUS_INVALID_INDEX);
    assert_eq!(step_at(7).0, CVC_STATUS_INVALID_INDEX);
    release(tensor);
    destroy(stream);
}

/// Two streams' items in the order that `picks` gives; what a third reads of both at the end.
fn interleave(picks: &[u64]) -> Vec<u64> {
    let streams = [new_stream(0), new_stream(0)];
    let tensors = streams.map(|stream| create(default_cache(), &hwc(SIDE, SIDE, 1), stream));
    let sources = [[1u8; BYTES], [2u8; BYTES]];
    let mut got = [[0u8; BYTES]; 2];
    for (index, stream) in streams.into_iter().enumerate() {
        upload(stream, &sources[index], tensors[index]);
        download(stream, tensors[index], &mut got[index]);
    }
    let mut ids = Vec::new();
    for pick in picks {
        // Completions that the cache asked for, to learn what is done, are no part of the order.
        let is_record = |index: &u64| step_at(*index).1.kind == CVC_HOST_STEP_RECORD;
        while let Some(record) = (0..runnable()).find(is_record) {
            step(record);
        }
        let pick = pick % runnable();
        ids.push(step_at(pick).1.stream_id);
        step(pick);
    }
    streams.into_iter().for_each(synchronize);
    assert_eq!(got, sources);
    tensors.into_iter().for_each(release);
    let order = ids.iter().map(|id| u64::from(*id != ids[0])).collect();
    streams.into_iter().for_each(destroy);
    order
}

#[test]
fn the_same_picks_give_the_same_order() {
    let _one = begin();
    assert_eq!(interleave(&[0, 0, 0, 0]), [0, 0, 1, 1]);
    assert_eq!(interleave(&[0, 1, 0, 0]), [0, 1, 0, 1]);
    assert_eq!(interleave(&[1, 0, 0, 0]), [0, 1, 1, 0]);
}

#[test]
fn a_wait_runs_what_it_needs_and_nothing_else() {
    let _one = begin();
    let (writer, reader, other) = (new_stream(0), new_stream(0), new_stream(0));
    let cache = default_cache();
    let tensor = create(cache, &hwc(SIDE, SIDE, 1), writer);
    let apart = create(cache, &hwc(SIDE, SIDE, 1), other);
    let (ones, mut got) = ([1u8; BYTES], [0u8; BYTES]);
    upload(writer, &ones, tensor);
    // SAFETY: handles.
    unsafe {
        ok(cvc_fill_zero(other, apart));
        // Written again once it was read: not needed by the reader.
        download(reader, tensor, &mut got);
        ok(cvc_fill_zero(writer, tensor));
        assert_eq!(cvc_stream_synchronize(reader, 0), CVC_STATUS_NOT_READY);
    }
    synchronize(reader);
    assert_eq!(got, [1; BYTES]);
    assert_eq!(query(reader), CVC_STATUS_OK);
    assert_eq!(query(writer), CVC_STATUS_NOT_READY);
    assert_eq!(query(other), CVC_STATUS_NOT_READY);
    let mut steps = 0;
    // SAFETY: places for results.
    unsafe {
        ok(cvc_host_step_stream(writer, &mut steps));
        assert!(steps >= 1);
        assert_eq!(
            (query(writer), query(other)),
            (CVC_STATUS_OK, CVC_STATUS_NOT_READY)
        );
        ok(cvc_host_step_all(&mut steps));
        assert_eq!((steps, query(other)), (1, CVC_STATUS_OK));
    }
    release(tensor);
    release(apart);
    [writer, reader, other].into_iter().for_each(destroy);
}

#[test]
fn a_latch_is_in_the_way_until_another_thread_opens_it() {
    let _one = begin();
    let stream = new_stream(0);
    let tensor = create(default_cache(), &hwc(SIDE, SIDE, 1), stream);
    let latch = hold(stream);
    // SAFETY: handles and places for results.
    unsafe {
        ok(cvc_fill_zero(stream, tensor));
        let mut steps = 0;
        ok(cvc_host_step_all(&mut steps));
        assert_eq!((steps, runnable()), (0, 0));
        ok(cvc_host_step_stream(stream, &mut steps));
        assert_eq!(steps, 0);
        assert_eq!(cvc_stream_synchronize(stream, 1000), CVC_STATUS_NOT_READY);
    }
    std::thread::scope(|scope| {
        scope.spawn(move || let_go(latch));
        synchronize(stream);
    });
    release(tensor);
    destroy(stream);
}

#[test]
fn an_event_completes_by_a_step_of_its_own() {
    let _one = begin();
    let stream = new_stream(0);
    let tensor = create(default_cache(), &hwc(SIDE, SIDE, 1), stream);
    let mut event = null_mut();
    // SAFETY: handles and places for results.
    unsafe {
        ok(cvc_event_create(0, 0, &mut event));
        ok(cvc_fill_zero(stream, tensor));
        ok(cvc_event_record(event, stream));
        step(0);
        assert_eq!(cvc_event_query(event), CVC_STATUS_NOT_READY);
        assert_eq!(step_at(0).1.kind, CVC_HOST_STEP_RECORD);
        step(0);
        ok(cvc_event_query(event));
        ok(cvc_event_destroy(event));
    }
    release(tensor);
    destroy(stream);
}

#[test]
fn the_legacy_stream_keeps_its_order() {
    let _one = begin();
    let legacy: cvc_stream_t = std::ptr::without_provenance_mut(1);
    let blocking = new_stream(CVC_STREAM_BLOCKING);
    let cache = default_cache();
    let (first, second) = (
        create(cache, &hwc(SIDE, SIDE, 1), blocking),
        create(cache, &hwc(SIDE, SIDE, 1), legacy),
    );
    // SAFETY: handles.
    unsafe {
        ok(cvc_fill_zero(blocking, first));
        ok(cvc_fill_zero(legacy, second));
    }
    assert_eq!(runnable(), 1, "the legacy stream waits");
    synchronize(legacy);
    assert_eq!(query(blocking), CVC_STATUS_OK);
    release(first);
    release(second);
    destroy(blocking);
}

/// Here since the driver's account is the process's, and these tests run one at a time.
#[test]
fn what_outlives_its_cache_goes_back_once_it_is_released_and_done() {
    let _one = begin();
    let all = default_cache();
    // What other tests' threads left behind would go at any time.
    // SAFETY: no preconditions.
    ok(unsafe { cvc_cache_clear(all, 0, CVC_SCOPE_GLOBAL) });
    let before = stats(all).driver_bytes;
    let stream = new_stream(0);
    let mut cache = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_create(std::ptr::null(), &mut cache) });
    let desc = hwc(SIDE, SIDE, 1);
    let (idle, busy) = (create(cache, &desc, stream), create(cache, &desc, stream));
    // SAFETY: handles.
    unsafe {
        ok(cvc_fill_zero(stream, busy));
        ok(cvc_cache_release(cache));
    }
    // Released by another thread, which has no list that anybody looks at any more.
    let handle = idle as usize;
    std::thread::spawn(move || release(std::ptr::without_provenance_mut(handle)))
        .join()
        .expect("the thread releases it");
    assert_eq!(stats(all).driver_bytes, before + 512);
    release(busy);
    assert_eq!(stats(all).driver_bytes, before + 512, "its work is queued");
    while runnable() > 0 {
        step(0);
    }
    assert_eq!(stats(all).driver_bytes, before);
    destroy(stream);
}
