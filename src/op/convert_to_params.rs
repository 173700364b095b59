//! The parameter block of the convert_to kernel as Rust fills it.
//!
//! One launch of [`CONVERT_TO_KERNELS`] converts a tensor of any size: `dst = saturate(alpha * src + beta)`.
//! - The product is rounded, then the sum, in float; in double where either side is F64 or an integer of 32 or 64 bits.
//!   Float then holds every value of the other types. 64-bit integers beyond 2^53 are rounded to the nearest double first.
//! - An integer result is rounded to nearest, half to even, or towards zero, then clamped; NaN gives 0.
//! - F16, F32 and F64 results are rounded to nearest, half to even, in both roundings, once. What is too large becomes
//!   infinite; every NaN comes out as 0x7e00, 0x7fc00000 or 0x7ff8000000000000.
//! - An alpha of 1 with a beta of 0 gives the plain saturating cast (and +0 for -0).
//!
//! `src` and `dst` are the same view of elements of one size (in place), or share no byte; the caller checks that, and
//! that shapes are equal. Launch with `items`, `items_per_task` and `device_launch`; 0 items need no launch.

use std::mem::{align_of, offset_of, size_of};

use crate::backend::Kernel;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::DtypeKind;
use crate::op::device_launch::{kernels, DeviceLaunch, LaunchAnswer};
use crate::op::view::{kind_bytes, rows_per_task, Extents, ParameterBlock, View};

extern "C" {
    fn cvc_host_convert_to(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_plan_convert_to(params: *mut ConvertToParams);
    fn cvc_launch_convert_to(params: *const ConvertToParams, launch: *mut LaunchAnswer);
}

/// The kernels whose parameter is a [`ConvertToParams`], in the order of `cvc_run_launch_of`.
pub static CONVERT_TO_KERNELS: [Kernel; 6] = kernels(
    cvc_host_convert_to,
    [
        "cvc_convert_to",
        "cvc_convert_to_plain_1",
        "cvc_convert_to_plain_2",
        "cvc_convert_to_plain_4",
        "cvc_convert_to_u8_f32",
        "cvc_convert_to_f32_f32",
    ],
);

/// How a result becomes an integer; the numbers of the C ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Rounding {
    /// To nearest, half to even.
    Nearest = 0,
    /// Towards zero.
    Truncate = 1,
}

/// Mirrors `cvc_convert_to_params` in `cuda/convert_to.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConvertToParams {
    src: View,
    dst: View,
    extents: Extents,
    alpha: f64,
    beta: f64,
    alpha_float: f32,
    beta_float: f32,
    src_kind: u32,
    dst_kind: u32,
    rounding: u32,
    reserved: u32,
    /// The device's, see `cvc_run_plan`.
    plan: [u64; 15],
}

const _: () = {
    assert!(size_of::<ConvertToParams>() == 272);
    assert!(offset_of!(ConvertToParams, plan) == 152);
    assert!(align_of::<ConvertToParams>() == 8);
    assert!(offset_of!(ConvertToParams, dst) == 40);
    assert!(offset_of!(ConvertToParams, extents) == 80);
    assert!(offset_of!(ConvertToParams, alpha) == 112);
    assert!(offset_of!(ConvertToParams, beta) == 120);
    assert!(offset_of!(ConvertToParams, alpha_float) == 128);
    assert!(offset_of!(ConvertToParams, beta_float) == 132);
    assert!(offset_of!(ConvertToParams, src_kind) == 136);
    assert!(offset_of!(ConvertToParams, dst_kind) == 140);
    assert!(offset_of!(ConvertToParams, rounding) == 144);
};

// SAFETY: `repr(C)` numbers; the size is the sum of the fields' sizes, so there is no padding.
unsafe impl ParameterBlock for ConvertToParams {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are.
        unsafe { cvc_launch_convert_to(self, &mut answer) };
        answer.of(&CONVERT_TO_KERNELS)
    }
}

/// Whether convert_to takes elements of this kind, on either side: all but the complex ones.
pub fn is_converted(kind: DtypeKind) -> bool {
    !matches!(kind, DtypeKind::C64 | DtypeKind::C128)
}

impl ConvertToParams {
    /// Each side is its view and one lane's kind. Error: `NotSupported` for a complex kind.
    pub fn new(
        (src, src_kind): (View, DtypeKind),
        (dst, dst_kind): (View, DtypeKind),
        extents: Extents,
        (alpha, beta): (f64, f64),
        rounding: Rounding,
    ) -> Result<ConvertToParams> {
        for (side, kind) in [("src", src_kind), ("dst", dst_kind)] {
            if !is_converted(kind) {
                fail!(
                    Status::NotSupported,
                    "{side} has elements of kind {kind:?}, expected an integer or a real number"
                );
            }
        }
        let mut params = ConvertToParams {
            src,
            dst,
            extents,
            alpha,
            beta,
            alpha_float: alpha as f32,
            beta_float: beta as f32,
            src_kind: src_kind as u32,
            dst_kind: dst_kind as u32,
            rounding: rounding as u32,
            reserved: 0,
            plan: [0; 15],
        };
        // SAFETY: the block is the kernels' own type, but for its plan all filled.
        unsafe { cvc_plan_convert_to(&mut params) };
        Ok(params)
    }

    /// `Launch::items`: the rows of all images.
    pub fn items(&self) -> i64 {
        self.extents.rows()
    }

    /// `Launch::items_per_task`.
    pub fn items_per_task(&self) -> i64 {
        let Extents {
            width, channels, ..
        } = self.extents;
        rows_per_task(width * channels * (kind_bytes(self.src_kind) + kind_bytes(self.dst_kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert<In: Copy, Out: Copy>(
        values: &[In],
        kinds: (DtypeKind, DtypeKind),
        factors: (f64, f64),
        rounding: Rounding,
        mut out: Vec<Out>,
    ) -> Vec<Out> {
        let row = |data: u64, bytes: usize| View {
            data,
            stride_w: bytes as i64,
            ..View::default()
        };
        let extents = Extents {
            images: 1,
            channels: 1,
            height: 1,
            width: values.len() as i64,
        };
        assert_eq!(values.len(), out.len());
        let params = ConvertToParams::new(
            (row(values.as_ptr() as u64, size_of::<In>()), kinds.0),
            (row(out.as_mut_ptr() as u64, size_of::<Out>()), kinds.1),
            extents,
            factors,
            rounding,
        )
        .unwrap();
        let block = params.as_bytes().as_ptr().cast();
        // SAFETY: the block is of the kernel's own type and its views lie in live slices.
        unsafe { (CONVERT_TO_KERNELS[0].host)(block, 0, params.items()) };
        out
    }

    #[test]
    fn ties_go_to_even_or_towards_zero_and_ends_are_clamped() {
        use DtypeKind::{F32, U8};
        let values = [
            0.5f32,
            1.5,
            2.5,
            -0.5,
            254.5,
            255.5,
            1e9,
            -1e9,
            f32::NAN,
            7.9,
        ];
        let nearest = convert(
            &values,
            (F32, U8),
            (1.0, 0.0),
            Rounding::Nearest,
            vec![9u8; 10],
        );
        assert_eq!(nearest, [0, 2, 2, 0, 254, 255, 255, 0, 0, 8]);
        let truncated = convert(
            &values,
            (F32, U8),
            (1.0, 0.0),
            Rounding::Truncate,
            vec![9u8; 10],
        );
        assert_eq!(truncated, [0, 1, 2, 0, 254, 255, 255, 0, 0, 7]);
    }

    #[test]
    fn integers_of_32_bits_keep_all_their_bits() {
        use DtypeKind::{S32, U32};
        let values = [i32::MAX, i32::MAX - 1, 16_777_217, -1, i32::MIN];
        let out = convert(
            &values,
            (S32, U32),
            (2.0, 1.0),
            Rounding::Nearest,
            vec![9u32; 5],
        );
        assert_eq!(out, [u32::MAX, u32::MAX - 2, 33_554_435, 0, 0]);
    }

    #[test]
    fn the_product_is_rounded_before_the_sum() {
        use DtypeKind::F32;
        let third = 1.0f32 / 3.0;
        let values = [3.0f32, 5.0, 7.0, 0.1];
        let expected: Vec<f32> = values.iter().map(|x| (x * third) - 1.0).collect();
        let out = convert(
            &values,
            (F32, F32),
            (f64::from(third), -1.0),
            Rounding::Nearest,
            vec![0f32; 4],
        );
        assert_eq!(out, expected);
    }

    #[test]
    fn complex_elements_are_an_error() {
        let side = (View::default(), DtypeKind::C64);
        let other = (View::default(), DtypeKind::F32);
        for (src, dst) in [(side, other), (other, side)] {
            let made =
                ConvertToParams::new(src, dst, Extents::default(), (1.0, 0.0), Rounding::Nearest);
            assert_eq!(made.unwrap_err().status, Status::NotSupported);
        }
    }
}
