//! Messages for the person who runs the program: to standard error at once, and to a callback where one is set, when the call
//! that wrote them ends. In the middle of it the callback could not use the library, whose tables may be about to change.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Level {
    Error = 1,
    Warning = 2,
    Info = 3,
}

/// Gets the level and the text, without a newline. May be called on any thread that uses the library.
pub type Callback = Box<dyn Fn(Level, &str) + Send + Sync>;

/// Messages that the callback has not got yet.
static WAITING: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());
static ANY_WAITS: AtomicBool = AtomicBool::new(false);
static CALLBACK: Mutex<Option<std::sync::Arc<Callback>>> = Mutex::new(None);

pub fn set_callback(callback: Option<Callback>) {
    *CALLBACK.lock() = callback.map(std::sync::Arc::new);
}

/// Writes one line to standard error, and keeps it for the callback.
pub fn write(level: Level, message: impl Display) {
    let text = message.to_string();
    let name = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "info",
    };
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "cvc: {name}: {text}");
    if CALLBACK.lock().is_some() {
        WAITING.lock().push((level, text));
        ANY_WAITS.store(true, Ordering::Release);
    }
}

/// Gives the callback what was written meanwhile, by whichever thread. Called where a call ends, with nothing locked.
#[inline(always)]
pub fn deliver() {
    if ANY_WAITS.load(Ordering::Relaxed) {
        deliver_waiting();
    }
}

#[cold]
fn deliver_waiting() {
    ANY_WAITS.store(false, Ordering::Release);
    let waiting = std::mem::take(&mut *WAITING.lock());
    let callback = CALLBACK.lock().clone();
    if let Some(callback) = callback {
        for (level, text) in waiting {
            callback(level, &text);
        }
    }
}
