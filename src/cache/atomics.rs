//! The atomics of the lock-free list, apart so that `tests/interleavings.rs` can put shuttle's in their place.

pub use std::sync::atomic::{AtomicPtr, Ordering};
