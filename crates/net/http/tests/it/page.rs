//! The reference page lists what the corpus says.

use std::fmt::Write as _;
use std::path::Path;

use assay_testbed::corpus::ending::Ending;
use assay_testbed::corpus::format::{Case, requests};

const BEGIN: &str = "<!-- The corpus: written by the tests of the http crate. -->\n";
const END: &str = "<!-- The end of the corpus. -->\n";

#[test]
fn the_page_of_refused_requests_lists_the_corpus() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/refused-requests.md");
    let page = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    let (before, rest) = page.split_once(BEGIN).expect("the page says where the list begins");
    let (_, after) = rest.split_once(END).expect("the page says where the list ends");
    let right = [before, BEGIN, &list(&requests()), END, after].concat();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &right).unwrap();
    }
    assert!(
        page == right || std::env::var_os("UPDATE_GOLDEN").is_some(),
        "run the tests with UPDATE_GOLDEN=1"
    );
}

/// A table for each heading: a line for each rule.
fn list(cases: &[Case]) -> String {
    let mut text = format!("\n{} cases.\n", cases.len());
    for group in cases.chunk_by(|a, b| a.group == b.group) {
        write!(text, "\n### {}\n\n| rule | RFC | becomes | cases |\n|---|---|---|---|\n", group[0].group)
            .unwrap();
        for rule in group.chunk_by(|a, b| a.rule == b.rule) {
            let (case, count) = (&rule[0], rule.len());
            writeln!(text, "| {} | {} | {} | {count} |", case.rule, case.rfc, becomes(case)).unwrap();
        }
    }
    text.push('\n');
    text
}

fn becomes(case: &Case) -> String {
    let ending = match case.end {
        Ending::Open | Ending::Closes => String::new(),
        Ending::Refused { status, in_body: false } => format!("refused with {status}"),
        Ending::Refused { status, in_body: true } => {
            format!("refused with {status}, its head may have gone on")
        }
        Ending::Waits { .. } => "waited for".to_owned(),
    };
    match (case.passes.len(), ending.as_str()) {
        (0, _) => ending,
        (1, "") => "goes on".to_owned(),
        (count, "") => format!("{count} requests go on"),
        (count, _) => format!("{count} goes on, then {ending}"),
    }
}
