//! Tests of tensor descriptors against known figures and against walking every element.

use super::random::{all_bytes_differ, offsets, Random};
use super::*;

fn tensor(shape: &[i64], dtype: Dtype, layout: &str, row: i64, base: i64) -> TensorDesc {
    let layout = Layout::parse(layout).expect(layout);
    TensorDesc::compute(0, shape, dtype, layout, row, base).expect("a valid tensor")
}

fn assert_error(result: Result<TensorDesc>, status: Status, start: &str) {
    let error = result.expect_err(start);
    assert_eq!(error.status, status, "{error}");
    assert!(error.message.starts_with(start), "{error}");
    assert!(error.message.contains("expected "), "{error}");
}

#[test]
fn charges_that_are_known() {
    let hwc = tensor(&[10, 10, 3], Dtype::U8, "HWC", 0, 0);
    assert_eq!(hwc.strides(), [32, 3, 1]);
    assert_eq!((hwc.nbytes, hwc.base_align), (512, 512));
    let nbytes = |shape: &[i64], dtype, layout| tensor(shape, dtype, layout, 0, 0).nbytes;
    assert_eq!(nbytes(&[16, 32, 4], Dtype::F32, "HWC"), 8192);
    assert_eq!(nbytes(&[4, 64, 4], Dtype::F32, "HWC"), 4096);
    assert_eq!(nbytes(&[480, 640, 3], Dtype::U8, ""), 9_830_400);
    assert_eq!(nbytes(&[480, 640, 3], Dtype::U8, "HWC"), 921_600);
    assert_eq!(
        tensor(&[480, 640, 3], Dtype::U8, "", 0, 0).strides(),
        [20480, 32, 1]
    );
    assert_eq!(tensor(&[480, 640, 3], Dtype::U8, "", 1, 0).nbytes, 921_600);
    let spec = TensorDesc::from_image_spec(3, 2, 37, 7, Format::RGB8, 1).expect("NHWC");
    assert_eq!(spec.dims(), [2, 7, 37, 3]);
    assert_eq!(spec.strides(), [777, 111, 3, 1]);
    assert_eq!((spec.nbytes, spec.device), (2048, 3));
    assert_eq!(spec.layout, Layout::NHWC);
}

#[test]
fn alignment_rules() {
    let strides = |dtype, row, base| {
        let desc = tensor(&[2, 3, 5], dtype, "CHW", row, base);
        (desc.strides[1], desc.base_align)
    };
    assert_eq!(strides(Dtype::U8, 0, 0), (32, 512));
    assert_eq!(strides(Dtype::F32, 1, 0), (20, 512));
    assert_eq!(strides(Dtype::F32, 2, 1), (20, 4));
    assert_eq!(strides(Dtype::U8, 64, 16), (64, 64));
    assert_eq!(strides(Dtype::U8, 1024, 0), (1024, 1024));
    assert_eq!(strides(Dtype::U8, 1, 1), (5, 1));
    assert_eq!(strides(Dtype::U8, 0, 4096), (32, 4096));
    let wide = Dtype::F64.with_lanes(3).expect("3F64");
    assert_eq!(strides(wide, 0, 0), (128, 512));
    assert_eq!(strides(wide, 1, 0), (120, 512));
    // Neither a vector nor a row of width and channels has a dimension outside to pad.
    assert_eq!(tensor(&[5], Dtype::U8, "W", 64, 1).nbytes, 64);
    assert_eq!(tensor(&[5], Dtype::U8, "W", 64, 1).strides(), [1]);
    assert_eq!(tensor(&[5, 3], Dtype::U8, "WC", 0, 0).strides(), [3, 1]);
    assert_eq!(tensor(&[5, 3], Dtype::U8, "NW", 0, 0).strides(), [32, 1]);
    assert_eq!(tensor(&[1], Dtype::U8, "", 0, 1 << 32).nbytes, 1 << 32);
}

#[test]
fn compute_agrees_with_the_formula() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let shape = random.shape(5, 0, 6);
        let dtype = random.dtype();
        let labels = [
            "", "W", "WC", "HWC", "NHWC", "NDHWC", "NW", "CHW", "NCHW", "NCDHW",
        ];
        let layout = random.pick(&labels);
        let layout = if layout.len() == shape.len() {
            layout
        } else {
            ""
        };
        let (row, base) = (
            random.pick(&[0, 1, 2, 16, 64]),
            random.pick(&[0, 1, 8, 2048]),
        );
        let desc = tensor(&shape, dtype, layout, row, base);

        let element = dtype.bytes() as i64;
        let row_align = match row {
            0 => 32,
            row => row.max(dtype.lane_bytes() as i64),
        };
        let base_align = if base == 0 { 512 } else { base }.max(row_align);
        let row_dims = if layout.ends_with("WC") { 2 } else { 1 };
        let dims: Vec<i64> = shape.iter().map(|&dim| dim.max(1)).collect();
        for i in 0..dims.len() {
            let inside = &dims[i + 1..];
            let expected = if inside.len() < row_dims {
                inside.iter().product::<i64>() * element
            } else {
                let (outer, row) = inside.split_at(inside.len() - row_dims);
                let row_bytes = row.iter().product::<i64>() * element;
                let padded = (row_bytes + row_align - 1) / row_align * row_align;
                outer.iter().product::<i64>() * padded
            };
            assert_eq!(desc.strides[i], expected, "{desc:?}");
        }
        let bytes = desc.strides[0] * shape[0];
        let expected = (bytes + base_align - 1) / base_align * base_align;
        let empty = shape.contains(&0);
        assert_eq!(desc.nbytes as i64, if empty { 0 } else { expected });
        assert_eq!(desc.base_align as i64, base_align);
        assert_eq!(desc.is_empty(), empty);

        let offsets = offsets(desc.dims(), desc.strides());
        assert_eq!(desc.element_count() as usize, offsets.len());
        assert!(all_bytes_differ(&offsets, element));
        let end = offsets.last().map_or(0, |last| last + element);
        assert_eq!(desc.span_bytes() as i64, end);
        assert!(desc.span_bytes() <= desc.nbytes);
        let packed = offsets
            .iter()
            .enumerate()
            .all(|(i, &o)| o == i as i64 * element);
        assert_eq!(desc.is_packed(), packed, "{desc:?}");

        if !empty {
            let wrap = TensorDesc::wrap(0, &shape, desc.strides(), dtype, desc.layout)
                .expect("what is allocated can be wrapped");
            assert!(wrap.exact_match(&desc));
            assert_eq!((wrap.nbytes, wrap.span_bytes()), (0, desc.span_bytes()));
        }
    }
}

#[test]
fn compute_refuses_in_order() {
    let compute = |shape: &[i64], layout, row, base| {
        TensorDesc::compute(0, shape, Dtype::F64, layout, row, base)
    };
    let hwc = Layout::HWC;
    assert_error(
        compute(&[], hwc, 3, 3),
        Status::InvalidRank,
        "desc.rank is 0,",
    );
    assert_error(
        compute(&[-1; 16], hwc, 3, 3),
        Status::InvalidRank,
        "desc.rank is 16, expected 1 to 15",
    );
    assert_error(
        compute(&[4, -1], hwc, 3, 3),
        Status::InvalidShape,
        "desc.shape[1] is -1,",
    );
    assert_error(
        compute(&[i64::MAX, i64::MAX], hwc, 3, 3),
        Status::InvalidLayout,
        "desc.layout is \"HWC\"",
    );
    let huge = [i64::MAX, 1, i64::MAX];
    for row in [3, -1, -8, i64::MIN, 1 << 33] {
        let start = format!("desc.row_align is {row},");
        assert_error(
            compute(&huge, hwc, row, 3),
            Status::InvalidAlignment,
            &start,
        );
        let start = format!("desc.base_align is {row},");
        assert_error(
            compute(&huge, hwc, 0, row),
            Status::InvalidAlignment,
            &start,
        );
    }
    assert_error(
        compute(&huge, hwc, 0, 0),
        Status::Overflow,
        "desc.shape is [9223372036854775807, 1, 9223372036854775807] of dtype F64,",
    );
}

#[test]
fn overflow_is_exactly_where_the_bytes_leave_63_bits() {
    let compute = |shape: &[i64], row, base| {
        TensorDesc::compute(0, shape, Dtype::U8, Layout::NONE, row, base)
    };
    assert_eq!(
        compute(&[i64::MAX], 1, 1).map(|d| d.nbytes),
        Ok(i64::MAX as u64)
    );
    let largest = i64::MAX - 511;
    assert_eq!(
        compute(&[largest - 1], 1, 0).map(|d| d.nbytes),
        Ok(largest as u64)
    );
    for (shape, row, base) in [
        (&[largest + 1][..], 1, 0),
        (&[2, i64::MAX], 0, 1),
        (&[1 << 32, 1 << 31], 1, 1),
        (&[1 << 31, 1 << 31, 2], 1, 1),
        (&[0, 1 << 32, 1 << 31], 1, 1),
    ] {
        assert_error(
            compute(shape, row, base),
            Status::Overflow,
            "desc.shape is [",
        );
    }
    let last = compute(&[(1 << 31) - 1, 1 << 32], 1, 1).expect("fits");
    assert_eq!(last.span_bytes(), last.nbytes);
}

#[test]
fn every_rank_up_to_15_is_taken() {
    for rank in 1..=MAX_RANK {
        let desc = tensor(&[2; MAX_RANK][..rank], Dtype::U8, "", 1, 0);
        assert_eq!(desc.strides[0], 1 << (rank - 1));
        assert_eq!(desc.shape[rank..].iter().sum::<i64>(), 0);
        assert_eq!(desc.strides[rank..].iter().sum::<i64>(), 0);
    }
}

#[test]
fn empty_tensors_have_strides_and_no_bytes() {
    let desc = tensor(&[2, 0, 5, 3], Dtype::F32, "NHWC", 0, 0);
    assert_eq!(desc.strides(), [64, 64, 12, 4]);
    assert_eq!(
        (desc.nbytes, desc.span_bytes(), desc.element_count()),
        (0, 0, 0)
    );
    assert!(desc.is_empty() && desc.is_packed());
}

#[test]
fn formats_make_tensors() {
    let spec = |format| TensorDesc::from_image_spec(0, 2, 5, 4, format, 0);
    for code in 1..=Format::COUNT as u32 {
        let format = Format::from_code(code, "x").expect("a format");
        let info = format.info();
        if !info.is_tensor() {
            assert_error(
                spec(format),
                Status::NotSupported,
                &format!("format is {format},"),
            );
            continue;
        }
        let desc = spec(format).expect("a tensor");
        let channels = i64::from(info.channel_count);
        assert_eq!(desc.dtype, info.planes[0].dtype.lane());
        if info.plane_count == 1 {
            assert_eq!(desc.dims(), [2, 4, 5, channels]);
            assert_eq!(desc.layout, Layout::NHWC);
        } else {
            assert_eq!(desc.dims(), [2, channels, 4, 5]);
            assert_eq!(desc.layout, Layout::NCHW);
        }
    }
    let refused = (1..=Format::COUNT as u32)
        .filter_map(|code| Format::from_code(code, "x").ok())
        .filter(|&format| spec(format).is_err())
        .count();
    assert_eq!(refused, 6 + 6);
    let none = TensorDesc::from_image_spec(0, 0, 5, 4, Format::U8, 0).expect("no image");
    assert_eq!((none.dims(), none.nbytes), (&[0, 4, 5, 1][..], 0));
    let negative = TensorDesc::from_image_spec(0, 1, -5, 4, Format::U8, 0);
    assert_error(negative, Status::InvalidShape, "width is -5,");
    let negative = TensorDesc::from_image_spec(0, -1, 5, 4, Format::NV12, 0);
    assert_error(negative, Status::InvalidShape, "count is -1,");
    let aligned = TensorDesc::from_image_spec(0, 1, 5, 4, Format::U8, 3);
    assert_error(aligned, Status::InvalidAlignment, "desc.row_align is 3,");
}

#[test]
fn wrap_refuses_what_it_names() {
    let wrap = |shape: &[i64], strides: &[i64], layout| {
        TensorDesc::wrap(0, shape, strides, Dtype::F32, layout)
    };
    let none = Layout::NONE;
    let chw = Layout::CHW;
    assert_error(wrap(&[], &[], none), Status::InvalidRank, "data.rank is 0,");
    assert_error(
        wrap(&[1; 16], &[4; 16], none),
        Status::InvalidRank,
        "data.rank is 16,",
    );
    assert_error(
        wrap(&[2, 0], &[4, 4], chw),
        Status::InvalidShape,
        "data.shape[1] is 0,",
    );
    assert_error(
        wrap(&[2, 2], &[4], chw),
        Status::InvalidLayout,
        "data.layout is \"CHW\"",
    );
    assert_error(
        wrap(&[2, 2], &[4], none),
        Status::InvalidStrides,
        "data.strides has 1",
    );
    let cases: [(&[i64], &[i64], Layout, &str); 9] = [
        (&[2, 3], &[12, 8], none, "data.strides[1] is 8, expected 4:"),
        (&[2, 3], &[4, 8], none, "data.strides[1] is 8, expected 4:"),
        (
            &[2, 3],
            &[8, 4],
            none,
            "data.strides[0] is 8, expected at least 12,",
        ),
        (
            &[2, 3],
            &[0, 4],
            none,
            "data.strides[0] is 0, expected at least 12,",
        ),
        (
            &[2, 3],
            &[-12, 4],
            none,
            "data.strides[0] is -12, expected at least 12,",
        ),
        (
            &[2, 3],
            &[12, -4],
            none,
            "data.strides[1] is -4, expected 4:",
        ),
        (
            &[2, 3],
            &[14, 4],
            none,
            "data.strides[0] is 14, expected a multiple of 4 ",
        ),
        (
            &[2, 3, 2],
            &[48, 16, 4],
            Layout::HWC,
            "data.strides[1] is 16, expected 8:",
        ),
        (
            &[2, 2, 3],
            &[16, 32, 4],
            chw,
            "data.strides[0] is 16, expected at least 44,",
        ),
    ];
    for (shape, strides, layout, start) in cases {
        assert_error(wrap(shape, strides, layout), Status::InvalidStrides, start);
    }
    for (shape, strides) in [
        (&[i64::MAX, 2][..], &[8, 4][..]),
        (&[2, 2], &[i64::MAX - 3, 4]),
        (&[1 << 61, 2], &[8, 4]),
        (&[i64::MAX], &[4]),
    ] {
        assert_error(
            wrap(shape, strides, none),
            Status::Overflow,
            "data.shape is [",
        );
    }
}

#[test]
fn wrap_takes_padding_steps_and_single_dimensions() {
    let wrap = |shape: &[i64], strides: &[i64], layout| {
        TensorDesc::wrap(1, shape, strides, Dtype::U8, layout).expect("a valid wrap")
    };
    let padded = wrap(&[2, 4, 5], &[64, 16, 1], Layout::CHW);
    assert_eq!(
        (padded.span_bytes(), padded.nbytes, padded.device),
        (117, 0, 1)
    );
    assert!(!padded.is_packed());
    // Every second of five rows: no byte is shared, though three steps pass the next sample.
    assert_eq!(
        wrap(&[2, 3, 4], &[20, 8, 1], Layout::CHW).strides(),
        [20, 8, 1]
    );
    // What a dimension of one element says is kept where it can be true.
    assert_eq!(
        wrap(&[1, 1, 37, 3], &[512, 128, 3, 1], Layout::NHWC).strides[..2],
        [512, 128]
    );
    let odd = wrap(&[1, 7, 1, 1], &[i64::MIN, 1, -5, 99], Layout::NHWC);
    assert_eq!(odd.strides(), [7, 1, 1, 1]);
    assert!(odd.is_packed());
    assert_eq!(wrap(&[1, 5], &[0, 1], Layout::NONE).strides(), [5, 1]);
    let single = TensorDesc::wrap(0, &[1, 5], &[23, 4], Dtype::F32, Layout::NONE);
    assert_eq!(single.map(|d| d.strides[0]), Ok(20));
    let lanes = Dtype::F32.with_lanes(3).expect("3F32");
    let desc = TensorDesc::wrap(0, &[2, 5], &[64, 12], lanes, Layout::NONE).expect("3F32");
    assert_eq!((desc.span_bytes(), desc.base_align), (124, 4));
}

#[test]
fn wrap_accepts_exactly_ordered_disjoint_rows() {
    let mut random = Random::new(2);
    let mut accepted = 0;
    for _ in 0..50_000 {
        let shape = random.shape(4, 1, 3);
        let dtype = random.pick(&[Dtype::U8, Dtype::U16, Dtype::F32]);
        let element = dtype.bytes() as i64;
        // From packed, then disturbed.
        let mut strides = vec![element; shape.len()];
        for i in (0..shape.len() - 1).rev() {
            strides[i] = strides[i + 1] * shape[i + 1] + random.pick(&[0, 0, element]);
        }
        if random.below(2) == 0 {
            let i = random.below(shape.len() as u64) as usize;
            strides[i] = random.pick(&[0, 1, -element, strides[i] + 1, strides[i] - element]);
        }
        if random.below(4) == 0 {
            strides.swap(0, shape.len() - 1);
        }
        let channel_last = shape.len() == 3 && random.below(2) == 0;
        let layout = if channel_last {
            Layout::HWC
        } else {
            Layout::NONE
        };

        // The offsets of each dimension alone, seen without those of size 1.
        let real: Vec<usize> = (0..shape.len()).filter(|&i| shape[i] > 1).collect();
        let all = offsets(&shape, &strides);
        let row_major = all.windows(2).all(|w| w[1] - w[0] >= element);
        let aligned = real.iter().all(|&i| strides[i] % element == 0);
        let row_dims = if channel_last { 2 } else { 1 };
        let row: i64 = shape[shape.len() - row_dims..].iter().product();
        let packed = (0..row).all(|i| all[i as usize] == i * element);
        let expected = row_major && aligned && packed;

        let result = TensorDesc::wrap(0, &shape, &strides, dtype, layout);
        assert_eq!(
            result.is_ok(),
            expected,
            "{shape:?} {strides:?} {dtype} {layout}"
        );
        if let Ok(desc) = result {
            accepted += 1;
            assert_eq!(offsets(desc.dims(), desc.strides()), all);
            assert!(desc.strides().iter().all(|&s| s > 0 && s % element == 0));
        }
    }
    assert!((10_000..40_000).contains(&accepted), "{accepted}");
}

#[test]
fn exact_match_compares_shape_and_strides() {
    let a = tensor(&[4, 5], Dtype::U8, "", 0, 0);
    assert!(a.exact_match(&tensor(&[4, 5], Dtype::U8, "HW", 0, 4096)));
    assert!(!a.exact_match(&tensor(&[4, 5], Dtype::U8, "", 1, 0)));
    assert!(!a.exact_match(&tensor(&[4, 6], Dtype::U8, "", 0, 0)));
    assert!(!a.exact_match(&tensor(&[1, 4, 5], Dtype::U8, "", 0, 0)));
}
