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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline;

    /// Numbers without a pattern (Vigna, splitmix64).
    fn words(seed: u64) -> impl Iterator<Item = u64> {
        (1..).map(move |count: u64| {
            let mut word = seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ word >> 31
        })
    }

    fn node(request: &Request) -> RequestNode {
        let mut table = RequestTable::new();
        table.insert(request, std::ptr::null_mut());
        let found = table.slots.into_iter().flatten().next();
        *found.expect("it was put there")
    }

    #[test]
    fn a_request_is_itself_and_no_other() {
        let head = [0x55, 0xaa, 0x1ff, 7, 0xf0f0];
        for rank in [0, 1, 4, MAX_DIMS] {
            let dims: Vec<i64> = (0..rank as i64).map(|dim| 0x155 << dim).collect();
            let whole = |head: [u64; 5], dims: &[i64]| node(&Request { head, dims });
            let same = Request { head, dims: &dims };
            let node = whole(head, &dims);
            assert!(node.is(&same));
            let words = head.len() + rank;
            let changed = |places: &[usize], flip: u64| {
                let (mut head, mut dims) = (head, dims.clone());
                for &place in places {
                    match head.get_mut(place) {
                        Some(word) => *word ^= flip,
                        None => dims[place - 5] ^= flip as i64,
                    }
                }
                let dims = &dims[..];
                node.is(&Request { head, dims })
            };
            for place in 0..words {
                // No bit in common, one bit, and two differences that could make up for each other.
                assert!(!changed(&[place], u64::MAX), "word {place} of rank {rank}");
                assert!(!changed(&[place], 1), "word {place} of rank {rank}");
                for second in 0..place {
                    assert!(!changed(&[place, second], 4), "words {place} and {second}");
                }
            }
            if rank < MAX_DIMS {
                let mut longer = dims.clone();
                longer.push(0);
                assert!(!node.is(&Request {
                    head,
                    dims: &longer
                }));
            }
        }
    }

    #[test]
    fn each_request_leads_to_its_shape() {
        let mut table = RequestTable::new();
        let shape = |number: usize| std::ptr::without_provenance_mut::<Shape>(8 * number + 8);
        let head = |number: usize| [1, 2, number as u64 % 7, 0, 0];
        for number in 0..300 {
            let dims = [number as i64, 3];
            let head = head(number);
            let request = Request { head, dims: &dims };
            assert_eq!(table.find(&request), None);
            table.insert(&request, shape(number));
            // Half of the slots are free, and no more than that is asked for.
            let least = (2 * (number + 1)).next_power_of_two().max(16);
            assert_eq!((table.len(), table.slots.len()), (number + 1, least));
        }
        for keep in [1, 3] {
            table.retain(|shape| (shape.addr() / 8 - 1) % keep == 0);
            for number in 0..300 {
                let dims = [number as i64, 3];
                let head = head(number);
                let found = table.find(&Request { head, dims: &dims });
                assert_eq!(found, (number % keep == 0).then(|| shape(number)));
            }
        }
    }

    /// Every bit of every word counts, whatever the others are; and the low bits, which choose the slot, spread.
    #[test]
    fn hashes_tell_requests_apart() {
        let bases = [[0; 5], [u64::MAX; 5], [0x5555_5555_5555_5555; 5]];
        for base in bases {
            let of = |head: [u64; 5]| {
                let dims = [];
                hash(&Request { head, dims: &dims })
            };
            for word in 0..5 {
                for bit in 0..64 {
                    let mut other = base;
                    other[word] ^= 1 << bit;
                    assert_ne!(of(base), of(other), "bit {bit} of word {word} of {base:x?}");
                }
            }
        }
        let mut places = [0; 16];
        let mut words = words(1);
        for _ in 0..1600 {
            let mut next = || words.next().expect("there is no end");
            let head = [next(), next(), next(), next(), next()];
            let dims = [next() as i64 >> 40];
            places[hash(&Request { head, dims: &dims }) as usize % 16] += 1;
        }
        assert!(
            places.iter().all(|count| (60..160).contains(count)),
            "{places:?}"
        );
    }

    /// Entries as an index holds them; they stay for the whole test.
    fn entry(home: usize) -> *mut Entry {
        let mut entry = Entry::new();
        entry.home = home;
        Box::leak(Box::new(entry))
    }

    fn stream() -> (&'static Stream, usize) {
        let handle = timeline::create(0, false).expect("the host backend makes streams");
        let stream = timeline::resolve(handle, 0).expect("a created stream is known");
        (stream, std::ptr::from_ref(stream).addr())
    }

    #[test]
    fn what_is_on_the_own_stream_comes_before_what_is_done() {
        let ((own, home), (other, _)) = (stream(), stream());
        let (done, queued) = (entry(HOME_DONE), entry(home));
        let mut lists = Lists::default();
        assert!(lists.is_empty());
        // SAFETY: entries of this test, each in one list.
        unsafe {
            lists.push(queued);
            assert!(!lists.is_empty());
            assert_eq!(lists.ready(Some(other)), None);
            lists.push(done);
            assert_eq!(lists.ready(Some(own)), Some(queued));
            assert_eq!(lists.ready(Some(other)), Some(done));
            assert_eq!(lists.ready(None), Some(done));
            lists.remove(queued);
            assert_eq!(lists.ready(Some(own)), Some(done));
            assert!(!lists.is_empty());
            lists.remove(done);
        }
        assert!(lists.is_empty());
    }

    /// Streams come and go: of those whose entries are gone few are remembered, of the others all.
    #[test]
    fn lists_of_streams_that_are_over_are_forgotten() {
        let mut lists = Lists::default();
        let kept: Vec<*mut Entry> = (1..=3).map(|place| entry(place * 64)).collect();
        // SAFETY: entries of this test, each in one list.
        unsafe {
            kept.iter().for_each(|entry| lists.push(*entry));
            for place in 10..100 {
                let passing = entry(place * 64);
                lists.push(passing);
                lists.remove(passing);
                assert!(lists.homes.len() <= 4);
            }
            kept.iter().for_each(|entry| lists.remove(*entry));
        }
        assert!(lists.is_empty());
    }

    /// Of one stream's entries the oldest is looked at, which is done first; of those on several streams a few.
    #[test]
    fn of_several_streams_entries_a_few_are_looked_at() {
        let ((busy, home), (consumer, _)) = (stream(), stream());
        let backend = crate::backend::current().expect("the host backend starts");
        let latch = backend.latch_create(0, busy.handle()).expect("a stream");
        let (sequence, _) = busy.submit();
        for (home, looked_at) in [(HOME_SEVERAL, SEVERAL_LOOKED_AT), (home, 1)] {
            for place in [looked_at - 1, looked_at] {
                let mut lists = Lists::default();
                for number in 0..=looked_at {
                    let next = entry(home);
                    // SAFETY: entries of this test, each in one list.
                    unsafe {
                        if number != place {
                            let kind = timeline::AccessKind::Write;
                            (*next).accesses.get_mut().record(kind, busy, sequence);
                        }
                        lists.push(next);
                    }
                }
                let found = lists.settled(Some(consumer), &mut 100);
                assert_eq!(found.is_some(), place < looked_at, "{place} of {looked_at}");
            }
        }
        backend.latch_open(latch).expect("it is closed");
    }
}
