//! Text that others chose, in every output: it is seen, and does nothing where it is shown. One list of texts goes through all.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::Path;

use assay_quote::HOSTILE;
use serde_json::Value;

use crate::support::{Assay, read};

/// Does something where it is shown.
fn is_active(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What a command writes to a terminal, with line ends as they were before it.
fn on_terminal(assay: &Assay, arguments: &[&str]) -> String {
    let (mut master, mut slave) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: both are written before they are read, and the others may be null.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, none, std::ptr::null(), std::ptr::null()) };
    assert_eq!(opened, 0, "no terminal");
    // SAFETY: they were just opened, and nobody else has them.
    let [mut master, slave] = [master, slave].map(|fd| unsafe { File::from_raw_fd(fd) });
    let mut command = assay.command(arguments);
    let mut child = command.stdout(slave).env_remove("NO_COLOR").spawn().expect("the binary starts");
    drop(command);
    let mut bytes = Vec::new();
    // A terminal that nobody has any more ends with an error.
    let _ = master.read_to_end(&mut bytes);
    child.wait().expect("is our child");
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

/// Text for a terminal is tame: no line of it is one of the texts', nothing steers or colours.
#[track_caller]
fn assert_tame(text: &str, case: &str) {
    assert!(!text.contains(is_active), "{case}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{case}: {text:?}");
}

/// Without the styles that are ours.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

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

/// Nothing of the texts is markup of a page.
#[track_caller]
fn assert_page(page: &str, case: &str) {
    for markup in ["<script>alert", "<img src=x", "</details></summary>&lt;", "href=\"javascript"] {
        assert!(!page.contains(markup), "{case}: {markup}");
    }
    assert!(!page.contains(is_active), "{case}");
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

#[test]
fn what_clients_wrote_into_a_log_does_nothing_in_its_analysis() {
    let assay = Assay::new();
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r', '\0'], "");
    let line = |text: &str| {
        let (url, agent) = (quoted(text).replace([' ', '\t'], "+"), quoted(text));
        format!(
            "192.0.2.1 - - [10/Oct/2025:13:55:01 +0000] \"GET /{url} HTTP/1.1\" 404 5 \"{agent}\" \"{agent}\"\n"
        )
    };
    let log = assay.file("access.log", &HOSTILE.iter().map(|text| line(text)).collect::<String>());
    let document = assay.run(&["logs", log, "--json", "--html", "page.html"]).exits(0).stdout;
    assert!(serde_json::from_str::<Value>(&document).is_ok(), "{document}");
    assert_page(&read(&assay.path("page.html")), "logs");
    assert_tame(&without_styles(&on_terminal(&assay, &["logs", log])), "logs");
}

#[test]
fn a_message_about_what_others_named_is_one_message() {
    let assay = Assay::new();
    for text in HOSTILE {
        let name = text.replace(['/', '\0'], "_");
        let outer = assay.path("outer");
        let inner = outer.join(&name);
        std::fs::create_dir_all(&inner).expect("a directory of its own");
        std::fs::write(inner.join("run.json"), "{]").expect("a directory of its own");
        let [inner, outer] = [&inner, &outer].map(|path| path.display().to_string());
        let missing = format!("./{name}");
        let settings =
            assay.file("settings.toml", &format!("[[proxy]]\n\"x\" = {}\nlisten = ]", Value::from(text)));
        for arguments in [
            &["report", &inner][..],
            &["report", &outer],
            &["report", &missing],
            &["compare", &inner],
            &["logs", &inner],
            &["logs", &missing],
            &["check", &missing],
            &["switch", &missing],
            &["switch", settings],
            &["lab", settings],
            &["spe", "report", &missing],
            &["policies", &missing],
            &["size", &missing],
            &["merge", &missing, &inner, "--out", "merged"],
            &["replay", "--urls", &missing, "--to", "127.0.0.1:9"],
            &["conform", "--suite", &missing],
            &["run", "demo", "--topology", &missing],
            &["run", "demo", "--proxy", &missing],
        ] {
            let said = assay.run(arguments);
            let case = format!("{arguments:?}");
            assert!(matches!(said.code, Some(0..=2)), "{case}: {said:?}");
            assert_tame(&said.stderr, &case);
            let begun = said.stderr.lines().filter(|line| line.starts_with("error: ")).count();
            assert_eq!(begun, usize::from(said.code != Some(0)), "{case}: {}", said.stderr);
        }
        std::fs::remove_dir_all(&outer).expect("is there");
    }
}
