//! Which backend this process uses: decided once, by `CVC_BACKEND` and what the machine has.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

use super::{cuda::CudaBackend, host::HostBackend, wrap, Backend};
use crate::error::{Error, Result, Status};
use crate::fail;
use crate::observe::log;

static CURRENT: OnceLock<Result<Box<dyn Backend>>> = OnceLock::new();

/// The process's backend, chosen at the first call. An error then stays the answer.
pub fn current() -> Result<&'static dyn Backend> {
    match CURRENT.get_or_init(choose_and_instrument) {
        Ok(backend) => Ok(backend.as_ref()),
        Err(error) => Err(error.clone()),
    }
}

/// Whether `current` was called.
pub(super) fn is_chosen() -> bool {
    CURRENT.get().is_some()
}

fn choose_and_instrument() -> Result<Box<dyn Backend>> {
    let instruments = wrap::wanted()?;
    let backend = choose(instruments & wrap::STEPPED_BIT != 0)?;
    wrap::install(backend, instruments)
}

fn choose(stepped: bool) -> Result<Box<dyn Backend>> {
    let wanted = std::env::var_os("CVC_BACKEND").unwrap_or_else(|| "auto".into());
    match wanted.to_str() {
        Some("host") => host(stepped),
        Some("cuda") => cuda(),
        Some("auto" | "") => {
            if super::cuda::driver_is_installed() {
                // A driver that is there and fails is an error: no service should run slowly on one line of stderr.
                return cuda();
            }
            log::write(
                log::Level::Info,
                "no CUDA driver is installed; CVC_BACKEND=auto uses the host backend",
            );
            host(stepped)
        }
        _ => fail!(
            Status::InvalidValue,
            "CVC_BACKEND is \"{}\", expected auto, cuda or host",
            wanted.to_string_lossy()
        ),
    }
}

fn host(stepped: bool) -> Result<Box<dyn Backend>> {
    Ok(Box::new(HostBackend::from_environment(stepped)?))
}

fn cuda() -> Result<Box<dyn Backend>> {
    CudaBackend::new().map(|backend| Box::new(backend) as Box<dyn Backend>)
}

/// How many devices there are, once that is known and as long as none is lost.
static DEVICES: AtomicU32 = AtomicU32::new(0);
/// Some device's context was lost: every device argument is asked about from then on.
static LOST: AtomicBool = AtomicBool::new(false);
/// Counts the events after which an answer that somebody remembers may be wrong.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// What was looked up before is good while this stays the same.
#[inline(always)]
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Makes every look-up from before void.
pub fn forget_lookups() {
    EPOCH.fetch_add(1, Ordering::AcqRel);
}

/// A device's context is lost: calls that need no driver shall say so too.
pub(super) fn note_lost_device() {
    LOST.store(true, Ordering::SeqCst);
    DEVICES.store(0, Ordering::SeqCst);
    forget_lookups();
}

/// Checks a device argument of that name; -1 is the thread's current device. `ContextLost` once the device's context is.
#[inline(always)]
pub fn device(device: i32, name: &str) -> Result<i32> {
    if (device as u32) < DEVICES.load(Ordering::Relaxed) {
        return Ok(device);
    }
    device_slow(device, name)
}

#[cold]
fn device_slow(device: i32, name: &str) -> Result<i32> {
    let backend = current()?;
    let count = backend.device_count();
    if !LOST.load(Ordering::SeqCst) {
        DEVICES.store(count as u32, Ordering::SeqCst);
        // A loss that was noted between the two lines.
        if LOST.load(Ordering::SeqCst) {
            DEVICES.store(0, Ordering::SeqCst);
        }
    }
    let device = match device {
        -1 => backend.current_device()?,
        device => device,
    };
    if device < 0 || device >= count {
        return Err(Error::new(
            Status::InvalidDevice,
            format!(
                "{name} is {device}, expected -1 (the current one) or 0 to {}",
                count - 1
            ),
        ));
    }
    backend.check_device(device)?;
    Ok(device)
}
