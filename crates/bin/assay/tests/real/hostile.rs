//! Names that others chose, in every output of a run: they are seen, and do nothing where they are shown.

use std::path::Path;

use assay_base::quote::HOSTILE;
use serde_json::Value;

use crate::hostile_text::{assert_page, assert_tame, is_active, on_terminal, without_styles};
use crate::support::{Assay, read};

/// Every text of a document.
fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        _ => {}
    }
}

/// Rows of CSV.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut inside = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if inside && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => inside = !inside,
            ',' if !inside => row.push(std::mem::take(&mut field)),
            '\n' if !inside => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(!inside, "a quote does not end");
    rows
}

/// Gives a run these names: of its workload, its target and its phases.
fn rename(directory: &Path, names: &[&str]) {
    let path = directory.join("run.json");
    let mut info: Value = serde_json::from_str(&read(&path)).expect("a document");
    info["workload"]["name"] = names[0].into();
    info["target"]["name"] = names[1].into();
    for (phase, name) in info["phases"].as_array_mut().expect("phases").iter_mut().zip(&names[2..]) {
        phase["name"] = (*name).into();
    }
    std::fs::write(&path, info.to_string()).expect("a directory of its own");
    let sums = directory.join("SHA256SUMS");
    let others: String =
        read(&sums).lines().filter(|line| !line.ends_with("run.json")).map(|l| format!("{l}\n")).collect();
    std::fs::write(sums, others).expect("a directory of its own");
}

/// Markdown without what is code; it has as many cells in each row of a table as in its head.
#[track_caller]
fn assert_markdown(text: &str) {
    let mut cells = 0;
    for line in text.lines() {
        assert!(!line.contains(is_active) && !line.starts_with("error: forged"), "{line:?}");
        let outside: String = line.replace("\\\\", "").replace("\\`", "").split('`').step_by(2).collect();
        let outside = outside.replace("\\|", "").replace("\\[", "").replace("\\]", "");
        for tag in outside.split('<').skip(1) {
            let known = ["details>", "/details>", "summary>", "/summary>", "code>", "/code>"];
            assert!(known.iter().any(|own| tag.starts_with(own)), "{line:?}");
        }
        // Markdown means nothing within an element of HTML.
        let is_html = line.starts_with("<details>");
        let plain: String = outside
            .split("<code>")
            .map(|part| part.split_once("</code>").map_or(part, |(_, rest)| rest))
            .collect();
        assert!(
            !plain.contains(['@'])
                && !plain.contains("://")
                && !plain.contains("www.")
                && (is_html || !plain.contains("](")),
            "{line:?}"
        );
        cells = match outside.strip_prefix('|').map(|row| row.matches('|').count()) {
            Some(count) if cells > 0 => {
                assert_eq!(count, cells, "{line:?}");
                count
            }
            count => count.unwrap_or(0),
        };
    }
}

#[test]
fn names_that_others_chose_do_nothing_in_any_output_of_a_run() {
    let assay = Assay::new();
    for directory in ["one", "two"] {
        let said = assay.run(&["run", "demo", "--rehearse", "1s", "--run-dir", directory, "--no-report"]);
        assert!(said.went_well(), "{said:?}");
    }
    // As many as a run has names.
    for names in HOSTILE.chunks(11).filter(|names| names.len() > 9) {
        let case = format!("{names:?}");
        ["one", "two"].iter().for_each(|directory| rename(&assay.path(directory), names));
        let document = assay.run(&["report", "one", "--json", "--no-report"]).stdout;
        let document: Value =
            serde_json::from_str(&document).unwrap_or_else(|error| panic!("{case}: {error}"));
        let mut found = Vec::new();
        texts(&document, &mut found);
        for name in names {
            assert!(found.contains(name), "{name:?} is not in the document");
        }
        for arguments in
            [&["report", "one", "--no-report"][..], &["compare", "one", "two"], &["runs", "--dir", "."]]
        {
            let shown = on_terminal(&assay, arguments);
            assert!(shown.len() > 100, "{shown}");
            let is_ours = !names.iter().any(|name| name.contains(is_active));
            assert_tame(
                &if is_ours { without_styles(&shown) } else { shown },
                &format!("{arguments:?} {case}"),
            );
        }
        assay.run(&["report", "one", "-o", "page.html"]);
        assert_page(&read(&assay.path("page.html")), &case);
        let compared =
            assay.run(&["compare", "one", "two", "--html", "page.html", "--csv", "csv", "--markdown"]);
        assert_page(&read(&assay.path("page.html")), &case);
        assert_markdown(&compared.stdout);
        assay.run(&["report", "one", "--csv", "csv"]);
        for entry in std::fs::read_dir(assay.path("csv")).expect("tables").flatten() {
            let rows = rows(&read(&entry.path()));
            let width = rows.first().map_or(0, Vec::len);
            for row in &rows {
                assert_eq!(row.len(), width, "{entry:?}: {row:?}");
                let formula = |field: &&String| {
                    field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err()
                };
                assert_eq!(row.iter().find(formula), None, "{entry:?}");
            }
        }
        std::fs::remove_dir_all(assay.path("csv")).expect("is there");
    }
}
