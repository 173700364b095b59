//! The lock-free structures under shuttle: thousands of interleavings of a few threads, in each of which nothing may be
//! lost, doubled or taken for something else. The sources are compiled a second time here, over shuttle's atomics.

mod atomics {
    pub use shuttle::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
}
// Each test uses a part of them.
#[allow(dead_code)]
#[path = "../src/cache/remote.rs"]
mod remote;
#[allow(dead_code)]
#[path = "../src/object/word.rs"]
mod word;

/// Named so that the runs under sanitizers can leave it out: they cannot follow shuttle's switches from stack to stack.
mod under_shuttle {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use shuttle::sync::{Arc, Mutex};
    use shuttle::thread;

    use super::remote::{Linked, RemoteList};
    use super::word::{Change, References, Word};

    /// Every order for small programs would be too many: so many, half of them with few and well placed switches.
    fn check(body: impl Fn() + Send + Sync + Clone + 'static) {
        const RUNS: usize = 4000;
        shuttle::check_random(body.clone(), RUNS);
        shuttle::check_pct(body, RUNS, 3);
    }

    // ---- The list of remote releases ----

    struct Node {
        next: *mut Node,
        number: usize,
    }

    // SAFETY: the field is the node's.
    unsafe impl Linked for Node {
        fn next(entry: *mut Node) -> *mut *mut Node {
            // SAFETY: an address is taken, nothing is read.
            unsafe { &raw mut (*entry).next }
        }
    }

    /// A list with all its nodes, which live as long: a mistake that is planted here makes no use of freed ones.
    struct Shared {
        list: RemoteList<Node>,
        nodes: std::sync::Mutex<Vec<*mut Node>>,
    }

    // SAFETY: a node is touched only by who has it.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn new() -> Shared {
            Shared {
                list: RemoteList::new(),
                nodes: std::sync::Mutex::default(),
            }
        }

        /// Whether the list took a node of that number.
        fn push(&self, number: usize) -> bool {
            let next = std::ptr::null_mut();
            let node = Box::into_raw(Box::new(Node { next, number }));
            self.nodes.lock().expect("nobody panicked").push(node);
            // SAFETY: a new node.
            unsafe { self.list.push(node) }
        }

        fn take(&self, close: bool) -> Vec<usize> {
            let nodes = self.list.take(close);
            // SAFETY: what was taken is this call's.
            let numbers = nodes.into_iter().map(|node| unsafe { (*node).number });
            numbers.collect()
        }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            if let Ok(nodes) = self.nodes.get_mut() {
                for node in nodes.drain(..) {
                    // SAFETY: made by `push`, and in nobody's hands any more.
                    drop(unsafe { Box::from_raw(node) });
                }
            }
        }
    }

    #[test]
    fn what_is_left_on_the_list_arrives_once_and_in_order() {
        check(|| {
            let list = Arc::new(Shared::new());
            let pushers: Vec<_> = [10, 20]
                .into_iter()
                .map(|first| {
                    let list = list.clone();
                    thread::spawn(move || {
                        let numbers = first..first + 3;
                        let kept: Vec<_> = numbers.filter(|number| !list.push(*number)).collect();
                        kept
                    })
                })
                .collect();
            let mut taken = Vec::new();
            for _ in 0..2 {
                taken.extend(list.take(false));
                thread::yield_now();
            }
            taken.extend(list.take(true));
            for pusher in pushers {
                let kept = pusher.join().expect("it ends");
                // Once closed, it stays closed.
                taken.extend(kept);
            }
            assert!(!list.list.has_any());
            for first in [10, 20] {
                let own = taken.iter().filter(|number| **number / 10 == first / 10);
                let expected: Vec<_> = (first..first + 3).collect();
                assert_eq!(own.copied().collect::<Vec<_>>(), expected);
            }
        });
    }

    /// An index as `src/cache/mod.rs` ends it: what is counted is taken in by its owner's end, or by the releasing thread
    /// after that; whoever takes in the last one gives the index to another owner.
    struct Life {
        list: Shared,
        /// (entries counted, the owner has ended, how often it was given on)
        state: Mutex<(usize, bool, usize)>,
    }

    impl Life {
        fn take_in(state: &mut (usize, bool, usize), count: usize) -> bool {
            state.0 -= count;
            let over = state.1 && state.0 == 0;
            state.2 += usize::from(over);
            over
        }

        fn release(&self, number: usize) {
            if self.list.push(number) {
                return;
            }
            let mut state = self.state.lock().expect("nobody panicked");
            let over = Life::take_in(&mut state, 1);
            drop(state);
            if over {
                self.next_owner();
            }
        }

        fn end(&self) {
            let mut state = self.state.lock().expect("nobody panicked");
            let taken = self.list.take(true).len();
            state.1 = true;
            let over = Life::take_in(&mut state, taken);
            drop(state);
            if over {
                self.next_owner();
            }
        }

        fn next_owner(&self) {
            self.list.list.reopen();
            assert!(self.list.push(100));
            assert_eq!(self.list.take(false), [100], "it inherits nothing");
        }
    }

    #[test]
    fn a_list_is_opened_anew_once_and_inherits_nothing() {
        check(|| {
            let life = Arc::new(Life {
                list: Shared::new(),
                state: Mutex::new((3, false, 0)),
            });
            let threads: Vec<_> = (0..3)
                .map(|number| {
                    let life = life.clone();
                    thread::spawn(move || life.release(number))
                })
                .collect();
            life.end();
            for thread in threads {
                thread.join().expect("it ends");
            }
            let state = *life.state.lock().expect("nobody panicked");
            assert_eq!(state, (0, true, 1));
        });
    }

    // ---- Handles ----

    /// An object's counts as `src/object` uses them.
    struct Counted {
        word: Word,
        references: References,
        ends: AtomicUsize,
        /// It has ended, and may be opened again.
        spare: Mutex<bool>,
    }

    impl Counted {
        fn open() -> (Arc<Counted>, u64) {
            let object = Counted {
                word: Word::new(),
                references: References::none(),
                ends: AtomicUsize::new(0),
                spare: Mutex::new(true),
            };
            let handle = object.open_again();
            (Arc::new(object), handle.expect("it is new"))
        }

        fn open_again(&self) -> Option<u64> {
            let spare = std::mem::take(&mut *self.spare.lock().expect("nobody panicked"));
            spare.then(|| {
                let handle = self.word.open(2);
                self.references.begin();
                handle
            })
        }

        fn unref(&self) {
            if self.references.remove() {
                self.ends.fetch_add(1, Ordering::Relaxed);
                let before =
                    std::mem::replace(&mut *self.spare.lock().expect("nobody panicked"), true);
                assert!(!before, "it ended twice");
            }
        }

        fn acquire(&self, handle: u64) -> bool {
            if !self.references.try_add() {
                return false;
            }
            let found = self.word.matches(handle);
            if !found {
                self.unref();
            }
            found
        }

        fn retain(&self, handle: u64) -> bool {
            matches!(self.word.change(handle, true), Change::Users(_))
        }

        fn release(&self, handle: u64) -> bool {
            let change = self.word.change(handle, false);
            if change == Change::Users(0) {
                self.unref();
            }
            change != Change::Stale
        }

        /// A handle for one more user, from somebody inside the library who has a reference.
        fn share(&self) -> u64 {
            let (handle, first) = self.word.reopen().expect("there are few users");
            if first {
                self.references.add();
            }
            handle
        }

        fn ends(&self) -> usize {
            self.ends.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn an_object_ends_once_with_its_last_reference() {
        check(|| {
            let (object, handle) = Counted::open();
            let run = |body: fn(&Counted, u64)| {
                let object = object.clone();
                thread::spawn(move || body(&object, handle))
            };
            let threads = [
                // A user who adds one and drops it, if the handle still means something.
                run(|object, handle| {
                    if object.retain(handle) {
                        assert!(object.release(handle), "a reference of its own keeps it");
                    }
                }),
                // A batch that holds it, and hands it out again, while its users come and go.
                run(|object, handle| {
                    if object.acquire(handle) {
                        let shared = object.share();
                        assert!(object.acquire(shared));
                        object.unref();
                        object.unref();
                        assert!(object.release(shared));
                    }
                }),
                run(|object, handle| {
                    if object.acquire(handle) {
                        object.unref();
                    }
                }),
            ];
            assert!(object.release(handle));
            // Others may still have a reference; then so has this look.
            let found = object.acquire(handle);
            assert!(!found || object.ends() == 0);
            for thread in threads {
                thread.join().expect("it ends");
            }
            if found {
                assert_eq!(object.ends(), 0);
                object.unref();
            }
            assert_eq!(object.ends(), 1);
            assert!(!object.references.try_add());
            assert!(!object.word.matches(handle));
        });
    }

    #[test]
    fn a_stale_handle_never_means_the_next_object() {
        check(|| {
            let (object, first) = Counted::open();
            let run = |body: fn(&Counted, u64) -> u64| {
                let object = object.clone();
                thread::spawn(move || body(&object, first))
            };
            let threads = [
                // Two that release it: one of them once too often.
                run(|object, first| u64::from(object.release(first))),
                run(|object, first| u64::from(object.release(first))),
            ];
            let looks = run(|object, first| {
                if object.acquire(first) {
                    object.unref();
                }
                0
            });
            let next = run(|object, first| {
                for _ in 0..4 {
                    if let Some(handle) = object.open_again() {
                        assert_ne!(handle, first);
                        return handle;
                    }
                    thread::yield_now();
                }
                0
            });
            let released = threads
                .into_iter()
                .map(|thread| thread.join().expect("it ends"));
            assert_eq!(
                released.sum::<u64>(),
                1,
                "a handle of one reference is released once"
            );
            looks.join().expect("it ends");
            let next = match next.join().expect("it ends") {
                0 => object.open_again().expect("it has ended"),
                next => next,
            };
            assert!(!object.retain(first) && !object.acquire(first));
            assert!(object.word.matches(next));
            assert!(object.acquire(next));
            object.unref();
            assert!(object.release(next));
            assert_eq!(object.ends(), 2);
        });
    }
}
