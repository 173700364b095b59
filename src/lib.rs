//! libcvc: a GPU object cache that every language can link.
//!
//! Layers, from the top; a module uses only those below it:
//! `ffi` (the C ABI) > `report` > `op` (operators) > `object` (tensors, images, batches) > `cache` (what may be reused and
//! when) > `memory` (bytes) > `timeline` (streams and order) > `backend` (cuda or host); `observe` and `error` serve all.

pub mod backend;
pub mod cache;
pub mod error;
pub mod memory;
pub mod object;
pub mod observe;
pub mod op;
pub mod timeline;

#[allow(non_camel_case_types, clippy::missing_safety_doc)]
pub mod ffi;
