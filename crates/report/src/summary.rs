//! What a run was worth, as one document.

pub use crate::document::*;

use std::collections::BTreeMap;

use assay_record::dir::RunDir;
use assay_record::doubt::{Doubt, Reason};
use assay_record::error_kind::ErrorKind;
use assay_record::run::{PhaseInfo, RunInfo};
use assay_record::series::Series;

use crate::error::ReportError;
use crate::figures::figures;
use crate::tally::{self, Tally};
use crate::words;

impl Summary {
    /// Summarises the run in a directory; also one that was killed.
    pub fn from_run(dir: &RunDir) -> Result<Self, ReportError> {
        Ok(Self::from_parts(dir, &dir.read_info()?, &Series::read(dir)?, dir.is_unfinished()?))
    }

    /// Writes it to `summary.json` in the run directory.
    pub fn write(&self, dir: &RunDir) -> Result<(), ReportError> {
        let text = self.to_json()?;
        Ok(dir.write_whole(&dir.summary_path(), text.as_bytes())?)
    }

    /// The document as text, with a newline at its end.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// JSON Schema of the document.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Summary).to_value()
    }

    pub(crate) fn from_parts(dir: &RunDir, info: &RunInfo, series: &Series, unfinished: bool) -> Self {
        let spans = tally::spans(info, series);
        let parts = Tally::of_phases(series, &spans);
        let total = Tally::of_run(&parts, tally::whole(&spans), &series.host);
        let doubts = if unfinished { own_limits(&total) } else { info.verdict.doubts.clone() };
        let mut summary = Self {
            schema: SUMMARY_SCHEMA.to_owned(),
            run: dir.path().to_string_lossy().into_owned(),
            workload: info.workload.name.clone(),
            proxy: info.target.name.clone(),
            seed: info.seed,
            stream_digest: info.stream_digest.clone(),
            // A run that was killed has no verdict of its own: what is known to be wrong is all there is.
            valid: (info.verdict.valid || unfinished) && !doubts.iter().any(|doubt| doubt.invalidates),
            partial: info.verdict.partial || unfinished,
            unfinished,
            verdict: Vec::new(),
            doubts,
            warnings: Vec::new(),
            notes: Vec::new(),
            baseline: None,
            total: figures(&total),
            phases: phases(info, &spans, &parts),
            examples: series.examples.clone(),
            counters: last_counters(series),
            assay_version: info.assay_version.clone(),
            command: info.command.clone(),
            started_unix_ms: info.started_unix_ms,
            stream_digest_requests: info.stream_digest_requests,
            workload_info: info.workload.clone(),
            target: info.target.clone(),
            host: info.host.clone(),
            placement: info.placement.clone(),
        };
        summary.baseline = baseline(&info.phases, &summary.phases).map(str::to_owned);
        summary.notes = words::notes(info);
        // What the numbers show comes before what the lab has to say of itself and of the workload.
        summary.warnings = words::warnings(&summary);
        summary.warnings.extend(info.verdict.warnings.iter().map(|warning| words::sentence(warning)));
        summary.verdict = words::verdict(&summary);
        summary
    }
}

fn phases(info: &RunInfo, spans: &[Option<tally::Span>], parts: &[Tally]) -> Vec<PhaseFigures> {
    let together = info.phases.iter().zip(spans).zip(parts);
    together
        .map(|((phase, span), tally)| PhaseFigures {
            name: phase.name.clone(),
            start_ms: span.map(|span| span.start_ms),
            end_ms: span.map(|span| span.end_ms),
            goal: phase.goal.clone(),
            load: phase.load,
            recurrence: phase.recurrence,
            figures: figures(tally),
        })
        .collect()
}

/// Loads this close to the highest count as the highest.
const SAME_LOAD: f64 = 0.99;

/// The phase that the target is judged by: of the primary ones, else of those in the statistics, the last under
/// the highest mean load.
fn baseline<'a>(planned: &'a [PhaseInfo], ran: &[PhaseFigures]) -> Option<&'a str> {
    let ran = |n: usize| ran.get(n).is_some_and(|phase| phase.figures.completed > 0);
    let of = |wanted: fn(&PhaseInfo) -> bool| -> Vec<&PhaseInfo> {
        let numbered = planned.iter().enumerate();
        numbered.filter(|(n, phase)| wanted(phase) && ran(*n)).map(|(_, phase)| phase).collect()
    };
    let primary = of(|phase| phase.primary);
    let candidates = if primary.is_empty() { of(|phase| phase.log_stats) } else { primary };
    let load = |phase: &PhaseInfo| (phase.load.0 + phase.load.1) / 2.0;
    let highest = candidates.iter().map(|phase| load(phase)).fold(0.0, f64::max);
    let last = candidates.into_iter().rev().find(|phase| load(phase) >= highest * SAME_LOAD)?;
    (planned.len() > 1).then_some(last.name.as_str())
}

/// Limits of Assay that a run ran into which was killed before it could judge itself.
fn own_limits(total: &Tally) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    for (kind, reason, what) in [
        (ErrorKind::DescriptorsExhausted, Reason::Descriptors, "file descriptor"),
        (ErrorKind::PortsExhausted, Reason::Ports, "source port"),
    ] {
        if let Some(n) = total.robots.errors.get(&kind).filter(|n| **n > 0) {
            doubts.push(Doubt::invalid(reason, format!("{n} requests found no free {what}")));
        }
    }
    if total.robots.dropped_samples > 0 {
        let seen = format!("{} samples could not be kept", total.robots.dropped_samples);
        doubts.push(Doubt::invalid(Reason::SamplesDropped, seen));
    }
    doubts
}

fn last_counters(series: &Series) -> BTreeMap<String, f64> {
    // A counter that appears only in some readings keeps its last value.
    let mut counters = BTreeMap::new();
    for sample in &series.proxy {
        counters.extend(sample.counters.iter().map(|(name, value)| (name.clone(), *value)));
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_the_primary_phase_or_the_last_under_the_highest_load() {
        let planned = |name: &str, load, log_stats, primary| PhaseInfo {
            name: name.into(),
            load,
            log_stats,
            primary,
            ..PhaseInfo::default()
        };
        let judged = |phases: &[PhaseInfo], completed: u64| {
            let figures = Figures { completed, ..Figures::default() };
            let ran = |phase: &PhaseInfo| PhaseFigures {
                name: phase.name.clone(),
                start_ms: None,
                end_ms: None,
                goal: String::new(),
                load: phase.load,
                recurrence: (1.0, 1.0),
                figures: figures.clone(),
            };
            baseline(phases, &phases.iter().map(ran).collect::<Vec<_>>()).map(str::to_owned)
        };
        let mut phases = vec![
            planned("fill", (2.0, 2.0), false, false),
            planned("top1", (1.0, 1.0), true, false),
            planned("top2", (0.995, 0.995), true, false),
            planned("cool", (1.0, 0.0), true, false),
        ];
        assert_eq!(judged(&phases, 1).as_deref(), Some("top2"));
        assert_eq!(judged(&phases, 0), None);
        assert_eq!(judged(&phases[1..2], 1), None, "it is the whole run");
        phases[1].primary = true;
        assert_eq!(judged(&phases, 1).as_deref(), Some("top1"));
    }
}
