//! Version, status names, the thread's last error, and the guard around every call.

use std::cell::RefCell;
use std::ffi::{c_char, c_void, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

use super::constants::*;
use super::structs::cvc_log_fn;
use crate::error::{Error, Result, Status};
use crate::object;
use crate::observe::{log, process};
use crate::op;

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

static SET_UP: Once = Once::new();

extern "C" fn in_forked_child() {
    process::mark_forked_child();
}

fn set_up() {
    SET_UP.call_once(|| {
        // SAFETY: the handler only stores a flag.
        unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
        object::install_hooks();
        op::install_kernels();
    });
}

/// Runs the body of an exported function: a panic becomes a status, an error the thread's last one.
#[inline(always)]
pub fn guard(body: impl FnOnce() -> Result<()>) -> cvc_status_t {
    if !SET_UP.is_completed() {
        set_up();
    }
    if process::is_forked_child() {
        return refuse_fork();
    }
    guard_in_fork(body)
}

/// Like `guard`, for a release: in a forked child it succeeds and does nothing.
#[inline(always)]
pub fn guard_release(body: impl FnOnce() -> Result<()>) -> cvc_status_t {
    if process::is_forked_child() {
        return CVC_STATUS_OK;
    }
    guard_in_fork(body)
}

#[inline(always)]
fn guard_in_fork(body: impl FnOnce() -> Result<()>) -> cvc_status_t {
    let status = status_of(body);
    log::deliver();
    status
}

#[inline(always)]
fn status_of(body: impl FnOnce() -> Result<()>) -> cvc_status_t {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => CVC_STATUS_OK,
        Ok(Err(error)) => keep(error),
        Err(panic) => keep_panic(&*panic),
    }
}

#[cold]
fn refuse_fork() -> cvc_status_t {
    keep(Error::new(
        Status::Forked,
        "this process was forked after libcvc was used; use it in the child only if the parent has not, or spawn instead",
    ))
}

#[cold]
fn keep(error: Error) -> cvc_status_t {
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = error.message);
    error.status as cvc_status_t
}

#[cold]
fn keep_panic(panic: &(dyn std::any::Any + Send)) -> cvc_status_t {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    keep(Error::new(
        Status::Internal,
        format!("a bug in libcvc was caught: {text}"),
    ))
}

/// The library's version, such as "0.1.0". Static; needs no driver.
#[no_mangle]
pub extern "C" fn cvc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// `CVC_ABI_VERSION` of the library that is loaded.
#[no_mangle]
pub extern "C" fn cvc_abi_version() -> u32 {
    CVC_ABI_VERSION
}

/// The name of a status, such as "CVC_STATUS_OUT_OF_MEMORY"; "CVC_STATUS_UNKNOWN" for any other number. Static.
#[no_mangle]
pub extern "C" fn cvc_status_string(status: cvc_status_t) -> *const c_char {
    macro_rules! names {
        ($($name:ident)*) => {
            match status {
                $($name => concat!(stringify!($name), "\0"),)*
                _ => "CVC_STATUS_UNKNOWN\0",
            }
        };
    }
    let name = names!(
        CVC_STATUS_OK CVC_STATUS_INVALID_ARGUMENT CVC_STATUS_NULL_POINTER CVC_STATUS_INVALID_HANDLE
        CVC_STATUS_STALE_HANDLE CVC_STATUS_WRONG_KIND CVC_STATUS_INVALID_RANK CVC_STATUS_INVALID_SHAPE
        CVC_STATUS_OVERFLOW CVC_STATUS_INVALID_STRIDES CVC_STATUS_INVALID_ENUM CVC_STATUS_INVALID_STRUCT_SIZE
        CVC_STATUS_INVALID_LAYOUT CVC_STATUS_INVALID_ALIGNMENT CVC_STATUS_INVALID_VALUE CVC_STATUS_INVALID_LIMIT
        CVC_STATUS_DEVICE_MISMATCH CVC_STATUS_SHAPE_MISMATCH CVC_STATUS_DTYPE_MISMATCH CVC_STATUS_CAPACITY_EXCEEDED
        CVC_STATUS_CAPACITY_UNDERFLOW CVC_STATUS_INVALID_INDEX CVC_STATUS_INVALID_DEVICE CVC_STATUS_INVALID_STREAM
        CVC_STATUS_INVALID_EVENT CVC_STATUS_NOT_SUPPORTED CVC_STATUS_NOT_READY CVC_STATUS_OUT_OF_MEMORY
        CVC_STATUS_LIMIT_EXCEEDED CVC_STATUS_NO_DRIVER CVC_STATUS_DRIVER_TOO_OLD CVC_STATUS_NO_DEVICE
        CVC_STATUS_NO_KERNEL_IMAGE CVC_STATUS_DEVICE_ERROR CVC_STATUS_CONTEXT_LOST CVC_STATUS_CAPTURING
        CVC_STATUS_FORKED CVC_STATUS_INTERNAL
    );
    name.as_ptr().cast()
}

/// The text of the calling thread's last error: which argument, its value, and what was expected. Empty before the first
/// error; a call that succeeds leaves it.
///
/// @param[out] buffer gets the text and a NUL, cut to `length`; may be null when `length` is 0
/// @param[out] needed gets the bytes of the whole text with its NUL; may be null
#[no_mangle]
pub unsafe extern "C" fn cvc_last_error_message(
    buffer: *mut c_char,
    length: usize,
    needed: *mut usize,
) -> cvc_status_t {
    if buffer.is_null() && length > 0 {
        return CVC_STATUS_NULL_POINTER;
    }
    let _ = LAST_ERROR.try_with(|last| {
        // SAFETY: the caller's buffer of `length` bytes.
        unsafe { copy_text(&last.borrow(), buffer, length, needed) };
    });
    CVC_STATUS_OK
}

/// Gives a text to a caller: cut to its buffer, and how long it is.
pub unsafe fn copy_text(text: &str, buffer: *mut c_char, length: usize, needed: *mut usize) {
    if !needed.is_null() {
        // SAFETY: the caller's pointer to a size_t.
        unsafe { *needed = text.len() + 1 };
    }
    if length > 0 {
        let copied = text.len().min(length - 1);
        // SAFETY: the caller's buffer of `length` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, copied);
            *buffer.add(copied) = 0;
        }
    }
}

struct Context(*mut c_void);
// SAFETY: the owner of the callback says that it may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Sends messages, which go to standard error in any case, to `callback` as well; null ends that. The callback may run on
/// any thread that uses the library, at the end of a call, with none of its locks held, and may call the library; `message` is
/// valid during the call. When this returns, the callback before may still be running, or about to run once, on other threads: keep its context valid.
#[no_mangle]
pub unsafe extern "C" fn cvc_set_log_callback(
    callback: cvc_log_fn,
    context: *mut c_void,
) -> cvc_status_t {
    guard(|| {
        let context = Context(context);
        log::set_callback(callback.map(|callback| {
            Box::new(move |level: log::Level, message: &str| {
                let context = &context;
                let text = CString::new(message.replace('\0', "?")).unwrap_or_default();
                // SAFETY: the callback's contract is its owner's.
                unsafe { callback(level as cvc_log_level_t, text.as_ptr(), context.0) };
            }) as log::Callback
        }));
        Ok(())
    })
}
