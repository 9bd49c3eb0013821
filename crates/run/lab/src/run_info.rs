//! The head of the record: what a run is, before its first request.

use std::path::Path;
use std::time::Duration;

use assay_base::random::{FNV_START, fnv1a};
use assay_base::settings::show::bytes;
use assay_host::metrics;
use assay_record::part::PartInfo;
use assay_record::run::{
    CacheInfo, OverridesInfo, PeerInfo, PhaseInfo, PlannedWorkingSet, RUN_SCHEMA, RunInfo, TargetInfo,
    WorkloadInfo,
};
use assay_workload::cache_assignment::{Share, assign_caches};
use assay_workload::model::HttpVersion;
use assay_workload::model::{Goal, Phase};
use assay_workload::overrides::Overrides;
use assay_workload::{Freeze, PhaseSpan, Timeline};

use crate::description::{Description, Store};
use crate::error::LabError;
use crate::plan::{RunPart, RunPlan, TargetChoice};
use crate::prepare::Prepared;
use crate::topology::Topology;
use crate::watched_processes;

/// Begins the record: what is known of the run before it starts, and what it is made of.
pub fn begin(plan: &RunPlan, prepared: &Prepared) -> Result<RunInfo, LabError> {
    let mut info = head(plan, prepared);
    if plan.remote.is_some() {
        // Another coordinator may have to end the run, and has only this.
        info.verdict.warnings.clone_from(&plan.warnings);
    }
    let dir = &prepared.dir;
    let workload = serde_json::to_vec_pretty(&plan.workload).map_err(LabError::plan)?;
    dir.write_whole(&dir.workload_path(), &workload).map_err(LabError::plan)?;
    dir.write_info(&info).map_err(LabError::plan)?;
    keep_sources(plan, &dir.path().join("sources")).map_err(LabError::plan)?;
    std::fs::create_dir(dir.path().join("roles")).map_err(LabError::plan)?;
    Ok(info)
}

/// Everything about a run that is known before it starts.
pub fn head(plan: &RunPlan, prepared: &Prepared) -> RunInfo {
    RunInfo {
        own_errors: true,
        schema: RUN_SCHEMA.into(),
        assay_version: plan.assay_version.clone(),
        command: plan.command.clone(),
        workload: WorkloadInfo {
            name: plan.workload.name.clone(),
            sources: plan.sources.iter().map(|(name, text)| (name.clone(), digest(text))).collect(),
            robots: robots(plan),
            origins: u32::try_from(plan.workload.origins.len()).unwrap_or(u32::MAX),
            scale: plan.scale,
            overrides: overrides(plan),
            private_as_public: plan.private_as_public,
            working_set: working_set(&prepared.timeline),
            explained: plan.explained.clone(),
        },
        seed: plan.seed,
        world: plan.world,
        stream_digest: plan.stream_digest.clone(),
        stream_digest_requests: plan.stream_digest_requests,
        stream_version: assay_workload::STREAM_VERSION,
        part: part(plan, prepared),
        target: target(plan, prepared),
        host: metrics::facts(prepared.descriptors),
        bed: prepared.network.as_ref().map(crate::network::EmulatedNetwork::info),
        tls: plan.tls.info(),
        phases: phases(plan, prepared),
        calibration: plan.calibration.clone(),
        requirements: plan.requirements.clone(),
        tries: plan.tries,
        ..RunInfo::default()
    }
}

/// Robots that run here.
fn robots(plan: &RunPlan) -> u32 {
    match plan.part {
        RunPart::Whole => plan.workload.robot_count(),
        RunPart::Robots { first, last } => last - first + 1,
        RunPart::Origins { .. } => 0,
    }
}

/// Part of a run that this is; none: all of it.
fn part(plan: &RunPlan, prepared: &Prepared) -> Option<PartInfo> {
    let (robots, origins) = match plan.part {
        RunPart::Whole => return None,
        RunPart::Robots { first, last } => (vec![(first, last)], Vec::new()),
        RunPart::Origins { first, last, .. } => (Vec::new(), vec![(first.into(), last.into())]),
    };
    let both = plan.workload.schedule.phases.iter().zip(prepared.timeline.phases());
    Some(PartInfo {
        robots,
        origins,
        all_robots: plan.workload.robot_count(),
        all_origins: u32::try_from(plan.workload.origins.len()).unwrap_or(u32::MAX),
        expected_requests: both.map(|(phase, span)| expected(phase, span)).collect(),
    })
}

fn overrides(plan: &RunPlan) -> Option<OverridesInfo> {
    let Overrides { duration, rate, robots, robot_http, origin_http, streams, priorities } = plan.overrides;
    let duration_s = duration.map(|length| length.as_secs_f64());
    let name = |version: HttpVersion| version.name().to_owned();
    (!plan.overrides.is_none()).then_some(OverridesInfo {
        duration_s,
        rate_per_s: rate,
        robots,
        robot_http: robot_http.map(name),
        origin_http: origin_http.map(name),
        streams,
        priorities,
    })
}

fn target(plan: &RunPlan, prepared: &Prepared) -> TargetInfo {
    let mut info = TargetInfo {
        name: plan.target.name(),
        mode: plan.target.mode_name().into(),
        address: prepared.target.map(|address| address.to_string()).unwrap_or_default(),
        ..TargetInfo::default()
    };
    if let RunPart::Origins { .. } = plan.part {
        info.name = "origins".into();
    }
    info.notes.extend(part(plan, prepared).iter().flat_map(PartInfo::notes));
    match &plan.target {
        TargetChoice::Builtin(_) => {
            info.version.clone_from(&plan.assay_version);
            info.memory_bytes = Some(plan.memory_bytes);
            info.settings.clone_from(&plan.settings);
        }
        TargetChoice::Described(description, _) => {
            let has = |store| description.capacity.stores.contains(&store);
            info.memory_bytes = has(Store::Memory).then_some(plan.memory_bytes);
            info.disk_bytes = has(Store::Disk).then_some(plan.disk_bytes);
            info.notes.extend(description.notes.iter().cloned());
            info.settings = description.settings_as_typed();
        }
        TargetChoice::Topology(topology) => describe_topology(&mut info, plan, prepared, topology),
        TargetChoice::Running { .. } => {
            info.notes.push(UNDECLARED.to_owned());
            if !prepared.watched.is_empty() {
                info.notes.push(words_of_watched(&prepared.watched));
            }
        }
        TargetChoice::Direct => {}
    }
    info
}

/// What ideal assumes of a proxy of which nothing is declared, which is [`assay_cache::behaviour::CacheBehaviour::PLAIN`].
const UNDECLARED: &str = "nothing is declared about a proxy that is already running: the ideal cache is assumed to collapse requests for \
     the same object, to drop an object after a POST to its URL, and not to fetch the whole object for a HEAD, a range or a conditional request";

fn words_of_watched(pids: &[u32]) -> String {
    let each: Vec<String> =
        pids.iter().map(|pid| format!("{} ({pid})", watched_processes::name(*pid))).collect();
    format!("what the target uses is that of these processes, and of all below them: {}", each.join(", "))
}

/// Each cache, and what all have together.
fn describe_topology(info: &mut TargetInfo, plan: &RunPlan, prepared: &Prepared, topology: &Topology) {
    let shares: Vec<&Share> = topology.caches.iter().map(|cache| &cache.robots).collect();
    // What cannot be spread was refused before.
    let dealt = assign_caches(&shares, &plan.workload).unwrap_or_default();
    for (place, cache) in topology.caches.iter().enumerate() {
        let has =
            |store| cache.description.as_ref().is_some_and(|known| known.capacity.stores.contains(&store));
        let memory = cache.description.is_none() || has(Store::Memory);
        info.caches.push(CacheInfo {
            name: cache.name.clone(),
            proxy: cache.proxy().to_owned(),
            version: if cache.description.is_none() { plan.assay_version.clone() } else { String::new() },
            address: prepared.caches.get(place).map(ToString::to_string).unwrap_or_default(),
            memory_bytes: memory.then_some(cache.memory_bytes),
            disk_bytes: has(Store::Disk).then_some(cache.disk_bytes),
            settings: cache.description.as_ref().map(Description::settings_as_typed).unwrap_or_default(),
            robots: dealt.iter().filter(|dealt| usize::from(**dealt) == place).count() as u32,
            peers: cache
                .peers
                .iter()
                .map(|bond| PeerInfo {
                    name: topology.caches[bond.to].name.clone(),
                    relation: bond.relation.name().into(),
                    protocol: bond.protocol.name().into(),
                })
                .collect(),
            proxy_only: cache.proxy_only,
            never_direct: cache.never_direct,
        });
    }
    let sum = |of: fn(&CacheInfo) -> Option<u64>| {
        info.caches.iter().filter_map(of).reduce(|one, other| one.saturating_add(other))
    };
    (info.memory_bytes, info.disk_bytes) = (sum(|cache| cache.memory_bytes), sum(|cache| cache.disk_bytes));
    info.notes.extend(topology.descriptions().flat_map(|description| description.notes.iter().cloned()));
}

/// The working set as it follows from a schedule; none: it depends on the target.
pub fn working_set(timeline: &Timeline) -> Option<PlannedWorkingSet> {
    let size = timeline.working_set().filter(|_| !timeline.is_endless())?;
    let frozen_ms = match timeline.freeze() {
        Freeze::At(at) if timeline.total().is_none_or(|total| at < total) => {
            Some(u64::try_from(at.as_millis()).unwrap_or(u64::MAX))
        }
        Freeze::At(_) | Freeze::Never | Freeze::Live { .. } => None,
    };
    Some(PlannedWorkingSet {
        objects: size.objects.round() as u64,
        bytes: size.bytes.round() as u64,
        frozen_ms,
    })
}

fn phases(plan: &RunPlan, prepared: &Prepared) -> Vec<PhaseInfo> {
    let spans = prepared.timeline.phases().iter();
    let ms = |at: Option<Duration>| at.map(|at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    let both = plan.workload.schedule.phases.iter().zip(spans);
    both.map(|(phase, span)| PhaseInfo {
        name: phase.name.clone(),
        planned_start_ms: ms(span.start),
        planned_end_ms: ms(span.end).filter(|_| !span.is_endless()),
        start_ms: None,
        end_ms: None,
        goal: goal(phase),
        load: (phase.load.begin, phase.load.end),
        recurrence: (phase.recurrence.begin, phase.recurrence.end),
        expected_requests: expected(phase, span).filter(|_| plan.part == RunPart::Whole),
        log_stats: phase.log_stats,
        primary: phase.primary,
        disturbed: false,
    })
    .collect()
}

/// Requests that are to be expected of a phase of the whole run; none: that depends on what happens.
fn expected(phase: &Phase, span: &PhaseSpan) -> Option<f64> {
    let is_known = !adapts(phase) && !span.is_endless();
    span.expected.filter(|_| is_known).map(|expected| expected.requests)
}

/// True when the load of a phase depends on what is measured.
fn adapts(phase: &Phase) -> bool {
    phase.thermostat.is_some() || phase.script.is_some()
}

/// A phase's goal as text.
fn goal(phase: &Phase) -> String {
    let Goal { duration, transactions, fill_bytes, errors } = &phase.goal;
    let mut words = Vec::new();
    words.extend(duration.map(|duration| match phase.goal.is_endless() {
        true => "until the run is stopped".into(),
        false => format!("{:.1} s", duration.as_secs_f64()),
    }));
    words.extend(transactions.map(|count| format!("{count} xacts")));
    words.extend(fill_bytes.map(|fill| format!("{} of fill", bytes(fill))));
    words.extend(errors.map(|errors| {
        if errors < 1.0 {
            format!("{:.1} % of errors", errors * 100.0)
        } else {
            format!("{errors:.0} errors")
        }
    }));
    if phase.wait_for_freeze {
        words.push("not before the working set is frozen".into());
    }
    words.join(", or ")
}

/// FNV-1a of a source text: tells two versions of a file apart, no more.
pub fn digest(text: &str) -> String {
    format!("{:016x}", fnv1a(FNV_START, text.as_bytes()))
}

/// Keeps the source texts below `dir`, numbered, so that names need not be different.
pub fn keep_sources(plan: &RunPlan, dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for (index, (name, text)) in plan.sources.iter().enumerate() {
        let name = Path::new(name).file_name().map_or_else(|| "source".into(), |name| name.to_string_lossy());
        std::fs::write(dir.join(format!("{:02}-{name}", index + 1)), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_part_has_the_robots_that_run_in_it() {
        let mut plan = testing::plan();
        let all = plan.workload.robot_count();
        assert_eq!(robots(&plan), all);
        plan.part = RunPart::Robots { first: 1, last: 2 };
        assert_eq!(robots(&plan), 2);
        plan.part = RunPart::Origins { first: 0, last: 0, linger: Duration::ZERO };
        assert_eq!(robots(&plan), 0);
    }

    #[test]
    fn goals_are_told_in_words() {
        let mut phase = testing::phase("fill", 300);
        assert_eq!(goal(&phase), "300.0 s");
        assert_eq!(goal(&Phase::default_phase(Goal::ENDLESS)), "until the run is stopped");
        phase.goal = Goal { fill_bytes: Some(2 << 30), errors: Some(0.03), ..Goal::default() };
        phase.wait_for_freeze = true;
        assert_eq!(goal(&phase), "2 GB of fill, or 3.0 % of errors, or not before the working set is frozen");
    }

    #[test]
    fn digests_differ_where_texts_do() {
        assert_eq!(digest("").len(), 16);
        assert_ne!(digest("a"), digest("b"));
    }

    #[test]
    fn sources_of_one_name_are_kept_apart() {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = testing::plan();
        plan.sources = vec![("a/x.pg".into(), "one".into()), ("b/x.pg".into(), "two".into())];
        keep_sources(&plan, &dir.path().join("sources")).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("sources/01-x.pg")).unwrap(), "one");
        assert_eq!(std::fs::read_to_string(dir.path().join("sources/02-x.pg")).unwrap(), "two");
    }
}
