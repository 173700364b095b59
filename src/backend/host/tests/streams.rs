//! Created streams: their order, events, latches, timeouts, number and end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::*;
use crate::backend::STREAM_LEGACY;

#[test]
fn a_stream_runs_in_order_and_behind_the_caller() {
    let backend = backend();
    let stream = backend.stream_create(0, false).unwrap();
    let (log, caller) = (Log::default(), thread::current().id());
    let (sender, receiver) = channel();
    backend
        .call(0, stream, move || {
            sender.send(thread::current().id()).unwrap()
        })
        .unwrap();
    assert_ne!(receiver.recv().unwrap(), caller);
    for value in 0..1000 {
        log.add(&backend, stream, value);
    }
    synchronize(&backend, stream);
    assert_eq!(log.get(), (0..1000).collect::<Vec<_>>());
}

#[test]
fn queued_work_can_wait_for_its_caller() {
    // Would hang if work ran inside the call that queues it, also on an empty stream.
    let backend = backend();
    let stream = backend.stream_create(0, false).unwrap();
    let (sender, receiver) = channel::<()>();
    backend
        .call(0, stream, move || receiver.recv().unwrap())
        .unwrap();
    sender.send(()).unwrap();
    synchronize(&backend, stream);
}

#[test]
fn a_stream_waits_for_another_ones_event() {
    let backend = backend();
    let (first, second) = (
        backend.stream_create(0, false).unwrap(),
        backend.stream_create(1, false).unwrap(),
    );
    let log = Log::default();
    let latch = backend.latch_create(0, first).unwrap();
    log.add(&backend, first, 1);
    let event = recorded(&backend, first);
    backend.stream_wait_event(1, second, event).unwrap();
    let second_log = log.clone();
    backend
        .call(1, second, move || second_log.0.lock().push(2))
        .unwrap();
    assert_held(&backend, first);
    assert_eq!(backend.event_query(0, event), Ok(false));
    assert_eq!(backend.stream_synchronize(1, second, NOW), Ok(false));
    // The wait holds what it waits for: the event's name may go.
    backend.event_destroy(0, event).unwrap();
    backend.latch_open(latch).unwrap();
    assert_eq!(backend.stream_synchronize(1, second, None), Ok(true));
    assert_eq!(log.get(), [1, 2]);
}

#[test]
fn a_wait_takes_the_record_that_was_latest_when_it_was_queued() {
    let backend = backend();
    let streams: Vec<_> = (0..3)
        .map(|_| backend.stream_create(0, false).unwrap())
        .collect();
    let log = Log::default();
    let event = backend.event_create(0, false).unwrap();

    // Never recorded: done, and a wait for it is nothing, whatever is recorded later.
    assert_eq!(backend.event_query(0, event), Ok(true));
    assert_eq!(backend.event_synchronize(0, event, None), Ok(true));
    backend.stream_wait_event(0, streams[2], event).unwrap();
    let first_latch = backend.latch_create(0, streams[0]).unwrap();
    backend.event_record(0, event, streams[0]).unwrap();
    log.add(&backend, streams[2], 1);
    synchronize(&backend, streams[2]);

    // Recorded again on a stream that is held longer: the earlier wait is for the earlier record.
    backend.stream_wait_event(0, streams[2], event).unwrap();
    log.add(&backend, streams[2], 2);
    let second_latch = backend.latch_create(0, streams[1]).unwrap();
    backend.event_record(0, event, streams[1]).unwrap();
    assert_held(&backend, streams[2]);
    backend.latch_open(first_latch).unwrap();
    synchronize(&backend, streams[2]);
    assert_eq!(log.get(), [1, 2]);
    assert_eq!(backend.event_query(0, event), Ok(false));
    assert_eq!(backend.event_synchronize(0, event, NOW), Ok(false));
    backend.latch_open(second_latch).unwrap();
    assert_eq!(backend.event_synchronize(0, event, None), Ok(true));
    assert_eq!(backend.event_query(0, event), Ok(true));
}

#[test]
fn a_destroyed_streams_work_still_runs() {
    let backend = backend();
    let stream = backend.stream_create(0, true).unwrap();
    let log = Log::default();
    let latch = backend.latch_create(0, stream).unwrap();
    log.add(&backend, stream, 1);
    let event = recorded(&backend, stream);
    backend.stream_destroy(0, stream).unwrap();
    assert_eq!(
        status(backend.stream_query(0, stream)),
        Some(Status::InvalidStream)
    );
    assert_eq!(
        status(backend.stream_destroy(0, stream)),
        Some(Status::InvalidStream)
    );
    // Many more come and go; the busy one is not forgotten.
    for _ in 0..1000 {
        let short = backend.stream_create(0, false).unwrap();
        backend.call(0, short, || {}).unwrap();
        backend.stream_destroy(0, short).unwrap();
    }
    assert_eq!(backend.device_synchronize(0, NOW), Ok(false));
    assert_held(&backend, STREAM_LEGACY);
    backend.latch_open(latch).unwrap();
    assert_eq!(backend.device_synchronize(0, None), Ok(true));
    assert_eq!(log.get(), [1]);
    assert_eq!(backend.event_query(0, event), Ok(true));
}

#[test]
fn dropping_the_backend_loses_no_work_and_no_memory_under_it() {
    let (sender, receiver) = channel();
    let backend = backend();
    let stream = backend.stream_create(0, false).unwrap();
    let pointer = backend.memory_allocate(0, 4096).unwrap();
    let latch = backend.latch_create(0, stream).unwrap();
    let gate = backend.stream_create(0, false).unwrap();
    let (open, opened) = channel::<()>();
    backend
        .call(0, gate, move || opened.recv().unwrap())
        .unwrap();
    let event = recorded(&backend, gate);
    backend.stream_wait_event(0, stream, event).unwrap();
    let write = move || {
        // SAFETY: the stream keeps the device's memory; nothing else uses this allocation.
        unsafe { std::ptr::write_bytes(pointer as *mut u8, 1, 4096) };
        sender.send(()).unwrap();
    };
    backend.call(0, stream, write).unwrap();
    backend.latch_open(latch).unwrap();
    drop(backend);
    open.send(()).unwrap();
    receiver.recv().unwrap();
}

#[test]
fn timeouts_end_a_wait_that_would_not() {
    let backend = backend();
    let stream = backend.stream_create(0, false).unwrap();
    let latch = backend.latch_create(0, stream).unwrap();
    let event = recorded(&backend, stream);
    for timeout in [Duration::ZERO, Duration::from_millis(2)] {
        let timeout = Some(timeout);
        assert_eq!(backend.stream_synchronize(0, stream, timeout), Ok(false));
        assert_eq!(backend.event_synchronize(0, event, timeout), Ok(false));
        assert_eq!(backend.device_synchronize(0, timeout), Ok(false));
    }
    assert_eq!(backend.device_synchronize(1, NOW), Ok(true));
    thread::scope(|scope| {
        let waits = [
            scope.spawn(|| backend.stream_synchronize(0, stream, None)),
            scope.spawn(|| backend.event_synchronize(0, event, Some(Duration::MAX))),
            scope.spawn(|| backend.device_synchronize(0, Some(Duration::from_secs(3600)))),
        ];
        backend.latch_open(latch).unwrap();
        for wait in waits {
            assert_eq!(wait.join().unwrap(), Ok(true));
        }
    });
}

#[test]
fn a_latch_holds_its_stream_alone_and_opens_once() {
    let backend = backend();
    // More than there are threads: a held stream takes none.
    let cores = thread::available_parallelism().unwrap().get();
    let held: Vec<_> = (0..4 * cores)
        .map(|_| {
            let stream = backend.stream_create(0, false).unwrap();
            (stream, backend.latch_create(0, stream).unwrap())
        })
        .collect();
    let free = backend.stream_create(0, false).unwrap();
    backend.call(0, free, || {}).unwrap();
    synchronize(&backend, free);
    for (stream, latch) in held {
        assert_held(&backend, stream);
        backend.latch_open(latch).unwrap();
        assert_eq!(
            status(backend.latch_open(latch)),
            Some(Status::InvalidHandle)
        );
        synchronize(&backend, stream);
    }
    assert_eq!(
        status(backend.latch_open(12345)),
        Some(Status::InvalidHandle)
    );
    assert_eq!(
        status(backend.latch_create(0, 12345)),
        Some(Status::InvalidStream)
    );
    assert_eq!(backend.latches.len(), 0);
}

fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with("cvc-host-"))
        .count()
}

#[test]
fn ten_thousand_streams_need_no_more_threads_than_cores() {
    let backend = backend();
    let ran = Arc::new(AtomicUsize::new(0));
    let gate = backend.stream_create(0, false).unwrap();
    let latch = backend.latch_create(0, gate).unwrap();
    let event = recorded(&backend, gate);
    let streams: Vec<_> = (0..10_000)
        .map(|index| {
            let stream = backend.stream_create(0, index % 2 == 0).unwrap();
            backend.stream_wait_event(0, stream, event).unwrap();
            let ran = Arc::clone(&ran);
            let call = move || {
                ran.fetch_add(1, Ordering::Relaxed);
            };
            backend.call(0, stream, call).unwrap();
            stream
        })
        .collect();
    // Other tests have pools of their own with a thread each.
    let cores = thread::available_parallelism().unwrap().get();
    let threads = thread_count();
    assert!(threads <= cores + 3, "{threads} threads");
    assert_eq!(backend.device_synchronize(0, NOW), Ok(false));
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    backend.latch_open(latch).unwrap();
    assert_eq!(backend.device_synchronize(0, None), Ok(true));
    assert_eq!(ran.load(Ordering::Relaxed), 10_000);
    for stream in streams {
        assert_eq!(backend.stream_query(0, stream), Ok(true));
        backend.stream_destroy(0, stream).unwrap();
    }
    assert_eq!(backend.streams.len(), 1);
}

#[test]
fn timing_events_measure_the_time_between_their_records() {
    let backend = backend();
    let stream = backend.stream_create(0, false).unwrap();
    let timing: Vec<_> = (0..3)
        .map(|_| backend.event_create(0, true).unwrap())
        .collect();
    let plain = recorded(&backend, stream);
    let elapsed = |start, end| backend.event_elapsed_ms(0, start, end);
    assert_eq!(
        status(elapsed(timing[0], timing[1])),
        Some(Status::InvalidEvent)
    );
    backend.event_record(0, timing[0], stream).unwrap();
    let latch = backend.latch_create(0, stream).unwrap();
    backend.event_record(0, timing[1], stream).unwrap();
    assert_eq!(backend.event_synchronize(0, timing[0], None), Ok(true));
    assert_eq!(
        status(elapsed(timing[0], timing[1])),
        Some(Status::NotReady)
    );
    // Taken when the record runs: this passes between the two records, and after both were queued.
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_millis(3) {
        std::hint::spin_loop();
    }
    backend.latch_open(latch).unwrap();
    synchronize(&backend, stream);
    let forward = elapsed(timing[0], timing[1]).unwrap();
    assert!(forward >= 3.0, "{forward} ms");
    assert_eq!(elapsed(timing[1], timing[0]), Ok(-forward));
    assert_eq!(elapsed(timing[0], timing[0]), Ok(0.0));
    assert_eq!(
        status(elapsed(timing[0], plain)),
        Some(Status::InvalidEvent)
    );
    assert_eq!(
        status(elapsed(timing[2], timing[0])),
        Some(Status::InvalidEvent)
    );
}
