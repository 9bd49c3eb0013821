//! Any text is answered: with a workload, or with at least one error that has a place.
//!
//! What follows a `\u{1}` is the text of every other file that the workload requests.

#![no_main]

use assay_pgl::{SearchPath, compile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (main, other) = text.split_once('\u{1}').unwrap_or((text, ""));
    let resolver = SearchPath::from_fn(vec![], |name| {
        let bundled = name.ends_with("contents.pg") || name.ends_with("phases.pg");
        match name {
            "main.pg" => Some(main.to_owned()),
            _ => (!bundled).then(|| other.to_owned()),
        }
    });
    match compile("main.pg", &resolver) {
        Ok(compiled) => {
            for warning in &compiled.warnings {
                let _ = warning.render(&compiled.sources, true);
            }
        }
        Err(failure) => {
            let placed = |d: &assay_pgl::Diagnostic| d.is_error() && !d.location(&failure.sources).is_empty();
            assert!(failure.diagnostics.iter().any(placed), "an error without a place");
            for diagnostic in &failure.diagnostics {
                let _ = diagnostic.render(&failure.sources, false);
            }
        }
    }
});
