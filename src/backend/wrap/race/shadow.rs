//! What was last done to each byte: the latest write, and the reads since.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::clock::StreamNumber;

/// One piece of queued work that touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Of all accesses of the process, from 1.
    pub number: u64,
    pub what: &'static str,
    pub stream: StreamNumber,
    /// The stream's tick that it stands for.
    pub tick: u64,
    pub write: bool,
}

/// An earlier access that is not ordered before the new one, and the bytes of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub earlier: Access,
    pub start: u64,
    pub end: u64,
}

#[derive(Clone)]
struct Cell {
    end: u64,
    writer: Option<Access>,
    readers: SmallVec<[Access; 2]>,
}

/// Bytes that nobody has touched have no cell.
#[derive(Default)]
pub struct Shadow {
    /// By their first byte; they do not overlap.
    cells: BTreeMap<u64, Cell>,
}

impl Shadow {
    /// The first access in these bytes that another one, a write or not, conflicts with and is not ordered after.
    pub fn conflict(
        &self,
        start: u64,
        end: u64,
        write: bool,
        is_before: impl Fn(&Access) -> bool,
    ) -> Option<Conflict> {
        let first = self.cells.range(..start).next_back();
        let rest = self.cells.range(start..end);
        let touched = first.into_iter().chain(rest);
        for (cell_start, cell) in touched.filter(|(_, cell)| cell.end > start) {
            let readers = cell.readers.iter().filter(|_| write);
            let mut earlier = cell.writer.iter().chain(readers);
            if let Some(earlier) = earlier.find(|access| !is_before(access)) {
                return Some(Conflict {
                    earlier: *earlier,
                    start: start.max(*cell_start),
                    end: end.min(cell.end),
                });
            }
        }
        None
    }

    /// Notes an access.
    pub fn note(
        &mut self,
        start: u64,
        end: u64,
        access: Access,
        is_before: impl Fn(&Access) -> bool,
    ) {
        if access.write {
            self.forget(start, end);
            let cell = Cell {
                end,
                writer: Some(access),
                readers: SmallVec::new(),
            };
            self.cells.insert(start, cell);
            return;
        }
        self.split(start);
        self.split(end);
        let mut gaps = Vec::new();
        let mut at = start;
        for (cell_start, cell) in self.cells.range_mut(start..end) {
            if at < *cell_start {
                gaps.push((at, *cell_start));
            }
            at = cell.end;
            // Whoever comes after this read comes after those before it.
            cell.readers.retain(|reader| !is_before(reader));
            cell.readers.push(access);
        }
        if at < end {
            gaps.push((at, end));
        }
        for (start, end) in gaps {
            let cell = Cell {
                end,
                writer: None,
                readers: SmallVec::from_slice(&[access]),
            };
            self.cells.insert(start, cell);
        }
    }

    /// Nobody has touched these bytes.
    pub fn forget(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        let inside: SmallVec<[u64; 8]> = self.cells.range(start..end).map(|cell| *cell.0).collect();
        for start in inside {
            self.cells.remove(&start);
        }
    }

    /// Forgets accesses that everything to come is ordered after.
    pub fn sweep(&mut self, is_over: impl Fn(&Access) -> bool) {
        self.cells.retain(|_, cell| {
            cell.writer = cell.writer.filter(|access| !is_over(access));
            cell.readers.retain(|access| !is_over(access));
            cell.writer.is_some() || !cell.readers.is_empty()
        });
    }

    /// Lets no cell lie on both sides of the address.
    fn split(&mut self, at: u64) {
        if let Some((_, cell)) = self.cells.range_mut(..at).next_back() {
            if cell.end > at {
                let after = cell.clone();
                cell.end = at;
                self.cells.insert(at, after);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(number: u64, write: bool) -> Access {
        Access {
            number,
            what: "work",
            stream: number as u32,
            tick: 1,
            write,
        }
    }

    const NONE: fn(&Access) -> bool = |_| false;

    fn found(shadow: &Shadow, start: u64, end: u64, write: bool) -> Option<(u64, u64, u64)> {
        let conflict = shadow.conflict(start, end, write, NONE);
        conflict.map(|conflict| (conflict.earlier.number, conflict.start, conflict.end))
    }

    #[test]
    fn conflicts_are_found_in_the_bytes_that_both_touch() {
        let mut shadow = Shadow::default();
        shadow.note(100, 200, access(1, true), NONE);
        assert_eq!(found(&shadow, 0, 100, true), None);
        assert_eq!(found(&shadow, 200, 300, true), None);
        assert_eq!(found(&shadow, 150, 160, false), Some((1, 150, 160)));
        assert_eq!(found(&shadow, 50, 300, false), Some((1, 100, 200)));
        assert_eq!(shadow.conflict(100, 200, true, |_| true), None);

        shadow.note(150, 250, access(2, false), NONE);
        assert_eq!(found(&shadow, 200, 250, false), None);
        assert_eq!(found(&shadow, 200, 250, true), Some((2, 200, 250)));
        assert_eq!(found(&shadow, 120, 130, true), Some((1, 120, 130)));

        shadow.note(140, 160, access(3, true), NONE);
        assert_eq!(found(&shadow, 155, 165, true), Some((3, 155, 160)));
        shadow.forget(0, 200);
        assert_eq!(found(&shadow, 0, 200, true), None);
        assert_eq!(found(&shadow, 0, 300, true), Some((2, 200, 250)));
        shadow.sweep(|access| access.number == 2);
        assert!(shadow.cells.is_empty());
    }

    #[test]
    fn readers_gather_and_a_later_one_stands_for_those_before_it() {
        let mut shadow = Shadow::default();
        shadow.note(0, 10, access(1, false), NONE);
        shadow.note(5, 15, access(2, false), NONE);
        assert_eq!(shadow.cells.len(), 3);
        let before_1 = |conflict: &Access| conflict.number == 1;
        let conflict = shadow.conflict(0, 15, true, before_1);
        assert_eq!(conflict.map(|conflict| conflict.earlier.number), Some(2));
        shadow.note(0, 15, access(3, false), |_| true);
        assert!(shadow.cells.values().all(|cell| cell.readers.len() == 1));
    }
}
