//! Tensors as the operators' kernels see them: which dimension is which, and whether two may be used in one launch.

use crate::backend::ByteRange;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{Dtype, DtypeKind, Object, TensorDesc};
use crate::op::view::{Extents, View};

/// The most channels, lanes among them, that the operators on pixels take.
pub const MAX_CHANNELS: i64 = 4;

/// A tensor argument with its dimensions named.
pub struct Operand<'a> {
    pub object: &'a Object,
    /// The argument, for errors.
    pub name: &'static str,
    pub desc: &'a TensorDesc,
    pub view: View,
    pub extents: Extents,
}

impl<'a> Operand<'a> {
    /// Labels are N, C, H and W, in any order, each but W may be missing: its extent is then 1. Lanes of a vector dtype are
    /// channels. Errors: `InvalidLayout`; `NotSupported` for vectors in several planes.
    pub fn of(object: &'a Object, name: &'static str) -> Result<Operand<'a>> {
        let (desc, data) = object.tensor();
        let mut view = View {
            data,
            ..View::default()
        };
        let mut extents = Extents {
            images: 1,
            channels: 1,
            height: 1,
            width: 1,
        };
        check_labels(desc, name)?;
        let dimensions = desc.dims().iter().zip(desc.strides());
        for (&label, (&dim, &stride)) in desc.layout.labels().iter().zip(dimensions) {
            let (extent, place) = match label {
                b'N' => (&mut extents.images, &mut view.stride_n),
                b'C' => (&mut extents.channels, &mut view.stride_c),
                b'H' => (&mut extents.height, &mut view.stride_h),
                _ => (&mut extents.width, &mut view.stride_w),
            };
            (*extent, *place) = (dim, stride);
        }
        if desc.dtype.lanes() > 1 {
            if extents.channels > 1 && view.stride_c != desc.dtype.bytes() as i64 {
                fail!(
                    Status::NotSupported,
                    "{name} has {} planes of dtype {}, expected one plane, or a dtype of one lane",
                    extents.channels,
                    desc.dtype
                );
            }
            extents.channels *= i64::from(desc.dtype.lanes());
            view.stride_c = desc.dtype.lane_bytes() as i64;
        }
        Ok(Operand {
            object,
            name,
            desc,
            view,
            extents,
        })
    }

    /// Refuses more than four channels.
    pub fn with_few_channels(self) -> Result<Operand<'a>> {
        if self.extents.channels > MAX_CHANNELS {
            fail!(
                Status::InvalidShape,
                "{} has {} channels, expected 1 to {MAX_CHANNELS}",
                self.name,
                self.extents.channels
            );
        }
        Ok(self)
    }

    pub fn is_empty(&self) -> bool {
        self.desc.is_empty()
    }

    pub fn dtype(&self) -> Dtype {
        self.desc.dtype
    }

    /// One lane's.
    pub fn kind(&self) -> DtypeKind {
        self.desc.dtype.kind()
    }

    pub fn range(&self, write: bool) -> ByteRange {
        ByteRange {
            start: self.view.data,
            length: self.desc.span_bytes(),
            write,
        }
    }

    pub fn check_device_of(&self, src: &Operand) -> Result<()> {
        check_devices((self.name, self.object), (src.name, src.object))
    }

    /// Refuses a tensor of another device or layout than `src`'s.
    pub fn check_placed_as(&self, src: &Operand) -> Result<()> {
        self.check_device_of(src)?;
        if self.desc.layout != src.desc.layout {
            fail!(
                Status::InvalidLayout,
                "{} has layout \"{}\", expected \"{}\", as {}",
                self.name,
                self.desc.layout,
                src.desc.layout,
                src.name
            );
        }
        Ok(())
    }

    pub fn check_shape_as(&self, src: &Operand) -> Result<()> {
        if self.desc.dims() != src.desc.dims() {
            fail!(
                Status::ShapeMismatch,
                "{} has shape {:?}, expected {:?}, as {}",
                self.name,
                self.desc.dims(),
                src.desc.dims(),
                src.name
            );
        }
        Ok(())
    }

    pub fn check_dtype_as(&self, src: &Operand) -> Result<()> {
        if self.dtype() != src.dtype() {
            fail!(
                Status::DtypeMismatch,
                "{} has dtype {}, expected {}, as {}",
                self.name,
                self.dtype(),
                src.dtype(),
                src.name
            );
        }
        Ok(())
    }

    /// Both are the same elements: the operator may work in place.
    pub fn is_same_as(&self, other: &Operand) -> bool {
        self.extents == other.extents
            && self.dtype().lane_bytes() == other.dtype().lane_bytes()
            && self.view.is_same(&other.view, &self.extents)
    }

    fn overlaps(&self, other: &Operand) -> bool {
        let (a, b) = (self.range(false), other.range(false));
        ranges_overlap(&a, &b)
    }

    /// Refuses a `self` to write whose bytes are among those of `src`, unless they are the same elements and the operator
    /// works `in_place`.
    pub fn check_apart_from(&self, src: &Operand, in_place: bool) -> Result<()> {
        if !self.overlaps(src) || (in_place && self.is_same_as(src)) {
            return Ok(());
        }
        let (own, other) = (self.range(true), src.range(false));
        fail!(
            Status::InvalidArgument,
            "{} lies at {:#x} in {} bytes and overlaps {}, which lies at {:#x} in {}; expected {}",
            self.name,
            own.start,
            own.length,
            src.name,
            other.start,
            other.length,
            if in_place {
                "memory apart from it, or the same elements with the same strides"
            } else {
                "memory apart from it"
            }
        )
    }
}

pub(super) fn ranges_overlap(a: &ByteRange, b: &ByteRange) -> bool {
    a.length > 0
        && b.length > 0
        && a.start < b.start.saturating_add(b.length)
        && b.start < a.start.saturating_add(a.length)
}

fn check_labels(desc: &TensorDesc, name: &str) -> Result<()> {
    let layout = desc.layout;
    if layout.is_empty() {
        fail!(
            Status::InvalidLayout,
            "{name} has no layout, expected one of its {} dimensions, such as \"{}\": pass a layout when it is made, or \
             reshape it to the same shape with one",
            desc.rank,
            match desc.rank {
                1 => "W",
                2 => "HW",
                3 => "HWC",
                _ => "NHWC",
            }
        );
    }
    let labels = layout.labels();
    let once = |label: u8| labels.iter().filter(|known| **known == label).count() <= 1;
    let is_known = |label: &u8| matches!(label, b'N' | b'C' | b'H' | b'W') && once(*label);
    if !labels.iter().all(is_known) || layout.index_of(b'W').is_none() {
        fail!(
            Status::InvalidLayout,
            "{name} has layout \"{layout}\", expected labels among N, C, H and W, each once, and a W"
        );
    }
    Ok(())
}

/// Refuses an object of another device than `src`'s.
pub(super) fn check_devices(
    (name, object): (&str, &Object),
    (src_name, src): (&str, &Object),
) -> Result<()> {
    let (device, expected) = (object.device(), src.device());
    if device != expected {
        fail!(
            Status::DeviceMismatch,
            "{name} is on device {device}, expected device {expected}, as {src_name}"
        );
    }
    Ok(())
}

/// Refuses a dtype of another number of lanes than `src`'s.
pub(super) fn check_lanes((dtype, name): (Dtype, &str), src: &Operand) -> Result<()> {
    if dtype.lanes() != src.dtype().lanes() {
        fail!(
            Status::DtypeMismatch,
            "{name} is {dtype}, expected {} lanes, as {}",
            src.dtype().lanes(),
            src.name
        );
    }
    Ok(())
}
