//! Flip: rows, columns or both reversed, element by element, of any dtype.

use smallvec::smallvec;

use crate::backend::ByteRange;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, Dtype, Handle, ObjectRef};
use crate::observe::mistake::{self, Mistake};
use crate::op::flip_params::{FlipParams, FlipVarShapeImage, FlipVarShapeParams};
use crate::op::launch;
use crate::op::operand::{check_devices, Operand};
use crate::op::output::Output;
use crate::op::var_shape::{self, Batches, Ranges};
use crate::timeline::{AccessKind, Stream};

fn source(src: &ObjectRef) -> Result<Operand<'_>> {
    Operand::of(src, "src")?.with_few_channels()
}

/// `dst` has the layout, shape and dtype of `src`, or is `src`.
pub fn flip(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    flip_code: i32,
) -> Result<()> {
    let from = source(src)?;
    let to = Operand::of(dst, "dst")?;
    to.check_placed_as(&from)?;
    to.check_shape_as(&from)?;
    to.check_dtype_as(&from)?;
    to.check_apart_from(&from, true)?;
    if from.is_empty() {
        return Ok(());
    }
    let bytes = from.dtype().lane_bytes();
    let params = FlipParams::new(from.view, to.view, from.extents, bytes, flip_code)?;
    let work = (params.items(), params.items_per_task());
    let accesses = [
        (from.object, AccessKind::Read),
        (to.object, AccessKind::Write),
    ];
    object::submit(stream, &accesses, || {
        let ranges = [from.range(false), to.range(true)];
        launch::rows(stream, &params, work, &ranges)
    })
}

pub fn flip_new(stream: &'static Stream, src: &ObjectRef, flip_code: i32) -> Result<Handle> {
    let from = source(src)?;
    let desc = from.desc;
    let output = Output::tensor(stream, src, desc.dims(), desc.dtype, desc.layout)?;
    flip(stream, src, &output.object()?, flip_code)?;
    Ok(output.keep())
}

/// The address of the first code and the bytes from one to the next.
fn check_codes(codes: &ObjectRef, src: &ObjectRef, count: usize) -> Result<(u64, i64)> {
    check_devices(("flip_codes", codes), ("src", src))?;
    let (desc, data) = codes.tensor();
    if desc.dtype != Dtype::S32 {
        fail!(
            Status::DtypeMismatch,
            "flip_codes has dtype {}, expected S32",
            desc.dtype
        );
    }
    if desc.rank != 1 {
        fail!(
            Status::InvalidRank,
            "flip_codes has rank {}, expected 1: one code an image",
            desc.rank
        );
    }
    if !matches!(desc.layout.as_str(), "" | "N") {
        fail!(
            Status::InvalidLayout,
            "flip_codes has layout \"{}\", expected \"N\" or none",
            desc.layout
        );
    }
    if desc.dims()[0] < count as i64 {
        fail!(
            Status::ShapeMismatch,
            "flip_codes has {} codes, expected at least {count}, one for each image of src",
            desc.dims()[0]
        );
    }
    Ok((data, desc.strides()[0]))
}

/// `dst` has images of the sizes and formats of those of `src`, or is `src`. The kernel reads the codes: 1, 0 and -1 as in
/// `flip`; any other copies.
pub fn flip_var_shape(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    codes: &ObjectRef,
) -> Result<()> {
    flip_images(stream, (src, var_shape::images_of(src, "src")?), dst, codes)
}

fn flip_images(
    stream: &'static Stream,
    (src, images): (&ObjectRef, Vec<ObjectRef>),
    dst: &ObjectRef,
    codes: &ObjectRef,
) -> Result<()> {
    let (first_code, code_stride) = check_codes(codes, src, images.len())?;
    let batches = Batches::new(src, images, dst)?;
    batches.check_formats()?;
    batches.check_sizes()?;
    batches.check_apart(true)?;
    let code_range = ByteRange {
        start: first_code,
        length: codes.tensor().0.span_bytes(),
        write: false,
    };
    batches.check_apart_from("flip_codes", &code_range)?;
    if batches.is_empty() {
        return Ok(());
    }
    let mut accesses = batches.accesses();
    if !mistake::is(Mistake::CodesNotNoted) {
        accesses.push((codes, AccessKind::Read));
    }
    object::submit(stream, &accesses, || {
        let fresh = FlipVarShapeParams::new(first_code, code_stride);
        let mut params = fresh;
        let mut ranges: Ranges = smallvec![code_range];
        let launch = |params: &FlipVarShapeParams, ranges: &Ranges| {
            let work = (params.items(), params.items_per_task());
            launch::rows(stream, params, work, ranges)
        };
        for (i, pair) in batches.pairs().enumerate() {
            for part in pair.parts() {
                if params.is_full() {
                    launch(&params, &ranges)?;
                    params = fresh;
                    ranges.truncate(1);
                }
                params.push(&FlipVarShapeImage {
                    src: part.src,
                    dst: part.dst,
                    width: pair.src.size().0,
                    height: pair.src.size().1,
                    channels: part.channels,
                    element_bytes: pair.src.lane_bytes() as u64,
                    code_index: i as i32,
                })?;
                ranges.extend(part.ranges);
            }
        }
        launch(&params, &ranges)
    })
}

pub fn flip_var_shape_new(
    stream: &'static Stream,
    src: &ObjectRef,
    codes: &ObjectRef,
) -> Result<Handle> {
    let images = var_shape::images_of(src, "src")?;
    check_codes(codes, src, images.len())?;
    let wanted = images.iter().map(|image| {
        let desc = image.image().0;
        (desc.format, (desc.width, desc.height))
    });
    let output = var_shape::output(stream, src, wanted)?;
    flip_images(stream, (src, images), &output.object()?, codes)?;
    Ok(output.keep())
}
