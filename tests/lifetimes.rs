//! What becomes of objects whose thread, cache or owner goes first: through the C interface, on either backend.

mod c_interface;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use c_interface::*;

const NO_STREAM: cvc_stream_t = usize::MAX as cvc_stream_t;
const OK: i32 = CVC_STATUS_OK;

/// Calls of the C interface, each of which succeeds.
macro_rules! ok {
    ($call:expr) => {
        // SAFETY: the arguments are live handles and pointers to locals.
        assert_eq!(unsafe { $call }, OK, stringify!($call))
    };
}

fn desc(height: i64) -> cvc_tensor_desc_t {
    // SAFETY: all zeros is a value of the struct.
    let mut desc: cvc_tensor_desc_t = unsafe { std::mem::zeroed() };
    desc.struct_size = std::mem::size_of::<cvc_tensor_desc_t>();
    desc.rank = 2;
    desc.shape[..2].copy_from_slice(&[height, 64]);
    desc.dtype = CVC_DTYPE_U8;
    desc.layout[..2].copy_from_slice(&[b'H' as _, b'W' as _]);
    desc
}

fn address(tensor: cvc_tensor_t) -> usize {
    // SAFETY: as above.
    let mut data: cvc_tensor_data_t = unsafe { std::mem::zeroed() };
    data.struct_size = std::mem::size_of::<cvc_tensor_data_t>();
    ok!(cvc_tensor_get_data(tensor, &mut data));
    data.data as usize
}

fn own_cache() -> cvc_cache_t {
    let mut cache = null_mut();
    ok!(cvc_cache_create(std::ptr::null(), &mut cache));
    cache
}

static TOLD: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn count_release(_: *mut c_void) {
    TOLD.fetch_add(1, Ordering::SeqCst);
}

/// A handle that another thread may use.
#[derive(Clone, Copy)]
struct Shared<T>(T);
// SAFETY: handles of the library may be used from any thread.
unsafe impl<T> Send for Shared<T> {}

#[test]
fn a_wrap_whose_thread_has_ended_tells_its_owner_when_its_work_is_done() {
    let cache = own_cache();
    let mut stream = null_mut();
    ok!(cvc_stream_create(0, 0, &mut stream));
    let (mut memory, wanted) = (null_mut(), desc(1));
    ok!(cvc_tensor_create(
        default_cache(),
        &wanted,
        NO_STREAM,
        &mut memory
    ));
    // SAFETY: all zeros is a value of the struct.
    let mut data: cvc_tensor_data_t = unsafe { std::mem::zeroed() };
    data.struct_size = std::mem::size_of::<cvc_tensor_data_t>();
    data.rank = 1;
    data.shape[0] = 64;
    data.strides[0] = 1;
    data.dtype = CVC_DTYPE_U8;
    data.data = address(memory) as *mut c_void;
    let (shared_cache, shared_data) = (Shared(cache), Shared(data));
    let wrap = std::thread::spawn(move || {
        let (cache, data) = (shared_cache, shared_data);
        let mut tensor = null_mut();
        ok!(cvc_tensor_wrap(
            cache.0,
            &data.0,
            Some(count_release),
            null_mut(),
            NO_STREAM,
            &mut tensor
        ));
        Shared(tensor)
    })
    .join()
    .expect("the thread wraps");
    let mut latch = 0;
    ok!(cvc_host_latch_create(stream, &mut latch));
    ok!(cvc_tensor_end_access(wrap.0, stream, CVC_ACCESS_WRITE));
    ok!(cvc_tensor_release(wrap.0));
    assert_eq!(TOLD.load(Ordering::SeqCst), 0, "its work still waits");
    ok!(cvc_host_latch_open(latch));
    ok!(cvc_stream_synchronize(stream, -1));
    ok!(cvc_cache_synchronize(cache, 0, -1));
    assert_eq!(TOLD.load(Ordering::SeqCst), 1);
    assert_eq!(stats(cache).live_handles, 0);
    ok!(cvc_cache_release(cache));
    ok!(cvc_tensor_release(memory));
}

#[test]
fn a_released_cache_serves_no_repeated_request() {
    let cache = own_cache();
    let wanted = desc(3);
    let mut tensor = null_mut();
    for _ in 0..3 {
        ok!(cvc_tensor_create(cache, &wanted, NO_STREAM, &mut tensor));
        ok!(cvc_tensor_release(tensor));
    }
    ok!(cvc_cache_release(cache));
    // SAFETY: a stale handle is looked up, not used.
    let status = unsafe { cvc_tensor_create(cache, &wanted, NO_STREAM, &mut tensor) };
    assert_eq!(status, CVC_STATUS_STALE_HANDLE);
    assert!(tensor.is_null());
}

#[test]
fn what_an_ended_thread_left_pending_is_reused_on_the_ordered_stream() {
    let cache = own_cache();
    let mut stream = null_mut();
    ok!(cvc_stream_create(0, 0, &mut stream));
    let mut latch = 0;
    ok!(cvc_host_latch_create(stream, &mut latch));
    let shared = (Shared(cache), Shared(stream));
    let left = std::thread::spawn(move || {
        let (cache, stream) = shared;
        let mut tensor = null_mut();
        ok!(cvc_tensor_create(cache.0, &desc(5), stream.0, &mut tensor));
        ok!(cvc_tensor_end_access(tensor, stream.0, CVC_ACCESS_WRITE));
        let address = address(tensor);
        ok!(cvc_tensor_release(tensor));
        address
    })
    .join()
    .expect("the thread leaves a pending entry");
    assert_eq!(stats(cache).pending_count, 1);
    let mut other = null_mut();
    ok!(cvc_stream_create(0, 0, &mut other));
    let mut apart = null_mut();
    ok!(cvc_tensor_create(cache, &desc(5), other, &mut apart));
    assert_ne!(address(apart), left, "not ordered on that stream");
    let mut again = null_mut();
    ok!(cvc_tensor_create(cache, &desc(5), stream, &mut again));
    assert_eq!(address(again), left, "ordered on this one");
    ok!(cvc_host_latch_open(latch));
    for tensor in [apart, again] {
        ok!(cvc_tensor_release(tensor));
    }
    ok!(cvc_cache_synchronize(cache, 0, -1));
    ok!(cvc_cache_release(cache));
}

#[test]
fn the_accounts_add_up_to_what_the_driver_gave() {
    // Of its own: the other tests' objects are not counted.
    let cache = own_cache();
    let mut kept = Vec::new();
    for height in 1..40 {
        let mut tensor = null_mut();
        ok!(cvc_tensor_create(
            cache,
            &desc(height),
            NO_STREAM,
            &mut tensor
        ));
        if height % 3 == 0 {
            kept.push(tensor);
        } else {
            ok!(cvc_tensor_release(tensor));
        }
    }
    let now = stats(cache);
    assert_eq!(
        now.bytes,
        now.live_bytes + now.idle_bytes + now.pending_bytes
    );
    assert_eq!(now.live_count, kept.len() as u64);
    for tensor in kept {
        ok!(cvc_tensor_release(tensor));
    }
    assert_eq!(stats(cache).live_handles, 0);
    ok!(cvc_cache_release(cache));
}

/// What a thread remembers of its requests goes with its list, which another thread may be given.
#[test]
fn a_detached_thread_takes_nothing_from_the_list_that_it_had() {
    let cache = own_cache();
    let create = move |height: i64| {
        let mut tensor = null_mut();
        ok!(cvc_tensor_create(
            cache,
            &desc(height),
            NO_STREAM,
            &mut tensor
        ));
        tensor
    };
    for _ in 0..3 {
        ok!(cvc_tensor_release(create(40)));
    }
    ok!(cvc_cache_thread_detach(cache));
    let (told, tells) = std::sync::mpsc::channel();
    let (ends, ended) = std::sync::mpsc::channel::<()>();
    let shared = Shared(cache);
    let other = std::thread::spawn(move || {
        let cache = { shared }.0;
        // Of a new list, which the cache has to spare: the memory that the first thread left comes to it.
        let (mut first, mut second) = (null_mut(), null_mut());
        ok!(cvc_tensor_create(cache, &desc(40), NO_STREAM, &mut first));
        ok!(cvc_tensor_create(cache, &desc(40), NO_STREAM, &mut second));
        let addresses = [address(first), address(second)];
        ok!(cvc_tensor_release(first));
        ok!(cvc_tensor_release(second));
        told.send(addresses).expect("the test listens");
        ended.recv().expect("the test goes on");
    });
    let addresses = tells.recv().expect("the thread tells");
    // The same words again: they lead to memory of this thread's.
    let tensors: Vec<_> = (0..2).map(|_| create(40)).collect();
    for tensor in tensors {
        assert!(!addresses.contains(&address(tensor)), "another thread's");
        ok!(cvc_tensor_release(tensor));
    }
    ends.send(()).expect("the thread listens");
    other.join().expect("all calls succeed");
    ok!(cvc_cache_release(cache));
}
