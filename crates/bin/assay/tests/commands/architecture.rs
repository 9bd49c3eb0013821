//! The tree, held against docs/architecture.md: which crates use which, and what pure ones touch.

use std::path::{Path, PathBuf};

use crate::support::{read, root};

/// What touches a socket, a file, a clock or another process.
const IMPURE: [&str; 15] = [
    "assay_base::clock",
    "assay_base::files",
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

/// Folders below `crates`, each with crates that may use those of its own floor and of lower ones. The lowest is first.
const FLOORS: [&str; 7] = ["base", "net", "model", "data", "roles", "run", "bin"];

/// What only tests use, from every floor.
const FOR_TESTS: &str = "tests";

/// A crate of the workspace.
pub struct Package {
    /// Folder below `crates`.
    pub floor: String,
    /// Name without the prefix that all have.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
}

impl Package {
    /// Names of dependencies, from one section of the manifest.
    fn dependencies(&self, section: &str) -> Vec<String> {
        let manifest: toml::Table = read(&self.directory.join("Cargo.toml"))
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let table = manifest.get(section).and_then(|section| section.as_table());
        table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
    }
}

/// Directories in a directory.
fn folders(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a readable directory").flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// All crates of the workspace.
pub fn packages() -> Vec<Package> {
    let of_floor = |floor: PathBuf| {
        folders(&floor).into_iter().map(move |directory| Package {
            floor: file_name(&floor),
            name: file_name(&directory),
            directory,
        })
    };
    folders(&root().join("crates")).into_iter().flat_map(of_floor).collect()
}

/// The crates that the architecture page calls pure.
pub fn pure_crates() -> Vec<String> {
    let text = read(&root().join("docs/architecture.md"));
    let line =
        text.lines().find(|line| line.starts_with("Pure crates (")).expect("the line about pure crates");
    let inside = line.split(['(', ')']).nth(1).expect("their names in brackets");
    inside.split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect()
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
fn crates_use_their_own_floor_and_lower_ones() {
    let packages = packages();
    let height = |name: &str| {
        let floor = &packages.iter().find(|package| package.name == name)?.floor;
        FLOORS.iter().position(|known| known == floor)
    };
    let mut wrong = Vec::new();
    for package in packages.iter().filter(|package| package.floor != FOR_TESTS) {
        let own = height(&package.name).unwrap_or_else(|| panic!("{} is no floor", package.floor));
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let used = package.dependencies(section);
            for used in used.iter().filter_map(|used| used.strip_prefix("assay-")) {
                let is_right = match height(used) {
                    Some(floor) => floor <= own,
                    None => section == "dev-dependencies",
                };
                if !is_right {
                    wrong.push(format!("{} may not use {used}, which is on a higher floor", package.name));
                }
            }
        }
    }
    assert!(packages.len() > 10 && wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_page_names_every_crate_on_its_floor_and_no_file_that_is_not_there() {
    let page = read(&root().join("docs/architecture.md"));
    let quoted = page.split('`').skip(1).step_by(2);
    let files: Vec<_> = quoted.filter(|name| name.contains('/') && name.ends_with(".rs")).collect();
    let is_there = |file: &str| root().join(file).exists() || root().join("crates").join(file).exists();
    let missing: Vec<_> = files.iter().filter(|file| !is_there(file)).collect();
    assert!(files.len() > 10 && missing.is_empty(), "{missing:?}");
    for package in packages() {
        let place = format!("`{}/{}`", package.floor, package.name);
        assert!(page.contains(&place), "docs/architecture.md does not name {place}");
    }
}

#[test]
fn pure_crates_touch_no_socket_file_or_clock() {
    let mut wrong = Vec::new();
    let pure = pure_crates();
    let packages = packages();
    for name in &pure {
        assert!(
            packages.iter().any(|package| package.name == *name),
            "{name} is called pure, and is no crate"
        );
    }
    for package in packages.iter().filter(|package| pure.contains(&package.name)) {
        let name = &package.name;
        for used in package.dependencies("dependencies") {
            if IMPURE_CRATES.contains(&used.as_str()) {
                wrong.push(format!("{name} depends on {used}"));
            }
        }
        let folder = package.directory.join("src");
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
const READS_ANYTHING: [(&str, &str); 15] = [
    ("base/base/src/files/", "it is what asks"),
    ("run/host/src/", "files of the kernel"),
    ("roles/load/src/monitor/usage.rs", "a file of the kernel"),
    ("net/net/src/thread_times.rs", "files of the kernel"),
    ("roles/spe/src/lib.rs", "a file of the kernel"),
    ("run/host/src/link/", "files of the kernel"),
    ("run/lab/src/time_wait.rs", "files of the kernel"),
    ("run/lab/src/watched_processes.rs", "files of the kernel"),
    ("run/lab/src/cgroup.rs", "files of the kernel"),
    ("run/lab/src/cleanup.rs", "files of the kernel"),
    ("run/lab/src/workdir.rs", "the system's list of users"),
    ("run/lab/src/remote/mod.rs", "a directory, which is locked"),
    ("run/lab/src/experiment/cells/directory.rs", "a directory, which is locked"),
    ("data/logs/src/input.rs", "a log that a user names may be a pipe, and is read as a stream"),
    ("run/lab/src/machines/login.rs", "a secret may come through a pipe; so many bytes are read"),
];
/// What writes files that nobody names and reads them again, in directories of its own.
const READS_ITS_OWN: [&str; 2] = ["roles/load/src/node/real.rs", "roles/spe/src/collector/disk.rs"];

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
    assert!(wrong.is_empty(), "use assay_base::files, or give a reason here: {wrong:#?}");
}
