//! The calls of the `Backend` trait by name.

use std::ffi::CStr;

macro_rules! calls {
    ($($variant:ident $name:literal)*) => {
        /// One method of the trait.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Call { $($variant),* }

        impl Call {
            pub const ALL: &'static [Call] = &[$(Call::$variant),*];

            /// The method's name.
            pub fn name(self) -> &'static CStr {
                match self { $(Call::$variant => $name),* }
            }
        }
    };
}

calls! {
    Kind c"kind"
    DeviceCount c"device_count"
    DeviceInfo c"device_info"
    CheckDevice c"check_device"
    MemoryFreeBytes c"memory_free_bytes"
    CurrentDevice c"current_device"
    SetCurrentDevice c"set_current_device"
    PointerDevice c"pointer_device"
    MemoryAllocate c"memory_allocate"
    MemoryFree c"memory_free"
    StreamCreate c"stream_create"
    StreamDestroy c"stream_destroy"
    StreamIdentify c"stream_identify"
    StreamQuery c"stream_query"
    StreamSynchronize c"stream_synchronize"
    StreamWaitEvent c"stream_wait_event"
    StreamIsCapturing c"stream_is_capturing"
    StreamCapture c"stream_capture"
    EventCreate c"event_create"
    EventDestroy c"event_destroy"
    EventRecord c"event_record"
    EventQuery c"event_query"
    EventSynchronize c"event_synchronize"
    EventElapsedMs c"event_elapsed_ms"
    Copy2d c"copy_2d"
    FillZero2d c"fill_zero_2d"
    Launch c"launch"
    AnnounceAccess c"announce_access"
    DeviceSynchronize c"device_synchronize"
    LatchCreate c"latch_create"
    LatchOpen c"latch_open"
}

impl Call {
    pub fn from_name(name: &[u8]) -> Option<Call> {
        let named = |call: &&Call| call.name().to_bytes() == name;
        Call::ALL.iter().find(named).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_trait_has_its_name() {
        let source = include_str!("../mod.rs");
        let (_, body) = source.split_once("pub trait Backend").expect("it is there");
        let (body, _) = body.split_once("\n}").expect("it ends");
        let methods = body.split("    fn ").skip(1);
        let names = methods.map(|rest| rest.split(['(', '<']).next().unwrap_or_default());
        // These ask nothing of the device.
        let asks = |name: &&str| !matches!(*name, "stepping" | "block_shared_bytes");
        let names: Vec<_> = names.filter(asks).collect();
        let known = Call::ALL.iter().map(|call| call.name().to_str());
        let known: Vec<_> = known.map(|name| name.expect("ASCII")).collect();
        assert_eq!(names, known);
        for (index, call) in Call::ALL.iter().enumerate() {
            assert_eq!(*call as usize, index);
            assert_eq!(Call::from_name(call.name().to_bytes()), Some(*call));
        }
        assert_eq!(Call::from_name(b"launc"), None);
    }
}
