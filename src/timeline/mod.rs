//! Streams, accesses, happens-before and events: who must wait for whom, and who is already done.
//!
//! An access is a pair (stream, sequence number), read or write. Recording one is a store; an event is recorded on a
//! stream only when somebody else needs to know, and only while the stream is known to live (law 1). What a stream has
//! waited for is remembered, so that a second wait is free and "already ordered" is a comparison.

mod access;
mod event;
mod event_pool;
mod polls;
mod registry;
mod stream;

pub use crate::backend::{epoch, forget_lookups};
pub use access::{Access, AccessKind, Accesses, Home};
pub use event::{
    event_access, event_create, event_destroy, event_elapsed_ms, event_query, event_record,
    event_synchronize, mark_events, stream_wait_event,
};
pub use polls::{Looks, Polls};
pub use registry::{
    create, destroy, device_synchronize, register, resolve, resolve_alone, unregister,
};
pub use stream::{Deadline, Hold, Stream, StreamKind};
