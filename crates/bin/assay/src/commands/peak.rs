//! `assay run --find-peak`: the highest rate at which a target keeps a promise.

use std::time::Duration;

use anyhow::{Context, anyhow};
use assay_lab::experiment::peak::{self, MeasurementWindow, PeakEvent, PeakPlan};
use assay_lab::{LabError, RunOutcome, RunPlan};
use assay_record::dir::RunDir;
use assay_record::peak::{FILE, Peak, StepOutcome};
use assay_report::require::{Promise, Requirement};
use assay_report::summary::Summary;
use assay_report::{html, sheet};
use clap::Args;
use tokio::sync::{mpsc, watch};

use super::report::ReportForm;
use super::run_args::RunArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::units::{self, show_duration};
use crate::{output, overrides};

/// The most that a search takes unless `--rehearse` says otherwise.
const USUAL_BUDGET: Duration = Duration::from_secs(1800);
/// The page of the result, in the run directory.
const PAGE: &str = "peak.html";

/// Flags of the search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limit")]
pub struct PeakArgs {
    /// Find the highest rate at which the target keeps PROMISE, like 'p99(hit) < 20ms, errors < 0.1%', with a warm cache; the
    /// schedule of the workload is replaced, its mix is not
    #[arg(long, value_name = "PROMISE", conflicts_with_all = ["calibrate", "require", "stop_on_failure", "serve", "otlp", "duration", "rate"])]
    pub find_peak: Option<Promise>,
    /// How long each rate is measured; near the limit, three times as long
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = units::duration, requires = "find_peak")]
    pub peak_step: Duration,
    /// How long the cache is warmed before, at the first rate
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = units::duration, requires = "find_peak")]
    pub peak_warm: Duration,
    /// The first rate, in requests per second [default: what the workload requests at its peak]
    #[arg(long, value_name = "N", value_parser = rate, requires = "find_peak")]
    pub peak_from: Option<f64>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| format!("`{text}` is no rate; write requests per second, like 500"))
}

/// Searches, keeps the result in the run directory, and says it.
pub fn find(args: &RunArgs, promise: &Promise, mut plan: RunPlan) -> Result<Exit, Failure> {
    let PeakArgs { peak_step, peak_warm, peak_from, .. } = args.peak;
    for (name, length) in [("--peak-step", peak_step), ("--peak-warm", peak_warm)] {
        if length < Duration::from_secs(1) || length.subsec_nanos() != 0 {
            return Err(Failure::usage(anyhow!("{name} takes whole seconds, and at least one")));
        }
    }
    let most = overrides::budget(args.rehearse, USUAL_BUDGET)?;
    // One rate that is kept and one that is not are the least that says anything.
    let least = peak_warm + 2 * peak_step;
    if most < least {
        let (least, warm, step) = (show_duration(least), show_duration(peak_warm), show_duration(peak_step));
        let why = anyhow!(
            "a search takes at least {least}: {warm} to warm the cache, and two rates of {step} each"
        );
        return Err(Failure::usage(why).hint("give --rehearse more, or shorten --peak-warm and --peak-step"));
    }
    // Others are about the workload's own phases, which are not run.
    plan.requirements
        .retain(|text| text.parse().is_ok_and(|required: Requirement| required.allows().is_some()));
    let wish = PeakPlan {
        promise: promise.parts().map(str::to_owned).collect(),
        warm: peak_warm,
        step: peak_step,
        most,
        from_per_s: peak_from,
    };
    output::eprint(&format!(
        "looking for the highest rate of {} at which {} keeps {}, in at most {}\n",
        plan.workload.name,
        plan.target.name(),
        wish.promise.join(", "),
        show_duration(most)
    ));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the search")
        .map_err(Failure::failed)?;
    let found = match runtime.block_on(watched(plan, wish, promise.clone())) {
        Ok(Some(found)) => found,
        Ok(None) | Err(LabError::Interrupted) => {
            output::eprint("interrupted; `assay report` reads what is in the run directory\n");
            return Ok(Exit::Interrupted);
        }
        Err(error) if error.before_start() => return Err(Failure::usage(error)),
        Err(error) => return Err(Failure::failed(error)),
    };
    conclude(args, &found.0, &found.1)
}

/// Puts the result where it belongs, and where the user wants it.
fn conclude(args: &RunArgs, peak: &Peak, outcome: &RunOutcome) -> Result<Exit, Failure> {
    let dir = RunDir::open(&outcome.run_dir).map_err(Failure::failed)?;
    let json = output::json(peak)?;
    dir.write_whole(&dir.path().join(FILE), json.as_bytes()).map_err(Failure::failed)?;
    let mut kept = vec![FILE];
    if !args.results.no_report {
        let page = sheet::page(&assay_report::peak::sheet(peak)).map_err(Failure::failed)?;
        dir.write_whole(&dir.path().join(PAGE), page.as_bytes()).map_err(Failure::failed)?;
        html::write(&dir).map_err(Failure::failed)?;
        kept.extend([PAGE, "report.html"]);
    }
    let text = if args.results.form()? == ReportForm::Json {
        json
    } else {
        let words = assay_report::peak::terminal_text(peak);
        format!("\n{words}\nKept in {}: {}\n", outcome.run_dir.display(), kept.join(", "))
    };
    output::result(&text, args.results.output.as_deref())?;
    let wrong = Summary::from_run(&dir).map_err(Failure::failed)?.wrong_responses();
    wrong.iter().for_each(|words| output::say(words));
    Ok(exit(peak, outcome.verdict.partial, wrong.is_some()))
}

/// The exit code of a search that ended early (`partial`), or in which responses were wrong.
fn exit(peak: &Peak, partial: bool, wrong: bool) -> Exit {
    let own = peak.suspects.first().is_some_and(|suspect| suspect.name == "assay" && suspect.is_full);
    match peak.peak_per_s {
        _ if partial => Exit::Interrupted,
        _ if wrong => Exit::Unmet,
        // Where Assay gave out first, or was late in all that was not kept, nobody knows what the target can.
        _ if own || peak.is_own_limit => Exit::Undecided,
        None => Exit::Unmet,
        Some(_) => Exit::Fine,
    }
}

/// Searches while steps are shown; Ctrl-C once ends it with what is known, twice at once: none.
async fn watched(
    plan: RunPlan,
    wish: PeakPlan,
    promise: Promise,
) -> Result<Option<(Peak, RunOutcome)>, LabError> {
    let mut interrupts =
        Interrupts::listen().map_err(|error| LabError::run(format!("cannot watch for Ctrl-C: {error}")))?;
    let (sender, mut events) = mpsc::unbounded_channel();
    let (stop_sender, stop) = watch::channel(false);
    let judge = Box::new(move |stretch: &MeasurementWindow<'_>| {
        let (run, series) = stretch.as_run();
        promise.check(&run, &series)
    });
    let work = peak::find(plan, wish, judge, sender, stop);
    let show = async {
        while let Some(event) = events.recv().await {
            output::eprint(&progress(&event));
        }
    };
    let both = async { tokio::join!(work, show).0 };
    tokio::pin!(both);
    let mut requested_before = false;
    loop {
        tokio::select! {
            result = &mut both => return result.map(Some),
            () = interrupts.next() => {
                output::eprint("\n");
                if requested_before {
                    return Ok(None);
                }
                requested_before = true;
                // The receiver is gone when it has just ended; then there is nothing to stop.
                let _ = stop_sender.send(true);
            }
        }
    }
}

/// A step as it goes: half a line when it begins, the rest when it is done.
fn progress(event: &PeakEvent) -> String {
    match event {
        PeakEvent::Warming { rate_per_s } => format!("  warming the cache at {rate_per_s:.0}/s\n"),
        PeakEvent::Trying { rate_per_s } => format!("  {rate_per_s:>9.1}/s: "),
        PeakEvent::Resting { .. } => "             (resting)\n".into(),
        PeakEvent::Tried(step) => {
            let again = if step.repeats > 0 { "again: " } else { "" };
            match step.outcome {
                StepOutcome::Kept => {
                    let seen = step.checks.iter().map(|check| format!("{}: {}", check.text, check.seen));
                    format!("{again}kept; {}\n", seen.collect::<Vec<_>>().join(", "))
                }
                StepOutcome::Broken | StepOutcome::Undecided => {
                    format!("{again}{}; {}\n", step.outcome.name(), step.why)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_record::peak::{Step, Suspect};

    use super::*;

    #[test]
    fn what_the_search_came_to_decides_the_exit_code() {
        let found = Peak { peak_per_s: Some(5.0), ..Peak::default() };
        assert_eq!((exit(&found, false, false), exit(&found, true, true)), (Exit::Fine, Exit::Interrupted));
        assert_eq!(exit(&found, false, true), Exit::Unmet, "at a rate that it keeps, or beyond");
        assert_eq!(exit(&Peak::default(), false, false), Exit::Unmet);
        let own = Suspect { name: "assay".into(), is_full: true, ..Suspect::default() };
        assert_eq!(exit(&Peak { suspects: vec![own], ..found.clone() }, false, false), Exit::Undecided);
        let late = Suspect { name: "assay".into(), used: Some(0.05), ..Suspect::default() };
        assert_eq!(exit(&Peak { suspects: vec![late], ..found.clone() }, false, false), Exit::Fine);
        assert_eq!(exit(&Peak { is_own_limit: true, ..found }, false, false), Exit::Undecided);
    }

    #[test]
    fn steps_are_told_in_a_line() {
        let step = Step { outcome: StepOutcome::Broken, why: "p99 < 5ms: 7 ms".into(), ..Step::default() };
        assert_eq!(progress(&PeakEvent::Tried(step)), "broken; p99 < 5ms: 7 ms\n");
        assert_eq!(progress(&PeakEvent::Trying { rate_per_s: 500.0 }), "      500.0/s: ");
        assert!(rate("0").is_err() && rate("x").is_err() && rate("1e3") == Ok(1000.0));
    }
}
