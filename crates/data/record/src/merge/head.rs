//! `run.json` of a joined run: values on which all parts agree, and the doubts and notes of each.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::{MergeError, MergeOptions};
use crate::part::{JoinedInfo, PartInfo, merge_ranges, overlap, ranges_text};
use crate::run::{PhaseInfo, RUN_SCHEMA, RunInfo, RunVerdict};

/// Directory of a part, and its `run.json`.
type NamedPart<'a> = (String, &'a RunInfo);

/// `run.json` of all parts together; those with robots come first.
pub(super) fn merge_infos(parts: &[NamedPart<'_>], options: &MergeOptions) -> Result<RunInfo, MergeError> {
    let first = parts.first().ok_or(MergeError::NoRobots)?;
    let part = union(parts)?;
    if part.robots.is_empty() {
        return Err(MergeError::NoRobots);
    }
    parts.iter().skip(1).try_for_each(|other| check_agreement(first, other))?;
    let robots: Vec<&RunInfo> =
        parts.iter().map(|(_, info)| *info).filter(|info| info.workload.robots > 0).collect();
    let mut info = first.1.clone();
    info.schema = RUN_SCHEMA.into();
    info.command.clone_from(&options.command);
    info.workload.robots = part.robot_count();
    info.own_errors = parts.iter().all(|(_, info)| info.own_errors);
    info.placement = parts.iter().flat_map(|(_, info)| info.placement.iter().cloned()).collect();
    info.requirements = distinct(robots.iter().flat_map(|info| &info.requirements));
    info.tries = parts.iter().map(|(_, info)| info.tries).max().unwrap_or_default();
    info.calibration = None;
    info.boundaries = boundaries(&robots, &part);
    info.phases = phases(&robots, &part);
    info.verdict = verdict(parts);
    info.joined = parts.iter().map(part_summary).collect();
    let own: BTreeSet<String> =
        robots.iter().flat_map(|info| info.part.iter().flat_map(PartInfo::notes)).collect();
    info.target.name = distinct(robots.iter().map(|info| &info.target.name)).join(", ");
    info.target.notes = distinct(robots.iter().flat_map(|info| &info.target.notes));
    info.target.notes.retain(|note| !own.contains(note));
    info.target.notes.extend(part.notes());
    info.target.notes.push(clocks(parts, options));
    if robots.len() > 1 {
        info.target.notes.push(
            "the ideal hit ratio is not known: each part of the robots had an ideal cache of its own, and theirs cannot be \
             added up"
                .into(),
        );
    }
    info.part = Some(part).filter(|part| !part.is_whole());
    Ok(info)
}

/// Union of the robots and origins of all parts; an error if two parts overlap.
fn union(parts: &[NamedPart<'_>]) -> Result<PartInfo, MergeError> {
    let mut all = PartInfo::default();
    let mut earlier: Vec<(&str, &PartInfo)> = Vec::new();
    for (name, info) in parts {
        let part = info.part.as_ref().ok_or_else(|| MergeError::NotAPart { name: name.clone() })?;
        for (other, known) in &earlier {
            let shared = [
                ("robots", overlap(&known.robots, &part.robots)),
                ("origins", overlap(&known.origins, &part.origins)),
            ];
            if let Some((whose, Some(range))) = shared.into_iter().find(|(_, range)| range.is_some()) {
                let (first, second) = ((*other).to_owned(), name.clone());
                return Err(MergeError::Overlap { first, second, whose, which: ranges_text(&[range]) });
            }
        }
        all.robots.extend(&part.robots);
        all.origins.extend(&part.origins);
        earlier.push((name, part));
    }
    if let Some((_, first)) = earlier.first() {
        (all.all_robots, all.all_origins) = (first.all_robots, first.all_origins);
        all.expected_requests.clone_from(&first.expected_requests);
    }
    (all.robots, all.origins) = (merge_ranges(&all.robots), merge_ranges(&all.origins));
    Ok(all)
}

/// Checks that two parts are of one run.
fn check_agreement(first_part: &NamedPart<'_>, second_part: &NamedPart<'_>) -> Result<(), MergeError> {
    let ((first, one), (second, other)) = (first_part, second_part);
    let same = |what: &'static str, a: &dyn Debug, b: &dyn Debug| {
        let (one, other) = (format!("{a:?}"), format!("{b:?}"));
        let (first, second) = (first.clone(), second.clone());
        if one == other { Ok(()) } else { Err(MergeError::Differ { first, second, what, one, other }) }
    };
    same("the workload", &one.workload.name, &other.workload.name)?;
    same("the digest of the stream", &one.stream_digest, &other.stream_digest)?;
    same(
        "the number of requests in that digest",
        &one.stream_digest_requests,
        &other.stream_digest_requests,
    )?;
    same("the version of streams", &one.stream().0, &other.stream().0)?;
    same("the seed", &one.seed, &other.seed)?;
    same("the world", &one.world, &other.world)?;
    same("the start (Unix time in ms)", &one.started_unix_ms, &other.started_unix_ms)?;
    same("the scale of a rehearsal", &one.workload.scale, &other.workload.scale)?;
    same("what the command line set", &one.workload.overrides, &other.workload.overrides)?;
    same("private as public", &one.workload.private_as_public, &other.workload.private_as_public)?;
    let all = |info: &RunInfo| info.part.as_ref().map(|part| (part.all_robots, part.all_origins));
    same("the number of robots and origins", &all(one), &all(other))?;
    let schedule = |info: &RunInfo| -> Vec<_> {
        let plan = |phase: &PhaseInfo| (phase.name.clone(), phase.planned_start_ms, phase.planned_end_ms);
        info.phases.iter().map(plan).collect()
    };
    same("the schedule", &schedule(one), &schedule(other))
}

/// Phases of the whole run: each begins with the first part, and ends with the last.
fn phases(robots: &[&RunInfo], part: &PartInfo) -> Vec<PhaseInfo> {
    let mut phases = robots.first().map(|info| info.phases.clone()).unwrap_or_default();
    for (index, phase) in phases.iter_mut().enumerate() {
        let all = || robots.iter().filter_map(|info| info.phases.get(index));
        phase.start_ms = all().filter_map(|phase| phase.start_ms).min();
        phase.end_ms = all().filter_map(|phase| phase.end_ms).max();
        phase.disturbed = all().any(|phase| phase.disturbed);
        let expected = part.expected_requests.get(index).copied().flatten();
        phase.expected_requests = expected.filter(|_| part.has_all_robots());
    }
    phases
}

/// Counts at which best-effort phases ended, in the order of robots; empty unless all robots are there.
fn boundaries(robots: &[&RunInfo], part: &PartInfo) -> Vec<Vec<u32>> {
    if !part.has_all_robots() {
        return Vec::new();
    }
    let length = robots.iter().map(|info| info.boundaries.len()).max().unwrap_or_default();
    let of_phase = |phase: usize| {
        let counts = robots.iter().filter_map(|info| info.boundaries.get(phase));
        counts.flatten().copied().collect()
    };
    (0..length).map(of_phase).collect()
}

/// Verdict over all parts; a doubt names its part.
fn verdict(parts: &[NamedPart<'_>]) -> RunVerdict {
    let mut all =
        RunVerdict { partial: parts.iter().any(|(_, info)| info.verdict.partial), ..RunVerdict::default() };
    for (name, info) in parts {
        all.doubts.extend(info.verdict.doubts.iter().cloned().map(|mut doubt| {
            doubt.seen = format!("in part {name}: {}", doubt.seen);
            doubt
        }));
        all.warnings.extend(info.verdict.warnings.iter().cloned());
    }
    all.doubts.sort_by_key(|doubt| !doubt.serious);
    all.warnings = distinct(all.warnings.iter());
    let versions = distinct(parts.iter().map(|(_, info)| &info.assay_version));
    if versions.len() > 1 {
        all.warnings
            .push(format!("the parts were made by different versions of Assay: {}", versions.join(", ")));
    }
    all
}

fn part_summary(part: &NamedPart<'_>) -> JoinedInfo {
    let (name, info) = part;
    let (robots, origins) =
        info.part.as_ref().map(|part| (part.robots.clone(), part.origins.clone())).unwrap_or_default();
    JoinedInfo {
        name: name.clone(),
        command: info.command.clone(),
        robots,
        origins,
        clock: info.host.clock.clone(),
        started_monotonic_ns: info.started_monotonic_ns,
    }
}

/// Note on how well instants of different parts can be compared, and on what depends on that.
fn clocks(parts: &[NamedPart<'_>], options: &MergeOptions) -> String {
    const AFFECTED: &str = "this touches what compares instants of different machines (the series by second, hits against \
                           collapsed requests, freshness), and neither counts nor response times, each of which is of one machine";
    let number = parts.len();
    let clocks: BTreeSet<&str> = parts.iter().map(|(_, info)| info.host.clock.as_str()).collect();
    if clocks.len() == 1 && !clocks.contains("") {
        let starts = || parts.iter().map(|(_, info)| info.started_monotonic_ns);
        let apart_ns = starts().max().unwrap_or_default() - starts().min().unwrap_or_default();
        return format!(
            "joined from {number} parts on one machine; on its monotonic clock, their schedules began within {:.3} ms of each other",
            apart_ns as f64 / 1e6
        );
    }
    let several = match clocks.contains("") {
        true => "whose machines are not all known".to_owned(),
        false => format!("on {} machines", clocks.len()),
    };
    match options.clock_error {
        Some(error) => format!(
            "joined from {number} parts {several}, whose clocks are at most {:.3} ms apart, as was stated; {AFFECTED}",
            error.as_secs_f64() * 1e3
        ),
        None => format!(
            "joined from {number} parts {several}; how far their clocks are apart is not known: {AFFECTED}"
        ),
    }
}

/// Distinct texts, in order of first occurrence.
fn distinct<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    all.filter(|text| known.insert(*text)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::WorkloadInfo;

    /// The head of a part with two of four robots, and with one phase, which has ended.
    fn half(first: u32, span_ms: (u64, u64)) -> RunInfo {
        let part = PartInfo {
            robots: vec![(first, first + 1)],
            all_robots: 4,
            expected_requests: vec![Some(9.0)],
            ..PartInfo::default()
        };
        let phase = PhaseInfo { start_ms: Some(span_ms.0), end_ms: Some(span_ms.1), ..PhaseInfo::default() };
        RunInfo {
            workload: WorkloadInfo { robots: 2, ..WorkloadInfo::default() },
            phases: vec![phase],
            boundaries: vec![vec![first, 7]],
            part: Some(part),
            ..RunInfo::default()
        }
    }

    #[test]
    fn a_phase_of_joined_parts_is_from_the_first_beginning_to_the_last_end() {
        let (one, other) = (half(0, (5, 1000)), half(2, (3, 1001)));
        for parts in [[&one, &other], [&other, &one]] {
            let parts = parts.map(|info| (String::new(), info));
            let phase = &merge_infos(&parts, &MergeOptions::default()).unwrap().phases[0];
            assert_eq!(
                (phase.start_ms, phase.end_ms, phase.expected_requests),
                (Some(3), Some(1001), Some(9.0))
            );
        }
    }

    #[test]
    fn boundaries_of_joined_parts_are_those_of_all_robots_in_their_order() {
        let (one, other) = (half(0, (0, 1)), half(2, (0, 1)));
        let merged = |parts: &[&RunInfo]| {
            let parts: Vec<_> = parts.iter().map(|info| (String::new(), *info)).collect();
            merge_infos(&parts, &MergeOptions::default()).unwrap()
        };
        let all = merged(&[&one, &other]);
        assert_eq!((all.workload.robots, all.boundaries), (4, vec![vec![0, 7, 2, 7]]));
        let some = merged(&[&one]);
        assert_eq!((some.workload.robots, some.boundaries.len()), (2, 0), "nobody knows those of the others");
    }
}
