//! Making tensors: from the cache, around foreign memory, and as views of tensors and images.

use std::ffi::c_void;

use super::handle::{Handle, ObjectKind};
use super::object::{open, open_view, set_body, Body, Object, ObjectRef};
use super::reshape;
use super::tensor_desc::TensorDesc;
use super::{Dtype, Layout};
use crate::cache::{self, Acquired, Cache, OwnerRelease, RawRequest, Request, Resolved, ShellKind};
use crate::error::Result;
use crate::timeline::{AccessKind, Stream};

/// A tensor as asked for, before anything of it is checked but the number of dimensions.
pub struct TensorRequest<'a> {
    pub device: i32,
    pub shape: &'a [i64],
    pub dtype: u32,
    pub layout: [u8; 16],
    pub row_align: i64,
    pub base_align: i64,
}

impl TensorRequest<'_> {
    pub fn resolve(&self) -> Result<TensorDesc> {
        let dtype = Dtype::from_code(self.dtype, "desc.dtype")?;
        let layout = Layout::from_bytes(&self.layout, "desc.layout")?;
        TensorDesc::compute(
            self.device,
            self.shape,
            dtype,
            layout,
            self.row_align,
            self.base_align,
        )
    }
}

/// A tensor for a request that the calling thread made before, word for word, where the cache has an idle one that is
/// ready: the whole cost of a hit.
#[inline(always)]
pub fn tensor_recall(raw: &RawRequest) -> Option<Handle> {
    let entry = cache::recall(raw)?;
    // SAFETY: the entry is this caller's alone, and as it was when it was last opened.
    Some(unsafe { Object::reopen_plain(entry.cast(), ObjectKind::Tensor) })
}

/// A tensor from the cache, and a note of what the raw request led to. `stream`: whose queued work may use it at once; `None`: no work is named, so that memory with
/// pending work is not considered.
pub fn tensor_create(
    cache: &'static Cache,
    wanted: &TensorRequest,
    stream: Option<&'static Stream>,
    raw: Option<&RawRequest>,
) -> Result<Handle> {
    let [low, high] = halves(&wanted.layout);
    let request = Request {
        head: [
            u64::from(wanted.dtype) | (ObjectKind::Tensor as u64) << 32,
            low,
            high,
            wanted.row_align as u64,
            wanted.base_align as u64,
        ],
        dims: wanted.shape,
    };
    let mut resolved = None;
    let acquired = cache::acquire(cache, wanted.device, &request, stream, || {
        let desc = resolved.insert(wanted.resolve()?);
        Ok(key_of(desc))
    })?;
    // SAFETY: the entry is this caller's alone.
    unsafe {
        if !acquired.same_shape {
            write_desc(&acquired, wanted, resolved)?;
        }
        let handle = open(acquired.entry, cache, ObjectKind::Tensor);
        if let Some(raw) = raw {
            cache::note(raw, acquired.entry, stream);
        }
        Ok(handle)
    }
}

#[cold]
unsafe fn write_desc(
    acquired: &Acquired,
    wanted: &TensorRequest,
    resolved: Option<TensorDesc>,
) -> Result<()> {
    let desc = match resolved {
        Some(desc) => desc,
        None => wanted.resolve()?,
    };
    // SAFETY: the caller's promise: the entry is its alone.
    unsafe {
        let data = (*acquired.entry)
            .block
            .as_ref()
            .map_or(0, |block| block.pointer);
        set_body(acquired.entry, Body::Tensor { desc, data }, None);
    }
    Ok(())
}

#[inline(always)]
pub(super) fn halves(bytes: &[u8; 16]) -> [u64; 2] {
    let all = u128::from_le_bytes(*bytes);
    [all as u64, (all >> 64) as u64]
}

fn key_of(desc: &TensorDesc) -> Resolved {
    let [low, high] = halves(&desc.layout.to_bytes());
    let class = [
        u64::from(desc.dtype.code()) | (ObjectKind::Tensor as u64) << 32,
        low,
        high,
    ];
    let mut exact: smallvec::SmallVec<[u64; 36]> = smallvec::SmallVec::new();
    exact.extend(class);
    exact.push(desc.base_align);
    exact.extend(desc.dims().iter().map(|dim| *dim as u64));
    exact.extend(desc.strides().iter().map(|stride| *stride as u64));
    Resolved {
        class,
        exact,
        bytes: desc.nbytes,
        align: desc.base_align,
    }
}

/// Memory that belongs to somebody else, and how they hear that nobody uses it any more.
pub struct ForeignMemory {
    pub release: Option<OwnerRelease>,
    pub context: *mut c_void,
    /// Work queued on it so far comes before any use.
    pub producer: Option<&'static Stream>,
    /// Other idle shells are kept for further wraps.
    pub keep_shells: bool,
}

/// The entry of a wrap, with its owner and its producer's work.
pub(super) fn acquire_foreign(
    cache: &'static Cache,
    device: i32,
    kind: ShellKind,
    foreign: &ForeignMemory,
) -> Result<*mut cache::Entry> {
    if let Some(stream) = foreign.producer {
        // What is queued in a capture is not done when the stream is.
        stream.check_not_capturing()?;
    }
    let entry = cache::acquire_wrap(cache, device, kind, foreign.keep_shells)?;
    // SAFETY: the entry is this caller's alone.
    unsafe {
        (*entry).set_owner_release(foreign.release.map(|release| (release, foreign.context)));
        let accesses = (*entry).accesses.get_mut();
        accesses.clear();
        if let Some(stream) = foreign.producer {
            // An error here leaves the access noted, so that the memory counts as in use.
            let (sequence, _) = stream.submit();
            accesses.record(AccessKind::Write, stream, sequence);
        }
    }
    Ok(entry)
}

/// A tensor around foreign memory at `data`.
pub fn tensor_wrap(
    cache: &'static Cache,
    desc: TensorDesc,
    data: u64,
    foreign: &ForeignMemory,
) -> Result<Handle> {
    let entry = acquire_foreign(cache, desc.device, ShellKind::Tensor, foreign)?;
    // SAFETY: the entry is this caller's alone.
    unsafe {
        set_body(entry, Body::Tensor { desc, data }, None);
        Ok(open(entry, cache, ObjectKind::Tensor))
    }
}

/// The tensor that an object of that kind is.
impl Object {
    pub fn tensor(&self) -> (&TensorDesc, u64) {
        match self.body() {
            Body::Tensor { desc, data } => (desc, *data),
            _ => unreachable!("a tensor handle leads to a tensor"),
        }
    }
}

/// A view of the same memory in another shape.
pub fn tensor_reshape(parent: &ObjectRef, shape: &[i64], layout: Layout) -> Result<Handle> {
    let (desc, data) = parent.tensor();
    let desc = reshape::reshape(desc, shape, layout)?;
    open_view(parent, Body::Tensor { desc, data }, ObjectKind::Tensor)
}

/// A tensor that views a whole image.
pub fn tensor_from_image(image: &ObjectRef) -> Result<Handle> {
    let (desc, data) = image.image();
    let (tensor, offset) = reshape::tensor_from_image(desc)?;
    open_view(
        image,
        Body::Tensor {
            desc: tensor,
            data: data.wrapping_add(offset),
        },
        ObjectKind::Tensor,
    )
}

/// A tensor HWC that views one plane of an image.
pub fn tensor_from_plane(image: &ObjectRef, plane: i32) -> Result<Handle> {
    let (desc, data) = image.image();
    let (tensor, offset) = reshape::tensor_from_plane(desc, plane)?;
    open_view(
        image,
        Body::Tensor {
            desc: tensor,
            data: data.wrapping_add(offset),
        },
        ObjectKind::Tensor,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::MEMO_WORDS;
    use crate::{backend, object, timeline};

    #[test]
    fn a_request_is_recalled_until_anything_about_it_differs() {
        object::install_hooks();
        let cache = object::create_cache(Some(1 << 20))
            .expect("there are slots")
            .0;
        let handle = timeline::create(0, false).expect("the host backend makes streams");
        let stream = timeline::resolve(handle, 0).expect("a created stream is known");
        let backend = backend::current().expect("the host backend starts");
        let words = [7; MEMO_WORDS];
        let same = RawRequest {
            words: &words,
            cache: 0x15,
            stream: 0x15,
            current_device: 0x15,
            epoch: 0x15,
        };
        let dims = [4, 5];
        let plain = Request {
            head: [1; 5],
            dims: &dims,
        };
        let resolve = || {
            Ok(Resolved {
                class: [1; 3],
                exact: [4u64, 5].into_iter().collect(),
                bytes: 512,
                align: 512,
            })
        };
        let acquired = cache::acquire(cache, 0, &plain, Some(stream), resolve);
        let entry = acquired.expect("there is memory").entry;
        // SAFETY: the entry is live and this test's alone, and released once.
        unsafe {
            cache::note(&same, entry, Some(stream));
            assert_eq!(cache::recall(&same), None, "it is in use");
            cache::release(cache, entry);
        }
        // Other bits of the same words, and differences that could make up for each other.
        for flips in [
            [0x2a, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1],
            [0, 4, 0, 0],
            [0, 0, 2, 0],
            [0, 0, 0, 8],
            [0, 1, 0, 1],
        ] {
            let other = RawRequest {
                words: &words,
                cache: same.cache ^ flips[0],
                stream: same.stream ^ flips[1] as usize,
                current_device: same.current_device ^ flips[2] as i32,
                epoch: same.epoch ^ flips[3],
            };
            assert_eq!(cache::recall(&other), None, "{flips:x?}");
        }
        assert_eq!(cache::recall(&same), Some(entry));
        // A foreign stream's handle may be another's next time.
        let foreign = backend.stream_create(0, false).expect("it makes streams");
        let stream = timeline::resolve(foreign, 0).expect("it lives");
        let other = RawRequest {
            stream: 0x77,
            ..same
        };
        // SAFETY: as above; `recall` has made it live.
        unsafe {
            cache::note(&other, entry, Some(stream));
            cache::release(cache, entry);
        }
        assert_eq!(cache::recall(&other), None);
        backend.stream_destroy(0, foreign).expect("it lives");
    }
}
