//! Results against their schema and as text; case files against theirs.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use assay_conform::case::Case;
use assay_conform::document::{Conclusion, Document, TargetInfo};
use assay_conform::message::Message;
use assay_conform::observe::{Arrival, Observation, Received};
use assay_conform::run::Outcome;
use assay_conform::suite::{BUNDLED, Suite};
use assay_conform::verdict::{Judgement, TryCounts, Verdict};
use assay_conform::{known, show};
use assay_testbed::violations;
use serde_json::Value;

fn reference(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference").join(name)
}

/// A request that the target passed on, and the response to it.
fn seen() -> Observation {
    let request = b"GET /t1 HTTP/1.1\r\nHost: a.example\r\n\r\n".to_vec();
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    let arrival = Arrival {
        request: Message::head(&request).unwrap().0,
        bytes: request.clone(),
        at_ms: 1.0,
        responded_ms: Some(1.5),
        status: 200,
    };
    let received = Received {
        response: Message::head(&response).map(|(message, _)| message),
        bytes: response,
        head_ms: 2.0,
        end_ms: 2.5,
        ..Received::default()
    };
    Observation { sent: request, received: vec![received], arrivals: vec![arrival], ..Observation::default() }
}

/// What comes of a case without a cache.
fn outcome(case: Rc<Case>) -> Outcome {
    let judgement = match case.name.as_str() {
        "stores" => Judgement::new(Verdict::No, "step 2: the origin got a request"),
        _ => Judgement::new(Verdict::Pass, ""),
    };
    let times = TryCounts::of(judgement.verdict);
    Outcome { case, judgement, observations: vec![seen(), seen()], tries: 1, times }
}

/// Results of two cases on two targets without a cache, of which one is made to fail.
fn document() -> Document {
    let names = ["stores", "no-store-response/plain"].map(str::to_owned);
    let outcomes: Vec<Outcome> =
        Suite::bundled().unwrap().chosen(&names).unwrap().into_iter().map(outcome).collect();
    let mut document = Document::new("0", 1);
    let info = |label: &str| TargetInfo { label: label.into(), ..TargetInfo::default() };
    document.add(info("good"), &outcomes);
    document.add(info("bad"), &outcomes);
    let failing = document
        .results
        .iter_mut()
        .find(|result| result.target == "bad" && result.case.starts_with("no-store"));
    let failing = failing.unwrap();
    (failing.verdict, failing.reason) = (Verdict::Fail, "step 2: <seen> & \"quoted\" | piped".into());
    document
}

#[test]
fn the_document_is_what_its_schema_says() {
    let schema = Document::json_schema();
    let document = document();
    let json = document.to_json().unwrap();
    assert_eq!(violations(&schema, &serde_json::from_str(&json).unwrap()), Vec::<String>::new());
    assert_eq!(Document::from_json(&json).unwrap(), document);
    assert!(
        Document::from_json(&json.replace("assay-conform/1", "other/9"))
            .unwrap_err()
            .to_string()
            .contains("other/9")
    );
}

#[test]
fn a_must_that_fails_decides_unless_it_is_known_or_failed_before() {
    let mut document = document();
    assert_eq!(document.conclusion(None), Conclusion::Failed);
    assert_eq!(document.conclusion(Some(&document.clone())), Conclusion::Fine);
    let mut before = document.clone();
    before.results.iter_mut().for_each(|result| result.verdict = Verdict::Pass);
    assert_eq!(document.conclusion(Some(&before)), Conclusion::Failed);
    assert_eq!(document.failures(Some(&before)).len(), 1);
    let text = "[[known]]\ncase = \"no-store-response\"\nreason = \"why\"\n[[known]]\ncase = \"x\"\nreason = \"y\"\n";
    let known = known::read("k.toml", text).unwrap();
    let unused = known::apply(&mut document, &known);
    assert!(unused.is_empty(), "one was seen, the other not tried: {unused:?}");
    assert_eq!(document.conclusion(None), Conclusion::Fine);
    assert!(known::read("k.toml", "[[known]]\ncase = \"a\"\nreason = \" \"\n").is_err());
}

#[test]
fn a_known_failure_is_not_seen_only_where_its_case_was_tried_and_decided() {
    let text = "[[known]]\ncase = \"age-sent\"\nreason = \"not tried\"\n\
        [[known]]\ntarget = \"other\"\ncase = \"no-store-response\"\nreason = \"not tried there\"\n\
        [[known]]\ntarget = \"good\"\ncase = \"no-store-response\"\nreason = \"it passes\"\n\
        [[known]]\ncase = \"stores\"\nreason = \"it passes\"\n";
    let known = known::read("k.toml", text).unwrap();
    let mut document = document();
    let unused = |document: &mut Document| -> Vec<&str> {
        known::apply(document, &known).into_iter().map(|known| known.case.as_str()).collect()
    };
    assert_eq!(unused(&mut document), ["no-store-response", "stores"]);
    for undecided in [Verdict::NotApplicable, Verdict::DependencyMissing, Verdict::Inconclusive] {
        let of_stores = document.results.iter_mut().filter(|result| result.case == "stores");
        of_stores.for_each(|result| result.verdict = undecided);
        assert_eq!(unused(&mut document), ["no-store-response"], "{undecided:?}");
    }
}

#[test]
fn a_target_that_ended_leaves_its_results_undecided() {
    let mut document = document();
    document.results.iter_mut().for_each(|result| result.verdict = Verdict::Pass);
    assert_eq!(document.conclusion(None), Conclusion::Fine);
    document.results.iter_mut().for_each(|result| result.verdict = Verdict::NotApplicable);
    assert_eq!(document.conclusion(None), Conclusion::Undecided, "nothing was found out");
    document.results.iter_mut().for_each(|result| result.verdict = Verdict::Pass);
    document.targets[0].ended = Some("it crashed".into());
    assert_eq!(document.conclusion(None), Conclusion::Undecided);
    assert!(
        show::terminal(&document, None).starts_with("good ended by itself while it was tried: it crashed")
    );
}

#[test]
fn texts_say_what_fails_and_where_targets_disagree() {
    let document = document();
    let terminal = show::terminal(&document, None);
    assert!(terminal.contains("MUST not met: 1\n  bad: no-store-response/plain"), "{terminal}");
    assert!(terminal.contains("Where they disagree: 1 of 2 cases"), "{terminal}");
    let markdown = show::markdown(&document);
    assert!(markdown.contains("| bad | `no-store-response` | plain | RFC 9111, 5.2.2.5 |"), "{markdown}");
    assert!(markdown.contains("\\| piped"), "{markdown}");
    let junit = show::junit(&document);
    assert!(
        junit.contains("tests=\"2\" failures=\"1\"")
            && junit.contains("&lt;seen&gt; &amp; &quot;quoted&quot;"),
        "{junit}"
    );
}

#[test]
fn a_must_that_holds_sometimes_is_a_failure_with_its_counts_everywhere() {
    let mut document = document();
    let before = document.clone();
    let result = document.results.iter_mut().find(|result| result.verdict == Verdict::Fail).unwrap();
    result.verdict = Verdict::Sometimes;
    result.times = Some(TryCounts { held: 9, unheld: 3, open: 1 });
    let mut passed = document.clone();
    passed.results.iter_mut().for_each(|result| result.verdict = Verdict::Pass);
    assert_eq!(document.conclusion(None), Conclusion::Failed);
    assert_eq!(document.conclusion(Some(&passed)), Conclusion::Failed);
    // It has failed before: that it holds now and then is listed, and is none that is new; the reverse, too.
    for (now, before, words) in [
        (&document, &before, "bad  no-store-response/plain: sometimes (9 of 12), was FAIL"),
        (&before, &document, "bad  no-store-response/plain: FAIL, was sometimes (9 of 12)"),
        (&passed, &document, "bad  no-store-response/plain: pass, was sometimes (9 of 12)"),
    ] {
        assert_eq!(now.conclusion(Some(before)), Conclusion::Fine);
        let terminal = show::terminal(now, Some(before));
        assert!(terminal.contains(words), "{words}: {terminal}");
    }
    let terminal = show::terminal(&document, None);
    assert!(terminal.contains("  bad: no-store-response/plain (sometimes (9 of 12))"), "{terminal}");
    let markdown = show::markdown(&document);
    assert!(markdown.contains("| `no-store-response/plain` | MUST | ok | 9/12 |"), "{markdown}");
    assert!(markdown.contains("| bad | `no-store-response` | plain |"), "{markdown}");
    assert!(show::junit(&document).contains("tests=\"2\" failures=\"1\""));
    let json = document.to_json().unwrap();
    assert!(json.contains("\"verdict\": \"sometimes\""), "{json}");
    let known = known::read("k.toml", "[[known]]\ncase = \"no-store-response\"\nreason = \"why\"\n").unwrap();
    assert!(known::apply(&mut document, &known).is_empty());
    assert_eq!(document.conclusion(None), Conclusion::Fine);
}

#[test]
fn every_bundled_file_is_what_the_schema_of_case_files_says() {
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(reference("case.schema.json")).unwrap()).unwrap();
    for (name, text) in BUNDLED {
        let table: toml::Table = toml::from_str(text).unwrap();
        let found = violations(&schema, &serde_json::to_value(table).unwrap());
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
    for wrong in ["topic = \"t\"", "topic = \"t\"\ncase = [{ name = \"A b\" }]", "topic = \"t\"\nother = 1"] {
        let table: toml::Table = toml::from_str(wrong).unwrap();
        assert!(!violations(&schema, &serde_json::to_value(table).unwrap()).is_empty(), "{wrong}");
    }
}

/// Rows of the table of MUST failures in the page that is kept: target, case, its rows, explanation, evidence.
fn kept_failures() -> Vec<[String; 5]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/explanation/conformance-results.md");
    let page = std::fs::read_to_string(path).unwrap();
    let table = page.split("\n## MUST not met\n").nth(1).expect("the page has a table of MUST failures");
    let table = table.split("\n## ").next().unwrap();
    let row = |line: &str| {
        let cells: Vec<String> =
            line.replace("\\|", "\u{1}").split('|').map(|cell| cell.trim().to_owned()).collect();
        let cell = |number: usize| cells[number].trim_matches('`').replace('\\', "").replace("&quot;", "\"");
        [cell(1), cell(2), cell(3), cell(6), cell(7)]
    };
    table.lines().filter(|line| line.contains("| `")).map(row).collect()
}

/// The explanations of the kept failures.
fn explained() -> Vec<known::KnownFailure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/explained.toml");
    known::read("conformance/explained.toml", &std::fs::read_to_string(path).unwrap()).unwrap()
}

/// True if an explanation is about a kept failure, or one of the rows that it has in its line.
fn explains(known: &known::KnownFailure, [target, case, rows, _, _]: &[String; 5]) -> bool {
    let (base, row) = known.case.split_once('/').map_or((known.case.as_str(), None), |(a, b)| (a, Some(b)));
    known.target.as_ref().is_none_or(|own| own == target)
        && case == base
        && row.is_none_or(|row| rows.split(", ").any(|own| own == row))
}

#[test]
fn every_explanation_says_what_it_rests_on_and_few_rest_on_the_exchanges_alone() {
    let explained = explained();
    let without: Vec<_> = explained.iter().filter(|known| known.evidence.is_empty()).collect();
    assert!(without.is_empty(), "conformance/explained.toml: no `evidence` for {without:#?}");
    let alone: Vec<_> = explained.iter().filter(|known| known.rests_on_exchanges_alone()).collect();
    assert!(alone.len() * 10 <= explained.len(), "look these up in the product's source: {alone:#?}");
    let by_hand = explained.iter().filter(|known| known.evidence.iter().any(|item| item == "by hand"));
    assert!(by_hand.count() >= 10);
}

#[test]
fn the_kept_page_has_the_explanations_and_the_evidence_of_the_file() {
    let explained = explained();
    for failure in kept_failures() {
        let same = |known: &&known::KnownFailure| {
            explains(known, &failure) && failure[3] == known.reason && failure[4] == known.evidence.join("; ")
        };
        assert!(
            explained.iter().any(|known| same(&known)),
            "the page says something else than conformance/explained.toml; write it anew: {failure:#?}"
        );
    }
}

#[test]
fn every_explanation_belongs_to_a_failure_of_the_kept_page_and_every_failure_has_one() {
    let explained = explained();
    let failures = kept_failures();
    assert!(failures.len() > 100, "{} rows", failures.len());
    let belongs = |known: &known::KnownFailure| failures.iter().any(|failure| explains(known, failure));
    let idle: Vec<&str> =
        explained.iter().filter(|known| !belongs(known)).map(|known| known.case.as_str()).collect();
    assert!(idle.is_empty(), "conformance/explained.toml explains what does not fail: {idle:?}");
    let open: Vec<_> = failures.iter().filter(|failure| failure[3].contains("not explained yet")).collect();
    assert!(open.is_empty(), "explain these in conformance/explained.toml: {open:#?}");
}
