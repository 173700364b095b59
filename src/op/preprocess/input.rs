//! The sources of a call: each image, or several that lie alike, after the crop.

use smallvec::SmallVec;

use super::{Crop, Preprocessing, Range};
use crate::backend::ByteRange;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{Dtype, Format, ObjectRef};
use crate::op::nv12_params::Nv12Frames;
use crate::op::operand::Operand;
use crate::op::var_shape::{ObjectAccesses, PlacedImage};
use crate::op::view::View;
use crate::timeline::AccessKind;

/// Channels that one view covers.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub view: View,
    pub first_channel: i64,
    pub channels: i64,
}

/// What pixels are before the first step.
#[derive(Clone, Debug)]
pub enum Pixels {
    /// All channels in one part, or each in a part of its own.
    Parts(SmallVec<[Part; 1]>),
    Nv12(Nv12Frames),
}

/// Images of one size that lie at one distance from each other, already cropped.
#[derive(Clone, Debug)]
pub struct Source {
    /// Among all of the call.
    pub first_image: i64,
    pub images: i64,
    pub width: i64,
    pub height: i64,
    /// One channel's; of NV12 U8.
    pub dtype: Dtype,
    pub pixels: Pixels,
    /// What they are read from.
    pub reads: SmallVec<[ByteRange; 2]>,
    is_tensor: bool,
}

impl Source {
    /// For errors.
    pub fn name(&self) -> String {
        name_of(self.is_tensor, self.first_image)
    }
}

fn name_of(is_tensor: bool, image: i64) -> String {
    if is_tensor {
        "src".to_string()
    } else {
        format!("src[{image}]")
    }
}

pub struct Input<'a> {
    /// What the call got.
    pub src: &'a ObjectRef,
    pub images: i64,
    /// Those of the result.
    pub channels: i64,
    pub sources: SmallVec<[Source; 1]>,
    pub accesses: ObjectAccesses<'a>,
}

impl<'a> Input<'a> {
    pub fn of_tensor(src: &'a ObjectRef, request: &Preprocessing) -> Result<Input<'a>> {
        let from = Operand::of(src, "src")?.with_few_channels()?;
        if from.desc.layout.index_of(b'H').is_none() {
            fail!(
                Status::InvalidLayout,
                "src has layout \"{}\", expected one with H and W",
                from.desc.layout
            );
        }
        let (width, mut height) = (from.extents.width, from.extents.height);
        let images = from.extents.images;
        let mut channels = from.extents.channels;
        let mut frames = None;
        if let Some(range) = request.nv12 {
            height = nv12_height(&from)?;
            channels = 3;
            frames = Some(nv12_frames(&from.view, height, range));
        }
        check_crop_count(request.crops.len(), images)?;
        let source = |first_image: i64, images: i64| {
            let crop = crop_of(&request.crops, first_image, (width, height), true)?;
            let pixels = match frames {
                Some(whole) => {
                    let mut part = whole.from_pixel(crop.x, crop.y);
                    part.luma = part.luma.from_image(first_image);
                    part.chroma = part.chroma.from_image(first_image);
                    Pixels::Nv12(part)
                }
                None => Pixels::Parts(SmallVec::from_iter([Part {
                    view: from.view.from_image(first_image).from_pixel(crop.x, crop.y),
                    first_channel: 0,
                    channels,
                }])),
            };
            Ok(Source {
                first_image,
                images,
                width: crop.width,
                height: crop.height,
                dtype: from.dtype().lane(),
                pixels,
                reads: SmallVec::from_iter([from.range(false)]),
                is_tensor: true,
            })
        };
        let sources = match images {
            0 => SmallVec::new(),
            _ if request.crops.len() <= 1 => SmallVec::from_iter([source(0, images)?]),
            _ => (0..images).map(|i| source(i, 1)).collect::<Result<_>>()?,
        };
        let mut accesses = ObjectAccesses::new();
        accesses.push((from.object, AccessKind::Read));
        Ok(Input {
            src,
            images,
            channels,
            sources,
            accesses,
        })
    }

    /// `images` are those of the batch `src` at this moment.
    pub fn of_images(
        src: &'a ObjectRef,
        images: &'a [ObjectRef],
        request: &Preprocessing,
    ) -> Result<Input<'a>> {
        check_crop_count(request.crops.len(), images.len() as i64)?;
        let mut input = Input {
            src,
            images: images.len() as i64,
            channels: 3, // where there is no image to tell
            sources: SmallVec::with_capacity(images.len()),
            accesses: ObjectAccesses::from_iter([(&**src, AccessKind::Read)]),
        };
        for (i, object) in images.iter().enumerate() {
            let image = PlacedImage::of(object);
            let channels = i64::from(image.channels());
            if i == 0 {
                input.channels = channels;
            } else if channels != input.channels {
                fail!(
                    Status::ShapeMismatch,
                    "src[{i}] has {channels} channels, expected {}, as src[0]",
                    input.channels
                );
            }
            let size = (i64::from(image.desc.width), i64::from(image.desc.height));
            let crop = crop_of(&request.crops, i as i64, size, false)?;
            input.sources.push(Source {
                first_image: i as i64,
                images: 1,
                width: crop.width,
                height: crop.height,
                dtype: image.desc.format.info().planes[0].dtype.lane(),
                pixels: pixels_of(&image, i, &crop)?,
                reads: image
                    .planes()
                    .map(|plane| image.plane_range(plane, false))
                    .collect(),
                is_tensor: false,
            });
            input.accesses.push((&**object, AccessKind::Read));
        }
        Ok(input)
    }
}

fn pixels_of(image: &PlacedImage, index: usize, crop: &Rectangle) -> Result<Pixels> {
    let format = image.desc.format;
    if format.info().is_tensor() {
        let parts = image
            .views()
            .into_iter()
            .map(|(view, first, channels)| Part {
                view: view.from_pixel(crop.x, crop.y),
                first_channel: i64::from(first),
                channels: i64::from(channels),
            });
        return Ok(Pixels::Parts(parts.collect()));
    }
    let (is_reversed, full_range) = match format {
        Format::NV12 => (false, false),
        Format::NV12_ER => (false, true),
        Format::NV21 => (true, false),
        Format::NV21_ER => (true, true),
        _ => fail!(
            Status::NotSupported,
            "src[{index}] has format {format}, expected NV12 or NV21, also with _ER, or one without chroma \
             subsampling that has one plane, or one plane a channel"
        ),
    };
    let chroma = image.plane(1);
    let frames = Nv12Frames::new(
        image.plane(0),
        if is_reversed {
            chroma.channels_reversed(2)
        } else {
            chroma
        },
        full_range,
    );
    Ok(Pixels::Nv12(frames.from_pixel(crop.x, crop.y)))
}

/// The height of the pictures in a tensor that has luma rows, then half as many rows of chroma.
fn nv12_height(from: &Operand) -> Result<i64> {
    if from.desc.dtype != Dtype::U8 || from.extents.channels != 1 {
        fail!(
            Status::DtypeMismatch,
            "params.flags says that src is NV12, and it has {} channels of dtype {}, expected 1 of U8",
            from.extents.channels,
            from.desc.dtype
        );
    }
    let (rows, width) = (from.extents.height, from.extents.width);
    if rows % 3 != 0 || width % 2 != 0 {
        fail!(
            Status::InvalidShape,
            "params.flags says that src is NV12, and it has {rows} rows of {width} bytes, expected 3/2 of an even height and \
             an even width"
        );
    }
    Ok(rows / 3 * 2)
}

fn nv12_frames(whole: &View, height: i64, range: Range) -> Nv12Frames {
    let chroma = View {
        stride_c: whole.stride_w,
        stride_w: 2 * whole.stride_w,
        ..whole.from_pixel(0, height)
    };
    Nv12Frames::new(*whole, chroma, range == Range::Full)
}

/// A rectangle that lies within its image.
struct Rectangle {
    x: i64,
    y: i64,
    width: i64,
    height: i64,
}

/// Before so many crops are read.
pub fn check_crop_count(count: usize, images: i64) -> Result<()> {
    if count > 1 && count as i64 != images {
        fail!(
            Status::ShapeMismatch,
            "params.crop_count is {count}, expected 0, 1 or {images}, the images of src"
        );
    }
    Ok(())
}

fn crop_of(
    crops: &[Crop],
    image: i64,
    (width, height): (i64, i64),
    is_tensor: bool,
) -> Result<Rectangle> {
    let index = match crops.len() {
        0 => {
            return Ok(Rectangle {
                x: 0,
                y: 0,
                width,
                height,
            })
        }
        1 => 0,
        _ => image as usize,
    };
    let crop = &crops[index];
    let part = Rectangle {
        x: i64::from(crop.x),
        y: i64::from(crop.y),
        width: i64::from(crop.width),
        height: i64::from(crop.height),
    };
    let is_inside =
        |start: i64, length: i64, whole: i64| start >= 0 && length >= 1 && start + length <= whole;
    if !is_inside(part.x, part.width, width) || !is_inside(part.y, part.height, height) {
        fail!(
            Status::InvalidShape,
            "params.crops[{index}] is {}x{} pixels at ({}, {}), expected one pixel or more, all within {} of \
             {width}x{height}",
            part.width,
            part.height,
            part.x,
            part.y,
            name_of(is_tensor, image)
        );
    }
    Ok(part)
}
