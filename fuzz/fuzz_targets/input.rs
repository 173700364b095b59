//! Numbers from the fuzzer's bytes.

pub struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// 0 once the bytes are used up.
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    /// Less than `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// Mostly small, now and then at an edge of some type, or anything.
    pub fn number(&mut self) -> i64 {
        const EDGES: [i64; 12] = [
            0,
            -1,
            1 << 31,
            (1 << 31) - 1,
            -(1 << 31),
            i64::MAX,
            i64::MIN,
            1 << 32,
            i64::MAX / 2,
            1 << 24,
            511,
            4096,
        ];
        match self.byte() {
            small @ 0..200 => i64::from(small % 40),
            edge @ 200..240 => EDGES[usize::from(edge) % EDGES.len()],
            _ => self.word() as i64,
        }
    }
}
