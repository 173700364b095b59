//! The fault plan: calls of the backend that fail because a test said so, or in whose middle something else happens.

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

/// What a test of this crate does at a moment that threads otherwise meet in by chance.
struct Meeting {
    call: Call,
    moment: Moment,
    job: Box<dyn FnOnce() + Send>,
}

/// Where in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

static MEETINGS: Mutex<Vec<Meeting>> = Mutex::new(Vec::new());
static PLAN: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
static IS_EMPTY: AtomicBool = AtomicBool::new(true);
static HITS: AtomicU64 = AtomicU64::new(0);

pub struct Faults;

impl Gate for Faults {
    fn pass(&self, call: Call) -> Result<()> {
        if IS_EMPTY.load(Ordering::Acquire) {
            return Ok(());
        }
        keep_appointment(call, Moment::Before);
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

    fn passed(&self, call: Call) {
        if !IS_EMPTY.load(Ordering::Acquire) {
            keep_appointment(call, Moment::After);
        }
    }
}

fn keep_appointment(call: Call, moment: Moment) {
    let mut meetings = MEETINGS.lock();
    let here = |meeting: &Meeting| meeting.call == call && meeting.moment == moment;
    let Some(index) = meetings.iter().position(here) else {
        return;
    };
    let meeting = meetings.remove(index);
    drop(meetings);
    (meeting.job)();
}

/// The next such call runs `job`, once. The thread may hold locks of the library's just then: the job calls it on another
/// thread, and waits for that no longer than it has to.
pub fn meet(call: Call, moment: Moment, job: impl FnOnce() + Send + 'static) {
    MEETINGS.lock().push(Meeting {
        call,
        moment,
        job: Box::new(job),
    });
    IS_EMPTY.store(false, Ordering::Release);
}

/// Adds a fault. `status` is one that a driver gives.
pub fn plan(call: Call, skip: u64, count: u64, status: i32) -> Result<()> {
    const GIVEN: [Status; 6] = [
        Status::NotReady,
        Status::OutOfMemory,
        Status::NotSupported,
        Status::DeviceError,
        Status::ContextLost,
        Status::Capturing,
    ];
    let Some(status) = GIVEN.into_iter().find(|given| *given as i32 == status) else {
        fail!(
            Status::InvalidEnum,
            "status is {status}, expected that of not ready, out of memory, not supported, device error, context lost or capturing"
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
    MEETINGS.lock().clear();
    IS_EMPTY.store(true, Ordering::Release);
    HITS.store(0, Ordering::Release);
}
