//! The atomics of an object's counts, apart so that `tests/interleavings.rs` can put shuttle's in their place.

pub use std::sync::atomic::{AtomicU64, Ordering};
