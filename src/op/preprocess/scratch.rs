//! Memory between two steps, and how pixels lie in it.

use super::input::{Input, Part, Source};
use crate::backend::ByteRange;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{Dtype, Layout, ObjectRef};
use crate::op::output::Output;
use crate::op::view::{Extents, View};
use crate::timeline::Stream;

/// Memory for what one step leaves to the next.
pub struct Scratch {
    pub object: ObjectRef,
    _output: Output,
    next: u64,
}

impl Scratch {
    pub fn of(stream: &'static Stream, input: &Input, bytes: i64) -> Result<Scratch> {
        let output = Output::tensor(stream, input.src, &[bytes], Dtype::U8, Layout::W)?;
        let object = output.object()?;
        let next = object.tensor().1;
        Ok(Scratch {
            object,
            _output: output,
            next,
        })
    }

    pub fn range(&self) -> ByteRange {
        let (desc, start) = self.object.tensor();
        ByteRange {
            start,
            length: desc.span_bytes(),
            write: true,
        }
    }

    /// The next bytes, from a multiple of `align` on.
    pub fn take(&mut self, bytes: i64, align: u64) -> u64 {
        let start = self.next.next_multiple_of(align);
        self.next = start + bytes as u64;
        start
    }
}

/// Packed pixels of these extents; packed planes where that is asked for.
pub fn packed(data: u64, extents: &Extents, element: i64, in_planes: bool) -> View {
    let (stride_c, stride_w) = match in_planes {
        true => (extents.height * extents.width * element, element),
        false => (element, extents.channels * element),
    };
    View {
        data,
        stride_n: extents.channels * extents.height * extents.width * element,
        stride_c,
        stride_h: extents.width * stride_w,
        stride_w,
    }
}

pub fn is_in_planes(part: &Part, element: i64) -> bool {
    part.view.stride_w == element
}

/// Whether the resize kernels are quick from a part to a view: rows of pixels side by side on both sides, or rows of
/// planes.
pub fn is_quick(part: &Part, to: &View, element: i64) -> bool {
    let is_interleaved = |view: &View| {
        (part.channels == 1 || view.stride_c == element) && view.stride_w == part.channels * element
    };
    is_interleaved(&part.view) && is_interleaved(to)
        || is_in_planes(part, element) && to.stride_w == element
}

/// Refuses what no memory could hold.
pub fn bytes_of(extents: &Extents, element: i64) -> Result<i64> {
    let count = [extents.channels, extents.height, extents.width, element]
        .into_iter()
        .try_fold(extents.images, i64::checked_mul);
    match count {
        Some(bytes) => Ok(bytes),
        None => fail!(
            Status::Overflow,
            "{} images of {}x{} pixels of {} channels between two steps, expected less than 2^63 bytes",
            extents.images,
            extents.width,
            extents.height,
            extents.channels
        ),
    }
}

/// Rows and frames of RGB begin where the kernels can read them by vectors.
const ROW_ALIGN: i64 = 32;
const FRAME_ALIGN: i64 = 512;

/// Up to a multiple of `to`, a power of two.
fn aligned(bytes: i64, to: i64) -> i64 {
    bytes.saturating_add(to - 1) & -to
}

/// A view of what is converted from NV12, at address 0, and its bytes.
pub fn frame_of(source: &Source) -> Result<(View, i64)> {
    let row = aligned(3 * source.width, ROW_ALIGN);
    let rows = Extents {
        images: 1,
        channels: 1,
        height: source.height,
        width: row,
    };
    let frame = aligned(bytes_of(&rows, 1)?, FRAME_ALIGN);
    let frames = Extents {
        images: source.images,
        channels: 1,
        height: 1,
        width: frame,
    };
    let view = View {
        data: 0,
        stride_n: frame,
        stride_c: 1,
        stride_h: row,
        stride_w: 3,
    };
    Ok((view, bytes_of(&frames, 1)?))
}
