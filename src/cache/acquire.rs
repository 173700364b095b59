//! From a request to a live entry: exact match, smallest fit, what ended threads left, new memory.

use super::entry::Entry;
use super::index::Index;
use super::retire::drop_done;
use super::table::{Request, Resolved, Shape};
use super::{enforce_limit, hooks, lock_drained, thread, Cache};
use crate::error::{Result, Status};
use crate::memory;
use crate::observe::mistake::{self, Mistake};
use crate::timeline::{AccessKind, Accesses, Looks, Stream};

/// A live entry that nobody else observes.
pub struct Acquired {
    pub entry: *mut Entry,
    /// Its last descriptor had the same shape and strides, so what was written of it then still holds.
    pub same_shape: bool,
}

/// An entry for the request. `stream`: whose queued work may use it, so that memory with work ordered before that is
/// considered; `None`: only memory whose work is done. Never waits on the host, except before out-of-memory.
#[inline(always)]
pub fn acquire(
    cache: &'static Cache,
    device: i32,
    request: &Request,
    stream: Option<&'static Stream>,
    resolve: impl FnOnce() -> Result<Resolved>,
) -> Result<Acquired> {
    let index = thread::index(cache);
    if !index.has_remote() {
        let mut state = index.lock();
        if let Some(own) = state.device(device) {
            if let Some(shape) = own.known(request) {
                // SAFETY: requests lead to shapes of their own index.
                if let Some(entry) = unsafe { own.take_ready(shape, stream) } {
                    return Ok(Acquired {
                        entry,
                        same_shape: true,
                    });
                }
            }
        }
    }
    acquire_slow(cache, device, request, stream, &resolve()?)
}

#[cold]
fn acquire_slow(
    cache: &'static Cache,
    device: i32,
    request: &Request,
    stream: Option<&'static Stream>,
    resolved: &Resolved,
) -> Result<Acquired> {
    let retention = &cache.device(device)?.retention;
    let index = thread::index(cache);
    let shape = {
        let mut state = lock_drained(index);
        let own = state.device_or_new(device, retention);
        let shape = own.shape(request, resolved);
        // SAFETY: the shape is this index's.
        unsafe {
            if let Some((entry, same_shape)) = own.take_settled_or_fit(shape, stream) {
                return Ok(Acquired { entry, same_shape });
            }
            // The count keeps the shape while the lock is not held.
            (*shape).users += 1;
        }
        shape
    };
    let want = Want {
        cache,
        index,
        device,
        shape,
        stream,
    };
    let result = want
        .take_left_over(resolved)
        .map_or_else(|| want.take_memory(resolved), Ok);
    let _state = index.lock();
    // SAFETY: the count taken above kept it.
    unsafe { (*shape).users -= 1 };
    result
}

struct Want {
    cache: &'static Cache,
    index: &'static Index,
    device: i32,
    /// In `index`, kept by a count.
    shape: *mut Shape,
    stream: Option<&'static Stream>,
}

impl Want {
    fn take_left_over(&self, resolved: &Resolved) -> Option<Acquired> {
        self.take_shared(resolved, false)
    }

    /// Takes from what ended threads have left: what is ordered on the stream, or with `any` whatever fits.
    fn take_shared(&self, resolved: &Resolved, any: bool) -> Option<Acquired> {
        let mut state = self.cache.shared.lock();
        let shared = state.device(self.device)?;
        if shared.counters.held_count == 0 {
            return None;
        }
        let shape = shared.shape_of(resolved);
        // SAFETY: the shape is the shared index's; what was taken from it is the caller's alone.
        let taken = unsafe {
            let taken = if any {
                shared.take_any(shape)
            } else {
                shared.take_settled_or_fit(shape, self.stream)
            };
            taken.map(|(entry, same_shape)| (entry, same_shape, shared.hand_over(entry)))
        };
        drop(state);
        // What is done leaves the shared index as soon as somebody looks.
        drop_done(&[&self.cache.shared], self.device, Looks::FEW, false);
        let (entry, same_shape, indexed) = taken?;
        self.make_live(entry, indexed);
        Some(Acquired { entry, same_shape })
    }

    fn take_memory(&self, resolved: &Resolved) -> Result<Acquired> {
        let retention = &self.cache.device(self.device)?.retention;
        let bytes = resolved.bytes;
        let mut indexed = bytes <= retention.limit() && retention.reserve(bytes);
        if !indexed && bytes <= retention.limit() {
            enforce_limit(self.cache, self.device, bytes, Looks::FEW);
            indexed = retention.reserve(bytes);
        }
        if !indexed && mistake::is(Mistake::OverLimitIsIndexed) {
            retention.charge(bytes);
            indexed = true;
        }
        if !indexed {
            if let Some(acquired) = self.under_pressure(resolved) {
                return Ok(acquired);
            }
        }
        let taken = match self.new_memory(resolved) {
            Ok(New::Block(block)) => match self.new_entry(bytes, block) {
                Ok(entry) => {
                    self.make_live(entry, indexed);
                    self.count_miss();
                    return Ok(Acquired {
                        entry,
                        same_shape: false,
                    });
                }
                Err(error) => Err(error),
            },
            Ok(New::Reused(acquired)) => Ok(acquired),
            Err(error) => Err(error),
        };
        // Nothing new came of it.
        if indexed {
            retention.give_back(bytes);
        }
        taken
    }

    /// An entry around the block, which goes back to the pool where there is none.
    fn new_entry(&self, bytes: u64, block: Option<memory::Block>) -> Result<*mut Entry> {
        let entry = match (hooks().take)() {
            Ok(entry) => entry,
            Err(error) => {
                if let Some(block) = block {
                    memory::release(block, Accesses::default());
                }
                return Err(error);
            }
        };
        // SAFETY: a new entry is the caller's alone.
        unsafe {
            (*entry).device = self.device;
            (*entry).charge = bytes;
            (*entry).block = block;
            (*entry).wrap = false;
            (*entry).transient = false;
        }
        Ok(entry)
    }

    fn new_memory(&self, resolved: &Resolved) -> Result<New> {
        if resolved.bytes == 0 {
            return Ok(New::Block(None));
        }
        let first = memory::allocate(self.device, resolved.bytes, resolved.align, false);
        let first = match first {
            Err(error) if error.status == Status::OutOfMemory => {
                if let Some(acquired) = self.under_pressure(resolved) {
                    return Ok(New::Reused(acquired));
                }
                memory::allocate(self.device, resolved.bytes, resolved.align, true)
            }
            other => other,
        };
        first.map(|block| New::Block(Some(block)))
    }

    /// Memory whose work is not over, made ordered by waits on the GPU. Only for a caller that names its stream.
    fn under_pressure(&self, resolved: &Resolved) -> Option<Acquired> {
        let stream = self.stream?;
        // A stream that captures waits for nothing outside of its capture.
        if stream.is_capturing().unwrap_or(true) {
            return None;
        }
        let own = {
            let mut state = self.index.lock();
            // SAFETY: the shape is this index's.
            state
                .device(self.device)
                .and_then(|own| unsafe { own.take_any(self.shape) })
        };
        let found = own
            .map(|(entry, same_shape)| Acquired { entry, same_shape })
            .or_else(|| self.take_shared(resolved, true));
        let acquired = found?;
        // SAFETY: the entry is the caller's alone.
        let ordered = unsafe {
            if mistake::is(Mistake::PressureDoesNotWait) {
                return Some(acquired);
            }
            (*acquired.entry)
                .accesses
                .get_mut()
                .order(AccessKind::Write, stream)
        };
        if ordered.is_err() {
            // What cannot be ordered is not offered again: its bytes go back once its work is seen complete.
            // SAFETY: as above.
            unsafe { super::discard(self.cache, acquired.entry) };
            return None;
        }
        Some(acquired)
    }

    fn make_live(&self, entry: *mut Entry, indexed: bool) {
        let mut state = self.index.lock();
        // SAFETY: the entry is the caller's alone, the shape is this index's.
        unsafe {
            (*entry).owner = self.index;
            if let Some(own) = state.device(self.device) {
                own.adopt_live(entry, self.shape, indexed);
            }
        }
    }

    fn count_miss(&self) {
        if let Some(own) = self.index.lock().device(self.device) {
            own.counters.misses += 1;
        }
    }
}

enum New {
    Block(Option<memory::Block>),
    Reused(Acquired),
}
