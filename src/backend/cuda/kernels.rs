//! The embedded kernels on one device: loaded whole from the fatbin, found without a lock, launched.

use std::collections::HashMap;
use std::ffi::{c_char, c_void, CStr, CString};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use cudarc::driver::sys;
use parking_lot::Mutex;

use super::codes;
use super::context::{call, Session};
use super::driver::Handle;
use crate::backend::{Kernel, Launch, StreamHandle, MAX_PARAMS_BYTES};
use crate::error::{Result, Status};
use crate::fail;

/// Bytes at an address that the driver may read as a header.
#[cfg(not(cvc_no_kernels))]
#[repr(C, align(16))]
struct Aligned<T: ?Sized>(T);

/// The fatbin of every kernel; empty in a build without nvcc.
#[cfg(not(cvc_no_kernels))]
pub static FATBIN: &[u8] = &Aligned(*include_bytes!(env!("CVC_FATBIN"))).0;
#[cfg(cvc_no_kernels)]
pub static FATBIN: &[u8] = &[];

/// What each device loads.
#[derive(Clone, Copy)]
pub struct Image {
    pub fatbin: &'static [u8],
    /// Gives the kernels that will be launched: what to load where the driver cannot list those of the fatbin. Asked when
    /// a device is first used, since the backend may be chosen before they are registered.
    pub kernels: fn() -> &'static [&'static [Kernel]],
}

/// Dynamic shared memory that a launch may have without asking for more first.
const DEFAULT_SHARED_BYTES: u32 = 48 << 10;
const MAX_DYNAMIC_SHARED: u32 =
    sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as u32;
const LOCAL_BYTES: u32 = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES as u32;

/// Slots of the table by address: a power of two, several times as many as there are kernels.
const SLOTS: usize = 1024;

/// One kernel, ready to launch in the device's context.
struct Function {
    handle: Handle,
    /// The size of its one parameter; 0 where the driver cannot tell.
    params_bytes: usize,
    /// The dynamic shared memory that was asked for so far.
    shared_bytes: AtomicU32,
}

/// A `Kernel`'s address and what it stands for here. The key is written last, once.
#[derive(Default)]
struct Slot {
    key: AtomicUsize,
    function: AtomicPtr<Function>,
}

/// All kernels of the image on one device.
pub struct KernelSet {
    library: Handle,
    slots: Box<[Slot]>,
    /// Nothing ever leaves this map, so that the addresses in the slots stay valid as long as the set.
    by_name: Mutex<HashMap<String, Arc<Function>>>,
}

impl KernelSet {
    /// Loads the image and every kernel in it, so that no first launch has to.
    ///
    /// Errors: `NoKernelImage` where the build has no image or the image has none for this device.
    pub fn load(session: &Session, image: &Image) -> Result<KernelSet> {
        if image.fatbin.is_empty() {
            fail!(
                Status::NoKernelImage,
                "this libcvc was built without CUDA kernels; build it with nvcc 13 on the PATH or in NVCC"
            );
        }
        let mut library = 0;
        // SAFETY: the fatbin is whole, aligned and static; no options are passed.
        let code = unsafe {
            (session.driver.cuLibraryLoadData)(
                &mut library,
                image.fatbin.as_ptr().cast::<c_void>(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                0,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                0,
            )
        };
        check_image(session, code, "cuLibraryLoadData")?;
        let set = KernelSet {
            library,
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            by_name: Mutex::new(HashMap::new()),
        };
        match set.load_all(session, (image.kernels)()) {
            Ok(()) => Ok(set),
            Err(error) => {
                // SAFETY: nothing of the library was handed out.
                unsafe { (session.driver.cuLibraryUnload)(library) };
                Err(error)
            }
        }
    }

    /// Loads what the library holds; `kernels` of it where the driver (before CUDA 12.4) cannot list it.
    fn load_all(&self, session: &Session, kernels: &[&[Kernel]]) -> Result<()> {
        let driver = session.driver;
        let (Some(count_kernels), Some(enumerate), Some(get_name)) = (
            driver.cuLibraryGetKernelCount,
            driver.cuLibraryEnumerateKernels,
            driver.cuKernelGetName,
        ) else {
            return self.load_named(session, kernels);
        };
        let mut count = 0;
        // SAFETY: the library is loaded and `count` is writable.
        let code = unsafe { count_kernels(&mut count, self.library) };
        check_image(session, code, "cuLibraryGetKernelCount")?;
        let mut kernels: Vec<Handle> = vec![0; count as usize];
        // SAFETY: there is room for `count` handles.
        let code = unsafe { enumerate(kernels.as_mut_ptr(), count, self.library) };
        check_image(session, code, "cuLibraryEnumerateKernels")?;
        for kernel in kernels {
            let mut name: *const c_char = std::ptr::null();
            // SAFETY: the kernel is of the library; the name lives as long as it.
            let code = unsafe { get_name(&mut name, kernel) };
            check_image(session, code, "cuKernelGetName")?;
            if name.is_null() {
                continue;
            }
            // SAFETY: the driver wrote a string.
            let name = unsafe { CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned();
            let function = Function::load(session, kernel)?;
            self.by_name.lock().insert(name, Arc::new(function));
        }
        Ok(())
    }

    fn load_named(&self, session: &Session, kernels: &[&[Kernel]]) -> Result<()> {
        let mut by_name = self.by_name.lock();
        for kernel in kernels.iter().copied().flatten() {
            if by_name.contains_key(kernel.name) {
                continue;
            }
            // One that the image lacks is refused when it is launched.
            if let Some(function) = self.load_one(session, kernel.name)? {
                by_name.insert(kernel.name.to_string(), Arc::new(function));
            }
        }
        Ok(())
    }

    /// The function of a kernel that has a slot.
    #[inline]
    fn find(&self, kernel: &'static Kernel) -> Option<&Function> {
        let key = kernel as *const Kernel as usize;
        for at in probe(key) {
            let slot = &self.slots[at];
            match slot.key.load(Ordering::Acquire) {
                found if found == key => {
                    let function = slot.function.load(Ordering::Relaxed);
                    // SAFETY: it was written before the key, and what it points to lives as long as `self`.
                    return Some(unsafe { &*function });
                }
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// The first launch of a kernel: finds it by its symbol and gives it a slot.
    #[cold]
    fn find_by_name(&self, session: &Session, kernel: &'static Kernel) -> Result<&Function> {
        let mut by_name = self.by_name.lock();
        if !by_name.contains_key(kernel.name) {
            let Some(function) = self.load_one(session, kernel.name)? else {
                fail!(
                    Status::NoKernelImage,
                    "the embedded image has no kernel named {}",
                    kernel.name
                );
            };
            by_name.insert(kernel.name.to_string(), Arc::new(function));
        }
        let Some(function) = by_name.get(kernel.name) else {
            fail!(Status::Internal, "kernel {} vanished", kernel.name);
        };
        let function = Arc::as_ptr(function);
        // The lock makes this the only writer.
        let key = kernel as *const Kernel as usize;
        for at in probe(key) {
            let slot = &self.slots[at];
            match slot.key.load(Ordering::Relaxed) {
                found if found == key => break,
                0 => {
                    slot.function.store(function.cast_mut(), Ordering::Relaxed);
                    slot.key.store(key, Ordering::Release);
                    break;
                }
                _ => {}
            }
        }
        // SAFETY: nothing is ever removed from the map, so the function lives as long as `self`.
        Ok(unsafe { &*function })
    }

    /// Whether the next launch of the kernel finds it without a lock.
    #[cfg(test)]
    pub fn has_slot(&self, kernel: &'static Kernel) -> bool {
        self.find(kernel).is_some()
    }

    /// Loads the kernel of that name; none where the image lacks it.
    fn load_one(&self, session: &Session, name: &str) -> Result<Option<Function>> {
        let Ok(symbol) = CString::new(name) else {
            fail!(Status::Internal, "kernel name {name:?} contains a NUL byte");
        };
        let mut kernel = 0;
        // A launch may ask while some thread captures.
        let _relaxed = session.relaxed()?;
        // SAFETY: the library is loaded and the symbol is NUL-terminated.
        let code = unsafe {
            (session.driver.cuLibraryGetKernel)(&mut kernel, self.library, symbol.as_ptr())
        };
        if code == codes::NOT_FOUND {
            return Ok(None);
        }
        check_image(session, code, "cuLibraryGetKernel")?;
        Function::load(session, kernel).map(Some)
    }

    /// Launches one kernel with its parameter block.
    pub fn launch(&self, session: &Session, stream: StreamHandle, launch: &Launch) -> Result<()> {
        let function = match self.find(launch.kernel) {
            Some(function) => function,
            None => self.find_by_name(session, launch.kernel)?,
        };
        let bytes = launch.params.len();
        // The driver reads the kernel's own size from the pointer: a shorter block would be overrun.
        if bytes > MAX_PARAMS_BYTES
            || (function.params_bytes != 0 && bytes != function.params_bytes)
        {
            fail!(
                Status::Internal,
                "kernel {} was given a parameter block of {bytes} bytes, expected {}",
                launch.kernel.name,
                function.params_bytes
            );
        }
        if launch.shared_bytes > DEFAULT_SHARED_BYTES
            && launch.shared_bytes > function.shared_bytes.load(Ordering::Acquire)
        {
            self.allow_shared(session, function, launch.shared_bytes)?;
        }
        let mut params = [launch.params.as_ptr().cast_mut().cast::<c_void>()];
        let [grid_x, grid_y, grid_z] = launch.grid;
        let [block_x, block_y, block_z] = launch.block;
        // SAFETY: the function is loaded in the current context and takes one parameter, which the driver copies
        // before it returns; the caller keeps the stream alive.
        unsafe {
            call!(
                session,
                cuLaunchKernel(
                    function.handle,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    launch.shared_bytes,
                    stream,
                    params.as_mut_ptr(),
                    std::ptr::null_mut()
                )
            )
        }
    }

    #[cold]
    fn allow_shared(&self, session: &Session, function: &Function, bytes: u32) -> Result<()> {
        // The lock keeps a smaller request from replacing a larger one.
        let _guard = self.by_name.lock();
        if function.shared_bytes.load(Ordering::Relaxed) >= bytes {
            return Ok(());
        }
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function is loaded in the current context.
        unsafe {
            call!(
                session,
                cuFuncSetAttribute(function.handle, MAX_DYNAMIC_SHARED, value)
            )?;
        }
        function.shared_bytes.store(bytes, Ordering::Release);
        Ok(())
    }
}

impl Function {
    /// The kernel in the current context, with its code on the device.
    fn load(session: &Session, kernel: Handle) -> Result<Function> {
        let driver = session.driver;
        let mut handle = 0;
        // SAFETY: the kernel is of a loaded library, and the context is current.
        let code = unsafe { (driver.cuKernelGetFunction)(&mut handle, kernel) };
        check_image(session, code, "cuKernelGetFunction")?;
        match driver.cuFuncLoad {
            Some(load) => {
                // SAFETY: the function is of the current context.
                let code = unsafe { load(handle) };
                check_image(session, code, "cuFuncLoad")?;
            }
            None => {
                // Asking for an attribute loads a function that was left for later.
                let mut ignored = 0;
                // SAFETY: as above; `ignored` is writable.
                let code =
                    unsafe { (driver.cuFuncGetAttribute)(&mut ignored, LOCAL_BYTES, handle) };
                check_image(session, code, "cuFuncGetAttribute")?;
            }
        }
        let (mut offset, mut params_bytes) = (0, 0);
        if let Some(parameter) = driver.cuFuncGetParamInfo {
            // SAFETY: both sizes are writable.
            match unsafe { parameter(handle, 0, &mut offset, &mut params_bytes) } {
                // A kernel without parameters: it is none of those that are launched here.
                codes::INVALID_VALUE => params_bytes = 0,
                code => check_image(session, code, "cuFuncGetParamInfo")?,
            }
        }
        Ok(Function {
            handle,
            params_bytes,
            shared_bytes: AtomicU32::new(0),
        })
    }
}

/// Where a key may stand, in the order of looking.
#[inline]
fn probe(key: usize) -> impl Iterator<Item = usize> {
    let first = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..8).map(move |step| (first as usize).wrapping_add(step) % SLOTS)
}

/// As `Session::check`, and says which device it is that the image has nothing for.
fn check_image(session: &Session, code: u32, function: &'static str) -> Result<()> {
    if codes::no_kernel_image(code) {
        let (major, minor) = session.device.capability;
        fail!(
            Status::NoKernelImage,
            "the embedded kernels do not run on device {} ({}, compute capability {major}.{minor}): {function} gave \
             {}; build libcvc with CVC_CUDA_ARCHS={major}{minor}",
            session.device.ordinal,
            session.device.info.name,
            session.driver.describe(code)
        );
    }
    session.check(code, function)
}
