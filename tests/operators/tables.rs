//! Resize tables that calls share: ordered between streams, kept within bounds, never freed while they are read.

use cvc::ffi::*;
use cvc::op::resize_store;

use super::library::*;

/// Bytes of tables that a device keeps.
const MOST_KEPT: u64 = 16 << 20;

fn resize(stream: &Stream, src: &Tensor, dst: &Tensor, filter: i32) {
    // SAFETY: handles alone.
    ok(unsafe { cvc_op_pillow_resize(stream.0, src.0, dst.0, filter, 0) });
}

extern "C" {
    fn cvc_cache_stats(cache: cvc_cache_t, device: i32, stats: *mut cvc_cache_stats_t) -> i32;
}

/// Bytes of the device that are in no object.
fn free_bytes(device: i32) -> u64 {
    // SAFETY: all zeros is a value of the struct, which is a place for the result.
    unsafe {
        let mut stats: cvc_cache_stats_t = std::mem::zeroed();
        stats.struct_size = size_of::<cvc_cache_stats_t>();
        ok(cvc_cache_stats(cache(), device, &mut stats));
        stats.free_bytes
    }
}

fn column(device: i32, height: i64) -> Tensor {
    Tensor::on(device, "HWC", &[height, 1, 1], CVC_DTYPE_F32, 1)
}

fn filled(device: i32, stream: &Stream, height: i64) -> Tensor {
    let values: Vec<f32> = (0..height).map(|y| y as f32).collect();
    let tensor = column(device, height);
    tensor.put(stream, &values);
    stream.finish();
    tensor
}

#[test]
fn a_table_is_not_read_before_its_upload() {
    let (first, second) = (Stream::new(), Stream::new());
    let (one, two) = (filled(0, &first, 6), filled(0, &first, 6));
    let (one_out, two_out) = (column(0, 3), column(0, 3));
    let latch = first.hold();
    // The first call of this size and filter queues the upload, behind the latch.
    resize(&first, &one, &one_out, CVC_FILTER_BOX);
    resize(&second, &two, &two_out, CVC_FILTER_BOX);
    assert!(second.is_held());
    latch.open();
    assert_eq!(two_out.take::<f32>(&second), [0.5, 2.5, 4.5]);
    assert_eq!(one_out.take::<f32>(&first), [0.5, 2.5, 4.5]);
    // From then on readers do not wait for each other.
    let latch = first.hold();
    resize(&first, &one, &one_out, CVC_FILTER_BOX);
    resize(&second, &two, &two_out, CVC_FILTER_BOX);
    second.finish();
    assert!(first.is_held());
    latch.open();
}

/// The only test that resizes on device 1, so that what is kept there is its own.
#[test]
fn the_store_is_bounded_and_what_is_read_stays() {
    let stream = Stream::on(1);
    let held = Stream::on(1);
    let src = filled(1, &stream, 4);
    let (done, waiting) = (column(1, 2), column(1, 2));
    // The upload is done before the held stream's launch: nothing but its own read keeps the table then.
    resize(&stream, &src, &done, CVC_FILTER_BOX);
    stream.finish();
    let latch = held.hold();
    resize(&held, &src, &waiting, CVC_FILTER_BOX);
    assert_eq!(resize_store::kept(1).0, 1);
    // More sizes than are kept: the table that the held stream is to read goes from the store, and lives on.
    for height in 1..=600 {
        let source = filled(1, &stream, height + 4);
        let out = column(1, 1);
        resize(&stream, &source, &out, CVC_FILTER_BOX);
        let mean = out.take::<f32>(&stream)[0];
        assert!(
            (mean - (height as f32 + 3.0) / 2.0).abs() < 0.01,
            "{height}: {mean}"
        );
    }
    let (count, bytes) = resize_store::kept(1);
    assert_eq!(count, 512);
    assert!(bytes <= MOST_KEPT);
    assert!(held.is_held());
    // Whatever was freed is written over.
    let cover: Vec<Tensor> = (0..300).map(|_| filled(1, &stream, 100)).collect();
    latch.open();
    assert_eq!(waiting.take::<f32>(&held), [0.5, 2.5]);
    drop(cover);

    // Tables of 1.6 MiB push others out by their bytes.
    for height in 32_000..32_014 {
        let source = filled(1, &stream, height);
        let out = column(1, height / 2);
        resize(&stream, &source, &out, CVC_FILTER_LANCZOS);
        let middle = out.take::<f32>(&stream)[height as usize / 4];
        assert!(
            (middle - (height as f32 / 2.0)).abs() < 4.0,
            "{height}: {middle}"
        );
        assert!(resize_store::kept(1).1 <= MOST_KEPT);
    }
    let before = resize_store::kept(1);
    assert!((1..14).contains(&before.0), "{before:?}");

    // One that is larger than all that is kept serves its own call, drives nothing out, and goes when it has been read.
    let free = free_bytes(1);
    let source = filled(1, &stream, 400_000);
    let out = column(1, 200_000);
    let latch = stream.hold();
    resize(&stream, &source, &out, CVC_FILTER_LANCZOS);
    assert_eq!(resize_store::kept(1), before);
    assert!(free_bytes(1) > free + MOST_KEPT);
    latch.open();
    let middle = out.take::<f32>(&stream)[100_000];
    assert!((middle - 200_000.0).abs() < 4.0, "{middle}");
    assert_eq!(free_bytes(1), free);

    resize_store::clear(1);
    assert_eq!(resize_store::kept(1), (0, 0));
    let out = column(1, 2);
    resize(&stream, &src, &out, CVC_FILTER_BOX);
    assert_eq!(out.take::<f32>(&stream), [0.5, 2.5]);
}
