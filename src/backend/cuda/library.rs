//! Finding and opening the driver library at run time, and looking up its symbols.

use std::ffi::{c_void, CStr, CString};

use cudarc::driver::sys;

use crate::error::{Error, Status};

/// Names another file as the driver library, for tests and for drivers in unusual places.
pub const OVERRIDE_VARIABLE: &str = "CVC_CUDA_LIBRARY";
const NAME: &str = "libcuda.so.1";

/// An open driver library. It is never closed.
#[derive(Clone, Copy)]
pub enum Library {
    /// What `dlopen` gave, as a number so that it can be shared between threads.
    Opened(usize),
    /// cudarc's own library, found under another name.
    Cudarc,
}

/// Why there is no library.
#[derive(Debug)]
pub enum OpenFailure {
    /// No such file: no driver is installed.
    Absent(String),
    /// A file is there, or was named, and cannot be opened.
    Broken(String),
}

impl From<OpenFailure> for Error {
    fn from(failure: OpenFailure) -> Error {
        let (OpenFailure::Absent(message) | OpenFailure::Broken(message)) = failure;
        Error::new(Status::NoDriver, message)
    }
}

impl Library {
    /// The file that `CVC_CUDA_LIBRARY` names, else libcuda.so.1, else what cudarc finds.
    ///
    /// libcuda.so.1 comes first because a toolkit's stub is called libcuda.so.
    pub fn find() -> Result<Library, OpenFailure> {
        if let Some(path) = std::env::var_os(OVERRIDE_VARIABLE).filter(|path| !path.is_empty()) {
            let path = path.to_string_lossy();
            return open(&path).map(Library::Opened).map_err(|reason| {
                OpenFailure::Broken(format!(
                    "{OVERRIDE_VARIABLE} is \"{path}\", which cannot be opened: {reason}"
                ))
            });
        }
        let reason = match Library::open(NAME) {
            Ok(library) => return Ok(library),
            Err(OpenFailure::Broken(message)) => return Err(OpenFailure::Broken(message)),
            Err(OpenFailure::Absent(message)) => message,
        };
        // SAFETY: opening a driver library runs its initialisers, which are sound to run in any process.
        if unsafe { sys::is_culib_present() } {
            return Ok(Library::Cudarc);
        }
        Err(OpenFailure::Absent(reason))
    }

    /// Opens one library by name or path.
    pub fn open(name: &str) -> Result<Library, OpenFailure> {
        open(name).map(Library::Opened).map_err(|reason| {
            // The loader names the file that it missed: another one means that ours is there.
            if reason.starts_with(&format!("{name}: ")) && reason.contains("No such file") {
                OpenFailure::Absent(format!(
                    "{name} was not found; install the NVIDIA driver, or choose the host backend \
                     with CVC_BACKEND=host"
                ))
            } else {
                OpenFailure::Broken(format!("{name} cannot be opened: {reason}"))
            }
        })
    }

    /// The address of an exported function.
    pub fn symbol(self, name: &str) -> Option<*mut c_void> {
        match self {
            Library::Opened(handle) => {
                let name = CString::new(name).ok()?;
                // SAFETY: `handle` came from `dlopen` and is never closed; `name` is NUL-terminated.
                let address = unsafe { libc::dlsym(handle as *mut c_void, name.as_ptr()) };
                (!address.is_null()).then_some(address)
            }
            Library::Cudarc => {
                // SAFETY: the library is there (`find` saw it), and the symbol is read as an address only.
                unsafe { sys::culib().get::<*mut c_void>(name.as_bytes()) }
                    .ok()
                    .map(|symbol| *symbol)
                    .filter(|address| !address.is_null())
            }
        }
    }
}

/// The handle, or the loader's words.
fn open(name: &str) -> Result<usize, String> {
    let name = CString::new(name).map_err(|_| "the name contains a NUL byte".to_string())?;
    // SAFETY: `name` is NUL-terminated.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if !handle.is_null() {
        return Ok(handle as usize);
    }
    // SAFETY: `dlerror` gives null or a string that lives until this thread's next call of the loader.
    let reason = unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "the loader gave no reason".to_string()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    };
    Err(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_absent_and_a_file_that_is_none_is_broken() {
        match Library::open("libcuda-of-no-machine.so.1") {
            Err(OpenFailure::Absent(message)) => {
                assert!(message.contains("libcuda-of-no-machine.so.1 was not found"));
                assert!(message.contains("install the NVIDIA driver"));
            }
            _ => panic!("expected an absent library"),
        }
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        match Library::open(manifest) {
            Err(OpenFailure::Broken(message)) => assert!(message.contains(manifest)),
            _ => panic!("expected a broken library"),
        }
        assert!(matches!(Library::open("a\0b"), Err(OpenFailure::Broken(_))));
    }
}
