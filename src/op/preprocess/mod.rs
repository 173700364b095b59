//! Preprocess: crop, pillow_resize, flip, exchange of colours, convert_to, normalize and reformat in one call, any of
//! them, into one tensor; the frames may be NV12. The result has the bits of the operators called one after the other.
//!
//! What is to be done is decided in `plan.rs` from what `input.rs` finds in the arguments; `steps.rs` does it by the
//! operators' kernels.

mod input;
mod plan;
mod scratch;
mod steps;

use smallvec::SmallVec;

use crate::error::{Result, Status};
use crate::fail;
use crate::object::{Dtype, Handle, Layout, Object, ObjectRef};
use crate::op::convert_to::Conversion;
use crate::op::normalize::{self, Normalization};
use crate::op::nv12_params::ColorMatrix;
use crate::op::operand::{check_devices, ranges_overlap, Operand};
use crate::op::output::Output;
use crate::op::pillow_resize::{check_length, Resampling};
use crate::op::view::{Extents, View};
use crate::timeline::Stream;

pub use input::check_crop_count;
pub use plan::{in_normalize, in_params};

use input::Input;
use plan::{Plan, Target};

/// A rectangle of an image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crop {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

/// The range of the samples of frames in YCbCr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    Limited,
    Full,
}

/// What a call asks for.
pub struct Preprocessing {
    /// None: whole images; one: the same of each; else one an image.
    pub crops: Vec<Crop>,
    pub resampling: Resampling,
    /// As in flip.
    pub flip_code: Option<i32>,
    pub swap_channels: bool,
    pub conversion: Option<(Dtype, Conversion)>,
    pub normalization: Option<Normalization>,
    /// Of the `_new` forms: the result's dtype, where there is a normalization; `None`: that of what it normalizes.
    pub normalized_dtype: Option<Dtype>,
    /// A source tensor has NV12 frames. Images have formats that say so.
    pub nv12: Option<Range>,
    /// Of NV12 frames.
    pub matrix: ColorMatrix,
}

/// The result of a `_new` form.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub height: i64,
    pub width: i64,
    pub layout: Layout,
}

/// How many images a source tensor has.
pub fn images_of_tensor(src: &Object) -> i64 {
    let desc = src.tensor().0;
    desc.layout
        .index_of(b'N')
        .map_or(1, |axis| desc.dims()[axis])
}

/// How many a source batch holds at this moment.
pub fn images_of_batch(src: &Object) -> i64 {
    src.image_batch().items().len() as i64
}

const LAYOUTS: [Layout; 4] = [Layout::NHWC, Layout::HWC, Layout::NCHW, Layout::CHW];

fn check_layout(layout: Layout, name: &str) -> Result<()> {
    if !LAYOUTS.contains(&layout) {
        fail!(
            Status::InvalidLayout,
            "{name} is \"{layout}\", expected \"NHWC\", \"HWC\", \"NCHW\" or \"CHW\""
        );
    }
    Ok(())
}

/// `dst` has as many images as `src`, and the size to resize to.
pub fn preprocess(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    request: &Preprocessing,
) -> Result<()> {
    let input = Input::of_tensor(src, request)?;
    into(stream, &input, dst, request)
}

pub fn preprocess_new(
    stream: &'static Stream,
    src: &ObjectRef,
    wanted: &Wanted,
    request: &Preprocessing,
) -> Result<Handle> {
    check_wanted(wanted)?;
    let input = Input::of_tensor(src, request)?;
    new(stream, &input, wanted, request)
}

/// Likewise, the images of `src` being of any sizes.
pub fn preprocess_var_shape(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    request: &Preprocessing,
) -> Result<()> {
    let images = src.image_batch().items();
    let input = Input::of_images(src, &images, request)?;
    into(stream, &input, dst, request)
}

pub fn preprocess_var_shape_new(
    stream: &'static Stream,
    src: &ObjectRef,
    wanted: &Wanted,
    request: &Preprocessing,
) -> Result<Handle> {
    check_wanted(wanted)?;
    let images = src.image_batch().items();
    let input = Input::of_images(src, &images, request)?;
    new(stream, &input, wanted, request)
}

fn into(
    stream: &'static Stream,
    input: &Input,
    dst: &ObjectRef,
    request: &Preprocessing,
) -> Result<()> {
    let to = Operand::of(dst, "dst")?;
    check_layout(to.desc.layout, "dst's layout")?;
    check_devices((to.name, dst), ("src", input.src))?;
    let target = Target {
        view: to.view,
        dtype: to.dtype().lane(),
        extents: to.extents,
    };
    let plan = Plan::new(input, target, request)?;
    check_apart(&to, input)?;
    for tensor in plan.factors() {
        in_normalize(to.check_apart_from(tensor, false))?;
    }
    steps::run(stream, input, &plan, &to)
}

fn check_apart(to: &Operand, input: &Input) -> Result<()> {
    let own = to.range(true);
    for source in &input.sources {
        if let Some(read) = source.reads.iter().find(|read| ranges_overlap(&own, read)) {
            fail!(
                Status::InvalidArgument,
                "dst lies at {:#x} in {} bytes and overlaps {}, which lies at {:#x} in {}; expected other memory",
                own.start,
                own.length,
                source.name(),
                read.start,
                read.length
            );
        }
    }
    Ok(())
}

fn check_wanted(wanted: &Wanted) -> Result<()> {
    check_length("height", wanted.height)?;
    check_length("width", wanted.width)?;
    check_layout(wanted.layout, "layout")
}

fn new(
    stream: &'static Stream,
    input: &Input,
    wanted: &Wanted,
    request: &Preprocessing,
) -> Result<Handle> {
    let layout = wanted.layout;
    if layout.index_of(b'N').is_none() && input.images != 1 {
        fail!(
            Status::ShapeMismatch,
            "layout is \"{layout}\", which has no N, and src has {} images, expected 1",
            input.images
        );
    }
    let dtype = result_dtype(input, request)?;
    let target = Target {
        view: View::default(),
        dtype,
        extents: Extents {
            images: input.images,
            channels: input.channels,
            height: wanted.height,
            width: wanted.width,
        },
    };
    // Whatever may be refused is, before memory is taken.
    let mut plan = Plan::new(input, target, request)?;
    let extent = |label: &u8| match label {
        b'N' => target.extents.images,
        b'C' => target.extents.channels,
        b'H' => target.extents.height,
        _ => target.extents.width,
    };
    let shape: SmallVec<[i64; 4]> = layout.labels().iter().map(extent).collect();
    let output = Output::tensor(stream, input.src, &shape, dtype, layout)?;
    let object = output.object()?;
    let to = Operand::of(&object, "dst")?;
    plan.target.view = to.view;
    steps::run(stream, input, &plan, &to)?;
    Ok(output.keep())
}

/// What the last step makes of the sources; U8 where there are none that could tell.
fn result_dtype(input: &Input, request: &Preprocessing) -> Result<Dtype> {
    if let (Some(_), Some(dtype)) = (&request.normalization, request.normalized_dtype) {
        plan::check_one_lane(dtype, "params.normalize.dst_dtype")?;
        normalize::check_dtype(dtype, "params.normalize.dst_dtype")?;
        return Ok(dtype);
    }
    if let Some((dtype, _)) = &request.conversion {
        return Ok(*dtype);
    }
    let Some(first) = input.sources.first() else {
        return Ok(Dtype::U8);
    };
    for source in &input.sources {
        if source.dtype != first.dtype {
            fail!(
                Status::DtypeMismatch,
                "{} has dtype {}, expected {}, as {}; or a conversion, which makes all alike",
                source.name(),
                source.dtype,
                first.dtype,
                first.name()
            );
        }
    }
    Ok(first.dtype)
}
