//! Element types: a scalar kind and one to four lanes, as the code that crosses the C ABI.

use std::fmt;

use crate::error::{Result, Status};
use crate::fail;

/// The scalar that one lane of an element holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    U8 = 1,
    S8 = 2,
    U16 = 3,
    S16 = 4,
    U32 = 5,
    S32 = 6,
    U64 = 7,
    S64 = 8,
    F16 = 9,
    F32 = 10,
    F64 = 11,
    C64 = 12,
    C128 = 13,
}

/// An element type: `kind | (lanes - 1) << 8`. Every value of this type is a valid one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Dtype(u32);

const KINDS: [Kind; 13] = [
    Kind::U8,
    Kind::S8,
    Kind::U16,
    Kind::S16,
    Kind::U32,
    Kind::S32,
    Kind::U64,
    Kind::S64,
    Kind::F16,
    Kind::F32,
    Kind::F64,
    Kind::C64,
    Kind::C128,
];

const LANE_BYTES: [u64; 13] = [1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 8, 16];

macro_rules! lane_names {
    ($($kind:literal),*) => {
        [$([$kind, concat!("2", $kind), concat!("3", $kind), concat!("4", $kind)]),*]
    };
}

const NAMES: [[&str; 4]; 13] = lane_names!(
    "U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64", "F16", "F32", "F64", "C64", "C128"
);

impl Dtype {
    pub const U8: Dtype = Dtype(1);
    pub const S8: Dtype = Dtype(2);
    pub const U16: Dtype = Dtype(3);
    pub const S16: Dtype = Dtype(4);
    pub const U32: Dtype = Dtype(5);
    pub const S32: Dtype = Dtype(6);
    pub const U64: Dtype = Dtype(7);
    pub const S64: Dtype = Dtype(8);
    pub const F16: Dtype = Dtype(9);
    pub const F32: Dtype = Dtype(10);
    pub const F64: Dtype = Dtype(11);
    pub const C64: Dtype = Dtype(12);
    pub const C128: Dtype = Dtype(13);

    /// The type of that code; `InvalidEnum`, naming `argument`, where there is none (0 included).
    pub fn from_code(code: u32, argument: &str) -> Result<Dtype> {
        let (kind, lanes) = (code & 0xff, (code >> 8).saturating_add(1));
        if !(1..=13).contains(&kind) {
            fail!(
                Status::InvalidEnum,
                "{argument} is {code:#x}, expected a CVC_DTYPE_ value: kind 1 to 13 in the low byte"
            );
        }
        match Dtype(kind).with_lanes(lanes) {
            Some(dtype) => Ok(dtype),
            None => fail!(
                Status::InvalidEnum,
                "{argument} is {code:#x}, expected 1 to {} lanes for kind {}",
                max_lanes(kind),
                Dtype(kind).name()
            ),
        }
    }

    pub const fn code(self) -> u32 {
        self.0
    }

    const fn index(self) -> usize {
        (self.0 & 0xff) as usize - 1
    }

    pub const fn kind(self) -> Kind {
        KINDS[self.index()]
    }

    pub const fn lanes(self) -> u32 {
        (self.0 >> 8) + 1
    }

    /// Bytes of one lane; a complex number is one lane.
    pub const fn lane_bytes(self) -> u64 {
        LANE_BYTES[self.index()]
    }

    /// Bytes of a whole element, all its lanes.
    pub const fn bytes(self) -> u64 {
        self.lane_bytes() * self.lanes() as u64
    }

    /// The same kind with `lanes` lanes: 1 to 4, C128 at most 2.
    pub const fn with_lanes(self, lanes: u32) -> Option<Dtype> {
        let kind = self.0 & 0xff;
        if lanes == 0 || lanes > max_lanes(kind) {
            return None;
        }
        Some(Dtype(kind | (lanes - 1) << 8))
    }

    /// The type of one lane.
    pub const fn lane(self) -> Dtype {
        Dtype(self.0 & 0xff)
    }

    /// What addresses and strides must be multiples of: a power of two, the bytes of one lane.
    /// Lanes stand packed, so a 3U8 element may begin at any byte and a 4F32 at every fourth.
    pub const fn alignment(self) -> u64 {
        self.lane_bytes()
    }

    /// "U8", "3U8": the name without its prefix.
    pub const fn name(self) -> &'static str {
        NAMES[self.index()][self.lanes() as usize - 1]
    }

    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::F16 | Kind::F32 | Kind::F64)
    }

    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::C64 | Kind::C128)
    }

    pub const fn is_integer(self) -> bool {
        !self.is_float() && !self.is_complex()
    }

    /// An address of such elements: `NullPointer` or `InvalidAlignment`, naming `argument`.
    pub fn check_address(self, address: u64, argument: &str) -> Result<()> {
        if address == 0 {
            fail!(Status::NullPointer, "{argument} is null");
        }
        if address & (self.alignment() - 1) != 0 {
            fail!(
                Status::InvalidAlignment,
                "{argument} is {address:#x}, expected a multiple of {} for dtype {self}",
                self.alignment()
            );
        }
        Ok(())
    }
}

const fn max_lanes(kind: u32) -> u32 {
    if kind == Kind::C128 as u32 {
        2
    } else {
        4
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
