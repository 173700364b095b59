//! Image descriptors: the planes of an image, their row strides and the bytes that they take.

use super::format::{Format, MAX_PLANES};
use super::tensor_desc::{resolve_alignment, round_up};
use crate::error::{Error, Result, Status};
use crate::fail;

/// Where a plane lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaneDesc {
    /// Bytes from the image's base address. A wrap has the base address 0: this is the address.
    pub offset: u64,
    /// In bytes, positive, within 32 bits.
    pub row_stride: i64,
    /// Samples a row; an odd width counts one more in packed 4:2:2.
    pub width: i32,
    pub height: i32,
}

/// An image, fully resolved. Planes from `plane_count` on are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageDesc {
    pub device: i32,
    pub format: Format,
    pub width: i32,
    pub height: i32,
    pub plane_count: u32,
    pub planes: [PlaneDesc; MAX_PLANES],
    /// Bytes of the allocation: those of each plane rounded up to `base_align`, added. 0 for a wrap.
    pub nbytes: u64,
    pub base_align: u64,
}

/// A plane of foreign memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignPlane {
    pub address: u64,
    /// In bytes.
    pub row_stride: i64,
    /// Samples a row, as `PlaneDesc::width`.
    pub width: i32,
    pub height: i32,
}

impl ImageDesc {
    /// An image to allocate: planes back to back, rows at multiples of `row_align` bytes, the first
    /// byte at one of `base_align`; 0 takes the default, 32 and 512. Axes of subsampled chroma are
    /// rounded up; a row of packed 4:2:2 takes 2 bytes a pixel, its width rounded up to even.
    ///
    /// Errors: `InvalidShape` (width or height below 1), `InvalidAlignment`, `Overflow` (a row stride
    /// leaves int32, or 2^63 bytes or more).
    pub fn compute(
        device: i32,
        format: Format,
        width: i32,
        height: i32,
        row_align: i64,
        base_align: i64,
    ) -> Result<ImageDesc> {
        check_size(width, height, "desc")?;
        let (mut preferred, mut required) = (1, 1);
        for plane in format.info().planes() {
            preferred = plane.dtype.bytes().next_power_of_two().max(preferred);
            required = plane.dtype.alignment().max(required);
        }
        let (row_align, base_align) =
            resolve_alignment(row_align, base_align, preferred, required)?;

        let mut desc = ImageDesc::unplaced(device, format, width, height, base_align);
        let (mut offset, mut total) = (0i64, 0i64);
        let overflow = || overflow_error(format, width, height);
        for (place, plane) in desc.planes.iter_mut().zip(format.info().planes()) {
            let (plane_width, plane_height) =
                (plane.plane_width(width), plane.plane_height(height));
            let row_bytes = plane_width * plane.dtype.bytes() as i64;
            let row_stride = round_up(row_bytes, row_align)
                .filter(|&bytes| bytes <= i64::from(i32::MAX))
                .ok_or_else(|| row_overflow_error(format, width, row_align))?;
            // A row stride fits in 31 bits, so its row has fewer than 2^31 samples.
            *place = PlaneDesc {
                offset: offset as u64,
                row_stride,
                width: plane_width as i32,
                height: plane_height as i32,
            };
            let bytes = row_stride * plane_height;
            offset = offset.checked_add(bytes).ok_or_else(overflow)?;
            total = round_up(bytes, base_align)
                .and_then(|bytes| total.checked_add(bytes))
                .ok_or_else(overflow)?;
        }
        desc.nbytes = total as u64;
        Ok(desc)
    }

    /// An image over memory of someone else. `planes` are those of the struct, of which the first
    /// `plane_count` count; the offsets of the result are their addresses.
    ///
    /// Errors: `InvalidShape` (width or height below 1, or a plane that is not of the format's size),
    /// `InvalidArgument` (plane count), `NullPointer`, `InvalidAlignment` (an address that is no
    /// multiple of the lane's bytes), `InvalidStrides` (less than a row, over int32, no multiple of
    /// the lane's bytes), `Overflow` (a plane leaves the address space).
    pub fn wrap(
        device: i32,
        format: Format,
        width: i32,
        height: i32,
        plane_count: i32,
        planes: &[ForeignPlane],
    ) -> Result<ImageDesc> {
        check_size(width, height, "data")?;
        let info = format.info();
        let expected = info.plane_count as usize;
        if plane_count as i64 != expected as i64 || planes.len() < expected {
            fail!(
                Status::InvalidArgument,
                "data.plane_count is {plane_count}, expected {expected} for format {format}"
            );
        }
        let mut desc = ImageDesc::unplaced(device, format, width, height, 1);
        for (i, (given, plane)) in planes.iter().zip(info.planes()).enumerate() {
            let (plane_width, plane_height) =
                (plane.plane_width(width), plane.plane_height(height));
            for (value, wanted, field) in [
                (given.width, plane_width, "width"),
                (given.height, plane_height, "height"),
            ] {
                if i64::from(value) != wanted {
                    fail!(
                        Status::InvalidShape,
                        "data.planes[{i}].{field} is {value}, expected {wanted} for format {format} \
                         of {width}x{height}"
                    );
                }
            }
            let row_bytes = plane_width * plane.dtype.bytes() as i64;
            let alignment = plane.dtype.alignment() as i64;
            if !(row_bytes..=i64::from(i32::MAX)).contains(&given.row_stride)
                || given.row_stride & (alignment - 1) != 0
            {
                fail!(
                    Status::InvalidStrides,
                    "data.planes[{i}].row_stride is {}, expected {row_bytes} to {}, a multiple of \
                     {alignment}",
                    given.row_stride,
                    i32::MAX
                );
            }
            // Asked first, so that the name is only made for an error.
            if given.address == 0 || given.address & (alignment as u64 - 1) != 0 {
                plane
                    .dtype
                    .check_address(given.address, &format!("data.planes[{i}].data"))?;
            }
            let bytes = (given.row_stride * (plane_height - 1) + row_bytes) as u64;
            if given.address.checked_add(bytes).is_none() {
                fail!(
                    Status::Overflow,
                    "data.planes[{i}].data is {:#x}, expected room for {bytes} bytes",
                    given.address
                );
            }
            desc.base_align = desc.base_align.max(alignment as u64);
            desc.planes[i] = PlaneDesc {
                offset: given.address,
                row_stride: given.row_stride,
                width: given.width,
                height: given.height,
            };
        }
        Ok(desc)
    }

    /// All but the planes and bytes.
    fn unplaced(
        device: i32,
        format: Format,
        width: i32,
        height: i32,
        base_align: u64,
    ) -> ImageDesc {
        ImageDesc {
            device,
            format,
            width,
            height,
            plane_count: format.info().plane_count,
            planes: [PlaneDesc::default(); MAX_PLANES],
            nbytes: 0,
            base_align,
        }
    }

    pub fn planes(&self) -> &[PlaneDesc] {
        &self.planes[..self.plane_count as usize]
    }

    /// Whether size, format and the planes' places are equal, so that the one's memory serves the
    /// other as it is.
    pub fn exact_match(&self, other: &ImageDesc) -> bool {
        self.format == other.format
            && self.width == other.width
            && self.height == other.height
            && self.planes == other.planes
    }
}

fn check_size(width: i32, height: i32, argument: &str) -> Result<()> {
    for (value, field) in [(width, "width"), (height, "height")] {
        if value < 1 {
            fail!(
                Status::InvalidShape,
                "{argument}.{field} is {value}, expected 1 or more"
            );
        }
    }
    Ok(())
}

#[cold]
fn row_overflow_error(format: Format, width: i32, row_align: u64) -> Error {
    Error::new(
        Status::Overflow,
        format!(
            "desc.width is {width} of format {format}, expected a row of at most {} bytes, aligned \
             to {row_align}",
            i32::MAX
        ),
    )
}

#[cold]
fn overflow_error(format: Format, width: i32, height: i32) -> Error {
    Error::new(
        Status::Overflow,
        format!(
            "desc.width and desc.height are {width} and {height} of format {format}, expected at \
             most {} bytes with all padding",
            i64::MAX
        ),
    )
}
