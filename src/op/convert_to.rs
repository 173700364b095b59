//! Convert to another dtype: `alpha * src + beta`, rounded and saturated.

use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, Dtype, Handle, ObjectRef};
use crate::op::convert_to_params::{is_converted, ConvertToParams, Rounding};
use crate::op::launch;
use crate::op::operand::{check_lanes, Operand};
use crate::op::output::Output;
use crate::timeline::{AccessKind, Stream};

/// How to convert.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    pub alpha: f64,
    pub beta: f64,
    pub rounding: Rounding,
}

impl Rounding {
    /// The rounding of a `cvc_round_t`.
    pub fn from_code(code: i32) -> Result<Rounding> {
        match code {
            0 => Ok(Rounding::Nearest),
            1 => Ok(Rounding::Truncate),
            _ => fail!(
                Status::InvalidEnum,
                "round is {code}, expected CVC_ROUND_NEAREST (0) or CVC_ROUND_TRUNCATE (1)"
            ),
        }
    }
}

impl Conversion {
    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !value.is_finite() {
                fail!(
                    Status::InvalidValue,
                    "{name} is {value}, expected a finite number"
                );
            }
        }
        Ok(())
    }
}

pub(super) fn check_dtype(dtype: Dtype, name: &str) -> Result<()> {
    if !is_converted(dtype.kind()) {
        fail!(
            Status::NotSupported,
            "{name} is {dtype}, expected integers or real numbers"
        );
    }
    Ok(())
}

fn source(src: &ObjectRef) -> Result<Operand<'_>> {
    let from = Operand::of(src, "src")?.with_few_channels()?;
    check_dtype(from.dtype(), "src's dtype")?;
    Ok(from)
}

/// `dst` has the layout and shape of `src`, and its dtype as many lanes. In place where elements are of one size.
pub fn convert_to(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    conversion: &Conversion,
) -> Result<()> {
    conversion.check()?;
    let from = source(src)?;
    let to = Operand::of(dst, "dst")?;
    check_dtype(to.dtype(), "dst's dtype")?;
    to.check_placed_as(&from)?;
    to.check_shape_as(&from)?;
    check_lanes((to.dtype(), "dst's dtype"), &from)?;
    to.check_apart_from(&from, true)?;
    if from.is_empty() {
        return Ok(());
    }
    let params = ConvertToParams::new(
        (from.view, from.kind()),
        (to.view, to.kind()),
        from.extents,
        (conversion.alpha, conversion.beta),
        conversion.rounding,
    )?;
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

/// `dtype` has as many lanes as that of `src`.
pub fn convert_to_new(
    stream: &'static Stream,
    src: &ObjectRef,
    dtype: Dtype,
    conversion: &Conversion,
) -> Result<Handle> {
    conversion.check()?;
    check_dtype(dtype, "dtype")?;
    let from = source(src)?;
    check_lanes((dtype, "dtype"), &from)?;
    let output = Output::tensor(stream, src, from.desc.dims(), dtype, from.desc.layout)?;
    convert_to(stream, src, &output.object()?, conversion)?;
    Ok(output.keep())
}
