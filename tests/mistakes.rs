//! Deliberate mistakes in the library: the random programs find each of them, and so many steps does it take.

#[path = "programs/all.rs"]
mod programs;

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use cvc::observe::mistake::Mistake;
use programs::{print, program, run, shrink, suite};

const MISTAKE: &str = "CVC_MISTAKE";
const MOST_STEPS: u64 = 200_000;
/// What a child says of the mistake.
const FOUND_AFTER: &str = "found after ";
const STARTED: &str = "program ";

/// Runs programs with the mistake of the environment until one fails.
#[test]
#[ignore = "a part of the others"]
fn programs_with_a_mistake() {
    if std::env::var(MISTAKE).is_err() {
        return;
    }
    run::start_backend();
    let mut steps = 0;
    for seed in 1..=MOST_STEPS / suite::STEPS_PER_PROGRAM as u64 {
        // A crash ends the process: the parent knows from this how far it came.
        println!("{STARTED}{seed}");
        match suite::run_seed(seed) {
            Ok(_) => steps += suite::STEPS_PER_PROGRAM as u64,
            Err(failure) => {
                let steps = steps + failure.step as u64 + 1;
                println!("{FOUND_AFTER}{steps} steps: {}", in_short(&failure.text));
                return;
            }
        }
    }
}

/// What a failure says, in a few words.
fn in_short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.starts_with("cache ") {
        return "an account that differs from the model's".into();
    }
    let line = line
        .strip_prefix("assertion `left == right` failed: ")
        .unwrap_or(line);
    line.chars().take(60).collect()
}

struct Found {
    steps: Option<u64>,
    how: String,
}

fn look_for(mistake: Mistake) -> Found {
    let output = Command::new(std::env::current_exe().expect("a test knows its program"))
        .args([
            "programs_with_a_mistake",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(MISTAKE, mistake.text())
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("a process can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    let after = |begin: &str| {
        let lines = text.lines().rev();
        lines
            .filter_map(|line| line.strip_prefix(begin))
            .next()
            .map(str::to_string)
    };
    if let Some((steps, how)) = after(FOUND_AFTER)
        .as_deref()
        .and_then(|t| t.split_once(" steps: "))
    {
        return Found {
            steps: steps.parse().ok(),
            how: how.into(),
        };
    }
    if !output.status.success() {
        let program: u64 = after(STARTED)
            .and_then(|seed| seed.parse().ok())
            .unwrap_or(1);
        return Found {
            steps: Some(program * suite::STEPS_PER_PROGRAM as u64),
            how: format!("the process ended: {}", output.status),
        };
    }
    Found {
        steps: None,
        how: "not found".into(),
    }
}

#[test]
fn each_is_found() {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let work = || {
        while let Some(mistake) = Mistake::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = look_for(*mistake);
            found
                .lock()
                .expect("no look fails")
                .push((*mistake, result));
        }
    };
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let mut found = found.into_inner().expect("no look failed");
    found.sort_by_key(|(mistake, _)| *mistake as usize);
    let mut missed = Vec::new();
    println!("{:>7}  {:<55} found by", "steps", "mistake");
    for (mistake, Found { steps, how }) in &found {
        let text = mistake.text();
        match steps {
            Some(steps) => println!("{steps:>7}  {text:<55} {how}"),
            None => missed.push(text),
        }
    }
    assert_eq!(found.len(), Mistake::ALL.len());
    assert!(
        missed.is_empty(),
        "not found in {MOST_STEPS} steps: {missed:?}"
    );
}

/// One attempt of `shrink.rs`, with the mistake of the environment.
#[test]
#[ignore = "a part of the others"]
fn a_program_from_a_file() {
    suite::run_program_of_file();
}

/// A failing program is made short, and what is printed of it is C.
#[test]
fn a_program_that_finds_a_mistake_is_made_short() {
    let mistake = Mistake::ReaderReplacesReaders;
    let mut shrinker = shrink::Shrinker::new();
    shrinker
        .environment
        .push((MISTAKE.into(), mistake.text().into()));
    let failing = (1..100)
        .map(suite::program_of)
        .find(|program| shrinker.failure(program).is_some())
        .expect("a program finds it");
    let (short, text) = shrinker.shrink(&failing).expect("it fails again");
    println!("{short}\n{text}");
    assert!(
        short.steps.len() <= 15,
        "{} steps are left",
        short.steps.len()
    );
    let parsed: program::Program = short.to_string().parse().expect("it can be read again");
    assert_eq!(parsed, short);
    print::assert_compiles(&short);
}
