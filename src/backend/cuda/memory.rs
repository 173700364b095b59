//! Device memory taken straight from the driver by the virtual memory calls, which never wait for running work.

use cudarc::driver::sys;
use parking_lot::Mutex;

use super::codes;
use super::context::{call, Device, Plain, Session};
use super::driver::Driver;
use super::suballocator::Suballocator;
use crate::backend::DevicePointer;
use crate::error::{Error, Result, Status};
use crate::fail;

/// The size of a chunk that small blocks share, and the least that is mapped.
pub const CHUNK_BYTES: u64 = 2 << 20;
/// From this size on a block is a mapping of its own.
const LARGE_BYTES: u64 = 1 << 20;
const GRANULE: u64 = 512;

/// The small blocks of one device. Large ones need no book: the driver knows them by address.
#[derive(Default)]
pub struct Memory {
    small: Mutex<Suballocator>,
}

/// Pinned memory of a device, without any way to export it.
pub fn properties(ordinal: i32) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: location(ordinal),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

fn location(ordinal: i32) -> sys::CUmemLocation {
    sys::CUmemLocation {
        type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: ordinal,
    }
}

pub fn allocate(session: &Session, bytes: u64) -> Result<DevicePointer> {
    check_size(bytes)?;
    if bytes >= LARGE_BYTES {
        let length = mapped_length(session, bytes)?;
        return map_or_explain(session, length, bytes);
    }
    let small = &session.device.memory.small;
    if let Some(pointer) = small.lock().take(bytes) {
        return Ok(pointer);
    }
    // Not under the lock: mapping takes tens of microseconds.
    let length = session.ready.granularity;
    let base = map_or_explain(session, length, bytes)?;
    small.lock().add_chunk(base, length, bytes)
}

pub fn free(session: &Session, pointer: DevicePointer, bytes: u64) -> Result<()> {
    check_size(bytes)?;
    if bytes >= LARGE_BYTES {
        return unmap(session, pointer, mapped_length(session, bytes)?);
    }
    let empty = session.device.memory.small.lock().give(pointer, bytes)?;
    match empty {
        Some((base, length)) => unmap(session, base, length),
        None => Ok(()),
    }
}

/// Free and total bytes.
pub fn info(session: &Session) -> Result<(u64, u64)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both are writable and the context is current.
    unsafe { call!(session, cuMemGetInfo_v2(&mut free, &mut total))? };
    Ok((free as u64, total as u64))
}

fn check_size(bytes: u64) -> Result<()> {
    if bytes == 0 || bytes % GRANULE != 0 {
        fail!(
            Status::InvalidArgument,
            "bytes is {bytes}, expected a multiple of {GRANULE} above 0"
        );
    }
    Ok(())
}

fn mapped_length(session: &Session, bytes: u64) -> Result<u64> {
    let granularity = session.ready.granularity;
    match bytes.checked_next_multiple_of(granularity) {
        Some(length) if length <= i64::MAX as u64 => Ok(length),
        _ => Err(out_of_memory(session, bytes, codes::OUT_OF_MEMORY)),
    }
}

/// Maps `length` bytes, with the empty chunk in hand given up where there is no room otherwise.
fn map_or_explain(session: &Session, length: u64, bytes: u64) -> Result<DevicePointer> {
    let first = map(session, length);
    let Err(error) = &first else { return first };
    if error.status != Status::OutOfMemory {
        return first;
    }
    let spare = session.device.memory.small.lock().take_spare();
    if let Some((base, spare_length)) = spare {
        unmap(session, base, spare_length)?;
        let second = map(session, length);
        if !matches!(&second, Err(error) if error.status == Status::OutOfMemory) {
            return second;
        }
    }
    Err(out_of_memory(session, bytes, codes::OUT_OF_MEMORY))
}

#[cold]
fn out_of_memory(session: &Session, bytes: u64, code: u32) -> Error {
    let room = match info(session) {
        Ok((free, total)) => format!("{free} of its {total} bytes are free"),
        Err(error) => error.message,
    };
    Error::new(
        Status::OutOfMemory,
        format!(
            "no room for {bytes} bytes on device {}: {room} ({})",
            session.device.ordinal,
            session.driver.describe(code)
        ),
    )
}

/// New memory at a new address; what was done before a failure is undone.
fn map(session: &Session, length: u64) -> Result<DevicePointer> {
    let size = length as usize;
    let mut address = 0;
    if !session.device.virtual_memory {
        // This one may wait for running work, and breaks captures unless relaxed.
        let _relaxed = session.relaxed()?;
        // SAFETY: `address` is writable.
        unsafe { call!(session, cuMemAlloc_v2(&mut address, size))? };
        return Ok(address);
    }
    let alignment = session.ready.granularity as usize;
    // SAFETY: `address` is writable.
    unsafe {
        call!(
            session,
            cuMemAddressReserve(&mut address, size, alignment, 0, 0)
        )?
    };
    let backed = back(session, address, size);
    if backed.is_err() {
        // SAFETY: the range was reserved above and nothing is mapped in it. The first error is the one that counts.
        let _ = unsafe { call!(session, cuMemAddressFree(address, size)) };
    }
    backed.map(|()| address)
}

/// Puts physical memory under a reserved range and opens it to the device.
fn back(session: &Session, address: u64, size: usize) -> Result<()> {
    let properties = properties(session.device.ordinal);
    let mut handle = 0;
    // SAFETY: `handle` is writable and `properties` is whole.
    unsafe { call!(session, cuMemCreate(&mut handle, size, &properties, 0))? };
    // SAFETY: the range is reserved and empty, the handle is as long as it.
    let mapped = unsafe { call!(session, cuMemMap(address, size, 0, handle, 0)) };
    // The mapping keeps the memory from here on; without one this gives it back.
    // SAFETY: the handle was made above and is not used again.
    let released = unsafe { call!(session, cuMemRelease(handle)) };
    mapped?;
    let access = sys::CUmemAccessDesc {
        location: location(session.device.ordinal),
        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    let opened = released.and_then(|()| {
        // SAFETY: the range is mapped, and one descriptor is passed.
        unsafe { call!(session, cuMemSetAccess(address, size, &access, 1)) }
    });
    if opened.is_err() {
        // SAFETY: the range was mapped above and nobody knows its address.
        let _ = unsafe { call!(session, cuMemUnmap(address, size)) };
    }
    opened
}

fn unmap(session: &Session, address: u64, length: u64) -> Result<()> {
    let size = length as usize;
    if !session.device.virtual_memory {
        let _relaxed = session.relaxed()?;
        // SAFETY: the caller says that this came from `map` and that no work uses it.
        return unsafe { call!(session, cuMemFree_v2(address)) };
    }
    // SAFETY: as above; the mapping goes first, then the addresses.
    unsafe {
        call!(session, cuMemUnmap(address, size))?;
        call!(session, cuMemAddressFree(address, size))
    }
}

/// The device whose memory this is; `None` where every device can use it (pinned, managed).
///
/// Errors: `InvalidArgument` for memory that the driver does not know, which is a host pointer or no pointer at all.
pub fn pointer_device(
    driver: &'static Driver,
    devices: &[Device],
    pointer: u64,
) -> Result<Option<i32>> {
    use sys::CUpointer_attribute::*;
    const HOST: u32 = sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32;
    const DEVICE: u32 = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32;
    let mut attributes = [
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE as u32,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as u32,
        CU_POINTER_ATTRIBUTE_IS_MANAGED as u32,
    ];
    let (mut memory_type, mut ordinal, mut managed) = (0u32, -2i32, 0u32);
    let mut values = [
        (&raw mut memory_type).cast(),
        (&raw mut ordinal).cast(),
        (&raw mut managed).cast(),
    ];
    // SAFETY: three attributes and room for each; the driver reads nothing at `pointer`.
    let code = unsafe {
        (driver.cuPointerGetAttributes)(3, attributes.as_mut_ptr(), values.as_mut_ptr(), pointer)
    };
    match code {
        // Some drivers refuse what they do not know, others call it memory of no type.
        codes::INVALID_VALUE | codes::INVALID_CONTEXT => memory_type = 0,
        code => Plain { driver }.check(code, "cuPointerGetAttributes")?,
    }
    match memory_type {
        _ if managed != 0 => Ok(None),
        HOST => Ok(None),
        DEVICE => Ok(devices
            .iter()
            .any(|device| device.ordinal == ordinal)
            .then_some(ordinal)),
        _ => fail!(
            Status::InvalidArgument,
            "pointer is {pointer:#x}, which the CUDA driver does not know (pageable host memory?); expected device \
             memory"
        ),
    }
}
