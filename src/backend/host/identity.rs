//! Who a stream handle names: ids, and what a thread remembers of itself and of the streams that it asked for lately.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::registry::{number_of, tagged, Tag};
use crate::backend::StreamIdentity;

const DEVICE_BITS: u32 = 6;
const INSTANCE_BITS: u32 = 20;
const REMEMBERED: usize = 4;

#[derive(Clone, Copy)]
struct Remembered {
    instance: u64,
    destroyed: u64,
    handle: u64,
    identity: StreamIdentity,
}

const NOTHING: Remembered = Remembered {
    instance: 0,
    destroyed: 0,
    handle: 0,
    identity: StreamIdentity { id: 0, device: 0 },
};

// None of these has a destructor: they can be used until the thread's very end, and its end does nothing.
thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
    /// The current device, and the backend that it was chosen on.
    static CURRENT_DEVICE: Cell<(u64, i32)> = const { Cell::new((0, 0)) };
    static LATELY: [Cell<Remembered>; REMEMBERED] =
        const { [const { Cell::new(NOTHING) }; REMEMBERED] };
}

/// One backend's share in the threads' memory.
pub struct Identities {
    /// Tells the backends of a process apart; never 0.
    instance: u64,
    /// How many streams were destroyed: what was remembered before the last one may be wrong.
    destroyed: AtomicU64,
}

impl Identities {
    pub fn new() -> Identities {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Identities {
            instance: NEXT.fetch_add(1, Ordering::Relaxed),
            destroyed: AtomicU64::new(0),
        }
    }

    fn instance_bits(&self) -> u64 {
        self.instance & ((1 << INSTANCE_BITS) - 1)
    }

    /// Of a device's legacy stream.
    pub fn legacy(&self, device: i32) -> StreamIdentity {
        let number = self.instance_bits() << DEVICE_BITS | device as u64;
        StreamIdentity {
            id: tagged(number, Tag::LegacyStream),
            device,
        }
    }

    /// Of the calling thread's own default stream of a device.
    pub fn per_thread(&self, device: i32) -> StreamIdentity {
        let thread_and_instance = thread_number() << INSTANCE_BITS | self.instance_bits();
        let number = thread_and_instance << DEVICE_BITS | device as u64;
        StreamIdentity {
            id: tagged(number, Tag::PerThreadStream),
            device,
        }
    }

    /// The calling thread's.
    pub fn current_device(&self) -> i32 {
        let (instance, device) = CURRENT_DEVICE.get();
        if instance == self.instance {
            device
        } else {
            0
        }
    }

    pub fn set_current_device(&self, device: i32) {
        CURRENT_DEVICE.set((self.instance, device));
    }

    /// What `look_up` says of a created stream, or said lately, as long as no stream was destroyed since.
    pub fn created(
        &self,
        handle: u64,
        look_up: impl FnOnce() -> Option<StreamIdentity>,
    ) -> Option<StreamIdentity> {
        // Read before looking up: a destruction in between makes what is remembered out of date at once.
        let destroyed = self.destroyed.load(Ordering::Acquire);
        LATELY.with(|lately| {
            let place = &lately[number_of(handle) as usize % REMEMBERED];
            let remembered = place.get();
            if remembered.handle == handle
                && remembered.instance == self.instance
                && remembered.destroyed == destroyed
            {
                return Some(remembered.identity);
            }
            let identity = look_up()?;
            place.set(Remembered {
                instance: self.instance,
                destroyed,
                handle,
                identity,
            });
            Some(identity)
        })
    }

    /// To be called once a destroyed stream can no longer be looked up.
    pub fn forget(&self) {
        self.destroyed.fetch_add(1, Ordering::Release);
    }
}

/// Of the calling thread, from 1.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if THREAD.get() == 0 {
        THREAD.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    THREAD.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::registry::new_handle;
    use std::collections::HashSet;

    #[test]
    fn handles_and_ids_are_never_the_same() {
        let mut seen = HashSet::from([0, 1, 2, u64::MAX]);
        for tag in [Tag::Stream, Tag::Event, Tag::Latch] {
            (0..100).for_each(|_| assert!(seen.insert(new_handle(tag))));
        }
        for _ in 0..4 {
            let identities = Identities::new();
            for device in 0..64 {
                assert!(seen.insert(identities.legacy(device).id));
                assert!(seen.insert(identities.per_thread(device).id));
                std::thread::scope(|scope| {
                    let other = scope.spawn(|| identities.per_thread(device).id);
                    assert!(seen.insert(other.join().unwrap()));
                });
            }
        }
    }

    #[test]
    fn what_is_remembered_ends_with_the_next_destruction_and_is_one_backends() {
        let (one, other) = (Identities::new(), Identities::new());
        let handles: Vec<u64> = (0..3 * REMEMBERED)
            .map(|_| new_handle(Tag::Stream))
            .collect();
        let of = |handle| StreamIdentity {
            id: handle,
            device: 1,
        };
        for handle in &handles {
            assert_eq!(one.created(*handle, || None), None);
            assert_eq!(
                one.created(*handle, || Some(of(*handle))),
                Some(of(*handle))
            );
            assert_eq!(one.created(*handle, || None), Some(of(*handle)));
            assert_eq!(other.created(*handle, || None), None);
        }
        let last = handles.len() - 1;
        other.forget();
        assert_eq!(one.created(handles[last], || None), Some(of(handles[last])));
        one.forget();
        for handle in &handles {
            assert_eq!(one.created(*handle, || None), None);
        }
    }
}
