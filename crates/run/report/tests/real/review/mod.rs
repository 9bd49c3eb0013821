//! Reports of made-up evaluations in a real browser, which must draw all of the page. Needs Chromium, which must do
//! so before the page is looked at.

mod browser;
#[path = "../../it/review/made.rs"]
mod made;
