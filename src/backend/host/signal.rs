//! One-shot completions: what an event record, a tail or a latch sets, and streams and host threads wait for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use super::stream::Stream;

/// Set once, never cleared.
///
/// Setting has two halves, so that a stream can do the first under its queue's lock and a query never disagrees with a
/// wait: `mark` makes it visible, `notify` wakes those who wait. `notify` always follows `mark`.
pub struct Signal {
    done: AtomicBool,
    stamp: OnceLock<Instant>,
    parked: Mutex<SmallVec<[Arc<Stream>; 2]>>,
    changed: Condvar,
    /// Whose record sets it; nobody's where it is a latch. A stream with something queued lives, so it is there to be
    /// found for as long as that matters.
    stream: Weak<Stream>,
}

impl Signal {
    /// Set by whoever has it.
    pub fn new() -> Arc<Signal> {
        Signal::with(Weak::new())
    }

    /// Set by a record on this stream.
    pub fn of(stream: &Arc<Stream>) -> Arc<Signal> {
        Signal::with(Arc::downgrade(stream))
    }

    /// Whose record sets it.
    pub fn stream(&self) -> Option<Arc<Stream>> {
        self.stream.upgrade()
    }

    fn with(stream: Weak<Stream>) -> Arc<Signal> {
        Arc::new(Signal {
            done: AtomicBool::new(false),
            stamp: OnceLock::new(),
            parked: Mutex::new(SmallVec::new()),
            changed: Condvar::new(),
            stream,
        })
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// When it was marked, where that was asked for.
    pub fn stamp(&self) -> Option<Instant> {
        self.stamp.get().copied()
    }

    pub fn mark(&self, stamp: bool) {
        if stamp {
            self.stamp.get_or_init(Instant::now);
        }
        self.done.store(true, Ordering::Release);
    }

    /// Hands the parked streams to their executors and wakes the waiting threads. The caller holds no queue's lock.
    pub fn notify(&self) {
        let parked = {
            // The lock is what keeps a waiter from missing a mark made between its check and its wait.
            let mut parked = self.parked.lock();
            self.changed.notify_all();
            std::mem::take(&mut *parked)
        };
        for stream in parked {
            stream.resume();
        }
    }

    /// Leaves the stream here until `notify`; `false`, and nothing left, where the signal is set already.
    pub fn park(&self, stream: &Arc<Stream>) -> bool {
        let mut parked = self.parked.lock();
        if self.is_done() {
            return false;
        }
        parked.push(Arc::clone(stream));
        true
    }

    /// Waits on the calling thread; `false` when the deadline came first.
    fn wait(&self, deadline: Option<Instant>) -> bool {
        if self.is_done() {
            return true;
        }
        let mut parked = self.parked.lock();
        while !self.is_done() {
            match deadline {
                None => self.changed.wait(&mut parked),
                Some(deadline) => {
                    if self.changed.wait_until(&mut parked, deadline).timed_out() {
                        return self.is_done();
                    }
                }
            }
        }
        true
    }
}

/// Waits for all of them; `false` when the timeout passed first. No timeout, or one past the clock's end: until done.
pub fn wait_for_all(signals: &[Arc<Signal>], timeout: Option<Duration>) -> bool {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    signals.iter().all(|signal| signal.wait(deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_its_deadline_and_at_the_mark() {
        let signals = [Signal::new(), Signal::new()];
        assert!(wait_for_all(&[], Some(Duration::ZERO)));
        signals[0].mark(false);
        signals[0].notify();
        assert!(!wait_for_all(&signals, Some(Duration::ZERO)));
        assert!(!wait_for_all(&signals, Some(Duration::from_millis(1))));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| wait_for_all(&signals, Some(Duration::MAX)));
            let other = scope.spawn(|| wait_for_all(&signals, None));
            signals[1].mark(false);
            signals[1].notify();
            assert!(waiter.join().unwrap() && other.join().unwrap());
        });
        assert!(wait_for_all(&signals, Some(Duration::ZERO)));
    }

    #[test]
    fn a_stamp_is_there_only_where_asked_for() {
        let (plain, stamped) = (Signal::new(), Signal::new());
        let before = Instant::now();
        plain.mark(false);
        stamped.mark(true);
        assert_eq!(plain.stamp(), None);
        let stamp = stamped.stamp().unwrap();
        assert!(before <= stamp && stamp <= Instant::now());
    }
}
