//! The requests that a thread made last, word for word, with what each led to: a repeated one skips every check.
//!
//! A memo is only ever used by the thread that wrote it, and dropped when that thread leaves its index.

use super::device_index::DeviceIndex;
use super::entry::Entry;
use super::index::Index;
use super::table::Shape;
use super::thread;
use crate::timeline::{self, Stream};

/// Words of a raw request: whatever the caller passed.
pub const MEMO_WORDS: usize = 22;
const MEMOS: usize = 8;

/// A request as it came: the words of its struct, which cache and which stream.
pub struct RawRequest<'a> {
    pub words: &'a [u64; MEMO_WORDS],
    pub cache: u64,
    pub stream: usize,
}

#[derive(Clone, Copy)]
struct Memo {
    words: [u64; MEMO_WORDS],
    cache: u64,
    stream: usize,
    /// Of the timeline, when `resolved` was looked up.
    epoch: u64,
    resolved: Option<&'static Stream>,
    index: *const Index,
    device: *mut DeviceIndex,
    shape: *mut Shape,
    sweeps: u64,
}

pub struct Memos([Memo; MEMOS]);

impl Memos {
    pub const EMPTY: Memos = Memos(
        [Memo {
            words: [0; MEMO_WORDS],
            cache: 0,
            stream: 0,
            epoch: 0,
            resolved: None,
            index: std::ptr::null(),
            device: std::ptr::null_mut(),
            shape: std::ptr::null_mut(),
            sweeps: 0,
        }; MEMOS],
    );
}

/// Where the words of a tensor's descriptor lie: its size, device and rank, then 15 dimensions, then the rest.
const RANK_WORD: usize = 1;
const FIRST_DIM: usize = 2;
const REST: usize = 17;

impl RawRequest<'_> {
    /// Compares all but the dimensions that the rank leaves out. `memo` is of a request that was valid.
    #[inline(always)]
    fn has_words(&self, memo: &[u64; MEMO_WORDS]) -> bool {
        let (head, words) = (memo[RANK_WORD], self.words);
        if head != words[RANK_WORD] || memo[0] != words[0] {
            return false;
        }
        let rank = (head >> 32) as usize & 0xf;
        let mut differ = 0;
        for place in REST..MEMO_WORDS {
            differ |= memo[place] ^ words[place];
        }
        for (dim, same) in words[FIRST_DIM..FIRST_DIM + rank]
            .iter()
            .zip(&memo[FIRST_DIM..])
        {
            differ |= dim ^ same;
        }
        differ == 0
    }

    /// The dimensions' words decide the place.
    #[inline(always)]
    fn place(&self) -> usize {
        let [_, _, first, second, third, fourth, ..] = *self.words;
        let mixed =
            first.wrapping_mul(31) ^ second.wrapping_mul(7) ^ third ^ fourth.wrapping_mul(5);
        (mixed ^ (mixed >> 3)) as usize % MEMOS
    }
}

/// An idle entry for a request that this thread made before, ready for its stream. Makes no driver call.
#[inline(always)]
pub fn recall(request: &RawRequest) -> Option<*mut Entry> {
    let epoch = timeline::epoch();
    thread::with_memos(|memos| {
        let memo = &memos.0[request.place()];
        let others = (memo.cache ^ request.cache)
            | (memo.stream ^ request.stream) as u64
            | (memo.epoch ^ epoch);
        if others != 0 || memo.index.is_null() || !request.has_words(&memo.words) {
            return None;
        }
        // SAFETY: the index is this thread's own while the memo stands, so its device lives; the shape lives while no
        // sweep has happened.
        unsafe {
            let index = &*memo.index;
            if index.has_remote() {
                return None;
            }
            let _state = index.lock();
            let device = &mut *memo.device;
            if device.sweeps != memo.sweeps {
                return None;
            }
            device.take_ready(memo.shape, memo.resolved)
        }
    })
}

/// Notes what a request led to: the live entry that was just acquired for it.
///
/// # Safety
/// `entry` is live, the caller's alone, and of the given device.
#[cold]
pub unsafe fn note(request: &RawRequest, entry: *mut Entry, resolved: Option<&'static Stream>) {
    // SAFETY: the caller's promise; indexes are never freed.
    unsafe {
        let index = (*entry).owner;
        if !thread::owns(index) || (*entry).bucket.is_null() {
            return;
        }
        let mut state = (*index).lock();
        let Some(device) = state.device((*entry).device) else {
            return;
        };
        let memo = Memo {
            words: *request.words,
            cache: request.cache,
            stream: request.stream,
            epoch: timeline::epoch(),
            resolved,
            index,
            device: std::ptr::from_mut(device),
            shape: (*(*entry).bucket).shape,
            sweeps: device.sweeps,
        };
        drop(state);
        thread::with_memos(|memos| memos.0[request.place()] = memo);
    }
}
