//! Foreign memory: charged nothing, its shells used again, its owner told once when nobody can observe it any more.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::entry::Entry;
use super::index::Index;
use super::{hooks, thread, Cache};
use crate::error::Result;
use crate::timeline::{Looks, Polls};

/// Which pool of shells a wrap takes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellKind {
    Tensor = 0,
    Image = 1,
}

/// A live entry for foreign memory: an idle shell of the calling thread where it has one. The other idle shells of that
/// kind are dropped, unless they are to be kept for further wraps.
pub fn acquire(
    cache: &'static Cache,
    device: i32,
    kind: ShellKind,
    keep_others: bool,
) -> Result<*mut Entry> {
    let retention = &cache.device(device)?.retention;
    super::retire(cache, device);
    let index = thread::index(cache);
    let mut state = index.lock();
    let own = state.device_or_new(device, retention);
    let shells = &mut own.shells[kind as usize];
    let entry = shells.pop();
    let dropped = if keep_others {
        Vec::new()
    } else {
        std::mem::take(shells)
    };
    // Where this fails there was no shell, so none is dropped.
    let entry = entry.map_or_else(hooks().take, Ok)?;
    own.counters.wrapped_count += 1;
    own.counters.indexed_wrapped += 1;
    // SAFETY: a shell or a new entry is the caller's alone.
    unsafe {
        (*entry).device = device;
        (*entry).owner = index;
        (*entry).epoch = own.epoch;
        (*entry).charge = 0;
        (*entry).transient = false;
        (*entry).shell = kind;
        (*entry).wrap = true;
    }
    drop(state);
    for shell in dropped {
        (hooks().give)(shell);
    }
    Ok(entry)
}

/// The last reference to a wrap is gone: its owner hears now, or once its work is seen complete. Its shell is kept for
/// later wraps where `keep_shell` says so.
///
/// # Safety
/// `entry` is a wrap and the caller's alone.
pub unsafe fn release(cache: &'static Cache, entry: *mut Entry, keep_shell: bool) {
    // SAFETY: the caller's promise; `owner` is never freed.
    unsafe {
        let index: &'static Index = &*(*entry).owner;
        (*entry).transient = !keep_shell;
        let done = (*entry).accesses.get_mut().poll();
        let mut state = index.lock();
        let closed = state.closed;
        if let Some(device) = state.device((*entry).device) {
            device.counters.wrapped_count -= 1;
            if (*entry).epoch == device.epoch {
                device.counters.indexed_wrapped -= 1;
            }
            if !done && device.retention.is_closed() {
                leave_behind([entry]);
            } else if !done && !closed {
                device.waiting.push_back(entry);
            } else if !done {
                // The owner's thread has ended: whoever looks at the shared index tells the owner.
                let retention = device.retention;
                let mut shared = cache.shared.lock();
                (*entry).owner = &cache.shared;
                shared
                    .device_or_new((*entry).device, retention)
                    .waiting
                    .push_back(entry);
            }
        }
        let over = state.is_over();
        drop(state);
        if done {
            finish(entry);
        }
        if over {
            cache.recycle_index(index);
        }
    }
}

/// Wraps of closed caches whose work goes on. Nobody looks into such a cache: whoever submits work looks here.
static LEFT_BEHIND: Mutex<VecDeque<LeftBehind>> = Mutex::new(VecDeque::new());
static ANY_LEFT_BEHIND: AtomicBool = AtomicBool::new(false);

struct LeftBehind(*mut Entry);
// SAFETY: it is in no other list, so that whoever has it here, under the lock, has it alone.
unsafe impl Send for LeftBehind {}

/// # Safety
/// The entries are wraps and the caller's alone.
pub unsafe fn leave_behind(entries: impl IntoIterator<Item = *mut Entry>) {
    let mut left = LEFT_BEHIND.lock();
    for entry in entries {
        // SAFETY: the caller's promise.
        unsafe { (*entry).transient = true };
        left.push_back(LeftBehind(entry));
        ANY_LEFT_BEHIND.store(true, Ordering::Release);
    }
}

/// Tells the owners of wraps of closed caches whose work is done by now, as far as `looks` goes.
pub fn finish_left_behind(looks: Looks) {
    if !ANY_LEFT_BEHIND.load(Ordering::Acquire) {
        return;
    }
    let mut polls = Polls::new(looks);
    // SAFETY: an entry that is left behind is touched under the list's lock alone.
    let accesses = |left: &LeftBehind| unsafe { &mut *(*left.0).accesses.data_ptr() };
    polls.note(LEFT_BEHIND.lock().iter().map(|left| &*accesses(left)));
    polls.ask();
    let done = {
        let mut left = LEFT_BEHIND.lock();
        let done = looks.take_done(&mut left, |left| accesses(left).is_done());
        ANY_LEFT_BEHIND.store(!left.is_empty(), Ordering::Release);
        done
    };
    for LeftBehind(entry) in done {
        // SAFETY: just taken out of its list, its work done.
        unsafe { finish(entry) };
    }
}

/// Tells the owner, with no lock held, since the callback may call back into the library; then keeps the empty wrap as a
/// shell of the index that owns it, or drops it where that one is over.
///
/// # Safety
/// `entry` is a wrap that is in no list and the caller's alone; its work is done.
pub unsafe fn finish(entry: *mut Entry) {
    // What a callback finishes comes after it: callbacks that release many others would use up the stack.
    let nested = FINISHING.try_with(|waiting| match &mut *waiting.borrow_mut() {
        Some(waiting) => {
            waiting.push_back(entry);
            true
        }
        first => {
            *first = Some(VecDeque::new());
            false
        }
    });
    if nested == Ok(true) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { finish_one(entry) };
    let next = || {
        FINISHING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            let next = waiting.as_mut().and_then(VecDeque::pop_front);
            if next.is_none() {
                *waiting = None;
            }
            next
        })
    };
    while let Ok(Some(entry)) = next() {
        // SAFETY: it was given to this function by somebody who promised.
        unsafe { finish_one(entry) };
    }
}

thread_local! {
    /// What is to be finished when the callback that runs on this thread returns; `None` while none runs.
    static FINISHING: RefCell<Option<VecDeque<*mut Entry>>> = const { RefCell::new(None) };
}

/// # Safety
/// As `finish`.
unsafe fn finish_one(entry: *mut Entry) {
    // SAFETY: the caller's promise; the callback's contract is its owner's.
    unsafe {
        (*entry).accesses.get_mut().clear();
        if let Some((callback, context)) = (*entry).on_free.take() {
            callback(context);
        }
        let index = (*entry).owner;
        if thread::owns(index) && !(*entry).transient {
            let mut state = (*index).lock();
            if let Some(device) = state.device((*entry).device) {
                if (*entry).epoch == device.epoch {
                    device.shells[(*entry).shell as usize].push(entry);
                    return;
                }
            }
        }
        (hooks().give)(entry);
    }
}
