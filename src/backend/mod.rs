//! The device underneath: one narrow trait and its two implementations, chosen once at run time.
//!
//! Nothing here knows of tensors, caches or orderings. Every call says what it needs and what it promises; a failed call
//! has changed nothing. Native handles are plain numbers; the caller keeps a stream or event alive while a call uses it.

pub mod cuda;
pub mod host;
mod select;
pub mod wrap;

pub use select::{current, device, epoch, forget_lookups};

use std::sync::OnceLock;
use std::time::Duration;

use crate::error::Result;

/// Native stream handle: a `CUstream`, or what the host backend gave. 0 and 1 are the legacy default stream, 2 is the
/// calling thread's own default stream.
pub type StreamHandle = usize;
/// Native event handle.
pub type EventHandle = usize;
/// Address in a device's memory. On the host backend the CPU can read it.
pub type DevicePointer = u64;

pub const STREAM_LEGACY: StreamHandle = 1;
pub const STREAM_PER_THREAD: StreamHandle = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum BackendKind {
    Host = 1,
    Cuda = 2,
}

#[derive(Clone, Debug)]
pub struct DeviceInfo {
    pub name: String,
    pub total_memory: u64,
}

/// Who a stream handle names. `id` is never given to another stream of this process, also when the handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamIdentity {
    pub id: u64,
    pub device: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
}

/// Rows of `width` bytes, `height` of them, each side with its own pitch. Pitches may be anything at least `width`, and
/// may be anything at all where `height` is 1. Widths and heights of 0 do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Copy2d {
    pub kind: CopyKind,
    pub src: u64,
    pub src_pitch: u64,
    pub dst: u64,
    pub dst_pitch: u64,
    pub width: u64,
    pub height: u64,
}

/// Rows of zero bytes.
#[derive(Clone, Copy, Debug)]
pub struct Fill2d {
    pub dst: DevicePointer,
    pub pitch: u64,
    pub width: u64,
    pub height: u64,
}

/// Bytes that a launch reads or writes, for checkers. Bytes between rows may be included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    pub start: u64,
    pub length: u64,
    pub write: bool,
}

/// The host build of a kernel: does the work items `begin..end` of the block at `params`. Different items may run at the
/// same time on several threads.
pub type HostKernel = unsafe extern "C" fn(params: *const libc::c_void, begin: i64, end: i64);

/// One kernel in both builds: the symbol in the fatbin and the host function compiled from the same source.
#[derive(Clone, Copy)]
pub struct Kernel {
    pub name: &'static str,
    pub host: HostKernel,
}

static KERNELS: OnceLock<&'static [&'static [Kernel]]> = OnceLock::new();

/// The operators register every kernel that they launch, before a device is first used: a driver that cannot list
/// what the fatbin holds loads them by name, and leaves none to its first launch.
pub fn set_kernels(kernels: &'static [&'static [Kernel]]) {
    let _ = KERNELS.set(kernels);
}

fn registered_kernels() -> &'static [&'static [Kernel]] {
    KERNELS.get().copied().unwrap_or_default()
}

/// The most bytes that a parameter block may have (the least that every CUDA architecture takes).
pub const MAX_PARAMS_BYTES: usize = 4096;

pub struct Launch<'a> {
    pub kernel: &'static Kernel,
    /// The kernel's one parameter: a `#[repr(C)]` block as bytes, at most `MAX_PARAMS_BYTES`, 16-byte aligned.
    pub params: &'a [u8],
    /// Host: how many work items there are. The backend splits them over its cores.
    pub items: i64,
    /// Host: about how many items make one task worth handing to another core (at least 1).
    pub items_per_task: i64,
    /// Device: grid, block and dynamic shared memory.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub ranges: &'a [ByteRange],
}

/// Every device has as much shared memory for a block.
pub const LEAST_SHARED_BYTES: u32 = 64 << 10;

/// Memory, streams, events, copies and launches of one kind of device. `device` is always a valid ordinal
/// (0..device_count) and, where a stream or an event is passed too, that stream's or event's own.
///
/// Threads: every method may be called from any thread at any time. Contexts: the caller's current device is left as it
/// was found, except by `set_current_device`.
pub trait Backend: Send + Sync {
    fn kind(&self) -> BackendKind;
    fn device_count(&self) -> i32;
    fn device_info(&self, device: i32) -> Result<DeviceInfo>;
    /// Shared memory that a kernel's block can have: `LEAST_SHARED_BYTES`, or more where a multiprocessor has that for each of
    /// two blocks. Calls no driver.
    fn block_shared_bytes(&self, device: i32) -> u32 {
        let _ = device;
        LEAST_SHARED_BYTES
    }
    /// `Status::ContextLost` where nothing of the device works any more. Calls no driver.
    fn check_device(&self, device: i32) -> Result<()> {
        let _ = device;
        Ok(())
    }
    /// Free bytes on the device just now.
    fn memory_free_bytes(&self, device: i32) -> Result<u64>;
    /// The calling thread's current device; 0 where none was chosen.
    fn current_device(&self) -> Result<i32>;
    fn set_current_device(&self, device: i32) -> Result<()>;
    /// The device whose memory `pointer` lies in; `None` where every device can use it (pinned or managed memory) or the
    /// backend cannot tell. `Status::InvalidArgument` for what no device can use, such as a plain host pointer. Reads
    /// nothing at the address.
    fn pointer_device(&self, pointer: DevicePointer) -> Result<Option<i32>> {
        let _ = pointer;
        Ok(None)
    }

    /// `bytes` > 0, a multiple of 512; the address is aligned to at least 512. `Status::OutOfMemory` when there is no
    /// room. May wait for running work (law 2's direct source).
    fn memory_allocate(&self, device: i32, bytes: u64) -> Result<DevicePointer>;
    /// `pointer` and `bytes` are what `memory_allocate` gave and took; no work that uses it is queued or running.
    fn memory_free(&self, device: i32, pointer: DevicePointer, bytes: u64) -> Result<()>;

    /// A new stream, non-blocking unless `blocking` (then it orders with the legacy stream as CUDA's do).
    fn stream_create(&self, device: i32, blocking: bool) -> Result<StreamHandle>;
    /// Returns at once; what is queued still runs.
    fn stream_destroy(&self, device: i32, stream: StreamHandle) -> Result<()>;
    /// Who this handle names now. For a default stream: that of the thread's current device.
    /// `Status::InvalidStream` for what can be seen to be no stream.
    fn stream_identify(&self, stream: StreamHandle) -> Result<StreamIdentity>;
    /// Whether everything queued on the stream is done. Never waits.
    fn stream_query(&self, device: i32, stream: StreamHandle) -> Result<bool>;
    /// Waits for everything queued so far; `false` when the timeout passed first. No timeout: until done.
    fn stream_synchronize(
        &self,
        device: i32,
        stream: StreamHandle,
        timeout: Option<Duration>,
    ) -> Result<bool>;
    fn stream_wait_event(
        &self,
        device: i32,
        stream: StreamHandle,
        event: EventHandle,
    ) -> Result<()>;
    fn stream_is_capturing(&self, device: i32, stream: StreamHandle) -> Result<bool>;
    /// The number of the capture that the stream is in, which no other capture has.
    fn stream_capture(&self, device: i32, stream: StreamHandle) -> Result<Option<u64>>;

    fn event_create(&self, device: i32, timing: bool) -> Result<EventHandle>;
    fn event_destroy(&self, device: i32, event: EventHandle) -> Result<()>;
    fn event_record(&self, device: i32, event: EventHandle, stream: StreamHandle) -> Result<()>;
    /// Whether the last record is done (also when there was none). Never waits.
    fn event_query(&self, device: i32, event: EventHandle) -> Result<bool>;
    fn event_synchronize(
        &self,
        device: i32,
        event: EventHandle,
        timeout: Option<Duration>,
    ) -> Result<bool>;
    /// Milliseconds between two recorded and completed timing events.
    fn event_elapsed_ms(&self, device: i32, start: EventHandle, end: EventHandle) -> Result<f32>;

    fn copy_2d(&self, device: i32, stream: StreamHandle, copy: &Copy2d) -> Result<()>;
    fn fill_zero_2d(&self, device: i32, stream: StreamHandle, fill: &Fill2d) -> Result<()>;
    fn launch(&self, device: i32, stream: StreamHandle, launch: &Launch) -> Result<()>;
    /// Says that work of others, queued on the stream by now, touches these bytes; without a stream, that the host does. For
    /// checkers: nothing is done.
    fn announce_access(
        &self,
        device: i32,
        stream: Option<StreamHandle>,
        range: ByteRange,
    ) -> Result<()> {
        let _ = (device, stream, range);
        Ok(())
    }
    /// Waits for all work of the device, as `stream_synchronize` does for a stream's.
    fn device_synchronize(&self, device: i32, timeout: Option<Duration>) -> Result<bool>;

    /// Queues a hold on the stream that lasts until `latch_open`. For tests.
    fn latch_create(&self, device: i32, stream: StreamHandle) -> Result<u64>;
    fn latch_open(&self, latch: u64) -> Result<()>;

    /// Where queued work may be run in steps.
    fn stepping(&self) -> Option<&dyn Stepping> {
        None
    }
}

/// Queued work that runs when somebody says so. Each call gives `Status::NotSupported` where it runs by itself.
pub trait Stepping {
    /// What may run now: the oldest item of each stream that waits for nothing.
    fn runnable(&self) -> Result<Vec<host::Runnable>>;
    /// Runs the item at that place of `runnable`.
    fn run_one(&self, index: u64) -> Result<()>;
    /// Runs what the stream's work needs, as far as latches let it; how many items that were.
    fn run_stream(&self, device: i32, stream: StreamHandle) -> Result<u64>;
    /// Runs all that may run, the oldest first, until nothing may.
    fn run_all(&self) -> Result<u64>;
}
