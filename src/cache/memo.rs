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
    /// The thread's current device where the words say that, else -1.
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
    use crate::cache::table::{Request, Resolved};
    use crate::{cache, object, timeline};

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

    /// Common shapes spread over all places: sizes that are multiples of 8, and numbers without a pattern.
    #[test]
    fn requests_spread_over_all_places() {
        let mut places = [[0; MEMOS]; 2];
        let mut next = 1u64;
        for number in 0..1600u64 {
            let mut words = [0; MEMO_WORDS];
            words[2..6].copy_from_slice(&[1, 8 * (number % 40), 8 * (number / 40), 3]);
            places[0][request(&words).place()] += 1;
            for word in &mut words[2..6] {
                // Knuth's MMIX generator; its high bits are the good ones.
                next = next
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                *word = next >> 32;
            }
            places[1][request(&words).place()] += 1;
        }
        for counts in places {
            assert!(
                counts.iter().all(|count| (130..280).contains(count)),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn a_request_is_recalled_until_anything_about_it_differs() {
        object::install_hooks();
        let cache = object::create_cache(Some(1 << 20))
            .expect("there are slots")
            .0;
        let handle = timeline::create(0, false).expect("the host backend makes streams");
        let stream = timeline::resolve(handle, 0).expect("a created stream is known");
        let words = [7; MEMO_WORDS];
        let same = RawRequest {
            words: &words,
            cache: 0x15,
            stream: 0x15,
            current_device: 0x15,
            epoch: 0x15,
        };
        let dims = [4, 5];
        let plain = Request {
            head: [1; 5],
            dims: &dims,
        };
        let resolve = || {
            Ok(Resolved {
                class: [1; 3],
                exact: [4u64, 5].into_iter().collect(),
                bytes: 512,
                align: 512,
            })
        };
        let acquired = cache::acquire(cache, 0, &plain, Some(stream), resolve);
        let entry = acquired.expect("there is memory").entry;
        // SAFETY: the entry is live and this test's alone, and released once.
        unsafe {
            note(&same, entry, Some(stream));
            assert_eq!(recall(&same), None, "it is in use");
            cache::release(cache, entry);
        }
        // Other bits of the same words, and differences that could make up for each other.
        for flips in [
            [0x2a, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1],
            [0, 4, 0, 0],
            [0, 0, 2, 0],
            [0, 0, 0, 8],
            [0, 1, 0, 1],
        ] {
            let other = RawRequest {
                words: &words,
                cache: same.cache ^ flips[0],
                stream: same.stream ^ flips[1] as usize,
                current_device: same.current_device ^ flips[2] as i32,
                epoch: same.epoch ^ flips[3],
            };
            assert_eq!(recall(&other), None, "{flips:x?}");
        }
        assert_eq!(recall(&same), Some(entry));
        // SAFETY: as above; `recall` has made it live.
        unsafe { cache::release(cache, entry) };
    }
}
