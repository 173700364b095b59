//! The parameter block of the NV12 kernel as Rust fills it.
//!
//! One launch of [`NV12_KERNELS`] makes RGB of 8 bits of a rectangle of frames of one size: luma of every pixel, and Cb
//! and Cr once for each two by two pixels, which all four take as they are. `cuda/nv12.cuh` has the formula. The views of
//! the frames and `dst` share no byte; the caller checks that. Launch with `items`, `items_per_task` and `device_launch`;
//! 0 items need no launch.

use std::mem::{align_of, offset_of, size_of};

use crate::backend::Kernel;
use crate::error::{Result, Status};
use crate::fail;
use crate::op::device_launch::{kernels, DeviceLaunch, LaunchAnswer};
use crate::op::view::{rows_per_task, Extents, ParameterBlock, View};

extern "C" {
    fn cvc_host_nv12(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_launch_nv12(params: *const Nv12Params, launch: *mut LaunchAnswer);
}

/// The kernel whose parameter is an [`Nv12Params`].
pub static NV12_KERNELS: [Kernel; 1] = kernels(cvc_host_nv12, ["cvc_nv12"]);

/// Which luma coefficients a frame was made with; the numbers of the C ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ColorMatrix {
    Bt601 = 0,
    Bt709 = 1,
}

impl ColorMatrix {
    /// The matrix of a `cvc_color_matrix_t`.
    pub fn from_code(code: i32, name: &str) -> Result<ColorMatrix> {
        match code {
            0 => Ok(ColorMatrix::Bt601),
            1 => Ok(ColorMatrix::Bt709),
            _ => fail!(
                Status::InvalidEnum,
                "{name} is {code}, expected CVC_COLOR_MATRIX_BT601 (0) or CVC_COLOR_MATRIX_BT709 (1)"
            ),
        }
    }

    /// Kr and Kb of ITU-R BT.601-7 and BT.709-6.
    fn luma_of_red_and_blue(self) -> (f64, f64) {
        match self {
            ColorMatrix::Bt601 => (0.299, 0.114),
            ColorMatrix::Bt709 => (0.2126, 0.0722),
        }
    }
}

/// Mirrors `cvc_nv12_coefficients` in `cuda/nv12.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nv12Coefficients {
    luma_offset: i32,
    luma: i32,
    red_of_cr: i32,
    green_of_cb: i32,
    green_of_cr: i32,
    blue_of_cb: i32,
}

impl Nv12Coefficients {
    pub fn new(matrix: ColorMatrix, full_range: bool) -> Nv12Coefficients {
        let (red, blue) = matrix.luma_of_red_and_blue();
        let green = 1.0 - red - blue;
        let (luma_offset, luma, chroma) = if full_range {
            (0, 1.0, 1.0)
        } else {
            (16, 255.0 / 219.0, 255.0 / 224.0)
        };
        let (of_cr, of_cb) = (2.0 * (1.0 - red), 2.0 * (1.0 - blue));
        let fixed = |value: f64| (value * f64::from(1 << 20)).round() as i32;
        Nv12Coefficients {
            luma_offset,
            luma: fixed(luma),
            red_of_cr: fixed(of_cr * chroma),
            green_of_cb: fixed(-of_cb * blue / green * chroma),
            green_of_cr: fixed(-of_cr * red / green * chroma),
            blue_of_cb: fixed(of_cb * chroma),
        }
    }
}

/// Where the planes of frames of one size lie, and which rectangle of them is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nv12Frames {
    /// At the rectangle's first pixel; `stride_c` is not used.
    pub luma: View,
    /// At that pixel's chroma; channel 0 is Cb, channel 1 Cr.
    pub chroma: View,
    /// The first pixel is the second one of its pair in a row, or in a column.
    pub odd_x: bool,
    pub odd_y: bool,
    pub full_range: bool,
}

impl Nv12Frames {
    /// Whole frames, without an offset.
    pub fn new(luma: View, chroma: View, full_range: bool) -> Nv12Frames {
        Nv12Frames {
            luma,
            chroma,
            odd_x: false,
            odd_y: false,
            full_range,
        }
    }

    /// The part of whole frames that begins at pixel (x, y), neither of them negative.
    pub fn from_pixel(self, x: i64, y: i64) -> Nv12Frames {
        Nv12Frames {
            luma: self.luma.from_pixel(x, y),
            chroma: self.chroma.from_pixel(x / 2, y / 2),
            odd_x: x % 2 != 0,
            odd_y: y % 2 != 0,
            full_range: self.full_range,
        }
    }
}

/// Mirrors `cvc_nv12_params` in `cuda/nv12.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Nv12Params {
    luma: View,
    chroma: View,
    dst: View,
    images: i64,
    height: i64,
    width: i64,
    odd_x: u32,
    odd_y: u32,
    coefficients: Nv12Coefficients,
}

const _: () = {
    assert!(size_of::<Nv12Coefficients>() == 24);
    assert!(offset_of!(Nv12Coefficients, luma) == 4);
    assert!(offset_of!(Nv12Coefficients, red_of_cr) == 8);
    assert!(offset_of!(Nv12Coefficients, green_of_cb) == 12);
    assert!(offset_of!(Nv12Coefficients, green_of_cr) == 16);
    assert!(offset_of!(Nv12Coefficients, blue_of_cb) == 20);
    assert!(size_of::<Nv12Params>() == 176);
    assert!(align_of::<Nv12Params>() == 8);
    assert!(offset_of!(Nv12Params, chroma) == 40);
    assert!(offset_of!(Nv12Params, dst) == 80);
    assert!(offset_of!(Nv12Params, images) == 120);
    assert!(offset_of!(Nv12Params, height) == 128);
    assert!(offset_of!(Nv12Params, width) == 136);
    assert!(offset_of!(Nv12Params, odd_x) == 144);
    assert!(offset_of!(Nv12Params, coefficients) == 152);
};

// SAFETY: `repr(C)` numbers; the size is the sum of the fields' sizes, so there is no padding.
unsafe impl ParameterBlock for Nv12Params {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are.
        unsafe { cvc_launch_nv12(self, &mut answer) };
        answer.of(&NV12_KERNELS)
    }
}

impl Nv12Params {
    /// `extents` are those of `dst`, whose channels are R, G and B.
    pub fn new(
        frames: &Nv12Frames,
        dst: View,
        extents: Extents,
        matrix: ColorMatrix,
    ) -> Nv12Params {
        Nv12Params {
            luma: frames.luma,
            chroma: frames.chroma,
            dst,
            images: extents.images,
            height: extents.height,
            width: extents.width,
            odd_x: u32::from(frames.odd_x),
            odd_y: u32::from(frames.odd_y),
            coefficients: Nv12Coefficients::new(matrix, frames.full_range),
        }
    }

    /// `Launch::items`: the rows of all images.
    pub fn items(&self) -> i64 {
        self.images * self.height
    }

    /// `Launch::items_per_task`. A pixel costs more than the bytes that it moves.
    pub fn items_per_task(&self) -> i64 {
        rows_per_task(self.width * 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_those_of_the_recommendations() {
        let list = |matrix, full_range| {
            let of = Nv12Coefficients::new(matrix, full_range);
            [
                of.luma,
                of.red_of_cr,
                of.green_of_cb,
                of.green_of_cr,
                of.blue_of_cb,
            ]
            .map(|fixed| (f64::from(fixed) / f64::from(1 << 20) * 10_000.0).round())
        };
        // As they are commonly printed, with four digits.
        let of_601 = [10_000.0, 14_020.0, -3_441.0, -7_141.0, 17_720.0];
        assert_eq!(list(ColorMatrix::Bt601, true), of_601);
        let of_709 = [10_000.0, 15_748.0, -1_873.0, -4_681.0, 18_556.0];
        assert_eq!(list(ColorMatrix::Bt709, true), of_709);
        let of_601 = [11_644.0, 15_960.0, -3_918.0, -8_130.0, 20_172.0];
        assert_eq!(list(ColorMatrix::Bt601, false), of_601);
        let of_709 = [11_644.0, 17_927.0, -2_132.0, -5_329.0, 21_124.0];
        assert_eq!(list(ColorMatrix::Bt709, false), of_709);
    }

    #[test]
    fn greys_stay_grey_and_chroma_is_repeated() {
        // Four by four pixels, and their four pairs of chroma: none, red, blue, none.
        let luma: [u8; 16] = std::array::from_fn(|i| 16 + 14 * i as u8);
        let chroma: [u8; 8] = [128, 128, 90, 240, 240, 110, 128, 128];
        let view = |data: &[u8], stride_w| View {
            data: data.as_ptr() as u64,
            stride_n: 0,
            stride_c: 1,
            stride_h: 4,
            stride_w,
        };
        let frames = Nv12Frames::new(view(&luma, 1), view(&chroma, 2), false);
        let run = |frames: &Nv12Frames, width: usize, height: usize| {
            let mut out = vec![0u8; width * height * 3];
            let dst = View {
                data: out.as_mut_ptr() as u64,
                stride_n: 0,
                stride_c: 1,
                stride_h: 3 * width as i64,
                stride_w: 3,
            };
            let extents = Extents {
                images: 1,
                channels: 3,
                height: height as i64,
                width: width as i64,
            };
            let params = Nv12Params::new(frames, dst, extents, ColorMatrix::Bt601);
            assert_eq!(params.items(), height as i64);
            // SAFETY: the block is of the kernel's own type and its views lie in live arrays.
            unsafe { (NV12_KERNELS[0].host)(params.as_bytes().as_ptr().cast(), 0, params.items()) };
            out
        };
        let whole = run(&frames, 4, 4);
        let pixel = |x: usize, y: usize| &whole[(y * 4 + x) * 3..][..3];
        assert_eq!(pixel(0, 0), [0, 0, 0]);
        assert_eq!(pixel(1, 0), [16, 16, 16]);
        assert_eq!(pixel(3, 3)[0], pixel(3, 3)[2]);
        assert!(pixel(2, 1)[0] > pixel(2, 1)[2] && pixel(0, 2)[2] > pixel(0, 2)[0]);
        // A part that begins in the middle of a pair has the same pixels.
        let part = run(&frames.from_pixel(1, 1), 3, 2);
        for (y, row) in part.chunks(9).enumerate() {
            let from = ((y + 1) * 4 + 1) * 3;
            assert_eq!(row, &whole[from..from + 9]);
        }
    }
}
