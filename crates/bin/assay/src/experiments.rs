//! The experiments that come with Assay.

use crate::bundled::{self, Bundled, included};

macro_rules! bundled {
    ($name:literal, $about:literal) => {
        included!("experiments", $name, ".toml", $about)
    };
}

/// All of them, in the order in which they are best read; their texts are TOML.
pub const EXPERIMENTS: &[Bundled] = &[
    bundled!(
        "six-proxies",
        "six proxies on one small site: is each right, how fast, how often from its cache?"
    ),
    bundled!("protocols", "one site over HTTP/1.1 and HTTP/2, in the clear and over TLS on either leg"),
    bundled!("varnish-vs-ats", "Varnish or Traffic Server, in the five scenarios of a study of 2012"),
    bundled!(
        "table-4-7",
        "table 4.7 of that study: mixed content, at a constant and at a rising rate, in an hour"
    ),
    bundled!("same-against-itself", "the same proxy twice: whatever differs is chance"),
    bundled!("quarter-vs-eighth", "a cache of a quarter of the working set against one of an eighth"),
    bundled!("siblings", "separate caches, siblings, and children of a parent"),
    bundled!("figure-3", "hierarchies of two and three Squids that are full"),
    bundled!("figure-4", "two Squids, separate and siblings, with more and more disk"),
    bundled!("figure-3-delay", "figure-3 with origins that are 80 ms away, as the study has it"),
    bundled!("figure-4-delay", "figure-4 with origins that are 80 ms away, as the study has it"),
    bundled!("policies", "replacement and refresh policies of caches that query each other"),
    bundled!("peer-link", "how far apart may caches be that query each other?"),
];

/// The one that is called `name`.
pub fn find(name: &str) -> Option<&'static Bundled> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}

/// The text of an experiment, or of a workload that one of them has beside itself (`siblings.pg`).
pub fn text(name: &str) -> Option<&'static str> {
    find(name).or_else(|| bundled::of_experiments(name)).map(|found| found.text)
}

#[cfg(test)]
mod tests {
    use assay_lab::experiment::cells::Experiment;

    use super::*;

    #[test]
    fn every_experiment_of_the_tree_is_bundled_with_the_workloads_that_it_has_beside_itself() {
        let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments");
        for entry in std::fs::read_dir(tree).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let found = name.strip_suffix(".toml").map_or_else(|| text(name), text);
            assert_eq!(found, Some(std::fs::read_to_string(&path).unwrap().as_str()), "{name}");
        }
        for bundled in EXPERIMENTS {
            let experiment = Experiment::read(bundled.name, bundled.name, bundled.text).unwrap();
            for choice in &experiment.workloads {
                let named = &choice.workload;
                let known = bundled::find(named).or_else(|| bundled::of_experiments(named));
                assert!(known.is_some(), "{}: {named}", bundled.name);
            }
        }
    }
}
