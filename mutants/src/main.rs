//! Compiles all mutants at once: `mutants LIST TREE` rewrites the sources in TREE such that mutant number n of LIST, which
//! is what `cargo mutants --list --json` prints, is chosen by `CVC_MUTANT=n` while the program runs. Those of the numbers
//! that follow are left out. Prints the numbers of those that it could not place, one a line.

mod edits;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use edits::Source;

#[derive(Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

#[derive(Deserialize)]
struct Span {
    start: Position,
    end: Position,
}

#[derive(Deserialize)]
struct Mutant {
    file: String,
    genre: String,
    replacement: String,
    span: Span,
}

const SWITCH: &str = r#"
#[doc(hidden)]
pub mod chosen_mutant {
    pub fn is(number: usize) -> bool {
        static CHOSEN: std::sync::LazyLock<usize> = std::sync::LazyLock::new(|| {
            let text = std::env::var("CVC_MUTANT").unwrap_or_default();
            text.parse().unwrap_or(usize::MAX)
        });
        *CHOSEN == number
    }
}
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, list, tree, excluded @ ..] = arguments.as_slice() else {
        return Err("usage: mutants LIST TREE [NUMBER...]".into());
    };
    let excluded: Vec<usize> = excluded
        .iter()
        .map(|number| number.parse())
        .collect::<Result<_, _>>()?;
    let mutants: Vec<Mutant> = serde_json::from_str(&fs::read_to_string(list)?)?;
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate() {
        if excluded.contains(&number) {
            continue;
        }
        files
            .entry(&mutant.file)
            .or_default()
            .push((number, mutant));
    }
    let tree = Path::new(tree);
    for (file, mutants) in files {
        let path = tree.join(file);
        let text = fs::read_to_string(&path)?;
        let mut source = Source::new(&text)?;
        for (number, mutant) in mutants {
            if !source.place(number, mutant) {
                println!("{number}");
            }
        }
        fs::write(&path, source.rewritten())?;
    }
    let root = tree.join("src/lib.rs");
    let text = fs::read_to_string(&root)? + SWITCH;
    fs::write(root, text)?;
    Ok(())
}
