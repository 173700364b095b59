//! The parameter blocks of the flip kernels as Rust fills them.
//!
//! One launch of [`FLIP_KERNELS`] flips a tensor of any size; one of [`FLIP_VAR_SHAPE_KERNELS`] up to
//! [`FLIP_MAX_IMAGES`] images, so that larger batches take several launches. Elements are moved as bytes, whatever
//! their type. `src` and `dst` are the same view (in place) or share no byte; the caller checks that, and that shapes
//! and element types are equal. Launch with `items`, `items_per_task` and `device_launch`; 0 items need no launch.

use std::mem::{align_of, offset_of, size_of};

use crate::backend::{Kernel, MAX_PARAMS_BYTES};
use crate::error::{Result, Status};
use crate::fail;
use crate::op::device_launch::{kernels, DeviceLaunch, LaunchAnswer};
use crate::op::view::{element_bytes, rows_per_task, Extents, ParameterBlock, View};

extern "C" {
    fn cvc_host_flip(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_host_flip_var_shape(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_plan_flip(params: *mut FlipParams);
    fn cvc_launch_flip(params: *const FlipParams, launch: *mut LaunchAnswer);
    fn cvc_launch_flip_var_shape(params: *const FlipVarShapeParams, launch: *mut LaunchAnswer);
}

/// The kernels whose parameter is a [`FlipParams`], in the order of `cvc_flip_kernel_of`.
pub static FLIP_KERNELS: [Kernel; 11] = kernels(
    cvc_host_flip,
    [
        "cvc_flip",
        "cvc_flip_vertical",
        "cvc_flip_vectors_1",
        "cvc_flip_vectors_2",
        "cvc_flip_vectors_4",
        "cvc_flip_vectors_8",
        "cvc_flip_vectors_16",
        "cvc_flip_triples_1",
        "cvc_flip_triples_2",
        "cvc_flip_triples_4",
        "cvc_flip_triples_8",
    ],
);

/// The kernel whose parameter is a [`FlipVarShapeParams`].
pub static FLIP_VAR_SHAPE_KERNELS: [Kernel; 1] =
    kernels(cvc_host_flip_var_shape, ["cvc_flip_var_shape"]);

/// Images that one launch of the var-shape kernel takes.
pub const FLIP_MAX_IMAGES: usize = 36;

/// Mirrors `cvc_flip_params` in `cuda/flip.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FlipParams {
    src: View,
    dst: View,
    extents: Extents,
    element_bytes: u32,
    flip_code: i32,
    in_place: u32,
    reserved: u32,
    /// The device's, see `cvc_flip_plan`.
    plan: [u64; 12],
}

/// Mirrors `cvc_flip_image` in `cuda/flip.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct FlipImage {
    src: View,
    dst: View,
    first_item: i64,
    width: i32,
    height: i32,
    channels: i32,
    element_bytes: u32,
    code_index: i32,
    in_place: u32,
}

/// Mirrors `cvc_flip_var_shape_params` in `cuda/flip.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FlipVarShapeParams {
    codes: u64,
    code_stride: i64,
    count: i32,
    reserved: i32,
    images: [FlipImage; FLIP_MAX_IMAGES],
}

const _: () = {
    assert!(size_of::<FlipParams>() == 224);
    assert!(offset_of!(FlipParams, plan) == 128);
    assert!(align_of::<FlipParams>() == 8);
    assert!(offset_of!(FlipParams, dst) == 40);
    assert!(offset_of!(FlipParams, extents) == 80);
    assert!(offset_of!(FlipParams, element_bytes) == 112);
    assert!(offset_of!(FlipParams, flip_code) == 116);
    assert!(offset_of!(FlipParams, in_place) == 120);
    assert!(size_of::<FlipImage>() == 112);
    assert!(offset_of!(FlipImage, dst) == 40);
    assert!(offset_of!(FlipImage, first_item) == 80);
    assert!(offset_of!(FlipImage, width) == 88);
    assert!(offset_of!(FlipImage, height) == 92);
    assert!(offset_of!(FlipImage, channels) == 96);
    assert!(offset_of!(FlipImage, element_bytes) == 100);
    assert!(offset_of!(FlipImage, code_index) == 104);
    assert!(offset_of!(FlipImage, in_place) == 108);
    assert!(size_of::<FlipVarShapeParams>() == 4056);
    assert!(size_of::<FlipVarShapeParams>() <= MAX_PARAMS_BYTES);
    assert!(align_of::<FlipVarShapeParams>() == 8);
    assert!(offset_of!(FlipVarShapeParams, code_stride) == 8);
    assert!(offset_of!(FlipVarShapeParams, count) == 16);
    assert!(offset_of!(FlipVarShapeParams, images) == 24);
};

// SAFETY: `repr(C)` numbers; the size is the sum of the fields' sizes, so there is no padding.
unsafe impl ParameterBlock for FlipParams {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are.
        unsafe { cvc_launch_flip(self, &mut answer) };
        answer.of(&FLIP_KERNELS)
    }
}
// SAFETY: as above.
unsafe impl ParameterBlock for FlipVarShapeParams {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are; no code is read.
        unsafe { cvc_launch_flip_var_shape(self, &mut answer) };
        answer.of(&FLIP_VAR_SHAPE_KERNELS)
    }
}

impl FlipParams {
    /// `flip_code` 0 reverses the rows, above 0 the columns, below 0 both. `bytes` are one lane's. Error: `NotSupported`
    /// for elements of other than 1, 2, 4, 8 or 16 bytes.
    pub fn new(
        src: View,
        dst: View,
        extents: Extents,
        bytes: u64,
        flip_code: i32,
    ) -> Result<FlipParams> {
        let in_place = src.is_same(&dst, &extents);
        let mut params = FlipParams {
            src,
            dst: if in_place { src } else { dst },
            extents,
            element_bytes: element_bytes(bytes)?,
            flip_code,
            in_place: u32::from(in_place),
            reserved: 0,
            plan: [0; 12],
        };
        // SAFETY: the block is the kernels' own type, but for its plan all filled.
        unsafe { cvc_plan_flip(&mut params) };
        Ok(params)
    }

    /// `Launch::items`: rows, or pairs of rows where they are swapped in place.
    pub fn items(&self) -> i64 {
        let Extents { height, .. } = self.extents;
        let pairs = self.in_place != 0 && self.flip_code <= 0;
        let rows = Extents {
            height: if pairs { height - height / 2 } else { height },
            ..self.extents
        };
        rows.rows()
    }

    /// `Launch::items_per_task`.
    pub fn items_per_task(&self) -> i64 {
        let Extents {
            width, channels, ..
        } = self.extents;
        rows_per_task(2 * width * channels * i64::from(self.element_bytes))
    }
}

/// One image, or one of its planes where planes differ in size or are not equally spaced.
#[derive(Clone, Copy, Debug)]
pub struct FlipVarShapeImage {
    /// `stride_n` is not used.
    pub src: View,
    pub dst: View,
    pub width: i32,
    pub height: i32,
    pub channels: i32,
    /// One lane's.
    pub element_bytes: u64,
    /// Which of the codes is this image's.
    pub code_index: i32,
}

impl FlipVarShapeParams {
    /// `codes` is the device address of the S32 code 0; code i lies `code_stride` bytes times i behind. The kernel reads
    /// them: 1 reverses the columns, 0 the rows, -1 both, any other value copies.
    pub fn new(codes: u64, code_stride: i64) -> FlipVarShapeParams {
        FlipVarShapeParams {
            codes,
            code_stride,
            count: 0,
            reserved: 0,
            images: [FlipImage::default(); FLIP_MAX_IMAGES],
        }
    }

    /// Whether `FLIP_MAX_IMAGES` were pushed: launch these, and go on with a new block.
    pub fn is_full(&self) -> bool {
        self.count as usize == FLIP_MAX_IMAGES
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an image. Errors: `CapacityExceeded` for more than `FLIP_MAX_IMAGES`, `NotSupported` for elements of other
    /// than 1, 2, 4, 8 or 16 bytes.
    pub fn push(&mut self, image: &FlipVarShapeImage) -> Result<()> {
        if self.is_full() {
            fail!(
                Status::CapacityExceeded,
                "a launch of more than {FLIP_MAX_IMAGES} images, expected at most that"
            );
        }
        let extents = Extents {
            images: 1,
            channels: i64::from(image.channels),
            height: i64::from(image.height),
            width: i64::from(image.width),
        };
        let in_place = image.src.is_same(&image.dst, &extents);
        let entry = FlipImage {
            src: image.src,
            dst: if in_place { image.src } else { image.dst },
            first_item: self.items(),
            width: image.width,
            height: image.height,
            channels: image.channels,
            element_bytes: element_bytes(image.element_bytes)?,
            code_index: image.code_index,
            in_place: u32::from(in_place),
        };
        self.images[self.count as usize] = entry;
        self.count += 1;
        Ok(())
    }

    fn pushed(&self) -> &[FlipImage] {
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
        let row = |image: &FlipImage| {
            2 * i64::from(image.width) * i64::from(image.channels) * i64::from(image.element_bytes)
        };
        rows_per_task(self.pushed().iter().map(row).max().unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kernel: &Kernel, params: &impl ParameterBlock, items: i64) {
        let bytes = params.as_bytes();
        assert_eq!(bytes.as_ptr() as usize % 8, 0);
        // SAFETY: the block is of the kernel's own type and its views lie in live arrays.
        unsafe { (kernel.host)(bytes.as_ptr().cast(), 0, items) };
    }

    fn view(data: *const u8, width: i64) -> View {
        View {
            data: data as u64,
            stride_n: 0,
            stride_c: 1,
            stride_h: 2 * width,
            stride_w: 2,
        }
    }

    /// Two rows of three pixels of two channels.
    const IMAGE: [u8; 12] = [1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16];
    const EXTENTS: Extents = Extents {
        images: 1,
        channels: 2,
        height: 2,
        width: 3,
    };
    const COLUMNS: [u8; 12] = [5, 6, 3, 4, 1, 2, 15, 16, 13, 14, 11, 12];
    const ROWS: [u8; 12] = [11, 12, 13, 14, 15, 16, 1, 2, 3, 4, 5, 6];
    const BOTH: [u8; 12] = [15, 16, 13, 14, 11, 12, 5, 6, 3, 4, 1, 2];

    #[test]
    fn the_sign_of_the_code_picks_the_axes() {
        for (code, expected) in [(0, ROWS), (7, COLUMNS), (-2, BOTH)] {
            let mut out = [0u8; 12];
            let dst = view(out.as_mut_ptr(), 3);
            let params = FlipParams::new(view(IMAGE.as_ptr(), 3), dst, EXTENTS, 1, code).unwrap();
            assert_eq!(params.items(), 2);
            run(&FLIP_KERNELS[0], &params, params.items());
            assert_eq!(out, expected, "code {code}");

            let mut same = IMAGE;
            let here = view(same.as_mut_ptr(), 3);
            let params = FlipParams::new(here, here, EXTENTS, 1, code).unwrap();
            assert_eq!(params.items(), if code > 0 { 2 } else { 1 });
            run(&FLIP_KERNELS[0], &params, params.items());
            assert_eq!(same, expected, "code {code} in place");
        }
    }

    #[test]
    fn images_take_their_own_code_and_any_other_one_copies() {
        let codes = [1i32, 0, -1, 2];
        let mut out = [[0u8; 12]; 4];
        let mut params = FlipVarShapeParams::new(codes.as_ptr() as u64, 4);
        assert!(params.is_empty());
        assert_eq!(params.items(), 0);
        for (index, image) in out.iter_mut().enumerate() {
            params
                .push(&FlipVarShapeImage {
                    src: view(IMAGE.as_ptr(), 3),
                    dst: view(image.as_mut_ptr(), 3),
                    width: 3,
                    height: 2,
                    channels: 2,
                    element_bytes: 1,
                    code_index: index as i32,
                })
                .unwrap();
        }
        assert_eq!(params.items(), 8);
        run(&FLIP_VAR_SHAPE_KERNELS[0], &params, params.items());
        assert_eq!(out, [COLUMNS, ROWS, BOTH, IMAGE]);
    }

    #[test]
    fn what_the_kernels_cannot_take_is_an_error() {
        let here = view(IMAGE.as_ptr(), 3);
        let error = FlipParams::new(here, here, EXTENTS, 3, 0).unwrap_err();
        assert_eq!(error.status, Status::NotSupported);
        let image = FlipVarShapeImage {
            src: here,
            dst: here,
            width: 3,
            height: 2,
            channels: 2,
            element_bytes: 1,
            code_index: 0,
        };
        let mut params = FlipVarShapeParams::new(0, 4);
        for _ in 0..FLIP_MAX_IMAGES {
            params.push(&image).unwrap();
        }
        assert!(params.is_full());
        let error = params.push(&image).unwrap_err();
        assert_eq!(error.status, Status::CapacityExceeded);
        assert_eq!(params.items(), 2 * FLIP_MAX_IMAGES as i64);
    }
}
