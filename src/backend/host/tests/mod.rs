//! What the host backend promises to its caller, tried on real threads: what the tests share.

mod default_streams;
mod order_model;
mod sharing;
mod streams;
mod work;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::HostBackend;
use crate::backend::{Backend, EventHandle, StreamHandle};
use crate::error::{Result, Status};

const MIB: u64 = 1 << 20;
const NOW: Option<Duration> = Some(Duration::ZERO);

fn backend() -> HostBackend {
    HostBackend::new(2, 64 * MIB).unwrap()
}

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status)
}

/// Who ran, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u32>>>);

impl Log {
    fn add(&self, backend: &HostBackend, stream: StreamHandle, value: u32) {
        let log = Arc::clone(&self.0);
        let call = move || log.lock().push(value);
        backend.call(0, stream, call).unwrap();
    }

    fn get(&self) -> Vec<u32> {
        self.0.lock().clone()
    }
}

fn recorded(backend: &HostBackend, stream: StreamHandle) -> EventHandle {
    let event = backend.event_create(0, false).unwrap();
    backend.event_record(0, event, stream).unwrap();
    event
}

fn synchronize(backend: &HostBackend, stream: StreamHandle) {
    assert_eq!(backend.stream_synchronize(0, stream, None), Ok(true));
    assert_eq!(backend.stream_query(0, stream), Ok(true));
}

/// Asserts that the stream is not done, after other streams have had their turn.
fn assert_held(backend: &HostBackend, stream: StreamHandle) {
    let other = backend.stream_create(0, false).unwrap();
    for _ in 0..3 {
        backend.call(0, other, || {}).unwrap();
        synchronize(backend, other);
        assert_eq!(backend.stream_query(0, stream), Ok(false));
    }
    backend.stream_destroy(0, other).unwrap();
    assert_eq!(backend.stream_synchronize(0, stream, NOW), Ok(false));
}
