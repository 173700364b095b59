//! Which index belongs to the calling thread, and what becomes of it when the thread ends.

use std::cell::{Cell, RefCell, UnsafeCell};

use super::device_index::{Held, Release};
use super::index::Index;
use super::memo::Memos;
use super::{hooks, Cache};
use crate::observe::mistake::{self, Mistake};
use crate::observe::process;

type Pair = (&'static Cache, &'static Index);

#[derive(Default)]
struct Own {
    pairs: Vec<Pair>,
}

impl Drop for Own {
    fn drop(&mut self) {
        forget_hot();
        if process::is_forked_child() {
            return;
        }
        for (cache, index) in self.pairs.drain(..) {
            hand_over(cache, index);
        }
    }
}

/// What the calling thread used last. Has no destructor, so that reaching it costs little.
pub struct Hot {
    cache: Cell<*const Cache>,
    index: Cell<*const Index>,
    pub memos: UnsafeCell<Memos>,
}

thread_local! {
    static HOT: Hot = const {
        Hot {
            cache: Cell::new(std::ptr::null()),
            index: Cell::new(std::ptr::null()),
            memos: UnsafeCell::new(Memos::EMPTY),
        }
    };
    static OWN: RefCell<Own> = const { RefCell::new(Own { pairs: Vec::new() }) };
}

/// Runs `body` with the thread's memos, which it must not reach again inside.
#[inline(always)]
pub fn with_memos<R>(body: impl FnOnce(&mut Memos) -> R) -> R {
    // SAFETY: only this thread reaches its memos, and no body calls this function.
    HOT.with(|hot| body(unsafe { &mut *hot.memos.get() }))
}

fn forget_hot() {
    let _ = HOT.try_with(|hot| {
        hot.cache.set(std::ptr::null());
        hot.index.set(std::ptr::null());
    });
    with_memos(|memos| *memos = Memos::EMPTY);
}

/// The calling thread's index of the cache, made at its first use. A thread that is ending uses the shared one.
#[inline(always)]
pub fn index(cache: &'static Cache) -> &'static Index {
    let (of, index) = HOT.with(|hot| (hot.cache.get(), hot.index.get()));
    if std::ptr::eq(of, cache) {
        // SAFETY: set below, from references to what is never freed.
        return unsafe { &*index };
    }
    find_or_make(cache)
}

#[cold]
fn find_or_make(cache: &'static Cache) -> &'static Index {
    let found = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        match own.pairs.iter().find(|(of, _)| std::ptr::eq(*of, cache)) {
            Some((_, index)) => *index,
            None => {
                let index = cache.new_index();
                own.pairs.push((cache, index));
                index
            }
        }
    });
    match found {
        Ok(index) => {
            HOT.with(|hot| {
                hot.cache.set(cache);
                hot.index.set(index);
            });
            index
        }
        Err(_) => &cache.shared,
    }
}

/// Whether the calling thread owns this index.
#[inline(always)]
pub fn owns(index: *const Index) -> bool {
    let current = HOT.with(|hot| hot.index.get());
    std::ptr::eq(current, index) || owns_other(index)
}

#[cold]
fn owns_other(index: *const Index) -> bool {
    OWN.try_with(|own| {
        own.borrow()
            .pairs
            .iter()
            .any(|(_, owned)| std::ptr::eq(*owned, index))
    })
    .unwrap_or(false)
}

/// Ends the calling thread's index of this cache now, as its end would.
pub fn detach(cache: &'static Cache) {
    let pair = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        let place = own
            .pairs
            .iter()
            .position(|(of, _)| std::ptr::eq(*of, cache))?;
        Some(own.pairs.swap_remove(place))
    });
    forget_hot();
    if let Ok(Some((cache, index))) = pair {
        hand_over(cache, index);
    }
}

/// Live entries become unindexed, held ones go to the shared index. Only moves entries: no GPU call, no callback.
fn hand_over(cache: &'static Cache, index: &'static Index) {
    let mut state = index.lock();
    for entry in index.take_remote(true) {
        if mistake::is(Mistake::ThreadEndForgetsList) {
            continue;
        }
        // SAFETY: entries on the list are this index's.
        unsafe {
            let Some(device) = state.device((*entry).device) else {
                continue;
            };
            if let Held::Drop(_) = device.hold(entry, Release::ThreadEnd) {
                unreachable!("a thread's end drops nothing");
            }
        }
    }
    for place in 0..state.devices.len() {
        let Some(device) = state.devices[place].as_deref_mut() else {
            continue;
        };
        if !mistake::is(Mistake::ThreadEndKeepsIndexed) {
            device.unindex_live();
        }
        let held = device.take_all();
        let waiting = std::mem::take(&mut device.waiting);
        for shell in device.shells.iter_mut().flat_map(std::mem::take) {
            (hooks().give)(shell);
        }
        let retention = device.retention;
        let history = device.counters.take_history();
        let mut shared = cache.shared.lock();
        let into = shared.device_or_new(place as i32, retention);
        for (entry, key) in held {
            if mistake::is(Mistake::ThreadEndDropsBytes) {
                continue;
            }
            // SAFETY: just taken out of this index; it is nobody else's.
            unsafe {
                (*entry).owner = &cache.shared;
                (*entry).transient = true;
                into.adopt_held(entry, &key);
            }
        }
        for &entry in &waiting {
            // SAFETY: as above.
            unsafe { (*entry).owner = &cache.shared };
        }
        into.waiting.extend(waiting);
        into.counters.add(&history);
    }
    state.closed = true;
    let over = state.is_over();
    drop(state);
    if over {
        cache.recycle_index(index);
    }
}
