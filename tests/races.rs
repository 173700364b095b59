//! The race checker: what nothing orders is reported with what would have, and what is ordered is not.

mod c_interface;

use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

use c_interface::*;
use cvc::backend::{self, Backend, Fill2d};

/// The reports are the process's: one test at a time.
fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(CVC_INSTRUMENT_RACE_CHECK);
    // SAFETY: no preconditions.
    ok(unsafe { cvc_host_race_forget() });
    guard
}

/// The backend itself, two of its streams and some of its memory.
struct Raw {
    backend: &'static dyn Backend,
    streams: [usize; 2],
    memory: u64,
}

impl Raw {
    const BYTES: u64 = 4096;

    fn new(blocking: bool) -> Raw {
        let backend = backend::current().expect("it starts");
        let stream = || {
            backend
                .stream_create(0, blocking)
                .expect("it makes streams")
        };
        Raw {
            backend,
            streams: [stream(), stream()],
            memory: backend
                .memory_allocate(0, Raw::BYTES)
                .expect("there is room"),
        }
    }

    fn fill(&self, stream: usize, offset: u64, width: u64) {
        let fill = Fill2d {
            dst: self.memory + offset,
            pitch: width,
            width,
            height: 1,
        };
        self.backend
            .fill_zero_2d(0, stream, &fill)
            .expect("it is queued");
    }

    fn record(&self, stream: usize) -> usize {
        let event = self
            .backend
            .event_create(0, false)
            .expect("it makes events");
        self.backend
            .event_record(0, event, stream)
            .expect("it is queued");
        event
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.backend.device_synchronize(0, None).expect("it ends");
        let freed = self.backend.memory_free(0, self.memory, Raw::BYTES);
        freed.expect("it was allocated");
        for stream in self.streams {
            self.backend.stream_destroy(0, stream).expect("it lives");
        }
    }
}

#[test]
fn two_writes_that_nothing_orders_are_reported() {
    let _one = begin();
    let raw = Raw::new(false);
    let [a, b] = raw.streams;
    raw.fill(a, 0, 1024);
    raw.fill(b, 512, 1024);
    assert_eq!(races(), 1);
    let report = race_report();
    let start = raw.memory + 512;
    for part in [
        format!("(fill on stream {b:#x}) writes 512 bytes at {start:#x}"),
        format!("(fill on stream {a:#x}) wrote, and nothing orders them"),
        format!("An event recorded on stream {a:#x} after access "),
        format!("waited for by stream {b:#x} before access "),
    ] {
        assert!(report.contains(&part), "{report} lacks {part}");
    }
    // SAFETY: no preconditions.
    ok(unsafe { cvc_host_race_forget() });
    assert_eq!((races(), race_report()), (0, String::new()));
}

#[test]
fn bytes_apart_are_no_race() {
    let _one = begin();
    let raw = Raw::new(false);
    raw.fill(raw.streams[0], 0, 512);
    raw.fill(raw.streams[1], 512, 512);
    assert_no_races();
}

#[test]
fn an_event_that_is_waited_for_orders() {
    let _one = begin();
    let raw = Raw::new(false);
    let [a, b] = raw.streams;
    raw.fill(a, 0, 64);
    let event = raw.record(a);
    // Queued after the record: not covered.
    raw.fill(a, 64, 64);
    raw.backend
        .stream_wait_event(0, b, event)
        .expect("it is queued");
    raw.fill(b, 0, 64);
    assert_no_races();
    raw.fill(b, 64, 64);
    assert_eq!(races(), 1);
    raw.backend.event_destroy(0, event).expect("it lives");
}

#[test]
fn order_passes_through_a_third_stream() {
    let _one = begin();
    let raw = Raw::new(false);
    let [a, b] = raw.streams;
    let between = raw
        .backend
        .stream_create(0, false)
        .expect("it makes streams");
    raw.fill(a, 0, 64);
    for (from, to) in [(a, between), (between, b)] {
        let event = raw.record(from);
        raw.backend
            .stream_wait_event(0, to, event)
            .expect("it is queued");
        raw.backend.event_destroy(0, event).expect("it lives");
    }
    raw.fill(b, 0, 64);
    assert_no_races();
    raw.backend.stream_destroy(0, between).expect("it lives");
}

#[test]
fn what_the_host_has_seen_complete_is_ordered() {
    let _one = begin();
    let raw = Raw::new(false);
    let [a, b] = raw.streams;
    raw.fill(a, 0, 64);
    raw.backend.stream_synchronize(0, a, None).expect("it ends");
    raw.fill(b, 0, 64);
    let event = raw.record(b);
    while !raw.backend.event_query(0, event).expect("it lives") {
        std::thread::yield_now();
    }
    raw.fill(a, 0, 64);
    assert_no_races();
    raw.backend.event_destroy(0, event).expect("it lives");
}

#[test]
fn the_legacy_stream_orders_with_blocking_streams_only() {
    let _one = begin();
    let blocking = Raw::new(true);
    blocking.fill(blocking.streams[0], 0, 64);
    blocking.fill(backend::STREAM_LEGACY, 0, 64);
    blocking.fill(blocking.streams[1], 0, 64);
    assert_no_races();
    let plain = Raw::new(false);
    plain.fill(plain.streams[0], 0, 64);
    plain.fill(backend::STREAM_LEGACY, 0, 64);
    assert_eq!(races(), 1);
    assert!(race_report().contains("the legacy stream of device 0"));
}

#[test]
fn memory_that_is_given_back_too_early_is_reported() {
    let _one = begin();
    let raw = Raw::new(false);
    let more = raw.backend.memory_allocate(0, 512).expect("there is room");
    let fill = Fill2d {
        dst: more,
        pitch: 512,
        width: 512,
        height: 1,
    };
    let latch = raw
        .backend
        .latch_create(0, raw.streams[0])
        .expect("it takes latches");
    raw.backend
        .fill_zero_2d(0, raw.streams[0], &fill)
        .expect("it is queued");
    raw.backend
        .memory_free(0, more, 512)
        .expect("it was allocated");
    assert_eq!(races(), 1);
    assert!(
        race_report().contains("the host frees 512 bytes"),
        "{}",
        race_report()
    );
    // Allocated again, so that the fill that is still queued harms nobody.
    let again = raw.backend.memory_allocate(0, 512).expect("there is room");
    raw.backend.latch_open(latch).expect("it is closed");
    raw.backend.device_synchronize(0, None).expect("it ends");
    raw.backend
        .memory_free(0, again, 512)
        .expect("it was allocated");
}

#[test]
fn announced_work_is_checked() {
    let _one = begin();
    let (a, b) = (new_stream(0), new_stream(0));
    let tensor = create(default_cache(), &hwc(8, 8, 1), a);
    let pointer = std::ptr::with_exposed_provenance(data(tensor) as usize);
    // SAFETY: handles; the addresses are only named.
    unsafe {
        ok(cvc_fill_zero(a, tensor));
        // As it should be: the launch stands between the two.
        ok(cvc_tensor_begin_access(tensor, b, CVC_ACCESS_READ));
        ok(cvc_tensor_end_access(tensor, b, CVC_ACCESS_READ));
        assert_no_races();
        ok(cvc_fill_zero(a, tensor));
        // Announced too late: nothing made the stream wait.
        ok(cvc_tensor_end_access(tensor, b, CVC_ACCESS_WRITE));
        assert_eq!(races(), 1);
        assert!(
            race_report().contains("announced work"),
            "{}",
            race_report()
        );
        ok(cvc_host_race_forget());
        // The host reads what it has not waited for.
        let none = std::ptr::without_provenance_mut(usize::MAX);
        ok(cvc_host_race_access(0, none, pointer, 64, CVC_ACCESS_READ));
        assert_eq!(races(), 1);
        assert!(
            race_report().contains("the host reads 64 bytes"),
            "{}",
            race_report()
        );
        ok(cvc_host_race_forget());
        synchronize(a);
        synchronize(b);
        ok(cvc_host_race_access(0, none, pointer, 64, CVC_ACCESS_WRITE));
        ok(cvc_host_race_access(0, a, pointer, 64, CVC_ACCESS_WRITE));
        assert_no_races();
        ok(cvc_host_race_access(0, b, pointer, 1, CVC_ACCESS_READ));
        assert_eq!(races(), 1);
        synchronize(a);
        synchronize(b);
    }
    release(tensor);
    destroy(a);
    destroy(b);
}

#[test]
fn the_library_orders_its_own_work() {
    let _one = begin();
    let cache = default_cache();
    let streams = [
        new_stream(0),
        new_stream(0),
        new_stream(CVC_STREAM_BLOCKING),
        std::ptr::without_provenance_mut(1),
    ];
    let mut number = 1u64;
    let mut random = |bound: usize| {
        number = number
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (number >> 33) as usize % bound
    };
    let mut tensors = Vec::new();
    for _ in 0..3000 {
        let stream = streams[random(streams.len())];
        if tensors.len() < 12 {
            tensors.push(create(cache, &hwc(4 + random(3) as i64, 8, 3), stream));
        }
        let tensor = tensors[random(tensors.len())];
        // SAFETY: handles and places for results.
        unsafe {
            match random(4) {
                0 => ok(cvc_fill_zero(stream, tensor)),
                1 => ok(cvc_op_flip(stream, tensor, tensor, 1)),
                2 => {
                    let mut flipped = null_mut();
                    ok(cvc_op_flip_new(stream, tensor, 0, &mut flipped));
                    tensors.push(flipped);
                }
                _ => release(tensors.swap_remove(random(tensors.len()))),
            }
        }
    }
    tensors.into_iter().for_each(release);
    // SAFETY: the cache's handle.
    ok(unsafe { cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL) });
    assert_no_races();
    streams[..3].iter().for_each(|stream| destroy(*stream));
}
