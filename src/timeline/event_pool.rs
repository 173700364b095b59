//! Driver events, kept for reuse, and the records that say what an event covers.

use parking_lot::Mutex;

use super::stream::Stream;
use crate::backend::{self, EventHandle};
use crate::error::Result;

/// Spare events by device. A record's drop puts its event back here and calls no driver.
static SPARE: Mutex<Vec<Vec<EventHandle>>> = Mutex::new(Vec::new());

/// (stream, sequence): what comes before.
pub type Waits = Box<[(&'static Stream, u64)]>;

/// An event recorded on a stream: it is complete when every access of that stream up to `covers` is, and so is all that
/// the stream had waited for by then.
pub struct Record {
    pub event: EventHandle,
    pub device: i32,
    pub covers: u64,
    pub waits: Waits,
}

impl Drop for Record {
    fn drop(&mut self) {
        give_back(self.device, self.event);
    }
}

/// An event of this device that nobody else uses.
pub fn take(device: i32) -> Result<EventHandle> {
    let spare = SPARE.lock().get_mut(device as usize).and_then(Vec::pop);
    match spare {
        Some(event) => Ok(event),
        None => backend::current()?.event_create(device, false),
    }
}

/// Keeps an event for the next `take`. Re-recording it later does not disturb waits that were queued on it before.
pub fn give_back(device: i32, event: EventHandle) {
    let mut spare = SPARE.lock();
    let index = device as usize;
    if spare.len() <= index {
        spare.resize_with(index + 1, Vec::new);
    }
    spare[index].push(event);
}
