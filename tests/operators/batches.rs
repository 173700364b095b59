//! Operators on batches of images: each image gets what a plain loop says, in any number, order and format.

use cvc::ffi::*;

use super::library::*;
use super::models::*;

const SIZES: [(i32, i32); 4] = [(9, 7), (16, 4), (5, 12), (1, 1)];

fn layout_of(format: u32) -> (&'static str, i64) {
    match format {
        CVC_FORMAT_RGB8 | CVC_FORMAT_RGBF32 => ("NHWC", 3),
        CVC_FORMAT_RGBA8 => ("NHWC", 4),
        CVC_FORMAT_2S16 => ("NHWC", 2),
        CVC_FORMAT_U8 | CVC_FORMAT_F32 => ("NHWC", 1),
        CVC_FORMAT_RGB8P | CVC_FORMAT_RGBF32P => ("NCHW", 3),
        _ => panic!("format {format} has no layout here"),
    }
}

fn shape_of(format: u32, (width, height): (i32, i32)) -> (&'static str, [i64; 4]) {
    let (layout, channels) = layout_of(format);
    let (height, width) = (i64::from(height), i64::from(width));
    match layout {
        "NHWC" => (layout, [1, height, width, channels]),
        _ => (layout, [1, channels, height, width]),
    }
}

/// An image of noise, and its elements.
fn noise_image(stream: &Stream, format: u32, size: (i32, i32), seed: u64) -> (Image, Elements<u8>) {
    let (layout, shape) = shape_of(format, size);
    let elements = noise_bytes(layout, &shape, seed);
    let image = Image::new(format, size.0, size.1);
    image.tensor().put(stream, &elements.data);
    stream.finish();
    (image, elements)
}

fn pixels<T: Copy + Default>(stream: &Stream, batch: &Batch, index: usize) -> Vec<T> {
    let image = batch.image(index);
    // A view of an image of one plane and one channel is NCHW, whose elements lie in the same order.
    image.tensor().take(stream)
}

fn codes(stream: &Stream, codes: &[i32]) -> Tensor {
    Tensor::of(stream, "N", &[codes.len() as i64], CVC_DTYPE_S32, codes)
}

fn expected_flip(elements: &Elements<u8>, code: i32) -> Vec<u8> {
    match code {
        0 => elements.flipped(true, false).data,
        1 => elements.flipped(false, true).data,
        -1 => elements.flipped(true, true).data,
        _ => elements.data.clone(),
    }
}

/// More images than a launch takes, of several formats.
fn mixed(stream: &Stream, formats: &[u32], count: usize) -> (Vec<Image>, Vec<Elements<u8>>) {
    (0..count)
        .map(|i| {
            noise_image(
                stream,
                formats[i % formats.len()],
                SIZES[i % SIZES.len()],
                i as u64,
            )
        })
        .unzip()
}

#[test]
fn flip_gives_each_image_its_own_code() {
    let stream = Stream::new();
    let formats = [
        CVC_FORMAT_RGB8,
        CVC_FORMAT_RGB8P,
        CVC_FORMAT_U8,
        CVC_FORMAT_RGBA8,
    ];
    let (images, elements) = mixed(&stream, &formats, 101);
    let batch = Batch::of(110, &images.iter().collect::<Vec<_>>());
    let all: Vec<i32> = (0..101).map(|i| [1, 0, -1, 7, -2][i % 5]).collect();
    let tensor = codes(&stream, &all);
    // SAFETY: a place for the result.
    let made =
        new_batch(|dst| unsafe { cvc_op_flip_var_shape_new(stream.0, batch.0, tensor.0, dst) });
    let data = made.data();
    assert_eq!(
        (data.count, data.capacity, data.unique_format),
        (101, 110, CVC_FORMAT_NONE)
    );
    for (i, elements) in elements.iter().enumerate() {
        assert_eq!(
            pixels::<u8>(&stream, &made, i),
            expected_flip(elements, all[i]),
            "image {i}"
        );
    }
    // In place, by the same batch on both sides.
    // SAFETY: handles alone.
    ok(unsafe { cvc_op_flip_var_shape(stream.0, batch.0, batch.0, tensor.0) });
    for (i, elements) in elements.iter().enumerate() {
        assert_eq!(
            pixels::<u8>(&stream, &batch, i),
            expected_flip(elements, all[i]),
            "image {i}"
        );
    }
}

#[test]
fn resize_gives_each_image_its_own_size() {
    let stream = Stream::new();
    let formats = [CVC_FORMAT_RGB8, CVC_FORMAT_U8, CVC_FORMAT_RGB8P];
    let (images, elements) = mixed(&stream, &formats, 75);
    let batch = Batch::of(75, &images.iter().collect::<Vec<_>>());
    let sizes: Vec<i32> = (0..75)
        .flat_map(|i| [i * 5 % 14 + 1, i * 3 % 11 + 1])
        .collect();
    // SAFETY: an array of sizes and a place for the result.
    let made = new_batch(|dst| unsafe {
        cvc_op_pillow_resize_var_shape_new(
            stream.0,
            batch.0,
            sizes.as_ptr(),
            75,
            CVC_FILTER_LINEAR,
            0,
            dst,
        )
    });
    for (i, elements) in elements.iter().enumerate() {
        let (width, height) = (sizes[2 * i] as usize, sizes[2 * i + 1] as usize);
        let wanted = resized(&elements.map(|_, value| f64::from(value)), height, width);
        let got = pixels::<u8>(&stream, &made, i);
        assert_eq!(got.len(), wanted.data.len());
        for (got, wanted) in got.iter().zip(&wanted.data) {
            assert!(
                (f64::from(*got) - wanted).abs() <= 1.01,
                "image {i}: {got}, not {wanted}"
            );
        }
    }
}

#[test]
fn normalize_takes_values_and_tensors_for_all_images_or_each() {
    let stream = Stream::new();
    let formats = [CVC_FORMAT_RGB8, CVC_FORMAT_RGB8P];
    let (images, elements) = mixed(&stream, &formats, 70);
    let batch = Batch::of(70, &images.iter().collect::<Vec<_>>());
    let mut params = normalize_params(&[10.0, 20.0, 30.0], &[0.5]);
    params.global_shift = 0.25;
    let floats: Vec<Image> = (0..70)
        .map(|i| {
            let (width, height) = SIZES[i % SIZES.len()];
            let format = [CVC_FORMAT_RGBF32, CVC_FORMAT_RGBF32P][i % 2];
            Image::new(format, width, height)
        })
        .collect();
    let target = Batch::of(70, &floats.iter().collect::<Vec<_>>());
    // SAFETY: handles and a struct.
    ok(unsafe { cvc_op_normalize_var_shape(stream.0, batch.0, target.0, &params) });
    for (i, elements) in elements.iter().enumerate() {
        let expected = elements
            .map(|[_, c, ..], value| (f32::from(value) - params.base_values[c]) * 0.5 + 0.25);
        assert_eq!(
            pixels::<f32>(&stream, &target, i),
            expected.data,
            "image {i}"
        );
    }
    // A scale for each image, a base for each channel, as tensors; and the source's own formats.
    let scales: Vec<f32> = (0..70).map(|i| 0.125 * (i % 9) as f32).collect();
    let scale = Tensor::of(&stream, "NHWC", &[70, 1, 1, 1], CVC_DTYPE_F32, &scales);
    let base = Tensor::of(
        &stream,
        "NCHW",
        &[1, 3, 1, 1],
        CVC_DTYPE_F32,
        &[1f32, 2.0, 3.0],
    );
    (params.base, params.scale) = (base.0, scale.0);
    // SAFETY: a struct and a place for the result.
    let made = new_batch(|dst| unsafe {
        cvc_op_normalize_var_shape_new(stream.0, batch.0, &params, CVC_FORMAT_NONE, dst)
    });
    for (i, elements) in elements.iter().enumerate() {
        let expected = elements.map(|[_, c, ..], value| {
            let result = (f32::from(value) - (c + 1) as f32) * scales[i] + 0.25;
            result.round_ties_even().clamp(0.0, 255.0) as u8
        });
        assert_eq!(pixels::<u8>(&stream, &made, i), expected.data, "image {i}");
    }
}

/// Planes that were allocated one by one, in no order: each goes into the launch by itself.
#[test]
fn planes_need_not_be_equally_spaced() {
    let stream = Stream::new();
    let (width, height, row) = (7, 5, 11);
    let plane = row as usize * height as usize;
    let mut memory = noise_bytes("W", &[16 * plane as i64], 1).data;
    let start = memory.as_mut_ptr();
    let offsets = [9 * plane, 2 * plane, 5 * plane];
    let elements = Elements::by_place("NCHW", &[1, 3, height, width], |[_, c, h, w]| {
        memory[offsets[c] + h * row as usize + w]
    });
    let planes: Vec<(*mut u8, i64)> = offsets
        .iter()
        .map(|&offset| (start.wrapping_add(offset), row))
        .collect();
    let image = Image::around(CVC_FORMAT_RGB8P, width as i32, height as i32, &planes);
    let batch = Batch::of(1, &[&image]);
    let tensor = codes(&stream, &[-1]);
    let params = normalize_params(&[1.0, 2.0, 3.0], &[0.5, 0.25, 0.125]);
    // SAFETY: structs, arrays and places for results.
    unsafe {
        let flipped = new_batch(|dst| cvc_op_flip_var_shape_new(stream.0, batch.0, tensor.0, dst));
        assert_eq!(
            pixels::<u8>(&stream, &flipped, 0),
            elements.flipped(true, true).data
        );
        let normal = new_batch(|dst| {
            cvc_op_normalize_var_shape_new(stream.0, batch.0, &params, CVC_FORMAT_RGBF32P, dst)
        });
        let expected = elements.map(|[_, c, ..], value| {
            (f32::from(value) - params.base_values[c]) * params.scale_values[c]
        });
        assert_eq!(pixels::<f32>(&stream, &normal, 0), expected.data);
        let size = [4, 9];
        let small = new_batch(|dst| {
            cvc_op_pillow_resize_var_shape_new(stream.0, batch.0, size.as_ptr(), 1, 1, 0, dst)
        });
        let wanted = resized(&elements.map(|_, value| f64::from(value)), 9, 4);
        for (got, wanted) in pixels::<u8>(&stream, &small, 0).iter().zip(&wanted.data) {
            assert!(
                (f64::from(*got) - wanted).abs() <= 1.01,
                "{got}, not {wanted}"
            );
        }
    }
}

#[test]
fn a_batch_waits_for_its_images_and_codes() {
    let (first, second) = (Stream::new(), Stream::new());
    let (image, elements) = noise_image(&first, CVC_FORMAT_RGB8, (9, 7), 4);
    let tensor = codes(&first, &[5]);
    let batch = Batch::of(1, &[&image]);
    let latch = first.hold();
    let flipped = elements.flipped(true, false);
    image.tensor().put(&first, &flipped.data);
    tensor.put(&first, &[1i32]);
    // SAFETY: a place for the result.
    let made =
        new_batch(|dst| unsafe { cvc_op_flip_var_shape_new(second.0, batch.0, tensor.0, dst) });
    assert!(second.is_held());
    latch.open();
    assert_eq!(
        pixels::<u8>(&second, &made, 0),
        flipped.flipped(false, true).data
    );
    // And a write to the codes waits for the operator.
    let latch = second.hold();
    // SAFETY: as above.
    let again =
        new_batch(|dst| unsafe { cvc_op_flip_var_shape_new(second.0, batch.0, tensor.0, dst) });
    tensor.put(&first, &[0i32]);
    assert!(first.is_held());
    latch.open();
    first.finish();
    assert_eq!(
        pixels::<u8>(&second, &again, 0),
        flipped.flipped(false, true).data
    );
}

#[test]
fn empty_batches_succeed() {
    let stream = Stream::new();
    let (src, dst) = (Batch::of(3, &[]), Batch::of(1, &[]));
    let tensor = codes(&stream, &[0]);
    let params = normalize_params(&[0.0], &[1.0]);
    // SAFETY: structs and places for results.
    unsafe {
        ok(cvc_op_flip_var_shape(stream.0, src.0, dst.0, tensor.0));
        ok(cvc_op_pillow_resize_var_shape(
            stream.0,
            src.0,
            dst.0,
            CVC_FILTER_BOX,
            0,
        ));
        ok(cvc_op_normalize_var_shape(stream.0, src.0, dst.0, &params));
        let made = new_batch(|dst| cvc_op_flip_var_shape_new(stream.0, src.0, tensor.0, dst));
        assert_eq!((made.data().count, made.data().capacity), (0, 3));
        let sizes = std::ptr::null();
        let made = new_batch(|dst| {
            cvc_op_pillow_resize_var_shape_new(stream.0, src.0, sizes, 0, CVC_FILTER_BOX, 0, dst)
        });
        assert_eq!(made.data().count, 0);
    }
}

#[test]
fn batches_that_do_not_agree_are_refused() {
    let stream = Stream::new();
    let image = |format, width, height| Image::new(format, width, height);
    let (rgb, wide) = (image(CVC_FORMAT_RGB8, 9, 7), image(CVC_FORMAT_RGB8, 10, 7));
    let (bgr, yuv) = (image(CVC_FORMAT_BGR8, 9, 7), image(CVC_FORMAT_NV12, 8, 6));
    let (grey, more) = (image(CVC_FORMAT_F32, 9, 7), image(CVC_FORMAT_RGB8, 9, 7));
    let other = image(CVC_FORMAT_RGB8, 9, 7);
    let src = Batch::of(2, &[&rgb]);
    let one = codes(&stream, &[0]);
    let params = normalize_params(&[0.0], &[1.0]);
    let shape = CVC_STATUS_SHAPE_MISMATCH;
    let (dtype, argument) = (CVC_STATUS_DTYPE_MISMATCH, CVC_STATUS_INVALID_ARGUMENT);
    // SAFETY: structs, arrays and places for results.
    unsafe {
        let flip = |dst: &Batch| cvc_op_flip_var_shape(stream.0, src.0, dst.0, one.0);
        let resize = |dst: &Batch| cvc_op_pillow_resize_var_shape(stream.0, src.0, dst.0, 1, 0);
        let normalize = |dst: &Batch| cvc_op_normalize_var_shape(stream.0, src.0, dst.0, &params);
        let sized = Batch::of(1, &[&wide]);
        let words = ["dst[0]", "10x7", "9x7"];
        refused(flip(&sized), shape, &words);
        refused(normalize(&sized), shape, &words);
        ok(resize(&sized));
        let formatted = Batch::of(1, &[&bgr]);
        let words = ["dst[0]", "BGR8", "RGB8"];
        refused(flip(&formatted), dtype, &words);
        refused(resize(&formatted), dtype, &words);
        ok(normalize(&formatted));
        refused(
            normalize(&Batch::of(1, &[&grey])),
            dtype,
            &["dst[0]", "F32", "3"],
        );
        let two = Batch::of(2, &[&more, &other]);
        refused(flip(&two), shape, &["dst", "2", "1"]);
        let subsampled = Batch::of(1, &[&yuv]);
        let words = ["src[0]", "NV12"];
        refused_new(
            |dst| cvc_op_flip_var_shape_new(stream.0, subsampled.0, one.0, dst),
            CVC_STATUS_NOT_SUPPORTED,
            &words,
        );
        refused_new(
            |dst| cvc_op_normalize_var_shape_new(stream.0, src.0, &params, CVC_FORMAT_NV12, dst),
            CVC_STATUS_NOT_SUPPORTED,
            &["dst_format", "NV12"],
        );
        refused_new(
            |dst| cvc_op_normalize_var_shape_new(stream.0, src.0, &params, CVC_FORMAT_RGBA8, dst),
            dtype,
            &["dst_format", "RGBA8", "RGB8"],
        );
        // Images that share memory.
        let double = Batch::of(2, &[&more, &more]);
        let pair = Batch::of(2, &[&rgb, &other]);
        let status = cvc_op_pillow_resize_var_shape(stream.0, pair.0, double.0, 1, 0);
        refused(status, argument, &["dst[0]", "dst[1]", "overlap"]);
        refused(resize(&src), argument, &["dst[0]", "src[0]"]);
        let swapped = Batch::of(2, &[&other, &rgb]);
        let both = codes(&stream, &[0, 0]);
        let status = cvc_op_flip_var_shape(stream.0, pair.0, swapped.0, both.0);
        refused(status, argument, &["dst[1]", "src[0]"]);
        // Codes.
        let status = cvc_op_flip_var_shape(stream.0, pair.0, pair.0, one.0);
        refused(status, shape, &["flip_codes", "1", "2"]);
        let square = Tensor::of(&stream, "HW", &[1, 1], CVC_DTYPE_S32, &[0i32]);
        refused_new(
            |dst| cvc_op_flip_var_shape_new(stream.0, src.0, square.0, dst),
            CVC_STATUS_INVALID_RANK,
            &["flip_codes", "2"],
        );
        let line = Tensor::of(&stream, "W", &[1], CVC_DTYPE_S32, &[0i32]);
        refused_new(
            |dst| cvc_op_flip_var_shape_new(stream.0, src.0, line.0, dst),
            CVC_STATUS_INVALID_LAYOUT,
            &["flip_codes", "W"],
        );
        // Factors: no row or column of their own, and channels of every image.
        let row = Tensor::of(&stream, "NHWC", &[1, 1, 9, 1], CVC_DTYPE_F32, &[0f32; 9]);
        let mut factors = normalize_params(&[], &[1.0]);
        factors.base = row.0;
        refused(
            cvc_op_normalize_var_shape(stream.0, src.0, src.0, &factors),
            shape,
            &["params.base", "9", "for W"],
        );
        let values = normalize_params(&[0.0; 4], &[1.0]);
        refused(
            cvc_op_normalize_var_shape(stream.0, src.0, src.0, &values),
            argument,
            &["params.base_count", "4", "3", "src[0]"],
        );
    }
    stream.finish();
}
