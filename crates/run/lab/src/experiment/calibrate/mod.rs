//! Calibration: the load that this machine, or those of a fleet, can offer for a workload with nothing between robots and origins. Short direct runs at one
//! steady load after the other, placed as they would be beside the target.
//!
//! # Contract
//!
//! *Calibration.* `--calibrate` searches for the highest load at which robots and origins, connected directly and
//! placed as they would be with a proxy, cause no doubt. The result is stored next to the runs, and a later run of the
//! same workload, placement and machine, or machines, reports the share that was used.

pub(crate) mod flat;
mod search;
mod step;
mod store;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::checks::machines::MachineLoad;
use crate::checks::{self, Resource};
use crate::error::LabError;
use crate::placement::{self, Placement};
use crate::plan::{RunOutcome, RunPlan, TargetChoice};
use crate::prepare;
use crate::resource_needs;
use assay_measurement::health::{Calibration, CalibrationStep};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use self::flat::{PeakLoad, flat, longest_response};
use self::search::LoadSearch;
use self::step::{LoadLimit, Processors, StepFigures, StepObserver};
pub use self::store::{find, keep};

/// Time that a step takes beside its load until that has been measured: starting, waiting for a whole second, stopping.
const OVERHEAD: Duration = Duration::from_millis(2500);
/// Number of steps that are to fit.
const STEPS: u32 = 10;
/// The shortest and the longest flat phase.
const FLAT_LENGTH: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));
/// Best-effort robots are measured so often; the median counts.
const BEST_EFFORT_RUNS: u32 = 3;
/// Load at which the search begins, as a share of what the processors are likely to carry.
const FIRST_SHARE: f64 = 0.5;

/// The least that a calibration takes.
pub const LEAST_BUDGET: Duration = Duration::from_secs(15);
/// Duration unless the user says otherwise.
pub const USUAL_BUDGET: Duration = Duration::from_secs(60);

/// Progress of the search.
#[derive(Debug, Clone, PartialEq)]
pub enum CalibrationEvent {
    /// A load is being tried.
    Trying {
        /// As a multiple of the workload's peak; 0: best effort.
        load: f64,
        /// Requests due per second; none: best effort.
        offered_per_s: Option<f64>,
    },
    Tried(CalibrationStep),
}

/// Peak of the schedule, in requests per second; none: as many as the target completes.
pub fn peak_requests_per_s(plan: &RunPlan) -> Result<Option<f64>, LabError> {
    PeakLoad::of(&plan.workload).map(|peak| peak.requests_per_s).map_err(LabError::plan)
}

/// Machines that carry a plan, as text.
pub fn carrier_text(plan: &RunPlan) -> &'static str {
    if plan.remote.is_some() { "these machines" } else { "this machine" }
}

/// Processors or machines of robots and origins, as text.
pub fn placement_text(plan: &RunPlan) -> Result<String, LabError> {
    if let Some(remote) = &plan.remote {
        let carriers = remote.carriers();
        let names = |part: fn(&MachineLoad) -> bool| {
            let names = carriers.iter().filter(|carrier| part(carrier)).map(|carrier| carrier.name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let (robots, origins) = (names(|one| one.robots.is_some()), names(|one| one.origins.is_some()));
        return Ok(format!("robots on {robots}, origins on {origins}"));
    }
    let Placement { robots, origins, .. } = prepare::place_roles(plan, &placement::available())?;
    if robots.is_empty() && origins.is_empty() {
        return Ok("robots and origins on any processor".into());
    }
    let show = |cpus: &[u32]| if cpus.is_empty() { "any".into() } else { placement::format_cpus(cpus) };
    Ok(format!("robots on processor {}, origins on {}", show(&robots), show(&origins)))
}

/// Reason why a run of this plan may be limited by the machine, as it was calibrated; none: its rate is lower, or that is not known.
pub fn shortfall(plan: &RunPlan) -> Option<String> {
    let offered = plan.calibration.as_ref()?.requests_per_s;
    let peak = peak_requests_per_s(plan).ok()??;
    (peak > offered).then(|| {
        format!(
            "the schedule offers up to {peak:.0} requests/s, and {} calibrated to offer {offered:.0} of them: expect \
             numbers that are known roughly, or not at all; lower the rate, or use more processors",
            if plan.remote.is_some() { "these machines were" } else { "this machine was" }
        )
    })
}

/// Takes the machines of a fleet for a run, where there is one.
pub type ClaimMachines<'a> = &'a dyn Fn(&mut RunPlan) -> Result<(), LabError>;

/// Finds what this machine, or those of a fleet, can offer for the workload of a plan, in about `budget`; `take` prepares each
/// run. `stop` turning true ends it with [`LabError::Interrupted`]; nothing is left behind. Call it on a runtime whose threads
/// outlive it.
pub async fn calibrate(
    plan: RunPlan,
    budget: Duration,
    take: ClaimMachines<'_>,
    events: mpsc::UnboundedSender<CalibrationEvent>,
    stop: watch::Receiver<bool>,
) -> Result<Calibration, LabError> {
    let bench = Calibrator::new(plan, budget, take, events, stop)?;
    if bench.peak.requests_per_s.is_some() { bench.find_rate().await } else { bench.best_effort().await }
}

/// Short direct runs, one load after the other.
struct Calibrator<'a> {
    plan: RunPlan,
    take: ClaimMachines<'a>,
    peak: PeakLoad,
    placement: Placement,
    processors: Processors,
    /// Holds the run directories of the steps, and goes with them.
    temp: tempfile::TempDir,
    /// Longest wait for a response.
    response_limit: Duration,
    rise: Duration,
    length: Duration,
    began: Instant,
    budget: Duration,
    /// Steps that were run, not only computed.
    run: u32,
    steps: Vec<CalibrationStep>,
    events: mpsc::UnboundedSender<CalibrationEvent>,
    stop: watch::Receiver<bool>,
}

/// Result of trying a load.
struct StepOutcome {
    figures: StepFigures,
    limit: Option<LoadLimit>,
    verdict: assay_record::run::RunVerdict,
}

impl<'a> Calibrator<'a> {
    fn new(
        mut plan: RunPlan,
        budget: Duration,
        take: ClaimMachines<'a>,
        events: mpsc::UnboundedSender<CalibrationEvent>,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, LabError> {
        let peak = PeakLoad::of(&plan.workload).map_err(LabError::plan)?;
        if peak.requests_per_s.is_some_and(|rate| rate <= 0.0) {
            return Err(LabError::plan("the schedule requests nothing: there is no load to look for"));
        }
        let cpus = placement::available();
        let placement = prepare::place_roles(&plan, &cpus)?;
        // Only those with robots or origins take part.
        let mut direct = RunPlan { target: TargetChoice::Direct, ..plan.clone() };
        take(&mut direct)?;
        plan.remote = direct.remote;
        let temp = crate::cleanup::temporary_dir("calibration").map_err(|e| {
            LabError::plan(format!("cannot make a directory for the steps: {e}; is TMPDIR right?"))
        })?;
        let response_limit = longest_response(&plan.workload).unwrap_or(plan.timeout);
        let runs = if peak.requests_per_s.is_some() { STEPS } else { BEST_EFFORT_RUNS };
        let each = (budget / runs).saturating_sub(OVERHEAD).clamp(FLAT_LENGTH.0, FLAT_LENGTH.1);
        let processors = match &plan.remote {
            None => Processors::here(&placement, &cpus),
            Some(remote) => Processors::of(&remote.carriers()),
        };
        Ok(Self {
            plan,
            take,
            peak,
            placement,
            processors,
            temp,
            response_limit,
            rise: each / 4,
            length: each - each / 4,
            began: Instant::now(),
            budget,
            run: 0,
            steps: Vec::new(),
            events,
            stop,
        })
    }

    /// Looks for the highest load that leaves nothing to doubt.
    async fn find_rate(mut self) -> Result<Calibration, LabError> {
        let mut search = LoadSearch::new(self.first_load()?);
        let mut carried: Vec<(f64, StepFigures)> = Vec::new();
        let mut limits: Vec<(f64, LoadLimit)> = Vec::new();
        while let Some(load) = search.next(self.attempts_left()) {
            let tried = self.try_load(load, search.kept().is_none()).await?;
            search.record(load, tried.limit.is_none());
            match tried.limit {
                None => carried.push((load, tried.figures)),
                Some(limit) => limits.push((load, limit)),
            }
        }
        let last = |load: f64| {
            limits.iter().rev().find(|(failed, _)| *failed == load).map(|(_, limit)| limit.clone())
        };
        let limit = search.failed().and_then(last);
        let found = search.kept().and_then(|kept| carried.iter().rev().find(|(load, _)| *load == kept));
        let peak = self.peak.requests_per_s.unwrap_or(0.0);
        match found.map(|(load, figures)| figures.at_rate(peak * load)) {
            Some(figures) => {
                let limit = limit.unwrap_or_else(|| LoadLimit {
                    name: step::WORKLOAD.into(),
                    seen: "no more was tried in the time that there was".into(),
                    is_noise: false,
                });
                self.calibration(&figures, &limit)
            }
            None => Err(LabError::Unsound(nothing_kept(carrier_text(&self.plan), limit.as_ref()).into())),
        }
    }

    /// Lets best-effort robots run, and takes the median of the rates.
    async fn best_effort(mut self) -> Result<Calibration, LabError> {
        let mut runs: Vec<StepOutcome> = Vec::new();
        if let Some(why) = checks::refusal(&resource_needs(&self.step_plan(0.0))?) {
            return Err(LabError::plan(why));
        }
        for _ in 0..BEST_EFFORT_RUNS {
            runs.push(self.try_load(0.0, true).await?);
        }
        runs.sort_by(|a, b| a.figures.completed_per_s.total_cmp(&b.figures.completed_per_s));
        let median = runs.swap_remove(runs.len() / 2);
        if median.figures.completed_per_s <= 0.0 {
            return Err(LabError::Unsound(
                "no request was completed: there is nothing to compare with".into(),
            ));
        }
        let limit = step::best_effort_limit(&median.verdict, &median.figures, self.processors);
        self.calibration(&median.figures, &limit)
    }

    /// A load that the arithmetic says is easy.
    fn first_load(&self) -> Result<f64, LabError> {
        let needs = resource_needs(&self.step_plan(1.0))?;
        let processors = needs.iter().filter(|need| need.resource == Resource::Processors);
        let most = processors.map(|need| need.needed / need.available.max(1.0)).fold(0.0, f64::max);
        Ok(if most > 0.0 { FIRST_SHARE / most } else { 1.0 })
    }

    /// Number of steps that still fit.
    fn attempts_left(&self) -> u32 {
        let each = match self.run {
            0 => self.rise + self.length + OVERHEAD,
            run => self.began.elapsed() / run,
        };
        let left = self.budget.saturating_sub(self.began.elapsed());
        (left.as_secs_f64() / each.as_secs_f64().max(0.1)).round() as u32
    }

    /// The plan of one step.
    fn step_plan(&self, load: f64) -> RunPlan {
        let multiple = if load > 0.0 { load } else { 1.0 };
        RunPlan {
            workload: flat(&self.plan.workload, &self.peak, multiple, self.rise, self.length),
            run_dir: self.temp.path().join(format!("step-{}", self.steps.len())),
            target: TargetChoice::Direct,
            robot_cpus: self.placement.robots.clone(),
            origin_cpus: self.placement.origins.clone(),
            proxy_cpus: Vec::new(),
            timeout: self.plan.timeout.min(self.response_limit),
            xact_log: false,
            trace_disk: false,
            calibration: None,
            warnings: Vec::new(),
            ..self.plan.clone()
        }
    }

    /// Tries a load; one that the arithmetic rules out is not run. A role that ends early ends the search only where
    /// nothing was kept before (`first`): else it is a load that is too high.
    async fn try_load(&mut self, load: f64, first: bool) -> Result<StepOutcome, LabError> {
        let offered_per_s = self.peak.requests_per_s.map(|peak| peak * load);
        self.notify(CalibrationEvent::Trying { load, offered_per_s });
        let plan = self.step_plan(load);
        let needs = resource_needs(&plan)?;
        let tried = match needs.iter().find(|need| need.exceeds()) {
            Some(need) => StepOutcome {
                figures: StepFigures {
                    offered_per_s: offered_per_s.unwrap_or(0.0),
                    ..StepFigures::default()
                },
                limit: Some(LoadLimit {
                    name: need.resource.reason().name().into(),
                    seen: checks::refusal(std::slice::from_ref(need)).unwrap_or_default(),
                    is_noise: false,
                }),
                verdict: Default::default(),
            },
            None => self.measure(plan, first).await?,
        };
        let line = step::line(load, &tried.figures, tried.limit.as_ref().filter(|_| load > 0.0));
        self.steps.push(line.clone());
        self.notify(CalibrationEvent::Tried(line));
        Ok(tried)
    }

    /// Runs a step; once more where the machine was disturbed from outside.
    async fn measure(&mut self, plan: RunPlan, first: bool) -> Result<StepOutcome, LabError> {
        let mut again = true;
        loop {
            let number = self.run;
            self.run += 1;
            let run_dir = self.temp.path().join(format!("run-{number}"));
            let mut plan = RunPlan { run_dir: run_dir.clone(), ..plan.clone() };
            (self.take)(&mut plan).map_err(LabError::run)?;
            let (sender, mut observer) = mpsc::unbounded_channel();
            let listen = async {
                let mut all = StepObserver::of(self.processors);
                while let Some(event) = observer.recv().await {
                    all.take(event);
                }
                all
            };
            let (result, all) = tokio::join!(crate::run(plan, sender, self.stop.clone()), listen);
            // A step is of no use to anybody; what cannot be removed now goes with the directory around it.
            let _ = std::fs::remove_dir_all(&run_dir);
            if *self.stop.borrow() {
                return Err(LabError::Interrupted);
            }
            let tried = judge_step(result, &all, first)?;
            let noise = tried.limit.as_ref().is_some_and(|limit| limit.is_noise);
            if !noise || !std::mem::take(&mut again) {
                return Ok(tried);
            }
        }
    }

    fn calibration(self, figures: &StepFigures, limit: &LoadLimit) -> Result<Calibration, LabError> {
        let per_request = |cpus: f64| cpus * 1e6 / figures.completed_per_s.max(1e-9);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Calibration {
            schema: Calibration::SCHEMA.into(),
            assay_version: self.plan.assay_version.clone(),
            key: store::key(&self.plan)?,
            made_unix_ms: u64::try_from(now.as_millis()).unwrap_or(0),
            requests_per_s: figures.completed_per_s,
            body_bytes_per_s: figures.body_bytes_per_s,
            robots_cpu_us_per_request: per_request(figures.robots_cpus),
            origins_cpu_us_per_request: per_request(figures.origins_cpus),
            limit: limit.name.clone(),
            limit_seen: limit.seen.clone(),
            steps: self.steps,
        })
    }

    fn notify(&self, event: CalibrationEvent) {
        // Nobody looks: the result is what counts.
        let _ = self.events.send(event);
    }
}

/// Judges the run of a step.
fn judge_step(
    result: Result<RunOutcome, LabError>,
    observer: &StepObserver,
    first: bool,
) -> Result<StepOutcome, LabError> {
    let too_much = |name: &str, seen: String| StepOutcome {
        figures: observer.figures().unwrap_or_default(),
        limit: Some(LoadLimit { name: name.into(), seen, is_noise: false }),
        verdict: Default::default(),
    };
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(LabError::Assay(cause) | LabError::Run(cause)) if !first => {
            return Ok(too_much(assay_measurement::doubt::Reason::RoleFailed.name(), cause.to_string()));
        }
        Err(other) => return Err(other),
    };
    let Some(figures) = observer.figures() else {
        return Ok(too_much(step::WORKLOAD, "nothing was measured at that load".into()));
    };
    let limit = step::limit(&outcome.verdict, &figures, observer.processors);
    Ok(StepOutcome { figures, limit, verdict: outcome.verdict })
}

fn nothing_kept(place: &str, limit: Option<&LoadLimit>) -> String {
    let why = limit.map_or(String::new(), |limit| format!("; the last time, {}: {}", limit.name, limit.seen));
    format!(
        "no load was found that {place} can carry without a doubt, however low{why}. Stop other work there and try again"
    )
}
