//! Running out of handles: each kind of creation is refused, changes nothing, and works again once there is a slot.

mod c_interface;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use c_interface::*;
use cvc::object::limit_slots;

const NO_STREAM: cvc_stream_t = usize::MAX as cvc_stream_t;

static TOLD: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn count_release(_: *mut c_void) {
    TOLD.fetch_add(1, Ordering::SeqCst);
}

/// A struct of the interface, all zeros but for its size.
fn sized<T>() -> T {
    // SAFETY: all zeros is a value of every struct of the interface, and each begins with its size.
    unsafe {
        let mut value: T = std::mem::zeroed();
        std::ptr::from_mut(&mut value)
            .cast::<usize>()
            .write(std::mem::size_of::<T>());
        value
    }
}

fn desc(height: i64) -> cvc_tensor_desc_t {
    let mut desc: cvc_tensor_desc_t = sized();
    desc.rank = 2;
    desc.shape[..2].copy_from_slice(&[height, 64]);
    desc.dtype = CVC_DTYPE_U8;
    desc.layout[..2].copy_from_slice(&[b'H' as _, b'W' as _]);
    desc
}

/// Every count and account.
fn stats(cache: cvc_cache_t) -> Vec<u64> {
    let mut stats: cvc_cache_stats_t = sized();
    // SAFETY: a live handle and a local; the struct is nothing but words.
    unsafe {
        assert_eq!(cvc_cache_stats(cache, 0, &mut stats), CVC_STATUS_OK);
        // The peak counts the attempt.
        stats.peak_bytes = 0;
        let words = std::mem::size_of::<cvc_cache_stats_t>() / 8;
        std::slice::from_raw_parts(std::ptr::from_ref(&stats).cast(), words).to_vec()
    }
}

#[test]
fn running_out_of_handles_changes_nothing() {
    let out_of_slots = |status: i32, limit: u32| {
        assert_eq!(status, CVC_STATUS_CAPACITY_EXCEEDED);
        let expected = format!("all {limit} slots for objects are taken");
        assert!(message().starts_with(&expected), "{}", message());
    };
    // SAFETY: every call gets live handles and pointers to locals.
    unsafe {
        let mut cache = null_mut();
        limit_slots(0);
        out_of_slots(cvc_cache_default(&mut cache), 0);
        assert!(cache.is_null());
        limit_slots(3);
        assert_eq!(cvc_cache_default(&mut cache), CVC_STATUS_OK);
        let (mut tensor, mut other) = (null_mut(), null_mut());
        for place in [&mut tensor, &mut other] {
            assert_eq!(
                cvc_tensor_create(cache, &desc(8), NO_STREAM, place),
                CVC_STATUS_OK
            );
        }
        let mut data: cvc_tensor_data_t = sized();
        assert_eq!(cvc_tensor_get_data(tensor, &mut data), CVC_STATUS_OK);

        let before = stats(cache);
        let mut refused = null_mut();
        out_of_slots(
            cvc_tensor_create(cache, &desc(9), NO_STREAM, &mut refused),
            3,
        );
        out_of_slots(
            cvc_tensor_wrap(
                cache,
                &data,
                Some(count_release),
                null_mut(),
                NO_STREAM,
                &mut refused,
            ),
            3,
        );
        let mut shape = desc(4);
        shape.shape[1] = 128;
        out_of_slots(cvc_tensor_reshape(tensor, &shape, &mut refused), 3);
        assert!(refused.is_null());
        let mut image_desc: cvc_image_desc_t = sized();
        (image_desc.format, image_desc.width, image_desc.height) = (CVC_FORMAT_RGB8, 16, 16);
        let mut image = null_mut();
        out_of_slots(
            cvc_image_create(cache, &image_desc, NO_STREAM, &mut image),
            3,
        );
        let mut batch = null_mut();
        out_of_slots(
            cvc_image_batch_create(cache, 0, 4, NO_STREAM, &mut batch),
            3,
        );
        let mut second = null_mut();
        out_of_slots(cvc_cache_create(null(), &mut second), 3);
        assert!(image.is_null() && batch.is_null() && second.is_null());
        assert_eq!(TOLD.load(Ordering::SeqCst), 0);
        assert_eq!(stats(cache), before);

        // An idle object serves as ever, and a new slot is all that was missing.
        assert_eq!(cvc_tensor_release(other), CVC_STATUS_OK);
        assert_eq!(
            cvc_tensor_create(cache, &desc(8), NO_STREAM, &mut other),
            CVC_STATUS_OK
        );
        limit_slots(4);
        assert_eq!(
            cvc_tensor_create(cache, &desc(9), NO_STREAM, &mut refused),
            CVC_STATUS_OK
        );
        for tensor in [tensor, other, refused] {
            assert_eq!(cvc_tensor_release(tensor), CVC_STATUS_OK);
        }
    }
}
