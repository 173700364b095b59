//! An object's two counts: of its users, beside the generation of its handle, and of all who hold it.
//!
//! Names nothing of the crate but its atomics: `tests/interleavings.rs` compiles it a second time, with shuttle's.

use super::atomics::{AtomicU64, Ordering};

pub const KIND_SHIFT: u32 = 24;
pub const GENERATION_SHIFT: u32 = 28;
pub const LAST_GENERATION: u64 = (1 << 36) - 1;
/// The most references that users can have of one object; in a handle these bits are the slot.
pub const USERS_MASK: u64 = (1 << 24) - 1;

/// An object's side of its handle: generation and kind as in the handle, and how many references its users have.
pub struct Word(AtomicU64);

/// What a change of the user count came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So many there are now.
    Users(u64),
    /// The handle means nothing any more.
    Stale,
    /// There are as many as can be.
    Full,
}

impl Word {
    /// The first generation is 1, so that no handle is null.
    pub fn new() -> Word {
        Word(AtomicU64::new(1 << GENERATION_SHIFT))
    }

    /// One user reference, as `kind`: what the handle is, but for the slot. The caller owns the object alone.
    #[inline(always)]
    pub fn open(&self, kind: u64) -> u64 {
        let generation = self.0.load(Ordering::Relaxed) >> GENERATION_SHIFT;
        let named = (generation << GENERATION_SHIFT) | (kind << KIND_SHIFT);
        self.0.store(named | 1, Ordering::Release);
        named
    }

    /// Adds a user reference to an object that is alive: what the handle is, but for the slot, and whether it is a first one
    /// again, where its users had let go. `None` where there are as many as can be.
    pub fn reopen(&self) -> Option<(u64, bool)> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if word & USERS_MASK == USERS_MASK {
                return None;
            }
            match self
                .0
                .compare_exchange_weak(word, word + 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some((word & !USERS_MASK, word & USERS_MASK == 0)),
                Err(now) => word = now,
            }
        }
    }

    #[inline(always)]
    pub fn is_worn_out(&self) -> bool {
        self.0.load(Ordering::Relaxed) >> GENERATION_SHIFT == LAST_GENERATION
    }

    #[inline(always)]
    pub fn matches(&self, handle: u64) -> bool {
        let word = self.0.load(Ordering::Acquire);
        (word ^ handle) >> KIND_SHIFT == 0 && word & USERS_MASK != 0
    }

    /// Changes the user count of the object that `handle` means. When the count reaches zero the handle is stale from that
    /// moment on.
    #[inline(always)]
    pub fn change(&self, handle: u64, up: bool) -> Change {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let users = word & USERS_MASK;
            if (word ^ handle) >> KIND_SHIFT != 0 || users == 0 {
                return Change::Stale;
            }
            if up && users == USERS_MASK {
                return Change::Full;
            }
            let next = match (up, users) {
                (true, _) => word + 1,
                // The last generation stays, and the slot is closed.
                (false, 1) if word >> GENERATION_SHIFT != LAST_GENERATION => {
                    (word - 1) + (1 << GENERATION_SHIFT)
                }
                (false, _) => word - 1,
            };
            match self
                .0
                .compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Change::Users(if up { users + 1 } else { users - 1 }),
                Err(now) => word = now,
            }
        }
    }

    /// Whether the object has had this generation.
    pub fn had(&self, generation: u64) -> bool {
        generation >= 1 && generation <= self.0.load(Ordering::Acquire) >> GENERATION_SHIFT
    }
}

/// References to an object: one for all users together, one for each holder inside the library.
pub struct References(AtomicU64);

impl References {
    pub fn none() -> References {
        References(AtomicU64::new(0))
    }

    /// The first one. The caller owns the object alone.
    #[inline(always)]
    pub fn begin(&self) {
        self.0.store(1, Ordering::Release);
    }

    /// One more, for somebody who has one.
    #[inline(always)]
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One more, unless the last one is gone.
    #[inline]
    pub fn try_add(&self) -> bool {
        let mut references = self.0.load(Ordering::Acquire);
        loop {
            if references == 0 {
                return false;
            }
            match self.0.compare_exchange_weak(
                references,
                references + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return true,
                Err(now) => references = now,
            }
        }
    }

    /// Gives one up; whether it was the last.
    #[inline(always)]
    pub fn remove(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
