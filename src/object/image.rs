//! Making images: from the cache, and around foreign planes.

use smallvec::smallvec;

use super::handle::{Handle, ObjectKind};
use super::image_desc::ImageDesc;
use super::object::{open, set_body, Body, Object};
use super::tensor::{acquire_foreign, ForeignMemory};
use super::Format;
use crate::cache::{self, Cache, Request, Resolved, ShellKind};
use crate::error::Result;
use crate::timeline::Stream;

/// An image as asked for, before anything of it is checked.
pub struct ImageRequest {
    pub device: i32,
    pub format: u32,
    pub width: i32,
    pub height: i32,
    pub row_align: i64,
    pub base_align: i64,
}

impl ImageRequest {
    pub fn resolve(&self) -> Result<ImageDesc> {
        let format = Format::from_code(self.format, "desc.format")?;
        ImageDesc::compute(
            self.device,
            format,
            self.width,
            self.height,
            self.row_align,
            self.base_align,
        )
    }
}

/// An image from the cache; `stream` as for tensors.
pub fn image_create(
    cache: &'static Cache,
    wanted: &ImageRequest,
    stream: Option<&'static Stream>,
) -> Result<Handle> {
    let request = Request {
        head: [
            u64::from(wanted.format) | (ObjectKind::Image as u64) << 32,
            u64::from(wanted.width as u32) | u64::from(wanted.height as u32) << 32,
            0,
            wanted.row_align as u64,
            wanted.base_align as u64,
        ],
        dims: &[],
    };
    let mut resolved = None;
    let acquired = cache::acquire(cache, wanted.device, &request, stream, || {
        let desc = resolved.insert(wanted.resolve()?);
        Ok(key_of(desc))
    })?;
    // SAFETY: the entry is this caller's alone.
    unsafe {
        if !acquired.same_shape {
            let desc = match resolved {
                Some(desc) => desc,
                None => wanted.resolve()?,
            };
            let data = (*acquired.entry)
                .block
                .as_ref()
                .map_or(0, |block| block.pointer);
            set_body(acquired.entry, Body::Image { desc, data }, None);
        }
        Ok(open(acquired.entry, cache, ObjectKind::Image))
    }
}

fn key_of(desc: &ImageDesc) -> Resolved {
    let class = [
        u64::from(desc.format.code()) | (ObjectKind::Image as u64) << 32,
        0,
        0,
    ];
    let mut exact: smallvec::SmallVec<[u64; 36]> = smallvec![
        class[0],
        desc.base_align,
        desc.width as u64,
        desc.height as u64
    ];
    exact.extend(desc.planes().iter().map(|plane| plane.row_stride as u64));
    Resolved {
        class,
        exact,
        bytes: desc.nbytes,
        align: desc.base_align,
    }
}

/// An image around foreign planes, whose addresses stand as offsets in `desc`.
pub fn image_wrap(
    cache: &'static Cache,
    desc: ImageDesc,
    foreign: &ForeignMemory,
) -> Result<Handle> {
    let entry = acquire_foreign(cache, desc.device, ShellKind::Image, foreign)?;
    // SAFETY: the entry is this caller's alone.
    unsafe {
        set_body(entry, Body::Image { desc, data: 0 }, None);
        Ok(open(entry, cache, ObjectKind::Image))
    }
}

impl Object {
    /// The image that an object of that kind is: its planes lie at their offsets from the address.
    pub fn image(&self) -> (&ImageDesc, u64) {
        match self.body() {
            Body::Image { desc, data } => (desc, *data),
            _ => unreachable!("an image handle leads to an image"),
        }
    }
}
