//! Operators: check, order, launch. The kernels are in `cuda/`, compiled for the GPU and for the host.

pub mod copy;
