//! What every layer may write: the log now, counters and rings later.

pub mod log;
pub mod mistake;
pub mod process;
