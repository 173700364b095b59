//! The retention limit of one device in one cache, and what is charged against it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Charged bytes are those of indexed live, idle and pending entries of all threads. New charges respect the limit; bytes
/// that pending work needs may pass it.
pub struct Retention {
    limit: AtomicU64,
    bytes: AtomicU64,
    peak: AtomicU64,
    /// The cache has no handle any more: nobody counts or looks up in it.
    closed: AtomicBool,
}

impl Retention {
    pub fn new(limit: u64) -> Retention {
        Retention {
            limit: AtomicU64::new(limit),
            bytes: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Retains nothing from now on.
    pub fn close(&self) {
        self.set_limit(0);
        self.closed.store(true, Ordering::Release);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    pub fn reset_peak(&self) {
        self.peak.store(self.bytes(), Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.limit.load(Ordering::Relaxed)
    }

    /// There is room for `bytes` more.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.bytes()
            .checked_add(bytes)
            .is_some_and(|sum| sum <= self.limit())
    }

    /// Charges `bytes` if they stay within the limit.
    pub fn reserve(&self, bytes: u64) -> bool {
        let limit = self.limit();
        let reserved = self
            .bytes
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                now.checked_add(bytes).filter(|sum| *sum <= limit)
            });
        if let Ok(before) = reserved {
            self.peak.fetch_max(before + bytes, Ordering::Relaxed);
        }
        reserved.is_ok()
    }

    /// Charges bytes that pending work needs, whatever the limit.
    pub fn charge(&self, bytes: u64) {
        let before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
    }

    pub fn give_back(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}
