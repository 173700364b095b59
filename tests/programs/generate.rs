//! Programs from seeds: which kinds of steps come how often, with which numbers.

use super::program::*;

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: u16) -> u16 {
        (self.next() % u64::from(bound)) as u16
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u16) as usize]
    }
}

/// What a program is about, by its seed.
pub(super) struct Style {
    watch: Watch,
    faults: bool,
    own_caches: bool,
    /// Releases little, so that memory runs out.
    hoards: bool,
    pub(super) threads: u16,
    /// So many streams of device 0, the first slots.
    pub(super) streams: u16,
    pub(super) raw: bool,
    pub(super) captures: bool,
    /// Kinds of tensors that it uses.
    pub(super) kinds: &'static [u16],
}

pub(super) const FEW_STREAMS: u16 = 5;
const MANY_STREAMS: u16 = 10;

fn style(seed: u64) -> Style {
    const ALL: &[u16] = &[0, 1, 2, 3, 4, 5, 6, 7, 8];
    // Sizes of which few fit on the device.
    const LARGE: &[u16] = &[4, 9, 9, 9, 9, 8];
    // So alike that most requests can be served by what is there.
    const ALIKE: &[u16] = &[1, 3, 3, 2, 8];
    let own_caches = seed % 10 == 7;
    Style {
        watch: match seed % 4 {
            0 | 1 => Watch::EachStep,
            // A cache that is closed leaves work behind, which the model follows.
            _ if own_caches => Watch::EachStep,
            _ => Watch::Seldom,
        },
        faults: matches!(seed % 8, 3 | 5),
        own_caches,
        hoards: seed / 4 % 4 == 0,
        threads: if seed / 8 % 3 == 0 { 1 } else { THREADS },
        streams: if seed % 6 == 5 {
            MANY_STREAMS
        } else {
            FEW_STREAMS
        },
        raw: seed % 7 != 4,
        captures: seed % 5 < 3,
        kinds: match seed / 4 % 4 {
            0 if seed % 4 == 2 => LARGE,
            1 => ALIKE,
            _ => ALL,
        },
    }
}

/// What a slot has by now, if all calls succeed: only so that most steps find something to do.
pub(super) struct Slots {
    /// By slot, the kind; images' views have kinds from 100 on.
    pub(super) tensors: [Option<u16>; TENSORS as usize],
    pub(super) streams: [bool; STREAMS as usize],
    pub(super) raws: [bool; RAWS as usize],
    images: [Option<u16>; IMAGES as usize],
    batches: [bool; BATCHES as usize],
    tensor_batches: [bool; BATCHES as usize],
    exports: [bool; EXPORTS as usize],
}

/// One of the slots where `wanted` holds, else any.
pub(super) fn pick<T>(random: &mut Random, slots: &[T], wanted: impl Fn(&T) -> bool) -> u16 {
    let places = 0..slots.len() as u16;
    let good: Vec<u16> = places
        .filter(|place| wanted(&slots[*place as usize]))
        .collect();
    if good.is_empty() {
        return random.below(slots.len() as u16);
    }
    random.of(&good)
}

pub fn generate(seed: u64, steps: usize) -> Program {
    let mut generator = Generator {
        random: Random(seed),
        style: style(seed),
        slots: Slots {
            tensors: [None; TENSORS as usize],
            streams: [false; STREAMS as usize],
            raws: [false; RAWS as usize],
            images: [None; IMAGES as usize],
            batches: [false; BATCHES as usize],
            tensor_batches: [false; BATCHES as usize],
            exports: [false; EXPORTS as usize],
        },
        next: Vec::new(),
    };
    let mut program = Program {
        watch: generator.style.watch,
        steps: Vec::with_capacity(steps),
    };
    for slot in 0..generator.style.streams.min(8) - 3 {
        let flavour = generator.random.below(4);
        generator.slots.streams[slot as usize] = true;
        program.steps.push(Step {
            what: What::NewStream,
            thread: 0,
            numbers: [slot, flavour, 0, 0],
        });
    }
    while program.steps.len() < steps {
        program.steps.push(generator.step());
    }
    program
}

pub(super) struct Generator {
    pub(super) random: Random,
    pub(super) style: Style,
    pub(super) slots: Slots,
    /// Steps that come before any other, the last one first.
    pub(super) next: Vec<Step>,
}

impl Generator {
    pub(super) fn stream(&mut self) -> u16 {
        match self.random.below(24) {
            0 => LEGACY,
            1 => PER_THREAD,
            _ => self.named_stream(true),
        }
    }

    /// The slot of a stream of device 0, or with `false` one without, where there is one.
    pub(super) fn named_stream(&mut self, known: bool) -> u16 {
        let all = &self.slots.streams[..self.style.streams as usize];
        pick(&mut self.random, all, |place| *place == known)
    }

    /// A stream of the device of the tensor in that slot.
    pub(super) fn stream_for(&mut self, tensor: u16) -> u16 {
        match tensor >= FIRST_TENSOR_OF_DEVICE_1 {
            true => STREAM_OF_DEVICE_1,
            false => self.stream(),
        }
    }

    pub(super) fn consumer(&mut self, tensor: u16) -> u16 {
        match self.random.below(8) {
            0 => NO_STREAM,
            _ => self.stream_for(tensor),
        }
    }

    pub(super) fn tensor(&mut self) -> u16 {
        pick(&mut self.random, &self.slots.tensors, Option::is_some)
    }

    fn codes(&mut self) -> u16 {
        pick(&mut self.random, &self.slots.tensors, |kind| {
            *kind == Some(CODES)
        })
    }

    /// An empty slot, seldom one of device 1.
    pub(super) fn place(&mut self) -> u16 {
        let all = match self.random.below(12) {
            0 => &self.slots.tensors[..],
            _ => &self.slots.tensors[..10],
        };
        pick(&mut self.random, all, Option::is_none)
    }

    pub(super) fn cache(&mut self) -> u16 {
        u16::from(self.style.own_caches && self.random.below(2) == 0)
    }

    fn device(&mut self) -> u16 {
        u16::from(self.random.below(6) == 0)
    }

    fn image(&mut self) -> u16 {
        pick(&mut self.random, &self.slots.images, Option::is_some)
    }

    fn batch(&mut self) -> u16 {
        pick(&mut self.random, &self.slots.batches, |known| *known)
    }

    fn limit(&mut self) -> u16 {
        self.random.of(&[0, 1, 2, 3, 3, 4, 4, 4, 5, 5])
    }

    fn step(&mut self) -> Step {
        if let Some(step) = self.next.pop() {
            return step;
        }
        let thread = match self.random.below(5) {
            0 => self.random.below(self.style.threads),
            _ => 0,
        };
        if let Some(step) = self.of_raw_memory(thread) {
            return step;
        }
        if let Some(step) = self.of_many_streams() {
            return step;
        }
        if self.style.captures && self.random.below(120) == 0 {
            self.of_captures();
            if let Some(step) = self.next.pop() {
                return step;
            }
        }
        self.plain_step(thread)
    }

    /// One that comes by itself.
    pub(super) fn plain_step(&mut self, thread: u16) -> Step {
        if let Some((what, numbers)) = self.of_wraps_and_batches() {
            return Step {
                what,
                thread,
                numbers,
            };
        }
        let number = (self.random.next() >> 17) as u16;
        let choice = match self.random.below(1000) {
            // Instead of some of the steps of the host.
            0..=24 if self.style.faults => 977,
            25..=34 if self.style.own_caches => 974,
            35..=39 if self.style.own_caches => 998,
            370..=449 if self.style.hoards => 260,
            choice => choice,
        };
        let (what, numbers) = match choice {
            choice @ 0..=229 => self.host(choice, number),
            choice @ 230..=259 => self.of_streams(choice, number),
            choice @ 260..=839 => self.of_tensors(choice, number),
            choice @ 840..=914 => self.of_images(choice, number),
            choice @ 915..=949 => self.of_order(choice),
            968..=971 if self.style.threads > 1 => {
                return Step {
                    what: What::EndThread,
                    thread: 1 + number % (THREADS - 1),
                    numbers: [0; 4],
                };
            }
            choice => self.of_caches(choice, number),
        };
        Step {
            what,
            thread,
            numbers,
        }
    }

    fn host(&mut self, choice: u16, number: u16) -> (What, [u16; 4]) {
        match choice {
            0..=4 => (What::HostAll, [0; 4]),
            _ => (What::HostStep, [number, 0, 0, 0]),
        }
    }

    fn of_streams(&mut self, choice: u16, number: u16) -> (What, [u16; 4]) {
        let of_device_1 = self.random.below(FEW_STREAMS + 1) == 0;
        let mut slot_of = |known| match of_device_1 {
            true => STREAM_OF_DEVICE_1,
            false => self.named_stream(known),
        };
        let (known, unknown) = (slot_of(true), slot_of(false));
        match choice {
            230..=244 => {
                let slot = unknown;
                self.slots.streams[slot as usize] = true;
                (What::NewStream, [slot, number % 4, 0, 0])
            }
            245..=254 => {
                self.slots.streams[known as usize] = false;
                (What::EndStream, [known, 0, 0, 0])
            }
            _ => (What::Register, [known, 0, 0, 0]),
        }
    }

    fn of_tensors(&mut self, choice: u16, number: u16) -> (What, [u16; 4]) {
        let slot = self.tensor();
        let stream = self.stream_for(slot);
        match choice {
            260..=369 => {
                let place = self.place();
                let kind = self.random.of(self.style.kinds);
                self.slots.tensors[place as usize] = Some(kind);
                let (consumer, cache) = (self.consumer(place), self.cache());
                let flags = cache + number % 2 * 2;
                (What::Create, [place, kind, consumer, flags])
            }
            370..=509 => {
                self.slots.tensors[slot as usize] = None;
                (What::ReleaseTensor, [slot, 0, 0, 0])
            }
            510..=524 => {
                let place = self.place();
                self.slots.tensors[place as usize] = Some(100);
                (What::View, [place, slot, number, 0])
            }
            525..=624 => (What::Upload, [slot, stream, number % 250, 0]),
            625..=649 => (What::Fill, [slot, stream, 0, 0]),
            650..=679 => (What::Flip, [slot, stream, number % 3, 0]),
            680..=729 => {
                let place = self.place();
                self.slots.tensors[place as usize] = self.slots.tensors[slot as usize];
                (What::FlipNew, [slot, place, stream, number % 3])
            }
            730..=759 => {
                let kind = self.slots.tensors[slot as usize];
                let other = pick(&mut self.random, &self.slots.tensors, |other| {
                    *other == kind
                });
                (What::Copy, [slot, other, stream, 0])
            }
            760..=809 => (What::Download, [slot, stream, 0, 0]),
            810..=819 => (What::Launch, [slot, stream, number % 2, 0]),
            820..=829 => {
                let export = pick(&mut self.random, &self.slots.exports, |known| !*known);
                self.slots.exports[export as usize] = true;
                let consumer = self.consumer(slot);
                (What::Export, [export, slot, consumer, number % 2])
            }
            _ => {
                let export = pick(&mut self.random, &self.slots.exports, |known| *known);
                self.slots.exports[export as usize] = false;
                (What::EndExport, [export, 0, 0, 0])
            }
        }
    }

    fn of_images(&mut self, choice: u16, number: u16) -> (What, [u16; 4]) {
        let (image, batch) = (self.image(), self.batch());
        match choice {
            840..=852 => {
                let slot = pick(&mut self.random, &self.slots.images, Option::is_none);
                self.slots.images[slot as usize] = Some(number % 3);
                let consumer = self.consumer(0);
                (What::NewImage, [slot, number % 3, consumer, 0])
            }
            853..=859 => {
                self.slots.images[image as usize] = None;
                (What::ReleaseImage, [image, 0, 0, 0])
            }
            860..=867 => {
                let place = self.place();
                self.slots.tensors[place as usize] = Some(100);
                (What::ImageView, [place, image, 0, 0])
            }
            868..=875 => {
                let slot = pick(&mut self.random, &self.slots.batches, |known| !*known);
                self.slots.batches[slot as usize] = true;
                let consumer = self.consumer(0);
                (What::NewBatch, [slot, number % 2, consumer, 0])
            }
            876..=887 => (What::Push, [batch, image, 0, 0]),
            888..=897 => {
                self.slots.batches[batch as usize] = false;
                (What::ReleaseBatch, [batch, 0, 0, 0])
            }
            _ => {
                let to = pick(&mut self.random, &self.slots.batches, |known| !*known);
                self.slots.batches[to as usize] = true;
                let (stream, codes) = (self.stream(), self.codes());
                (What::FlipBatch, [batch, to, stream, codes])
            }
        }
    }

    /// One step in forty: wraps, which are then used as tensors are, and batches of tensors.
    fn of_wraps_and_batches(&mut self) -> Option<(What, [u16; 4])> {
        let choice = self.random.below(1000);
        if choice >= 25 {
            return None;
        }
        let number = (self.random.next() >> 17) as u16;
        let batch = pick(&mut self.random, &self.slots.tensor_batches, |known| *known);
        let (tensor, place) = (self.tensor(), self.place());
        Some(match choice {
            0..=8 => {
                let kind = self.random.of(self.style.kinds);
                self.slots.tensors[place as usize] = Some(kind);
                let (producer, cache) = (self.consumer(place), self.cache());
                let flags = cache + number % (2 * PIECES) * 2;
                (What::Wrap, [place, kind, producer, flags])
            }
            9..=11 => {
                let slot = pick(&mut self.random, &self.slots.tensor_batches, |known| {
                    !*known
                });
                self.slots.tensor_batches[slot as usize] = true;
                (
                    What::NewTensorBatch,
                    [slot, number % 2, self.consumer(0), 0],
                )
            }
            12..=18 => (What::PushTensor, [batch, tensor, 0, 0]),
            19 => (What::SetTensor, [batch, number % 4, tensor, 0]),
            20 => {
                self.slots.tensors[place as usize] = Some(100);
                (What::GetTensor, [batch, number % 4, place, 0])
            }
            21 => (What::PopTensors, [batch, number % 3, 0, 0]),
            22 if number % 2 == 0 => (What::ClearTensors, [batch, 0, 0, 0]),
            22..=23 => (What::WriteRecords, [batch, self.stream(), 0, 0]),
            _ => {
                self.slots.tensor_batches[batch as usize] = false;
                (What::ReleaseTensorBatch, [batch, 0, 0, 0])
            }
        })
    }

    fn of_order(&mut self, choice: u16) -> (What, [u16; 4]) {
        let (stream, event) = (self.stream(), self.random.below(EVENTS));
        match choice {
            915..=924 => {
                let other = self.stream();
                (What::WaitStream, [stream, other, 0, 0])
            }
            925..=930 => (What::RecordEvent, [event, stream, 0, 0]),
            931..=936 => (What::WaitEvent, [event, stream, 0, 0]),
            937..=939 => (What::QueryEvent, [event, 0, 0, 0]),
            940..=941 => (What::SyncEvent, [event, 0, 0, 0]),
            942..=946 => (What::QueryStream, [stream, 0, 0, 0]),
            _ => (What::SyncStream, [stream, 0, 0, 0]),
        }
    }

    /// A cache's end, most often while it holds what queued work still uses.
    fn close_with_work_queued(&mut self) -> (What, [u16; 4]) {
        let (place, kind, stream) = (
            self.place(),
            self.random.of(self.style.kinds),
            self.stream(),
        );
        if place < FIRST_TENSOR_OF_DEVICE_1 {
            self.slots.tensors[place as usize] = None;
            for (what, numbers) in [
                (What::EndCache, [0; 4]),
                (What::ReleaseTensor, [place, 0, 0, 0]),
                (What::Upload, [place, stream, 7, 0]),
                (What::Create, [place, kind, stream, 1]),
            ] {
                self.next.push(Step {
                    what,
                    thread: 0,
                    numbers,
                });
            }
        }
        (What::NewCache, [4, 0, 0, 0])
    }

    fn of_caches(&mut self, choice: u16, number: u16) -> (What, [u16; 4]) {
        let (cache, device) = (self.cache(), self.device());
        match choice {
            950 => (What::SyncDevice, [device, 0, 0, 0]),
            951..=952 => (What::SyncCache, [cache, device, 0, 0]),
            953..=959 => (What::SetLimit, [self.limit(), cache, device, 0]),
            960..=961 => (What::Clear, [number % 2, cache, device, 0]),
            962 => (What::Trim, [device, 0, 0, 0]),
            963..=965 => (What::Count, [cache, 0, 0, 0]),
            972..=973 => (What::Detach, [cache, 0, 0, 0]),
            // More of the steps of the host are these there.
            974..=976 if self.style.own_caches => (What::NewCache, [self.limit(), 0, 0, 0]),
            998..=999 if self.style.own_caches => self.close_with_work_queued(),
            977..=992 if self.style.faults => {
                // Those that few steps reach are planned more often.
                let rare: &[u16] = &[
                    0, 1, 2, 3, 3, 4, 5, 5, 6, 6, 7, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10,
                ];
                let call = self.random.of(rare);
                let skip = if call < 8 { number % 3 } else { 0 };
                (What::Fault, [call, skip, number / 3 % 2, 0])
            }
            993..=997 if self.style.faults => (What::Settle, [0; 4]),
            997 if self.style.watch == Watch::Seldom => (What::Settle, [0; 4]),
            _ => (What::HostStep, [number, 0, 0, 0]),
        }
    }
}
