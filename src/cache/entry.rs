//! One cached thing: a block of memory with its accesses, and its places in the index's lists.
//!
//! While an entry is live its index fields rest; whoever drops the last reference owns it alone, until it is in an
//! index's lists, where that index's lock protects it.

use std::ffi::c_void;

use parking_lot::Mutex;

use super::index::Index;
use super::remote::Linked;
use super::table::Bucket;
use super::wrap::ShellKind;
use crate::memory::Block;
use crate::timeline::Accesses;

/// Which list a pair of links belongs to.
pub const BUCKET: usize = 0;
pub const AGE: usize = 1;

/// Called once when nobody can observe foreign memory any more and its work is done.
pub type OwnerRelease = unsafe extern "C" fn(context: *mut c_void);

#[derive(Clone, Copy)]
pub struct Links {
    prev: *mut Entry,
    next: *mut Entry,
}

#[repr(C)]
pub struct Entry {
    pub(super) links: [Links; 2],
    /// Its shape's bucket of its capacity, in the owner's index; null for a wrap.
    pub(super) bucket: *mut Bucket,
    /// Which of their lists holds it: `HOME_DONE`, `HOME_SEVERAL` or the address of the one stream.
    pub(super) home: usize,
    /// The index that counts it.
    pub(super) owner: *const Index,
    pub(super) device: i32,
    /// Leaves the index once its work is done, though it is charged until then. Does not change while it is held.
    pub(super) transient: bool,
    /// Indexed while equal to the index's epoch; 0 never is.
    pub(super) epoch: u64,
    /// Bytes charged to the cache: the whole capacity, whatever the present descriptor needs.
    pub(super) charge: u64,
    /// Of a wrap: which shells it goes to.
    pub(super) shell: ShellKind,
    /// Next on the owner's list of remote releases.
    pub(super) remote_next: *mut Entry,
    pub block: Option<Block>,
    /// The memory is foreign.
    pub(super) wrap: bool,
    /// How the owner of foreign memory hears that it is free.
    pub(super) on_free: Option<(OwnerRelease, *mut c_void)>,
    pub accesses: Mutex<Accesses>,
}

pub const HOME_DONE: usize = 0;
pub const HOME_SEVERAL: usize = 1;

impl Entry {
    pub fn new() -> Entry {
        let none = Links {
            prev: std::ptr::null_mut(),
            next: std::ptr::null_mut(),
        };
        Entry {
            links: [none; 2],
            bucket: std::ptr::null_mut(),
            home: HOME_DONE,
            owner: std::ptr::null(),
            device: 0,
            transient: false,
            epoch: 0,
            charge: 0,
            shell: ShellKind::Tensor,
            remote_next: std::ptr::null_mut(),
            block: None,
            wrap: false,
            on_free: None,
            accesses: Mutex::new(Accesses::default()),
        }
    }

    /// Bytes charged to the cache for it; 0 for wraps.
    pub fn charge(&self) -> u64 {
        self.charge
    }

    pub fn device(&self) -> i32 {
        self.device
    }

    pub fn is_wrap(&self) -> bool {
        self.wrap
    }

    /// How the owner of a wrap's memory hears that nobody uses it any more.
    pub fn set_owner_release(&mut self, on_free: Option<(OwnerRelease, *mut c_void)>) {
        self.on_free = on_free;
    }
}

// SAFETY: the field is the entry's.
unsafe impl Linked for Entry {
    fn next(entry: *mut Entry) -> *mut *mut Entry {
        // SAFETY: an address is taken, nothing is read.
        unsafe { &raw mut (*entry).remote_next }
    }
}

impl Default for Entry {
    fn default() -> Entry {
        Entry::new()
    }
}

/// A doubly linked list through the entries' `LINK` pair.
pub struct List<const LINK: usize> {
    head: *mut Entry,
    tail: *mut Entry,
}

impl<const LINK: usize> Default for List<LINK> {
    fn default() -> Self {
        List::new()
    }
}

impl<const LINK: usize> List<LINK> {
    pub const fn new() -> Self {
        List {
            head: std::ptr::null_mut(),
            tail: std::ptr::null_mut(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// The one that came last.
    pub fn newest(&self) -> Option<*mut Entry> {
        (!self.tail.is_null()).then_some(self.tail)
    }

    pub fn iter(&self) -> Iter<LINK> {
        Iter { next: self.head }
    }

    /// # Safety
    /// `entry` is valid, owned by the caller's index and in no list of this kind.
    #[inline(always)]
    pub unsafe fn push(&mut self, entry: *mut Entry) {
        // SAFETY: the caller's promise; the tail is in this list, so it is valid too.
        unsafe {
            (*entry).links[LINK] = Links {
                prev: self.tail,
                next: std::ptr::null_mut(),
            };
            if self.tail.is_null() {
                self.head = entry;
            } else {
                (*self.tail).links[LINK].next = entry;
            }
        }
        self.tail = entry;
    }

    /// # Safety
    /// `entry` is in this very list.
    #[inline(always)]
    pub unsafe fn remove(&mut self, entry: *mut Entry) {
        // SAFETY: it is in this list, so its neighbours are valid entries of it.
        unsafe {
            let Links { prev, next } = (*entry).links[LINK];
            if prev.is_null() {
                self.head = next;
            } else {
                (*prev).links[LINK].next = next;
            }
            if next.is_null() {
                self.tail = prev;
            } else {
                (*next).links[LINK].prev = prev;
            }
        }
    }
}

/// From the oldest to the newest. The list must not change meanwhile.
pub struct Iter<const LINK: usize> {
    next: *mut Entry,
}

impl<const LINK: usize> Iterator for Iter<LINK> {
    type Item = *mut Entry;

    fn next(&mut self) -> Option<*mut Entry> {
        if self.next.is_null() {
            return None;
        }
        let entry = self.next;
        // SAFETY: the list holds valid entries and does not change while it is walked.
        self.next = unsafe { (*entry).links[LINK].next };
        Some(entry)
    }
}
