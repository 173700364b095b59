//! A small generator of repeatable numbers for the tests of descriptors.

use crate::object::dtype::Dtype;

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// From 0 to `bound - 1`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    pub fn dtype(&mut self) -> Dtype {
        loop {
            let code = 1 + self.below(13) as u32 + ((self.below(4) as u32) << 8);
            if let Ok(dtype) = Dtype::from_code(code, "code") {
                return dtype;
            }
        }
    }

    pub fn shape(&mut self, max_rank: u64, smallest: u64, largest: u64) -> Vec<i64> {
        let rank = 1 + self.below(max_rank);
        (0..rank)
            .map(|_| (smallest + self.below(largest - smallest + 1)) as i64)
            .collect()
    }
}

/// The offset of every element in row-major order, one index after the other.
pub fn offsets(shape: &[i64], strides: &[i64]) -> Vec<i64> {
    let mut all = vec![0];
    for (&dim, &stride) in shape.iter().zip(strides) {
        all = all
            .iter()
            .flat_map(|base| (0..dim).map(move |i| base + i * stride))
            .collect();
    }
    all
}

/// Whether no byte belongs to two elements.
pub fn all_bytes_differ(offsets: &[i64], element_bytes: i64) -> bool {
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|w| w[1] - w[0] >= element_bytes)
}
