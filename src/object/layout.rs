//! Tensor layouts: up to 15 one-character labels, one a dimension, or none at all.

use std::ffi::c_char;
use std::fmt;

use crate::error::{Result, Status};
use crate::fail;

/// The labels of a tensor's dimensions, outermost first, padded with NUL; all NUL means none.
/// Labels are printable ASCII and each occurs once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Layout {
    labels: [u8; 16],
}

macro_rules! named {
    ($($name:ident)*) => {
        $(pub const $name: Layout = Layout::literal(stringify!($name));)*
    };
}

impl Layout {
    pub const NONE: Layout = Layout { labels: [0; 16] };
    named!(W WC CW NW NWC NCW HW NHW CHW NCHW HWC NHWC);
    named!(FHW NFHW CFHW FCHW FHWC NCFHW NFCHW NFHWC);
    named!(DHW NDHW CDHW DHWC NCDHW NDHWC FDHW NFDHW);
    named!(CFDHW FCDHW FDHWC NCFDHW NFCDHW NFDHWC);

    const fn literal(text: &str) -> Layout {
        let bytes = text.as_bytes();
        let mut labels = [0; 16];
        let mut i = 0;
        while i < bytes.len() {
            labels[i] = bytes[i];
            i += 1;
        }
        Layout { labels }
    }

    /// The layout in a field of 16 bytes. `InvalidLayout`, naming `argument`, where the text is not
    /// terminated, has a byte that is not printable ASCII, or bytes after the NUL.
    pub fn from_bytes(bytes: &[u8; 16], argument: &str) -> Result<Layout> {
        let Some(len) = bytes.iter().position(|&b| b == 0) else {
            fail!(
                Status::InvalidLayout,
                "{argument} is \"{}\" without a terminating NUL, expected at most 15 labels",
                bytes.escape_ascii()
            );
        };
        check_labels(&bytes[..len], argument)?;
        if bytes[len..].iter().any(|&b| b != 0) {
            fail!(
                Status::InvalidLayout,
                "{argument} is \"{}\", expected NUL in every byte after the labels",
                bytes.escape_ascii()
            );
        }
        Ok(Layout { labels: *bytes })
    }

    /// `from_bytes` of a C struct's field.
    pub fn from_chars(chars: &[c_char; 16], argument: &str) -> Result<Layout> {
        Layout::from_bytes(&chars.map(|c| c as u8), argument)
    }

    /// The layout of a text of at most 15 labels, "" being none; else `InvalidLayout`.
    pub fn parse(text: &str) -> Result<Layout> {
        if text.len() > 15 {
            fail!(
                Status::InvalidLayout,
                "layout is {text:?}, {} bytes long, expected at most 15 labels",
                text.len()
            );
        }
        check_labels(text.as_bytes(), "layout")?;
        Ok(Layout::literal(text))
    }

    pub fn len(&self) -> usize {
        // NUL only pads: the bytes that are used are the low ones.
        16 - self.as_u128().leading_zeros() as usize / 8
    }

    pub const fn is_empty(&self) -> bool {
        self.labels[0] == 0
    }

    pub fn labels(&self) -> &[u8] {
        &self.labels[..self.len()]
    }

    pub fn as_str(&self) -> &str {
        // Labels are ASCII, so the default is never taken.
        std::str::from_utf8(self.labels()).unwrap_or_default()
    }

    /// The field of a C struct.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.labels
    }

    pub fn to_chars(self) -> [c_char; 16] {
        self.labels.map(|b| b as c_char)
    }

    /// Where the dimension of that label stands.
    pub fn index_of(&self, label: u8) -> Option<usize> {
        self.labels().iter().position(|&b| b == label)
    }

    pub fn ends_with(&self, suffix: &str) -> bool {
        self.labels().ends_with(suffix.as_bytes())
    }

    /// Whether a row is width times channels, both packed.
    pub fn is_channel_last(&self) -> bool {
        self.ends_with("WC")
    }

    /// All labels in one number, for hashing and comparing in one step.
    pub const fn as_u128(&self) -> u128 {
        u128::from_le_bytes(self.labels)
    }

    /// `InvalidLayout`, naming `argument`, unless there is one label a dimension, or none at all.
    pub fn check_rank(&self, rank: usize, argument: &str) -> Result<()> {
        if !self.is_empty() && self.len() != rank {
            fail!(
                Status::InvalidLayout,
                "{argument} is \"{self}\" with {} labels, expected {rank}, as many as the rank, or none",
                self.len()
            );
        }
        Ok(())
    }
}

fn check_labels(labels: &[u8], argument: &str) -> Result<()> {
    for (i, &label) in labels.iter().enumerate() {
        if !label.is_ascii_graphic() {
            fail!(
                Status::InvalidLayout,
                "{argument} is \"{}\", expected printable ASCII: byte {i} is {label:#04x}",
                labels.escape_ascii()
            );
        }
    }
    Ok(())
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({:?})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &[u8]) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text);
        bytes
    }

    #[test]
    fn text_bytes_and_labels_agree() {
        for text in ["", "W", "WC", "NHWC", "NDHWC", "ab.Z", "ABCDEFGHIJKLMNO"] {
            let layout = Layout::parse(text).expect(text);
            assert_eq!(layout.len(), text.len());
            assert_eq!(layout.is_empty(), text.is_empty());
            assert_eq!(layout.as_str(), text);
            assert_eq!(format!("{layout:>5}"), format!("{text:>5}"));
            assert_eq!(layout.labels(), text.as_bytes());
            assert_eq!(layout.to_bytes(), field(text.as_bytes()));
            assert_eq!(Layout::from_bytes(&layout.to_bytes(), "x"), Ok(layout));
            assert_eq!(Layout::from_chars(&layout.to_chars(), "x"), Ok(layout));
            for (i, label) in text.bytes().enumerate() {
                assert_eq!(layout.index_of(label), Some(i));
            }
            assert_eq!(layout.index_of(b'?'), None);
            assert_eq!(layout.index_of(0), None);
        }
        assert_eq!(Layout::parse(""), Ok(Layout::NONE));
        assert_eq!(Layout::parse("NHWC"), Ok(Layout::NHWC));
        assert_ne!(Layout::NHWC.as_u128(), Layout::NCHW.as_u128());
        assert_eq!(Layout::NONE.as_u128(), 0);
        assert_eq!(Layout::default(), Layout::NONE);
    }

    #[test]
    fn channel_last_needs_width_and_channels_at_the_end() {
        for (layout, expected) in [
            (Layout::NHWC, true),
            (Layout::WC, true),
            (Layout::NDHWC, true),
            (Layout::NCHW, false),
            (Layout::CW, false),
            (Layout::NONE, false),
            (Layout::W, false),
        ] {
            assert_eq!(layout.is_channel_last(), expected, "{layout}");
        }
        assert!(Layout::NHWC.ends_with("HWC") && !Layout::NHWC.ends_with("NNHWC"));
        assert!(Layout::NONE.ends_with(""));
    }

    #[test]
    fn bad_text_is_refused() {
        let cases: [(&[u8], &str); 6] = [
            (b"ABCDEFGHIJKLMNOP", "terminating NUL"),
            (b"NH\x01C", "byte 2 is 0x01"),
            (b"N WC", "byte 1 is 0x20"),
            (b"NHW\xff", "byte 3 is 0xff"),
            (b"NHWC\0x", "after the labels"),
            (b"\0N", "after the labels"),
        ];
        for (text, part) in cases {
            let error = Layout::from_bytes(&field(text), "desc.layout").expect_err(part);
            assert_eq!(error.status, Status::InvalidLayout);
            assert!(error.message.starts_with("desc.layout is "), "{error}");
            assert!(error.message.contains(part), "{error}");
        }
        for text in ["ABCDEFGHIJKLMNOP", "N\n", "é", "N\0"] {
            let error = Layout::parse(text).expect_err(text);
            assert_eq!(error.status, Status::InvalidLayout);
        }
    }

    #[test]
    fn rank_is_the_number_of_labels_or_there_are_none() {
        assert!(Layout::NONE.check_rank(7, "x").is_ok());
        assert!(Layout::HWC.check_rank(3, "x").is_ok());
        let error = Layout::HWC.check_rank(4, "desc.layout").expect_err("rank");
        assert_eq!(error.status, Status::InvalidLayout);
        assert!(error
            .message
            .starts_with("desc.layout is \"HWC\" with 3 labels, expected 4"));
    }
}
