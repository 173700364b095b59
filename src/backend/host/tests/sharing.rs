//! Handles and memory: what is refused, and many threads at once.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::backend::{BackendKind, STREAM_LEGACY};

#[test]
fn handles_that_name_nothing_are_refused() {
    let backend = backend();
    let stream = backend.stream_create(0, false).unwrap();
    let event = backend.event_create(0, false).unwrap();
    let destroyed = backend.event_create(0, false).unwrap();
    backend.event_destroy(0, destroyed).unwrap();
    for bad in [3, 0xdead_beef, usize::MAX, event] {
        assert_eq!(
            status(backend.stream_identify(bad)),
            Some(Status::InvalidStream)
        );
        assert_eq!(
            status(backend.stream_query(0, bad)),
            Some(Status::InvalidStream)
        );
        assert_eq!(
            status(backend.stream_destroy(0, bad)),
            Some(Status::InvalidStream)
        );
        assert_eq!(
            status(backend.stream_synchronize(0, bad, None)),
            Some(Status::InvalidStream)
        );
        assert_eq!(
            status(backend.stream_wait_event(0, bad, event)),
            Some(Status::InvalidStream)
        );
        assert_eq!(
            status(backend.event_record(0, event, bad)),
            Some(Status::InvalidStream)
        );
        assert_eq!(
            status(backend.call(0, bad, || {})),
            Some(Status::InvalidStream)
        );
        assert_eq!(
            status(backend.stream_is_capturing(0, bad)),
            Some(Status::InvalidStream)
        );
    }
    for bad in [0, 1, 2, destroyed, stream, usize::MAX] {
        assert_eq!(
            status(backend.event_query(0, bad)),
            Some(Status::InvalidEvent)
        );
        assert_eq!(
            status(backend.event_destroy(0, bad)),
            Some(Status::InvalidEvent)
        );
        assert_eq!(
            status(backend.event_record(0, bad, stream)),
            Some(Status::InvalidEvent)
        );
        assert_eq!(
            status(backend.event_synchronize(0, bad, None)),
            Some(Status::InvalidEvent)
        );
        assert_eq!(
            status(backend.stream_wait_event(0, stream, bad)),
            Some(Status::InvalidEvent)
        );
        assert_eq!(
            status(backend.event_elapsed_ms(0, bad, bad)),
            Some(Status::InvalidEvent)
        );
    }
    for default in [0, 1, 2] {
        assert_eq!(
            status(backend.stream_destroy(0, default)),
            Some(Status::InvalidStream)
        );
        assert_eq!(backend.stream_is_capturing(0, default), Ok(false));
    }
    let message = backend.stream_query(0, 0xdead_beef).unwrap_err().message;
    assert!(message.contains("0xdeadbeef"), "{message}");
    let message = backend.event_query(0, 0xdead_beef).unwrap_err().message;
    assert!(message.contains("0xdeadbeef"), "{message}");
    let mismatch = Some(Status::DeviceMismatch);
    assert_eq!(status(backend.stream_query(1, stream)), mismatch);
    assert_eq!(status(backend.stream_destroy(1, stream)), mismatch);
    assert_eq!(status(backend.event_query(1, event)), mismatch);
    assert_eq!(status(backend.event_destroy(1, event)), mismatch);
    for device in [-1, 2, i32::MAX] {
        let invalid = Some(Status::InvalidDevice);
        assert_eq!(status(backend.stream_create(device, false)), invalid);
        assert_eq!(status(backend.memory_allocate(device, 512)), invalid);
        assert_eq!(status(backend.device_info(device)), invalid);
    }
    assert_eq!(backend.event_query(0, event), Ok(true));
    assert_eq!(backend.stream_query(0, stream), Ok(true));
    for devices in [0, 65, -1] {
        assert_eq!(
            status(HostBackend::new(devices, MIB)),
            Some(Status::InvalidValue)
        );
    }
}

#[test]
fn memory_is_the_devices_own() {
    let backend: Box<dyn Backend> = Box::new(backend());
    assert_eq!(backend.kind(), BackendKind::Host);
    assert_eq!(backend.device_count(), 2);
    assert_eq!(backend.device_info(1).unwrap().total_memory, 64 * MIB);
    let pointer = backend.memory_allocate(0, 64 * MIB).unwrap();
    assert_eq!(pointer % 512, 0);
    assert_eq!(backend.memory_free_bytes(0), Ok(0));
    assert_eq!(backend.memory_free_bytes(1), Ok(64 * MIB));
    assert_eq!(
        status(backend.memory_allocate(0, 512)),
        Some(Status::OutOfMemory)
    );
    let wrong = backend.memory_free(1, pointer, 64 * MIB);
    assert_eq!(status(wrong), Some(Status::InvalidValue));
    let other = backend.memory_allocate(1, 512).unwrap();
    assert_eq!(backend.pointer_device(pointer + 64 * MIB - 1), Ok(Some(0)));
    assert_eq!(backend.pointer_device(other), Ok(Some(1)));
    let own = &pointer as *const u64 as u64;
    assert_eq!(backend.pointer_device(own), Ok(None));
    let null = status(backend.pointer_device(0));
    assert_eq!(null, Some(Status::InvalidArgument));
    backend.memory_free(1, other, 512).unwrap();
    backend.memory_free(0, pointer, 64 * MIB).unwrap();
    assert_eq!(backend.memory_free_bytes(0), Ok(64 * MIB));
}

/// A number that only its stream's work touches: a plain one, so that a race is one.
struct StreamsOwn(UnsafeCell<u64>);

// SAFETY: the test below reaches it from one stream's work alone, and after that from the thread that waited for it.
unsafe impl Sync for StreamsOwn {}

#[test]
fn many_threads_share_streams_events_and_memory() {
    const THREADS: u64 = 8;
    const STEPS: u64 = 1500;
    let backend = HostBackend::new(1, 64 * MIB).unwrap();
    let streams: Vec<_> = (0..6)
        .map(|i| backend.stream_create(0, i < 3).unwrap())
        .collect();
    let events: Vec<_> = (0..4)
        .map(|_| backend.event_create(0, true).unwrap())
        .collect();
    let numbers: Vec<_> = (0..streams.len() + 1)
        .map(|_| Arc::new(StreamsOwn(UnsafeCell::new(0))))
        .collect();
    let queued = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (backend, streams, events, numbers) = (&backend, &streams, &events, &numbers);
            let queued = &queued;
            scope.spawn(move || {
                let mut random = thread * 977 + 1;
                let mut live = Vec::new();
                for _ in 0..STEPS {
                    random = random
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695);
                    let choice = (random >> 33) as usize;
                    let index = choice / 16 % (streams.len() + 1);
                    let stream = streams.get(index).copied().unwrap_or(STREAM_LEGACY);
                    let event = events[choice / 128 % events.len()];
                    match choice % 12 {
                        0..=4 => {
                            let number = Arc::clone(&numbers[index]);
                            // SAFETY: see `StreamsOwn`.
                            let call = move || unsafe { *number.0.get() += 1 };
                            backend.call(0, stream, call).unwrap();
                            queued.fetch_add(1, Ordering::Relaxed);
                        }
                        5 => backend.event_record(0, event, stream).unwrap(),
                        6 => backend.stream_wait_event(0, stream, event).unwrap(),
                        7 => assert!(backend.event_synchronize(0, event, None).unwrap()),
                        8 => assert!(backend.stream_synchronize(0, stream, None).unwrap()),
                        9 => {
                            let own = backend.stream_create(0, choice & 64 == 0).unwrap();
                            backend.stream_wait_event(0, own, event).unwrap();
                            let latch = backend.latch_create(0, own).unwrap();
                            backend.stream_destroy(0, own).unwrap();
                            backend.latch_open(latch).unwrap();
                        }
                        10 => {
                            let bytes = (choice as u64 % 64 + 1) * 512;
                            live.push((backend.memory_allocate(0, bytes).unwrap(), bytes));
                        }
                        _ => {
                            if let Some((pointer, bytes)) = live.pop() {
                                backend.memory_free(0, pointer, bytes).unwrap();
                            }
                        }
                    }
                }
                for (pointer, bytes) in live {
                    backend.memory_free(0, pointer, bytes).unwrap();
                }
            });
        }
    });
    assert_eq!(backend.device_synchronize(0, None), Ok(true));
    // SAFETY: the work that touches them is done.
    let total: u64 = numbers
        .iter()
        .map(|number| unsafe { *number.0.get() })
        .sum();
    assert_eq!(total, queued.load(Ordering::Relaxed));
    assert_eq!(backend.memory_free_bytes(0), Ok(64 * MIB));
    assert_eq!(backend.streams.len(), streams.len());
    assert_eq!(backend.latches.len(), 0);
}
