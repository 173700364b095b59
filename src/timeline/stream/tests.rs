//! What one stream keeps: no more than is open.

use super::*;
use crate::backend::EventHandle;
use crate::timeline::{self, AccessKind};

fn stream() -> &'static Stream {
    let handle = timeline::create(0, false).expect("the host backend makes streams");
    timeline::resolve(handle, 0).expect("a created stream is known")
}

/// Holds what is queued on the stream from now on.
fn hold(stream: &Stream) -> u64 {
    let backend = backend::current().expect("the host backend starts");
    let latch = backend.latch_create(0, stream.handle());
    latch.expect("the stream takes latches")
}

fn let_go(latch: u64) {
    let backend = backend::current().expect("the host backend starts");
    backend.latch_open(latch).expect("it is closed");
}

fn synchronize(stream: &Stream) {
    assert_eq!(stream.synchronize(Deadline::NEVER), Ok(true));
}

fn latest(stream: &'static Stream) -> Access {
    Access {
        stream,
        sequence: stream.last_submitted(),
        kind: AccessKind::Write,
    }
}

fn records(stream: &Stream) -> Vec<EventHandle> {
    let inner = stream.inner.lock();
    inner.records.iter().map(|record| record.event).collect()
}

fn waits(stream: &Stream) -> usize {
    stream.inner.lock().waits.len()
}

/// Waits for work that is over are forgotten, however many others stay.
#[test]
fn waits_for_what_is_done_make_room() {
    let waiting = stream();
    let busy: Vec<&'static Stream> = (0..40).map(|_| stream()).collect();
    let latches: Vec<u64> = busy.iter().map(|stream| hold(stream)).collect();
    for &other in &busy {
        other.submit().1.expect("nothing fails");
        waiting.wait_for(&latest(other)).expect("nothing fails");
    }
    assert_eq!(waits(waiting), busy.len());
    for _ in 0..100 {
        let passing = stream();
        passing.submit().1.expect("nothing fails");
        waiting.wait_for(&latest(passing)).expect("nothing fails");
        synchronize(passing);
    }
    assert!(waits(waiting) <= busy.len() + 1, "{}", waits(waiting));
    for &other in &busy {
        assert!(latest(other).is_ordered_on(waiting));
    }
    latches.into_iter().for_each(let_go);
}

/// Of a stream with work that goes on, one event is enough to see how far it has come.
#[test]
fn a_poll_adds_no_event_while_one_is_open() {
    let stream = stream();
    let latch = hold(stream);
    stream.submit().1.expect("nothing fails");
    assert!(stream.poll());
    let first = records(stream);
    assert_eq!(first.len(), 1);
    for _ in 0..3 {
        stream.submit().1.expect("nothing fails");
        assert!(stream.poll());
        assert_eq!(records(stream), first);
    }
    let_go(latch);
    synchronize(stream);
    assert!(records(stream).is_empty());
}

#[test]
fn a_wait_of_the_host_leaves_no_event_that_it_has_passed() {
    let stream = stream();
    let latch = hold(stream);
    let (first, _) = stream.submit();
    assert!(stream.poll());
    let (second, _) = stream.submit();
    let at_once = stream.wait_on_host(second, Deadline::after_ns(0));
    assert_eq!(at_once, Ok(false));
    assert_eq!(records(stream).len(), 2);
    let_go(latch);
    assert_eq!(stream.wait_on_host(first, Deadline::NEVER), Ok(true));
    assert_eq!(records(stream).len(), 1);
    assert_eq!(stream.wait_on_host(second, Deadline::NEVER), Ok(true));
    assert!(records(stream).is_empty());
}

/// Marks of work that is over are forgotten, also where nobody polls.
#[test]
fn marks_that_are_passed_make_room() {
    let stream = stream();
    let backend = backend::current().expect("the host backend starts");
    let latch = hold(stream);
    for _ in 0..20 {
        stream.mark().expect("nothing fails");
    }
    assert!(records(stream).len() >= 20, "what is open stays");
    let_go(latch);
    for round in 0..100 {
        stream.mark().expect("nothing fails");
        // Done, and not seen by the stream itself.
        let done = backend.stream_synchronize(0, stream.handle(), None);
        assert_eq!(done, Ok(true));
        assert!(round < 1 || records(stream).len() <= MARKS_BEFORE_LOOK + 1);
    }
}

/// A stream for each piece of work does not fill the memory up: slots are used again once their work is over.
#[test]
fn slots_of_streams_that_are_over_are_used_again() {
    let mut slots: Vec<*const Stream> = Vec::new();
    for _ in 0..100 {
        let passing = stream();
        passing.submit().1.expect("nothing fails");
        synchronize(passing);
        timeline::destroy(passing.handle()).expect("it lives");
        if !slots.contains(&std::ptr::from_ref(passing)) {
            slots.push(passing);
        }
    }
    // Streams of other tests run beside this one.
    assert!(slots.len() < 50, "{} slots", slots.len());
}
