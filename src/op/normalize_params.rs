//! The parameter blocks of the normalize kernels as Rust fills them.
//!
//! One launch of [`NORMALIZE_KERNELS`] normalises a tensor of any size; one of [`NORMALIZE_VAR_SHAPE_KERNELS`] up to
//! [`NORMALIZE_MAX_IMAGES`] images of one pair of element types, so that larger or mixed batches take several launches.
//! - `dst = saturate((src - base) * scale * global_scale + global_shift)`, each step rounded, in float; in double where
//!   either side is F64. Where the scale is a deviation, 1 / sqrt(scale * scale + epsilon) takes its place.
//! - An integer result is rounded to nearest, half to even, and clamped; NaN gives 0. F16, F32 and F64 results are
//!   rounded likewise; every NaN comes out as 0x7e00, 0x7fc00000 or 0x7ff8000000000000.
//!
//! Base and scale are each an F32 tensor in device memory (of the images' device) or up to four values. `src` and `dst`
//! are the same view of elements of one size (in place), or share no byte; the caller checks that, and that shapes are
//! equal. Launch with `items`, `items_per_task` and `device_launch`; 0 items need no launch.

use std::mem::{align_of, offset_of, size_of};

use crate::backend::{Kernel, MAX_PARAMS_BYTES};
use crate::error::{Result, Status};
use crate::fail;
use crate::object::DtypeKind;
use crate::op::device_launch::{kernels, DeviceLaunch, LaunchAnswer};
use crate::op::view::{kind_bytes, rows_per_task, Extents, ParameterBlock, View};

extern "C" {
    fn cvc_host_normalize(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_host_normalize_var_shape(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_plan_normalize(params: *mut NormalizeParams);
    fn cvc_launch_normalize(params: *const NormalizeParams, launch: *mut LaunchAnswer);
    fn cvc_launch_normalize_var_shape(
        params: *const NormalizeVarShapeParams,
        launch: *mut LaunchAnswer,
    );
}

/// The kernels whose parameter is a [`NormalizeParams`], in the order of `cvc_run_launch_of`.
pub static NORMALIZE_KERNELS: [Kernel; 6] = kernels(
    cvc_host_normalize,
    [
        "cvc_normalize",
        "cvc_normalize_plain_1",
        "cvc_normalize_plain_2",
        "cvc_normalize_plain_4",
        "cvc_normalize_u8_f32",
        "cvc_normalize_f32_f32",
    ],
);

/// The kernel whose parameter is a [`NormalizeVarShapeParams`].
pub static NORMALIZE_VAR_SHAPE_KERNELS: [Kernel; 1] =
    kernels(cvc_host_normalize_var_shape, ["cvc_normalize_var_shape"]);

/// Images that one launch of the var-shape kernel takes.
pub const NORMALIZE_MAX_IMAGES: usize = 34;

/// Mirrors `cvc_normalize_values` in `cuda/normalize.cuh`: all but the images.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NormalizeValues {
    base: View,
    scale: View,
    scale_values_double: [f64; 4],
    base_values: [f32; 4],
    scale_values: [f32; 4],
    global_scale: f32,
    global_shift: f32,
    epsilon: f32,
    scale_is_deviation: u32,
    src_kind: u32,
    dst_kind: u32,
}

/// Mirrors `cvc_normalize_params` in `cuda/normalize.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NormalizeParams {
    src: View,
    dst: View,
    extents: Extents,
    values: NormalizeValues,
    /// The device's, see `cvc_run_plan`.
    plan: [u64; 15],
}

/// Mirrors `cvc_normalize_image` in `cuda/normalize.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct NormalizeImage {
    src: View,
    dst: View,
    first_item: i64,
    width: i32,
    height: i32,
    channels: i32,
    first_channel: i32,
    image_index: i32,
    reserved: i32,
}

/// Mirrors `cvc_normalize_var_shape_params` in `cuda/normalize.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NormalizeVarShapeParams {
    values: NormalizeValues,
    count: i32,
    reserved: i32,
    images: [NormalizeImage; NORMALIZE_MAX_IMAGES],
}

const _: () = {
    assert!(size_of::<NormalizeValues>() == 168);
    assert!(offset_of!(NormalizeValues, scale) == 40);
    assert!(offset_of!(NormalizeValues, scale_values_double) == 80);
    assert!(offset_of!(NormalizeValues, base_values) == 112);
    assert!(offset_of!(NormalizeValues, scale_values) == 128);
    assert!(offset_of!(NormalizeValues, global_scale) == 144);
    assert!(offset_of!(NormalizeValues, global_shift) == 148);
    assert!(offset_of!(NormalizeValues, epsilon) == 152);
    assert!(offset_of!(NormalizeValues, scale_is_deviation) == 156);
    assert!(offset_of!(NormalizeValues, src_kind) == 160);
    assert!(offset_of!(NormalizeValues, dst_kind) == 164);
    assert!(size_of::<NormalizeParams>() == 400);
    assert!(offset_of!(NormalizeParams, plan) == 280);
    assert!(align_of::<NormalizeParams>() == 8);
    assert!(offset_of!(NormalizeParams, dst) == 40);
    assert!(offset_of!(NormalizeParams, extents) == 80);
    assert!(offset_of!(NormalizeParams, values) == 112);
    assert!(size_of::<NormalizeImage>() == 112);
    assert!(offset_of!(NormalizeImage, dst) == 40);
    assert!(offset_of!(NormalizeImage, first_item) == 80);
    assert!(offset_of!(NormalizeImage, width) == 88);
    assert!(offset_of!(NormalizeImage, height) == 92);
    assert!(offset_of!(NormalizeImage, channels) == 96);
    assert!(offset_of!(NormalizeImage, first_channel) == 100);
    assert!(offset_of!(NormalizeImage, image_index) == 104);
    assert!(size_of::<NormalizeVarShapeParams>() == 3984);
    assert!(size_of::<NormalizeVarShapeParams>() <= MAX_PARAMS_BYTES);
    assert!(align_of::<NormalizeVarShapeParams>() == 8);
    assert!(offset_of!(NormalizeVarShapeParams, count) == 168);
    assert!(offset_of!(NormalizeVarShapeParams, images) == 176);
};

// SAFETY: `repr(C)` numbers; the size is the sum of the fields' sizes, so there is no padding.
unsafe impl ParameterBlock for NormalizeParams {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are.
        unsafe { cvc_launch_normalize(self, &mut answer) };
        answer.of(&NORMALIZE_KERNELS)
    }
}
// SAFETY: as above.
unsafe impl ParameterBlock for NormalizeVarShapeParams {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are.
        unsafe { cvc_launch_normalize_var_shape(self, &mut answer) };
        answer.of(&NORMALIZE_VAR_SHAPE_KERNELS)
    }
}

/// Whether normalize takes elements of this kind, on either side.
pub fn is_normalized(kind: DtypeKind) -> bool {
    use DtypeKind::{F16, F32, F64, S16, S32, S8, U16, U8};
    matches!(kind, U8 | S8 | U16 | S16 | S32 | F16 | F32 | F64)
}

/// What is subtracted, or multiplied by.
#[derive(Clone, Copy, Debug)]
pub enum NormalizeOperand<'a> {
    /// An F32 tensor, after [`View::broadcast`]: its strides are 0 where it has one element for all indices.
    Tensor(View),
    /// One value, or one a channel.
    Values(&'a [f32]),
}

/// How to normalise.
#[derive(Clone, Copy, Debug)]
pub struct NormalizeOptions<'a> {
    pub base: NormalizeOperand<'a>,
    pub scale: NormalizeOperand<'a>,
    pub global_scale: f32,
    pub global_shift: f32,
    pub epsilon: f32,
    pub scale_is_deviation: bool,
}

impl NormalizeOperand<'_> {
    /// The view, null where there are values, and the values for channels 0 to 3.
    fn parts(self, name: &str) -> Result<(View, [f32; 4])> {
        match self {
            NormalizeOperand::Tensor(view) if view.data == 0 => fail!(
                Status::NullPointer,
                "{name} has its data at address 0, expected device memory"
            ),
            NormalizeOperand::Tensor(view) => Ok((view, [0.0; 4])),
            NormalizeOperand::Values(&[value]) => Ok((View::default(), [value; 4])),
            NormalizeOperand::Values(values) => {
                let mut four = [0.0; 4];
                match four.get_mut(..values.len()) {
                    Some(entries) if !values.is_empty() => entries.copy_from_slice(values),
                    _ => fail!(
                        Status::InvalidValue,
                        "{name} has {} values, expected 1 to 4",
                        values.len()
                    ),
                }
                Ok((View::default(), four))
            }
        }
    }
}

impl NormalizeValues {
    /// Nothing but zeros, where nothing is normalized.
    pub const NONE: NormalizeValues = NormalizeValues {
        base: View::NOWHERE,
        scale: View::NOWHERE,
        scale_values_double: [0.0; 4],
        base_values: [0.0; 4],
        scale_values: [0.0; 4],
        global_scale: 0.0,
        global_shift: 0.0,
        epsilon: 0.0,
        scale_is_deviation: 0,
        src_kind: 0,
        dst_kind: 0,
    };

    /// Errors: `NotSupported` for other kinds than U8, S8, U16, S16, S32, F16, F32 and F64; `InvalidValue` for no values or
    /// more than four; `NullPointer` for a tensor at address 0.
    pub fn new(
        src_kind: DtypeKind,
        dst_kind: DtypeKind,
        options: &NormalizeOptions,
    ) -> Result<NormalizeValues> {
        for (side, kind) in [("src", src_kind), ("dst", dst_kind)] {
            if !is_normalized(kind) {
                fail!(
                    Status::NotSupported,
                    "{side} has elements of kind {kind:?}, expected U8, S8, U16, S16, S32, F16, F32 or F64"
                );
            }
        }
        let (base, base_values) = options.base.parts("base")?;
        let (scale, mut scale_values) = options.scale.parts("scale")?;
        let mut scale_values_double = scale_values.map(f64::from);
        if options.scale_is_deviation {
            let epsilon = options.epsilon;
            scale_values = scale_values.map(|value| 1.0 / (value * value + epsilon).sqrt());
            let epsilon = f64::from(epsilon);
            scale_values_double =
                scale_values_double.map(|value| 1.0 / (value * value + epsilon).sqrt());
        }
        Ok(NormalizeValues {
            base,
            scale,
            scale_values_double,
            base_values,
            scale_values,
            global_scale: options.global_scale,
            global_shift: options.global_shift,
            epsilon: options.epsilon,
            scale_is_deviation: u32::from(options.scale_is_deviation),
            src_kind: src_kind as u32,
            dst_kind: dst_kind as u32,
        })
    }

    fn pixel_bytes(&self) -> i64 {
        kind_bytes(self.src_kind) + kind_bytes(self.dst_kind)
    }
}

impl NormalizeParams {
    pub fn new(src: View, dst: View, extents: Extents, values: NormalizeValues) -> NormalizeParams {
        let mut params = NormalizeParams {
            src,
            dst,
            extents,
            values,
            plan: [0; 15],
        };
        // SAFETY: the block is the kernels' own type, but for its plan all filled.
        unsafe { cvc_plan_normalize(&mut params) };
        params
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
        rows_per_task(width * channels * self.values.pixel_bytes())
    }
}

/// One image, or some of its planes where they are not equally spaced.
#[derive(Clone, Copy, Debug)]
pub struct NormalizeVarShapeImage {
    /// `stride_n` is not used.
    pub src: View,
    pub dst: View,
    pub width: i32,
    pub height: i32,
    pub channels: i32,
    /// The channel, for base and scale, of the first one here.
    pub first_channel: i32,
    /// The index n for base and scale.
    pub image_index: i32,
}

impl NormalizeVarShapeParams {
    pub fn new(values: NormalizeValues) -> NormalizeVarShapeParams {
        NormalizeVarShapeParams {
            values,
            count: 0,
            reserved: 0,
            images: [NormalizeImage::default(); NORMALIZE_MAX_IMAGES],
        }
    }

    /// Whether `NORMALIZE_MAX_IMAGES` were pushed: launch these, and go on with a new block.
    pub fn is_full(&self) -> bool {
        self.count as usize == NORMALIZE_MAX_IMAGES
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an image. Error: `CapacityExceeded` for more than `NORMALIZE_MAX_IMAGES`.
    pub fn push(&mut self, image: &NormalizeVarShapeImage) -> Result<()> {
        if self.is_full() {
            fail!(
                Status::CapacityExceeded,
                "a launch of more than {NORMALIZE_MAX_IMAGES} images, expected at most that"
            );
        }
        self.images[self.count as usize] = NormalizeImage {
            src: image.src,
            dst: image.dst,
            first_item: self.items(),
            width: image.width,
            height: image.height,
            channels: image.channels,
            first_channel: image.first_channel,
            image_index: image.image_index,
            reserved: 0,
        };
        self.count += 1;
        Ok(())
    }

    fn pushed(&self) -> &[NormalizeImage] {
        &self.images[..self.count as usize]
    }

    /// `Launch::items`: the rows of all images.
    pub fn items(&self) -> i64 {
        self.pushed()
            .last()
            .map_or(0, |last| last.first_item + i64::from(last.height))
    }

    /// `Launch::items_per_task`.
    pub fn items_per_task(&self) -> i64 {
        let pixel_bytes = self.values.pixel_bytes();
        let row = |image: &NormalizeImage| {
            i64::from(image.width) * i64::from(image.channels) * pixel_bytes
        };
        rows_per_task(self.pushed().iter().map(row).max().unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options<'a>(
        base: NormalizeOperand<'a>,
        scale: NormalizeOperand<'a>,
    ) -> NormalizeOptions<'a> {
        NormalizeOptions {
            base,
            scale,
            global_scale: 2.0,
            global_shift: 0.25,
            epsilon: 0.5,
            scale_is_deviation: false,
        }
    }

    fn run(kernel: &Kernel, params: &impl ParameterBlock, items: i64) {
        let block = params.as_bytes().as_ptr().cast();
        // SAFETY: the block is of the kernel's own type and its views lie in live arrays.
        unsafe { (kernel.host)(block, 0, items) };
    }

    fn pixels(data: u64, bytes: i64) -> View {
        View {
            data,
            stride_n: 4 * bytes,
            stride_c: bytes,
            stride_h: 4 * bytes,
            stride_w: 2 * bytes,
        }
    }

    /// One row of two pixels of two channels.
    const IMAGE: [u8; 4] = [10, 20, 30, 40];
    const EXTENTS: Extents = Extents {
        images: 1,
        channels: 2,
        height: 1,
        width: 2,
    };
    const BASE: [f32; 2] = [1.0, 7.0];
    const SCALE: [f32; 2] = [0.1, 0.3];

    fn expected(scale: [f32; 2]) -> [f32; 4] {
        std::array::from_fn(|i| (f32::from(IMAGE[i]) - BASE[i % 2]) * scale[i % 2] * 2.0 + 0.25)
    }

    fn normalize(options: &NormalizeOptions) -> [f32; 4] {
        let mut out = [0f32; 4];
        let values = NormalizeValues::new(DtypeKind::U8, DtypeKind::F32, options).unwrap();
        let src = pixels(IMAGE.as_ptr() as u64, 1);
        let dst = pixels(out.as_mut_ptr() as u64, 4);
        let params = NormalizeParams::new(src, dst, EXTENTS, values);
        assert_eq!(params.items(), 1);
        run(&NORMALIZE_KERNELS[0], &params, params.items());
        out
    }

    #[test]
    fn values_and_tensors_give_the_same() {
        let tensor = |data: &[f32; 2]| {
            let own = Extents {
                width: 1,
                ..EXTENTS
            };
            NormalizeOperand::Tensor(pixels(data.as_ptr() as u64, 4).broadcast(&own))
        };
        let by_value = [
            NormalizeOperand::Values(&BASE),
            NormalizeOperand::Values(&SCALE),
        ];
        let by_tensor = [tensor(&BASE), tensor(&SCALE)];
        for is_deviation in [false, true] {
            let scale = if is_deviation {
                SCALE.map(|value| 1.0 / (value * value + 0.5).sqrt())
            } else {
                SCALE
            };
            for [base, scale_operand] in [
                by_value,
                by_tensor,
                [by_value[0], by_tensor[1]],
                [by_tensor[0], by_value[1]],
            ] {
                let mut options = options(base, scale_operand);
                options.scale_is_deviation = is_deviation;
                assert_eq!(normalize(&options), expected(scale));
            }
        }
    }

    #[test]
    fn planes_of_an_image_take_their_own_channel() {
        let mut out = [0f32; 4];
        let options = options(
            NormalizeOperand::Values(&BASE),
            NormalizeOperand::Values(&SCALE),
        );
        let values = NormalizeValues::new(DtypeKind::U8, DtypeKind::F32, &options).unwrap();
        let mut params = NormalizeVarShapeParams::new(values);
        for channel in 0..2 {
            params
                .push(&NormalizeVarShapeImage {
                    src: pixels(IMAGE.as_ptr() as u64 + channel, 1),
                    dst: pixels(out.as_mut_ptr() as u64 + 4 * channel, 4),
                    width: 2,
                    height: 1,
                    channels: 1,
                    first_channel: channel as i32,
                    image_index: 0,
                })
                .unwrap();
        }
        assert_eq!(params.items(), 2);
        run(&NORMALIZE_VAR_SHAPE_KERNELS[0], &params, params.items());
        assert_eq!(out, expected(SCALE));
    }

    #[test]
    fn what_the_kernels_cannot_take_is_an_error() {
        let one = NormalizeOperand::Values(&[1.0]);
        let status = |src, dst, base, scale| {
            NormalizeValues::new(src, dst, &options(base, scale))
                .unwrap_err()
                .status
        };
        use DtypeKind::{F32, U32, U8};
        assert_eq!(status(U32, F32, one, one), Status::NotSupported);
        assert_eq!(status(U8, U32, one, one), Status::NotSupported);
        for values in [&[][..], &[1.0; 5]] {
            let wrong = NormalizeOperand::Values(values);
            assert_eq!(status(U8, F32, wrong, one), Status::InvalidValue);
            assert_eq!(status(U8, F32, one, wrong), Status::InvalidValue);
        }
        let null = NormalizeOperand::Tensor(View::default());
        assert_eq!(status(U8, F32, null, one), Status::NullPointer);
    }
}
