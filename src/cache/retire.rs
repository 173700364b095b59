//! Letting go of what is done. The driver is asked stream by stream with no index locked, so that no look-up waits for it.

use super::device_index::DeviceIndex;
use super::index::Index;
use super::limit::Retention;
use super::{free_entries, lock_drained, thread, wrap, Cache, CACHES};
use crate::memory;
use crate::timeline::{Looks, Polls};

/// Asks the driver about the streams that the indexes wait for: see `DeviceIndex::note_open`.
pub fn ask(indexes: &[&'static Index], device: i32, looks: Looks, all: bool) {
    let mut polls = Polls::new(looks);
    for index in indexes {
        if let Some(own) = lock_drained(index).device(device) {
            own.note_open(&mut polls, all);
        }
    }
    polls.ask();
}

/// Takes out what is known to be done: entries that only waited for that go to the pool, as does what passes the limit;
/// owners of wraps are told.
fn take_done(index: &'static Index, device: i32, looks: Looks) {
    let mut state = lock_drained(index);
    let Some(own) = state.device(device) else {
        return;
    };
    let mut done = own.take_done_transients(looks);
    done.extend(own.evict(looks, Retention::is_over));
    let told = own.take_done_waiting(looks);
    drop(state);
    free_entries(done);
    for entry in told {
        // SAFETY: just taken out of the waiting list, its work done.
        unsafe { wrap::finish(entry) };
    }
}

/// Retires what is done, a bounded number of looks at a time: called when work is submitted.
pub fn retire(cache: &'static Cache, device: i32) {
    for index in [thread::index(cache), &cache.shared] {
        let waits = index.lock().device(device).is_some_and(DeviceIndex::waits);
        if waits {
            ask(&[index], device, Looks::FEW, false);
            take_done(index, device, Looks::FEW);
        }
    }
    wrap::finish_left_behind(Looks::FEW);
    memory::collect(device, Looks::FEW);
}

/// Retires all that is done in every index.
pub fn retire_all(cache: &'static Cache, device: i32) {
    let indexes = cache.all_indexes();
    ask(&indexes, device, Looks::ALL, false);
    for index in indexes {
        take_done(index, device, Looks::ALL);
    }
}

/// `retire_all` for every cache, after work was waited for.
pub fn retire_everywhere(device: i32) {
    let caches = CACHES.lock().clone();
    for cache in caches {
        if cache.devices[device as usize].get().is_some() {
            retire_all(cache, device);
        }
    }
    wrap::finish_left_behind(Looks::ALL);
    memory::collect(device, Looks::ALL);
}

/// Lets go of what only waited for its work and is done: for whoever looks or counts.
pub fn drop_done(indexes: &[&'static Index], device: i32, looks: Looks, ask_all: bool) {
    ask(indexes, device, looks, ask_all);
    for index in indexes {
        let done = match index.lock().device(device) {
            Some(own) => own.take_done_transients(looks),
            None => continue,
        };
        free_entries(done);
    }
}
