//! The parameter block of the reformat kernel, the general strided copy, as Rust fills it.
//!
//! One launch of [`REFORMAT_KERNELS`] copies element (n, c, y, x) of one view to the same place of another, byte for byte:
//! the views tell the layouts, so that NHWC to NCHW, its inverse, padding, packing and reversing are all the same call. A
//! tensor of more dimensions takes one launch for each index of those left over; of fewer, extents of 1. Rows are the
//! unit of work, so a tensor of one long row is better seen as several rows. The views are the same or share no byte,
//! except that `src` may repeat elements by strides of 0; the caller checks that, and that shapes and element types are
//! equal. Launch with `items`, `items_per_task` and `device_launch`; 0 items need no launch.

use std::mem::{align_of, offset_of, size_of};

use crate::backend::Kernel;
use crate::error::Result;
use crate::op::device_launch::{kernels, DeviceLaunch, LaunchAnswer};
use crate::op::view::{element_bytes, rows_per_task, Extents, ParameterBlock, View};

extern "C" {
    fn cvc_host_reformat(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_plan_reformat(params: *mut ReformatParams);
    fn cvc_launch_reformat(params: *const ReformatParams, launch: *mut LaunchAnswer);
}

/// The kernels whose parameter is a [`ReformatParams`], in the order of `cvc_reformat_kernel_of`.
pub static REFORMAT_KERNELS: [Kernel; 26] = kernels(
    cvc_host_reformat,
    [
        "cvc_reformat",
        "cvc_reformat_rows",
        "cvc_reformat_split_1_2",
        "cvc_reformat_merge_1_2",
        "cvc_reformat_split_1_3",
        "cvc_reformat_merge_1_3",
        "cvc_reformat_split_1_4",
        "cvc_reformat_merge_1_4",
        "cvc_reformat_split_2_2",
        "cvc_reformat_merge_2_2",
        "cvc_reformat_split_2_3",
        "cvc_reformat_merge_2_3",
        "cvc_reformat_split_2_4",
        "cvc_reformat_merge_2_4",
        "cvc_reformat_split_4_2",
        "cvc_reformat_merge_4_2",
        "cvc_reformat_split_4_3",
        "cvc_reformat_merge_4_3",
        "cvc_reformat_split_4_4",
        "cvc_reformat_merge_4_4",
        "cvc_reformat_split_8_2",
        "cvc_reformat_merge_8_2",
        "cvc_reformat_split_8_3",
        "cvc_reformat_merge_8_3",
        "cvc_reformat_split_8_4",
        "cvc_reformat_merge_8_4",
    ],
);

/// Mirrors `cvc_reformat_params` in `cuda/reformat.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ReformatParams {
    src: View,
    dst: View,
    extents: Extents,
    element_bytes: u32,
    reserved: u32,
    /// The device's, see `cvc_reformat_plan`.
    plan: [u64; 12],
}

const _: () = {
    assert!(size_of::<ReformatParams>() == 216);
    assert!(offset_of!(ReformatParams, plan) == 120);
    assert!(align_of::<ReformatParams>() == 8);
    assert!(offset_of!(ReformatParams, dst) == 40);
    assert!(offset_of!(ReformatParams, extents) == 80);
    assert!(offset_of!(ReformatParams, element_bytes) == 112);
};

// SAFETY: `repr(C)` numbers; the size is the sum of the fields' sizes, so there is no padding.
unsafe impl ParameterBlock for ReformatParams {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are.
        unsafe { cvc_launch_reformat(self, &mut answer) };
        answer.of(&REFORMAT_KERNELS)
    }
}

impl ReformatParams {
    /// `bytes` are one lane's. Error: `NotSupported` for elements of other than 1, 2, 4, 8 or 16 bytes.
    pub fn new(src: View, dst: View, extents: Extents, bytes: u64) -> Result<ReformatParams> {
        let mut params = ReformatParams {
            src,
            dst: if src.is_same(&dst, &extents) {
                src
            } else {
                dst
            },
            extents,
            element_bytes: element_bytes(bytes)?,
            reserved: 0,
            plan: [0; 12],
        };
        // SAFETY: the block is the kernels' own type, but for its plan all filled.
        unsafe { cvc_plan_reformat(&mut params) };
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
        rows_per_task(2 * width * channels * i64::from(self.element_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn interleaved_rows_become_planes_and_come_back() {
        let extents = Extents {
            images: 2,
            channels: 3,
            height: 2,
            width: 40,
        };
        let interleaved: Vec<u16> = (0..480).collect();
        let mut planar = vec![0u16; 480];
        let mut back = vec![0u16; 480];
        let by_pixel = |data: *const u16| View {
            data: data as u64,
            stride_n: 480,
            stride_c: 2,
            stride_h: 240,
            stride_w: 6,
        };
        let by_plane = View {
            data: planar.as_mut_ptr() as u64,
            stride_n: 480,
            stride_c: 160,
            stride_h: 80,
            stride_w: 2,
        };
        for (src, dst) in [
            (by_pixel(interleaved.as_ptr()), by_plane),
            (by_plane, by_pixel(back.as_mut_ptr())),
        ] {
            let params = ReformatParams::new(src, dst, extents, 2).unwrap();
            assert_eq!(params.items(), 4);
            let block = params.as_bytes().as_ptr().cast();
            // SAFETY: the block is of the kernel's own type and its views lie in live vectors.
            unsafe { (REFORMAT_KERNELS[0].host)(block, 0, params.items()) };
        }
        for (index, value) in planar.iter().enumerate() {
            let [n, c, y, x] = [index / 240, index / 80 % 3, index / 40 % 2, index % 40];
            assert_eq!(usize::from(*value), n * 240 + y * 120 + x * 3 + c);
        }
        assert_eq!(back, interleaved);
    }

    #[test]
    fn an_odd_element_size_is_an_error() {
        let error = ReformatParams::new(View::default(), View::default(), Extents::default(), 32);
        assert_eq!(error.unwrap_err().status, Status::NotSupported);
    }
}
