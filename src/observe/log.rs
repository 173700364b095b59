//! Messages for the person who runs the program: to a callback where one is set, and to standard error.

use std::fmt::Display;
use std::io::Write;

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

static CALLBACK: Mutex<Option<std::sync::Arc<Callback>>> = Mutex::new(None);

pub fn set_callback(callback: Option<Callback>) {
    *CALLBACK.lock() = callback.map(std::sync::Arc::new);
}

/// Writes one line to standard error and gives it to the callback, which runs with no lock held.
pub fn write(level: Level, message: impl Display) {
    let text = message.to_string();
    let name = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "info",
    };
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "cvc: {name}: {text}");
    let callback = CALLBACK.lock().clone();
    if let Some(callback) = callback {
        callback(level, &text);
    }
}
