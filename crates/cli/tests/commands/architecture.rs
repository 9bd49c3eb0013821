//! The code, held against the architecture page. docs/architecture.md is read and held against the tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::{read, root};

/// What touches a socket, a file, a clock or another process.
const IMPURE: [&str; 13] = [
    "tokio",
    "std::fs",
    "std::process",
    "std::env",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "ToSocketAddrs",
    "Instant",
    "SystemTime",
    "rustix",
    "libc::",
];

/// Crates whose name, in a manifest, means the same.
const IMPURE_CRATES: [&str; 5] = ["tokio", "socket2", "rustix", "libc", "tempfile"];

/// The table of crates: name and what it may use, top to bottom.
pub fn plan() -> Vec<(String, Vec<String>)> {
    let text = read(&root().join("docs/architecture.md"));
    let section = text.split("## The crates").nth(1).expect("the table of crates");
    let words = |cell: &str| -> Vec<String> {
        let split = cell.split([',', ' ']).map(|word| word.trim_matches(['`', ' ']).to_owned());
        split.filter(|word| !word.is_empty()).collect()
    };
    let rows = section.lines().take_while(|line| !line.starts_with("## ")).filter(|l| l.starts_with("| `"));
    let mut plan: Vec<(String, Vec<String>)> = rows
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').collect();
            (words(cells[0])[0].clone(), words(cells[2]))
        })
        .collect();
    let all: Vec<_> = plan.iter().map(|(name, _)| name.clone()).collect();
    for (name, uses) in &mut plan {
        if uses == &["all"] {
            *uses = all.iter().filter(|other| *other != name).cloned().collect();
        }
    }
    assert!(plan.len() >= 10, "the table of crates was not understood: {plan:?}");
    plan
}

/// The crates that the page calls pure.
pub fn pure_crates() -> Vec<String> {
    let text = read(&root().join("docs/architecture.md"));
    let line =
        text.lines().find(|line| line.starts_with("Pure crates (")).expect("the line about pure crates");
    let inside = line.split(['(', ')']).nth(1).expect("their names in brackets");
    inside.split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect()
}

/// Dependencies of a crate, from one section of its manifest.
fn dependencies(name: &str, section: &str) -> Vec<String> {
    let text = read(&root().join("crates").join(name).join("Cargo.toml"));
    let manifest: toml::Table =
        text.parse().unwrap_or_else(|error| panic!("crates/{name}/Cargo.toml: {error}"));
    let table = manifest.get(section).and_then(|section| section.as_table());
    table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

/// Our own among them, without their prefix.
fn own(dependencies: &[String]) -> Vec<String> {
    dependencies.iter().filter_map(|d| d.strip_prefix("assay-").map(str::to_owned)).collect()
}

/// All files of the tree with one of these endings, without what is built.
pub fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", ".git", "runs"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// True for what is only compiled for tests.
pub fn is_test(file: &Path) -> bool {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let in_tests = file.components().any(|part| part.as_os_str() == "tests");
    in_tests || name == "tests" || name.ends_with("_tests") || name == "testing"
}

/// Modules in files of their own that are only compiled for tests.
pub fn test_modules(text: &str) -> Vec<String> {
    let after = text.split("#[cfg(test)]\nmod ").skip(1);
    after.filter_map(|rest| rest.lines().next()?.strip_suffix(';').map(str::to_owned)).collect()
}

pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Lines that are no comments.
pub fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

/// Source without comments and without its test module.
fn code(text: &str) -> String {
    let own = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code_lines(own).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_table_names_every_crate_and_no_other() {
    let mut planned: Vec<_> = plan().into_iter().map(|(name, _)| name).collect();
    let entries = std::fs::read_dir(root().join("crates")).expect("the crates").flatten();
    let mut there: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    planned.sort();
    there.sort();
    assert_eq!(planned, there);
}

#[test]
fn crates_import_what_the_table_allows_and_nothing_else() {
    let mut wrong = Vec::new();
    for (name, may_use) in plan() {
        for section in ["dependencies", "build-dependencies"] {
            for used in own(&dependencies(&name, section)) {
                if !may_use.contains(&used) {
                    wrong.push(format!("{name} may not use {used}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn imports_run_down_the_list_even_in_tests() {
    let plan = plan();
    let place: BTreeMap<_, _> =
        plan.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
    let mut wrong = Vec::new();
    for (name, may_use) in &plan {
        for used in own(&dependencies(name, "dev-dependencies")).iter().chain(may_use) {
            if place[used] <= place[name] {
                wrong.push(format!("{name} → {used} runs up the list"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pure_crates_touch_no_socket_file_or_clock() {
    let mut wrong = Vec::new();
    for name in pure_crates() {
        for used in dependencies(&name, "dependencies") {
            if IMPURE_CRATES.contains(&used.as_str()) {
                wrong.push(format!("{name} depends on {used}"));
            }
        }
        let folder = root().join("crates").join(&name).join("src");
        let sources: Vec<_> = files(&[".rs"]).into_iter().filter(|file| file.starts_with(&folder)).collect();
        let for_tests: Vec<_> = sources.iter().flat_map(|file| test_modules(&read(file))).collect();
        for file in &sources {
            let module = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if is_test(file) || for_tests.contains(&module) {
                continue;
            }
            let code = code(&read(file));
            for word in IMPURE.iter().filter(|word| has_word(&code, word)) {
                wrong.push(format!("{} uses {word}", shown(file)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// True when `word` is in `text` and not as a part of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    let part_of_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !part_of_name(text[..at].chars().next_back()) && !part_of_name(text[at + word.len()..].chars().next())
    })
}

#[test]
fn nothing_names_a_place_on_one_machine() {
    let endings = [".rs", ".toml", ".md", ".pg", ".sh", ".html", ".js", ".json", ".txt", "Makefile", "run"];
    // Put together here so that this file passes its own test.
    let places = ["/wo#rk/", "/ho#me/", "/ro#ot/", "/tmp/#w/"].map(|place| place.replace('#', ""));
    let mut wrong = Vec::new();
    for file in files(&endings) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        for place in places.iter().filter(|place| text.contains(place.as_str())) {
            wrong.push(format!("{} names {place}", shown(&file)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What reads a file without asking what it is, and may: the beginning of a path below `crates`, and why.
const READS_ANYTHING: [(&str, &str); 16] = [
    ("files/src/", "it is what asks"),
    ("health/src/", "files of the kernel"),
    ("engine/src/watch/usage.rs", "a file of the kernel"),
    ("plane/src/thread_times.rs", "files of the kernel"),
    ("spe/src/memory.rs", "a file of the kernel"),
    ("link/src/", "files of the kernel"),
    ("lab/src/resting.rs", "files of the kernel"),
    ("lab/src/watched.rs", "files of the kernel"),
    ("lab/src/cgroup.rs", "files of the kernel"),
    ("lab/src/leftovers.rs", "files of the kernel"),
    ("lab/src/work.rs", "the system's list of users"),
    ("lab/src/elsewhere/mod.rs", "a directory, which is locked"),
    ("experiment/src/cells/directory.rs", "a directory, which is locked"),
    ("logs/src/input.rs", "a log that a user names may be a pipe, and is read as a stream"),
    ("machines/src/login.rs", "a secret may come through a pipe; so many bytes are read"),
    ("testbed/src/", "only for tests"),
];
/// What writes files that nobody names and reads them again, in directories of its own.
const READS_ITS_OWN: [&str; 2] = ["node/src/real.rs", "spe/src/collector/disk.rs"];

#[test]
fn what_others_name_is_read_through_the_crate_that_asks_what_it_is() {
    let crates = root().join("crates");
    let sources = files(&[".rs"]);
    let for_tests: Vec<_> = sources.iter().flat_map(|file| test_modules(&read(file))).collect();
    let mut wrong = Vec::new();
    for file in sources.iter().filter(|file| !is_test(file)) {
        let Ok(place) = file.strip_prefix(&crates) else { continue };
        let place = place.display().to_string();
        let allowed = READS_ANYTHING.iter().map(|(begin, _)| *begin).chain(READS_ITS_OWN);
        let is_for_tests =
            file.file_stem().is_some_and(|name| for_tests.iter().any(|module| name == module.as_str()));
        if !place.contains("/src/") || is_for_tests || { allowed }.any(|begin| place.starts_with(begin)) {
            continue;
        }
        let code = code(&read(file));
        for call in ["fs::read(", "read_to_string(", "File::open("] {
            let reads = code.match_indices(call).filter(|(at, _)| !code[..*at].ends_with('.'));
            wrong.extend(reads.map(|_| format!("{place} calls {call}…)")));
        }
    }
    assert!(wrong.is_empty(), "use assay_files, or give a reason here: {wrong:#?}");
}
