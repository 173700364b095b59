//! The checked-in header is the one that the sources give. `CVC_BLESS=1` writes it anew.

use std::fs;
use std::path::Path;

const GENERATED: &str = concat!(env!("OUT_DIR"), "/cvc.h");
const CHECKED_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include/cvc.h");

#[test]
fn header_is_up_to_date() {
    let generated = fs::read_to_string(GENERATED).expect("the build script writes the header");
    if std::env::var("CVC_BLESS").is_ok_and(|value| value == "1") {
        fs::create_dir_all(Path::new(CHECKED_IN).parent().unwrap()).unwrap();
        fs::write(CHECKED_IN, &generated).unwrap();
    }
    let checked_in = fs::read_to_string(CHECKED_IN).unwrap_or_default();
    if let Some((line, expected, found)) = first_difference(&generated, &checked_in) {
        panic!(
            "include/cvc.h is stale from line {line} on: it has {found:?}, the sources give {expected:?}. \
             `make header` writes it anew."
        );
    }
}

/// The 1-based line where the two texts part, and what each has there.
fn first_difference<'a>(left: &'a str, right: &'a str) -> Option<(usize, &'a str, &'a str)> {
    const END: &str = "(end of file)";
    let mut right_lines = right.split('\n');
    for (index, line) in left.split('\n').enumerate() {
        let other = right_lines.next().unwrap_or(END);
        if line != other {
            return Some((index + 1, line, other));
        }
    }
    let extra = right_lines.next()?;
    Some((left.split('\n').count() + 1, END, extra))
}

#[test]
fn differences_are_found_and_placed() {
    assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
    assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b", "c")));
    assert_eq!(
        first_difference("a\n", ""),
        Some((1, "a", "")),
        "a missing header"
    );
    assert_eq!(
        first_difference("a", "a\nb"),
        Some((2, "(end of file)", "b"))
    );
    assert_eq!(
        first_difference("a\nb", "a"),
        Some((2, "b", "(end of file)"))
    );
}
