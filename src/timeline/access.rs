//! What has been done to one piece of memory and is not yet known to be over.

use smallvec::SmallVec;

use super::stream::{Deadline, Stream};
use crate::error::Result;
use crate::observe::mistake::{self, Mistake};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Read,
    Write,
}

/// One access: everything that the stream had queued when its counter reached `sequence`.
#[derive(Clone, Copy)]
pub struct Access {
    pub stream: &'static Stream,
    pub sequence: u64,
    pub kind: AccessKind,
}

impl Access {
    /// Known to be complete, by what has been seen so far; asks no driver.
    pub fn is_done(&self) -> bool {
        self.sequence <= self.stream.completed()
    }

    /// Work queued on `stream` from now on comes after this access, without any further wait.
    pub fn is_ordered_on(&self, stream: &'static Stream) -> bool {
        std::ptr::eq(self.stream, stream)
            || self.is_done()
            || (mistake::is(Mistake::LegacyOrdersAll) && stream.is_legacy())
            || stream.has_waited_for(self.stream, self.sequence)
    }
}

/// Where the open accesses of a piece of memory lie: on no stream, on one, or on several.
#[derive(Clone, Copy)]
pub enum Home {
    None,
    One(&'static Stream),
    Several,
}

/// The accesses that a later one may have to wait for. Reads gather beside each other; a write replaces what it was
/// ordered after. An access is dropped only when it is done or ordered before one that stays (law 4).
#[derive(Default)]
pub struct Accesses {
    list: SmallVec<[Access; 2]>,
}

impl Accesses {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn clear(&mut self) {
        self.list.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = &Access> {
        self.list.iter()
    }

    pub fn last_stream(&self) -> Option<&'static Stream> {
        let open = self.list.iter().rev().find(|access| !access.is_done())?;
        open.stream.is_alive().then_some(open.stream)
    }

    /// Every access is known to be complete; asks no driver.
    pub fn is_done(&self) -> bool {
        self.list.iter().all(Access::is_done)
    }

    /// Like `is_done`, after asking the driver about each stream that is not known to be through.
    pub fn poll(&self) -> bool {
        self.list
            .iter()
            .all(|access| access.is_done() || (access.stream.poll() && access.is_done()))
    }

    pub fn is_ordered_on(&self, stream: &'static Stream) -> bool {
        self.list.iter().all(|access| access.is_ordered_on(stream))
    }

    pub fn home(&self) -> Home {
        match self.list.first() {
            None => Home::None,
            Some(first) => {
                if self
                    .list
                    .iter()
                    .all(|access| std::ptr::eq(access.stream, first.stream))
                {
                    Home::One(first.stream)
                } else {
                    Home::Several
                }
            }
        }
    }

    /// Makes work queued on `stream` from now on come after all that an access of `kind` must come after. GPU-side waits
    /// only.
    pub fn order(&self, kind: AccessKind, stream: &'static Stream) -> Result<()> {
        for (place, access) in self.list.iter().enumerate() {
            let is_last = place + 1 == self.list.len();
            if mistake::is(Mistake::WaitForLastAccessOnly) && !is_last {
                continue;
            }
            let waits = kind == AccessKind::Write && !mistake::is(Mistake::WriteIgnoresReaders);
            if waits || access.kind == AccessKind::Write {
                stream.wait_for(access)?;
            }
        }
        Ok(())
    }

    /// Notes an access that has been queued.
    pub fn record(&mut self, kind: AccessKind, stream: &'static Stream, sequence: u64) {
        // Of two threads that use one stream, the later access may be noted first: it must not be lost.
        let sequence = self
            .list
            .iter()
            .filter(|access| std::ptr::eq(access.stream, stream))
            .fold(sequence, |latest, access| latest.max(access.sequence));
        let new = Access {
            stream,
            sequence,
            kind,
        };
        if kind == AccessKind::Read && mistake::is(Mistake::ReadersNotNoted) {
            return;
        }
        if kind == AccessKind::Write {
            if mistake::is(Mistake::WriteForgetsUnordered) {
                self.list.clear();
            }
            // Another thread may have slipped an access in that this write was not ordered after: that one stays.
            self.list.retain(|access| !access.is_ordered_on(stream));
            self.list.push(new);
            return;
        }
        if mistake::is(Mistake::ReaderReplacesReaders) {
            self.list.retain(|access| access.kind == AccessKind::Write);
        }
        for access in &mut self.list {
            if access.kind == AccessKind::Read && std::ptr::eq(access.stream, stream) {
                access.sequence = access.sequence.max(sequence);
                return;
            }
        }
        if self.list.len() >= 8 {
            let forgets_more = mistake::is(Mistake::ReadForgetsWaitedFor);
            self.list.retain(|access| {
                !(access.is_done() || (forgets_more && access.is_ordered_on(stream)))
            });
        }
        self.list.push(new);
    }

    /// Notes an access that may have been queued long ago. Unlike `record` it drops none that is ordered on its stream by now:
    /// the access may have come before that order did.
    pub fn add(&mut self, new: Access) {
        if self.list.len() >= 8 {
            self.list.retain(|access| !access.is_done());
        }
        let same = |access: &&mut Access| {
            access.kind == new.kind && std::ptr::eq(access.stream, new.stream)
        };
        match self.list.iter_mut().find(same) {
            Some(known) => known.sequence = known.sequence.max(new.sequence),
            None => self.list.push(new),
        }
    }

    /// Adds what another piece of memory's accesses say, for memory that both share.
    pub fn merge(&mut self, other: &Accesses) {
        self.list.extend(other.list.iter().copied());
    }

    /// Waits on the host until every access is done; `false` when the deadline passed first.
    pub fn wait(&self, deadline: Deadline) -> Result<bool> {
        let mut result = Ok(true);
        for access in &self.list {
            if access.is_done() {
                continue;
            }
            match access.stream.wait_on_host(access.sequence, deadline) {
                Ok(true) => {}
                Ok(false) => return result.map(|_| false),
                // The others are waited for all the same.
                Err(error) => result = Err(error),
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{backend, timeline};

    fn stream() -> &'static Stream {
        let handle = timeline::create(0, false).expect("the host backend makes streams");
        timeline::resolve(handle, 0).expect("a created stream is known")
    }

    #[test]
    fn an_access_that_is_noted_late_hides_no_later_one() {
        let stream = stream();
        let (first, _) = stream.submit();
        let (second, _) = stream.submit();
        let mut accesses = Accesses::default();
        accesses.record(AccessKind::Write, stream, second);
        accesses.record(AccessKind::Write, stream, first);
        let latest = accesses.iter().map(|access| access.sequence).max();
        assert_eq!(latest, Some(second));
    }

    #[test]
    fn reads_gather_and_a_write_replaces_what_it_is_ordered_after() {
        let (a, b) = (stream(), stream());
        let mut accesses = Accesses::default();
        for reader in [a, b] {
            let (sequence, _) = reader.submit();
            accesses.record(AccessKind::Read, reader, sequence);
        }
        assert_eq!(accesses.iter().count(), 2);
        assert!(matches!(accesses.home(), Home::Several));
        accesses
            .order(AccessKind::Write, a)
            .expect("a can wait for b");
        let (sequence, _) = a.submit();
        accesses.record(AccessKind::Write, a, sequence);
        assert_eq!(accesses.iter().count(), 1);
        assert!(matches!(accesses.home(), Home::One(_)));
    }

    #[test]
    fn the_last_stream_is_one_with_open_work() {
        let stream = stream();
        let mut accesses = Accesses::default();
        let (sequence, _) = stream.submit();
        accesses.record(AccessKind::Write, stream, sequence);
        assert!(accesses.wait(Deadline::NEVER).expect("the stream is alive"));
        assert!(accesses.last_stream().is_none());
    }

    /// Streams whose work is held, with the sequence number of one access each, and what lets it go.
    fn busy_streams(count: usize) -> (Vec<(&'static Stream, u64)>, impl FnOnce()) {
        let backend = backend::current().expect("the host backend starts");
        let streams: Vec<_> = (0..count).map(|_| stream()).collect();
        let hold = |stream: &&'static Stream| {
            let latch = backend.latch_create(0, stream.handle());
            latch.expect("the stream takes latches")
        };
        let latches: Vec<u64> = streams.iter().map(hold).collect();
        let all = streams
            .into_iter()
            .map(|stream| (stream, stream.submit().0))
            .collect();
        let let_go = move || {
            for latch in latches {
                backend.latch_open(latch).expect("it is closed");
            }
        };
        (all, let_go)
    }

    /// However many readers there are, those that are done are dropped, and no other.
    #[test]
    fn readers_that_are_done_make_room() {
        let (busy, let_go) = busy_streams(10);
        for late in [false, true] {
            let mut accesses = Accesses::default();
            let mut note = |stream, sequence| match late {
                false => accesses.record(AccessKind::Read, stream, sequence),
                true => accesses.add(Access {
                    stream,
                    sequence,
                    kind: AccessKind::Read,
                }),
            };
            for &(stream, sequence) in &busy {
                note(stream, sequence);
            }
            for _ in 0..20 {
                let reader = stream();
                let (sequence, _) = reader.submit();
                let seen = reader.synchronize(Deadline::NEVER);
                assert_eq!(seen, Ok(true));
                note(reader, sequence);
            }
            assert!(accesses.iter().count() <= busy.len() + 1);
            for (stream, sequence) in &busy {
                let is_same = |access: &Access| {
                    std::ptr::eq(access.stream, *stream) && access.sequence == *sequence
                };
                assert!(accesses.iter().any(is_same), "an open one was dropped");
            }
        }
        let_go();
    }

    /// Eight are few enough to keep.
    #[test]
    fn up_to_eight_readers_are_kept_without_a_look() {
        let mut accesses = Accesses::default();
        for count in 1..=8 {
            let reader = stream();
            let (sequence, _) = reader.submit();
            accesses.record(AccessKind::Read, reader, sequence);
            assert_eq!(reader.synchronize(Deadline::NEVER), Ok(true));
            assert_eq!(accesses.iter().count(), count);
        }
    }

    #[test]
    fn accesses_of_one_stream_and_kind_are_added_as_one() {
        let (busy, let_go) = busy_streams(2);
        let mut accesses = Accesses::default();
        for kind in [AccessKind::Read, AccessKind::Write] {
            for (stream, sequence) in &busy {
                for sequence in [*sequence, sequence + 2, sequence + 1] {
                    accesses.add(Access {
                        stream,
                        sequence,
                        kind,
                    });
                }
            }
        }
        assert_eq!(accesses.iter().count(), 4);
        for access in accesses.iter() {
            assert_eq!(access.sequence, access.stream.last_submitted() + 2);
        }
        let_go();
    }
}
