//! The fault plan: calls of the backend that fail because a test said so.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::calls::Call;
use super::gate::Gate;
use crate::error::{Error, Result, Status};
use crate::fail;

/// The `count` calls after the next `skip` ones fail.
struct Fault {
    call: Call,
    skip: u64,
    count: u64,
    status: Status,
}

static PLAN: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
static IS_EMPTY: AtomicBool = AtomicBool::new(true);
static HITS: AtomicU64 = AtomicU64::new(0);

pub struct Faults;

impl Gate for Faults {
    fn pass(&self, call: Call) -> Result<()> {
        if IS_EMPTY.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut failure = Ok(());
        for fault in PLAN.lock().iter_mut().filter(|fault| fault.call == call) {
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if fault.count > 0 && failure.is_ok() {
                fault.count -= 1;
                HITS.fetch_add(1, Ordering::AcqRel);
                let name = call.name().to_string_lossy();
                failure = Err(Error::new(
                    fault.status,
                    format!("{name} failed, as the fault plan says"),
                ));
            }
        }
        failure
    }
}

/// Adds a fault. `status` is one that a driver gives.
pub fn plan(call: Call, skip: u64, count: u64, status: i32) -> Result<()> {
    const GIVEN: [Status; 5] = [
        Status::NotReady,
        Status::OutOfMemory,
        Status::NotSupported,
        Status::DeviceError,
        Status::Capturing,
    ];
    let Some(status) = GIVEN.into_iter().find(|given| *given as i32 == status) else {
        fail!(
            Status::InvalidEnum,
            "status is {status}, expected that of not ready, out of memory, not supported, device error or capturing"
        );
    };
    PLAN.lock().push(Fault {
        call,
        skip,
        count,
        status,
    });
    IS_EMPTY.store(false, Ordering::Release);
    Ok(())
}

/// How many calls have failed by the plan since it was last cleared.
pub fn hits() -> u64 {
    HITS.load(Ordering::Acquire)
}

pub fn clear() {
    let mut plan = PLAN.lock();
    plan.clear();
    IS_EMPTY.store(true, Ordering::Release);
    HITS.store(0, Ordering::Release);
}
