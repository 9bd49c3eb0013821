//! Runs that are repeated because their result is undecided (`--retries`).
//!
//! The whole run is repeated: the proxy starts anew with an empty cache and gets the same requests. A phase that went on for
//! longer instead would need its part of the stream planned beforehand, by robots and origins alike, and could not help
//! where it matters: what leaves numbers unknown (a role that ended, a kernel without memory for sockets) is known for
//! certain only when the run is over. And a run whose cache had seen more than that of another could not be compared with it.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use assay_lab::{RunOutcome, RunPlan, TargetChoice};
use assay_record::dir::RunDir;
use assay_report::headline::RunConclusion;
use assay_report::require::Decision;
use assay_report::summary::Summary;

use crate::exit::Failure;
use crate::output;

/// Refuses to repeat runs whose cache cannot be emptied in between.
pub fn check(target: &TargetChoice, retries: u32) -> Result<(), Failure> {
    match target {
        TargetChoice::Running { address, .. } if retries > 0 => Err(Failure::usage(anyhow!(
            "--retries needs a proxy that Assay starts: the cache of {address} cannot be emptied between runs"
        ))
        .hint("leave --retries out, empty its cache, and start the run again if it ends with exit code 96")),
        _ => Ok(()),
    }
}

/// Makes the plan that of the next try, if this one is undecided and there is one left. The run directory of this one is put
/// aside.
pub fn retry(plan: &mut RunPlan, outcome: &RunOutcome, retries: u32, world: u32) -> Result<bool, Failure> {
    if plan.tries > retries || outcome.verdict.partial {
        return Ok(false);
    }
    let dir = RunDir::open(&outcome.run_dir).map_err(Failure::failed)?;
    let summary = Summary::from_run(&dir).map_err(Failure::failed)?;
    if summary.conclusion() != RunConclusion::Undecided {
        return Ok(false);
    }
    let aside = backup_dir(&plan.run_dir, plan.tries, Path::exists);
    std::fs::rename(&plan.run_dir, &aside)
        .with_context(|| format!("cannot rename {} to {}", plan.run_dir.display(), aside.display()))
        .map_err(Failure::failed)?;
    let words =
        format!("try {} is undecided: {}; it is kept in {}", plan.tries, open(&summary), aside.display());
    output::eprint(&format!(
        "{words}\nthe run is repeated, with an empty cache (try {} of at most {})\n",
        plan.tries + 1,
        retries + 1
    ));
    plan.warnings.push(words);
    plan.tries += 1;
    plan.world = world;
    Ok(true)
}

/// Undecided numbers and requirements, in words.
fn open(summary: &Summary) -> String {
    let undecided = summary.requirements.iter().filter(|one| one.decision == Some(Decision::Undecided));
    let undecided: Vec<&str> = undecided.map(|one| one.text.as_str()).collect();
    match undecided.is_empty() {
        true if summary.headline.unknown.is_empty() => "no request came to its end".to_owned(),
        true => format!("{} unknown", summary.headline.unknown.join(", ")),
        false => undecided.join(", "),
    }
}

/// Directory for the run of an earlier try: beside the last one's, under a name that is free.
fn backup_dir(run_dir: &Path, number: u32, exists: impl Fn(&Path) -> bool) -> PathBuf {
    let named = |suffix: String| {
        let mut name = run_dir.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        run_dir.with_file_name(name)
    };
    let more = (2..).map(|more| named(format!("-try-{number}-{more}")));
    let mut all = std::iter::once(named(format!("-try-{number}"))).chain(more);
    all.find(|path| !exists(path)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_is_kept_beside_the_next_one_under_a_name_that_is_free() {
        let of = |taken: &[&str]| {
            backup_dir(Path::new("/r/demo"), 1, |path| taken.iter().any(|one| path.ends_with(one)))
        };
        assert_eq!(of(&[]), Path::new("/r/demo-try-1"));
        assert_eq!(of(&["demo-try-1", "demo-try-1-2"]), Path::new("/r/demo-try-1-3"));
    }

    #[test]
    fn a_proxy_that_runs_already_is_not_tried_again() {
        let address = "127.0.0.1:8080".parse().unwrap();
        let running = TargetChoice::Running { address, mode: assay_lab::Mode::Reverse };
        assert!(check(&running, 1).unwrap_err().error.to_string().contains("cannot be emptied"));
        assert!(check(&running, 0).is_ok() && check(&TargetChoice::Direct, 3).is_ok());
    }
}
