//! Copies, fills and launches on streams, and what happens when queued work panics.

use super::*;
use crate::backend::{Copy2d, CopyKind, Fill2d, Kernel, Launch, MAX_PARAMS_BYTES, STREAM_LEGACY};
use crate::error::Error;

#[test]
fn copies_and_fills_run_in_the_streams_order() {
    let backend = backend();
    let stream = backend.stream_create(0, false).unwrap();
    // Large enough to be shared among threads.
    let (width, height, pitch) = (3000u64, 2000u64, 3072u64);
    let bytes = height * pitch;
    let device = backend.memory_allocate(0, bytes).unwrap();
    let mut source: Vec<u8> = (0..width * height)
        .map(|index| (index % 253) as u8)
        .collect();
    let mut target = vec![9u8; (width * height) as usize];
    let latch = backend.latch_create(0, stream).unwrap();
    let up = Copy2d {
        kind: CopyKind::HostToDevice,
        src: source.as_ptr() as u64,
        src_pitch: width,
        dst: device,
        dst_pitch: pitch,
        width,
        height,
    };
    let zero = Fill2d {
        dst: device + pitch,
        pitch: 2 * pitch,
        width: 100,
        height: height / 2,
    };
    let down = Copy2d {
        kind: CopyKind::DeviceToHost,
        src: device,
        src_pitch: pitch,
        dst: target.as_mut_ptr() as u64,
        dst_pitch: width,
        width,
        height,
    };
    backend.copy_2d(0, stream, &up).unwrap();
    backend.fill_zero_2d(0, stream, &zero).unwrap();
    backend.copy_2d(0, stream, &down).unwrap();
    let nothing = Copy2d { width: 0, ..down };
    backend.copy_2d(0, stream, &nothing).unwrap();
    let bad = Copy2d {
        dst_pitch: width - 1,
        ..down
    };
    assert_eq!(
        status(backend.copy_2d(0, stream, &bad)),
        Some(Status::InvalidValue)
    );
    assert_eq!(
        status(backend.copy_2d(0, 77, &nothing)),
        Some(Status::InvalidStream)
    );
    // Addresses are read when the copy runs.
    source[0] = 200;
    backend.latch_open(latch).unwrap();
    synchronize(&backend, stream);
    for (index, value) in target.iter().enumerate() {
        let (row, column) = (index as u64 / width, index as u64 % width);
        let zeroed = row % 2 == 1 && column < 100;
        let expected = if zeroed { 0 } else { source[index] };
        assert_eq!(*value, expected, "row {row}, column {column}");
    }
    assert_eq!(target[0], 200);
    backend.memory_free(0, device, bytes).unwrap();
}

#[repr(C)]
struct CountParams {
    counts: u64,
    add: u64,
}

unsafe extern "C" fn count(params: *const libc::c_void, begin: i64, end: i64) {
    // SAFETY: the tests below pass this block, and their items are indices of `counts`.
    unsafe {
        let params = &*params.cast::<CountParams>();
        for item in begin..end {
            *(params.counts as *mut u64).add(item as usize) += params.add;
        }
    }
}

static COUNT: Kernel = Kernel {
    name: "count",
    host: count,
};

fn launch_count(
    backend: &HostBackend,
    stream: StreamHandle,
    params: &CountParams,
    items: i64,
    items_per_task: i64,
) -> Result<()> {
    let bytes = [params.counts.to_ne_bytes(), params.add.to_ne_bytes()].concat();
    let launch = Launch {
        kernel: &COUNT,
        params: &bytes,
        items,
        items_per_task,
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        ranges: &[],
    };
    backend.launch(0, stream, &launch)
}

#[test]
fn a_launch_does_each_item_once_however_it_is_split() {
    let backend = backend();
    let stream = backend.stream_create(0, false).unwrap();
    let mut counts = vec![0u64; 10_000];
    let mut expected = 0;
    for (round, items_per_task) in [1, 7, 333, 5000, 9999, 10_000, i64::MAX]
        .into_iter()
        .enumerate()
    {
        let params = CountParams {
            counts: counts.as_mut_ptr() as u64,
            add: 1 << round,
        };
        launch_count(&backend, stream, &params, 10_000, items_per_task).unwrap();
        launch_count(&backend, stream, &params, 0, items_per_task).unwrap();
        expected += params.add;
    }
    synchronize(&backend, stream);
    assert!(counts.iter().all(|count| *count == expected));
    let large = vec![0; MAX_PARAMS_BYTES + 1];
    let launch = Launch {
        kernel: &COUNT,
        params: &large,
        items: 1,
        items_per_task: 1,
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        ranges: &[],
    };
    let error = backend.launch(0, stream, &launch).unwrap_err();
    assert_eq!(error.status, Status::InvalidValue);
    assert!(error.message.contains("count") && error.message.contains("4097"));
}

#[test]
fn a_panic_becomes_the_devices_error_and_every_wait_ends() {
    let backend = backend();
    let streams: Vec<_> = (0..2)
        .map(|_| backend.stream_create(0, false).unwrap())
        .collect();
    let log = Log::default();
    let pointer = backend.memory_allocate(0, 512).unwrap();
    let latch = backend.latch_create(0, streams[0]).unwrap();
    backend
        .call(0, streams[0], || panic!("kernel {} broke", 7))
        .unwrap();
    log.add(&backend, streams[0], 1);
    let event = recorded(&backend, streams[0]);
    backend.stream_wait_event(0, streams[1], event).unwrap();
    log.add(&backend, streams[1], 2);
    let expected = Error::new(
        Status::DeviceError,
        "device 0 failed in queued work: panic: kernel 7 broke",
    );
    thread::scope(|scope| {
        let waits = [
            scope.spawn(|| backend.stream_synchronize(0, streams[1], None)),
            scope.spawn(|| backend.event_synchronize(0, event, None)),
            scope.spawn(|| backend.device_synchronize(0, None)),
        ];
        backend.latch_open(latch).unwrap();
        for wait in waits {
            assert_eq!(wait.join().unwrap(), Err(expected.clone()));
        }
    });
    // It stays, for this device alone; nothing queued was run after it, and things can be given back.
    assert_eq!(backend.call(0, streams[0], || {}), Err(expected.clone()));
    assert_eq!(backend.stream_query(0, streams[0]), Err(expected.clone()));
    assert_eq!(backend.event_query(0, event), Err(expected.clone()));
    assert_eq!(backend.memory_allocate(0, 512), Err(expected.clone()));
    assert_eq!(backend.latch_create(0, streams[0]), Err(expected));
    assert!(log.get().is_empty());
    backend.memory_free(0, pointer, 512).unwrap();
    backend.event_destroy(0, event).unwrap();
    backend.stream_destroy(0, streams[0]).unwrap();
    backend.call(1, STREAM_LEGACY, || {}).unwrap();
    assert_eq!(backend.device_synchronize(1, None), Ok(true));
}
