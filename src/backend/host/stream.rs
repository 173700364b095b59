//! A stream's queue: what is queued, in which order it may run, and when it has to stand aside. Knows of no threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::device::Device;
use super::signal::{wait_for_all, Signal};
use super::stepped::Stepped;
use super::work::Work;
use crate::backend::StreamIdentity;
use crate::error::Result;

/// Who runs queued work. *threads* (`threads.rs`) runs it behind the caller as soon as it may; *stepped* (`stepped.rs`)
/// keeps the ready streams in a list and calls `Stream::step` on whichever a test picks.
pub trait Executor: Send + Sync {
    /// Called before anything is queued; an error means that nothing could run it.
    fn prepare(&self) -> Result<()>;
    /// The stream has become runnable and belongs to the executor until `step` says `Blocked` or `Empty`. Called with
    /// locks held: it must not step the stream itself.
    fn ready(&self, stream: Arc<Stream>);
    /// Waits on the calling thread, as `signal::wait_for_all` says.
    fn wait_for_all(&self, signals: &[Arc<Signal>], timeout: Option<Duration>) -> bool {
        wait_for_all(signals, timeout)
    }
    /// Where this is the stepped executor.
    fn stepped(&self) -> Option<&Stepped> {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// The device's legacy default stream.
    Legacy,
    /// Orders with the legacy stream.
    Blocking,
    NonBlocking,
}

pub enum Item {
    Work(Work),
    /// Sets the signal, and its time where `stamp`.
    Record {
        signal: Arc<Signal>,
        stamp: bool,
    },
    Wait(Arc<Signal>),
}

/// A stream's oldest item, as one sees it without taking it.
pub enum Head {
    Nothing,
    Work,
    Record,
    Wait(Arc<Signal>),
}

/// What became of a stream's oldest item.
pub enum Step {
    /// This is to be run now, then `work_done` called, then the next step taken.
    Run(Work),
    /// A record or a wait is behind us.
    Passed,
    /// The head waits for a signal, which will make the stream ready again.
    Blocked,
    /// Nothing is queued. The next push makes the stream ready again.
    Empty,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// In nobody's hands: the queue is empty.
    Empty,
    /// In the executor's hands.
    Ready,
    /// In the hands of the signal at the queue's head.
    Parked,
}

struct Queue {
    items: VecDeque<Item>,
    phase: Phase,
    /// Work was given out by `step` and is not done.
    working: bool,
}

/// A queue longer than this gives its memory back once empty.
const KEPT_ITEMS: usize = 256;

pub struct Stream {
    pub id: u64,
    pub kind: StreamKind,
    pub device: Arc<Device>,
    queue: Mutex<Queue>,
    /// Whether the device's legacy order lists it, and how far it has waited for the legacy stream; kept by `LegacyOrder`
    /// under its lock.
    pub(super) listed: AtomicBool,
    pub(super) legacy_position: AtomicU64,
}

impl Stream {
    pub fn new(id: u64, kind: StreamKind, device: Arc<Device>) -> Arc<Stream> {
        Arc::new(Stream {
            id,
            kind,
            device,
            queue: Mutex::new(Queue {
                items: VecDeque::new(),
                phase: Phase::Empty,
                working: false,
            }),
            listed: AtomicBool::new(false),
            legacy_position: AtomicU64::new(0),
        })
    }

    pub fn identity(&self) -> StreamIdentity {
        StreamIdentity {
            id: self.id,
            device: self.device.ordinal,
        }
    }

    /// Queues an item at the end.
    pub fn push(self: &Arc<Self>, item: Item) {
        let mut queue = self.queue.lock();
        queue.items.push_back(item);
        let was_empty = queue.phase == Phase::Empty;
        if was_empty {
            queue.phase = Phase::Ready;
        }
        drop(queue);
        if was_empty {
            self.device.executor.ready(Arc::clone(self));
        }
    }

    /// A signal that is set once everything queued so far is done; `None` where it is done already.
    pub fn tail(self: &Arc<Self>) -> Option<Arc<Signal>> {
        let mut queue = self.queue.lock();
        if queue.items.is_empty() && !queue.working {
            return None;
        }
        if let Some(Item::Record { signal, .. }) = queue.items.back() {
            return Some(Arc::clone(signal));
        }
        // Not empty, so somebody has the stream in hand and will come to this item.
        let signal = Signal::of(self);
        queue.items.push_back(Item::Record {
            signal: Arc::clone(&signal),
            stamp: false,
        });
        Some(signal)
    }

    /// Whether everything queued so far is done.
    pub fn is_idle(&self) -> bool {
        let queue = self.queue.lock();
        queue.items.is_empty() && !queue.working
    }

    /// What `step` would take next.
    pub fn head(&self) -> Head {
        match self.queue.lock().items.front() {
            None => Head::Nothing,
            Some(Item::Work(_)) => Head::Work,
            Some(Item::Record { .. }) => Head::Record,
            Some(Item::Wait(signal)) => Head::Wait(Arc::clone(signal)),
        }
    }

    /// Takes the oldest item. Only who has the stream in hand calls this, and not between `Run` and `work_done`.
    pub fn step(self: &Arc<Self>) -> Step {
        let mut queue = self.queue.lock();
        debug_assert!(queue.phase == Phase::Ready && !queue.working);
        if let Some(Item::Wait(signal)) = queue.items.front() {
            if signal.park(self) {
                queue.phase = Phase::Parked;
                return Step::Blocked;
            }
        }
        match queue.items.pop_front() {
            Some(Item::Work(work)) => {
                queue.working = true;
                Step::Run(work)
            }
            Some(Item::Record { signal, stamp }) => {
                // Under the lock: the stream is idle from exactly the moment that its last record is done.
                signal.mark(stamp);
                drop(queue);
                signal.notify();
                Step::Passed
            }
            Some(Item::Wait(_)) => Step::Passed,
            None => {
                queue.phase = Phase::Empty;
                if queue.items.capacity() > KEPT_ITEMS {
                    queue.items = VecDeque::new();
                }
                Step::Empty
            }
        }
    }

    /// The work that `step` gave out has run.
    pub fn work_done(&self) {
        self.queue.lock().working = false;
    }

    /// The signal that the stream was parked at is set.
    pub fn resume(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        debug_assert!(queue.phase == Phase::Parked);
        queue.phase = Phase::Ready;
        drop(queue);
        self.device.executor.ready(Arc::clone(self));
    }
}
