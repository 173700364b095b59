//! The *stepped* executor: queued work runs only when somebody says so, a piece at a time, on the thread that says it.
//!
//! What may run now is the oldest item of each stream that waits for nothing; a caller picks one by its place in that list,
//! so that a test can walk through every order that the waits allow. A wait of the host runs what it needs by itself and
//! nothing else; a query runs nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::signal::{wait_for_all, Signal};
use super::stream::{Executor, Head, Step, Stream};
use super::threads::with_default_float_mode;
use super::work::Work;
use crate::error::{Result, Status};
use crate::fail;

pub struct Stepped {
    /// Streams in this executor's hands, by the time at which they came. Taken with other locks held, and held briefly.
    ready: Mutex<Vec<Arc<Stream>>>,
    /// Held while something runs: one item at a time.
    turn: Mutex<()>,
}

/// What one step would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A copy, a fill, a launch or a call.
    Work,
    /// The completion of an event or of what the host waits for.
    Record,
}

impl Stepped {
    pub fn new() -> Arc<Stepped> {
        Arc::new(Stepped {
            ready: Mutex::new(Vec::new()),
            turn: Mutex::new(()),
        })
    }

    /// The streams whose oldest item may run, and what it is.
    pub fn runnable(&self) -> Vec<(Arc<Stream>, StepKind)> {
        let _turn = self.turn.lock();
        self.settle()
    }

    /// Runs the item at this place of `runnable`.
    pub fn run(&self, index: u64) -> Result<()> {
        let _turn = self.turn.lock();
        let runnable = self.settle();
        let chosen = usize::try_from(index)
            .ok()
            .and_then(|index| runnable.get(index));
        let Some((stream, _)) = chosen else {
            fail!(
                Status::InvalidIndex,
                "index is {index}, expected less than {}, which is how many items may run",
                runnable.len()
            );
        };
        step(stream);
        self.settle();
        Ok(())
    }

    /// Runs the oldest item that may run, again and again until none may; how many.
    pub fn run_all(&self) -> u64 {
        let mut steps = 0;
        let _turn = self.turn.lock();
        while let Some((stream, _)) = self.settle().first() {
            step(stream);
            steps += 1;
        }
        steps
    }

    /// Runs what these signals need, as far as closed latches let it; how many items, and the latch that is in the way.
    pub fn run_until(&self, signals: &[Arc<Signal>]) -> (u64, Option<Arc<Signal>>) {
        let mut steps = 0;
        for signal in signals {
            loop {
                let _turn = self.turn.lock();
                self.settle();
                match needed(signal) {
                    Need::Nothing => break,
                    Need::Look => {}
                    Need::Step(stream) => {
                        step(&stream);
                        steps += 1;
                    }
                    Need::Latch(latch) => return (steps, Some(latch)),
                }
            }
        }
        (steps, None)
    }

    /// Passes what nobody can see: waits whose signal is set, and the ends of queues. What is left in the list may run.
    fn settle(&self) -> Vec<(Arc<Stream>, StepKind)> {
        let mut runnable = Vec::new();
        let mut kept = 0;
        // A stream that resumes another adds it at the end of the list.
        loop {
            let Some(stream) = self.ready.lock().get(kept).map(Arc::clone) else {
                return runnable;
            };
            let kind = loop {
                match stream.head() {
                    Head::Work => break Some(StepKind::Work),
                    Head::Record => break Some(StepKind::Record),
                    Head::Wait(_) | Head::Nothing => {
                        if matches!(stream.step(), Step::Blocked | Step::Empty) {
                            break None;
                        }
                    }
                }
            };
            match kind {
                Some(kind) => {
                    runnable.push((stream, kind));
                    kept += 1;
                }
                None => {
                    self.ready.lock().remove(kept);
                }
            }
        }
    }
}

enum Need {
    Nothing,
    /// Another thread is opening a latch at this moment.
    Look,
    Step(Arc<Stream>),
    Latch(Arc<Signal>),
}

/// What has to happen next for the signal to be set.
fn needed(wanted: &Arc<Signal>) -> Need {
    let mut signal = Arc::clone(wanted);
    while !signal.is_done() {
        let Some(stream) = signal.stream() else {
            return Need::Latch(signal);
        };
        match stream.head() {
            Head::Work | Head::Record => return Need::Step(stream),
            Head::Wait(next) => signal = next,
            Head::Nothing => break,
        }
    }
    if wanted.is_done() {
        return Need::Nothing;
    }
    Need::Look
}

fn step(stream: &Arc<Stream>) {
    if let Step::Run(work) = stream.step() {
        with_default_float_mode(|| match work {
            Work::Items(work) => stream.device.run(|| work.run()),
            Work::Call(call) => stream.device.run(call),
        });
        stream.work_done();
    }
}

impl Executor for Stepped {
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn ready(&self, stream: Arc<Stream>) {
        self.ready.lock().push(stream);
    }

    fn wait_for_all(&self, signals: &[Arc<Signal>], timeout: Option<Duration>) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // A wait that may take no time is a query.
        while timeout != Some(Duration::ZERO) {
            let (_, Some(latch)) = self.run_until(signals) else {
                break;
            };
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if !wait_for_all(&[latch], left) {
                return false;
            }
        }
        signals.iter().all(|signal| signal.is_done())
    }

    fn stepped(&self) -> Option<&Stepped> {
        Some(self)
    }
}

/// One item of the list that may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runnable {
    pub stream: u64,
    pub device: i32,
    pub kind: StepKind,
}

impl super::HostBackend {
    fn stepped(&self) -> Result<&Stepped> {
        match self.executor.stepped() {
            Some(stepped) => Ok(stepped),
            None => fail!(
                Status::NotSupported,
                "queued work runs by itself; ask for steps by {}=stepped or cvc_backend_instrument before anything else",
                super::environment::EXECUTOR
            ),
        }
    }
}

impl crate::backend::Stepping for super::HostBackend {
    fn runnable(&self) -> Result<Vec<Runnable>> {
        let runnable = self.stepped()?.runnable();
        let each = runnable.into_iter().map(|(stream, kind)| Runnable {
            stream: stream.id,
            device: stream.device.ordinal,
            kind,
        });
        Ok(each.collect())
    }

    fn run_one(&self, index: u64) -> Result<()> {
        self.stepped()?.run(index)
    }

    fn run_stream(&self, device: i32, stream: crate::backend::StreamHandle) -> Result<u64> {
        let stepped = self.stepped()?;
        let slot = self.working_slot(device)?;
        let stream = self.stream(slot, stream)?;
        let tails: SmallVec<[Arc<Signal>; 1]> = slot.order.tails(&stream);
        Ok(stepped.run_until(&tails).0)
    }

    fn run_all(&self) -> Result<u64> {
        Ok(self.stepped()?.run_all())
    }
}
