//! Summary of a run, as one document.

pub use crate::document::*;

use std::collections::BTreeMap;

use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::health::Calibration;
use assay_measurement::measured::Series;
use assay_record::PartialRead;
use assay_record::dir::RunDir;
use assay_record::missing::Missing;

use crate::adapted;
use crate::cache_logs;
use crate::error::ReportError;
use crate::figures::{figures, round};
use crate::gaps;
use crate::headline;
use crate::hierarchy;
use crate::origins_only;
use crate::own;
use crate::require;
use crate::tally::{self, Tally};
use crate::text;
use crate::under_load;

impl Summary {
    /// Summarises the run in a directory; also one that was killed, or damaged.
    pub fn from_run(dir: &RunDir) -> Result<Self, ReportError> {
        Ok(Self::from_parts(dir, &dir.read_partial()?))
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

    pub(crate) fn from_parts(dir: &RunDir, there: &PartialRead) -> Self {
        let PartialRead { info, series, missing, .. } = there;
        let unfinished = there.unfinished;
        let spans = tally::spans(info, series);
        let mut parts = Tally::of_phases(info, series, &spans, missing);
        Tally::add_log_agreement(&mut parts, there.caches.as_ref());
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
            own_errors_recorded: info.own_errors,
            disturbance: own::text::disturbance(&doubts),
            headline: headline::headline(&info.phases, &parts, gaps::are_errors_lost(missing)),
            partial: info.verdict.partial || unfinished || missing.iter().any(Missing::is_loss),
            unfinished,
            verdict: Vec::new(),
            requirements: require::judge(
                info,
                &parts,
                tally::whole(&spans),
                require::Gap {
                    is_partial: info.verdict.partial || unfinished,
                    lacks_errors: gaps::are_errors_lost(missing),
                    lacks_counts: gaps::is_lost(missing, "robots.parquet"),
                },
            ),
            conform: None,
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
            fleet: info.fleet.clone(),
        };
        let several = info.phases.len() > 1;
        summary.baseline = summary.headline.phases.last().filter(|_| several).cloned();
        let (phases, counted) = (&summary.phases, summary.baseline.as_deref());
        summary.hierarchy = hierarchy::figures(info, series, phases, counted);
        summary.cache_logs = cache_logs::figures(info, series, there.caches.as_ref(), counted);
        summary.notes = text::notes(info);
        summary.notes.extend(adapted::sentences(&summary.phases, &series.adapted));
        // What the numbers show comes before what the lab has to say of itself and of the workload.
        summary.warnings = gaps::warnings(&summary.missing);
        match under_load::read(dir) {
            Ok(found) => {
                summary.requirements.extend(found.as_ref().map(UnderLoad::judged));
                summary.conform = found;
            }
            Err(error) => summary.warnings.push(text::sentence(&error.to_string())),
        }
        summary.warnings.extend(text::warnings(&summary));
        summary.warnings.extend(info.verdict.warnings.iter().map(|warning| text::sentence(warning)));
        let findings = match origins_only::is_origins_only(&summary) {
            true => origins_only::verdict(&summary),
            false => text::verdict(&summary),
        };
        summary.verdict = gaps::verdict(&summary, findings);
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
            let touches = |doubt: &Doubt| doubt.touches(index);
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
                disturbed: phase.disturbed || doubts.iter().any(|doubt| doubt.serious && touches(doubt)),
                doubts: reasons,
                figures: figures(tally),
            }
        })
        .collect()
}

/// Share of the calibrated rate that the busiest phase used.
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
            doubts.push(Doubt { phases, ..Doubt::serious(reason, format!("{found} {what}")) });
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
