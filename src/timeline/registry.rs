//! From native handles to streams: which handle names whom, on which thread.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};

use parking_lot::Mutex;

use super::event_pool::{self, Record};
use super::stream::{unrecorded, Deadline, Identity, Stream, StreamKind};
use crate::backend::{self, StreamHandle, STREAM_LEGACY, STREAM_PER_THREAD};
use crate::error::{Error, Result, Status};
use crate::fail;
use crate::observe::mistake::{self, Mistake};
use crate::observe::process;

const MAX_DEVICES: usize = 64;
/// So many foreign streams are kept before those that are through are forgotten.
const FOREIGN_BEFORE_SWEEP: usize = 256;

struct Entry {
    stream: &'static Stream,
    device: i32,
}

#[derive(Default)]
struct Registry {
    /// Created and registered streams.
    known: HashMap<StreamHandle, Entry>,
    /// Foreign streams by id, since their handles may be recycled by their owner.
    foreign: HashMap<u64, &'static Stream>,
    /// Slots whose stream is gone.
    retired: Vec<&'static Stream>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
static LEGACY: [AtomicPtr<Stream>; MAX_DEVICES] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_DEVICES];

struct Remembered {
    handle: Cell<StreamHandle>,
    epoch: Cell<u64>,
    device: Cell<i32>,
    stream: Cell<Option<&'static Stream>>,
}

const REMEMBERED: usize = 4;

/// This thread's own default streams; its end marks them so.
#[derive(Default)]
struct PerThread {
    streams: Vec<Option<&'static Stream>>,
}

impl Drop for PerThread {
    fn drop(&mut self) {
        if process::is_forked_child() {
            return;
        }
        for stream in self.streams.drain(..).flatten() {
            // A per-thread stream is never touched here: this only marks it.
            let _ = stream.retire();
            REGISTRY.lock().retired.push(stream);
        }
    }
}

thread_local! {
    static RECENT: [Remembered; REMEMBERED] = const {
        [const {
            Remembered { handle: Cell::new(0), epoch: Cell::new(0), device: Cell::new(0), stream: Cell::new(None) }
        }; REMEMBERED]
    };
    static PER_THREAD: RefCell<PerThread> = const { RefCell::new(PerThread { streams: Vec::new() }) };
}

impl Registry {
    /// A slot for a stream, an old one where nothing of its last stream is open.
    fn slot(&mut self, identity: Identity) -> &'static Stream {
        for index in 0..self.retired.len().min(4) {
            let stream = self.retired[index];
            stream.poll();
            if stream.reuse(identity) {
                self.retired.swap_remove(index);
                return stream;
            }
        }
        // Those at the front are busy: look at others next time.
        let turn = self.retired.len().min(4);
        self.retired.rotate_left(turn);
        Box::leak(Box::new(Stream::new(identity)))
    }

    /// Forgets foreign streams that are through. Their slots are not used again: a call or an export may still mean them.
    fn forget_idle_foreign(&mut self) {
        if self.foreign.len() < FOREIGN_BEFORE_SWEEP {
            return;
        }
        self.foreign.retain(|_, stream| {
            stream.poll();
            stream.completed() != stream.last_submitted()
        });
    }
}

/// The stream that `handle` names in a call for `device`: 0 and 1 are that device's legacy default stream, 2 the calling
/// thread's own. On a created or registered stream this makes no driver call.
#[inline(always)]
pub fn resolve(handle: StreamHandle, device: i32) -> Result<&'static Stream> {
    let epoch = backend::epoch();
    let place = (handle >> 4) % REMEMBERED;
    let recent = RECENT.with(|recent| {
        let recent = &recent[place];
        let same = recent.handle.get() == handle
            && recent.epoch.get() == epoch
            && recent.device.get() == device;
        if same {
            recent.stream.get()
        } else {
            None
        }
    });
    match recent {
        Some(stream) => Ok(stream),
        None => resolve_slow(handle, device, epoch, place),
    }
}

fn resolve_slow(
    handle: StreamHandle,
    device: i32,
    epoch: u64,
    place: usize,
) -> Result<&'static Stream> {
    if handle <= STREAM_LEGACY {
        return legacy(device);
    }
    if handle == STREAM_PER_THREAD {
        return per_thread(device);
    }
    let mut registry = REGISTRY.lock();
    if let Some(entry) = registry.known.get(&handle) {
        check_device(handle, entry.device, device)?;
        let stream = entry.stream;
        RECENT.with(|recent| {
            recent[place].handle.set(handle);
            recent[place].epoch.set(epoch);
            recent[place].device.set(device);
            recent[place].stream.set(Some(stream));
        });
        return Ok(stream);
    }
    drop(registry);
    let identity = backend::current()?.stream_identify(handle)?;
    check_device(handle, identity.device, device)?;
    registry = REGISTRY.lock();
    if let Some(stream) = registry.foreign.get(&identity.id) {
        return Ok(stream);
    }
    registry.forget_idle_foreign();
    let stream = registry.slot(Identity {
        handle,
        device,
        id: identity.id,
        kind: StreamKind::Foreign,
    });
    registry.foreign.insert(identity.id, stream);
    Ok(stream)
}

/// Like `resolve`, for a call that names no device: a default stream is that of the thread's current device, any other
/// stream's device is its own.
pub fn resolve_alone(handle: StreamHandle) -> Result<&'static Stream> {
    if handle > STREAM_PER_THREAD {
        if let Some(entry) = REGISTRY.lock().known.get(&handle) {
            return Ok(entry.stream);
        }
    }
    let identity = backend::current()?.stream_identify(handle)?;
    resolve(handle, identity.device)
}

pub(super) fn check_device(handle: StreamHandle, of_stream: i32, expected: i32) -> Result<()> {
    if of_stream != expected {
        fail!(
            Status::DeviceMismatch,
            "stream is {handle:#x} of device {of_stream}, expected a stream of device {expected}"
        );
    }
    Ok(())
}

fn legacy(device: i32) -> Result<&'static Stream> {
    let place = &LEGACY[device as usize % MAX_DEVICES];
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: only leaked streams are stored there.
        return Ok(unsafe { &*known });
    }
    let mut registry = REGISTRY.lock();
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: as above.
        return Ok(unsafe { &*known });
    }
    let stream = registry.slot(Identity {
        handle: STREAM_LEGACY,
        device,
        id: 1,
        kind: StreamKind::Legacy,
    });
    place.store(std::ptr::from_ref(stream).cast_mut(), Ordering::Release);
    Ok(stream)
}

fn per_thread(device: i32) -> Result<&'static Stream> {
    // Two threads' own streams are never taken for one. From the top, where no driver's ids are.
    static NEXT_ID: AtomicU64 = AtomicU64::new(u64::MAX);
    let create = || {
        REGISTRY.lock().slot(Identity {
            handle: STREAM_PER_THREAD,
            device,
            id: NEXT_ID.fetch_sub(1, Ordering::Relaxed),
            kind: StreamKind::PerThread,
        })
    };
    if mistake::is(Mistake::KeyStreamByHandle) {
        static ONE: [OnceLock<&'static Stream>; MAX_DEVICES] =
            [const { OnceLock::new() }; MAX_DEVICES];
        return Ok(ONE[device as usize % MAX_DEVICES].get_or_init(create));
    }
    let found = PER_THREAD.try_with(|own| {
        let mut own = own.borrow_mut();
        let index = device as usize;
        if own.streams.len() <= index {
            own.streams.resize(index + 1, None);
        }
        *own.streams[index].get_or_insert_with(create)
    });
    match found {
        Ok(stream) => Ok(stream),
        Err(_) => fail!(
            Status::InvalidStream,
            "stream is 2, the own stream of a thread that is ending"
        ),
    }
}

/// Whether the stream is the calling thread's own default stream of some device.
pub(super) fn is_of_this_thread(stream: &Stream) -> bool {
    let own = |own: &RefCell<PerThread>| {
        own.try_borrow().is_ok_and(|own| {
            let mut streams = own.streams.iter().flatten();
            streams.any(|known| std::ptr::eq(*known, stream))
        })
    };
    PER_THREAD.try_with(own).unwrap_or(false)
}

/// A new stream of `device`, known to the library until `destroy`.
pub fn create(device: i32, blocking: bool) -> Result<StreamHandle> {
    let backend = backend::current()?;
    let handle = backend.stream_create(device, blocking)?;
    let id = match backend.stream_identify(handle) {
        Ok(identity) => identity.id,
        Err(error) => {
            let _ = backend.stream_destroy(device, handle);
            return Err(error);
        }
    };
    let mut registry = REGISTRY.lock();
    let stream = registry.slot(Identity {
        handle,
        device,
        id,
        kind: StreamKind::Created,
    });
    registry.known.insert(handle, Entry { stream, device });
    Ok(handle)
}

/// Destroys a created stream; returns at once, queued work still runs.
pub fn destroy(handle: StreamHandle) -> Result<()> {
    let (stream, device) = take_known(handle, StreamKind::Created, "cvc_stream_create")?;
    let destroyed = backend::current()?.stream_destroy(device, handle);
    let mut registry = REGISTRY.lock();
    match destroyed {
        Ok(()) => registry.retired.push(stream),
        // It lives on, and may be destroyed again.
        Err(_) => {
            stream.revive();
            registry.known.insert(handle, Entry { stream, device });
        }
    }
    destroyed
}

/// Makes a foreign stream one that the library may touch at any time until `unregister`; its owner keeps it alive.
pub fn register(device: i32, handle: StreamHandle) -> Result<()> {
    if handle <= STREAM_PER_THREAD || handle == StreamHandle::MAX {
        fail!(
            Status::InvalidStream,
            "stream is {handle:#x}, expected a stream that is not a default stream"
        );
    }
    let identity = backend::current()?.stream_identify(handle)?;
    check_device(handle, identity.device, device)?;
    let mut registry = REGISTRY.lock();
    if registry.known.contains_key(&handle) {
        fail!(
            Status::InvalidStream,
            "stream {handle:#x} is created by the library or registered already"
        );
    }
    // The old slot is not used again: its accesses go on there, where each has its event.
    registry.foreign.remove(&identity.id);
    let stream = registry.slot(Identity {
        handle,
        device,
        id: identity.id,
        kind: StreamKind::Registered,
    });
    registry.known.insert(handle, Entry { stream, device });
    backend::forget_lookups();
    Ok(())
}

pub fn unregister(handle: StreamHandle) -> Result<()> {
    let (stream, _) = take_known(handle, StreamKind::Registered, "cvc_stream_register")?;
    let mut registry = REGISTRY.lock();
    if stream.revive_held() {
        registry.foreign.insert(stream.id(), stream);
    } else {
        registry.retired.push(stream);
    }
    Ok(())
}

fn take_known(
    handle: StreamHandle,
    kind: StreamKind,
    origin: &str,
) -> Result<(&'static Stream, i32)> {
    let mut registry = REGISTRY.lock();
    let found = registry
        .known
        .get(&handle)
        .filter(|entry| entry.stream.kind() == kind);
    let Some(entry) = found else {
        fail!(
            Status::InvalidStream,
            "stream is {handle:#x}, expected one from {origin} that still lives"
        );
    };
    let (stream, device) = (entry.stream, entry.device);
    // The event behind its open work is recorded while the handle is still good.
    stream.retire()?;
    registry.known.remove(&handle);
    backend::forget_lookups();
    Ok((stream, device))
}

impl Stream {
    /// Makes work queued here from now on come after everything queued on `other` so far, also by others than the
    /// library. Both have just been passed by the caller.
    pub fn wait_for_stream(&'static self, other: &'static Stream) -> Result<()> {
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        let (own, others) = (self.capture()?, other.capture()?);
        match others {
            Some(others) => self.check_wait_for_capture(own, others)?,
            None => self.check_wait_for_live(own, "work of a stream")?,
        }
        let device = other.device();
        let event = event_pool::take(device)?;
        match other.record_now(event) {
            Ok((covers, waits)) => {
                let record = Record {
                    event,
                    device,
                    covers,
                    waits,
                };
                self.wait_for_record(other, &record, others)
            }
            Err(error) => {
                event_pool::give_back(device, event);
                Err(error)
            }
        }
    }

    /// Refuses a wait, by this stream in its `capture`, for what lies in no capture: the driver would end it (law 11).
    pub(super) fn check_wait_for_live(&self, capture: Option<u64>, what: &str) -> Result<()> {
        match capture {
            Some(_) => Err(self.outside_its_capture(what)),
            None => Ok(()),
        }
    }

    /// Refuses a wait for what lies in the capture `other`, if the driver would end that or this stream's own `capture`. A
    /// stream in none joins.
    pub(super) fn check_wait_for_capture(&self, capture: Option<u64>, other: u64) -> Result<()> {
        match capture {
            Some(own) if own != other => Err(self.outside_its_capture("what another capture holds")),
            None if self.kind() == StreamKind::Legacy => fail!(
                Status::Capturing,
                "stream is {:#x}, the legacy default stream, which cannot join a capture by a wait; expected another stream",
                self.handle()
            ),
            _ => Ok(()),
        }
    }

    #[cold]
    fn outside_its_capture(&self, what: &str) -> Error {
        Error::new(
            Status::Capturing,
            format!(
                "stream is {:#x}, which is capturing a graph and cannot wait for {what} outside of it; expected a \
                 stream that is not, or a wait inside the capture",
                self.handle()
            ),
        )
    }
}

/// Waits for all work of the device; everything submitted before is then seen complete.
pub fn device_synchronize(device: i32, deadline: Deadline) -> Result<bool> {
    let mut streams: Vec<(&'static Stream, u64)> = Vec::new();
    {
        let registry = REGISTRY.lock();
        let known = registry.known.values().map(|entry| entry.stream);
        let foreign = registry.foreign.values().copied();
        let retired = registry.retired.iter().copied();
        streams.extend(
            known
                .chain(foreign)
                .chain(retired)
                .chain(unrecorded(device))
                .map(|stream| (stream, stream.last_submitted())),
        );
    }
    let legacy = legacy(device)?;
    streams.push((legacy, legacy.last_submitted()));
    if !backend::current()?.device_synchronize(device, deadline.remaining())? {
        return Ok(false);
    }
    for (stream, submitted) in streams {
        if stream.device() == device {
            stream.all_done(submitted);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign() -> (StreamHandle, &'static Stream) {
        let backend = backend::current().expect("the host backend starts");
        let handle = backend.stream_create(0, false).expect("it makes streams");
        (handle, resolve(handle, 0).expect("it lives"))
    }

    /// A stream that was looked up before is of its device all the same.
    #[test]
    fn a_known_stream_is_refused_for_another_device() {
        let handle = create(0, false).expect("the host backend makes streams");
        for _ in 0..2 {
            let known = resolve(handle, 0).expect("it lives");
            assert_eq!(known.handle(), handle);
            let refused = resolve(handle, 1).map(|_| ());
            assert_eq!(
                refused.map_err(|error| error.status),
                Err(Status::DeviceMismatch)
            );
        }
        destroy(handle).expect("it lives");
        assert!(resolve(handle, 0).is_err());
    }

    #[test]
    fn each_device_has_default_streams_of_its_own() {
        for handle in [0, STREAM_LEGACY, STREAM_PER_THREAD] {
            let [first, second] =
                [0, 1].map(|device| resolve(handle, device).expect("it is there"));
            assert_eq!([first.device(), second.device()], [0, 1]);
            assert!(!std::ptr::eq(first, second));
        }
        let same = resolve(0, 1).expect("it is there");
        assert!(std::ptr::eq(
            same,
            resolve(STREAM_LEGACY, 1).expect("it is there")
        ));
    }

    #[test]
    fn a_threads_own_stream_is_nobody_elses() {
        let own = resolve(STREAM_PER_THREAD, 0).expect("it is there");
        assert!(is_of_this_thread(own));
        assert!(!is_of_this_thread(legacy(0).expect("it is there")));
        let elsewhere = std::thread::spawn(move || {
            let there = resolve(STREAM_PER_THREAD, 0).expect("it is there");
            (is_of_this_thread(own), std::ptr::eq(own, there))
        });
        assert_eq!(elsewhere.join().expect("the thread ends"), (false, false));
    }

    /// Somebody who makes a stream for each piece of work does not fill the memory up, and no open work is forgotten.
    #[test]
    fn foreign_streams_that_are_through_are_forgotten() {
        let backend = backend::current().expect("the host backend starts");
        let known = || REGISTRY.lock().foreign.len();
        let (held_handle, held) = foreign();
        let latch = backend.latch_create(0, held_handle).expect("a stream");
        held.submit().1.expect("an event is recorded");
        let mut most = 0;
        for count in 0..3 * FOREIGN_BEFORE_SWEEP {
            let (handle, stream) = foreign();
            stream.submit().1.expect("an event is recorded");
            assert_eq!(stream.synchronize(Deadline::NEVER), Ok(true));
            backend.stream_destroy(0, handle).expect("it lives");
            most = most.max(known());
            if count == FOREIGN_BEFORE_SWEEP / 2 {
                assert!(known() > count, "so few are not looked at");
            }
        }
        // Streams of other tests run beside this one.
        assert!(
            (FOREIGN_BEFORE_SWEEP..=FOREIGN_BEFORE_SWEEP + 8).contains(&most),
            "{most}"
        );
        let still = resolve(held_handle, 0).expect("it lives");
        assert!(std::ptr::eq(still, held));
        backend.latch_open(latch).expect("it is closed");
    }
}
