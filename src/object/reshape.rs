//! Views: another shape over a tensor's memory, and images or their planes seen as tensors.

use super::image_desc::ImageDesc;
use super::layout::Layout;
use super::tensor_desc::{check_not_negative, check_rank, first_packed, TensorDesc, MAX_RANK};
use crate::error::{Error, Result, Status};
use crate::fail;

/// The same elements in the same order under another shape, without moving any. Dimensions that
/// follow each other without padding are joined and split anew; the view takes no bytes.
///
/// Errors: `InvalidRank`, `InvalidShape` (negative, or another number of elements), `InvalidLayout`,
/// `InvalidStrides` (a dimension would run across padding, or the elements of a row would not be
/// packed).
pub fn reshape(parent: &TensorDesc, shape: &[i64], layout: Layout) -> Result<TensorDesc> {
    let rank = check_rank(shape.len(), "desc.rank")?;
    check_not_negative(shape, "desc.shape")?;
    layout.check_rank(rank, "desc.layout")?;
    if element_count(shape) != Some(parent.element_count()) {
        fail!(
            Status::InvalidShape,
            "desc.shape is {shape:?}, expected {} elements, as in {:?}",
            parent.element_count(),
            parent.dims()
        );
    }
    let mut view = TensorDesc::unstrided(parent.device, shape, parent.dtype, layout);
    view.base_align = parent.base_align;
    let across_padding = || {
        Error::new(
            Status::InvalidStrides,
            format!(
                "desc.shape is {shape:?}, expected one whose dimensions do not run across the padding \
                 of {:?} with strides {:?} bytes",
                parent.dims(),
                parent.strides()
            ),
        )
    };
    let bytes = parent.dtype.bytes() as i64;
    if parent.is_empty() {
        let mut stride = bytes;
        for i in (0..rank).rev() {
            view.strides[i] = stride;
            stride = stride.checked_mul(shape[i].max(1)).ok_or_else(|| {
                Error::new(
                    Status::Overflow,
                    format!(
                        "desc.shape is {shape:?}, expected strides of at most {}",
                        i64::MAX
                    ),
                )
            })?;
        }
        return Ok(view);
    }

    // The parent's dimensions of more than one element, those that are contiguous joined into one.
    let mut runs = [(0i64, 0i64); MAX_RANK];
    let mut run_count = 0;
    for (&dim, &stride) in parent.dims().iter().zip(parent.strides()).rev() {
        if dim == 1 {
            continue;
        }
        if run_count > 0 {
            let (count, inner) = &mut runs[run_count - 1];
            if *count * *inner == stride {
                *count *= dim;
                continue;
            }
        }
        runs[run_count] = (dim, stride);
        run_count += 1;
    }

    // From the innermost dimension on, each takes its elements out of one run.
    let mut runs = runs[..run_count].iter();
    let (mut left, mut stride) = (1, bytes);
    for i in (0..rank).rev() {
        let dim = shape[i];
        if left == 1 && dim > 1 {
            (left, stride) = runs.next().copied().unwrap_or((1, bytes));
        }
        view.strides[i] = stride;
        if left % dim != 0 {
            return Err(across_padding());
        }
        left /= dim;
        stride *= dim;
    }
    check_rows(&view)?;
    Ok(view)
}

/// `InvalidStrides` unless the rows of a view are packed, which every tensor's are.
fn check_rows(view: &TensorDesc) -> Result<()> {
    let rank = view.rank as usize;
    let mut expected = view.dtype.bytes() as i64;
    for i in (first_packed(view.layout, rank)..rank).rev() {
        if view.shape[i] != 1 && view.strides[i] != expected {
            fail!(
                Status::InvalidStrides,
                "desc.shape is {:?} with layout \"{}\", expected packed rows: dimension {i} would have \
                 the stride {}, not {expected}",
                view.dims(),
                view.layout,
                view.strides[i]
            );
        }
        expected *= view.shape[i];
    }
    Ok(())
}

/// None where it leaves 64 bits.
fn element_count(shape: &[i64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape
        .iter()
        .try_fold(1u64, |count, &dim| count.checked_mul(dim as u64))
}

/// A whole image as a tensor of one sample, and the offset of its first byte from the image's base
/// (the address, for a wrap): NHWC for one plane of two or more channels, else NCHW.
///
/// Errors: `NotSupported` (a subsampled format, or chroma interleaved in a plane of its own),
/// `InvalidStrides` (planes of different row strides, or not at equal and positive distances),
/// `Overflow`.
pub fn tensor_from_image(image: &ImageDesc) -> Result<(TensorDesc, u64)> {
    let info = image.format.info();
    if !info.is_tensor() {
        fail!(
            Status::NotSupported,
            "image has format {}, expected one without chroma subsampling that has one plane, or one \
             plane a channel",
            image.format
        );
    }
    let first = image.planes[0];
    let (width, height) = (i64::from(image.width), i64::from(image.height));
    let channels = i64::from(info.channel_count);
    let lane = info.planes[0].dtype.lane();
    let lane_bytes = lane.bytes() as i64;
    // A row stride fits in 31 bits, and so does a height.
    let plane_bytes = first.row_stride * height;

    if info.plane_count == 1 && channels > 1 {
        let shape = [1, height, width, channels];
        let mut desc = TensorDesc::unstrided(image.device, &shape, lane, Layout::NHWC);
        desc.strides[..4].copy_from_slice(&[
            plane_bytes,
            first.row_stride,
            channels * lane_bytes,
            lane_bytes,
        ]);
        return Ok((desc, first.offset));
    }

    let distance = match image.planes().get(1) {
        Some(second) => second.offset.wrapping_sub(first.offset) as i64,
        None => plane_bytes,
    };
    let span = first.row_stride * (height - 1) + width * lane_bytes;
    for (i, plane) in image.planes().iter().enumerate() {
        if plane.row_stride != first.row_stride {
            fail!(
                Status::InvalidStrides,
                "image has plane {i} with row stride {}, expected {}, as plane 0",
                plane.row_stride,
                first.row_stride
            );
        }
        let expected = (i as i64).checked_mul(distance);
        if distance < span || Some(plane.offset.wrapping_sub(first.offset) as i64) != expected {
            fail!(
                Status::InvalidStrides,
                "image has planes at {:x?}, expected equal distances of at least {span} bytes",
                (image.planes().iter().map(|plane| plane.offset)).collect::<Vec<_>>()
            );
        }
    }
    let shape = [1, channels, height, width];
    let mut desc = TensorDesc::unstrided(image.device, &shape, lane, Layout::NCHW);
    let Some(total) = channels.checked_mul(distance) else {
        fail!(
            Status::Overflow,
            "image has planes {distance} bytes apart, expected {channels} of them within {} bytes",
            i64::MAX
        );
    };
    desc.strides[..4].copy_from_slice(&[total, distance, first.row_stride, lane_bytes]);
    Ok((desc, first.offset))
}

/// One plane as a tensor of layout HWC, and the offset of its first byte from the image's base (the
/// address, for a wrap). Works for every format: NV12's chroma has two channels, and so has packed
/// 4:2:2, whose odd width counts one more. `InvalidIndex` where there is no such plane.
pub fn tensor_from_plane(image: &ImageDesc, plane: i32) -> Result<(TensorDesc, u64)> {
    let Some(place) = usize::try_from(plane)
        .ok()
        .and_then(|i| image.planes().get(i))
    else {
        fail!(
            Status::InvalidIndex,
            "plane is {plane}, expected 0 to {} for format {}",
            image.plane_count - 1,
            image.format
        );
    };
    let dtype = image.format.info().planes[plane as usize].dtype;
    let shape = [
        i64::from(place.height),
        i64::from(place.width),
        i64::from(dtype.lanes()),
    ];
    let mut desc = TensorDesc::unstrided(image.device, &shape, dtype.lane(), Layout::HWC);
    desc.strides[..3].copy_from_slice(&[
        place.row_stride,
        dtype.bytes() as i64,
        dtype.lane_bytes() as i64,
    ]);
    Ok((desc, place.offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::dtype::Dtype;
    use crate::object::format::Format;
    use crate::object::image_desc::ForeignPlane;
    use crate::object::tensor_desc::random::{offsets, Random};

    fn tensor(shape: &[i64], layout: Layout, row_align: i64) -> TensorDesc {
        TensorDesc::compute(2, shape, Dtype::U8, layout, row_align, 0).expect("a valid tensor")
    }

    fn assert_error<T: std::fmt::Debug>(result: Result<T>, status: Status, part: &str) {
        let error = result.expect_err(part);
        assert_eq!(error.status, status, "{error}");
        assert!(error.message.contains(part), "{error}");
        assert!(error.message.contains("expected "), "{error}");
    }

    #[test]
    fn regroups_within_rows_and_across_packed_ones() {
        let padded = tensor(&[2, 4, 6, 3], Layout::NHWC, 0);
        let strides = |shape: &[i64], layout| reshape(&padded, shape, layout).map(|v| v.strides);
        let head = |strides: [i64; MAX_RANK], n| strides[..n].to_vec();
        let merged = strides(&[8, 6, 3], Layout::HWC).expect("N and H have no padding between");
        assert_eq!(head(merged, 3), [32, 3, 1]);
        let row = strides(&[8, 18], Layout::NONE).expect("W and C are packed");
        assert_eq!(head(row, 2), [32, 1]);
        let split = strides(&[2, 2, 2, 9, 2, 1], Layout::NONE).expect("splits of H and of the row");
        assert_eq!(head(split, 6), [128, 64, 32, 2, 1, 1]);
        let one = strides(&[1, 8, 1, 18, 1], Layout::NONE).expect("ones are free");
        assert_eq!(head(one, 5), [256, 32, 18, 1, 1]);
        for shape in [&[144][..], &[4, 36], &[2, 72], &[16, 9]] {
            let part = "do not run across the padding of [2, 4, 6, 3] with strides [128, 32, 3, 1]";
            let result = reshape(&padded, shape, Layout::NONE);
            assert_error(result, Status::InvalidStrides, part);
        }
        let packed = tensor(&[2, 4, 6, 3], Layout::NHWC, 1);
        let flat = reshape(&packed, &[144], Layout::NONE).expect("packed");
        assert!(flat.is_packed());
        assert_eq!((flat.nbytes, flat.device, flat.base_align), (0, 2, 512));
        assert_eq!(flat.layout, Layout::NONE);
    }

    #[test]
    fn bad_shapes_are_refused() {
        let parent = tensor(&[4, 6], Layout::NONE, 1);
        let with = |shape: &[i64], layout| reshape(&parent, shape, layout);
        let none = Layout::NONE;
        assert_error(with(&[], none), Status::InvalidRank, "desc.rank is 0,");
        assert_error(
            with(&[1; 16], none),
            Status::InvalidRank,
            "desc.rank is 16,",
        );
        assert_error(
            with(&[-4, -6], none),
            Status::InvalidShape,
            "desc.shape[0] is -4,",
        );
        assert_error(
            with(&[24], Layout::HWC),
            Status::InvalidLayout,
            "desc.layout is",
        );
        let part = "desc.shape is [5, 5], expected 24 elements, as in [4, 6]";
        assert_error(with(&[5, 5], none), Status::InvalidShape, part);
        assert_error(with(&[0, 6], none), Status::InvalidShape, "24 elements");
        // 2^64 + 24 is not 24.
        let wraps = [1 << 32, 1 << 32, 24];
        assert_error(with(&wraps, none), Status::InvalidShape, "24 elements");
    }

    #[test]
    fn rows_stay_packed() {
        let padded = tensor(&[4, 6, 1], Layout::NONE, 0);
        assert_eq!(padded.strides(), [192, 32, 1]);
        let part = "dimension 1 would have the stride 32, not 1";
        assert_error(
            reshape(&padded, &[4, 6], Layout::NONE),
            Status::InvalidStrides,
            part,
        );
        assert_error(
            reshape(&padded, &[4, 6, 1], Layout::HWC),
            Status::InvalidStrides,
            part,
        );
        assert!(reshape(&padded, &[24, 1], Layout::NONE).is_ok());
        assert!(reshape(&padded, &[4, 6, 1], Layout::CHW).is_ok());
    }

    #[test]
    fn empty_tensors_take_any_empty_shape() {
        let empty = tensor(&[2, 0, 3], Layout::HWC, 0);
        let view = reshape(&empty, &[5, 4, 0], Layout::CHW).expect("no elements either");
        assert_eq!(view.strides(), [4, 1, 1]);
        assert!(view.is_empty());
        assert_error(
            reshape(&empty, &[6], Layout::NONE),
            Status::InvalidShape,
            "0 elements",
        );
        let huge = [0, 1 << 32, 1 << 32];
        assert_error(
            reshape(&empty, &huge, Layout::NONE),
            Status::Overflow,
            "desc.shape is [0,",
        );
    }

    /// The strides that give those offsets, found by looking at one step of each dimension.
    fn strides_of(shape: &[i64], offsets: &[i64]) -> Option<Vec<i64>> {
        let mut inside = 1;
        let mut strides = vec![0; shape.len()];
        for i in (0..shape.len()).rev() {
            if shape[i] > 1 {
                strides[i] = offsets[inside];
            }
            inside *= shape[i] as usize;
        }
        (self::offsets(shape, &strides) == offsets).then_some(strides)
    }

    #[test]
    fn agrees_with_walking_every_element() {
        let mut random = Random::new(4);
        let (mut taken, mut across, mut unpacked) = (0, 0, 0);
        for _ in 0..50_000 {
            let dtype = random.pick(&[Dtype::U8, Dtype::F32]);
            let element = dtype.bytes() as i64;
            let parent_shape: Vec<i64> = (0..1 + random.below(4))
                .map(|_| random.pick(&[1, 2, 3, 4, 6]))
                .collect();
            let mut strides = vec![element; parent_shape.len()];
            for i in (0..parent_shape.len() - 1).rev() {
                let padding = random.pick(&[0, 0, element, 2 * element]);
                strides[i] = strides[i + 1] * parent_shape[i + 1] + padding;
            }
            let parent = TensorDesc::wrap(0, &parent_shape, &strides, dtype, Layout::NONE)
                .expect("a valid wrap");

            // A random factorization of the volume.
            let mut volume: i64 = parent_shape.iter().product();
            let mut shape = Vec::new();
            while volume > 1 || shape.is_empty() {
                let factor = random.pick(&[1, 2, 3, 4, 6, 8, volume]);
                if volume % factor == 0 && shape.len() < MAX_RANK - 1 {
                    shape.push(factor);
                    volume /= factor;
                } else if shape.len() == MAX_RANK - 1 {
                    shape.push(volume);
                    break;
                }
            }
            let layout = match shape.len() {
                3 => random.pick(&[Layout::NONE, Layout::HWC, Layout::CHW]),
                _ => Layout::NONE,
            };

            let walked = offsets(parent.dims(), parent.strides());
            let expected = strides_of(&shape, &walked);
            match reshape(&parent, &shape, layout) {
                Ok(view) => {
                    assert_eq!(offsets(view.dims(), view.strides()), walked);
                    TensorDesc::wrap(0, &shape, view.strides(), dtype, layout)
                        .expect("a view is a valid tensor");
                    taken += 1;
                }
                Err(error) => {
                    assert_eq!(error.status, Status::InvalidStrides);
                    match expected {
                        None => {
                            assert!(error.message.contains("across the padding"), "{error}");
                            across += 1;
                        }
                        Some(strides) => {
                            let wrap = TensorDesc::wrap(0, &shape, &strides, dtype, layout);
                            assert!(wrap.is_err(), "{parent:?} {shape:?} {layout}: {error}");
                            assert!(error.message.contains("packed rows"), "{error}");
                            unpacked += 1;
                        }
                    }
                }
            }
        }
        assert!(taken > 5_000 && across > 5_000 && unpacked > 100);
    }

    #[test]
    fn large_wraps_do_not_overflow() {
        let far = (1i64 << 62) - 4;
        let parent = TensorDesc::wrap(0, &[2, 1, 3], &[far, 4, 1], Dtype::U8, Layout::NONE)
            .expect("two far rows");
        let view = reshape(&parent, &[1, 2, 3, 1], Layout::NONE).expect("the same rows");
        assert_eq!(view.strides(), [2 * far, far, 1, 1]);
    }

    fn image(format: Format, row_align: i64) -> ImageDesc {
        ImageDesc::compute(1, format, 7, 5, row_align, 0).expect("a valid image")
    }

    /// An image of that format whose planes are at those addresses.
    fn wrapped(format: Format, places: &[(u64, i64)]) -> ImageDesc {
        let planes: Vec<_> = places
            .iter()
            .map(|&(address, row_stride)| ForeignPlane {
                address,
                row_stride,
                width: 7,
                height: 5,
            })
            .collect();
        ImageDesc::wrap(0, format, 7, 5, planes.len() as i32, &planes).expect("a valid wrap")
    }

    #[test]
    fn images_are_tensors_of_one_sample() {
        let view = |format, row_align| tensor_from_image(&image(format, row_align)).map(|v| v.0);
        let rgb = view(Format::RGB8, 0).expect("packed");
        assert_eq!(rgb.dims(), [1, 5, 7, 3]);
        assert_eq!(rgb.strides(), [160, 32, 3, 1]);
        assert_eq!((rgb.layout, rgb.dtype), (Layout::NHWC, Dtype::U8));
        assert_eq!((rgb.nbytes, rgb.device), (0, 1));
        let gray = view(Format::F32, 1).expect("one channel");
        assert_eq!(
            (gray.dims(), gray.layout),
            (&[1, 1, 5, 7][..], Layout::NCHW)
        );
        assert_eq!(gray.strides(), [140, 140, 28, 4]);
        let planar = view(Format::RGBAF16P, 0).expect("planar");
        assert_eq!(
            (planar.dims(), planar.layout),
            (&[1, 4, 5, 7][..], Layout::NCHW)
        );
        assert_eq!(planar.strides(), [640, 160, 32, 2]);
        for format in [Format::NV12, Format::NV24, Format::YUYV] {
            let part = format!("image has format {format},");
            assert_error(view(format, 0), Status::NotSupported, &part);
        }
    }

    #[test]
    fn every_view_is_a_valid_tensor() {
        for code in 1..=Format::COUNT as u32 {
            let format = Format::from_code(code, "x").expect("a format");
            let image = image(format, if code % 2 == 0 { 0 } else { 1 });
            let mut views = Vec::new();
            if format.info().is_tensor() {
                views.push(tensor_from_image(&image).expect("a tensor"));
            }
            for plane in 0..image.plane_count as i32 {
                views.push(tensor_from_plane(&image, plane).expect("a plane"));
            }
            for (view, offset) in views {
                assert!(offset + view.span_bytes() <= image.nbytes, "{format}");
                let shape = view.dims();
                TensorDesc::wrap(0, shape, view.strides(), view.dtype, view.layout)
                    .unwrap_or_else(|error| panic!("{format}: {error}"));
            }
        }
    }

    #[test]
    fn planes_must_be_at_equal_distances() {
        let rgb = Format::RGB8P;
        let (view, address) =
            tensor_from_image(&wrapped(rgb, &[(4096, 8), (5096, 8), (6096, 8)])).expect("equal");
        assert_eq!(address, 4096);
        assert_eq!(view.strides(), [3000, 1000, 8, 1]);
        // Rows of 8 bytes, the last one of 7: planes may follow each other after 39.
        assert!(tensor_from_image(&wrapped(rgb, &[(4096, 8), (4135, 8), (4174, 8)])).is_ok());
        for places in [
            [(4096, 8), (5096, 8), (6097, 8)],
            [(6096, 8), (5096, 8), (4096, 8)],
            [(4096, 8), (4096, 8), (4096, 8)],
            [(4096, 8), (4134, 8), (4172, 8)],
        ] {
            let part = "expected equal distances of at least 39 bytes";
            let result = tensor_from_image(&wrapped(rgb, &places));
            assert_error(result, Status::InvalidStrides, part);
        }
        let rows = wrapped(rgb, &[(4096, 8), (5096, 8), (6096, 9)]);
        let part = "image has plane 2 with row stride 9, expected 8, as plane 0";
        assert_error(tensor_from_image(&rows), Status::InvalidStrides, part);
        let far = [(1, 7), (1 + (1 << 62), 7), (1 + (1 << 63), 7)];
        let result = tensor_from_image(&wrapped(rgb, &far));
        assert_eq!(result.expect_err("far").status, Status::InvalidStrides);
        let far = [(1, 7), (1 + (3 << 60), 7), (1 + (6 << 60), 7)];
        assert_error(
            tensor_from_image(&wrapped(rgb, &far)),
            Status::Overflow,
            "planes",
        );
    }

    #[test]
    fn planes_follow_each_other_after_their_last_row() {
        let floats = |distance| {
            let places = [0u64, 1, 2].map(|i| (4096 + i * distance, 32));
            tensor_from_image(&wrapped(Format::RGBF32P, &places))
        };
        assert!(floats(156).is_ok());
        assert_error(floats(152), Status::InvalidStrides, "at least 156 bytes");
    }

    #[test]
    fn planes_are_tensors() {
        let nv12 = image(Format::NV12, 0);
        let (luma, offset) = tensor_from_plane(&nv12, 0).expect("luma");
        assert_eq!((luma.dims(), offset), (&[5, 7, 1][..], 0));
        let (chroma, offset) = tensor_from_plane(&nv12, 1).expect("chroma");
        assert_eq!((chroma.dims(), offset), (&[3, 4, 2][..], 160));
        assert_eq!(chroma.strides(), [32, 2, 1]);
        assert_eq!((chroma.layout, chroma.dtype), (Layout::HWC, Dtype::U8));
        let (pairs, _) = tensor_from_plane(&image(Format::YUYV, 0), 0).expect("packed chroma");
        assert_eq!(pairs.dims(), [5, 8, 2]);
        let (vectors, _) = tensor_from_plane(&image(Format::RGBF32, 1), 0).expect("packed");
        assert_eq!(vectors.strides(), [84, 12, 4]);
        for plane in [-1, 2, i32::MAX, i32::MIN] {
            let part = format!("plane is {plane}, expected 0 to 1 for format NV12");
            assert_error(tensor_from_plane(&nv12, plane), Status::InvalidIndex, &part);
        }
    }
}
