//! Pillow's resize: every filter and order of passes of Pillow, channel by channel.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::backend::{self, ByteRange};
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, DtypeKind, Handle, ObjectRef};
use crate::op::launch;
use crate::op::operand::Operand;
use crate::op::output::Output;
use crate::op::preprocess_params::{Finish, PreprocessParams};
use crate::op::resize_params::{
    FinishedResize, Geometry, Resize, ResizeOptions, ResizeView, Size, MAX_IMAGES,
};
use crate::op::resize_store::{self, Table};
use crate::op::resize_table::{PassOrderRule, ResizeFilter, MAX_SIZE};
use crate::op::var_shape::{self, Batches, ObjectAccesses, PlacedImage, Ranges};
use crate::op::view::View;
use crate::timeline::{AccessKind, Stream};

/// How to resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resampling {
    pub filter: ResizeFilter,
    pub order: PassOrderRule,
    pub premultiply_alpha: bool,
}

impl Resampling {
    /// Refuses elements that are not resized so.
    pub(super) fn check(
        &self,
        kind: DtypeKind,
        channels: i64,
        whose: impl Fn() -> String,
    ) -> Result<()> {
        use DtypeKind::{F16, F32, F64, S16, S32, S8, U16, U32, U8};
        let known = match kind {
            U8 | S8 | U16 | S16 | S32 | F16 | F32 | F64 => true,
            U32 => self.filter == ResizeFilter::Nearest,
            _ => false,
        };
        if !known {
            fail!(
                Status::NotSupported,
                "{} has dtype {kind:?}, expected U8, S8, U16, S16, S32, F16, F32 or F64 (U32 with NEAREST alone)",
                whose()
            );
        }
        if self.premultiply_alpha && !(kind == U8 && matches!(channels, 2 | 4)) {
            fail!(
                Status::NotSupported,
                "flags has CVC_RESIZE_PREMULTIPLY_ALPHA and {} has {channels} channels of {kind:?}, expected 2 or 4 of U8",
                whose()
            );
        }
        Ok(())
    }

    pub(super) fn options(&self, kind: DtypeKind, channels: i64) -> ResizeOptions {
        ResizeOptions {
            kind,
            channels: channels as u32,
            filter: self.filter,
            order: self.order,
            premultiply_alpha: self.premultiply_alpha,
        }
    }
}

fn resize_view(view: View) -> ResizeView {
    ResizeView {
        data: view.data,
        stride_n: view.stride_n,
        stride_c: view.stride_c,
        stride_h: view.stride_h,
        stride_w: view.stride_w,
    }
}

/// Threads that the host backend may have for one launch.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Images of one element type and number of channels, on their way into one launch.
struct Batch {
    options: ResizeOptions,
    resize: Resize,
    ranges: Ranges,
}

/// A launch that is ready to be queued.
struct Ready {
    finished: FinishedResize,
    ranges: Ranges,
}

/// Collects images into launches, and the tables that they read.
pub(super) struct Launches {
    device: i32,
    stream: &'static Stream,
    images: i32,
    /// What becomes of the samples before they are put into `dst`.
    finish: Option<Finish>,
    open: SmallVec<[Batch; 1]>,
    ready: SmallVec<[Ready; 1]>,
    tables: SmallVec<[Arc<Table>; 4]>,
}

impl Launches {
    /// `images`: how many images each geometry has.
    pub(super) fn new(device: i32, stream: &'static Stream, images: i32) -> Launches {
        Launches {
            device,
            stream,
            images,
            finish: None,
            open: SmallVec::new(),
            ready: SmallVec::new(),
            tables: SmallVec::new(),
        }
    }

    /// Launches of the fused preprocess kernel, of U8. They may be queued where they are all `is_tiled`.
    pub(super) fn finishing(self, finish: Finish) -> Launches {
        Launches {
            finish: Some(finish),
            ..self
        }
    }

    pub(super) fn push(
        &mut self,
        options: ResizeOptions,
        (src, src_size): (View, Size),
        (dst, dst_size): (View, Size),
        ranges: impl IntoIterator<Item = ByteRange>,
    ) -> Result<()> {
        let place = match self.open.iter().position(|batch| batch.options == options) {
            Some(place) => place,
            None => {
                let resize = Resize::new(options, self.images)?
                    .with_shared_bytes(backend::current()?.block_shared_bytes(self.device));
                self.open.push(Batch {
                    options,
                    resize: match self.finish {
                        Some(_) => resize.with_packed_tiles(),
                        None => resize,
                    },
                    ranges: Ranges::new(),
                });
                self.open.len() - 1
            }
        };
        let keys = self.open[place].resize.tables(src_size, dst_size);
        let mut tables: [Option<Arc<Table>>; 2] = [None, None];
        for (table, key) in tables.iter_mut().zip(keys) {
            if let Some(key) = key {
                *table = Some(resize_store::find(self.device, &key, self.stream)?);
            }
        }
        let [horizontal, vertical] = &tables;
        let batch = &mut self.open[place];
        batch.resize.push(&Geometry {
            src: resize_view(src),
            dst: resize_view(dst),
            src_size,
            dst_size,
            horizontal: horizontal.as_deref().map(Table::placed),
            vertical: vertical.as_deref().map(Table::placed),
        })?;
        batch.ranges.extend(ranges);
        self.tables.extend(tables.into_iter().flatten());
        if batch.resize.len() == MAX_IMAGES {
            let full = self.open.swap_remove(place);
            self.finish(full);
        }
        Ok(())
    }

    fn finish(&mut self, batch: Batch) {
        self.ready.push(Ready {
            finished: batch.resize.finish(cores()),
            ranges: batch.ranges,
        });
    }

    /// No more images come.
    pub(super) fn close(&mut self) {
        for batch in std::mem::take(&mut self.open) {
            self.finish(batch);
        }
    }

    /// Of closed ones.
    pub(super) fn is_tiled(&self) -> bool {
        self.ready.iter().all(|ready| ready.finished.is_tiled())
    }

    /// Queues all launches of closed ones, among the work of a submission.
    pub(super) fn queue(&self) -> Result<()> {
        for table in &self.tables {
            table.order(self.stream)?;
        }
        debug_assert!(self.finish.is_none() || self.is_tiled());
        for ready in &self.ready {
            let Ready { finished, ranges } = ready;
            let work = (finished.items, finished.items_per_task);
            match &self.finish {
                None => launch::rows(self.stream, finished.params(), work, ranges)?,
                Some(finish) => {
                    let params = PreprocessParams::new(finished, finish);
                    launch::rows(self.stream, &params, work, ranges)?;
                }
            }
        }
        Ok(())
    }

    /// After a submission, also one that failed: part of the work may be queued.
    pub(super) fn note(&self) {
        for table in &self.tables {
            table.note(self.stream);
        }
    }

    /// Queues all launches.
    fn submit(mut self, accesses: &ObjectAccesses) -> Result<()> {
        self.close();
        let result = object::submit(self.stream, accesses, || self.queue());
        self.note();
        result
    }
}

fn source<'a>(src: &'a ObjectRef, resampling: &Resampling) -> Result<Operand<'a>> {
    let from = Operand::of(src, "src")?.with_few_channels()?;
    if from.desc.layout.index_of(b'H').is_none() {
        fail!(
            Status::InvalidLayout,
            "src has layout \"{}\", expected one with H and W",
            from.desc.layout
        );
    }
    resampling.check(from.kind(), from.extents.channels, || "src".to_string())?;
    Ok(from)
}

/// A tensor's width and height as the kernel takes them, with as many images.
fn size_of(operand: &Operand) -> Result<(Size, i32)> {
    let extents = &operand.extents;
    let limit = i64::from(MAX_SIZE);
    for (label, extent, most) in [
        ("H", extents.height, limit),
        ("W", extents.width, limit),
        ("N", extents.images, i64::from(i32::MAX)),
    ] {
        if !(1..=most).contains(&extent) {
            fail!(
                Status::InvalidShape,
                "{} has {extent} for {label}, expected 1 to {most}",
                operand.name
            );
        }
    }
    let size = Size {
        width: extents.width as i32,
        height: extents.height as i32,
    };
    Ok((size, extents.images as i32))
}

/// `dst` has the layout, dtype, images and channels of `src`, and shares no memory with it.
pub fn pillow_resize(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    resampling: &Resampling,
) -> Result<()> {
    let from = source(src, resampling)?;
    let to = Operand::of(dst, "dst")?;
    to.check_placed_as(&from)?;
    to.check_dtype_as(&from)?;
    for (label, extent, expected) in [
        ("N", to.extents.images, from.extents.images),
        ("C", to.extents.channels, from.extents.channels),
    ] {
        if extent != expected {
            fail!(
                Status::ShapeMismatch,
                "dst has {extent} for {label} in shape {:?}, expected {expected}, as src",
                to.desc.dims()
            );
        }
    }
    if to.is_empty() {
        return Ok(());
    }
    to.check_apart_from(&from, false)?;
    let (src_size, images) = size_of(&from)?;
    let (dst_size, _) = size_of(&to)?;
    let mut launches = Launches::new(from.desc.device, stream, images);
    launches.push(
        resampling.options(from.kind(), from.extents.channels),
        (from.view, src_size),
        (to.view, dst_size),
        [from.range(false), to.range(true)],
    )?;
    let mut accesses = ObjectAccesses::new();
    accesses.push((from.object, AccessKind::Read));
    accesses.push((to.object, AccessKind::Write));
    launches.submit(&accesses)
}

pub(super) fn check_length(name: &str, length: i64) -> Result<()> {
    if !(1..=i64::from(MAX_SIZE)).contains(&length) {
        fail!(
            Status::InvalidShape,
            "{name} is {length}, expected 1 to {MAX_SIZE} pixels"
        );
    }
    Ok(())
}

pub fn pillow_resize_new(
    stream: &'static Stream,
    src: &ObjectRef,
    (height, width): (i64, i64),
    resampling: &Resampling,
) -> Result<Handle> {
    check_length("height", height)?;
    check_length("width", width)?;
    let from = source(src, resampling)?;
    let layout = from.desc.layout;
    if !from.is_empty() {
        size_of(&from)?;
    } else if from.extents.images != 0 && from.extents.channels != 0 {
        fail!(
            Status::InvalidShape,
            "src has shape {:?}, expected at least one row and column",
            from.desc.dims()
        );
    }
    let mut shape: SmallVec<[i64; 4]> = SmallVec::from_slice(from.desc.dims());
    for (dim, label) in shape.iter_mut().zip(layout.labels()) {
        match label {
            b'H' => *dim = height,
            b'W' => *dim = width,
            _ => {}
        }
    }
    let output = Output::tensor(stream, src, &shape, from.dtype(), layout)?;
    pillow_resize(stream, src, &output.object()?, resampling)?;
    Ok(output.keep())
}

fn sources(src: &ObjectRef, resampling: &Resampling) -> Result<Vec<ObjectRef>> {
    let images = var_shape::images_of(src, "src")?;
    for (i, image) in images.iter().enumerate() {
        let image = PlacedImage::of(image);
        let channels = i64::from(image.channels());
        resampling.check(image.kind(), channels, || format!("src[{i}]"))?;
        check_size(image.size(), || format!("src[{i}]"))?;
    }
    Ok(images)
}

fn check_size((width, height): (i32, i32), whose: impl Fn() -> String) -> Result<()> {
    if width.max(height) > MAX_SIZE {
        fail!(
            Status::InvalidShape,
            "{} is {width}x{height}, expected at most {MAX_SIZE} pixels a side",
            whose()
        );
    }
    Ok(())
}

/// `dst` has as many images as `src`, of the same formats and of any sizes, and shares no memory with it.
pub fn pillow_resize_var_shape(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    resampling: &Resampling,
) -> Result<()> {
    resize_images(stream, (src, sources(src, resampling)?), dst, resampling)
}

fn resize_images(
    stream: &'static Stream,
    (src, images): (&ObjectRef, Vec<ObjectRef>),
    dst: &ObjectRef,
    resampling: &Resampling,
) -> Result<()> {
    let batches = Batches::new(src, images, dst)?;
    batches.check_formats()?;
    batches.check_apart(false)?;
    for (i, pair) in batches.pairs().enumerate() {
        check_size(pair.dst.size(), || format!("dst[{i}]"))?;
        if resampling.premultiply_alpha && pair.parts().len() != 1 {
            fail!(
                Status::NotSupported,
                "flags has CVC_RESIZE_PREMULTIPLY_ALPHA, and the planes of src[{i}] or dst[{i}] are not equally spaced"
            );
        }
    }
    if batches.is_empty() {
        return Ok(());
    }
    let size = |(width, height)| Size { width, height };
    let mut launches = Launches::new(src.device(), stream, 1);
    for pair in batches.pairs() {
        for part in pair.parts() {
            launches.push(
                resampling.options(pair.src.kind(), i64::from(part.channels)),
                (part.src, size(pair.src.size())),
                (part.dst, size(pair.dst.size())),
                part.ranges,
            )?;
        }
    }
    let accesses = batches.accesses();
    launches.submit(&accesses)
}

/// `sizes` has the width and height of each image of the result.
pub fn pillow_resize_var_shape_new(
    stream: &'static Stream,
    src: &ObjectRef,
    sizes: &[[i32; 2]],
    resampling: &Resampling,
) -> Result<Handle> {
    let images = sources(src, resampling)?;
    if sizes.len() != images.len() {
        fail!(
            Status::ShapeMismatch,
            "count is {}, expected {}, as many sizes as src holds images",
            sizes.len(),
            images.len()
        );
    }
    for (i, &length) in sizes.iter().flatten().enumerate() {
        if !(1..=MAX_SIZE).contains(&length) {
            check_length(&format!("sizes[{i}]"), i64::from(length))?;
        }
    }
    let wanted = images
        .iter()
        .zip(sizes)
        .map(|(image, &[width, height])| (image.image().0.format, (width, height)));
    let output = var_shape::output(stream, src, wanted)?;
    resize_images(stream, (src, images), &output.object()?, resampling)?;
    Ok(output.keep())
}
