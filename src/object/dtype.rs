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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_a_kind_and_lanes_or_an_error() {
        let mut valid = 0;
        for code in 0..0x1_0000u32 {
            let (kind, lanes) = (code & 0xff, (code >> 8) + 1);
            let expected = (1..=13).contains(&kind) && lanes <= if kind == 13 { 2 } else { 4 };
            match Dtype::from_code(code, "desc.dtype") {
                Ok(dtype) => {
                    assert!(expected, "{code:#x}");
                    assert_eq!(dtype.code(), code);
                    assert_eq!(dtype.kind() as u32, kind);
                    assert_eq!(dtype.lanes(), lanes);
                    assert_eq!(dtype.bytes(), dtype.lane_bytes() * u64::from(lanes));
                    assert_eq!(dtype.lane().code(), kind);
                    assert_eq!(dtype.lane().with_lanes(lanes), Some(dtype));
                    assert!(dtype.alignment().is_power_of_two());
                    assert_eq!(dtype.lane_bytes() % dtype.alignment(), 0);
                    let classes = [dtype.is_float(), dtype.is_complex(), dtype.is_integer()];
                    assert_eq!(classes.iter().filter(|&&is| is).count(), 1);
                    valid += 1;
                }
                Err(error) => {
                    assert!(!expected, "{code:#x}");
                    assert_eq!(error.status, Status::InvalidEnum);
                    let start = format!("desc.dtype is {code:#x}, expected ");
                    assert!(error.message.starts_with(&start), "{error}");
                }
            }
        }
        assert_eq!(valid, 12 * 4 + 2);
        for code in [0x100_0001, u32::MAX, 0xffff_ff01] {
            assert!(Dtype::from_code(code, "x").is_err());
        }
    }

    #[test]
    fn names_and_bytes() {
        let three = |dtype: Dtype| dtype.with_lanes(3).map(|d| (d.name(), d.bytes()));
        assert_eq!(Dtype::U8.name(), "U8");
        assert_eq!(three(Dtype::U8), Some(("3U8", 3)));
        assert_eq!(three(Dtype::S16), Some(("3S16", 6)));
        assert_eq!(three(Dtype::F32), Some(("3F32", 12)));
        assert_eq!(three(Dtype::C64), Some(("3C64", 24)));
        assert_eq!(three(Dtype::C128), None);
        assert_eq!(Dtype::U8.with_lanes(0), None);
        assert_eq!(Dtype::U8.with_lanes(5), None);
        assert_eq!(
            Dtype::C128.with_lanes(2).map(|d| d.to_string()),
            Some("2C128".into())
        );
        let all = [
            (Dtype::U8, 1),
            (Dtype::S8, 1),
            (Dtype::U16, 2),
            (Dtype::S16, 2),
            (Dtype::U32, 4),
            (Dtype::S32, 4),
            (Dtype::U64, 8),
            (Dtype::S64, 8),
            (Dtype::F16, 2),
            (Dtype::F32, 4),
            (Dtype::F64, 8),
            (Dtype::C64, 8),
            (Dtype::C128, 16),
        ];
        for (i, (dtype, bytes)) in all.into_iter().enumerate() {
            assert_eq!(dtype.code(), i as u32 + 1);
            assert_eq!(dtype.bytes(), bytes);
            assert_eq!(dtype.name(), format!("{:?}", dtype.kind()));
        }
        assert!(Dtype::F16.is_float() && Dtype::C64.is_complex() && Dtype::S64.is_integer());
    }

    #[test]
    fn addresses_follow_the_lane() {
        let elements = Dtype::F32.with_lanes(3).expect("3F32");
        assert_eq!(elements.alignment(), 4);
        assert!(elements.check_address(4, "p").is_ok());
        for (address, status) in [
            (0, Status::NullPointer),
            (2, Status::InvalidAlignment),
            (5, Status::InvalidAlignment),
        ] {
            let error = elements
                .check_address(address, "data.data")
                .expect_err("bad");
            assert_eq!(error.status, status);
            assert!(error.message.starts_with("data.data is "));
        }
    }
}
