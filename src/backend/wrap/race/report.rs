//! The races that were found, as sentences.

use parking_lot::Mutex;

use super::shadow::{Access, Conflict};

struct Reports {
    count: u64,
    /// The first ones.
    texts: Vec<String>,
}

static REPORTS: Mutex<Reports> = Mutex::new(Reports {
    count: 0,
    texts: Vec::new(),
});

const KEPT: usize = 100;

pub(super) fn add(text: String) {
    let mut reports = REPORTS.lock();
    reports.count += 1;
    if reports.texts.len() < KEPT {
        let number = reports.count;
        reports.texts.push(format!("race {number}: {text}\n"));
    }
}

/// How many were found since they were last forgotten.
pub fn count() -> u64 {
    REPORTS.lock().count
}

/// A line for each of the first hundred.
pub fn text() -> String {
    REPORTS.lock().texts.concat()
}

pub fn forget() {
    let mut reports = REPORTS.lock();
    reports.count = 0;
    reports.texts.clear();
}

fn did(access: &Access) -> &'static str {
    if access.write {
        "wrote"
    } else {
        "read"
    }
}

pub(super) fn between(conflict: &Conflict, later: &Access, names: &[String; 2]) -> String {
    let (earlier, [first, second]) = (&conflict.earlier, names);
    format!(
        "access {} ({} on {second}) {} {}, which access {} ({} on {first}) {}, and nothing orders them. An event recorded on \
         {first} after access {} and waited for by {second} before access {} would have, or a wait of the host between them",
        later.number,
        later.what,
        if later.write { "writes" } else { "reads" },
        bytes(conflict),
        earlier.number,
        earlier.what,
        did(earlier),
        earlier.number,
        later.number,
    )
}

pub(super) fn with_host(conflict: &Conflict, what: &str, name: &str) -> String {
    let earlier = &conflict.earlier;
    format!(
        "the host {what} {}, which access {} ({} on {name}) {}, and has not seen that complete. A wait of the host for {name} \
         after access {} would have ordered them",
        bytes(conflict),
        earlier.number,
        earlier.what,
        did(earlier),
        earlier.number,
    )
}

fn bytes(conflict: &Conflict) -> String {
    let length = conflict.end - conflict.start;
    format!("{length} bytes at {:#x}", conflict.start)
}
