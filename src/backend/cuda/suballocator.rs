//! Small blocks inside chunks of one size: best fit, coalescing, and one empty chunk kept in hand. Addresses only.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, Status};
use crate::fail;

/// Chunks, the free ranges inside them, and how much of each is in use.
#[derive(Default)]
pub struct Suballocator {
    /// Base address to (length, bytes in use).
    chunks: BTreeMap<u64, (u64, u64)>,
    /// Start to length. A range never crosses from one chunk into the next.
    free: BTreeMap<u64, u64>,
    /// The same ranges as (length, start), for the best fit.
    by_length: BTreeSet<(u64, u64)>,
    /// The empty chunk that is kept.
    spare: Option<u64>,
}

impl Suballocator {
    /// The lowest of the smallest free ranges that hold `bytes`; `None` where a chunk must be added first.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let &(length, start) = self.by_length.range((bytes, 0)..).next()?;
        let base = self.chunk_of(start)?;
        self.remove_free(start, length);
        if length > bytes {
            self.insert_free(start + bytes, length - bytes);
        }
        if let Some((_, used)) = self.chunks.get_mut(&base) {
            *used += bytes;
        }
        if self.spare == Some(base) {
            self.spare = None;
        }
        Some(start)
    }

    /// Adds memory at `base`, which must overlap no other chunk, and takes its first `bytes`. Not from elsewhere, whatever
    /// others have given back meanwhile: a chunk that was never used would never run empty.
    ///
    /// Errors: `Internal` where the chunk has no room; nothing changes then.
    pub fn add_chunk(&mut self, base: u64, length: u64, bytes: u64) -> Result<u64> {
        if bytes > length {
            fail!(
                Status::Internal,
                "a chunk of {length} bytes has no room for {bytes} bytes"
            );
        }
        self.chunks.insert(base, (length, bytes));
        if length > bytes {
            self.insert_free(base + bytes, length - bytes);
        }
        Ok(base)
    }

    /// Takes a block back. Gives the chunk, base and length, that is no longer needed, if there is one now.
    ///
    /// Errors: `Internal` for what is no block in use; nothing changes then.
    pub fn give(&mut self, start: u64, bytes: u64) -> Result<Option<(u64, u64)>> {
        let Some(base) = self
            .chunk_of(start)
            .filter(|base| self.is_used(*base, start, bytes))
        else {
            fail!(
                Status::Internal,
                "{bytes} bytes at {start:#x} were given back, which are not in use"
            );
        };
        let (chunk_length, used) = self.chunks[&base];
        let (mut first, mut end) = (start, start + bytes);
        if let Some((&before, &length)) = self.free.range(base..start).next_back() {
            if before + length == start {
                self.remove_free(before, length);
                first = before;
            }
        }
        if end < base + chunk_length {
            if let Some(&length) = self.free.get(&end) {
                self.remove_free(end, length);
                end += length;
            }
        }
        self.insert_free(first, end - first);
        self.chunks.insert(base, (chunk_length, used - bytes));
        if used > bytes {
            return Ok(None);
        }
        if self.spare.is_none() {
            self.spare = Some(base);
            return Ok(None);
        }
        self.remove_free(base, chunk_length);
        self.chunks.remove(&base);
        Ok(Some((base, chunk_length)))
    }

    /// Gives the empty chunk that was kept, if there is one.
    pub fn take_spare(&mut self) -> Option<(u64, u64)> {
        let base = self.spare.take()?;
        let (length, _) = self.chunks.remove(&base)?;
        self.remove_free(base, length);
        Some((base, length))
    }

    fn chunk_of(&self, address: u64) -> Option<u64> {
        let (&base, &(length, _)) = self.chunks.range(..=address).next_back()?;
        (address - base < length).then_some(base)
    }

    /// Whether the whole range lies in the chunk and no byte of it is free.
    fn is_used(&self, base: u64, start: u64, bytes: u64) -> bool {
        let (length, _) = self.chunks[&base];
        let Some(end) = start.checked_add(bytes) else {
            return false;
        };
        let free_before = self.free.range(..end).next_back();
        bytes > 0
            && end <= base + length
            && free_before.is_none_or(|(&free, &free_length)| free + free_length <= start)
    }

    fn insert_free(&mut self, start: u64, length: u64) {
        self.free.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove_free(&mut self, start: u64, length: u64) {
        self.free.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 2 << 20;

    /// A source of chunks whose neighbours touch, so that ranges could merge across them by mistake.
    #[derive(Default)]
    struct Source {
        held: BTreeSet<u64>,
    }

    impl Source {
        fn chunk(&mut self) -> u64 {
            let base = (1..)
                .map(|n| n * CHUNK)
                .find(|base| !self.held.contains(base));
            let base = base.expect("there are enough numbers");
            self.held.insert(base);
            base
        }
    }

    #[test]
    fn random_blocks_never_overlap_and_everything_comes_back() {
        let mut random = 0x1234_5678_9abc_def1u64;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut suballocator = Suballocator::default();
        let mut source = Source::default();
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut by_start: BTreeMap<u64, u64> = BTreeMap::new();
        for step in 0..60_000 {
            // Grows and shrinks by turns, so that chunks empty out.
            let grow = if step / 3000 % 2 == 0 { 60 } else { 35 };
            if next(100) < grow || live.is_empty() {
                let granules = if next(4) == 0 { 2000 } else { 40 };
                let bytes = (1 + next(granules)) * 512;
                let start = match suballocator.take(bytes) {
                    Some(start) => start,
                    None => suballocator
                        .add_chunk(source.chunk(), CHUNK, bytes)
                        .expect("a fresh chunk holds every size"),
                };
                assert_eq!(start % 512, 0);
                assert_eq!(start / CHUNK, (start + bytes - 1) / CHUNK, "crosses chunks");
                assert!(source.held.contains(&(start / CHUNK * CHUNK)));
                let before = by_start.range(..=start).next_back();
                assert!(before.is_none_or(|(at, length)| at + length <= start));
                let after = by_start.range(start..).next();
                assert!(after.is_none_or(|(at, _)| start + bytes <= *at));
                by_start.insert(start, bytes);
                live.push((start, bytes));
            } else {
                let (start, bytes) = live.swap_remove(next(live.len() as u64) as usize);
                by_start.remove(&start);
                if let Some((base, length)) = suballocator.give(start, bytes).expect("in use") {
                    assert_eq!(length, CHUNK);
                    assert!(by_start.range(base..base + length).next().is_none());
                    assert!(source.held.remove(&base));
                }
            }
            let used: u64 = suballocator.chunks.values().map(|(_, used)| used).sum();
            let free: u64 = suballocator.free.values().sum();
            assert_eq!(used, by_start.values().sum::<u64>());
            assert_eq!(used + free, source.held.len() as u64 * CHUNK);
            assert_eq!(suballocator.free.len(), suballocator.by_length.len());
        }
        for (start, bytes) in live {
            if let Some((base, _)) = suballocator.give(start, bytes).expect("in use") {
                source.held.remove(&base);
            }
        }
        assert_eq!(source.held.len(), 1, "one empty chunk is kept");
        let (spare, _) = suballocator.take_spare().expect("the kept chunk");
        assert!(source.held.remove(&spare));
        assert!(suballocator.free.is_empty() && suballocator.chunks.is_empty());
    }

    #[test]
    fn what_is_not_in_use_is_refused_and_nothing_changes() {
        let mut suballocator = Suballocator::default();
        let block = suballocator.add_chunk(CHUNK, CHUNK, 1024);
        let block = block.expect("there is room");
        let larger = suballocator.add_chunk(2 * CHUNK, CHUNK, CHUNK + 512);
        assert!(larger.is_err());
        for (start, bytes) in [
            (block, 1536),
            (block + 1024, 512),
            (CHUNK - 512, 512),
            (block, 0),
            (5, 512),
            (block, u64::MAX),
        ] {
            let error = suballocator.give(start, bytes).expect_err("not in use");
            assert_eq!(error.status, Status::Internal);
        }
        assert_eq!(suballocator.give(block, 1024), Ok(None));
        assert!(suballocator.give(block, 1024).is_err(), "given back twice");
        assert_eq!(suballocator.take(CHUNK), Some(CHUNK), "whole again");
    }

    /// Two threads found no room, and both brought a chunk.
    #[test]
    fn of_chunks_that_came_at_once_one_is_kept() {
        let mut suballocator = Suballocator::default();
        assert_eq!(suballocator.take(512), None);
        let first = suballocator.add_chunk(CHUNK, CHUNK, 512);
        let given = suballocator.give(first.expect("there is room"), 512);
        assert_eq!(given, Ok(None), "it is kept");
        let second = suballocator.add_chunk(2 * CHUNK, CHUNK, 512);
        let given = suballocator.give(second.expect("there is room"), 512);
        assert_eq!(given, Ok(Some((2 * CHUNK, CHUNK))));
        assert_eq!(suballocator.take_spare(), Some((CHUNK, CHUNK)));
        assert!(suballocator.chunks.is_empty() && suballocator.free.is_empty());
    }
}
