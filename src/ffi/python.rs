//! What the Python package needs in native code: a destructor of DLPack capsules.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::constants::*;
use super::dlpack::{delete_legacy, delete_versioned};
use super::error::guard;
use crate::error::Status;
use crate::fail;

type GetPointer = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type IsValid = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;

static GET_POINTER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static IS_VALID: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Tells the library where PyCapsule_GetPointer and PyCapsule_IsValid are, so that it need not link Python.
#[no_mangle]
pub extern "C" fn cvc_python_bind(
    capsule_get_pointer: *mut c_void,
    capsule_is_valid: *mut c_void,
) -> cvc_status_t {
    guard(|| {
        if capsule_get_pointer.is_null() || capsule_is_valid.is_null() {
            fail!(
                Status::NullPointer,
                "capsule_get_pointer is {capsule_get_pointer:?} and capsule_is_valid is {capsule_is_valid:?}, expected the \
                 addresses of PyCapsule_GetPointer and PyCapsule_IsValid"
            );
        }
        GET_POINTER.store(capsule_get_pointer, Ordering::Release);
        IS_VALID.store(capsule_is_valid, Ordering::Release);
        Ok(())
    })
}

/// The destructor of a PyCapsule named "dltensor" or "dltensor_versioned": deletes what nobody has taken. Python calls it,
/// holding its lock.
#[no_mangle]
pub unsafe extern "C" fn cvc_python_capsule_destructor(capsule: *mut c_void) {
    let (get, valid) = (
        GET_POINTER.load(Ordering::Acquire),
        IS_VALID.load(Ordering::Acquire),
    );
    if get.is_null() || valid.is_null() || capsule.is_null() {
        return;
    }
    // SAFETY: `cvc_python_bind` was given the addresses of functions of these types.
    let (get, valid) = unsafe {
        (
            std::mem::transmute::<*mut c_void, GetPointer>(get),
            std::mem::transmute::<*mut c_void, IsValid>(valid),
        )
    };
    // SAFETY: the capsule is alive while its destructor runs; a valid name means that its pointer is such a struct.
    unsafe {
        if valid(capsule, c"dltensor_versioned".as_ptr()) != 0 {
            delete_versioned(get(capsule, c"dltensor_versioned".as_ptr()).cast());
        } else if valid(capsule, c"dltensor".as_ptr()) != 0 {
            delete_legacy(get(capsule, c"dltensor".as_ptr()).cast());
        }
    }
}
