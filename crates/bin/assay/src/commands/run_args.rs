//! The command line of `assay run`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use assay_lab::units::LinkChoice;
use assay_lab::watched_processes::ProcessSelector;
use assay_workload::model::HttpVersion;
use assay_workload::overrides::MOST_STREAMS;
use assay_workload::rehearse::Rehearsal;
use clap::{Args, FromArgMatches};

use super::machines_args::MachinesArgs;
use super::peak::PeakArgs;
use super::result_args::ResultArgs;
use super::tls_args::{TlsArgs, on_or_off};
use crate::overrides::{self, LoadArgs};
use crate::units;

const TARGET: &str = "Target";
const LOAD: &str = "Workload";
const NETWORK: &str = "Network";
const RECORD: &str = "Results";
const MACHINES: &str = "Several machines";
const MACHINE: &str = "This machine";

const EXAMPLES: &str = "\
Examples:
  assay run demo
  assay run image.pg --proxy varnish --memory 256MB
  assay run image.pg --proxy nginx --rehearse 60s --json -o nginx.json
  assay run image.pg --duration 30s --rate 200 --robots 50
      a first look: half a minute of constant load
  assay run image.pg --proxy squid --set replacement=heap-lfuda
  assay run image.pg --proxy 10.1.2.3:8080 --forward \\
    --origin-listen 10.1.2.4:9000
  assay run image.pg --robot-link delay=40ms,loss=0.05% \\
    --origin-link delay=5ms,rate=100Mbit/s
  assay run image.pg --proxy haproxy --robot-tls --tls-resumption 0.5
      TLS between robots and HAProxy, half of the connections resumed
  assay run image.pg --proxy varnish --with-conform stale
      does it keep the rules on stale responses while it is busy?
  assay run image.pg --calibrate   what can this machine offer for it at all?
  assay run image.pg --proxy nginx \\
    --find-peak 'p99(hit) < 20ms, errors < 0.1%'
      the highest rate at which nginx keeps that
  assay run image.pg --proxy varnish --fleet nats://10.0.0.1:4222 \\
    --robots-on load --proxy-on cache --origins-on load
      on the machines of a fleet (`assay fleet`)

The first Ctrl-C stops the run and reports what there is; the second quits at once.";

/// Flags of `assay run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// A PGL file, `-` for standard input, or the name of a bundled workload (`assay workloads`)
    pub workload: String,

    /// What to test: `builtin`, `direct` (nothing), a name from `assay proxies`, a description FILE.toml, or
    /// the HOST:PORT of one that is already running
    #[arg(long, value_name = "TARGET", default_value = "builtin", conflicts_with = "direct", help_heading = TARGET)]
    pub proxy: String,
    /// Robots speak to the origins themselves, like `--proxy direct`
    #[arg(long, help_heading = TARGET)]
    pub direct: bool,
    /// Test caches that work together, which FILE.toml describes (docs/reference/experiments.md); --proxy, --memory,
    /// --disk and --set hold for those that do not say otherwise
    #[arg(long, value_name = "FILE.toml", conflicts_with = "direct", help_heading = TARGET)]
    pub topology: Option<PathBuf>,
    /// Speak to it as a reverse proxy, which stands for the origins (the default)
    #[arg(long, conflicts_with = "forward", help_heading = TARGET)]
    pub reverse: bool,
    /// Speak to it as a forward proxy: requests carry whole URLs
    #[arg(long, help_heading = TARGET)]
    pub forward: bool,
    /// Memory for the proxy's cache
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = units::size, help_heading = TARGET)]
    pub memory: u64,
    /// Disk for the proxy's cache
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = units::size, help_heading = TARGET)]
    pub disk: u64,
    /// Choose one of the proxy's own settings (`assay proxies show NAME` lists them); may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting, help_heading = TARGET)]
    pub settings: Vec<(String, String)>,
    /// Look for proxy descriptions in DIR too; they win over bundled ones of the same name
    #[arg(long, value_name = "DIR", help_heading = TARGET)]
    pub proxy_dir: Vec<PathBuf>,
    /// Measure the processes of a proxy that already runs on this machine, like those of one that Assay starts: a process id,
    /// unit:NAME (a systemd service), or listener (whoever listens at the proxy's address)
    #[arg(long, value_name = "WHO", help_heading = TARGET)]
    pub watch: Option<ProcessSelector>,
    /// Where that proxy keeps its files, to measure the disk that they are on
    #[arg(long, value_name = "DIR", requires = "watch", help_heading = TARGET)]
    pub watch_store: Option<PathBuf>,
    /// You may load a target with a public address: it is yours
    #[arg(long, help_heading = TARGET)]
    pub i_own_this_target: bool,

    /// Compress the whole schedule into DUR, or to a SHARE of it like 5%: durations, volumes and counts shrink, rates and sizes
    /// stay
    #[arg(long, value_name = "DUR|SHARE", value_parser = overrides::rehearsal, help_heading = LOAD)]
    pub rehearse: Option<Rehearsal>,
    /// The number of robots of all kinds together; each kind keeps its share, and each robot its rate unless --rate says
    /// otherwise
    #[arg(long, value_name = "N", value_parser = overrides::robots, allow_negative_numbers = true, help_heading = LOAD)]
    pub robots: Option<u32>,
    /// Length and rate.
    #[command(flatten, next_help_heading = LOAD)]
    pub load: LoadArgs,
    /// A rehearsal shrinks `--memory` and `--disk` too
    #[arg(long, requires = "rehearse", help_heading = LOAD)]
    pub scale_capacity: bool,
    /// Try conformance cases of TOPIC (`assay conform list`), or one case, in the middle of the load, one every quarter of a second;
    /// a MUST that fails ends with exit code 99; may be given more than once
    #[arg(long, value_name = "TOPIC", conflicts_with_all = ["calibrate", "find_peak"], help_heading = LOAD)]
    pub with_conform: Vec<String>,
    /// Seed of all that is random; the same seed gives the same requests
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = LOAD)]
    pub seed: u64,
    /// Treat private interests as public ones, as Web Polygraph does since 3.6
    #[arg(long, help_heading = LOAD)]
    pub private_as_public: bool,
    /// Look for included files in DIR too
    #[arg(short = 'I', long = "include", value_name = "DIR", help_heading = LOAD)]
    pub include: Vec<PathBuf>,
    /// A response that is not complete after DUR is an error
    #[arg(long, value_name = "DUR", default_value = "60s", value_parser = units::duration, help_heading = LOAD)]
    pub timeout: Duration,

    /// Version of HTTP that robots speak, whatever the workload says: 1.0, 1.1, or 2 (in clear with prior knowledge, or with --robot-tls)
    #[arg(long, value_name = "VERSION", value_parser = overrides::http_version, help_heading = NETWORK)]
    pub robot_http: Option<HttpVersion>,
    /// Version of HTTP that origins speak, whatever the workload says
    #[arg(long, value_name = "VERSION", value_parser = overrides::http_version, help_heading = NETWORK)]
    pub origin_http: Option<HttpVersion>,
    /// Requests that a best-effort robot has under way at a time over HTTP/2, each on a stream of its own [default: 1]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_STREAMS)), help_heading = NETWORK)]
    pub streams: Option<u32>,
    /// Requests say how urgent they are (RFC 9218): pages before what they embed
    #[arg(long, help_heading = NETWORK)]
    pub priorities: bool,
    /// Robots speak TLS to the target; the run makes its own authority and certificates [default: as the workload says]
    #[arg(long, value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on", value_parser = on_or_off, help_heading = NETWORK)]
    pub robot_tls: Option<bool>,
    /// Origins speak TLS, and the target verifies their certificates where it can [default: as the workload says]
    #[arg(long, value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on", value_parser = on_or_off, help_heading = NETWORK)]
    pub origin_tls: Option<bool>,
    /// How TLS is spoken.
    #[command(flatten, next_help_heading = NETWORK)]
    pub tls: TlsArgs,
    /// Emulate a link between robots and the proxy, like delay=40ms,jitter=2ms,loss=0.05%,rate=10Mbit/s,queue=100kB
    /// (needs root); `off`: none [default: as the workload says, with NetPipe]
    #[arg(long, value_name = "LINK", value_parser = units::link_choice, help_heading = NETWORK)]
    pub robot_link: Option<LinkChoice>,
    /// Emulate a link between the proxy and the origins
    #[arg(long, value_name = "LINK", value_parser = units::link_choice, help_heading = NETWORK)]
    pub origin_link: Option<LinkChoice>,
    /// TCP congestion control between robots, proxy and origins, such as cubic, reno or bbr [default: the system's; with
    /// links: cubic]
    #[arg(long, value_name = "NAME", help_heading = NETWORK)]
    pub congestion: Option<String>,

    /// Where the result goes.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Record every single request (Parquet)
    #[arg(long, help_heading = RECORD)]
    pub xact_log: bool,
    /// Trace requests to the disk that the proxy's files are on: how many, how far apart (needs root)
    #[arg(long, help_heading = RECORD)]
    pub trace_disk: bool,

    /// Machines.
    #[command(flatten, next_help_heading = MACHINES)]
    pub machines: MachinesArgs,

    /// Robots' worker threads [default: one for each processor they may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = MACHINE)]
    pub threads: Option<u32>,
    /// Where an origin listens, once for each origin of the workload [default: loopback]
    #[arg(long, value_name = "ADDR:PORT", help_heading = MACHINE)]
    pub origin_listen: Vec<SocketAddr>,
    /// Leave the placement on processors to the system
    #[arg(long, conflicts_with_all = ["robot_cpus", "origin_cpus", "proxy_cpus"], help_heading = MACHINE)]
    pub no_pin: bool,
    /// Processors of robots, like 0,2-3 [default: chosen; `run.json` says which]
    #[arg(long, value_name = "LIST", value_parser = units::cpus, help_heading = MACHINE)]
    pub robot_cpus: Option<units::Cpus>,
    /// Processors of origins
    #[arg(long, value_name = "LIST", value_parser = units::cpus, help_heading = MACHINE)]
    pub origin_cpus: Option<units::Cpus>,
    /// Processors of a proxy that Assay starts
    #[arg(long, value_name = "LIST", value_parser = units::cpus, help_heading = MACHINE)]
    pub proxy_cpus: Option<units::Cpus>,
    /// Processor time of a proxy that Assay starts, in processors: 0.5 is half of one
    #[arg(long, value_name = "N", value_parser = units::processors, help_heading = MACHINE)]
    pub cpu_quota: Option<f64>,
    /// Memory that the processes of a proxy that Assay starts may use together, page cache included
    #[arg(long, value_name = "SIZE", value_parser = units::memory_limit, help_heading = MACHINE)]
    pub memory_limit: Option<u64>,
    /// Robots and origins poll for DUR before something is due, like 50us, robots also for responses: closer to time, for
    /// more processor time
    #[arg(long, value_name = "DUR", value_parser = units::spin, help_heading = MACHINE)]
    pub spin: Option<Duration>,
    /// Robots and origins go before all other work (SCHED_FIFO)
    #[arg(long, help_heading = MACHINE)]
    pub realtime: bool,
    /// Repeat the run up to N times while its result is undecided (exit code 96), with an empty cache each time
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100), conflicts_with_all = ["calibrate", "find_peak", "serve", "otlp"], hide_default_value = true, help_heading = MACHINE)]
    pub retries: u32,
    /// Wait for at most DUR until the machine is quiet, like 60s, and start then in any case. Quiet: in each of three seconds in
    /// a row, no processor is used for more than 10 %, and programs wait for one for no more than 5 % of the time
    #[arg(long, value_name = "DUR", value_parser = units::duration, help_heading = MACHINE)]
    pub wait_quiet: Option<Duration>,
    /// Find what this machine, or those of the fleet, can offer for the workload without a proxy, in about a minute (or what
    /// `--rehearse` says), and keep it for later runs
    #[arg(long, conflicts_with_all = ["xact_log", "trace_disk", "no_report", "scale_capacity", "robot_link", "origin_link", "congestion", "serve", "otlp", "duration", "rate"], help_heading = MACHINE)]
    pub calibrate: bool,
    /// The search for the highest rate.
    #[command(flatten)]
    pub peak: PeakArgs,
}

/// Reads `NAME=VALUE`.
fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not NAME=VALUE")),
    }
}

impl RunArgs {
    /// Arguments of `assay run WORKLOAD` without any flag.
    pub fn plain(workload: &str) -> Result<Self, clap::Error> {
        let command = Self::augment_args(clap::Command::new("run").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from(["--", workload])?)
    }
}
