//! The lock-free list on which other threads leave entries for an index, until its owner closes it.
//!
//! Names nothing of the crate but its atomics: `tests/interleavings.rs` compiles it a second time, with shuttle's.

use super::atomics::{AtomicPtr, Ordering};

/// What has a place for the next one of its list.
///
/// # Safety
/// `next` gives the address of a field of `entry`.
pub unsafe trait Linked {
    fn next(entry: *mut Self) -> *mut *mut Self;
}

pub struct RemoteList<T> {
    /// The newest, or `closed()`.
    head: AtomicPtr<T>,
}

/// No address of an entry.
fn closed<T>() -> *mut T {
    std::ptr::without_provenance_mut(1)
}

impl<T: Linked> RemoteList<T> {
    pub fn new() -> RemoteList<T> {
        RemoteList {
            head: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    #[inline(always)]
    pub fn has_any(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        !head.is_null() && head != closed()
    }

    /// Leaves an entry for the owner; `false` when the list is closed, and then the entry stays the caller's.
    ///
    /// # Safety
    /// `entry` is valid, the caller's alone and in no list.
    pub unsafe fn push(&self, entry: *mut T) -> bool {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == closed() {
                return false;
            }
            // SAFETY: the caller's promise; it stays the caller's until the exchange below succeeds.
            unsafe { *T::next(entry) = head };
            match self
                .head
                .compare_exchange_weak(head, entry, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all that was left, oldest first; with `close` nothing is left here any more. Only the owner may call this, or
    /// whoever has its lock.
    pub fn take(&self, close: bool) -> Vec<*mut T> {
        let replacement = if close {
            closed()
        } else {
            std::ptr::null_mut()
        };
        if !close && !self.has_any() {
            return Vec::new();
        }
        let mut entry = self.head.swap(replacement, Ordering::AcqRel);
        let mut out = Vec::new();
        while !entry.is_null() && entry != closed() {
            out.push(entry);
            // SAFETY: entries on the list are the owner's since the exchange that put them there.
            entry = unsafe { *T::next(entry) };
        }
        out.reverse();
        out
    }

    /// Opens a closed list for another owner.
    pub fn reopen(&self) {
        self.head.store(std::ptr::null_mut(), Ordering::Release);
    }
}
