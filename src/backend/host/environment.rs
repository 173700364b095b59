//! The host backend's size, as the environment gives it.

use std::ffi::OsStr;

use crate::error::{Result, Status};
use crate::fail;

pub const DEVICES: &str = "CVC_HOST_DEVICES";
pub const MEMORY: &str = "CVC_HOST_MEMORY";
pub const EXECUTOR: &str = "CVC_HOST_EXECUTOR";
pub const MAX_DEVICES: i32 = 64;

/// The least memory that a device may have: a page.
const MIN_MEMORY: u64 = 4096;
const MAX_DEFAULT_MEMORY: u64 = 4 << 30;

/// How many devices; 1 where the variable is not set.
pub fn devices(value: Option<&OsStr>) -> Result<i32> {
    let Some(value) = value else { return Ok(1) };
    let number = value.to_str().and_then(digits);
    match number.and_then(|number| i32::try_from(number).ok()) {
        Some(devices @ 1..=MAX_DEVICES) => Ok(devices),
        _ => fail!(
            Status::InvalidValue,
            "{DEVICES} is {value:?}, expected a whole number from 1 to {MAX_DEVICES}"
        ),
    }
}

/// Bytes a device; the smaller of 4 GiB and a quarter of the machine's memory where the variable is not set.
pub fn memory(value: Option<&OsStr>) -> Result<u64> {
    let Some(value) = value else {
        return Ok(default_memory());
    };
    match value.to_str().and_then(bytes) {
        Some(bytes) if bytes >= MIN_MEMORY => Ok(bytes),
        _ => fail!(
            Status::InvalidValue,
            "{MEMORY} is {value:?}, expected a number of bytes of at least {MIN_MEMORY}, or one with K, M or G behind it"
        ),
    }
}

/// Whether queued work runs in steps; by itself where the variable is not set.
pub fn is_stepped(value: Option<&OsStr>) -> Result<bool> {
    match value.map(OsStr::to_str) {
        None | Some(Some("threads" | "")) => Ok(false),
        Some(Some("stepped")) => Ok(true),
        Some(_) => fail!(
            Status::InvalidValue,
            "{EXECUTOR} is {:?}, expected threads or stepped",
            value.unwrap_or_default()
        ),
    }
}

fn bytes(text: &str) -> Option<u64> {
    let shift = match text.bytes().last()? {
        b'K' | b'k' => 10,
        b'M' | b'm' => 20,
        b'G' | b'g' => 30,
        _ => return digits(text),
    };
    digits(&text[..text.len() - 1])?.checked_mul(1 << shift)
}

/// Digits alone: `parse` would take a sign.
fn digits(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn default_memory() -> u64 {
    // SAFETY: `sysconf` has no preconditions.
    let (pages, page) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    let machine = u64::try_from(pages).ok().zip(u64::try_from(page).ok());
    let quarter = machine.map(|(pages, page)| pages.saturating_mul(page) / 4);
    let quarter = quarter.unwrap_or(MAX_DEFAULT_MEMORY);
    // Whole MiB, so that the number reads well.
    (quarter >> 20 << 20).clamp(1 << 20, MAX_DEFAULT_MEMORY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn devices_are_a_number_from_1_to_64() {
        assert_eq!(devices(None), Ok(1));
        assert_eq!(devices(Some(OsStr::new("1"))), Ok(1));
        assert_eq!(devices(Some(OsStr::new("64"))), Ok(64));
        for bad in ["", "0", "65", "-1", "+2", "2 ", "two", "4294967297"] {
            let error = devices(Some(OsStr::new(bad))).unwrap_err();
            assert_eq!(error.status, Status::InvalidValue);
            let expected =
                format!("CVC_HOST_DEVICES is {bad:?}, expected a whole number from 1 to 64");
            assert_eq!(error.message, expected);
        }
        assert!(devices(Some(OsStr::from_bytes(b"\xff"))).is_err());
    }

    #[test]
    fn memory_is_bytes_with_an_optional_suffix() {
        let of = |text: &str| memory(Some(OsStr::new(text)));
        assert_eq!(of("4096"), Ok(4096));
        assert_eq!(of("8K"), Ok(8 << 10));
        assert_eq!(of("3m"), Ok(3 << 20));
        assert_eq!(of("2G"), Ok(2 << 30));
        for bad in [
            "",
            "0",
            "4095",
            "G",
            "-1",
            "+5M",
            "1.5G",
            "2GiB",
            "2 G",
            "1T",
            "18014398509481984K",
            "5€",
        ] {
            let error = of(bad).unwrap_err();
            assert_eq!(error.status, Status::InvalidValue, "{bad}");
            let begin = format!("CVC_HOST_MEMORY is {bad:?}, expected");
            assert!(error.message.starts_with(&begin), "{}", error.message);
        }
        let default = memory(None).unwrap();
        assert!((1 << 20..=4 << 30).contains(&default));
    }

    #[test]
    fn an_executor_is_one_of_two() {
        let of = |text: &str| is_stepped(Some(OsStr::new(text)));
        assert_eq!(is_stepped(None), Ok(false));
        assert_eq!((of("threads"), of("stepped")), (Ok(false), Ok(true)));
        let error = of("step").unwrap_err();
        assert_eq!(
            error.message,
            "CVC_HOST_EXECUTOR is \"step\", expected threads or stepped"
        );
    }
}
