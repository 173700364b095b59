//! Which offsets of a device's memory are free: best fit with coalescing, and which pages are worth giving back.

use std::collections::{BTreeMap, BTreeSet};

/// Offsets alone; touches no memory. The same sequence of calls gives the same offsets.
pub struct Ranges {
    capacity: u64,
    page: u64,
    used: u64,
    /// By offset; neighbours are always joined.
    free: BTreeMap<u64, FreeRange>,
    /// The free ranges as (length, offset): the first that fits is the smallest, and of equals the lowest.
    by_length: BTreeSet<(u64, u64)>,
    /// Offset to length.
    live: BTreeMap<u64, u64>,
}

/// `dirty` bytes of it were handed out since its pages last went back; they lie in `dirty_begin..dirty_end`.
#[derive(Clone, Copy)]
struct FreeRange {
    length: u64,
    dirty: u64,
    dirty_begin: u64,
    dirty_end: u64,
}

/// Pages go back once a free range has this much to give: a system call for less costs more than the bytes are worth. So
/// what is free but resident is less than this, plus two pages, for each free range.
const RELEASE_BYTES: u64 = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
pub enum FreeError {
    /// Nothing that is handed out begins there.
    Unknown,
    /// What begins there has this length.
    Size(u64),
}

impl Ranges {
    /// `length` offsets, of which at most `capacity` are handed out at a time.
    pub fn new(length: u64, capacity: u64, page: u64) -> Ranges {
        let mut ranges = Ranges {
            capacity,
            page,
            used: 0,
            free: BTreeMap::new(),
            by_length: BTreeSet::new(),
            live: BTreeMap::new(),
        };
        let untouched = FreeRange {
            length,
            dirty: 0,
            dirty_begin: 0,
            dirty_end: 0,
        };
        ranges.insert(0, untouched);
        ranges
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    pub fn free_bytes(&self) -> u64 {
        self.capacity - self.used
    }

    /// The offset of `bytes` bytes; `None` where there is no room.
    pub fn allocate(&mut self, bytes: u64) -> Option<u64> {
        if bytes > self.free_bytes() {
            return None;
        }
        let (_, offset) = *self.by_length.range((bytes, 0)..).next()?;
        let range = self.remove(offset)?;
        if range.length > bytes {
            let rest = offset + bytes;
            let dirty_begin = range.dirty_begin.max(rest);
            let dirty_end = range.dirty_end.max(dirty_begin);
            let rest_range = FreeRange {
                length: range.length - bytes,
                dirty: range.dirty.min(dirty_end - dirty_begin),
                dirty_begin,
                dirty_end,
            };
            self.insert(rest, rest_range);
        }
        self.live.insert(offset, bytes);
        self.used += bytes;
        Some(offset)
    }

    /// The whole pages that should go back to the system now, as begin and end.
    pub fn free(&mut self, offset: u64, bytes: u64) -> Result<Option<(u64, u64)>, FreeError> {
        match self.live.get(&offset) {
            None => return Err(FreeError::Unknown),
            Some(length) if *length != bytes => return Err(FreeError::Size(*length)),
            Some(_) => {}
        }
        self.live.remove(&offset);
        self.used -= bytes;

        let mut begin = offset;
        let mut joined = FreeRange {
            length: bytes,
            dirty: bytes,
            dirty_begin: offset,
            dirty_end: offset + bytes,
        };
        let before = self.free.range(..offset).next_back();
        let before = before.map(|(start, range)| (*start, range.length));
        if let Some((start, length)) = before {
            if start + length == offset {
                begin = start;
                joined.join(self.remove(start));
            }
        }
        joined.join(self.remove(offset + bytes));

        let mut pages = None;
        if joined.dirty >= RELEASE_BYTES {
            let end = begin + joined.length;
            let first = begin.next_multiple_of(self.page);
            let last = end / self.page * self.page;
            let first = first.max(joined.dirty_begin / self.page * self.page);
            let last = last.min(joined.dirty_end.next_multiple_of(self.page));
            if first < last {
                pages = Some((first, last));
            }
            joined.dirty = 0;
            joined.dirty_begin = begin;
            joined.dirty_end = begin;
        }
        self.insert(begin, joined);
        Ok(pages)
    }

    fn insert(&mut self, offset: u64, range: FreeRange) {
        self.by_length.insert((range.length, offset));
        self.free.insert(offset, range);
    }

    fn remove(&mut self, offset: u64) -> Option<FreeRange> {
        let range = self.free.remove(&offset)?;
        self.by_length.remove(&(range.length, offset));
        Some(range)
    }
}

impl FreeRange {
    fn join(&mut self, neighbour: Option<FreeRange>) {
        let Some(neighbour) = neighbour else { return };
        self.length += neighbour.length;
        if neighbour.dirty > 0 {
            self.dirty += neighbour.dirty;
            self.dirty_begin = self.dirty_begin.min(neighbour.dirty_begin);
            self.dirty_end = self.dirty_end.max(neighbour.dirty_end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn assert_consistent(ranges: &Ranges, length: u64) {
        let mut pieces: Vec<(u64, u64, bool)> = Vec::new();
        pieces.extend(ranges.live.iter().map(|(o, l)| (*o, *l, true)));
        pieces.extend(ranges.free.iter().map(|(o, r)| (*o, r.length, false)));
        pieces.sort_unstable();
        let mut end = 0;
        for (offset, length, _) in &pieces {
            assert_eq!(*offset, end);
            end += length;
        }
        assert_eq!(end, length);
        let apart = |pair: &[(u64, u64, bool)]| pair[0].2 || pair[1].2;
        assert!(pieces.windows(2).all(apart), "free neighbours not joined");
        assert_eq!(ranges.used, ranges.live.values().sum::<u64>());
        assert_eq!(ranges.by_length.len(), ranges.free.len());
        for (offset, range) in &ranges.free {
            assert!(ranges.by_length.contains(&(range.length, *offset)));
            assert!(range.dirty <= range.dirty_end - range.dirty_begin);
            assert!(range.dirty < RELEASE_BYTES);
        }
    }

    #[test]
    fn the_smallest_range_that_fits_is_taken_and_the_lowest_of_equals() {
        let mut ranges = Ranges::new(1 << 20, 1 << 18, PAGE);
        let sizes = [4096, 512, 2048, 512, 1024, 512, 2048, 512];
        let offsets: Vec<u64> = sizes.map(|bytes| ranges.allocate(bytes).unwrap()).to_vec();
        for index in [0, 2, 4, 6] {
            ranges.free(offsets[index], sizes[index]).unwrap();
        }
        assert_eq!(ranges.allocate(1536), Some(offsets[2]));
        assert_eq!(ranges.allocate(1024), Some(offsets[4]));
        assert_eq!(ranges.allocate(2048), Some(offsets[6]));
        assert_eq!(ranges.allocate(3072), Some(offsets[0]));
        assert_consistent(&ranges, 1 << 20);
    }

    #[test]
    fn neighbours_are_joined_on_both_sides() {
        let mut ranges = Ranges::new(4096, 4096, PAGE);
        let offsets: Vec<u64> = (0..8).map(|_| ranges.allocate(512).unwrap()).collect();
        for index in [1, 3, 2] {
            ranges.free(offsets[index], 512).unwrap();
            assert_consistent(&ranges, 4096);
        }
        assert_eq!(ranges.allocate(2048), None);
        assert_eq!(ranges.allocate(1536), Some(offsets[1]));
        for index in [0, 4, 5, 6, 7] {
            ranges.free(offsets[index], 512).unwrap();
        }
        ranges.free(offsets[1], 1536).unwrap();
        assert_eq!(ranges.free.len(), 1);
        assert_eq!(ranges.allocate(4096), Some(0));
    }

    #[test]
    fn only_whole_free_pages_go_back_and_each_goes_back_in_time() {
        let length = 1 << 22;
        let mut ranges = Ranges::new(length, length, PAGE);
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut resident = vec![false; (length / PAGE) as usize];
        let mut state = 1u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(3);
            let random = (state >> 33) as usize;
            let grow = if step / 2000 % 2 == 0 { 2 } else { 5 };
            if random % grow == 0 || live.is_empty() {
                let bytes = (random as u64 % 200 + 1) * 512;
                let Some(offset) = ranges.allocate(bytes) else {
                    continue;
                };
                live.push((offset, bytes));
                let pages = offset / PAGE..(offset + bytes).div_ceil(PAGE);
                pages.for_each(|page| resident[page as usize] = true);
            } else {
                let (offset, bytes) = live.swap_remove(random % live.len());
                if let Some((begin, end)) = ranges.free(offset, bytes).unwrap() {
                    assert!(begin % PAGE == 0 && end % PAGE == 0);
                    for (start, bytes) in &live {
                        assert!(start + bytes <= begin || end <= *start, "page in use");
                    }
                    let pages = begin / PAGE..end / PAGE;
                    pages.for_each(|page| resident[page as usize] = false);
                }
            }
            if step % 500 == 0 {
                assert_consistent(&ranges, length);
            }
        }
        for (offset, bytes) in live.drain(..) {
            if let Some((begin, end)) = ranges.free(offset, bytes).unwrap() {
                (begin / PAGE..end / PAGE).for_each(|page| resident[page as usize] = false);
            }
        }
        assert_consistent(&ranges, length);
        let left = resident.iter().filter(|page| **page).count() as u64;
        assert!(left * PAGE < RELEASE_BYTES + 2 * PAGE, "{left} pages");
    }

    #[test]
    fn a_refused_free_changes_nothing() {
        let mut ranges = Ranges::new(8192, 8192, PAGE);
        assert_eq!(ranges.allocate(1024), Some(0));
        assert_eq!(ranges.free(512, 512), Err(FreeError::Unknown));
        assert_eq!(ranges.free(0, 512), Err(FreeError::Size(1024)));
        assert_eq!(ranges.free_bytes(), 7168);
        assert_eq!(ranges.free(0, 1024), Ok(None));
        assert_eq!(ranges.free(0, 1024), Err(FreeError::Unknown));
    }
}
