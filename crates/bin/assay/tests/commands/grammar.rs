//! The grammar of PGL for editors (`contrib/tree-sitter-pgl`), held against the compiler: on every workload of the repository, and on
//! broken variants of them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_pgl::{Code, Severity};
use tree_sitter::{Language, Parser, Tree};
use tree_sitter_language::LanguageFn;

use crate::support::{program, read, root};

/// Broken variants that are tried.
const VARIANTS: u64 = 1000;

/// What the compiler says of a value or of a file, not of syntax.
const VALUES: [Code; 3] = [Code::BadNumber, Code::BadLiteral, Code::Directive];

fn folder() -> PathBuf {
    root().join("contrib/tree-sitter-pgl")
}

/// The parser as editors make it: compiled from the C sources, and loaded. Without a C compiler the test says that it is skipped.
fn language() -> Option<Language> {
    let compiler = program(&["cc", "gcc", "clang"], "gcc")?;
    let place = tempfile::tempdir().expect("a temporary directory");
    let library = place.path().join("pgl.so");
    let source = folder().join("src");
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-I"]).arg(&source).arg("-o").arg(&library);
    let output =
        command.args([source.join("parser.c"), source.join("scanner.c")]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = CString::new(library.as_os_str().as_bytes()).expect("a path");
    // SAFETY: the library was made just now from this repository's sources, has no constructors, and stays loaded; the symbol is what
    // every generated parser has: a function without arguments that gives a table that lives as long as the library.
    let language = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null(), "the parser cannot be loaded");
        let symbol = libc::dlsym(handle, c"tree_sitter_pgl".as_ptr());
        assert!(!symbol.is_null(), "the parser has another name");
        type Make = unsafe extern "C" fn() -> *const ();
        LanguageFn::from_raw(std::mem::transmute::<*mut libc::c_void, Make>(symbol))
    };
    Some(language.into())
}

fn parsed(parser: &mut Parser, text: &str) -> Tree {
    parser.parse(text, None).expect("there is no time limit")
}

/// Where the grammar finds a mistake first.
fn mistake(tree: &Tree, text: &str) -> Option<String> {
    let mut node = tree.root_node();
    if !node.has_error() {
        return None;
    }
    loop {
        let mut cursor = node.walk();
        let Some(child) = node.children(&mut cursor).find(|child| child.has_error() || child.is_missing())
        else {
            let line = node.start_position().row;
            return Some(format!("line {}: {}", line + 1, text.lines().nth(line).unwrap_or_default()));
        };
        node = child;
    }
}

/// All PGL files of the repository: bundled, published, examples of mistakes.
fn workloads() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a readable folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !["target", ".git", "runs", "node_modules"].contains(&name.as_str()) {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "pg") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// What the compiler says of the syntax of a text; nothing where a value or a file is wrong, which the grammar does not look into.
fn compiler_accepts(name: &Path, text: &str) -> Option<bool> {
    let Err(failure) = assay_pgl::format(&name.display().to_string(), text) else { return Some(true) };
    let mut codes =
        failure.diagnostics.iter().filter(|found| found.severity == Severity::Error).map(|found| found.code);
    (!codes.any(|code| VALUES.contains(&code))).then_some(false)
}

#[test]
fn the_grammar_accepts_every_workload_that_the_compiler_accepts_and_no_other() {
    let Some(language) = language() else { return };
    let mut parser = Parser::new();
    parser.set_language(&language).expect("the runtime knows this version of parsers");
    let (mut accepted, mut refused, mut wrong) = (0, 0, Vec::new());
    for path in workloads() {
        let text = read(&path);
        let found = mistake(&parsed(&mut parser, &text), &text);
        match (compiler_accepts(&path, &text), found) {
            (Some(true), None) => accepted += 1,
            (Some(true), Some(place)) => wrong.push(format!("{} is refused: {place}", path.display())),
            (Some(false), Some(_)) => refused += 1,
            (Some(false), None) => wrong.push(format!("{} is accepted", path.display())),
            (None, _) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(accepted > 75 && refused > 5, "{accepted} accepted, {refused} refused");
}

/// A small generator, so that a failing variant can be made again from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides.max(1)
    }
}

/// A text with one mistake of a hurried hand: a word or a mark is missing, doubled or another.
fn broken(text: &str, dice: &mut Dice) -> String {
    const OTHERS: [&str; 11] = ["{", "}", "(", ")", "[", "]", ";", ",", "=", "+", "x"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts: Vec<usize> =
        text.char_indices().filter(|(_, c)| !c.is_whitespace()).map(|(at, _)| at).collect();
    let start = starts[dice.roll(starts.len())];
    let rest = &text[start..];
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let length = rest.find(|c| !is_word(c)).filter(|length| *length > 0).unwrap_or(first);
    let (before, token, after) = (&text[..start], &rest[..length], &rest[length..]);
    match dice.roll(3) {
        0 => format!("{before}{after}"),
        1 => format!("{before}{token} {token}{after}"),
        _ => format!("{before}{}{after}", OTHERS[dice.roll(OTHERS.len())]),
    }
}

#[test]
fn the_grammar_accepts_what_the_compiler_accepts_of_broken_variants_and_hardly_anything_else() {
    let Some(language) = language() else { return };
    let mut parser = Parser::new();
    parser.set_language(&language).expect("the runtime knows this version of parsers");
    let texts: Vec<(PathBuf, String)> =
        workloads().into_iter().map(|path| (path.clone(), read(&path))).collect();
    let whole: Vec<_> =
        texts.iter().filter(|(path, text)| compiler_accepts(path, text) == Some(true)).collect();
    let (mut accepted, mut refused, mut strict, mut lenient) = (0, 0, Vec::new(), Vec::new());
    for variant in 0..VARIANTS {
        let mut dice = Dice(variant);
        let (path, text) = whole[dice.roll(whole.len())];
        let text = broken(text, &mut dice);
        let found = mistake(&parsed(&mut parser, &text), &text);
        match (compiler_accepts(path, &text), found) {
            (Some(true), None) => accepted += 1,
            (Some(true), Some(place)) => strict.push(format!("{variant}: {}: {place}", path.display())),
            (Some(false), Some(_)) => refused += 1,
            (Some(false), None) => lenient.push(format!("{variant}: {}", path.display())),
            (None, _) => {}
        }
    }
    assert!(strict.is_empty(), "the grammar refuses what the compiler accepts: {strict:#?}");
    // Known: it lets a declaration be called `lmt`, `now` or `nmt`.
    assert!(
        lenient.len() as u64 <= VARIANTS / 500,
        "the grammar accepts what the compiler refuses: {lenient:#?}"
    );
    assert!(accepted > 300 && refused > 300, "{accepted} accepted, {refused} refused");
}

#[test]
fn the_parser_was_generated_from_the_grammar_that_is_there() {
    let Some(program) = program(&["sha256sum"], "coreutils") else { return };
    let output = Command::new(program)
        .args(["--check", "--quiet", "src/grammar.sha256"])
        .current_dir(folder())
        .output();
    let output = output.expect("it starts");
    assert!(
        output.status.success(),
        "`make grammar` generates it: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
