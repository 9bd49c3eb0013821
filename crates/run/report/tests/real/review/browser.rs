//! The page of an evaluation is drawn.

use assay_report::spe;
use assay_testbed::pages;

use crate::review::made::{REQUESTS, info, write};

#[test]
fn every_chart_of_the_page_is_drawn() {
    let Some(chromium) = pages::chromium() else { return };
    let tmp = tempfile::tempdir().unwrap();
    let evaluation = spe::evaluate(&write(&tmp.path().join("e"), &info(), REQUESTS)).unwrap();
    let dom = pages::dom_of(&chromium, &evaluation.to_html().unwrap(), "", &[]);
    let figures = pages::figures(&dom);
    assert_eq!(figures.len(), 4);
    assert!(
        figures.iter().all(|figure| figure.contains("data-drawn=") && !figure.contains("empty")),
        "{figures:?}"
    );
}
