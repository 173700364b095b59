//! Tensor descriptors: shape, strides in bytes and the bytes that an allocation takes.

use super::dtype::Dtype;
use super::format::Format;
use super::layout::Layout;
use crate::error::{Error, Result, Status};
use crate::fail;

pub const MAX_RANK: usize = 15;

/// What rows are aligned to, in bytes, where the caller does not say.
pub(super) const DEFAULT_ROW_ALIGN: u64 = 32;
/// What allocations are aligned to, in bytes, where the caller does not say.
pub(super) const DEFAULT_BASE_ALIGN: u64 = 512;
const MAX_ALIGN: i64 = 1 << 32;

/// A tensor, fully resolved. Entries of `shape` and `strides` from `rank` on are 0.
///
/// Where a dimension has more than one element, its stride is positive, a multiple of the dtype's
/// alignment, and at least the bytes that the dimensions inside it span. The last dimension is
/// packed, and with a layout that ends with "WC" the last two are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorDesc {
    pub device: i32,
    pub rank: u32,
    pub shape: [i64; MAX_RANK],
    /// In bytes.
    pub strides: [i64; MAX_RANK],
    pub dtype: Dtype,
    pub layout: Layout,
    /// Bytes of the allocation: `strides[0] * shape[0]` rounded up to `base_align`. 0 for an empty
    /// tensor, a wrap and a view.
    pub nbytes: u64,
    pub base_align: u64,
}

impl TensorDesc {
    /// A tensor to allocate. Its rows begin at multiples of `row_align` bytes, its first byte at one
    /// of `base_align`; 0 takes the default, 32 and 512 bytes or what the element needs.
    ///
    /// A row is width times channels where the layout ends with "WC", else the last dimension alone:
    /// without a layout, every pixel of a (480, 640, 3) image is padded to 32 bytes, unless
    /// `row_align` is 1. A dimension of 0 makes an empty tensor of no bytes, with the strides that it
    /// would have were the dimension 1.
    ///
    /// Errors: `InvalidRank`, `InvalidShape` (negative), `InvalidLayout` (length is not the rank),
    /// `InvalidAlignment` (not a power of two up to 2^32), `Overflow` (2^63 bytes or more).
    pub fn compute(
        device: i32,
        shape: &[i64],
        dtype: Dtype,
        layout: Layout,
        row_align: i64,
        base_align: i64,
    ) -> Result<TensorDesc> {
        let rank = check_rank(shape.len(), "desc.rank")?;
        check_not_negative(shape, "desc.shape")?;
        layout.check_rank(rank, "desc.layout")?;
        let (row_align, base_align) = resolve_alignment(
            row_align,
            base_align,
            dtype.bytes().next_power_of_two(),
            dtype.alignment(),
        )?;

        let mut desc = TensorDesc::unstrided(device, shape, dtype, layout);
        let overflow = || overflow_error("desc.shape", shape, dtype);
        let first_packed = first_packed(layout, rank);
        desc.strides[rank - 1] = dtype.bytes() as i64;
        for i in (0..rank - 1).rev() {
            let inner = shape[i + 1]
                .max(1)
                .checked_mul(desc.strides[i + 1])
                .ok_or_else(overflow)?;
            desc.strides[i] = if i + 1 == first_packed {
                round_up(inner, row_align).ok_or_else(overflow)?
            } else {
                inner
            };
        }
        let bytes = shape[0]
            .max(1)
            .checked_mul(desc.strides[0])
            .and_then(|bytes| round_up(bytes, base_align))
            .ok_or_else(overflow)?;
        desc.nbytes = if desc.is_empty() { 0 } else { bytes as u64 };
        desc.base_align = base_align;
        Ok(desc)
    }

    /// A tensor for `count` images: NHWC for a format of one plane, NCHW for one of a plane a
    /// channel; its dtype is the format's lane. `NotSupported` for any other format (subsampled, or
    /// chroma interleaved in a plane of its own).
    pub fn from_image_spec(
        device: i32,
        count: i32,
        width: i32,
        height: i32,
        format: Format,
        row_align: i64,
    ) -> Result<TensorDesc> {
        for (value, argument) in [(count, "count"), (width, "width"), (height, "height")] {
            if value < 0 {
                fail!(
                    Status::InvalidShape,
                    "{argument} is {value}, expected 0 or more"
                );
            }
        }
        let info = format.info();
        if !info.is_tensor() {
            fail!(
                Status::NotSupported,
                "format is {format}, expected one without chroma subsampling that has one plane, or \
                 one plane a channel"
            );
        }
        let (n, w, h) = (i64::from(count), i64::from(width), i64::from(height));
        let c = i64::from(info.channel_count);
        let (shape, layout) = if info.plane_count == 1 {
            ([n, h, w, c], Layout::NHWC)
        } else {
            ([n, c, h, w], Layout::NCHW)
        };
        TensorDesc::compute(
            device,
            &shape,
            info.planes[0].dtype.lane(),
            layout,
            row_align,
            0,
        )
    }

    /// A tensor over memory of someone else, with the strides that it has. The stride of a dimension
    /// of size 1 is not looked at; where it would be no valid one it is replaced by the bytes of what
    /// is inside.
    ///
    /// Errors: `InvalidRank`, `InvalidShape` (a dimension below 1), `InvalidLayout`, `InvalidStrides`
    /// (negative, broadcast, permuted or overlapping dimensions, rows whose elements are not packed,
    /// or no multiple of the lane's bytes), `Overflow`.
    pub fn wrap(
        device: i32,
        shape: &[i64],
        strides: &[i64],
        dtype: Dtype,
        layout: Layout,
    ) -> Result<TensorDesc> {
        let rank = check_rank(shape.len(), "data.rank")?;
        for (i, &dim) in shape.iter().enumerate() {
            if dim < 1 {
                fail!(
                    Status::InvalidShape,
                    "data.shape[{i}] is {dim}, expected 1 or more"
                );
            }
        }
        layout.check_rank(rank, "data.layout")?;
        if strides.len() != rank {
            fail!(
                Status::InvalidStrides,
                "data.strides has {} entries, expected {rank}, as many as the rank",
                strides.len()
            );
        }

        let mut desc = TensorDesc::unstrided(device, shape, dtype, layout);
        let first_packed = first_packed(layout, rank);
        // Bytes that the dimensions inside of the current one span.
        let mut span = dtype.bytes() as i64;
        for i in (0..rank).rev() {
            let (dim, stride) = (shape[i], strides[i]);
            let packed = i >= first_packed;
            let aligned = stride & (dtype.alignment() as i64 - 1) == 0;
            let valid = if packed {
                stride == span
            } else {
                stride >= span && aligned
            };
            if dim == 1 {
                desc.strides[i] = if valid { stride } else { span };
                continue;
            }
            if !valid {
                let wanted = if packed {
                    format!("{span}: elements of a row are packed")
                } else if stride >= span {
                    format!("a multiple of {} for dtype {dtype}", dtype.alignment())
                } else {
                    format!(
                        "at least {span}, the bytes of the dimensions inside it: dimensions may not \
                         overlap, be reversed, broadcast or permuted"
                    )
                };
                fail!(
                    Status::InvalidStrides,
                    "data.strides[{i}] is {stride}, expected {wanted}"
                );
            }
            desc.strides[i] = stride;
            // The padding after the last element counts as well, so that a stride times its
            // dimension always fits.
            let total = dim
                .checked_mul(stride)
                .ok_or_else(|| overflow_error("data.shape", shape, dtype))?;
            span += total - stride;
        }
        desc.base_align = dtype.alignment();
        Ok(desc)
    }

    /// All but strides and bytes.
    pub(super) fn unstrided(
        device: i32,
        shape: &[i64],
        dtype: Dtype,
        layout: Layout,
    ) -> TensorDesc {
        let mut desc = TensorDesc {
            device,
            rank: shape.len() as u32,
            shape: [0; MAX_RANK],
            strides: [0; MAX_RANK],
            dtype,
            layout,
            nbytes: 0,
            base_align: dtype.alignment(),
        };
        desc.shape[..shape.len()].copy_from_slice(shape);
        desc
    }

    pub fn dims(&self) -> &[i64] {
        &self.shape[..self.rank as usize]
    }

    /// In bytes.
    pub fn strides(&self) -> &[i64] {
        &self.strides[..self.rank as usize]
    }

    /// Whether a dimension is 0, so that there is no element.
    pub fn is_empty(&self) -> bool {
        self.dims().contains(&0)
    }

    pub fn element_count(&self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        self.dims().iter().map(|&dim| dim as u64).product()
    }

    /// Bytes from the first element to one past the last, padding between them included.
    pub fn span_bytes(&self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let last: i64 = (self.dims().iter().zip(self.strides()))
            .map(|(&dim, &stride)| (dim - 1) * stride)
            .sum();
        last as u64 + self.dtype.bytes()
    }

    /// Whether elements follow each other without padding, in order.
    pub fn is_packed(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut expected = self.dtype.bytes() as i64;
        for (&dim, &stride) in self.dims().iter().zip(self.strides()).rev() {
            if dim != 1 {
                if stride != expected {
                    return false;
                }
                expected *= dim;
            }
        }
        true
    }

    /// Whether shape and strides are equal, so that the one's memory serves the other as it is.
    pub fn exact_match(&self, other: &TensorDesc) -> bool {
        self.rank == other.rank && self.shape == other.shape && self.strides == other.strides
    }
}

/// The first dimension of those that form a packed row.
pub(super) fn first_packed(layout: Layout, rank: usize) -> usize {
    if layout.is_channel_last() {
        rank - 2
    } else {
        rank - 1
    }
}

pub(super) fn check_rank(rank: usize, argument: &str) -> Result<usize> {
    if rank == 0 || rank > MAX_RANK {
        fail!(
            Status::InvalidRank,
            "{argument} is {rank}, expected 1 to {MAX_RANK}"
        );
    }
    Ok(rank)
}

pub(super) fn check_not_negative(shape: &[i64], argument: &str) -> Result<()> {
    for (i, &dim) in shape.iter().enumerate() {
        if dim < 0 {
            fail!(
                Status::InvalidShape,
                "{argument}[{i}] is {dim}, expected 0 or more"
            );
        }
    }
    Ok(())
}

/// The effective row and base alignment. `preferred` is what rows are aligned to at least where the
/// caller does not say, `required` at least in any case; all are powers of two, so that the least
/// common multiple of two is the larger.
pub(super) fn resolve_alignment(
    row_align: i64,
    base_align: i64,
    preferred: u64,
    required: u64,
) -> Result<(u64, u64)> {
    let row = match check_alignment(row_align, "desc.row_align")? {
        0 => DEFAULT_ROW_ALIGN.max(preferred),
        bytes => bytes.max(required),
    };
    let base = match check_alignment(base_align, "desc.base_align")? {
        0 => DEFAULT_BASE_ALIGN.max(row),
        bytes => bytes.max(row),
    };
    Ok((row, base))
}

fn check_alignment(bytes: i64, argument: &str) -> Result<u64> {
    if bytes != 0 && (!(1..=MAX_ALIGN).contains(&bytes) || bytes & (bytes - 1) != 0) {
        fail!(
            Status::InvalidAlignment,
            "{argument} is {bytes}, expected 0 or a power of two up to {MAX_ALIGN}"
        );
    }
    Ok(bytes as u64)
}

/// `value` rounded up to a multiple of a power of two; none where it leaves 63 bits.
pub(super) fn round_up(value: i64, align: u64) -> Option<i64> {
    let mask = align as i64 - 1;
    Some(value.checked_add(mask)? & !mask)
}

#[cold]
fn overflow_error(argument: &str, shape: &[i64], dtype: Dtype) -> Error {
    Error::new(
        Status::Overflow,
        format!(
            "{argument} is {shape:?} of dtype {dtype}, expected at most {} bytes with all padding",
            i64::MAX
        ),
    )
}

#[cfg(test)]
pub(super) mod random;
#[cfg(test)]
mod tests;
