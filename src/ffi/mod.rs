//! The C interface: one file a noun. Each function checks its arguments, calls the layer below and maps the error; this is
//! the only place with `extern "C"` functions.
//!
//! Rules for callers, once: every function may be called from any thread. Results come back through trailing pointers,
//! which are set to null or zero on failure. Structs begin with `struct_size`, set by the caller to its `sizeof`. Handles
//! are counted: create, get and retain add a reference, release drops one. The text of the thread's last error is read with
//! `cvc_last_error_message`.

mod arguments;
mod cache;
mod constants;
mod copy;
mod device;
mod dlpack;
mod error;
mod host;
mod image;
mod image_batch;
mod instrument;
mod memory;
mod operators;
mod operators_var_shape;
mod preprocess;
mod python;
mod stream;
mod structs;
mod tensor;
mod tensor_batch;

pub use constants::*;
pub use structs::*;
