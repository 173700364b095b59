//! The parameter block of the resize kernel as Rust fills it, and how its work is cut for the host's cores.
//!
//! How to launch a resize: make (or look up) the [`ResizeTable`]s that [`Resize::tables`] asks for and copy their bytes
//! to where the device reads them, 16-byte aligned; make a [`Resize`]; [`push`](Resize::push) each geometry; launch
//! one of [`RESIZE_KERNELS`] with the block, the items and the items a task of [`finish`](Resize::finish). The tables have to
//! stay until the launch has run.
//!
//! What the kernel computes, for each channel by itself:
//! - U8: Pillow's fixed point (22 fraction bits), an 8-bit intermediate: `Image.resize`'s bits for modes L and RGB.
//! - U16: sums in double in tap order, rounded half away from zero, clipped, a 16-bit intermediate: mode I;16's bits.
//! - S8, S16, S32: the same with their own range after either pass; for S32 mode I's bits where those do not overflow.
//! - F32: sums in double in tap order, a float intermediate: mode F's bits. Every NaN comes out as 0x7fc00000.
//! - F64: sums in double, a double intermediate; every NaN comes out as 0x7ff8000000000000.
//! - F16: a float intermediate; the last sum is rounded from double to half precision, once, half to even.
//! - NEAREST, and images whose size does not change: the elements as they are, of any of these types or U32.

use std::cell::RefCell;
use std::mem::{align_of, offset_of, size_of};

use smallvec::SmallVec;

use crate::backend::{Kernel, LEAST_SHARED_BYTES, MAX_PARAMS_BYTES};
use crate::error::{Result, Status};
use crate::fail;
use crate::object::DtypeKind;
use crate::op::device_launch::{kernels, DeviceLaunch, LaunchAnswer};
use crate::op::resize_table::{
    vertical_first, PassOrderRule, ResizeFilter, ResizeTable, TableForm, TableHeader,
};
use crate::op::view::ParameterBlock;
pub use crate::op::view::View as ResizeView;

extern "C" {
    fn cvc_host_resize(params: *const libc::c_void, begin: i64, end: i64);
    fn cvc_plan_resize(
        params: *mut ResizeParams,
        index: i32,
        most_across: i32,
        most_down: i32,
        packed: i32,
        most_shared: i32,
    );
    fn cvc_launch_resize(params: *const ResizeParams, launch: *mut LaunchAnswer);
}

/// The kernels whose parameter is a [`ResizeParams`], in the order of `cvc_resize_kernel`.
pub static RESIZE_KERNELS: [Kernel; 3] = kernels(
    cvc_host_resize,
    ["cvc_resize", "cvc_resize_fixed", "cvc_resize_fixed_wide"],
);

/// Geometries that one launch takes.
pub const MAX_IMAGES: usize = 28;
/// Channels (lanes of the element type among them) that an image may have.
pub const MAX_CHANNELS: u32 = 4;

/// Mirrors `cvc_resize_image` in `cuda/resize_params.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ResizeImage {
    src: ResizeView,
    dst: ResizeView,
    src_width: i32,
    src_height: i32,
    dst_width: i32,
    dst_height: i32,
    horizontal_table: u64,
    vertical_table: u64,
    items: i32,
    vertical_first: u32,
    /// The device's, see `cvc_resize_tiling`.
    tiling: [u8; 8],
}

/// Mirrors `cvc_resize_params` in `cuda/resize_params.cuh`: the kernel's one parameter.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ResizeParams {
    kind: u32,
    channels: u32,
    flags: u32,
    image_count: i32,
    batch: i32,
    reserved: [u32; 3],
    images: [ResizeImage; MAX_IMAGES],
}

const FLAG_NEAREST: u32 = 1;
const FLAG_PREMULTIPLY: u32 = 2;

const _: () = {
    assert!(size_of::<ResizeView>() == 40);
    assert!(size_of::<ResizeImage>() == 128);
    assert!(offset_of!(ResizeImage, tiling) == 120);
    assert!(offset_of!(ResizeImage, dst) == 40);
    assert!(offset_of!(ResizeImage, src_width) == 80);
    assert!(offset_of!(ResizeImage, dst_height) == 92);
    assert!(offset_of!(ResizeImage, horizontal_table) == 96);
    assert!(offset_of!(ResizeImage, vertical_table) == 104);
    assert!(offset_of!(ResizeImage, items) == 112);
    assert!(offset_of!(ResizeImage, vertical_first) == 116);
    assert!(size_of::<ResizeParams>() == 3616);
    assert!(size_of::<ResizeParams>() <= MAX_PARAMS_BYTES);
    assert!(offset_of!(ResizeParams, batch) == 16);
    assert!(offset_of!(ResizeParams, images) == 32);
    assert!(align_of::<ResizeParams>() == 8);
};

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    pub width: i32,
    pub height: i32,
}

/// What all images of one launch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResizeOptions {
    /// One lane's type. Lanes are channels here: `stride_c` is then one lane's bytes.
    pub kind: DtypeKind,
    /// 1 to `MAX_CHANNELS`.
    pub channels: u32,
    pub filter: ResizeFilter,
    pub order: PassOrderRule,
    /// U8 with 2 or 4 channels: weight the colours by the last channel, as `Image.resize` does for LA and RGBA. As there,
    /// it does nothing with NEAREST, nor where the size does not change.
    pub premultiply_alpha: bool,
}

/// Which table an axis needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableKey {
    pub in_size: i32,
    pub out_size: i32,
    pub filter: ResizeFilter,
    pub form: TableForm,
}

impl TableKey {
    /// Computes it: a few hundred microseconds at most for the sizes of pictures, so it is worth keeping.
    pub fn compute(&self) -> Result<ResizeTable> {
        ResizeTable::new(self.in_size, self.out_size, self.filter, self.form)
    }
}

/// A table where the kernel finds it.
#[derive(Clone, Copy, Debug)]
pub struct PlacedTable<'a> {
    /// As the device sees it, 16-byte aligned.
    pub address: u64,
    pub header: &'a TableHeader,
}

/// Images of one geometry: `src` and `dst` have the launch's `batch` of them, `stride_n` apart.
#[derive(Clone, Copy, Debug)]
pub struct Geometry<'a> {
    pub src: ResizeView,
    pub dst: ResizeView,
    pub src_size: Size,
    pub dst_size: Size,
    /// Those of [`Resize::tables`], in its order.
    pub horizontal: Option<PlacedTable<'a>>,
    pub vertical: Option<PlacedTable<'a>>,
}

/// All that an image's tiling depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TilingKey {
    strides: [(i64, i64); 2],
    sizes: [i32; 4],
    taps: (i32, i32),
    kind: u32,
    channels: u32,
    flags: u32,
    batch: i32,
    vertical_first: u32,
    packed: bool,
    shared_bytes: u32,
}

const MAX_TILINGS: usize = 8;

/// The tilings that a thread chose last, the oldest of which goes first.
struct Tilings {
    known: [Option<(TilingKey, [u8; 8])>; MAX_TILINGS],
    next: usize,
}

thread_local! {
    static TILINGS: RefCell<Tilings> = const {
        RefCell::new(Tilings {
            known: [None; MAX_TILINGS],
            next: 0,
        })
    };
}

impl Tilings {
    fn find(&self, key: &TilingKey) -> Option<[u8; 8]> {
        let mut known = self.known.iter().flatten();
        known
            .find(|(known, _)| known == key)
            .map(|(_, tiling)| *tiling)
    }

    fn keep(&mut self, key: TilingKey, tiling: [u8; 8]) {
        self.known[self.next] = Some((key, tiling));
        self.next = (self.next + 1) % MAX_TILINGS;
    }
}

/// A launch to be.
#[derive(Clone, Debug)]
pub struct Resize {
    options: ResizeOptions,
    params: Box<ResizeParams>,
    /// Tiles are cut as if the results lay as the sources do.
    packed: bool,
    /// What a block of the device's may have.
    shared_bytes: u32,
    costs: SmallVec<[Cost; 1]>,
}

/// A launch's numbers for [`crate::backend::Launch`].
#[derive(Clone, Debug)]
pub struct FinishedResize {
    params: Box<ResizeParams>,
    pub items: i64,
    pub items_per_task: i64,
}

// SAFETY: `repr(C)` numbers; the size is the sum of the fields' sizes, so there is no padding.
unsafe impl ParameterBlock for ResizeParams {
    fn device_launch(&self) -> DeviceLaunch {
        let mut answer = LaunchAnswer::default();
        // SAFETY: both are read and written as the types that they are.
        unsafe { cvc_launch_resize(self, &mut answer) };
        answer.of(&RESIZE_KERNELS)
    }
}

impl FinishedResize {
    /// The parameter block.
    pub fn params(&self) -> &ResizeParams {
        &self.params
    }

    /// Every image is resized in tiles where the kernel has such.
    pub fn is_tiled(&self) -> bool {
        self.params.images[..self.params.image_count as usize]
            .iter()
            .all(|image| image.tiling != [0; 8])
    }
}

impl Resize {
    /// `batch`: images of each geometry, N of a tensor and 1 for a batch of images. Errors: `InvalidShape` for a channel
    /// or batch count out of range, `NotSupported` for an element type that is not resized, or premultiplied alpha of
    /// what is not U8 with 2 or 4 channels.
    pub fn new(options: ResizeOptions, batch: i32) -> Result<Resize> {
        let ResizeOptions { kind, channels, .. } = options;
        if !(1..=MAX_CHANNELS).contains(&channels) {
            fail!(
                Status::InvalidShape,
                "resize of {channels} channels, expected 1 to {MAX_CHANNELS}"
            );
        }
        if batch < 1 {
            fail!(
                Status::InvalidShape,
                "resize of {batch} images, expected at least 1"
            );
        }
        let moved_only = options.filter == ResizeFilter::Nearest;
        let supported = is_resized(kind) || (moved_only && kind == DtypeKind::U32);
        if !supported {
            fail!(
                Status::NotSupported,
                "resize of dtype {kind:?} with filter {:?}, expected U8, S8, U16, S16, S32, F16, F32 or F64",
                options.filter
            );
        }
        let has_alpha = kind == DtypeKind::U8 && (channels == 2 || channels == 4);
        if options.premultiply_alpha && !has_alpha {
            fail!(
                Status::NotSupported,
                "premultiplied alpha of {kind:?} with {channels} channels, expected U8 with 2 or 4"
            );
        }
        let mut flags = 0;
        if moved_only {
            flags |= FLAG_NEAREST;
        } else if options.premultiply_alpha {
            flags |= FLAG_PREMULTIPLY;
        }
        Ok(Resize {
            options,
            params: Box::new(ResizeParams {
                kind: kind as u32,
                channels,
                flags,
                image_count: 0,
                batch,
                reserved: [0; 3],
                images: [ResizeImage::default(); MAX_IMAGES],
            }),
            packed: false,
            shared_bytes: LEAST_SHARED_BYTES,
            costs: SmallVec::new(),
        })
    }

    /// For a kernel that puts samples elsewhere than tiles would: it needs every image tiled, see [`FinishedResize::is_tiled`].
    pub fn with_packed_tiles(self) -> Resize {
        Resize {
            packed: true,
            ..self
        }
    }

    /// For a device whose blocks may have so much shared memory.
    pub fn with_shared_bytes(self, shared_bytes: u32) -> Resize {
        Resize {
            shared_bytes,
            ..self
        }
    }

    /// The tables that images of this geometry need: horizontal, then vertical; none for a pass that is skipped.
    pub fn tables(&self, src: Size, dst: Size) -> [Option<TableKey>; 2] {
        let ResizeOptions { kind, filter, .. } = self.options;
        let form = match (filter, kind) {
            (ResizeFilter::Nearest, DtypeKind::U16) => TableForm::IndexByProduct,
            (ResizeFilter::Nearest, _) => TableForm::Index,
            (_, DtypeKind::U8) => TableForm::Fixed,
            _ => TableForm::Real,
        };
        [(src.width, dst.width), (src.height, dst.height)].map(|(in_size, out_size)| {
            let key = TableKey {
                in_size,
                out_size,
                filter,
                form,
            };
            (form.is_index() || in_size != out_size).then_some(key)
        })
    }

    /// Adds a geometry. Errors: `CapacityExceeded` for more than `MAX_IMAGES`, `InvalidShape` for sizes below 1,
    /// `InvalidArgument` where a table is missing, too many or another geometry's.
    pub fn push(&mut self, geometry: &Geometry) -> Result<()> {
        let index = self.params.image_count as usize;
        if index == MAX_IMAGES {
            fail!(
                Status::CapacityExceeded,
                "a launch of more than {MAX_IMAGES} image sizes, expected at most that"
            );
        }
        let (src, dst) = (geometry.src_size, geometry.dst_size);
        if src.width.min(src.height).min(dst.width).min(dst.height) < 1 {
            fail!(
                Status::InvalidShape,
                "resizing {src:?} to {dst:?}, expected sizes of at least 1"
            );
        }
        let [horizontal, vertical] = self.tables(src, dst);
        check_table("horizontal", horizontal, geometry.horizontal)?;
        check_table("vertical", vertical, geometry.vertical)?;
        let first = vertical_first(
            (src.width, src.height),
            (dst.width, dst.height),
            self.options.order,
        );
        let address = |table: Option<PlacedTable>| table.map_or(0, |table| table.address);
        self.costs.push(Cost::of(geometry, first, &self.params));
        self.params.images[index] = ResizeImage {
            src: geometry.src,
            dst: geometry.dst,
            src_width: src.width,
            src_height: src.height,
            dst_width: dst.width,
            dst_height: dst.height,
            horizontal_table: address(geometry.horizontal),
            vertical_table: address(geometry.vertical),
            items: dst.height,
            vertical_first: u32::from(first),
            tiling: [0; 8],
        };
        let taps = |table: Option<PlacedTable>| table.map_or(0, |table| table.header.max_count);
        self.tile(index, taps(geometry.horizontal), taps(geometry.vertical));
        self.params.image_count += 1;
        Ok(())
    }

    /// Fills an image's tiling in, whose choice takes a few microseconds: a thread remembers its last ones.
    fn tile(&mut self, index: usize, most_across: i32, most_down: i32) {
        let image = &self.params.images[index];
        let key = TilingKey {
            strides: [image.src, image.dst].map(|view| (view.stride_c, view.stride_w)),
            sizes: [
                image.src_width,
                image.src_height,
                image.dst_width,
                image.dst_height,
            ],
            taps: (most_across, most_down),
            kind: self.params.kind,
            channels: self.params.channels,
            flags: self.params.flags,
            batch: self.params.batch,
            vertical_first: image.vertical_first,
            packed: self.packed,
            shared_bytes: self.shared_bytes,
        };
        let known = TILINGS.with_borrow(|tilings| tilings.find(&key));
        if let Some(tiling) = known {
            self.params.images[index].tiling = tiling;
            return;
        }
        // SAFETY: the block is the kernels' own type, and the image is filled but for its tiling.
        unsafe {
            cvc_plan_resize(
                &mut *self.params,
                index as i32,
                most_across,
                most_down,
                i32::from(self.packed),
                self.shared_bytes as i32,
            )
        };
        let tiling = self.params.images[index].tiling;
        TILINGS.with_borrow_mut(|tilings| tilings.keep(key, tiling));
    }

    /// How many geometries were pushed.
    pub fn len(&self) -> usize {
        self.costs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// The block, and its work cut into items of about equal size, and into tasks for `cores` cores.
    pub fn finish(mut self, cores: usize) -> FinishedResize {
        let batch = f64::from(self.params.batch);
        // The dearest output row is one item; cheaper images put several rows into one.
        let item_cost = self.costs.iter().map(Cost::of_row).fold(1.0, f64::max);
        let mut items = 0;
        let mut cost = 0.0;
        let mut dearest_cut: f64 = 0.0;
        for (image, of_image) in self.params.images.iter_mut().zip(&self.costs) {
            let wanted = (of_image.whole / item_cost).ceil() as i32;
            image.items = wanted.clamp(1, image.dst_height);
            items += i64::from(image.items) * i64::from(self.params.batch);
            cost += of_image.whole * batch;
            dearest_cut = dearest_cut.max(of_image.cut);
        }
        let tasks = tasks_for(cores, cost, dearest_cut);
        FinishedResize {
            params: self.params,
            items,
            items_per_task: (items.max(1) as u64).div_ceil(tasks) as i64,
        }
    }
}

fn is_resized(kind: DtypeKind) -> bool {
    use DtypeKind::{F16, F32, F64, S16, S32, S8, U16, U8};
    matches!(kind, U8 | S8 | U16 | S16 | S32 | F16 | F32 | F64)
}

fn check_table(axis: &str, key: Option<TableKey>, table: Option<PlacedTable>) -> Result<()> {
    let fits = match (key, table) {
        (None, None) => true,
        (Some(key), Some(PlacedTable { address, header })) => {
            address != 0
                && header.in_size == key.in_size
                && header.out_size == key.out_size
                && header.filter == key.filter as i32
                && header.form == key.form as i32
        }
        _ => false,
    };
    if !fits {
        fail!(
            Status::InvalidArgument,
            "the {axis} resize table is {table:?}, expected one for {key:?}"
        );
    }
    Ok(())
}

/// Estimated work, in multiplications.
#[derive(Clone, Copy, Debug)]
struct Cost {
    whole: f64,
    rows: f64,
    /// What a cut of the image between two tasks adds: the rows of the first pass that both need.
    cut: f64,
}

/// Below this much work a task is not worth another core: about 50 microseconds.
const TASK_COST: f64 = 400_000.0;

impl Cost {
    fn of(geometry: &Geometry, vertical_first: bool, params: &ResizeParams) -> Cost {
        let taps =
            |table: Option<PlacedTable>| table.map(|table| f64::from(table.header.max_count));
        let channels = f64::from(params.channels);
        let [in_width, in_height, out_width, out_height] = [
            geometry.src_size.width,
            geometry.src_size.height,
            geometry.dst_size.width,
            geometry.dst_size.height,
        ]
        .map(f64::from);
        let (horizontal, vertical) = (taps(geometry.horizontal), taps(geometry.vertical));
        let moved = out_width * out_height * channels;
        let (whole, cut) = match (horizontal, vertical) {
            _ if params.flags & FLAG_NEAREST != 0 => (moved, 0.0),
            (None, None) => (moved / 8.0, 0.0),
            (Some(across), None) => (moved * across, 0.0),
            (None, Some(down)) => (moved * down, 0.0),
            (Some(across), Some(down)) if vertical_first => (
                in_width * out_height * channels * down + moved * across,
                0.0,
            ),
            (Some(across), Some(down)) => {
                let row = out_width * channels * across;
                // Less than `down` rows, as neighbouring outputs lie a scale apart.
                let shared = (down - in_height / out_height).max(0.0);
                (row * in_height + moved * down, row * shared)
            }
        };
        Cost {
            whole,
            rows: out_height,
            cut,
        }
    }

    fn of_row(&self) -> f64 {
        self.whole / self.rows
    }
}

/// As many tasks a core as keep what the cuts add below an eighth of the work; else one for each core, where that gains
/// a fifth, else one.
fn tasks_for(cores: usize, cost: f64, cut: f64) -> u64 {
    let cores = cores.max(1) as u64;
    for each in (1..=4).rev() {
        let tasks = cores * each;
        if cost / tasks as f64 >= TASK_COST && tasks as f64 * cut * 8.0 <= cost {
            return tasks;
        }
    }
    let most = (cost / TASK_COST) as u64;
    let tasks = cores.min(most.max(1));
    let parallel = (cost + tasks as f64 * cut) / tasks as f64;
    if parallel < cost * 0.8 {
        tasks
    } else {
        1
    }
}

#[cfg(test)]
mod tests;
