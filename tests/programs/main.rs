//! Random programs in stepped mode: any order of completion, several threads, faults, the race checker on. After each step
//! what the library did is compared with a model of the whole cache; every value that is read with one that knows of no
//! streams. A program that fails is made short, and printed as C.
//!
//! `cargo test --test programs -- --ignored` runs ten million steps. `CVC_SEED` runs one program again, `CVC_STEPS` sets
//! how many steps there are of all programs together.

#[path = "all.rs"]
mod all;

use all::program::What;
use all::{print, suite};

#[test]
fn two_hundred_thousand_steps() {
    let tally = suite::run_steps(200_000, 1);
    if suite::is_whole() {
        suite::check_that_all_was_reached(&tally.counts(), 1);
    }
}

#[test]
#[ignore = "takes minutes"]
fn ten_million_steps() {
    let counts = suite::run_in_parts(10_000_000, 1_000, "a_part_of_ten_million_steps");
    suite::check_that_all_was_reached(&counts, 1000);
}

#[test]
#[ignore = "a part of the others"]
fn a_part_of_ten_million_steps() {
    suite::run_part();
}

/// Programs of every kind, so that each statement is there.
#[test]
fn a_program_is_printed_as_c_that_compiles() {
    let programs = [3, 5, 7, 8].map(suite::program_of);
    for what in What::ALL {
        let mut steps = programs.iter().flat_map(|program| &program.steps);
        assert!(steps.any(|step| step.what == *what), "{what:?} is nowhere");
    }
    programs.iter().for_each(print::assert_compiles);
}

/// One attempt of `shrink.rs`.
#[test]
#[ignore = "a part of the others"]
fn a_program_from_a_file() {
    suite::run_program_of_file();
}
