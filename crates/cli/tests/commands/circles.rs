//! Which files of a crate need each other: no circle of more than a few of them.
//!
//! A file needs another when a path in it, outside tests, leads there: imports, and paths written out in code. Re-exports
//! count for nobody and are followed, so an item is where it is defined, by whatever way it is named. `mod` lines do not
//! count. What needs each other, over whatever others, is a circle: a strongly connected component of that graph.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::{read, root};

/// Files of a circle that still are one idea in several files.
const MOST_FILES: usize = 6;

/// What stands in a file, as far as it matters here.
#[derive(Default)]
struct Module {
    /// Its file, below the crate's `src`.
    file: String,
    /// The module that it is in; none: the root.
    parent: Option<String>,
    /// What its imports and re-exports call things, and which paths they mean.
    names: BTreeMap<String, Vec<String>>,
    /// Paths of its imports and in its code. Those of re-exports are not among them.
    paths: Vec<Vec<String>>,
    /// Modules in files of their own that are for tests only.
    tests: Vec<String>,
}

/// Modules of a crate by their paths: empty for the root, else names joined by `::`.
type Modules = BTreeMap<String, Module>;

/// Words and signs of a source, without comments, and with nothing in its texts.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied().unwrap_or_default();
        if c == '/' && next == '/' {
            at += chars[at..].iter().take_while(|c| **c != '\n').count();
        } else if c == '/' && next == '*' {
            let mut depth = 0;
            while at < chars.len() {
                match (chars[at], chars.get(at + 1)) {
                    ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
                    ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
                if depth == 0 {
                    break;
                }
            }
        } else if c == '"' {
            // What came before says whether it is raw, and how many signs end it.
            let signs = found.iter().rev().take_while(|token| *token == "#").count();
            let is_raw =
                found.len() > signs && ["r", "br"].contains(&found[found.len() - signs - 1].as_str());
            at += 1;
            let ends = |at: usize| {
                chars[at] == '"'
                    && (!is_raw || chars[at + 1..].iter().take_while(|c| **c == '#').count() >= signs)
            };
            while at < chars.len() && !ends(at) {
                at += if chars[at] == '\\' && !is_raw { 2 } else { 1 };
            }
            at += 1 + if is_raw { signs } else { 0 };
            found.push("\"".into());
        } else if c == '\'' && next == '\\' {
            at += 3;
            at += chars[at..].iter().take_while(|c| **c != '\'').count() + 1;
        } else if c == '\'' && chars.get(at + 2) == Some(&'\'') {
            at += 3;
        } else if is_name(c) {
            let name: String = chars[at..].iter().take_while(|c| is_name(**c)).collect();
            at += name.chars().count();
            found.push(name);
        } else if c == ':' && next == ':' {
            at += 2;
            found.push("::".into());
        } else {
            at += 1;
            if !c.is_whitespace() {
                found.push(c.to_string());
            }
        }
    }
    found
}

/// The end of the item that begins here: behind its `;`, or behind the brace that closes its first one.
fn item_end(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        at += 1;
        let last = tokens[at - 1].as_str();
        if depth == 0 && (last == ";" || last == "}") {
            break;
        }
    }
    at
}

/// The end of the attribute whose `#` stands here, and whether it is `cfg(test)`.
fn attribute(tokens: &[String], at: usize) -> (usize, bool) {
    let length = tokens[at..].iter().take_while(|token| *token != "]").count() + 1;
    let words = &tokens[at..(at + length).min(tokens.len())];
    let has = |word: &str| words.iter().any(|token| token == word);
    (at + length, words.get(2).is_some_and(|word| word == "cfg") && has("test") && !has("not"))
}

/// The paths of a `use` tree whose first token stands here, each with what it is called.
fn tree(tokens: &[String], at: &mut usize, before: &[String], found: &mut Vec<(String, Vec<String>)>) {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.as_str() {
            "{" => {
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    tree(tokens, at, &path, found);
                    *at += usize::from(tokens.get(*at).is_some_and(|token| token == ","));
                }
                *at += 1;
                return;
            }
            "::" => {}
            "as" => {
                let name = tokens.get(*at).cloned().unwrap_or_default();
                *at += 1;
                found.push((name, path));
                return;
            }
            "," | ";" | "}" => {
                *at -= 1;
                break;
            }
            "self" if !path.is_empty() => {}
            name => path.push(name.to_owned()),
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    found.push((name, path));
}

/// Reads one file.
fn module(file: &str, parent: Option<String>, text: &str) -> Module {
    let tokens = tokens(text);
    let mut read = Module { file: file.to_owned(), parent, ..Module::default() };
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    let is_name = |at: usize| token(at).starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut at = 0;
    while at < tokens.len() {
        if token(at) == "#" && token(at + 1) == "[" {
            let (end, mut is_test) = attribute(&tokens, at);
            at = end;
            while token(at) == "#" && token(at + 1) == "[" {
                let (end, also) = attribute(&tokens, at);
                (at, is_test) = (end, is_test || also);
            }
            if is_test {
                let end = item_end(&tokens, at);
                if let Some(place) = tokens[at..end].iter().position(|token| token == "mod")
                    && token(at + place + 2) == ";"
                {
                    read.tests.push(token(at + place + 1).to_owned());
                }
                at = end;
            }
        } else if token(at) == "use" && token(at + 1) != "<" {
            let is_public = at > 0 && ["pub", ")"].contains(&token(at - 1));
            let mut found = Vec::new();
            at += 1;
            tree(&tokens, &mut at, &[], &mut found);
            for (name, path) in found {
                if !is_public {
                    read.paths.push(path.clone());
                }
                read.names.insert(name, path);
            }
        } else if is_name(at) && token(at + 1) == "::" && (at == 0 || ![".", "::"].contains(&token(at - 1))) {
            let mut path = vec![token(at).to_owned()];
            at += 1;
            while token(at) == "::" && is_name(at + 1) {
                path.push(token(at + 1).to_owned());
                at += 2;
            }
            read.paths.push(path);
        } else {
            at += 1;
        }
    }
    read
}

/// The modules of a crate, by its files (path below `src`, text).
fn modules(files: &[(String, String)]) -> Modules {
    let mut modules = Modules::new();
    for (file, text) in files {
        let mut names: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
        if ["lib", "main", "mod"].contains(names.last().unwrap_or(&"")) {
            names.pop();
        }
        let parent = (!names.is_empty()).then(|| names[..names.len() - 1].join("::"));
        modules.insert(names.join("::"), module(file, parent, text));
    }
    let for_tests: Vec<String> = modules
        .iter()
        .flat_map(|(path, module)| module.tests.iter().map(|name| inside(path, name)))
        .collect();
    let of = |path: &str, test: &String| path == test || path.starts_with(&format!("{test}::"));
    modules.retain(|path, _| !for_tests.iter().any(|test| of(path, test)));
    modules
}

fn inside(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}::{name}") }
}

/// The module in which what a path names is defined, and whether the path names that module itself; none: in another crate.
fn leads_to(modules: &Modules, from: &str, path: &[String], steps: usize) -> Option<(String, bool)> {
    let mut here = from.to_owned();
    for (place, name) in path.iter().enumerate() {
        let module = modules.get(&here)?;
        match name.as_str() {
            "crate" => here = String::new(),
            "self" => {}
            "super" => here = module.parent.clone()?,
            _ if modules.contains_key(&inside(&here, name)) => here = inside(&here, name),
            _ => {
                // What stands first and is no module of this one is a name of this file's, or another crate.
                let Some(named) = module.names.get(name).filter(|named| steps < 16 && *named != path) else {
                    return (place > 0).then_some((here, false));
                };
                let (found, is_module) = leads_to(modules, &here, named, steps + 1)?;
                if !is_module {
                    return Some((found, false));
                }
                here = found;
            }
        }
    }
    Some((here, true))
}

/// Which file needs which others.
fn needs(modules: &Modules) -> BTreeMap<&str, BTreeSet<&str>> {
    let file = |path: &str| modules[path].file.as_str();
    let of = |(path, module): (&String, &Module)| -> BTreeSet<&str> {
        let leads = module.paths.iter().filter_map(|named| leads_to(modules, path, named, 0));
        let others = leads.filter(|(found, is_module)| !is_module && found != path);
        others.map(|(found, _)| file(&found)).collect()
    };
    modules.iter().map(|entry| (entry.1.file.as_str(), of(entry))).collect()
}

/// Circles of more than one file, the largest first; the files of each in the order of their names.
fn circles<'a>(needs: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<BTreeSet<&'a str>> {
    let reached = |from: &'a str| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            open.extend(needs[file].iter().copied().filter(|next| reached.insert(*next)));
        }
        reached
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = needs.keys().map(|file| (*file, reached(file))).collect();
    let both = |a: &&str, b: &&str| reached[*a].contains(*b) && reached[*b].contains(*a);
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for file in needs.keys() {
        if !found.iter().any(|circle| circle.contains(file)) {
            found.push(needs.keys().filter(|other| both(file, other)).copied().collect());
        }
    }
    found.retain(|circle| circle.len() > 1);
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// All sources of a crate: path below `src`, and text.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        for path in std::fs::read_dir(&inside).expect("a readable folder").flatten().map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(folder).expect("a file below it");
                found.push((below.display().to_string(), read(&path)));
            }
        }
    }
    found
}

/// What is wrong with the circles of a crate.
fn judge(name: &str, circles: &[BTreeSet<&str>]) -> Vec<String> {
    let large = circles.iter().filter(|circle| circle.len() > MOST_FILES);
    large.map(|circle| format!("{name}: {} files need each other: {circle:?}", circle.len())).collect()
}

#[test]
fn no_more_than_a_few_files_of_a_crate_need_each_other() {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates").flatten() {
        let modules = modules(&sources(&entry.path().join("src")));
        let name = entry.file_name().to_string_lossy().into_owned();
        wrong.extend(judge(&name, &circles(&needs(&modules))));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A crate of invented files in which six need each other, each in another way, and two more stand beside them.
fn invented() -> Vec<(String, String)> {
    let files = [
        ("lib.rs", "pub mod a; mod b; mod c; mod d; mod beside; pub use d::Thing; pub use beside::Other;"),
        ("a/mod.rs", "mod inner; use crate::b::{self, Second as Two}; fn f() { b::run() }"),
        ("a/inner.rs", "use super::super::c; fn f() -> c::Third { \"crate::beside::Other\"; }"),
        ("b.rs", "fn run() { crate::a::inner::f(); } // crate::beside::Other"),
        ("c.rs", "use crate::Thing;"),
        ("d/mod.rs", "mod parts; fn f() -> parts::Part {}"),
        (
            "d/parts.rs",
            "use super::super::a;\nfn f() { a::f() }\n#[cfg(test)]\nmod tests { use crate::beside::Other; }",
        ),
        ("beside.rs", "#[cfg(test)]\nmod test_only; use crate::a::f; fn g<'a>(c: char) { c == '\"'; }"),
        ("beside/test_only.rs", "use crate::beside::g;"),
    ];
    files.map(|(file, text)| (file.to_owned(), text.to_owned())).to_vec()
}

#[test]
fn files_that_need_each_other_are_found_whichever_way_they_name_each_other() {
    let modules = modules(&invented());
    let found = circles(&needs(&modules));
    let six = ["a/inner.rs", "a/mod.rs", "b.rs", "c.rs", "d/mod.rs", "d/parts.rs"];
    assert_eq!(found, [BTreeSet::from(six)]);
}

#[test]
fn a_circle_is_refused_where_it_has_more_than_a_few_files() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let ring = |size: usize| {
        let next = |at: usize| (names[at], BTreeSet::from([names[(at + 1) % size]]));
        judge("x", &circles(&(0..size).map(next).collect())).len()
    };
    assert_eq!((ring(1), ring(MOST_FILES), ring(MOST_FILES + 1)), (0, 0, 1));
}
