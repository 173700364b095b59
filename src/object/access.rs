//! Queuing work on objects: what must come first, and the note that it was queued.

use smallvec::SmallVec;

use super::object::{Object, ObjectRef};
use crate::cache;
use crate::error::Result;
use crate::timeline::{AccessKind, Accesses, Deadline, Stream};

/// Queues work on `stream` that reads and writes the given objects: waits on the GPU for what must come first, runs
/// `queue`, and notes the accesses. Objects stay locked against other submissions meanwhile, a writer alone, readers
/// together, so that two threads' calls are in one order or the other and never interleave.
pub fn submit(
    stream: &'static Stream,
    accesses: &[(&Object, AccessKind)],
    queue: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut roots: SmallVec<[(&Object, AccessKind); 8]> = accesses
        .iter()
        .map(|(object, kind)| (object.root(), *kind))
        .collect();
    // One order of locking for all threads; of two accesses to one object the write counts.
    roots.sort_by_key(|(object, kind)| {
        (
            std::ptr::from_ref(*object) as usize,
            *kind == AccessKind::Read,
        )
    });
    roots.dedup_by_key(|(object, _)| std::ptr::from_ref(*object) as usize);
    stream.check_not_capturing()?;
    let mut readers: SmallVec<[_; 8]> = SmallVec::new();
    let mut writers: SmallVec<[_; 4]> = SmallVec::new();
    for (object, kind) in &roots {
        match kind {
            AccessKind::Read => readers.push(object.submission.read()),
            AccessKind::Write => writers.push(object.submission.write()),
        }
    }
    for (object, kind) in &roots {
        object.entry.accesses.lock().order(*kind, stream)?;
    }
    let queued = queue();
    // Also where it failed: part of the work may be queued.
    let submitted = note(stream, &roots);
    drop(readers);
    drop(writers);
    if let Some((object, _)) = roots.first() {
        cache::retire(object.cache(), object.device());
    }
    queued.and(submitted)
}

fn note(stream: &'static Stream, roots: &[(&Object, AccessKind)]) -> Result<()> {
    let (sequence, result) = stream.submit();
    for (object, kind) in roots {
        object.entry.accesses.lock().record(*kind, stream, sequence);
    }
    result
}

/// Before a launch by others: makes the stream wait for what must come before an access of this kind.
pub fn begin_access(object: &ObjectRef, stream: &'static Stream, kind: AccessKind) -> Result<()> {
    stream.check_not_capturing()?;
    object.root().entry.accesses.lock().order(kind, stream)
}

/// After a launch by others: notes the access, which covers all that is queued on the stream by now.
pub fn end_access(object: &ObjectRef, stream: &'static Stream, kind: AccessKind) -> Result<()> {
    stream.check_not_capturing()?;
    note(stream, &[(object.root(), kind)])
}

/// Waits on the host for all work on the object; `false` when the deadline passed first.
pub fn synchronize(object: &ObjectRef, deadline: Deadline) -> Result<bool> {
    let mut open = Accesses::default();
    open.merge(&object.root().entry.accesses.lock());
    open.wait(deadline)
}

/// The stream of the latest access, if any is open.
pub fn last_stream(object: &ObjectRef) -> Option<&'static Stream> {
    object.root().entry.accesses.lock().last_stream()
}
