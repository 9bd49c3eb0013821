//! The commands of the manual run, and print what it says.

use std::path::Path;
use std::process::Command;

use crate::pages::all_pages;
use crate::support::{Assay, Said, read, root};

/// The tutorial whose commands are tested apart.
const FIFTEEN_MINUTES: &str = "docs/tutorial/fifteen-minutes.md";

/// One command of the manual with what it is said to print.
#[derive(Debug)]
struct Example {
    command: String,
    prints: Vec<String>,
}

/// The commands in the `console` blocks of a page.
fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut in_console = false;
    for line in text.lines() {
        match (line.trim_end(), in_console) {
            ("```console", _) => in_console = true,
            ("```", _) => in_console = false,
            (line, true) => match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push(Example { command: command.into(), prints: Vec::new() }),
                (None, Some(example)) => example.prints.push(line.into()),
                (None, None) => panic!("a console block begins with output: {line}"),
            },
            _ => {}
        }
    }
    found
}

/// The search path of a reader who has installed Assay.
fn search_path() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_assay"));
    let directory = binary.parent().expect("a folder");
    format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default())
}

/// True if a command ended as it should. 96: a machine that is busy with other tests may leave the numbers of so short a run unknown, which
/// Assay is right to say.
fn is_fine(example: &Example, said: &Said) -> bool {
    said.code == Some(0) || (said.code == Some(96) && example.command.contains("assay run"))
}

/// Runs the commands of a page in one directory, as its reader would.
fn run_examples(page: &Path) {
    let (assay, path) = (Assay::new(), search_path());
    for example in examples(&read(page)) {
        let said = typed(&example.command, &assay, &path);
        assert!(is_fine(&example, &said), "{}: `{}` ended with {said:?}", page.display(), example.command);
        assert_prints(page, &example, &format!("{}{}", said.stderr, said.stdout));
    }
}

/// A line as a shell runs it.
fn typed(command: &str, assay: &Assay, path: &str) -> Said {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(assay.directory.path()).env("PATH", path);
    Said::from(shell.stdin(std::process::Stdio::null()).output().expect("a shell"))
}

/// Each line must be in the output, in this order. `…` stands for anything, within a line or as lines.
fn assert_prints(page: &Path, example: &Example, output: &str) {
    let mut lines = output.lines();
    for expected in
        example.prints.iter().map(|line| line.trim_end()).filter(|line| *line != "…" && !line.is_empty())
    {
        let found = lines.any(|line| matches(line.trim_end(), expected));
        assert!(
            found,
            "{}: `{}` does not print `{expected}` there:\n{output}",
            page.display(),
            example.command
        );
    }
}

/// True when `line` is `pattern`, in which `…` stands for anything.
fn matches(line: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn patterns_match_what_they_should() {
    assert!(matches("a b c", "a b c") && matches("a b c", "a … c") && matches("a b c", "…"));
    assert!(!matches("a b c", "a b") && !matches("a b c", "b…") && !matches("a b c", "…d…"));
}

#[test]
fn commands_of_the_manual_run_and_print_what_it_says() {
    let mut run = 0;
    for page in all_pages().iter().filter(|page| !page.ends_with(FIFTEEN_MINUTES)) {
        run += examples(&read(page)).len();
        run_examples(page);
    }
    assert!(run > 5, "the manual has lost its examples: {run}");
}

/// A command of the tutorial with each run shortened to `length`.
fn shortened(command: &str, length: &str) -> String {
    let mut words: Vec<&str> = command.split(' ').collect();
    for at in 1..words.len() {
        if words[at - 1] == "--rehearse" {
            words[at] = length;
        }
    }
    if command.starts_with("assay run ") && !words.contains(&"--rehearse") {
        words.extend(["--rehearse", length]);
    }
    words.join(" ")
}

#[test]
fn only_the_length_of_runs_is_shortened() {
    assert_eq!(shortened("assay run demo", "4s"), "assay run demo --rehearse 4s");
    assert_eq!(
        shortened("for a in b; do assay run x --rehearse 10s --seed 1; done", "4s").matches("4s").count(),
        1
    );
    assert_eq!(shortened("assay init mine.pg --length 60s", "4s"), "assay init mine.pg --length 60s");
}

/// True if a run below a directory (`SIZE/SEED`) says that this machine disturbed it.
fn is_any_disturbed(directory: &Path) -> bool {
    let below = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let runs = below(directory).into_iter().flat_map(|size| below(&size));
    runs.map(|run| run.join("summary.json"))
        .filter(|summary| summary.is_file())
        .any(|summary| read(&summary).contains("\"disturbed\": true"))
}

/// A test of its own, beside that of the other pages: it makes eight runs.
#[test]
fn the_tutorial_of_fifteen_minutes_runs_command_by_command() {
    let page = root().join(FIFTEEN_MINUTES);
    let (assay, path) = (Assay::new(), search_path());
    let all = examples(&read(&page));
    for example in &all {
        let said = typed(&shortened(&example.command, "4s"), &assay, &path);
        assert!(is_fine(example, &said), "`{}` ended with {said:?}", example.command);
        let mut output = format!("{}{}", said.stderr, said.stdout).replace("exit code 96", "exit code 99");
        // Runs as short as these leave open what the page concludes where this machine disturbed them.
        if is_any_disturbed(&assay.path("sizes")) {
            output = output.replace("this is not shown: the interval reaches beyond it", "\nexit code 99\n");
        }
        assert_prints(&page, example, &output);
    }
    assert!(all.len() >= 10, "the tutorial has lost its commands: {}", all.len());
}
