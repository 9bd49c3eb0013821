//! A run on other machines that another coordinator began, and that is taken up: its plan and its record, as its directory has them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_host::metrics;
use assay_record::dir::RunDir;
use assay_record::event::RunEvent;
use assay_record::run::{RunInfo, RunVerdict};

use super::ResumedRun;
use super::prepare::addresses;
use crate::error::{FileError, LabError};
use crate::instant::StartInstant;
use crate::mode::Mode;
use crate::plan::{RunPart, RunPlan, TargetChoice};
use crate::prepare::{Prepared, behaviour, place_roles};
use crate::roles::{Role, RoleKind};
use crate::run::Session;
use crate::running_roles::{RunningRoles, StartedProxy};
use crate::{description, placement, run_info};

/// Reason why a run cannot be taken up. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error("the run in {dir} has ended; `assay report {dir}` shows it", dir = run_dir.display())]
    Ended { run_dir: PathBuf },
    #[error(
        "the run was begun on another machine, or this one was started again since; all its instants are on that clock, so it can \
         be taken up only there"
    )]
    OtherMachine,
    #[error("the run has no other machines")]
    NoMachines,
    #[error("{} is damaged: {cause}", path.display())]
    Damaged { path: PathBuf, cause: serde_json::Error },
    /// The journal of the coordinator before cannot be removed.
    #[error("cannot begin {} again: {cause}", path.display())]
    Journal { path: PathBuf, cause: std::io::Error },
}

/// A plan as the directory of its run has it, for as much of it as is needed once everything was started. The machines come to it
/// afterwards.
pub fn plan_of(run_dir: &Path, exe: PathBuf) -> Result<RunPlan, LabError> {
    let dir = RunDir::open(run_dir).map_err(LabError::plan)?;
    let info = dir.read_info().map_err(LabError::plan)?;
    if info.finished {
        return Err(LabError::plan(ResumeError::Ended { run_dir: run_dir.to_owned() }));
    }
    if info.host.clock != metrics::facts(0).clock {
        return Err(LabError::plan(ResumeError::OtherMachine));
    }
    let path = dir.workload_path();
    let text = assay_base::files::bytes(&path, assay_base::files::DOCUMENT_MAX)
        .map_err(|e| LabError::plan(FileError::read(&path, e)))?;
    let workload = serde_json::from_slice(&text)
        .map_err(|cause| LabError::plan(ResumeError::Damaged { path, cause }))?;
    Ok(RunPlan {
        exe,
        assay_version: info.assay_version.clone(),
        command: info.command.clone(),
        workload,
        sources: Vec::new(),
        scale: info.workload.scale,
        overrides: Default::default(),
        explained: info.workload.explained.clone(),
        stream_digest: info.stream_digest.clone(),
        stream_digest_requests: info.stream_digest_requests,
        seed: info.seed,
        world: info.world,
        private_as_public: info.workload.private_as_public,
        run_dir: run_dir.to_owned(),
        tries: info.tries,
        target: target_of(&info)?,
        own_target: false,
        memory_bytes: info.target.memory_bytes.unwrap_or(0),
        disk_bytes: info.target.disk_bytes.unwrap_or(0),
        limits: Default::default(),
        settings: info.target.settings.clone(),
        threads: 0,
        // Robots know it; nobody else needs it now.
        timeout: Duration::from_secs(10),
        tls: Default::default(),
        part: RunPart::Whole,
        start_at: None,
        xact_log: false,
        trace_disk: false,
        watched: None,
        robot_sources: Vec::new(),
        origin_listen: None,
        network: Default::default(),
        pin: false,
        robot_cpus: Vec::new(),
        origin_cpus: Vec::new(),
        proxy_cpus: Vec::new(),
        spin: Duration::ZERO,
        realtime: false,
        calibration: None,
        temp_dir: None,
        requirements: info.requirements.clone(),
        warnings: info.verdict.warnings,
        conform: None,
        remote: None,
    })
}

fn target_of(info: &RunInfo) -> Result<TargetChoice, LabError> {
    let mode = if info.target.mode == Mode::Forward.name() { Mode::Forward } else { Mode::Reverse };
    Ok(match info.target.name.as_str() {
        "direct" => TargetChoice::Direct,
        "builtin" => TargetChoice::Builtin(mode),
        name => TargetChoice::Described(Box::new(description::find(name, &[])?), mode),
    })
}

/// Prepares a run that is taken up. Nothing is made, and nothing checked that was checked when it began.
pub(crate) fn prepare(plan: &RunPlan) -> Result<Prepared, LabError> {
    let Some(remote) = &plan.remote else {
        return Err(LabError::plan(ResumeError::NoMachines));
    };
    let cpus = placement::available();
    let there = addresses(plan, remote.as_ref());
    Ok(Prepared {
        timeline: plan.timeline()?,
        dir: RunDir::open(&plan.run_dir).map_err(LabError::plan)?,
        _net: there.net,
        network: there.network,
        origin_listen: there.origin_listen,
        target: there.target,
        caches: there.caches,
        conformance_origin: None,
        sources: there.sources,
        behaviour: behaviour(&plan.target),
        placement: place_roles(plan, &cpus)?,
        cpus,
        descriptors: 0,
        connections: 0,
        watched: Vec::new(),
    })
}

/// The head of the record: a new one, or that of a run that is taken up. What was said on the way comes again.
pub(crate) fn initial_info(plan: &RunPlan, prepared: &Prepared) -> Result<RunInfo, LabError> {
    let dir = &prepared.dir;
    if !plan.is_resumed() {
        return run_info::begin(plan, prepared);
    }
    let mut info = dir.read_info().map_err(LabError::plan)?;
    let journal = dir.journal_path();
    if journal.exists() {
        std::fs::remove_file(&journal)
            .map_err(|cause| LabError::plan(ResumeError::Journal { path: journal, cause }))?;
    }
    // Should this coordinator end, too, the next one needs the warnings.
    info.verdict = RunVerdict { warnings: plan.warnings.clone(), ..RunVerdict::default() };
    info.boundaries.clear();
    for phase in &mut info.phases {
        (phase.start_ms, phase.end_ms) = (None, None);
    }
    Ok(info)
}

impl Session {
    /// Speaks to the roles of a run that goes on; the instant at which it began.
    pub(crate) async fn resume(&mut self, running: &mut RunningRoles) -> Result<StartInstant, LabError> {
        let Some(remote) = self.plan.remote.clone() else { return Err(LabError::Interrupted) };
        let ResumedRun { start, roles } = remote.resume(self.role_events.clone()).await?;
        for (kind, role) in roles {
            let role = Role::remote(kind, role);
            match kind {
                RoleKind::Robots => running.robots = Some(role),
                RoleKind::Origins => running.origins = Some(role),
                _ => running.proxies.push(StartedProxy::Role(Box::new(role))),
            }
        }
        Ok(start)
    }

    /// Everybody is there: the start is chosen, written down and told.
    pub(crate) async fn begin(&mut self, running: &mut RunningRoles) -> Result<StartInstant, LabError> {
        self.start_all(running).await?;
        let start = match self.plan.start_at {
            None => match &self.plan.remote {
                Some(remote) => StartInstant::in_at_least(remote.lead()),
                None => StartInstant::soon(),
            },
            Some(unix_s) => StartInstant::at(unix_s).ok_or_else(|| {
                LabError::run(format!(
                    "everybody was ready too late for the start at Unix time {unix_s}; name a later one"
                ))
            })?,
        };
        self.set_start(start);
        self.write_info()?;
        running.send_all(start.command()).await?;
        Ok(start)
    }

    /// Tells whoever looks that the schedule has a start.
    pub(crate) fn announce_start(&self) {
        self.notify(RunEvent::Started {
            phases: self.info.phases.clone(),
            target: self.info.target.clone(),
            started_unix_ms: self.info.started_unix_ms,
        });
    }

    /// Collects the files of the machines of a fleet. Their roles have ended.
    pub(crate) async fn collect_remote_files(&mut self) {
        let Some(remote) = self.plan.remote.clone() else { return };
        let run_dir = self.run_dir();
        for missing in remote.finish(&run_dir).await {
            self.findings.warn(missing);
        }
        self.info.fleet = Some(remote.info());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_has_ended_or_began_on_another_clock_is_not_taken_up() {
        let dir = tempfile::tempdir().expect("there is room");
        let refused = |info: &RunInfo| {
            let text = serde_json::to_vec(info).expect("JSON");
            std::fs::write(dir.path().join("run.json"), text).expect("can be written");
            plan_of(dir.path(), "/bin/false".into()).expect_err("cannot be").to_string()
        };
        let ended = RunInfo { finished: true, ..RunInfo::default() };
        assert!(refused(&ended).contains("has ended"));
        assert!(refused(&RunInfo::default()).contains("on another machine"));
        let goes_on = RunInfo { host: metrics::facts(0), ..RunInfo::default() };
        assert!(refused(&goes_on).contains("workload.json"));
    }

    #[test]
    fn a_target_is_found_again_by_what_the_record_says() {
        let mut info = RunInfo::default();
        (info.target.name, info.target.mode) = ("builtin".into(), "forward".into());
        assert_eq!(target_of(&info).expect("is known"), TargetChoice::Builtin(Mode::Forward));
        (info.target.name, info.target.mode) = ("varnish".into(), "reverse".into());
        let target = target_of(&info).expect("is shipped");
        assert!(matches!(target, TargetChoice::Described(known, Mode::Reverse) if known.name == "varnish"));
        info.target.name = "nobody".into();
        assert!(target_of(&info).is_err());
    }
}
