//! Tensors, images and batches: descriptors, strides, views and reference counts, over the cache's entries.

mod access;
mod atomics;
mod batch;
mod dtype;
mod format;
mod handle;
mod image;
mod image_desc;
mod layout;
mod memory;
#[allow(clippy::module_inception)]
mod object;
mod reshape;
mod tensor;
mod tensor_desc;
mod word;

pub use access::{begin_access, end_access, end_use, last_stream, submit, synchronize};
pub use batch::{
    image_batch_create, image_batch_upload, tensor_batch_create, tensor_batch_set,
    tensor_batch_upload, ImageBatchInfo, TensorBatchInfo, IMAGE_RECORD_BYTES, TENSOR_RECORD_BYTES,
};
pub use dtype::{Dtype, Kind as DtypeKind};
pub use format::{Format, FormatInfo, PlaneInfo, MAX_PLANES};
pub use handle::{acquire, limit_slots, release, retain, Handle, ObjectKind};
pub use image::{image_create, image_wrap, ImageRequest};
pub use image_desc::{ForeignPlane, ImageDesc, PlaneDesc};
pub use layout::Layout;
pub use memory::{memory_alloc, memory_id, memory_record_stream, Taken as TakenMemory};
pub use object::{create_cache, install_hooks, Body, Object, ObjectRef};
pub use tensor::{
    tensor_create, tensor_from_image, tensor_from_plane, tensor_recall, tensor_reshape,
    tensor_wrap, ForeignMemory, TensorRequest,
};
pub use tensor_desc::{TensorDesc, MAX_RANK};
