//! Whatever text a cluster file has: it is an experiment, or a mistake with its line. What follows a `\u{1}` is the text of the file
//! that it extends.
#![no_main]

use assay_cluster::simulate::{BaseFile, cells, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (main, other) = text.split_once('\u{1}').unwrap_or((text, ""));
    let resolver = |_: &str| {
        match other {
            "" => Err("there is no such file".into()),
            _ => Ok(BaseFile { name: "other.toml".to_owned(), text: other.to_owned() }),
        }
    };
    match read("cluster.toml", main, &resolver) {
        // Nothing in it may be more than can be run.
        Ok(experiment) => assert!(!cells(&experiment).is_empty()),
        Err(mistake) => assert!(mistake.to_string().contains(".toml:") || !other.is_empty(), "{mistake}"),
    }
});
