//! Handles: 24 bits of slot, 4 of kind, 36 of generation. A value is looked up and never dereferenced.
//!
//! Objects are never freed, so a look-up may always read one; the count of references says whether it is alive, and its
//! word whether it still is the one that the handle means.

use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::Mutex;

use super::object::{Object, ObjectRef};
use super::word::{Change, GENERATION_SHIFT, KIND_SHIFT, USERS_MASK};
use crate::error::{Error, Result, Status};
use crate::fail;

/// What crosses the C ABI in place of a pointer.
pub type Handle = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ObjectKind {
    Cache = 1,
    Tensor = 2,
    Image = 3,
    ImageBatch = 4,
    TensorBatch = 5,
    /// Known by its address alone: no caller ever gets the handle.
    Memory = 6,
}

impl ObjectKind {
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Cache => "cache",
            ObjectKind::Tensor => "tensor",
            ObjectKind::Image => "image",
            ObjectKind::ImageBatch => "image batch",
            ObjectKind::TensorBatch => "tensor batch",
            ObjectKind::Memory => "raw memory",
        }
    }

    fn from_bits(bits: u64) -> Option<ObjectKind> {
        match bits {
            1 => Some(ObjectKind::Cache),
            2 => Some(ObjectKind::Tensor),
            3 => Some(ObjectKind::Image),
            4 => Some(ObjectKind::ImageBatch),
            5 => Some(ObjectKind::TensorBatch),
            6 => Some(ObjectKind::Memory),
            _ => None,
        }
    }
}

const SLOT_BITS: u32 = 24;

const CHUNK: usize = 4096;
type Chunk = [AtomicPtr<Object>; CHUNK];
static CHUNKS: [AtomicPtr<Chunk>; (1 << SLOT_BITS) / CHUNK] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; (1 << SLOT_BITS) / CHUNK];

struct Slots {
    /// Handed out so far.
    taken: u32,
    limit: u32,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots {
    taken: 0,
    limit: 1 << SLOT_BITS,
});

#[cold]
fn too_many(argument: &str, handle: Handle) -> Error {
    Error::new(
        Status::CapacityExceeded,
        format!(
            "{argument} is {handle:#x}, which has {USERS_MASK} references, the most there can be"
        ),
    )
}

/// Lowers or restores how many slots there are, so that a test can run out of them.
#[doc(hidden)]
pub fn limit_slots(limit: u32) {
    SLOTS.lock().limit = limit.min(1 << SLOT_BITS);
}

/// Puts what `make` makes for its slot, an object that is never freed, where its handles lead.
pub fn new_slot(make: impl FnOnce(u32) -> *mut Object) -> Result<*mut Object> {
    let mut slots = SLOTS.lock();
    let slot = slots.taken;
    if slot >= slots.limit {
        fail!(
            Status::CapacityExceeded,
            "all {} slots for objects are taken, by live and idle ones of every kind; expected one to be free",
            slots.limit
        );
    }
    let place = &CHUNKS[slot as usize / CHUNK];
    if place.load(Ordering::Relaxed).is_null() {
        let chunk: Box<Chunk> = Box::new([const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNK]);
        place.store(Box::leak(chunk), Ordering::Release);
    }
    let object = make(slot);
    // SAFETY: the chunk was stored above or before and is never freed.
    unsafe {
        (&(*place.load(Ordering::Relaxed)))[slot as usize % CHUNK].store(object, Ordering::Release)
    };
    slots.taken = slot + 1;
    Ok(object)
}

#[inline(always)]
fn find(handle: Handle) -> Option<&'static Object> {
    let slot = (handle & USERS_MASK) as usize;
    let chunk = CHUNKS[slot / CHUNK].load(Ordering::Acquire);
    if chunk.is_null() {
        return None;
    }
    // SAFETY: chunks and objects are never freed.
    unsafe { (&*chunk)[slot % CHUNK].load(Ordering::Acquire).as_ref() }
}

#[cold]
fn refuse(handle: Handle, kind: ObjectKind, argument: &str) -> Error {
    let expected = kind.name();
    if handle == 0 {
        return Error::new(
            Status::InvalidHandle,
            format!("{argument} is null, expected a {expected} handle"),
        );
    }
    let of = ObjectKind::from_bits((handle >> KIND_SHIFT) & 0xf);
    let object = find(handle);
    match (object, of) {
        (Some(object), Some(of)) if of != kind && object.word.matches(handle) => Error::new(
            Status::WrongKind,
            format!(
                "{argument} is {handle:#x}, the handle of a {}, expected one of a {expected}",
                of.name()
            ),
        ),
        (Some(object), Some(_)) if object.had(handle >> GENERATION_SHIFT) => Error::new(
            Status::StaleHandle,
            format!(
                "{argument} is {handle:#x}, which was released, expected a live {expected} handle"
            ),
        ),
        _ => Error::new(
            Status::InvalidHandle,
            format!(
                "{argument} is {handle:#x}, which never was a handle, expected a {expected} handle"
            ),
        ),
    }
}

/// A reference to the live object that `handle` means.
#[inline]
pub fn acquire(handle: Handle, kind: ObjectKind, argument: &str) -> Result<ObjectRef> {
    if (handle >> KIND_SHIFT) & 0xf == kind as u64 {
        if let Some(reference) = find(handle).and_then(ObjectRef::try_new) {
            if reference.word.matches(handle) {
                return Ok(reference);
            }
        }
    }
    Err(refuse(handle, kind, argument))
}

/// Adds a user reference.
pub fn retain(handle: Handle, kind: ObjectKind, argument: &str) -> Result<()> {
    if (handle >> KIND_SHIFT) & 0xf == kind as u64 {
        if let Some(object) = find(handle) {
            match object.word.change(handle, true) {
                Change::Users(_) => return Ok(()),
                Change::Full => return Err(too_many(argument, handle)),
                Change::Stale => {}
            }
        }
    }
    Err(refuse(handle, kind, argument))
}

/// Drops a user reference; with the last one the handle is stale at once, and the object goes when nothing inside the
/// library holds it any more.
#[inline(always)]
pub fn release(handle: Handle, kind: ObjectKind, argument: &str) -> Result<()> {
    if (handle >> KIND_SHIFT) & 0xf == kind as u64 {
        if let Some(object) = find(handle) {
            if let Change::Users(users) = object.word.change(handle, false) {
                if users == 0 {
                    // SAFETY: all users together hold one reference, which this call gives up.
                    unsafe { object.unref() };
                }
                return Ok(());
            }
        }
    }
    Err(refuse(handle, kind, argument))
}
