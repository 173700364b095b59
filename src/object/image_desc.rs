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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tensor_desc::random::Random;

    fn image(format: Format, width: i32, height: i32, row: i64, base: i64) -> ImageDesc {
        ImageDesc::compute(0, format, width, height, row, base).expect("a valid image")
    }

    fn assert_error(result: Result<ImageDesc>, status: Status, start: &str) {
        let error = result.expect_err(start);
        assert_eq!(error.status, status, "{error}");
        assert!(error.message.starts_with(start), "{error}");
    }

    /// The struct that a user would fill for an image at that address.
    fn foreign(desc: &ImageDesc, address: u64) -> Vec<ForeignPlane> {
        desc.planes()
            .iter()
            .map(|plane| ForeignPlane {
                address: address + plane.offset,
                row_stride: plane.row_stride,
                width: plane.width,
                height: plane.height,
            })
            .collect()
    }

    #[test]
    fn charges_that_are_known() {
        let one = image(Format::F32, 1, 1, 0, 0);
        assert_eq!((one.nbytes, one.planes[0].row_stride), (512, 32));
        assert_eq!(image(Format::NV12, 8, 6, 0, 0).nbytes, 1024);
        let nv12 = image(Format::NV12, 7, 5, 0, 0);
        let sizes: Vec<_> = nv12
            .planes()
            .iter()
            .map(|p| (p.offset, p.row_stride, p.width, p.height))
            .collect();
        assert_eq!(sizes, [(0, 32, 7, 5), (160, 32, 4, 3)]);
        let yuyv = image(Format::YUYV, 7, 3, 1, 0).planes[0];
        assert_eq!((yuyv.row_stride, yuyv.width), (16, 8));
        let planar = image(Format::RGBF32P, 5, 2, 1, 1);
        assert_eq!(planar.planes.map(|p| p.offset), [0, 40, 80, 0, 0, 0]);
        assert_eq!((planar.nbytes, planar.base_align), (120, 4));
        assert_eq!(image(Format::RGB8, 37, 7, 1, 0).nbytes, 1024);
    }

    #[test]
    fn compute_agrees_with_the_formula() {
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let code = 1 + random.below(Format::COUNT as u64) as u32;
            let format = Format::from_code(code, "x").expect("a format");
            let (width, height) = (1 + random.below(70) as i32, 1 + random.below(40) as i32);
            let (row, base) = (
                random.pick(&[0, 1, 2, 64, 1024]),
                random.pick(&[0, 1, 4096]),
            );
            let desc = image(format, width, height, row, base);
            let lane = format.info().planes[0].dtype.lane_bytes();
            let row_align = if row == 0 { 32 } else { lane.max(row as u64) };
            let base_align = if base == 0 { 512 } else { base as u64 }.max(row_align);
            assert_eq!(desc.base_align, base_align);
            let (mut offset, mut total) = (0, 0);
            for (plane, info) in desc.planes().iter().zip(format.info().planes()) {
                let half = |length: i32, shift| {
                    if shift == 1 {
                        length - length / 2
                    } else {
                        length
                    }
                };
                let paired = matches!(format.code(), 27..=32) && width % 2 == 1;
                assert_eq!(
                    plane.width,
                    half(width, info.width_shift) + i32::from(paired)
                );
                assert_eq!(plane.height, half(height, info.height_shift));
                let row_bytes = plane.width as u64 * info.dtype.bytes();
                let stride = row_bytes.div_ceil(row_align) * row_align;
                assert_eq!((plane.offset, plane.row_stride as u64), (offset, stride));
                offset += stride * plane.height as u64;
                total += (stride * plane.height as u64).div_ceil(base_align) * base_align;
            }
            assert_eq!(desc.nbytes, total);
            assert!(offset <= desc.nbytes);

            let planes = foreign(&desc, 4096);
            let count = planes.len() as i32;
            let wrap = ImageDesc::wrap(0, format, width, height, count, &planes)
                .expect("what is allocated can be wrapped");
            assert_eq!((wrap.nbytes, wrap.planes[0].offset), (0, 4096));
            assert!(!wrap.exact_match(&desc));
            assert_eq!(foreign(&wrap, 0), planes);
        }
    }

    #[test]
    fn compute_refuses_what_it_names() {
        let compute =
            |format, width, height, row| ImageDesc::compute(0, format, width, height, row, 0);
        let rgba = Format::RGBAF32;
        assert_error(
            compute(rgba, 0, 1, 0),
            Status::InvalidShape,
            "desc.width is 0,",
        );
        assert_error(
            compute(rgba, 1, -1, 0),
            Status::InvalidShape,
            "desc.height is -1,",
        );
        assert_error(
            compute(rgba, 1, 1, 3),
            Status::InvalidAlignment,
            "desc.row_align is 3,",
        );
        let base = ImageDesc::compute(0, rgba, 1, 1, 0, -2);
        assert_error(base, Status::InvalidAlignment, "desc.base_align is -2,");
        let start = "desc.width is 134217728 of format RGBAF32, expected a row";
        assert_error(compute(rgba, 1 << 27, 1, 0), Status::Overflow, start);
        assert!(compute(rgba, (1 << 27) - 2, 1, 0).is_ok());
        assert_error(
            compute(Format::U8, i32::MAX, 1, 0),
            Status::Overflow,
            "desc.width",
        );
        assert!(compute(Format::U8, i32::MAX, 1, 1).is_ok());
        assert_error(
            compute(Format::YUYV, i32::MAX, 1, 1),
            Status::Overflow,
            "desc.width",
        );
        assert_error(
            compute(Format::U8, 1, 1, 1 << 31),
            Status::Overflow,
            "desc.width",
        );
        let start = "desc.width and desc.height are 2147483647 and 2147483647 of format YUV8P,";
        let planes = compute(Format::YUV8P, i32::MAX, i32::MAX, 1);
        assert_error(planes, Status::Overflow, start);
        assert!(compute(Format::U8, i32::MAX, i32::MAX, 1).is_ok());
    }

    #[test]
    fn wrap_refuses_what_it_names() {
        let desc = image(Format::NV12, 7, 5, 0, 0);
        let good = foreign(&desc, 4096);
        let wrap = |planes: &[ForeignPlane]| {
            ImageDesc::wrap(0, Format::NV12, 7, 5, planes.len() as i32, planes)
        };
        assert!(wrap(&good).is_ok());
        let start = "data.plane_count is 1, expected 2 for format NV12";
        assert_error(wrap(&good[..1]), Status::InvalidArgument, start);
        let claimed = ImageDesc::wrap(0, Format::NV12, 7, 5, 2, &good[..1]);
        assert_error(claimed, Status::InvalidArgument, "data.plane_count is 2");
        let size = ImageDesc::wrap(0, Format::NV12, 7, 0, 2, &good);
        assert_error(size, Status::InvalidShape, "data.height is 0,");
        let with = |change: fn(&mut ForeignPlane)| {
            let mut planes = good.clone();
            change(&mut planes[1]);
            wrap(&planes)
        };
        let start = "data.planes[1].data is null";
        assert_error(with(|p| p.address = 0), Status::NullPointer, start);
        let start = "data.planes[1].width is 3, expected 4 for format NV12 of 7x5";
        assert_error(with(|p| p.width = 3), Status::InvalidShape, start);
        let start = "data.planes[1].height is 5, expected 3";
        assert_error(with(|p| p.height = 5), Status::InvalidShape, start);
        for stride in [7, 0, -32, 1 << 31] {
            let mut planes = good.clone();
            planes[1].row_stride = stride;
            let start = format!("data.planes[1].row_stride is {stride}, expected 8 to ");
            assert_error(wrap(&planes), Status::InvalidStrides, &start);
        }
        assert!(with(|p| p.row_stride = 8).is_ok());
        assert!(with(|p| p.row_stride = i64::from(i32::MAX)).is_ok());
        let start = "data.planes[1].data is 0xfffffffffffffff0, expected room for 72 bytes";
        assert_error(with(|p| p.address = u64::MAX - 15), Status::Overflow, start);

        let float = |address, row_stride| {
            let plane = ForeignPlane {
                address,
                row_stride,
                width: 2,
                height: 2,
            };
            ImageDesc::wrap(0, Format::F32, 2, 2, 1, &[plane])
        };
        assert_eq!(float(4, 8).map(|d| d.base_align), Ok(4));
        assert_eq!(wrap(&good).map(|d| d.base_align), Ok(1));
        assert_error(
            float(10, 8),
            Status::InvalidAlignment,
            "data.planes[0].data is 0xa,",
        );
        assert_error(
            float(6, 8),
            Status::InvalidAlignment,
            "data.planes[0].data is 0x6,",
        );
        assert_error(
            float(4, 10),
            Status::InvalidStrides,
            "data.planes[0].row_stride is 10,",
        );
    }

    #[test]
    fn exact_match_compares_format_size_and_planes() {
        let rgb = image(Format::RGB8, 7, 5, 0, 0);
        assert!(rgb.exact_match(&image(Format::RGB8, 7, 5, 0, 4096)));
        assert!(!rgb.exact_match(&image(Format::BGR8, 7, 5, 0, 0)));
        assert!(!rgb.exact_match(&image(Format::RGB8, 7, 5, 1, 0)));
        assert!(!rgb.exact_match(&image(Format::RGB8, 7, 4, 0, 0)));
        // The same plane, made of another width.
        let odd = image(Format::YUYV, 7, 5, 0, 0);
        assert!(!odd.exact_match(&image(Format::YUYV, 8, 5, 0, 0)));
    }
}
