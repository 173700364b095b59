//! Streams, events, latches and captures.

use std::time::Duration;

use super::*;
use crate::backend::{Backend, STREAM_LEGACY, STREAM_PER_THREAD};

const AT_ONCE: Option<Duration> = Some(Duration::ZERO);
const SHORT: Option<Duration> = Some(Duration::from_millis(2));

#[test]
fn a_recycled_handle_is_another_stream() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let first = backend.stream_create(1, false).expect("a stream");
    let before = backend.stream_identify(first).expect("it lives");
    assert_eq!(before.device, 1);
    assert_eq!(backend.stream_identify(first), Ok(before));
    backend.stream_destroy(1, first).expect("it is ours");
    let second = backend.stream_create(1, false).expect("a stream");
    assert_eq!(first, second, "the fake driver recycles handles");
    let after = backend.stream_identify(second).expect("it lives");
    assert_ne!(before.id, after.id);
    // A thread that looks at it from another device's context sees the same.
    backend.set_current_device(0).expect("it is there");
    assert_eq!(backend.stream_identify(second), Ok(after));
}

#[test]
fn default_streams_are_those_of_the_current_device() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let legacy = backend.stream_identify(0).expect("a default stream");
    assert_eq!(legacy.device, 0);
    assert_eq!(backend.stream_identify(STREAM_LEGACY), Ok(legacy));
    let own = backend
        .stream_identify(STREAM_PER_THREAD)
        .expect("a default stream");
    assert_ne!(own.id, legacy.id);
    backend.set_current_device(1).expect("it is there");
    let other = backend.stream_identify(0).expect("a default stream");
    assert_eq!(other.device, 1);
    assert_ne!(other.id, legacy.id);
    for stream in [0, STREAM_LEGACY, STREAM_PER_THREAD] {
        assert_eq!(backend.stream_query(1, stream), Ok(true));
        refused(backend.stream_destroy(1, stream), Status::InvalidStream);
    }
    for stream in [3, usize::MAX, 0x7001] {
        refused(backend.stream_identify(stream), Status::InvalidStream);
        refused(backend.stream_query(0, stream), Status::InvalidStream);
    }
}

#[test]
fn a_latch_holds_its_stream_and_what_waits_for_it() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let held = backend.stream_create(0, false).expect("a stream");
    let waits = backend.stream_create(0, false).expect("a stream");
    let free = backend.stream_create(0, false).expect("a stream");
    let event = backend.event_create(0, false).expect("an event");
    assert_eq!(backend.event_query(0, event), Ok(true), "never recorded");
    let latch = backend.latch_create(0, held).expect("a latch");
    backend.event_record(0, event, held).expect("it is ours");
    backend
        .stream_wait_event(0, waits, event)
        .expect("they are ours");
    for stream in [held, waits] {
        assert_eq!(backend.stream_query(0, stream), Ok(false));
        assert_eq!(backend.stream_synchronize(0, stream, AT_ONCE), Ok(false));
        assert_eq!(backend.stream_synchronize(0, stream, SHORT), Ok(false));
    }
    assert_eq!(backend.stream_query(0, free), Ok(true));
    assert_eq!(backend.event_query(0, event), Ok(false));
    assert_eq!(backend.event_synchronize(0, event, SHORT), Ok(false));
    assert_eq!(backend.device_synchronize(0, SHORT), Ok(false));
    assert_eq!(backend.device_synchronize(1, SHORT), Ok(true));
    assert_eq!(
        fake.control.get("events"),
        1,
        "a timed wait leaves no event"
    );

    backend.latch_open(latch).expect("it is closed");
    assert_eq!(backend.stream_synchronize(0, held, None), Ok(true));
    assert_eq!(
        backend.stream_synchronize(0, waits, Some(Duration::MAX)),
        Ok(true)
    );
    assert_eq!(backend.event_synchronize(0, event, None), Ok(true));
    assert_eq!(backend.device_synchronize(0, SHORT), Ok(true));
    assert_eq!(backend.device_synchronize(0, None), Ok(true));
}

#[test]
fn waits_end_when_another_thread_opens_the_latch() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let stream = backend.stream_create(0, false).expect("a stream");
    for timeout in [None, Some(Duration::MAX)] {
        let latch = backend.latch_create(0, stream).expect("a latch");
        let asked = fake.control.calls("cuStreamQuery") + fake.control.get("waits");
        let waited = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| backend.stream_synchronize(0, stream, timeout));
            while fake.control.calls("cuStreamQuery") + fake.control.get("waits") == asked {
                assert!(!waiter.is_finished());
                std::thread::yield_now();
            }
            assert!(!waiter.is_finished());
            backend.latch_open(latch).expect("it is closed");
            waiter.join().expect("the thread ends")
        });
        assert_eq!(waited, Ok(true));
    }
}

#[test]
fn a_latch_opens_once_and_its_word_serves_again() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let early = backend.stream_create(0, false).expect("a stream");
    let late = backend.stream_create(0, false).expect("a stream");
    let mut seen = Vec::new();
    for _ in 0..3000 {
        let latch = backend.latch_create(0, early).expect("a latch");
        assert!(!seen.contains(&latch));
        seen.push(latch);
        backend.latch_open(latch).expect("it is closed");
        refused(backend.latch_open(latch), Status::InvalidHandle);
        assert_eq!(backend.stream_query(0, early), Ok(true));
    }
    // An opened latch stays open for its stream when the word is taken again.
    let first = backend.latch_create(0, early).expect("a latch");
    backend.latch_open(first).expect("it is closed");
    let second = backend.latch_create(0, late).expect("a latch");
    assert_eq!(backend.stream_query(0, early), Ok(true));
    assert_eq!(backend.stream_query(0, late), Ok(false));
    backend.latch_open(second).expect("it is closed");
    for latch in [0, 1 << 32, 2 << 48, u64::MAX] {
        refused(backend.latch_open(latch), Status::InvalidHandle);
    }
    // A latch that the driver refused takes no word.
    fake.control.fail("cuStreamWaitValue32_v2", 0, 2000, 801);
    for _ in 0..2000 {
        refused(backend.latch_create(0, early), Status::NotSupported);
    }
    assert!(backend.latch_create(0, early).is_ok());
    let old = Fake::with(Version::Cuda12, &[]);
    let error = refused(old.backend.latch_create(0, 0), Status::NotSupported);
    mentions(&error, &["host backend", "11.7"]);
}

#[test]
fn latches_work_on_when_their_counts_wrap() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let stream = backend.stream_create(0, false).expect("a stream");
    let latch = backend.latch_create(0, stream).expect("a latch");
    backend.latch_open(latch).expect("it is closed");
    assert_eq!(backend.stream_query(0, stream), Ok(true));
    let device = backend.device(0).expect("it is there");
    device.latches.count_from(u32::MAX - 1);
    for _ in 0..4 {
        let latch = backend.latch_create(0, stream).expect("a latch");
        assert_eq!(backend.stream_query(0, stream), Ok(false));
        backend.latch_open(latch).expect("it is closed");
        assert_eq!(backend.stream_query(0, stream), Ok(true));
    }
}

#[test]
fn a_latch_opens_while_another_waits_for_room_in_its_queue() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let stream = backend.stream_create(0, false).expect("a stream");
    let first = backend.latch_create(0, stream).expect("a latch");
    fake.control.set("full_queues", 1);
    let second = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| backend.latch_create(0, stream));
        while fake.control.calls("cuStreamWaitValue32_v2") == 1 {
            std::thread::yield_now();
        }
        backend.latch_open(first).expect("it is closed");
        waiter.join().expect("the thread ends")
    });
    let second = second.expect("there is room once the first is open");
    assert_eq!(backend.stream_query(0, stream), Ok(false));
    backend.latch_open(second).expect("it is closed");
    assert_eq!(backend.stream_query(0, stream), Ok(true));
}

#[test]
fn elapsed_time_needs_two_passed_timing_events() {
    for version in [Version::Cuda12, Version::Cuda13] {
        let fake = Fake::with(version, &[]);
        let backend = &fake.backend;
        let stream = backend.stream_create(0, true).expect("a stream");
        let start = backend.event_create(0, true).expect("an event");
        let end = backend.event_create(0, true).expect("an event");
        let plain = backend.event_create(0, false).expect("an event");
        let error = refused(
            backend.event_elapsed_ms(0, start, end),
            Status::InvalidEvent,
        );
        mentions(&error, &["start is event", "never recorded"]);
        for event in [start, end, plain] {
            backend
                .event_record(0, event, stream)
                .expect("they are ours");
        }
        assert_eq!(backend.event_elapsed_ms(0, start, end), Ok(0.5));
        let error = refused(
            backend.event_elapsed_ms(0, start, plain),
            Status::InvalidEvent,
        );
        mentions(&error, &["end is event", "timing"]);
        if let Version::Cuda13 = version {
            let latch = backend.latch_create(0, stream).expect("a latch");
            backend.event_record(0, end, stream).expect("they are ours");
            refused(backend.event_elapsed_ms(0, start, end), Status::NotReady);
            backend.latch_open(latch).expect("it is closed");
            assert_eq!(backend.event_elapsed_ms(0, start, end), Ok(1.5));
        }
    }
}

#[test]
fn an_event_of_another_device_is_refused_by_name() {
    let fake = Fake::new();
    let stream = fake.backend.stream_create(0, false).expect("a stream");
    let event = fake.backend.event_create(1, false).expect("an event");
    let error = refused(
        fake.backend.event_record(0, event, stream),
        Status::InvalidEvent,
    );
    mentions(&error, &["cuEventRecord", "400"]);
    for event in [0, 1, 2, usize::MAX] {
        refused(fake.backend.event_query(0, event), Status::InvalidEvent);
        refused(fake.backend.event_destroy(0, event), Status::InvalidEvent);
        refused(
            fake.backend.event_record(0, event, stream),
            Status::InvalidEvent,
        );
    }
}

#[test]
fn nobodys_capture_breaks() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let captured = backend.stream_create(0, false).expect("a stream");
    let stream = backend.stream_create(0, false).expect("a stream");
    let event = backend.event_create(0, false).expect("an event");
    fake.control.capture(captured, true);
    assert_eq!(backend.stream_is_capturing(0, captured), Ok(true));
    assert_eq!(backend.stream_is_capturing(0, stream), Ok(false));
    let capture = backend.stream_capture(0, captured).expect("it lives");
    assert!(capture.is_some());
    assert_eq!(backend.stream_capture(0, stream), Ok(None));
    assert_eq!(backend.stream_query(0, stream), Ok(true));
    assert_eq!(backend.stream_synchronize(0, stream, None), Ok(true));
    assert_eq!(backend.stream_synchronize(0, stream, AT_ONCE), Ok(true));
    assert_eq!(backend.event_query(0, event), Ok(true));
    assert_eq!(backend.event_synchronize(0, event, None), Ok(true));
    // The first pinned page, and a device's first use with all its loading.
    let latch = backend.latch_create(0, stream).expect("a latch");
    backend.latch_open(latch).expect("it is closed");
    backend.memory_allocate(1, 512).expect("memory");
    assert_eq!(
        fake.control.capture_mode(),
        0,
        "the thread's own mode is back"
    );
    // Questions about the capturing stream itself never reach the driver, not even who it is.
    refused(backend.stream_identify(captured), Status::Capturing);
    let error = refused(backend.stream_query(0, captured), Status::Capturing);
    mentions(&error, &[&format!("{captured:#x}")]);
    refused(
        backend.stream_synchronize(0, captured, None),
        Status::Capturing,
    );
    refused(
        backend.stream_synchronize(0, captured, SHORT),
        Status::Capturing,
    );
    assert_eq!(fake.control.get("broken"), 0);
    // Waits for a whole device do break it, as their descriptions say.
    refused(backend.device_synchronize(0, None), Status::Capturing);
    assert_eq!(fake.control.get("broken"), 1);
    assert_eq!(fake.control.get("events"), 1);
    refused(backend.device_synchronize(0, SHORT), Status::Capturing);
    assert_eq!(
        fake.control.get("events"),
        1,
        "the failed wait leaves no event"
    );
}

#[test]
fn the_legacy_stream_is_unusable_while_a_blocking_stream_captures() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let blocking = backend.stream_create(0, true).expect("a stream");
    fake.control.capture(blocking, true);
    for stream in [0, STREAM_LEGACY] {
        refused(backend.stream_is_capturing(0, stream), Status::Capturing);
        refused(backend.stream_capture(0, stream), Status::Capturing);
        refused(backend.stream_query(0, stream), Status::Capturing);
    }
    fake.control.capture(blocking, false);
    assert_eq!(backend.stream_query(0, 0), Ok(true));
    assert_eq!(fake.control.get("broken"), 0);
}

#[test]
fn an_old_driver_waits_for_a_device_without_a_timeout_only() {
    let fake = Fake::with(Version::Cuda12, &[]);
    assert_eq!(fake.backend.device_synchronize(0, None), Ok(true));
    let error = refused(
        fake.backend.device_synchronize(0, SHORT),
        Status::NotSupported,
    );
    mentions(&error, &["cuCtxRecordEvent", "12.5"]);
}
