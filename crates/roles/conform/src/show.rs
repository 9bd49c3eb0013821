//! Results as text: for a terminal, as Markdown, and as JUnit's XML.

use std::collections::BTreeMap;

use assay_base::junit::{Outcome, Suite};
use assay_base::quote::markdown::escaped;
use assay_http::date::{DATE_BYTES, write_date};

use crate::case::{Case, Level, Payload, Request, Step};
use crate::document::{CaseResult, Document, TargetInfo};
use crate::http2::frame::kind_name;
use crate::matrix::{rows, share};
use crate::verdict::Verdict;

/// Placeholder of an explanation that nobody has written.
const NOT_EXPLAINED: &str = "**not explained yet**";
/// Width of the name of a case in a matrix.
const NAME_WIDTH: usize = 44;
/// Most rows of a list in a terminal; the document has all.
const MAX_ROWS: usize = 60;

/// The results for a terminal: what fails, where targets disagree, numbers.
pub fn terminal(document: &Document, baseline: Option<&Document>) -> String {
    let mut out = String::new();
    for target in document.targets.iter().filter(|target| target.ended.is_some()) {
        let how = target.ended.as_deref().unwrap_or_default();
        out.push_str(&format!("{} ended by itself while it was tried: {how}\n\n", target.label));
    }
    for target in &document.targets {
        if let Some(crashes) = &target.crashes {
            out.push_str(&format!("{}: {crashes}\n\n", target.label));
        }
        if let Some(how) = document.inconclusive_summary(&target.label) {
            out.push_str(&format!("{}: {how}\n\n", target.label));
        }
    }
    out.push_str(&overview(document));
    if let Some(baseline) = baseline {
        changes(&mut out, document, baseline);
    }
    failures(&mut out, document);
    if document.targets.len() > 1 {
        disagreements(&mut out, document);
    } else {
        behaviours(&mut out, document);
    }
    out
}

/// A line for each target: how many cases hold, of those that were decided.
fn overview(document: &Document) -> String {
    let mut lines = vec![[
        "".to_owned(),
        "MUST".into(),
        "SHOULD".into(),
        "MAY".into(),
        "behaviour".into(),
        "undecided".into(),
        "time".into(),
    ]];
    for target in &document.targets {
        let cell = |level: Level| {
            let (holds, decided, _) = share(document, &target.label, level);
            format!("{holds} of {decided}")
        };
        let open = |verdict: Verdict| {
            Level::ALL.iter().map(|&level| document.count(&target.label, level, verdict)).sum::<usize>()
        };
        let undecided = format!(
            "{} dep, {} ?, {} n/a",
            open(Verdict::DependencyMissing),
            open(Verdict::Inconclusive),
            open(Verdict::NotApplicable)
        );
        lines.push([
            name(target),
            cell(Level::Must),
            cell(Level::Should),
            cell(Level::May),
            cell(Level::Behaviour),
            undecided,
            format!("{:.1} s", target.took_s),
        ]);
    }
    table(&lines)
}

fn name(target: &TargetInfo) -> String {
    match target.software.is_empty() {
        true => target.label.clone(),
        false => format!("{} ({})", target.label, target.software),
    }
}

/// Columns that are as wide as what is in them.
fn table<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: &[String; N]| {
        let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

fn changes(out: &mut String, document: &Document, baseline: &Document) {
    let changed = document.changes(baseline);
    out.push_str(&format!("\nChanged since the baseline: {}\n", changed.len()));
    for (result, before) in changed.iter().take(MAX_ROWS) {
        out.push_str(&format!(
            "  {:<9} {}  {}: {}, was {}\n",
            result.level.word(),
            result.target,
            result.case,
            result.words(),
            before.words()
        ));
    }
    more(out, changed.len());
}

fn failures(out: &mut String, document: &Document) {
    for level in [Level::Must, Level::Should] {
        let failed: Vec<&CaseResult> =
            document.results.iter().filter(|result| result.level == level && result.fails()).collect();
        if failed.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{} not met: {}\n", level.word(), failed.len()));
        for result in failed.iter().take(MAX_ROWS) {
            let known = result.known.as_ref().map_or_else(String::new, |why| format!(" (known: {why})"));
            let share = result.share().map_or_else(String::new, |_| format!(" ({})", result.words()));
            out.push_str(&format!("  {}: {}{share}{known}\n", result.target, result.case));
            out.push_str(&format!(
                "      {} ({})\n      {}\n",
                result.rule,
                reference(result),
                result.reason
            ));
        }
        more(out, failed.len());
    }
}

fn disagreements(out: &mut String, document: &Document) {
    let all = rows(document);
    let differ: Vec<_> = all.iter().filter(|row| row.differs()).collect();
    out.push_str(&format!("\nWhere they disagree: {} of {} cases\n", differ.len(), all.len()));
    let widths: Vec<usize> =
        document.targets.iter().map(|target| target.label.chars().count().max(4)).collect();
    let heads: Vec<String> = document
        .targets
        .iter()
        .zip(&widths)
        .map(|(target, &width)| format!("{:width$}", target.label))
        .collect();
    out.push_str(&format!("  {:<9} {:<NAME_WIDTH$} {}\n", "", "", heads.join("  ")).replace(" \n", "\n"));
    for row in differ.iter().take(MAX_ROWS) {
        let mark = |result: &Option<&CaseResult>| result.map_or_else(String::new, CaseResult::mark);
        let cells: Vec<String> = row
            .results
            .iter()
            .zip(&widths)
            .map(|(result, &width)| format!("{:width$}", mark(result)))
            .collect();
        let line =
            format!("  {:<9} {:<NAME_WIDTH$} {}", row.case.level.word(), row.case.case, cells.join("  "));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    more(out, differ.len());
}

fn behaviours(out: &mut String, document: &Document) {
    for (verdict, title) in
        [(Verdict::Yes, "It does"), (Verdict::Sometimes, "It does sometimes"), (Verdict::No, "It does not")]
    {
        let is_behaviour = |result: &&CaseResult| !result.level.binds() && result.verdict == verdict;
        let all: Vec<&CaseResult> = document.results.iter().filter(is_behaviour).collect();
        if all.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{title}: {}\n", all.len()));
        for result in all.iter().take(MAX_ROWS) {
            let share = result.share().map_or_else(String::new, |(held, all)| format!(" ({held} of {all})"));
            out.push_str(&format!("  {:<NAME_WIDTH$} {}{share}\n", result.case, result.rule));
        }
        more(out, all.len());
    }
}

fn more(out: &mut String, count: usize) {
    if count > MAX_ROWS {
        out.push_str(&format!("  … and {} more; --json, --html and --markdown have all\n", count - MAX_ROWS));
    }
}

fn reference(result: &CaseResult) -> String {
    match result.rfc {
        Some(rfc) => format!("RFC {rfc}, {}", result.section),
        None => result.section.clone(),
    }
}

/// The results as a page of Markdown: a table of numbers, what fails, and the whole matrix.
pub fn markdown(document: &Document) -> String {
    let labels: Vec<&str> = document.targets.iter().map(|target| target.label.as_str()).collect();
    let mut day = [0; DATE_BYTES];
    write_date(document.made_unix_s, &mut day);
    let day = String::from_utf8_lossy(&day);
    let mut out = format!("# Conformance of {}\n\n", escaped(&labels.join(", ")));
    out.push_str(&format!(
        "Assay {}, {}. Numbers are cases that hold, of those that were decided.\n\n",
        document.version, day
    ));
    out.push_str("| target | MUST | SHOULD | MAY | behaviour | dependency missing | inconclusive |\n|---|---|---|---|---|---|---|\n");
    for target in &document.targets {
        let cells = Level::ALL.map(|level| {
            let (holds, decided, _) = share(document, &target.label, level);
            format!("{holds} of {decided}")
        });
        let open = [Verdict::DependencyMissing, Verdict::Inconclusive].map(|verdict| {
            Level::ALL.iter().map(|&level| document.count(&target.label, level, verdict)).sum::<usize>()
        });
        let name = escaped(&name(target));
        out.push_str(&format!("| {name} | {} | {} | {} |\n", cells.join(" | "), open[0], open[1]));
    }
    for target in &document.targets {
        let ended = target.ended.as_ref().or(target.crashes.as_ref());
        if let Some(how) = ended.cloned().or_else(|| document.inconclusive_summary(&target.label)) {
            out.push_str(&format!("\n{}: {}.\n", escaped(&target.label), escaped(&how)));
        }
    }
    for level in [Level::Must, Level::Should] {
        failures_by_target(&mut out, document, level);
    }
    out.push_str(&format!(
        "\n## All cases\n\nWhere targets disagree first. A fraction: it held in so many of so many tries.\n\n| case | level | {} |\n|---|---|{}\n",
        labels.iter().map(|label| escaped(label)).collect::<Vec<_>>().join(" | "),
        "---|".repeat(labels.len())
    ));
    for row in rows(document) {
        let cells: Vec<String> =
            row.results.iter().map(|result| result.map_or_else(String::new, CaseResult::mark)).collect();
        out.push_str(&format!(
            "| {} | {} | {} |\n",
            code(&row.case.case),
            row.case.level.word(),
            cells.join(" | ")
        ));
    }
    out
}

/// Table of failed requirements, a line for each target and case, with the rows of the case in it; and the reasons,
/// where failures were explained.
fn failures_by_target(out: &mut String, document: &Document, level: Level) {
    let explains = level == Level::Must && document.results.iter().any(|result| result.known.is_some());
    let mut lines: BTreeMap<(usize, &str, &str, &Option<String>), Vec<&CaseResult>> = BTreeMap::new();
    for result in document.results.iter().filter(|result| result.level == level && result.fails()) {
        let target_index =
            document.targets.iter().position(|target| target.label == result.target).unwrap_or(0);
        let base = result.case.split('/').next().unwrap_or_default();
        lines.entry((target_index, &result.topic, base, &result.known)).or_default().push(result);
    }
    if lines.is_empty() {
        return;
    }
    let (head, rule) = if explains { (" explanation | evidence |", "---|---|") } else { ("", "") };
    out.push_str(&format!(
        "\n## {} not met\n\n| target | case | rows | source | seen |{head}\n|---|---|---|---|---|{rule}\n",
        level.word()
    ));
    for ((_, _, base, known), results) in lines {
        let rows: Vec<&str> =
            results.iter().filter_map(|result| Some(result.case.split_once('/')?.1)).collect();
        let Some(first) = results.first() else { continue };
        let cells = [first.target.as_str(), &rows.join(", "), &reference(first), &first.reason].map(escaped);
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |",
            cells[0],
            code(base),
            cells[1],
            cells[2],
            cells[3]
        ));
        if explains {
            let known = known.as_deref().map_or_else(|| NOT_EXPLAINED.to_owned(), escaped);
            out.push_str(&format!(" {known} | {} |", escaped(&first.evidence.join("; "))));
        }
        out.push('\n');
    }
}

/// A name of a case as code, if it has no character that ends code or a cell.
fn code(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./ :,()".contains(c);
    if name.chars().all(is_plain) { format!("`{name}`") } else { escaped(name) }
}

/// The results as JUnit's XML: a suite for each target, a test for each case. Only MUST and SHOULD can fail.
pub fn junit(document: &Document) -> String {
    let suite = |target: &TargetInfo| Suite {
        name: name(target),
        timestamp: None,
        time_s: Some(target.took_s),
        cases: document.results.iter().filter(|result| result.target == target.label).map(tried).collect(),
    };
    let suites: Vec<Suite> = document.targets.iter().map(suite).collect();
    assay_base::junit::document("assay conform", &suites)
}

fn tried(result: &CaseResult) -> assay_base::junit::Case {
    let outcome = match (&result.known, result.verdict) {
        (None, _) if result.fails() => Outcome::Failed(format!(
            "{} ({}, {}): {}",
            result.rule,
            result.level.word(),
            reference(result),
            result.reason
        )),
        (Some(known), _) if result.fails() => Outcome::Skipped(known.clone()),
        (known, verdict) if !verdict.is_decided() => {
            Outcome::Skipped(known.clone().unwrap_or_else(|| verdict.words().to_owned()))
        }
        _ => Outcome::Passed,
    };
    assay_base::junit::Case {
        class: format!("{}.{}", result.target, result.topic),
        name: result.case.clone(),
        outcome,
    }
}

/// A case in words: what it requires, what it relies on, and its steps.
pub fn case(case: &Case) -> String {
    let mut out = format!("{} ({}, {})\n  {}\n", case.name, case.level.word(), case.reference(), case.rule);
    if !case.depends.is_empty() {
        out.push_str(&format!("  relies on: {}\n", case.depends.join(", ")));
    }
    out.push_str(&format!("  topic: {}; written at {}\n", case.topic, case.location));
    for (number, step) in (1..).zip(&case.steps) {
        out.push_str(&format!("\n{}", one_step(number, step)));
    }
    out
}

/// The frames of a step.
fn frames(request: &Request) -> String {
    let mut out = String::new();
    for (number, frame) in request.frames.iter().enumerate() {
        let label = if number == 0 { "client sends" } else { "" };
        let stream = frame.stream.map_or_else(String::new, |stream| format!(" on stream {stream}"));
        let flags = crate::http2::frame::flag_names(frame.kind, frame.flags).join(" ");
        let times = if frame.times > 1 { format!(" {} times", frame.times) } else { String::new() };
        out.push_str(&format!("  {label:<13} {}{stream}{times} {flags}", kind_name(frame.kind)));
        match &frame.payload {
            Payload::Fields(lines) => {
                out.extend(lines.iter().map(|line| format!("\n                {}", line.escape_debug())));
            }
            Payload::Text(text) => out.push_str(&format!(" {text:?}")),
            Payload::Bytes(bytes) => out.extend(bytes.iter().map(|byte| format!(" {byte:02x}"))),
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    if request.repeat > 1 {
        out.push_str(&format!("                {} times, each time two streams further\n", request.repeat));
    }
    out
}

fn one_step(number: usize, step: &Step) -> String {
    let mut out = format!("Step {number}");
    if step.wait_s > 0.0 {
        out.push_str(&format!(", {} s later", step.wait_s));
    }
    if step.copies > 1 {
        out.push_str(&format!(", {} times at once", step.copies));
    }
    if step.is_setup {
        out.push_str(", which the case relies on");
    }
    out.push('\n');
    let request = &step.request;
    match &request.raw {
        Some(raw) => out.push_str(&format!("  client sends  {raw:?}\n")),
        None if !request.frames.is_empty() => out.push_str(&frames(request)),
        None => {
            out.push_str(&format!(
                "  client sends  {} {{url}}{} HTTP/{}\n",
                request.method, request.path, request.version
            ));
            let fields = request.fields.iter().map(|line| format!("                {line}\n"));
            out.extend(fields);
        }
    }
    let responses = [
        ("origin sends", Some(&step.origin)),
        ("if validated", step.validated.as_ref()),
        ("for a part  ", step.part.as_ref()),
    ];
    for (who, response) in responses {
        let Some(response) = response else { continue };
        match &response.raw {
            Some(raw) => out.push_str(&format!("  {who}  {raw:?}\n")),
            None => {
                out.push_str(&format!("  {who}  {}\n", response.status));
                out.extend(response.fields.iter().map(|line| format!("                {line}\n")));
            }
        }
    }
    for line in crate::explain::expectations(&step.expect) {
        out.push_str(&format!("  expected      {line}\n"));
    }
    out
}
