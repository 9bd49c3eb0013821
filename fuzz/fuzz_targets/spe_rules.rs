//! Whatever text the rules of an evaluation have: they are rules, or a mistake with its file.
#![no_main]

use assay_spe::validate;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(mistake) = validate::read("rules.toml", text) {
        assert!(mistake.to_string().contains("rules.toml"), "{mistake}");
    }
});
