//! The parameter block of the fused preprocess kernel as Rust fills it.
//!
//! One launch resizes U8 images and, sample by sample, converts and normalizes the result and puts it where it belongs:
//! with the bits of the kernels of these steps one after the other. Launch with the items of the [`FinishedResize`] and
//! with `device_launch`.

use std::mem::{align_of, offset_of, size_of};

use crate::backend::{Kernel, MAX_PARAMS_BYTES};
use crate::object::DtypeKind;
use crate::op::convert_to_params::Rounding;
use crate::op::device_launch::{kernels, DeviceLaunch, LaunchAnswer};
use crate::op::normalize_params::NormalizeValues;
use crate::op::resize_params::{FinishedResize, ResizeParams};
use crate::op::view::ParameterBlock;

extern "C" {
    fn cvc_host_preprocess(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_plan_preprocess(params: *mut PreprocessParams);
    fn cvc_launch_preprocess(params: *const PreprocessParams, launch: *mut LaunchAnswer);
}

/// The kernels whose parameter is a [`PreprocessParams`], in the order of `cvc_launch_preprocess`.
pub static PREPROCESS_KERNELS: [Kernel; 2] = kernels(
    cvc_host_preprocess,
    ["cvc_preprocess", "cvc_preprocess_wide"],
);

/// What becomes of a sample after the resize. Mirrors `cvc_preprocess_finish` in `cuda/preprocess.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    normalize: NormalizeValues,
    alpha: f64,
    beta: f64,
    convert_kind: u32,
    rounding: u32,
    normalizes: u32,
    swaps: u32,
    dst_kind: u32,
    /// The device's.
    values_offset: u32,
}

/// Mirrors `cvc_preprocess_params` in `cuda/preprocess.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PreprocessParams {
    resize: ResizeParams,
    finish: Finish,
}

const _: () = {
    assert!(size_of::<Finish>() == 208);
    assert!(offset_of!(Finish, alpha) == 168);
    assert!(offset_of!(Finish, convert_kind) == 184);
    assert!(offset_of!(Finish, values_offset) == 204);
    assert!(size_of::<PreprocessParams>() == 3824);
    assert!(size_of::<PreprocessParams>() <= MAX_PARAMS_BYTES);
    assert!(offset_of!(PreprocessParams, finish) == 3616);
    assert!(align_of::<PreprocessParams>() == 8);
};

/// Whether the kernel computes with elements of this kind: its table has 4 bytes for each value.
pub fn is_fused(kind: DtypeKind) -> bool {
    use DtypeKind::{F16, F32, S16, S32, S8, U16, U32, U8};
    matches!(kind, U8 | S8 | U16 | S16 | U32 | S32 | F16 | F32)
}

impl Finish {
    /// `normalize` starts from the converted samples, U8 where they are not. Base and scale are the same for all pixels of
    /// a channel; every kind [`is_fused`].
    pub fn new(
        conversion: Option<(DtypeKind, (f64, f64), Rounding)>,
        normalize: Option<NormalizeValues>,
        swaps: bool,
        dst: DtypeKind,
    ) -> Finish {
        let (alpha, beta) = conversion.map_or((1.0, 0.0), |(_, factors, _)| factors);
        Finish {
            normalizes: u32::from(normalize.is_some()),
            normalize: normalize.unwrap_or(NormalizeValues::NONE),
            alpha,
            beta,
            convert_kind: conversion.map_or(0, |(kind, _, _)| kind as u32),
            rounding: conversion.map_or(0, |(_, _, rounding)| rounding as u32),
            swaps: u32::from(swaps),
            dst_kind: dst as u32,
            values_offset: 0,
        }
    }
}

// SAFETY: `repr(C)` numbers; the size is the sum of the fields' sizes, so there is no padding.
unsafe impl ParameterBlock for PreprocessParams {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are.
        unsafe { cvc_launch_preprocess(self, &mut answer) };
        answer.of(&PREPROCESS_KERNELS)
    }
}

impl PreprocessParams {
    /// All images of `resize` are tiled, and their `dst` is that of the result.
    pub fn new(resize: &FinishedResize, finish: &Finish) -> PreprocessParams {
        let mut params = PreprocessParams {
            resize: *resize.params(),
            finish: *finish,
        };
        // SAFETY: the block is the kernels' own type, but for the offset all filled.
        unsafe { cvc_plan_preprocess(&mut params) };
        params
    }
}
