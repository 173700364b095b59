//! How a device launches an operator's kernel: which of its forms, how many blocks, how much shared memory.
//!
//! The sources of the kernels know that; `cuda/host/device_launches.cpp` asks them. The host backend takes the same
//! kernel from the list, since all forms have one host function.

use crate::backend::{HostKernel, Kernel};

/// Threads of a block, of every kernel.
pub const BLOCK: [u32; 3] = [256, 1, 1];

/// A launch's numbers for `backend::Launch`.
#[derive(Clone, Copy)]
pub struct DeviceLaunch {
    pub kernel: &'static Kernel,
    pub grid: [u32; 3],
    pub shared_bytes: u32,
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
            // A block goes on to the blocks that a larger grid would have had.
            grid: [self.blocks.clamp(1, i64::from(i32::MAX)) as u32, 1, 1],
            shared_bytes: self.shared_bytes,
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

    static KERNELS: [Kernel; 2] = kernels(cvc_host_flip, ["first", "second"]);

    #[test]
    fn an_answer_names_its_kernel_and_its_grid_stays_in_range() {
        let answer = |blocks| LaunchAnswer {
            blocks,
            kernel: 1,
            shared_bytes: 512,
        };
        for (blocks, expected) in [(0, 1), (34560, 34560), (i64::MAX, i32::MAX as u32)] {
            let launch = answer(blocks).of(&KERNELS);
            assert_eq!(launch.kernel.name, "second");
            assert_eq!(launch.grid, [expected, 1, 1]);
            assert_eq!(launch.shared_bytes, 512);
        }
    }
}
