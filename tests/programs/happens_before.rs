//! What comes after what, from the waits that were made: the model's part that knows of streams.

use super::model::*;

/// By stream: everything up to that access comes before.
pub type Clock = Vec<u64>;

pub(super) fn join(clock: &mut Clock, other: &[u64]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

pub(super) fn at(clock: &[u64], stream: StreamId) -> u64 {
    clock.get(stream).copied().unwrap_or(0)
}

/// What a stream's next work comes after. The library may record an event at once or use an older one, and an event covers
/// more than it is asked for: so there is what is surely ordered, and what may be.
#[derive(Clone, Default)]
pub struct Order {
    pub(super) surely: Clock,
    pub(super) perhaps: Clock,
}

/// What an event stands for: (stream, its last access, what that came after).
#[derive(Clone)]
pub struct Recorded(StreamId, u64, Order);

#[derive(Clone)]
pub struct Access {
    pub(super) stream: StreamId,
    pub(super) sequence: u64,
    write: bool,
    /// What this access surely came after.
    after: Clock,
}

impl Model {
    pub fn new_stream(&mut self, last: u64, seen: u64) -> StreamId {
        self.order.push(Order::default());
        self.last.push(last);
        self.seen.push(seen);
        self.order.len() - 1
    }

    pub(super) fn come_after(&mut self, stream: StreamId, recorded: &Recorded) {
        let Recorded(other, last, order) = recorded;
        let mut own = vec![0; other + 1];
        own[*other] = *last;
        let mine = &mut self.order[stream];
        join(&mut mine.surely, &order.surely);
        join(&mut mine.surely, &own);
        join(&mut mine.perhaps, &order.perhaps);
        join(&mut mine.perhaps, &own);
    }

    pub fn record(&self, stream: StreamId) -> Recorded {
        Recorded(stream, self.last[stream], self.order[stream].clone())
    }

    /// `stream` waits for all that the record covers.
    pub fn wait(&mut self, stream: StreamId, recorded: &Recorded) {
        if stream != recorded.0 {
            self.come_after(stream, recorded);
        }
    }

    /// After a fault nobody is sure which waits were made.
    pub fn forget_order(&mut self) {
        self.order.iter_mut().for_each(|order| order.surely.clear());
    }

    /// What a free leaves to wait for: all that the stream had queued up to there. `of`: an event's record, where that is the
    /// place. It drops nothing, as it may have been queued long ago.
    pub fn add_access(
        &mut self,
        memory: MemoryId,
        stream: StreamId,
        sequence: u64,
        of: Option<&Recorded>,
    ) {
        self.last[stream] = self.last[stream].max(sequence);
        let order = of.map_or(&self.order[stream], |recorded| &recorded.2);
        let after = order.surely.clone();
        let accesses = &mut self.memories[memory].accesses;
        match accesses.iter_mut().find(|a| a.write && a.stream == stream) {
            Some(known) if known.sequence >= sequence => {}
            Some(known) => (known.sequence, known.after) = (sequence, after),
            None => accesses.push(Access {
                stream,
                sequence,
                write: true,
                after,
            }),
        }
    }

    pub(super) fn is_done(&self, access: &Access) -> bool {
        access.sequence <= self.seen[access.stream]
    }

    pub(super) fn done(&self, memory: MemoryId) -> bool {
        self.memories[memory]
            .accesses
            .iter()
            .all(|a| self.is_done(a))
    }

    /// The work that is queued on `stream` next comes after the access.
    pub(super) fn is_ordered(&self, access: &Access, stream: StreamId, clock: &Clock) -> bool {
        access.stream == stream
            || self.is_done(access)
            || at(clock, access.stream) >= access.sequence
    }

    pub(super) fn surely_ready(&self, memory: MemoryId, stream: Option<StreamId>) -> bool {
        self.ready(memory, stream, |order| &order.surely)
    }

    pub(super) fn perhaps_ready(&self, memory: MemoryId, stream: Option<StreamId>) -> bool {
        self.ready(memory, stream, |order| &order.perhaps)
    }

    pub(super) fn ready(
        &self,
        memory: MemoryId,
        stream: Option<StreamId>,
        clock: fn(&Order) -> &Clock,
    ) -> bool {
        self.memories[memory]
            .accesses
            .iter()
            .all(|access| match stream {
                Some(stream) => self.is_ordered(access, stream, clock(&self.order[stream])),
                None => self.is_done(access),
            })
    }

    /// Before work of that kind: a reader waits for writes, a writer for everything.
    pub fn begin_access(&mut self, memory: MemoryId, stream: StreamId, write: bool) {
        for access in self.memories[memory].accesses.clone() {
            let surely = self.is_ordered(&access, stream, &self.order[stream].surely);
            if !(write || access.write) || surely {
                continue;
            }
            let mut order = Order {
                surely: access.after.clone(),
                perhaps: self.order[access.stream].perhaps.clone(),
            };
            let mut latest = vec![0; access.stream + 1];
            latest[access.stream] = self.last[access.stream];
            join(&mut order.perhaps, &latest);
            self.come_after(stream, &Recorded(access.stream, access.sequence, order));
        }
    }

    /// The call was refused after some of the waits or none.
    pub fn half_begin_access(&mut self, memory: MemoryId, stream: StreamId, write: bool) {
        let surely = self.order[stream].surely.clone();
        self.begin_access(memory, stream, write);
        self.order[stream].surely = surely;
    }

    /// Such work has to wait for work of one of these streams, as far as is known.
    pub fn waits_for_one_of(
        &self,
        others: &[StreamId],
        memory: MemoryId,
        stream: StreamId,
        write: bool,
    ) -> bool {
        let mut accesses = self.memories[memory].accesses.iter();
        accesses.any(|access| {
            let counts = (write || access.write) && others.contains(&access.stream);
            counts && !self.is_ordered(access, stream, &self.order[stream].surely)
        })
    }

    /// The work is queued and has that number. What it was ordered after need not be remembered any more where it wrote.
    pub fn end_access(&mut self, memory: MemoryId, stream: StreamId, write: bool, sequence: u64) {
        self.last[stream] = self.last[stream].max(sequence);
        let mut accesses = std::mem::take(&mut self.memories[memory].accesses);
        let surely = &self.order[stream].surely;
        if write {
            accesses.retain(|access| !self.is_ordered(access, stream, surely));
        } else {
            accesses.retain(|access| access.write || access.stream != stream);
        }
        accesses.push(Access {
            stream,
            sequence,
            write,
            after: surely.clone(),
        });
        self.memories[memory].accesses = accesses;
    }
}
