//! Reformat: channels last to channels first or back, or a copy to other strides.

use smallvec::SmallVec;

use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, Handle, Layout, ObjectRef};
use crate::op::copy;
use crate::op::launch;
use crate::op::operand::Operand;
use crate::op::output::Output;
use crate::op::reformat_params::ReformatParams;
use crate::timeline::{AccessKind, Stream};

/// Layouts of the same dimensions, channels last and channels first.
const PAIRS: [(Layout, Layout); 4] = [
    (Layout::NHWC, Layout::NCHW),
    (Layout::HWC, Layout::CHW),
    (Layout::NWC, Layout::NCW),
    (Layout::WC, Layout::CW),
];

fn check_layout(layout: Layout, name: &str, from: &Operand) -> Result<()> {
    let own = from.desc.layout;
    let is_pair = |&(last, first)| (own, layout) == (last, first) || (own, layout) == (first, last);
    if own == layout || PAIRS.iter().any(is_pair) {
        return Ok(());
    }
    let others = PAIRS.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    match others.into_iter().find(|(known, _)| *known == own) {
        Some((_, other)) => fail!(
            Status::InvalidLayout,
            "{name} is \"{layout}\", expected \"{other}\" or \"{own}\" for a src of layout \"{own}\""
        ),
        None => fail!(
            Status::InvalidLayout,
            "{name} is \"{layout}\", expected \"{own}\", that of src"
        ),
    }
}

/// The shape of `src` in another order.
fn shape_in(layout: Layout, from: &Operand) -> SmallVec<[i64; 4]> {
    let desc = from.desc;
    let dim_of = |label: &u8| desc.layout.index_of(*label).map_or(1, |i| desc.dims()[i]);
    layout.labels().iter().map(dim_of).collect()
}

/// `dst` has the dtype of `src`, its layout or the other order of channels, and its extents.
pub fn reformat(stream: &'static Stream, src: &ObjectRef, dst: &ObjectRef) -> Result<()> {
    let from = Operand::of(src, "src")?;
    let to = Operand::of(dst, "dst")?;
    to.check_device_of(&from)?;
    let layout = to.desc.layout;
    check_layout(layout, "dst's layout", &from)?;
    to.check_dtype_as(&from)?;
    let expected = shape_in(layout, &from);
    if to.desc.dims() != &expected[..] {
        fail!(
            Status::ShapeMismatch,
            "dst has shape {:?}, expected {expected:?} in layout \"{layout}\", as src",
            to.desc.dims()
        );
    }
    to.check_apart_from(&from, true)?;
    if layout == from.desc.layout {
        return copy::copy(stream, src, dst);
    }
    if from.is_empty() || to.is_same_as(&from) {
        return Ok(());
    }
    let bytes = from.dtype().lane_bytes();
    let params = ReformatParams::new(from.view, to.view, from.extents, bytes)?;
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

pub fn reformat_new(stream: &'static Stream, src: &ObjectRef, layout: Layout) -> Result<Handle> {
    let from = Operand::of(src, "src")?;
    check_layout(layout, "layout", &from)?;
    let output = Output::tensor(stream, src, &shape_in(layout, &from), from.dtype(), layout)?;
    reformat(stream, src, &output.object()?)?;
    Ok(output.keep())
}
