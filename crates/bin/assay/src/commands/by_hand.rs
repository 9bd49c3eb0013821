//! `assay robots` and `assay origins`: one part of a run, for use by hand on several machines.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use assay_lab::units::LinkChoice;
use assay_lab::{Mode, RunPart, RunPlan, TargetChoice};
use assay_workload::rehearse::Rehearsal;
use clap::Args;

use super::links;
use super::result_args::ResultArgs;
use super::run::{self, RunArgs};
use crate::exit::{Exit, Failure};
use crate::overrides::{self, LoadArgs};
use crate::prepared::{PreparedWorkload, WorkloadOptions, prepare};
use crate::{opened, output, run_name, units};

const WHAT: &str = "What";
const WHERE: &str = "Where";
const RECORD: &str = "Results";

const ALL_TOGETHER: &str = "\
All parts of a run are given the same workload, --seed, --world, --rehearse, --duration, --rate, --all-robots and --start-at; then robots request the same \
objects, and origins make the same ones, as in a run on one machine. The clocks of the machines must agree to well \
within a second (ntpd, chrony).";

const ROBOTS_EXAMPLES: &str = "\
Examples:
  start=$(( $(date +%s) + 30 ))   once, for all machines
  assay robots image.pg --robots 0-499 --proxy 10.1.2.3:80 --start-at $start
  assay robots image.pg --robots 500-999 --proxy 10.1.2.3:80 --start-at $start
  assay robots image.pg --origin 10.1.2.9:9000-9003 --start-at +10s
      all robots, without a proxy";

const ORIGINS_EXAMPLES: &str = "\
Examples:
  assay origins image.pg --listen 10.1.2.9:9000-9003 --start-at $start
  assay origins image.pg --origins 0-1 --listen 10.1.2.9:9000-9001 \\
    --start-at $start
      half of them; the others on another machine";

/// What all parts of a run must agree on.
#[derive(Debug, Args)]
pub struct PartGroup {
    /// A PGL file, `-` for standard input, or the name of a bundled workload (`assay workloads`)
    pub workload: String,
    /// When the schedule begins, the same for all parts: a Unix time in seconds, or from now, like +10s
    #[arg(long, value_name = "TIME", value_parser = start_time, help_heading = WHAT)]
    pub start_at: u64,
    /// Seed of all that is random
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = WHAT)]
    pub seed: u64,
    /// Tag of this run's URLs; another one for each run against a cache that was not emptied [default: from the seed]
    #[arg(long, value_name = "N", help_heading = WHAT)]
    pub world: Option<u32>,
    /// Compress the whole schedule into DUR, or to a SHARE of it like 5%: durations, volumes and counts shrink, rates and sizes
    /// stay
    #[arg(long, value_name = "DUR|SHARE", value_parser = overrides::rehearsal, help_heading = WHAT)]
    pub rehearse: Option<Rehearsal>,
    /// The number of robots of the whole run, as `assay run --robots` sets it
    #[arg(long, value_name = "N", value_parser = overrides::robots, allow_negative_numbers = true, help_heading = WHAT)]
    pub all_robots: Option<u32>,
    /// Length and rate.
    #[command(flatten, next_help_heading = WHAT)]
    pub load: LoadArgs,
    /// Treat private interests as public ones, as Web Polygraph does since 3.6
    #[arg(long, help_heading = WHAT)]
    pub private_as_public: bool,
    /// Look for included files in DIR too
    #[arg(short = 'I', long = "include", value_name = "DIR", help_heading = WHAT)]
    pub include: Vec<PathBuf>,

    /// Where the result goes.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Worker threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}

/// Flags of `assay robots`.
#[derive(Debug, Args)]
#[command(after_help = format!("{ROBOTS_EXAMPLES}\n\n{ALL_TOGETHER}"))]
pub struct RobotsArgs {
    /// What all parts agree on.
    #[command(flatten)]
    pub together: PartGroup,
    /// Which robots run here, counted from 0 [default: all]
    #[arg(long, value_name = "FIRST-LAST", value_parser = range, help_heading = WHAT)]
    pub robots: Option<(u32, u32)>,
    /// The proxy under test; without it, robots speak to the origins themselves
    #[arg(long, value_name = "HOST:PORT", help_heading = WHERE)]
    pub proxy: Option<String>,
    /// Speak to it as a forward proxy: requests carry whole URLs
    #[arg(long, requires = "proxy", help_heading = WHERE)]
    pub forward: bool,
    /// Where the origins listen, in the workload's order: HOST:PORT for one, HOST:FIRST-LAST for several
    #[arg(long, value_name = "ADDR", value_parser = addresses, help_heading = WHERE)]
    pub origin: Vec<Addresses>,
    /// You may load a target with a public address: it is yours
    #[arg(long, help_heading = WHERE)]
    pub i_own_this_target: bool,
    /// A response that is not complete after DUR is an error
    #[arg(long, value_name = "DUR", default_value = "60s", value_parser = units::duration, help_heading = WHAT)]
    pub timeout: Duration,
    /// Record every single request (Parquet)
    #[arg(long, help_heading = RECORD)]
    pub xact_log: bool,
}

/// Flags of `assay origins`.
#[derive(Debug, Args)]
#[command(after_help = format!("{ORIGINS_EXAMPLES}\n\n{ALL_TOGETHER}"))]
pub struct OriginsArgs {
    /// What all parts agree on.
    #[command(flatten)]
    pub together: PartGroup,
    /// Which origins run here, counted from 0 [default: all]
    #[arg(long, value_name = "FIRST-LAST", value_parser = range, help_heading = WHAT)]
    pub origins: Option<(u32, u32)>,
    /// Where they listen, in the workload's order: HOST:PORT for one, HOST:FIRST-LAST for several
    #[arg(long, value_name = "ADDR", value_parser = addresses, required = true, help_heading = WHERE)]
    pub listen: Vec<Addresses>,
    /// How long they stay after the schedule's end; Ctrl-C ends them sooner
    #[arg(long, value_name = "DUR", default_value = "15s", value_parser = units::duration, help_heading = WHAT)]
    pub linger: Duration,
}

/// Addresses that were given in one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses(pub Vec<SocketAddr>);

pub fn robots(args: &RobotsArgs) -> Result<Exit, Failure> {
    let together = &args.together;
    together.results.check()?;
    let prepared = prepared(together)?;
    let (count, origins) = (prepared.workload.robot_count(), prepared.workload.origins.len());
    let (first, last) = args.robots.unwrap_or((0, count.saturating_sub(1)));
    if last >= count {
        return Err(Failure::usage(anyhow!("--robots {first}-{last}: the workload has {count} robots"))
            .hint(format!("they are counted from 0: the last is {}", count.saturating_sub(1))));
    }
    let target = match &args.proxy {
        None => TargetChoice::Direct,
        Some(proxy) => TargetChoice::Running {
            address: crate::target::resolve(proxy)?,
            mode: if args.forward { Mode::Forward } else { Mode::Reverse },
        },
    };
    let given = flat(&args.origin);
    let needs = !matches!(target, TargetChoice::Running { mode: Mode::Reverse, .. });
    if (needs || !given.is_empty()) && given.len() != origins {
        let seen = given.len();
        return Err(Failure::usage(anyhow!("--origin gives {seen} addresses for {origins} origins"))
            .hint("give one for each origin of the workload, in its order (`assay check` lists them)"));
    }
    let mut plan = plan(together, target, &prepared, "robots")?;
    let mut phases = prepared.workload.schedule.phases.iter();
    if phases.any(|phase| phase.thermostat.is_some() || phase.script.is_some()) {
        plan.warnings.push(
            "the load adapts in this workload, and robots on other machines adapt by themselves: parts of one run \
             drift apart"
                .into(),
        );
    }
    plan.part = RunPart::Robots { first, last };
    plan.origin_listen = (!given.is_empty()).then_some(given);
    plan.own_target = args.i_own_this_target;
    (plan.timeout, plan.xact_log) = (args.timeout, args.xact_log);
    perform(together, plan)
}

pub fn origins(args: &OriginsArgs) -> Result<Exit, Failure> {
    let together = &args.together;
    together.results.check()?;
    let prepared = prepared(together)?;
    let count = prepared.workload.origins.len() as u32;
    let (first, last) = args.origins.unwrap_or((0, count.saturating_sub(1)));
    if last >= count {
        return Err(Failure::usage(anyhow!("--origins {first}-{last}: the workload has {count} origins"))
            .hint(format!("they are counted from 0: the last is {}", count.saturating_sub(1))));
    }
    let (listen, wanted) = (flat(&args.listen), (last - first + 1) as usize);
    if listen.len() != wanted {
        let seen = listen.len();
        return Err(Failure::usage(anyhow!("--listen gives {seen} addresses for {wanted} origins"))
            .hint(format!("several ports of one address are written HOST:9000-{}", 8_999 + wanted)));
    }
    let names = prepared.workload.origins.iter().skip(first as usize);
    for (origin, address) in names.zip(&listen) {
        output::say(&format!("origin {} listens at {address}", origin.authority));
    }
    opened::print_notice(&listen, "request its objects from its origins", "--listen");
    let mut plan = plan(together, TargetChoice::Direct, &prepared, "origins")?;
    // Origins are numbered in 16 bits; compiling the workload has checked it.
    plan.part = RunPart::Origins { first: first as u16, last: last as u16, linger: args.linger };
    plan.origin_listen = Some(listen);
    // Origins see nothing of what is required.
    plan.requirements.clear();
    perform(together, plan)
}

fn prepared(together: &PartGroup) -> Result<PreparedWorkload, Failure> {
    prepare(&WorkloadOptions {
        workload: &together.workload,
        include: &together.include,
        rehearse: together.rehearse,
        rate: 1.0,
        overrides: together.load.with_robots(together.all_robots),
        seed: together.seed,
        private_as_public: together.private_as_public,
        digest_requests: None,
        digest_later: false,
        threads: together.threads,
        remarks_on_bundled: false,
    })
}

/// Plan of a part, as far as it is that of a whole run.
fn plan(
    together: &PartGroup,
    target: TargetChoice,
    prepared: &PreparedWorkload,
    part: &str,
) -> Result<RunPlan, Failure> {
    let mut plan = run::plan(&run_args(together, part, prepared)?, target, prepared)?;
    // From the seed alone: the same for all parts without a word.
    plan.world = together.world.unwrap_or((together.seed ^ together.seed >> 32) as u32);
    plan.start_at = Some(together.start_at);
    plan.warnings.extend(links::left_out_of_part(&prepared.workload));
    Ok(plan)
}

/// The flags of a whole run that a part has too.
fn run_args(together: &PartGroup, part: &str, prepared: &PreparedWorkload) -> Result<RunArgs, Failure> {
    let plain = RunArgs::plain(&together.workload).context("flags of a run").map_err(Failure::failed)?;
    let run_dir = together.results.run_dir.clone();
    let run_dir = Some(run_dir.unwrap_or_else(|| run_name::fresh(&prepared.workload.name, part)));
    Ok(RunArgs {
        seed: together.seed,
        private_as_public: together.private_as_public,
        results: ResultArgs { run_dir, ..together.results.clone() },
        threads: together.threads,
        robot_link: Some(LinkChoice::Off),
        origin_link: Some(LinkChoice::Off),
        ..plain
    })
}

fn perform(together: &PartGroup, plan: RunPlan) -> Result<Exit, Failure> {
    for warning in &plan.warnings {
        output::say(&format!("warning: {warning}"));
    }
    run::perform(plan, &together.results, 0, None)
}

fn flat(given: &[Addresses]) -> Vec<SocketAddr> {
    given.iter().flat_map(|addresses| addresses.0.iter().copied()).collect()
}

/// Reads `0-499`, or `7` for one.
fn range(text: &str) -> Result<(u32, u32), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        text.trim().parse::<u32>().map_err(|_| format!("`{text}` is no number; write a range like 0-499"))
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err(format!("`{text}` goes backwards")) } else { Ok((first, last)) }
}

/// Reads `HOST:PORT` or `HOST:FIRST-LAST`.
fn addresses(text: &str) -> Result<Addresses, String> {
    let example = "write it like 10.1.2.3:9000 or 10.1.2.3:9000-9003";
    let (host, ports) = text.rsplit_once(':').ok_or_else(|| format!("`{text}` has no port; {example}"))?;
    let (first, last) = range(ports).map_err(|error| format!("{error}; {example}"))?;
    if last > u32::from(u16::MAX) {
        return Err(format!("`{ports}` is no port; {example}"));
    }
    let resolve = |port: u32| {
        let found = (host.trim_matches(['[', ']']), port as u16).to_socket_addrs().map(|mut all| all.next());
        found.ok().flatten().ok_or_else(|| format!("`{host}` has no address; {example}"))
    };
    (first..=last).map(resolve).collect::<Result<_, _>>().map(Addresses)
}

/// Reads a Unix time in seconds, or `+10s`: the first whole second so long from now.
pub fn start_time(text: &str) -> Result<u64, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match text.strip_prefix('+') {
        Some(after) => {
            let at = now + units::duration(after).map_err(|error| error.to_string())?;
            Ok(at.as_secs() + u64::from(at.subsec_nanos() > 0))
        }
        None => match text.parse::<u64>() {
            Ok(at) if at > now.as_secs() => Ok(at),
            Ok(_) => Err(format!("`{text}` has passed; now is {}", now.as_secs())),
            Err(_) => Err("write a Unix time in seconds (`date +%s`), or one from now like +10s".into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_with_a_hyphen_and_one_alone_is_a_range() {
        assert_eq!(range("0-499"), Ok((0, 499)));
        assert_eq!(range("7"), Ok((7, 7)));
        for wrong in ["", "9-3", "a-b", "1-", "-1"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn several_ports_of_one_address_are_several_addresses() {
        let ports = |text| addresses(text).map(|all| all.0.iter().map(|a| a.port()).collect::<Vec<_>>());
        assert_eq!(ports("127.0.0.1:9000"), Ok(vec![9000]));
        assert_eq!(ports("127.0.0.1:9000-9002"), Ok(vec![9000, 9001, 9002]));
        assert_eq!(ports("[::1]:80"), Ok(vec![80]));
        for wrong in ["127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:9-8"] {
            assert!(addresses(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_start_is_ahead() {
        let now_s = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let now = now_s();
        assert!(start_time("+5s").is_ok_and(|at| (now + 5..=now_s() + 6).contains(&at)));
        assert_eq!(start_time(&(now + 100).to_string()), Ok(now + 100));
        assert!(start_time("1000").is_err_and(|why| why.contains("has passed")));
        assert!(start_time("soon").is_err());
    }
}
