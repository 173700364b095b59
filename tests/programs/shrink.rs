//! Makes a failing program short: steps are left out, then threads and numbers made simple, while it still fails. Each
//! attempt runs in a process of its own, so that nothing is left of the one before, and a crash is a failure like others.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::program::{Program, Step};

/// The test that runs the program of this variable's file: see `main.rs`.
pub const PROGRAM_FILE: &str = "CVC_PROGRAM";
pub const CHILD_TEST: &str = "a_program_from_a_file";
/// What a child says when a step failed.
pub const FAILED_AT: &str = "failed at step ";

/// How often a program is tried at most.
const MOST_ATTEMPTS: usize = 3000;

pub struct Shrinker {
    file: PathBuf,
    attempts: usize,
    /// Handed on to the children.
    pub environment: Vec<(String, String)>,
}

impl Shrinker {
    pub fn new() -> Shrinker {
        let name = format!("cvc-program-{}", std::process::id());
        Shrinker {
            file: std::env::temp_dir().join(name),
            attempts: 0,
            environment: Vec::new(),
        }
    }

    /// What the program's process says where it fails.
    pub fn failure(&mut self, program: &Program) -> Option<String> {
        self.attempts += 1;
        std::fs::write(&self.file, program.to_string()).expect("a file can be written");
        let itself = std::env::current_exe().expect("a test knows its program");
        let output = Command::new(itself)
            .args([CHILD_TEST, "--exact", "--ignored", "--nocapture"])
            .env(PROGRAM_FILE, &self.file)
            .env("RUST_BACKTRACE", "0")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .expect("a process can be started");
        let _ = std::fs::remove_file(&self.file);
        if output.status.success() {
            return None;
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Some(format!("{text}{}", output.status))
    }

    /// The program without what the failure does not need; `None` where it does not fail by itself.
    pub fn shrink(&mut self, program: &Program) -> Option<(Program, String)> {
        let mut program = program.clone();
        let mut text = self.failure(&program)?;
        if let Some(last) = step_of(&text) {
            self.keep_if(&mut program, &mut text, |steps| steps.truncate(last + 1));
        }
        loop {
            let before = program.clone();
            self.leave_out(&mut program, &mut text);
            self.simplify(&mut program, &mut text);
            if program == before || self.attempts > MOST_ATTEMPTS {
                return Some((program, text));
            }
        }
    }

    /// Makes the change if the program still fails.
    fn keep_if(
        &mut self,
        program: &mut Program,
        text: &mut String,
        change: impl FnOnce(&mut Vec<Step>),
    ) -> bool {
        let mut changed = program.clone();
        change(&mut changed.steps);
        if changed == *program || self.attempts > MOST_ATTEMPTS {
            return false;
        }
        let Some(new) = self.failure(&changed) else {
            return false;
        };
        (*program, *text) = (changed, new);
        true
    }

    /// From halves to single steps, from the end, since later steps are needed less.
    fn leave_out(&mut self, program: &mut Program, text: &mut String) {
        let mut size = program.steps.len().div_ceil(2);
        while size > 0 {
            let mut end = program.steps.len();
            while end > 0 {
                let begin = end.saturating_sub(size);
                self.keep_if(program, text, |steps| drop(steps.drain(begin..end)));
                end = begin.min(program.steps.len());
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    fn simplify(&mut self, program: &mut Program, text: &mut String) {
        for place in 0..program.steps.len() {
            self.keep_if(program, text, |steps| steps[place].thread = 0);
            for number in 0..program.steps[place].what.arguments() {
                let now = program.steps[place].numbers[number];
                for simpler in [0, 1, now / 2] {
                    let smaller = simpler < now;
                    if smaller
                        && self.keep_if(program, text, |steps| {
                            steps[place].numbers[number] = simpler;
                        })
                    {
                        break;
                    }
                }
            }
        }
    }
}

fn step_of(text: &str) -> Option<usize> {
    let (_, rest) = text.rsplit_once(FAILED_AT)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
