//! Device memory: accounts after failures, small blocks, copies and fills, host pointers.

use super::*;
use crate::backend::{Backend, Copy2d, CopyKind, Fill2d};

const MIB: u64 = 1 << 20;

#[test]
fn a_failure_half_way_is_undone_and_the_next_call_works() {
    let steps = [
        "cuMemAddressReserve",
        "cuMemCreate",
        "cuMemMap",
        "cuMemRelease",
        "cuMemSetAccess",
    ];
    for bytes in [512, 3 * MIB] {
        for step in steps {
            for code in [1, 2, 801, 916] {
                let fake = Fake::new();
                let backend = &fake.backend;
                backend.stream_create(0, false).expect("the context exists");
                fake.control.fail(step, 0, 1, code);
                let error = backend.memory_allocate(0, bytes).expect_err(step);
                match code {
                    2 => mentions(&error, &[&bytes.to_string(), "1073741824", "2 CUDA_ERROR"]),
                    _ => mentions(&error, &[step, &code.to_string()]),
                }
                // What the driver refused to release twice over cannot be given back.
                let lost = if step == "cuMemRelease" { 2 * MIB } else { 0 };
                assert!(
                    fake.control.get("physical") as u64
                        <= lost.max(bytes.next_multiple_of(2 * MIB))
                );
                if step != "cuMemRelease" {
                    assert_eq!(fake.control.get("physical"), 0, "{step} {code}");
                }
                assert_eq!(fake.control.get("reserved"), 0, "{step} {code}");
                let pointer = backend.memory_allocate(0, bytes).expect("it works now");
                backend.memory_free(0, pointer, bytes).expect("it is ours");
            }
        }
    }
}

#[test]
fn large_blocks_go_back_at_once_and_small_ones_share_chunks() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let large = backend.memory_allocate(1, 5 * MIB).expect("memory");
    assert_eq!(large % 512, 0);
    assert_eq!(fake.control.get("physical"), 6 << 20, "pages of 2 MiB");
    backend.memory_free(1, large, 5 * MIB).expect("it is ours");
    assert_eq!(fake.control.get("physical"), 0);

    let mut blocks: Vec<u64> = (0..4096)
        .map(|_| backend.memory_allocate(1, 512).expect("memory"))
        .collect();
    assert_eq!(
        fake.control.get("physical"),
        2 << 20,
        "4096 blocks fill a chunk"
    );
    blocks.sort_unstable();
    assert!(blocks.windows(2).all(|pair| pair[1] - pair[0] == 512));
    let next = backend.memory_allocate(1, 1024).expect("memory");
    assert_eq!(fake.control.get("physical"), 4 << 20);
    backend.memory_free(1, next, 1024).expect("it is ours");
    assert_eq!(
        fake.control.get("physical"),
        4 << 20,
        "one empty chunk is kept"
    );
    for block in blocks {
        backend.memory_free(1, block, 512).expect("it is ours");
    }
    assert_eq!(fake.control.get("physical"), 2 << 20, "and no second one");
    refused(backend.memory_free(1, next, 1024), Status::Internal);
}

#[test]
fn running_out_says_how_much_was_asked_and_how_much_there_is() {
    let fake = Fake::with(Version::Cuda13, &[("memory", 8 << 20)]);
    let backend = &fake.backend;
    let first = backend.memory_allocate(0, 4 * MIB).expect("memory");
    assert_eq!(backend.memory_free_bytes(0), Ok(4 * MIB));
    let error = refused(backend.memory_allocate(0, 5 * MIB), Status::OutOfMemory);
    mentions(
        &error,
        &[
            "5242880",
            "device 0",
            "4194304",
            "8388608",
            "CUDA_ERROR_OUT_OF_MEMORY",
        ],
    );
    // The empty chunk in hand is given up before that.
    let small = backend.memory_allocate(0, 512).expect("memory");
    backend.memory_free(0, small, 512).expect("it is ours");
    assert_eq!(backend.memory_free_bytes(0), Ok(2 * MIB));
    let second = backend
        .memory_allocate(0, 4 * MIB)
        .expect("the chunk's room");
    assert_eq!(backend.memory_free_bytes(0), Ok(0));
    for pointer in [first, second] {
        backend
            .memory_free(0, pointer, 4 * MIB)
            .expect("it is ours");
    }
    assert_eq!(backend.memory_free_bytes(0), Ok(8 * MIB));
    refused(
        backend.memory_allocate(0, u64::MAX - 511),
        Status::OutOfMemory,
    );
    for bytes in [0, 1, 513] {
        refused(backend.memory_allocate(0, bytes), Status::InvalidArgument);
    }
}

#[test]
fn a_device_without_virtual_memory_takes_plain_memory() {
    let fake = Fake::with(Version::Cuda13, &[("virtual_memory", 0)]);
    let backend = &fake.backend;
    let captured = backend.stream_create(0, false).expect("a stream");
    fake.control.capture(captured, true);
    let large = backend.memory_allocate(0, 4 * MIB).expect("memory");
    let small = backend.memory_allocate(0, 512).expect("memory");
    assert_eq!(fake.control.calls("cuMemAlloc_v2"), 2);
    assert_eq!(fake.control.calls("cuMemCreate"), 0);
    backend.memory_free(0, large, 4 * MIB).expect("it is ours");
    backend.memory_free(0, small, 512).expect("it is ours");
    assert_eq!(fake.control.get("broken"), 0, "the capture survives");
    assert_eq!(fake.control.get("physical"), 2 << 20);
}

#[test]
fn threads_share_the_small_blocks_of_a_device() {
    let fake = Fake::new();
    let backend = &fake.backend;
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                for round in 0..200u64 {
                    let bytes = (1 + (round * 7 + thread) % 60) * 512;
                    let blocks: Vec<u64> = (0..8)
                        .map(|_| backend.memory_allocate(0, bytes).expect("memory"))
                        .collect();
                    for (index, block) in blocks.iter().enumerate() {
                        // SAFETY: the fake driver's memory is the host's, and the block is this thread's.
                        unsafe { *(*block as *mut u64) = thread << 32 | index as u64 };
                    }
                    for (index, block) in blocks.iter().enumerate() {
                        // SAFETY: as above.
                        let found = unsafe { *(*block as *const u64) };
                        assert_eq!(found, thread << 32 | index as u64);
                        backend.memory_free(0, *block, bytes).expect("it is ours");
                    }
                }
            });
        }
    });
    assert!(fake.control.get("physical") <= 2 << 20);
}

/// Copies a pattern to the device, across it and back, and compares.
fn round_trip(fake: &Fake, width: u64, height: u64, pitch: u64, device_pitch: u64) {
    let backend = &fake.backend;
    let stream = backend.stream_create(0, false).expect("a stream");
    let span = ((height - 1) * pitch + width) as usize;
    let bytes = (height * device_pitch.max(width)).next_multiple_of(512);
    let source: Vec<u8> = (0..span).map(|at| (at * 31 % 251) as u8).collect();
    let mut result = vec![0xeeu8; span];
    let first = backend.memory_allocate(0, bytes).expect("memory");
    let second = backend.memory_allocate(0, bytes).expect("memory");
    let steps = [
        (
            CopyKind::HostToDevice,
            source.as_ptr() as u64,
            pitch,
            first,
            device_pitch,
        ),
        (
            CopyKind::DeviceToDevice,
            first,
            device_pitch,
            second,
            device_pitch,
        ),
        (
            CopyKind::DeviceToHost,
            second,
            device_pitch,
            result.as_mut_ptr() as u64,
            pitch,
        ),
    ];
    for (kind, src, src_pitch, dst, dst_pitch) in steps {
        let copy = Copy2d {
            kind,
            src,
            src_pitch,
            dst,
            dst_pitch,
            width,
            height,
        };
        backend.copy_2d(0, stream, &copy).expect("a valid copy");
    }
    for (at, (found, expected)) in result.iter().zip(&source).enumerate() {
        let inside = at as u64 % pitch.max(1) < width || height == 1;
        assert_eq!(*found, if inside { *expected } else { 0xee }, "byte {at}");
    }
    backend.memory_free(0, first, bytes).expect("it is ours");
    backend.memory_free(0, second, bytes).expect("it is ours");
    backend.stream_destroy(0, stream).expect("it is ours");
}

#[test]
fn copies_take_rows_of_any_pitch() {
    let fake = Fake::with(Version::Cuda13, &[("max_pitch", 4096)]);
    round_trip(&fake, 100, 7, 100, 100);
    assert_eq!(
        fake.control.calls("cuMemcpy2DAsync_v2"),
        0,
        "packed rows are one"
    );
    round_trip(&fake, 100, 1, 3, 7);
    assert_eq!(
        fake.control.calls("cuMemcpy2DAsync_v2"),
        0,
        "one row has no pitch"
    );
    round_trip(&fake, 100, 7, 101, 128);
    round_trip(&fake, 1, 65, 3, 1);
    // The packed middle of the last one is no rectangle.
    assert_eq!(fake.control.calls("cuMemcpy2DAsync_v2"), 3 + 2);
    let rows = fake.control.get("rows");
    round_trip(&fake, 100, 7, 5000, 128);
    round_trip(&fake, 100, 7, 128, 5000);
    assert_eq!(fake.control.get("rows") - rows, 6 * 7);
    // Only the copies inside the limit went as rectangles.
    assert_eq!(fake.control.calls("cuMemcpy2DAsync_v2"), 3 + 2 + 1);
}

#[test]
fn fills_clear_rows_and_nothing_between_them() {
    let fake = Fake::with(Version::Cuda13, &[("max_pitch", 4096)]);
    let backend = &fake.backend;
    let bytes = 64 << 10;
    let memory = backend.memory_allocate(0, bytes).expect("memory");
    for (pitch, width, height) in [(128, 100, 9), (100, 100, 9), (3, 100, 1), (5000, 100, 9)] {
        // SAFETY: the fake driver's memory is the host's, and nothing else uses it here.
        let all = unsafe { std::slice::from_raw_parts_mut(memory as *mut u8, bytes as usize) };
        all.fill(0xee);
        let fill = Fill2d {
            dst: memory,
            pitch,
            width,
            height,
        };
        backend.fill_zero_2d(0, 0, &fill).expect("a valid fill");
        for (at, byte) in all.iter().enumerate() {
            let (row, column) = match height {
                1 => (0, at as u64),
                _ => (at as u64 / pitch, at as u64 % pitch),
            };
            let inside = row < height && column < width;
            assert_eq!(
                *byte,
                if inside { 0 } else { 0xee },
                "byte {at}, pitch {pitch}"
            );
        }
    }
    // Packed rows, one row and each row beyond the limit are runs of bytes.
    assert_eq!(fake.control.calls("cuMemsetD8Async"), 1 + 1 + 9);
    assert_eq!(fake.control.calls("cuMemsetD2D8Async"), 1);
}

#[test]
fn empty_copies_and_fills_do_nothing_and_impossible_ones_are_refused() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let stream = backend.stream_create(0, false).expect("a stream");
    for (width, height) in [(0, 5), (5, 0), (0, 0)] {
        let copy = Copy2d {
            kind: CopyKind::HostToDevice,
            src: 0,
            src_pitch: 0,
            dst: 0,
            dst_pitch: 0,
            width,
            height,
        };
        assert_eq!(backend.copy_2d(0, stream, &copy), Ok(()));
        let fill = Fill2d {
            dst: 0,
            pitch: 0,
            width,
            height,
        };
        assert_eq!(backend.fill_zero_2d(0, stream, &fill), Ok(()));
    }
    let copy = Copy2d {
        kind: CopyKind::DeviceToDevice,
        src: 4096,
        src_pitch: 1 << 40,
        dst: 4096,
        dst_pitch: 50,
        width: 100,
        height: 1 << 40,
    };
    refused(backend.copy_2d(0, stream, &copy), Status::Overflow);
    let copy = Copy2d {
        src_pitch: 128,
        height: 2,
        ..copy
    };
    let error = refused(backend.copy_2d(0, stream, &copy), Status::InvalidStrides);
    mentions(&error, &["dst", "50", "100"]);
    assert_eq!(fake.control.get("rows"), 0);
}

#[test]
fn a_host_pointer_is_told_from_device_memory() {
    let fake = Fake::new();
    let backend = &fake.backend;
    let on_host = [0u8; 16];
    let address = on_host.as_ptr() as u64;
    // Before there is any context, and so any device memory, too.
    refused(backend.pointer_device(address), Status::InvalidArgument);
    for device in [1, 0] {
        let memory = backend.memory_allocate(device, 512).expect("memory");
        assert_eq!(backend.pointer_device(memory + 100), Ok(Some(device)));
    }
    let error = refused(backend.pointer_device(address), Status::InvalidArgument);
    mentions(&error, &[&format!("{address:#x}"), "device memory"]);
    refused(backend.pointer_device(0), Status::InvalidArgument);
    let pinned = fake.control.of_device("fake_pinned", 0) as u64;
    assert_eq!(
        backend.pointer_device(pinned),
        Ok(None),
        "every device can use it"
    );
    assert_eq!(fake.control.current(), 0);
}
