//! Reports of made-up evaluations, as their readers see them.

// Not everything that tests of pages share is used by each crate that has pages.
#[allow(dead_code)]
#[path = "../../../report/tests/it/pages.rs"]
mod pages;
mod spe;
