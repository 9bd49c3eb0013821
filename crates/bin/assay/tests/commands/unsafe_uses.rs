//! Every use of `unsafe` is on the page that lists them, with what makes it sound; and says so where it stands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::architecture::packages;
use crate::support::{read, root};

/// The files of the crates' own sources, without tests and examples beside them.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Numbers of the lines, from 0, that begin an unsafe block, function or implementation.
fn uses(text: &str) -> Vec<usize> {
    let is_use = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        let mut words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == "unsafe") && !code.contains("\"unsafe") && !code.contains("'unsafe-")
    };
    text.lines().enumerate().filter(|(_, line)| is_use(line)).map(|(number, _)| number).collect()
}

/// Uses of `unsafe` in each file that has any.
fn counted() -> BTreeMap<String, usize> {
    let mut files = Vec::new();
    for package in packages() {
        sources(&package.directory.join("src"), &mut files);
    }
    let shown =
        |path: &Path| path.strip_prefix(root().join("crates")).expect("a crate").display().to_string();
    let counts = files.iter().map(|path| (shown(path), uses(&read(path)).len()));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// The rows of the page's table: a file, and how many uses it has.
fn listed() -> BTreeMap<String, usize> {
    let page = read(&root().join("docs/reference/unsafe.md"));
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let file = cells.next()?.trim_end_matches('`').to_owned();
        let count = cells.next()?.parse().ok()?;
        assert!(cells.next().is_some_and(|why| why.len() > 20), "{file}: no invariant is given");
        Some((file, count))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn the_page_lists_every_use_of_unsafe_and_no_other() {
    let (counted, listed) = (counted(), listed());
    assert!(counted.len() > 10, "uses of unsafe were not found: {counted:?}");
    assert_eq!(listed, counted, "docs/reference/unsafe.md (left) and the sources (right) differ");
}

#[test]
fn every_use_of_unsafe_says_where_it_stands_why_it_is_sound() {
    for file in counted().keys() {
        let text = read(&root().join("crates").join(file));
        let lines: Vec<&str> = text.lines().collect();
        for number in uses(&text) {
            let before = &lines[number.saturating_sub(3)..=number];
            assert!(before.iter().any(|line| line.contains("// SAFETY: ")), "{file}:{}", number + 1);
        }
    }
}

#[test]
fn a_use_is_found_and_a_word_in_a_comment_or_a_text_is_none() {
    let text = "let x = unsafe { f() };\n// unsafe { }\nlet is_unsafe = 1;\nlet s = \"unsafe-inline\";\nunsafe impl A {}";
    assert_eq!(uses(text), [0, 4]);
}
