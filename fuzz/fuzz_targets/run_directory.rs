//! The directory of a run, damaged: whatever was changed in its files, there is a report of what is there, or an error that names one of
//! them.
#![no_main]

#[allow(dead_code, reason = "a run is made here")]
#[path = "../../crates/run/report/tests/it/once.rs"]
mod once;
#[path = "../../crates/run/report/tests/it/own.rs"]
mod own;
#[allow(dead_code, reason = "tests have more uses for it")]
#[path = "../../crates/run/report/tests/it/synthetic.rs"]
mod synthetic;

use std::cell::OnceCell;

use assay_fuzz::Template;
use assay_report::summary::Summary;
use assay_report::terminal::{self, Style};
use libfuzzer_sys::fuzz_target;

use crate::once::Run;
use crate::synthetic::Story;

const STORIES: [Story; 4] = [Story::Direct, Story::Killed, Story::Failed, Story::Hostile];
type Made = (Run, Template);

thread_local! {
    static MADE: [OnceCell<Made>; STORIES.len()] = const { [const { OnceCell::new() }; STORIES.len()] };
}

fn make(story: Story) -> Made {
    // What a second looks like is what is damaged; more of them would only take longer.
    let run = synthetic::make(story, 1);
    // As an earlier version left it: otherwise a changed file is known by its sum.
    let _ = std::fs::remove_file(run.dir.checksums_path());
    let template = Template::of(run.dir.path());
    (run, template)
}

fuzz_target!(
    // The reader of tables catches panics of the library that decodes them; what nobody catches still ends the target.
    init: { std::panic::set_hook(Box::new(|_| ())) },
    |input: &[u8]| {
        let Some((first, changes)) = input.split_first() else { return };
        let story = usize::from(*first) % STORIES.len();
        MADE.with(|made| {
            let (run, template) = made[story].get_or_init(|| make(STORIES[story]));
            template.damaged(changes, |changed| match Summary::from_run(&run.dir) {
                Ok(summary) => drop(terminal::render(&summary, None, &Style { colour: false, width: 100 })),
                Err(error) => {
                    let said = error.to_string();
                    assert!(changed.iter().any(|name| said.contains(name)), "{changed:?}: {said}");
                }
            });
        });
    }
);
