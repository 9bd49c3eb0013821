//! What a run was worth, as one document.

pub use crate::document::*;

use std::collections::BTreeMap;

use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::health::Calibration;
use assay_measurement::measured::Series;
use assay_record::WhatIsThere;
use assay_record::dir::RunDir;
use assay_record::missing::Missing;
use assay_record::run::PhaseInfo;

use crate::adapted;
use crate::cache_logs;
use crate::error::ReportError;
use crate::figures::{figures, round};
use crate::gaps;
use crate::hierarchy;
use crate::own;
use crate::require;
use crate::tally::{self, Tally};
use crate::words;

impl Summary {
    /// Summarises the run in a directory; also one that was killed, or damaged.
    pub fn from_run(dir: &RunDir) -> Result<Self, ReportError> {
        Ok(Self::from_parts(dir, &dir.read_what_is_there()?))
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

    pub(crate) fn from_parts(dir: &RunDir, there: &WhatIsThere) -> Self {
        let WhatIsThere { info, series, missing, .. } = there;
        let unfinished = there.unfinished;
        let spans = tally::spans(info, series);
        let parts = Tally::of_phases(series, &spans);
        let total = Tally::of_run(&parts, tally::whole(&spans), series);
        let mut doubts = info.verdict.doubts.clone();
        if unfinished {
            let known = |found: &Doubt| info.verdict.doubts.iter().any(|doubt| doubt.reason == found.reason);
            doubts.extend(own_limits(&parts).into_iter().filter(|found| !known(found)));
        }
        let phases = phases(info, &doubts, &spans, &parts);
        let mut summary = Self {
            schema: SUMMARY_SCHEMA.to_owned(),
            run: dir.path().to_string_lossy().into_owned(),
            workload: info.workload.name.clone(),
            proxy: info.target.name.clone(),
            seed: info.seed,
            stream_digest: info.stream_digest.clone(),
            // A run that was killed has no verdict of its own: what is known to be wrong is all there is.
            valid: (info.verdict.valid || unfinished) && !doubts.iter().any(|doubt| doubt.invalidates),
            partial: info.verdict.partial || unfinished || missing.iter().any(Missing::is_loss),
            unfinished,
            verdict: Vec::new(),
            requirements: require::judge(
                info,
                &parts,
                tally::whole(&spans),
                info.verdict.partial || unfinished,
            ),
            health: own::sums::health(info, series, &total, &phases),
            calibration: info.calibration.as_ref().map(|known| calibration(known, &phases)),
            doubts,
            warnings: Vec::new(),
            missing: missing.clone(),
            notes: Vec::new(),
            baseline: None,
            total: figures(&total),
            phases,
            hierarchy: None,
            cache_logs: None,
            examples: series.examples.clone(),
            counters: last_counters(series),
            assay_version: info.assay_version.clone(),
            command: info.command.clone(),
            started_unix_ms: info.started_unix_ms,
            stream_digest_requests: info.stream_digest_requests,
            stream_version: info.stream_version,
            workload_info: info.workload.clone(),
            target: info.target.clone(),
            host: info.host.clone(),
            placement: info.placement.clone(),
            bed: info.bed.clone(),
        };
        summary.baseline = baseline(&info.phases, &summary.phases).map(str::to_owned);
        let (phases, counted) = (&summary.phases, summary.baseline.as_deref());
        summary.hierarchy = hierarchy::figures(info, series, phases, counted);
        summary.cache_logs = cache_logs::figures(info, series, there.caches.as_ref(), counted);
        summary.notes = words::notes(info);
        summary.notes.extend(adapted::sentences(&summary.phases, &series.adapted));
        // What the numbers show comes before what the lab has to say of itself and of the workload.
        summary.warnings = gaps::warnings(&summary.missing);
        summary.warnings.extend(words::warnings(&summary));
        summary.warnings.extend(info.verdict.warnings.iter().map(|warning| words::sentence(warning)));
        summary.verdict = gaps::verdict(&summary, words::verdict(&summary));
        summary
    }
}

fn phases(
    info: &assay_record::run::RunInfo,
    doubts: &[Doubt],
    spans: &[Option<tally::Span>],
    parts: &[Tally],
) -> Vec<PhaseFigures> {
    let together = info.phases.iter().zip(spans).zip(parts).enumerate();
    together
        .map(|(index, ((phase, span), tally))| {
            let touches = |doubt: &Doubt| {
                doubt.phases.is_empty() || doubt.phases.iter().any(|named| usize::from(*named) == index)
            };
            let mut reasons: Vec<Reason> =
                doubts.iter().filter(|doubt| touches(doubt)).map(|doubt| doubt.reason).collect();
            reasons.dedup();
            PhaseFigures {
                name: phase.name.clone(),
                start_ms: span.map(|span| span.start_ms),
                end_ms: span.map(|span| span.end_ms),
                goal: phase.goal.clone(),
                load: phase.load,
                recurrence: phase.recurrence,
                invalid: phase.invalid || doubts.iter().any(|doubt| doubt.invalidates && touches(doubt)),
                doubts: reasons,
                figures: figures(tally),
            }
        })
        .collect()
}

/// How much of the calibrated rate the busiest phase used.
fn calibration(known: &Calibration, phases: &[PhaseFigures]) -> CalibrationUse {
    let measured = phases.iter().filter_map(|phase| Some((phase.figures.rate.measured?, &phase.name)));
    let busiest = measured.max_by(|a, b| a.0.total_cmp(&b.0));
    let share = busiest.filter(|_| known.requests_per_s > 0.0).map(|(rate, _)| rate / known.requests_per_s);
    CalibrationUse {
        share: share.map(|share| round(share, 4)),
        phase: busiest.map(|(_, name)| name.clone()),
        rate: busiest.map(|(rate, _)| rate),
        requests_per_s: known.requests_per_s,
        body_bytes_per_s: known.body_bytes_per_s,
        made_unix_ms: known.made_unix_ms,
        assay_version: known.assay_version.clone(),
        limit: known.limit.clone(),
        limit_seen: known.limit_seen.clone(),
    }
}

/// Loads this close to the highest count as the highest.
const SAME_LOAD: f64 = 0.99;

/// The phase that the target is judged by: of the primary ones, else of those in the statistics, the last under
/// the highest mean load.
fn baseline<'a>(planned: &'a [PhaseInfo], ran: &[PhaseFigures]) -> Option<&'a str> {
    let ran = |n: usize| ran.get(n).is_some_and(|phase| phase.figures.counts.completed > 0);
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

/// Limits of Assay that a run ran into which was killed before it could judge itself: what is plain from the counts of
/// each phase. The rest is for the lab to judge.
fn own_limits(parts: &[Tally]) -> Vec<Doubt> {
    type Count = fn(&Tally) -> u64;
    let looked_for: [(Reason, Count, &str); 3] = [
        (
            Reason::Descriptors,
            |part| errors_of(part, ErrorKind::DescriptorsExhausted),
            "requests found no free file descriptor",
        ),
        (
            Reason::Ports,
            |part| errors_of(part, ErrorKind::PortsExhausted),
            "requests found no free source port",
        ),
        (Reason::SamplesDropped, |part| part.robots.dropped_samples, "samples could not be kept"),
    ];
    let mut doubts = Vec::new();
    for (reason, count, what) in looked_for {
        let found: u64 = parts.iter().map(count).sum();
        if found > 0 {
            let phases =
                (0..).zip(parts).filter(|(_, part)| count(part) > 0).map(|(index, _)| index).collect();
            doubts.push(Doubt { phases, ..Doubt::invalid(reason, format!("{found} {what}")) });
        }
    }
    doubts
}

fn errors_of(part: &Tally, kind: ErrorKind) -> u64 {
    part.robots.errors.get(&kind).copied().unwrap_or(0)
}

fn last_counters(series: &Series) -> BTreeMap<String, f64> {
    // A counter that appears only in some readings keeps its last value.
    let mut counters = BTreeMap::new();
    for sample in &series.proxy {
        let named = |name: &String| match sample.cache.as_str() {
            "" => name.clone(),
            cache => format!("{cache}: {name}"),
        };
        counters.extend(sample.counters.iter().map(|(name, value)| (named(name), *value)));
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
            let mut figures = Figures::default();
            figures.counts.completed = completed;
            let ran = |phase: &PhaseInfo| PhaseFigures {
                name: phase.name.clone(),
                start_ms: None,
                end_ms: None,
                goal: String::new(),
                load: phase.load,
                recurrence: (1.0, 1.0),
                invalid: false,
                doubts: Vec::new(),
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
