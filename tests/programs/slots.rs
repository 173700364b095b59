//! What the slots of a program hold while it runs.

use std::ffi::{c_char, c_void};

use cvc::timeline::Stream;

use super::c_interface::*;
use super::model::*;
use super::program::*;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Origin {
    Created,
    Foreign,
    Registered,
}

/// A stream from its making to its end, whatever the library knows it as meanwhile.
pub(super) type Life = u64;
pub(super) const LIFE_OF_LEGACY: Life = 0;

pub(super) struct NamedStream {
    pub(super) handle: usize,
    pub(super) life: Life,
    pub(super) device: usize,
    pub(super) origin: Origin,
    /// It orders with the legacy stream.
    pub(super) is_blocking: bool,
}

/// What a tensor is at present.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) class: u16,
    pub(super) shape: u16,
    pub(super) bytes: u64,
    pub(super) slack: u64,
    pub(super) extents: [usize; 4],
}

impl Form {
    pub(super) fn of(kind: u16) -> Form {
        let of = &TENSOR_KINDS[kind as usize];
        Form {
            class: u16::from(of.class),
            shape: kind,
            bytes: of.bytes,
            slack: 0,
            extents: of.extents,
        }
    }

    /// Of just that size is what takes as many granules.
    pub(super) fn of_raw(kind: &RawKind) -> Form {
        let alignment = kind.alignment.max(512) as u64;
        let bytes = (kind.bytes as u64).next_multiple_of(512);
        Form {
            class: 200 + alignment.trailing_zeros() as u16,
            shape: (bytes / 512) as u16,
            bytes,
            slack: alignment - 512,
            extents: [0; 4],
        }
    }

    pub(super) fn of_image(kind: u16) -> Form {
        let of = &IMAGE_KINDS[kind as usize];
        Form {
            class: u16::from(of.class),
            shape: kind,
            bytes: of.bytes,
            slack: 0,
            extents: of.extents,
        }
    }

    /// With an N in front: NHWC, another layout and so another class.
    pub(super) fn with_n(self) -> Form {
        Form {
            class: self.class + 20,
            shape: self.shape + 100,
            ..self
        }
    }

    /// An image as a tensor: NCHW where it has one channel, else NHWC.
    pub(super) fn of_image_view(kind: u16) -> Form {
        let image = Form::of_image(kind);
        Form {
            class: if image.extents[3] == 1 { 2 } else { 20 },
            shape: kind + 200,
            ..image
        }
    }

    pub(super) fn value_bytes(&self) -> usize {
        self.extents.iter().product()
    }

    /// Values that begin with `first`; of a tensor of flip codes, codes.
    pub(super) fn values_from(&self, first: u16) -> Vec<u8> {
        if self.shape == CODES {
            let codes = (0..4).map(|index| i32::from((first + index) % 4) - 1);
            return codes.flat_map(i32::to_le_bytes).collect();
        }
        counted_from(first as u8, self.value_bytes())
    }
}

#[derive(Clone, Copy)]
pub(super) struct Tensor {
    pub(super) handle: cvc_tensor_t,
    pub(super) memory: MemoryId,
    pub(super) form: Form,
    /// The number of the view that it is.
    pub(super) view: Option<u64>,
}

#[derive(Clone, Copy)]
pub(super) struct Image {
    pub(super) handle: cvc_image_t,
    pub(super) memory: MemoryId,
    pub(super) kind: u16,
}

#[derive(Clone)]
pub(super) struct Batch {
    pub(super) handle: cvc_image_batch_t,
    pub(super) memory: MemoryId,
    pub(super) capacity: i32,
    pub(super) images: Vec<(MemoryId, u16)>,
}

pub(super) struct TensorBatch {
    pub(super) handle: cvc_tensor_batch_t,
    pub(super) memory: MemoryId,
    pub(super) capacity: i32,
    pub(super) tensors: Vec<Tensor>,
    /// Where its records were written last, and what they say.
    pub(super) records: Option<(u64, Vec<u64>)>,
}

pub(super) struct Export {
    pub(super) managed: *mut c_void,
    pub(super) memory: MemoryId,
    /// Where its end is noted.
    pub(super) consumer: Option<Place>,
    pub(super) lends: bool,
    /// Where a view was exported, which lives as long.
    pub(super) view: Option<u64>,
}

pub(super) struct Download {
    pub(super) device: usize,
    pub(super) got: Box<[u8]>,
    pub(super) values: Vec<u8>,
}

/// The head of a DLManagedTensor, whose tensor has 48 bytes.
#[repr(C)]
pub(super) struct Managed {
    pub(super) tensor: [u64; 6],
    pub(super) context: *mut c_void,
    pub(super) deleter: unsafe extern "C" fn(*mut c_void),
}

/// A stream as a call names it, and who that is just now.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) handle: cvc_stream_t,
    pub(super) stream: StreamId,
    pub(super) pointer: &'static Stream,
    pub(super) life: Life,
    /// The slot, or one of the default streams.
    pub(super) name: u16,
}

pub(super) fn text(into: &mut [c_char], from: &str) {
    for (place, letter) in into.iter_mut().zip(from.bytes()) {
        *place = letter as c_char;
    }
}

pub(super) fn desc_of(
    shape: &[i64],
    dtype: &str,
    layout: &str,
    device: usize,
) -> cvc_tensor_desc_t {
    // SAFETY: plain numbers.
    let mut desc: cvc_tensor_desc_t = unsafe { std::mem::zeroed() };
    desc.struct_size = std::mem::size_of_val(&desc);
    desc.device = device as i32;
    desc.rank = shape.len() as i32;
    desc.shape[..shape.len()].copy_from_slice(shape);
    desc.dtype = match dtype {
        "U8" => CVC_DTYPE_U8,
        "S32" => CVC_DTYPE_S32,
        _ => CVC_DTYPE_F32,
    };
    text(&mut desc.layout, layout);
    desc
}

/// Bytes that count up from `first`.
pub(super) fn counted_from(first: u8, length: usize) -> Vec<u8> {
    let values = (0..length).map(|index| first.wrapping_add((index % 251) as u8));
    values.collect()
}

/// What a flip gives: 0 turns rows about, 1 columns, -1 both, any other code copies.
pub fn flipped(values: &[u8], [outer, height, width, element]: [usize; 4], code: i32) -> Vec<u8> {
    let mut result = Vec::with_capacity(values.len());
    for plane in 0..outer {
        for y in 0..height {
            let from_y = match code {
                0 | -1 => height - 1 - y,
                _ => y,
            };
            for x in 0..width {
                let from_x = match code {
                    1 | -1 => width - 1 - x,
                    _ => x,
                };
                let from = ((plane * height + from_y) * width + from_x) * element;
                result.extend_from_slice(&values[from..from + element]);
            }
        }
    }
    result
}
