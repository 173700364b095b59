//! The one table of driver functions that the CUDA backend calls, each with the CUDA version that brought it.
//!
//! Codes come back as integers: a driver may be newer than any list of codes that this crate was compiled with.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys;

use super::codes;
use super::library::{Library, OpenFailure};
use crate::error::{Error, Result, Status};
use crate::fail;

/// One row of the table, for its test.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The exported symbol, with its version suffix.
    pub symbol: &'static str,
    /// The CUDA version that brought it: 1000 * major + 10 * minor.
    pub since: u32,
    pub required: bool,
}

macro_rules! driver_table {
    (
        required { $($name:ident $since:literal ($($argument:ty),*);)* }
        optional { $($extra:ident $extra_since:literal ($($extra_argument:ty),*);)* }
    ) => {
        /// The functions, resolved, and the version of CUDA that the driver speaks.
        #[allow(non_snake_case)]
        #[allow(dead_code)] // Some are called only before the table stands, and named here to be checked.
        pub struct Driver {
            /// 1000 * major + 10 * minor.
            pub version: u32,
            $(pub $name: unsafe extern "C" fn($($argument),*) -> u32,)*
            $(pub $extra: Option<unsafe extern "C" fn($($extra_argument),*) -> u32>,)*
        }

        #[cfg(test)]
        pub const TABLE: &[Entry] = &[
            $(Entry { symbol: stringify!($name), since: $since, required: true },)*
            $(Entry { symbol: stringify!($extra), since: $extra_since, required: false },)*
        ];

        impl Driver {
            fn resolve(library: Library, version: u32, floor: &Floor) -> Result<Driver> {
                Ok(Driver {
                    version,
                    $($name: match library.symbol(stringify!($name)) {
                        // SAFETY: the driver exports this name with this signature since its `since`.
                        Some(address) => unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) -> u32,
                            >(address)
                        },
                        None => return Err(missing(stringify!($name), $since, version, floor)),
                    },)*
                    $($extra: library.symbol(stringify!($extra)).map(|address| {
                        // SAFETY: as above.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($extra_argument),*) -> u32,
                            >(address)
                        }
                    }),)*
                })
            }
        }
    };
}

/// A `CUcontext`, `CUstream`, `CUevent`, `CUlibrary`, `CUkernel` or `CUfunction` as a number.
pub type Handle = usize;

driver_table! {
    required {
        cuInit 2000 (u32);
        cuDriverGetVersion 2020 (*mut i32);
        cuGetErrorName 6000 (u32, *mut *const c_char);
        cuGetErrorString 6000 (u32, *mut *const c_char);

        cuDeviceGetCount 2000 (*mut i32);
        cuDeviceGet 2000 (*mut i32, i32);
        cuDeviceGetName 2000 (*mut c_char, i32, i32);
        cuDeviceTotalMem_v2 3020 (*mut usize, i32);
        cuDeviceGetAttribute 2000 (*mut i32, u32, i32);

        cuDevicePrimaryCtxRetain 7000 (*mut Handle, i32);
        cuDevicePrimaryCtxGetState 7000 (i32, *mut u32, *mut i32);
        cuCtxGetCurrent 4000 (*mut Handle);
        cuCtxSetCurrent 4000 (Handle);
        cuCtxGetDevice 2000 (*mut i32);
        cuCtxSynchronize 2000 ();
        cuThreadExchangeStreamCaptureMode 10010 (*mut u32);

        cuMemGetInfo_v2 3020 (*mut usize, *mut usize);
        cuMemGetAllocationGranularity 10020 (*mut usize, *const sys::CUmemAllocationProp, u32);
        cuMemAddressReserve 10020 (*mut u64, usize, usize, u64, u64);
        cuMemAddressFree 10020 (u64, usize);
        cuMemCreate 10020 (*mut u64, usize, *const sys::CUmemAllocationProp, u64);
        cuMemRelease 10020 (u64);
        cuMemMap 10020 (u64, usize, usize, u64, u64);
        cuMemUnmap 10020 (u64, usize);
        cuMemSetAccess 10020 (u64, usize, *const sys::CUmemAccessDesc, usize);
        cuMemAlloc_v2 3020 (*mut u64, usize);
        cuMemFree_v2 3020 (u64);
        cuMemHostAlloc 2020 (*mut *mut c_void, usize, u32);
        cuPointerGetAttributes 7000 (u32, *mut u32, *mut *mut c_void, u64);

        cuStreamCreate 2000 (*mut Handle, u32);
        cuStreamDestroy_v2 4000 (Handle);
        cuStreamGetId 12000 (Handle, *mut u64);
        cuStreamGetCtx 9020 (Handle, *mut Handle);
        cuStreamQuery 2000 (Handle);
        cuStreamSynchronize 2000 (Handle);
        cuStreamWaitEvent 3020 (Handle, Handle, u32);
        cuStreamIsCapturing 10000 (Handle, *mut u32);
        cuStreamGetCaptureInfo_v2 11030 (
            Handle, *mut u32, *mut u64, *mut Handle, *mut *const Handle, *mut usize
        );

        cuEventCreate 2000 (*mut Handle, u32);
        cuEventDestroy_v2 4000 (Handle);
        cuEventRecord 2000 (Handle, Handle);
        cuEventQuery 2000 (Handle);
        cuEventSynchronize 2000 (Handle);
        cuEventElapsedTime 2000 (*mut f32, Handle, Handle);

        cuMemcpyHtoDAsync_v2 3020 (u64, *const c_void, usize, Handle);
        cuMemcpyDtoHAsync_v2 3020 (*mut c_void, u64, usize, Handle);
        cuMemcpyDtoDAsync_v2 3020 (u64, u64, usize, Handle);
        cuMemcpy2DAsync_v2 3020 (*const sys::CUDA_MEMCPY2D, Handle);
        cuMemsetD8Async 3020 (u64, u8, usize, Handle);
        cuMemsetD2D8Async 3020 (u64, usize, u8, usize, usize, Handle);

        cuLibraryLoadData 12000 (
            *mut Handle, *const c_void, *mut u32, *mut *mut c_void, u32, *mut u32, *mut *mut c_void, u32
        );
        cuLibraryUnload 12000 (Handle);
        cuLibraryGetKernel 12000 (*mut Handle, Handle, *const c_char);
        cuKernelGetFunction 12000 (*mut Handle, Handle);
        cuFuncGetAttribute 2020 (*mut i32, u32, Handle);
        cuFuncSetAttribute 9000 (Handle, u32, i32);
        cuLaunchKernel 4000 (
            Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void
        );
    }
    optional {
        cuCtxRecordEvent 12050 (Handle, Handle);
        cuEventElapsedTime_v2 12080 (*mut f32, Handle, Handle);
        cuStreamWaitValue32_v2 11070 (Handle, u64, u32, u32);
        cuLibraryGetKernelCount 12040 (*mut u32, Handle);
        cuLibraryEnumerateKernels 12040 (*mut Handle, u32, Handle);
        cuKernelGetName 12030 (*mut *const c_char, Handle);
        cuFuncLoad 12040 (Handle);
        cuFuncGetParamInfo 12040 (Handle, usize, *mut usize, *mut usize);
    }
}

/// The oldest driver that runs the embedded kernels, which is what their compiler asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// 1000 * major + 10 * minor.
    pub version: u32,
    /// The driver branch that first spoke it.
    pub release: u32,
}

/// nvcc 13 images need driver 580; nvcc 12 ones, and the functions in the table, 525.
pub const FLOOR_CUDA_13: Floor = Floor {
    version: 13000,
    release: 580,
};
pub const FLOOR_CUDA_12: Floor = Floor {
    version: 12000,
    release: 525,
};

/// The floor of this build. The build script may say which nvcc it used (`CVC_NVCC_MAJOR`).
pub fn floor() -> Floor {
    if cfg!(cvc_no_kernels) || option_env!("CVC_NVCC_MAJOR") == Some("12") {
        FLOOR_CUDA_12
    } else {
        FLOOR_CUDA_13
    }
}

fn version_text(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

#[cold]
fn missing(symbol: &str, since: u32, version: u32, floor: &Floor) -> Error {
    Error::new(
        Status::DriverTooOld,
        format!(
            "the installed driver (CUDA {}) has no {symbol}, which CUDA {} brought; expected driver {} or newer",
            version_text(version),
            version_text(since),
            floor.release
        ),
    )
}

impl Driver {
    /// The process's driver, opened, initialised and resolved by the first call; a failure stays.
    pub fn get() -> Result<&'static Driver> {
        static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
        DRIVER
            .get_or_init(|| Driver::open(Library::find()?, &floor()))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Initialises the driver in `library` and resolves the table.
    ///
    /// Errors: `NoDriver` where `cuInit` fails, `NoDevice` where it finds no device, `DriverTooOld` below the floor.
    pub fn open(library: Library, floor: &Floor) -> Result<Driver> {
        let text = |code: u32| {
            codes::describe(
                code,
                error_text(library, "cuGetErrorName"),
                error_text(library, "cuGetErrorString"),
            )
        };
        match initialise(library) {
            None => fail!(
                Status::NoDriver,
                "the driver library exports no cuInit; expected libcuda.so.1 of the NVIDIA driver"
            ),
            Some(codes::SUCCESS) => {}
            Some(code @ (codes::NO_DEVICE | codes::INVALID_DEVICE)) => fail!(
                Status::NoDevice,
                "cuInit found no CUDA device: {}; check that one is there and that CUDA_VISIBLE_DEVICES shows it",
                text(code)
            ),
            Some(code @ codes::STUB_LIBRARY) => fail!(
                Status::NoDriver,
                "cuInit failed: {}: the library that was found is the toolkit's stub; install the NVIDIA driver",
                text(code)
            ),
            Some(code) => fail!(Status::NoDriver, "cuInit failed: {}", text(code)),
        }
        let Some(get_version) = library.symbol("cuDriverGetVersion") else {
            return Err(missing("cuDriverGetVersion", 2020, 0, floor));
        };
        // SAFETY: the driver exports this name with this signature since CUDA 2.2.
        let get_version = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut i32) -> u32>(get_version)
        };
        let mut version = 0i32;
        // SAFETY: `version` is writable.
        let code = unsafe { get_version(&mut version) };
        if code != codes::SUCCESS {
            fail!(
                Status::NoDriver,
                "cuDriverGetVersion failed: {}",
                text(code)
            );
        }
        let version = u32::try_from(version).unwrap_or(0);
        if version < floor.version {
            fail!(
                Status::DriverTooOld,
                "the installed driver speaks CUDA {}; expected CUDA {}, which is driver {} or newer",
                version_text(version),
                version_text(floor.version),
                floor.release
            );
        }
        Driver::resolve(library, version, floor)
    }

    /// A code in words.
    pub fn describe(&self, code: u32) -> String {
        codes::describe(code, Some(self.cuGetErrorName), Some(self.cuGetErrorString))
    }
}

/// What `cuInit` gives; `None` where the library has none.
fn initialise(library: Library) -> Option<u32> {
    let address = library.symbol("cuInit")?;
    // SAFETY: the driver exports this name with this signature since CUDA 2.0.
    let initialise =
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u32) -> u32>(address) };
    // SAFETY: `cuInit` may be called at any time, any number of times.
    Some(unsafe { initialise(0) })
}

fn error_text(library: Library, symbol: &str) -> Option<codes::ErrorText> {
    let address = library.symbol(symbol)?;
    // SAFETY: both functions that are asked for here have this signature.
    Some(unsafe { std::mem::transmute::<*mut c_void, codes::ErrorText>(address) })
}

/// Whether a driver is installed, working or not: its library is there and is not the toolkit's stub.
pub fn is_installed() -> bool {
    match Library::find() {
        Ok(library) => initialise(library) != Some(codes::STUB_LIBRARY),
        Err(OpenFailure::Broken(_)) => true,
        Err(OpenFailure::Absent(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_each_function_once_and_gates_what_is_newer_than_the_floor() {
        let mut symbols: Vec<&str> = TABLE.iter().map(|entry| entry.symbol).collect();
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols.len(), TABLE.len(), "a function stands twice");
        for entry in TABLE {
            assert!(entry.symbol.starts_with("cu"), "{entry:?}");
            assert!(
                (2000..=13000).contains(&entry.since) && entry.since % 10 == 0,
                "{entry:?}"
            );
            // The library is called through C entry points that order on the legacy stream.
            assert!(!entry.symbol.ends_with("_ptsz"), "{entry:?}");
            if entry.required {
                assert!(entry.since <= FLOOR_CUDA_12.version, "{entry:?}");
            }
            // Two versions of one function: the newer one is optional and the older one required.
            if let Some(older) = entry.symbol.strip_suffix("_v2") {
                if let Some(older) = TABLE.iter().find(|other| other.symbol == older) {
                    assert!(older.required && !entry.required && older.since < entry.since);
                }
            }
        }
    }
}
