//! `cvc_host_latch_*`: holds on streams, so that tests decide when work runs.

use super::arguments::{self, out};
use super::constants::*;
use super::error::guard;
use super::structs::*;
use crate::backend;

/// Queues a hold on the stream: what is queued after it runs only once `cvc_host_latch_open` was called.
#[no_mangle]
pub unsafe extern "C" fn cvc_host_latch_create(
    stream: cvc_stream_t,
    latch: *mut u64,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let latch = unsafe { out(latch, 0, "latch") }?;
        let stream = arguments::stream_alone(stream)?;
        *latch = backend::current()?.latch_create(stream.device(), stream.handle())?;
        Ok(())
    })
}

/// Lets the stream of the latch go on. Each latch is opened once.
#[no_mangle]
pub extern "C" fn cvc_host_latch_open(latch: u64) -> cvc_status_t {
    guard(|| backend::current()?.latch_open(latch))
}
