//! The legacy default stream's order with a device's blocking streams, made of plain records and waits.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::{smallvec, SmallVec};

use super::signal::Signal;
use super::stream::{Item, Stream, StreamKind};

/// A device's legacy stream and the blocking streams that it has to wait for.
///
/// Work on the legacy stream waits for all earlier work on blocking streams; later work on a blocking stream waits for it.
/// Earlier means queued earlier, so these streams queue under one lock. Non-blocking streams never take it.
pub struct LegacyOrder {
    legacy: Arc<Stream>,
    state: Mutex<State>,
}

struct State {
    /// Blocking streams with work that was queued after the legacy stream last waited for them.
    listed: Vec<Arc<Stream>>,
    /// How many items were queued on the legacy stream.
    position: u64,
    prune_at: usize,
}

const PRUNE_AT_LEAST: usize = 64;

impl LegacyOrder {
    pub fn new(legacy: Arc<Stream>) -> LegacyOrder {
        LegacyOrder {
            legacy,
            state: Mutex::new(State {
                listed: Vec::new(),
                position: 0,
                prune_at: PRUNE_AT_LEAST,
            }),
        }
    }

    pub fn legacy(&self) -> &Arc<Stream> {
        &self.legacy
    }

    /// Queues an item, behind the waits that the legacy order asks for.
    pub fn push(&self, stream: &Arc<Stream>, item: Item) {
        match stream.kind {
            StreamKind::NonBlocking => stream.push(item),
            StreamKind::Blocking => {
                let mut state = self.state.lock();
                if stream.legacy_position.load(Ordering::Relaxed) != state.position {
                    if let Some(signal) = self.legacy.tail() {
                        stream.push(Item::Wait(signal));
                    }
                    stream
                        .legacy_position
                        .store(state.position, Ordering::Relaxed);
                }
                stream.push(item);
                if !stream.listed.swap(true, Ordering::Relaxed) {
                    state.prune_if_long();
                    state.listed.push(Arc::clone(stream));
                }
            }
            StreamKind::Legacy => {
                let mut state = self.state.lock();
                for blocking in state.listed.drain(..) {
                    blocking.listed.store(false, Ordering::Relaxed);
                    if let Some(signal) = blocking.tail() {
                        self.legacy.push(Item::Wait(signal));
                    }
                }
                self.legacy.push(item);
                state.position += 1;
            }
        }
    }

    /// What is set once everything queued on the stream so far is done; of the legacy stream: also what it has to wait for.
    pub fn tails(&self, stream: &Arc<Stream>) -> SmallVec<[Arc<Signal>; 1]> {
        if stream.kind != StreamKind::Legacy {
            return stream.tail().into_iter().collect();
        }
        let state = self.state.lock();
        let mut tails: SmallVec<_> = smallvec![];
        tails.extend(self.legacy.tail());
        tails.extend(state.listed.iter().filter_map(|blocking| blocking.tail()));
        tails
    }

    /// Whether `tails` has nothing to wait for.
    pub fn is_idle(&self, stream: &Arc<Stream>) -> bool {
        if stream.kind != StreamKind::Legacy {
            return stream.is_idle();
        }
        let state = self.state.lock();
        self.legacy.is_idle() && state.listed.iter().all(|blocking| blocking.is_idle())
    }

    /// Lets go of idle streams.
    pub fn prune(&self) {
        self.state.lock().prune();
    }
}

impl State {
    fn prune(&mut self) {
        self.listed.retain(|blocking| {
            let idle = blocking.is_idle();
            if idle {
                blocking.listed.store(false, Ordering::Relaxed);
            }
            !idle
        });
        self.prune_at = PRUNE_AT_LEAST.max(2 * self.listed.len());
    }

    fn prune_if_long(&mut self) {
        if self.listed.len() >= self.prune_at {
            self.prune();
        }
    }
}
