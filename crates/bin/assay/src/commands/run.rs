//! `assay run`: put a proxy under a workload, watch it, and report.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use assay_conform::suite::Suite;
use assay_lab::checks;
use assay_lab::conformance::ConformPlan;
use assay_lab::watched_processes::WatchPlan;
use assay_lab::{LabError, Limits, RunOutcome, RunPart, RunPlan, TargetChoice};
use assay_report::headline::RunConclusion;
use assay_report::require::Requirement;
use assay_workload::overrides::Overrides;
use tokio::sync::{mpsc, watch};

pub use super::run_args::RunArgs;
use crate::commands::calibrate;
use crate::commands::links;
use crate::commands::machines_args::Machines;
use crate::commands::peak;
use crate::commands::report::{self, ReportForm};
use crate::commands::result_args::ResultArgs;
use crate::commands::retries;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::listeners::Listeners;
use crate::live::{self, Header, Style};
use crate::prepared::{PreparedWorkload, WorkloadOptions, prepare};
use crate::{hint, junit, leftovers, opened, output, requirement_listener, run_name, target, units};

pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    args.results.check()?;
    if (args.calibrate || args.peak.find_peak.is_some()) && args.results.form()? == ReportForm::Html {
        let why =
            anyhow!("the result of a calibration or of a search is text or JSON, and -o names an HTML file");
        return Err(Failure::usage(why)
            .hint("name it .json or .txt; a search leaves its page, peak.html, in the run directory"));
    }
    leftovers::clear();
    let target = target::choose(args)?;
    let wish = WorkloadOptions {
        workload: &args.workload,
        include: &args.include,
        rate: 1.0,
        overrides: Overrides {
            robot_http: args.robot_http,
            origin_http: args.origin_http,
            streams: args.streams,
            priorities: args.priorities,
            ..args.load.with_robots(args.robots)
        },
        // A search for a rate replaces the schedule; how long it may take is its own affair.
        rehearse: args.rehearse.filter(|_| !args.calibrate && args.peak.find_peak.is_none()),
        seed: args.seed,
        private_as_public: args.private_as_public,
        digest_requests: None,
        // Only once it is known that the plan can be carried.
        digest_later: true,
        threads: args.threads,
        remarks_on_bundled: false,
    };
    let prepared = prepare(&wish)?;
    for note in &prepared.notes {
        output::say(&format!("note: {note}"));
    }
    let mut plan = plan(args, target, &prepared)?;
    if let Some(longest) = args.wait_quiet
        && !wait_until_quiet(&mut plan, longest)?
    {
        output::eprint("interrupted before the start\n");
        return Ok(Exit::Interrupted);
    }
    opened::print_notice(&args.origin_listen, "request its objects from its origins", "--origin-listen");
    let machines = args.machines.connect("assay run")?;
    machines.iter().try_for_each(|machines| machines.take(&mut plan))?;
    // A calibration and a search find out by themselves how much can be carried.
    if !args.calibrate && args.peak.find_peak.is_none() {
        assay_lab::check_resources(&plan).map_err(Failure::usage)?;
    }
    plan.stream_digest = prepared.reseeded(&wish)?.stream_digest;
    if args.calibrate {
        return calibrate::calibrate(args, plan, machines.as_ref());
    }
    if let Some(promise) = &args.peak.find_peak {
        return peak::find(args, promise, plan);
    }
    retries::check(&plan.target, args.retries)?;
    warn_before_start(&mut plan)?;
    perform(plan, &args.results, args.retries, machines.as_ref())
}

/// Waits until the machine is quiet, and notes in the plan where it did not become so. False: it was interrupted.
fn wait_until_quiet(plan: &mut RunPlan, longest: Duration) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for the machine to be quiet")
        .map_err(Failure::failed)?;
    let wait = async {
        let mut interrupts =
            Interrupts::listen().context("cannot watch for Ctrl-C").map_err(Failure::failed)?;
        // Nothing is sent: the select below ends the wait.
        let (_stop_sender, mut stop) = watch::channel(false);
        let tell = |words: String| output::say(&words);
        let wait = assay_lab::quiet::wait(longest, &mut stop, tell);
        tokio::select! {
            not_quiet = wait => Ok(Some(not_quiet)),
            () = interrupts.next() => Ok(None),
        }
    };
    let Some(not_quiet) = runtime.block_on(wait)? else { return Ok(false) };
    if let Some(words) = not_quiet {
        output::say(&format!("warning: {words}"));
        plan.warnings.push(words);
    }
    Ok(true)
}

/// Runs a plan while the user watches, again while it is undecided (at most `retries` times, on machines that are taken anew), and
/// puts the result where the user wants it.
pub fn perform(
    mut plan: RunPlan,
    results: &ResultArgs,
    retries: u32,
    machines: Option<&Machines>,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the run")
        .map_err(Failure::failed)?;
    let ended = loop {
        let mut listeners = Listeners::default();
        let watching = results.watch.begin(&plan, &mut listeners, Style::choose(results.no_live))?;
        let ended = runtime.block_on(watched(plan.clone(), results, listeners))?;
        match &ended {
            RunEnd::Run(outcome, None) if retries::retry(&mut plan, outcome, retries, world())? => {
                machines.into_iter().try_for_each(|machines| machines.take(&mut plan))?;
            }
            _ => break (ended, watching),
        }
    };
    match ended {
        (RunEnd::Run(outcome, failed), watching) => {
            if let Some(words) = &failed {
                output::say(&format!("stopped: a requirement failed: {words}"));
            }
            // Ctrl-C while the report is being made ends serving it, not more.
            let listen =
                async { Interrupts::listen().context("cannot watch for Ctrl-C").map_err(Failure::failed) };
            let interrupts = runtime.block_on(listen)?;
            let exit = finish(results, &outcome, failed.is_some())?;
            if let Some(hint) = hint::after_run(&outcome.run_dir).filter(|_| results.shows_words()) {
                output::eprint(hint);
            }
            if let Some(watching) = watching {
                runtime.block_on(watching.end(interrupts));
            }
            Ok(exit)
        }
        (RunEnd::Early(words), _) => {
            output::say(&words);
            Ok(Exit::Interrupted)
        }
    }
}

/// Says, and keeps for the record, what may turn out to be too little; with what is known of the machines.
fn warn_before_start(plan: &mut RunPlan) -> Result<(), Failure> {
    let mut warnings = checks::warnings(&assay_lab::resource_needs(plan).map_err(Failure::usage)?);
    match assay_lab::experiment::calibrate::find(plan) {
        Ok(found) => plan.calibration = found,
        Err(error) => warnings.push(error.to_string()),
    }
    warnings.extend(assay_lab::experiment::calibrate::shortfall(plan));
    warnings.extend(links::left_out(plan));
    for warning in warnings {
        output::say(&format!("warning: {warning}"));
        plan.warnings.push(warning);
    }
    Ok(())
}

/// The result where the user wants it, and the exit code. `stopped`: a requirement ended the run.
fn finish(results: &ResultArgs, outcome: &RunOutcome, stopped: bool) -> Result<Exit, Failure> {
    let form = results.form()?;
    let summary = report::make(&outcome.run_dir, form, !results.no_report, results.output.as_deref())?;
    junit::of_run(results.junit.as_deref(), &summary)?;
    if outcome.verdict.partial && !stopped {
        return Ok(Exit::Interrupted);
    }
    Ok(match summary.conclusion() {
        RunConclusion::ServedNothing | RunConclusion::NothingMeasured => Exit::Failed,
        _ if stopped => Exit::Unmet,
        RunConclusion::Failed => Exit::Unmet,
        RunConclusion::Undecided => Exit::Undecided,
        RunConclusion::Fine => Exit::Fine,
    })
}

/// End of a run that began.
enum RunEnd {
    /// With the requirement that ended it, in words.
    Run(RunOutcome, Option<String>),
    /// By the user, and there is nothing to report; why, in words.
    Early(String),
}

/// Runs a plan, and all who want to know hear of it; Ctrl-C once ends it well, twice at once.
async fn watched(plan: RunPlan, results: &ResultArgs, mut listeners: Listeners) -> Result<RunEnd, Failure> {
    let mut interrupts = Interrupts::listen().context("cannot watch for Ctrl-C").map_err(Failure::failed)?;
    let (standings_sender, standings) = requirement_listener::channel();
    let required = plan.requirements.iter().filter_map(|text| text.parse().ok()).collect();
    let requirements = requirement_listener::listen(listeners.join(), required, standings_sender);
    let (key_sender, mut keys) = mpsc::unbounded_channel();
    let style = Style::choose(results.no_live);
    let view = live::watch(listeners.join(), header(&plan), standings.clone(), style, key_sender);
    let failed = requirement_listener::failed(standings);
    tokio::pin!(failed);
    let (event_sender, events) = mpsc::unbounded_channel();
    let (stop_sender, stop) = watch::channel(false);
    let run = assay_lab::run(plan, event_sender, stop);
    let all = async { tokio::join!(run, listeners.forward(events), requirements, view).0 };
    tokio::pin!(all);
    let mut requested_before = false;
    let mut failure = None;
    loop {
        tokio::select! {
            result = &mut all => return result.map(|outcome| RunEnd::Run(outcome, failure)).or_else(ended_badly),
            // Once the end has been requested, a failure does not request it again.
            words = &mut failed, if results.stop_on_failure && !requested_before => {
                failure = Some(words);
                requested_before = true;
                let _ = stop_sender.send(true);
            }
            // A key only requests a clean end; Ctrl-C is there for any other.
            Some(()) = keys.recv() => {
                requested_before = true;
                let _ = stop_sender.send(true);
            }
            () = interrupts.next() => {
                if requested_before {
                    return Ok(RunEnd::Early("quit at once; `assay report` reads what is in the run directory".into()));
                }
                requested_before = true;
                // The receiver is gone when the run has just ended; then there is nothing to stop.
                let _ = stop_sender.send(true);
            }
        }
    }
}

fn ended_badly(error: LabError) -> Result<RunEnd, Failure> {
    match error {
        LabError::Interrupted => Ok(RunEnd::Early(error.to_string())),
        error if error.before_start() => Err(Failure::usage(error)),
        error => Err(Failure::failed(error)),
    }
}

fn header(plan: &RunPlan) -> Header {
    Header {
        workload: plan.workload.name.clone(),
        target: plan.target.name(),
        robots: plan.workload.robot_count(),
        origins: plan.workload.origins.len() as u32,
        seed: plan.seed,
        rehearsal: plan.scale.is_some(),
        working_set: plan.timeline().ok().as_ref().and_then(assay_lab::run_info::working_set),
    }
}

/// Everything the lab needs to know.
pub fn plan(args: &RunArgs, target: TargetChoice, prepared: &PreparedWorkload) -> Result<RunPlan, Failure> {
    let exe = std::env::current_exe().context("cannot find the program itself").map_err(Failure::failed)?;
    let origins = prepared.workload.origins.len();
    if !args.origin_listen.is_empty() && args.origin_listen.len() != origins {
        let given = args.origin_listen.len();
        return Err(Failure::usage(anyhow!("--origin-listen is given {given} times for {origins} origins"))
            .hint("give it once for each origin of the workload, in its order (`assay check` lists them)"));
    }
    args.tls.check(args.robot_tls, args.origin_tls, prepared.workload.tls.as_ref())?;
    let capacity_scale = prepared.scale.filter(|_| args.scale_capacity).unwrap_or(1.0);
    let scaled = |bytes: u64| scaled(bytes, capacity_scale);
    let run_dir = match &args.results.run_dir {
        Some(path) => path.clone(),
        None => run_name::fresh(&prepared.workload.name, &target.name()),
    };
    let requirements = requirements(args, prepared)?;
    let needs_logs = needs_logs(&requirements);
    if needs_logs && !target.writes_access_log() {
        let name = target.name();
        return Err(Failure::usage(anyhow!(
            "`misreported` compares robots with the access log of the proxy, and Assay reads none of {name}"
        ))
        .hint("choose a proxy whose description (`assay proxies show NAME`) has an `access-log`"));
    }
    let network = links::bed(args, &target, &prepared.workload)?;
    let mut target = target;
    if let TargetChoice::Topology(topology) = &mut target {
        for cache in &mut topology.caches {
            (cache.memory_bytes, cache.disk_bytes) = (scaled(cache.memory_bytes), scaled(cache.disk_bytes));
        }
    }
    let mut plan = RunPlan {
        exe,
        assay_version: env!("CARGO_PKG_VERSION").into(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        workload: (*prepared.workload).clone(),
        sources: prepared.sources.clone(),
        scale: prepared.scale,
        overrides: prepared.overrides,
        explained: prepared.explained.clone(),
        stream_digest: prepared.stream_digest.clone(),
        stream_digest_requests: prepared.stream_digest_requests,
        seed: args.seed,
        world: world(),
        private_as_public: args.private_as_public,
        run_dir: absolute(&run_dir)?,
        tries: 1,
        target,
        own_target: args.i_own_this_target,
        memory_bytes: scaled(args.memory),
        disk_bytes: scaled(args.disk),
        limits: Limits { cpus: args.cpu_quota, memory_bytes: args.memory_limit },
        settings: args.settings.iter().cloned().collect(),
        threads: args.threads.unwrap_or(0),
        timeout: args.timeout,
        tls: args.tls.plan(args.robot_tls, args.origin_tls, prepared.workload.tls.as_ref()),
        part: RunPart::Whole,
        start_at: None,
        xact_log: args.xact_log || needs_logs,
        trace_disk: args.trace_disk,
        watched: args.watch.clone().map(|processes| WatchPlan { processes, store: args.watch_store.clone() }),
        robot_sources: Vec::new(),
        origin_listen: (!args.origin_listen.is_empty()).then(|| args.origin_listen.clone()),
        network,
        pin: !args.no_pin,
        robot_cpus: cpus(&args.robot_cpus),
        origin_cpus: cpus(&args.origin_cpus),
        proxy_cpus: cpus(&args.proxy_cpus),
        spin: args.spin.unwrap_or_default(),
        realtime: args.realtime,
        calibration: None,
        temp_dir: None,
        requirements,
        warnings: prepared.warnings.clone(),
        conform: with_conform(&args.with_conform)?,
        remote: None,
    };
    plan.apply_settings().map_err(Failure::usage)?;
    Ok(plan)
}

/// Requirements of the workload and the command line, each once.
fn requirements(args: &RunArgs, prepared: &PreparedWorkload) -> Result<Vec<String>, Failure> {
    let workload = &prepared.workload;
    let mut all = workload.requirements.clone();
    for required in args.results.require.iter().chain(&args.results.allow) {
        let names = workload.schedule.phases.iter().map(|phase| phase.name.as_str());
        required.check_phase(names).map_err(|error| Failure::usage(anyhow!("--require: {error}")))?;
        all.push(required.text().to_owned());
    }
    let mut known = BTreeSet::new();
    all.retain(|text| known.insert(text.clone()));
    Ok(all)
}

/// One of them is decided by what robots and the proxy's log say of each request.
fn needs_logs(requirements: &[String]) -> bool {
    requirements.iter().any(|text| text.parse().is_ok_and(|required: Requirement| required.needs_logs()))
}

/// Conformance cases to try beside the load.
pub fn with_conform(chosen: &[String]) -> Result<Option<ConformPlan>, Failure> {
    if chosen.is_empty() {
        return Ok(None);
    }
    let cases = Suite::bundled().and_then(|suite| suite.chosen(chosen)).map_err(Failure::usage)?;
    let plan = ConformPlan::new(chosen, &cases);
    let plan = plan.ok_or_else(|| {
        let why =
            anyhow!("--with-conform: no case of {} can be tried beside other requests", chosen.join(", "));
        Failure::usage(why)
            .hint("cases that may upset connections have an instance of their own: `assay conform`")
    });
    plan.map(Some)
}

/// Processors that were named; none: empty.
fn cpus(named: &Option<units::Cpus>) -> Vec<u32> {
    named.as_ref().map(|cpus| cpus.0.clone()).unwrap_or_default()
}

/// A capacity of a rehearsal: in whole megabytes, as some proxies take it in steps.
fn scaled(bytes: u64, scale: f64) -> u64 {
    const MEGABYTE: f64 = 1_048_576.0;
    if scale == 1.0 || bytes == 0 {
        return bytes;
    }
    ((bytes as f64 * scale / MEGABYTE).round().max(1.0) * MEGABYTE) as u64
}

/// Roles and proxies are started elsewhere: their paths must not depend on where we are.
fn absolute(path: &Path) -> Result<std::path::PathBuf, Failure> {
    std::path::absolute(path)
        .with_context(|| format!("cannot make sense of the path {}", path.display()))
        .map_err(Failure::usage)
}

/// A tag for this run's URLs, so that a cache that was not emptied gives no hits.
fn world() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_capacity_is_whole_megabytes_and_none_stays_none() {
        assert_eq!(scaled(1 << 30, 1.0 / 6.0), 171 << 20);
        assert_eq!(scaled(1 << 20, 1e-3), 1 << 20);
        assert_eq!(scaled(1000, 1.0), 1000);
        assert_eq!(scaled(0, 0.5), 0);
    }
}
