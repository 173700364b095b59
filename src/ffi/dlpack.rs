//! DLPack: tensors out to other libraries and in from them. Struct layouts are those of dlpack.h 1.x.

use std::ffi::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

use super::arguments::{self, opaque, out};
use super::cache;
use super::constants::*;
use super::error::guard;
use super::structs::*;
use super::tensor::{check_device_pointer, layout_text};
use crate::backend::{self, BackendKind, STREAM_LEGACY};
use crate::error::{Result, Status};
use crate::fail;
use crate::object::{
    self, Dtype, DtypeKind, ForeignMemory, Layout, ObjectRef, TensorDesc, MAX_RANK,
};
use crate::observe::mistake::{self, Mistake};
use crate::observe::process;
use crate::timeline::{self, AccessKind, Hold, StreamKind};

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    rank: i32,
    dtype: DlDataType,
    shape: *mut i64,
    /// Elements.
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
pub struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
pub struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

const _: () =
    assert!(std::mem::size_of::<Managed>() == 64 && std::mem::size_of::<ManagedVersioned>() == 80);

const DL_CPU: i32 = 1;
const DL_CUDA: i32 = 2;
const DL_CUDA_HOST: i32 = 3;
const DL_CUDA_MANAGED: i32 = 13;

/// What an export keeps: a reference to the memory, the stream it was given to, and the arrays that the struct points to.
struct Export {
    object: ObjectRef,
    consumer: Option<Hold>,
    shape: [i64; MAX_RANK + 1],
    strides: [i64; MAX_RANK + 1],
}

impl Export {
    /// The consumer is through: what it has queued so far on its stream may still read and write the memory.
    fn end(self) {
        if process::is_forked_child() {
            std::mem::forget(self);
            return;
        }
        // Importers call this through a C function, which no panic may cross.
        let _ = catch_unwind(AssertUnwindSafe(move || {
            if mistake::is(Mistake::ExportEndNotNoted) {
                return;
            }
            if let Some(consumer) = &self.consumer {
                // An error leaves the access noted, so that the memory counts as in use.
                let _ = object::end_use(&self.object, consumer.stream(), AccessKind::Write);
            }
        }));
    }
}

unsafe extern "C" fn end_legacy(managed: *mut Managed) {
    // SAFETY: a struct of `cvc_tensor_to_dlpack`, deleted once.
    unsafe {
        let managed = Box::from_raw(managed);
        Box::from_raw(managed.context.cast::<Export>()).end();
    }
}

unsafe extern "C" fn end_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as above.
    unsafe {
        let managed = Box::from_raw(managed);
        Box::from_raw(managed.context.cast::<Export>()).end();
    }
}

/// Runs the deleter of whoever made the struct.
pub unsafe fn delete_legacy(managed: *mut Managed) {
    // SAFETY: the caller passes a struct that nobody has taken.
    unsafe {
        if let Some(deleter) = managed.as_ref().and_then(|managed| managed.deleter) {
            deleter(managed);
        }
    }
}

/// As `delete_legacy`.
pub unsafe fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as above.
    unsafe {
        if let Some(deleter) = managed.as_ref().and_then(|managed| managed.deleter) {
            deleter(managed);
        }
    }
}

fn dl_type(dtype: Dtype) -> DlDataType {
    let bits = (dtype.lane_bytes() * 8) as u8;
    let code = match dtype.kind() {
        DtypeKind::S8 | DtypeKind::S16 | DtypeKind::S32 | DtypeKind::S64 => 0,
        DtypeKind::U8 | DtypeKind::U16 | DtypeKind::U32 | DtypeKind::U64 => 1,
        DtypeKind::F16 | DtypeKind::F32 | DtypeKind::F64 => 2,
        DtypeKind::C64 | DtypeKind::C128 => 5,
    };
    DlDataType {
        code,
        bits,
        lanes: 1,
    }
}

fn from_dl_type(dtype: DlDataType) -> Result<Dtype> {
    let kind = match (dtype.code, dtype.bits) {
        (0, 8) => Dtype::S8,
        (0, 16) => Dtype::S16,
        (0, 32) => Dtype::S32,
        (0, 64) => Dtype::S64,
        (1 | 6, 8) => Dtype::U8,
        (1, 16) => Dtype::U16,
        (1, 32) => Dtype::U32,
        (1, 64) => Dtype::U64,
        (2, 16) => Dtype::F16,
        (2, 32) => Dtype::F32,
        (2, 64) => Dtype::F64,
        (5, 64) => Dtype::C64,
        (5, 128) => Dtype::C128,
        _ => fail!(
            Status::NotSupported,
            "managed has dtype code {} of {} bits, expected a signed or unsigned integer, bool, float or complex of the \
             usual sizes",
            dtype.code,
            dtype.bits
        ),
    };
    match kind.with_lanes(u32::from(dtype.lanes)) {
        Some(dtype) => Ok(dtype),
        None => fail!(
            Status::NotSupported,
            "managed has {} lanes, expected 1 to 4",
            dtype.lanes
        ),
    }
}

/// The struct's tensor part. A dtype of several lanes becomes a last dimension, since importers refuse lanes.
fn dl_tensor(export: &mut Export) -> Result<DlTensor> {
    let (desc, data) = export.object.tensor();
    let (desc, lane_bytes) = (*desc, desc.dtype.lane_bytes() as i64);
    let mut rank = desc.rank as usize;
    for i in 0..rank {
        export.shape[i] = desc.shape[i];
        if desc.strides[i] % lane_bytes != 0 {
            fail!(
                Status::InvalidStrides,
                "tensor has stride {} in dimension {i}, expected a multiple of the element's {lane_bytes} bytes",
                desc.strides[i]
            );
        }
        export.strides[i] = desc.strides[i] / lane_bytes;
    }
    if desc.dtype.lanes() > 1 {
        export.shape[rank] = i64::from(desc.dtype.lanes());
        export.strides[rank] = 1;
        rank += 1;
    }
    let device = match backend::current()?.kind() {
        BackendKind::Host => DlDevice {
            kind: DL_CPU,
            id: 0,
        },
        BackendKind::Cuda => DlDevice {
            kind: DL_CUDA,
            id: desc.device,
        },
    };
    Ok(DlTensor {
        data: std::ptr::without_provenance_mut(data as usize),
        device,
        rank: rank as i32,
        dtype: dl_type(desc.dtype.lane()),
        shape: export.shape.as_mut_ptr(),
        strides: export.strides.as_mut_ptr(),
        byte_offset: 0,
    })
}

/// Exports a tensor as a DLPack struct. The memory is kept out of reuse until the struct's deleter has run, on any thread.
///
/// @param consumer stream on which the importer will use the memory: it waits there for what was queued, and the deleter
///   notes an access there, so it must live that long; `CVC_STREAM_NONE`: the importer orders its work itself
/// @param versioned 1: a DLManagedTensorVersioned of version 1.1; 0: a DLManagedTensor
/// @param[out] managed to be given to an importer, or deleted through its `deleter`
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_to_dlpack(
    tensor: cvc_tensor_t,
    consumer: cvc_stream_t,
    versioned: i32,
    managed: *mut *mut c_void,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let managed = unsafe { out(managed, std::ptr::null_mut(), "managed") }?;
        let object = arguments::tensor(tensor, "tensor")?;
        let consumer = arguments::stream_or_none(consumer, object.device())
            .map_err(|error| error.of_argument("consumer"))?;
        if !matches!(versioned, 0 | 1) {
            fail!(
                Status::InvalidEnum,
                "versioned is {versioned}, expected 0 or 1"
            );
        }
        let mut export = Box::new(Export {
            object,
            consumer: consumer.map(Hold::new),
            shape: [0; MAX_RANK + 1],
            strides: [0; MAX_RANK + 1],
        });
        let tensor = dl_tensor(&mut export)?;
        if let Some(stream) = consumer {
            if !mistake::is(Mistake::ExportDoesNotWait) {
                object::begin_access(&export.object, stream, AccessKind::Write)?;
            }
            if stream.kind() == StreamKind::PerThread {
                // The deleter may run on another thread, where the handle means another stream. The legacy stream orders
                // with every thread's own.
                let legacy = timeline::resolve(STREAM_LEGACY, stream.device())?;
                export.consumer = Some(Hold::new(legacy));
            }
        }
        let context = Box::into_raw(export).cast();
        *managed = if versioned == 1 {
            let deleter = Some(end_versioned as unsafe extern "C" fn(_));
            Box::into_raw(Box::new(ManagedVersioned {
                major: 1,
                minor: 1,
                context,
                deleter,
                flags: 0,
                tensor,
            }))
            .cast()
        } else {
            let deleter = Some(end_legacy as unsafe extern "C" fn(_));
            Box::into_raw(Box::new(Managed {
                tensor,
                context,
                deleter,
            }))
            .cast()
        };
        Ok(())
    })
}

unsafe extern "C" fn release_legacy(context: *mut c_void) {
    // SAFETY: the struct that `cvc_tensor_from_dlpack` took over.
    unsafe { delete_legacy(context.cast()) };
}

unsafe extern "C" fn release_versioned(context: *mut c_void) {
    // SAFETY: as above.
    unsafe { delete_versioned(context.cast()) };
}

/// Makes a tensor of a DLPack struct, without a copy, and takes the struct over: its deleter runs when nobody observes the
/// tensor any more. On failure the struct stays the caller's. A struct's flag of read-only memory is not looked at: whoever
/// imports such memory writes nothing to the tensor.
///
/// @param versioned 1: `managed` is a DLManagedTensorVersioned; 0: a DLManagedTensor
/// @param layout such as "NHWC"; null: none
/// @param stream on which the producer's work is ordered; `CVC_STREAM_NONE`: there is none. `CVC_STATUS_CAPTURING` where it
///   captures
#[no_mangle]
pub unsafe extern "C" fn cvc_tensor_from_dlpack(
    cache: cvc_cache_t,
    managed: *mut c_void,
    versioned: i32,
    layout: *const c_char,
    stream: cvc_stream_t,
    tensor: *mut cvc_tensor_t,
) -> cvc_status_t {
    guard(|| {
        // SAFETY: the caller's pointer.
        let tensor = unsafe { out(tensor, std::ptr::null_mut(), "tensor") }?;
        let cache = cache::find(cache)?;
        if managed.is_null() {
            fail!(
                Status::NullPointer,
                "managed is null, expected a DLPack struct"
            );
        }
        // SAFETY: the caller says which struct it is.
        let (source, release) = unsafe {
            match versioned {
                0 => (
                    &(*managed.cast::<Managed>()).tensor,
                    release_legacy as unsafe extern "C" fn(_),
                ),
                1 => {
                    let versioned = &*managed.cast::<ManagedVersioned>();
                    if versioned.major != 1 {
                        fail!(
                            Status::NotSupported,
                            "managed has DLPack version {}, expected 1",
                            versioned.major
                        );
                    }
                    (
                        &versioned.tensor,
                        release_versioned as unsafe extern "C" fn(_),
                    )
                }
                _ => fail!(
                    Status::InvalidEnum,
                    "versioned is {versioned}, expected 0 or 1"
                ),
            }
        };
        let layout = if layout.is_null() {
            Layout::NONE
        } else {
            // SAFETY: the caller's text.
            unsafe { layout_text(layout, "layout") }?
        };
        // SAFETY: the struct is alive, and its arrays have `rank` values.
        let (desc, address) = unsafe { describe(source, layout) }?;
        let stream = arguments::stream_or_none(stream, desc.device)?;
        let foreign = ForeignMemory {
            release: Some(release),
            context: managed,
            producer: stream,
            keep_shells: false,
        };
        *tensor = opaque(object::tensor_wrap(cache, desc, address, &foreign)?);
        Ok(())
    })
}

unsafe fn describe(source: &DlTensor, layout: Layout) -> Result<(TensorDesc, u64)> {
    let backend = backend::current()?;
    let device = match (backend.kind(), source.device.kind) {
        (BackendKind::Host, DL_CPU | DL_CUDA_HOST) => 0,
        (BackendKind::Cuda, DL_CUDA | DL_CUDA_MANAGED) => {
            arguments::device_of(source.device.id, "managed.device")?
        }
        (_, kind) => fail!(
            Status::DeviceMismatch,
            "managed is on a device of DLPack type {kind}, expected {}",
            if backend.kind() == BackendKind::Host {
                "the CPU (1)"
            } else {
                "CUDA (2)"
            }
        ),
    };
    let rank = match source.rank {
        // A scalar is a tensor of one element.
        0 => 1,
        rank @ 1..=15 => rank as usize,
        rank => fail!(
            Status::InvalidRank,
            "managed has rank {rank}, expected 0 to {MAX_RANK}"
        ),
    };
    let dtype = from_dl_type(source.dtype)?;
    let mut shape = [1; MAX_RANK];
    let mut strides = [dtype.bytes() as i64; MAX_RANK];
    if source.rank > 0 {
        if source.shape.is_null() {
            fail!(
                Status::NullPointer,
                "managed has a null shape, expected {rank} dimensions"
            );
        }
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(source.shape, shape.as_mut_ptr(), rank) };
        for i in (0..rank).rev() {
            let packed = match i + 1 < rank {
                true => strides[i + 1].checked_mul(shape[i + 1].max(1)),
                false => Some(dtype.bytes() as i64),
            };
            let stride = match source.strides.is_null() {
                true => packed,
                // SAFETY: as above.
                false => unsafe { *source.strides.add(i) }.checked_mul(dtype.bytes() as i64),
            };
            let Some(stride) = stride else {
                fail!(
                    Status::Overflow,
                    "managed has a stride in dimension {i} that overflows 63 bits of bytes"
                );
            };
            strides[i] = stride;
        }
    }
    let desc = TensorDesc::wrap(device, &shape[..rank], &strides[..rank], dtype, layout)?;
    let Some(address) = (source.data as usize as u64).checked_add(source.byte_offset) else {
        fail!(
            Status::Overflow,
            "managed has data {:p} and byte_offset {}, whose sum overflows 64 bits",
            source.data,
            source.byte_offset
        );
    };
    dtype.check_address(address, "managed.data")?;
    // The host backend's devices all count as the CPU there.
    if backend.kind() == BackendKind::Cuda {
        check_device_pointer(address, device, "managed.data")?;
    }
    Ok((desc, address))
}
