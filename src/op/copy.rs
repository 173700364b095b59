//! Copies between tensors and to and from host memory, and zeroing: rows of any strides.

use smallvec::SmallVec;

use crate::backend::{self, ByteRange, Copy2d, CopyKind, Fill2d};
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{self, ObjectRef, TensorDesc, MAX_RANK};
use crate::op::operand::ranges_overlap;
use crate::timeline::{AccessKind, Stream};

/// One dimension of a copy: how many steps, and the bytes of a step on either side.
#[derive(Clone, Copy)]
struct Step {
    count: i64,
    a: i64,
    b: i64,
}

/// A copy as rows of bytes: `width` bytes, the steps from the outermost to the innermost.
struct Rows {
    width: u64,
    steps: SmallVec<[Step; MAX_RANK]>,
}

/// Joins dimensions that lie alike on both sides. `None` when there is nothing to copy.
fn rows(desc: &TensorDesc, a: &[i64], b: &[i64]) -> Option<Rows> {
    if desc.is_empty() {
        return None;
    }
    let mut width = desc.dtype.bytes() as i64;
    let mut steps: SmallVec<[Step; MAX_RANK]> = SmallVec::new();
    for (i, count) in desc.dims().iter().copied().enumerate().rev() {
        let step = Step {
            count,
            a: a[i],
            b: b[i],
        };
        if count == 1 {
            continue;
        }
        if steps.is_empty() && step.a == width && step.b == width {
            width *= count;
            continue;
        }
        match steps.last_mut() {
            Some(inner) if step.a == inner.a * inner.count && step.b == inner.b * inner.count => {
                inner.count *= count
            }
            _ => steps.push(step),
        }
    }
    steps.reverse();
    Some(Rows {
        width: width as u64,
        steps,
    })
}

impl Rows {
    /// Calls `block` with the offsets on both sides, pitches and height of each two-dimensional part.
    fn blocks(&self, mut block: impl FnMut(i64, i64, Step) -> Result<()>) -> Result<()> {
        let one = Step {
            count: 1,
            a: self.width as i64,
            b: self.width as i64,
        };
        let width = self.width as i64;
        let (inner, outer) = match self.steps.split_last() {
            Some((last, rest)) if last.a >= width && last.b >= width => (*last, rest),
            _ => (one, &self.steps[..]),
        };
        let total: i64 = outer.iter().map(|step| step.count).product();
        for place in 0..total {
            let (mut left, mut a, mut b) = (place, 0, 0);
            for step in outer.iter().rev() {
                let at = left % step.count;
                left /= step.count;
                a += at * step.a;
                b += at * step.b;
            }
            block(a, b, inner)?;
        }
        Ok(())
    }
}

/// Refuses strides of the host side that lead out of what addresses can tell.
fn check_strides(desc: &TensorDesc, strides: &[i64], name: &str) -> Result<()> {
    if desc.is_empty() {
        return Ok(());
    }
    let mut span = desc.dtype.bytes() as i64;
    for (dimension, (&count, &stride)) in desc.dims().iter().zip(strides).enumerate() {
        // Also as many steps as there are elements: that is where dimensions are joined.
        let reach = stride
            .checked_abs()
            .and_then(|step| step.checked_mul(count));
        let Some(sum) = reach.and_then(|reach| span.checked_add(reach)) else {
            fail!(
                Status::Overflow,
                "{name}[{dimension}] is {stride} bytes for {count} elements, expected strides that span less than 2^63 \
                 bytes together"
            );
        };
        span = sum;
    }
    Ok(())
}

fn packed(desc: &TensorDesc) -> SmallVec<[i64; MAX_RANK]> {
    let mut strides: SmallVec<[i64; MAX_RANK]> = SmallVec::from_elem(0, desc.rank as usize);
    let mut stride = desc.dtype.bytes() as i64;
    for (i, dim) in desc.dims().iter().enumerate().rev() {
        strides[i] = stride;
        stride *= dim.max(&1);
    }
    strides
}

fn copy_rows(
    stream: &'static Stream,
    device: i32,
    rows: &Rows,
    kind: CopyKind,
    src: u64,
    dst: u64,
) -> Result<()> {
    let backend = backend::current()?;
    let handle = stream.handle();
    rows.blocks(|from, to, inner| {
        let copy = Copy2d {
            kind,
            src: src.wrapping_add_signed(from),
            src_pitch: inner.a as u64,
            dst: dst.wrapping_add_signed(to),
            dst_pitch: inner.b as u64,
            width: rows.width,
            height: inner.count as u64,
        };
        backend.copy_2d(device, handle, &copy)
    })
}

/// Refuses a pair of tensors that do not have one device, shape and dtype.
pub fn check_alike(src: &ObjectRef, dst: &ObjectRef) -> Result<()> {
    let ((from, _), (to, _)) = (src.tensor(), dst.tensor());
    if from.device != to.device {
        fail!(
            Status::DeviceMismatch,
            "dst is on device {}, expected device {}, as src",
            to.device,
            from.device
        );
    }
    if from.dims() != to.dims() {
        fail!(
            Status::ShapeMismatch,
            "dst has shape {:?}, expected {:?}, as src",
            to.dims(),
            from.dims()
        );
    }
    if from.dtype != to.dtype {
        fail!(
            Status::DtypeMismatch,
            "dst has dtype {}, expected {}, as src",
            to.dtype.name(),
            from.dtype.name()
        );
    }
    Ok(())
}

/// `src` and `dst` have one device, shape and dtype. Copying a tensor onto itself does nothing.
pub fn copy(stream: &'static Stream, src: &ObjectRef, dst: &ObjectRef) -> Result<()> {
    check_alike(src, dst)?;
    let ((from, src_data), (to, dst_data)) = (src.tensor(), dst.tensor());
    let Some(rows) = rows(from, from.strides(), to.strides()) else {
        return Ok(());
    };
    if src_data == dst_data && from.strides() == to.strides() {
        return Ok(());
    }
    let spans = [(from, src_data), (to, dst_data)].map(|(desc, start)| ByteRange {
        start,
        length: desc.span_bytes(),
        write: false,
    });
    if ranges_overlap(&spans[0], &spans[1]) {
        fail!(
            Status::InvalidArgument,
            "dst lies at {dst_data:#x} in {} bytes and overlaps src, which lies at {src_data:#x} in {}; expected memory \
             apart from it",
            spans[1].length,
            spans[0].length
        );
    }
    object::submit(
        stream,
        &[(src, AccessKind::Read), (dst, AccessKind::Write)],
        || {
            copy_rows(
                stream,
                from.device,
                &rows,
                CopyKind::DeviceToDevice,
                src_data,
                dst_data,
            )
        },
    )
}

/// Host memory at `src` into `dst`; strides of the host side in bytes, or packed.
pub fn upload(
    stream: &'static Stream,
    src: u64,
    src_strides: Option<&[i64]>,
    dst: &ObjectRef,
) -> Result<()> {
    let (desc, data) = dst.tensor();
    let dense = packed(desc);
    let strides = src_strides.unwrap_or(&dense);
    check_strides(desc, strides, "src_strides")?;
    let Some(rows) = rows(desc, strides, desc.strides()) else {
        return Ok(());
    };
    object::submit(stream, &[(dst, AccessKind::Write)], || {
        copy_rows(
            stream,
            desc.device,
            &rows,
            CopyKind::HostToDevice,
            src,
            data,
        )
    })
}

/// `src` into host memory at `dst`; strides of the host side in bytes, or packed.
pub fn download(
    stream: &'static Stream,
    src: &ObjectRef,
    dst: u64,
    dst_strides: Option<&[i64]>,
) -> Result<()> {
    let (desc, data) = src.tensor();
    let dense = packed(desc);
    let strides = dst_strides.unwrap_or(&dense);
    check_strides(desc, strides, "dst_strides")?;
    let Some(rows) = rows(desc, desc.strides(), strides) else {
        return Ok(());
    };
    object::submit(stream, &[(src, AccessKind::Read)], || {
        copy_rows(
            stream,
            desc.device,
            &rows,
            CopyKind::DeviceToHost,
            data,
            dst,
        )
    })
}

/// Zero bytes over every element.
pub fn fill_zero(stream: &'static Stream, tensor: &ObjectRef) -> Result<()> {
    let (desc, data) = tensor.tensor();
    let Some(rows) = rows(desc, desc.strides(), desc.strides()) else {
        return Ok(());
    };
    object::submit(stream, &[(tensor, AccessKind::Write)], || {
        let backend = backend::current()?;
        rows.blocks(|offset, _, inner| {
            let fill = Fill2d {
                dst: data.wrapping_add_signed(offset),
                pitch: inner.a as u64,
                width: rows.width,
                height: inner.count as u64,
            };
            backend.fill_zero_2d(desc.device, stream.handle(), &fill)
        })
    })
}
