//! Random work on every kind of stream, run step by step in random order, against a model of who must wait for whom.
//!
//! The model keeps sets of work and knows no signals, queues or positions. It is compared both ways: nothing runs early,
//! and nothing waits that may run.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::backend::host::stream::{Executor, Step, Stream};
use crate::backend::host::work::Work;
use crate::backend::host::HostBackend;
use crate::backend::{Backend, EventHandle, StreamHandle, STREAM_LEGACY, STREAM_PER_THREAD};
use crate::error::Result;

/// An executor that only keeps who is ready.
#[derive(Default)]
struct Stepped {
    ready: Mutex<Vec<Arc<Stream>>>,
}

impl Executor for Stepped {
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn ready(&self, stream: Arc<Stream>) {
        self.ready.lock().push(stream);
    }
}

/// Up to 128 pieces of work.
type Set = u128;

struct ModelStream {
    device: i32,
    handle: StreamHandle,
    blocking: bool,
    /// What the stream's next work has to follow.
    history: Set,
    queue: VecDeque<usize>,
}

struct ModelEvent {
    device: i32,
    handle: EventHandle,
    captured: Set,
}

impl ModelEvent {
    fn parts(&self) -> (i32, EventHandle, Set) {
        (self.device, self.handle, self.captured)
    }
}

struct Trial {
    random: u64,
    executor: Arc<Stepped>,
    backend: HostBackend,
    streams: Vec<ModelStream>,
    by_id: HashMap<u64, usize>,
    events: Vec<ModelEvent>,
    /// What each piece of work has to follow.
    before: Vec<Set>,
    done: Set,
    log: Arc<Mutex<Vec<usize>>>,
    /// Given out by the queues, not run yet.
    issued: Vec<(Arc<Stream>, Work)>,
}

const DEVICES: i32 = 2;
const STREAMS_OF_DEVICE: usize = 6;

impl Trial {
    fn new(seed: u64) -> Trial {
        let executor = Arc::new(Stepped::default());
        let shared = Arc::clone(&executor) as Arc<dyn Executor>;
        let backend = HostBackend::with_executor(DEVICES, 4096, shared).unwrap();
        let (mut streams, mut by_id, mut events) = (Vec::new(), HashMap::new(), Vec::new());
        for device in 0..DEVICES {
            backend.set_current_device(device).unwrap();
            let created = [true, true, false, false]
                .map(|blocking| (backend.stream_create(device, blocking).unwrap(), blocking));
            let default = [(STREAM_LEGACY, false), (STREAM_PER_THREAD, true)];
            for (handle, blocking) in default.into_iter().chain(created) {
                let identity = backend.stream_identify(handle).unwrap();
                assert_eq!(identity.device, device);
                by_id.insert(identity.id, streams.len());
                streams.push(ModelStream {
                    device,
                    handle,
                    blocking,
                    history: 0,
                    queue: VecDeque::new(),
                });
            }
            events.extend((0..2).map(|_| ModelEvent {
                device,
                handle: backend.event_create(device, false).unwrap(),
                captured: 0,
            }));
        }
        assert_eq!(by_id.len(), streams.len());
        Trial {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            executor,
            backend,
            streams,
            by_id,
            events,
            before: Vec::new(),
            done: 0,
            log: Arc::default(),
            issued: Vec::new(),
        }
    }

    fn pick(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) as usize % below
    }

    /// What an item queued on the stream now has to follow.
    fn merged(&self, stream: usize) -> Set {
        let legacy = stream / STREAMS_OF_DEVICE * STREAMS_OF_DEVICE;
        let mut set = self.streams[stream].history;
        if stream == legacy {
            let all = &self.streams[legacy..legacy + STREAMS_OF_DEVICE];
            let blocking = all.iter().filter(|stream| stream.blocking);
            blocking.for_each(|stream| set |= stream.history);
        } else if self.streams[stream].blocking {
            set |= self.streams[legacy].history;
        }
        set
    }

    fn queue_something(&mut self) {
        let index = self.pick(self.streams.len());
        let merged = self.merged(index);
        let (device, handle) = (self.streams[index].device, self.streams[index].handle);
        match self.pick(6) {
            0 => {
                let event = self.pick(self.events.len() / 2) + device as usize * 2;
                assert_eq!(self.events[event].device, device);
                let event_handle = self.events[event].handle;
                self.backend
                    .event_record(device, event_handle, handle)
                    .unwrap();
                self.events[event].captured = merged;
                self.streams[index].history = merged;
            }
            1 => {
                let event = self.pick(self.events.len());
                let (event_device, event_handle, captured) = self.events[event].parts();
                // Waiting for what is done, or was never recorded, is nothing: on the legacy stream it orders nobody.
                let done = self
                    .backend
                    .event_query(event_device, event_handle)
                    .unwrap();
                self.backend
                    .stream_wait_event(device, handle, event_handle)
                    .unwrap();
                if !done {
                    self.streams[index].history = merged | captured;
                }
            }
            2 => {
                // Asking queues records of its own and must change no order.
                let none = Some(Duration::ZERO);
                let asked = self
                    .backend
                    .stream_synchronize(device, handle, none)
                    .unwrap();
                assert!(!asked || self.streams[index].queue.is_empty());
            }
            _ => {
                let work = self.before.len();
                let log = Arc::clone(&self.log);
                let call = move || log.lock().push(work);
                self.backend.call(device, handle, call).unwrap();
                self.before.push(merged);
                self.streams[index].history = merged | 1 << work;
                self.streams[index].queue.push_back(work);
            }
        }
    }

    fn step_something(&mut self) {
        let mut ready = self.executor.ready.lock();
        if ready.is_empty() {
            return;
        }
        let count = ready.len();
        drop(ready);
        let index = self.pick(count);
        ready = self.executor.ready.lock();
        let stream = ready.swap_remove(index);
        drop(ready);
        match stream.step() {
            Step::Run(work) => self.issued.push((stream, work)),
            Step::Passed => self.executor.ready(stream),
            Step::Blocked | Step::Empty => {}
        }
    }

    fn run_something(&mut self) {
        if self.issued.is_empty() {
            return;
        }
        let index = self.pick(self.issued.len());
        let (stream, work) = self.issued.swap_remove(index);
        match work {
            Work::Call(call) => stream.device.run(call),
            Work::Items(work) => stream.device.run(|| work.run()),
        }
        let ran = *self.log.lock().last().unwrap();
        let model = &mut self.streams[self.by_id[&stream.id]];
        assert_eq!(model.queue.pop_front(), Some(ran), "order within a stream");
        assert_eq!(self.before[ran] & !self.done, 0, "{ran} ran too early");
        self.done |= 1 << ran;
        stream.work_done();
        self.executor.ready(stream);
    }

    /// Takes every step that needs no work to be run, then compares what may run, and who says to be idle.
    fn compare(&mut self) {
        while !self.executor.ready.lock().is_empty() {
            self.step_something();
        }
        let heads = self.issued.iter();
        let mut issued: Vec<usize> = heads
            .map(|(stream, _)| self.streams[self.by_id[&stream.id]].queue[0])
            .collect();
        issued.sort_unstable();
        let all = 0..self.before.len();
        let may_run =
            |work: &usize| self.done & 1 << work == 0 && self.before[*work] & !self.done == 0;
        assert_eq!(issued, all.filter(may_run).collect::<Vec<_>>());
        for (index, stream) in self.streams.iter().enumerate() {
            let expected = self.merged(index) & !self.done == 0;
            let idle = self
                .backend
                .stream_query(stream.device, stream.handle)
                .unwrap();
            // An idle blocking stream does not speak for the legacy stream's work.
            if !stream.blocking || expected {
                assert_eq!(idle, expected, "stream {index}");
            }
        }
        for device in 0..DEVICES {
            let mut streams = self.streams.iter().filter(|stream| stream.device == device);
            let expected = streams.all(|stream| stream.history & !self.done == 0);
            let none = Some(Duration::ZERO);
            assert_eq!(self.backend.device_synchronize(device, none), Ok(expected));
        }
        for event in &self.events {
            let expected = event.captured & !self.done == 0;
            let done = self
                .backend
                .event_query(event.device, event.handle)
                .unwrap();
            assert_eq!(done, expected);
        }
    }
}

#[test]
fn work_runs_in_every_order_that_the_waits_allow_and_in_no_other() {
    for seed in 0..400 {
        let mut trial = Trial::new(seed);
        while trial.before.len() < 100 {
            match trial.pick(20) {
                0..=9 => trial.queue_something(),
                10..=15 => trial.step_something(),
                16..=18 => trial.run_something(),
                _ => trial.compare(),
            }
        }
        while trial.done.count_ones() < trial.before.len() as u32 {
            trial.compare();
            trial.run_something();
        }
        trial.compare();
        assert!(trial.issued.is_empty());
    }
}
