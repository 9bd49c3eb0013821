//! `assay run --calibrate`: what this machine, or those of a fleet, can offer for a workload, with nothing between robots and
//! origins.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use assay_base::settings::show::{bytes, grouped};
use assay_lab::experiment::calibrate::{self, CalibrationEvent, LEAST_BUDGET, USUAL_BUDGET};
use assay_lab::{LabError, RunPlan};
use assay_measurement::doubt::Reason;
use assay_measurement::health::{Calibration, CalibrationStep};
use tokio::sync::{mpsc, watch};

use super::machines_args::Machines;
use super::report::ReportForm;
use super::run_args::RunArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::units::show_duration;
use crate::{output, overrides};

/// Limits that a quiet machine does not have.
const NOISE: [Reason; 4] = [Reason::Starved, Reason::Stalled, Reason::Stolen, Reason::Unquiet];

/// Calibrates, keeps the result beside the runs, and says it.
pub fn calibrate(args: &RunArgs, plan: RunPlan, machines: Option<&Machines>) -> Result<Exit, Failure> {
    let budget = overrides::budget(args.rehearse, USUAL_BUDGET)?;
    if budget < LEAST_BUDGET {
        return Err(Failure::usage(anyhow!("a calibration takes at least {}", show_duration(LEAST_BUDGET)))
            .hint("leave --rehearse out, or give it more time"));
    }
    let peak = calibrate::peak_requests_per_s(&plan).map_err(Failure::usage)?;
    let heading = format!(
        "calibrating {} in about {}, straight from robots to origins ({}, as with --proxy {})\n",
        plan.workload.name,
        show_duration(budget),
        calibrate::placement_text(&plan).map_err(Failure::usage)?,
        plan.target.name()
    );
    let (run_dir, workload, place) =
        (plan.run_dir.clone(), plan.workload.name.clone(), calibrate::carrier_text(&plan));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the calibration")
        .map_err(Failure::failed)?;
    let calibration = match runtime.block_on(watched(plan, machines, budget, &heading)) {
        Ok(calibration) => calibration,
        Err(CalibrationEnd::Interrupted) => {
            output::eprint("interrupted; nothing is kept of the calibration\n");
            return Ok(Exit::Interrupted);
        }
        Err(CalibrationEnd::Unsound(words)) => {
            output::say(&words);
            return Ok(Exit::Undecided);
        }
        Err(CalibrationEnd::Failed(failure)) => return Err(failure),
    };
    let path = calibrate::keep(&run_dir, &calibration).map_err(Failure::failed)?;
    let text = if args.results.form()? == ReportForm::Json {
        output::json(&calibration)?
    } else {
        text(&workload, place, &calibration, peak, &path)
    };
    output::result(&text, args.results.output.as_deref())?;
    Ok(Exit::Fine)
}

/// Reason why there is no calibration.
enum CalibrationEnd {
    /// The user did not want it any more.
    Interrupted,
    /// The machine is too restless; in words.
    Unsound(String),
    /// Something else.
    Failed(Failure),
}

impl From<LabError> for CalibrationEnd {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Interrupted => CalibrationEnd::Interrupted,
            LabError::Unsound(cause) => CalibrationEnd::Unsound(cause.to_string()),
            error if error.before_start() => CalibrationEnd::Failed(Failure::usage(error)),
            error => CalibrationEnd::Failed(Failure::failed(error)),
        }
    }
}

/// Calibrates while its steps are shown; Ctrl-C once ends it when the step can end, twice at once.
async fn watched(
    plan: RunPlan,
    machines: Option<&Machines>,
    budget: Duration,
    heading: &str,
) -> Result<Calibration, CalibrationEnd> {
    let listened = Interrupts::listen().context("cannot watch for Ctrl-C").map_err(Failure::failed);
    let mut interrupts = listened.map_err(CalibrationEnd::Failed)?;
    output::eprint(heading);
    let (sender, mut events) = mpsc::unbounded_channel();
    let (stop_sender, stop) = watch::channel(false);
    // Machines are taken for one run: each step takes them anew.
    let take = |plan: &mut RunPlan| {
        let taken = machines.into_iter().try_for_each(|machines| machines.take(plan));
        taken.map_err(|failure| LabError::plan(format!("{:#}", failure.error)))
    };
    let work = calibrate::calibrate(plan, budget, &take, sender, stop);
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
            result = &mut both => return result.map_err(CalibrationEnd::from),
            () = interrupts.next() => {
                output::eprint("\n");
                if requested_before {
                    return Err(CalibrationEnd::Interrupted);
                }
                requested_before = true;
                // The receiver is gone when it has just ended; then there is nothing to stop.
                let _ = stop_sender.send(true);
            }
        }
    }
}

/// A step as it goes: half a line when it begins, the rest when it is done.
fn progress(event: &CalibrationEvent) -> String {
    match event {
        CalibrationEvent::Trying { offered_per_s: None, .. } => "  best effort: ".into(),
        CalibrationEvent::Trying { load, offered_per_s: Some(rate) } => {
            format!("  {:>10}/s ({} x the peak): ", thousands(*rate), factor(*load))
        }
        CalibrationEvent::Tried(step) => result(step) + "\n",
    }
}

fn result(step: &CalibrationStep) -> String {
    let late = format!("lateness p99 {:.2} ms", step.lateness_p99_us as f64 / 1e3);
    match (step.load, step.kept) {
        (0.0, _) => format!("{}/s", thousands(step.completed_per_s)),
        (_, true) => format!("kept, {late}"),
        (_, false) => format!("not kept; {}", step.why),
    }
}

fn text(workload: &str, place: &str, calibration: &Calibration, peak: Option<f64>, path: &Path) -> String {
    let Calibration { requests_per_s, body_bytes_per_s, limit, limit_seen, .. } = calibration;
    let mut text = format!(
        "Without a proxy, {place} can offer {} requests/s of {workload} ({}/s of bodies).\n\n",
        thousands(*requests_per_s),
        bytes(*body_bytes_per_s as u64)
    );
    text += &format!("  limit     {limit}: {limit_seen}\n");
    text += &format!(
        "  cost      {:.1} us of processor time for each request at robots, {:.1} us at origins\n",
        calibration.robots_cpu_us_per_request, calibration.origins_cpu_us_per_request
    );
    if let Some(peak) = peak {
        let share = peak / requests_per_s.max(1e-9) * 100.0;
        text += &format!("  workload  needs up to {} requests/s: {share:.1} % of that\n", thousands(peak));
    }
    if NOISE.iter().any(|reason| reason.name() == limit) {
        text += "  note      other work kept {place} busy: calibrate again when it is quiet\n";
    }
    text += &format!(
        "  kept in   {}: later runs of this workload say how much of it they used\n",
        path.display()
    );
    text
}

/// A rate with its thousands marked; small ones with a decimal.
fn thousands(rate: f64) -> String {
    if rate < 100.0 {
        return format!("{rate:.1}");
    }
    grouped(&format!("{rate:.0}"))
}

fn factor(load: f64) -> String {
    if load >= 10.0 { format!("{load:.0}") } else { format!("{load:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        Calibration {
            requests_per_s: 24_000.0,
            body_bytes_per_s: 3e8,
            robots_cpu_us_per_request: 21.0,
            origins_cpu_us_per_request: 16.0,
            limit: "saturated".into(),
            limit_seen: "robots used 97 %".into(),
            ..Calibration::default()
        }
    }

    #[test]
    fn the_result_says_how_much_why_not_more_and_what_the_workload_needs() {
        let printed =
            text("demo", "this machine", &calibration(), Some(600.0), Path::new("runs/calibrations/x.json"));
        for words in [
            "24,000 requests/s of demo",
            "saturated: robots used 97 %",
            "2.5 % of that",
            "runs/calibrations/x.json",
        ] {
            assert!(printed.contains(words), "{words}: {printed}");
        }
        assert!(!text("demo", "this machine", &calibration(), None, Path::new("x")).contains("workload  "));
    }

    #[test]
    fn steps_are_told_in_a_line() {
        let step = CalibrationStep {
            load: 2.0,
            kept: false,
            why: "late: 5 ms".into(),
            ..CalibrationStep::default()
        };
        assert_eq!(progress(&CalibrationEvent::Tried(step)), "not kept; late: 5 ms\n");
        let begin = CalibrationEvent::Trying { load: 12.5, offered_per_s: Some(7500.0) };
        assert_eq!(progress(&begin), "       7,500/s (12 x the peak): ");
    }

    #[test]
    fn rates_are_readable() {
        assert_eq!([0.5, 99.96, 123.4, 1_234_567.0].map(thousands), ["0.5", "100.0", "123", "1,234,567"]);
    }
}
