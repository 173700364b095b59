//! A backend with a gate before it, which sees the name of each call and may refuse it.

use std::time::Duration;

use super::calls::Call;
use crate::backend::{
    Backend, BackendKind, ByteRange, Copy2d, DeviceInfo, DevicePointer, EventHandle, Fill2d,
    Launch, Stepping, StreamHandle, StreamIdentity,
};
use crate::error::{Error, Result, Status};

pub trait Gate: Send + Sync {
    /// Called before each call; an error is what the call comes to instead of being made.
    fn pass(&self, call: Call) -> Result<()>;

    /// Called after each call that was made, whatever came of it.
    fn passed(&self, _call: Call) {}
}

pub struct Gated<G> {
    pub gate: G,
    pub inner: Box<dyn Backend>,
}

impl<G: Gate> Gated<G> {
    /// For a query: `NotReady` is its answer and no failure.
    fn query(&self, call: Call, ask: impl FnOnce() -> Result<bool>) -> Result<bool> {
        match self.gate.pass(call) {
            Ok(()) => {
                let answer = ask();
                self.gate.passed(call);
                answer
            }
            Err(error) if error.status == Status::NotReady => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// For a wait: `NotReady` says that its time has passed. A wait without a timeout would never end, and fails.
    fn wait(
        &self,
        call: Call,
        timeout: Option<Duration>,
        wait: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        match self.gate.pass(call) {
            Ok(()) => {
                let answer = wait();
                self.gate.passed(call);
                answer
            }
            Err(error) if error.status == Status::NotReady => match timeout {
                Some(_) => Ok(false),
                None => Err(Error::new(
                    Status::DeviceError,
                    format!("{}, and this wait has no timeout", error.message),
                )),
            },
            Err(error) => Err(error),
        }
    }
}

macro_rules! gated {
    ($($call:ident $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Result<$result> {
            self.gate.pass(Call::$call)?;
            let result = self.inner.$name($($argument),*);
            self.gate.passed(Call::$call);
            result
        })*
    };
}

impl<G: Gate> Backend for Gated<G> {
    fn kind(&self) -> BackendKind {
        // It cannot fail.
        let _ = self.gate.pass(Call::Kind);
        self.inner.kind()
    }

    fn device_count(&self) -> i32 {
        let _ = self.gate.pass(Call::DeviceCount);
        self.inner.device_count()
    }

    fn block_shared_bytes(&self, device: i32) -> u32 {
        self.inner.block_shared_bytes(device)
    }

    gated! {
        DeviceInfo device_info(device: i32) -> DeviceInfo;
        CheckDevice check_device(device: i32) -> ();
        MemoryFreeBytes memory_free_bytes(device: i32) -> u64;
        CurrentDevice current_device() -> i32;
        SetCurrentDevice set_current_device(device: i32) -> ();
        PointerDevice pointer_device(pointer: DevicePointer) -> Option<i32>;
        MemoryAllocate memory_allocate(device: i32, bytes: u64) -> DevicePointer;
        MemoryFree memory_free(device: i32, pointer: DevicePointer, bytes: u64) -> ();
        StreamCreate stream_create(device: i32, blocking: bool) -> StreamHandle;
        StreamDestroy stream_destroy(device: i32, stream: StreamHandle) -> ();
        StreamIdentify stream_identify(stream: StreamHandle) -> StreamIdentity;
        StreamWaitEvent stream_wait_event(device: i32, stream: StreamHandle, event: EventHandle) -> ();
        StreamIsCapturing stream_is_capturing(device: i32, stream: StreamHandle) -> bool;
        StreamCapture stream_capture(device: i32, stream: StreamHandle) -> Option<u64>;
        EventCreate event_create(device: i32, timing: bool) -> EventHandle;
        EventDestroy event_destroy(device: i32, event: EventHandle) -> ();
        EventRecord event_record(device: i32, event: EventHandle, stream: StreamHandle) -> ();
        EventElapsedMs event_elapsed_ms(device: i32, start: EventHandle, end: EventHandle) -> f32;
        Copy2d copy_2d(device: i32, stream: StreamHandle, copy: &Copy2d) -> ();
        FillZero2d fill_zero_2d(device: i32, stream: StreamHandle, fill: &Fill2d) -> ();
        Launch launch(device: i32, stream: StreamHandle, launch: &Launch) -> ();
        AnnounceAccess announce_access(device: i32, stream: Option<StreamHandle>, range: ByteRange) -> ();
        LatchCreate latch_create(device: i32, stream: StreamHandle) -> u64;
        LatchOpen latch_open(latch: u64) -> ();
    }

    fn stream_query(&self, device: i32, stream: StreamHandle) -> Result<bool> {
        self.query(Call::StreamQuery, || {
            self.inner.stream_query(device, stream)
        })
    }

    fn stream_synchronize(
        &self,
        device: i32,
        stream: StreamHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.wait(Call::StreamSynchronize, timeout, || {
            self.inner.stream_synchronize(device, stream, timeout)
        })
    }

    fn event_query(&self, device: i32, event: EventHandle) -> Result<bool> {
        self.query(Call::EventQuery, || self.inner.event_query(device, event))
    }

    fn event_synchronize(
        &self,
        device: i32,
        event: EventHandle,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.wait(Call::EventSynchronize, timeout, || {
            self.inner.event_synchronize(device, event, timeout)
        })
    }

    fn device_synchronize(&self, device: i32, timeout: Option<Duration>) -> Result<bool> {
        self.wait(Call::DeviceSynchronize, timeout, || {
            self.inner.device_synchronize(device, timeout)
        })
    }

    fn stepping(&self) -> Option<&dyn Stepping> {
        self.inner.stepping()
    }
}
