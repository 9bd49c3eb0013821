//! Runs the cells of an experiment, one after the other, and writes down after every step how each stands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::LabError;
use crate::plan::{RunOutcome, RunPlan, TargetChoice};
use crate::{prepare, quiet, real_proxy, run, run_info};
use assay_measurement::doubt::Extent;
use assay_record::dir::RunDir;
use assay_record::event::RunEvent;
use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};
use assay_record::run::{FleetInfo, RunInfo, RunVerdict};
use assay_workload::model::Workload;
use assay_workload::timeline::Timeline;
use tokio::sync::{mpsc, watch};

use super::abort_policy::{Streak, worst};
use super::{Experiment, ExperimentDir, MixedVersions, cooldown};

/// Time that a cell takes beside its schedule until one has shown how much that is: starting and stopping.
const USUAL_OVERHEAD_S: f64 = 5.0;
/// Reason why there may be more in the page cache of a machine than at the first cell.
const PAGE_CACHE_ELSEWHERE: &str =
    "the page caches of the machines were not dropped before this cell: agents leave them alone";
/// Lines of a failure that go into the head of the experiment; all of it is in the run directory.
const LAST_LINES: usize = 12;

/// An experiment on its way.
#[derive(Debug)]
pub struct ExperimentRun<'a> {
    /// Experiment to run.
    pub experiment: &'a Experiment,
    /// Directory of the experiment.
    pub dir: ExperimentDir,
    pub info: ExperimentInfo,
    /// Go on although results of different versions get mixed.
    pub mix_versions: bool,
    /// Cells that this machine cannot carry fail, and the others run; else nothing does.
    pub skip_missing: bool,
    /// Longest wait before each run for the machine to be quiet; none: no wait.
    pub wait_quiet: Option<Duration>,
    /// Cells run on other machines, which are not prepared for them.
    pub remote: bool,
}

/// State of an experiment at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentOutcome {
    /// State at the end.
    pub info: ExperimentInfo,
    /// The user stopped it.
    pub interrupted: bool,
    /// Run after run was disturbed, and cells that waited then were not run: what by, and what to do.
    pub abort_reason: Option<String>,
}

/// Verdict on a run, by its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellVerdict {
    Measured {
        /// Names of headline numbers that are unknown.
        unknown: Vec<String>,
        /// Fault of the target, whatever was required of it.
        fault: Option<String>,
    },
    /// The target served nothing at all.
    ServedNothing,
}

/// Activity for a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellActivity {
    /// Waiting until so many closed connections have expired.
    CoolingDown {
        left: u64,
    },
    Running,
}

/// Event of an experiment.
#[derive(Debug)]
pub enum CellEvent {
    /// State of the experiment, and the time that the rest will take.
    Stands { info: Box<ExperimentInfo>, left: Duration },
    /// Activity for the current cell.
    Activity {
        /// Index of the cell.
        cell: usize,
        what: CellActivity,
    },
    /// A try of a cell ended, and its state is known.
    Tried {
        cell: Box<CellInfo>,
        /// Position among all, from 0.
        index: usize,
        /// Duration.
        took: Duration,
    },
    /// Event of the run of the current cell.
    Lab(Box<RunEvent>),
    /// Something to know, in words.
    Note(String),
}

/// Runs every cell that waits. `plan_of` makes the plan of a cell (its run directory is set here); `judgement_of` says
/// what a run came to, from its run directory (none: it cannot be summarised). `stop` turning true ends the cell that runs and the
/// experiment; dropping the future kills what was started.
pub async fn drive(
    experiment_run: ExperimentRun<'_>,
    plan_of: impl FnMut(&CellInfo) -> Result<RunPlan, LabError>,
    judgement_of: impl FnMut(&Path) -> Option<CellVerdict>,
    events: mpsc::UnboundedSender<CellEvent>,
    stop: watch::Receiver<bool>,
) -> Result<ExperimentOutcome, LabError> {
    let mut driver = Driver {
        streak: Streak::new(experiment_run.experiment.retries),
        experiment_run,
        plan_of,
        judgement_of,
        events,
        stop,
        clock: DurationEstimate::default(),
        most_left: 0,
        not_quiet: None,
        no_page_cache_drop: None,
    };
    driver.check_cells().await?;
    if driver.experiment_run.remote && driver.experiment_run.experiment.drop_page_cache {
        driver.leave_page_cache(PAGE_CACHE_ELSEWHERE.to_owned());
    }
    driver.save()?;
    let interrupted = driver.run_all().await?;
    driver.experiment_run.info.finished =
        !interrupted && driver.experiment_run.info.cells.iter().all(|cell| cell.state != CellState::Waiting);
    driver.save()?;
    Ok(ExperimentOutcome {
        interrupted,
        abort_reason: driver.streak.abort_reason(),
        info: driver.experiment_run.info,
    })
}

struct Driver<'a, P, J> {
    experiment_run: ExperimentRun<'a>,
    plan_of: P,
    judgement_of: J,
    streak: Streak,
    events: mpsc::UnboundedSender<CellEvent>,
    stop: watch::Receiver<bool>,
    clock: DurationEstimate,
    /// The most connections in TIME_WAIT that a cell left behind.
    most_left: u64,
    /// Activity of the machine before the next run, if it was not quiet although that was waited for.
    not_quiet: Option<String>,
    /// Reason why the page cache could not be dropped; said once, kept in each run.
    no_page_cache_drop: Option<String>,
}

impl<P, J> Driver<'_, P, J>
where
    P: FnMut(&CellInfo) -> Result<RunPlan, LabError>,
    J: FnMut(&Path) -> Option<CellVerdict>,
{
    /// Finds out, before anything runs, whether every cell can, and whether what comes out belongs to what is there.
    async fn check_cells(&mut self) -> Result<(), LabError> {
        let mut refused = BTreeSet::new();
        let mut mixed = self.assay_versions();
        let mut seen = BTreeSet::new();
        for index in 0..self.experiment_run.info.cells.len() {
            let cell = self.experiment_run.info.cells[index].clone();
            let kind = (cell.workload.clone(), cell.subject.clone(), cell.condition.clone());
            if cell.state != CellState::Waiting || !seen.insert(kind.clone()) {
                continue;
            }
            let checked = (self.plan_of)(&cell).and_then(|plan| prepare::check(&plan).map(|()| plan));
            let plan = match checked {
                Ok(plan) => plan,
                Err(error) => {
                    refused.insert(format!("{}: {error}", cell.subject));
                    self.skip(&kind, &error);
                    continue;
                }
            };
            self.clock.expect(&cell.workload, planned(&plan.workload));
            mixed.extend(self.other_sources(&cell, &plan));
            mixed.extend(self.other_machines(&plan));
            mixed.extend(self.other_version(&cell, &plan).await?);
        }
        if !refused.is_empty() && !self.experiment_run.skip_missing {
            return Err(LabError::plan(refusal(refused)));
        }
        mixed.sort();
        mixed.dedup();
        if mixed.is_empty() || self.experiment_run.mix_versions {
            mixed.into_iter().for_each(|reason| self.note(format!("mixed as asked: {reason}")));
            return Ok(());
        }
        Err(LabError::plan(MixedVersions { reasons: mixed }))
    }

    /// Notes that this Assay is not the one that the experiment was begun with; from now on it is this one's.
    fn assay_versions(&mut self) -> Vec<String> {
        let now = env!("CARGO_PKG_VERSION");
        let then = std::mem::replace(&mut self.experiment_run.info.assay_version, now.to_owned());
        let differs =
            !then.is_empty() && then != now && has_results(&self.experiment_run.info.cells, |_| true);
        differs.then(|| format!("Assay was {then} and is {now}")).into_iter().collect()
    }

    /// Change of a workload's sources, where they differ from the results that are there.
    fn other_sources(&self, cell: &CellInfo, plan: &RunPlan) -> Option<String> {
        let now: Vec<String> = plan.sources.iter().map(|(_, text)| run_info::digest(text)).collect();
        let done = self.experiment_run.info.cells.iter().filter(|other| has_result(other));
        let mut heads =
            done.filter(|other| other.workload == cell.workload).filter_map(|other| self.head(other));
        let differs = heads.any(|head| head.workload.sources.iter().map(|(_, digest)| digest).ne(now.iter()));
        differs.then(|| format!("the workload {} was changed since its first results", cell.workload))
    }

    /// The machines of a run, where they are not those of the results that are there.
    fn other_machines(&self, plan: &RunPlan) -> Option<String> {
        let here = || "this machine".to_owned();
        let now = plan.remote.as_ref().map_or_else(here, |machines| names(&machines.info()));
        let done = self.experiment_run.info.cells.iter().filter(|other| has_result(other));
        let mut thens = done
            .filter_map(|other| self.head(other))
            .map(|head| head.fleet.as_ref().map_or_else(here, names));
        let then = thens.find(|then| *then != now)?;
        Some(format!("the first results are of {then}, and further ones would be of {now}"))
    }

    /// A proxy's version, where it is not that of the results that are there.
    async fn other_version(&mut self, cell: &CellInfo, plan: &RunPlan) -> Result<Option<String>, LabError> {
        let now = match &plan.target {
            TargetChoice::Described(description, _) => match &plan.remote {
                Some(machines) => machines.proxy_version(&description.name).unwrap_or_default(),
                None => real_proxy::version(description).await.map_err(LabError::plan)?,
            },
            TargetChoice::Builtin(_) => plan.assay_version.clone(),
            TargetChoice::Topology(topology) => {
                let mut versions = Vec::new();
                for description in topology.descriptions() {
                    let version = real_proxy::version(description).await.map_err(LabError::plan)?;
                    versions.push(format!("{} {version}", description.title));
                }
                if topology.caches.iter().any(|cache| cache.description.is_none()) {
                    versions.push(format!("built-in {}", plan.assay_version));
                }
                versions.join(", ")
            }
            TargetChoice::Direct | TargetChoice::Running { .. } => return Ok(None),
        };
        let has = has_results(&self.experiment_run.info.cells, |other| other.subject == cell.subject);
        let subject =
            self.experiment_run.info.subjects.iter_mut().find(|subject| subject.label == cell.subject);
        let Some(subject) = subject else { return Ok(None) };
        let then = std::mem::replace(&mut subject.version, now.clone());
        let differs = has && !then.is_empty() && then != now;
        Ok(differs.then(|| format!("{} was version {then} and is {now}", cell.subject)))
    }

    fn head(&self, cell: &CellInfo) -> Option<RunInfo> {
        let dir = RunDir::open(&self.experiment_run.dir.path().join(cell.run.as_ref()?)).ok()?;
        dir.read_info().ok()
    }

    /// Cells that cannot run count as failed.
    fn skip(&mut self, kind: &(String, String, String), error: &LabError) {
        for cell in &mut self.experiment_run.info.cells {
            let is_it = (&cell.workload, &cell.subject, &cell.condition) == (&kind.0, &kind.1, &kind.2);
            if is_it && cell.state == CellState::Waiting && self.experiment_run.skip_missing {
                (cell.state, cell.why) = (CellState::Failed, Some(error.to_string()));
            }
        }
    }

    /// Runs what waits, in order, as long as there are results; true when it was interrupted.
    async fn run_all(&mut self) -> Result<bool, LabError> {
        for index in 0..self.experiment_run.info.cells.len() {
            let mut tries = 0;
            if self.experiment_run.info.cells[index].state == CellState::Running {
                tries = 1;
                self.judge_ended(index)?;
            }
            while self.experiment_run.info.cells[index].state == CellState::Waiting {
                if *self.stop.borrow() {
                    return Ok(true);
                }
                if self.streak.abort_reason().is_some() {
                    return Ok(false);
                }
                let began = Instant::now();
                self.prepare_machine(index).await;
                if *self.stop.borrow() {
                    return Ok(true);
                }
                self.begin(index)?;
                let outcome = self.run_cell(index).await;
                tries += 1;
                self.judge(index, outcome, tries)?;
                let took = began.elapsed();
                let cell = self.experiment_run.info.cells[index].clone();
                self.clock.took(&cell.workload, took);
                self.notify(CellEvent::Tried { cell: Box::new(cell), index, took });
                self.save()?;
            }
        }
        Ok(*self.stop.borrow())
    }

    /// As it was before the first cell: room for closed connections, nothing in the page cache.
    async fn prepare_machine(&mut self, index: usize) {
        let events = self.events.clone();
        let tell = |left| {
            // Nobody looks: the record is what counts.
            let _ =
                events.send(CellEvent::Activity { cell: index, what: CellActivity::CoolingDown { left } });
        };
        let longest = self.experiment_run.experiment.cool_down;
        cooldown::cool_down(self.most_left, longest, &mut self.stop, tell).await;
        if self.experiment_run.experiment.drop_page_cache
            && self.no_page_cache_drop.is_none()
            && let Err(why) = cooldown::drop_page_cache().await
        {
            self.leave_page_cache(why.to_string());
        }
        // Last: all of the above keeps the machine busy.
        self.not_quiet = self.wait_until_quiet().await;
    }

    fn leave_page_cache(&mut self, why: String) {
        self.note(format!("{why}; `page-cache = \"keep\"` in the experiment leaves it alone"));
        self.no_page_cache_drop = Some(why);
    }

    async fn wait_until_quiet(&mut self) -> Option<String> {
        let longest = self.experiment_run.wait_quiet?;
        let events = self.events.clone();
        let tell = |words| {
            // Nobody looks: the record is what counts.
            let _ = events.send(CellEvent::Note(words));
        };
        let not_quiet = quiet::wait(longest, &mut self.stop, tell).await;
        not_quiet.iter().for_each(|words| self.note(words.clone()));
        not_quiet
    }

    fn begin(&mut self, index: usize) -> Result<(), LabError> {
        let cell = &mut self.experiment_run.info.cells[index];
        // Of an earlier try, should something have stood in the way of putting it aside then.
        self.experiment_run.dir.set_aside(cell)?;
        (cell.state, cell.why, cell.fault) = (CellState::Running, None, None);
        cell.tries += 1;
        cell.run = Some(ExperimentDir::cell(&cell.id));
        self.save()?;
        self.notify(CellEvent::Activity { cell: index, what: CellActivity::Running });
        Ok(())
    }

    async fn run_cell(&mut self, index: usize) -> Result<RunOutcome, LabError> {
        let cell = &self.experiment_run.info.cells[index];
        let mut plan = (self.plan_of)(cell)?;
        plan.run_dir = self.experiment_run.dir.path().join(ExperimentDir::cell(&cell.id));
        plan.warnings.extend(self.no_page_cache_drop.clone());
        plan.warnings.extend(self.not_quiet.take());
        let (sender, mut heard) = mpsc::unbounded_channel();
        let events = self.events.clone();
        let forward = async {
            while let Some(event) = heard.recv().await {
                // Nobody looks: the record is what counts.
                let _ = events.send(CellEvent::Lab(Box::new(event)));
            }
        };
        let (outcome, ()) = tokio::join!(run(plan, sender, self.stop.clone()), forward);
        let left = self
            .head(&self.experiment_run.info.cells[index])
            .map_or(0, |head| cooldown::connections_left_by(&head));
        self.most_left = self.most_left.max(left);
        outcome
    }

    /// From how a run ended to how its cell stands.
    fn judge(
        &mut self,
        index: usize,
        outcome: Result<RunOutcome, LabError>,
        tries: u32,
    ) -> Result<(), LabError> {
        let mut fault = None;
        let (state, why, aside) = match outcome {
            Ok(RunOutcome { verdict, .. }) if verdict.partial => {
                (CellState::Waiting, Some("it was interrupted".into()), true)
            }
            Ok(RunOutcome { run_dir, verdict }) => match (self.judgement_of)(&run_dir) {
                Some(CellVerdict::ServedNothing) => {
                    (CellState::Failed, Some("its target served nothing at all".into()), true)
                }
                Some(CellVerdict::Measured { unknown, fault: found }) => {
                    fault = found;
                    self.judge_numbers(&unknown, &verdict, tries)
                }
                None => self.judge_numbers(&all_unknown(&verdict), &verdict, tries),
            },
            Err(LabError::Interrupted) => (CellState::Waiting, Some("it was interrupted".into()), true),
            Err(error) => (CellState::Failed, Some(truncated_message(&error.to_string())), true),
        };
        let cell = &mut self.experiment_run.info.cells[index];
        (cell.state, cell.why, cell.fault) = (state, why, fault);
        if aside {
            cell.run = self.experiment_run.dir.set_aside(cell)?;
        }
        Ok(())
    }

    /// Judges a cell whose run went on to its end while nobody watched.
    fn judge_ended(&mut self, index: usize) -> Result<(), LabError> {
        let cell = &self.experiment_run.info.cells[index];
        let outcome = match self.head(cell) {
            Some(head) => Ok(RunOutcome {
                run_dir: self.experiment_run.dir.path().join(ExperimentDir::cell(&cell.id)),
                verdict: head.verdict,
            }),
            None => Err(LabError::run(format!("the record of {} cannot be read any more", cell.id))),
        };
        self.judge(index, outcome, 1)?;
        self.save()
    }

    /// From what is known of a whole run to how its cell stands, why, and whether the run is put aside.
    fn judge_numbers(
        &mut self,
        unknown: &[String],
        verdict: &RunVerdict,
        tries: u32,
    ) -> (CellState, Option<String>, bool) {
        if unknown.is_empty() {
            self.streak.record_result();
            return (CellState::Done, None, false);
        }
        self.streak.record_disturbed(unknown, &verdict.doubts);
        let again = tries <= self.experiment_run.experiment.retries;
        let state = if again { CellState::Waiting } else { CellState::Invalid };
        (state, Some(unknown_reason(unknown, verdict)), again)
    }

    fn save(&mut self) -> Result<(), LabError> {
        self.experiment_run.dir.write(&self.experiment_run.info)?;
        let left = self.clock.left(&self.experiment_run.info.cells);
        self.notify(CellEvent::Stands { info: Box::new(self.experiment_run.info.clone()), left });
        Ok(())
    }

    fn note(&self, words: String) {
        self.notify(CellEvent::Note(words));
    }

    fn notify(&self, event: CellEvent) {
        // Nobody looks: the record is what counts.
        let _ = self.events.send(event);
    }
}

/// The names of machines, in their order.
fn names(fleet: &FleetInfo) -> String {
    let mut names: Vec<&str> = fleet.machines.iter().map(|machine| machine.name.as_str()).collect();
    names.sort_unstable();
    names.join(", ")
}

fn has_result(cell: &CellInfo) -> bool {
    matches!(cell.state, CellState::Done | CellState::Invalid)
}

fn has_results(cells: &[CellInfo], of: impl Fn(&CellInfo) -> bool) -> bool {
    cells.iter().any(|cell| has_result(cell) && of(cell))
}

fn refusal(refused: BTreeSet<String>) -> String {
    let lines: Vec<String> = refused.into_iter().map(|line| format!("  {line}")).collect();
    format!(
        "this machine cannot carry all of the experiment:\n{}\n(--skip-missing runs the rest, and counts these cells as \
         failed)",
        lines.join("\n")
    )
}

/// Numbers that are unknown of a run that cannot be summarised.
fn all_unknown(verdict: &RunVerdict) -> Vec<String> {
    let names = match verdict.leaves_unknown() {
        Extent::Nothing => "",
        Extent::Times => "times and rates",
        Extent::Everything => "all numbers",
    };
    Some(names.to_owned()).into_iter().filter(|names| !names.is_empty()).collect()
}

fn unknown_reason(unknown: &[String], verdict: &RunVerdict) -> String {
    let unknown = unknown.join(", ");
    match worst(&verdict.doubts) {
        Some(doubt) => format!("unknown: {unknown}; {}", doubt.seen),
        None => format!("unknown: {unknown}"),
    }
}

fn truncated_message(words: &str) -> String {
    let lines: Vec<&str> = words.lines().collect();
    match lines.as_slice() {
        [first, .., _] if lines.len() > LAST_LINES => {
            let last = &lines[lines.len() - LAST_LINES..];
            format!("{first}\n…\n{}", last.join("\n"))
        }
        _ => words.to_owned(),
    }
}

/// Time that cells would take, by what their schedules say.
pub fn expected(cells: &[CellInfo], planned: &BTreeMap<String, Duration>) -> Duration {
    let mut clock = DurationEstimate::default();
    planned.iter().for_each(|(workload, length)| clock.expect(workload, Some(*length)));
    clock.left(cells)
}

/// Least length of a plan's schedule: phases that end at a count have no length of their own where the proxy sets the
/// pace.
pub fn planned(workload: &Workload) -> Option<Duration> {
    let timeline = Timeline::new(workload).ok()?;
    let known = || workload.schedule.phases.iter().filter_map(|phase| phase.goal.duration).sum();
    Some(timeline.total().unwrap_or_else(known))
}

/// Time that cells take: as planned until one has shown it. What they take beside their schedules is learned from all of
/// them, so that the first cell of a workload is not taken for shorter than it will be.
#[derive(Debug, Default)]
struct DurationEstimate {
    planned_s: BTreeMap<String, f64>,
    took_s: BTreeMap<String, (f64, u32)>,
}

impl DurationEstimate {
    fn expect(&mut self, workload: &str, planned: Option<Duration>) {
        self.planned_s.insert(workload.to_owned(), planned.map_or(0.0, |length| length.as_secs_f64()));
    }

    fn took(&mut self, workload: &str, took: Duration) {
        let entry = self.took_s.entry(workload.to_owned()).or_default();
        *entry = (entry.0 + took.as_secs_f64(), entry.1 + 1);
    }

    fn left(&self, cells: &[CellInfo]) -> Duration {
        let open = cells.iter().filter(|cell| matches!(cell.state, CellState::Waiting | CellState::Running));
        let total_s: f64 = open.map(|cell| self.cell_s(&cell.workload)).sum();
        Duration::try_from_secs_f64(total_s).unwrap_or_default()
    }

    fn cell_s(&self, workload: &str) -> f64 {
        match self.took_s.get(workload) {
            Some((sum_s, count)) => sum_s / f64::from((*count).max(1)),
            None => self.planned_s.get(workload).copied().unwrap_or(0.0) + self.overhead_s(),
        }
    }

    /// Time that a cell takes beside its schedule.
    fn overhead_s(&self) -> f64 {
        let over = |(workload, (sum_s, count)): (&String, &(f64, u32))| {
            let planned_s = self.planned_s.get(workload).copied().unwrap_or(0.0);
            (sum_s - planned_s * f64::from(*count), *count)
        };
        let (sum_s, count) =
            self.took_s.iter().map(over).fold((0.0, 0), |(sum, all), (s, count)| (sum + s, all + count));
        if count == 0 { USUAL_OVERHEAD_S } else { (sum_s / f64::from(count)).max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_what_was_planned_until_a_cell_has_shown_what_it_takes() {
        let cell =
            |workload: &str, state| CellInfo { workload: workload.into(), state, ..CellInfo::default() };
        let cells =
            [cell("a", CellState::Done), cell("a", CellState::Running), cell("b", CellState::Waiting)];
        let mut clock = DurationEstimate::default();
        clock.expect("a", Some(Duration::from_secs(30)));
        clock.expect("b", None);
        assert_eq!(clock.left(&cells), Duration::from_secs(30 + 5 + 5));
        clock.took("a", Duration::from_secs(50));
        clock.took("a", Duration::from_secs(54));
        assert_eq!(
            clock.left(&cells),
            Duration::from_secs(52 + 22),
            "beside its schedule, a cell takes 22 s"
        );
    }

    #[test]
    fn last_words_are_the_first_line_and_the_last_ones() {
        let words: String = (0..40).map(|n| format!("line {n}\n")).collect();
        let short = truncated_message(&words);
        assert!(short.starts_with("line 0\n…\nline 28\n") && short.ends_with("line 39"), "{short}");
        assert_eq!(truncated_message("one\ntwo"), "one\ntwo");
    }
}
