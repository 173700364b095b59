//! Each operator on tensors against a plain loop: layouts, lanes, strides, in place, empty.

use cvc::ffi::*;

use super::library::*;
use super::models::*;

/// Layouts, with shapes whose extents differ.
const LAYOUTS: [(&str, &[i64]); 9] = [
    ("NHWC", &[2, 5, 7, 3]),
    ("NCHW", &[2, 4, 5, 7]),
    ("HWC", &[5, 7, 2]),
    ("CHW", &[3, 5, 7]),
    ("NHW", &[3, 5, 7]),
    ("HW", &[6, 9]),
    ("NWC", &[2, 7, 3]),
    ("CW", &[4, 9]),
    ("W", &[37]),
];

fn flip(stream: &Stream, src: &Tensor, dst: &Tensor, code: i32) {
    // SAFETY: handles alone.
    ok(unsafe { cvc_op_flip(stream.0, src.0, dst.0, code) });
}

#[test]
fn flip_reverses_the_axes_of_its_code_in_every_layout() {
    let stream = Stream::new();
    for (layout, shape) in LAYOUTS {
        let elements = noise_bytes(layout, shape, 1);
        for (code, rows, columns) in [(0, true, false), (9, false, true), (-3, true, true)] {
            let expected = elements.flipped(rows, columns).data;
            let src = Tensor::of(&stream, layout, shape, CVC_DTYPE_U8, &elements.data);
            // SAFETY: a place for the result.
            let made = new_tensor(|dst| unsafe { cvc_op_flip_new(stream.0, src.0, code, dst) });
            assert_eq!((made.layout().as_str(), &made.shape()[..]), (layout, shape));
            assert_eq!(made.take::<u8>(&stream), expected, "{layout} {code}");
            // Rows of other strides than those of the source.
            let packed = Tensor::on(0, layout, shape, CVC_DTYPE_U8, 1);
            flip(&stream, &src, &packed, code);
            assert_eq!(
                packed.take::<u8>(&stream),
                expected,
                "{layout} {code} packed"
            );
            flip(&stream, &src, &src, code);
            assert_eq!(
                src.take::<u8>(&stream),
                expected,
                "{layout} {code} in place"
            );
        }
    }
}

#[test]
fn flip_moves_elements_of_any_dtype() {
    let stream = Stream::new();
    for dtype in (1..=13).flat_map(|kind| (0..4).map(move |more| kind | more << 8)) {
        if dtype & 0xff == CVC_DTYPE_C128 && dtype >> 8 > 1 {
            continue;
        }
        let bytes = bytes_of(dtype);
        let mut next = noise(u64::from(dtype));
        let elements = Elements::make("HW", &[4, 5], |i| {
            let mut element = [0u8; 64];
            for (j, byte) in element[..bytes].iter_mut().enumerate() {
                *byte = next(i * 64 + j) as u8;
            }
            element
        });
        let packed = |elements: &Elements<[u8; 64]>| -> Vec<u8> {
            elements
                .data
                .iter()
                .flat_map(|element| element[..bytes].to_vec())
                .collect()
        };
        let src = Tensor::of(&stream, "HW", &[4, 5], dtype, &packed(&elements));
        // SAFETY: a place for the result.
        let dst = new_tensor(|dst| unsafe { cvc_op_flip_new(stream.0, src.0, -1, dst) });
        assert_eq!(
            dst.take::<u8>(&stream),
            packed(&elements.flipped(true, true)),
            "{dtype:#x}"
        );
    }
}

#[test]
fn operators_on_empty_tensors_succeed_and_launch_nothing() {
    let stream = Stream::new();
    let latch = stream.hold();
    let other = Stream::new();
    for shape in [[0, 5, 7, 3], [2, 0, 7, 3], [2, 5, 0, 3], [2, 5, 7, 0]] {
        let src = Tensor::new("NHWC", &shape, CVC_DTYPE_U8);
        let params = normalize_params(&[1.0], &[1.0]);
        // SAFETY: handles, structs and places for results.
        unsafe {
            let flipped = new_tensor(|dst| cvc_op_flip_new(other.0, src.0, 1, dst));
            assert_eq!(flipped.shape(), shape);
            ok(cvc_op_flip(other.0, src.0, src.0, 1));
            new_tensor(|dst| {
                cvc_op_convert_to_new(other.0, src.0, CVC_DTYPE_F32, 1.0, 0.0, 0, dst)
            });
            new_tensor(|dst| cvc_op_normalize_new(other.0, src.0, &params, dst));
            let layout = text("NCHW");
            let planar =
                new_tensor(|dst| cvc_op_reformat_new(other.0, src.0, layout.as_ptr(), dst));
            assert_eq!(planar.shape(), [shape[0], shape[3], shape[1], shape[2]]);
            let target = Tensor::new("NHWC", &[shape[0], 0, 3, shape[3]], CVC_DTYPE_U8);
            ok(cvc_op_pillow_resize(
                other.0,
                src.0,
                target.0,
                CVC_FILTER_CUBIC,
                0,
            ));
        }
    }
    // Images that have no pixel cannot be resized to some that have, but no images can.
    let none = Tensor::new("NHWC", &[0, 5, 7, 3], CVC_DTYPE_U8);
    let hollow = Tensor::new("NHWC", &[2, 0, 7, 3], CVC_DTYPE_U8);
    // SAFETY: places for results.
    unsafe {
        let made = new_tensor(|dst| {
            cvc_op_pillow_resize_new(other.0, none.0, 4, 3, CVC_FILTER_BOX, 0, dst)
        });
        assert_eq!(made.shape(), [0, 4, 3, 3]);
        refused_new(
            |dst| cvc_op_pillow_resize_new(other.0, hollow.0, 4, 3, CVC_FILTER_BOX, 0, dst),
            CVC_STATUS_INVALID_SHAPE,
            &["src", "[2, 0, 7, 3]"],
        );
    }
    assert!(!other.is_held());
    latch.open();
}

#[test]
fn convert_to_scales_rounds_and_saturates() {
    let stream = Stream::new();
    for (layout, shape) in LAYOUTS {
        let elements = noise_bytes(layout, shape, 2);
        let src = Tensor::of(&stream, layout, shape, CVC_DTYPE_U8, &elements.data);
        let (alpha, beta) = (1.0 / 255.0, -0.375);
        // SAFETY: a place for the result.
        let floats = new_tensor(|dst| unsafe {
            cvc_op_convert_to_new(
                stream.0,
                src.0,
                CVC_DTYPE_F32,
                alpha,
                beta,
                CVC_ROUND_NEAREST,
                dst,
            )
        });
        let expected = elements.map(|_, value| f32::from(value) * alpha as f32 + beta as f32);
        assert_eq!(floats.take::<f32>(&stream), expected.data, "{layout}");
        for round in [CVC_ROUND_NEAREST, CVC_ROUND_TRUNCATE] {
            let bytes = Tensor::on(0, layout, shape, CVC_DTYPE_S8, 1);
            // SAFETY: handles alone.
            ok(unsafe { cvc_op_convert_to(stream.0, floats.0, bytes.0, 300.0, 5.5, round) });
            let expected = expected.map(|_, value| {
                let scaled = value * 300.0 + 5.5;
                let whole = if round == CVC_ROUND_TRUNCATE {
                    scaled.trunc()
                } else {
                    scaled.round_ties_even()
                };
                whole as i8
            });
            assert_eq!(bytes.take::<i8>(&stream), expected.data, "{layout} {round}");
        }
    }
}

#[test]
fn convert_to_works_in_place_where_elements_are_of_one_size() {
    let stream = Stream::new();
    let values = [-3.7f32, 2.5, 1e9, f32::NAN, 0.5, -1e20];
    let mut memory = values;
    let data = memory.as_mut_ptr().cast();
    let floats = Tensor::around(data, "HW", &[2, 3], &[12, 4], CVC_DTYPE_F32);
    let integers = Tensor::around(data, "HW", &[2, 3], &[12, 4], CVC_DTYPE_S32);
    // SAFETY: handles alone.
    ok(unsafe { cvc_op_convert_to(stream.0, floats.0, integers.0, 1.0, 0.0, CVC_ROUND_NEAREST) });
    assert_eq!(
        integers.take::<i32>(&stream),
        [-4, 2, 1_000_000_000, 0, 0, i32::MIN]
    );
}

#[test]
fn lanes_of_a_vector_are_channels() {
    let stream = Stream::new();
    let elements = noise_bytes("HWC", &[4, 5, 3], 3);
    let vectors = CVC_DTYPE_U8 | 2 << 8;
    let src = Tensor::of(&stream, "HW", &[4, 5], vectors, &elements.data);
    let params = normalize_params(&[1.0, 2.0, 3.0], &[0.5, 0.25, 2.0]);
    let expected = elements.map(|[_, c, ..], value| {
        (f32::from(value) - params.base_values[c]) * params.scale_values[c]
    });
    let dst = Tensor::new("HW", &[4, 5], CVC_DTYPE_F32 | 2 << 8);
    // SAFETY: handles and a struct.
    ok(unsafe { cvc_op_normalize(stream.0, src.0, dst.0, &params) });
    assert_eq!(dst.take::<f32>(&stream), expected.data);
    // A base of vectors, for each row one.
    let mut params = params;
    let bases: Vec<f32> = (0..12).map(|i| i as f32 * 1.5).collect();
    let base = Tensor::of(&stream, "HW", &[4, 1], CVC_DTYPE_F32 | 2 << 8, &bases);
    params.base = base.0;
    let expected = elements
        .map(|[_, c, h, _], value| (f32::from(value) - bases[h * 3 + c]) * params.scale_values[c]);
    // SAFETY: handles and a struct.
    ok(unsafe { cvc_op_normalize(stream.0, src.0, dst.0, &params) });
    assert_eq!(dst.take::<f32>(&stream), expected.data);
}

#[test]
fn normalize_takes_tensors_of_one_or_all_indices() {
    let stream = Stream::new();
    for (layout, shape) in LAYOUTS {
        let mut next = noise(4);
        let elements = Elements::make(layout, shape, |i| next(i) as i16);
        let src = Tensor::of(&stream, layout, shape, CVC_DTYPE_S16, &elements.data);
        // Base has every second dimension, scale the others.
        let part = |first: usize| -> Vec<i64> {
            shape
                .iter()
                .enumerate()
                .map(|(i, &dim)| if i % 2 == first { dim } else { 1 })
                .collect()
        };
        let factor = |shape: &[i64], seed| {
            let mut next = noise(seed);
            Elements::make(layout, shape, |i| next(i) as i8 as f32 / 16.0)
        };
        let (base, scale) = (factor(&part(0), 5), factor(&part(1), 6));
        let clamp = |factor: &Elements<f32>, place: Place| {
            let mut own = place;
            for (label, index) in "NCHW".chars().zip(&mut own) {
                *index = (*index).min(factor.extent(label) - 1);
            }
            factor.at(own)
        };
        let tensor = |factor: &Elements<f32>| {
            Tensor::of(&stream, layout, &factor.shape, CVC_DTYPE_F32, &factor.data)
        };
        let (base_tensor, scale_tensor) = (tensor(&base), tensor(&scale));
        let mut params = normalize_params(&[], &[]);
        (params.base, params.scale) = (base_tensor.0, scale_tensor.0);
        (params.global_scale, params.global_shift) = (1.5, 0.25);
        for deviation in [false, true] {
            params.flags = if deviation {
                CVC_NORMALIZE_SCALE_IS_STDDEV
            } else {
                0
            };
            params.epsilon = 0.125;
            params.dst_dtype = CVC_DTYPE_F32;
            let expected = elements.map(|place, value| {
                let (base, mut scale) = (clamp(&base, place), clamp(&scale, place));
                if deviation {
                    scale = 1.0 / (scale * scale + 0.125).sqrt();
                }
                (f32::from(value) - base) * scale * 1.5 + 0.25
            });
            // SAFETY: a struct and a place for the result.
            let floats =
                new_tensor(|dst| unsafe { cvc_op_normalize_new(stream.0, src.0, &params, dst) });
            assert_eq!(
                floats.take::<f32>(&stream),
                expected.data,
                "{layout} {deviation}"
            );
            let expected = expected.map(|_, value| value.round_ties_even() as i16);
            let copy = Tensor::of(&stream, layout, shape, CVC_DTYPE_S16, &elements.data);
            // SAFETY: handles and a struct.
            ok(unsafe { cvc_op_normalize(stream.0, copy.0, copy.0, &params) });
            assert_eq!(
                copy.take::<i16>(&stream),
                expected.data,
                "{layout} {deviation} in place"
            );
        }
    }
}

#[test]
fn reformat_reorders_channels_and_copies_to_other_strides() {
    let stream = Stream::new();
    let cases: [(&str, &str, &[i64]); 8] = [
        ("NHWC", "NCHW", &[2, 5, 7, 3]),
        ("NCHW", "NHWC", &[2, 9, 5, 7]),
        ("HWC", "CHW", &[5, 7, 4]),
        ("CHW", "HWC", &[2, 5, 7]),
        ("NWC", "NCW", &[3, 7, 2]),
        ("CW", "WC", &[6, 7]),
        ("NHWC", "NHWC", &[2, 5, 7, 3]),
        ("NHW", "NHW", &[2, 5, 7]),
    ];
    for (from, to, shape) in cases {
        let mut next = noise(7);
        let elements = Elements::make(from, shape, |i| next(i) as u32);
        let expected = elements.in_layout(to);
        let src = Tensor::of(&stream, from, shape, CVC_DTYPE_U32, &elements.data);
        let layout = text(to);
        // SAFETY: a text and a place for the result.
        let made =
            new_tensor(|dst| unsafe { cvc_op_reformat_new(stream.0, src.0, layout.as_ptr(), dst) });
        assert_eq!(
            (made.layout().as_str(), made.shape()),
            (to, expected.shape.clone())
        );
        assert_eq!(made.take::<u32>(&stream), expected.data, "{from} to {to}");
        let packed = Tensor::on(0, to, &expected.shape, CVC_DTYPE_U32, 1);
        // SAFETY: handles alone.
        ok(unsafe { cvc_op_reformat(stream.0, src.0, packed.0) });
        assert_eq!(
            packed.take::<u32>(&stream),
            expected.data,
            "{from} to {to} packed"
        );
    }
    let src = Tensor::of(&stream, "HW", &[2, 2], CVC_DTYPE_U8, &[1u8, 2, 3, 4]);
    // SAFETY: handles alone.
    ok(unsafe { cvc_op_reformat(stream.0, src.0, src.0) });
    assert_eq!(src.take::<u8>(&stream), [1, 2, 3, 4]);
}

#[test]
fn pillow_resize_weighs_pixels_in_every_layout() {
    let stream = Stream::new();
    for (layout, shape) in LAYOUTS
        .into_iter()
        .filter(|(layout, _)| layout.contains('H'))
    {
        let elements = noise_bytes(layout, shape, 8).map(|_, value| f32::from(value));
        let src = Tensor::of(&stream, layout, shape, CVC_DTYPE_F32, &elements.data);
        let bytes = noise_bytes(layout, shape, 8).data;
        let byte_src = Tensor::of(&stream, layout, shape, CVC_DTYPE_U8, &bytes);
        for (height, width) in [(3, 11), (13, 2), (5, 7), (1, 1)] {
            let wanted = resized(&elements.map(|_, value| f64::from(value)), height, width);
            let (rows, columns) = (height as i64, width as i64);
            let resize = |src: &Tensor| {
                // SAFETY: a place for the result.
                new_tensor(|dst| unsafe {
                    cvc_op_pillow_resize_new(
                        stream.0,
                        src.0,
                        rows,
                        columns,
                        CVC_FILTER_LINEAR,
                        0,
                        dst,
                    )
                })
            };
            let floats = resize(&src);
            assert_eq!(
                (floats.layout().as_str(), floats.shape()),
                (layout, wanted.shape.clone())
            );
            for (got, wanted) in floats.take::<f32>(&stream).iter().zip(&wanted.data) {
                assert!(
                    (f64::from(*got) - wanted).abs() < 1e-3,
                    "{layout}: {got}, not {wanted}"
                );
            }
            let packed = Tensor::on(0, layout, &wanted.shape, CVC_DTYPE_U8, 1);
            // SAFETY: handles alone.
            ok(unsafe {
                cvc_op_pillow_resize(stream.0, byte_src.0, packed.0, CVC_FILTER_LINEAR, 0)
            });
            for (got, wanted) in packed.take::<u8>(&stream).iter().zip(&wanted.data) {
                assert!(
                    (f64::from(*got) - wanted).abs() <= 1.01,
                    "{layout}: {got}, not {wanted}"
                );
            }
        }
    }
}

#[test]
fn views_of_images_are_tensors_like_others() {
    let stream = Stream::new();
    for (format, layout, shape) in [
        (CVC_FORMAT_RGB8, "NHWC", [1, 5, 7, 3]),
        (CVC_FORMAT_RGB8P, "NCHW", [1, 3, 5, 7]),
    ] {
        let elements = noise_bytes(layout, &shape, 9);
        let image = Image::new(format, 7, 5);
        let view = image.tensor();
        view.put(&stream, &elements.data);
        // SAFETY: a place for the result.
        let flipped = new_tensor(|dst| unsafe { cvc_op_flip_new(stream.0, view.0, 1, dst) });
        assert_eq!(
            flipped.take::<u8>(&stream),
            elements.flipped(false, true).data
        );
    }
}
