//! How a device launches an operator's kernel: which of its forms, how many blocks, how much shared memory.
//!
//! The sources of the kernels know that; `cuda/host/device_launches.cpp` asks them. The host backend takes the same
//! kernel from the list, since all forms have one host function.

use crate::backend::{HostKernel, Kernel};
use crate::error::{Result, Status};
use crate::fail;

/// Threads of a block, of every kernel.
pub const BLOCK: [u32; 3] = [256, 1, 1];

/// The kernels whose blocks go on to those that a larger grid would have had (`gridDim` in `cuda/`). A block of any other
/// does its own work alone.
const LOOP_OVER_THE_GRID: [&str; 8] = [
    "cvc_convert_to",
    "cvc_flip",
    "cvc_flip_var_shape",
    "cvc_normalize",
    "cvc_normalize_var_shape",
    "cvc_nv12",
    "cvc_reformat",
    "cvc_resize",
];

/// The most blocks of a grid, in the one dimension that kernels use.
const MAX_BLOCKS: i64 = i32::MAX as i64;

/// A launch's numbers for `backend::Launch`.
#[derive(Clone, Copy)]
pub struct DeviceLaunch {
    pub kernel: &'static Kernel,
    pub shared_bytes: u32,
    /// How many blocks there are to do.
    blocks: i64,
}

impl DeviceLaunch {
    /// Errors: `Overflow` where the blocks are more than a grid has and those of the kernel do not go on to others.
    pub fn grid(&self) -> Result<[u32; 3]> {
        let name = self.kernel.name;
        if self.blocks > MAX_BLOCKS && !LOOP_OVER_THE_GRID.contains(&name) {
            fail!(
                Status::Overflow,
                "kernel {name} needs {} blocks for all elements, expected at most {MAX_BLOCKS}; pass fewer or smaller \
                 images a call",
                self.blocks
            );
        }
        Ok([self.blocks.clamp(1, MAX_BLOCKS) as u32, 1, 1])
    }
}

/// Mirrors `cvc_device_launch` in `cuda/host/device_launches.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchAnswer {
    blocks: i64,
    kernel: u32,
    shared_bytes: u32,
}

impl LaunchAnswer {
    /// `kernels` are the operator's, in the order that the answer counts in.
    pub fn of(&self, kernels: &'static [Kernel]) -> DeviceLaunch {
        DeviceLaunch {
            kernel: &kernels[self.kernel as usize],
            shared_bytes: self.shared_bytes,
            blocks: self.blocks,
        }
    }
}

/// A kernel for each name, all with one host function.
pub const fn kernels<const N: usize>(host: HostKernel, names: [&'static str; N]) -> [Kernel; N] {
    let mut list = [Kernel { name: "", host }; N];
    let mut at = 0;
    while at < N {
        list[at].name = names[at];
        at += 1;
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" {
        fn cvc_host_flip(params: *const libc::c_void, begin: i64, end: i64);
    }

    static KERNELS: [Kernel; 2] = kernels(cvc_host_flip, ["cvc_flip", "cvc_flip_vertical"]);

    fn launch(kernel: u32, blocks: i64) -> DeviceLaunch {
        let answer = LaunchAnswer {
            blocks,
            kernel,
            shared_bytes: 512,
        };
        answer.of(&KERNELS)
    }

    #[test]
    fn an_answer_names_its_kernel_and_its_grid_stays_in_range() {
        let most = i32::MAX as u32;
        for (blocks, expected) in [(0, 1), (34560, 34560), (MAX_BLOCKS, most)] {
            let launch = launch(1, blocks);
            assert_eq!(launch.kernel.name, "cvc_flip_vertical");
            assert_eq!(launch.grid(), Ok([expected, 1, 1]));
            assert_eq!(launch.shared_bytes, 512);
        }
        // Its blocks take over those that are left out.
        assert_eq!(launch(0, i64::MAX).grid(), Ok([most, 1, 1]));
    }

    #[test]
    fn a_kernel_that_would_leave_elements_out_is_refused() {
        let error = launch(1, MAX_BLOCKS + 1).grid().expect_err("too many");
        assert_eq!(error.status, Status::Overflow);
        for part in ["cvc_flip_vertical", "2147483648 blocks", "2147483647"] {
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn those_that_loop_are_kernels() {
        let names: Vec<&str> = crate::op::KERNELS
            .iter()
            .flat_map(|kernels| kernels.iter().map(|kernel| kernel.name))
            .collect();
        for name in LOOP_OVER_THE_GRID {
            assert!(names.contains(&name), "{name}");
        }
    }
}
