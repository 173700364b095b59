//! Copies and fills of rows with any pitch.

use std::ffi::c_void;

use cudarc::driver::sys;

use super::context::{call, Session};
use crate::backend::{Copy2d, CopyKind, Fill2d, StreamHandle};
use crate::error::{Result, Status};
use crate::fail;

/// Rows that one 2D call is given at most.
const MOST_ROWS: u64 = 1 << 30;

pub fn copy_2d(session: &Session, stream: StreamHandle, copy: &Copy2d) -> Result<()> {
    if copy.width == 0 || copy.height == 0 {
        return Ok(());
    }
    let packed = copy.src_pitch == copy.width && copy.dst_pitch == copy.width;
    if copy.height == 1 || packed {
        let bytes = total_bytes(copy.width, copy.height)?;
        return copy_1d(session, stream, copy.kind, copy.src, copy.dst, bytes);
    }
    check_rows("src", copy.src_pitch, copy.width, copy.height)?;
    check_rows("dst", copy.dst_pitch, copy.width, copy.height)?;
    if copy.src_pitch.max(copy.dst_pitch) > session.device.max_pitch {
        // So long rows are few.
        for row in 0..copy.height {
            let src = copy.src + row * copy.src_pitch;
            let dst = copy.dst + row * copy.dst_pitch;
            copy_1d(session, stream, copy.kind, src, dst, copy.width as usize)?;
        }
        return Ok(());
    }
    let mut row = 0;
    while row < copy.height {
        let rows = (copy.height - row).min(MOST_ROWS);
        let part = Copy2d {
            src: copy.src + row * copy.src_pitch,
            dst: copy.dst + row * copy.dst_pitch,
            height: rows,
            ..*copy
        };
        let description = describe(&part);
        // SAFETY: the caller says that the rows lie in memory of these kinds and stay until the stream has passed.
        unsafe { call!(session, cuMemcpy2DAsync_v2(&description, stream))? };
        row += rows;
    }
    Ok(())
}

pub fn fill_zero_2d(session: &Session, stream: StreamHandle, fill: &Fill2d) -> Result<()> {
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    if fill.height == 1 || fill.pitch == fill.width {
        let bytes = total_bytes(fill.width, fill.height)?;
        // SAFETY: the caller says that the bytes are the device's and stay until the stream has passed.
        return unsafe { call!(session, cuMemsetD8Async(fill.dst, 0, bytes, stream)) };
    }
    check_rows("dst", fill.pitch, fill.width, fill.height)?;
    let (pitch, width) = (fill.pitch as usize, fill.width as usize);
    let most = if fill.pitch > session.device.max_pitch {
        1
    } else {
        MOST_ROWS
    };
    let mut row = 0;
    while row < fill.height {
        let rows = (fill.height - row).min(most);
        let dst = fill.dst + row * fill.pitch;
        // SAFETY: as above.
        unsafe {
            if most == 1 {
                call!(session, cuMemsetD8Async(dst, 0, width, stream))?;
            } else {
                call!(
                    session,
                    cuMemsetD2D8Async(dst, pitch, 0, width, rows as usize, stream)
                )?;
            }
        }
        row += rows;
    }
    Ok(())
}

fn copy_1d(
    session: &Session,
    stream: StreamHandle,
    kind: CopyKind,
    src: u64,
    dst: u64,
    bytes: usize,
) -> Result<()> {
    // SAFETY: the caller says that the bytes lie in memory of these kinds and stay until the stream has passed.
    unsafe {
        match kind {
            CopyKind::HostToDevice => {
                call!(
                    session,
                    cuMemcpyHtoDAsync_v2(dst, src as *const c_void, bytes, stream)
                )
            }
            CopyKind::DeviceToHost => {
                call!(
                    session,
                    cuMemcpyDtoHAsync_v2(dst as *mut c_void, src, bytes, stream)
                )
            }
            CopyKind::DeviceToDevice => {
                call!(session, cuMemcpyDtoDAsync_v2(dst, src, bytes, stream))
            }
        }
    }
}

fn describe(copy: &Copy2d) -> sys::CUDA_MEMCPY2D {
    use sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST};
    let (src_type, dst_type) = match copy.kind {
        CopyKind::HostToDevice => (HOST, DEVICE),
        CopyKind::DeviceToHost => (DEVICE, HOST),
        CopyKind::DeviceToDevice => (DEVICE, DEVICE),
    };
    let on_host = |kind: sys::CUmemorytype, address: u64| if kind == HOST { address } else { 0 };
    let on_device =
        |kind: sys::CUmemorytype, address: u64| if kind == DEVICE { address } else { 0 };
    sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: src_type,
        srcHost: on_host(src_type, copy.src) as *const c_void,
        srcDevice: on_device(src_type, copy.src),
        srcArray: std::ptr::null_mut(),
        srcPitch: copy.src_pitch as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: dst_type,
        dstHost: on_host(dst_type, copy.dst) as *mut c_void,
        dstDevice: on_device(dst_type, copy.dst),
        dstArray: std::ptr::null_mut(),
        dstPitch: copy.dst_pitch as usize,
        WidthInBytes: copy.width as usize,
        Height: copy.height as usize,
    }
}

fn total_bytes(width: u64, height: u64) -> Result<usize> {
    match width.checked_mul(height) {
        Some(bytes) => Ok(bytes as usize),
        None => fail!(
            Status::Overflow,
            "{height} rows of {width} bytes overflow 64 bits"
        ),
    }
}

/// Rows that overlap or leave the address space are never passed on.
fn check_rows(name: &str, pitch: u64, width: u64, height: u64) -> Result<()> {
    if pitch < width {
        fail!(
            Status::InvalidStrides,
            "{name} pitch is {pitch}, expected at least the width of {width} bytes"
        );
    }
    total_bytes(pitch, height).map(|_| ())
}
