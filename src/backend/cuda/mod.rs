//! The CUDA backend: the `Backend` trait over the driver API, which is loaded at run time.

mod codes;
mod context;
mod driver;
mod kernels;
mod latch;
mod library;
mod memory;
mod stream;
mod suballocator;
#[cfg(test)]
mod tests;
mod transfer;

use std::time::Duration;

use super::{
    Backend, BackendKind, Copy2d, DeviceInfo, DevicePointer, EventHandle, Fill2d, Launch,
    StreamHandle, StreamIdentity, LEAST_SHARED_BYTES,
};
use crate::error::{Result, Status};
use crate::fail;
use context::{call, Device, Plain, Session, Visit};
use driver::{Driver, Handle};
use kernels::Image;

/// Whether a driver is installed on this machine, working or not. May initialise it.
pub fn driver_is_installed() -> bool {
    driver::is_installed()
}

/// The machine's GPUs. A device's context is made, and its kernels are loaded, by the first call that uses the device.
pub struct CudaBackend {
    driver: &'static Driver,
    devices: Vec<Device>,
}

impl CudaBackend {
    /// Errors: `NoDriver`, `DriverTooOld`, `NoDevice`, each with what is missing.
    pub fn new() -> Result<CudaBackend> {
        let image = Image {
            fatbin: kernels::FATBIN,
            kernels: super::registered_kernels,
        };
        CudaBackend::with_driver(Driver::get()?, image)
    }

    fn with_driver(driver: &'static Driver, image: Image) -> Result<CudaBackend> {
        let mut count = 0;
        let plain = Plain { driver };
        // SAFETY: `count` is writable.
        unsafe { call!(plain, cuDeviceGetCount(&mut count))? };
        if count <= 0 {
            fail!(
                Status::NoDevice,
                "the CUDA driver shows no device; check that one is there and that CUDA_VISIBLE_DEVICES shows it"
            );
        }
        let devices = (0..count)
            .map(|ordinal| Device::open(driver, ordinal, image))
            .collect::<Result<Vec<Device>>>()?;
        Ok(CudaBackend { driver, devices })
    }

    fn device(&self, device: i32) -> Result<&Device> {
        let index = usize::try_from(device).ok();
        match index.and_then(|index| self.devices.get(index)) {
            Some(device) => Ok(device),
            None => fail!(
                Status::InvalidDevice,
                "device is {device}, expected 0 to {}",
                self.devices.len() - 1
            ),
        }
    }

    #[inline]
    fn enter(&self, device: i32) -> Result<Session<'_>> {
        self.device(device)?.enter()
    }

    fn enter_stream(&self, device: i32, handle: StreamHandle) -> Result<Session<'_>> {
        stream::check_stream(handle)?;
        self.enter(device)
    }

    fn enter_event(&self, device: i32, handle: EventHandle) -> Result<Session<'_>> {
        stream::check_event(handle)?;
        self.enter(device)
    }

    /// The device of the thread's current context, and that context; without one, the first device and 0.
    fn current(&self) -> Result<(&Device, Handle)> {
        let plain = Plain {
            driver: self.driver,
        };
        let context = plain.current_context()?;
        if context == 0 {
            return Ok((self.device(0)?, 0));
        }
        let known = |device: &&Device| device.ready_context() == Some(context);
        if let Some(device) = self.devices.iter().find(known) {
            return Ok((device, context));
        }
        let handle = plain.current_device()?;
        let Some(device) = self.devices.iter().find(|device| device.is(handle)) else {
            fail!(
                Status::InvalidDevice,
                "the thread's current context is of CUdevice {handle}, expected one of the {} visible ones",
                self.devices.len()
            );
        };
        Ok((device, context))
    }

    /// Some context for questions that any can answer: the thread's own, else that of a device in use, else one that
    /// others made. `NoContext` where the process has none that the backend can use.
    fn any_context(&self) -> Result<AnyContext<'_>> {
        let usable = |device: &&Device| device.check_lost().is_ok();
        let plain = Plain {
            driver: self.driver,
        };
        let current = plain.current_context()?;
        let of_lost = |device: &Device| {
            device.ready_context() == Some(current) && device.check_lost().is_err()
        };
        if current != 0 && !self.devices.iter().any(of_lost) {
            return Ok(AnyContext::Current);
        }
        let in_use = |device: &&Device| device.ready_context().is_some();
        if let Some(device) = self.devices.iter().filter(in_use).find(usable) {
            return device.enter().map(AnyContext::Entered);
        }
        for device in self.devices.iter().filter(usable) {
            if let Some(context) = device.active_context()? {
                // SAFETY: the backend has retained it, and never releases it.
                return unsafe { plain.visit(context) }.map(AnyContext::Visited);
            }
        }
        // Only lost devices: say so.
        self.devices.iter().try_for_each(Device::check_lost)?;
        Ok(AnyContext::NoContext)
    }
}

/// What is current while a question is asked.
enum AnyContext<'a> {
    Current,
    /// Held for its end.
    Entered(#[allow(dead_code)] Session<'a>),
    Visited(#[allow(dead_code)] Visit),
    NoContext,
}

impl Backend for CudaBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Cuda
    }

    fn device_count(&self) -> i32 {
        self.devices.len() as i32
    }

    fn device_info(&self, device: i32) -> Result<DeviceInfo> {
        Ok(self.device(device)?.info.clone())
    }

    fn block_shared_bytes(&self, device: i32) -> u32 {
        self.device(device)
            .map_or(LEAST_SHARED_BYTES, |device| device.block_shared_bytes)
    }

    fn check_device(&self, device: i32) -> Result<()> {
        self.device(device)?.check_lost()
    }

    fn memory_free_bytes(&self, device: i32) -> Result<u64> {
        memory::info(&self.enter(device)?).map(|(free, _)| free)
    }

    fn current_device(&self) -> Result<i32> {
        self.current().map(|(device, _)| device.ordinal)
    }

    fn set_current_device(&self, device: i32) -> Result<()> {
        self.device(device)?.make_current()
    }

    fn pointer_device(&self, pointer: DevicePointer) -> Result<Option<i32>> {
        // Without any context there is no device memory, and the driver says that it does not know the pointer.
        let _context = self.any_context()?;
        memory::pointer_device(self.driver, &self.devices, pointer)
    }

    fn memory_allocate(&self, device: i32, bytes: u64) -> Result<DevicePointer> {
        memory::allocate(&self.enter(device)?, bytes)
    }

    fn memory_free(&self, device: i32, pointer: DevicePointer, bytes: u64) -> Result<()> {
        let device = self.device(device)?;
        device.release(|session| memory::free(session, pointer, bytes))
    }

    fn stream_create(&self, device: i32, blocking: bool) -> Result<StreamHandle> {
        stream::create(&self.enter(device)?, blocking)
    }

    fn stream_destroy(&self, device: i32, stream: StreamHandle) -> Result<()> {
        stream::check_stream(stream)?;
        if stream::is_default(stream) {
            fail!(
                Status::InvalidStream,
                "stream is {stream:#x}, a default stream, which cannot be destroyed"
            );
        }
        let device = self.device(device)?;
        device.release(|session| stream::destroy(session, stream))
    }

    fn stream_identify(&self, stream: StreamHandle) -> Result<StreamIdentity> {
        stream::check_stream(stream)?;
        if stream::is_default(stream) {
            let (device, context) = self.current()?;
            if context != 0 && !device.is_primary(context)? {
                fail!(
                    Status::InvalidStream,
                    "stream {stream:#x} is the default stream of a context that is not device {}'s primary one; \
                     expected a stream of a primary context (the CUDA runtime's own)",
                    device.ordinal
                );
            }
            device.check_lost()?;
            return Ok(stream::default_identity(stream, device.ordinal));
        }
        let context = self.any_context()?;
        if let AnyContext::NoContext = context {
            fail!(
                Status::InvalidStream,
                "stream is {stream:#x}, but this process has no primary context yet, and so no stream of one"
            );
        }
        stream::identify(self.driver, &self.devices, stream)
    }

    fn stream_query(&self, device: i32, stream: StreamHandle) -> Result<bool> {
        stream::query(&self.enter_stream(device, stream)?, stream)
    }

    fn stream_synchronize(
        &self,
        device: i32,
        stream: StreamHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        stream::synchronize(&self.enter_stream(device, stream)?, stream, timeout)
    }

    fn stream_wait_event(
        &self,
        device: i32,
        stream: StreamHandle,
        event: EventHandle,
    ) -> Result<()> {
        stream::check_event(event)?;
        stream::wait_event(&self.enter_stream(device, stream)?, stream, event)
    }

    fn stream_is_capturing(&self, device: i32, stream: StreamHandle) -> Result<bool> {
        stream::is_capturing(&self.enter_stream(device, stream)?, stream)
    }

    fn stream_capture(&self, device: i32, stream: StreamHandle) -> Result<Option<u64>> {
        stream::capture(&self.enter_stream(device, stream)?, stream)
    }

    fn event_create(&self, device: i32, timing: bool) -> Result<EventHandle> {
        stream::create_event(&self.enter(device)?, timing)
    }

    fn event_destroy(&self, device: i32, event: EventHandle) -> Result<()> {
        stream::check_event(event)?;
        let device = self.device(device)?;
        device.release(|session| stream::destroy_event(session, event))
    }

    fn event_record(&self, device: i32, event: EventHandle, stream: StreamHandle) -> Result<()> {
        stream::check_stream(stream)?;
        stream::record(&self.enter_event(device, event)?, event, stream)
    }

    fn event_query(&self, device: i32, event: EventHandle) -> Result<bool> {
        stream::query_event(&self.enter_event(device, event)?, event)
    }

    fn event_synchronize(
        &self,
        device: i32,
        event: EventHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        stream::synchronize_event(&self.enter_event(device, event)?, event, timeout)
    }

    fn event_elapsed_ms(&self, device: i32, start: EventHandle, end: EventHandle) -> Result<f32> {
        stream::check_event(start)?;
        stream::elapsed_ms(&self.enter_event(device, end)?, start, end)
    }

    fn copy_2d(&self, device: i32, stream: StreamHandle, copy: &Copy2d) -> Result<()> {
        transfer::copy_2d(&self.enter_stream(device, stream)?, stream, copy)
    }

    fn fill_zero_2d(&self, device: i32, stream: StreamHandle, fill: &Fill2d) -> Result<()> {
        transfer::fill_zero_2d(&self.enter_stream(device, stream)?, stream, fill)
    }

    fn launch(&self, device: i32, stream: StreamHandle, launch: &Launch) -> Result<()> {
        let session = self.enter_stream(device, stream)?;
        session.kernels()?.launch(&session, stream, launch)
    }

    fn device_synchronize(&self, device: i32, timeout: Option<Duration>) -> Result<bool> {
        stream::synchronize_device(&self.enter(device)?, timeout)
    }

    /// The stream waits for a word of pinned memory. Streams that share a hardware queue with it may wait too.
    fn latch_create(&self, device: i32, stream: StreamHandle) -> Result<u64> {
        let session = self.enter_stream(device, stream)?;
        session.device.latches.create(&session, stream)
    }

    fn latch_open(&self, latch: u64) -> Result<()> {
        match self.device(latch::ordinal(latch)) {
            Ok(device) => device.latches.open(latch),
            Err(_) => fail!(
                Status::InvalidHandle,
                "latch is {latch:#x}, expected one that was created and not opened yet"
            ),
        }
    }
}
