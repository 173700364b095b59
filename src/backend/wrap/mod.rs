//! Instruments around a backend, for tests. They are put in place when the backend is chosen, where somebody asked for
//! them before; otherwise they are absent and cost nothing.
//!
//! ```text
//! counter     how often each method was called
//! fault       which calls fail
//! race        which accesses to memory nothing orders; host only
//! capture     streams that capture graphs; host only, CUDA has them by itself
//! ```

/// Methods of the trait that a wrapper hands on as they are.
macro_rules! forwarded {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result {
            self.inner.$name($($argument),*)
        })*
    };
}

mod calls;
pub mod capture;
pub mod counter;
pub mod fault;
mod gate;
pub mod race;

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU32, Ordering};

pub use calls::Call;

use self::gate::Gated;
use super::{Backend, BackendKind};
use crate::error::{Result, Status};
use crate::fail;

/// One of the instruments.
#[derive(Clone, Copy)]
pub struct Instrument {
    pub bit: u32,
    /// The environment's variable that asks for it with 1.
    pub variable: &'static str,
}

pub const COUNTER: Instrument = Instrument {
    bit: 1,
    variable: "CVC_COUNT_CALLS",
};
pub const FAULTS: Instrument = Instrument {
    bit: 2,
    variable: "CVC_FAULTS",
};
/// No instrument around the backend, but asked for in the same way: the host backend runs queued work in steps.
pub const STEPPED_BIT: u32 = 8;

pub const RACES: Instrument = Instrument {
    bit: 4,
    variable: "CVC_HOST_RACE_CHECK",
};
pub const CAPTURES: Instrument = Instrument {
    bit: 16,
    variable: "CVC_HOST_CAPTURES",
};
const ALL: [Instrument; 4] = [COUNTER, FAULTS, RACES, CAPTURES];

/// What was asked for by `want`.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// What the backend was given.
static INSTALLED: AtomicU32 = AtomicU32::new(0);

impl Instrument {
    pub fn is_installed(self) -> bool {
        INSTALLED.load(Ordering::Acquire) & self.bit != 0
    }

    /// Refuses where the instrument is absent.
    pub fn check(self) -> Result<()> {
        super::current()?;
        if !self.is_installed() {
            fail!(
                Status::NotSupported,
                "the backend has no such instrument; ask for it by {}=1 or cvc_backend_instrument before anything else",
                self.variable
            );
        }
        Ok(())
    }
}

/// Asks for instruments, by their bits. Too late once the backend is chosen.
pub fn want(bits: u32) -> Result<()> {
    WANTED.fetch_or(bits, Ordering::AcqRel);
    let installed = INSTALLED.load(Ordering::Acquire);
    if super::select::is_chosen() && installed & bits != bits {
        WANTED.fetch_and(!bits | installed, Ordering::AcqRel);
        fail!(
            Status::NotSupported,
            "instruments is {bits:#x}, and the backend is in use already with {installed:#x}; ask before the first call"
        );
    }
    Ok(())
}

/// The bits that were asked for, by `want` and by the environment.
pub fn wanted() -> Result<u32> {
    let mut bits = WANTED.load(Ordering::Acquire);
    for instrument in ALL {
        let value = std::env::var_os(instrument.variable);
        if is_on(instrument.variable, value.as_deref())? {
            bits |= instrument.bit;
        }
    }
    Ok(bits)
}

fn is_on(variable: &str, value: Option<&OsStr>) -> Result<bool> {
    match value.map(OsStr::to_str) {
        None | Some(Some("" | "0")) => Ok(false),
        Some(Some("1")) => Ok(true),
        Some(_) => fail!(
            Status::InvalidValue,
            "{variable} is {:?}, expected 0 or 1",
            value.unwrap_or_default()
        ),
    }
}

fn check_is_host(backend: &dyn Backend, instrument: Instrument) -> Result<()> {
    if backend.kind() != BackendKind::Host {
        fail!(
            Status::NotSupported,
            "{} is for the host backend, and this one is CUDA",
            instrument.variable
        );
    }
    Ok(())
}

/// Puts instruments around the backend. The counter is outermost: it sees what the library calls. The race checker is
/// innermost: it sees what is really done.
pub fn install(backend: Box<dyn Backend>, bits: u32) -> Result<Box<dyn Backend>> {
    let mut backend = backend;
    if bits & RACES.bit != 0 {
        check_is_host(&*backend, RACES)?;
        backend = Box::new(race::RaceChecker::new(backend));
    }
    if bits & CAPTURES.bit != 0 {
        check_is_host(&*backend, CAPTURES)?;
        backend = Box::new(capture::Captures::new(backend));
    }
    if bits & FAULTS.bit != 0 {
        let gate = fault::Faults;
        backend = Box::new(Gated {
            gate,
            inner: backend,
        });
    }
    if bits & COUNTER.bit != 0 {
        let gate = counter::Counter;
        backend = Box::new(Gated {
            gate,
            inner: backend,
        });
    }
    INSTALLED.store(bits, Ordering::Release);
    Ok(backend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_0_or_1() {
        let on = |value: &str| is_on("CVC_COUNT_CALLS", Some(OsStr::new(value)));
        assert_eq!(is_on("CVC_COUNT_CALLS", None), Ok(false));
        assert_eq!((on(""), on("0"), on("1")), (Ok(false), Ok(false), Ok(true)));
        let error = on("yes").unwrap_err();
        assert_eq!(error.status, Status::InvalidValue);
        assert_eq!(error.message, "CVC_COUNT_CALLS is \"yes\", expected 0 or 1");
    }
}
