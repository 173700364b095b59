//! The call counter: how often each method of the backend was called.

use std::sync::atomic::{AtomicU64, Ordering};

use super::calls::Call;
use super::gate::Gate;
use crate::error::Result;

static COUNTS: [AtomicU64; Call::ALL.len()] = [const { AtomicU64::new(0) }; Call::ALL.len()];

pub struct Counter;

impl Gate for Counter {
    fn pass(&self, call: Call) -> Result<()> {
        COUNTS[call as usize].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Calls since the last reset, those that failed too.
pub fn count(call: Call) -> u64 {
    COUNTS[call as usize].load(Ordering::Relaxed)
}

pub fn reset() {
    for count in &COUNTS {
        count.store(0, Ordering::Relaxed);
    }
}
