//! One stream as the library knows it: its counters, its recorded events and what it has waited for.
//!
//! `Stream`s live in a slab and are never freed; a slot is used again for another stream only once all that was submitted
//! through it is complete, and its counters go on counting. So an old access always compares right: it is done.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::access::Access;
use super::event_pool::{self, Record, Waits};
use super::registry;
use crate::backend::{self, StreamHandle, STREAM_LEGACY};
use crate::error::{Result, Status};
use crate::fail;
use crate::observe::mistake::{self, Mistake};

/// So many events are left open on a stream before a further mark looks which of them are done.
const MARKS_BEFORE_LOOK: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Made by `cvc_stream_create`.
    Created,
    /// Somebody else's, registered: lives until it is unregistered.
    Registered,
    /// CUDA's legacy default stream of a device.
    Legacy,
    /// A thread's own default stream: its handle means it only on that thread.
    PerThread,
    /// Somebody else's: touched only inside a call that passes it.
    Foreign,
}

impl StreamKind {
    /// The library may touch the stream at any time, not only inside a call that passes it (law 1).
    fn may_be_touched(self) -> bool {
        matches!(
            self,
            StreamKind::Created | StreamKind::Registered | StreamKind::Legacy
        )
    }
}

/// When a host wait gives up.
#[derive(Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    pub const NEVER: Deadline = Deadline(None);

    /// Negative: never.
    pub fn after_ns(nanoseconds: i64) -> Deadline {
        match u64::try_from(nanoseconds) {
            Ok(ns) => Deadline(Instant::now().checked_add(Duration::from_nanos(ns))),
            Err(_) => Deadline(None),
        }
    }

    pub fn remaining(self) -> Option<Duration> {
        self.0
            .map(|at| at.saturating_duration_since(Instant::now()))
    }
}

pub struct Stream {
    /// The number of the last access submitted. A number is taken *after* the launch that it stands for.
    submitted: AtomicU64,
    /// Every access up to this number is seen complete.
    completed: AtomicU64,
    inner: Mutex<Inner>,
    /// How often `poll` was called.
    #[cfg(test)]
    pub asked: AtomicU64,
}

#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub handle: StreamHandle,
    pub device: i32,
    pub id: u64,
    pub kind: StreamKind,
}

impl Identity {
    fn is_capturing(&self) -> Result<bool> {
        // The legacy stream cannot capture, but it may not be used either while a stream that blocks with it does, and says so.
        backend::current()?.stream_is_capturing(self.device, self.handle)
    }

    fn check_not_capturing(&self) -> Result<()> {
        if self.is_capturing()? {
            fail!(
                Status::Capturing,
                "stream is {:#x}, which is capturing a graph; expected a stream that is not",
                self.handle
            );
        }
        Ok(())
    }
}

/// Streams with work that has no event, whether anybody still knows them by a handle or not: a wait for the device is a wait
/// for them.
static UNRECORDED: Mutex<Vec<&'static Stream>> = Mutex::new(Vec::new());

/// The streams of `device` that have such work.
pub(super) fn unrecorded(device: i32) -> Vec<&'static Stream> {
    let mut unrecorded = UNRECORDED.lock();
    unrecorded.retain(|stream| stream.completed() != stream.last_submitted());
    let here = unrecorded.iter().copied();
    here.filter(|stream| stream.device() == device).collect()
}

struct Inner {
    identity: Identity,
    /// Still usable through `identity.handle`.
    alive: bool,
    /// How many `Hold`s there are.
    holds: usize,
    /// Recorded and not yet seen complete, by ascending `covers`.
    records: VecDeque<Arc<Record>>,
    /// (stream, sequence): work queued here comes after that.
    waits: Vec<(&'static Stream, u64)>,
}

impl Stream {
    pub(super) fn new(identity: Identity) -> Stream {
        Stream {
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                identity,
                alive: true,
                holds: 0,
                records: VecDeque::new(),
                waits: Vec::new(),
            }),
            #[cfg(test)]
            asked: AtomicU64::new(0),
        }
    }

    /// Stands for a driver that does not answer: while the result lives, whoever asks about the stream waits.
    #[cfg(test)]
    pub fn hold_answers(&self) -> impl Drop + '_ {
        self.inner.lock()
    }

    /// Gives the slot to another stream, if nothing of the old one is open.
    pub(super) fn reuse(&self, identity: Identity) -> bool {
        let mut inner = self.inner.lock();
        let open = self.submitted.load(Ordering::Acquire) != self.completed();
        if open && !inner.alive && mistake::is(Mistake::SlotReusedEarly) {
            self.mark_completed(self.last_submitted());
        }
        if inner.alive
            || inner.holds > 0
            || self.submitted.load(Ordering::Acquire) != self.completed.load(Ordering::Acquire)
        {
            return false;
        }
        inner.identity = identity;
        inner.alive = true;
        inner.records.clear();
        if !mistake::is(Mistake::SlotKeepsWaits) {
            inner.waits.clear();
        }
        true
    }

    pub fn handle(&self) -> StreamHandle {
        self.inner.lock().identity.handle
    }

    pub fn device(&self) -> i32 {
        self.inner.lock().identity.device
    }

    pub fn id(&self) -> u64 {
        self.inner.lock().identity.id
    }

    pub fn kind(&self) -> StreamKind {
        self.inner.lock().identity.kind
    }

    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    fn mark_completed(&self, sequence: u64) {
        self.completed.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Numbers the access of work that has just been queued. On a stream that may not be touched later, an event is
    /// recorded now, inside the call that passed the stream; where that fails, the number stands for work that is seen
    /// complete only by a wait for the whole stream or the device.
    pub fn submit(&'static self) -> (u64, Result<()>) {
        let mut inner = self.inner.lock();
        let touchable = inner.identity.kind.may_be_touched();
        if touchable && !inner.alive {
            // Its end has left an event behind all that was ever queued on it: see `retire`.
            return (self.last_submitted(), Ok(()));
        }
        let sequence = self.submitted.fetch_add(1, Ordering::AcqRel) + 1;
        if touchable {
            return (sequence, Ok(()));
        }
        let recorded = self.record(&mut inner).map(drop);
        drop(inner);
        if recorded.is_err() && mistake::is(Mistake::FailedRecordIsDone) {
            self.mark_completed(sequence);
        }
        if recorded.is_err() {
            self.note_unrecorded();
        }
        (sequence, recorded)
    }

    fn note_unrecorded(&'static self) {
        let mut unrecorded = UNRECORDED.lock();
        if !unrecorded.iter().any(|known| std::ptr::eq(*known, self)) {
            unrecorded.push(self);
        }
    }

    /// Numbers this place of the stream, also for work that was not submitted through the library, and leaves an event of
    /// the library's own there. The caller has just passed the stream.
    pub(super) fn mark(&'static self) -> Result<u64> {
        let mut inner = self.inner.lock();
        if inner.records.len() >= MARKS_BEFORE_LOOK {
            // An error of the driver shows below, if it lasts.
            let _ = self.drop_done_records(&mut inner);
        }
        // A number of its own: one that was taken before may be seen complete by an event from before later launches.
        let sequence = self.submitted.fetch_add(1, Ordering::AcqRel) + 1;
        let recorded = self.record(&mut inner).map(drop);
        drop(inner);
        if recorded.is_err() {
            self.note_unrecorded();
        }
        recorded.map(|()| sequence)
    }

    /// An access that covers everything queued so far, without new work.
    pub fn last_submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Refuses a stream that captures: nothing from outside the capture may enter it (law 11).
    pub fn check_not_capturing(&self) -> Result<()> {
        // Held over the question: nobody ends the stream meanwhile, which the caller may not have passed.
        let inner = self.inner.lock();
        match inner.alive {
            true => self.identity_here(&inner).check_not_capturing(),
            false => Ok(()),
        }
    }

    /// Whether the stream captures just now. The caller has just passed it.
    pub fn is_capturing(&self) -> Result<bool> {
        let identity = self.inner.lock().identity;
        identity.is_capturing()
    }

    /// The number of the capture that the stream is in. The caller has just passed it.
    pub(super) fn capture(&self) -> Result<Option<u64>> {
        let identity = self.inner.lock().identity;
        backend::current()?.stream_capture(identity.device, identity.handle)
    }

    /// Who the stream is for a call of this thread. The handle of another thread's own stream would name the caller's; the
    /// legacy stream stands in for it, since an event there comes after all that such streams have queued.
    fn identity_here(&self, inner: &Inner) -> Identity {
        let mut identity = inner.identity;
        if identity.kind == StreamKind::PerThread && !registry::is_of_this_thread(self) {
            identity.kind = StreamKind::Legacy;
            identity.handle = STREAM_LEGACY;
        }
        identity
    }

    /// The stream's handle names it on every thread until the library hears otherwise.
    pub fn is_known_by_handle(&self) -> bool {
        self.kind().may_be_touched()
    }

    /// For a deliberate mistake.
    pub(super) fn is_legacy(&self) -> bool {
        self.kind() == StreamKind::Legacy
    }

    /// The handle can still be used.
    pub fn is_alive(&self) -> bool {
        self.inner.lock().alive
    }

    pub(super) fn has_waited_for(&self, other: &'static Stream, sequence: u64) -> bool {
        let inner = self.inner.lock();
        inner
            .waits
            .iter()
            .any(|(stream, upto)| std::ptr::eq(*stream, other) && *upto >= sequence)
    }

    /// Makes work queued here from now on come after `access`.
    pub(super) fn wait_for(&'static self, access: &Access) -> Result<()> {
        if access.is_ordered_on(self) {
            return Ok(());
        }
        let record = access.stream.record_covering(access.sequence)?;
        if mistake::is_now(Mistake::SkipSomeWaits, 16) {
            return Ok(());
        }
        match record {
            Some(record) => self.wait_for_record(access.stream, &record, None),
            None => Ok(()),
        }
    }

    /// `capture`: the one that the record lies in.
    pub(super) fn wait_for_record(
        &'static self,
        other: &'static Stream,
        record: &Record,
        capture: Option<u64>,
    ) -> Result<()> {
        let identity = self.inner.lock().identity;
        backend::current()?.stream_wait_event(identity.device, identity.handle, record.event)?;
        // The wait is done: nothing that follows may fail. In a capture it is the graph's, not the stream's.
        if capture.is_some() || identity.is_capturing().unwrap_or(true) {
            return Ok(());
        }
        if mistake::is(Mistake::RememberMoreThanWaited) {
            self.remember_wait(other, other.last_submitted() + 1, &record.waits);
        }
        if mistake::is(Mistake::RememberLaterWaits) {
            let later = other.inner.lock().waits.clone();
            self.remember_wait(other, record.covers, &later);
        }
        self.remember_wait(other, record.covers, &record.waits);
        Ok(())
    }

    pub(super) fn remember_wait(
        &'static self,
        other: &'static Stream,
        covers: u64,
        waits: &[(&'static Stream, u64)],
    ) {
        let mut inner = self.inner.lock();
        if inner.waits.len() > 32 {
            inner
                .waits
                .retain(|(stream, upto)| *upto > stream.completed());
        }
        for &(stream, upto) in waits.iter().chain(std::iter::once(&(other, covers))) {
            if std::ptr::eq(stream, self) {
                continue;
            }
            match inner
                .waits
                .iter_mut()
                .find(|(known, _)| std::ptr::eq(*known, stream))
            {
                Some((_, known)) => *known = (*known).max(upto),
                None => inner.waits.push((stream, upto)),
            }
        }
    }

    /// An event that covers all that was submitted so far.
    fn record(&self, inner: &mut Inner) -> Result<Arc<Record>> {
        // Read before the event is recorded: whatever took a number up to here was launched before.
        let covers = self.submitted.load(Ordering::Acquire);
        if let Some(last) = inner.records.back() {
            if last.covers == covers {
                return Ok(last.clone());
            }
        }
        let identity = match mistake::is(Mistake::OwnStreamByHandle) {
            true => inner.identity,
            false => self.identity_here(inner),
        };
        // An event in a capture would belong to the graph, and never be complete.
        identity.check_not_capturing()?;
        let event = event_pool::take(identity.device)?;
        if let Err(error) =
            backend::current()?.event_record(identity.device, event, identity.handle)
        {
            event_pool::give_back(identity.device, event);
            return Err(error);
        }
        let record = Arc::new(Record {
            event,
            device: identity.device,
            covers,
            waits: inner.waits.clone().into_boxed_slice(),
        });
        inner.records.push_back(record.clone());
        if mistake::is(Mistake::EventReusedEarly) {
            event_pool::give_back(identity.device, event);
        }
        Ok(record)
    }

    /// A new event behind everything queued on the stream, also what was not submitted through the library. The caller
    /// has just passed the stream.
    pub(super) fn record_now(&self, event: backend::EventHandle) -> Result<(u64, Waits)> {
        let inner = self.inner.lock();
        let covers = self.submitted.load(Ordering::Acquire);
        backend::current()?.event_record(inner.identity.device, event, inner.identity.handle)?;
        Ok((covers, inner.waits.clone().into_boxed_slice()))
    }

    /// An event whose completion means that `sequence` is done; `None` when it is done already.
    fn record_covering(&self, sequence: u64) -> Result<Option<Arc<Record>>> {
        let mut inner = self.inner.lock();
        if sequence <= self.completed() {
            return Ok(None);
        }
        if let Some(record) = inner
            .records
            .iter()
            .find(|record| record.covers >= sequence)
        {
            return Ok(Some(record.clone()));
        }
        if inner.alive && inner.identity.kind.may_be_touched() {
            return self.record(&mut inner).map(Some);
        }
        // Every submission to such a stream leaves a record, but for one that is under way, or whose event failed.
        fail!(
            Status::InvalidStream,
            "stream {:#x} is not the library's to touch and has no event for work {sequence}: the call that submits it has \
             not ended yet, or failed to record one; a wait for the stream or the device by its owner's call ends that work",
            inner.identity.handle
        )
    }

    /// Asks the driver what is complete, without waiting. `false` when nothing more could be learnt (an error of the
    /// driver leaves the work as not seen complete).
    pub fn poll(&self) -> bool {
        #[cfg(test)]
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut inner = self.inner.lock();
        self.poll_locked(&mut inner).is_ok()
    }

    fn poll_locked(&self, inner: &mut Inner) -> Result<()> {
        let backend = backend::current()?;
        self.drop_done_records(inner)?;
        let identity = inner.identity;
        if !inner.records.is_empty() || !inner.alive || !identity.kind.may_be_touched() {
            return Ok(());
        }
        let submitted = self.submitted.load(Ordering::Acquire);
        if submitted == self.completed() {
            return Ok(());
        }
        if identity.is_capturing()? {
            return Ok(());
        }
        if backend.stream_query(identity.device, identity.handle)? {
            self.mark_completed(submitted);
        } else {
            // Work goes on being queued here: this event lets a later poll see how far it has come.
            self.record(inner)?;
        }
        Ok(())
    }

    fn drop_done_records(&self, inner: &mut Inner) -> Result<()> {
        let backend = backend::current()?;
        while let Some(first) = inner.records.front() {
            let done = match backend.event_query(first.device, first.event) {
                Err(_) if mistake::is(Mistake::FailedQueryIsDone) => true,
                answer => answer?,
            };
            if !done {
                break;
            }
            if mistake::is(Mistake::PollMarksTooFar) {
                self.mark_completed(self.last_submitted());
            }
            self.mark_completed(first.covers);
            inner.records.pop_front();
        }
        Ok(())
    }

    /// Waits until access `sequence` is done; `false` when the deadline passed first.
    pub fn wait_on_host(&self, sequence: u64, deadline: Deadline) -> Result<bool> {
        let Some(record) = self.record_covering(sequence)? else {
            return Ok(true);
        };
        if !backend::current()?.event_synchronize(
            record.device,
            record.event,
            deadline.remaining(),
        )? {
            return Ok(false);
        }
        if mistake::is(Mistake::HostWaitMarksTooFar) {
            self.mark_completed(self.last_submitted());
        }
        self.mark_completed(record.covers);
        let mut inner = self.inner.lock();
        while inner
            .records
            .front()
            .is_some_and(|first| first.covers <= record.covers)
        {
            inner.records.pop_front();
        }
        Ok(true)
    }

    /// Waits for everything queued on the stream, also what others queued; `false` when the deadline passed first. The
    /// caller has just passed the stream.
    pub fn synchronize(&self, deadline: Deadline) -> Result<bool> {
        let submitted = self.submitted.load(Ordering::Acquire);
        let identity = self.inner.lock().identity;
        let done = backend::current()?.stream_synchronize(
            identity.device,
            identity.handle,
            deadline.remaining(),
        )?;
        if done {
            self.all_done(submitted);
        }
        Ok(done)
    }

    /// Whether everything queued on the stream is done. The caller has just passed the stream.
    pub fn query(&self) -> Result<bool> {
        let submitted = self.submitted.load(Ordering::Acquire);
        let identity = self.inner.lock().identity;
        let done = backend::current()?.stream_query(identity.device, identity.handle)?;
        if done {
            self.all_done(submitted);
        }
        Ok(done)
    }

    /// Everything up to `submitted` has been seen complete by a wait or a query on the stream or the device.
    pub(super) fn all_done(&self, submitted: u64) {
        self.mark_completed(submitted);
        let mut inner = self.inner.lock();
        while inner
            .records
            .front()
            .is_some_and(|first| first.covers <= submitted)
        {
            inner.records.pop_front();
        }
    }

    /// The handle will not be used any more: what is open gets an event first, where the library may record one.
    pub(super) fn retire(&self) -> Result<()> {
        let mut inner = self.inner.lock();
        if inner.holds > 0 {
            // Whoever holds the stream will note an access that covers all that was queued, also by others.
            self.submitted.fetch_add(1, Ordering::AcqRel);
        }
        if mistake::is(Mistake::DestroyedStreamIsDone) {
            self.mark_completed(self.last_submitted());
        }
        if self.submitted.load(Ordering::Acquire) != self.completed()
            && inner.identity.kind.may_be_touched()
        {
            match self.record(&mut inner) {
                // Work of a lost context is never seen complete, whatever is recorded; the handle is done with all the same.
                Err(error) if error.status == Status::ContextLost => {}
                result => drop(result?),
            }
        }
        inner.alive = false;
        Ok(())
    }

    /// Undoes `retire`, where the stream could not be ended.
    pub(super) fn revive(&self) {
        self.inner.lock().alive = true;
    }

    /// Makes a stream that was registered its owner's again, if somebody holds it: they will touch it once more.
    pub(super) fn revive_held(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.holds > 0 {
            if !mistake::is(Mistake::HeldStaysRegistered) {
                inner.identity.kind = StreamKind::Foreign;
            }
            inner.alive = true;
        }
        inner.alive
    }
}

/// Keeps what a stream was for a later access of all that is queued on it by then: while this lives, its slot is no other
/// stream's. A foreign stream is kept alive by its owner meanwhile (law 1).
pub struct Hold(&'static Stream);

impl Hold {
    /// The caller has just passed the stream.
    pub fn new(stream: &'static Stream) -> Hold {
        stream.inner.lock().holds += 1;
        Hold(stream)
    }

    pub fn stream(&self) -> &'static Stream {
        self.0
    }

    /// The stream is gone and all that was queued on it is known to be done, so that nothing is to come.
    pub fn is_over(&self) -> bool {
        !self.0.is_alive() && self.0.completed() == self.0.last_submitted()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.inner.lock().holds -= 1;
    }
}

#[cfg(test)]
mod tests;
