//! Image formats: their planes, the element type of each, and how chroma is subsampled.

use std::fmt;

use super::dtype::Dtype;
use crate::error::{Result, Status};
use crate::fail;

pub const MAX_PLANES: usize = 6;

/// One plane of a format.
#[derive(Clone, Copy, Debug)]
pub struct PlaneInfo {
    /// A whole sample of the plane, its channels as lanes: 3U8 for RGB8, 2U8 for NV12's chroma.
    pub dtype: Dtype,
    /// Channels a sample: the lanes of `dtype`; 0 where the format has no such plane.
    pub channels: u32,
    /// A plane is the image's width halved this many times, each time rounded up.
    pub width_shift: u32,
    pub height_shift: u32,
    /// A row has a multiple of so many samples: 2 for packed 4:2:2, whose pixels share chroma in
    /// pairs (a sample is 2U8, one luma and one chroma byte), else 1.
    pub width_multiple: u32,
}

impl PlaneInfo {
    /// Samples a row of this plane in an image of that width (at least 1). In 64 bits, because an
    /// odd width that is rounded up may leave 32.
    pub fn plane_width(&self, width: i32) -> i64 {
        let multiple = i64::from(self.width_multiple);
        (shifted(width, self.width_shift) + multiple - 1) / multiple * multiple
    }

    /// Rows of this plane in an image of that height.
    pub fn plane_height(&self, height: i32) -> i64 {
        shifted(height, self.height_shift)
    }
}

/// `length` over two to the `shift`, rounded up.
fn shifted(length: i32, shift: u32) -> i64 {
    let unit = 1i64 << shift;
    (i64::from(length) + unit - 1) >> shift
}

/// What a format is made of.
#[derive(Clone, Copy, Debug)]
pub struct FormatInfo {
    /// The enum's name without CVC_FORMAT_.
    pub name: &'static str,
    pub plane_count: u32,
    /// Channels of the image: 3 for NV12 and YUYV, 4 for RGBA8.
    pub channel_count: u32,
    /// The first `plane_count` count; the others have 0 channels.
    pub planes: [PlaneInfo; MAX_PLANES],
}

impl FormatInfo {
    pub fn planes(&self) -> &[PlaneInfo] {
        &self.planes[..self.plane_count as usize]
    }

    /// Whether chroma has fewer samples than luma, in planes of its own or packed.
    pub fn is_subsampled(&self) -> bool {
        self.planes().iter().any(|plane| {
            plane.width_shift != 0 || plane.height_shift != 0 || plane.width_multiple != 1
        })
    }

    /// Whether an image is one tensor: not subsampled, and either one plane or one channel a plane.
    pub fn is_tensor(&self) -> bool {
        !self.is_subsampled() && (self.plane_count == 1 || self.plane_count == self.channel_count)
    }
}

const NO_PLANE: PlaneInfo = PlaneInfo {
    dtype: Dtype::U8,
    channels: 0,
    width_shift: 0,
    height_shift: 0,
    width_multiple: 1,
};

const fn plane(lane: Dtype, channels: u32) -> PlaneInfo {
    match lane.with_lanes(channels) {
        Some(dtype) => PlaneInfo {
            dtype,
            channels,
            ..NO_PLANE
        },
        None => panic!("a format's plane has 1 to 4 channels"),
    }
}

/// One plane, channels interleaved.
const fn packed(name: &'static str, lane: Dtype, channels: u32) -> FormatInfo {
    let mut planes = [NO_PLANE; MAX_PLANES];
    planes[0] = plane(lane, channels);
    FormatInfo {
        name,
        plane_count: 1,
        channel_count: channels,
        planes,
    }
}

/// One plane a channel.
const fn planar(name: &'static str, lane: Dtype, channels: u32) -> FormatInfo {
    let mut planes = [NO_PLANE; MAX_PLANES];
    let mut i = 0;
    while i < channels as usize {
        planes[i] = plane(lane, 1);
        i += 1;
    }
    FormatInfo {
        name,
        plane_count: channels,
        channel_count: channels,
        planes,
    }
}

/// A luma plane and a plane of interleaved chroma, whose axes are halved `shift` times.
const fn semi_planar(name: &'static str, shift: u32) -> FormatInfo {
    let mut planes = [NO_PLANE; MAX_PLANES];
    planes[0] = plane(Dtype::U8, 1);
    planes[1] = plane(Dtype::U8, 2);
    planes[1].width_shift = shift;
    planes[1].height_shift = shift;
    FormatInfo {
        name,
        plane_count: 2,
        channel_count: 3,
        planes,
    }
}

/// One plane of 4:2:2: two bytes a pixel, chroma shared by a pair of pixels.
const fn packed_422(name: &'static str) -> FormatInfo {
    let mut planes = [NO_PLANE; MAX_PLANES];
    planes[0] = plane(Dtype::U8, 2);
    planes[0].width_multiple = 2;
    FormatInfo {
        name,
        plane_count: 1,
        channel_count: 3,
        planes,
    }
}

/// An image format's code, as it crosses the C ABI. Every value of this type is a valid one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Format(u32);

macro_rules! formats {
    ($($code:literal $name:ident = $text:literal $build:ident($($argument:expr),*);)*) => {
        impl Format {
            $(pub const $name: Format = Format($code);)*
        }
        /// By code less one.
        static FORMATS: [FormatInfo; Format::COUNT] = [$($build($text $(, $argument)*)),*];
        const CODES: [u32; Format::COUNT] = [$($code),*];
    };
}

// The table is read by code, so it must have no gap.
const _: () = {
    let mut i = 0;
    while i < CODES.len() {
        assert!(CODES[i] as usize == i + 1);
        i += 1;
    }
};

formats! {
    1 U8 = "U8" packed(Dtype::U8, 1);
    2 S8 = "S8" packed(Dtype::S8, 1);
    3 U16 = "U16" packed(Dtype::U16, 1);
    4 S16 = "S16" packed(Dtype::S16, 1);
    5 U32 = "U32" packed(Dtype::U32, 1);
    6 S32 = "S32" packed(Dtype::S32, 1);
    7 F16 = "F16" packed(Dtype::F16, 1);
    8 F32 = "F32" packed(Dtype::F32, 1);
    9 F64 = "F64" packed(Dtype::F64, 1);
    10 S16X2 = "2S16" packed(Dtype::S16, 2);
    11 F16X2 = "2F16" packed(Dtype::F16, 2);
    12 F32X2 = "2F32" packed(Dtype::F32, 2);
    13 C64 = "C64" packed(Dtype::C64, 1);
    14 C64X2 = "2C64" packed(Dtype::C64, 2);
    15 C128 = "C128" packed(Dtype::C128, 1);
    16 C128X2 = "2C128" packed(Dtype::C128, 2);
    17 Y8 = "Y8" packed(Dtype::U8, 1);
    18 Y8_ER = "Y8_ER" packed(Dtype::U8, 1);
    19 Y16 = "Y16" packed(Dtype::U16, 1);
    20 Y16_ER = "Y16_ER" packed(Dtype::U16, 1);
    21 NV12 = "NV12" semi_planar(1);
    22 NV12_ER = "NV12_ER" semi_planar(1);
    23 NV21 = "NV21" semi_planar(1);
    24 NV21_ER = "NV21_ER" semi_planar(1);
    25 NV24 = "NV24" semi_planar(0);
    26 NV24_ER = "NV24_ER" semi_planar(0);
    27 UYVY = "UYVY" packed_422();
    28 UYVY_ER = "UYVY_ER" packed_422();
    29 VYUY = "VYUY" packed_422();
    30 VYUY_ER = "VYUY_ER" packed_422();
    31 YUYV = "YUYV" packed_422();
    32 YUYV_ER = "YUYV_ER" packed_422();
    33 YUV8 = "YUV8" packed(Dtype::U8, 3);
    34 YUV8_ER = "YUV8_ER" packed(Dtype::U8, 3);
    35 YUV8P = "YUV8P" planar(Dtype::U8, 3);
    36 YUV8P_ER = "YUV8P_ER" planar(Dtype::U8, 3);
    37 RGB8 = "RGB8" packed(Dtype::U8, 3);
    38 BGR8 = "BGR8" packed(Dtype::U8, 3);
    39 RGBA8 = "RGBA8" packed(Dtype::U8, 4);
    40 BGRA8 = "BGRA8" packed(Dtype::U8, 4);
    41 RGB8P = "RGB8P" planar(Dtype::U8, 3);
    42 BGR8P = "BGR8P" planar(Dtype::U8, 3);
    43 RGBA8P = "RGBA8P" planar(Dtype::U8, 4);
    44 BGRA8P = "BGRA8P" planar(Dtype::U8, 4);
    45 RGBF16 = "RGBF16" packed(Dtype::F16, 3);
    46 BGRF16 = "BGRF16" packed(Dtype::F16, 3);
    47 RGBAF16 = "RGBAF16" packed(Dtype::F16, 4);
    48 BGRAF16 = "BGRAF16" packed(Dtype::F16, 4);
    49 RGBF16P = "RGBF16P" planar(Dtype::F16, 3);
    50 BGRF16P = "BGRF16P" planar(Dtype::F16, 3);
    51 RGBAF16P = "RGBAF16P" planar(Dtype::F16, 4);
    52 BGRAF16P = "BGRAF16P" planar(Dtype::F16, 4);
    53 RGBF32 = "RGBF32" packed(Dtype::F32, 3);
    54 BGRF32 = "BGRF32" packed(Dtype::F32, 3);
    55 RGBAF32 = "RGBAF32" packed(Dtype::F32, 4);
    56 BGRAF32 = "BGRAF32" packed(Dtype::F32, 4);
    57 RGBF32P = "RGBF32P" planar(Dtype::F32, 3);
    58 BGRF32P = "BGRF32P" planar(Dtype::F32, 3);
    59 RGBAF32P = "RGBAF32P" planar(Dtype::F32, 4);
    60 BGRAF32P = "BGRAF32P" planar(Dtype::F32, 4);
    61 HSV8 = "HSV8" packed(Dtype::U8, 3);
    62 CMYK8 = "CMYK8" packed(Dtype::U8, 4);
    63 YCCK8 = "YCCK8" packed(Dtype::U8, 4);
}

impl Format {
    /// How many formats there are; their codes are 1 to this.
    pub const COUNT: usize = 63;

    /// The format of that code; `InvalidEnum`, naming `argument`, where there is none (0 included).
    pub fn from_code(code: u32, argument: &str) -> Result<Format> {
        if code == 0 || code as usize > Format::COUNT {
            fail!(
                Status::InvalidEnum,
                "{argument} is {code}, expected a CVC_FORMAT_ value: 1 to {}",
                Format::COUNT
            );
        }
        Ok(Format(code))
    }

    pub const fn code(self) -> u32 {
        self.0
    }

    pub fn info(self) -> &'static FormatInfo {
        &FORMATS[self.0 as usize - 1]
    }

    /// The enum's name without CVC_FORMAT_.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_one_to_the_count() {
        let mut names = HashSet::new();
        for code in 1..=Format::COUNT as u32 {
            let format = Format::from_code(code, "x").expect("a format");
            assert_eq!(format.code(), code);
            assert_eq!(format.to_string(), format.name());
            assert!(names.insert(format.name()));
        }
        for code in [0, Format::COUNT as u32 + 1, u32::MAX] {
            let error = Format::from_code(code, "desc.format").expect_err("no format");
            assert_eq!(error.status, Status::InvalidEnum);
            assert!(error
                .message
                .starts_with(&format!("desc.format is {code}, expected ")));
        }
    }

    /// What a name says must be what the table says.
    #[test]
    fn names_describe_the_planes() {
        for code in 1..=Format::COUNT as u32 {
            let format = Format::from_code(code, "x").expect("a format");
            let info = format.info();
            let name = format.name();
            let stem = name.strip_suffix("_ER").unwrap_or(name);
            let colour = stem.trim_end_matches(|c: char| c == 'P' || c.is_ascii_digit());
            let colour = colour.strip_suffix('F').unwrap_or(colour);
            let lane_of = |dtype: Dtype| dtype.lane().name();
            assert_eq!(
                info.planes().iter().all(|plane| plane.channels > 0),
                info.planes[info.plane_count as usize..]
                    .iter()
                    .all(|plane| plane.channels == 0)
            );
            for plane in info.planes() {
                assert_eq!(plane.channels, plane.dtype.lanes());
            }
            match colour {
                "RGB" | "BGR" | "YUV" | "HSV" | "RGBA" | "BGRA" | "CMYK" | "YCCK" | "Y" => {
                    let channels = colour.len() as u32;
                    assert_eq!(info.channel_count, channels, "{name}");
                    let planar = stem.ends_with('P');
                    assert_eq!(info.plane_count, if planar { channels } else { 1 });
                    let lane = if stem.contains("F16") {
                        "F16"
                    } else if stem.contains("F32") {
                        "F32"
                    } else if stem.contains("16") {
                        "U16"
                    } else {
                        "U8"
                    };
                    assert!(info.planes().iter().all(|p| lane_of(p.dtype) == lane));
                    assert!(info.is_tensor(), "{name}");
                }
                "NV" => {
                    assert_eq!((info.plane_count, info.channel_count), (2, 3));
                    assert_eq!(info.planes[0].dtype.name(), "U8");
                    assert_eq!(info.planes[1].dtype.name(), "2U8");
                    let shift = u32::from(!stem.ends_with("24"));
                    assert_eq!(info.planes[0].width_shift + info.planes[0].height_shift, 0);
                    assert_eq!(info.planes[1].width_shift, shift);
                    assert_eq!(info.planes[1].height_shift, shift);
                    assert_eq!(info.is_subsampled(), shift == 1);
                    assert!(!info.is_tensor());
                }
                "UYVY" | "VYUY" | "YUYV" => {
                    assert_eq!((info.plane_count, info.channel_count), (1, 3));
                    assert_eq!(info.planes[0].dtype.name(), "2U8");
                    assert!(info.is_subsampled() && !info.is_tensor());
                }
                _ => {
                    assert_eq!(info.plane_count, 1);
                    assert_eq!(info.planes[0].dtype.name(), name);
                    assert_eq!(info.channel_count, info.planes[0].channels);
                    assert!(info.is_tensor());
                }
            }
        }
    }

    #[test]
    fn chroma_axes_round_up() {
        let sizes = |format: Format, plane: usize, width: i32, height: i32| {
            let plane = format.info().planes[plane];
            (plane.plane_width(width), plane.plane_height(height))
        };
        assert_eq!(sizes(Format::NV12, 0, 7, 5), (7, 5));
        assert_eq!(sizes(Format::NV12, 1, 7, 5), (4, 3));
        assert_eq!(sizes(Format::NV12, 1, 8, 6), (4, 3));
        assert_eq!(sizes(Format::NV12, 1, 1, 1), (1, 1));
        assert_eq!(sizes(Format::NV24, 1, 7, 5), (7, 5));
        assert_eq!(sizes(Format::YUYV, 0, 7, 5), (8, 5));
        assert_eq!(sizes(Format::YUYV, 0, 8, 5), (8, 5));
        assert_eq!(sizes(Format::YUYV, 0, i32::MAX, 1), (1 << 31, 1));
        assert_eq!(
            sizes(Format::NV12, 1, i32::MAX, i32::MAX),
            (1 << 30, 1 << 30)
        );
    }
}
