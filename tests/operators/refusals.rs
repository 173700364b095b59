//! What operators refuse, with which status and words; nothing is changed then.

use cvc::ffi::*;

use super::library::*;

fn nhwc(shape: [i64; 4], dtype: u32) -> Tensor {
    Tensor::new("NHWC", &shape, dtype)
}

#[test]
fn layouts() {
    let stream = Stream::new();
    let bare = Tensor::new("", &[4, 5, 3], CVC_DTYPE_U8);
    let depth = Tensor::new("DHWC", &[2, 4, 5, 3], CVC_DTYPE_U8);
    let rows = Tensor::new("NC", &[2, 4], CVC_DTYPE_U8);
    let last = Tensor::new("HWC", &[4, 4, 4], CVC_DTYPE_U8);
    let first = Tensor::new("CHW", &[4, 4, 4], CVC_DTYPE_U8);
    let planes = Tensor::new("CHW", &[3, 4, 4], CVC_DTYPE_U8 | 1 << 8);
    let flat = Tensor::new("WC", &[4, 3], CVC_DTYPE_U8);
    // SAFETY: handles and places for results.
    unsafe {
        for (tensor, words) in [
            (&bare, &["src", "no layout", "HWC"][..]),
            (&depth, &["src", "DHWC", "N, C, H and W"]),
            (&rows, &["src", "NC", "a W"]),
        ] {
            let status = CVC_STATUS_INVALID_LAYOUT;
            refused_new(
                |dst| cvc_op_flip_new(stream.0, tensor.0, 0, dst),
                status,
                words,
            );
            let resize = |dst| cvc_op_pillow_resize_new(stream.0, tensor.0, 2, 2, 1, 0, dst);
            refused_new(resize, status, words);
            let convert = |dst| cvc_op_convert_to_new(stream.0, tensor.0, 1, 1.0, 0.0, 0, dst);
            refused_new(convert, status, words);
            let params = normalize_params(&[0.0], &[1.0]);
            refused_new(
                |dst| cvc_op_normalize_new(stream.0, tensor.0, &params, dst),
                status,
                words,
            );
            let layout = text("HWC");
            let reformat = |dst| cvc_op_reformat_new(stream.0, tensor.0, layout.as_ptr(), dst);
            refused_new(reformat, status, words);
        }
        let words = ["dst", "CHW", "HWC"];
        refused(
            cvc_op_flip(stream.0, last.0, first.0, 0),
            CVC_STATUS_INVALID_LAYOUT,
            &words,
        );
        let resize = cvc_op_pillow_resize(stream.0, last.0, first.0, CVC_FILTER_BOX, 0);
        refused(resize, CVC_STATUS_INVALID_LAYOUT, &words);
        refused_new(
            |dst| cvc_op_flip_new(stream.0, planes.0, 0, dst),
            CVC_STATUS_NOT_SUPPORTED,
            &["src", "3 planes", "2U8"],
        );
        refused_new(
            |dst| cvc_op_pillow_resize_new(stream.0, flat.0, 1, 2, CVC_FILTER_BOX, 0, dst),
            CVC_STATUS_INVALID_LAYOUT,
            &["src", "WC"],
        );
        for layout in ["NCHW", "HW", "WHC", ""] {
            let layout = text(layout);
            refused_new(
                |dst| cvc_op_reformat_new(stream.0, last.0, layout.as_ptr(), dst),
                CVC_STATUS_INVALID_LAYOUT,
                &["layout", "CHW"],
            );
        }
    }
}

#[test]
fn channels() {
    let stream = Stream::new();
    let five = nhwc([1, 2, 2, 5], CVC_DTYPE_U8);
    // SAFETY: places for results.
    unsafe {
        let words = ["src", "5 channels"];
        let status = CVC_STATUS_INVALID_SHAPE;
        let flip = |dst| cvc_op_flip_new(stream.0, five.0, 0, dst);
        refused_new(flip, status, &words);
        let resize = |dst| cvc_op_pillow_resize_new(stream.0, five.0, 2, 2, 1, 0, dst);
        refused_new(resize, status, &words);
        let convert = |dst| cvc_op_convert_to_new(stream.0, five.0, 1, 1.0, 0.0, 0, dst);
        refused_new(convert, status, &words);
        let layout = text("NCHW");
        new_tensor(|dst| cvc_op_reformat_new(stream.0, five.0, layout.as_ptr(), dst));
    }
}

#[test]
fn devices() {
    let (stream, elsewhere) = (Stream::new(), Stream::on(1));
    let src = nhwc([1, 4, 4, 1], CVC_DTYPE_F32);
    let other = Tensor::on(1, "NHWC", &[1, 4, 4, 1], CVC_DTYPE_F32, 0);
    let one = Tensor::on(1, "NHWC", &[1, 1, 1, 1], CVC_DTYPE_F32, 0);
    let status = CVC_STATUS_DEVICE_MISMATCH;
    let words = ["dst", "device 1", "device 0"];
    let mut params = normalize_params(&[0.0], &[1.0]);
    // SAFETY: handles, structs and places for results.
    unsafe {
        refused(cvc_op_flip(stream.0, src.0, other.0, 0), status, &words);
        refused(
            cvc_op_convert_to(stream.0, src.0, other.0, 1.0, 0.0, 0),
            status,
            &words,
        );
        refused(
            cvc_op_normalize(stream.0, src.0, other.0, &params),
            status,
            &words,
        );
        refused(cvc_op_reformat(stream.0, src.0, other.0), status, &words);
        refused(
            cvc_op_pillow_resize(stream.0, src.0, other.0, 1, 0),
            status,
            &words,
        );
        refused(
            cvc_op_flip(elsewhere.0, src.0, src.0, 0),
            status,
            &["stream", "device 1"],
        );
        refused_new(
            |dst| cvc_op_flip_new(elsewhere.0, src.0, 0, dst),
            status,
            &["stream"],
        );
        params.scale = one.0;
        let words = ["params.scale", "device 1", "device 0"];
        refused_new(
            |dst| cvc_op_normalize_new(stream.0, src.0, &params, dst),
            status,
            &words,
        );
    }
}

#[test]
fn memory_that_overlaps_in_part() {
    let stream = Stream::new();
    let mut memory = vec![7u8; 4096];
    let start = memory.as_mut_ptr();
    let at = |offset: usize, strides: [i64; 3]| {
        Tensor::around(
            start.wrapping_add(offset),
            "HWC",
            &[8, 8, 3],
            &strides,
            CVC_DTYPE_U8,
        )
    };
    let src = at(0, [24, 3, 1]);
    let status = CVC_STATUS_INVALID_ARGUMENT;
    let words = ["dst", "overlaps src"];
    let params = normalize_params(&[0.0], &[1.0]);
    for dst in [at(3, [24, 3, 1]), at(0, [48, 3, 1]), at(191, [24, 3, 1])] {
        // SAFETY: handles and structs.
        unsafe {
            refused(cvc_op_flip(stream.0, src.0, dst.0, 1), status, &words);
            refused(cvc_op_flip(stream.0, dst.0, src.0, 1), status, &words);
            refused(
                cvc_op_convert_to(stream.0, src.0, dst.0, 2.0, 0.0, 0),
                status,
                &words,
            );
            refused(
                cvc_op_normalize(stream.0, src.0, dst.0, &params),
                status,
                &words,
            );
            refused(cvc_op_reformat(stream.0, src.0, dst.0), status, &words);
            refused(
                cvc_op_pillow_resize(stream.0, src.0, dst.0, 1, 0),
                status,
                &words,
            );
        }
    }
    let behind = at(192, [24, 3, 1]);
    let wide = Tensor::around(start, "HWC", &[8, 8, 3], &[96, 12, 4], CVC_DTYPE_F32);
    let turned = Tensor::around(start, "CHW", &[3, 8, 8], &[64, 8, 1], CVC_DTYPE_U8);
    // SAFETY: handles alone.
    unsafe {
        // Resizing, reordering and growing elements cannot work in place.
        refused(
            cvc_op_pillow_resize(stream.0, src.0, src.0, 1, 0),
            status,
            &words,
        );
        refused(cvc_op_reformat(stream.0, src.0, turned.0), status, &words);
        refused(
            cvc_op_convert_to(stream.0, src.0, wide.0, 1.0, 0.0, 0),
            status,
            &words,
        );
        // Memory that begins where the other ends is no overlap.
        ok(cvc_op_flip(stream.0, src.0, behind.0, 1));
    }
    let base = Tensor::around(start, "HWC", &[1, 1, 1], &[4, 4, 4], CVC_DTYPE_F32);
    let values = Tensor::new("HWC", &[8, 8, 3], CVC_DTYPE_F32);
    let mut params = normalize_params(&[], &[1.0]);
    params.base = base.0;
    // SAFETY: handles and a struct.
    let status_of = unsafe { cvc_op_normalize(stream.0, values.0, wide.0, &params) };
    refused(status_of, status, &["dst", "overlaps params.base"]);
    stream.finish();
    drop((src, behind, wide, turned, base));
    assert!(memory.iter().all(|&byte| byte == 7));
}

#[test]
fn dtypes() {
    let stream = Stream::new();
    let src = nhwc([1, 4, 4, 2], CVC_DTYPE_U8);
    let words = nhwc([1, 4, 4, 2], CVC_DTYPE_U32);
    let complex = nhwc([1, 4, 4, 2], CVC_DTYPE_C64);
    let vectors = Tensor::new("NHW", &[1, 4, 4], CVC_DTYPE_U8 | 1 << 8);
    let scalars = Tensor::new("NHW", &[1, 4, 4], CVC_DTYPE_F32);
    let mut params = normalize_params(&[0.0], &[1.0]);
    let (unsupported, mismatch) = (CVC_STATUS_NOT_SUPPORTED, CVC_STATUS_DTYPE_MISMATCH);
    // SAFETY: handles, structs and places for results.
    unsafe {
        refused(
            cvc_op_flip(stream.0, src.0, words.0, 0),
            mismatch,
            &["dst", "U32", "U8"],
        );
        refused(
            cvc_op_reformat(stream.0, src.0, words.0),
            mismatch,
            &["dst", "U32", "U8"],
        );
        refused(
            cvc_op_convert_to(stream.0, complex.0, src.0, 1.0, 0.0, 0),
            unsupported,
            &["src", "C64"],
        );
        refused(
            cvc_op_convert_to(stream.0, vectors.0, scalars.0, 1.0, 0.0, 0),
            mismatch,
            &["dst", "F32", "2 lanes"],
        );
        refused_new(
            |dst| cvc_op_convert_to_new(stream.0, src.0, CVC_DTYPE_U8 | 1 << 8, 1.0, 0.0, 0, dst),
            mismatch,
            &["dtype", "2U8", "1 lanes"],
        );
        refused_new(
            |dst| cvc_op_normalize_new(stream.0, words.0, &params, dst),
            unsupported,
            &["src", "U32"],
        );
        refused(
            cvc_op_normalize(stream.0, src.0, words.0, &params),
            unsupported,
            &["dst", "U32"],
        );
        params.dst_dtype = CVC_DTYPE_C64;
        refused_new(
            |dst| cvc_op_normalize_new(stream.0, src.0, &params, dst),
            unsupported,
            &["params.dst_dtype", "C64"],
        );
        refused_new(
            |dst| cvc_op_pillow_resize_new(stream.0, words.0, 2, 2, CVC_FILTER_BOX, 0, dst),
            unsupported,
            &["src", "U32", "NEAREST"],
        );
        new_tensor(|dst| {
            cvc_op_pillow_resize_new(stream.0, words.0, 2, 2, CVC_FILTER_NEAREST, 0, dst)
        });
        let floats = nhwc([1, 4, 4, 4], CVC_DTYPE_F32);
        let alpha = CVC_RESIZE_PREMULTIPLY_ALPHA;
        refused_new(
            |dst| cvc_op_pillow_resize_new(stream.0, floats.0, 2, 2, CVC_FILTER_BOX, alpha, dst),
            unsupported,
            &["PREMULTIPLY_ALPHA", "src", "F32"],
        );
    }
}

#[test]
fn values_and_sizes() {
    let stream = Stream::new();
    let src = nhwc([2, 4, 4, 3], CVC_DTYPE_U8);
    // SAFETY: handles, structs and places for results.
    unsafe {
        for (height, width, words) in [
            (0, 2, ["height", "0"]),
            (2, -1, ["width", "-1"]),
            (2, (1 << 30) + 1, ["width", "1073741825"]),
            (i64::MAX, 2, ["height", "9223372036854775807"]),
        ] {
            refused_new(
                |dst| cvc_op_pillow_resize_new(stream.0, src.0, height, width, 1, 0, dst),
                CVC_STATUS_INVALID_SHAPE,
                &words,
            );
        }
        for (alpha, beta, name) in [(f64::NAN, 0.0, "alpha"), (1.0, f64::NEG_INFINITY, "beta")] {
            refused_new(
                |dst| cvc_op_convert_to_new(stream.0, src.0, CVC_DTYPE_F32, alpha, beta, 0, dst),
                CVC_STATUS_INVALID_VALUE,
                &[name],
            );
        }
        let good = normalize_params(&[1.0, 2.0, 3.0], &[1.0]);
        let refuse = |change: &dyn Fn(&mut cvc_normalize_params_t), status, words: &[&str]| {
            let mut params = good;
            change(&mut params);
            refused_new(
                |dst| cvc_op_normalize_new(stream.0, src.0, &params, dst),
                status,
                words,
            );
            let status_of = cvc_op_normalize(stream.0, src.0, src.0, &params);
            refused(status_of, status, words);
        };
        let invalid = CVC_STATUS_INVALID_VALUE;
        refuse(
            &|p| p.base_values[2] = f32::NAN,
            invalid,
            &["params.base_values[2]", "NaN"],
        );
        refuse(
            &|p| p.scale_values[0] = f32::INFINITY,
            invalid,
            &["params.scale_values[0]", "inf"],
        );
        refuse(
            &|p| p.global_shift = f32::NAN,
            invalid,
            &["params.global_shift"],
        );
        refuse(&|p| p.epsilon = f32::INFINITY, invalid, &["params.epsilon"]);
        let negative = |p: &mut cvc_normalize_params_t| {
            (p.epsilon, p.flags) = (-1.0, CVC_NORMALIZE_SCALE_IS_STDDEV);
        };
        refuse(&negative, invalid, &["params.epsilon", "-1"]);
        let argument = CVC_STATUS_INVALID_ARGUMENT;
        refuse(
            &|p| p.base_count = 2,
            argument,
            &["params.base_count", "2", "3"],
        );
        refuse(
            &|p| p.scale_count = 0,
            argument,
            &["params.scale_count", "0"],
        );
        refuse(
            &|p| p.scale_count = 5,
            argument,
            &["params.scale_count", "5"],
        );
        refuse(
            &|p| p.base_count = -1,
            argument,
            &["params.base_count", "-1"],
        );
        refuse(
            &|p| p.flags = 6,
            CVC_STATUS_INVALID_ENUM,
            &["params.flags", "0x6"],
        );
        let wide = Tensor::new("NHWC", &[1, 1, 1, 2], CVC_DTYPE_F32);
        let halves = Tensor::new("NHWC", &[1, 1, 1, 1], CVC_DTYPE_F16);
        refuse(
            &|p| p.scale = wide.0,
            CVC_STATUS_SHAPE_MISMATCH,
            &["params.scale", "2", "for C"],
        );
        refuse(
            &|p| p.base = halves.0,
            CVC_STATUS_DTYPE_MISMATCH,
            &["params.base", "F16"],
        );
        // Unused entries may be anything.
        let mut params = good;
        params.scale_values[1] = f32::NAN;
        new_tensor(|dst| cvc_op_normalize_new(stream.0, src.0, &params, dst));
    }
}
