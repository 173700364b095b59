//! Tests of the resize tables and of the order of the passes.

use super::*;

fn table(in_size: i32, out_size: i32, filter: ResizeFilter, form: TableForm) -> ResizeTable {
    ResizeTable::new(in_size, out_size, filter, form).unwrap()
}

fn numbers<T, const N: usize>(
    table: &ResizeTable,
    offset: u64,
    count: usize,
    read: fn([u8; N]) -> T,
) -> Vec<T> {
    let start = offset as usize;
    let bytes = &table.as_bytes()[start..start + count * N];
    let number = |chunk: &[u8]| read(chunk.try_into().unwrap());
    bytes.chunks_exact(N).map(number).collect()
}

fn real_row(table: &ResizeTable, output: usize) -> Vec<f64> {
    let header = table.header();
    let row = header.row_length as usize;
    let offset = header.coefficient_offset + (output * row * 8) as u64;
    numbers(table, offset, row, f64::from_ne_bytes)
}

#[test]
fn linear_halving_is_the_triangle_of_four_taps() {
    let halved = table(8, 4, ResizeFilter::Linear, TableForm::Real);
    assert_eq!(halved.bounds(), [(0, 3), (1, 4), (3, 4), (5, 3)]);
    assert_eq!(real_row(&halved, 1), [0.125, 0.375, 0.375, 0.125]);
    assert_eq!(halved.header().max_count, 4);
}

/// The expected bits are another implementation's, in Python with the same order of operations.
#[test]
fn coefficients_have_the_expected_bits() {
    for (filter, in_size, out_size, output, first, expected) in [HAMMING, LANCZOS, CUBIC] {
        let made = table(in_size, out_size, filter, TableForm::Real);
        assert_eq!(made.bounds()[output], (first, expected.len() as i32));
        let row = real_row(&made, output);
        let bits: Vec<u64> = row.iter().map(|weight| weight.to_bits()).collect();
        assert_eq!(bits[..expected.len()], *expected, "{filter:?}");
        assert!(row[expected.len()..].iter().all(|weight| *weight == 0.0));
    }
}

#[test]
fn fixed_point_is_the_rounded_double_and_its_halves_join_to_it() {
    for filter in &ResizeFilter::ALL[1..] {
        for (in_size, out_size) in [(1, 5), (5, 1), (37, 11), (11, 37), (2, 3), (300, 7)] {
            let fixed = table(in_size, out_size, *filter, TableForm::Fixed);
            let real = table(in_size, out_size, *filter, TableForm::Real);
            let header = fixed.header();
            let row = header.row_length as usize;
            assert_eq!(row % 8, 0);
            for output in 0..out_size as usize {
                let offset = |start, bytes| start + (output * row * bytes) as u64;
                let whole_at = offset(header.coefficient_offset, 4);
                let halves_at = offset(header.split_offset, 4);
                let whole = numbers(&fixed, whole_at, row, i32::from_ne_bytes);
                let halves = numbers(&fixed, halves_at, 2 * row, i16::from_ne_bytes);
                let weights = real_row(&real, output);
                for tap in 0..row {
                    let weight = weights.get(tap).copied().unwrap_or(0.0);
                    let rounded = (weight * 4194304.0).abs() + 0.5;
                    assert_eq!(whole[tap], rounded.floor().copysign(weight) as i32);
                    let joined = i32::from(halves[row + tap]) * 65536 + i32::from(halves[tap]);
                    assert_eq!(joined, whole[tap]);
                }
                let sum: i32 = whole.iter().sum();
                assert!((sum - (1 << FIXED_BITS)).abs() <= row as i32);
            }
        }
    }
}

#[test]
fn every_output_has_taps_inside_the_input() {
    for filter in ResizeFilter::ALL {
        let form = match filter {
            ResizeFilter::Nearest => TableForm::Index,
            _ => TableForm::Real,
        };
        for in_size in 1..40 {
            for out_size in 1..40 {
                let made = table(in_size, out_size, filter, form);
                let mut before = (0, 0);
                for (first, count) in made.bounds() {
                    assert!(first >= 0 && count >= 1 && first + count <= in_size);
                    assert!(count <= made.header().max_count);
                    assert!(
                        first >= before.0 && first + count >= before.1,
                        "not monotone"
                    );
                    before = (first, first + count);
                }
            }
        }
    }
}

/// Pillow's own results for a row of 2 pixels made 7: modes L and I;16.
#[test]
fn nearest_positions_are_a_running_sum_but_for_the_product_form() {
    let positions = |form| -> Vec<i32> {
        let made = table(2, 7, ResizeFilter::Nearest, form);
        made.bounds().iter().map(|bounds| bounds.0).collect()
    };
    assert_eq!(positions(TableForm::Index), [0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(positions(TableForm::IndexByProduct), [0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn bad_sizes_filters_and_forms_are_refused() {
    let status = |in_size, out_size, filter, form| {
        ResizeTable::new(in_size, out_size, filter, form)
            .unwrap_err()
            .status
    };
    let linear = ResizeFilter::Linear;
    for (in_size, out_size) in [(0, 1), (1, 0), (-4, 2), (2, MAX_SIZE + 1)] {
        let found = status(in_size, out_size, linear, TableForm::Real);
        assert_eq!(found, Status::InvalidShape);
    }
    let mixed = [
        (linear, TableForm::Index),
        (ResizeFilter::Nearest, TableForm::Fixed),
    ];
    for (filter, form) in mixed {
        assert_eq!(status(4, 2, filter, form), Status::InvalidArgument);
    }
    let of_code = |code| ResizeFilter::from_code(code).map_err(|error| error.status);
    assert_eq!(of_code(3), Err(Status::NotSupported));
    assert_eq!(of_code(7), Err(Status::InvalidEnum));
    assert_eq!(of_code(-1), Err(Status::InvalidEnum));
    assert_eq!(of_code(4), Ok(ResizeFilter::Lanczos));
}

#[test]
fn the_vertical_pass_comes_first_where_pillow_has_it_first() {
    use PassOrderRule::{Pillow12, Pillow13};
    let cases = [
        // 20 rows fewer against twice 10 columns: not more.
        ((30, 40), (20, 20), false, false),
        ((30, 41), (20, 20), true, false),
        // Wider than before, and a row fewer.
        ((30, 40), (31, 39), true, false),
        ((30, 40), (31, 40), false, false),
        ((30, 40), (29, 50), false, false),
        // More than 100 times as high as wide.
        ((2, 201), (500, 200), true, true),
        ((2, 200), (500, 199), true, false),
        ((2, 201), (1, 202), false, false),
    ];
    for (in_size, out_size, in_13, in_12) in cases {
        let found = [Pillow13, Pillow12].map(|rule| vertical_first(in_size, out_size, rule));
        assert_eq!(found, [in_13, in_12], "{in_size:?} to {out_size:?}");
    }
}

/// Filter, sizes, output, its first input position and its coefficients.
type ExpectedRow = (ResizeFilter, i32, i32, usize, i32, &'static [u64]);

const HAMMING: ExpectedRow = (
    ResizeFilter::Hamming,
    7,
    3,
    1,
    1,
    &[
        0x3f85_0605_1b17_27fb,
        0x3fce_35f1_8312_2e63,
        0x3fe0_3cd7_159e_2f8f,
        0x3fce_35f1_8312_2e63,
        0x3f85_0605_1b17_27fb,
    ],
);

const LANCZOS: ExpectedRow = (
    ResizeFilter::Lanczos,
    5,
    2,
    0,
    0,
    &[
        0x3fd6_a6dd_5bd9_2ca1,
        0x3fda_5724_bf90_2935,
        0x3fd0_4f2e_bd02_c3f9,
        0x3fa4_228b_dfdd_7d02,
        0xbfae_8c12_a33e_4b76,
    ],
);

const CUBIC: ExpectedRow = (
    ResizeFilter::Cubic,
    3,
    8,
    2,
    0,
    &[
        0x3fe3_5dd9_20c3_7881,
        0x3fdc_7d35_74d2_1592,
        0xbfa9_c73d_b2c8_349c,
    ],
);
