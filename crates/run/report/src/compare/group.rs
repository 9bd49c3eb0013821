//! Grouping of the named runs: repetitions of one subject, and pairs between subjects.
//!
//! A *subject* is what was tested: runs of the same target, version and settings are repetitions of it, unless somebody
//! said otherwise. Runs of the same stream are put into pairs: the first of one subject with the first of
//! the other. What only some runs met (links, limits) is a *condition* where more than one subject met it.

use std::collections::{BTreeMap, BTreeSet};

use assay_record::experiment::{CellInfo, ConditionInfo, ExperimentInfo, SubjectInfo};
use assay_record::run::{RunInfo, TargetInfo};

use super::inputs::{InputRun, RunSource};
use crate::format;

/// The condition of runs that all met the same.
const PLAIN: &str = "plain";

/// Makes an experiment of runs that were named.
pub fn group(given: &[InputRun], any_stream: bool) -> ExperimentInfo {
    let mut labels = labels(given);
    let met: Vec<RunConditions> =
        given.iter().map(|given| given.head.as_ref().map(conditions_of).unwrap_or_default()).collect();
    let shared = is_shared(&met, &labels);
    if !shared {
        add_conditions(given, &met, &mut labels);
    }
    let subjects = subjects(given, &labels);
    let conditions = conditions(given, met, shared);
    let workloads = workloads(given, &labels, any_stream);
    let mut cells: Vec<CellInfo> = given
        .iter()
        .enumerate()
        .map(|(index, given)| CellInfo {
            subject: labels[index].clone(),
            condition: conditions[index].label.clone(),
            workload: workloads[index].clone(),
            ..given.cell.clone()
        })
        .collect();
    repetitions(given, &mut cells, &subjects);
    let heads = || given.iter().filter_map(|given| given.head.as_ref());
    let mut found = ExperimentInfo {
        name: name(&subjects),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: heads().map(|head| head.started_unix_ms).min().unwrap_or(0),
        seed: heads().next().map_or(0, |head| head.seed),
        repetitions: cells.iter().map(|cell| cell.repetition).max().unwrap_or(0),
        subjects,
        cells,
        finished: true,
        ..ExperimentInfo::default()
    };
    for (condition, workload) in conditions.into_iter().zip(workloads) {
        if !found.conditions.iter().any(|known| known.label == condition.label) {
            found.conditions.push(condition);
        }
        if !found.workloads.contains(&workload) {
            found.workloads.push(workload);
        }
    }
    found
}

fn name(subjects: &[SubjectInfo]) -> String {
    match subjects {
        [one, other] => format!("{} against {}", other.label, one.label),
        [one] => one.label.clone(),
        [one, others @ ..] => format!("{} others against {}", others.len(), one.label),
        [] => String::new(),
    }
}

/// Description of a target in comparable form: facts by name, in the order in which they are stated.
fn facts(target: &TargetInfo) -> Vec<(String, String)> {
    let given = |size: Option<u64>| size.map_or_else(String::new, format::bytes);
    let mut facts = vec![
        (String::new(), target.version.clone()),
        (String::new(), target.mode.clone()),
        ("memory".to_owned(), given(target.memory_bytes)),
        ("disk".to_owned(), given(target.disk_bytes)),
    ];
    facts.extend(target.settings.clone());
    facts
}

/// Label of each run's subject.
fn labels(given: &[InputRun]) -> Vec<String> {
    let targets: Vec<Option<&TargetInfo>> =
        given.iter().map(|given| given.head.as_ref().map(|head| &head.target)).collect();
    let same = |a: usize, b: usize| match (targets[a], targets[b]) {
        (Some(a), Some(b)) => a.name == b.name && facts(a) == facts(b),
        _ => false,
    };
    let names = target_names(&targets);
    let mut labels: Vec<String> = (0..given.len())
        .map(|index| {
            let this = &given[index];
            if let Some(label) = &this.label {
                return label.clone();
            }
            match &this.source {
                RunSource::Cell { subject, .. } => {
                    let elsewhere = given.iter().any(|other| {
                        other.argument != this.argument
                            && matches!(&other.source, RunSource::Cell { subject: s, .. } if s.label == subject.label)
                    });
                    if elsewhere { format!("{}: {}", this.directory, subject.label) } else { subject.label.clone() }
                }
                RunSource::Among => {
                    let alike = (0..given.len())
                        .filter(|other| given[*other].argument == this.argument)
                        .all(|other| same(index, other));
                    if alike { this.directory.clone() } else { names[index].clone() }
                }
                RunSource::Alone => names[index].clone(),
            }
        })
        .collect();
    // All of them tested the same thing: then it is the directories that are compared.
    let one = labels.iter().collect::<BTreeSet<_>>().len() == 1;
    let several = given.iter().map(|given| given.argument).collect::<BTreeSet<_>>().len() > 1;
    if one && several && given.iter().any(|given| given.label.is_none()) {
        for (label, given) in labels.iter_mut().zip(given) {
            label.clone_from(&given.directory);
        }
        number_duplicates(given, &mut labels);
    }
    labels
}

/// Directories of one name in different places are told apart by their place among the arguments.
fn number_duplicates(given: &[InputRun], labels: &mut [String]) {
    let mut owners: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (label, given) in labels.iter().zip(given) {
        owners.entry(label.clone()).or_default().insert(given.argument);
    }
    for (label, given) in labels.iter_mut().zip(given) {
        if owners.get(label.as_str()).is_some_and(|owners| owners.len() > 1) {
            *label = format!("{label} ({})", given.argument + 1);
        }
    }
}

/// Each target's name, and what tells it from others of that name.
fn target_names(targets: &[Option<&TargetInfo>]) -> Vec<String> {
    let name = |target: &TargetInfo| {
        let own = facts(target);
        let others: Vec<Vec<(String, String)>> = targets
            .iter()
            .flatten()
            .filter(|other| other.name == target.name)
            .map(|other| facts(other))
            .collect();
        let distinguishing = own.iter().filter(|(name, value)| {
            let has = |facts: &Vec<(String, String)>| {
                facts.iter().any(|(other, said)| (other, said) == (name, value))
            };
            !value.is_empty() && !others.iter().all(has)
        });
        let words = distinguishing.map(|(name, value)| match name.as_str() {
            "" => value.clone(),
            "memory" | "disk" => format!("{name} {value}"),
            name => format!("{name}={value}"),
        });
        std::iter::once(target.name.clone()).chain(words).collect::<Vec<_>>().join(" ")
    };
    targets.iter().map(|target| target.map_or_else(|| "unknown".to_owned(), name)).collect()
}

fn subjects(given: &[InputRun], labels: &[String]) -> Vec<SubjectInfo> {
    let mut subjects: Vec<SubjectInfo> = Vec::new();
    for (given, label) in given.iter().zip(labels) {
        if subjects.iter().any(|known| known.label == *label) {
            continue;
        }
        let mut subject = match (&given.source, &given.head) {
            (RunSource::Cell { subject, .. }, _) => subject.clone(),
            (_, Some(head)) => SubjectInfo {
                proxy: head.target.name.clone(),
                version: head.target.version.clone(),
                settings: head.target.settings.clone(),
                ..SubjectInfo::default()
            },
            _ => SubjectInfo::default(),
        };
        subject.label.clone_from(label);
        subjects.push(subject);
    }
    subjects
}

/// Conditions of a run, by name.
type RunConditions = BTreeMap<String, String>;

/// Links to and from the target, what its proxy was held to, and how robots and origins spoke where the command line decided that.
fn conditions_of(head: &RunInfo) -> RunConditions {
    let mut met = BTreeMap::new();
    if let Some(overrides) = &head.workload.overrides {
        let http = [("robot-http", &overrides.robot_http), ("origin-http", &overrides.origin_http)];
        met.extend(http.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version.clone()?))));
        met.extend(overrides.streams.map(|streams| ("streams".to_owned(), streams.to_string())));
        met.extend(overrides.priorities.then(|| ("priorities".to_owned(), "stated".to_owned())));
    }
    if let Some(tls) = &head.tls {
        let resumed = format::number(tls.resumption * 100.0);
        let words =
            [tls.legs(), &tls.versions, &tls.key, &tls.ciphers.join(" "), &format!("{resumed} % resumed")];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        met.insert("TLS".to_owned(), words.join(" "));
    }
    if let Some(bed) = &head.bed {
        // A link between two of its caches is the subject's own.
        let is_cache = |name: &str| head.target.caches.iter().any(|cache| cache.name == name);
        let within = |name: &str| {
            name.match_indices('-').any(|(at, _)| is_cache(&name[..at]) && is_cache(&name[at + 1..]))
        };
        for link in bed.links.iter().filter(|link| !within(&link.name)) {
            met.insert(format!("link {}", link.name), link.settings.clone());
        }
        met.insert("congestion control".to_owned(), bed.congestion_control.clone());
    }
    if let Some(limits) = &head.limits {
        met.extend(limits.cpu_quota.map(|quota| ("cpu quota".to_owned(), quota.to_string())));
        met.extend(limits.memory_bytes.map(|limit| ("memory limit".to_owned(), format::bytes(limit))));
    }
    met
}

/// Runs met different things, and more than one subject met each of them.
fn is_shared(met: &[RunConditions], labels: &[String]) -> bool {
    let mut by_condition: BTreeMap<&RunConditions, BTreeSet<&String>> = BTreeMap::new();
    for (met, label) in met.iter().zip(labels) {
        by_condition.entry(met).or_default().insert(label);
    }
    by_condition.len() > 1 && by_condition.values().all(|subjects| subjects.len() > 1)
}

/// Runs of one target that met different things are no repetitions of one subject: what tells them apart is added to its name,
/// unless somebody chose the name, or an experiment.
fn add_conditions(given: &[InputRun], met: &[RunConditions], labels: &mut [String]) {
    let before = labels.to_vec();
    let is_named = |given: &InputRun| given.label.is_some() || matches!(given.source, RunSource::Cell { .. });
    for (index, label) in labels.iter_mut().enumerate().filter(|(index, _)| !is_named(&given[*index])) {
        let alike =
            || before.iter().zip(met).filter(|(other, _)| **other == before[index]).map(|(_, met)| met);
        let distinguishing =
            met[index].iter().filter(|(name, value)| alike().any(|other| other.get(*name) != Some(value)));
        for (name, value) in distinguishing {
            label.push_str(&format!(" {name} {value}"));
        }
    }
}

/// The condition of each run: what it met, where more than one subject met it; otherwise that is a difference between
/// subjects, and no condition.
fn conditions(given: &[InputRun], met: Vec<RunConditions>, shared: bool) -> Vec<ConditionInfo> {
    given
        .iter()
        .zip(met)
        .map(|(given, met)| match &given.source {
            RunSource::Cell { condition, .. } => condition.clone(),
            _ if shared && !met.is_empty() => {
                let words: Vec<String> = met.iter().map(|(name, value)| format!("{name} {value}")).collect();
                ConditionInfo { label: words.join(", "), settings: met }
            }
            _ => ConditionInfo { label: PLAIN.to_owned(), ..ConditionInfo::default() },
        })
        .collect()
}

/// The workload of each run. Runs of one stream have one workload, whatever its file was called; where no two subjects
/// ran the same workload and all are to be compared nevertheless, they are taken for one.
fn workloads(given: &[InputRun], labels: &[String], any_stream: bool) -> Vec<String> {
    let mut of_stream: BTreeMap<&str, &str> = BTreeMap::new();
    let names: Vec<String> = given
        .iter()
        .map(|given| match &given.head {
            Some(head) if !head.stream_digest.is_empty() => {
                (*of_stream.entry(&head.stream_digest).or_insert(&given.cell.workload)).to_owned()
            }
            _ => given.cell.workload.clone(),
        })
        .collect();
    let mut subjects: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for (name, label) in names.iter().zip(labels) {
        subjects.entry(name).or_default().insert(label);
    }
    let apart = subjects.len() > 1 && subjects.values().all(|labels| labels.len() == 1);
    if any_stream && apart {
        let all = subjects.keys().copied().collect::<Vec<_>>().join(" / ");
        return names.iter().map(|_| all.clone()).collect();
    }
    names
}

/// Numbers the runs so that those of one number belong into a pair: of each stream, the first run of every subject, then
/// the second. Where a subject shares no stream with the first of its scenario, its runs are numbered as they come.
fn repetitions(given: &[InputRun], cells: &mut [CellInfo], subjects: &[SubjectInfo]) {
    let stream = |index: usize| given[index].head.as_ref().map_or("", |head| head.stream_digest.as_str());
    let started = |index: usize| given[index].head.as_ref().map_or(0, |head| head.started_unix_ms);
    let mut run_groups: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        run_groups.entry((cell.workload.clone(), cell.condition.clone())).or_default().push(index);
    }
    for runs in run_groups.into_values() {
        // Seeds are what people count repetitions by.
        let mut order = runs.clone();
        order.sort_by_key(|index| (given[*index].cell.seed, started(*index), *index));
        let mut counted: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let keys: Vec<(usize, (&str, u32))> = order
            .iter()
            .map(|index| {
                let count =
                    counted.entry((labelled(subjects, &cells[*index].subject), stream(*index))).or_default();
                *count += 1;
                (*index, (stream(*index), *count))
            })
            .collect();
        let streams_of = |label: &str| -> BTreeSet<&str> {
            runs.iter().filter(|index| cells[**index].subject == label).map(|index| stream(*index)).collect()
        };
        let base = subjects.iter().map(|s| streams_of(&s.label)).find(|streams| !streams.is_empty());
        let base = base.unwrap_or_default();
        let strangers: BTreeSet<String> = subjects
            .iter()
            .filter(|subject| streams_of(&subject.label).is_disjoint(&base))
            .map(|subject| subject.label.clone())
            .collect();
        let mut numbers: Vec<(&str, u32)> = Vec::new();
        let mut ordinal: BTreeMap<String, u32> = BTreeMap::new();
        for (index, key) in keys {
            let subject = cells[index].subject.clone();
            cells[index].repetition = if strangers.contains(&subject) {
                let count = ordinal.entry(subject).or_default();
                *count += 1;
                *count
            } else {
                let known = numbers.iter().position(|known| *known == key);
                let number = known.unwrap_or_else(|| {
                    numbers.push(key);
                    numbers.len() - 1
                });
                number as u32 + 1
            };
        }
    }
}

/// The label as it stands in the list of subjects, which outlives changes to cells.
fn labelled<'a>(subjects: &'a [SubjectInfo], label: &str) -> &'a str {
    subjects.iter().find(|subject| subject.label == label).map_or("", |subject| subject.label.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Run {
        argument: usize,
        source: RunSource,
        label: Option<&'static str>,
        proxy: &'static str,
        memory_mb: u64,
        seed: u64,
        link: Option<&'static str>,
    }

    impl Default for Run {
        fn default() -> Self {
            Self {
                argument: 0,
                source: RunSource::Alone,
                label: None,
                proxy: "varnish",
                memory_mb: 64,
                seed: 1,
                link: None,
            }
        }
    }

    fn given(runs: &[Run]) -> Vec<InputRun> {
        let one = |run: &Run| {
            let link = |settings: &str| assay_record::run::BedInfo {
                congestion_control: "cubic".into(),
                links: vec![assay_record::run::LinkInfo {
                    name: "robots-proxy".into(),
                    settings: settings.into(),
                    ..Default::default()
                }],
                ..Default::default()
            };
            let head = RunInfo {
                stream_digest: format!("stream-{}", run.seed),
                seed: run.seed,
                bed: run.link.map(link),
                target: TargetInfo {
                    name: run.proxy.into(),
                    memory_bytes: Some(run.memory_mb << 20),
                    ..TargetInfo::default()
                },
                ..RunInfo::default()
            };
            InputRun {
                argument: run.argument,
                directory: format!("dir{}", run.argument),
                label: run.label.map(str::to_owned),
                source: run.source.clone(),
                cell: CellInfo { workload: "image".into(), seed: run.seed, ..CellInfo::default() },
                head: Some(head),
            }
        };
        runs.iter().map(one).collect()
    }

    fn cells(runs: &[Run]) -> Vec<(String, u32)> {
        let info = group(&given(runs), false);
        info.cells.into_iter().map(|cell| (cell.subject, cell.repetition)).collect()
    }

    fn of(argument: usize, proxy: &'static str, seed: u64) -> Run {
        Run { argument, proxy, seed, ..Run::default() }
    }

    fn said(expected: &[(&str, u32)]) -> Vec<(String, u32)> {
        expected.iter().map(|(label, repetition)| ((*label).to_owned(), *repetition)).collect()
    }

    #[test]
    fn runs_of_the_same_thing_are_repetitions_and_pairs_are_of_one_stream() {
        let runs = [of(0, "varnish", 2), of(1, "nginx", 1), of(2, "varnish", 1), of(3, "nginx", 2)];
        assert_eq!(cells(&runs), said(&[("varnish", 2), ("nginx", 1), ("varnish", 1), ("nginx", 2)]));
        let again = [of(0, "varnish", 1), of(1, "varnish", 1), of(2, "nginx", 1), of(3, "nginx", 1)];
        assert_eq!(cells(&again), said(&[("varnish", 1), ("varnish", 2), ("nginx", 1), ("nginx", 2)]));
    }

    #[test]
    fn settings_tell_subjects_of_one_proxy_apart() {
        let small = Run { memory_mb: 32, ..of(1, "varnish", 1) };
        assert_eq!(
            cells(&[of(0, "varnish", 1), small]),
            said(&[("varnish memory 64 MB", 1), ("varnish memory 32 MB", 1)])
        );
    }

    #[test]
    fn directories_are_compared_where_all_runs_are_of_the_same_thing() {
        assert_eq!(cells(&[of(0, "varnish", 1), of(1, "varnish", 1)]), said(&[("dir0", 1), ("dir1", 1)]));
        let among = |argument, seed| Run { source: RunSource::Among, ..of(argument, "10.0.0.1:80", seed) };
        let runs = [among(0, 1), among(0, 2), among(1, 1), among(1, 2)];
        assert_eq!(cells(&runs), said(&[("dir0", 1), ("dir0", 2), ("dir1", 1), ("dir1", 2)]));
    }

    #[test]
    fn labels_that_were_given_decide() {
        let named = |label, argument, seed| Run { label: Some(label), ..of(argument, "varnish", seed) };
        let runs = [named("base", 0, 1), named("base", 1, 2), named("head", 2, 1), named("head", 3, 2)];
        assert_eq!(cells(&runs), said(&[("base", 1), ("base", 2), ("head", 1), ("head", 2)]));
        let all = [named("base", 0, 1), named("base", 1, 2)];
        assert_eq!(cells(&all), said(&[("base", 1), ("base", 2)]), "somebody wanted it so");
    }

    #[test]
    fn what_several_subjects_met_is_a_condition_and_what_one_met_is_not() {
        let far = |argument, proxy| Run { link: Some("delay=40ms"), ..of(argument, proxy, 1) };
        let runs = [of(0, "varnish", 1), far(1, "varnish"), of(2, "nginx", 1), far(3, "nginx")];
        let info = group(&given(&runs), false);
        let labels: Vec<&str> = info.conditions.iter().map(|condition| condition.label.as_str()).collect();
        assert_eq!(labels, ["plain", "congestion control cubic, link robots-proxy delay=40ms"]);
        let info = group(&given(&[of(0, "varnish", 1), far(1, "varnish")]), false);
        assert_eq!((info.conditions.len(), info.subjects.len()), (1, 2), "the directories differ in it");
    }

    #[test]
    fn runs_of_one_target_that_met_different_things_are_no_repetitions() {
        let far = Run { link: Some("delay=40ms"), ..of(1, "varnish", 1) };
        let runs = [of(0, "varnish", 1), far, of(2, "nginx", 1)];
        let far = "varnish congestion control cubic link robots-proxy delay=40ms";
        assert_eq!(cells(&runs), said(&[("varnish", 1), (far, 1), ("nginx", 1)]));
        let mut runs = given(&[of(0, "varnish", 1), of(1, "varnish", 1), of(2, "nginx", 1)]);
        let head = runs[1].head.as_mut().unwrap();
        head.workload.overrides.get_or_insert_default().robot_http = Some("2".into());
        let labels: Vec<String> = group(&runs, false).cells.into_iter().map(|cell| cell.subject).collect();
        assert_eq!(labels, ["varnish", "varnish robot-http 2", "nginx"]);
    }

    #[test]
    fn runs_of_other_streams_are_numbered_as_they_come() {
        let runs = [of(0, "varnish", 1), of(1, "varnish", 2), of(2, "nginx", 7), of(3, "nginx", 8)];
        assert_eq!(cells(&runs), said(&[("varnish", 1), ("varnish", 2), ("nginx", 1), ("nginx", 2)]));
    }

    #[test]
    fn workloads_of_other_names_are_one_only_where_that_is_wished() {
        let mut runs = given(&[of(0, "varnish", 1), of(1, "nginx", 2)]);
        runs[1].cell.workload = "html".into();
        assert_eq!(group(&runs, false).workloads, ["image", "html"]);
        assert_eq!(group(&runs, true).workloads, ["html / image"]);
        runs[1].head.as_mut().unwrap().stream_digest = "stream-1".into();
        assert_eq!(group(&runs, false).workloads, ["image"], "only the file was renamed");
    }
}
