//! Whatever text a proxy's description, a topology or an experiment has: it is one, or a mistake with its file (and line).
#![no_main]

use assay_lab::Description;
use assay_lab::experiment::cells::Experiment;
use assay_lab::topology::{self, CacheDefaults};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Description::read("proxy.toml", text) {
        // What it offers to set can be set as it stands.
        Ok(mut description) => {
            let typed = description.settings_as_typed();
            assert!(description.set(&typed).is_ok());
        }
        Err(mistake) => assert!(mistake.to_string().contains("proxy.toml"), "{mistake}"),
    }
    let usual =
        CacheDefaults { proxy: "builtin".into(), memory_bytes: 1 << 20, disk_bytes: 0, set: Default::default() };
    match topology::read("topology.toml", "t", text, usual) {
        // One that can be resolved has caches, and all of its links are between two of them.
        Ok(choice) => {
            if let Ok(whole) = topology::resolve(&choice, |_| Ok(None)) {
                assert!(!whole.caches.is_empty());
                assert!(whole.links.iter().flat_map(|link| link.ends).all(|end| end < whole.caches.len()));
            }
        }
        Err(mistake) => assert!(mistake.to_string().contains("topology.toml"), "{mistake}"),
    }
    if let Err(mistake) = Experiment::read("experiment.toml", "e", text) {
        assert!(mistake.to_string().contains("experiment.toml"), "{mistake}");
    }
});
