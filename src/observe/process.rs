//! What happens to the process as a whole: a fork, after which the child must not use the library.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;

static FORKED: AtomicBool = AtomicBool::new(false);
static WATCH: Once = Once::new();

extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// From now on a forked child is known as one.
pub fn watch_for_forks() {
    WATCH.call_once(|| {
        // SAFETY: the handler only stores a flag.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// This process is a child that was forked after the library was used: locks may be held by threads that it lacks.
#[inline(always)]
pub fn is_forked_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}
