//! How an index finds idle entries: requests, buckets of one exact key, and nodes of one capacity.

use smallvec::SmallVec;

use super::entry::{Entry, List, HOME_DONE, HOME_SEVERAL};
use crate::timeline::Stream;

/// What a caller asks for, before anything is computed from it: the same request always means the same key.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub head: [u64; 5],
    pub dims: &'a [i64],
}

/// Most dimensions that a request may have.
pub const MAX_DIMS: usize = 15;

/// Objects of one class may take each other's memory: same kind, and dtype and layout, or format.
pub type ClassKey = [u64; 3];

/// What a request comes to.
pub struct Resolved {
    pub class: ClassKey,
    /// Equal for equal shapes and strides of one class.
    pub exact: SmallVec<[u64; 36]>,
    pub bytes: u64,
    pub align: u64,
}

/// Idle entries of one exact key.
pub struct Bucket {
    pub lists: Lists<{ super::entry::BUCKET }>,
    pub class: ClassKey,
    pub exact: Box<[u64]>,
    pub bytes: u64,
    pub align: u64,
    /// Entries, live and held, that point here.
    pub users: u64,
}

/// Idle entries of one class and one capacity.
pub struct SizeNode {
    pub lists: Lists<{ super::entry::SIZE }>,
    pub class: ClassKey,
    pub capacity: u64,
    pub held: u64,
    /// Entries, live and held, that point here.
    pub users: u64,
}

/// Entries of one bucket or node, apart by where their open accesses lie, so that a look-up sees at once which are ready.
pub struct Lists<const LINK: usize> {
    done: List<LINK>,
    homes: SmallVec<[(usize, List<LINK>); 2]>,
}

/// A look-up asks the driver at most this often.
pub const POLL_BUDGET: u32 = 8;
/// Of entries with accesses on several streams, so many are looked at.
const SEVERAL_LOOKED_AT: usize = 4;

impl<const LINK: usize> Lists<LINK> {
    pub fn new() -> Self {
        Lists { done: List::new(), homes: SmallVec::new() }
    }

    fn list(&mut self, home: usize) -> &mut List<LINK> {
        if home == HOME_DONE {
            return &mut self.done;
        }
        if let Some(place) = self.homes.iter().position(|(key, _)| *key == home) {
            return &mut self.homes[place].1;
        }
        if self.homes.len() >= 4 {
            self.homes.retain(|(_, list)| !list.is_empty());
        }
        self.homes.push((home, List::new()));
        let last = self.homes.len() - 1;
        &mut self.homes[last].1
    }

    /// # Safety
    /// As `List::push`; `entry.home` is set.
    pub unsafe fn push(&mut self, entry: *mut Entry) {
        // SAFETY: passed on.
        unsafe { self.list((*entry).home).push(entry) }
    }

    /// # Safety
    /// `entry` was pushed here and its `home` has not changed since.
    pub unsafe fn remove(&mut self, entry: *mut Entry) {
        // SAFETY: passed on.
        unsafe { self.list((*entry).home).remove(entry) }
    }

    /// The newest entry whose accesses are all on `stream`, else the newest without open accesses. Asks no driver.
    pub fn ready(&self, stream: Option<&'static Stream>) -> Option<*mut Entry> {
        if let Some(stream) = stream {
            let key = std::ptr::from_ref(stream) as usize;
            for (home, list) in &self.homes {
                if *home == key {
                    if let Some(entry) = list.newest() {
                        return Some(entry);
                    }
                }
            }
        }
        self.done.newest()
    }

    /// An entry whose accesses lie elsewhere, but are done, or ordered on `stream` without any further wait. Asks the
    /// driver while the budget lasts.
    pub fn settled(&self, stream: Option<&'static Stream>, budget: &mut u32) -> Option<*mut Entry> {
        let settled = |entry: &*mut Entry, budget: &mut u32| {
            // SAFETY: the entry is in this list, so the index owns it and nobody else locks its accesses.
            let accesses = unsafe { (**entry).accesses.get_mut() };
            if stream.is_some_and(|stream| accesses.is_ordered_on(stream)) || accesses.is_done() {
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            accesses.poll()
        };
        for (home, list) in &self.homes {
            // The oldest of one stream is the first to be done.
            let looked_at = if *home == HOME_SEVERAL { SEVERAL_LOOKED_AT } else { 1 };
            let found = list.iter().take(looked_at).find(|entry| settled(entry, budget));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Any entry at all, the oldest of its list: for reuse under pressure, after a wait on the GPU.
    pub fn any(&self) -> Option<*mut Entry> {
        self.done.newest().or_else(|| self.homes.iter().find_map(|(_, list)| list.iter().next()))
    }
}

/// From requests to buckets: open addressing, rebuilt when it fills.
pub struct RequestTable {
    slots: Vec<Option<Box<RequestNode>>>,
    used: usize,
}

struct RequestNode {
    hash: u64,
    head: [u64; 5],
    rank: usize,
    dims: [i64; MAX_DIMS],
    bucket: *mut Bucket,
}

fn hash(request: &Request) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = request.dims.len() as u64;
    for word in request.head {
        hash = (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    }
    for dim in request.dims {
        hash = (hash ^ *dim as u64).wrapping_mul(FACTOR).rotate_left(29);
    }
    hash ^ (hash >> 32)
}

impl RequestTable {
    pub fn new() -> RequestTable {
        RequestTable { slots: Vec::new(), used: 0 }
    }

    pub fn find(&self, request: &Request) -> Option<*mut Bucket> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let hash = hash(request);
        let mut place = hash as usize & mask;
        while let Some(node) = &self.slots[place] {
            if node.hash == hash
                && node.head == request.head
                && node.rank == request.dims.len()
                && node.dims[..node.rank] == *request.dims
            {
                return Some(node.bucket);
            }
            place = (place + 1) & mask;
        }
        None
    }

    /// Notes what a request comes to; it is not in the table yet.
    pub fn insert(&mut self, request: &Request, bucket: *mut Bucket) {
        if (self.used + 1) * 2 > self.slots.len() {
            let size = (self.slots.len() * 2).max(16);
            self.rebuild(size, |_| true);
        }
        let mut dims = [0; MAX_DIMS];
        dims[..request.dims.len()].copy_from_slice(request.dims);
        self.place(Box::new(RequestNode {
            hash: hash(request),
            head: request.head,
            rank: request.dims.len(),
            dims,
            bucket,
        }));
    }

    /// Forgets the requests whose bucket is not to be kept.
    pub fn retain(&mut self, keep: impl FnMut(*mut Bucket) -> bool) {
        self.rebuild(self.slots.len(), keep);
    }

    fn rebuild(&mut self, size: usize, mut keep: impl FnMut(*mut Bucket) -> bool) {
        let old = std::mem::replace(&mut self.slots, (0..size).map(|_| None).collect());
        self.used = 0;
        for node in old.into_iter().flatten() {
            if keep(node.bucket) {
                self.place(node);
            }
        }
    }

    fn place(&mut self, node: Box<RequestNode>) {
        let mask = self.slots.len() - 1;
        let mut place = node.hash as usize & mask;
        while self.slots[place].is_some() {
            place = (place + 1) & mask;
        }
        self.slots[place] = Some(node);
        self.used += 1;
    }
}
