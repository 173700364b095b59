//! What an operator makes for its result: an object from the cache that is let go again when the operator fails.

use crate::error::Result;
use crate::object::{
    self, Dtype, Format, Handle, ImageRequest, Layout, Object, ObjectKind, ObjectRef, TensorRequest,
};
use crate::timeline::Stream;

/// A new object with one user reference, which goes unless it is kept.
pub struct Output {
    handle: Handle,
    kind: ObjectKind,
}

impl Output {
    /// A tensor of the cache and device of `src`, with the default alignment, for work on `stream`.
    pub fn tensor(
        stream: &'static Stream,
        src: &Object,
        shape: &[i64],
        dtype: Dtype,
        layout: Layout,
    ) -> Result<Output> {
        // A stream that captures is refused before memory is taken.
        stream.check_not_capturing()?;
        let request = TensorRequest {
            device: src.device(),
            shape,
            dtype: dtype.code(),
            layout: layout.to_bytes(),
            row_align: 0,
            base_align: 0,
        };
        let handle = object::tensor_create(src.cache(), &request, Some(stream), None)?;
        Ok(Output {
            handle,
            kind: ObjectKind::Tensor,
        })
    }

    /// An image of the cache and device of `src`, likewise.
    pub fn image(
        stream: &'static Stream,
        src: &Object,
        format: Format,
        (width, height): (i32, i32),
    ) -> Result<Output> {
        let request = ImageRequest {
            device: src.device(),
            format: format.code(),
            width,
            height,
            row_align: 0,
            base_align: 0,
        };
        let handle = object::image_create(src.cache(), &request, Some(stream))?;
        Ok(Output {
            handle,
            kind: ObjectKind::Image,
        })
    }

    /// An empty batch of the cache and device of `src`, likewise.
    pub fn image_batch(stream: &'static Stream, src: &Object, capacity: i32) -> Result<Output> {
        stream.check_not_capturing()?;
        let handle = object::image_batch_create(src.cache(), src.device(), capacity, Some(stream))?;
        Ok(Output {
            handle,
            kind: ObjectKind::ImageBatch,
        })
    }

    pub fn object(&self) -> Result<ObjectRef> {
        object::acquire(self.handle, self.kind, "dst")
    }

    /// The reference is the caller's from now on.
    pub fn keep(self) -> Handle {
        let handle = self.handle;
        std::mem::forget(self);
        handle
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // The handle is live, so this cannot fail.
        let _ = object::release(self.handle, self.kind, "dst");
    }
}
