//! The driver's result codes as plain integers: which status each becomes, and how it is put in words.

use std::ffi::{c_char, CStr};

use crate::error::Status;

pub const SUCCESS: u32 = 0;
pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
pub const STUB_LIBRARY: u32 = 34;
pub const NO_DEVICE: u32 = 100;
pub const INVALID_DEVICE: u32 = 101;
pub const INVALID_CONTEXT: u32 = 201;
pub const INVALID_HANDLE: u32 = 400;
pub const NOT_FOUND: u32 = 500;
pub const NOT_READY: u32 = 600;
pub const CONTEXT_IS_DESTROYED: u32 = 709;

/// Whether nothing of the context works any more after this code.
pub fn loses_context(code: u32) -> bool {
    matches!(
        code,
        4            // the driver is shutting down with the process
        | 214        // ECC_UNCORRECTABLE
        | 220        // NVLINK_UNCORRECTABLE
        | 226        // CONTAINED
        | 700        // ILLEGAL_ADDRESS
        | 702        // LAUNCH_TIMEOUT
        | CONTEXT_IS_DESTROYED
        | 710        // ASSERT
        | 714
            ..=719  // HARDWARE_STACK_ERROR to LAUNCH_FAILED
        | 721        // TENSOR_MEMORY_LEAK
        | 810        // MPS_CLIENT_TERMINATED
        | 999 // UNKNOWN
    )
}

/// Whether this code says that no embedded image suits the device.
pub fn no_kernel_image(code: u32) -> bool {
    // INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, and the four by which PTX cannot be compiled.
    matches!(code, 200 | 209 | 218 | 221..=223 | 225)
}

/// The status of a code that `function` gave.
pub fn status(code: u32, function: &str) -> Status {
    match code {
        OUT_OF_MEMORY => Status::OutOfMemory,
        36 => Status::DriverTooOld,
        NO_DEVICE => Status::NoDevice,
        INVALID_DEVICE => Status::InvalidDevice,
        INVALID_HANDLE if function.starts_with("cuEvent") => Status::InvalidEvent,
        INVALID_HANDLE if takes_stream(function) => Status::InvalidStream,
        NOT_READY => Status::NotReady,
        801 => Status::NotSupported,
        900..=908 => Status::Capturing,
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
        802 => "CUDA_ERROR_SYSTEM_NOT_READY",
        803 => "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        804 => "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        999 => "CUDA_ERROR_UNKNOWN",
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
        for lost in [214, 700, 702, 715, 716, 717, 718, 719, 999] {
            assert_eq!(status(lost, "cuStreamQuery"), Status::ContextLost, "{lost}");
        }
        for alive in [0, 1, 2, 201, 400, 600, 701, 720, 900] {
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
