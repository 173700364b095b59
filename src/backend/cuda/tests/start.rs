//! Starting: what a machine without a driver, with an old one or without devices says.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::backend::cuda::driver::{FLOOR_CUDA_13, TABLE};
use crate::backend::cuda::driver_is_installed;
use crate::backend::cuda::library::OVERRIDE_VARIABLE;
use crate::backend::{Backend, BackendKind};

const CHILD_MARK: &str = "CVC_FAKE_DRIVER_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD_MARK).is_some()
}

/// Runs the named test of this module in a process of its own, where `CVC_CUDA_LIBRARY` names `library` and the fake
/// driver's `cuInit` gives `code`.
fn run_child(test: &str, library: &Path, code: u32) {
    let module = module_path!();
    let module = module.split_once("::").map_or(module, |(_, path)| path);
    let output = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", &format!("{module}::{test}"), "--nocapture"])
        .env(CHILD_MARK, "1")
        .env(OVERRIDE_VARIABLE, library)
        .env("FAKE_CUDA_INIT", code.to_string())
        .output()
        .expect("this program starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_library_that_cannot_be_opened_is_no_driver_but_counts_as_installed() {
    const PATH: &str = "/nowhere/libcuda.so.1";
    if !is_child() {
        let test = "a_library_that_cannot_be_opened_is_no_driver_but_counts_as_installed";
        return run_child(test, Path::new(PATH), 0);
    }
    let error = refused(CudaBackend::new().map(|_| ()), Status::NoDriver);
    mentions(&error, &[OVERRIDE_VARIABLE, PATH]);
    let again = refused(CudaBackend::new().map(|_| ()), Status::NoDriver);
    assert_eq!(error, again);
    // Somebody asked for this library: taking the host instead would hide the mistake.
    assert!(driver_is_installed());
}

#[test]
fn the_variable_names_the_library_that_is_used() {
    if !is_child() {
        let path = library_file(Version::Cuda13);
        run_child("the_variable_names_the_library_that_is_used", &path, 0);
        return fs::remove_file(&path).expect("it is ours");
    }
    assert!(driver_is_installed());
    let backend = CudaBackend::new().expect("the fake driver works");
    assert_eq!(backend.kind(), BackendKind::Cuda);
    assert_eq!(backend.device_count(), 2);
    let info = backend.device_info(1).expect("there are two devices");
    assert_eq!(backend.block_shared_bytes(1), 233_472 / 2 - 1024);
    assert_eq!(info.name, "Fake GPU 1");
    assert_eq!(info.total_memory, 1 << 30);
}

#[test]
fn a_stub_counts_as_no_driver_and_a_broken_driver_as_one() {
    if !is_child() {
        let path = library_file(Version::Cuda13);
        for code in [34, 999] {
            let test = "a_stub_counts_as_no_driver_and_a_broken_driver_as_one";
            run_child(test, &path, code);
        }
        return fs::remove_file(&path).expect("it is ours");
    }
    let code = std::env::var("FAKE_CUDA_INIT").expect("the parent set it");
    assert_eq!(driver_is_installed(), code == "999");
    let error = refused(CudaBackend::new().map(|_| ()), Status::NoDriver);
    mentions(&error, &[&code]);
}

#[test]
fn a_driver_is_installed_where_its_library_opens() {
    let opens = Library::open("libcuda.so.1").is_ok();
    if std::env::var_os(OVERRIDE_VARIABLE).is_none() && !opens {
        assert!(!driver_is_installed());
        let error = refused(CudaBackend::new().map(|_| ()), Status::NoDriver);
        mentions(
            &error,
            &["libcuda.so.1 was not found", "install the NVIDIA driver"],
        );
    } else {
        assert!(driver_is_installed());
    }
}

#[test]
fn every_function_of_the_table_is_in_the_fake_driver() {
    let whole = Control::new(Version::Cuda13);
    let plain = Control::new(Version::Cuda12);
    for entry in TABLE {
        assert!(whole.library.symbol(entry.symbol).is_some(), "{entry:?}");
        let found = plain.library.symbol(entry.symbol).is_some();
        assert_eq!(found, entry.required, "{entry:?}");
    }
    let driver = plain.open().expect("what is missing is optional");
    assert!(driver.cuCtxRecordEvent.is_none() && driver.cuFuncLoad.is_none());
}

#[test]
fn a_failing_start_gives_its_code_and_name() {
    for (code, status, parts) in [
        (34, Status::NoDriver, &["34", "STUB_LIBRARY", "stub"][..]),
        (
            100,
            Status::NoDevice,
            &["100 CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"],
        ),
        (101, Status::NoDevice, &["101"]),
        (
            803,
            Status::NoDriver,
            &["803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"],
        ),
        (999, Status::NoDriver, &["999 CUDA_ERROR_UNKNOWN"]),
        (916, Status::NoDriver, &["916", "does not name"]),
    ] {
        let control = Control::new(Version::Cuda13);
        control.fail("cuInit", 0, -1, code);
        let error = refused(control.backend().map(|_| ()), status);
        mentions(&error, parts);
        assert_eq!(control.calls("cuDeviceGetCount"), 0);
    }
    let control = Control::new(Version::Cuda13);
    control.set("devices", 0);
    let error = refused(control.backend().map(|_| ()), Status::NoDevice);
    mentions(&error, &["no device"]);
}

#[test]
fn an_old_driver_is_told_which_one_is_needed() {
    let control = Control::new(Version::Cuda13);
    control.set("version", 12080);
    let old = Driver::open(control.library, &FLOOR_CUDA_13).map(|_| ());
    let error = refused(old, Status::DriverTooOld);
    mentions(&error, &["12.8", "13.0", "580"]);
    assert!(Driver::open(control.library, &FLOOR_CUDA_12).is_ok());

    // It says that it is new enough, and lacks a function all the same.
    let control = Control::new(Version::Cuda11);
    let error = refused(control.open().map(|_| ()), Status::DriverTooOld);
    mentions(&error, &["cuLibraryLoadData", "12.0", "525"]);
}

#[test]
fn a_library_that_is_no_driver_is_said_to_be_none() {
    let library = Library::open("libc.so.6").expect("every program has it");
    let error = refused(
        Driver::open(library, &FLOOR_CUDA_12).map(|_| ()),
        Status::NoDriver,
    );
    mentions(&error, &["cuInit", "libcuda.so.1"]);
}
