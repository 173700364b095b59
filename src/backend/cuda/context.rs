//! A device's primary context: kept from its first use, made current for a call, and given up for lost after a fault.

use std::ffi::c_char;
use std::sync::OnceLock;

use cudarc::driver::sys;
use parking_lot::Mutex;

use super::codes;
use super::driver::{Driver, Handle};
use super::kernels::{Image, KernelSet};
use super::latch::Latches;
use super::memory::Memory;
use crate::backend::{select, DeviceInfo, LEAST_SHARED_BYTES};
use crate::error::{Error, Result, Status};
use crate::fail;

/// Calls a function of the table and turns its code into a `Result` that names the function.
macro_rules! call {
    ($session:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let code = ($session.driver.$function)($($argument),*);
        $session.check(code, stringify!($function))
    }};
}
pub(super) use call;

const MODE_RELAXED: u32 = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as u32;

/// One GPU. What it needs from its context is made by the first call that uses it.
pub struct Device {
    pub driver: &'static Driver,
    pub ordinal: i32,
    /// The `CUdevice`.
    handle: i32,
    pub info: DeviceInfo,
    pub capability: (i32, i32),
    /// The largest pitch that 2D copies take.
    pub max_pitch: u64,
    pub block_shared_bytes: u32,
    /// Whether the virtual memory calls work here.
    pub virtual_memory: bool,
    image: Image,
    pub memory: Memory,
    pub latches: Latches,
    /// The primary context, once retained, which is for good.
    primary: OnceLock<Handle>,
    ready: OnceLock<Ready>,
    /// Held while either of the two is set.
    initialising: Mutex<()>,
    /// The first error after which nothing of the context works.
    lost: OnceLock<String>,
}

/// What exists once the primary context does.
pub struct Ready {
    pub context: Handle,
    /// The size of pages of physical memory.
    pub granularity: u64,
    kernels: OnceLock<Result<KernelSet>>,
    loading: Mutex<()>,
}

impl Device {
    pub fn open(driver: &'static Driver, ordinal: i32, image: Image) -> Result<Device> {
        let plain = Plain { driver };
        let mut handle = 0;
        let mut name = [0u8; 256];
        let mut total = 0usize;
        // SAFETY: every pointer is writable for what the driver writes; the name is given its length.
        unsafe {
            call!(plain, cuDeviceGet(&mut handle, ordinal))?;
            call!(
                plain,
                cuDeviceGetName(
                    name.as_mut_ptr().cast::<c_char>(),
                    name.len() as i32,
                    handle
                )
            )?;
            call!(plain, cuDeviceTotalMem_v2(&mut total, handle))?;
        }
        let attribute = |attribute: sys::CUdevice_attribute| -> Result<i32> {
            let mut value = 0;
            // SAFETY: `value` is writable.
            unsafe {
                call!(
                    plain,
                    cuDeviceGetAttribute(&mut value, attribute as u32, handle)
                )?;
            }
            Ok(value)
        };
        use sys::CUdevice_attribute::*;
        let length = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        Ok(Device {
            driver,
            ordinal,
            handle,
            info: DeviceInfo {
                name: String::from_utf8_lossy(&name[..length]).into_owned(),
                total_memory: total as u64,
            },
            capability: (
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            max_pitch: u64::try_from(attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH)?).unwrap_or(0),
            block_shared_bytes: block_shared_bytes(
                attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
                attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            ),
            // The older name of VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED.
            virtual_memory: attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED)?
                != 0,
            image,
            memory: Memory::default(),
            latches: Latches::default(),
            primary: OnceLock::new(),
            ready: OnceLock::new(),
            initialising: Mutex::new(()),
            lost: OnceLock::new(),
        })
    }

    /// Whether this is the device that the driver calls `handle`.
    pub fn is(&self, handle: i32) -> bool {
        self.handle == handle
    }

    /// Makes the primary context current for this thread until the session ends.
    ///
    /// Errors: `ContextLost` after a fault, without calling the driver; what making the context gives.
    pub fn enter(&self) -> Result<Session<'_>> {
        self.check_lost()?;
        let ready = match self.ready.get() {
            Some(ready) => ready,
            None => self.initialise()?,
        };
        let mut current = 0;
        // SAFETY: `current` is writable.
        unsafe { call!(self, cuCtxGetCurrent(&mut current))? };
        let mut session = Session {
            driver: self.driver,
            device: self,
            ready,
            previous: None,
        };
        if current != ready.context {
            // SAFETY: the primary context was retained and is never released.
            let code = unsafe { (self.driver.cuCtxSetCurrent)(ready.context) };
            self.check_context(code, "cuCtxSetCurrent")?;
            session.previous = Some(current);
        }
        Ok(session)
    }

    /// Leaves the primary context current for this thread.
    pub fn make_current(&self) -> Result<()> {
        let mut session = self.enter()?;
        session.previous = None;
        Ok(())
    }

    /// Runs a release: it succeeds on a lost context, where there is nothing left to give back.
    pub fn release(&self, release: impl FnOnce(&Session) -> Result<()>) -> Result<()> {
        match self.enter().and_then(|session| release(&session)) {
            Err(error) if error.status == Status::ContextLost => Ok(()),
            result => result,
        }
    }

    /// The primary context, if the backend has initialised it already.
    pub fn ready_context(&self) -> Option<Handle> {
        self.ready.get().map(|ready| ready.context)
    }

    /// Whether the context is this device's primary one.
    pub fn is_primary(&self, context: Handle) -> Result<bool> {
        match self.primary.get() {
            Some(primary) => Ok(*primary == context),
            None => Ok(self.active_context()? == Some(context)),
        }
    }

    /// The primary context, if anybody in the process has made it; it is not made here, and nothing is loaded into it.
    pub fn active_context(&self) -> Result<Option<Handle>> {
        self.check_lost()?;
        if let Some(primary) = self.primary.get() {
            return Ok(Some(*primary));
        }
        let (mut flags, mut active) = (0, 0);
        // SAFETY: both are writable.
        unsafe {
            call!(
                self,
                cuDevicePrimaryCtxGetState(self.handle, &mut flags, &mut active)
            )?;
        }
        if active == 0 {
            return Ok(None);
        }
        let _guard = self.initialising.lock();
        self.retain().map(Some)
    }

    /// The primary context, made where there is none. The caller holds `initialising`.
    fn retain(&self) -> Result<Handle> {
        if let Some(primary) = self.primary.get() {
            return Ok(*primary);
        }
        // A capture that another thread runs must survive this.
        let _relaxed = Relaxed::enter(self)?;
        let mut context = 0;
        // SAFETY: `context` is writable. The reference taken here is kept for the life of the process.
        unsafe { call!(self, cuDevicePrimaryCtxRetain(&mut context, self.handle))? };
        Ok(*self.primary.get_or_init(|| context))
    }

    /// Retains the primary context and loads every kernel into it.
    #[cold]
    fn initialise(&self) -> Result<&Ready> {
        let _guard = self.initialising.lock();
        if let Some(ready) = self.ready.get() {
            return Ok(ready);
        }
        // A capture that another thread runs must survive this.
        let _relaxed = Relaxed::enter(self)?;
        let mut granularity = 0;
        if self.virtual_memory {
            let properties = super::memory::properties(self.ordinal);
            let minimum = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
            // SAFETY: `granularity` is writable and `properties` is whole.
            unsafe {
                call!(
                    self,
                    cuMemGetAllocationGranularity(&mut granularity, &properties, minimum as u32)
                )?;
            }
        }
        let context = self.retain()?;
        let ready = self.ready.get_or_init(|| Ready {
            context,
            granularity: (granularity as u64).max(super::memory::CHUNK_BYTES),
            kernels: OnceLock::new(),
            loading: Mutex::new(()),
        });
        // A device without kernels still has memory and streams: the error waits for the first launch.
        if let Ok(session) = self.enter() {
            let _ = session.kernels();
        }
        Ok(ready)
    }

    pub fn check_lost(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(cause) => Err(self.lost_error(cause)),
        }
    }

    #[cold]
    fn lost_error(&self, cause: &str) -> Error {
        Error::new(
            Status::ContextLost,
            format!(
                "the CUDA context of device {} is lost and works again only in a new process; first cause: {cause}",
                self.ordinal
            ),
        )
    }

    /// Remembers the first cause; from now on every call that names the device fails.
    #[cold]
    fn lose(&self, cause: String) -> Error {
        let first = self.lost.get_or_init(|| cause);
        select::note_lost_device();
        self.lost_error(first)
    }

    /// Turns a code into a `Result`, and remembers a code after which nothing works.
    #[inline]
    pub fn check(&self, code: u32, function: &'static str) -> Result<()> {
        if code == codes::SUCCESS {
            return Ok(());
        }
        Err(self.failure(code, function))
    }

    /// As `check`, for calls that take this device's context: a refusal of it means that somebody destroyed it.
    fn check_context(&self, code: u32, function: &'static str) -> Result<()> {
        if code == codes::INVALID_CONTEXT {
            let cause = format!("{function} gave {}", self.driver.describe(code));
            return Err(self.lose(cause));
        }
        self.check(code, function)
    }

    #[cold]
    fn failure(&self, code: u32, function: &'static str) -> Error {
        let text = self.driver.describe(code);
        if codes::loses_context(code) {
            let cause = format!("{function} gave {text}");
            return self.lose(cause);
        }
        Error::new(
            codes::status(code, function),
            format!("{function} failed on device {}: {text}", self.ordinal),
        )
    }
}

/// Checks of calls that belong to no device; a fatal code is reported and not remembered.
pub struct Plain {
    pub driver: &'static Driver,
}

impl Plain {
    pub fn check(&self, code: u32, function: &'static str) -> Result<()> {
        if code == codes::SUCCESS {
            return Ok(());
        }
        fail!(
            codes::status(code, function),
            "{function} failed: {}",
            self.driver.describe(code)
        )
    }

    /// The calling thread's current context; 0 where there is none.
    pub fn current_context(&self) -> Result<Handle> {
        let mut current = 0;
        // SAFETY: `current` is writable.
        unsafe { call!(self, cuCtxGetCurrent(&mut current))? };
        Ok(current)
    }

    /// Makes a context current for this thread until the visit ends.
    ///
    /// # Safety
    /// The context lives until then.
    pub unsafe fn visit(&self, context: Handle) -> Result<Visit> {
        let previous = self.current_context()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self, cuCtxSetCurrent(context))? };
        Ok(Visit {
            driver: self.driver,
            previous,
        })
    }

    /// The `CUdevice` of the current context.
    pub fn current_device(&self) -> Result<i32> {
        let mut handle = 0;
        // SAFETY: `handle` is writable.
        unsafe { call!(self, cuCtxGetDevice(&mut handle))? };
        Ok(handle)
    }
}

/// Another context, current for this thread for a question; the one before comes back at the end.
pub struct Visit {
    driver: &'static Driver,
    previous: Handle,
}

impl Drop for Visit {
    fn drop(&mut self) {
        // SAFETY: this context, or none, was current when the visit began. A failure leaves the other.
        unsafe { (self.driver.cuCtxSetCurrent)(self.previous) };
    }
}

/// What each of two blocks can have, of which the driver keeps 1 KiB for itself; or what every device has for one block.
fn block_shared_bytes(of_block: i32, of_multiprocessor: i32) -> u32 {
    let of_two = (of_multiprocessor / 2).saturating_sub(1 << 10);
    u32::try_from(of_block.min(of_two))
        .map_or(LEAST_SHARED_BYTES, |bytes| bytes.max(LEAST_SHARED_BYTES))
}

/// A device's context, current for this thread; the one before comes back at the end.
pub struct Session<'a> {
    pub driver: &'static Driver,
    pub device: &'a Device,
    pub ready: &'a Ready,
    /// What was current before, where that was another context.
    previous: Option<Handle>,
}

impl<'a> Session<'a> {
    #[inline]
    pub fn check(&self, code: u32, function: &'static str) -> Result<()> {
        self.device.check(code, function)
    }

    /// Calls until the guard's end leave alone captures that run elsewhere.
    pub fn relaxed(&self) -> Result<Relaxed> {
        Relaxed::enter(self.device)
    }

    /// The loaded kernels. An image that does not suit the device is an error that stays.
    #[inline]
    pub fn kernels(&self) -> Result<&'a KernelSet> {
        let ready: &'a Ready = self.ready;
        match ready.kernels.get() {
            Some(kernels) => kernels.as_ref().map_err(Clone::clone),
            None => self.load_kernels(),
        }
    }

    #[cold]
    fn load_kernels(&self) -> Result<&'a KernelSet> {
        let ready: &'a Ready = self.ready;
        let _guard = ready.loading.lock();
        if ready.kernels.get().is_none() {
            let _relaxed = self.relaxed()?;
            let loaded = KernelSet::load(self, &self.device.image);
            if let Err(error) = &loaded {
                // What may pass, such as a lack of memory, is tried again by the next launch.
                if error.status != Status::NoKernelImage {
                    return Err(error.clone());
                }
            }
            let _ = ready.kernels.set(loaded);
        }
        match ready.kernels.get() {
            Some(kernels) => kernels.as_ref().map_err(Clone::clone),
            None => fail!(
                Status::Internal,
                "the kernels vanished while they were loaded"
            ),
        }
    }
}

impl Drop for Session<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(previous) = self.previous {
            // SAFETY: this context, or none, was current when the session began. A failure leaves ours.
            unsafe { (self.driver.cuCtxSetCurrent)(previous) };
        }
    }
}

/// This thread's capture mode is relaxed until the guard's end.
pub struct Relaxed {
    driver: &'static Driver,
    previous: u32,
}

impl Relaxed {
    fn enter(device: &Device) -> Result<Relaxed> {
        let mut mode = MODE_RELAXED;
        // SAFETY: `mode` is read and written.
        let code = unsafe { (device.driver.cuThreadExchangeStreamCaptureMode)(&mut mode) };
        device.check(code, "cuThreadExchangeStreamCaptureMode")?;
        Ok(Relaxed {
            driver: device.driver,
            previous: mode,
        })
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        let mut mode = self.previous;
        // SAFETY: `mode` is read and written; it is the mode that the guard found.
        unsafe { (self.driver.cuThreadExchangeStreamCaptureMode)(&mut mode) };
    }
}
