//! One word for one thing: the page of terms, and what it says of words that were retired.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::{Assay, read, root};

/// Most terms that a newcomer is asked to learn.
const MOST_TERMS: usize = 60;

/// Forms of the retired words, as parts of names.
const RETIRED: [&str; 16] = [
    "answer",
    "answers",
    "answered",
    "unanswered",
    "answering",
    "reply",
    "replies",
    "replied",
    "ask",
    "asks",
    "asked",
    "asking",
    "asker",
    "askers",
    "door",
    "doors",
];

/// Names of before that programs may read: written beside the new ones, or still accepted.
const BEFORE: [&str; 12] = [
    "answered",
    "answered_hits",
    "answered_per_s",
    "answered_per_s_deviation",
    "answered_per_s_half_width",
    "answers_lost",
    "asked",
    "icp_answered",
    "icp_answered_hits",
    "icp_replies",
    "replies",
    "door",
];

fn page() -> String {
    read(&root().join("docs/reference/terms.md"))
}

/// First cells of the rows of all tables below a heading that `is_meant`, without their heads.
fn first_cells(page: &str, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let mut cells = Vec::new();
    let (mut meant, mut in_body) = (false, false);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            meant = is_meant(heading);
        }
        match line.strip_prefix("| ") {
            Some(row) if in_body && meant => cells.extend(row.split(" |").next().map(str::to_owned)),
            Some(_) => {}
            None => in_body = line.starts_with("|--"),
        }
    }
    cells
}

/// Parts of a name: between underscores and hyphens, and where capitals begin.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c.is_alphanumeric() {
            parts.last_mut().expect("there is one").extend(c.to_lowercase());
        }
    }
    parts
}

fn is_retired(name: &str) -> bool {
    !BEFORE.contains(&name) && parts(name).iter().any(|part| RETIRED.contains(&part.as_str()))
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The name that a line of code declares for others: an item, a field or a module.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let rest = rest.strip_prefix(' ')?;
    let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).find(|word| {
        !["async", "const", "unsafe", "fn", "struct", "enum", "trait", "type", "static", "mod", "use"]
            .contains(word)
    })?;
    (!rest.starts_with("use ")).then_some(name)
}

#[test]
fn the_page_of_terms_has_no_more_than_a_newcomer_can_learn_and_each_once() {
    let terms = first_cells(&page(), |heading| heading != "Retired words");
    let names: Vec<&str> = terms.iter().flat_map(|term| term.split(", ")).collect();
    let different: BTreeSet<&str> = names.iter().copied().collect();
    assert!(terms.len() > 30 && terms.len() <= MOST_TERMS, "{} terms", terms.len());
    assert_eq!(different.len(), names.len(), "a term stands twice: {names:?}");
}

#[test]
fn words_that_the_page_of_terms_retires_are_those_that_are_looked_for() {
    let retired = first_cells(&page(), |heading| heading == "Retired words");
    let words = retired.iter().flat_map(|cell| cell.split(", ")).filter(|word| !word.contains(' '));
    for word in words {
        assert!(RETIRED.contains(&word), "nobody looks for {word:?}");
    }
    assert!(retired.len() >= 4, "{retired:?}");
}

#[test]
fn retired_words_name_no_public_item() {
    let mut files = Vec::new();
    for directory in std::fs::read_dir(root().join("crates")).expect("crates").flatten() {
        rust_files(&directory.path().join("src"), &mut files);
    }
    let mut looked_at = 0;
    let mut wrong = Vec::new();
    for file in &files {
        let text = read(file);
        for name in text.lines().filter_map(declared) {
            looked_at += 1;
            if is_retired(name) {
                wrong.push(format!("{}: {name}", file.display()));
            }
        }
        if file.file_stem().and_then(|stem| stem.to_str()).is_some_and(is_retired) {
            wrong.push(file.display().to_string());
        }
    }
    assert!(looked_at > 5000, "{looked_at} names");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn retired_words_name_no_flag() {
    let assay = Assay::new();
    let help = |arguments: &[&str]| assay.run(arguments).stdout;
    let first = help(&["--help"]);
    let commands = first.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let names: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    let mut flags = 0;
    for name in names {
        let text = help(&[name, "--help"]);
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        for flag in words.filter(|word| word.starts_with("--") && word.len() > 2) {
            flags += 1;
            assert!(!is_retired(flag), "assay {name} has {flag}");
        }
    }
    assert!(flags > 100, "{flags} flags");
}

#[test]
fn retired_words_name_no_field_no_column_and_no_metric() {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("docs/reference")).expect("the reference").flatten() {
        let path = entry.path();
        if path.to_string_lossy().ends_with(".schema.json") {
            let schema: serde_json::Value = serde_json::from_str(&read(&path)).expect("JSON");
            properties(&schema, &mut names);
        }
    }
    let columns = read(&root().join("crates/record/tests/golden/columns.txt"));
    names.extend(columns.split('`').skip(1).step_by(2).map(str::to_owned));
    let metrics = read(&root().join("docs/reference/metrics.md"));
    names.extend(
        metrics.split('`').skip(1).step_by(2).filter(|name| name.starts_with("assay_")).map(str::to_owned),
    );
    assert!(names.len() > 300, "{} names", names.len());
    let wrong: Vec<&String> = names.iter().filter(|name| is_retired(name)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Names of all properties in a JSON schema.
fn properties(schema: &serde_json::Value, names: &mut BTreeSet<String>) {
    if let Some(all) = schema.get("properties").and_then(|all| all.as_object()) {
        names.extend(all.keys().cloned());
    }
    match schema {
        serde_json::Value::Object(fields) => fields.values().for_each(|value| properties(value, names)),
        serde_json::Value::Array(items) => items.iter().for_each(|value| properties(value, names)),
        _ => {}
    }
}

#[test]
fn a_flag_of_before_is_still_read() {
    let said = Assay::new()
        .run(&["spe", "--listen", "127.0.0.1:0", "--proxy", "builtin", "--doors", "nowhere"])
        .exits(2);
    said.complains("invalid value 'nowhere' for '--collector-listen");
}

#[test]
fn a_retired_word_is_found_wherever_it_stands_in_a_name() {
    for name in
        ["answer", "no_answer", "AnswerRow", "--doors", "reply_head", "assay_asked_total", "first-reply"]
    {
        assert!(is_retired(name), "{name}");
    }
    for name in ["response", "replay", "mask", "indoors", "task", "requests", "icp_replies"] {
        assert!(!is_retired(name), "{name}");
    }
    assert_eq!(declared("    pub(crate) async fn answer_one("), Some("answer_one"));
    assert_eq!(declared("    pub answers: u64,"), Some("answers"));
    assert_eq!(declared("    let answer = 1;"), None);
}
