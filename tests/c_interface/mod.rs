//! The C interface as the tests of the instruments, of lifetimes and of handles call it.

// Each test program uses a part of it, and what handles point to is known by name alone.
#![allow(dead_code, improper_ctypes)]

use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::null_mut;

pub use cvc::ffi::*;

/// The calling thread's own default stream.
pub const OWN_STREAM: cvc_stream_t = std::ptr::without_provenance_mut(2);

extern "C" {
    pub fn cvc_last_error_message(buffer: *mut c_char, length: usize, needed: *mut usize) -> i32;
    pub fn cvc_status_string(status: i32) -> *const c_char;
    pub fn cvc_backend_instrument(instruments: u32) -> i32;
    pub fn cvc_backend_call_name(index: u32) -> *const c_char;
    pub fn cvc_backend_call_count(name: *const c_char, count: *mut u64) -> i32;
    pub fn cvc_backend_call_reset() -> i32;
    pub fn cvc_host_fault(call: *const c_char, skip: u64, count: u64, status: i32) -> i32;
    pub fn cvc_host_fault_hits(hits: *mut u64) -> i32;
    pub fn cvc_host_fault_clear() -> i32;
    pub fn cvc_host_step_count(count: *mut u64) -> i32;
    pub fn cvc_host_step_get(index: u64, step: *mut cvc_host_step_t) -> i32;
    pub fn cvc_host_step(index: u64) -> i32;
    pub fn cvc_host_step_stream(stream: cvc_stream_t, steps: *mut u64) -> i32;
    pub fn cvc_host_step_all(steps: *mut u64) -> i32;
    pub fn cvc_host_race_count(count: *mut u64) -> i32;
    pub fn cvc_host_race_report(buffer: *mut c_char, length: usize, needed: *mut usize) -> i32;
    pub fn cvc_host_race_forget() -> i32;
    pub fn cvc_host_race_access(
        device: i32,
        stream: cvc_stream_t,
        pointer: *const c_void,
        bytes: u64,
        access: i32,
    ) -> i32;
    pub fn cvc_set_log_callback(callback: cvc_log_fn, context: *mut c_void) -> i32;
    pub fn cvc_cache_default(cache: *mut cvc_cache_t) -> i32;
    pub fn cvc_cache_clear(cache: cvc_cache_t, device: i32, scope: i32) -> i32;
    pub fn cvc_cache_set_limit(cache: cvc_cache_t, device: i32, bytes: i64) -> i32;
    pub fn cvc_cache_stats(cache: cvc_cache_t, device: i32, stats: *mut cvc_cache_stats_t) -> i32;
    pub fn cvc_cache_trim(cache: cvc_cache_t, device: i32, keep: u64) -> i32;
    pub fn cvc_cache_synchronize(cache: cvc_cache_t, device: i32, timeout_ns: i64) -> i32;
    pub fn cvc_device_synchronize(device: i32, timeout_ns: i64) -> i32;
    pub fn cvc_stream_create(device: i32, flags: u32, stream: *mut cvc_stream_t) -> i32;
    pub fn cvc_stream_destroy(stream: cvc_stream_t) -> i32;
    pub fn cvc_stream_register(device: i32, stream: cvc_stream_t, flags: u32) -> i32;
    pub fn cvc_stream_unregister(stream: cvc_stream_t) -> i32;
    pub fn cvc_stream_query(stream: cvc_stream_t) -> i32;
    pub fn cvc_stream_synchronize(stream: cvc_stream_t, timeout_ns: i64) -> i32;
    pub fn cvc_stream_wait_stream(waits: cvc_stream_t, waited_for: cvc_stream_t) -> i32;
    pub fn cvc_stream_wait_event(stream: cvc_stream_t, event: cvc_event_t) -> i32;
    pub fn cvc_event_create(device: i32, flags: u32, event: *mut cvc_event_t) -> i32;
    pub fn cvc_event_destroy(event: cvc_event_t) -> i32;
    pub fn cvc_event_record(event: cvc_event_t, stream: cvc_stream_t) -> i32;
    pub fn cvc_event_query(event: cvc_event_t) -> i32;
    pub fn cvc_event_synchronize(event: cvc_event_t, timeout_ns: i64) -> i32;
    pub fn cvc_event_elapsed_ms(
        start: cvc_event_t,
        end: cvc_event_t,
        milliseconds: *mut f32,
    ) -> i32;
    pub fn cvc_host_latch_create(stream: cvc_stream_t, latch: *mut u64) -> i32;
    pub fn cvc_host_latch_open(latch: u64) -> i32;
    pub fn cvc_host_capture_begin(stream: cvc_stream_t) -> i32;
    pub fn cvc_host_capture_end(stream: cvc_stream_t) -> i32;
    pub fn cvc_tensor_create(
        cache: cvc_cache_t,
        desc: *const cvc_tensor_desc_t,
        stream: cvc_stream_t,
        tensor: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_tensor_get_data(tensor: cvc_tensor_t, data: *mut cvc_tensor_data_t) -> i32;
    pub fn cvc_tensor_begin_access(tensor: cvc_tensor_t, stream: cvc_stream_t, access: i32) -> i32;
    pub fn cvc_tensor_end_access(tensor: cvc_tensor_t, stream: cvc_stream_t, access: i32) -> i32;
    pub fn cvc_tensor_to_dlpack(
        tensor: cvc_tensor_t,
        consumer: cvc_stream_t,
        versioned: i32,
        managed: *mut *mut c_void,
    ) -> i32;
    pub fn cvc_tensor_release(tensor: cvc_tensor_t) -> i32;
    pub fn cvc_upload(
        stream: cvc_stream_t,
        src: *const c_void,
        strides: *const i64,
        dst: cvc_tensor_t,
    ) -> i32;
    pub fn cvc_download(
        stream: cvc_stream_t,
        src: cvc_tensor_t,
        dst: *mut c_void,
        strides: *const i64,
    ) -> i32;
    pub fn cvc_copy(stream: cvc_stream_t, src: cvc_tensor_t, dst: cvc_tensor_t) -> i32;
    pub fn cvc_fill_zero(stream: cvc_stream_t, dst: cvc_tensor_t) -> i32;
    pub fn cvc_image_create(
        cache: cvc_cache_t,
        desc: *const cvc_image_desc_t,
        stream: cvc_stream_t,
        image: *mut cvc_image_t,
    ) -> i32;
    pub fn cvc_image_release(image: cvc_image_t) -> i32;
    pub fn cvc_image_batch_create(
        cache: cvc_cache_t,
        device: i32,
        capacity: i32,
        stream: cvc_stream_t,
        batch: *mut cvc_image_batch_t,
    ) -> i32;
    pub fn cvc_image_batch_push(
        batch: cvc_image_batch_t,
        images: *const cvc_image_t,
        count: i32,
    ) -> i32;
    pub fn cvc_image_batch_release(batch: cvc_image_batch_t) -> i32;
    pub fn cvc_op_pillow_resize_new(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        height: i64,
        width: i64,
        filter: cvc_filter_t,
        flags: u32,
        dst: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_op_pillow_resize_var_shape_new(
        stream: cvc_stream_t,
        src: cvc_image_batch_t,
        sizes: *const i32,
        count: i32,
        filter: i32,
        flags: u32,
        dst: *mut cvc_image_batch_t,
    ) -> i32;
    pub fn cvc_op_flip(s: cvc_stream_t, src: cvc_tensor_t, dst: cvc_tensor_t, code: i32) -> i32;
    pub fn cvc_op_flip_new(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        code: i32,
        dst: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_cache_create(options: *const cvc_cache_options_t, cache: *mut cvc_cache_t) -> i32;
    pub fn cvc_tensor_wrap(
        cache: cvc_cache_t,
        data: *const cvc_tensor_data_t,
        release: cvc_release_fn,
        context: *mut c_void,
        stream: cvc_stream_t,
        tensor: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_tensor_reshape(
        tensor: cvc_tensor_t,
        desc: *const cvc_tensor_desc_t,
        view: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_cache_release(cache: cvc_cache_t) -> i32;
    pub fn cvc_mem_alloc(
        cache: cvc_cache_t,
        device: i32,
        bytes: usize,
        alignment: usize,
        stream: cvc_stream_t,
        ptr: *mut *mut c_void,
    ) -> i32;
    pub fn cvc_mem_free(cache: cvc_cache_t, ptr: *mut c_void, stream: cvc_stream_t) -> i32;
    pub fn cvc_mem_record_stream(cache: cvc_cache_t, ptr: *mut c_void, stream: cvc_stream_t)
        -> i32;
    pub fn cvc_mem_free_after_event(
        cache: cvc_cache_t,
        ptr: *mut c_void,
        event: cvc_event_t,
    ) -> i32;
    pub fn cvc_cache_count(cache: cvc_cache_t, device: i32, scope: i32, count: *mut u64) -> i32;
    pub fn cvc_cache_get_limit(cache: cvc_cache_t, device: i32, bytes: *mut i64) -> i32;
    pub fn cvc_cache_thread_detach(cache: cvc_cache_t) -> i32;
    pub fn cvc_tensor_get_id(tensor: cvc_tensor_t, id: *mut u64) -> i32;
    pub fn cvc_tensor_from_image(image: cvc_image_t, tensor: *mut cvc_tensor_t) -> i32;
    pub fn cvc_image_get_id(image: cvc_image_t, id: *mut u64) -> i32;
    pub fn cvc_image_batch_get_id(batch: cvc_image_batch_t, id: *mut u64) -> i32;
    pub fn cvc_image_batch_get(
        batch: cvc_image_batch_t,
        index: i32,
        image: *mut cvc_image_t,
    ) -> i32;
    pub fn cvc_tensor_batch_create(
        cache: cvc_cache_t,
        device: i32,
        capacity: i32,
        stream: cvc_stream_t,
        batch: *mut cvc_tensor_batch_t,
    ) -> i32;
    pub fn cvc_tensor_batch_push(
        batch: cvc_tensor_batch_t,
        tensors: *const cvc_tensor_t,
        count: i32,
    ) -> i32;
    pub fn cvc_tensor_batch_pop(batch: cvc_tensor_batch_t, count: i32) -> i32;
    pub fn cvc_tensor_batch_clear(batch: cvc_tensor_batch_t) -> i32;
    pub fn cvc_tensor_batch_get(
        batch: cvc_tensor_batch_t,
        index: i32,
        tensor: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_tensor_batch_set(batch: cvc_tensor_batch_t, index: i32, tensor: cvc_tensor_t)
        -> i32;
    pub fn cvc_tensor_batch_get_data(
        batch: cvc_tensor_batch_t,
        stream: cvc_stream_t,
        data: *mut cvc_tensor_batch_data_t,
    ) -> i32;
    pub fn cvc_tensor_batch_get_id(batch: cvc_tensor_batch_t, id: *mut u64) -> i32;
    pub fn cvc_tensor_batch_release(batch: cvc_tensor_batch_t) -> i32;
    pub fn cvc_op_flip_var_shape_new(
        stream: cvc_stream_t,
        src: cvc_image_batch_t,
        flip_codes: cvc_tensor_t,
        dst: *mut cvc_image_batch_t,
    ) -> i32;
}

/// The text of the thread's last error.
pub fn message() -> String {
    let mut text = [0 as c_char; 1024];
    // SAFETY: a buffer of that length, which gets a terminated text.
    unsafe {
        cvc_last_error_message(text.as_mut_ptr(), text.len(), null_mut());
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    }
}

/// Fails where a call failed, with its message.
#[track_caller]
pub fn ok(status: i32) {
    assert_eq!(status, CVC_STATUS_OK, "{}", message());
}

/// The host backend with these instruments, for the whole process.
pub fn start(instruments: u32) {
    std::env::set_var("CVC_BACKEND", "host");
    // SAFETY: no preconditions.
    ok(unsafe { cvc_backend_instrument(instruments) });
}

pub fn default_cache() -> cvc_cache_t {
    let mut cache = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_default(&mut cache) });
    cache
}

pub fn stats(cache: cvc_cache_t) -> cvc_cache_stats_t {
    // SAFETY: plain numbers.
    let mut stats: cvc_cache_stats_t = unsafe { std::mem::zeroed() };
    stats.struct_size = std::mem::size_of_val(&stats);
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_stats(cache, 0, &mut stats) });
    stats
}

pub fn new_stream(flags: u32) -> cvc_stream_t {
    let mut stream = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_stream_create(0, flags, &mut stream) });
    stream
}

/// What is counted is what is there.
#[track_caller]
pub fn assert_accounts_add_up(cache: cvc_cache_t, what: &str) {
    let now = stats(cache);
    let counted = now.live_bytes - now.unindexed_bytes + now.idle_bytes + now.pending_bytes;
    assert_eq!(now.bytes, counted, "{what}");
    assert!(
        now.driver_bytes >= now.live_bytes + now.idle_bytes + now.pending_bytes,
        "{what}"
    );
}

/// A stream that the library did not make; null where that fails.
pub fn foreign_stream() -> cvc_stream_t {
    let backend = cvc::backend::current().expect("it has started");
    let handle = backend.stream_create(0, false).unwrap_or_default();
    std::ptr::without_provenance_mut(handle)
}

pub fn destroy(stream: cvc_stream_t) {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_stream_destroy(stream) });
}

pub fn synchronize(stream: cvc_stream_t) {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_stream_synchronize(stream, -1) });
}

pub fn hold(stream: cvc_stream_t) -> u64 {
    let mut latch = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_host_latch_create(stream, &mut latch) });
    latch
}

pub fn let_go(latch: u64) {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_host_latch_open(latch) });
}

/// A description of a tensor HWC of U8.
pub fn hwc(height: i64, width: i64, channels: i64) -> cvc_tensor_desc_t {
    // SAFETY: plain numbers.
    let mut desc: cvc_tensor_desc_t = unsafe { std::mem::zeroed() };
    desc.struct_size = std::mem::size_of_val(&desc);
    desc.rank = 3;
    desc.shape[..3].copy_from_slice(&[height, width, channels]);
    desc.dtype = CVC_DTYPE_U8;
    for (place, letter) in desc.layout.iter_mut().zip(b"HWC") {
        *place = *letter as c_char;
    }
    desc
}

/// The status too, for calls that may fail.
pub fn try_create(
    cache: cvc_cache_t,
    desc: &cvc_tensor_desc_t,
    stream: cvc_stream_t,
) -> (i32, cvc_tensor_t) {
    let mut tensor = null_mut();
    // SAFETY: a description and a place for the result.
    let status = unsafe { cvc_tensor_create(cache, desc, stream, &mut tensor) };
    (status, tensor)
}

pub fn create(cache: cvc_cache_t, desc: &cvc_tensor_desc_t, stream: cvc_stream_t) -> cvc_tensor_t {
    let (status, tensor) = try_create(cache, desc, stream);
    ok(status);
    tensor
}

pub fn data(tensor: cvc_tensor_t) -> u64 {
    // SAFETY: plain numbers and pointers.
    let mut data: cvc_tensor_data_t = unsafe { std::mem::zeroed() };
    data.struct_size = std::mem::size_of_val(&data);
    // SAFETY: a place for the result.
    ok(unsafe { cvc_tensor_get_data(tensor, &mut data) });
    data.data as u64
}

pub fn release(tensor: cvc_tensor_t) {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_tensor_release(tensor) });
}

/// Plans a fault of the backend; `end_plan` ends it.
pub fn plan(call: &str, skip: u64, count: u64, status: i32) {
    let call = CString::new(call).expect("no name has a zero");
    // SAFETY: a name.
    ok(unsafe { cvc_host_fault(call.as_ptr(), skip, count, status) });
}

/// How many calls failed by the plan, which ends.
pub fn end_plan() -> u64 {
    let mut hits = 0;
    // SAFETY: a place for the result.
    unsafe {
        ok(cvc_host_fault_hits(&mut hits));
        ok(cvc_host_fault_clear());
    }
    hits
}

/// How often the backend was called by each name, without those that were not.
pub fn calls() -> Vec<(String, u64)> {
    let mut calls = Vec::new();
    for index in 0.. {
        // SAFETY: a static name or null; a place for the count.
        unsafe {
            let name = cvc_backend_call_name(index);
            if name.is_null() {
                break;
            }
            let mut count = 0;
            ok(cvc_backend_call_count(name, &mut count));
            if count > 0 {
                calls.push((CStr::from_ptr(name).to_string_lossy().into_owned(), count));
            }
        }
    }
    calls
}

/// The calls that `body` makes.
pub fn calls_of(body: impl FnOnce()) -> Vec<(String, u64)> {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_backend_call_reset() });
    body();
    calls()
}

pub fn races() -> u64 {
    let mut count = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_host_race_count(&mut count) });
    count
}

pub fn race_report() -> String {
    let mut text = vec![0 as c_char; 1 << 16];
    // SAFETY: a buffer of that length, which gets a terminated text.
    unsafe {
        ok(cvc_host_race_report(
            text.as_mut_ptr(),
            text.len(),
            null_mut(),
        ));
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    }
}

#[track_caller]
pub fn assert_no_races() {
    assert_eq!(races(), 0, "{}", race_report());
}

/// How many items may run.
pub fn runnable() -> u64 {
    let mut count = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_host_step_count(&mut count) });
    count
}

pub fn step(index: u64) {
    // SAFETY: no preconditions.
    ok(unsafe { cvc_host_step(index) });
}

/// Runs all that may run.
pub fn run_all() {
    let mut steps = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_host_step_all(&mut steps) });
}

/// Work that writes a tensor.
pub fn fill(stream: cvc_stream_t, tensor: cvc_tensor_t) {
    // SAFETY: handles.
    ok(unsafe { cvc_fill_zero(stream, tensor) });
}
