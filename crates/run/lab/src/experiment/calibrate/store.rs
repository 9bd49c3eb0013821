//! Files of calibrations, and the runs for which they are good. A file for each combination of what robots and origins do,
//! where they run, and the machine.

use std::io::Write;
use std::path::{Path, PathBuf};

use assay_host::metrics;
use assay_measurement::health::Calibration;
use assay_workload::model::{Pace, RobotGroup, Schedule, Workload};
use serde::Serialize;

use crate::checks::machines::MachineLoad;
use crate::error::LabError;
use crate::placement;
use crate::plan::RunPlan;
use crate::prepare;
use crate::run_info::digest;

/// Everything on which it depends what robots and origins can do together.
#[derive(Debug, Serialize)]
struct Circumstances {
    assay_version: String,
    hosts: Vec<HostKey>,
    /// Without what only says how much of it there is, and when.
    workload: Workload,
    private_as_public: bool,
    robot_cpus: Vec<u32>,
    robot_threads: u32,
    origin_cpus: Vec<u32>,
    origin_threads: u32,
    spin_us: u128,
    realtime: bool,
}

/// A machine: this one, or one of a fleet.
#[derive(Debug, Serialize)]
struct HostKey {
    /// As its agent is called; empty: this one.
    name: String,
    /// First and last of its robots, where they are divided.
    robots: Option<(u32, u32)>,
    /// First and last of its origins.
    origins: Option<(u32, u32)>,
    kernel: String,
    /// Agents say nothing of it.
    cpu_model: String,
    cpus: u32,
}

/// Machines on which a plan runs. A machine that has the proxy alone does not matter.
fn hosts(plan: &RunPlan) -> Vec<HostKey> {
    let Some(remote) = &plan.remote else {
        let facts = metrics::facts(0);
        let (name, robots, origins) = (String::new(), None, None);
        return vec![HostKey {
            name,
            robots,
            origins,
            kernel: facts.kernel,
            cpu_model: facts.cpu_model,
            cpus: facts.cpus,
        }];
    };
    let machines = remote.info().machines;
    let kernel = |name: &str| machines.iter().find(|machine| machine.name == name).map(|m| m.kernel.clone());
    let loaded = remote.carriers().into_iter().filter(|one| one.robots.is_some() || one.origins.is_some());
    let host = |MachineLoad { name, robots, origins, supply, .. }| HostKey {
        kernel: kernel(&name).unwrap_or_default(),
        cpu_model: String::new(),
        cpus: u32::try_from(supply.shared_cpus).unwrap_or(u32::MAX),
        name,
        robots,
        origins,
    };
    loaded.map(host).collect()
}

/// Names the circumstances of a plan: runs of equal keys can do equally much. Schedule and rates do not matter (a
/// rehearsal has the key of the whole), and neither does the target, but for the processors that it leaves.
pub fn key(plan: &RunPlan) -> Result<String, LabError> {
    let cpus = placement::available();
    let placed = prepare::place_roles(plan, &cpus)?;
    let circumstances = Circumstances {
        assay_version: plan.assay_version.clone(),
        hosts: hosts(plan),
        workload: nature(&plan.workload),
        private_as_public: plan.private_as_public,
        robot_threads: placement::threads(plan.threads, &placed.robots, &cpus),
        origin_threads: placement::threads(0, &placed.origins, &cpus),
        robot_cpus: placed.robots,
        origin_cpus: placed.origins,
        spin_us: plan.spin.as_micros(),
        realtime: plan.realtime,
    };
    let text = serde_json::to_string(&circumstances)
        .map_err(|e| LabError::plan(format!("cannot name the circumstances of the run: {e}")))?;
    Ok(digest(&text))
}

/// A workload without its name, its schedule, its links (a calibration has none) and its rates, but for how the rates of its robots relate: how much of it
/// can be offered is what is looked for.
fn nature(workload: &Workload) -> Workload {
    let rate = |group: &RobotGroup| match group.pace {
        Pace::Rate { per_second } => per_second * f64::from(group.count()),
        _ => 0.0,
    };
    let all: f64 = workload.robots.iter().map(rate).sum();
    let mut nature =
        Workload { name: String::new(), schedule: Schedule::default(), links: None, ..workload.clone() };
    for group in &mut nature.robots {
        if let Pace::Rate { per_second } = &mut group.pace {
            // To nine digits: what is the same but for a common factor may differ in the last bit.
            *per_second = (*per_second / all.max(f64::MIN_POSITIVE) * 1e9).round();
        }
    }
    nature
}

/// The file of a key: beside the run directory, in `calibrations/`.
pub fn path(run_dir: &Path, key: &str) -> PathBuf {
    run_dir.parent().unwrap_or(Path::new(".")).join("calibrations").join(format!("{key}.json"))
}

/// The calibration that is good for a plan, if there is one. An error says what is wrong with it: then there is none.
pub fn find(plan: &RunPlan) -> Result<Option<Calibration>, LabError> {
    let key = key(plan)?;
    let path = path(&plan.run_dir, &key);
    let damaged = |why: String| {
        let path = path.display();
        LabError::plan(format!(
            "the calibration {path} is not used: {why}; remove it, or make it anew with --calibrate"
        ))
    };
    let text = match assay_base::files::bytes(&path, assay_base::files::DOCUMENT_MAX) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(damaged(e.to_string())),
    };
    let found: Calibration = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    if found.schema != Calibration::SCHEMA || found.key != key {
        return Err(damaged(format!("it is a {:?} of the key {:?}", found.schema, found.key)));
    }
    Ok(Some(found))
}

/// Keeps a calibration; says where. A reader sees all of it or nothing.
pub fn keep(run_dir: &Path, calibration: &Calibration) -> Result<PathBuf, LabError> {
    let path = path(run_dir, &calibration.key);
    let cannot = |e: &dyn std::fmt::Display| {
        LabError::run(format!(
            "cannot keep the calibration in {}: {e}; name a directory that can be written to with --run-dir",
            path.display()
        ))
    };
    let mut text = serde_json::to_vec_pretty(calibration).map_err(|e| cannot(&e))?;
    text.push(b'\n');
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(|e| cannot(&e))?;
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(|e| cannot(&e))?;
    file.write_all(&text).map_err(|e| cannot(&e))?;
    file.persist(&path).map_err(|e| cannot(&e))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::plan::TargetChoice;

    use super::*;
    use crate::testing;

    fn key_of(change: impl FnOnce(&mut RunPlan)) -> String {
        let mut plan = testing::plan();
        change(&mut plan);
        key(&plan).unwrap()
    }

    #[test]
    fn equal_circumstances_have_one_key_whatever_the_schedule_and_the_name() {
        let usual = key_of(|_| ());
        assert_eq!(usual, key_of(|plan| plan.workload.name = "other".into()));
        assert_eq!(usual, key_of(|plan| plan.workload.schedule.phases.push(testing::phase("more", 9))));
        assert_eq!(usual, key_of(|plan| (plan.seed, plan.memory_bytes, plan.scale) = (7, 1, Some(0.1))));
    }

    #[test]
    fn rates_do_not_matter_and_how_they_relate_does() {
        let rates = |first: f64, second: f64| {
            key_of(|plan| {
                plan.workload.robots = [("10.0.0.1", first), ("10.0.0.2", second)]
                    .map(|(host, per_second)| testing::robots(host, 3, Pace::Rate { per_second }))
                    .to_vec();
            })
        };
        assert_eq!(rates(1.0, 3.0), rates(70.0, 210.0));
        assert_eq!(rates(0.1, 0.3), rates(0.7, 2.1));
        assert_ne!(rates(1.0, 3.0), rates(1.0, 2.0));
        assert_ne!(key_of(|plan| plan.workload.robots[0].pace = Pace::BestEffort), key_of(|_| ()));
    }

    #[test]
    fn other_circumstances_have_another_key() {
        let usual = key_of(|_| ());
        assert_ne!(usual, key_of(|plan| plan.workload.contents[0].cachable = 0.5));
        assert_ne!(usual, key_of(|plan| plan.spin = Duration::from_micros(50)));
        assert_ne!(usual, key_of(|plan| plan.threads = 17));
        assert_ne!(usual, key_of(|plan| plan.assay_version = "another".into()));
        if placement::available().len() > 1 {
            assert_ne!(usual, key_of(|plan| plan.target = TargetChoice::Direct), "other processors");
        }
    }

    #[test]
    fn what_was_kept_is_found_and_what_is_damaged_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let plan = RunPlan { run_dir: dir.path().join("run"), ..testing::plan() };
        assert_eq!(find(&plan).unwrap(), None);
        let key = key(&plan).unwrap();
        let calibration = Calibration {
            schema: Calibration::SCHEMA.into(),
            key,
            requests_per_s: 5.0,
            ..Default::default()
        };
        let path = keep(&plan.run_dir, &calibration).unwrap();
        assert_eq!(path.parent().unwrap(), dir.path().join("calibrations"));
        assert_eq!(find(&plan).unwrap(), Some(calibration.clone()));
        let files = std::fs::read_dir(dir.path().join("calibrations")).unwrap().count();
        assert_eq!(files, 1, "something half-written is left");
        std::fs::write(&path, "{").unwrap();
        assert!(find(&plan).unwrap_err().to_string().contains("--calibrate"));
        let other = Calibration { key: "0".into(), ..calibration };
        std::fs::write(&path, serde_json::to_vec(&other).unwrap()).unwrap();
        assert!(find(&plan).unwrap_err().to_string().contains("is not used"));
    }
}
