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
