//! The legacy default stream, the threads' own ones, and the thread's current device.

use super::*;
use crate::backend::host::PRUNE_AT_LEAST;
use crate::backend::{STREAM_LEGACY, STREAM_PER_THREAD};

#[test]
fn the_legacy_stream_waits_for_blocking_streams_and_they_for_it() {
    let backend = backend();
    let blocking = backend.stream_create(0, true).unwrap();
    let other = backend.stream_create(0, true).unwrap();
    let free = backend.stream_create(0, false).unwrap();
    let log = Log::default();

    let latch = backend.latch_create(0, blocking).unwrap();
    log.add(&backend, blocking, 1);
    assert_held(&backend, STREAM_LEGACY);
    log.add(&backend, 0, 2);
    let event = recorded(&backend, STREAM_LEGACY);
    log.add(&backend, other, 3);
    log.add(&backend, STREAM_PER_THREAD, 3);
    assert_held(&backend, STREAM_LEGACY);
    assert_held(&backend, other);
    assert_held(&backend, STREAM_PER_THREAD);
    assert_eq!(backend.event_query(0, event), Ok(false));
    // A non-blocking stream and another device go their own way.
    log.add(&backend, free, 0);
    synchronize(&backend, free);
    let elsewhere = backend.stream_create(1, true).unwrap();
    backend.call(1, elsewhere, || {}).unwrap();
    backend.call(1, STREAM_LEGACY, || {}).unwrap();
    assert_eq!(backend.stream_synchronize(1, STREAM_LEGACY, None), Ok(true));

    backend.latch_open(latch).unwrap();
    assert_eq!(backend.event_synchronize(0, event, None), Ok(true));
    assert_eq!(log.get()[..3], [0, 1, 2]);
    synchronize(&backend, 0);
    assert_eq!(log.get(), [0, 1, 2, 3, 3]);
}

#[test]
fn the_legacy_stream_does_not_wait_for_or_hold_non_blocking_streams() {
    let backend = backend();
    let free = backend.stream_create(0, false).unwrap();
    let latch = backend.latch_create(0, free).unwrap();
    backend.call(0, STREAM_LEGACY, || {}).unwrap();
    synchronize(&backend, STREAM_LEGACY);
    assert_held(&backend, free);
    backend.latch_open(latch).unwrap();
    let latch = backend.latch_create(0, STREAM_LEGACY).unwrap();
    backend.call(0, free, || {}).unwrap();
    synchronize(&backend, free);
    assert_held(&backend, 0);
    backend.latch_open(latch).unwrap();
    synchronize(&backend, 0);
}

#[test]
fn the_legacy_stream_waits_for_streams_that_were_idle_for_long() {
    // So many that idle ones are taken off the list of whom to wait for.
    let backend = backend();
    let streams: Vec<_> = (0..200)
        .map(|_| backend.stream_create(0, true).unwrap())
        .collect();
    for stream in &streams {
        backend.call(0, *stream, || {}).unwrap();
        synchronize(&backend, *stream);
    }
    for stream in [streams[0], streams[199]] {
        let latch = backend.latch_create(0, stream).unwrap();
        assert_held(&backend, STREAM_LEGACY);
        backend.call(0, STREAM_LEGACY, || {}).unwrap();
        assert_held(&backend, STREAM_LEGACY);
        backend.latch_open(latch).unwrap();
        synchronize(&backend, STREAM_LEGACY);
    }
}

#[test]
fn each_thread_has_its_own_default_stream_and_its_end_loses_no_work() {
    let backend = backend();
    let log = Log::default();
    let mine = backend.stream_identify(STREAM_PER_THREAD).unwrap();
    let held = backend.latch_create(0, STREAM_PER_THREAD).unwrap();
    let (theirs, latch) = thread::scope(|scope| {
        let run = || {
            log.add(&backend, STREAM_PER_THREAD, 1);
            synchronize(&backend, STREAM_PER_THREAD);
            let latch = backend.latch_create(0, STREAM_PER_THREAD).unwrap();
            log.add(&backend, STREAM_PER_THREAD, 2);
            (backend.stream_identify(STREAM_PER_THREAD).unwrap(), latch)
        };
        scope.spawn(run).join().unwrap()
    });
    assert_ne!(mine.id, theirs.id);
    assert_eq!(backend.stream_identify(STREAM_PER_THREAD), Ok(mine));
    backend.latch_open(held).unwrap();
    synchronize(&backend, STREAM_PER_THREAD);
    // The ended thread's work is part of the device's and of what the legacy stream waits for.
    assert_eq!(backend.device_synchronize(0, NOW), Ok(false));
    assert_held(&backend, STREAM_LEGACY);
    backend.latch_open(latch).unwrap();
    assert_eq!(backend.device_synchronize(0, None), Ok(true));
    assert_eq!(log.get(), [1, 2]);
}

#[test]
fn ended_threads_leave_nothing_behind() {
    let backend = backend();
    let mine = backend.stream_identify(STREAM_PER_THREAD).unwrap();
    backend.call(0, STREAM_PER_THREAD, || {}).unwrap();
    synchronize(&backend, STREAM_PER_THREAD);
    for _ in 0..1000 {
        let run = || {
            backend.call(0, STREAM_PER_THREAD, || {}).unwrap();
            synchronize(&backend, STREAM_PER_THREAD);
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap());
    }
    let kept = backend.per_thread.len();
    assert!(kept <= PRUNE_AT_LEAST, "{kept} streams of 1001 threads");
    // Forgotten or not, the stream of a thread that lives is the same one.
    assert_eq!(backend.stream_identify(STREAM_PER_THREAD), Ok(mine));
    backend.call(0, STREAM_PER_THREAD, || {}).unwrap();
    synchronize(&backend, STREAM_PER_THREAD);
}

#[test]
fn identities_follow_the_threads_current_device() {
    let backend = backend();
    let legacy = backend.stream_identify(0).unwrap();
    assert_eq!(backend.stream_identify(STREAM_LEGACY), Ok(legacy));
    assert_eq!((legacy.device, backend.current_device()), (0, Ok(0)));
    backend.set_current_device(1).unwrap();
    let other = backend.stream_identify(0).unwrap();
    assert_eq!(other.device, 1);
    assert_ne!(other.id, legacy.id);
    assert_ne!(
        backend.stream_identify(STREAM_PER_THREAD).unwrap().id,
        other.id
    );
    thread::scope(|scope| {
        let run = || (backend.current_device(), backend.stream_identify(0));
        assert_eq!(scope.spawn(run).join().unwrap(), (Ok(0), Ok(legacy)));
    });
    assert_eq!(
        status(backend.set_current_device(2)),
        Some(Status::InvalidDevice)
    );
    assert_eq!(backend.current_device(), Ok(1));
    let created = backend.stream_create(0, false).unwrap();
    let identity = backend.stream_identify(created).unwrap();
    assert_eq!(identity.device, 0);
    assert_eq!(backend.stream_identify(created), Ok(identity));
    let destroy = || backend.stream_destroy(0, created).unwrap();
    thread::scope(|scope| scope.spawn(destroy).join().unwrap());
    let gone = status(backend.stream_identify(created));
    assert_eq!(gone, Some(Status::InvalidStream));
    let next = backend.stream_create(0, false).unwrap();
    assert_ne!(backend.stream_identify(next).unwrap().id, identity.id);
    // Another backend's choice is its own.
    assert_eq!(HostBackend::new(1, MIB).unwrap().current_device(), Ok(0));
}
