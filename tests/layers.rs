//! The source tree keeps its layers: calls go down only, the C ABI is in `ffi`, cudarc in `backend`, files stay small.

use std::fs;
use std::path::{Path, PathBuf};

/// Top to bottom. A layer uses itself and those after it; `error` and the crate's root belong to nobody.
const LAYERS: &[&str] = &[
    "ffi", "report", "op", "object", "cache", "memory", "timeline", "backend", "observe",
];
const MAX_LINES: usize = 700;

#[test]
fn layers_only_call_down() {
    report(each_source(|source| {
        upward_uses(source.layer, &source.text)
    }));
}

#[test]
fn c_functions_are_defined_in_ffi_only() {
    report(each_source(|source| match source.layer {
        "ffi" => Vec::new(),
        _ => c_definitions(source.without_tests()),
    }));
}

#[test]
fn cudarc_is_named_in_backend_only() {
    report(each_source(|source| match source.layer {
        "backend" => Vec::new(),
        _ => words_with_rest(&code_of(&source.text))
            .filter(|(word, _)| *word == "cudarc")
            .map(|_| "names cudarc".to_string())
            .collect(),
    }));
}

#[test]
fn files_stay_small() {
    let mut found = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        for file in rust_files(&root().join(folder)) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            if lines > MAX_LINES {
                let relative = file.strip_prefix(root()).unwrap();
                found.push(format!(
                    "{}: {lines} lines, at most {MAX_LINES}",
                    relative.display()
                ));
            }
        }
    }
    report(found);
}

// ---- What is looked for ----

/// `crate::X` and `super::…::X` that name a layer above `layer`.
fn upward_uses(layer: &str, text: &str) -> Vec<String> {
    let Some(own) = LAYERS.iter().position(|name| *name == layer) else {
        return Vec::new();
    };
    let code = code_of(text);
    let above = |name: &str| LAYERS[..own].contains(&name);
    let mut found = Vec::new();
    for (word, rest) in words_with_rest(&code) {
        if word != "crate" && word != "super" {
            continue;
        }
        let Some(path) = rest.trim_start().strip_prefix("::") else {
            continue;
        };
        for name in first_segments(path) {
            // A layer may have a submodule of such a name; `super::` alone cannot tell, two of them do.
            if above(name) && (word == "crate" || path.trim_start().starts_with("super")) {
                found.push(format!("{layer} uses {word}::{name}, which lies above it"));
            }
        }
    }
    found
}

/// The names that a path can begin with: `a::b` gives `a`, `{a::b, c}` gives `a` and `c`, leading `super::` are passed.
fn first_segments(path: &str) -> Vec<&str> {
    let path = path.trim_start();
    if let Some(rest) = path.strip_prefix("super") {
        if let Some(rest) = rest.trim_start().strip_prefix("::") {
            return first_segments(rest);
        }
    }
    let Some(group) = path.strip_prefix('{') else {
        return words_with_rest(path)
            .next()
            .map(|(word, _)| word)
            .into_iter()
            .collect();
    };
    let mut depth = 0;
    let mut start = 0;
    let mut names = Vec::new();
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.extend(
                    words_with_rest(&group[start..at])
                        .next()
                        .map(|(word, _)| word),
                );
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

/// Functions with a C calling convention, and names that the linker sees. Types of such functions and declarations in
/// an `extern` block are not meant.
fn c_definitions(text: &str) -> Vec<String> {
    let code = code_of(text);
    let mut found = Vec::new();
    for (word, rest) in words_with_rest(&code) {
        if word == "no_mangle" || word == "export_name" {
            found.push(format!("has {word}"));
        }
        let after_abi = rest.trim_start().trim_start_matches("\"\"").trim_start();
        if word == "extern" {
            if let Some(signature) = after_abi.strip_prefix("fn") {
                if signature.starts_with(char::is_whitespace)
                    && !signature.trim_start().starts_with('(')
                {
                    found.push(format!("defines extern fn{}", first_line(signature)));
                }
            }
        }
    }
    found
}

// ---- Reading Rust ----

/// The source with comments gone and each string and character literal empty.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (kept, length) = if rest.starts_with("//") {
            ("", rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (" ", block_comment_length(rest))
        } else if let Some(length) = raw_string_length(rest, &code) {
            ("\"\"", length)
        } else if character == '"' {
            ("\"\"", quoted_length(rest, '"'))
        } else if let Some(length) = character_literal_length(rest) {
            ("' '", length)
        } else {
            (&rest[..character.len_utf8()], character.len_utf8())
        };
        code.push_str(kept);
        rest = &rest[length..];
    }
    code
}

fn block_comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// `r"…"` and `r#"…"#`, also after `b` or `c`; `before` tells an `r` that ends a word.
fn raw_string_length(text: &str, before: &str) -> Option<usize> {
    let body = text.strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    if !body[hashes..].starts_with('"') {
        return None;
    }
    let prefix = before.trim_end_matches(['b', 'c']);
    if prefix.ends_with(is_word) {
        return None;
    }
    let opening = 1 + hashes + 1;
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = text[opening..].find(&closing)?;
    Some(opening + end + closing.len())
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `'x'` or `'\n'`, and not the lifetime `'x`.
fn character_literal_length(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    let first = body.chars().next()?;
    if first == '\\' {
        return Some(quoted_length(text, '\''));
    }
    body[first.len_utf8()..]
        .starts_with('\'')
        .then_some(1 + first.len_utf8() + 1)
}

/// Each word (identifier, keyword, number) with the text that follows it.
fn words_with_rest(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = code;
    std::iter::from_fn(move || {
        rest = &rest[rest.find(is_word)?..];
        let end = rest
            .find(|character| !is_word(character))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some((word, after))
    })
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

// ---- The tree ----

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return files;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

struct Source {
    /// Relative to `src`.
    path: PathBuf,
    /// Empty for files of the root.
    layer: &'static str,
    text: String,
}

impl Source {
    /// The text up to the file's own tests, which may define kernels to launch; nothing of a file of tests.
    fn without_tests(&self) -> &str {
        if self
            .path
            .iter()
            .any(|part| part == "tests" || part == "tests.rs")
        {
            return "";
        }
        let end = self.text.find("#[cfg(test)]\nmod ");
        &self.text[..end.unwrap_or(self.text.len())]
    }
}

/// What `check` finds in each file of `src`.
fn each_source(check: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    let folder = root().join("src");
    let files = rust_files(&folder);
    assert!(!files.is_empty(), "no sources in {}", folder.display());
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(&folder).unwrap().to_path_buf();
        let source = Source {
            layer: layer_of(&path),
            text: fs::read_to_string(&file).unwrap(),
            path,
        };
        for violation in check(&source) {
            found.push(format!("src/{}: {violation}", source.path.display()));
        }
    }
    found
}

/// The first folder, or the file's own name where a layer is one file.
fn layer_of(relative: &Path) -> &'static str {
    let first = relative
        .iter()
        .next()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let name = first.strip_suffix(".rs").unwrap_or(first);
    LAYERS
        .iter()
        .find(|layer| **layer == name)
        .copied()
        .unwrap_or_default()
}

fn report(found: Vec<String>) {
    assert!(
        found.is_empty(),
        "{} found:\n{}",
        found.len(),
        found.join("\n")
    );
}

// ---- The checks themselves can fail ----

#[test]
fn an_upward_use_is_found() {
    let uses = |text: &str| upward_uses("memory", text).len();
    assert_eq!(uses("use crate::cache::Index;"), 1);
    assert_eq!(uses("let x = crate :: op :: flip();"), 1);
    assert_eq!(
        uses("use crate::{cache::{a, op}, timeline::Access, object::Tensor};"),
        2
    );
    assert_eq!(uses("use super::super::cache::Index;"), 1);
    assert_eq!(
        uses("use crate::{timeline, backend, observe, error, memory};"),
        0
    );
    assert_eq!(uses("use super::cache; use crate::memory::cache;"), 0);
    assert_eq!(
        uses("// use crate::cache;\n/* crate::op */ \"crate::op\" r#\"crate::op\"#"),
        0
    );
    assert_eq!(
        uses("/// See [`crate::cache`].\nfn f<'a>(x: &'a str, c: char) -> bool { c == '\"' }"),
        0
    );
    assert_eq!(uses("let c = '\"'; use crate::cache;"), 1);
    assert_eq!(upward_uses("", "use crate::ffi;").len(), 0);
}

#[test]
fn a_c_definition_is_found() {
    let definitions = |text: &str| c_definitions(text).len();
    assert_eq!(definitions("pub unsafe extern \"C\" fn cvc_x() {}"), 1);
    assert_eq!(definitions("#[no_mangle]\npub extern fn cvc_x() {}"), 2);
    assert_eq!(definitions("extern \"system\" fn callback(x: i32) {}"), 1);
    assert_eq!(
        definitions("extern \"C\" { fn cvc_host_flip(p: *const u8); }"),
        0
    );
    assert_eq!(
        definitions("pub type Kernel = unsafe extern \"C\" fn(params: *const u8);"),
        0
    );
    assert_eq!(definitions("// extern \"C\" fn x() {}"), 0);
}

#[test]
fn test_code_is_told_from_the_rest() {
    let source = |path: &str, text: &str| Source {
        path: path.into(),
        layer: "memory",
        text: text.to_string(),
    };
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {}";
    assert_eq!(
        source("memory/pool.rs", text).without_tests(),
        "fn a() {}\n"
    );
    assert_eq!(source("memory/tests/pool.rs", text).without_tests(), "");
    assert_eq!(
        source("memory/pool.rs", "fn a() {}").without_tests(),
        "fn a() {}"
    );
}

#[test]
fn a_layer_is_known_by_its_folder() {
    assert_eq!(layer_of(Path::new("memory/pool.rs")), "memory");
    assert_eq!(layer_of(Path::new("observe.rs")), "observe");
    assert_eq!(layer_of(Path::new("error.rs")), "");
}
