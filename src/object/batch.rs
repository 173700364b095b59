//! Batches: ordered references to images or tensors, and device memory for one record of each.

use parking_lot::Mutex;
use smallvec::smallvec;

use super::handle::{Handle, ObjectKind};
use super::image_desc::ImageDesc;
use super::object::{open, set_body, Body, Object, ObjectRef};
use super::tensor_desc::TensorDesc;
use super::{access, Format};
use crate::backend::{self, Copy2d, CopyKind};
use crate::cache::{self, Cache, Request, Resolved};
use crate::error::{Result, Status};
use crate::fail;
use crate::memory;
use crate::timeline::{AccessKind, Accesses, Stream};

/// Bytes of device memory for one image: a record of its planes, and its format.
pub const IMAGE_RECORD_BYTES: u64 = 152;
const FORMAT_BYTES: u64 = 8;
pub const TENSOR_RECORD_BYTES: u64 = 256;

pub struct ImageBatchBody {
    pub capacity: i32,
    pub data: u64,
    items: Mutex<Vec<ObjectRef>>,
}

pub struct TensorBatchBody {
    pub capacity: i32,
    pub data: u64,
    items: Mutex<Vec<ObjectRef>>,
}

/// What a batch of images has in common.
pub struct ImageBatchInfo {
    pub count: i32,
    /// `None` when empty or mixed.
    pub unique_format: Option<Format>,
    pub max_width: i32,
    pub max_height: i32,
}

pub struct TensorBatchInfo {
    pub count: i32,
    /// The first tensor's, which the others share in rank, dtype and layout.
    pub first: Option<TensorDesc>,
}

fn create(
    cache: &'static Cache,
    device: i32,
    capacity: i32,
    stream: Option<&'static Stream>,
    kind: ObjectKind,
    bytes: u64,
) -> Result<Handle> {
    if capacity < 1 {
        fail!(
            Status::InvalidArgument,
            "capacity is {capacity}, expected 1 or more"
        );
    }
    let class = [(kind as u64) << 32, capacity as u64, 0];
    let request = Request {
        head: [class[0], class[1], 0, 0, 0],
        dims: &[],
    };
    let acquired = cache::acquire(cache, device, &request, stream, || {
        Ok(Resolved {
            class,
            exact: smallvec![class[0], class[1]],
            bytes,
            align: memory::GRANULE,
        })
    })?;
    // SAFETY: the entry is this caller's alone.
    unsafe {
        if !acquired.same_shape {
            let data = (*acquired.entry)
                .block
                .as_ref()
                .map_or(0, |block| block.pointer);
            let items = Mutex::new(Vec::new());
            let body = if kind == ObjectKind::ImageBatch {
                Body::ImageBatch(ImageBatchBody {
                    capacity,
                    data,
                    items,
                })
            } else {
                Body::TensorBatch(TensorBatchBody {
                    capacity,
                    data,
                    items,
                })
            };
            set_body(acquired.entry, body, None);
        }
        Ok(open(acquired.entry, cache, kind))
    }
}

/// An empty batch for `capacity` images of any size and format.
pub fn image_batch_create(
    cache: &'static Cache,
    device: i32,
    capacity: i32,
    stream: Option<&'static Stream>,
) -> Result<Handle> {
    let bytes = capacity.max(0) as u64 * (IMAGE_RECORD_BYTES + FORMAT_BYTES);
    create(
        cache,
        device,
        capacity,
        stream,
        ObjectKind::ImageBatch,
        bytes,
    )
}

/// An empty batch for `capacity` tensors of one rank, dtype and layout.
pub fn tensor_batch_create(
    cache: &'static Cache,
    device: i32,
    capacity: i32,
    stream: Option<&'static Stream>,
) -> Result<Handle> {
    let bytes = capacity.max(0) as u64 * TENSOR_RECORD_BYTES;
    create(
        cache,
        device,
        capacity,
        stream,
        ObjectKind::TensorBatch,
        bytes,
    )
}

fn check_device(batch: &Object, item: &Object, argument: &str) -> Result<()> {
    let (expected, device) = (batch.device(), item.device());
    if device != expected {
        fail!(
            Status::DeviceMismatch,
            "{argument} is on device {device}, expected device {expected}, as the batch"
        );
    }
    Ok(())
}

/// Adds all of `new`, or none.
fn push(
    items: &Mutex<Vec<ObjectRef>>,
    capacity: i32,
    new: Vec<ObjectRef>,
    check: impl Fn(Option<&ObjectRef>, &[ObjectRef]) -> Result<()>,
) -> Result<()> {
    let mut items = items.lock();
    check(items.first(), &new)?;
    if items.len() + new.len() > capacity as usize {
        fail!(
            Status::CapacityExceeded,
            "count is {}, expected at most {} more in a batch that holds {} of {capacity}",
            new.len(),
            capacity as usize - items.len(),
            items.len()
        );
    }
    items.extend(new);
    Ok(())
}

/// Removes the last `count`; they are let go after the lock is.
fn pop(items: &Mutex<Vec<ObjectRef>>, count: i32) -> Result<()> {
    let removed = {
        let mut items = items.lock();
        let held = items.len();
        let Some(rest) = usize::try_from(count)
            .ok()
            .and_then(|count| held.checked_sub(count))
        else {
            let status = if count < 0 {
                Status::InvalidArgument
            } else {
                Status::CapacityUnderflow
            };
            fail!(
                status,
                "count is {count}, expected 0 to {held}, what the batch holds"
            );
        };
        items.split_off(rest)
    };
    drop(removed);
    Ok(())
}

fn clear(items: &Mutex<Vec<ObjectRef>>) {
    let removed = std::mem::take(&mut *items.lock());
    drop(removed);
}

fn get(items: &Mutex<Vec<ObjectRef>>, index: i32) -> Result<ObjectRef> {
    let items = items.lock();
    match usize::try_from(index)
        .ok()
        .and_then(|place| items.get(place))
    {
        Some(item) => Ok(item.clone()),
        None => fail!(
            Status::InvalidIndex,
            "index is {index}, expected 0 or more and less than {}, what the batch holds",
            items.len()
        ),
    }
}

macro_rules! shared_methods {
    ($body:ty) => {
        impl $body {
            pub fn pop(&self, count: i32) -> Result<()> {
                pop(&self.items, count)
            }

            pub fn clear(&self) {
                clear(&self.items);
            }

            pub fn get(&self, index: i32) -> Result<ObjectRef> {
                get(&self.items, index)
            }

            /// References to all items, in order.
            pub fn items(&self) -> Vec<ObjectRef> {
                self.items.lock().clone()
            }

            pub(super) fn drop_items(&self) {
                clear(&self.items);
            }
        }
    };
}

shared_methods!(ImageBatchBody);
shared_methods!(TensorBatchBody);

impl Object {
    pub fn image_batch(&self) -> &ImageBatchBody {
        match self.body() {
            Body::ImageBatch(batch) => batch,
            _ => unreachable!("an image batch handle leads to an image batch"),
        }
    }

    pub fn tensor_batch(&self) -> &TensorBatchBody {
        match self.body() {
            Body::TensorBatch(batch) => batch,
            _ => unreachable!("a tensor batch handle leads to a tensor batch"),
        }
    }

    /// Adds images to this image batch, all or none.
    pub fn push_images(&self, images: Vec<ObjectRef>) -> Result<()> {
        for (i, image) in images.iter().enumerate() {
            check_device(self, image, &format!("images[{i}]"))?;
        }
        let batch = self.image_batch();
        push(&batch.items, batch.capacity, images, |_, _| Ok(()))
    }

    /// Adds tensors to this tensor batch, all or none. The first one decides rank, dtype and layout.
    pub fn push_tensors(&self, tensors: Vec<ObjectRef>) -> Result<()> {
        for (i, tensor) in tensors.iter().enumerate() {
            check_device(self, tensor, &format!("tensors[{i}]"))?;
        }
        let batch = self.tensor_batch();
        push(&batch.items, batch.capacity, tensors, |first, new| {
            let first = first.or(new.first());
            for (i, tensor) in new.iter().enumerate() {
                if let Some(first) = first {
                    check_alike(first, tensor, &format!("tensors[{i}]"))?;
                }
            }
            Ok(())
        })
    }
}

fn check_alike(first: &Object, tensor: &Object, argument: &str) -> Result<()> {
    let (expected, _) = first.tensor();
    let (desc, _) = tensor.tensor();
    if desc.rank != expected.rank {
        fail!(
            Status::InvalidRank,
            "{argument} has rank {}, expected {}, as the batch's first tensor",
            desc.rank,
            expected.rank
        );
    }
    if desc.dtype != expected.dtype {
        fail!(
            Status::DtypeMismatch,
            "{argument} has dtype {}, expected {}, as the batch's first tensor",
            desc.dtype.name(),
            expected.dtype.name()
        );
    }
    if desc.layout != expected.layout {
        fail!(
            Status::InvalidLayout,
            "{argument} has layout \"{}\", expected \"{}\", as the batch's first tensor",
            desc.layout.as_str(),
            expected.layout.as_str()
        );
    }
    Ok(())
}

/// Puts a tensor in the place of another.
pub fn tensor_batch_set(batch: &ObjectRef, index: i32, tensor: ObjectRef) -> Result<()> {
    check_device(batch, &tensor, "tensor")?;
    let body = batch.tensor_batch();
    let replaced = {
        let mut items = body.items.lock();
        let count = items.len();
        let place = usize::try_from(index).ok().filter(|place| *place < count);
        let Some(place) = place else {
            fail!(
                Status::InvalidIndex,
                "index is {index}, expected 0 or more and less than {count}, what the batch holds"
            );
        };
        // A batch of one takes whatever replaces it.
        if let Some(other) = items.iter().enumerate().find(|(i, _)| *i != place) {
            check_alike(other.1, &tensor, "tensor")?;
        }
        std::mem::replace(&mut items[place], tensor)
    };
    drop(replaced);
    Ok(())
}

impl ImageBatchBody {
    pub fn info(&self) -> ImageBatchInfo {
        let items = self.items.lock();
        let mut info = ImageBatchInfo {
            count: items.len() as i32,
            unique_format: items.first().map(|image| image.image().0.format),
            max_width: 0,
            max_height: 0,
        };
        for image in items.iter() {
            let (desc, _) = image.image();
            info.max_width = info.max_width.max(desc.width);
            info.max_height = info.max_height.max(desc.height);
            if info.unique_format != Some(desc.format) {
                info.unique_format = None;
            }
        }
        info
    }

    /// Where the formats lie behind the records.
    pub fn formats_address(&self) -> u64 {
        self.data + self.capacity as u64 * IMAGE_RECORD_BYTES
    }
}

impl TensorBatchBody {
    pub fn info(&self) -> TensorBatchInfo {
        let items = self.items.lock();
        TensorBatchInfo {
            count: items.len() as i32,
            first: items.first().map(|tensor| *tensor.tensor().0),
        }
    }
}

/// Queues a copy of host words to the batch's memory and keeps them until it is done.
fn upload(batch: &ObjectRef, stream: &'static Stream, parts: Vec<(u64, Vec<u64>)>) -> Result<()> {
    let device = batch.device();
    let mut kept: Vec<Box<[u64]>> = Vec::new();
    let result = access::submit(stream, &[(batch, AccessKind::Write)], || {
        for (address, words) in parts {
            if words.is_empty() {
                continue;
            }
            let words = words.into_boxed_slice();
            let bytes = words.len() as u64 * 8;
            let copy = Copy2d {
                kind: CopyKind::HostToDevice,
                src: words.as_ptr() as u64,
                src_pitch: bytes,
                dst: address,
                dst_pitch: bytes,
                width: bytes,
                height: 1,
            };
            kept.push(words);
            backend::current()?.copy_2d(device, stream.handle(), &copy)?;
        }
        Ok(())
    });
    for words in kept {
        let mut accesses = Accesses::default();
        accesses.record(AccessKind::Read, stream, stream.last_submitted());
        memory::keep_staging(device, words, accesses);
    }
    result
}

/// Writes the records of all images to the batch's memory, in the stream's order.
pub fn image_batch_upload(batch: &ObjectRef, stream: &'static Stream) -> Result<()> {
    let body = batch.image_batch();
    let mut records = Vec::new();
    let mut formats = Vec::new();
    for image in body.items() {
        let (desc, data) = image.image();
        image_record(desc, data, &mut records);
        formats.push(u64::from(desc.format.code()));
    }
    upload(
        batch,
        stream,
        vec![(body.data, records), (body.formats_address(), formats)],
    )
}

fn image_record(desc: &ImageDesc, data: u64, out: &mut Vec<u64>) {
    out.push(u64::from(desc.plane_count) | u64::from(desc.format.code()) << 32);
    for (i, plane) in desc.planes.iter().enumerate() {
        let address = if i < desc.plane_count as usize {
            data.wrapping_add(plane.offset)
        } else {
            0
        };
        out.push(address);
        out.push(plane.row_stride as u64);
        out.push(u64::from(plane.width as u32) | u64::from(plane.height as u32) << 32);
    }
}

/// Writes the records of all tensors to the batch's memory, in the stream's order.
pub fn tensor_batch_upload(batch: &ObjectRef, stream: &'static Stream) -> Result<()> {
    let body = batch.tensor_batch();
    let mut records = Vec::new();
    for tensor in body.items() {
        let (desc, data) = tensor.tensor();
        records.push(data);
        records.push(u64::from(desc.rank) | u64::from(desc.dtype.code()) << 32);
        records.extend(desc.shape.iter().map(|dim| *dim as u64));
        records.extend(desc.strides.iter().map(|stride| *stride as u64));
    }
    upload(batch, stream, vec![(body.data, records)])
}
