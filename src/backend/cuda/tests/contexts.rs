//! Contexts: the primary one, the caller's own left as found, other people's refused, and a lost one.

use std::time::Duration;

use super::*;
use crate::backend::{Backend, Copy2d, CopyKind, Fill2d, Kernel, Launch};

unsafe extern "C" fn no_host_kernel(_: *const libc::c_void, _: i64, _: i64) {}
static STORE: Kernel = Kernel {
    name: "fake_store_u32",
    host: no_host_kernel,
};

/// One call of each kind on a device, with resources made before; what each gave.
struct Everything {
    stream: usize,
    event: usize,
    pointer: u64,
}

impl Everything {
    fn new(backend: &CudaBackend, device: i32) -> Everything {
        Everything {
            stream: backend.stream_create(device, false).expect("a stream"),
            event: backend.event_create(device, true).expect("an event"),
            pointer: backend.memory_allocate(device, 4096).expect("memory"),
        }
    }

    fn calls(&self, backend: &CudaBackend, device: i32) -> Vec<(&'static str, Result<()>)> {
        let (stream, event) = (self.stream, self.event);
        let none = Some(Duration::ZERO);
        let copy = Copy2d {
            kind: CopyKind::DeviceToDevice,
            src: self.pointer,
            src_pitch: 512,
            dst: self.pointer + 2048,
            dst_pitch: 512,
            width: 100,
            height: 2,
        };
        let fill = Fill2d {
            dst: self.pointer,
            pitch: 512,
            width: 100,
            height: 2,
        };
        let params = Params {
            address: self.pointer,
            value: 7,
        };
        let launch = params.launch(&STORE, 0);
        vec![
            (
                "memory_free_bytes",
                backend.memory_free_bytes(device).map(drop),
            ),
            ("memory_allocate", allocate_and_free(backend, device)),
            (
                "stream_query",
                backend.stream_query(device, stream).map(drop),
            ),
            (
                "stream_synchronize",
                backend.stream_synchronize(device, stream, None).map(drop),
            ),
            (
                "stream_synchronize, timed",
                backend.stream_synchronize(device, stream, none).map(drop),
            ),
            ("event_record", backend.event_record(device, event, stream)),
            (
                "stream_wait_event",
                backend.stream_wait_event(device, stream, event),
            ),
            (
                "stream_is_capturing",
                backend.stream_is_capturing(device, stream).map(drop),
            ),
            (
                "stream_capture",
                backend.stream_capture(device, stream).map(drop),
            ),
            ("event_query", backend.event_query(device, event).map(drop)),
            (
                "event_synchronize",
                backend.event_synchronize(device, event, None).map(drop),
            ),
            (
                "event_elapsed_ms",
                backend.event_elapsed_ms(device, event, event).map(drop),
            ),
            ("copy_2d", backend.copy_2d(device, stream, &copy)),
            ("fill_zero_2d", backend.fill_zero_2d(device, stream, &fill)),
            ("launch", backend.launch(device, stream, &launch)),
            (
                "device_synchronize",
                backend.device_synchronize(device, None).map(drop),
            ),
            (
                "device_synchronize, timed",
                backend.device_synchronize(device, none).map(drop),
            ),
        ]
    }
}

fn allocate_and_free(backend: &CudaBackend, device: i32) -> Result<()> {
    let pointer = backend.memory_allocate(device, 4 << 20)?;
    backend.memory_free(device, pointer, 4 << 20)
}

/// The parameter block of the fake driver's kernels.
#[repr(C, align(16))]
pub struct Params {
    pub address: u64,
    pub value: u64,
}

impl Params {
    pub fn launch(&self, kernel: &'static Kernel, shared_bytes: u32) -> Launch<'_> {
        // SAFETY: the block is plain numbers without padding.
        let params = unsafe {
            std::slice::from_raw_parts((self as *const Params).cast::<u8>(), size_of::<Params>())
        };
        Launch {
            kernel,
            params,
            items: 1,
            items_per_task: 1,
            grid: [3, 2, 1],
            block: [32, 4, 1],
            shared_bytes,
            ranges: &[],
        }
    }
}

#[test]
fn every_call_leaves_the_callers_context_as_it_found_it() {
    let fake = Fake::new();
    let everything = Everything::new(&fake.backend, 0);
    assert_eq!(fake.control.current(), 0);
    let foreign = fake.control.of_device("fake_foreign_context", 1);
    let other = fake.control.of_device("fake_runtime_context", 1);
    for context in [0, foreign, other] {
        fake.control.set_current(context);
        for (name, result) in everything.calls(&fake.backend, 0) {
            assert_eq!(result, Ok(()), "{name}");
            assert_eq!(fake.control.current(), context, "{name}");
        }
        // A failing call too.
        fake.control.fail("cuStreamCreate", 0, 1, 2);
        refused(fake.backend.stream_create(0, false), Status::OutOfMemory);
        assert_eq!(fake.control.current(), context);
    }
    assert_eq!(fake.control.get("broken"), 0);
}

#[test]
fn a_thread_in_the_primary_context_costs_no_switch() {
    let fake = Fake::new();
    let stream = fake.backend.stream_create(1, false).expect("a stream");
    fake.backend.set_current_device(1).expect("it is there");
    let switches = fake.control.calls("cuCtxSetCurrent");
    assert_eq!(fake.backend.stream_query(1, stream), Ok(true));
    assert_eq!(fake.backend.stream_is_capturing(1, stream), Ok(false));
    assert_eq!(fake.control.calls("cuCtxSetCurrent"), switches);
    assert_eq!(fake.control.calls("cuDevicePrimaryCtxRetain"), 1);
}

#[test]
fn a_context_is_made_once_by_the_first_of_many_threads_and_only_where_it_is_used() {
    let fake = Fake::new();
    assert_eq!(fake.control.calls("cuDevicePrimaryCtxRetain"), 0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = fake.backend.stream_create(1, false).expect("a stream");
                fake.backend.stream_destroy(1, stream).expect("it is ours");
            });
        }
    });
    assert_eq!(fake.control.calls("cuDevicePrimaryCtxRetain"), 1);
    assert_eq!(fake.control.calls("cuLibraryLoadData"), 1);
    assert_eq!(fake.control.get("streams"), 0);
}

#[test]
fn a_context_that_could_not_be_made_is_tried_again() {
    let fake = Fake::new();
    fake.control.fail("cuDevicePrimaryCtxRetain", 0, 1, 2);
    let error = refused(fake.backend.stream_create(0, false), Status::OutOfMemory);
    mentions(
        &error,
        &[
            "cuDevicePrimaryCtxRetain",
            "device 0",
            "2 CUDA_ERROR_OUT_OF_MEMORY",
        ],
    );
    assert!(fake.backend.stream_create(0, false).is_ok());
}

#[test]
fn the_current_device_is_that_of_the_current_context() {
    let fake = Fake::new();
    assert_eq!(fake.backend.current_device(), Ok(0));
    fake.backend.set_current_device(1).expect("it is there");
    assert_eq!(fake.backend.current_device(), Ok(1));
    assert_eq!(
        fake.control.current(),
        fake.control.of_device("fake_runtime_context", 1)
    );
    let elsewhere = std::thread::scope(|scope| {
        let thread = scope.spawn(|| fake.backend.current_device());
        thread.join().expect("the thread ends")
    });
    assert_eq!(elsewhere, Ok(0), "another thread has its own");
    // A context that others made counts as well.
    fake.control
        .set_current(fake.control.of_device("fake_foreign_context", 0));
    assert_eq!(fake.backend.current_device(), Ok(0));
    for device in [-1, 2, i32::MAX] {
        let error = refused(
            fake.backend.set_current_device(device),
            Status::InvalidDevice,
        );
        mentions(&error, &[&device.to_string(), "0 to 1"]);
    }
}

#[test]
fn streams_of_other_contexts_are_refused() {
    let fake = Fake::new();
    let stream = fake.control.of_device("fake_foreign_stream", 0);
    let error = refused(fake.backend.stream_identify(stream), Status::InvalidStream);
    mentions(&error, &[&format!("{stream:#x}"), "primary context"]);
    // The same once the backend has a context of its own there.
    fake.backend.stream_create(0, false).expect("a stream");
    let error = refused(fake.backend.stream_identify(stream), Status::InvalidStream);
    mentions(&error, &["no device's primary context"]);
    // A default stream means the current context's.
    fake.control
        .set_current(fake.control.of_device("fake_foreign_context", 0));
    for stream in [0, 1, 2] {
        refused(fake.backend.stream_identify(stream), Status::InvalidStream);
    }
    // What the runtime made on a device that the backend has not used yet is welcome.
    let stream = fake.control.of_device("fake_runtime_stream", 1);
    let identity = fake.backend.stream_identify(stream).expect("a primary one");
    assert_eq!(identity.device, 1);
}

#[test]
fn a_primary_context_that_cannot_be_retained_says_why() {
    let fake = Fake::new();
    fake.control
        .set_current(fake.control.of_device("fake_runtime_context", 1));
    fake.control.fail("cuDevicePrimaryCtxRetain", 0, 1, 2);
    assert_eq!(fake.backend.current_device(), Ok(1), "it needs no context");
    let error = refused(fake.backend.stream_identify(0), Status::OutOfMemory);
    mentions(&error, &["cuDevicePrimaryCtxRetain", "device 1"]);
    let identity = fake.backend.stream_identify(0).expect("it passed");
    assert_eq!(identity.device, 1);
}

#[test]
fn asking_who_a_stream_is_initialises_its_own_device_alone() {
    let fake = Fake::with(Version::Cuda13, &[("devices", 4)]);
    for device in 0..4 {
        fake.control.of_device("fake_runtime_context", device);
    }
    let retained = || fake.control.calls("cuDevicePrimaryCtxRetain");
    fake.control
        .set_current(fake.control.of_device("fake_runtime_context", 1));
    let stream = fake.control.of_device("fake_runtime_stream", 3);
    let identity = fake.backend.stream_identify(stream).expect("it lives");
    assert_eq!(identity.device, 3);
    assert_eq!((retained(), fake.control.get("libraries")), (1, 1));
    let foreign = fake.control.of_device("fake_foreign_stream", 2);
    refused(fake.backend.stream_identify(foreign), Status::InvalidStream);
    assert_eq!((retained(), fake.control.get("libraries")), (2, 1));
    assert_eq!(
        fake.control.current(),
        fake.control.of_device("fake_runtime_context", 1)
    );
}

#[test]
fn a_thread_without_a_context_asks_in_one_that_is_there_and_loads_nothing_into_it() {
    let fake = Fake::with(Version::Cuda13, &[("devices", 3)]);
    fake.control.of_device("fake_runtime_context", 0);
    let stream = fake.control.of_device("fake_runtime_stream", 2);
    let identity = fake.backend.stream_identify(stream).expect("it lives");
    assert_eq!(identity.device, 2);
    assert_eq!(fake.control.get("libraries"), 1);
    assert_eq!(fake.control.calls("cuDevicePrimaryCtxRetain"), 2);
    assert_eq!(fake.control.current(), 0);
    // Its first use loads them, into the context that is held already.
    fake.backend.stream_create(0, false).expect("a stream");
    assert_eq!(fake.control.get("libraries"), 2);
    assert_eq!(fake.control.calls("cuDevicePrimaryCtxRetain"), 2);
}

#[test]
fn after_a_fault_every_call_names_the_first_cause_and_releases_succeed() {
    for code in [214, 700, 702, 715, 716, 717, 718, 719, 911, 999] {
        let fake = Fake::new();
        let everything = Everything::new(&fake.backend, 0);
        let large = fake.backend.memory_allocate(0, 4 << 20).expect("memory");
        let other = Everything::new(&fake.backend, 1);
        fake.control.fail("cuStreamQuery", 0, 1, code);
        let first = refused(
            fake.backend.stream_query(0, everything.stream),
            Status::ContextLost,
        );
        mentions(&first, &["device 0", "cuStreamQuery", &code.to_string()]);

        let calls = fake.control.calls("");
        for (name, result) in everything.calls(&fake.backend, 0) {
            let error = refused(result, Status::ContextLost);
            assert_eq!(error.message, first.message, "{name}");
        }
        refused(fake.backend.set_current_device(0), Status::ContextLost);
        refused(fake.backend.stream_create(0, false), Status::ContextLost);
        refused(fake.backend.event_create(0, false), Status::ContextLost);
        refused(
            fake.backend.latch_create(0, everything.stream),
            Status::ContextLost,
        );
        let backend = &fake.backend;
        assert_eq!(backend.stream_destroy(0, everything.stream), Ok(()));
        assert_eq!(backend.event_destroy(0, everything.event), Ok(()));
        assert_eq!(backend.memory_free(0, everything.pointer, 4096), Ok(()));
        assert_eq!(backend.memory_free(0, large, 4 << 20), Ok(()));
        assert_eq!(fake.control.calls(""), calls, "the driver was called");

        // Another device goes on, and a stream of the lost one is known as such.
        let again = fake.backend.stream_identify(everything.stream);
        assert_eq!(refused(again, Status::ContextLost).message, first.message);
        for (name, result) in other.calls(&fake.backend, 1) {
            assert_eq!(result, Ok(()), "{name}");
        }
    }
}

#[test]
fn a_kernel_that_faults_is_reported_by_what_follows() {
    let fake = Fake::new();
    let stream = fake.backend.stream_create(0, false).expect("a stream");
    let params = Params {
        address: 0x1000,
        value: 1,
    };
    let launch = params.launch(&STORE, 0);
    assert_eq!(fake.backend.launch(0, stream, &launch), Ok(()));
    let error = refused(
        fake.backend.stream_synchronize(0, stream, None),
        Status::ContextLost,
    );
    mentions(&error, &["700 CUDA_ERROR_ILLEGAL_ADDRESS", "new process"]);
    refused(fake.backend.launch(0, stream, &launch), Status::ContextLost);
    refused(fake.backend.check_device(0), Status::ContextLost);
    assert_eq!(fake.backend.check_device(1), Ok(()));
    assert_eq!(fake.backend.stream_destroy(0, stream), Ok(()));
    // A thread that is still in the lost context can ask about another device.
    fake.control
        .set_current(fake.control.of_device("fake_runtime_context", 0));
    let other = fake.backend.stream_create(1, false).expect("a stream");
    let identity = fake.backend.stream_identify(other).expect("it lives");
    assert_eq!(identity.device, 1);
    let memory = fake.backend.memory_allocate(1, 512).expect("memory");
    assert_eq!(fake.backend.pointer_device(memory), Ok(Some(1)));
    // Its own default stream is lost with it.
    refused(fake.backend.stream_identify(0), Status::ContextLost);
}

#[test]
fn a_release_that_finds_the_context_lost_succeeds() {
    let fake = Fake::new();
    let everything = Everything::new(&fake.backend, 0);
    fake.control.fail("cuEventDestroy_v2", 0, 1, 719);
    assert_eq!(fake.backend.event_destroy(0, everything.event), Ok(()));
    let error = refused(fake.backend.memory_free_bytes(0), Status::ContextLost);
    mentions(&error, &["cuEventDestroy_v2", "719"]);
}

#[test]
fn a_context_that_somebody_destroyed_is_lost() {
    for code in [201, 709] {
        let fake = Fake::new();
        fake.backend.stream_create(0, false).expect("a stream");
        fake.control.fail("cuCtxSetCurrent", 0, 1, code);
        let error = refused(fake.backend.stream_create(0, false), Status::ContextLost);
        mentions(&error, &["cuCtxSetCurrent", &code.to_string()]);
        refused(fake.backend.memory_free_bytes(0), Status::ContextLost);
    }
}

#[test]
fn codes_that_no_list_knows_are_plain_errors() {
    let fake = Fake::new();
    for code in [916, 1234, u32::MAX] {
        fake.control.fail("cuStreamCreate", 0, 1, code);
        let error = refused(fake.backend.stream_create(0, false), Status::DeviceError);
        mentions(
            &error,
            &["cuStreamCreate", &code.to_string(), "does not name"],
        );
        assert!(fake.backend.stream_create(0, false).is_ok());
    }
}
