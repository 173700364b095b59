//! The device on the CPU: memory with a capacity, streams that run behind the caller, and kernels compiled for the host.
//!
//! ```text
//! HostBackend            the trait: checks, finds, queues
//!   registry, identity   numbers to streams, events, latches; who a stream is
//!   order                the legacy stream's waits, made of records and waits
//!   stream, signal       FIFO queues and what they wait for; no threads
//!   threads, stepped     the executors: who runs what is ready, and when
//!   work                 what is run, and how it is split over cores
//!   device, arena, ranges  memory and the sticky fault
//! ```
//!
//! Executors implement `stream::Executor`: everything else is the same for both.
//!
//! The instruments in `wrap`, beside this folder, are further implementations of `Backend` around a `Box<dyn Backend>`.
//! Nothing in here calls the trait's methods on itself, so a wrapper sees each call that
//! the library makes exactly once, in the caller's thread and order; `Launch::ranges`, `Copy2d` and `Fill2d` say what the
//! queued work will touch.

mod arena;
mod device;
mod environment;
mod event;
mod identity;
mod order;
mod ranges;
mod registry;
mod signal;
mod stepped;
mod stream;
mod threads;
mod work;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use self::arena::Arena;
use self::device::Device;
use self::event::Event;
use self::identity::Identities;
use self::order::LegacyOrder;
use self::registry::{new_handle, Registry, Tag};
use self::signal::Signal;
use self::stepped::Stepped;
pub use self::stepped::{Runnable, StepKind};
use self::stream::{Executor, Item, Stream, StreamKind};
use self::threads::Threads;
use self::work::{ItemWork, Work};
use super::{
    Backend, BackendKind, Copy2d, DeviceInfo, DevicePointer, EventHandle, Fill2d, Launch,
    StreamHandle, StreamIdentity, STREAM_LEGACY, STREAM_PER_THREAD,
};
use crate::error::{Error, Result, Status};
use crate::fail;

/// `Backend` on the CPU.
///
/// After a panic in queued work its device has a fault: what was queued is dropped unrun, so that every wait ends, and
/// calls that queue, wait, ask or allocate give `Status::DeviceError`. Giving things back still works.
///
/// Dropping it does not wait: what is queued still runs, with the device memory kept until then.
pub struct HostBackend {
    identities: Identities,
    executor: Arc<dyn Executor>,
    devices: Vec<DeviceSlot>,
    /// Created streams by handle, which is also their id.
    streams: Registry<Stream>,
    /// Threads' own default streams by id. They come into being at a thread's first use, and the idle ones are forgotten
    /// at times: no thread's end needs to be noticed, and the thread that comes back gets the same id.
    per_thread: Registry<Stream>,
    prune_per_thread_at: AtomicUsize,
    events: Registry<Event>,
    latches: Registry<Signal>,
}

struct DeviceSlot {
    device: Arc<Device>,
    order: LegacyOrder,
    /// Destroyed streams, which may have work left. The executor or a signal holds them for as long as they do.
    destroyed: Mutex<Destroyed>,
}

struct Destroyed {
    streams: Vec<Weak<Stream>>,
    prune_at: usize,
}

const PRUNE_AT_LEAST: usize = 256;

impl HostBackend {
    /// `devices` (1 to 64) devices of `capacity_bytes` each, run by the process' threads. Reserves addresses, takes no
    /// memory and starts no thread before something is queued.
    pub fn new(devices: i32, capacity_bytes: u64) -> Result<HostBackend> {
        HostBackend::with_executor(devices, capacity_bytes, Threads::global())
    }

    /// Sized by `CVC_HOST_DEVICES` (1 to 64; 1) and `CVC_HOST_MEMORY` (bytes a device, plain or with K, M or G; the
    /// smaller of 4 GiB and a quarter of the machine's memory). `Status::InvalidValue` for what they cannot be.
    ///
    /// Queued work runs in steps where `stepped`, or where `CVC_HOST_EXECUTOR` is `stepped` instead of `threads`.
    pub fn from_environment(stepped: bool) -> Result<HostBackend> {
        let devices = environment::devices(std::env::var_os(environment::DEVICES).as_deref())?;
        let memory = environment::memory(std::env::var_os(environment::MEMORY).as_deref())?;
        let executor = std::env::var_os(environment::EXECUTOR);
        if environment::is_stepped(executor.as_deref())? || stepped {
            return HostBackend::with_executor(devices, memory, Stepped::new());
        }
        HostBackend::new(devices, memory)
    }

    fn with_executor(
        devices: i32,
        capacity_bytes: u64,
        executor: Arc<dyn Executor>,
    ) -> Result<HostBackend> {
        if !(1..=environment::MAX_DEVICES).contains(&devices) {
            let most = environment::MAX_DEVICES;
            fail!(
                Status::InvalidValue,
                "devices is {devices}, expected 1 to {most}"
            );
        }
        let identities = Identities::new();
        let slot = |ordinal| {
            let arena = Arena::new(ordinal, capacity_bytes)?;
            let device = Device::new(ordinal, arena, Arc::clone(&executor));
            let id = identities.legacy(ordinal).id;
            let legacy = Stream::new(id, StreamKind::Legacy, Arc::clone(&device));
            Ok(DeviceSlot {
                device,
                order: LegacyOrder::new(legacy),
                destroyed: Mutex::new(Destroyed {
                    streams: Vec::new(),
                    prune_at: PRUNE_AT_LEAST,
                }),
            })
        };
        Ok(HostBackend {
            devices: (0..devices).map(slot).collect::<Result<_>>()?,
            identities,
            executor,
            streams: Registry::new(),
            per_thread: Registry::new(),
            prune_per_thread_at: AtomicUsize::new(PRUNE_AT_LEAST),
            events: Registry::new(),
            latches: Registry::new(),
        })
    }

    /// Queues a function. It runs on a thread of the pool and must not wait for queued work.
    pub fn call(
        &self,
        device: i32,
        stream: StreamHandle,
        function: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        self.queue(device, stream, Item::Work(Work::Call(Box::new(function))))
    }

    /// Fills the device's new allocations with this byte from now on, to bring out reads of what was never written.
    pub fn poison_new_allocations(&self, device: i32, byte: Option<u8>) -> Result<()> {
        self.slot(device)?.device.arena.set_poison(byte);
        Ok(())
    }

    fn slot(&self, device: i32) -> Result<&DeviceSlot> {
        let slot = usize::try_from(device)
            .ok()
            .and_then(|index| self.devices.get(index));
        match slot {
            Some(slot) => Ok(slot),
            None => fail!(
                Status::InvalidDevice,
                "device is {device}, expected 0 to {}",
                self.devices.len() - 1
            ),
        }
    }

    /// The device, where it has no fault.
    fn working_slot(&self, device: i32) -> Result<&DeviceSlot> {
        let slot = self.slot(device)?;
        slot.device.check()?;
        Ok(slot)
    }

    fn stream(&self, slot: &DeviceSlot, handle: StreamHandle) -> Result<Arc<Stream>> {
        match handle {
            0 | STREAM_LEGACY => Ok(Arc::clone(slot.order.legacy())),
            STREAM_PER_THREAD => Ok(self.per_thread_stream(slot)),
            _ => match self.streams.get(handle as u64) {
                Some(stream) => {
                    check_stream_device(&stream, slot)?;
                    Ok(stream)
                }
                None => Err(no_stream(handle)),
            },
        }
    }

    fn per_thread_stream(&self, slot: &DeviceSlot) -> Arc<Stream> {
        let id = self.identities.per_thread(slot.device.ordinal).id;
        if let Some(stream) = self.per_thread.get(id) {
            return stream;
        }
        let stream = Stream::new(id, StreamKind::Blocking, Arc::clone(&slot.device));
        // No other thread has this id, so nothing is replaced.
        self.per_thread.insert(id, Arc::clone(&stream));
        let length = self.per_thread.len();
        if length >= self.prune_per_thread_at.load(Ordering::Relaxed) {
            self.devices.iter().for_each(|slot| slot.order.prune());
            self.per_thread.forget_unheld(Stream::is_idle);
            let next = PRUNE_AT_LEAST.max(2 * self.per_thread.len());
            self.prune_per_thread_at.store(next, Ordering::Relaxed);
        }
        stream
    }

    fn event(&self, handle: EventHandle) -> Result<Arc<Event>> {
        self.events
            .get(handle as u64)
            .ok_or_else(|| no_event(handle))
    }

    fn queue(&self, device: i32, stream: StreamHandle, item: Item) -> Result<()> {
        let slot = self.working_slot(device)?;
        let stream = self.stream(slot, stream)?;
        self.executor.prepare()?;
        slot.order.push(&stream, item);
        Ok(())
    }

    fn queue_items(&self, device: i32, stream: StreamHandle, work: Option<ItemWork>) -> Result<()> {
        match work {
            Some(work) => self.queue(device, stream, Item::Work(Work::Items(Box::new(work)))),
            None => {
                let slot = self.working_slot(device)?;
                self.stream(slot, stream).map(|_| ())
            }
        }
    }

    /// Every stream of the device that may have work left, the legacy stream apart.
    fn streams_of(&self, slot: &DeviceSlot) -> Vec<Arc<Stream>> {
        let of_device = |stream: &Stream| Arc::ptr_eq(&stream.device, &slot.device);
        let mut streams = self.streams.select(of_device);
        streams.extend(self.per_thread.select(of_device));
        let destroyed = slot.destroyed.lock();
        streams.extend(destroyed.streams.iter().filter_map(Weak::upgrade));
        streams
    }
}

fn check_stream_device(stream: &Stream, slot: &DeviceSlot) -> Result<()> {
    let (actual, expected) = (stream.device.ordinal, slot.device.ordinal);
    if actual != expected {
        fail!(
            Status::DeviceMismatch,
            "stream {:#x} is of device {actual}, expected one of device {expected}",
            stream.id
        );
    }
    Ok(())
}

fn check_event_device(event: &Event, handle: EventHandle, device: i32) -> Result<()> {
    let actual = event.device;
    if actual != device {
        fail!(
            Status::DeviceMismatch,
            "event {handle:#x} is of device {actual}, expected one of device {device}"
        );
    }
    Ok(())
}

#[cold]
fn no_stream(handle: StreamHandle) -> Error {
    Error::new(
        Status::InvalidStream,
        format!("stream is {handle:#x}, expected a default stream or a created one that was not destroyed"),
    )
}

#[cold]
fn no_event(handle: EventHandle) -> Error {
    Error::new(
        Status::InvalidEvent,
        format!("event is {handle:#x}, expected a created one that was not destroyed"),
    )
}

impl Backend for HostBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Host
    }

    fn device_count(&self) -> i32 {
        self.devices.len() as i32
    }

    fn device_info(&self, device: i32) -> Result<DeviceInfo> {
        Ok(DeviceInfo {
            name: "Host CPU".to_string(),
            total_memory: self.slot(device)?.device.arena.capacity(),
        })
    }

    fn memory_free_bytes(&self, device: i32) -> Result<u64> {
        Ok(self.slot(device)?.device.arena.free_bytes())
    }

    fn current_device(&self) -> Result<i32> {
        Ok(self.identities.current_device())
    }

    fn set_current_device(&self, device: i32) -> Result<()> {
        self.slot(device)?;
        self.identities.set_current_device(device);
        Ok(())
    }

    fn memory_allocate(&self, device: i32, bytes: u64) -> Result<DevicePointer> {
        self.working_slot(device)?.device.arena.allocate(bytes)
    }

    fn memory_free(&self, device: i32, pointer: DevicePointer, bytes: u64) -> Result<()> {
        self.slot(device)?.device.arena.free(pointer, bytes)
    }

    /// Whatever lies in no device's memory is the process' own, which every device of this backend can use.
    fn pointer_device(&self, pointer: DevicePointer) -> Result<Option<i32>> {
        if pointer == 0 {
            fail!(Status::InvalidArgument, "pointer is 0, expected an address");
        }
        let owner = |slot: &&DeviceSlot| slot.device.arena.contains(pointer);
        let slot = self.devices.iter().find(owner);
        Ok(slot.map(|slot| slot.device.ordinal))
    }

    fn stream_create(&self, device: i32, blocking: bool) -> Result<StreamHandle> {
        let slot = self.working_slot(device)?;
        let kind = if blocking {
            StreamKind::Blocking
        } else {
            StreamKind::NonBlocking
        };
        let handle = new_handle(Tag::Stream);
        let stream = Stream::new(handle, kind, Arc::clone(&slot.device));
        self.streams.insert(handle, stream);
        Ok(handle as StreamHandle)
    }

    fn stream_destroy(&self, device: i32, stream: StreamHandle) -> Result<()> {
        let slot = self.slot(device)?;
        let removed = self
            .streams
            .remove_if(stream as u64, |stream| check_stream_device(stream, slot))?;
        let Some(removed) = removed else {
            fail!(
                Status::InvalidStream,
                "stream is {stream:#x}, expected a created one that was not destroyed"
            );
        };
        self.identities.forget();
        let mut destroyed = slot.destroyed.lock();
        if destroyed.streams.len() >= destroyed.prune_at {
            let busy = |stream: &Weak<Stream>| stream.upgrade().is_some_and(|s| !s.is_idle());
            destroyed.streams.retain(busy);
            destroyed.prune_at = PRUNE_AT_LEAST.max(2 * destroyed.streams.len());
        }
        if !removed.is_idle() {
            destroyed.streams.push(Arc::downgrade(&removed));
        }
        Ok(())
    }

    fn stream_identify(&self, stream: StreamHandle) -> Result<StreamIdentity> {
        let identities = &self.identities;
        let handle = stream as u64;
        match stream {
            0 | STREAM_LEGACY => Ok(identities.legacy(identities.current_device())),
            STREAM_PER_THREAD => Ok(identities.per_thread(identities.current_device())),
            _ => identities
                .created(handle, || self.streams.with(handle, Stream::identity))
                .ok_or_else(|| no_stream(stream)),
        }
    }

    fn stream_query(&self, device: i32, stream: StreamHandle) -> Result<bool> {
        let slot = self.working_slot(device)?;
        let stream = self.stream(slot, stream)?;
        let idle = slot.order.is_idle(&stream);
        slot.device.check()?;
        Ok(idle)
    }

    fn stream_synchronize(
        &self,
        device: i32,
        stream: StreamHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        let slot = self.working_slot(device)?;
        let stream = self.stream(slot, stream)?;
        let done = self
            .executor
            .wait_for_all(&slot.order.tails(&stream), timeout);
        slot.device.check()?;
        Ok(done)
    }

    fn stream_wait_event(
        &self,
        device: i32,
        stream: StreamHandle,
        event: EventHandle,
    ) -> Result<()> {
        let slot = self.working_slot(device)?;
        let stream = self.stream(slot, stream)?;
        let signal = self.event(event)?.signal();
        if let Some(signal) = signal.filter(|signal| !signal.is_done()) {
            self.executor.prepare()?;
            slot.order.push(&stream, Item::Wait(signal));
        }
        Ok(())
    }

    fn stream_is_capturing(&self, device: i32, stream: StreamHandle) -> Result<bool> {
        let slot = self.slot(device)?;
        self.stream(slot, stream).map(|_| false)
    }

    fn stream_capture(&self, device: i32, stream: StreamHandle) -> Result<Option<u64>> {
        self.stream_is_capturing(device, stream).map(|_| None)
    }

    fn event_create(&self, device: i32, timing: bool) -> Result<EventHandle> {
        self.working_slot(device)?;
        let handle = new_handle(Tag::Event);
        let event = Event {
            device,
            timing,
            latest: Mutex::new(None),
        };
        self.events.insert(handle, Arc::new(event));
        Ok(handle as EventHandle)
    }

    fn event_destroy(&self, device: i32, event: EventHandle) -> Result<()> {
        self.slot(device)?;
        let check = |found: &Event| check_event_device(found, event, device);
        match self.events.remove_if(event as u64, check)? {
            Some(_) => Ok(()),
            None => Err(no_event(event)),
        }
    }

    fn event_record(&self, device: i32, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let slot = self.working_slot(device)?;
        let stream = self.stream(slot, stream)?;
        let found = self.event(event)?;
        check_event_device(&found, event, device)?;
        self.executor.prepare()?;
        let signal = Signal::of(&stream);
        let mut latest = found.latest.lock();
        let record = Item::Record {
            signal: Arc::clone(&signal),
            stamp: found.timing,
        };
        slot.order.push(&stream, record);
        *latest = Some(signal);
        Ok(())
    }

    fn event_query(&self, device: i32, event: EventHandle) -> Result<bool> {
        let slot = self.working_slot(device)?;
        let found = self.event(event)?;
        check_event_device(&found, event, device)?;
        let done = found.signal().is_none_or(|signal| signal.is_done());
        slot.device.check()?;
        Ok(done)
    }

    fn event_synchronize(
        &self,
        device: i32,
        event: EventHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        let slot = self.working_slot(device)?;
        let found = self.event(event)?;
        check_event_device(&found, event, device)?;
        let done = found
            .signal()
            .is_none_or(|signal| self.executor.wait_for_all(&[signal], timeout));
        slot.device.check()?;
        Ok(done)
    }

    fn event_elapsed_ms(&self, device: i32, start: EventHandle, end: EventHandle) -> Result<f32> {
        self.working_slot(device)?;
        let mut stamps = [None; 2];
        for ((name, handle), stamp) in [("start", start), ("end", end)]
            .into_iter()
            .zip(&mut stamps)
        {
            let event = self.event(handle)?;
            check_event_device(&event, handle, device)?;
            if !event.timing {
                fail!(
                    Status::InvalidEvent,
                    "{name} is event {handle:#x} without timing, expected one created with it"
                );
            }
            let Some(signal) = event.signal() else {
                fail!(
                    Status::InvalidEvent,
                    "{name} is event {handle:#x} that was never recorded, expected a recorded one"
                );
            };
            if !signal.is_done() {
                fail!(
                    Status::NotReady,
                    "{name} is event {handle:#x} whose record is not done, expected a completed one"
                );
            }
            *stamp = signal.stamp();
        }
        let [Some(start), Some(end)] = stamps else {
            fail!(Status::Internal, "a completed timing event has no time");
        };
        let seconds = match end.checked_duration_since(start) {
            Some(duration) => duration.as_secs_f64(),
            None => -start.duration_since(end).as_secs_f64(),
        };
        Ok((seconds * 1e3) as f32)
    }

    fn copy_2d(&self, device: i32, stream: StreamHandle, copy: &Copy2d) -> Result<()> {
        self.queue_items(device, stream, ItemWork::copy(copy)?)
    }

    fn fill_zero_2d(&self, device: i32, stream: StreamHandle, fill: &Fill2d) -> Result<()> {
        self.queue_items(device, stream, ItemWork::fill_zero(fill)?)
    }

    fn launch(&self, device: i32, stream: StreamHandle, launch: &Launch) -> Result<()> {
        self.queue_items(device, stream, ItemWork::launch(launch)?)
    }

    fn device_synchronize(&self, device: i32, timeout: Option<Duration>) -> Result<bool> {
        let slot = self.working_slot(device)?;
        let mut streams = self.streams_of(slot);
        streams.push(Arc::clone(slot.order.legacy()));
        let tails: Vec<_> = streams.iter().filter_map(|stream| stream.tail()).collect();
        let done = self.executor.wait_for_all(&tails, timeout);
        slot.device.check()?;
        Ok(done)
    }

    fn latch_create(&self, device: i32, stream: StreamHandle) -> Result<u64> {
        let latch = new_handle(Tag::Latch);
        let signal = Signal::new();
        // Known before it is queued and forgotten if that fails: no hold without a way to open it.
        self.latches.insert(latch, Arc::clone(&signal));
        let queued = self.queue(device, stream, Item::Wait(signal));
        if queued.is_err() {
            self.latches.remove(latch);
        }
        queued.map(|()| latch)
    }

    fn stepping(&self) -> Option<&dyn super::Stepping> {
        Some(self)
    }

    fn latch_open(&self, latch: u64) -> Result<()> {
        let Some(signal) = self.latches.remove(latch) else {
            fail!(
                Status::InvalidHandle,
                "latch is {latch:#x}, expected one that was created and not opened yet"
            );
        };
        signal.mark(false);
        signal.notify();
        Ok(())
    }
}
