//! From runs to the document: pairs, tables, verdicts.

use std::collections::{BTreeMap, BTreeSet};

use super::charts::{self, Panel};
use super::document::{
    COMPARISON_SCHEMA, Comparison, Contrast, Direction, MetricRow, MetricTable, Scenario, ScenarioCell,
    SettingDifference, Subject, Values,
};
use super::metric::{self, Metric};
use super::numbers::{Number, Scope, WHOLE};
use super::paired::{self, FEWEST_PAIRS};
use super::read::{Cell, Experiment};
use super::requests::{Common, LARGEST_LOG_BYTES, Responses};
use super::verdict::{self, Case, ERROR_PROBABILITY};
use super::{winners, words};

use crate::format;

/// A workload under a condition: cells of each subject, by repetition.
struct Bench<'a> {
    workload: usize,
    condition: usize,
    scopes: &'a [Scope],
    subjects: Vec<BTreeMap<u32, &'a Cell>>,
    /// Means over common requests: by repetition and both subjects, of each scope.
    common: BTreeMap<(u32, usize, usize), Vec<Option<Common>>>,
}

/// The metric that pairing by request is used for.
const BY_REQUEST: &str = "response_mean_ms";

impl Bench<'_> {
    fn number(&self, subject: usize, repetition: u32, scope: usize, key: &str) -> Option<Number> {
        self.subjects[subject].get(&repetition)?.numbers.get(scope)?.values.get(key).copied()
    }

    fn values(&self, subject: usize, scope: usize, key: &str) -> Values {
        let numbers: Vec<Number> = self.subjects[subject]
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
    fn case(&self, labels: &[String], metric: &'static Metric, scope: usize, pair: (usize, usize)) -> Case {
        let (base, subject) = pair;
        let both = |repetition: u32| {
            let one = self.number(base, repetition, scope, metric.key)?;
            Some((repetition, one, self.number(subject, repetition, scope, metric.key)?))
        };
        let found: Vec<_> = self.subjects[base].keys().filter_map(|repetition| both(*repetition)).collect();
        let exact = |value| Number { value, at_least: false };
        let common: Option<Vec<Common>> = (metric.key == BY_REQUEST && !found.is_empty())
            .then(|| {
                let of = |repetition| *self.common.get(&(repetition, base, subject))?.get(scope)?;
                found.iter().map(|(repetition, ..)| of(*repetition)).collect()
            })
            .flatten();
        let pairs: Vec<(Number, Number)> = match &common {
            Some(common) => common.iter().map(|c| (exact(c.base_ms), exact(c.other_ms))).collect(),
            None => found.iter().map(|(_, one, other)| (*one, *other)).collect(),
        };
        let xacts = common.map(|common| common.iter().map(|common| common.xacts).sum());
        Case::new(metric, &labels[base], &labels[subject], &pairs, xacts)
    }

    fn measured(&self, scope: usize, key: &str) -> bool {
        (0..self.subjects.len()).any(|subject| self.values(subject, scope, key).mean.is_some())
    }
}

/// Makes the document.
pub(crate) fn comparison(experiment: &Experiment, directory: &str) -> Comparison {
    let info = &experiment.info;
    let mut warnings = Vec::new();
    let benches = benches(experiment, &mut warnings);
    let labels: Vec<String> = info.subjects.iter().map(|subject| subject.label.clone()).collect();
    let scenarios = scenarios(experiment, &benches, &labels);
    let tables = tables(experiment, &benches, &labels, &scenarios);
    let subjects = subjects(experiment);
    warnings.extend(mixed_versions(&subjects, experiment));
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
        differences: differences(experiment, &subjects),
        subjects,
        conditions: info.conditions.clone(),
        workloads: info.workloads.clone(),
        verdict: Vec::new(),
        scenarios,
        tables,
        left_out: experiment.left_out.clone(),
        warnings,
        panels: panels(experiment, &benches, &labels),
    };
    comparison.verdict = words::verdict(&comparison);
    comparison
}

fn benches<'a>(experiment: &'a Experiment, warnings: &mut Vec<String>) -> Vec<Bench<'a>> {
    let mut benches = Vec::new();
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
                benches.push(Bench { workload, condition, scopes: &plan.scopes, subjects, common });
            }
        }
    }
    benches
}

/// Pairs by request, where both runs of a pair kept their log. Logs of one repetition are in memory at a time.
fn common(
    subjects: &[BTreeMap<u32, &Cell>],
    scopes: &[Scope],
    warnings: &mut Vec<String>,
) -> BTreeMap<(u32, usize, usize), Vec<Option<Common>>> {
    let mut found = BTreeMap::new();
    let repetitions: BTreeSet<u32> = subjects.iter().flat_map(|runs| runs.keys().copied()).collect();
    for repetition in repetitions {
        let logs: Vec<Option<Responses>> =
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

fn log(cell: &Cell, warnings: &mut Vec<String>) -> Option<Responses> {
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
    match Responses::read(path) {
        Ok(log) => Some(log),
        Err(error) => {
            warnings.push(format!("A log of xacts was not used: {error}."));
            None
        }
    }
}

fn title(experiment: &Experiment, bench: &Bench<'_>) -> String {
    let workload = &experiment.info.workloads[bench.workload];
    match experiment.info.conditions.len() {
        1 => workload.clone(),
        _ => format!("{workload}, {}", experiment.info.conditions[bench.condition].label),
    }
}

/// The cells of a scenario before their verdicts: of each metric the differences between all pairs.
type Undecided = Vec<(&'static Metric, Vec<Case>)>;

/// The table of scenarios. All of its verdicts are one family.
fn scenarios(experiment: &Experiment, benches: &[Bench<'_>], labels: &[String]) -> Vec<Scenario> {
    let mut rows: Vec<(Scenario, Undecided)> = Vec::new();
    for bench in benches {
        let several = bench.scopes.iter().filter(|scope| scope.judged).count() > 1;
        for (index, scope) in bench.scopes.iter().enumerate().filter(|(_, scope)| scope.judged) {
            let base = title(experiment, bench);
            let name = if several { format!("{base}: {}", scope.name) } else { base };
            let headlines = metric::all().filter(|metric| metric.heading.is_some());
            let cells = headlines.filter(|metric| bench.measured(index, metric.key)).map(|metric| {
                let pairs = (0..labels.len()).flat_map(|a| (a + 1..labels.len()).map(move |b| (a, b)));
                (metric, pairs.map(|pair| bench.case(labels, metric, index, pair)).collect())
            });
            let scenario = Scenario {
                name,
                workload: experiment.info.workloads[bench.workload].clone(),
                condition: experiment.info.conditions[bench.condition].label.clone(),
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

fn scenario_cell(metric: &'static Metric, cases: Vec<Case>, labels: &[String]) -> ScenarioCell {
    let contrasts: Vec<Contrast> = cases.into_iter().map(|case| case.contrast).collect();
    let outcome = winners::of(metric, &contrasts, labels);
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
    experiment: &Experiment,
    benches: &[Bench<'_>],
    labels: &[String],
    scenarios: &[Scenario],
) -> Vec<MetricTable> {
    let mut tables = Vec::new();
    for bench in benches {
        let workload = &experiment.info.workloads[bench.workload];
        let condition = &experiment.info.conditions[bench.condition].label;
        for (index, scope) in bench.scopes.iter().enumerate() {
            let scenario = scenarios.iter().find(|scenario| {
                (&scenario.workload, &scenario.condition, &scenario.scope)
                    == (workload, condition, &scope.name)
            });
            let (rows, tests) = metric_rows(bench, labels, index, scenario.filter(|_| scope.judged));
            let phases = experiment.plans[bench.workload].as_ref().map(|plan| &plan.phases);
            let name = |phase: &usize| phases.and_then(|names| names.get(*phase)).cloned();
            tables.push(MetricTable {
                workload: workload.clone(),
                condition: condition.clone(),
                scope: scope.name.clone(),
                phases: scope.phases.iter().filter_map(name).collect(),
                judged: scope.judged,
                tests,
                rows,
                errors: errors(bench, index),
            });
        }
    }
    // What subjects are judged by comes first.
    tables.sort_by_key(|table| !table.judged);
    tables
}

fn metric_rows(
    bench: &Bench<'_>,
    labels: &[String],
    scope: usize,
    scenario: Option<&Scenario>,
) -> (Vec<MetricRow>, u32) {
    let known = |metric: &Metric| {
        scenario.and_then(|scenario| scenario.cells.iter().find(|cell| cell.metric == metric.key))
    };
    let measured: Vec<&'static Metric> =
        metric::all().filter(|metric| bench.measured(scope, metric.key)).collect();
    let mut own: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
    for metric in measured.iter().filter(|metric| known(metric).is_none()) {
        let cases = (1..labels.len()).map(|other| bench.case(labels, metric, scope, (0, other)));
        own.insert(metric.key, cases.collect());
    }
    let tests = verdict::decide(own.values_mut().flatten());
    let rows = measured.into_iter().map(|metric| {
        let values: Vec<Values> =
            (0..labels.len()).map(|subject| bench.values(subject, scope, metric.key)).collect();
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
fn errors(bench: &Bench<'_>, scope: usize) -> BTreeMap<String, Vec<Option<f64>>> {
    let of = |cell: &&Cell| cell.numbers.get(scope).map(|numbers| numbers.errors.clone());
    let runs: Vec<Vec<BTreeMap<String, u64>>> =
        bench.subjects.iter().map(|runs| runs.values().filter_map(of).collect()).collect();
    let kinds: BTreeSet<&String> = runs.iter().flatten().flat_map(BTreeMap::keys).collect();
    let mean = |kind: &String, runs: &[BTreeMap<String, u64>]| {
        let total: u64 = runs.iter().filter_map(|errors| errors.get(kind)).sum();
        (!runs.is_empty()).then(|| total as f64 / runs.len() as f64)
    };
    kinds.into_iter().map(|kind| (kind.clone(), runs.iter().map(|runs| mean(kind, runs)).collect())).collect()
}

fn subjects(experiment: &Experiment) -> Vec<Subject> {
    let described = experiment.info.subjects.iter().enumerate();
    described
        .map(|(index, info)| {
            let runs = || experiment.cells.iter().filter(move |cell| cell.subject == index);
            let mut versions: BTreeSet<String> = runs().map(|cell| cell.target.version.clone()).collect();
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

fn mixed_versions(subjects: &[Subject], experiment: &Experiment) -> Vec<String> {
    let mut warnings: Vec<String> = subjects
        .iter()
        .filter(|subject| subject.versions.len() > 1)
        .map(|subject| {
            format!("Runs of {} are of different versions: {}.", subject.label, subject.versions.join(", "))
        })
        .collect();
    let ours: BTreeSet<&str> = experiment.cells.iter().map(|cell| cell.assay_version.as_str()).collect();
    if ours.len() > 1 {
        let ours: Vec<&str> = ours.into_iter().collect();
        warnings.push(format!("Runs were made by different versions of Assay: {}.", ours.join(", ")));
    }
    warnings
}

/// Memory or disk that a run's target was given.
type Capacity = fn(&Cell) -> Option<u64>;

/// In what do subjects differ? What is the same for all is left out.
fn differences(experiment: &Experiment, subjects: &[Subject]) -> Vec<SettingDifference> {
    let given = |index: usize, of: Capacity| {
        let all: BTreeSet<String> = experiment
            .cells
            .iter()
            .filter(|cell| cell.subject == index)
            .filter_map(|cell| of(cell).map(format::capacity))
            .collect();
        (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(", "))
    };
    let mut rows = vec![
        ("proxy".to_owned(), subjects.iter().map(|subject| Some(subject.proxy.clone())).collect::<Vec<_>>()),
        (
            "version".to_owned(),
            subjects
                .iter()
                .map(|subject| (!subject.versions.is_empty()).then(|| subject.versions.join(", ")))
                .collect(),
        ),
    ];
    let names: BTreeSet<&String> = subjects.iter().flat_map(|subject| subject.settings.keys()).collect();
    for name in &names {
        rows.push((
            (*name).clone(),
            subjects.iter().map(|subject| subject.settings.get(*name).cloned()).collect(),
        ));
    }
    let capacities: [(&str, Capacity); 2] =
        [("memory", |cell| cell.target.memory_bytes), ("disk", |cell| cell.target.disk_bytes)];
    for (name, of) in capacities {
        if !names.iter().any(|known| known.as_str() == name) {
            rows.push((format!("{name} given"), (0..subjects.len()).map(|index| given(index, of)).collect()));
        }
    }
    rows.into_iter()
        .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .map(|(name, values)| SettingDifference { name, values })
        .collect()
}

fn panels(experiment: &Experiment, benches: &[Bench<'_>], labels: &[String]) -> Vec<Panel> {
    let panel = |(number, bench): (usize, &Bench<'_>)| {
        let axis = &experiment.plans[bench.workload].as_ref()?.axis;
        let subjects: Vec<(&str, Vec<&[charts::Row]>)> = labels
            .iter()
            .zip(&bench.subjects)
            .map(|(label, runs)| (label.as_str(), runs.values().map(|cell| cell.rows.as_slice()).collect()))
            .collect();
        Some(charts::panel(title(experiment, bench), number, axis, &subjects))
    };
    benches.iter().enumerate().filter_map(panel).collect()
}

/// What a scope is called beside its workload.
pub(crate) fn scope_words(scope: &str) -> String {
    if scope == WHOLE { scope.to_owned() } else { format!("phase {scope}") }
}
