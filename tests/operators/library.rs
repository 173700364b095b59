//! The C interface as the tests call it: handles that release themselves, and checks of statuses.

// What handles point to is known by name alone.
#![allow(improper_ctypes)]

use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::null_mut;
use std::sync::Once;

use cvc::ffi::*;

extern "C" {
    fn cvc_last_error_message(buffer: *mut c_char, length: usize, needed: *mut usize) -> i32;
    fn cvc_cache_default(cache: *mut cvc_cache_t) -> i32;
    fn cvc_cache_count(cache: cvc_cache_t, device: i32, scope: i32, count: *mut u64) -> i32;
    fn cvc_stream_create(device: i32, flags: u32, stream: *mut cvc_stream_t) -> i32;
    fn cvc_stream_destroy(stream: cvc_stream_t) -> i32;
    fn cvc_stream_query(stream: cvc_stream_t) -> i32;
    fn cvc_stream_synchronize(stream: cvc_stream_t, timeout_ns: i64) -> i32;
    fn cvc_host_latch_create(stream: cvc_stream_t, latch: *mut u64) -> i32;
    fn cvc_host_latch_open(latch: u64) -> i32;
    fn cvc_host_race_report(buffer: *mut c_char, length: usize, needed: *mut usize) -> i32;
    fn cvc_tensor_create(
        cache: cvc_cache_t,
        desc: *const cvc_tensor_desc_t,
        stream: cvc_stream_t,
        tensor: *mut cvc_tensor_t,
    ) -> i32;
    fn cvc_tensor_wrap(
        cache: cvc_cache_t,
        data: *const cvc_tensor_data_t,
        release: cvc_release_fn,
        context: *mut c_void,
        stream: cvc_stream_t,
        tensor: *mut cvc_tensor_t,
    ) -> i32;
    fn cvc_tensor_get_data(tensor: cvc_tensor_t, data: *mut cvc_tensor_data_t) -> i32;
    fn cvc_tensor_release(tensor: cvc_tensor_t) -> i32;
    fn cvc_tensor_from_image(image: cvc_image_t, tensor: *mut cvc_tensor_t) -> i32;
    fn cvc_upload(
        stream: cvc_stream_t,
        src: *const c_void,
        strides: *const i64,
        dst: cvc_tensor_t,
    ) -> i32;
    fn cvc_download(
        stream: cvc_stream_t,
        src: cvc_tensor_t,
        dst: *mut c_void,
        strides: *const i64,
    ) -> i32;
    fn cvc_image_create(
        cache: cvc_cache_t,
        desc: *const cvc_image_desc_t,
        stream: cvc_stream_t,
        image: *mut cvc_image_t,
    ) -> i32;
    fn cvc_image_wrap(
        cache: cvc_cache_t,
        data: *const cvc_image_data_t,
        release: cvc_release_fn,
        context: *mut c_void,
        stream: cvc_stream_t,
        image: *mut cvc_image_t,
    ) -> i32;
    fn cvc_image_release(image: cvc_image_t) -> i32;
    fn cvc_image_batch_create(
        cache: cvc_cache_t,
        device: i32,
        capacity: i32,
        stream: cvc_stream_t,
        batch: *mut cvc_image_batch_t,
    ) -> i32;
    fn cvc_image_batch_push(
        batch: cvc_image_batch_t,
        images: *const cvc_image_t,
        count: i32,
    ) -> i32;
    fn cvc_image_batch_get(batch: cvc_image_batch_t, index: i32, image: *mut cvc_image_t) -> i32;
    fn cvc_image_batch_get_data(
        batch: cvc_image_batch_t,
        stream: cvc_stream_t,
        data: *mut cvc_image_batch_data_t,
    ) -> i32;
    fn cvc_image_batch_release(batch: cvc_image_batch_t) -> i32;

    pub fn cvc_op_flip(s: cvc_stream_t, src: cvc_tensor_t, dst: cvc_tensor_t, code: i32) -> i32;
    pub fn cvc_op_flip_new(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        code: i32,
        dst: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_op_pillow_resize(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        dst: cvc_tensor_t,
        filter: i32,
        flags: u32,
    ) -> i32;
    pub fn cvc_op_pillow_resize_new(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        height: i64,
        width: i64,
        filter: i32,
        flags: u32,
        dst: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_op_convert_to(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        dst: cvc_tensor_t,
        alpha: f64,
        beta: f64,
        round: i32,
    ) -> i32;
    pub fn cvc_op_convert_to_new(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        dtype: u32,
        alpha: f64,
        beta: f64,
        round: i32,
        dst: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_op_normalize(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        dst: cvc_tensor_t,
        params: *const cvc_normalize_params_t,
    ) -> i32;
    pub fn cvc_op_normalize_new(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        params: *const cvc_normalize_params_t,
        dst: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_op_reformat(s: cvc_stream_t, src: cvc_tensor_t, dst: cvc_tensor_t) -> i32;
    pub fn cvc_op_reformat_new(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        layout: *const c_char,
        dst: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_op_flip_var_shape(
        s: cvc_stream_t,
        src: cvc_image_batch_t,
        dst: cvc_image_batch_t,
        codes: cvc_tensor_t,
    ) -> i32;
    pub fn cvc_op_flip_var_shape_new(
        s: cvc_stream_t,
        src: cvc_image_batch_t,
        codes: cvc_tensor_t,
        dst: *mut cvc_image_batch_t,
    ) -> i32;
    pub fn cvc_op_pillow_resize_var_shape(
        s: cvc_stream_t,
        src: cvc_image_batch_t,
        dst: cvc_image_batch_t,
        filter: i32,
        flags: u32,
    ) -> i32;
    pub fn cvc_op_pillow_resize_var_shape_new(
        s: cvc_stream_t,
        src: cvc_image_batch_t,
        sizes: *const i32,
        count: i32,
        filter: i32,
        flags: u32,
        dst: *mut cvc_image_batch_t,
    ) -> i32;
    pub fn cvc_op_normalize_var_shape(
        s: cvc_stream_t,
        src: cvc_image_batch_t,
        dst: cvc_image_batch_t,
        params: *const cvc_normalize_params_t,
    ) -> i32;
    pub fn cvc_op_normalize_var_shape_new(
        s: cvc_stream_t,
        src: cvc_image_batch_t,
        params: *const cvc_normalize_params_t,
        format: u32,
        dst: *mut cvc_image_batch_t,
    ) -> i32;
    pub fn cvc_op_preprocess(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        dst: cvc_tensor_t,
        params: *const cvc_preprocess_params_t,
    ) -> i32;
    pub fn cvc_op_preprocess_new(
        s: cvc_stream_t,
        src: cvc_tensor_t,
        params: *const cvc_preprocess_params_t,
        height: i64,
        width: i64,
        layout: *const c_char,
        dst: *mut cvc_tensor_t,
    ) -> i32;
    pub fn cvc_op_preprocess_var_shape(
        s: cvc_stream_t,
        src: cvc_image_batch_t,
        dst: cvc_tensor_t,
        params: *const cvc_preprocess_params_t,
    ) -> i32;
    pub fn cvc_op_preprocess_var_shape_new(
        s: cvc_stream_t,
        src: cvc_image_batch_t,
        params: *const cvc_preprocess_params_t,
        height: i64,
        width: i64,
        layout: *const c_char,
        dst: *mut cvc_tensor_t,
    ) -> i32;
}

fn message() -> String {
    let mut buffer = vec![0u8; 4096];
    // SAFETY: the buffer has that length.
    unsafe { cvc_last_error_message(buffer.as_mut_ptr().cast(), buffer.len(), null_mut()) };
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}

#[track_caller]
pub fn ok(status: i32) {
    assert_eq!(status, CVC_STATUS_OK, "{}", message());
}

/// The call failed with that status and a message that has all these words.
#[track_caller]
pub fn refused(status: i32, expected: i32, words: &[&str]) {
    let text = message();
    assert_eq!(status, expected, "{text}");
    for word in words {
        assert!(text.contains(word), "the message {text:?} lacks {word:?}");
    }
}

/// The default cache, on a host backend of two devices and under the race checker.
pub fn cache() -> cvc_cache_t {
    static BACKEND: Once = Once::new();
    BACKEND.call_once(|| {
        std::env::set_var("CVC_BACKEND", "host");
        std::env::set_var("CVC_HOST_DEVICES", "2");
        std::env::set_var("CVC_HOST_RACE_CHECK", "1");
    });
    let mut cache = null_mut();
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_default(&mut cache) });
    cache
}

/// All that was queued so far, by any test, is ordered.
#[track_caller]
fn assert_no_races() {
    let mut report = [0 as c_char; 4096];
    // SAFETY: a buffer of that length, which gets a terminated text.
    let report = unsafe {
        ok(cvc_host_race_report(
            report.as_mut_ptr(),
            report.len(),
            null_mut(),
        ));
        CStr::from_ptr(report.as_ptr())
    };
    assert_eq!(report, c"");
}

/// Entries of the calling thread.
pub fn entries() -> u64 {
    let mut count = 0;
    // SAFETY: a place for the result.
    ok(unsafe { cvc_cache_count(cache(), 0, CVC_SCOPE_LOCAL, &mut count) });
    count
}

pub struct Stream(pub cvc_stream_t);

impl Stream {
    pub fn new() -> Stream {
        Stream::on(0)
    }

    pub fn on(device: i32) -> Stream {
        cache();
        let mut stream = null_mut();
        // SAFETY: a place for the result.
        ok(unsafe { cvc_stream_create(device, 0, &mut stream) });
        Stream(stream)
    }

    /// Fails instead of hanging when the stream waits for what never comes.
    #[track_caller]
    pub fn finish(&self) {
        // SAFETY: the stream lives.
        ok(unsafe { cvc_stream_synchronize(self.0, 60_000_000_000) });
        assert_no_races();
    }

    /// Whether work is open on the stream after it had time to run: work that was queued later has run elsewhere.
    pub fn is_held(&self) -> bool {
        let other = Stream::new();
        let tensor = Tensor::new("W", &[1000], CVC_DTYPE_U8);
        for _ in 0..20 {
            tensor.put(&other, &[0u8; 1000]);
            other.finish();
        }
        // SAFETY: the stream lives.
        unsafe { cvc_stream_query(self.0) == CVC_STATUS_NOT_READY }
    }

    /// What is queued from now on runs when the latch is opened, or dropped.
    pub fn hold(&self) -> Latch {
        let mut latch = 0;
        // SAFETY: a place for the result.
        ok(unsafe { cvc_host_latch_create(self.0, &mut latch) });
        Latch(latch)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created and not yet destroyed.
        unsafe { cvc_stream_destroy(self.0) };
    }
}

pub struct Latch(u64);

impl Latch {
    pub fn open(self) {}
}

impl Drop for Latch {
    fn drop(&mut self) {
        // SAFETY: no pointers.
        unsafe { cvc_host_latch_open(self.0) };
    }
}

fn layout_field(layout: &str) -> [c_char; 16] {
    let mut field = [0; 16];
    for (place, byte) in field.iter_mut().zip(layout.bytes()) {
        *place = byte as c_char;
    }
    field
}

fn padded(shape: &[i64]) -> [i64; CVC_MAX_RANK] {
    let mut all = [0; CVC_MAX_RANK];
    all[..shape.len()].copy_from_slice(shape);
    all
}

/// Bytes of an element.
pub fn bytes_of(dtype: u32) -> usize {
    let lane = [0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 8, 16][(dtype & 0xff) as usize];
    lane * ((dtype >> 8) as usize + 1)
}

pub struct Tensor(pub cvc_tensor_t);

// SAFETY: a handle is a number, and every function may be called from any thread.
unsafe impl Sync for Tensor {}

impl Tensor {
    pub fn new(layout: &str, shape: &[i64], dtype: u32) -> Tensor {
        Tensor::on(0, layout, shape, dtype, 0)
    }

    pub fn on(device: i32, layout: &str, shape: &[i64], dtype: u32, row_align: i64) -> Tensor {
        let desc = cvc_tensor_desc_t {
            struct_size: size_of::<cvc_tensor_desc_t>(),
            device,
            rank: shape.len() as i32,
            shape: padded(shape),
            dtype,
            layout: layout_field(layout),
            flags: 0,
            row_align,
            base_align: 0,
        };
        let none = std::ptr::without_provenance_mut(usize::MAX);
        let mut tensor = null_mut();
        // SAFETY: the struct and a place for the result.
        ok(unsafe { cvc_tensor_create(cache(), &desc, none, &mut tensor) });
        Tensor(tensor)
    }

    /// A tensor around `data`, which outlives it.
    pub fn around(
        data: *mut u8,
        layout: &str,
        shape: &[i64],
        strides: &[i64],
        dtype: u32,
    ) -> Tensor {
        let data = cvc_tensor_data_t {
            struct_size: size_of::<cvc_tensor_data_t>(),
            device: 0,
            rank: shape.len() as i32,
            shape: padded(shape),
            strides: padded(strides),
            dtype,
            layout: layout_field(layout),
            flags: 0,
            data: data.cast(),
        };
        let none = std::ptr::without_provenance_mut(usize::MAX);
        let mut tensor = null_mut();
        // SAFETY: the struct and a place for the result; nothing is called back.
        ok(unsafe { cvc_tensor_wrap(cache(), &data, None, null_mut(), none, &mut tensor) });
        Tensor(tensor)
    }

    /// A tensor with these elements, packed in its layout's order; they are there when this returns.
    pub fn of<T: Copy>(
        stream: &Stream,
        layout: &str,
        shape: &[i64],
        dtype: u32,
        data: &[T],
    ) -> Tensor {
        let tensor = Tensor::new(layout, shape, dtype);
        tensor.put(stream, data);
        stream.finish();
        tensor
    }

    /// Queues an upload; `data` stays until the stream has passed.
    pub fn put<T: Copy>(&self, stream: &Stream, data: &[T]) {
        assert_eq!(size_of_val(data), self.packed_bytes());
        // SAFETY: as many bytes as the tensor has.
        ok(unsafe { cvc_upload(stream.0, data.as_ptr().cast(), std::ptr::null(), self.0) });
    }

    /// All elements, packed, after what any stream does with the tensor.
    pub fn take<T: Copy + Default>(&self, stream: &Stream) -> Vec<T> {
        let mut out = vec![T::default(); self.packed_bytes() / size_of::<T>()];
        // SAFETY: as many bytes as the tensor has, which live until the stream has passed.
        ok(unsafe { cvc_download(stream.0, self.0, out.as_mut_ptr().cast(), std::ptr::null()) });
        stream.finish();
        out
    }

    pub fn data(&self) -> cvc_tensor_data_t {
        // SAFETY: all zeros is a value of the struct.
        let mut data: cvc_tensor_data_t = unsafe { std::mem::zeroed() };
        data.struct_size = size_of::<cvc_tensor_data_t>();
        // SAFETY: the struct.
        ok(unsafe { cvc_tensor_get_data(self.0, &mut data) });
        data
    }

    pub fn shape(&self) -> Vec<i64> {
        let data = self.data();
        data.shape[..data.rank as usize].to_vec()
    }

    pub fn layout(&self) -> String {
        let field = self.data().layout;
        field
            .iter()
            .take_while(|&&c| c != 0)
            .map(|&c| c as u8 as char)
            .collect()
    }

    fn packed_bytes(&self) -> usize {
        let count: i64 = self.shape().iter().product();
        count as usize * bytes_of(self.data().dtype)
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: no pointers but the handle.
        ok(unsafe { cvc_tensor_release(self.0) });
    }
}

/// The tensor that a `_new` form made.
#[track_caller]
pub fn new_tensor(call: impl FnOnce(*mut cvc_tensor_t) -> i32) -> Tensor {
    let mut tensor = null_mut();
    ok(call(&mut tensor));
    Tensor(tensor)
}

/// A `_new` form failed, gave nothing and left the cache as it was.
#[track_caller]
pub fn refused_new<T>(call: impl FnOnce(*mut *mut T) -> i32, expected: i32, words: &[&str]) {
    let before = entries();
    let mut result = std::ptr::dangling_mut();
    let status = call(&mut result);
    refused(status, expected, words);
    assert!(result.is_null());
    assert_eq!(entries(), before);
}

pub struct Image(pub cvc_image_t);

impl Image {
    pub fn new(format: u32, width: i32, height: i32) -> Image {
        let desc = cvc_image_desc_t {
            struct_size: size_of::<cvc_image_desc_t>(),
            device: 0,
            format,
            width,
            height,
            row_align: 0,
            base_align: 0,
        };
        let none = std::ptr::without_provenance_mut(usize::MAX);
        let mut image = null_mut();
        // SAFETY: the struct and a place for the result.
        ok(unsafe { cvc_image_create(cache(), &desc, none, &mut image) });
        Image(image)
    }

    /// An image around planes of (address, row stride), which outlive it.
    pub fn around(format: u32, width: i32, height: i32, planes: &[(*mut u8, i64)]) -> Image {
        let planes: Vec<_> = planes
            .iter()
            .map(|&(data, stride)| (data, stride, width, height))
            .collect();
        Image::around_planes(format, width, height, &planes)
    }

    /// Likewise, each plane with its width and height.
    pub fn around_planes(
        format: u32,
        width: i32,
        height: i32,
        planes: &[(*mut u8, i64, i32, i32)],
    ) -> Image {
        // SAFETY: all zeros is a value of the struct.
        let mut data: cvc_image_data_t = unsafe { std::mem::zeroed() };
        data.struct_size = size_of::<cvc_image_data_t>();
        (data.format, data.width, data.height) = (format, width, height);
        data.plane_count = planes.len() as i32;
        for (place, &(address, row_stride, width, height)) in data.planes.iter_mut().zip(planes) {
            *place = cvc_image_plane_t {
                data: address.cast(),
                row_stride,
                width,
                height,
            };
        }
        let none = std::ptr::without_provenance_mut(usize::MAX);
        let mut image = null_mut();
        // SAFETY: the struct and a place for the result; nothing is called back.
        ok(unsafe { cvc_image_wrap(cache(), &data, None, null_mut(), none, &mut image) });
        Image(image)
    }

    pub fn tensor(&self) -> Tensor {
        // SAFETY: a place for the result.
        new_tensor(|tensor| unsafe { cvc_tensor_from_image(self.0, tensor) })
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: no pointers but the handle.
        ok(unsafe { cvc_image_release(self.0) });
    }
}

pub struct Batch(pub cvc_image_batch_t);

impl Batch {
    pub fn of(capacity: i32, images: &[&Image]) -> Batch {
        let none = std::ptr::without_provenance_mut(usize::MAX);
        let mut batch = null_mut();
        // SAFETY: a place for the result.
        ok(unsafe { cvc_image_batch_create(cache(), 0, capacity, none, &mut batch) });
        let handles: Vec<cvc_image_t> = images.iter().map(|image| image.0).collect();
        // SAFETY: an array of so many handles.
        ok(unsafe { cvc_image_batch_push(batch, handles.as_ptr(), handles.len() as i32) });
        Batch(batch)
    }

    pub fn image(&self, index: usize) -> Image {
        let mut image = null_mut();
        // SAFETY: a place for the result.
        ok(unsafe { cvc_image_batch_get(self.0, index as i32, &mut image) });
        Image(image)
    }

    pub fn data(&self) -> cvc_image_batch_data_t {
        let none = std::ptr::without_provenance_mut(usize::MAX);
        // SAFETY: all zeros is a value of the struct.
        let mut data: cvc_image_batch_data_t = unsafe { std::mem::zeroed() };
        data.struct_size = size_of::<cvc_image_batch_data_t>();
        // SAFETY: the struct.
        ok(unsafe { cvc_image_batch_get_data(self.0, none, &mut data) });
        data
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: no pointers but the handle.
        ok(unsafe { cvc_image_batch_release(self.0) });
    }
}

#[track_caller]
pub fn new_batch(call: impl FnOnce(*mut cvc_image_batch_t) -> i32) -> Batch {
    let mut batch = null_mut();
    ok(call(&mut batch));
    Batch(batch)
}

pub fn text(layout: &str) -> CString {
    CString::new(layout).expect("no NUL inside")
}

/// Values in `params`, and no tensors.
pub fn normalize_params(base: &[f32], scale: &[f32]) -> cvc_normalize_params_t {
    // SAFETY: all zeros is a value of the struct.
    let mut params: cvc_normalize_params_t = unsafe { std::mem::zeroed() };
    params.struct_size = size_of::<cvc_normalize_params_t>();
    params.base_values[..base.len()].copy_from_slice(base);
    params.scale_values[..scale.len()].copy_from_slice(scale);
    params.base_count = base.len() as i32;
    params.scale_count = scale.len() as i32;
    params.global_scale = 1.0;
    params
}

/// No step but the resize.
pub fn preprocess_params() -> cvc_preprocess_params_t {
    // SAFETY: all zeros is a value of the struct.
    let mut params: cvc_preprocess_params_t = unsafe { std::mem::zeroed() };
    params.struct_size = size_of::<cvc_preprocess_params_t>();
    params
}
