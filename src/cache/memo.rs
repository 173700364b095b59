//! The requests that a thread made last, word for word, with what each led to: a repeated one skips every check.
//!
//! A memo is only ever used by the thread that wrote it, and dropped when that thread leaves its index.

use super::device_index::DeviceIndex;
use super::entry::Entry;
use super::index::Index;
use super::table::Shape;
use super::thread;
use crate::timeline::Stream;

/// Words of a raw request: whatever the caller passed.
pub const MEMO_WORDS: usize = 22;
const MEMOS: usize = 8;

/// A request as it came: the words of its struct, which cache and which stream.
pub struct RawRequest<'a> {
    pub words: &'a [u64; MEMO_WORDS],
    pub cache: u64,
    pub stream: usize,
    /// The thread's current device where the words or the stream mean that, else -1.
    pub current_device: i32,
    /// `timeline::epoch` from before the stream was looked up.
    pub epoch: u64,
}

#[derive(Clone, Copy)]
struct Memo {
    words: [u64; MEMO_WORDS],
    cache: u64,
    stream: usize,
    current_device: i32,
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
            current_device: -1,
            epoch: 0,
            resolved: None,
            index: std::ptr::null(),
            device: std::ptr::null_mut(),
            shape: std::ptr::null_mut(),
            sweeps: 0,
        }; MEMOS],
    );
}

impl RawRequest<'_> {
    /// Word for word. The words beyond the fourth dimension are looked at only where the rank reaches them; written out,
    /// since a call of memcmp costs more than these few words.
    #[inline(always)]
    fn has_words(&self, memo: &[u64; MEMO_WORDS]) -> bool {
        let (m, w) = (memo, self.words);
        let head = (m[0] ^ w[0]) | (m[1] ^ w[1]);
        let dims = (m[2] ^ w[2]) | (m[3] ^ w[3]) | (m[4] ^ w[4]) | (m[5] ^ w[5]);
        let rest =
            (m[17] ^ w[17]) | (m[18] ^ w[18]) | (m[19] ^ w[19]) | (m[20] ^ w[20]) | (m[21] ^ w[21]);
        let rank = w[1] >> 32;
        head | dims | rest == 0 && (rank <= 4 || m[6..17] == w[6..17])
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
    thread::with_memos(|memos| {
        let memo = &memos.0[request.place()];
        let others = (memo.cache ^ request.cache)
            | (memo.stream ^ request.stream) as u64
            | (memo.current_device ^ request.current_device) as u64
            | (memo.epoch ^ request.epoch);
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
    if resolved.is_some_and(|stream| !stream.is_known_by_handle()) {
        // The handle of somebody else's stream may name another one next time.
        return;
    }
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
            current_device: request.current_device,
            epoch: request.epoch,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &[u64; MEMO_WORDS]) -> RawRequest<'_> {
        RawRequest {
            words,
            cache: 1,
            stream: 2,
            current_device: -1,
            epoch: 3,
        }
    }

    /// A request is the same where each word that counts is: those of dimensions beyond the rank do not.
    #[test]
    fn every_word_that_counts_is_compared() {
        for rank in [0u64, 1, 4, 5, 15] {
            let mut words = [0; MEMO_WORDS];
            for (place, word) in words.iter_mut().enumerate() {
                *word = 0x55 << place;
            }
            words[1] = rank << 32 | 7;
            assert!(request(&words).has_words(&words), "rank {rank}");
            let counts = |place: usize| !(6..17).contains(&place) || rank > 4;
            for place in 0..MEMO_WORDS {
                // A bit more, a bit less, and no bit in common.
                for changed in [words[place] | 1 << 63, words[place] & !1, !words[place]] {
                    let mut other = words;
                    other[place] = changed;
                    // Whose rank is another one is another request in any case.
                    if other[place] != words[place] {
                        let same = request(&words).has_words(&other);
                        assert_eq!(same, !counts(place), "word {place} of rank {rank}");
                    }
                }
                // Two differences do not make up for each other.
                for second in (0..place).filter(|second| counts(*second)) {
                    let mut other = words;
                    other[place] ^= 1 << 40;
                    other[second] ^= 1 << 40;
                    let same = request(&words).has_words(&other);
                    assert!(!same, "words {place} and {second} of rank {rank}");
                }
            }
        }
    }

    /// Shapes spread over all places: sizes that are multiples of 8, and any two dimensions that have no pattern.
    #[test]
    fn requests_spread_over_all_places() {
        let mut next = 1u64;
        let mut number = || {
            // Knuth's MMIX generator; its high bits are the good ones.
            next = next.wrapping_mul(6_364_136_223_846_793_005);
            next = next.wrapping_add(1_442_695_040_888_963_407);
            next >> 32
        };
        let mut check = |varies: [usize; 2], step: u64| {
            let mut counts = [0; MEMOS];
            for _ in 0..1600 {
                let mut words = [0; MEMO_WORDS];
                words[2..6].copy_from_slice(&[1, 480, 640, 3]);
                for place in varies {
                    words[place] = number() * step;
                }
                counts[request(&words).place()] += 1;
            }
            let even = counts.iter().all(|count| (130..280).contains(count));
            assert!(even, "dimensions {varies:?}: {counts:?}");
        };
        check([3, 4], 8);
        for first in 2..6 {
            for second in 2..first {
                check([first, second], 1);
            }
        }
    }
}
