//! What the parameter blocks of the operators' kernels share: strided views, extents, and how rows are cut into work.

use std::mem::{offset_of, size_of};

use crate::error::{Result, Status};
use crate::fail;
use crate::op::device_launch::DeviceLaunch;

/// Mirrors `cvc_view` in `cuda/view.cuh`: element (n, c, h, w) lies at `data` plus the sum of index times stride. Strides
/// are bytes and may be zero or negative. A vector type's lanes are channels here: `stride_c` is then one lane's bytes.
///
/// The address and the strides are multiples of a lane's bytes, as `object` demands of every tensor and image
/// (`Dtype::alignment`), and kernels may count on it. That some of them would do with less is no promise.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub data: u64,
    pub stride_n: i64,
    pub stride_c: i64,
    pub stride_h: i64,
    pub stride_w: i64,
}

/// How many images, channels (lanes among them), rows and pixels a row a view has. Never negative.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    pub images: i64,
    pub channels: i64,
    pub height: i64,
    pub width: i64,
}

const _: () = {
    assert!(size_of::<View>() == 40);
    assert!(offset_of!(View, stride_n) == 8);
    assert!(offset_of!(View, stride_c) == 16);
    assert!(offset_of!(View, stride_h) == 24);
    assert!(offset_of!(View, stride_w) == 32);
    assert!(size_of::<Extents>() == 32);
    assert!(offset_of!(Extents, channels) == 8);
    assert!(offset_of!(Extents, height) == 16);
    assert!(offset_of!(Extents, width) == 24);
};

impl Extents {
    pub fn is_empty(&self) -> bool {
        self.images <= 0 || self.channels <= 0 || self.height <= 0 || self.width <= 0
    }

    /// Rows of all images, each with its channels: the work items of the kernels. 0 where there is no element.
    pub fn rows(&self) -> i64 {
        if self.is_empty() {
            return 0;
        }
        self.images.saturating_mul(self.height)
    }
}

impl View {
    /// Of nothing.
    pub const NOWHERE: View = View {
        data: 0,
        stride_n: 0,
        stride_c: 0,
        stride_h: 0,
        stride_w: 0,
    };

    /// Whether both name the same elements: strides count only where there is more than one step.
    pub fn is_same(&self, other: &View, extents: &Extents) -> bool {
        let same = |extent: i64, a: i64, b: i64| extent <= 1 || a == b;
        self.data == other.data
            && same(extents.images, self.stride_n, other.stride_n)
            && same(extents.channels, self.stride_c, other.stride_c)
            && same(extents.height, self.stride_h, other.stride_h)
            && same(extents.width, self.stride_w, other.stride_w)
    }

    /// The part that begins at pixel (x, y).
    pub fn from_pixel(self, x: i64, y: i64) -> View {
        self.moved(x * self.stride_w + y * self.stride_h)
    }

    /// The part that begins at that image.
    pub fn from_image(self, image: i64) -> View {
        self.moved(image * self.stride_n)
    }

    /// The part that begins at that channel.
    pub fn from_channel(self, channel: i64) -> View {
        self.moved(channel * self.stride_c)
    }

    /// The same elements with rows, columns or both in reverse order.
    pub fn flipped(self, rows: bool, columns: bool, extents: &Extents) -> View {
        let mut view = self;
        if rows {
            view = view.moved((extents.height - 1) * view.stride_h);
            view.stride_h = -view.stride_h;
        }
        if columns {
            view = view.moved((extents.width - 1) * view.stride_w);
            view.stride_w = -view.stride_w;
        }
        view
    }

    /// The same elements with so many channels in reverse order.
    pub fn channels_reversed(self, channels: i64) -> View {
        let mut view = self.from_channel(channels - 1);
        view.stride_c = -view.stride_c;
        view
    }

    fn moved(self, bytes: i64) -> View {
        View {
            data: self.data.wrapping_add_signed(bytes),
            ..self
        }
    }

    /// The view of a tensor of these extents whose dimensions of 1 stand for every index.
    pub fn broadcast(self, extents: &Extents) -> View {
        let stride = |extent: i64, stride: i64| if extent == 1 { 0 } else { stride };
        View {
            data: self.data,
            stride_n: stride(extents.images, self.stride_n),
            stride_c: stride(extents.channels, self.stride_c),
            stride_h: stride(extents.height, self.stride_h),
            stride_w: stride(extents.width, self.stride_w),
        }
    }
}

/// A struct that is a kernel's one parameter.
///
/// # Safety
/// The type is `repr(C)`, holds plain numbers alone and has no padding, so that each of its bytes is initialised.
pub unsafe trait ParameterBlock: Sized {
    /// For `Launch::params`.
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: by the trait's own condition all bytes are initialised, and the slice borrows `self`.
        unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(self).cast::<u8>(), size_of::<Self>())
        }
    }

    /// How a device launches it.
    fn device_launch(&self) -> DeviceLaunch;
}

/// `bytes` as a kernel takes it. Error: `NotSupported` unless it is 1, 2, 4, 8 or 16.
pub(crate) fn element_bytes(bytes: u64) -> Result<u32> {
    match bytes {
        1 | 2 | 4 | 8 | 16 => Ok(bytes as u32),
        _ => fail!(
            Status::NotSupported,
            "elements of {bytes} bytes, expected 1, 2, 4, 8 or 16"
        ),
    }
}

/// Bytes of an element of a kind's code: an integer or a real number.
pub(crate) fn kind_bytes(kind: u32) -> i64 {
    match kind {
        1 | 2 => 1,
        3 | 4 | 9 => 2,
        5 | 6 | 10 => 4,
        _ => 8,
    }
}

/// About how many bytes, read and written, make a task worth handing to another core: some 50 microseconds.
const TASK_BYTES: i64 = 512 << 10;

/// Rows of `row_bytes`, read and written, that make a task: `Launch::items_per_task`.
pub(crate) fn rows_per_task(row_bytes: i64) -> i64 {
    (TASK_BYTES / row_bytes.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENTS: Extents = Extents {
        images: 1,
        channels: 3,
        height: 4,
        width: 5,
    };
    const VIEW: View = View {
        data: 64,
        stride_n: 60,
        stride_c: 1,
        stride_h: 15,
        stride_w: 3,
    };

    #[test]
    fn a_stride_of_an_extent_of_one_does_not_count() {
        let other = View {
            stride_n: 999,
            ..VIEW
        };
        assert!(VIEW.is_same(&other, &EXTENTS));
        assert!(!VIEW.is_same(
            &View {
                stride_h: 16,
                ..VIEW
            },
            &EXTENTS
        ));
        assert!(!VIEW.is_same(&View { data: 65, ..VIEW }, &EXTENTS));
        let two = Extents {
            images: 2,
            ..EXTENTS
        };
        assert!(!VIEW.is_same(&other, &two));
    }

    #[test]
    fn reversing_twice_changes_nothing() {
        let turned = VIEW.flipped(true, true, &EXTENTS).channels_reversed(3);
        assert_eq!(turned.data, VIEW.data + 3 * 15 + 4 * 3 + 2);
        assert_eq!(
            [turned.stride_h, turned.stride_w, turned.stride_c],
            [-15, -3, -1]
        );
        let back = turned.channels_reversed(3).flipped(true, true, &EXTENTS);
        assert_eq!(back, VIEW);
    }

    #[test]
    fn broadcasting_clears_the_strides_of_extents_of_one() {
        let own = Extents {
            images: 1,
            channels: 3,
            height: 1,
            width: 1,
        };
        let expected = View {
            data: 64,
            stride_c: 1,
            ..View::default()
        };
        assert_eq!(VIEW.broadcast(&own), expected);
    }

    #[test]
    fn an_extent_of_zero_leaves_no_rows() {
        assert_eq!(EXTENTS.rows(), 4);
        for empty in [
            Extents {
                images: 0,
                ..EXTENTS
            },
            Extents {
                channels: 0,
                ..EXTENTS
            },
            Extents {
                height: 0,
                ..EXTENTS
            },
            Extents {
                width: 0,
                ..EXTENTS
            },
        ] {
            assert_eq!(empty.rows(), 0);
        }
    }

    #[test]
    fn a_task_has_a_row_at_least() {
        assert_eq!(rows_per_task(0), TASK_BYTES);
        assert_eq!(rows_per_task(i64::MAX), 1);
    }
}
