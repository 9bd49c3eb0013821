//! Comparisons of made-up runs in a real browser, which must draw all of the page. Needs Chromium, which must do so
//! before the page is looked at.

mod browser;
#[path = "../../it/compare/experiments.rs"]
mod experiments;
