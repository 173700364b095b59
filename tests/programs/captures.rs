//! The steps that begin and end captures, and what a capture forbids: nothing from outside enters it, and nothing that happens
//! in it counts outside.

use super::c_interface::*;
use super::choice::Waiting;
use super::model::*;
use super::program::*;
use super::run::*;
use super::slots::*;

/// Whether a call is refused since a stream captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Never,
    /// It has to wait for work of a stream that captures, and only the library knows whether there is an event behind that.
    Perhaps,
    Surely,
}

impl Refusal {
    pub(super) fn when(captures: bool) -> Refusal {
        match captures {
            true => Refusal::Surely,
            false => Refusal::Never,
        }
    }
}

/// A stream that began a capture or joined one.
#[derive(Clone, Copy)]
struct Member {
    life: Life,
    stream: StreamId,
    capture: u64,
    device: usize,
    /// It orders with the legacy stream, which nobody may use meanwhile.
    is_blocking: bool,
    /// Somebody else's: who it is cannot be asked now.
    is_foreign: bool,
}

struct Begun {
    capture: u64,
    /// Where its first stream is.
    slot: u16,
    is_broken: bool,
}

#[derive(Default)]
pub(super) struct Captures {
    members: Vec<Member>,
    begun: Vec<Begun>,
    count: u64,
    /// By event, the capture that its latest record lies in.
    pub(super) records: [Option<u64>; EVENTS as usize],
}

impl Captures {
    pub(super) fn has(&self, life: Life) -> bool {
        self.of(life).is_some()
    }

    fn of(&self, life: Life) -> Option<u64> {
        let found = self.members.iter().find(|member| member.life == life);
        found.map(|member| member.capture)
    }

    /// Every call that passes it is refused.
    pub(super) fn is_unknown(&self, life: Life) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.life == life && member.is_foreign)
    }

    /// The legacy stream of device 0 must not be used.
    pub(super) fn bar_legacy(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.is_blocking && member.device == 0)
    }

    /// Work on the stream is refused, and waits of it for what lies outside.
    pub(super) fn refuse(&self, life: Life) -> bool {
        self.has(life) || (life == LIFE_OF_LEGACY && self.bar_legacy())
    }

    fn goes_on(&self, capture: u64) -> bool {
        self.begun.iter().any(|begun| begun.capture == capture)
    }
}

impl Runner {
    /// Streams that the library can record no event on.
    fn barred(&self) -> Vec<StreamId> {
        let members = self.captures.members.iter().map(|member| member.stream);
        let legacy = self.known_as.get(&(LEGACY, 0, 0)).copied();
        let legacy = legacy.filter(|_| self.captures.bar_legacy());
        members.chain(legacy).collect()
    }

    pub(super) fn refusal_of(&self, place: Place, accesses: &[(MemoryId, bool)]) -> Refusal {
        if self.captures.refuse(place.life) {
            return Refusal::Surely;
        }
        let barred = self.barred();
        let waits = |(memory, write): &(MemoryId, bool)| {
            self.model
                .waits_for_one_of(&barred, *memory, place.stream, *write)
        };
        match accesses.iter().any(waits) {
            true => Refusal::Perhaps,
            false => Refusal::Never,
        }
    }

    /// Whether a request on that stream may be served by a wait.
    pub(super) fn waiting_of(&self, place: Option<Place>) -> Waiting {
        match place {
            None => Waiting::Never,
            Some(place) if self.captures.refuse(place.life) => Waiting::Never,
            Some(place) => Waiting::For {
                stream: place.stream,
                barred: self.barred(),
            },
        }
    }

    /// Of a call that waits on the host for all that is held.
    pub(super) fn refusal_to_wait(&self) -> Refusal {
        match self.captures.members.is_empty() {
            true => Refusal::Never,
            false => Refusal::Perhaps,
        }
    }

    fn member(&self, place: Place, capture: u64) -> Member {
        let named = self.streams.get(usize::from(place.name));
        let named = named.and_then(Option::as_ref);
        Member {
            life: place.life,
            stream: place.stream,
            capture,
            device: named.map_or(0, |named| named.device),
            is_blocking: named.is_none_or(|named| named.is_blocking),
            is_foreign: named.is_some_and(|named| named.origin == Origin::Foreign),
        }
    }

    pub(super) fn begin_capture(&mut self, thread: usize, name: u16) {
        let Some(place) = self.stream_alone(name, thread) else {
            return;
        };
        // A thread's own stream only joins: nobody else could end its capture.
        if name == PER_THREAD {
            return;
        }
        let refusal = Refusal::when(self.captures.refuse(place.life));
        let allowed: &[i32] = match name {
            LEGACY => &[CVC_STATUS_INVALID_STREAM],
            _ => &[],
        };
        // SAFETY: a stream.
        let done = self.call_as(thread, refusal, allowed, || unsafe {
            cvc_host_capture_begin(place.handle)
        });
        assert_eq!(done, refusal == Refusal::Never && name != LEGACY);
        if done {
            self.captures.count += 1;
            let capture = self.captures.count;
            let member = self.member(place, capture);
            self.captures.members.push(member);
            self.captures.begun.push(Begun {
                capture,
                slot: name,
                is_broken: false,
            });
            self.tally.captures += 1;
        }
    }

    /// Any stream of the capture may end it, for all of them.
    pub(super) fn end_capture(&mut self, thread: usize, name: u16) {
        let Some(place) = self.stream_alone(name, thread) else {
            return;
        };
        let capture = self.captures.of(place.life);
        let mut begun = self.captures.begun.iter();
        let begun = begun.find(|begun| Some(begun.capture) == capture);
        let refusal = Refusal::when(begun.is_some_and(|begun| begun.is_broken));
        let allowed: &[i32] = match capture {
            None => &[CVC_STATUS_INVALID_STREAM],
            Some(_) => &[],
        };
        // SAFETY: a stream.
        let done = self.call_as(thread, refusal, allowed, || unsafe {
            cvc_host_capture_end(place.handle)
        });
        assert_eq!(done, refusal == Refusal::Never && capture.is_some());
        self.captures
            .members
            .retain(|member| Some(member.capture) != capture);
        self.captures
            .begun
            .retain(|begun| Some(begun.capture) != capture);
    }

    pub(super) fn end_captures(&mut self) {
        while let Some(slot) = self.captures.begun.first().map(|begun| begun.slot) {
            let before = self.captures.begun.len();
            self.end_capture(0, slot);
            assert!(self.captures.begun.len() < before, "a capture has no end");
        }
    }

    /// A wait for the device is no part of a graph: it is refused, and all captures there are broken.
    pub(super) fn break_captures(&mut self, device: usize) -> Refusal {
        let Captures { members, begun, .. } = &mut self.captures;
        let mut is_any = false;
        for member in members.iter().filter(|member| member.device == device) {
            is_any = true;
            for begun in begun.iter_mut() {
                begun.is_broken |= begun.capture == member.capture;
            }
        }
        self.tally.captures_broken += u64::from(is_any);
        Refusal::when(is_any)
    }

    /// Whether a wait by `waits`, for what lies in the capture `other` or in none, is refused.
    fn wait_refusal(&self, waits: Place, other: Option<u64>) -> Refusal {
        let own = self.captures.of(waits.life);
        let is_barred = waits.life == LIFE_OF_LEGACY && self.captures.bar_legacy();
        Refusal::when(match other {
            _ if is_barred || self.captures.is_unknown(waits.life) => true,
            None => own.is_some(),
            Some(other) if own.is_none() => {
                waits.life == LIFE_OF_LEGACY || !self.captures.goes_on(other)
            }
            other => own != other,
        })
    }

    /// A wait for another stream: which capture that is in, and whether it is refused.
    pub(super) fn stream_wait_refusal(&self, waits: Place, other: Place) -> Refusal {
        let is_unknown = |place: Place| self.captures.is_unknown(place.life);
        if is_unknown(waits) || is_unknown(other) {
            return Refusal::Surely;
        }
        if std::ptr::eq(waits.pointer, other.pointer) {
            return Refusal::Never;
        }
        if other.life == LIFE_OF_LEGACY && self.captures.bar_legacy() {
            return Refusal::Surely;
        }
        self.wait_refusal(waits, self.captures.of(other.life))
    }

    pub(super) fn event_wait_refusal(&self, waits: Place, event: usize) -> Refusal {
        self.wait_refusal(waits, self.captures.records[event])
    }

    /// The wait was made. `true` where it lies in a capture, which the stream joins if it has not yet; it orders nothing outside.
    pub(super) fn joins(&mut self, waits: Place, capture: Option<u64>) -> bool {
        let Some(capture) = capture else {
            return false;
        };
        if !self.captures.has(waits.life) {
            let member = self.member(waits, capture);
            self.captures.members.push(member);
            self.tally.captures_joined += 1;
        }
        true
    }

    pub(super) fn capture_of(&self, place: Place) -> Option<u64> {
        self.captures.of(place.life)
    }
}
