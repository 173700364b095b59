//! Operators on several streams: what must wait waits, on the GPU alone, and what need not does not.

use cvc::ffi::*;

use super::library::*;
use super::models::*;

const SHAPE: [i64; 3] = [6, 8, 3];

fn flip(stream: &Stream, src: &Tensor, dst: &Tensor, code: i32) {
    // SAFETY: handles alone.
    ok(unsafe { cvc_op_flip(stream.0, src.0, dst.0, code) });
}

fn image(stream: &Stream, seed: u64) -> (Elements<u8>, Tensor) {
    let elements = noise_bytes("HWC", &SHAPE, seed);
    let tensor = Tensor::of(stream, "HWC", &SHAPE, CVC_DTYPE_U8, &elements.data);
    (elements, tensor)
}

fn blank() -> Tensor {
    Tensor::new("HWC", &SHAPE, CVC_DTYPE_U8)
}

#[test]
fn a_read_on_another_stream_waits_for_the_write() {
    let (first, second) = (Stream::new(), Stream::new());
    let (elements, src) = image(&first, 1);
    let (between, dst) = (blank(), blank());
    let latch = first.hold();
    flip(&first, &src, &between, 1);
    flip(&second, &between, &dst, 0);
    assert!(second.is_held());
    latch.open();
    second.finish();
    assert_eq!(dst.take::<u8>(&second), elements.flipped(true, true).data);
}

#[test]
fn a_write_on_another_stream_waits_for_the_read() {
    let (first, second) = (Stream::new(), Stream::new());
    let (elements, src) = image(&first, 2);
    let (others, other) = image(&first, 3);
    let dst = blank();
    let latch = first.hold();
    flip(&first, &src, &dst, 1);
    flip(&second, &other, &src, 0);
    assert!(second.is_held());
    latch.open();
    assert_eq!(src.take::<u8>(&second), others.flipped(true, false).data);
    assert_eq!(dst.take::<u8>(&first), elements.flipped(false, true).data);
}

#[test]
fn a_write_on_another_stream_waits_for_the_write() {
    let (first, second) = (Stream::new(), Stream::new());
    let (_, src) = image(&first, 4);
    let (others, other) = image(&first, 5);
    let dst = blank();
    let latch = first.hold();
    flip(&first, &src, &dst, 1);
    flip(&second, &other, &dst, 0);
    assert!(second.is_held());
    latch.open();
    assert_eq!(dst.take::<u8>(&second), others.flipped(true, false).data);
}

#[test]
fn readers_do_not_wait_for_each_other() {
    let (first, second) = (Stream::new(), Stream::new());
    let (elements, src) = image(&first, 6);
    let (one, two) = (blank(), blank());
    let latch = first.hold();
    flip(&first, &src, &one, 1);
    flip(&second, &src, &two, 0);
    second.finish();
    assert!(first.is_held());
    latch.open();
    assert_eq!(one.take::<u8>(&first), elements.flipped(false, true).data);
    assert_eq!(two.take::<u8>(&second), elements.flipped(true, false).data);
}

#[test]
fn work_in_place_waits_for_readers_and_later_readers_wait_for_it() {
    let streams = [Stream::new(), Stream::new(), Stream::new()];
    let (elements, src) = image(&streams[0], 7);
    let (before, after) = (blank(), blank());
    let latch = streams[0].hold();
    flip(&streams[0], &src, &before, 1);
    flip(&streams[1], &src, &src, 0);
    flip(&streams[2], &src, &after, 1);
    assert!(streams[1].is_held() && streams[2].is_held());
    latch.open();
    assert_eq!(
        after.take::<u8>(&streams[2]),
        elements.flipped(true, true).data
    );
    assert_eq!(
        before.take::<u8>(&streams[0]),
        elements.flipped(false, true).data
    );
}

#[test]
fn views_of_one_image_share_its_order() {
    let (first, second) = (Stream::new(), Stream::new());
    let elements = noise_bytes("NHWC", &[1, 6, 8, 3], 8);
    let image = Image::new(CVC_FORMAT_RGB8, 8, 6);
    let (writer, reader) = (image.tensor(), image.tensor());
    let src = Tensor::of(&first, "NHWC", &[1, 6, 8, 3], CVC_DTYPE_U8, &elements.data);
    let latch = first.hold();
    flip(&first, &src, &writer, 1);
    // SAFETY: a place for the result.
    let dst = new_tensor(|dst| unsafe { cvc_op_flip_new(second.0, reader.0, 0, dst) });
    assert!(second.is_held());
    latch.open();
    assert_eq!(dst.take::<u8>(&second), elements.flipped(true, true).data);
}

#[test]
fn base_and_scale_are_read_like_any_input() {
    let (first, second) = (Stream::new(), Stream::new());
    let src = Tensor::of(
        &first,
        "HWC",
        &[2, 2, 1],
        CVC_DTYPE_F32,
        &[1f32, 2.0, 3.0, 4.0],
    );
    let base = Tensor::of(&first, "HWC", &[1, 1, 1], CVC_DTYPE_F32, &[0f32]);
    let hundred = Tensor::of(&first, "HWC", &[1, 1, 1], CVC_DTYPE_F32, &[100f32]);
    let mut params = normalize_params(&[], &[2.0]);
    params.base = base.0;
    let latch = first.hold();
    flip(&first, &hundred, &base, 1);
    // SAFETY: a struct and a place for the result.
    let late = new_tensor(|dst| unsafe { cvc_op_normalize_new(second.0, src.0, &params, dst) });
    assert!(second.is_held());
    latch.open();
    assert_eq!(late.take::<f32>(&second), [-198.0, -196.0, -194.0, -192.0]);
    // And a write to it waits for those that read it.
    let latch = first.hold();
    // SAFETY: as above.
    let early = new_tensor(|dst| unsafe { cvc_op_normalize_new(first.0, src.0, &params, dst) });
    let three = Tensor::of(&second, "HWC", &[1, 1, 1], CVC_DTYPE_F32, &[3f32]);
    flip(&second, &three, &base, 1);
    assert!(second.is_held());
    latch.open();
    assert_eq!(early.take::<f32>(&first), [-198.0, -196.0, -194.0, -192.0]);
    assert_eq!(base.take::<f32>(&second), [3.0]);
}

type Operator<'a> = &'a dyn Fn(&Stream, &Tensor) -> Tensor;

#[test]
fn every_operator_orders_its_input_and_output() {
    let source = Stream::new();
    let (elements, src) = image(&source, 9);
    let layout = text("CHW");
    let params = normalize_params(&[0.0], &[1.0]);
    let operators: [(&str, Operator); 5] = [
        ("flip", &|stream, src| {
            // SAFETY: here and below: structs, texts and places for results.
            new_tensor(|dst| unsafe { cvc_op_flip_new(stream.0, src.0, 1, dst) })
        }),
        ("convert_to", &|stream, src| {
            // SAFETY: as above.
            new_tensor(|dst| unsafe {
                cvc_op_convert_to_new(stream.0, src.0, CVC_DTYPE_U8, 1.0, 0.0, 0, dst)
            })
        }),
        ("normalize", &|stream, src| {
            // SAFETY: as above.
            new_tensor(|dst| unsafe { cvc_op_normalize_new(stream.0, src.0, &params, dst) })
        }),
        ("reformat", &|stream, src| {
            // SAFETY: as above.
            new_tensor(|dst| unsafe { cvc_op_reformat_new(stream.0, src.0, layout.as_ptr(), dst) })
        }),
        ("pillow_resize", &|stream, src| {
            // SAFETY: as above.
            new_tensor(|dst| unsafe {
                cvc_op_pillow_resize_new(stream.0, src.0, 5, 4, CVC_FILTER_CUBIC, 0, dst)
            })
        }),
    ];
    for (name, operator) in operators {
        let expected = operator(&source, &src).take::<u8>(&source);
        let (first, second) = (Stream::new(), Stream::new());
        let input = blank();
        let latch = first.hold();
        input.put(&first, &elements.data);
        let output = operator(&second, &input);
        let copy = Stream::new();
        // SAFETY: a place for the result.
        let after = new_tensor(|dst| unsafe { cvc_op_flip_new(copy.0, output.0, 1, dst) });
        assert!(second.is_held() && copy.is_held(), "{name}");
        latch.open();
        copy.finish();
        assert_eq!(output.take::<u8>(&second), expected, "{name}");
        drop(after);
    }
}

#[test]
fn many_threads_on_one_tensor_keep_it_whole() {
    let stream = Stream::new();
    let (elements, tensor) = image(&stream, 10);
    // An even number of flips in all, in any order, gives the image back.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let own = Stream::new();
                for _ in 0..50 {
                    flip(&own, &tensor, &tensor, 1);
                }
                own.finish();
            });
        }
    });
    assert_eq!(tensor.take::<u8>(&stream), elements.data);
}
