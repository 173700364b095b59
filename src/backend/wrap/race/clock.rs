//! Vector clocks: how far of each stream something comes after.

use smallvec::SmallVec;

/// A stream, by the order in which the checker met it.
pub type StreamNumber = u32;

/// (stream, ticks): all that the stream did up to that tick is before. Sorted by stream.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Clock {
    ticks: SmallVec<[(StreamNumber, u64); 4]>,
}

impl Clock {
    fn place(&self, stream: StreamNumber) -> Result<usize, usize> {
        self.ticks.binary_search_by_key(&stream, |entry| entry.0)
    }

    pub fn get(&self, stream: StreamNumber) -> u64 {
        self.place(stream).map_or(0, |place| self.ticks[place].1)
    }

    /// Comes after that tick from now on.
    pub fn raise(&mut self, stream: StreamNumber, tick: u64) {
        match self.place(stream) {
            Ok(place) => self.ticks[place].1 = self.ticks[place].1.max(tick),
            Err(place) => self.ticks.insert(place, (stream, tick)),
        }
    }

    pub fn join(&mut self, other: &Clock) {
        for (stream, tick) in &other.ticks {
            self.raise(*stream, *tick);
        }
    }

    /// Forgets streams.
    pub fn retain(&mut self, mut wanted: impl FnMut(StreamNumber, u64) -> bool) {
        self.ticks.retain(|(stream, tick)| wanted(*stream, *tick));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_takes_the_later_of_each() {
        let (mut one, mut other) = (Clock::default(), Clock::default());
        one.raise(7, 3);
        one.raise(2, 9);
        other.raise(2, 4);
        other.raise(5, 1);
        other.raise(7, 8);
        one.join(&other);
        assert_eq!((one.get(2), one.get(5), one.get(7)), (9, 1, 8));
        assert_eq!(one.get(6), 0);
        one.retain(|stream, _| stream != 5);
        assert_eq!(one.get(5), 0);
    }
}
