//! The directory of an evaluation, damaged: whatever was changed in its files, there is a report of what is there, or an error that names
//! one of them.
#![no_main]

#[path = "../../crates/run/report/tests/it/review/made.rs"]
mod made;

use std::cell::OnceCell;

use assay_fuzz::Template;
use assay_record::spe::{ResponseWriter, SpeDir, read_responses};
use assay_report::terminal::Style;
use assay_report::spe::evaluate;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static MADE: [OnceCell<(tempfile::TempDir, SpeDir, Template)>; 2] = const { [const { OnceCell::new() }; 2] };
}

fn make(is_killed: bool) -> (tempfile::TempDir, SpeDir, Template) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = made::write(&tmp.path().join("e"), &made::info(), made::REQUESTS / 10);
    if is_killed {
        unfinish(&dir);
    }
    let template = Template::of(dir.path());
    (tmp, dir, template)
}

/// Leaves the responses as an evaluation does that was killed: some in a row group, the others not.
fn unfinish(dir: &SpeDir) {
    let path = dir.responses_path();
    let rows = read_responses(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut writer = ResponseWriter::create(&path).unwrap();
    for (number, row) in rows.iter().enumerate() {
        writer.push(row).unwrap();
        if number == rows.len() / 2 {
            writer.flush().unwrap();
        }
    }
    writer.keep().unwrap();
    std::mem::forget(writer);
}

/// The table that a file is a part of, or the file.
fn table_of(name: &str) -> &str {
    let endings = [".partial", ".footer", ".rows"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

fuzz_target!(
    // The reader of tables catches panics of the library that decodes them; what nobody catches still ends the target.
    init: { std::panic::set_hook(Box::new(|_| ())) },
    |input: &[u8]| {
        let Some((first, changes)) = input.split_first() else { return };
        MADE.with(|made| {
            let is_killed = first % 2 == 1;
            let (_, dir, template) = made[usize::from(is_killed)].get_or_init(|| make(is_killed));
            template.damaged(changes, |changed| match evaluate(dir) {
                Ok(evaluation) => {
                    drop(evaluation.to_terminal(None, &Style { colour: false, width: 100 }));
                    evaluation.to_json().unwrap();
                }
                Err(error) => {
                    let said = error.to_string();
                    assert!(changed.iter().any(|name| said.contains(table_of(name))), "{changed:?}: {said}");
                }
            });
        });
    }
);
