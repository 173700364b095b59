//! Plain loops that say what the operators give, on elements addressed by (n, c, h, w).

/// Elements in packed memory of a layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Elements<T> {
    pub layout: &'static str,
    pub shape: Vec<i64>,
    pub data: Vec<T>,
}

/// Where an element is: n, c, h, w.
pub type Place = [usize; 4];

const LABELS: &str = "NCHW";

impl<T: Copy> Elements<T> {
    /// Elements numbered in memory order.
    pub fn make(
        layout: &'static str,
        shape: &[i64],
        element: impl FnMut(usize) -> T,
    ) -> Elements<T> {
        let count: i64 = shape.iter().product();
        Elements {
            layout,
            shape: shape.to_vec(),
            data: (0..count as usize).map(element).collect(),
        }
    }

    /// Elements by their place.
    pub fn by_place(
        layout: &'static str,
        shape: &[i64],
        element: impl Fn(Place) -> T,
    ) -> Elements<T> {
        let places = Elements::make(layout, shape, |_| ()).places();
        Elements {
            layout,
            shape: shape.to_vec(),
            data: places.into_iter().map(element).collect(),
        }
    }

    /// The extent of a dimension: 1 where the layout lacks it.
    pub fn extent(&self, label: char) -> usize {
        self.layout
            .find(label)
            .map_or(1, |i| self.shape[i] as usize)
    }

    pub fn at(&self, place: Place) -> T {
        let mut index = 0;
        for (label, &dim) in self.layout.chars().zip(&self.shape) {
            let which = LABELS.find(label).expect("a known label");
            index = index * dim as usize + place[which];
        }
        self.data[index]
    }

    /// All places in memory order.
    pub fn places(&self) -> Vec<Place> {
        (0..self.data.len())
            .map(|mut index| {
                let mut place = [0; 4];
                for (label, &dim) in self.layout.bytes().zip(&self.shape).rev() {
                    place[LABELS.find(char::from(label)).expect("a known label")] =
                        index % dim as usize;
                    index /= dim as usize;
                }
                place
            })
            .collect()
    }

    pub fn flipped(&self, rows: bool, columns: bool) -> Elements<T> {
        let (height, width) = (self.extent('H'), self.extent('W'));
        Elements::by_place(self.layout, &self.shape, |[n, c, h, w]| {
            let from_h = if rows { height - 1 - h } else { h };
            let from_w = if columns { width - 1 - w } else { w };
            self.at([n, c, from_h, from_w])
        })
    }

    pub fn in_layout(&self, layout: &'static str) -> Elements<T> {
        let shape: Vec<i64> = layout
            .chars()
            .map(|label| self.extent(label) as i64)
            .collect();
        Elements::by_place(layout, &shape, |place| self.at(place))
    }

    pub fn map<U: Copy>(&self, mut element: impl FnMut(Place, T) -> U) -> Elements<U> {
        Elements {
            layout: self.layout,
            shape: self.shape.clone(),
            data: self
                .places()
                .into_iter()
                .map(|place| element(place, self.at(place)))
                .collect(),
        }
    }
}

/// Some numbers without a pattern that a transposed or shifted result could share.
pub fn noise(seed: u64) -> impl FnMut(usize) -> u64 {
    move |index| {
        let mut x = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ seed.wrapping_mul(0xd1b5_4a32_d192_ed03);
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^ (x >> 32)
    }
}

pub fn noise_bytes(layout: &'static str, shape: &[i64], seed: u64) -> Elements<u8> {
    let mut next = noise(seed);
    Elements::make(layout, shape, |i| next(i) as u8)
}

/// Resizes with the triangle filter, in doubles: an output is the weighted mean of the inputs within its support.
pub fn resized(src: &Elements<f64>, height: usize, width: usize) -> Elements<f64> {
    let shape: Vec<i64> = src
        .layout
        .chars()
        .zip(&src.shape)
        .map(|(label, &dim)| match label {
            'H' => height as i64,
            'W' => width as i64,
            _ => dim,
        })
        .collect();
    let rows = weights(src.extent('H'), height);
    let columns = weights(src.extent('W'), width);
    Elements::by_place(src.layout, &shape, |[n, c, h, w]| {
        let mut sum = 0.0;
        for &(y, row_weight) in &rows[h] {
            for &(x, column_weight) in &columns[w] {
                sum += src.at([n, c, y, x]) * row_weight * column_weight;
            }
        }
        sum
    })
}

/// Of each output the inputs and their weights.
fn weights(input: usize, output: usize) -> Vec<Vec<(usize, f64)>> {
    let scale = input as f64 / output as f64;
    let reach = scale.max(1.0);
    (0..output)
        .map(|i| {
            let center = (i as f64 + 0.5) * scale;
            let weight = |x: usize| (1.0 - ((x as f64 + 0.5 - center) / reach).abs()).max(0.0);
            let total: f64 = (0..input).map(weight).sum();
            (0..input)
                .map(|x| (x, weight(x) / total))
                .filter(|&(_, w)| w > 0.0)
                .collect()
        })
        .collect()
}
