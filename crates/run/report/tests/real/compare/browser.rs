//! Pages of comparisons: every chart is drawn, and every download works.

use assay_testbed::pages;

use crate::compare::experiments::{ATS, Plan, SQUID, VARNISH, compared, twenty};

#[test]
fn every_chart_of_a_comparison_is_drawn_without_an_error_and_its_numbers_can_be_downloaded() {
    let Some(chromium) = pages::chromium() else { return };
    let page = compared(&Plan { repetitions: 2, subjects: &[VARNISH, ATS, SQUID], ..Plan::default() })
        .to_html()
        .unwrap();
    let click_all = "document.querySelectorAll('button.csv').forEach((button) => button.click()); \
                     document.getElementById('theme').click();";
    for extra in [&[][..], &["--window-size=420,900"][..]] {
        let dom = pages::dom_of(&chromium, &page, click_all, extra);
        assert!(!dom.contains("data-script-error"), "{}", dom.lines().nth(1).unwrap_or_default());
        let figures = pages::figures(&dom);
        assert_eq!(
            figures.len(),
            16 + 16 + 2,
            "sixteen for each of two workloads, and small ones where there are phases"
        );
        assert!(figures.iter().all(|figure| figure.contains("data-drawn=\"true\"")), "{figures:?}");
        let buttons = dom.matches("class=\"quiet csv\"").count();
        assert_eq!(dom.matches("data-saved=\"").count(), buttons, "every button gives a file");
    }
}

#[test]
fn twenty_subjects_are_told_apart() {
    let Some(chromium) = pages::chromium() else { return };
    let subjects = twenty();
    let plan = Plan { repetitions: 1, subjects: &subjects, workloads: &["mixed"], ..Plan::default() };
    let dom = pages::dom_of(&chromium, &compared(&plan).to_html().unwrap(), "", &[]);
    assert!(!dom.contains("data-script-error"), "{}", dom.lines().nth(1).unwrap_or_default());
    assert!(pages::figures(&dom).iter().all(|figure| figure.contains("data-drawn=\"true\"")));
}
