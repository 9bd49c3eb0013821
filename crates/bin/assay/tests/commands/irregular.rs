//! Results whose head is no regular file: every command ends in order.

use crate::irregular_file::{KINDS, bounded, ends, without};
use crate::support::Assay;

#[test]
fn heads_of_experiments_and_of_evaluations_are_regular_files_too() {
    let assay = Assay::new();
    for head in ["experiment.json", "spe.json", "caches.json", "run.json"] {
        let directory = assay.path("results");
        std::fs::create_dir_all(&directory).expect("a directory of its own");
        std::fs::write(directory.join(head), "{}").expect("a directory of its own");
        for kind in KINDS {
            without(&directory.join(head), kind, || {
                for command in
                    [&["report", "results"][..], &["spe", "report", "results"], &["compare", "results"]]
                {
                    let said = bounded(&assay, command);
                    ends(&said, &[1, 2], &format!("{command:?} with {head} as a {kind}"));
                }
                ends(&bounded(&assay, &["runs", "--dir", "."]), &[0], head);
            });
        }
        std::fs::remove_dir_all(&directory).expect("is there");
    }
}
