//! Carries a plan out by the operators' kernels, each step from one place to the next.
//!
//! One kernel does all that can be done in one pass. Else the kernels are NV12 to RGB, resize, convert and normalize, or
//! reformat where none of these is the last. A crop is
//! where a view begins, a flip and a swap are views with negative strides, a reformat is the strides of what is written.
//! The last kernel writes to dst, those before it to memory from the cache, whose references go when all is queued.

use smallvec::SmallVec;

use super::input::{Input, Part, Pixels, Source};
use super::plan::{Normalizing, Plan};
use super::scratch::{bytes_of, frame_of, is_in_planes, is_quick, packed, Scratch};
use crate::backend::ByteRange;
use crate::error::Result;
use crate::object::{self, Dtype};
use crate::op::convert_to_params::ConvertToParams;
use crate::op::launch;
use crate::op::normalize_params::NormalizeParams;
use crate::op::nv12_params::Nv12Params;
use crate::op::operand::Operand;
use crate::op::pillow_resize::Launches;
use crate::op::reformat_params::ReformatParams;
use crate::op::resize_table::ResizeFilter;
use crate::op::var_shape::{ObjectAccesses, Ranges};
use crate::op::view::{Extents, View};
use crate::timeline::{AccessKind, Stream};

/// Some channels of images of the size of the result, between two steps.
#[derive(Clone, Copy)]
struct Piece {
    part: Part,
    first_image: i64,
    images: i64,
    dtype: Dtype,
}

impl Piece {
    /// Both as one, where `next` lies behind `self` as the images of either do.
    fn joined(&self, next: &Piece) -> Option<Piece> {
        let (own, other) = (&self.part, &next.part);
        let distance = other.view.data.wrapping_sub(own.view.data) as i64;
        let stride_n = match self.images {
            1 => distance,
            _ => own.view.stride_n,
        };
        let view = View {
            stride_n,
            ..own.view
        };
        let follows = self.dtype == next.dtype
            && self.first_image + self.images == next.first_image
            && (own.first_channel, own.channels) == (other.first_channel, other.channels)
            && distance == stride_n.wrapping_mul(self.images)
            && (next.images == 1 || other.view.stride_n == stride_n)
            && View {
                data: view.data,
                stride_n,
                ..other.view
            } == view;
        follows.then_some(Piece {
            part: Part { view, ..*own },
            images: self.images + next.images,
            ..*self
        })
    }
}

/// A launch that is ready to be queued.
enum Step {
    Nv12(Nv12Params),
    Convert(ConvertToParams),
    Normalize(NormalizeParams),
    Reformat(ReformatParams),
}

/// The steps of one call on their way to the stream.
struct Work<'a> {
    stream: &'static Stream,
    plan: &'a Plan<'a>,
    before: SmallVec<[Step; 2]>,
    resize: Option<Launches>,
    after: SmallVec<[Step; 2]>,
    scratch: SmallVec<[Scratch; 3]>,
    dst: ByteRange,
    ranges: Ranges,
}

/// Does nothing where there is no element. `to` is the plan's target; everything is checked.
pub fn run(stream: &'static Stream, input: &Input, plan: &Plan, to: &Operand) -> Result<()> {
    if plan.is_empty() {
        return Ok(());
    }
    let mut ranges = Ranges::from_iter([to.range(true)]);
    for range in input.sources.iter().flat_map(|source| &source.reads) {
        // Images of one tensor are all read from one range.
        if ranges.last() != Some(range) {
            ranges.push(*range);
        }
    }
    ranges.extend(plan.factors().map(|tensor| tensor.range(false)));
    let mut work = Work {
        stream,
        plan,
        before: SmallVec::new(),
        resize: None,
        after: SmallVec::new(),
        scratch: SmallVec::new(),
        dst: to.range(true),
        ranges,
    };
    let pixels = work.rgb_of_nv12(input)?;
    if !work.fuse(input, &pixels)? {
        let pieces = work.resize(input, pixels)?;
        let pieces = work.turn(pieces);
        work.finish(input, pieces)?;
    }
    let mut accesses: ObjectAccesses = input.accesses.iter().copied().collect();
    accesses.push((to.object, AccessKind::Write));
    accesses.extend(
        plan.factors()
            .map(|tensor| (tensor.object, AccessKind::Read)),
    );
    for scratch in &work.scratch {
        work.ranges.push(scratch.range());
        accesses.push((&scratch.object, AccessKind::Write));
    }
    let queued = object::submit(stream, &accesses, || work.queue());
    if let Some(resize) = &work.resize {
        resize.note();
    }
    queued
}

type Parts = SmallVec<[Part; 1]>;

impl Work<'_> {
    /// The extents of some images and channels of the result.
    fn extents(&self, images: i64, channels: i64) -> Extents {
        Extents {
            images,
            channels,
            ..self.plan.target.extents
        }
    }

    /// Where images from there on go in the result, turned: what is written in the order of the source is then flipped.
    fn turned_target(&self, first_image: i64) -> View {
        let target = &self.plan.target;
        let view = target.view.from_image(first_image);
        self.plan.flip.of_view(view, &target.extents)
    }

    /// The channels of a turned target that these ones become. Four that are swapped are no view.
    fn target_channels(&self, target: View, part: &Part) -> View {
        match (self.plan.swap_channels, part.channels) {
            (false, _) => target.from_channel(part.first_channel),
            (true, 1) => target.from_channel(swapped(part.first_channel)),
            (true, channels) => target.channels_reversed(channels),
        }
    }

    /// Pixels of each source; none where its last step is taken already.
    fn rgb_of_nv12(&mut self, input: &Input) -> Result<Vec<Option<Parts>>> {
        let plan = self.plan;
        let is_last = |source: &Source| !plan.is_resized(source) && !plan.computes();
        let mut total = 0i64;
        for source in plan.sources {
            if matches!(source.pixels, Pixels::Nv12(_)) && !is_last(source) {
                total = total.saturating_add(frame_of(source)?.1);
            }
        }
        if total > 0 {
            self.scratch.push(Scratch::of(self.stream, input, total)?);
        }
        let mut all = Vec::with_capacity(plan.sources.len());
        for source in plan.sources {
            let frames = match &source.pixels {
                Pixels::Parts(parts) => {
                    all.push(Some(parts.clone()));
                    continue;
                }
                Pixels::Nv12(frames) => frames,
            };
            let mut part = Part {
                view: View::default(),
                first_channel: 0,
                channels: 3,
            };
            let last = is_last(source);
            if last {
                part.view = self.target_channels(self.turned_target(source.first_image), &part);
            } else if let Some(scratch) = self.scratch.last_mut() {
                let (view, bytes) = frame_of(source)?;
                part.view = View {
                    data: scratch.take(bytes, 1),
                    ..view
                };
            }
            let extents = Extents {
                images: source.images,
                channels: 3,
                height: source.height,
                width: source.width,
            };
            let params = Nv12Params::new(frames, part.view, extents, plan.matrix);
            self.before.push(Step::Nv12(params));
            all.push((!last).then(|| SmallVec::from_iter([part])));
        }
        Ok(all)
    }

    /// Whether a source is resized right into the result. Else it takes a last step of its own, as four channels that
    /// are swapped do, and what the resize could not write quickly.
    fn resizes_into_target(&self, source: &Source, parts: &Parts) -> bool {
        let plan = self.plan;
        if plan.computes() || plan.swap_channels && plan.target.extents.channels == 4 {
            return false;
        }
        let turned = self.turned_target(source.first_image);
        let element = source.dtype.bytes() as i64;
        let quick = |part| is_quick(part, &self.target_channels(turned, part), element);
        plan.resampling.filter == ResizeFilter::Nearest || parts.iter().all(quick)
    }

    /// One kernel for all that is left, where there is one: every source is resized in tiles, and what becomes of a sample
    /// depends on its value and channel alone.
    fn fuse(&mut self, input: &Input, pixels: &[Option<Parts>]) -> Result<bool> {
        let plan = self.plan;
        let Some(finish) = plan.finish()? else {
            return Ok(false);
        };
        let mut whole: SmallVec<[(&Source, &Parts); 1]> = SmallVec::new();
        for (source, parts) in plan.sources.iter().zip(pixels) {
            match parts {
                Some(parts)
                    if parts.len() == 1 && source.dtype == Dtype::U8 && plan.is_resized(source) =>
                {
                    whole.push((source, parts));
                }
                _ => return Ok(false),
            }
        }
        let into_target =
            |&(source, parts): &(&Source, &Parts)| self.resizes_into_target(source, parts);
        if whole.iter().all(into_target) {
            return Ok(false);
        }
        let mut shared = Ranges::from_iter([self.dst]);
        shared.extend(plan.factors().map(|tensor| tensor.range(false)));
        shared.extend(self.scratch.iter().map(Scratch::range));
        let images = plan.sources[0].images as i32;
        let mut launches = Launches::new(input.src.device(), self.stream, images).finishing(finish);
        for (source, parts) in whole {
            let part = &parts[0];
            let options = plan.resampling.options(source.dtype.kind(), part.channels);
            let sizes = plan.sizes(source);
            let dst = self.turned_target(source.first_image);
            let ranges = source.reads.iter().chain(&shared).copied();
            launches.push(options, (part.view, sizes.0), (dst, sizes.1), ranges)?;
        }
        launches.close();
        let fused = launches.is_tiled();
        if fused {
            self.resize = Some(launches);
        }
        Ok(fused)
    }

    /// Everything that is not yet in the result, in its size.
    fn resize(&mut self, input: &Input, pixels: Vec<Option<Parts>>) -> Result<Vec<Piece>> {
        let plan = self.plan;
        let channels = plan.target.extents.channels;
        let mut total = 0i64;
        for (source, parts) in plan.sources.iter().zip(&pixels) {
            let Some(parts) = parts else { continue };
            if plan.is_resized(source) && !self.resizes_into_target(source, parts) {
                let element = source.dtype.bytes() as i64;
                let bytes = bytes_of(&self.extents(source.images, channels), element)?;
                total = total.saturating_add(bytes).saturating_add(element);
            }
        }
        if total > 0 {
            self.scratch.push(Scratch::of(self.stream, input, total)?);
        }
        let mut pieces = Vec::with_capacity(plan.sources.len());
        for (source, parts) in plan.sources.iter().zip(pixels) {
            let Some(parts) = parts else { continue };
            let dtype = source.dtype;
            let piece = |part: Part| Piece {
                part,
                first_image: source.first_image,
                images: source.images,
                dtype,
            };
            if !plan.is_resized(source) {
                pieces.extend(parts.into_iter().map(piece));
                continue;
            }
            let element = source.dtype.bytes() as i64;
            let extents = self.extents(source.images, channels);
            let mut left = None;
            let turned = self.turned_target(source.first_image);
            if !self.resizes_into_target(source, &parts) {
                if let Some(scratch) = self.scratch.last_mut() {
                    let data = scratch.take(bytes_of(&extents, element)?, element as u64);
                    let in_planes = channels > 1 && is_in_planes(&parts[0], element);
                    left = Some(packed(data, &extents, element, in_planes));
                }
            }
            let sizes = plan.sizes(source);
            for part in &parts {
                let dst = match left {
                    Some(view) => view.from_channel(part.first_channel),
                    None => self.target_channels(turned, part),
                };
                let options = plan.resampling.options(dtype.kind(), part.channels);
                let launches = self.resize.get_or_insert_with(|| {
                    // Several sources are of one image each.
                    Launches::new(input.src.device(), self.stream, source.images as i32)
                });
                let written = self.scratch.iter().map(Scratch::range);
                let ranges = source
                    .reads
                    .iter()
                    .copied()
                    .chain(written)
                    .chain([self.dst]);
                launches.push(options, (part.view, sizes.0), (dst, sizes.1), ranges)?;
            }
            if let Some(view) = left {
                pieces.push(piece(Part {
                    view,
                    first_channel: 0,
                    channels,
                }));
            }
        }
        if let Some(launches) = &mut self.resize {
            launches.close();
        }
        Ok(pieces)
    }

    /// The pieces flipped and swapped, adjacent ones joined.
    fn turn(&self, pieces: Vec<Piece>) -> Vec<Piece> {
        let mut turned: Vec<Piece> = Vec::with_capacity(pieces.len());
        let mut alphas: Vec<Piece> = Vec::new();
        let extents = &self.plan.target.extents;
        for mut piece in pieces {
            let part = &mut piece.part;
            part.view = self.plan.flip.of_view(part.view, extents);
            if self.plan.swap_channels {
                if part.channels == 4 {
                    let alpha = Part {
                        view: part.view.from_channel(3),
                        first_channel: 3,
                        channels: 1,
                    };
                    push_joined(
                        &mut alphas,
                        Piece {
                            part: alpha,
                            ..piece
                        },
                    );
                    piece.part.channels = 3;
                }
                let part = &mut piece.part;
                match part.channels {
                    1 => part.first_channel = swapped(part.first_channel),
                    channels => part.view = part.view.channels_reversed(channels),
                }
            }
            push_joined(&mut turned, piece);
        }
        turned.extend(alphas);
        turned
    }

    /// The steps on the elements of pieces, the last of which writes the result.
    fn finish(&mut self, input: &Input, mut pieces: Vec<Piece>) -> Result<()> {
        let plan = self.plan;
        let target = plan.target;
        if let (Some(converting), Some(_)) = (&plan.conversion, &plan.normalization) {
            let dtype = converting.dtype;
            let (whole, element) = (target.extents, dtype.bytes() as i64);
            let mut scratch = Scratch::of(self.stream, input, bytes_of(&whole, element)?)?;
            let converted = packed(scratch.take(0, 1), &whole, element, false);
            self.scratch.push(scratch);
            for piece in &pieces {
                self.convert(piece, converted, dtype)?;
            }
            pieces = vec![Piece {
                part: Part {
                    view: converted,
                    first_channel: 0,
                    channels: whole.channels,
                },
                first_image: 0,
                images: whole.images,
                dtype,
            }];
        }
        for piece in &pieces {
            if let Some(normalizing) = &plan.normalization {
                self.normalize(piece, normalizing)?;
            } else if plan.conversion.is_some() {
                self.convert(piece, target.view, target.dtype)?;
            } else {
                let extents = self.extents(piece.images, piece.part.channels);
                let dst = place(target.view, piece);
                let bytes = piece.dtype.bytes();
                let params = ReformatParams::new(piece.part.view, dst, extents, bytes)?;
                self.after.push(Step::Reformat(params));
            }
        }
        Ok(())
    }

    fn convert(&mut self, piece: &Piece, dst: View, dtype: Dtype) -> Result<()> {
        let Some(converting) = &self.plan.conversion else {
            return Ok(());
        };
        let conversion = converting.conversion;
        let params = ConvertToParams::new(
            (piece.part.view, piece.dtype.kind()),
            (place(dst, piece), dtype.kind()),
            self.extents(piece.images, piece.part.channels),
            (conversion.alpha, conversion.beta),
            conversion.rounding,
        )?;
        self.after.push(Step::Convert(params));
        Ok(())
    }

    fn normalize(&mut self, piece: &Piece, normalizing: &Normalizing) -> Result<()> {
        let target = &self.plan.target;
        let part = &piece.part;
        let dtypes = (piece.dtype, target.dtype);
        let values = normalizing.values(piece.first_image, part.first_channel, dtypes)?;
        let extents = self.extents(piece.images, part.channels);
        let dst = place(target.view, piece);
        let params = NormalizeParams::new(part.view, dst, extents, values);
        self.after.push(Step::Normalize(params));
        Ok(())
    }

    fn queue(&self) -> Result<()> {
        for step in &self.before {
            self.launch(step)?;
        }
        if let Some(resize) = &self.resize {
            resize.queue()?;
        }
        self.after.iter().try_for_each(|step| self.launch(step))
    }

    fn launch(&self, step: &Step) -> Result<()> {
        let (stream, ranges) = (self.stream, &self.ranges[..]);
        match step {
            Step::Nv12(params) => {
                let work = (params.items(), params.items_per_task());
                launch::rows(stream, params, work, ranges)
            }
            Step::Convert(params) => {
                let work = (params.items(), params.items_per_task());
                launch::rows(stream, params, work, ranges)
            }
            Step::Normalize(params) => {
                let work = (params.items(), params.items_per_task());
                launch::rows(stream, params, work, ranges)
            }
            Step::Reformat(params) => {
                let work = (params.items(), params.items_per_task());
                launch::rows(stream, params, work, ranges)
            }
        }
    }
}

/// Where a piece goes in the view of all images and channels.
fn place(whole: View, piece: &Piece) -> View {
    whole
        .from_image(piece.first_image)
        .from_channel(piece.part.first_channel)
}

fn swapped(channel: i64) -> i64 {
    match channel {
        0 => 2,
        2 => 0,
        other => other,
    }
}

fn push_joined(pieces: &mut Vec<Piece>, next: Piece) {
    match pieces
        .last()
        .and_then(|last| Some((pieces.len() - 1, last.joined(&next)?)))
    {
        Some((last, joined)) => pieces[last] = joined,
        None => pieces.push(next),
    }
}
