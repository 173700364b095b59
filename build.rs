//! Builds what the crate embeds: the kernels for the host and for the device, the C header, and the library's name.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `make nvcc` unpacks the compiler from its wheels.
const REPOSITORY_NVCC: &str = "build/nvcc/nvidia/cu13/bin/nvcc";
const ALL_ARCHITECTURES: &[&str] = &["75", "80", "86", "89", "90", "100", "120"];
const DEFAULT_ARCHITECTURES: &[&str] = &["90"];

/// Both builds of a kernel round each operation once, so that they give the same bits.
const HOST_FLAGS: &[&str] = &[
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
];
const DEVICE_FLAGS: &[&str] = &[
    "-fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "-std=c++17",
];

fn main() {
    rerun_rules();
    let device = plan_device_kernels();
    // Each of the two compilers works for half a minute, mostly on one core.
    std::thread::scope(|scope| {
        scope.spawn(host_kernels);
        match device {
            Plan::Compile(nvcc) => device_kernels(&nvcc),
            Plan::NoSources | Plan::NotWanted => without_device_kernels(),
            Plan::NoCompiler if required_nvcc() => panic!("CVC_REQUIRE_NVCC is set. {NO_NVCC}"),
            Plan::NoCompiler => {
                println!("cargo:warning={NO_NVCC}");
                without_device_kernels();
            }
        }
    });
    header();
    soname();
}

const NO_NVCC: &str = "nvcc was not found, so the CUDA backend has no kernels (the host backend is whole). \
    Name it in NVCC, put it on PATH, or run `make nvcc`, which installs the Python wheels nvidia-cuda-nvcc, \
    nvidia-nvvm, nvidia-cuda-crt, nvidia-cuda-runtime and nvidia-cuda-cccl (13.0) into build/nvcc.";

/// Everything that the steps read. PATH is left out on purpose, where it is not what a compiler is missing from: it
/// differs between shells and editors.
fn rerun_rules() {
    for path in ["build.rs", "cbindgen.toml", "cuda", "src/ffi"] {
        println!("cargo:rerun-if-changed={path}");
    }
    for name in ["CXX", "CXXFLAGS", "NVCC", "NVCC_CCBIN", "CVC_CUDA_ARCHS"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rustc-check-cfg=cfg(cvc_no_kernels)");
}

// ---- Kernels for the host ----

/// Compiles each `cuda/host/*.cpp` into one static archive, at -O3 in every profile: the kernels are most of the work
/// of a host run, and tests of the unoptimised crate run them on whole images.
fn host_kernels() {
    let sources = files_in("cuda/host", "cpp");
    if sources.is_empty() {
        return;
    }
    const ARCHIVE: &str = "cvc_host_kernels";
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++17")
        .opt_level(3)
        .warnings(true)
        .extra_warnings(true)
        .include("cuda")
        .files(&sources)
        .cargo_metadata(false);
    for flag in HOST_FLAGS {
        build.flag(flag);
    }
    let compiler = build.get_compiler();
    let inputs = Fingerprint::of(&(words(&compiler.to_command()), version(compiler.path())));
    let archive = out_dir().join(format!("lib{ARCHIVE}.a"));
    inputs.unless_fresh(&archive, || build.compile(ARCHIVE));
    println!("cargo:rustc-link-search=native={}", out_dir().display());
    println!("cargo:rustc-link-lib=static={ARCHIVE}");
}

// ---- Kernels for the device ----

enum Plan {
    Compile(PathBuf),
    NoSources,
    NotWanted,
    NoCompiler,
}

fn plan_device_kernels() -> Plan {
    if device_sources().is_empty() {
        return Plan::NoSources;
    }
    if architectures().is_empty() {
        return Plan::NotWanted;
    }
    match find_nvcc() {
        Some(nvcc) => {
            println!("cargo:rerun-if-changed={}", nvcc.display());
            // For `cc`, which takes what `NVCC` names for nvcc and what its `compiler` method names for a host compiler.
            env::set_var("NVCC", &nvcc);
            Plan::Compile(nvcc)
        }
        None => {
            println!("cargo:rerun-if-env-changed=CVC_REQUIRE_NVCC");
            println!("cargo:rerun-if-env-changed=PATH");
            Plan::NoCompiler
        }
    }
}

/// Compiles every `cuda/*.cu` into one fatbin, whose path the crate reads from `CVC_FATBIN`.
fn device_kernels(nvcc: &Path) {
    println!("cargo:rustc-env=CVC_FATBIN={}", fatbin().display());
    if let Some(major) = release(nvcc) {
        println!("cargo:rustc-env=CVC_NVCC_MAJOR={major}");
    }
    // nvcc makes a fatbin of one file only, so this one includes them all.
    let umbrella = out_dir().join("cvc_kernels.cu");
    let includes: String = device_sources()
        .iter()
        .map(|source| format!("#include \"{}\"\n", manifest_dir().join(source).display()))
        .collect();
    write(&umbrella, &includes);

    let mut command = nvcc_command();
    command
        .args(DEVICE_FLAGS)
        .arg("-I")
        .arg(manifest_dir().join("cuda"));
    command.args(code_flags(&architectures()));
    // A sixth of the bytes, for drivers that an image of this compiler needs anyway.
    if release(nvcc).is_some_and(|major| major >= 13) {
        command.arg("--compress-mode=size");
    }
    let words = words(&command);
    let host_version = host_compiler(&words).and_then(|compiler| version(&compiler));
    let inputs = Fingerprint::of(&(words, version(nvcc), host_version));
    inputs.unless_fresh(&fatbin(), || {
        command.args(["--threads", &env::var("NUM_JOBS").unwrap_or("1".into())]);
        command
            .arg("-fatbin")
            .arg("-o")
            .arg(fatbin())
            .arg(&umbrella);
        run(&mut command);
    });
}

/// The image is there in any case, so that the crate embeds one file in every build.
fn without_device_kernels() {
    write(&fatbin(), "");
    println!("cargo:rustc-env=CVC_FATBIN={}", fatbin().display());
    println!("cargo:rustc-cfg=cvc_no_kernels");
}

fn device_sources() -> Vec<PathBuf> {
    files_in("cuda", "cu")
}

fn fatbin() -> PathBuf {
    out_dir().join("cvc_kernels.fatbin")
}

fn required_nvcc() -> bool {
    env::var("CVC_REQUIRE_NVCC").is_ok_and(|value| value == "1")
}

/// `CVC_CUDA_ARCHS`: `all`, `none`, or numbers such as `80,90`.
fn architectures() -> Vec<String> {
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let wanted = env::var("CVC_CUDA_ARCHS").unwrap_or_default();
    match wanted.trim() {
        "" => owned(DEFAULT_ARCHITECTURES),
        "all" => owned(ALL_ARCHITECTURES),
        "none" => Vec::new(),
        list => list
            .split([',', ' ', ';'])
            .filter(|name| !name.is_empty())
            .map(|name| match name.parse::<u32>() {
                Ok(number) => number.to_string(),
                Err(_) => panic!(
                    "CVC_CUDA_ARCHS is {list:?}, expected `all`, `none` or numbers such as 80,90"
                ),
            })
            .collect(),
    }
}

/// Machine code for each architecture, and PTX of the lowest for those that are not named.
fn code_flags(architectures: &[String]) -> Vec<String> {
    let lowest = architectures
        .iter()
        .min_by_key(|name| name.parse::<u32>().unwrap_or(0));
    architectures
        .iter()
        .flat_map(|name| {
            let code = match Some(name) == lowest {
                true => format!("[sm_{name},compute_{name}]"),
                false => format!("sm_{name}"),
            };
            [
                "-gencode".to_string(),
                format!("arch=compute_{name},code={code}"),
            ]
        })
        .collect()
}

/// `NVCC`, else the one on PATH, else the one that `make nvcc` unpacked.
fn find_nvcc() -> Option<PathBuf> {
    if let Some(named) = env::var_os("NVCC").filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        if version(&named).is_none() {
            panic!("NVCC is {}, which does not run", named.display());
        }
        return Some(named);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join("nvcc"))
        .chain([manifest_dir().join(REPOSITORY_NVCC)])
        .find(|candidate| candidate.is_file() && version(candidate).is_some())
}

/// What the compiler says of itself; none where it does not run.
fn version(compiler: &Path) -> Option<Vec<u8>> {
    let output = Command::new(compiler).arg("--version").output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// The host compiler that nvcc is told to use.
fn host_compiler(command: &[OsString]) -> Option<PathBuf> {
    let named = |word: &OsString| Some(PathBuf::from(word.to_str()?.strip_prefix("-ccbin=")?));
    command.iter().find_map(named)
}

/// The compiler's major version, on which depends how new a driver its image needs.
fn release(nvcc: &Path) -> Option<u32> {
    let text = String::from_utf8(version(nvcc)?).ok()?;
    let (_, rest) = text.split_once("release ")?;
    rest.split(['.', ',']).next()?.trim().parse().ok()
}

/// nvcc with the host compiler and flags that `cc` gives it. Nothing is linked, hence no CUDA runtime.
fn nvcc_command() -> Command {
    cc::Build::new()
        .cuda(true)
        .cudart("none")
        .pic(false)
        .debug(false)
        .opt_level(3)
        .warnings(false)
        .cargo_metadata(false)
        .get_compiler()
        .to_command()
}

// ---- The header and the library's name ----

/// Writes `cvc.h` next to the other outputs; `tests/header.rs` compares it with the one checked in.
fn header() {
    let mut config = match cbindgen::Config::from_file("cbindgen.toml") {
        Ok(config) => config,
        Err(error) => panic!("cbindgen.toml: {error}"),
    };
    let number = |part: &str| env::var(format!("CARGO_PKG_VERSION_{part}")).unwrap_or_default();
    let version = format!(
        "\n/** Version of this header; cvc_version() gives the library's. */\n\
         #define CVC_VERSION_MAJOR {}\n#define CVC_VERSION_MINOR {}\n#define CVC_VERSION_PATCH {}\n",
        number("MAJOR"),
        number("MINOR"),
        number("PATCH")
    );
    let handles = config.after_includes.take().unwrap_or_default();
    config.after_includes = Some(version + &handles);
    let opaque = config.export.rename.keys().cloned();
    config.export.exclude.extend(opaque);
    let builder = cbindgen::Builder::new().with_config(config);
    // The module's file alone, as cbindgen follows its `mod` lines itself.
    match builder.with_src("src/ffi/mod.rs").generate() {
        Ok(bindings) => {
            bindings.write_to_file(out_dir().join("cvc.h"));
        }
        Err(error) => panic!("the header was not generated: {error}"),
    }
}

/// While the major version is 0, each minor version has an ABI of its own. The library is never unloaded: threads and
/// streams may outlive the last `dlclose`.
fn soname() {
    let part = |name: &str| env::var(name).unwrap_or_default();
    let abi = match part("CARGO_PKG_VERSION_MAJOR").as_str() {
        "0" => format!("0.{}", part("CARGO_PKG_VERSION_MINOR")),
        major => major.to_string(),
    };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcvc.so.{abi}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

// ---- Helpers ----

/// A summary of a step's command and of all kernel sources. Cargo runs this whole program again for any change, a doc
/// comment in `src/ffi` included; compiling the kernels each time would cost most of a build.
struct Fingerprint(String);

impl Fingerprint {
    fn of(command: &impl Hash) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        command.hash(&mut hasher);
        for folder in ["cuda", "cuda/host"] {
            for extension in ["cu", "cuh", "h", "hpp", "cpp"] {
                for file in files_in(folder, extension) {
                    read(&file).hash(&mut hasher);
                    file.hash(&mut hasher);
                }
            }
        }
        Fingerprint(format!("{:016x}", hasher.finish()))
    }

    /// Makes `output`, unless it is there from the same inputs, or a build of another profile has left it in the folder
    /// that `CVC_KERNEL_CACHE` names.
    fn unless_fresh(&self, output: &Path, make: impl FnOnce()) {
        let stamp = output.with_extension("stamp");
        if output.is_file() && fs::read_to_string(&stamp).is_ok_and(|text| text == self.0) {
            return;
        }
        let shared = env::var_os("CVC_KERNEL_CACHE").map(|folder| {
            let name = output.file_name().unwrap_or_default().to_string_lossy();
            PathBuf::from(folder).join(format!("{}-{name}", self.0))
        });
        let copied = |from: &Path, to: &Path| fs::copy(from, to).is_ok();
        if !shared
            .as_deref()
            .is_some_and(|shared| copied(shared, output))
        {
            make();
            if let Some(shared) = shared {
                // Renamed into place, so that a build beside this one sees a whole file or none. Failing to share is
                // no failure.
                let partial = shared.with_extension(std::process::id().to_string());
                let folder = shared.parent().unwrap_or(Path::new("."));
                let _ = fs::create_dir_all(folder);
                if copied(output, &partial) {
                    let _ = fs::rename(&partial, &shared);
                }
            }
        }
        write(&stamp, &self.0);
    }
}

/// The folder's files with this extension, sorted; none where the folder is absent.
fn files_in(folder: &str, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn out_dir() -> PathBuf {
    required("OUT_DIR").into()
}

fn manifest_dir() -> PathBuf {
    required("CARGO_MANIFEST_DIR").into()
}

fn required(name: &str) -> OsString {
    match env::var_os(name) {
        Some(value) => value,
        None => panic!("{name} is not set; cargo sets it"),
    }
}

fn read(path: &Path) -> Vec<u8> {
    match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => panic!("cannot read {}: {error}", path.display()),
    }
}

fn write(path: &Path, text: &str) {
    if let Err(error) = fs::write(path, text) {
        panic!("cannot write {}: {error}", path.display());
    }
}

fn run(command: &mut Command) {
    let outcome = command.status();
    let failure = match outcome {
        Ok(status) if status.success() => return,
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    panic!("{:?} failed: {failure}", words(command));
}

/// Program and arguments, without the environment.
fn words(command: &Command) -> Vec<OsString> {
    let program = std::iter::once(command.get_program());
    program
        .chain(command.get_args())
        .map(OsString::from)
        .collect()
}
