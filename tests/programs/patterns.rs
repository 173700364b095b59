//! Steps that follow each other, since by chance they seldom would: raw memory from its request to the next user of its
//! bytes, streams that only wait, many readers.

use super::generate::{pick, Generator};
use super::program::*;

/// Flavours of `new_stream`.
const CREATED: u16 = 0;
const FOREIGN: u16 = 2;

type Statement = (What, [u16; 4], u16);

fn statement(what: What, numbers: [u16; 4], thread: u16) -> Statement {
    (what, numbers, thread)
}

impl Generator {
    fn any_thread(&mut self) -> u16 {
        self.random.below(self.style.threads)
    }

    /// The steps, from the first on, come before any other.
    fn follow(&mut self, steps: &[Statement]) {
        for (what, numbers, thread) in steps.iter().rev() {
            self.next.push(Step {
                what: *what,
                thread: *thread,
                numbers: *numbers,
            });
        }
    }

    /// A slot for a stream that a pattern makes; what is in it ends first.
    fn slot_for_stream(&mut self) -> (u16, Statement) {
        let slot = self.named_stream(false);
        self.slots.streams[slot as usize] = true;
        (slot, statement(What::EndStream, [slot, 0, 0, 0], 0))
    }

    fn raw(&mut self, known: bool) -> u16 {
        match self.random.below(16) {
            0 => RAW_OF_DEVICE_1,
            _ => pick(
                &mut self.random,
                &self.slots.raws[..RAW_OF_DEVICE_1 as usize],
                |place| *place == known,
            ),
        }
    }

    fn stream_for_raw(&mut self, slot: u16) -> u16 {
        match slot == RAW_OF_DEVICE_1 {
            true => STREAM_OF_DEVICE_1,
            false => self.stream(),
        }
    }

    /// A step on raw memory, for one step in fourteen, patterns counted in.
    pub(super) fn of_raw_memory(&mut self, thread: u16) -> Option<Step> {
        let choice = self.random.below(100);
        if !self.style.raw || choice >= 5 {
            return None;
        }
        if choice == 0 {
            self.life_of_memory();
            return self.next.pop();
        }
        let number = (self.random.next() >> 17) as u16;
        let (known, unknown) = (self.raw(true), self.raw(false));
        let stream = self.stream_for_raw(known);
        let (what, numbers) = match self.random.below(16) {
            0..=4 => {
                self.slots.raws[unknown as usize] = true;
                let consumer = match self.random.below(6) {
                    0 => NO_STREAM,
                    _ => self.stream_for_raw(unknown),
                };
                let cache = self.cache();
                (What::Alloc, [unknown, number % 8, consumer, cache])
            }
            5..=8 => (What::Work, [known, stream, number % 2, number / 2 % 250]),
            9..=10 => (What::RecordStream, [known, stream, 0, 0]),
            11..=14 => {
                self.slots.raws[known as usize] = false;
                let on = if number % 2 == 0 { stream } else { NO_STREAM };
                (What::Free, [known, on, 0, 0])
            }
            _ => {
                self.slots.raws[known as usize] = false;
                (What::FreeAfterEvent, [known, number % EVENTS, 0, 0])
            }
        };
        Some(Step {
            what,
            thread,
            numbers,
        })
    }

    /// Memory from its request to the next use of its bytes.
    fn life_of_memory(&mut self) {
        let slot = pick(
            &mut self.random,
            &self.slots.raws[..RAW_OF_DEVICE_1 as usize],
            |known| !*known,
        );
        let number = (self.random.next() >> 17) as u16;
        let (kind, event, write) = (number % 8, number / 8 % EVENTS, number / 16 % 2);
        let (stream, other) = (self.named_stream(true), self.stream());
        let (first, second) = (self.any_thread(), self.any_thread());
        let next = if number / 32 % 3 == 0 {
            NO_STREAM
        } else {
            other
        };
        let alloc = statement(What::Alloc, [slot, kind, stream, 0], second);
        let free = statement(What::Free, [slot, NO_STREAM, 0, 0], second);
        let after_event = statement(What::FreeAfterEvent, [slot, event, 0, 0], second);
        let again = [
            statement(What::Alloc, [slot, kind, next, 0], second),
            statement(What::Work, [slot, other, 1, number % 250], second),
        ];
        let work = |stream, thread| statement(What::Work, [slot, stream, write, 7], thread);
        let record = |stream| statement(What::RecordStream, [slot, stream, 0, 0], first);
        let mut steps = match self.random.below(8) {
            // On one stream.
            0 => vec![
                alloc,
                work(stream, second),
                statement(What::Free, [slot, stream, 0, 0], first),
            ],
            // On a stream that is named, and ends before the free where the library created it.
            1 => {
                self.slots.streams[stream as usize] = false;
                vec![
                    alloc,
                    record(stream),
                    work(stream, first),
                    statement(What::EndStream, [stream, 0, 0, 0], first),
                    free,
                    statement(What::EndStream, [stream, 0, 0, 0], 0),
                ]
            }
            // On somebody else's, which ends as soon as it may.
            2 => {
                let (new, end) = self.slot_for_stream();
                self.slots.streams[new as usize] = false;
                let flavour = FOREIGN + number / 64 % 2;
                let mut steps = vec![
                    end,
                    statement(What::NewStream, [new, flavour, 0, 0], 0),
                    alloc,
                    record(new),
                ];
                if number / 128 % 2 == 0 {
                    steps.push(statement(What::Register, [new, 0, 0, 0], first));
                }
                let free = match number / 256 % 3 {
                    0 => statement(What::Free, [slot, new, 0, 0], second),
                    _ => free,
                };
                steps.extend([work(new, first), free]);
                steps.push(statement(What::EndStream, [new, 0, 0, 0], 0));
                steps
            }
            // After an event, while its stream goes on.
            3 => {
                let tensor = self.tensor();
                vec![
                    alloc,
                    work(stream, second),
                    statement(What::RecordEvent, [event, stream, 0, 0], first),
                    statement(What::Upload, [tensor, stream, 9, 0], 0),
                    after_event,
                ]
            }
            // After an event of a stream whose slot is another's by then.
            4 => {
                let (new, end) = self.slot_for_stream();
                let make = statement(What::NewStream, [new, CREATED, 0, 0], 0);
                vec![
                    alloc,
                    end,
                    make,
                    statement(What::RecordEvent, [event, new, 0, 0], 0),
                    statement(What::SyncStream, [new, 0, 0, 0], 0),
                    end,
                    make,
                    record(new),
                    work(new, first),
                    after_event,
                ]
            }
            // After an event of a stream that is gone, and whose slot may be another's.
            6 => {
                let (new, end) = self.slot_for_stream();
                let make = |flavour| statement(What::NewStream, [new, flavour, 0, 0], 0);
                vec![
                    end,
                    make(number / 64 % 4),
                    alloc,
                    work(new, first),
                    statement(What::RecordEvent, [event, new, 0, 0], first),
                    end,
                    make(number / 256 % 4),
                    statement(What::WaitEvent, [event, other, 0, 0], second),
                    after_event,
                ]
            }
            // After an event of the own stream of a thread that has ended; the next thread may have its slot.
            5 if self.style.threads > 1 => {
                let thread = 1 + number / 64 % (self.style.threads - 1);
                let of_event = [event, PER_THREAD, 0, 0];
                vec![
                    alloc,
                    statement(What::EndThread, [0; 4], thread),
                    statement(What::RecordEvent, of_event, thread),
                    statement(What::SyncStream, [PER_THREAD, 0, 0, 0], thread),
                    statement(What::EndThread, [0; 4], thread),
                    statement(What::RecordStream, [slot, PER_THREAD, 0, 0], thread),
                    work(PER_THREAD, thread),
                    after_event,
                ]
            }
            // On a thread's own stream, which another thread cannot name, and which may end with its thread.
            _ => {
                let mut steps = vec![alloc, record(PER_THREAD), work(PER_THREAD, first)];
                if first > 0 && number / 64 % 4 == 0 {
                    steps.push(statement(What::EndThread, [0; 4], first));
                }
                steps.push(free);
                steps
            }
        };
        self.slots.raws[slot as usize] = number / 512 % 2 == 0;
        if self.slots.raws[slot as usize] {
            steps.extend(again);
        }
        self.follow(&steps);
    }

    /// Patterns of several streams.
    pub(super) fn of_many_streams(&mut self) -> Option<Step> {
        let many = self.style.streams > super::generate::FEW_STREAMS;
        match self.random.below(200) {
            0 => self.stream_that_only_waits(),
            1..=3 if many => self.many_readers(),
            _ => return None,
        }
        self.next.pop()
    }

    /// It waits for a writer and ends; the next stream in its slot waited for nothing.
    fn stream_that_only_waits(&mut self) {
        let (tensor, place) = (self.tensor(), self.place());
        if tensor >= FIRST_TENSOR_OF_DEVICE_1 || place >= FIRST_TENSOR_OF_DEVICE_1 {
            return;
        }
        let writer = self.named_stream(true);
        let (new, end) = self.slot_for_stream();
        let make = statement(What::NewStream, [new, CREATED, 0, 0], 0);
        let number = (self.random.next() >> 17) as u16;
        let mut steps = vec![
            end,
            make,
            statement(What::Upload, [tensor, writer, number % 250, 0], 0),
            statement(What::WaitStream, [new, writer, 0, 0], 0),
            end,
            make,
        ];
        match number % 4 {
            0 => steps.push(statement(What::Download, [tensor, new, 0, 0], 0)),
            1 => steps.push(statement(What::Flip, [tensor, new, number / 4 % 3, 0], 0)),
            2 => {
                self.slots.tensors[place as usize] = self.slots.tensors[tensor as usize];
                steps.push(statement(What::FlipNew, [tensor, place, new, 1], 0));
            }
            _ => {
                // What the writer wrote, for the new stream.
                let kind = self.slots.tensors[tensor as usize].unwrap_or(0);
                steps.extend([
                    statement(What::ReleaseTensor, [tensor, 0, 0, 0], 0),
                    statement(What::Create, [tensor, kind % 10, new, 0], 0),
                    statement(What::Fill, [tensor, new, 0, 0], 0),
                ]);
            }
        }
        self.follow(&steps);
    }

    /// Readers on every stream, with one write before them.
    fn many_readers(&mut self) {
        let tensor = self.tensor();
        if tensor >= FIRST_TENSOR_OF_DEVICE_1 {
            return;
        }
        let number = (self.random.next() >> 17) as u16;
        let mut order: Vec<u16> = (0..self.style.streams).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, self.random.below(place as u16 + 1) as usize);
        }
        let mut steps = Vec::new();
        for stream in &order {
            if !self.slots.streams[*stream as usize] {
                self.slots.streams[*stream as usize] = true;
                steps.push(statement(What::NewStream, [*stream, number % 4, 0, 0], 0));
            }
        }
        steps.push(statement(
            What::Upload,
            [tensor, order[0], number % 250, 0],
            0,
        ));
        for stream in &order[1..] {
            let what = match self.random.below(4) {
                0 => What::Launch,
                _ => What::Download,
            };
            steps.push(statement(what, [tensor, *stream, 0, 0], 0));
        }
        if number % 2 == 0 {
            let last = self.stream();
            steps.push(statement(What::Fill, [tensor, last, 0, 0], 0));
        }
        self.follow(&steps);
    }

    /// A request on a captured stream, over the limit, while another stream's work is queued on what would fit.
    fn capture_without_room(&mut self) {
        let (stream, other) = (self.named_stream(true), self.stream());
        let place = self.place();
        if place >= FIRST_TENSOR_OF_DEVICE_1 {
            return;
        }
        self.slots.tensors[place as usize] = Some(1);
        let (small, usual) = (1, 4);
        let limit = |limit| statement(What::SetLimit, [limit, 0, 0, 0], 0);
        let create = |stream| statement(What::Create, [place, 1, stream, 0], 0);
        let release = statement(What::ReleaseTensor, [place, 0, 0, 0], 0);
        let begin = statement(What::BeginCapture, [stream, 0, 0, 0], 0);
        self.follow(&[
            release,
            create(other),
            limit(small),
            statement(What::Upload, [place, other, 3, 0], 0),
            release,
            begin,
            create(stream),
            statement(What::EndCapture, [stream, 0, 0, 0], 0),
            release,
            create(stream),
            statement(What::Fill, [place, stream, 0, 0], 0),
            limit(usual),
        ]);
    }

    /// A capture with steps inside that it refuses, that join it or have nothing to do with it; and after its end a use of what
    /// a stream in it may be thought to have waited for.
    pub(super) fn of_captures(&mut self) {
        if self.random.below(4) == 0 {
            return self.capture_without_room();
        }
        let other = self.stream();
        let stream = match self.random.below(12) {
            0 => STREAM_OF_DEVICE_1,
            _ => self.named_stream(true),
        };
        let (tensor, place) = (self.tensor(), self.place());
        let (thread, event) = (self.any_thread(), self.random.below(EVENTS));
        let kind = self.random.of(self.style.kinds);
        let mut steps = Vec::new();
        if self.random.below(2) == 0 {
            steps.push(statement(What::Upload, [tensor, stream, 11, 0], 0));
        }
        steps.push(statement(What::BeginCapture, [stream, 0, 0, 0], thread));
        for _ in 0..3 + self.random.below(6) {
            let (what, numbers) = match self.random.below(24) {
                0..=1 => (What::RecordEvent, [event, stream, 0, 0]),
                2..=3 => (What::WaitEvent, [event, other, 0, 0]),
                4 => (What::WaitEvent, [event, stream, 0, 0]),
                5..=6 => (What::WaitStream, [other, stream, 0, 0]),
                7 => (What::WaitStream, [stream, other, 0, 0]),
                8 => (What::QueryEvent, [event, 0, 0, 0]),
                9 => (What::SyncEvent, [event, 0, 0, 0]),
                10..=11 => (What::Create, [place, kind, stream, 2]),
                12 => (What::Fill, [tensor, other, 0, 0]),
                13 => (What::Flip, [tensor, stream, 1, 0]),
                14 => (What::QueryStream, [other, 0, 0, 0]),
                15 => (What::BeginCapture, [other, 0, 0, 0]),
                16 if self.style.raw => match self.random.below(4) {
                    0 => (What::FreeAfterEvent, [self.raw(true), event, 0, 0]),
                    1 => (What::Free, [self.raw(true), stream, 0, 0]),
                    2 => (What::RecordStream, [self.raw(true), stream, 0, 0]),
                    _ => (What::Alloc, [self.raw(false), kind % 8, stream, 0]),
                },
                17 if self.random.below(2) == 0 => {
                    let device = u16::from(stream == STREAM_OF_DEVICE_1);
                    (What::SyncDevice, [device, 0, 0, 0])
                }
                _ => {
                    let step = self.plain_step(thread);
                    (step.what, step.numbers)
                }
            };
            let on = self.any_thread();
            steps.push(statement(
                what,
                numbers,
                if what == What::EndThread { 1 } else { on },
            ));
        }
        for name in [stream, other] {
            steps.push(statement(What::EndCapture, [name, 0, 0, 0], thread));
        }
        match self.random.below(3) {
            0 => steps.push(statement(What::Download, [tensor, other, 0, 0], 0)),
            1 => {
                self.slots.tensors[tensor as usize] = None;
                steps.extend([
                    statement(What::ReleaseTensor, [tensor, 0, 0, 0], 0),
                    statement(What::Create, [tensor, kind, other, 0], 0),
                    statement(What::Fill, [tensor, other, 0, 0], 0),
                ]);
            }
            _ => {}
        }
        self.follow(&steps);
    }
}
