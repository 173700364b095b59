//! Random programs in stepped mode: any order of completion, several threads, faults, the race checker on. After each step
//! what the library did is compared with a model of the whole cache; every value that is read with one that knows of no
//! streams. A program that fails is made short, and printed as C.
//!
//! `cargo test --test programs -- --ignored` runs ten million steps. `CVC_SEED` runs one program again, `CVC_STEPS` sets
//! how many steps there are of all programs together.

#[path = "../c_interface/mod.rs"]
mod c_interface;
mod generate;
mod model;
mod objects;
mod print;
mod program;
mod run;
mod shrink;
mod streams;
mod suite;
mod threads;

use program::Program;

#[test]
fn two_hundred_thousand_steps() {
    suite::run_steps(200_000, 1);
}

#[test]
#[ignore = "takes minutes"]
fn ten_million_steps() {
    let counts = suite::run_in_parts(10_000_000, 1_000, "a_part_of_ten_million_steps");
    suite::check_that_all_was_reached(&counts);
}

#[test]
#[ignore = "a part of the others"]
fn a_part_of_ten_million_steps() {
    suite::run_part();
}

/// Programs of every kind, so that each statement is there.
#[test]
fn a_program_is_printed_as_c_that_compiles() {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for seed in [3, 7, 8] {
        let file =
            std::env::temp_dir().join(format!("cvc-printed-{}-{seed}.c", std::process::id()));
        let text = print::print(&generate::generate(seed, suite::STEPS_PER_PROGRAM));
        std::fs::write(&file, text).expect("a file can be written");
        let output = std::process::Command::new(&compiler)
            .args(["-std=gnu11", "-fsyntax-only", "-Wall", "-Werror", "-I"])
            .arg(root.join("include"))
            .arg(&file)
            .output();
        let _ = std::fs::remove_file(&file);
        match output {
            Err(error) => return println!("skipped: no C compiler {compiler}: {error}"),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "seed {seed}: {text}");
            }
        }
    }
}

/// One attempt of `shrink.rs`.
#[test]
#[ignore = "a part of the others"]
fn a_program_from_a_file() {
    let Ok(file) = std::env::var(shrink::PROGRAM_FILE) else {
        return;
    };
    let text = std::fs::read_to_string(file).expect("the file is there");
    let program: Program = text.parse().expect("the file has a program");
    run::start_backend();
    if let Err(failure) = suite::run_program(&program) {
        panic!("{}{}: {}", shrink::FAILED_AT, failure.step, failure.text);
    }
}
