//! Operators: check, order, launch. The kernels are in `cuda/`, compiled for the GPU and for the host.

pub mod convert_to;
pub mod convert_to_params;
pub mod copy;
pub mod device_launch;
pub mod flip;
pub mod flip_params;
mod launch;
pub mod normalize;
pub mod normalize_params;
pub mod nv12_params;
mod operand;
mod output;
pub mod pillow_resize;
pub mod preprocess;
pub mod preprocess_params;
pub mod reformat;
pub mod reformat_params;
pub mod resize_params;
pub mod resize_store;
pub mod resize_table;
mod var_shape;
pub mod view;

use crate::backend::{self, Kernel};
use crate::memory;

/// Every kernel that operators launch.
static KERNELS: [&[Kernel]; 9] = [
    &convert_to_params::CONVERT_TO_KERNELS,
    &flip_params::FLIP_KERNELS,
    &flip_params::FLIP_VAR_SHAPE_KERNELS,
    &normalize_params::NORMALIZE_KERNELS,
    &normalize_params::NORMALIZE_VAR_SHAPE_KERNELS,
    &nv12_params::NV12_KERNELS,
    &preprocess_params::PREPROCESS_KERNELS,
    &reformat_params::REFORMAT_KERNELS,
    &resize_params::RESIZE_KERNELS,
];

/// Tells the backend which kernels a device has to load before the first launch.
pub fn install_kernels() {
    backend::set_kernels(&KERNELS);
    memory::set_spare(resize_store::clear);
}

/// Whether the kernel is one of those.
fn is_listed(kernel: &'static Kernel) -> bool {
    let listed = |kernels: &&[Kernel]| kernels.iter().any(|other| std::ptr::eq(other, kernel));
    KERNELS.iter().any(listed)
}
