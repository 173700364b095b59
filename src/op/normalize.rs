//! Normalize: `(src - base) * scale * global_scale + global_shift`, base and scale being tensors or values.

use smallvec::{smallvec, SmallVec};

use crate::backend::ByteRange;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, Dtype, Format, Handle, Object, ObjectRef};
use crate::op::launch;
use crate::op::normalize_params::{
    is_normalized, NormalizeOperand, NormalizeOptions, NormalizeParams, NormalizeValues,
    NormalizeVarShapeImage, NormalizeVarShapeParams,
};
use crate::op::operand::{check_lanes, Operand};
use crate::op::output::Output;
use crate::op::var_shape::{self, Batches, Pair, Ranges};
use crate::op::view::Extents;
use crate::timeline::{AccessKind, Stream};

/// What is subtracted, or multiplied by.
pub enum Factor {
    /// F32; each dimension is 1 or that of the images.
    Tensor(ObjectRef),
    /// The first `count` count: 1, or one a channel.
    Values { values: [f32; 4], count: i32 },
}

/// How to normalize.
pub struct Normalization {
    pub base: Factor,
    pub scale: Factor,
    pub global_scale: f32,
    pub global_shift: f32,
    pub epsilon: f32,
    pub scale_is_deviation: bool,
}

/// A factor that has been checked.
enum Checked<'a> {
    Tensor(Operand<'a>),
    Values(&'a [f32]),
}

impl<'a> Checked<'a> {
    fn tensor(&self) -> Option<&Operand<'a>> {
        match self {
            Checked::Tensor(operand) => Some(operand),
            Checked::Values(_) => None,
        }
    }

    /// For images from `image` on, and their channels from `channel` on.
    fn operand(&self, image: i64, channel: i64) -> NormalizeOperand<'_> {
        match self {
            Checked::Tensor(operand) => {
                let view = operand.view.broadcast(&operand.extents);
                NormalizeOperand::Tensor(view.from_image(image).from_channel(channel))
            }
            Checked::Values(values) if values.len() == 1 => NormalizeOperand::Values(values),
            Checked::Values(values) => NormalizeOperand::Values(&values[channel as usize..]),
        }
    }
}

/// The names of a factor's fields, for errors.
struct Names {
    tensor: &'static str,
    values: &'static str,
    count: &'static str,
}

const BASE: Names = Names {
    tensor: "params.base",
    values: "params.base_values",
    count: "params.base_count",
};
const SCALE: Names = Names {
    tensor: "params.scale",
    values: "params.scale_values",
    count: "params.scale_count",
};

fn check_finite(name: &str, value: f32) -> Result<()> {
    if !value.is_finite() {
        fail!(
            Status::InvalidValue,
            "{name} is {value}, expected a finite number"
        );
    }
    Ok(())
}

/// Base and scale of a call.
pub(super) struct Factors<'a> {
    base: Checked<'a>,
    scale: Checked<'a>,
}

impl Normalization {
    /// Checks all but what depends on the images' extents.
    pub(super) fn check<'a>(&'a self, src: &Object) -> Result<Factors<'a>> {
        check_finite("params.global_scale", self.global_scale)?;
        check_finite("params.global_shift", self.global_shift)?;
        check_finite("params.epsilon", self.epsilon)?;
        if self.scale_is_deviation && self.epsilon < 0.0 {
            fail!(
                Status::InvalidValue,
                "params.epsilon is {}, expected 0 or more with CVC_NORMALIZE_SCALE_IS_STDDEV",
                self.epsilon
            );
        }
        Ok(Factors {
            base: check_factor(&self.base, &BASE, src)?,
            scale: check_factor(&self.scale, &SCALE, src)?,
        })
    }
}

fn check_factor<'a>(factor: &'a Factor, names: &Names, src: &Object) -> Result<Checked<'a>> {
    match factor {
        Factor::Tensor(tensor) => {
            crate::op::operand::check_devices((names.tensor, tensor), ("src", src))?;
            let dtype = tensor.tensor().0.dtype;
            if dtype.lane() != Dtype::F32 {
                fail!(
                    Status::DtypeMismatch,
                    "{} has dtype {dtype}, expected F32",
                    names.tensor
                );
            }
            Ok(Checked::Tensor(Operand::of(tensor, names.tensor)?))
        }
        Factor::Values { values, count } => {
            let given = usize::try_from(*count)
                .ok()
                .filter(|count| (1..=4).contains(count));
            let Some(given) = given else {
                fail!(
                    Status::InvalidArgument,
                    "{} is {count}, expected 1 or one a channel, at most 4, as {} is null",
                    names.count,
                    names.tensor
                );
            };
            for (i, &value) in values[..given].iter().enumerate() {
                if !value.is_finite() {
                    check_finite(&format!("{}[{i}]", names.values), value)?;
                }
            }
            Ok(Checked::Values(&values[..given]))
        }
    }
}

impl<'a> Factors<'a> {
    fn both(&self) -> [(&Checked<'a>, &'static Names); 2] {
        [(&self.base, &BASE), (&self.scale, &SCALE)]
    }

    pub(super) fn tensors(&self) -> impl Iterator<Item = &Operand<'a>> {
        [&self.base, &self.scale]
            .into_iter()
            .filter_map(Checked::tensor)
    }

    /// Refuses factors that are not 1 or of these extents; `whose` has them.
    pub(super) fn check_extents(
        &self,
        extents: &Extents,
        whose: impl Fn() -> String,
    ) -> Result<()> {
        for (factor, names) in self.both() {
            match factor {
                Checked::Tensor(tensor) => {
                    let own = &tensor.extents;
                    for (label, own, expected) in [
                        ("N", own.images, extents.images),
                        ("C", own.channels, extents.channels),
                        ("H", own.height, extents.height),
                        ("W", own.width, extents.width),
                    ] {
                        if own != 1 && own != expected {
                            fail!(
                                Status::ShapeMismatch,
                                "{} has {own} for {label} in shape {:?}, expected 1 or {expected}, as {}",
                                names.tensor,
                                tensor.desc.dims(),
                                whose()
                            );
                        }
                    }
                }
                Checked::Values(values) => {
                    if values.len() != 1 && values.len() as i64 != extents.channels {
                        fail!(
                            Status::InvalidArgument,
                            "{} is {}, expected 1 or {}, the channels of {}",
                            names.count,
                            values.len(),
                            extents.channels,
                            whose()
                        );
                    }
                }
            }
        }
        Ok(())
    }

    fn values(
        &self,
        normalization: &Normalization,
        src: object::DtypeKind,
        dst: object::DtypeKind,
    ) -> Result<NormalizeValues> {
        self.values_from((0, 0), normalization, src, dst)
    }

    /// For images from `image` on, and their channels from `channel` on; both are among the extents that were checked.
    pub(super) fn values_from(
        &self,
        (image, channel): (i64, i64),
        normalization: &Normalization,
        src: object::DtypeKind,
        dst: object::DtypeKind,
    ) -> Result<NormalizeValues> {
        let options = NormalizeOptions {
            base: self.base.operand(image, channel),
            scale: self.scale.operand(image, channel),
            global_scale: normalization.global_scale,
            global_shift: normalization.global_shift,
            epsilon: normalization.epsilon,
            scale_is_deviation: normalization.scale_is_deviation,
        };
        NormalizeValues::new(src, dst, &options)
    }
}

pub(super) fn check_dtype(dtype: Dtype, name: &str) -> Result<()> {
    if !is_normalized(dtype.kind()) {
        fail!(
            Status::NotSupported,
            "{name} is {dtype}, expected U8, S8, U16, S16, S32, F16, F32 or F64"
        );
    }
    Ok(())
}

fn source<'a>(src: &'a ObjectRef, factors: &Factors) -> Result<Operand<'a>> {
    let from = Operand::of(src, "src")?.with_few_channels()?;
    check_dtype(from.dtype(), "src's dtype")?;
    factors.check_extents(&from.extents, || "src".to_string())?;
    Ok(from)
}

/// `dst` has the layout and shape of `src`, and its dtype as many lanes. In place where elements are of one size.
pub fn normalize(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    normalization: &Normalization,
) -> Result<()> {
    let factors = normalization.check(src)?;
    let from = source(src, &factors)?;
    let to = Operand::of(dst, "dst")?;
    check_dtype(to.dtype(), "dst's dtype")?;
    to.check_placed_as(&from)?;
    to.check_shape_as(&from)?;
    check_lanes((to.dtype(), "dst's dtype"), &from)?;
    to.check_apart_from(&from, true)?;
    for tensor in factors.tensors() {
        to.check_apart_from(tensor, false)?;
    }
    if from.is_empty() {
        return Ok(());
    }
    let values = factors.values(normalization, from.kind(), to.kind())?;
    let params = NormalizeParams::new(from.view, to.view, from.extents, values);
    let work = (params.items(), params.items_per_task());
    let mut accesses: SmallVec<[_; 4]> = smallvec![
        (from.object, AccessKind::Read),
        (to.object, AccessKind::Write)
    ];
    let mut ranges: Ranges = smallvec![from.range(false), to.range(true)];
    for tensor in factors.tensors() {
        accesses.push((tensor.object, AccessKind::Read));
        ranges.push(tensor.range(false));
    }
    object::submit(stream, &accesses, || {
        launch::rows(stream, &params, work, &ranges)
    })
}

/// `dtype` has as many lanes as that of `src`; `None`: it is that of `src`.
pub fn normalize_new(
    stream: &'static Stream,
    src: &ObjectRef,
    dtype: Option<Dtype>,
    normalization: &Normalization,
) -> Result<Handle> {
    let from = source(src, &normalization.check(src)?)?;
    let dtype = dtype.unwrap_or(from.dtype());
    check_dtype(dtype, "params.dst_dtype")?;
    check_lanes((dtype, "params.dst_dtype"), &from)?;
    let output = Output::tensor(stream, src, from.desc.dims(), dtype, from.desc.layout)?;
    normalize(stream, src, &output.object()?, normalization)?;
    Ok(output.keep())
}

fn sources(src: &ObjectRef, factors: &Factors) -> Result<Vec<ObjectRef>> {
    let images = var_shape::images_of(src, "src")?;
    for (i, image) in images.iter().enumerate() {
        let info = image.image().0.format.info();
        if !is_normalized(info.planes[0].dtype.kind()) {
            check_dtype(info.planes[0].dtype, &format!("src[{i}]'s dtype"))?;
        }
        // One for all images, or one an image; never one a row or a column, which images of several sizes lack.
        let extents = Extents {
            images: images.len() as i64,
            channels: i64::from(info.channel_count),
            height: 1,
            width: 1,
        };
        factors.check_extents(&extents, || format!("src[{i}]"))?;
    }
    Ok(images)
}

/// Base and scale have 1 row and 1 column, and one for all images or one an image. `dst` has images of the sizes and
/// channels of those of `src`, of any format; in place where elements are of one size.
pub fn normalize_var_shape(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: &ObjectRef,
    normalization: &Normalization,
) -> Result<()> {
    let factors = normalization.check(src)?;
    let images = sources(src, &factors)?;
    normalize_images(stream, (src, images), dst, normalization, &factors)
}

fn check_format(i: usize, name: &str, format: Format, src: Format) -> Result<()> {
    let (info, expected) = (format.info(), src.info());
    if !info.is_tensor() || !is_normalized(info.planes[0].dtype.kind()) {
        fail!(
            Status::NotSupported,
            "{name} is {format}, expected one that is not subsampled, of U8, S8, U16, S16, S32, F16, F32 or F64"
        );
    }
    if info.channel_count != expected.channel_count || info.plane_count != expected.plane_count {
        fail!(
            Status::DtypeMismatch,
            "{name} is {format} of {} channels in {} planes, expected {} in {}, as src[{i}], which is {src}",
            info.channel_count,
            info.plane_count,
            expected.channel_count,
            expected.plane_count
        );
    }
    Ok(())
}

fn normalize_images(
    stream: &'static Stream,
    (src, images): (&ObjectRef, Vec<ObjectRef>),
    dst: &ObjectRef,
    normalization: &Normalization,
    factors: &Factors,
) -> Result<()> {
    let batches = Batches::new(src, images, dst)?;
    for (i, Pair { src, dst }) in batches.pairs().enumerate() {
        let (from, to) = (src.desc.format, dst.desc.format);
        if from != to {
            check_format(i, &format!("dst[{i}]'s format"), to, from)?;
        }
    }
    batches.check_sizes()?;
    batches.check_apart(true)?;
    let mut accesses = batches.accesses();
    let mut factor_ranges: SmallVec<[ByteRange; 2]> = SmallVec::new();
    for tensor in factors.tensors() {
        batches.check_apart_from(tensor.name, &tensor.range(false))?;
        accesses.push((tensor.object, AccessKind::Read));
        factor_ranges.push(tensor.range(false));
    }
    if batches.is_empty() {
        return Ok(());
    }
    object::submit(stream, &accesses, || {
        let mut open: Option<NormalizeVarShapeParams> = None;
        let mut kinds = None;
        let mut ranges = Ranges::new();
        let launch = |params: &NormalizeVarShapeParams, ranges: &mut Ranges| {
            ranges.extend(factor_ranges.iter().copied());
            let work = (params.items(), params.items_per_task());
            let launched = launch::rows(stream, params, work, ranges);
            ranges.clear();
            launched
        };
        for (i, pair) in batches.pairs().enumerate() {
            let own_kinds = (pair.src.kind(), pair.dst.kind());
            for part in pair.parts() {
                // A launch has images of one pair of element types.
                let full = kinds != Some(own_kinds)
                    || open.as_ref().is_some_and(NormalizeVarShapeParams::is_full);
                if let Some(params) = open.take_if(|_| full) {
                    launch(&params, &mut ranges)?;
                }
                let params = match &mut open {
                    Some(params) => params,
                    None => {
                        kinds = Some(own_kinds);
                        let values = factors.values(normalization, own_kinds.0, own_kinds.1)?;
                        open.insert(NormalizeVarShapeParams::new(values))
                    }
                };
                params.push(&NormalizeVarShapeImage {
                    src: part.src,
                    dst: part.dst,
                    width: pair.src.size().0,
                    height: pair.src.size().1,
                    channels: part.channels,
                    first_channel: part.first_channel,
                    image_index: i as i32,
                })?;
                ranges.extend(part.ranges);
            }
        }
        match open {
            Some(params) => launch(&params, &mut ranges),
            None => Ok(()),
        }
    })
}

/// `format`: that of all images of the result; `None`: each has that of its source.
pub fn normalize_var_shape_new(
    stream: &'static Stream,
    src: &ObjectRef,
    normalization: &Normalization,
    format: Option<Format>,
) -> Result<Handle> {
    let factors = normalization.check(src)?;
    let images = sources(src, &factors)?;
    if let Some(format) = format {
        for (i, image) in images.iter().enumerate() {
            check_format(i, "dst_format", format, image.image().0.format)?;
        }
    }
    let wanted = images.iter().map(|image| {
        let desc = image.image().0;
        (format.unwrap_or(desc.format), (desc.width, desc.height))
    });
    let output = var_shape::output(stream, src, wanted)?;
    normalize_images(
        stream,
        (src, images),
        &output.object()?,
        normalization,
        &factors,
    )?;
    Ok(output.keep())
}
