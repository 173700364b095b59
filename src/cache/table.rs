//! How an index finds idle entries: requests, shapes, their buckets, and nodes of one capacity.

use smallvec::SmallVec;

use super::entry::{Entry, List, BUCKET, HOME_DONE, HOME_SEVERAL};
use crate::observe::mistake::{self, Mistake};
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

/// One exact key, and the idle entries whose last descriptor it was, by capacity.
pub struct Shape {
    /// Entries of just the bytes that the key needs.
    pub primary: Bucket,
    /// Larger ones, which came here by a loose fit.
    #[allow(clippy::vec_box)] // Entries point to the buckets, which must not move.
    pub others: Vec<Box<Bucket>>,
    pub class: ClassKey,
    pub exact: Box<[u64]>,
    pub bytes: u64,
    pub align: u64,
    /// Entries, live and held, whose bucket is one of these, and look-ups that are under way.
    pub users: u64,
}

/// Idle entries of one shape and one capacity.
pub struct Bucket {
    pub lists: Lists,
    pub shape: *mut Shape,
    pub node: *mut SizeNode,
    /// The node's list has it. It stays there when it runs empty, until a look-up passes by.
    pub listed: bool,
}

/// One class and one capacity: which buckets may have an entry of that kind.
pub struct SizeNode {
    pub buckets: Vec<*mut Bucket>,
    /// Buckets that point here.
    pub users: u64,
}

/// Entries of one bucket, apart by where their open accesses lie, so that a look-up sees at once which are ready.
#[derive(Default)]
pub struct Lists {
    done: List<BUCKET>,
    homes: Vec<(usize, List<BUCKET>)>,
}

/// A look-up asks the driver at most this often.
pub const POLL_BUDGET: u32 = 8;
/// Of entries with accesses on several streams, so many are looked at.
const SEVERAL_LOOKED_AT: usize = 4;

impl Lists {
    pub fn is_empty(&self) -> bool {
        self.done.is_empty() && self.homes.iter().all(|(_, list)| list.is_empty())
    }

    #[inline(always)]
    fn list(&mut self, home: usize) -> &mut List<BUCKET> {
        if home == HOME_DONE {
            return &mut self.done;
        }
        self.list_of(home)
    }

    fn list_of(&mut self, home: usize) -> &mut List<BUCKET> {
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
    #[inline(always)]
    pub unsafe fn push(&mut self, entry: *mut Entry) {
        // SAFETY: passed on.
        unsafe { self.list((*entry).home).push(entry) }
    }

    /// # Safety
    /// `entry` was pushed here and its `home` has not changed since.
    #[inline(always)]
    pub unsafe fn remove(&mut self, entry: *mut Entry) {
        // SAFETY: passed on.
        unsafe { self.list((*entry).home).remove(entry) }
    }

    /// The newest entry whose accesses are all on `stream`, else the newest without open accesses. Asks no driver.
    #[inline(always)]
    pub fn ready(&self, stream: Option<&'static Stream>) -> Option<*mut Entry> {
        if self.homes.is_empty() {
            return self.done.newest();
        }
        self.ready_on(stream).or_else(|| self.done.newest())
    }

    fn ready_on(&self, stream: Option<&'static Stream>) -> Option<*mut Entry> {
        let key = std::ptr::from_ref(stream?) as usize;
        self.homes
            .iter()
            .find(|(home, _)| *home == key)
            .and_then(|(_, list)| list.newest())
    }

    /// An entry whose accesses lie elsewhere, but are done, or ordered on `stream` without any further wait. Asks the
    /// driver while the budget lasts.
    pub fn settled(&self, stream: Option<&'static Stream>, budget: &mut u32) -> Option<*mut Entry> {
        let settled = |entry: &*mut Entry, budget: &mut u32| {
            // SAFETY: the entry is in this list, so the index owns it and nobody else locks its accesses.
            let accesses = unsafe { (**entry).accesses.get_mut() };
            if stream.is_some() && mistake::is(Mistake::ReusePendingAnyStream) {
                return true;
            }
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
            let looked_at = if *home == HOME_SEVERAL {
                SEVERAL_LOOKED_AT
            } else {
                1
            };
            let found = list
                .iter()
                .take(looked_at)
                .find(|entry| settled(entry, budget));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Any entry at all, the oldest of its list: for reuse under pressure, after a wait on the GPU.
    pub fn any(&self) -> Option<*mut Entry> {
        self.done
            .newest()
            .or_else(|| self.homes.iter().find_map(|(_, list)| list.iter().next()))
    }
}

/// From requests to shapes: open addressing, rebuilt when it fills.
pub struct RequestTable {
    slots: Vec<Option<Box<RequestNode>>>,
    used: usize,
}

struct RequestNode {
    hash: u64,
    head: [u64; 5],
    rank: usize,
    dims: [i64; MAX_DIMS],
    shape: *mut Shape,
}

impl RequestNode {
    #[inline(always)]
    fn is(&self, request: &Request) -> bool {
        // Written out: a call of memcmp costs more than these few words.
        let heads = self
            .head
            .iter()
            .zip(&request.head)
            .fold(0, |differ, (a, b)| differ | (a ^ b));
        self.rank == request.dims.len()
            && self
                .dims
                .iter()
                .zip(request.dims)
                .fold(heads, |differ, (a, b)| differ | (a ^ b) as u64)
                == 0
    }
}

#[inline(always)]
fn hash(request: &Request) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let [first, second, third, fourth, fifth] = request.head;
    let mut hash =
        first ^ second.rotate_left(17) ^ third.rotate_left(31) ^ fourth.rotate_left(43) ^ fifth;
    for dim in request.dims {
        hash = hash.wrapping_mul(FACTOR).wrapping_add(*dim as u64);
    }
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> 32)
}

impl RequestTable {
    pub fn new() -> RequestTable {
        RequestTable {
            slots: Vec::new(),
            used: 0,
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        debug_assert_eq!(self.used, self.slots.iter().flatten().count());
        self.used
    }

    #[inline(always)]
    pub fn find(&self, request: &Request) -> Option<*mut Shape> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let hash = hash(request);
        let mut place = hash as usize & mask;
        while let Some(node) = &self.slots[place] {
            if node.hash == hash && node.is(request) {
                return Some(node.shape);
            }
            place = (place + 1) & mask;
        }
        None
    }

    /// Notes what a request comes to; it is not in the table yet.
    pub fn insert(&mut self, request: &Request, shape: *mut Shape) {
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
            shape,
        }));
    }

    /// Forgets the requests whose shape is not to be kept.
    pub fn retain(&mut self, keep: impl FnMut(*mut Shape) -> bool) {
        self.rebuild(self.slots.len(), keep);
    }

    fn rebuild(&mut self, size: usize, mut keep: impl FnMut(*mut Shape) -> bool) {
        let old = std::mem::replace(&mut self.slots, (0..size).map(|_| None).collect());
        self.used = 0;
        for node in old.into_iter().flatten() {
            if keep(node.shape) {
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
