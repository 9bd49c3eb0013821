//! The manual, held against what the program says of itself. Its links lead somewhere, and it names every flag. `tests/real` runs its
//! commands.

use std::path::Path;

use crate::pages::{all_pages, pages};
use crate::support::{Assay, read, root};

/// README is an introduction, not the manual.
const README_LINES_MAX: usize = 150;

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
    // Each of them can be read: another test.
    let experiments = assay.run(&["experiments"]).exits(0).stdout;
    let is_listed = |name: &str| experiments.split_whitespace().any(|word| word == name);
    for words in commands_between_backticks(&page) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let explains = match words[..] {
            ["lab" | "simulate" | "cluster" | "report", ..] => false,
            _ => ["check", "show", "help"].iter().any(|verb| words.contains(verb)),
        };
        match words[..] {
            ["lab", name, ..] => assert!(is_listed(name), "{name}"),
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
