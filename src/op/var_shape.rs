//! Batches of images of different sizes as arguments of operators: what must agree, and each image as strided views.

use smallvec::SmallVec;

use crate::backend::ByteRange;
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{DtypeKind, Format, ImageDesc, Object, ObjectRef};
use crate::observe::mistake::{self, Mistake};
use crate::op::operand::{check_devices, ranges_overlap};
use crate::op::output::Output;
use crate::op::view::View;
use crate::timeline::{AccessKind, Stream};

/// The bytes that a launch reads and writes.
pub type Ranges = SmallVec<[ByteRange; 16]>;
/// What an operator does with the objects of its call.
pub type ObjectAccesses<'a> = SmallVec<[(&'a Object, AccessKind); 16]>;

/// An image where it lies.
#[derive(Clone, Copy)]
pub struct PlacedImage<'a> {
    pub desc: &'a ImageDesc,
    data: u64,
}

impl<'a> PlacedImage<'a> {
    pub fn of(image: &'a Object) -> PlacedImage<'a> {
        let (desc, data) = image.image();
        PlacedImage { desc, data }
    }

    /// One channel's. All channels of the formats that operators take are of one kind.
    pub fn kind(&self) -> DtypeKind {
        self.desc.format.info().planes[0].dtype.kind()
    }

    /// One channel's.
    pub fn lane_bytes(&self) -> i64 {
        self.desc.format.info().planes[0].dtype.lane_bytes() as i64
    }

    pub fn channels(&self) -> i32 {
        self.desc.format.info().channel_count as i32
    }

    pub fn size(&self) -> (i32, i32) {
        (self.desc.width, self.desc.height)
    }

    fn address(&self, plane: usize) -> u64 {
        self.data.wrapping_add(self.desc.planes[plane].offset)
    }

    /// Channel `channel` alone.
    fn channel(&self, channel: i32) -> View {
        let lane = self.lane_bytes();
        let (plane, place) = match self.desc.plane_count {
            1 => (0, i64::from(channel)),
            _ => (channel as usize, 0),
        };
        View {
            data: self.address(plane).wrapping_add_signed(place * lane),
            stride_n: 0,
            stride_c: lane,
            stride_h: self.desc.planes[plane].row_stride,
            stride_w: i64::from(self.channels() / self.desc.plane_count as i32) * lane,
        }
    }

    /// All channels; `None` where planes are not equally spaced.
    fn whole(&self) -> Option<View> {
        let first = self.channel(0);
        let count = self.desc.plane_count as usize;
        if count == 1 {
            return Some(first);
        }
        let spacing = |plane: usize| self.address(plane).wrapping_sub(self.address(plane - 1));
        let planes = self.desc.planes();
        let alike = (1..count).all(|plane| {
            spacing(plane) == spacing(1) && planes[plane].row_stride == planes[0].row_stride
        });
        alike.then_some(View {
            stride_c: spacing(1) as i64,
            ..first
        })
    }

    /// The whole image as one view; one a channel, where the planes are not equally spaced. Each with its first channel and
    /// how many it has.
    pub fn views(&self) -> SmallVec<[(View, i32, i32); 1]> {
        match self.whole() {
            Some(view) => SmallVec::from_iter([(view, 0, self.channels())]),
            None => (0..self.channels())
                .map(|channel| (self.channel(channel), channel, 1))
                .collect(),
        }
    }

    /// A plane's samples, whose channels are those of the plane.
    pub fn plane(&self, plane: usize) -> View {
        let dtype = self.desc.format.info().planes[plane].dtype;
        View {
            data: self.address(plane),
            stride_n: 0,
            stride_c: dtype.lane_bytes() as i64,
            stride_h: self.desc.planes[plane].row_stride,
            stride_w: dtype.bytes() as i64,
        }
    }

    pub fn plane_range(&self, plane: usize, write: bool) -> ByteRange {
        let desc = &self.desc.planes[plane];
        let bytes = self.desc.format.info().planes[plane].dtype.bytes() as i64;
        let length = desc.row_stride * i64::from(desc.height - 1) + i64::from(desc.width) * bytes;
        ByteRange {
            start: self.address(plane),
            length: length as u64,
            write,
        }
    }

    pub fn planes(&self) -> std::ops::Range<usize> {
        0..self.desc.plane_count as usize
    }

    /// Both are the same elements: an operator may work in place.
    fn is_same_as(&self, other: &PlacedImage) -> bool {
        self.desc.plane_count == other.desc.plane_count
            && self.size() == other.size()
            && self.channels() == other.channels()
            && self.lane_bytes() == other.lane_bytes()
            && self.planes().all(|plane| {
                self.address(plane) == other.address(plane)
                    && self.desc.planes[plane].row_stride == other.desc.planes[plane].row_stride
            })
    }
}

/// Channels of an image pair that one view on each side covers.
pub struct Part {
    pub src: View,
    pub dst: View,
    pub channels: i32,
    pub first_channel: i32,
    /// What a launch touches there, to read and to write.
    pub ranges: Ranges,
}

/// A source image and its destination.
pub struct Pair<'a> {
    pub src: PlacedImage<'a>,
    pub dst: PlacedImage<'a>,
}

impl Pair<'_> {
    /// The whole image, or each channel by itself where the planes of either side are not equally spaced.
    pub fn parts(&self) -> SmallVec<[Part; 1]> {
        let channels = self.src.channels();
        let sides = [(&self.src, false), (&self.dst, true)];
        if let (Some(src), Some(dst)) = (self.src.whole(), self.dst.whole()) {
            let ranges = sides
                .iter()
                .flat_map(|(image, write)| image.planes().map(|p| image.plane_range(p, *write)));
            return SmallVec::from_iter([Part {
                src,
                dst,
                channels,
                first_channel: 0,
                ranges: ranges.collect(),
            }]);
        }
        let one = |channel: i32| Part {
            src: self.src.channel(channel),
            dst: self.dst.channel(channel),
            channels: 1,
            first_channel: channel,
            ranges: sides
                .iter()
                .map(|(image, write)| {
                    let plane = (channel as usize).min(image.desc.plane_count as usize - 1);
                    image.plane_range(plane, *write)
                })
                .collect(),
        };
        (0..channels).map(one).collect()
    }
}

/// The images of a batch at this moment. Error: `NotSupported` for a format that is not one tensor.
pub fn images_of(batch: &ObjectRef, name: &str) -> Result<Vec<ObjectRef>> {
    let images = batch.image_batch().items();
    for (i, image) in images.iter().enumerate() {
        let format = image.image().0.format;
        if !format.info().is_tensor() {
            fail!(
                Status::NotSupported,
                "{name}[{i}] has format {format}, expected one without chroma subsampling that has one plane, or one \
                 plane a channel"
            );
        }
    }
    Ok(images)
}

/// A source and a destination batch with as many images, of one device.
pub struct Batches<'a> {
    src: &'a ObjectRef,
    dst: &'a ObjectRef,
    from: Vec<ObjectRef>,
    to: Vec<ObjectRef>,
}

impl<'a> Batches<'a> {
    /// `from` are the images of `src`.
    pub fn new(
        src: &'a ObjectRef,
        from: Vec<ObjectRef>,
        dst: &'a ObjectRef,
    ) -> Result<Batches<'a>> {
        check_devices(("dst", dst), ("src", src))?;
        let to = images_of(dst, "dst")?;
        if to.len() != from.len() {
            fail!(
                Status::ShapeMismatch,
                "dst holds {} images, expected {}, as src",
                to.len(),
                from.len()
            );
        }
        Ok(Batches { src, dst, from, to })
    }

    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.from.iter().zip(&self.to).map(|(src, dst)| Pair {
            src: PlacedImage::of(src),
            dst: PlacedImage::of(dst),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.from.is_empty()
    }

    pub fn check_sizes(&self) -> Result<()> {
        for (i, Pair { src, dst }) in self.pairs().enumerate() {
            let ((width, height), expected) = (dst.size(), src.size());
            if (width, height) != expected {
                fail!(
                    Status::ShapeMismatch,
                    "dst[{i}] is {width}x{height}, expected {}x{}, as src[{i}]",
                    expected.0,
                    expected.1
                );
            }
        }
        Ok(())
    }

    pub fn check_formats(&self) -> Result<()> {
        for (i, Pair { src, dst }) in self.pairs().enumerate() {
            if dst.desc.format != src.desc.format {
                fail!(
                    Status::DtypeMismatch,
                    "dst[{i}] has format {}, expected {}, as src[{i}]",
                    dst.desc.format,
                    src.desc.format
                );
            }
        }
        Ok(())
    }

    /// Refuses destinations that share bytes with each other or with a source. With `in_place`, a destination may be its
    /// own source.
    pub fn check_apart(&self, in_place: bool) -> Result<()> {
        let mut written: SmallVec<[(ByteRange, usize); 16]> = SmallVec::new();
        for (i, Pair { dst, .. }) in self.pairs().enumerate() {
            written.extend(dst.planes().map(|plane| (dst.plane_range(plane, true), i)));
        }
        written.sort_unstable_by_key(|(range, _)| range.start);
        for pair in written.windows(2) {
            let [(first, i), (second, j)] = [pair[0], pair[1]];
            if ranges_overlap(&first, &second) {
                fail!(
                    Status::InvalidArgument,
                    "dst[{i}] and dst[{j}] overlap at {:#x}, expected images apart from each other",
                    second.start
                );
            }
        }
        for (i, Pair { src, dst }) in self.pairs().enumerate() {
            if in_place && dst.is_same_as(&src) {
                continue; // and no other destination is there, as seen above
            }
            for plane in src.planes() {
                let read = src.plane_range(plane, false);
                let first =
                    written.partition_point(|(range, _)| range.start + range.length <= read.start);
                match written.get(first) {
                    Some((range, j)) if ranges_overlap(range, &read) => fail!(
                        Status::InvalidArgument,
                        "dst[{j}] overlaps src[{i}] at {:#x}, expected {}",
                        range.start,
                        if in_place {
                            "memory apart from it, or for one index the same image"
                        } else {
                            "memory apart from it"
                        }
                    ),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Refuses a tensor to read, the argument `name`, whose bytes are among those that are written.
    pub fn check_apart_from(&self, name: &str, read: &ByteRange) -> Result<()> {
        for (i, Pair { dst, .. }) in self.pairs().enumerate() {
            let overlaps = |plane| ranges_overlap(&dst.plane_range(plane, true), read);
            if dst.planes().any(overlaps) {
                fail!(
                    Status::InvalidArgument,
                    "dst[{i}] overlaps {name} at {:#x}, expected memory apart from it",
                    read.start
                );
            }
        }
        Ok(())
    }

    /// What the operator does with both batches and all images.
    pub fn accesses(&self) -> ObjectAccesses<'_> {
        let mut accesses = ObjectAccesses::new();
        accesses.push((self.src, AccessKind::Read));
        accesses.push((self.dst, AccessKind::Write));
        if mistake::is(Mistake::BatchIgnoresImages) {
            return accesses;
        }
        accesses.extend(self.from.iter().map(|image| (&**image, AccessKind::Read)));
        accesses.extend(self.to.iter().map(|image| (&**image, AccessKind::Write)));
        accesses
    }
}

/// A batch of the capacity of `src` with an image for each of `images`: format, width and height.
pub fn output(
    stream: &'static Stream,
    src: &ObjectRef,
    images: impl Iterator<Item = (Format, (i32, i32))>,
) -> Result<Output> {
    let batch = Output::image_batch(stream, src, src.image_batch().capacity)?;
    let mut made = Vec::with_capacity(images.size_hint().0);
    for (format, size) in images {
        // The batch holds the image on: its user reference goes with the `Output`.
        made.push(Output::image(stream, src, format, size)?.object()?);
    }
    batch.object()?.push_images(made)?;
    Ok(batch)
}
