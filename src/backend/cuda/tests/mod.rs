//! Tests of the backend over a driver made of ordinary memory (`tests/fake_driver`), each with a copy of its own.

mod contexts;
mod kernels;
mod memory;
mod start;
mod streams;

use std::ffi::{c_char, CString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use super::driver::{Driver, FLOOR_CUDA_12};
use super::kernels::Image;
use super::library::Library;
use super::CudaBackend;
use crate::error::{Error, Result, Status};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_driver");

#[repr(align(16))]
struct Aligned([u8; 16]);
static ALIGNED: Aligned = Aligned(*b"FAKE fatbin.....");
/// What the fake driver takes for a fatbin.
static FATBIN: &[u8] = &ALIGNED.0;

/// Which driver the fake one stands for.
#[derive(Clone, Copy)]
enum Version {
    /// Without a function that the backend needs.
    Cuda11,
    /// Without the functions that the backend can do without.
    Cuda12,
    Cuda13,
}

/// A path of this process's that no other test uses.
fn unique_path(name: &str) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("cvc-{}-{number}-{name}", std::process::id()))
}

/// The fake driver, compiled once for each version.
fn library_bytes(version: Version) -> &'static [u8] {
    static BYTES: [OnceLock<Vec<u8>>; 3] = [const { OnceLock::new() }; 3];
    BYTES[version as usize].get_or_init(|| {
        let output = unique_path("compiled.so");
        let mut command = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-O1", "-shared", "-fPIC"]);
        command.args(match version {
            Version::Cuda11 => &["-DFAKE_CUDA_11", "-DFAKE_CUDA_12_0"][..],
            Version::Cuda12 => &["-DFAKE_CUDA_12_0"],
            Version::Cuda13 => &[],
        });
        command.arg("-o").arg(&output);
        for source in ["fake_libcuda.c", "fake_memory.c", "fake_work.c"] {
            command.arg(Path::new(SOURCES).join(source));
        }
        command.arg("-lpthread");
        let status = command.status().expect("a C compiler is installed");
        assert!(status.success(), "the fake driver does not compile");
        let bytes = fs::read(&output).expect("the compiler wrote it");
        fs::remove_file(&output).expect("it is ours");
        bytes
    })
}

/// Writes the fake driver to a new file.
fn library_file(version: Version) -> PathBuf {
    let path = unique_path("libcuda.so.1");
    fs::write(&path, library_bytes(version)).expect("the temporary folder is writable");
    path
}

/// One fake driver, before anything is asked of it.
struct Control {
    library: Library,
}

impl Control {
    fn new(version: Version) -> Control {
        let path = library_file(version);
        let library = Library::open(path.to_str().expect("a plain path")).expect("it loads");
        fs::remove_file(&path).expect("it is ours");
        Control { library }
    }

    fn open(&self) -> Result<Driver> {
        Driver::open(self.library, &FLOOR_CUDA_12)
    }

    fn backend(&self) -> Result<CudaBackend> {
        self.backend_with(FATBIN)
    }

    fn backend_with(&self, fatbin: &'static [u8]) -> Result<CudaBackend> {
        let driver: &'static Driver = Box::leak(Box::new(self.open()?));
        let image = Image {
            fatbin,
            kernels: || &kernels::ALL,
        };
        CudaBackend::with_driver(driver, image)
    }

    /// A control function of the fake driver, as `F`.
    fn function<F: Copy>(&self, name: &str) -> F {
        let address = self.library.symbol(name).expect("a control function");
        assert_eq!(size_of::<F>(), size_of_val(&address));
        // SAFETY: each caller below names the signature that the C source has.
        unsafe { std::mem::transmute_copy(&address) }
    }

    /// After `skip` calls of `function`, the next `count` give `code`; all where `count` is negative.
    fn fail(&self, function: &str, skip: i64, count: i64, code: u32) {
        let function = CString::new(function).expect("a plain name");
        let fail: unsafe extern "C" fn(*const c_char, i64, i64, u32) = self.function("fake_fail");
        // SAFETY: the name is NUL-terminated.
        unsafe { fail(function.as_ptr(), skip, count, code) }
    }
    /// How often a function was called; with an empty name, all of them together.
    fn calls(&self, function: &str) -> i64 {
        let function = CString::new(function).expect("a plain name");
        let calls: unsafe extern "C" fn(*const c_char) -> i64 = self.function("fake_calls");
        // SAFETY: the name is NUL-terminated.
        unsafe { calls(function.as_ptr()) }
    }

    fn set(&self, name: &str, value: i64) {
        let name = CString::new(name).expect("a plain name");
        let set: unsafe extern "C" fn(*const c_char, i64) = self.function("fake_set");
        // SAFETY: the name is NUL-terminated.
        unsafe { set(name.as_ptr(), value) }
    }

    fn get(&self, name: &str) -> i64 {
        let name = CString::new(name).expect("a plain name");
        let get: unsafe extern "C" fn(*const c_char) -> i64 = self.function("fake_get");
        // SAFETY: the name is NUL-terminated.
        unsafe { get(name.as_ptr()) }
    }

    /// What `fake_foreign_context` and its like give for a device.
    fn of_device(&self, function: &str, device: i32) -> usize {
        let make: unsafe extern "C" fn(i32) -> usize = self.function(function);
        // SAFETY: the device is one of the fake driver's.
        unsafe { make(device) }
    }

    fn current(&self) -> usize {
        let current: unsafe extern "C" fn() -> usize = self.function("fake_current");
        // SAFETY: it takes nothing.
        unsafe { current() }
    }

    fn set_current(&self, context: usize) {
        let set: unsafe extern "C" fn(usize) = self.function("fake_set_current");
        // SAFETY: tests pass contexts of this driver, or none.
        unsafe { set(context) }
    }

    fn capture(&self, stream: usize, on: bool) {
        let capture: unsafe extern "C" fn(usize, i32) = self.function("fake_capture");
        // SAFETY: tests pass streams of this driver.
        unsafe { capture(stream, i32::from(on)) }
    }

    /// The calling thread's capture mode; 0 is the one that every thread starts in.
    fn capture_mode(&self) -> u32 {
        let mode: unsafe extern "C" fn() -> u32 = self.function("fake_capture_mode");
        // SAFETY: it takes nothing.
        unsafe { mode() }
    }

    fn last_launch(&self) -> [u32; 7] {
        let mut numbers = [0; 7];
        let last: unsafe extern "C" fn(*mut u32) = self.function("fake_last_launch");
        // SAFETY: there is room for the seven numbers.
        unsafe { last(numbers.as_mut_ptr()) };
        numbers
    }
}

/// A fake driver and a backend on it.
struct Fake {
    control: Control,
    backend: CudaBackend,
}

impl Fake {
    fn new() -> Fake {
        Fake::with(Version::Cuda13, &[])
    }

    fn with(version: Version, settings: &[(&str, i64)]) -> Fake {
        let control = Control::new(version);
        for (name, value) in settings {
            control.set(name, *value);
        }
        let backend = control.backend().expect("the fake driver works");
        Fake { control, backend }
    }
}

/// The error of a call that must fail with this status.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, status: Status) -> Error {
    let error = result.expect_err("the call must fail");
    assert_eq!(error.status, status, "{}", error.message);
    error
}

#[track_caller]
fn mentions(error: &Error, parts: &[&str]) {
    for part in parts {
        assert!(
            error.message.contains(part),
            "no {part:?} in {:?}",
            error.message
        );
    }
}
