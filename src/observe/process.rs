//! What happens to the process as a whole: a fork, after which the child must not use the library.

use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Called in the child of a fork.
pub fn mark_forked_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// This process is a child that was forked after the library was used: locks may be held by threads that it lacks.
#[inline(always)]
pub fn is_forked_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}
