//! Comparisons of made-up runs, as their readers see them.

mod compare;
mod experiments;
mod named;
// Not everything that tests of pages share is used by each crate that has pages.
#[allow(dead_code)]
#[path = "../../../report/tests/it/pages.rs"]
mod pages;
