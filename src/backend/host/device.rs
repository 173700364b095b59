//! What queued work needs of its device, and keeps alive: its memory, its executor and its fault.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, OnceLock};

use super::arena::Arena;
use super::stream::Executor;
use crate::error::{Result, Status};
use crate::fail;

pub struct Device {
    pub ordinal: i32,
    pub arena: Arena,
    pub executor: Arc<dyn Executor>,
    fault: OnceLock<String>,
}

impl Device {
    pub fn new(ordinal: i32, arena: Arena, executor: Arc<dyn Executor>) -> Arc<Device> {
        Arc::new(Device {
            ordinal,
            arena,
            executor,
            fault: OnceLock::new(),
        })
    }

    /// `Status::DeviceError` once queued work has failed; it does not go away, as on a GPU.
    pub fn check(&self) -> Result<()> {
        if let Some(fault) = self.fault.get() {
            let ordinal = self.ordinal;
            fail!(
                Status::DeviceError,
                "device {ordinal} failed in queued work: {fault}"
            );
        }
        Ok(())
    }

    /// Runs a piece of queued work; its panic becomes the device's fault, and a device with a fault runs nothing more.
    pub fn run(&self, piece: impl FnOnce()) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if self.fault.get().is_none() {
                piece();
            }
        }));
        if let Err(payload) = outcome {
            self.fault.get_or_init(|| panic_text(&*payload));
            // Its destructor could panic in turn.
            std::mem::forget(payload);
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        format!("panic: {text}")
    } else if let Some(text) = payload.downcast_ref::<String>() {
        format!("panic: {text}")
    } else {
        "panic".to_string()
    }
}
