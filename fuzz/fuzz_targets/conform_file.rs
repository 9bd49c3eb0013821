//! Files of conformance cases and of known failures: whatever they contain, they are read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(file) = assay_conform::read::read("fuzz.toml", text) {
        for case in &file.cases {
            assert!(!assay_conform::show::case(case).is_empty());
        }
    }
    let _ = assay_conform::known::read("fuzz.toml", text);
});
