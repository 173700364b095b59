//! The *threads* executor: one pool of threads for the process that runs whatever streams are ready, oldest first.
//!
//! A thread never waits for anything but a next task: a stream that has to wait is parked at its signal, and a launch
//! shared among threads is carried on by whoever finishes it. So any number of streams needs no more threads than cores.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::stream::{Executor, Step, Stream};
use super::work::{SharedWork, Work};
use crate::error::{Error, Result, Status};

/// After this many steps a stream goes to the end of the line.
const STEPS_PER_TURN: usize = 64;

enum Task {
    Stream(Arc<Stream>),
    Share(Arc<SharedWork>),
}

pub struct Threads {
    pool: Arc<Pool>,
    wanted: usize,
    starting: Mutex<()>,
}

struct Pool {
    tasks: Mutex<VecDeque<Task>>,
    wake: Condvar,
    /// 0 until started.
    workers: AtomicUsize,
}

impl Threads {
    /// The pool that all backends of the process share: a thread a core, started at the first queued work.
    pub fn global() -> Arc<Threads> {
        static GLOBAL: OnceLock<Arc<Threads>> = OnceLock::new();
        let start = || Threads::new(thread::available_parallelism().map_or(1, |cores| cores.get()));
        Arc::clone(GLOBAL.get_or_init(start))
    }

    /// The threads outlive this.
    pub fn new(workers: usize) -> Arc<Threads> {
        Arc::new(Threads {
            pool: Arc::new(Pool {
                tasks: Mutex::new(VecDeque::new()),
                wake: Condvar::new(),
                workers: AtomicUsize::new(0),
            }),
            wanted: workers,
            starting: Mutex::new(()),
        })
    }

    #[cold]
    fn start(&self) -> Result<()> {
        let _starting = self.starting.lock();
        if self.pool.workers.load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        let _blocked = BlockedSignals::new();
        let mut started = 0;
        let mut failure = None;
        while started < self.wanted && failure.is_none() {
            let pool = Arc::clone(&self.pool);
            let builder = thread::Builder::new().name(format!("cvc-host-{started}"));
            match builder.spawn(move || pool.work()) {
                Ok(_) => started += 1,
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            // Fewer threads than cores do the same work.
            Some(error) if started == 0 => Err(Error::new(
                Status::DeviceError,
                format!("the host backend could not start a thread: {error}"),
            )),
            _ => {
                self.pool.workers.store(started, Ordering::Release);
                Ok(())
            }
        }
    }
}

impl Executor for Threads {
    fn prepare(&self) -> Result<()> {
        if self.pool.workers.load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        self.start()
    }

    fn ready(&self, stream: Arc<Stream>) {
        self.pool.tasks.lock().push_back(Task::Stream(stream));
        self.pool.wake.notify_one();
    }
}

impl Pool {
    fn work(&self) {
        set_default_float_mode();
        loop {
            let task = {
                let mut tasks = self.tasks.lock();
                loop {
                    if let Some(task) = tasks.pop_front() {
                        break task;
                    }
                    self.wake.wait(&mut tasks);
                }
            };
            match task {
                Task::Stream(stream) => self.run_stream(stream),
                Task::Share(shared) => {
                    if shared.run() {
                        shared.stream.work_done();
                        self.run_stream(Arc::clone(&shared.stream));
                    }
                }
            }
        }
    }

    fn run_stream(&self, stream: Arc<Stream>) {
        for _ in 0..STEPS_PER_TURN {
            match stream.step() {
                Step::Passed => {}
                Step::Blocked | Step::Empty => return,
                Step::Run(work) => {
                    if !self.run_work(&stream, work) {
                        return;
                    }
                    stream.work_done();
                }
            }
        }
        self.tasks.lock().push_back(Task::Stream(stream));
        self.wake.notify_one();
    }

    /// `false` where the work is not finished: another thread finishes it and has the stream in hand from now on.
    fn run_work(&self, stream: &Arc<Stream>, work: Work) -> bool {
        let work = match work {
            Work::Items(work) => work,
            Work::Call(call) => {
                stream.device.run(call);
                return true;
            }
        };
        let workers = self.workers.load(Ordering::Acquire);
        match SharedWork::new(stream, work, workers) {
            Err(work) => {
                stream.device.run(|| work.run());
                true
            }
            Ok(shared) => {
                let helpers = workers.min(shared.chunk_count()) - 1;
                let mut tasks = self.tasks.lock();
                for _ in 0..helpers {
                    // In front: what is begun is finished first.
                    tasks.push_front(Task::Share(Arc::clone(&shared)));
                }
                drop(tasks);
                for _ in 0..helpers {
                    self.wake.notify_one();
                }
                shared.run()
            }
        }
    }
}

/// Gives this thread the floating-point mode that programs start with: a new thread has its creator's, and a creator that
/// flushes subnormal numbers to zero would change every kernel's bits.
fn set_default_float_mode() {
    #[cfg(target_arch = "x86_64")]
    {
        let default: u32 = 0x1f80;
        // SAFETY: loads a valid control word, all exceptions masked and rounding to nearest, which is what Rust and C assume.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &default, options(nostack, readonly)) };
    }
}

/// Runs something in that mode, on a thread that may have another and gets it back.
pub fn with_default_float_mode(body: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    {
        let mut before: u32 = 0;
        // SAFETY: stores the control word in `before`.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut before, options(nostack)) };
        set_default_float_mode();
        body();
        // SAFETY: loads the word that was stored.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &before, options(nostack, readonly)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    body();
}

/// While this lives, the calling thread starts threads that the process' signals are not delivered to: their handlers run
/// on threads that the program knows. Signals that a thread raises by its own fault stay as they were.
struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> BlockedSignals {
        const OWN_FAULT: [libc::c_int; 8] = [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGABRT,
            libc::SIGTRAP,
            libc::SIGSYS,
            libc::SIGPROF,
        ];
        // SAFETY: a signal set is plain numbers, each call gets valid sets, and the mask changed is this thread's own.
        unsafe {
            let mut before: libc::sigset_t = std::mem::zeroed();
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut blocked);
            for signal in OWN_FAULT {
                libc::sigdelset(&mut blocked, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before);
            BlockedSignals { before }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: `before` is the mask that this thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::arena::Arena;
    use crate::backend::host::device::Device;
    use crate::backend::host::signal::wait_for_all;
    use crate::backend::host::stream::{Item, StreamKind};

    fn stream_on(threads: &Arc<Threads>) -> Arc<Stream> {
        let arena = Arena::new(0, 4096).unwrap();
        let device = Device::new(0, arena, Arc::clone(threads) as Arc<dyn Executor>);
        Stream::new(16, StreamKind::NonBlocking, device)
    }

    fn run<R: Send + 'static>(
        stream: &Arc<Stream>,
        call: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        let call = move || *place.lock() = Some(call());
        stream.push(Item::Work(Work::Call(Box::new(call))));
        assert!(wait_for_all(&Vec::from_iter(stream.tail()), None));
        let result = result.lock().take();
        result.unwrap()
    }

    #[cfg(target_arch = "x86_64")]
    fn control_word() -> u32 {
        let mut word = 0u32;
        // SAFETY: stores the control word in `word`.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack)) };
        word
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn threads_do_not_inherit_a_flush_to_zero_mode() {
        let flushing: u32 = 0x9fc0;
        let creator = thread::spawn(move || {
            // SAFETY: a valid control word, in a thread that computes nothing.
            unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &flushing, options(nostack)) };
            assert_eq!(control_word() & 0xffc0, flushing);
            let threads = Threads::new(1);
            threads.prepare().unwrap();
            threads
        });
        let stream = stream_on(&creator.join().unwrap());
        assert_eq!(run(&stream, control_word) & 0xffc0, 0x1f80);
    }

    #[test]
    fn threads_are_named_and_take_none_of_the_process_signals() {
        let threads = Threads::new(1);
        threads.prepare().unwrap();
        threads.prepare().unwrap();
        assert_eq!(threads.pool.workers.load(Ordering::Acquire), 1);
        let stream = stream_on(&threads);
        let (name, interrupt, fault) = run(&stream, || {
            // SAFETY: reads this thread's mask into a valid set.
            unsafe {
                let mut mask: libc::sigset_t = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
                let name = thread::current().name().map(str::to_owned);
                let interrupt = libc::sigismember(&mask, libc::SIGINT);
                (name, interrupt, libc::sigismember(&mask, libc::SIGSEGV))
            }
        });
        assert_eq!(name.as_deref(), Some("cvc-host-0"));
        assert_eq!((interrupt, fault), (1, 0));
        // SAFETY: as above.
        let here = unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
            libc::sigismember(&mask, libc::SIGINT)
        };
        assert_eq!(here, 0);
    }

    #[test]
    fn a_long_stream_lets_others_through() {
        // One thread, and a stream that queues its own next call for ever, as long as nobody stops it.
        let threads = Threads::new(1);
        threads.prepare().unwrap();
        let (endless, other) = (stream_on(&threads), stream_on(&threads));
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        fn again(stream: Arc<Stream>, stop: Arc<std::sync::atomic::AtomicBool>) {
            let next = Arc::clone(&stream);
            let call = move || {
                if !stop.load(Ordering::Relaxed) {
                    again(next, stop);
                }
            };
            stream.push(Item::Work(Work::Call(Box::new(call))));
        }
        again(Arc::clone(&endless), Arc::clone(&stop));
        run(&other, || {});
        stop.store(true, Ordering::Relaxed);
        assert!(wait_for_all(&Vec::from_iter(endless.tail()), None));
    }
}
