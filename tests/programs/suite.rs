//! Many programs one after the other, what they reached, and what is told of one that fails.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use super::generate::generate;
use super::look::Tally;
use super::print::print;
use super::program::{Program, FAULTY_CALLS};
use super::run::{start_backend, Runner};
use super::shrink::{Shrinker, FAILED_AT, PROGRAM_FILE};

pub const STEPS_PER_PROGRAM: usize = 1000;

pub struct Failure {
    /// The number of the step; that of the last one and 1 for what shows at the end.
    pub step: usize,
    pub text: String,
}

fn text_of(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other
            .downcast::<&str>()
            .map_or_else(|_| "a panic".into(), |text| text.to_string()),
    }
}

pub fn run_program(program: &Program) -> Result<Tally, Failure> {
    let mut step = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut runner = Runner::begin(program.watch);
        for next in &program.steps {
            runner.step(next);
            step += 1;
        }
        runner.end()
    }));
    outcome.map_err(|panic| Failure {
        step,
        text: text_of(panic),
    })
}

pub fn program_of(seed: u64) -> Program {
    generate(seed, STEPS_PER_PROGRAM)
}

pub fn run_seed(seed: u64) -> Result<Tally, Failure> {
    run_program(&program_of(seed))
}

/// The child's side of an attempt of `shrink.rs`.
pub fn run_program_of_file() {
    let Ok(file) = std::env::var(PROGRAM_FILE) else {
        return;
    };
    let text = std::fs::read_to_string(file).expect("the file is there");
    let program: Program = text.parse().expect("the file has a program");
    start_backend();
    if let Err(failure) = run_program(&program) {
        panic!("{FAILED_AT}{}: {}", failure.step, failure.text);
    }
}

/// Neither seed nor number of steps was asked for.
pub fn is_whole() -> bool {
    number("CVC_SEED").is_none() && number("CVC_STEPS").is_none()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs programs of so many steps together, or the one of `CVC_SEED`.
pub fn run_steps(steps: u64, first_seed: u64) -> Tally {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start_backend();
    let steps = number("CVC_STEPS").unwrap_or(steps);
    let programs = steps.div_ceil(STEPS_PER_PROGRAM as u64);
    let seeds = match number("CVC_SEED") {
        Some(seed) => seed..seed + 1,
        None => first_seed..first_seed + programs,
    };
    let mut all = Tally::default();
    for seed in seeds {
        let program = program_of(seed);
        match run_program(&program) {
            Ok(tally) => all.add(&tally),
            Err(failure) => {
                let Failure { step, text } = &failure;
                eprintln!("the program of CVC_SEED={seed} failed at step {step}: {text}");
                eprintln!("{} steps before it were right", all.steps);
                if std::env::var_os("CVC_NO_SHRINKING").is_some() {
                    panic!("it is not made shorter, as CVC_NO_SHRINKING says");
                }
                panic!("{}", told(&mut Shrinker::new(), &program));
            }
        }
    }
    println!("{all}");
    all
}

/// A failing program, made short, as steps and as C.
pub fn told(shrinker: &mut Shrinker, program: &Program) -> String {
    match shrinker.shrink(program) {
        None => "it does not fail by itself: run the programs before it too".into(),
        Some((short, text)) => {
            let (steps, c) = (short.steps.len(), print(&short));
            format!("{steps} steps are enough:\n{short}\n{text}\n{c}")
        }
    }
}

/// The first seed of a part of the long run.
const FIRST_SEED: &str = "CVC_FIRST_SEED";
const STEPS_PER_PART: u64 = 100_000;

/// A part of `run_in_parts`, in the process that it starts.
pub fn run_part() {
    if let Some(seed) = number(FIRST_SEED) {
        run_steps(STEPS_PER_PART, seed);
    }
}

/// Runs programs in processes of their own, as many at a time as there are cores: the race checker remembers every stream
/// that a process ever had. `child`: the test that calls `run_part`. Returns how often each decision was taken.
pub fn run_in_parts(steps: u64, first_seed: u64, child: &str) -> Vec<(String, u64)> {
    let steps = number("CVC_STEPS").unwrap_or(steps);
    let parts = steps.div_ceil(STEPS_PER_PART);
    let next = AtomicU64::new(0);
    let sums = Mutex::new(Vec::<(String, u64)>::new());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let work = || loop {
        let part = next.fetch_add(1, Ordering::Relaxed);
        if part >= parts {
            return;
        }
        let seed = first_seed + part * (STEPS_PER_PART / STEPS_PER_PROGRAM as u64);
        let output = Command::new(std::env::current_exe().expect("a test knows its program"))
            .args([child, "--exact", "--ignored", "--nocapture"])
            .env(FIRST_SEED, seed.to_string())
            .env("CVC_STEPS", STEPS_PER_PART.to_string())
            .output()
            .expect("a process can be started");
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            // The others stop too.
            next.store(parts, Ordering::Relaxed);
        }
        assert!(
            output.status.success(),
            "the part from seed {seed}: {}\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let mut sums = sums.lock().unwrap_or_else(|broken| broken.into_inner());
        for line in text.lines() {
            let Some((count, name)) = line.trim().split_once(' ') else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            match sums.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += count,
                None => sums.push((name.to_string(), count)),
            }
        }
    };
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let sums = sums
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner());
    for (name, sum) in &sums {
        println!("{sum:>10} {name}");
    }
    sums
}

/// Every decision was taken as often at least.
pub fn check_that_all_was_reached(counts: &[(String, u64)], least: u64) {
    assert!(!counts.is_empty(), "nothing was run");
    let hardly: Vec<_> = counts.iter().filter(|(_, count)| *count < least).collect();
    assert!(hardly.is_empty(), "hardly ever reached: {hardly:?}");
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        let (mine, theirs) = (&mut self.decisions, &other.decisions);
        for (sum, more) in [
            (&mut self.steps, other.steps),
            (&mut self.exact, other.exact),
            (&mut self.fit, other.fit),
            (&mut self.pending, other.pending),
            (&mut self.misses, other.misses),
            (&mut self.evictions, other.evictions),
            (&mut self.out_of_memory, other.out_of_memory),
            (&mut self.downloads, other.downloads),
            (&mut self.threads_ended, other.threads_ended),
            (&mut self.caches_closed, other.caches_closed),
            (&mut self.freed, other.freed),
            (&mut self.freed_after_events, other.freed_after_events),
            (&mut self.streams_recorded, other.streams_recorded),
            (&mut self.held_streams_ended, other.held_streams_ended),
            (
                &mut self.foreign_ended_after_a_free,
                other.foreign_ended_after_a_free,
            ),
            (&mut self.settled, other.settled),
            (&mut self.captures, other.captures),
            (&mut self.captures_joined, other.captures_joined),
            (&mut self.captures_broken, other.captures_broken),
            (&mut self.refused_for_captures, other.refused_for_captures),
            (&mut self.refused_to_wait, other.refused_to_wait),
            (&mut self.requests_in_captures, other.requests_in_captures),
            (&mut self.owners_told, other.owners_told),
            (&mut self.last_held_by_batches, other.last_held_by_batches),
            (&mut self.batch_calls_refused, other.batch_calls_refused),
            (&mut mine.exact, theirs.exact),
            (&mut mine.fit, theirs.fit),
            (&mut mine.pending, theirs.pending),
            (&mut mine.waits, theirs.waits),
            (&mut mine.new_memory, theirs.new_memory),
            (&mut mine.steals, theirs.steals),
            (&mut mine.owners_list, theirs.owners_list),
            (&mut mine.evictions, theirs.evictions),
            (&mut mine.unindexed, theirs.unindexed),
            (&mut mine.over_the_limit, theirs.over_the_limit),
            (&mut mine.deferred, theirs.deferred),
            (&mut mine.shells, theirs.shells),
            (&mut mine.told_later, theirs.told_later),
            (&mut mine.spared_waits, theirs.spared_waits),
        ] {
            *sum += more;
        }
        for (sum, more) in self.faults.iter_mut().zip(&other.faults) {
            *sum += more;
        }
    }

    /// Each decision by name, and how often it was taken. The first ones are counted by the library in all programs, the
    /// others where the model follows each step.
    pub fn counts(&self) -> Vec<(String, u64)> {
        let model = &self.decisions;
        let mut counts: Vec<(String, u64)> = [
            ("exact", self.exact),
            ("fit", self.fit),
            ("pending", self.pending),
            ("miss", self.misses),
            ("evicted", self.evictions),
            ("out of memory", self.out_of_memory),
            ("value compared", self.downloads),
            ("thread ended", self.threads_ended),
            ("settled", self.settled),
            ("cache closed", self.caches_closed),
            ("raw memory freed", self.freed),
            ("raw memory freed after an event", self.freed_after_events),
            ("stream recorded for raw memory", self.streams_recorded),
            ("held stream destroyed", self.held_streams_ended),
            (
                "foreign stream destroyed after a free",
                self.foreign_ended_after_a_free,
            ),
            ("owner of a wrap told", self.owners_told),
            ("tensor that only a batch held", self.last_held_by_batches),
            ("call on a batch refused", self.batch_calls_refused),
            ("capture", self.captures),
            ("capture joined by a wait", self.captures_joined),
            (
                "capture broken by a wait for the device",
                self.captures_broken,
            ),
            ("call refused for a capture", self.refused_for_captures),
            (
                "call refused to wait for a captured stream",
                self.refused_to_wait,
            ),
            ("request on a captured stream", self.requests_in_captures),
            ("given up with work queued", model.deferred),
            ("exact, followed", model.exact),
            ("fit, followed", model.fit),
            ("pending, followed", model.pending),
            ("by a wait", model.waits),
            ("new memory, followed", model.new_memory),
            ("from an ended thread", model.steals),
            ("by the owner's list", model.owners_list),
            ("evicted, followed", model.evictions),
            ("unindexed", model.unindexed),
            ("over the limit", model.over_the_limit),
            ("wrap in an earlier one's shell", model.shells),
            ("owner told after queued work", model.told_later),
            ("captured stream spared a wait", model.spared_waits),
        ]
        .map(|(name, count)| (name.to_string(), count))
        .into();
        let faults = FAULTY_CALLS.iter().zip(self.faults);
        counts.extend(faults.map(|(name, count)| (format!("fault in {name}"), count)));
        counts
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        writeln!(f, "{} steps", self.steps)?;
        for (name, count) in self.counts() {
            writeln!(f, "{count:>10} {name}")?;
        }
        Ok(())
    }
}
