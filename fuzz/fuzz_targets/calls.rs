//! The calls, what they have made, and the checks after each and at the end.

use std::ffi::{c_char, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::c_interface::*;
use crate::input::Input;

/// Larger than any struct may say that it is.
const STRUCT_ROOM: usize = 1 << 17;
/// Caches are never freed.
const MOST_CACHES: usize = 64;
static CACHES: AtomicUsize = AtomicUsize::new(0);

/// Handles of one kind that live, and that did.
#[derive(Default)]
struct Handles {
    live: Vec<usize>,
    stale: Vec<usize>,
}

impl Handles {
    /// One that lives, mostly; or one that did, nearly is one, or is anything.
    fn any(&self, input: &mut Input) -> usize {
        let pick = |list: &[usize], input: &mut Input| match list.len() {
            0 => 0,
            length => list[input.below(length)],
        };
        match input.byte() {
            0..200 => pick(&self.live, input),
            200..225 => pick(&self.stale, input),
            225..245 => pick(&self.live, input) ^ 1 << input.below(64),
            _ => input.word() as usize,
        }
    }

    fn add(&mut self, status: i32, handle: usize) {
        if status == CVC_STATUS_OK && handle != 0 {
            self.live.push(handle);
        }
    }

    fn remove(&mut self, handle: usize) {
        if let Some(place) = self.live.iter().position(|known| *known == handle) {
            self.live.swap_remove(place);
            self.stale.push(handle);
        }
    }
}

pub struct World {
    cache: cvc_cache_t,
    caches: Handles,
    tensors: Handles,
    images: Handles,
    batches: Handles,
    memory: Vec<(usize, usize)>,
    streams: Vec<cvc_stream_t>,
    events: Vec<cvc_event_t>,
    room: Vec<u64>,
}

impl World {
    pub fn new(cache: cvc_cache_t) -> World {
        World {
            cache,
            caches: Handles::default(),
            tensors: Handles::default(),
            images: Handles::default(),
            batches: Handles::default(),
            memory: Vec::new(),
            streams: Vec::new(),
            events: Vec::new(),
            room: vec![0; STRUCT_ROOM / 8],
        }
    }

    fn cache(&self, input: &mut Input) -> cvc_cache_t {
        match input.byte() {
            0..180 => self.cache,
            _ => without_provenance_mut(self.caches.any(input)),
        }
    }

    /// Streams and events are native handles: none but those that live.
    fn stream(&self, input: &mut Input) -> cvc_stream_t {
        match input.byte() {
            byte @ 0..160 if !self.streams.is_empty() => {
                self.streams[usize::from(byte) % self.streams.len()]
            }
            byte => without_provenance_mut([0, 1, 2, usize::MAX][usize::from(byte) % 4]),
        }
    }

    fn event(&self, input: &mut Input) -> cvc_event_t {
        match self.events.len() {
            0 => null_mut(),
            length => self.events[input.below(length)],
        }
    }

    fn tensor(&self, input: &mut Input) -> cvc_tensor_t {
        without_provenance_mut(self.tensors.any(input))
    }

    fn image(&self, input: &mut Input) -> cvc_image_t {
        without_provenance_mut(self.images.any(input))
    }

    fn batch(&self, input: &mut Input) -> cvc_image_batch_t {
        without_provenance_mut(self.batches.any(input))
    }

    /// Puts a struct where there is room for any size that it may claim, spoils it now and then, and says where it is.
    fn place<T: Copy>(&mut self, value: T, input: &mut Input) -> *mut T {
        self.room.fill(0);
        let room: *mut u8 = self.room.as_mut_ptr().cast();
        let spoil = input.byte();
        // SAFETY: the room is larger than any of these structs, and than the offsets below.
        unsafe {
            let place = room.add(if spoil & 1 == 1 && spoil > 200 { 4 } else { 0 });
            place.cast::<T>().write_unaligned(value);
            match spoil {
                0..180 => {}
                180..200 => place.cast::<u64>().write_unaligned(input.number() as u64),
                200..230 => {
                    let offset = input.below(std::mem::size_of::<T>());
                    *place.add(offset) = input.byte();
                }
                230..245 => {
                    let size = std::mem::size_of::<T>() + input.below(64);
                    place.cast::<u64>().write_unaligned(size as u64);
                    *place.add(std::mem::size_of::<T>() + input.below(64)) = input.byte();
                }
                _ => return null_mut(),
            }
            place.cast()
        }
    }

    fn tensor_desc(&mut self, input: &mut Input) -> *mut cvc_tensor_desc_t {
        let mut desc = hwc(1, 1, 1);
        desc.rank = 1 + input.below(5) as i32;
        for dim in desc.shape.iter_mut().take(desc.rank as usize) {
            *dim = input.number();
        }
        let layouts: [&[u8]; 6] = [b"HWC", b"NHWC", b"NCHW", b"", b"W", b"XYZ!"];
        desc.layout = [0; 16];
        for (place, letter) in desc.layout.iter_mut().zip(layouts[input.below(6)]) {
            *place = *letter as c_char;
        }
        match input.byte() {
            0..200 => {}
            _ => desc.dtype = input.number() as u32,
        }
        if input.byte() > 200 {
            desc.row_align = input.number();
            desc.base_align = input.number();
        }
        self.place(desc, input)
    }

    /// One call, and what is true after each.
    pub fn call(&mut self, input: &mut Input) {
        let status = match input.below(8) {
            0 => self.of_caches(input),
            1 | 2 => self.of_tensors(input),
            3 => self.of_work(input),
            4 => self.of_images(input),
            5 => self.of_streams(input),
            _ => self.of_memory(input),
        };
        assert!(
            (0..=CVC_STATUS_INTERNAL).contains(&status),
            "status {status}"
        );
        assert_ne!(status, CVC_STATUS_INTERNAL, "{}", message());
        assert!(status == CVC_STATUS_OK || !message().is_empty());
    }

    fn of_caches(&mut self, input: &mut Input) -> i32 {
        let cache = self.cache(input);
        let device = input.below(3) as i32 - 1;
        // SAFETY: room for each struct, places for results.
        unsafe {
            match input.below(8) {
                0 if CACHES.fetch_add(1, Ordering::Relaxed) < MOST_CACHES => {
                    let options = cvc_cache_options_t {
                        struct_size: std::mem::size_of::<cvc_cache_options_t>(),
                        limit: i64::from(input.byte()) * 4096,
                        flags: 0,
                    };
                    let options = self.place(options, input);
                    let mut made = null_mut();
                    let status = cvc_cache_create(options, &mut made);
                    self.caches.add(status, made as usize);
                    status
                }
                1 => {
                    self.caches.remove(cache as usize);
                    cvc_cache_release(cache)
                }
                2 => cvc_cache_set_limit(cache, device, i64::from(input.byte()) * 4096 - 4096),
                3 => cvc_cache_clear(cache, device, input.below(3) as i32),
                4 => cvc_cache_trim(cache, device, input.word()),
                5 => cvc_cache_synchronize(cache, device, input.number()),
                6 => {
                    let mut stats: cvc_cache_stats_t = std::mem::zeroed();
                    stats.struct_size = std::mem::size_of_val(&stats);
                    let stats = self.place(stats, input);
                    cvc_cache_stats(cache, device, stats)
                }
                _ => cvc_device_synchronize(device, input.number()),
            }
        }
    }

    fn of_tensors(&mut self, input: &mut Input) -> i32 {
        let (cache, stream, tensor) = (self.cache(input), self.stream(input), self.tensor(input));
        let mut made = null_mut();
        // SAFETY: as above.
        unsafe {
            match input.below(6) {
                0 | 1 => {
                    let desc = self.tensor_desc(input);
                    let status = cvc_tensor_create(cache, desc, stream, &mut made);
                    assert!(status == CVC_STATUS_OK || made.is_null());
                    self.tensors.add(status, made as usize);
                    status
                }
                2 => {
                    let desc = self.tensor_desc(input);
                    let status = cvc_tensor_reshape(tensor, desc, &mut made);
                    self.tensors.add(status, made as usize);
                    status
                }
                3 => {
                    let mut data: cvc_tensor_data_t = std::mem::zeroed();
                    data.struct_size = std::mem::size_of_val(&data);
                    let data = self.place(data, input);
                    cvc_tensor_get_data(tensor, data)
                }
                _ => {
                    self.tensors.remove(tensor as usize);
                    cvc_tensor_release(tensor)
                }
            }
        }
    }

    fn of_work(&mut self, input: &mut Input) -> i32 {
        let (stream, first, second) = (self.stream(input), self.tensor(input), self.tensor(input));
        let number = input.number() as i32;
        let mut made = null_mut();
        // SAFETY: as above.
        unsafe {
            match input.below(6) {
                0 => cvc_fill_zero(stream, first),
                1 => cvc_copy(stream, first, second),
                2 => cvc_op_flip(stream, first, second, number),
                3 => {
                    let status = cvc_op_flip_new(stream, first, number, &mut made);
                    self.tensors.add(status, made as usize);
                    status
                }
                4 => cvc_tensor_begin_access(first, stream, number),
                _ => cvc_tensor_end_access(first, stream, number),
            }
        }
    }

    fn of_images(&mut self, input: &mut Input) -> i32 {
        let (cache, stream) = (self.cache(input), self.stream(input));
        let (image, batch) = (self.image(input), self.batch(input));
        // SAFETY: as above; no more handles are read than there are.
        unsafe {
            match input.below(5) {
                0 => {
                    let desc = cvc_image_desc_t {
                        struct_size: std::mem::size_of::<cvc_image_desc_t>(),
                        device: 0,
                        format: match input.byte() {
                            0..200 => CVC_FORMAT_RGB8,
                            _ => input.number() as u32,
                        },
                        width: input.number() as i32,
                        height: input.number() as i32,
                        row_align: 0,
                        base_align: 0,
                    };
                    let desc = self.place(desc, input);
                    let mut made = null_mut();
                    let status = cvc_image_create(cache, desc, stream, &mut made);
                    self.images.add(status, made as usize);
                    status
                }
                1 => {
                    self.images.remove(image as usize);
                    cvc_image_release(image)
                }
                2 => {
                    let (device, capacity) = (input.below(3) as i32 - 1, input.number() as i32);
                    let mut made = null_mut();
                    let status = cvc_image_batch_create(cache, device, capacity, stream, &mut made);
                    self.batches.add(status, made as usize);
                    status
                }
                3 => {
                    let images: Vec<_> = (0..4).map(|_| self.image(input)).collect();
                    let count = input.below(7) as i32 - 2;
                    cvc_image_batch_push(batch, images.as_ptr(), count)
                }
                _ => {
                    self.batches.remove(batch as usize);
                    cvc_image_batch_release(batch)
                }
            }
        }
    }

    fn of_streams(&mut self, input: &mut Input) -> i32 {
        let (stream, event) = (self.stream(input), self.event(input));
        // SAFETY: as above; streams and events that live.
        unsafe {
            match input.below(12) {
                0 if self.streams.len() < 8 => {
                    let mut made = null_mut();
                    let status = cvc_stream_create(0, input.below(3) as u32, &mut made);
                    if status == CVC_STATUS_OK {
                        self.streams.push(made);
                    }
                    status
                }
                1 => {
                    let stream = match input.byte() {
                        0..200 => stream,
                        _ => without_provenance_mut(input.word() as usize),
                    };
                    self.streams.retain(|known| *known != stream);
                    cvc_stream_destroy(stream)
                }
                2 if self.events.len() < 8 => {
                    let mut made = null_mut();
                    let status = cvc_event_create(0, input.below(3) as u32, &mut made);
                    if status == CVC_STATUS_OK {
                        self.events.push(made);
                    }
                    status
                }
                3 => {
                    self.events.retain(|known| *known != event);
                    cvc_event_destroy(event)
                }
                4 => cvc_event_record(event, stream),
                5 => cvc_event_query(event),
                6 => cvc_stream_wait_event(stream, event),
                7 => cvc_stream_wait_stream(stream, self.stream(input)),
                8 => cvc_stream_query(stream),
                9 => cvc_stream_synchronize(stream, input.number()),
                _ => cvc_host_step(input.below(4) as u64),
            }
        }
    }

    /// An address and the cache that it came from, mostly together.
    fn allocation(&self, input: &mut Input) -> (cvc_cache_t, *mut c_void) {
        let picked = match self.memory.len() {
            0 => (self.cache as usize, 0),
            length => self.memory[input.below(length)],
        };
        let (cache, ptr) = match input.byte() {
            0..200 => picked,
            200..220 => (self.cache(input) as usize, picked.1),
            220..240 => (picked.0, picked.1.wrapping_add(input.number() as usize)),
            _ => (picked.0, input.word() as usize),
        };
        (without_provenance_mut(cache), without_provenance_mut(ptr))
    }

    fn forget(&mut self, status: i32, ptr: *mut c_void) -> i32 {
        if status == CVC_STATUS_OK {
            self.memory.retain(|(_, known)| *known != ptr as usize);
        }
        status
    }

    fn of_memory(&mut self, input: &mut Input) -> i32 {
        let stream = self.stream(input);
        // SAFETY: as above; addresses are only looked up.
        unsafe {
            match input.below(6) {
                0 | 1 => {
                    let cache = self.cache(input);
                    let (bytes, alignment) = (
                        input.number() as usize,
                        match input.byte() {
                            0..200 => 1 << input.below(14),
                            _ => input.number() as usize,
                        },
                    );
                    let mut ptr = null_mut();
                    let status = cvc_mem_alloc(cache, 0, bytes, alignment, stream, &mut ptr);
                    assert!(status == CVC_STATUS_OK || ptr.is_null());
                    if !ptr.is_null() {
                        let known = self.memory.iter().any(|(_, known)| *known == ptr as usize);
                        assert!(!known, "{ptr:p} was given twice");
                        self.memory.push((cache as usize, ptr as usize));
                    }
                    status
                }
                2 => {
                    let (cache, ptr) = self.allocation(input);
                    cvc_mem_record_stream(cache, ptr, stream)
                }
                3 => {
                    let (cache, ptr) = self.allocation(input);
                    let event = match input.byte() {
                        0..220 => self.event(input),
                        _ => without_provenance_mut(input.word() as usize),
                    };
                    let status = cvc_mem_free_after_event(cache, ptr, event);
                    self.forget(status, ptr)
                }
                _ => {
                    let (cache, ptr) = self.allocation(input);
                    let status = cvc_mem_free(cache, ptr, stream);
                    self.forget(status, ptr)
                }
            }
        }
    }

    /// Gives all back, and finds every account empty.
    pub fn end(self) {
        let none: cvc_stream_t = without_provenance_mut(usize::MAX);
        // SAFETY: handles that may be stale, which is an error at most.
        unsafe {
            for (cache, ptr) in self.memory {
                let (cache, ptr) = (without_provenance_mut(cache), without_provenance_mut(ptr));
                ok(cvc_mem_free(cache, ptr, none));
            }
            // A handle that was wrong by a bit may have been another's: that one is stale by now.
            for tensor in self.tensors.live.into_iter().chain(self.tensors.stale) {
                while cvc_tensor_release(without_provenance_mut(tensor)) == CVC_STATUS_OK {}
            }
            for batch in self.batches.live.into_iter().chain(self.batches.stale) {
                while cvc_image_batch_release(without_provenance_mut(batch)) == CVC_STATUS_OK {}
            }
            for image in self.images.live.into_iter().chain(self.images.stale) {
                while cvc_image_release(without_provenance_mut(image)) == CVC_STATUS_OK {}
            }
            ok(cvc_device_synchronize(0, -1));
            for cache in self.caches.live {
                let cache = without_provenance_mut(cache);
                // Its last release may have come by a handle that was wrong by a bit.
                let _ = cvc_cache_clear(cache, 0, CVC_SCOPE_GLOBAL);
                let _ = cvc_cache_release(cache);
            }
            for event in self.events {
                ok(cvc_event_destroy(event));
            }
            for stream in self.streams {
                ok(cvc_stream_destroy(stream));
            }
            ok(cvc_device_synchronize(0, -1));
            ok(cvc_cache_clear(self.cache, 0, CVC_SCOPE_GLOBAL));
        }
        let after = stats(self.cache);
        let left = (after.live_handles, after.bytes, after.driver_bytes);
        assert_eq!(
            left,
            (0, 0, 0),
            "handles, bytes and the driver's bytes are left"
        );
    }
}
