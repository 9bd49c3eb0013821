//! The page in a real browser: every chart is drawn, every download works, no name can do harm.

use std::path::Path;

use assay_report::html;

use crate::synthetic::{self, HOSTILE, Run, Story};
pub use assay_testbed::pages::{chromium, dom_of, figures};

/// Opens a page, runs `script` in it once it is loaded, and gives back the document as it then is.
fn dom_after(chromium: &Path, run: &Run, script: &str, extra: &[&str]) -> String {
    let report = html::write(&run.dir).unwrap();
    dom_of(chromium, &std::fs::read_to_string(&report).unwrap(), script, extra)
}

#[test]
fn every_chart_is_drawn_without_an_error_and_its_numbers_can_be_downloaded() {
    let Some(chromium) = chromium() else { return };
    let click_all = "document.querySelectorAll('button.csv').forEach((button) => button.click());";
    let dom = dom_after(&chromium, &synthetic::run(Story::Troubled), click_all, &[]);
    assert!(!dom.contains("data-script-error"), "{}", dom.lines().nth(1).unwrap_or_default());
    let figures = figures(&dom);
    assert!(figures.len() >= 22, "{figures:?}");
    for figure in &figures {
        assert!(figure.contains("data-drawn=\"true\""), "not drawn: {figure}");
    }
    assert!(figures.iter().any(|figure| figure.contains("\"errors\"")), "errors over time are a chart");
    let bars = dom.matches("<dl class=\"bars\"").count();
    assert_eq!((bars, dom.matches("<canvas").count() + bars), (1, figures.len()));
    let buttons = dom.matches("class=\"quiet csv\"").count();
    assert_eq!(dom.matches("data-saved=\"").count(), buttons, "every button gives a file");
    // 60.25 seconds are 61 steps and a line of names.
    assert!(dom.contains(
        "data-chart=\"rate\" aria-label=\"Download the numbers of Request rate as CSV\" data-saved=\"62\""
    ));
    assert!(dom.contains("<th scope=\"row\">top1</th>"));
}

#[test]
fn a_run_in_which_nothing_happened_is_a_page_without_errors() {
    let Some(chromium) = chromium() else { return };
    for story in [Story::Nothing, Story::Direct, Story::Killed] {
        let dom = dom_after(&chromium, &synthetic::run(story), "", &[]);
        assert!(!dom.contains("data-script-error"), "{story:?}");
        assert!(figures(&dom).iter().all(|figure| figure.contains("data-drawn=")), "{story:?}");
    }
}

#[test]
fn disturbed_phases_are_hatched_and_stalls_are_marked() {
    let Some(chromium) = chromium() else { return };
    // A hatched stretch is the only thing that is filled with a pattern.
    let watch = "const context = CanvasRenderingContext2D.prototype, pattern = context.createPattern; \
                 context.createPattern = function (...all) { \
                   document.body.dataset.hatched = 'true'; return pattern.apply(this, all); \
                 }; \
                 document.getElementById('theme').click();";
    for story in [Story::Stalled, Story::Good] {
        let dom = dom_after(&chromium, &synthetic::run(story), watch, &[]);
        assert!(!dom.contains("data-script-error"), "{story:?}");
        assert_eq!(dom.contains("data-hatched=\"true\""), story == Story::Stalled, "{story:?}");
        assert!(figures(&dom).iter().all(|figure| figure.contains("data-drawn=\"true\"")), "{story:?}");
        assert_eq!(dom.contains(">stalls</div>"), story == Story::Stalled, "the legend names them");
    }
}

#[test]
fn names_that_attack_the_page_are_shown_as_text() {
    let Some(chromium) = chromium() else { return };
    let dom = dom_after(&chromium, &synthetic::run(Story::Hostile), "", &["--allow-file-access-from-files"]);
    assert!(!dom.contains("<title>owned</title>") && !dom.contains("data-script-error"));
    assert!(!dom.contains(HOSTILE));
    assert!(figures(&dom).iter().all(|figure| figure.contains("data-drawn=")));
}

#[test]
fn light_dark_and_narrow_all_draw() {
    let Some(chromium) = chromium() else { return };
    let run = synthetic::run(Story::Good);
    let script = "document.getElementById('theme').click();";
    for extra in [&["--force-dark-mode"][..], &["--window-size=420,900"][..]] {
        let dom = dom_after(&chromium, &run, script, extra);
        assert!(!dom.contains("data-script-error"), "{extra:?}");
        assert!(figures(&dom).iter().all(|figure| figure.contains("data-drawn=\"true\"")), "{extra:?}");
        assert!(dom.contains("data-theme="), "the button works");
    }
}
