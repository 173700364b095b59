//! The one error type: a status that C sees and a message that names the argument, its value and what was expected.

use thiserror::Error as ThisError;

/// What went wrong, as the number that crosses the C ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Status {
    Ok = 0,
    InvalidArgument = 1,
    NullPointer = 2,
    InvalidHandle = 3,
    StaleHandle = 4,
    WrongKind = 5,
    InvalidRank = 6,
    InvalidShape = 7,
    Overflow = 8,
    InvalidStrides = 9,
    InvalidEnum = 10,
    InvalidStructSize = 11,
    InvalidLayout = 12,
    InvalidAlignment = 13,
    InvalidValue = 14,
    InvalidLimit = 15,
    DeviceMismatch = 16,
    ShapeMismatch = 17,
    DtypeMismatch = 18,
    CapacityExceeded = 19,
    CapacityUnderflow = 20,
    InvalidIndex = 21,
    InvalidDevice = 22,
    InvalidStream = 23,
    InvalidEvent = 24,
    NotSupported = 25,
    NotReady = 26,
    OutOfMemory = 27,
    LimitExceeded = 28,
    NoDriver = 29,
    DriverTooOld = 30,
    NoDevice = 31,
    NoKernelImage = 32,
    DeviceError = 33,
    ContextLost = 34,
    Capturing = 35,
    Forked = 36,
    Internal = 37,
}

/// A status and the sentence that explains it.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{message}")]
pub struct Error {
    pub status: Status,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The same of an argument that the message names by what it is.
    pub fn of_argument(mut self, name: &str) -> Error {
        self.message = format!("{name}: {}", self.message);
        self
    }

    /// `message` names the argument, its value and what was expected.
    #[cold]
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        Error {
            status,
            message: message.into(),
        }
    }
}

/// `fail!(Status::InvalidRank, "desc.rank is {rank}, expected 1 to 15")` returns that error.
#[macro_export]
macro_rules! fail {
    ($status:expr, $($text:tt)*) => {
        return Err($crate::error::Error::new($status, format!($($text)*)))
    };
}
