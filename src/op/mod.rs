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
