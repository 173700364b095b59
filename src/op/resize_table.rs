//! Coefficient tables of Pillow's resize, one for each (input size, output size, filter), and the order of the passes.
//!
//! A table is one block of bytes that a kernel reads by its address, on the host or on the device. It is computed here
//! alone, in double, so that both backends use the same numbers.

use std::f64::consts::PI;
use std::mem::size_of;

use crate::error::{Result, Status};
use crate::fail;

/// A resampling filter. The numbers are those of `cvc_filter_t`; AREA (3) is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ResizeFilter {
    Nearest = 0,
    Linear = 1,
    Cubic = 2,
    Lanczos = 4,
    Hamming = 5,
    Box = 6,
}

impl ResizeFilter {
    pub const ALL: [ResizeFilter; 6] = [
        ResizeFilter::Nearest,
        ResizeFilter::Linear,
        ResizeFilter::Cubic,
        ResizeFilter::Lanczos,
        ResizeFilter::Hamming,
        ResizeFilter::Box,
    ];

    /// The filter of a `cvc_filter_t`. Errors: `NotSupported` for AREA, which Pillow does not have, `InvalidEnum` for
    /// what is no filter.
    pub fn from_code(code: i32) -> Result<ResizeFilter> {
        match Self::ALL.into_iter().find(|filter| *filter as i32 == code) {
            Some(filter) => Ok(filter),
            None if code == 3 => fail!(
                Status::NotSupported,
                "filter is CVC_FILTER_AREA, which Pillow does not have; expected NEAREST, LINEAR, CUBIC, LANCZOS, \
                 HAMMING or BOX"
            ),
            None => fail!(
                Status::InvalidEnum,
                "filter is {code}, expected a CVC_FILTER_* value"
            ),
        }
    }

    /// Half the width of the filter, in input pixels when enlarging.
    fn support(self) -> f64 {
        match self {
            ResizeFilter::Nearest => 0.0,
            ResizeFilter::Box => 0.5,
            ResizeFilter::Linear | ResizeFilter::Hamming => 1.0,
            ResizeFilter::Cubic => 2.0,
            ResizeFilter::Lanczos => 3.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        match self {
            ResizeFilter::Nearest | ResizeFilter::Box => {
                if x > -0.5 && x <= 0.5 {
                    1.0
                } else {
                    0.0
                }
            }
            ResizeFilter::Linear => {
                let x = x.abs();
                if x < 1.0 {
                    1.0 - x
                } else {
                    0.0
                }
            }
            ResizeFilter::Hamming => {
                let x = x.abs();
                if x == 0.0 {
                    1.0
                } else if x >= 1.0 {
                    0.0
                } else {
                    let x = x * PI;
                    // Pillow writes these two constants in single precision.
                    x.sin() / x * (f64::from(0.54f32) + f64::from(0.46f32) * x.cos())
                }
            }
            ResizeFilter::Cubic => {
                const A: f64 = -0.5;
                let x = x.abs();
                if x < 1.0 {
                    ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
                } else if x < 2.0 {
                    (((x - 5.0) * x + 8.0) * x - 4.0) * A
                } else {
                    0.0
                }
            }
            ResizeFilter::Lanczos => {
                if (-3.0..3.0).contains(&x) {
                    sinc(x) * sinc(x / 3.0)
                } else {
                    0.0
                }
            }
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * PI;
    x.sin() / x
}

/// What a table holds after its bounds. The numbers are those of `cvc_resize_form` in `cuda/resize_params.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum TableForm {
    /// NEAREST: nothing; the bounds are the source positions, from a running sum.
    Index = 0,
    /// U8: 22-bit fixed point, whole and split into two 16-bit halves.
    Fixed = 1,
    /// Every other element type: doubles.
    Real = 2,
    /// NEAREST of U16: as Index, but each position is a product, as Pillow's mode I;16 has it. At sizes where a position
    /// is a whole number but for rounding, the two differ.
    IndexByProduct = 3,
}

impl TableForm {
    pub fn is_index(self) -> bool {
        matches!(self, TableForm::Index | TableForm::IndexByProduct)
    }
}

/// The first bytes of a table; mirrors `cvc_resize_table` in `cuda/resize_params.cuh`. Offsets are bytes from the start
/// of the table and multiples of 16.
///
/// - At `bounds_offset`: `out_size` pairs of int32, the first input position of that output and the count of taps.
/// - At `coefficient_offset`: `out_size` rows of `row_length` int32 (Fixed) or double (Real) coefficients, in tap order,
///   zero from the count on.
/// - At `split_offset` (Fixed): `out_size` rows of `row_length` int16 low halves followed by `row_length` int16 high
///   halves, such that coefficient = high * 65536 + low.
/// - At `group_offset` (Fixed, where it is not 0): the coefficients once more, as the lanes of a GPU hold those of eight
///   outputs, see `cvc_resize_group` in `cuda/resize_params.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableHeader {
    pub in_size: i32,
    pub out_size: i32,
    pub filter: i32,
    pub form: i32,
    /// The largest count of taps; at least 1.
    pub max_count: i32,
    /// `max_count` rounded up to a multiple of 8 (Fixed) or 2 (Real); 0 for Index.
    pub row_length: i32,
    pub bounds_offset: u64,
    pub coefficient_offset: u64,
    pub split_offset: u64,
    pub total_bytes: u64,
    pub group_offset: u64,
}

const _: () = assert!(size_of::<TableHeader>() == 64);

/// Outputs of a group.
const GROUP: usize = 8;
/// Bytes of a group's coefficients for 16 inputs: three places of 8 x 16.
const GROUP_STEP_BYTES: usize = 3 * GROUP * 16;

extern "C" {
    /// How many times 16 inputs a group of outputs needs; 0: more than tiles of the GPU take.
    fn cvc_plan_resize_group(in_size: i32, out_size: i32, max_count: i32) -> i32;
}

fn group_steps(in_size: i32, out_size: i32, max_count: i32) -> usize {
    // SAFETY: it computes with numbers alone.
    unsafe { cvc_plan_resize_group(in_size, out_size, max_count) }.unsigned_abs() as usize
}

/// Input pixels for each output. Pillow takes the input's extent as a float.
fn scale(in_size: i32, out_size: i32) -> f64 {
    f64::from(in_size as f32) / f64::from(out_size)
}

/// The largest width or height that a table is made for.
pub const MAX_SIZE: i32 = 1 << 30;

/// Fraction bits of the fixed-point coefficients.
pub const FIXED_BITS: u32 = 22;

/// One axis' coefficients, as the block of bytes to copy to where the kernel reads it.
#[derive(Clone, Debug)]
pub struct ResizeTable {
    header: TableHeader,
    /// 8-byte words, so that the block is aligned for the doubles in it.
    words: Vec<u64>,
}

impl ResizeTable {
    /// The table for `in_size` to `out_size` pixels, Pillow's own numbers to the last bit. `form` has to be one of
    /// the index forms exactly when `filter` is NEAREST.
    ///
    /// Errors: `InvalidShape` where a size is not in 1..=`MAX_SIZE`, `InvalidArgument` where form and filter do not fit,
    /// `OutOfMemory` where the host has no room for the table.
    pub fn new(
        in_size: i32,
        out_size: i32,
        filter: ResizeFilter,
        form: TableForm,
    ) -> Result<ResizeTable> {
        if !(1..=MAX_SIZE).contains(&in_size) || !(1..=MAX_SIZE).contains(&out_size) {
            fail!(
                Status::InvalidShape,
                "resizing {in_size} to {out_size} pixels, expected sizes of 1 to {MAX_SIZE}"
            );
        }
        if (filter == ResizeFilter::Nearest) != form.is_index() {
            fail!(
                Status::InvalidArgument,
                "a {form:?} table of filter {filter:?}, expected Index for Nearest and Fixed or Real for others"
            );
        }
        let window = Window::new(in_size, out_size, filter);
        let header = window.header(form);
        let mut table = ResizeTable {
            header,
            words: zeroed_words(header.total_bytes)?,
        };
        table.write_header();
        match form {
            TableForm::Index => table.write_nearest_by_sum(),
            TableForm::IndexByProduct => table.write_nearest_by_product(),
            TableForm::Fixed | TableForm::Real => table.write_coefficients(&window)?,
        }
        Ok(table)
    }

    pub fn header(&self) -> &TableHeader {
        &self.header
    }

    /// The whole block, for what keeps it until it is copied.
    pub fn into_words(self) -> Box<[u64]> {
        self.words.into_boxed_slice()
    }

    /// The whole block. Where it is read it has to be aligned to 16 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the words are initialised, and any byte of them may be read as u8.
        unsafe {
            std::slice::from_raw_parts(
                self.words.as_ptr().cast::<u8>(),
                self.words.len() * size_of::<u64>(),
            )
        }
    }

    /// First input position and count of taps of each output.
    pub fn bounds(&self) -> Vec<(i32, i32)> {
        (0..self.header.out_size as u64)
            .map(|index| {
                let at = self.header.bounds_offset + index * 8;
                (self.read_i32(at), self.read_i32(at + 4))
            })
            .collect()
    }

    fn read_i32(&self, offset: u64) -> i32 {
        let at = offset as usize;
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.as_bytes()[at..at + 4]);
        i32::from_ne_bytes(bytes)
    }

    fn write_header(&mut self) {
        let header = self.header;
        let mut at = 0;
        for number in [
            header.in_size,
            header.out_size,
            header.filter,
            header.form,
            header.max_count,
            header.row_length,
        ] {
            self.write(at, number.to_ne_bytes());
            at += 4;
        }
        for offset in [
            header.bounds_offset,
            header.coefficient_offset,
            header.split_offset,
            header.total_bytes,
            header.group_offset,
        ] {
            self.write(at, offset.to_ne_bytes());
            at += 8;
        }
    }

    fn write<const N: usize>(&mut self, offset: u64, value: [u8; N]) {
        let at = offset as usize;
        self.as_bytes_mut()[at..at + N].copy_from_slice(&value);
    }

    fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words are initialised and exclusively borrowed, and any bytes make a valid u64.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.words.as_mut_ptr().cast::<u8>(),
                self.words.len() * size_of::<u64>(),
            )
        }
    }

    fn write_bounds(&mut self, output: i32, first: i32, count: i32) {
        let at = self.header.bounds_offset + output as u64 * 8;
        self.write(at, first.to_ne_bytes());
        self.write(at + 4, count.to_ne_bytes());
    }

    fn write_nearest_by_sum(&mut self) {
        let step = scale(self.header.in_size, self.header.out_size);
        let mut position = step * 0.5;
        for output in 0..self.header.out_size {
            self.write_nearest(output, position);
            position += step;
        }
    }

    fn write_nearest_by_product(&mut self) {
        let step = scale(self.header.in_size, self.header.out_size);
        for output in 0..self.header.out_size {
            self.write_nearest(output, step * (f64::from(output) + 0.5));
        }
    }

    fn write_nearest(&mut self, output: i32, position: f64) {
        // Positions stay below in_size but for sizes whose rounding errors reach half a step.
        let last = self.header.in_size - 1;
        self.write_bounds(output, (position as i32).min(last), 1);
    }

    fn write_coefficients(&mut self, window: &Window) -> Result<()> {
        let header = self.header;
        let mut weights = Vec::new();
        let mut fixed = Vec::new();
        let taps = header.max_count as usize;
        if weights.try_reserve_exact(taps).is_err() || fixed.try_reserve_exact(taps).is_err() {
            fail!(
                Status::OutOfMemory,
                "no host memory for {taps} resize weights"
            );
        }
        let steps = match header.group_offset {
            0 => 0,
            _ => group_steps(header.in_size, header.out_size, header.max_count),
        };
        let mut group_first = 0;
        for output in 0..window.out_size {
            let (first, count) = window.bounds(output);
            self.write_bounds(output, first, count);
            window.weights(output, (first, count), &mut weights);
            if header.form == TableForm::Real as i32 {
                self.write_real(output as usize, &weights);
                continue;
            }
            fixed.clear();
            fixed.extend(weights.iter().map(|weight| fixed_point(*weight)));
            self.write_fixed(output as usize, &fixed);
            if output as usize % GROUP == 0 {
                group_first = first & !3;
            }
            if steps != 0 {
                let ahead = (first - group_first) as usize;
                self.write_group((output as usize, ahead), steps, &fixed);
            }
        }
        Ok(())
    }

    fn row(&mut self, offset: u64, index: usize, bytes: usize) -> &mut [u8] {
        &mut self.as_bytes_mut()[offset as usize + index * bytes..][..bytes]
    }

    fn write_real(&mut self, output: usize, weights: &[f64]) {
        let row_length = self.header.row_length as usize;
        let row = self.row(self.header.coefficient_offset, output, row_length * 8);
        for (weight, place) in weights.iter().zip(row.chunks_exact_mut(8)) {
            place.copy_from_slice(&weight.to_ne_bytes());
        }
    }

    fn write_fixed(&mut self, output: usize, fixed: &[i32]) {
        let row_length = self.header.row_length as usize;
        let whole = self.row(self.header.coefficient_offset, output, row_length * 4);
        for (fixed, place) in fixed.iter().zip(whole.chunks_exact_mut(4)) {
            place.copy_from_slice(&fixed.to_ne_bytes());
        }
        let halves = self.row(self.header.split_offset, output, row_length * 4);
        let (low_half, high_half) = halves.split_at_mut(row_length * 2);
        let places = low_half
            .chunks_exact_mut(2)
            .zip(high_half.chunks_exact_mut(2));
        for (fixed, (low_place, high_place)) in fixed.iter().zip(places) {
            let low = *fixed as i16;
            let high = ((fixed - i32::from(low)) >> 16) as i16;
            low_place.copy_from_slice(&low.to_ne_bytes());
            high_place.copy_from_slice(&high.to_ne_bytes());
        }
    }

    /// `ahead`: the first tap, counted from where the group begins. A step has three places of 32 lanes of 4 inputs.
    fn write_group(&mut self, (output, ahead): (usize, usize), steps: usize, fixed: &[i32]) {
        let lane = output % GROUP * 4;
        let group = self.row(
            self.header.group_offset,
            output / GROUP,
            steps * GROUP_STEP_BYTES,
        );
        for (at, fixed) in (ahead..).zip(fixed) {
            let step = &mut group[at / 16 * GROUP_STEP_BYTES..][..GROUP_STEP_BYTES];
            let place = (lane + at % 16 / 4) * 4 + at % 4;
            let bytes = fixed.to_le_bytes();
            step[place] = bytes[0];
            step[place + GROUP_STEP_BYTES / 3] = bytes[1];
            step[place + GROUP_STEP_BYTES / 3 * 2] = bytes[2];
        }
    }
}

/// Rounded half away from zero.
fn fixed_point(weight: f64) -> i32 {
    let scaled = weight * f64::from(1 << FIXED_BITS);
    if weight < 0.0 {
        (scaled - 0.5) as i32
    } else {
        (scaled + 0.5) as i32
    }
}

/// Where the taps of each output lie and what they weigh, in Pillow's order of operations.
struct Window {
    in_size: i32,
    out_size: i32,
    filter: ResizeFilter,
    scale: f64,
    filter_scale: f64,
    support: f64,
}

impl Window {
    fn new(in_size: i32, out_size: i32, filter: ResizeFilter) -> Window {
        let scale = scale(in_size, out_size);
        let filter_scale = scale.max(1.0);
        Window {
            in_size,
            out_size,
            filter,
            scale,
            filter_scale,
            support: filter.support() * filter_scale,
        }
    }

    fn center(&self, output: i32) -> f64 {
        (f64::from(output) + 0.5) * self.scale
    }

    fn bounds(&self, output: i32) -> (i32, i32) {
        let center = self.center(output);
        let first = ((center - self.support + 0.5) as i32).max(0);
        let end = ((center + self.support + 0.5) as i32).min(self.in_size);
        // Where an extent above 2^24 was rounded to float, the last windows may lie past the input.
        let first = first.min(self.in_size - 1);
        (first, (end - first).max(1))
    }

    /// Those of the taps that `bounds` gave.
    fn weights(&self, output: i32, (first, count): (i32, i32), weights: &mut Vec<f64>) {
        let center = self.center(output);
        let inverse = 1.0 / self.filter_scale;
        weights.clear();
        let mut sum = 0.0;
        for tap in 0..count {
            let distance = f64::from(tap) + f64::from(first) - center + 0.5;
            let weight = self.filter.weight(distance * inverse);
            weights.push(weight);
            sum += weight;
        }
        if sum != 0.0 {
            for weight in weights.iter_mut() {
                *weight /= sum;
            }
        }
    }

    fn header(&self, form: TableForm) -> TableHeader {
        let counts = (0..self.out_size).map(|output| self.bounds(output).1);
        let max_count = match form.is_index() {
            true => 1,
            false => counts.max().unwrap_or(1),
        };
        let taps = max_count as u64;
        let (row_length, coefficient_bytes) = match form {
            TableForm::Index | TableForm::IndexByProduct => (0, 0),
            TableForm::Fixed => (taps.next_multiple_of(8), 4),
            TableForm::Real => (taps.next_multiple_of(2), 8),
        };
        let rows = self.out_size as u64;
        let bounds_offset = size_of::<TableHeader>() as u64;
        let coefficient_offset = (bounds_offset + rows * 8).next_multiple_of(16);
        let split_offset = coefficient_offset + rows * row_length * coefficient_bytes;
        let mut total_bytes = split_offset;
        let mut group_offset = 0;
        if form == TableForm::Fixed {
            total_bytes += rows * row_length * 4;
            let steps = group_steps(self.in_size, self.out_size, max_count);
            if steps > 0 {
                group_offset = total_bytes;
                total_bytes += rows.div_ceil(GROUP as u64) * (steps * GROUP_STEP_BYTES) as u64;
            }
        }
        TableHeader {
            in_size: self.in_size,
            out_size: self.out_size,
            filter: self.filter as i32,
            form: form as i32,
            max_count,
            row_length: row_length as i32,
            bounds_offset,
            coefficient_offset,
            split_offset,
            total_bytes,
            group_offset,
        }
    }
}

fn zeroed_words(bytes: u64) -> Result<Vec<u64>> {
    let count = (bytes / 8) as usize;
    let mut words = Vec::new();
    if words.try_reserve_exact(count).is_err() {
        fail!(
            Status::OutOfMemory,
            "no host memory for a resize table of {bytes} bytes"
        );
    }
    words.resize(count, 0);
    Ok(words)
}

/// Which of Pillow's two rules decides the order of the passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PassOrderRule {
    /// Pillow 13: vertical first where that is the cheaper way.
    Pillow13,
    /// Pillow up to 12.3: horizontal first, but for images more than 100 times as high as wide that lose rows, which
    /// `Image.resize` shrinks in two calls.
    Pillow12,
}

/// Whether the vertical pass comes first. Where a size does not change its pass is skipped and the answer means nothing.
pub fn vertical_first(
    (in_width, in_height): (i32, i32),
    (out_width, out_height): (i32, i32),
    rule: PassOrderRule,
) -> bool {
    let [in_width, in_height, out_width, out_height] =
        [in_width, in_height, out_width, out_height].map(i64::from);
    let removed_rows = in_height - out_height;
    removed_rows > 0
        && match rule {
            PassOrderRule::Pillow13 => removed_rows > 2 * (in_width - out_width),
            PassOrderRule::Pillow12 => in_height > 100 * in_width,
        }
}

#[cfg(test)]
mod tests;
