//! From a cell to the plan of its run: the same words as on the command line of `assay run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use assay_lab::experiment::cells::{Condition, Experiment, Subject, beside, planned, world};
use assay_lab::{LabError, Mode, RunPlan, checks};
use assay_record::experiment::CellInfo;
use assay_report::require::Requirement;
use assay_workload::overrides::Overrides;
use assay_workload::rehearse::Rehearsal;

use super::args::LabArgs;
use crate::commands::machines_args::Machines;
use crate::commands::result_args::ResultArgs;
use crate::commands::run::{self, RunArgs};
use crate::exit::Failure;
use crate::prepared::{PreparedWorkload, WorkloadOptions, prepare};
use crate::{bundled, experiments, target, units};

/// Everything that is needed to make the plan of any cell.
pub struct Plans {
    experiment: Experiment,
    file: PathBuf,
    proxy_dir: Vec<PathBuf>,
    /// Requirements on every cell.
    require: Vec<Requirement>,
    /// Conformance cases that are tried in every cell that has a target.
    with_conform: Vec<String>,
    /// Machines that cells run on; none: this one.
    machines: Option<Machines>,
    /// Compiled workloads, by label and seed.
    prepared: BTreeMap<(String, u64), Rc<PreparedWorkload>>,
}

/// A workload in the versions of HTTP that a condition says; the stream of requests does not depend on them.
fn in_versions(prepared: &PreparedWorkload, condition: &Condition) -> Result<PreparedWorkload, Failure> {
    let mut prepared = prepared.clone();
    let Condition { robot_http, origin_http, streams, priorities, .. } = *condition;
    let versions = Overrides { robot_http, origin_http, streams, priorities, ..Overrides::default() };
    if !versions.is_none() {
        versions
            .apply(Arc::make_mut(&mut prepared.workload))
            .map_err(|error| Failure::usage(anyhow!("{error}")))?;
        prepared.overrides = Overrides { robot_http, origin_http, streams, priorities, ..prepared.overrides };
    }
    Ok(prepared)
}

impl Plans {
    /// Compiles every workload, for every repetition.
    pub fn make(file: &Path, experiment: &Experiment, args: &LabArgs) -> Result<Self, Failure> {
        let mut plans = Self::without_workloads(file, experiment, &args.proxy_dir);
        plans.machines = args.machines.connect("assay lab")?;
        // A topic that is not there is said before anything runs.
        run::with_conform(&args.with_conform)?;
        plans.with_conform.clone_from(&args.with_conform);
        for text in &experiment.requirements {
            plans.require.push(
                text.parse()
                    .map_err(|error| Failure::usage(anyhow!("{}: require: {error}", file.display())))?,
            );
        }
        plans.require.extend(args.require.iter().cloned());
        for cell in assay_lab::experiment::cells::cells(experiment) {
            plans.compile(&cell.workload, cell.seed)?;
        }
        Ok(plans)
    }

    /// With nothing compiled yet.
    pub fn without_workloads(file: &Path, experiment: &Experiment, proxy_dir: &[PathBuf]) -> Self {
        Self {
            experiment: experiment.clone(),
            file: file.to_owned(),
            proxy_dir: proxy_dir.to_vec(),
            require: Vec::new(),
            with_conform: Vec::new(),
            machines: None,
            prepared: BTreeMap::new(),
        }
    }

    /// Compiles a workload for a seed, once; says how long its schedule is.
    pub fn compile(&mut self, label: &str, seed: u64) -> Result<Option<Duration>, Failure> {
        let key = (label.to_owned(), seed);
        if !self.prepared.contains_key(&key) {
            let choice = self.experiment.workload(label);
            let choice = choice.ok_or_else(|| Failure::failed(anyhow!("there is no workload {label}")))?;
            let wish = WorkloadOptions {
                workload: &self.source(&choice.workload),
                include: &[],
                rate: choice.rate,
                overrides: Overrides::default(),
                rehearse: self.experiment.rehearse.map(Rehearsal::Length),
                seed,
                private_as_public: self.experiment.private_as_public,
                digest_requests: None,
                digest_later: false,
                threads: None,
                remarks_on_bundled: false,
            };
            // Compiled once: what the compiler has to say is said once.
            let other = self.prepared.iter().find(|((other, _), _)| other == label);
            let prepared = match other {
                Some((_, other)) => other.reseeded(&wish)?,
                None => prepare(&wish)?,
            };
            if prepared.timeline.is_endless() {
                return Err(Failure::usage(anyhow!(
                    "{} schedules no phases, so that no run of it would ever end",
                    choice.workload
                ))
                .hint("schedule() a phase with goal.duration in the workload"));
            }
            self.prepared.insert(key.clone(), Rc::new(prepared));
        }
        Ok(self.prepared.get(&key).and_then(|prepared| planned(&prepared.workload)))
    }

    /// A bundled workload's name, or the path of a file that is beside the experiment. Those that are beside a bundled
    /// experiment are bundled too, and serve copies of it that have none of that name beside them.
    fn source(&self, named: &str) -> String {
        if bundled::find(named).is_some() {
            return named.to_owned();
        }
        let path = beside(&self.file, named);
        let is_bundled = experiments::find(&self.file.to_string_lossy()).is_some();
        match bundled::of_experiments(named) {
            Some(_) if is_bundled || !path.exists() => format!("{}{named}", bundled::INSIDE),
            _ => path.display().to_string(),
        }
    }

    /// The plan of a cell.
    pub fn plan(&self, cell: &CellInfo) -> Result<RunPlan, LabError> {
        self.make_plan(cell).map_err(|failure| LabError::plan(format!("{:#}", failure.error)))
    }

    fn make_plan(&self, cell: &CellInfo) -> Result<RunPlan, Failure> {
        let unknown = |what: &str| Failure::failed(anyhow!("the experiment has no such {what}"));
        let subject = self.experiment.subject(&cell.subject).ok_or_else(|| unknown("proxy"))?;
        let condition = self.experiment.condition(&cell.condition).ok_or_else(|| unknown("condition"))?;
        let prepared = self.prepared.get(&(cell.workload.clone(), cell.seed));
        let prepared = &in_versions(prepared.ok_or_else(|| unknown("workload"))?, condition)?;
        let args = self.run_args(cell, subject, condition)?;
        let target = match subject.topology() {
            Some(choice) => target::resolve_topology(&choice, &self.file, &self.proxy_dir)?,
            None => target::choose(&args)?,
        };
        if let assay_lab::TargetChoice::Running { .. } = target {
            return Err(Failure::usage(anyhow!(
                "{} runs already, and its cache cannot be emptied between cells; an experiment starts its proxies itself",
                subject.proxy
            )));
        }
        let mut plan = run::plan(&args, target, prepared)?;
        plan.world = world(cell.seed);
        self.machines.iter().try_for_each(|machines| machines.take(&mut plan))?;
        let needs = assay_lab::resource_needs(&plan).map_err(Failure::usage)?;
        plan.warnings.extend(checks::warnings(&needs));
        Ok(plan)
    }

    /// Arguments of the `assay run` that is equivalent to a cell.
    fn run_args(
        &self,
        cell: &CellInfo,
        subject: &Subject,
        condition: &Condition,
    ) -> Result<RunArgs, Failure> {
        let plain = RunArgs::plain(&cell.workload).map_err(Failure::failed)?;
        let proxy = match subject.proxy.as_str() {
            file if file.ends_with(".toml") => beside(&self.file, file).display().to_string(),
            name => name.to_owned(),
        };
        Ok(RunArgs {
            proxy,
            settings: subject.set.clone().into_iter().collect(),
            forward: subject.mode == Some(Mode::Forward),
            reverse: subject.mode == Some(Mode::Reverse),
            memory: subject.memory_bytes,
            disk: subject.disk_bytes,
            proxy_dir: self.proxy_dir.clone(),
            rehearse: self.experiment.rehearse.map(Rehearsal::Length),
            scale_capacity: self.experiment.scale_capacity,
            seed: cell.seed,
            timeout: self.experiment.timeout,
            results: ResultArgs {
                run_dir: Some(PathBuf::from(&cell.id)),
                require: self.require.clone(),
                ..plain.results
            },
            with_conform: match subject.proxy.as_str() {
                "direct" => Vec::new(),
                _ => self.with_conform.clone(),
            },
            xact_log: self.experiment.xact_log,
            proxy_cpus: Some(units::Cpus(condition.proxy_cpus.clone())),
            cpu_quota: condition.limits.cpus,
            memory_limit: condition.limits.memory_bytes,
            robot_link: condition.robot_link,
            origin_link: condition.origin_link,
            congestion: condition.congestion.clone(),
            robot_tls: condition.robot_tls,
            origin_tls: condition.origin_tls,
            private_as_public: self.experiment.private_as_public,
            ..plain
        })
    }
}
