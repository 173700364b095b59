//! What another thread does in the middle of a call: no chance, but made to happen there by the fault plan's appointments.

mod c_interface;

use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use c_interface::*;
use cvc::backend::wrap::fault::{meet, Moment};
use cvc::backend::wrap::Call;

const SIDE: i64 = 16;
const NO_STREAM: cvc_stream_t = usize::MAX as cvc_stream_t;

/// Queued work and the reports are the process's: one test at a time.
fn begin() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(CVC_INSTRUMENT_STEPPED | CVC_INSTRUMENT_RACE_CHECK | CVC_INSTRUMENT_FAULTS);
    // SAFETY: no preconditions.
    unsafe {
        ok(cvc_host_fault_clear());
        ok(cvc_host_race_forget());
    }
    guard
}

/// Handles that another thread uses.
#[derive(Clone, Copy)]
struct Shared<T>(T);
// SAFETY: the library's handles may be used on any thread.
unsafe impl<T> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    fn get(self) -> T {
        self.0
    }
}

/// What another thread does; it ends by itself where the library makes it wait.
#[derive(Clone, Default)]
struct Elsewhere(Arc<Mutex<Option<JoinHandle<()>>>>);

impl Elsewhere {
    /// Does it at that moment, on another thread. Before a submission's call this thread holds a lock that the other wants.
    fn at(call: Call, moment: Moment, job: impl FnOnce() + Send + 'static) -> Elsewhere {
        let elsewhere = Elsewhere::default();
        let keeps = elsewhere.clone();
        meet(call, moment, move || {
            let (done, is_done) = mpsc::channel();
            let thread = std::thread::spawn(move || {
                job();
                let _ = done.send(());
            });
            match moment {
                // It waits for a lock of this thread's: it goes on later.
                Moment::Before => drop(is_done.recv_timeout(Duration::from_millis(100))),
                Moment::After => is_done.recv().expect("nothing holds it up"),
            }
            *keeps.0.lock().expect("no thread panics here") = Some(thread);
        });
        elsewhere
    }

    fn end(self) {
        let thread = self.0.lock().expect("no thread panics here").take();
        let thread = thread.expect("the moment has come");
        thread.join().expect("all calls succeed");
    }
}

/// Between the look at an object's accesses and the note of its own, a submission lets no other look.
#[test]
fn two_submissions_on_one_tensor_are_ordered() {
    let _one = begin();
    let streams = [new_stream(0), new_stream(0)];
    let tensor = create(default_cache(), &hwc(SIDE, SIDE, 1), NO_STREAM);
    let other = create(default_cache(), &hwc(SIDE, SIDE, 1), NO_STREAM);
    let copied = |from: cvc_tensor_t, to: cvc_tensor_t, stream| {
        // SAFETY: handles.
        ok(unsafe { cvc_copy(stream, from, to) });
    };
    let handles = Shared((streams[1], tensor));
    let second = move || {
        let (stream, tensor) = handles.get();
        fill(stream, tensor);
    };
    // A writer meets a writer, a reader a writer.
    let elsewhere = Elsewhere::at(Call::FillZero2d, Moment::Before, second);
    fill(streams[0], tensor);
    elsewhere.end();
    run_all();
    let elsewhere = Elsewhere::at(Call::Copy2d, Moment::Before, second);
    copied(tensor, other, streams[0]);
    elsewhere.end();
    run_all();
    assert_no_races();
    release(tensor);
    release(other);
    streams.into_iter().for_each(destroy);
}

/// An event that has been recorded, with that work done, and a tensor with a stream that shall write it.
struct Recorded {
    event: cvc_event_t,
    first: cvc_stream_t,
    writer: cvc_stream_t,
    tensor: cvc_tensor_t,
}

impl Recorded {
    fn new() -> Recorded {
        let mut event = std::ptr::null_mut();
        let (first, writer) = (new_stream(0), new_stream(0));
        let tensor = create(default_cache(), &hwc(SIDE, SIDE, 1), writer);
        fill(first, tensor);
        // SAFETY: handles and a place for the result.
        unsafe {
            ok(cvc_event_create(0, 0, &mut event));
            ok(cvc_event_record(event, first));
        }
        run_all();
        Recorded {
            event,
            first,
            writer,
            tensor,
        }
    }

    /// At that moment the writer writes, and the event is recorded behind that.
    fn anew(&self, call: Call) -> Elsewhere {
        let handles = Shared((self.event, self.writer, self.tensor));
        Elsewhere::at(call, Moment::After, move || {
            let (event, writer, tensor) = handles.get();
            fill(writer, tensor);
            // SAFETY: handles.
            ok(unsafe { cvc_event_record(event, writer) });
        })
    }

    fn end(self) {
        run_all();
        release(self.tensor);
        destroy(self.first);
        destroy(self.writer);
        // SAFETY: a handle, destroyed once.
        ok(unsafe { cvc_event_destroy(self.event) });
    }
}

#[test]
fn a_wait_counts_for_the_record_that_the_driver_saw() {
    let _one = begin();
    let recorded = Recorded::new();
    let reader = new_stream(0);
    let copy = create(default_cache(), &hwc(SIDE, SIDE, 1), reader);
    let elsewhere = recorded.anew(Call::StreamWaitEvent);
    // SAFETY: handles.
    ok(unsafe { cvc_stream_wait_event(reader, recorded.event) });
    elsewhere.end();
    // SAFETY: handles.
    ok(unsafe { cvc_copy(reader, recorded.tensor, copy) });
    run_all();
    assert_no_races();
    release(copy);
    recorded.end();
    destroy(reader);
}

#[test]
fn an_events_completion_counts_for_the_record_that_was_asked_about() {
    let _one = begin();
    for synchronizes in [false, true] {
        let recorded = Recorded::new();
        let call = match synchronizes {
            true => Call::EventSynchronize,
            false => Call::EventQuery,
        };
        let elsewhere = recorded.anew(call);
        // SAFETY: handles.
        ok(unsafe {
            match synchronizes {
                true => cvc_event_synchronize(recorded.event, -1),
                false => cvc_event_query(recorded.event),
            }
        });
        elsewhere.end();
        // What the writer has queued is not done: nobody may work on it without a wait.
        let reader = new_stream(0);
        let copy = create(default_cache(), &hwc(SIDE, SIDE, 1), reader);
        // SAFETY: handles.
        ok(unsafe { cvc_copy(reader, recorded.tensor, copy) });
        run_all();
        assert_no_races();
        release(copy);
        recorded.end();
        destroy(reader);
    }
}

/// As above, but the record is replaced before the driver looks: what the driver says is about an idle stream's, and the
/// first one's work is not done.
#[test]
fn what_is_said_of_a_new_record_does_not_count_for_the_old_one() {
    let _one = begin();
    for call in [
        Call::StreamWaitEvent,
        Call::EventQuery,
        Call::EventSynchronize,
    ] {
        let (first, idle, reader) = (new_stream(0), new_stream(0), new_stream(0));
        let tensor = create(default_cache(), &hwc(SIDE, SIDE, 1), first);
        let copy = create(default_cache(), &hwc(SIDE, SIDE, 1), reader);
        let mut event = std::ptr::null_mut();
        fill(first, tensor);
        // SAFETY: handles and a place for the result.
        unsafe {
            ok(cvc_event_create(0, 0, &mut event));
            ok(cvc_event_record(event, first));
        }
        let handles = Shared((event, idle));
        let elsewhere = Elsewhere::at(call, Moment::Before, move || {
            let (event, idle) = handles.get();
            // SAFETY: handles.
            ok(unsafe { cvc_event_record(event, idle) });
            synchronize(idle);
        });
        // SAFETY: handles.
        ok(unsafe {
            match call {
                Call::StreamWaitEvent => cvc_stream_wait_event(reader, event),
                Call::EventQuery => cvc_event_query(event),
                _ => cvc_event_synchronize(event, -1),
            }
        });
        elsewhere.end();
        // SAFETY: handles.
        ok(unsafe { cvc_copy(reader, tensor, copy) });
        run_all();
        assert_no_races();
        // SAFETY: a handle, destroyed once.
        ok(unsafe { cvc_event_destroy(event) });
        release(tensor);
        release(copy);
        for stream in [first, idle, reader] {
            destroy(stream);
        }
    }
}

/// A free asks whether the streams of the memory's use capture; whoever destroys one of them meanwhile waits for that.
#[test]
fn a_stream_may_be_destroyed_while_memory_of_its_use_is_freed() {
    let _one = begin();
    let stream = new_stream(0);
    let mut memory = std::ptr::null_mut();
    // SAFETY: a handle and a place for the result.
    unsafe {
        ok(cvc_mem_alloc(
            default_cache(),
            0,
            512,
            0,
            NO_STREAM,
            &mut memory,
        ));
        ok(cvc_mem_record_stream(default_cache(), memory, stream));
    }
    let handle = Shared(stream);
    let elsewhere = Elsewhere::at(Call::StreamIsCapturing, Moment::Before, move || {
        destroy(handle.get());
    });
    // SAFETY: a piece of memory, freed once.
    ok(unsafe { cvc_mem_free(default_cache(), memory, NO_STREAM) });
    elsewhere.end();
    run_all();
}

/// Two threads record one event: where the second fails the first one's record stands, not the one before.
#[test]
fn a_record_that_fails_beside_another_leaves_that() {
    let _one = begin();
    let (first, idle, reader) = (new_stream(0), new_stream(0), new_stream(0));
    let tensor = create(default_cache(), &hwc(SIDE, SIDE, 1), first);
    let copy = create(default_cache(), &hwc(SIDE, SIDE, 1), reader);
    let mut event = std::ptr::null_mut();
    fill(first, tensor);
    // SAFETY: handles and a place for the result.
    unsafe {
        ok(cvc_event_create(0, 0, &mut event));
        ok(cvc_event_record(event, first));
    }
    let handles = Shared((event, idle));
    let elsewhere = Elsewhere::at(Call::EventRecord, Moment::Before, move || {
        let (event, idle) = handles.get();
        plan("stream_capture", 0, 1, CVC_STATUS_DEVICE_ERROR);
        // SAFETY: handles.
        let failed = unsafe { cvc_event_record(event, idle) };
        assert_eq!(failed, CVC_STATUS_DEVICE_ERROR);
    });
    // SAFETY: handles.
    ok(unsafe { cvc_event_record(event, idle) });
    elsewhere.end();
    assert_eq!(end_plan(), 1);
    synchronize(idle);
    // It is about the idle stream; the first one's work is not done.
    // SAFETY: handles.
    ok(unsafe { cvc_event_query(event) });
    // SAFETY: handles.
    ok(unsafe { cvc_copy(reader, tensor, copy) });
    run_all();
    assert_no_races();
    // SAFETY: a handle, destroyed once.
    ok(unsafe { cvc_event_destroy(event) });
    release(tensor);
    release(copy);
    for stream in [first, idle, reader] {
        destroy(stream);
    }
}
