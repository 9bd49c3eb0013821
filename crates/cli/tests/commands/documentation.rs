//! The manual, held against what the program does. Its links lead somewhere, its commands run, and it names every flag.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Assay, Said, read, root};

/// README is an introduction, not the manual.
const README_LINES_MAX: usize = 150;

/// The tutorial whose commands are tested apart.
const FIFTEEN_MINUTES: &str = "docs/tutorial/fifteen-minutes.md";

/// All pages of the manual.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The pages of the manual and those at the top of the tree.
fn all_pages() -> Vec<PathBuf> {
    let top = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name));
    pages().into_iter().chain(top).collect()
}

/// Targets of Markdown links, without code blocks.
fn links(text: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    let ends = prose.match_indices("](").map(|(at, _)| at + 2);
    ends.filter_map(|start| prose[start..].split_once(')').map(|(target, _)| target.to_owned())).collect()
}

#[test]
fn every_page_is_in_the_summary() {
    let docs = root().join("docs");
    let listed = links(&read(&docs.join("SUMMARY.md")));
    for page in pages().iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        let name = page.strip_prefix(&docs).expect("a page of the manual").display().to_string();
        assert!(listed.contains(&name), "docs/SUMMARY.md does not list {name}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut dead = Vec::new();
    for page in all_pages() {
        for link in links(&read(&page)) {
            let target = link.split('#').next().unwrap_or_default();
            let outside = target.starts_with("http") || target.starts_with("mailto:");
            let folder = page.parent().unwrap_or(Path::new("."));
            if !outside && !target.is_empty() && !folder.join(target).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn the_readme_stays_short() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
}

/// The commands that `--help` lists.
fn commands(assay: &Assay) -> Vec<String> {
    let help = assay.run(&["--help"]).exits(0).stdout;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // Where an explanation takes two lines, the second stands further in.
    let listed = lines.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = listed.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    let names: Vec<String> = names.filter(|name| name != "help").collect();
    assert!(names.len() > 15, "the help has lost its commands: {names:?}");
    names
}

#[test]
fn the_reference_names_every_command_and_every_flag() {
    let reference = read(&root().join("docs/reference/command-line.md"));
    let assay = Assay::new();
    for command in commands(&assay) {
        let command = command.as_str();
        assert!(
            reference.contains(&format!("`assay {command}")),
            "the reference does not know `assay {command}`"
        );
        let help = assay.run(&[command, "--help"]).exits(0).stdout;
        for word in help.split(|c: char| c.is_whitespace() || c == ',' || c == '`') {
            let is_flag = word.starts_with("--") && word.len() > 2 && word != "--help";
            let flag =
                word.split(['=', '[', ']']).next().unwrap_or(word).trim_end_matches(['.', ':', ';', ')']);
            assert!(
                !is_flag || reference.contains(&format!("`{flag}")),
                "the reference does not know {flag}"
            );
        }
    }
}

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

/// The words of a command, with what is quoted as one word.
fn shell_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(c),
        }
    }
    words
}

/// Commands of the page that say where the source documents are: between backticks, as `assay check image`.
fn commands_between_backticks(page: &str) -> Vec<Vec<String>> {
    let spans = page.split('`').skip(1).step_by(2);
    spans.filter_map(|span| span.strip_prefix("assay ")).map(shell_words).collect()
}

#[test]
fn the_commands_that_stand_for_parts_of_the_source_documents_exist() {
    let page = read(&root().join("docs/explanation/four-documents.md"));
    let (assay, mut tried) = (Assay::new(), 0);
    for words in commands_between_backticks(&page) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let explains = match words[..] {
            ["lab" | "simulate" | "cluster" | "report", ..] => false,
            _ => ["check", "show", "help"].iter().any(|verb| words.contains(verb)),
        };
        match words[..] {
            ["lab", name, ..] => drop(assay.run(&["lab", "show", name]).exits(0)),
            // Both read the same files.
            ["simulate" | "cluster", name, ..] => drop(assay.run(&["simulate", name, "--show"]).exits(0)),
            _ => {}
        }
        // An unknown flag is found before help is printed.
        let all: Vec<&str> = if explains { words } else { words.into_iter().chain(["--help"]).collect() };
        assay.run(&all).exits(0);
        tried += 1;
    }
    assert!(tried > 30, "the page has lost its commands: {tried}");
}

#[test]
fn no_row_of_the_source_documents_is_empty() {
    let page = read(&root().join("docs/explanation/four-documents.md"));
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| in the document")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() >= 2 && !cells[1].is_empty(), "says nothing: {line}");
        // What is not there says why.
        assert!(cells[1] != "–" || cells.get(2).is_some_and(|why| why.len() > 20), "no reason: {line}");
    }
}
