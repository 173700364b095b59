//! What one thread may match on one device of one cache, in which order it was released, and the counts.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::counters::Counters;
use super::entry::{Entry, List, AGE, HOME_DONE, HOME_SEVERAL};
use super::limit::Retention;
use super::table::{
    Bucket, ClassKey, Lists, Request, RequestTable, Resolved, Shape, SizeNode, POLL_BUDGET,
};
use crate::observe::mistake::{self, Mistake};
use crate::timeline::{Home, Stream};

pub struct DeviceIndex {
    pub retention: &'static Retention,
    /// Entries with another epoch are not indexed.
    pub epoch: u64,
    pub counters: Counters,
    requests: RequestTable,
    shapes: HashMap<Box<[u64]>, Box<Shape>>,
    classes: HashMap<ClassKey, BTreeMap<u64, Box<SizeNode>>>,
    /// Held entries that stay, the longest held first.
    pub(super) ages: List<AGE>,
    /// Held entries that leave once their work is done.
    pub(super) transients: List<AGE>,
    /// Shapes and nodes are swept when there are this many.
    sweep_at: usize,
    /// How often that has happened: pointers to shapes from before may be dead.
    pub sweeps: u64,
    /// Idle shells of wraps, by kind of object.
    pub shells: [Vec<*mut Entry>; 2],
    /// Wraps that nobody observes, whose work is not seen complete.
    pub waiting: VecDeque<*mut Entry>,
}

/// Where a release comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Release {
    Call,
    /// Another thread's list, of which there may be many: the driver is not asked under the lock.
    List,
    /// A thread's end, which makes no GPU call: what would go back to the driver stays until somebody looks.
    ThreadEnd,
}

/// What becomes of an entry that was just released.
pub enum Held {
    Kept,
    /// Its bytes go to the pool, outside the lock.
    Drop(*mut Entry),
}

impl DeviceIndex {
    pub fn new(retention: &'static Retention) -> DeviceIndex {
        DeviceIndex {
            retention,
            epoch: 1,
            counters: Counters::default(),
            requests: RequestTable::new(),
            shapes: HashMap::new(),
            classes: HashMap::new(),
            ages: List::new(),
            transients: List::new(),
            sweep_at: 256,
            sweeps: 0,
            shells: [Vec::new(), Vec::new()],
            waiting: VecDeque::new(),
        }
    }

    #[inline(always)]
    pub fn known(&self, request: &Request) -> Option<*mut Shape> {
        self.requests.find(request)
    }

    /// The shape of a resolved request, made where there is none.
    pub fn shape(&mut self, request: &Request, resolved: &Resolved) -> *mut Shape {
        if let Some(shape) = self.requests.find(request) {
            return shape;
        }
        let shape = self.shape_of(resolved);
        self.requests.insert(request, shape);
        shape
    }

    /// The shape of a key that no request is noted for.
    pub fn shape_of(&mut self, resolved: &Resolved) -> *mut Shape {
        self.sweep();
        self.exact_shape(
            &resolved.class,
            &resolved.exact,
            resolved.bytes,
            resolved.align,
        )
    }

    fn exact_shape(
        &mut self,
        class: &ClassKey,
        exact: &[u64],
        bytes: u64,
        align: u64,
    ) -> *mut Shape {
        if let Some(shape) = self.shapes.get_mut(exact) {
            return &mut **shape;
        }
        let node = self.size_node(class, bytes);
        let mut shape = Box::new(Shape {
            primary: Bucket {
                lists: Lists::default(),
                shape: std::ptr::null_mut(),
                node,
                listed: false,
            },
            others: Vec::new(),
            class: *class,
            exact: exact.into(),
            bytes,
            align,
            users: 0,
        });
        let place: *mut Shape = &mut *shape;
        shape.primary.shape = place;
        self.shapes.insert(exact.into(), shape);
        place
    }

    /// The node of a capacity, with one more bucket that points to it.
    fn size_node(&mut self, class: &ClassKey, capacity: u64) -> *mut SizeNode {
        let sizes = self.classes.entry(*class).or_default();
        let node = sizes.entry(capacity).or_insert_with(|| {
            Box::new(SizeNode {
                buckets: Vec::new(),
                users: 0,
            })
        });
        node.users += 1;
        &mut **node
    }

    /// The shape's bucket for entries of this capacity.
    ///
    /// # Safety
    /// `shape` is one of this index's.
    unsafe fn bucket(&mut self, shape: *mut Shape, capacity: u64) -> *mut Bucket {
        // SAFETY: the caller's promise; buckets live as long as their shape.
        unsafe {
            if capacity == (*shape).bytes {
                return &mut (*shape).primary;
            }
            let class = (*shape).class;
            let node = self.size_node(&class, capacity);
            if let Some(known) = (*shape)
                .others
                .iter_mut()
                .find(|bucket| bucket.node == node)
            {
                (*node).users -= 1;
                return &mut **known;
            }
            let mut bucket = Box::new(Bucket {
                lists: Lists::default(),
                shape,
                node,
                listed: false,
            });
            let place: *mut Bucket = &mut *bucket;
            (*shape).others.push(bucket);
            place
        }
    }

    /// How many requests, shapes and sizes are remembered, and how often those without users were swept away.
    #[cfg(test)]
    pub fn remembered(&self) -> ([usize; 3], u64) {
        let sizes = self.classes.values().map(BTreeMap::len).sum();
        let requests = self.requests.len();
        ([requests, self.shapes.len(), sizes], self.sweeps)
    }

    /// Forgets shapes and nodes that nothing points to, so that a program with ever new shapes does not grow.
    fn sweep(&mut self) {
        if self.shapes.len() < self.sweep_at {
            return;
        }
        self.sweeps += 1;
        // SAFETY: requests and nodes point to shapes of this index, which are dropped only below, after them; a shape
        // without users has no entries in its buckets.
        unsafe {
            self.requests.retain(|shape| (*shape).users > 0);
            for node in self.classes.values_mut().flat_map(BTreeMap::values_mut) {
                node.buckets.retain(|bucket| (*(**bucket).shape).users > 0);
            }
            self.shapes.retain(|_, shape| {
                if shape.users > 0 {
                    return true;
                }
                (*shape.primary.node).users -= 1;
                for bucket in &shape.others {
                    (*bucket.node).users -= 1;
                }
                false
            });
        }
        for sizes in self.classes.values_mut() {
            sizes.retain(|_, node| node.users > 0);
        }
        self.classes.retain(|_, sizes| !sizes.is_empty());
        self.sweep_at = (self.shapes.len() * 2).max(256);
    }

    /// Takes an idle entry of just this shape and size that is ready for `stream`, without asking the driver.
    ///
    /// # Safety
    /// `shape` is one of this index's.
    #[inline(always)]
    pub unsafe fn take_ready(
        &mut self,
        shape: *mut Shape,
        stream: Option<&'static Stream>,
    ) -> Option<*mut Entry> {
        // SAFETY: the caller's promise; what the lists hold is owned by this index.
        unsafe {
            let entry = (*shape).primary.lists.ready(stream)?;
            self.counters.hits_exact += 1;
            self.take(entry);
            Some(entry)
        }
    }

    /// Takes an entry of the shape whose work elsewhere is over or ordered, else the smallest that fits and is ready.
    ///
    /// # Safety
    /// `shape` is one of this index's.
    pub unsafe fn take_settled_or_fit(
        &mut self,
        shape: *mut Shape,
        stream: Option<&'static Stream>,
    ) -> Option<(*mut Entry, bool)> {
        let mut budget = POLL_BUDGET;
        // SAFETY: passed on.
        unsafe {
            self.take_by(shape, |lists| {
                lists
                    .ready(stream)
                    .or_else(|| lists.settled(stream, &mut budget))
            })
        }
    }

    /// Takes an entry whatever work it waits for, the exact one first: the caller makes its stream wait on the GPU.
    ///
    /// # Safety
    /// `shape` is one of this index's.
    pub unsafe fn take_any(&mut self, shape: *mut Shape) -> Option<(*mut Entry, bool)> {
        // SAFETY: passed on.
        unsafe { self.take_by(shape, Lists::any) }
    }

    /// Takes the entry that `pick` finds: in the shape's own buckets, then in those of the smallest capacity that fits.
    unsafe fn take_by(
        &mut self,
        shape: *mut Shape,
        mut pick: impl FnMut(&Lists) -> Option<*mut Entry>,
    ) -> Option<(*mut Entry, bool)> {
        // SAFETY: the caller's promise; what the lists hold is owned by this index.
        unsafe {
            let exact = pick(&(*shape).primary.lists).or_else(|| {
                (*shape)
                    .others
                    .iter()
                    .find_map(|bucket| pick(&bucket.lists))
            });
            if let Some(entry) = exact {
                self.counters.hits_exact += 1;
                self.take(entry);
                return Some((entry, true));
            }
            let entry = self.find_fit(&(*shape).class, (*shape).bytes, (*shape).align, pick)?;
            self.counters.hits_fit += 1;
            self.take(entry);
            (*(*(*entry).bucket).shape).users -= 1;
            (*entry).bucket = self.bucket(shape, (*entry).charge);
            (*shape).users += 1;
            Some((entry, false))
        }
    }

    fn find_fit(
        &mut self,
        class: &ClassKey,
        bytes: u64,
        align: u64,
        mut pick: impl FnMut(&Lists) -> Option<*mut Entry>,
    ) -> Option<*mut Entry> {
        if bytes == 0 {
            return None;
        }
        let bytes = match mistake::is(Mistake::FitTooSmall) {
            true => bytes / 2,
            false => bytes,
        };
        for node in self
            .classes
            .get_mut(class)?
            .range_mut(bytes..)
            .map(|(_, node)| node)
        {
            let mut place = 0;
            while place < node.buckets.len() {
                let bucket = node.buckets[place];
                // SAFETY: nodes list buckets of this index; the entries in them are held by it.
                unsafe {
                    if (*bucket).lists.is_empty() {
                        (*bucket).listed = false;
                        node.buckets.swap_remove(place);
                        continue;
                    }
                    if let Some(entry) = pick(&(*bucket).lists) {
                        let pointer = (*entry).block.as_ref().map_or(0, |block| block.pointer);
                        if pointer & (align - 1) == 0 {
                            return Some(entry);
                        }
                    }
                }
                place += 1;
            }
        }
        None
    }

    /// Takes a held entry out of all lists and makes it live here.
    #[inline(always)]
    unsafe fn take(&mut self, entry: *mut Entry) {
        // SAFETY: the entry is held by this index, so its bucket is this index's.
        unsafe {
            self.unlink(entry);
            if (*entry).home != HOME_DONE {
                let accesses = (*entry).accesses.get_mut();
                if accesses.is_done() || mistake::is(Mistake::TakeForgetsAccesses) {
                    accesses.clear();
                } else {
                    self.counters.hits_pending += 1;
                }
            }
            if (*entry).transient {
                self.settle(entry);
            }
        }
    }

    /// An entry that was charged for its pending work alone is live again: it is indexed where the limit has room.
    #[cold]
    unsafe fn settle(&mut self, entry: *mut Entry) {
        // SAFETY: as in `take`.
        unsafe {
            let charge = (*entry).charge;
            if !mistake::is(Mistake::ReusedTransientChargedTwice) {
                self.retention.give_back(charge);
            }
            (*entry).transient = false;
            if !self.retention.reserve(charge) {
                self.counters.indexed_count -= 1;
                self.counters.indexed_bytes -= charge;
                (*entry).epoch = 0;
            }
        }
    }

    /// Takes a held entry out of all lists and out of the held counts; its charge is the caller's.
    #[inline(always)]
    pub(super) unsafe fn unlink(&mut self, entry: *mut Entry) {
        // SAFETY: as in `take`.
        unsafe {
            (*(*entry).bucket).lists.remove(entry);
            self.list_of_age(entry).remove(entry);
            self.counters.held_count -= 1;
            self.counters.held_bytes -= (*entry).charge;
        }
    }

    /// Makes a new entry, or one of another index, live here under `shape`. `indexed`: its charge is reserved.
    ///
    /// # Safety
    /// `entry` is the caller's alone; `shape` is one of this index's.
    pub unsafe fn adopt_live(&mut self, entry: *mut Entry, shape: *mut Shape, indexed: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            let charge = (*entry).charge;
            (*entry).bucket = self.bucket(shape, charge);
            (*shape).users += 1;
            (*entry).epoch = if indexed { self.epoch } else { 0 };
            self.counters.total_count += 1;
            self.counters.total_bytes += charge;
            if indexed {
                self.counters.indexed_count += 1;
                self.counters.indexed_bytes += charge;
            }
        }
    }

    /// Takes in an entry whose last reference is gone.
    ///
    /// # Safety
    /// `entry` is the caller's alone and was live in this index.
    #[inline(always)]
    pub unsafe fn hold(&mut self, entry: *mut Entry, when: Release) -> Held {
        // SAFETY: the caller's promise.
        unsafe {
            let indexed = (*entry).epoch == self.epoch;
            let accesses = (*entry).accesses.get_mut();
            if !accesses.is_empty() && accesses.is_done() {
                accesses.clear();
            }
            if accesses.is_empty() && indexed && !(*entry).transient {
                (*entry).home = HOME_DONE;
                self.link(entry);
                return Held::Kept;
            }
            self.hold_open(entry, indexed, when)
        }
    }

    /// The part of `hold` for entries with open accesses or without a place in the index.
    #[cold]
    unsafe fn hold_open(&mut self, entry: *mut Entry, indexed: bool, when: Release) -> Held {
        // SAFETY: as in `hold`.
        unsafe {
            let stays = indexed && !(*entry).transient;
            if !stays {
                let accesses = (*entry).accesses.get_mut();
                let done = match when {
                    // Nobody looks here any more; the pool keeps it until its work is done.
                    Release::Call | Release::List if self.retention.is_closed() => true,
                    Release::Call => accesses.poll(),
                    Release::List => accesses.is_done(),
                    Release::ThreadEnd => false,
                };
                if done {
                    if indexed {
                        self.retention.give_back((*entry).charge);
                    } else {
                        self.count_indexed(entry);
                    }
                    self.leave(entry);
                    return Held::Drop(entry);
                }
                if !indexed {
                    // Over the limit, but its work still needs it: it is charged and can be reused until that is done.
                    self.retention.charge((*entry).charge);
                    self.count_indexed(entry);
                    (*entry).epoch = self.epoch;
                }
                (*entry).transient = true;
            }
            (*entry).home = match (*entry).accesses.get_mut().home() {
                Home::None => HOME_DONE,
                Home::One(stream) => std::ptr::from_ref(stream) as usize,
                Home::Several => HOME_SEVERAL,
            };
            self.link(entry);
            Held::Kept
        }
    }

    #[inline(always)]
    unsafe fn link(&mut self, entry: *mut Entry) {
        // SAFETY: the entry is this index's alone and in no list.
        unsafe {
            (*(*entry).bucket).lists.push(entry);
            if !(*(*entry).bucket).listed {
                Self::list_in_node((*entry).bucket);
            }
            self.list_of_age(entry).push(entry);
            self.counters.held_count += 1;
            self.counters.held_bytes += (*entry).charge;
        }
    }

    /// `transient` does not change while the entry is held.
    #[inline(always)]
    unsafe fn list_of_age(&mut self, entry: *mut Entry) -> &mut List<AGE> {
        // SAFETY: the entry is this index's.
        if unsafe { (*entry).transient } {
            &mut self.transients
        } else {
            &mut self.ages
        }
    }

    #[cold]
    unsafe fn list_in_node(bucket: *mut Bucket) {
        // SAFETY: a bucket's node lives as long as it does.
        unsafe {
            (*(*bucket).node).buckets.push(bucket);
            (*bucket).listed = true;
        }
    }

    fn count_indexed(&mut self, entry: *mut Entry) {
        // SAFETY: the entry is this index's.
        let charge = unsafe { (*entry).charge };
        self.counters.indexed_count += 1;
        self.counters.indexed_bytes += charge;
    }

    /// Cuts an indexed entry, which is in no list, out of this index's counts and tables.
    pub(super) unsafe fn leave(&mut self, entry: *mut Entry) {
        // SAFETY: the entry is this index's.
        unsafe {
            let charge = (*entry).charge;
            self.counters.total_count -= 1;
            self.counters.total_bytes -= charge;
            self.counters.indexed_count -= 1;
            self.counters.indexed_bytes -= charge;
            self.forget(entry);
        }
    }

    /// Cuts an entry's ties to this index's tables.
    unsafe fn forget(&mut self, entry: *mut Entry) {
        // SAFETY: the entry's bucket is this index's, or null for a wrap.
        unsafe {
            if !(*entry).bucket.is_null() {
                (*(*(*entry).bucket).shape).users -= 1;
            }
            (*entry).bucket = std::ptr::null_mut();
            (*entry).epoch = 0;
            (*entry).transient = false;
        }
    }

    /// Puts a held entry of another index under the same key here.
    ///
    /// # Safety
    /// `entry` is the caller's alone, as `take_all` gave it.
    pub unsafe fn adopt_held(&mut self, entry: *mut Entry, key: &Key) {
        // SAFETY: the caller's promise.
        unsafe {
            let shape = self.exact_shape(&key.class, &key.exact, key.bytes, key.align);
            (*shape).users += 1;
            (*entry).bucket = self.bucket(shape, (*entry).charge);
            (*entry).epoch = self.epoch;
            self.counters.total_count += 1;
            self.counters.total_bytes += (*entry).charge;
            self.count_indexed(entry);
            self.link(entry);
        }
    }

    /// Takes every held entry out, with its key; their charges are the caller's.
    pub fn take_all(&mut self) -> Vec<(*mut Entry, Key)> {
        let entries: Vec<*mut Entry> = self.held().collect();
        entries
            .into_iter()
            .map(|entry| (entry, self.take_out(entry)))
            .collect()
    }

    /// Takes one held entry out.
    pub fn take_out(&mut self, entry: *mut Entry) -> Key {
        // SAFETY: the entry is held by this index.
        unsafe {
            let shape = &*(*(*entry).bucket).shape;
            let key = Key {
                class: shape.class,
                exact: shape.exact.clone(),
                bytes: shape.bytes,
                align: shape.align,
            };
            self.unlink(entry);
            let transient = (*entry).transient;
            self.leave(entry);
            (*entry).transient = transient;
            key
        }
    }

    /// Takes an entry that `take_settled_or_fit` or `take_any` just made live here out again, to be live elsewhere. Returns
    /// whether it is indexed, its charge reserved.
    ///
    /// # Safety
    /// `entry` is the caller's alone and live in this index.
    #[must_use]
    pub unsafe fn hand_over(&mut self, entry: *mut Entry) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let transient = (*entry).transient;
            let indexed = (*entry).epoch == self.epoch;
            if !indexed {
                self.count_indexed(entry);
            }
            self.leave(entry);
            (*entry).transient = transient;
            indexed
        }
    }
}

/// The key of an entry on its way between indexes.
pub struct Key {
    class: ClassKey,
    exact: Box<[u64]>,
    bytes: u64,
    align: u64,
}
