//! The threads of a program: real ones, which take their steps one at a time, so that a run is the same each time.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread::JoinHandle;

use super::program::THREADS;

type Job = Box<dyn FnOnce() + Send>;

struct Worker {
    jobs: Sender<Job>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

/// Thread 0 is the caller's own.
#[derive(Default)]
pub struct Threads([Option<Worker>; THREADS as usize]);

/// Handles are pointers; whoever gets them from here uses them on one thread at a time.
struct Anywhere<T>(T);
// SAFETY: the runner waits for each job before it goes on.
unsafe impl<T> Send for Anywhere<T> {}

impl<T> Anywhere<T> {
    fn get(self) -> T {
        self.0
    }
}

impl Threads {
    pub fn runs(&self, thread: usize) -> bool {
        thread == 0 || self.0[thread].is_some()
    }

    pub fn begin(&mut self, thread: usize) {
        let (jobs, orders) = channel::<Job>();
        let (tell, done) = channel();
        let body = move || {
            for job in orders {
                job();
                let _ = tell.send(());
            }
        };
        let thread_of = std::thread::spawn(body);
        self.0[thread] = Some(Worker {
            jobs,
            done,
            thread: thread_of,
        });
    }

    /// Runs `job` on the thread and waits for it.
    pub fn on<R>(&self, thread: usize, job: impl FnOnce() -> R) -> R {
        let Some(worker) = &self.0[thread] else {
            return job();
        };
        let mut result = None;
        let place = Anywhere(&mut result);
        let job = Anywhere(job);
        let task: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
            let (place, job) = (place.get(), job.get());
            *place = Some(catch_unwind(AssertUnwindSafe(job)));
        });
        // SAFETY: what the task borrows outlives it, since its end is waited for here.
        let task: Job = unsafe { std::mem::transmute(task) };
        worker.jobs.send(task).expect("the thread runs");
        worker.done.recv().expect("the thread runs");
        match result.expect("the task has run") {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// The thread has ended, its destructors too, when this returns.
    pub fn end(&mut self, thread: usize) {
        if let Some(worker) = self.0[thread].take() {
            drop(worker.jobs);
            worker.thread.join().expect("the thread ends well");
        }
    }
}
