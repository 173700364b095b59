//! Deliberate mistakes, one at a time, by which `tests/mistakes.rs` shows that the tests would find them. Without the feature
//! `mistakes` each question below is answered by a constant, and the compiler leaves nothing of it.

macro_rules! mistakes {
    ($($name:ident $text:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mistake { $($name),* }

        impl Mistake {
            pub const ALL: &'static [Mistake] = &[$(Mistake::$name),*];

            /// As `CVC_MISTAKE` names it.
            pub fn text(self) -> &'static str {
                match self { $(Mistake::$name => $text),* }
            }
        }
    };
}

mistakes! {
    SkipSomeWaits "skip one wait in sixteen"
    WaitForLastAccessOnly "order a writer after only the last access"
    WriteIgnoresReaders "order a writer after writers only"
    ReadersNotNoted "readers not noted"
    ReaderReplacesReaders "note only the last reader"
    WriteForgetsUnordered "a write forgets accesses that it did not wait for"
    LegacyOrdersAll "take the legacy stream to order with every stream"
    RememberMoreThanWaited "remember a wait that was not made"
    RememberLaterWaits "take over waits that came after the event"
    RecordBeforeLaunch "record an event before the launch"
    NumberTooLow "number the access before the launch"
    PollMarksTooFar "a poll marks all as complete"
    EventQueryMarksTooFar "an event's query marks its whole stream as complete"
    HostWaitMarksTooFar "a wait of the host marks all as complete"
    FailedRecordIsDone "a failed event record treated as done"
    FailedQueryIsDone "a failed query treated as done"
    EventReusedEarly "an event reused before it is complete"
    SlotReusedEarly "a stream's slot reused with work queued"
    DestroyedStreamIsDone "a destroyed stream's work treated as done"
    KeyStreamByHandle "key a stream by its handle"
    ForgetAlias "forget an alias of memory"
    ViewHoldsNothing "reuse while a view lives"
    ExportDoesNotWait "an export does not wait for the producer"
    ExportEndNotNoted "a DLPack export's end not noted"
    BatchIgnoresImages "a batch does not wait for its images"
    CodesNotNoted "an operator's second input not noted"
    ReusePendingAnyStream "reuse pending memory of another stream without a wait"
    PressureDoesNotWait "reuse under pressure without a wait"
    TakeForgetsAccesses "forget the accesses of memory that is reused"
    FitTooSmall "a fit that is too small"
    EvictPending "evict what is pending"
    EvictionKeepsCharge "charge lost at eviction"
    OverLimitIsIndexed "an entry over the limit is indexed"
    ReusedTransientChargedTwice "memory that was over the limit charged twice"
    LoweredLimitKeeps "a lowered limit evicts nothing"
    ReleaseWithoutOwnersList "release on another thread without the owner's list"
    ThreadEndDropsBytes "drop bytes at a thread's end"
    ThreadEndForgetsList "forget the owner's list at a thread's end"
    ThreadEndKeepsIndexed "leave an ended thread's objects indexed"
    ClearDoesNotWait "clear that does not wait"
    FreeWithWorkQueued "free blocks with work queued"
    CollectWithWorkQueued "free blocks that wait before their work is done"
    SlotKeepsWaits "a reused slot of a stream keeps the waits"
    ReadForgetsWaitedFor "of many accesses a read forgets those it waited for"
    OwnStreamByHandle "record on the caller's own stream for another's"
    HeldStaysRegistered "a held stream stays registered for its owner"
    EventLeavesOutSlot "an event leaves out a later stream of its slot"
    RefusedBlockForgotten "forget a block that the driver did not take back"
}

/// Whether the library is to make this mistake: the one that the environment named when it was first asked.
#[cfg(feature = "mistakes")]
#[inline]
pub fn is(mistake: Mistake) -> bool {
    use std::sync::OnceLock;
    static CHOSEN: OnceLock<Option<Mistake>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("CVC_MISTAKE").ok()?;
        let named = |known: &&Mistake| known.text() == name;
        Mistake::ALL.iter().find(named).copied()
    });
    *chosen == Some(mistake)
}

#[cfg(not(feature = "mistakes"))]
#[inline(always)]
pub const fn is(_: Mistake) -> bool {
    false
}

/// `is`, for one call in `period`.
#[cfg(feature = "mistakes")]
pub fn is_now(mistake: Mistake, period: u64) -> bool {
    use std::sync::atomic::{AtomicU64, Ordering};
    static CALLS: AtomicU64 = AtomicU64::new(0);
    is(mistake) && CALLS.fetch_add(1, Ordering::Relaxed) % period == 0
}

#[cfg(not(feature = "mistakes"))]
#[inline(always)]
pub const fn is_now(_: Mistake, _: u64) -> bool {
    false
}
