//! `assay webstone`: a growing number of clients that send requests from a file list without a pause.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use assay_cluster::simulate::OfferedLoad;
use assay_load::node::ModelClock;
use assay_load::node::clients::{
    ClientShare, ClientsOutcome, ClientsSpec, ClientsTarget, run_unless as request,
};
use assay_load::node::webstone::{FileList, Testbed, file_list, testbed};
use assay_protocol::network::is_private;
use assay_record::cluster::{ClusterPoint, ClusterResult, Labels, Origin, PointSum, SCHEMA};
use assay_record::cluster_parts::Part;
use assay_report::policies::services_text;
use clap::Args;
use tokio::sync::watch;

use super::by_hand::start_time;
use super::client_counts::{ClientCounts, client_counts, range};
use super::policies::{LiveVerdict, Results};
use crate::exit::{Exit, Failure};
use crate::target::{no_url, reachable};
use crate::{interrupt, output, units};

const EXAMPLES: &str = "\
Examples:
  assay webstone filelist.standard --to 127.0.0.1:8080 \\
    --clients '2..20 by 2' --time 60s
  assay webstone filelist.6040 --testbed testbed
      WebStone's own settings: MINCLIENTS, TIMEPERRUN, SERVER…
  assay webstone filelist.6040 --to 127.0.0.1:8080 --label cap \\
    --json -o cap.json
  assay webstone filelist.6040 --testbed testbed --part web2 \\
    --start-at 1893456000 --json -o web2.json
      the clients of one of the testbed's machines; `assay merge` adds them";
/// A client gives a request up after this.
const TIMEOUT: Duration = Duration::from_secs(60);
/// WebStone's own numbers, where nothing else is said.
const CLIENTS: (u32, u32, u32) = (2, 20, 2);
const ITERATIONS: u32 = 3;
const TIME: Duration = Duration::from_secs(60);
const HTTP: u16 = 80;
/// Client machines; more than any network has.
const MOST_PARTS: u32 = 10_000;

/// Flags of `assay webstone`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WebstoneArgs {
    /// A WebStone file list: lines like `/file500.html 350 #500`
    #[arg(value_name = "FILELIST")]
    pub list: PathBuf,
    /// The server or switch under test, host:port
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<String>,
    /// WebStone's testbed file: MINCLIENTS, MAXCLIENTS, CLIENTINCR, ITERATIONS, TIMEPERRUN, SERVER, PORTNO
    #[arg(long, value_name = "FILE")]
    pub testbed: Option<PathBuf>,
    /// Numbers of clients: 8, or 2,4,8, or `2..20 by 2` (which is the default)
    #[arg(long, value_name = "N", value_parser = client_counts)]
    pub clients: Option<ClientCounts>,
    /// Runs of each number of clients [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub iterations: Option<u32>,
    /// Length of each run [default: 60s]
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    pub time: Option<Duration>,
    /// Time before each that is not counted; WebStone has none
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    pub warm_up: Option<Duration>,
    /// Seed of what is requested; iteration r has this plus r − 1, unless the testbed says FIXED_RANDOM_SEED=true
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Clients use their connections again, as WebStone's do not
    #[arg(long)]
    pub keep_alive: bool,
    /// Run the share of one of several client machines: its name in CLIENTS of the testbed, or `2/3`; `assay merge` adds the results
    #[arg(long, value_name = "NAME|K/N", requires = "start_at")]
    pub part: Option<String>,
    /// With --part: when the first run begins, the same for all parts: a Unix time in seconds, or from now, like +10s
    #[arg(long, value_name = "TIME", value_parser = start_time, requires = "part")]
    pub start_at: Option<u64>,
    /// What is under test, for tables and comparisons
    #[arg(long, value_name = "NAME", default_value = "server")]
    pub label: String,
    /// You may load a server with a public address: it is yours
    #[arg(long)]
    pub i_own_this_target: bool,
    #[command(flatten)]
    pub results: Results,
}

/// Plan of the whole benchmark.
struct BenchmarkPlan {
    list: FileList,
    to: SocketAddr,
    host: String,
    client_counts: ClientCounts,
    iterations: u32,
    time_s: f64,
    /// All iterations request the same.
    fixed_seed: bool,
    /// The part that is run here; none: all of it.
    part: Option<Part>,
}

/// Time between the runs of parts, which begin at fixed times: none may still be at the one before.
const BETWEEN_PARTS_S: f64 = 1.0;

/// Runs all numbers of clients, as often as is wanted.
pub fn webstone(args: &WebstoneArgs) -> Result<Exit, Failure> {
    let plan = plan(args)?;
    args.results.check()?;
    reachable(plan.to)?;
    let stop = interrupt::noticed().context("cannot watch for Ctrl-C").map_err(Failure::failed)?;
    let mut sums: Vec<PointSum> = plan.client_counts.0.iter().map(|_| PointSum::default()).collect();
    let mut verdict = LiveVerdict::default();
    let complete = all(args, &plan, &mut sums, &mut verdict, &stop)?;
    if !complete && sums.iter().all(PointSum::is_empty) {
        output::eprint("interrupted before the first run was complete; nothing was measured\n");
        return Ok(Exit::Interrupted);
    }
    args.results.show_with(&result(args, &plan, &sums), services_text)?;
    if complete {
        return Ok(verdict.conclude());
    }
    output::eprint("interrupted; runs that were complete are told\n");
    Ok(Exit::Interrupted)
}

/// All runs. False: somebody wanted an end before.
fn all(
    args: &WebstoneArgs,
    plan: &BenchmarkPlan,
    sums: &mut [PointSum],
    verdict: &mut LiveVerdict,
    stop: &watch::Receiver<bool>,
) -> Result<bool, Failure> {
    // As WebStone does: all numbers of clients, then all of them again.
    let mut number = 0;
    for iteration in 0..plan.iterations {
        for (clients, sum) in plan.client_counts.0.iter().zip(&mut *sums) {
            if let Some(part) = plan.part
                && !wait_for_run(args, plan, part, number, stop.clone())?
            {
                return Ok(false);
            }
            number += 1;
            let Some(outcome) = once(args, plan, *clients, iteration, stop.clone())? else {
                return Ok(false);
            };
            print_progress(plan, *clients, iteration, &outcome);
            verdict.add(&outcome);
            sum.add(&outcome.tally, plan.time_s);
        }
    }
    Ok(true)
}

/// Waits until all parts begin their run of this number. False: somebody wanted an end before.
fn wait_for_run(
    args: &WebstoneArgs,
    plan: &BenchmarkPlan,
    part: Part,
    number: u32,
    mut stop: watch::Receiver<bool>,
) -> Result<bool, Failure> {
    let each_s = warm_up_s(args) + plan.time_s + BETWEEN_PARTS_S;
    let at = Duration::from_secs(part.start_at_unix_s) + Duration::from_secs_f64(each_s * f64::from(number));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if now > at + Duration::from_secs_f64(BETWEEN_PARTS_S) {
        let failure = anyhow!("run {} of this part could not begin in time with the others", number + 1);
        return Err(
            Failure::failed(failure).hint("give all parts a later --start-at; this machine may be too busy")
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .context("cannot wait for the start")
        .map_err(Failure::failed)?;
    Ok(runtime.block_on(async {
        tokio::select! {
            () = tokio::time::sleep(at.saturating_sub(now)) => true,
            () = interrupt::requested(&mut stop) => false,
        }
    }))
}

/// The part that is meant: a machine of the testbed, or a number of several.
fn part(named: &str, start_at: u64, machines: &[String]) -> Result<Part, Failure> {
    let counted =
        named.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    let place = machines.iter().position(|machine| machine == named);
    let found = counted.or_else(|| place.map(|place| (place as u32 + 1, machines.len() as u32)));
    match found {
        Some((number, of)) if (1..=of).contains(&number) && of <= MOST_PARTS => {
            Ok(Part { number, of, start_at_unix_s: start_at })
        }
        Some(_) => {
            Err(Failure::usage(anyhow!("--part {named}: write it like 2/3, with 1 to {MOST_PARTS} parts")))
        }
        None if machines.is_empty() => {
            let failure = anyhow!("--part {named} is no machine: the testbed has no CLIENTS");
            Err(Failure::usage(failure).hint("name it by number, like --part 2/3"))
        }
        None => Err(Failure::usage(anyhow!("--part {named} is not among CLIENTS: {}", machines.join(", ")))),
    }
}

fn warm_up_s(args: &WebstoneArgs) -> f64 {
    args.warm_up.map_or(0.0, |time| time.as_secs_f64())
}

fn plan(args: &WebstoneArgs) -> Result<BenchmarkPlan, Failure> {
    let text = read(&args.list)?;
    let in_file = |path: &Path, mistake: String| Failure::usage(anyhow!("{}, {mistake}", path.display()));
    let list = file_list(&text).map_err(|mistake| in_file(&args.list, mistake.to_string()))?;
    let bed = match &args.testbed {
        Some(path) => testbed(&read(path)?).map_err(|mistake| in_file(path, mistake.to_string()))?,
        None => Testbed::default(),
    };
    if !bed.ignored.is_empty() {
        output::say(&format!("passed over: {}", bed.ignored.join(", ")));
    }
    if bed.clients.len() > 1 && args.part.is_none() {
        output::eprint(&format!(
            "note: CLIENTS names {} machines, and all clients run on this one; --part runs the share of one\n",
            bed.clients.len()
        ));
    }
    let (first, last, step) = CLIENTS;
    let first = bed.min_clients.unwrap_or(first);
    let counted =
        range(first, bed.max_clients.unwrap_or(last.max(first)), bed.client_increment.unwrap_or(step));
    let client_counts = args.clients.clone().unwrap_or(counted);
    if client_counts.0.is_empty() {
        return Err(Failure::usage(anyhow!("MAXCLIENTS is less than MINCLIENTS: there are no clients")));
    }
    let minutes = bed.minutes_per_run.map(|minutes| minutes * 60.0);
    let host = match (&args.to, &bed.server) {
        (Some(to), _) => to.clone(),
        (None, Some(server)) => format!("{server}:{}", bed.port.unwrap_or(HTTP)),
        (None, None) => {
            let failure = anyhow!("nobody says where the server is");
            return Err(Failure::usage(failure).hint("say --to 127.0.0.1:8080, or a --testbed with SERVER"));
        }
    };
    let to = resolve(&host)?;
    if !is_private(to.ip()) && !args.i_own_this_target {
        let failure = anyhow!("{to} is a public address");
        return Err(Failure::usage(failure).hint("if it is yours, say so with --i-own-this-target"));
    }
    let time_s = args.time.map(|time| time.as_secs_f64()).or(minutes).unwrap_or(TIME.as_secs_f64());
    let iterations = args.iterations.or(bed.iterations).unwrap_or(ITERATIONS);
    let fixed_seed = bed.fixed_seed.unwrap_or(false);
    let part = match (&args.part, args.start_at) {
        (Some(named), Some(start_at)) => Some(part(named, start_at, &bed.clients)?),
        _ => None,
    };
    Ok(BenchmarkPlan { list, to, host, client_counts, iterations, time_s, fixed_seed, part })
}

fn read(path: &Path) -> Result<String, Failure> {
    let attempt = || format!("cannot read {}", path.display());
    assay_base::files::text(path, assay_base::files::SETTINGS_MAX)
        .with_context(attempt)
        .map_err(Failure::usage)
}

fn resolve(name: &str) -> Result<SocketAddr, Failure> {
    no_url(name)?;
    let with_port = if name.contains(':') { name.to_owned() } else { format!("{name}:{HTTP}") };
    let found = with_port
        .to_socket_addrs()
        .with_context(|| format!("{name} has no address"))
        .map_err(Failure::usage)?
        .next();
    found.ok_or_else(|| Failure::usage(anyhow!("{name} has no address")))
}

/// One run of so many clients; none: it was interrupted.
fn once(
    args: &WebstoneArgs,
    plan: &BenchmarkPlan,
    clients: u32,
    iteration: u32,
    mut stop: watch::Receiver<bool>,
) -> Result<Option<ClientsOutcome>, Failure> {
    let further = if plan.fixed_seed { 0 } else { u64::from(iteration) };
    let spec = ClientsSpec {
        services: plan.list.services.clone(),
        weights: plan.list.weights.clone(),
        seed: args.seed.wrapping_add(further),
        load: OfferedLoad::Clients(clients),
        share: plan.part.map_or(ClientShare::ALL, |part| ClientShare { first: part.number - 1, of: part.of }),
        target: ClientsTarget::One(plan.to),
        host: Some(plan.host.clone()),
        keep_alive: args.keep_alive,
        warm_up_s: warm_up_s(args),
        measure_s: plan.time_s,
        surroundings: None,
        check_sizes: true,
        timeout: TIMEOUT,
        clock: ModelClock::now_at(1.0),
    };
    request(spec, interrupt::requested(&mut stop)).map_err(Failure::failed)
}

fn print_progress(plan: &BenchmarkPlan, clients: u32, iteration: u32, outcome: &ClientsOutcome) {
    let per_s = |count: u64| count as f64 / plan.time_s;
    let megabits = per_s(outcome.tally.body_bytes()) * 8.0 / 1e6;
    output::eprint(&format!(
        "{}/{}: {clients} clients: {:.1} responses/s over {:.1} connections/s, {megabits:.2} Mbit/s, {} failed\n",
        iteration + 1,
        plan.iterations,
        per_s(outcome.tally.count()),
        per_s(outcome.connections),
        outcome.tally.failures()
    ));
    for (kind, count) in &outcome.failures {
        output::say(&format!("  {count} × {kind}"));
    }
}

fn result(args: &WebstoneArgs, plan: &BenchmarkPlan, sums: &[PointSum]) -> ClusterResult {
    let name = args.list.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let services: Vec<String> = plan.list.services.iter().map(|file| file.name.clone()).collect();
    let point = |(clients, sum): (&u32, &PointSum)| {
        let labels = Labels {
            mix: name.clone(),
            cluster: plan.host.clone(),
            policy: args.label.clone(),
            clients: Some(*clients),
            ..Labels::default()
        };
        let histograms = plan.part.map(|_| sum.histograms(&services));
        ClusterPoint { histograms, ..sum.point(labels, &services) }
    };
    ClusterResult {
        schema: SCHEMA.into(),
        origin: Origin::Measured,
        name: args.label.clone(),
        title: format!("WebStone: {name}"),
        extends: None,
        part: plan.part,
        seed: args.seed,
        repetitions: plan.iterations,
        warm_up_s: warm_up_s(args),
        measure_s: plan.time_s,
        points: plan.client_counts.0.iter().zip(sums).filter(|(_, sum)| !sum.is_empty()).map(point).collect(),
    }
}
