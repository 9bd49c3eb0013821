//! Whatever text a switch file has: it is a configuration that can be explained, or a mistake with its line. WebStone's file lists
//! and testbeds are read from the same text.
#![no_main]

use assay_load::node::webstone::{file_list, size_by_name};
use assay_switch::{explain, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read("switch.toml", text) {
        Ok(config) => {
            assert!(
                !config.classes.is_empty()
                    && config.classes.iter().all(|class| class.group < config.groups.len())
            );
            assert!(!explain(&config).is_empty());
        }
        Err(mistake) => assert!(mistake.to_string().starts_with("switch.toml:"), "{mistake}"),
    }
    match file_list(text) {
        Ok(list) => assert_eq!(list.services.len(), list.weights.len()),
        Err(mistake) => assert!((1..=text.lines().count().max(1)).contains(&mistake.line)),
    }
    let _ = size_by_name(text);
});
