//! Chains of preprocess on NV12, against equations that are written down here once more.

use cvc::ffi::*;

use super::library::*;
use super::models::*;
use super::preprocess_chains::*;

/// One pixel of R, G and B, out of luma, Cb and Cr: the equations of BT.601 and BT.709 with coefficients of 20 fraction
/// bits.
fn rgb_of([luma, cb, cr]: [u8; 3], matrix: i32, full: bool) -> [u64; 3] {
    let (kr, kb): (f64, f64) = match matrix {
        CVC_COLOR_MATRIX_BT601 => (0.299, 0.114),
        _ => (0.2126, 0.0722),
    };
    let (black, luma_range, chroma_range) = match full {
        true => (0, 255.0, 255.0),
        false => (16, 219.0, 224.0),
    };
    let weight = |x: f64, range: f64| (x * 255.0 / range * 1048576.0).round() as i64;
    let grey = (i64::from(luma) - black) * weight(1.0, luma_range);
    let (b, r) = (i64::from(cb) - 128, i64::from(cr) - 128);
    let kg = 1.0 - kr - kb;
    let sums = [
        grey + r * weight(2.0 - 2.0 * kr, chroma_range),
        grey - b * weight(2.0 * (1.0 - kb) * kb / kg, chroma_range)
            - r * weight(2.0 * (1.0 - kr) * kr / kg, chroma_range),
        grey + b * weight(2.0 - 2.0 * kb, chroma_range),
    ];
    sums.map(|sum| ((sum + (1 << 19)) >> 20).clamp(0, 255) as u64)
}

/// Planes of luma and of pairs of chroma, full of noise, and the picture that they are.
struct Frame {
    luma: Vec<u8>,
    chroma: Vec<u8>,
    picture: Picture,
}

impl Frame {
    fn new(
        (height, width): (usize, usize),
        matrix: i32,
        full: bool,
        cr_first: bool,
        seed: u64,
    ) -> Frame {
        let mut next = noise(seed);
        let luma: Vec<u8> = (0..height * width).map(|i| next(i) as u8).collect();
        let pairs = width.div_ceil(2);
        let chroma: Vec<u8> = (0..height.div_ceil(2) * pairs * 2)
            .map(|i| next(i + 100_000) as u8)
            .collect();
        let shape = [height as i64, width as i64, 3];
        let bits = Elements::by_place("HWC", &shape, |[_, c, h, w]| {
            let at = ((h / 2) * pairs + w / 2) * 2;
            let (cb, cr) = match cr_first {
                false => (chroma[at], chroma[at + 1]),
                true => (chroma[at + 1], chroma[at]),
            };
            rgb_of([luma[h * width + w], cb, cr], matrix, full)[c]
        });
        let dtype = CVC_DTYPE_U8;
        let picture = Picture { dtype, bits };
        Frame {
            luma,
            chroma,
            picture,
        }
    }
}

#[test]
fn nv12_tensors() {
    let stream = Stream::new();
    let mut random = Random::new(500);
    for case in 0..100 {
        let images = 1 + random.below(3);
        let size = (2 * (1 + random.below(12)), 2 * (1 + random.below(12)));
        let full = random.chance();
        let mut chain = Chain::random(&mut random, &vec![size; images], 3);
        chain.more_flags = match full {
            true => CVC_PREPROCESS_NV12_FULL_RANGE,
            false => CVC_PREPROCESS_NV12,
        };
        let frames: Vec<Frame> = (0..images)
            .map(|i| Frame::new(size, chain.color_matrix, full, false, 10 * case + i as u64))
            .collect();
        let bytes: Vec<u8> = frames
            .iter()
            .flat_map(|frame| [&frame.luma[..], &frame.chroma].concat())
            .collect();
        let (rows, width) = ((size.0 / 2 * 3) as i64, size.1 as i64);
        let layout = match images {
            1 => random.pick(&["NHWC", "HW", "CHW"]),
            _ => "NHWC",
        };
        let extent = |label| match label {
            'N' => images as i64,
            'C' => 1,
            'H' => rows,
            _ => width,
        };
        let shape: Vec<i64> = layout.chars().map(extent).collect();
        let src = Tensor::of(&stream, layout, &shape, CVC_DTYPE_U8, &bytes);
        let pictures: Vec<Picture> = frames.into_iter().map(|frame| frame.picture).collect();
        let to = random.pick(&["NHWC", "NCHW"]);
        // SAFETY: live handles, structs and places for results.
        check(
            &stream,
            &chain,
            &pictures,
            to,
            |dst, params| unsafe { cvc_op_preprocess(stream.0, src.0, dst, params) },
            |params, height, width, text, dst| unsafe {
                cvc_op_preprocess_new(stream.0, src.0, params, height, width, text, dst)
            },
        );
    }
}

#[test]
fn nv12_images_of_odd_sizes() {
    let stream = Stream::new();
    let mut random = Random::new(700);
    for case in 0..100 {
        let count = 1 + random.below(4);
        let sizes: Vec<(usize, usize)> = (0..count)
            .map(|_| (1 + random.below(24), 1 + random.below(24)))
            .collect();
        let chain = Chain::random(&mut random, &sizes, 3);
        let mut pictures = Vec::new();
        let mut images = Vec::new();
        let mut memory = Vec::new();
        for (i, &size) in sizes.iter().enumerate() {
            let (format, full, cr_first) = random.pick(&[
                (CVC_FORMAT_NV12, false, false),
                (CVC_FORMAT_NV12_ER, true, false),
                (CVC_FORMAT_NV21, false, true),
                (CVC_FORMAT_NV21_ER, true, true),
                (CVC_FORMAT_RGB8, false, false),
            ]);
            let seed = 10 * case + i as u64;
            let (height, width) = (size.0 as i32, size.1 as i32);
            if format == CVC_FORMAT_RGB8 {
                let picture = Picture::noise(CVC_DTYPE_U8, [size.0, size.1, 3], seed);
                images.push(image_of(&stream, &picture, format, false).0);
                pictures.push(picture);
                continue;
            }
            let mut frame = Frame::new(size, chain.color_matrix, full, cr_first, seed);
            let pairs = (width + 1) / 2;
            images.push(Image::around_planes(
                format,
                width,
                height,
                &[
                    (frame.luma.as_mut_ptr(), i64::from(width), width, height),
                    (
                        frame.chroma.as_mut_ptr(),
                        i64::from(2 * pairs),
                        pairs,
                        (height + 1) / 2,
                    ),
                ],
            ));
            memory.push((frame.luma, frame.chroma));
            pictures.push(frame.picture);
        }
        let batch = Batch::of(8, &images.iter().collect::<Vec<_>>());
        let to = random.pick(&["NHWC", "NCHW"]);
        // SAFETY: live handles, structs and places for results.
        check(
            &stream,
            &chain,
            &pictures,
            to,
            |dst, params| unsafe { cvc_op_preprocess_var_shape(stream.0, batch.0, dst, params) },
            |params, height, width, text, dst| unsafe {
                cvc_op_preprocess_var_shape_new(stream.0, batch.0, params, height, width, text, dst)
            },
        );
        stream.finish();
        drop((batch, images, memory));
    }
}
