//! From runs to the document: pairs, tables, verdicts.

use std::collections::{BTreeMap, BTreeSet};

use assay_base::settings::show::series;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::Histogram;

use super::chart_group::{ChartGroup, StepRow};
use super::charts::{self, ScopeTimes};
use super::document::{
    COMPARISON_SCHEMA, Comparison, Contrast, MetricRow, MetricTable, Scenario, ScenarioCell, Subject, Values,
    Weight, WithinRuns,
};
use super::measured::MetricValue;
use super::metric::{self, ComparedMetric, Direction};
use super::paired::{self, FEWEST_PAIRS};
use super::read::{ExperimentRuns, RunCell};
use super::requests::{CommonXacts, LARGEST_LOG_BYTES, ResponseLog};
use super::scope::{Scope, WHOLE};
use super::verdict::{self, ContrastTest, ERROR_PROBABILITY};
use super::{settings, text, winners};

use crate::format;

/// A workload under a condition: cells of each subject, by repetition.
struct RunGroup<'a> {
    workload: usize,
    condition: usize,
    scopes: &'a [Scope],
    subjects: Vec<BTreeMap<u32, &'a RunCell>>,
    /// Runs of different streams are compared nevertheless.
    any_stream: bool,
    /// Means over common requests: by repetition and both subjects, of each scope.
    common: BTreeMap<(u32, usize, usize), Vec<Option<CommonXacts>>>,
}

/// The metric that pairing by request is used for.
const BY_REQUEST: &str = "response_mean_ms";

impl RunGroup<'_> {
    fn number(&self, subject: usize, repetition: u32, scope: usize, key: &str) -> Option<MetricValue> {
        self.subjects[subject].get(&repetition)?.numbers.get(scope)?.values.get(key).copied()
    }

    fn values(&self, subject: usize, scope: usize, key: &str) -> Values {
        let numbers: Vec<MetricValue> = self.subjects[subject]
            .keys()
            .filter_map(|repetition| self.number(subject, *repetition, scope, key))
            .collect();
        let runs: Vec<f64> = numbers.iter().map(|number| number.value).collect();
        Values {
            mean: (!runs.is_empty()).then(|| runs.iter().sum::<f64>() / runs.len() as f64),
            deviation: (runs.len() > 1).then(|| paired::deviation(&runs)),
            at_least: numbers.iter().any(|number| number.at_least),
            runs,
        }
    }

    /// The difference between two subjects.
    fn contrast(
        &self,
        labels: &[String],
        metric: &'static ComparedMetric,
        scope: usize,
        base: usize,
        subject: usize,
    ) -> ContrastTest {
        let both = |repetition: u32| {
            let one = self.number(base, repetition, scope, metric.key)?;
            Some((repetition, one, self.number(subject, repetition, scope, metric.key)?))
        };
        let found: Vec<_> = self.subjects[base].keys().filter_map(|repetition| both(*repetition)).collect();
        let exact = MetricValue::exact;
        let common: Option<Vec<CommonXacts>> = (metric.key == BY_REQUEST && !found.is_empty())
            .then(|| {
                let of = |repetition| *self.common.get(&(repetition, base, subject))?.get(scope)?;
                found.iter().map(|(repetition, ..)| of(*repetition)).collect()
            })
            .flatten();
        let pairs: Vec<(MetricValue, MetricValue)> = match &common {
            Some(common) => common.iter().map(|c| (exact(c.base_ms), exact(c.other_ms))).collect(),
            None => found.iter().map(|(_, one, other)| (*one, *other)).collect(),
        };
        let xacts = common.as_ref().map(|common| common.iter().map(|common| common.xacts).sum());
        let mut case = ContrastTest::new(metric, &labels[base], &labels[subject], &pairs, xacts);
        if let Some([only]) = common.as_deref() {
            case.contrast.within_runs = only.within.map(|within| WithinRuns {
                stretches: within.stretches as u32,
                interval: within.interval_ms,
            });
        }
        if let Some(why) = self.incomparable(base, subject) {
            case.incomparable(&why);
        }
        case
    }

    /// Reason why two subjects cannot be compared here; none: they can.
    fn incomparable(&self, base: usize, subject: usize) -> Option<String> {
        let both = |repetition: &u32| {
            Some((*self.subjects[base].get(repetition)?, *self.subjects[subject].get(repetition)?))
        };
        let mut pairs = self.subjects[base].keys().filter_map(both);
        pairs.find_map(|(one, other)| {
            let differs = one.requested.difference_from(&other.requested).filter(|_| !self.any_stream);
            let invalid = one.invalid || other.invalid;
            let mixed = one.own_errors != other.own_errors;
            differs
                .or(invalid.then_some("the numbers of a run of it are not known"))
                .or(mixed.then_some("one was made before Assay recorded its own errors"))
                .map(str::to_owned)
        })
    }

    /// Two subjects have a run of the same repetition.
    fn has_pair(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.subjects.iter().flat_map(BTreeMap::keys).any(|repetition| !seen.insert(repetition))
    }

    fn measured(&self, scope: usize, key: &str) -> bool {
        (0..self.subjects.len()).any(|subject| self.values(subject, scope, key).mean.is_some())
    }
}

pub fn comparison(experiment: &ExperimentRuns, directory: &str) -> Comparison {
    let info = &experiment.info;
    let mut warnings = Vec::new();
    let groups = groups(experiment, &mut warnings);
    let labels: Vec<String> = info.subjects.iter().map(|subject| subject.label.clone()).collect();
    let scenarios = scenarios(experiment, &groups, &labels);
    let tables = tables(experiment, &groups, &labels, &scenarios);
    let subjects = subjects(experiment);
    warnings.extend(mixed_versions(&subjects, experiment));
    warnings.extend(one_stream(&groups));
    let incomparable = incomparable(experiment, &groups, &labels);
    let mut comparison = Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        name: info.name.clone(),
        title: info.title.clone(),
        experiment: directory.to_owned(),
        assay_version: info.assay_version.clone(),
        command: info.command.clone(),
        started_unix_ms: info.started_unix_ms,
        finished: info.finished,
        rehearse_s: info.rehearse_s,
        repetitions: info.repetitions,
        seed: info.seed,
        error_probability: ERROR_PROBABILITY,
        fewest_runs: FEWEST_PAIRS as u32,
        differences: settings::differences(&experiment.heads, &subjects),
        subjects,
        incomparable,
        gate: None,
        runs: experiment.runs.clone(),
        conditions: info.conditions.clone(),
        workloads: info.workloads.clone(),
        verdict: Vec::new(),
        scenarios,
        tables,
        left_out: experiment.left_out.clone(),
        warnings,
        chart_groups: chart_groups(experiment, &groups, &labels),
    };
    comparison.verdict = text::verdict(&comparison);
    comparison
}

fn groups<'a>(experiment: &'a ExperimentRuns, warnings: &mut Vec<String>) -> Vec<RunGroup<'a>> {
    let mut groups = Vec::new();
    for (workload, plan) in experiment.plans.iter().enumerate() {
        let Some(plan) = plan else { continue };
        for condition in 0..experiment.info.conditions.len() {
            let mut subjects = vec![BTreeMap::new(); experiment.info.subjects.len()];
            for cell in &experiment.cells {
                if (cell.workload, cell.condition) == (workload, condition) {
                    subjects[cell.subject].insert(cell.repetition, cell);
                }
            }
            if subjects.iter().any(|runs| !runs.is_empty()) {
                let common = common(&subjects, &plan.scopes, warnings);
                let any_stream = experiment.liberties.any_stream;
                groups.push(RunGroup {
                    workload,
                    condition,
                    scopes: &plan.scopes,
                    subjects,
                    any_stream,
                    common,
                });
            }
        }
    }
    groups
}

/// Pairs by request, where both runs of a pair kept their log. Logs of one repetition are in memory at a time.
fn common(
    subjects: &[BTreeMap<u32, &RunCell>],
    scopes: &[Scope],
    warnings: &mut Vec<String>,
) -> BTreeMap<(u32, usize, usize), Vec<Option<CommonXacts>>> {
    let mut found = BTreeMap::new();
    let repetitions: BTreeSet<u32> = subjects.iter().flat_map(|runs| runs.keys().copied()).collect();
    for repetition in repetitions {
        let logs: Vec<Option<ResponseLog>> =
            subjects.iter().map(|runs| log(runs.get(&repetition)?, warnings)).collect();
        for (base, one) in logs.iter().enumerate() {
            for (subject, other) in logs.iter().enumerate().skip(base + 1) {
                let (Some(one), Some(other)) = (one, other) else { continue };
                let means = scopes.iter().map(|scope| one.common(other, scope)).collect();
                found.insert((repetition, base, subject), means);
            }
        }
    }
    found
}

fn log(cell: &RunCell, warnings: &mut Vec<String>) -> Option<ResponseLog> {
    let path = cell.xacts.as_ref()?;
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    if bytes > LARGEST_LOG_BYTES {
        warnings.push(format!(
            "{} is too large ({}) to pair its requests; its runs are compared as wholes.",
            path.display(),
            format::bytes(bytes)
        ));
        return None;
    }
    match ResponseLog::read(path) {
        Ok(log) => Some(log),
        Err(error) => {
            warnings.push(format!("A log of xacts was not used: {error}."));
            None
        }
    }
}

fn title(experiment: &ExperimentRuns, group: &RunGroup<'_>) -> String {
    let workload = &experiment.info.workloads[group.workload];
    match experiment.info.conditions.len() {
        1 => workload.clone(),
        _ => format!("{workload}, {}", experiment.info.conditions[group.condition].label),
    }
}

/// The cells of a scenario before their verdicts: of each metric the differences between all pairs.
type PendingCells = Vec<(&'static ComparedMetric, Vec<ContrastTest>)>;

/// The table of scenarios. All of its verdicts are one family.
fn scenarios(experiment: &ExperimentRuns, groups: &[RunGroup<'_>], labels: &[String]) -> Vec<Scenario> {
    let mut rows: Vec<(Scenario, PendingCells)> = Vec::new();
    for group in groups {
        let several = group.scopes.iter().filter(|scope| scope.judged).count() > 1;
        for (index, scope) in group.scopes.iter().enumerate().filter(|(_, scope)| scope.judged) {
            let base = title(experiment, group);
            let name = if several { format!("{base}: {}", scope.name) } else { base };
            let headlines = metric::all().filter(|metric| metric.heading.is_some());
            let cells = headlines.filter(|metric| group.measured(index, metric.key)).map(|metric| {
                let pairs = (0..labels.len()).flat_map(|a| (a + 1..labels.len()).map(move |b| (a, b)));
                (
                    metric,
                    pairs.map(|(base, other)| group.contrast(labels, metric, index, base, other)).collect(),
                )
            });
            let scenario = Scenario {
                name,
                workload: experiment.info.workloads[group.workload].clone(),
                condition: experiment.info.conditions[group.condition].label.clone(),
                scope: scope.name.clone(),
                cells: Vec::new(),
            };
            rows.push((scenario, cells.collect()));
        }
    }
    verdict::decide(rows.iter_mut().flat_map(|row| &mut row.1).flat_map(|cell| &mut cell.1));
    rows.into_iter()
        .map(|(scenario, cells)| Scenario {
            cells: cells.into_iter().map(|(metric, cases)| scenario_cell(metric, cases, labels)).collect(),
            ..scenario
        })
        .collect()
}

fn scenario_cell(
    metric: &'static ComparedMetric,
    cases: Vec<ContrastTest>,
    labels: &[String],
) -> ScenarioCell {
    let contrasts: Vec<Contrast> = cases.into_iter().map(|case| case.contrast).collect();
    let outcome = winners::scenario_outcome(metric, &contrasts, labels);
    ScenarioCell {
        metric: metric.key.to_owned(),
        heading: metric.heading.unwrap_or(metric.title).to_owned(),
        winners: outcome.winners,
        text: outcome.text,
        margin: outcome.margin,
        contrasts,
    }
}

/// A table for every stretch of every bench. The headlines of a judged stretch keep the verdicts that they have in the
/// table of scenarios; the others of a table are a family of their own.
fn tables(
    experiment: &ExperimentRuns,
    groups: &[RunGroup<'_>],
    labels: &[String],
    scenarios: &[Scenario],
) -> Vec<MetricTable> {
    let mut tables = Vec::new();
    for group in groups {
        let workload = &experiment.info.workloads[group.workload];
        let condition = &experiment.info.conditions[group.condition].label;
        for (index, scope) in group.scopes.iter().enumerate() {
            let scenario = scenarios.iter().find(|scenario| {
                (&scenario.workload, &scenario.condition, &scenario.scope)
                    == (workload, condition, &scope.name)
            });
            let (rows, tests) = metric_rows(group, labels, index, scenario.filter(|_| scope.judged));
            let phases = experiment.plans[group.workload].as_ref().map(|plan| &plan.phases);
            let name = |phase: &usize| phases.and_then(|names| names.get(*phase)).cloned();
            tables.push(MetricTable {
                workload: workload.clone(),
                condition: condition.clone(),
                scope: scope.name.clone(),
                phases: scope.phases.iter().filter_map(name).collect(),
                judged: scope.judged,
                tests,
                rows,
                errors: errors(group, index),
            });
        }
    }
    // What subjects are judged by comes first.
    tables.sort_by_key(|table| !table.judged);
    tables
}

fn metric_rows(
    group: &RunGroup<'_>,
    labels: &[String],
    scope: usize,
    scenario: Option<&Scenario>,
) -> (Vec<MetricRow>, u32) {
    let known = |metric: &ComparedMetric| {
        scenario.and_then(|scenario| scenario.cells.iter().find(|cell| cell.metric == metric.key))
    };
    let measured: Vec<&'static ComparedMetric> =
        metric::all().filter(|metric| group.measured(scope, metric.key)).collect();
    let mut own: BTreeMap<&str, Vec<ContrastTest>> = BTreeMap::new();
    for metric in measured.iter().filter(|metric| known(metric).is_none()) {
        let cases = (1..labels.len()).map(|other| group.contrast(labels, metric, scope, 0, other));
        own.insert(metric.key, cases.collect());
    }
    let tests = verdict::decide(own.values_mut().flatten());
    let rows = measured.into_iter().map(|metric| {
        let values: Vec<Values> =
            (0..labels.len()).map(|subject| group.values(subject, scope, metric.key)).collect();
        let contrasts = match known(metric) {
            Some(cell) => {
                cell.contrasts.iter().filter(|contrast| contrast.base == labels[0]).cloned().collect()
            }
            None => {
                own.remove(metric.key).unwrap_or_default().into_iter().map(|case| case.contrast).collect()
            }
        };
        let judged = metric.better != Direction::Neither;
        MetricRow {
            metric: metric.key.to_owned(),
            title: metric.title.to_owned(),
            group: metric.group,
            better: metric.better,
            worth_mentioning: values[0].mean.filter(|_| judged).map(|level| metric.worth.at(level)),
            headline: known(metric).is_some(),
            values,
            contrasts,
        }
    });
    (rows.collect(), tests)
}

/// Errors by kind: mean number per run of each subject.
fn errors(group: &RunGroup<'_>, scope: usize) -> BTreeMap<String, Vec<Option<f64>>> {
    let of = |cell: &&RunCell| cell.numbers.get(scope).map(|numbers| numbers.errors.clone());
    let runs: Vec<Vec<BTreeMap<ErrorKind, u64>>> =
        group.subjects.iter().map(|runs| runs.values().filter_map(of).collect()).collect();
    let kinds: BTreeSet<&ErrorKind> = runs.iter().flatten().flat_map(BTreeMap::keys).collect();
    let mean = |kind: &ErrorKind, runs: &[BTreeMap<ErrorKind, u64>]| {
        let total: u64 = runs.iter().filter_map(|errors| errors.get(kind)).sum();
        (!runs.is_empty()).then(|| total as f64 / runs.len() as f64)
    };
    kinds
        .into_iter()
        .map(|kind| (kind.to_string(), runs.iter().map(|runs| mean(kind, runs)).collect()))
        .collect()
}

fn subjects(experiment: &ExperimentRuns) -> Vec<Subject> {
    let described = experiment.info.subjects.iter().enumerate();
    described
        .map(|(index, info)| {
            let runs = || experiment.cells.iter().filter(move |cell| cell.subject == index);
            let mut versions: BTreeSet<String> = runs().map(|cell| cell.version.clone()).collect();
            versions.remove("");
            if versions.is_empty() && !info.version.is_empty() {
                versions.insert(info.version.clone());
            }
            Subject {
                label: info.label.clone(),
                proxy: info.proxy.clone(),
                versions: versions.into_iter().collect(),
                settings: info.settings.clone(),
                runs: runs().count() as u32,
            }
        })
        .collect()
}

fn mixed_versions(subjects: &[Subject], experiment: &ExperimentRuns) -> Vec<String> {
    let mut warnings: Vec<String> = subjects
        .iter()
        .filter(|subject| subject.versions.len() > 1)
        .map(|subject| {
            format!("Runs of {} are of different versions: {}.", subject.label, subject.versions.join(", "))
        })
        .collect();
    let ours: BTreeSet<&str> = experiment.heads.iter().map(|head| head.info.assay_version.as_str()).collect();
    if ours.len() > 1 {
        let ours: Vec<&str> = ours.into_iter().collect();
        warnings.push(format!("Runs were made by different versions of Assay: {}.", ours.join(", ")));
    }
    warnings
}

/// Pairs of subjects that did not get the same requests, and workloads that one subject ran alone; what is left out because its
/// plan is another one is said with it.
fn incomparable(experiment: &ExperimentRuns, groups: &[RunGroup<'_>], labels: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for group in groups {
        let title = title(experiment, group);
        for (a, b) in (0..labels.len()).flat_map(|a| (a + 1..labels.len()).map(move |b| (a, b))) {
            if let Some(why) = group.incomparable(a, b) {
                found.push(format!("{} and {} in {title}: {why}.", labels[a], labels[b]));
            }
        }
        let ran: Vec<&String> = labels
            .iter()
            .zip(&group.subjects)
            .filter(|(_, runs)| !runs.is_empty())
            .map(|(label, _)| label)
            .collect();
        let given =
            experiment.heads.iter().filter(|head| head.workload == experiment.info.workloads[group.workload]);
        let given: BTreeSet<usize> = given.map(|head| head.subject).collect();
        if let ([alone], true, 1) = (ran.as_slice(), labels.len() > 1, given.len()) {
            found.push(format!("{title} was run for {alone} alone: there is nothing to compare it with."));
        }
    }
    // Told from the settings where runs are left out because their phases are others.
    let differs = settings::differences(&experiment.heads, &subjects(experiment));
    let meaningless: Vec<String> =
        differs.into_iter().filter(|row| row.weight == Weight::Meaningless).map(|row| row.name).collect();
    if found.is_empty() && !meaningless.is_empty() && groups.iter().all(|group| !group.has_pair()) {
        found.push(format!("The runs differ in {}.", series(&meaningless)));
    }
    found
}

/// Repetitions that all had the same stream say how much runs differ, and nothing about other streams.
fn one_stream(groups: &[RunGroup<'_>]) -> Option<String> {
    let repeated = groups.iter().any(|group| {
        group.subjects.iter().any(|runs| {
            let mut runs = runs.values();
            let first = runs.next();
            runs.len() > 0
                && runs.all(|run| {
                    first.is_some_and(|first| first.requested.difference_from(&run.requested).is_none())
                })
        })
    });
    repeated.then(|| {
        "Repetitions were sent one and the same stream: intervals say how much runs of this stream differ, and nothing \
         about other streams. Give each repetition a seed of its own."
            .to_owned()
    })
}

fn chart_groups(experiment: &ExperimentRuns, groups: &[RunGroup<'_>], labels: &[String]) -> Vec<ChartGroup> {
    let panel = |(number, group): (usize, &RunGroup<'_>)| {
        let axis = &experiment.plans[group.workload].as_ref()?.axis;
        let subjects: Vec<(&str, Vec<&[StepRow]>)> = labels
            .iter()
            .zip(&group.subjects)
            .map(|(label, runs)| (label.as_str(), runs.values().map(|cell| cell.rows.as_slice()).collect()))
            .collect();
        Some(charts::panel(title(experiment, group), number, axis, &subjects, &stretches(group)))
    };
    groups.iter().enumerate().filter_map(panel).collect()
}

/// Response times of each subject, over all its runs: of all phases together, or of the only one; then phase by phase.
fn stretches<'a>(group: &RunGroup<'a>) -> Vec<ScopeTimes<'a>> {
    let of = |(index, scope): (usize, &'a Scope)| {
        let merged = |runs: &BTreeMap<u32, &RunCell>| {
            let mut times = Histogram::new();
            runs.values()
                .filter_map(|cell| cell.numbers.get(index))
                .for_each(|n| times.merge_sparse(&n.times));
            times
        };
        ScopeTimes { name: &scope.name, times: group.subjects.iter().map(merged).collect() }
    };
    let mut all: Vec<ScopeTimes<'a>> = group.scopes.iter().enumerate().map(of).collect();
    if let Some(whole) = all.iter().position(|stretch| stretch.name == WHOLE) {
        let whole = all.remove(whole);
        all.insert(0, whole);
    }
    all
}
