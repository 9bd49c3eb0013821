//! The directory of an evaluation, damaged: whatever was changed in its files, there is a report of what is there, or an error that names
//! one of them.
#![no_main]

#[path = "../../crates/review/tests/it/made.rs"]
mod made;

use std::cell::OnceCell;

use assay_fuzz::Template;
use assay_record::spe::SpeDir;
use assay_report::terminal::Style;
use assay_review::spe::evaluate;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static MADE: OnceCell<(tempfile::TempDir, SpeDir, Template)> = const { OnceCell::new() };
}

fn make() -> (tempfile::TempDir, SpeDir, Template) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = made::write(&tmp.path().join("e"), &made::info(), made::REQUESTS / 10);
    let template = Template::of(dir.path());
    (tmp, dir, template)
}

fuzz_target!(
    // The reader of tables catches panics of the library that decodes them; what nobody catches still ends the target.
    init: { std::panic::set_hook(Box::new(|_| ())) },
    |changes: &[u8]| {
        MADE.with(|made| {
            let (_, dir, template) = made.get_or_init(make);
            template.damaged(changes, |changed| match evaluate(dir) {
                Ok(evaluation) => {
                    drop(evaluation.to_terminal(None, &Style { colour: false, width: 100 }));
                    evaluation.to_json().unwrap();
                }
                Err(error) => {
                    let said = error.to_string();
                    assert!(changed.iter().any(|name| said.contains(name)), "{changed:?}: {said}");
                }
            });
        });
    }
);
