//! Queuing work on objects: what must come first, and the note that it was queued.

use smallvec::{smallvec, SmallVec};

use super::image_desc::PlaneDesc;
use super::object::{Body, Object, ObjectRef};
use crate::backend::{self, ByteRange};
use crate::cache;
use crate::error::Result;
use crate::observe::mistake::{self, Mistake};
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
    let early = mistake::is(Mistake::RecordBeforeLaunch).then(|| note(stream, &roots));
    let queued = queue();
    // Also where it failed: part of the work may be queued.
    let submitted = match early {
        Some(noted) => noted,
        None => note(stream, &roots),
    };
    drop(readers);
    drop(writers);
    if let Some((object, _)) = roots.first() {
        cache::retire(object.cache(), object.device());
    }
    queued.and(submitted)
}

fn note(stream: &'static Stream, roots: &[(&Object, AccessKind)]) -> Result<()> {
    let (mut sequence, result) = stream.submit();
    if mistake::is(Mistake::NumberTooLow) {
        sequence -= 1;
    }
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
    let backend = backend::current()?;
    for (start, length) in object.spans() {
        let write = kind == AccessKind::Write;
        let range = ByteRange {
            start,
            length,
            write,
        };
        backend.announce_access(object.device(), Some(stream.handle()), range)?;
    }
    end_use(object, stream, kind)
}

/// `end_access` where nobody can say which of the work on the stream touched the memory, and when. Where the stream captures
/// by now that is what it had queued before: it counts, though no event says yet when it is done.
pub fn end_use(object: &ObjectRef, stream: &'static Stream, kind: AccessKind) -> Result<()> {
    note(stream, &[(object.root(), kind)])
}

impl Object {
    /// (address, bytes) of what a tensor or an image covers, padding between rows included.
    fn spans(&self) -> SmallVec<[(u64, u64); 3]> {
        match self.body() {
            Body::Tensor { desc, data } => smallvec![(*data, desc.span_bytes())],
            Body::Image { desc, data } => {
                let span = |plane: &PlaneDesc| {
                    let last_row = i64::from(plane.height - 1) * plane.row_stride;
                    (data + plane.offset, last_row as u64 + plane.width as u64)
                };
                desc.planes().iter().map(span).collect()
            }
            _ => SmallVec::new(),
        }
    }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::cache::Cache;
    use crate::object::{self, Handle, ObjectKind};
    use crate::timeline;

    fn cache(limit: Option<u64>) -> &'static Cache {
        object::install_hooks();
        object::create_cache(limit).expect("there are slots").0
    }

    fn stream() -> &'static Stream {
        let handle = timeline::create(0, false).expect("the host backend makes streams");
        timeline::resolve(handle, 0).expect("a created stream is known")
    }

    fn hold(stream: &Stream) -> u64 {
        let backend = backend::current().expect("the host backend starts");
        let latch = backend.latch_create(0, stream.handle());
        latch.expect("the stream takes latches")
    }

    fn open(latch: u64) {
        let backend = backend::current().expect("the host backend starts");
        backend.latch_open(latch).expect("the latch is closed");
    }

    struct Batch(Handle);

    impl Batch {
        fn new(cache: &'static Cache, capacity: i32) -> Batch {
            let handle = object::image_batch_create(cache, 0, capacity, None);
            Batch(handle.expect("there is memory"))
        }

        fn write(&self, stream: &'static Stream) {
            let object = object::acquire(self.0, ObjectKind::ImageBatch, "batch");
            let object = object.expect("the handle is live");
            let queued = submit(stream, &[(&object, AccessKind::Write)], || Ok(()));
            queued.expect("nothing is in the way");
        }
    }

    impl Drop for Batch {
        fn drop(&mut self) {
            object::release(self.0, ObjectKind::ImageBatch, "batch").expect("the handle is live");
        }
    }

    fn pending(cache: &'static Cache) -> u64 {
        let now = cache::stats(cache, 0).expect("the device is known");
        now.pending_count
    }

    /// How often the driver is asked about these streams in `body`.
    fn polls(streams: &[&Stream], body: impl FnOnce()) -> u64 {
        let asked = || -> u64 {
            let each = streams
                .iter()
                .map(|stream| stream.asked.load(Ordering::SeqCst));
            each.sum()
        };
        let before = asked();
        body();
        asked() - before
    }

    #[test]
    fn many_pending_entries_cost_a_submission_few_polls_and_each_has_its_turn() {
        let cache = cache(Some(0));
        let charged = || cache.device(0).expect("it is known").retention.bytes();
        // Twenty streams that do not go on, with entries that would leave the cache.
        let held: Vec<_> = (0..20).map(|_| stream()).collect();
        let mut latches = Vec::new();
        for &held in &held {
            latches.push(hold(held));
            let batches: Vec<_> = (0..15).map(|_| Batch::new(cache, 1)).collect();
            batches.iter().for_each(|batch| batch.write(held));
        }
        assert_eq!(polls(&held, || assert_eq!(pending(cache), 300)), 20);

        // One more behind them, which is done; nobody has looked yet.
        let free = stream();
        let latch = hold(free);
        let last = Batch::new(cache, 1);
        last.write(free);
        drop(last);
        open(latch);
        let backend = backend::current().expect("the host backend starts");
        let waited = backend.stream_synchronize(0, free.handle(), None);
        assert_eq!(waited, Ok(true));
        let live = Batch::new(cache, 1);
        let before = charged();
        let mut submissions = 0;
        while charged() == before {
            assert!(submissions < 60, "its turn never comes");
            let asked = polls(&held, || live.write(free));
            assert!(asked <= 8, "{asked} polls in one submission");
            submissions += 1;
        }

        latches.into_iter().for_each(open);
        drop(live);
        cache::clear(cache, 0, cache::Scope::Global).expect("the streams go on");
    }

    #[test]
    fn no_look_up_waits_while_another_thread_asks_the_driver() {
        let cache = cache(None);
        let held = stream();
        let latch = hold(held);
        let (to_owner, orders) = channel();
        let (from_owner, answers) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                Batch::new(cache, 1).write(held);
                from_owner.send(()).expect("the test goes on");
                if orders.recv() == Ok(()) {
                    // Of another kind than the pending one, about which a look-up itself would ask.
                    drop(Batch::new(cache, 7));
                    let _ = from_owner.send(());
                }
            });
            answers.recv().expect("the owner has a pending entry");
            let driver = held.hold_answers();
            let before = held.asked.load(Ordering::SeqCst);
            scope.spawn(|| assert_eq!(pending(cache), 1));
            while held.asked.load(Ordering::SeqCst) == before {
                std::thread::yield_now();
            }
            to_owner.send(()).expect("the owner waits for this");
            let looked_up = answers.recv_timeout(Duration::from_secs(60));
            drop(driver);
            looked_up.expect("the owner's look-up does not wait for the driver");
        });
        open(latch);
        cache::clear(cache, 0, cache::Scope::Global).expect("the stream goes on");
    }
}
