//! The terminal summary: golden, within its width, and safe to print.

use std::path::Path;

use assay_report::terminal::{Style, render};

use crate::summary::{golden_path, of};
use crate::synthetic::Story;
use assay_testbed::pages::golden;

#[test]
fn the_terminal_summary_stays_as_it_is() {
    let cases = [
        (Story::Good, 100, "good-100.txt"),
        (Story::Good, 200, "good-200.txt"),
        (Story::Troubled, 100, "troubled-100.txt"),
        (Story::Stalled, 80, "stalled-80.txt"),
        (Story::Nothing, 80, "nothing-80.txt"),
    ];
    for (story, width, name) in cases {
        golden(
            &golden_path(name),
            &render(
                &of(story),
                Some(Path::new("runs/image-varnish/report.html")),
                &Style { colour: false, width },
            ),
        );
    }
}

#[test]
fn every_finding_is_there_whatever_became_of_the_run() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for story in Story::ALL.into_iter().filter(|story| *story != Story::Hostile) {
        let summary = of(story);
        let text = words(&render(&summary, None, &Style { colour: false, width: 80 }));
        assert!(!summary.verdict.is_empty(), "{story:?}");
        for finding in &summary.verdict {
            assert!(text.contains(&words(&finding.text)), "{story:?}: {finding:?} is not in {text}");
        }
    }
}

#[test]
fn no_line_of_a_table_is_wider_than_the_terminal() {
    for story in Story::ALL.into_iter().filter(|story| *story != Story::Hostile) {
        for width in [72, 80, 100, 140, 200] {
            for line in render(&of(story), None, &Style { colour: false, width }).lines() {
                assert!(line.chars().count() <= width, "{story:?} at {width}: {line}");
            }
        }
    }
}

#[test]
fn without_colour_there_is_no_escape_and_with_it_the_words_are_the_same() {
    for story in Story::ALL {
        let plain = render(&of(story), None, &Style { colour: false, width: 100 });
        assert!(!plain.contains('\u{1b}'), "{story:?}");
        let coloured = render(&of(story), None, &Style { colour: true, width: 100 });
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            stripped.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        stripped.push_str(rest);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&stripped), words(&plain), "{story:?}");
    }
}

#[test]
fn that_a_run_is_partial_comes_before_any_number() {
    let text = render(&of(Story::Interrupted), None, &Style { colour: false, width: 100 });
    assert!(text.lines().nth(1).unwrap().starts_with("PARTIAL"), "{text}");
}

#[test]
fn what_disturbed_a_run_comes_after_its_numbers_and_says_what_to_do() {
    for story in [Story::Stalled, Story::Ports, Story::Failed] {
        let text = render(&of(story), None, &Style { colour: false, width: 100 });
        let (numbers, after) = text.split_once("What disturbed the run\n").unwrap();
        assert!(numbers.contains("response time, ms") && !numbers.contains("what to do"), "{text}");
        assert!(after.contains("what to do"), "{text}");
        assert!(!text.to_lowercase().contains("invalid"), "{text}");
    }
    let good = render(&of(Story::Good), None, &Style { colour: false, width: 100 });
    assert!(!good.contains("disturbed"), "{good}");
}

#[test]
fn a_number_that_is_not_known_is_not_shown() {
    let summary = of(Story::Failed);
    let text = render(&summary, None, &Style { colour: false, width: 200 });
    let total = text.lines().find(|line| line.starts_with("total")).unwrap();
    assert!(total.contains('?'), "{total}");
    for word in total.split_whitespace() {
        let is_count = word.chars().all(|c| c.is_ascii_digit() || c == ',');
        let is_of_the_stream = [summary.total.rate.offered].map(format_number).contains(&word.to_owned())
            || [
                summary.total.dhr.offered,
                summary.total.dhr.ideal,
                summary.total.bhr.offered,
                summary.total.bhr.ideal,
            ]
            .map(|ratio| format!("{:.1}", ratio.unwrap() * 100.0))
            .contains(&word.to_owned());
        assert!(word == "total" || word == "?" || is_count || is_of_the_stream, "{word} in {total}");
    }
}

fn format_number(value: Option<f64>) -> String {
    assay_report::format::number(value.unwrap())
}

#[test]
fn what_two_doubts_have_in_common_is_said_once() {
    let text = render(&of(Story::Stalled), None, &Style { colour: false, width: 200 });
    assert!(text.contains("stood still for 304 ms") && text.contains("stood still for 112 ms"), "{text}");
    assert_eq!(text.matches("went out late and in a burst").count(), 1, "{text}");
}

#[test]
fn a_report_that_was_not_made_is_not_pointed_to() {
    assert!(!render(&of(Story::Good), None, &Style { colour: false, width: 100 }).contains("report.html"));
}
