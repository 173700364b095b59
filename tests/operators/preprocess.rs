//! Preprocess beside its results: what it refuses, what it leaves behind, in which order it runs.

use cvc::ffi::*;

use super::library::*;

fn nhwc(shape: [i64; 4], dtype: u32) -> Tensor {
    Tensor::new("NHWC", &shape, dtype)
}

type Change<'a> = &'a dyn Fn(&mut cvc_preprocess_params_t);

/// Both forms refuse the parameters so.
#[track_caller]
fn refuse(
    stream: &Stream,
    src: &Tensor,
    dst: &Tensor,
    change: Change,
    status: i32,
    words: &[&str],
) {
    let mut params = preprocess_params();
    params.filter = CVC_FILTER_LINEAR;
    change(&mut params);
    let layout = text(&dst.layout());
    let shape = dst.shape();
    let axis = |label| dst.layout().find(label).map_or(1, |i| shape[i]);
    let (height, width) = (axis('H'), axis('W'));
    // SAFETY: live handles, structs and places for results.
    unsafe {
        refused(
            cvc_op_preprocess(stream.0, src.0, dst.0, &params),
            status,
            words,
        );
        refused_new(
            |out| {
                cvc_op_preprocess_new(
                    stream.0,
                    src.0,
                    &params,
                    height,
                    width,
                    layout.as_ptr(),
                    out,
                )
            },
            status,
            words,
        );
    }
}

#[test]
fn parameters() {
    let stream = Stream::new();
    let src = nhwc([2, 6, 8, 3], CVC_DTYPE_U8);
    let dst = nhwc([2, 4, 4, 3], CVC_DTYPE_U8);
    let refuse = |change: Change, status: i32, words: &[&str]| {
        refuse(&stream, &src, &dst, change, status, words);
    };
    let (unknown, value) = (CVC_STATUS_INVALID_ENUM, CVC_STATUS_INVALID_VALUE);
    refuse(&|p| p.flags = 0x10, unknown, &["params.flags", "0x10"]);
    refuse(&|p| p.flags = 0xc, unknown, &["params.flags", "0xc"]);
    refuse(
        &|p| p.resize_flags = 4,
        unknown,
        &["params.resize_flags", "0x4"],
    );
    refuse(&|p| p.filter = 9, unknown, &["params.filter", "9"]);
    refuse(
        &|p| p.color_matrix = 2,
        unknown,
        &["params.color_matrix", "2"],
    );
    refuse(
        &|p| p.convert_dtype = 77,
        unknown,
        &["params.convert_dtype", "0x4d"],
    );
    let converted = |p: &mut cvc_preprocess_params_t| p.convert_dtype = CVC_DTYPE_U8;
    refuse(
        &|p| {
            converted(p);
            p.round = 3;
        },
        unknown,
        &["params.round", "3"],
    );
    refuse(
        &|p| {
            converted(p);
            p.alpha = f64::NAN;
        },
        value,
        &["params.alpha", "NaN"],
    );
    refuse(
        &|p| {
            converted(p);
            p.beta = f64::INFINITY;
        },
        value,
        &["beta", "inf"],
    );
    let unsupported = CVC_STATUS_NOT_SUPPORTED;
    refuse(&|p| p.filter = CVC_FILTER_AREA, unsupported, &["filter"]);
    refuse(
        &|p| p.convert_dtype = CVC_DTYPE_U8 | 2 << 8,
        unsupported,
        &["params.convert_dtype", "3U8", "one lane"],
    );
    refuse(
        &|p| p.convert_dtype = CVC_DTYPE_C64,
        unsupported,
        &["params.convert_dtype", "C64"],
    );
    refuse(
        &|p| p.resize_flags = CVC_RESIZE_PREMULTIPLY_ALPHA,
        unsupported,
        &[
            "params.resize_flags has CVC_RESIZE_PREMULTIPLY_ALPHA",
            "3 channels",
        ],
    );
    let size = CVC_STATUS_INVALID_STRUCT_SIZE;
    refuse(&|p| p.struct_size = 8, size, &["params.struct_size", "8"]);
    // What a step that is not there would take may be anything.
    let mut params = preprocess_params();
    (params.alpha, params.round, params.flip_code) = (f64::NAN, 9, 77);
    // SAFETY: live handles and a struct.
    unsafe {
        ok(cvc_op_preprocess(stream.0, src.0, dst.0, &params));
        let null = cvc_op_preprocess(stream.0, src.0, dst.0, std::ptr::null());
        refused(null, CVC_STATUS_NULL_POINTER, &["params"]);
    }
}

#[test]
fn crops() {
    let stream = Stream::new();
    let src = nhwc([3, 6, 8, 3], CVC_DTYPE_U8);
    let dst = nhwc([3, 4, 4, 3], CVC_DTYPE_U8);
    let crop = |x, y, width, height| cvc_crop_t {
        x,
        y,
        width,
        height,
    };
    let good = crop(1, 1, 4, 4);
    for (bad, words) in [
        (crop(-1, 0, 2, 2), ["(-1, 0)", "8x6"]),
        (crop(0, 3, 2, 4), ["2x4", "(0, 3)"]),
        (crop(5, 0, 4, 2), ["4x2", "(5, 0)"]),
        (crop(0, 0, 0, 2), ["0x2", "8x6"]),
        (crop(0, 0, 2, -3), ["2x-3", "8x6"]),
        (crop(i32::MAX, 0, i32::MAX, 1), ["2147483647", "8x6"]),
    ] {
        for (list, index) in [(vec![bad], "crops[0]"), (vec![good, good, bad], "crops[2]")] {
            refuse(
                &stream,
                &src,
                &dst,
                &|p| (p.crops, p.crop_count) = (list.as_ptr(), list.len() as i32),
                CVC_STATUS_INVALID_SHAPE,
                &[index, words[0], words[1], "src"],
            );
        }
    }
    let two = [good; 2];
    refuse(
        &stream,
        &src,
        &dst,
        &|p| (p.crops, p.crop_count) = (two.as_ptr(), 2),
        CVC_STATUS_SHAPE_MISMATCH,
        &["params.crop_count", "2", "0, 1 or 3"],
    );
    refuse(
        &stream,
        &src,
        &dst,
        &|p| (p.crops, p.crop_count) = (two.as_ptr(), -1),
        CVC_STATUS_INVALID_ARGUMENT,
        &["params.crop_count", "-1"],
    );
    refuse(
        &stream,
        &src,
        &dst,
        &|p| p.crop_count = 3,
        CVC_STATUS_NULL_POINTER,
        &["params.crops", "3"],
    );
}

#[test]
fn normalize_parameters() {
    let stream = Stream::new();
    let src = nhwc([2, 6, 8, 3], CVC_DTYPE_U8);
    let dst = nhwc([2, 4, 4, 3], CVC_DTYPE_F32);
    let half = nhwc([1, 1, 1, 1], CVC_DTYPE_F16);
    let rows = nhwc([1, 6, 1, 1], CVC_DTYPE_F32);
    let mut good = normalize_params(&[1.0, 2.0, 3.0], &[1.0]);
    good.dst_dtype = CVC_DTYPE_F32;
    let refuse = |change: &dyn Fn(&mut cvc_normalize_params_t), status: i32, words: &[&str]| {
        let mut own = good;
        change(&mut own);
        refuse(&stream, &src, &dst, &|p| p.normalize = &own, status, words);
    };
    let name = "params.normalize.base";
    refuse(
        &|p| p.base_values[1] = f32::NAN,
        CVC_STATUS_INVALID_VALUE,
        &["params.normalize.base_values[1]", "NaN"],
    );
    refuse(
        &|p| p.base_count = 2,
        CVC_STATUS_INVALID_ARGUMENT,
        &["params.normalize.base_count", "2", "3"],
    );
    refuse(
        &|p| p.base = half.0,
        CVC_STATUS_DTYPE_MISMATCH,
        &[name, "F16"],
    );
    refuse(
        &|p| p.base = rows.0,
        CVC_STATUS_SHAPE_MISMATCH,
        &[name, "6 for H", "4", "dst"],
    );
    refuse(
        &|p| p.flags = 2,
        CVC_STATUS_INVALID_ENUM,
        &["params.normalize.flags", "0x2"],
    );
    refuse(
        &|p| p.struct_size = 16,
        CVC_STATUS_INVALID_STRUCT_SIZE,
        &["params.normalize.struct_size", "16"],
    );
    let words = nhwc([2, 4, 4, 3], CVC_DTYPE_U32);
    let mut params = preprocess_params();
    params.normalize = &good;
    let status = unsafe {
        // SAFETY: live handles and a struct.
        cvc_op_preprocess(stream.0, src.0, words.0, &params)
    };
    refused(status, CVC_STATUS_NOT_SUPPORTED, &["dst", "U32"]);
    // The integers that only convert_to takes may not come before it.
    params.convert_dtype = CVC_DTYPE_U32;
    params.alpha = 1.0;
    let status = unsafe {
        // SAFETY: as above.
        cvc_op_preprocess(stream.0, src.0, dst.0, &params)
    };
    refused(
        status,
        CVC_STATUS_NOT_SUPPORTED,
        &["params.convert_dtype", "U32"],
    );
}

#[test]
fn tensors_that_do_not_go_together() {
    let stream = Stream::new();
    let src = nhwc([2, 6, 8, 3], CVC_DTYPE_U8);
    let params = preprocess_params();
    let call = |dst: &Tensor, status: i32, words: &[&str]| {
        // SAFETY: live handles and a struct.
        let found = unsafe { cvc_op_preprocess(stream.0, src.0, dst.0, &params) };
        refused(found, status, words);
    };
    let mismatch = CVC_STATUS_SHAPE_MISMATCH;
    call(
        &nhwc([3, 4, 4, 3], CVC_DTYPE_U8),
        mismatch,
        &["dst", "3 for N", "2"],
    );
    call(
        &nhwc([2, 4, 4, 4], CVC_DTYPE_U8),
        mismatch,
        &["dst", "4 for C", "3"],
    );
    call(
        &nhwc([2, 4, 4, 3], CVC_DTYPE_F32),
        CVC_STATUS_DTYPE_MISMATCH,
        &["dst", "F32", "U8", "src"],
    );
    call(
        &Tensor::new("CNHW", &[3, 2, 4, 4], CVC_DTYPE_U8),
        CVC_STATUS_INVALID_LAYOUT,
        &["dst", "CNHW", "NCHW"],
    );
    call(
        &Tensor::new("", &[3, 2, 4, 4], CVC_DTYPE_U8),
        CVC_STATUS_INVALID_LAYOUT,
        &["dst", "no layout"],
    );
    call(
        &Tensor::on(1, "NHWC", &[2, 4, 4, 3], CVC_DTYPE_U8, 0),
        CVC_STATUS_DEVICE_MISMATCH,
        &["dst", "device 1"],
    );
    call(&src, CVC_STATUS_INVALID_ARGUMENT, &["dst", "overlaps src"]);
    let two = nhwc([2, 6, 8, 2], CVC_DTYPE_U8);
    let small = nhwc([2, 4, 4, 2], CVC_DTYPE_U8);
    refuse(
        &stream,
        &two,
        &small,
        &|p| p.flags = CVC_PREPROCESS_SWAP_CHANNELS,
        CVC_STATUS_NOT_SUPPORTED,
        &["CVC_PREPROCESS_SWAP_CHANNELS", "2 channels"],
    );
    let words = nhwc([2, 6, 8, 3], CVC_DTYPE_U32);
    let result = nhwc([2, 4, 4, 3], CVC_DTYPE_U32);
    let unsupported = CVC_STATUS_NOT_SUPPORTED;
    refuse(
        &stream,
        &words,
        &result,
        &|_| {},
        unsupported,
        &["src", "U32"],
    );
    let five = nhwc([2, 6, 8, 5], CVC_DTYPE_U8);
    let many = nhwc([2, 4, 4, 5], CVC_DTYPE_U8);
    let shape = CVC_STATUS_INVALID_SHAPE;
    refuse(
        &stream,
        &five,
        &many,
        &|_| {},
        shape,
        &["src", "5 channels"],
    );
    let flat = Tensor::new("NWC", &[2, 8, 3], CVC_DTYPE_U8);
    let (target, layout) = (nhwc([2, 4, 4, 3], CVC_DTYPE_U8), CVC_STATUS_INVALID_LAYOUT);
    refuse(
        &stream,
        &flat,
        &target,
        &|_| {},
        layout,
        &["src", "NWC", "H and W"],
    );
    let nothing = nhwc([2, 0, 8, 3], CVC_DTYPE_U8);
    refuse(
        &stream,
        &nothing,
        &target,
        &|_| {},
        shape,
        &["src", "0 for H"],
    );
}

#[test]
fn wanted_results() {
    let stream = Stream::new();
    let src = nhwc([2, 6, 8, 3], CVC_DTYPE_U8);
    let params = preprocess_params();
    for (height, width, layout, status, words) in [
        (0, 4, "NHWC", CVC_STATUS_INVALID_SHAPE, ["height", "0"]),
        (
            4,
            1 << 31,
            "NHWC",
            CVC_STATUS_INVALID_SHAPE,
            ["width", "2147483648"],
        ),
        (
            4,
            4,
            "HWC",
            CVC_STATUS_SHAPE_MISMATCH,
            ["layout", "2 images"],
        ),
        (4, 4, "NHW", CVC_STATUS_INVALID_LAYOUT, ["layout", "NHW"]),
        (4, 4, "", CVC_STATUS_INVALID_LAYOUT, ["layout", "NCHW"]),
    ] {
        let layout = text(layout);
        // SAFETY: a live handle, a struct, a text and a place for the result.
        let call = |dst| unsafe {
            cvc_op_preprocess_new(
                stream.0,
                src.0,
                &params,
                height,
                width,
                layout.as_ptr(),
                dst,
            )
        };
        refused_new(call, status, &words);
    }
    // SAFETY: as above, but for the text.
    let call = |dst| unsafe {
        cvc_op_preprocess_new(stream.0, src.0, &params, 4, 4, std::ptr::null(), dst)
    };
    refused_new(call, CVC_STATUS_NULL_POINTER, &["layout"]);
}

#[test]
fn nv12_of_the_wrong_shape() {
    let stream = Stream::new();
    let dst = nhwc([1, 4, 4, 3], CVC_DTYPE_U8);
    let nv12 = |p: &mut cvc_preprocess_params_t| p.flags = CVC_PREPROCESS_NV12;
    for (shape, words) in [
        ([1, 7, 8, 1], ["7 rows", "3/2"]),
        ([1, 6, 7, 1], ["7 bytes", "even"]),
        ([1, 4, 8, 1], ["4 rows", "NV12"]),
    ] {
        let src = nhwc(shape, CVC_DTYPE_U8);
        refuse(&stream, &src, &dst, &nv12, CVC_STATUS_INVALID_SHAPE, &words);
    }
    let mismatch = CVC_STATUS_DTYPE_MISMATCH;
    for src in [
        nhwc([1, 6, 8, 3], CVC_DTYPE_U8),
        nhwc([1, 6, 8, 1], CVC_DTYPE_U16),
    ] {
        refuse(
            &stream,
            &src,
            &dst,
            &nv12,
            mismatch,
            &["src", "NV12", "channels"],
        );
    }
    let src = nhwc([1, 6, 8, 1], CVC_DTYPE_U8);
    let mut params = preprocess_params();
    nv12(&mut params);
    let one = nhwc([1, 4, 4, 1], CVC_DTYPE_U8);
    // SAFETY: live handles and a struct.
    let status = unsafe { cvc_op_preprocess(stream.0, src.0, one.0, &params) };
    refused(status, CVC_STATUS_SHAPE_MISMATCH, &["dst", "1 for C", "3"]);
    let crop = cvc_crop_t {
        x: 0,
        y: 2,
        width: 2,
        height: 3,
    };
    let cropped = |p: &mut cvc_preprocess_params_t| {
        nv12(p);
        (p.crops, p.crop_count) = (&crop, 1);
    };
    // The rows of chroma are no pixels.
    refuse(
        &stream,
        &src,
        &dst,
        &cropped,
        CVC_STATUS_INVALID_SHAPE,
        &["crops[0]", "8x4"],
    );
}

#[test]
fn batches_that_do_not_go_together() {
    let stream = Stream::new();
    let (rgb, rgba) = (
        Image::new(CVC_FORMAT_RGB8, 8, 6),
        Image::new(CVC_FORMAT_RGBA8, 8, 6),
    );
    let (floats, packed) = (
        Image::new(CVC_FORMAT_RGBF32, 5, 5),
        Image::new(CVC_FORMAT_YUYV, 8, 6),
    );
    let layout = text("NHWC");
    let refuse = |images: &[&Image], change: Change, status: i32, words: &[&str]| {
        let batch = Batch::of(4, images);
        let mut params = preprocess_params();
        change(&mut params);
        // SAFETY: a live handle, a struct, a text and a place for the result.
        let call = |dst| unsafe {
            cvc_op_preprocess_var_shape_new(stream.0, batch.0, &params, 4, 4, layout.as_ptr(), dst)
        };
        refused_new(call, status, words);
    };
    let words = ["src[1]", "4 channels", "src[0]"];
    refuse(&[&rgb, &rgba], &|_| {}, CVC_STATUS_SHAPE_MISMATCH, &words);
    let words = ["src[1]", "F32", "U8", "src[0]"];
    refuse(&[&rgb, &floats], &|_| {}, CVC_STATUS_DTYPE_MISMATCH, &words);
    let words = ["src[1]", "YUYV", "NV12"];
    refuse(&[&rgb, &packed], &|_| {}, CVC_STATUS_NOT_SUPPORTED, &words);
    let nv12 = |p: &mut cvc_preprocess_params_t| p.flags = CVC_PREPROCESS_NV12;
    refuse(
        &[&rgb],
        &nv12,
        CVC_STATUS_INVALID_ENUM,
        &["params.flags", "0x4"],
    );
    let crop = cvc_crop_t {
        x: 0,
        y: 0,
        width: 6,
        height: 6,
    };
    let cropped = |p: &mut cvc_preprocess_params_t| (p.crops, p.crop_count) = (&crop, 1);
    let words = ["crops[0]", "6x6", "src[1]", "5x5"];
    refuse(
        &[&floats, &floats],
        &cropped,
        CVC_STATUS_INVALID_SHAPE,
        &["crops[0]", "src[0]"],
    );
    refuse(&[&rgb, &floats], &cropped, CVC_STATUS_INVALID_SHAPE, &words);
    let batch = Batch::of(1, &[&rgb]);
    let inside = rgb.tensor();
    // SAFETY: live handles and a struct.
    let status =
        unsafe { cvc_op_preprocess_var_shape(stream.0, batch.0, inside.0, &preprocess_params()) };
    refused(
        status,
        CVC_STATUS_INVALID_ARGUMENT,
        &["dst", "overlaps src[0]"],
    );
}

#[test]
fn nothing_to_do() {
    let stream = Stream::new();
    let layout = text("NCHW");
    let params = preprocess_params();
    let empty = Batch::of(4, &[]);
    let none = nhwc([0, 6, 8, 3], CVC_DTYPE_U8);
    // SAFETY: live handles, structs, a text and places for results.
    unsafe {
        let made = new_tensor(|dst| {
            cvc_op_preprocess_var_shape_new(stream.0, empty.0, &params, 4, 5, layout.as_ptr(), dst)
        });
        assert_eq!(made.shape(), [0, 3, 4, 5]);
        ok(cvc_op_preprocess_var_shape(
            stream.0, empty.0, made.0, &params,
        ));
        let made = new_tensor(|dst| {
            cvc_op_preprocess_new(stream.0, none.0, &params, 4, 5, layout.as_ptr(), dst)
        });
        assert_eq!(made.shape(), [0, 3, 4, 5]);
        ok(cvc_op_preprocess(stream.0, none.0, made.0, &params));
        let one = nhwc([1, 4, 4, 3], CVC_DTYPE_U8);
        let status = cvc_op_preprocess_var_shape(stream.0, empty.0, one.0, &params);
        refused(status, CVC_STATUS_SHAPE_MISMATCH, &["dst", "1 for N", "0"]);
    }
}

/// Memory between the steps is pending until they have run, and is taken again by the next call.
#[test]
fn the_memory_between_steps_is_used_again() {
    let stream = Stream::new();
    let src = nhwc([2, 30, 40, 1], CVC_DTYPE_U8);
    src.put(&stream, &[100u8; 2 * 30 * 40]);
    let dst = nhwc([2, 7, 9, 3], CVC_DTYPE_F32);
    let own = normalize_params(&[1.0], &[2.0]);
    let mut params = preprocess_params();
    (params.flags, params.filter) = (CVC_PREPROCESS_NV12, CVC_FILTER_CUBIC);
    (params.convert_dtype, params.alpha) = (CVC_DTYPE_F32, 1.0);
    params.normalize = &own;
    let held = stream.hold();
    // SAFETY: live handles and a struct.
    let call = || ok(unsafe { cvc_op_preprocess(stream.0, src.0, dst.0, &params) });
    call();
    let before = entries();
    for _ in 0..10 {
        call();
    }
    assert_eq!(entries(), before);
    // Work on another stream waits for the result.
    let other = Stream::new();
    let copy = Tensor::new("NHWC", &[2, 7, 9, 3], CVC_DTYPE_F32);
    // SAFETY: live handles.
    ok(unsafe { cvc_op_flip(other.0, dst.0, copy.0, 0) });
    assert!(other.is_held());
    held.open();
    let values: Vec<f32> = copy.take(&other);
    // The frames have one colour.
    assert!(values.chunks(3).all(|pixel| pixel == &values[..3]));
    assert!(values[..3].iter().all(|&value| value != 0.0));
    stream.finish();
}

/// Of several pieces of memory between the steps none is free before all have run.
#[test]
fn memory_between_steps_is_not_another_streams() {
    let (stream, other) = (Stream::new(), Stream::new());
    let src = nhwc([1, 30, 40, 3], CVC_DTYPE_U8);
    src.put(&stream, &[100u8; 30 * 40 * 3]);
    let dsts = [(); 2].map(|()| nhwc([1, 7, 9, 3], CVC_DTYPE_F64));
    let own = normalize_params(&[1.0], &[2.0]);
    let mut params = preprocess_params();
    (params.convert_dtype, params.alpha) = (CVC_DTYPE_F32, 1.0);
    (params.filter, params.normalize) = (CVC_FILTER_NEAREST, &own);
    stream.finish();
    let before = entries();
    let held = stream.hold();
    // SAFETY: live handles and a struct.
    ok(unsafe { cvc_op_preprocess(stream.0, src.0, dsts[0].0, &params) });
    let pieces = entries() - before;
    assert!(pieces >= 2, "{pieces} pieces");
    // SAFETY: live handles and a struct.
    ok(unsafe { cvc_op_preprocess(other.0, src.0, dsts[1].0, &params) });
    assert_eq!(entries(), before + 2 * pieces);
    held.open();
    other.finish();
    stream.finish();
}

/// One kernel does it all where elements have at most 4 bytes: nothing lies between its steps.
#[test]
fn a_single_pass_takes_no_memory() {
    let stream = Stream::new();
    let src = nhwc([2, 60, 80, 3], CVC_DTYPE_U8);
    src.put(&stream, &[7u8; 2 * 60 * 80 * 3]);
    let own = normalize_params(&[0.5], &[2.0]);
    for (dtype, is_one_pass) in [(CVC_DTYPE_F32, true), (CVC_DTYPE_F64, false)] {
        let dst = Tensor::new("NCHW", &[2, 3, 20, 24], dtype);
        let mut params = preprocess_params();
        params.flags = CVC_PREPROCESS_FLIP | CVC_PREPROCESS_SWAP_CHANNELS;
        (params.filter, params.flip_code) = (CVC_FILTER_LINEAR, 1);
        (params.convert_dtype, params.alpha) = (CVC_DTYPE_F32, 0.5);
        params.normalize = &own;
        let before = entries();
        // SAFETY: live handles and a struct.
        ok(unsafe { cvc_op_preprocess(stream.0, src.0, dst.0, &params) });
        assert_eq!(entries() == before, is_one_pass);
        stream.finish();
    }
}

/// Rows of so many samples are beyond the single pass, and take the steps one by one.
#[test]
fn the_widest_rows() {
    let stream = Stream::new();
    for width in [87_380i64, 87_382] {
        let src = nhwc([1, 4, width / 2, 3], CVC_DTYPE_U8);
        let data: Vec<u8> = (0..4 * width / 2 * 3).map(|i| (i % 251) as u8).collect();
        src.put(&stream, &data);
        let dst = Tensor::new("NCHW", &[1, 3, 8, width], CVC_DTYPE_F32);
        let mut params = preprocess_params();
        params.filter = CVC_FILTER_LINEAR;
        (params.convert_dtype, params.alpha) = (CVC_DTYPE_F32, 0.5);
        // SAFETY: live handles and a struct.
        ok(unsafe { cvc_op_preprocess(stream.0, src.0, dst.0, &params) });
        let values: Vec<f32> = dst.take(&stream);
        // The corners are those of the source.
        assert_eq!(values[0], f32::from(data[0]) * 0.5);
        let last = values.len() - 1;
        assert_eq!(values[last], f32::from(data[data.len() - 1]) * 0.5);
    }
}
