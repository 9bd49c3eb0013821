//! Any text is answered: with a workload, or with at least one error that has a place.

#![no_main]

use assay_pgl::{SearchPath, compile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let resolver = SearchPath::new(vec![], |name| Ok((name == "main.pg").then(|| text.to_owned())));
    match compile("main.pg", &resolver) {
        Ok(compiled) => {
            for warning in &compiled.warnings {
                let _ = warning.render(&compiled.sources, true);
            }
        }
        Err(failure) => {
            let placed = |d: &assay_pgl::Diagnostic| d.is_error() && !d.place(&failure.sources).is_empty();
            assert!(failure.diagnostics.iter().any(placed), "an error without a place");
            for diagnostic in &failure.diagnostics {
                let _ = diagnostic.render(&failure.sources, false);
            }
        }
    }
});
