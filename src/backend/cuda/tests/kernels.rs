//! Kernels: all loaded before the first launch, launched without a search, refused with the reason.

use super::contexts::Params;
use super::*;
use crate::backend::{Backend, Kernel, MAX_PARAMS_BYTES};

unsafe extern "C" fn no_host_kernel(_: *const libc::c_void, _: i64, _: i64) {}
static STORE: Kernel = Kernel {
    name: "fake_store_u32",
    host: no_host_kernel,
};
/// Another static of the same kernel, as two modules of one crate may have.
static STORE_TOO: Kernel = Kernel {
    name: "fake_store_u32",
    host: no_host_kernel,
};
static WIDE: Kernel = Kernel {
    name: "fake_wide",
    host: no_host_kernel,
};
static MISSING: Kernel = Kernel {
    name: "no_such_kernel",
    host: no_host_kernel,
};

/// As the operators register theirs, with one that the image lacks.
pub static ALL: [&[Kernel]; 3] = [&[STORE, STORE_TOO], &[MISSING], &[WIDE]];

/// Launches and gives what the kernel stored.
fn store(
    fake: &Fake,
    device: i32,
    kernel: &'static Kernel,
    value: u32,
    shared: u32,
) -> Result<u32> {
    let backend = &fake.backend;
    let memory = backend.memory_allocate(device, 512)?;
    let params = Params {
        address: memory,
        value: value.into(),
    };
    let launched = backend.launch(device, 0, &params.launch(kernel, shared));
    // SAFETY: the fake driver's memory is the host's.
    let stored = unsafe { *(memory as *const u32) };
    backend.memory_free(device, memory, 512)?;
    launched.map(|()| stored)
}

#[test]
fn all_kernels_are_loaded_before_the_first_launch_and_found_once() {
    for version in [Version::Cuda12, Version::Cuda13] {
        let fake = Fake::with(version, &[]);
        for device in [0, 1] {
            assert_eq!(store(&fake, device, &STORE, 71, 0), Ok(71));
            assert_eq!(store(&fake, device, &STORE_TOO, 72, 0), Ok(72));
            assert_eq!(fake.control.last_launch(), [3, 2, 1, 32, 4, 1, 0]);
        }
        assert_eq!(fake.control.get("lazy_loads"), 0);
        let session = fake.backend.enter(0).expect("it works");
        let kernels = session.kernels().expect("they are loaded");
        assert!(kernels.has_slot(&STORE) && kernels.has_slot(&STORE_TOO));
        assert!(!kernels.has_slot(&WIDE));
        drop(session);
        let before = fake.control.calls("");
        let params = Params {
            address: 0,
            value: 0,
        };
        fake.backend.set_current_device(0).expect("it is there");
        let current = fake.control.calls("");
        let launch = params.launch(&STORE, 0);
        assert_eq!(fake.backend.launch(0, 0, &launch), Ok(()));
        assert_eq!(
            fake.control.calls("") - current,
            2,
            "the context and the launch"
        );
        assert!(current > before);
    }
}

#[test]
fn a_devices_first_use_loads_its_kernels_and_a_launch_none() {
    for version in [Version::Cuda12, Version::Cuda13] {
        let fake = Fake::with(version, &[]);
        let loads = || {
            ["cuKernelGetFunction", "cuFuncLoad", "cuFuncGetAttribute"]
                .map(|function| fake.control.calls(function))
        };
        let searches = || fake.control.calls("cuLibraryGetKernel");
        fake.backend.stream_create(0, false).expect("a stream");
        let (before, searched) = (loads(), searches());
        assert_eq!(before[0], 2, "both of the image");
        assert_eq!(before[1] + before[2], 2);
        assert_eq!(store(&fake, 0, &STORE, 71, 0), Ok(71));
        assert_eq!(store(&fake, 0, &STORE_TOO, 72, 0), Ok(72));
        // The fake driver of CUDA 12 cannot tell that the block is too short, and takes it.
        if let Version::Cuda12 = version {
            assert_eq!(store(&fake, 0, &WIDE, 73, 0), Ok(73));
        }
        assert_eq!(loads(), before);
        assert_eq!(searches(), searched);
        refused(store(&fake, 0, &MISSING, 1, 0), Status::NoKernelImage);
    }
}

#[test]
fn threads_launch_the_same_kernel_for_the_first_time() {
    let fake = Fake::new();
    std::thread::scope(|scope| {
        for value in 0..8 {
            let fake = &fake;
            scope.spawn(move || {
                for _ in 0..200 {
                    assert_eq!(store(fake, 0, &STORE, value, 0), Ok(value));
                }
            });
        }
    });
}

#[test]
fn a_block_of_another_size_is_refused() {
    let fake = Fake::new();
    let error = refused(store(&fake, 0, &WIDE, 1, 0), Status::Internal);
    mentions(&error, &["fake_wide", "16 bytes", "expected 32"]);
    let huge = [0u8; MAX_PARAMS_BYTES + 16];
    let params = Params {
        address: 0,
        value: 0,
    };
    let mut launch = params.launch(&STORE, 0);
    launch.params = &huge;
    refused(fake.backend.launch(0, 0, &launch), Status::Internal);
    assert_eq!(fake.control.calls("cuLaunchKernel"), 0);
}

#[test]
fn much_shared_memory_is_asked_for_once() {
    let fake = Fake::new();
    assert_eq!(store(&fake, 0, &STORE, 1, 48 << 10), Ok(1));
    assert_eq!(fake.control.calls("cuFuncSetAttribute"), 0);
    for _ in 0..3 {
        assert_eq!(store(&fake, 0, &STORE, 2, 100 << 10), Ok(2));
        assert_eq!(store(&fake, 0, &STORE, 3, 64 << 10), Ok(3));
    }
    assert_eq!(fake.control.calls("cuFuncSetAttribute"), 1);
    assert_eq!(store(&fake, 0, &STORE, 4, 200 << 10), Ok(4));
    assert_eq!(fake.control.calls("cuFuncSetAttribute"), 2);
    let error = refused(store(&fake, 0, &STORE, 5, 1 << 20), Status::DeviceError);
    mentions(&error, &["cuFuncSetAttribute"]);
    assert_eq!(
        store(&fake, 0, &STORE, 6, 200 << 10),
        Ok(6),
        "still allowed"
    );
}

#[test]
fn without_an_image_for_the_device_everything_but_launches_works() {
    for (step, code) in [
        ("cuLibraryLoadData", 209),
        ("cuLibraryLoadData", 222),
        ("cuKernelGetFunction", 209),
        ("cuFuncLoad", 218),
    ] {
        let fake = Fake::new();
        fake.control.fail(step, 0, 1, code);
        let error = refused(store(&fake, 0, &STORE, 1, 0), Status::NoKernelImage);
        mentions(
            &error,
            &[
                step,
                &code.to_string(),
                "Fake GPU 0",
                "compute capability 9.0",
                "CVC_CUDA_ARCHS=90",
            ],
        );
        let again = refused(store(&fake, 0, &STORE, 1, 0), Status::NoKernelImage);
        assert_eq!(error, again, "the answer stays");
        assert_eq!(fake.control.get("libraries"), 0);
        assert_eq!(
            store(&fake, 1, &STORE, 9, 0),
            Ok(9),
            "another device has its own"
        );
    }
}

#[test]
fn a_lack_of_memory_while_loading_passes() {
    let fake = Fake::new();
    // The device's first use tries, and so does the first launch.
    fake.control.fail("cuLibraryLoadData", 0, 2, 2);
    refused(store(&fake, 0, &STORE, 1, 0), Status::OutOfMemory);
    assert_eq!(store(&fake, 0, &STORE, 1, 0), Ok(1));
    assert_eq!(fake.control.get("lazy_loads"), 0);
}

#[test]
fn a_build_without_kernels_and_an_unknown_kernel_say_so() {
    let control = Control::new(Version::Cuda13);
    let backend = control.backend_with(&[]).expect("it works");
    let fake = Fake { control, backend };
    let error = refused(store(&fake, 0, &STORE, 1, 0), Status::NoKernelImage);
    mentions(&error, &["without CUDA kernels", "nvcc"]);

    let fake = Fake::new();
    let error = refused(store(&fake, 0, &MISSING, 1, 0), Status::NoKernelImage);
    mentions(&error, &["no_such_kernel"]);
    assert_eq!(store(&fake, 0, &STORE, 3, 0), Ok(3));
}
