//! Events: names for the completion of a stream's work up to the latest record.

use std::sync::Arc;

use parking_lot::Mutex;

use super::signal::Signal;

pub struct Event {
    pub device: i32,
    pub timing: bool,
    /// Of the latest record. Held while recording, so that the latest record is also the last one queued.
    pub latest: Mutex<Option<Arc<Signal>>>,
}

impl Event {
    /// The latest record as of now; later ones do not change what was got.
    pub fn signal(&self) -> Option<Arc<Signal>> {
        self.latest.lock().clone()
    }
}
