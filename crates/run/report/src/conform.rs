//! The results of conformance cases as one HTML page that needs no network: what fails, where targets disagree, and the exchanges
//! as evidence; cases can be filtered by topic, level and source.

use crate::ReportError;
use crate::html::{MACROS, SCRIPT, STYLE, UPLOT, UPLOT_STYLE, embedded_json};
use crate::page::{RowView, TableView};
use assay_base::settings::show::series;
use assay_conform::case::Level;
use assay_conform::document::{CaseResult, Document, Exchange};
use assay_conform::matrix::{Row, rows, share};
use assay_conform::verdict::Verdict;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

const TEMPLATE: &str = include_str!("../assets/conform.html");
const OWN_STYLE: &str = include_str!("../assets/conform.css");
/// Most characters of each message that the page shows; the document has more.
const MOST_SHOWN: usize = 600;

/// Data of the template.
#[derive(Serialize)]
struct ConformPage<'d> {
    title: String,
    eyebrow: String,
    findings: Vec<ConformFinding>,
    overview: TableView,
    labels: Vec<&'d str>,
    topics: Vec<&'d str>,
    levels: Vec<&'static str>,
    sources: Vec<String>,
    rows: Vec<CaseRow<'d>>,
    assay_version: &'static str,
    /// Our own text, as the two that follow: not escaped.
    style: Value,
    script: Value,
    data: Value,
}

#[derive(Serialize)]
struct ConformFinding {
    mood: &'static str,
    title: String,
    text: String,
}

#[derive(Serialize)]
struct CaseRow<'d> {
    name: &'d str,
    topic: &'d str,
    level: &'static str,
    source: String,
    reference: String,
    rule: &'d str,
    differs: bool,
    fails: bool,
    cells: Vec<VerdictCell>,
    evidence: Vec<CaseEvidence<'d>>,
}

#[derive(Serialize)]
struct VerdictCell {
    mark: String,
    mood: &'static str,
}

#[derive(Serialize)]
struct CaseEvidence<'d> {
    target: &'d str,
    verdict: String,
    reason: &'d str,
    text: String,
}

/// Charts of the page: there are none.
#[derive(Serialize)]
struct NoCharts {
    axes: [u8; 0],
    charts: [u8; 0],
}

/// The page of results.
pub fn page(document: &Document) -> Result<String, ReportError> {
    let all = rows(document);
    let labels: Vec<&str> = document.targets.iter().map(|target| target.label.as_str()).collect();
    let page = ConformPage {
        title: match labels.as_slice() {
            [] => "No target was tried".to_owned(),
            [one] => format!("What {one} does"),
            all => format!("What {} do", series(all)),
        },
        eyebrow: format!("{} cases", all.len()),
        findings: findings(document, &all),
        overview: overview(document),
        topics: distinct(all.iter().map(|row| row.case.topic.as_str())),
        levels: Level::ALL.map(Level::word).to_vec(),
        sources: distinct(all.iter().map(|row| source(row.case))),
        rows: all.iter().map(view).collect(),
        labels,
        assay_version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}\n{OWN_STYLE}")),
        script: Value::from_safe_string(format!("{UPLOT}\n{SCRIPT}")),
        data: Value::from_safe_string(embedded_json(&NoCharts { axes: [], charts: [] })?),
    };
    let template = [MACROS, TEMPLATE].concat();
    let mut environment = Environment::new();
    // The name's ending turns escaping on.
    environment.add_template("conform.html", &template)?;
    Ok(environment.get_template("conform.html")?.render(Serde(page))?)
}

fn distinct<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort();
    all.dedup();
    all
}

fn source(case: &CaseResult) -> String {
    case.rfc.map_or_else(|| "no RFC".to_owned(), |rfc| format!("RFC {rfc}"))
}

fn findings(document: &Document, all: &[Row<'_>]) -> Vec<ConformFinding> {
    let ended = document.targets.iter().filter_map(|target| {
        let how = target.ended.as_ref()?;
        Some(ConformFinding {
            mood: "bad",
            title: format!("{} ended by itself while it was tried.", target.label),
            text: how.clone(),
        })
    });
    let silent = document.targets.iter().filter_map(|target| {
        let text = document.inconclusive_summary(&target.label)?;
        Some(ConformFinding { mood: "bad", title: format!("Little can be said of {}.", target.label), text })
    });
    let of_target = document.targets.iter().map(|target| {
        let (holds, decided, _) = share(document, &target.label, Level::Must);
        let mood = if holds == decided { "good" } else { "bad" };
        let name = if target.software.is_empty() { &target.label } else { &target.software };
        ConformFinding {
            mood,
            title: name.clone(),
            text: format!("meets {holds} of {decided} MUST cases that say something about it."),
        }
    });
    let differ = all.iter().filter(|row| row.differs()).count();
    let differences = (document.targets.len() > 1).then(|| ConformFinding {
        mood: "plain",
        title: "Where do they disagree?".to_owned(),
        text: format!("In {differ} of {} cases, which are the first in the table.", all.len()),
    });
    ended.chain(silent).chain(of_target).chain(differences).collect()
}

fn overview(document: &Document) -> TableView {
    let row = |target: &assay_conform::document::TargetInfo| {
        let of = |level: Level| {
            let (holds, decided, _) = share(document, &target.label, level);
            format!("{holds} of {decided}")
        };
        let open = |verdict: Verdict| {
            let all = Level::ALL.iter().map(|&level| document.count(&target.label, level, verdict));
            all.sum::<usize>().to_string()
        };
        let cells = Level::ALL
            .into_iter()
            .map(of)
            .chain([Verdict::DependencyMissing, Verdict::Inconclusive].map(open));
        RowView { name: target.label.clone(), cells: cells.collect(), ..RowView::default() }
    };
    TableView {
        id: "overview",
        title: "How many cases hold",
        about: "Of those that were decided.",
        first: "target",
        groups: Vec::new(),
        heads: vec!["MUST", "SHOULD", "MAY", "behaviour", "dependency missing", "inconclusive"],
        rows: document.targets.iter().map(row).collect(),
    }
}

fn view<'d>(row: &Row<'d>) -> CaseRow<'d> {
    let cell = |result: &Option<&CaseResult>| VerdictCell {
        mark: result.map_or_else(String::new, CaseResult::mark),
        mood: match result.map(|result| result.verdict) {
            _ if result.is_some_and(CaseResult::fails) => "bad",
            Some(Verdict::Pass | Verdict::Yes) => "good",
            _ => "plain",
        },
    };
    let shown = row.results.iter().flatten().filter(|result| !result.verdict.holds());
    let evidence = |result: &&'d CaseResult| CaseEvidence {
        target: &result.target,
        verdict: result.words(),
        reason: &result.reason,
        text: result.exchanges.iter().map(text).collect(),
    };
    let case = row.case;
    CaseRow {
        name: &case.case,
        topic: &case.topic,
        level: case.level.word(),
        source: source(case),
        reference: case
            .rfc
            .map_or_else(|| case.section.clone(), |rfc| format!("RFC {rfc}, {}", case.section)),
        rule: &case.rule,
        differs: row.differs(),
        fails: row.results.iter().flatten().any(|result| result.fails()),
        cells: row.results.iter().map(cell).collect(),
        evidence: shown.map(evidence).collect(),
    }
}

/// An exchange, as lines.
fn text(exchange: &Exchange) -> String {
    let mut out = format!(
        "— step {}, at {} ms: the client sends\n{}\n",
        exchange.step,
        exchange.at_ms,
        cut(&exchange.sent)
    );
    for reached in &exchange.origin {
        out.push_str(&format!(
            "— at {} ms the origin gets, and responds with {}\n{}\n",
            reached.at_ms,
            reached.status,
            cut(&reached.request)
        ));
    }
    out.push_str(&format!("— the client gets\n{}\n", cut(&exchange.received)));
    if let Some(problem) = &exchange.problem {
        out.push_str(&format!("— {problem}\n"));
    }
    out
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(MOST_SHOWN).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use assay_conform::document::TargetInfo;

    use super::*;

    fn document() -> Document {
        let mut document = Document::new("0", 0);
        let result = |target: &str, verdict| CaseResult {
            target: target.into(),
            case: "stores".into(),
            topic: "storing".into(),
            level: Level::Must,
            rfc: Some(9111),
            section: "3".into(),
            rule: "It is <b>stored</b>.".into(),
            verdict,
            reason: "step 1: </script><img src=x>".into(),
            known: None,
            evidence: Vec::new(),
            tries: 1,
            times: None,
            under_load: None,
            exchanges: vec![Exchange {
                step: 1,
                at_ms: 0.0,
                sent: "GET /<x>".into(),
                origin: Vec::new(),
                received: String::new(),
                problem: None,
            }],
        };
        for (label, verdict) in [("one", Verdict::Pass), ("two", Verdict::Fail)] {
            document.targets.push(TargetInfo { label: label.into(), ..TargetInfo::default() });
            document.results.push(result(label, verdict));
        }
        document
    }

    #[test]
    fn what_holds_sometimes_is_a_failure_with_its_counts() {
        let mut document = document();
        document.results[1].verdict = Verdict::Sometimes;
        document.results[1].times = Some(assay_conform::verdict::TryCounts { held: 9, unheld: 3, open: 0 });
        let page = page(&document).unwrap();
        for words in [
            "<td class=\"bad\">9&#x2f;12</td>",
            "data-fails=\"1\"",
            "two: sometimes (9 of 12)",
            "meets 0 of 1 MUST cases",
        ] {
            assert!(page.contains(words), "{words}");
        }
    }

    #[test]
    fn the_page_shows_what_fails_and_lets_nothing_out_of_its_place() {
        let page = page(&document()).unwrap();
        for words in
            ["meets 0 of 1 MUST cases", "In 1 of 1 cases", "data-differs=\"1\"", "GET &#x2f;&lt;x&gt;"]
        {
            assert!(page.contains(words), "{words}");
        }
        assert!(!page.contains("<img src=x>") && !page.contains("<b>stored"));
    }
}
