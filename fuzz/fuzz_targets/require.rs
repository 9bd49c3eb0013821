//! Whatever text stands in a requirement: it is read, or refused with a place in it. Nothing panics.
#![no_main]

use assay_report::require::Requirement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<Requirement>() {
        Ok(required) => assert_eq!(required.text().parse::<Requirement>().as_ref(), Ok(&required)),
        Err(error) => assert!(error.span.0 <= error.span.1 && !error.to_string().is_empty()),
    }
});
