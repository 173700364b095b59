//! The driver's result codes as plain integers: which status each becomes, and how it is put in words.

use std::ffi::{c_char, CStr};

use crate::error::Status;

pub const SUCCESS: u32 = 0;
pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
const DEINITIALIZED: u32 = 4;
pub const STUB_LIBRARY: u32 = 34;
const CALL_REQUIRES_NEWER_DRIVER: u32 = 36;
pub const NO_DEVICE: u32 = 100;
pub const INVALID_DEVICE: u32 = 101;
const INVALID_IMAGE: u32 = 200;
pub const INVALID_CONTEXT: u32 = 201;
const NO_BINARY_FOR_GPU: u32 = 209;
const ECC_UNCORRECTABLE: u32 = 214;
const INVALID_PTX: u32 = 218;
const NVLINK_UNCORRECTABLE: u32 = 220;
const JIT_COMPILER_NOT_FOUND: u32 = 221;
const UNSUPPORTED_PTX_VERSION: u32 = 222;
const JIT_COMPILATION_DISABLED: u32 = 223;
const UNSUPPORTED_DEVSIDE_SYNC: u32 = 225;
const CONTAINED: u32 = 226;
pub const INVALID_HANDLE: u32 = 400;
pub const NOT_FOUND: u32 = 500;
pub const NOT_READY: u32 = 600;
const ILLEGAL_ADDRESS: u32 = 700;
const LAUNCH_TIMEOUT: u32 = 702;
const CONTEXT_IS_DESTROYED: u32 = 709;
const ASSERT: u32 = 710;
const HARDWARE_STACK_ERROR: u32 = 714;
const ILLEGAL_INSTRUCTION: u32 = 715;
const MISALIGNED_ADDRESS: u32 = 716;
const INVALID_ADDRESS_SPACE: u32 = 717;
const INVALID_PROGRAM_COUNTER: u32 = 718;
const LAUNCH_FAILED: u32 = 719;
const TENSOR_MEMORY_LEAK: u32 = 721;
const NOT_SUPPORTED: u32 = 801;
const SYSTEM_NOT_READY: u32 = 802;
const SYSTEM_DRIVER_MISMATCH: u32 = 803;
const COMPAT_NOT_SUPPORTED_ON_DEVICE: u32 = 804;
const MPS_CLIENT_TERMINATED: u32 = 810;
/// The first and the last of those about captures.
const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
const STREAM_CAPTURE_WRONG_THREAD: u32 = 908;
const EXTERNAL_DEVICE: u32 = 911;
const UNKNOWN: u32 = 999;

/// Whether nothing of the context works any more after this code.
pub fn loses_context(code: u32) -> bool {
    matches!(
        code,
        DEINITIALIZED // the driver is shutting down with the process
            | ECC_UNCORRECTABLE
            | NVLINK_UNCORRECTABLE
            | CONTAINED
            | ILLEGAL_ADDRESS
            | LAUNCH_TIMEOUT
            | CONTEXT_IS_DESTROYED
            | ASSERT
            | HARDWARE_STACK_ERROR
            | ILLEGAL_INSTRUCTION
            | MISALIGNED_ADDRESS
            | INVALID_ADDRESS_SPACE
            | INVALID_PROGRAM_COUNTER
            | LAUNCH_FAILED
            | TENSOR_MEMORY_LEAK
            | MPS_CLIENT_TERMINATED
            | EXTERNAL_DEVICE // everything after it gives the same
            | UNKNOWN
    )
}

/// Whether this code says that no embedded image suits the device.
pub fn no_kernel_image(code: u32) -> bool {
    matches!(
        code,
        INVALID_IMAGE
            | NO_BINARY_FOR_GPU
            | INVALID_PTX
            // PTX cannot be compiled.
            | JIT_COMPILER_NOT_FOUND
            | UNSUPPORTED_PTX_VERSION
            | JIT_COMPILATION_DISABLED
            | UNSUPPORTED_DEVSIDE_SYNC
    )
}

/// The status of a code that `function` gave.
pub fn status(code: u32, function: &str) -> Status {
    match code {
        OUT_OF_MEMORY => Status::OutOfMemory,
        CALL_REQUIRES_NEWER_DRIVER => Status::DriverTooOld,
        NO_DEVICE => Status::NoDevice,
        INVALID_DEVICE => Status::InvalidDevice,
        INVALID_HANDLE if function.starts_with("cuEvent") => Status::InvalidEvent,
        INVALID_HANDLE if takes_stream(function) => Status::InvalidStream,
        NOT_READY => Status::NotReady,
        NOT_SUPPORTED => Status::NotSupported,
        STREAM_CAPTURE_UNSUPPORTED..=STREAM_CAPTURE_WRONG_THREAD => Status::Capturing,
        code if no_kernel_image(code) => Status::NoKernelImage,
        code if loses_context(code) => Status::ContextLost,
        _ => Status::DeviceError,
    }
}

fn takes_stream(function: &str) -> bool {
    ["cuStream", "cuMemcpy", "cuMemset", "cuLaunchKernel"]
        .iter()
        .any(|prefix| function.starts_with(prefix))
}

/// `cuGetErrorName` and `cuGetErrorString`.
pub type ErrorText = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;

/// The number, and the name and meaning where the driver knows them: `2 CUDA_ERROR_OUT_OF_MEMORY (out of memory)`.
pub fn describe(code: u32, name: Option<ErrorText>, meaning: Option<ErrorText>) -> String {
    let ask = |function: Option<ErrorText>| -> Option<String> {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the driver takes any code, and writes null or a string that is never freed.
        let result = unsafe { function?(code, &mut text) };
        if result != SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: as above.
        Some(
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        )
    };
    let name = ask(name).or_else(|| built_in_name(code).map(str::to_string));
    match (name, ask(meaning)) {
        (Some(name), Some(meaning)) => format!("{code} {name} ({meaning})"),
        (Some(name), None) => format!("{code} {name}"),
        (None, _) => format!("{code}, a code that this driver does not name"),
    }
}

/// Names of what `cuInit` may give before the driver can name anything.
fn built_in_name(code: u32) -> Option<&'static str> {
    Some(match code {
        STUB_LIBRARY => "CUDA_ERROR_STUB_LIBRARY",
        NO_DEVICE => "CUDA_ERROR_NO_DEVICE",
        SYSTEM_NOT_READY => "CUDA_ERROR_SYSTEM_NOT_READY",
        SYSTEM_DRIVER_MISMATCH => "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        COMPAT_NOT_SUPPORTED_ON_DEVICE => "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        UNKNOWN => "CUDA_ERROR_UNKNOWN",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_name_their_kind_and_unknown_codes_are_device_errors() {
        assert_eq!(status(400, "cuEventQuery"), Status::InvalidEvent);
        assert_eq!(status(400, "cuStreamQuery"), Status::InvalidStream);
        assert_eq!(status(400, "cuLaunchKernel"), Status::InvalidStream);
        assert_eq!(status(400, "cuMemRelease"), Status::DeviceError);
        assert_eq!(status(916, "cuInit"), Status::DeviceError);
        assert_eq!(status(u32::MAX, "cuInit"), Status::DeviceError);
        assert_eq!(status(900, "cuEventQuery"), Status::Capturing);
        assert_eq!(status(209, "cuLibraryLoadData"), Status::NoKernelImage);
        for lost in [
            4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999,
        ] {
            assert_eq!(status(lost, "cuStreamQuery"), Status::ContextLost, "{lost}");
        }
        for alive in [0, 1, 2, 201, 400, 600, 701, 713, 720, 900, 909, 910, 912] {
            assert!(!loses_context(alive), "{alive}");
        }
    }

    #[test]
    fn the_number_is_always_in_the_text() {
        assert_eq!(
            describe(916, None, None),
            "916, a code that this driver does not name"
        );
        assert_eq!(describe(34, None, None), "34 CUDA_ERROR_STUB_LIBRARY");
    }
}
