//! Random programs in stepped mode: any order of completion, the race checker on, the accounts checked after each step,
//! and every value that is read compared with a model that knows of no streams.
//!
//! `cargo test --test random_programs -- --ignored` runs ten million steps. `CVC_SEED` runs one program again.

mod c_interface;

use std::ffi::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::{Mutex, Once};

use c_interface::*;

const STEPS_PER_PROGRAM: u64 = 1000;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A tensor and what it will hold once all that is queued has run; `None` before the first write.
struct Tensor {
    handle: cvc_tensor_t,
    shape: [usize; 2],
    values: Option<Vec<u8>>,
}

/// What a queued download will give.
struct Expected {
    got: Box<[u8]>,
    values: Vec<u8>,
}

/// The head of a DLManagedTensor, whose tensor has 48 bytes.
#[repr(C)]
struct Managed {
    tensor: [u64; 6],
    context: *mut c_void,
    deleter: unsafe extern "C" fn(*mut c_void),
}

#[derive(Default)]
struct Program {
    cache: Option<cvc_cache_t>,
    streams: Vec<cvc_stream_t>,
    events: Vec<cvc_event_t>,
    tensors: Vec<Tensor>,
    exports: Vec<*mut c_void>,
    sources: Vec<Box<[u8]>>,
    downloads: Vec<Expected>,
    out_of_memory: u64,
}

const MOST_TENSORS: usize = 16;

impl Program {
    fn cache(&self) -> cvc_cache_t {
        self.cache.expect("the program has begun")
    }

    fn begin(random: &mut Random) -> Program {
        let mut program = Program {
            cache: Some(default_cache()),
            ..Program::default()
        };
        for _ in 0..2 + random.below(3) {
            program
                .streams
                .push(new_stream(random.of(&[0, 0, CVC_STREAM_BLOCKING])));
        }
        let mut event = null_mut();
        // SAFETY: a place for the result.
        ok(unsafe { cvc_event_create(0, 0, &mut event) });
        program.events.push(event);
        program
    }

    fn stream(&self, random: &mut Random) -> cvc_stream_t {
        const LEGACY: cvc_stream_t = std::ptr::without_provenance_mut(1);
        if random.below(12) == 0 {
            return LEGACY;
        }
        random.of(&self.streams)
    }

    /// Whether a result was made, or there was no memory for it.
    fn made(&mut self, status: i32) -> bool {
        if status == CVC_STATUS_OUT_OF_MEMORY {
            self.out_of_memory += 1;
            return false;
        }
        ok(status);
        true
    }

    fn create(&mut self, random: &mut Random) {
        if self.tensors.len() >= MOST_TENSORS {
            return self.release(random);
        }
        let shape = random.of(&[[8, 8], [16, 64], [64, 16], [9, 40], [96, 96]]);
        let none = std::ptr::without_provenance_mut(usize::MAX);
        let stream = match random.below(8) {
            0 => none,
            _ => self.stream(random),
        };
        let desc = hwc(shape[0] as i64, shape[1] as i64, 1);
        let (status, handle) = try_create(self.cache(), &desc, stream);
        if self.made(status) {
            self.tensors.push(Tensor {
                handle,
                shape,
                values: None,
            });
        }
    }

    fn release(&mut self, random: &mut Random) {
        if !self.tensors.is_empty() {
            let place = random.below(self.tensors.len());
            release(self.tensors.swap_remove(place).handle);
        }
    }

    fn upload(&mut self, random: &mut Random) {
        let stream = self.stream(random);
        let place = random.below(self.tensors.len());
        let tensor = &mut self.tensors[place];
        let first = random.next() as u8;
        let values: Vec<u8> = (0..tensor.shape[0] * tensor.shape[1])
            .map(|index| first.wrapping_add((index % 251) as u8))
            .collect();
        self.sources.push(values.clone().into_boxed_slice());
        let source = self.sources[self.sources.len() - 1].as_ptr().cast();
        // SAFETY: the source stays until the device is through.
        ok(unsafe { cvc_upload(stream, source, std::ptr::null(), tensor.handle) });
        tensor.values = Some(values);
    }

    fn fill(&mut self, random: &mut Random) {
        let stream = self.stream(random);
        let place = random.below(self.tensors.len());
        let tensor = &mut self.tensors[place];
        // SAFETY: handles.
        ok(unsafe { cvc_fill_zero(stream, tensor.handle) });
        tensor.values = Some(vec![0; tensor.shape[0] * tensor.shape[1]]);
    }

    fn flip(&mut self, random: &mut Random) {
        let stream = self.stream(random);
        let place = random.below(self.tensors.len());
        let (code, in_place) = (random.of(&[-1, 0, 1]), random.below(2) == 0);
        let tensor = &self.tensors[place];
        let (source, shape) = (tensor.handle, tensor.shape);
        let values = tensor
            .values
            .as_ref()
            .map(|values| flipped(values, shape, code));
        if in_place {
            // SAFETY: handles.
            ok(unsafe { cvc_op_flip(stream, source, source, code) });
            self.tensors[place].values = values;
        } else if self.tensors.len() < MOST_TENSORS {
            let mut handle = null_mut();
            // SAFETY: handles and a place for the result.
            let status = unsafe { cvc_op_flip_new(stream, source, code, &mut handle) };
            if self.made(status) {
                self.tensors.push(Tensor {
                    handle,
                    shape,
                    values,
                });
            }
        }
    }

    fn copy(&mut self, random: &mut Random) {
        let stream = self.stream(random);
        let (from, to) = (
            random.below(self.tensors.len()),
            random.below(self.tensors.len()),
        );
        if self.tensors[from].shape == self.tensors[to].shape {
            // SAFETY: handles.
            ok(unsafe { cvc_copy(stream, self.tensors[from].handle, self.tensors[to].handle) });
            self.tensors[to].values = self.tensors[from].values.clone();
        }
    }

    fn download(&mut self, random: &mut Random) {
        let stream = self.stream(random);
        let tensor = &self.tensors[random.below(self.tensors.len())];
        let Some(values) = tensor.values.clone() else {
            return;
        };
        let mut got = vec![0u8; values.len()].into_boxed_slice();
        let place = got.as_mut_ptr().cast();
        // SAFETY: the place stays until the device is through.
        ok(unsafe { cvc_download(stream, tensor.handle, place, std::ptr::null()) });
        self.downloads.push(Expected { got, values });
    }

    fn export(&mut self, random: &mut Random) {
        if self.exports.len() >= 3 {
            let export = self.exports.swap_remove(random.below(self.exports.len()));
            // SAFETY: a struct of `cvc_tensor_to_dlpack`, deleted once.
            return unsafe { ((*export.cast::<Managed>()).deleter)(export) };
        }
        let consumer = random.of(&self.streams);
        let tensor = self.tensors[random.below(self.tensors.len())].handle;
        let mut managed = null_mut();
        // SAFETY: handles and a place for the result.
        ok(unsafe { cvc_tensor_to_dlpack(tensor, consumer, 0, &mut managed) });
        self.exports.push(managed);
    }

    fn end_exports(&mut self) {
        for export in self.exports.drain(..) {
            // SAFETY: as in `export`.
            unsafe { ((*export.cast::<Managed>()).deleter)(export) };
        }
    }

    /// Waits for everything, and looks at what was read.
    fn settle(&mut self) {
        // SAFETY: no preconditions.
        ok(unsafe { cvc_device_synchronize(0, -1) });
        for download in self.downloads.drain(..) {
            let wrong = download
                .got
                .iter()
                .zip(&download.values)
                .position(|(got, value)| got != value);
            assert_eq!(
                wrong,
                None,
                "a download of {} bytes has a wrong value",
                download.got.len()
            );
        }
        self.sources.clear();
    }

    fn step(&mut self, random: &mut Random) {
        let runnable = runnable();
        let choice = random.below(100);
        // SAFETY: handles that live.
        unsafe {
            match choice {
                0..=34 if runnable > 0 => step(random.next() % runnable),
                35..=44 => self.create(random),
                45..=54 => self.release(random),
                90 => ok(cvc_cache_set_limit(
                    self.cache(),
                    0,
                    random.of(&[0, 4096, 40_000, 1 << 16, 1 << 16]),
                )),
                91 if random.below(4) == 0 => {
                    ok(cvc_cache_clear(self.cache(), 0, CVC_SCOPE_GLOBAL))
                }
                92 if random.below(4) == 0 => ok(cvc_cache_trim(self.cache(), 0, 0)),
                93 => ok(cvc_stream_wait_stream(
                    self.stream(random),
                    self.stream(random),
                )),
                94 => {
                    let stream = self.stream(random);
                    match random.below(3) {
                        0 => synchronize(stream),
                        _ => assert!(matches!(
                            cvc_stream_query(stream),
                            CVC_STATUS_OK | CVC_STATUS_NOT_READY
                        )),
                    }
                }
                95 => ok(cvc_event_record(self.events[0], self.stream(random))),
                96 => ok(cvc_stream_wait_event(self.stream(random), self.events[0])),
                97 if self.exports.is_empty() => {
                    let place = random.below(self.streams.len());
                    let old = std::mem::replace(&mut self.streams[place], new_stream(0));
                    destroy(old);
                }
                98 => self.settle(),
                99 => ok(cvc_cache_synchronize(self.cache(), 0, -1)),
                _ if self.tensors.is_empty() => self.create(random),
                55..=61 => self.upload(random),
                62..=65 => self.fill(random),
                66..=75 => self.flip(random),
                76..=80 => self.copy(random),
                81..=87 => self.download(random),
                88..=89 => self.export(random),
                _ => {}
            }
        }
    }

    fn check(&self) {
        assert_no_races();
        let now = stats(self.cache());
        let held = now.idle_bytes + now.pending_bytes;
        assert_eq!(now.bytes, now.live_bytes - now.unindexed_bytes + held);
        assert_eq!(now.driver_bytes, now.live_bytes + held + now.free_bytes);
        assert!(now.live_handles as usize >= self.tensors.len());
        assert!(now.live_count as usize <= self.tensors.len() + self.exports.len());
    }

    fn end(mut self) -> u64 {
        self.end_exports();
        self.settle();
        for tensor in self.tensors.drain(..) {
            release(tensor.handle);
        }
        // SAFETY: handles that live.
        unsafe {
            ok(cvc_cache_clear(self.cache(), 0, CVC_SCOPE_GLOBAL));
            ok(cvc_cache_set_limit(self.cache(), 0, 1 << 16));
            self.events
                .drain(..)
                .for_each(|event| ok(cvc_event_destroy(event)));
        }
        self.streams.drain(..).for_each(destroy);
        let after = stats(self.cache());
        assert_eq!(
            (after.live_handles, after.bytes, after.driver_bytes),
            (0, 0, 0)
        );
        assert_no_races();
        self.out_of_memory
    }
}

/// What a flip gives: 0 turns rows about, 1 columns, -1 both.
fn flipped(values: &[u8], shape: [usize; 2], code: i32) -> Vec<u8> {
    let [height, width] = shape;
    let mut result = vec![0; values.len()];
    for y in 0..height {
        for x in 0..width {
            let from_y = if code <= 0 { height - 1 - y } else { y };
            let from_x = if code != 0 { width - 1 - x } else { x };
            result[y * width + x] = values[from_y * width + from_x];
        }
    }
    result
}

fn run(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut steps = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut program = Program::begin(&mut random);
        while steps < STEPS_PER_PROGRAM {
            program.step(&mut random);
            program.check();
            steps += 1;
        }
        program.end()
    }));
    match outcome {
        Ok(out_of_memory) => out_of_memory,
        Err(panic) => {
            eprintln!("the program of CVC_SEED={seed} failed at step {steps}");
            resume_unwind(panic)
        }
    }
}

fn run_steps(steps: u64, first_seed: u64) {
    static BEGIN: Once = Once::new();
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    BEGIN.call_once(|| {
        // Little, so that it runs out.
        std::env::set_var("CVC_HOST_MEMORY", "64K");
        start(CVC_INSTRUMENT_STEPPED | CVC_INSTRUMENT_RACE_CHECK);
    });
    if let Some(seed) = std::env::var("CVC_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        run(seed);
        return;
    }
    let programs = steps / STEPS_PER_PROGRAM;
    let out_of_memory: u64 = (first_seed..first_seed + programs).map(run).sum();
    let now = stats(default_cache());
    println!(
        "{steps} steps: exact {} fit {} pending {} misses {} evictions {} out of memory {out_of_memory}",
        now.hits_exact, now.hits_fit, now.hits_pending, now.misses, now.evictions
    );
    for count in [
        now.hits_exact,
        now.hits_fit,
        now.hits_pending,
        now.misses,
        now.evictions,
    ] {
        assert!(count > steps / 2000, "a decision is hardly ever taken");
    }
    assert!(out_of_memory > 0);
}

#[test]
fn two_hundred_thousand_steps() {
    run_steps(200_000, 1);
}

#[test]
#[ignore = "takes minutes"]
fn ten_million_steps() {
    run_steps(10_000_000, 1_000);
}
