//! `assay spe`: several proxies at once, on the requests of real clients.

mod authority;
mod over_tls;
mod secured;
pub(crate) mod targets;
mod words;

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use assay_lab::evaluation::{SpeEvent, SpeOutcome, SpePlan, SpeProgress};
use assay_lab::harness::ProxyChoice;
use assay_lab::{LabError, Mode};
use assay_protocol::evaluation::TargetCounters;
use assay_protocol::network::{Destinations, Network};
use assay_record::spe::How;
use assay_spe::spec::{Turns, When};
use clap::{ArgGroup, Args, Subcommand};
use tokio::sync::{mpsc, watch};

use self::authority::AuthorityArgs;
use super::spe_report::{self, SpeReportArgs};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::target::resolve;
use crate::{leftovers, opened, output, run_name, units};

/// Connect timeout of a server that should run already.
const KNOCK: Duration = Duration::from_secs(1);

const WHO: &str = "Who";
const ORDER: &str = "When and in which order";
const COLLECTOR: &str = "The Collector";
const RECORD: &str = "Results";

const EXAMPLES: &str = "\
Examples:
  assay spe --listen 127.0.0.1:3128 --proxy squid --proxy builtin
      clients use 127.0.0.1:3128 as their proxy
  assay spe --listen 127.0.0.1:8080 --origin www.example:80 --proxy varnish \\
    --proxy nginx
      127.0.0.1:8080 stands for www.example
  assay spe --listen :3128 --proxy today=10.0.0.7:3128 \\
    --proxy candidate=10.0.0.8:3128 --collector-listen 10.0.0.5:3200
      two proxies that run already, each with its listener as parent
  assay spe --listen :3128 --proxy now=squid --proxy next=squid \\
    --set next:replacement=heap-lfuda
      one proxy against itself with another setting
  assay spe authority ~/assay-authority
  assay spe --listen 127.0.0.1:3128 --intercept ~/assay-authority --proxy squid
      https too, for clients that trust that authority

Clients get the responses of the Collector, and every proxy gets the same requests. Nobody else notices: origins get each request once, \
except where a proxy asks for more than the client did (nginx and Varnish fetch the whole object for a HEAD). The first Ctrl-C ends it and writes what is left; the second quits at once.";

/// Flags of `assay spe`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, args_conflicts_with_subcommands = true)]
#[command(group(ArgGroup::new("over_tls").args(["origin", "intercept"])))]
pub struct SpeArgs {
    /// What to do instead.
    #[command(subcommand)]
    pub what: Option<SpeCommand>,
    /// Where clients come in; without an address, on all of this machine's
    #[arg(long, value_name = "[ADDR]:PORT", value_parser = listen_address, default_value = "127.0.0.1:3128", help_heading = WHO)]
    pub listen: SocketAddr,
    /// A proxy under test: `builtin` (`builtin:embedded` or `builtin:links`: it prefetches), a name from `assay proxies`,
    /// a description FILE.toml, or the HOST:PORT of one that is already running (with https://, it gets its requests over TLS); may be
    /// given more than once, and with a label of your own
    #[arg(long, value_name = "[LABEL=]PROXY", help_heading = WHO)]
    pub proxy: Vec<String>,
    /// Send requests over TLS to this proxy, which is started as a reverse proxy; may be given more than once
    #[arg(long, value_name = "LABEL", help_heading = WHO)]
    pub proxy_tls: Vec<String>,
    /// Authorities by which the certificates of proxies that run already are verified (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "proxy_insecure", help_heading = WHO)]
    pub proxy_ca: Option<PathBuf>,
    /// The certificates of proxies that run already are not verified
    #[arg(long, help_heading = WHO)]
    pub proxy_insecure: bool,
    /// Clients speak to a server: the origin that `--origin` names
    #[arg(long, conflicts_with = "forward", requires = "origin", help_heading = WHO)]
    pub reverse: bool,
    /// Clients speak to a proxy: requests carry whole URLs (the default without `--origin`)
    #[arg(long, help_heading = WHO)]
    pub forward: bool,
    /// The origin that all stand for; with https://, it is spoken to over TLS
    #[arg(long, value_name = "[https://]HOST:PORT", conflicts_with = "forward", help_heading = WHO)]
    pub origin: Option<String>,
    /// Clients speak TLS, and get this certificate, with those that lead to its authority (PEM)
    #[arg(long, value_name = "FILE", requires = "key", help_heading = WHO)]
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate", help_heading = WHO)]
    pub key: Option<PathBuf>,
    /// Open the tunnels of clients, and compare their https requests too, with the authority in DIR (made by `assay spe authority DIR`),
    /// which these clients must trust. Read docs/how-to/open-tunnels.md before: it is about other people's traffic
    #[arg(long, value_name = "DIR", conflicts_with = "certificate", help_heading = WHO)]
    pub intercept: Option<PathBuf>,
    /// Authorities by which the certificates of https origins are verified (PEM) [default, with --intercept: those of this system]
    #[arg(long, value_name = "FILE", requires = "over_tls", conflicts_with = "origin_insecure", help_heading = WHO)]
    pub origin_ca: Option<PathBuf>,
    /// The certificate of an https origin is not verified
    #[arg(long, requires = "origin", conflicts_with = "intercept", help_heading = WHO)]
    pub origin_insecure: bool,
    /// Clients may request addresses that are not public in this network too (or at this address); may be given more than once
    /// [default: all where only this machine can use it, none where others can]
    #[arg(long, value_name = "NETWORK", conflicts_with = "origin", help_heading = WHO)]
    pub may_request: Vec<Network>,
    /// Where the Collector's listeners are: ADDR:PORT is the Multiplier's, and the next ports are the proxies', in their order
    /// [default: chosen; 127.0.0.1:3200 where a proxy is already running]
    #[arg(long = "collector-listen", value_name = "ADDR:PORT", help_heading = WHO)]
    pub listeners: Option<SocketAddr>,
    /// Choose one of a proxy's own settings, as `assay run --set` does, or its `memory` or `disk`; LABEL is what the proxy is
    /// called, and is not needed where there is only one; may be given more than once
    #[arg(long = "set", value_name = "[LABEL:]NAME=VALUE", value_parser = targets::setting, help_heading = WHO)]
    pub settings: Vec<targets::ProxySetting>,
    /// Memory for the cache of each proxy that is started
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = units::size, help_heading = WHO)]
    pub memory: u64,
    /// Disk for the cache of each proxy that is started
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = units::size, help_heading = WHO)]
    pub disk: u64,
    /// Look for proxy descriptions in DIR too; they win over bundled ones of the same name
    #[arg(long, value_name = "DIR", help_heading = WHO)]
    pub proxy_dir: Vec<PathBuf>,
    /// You may send requests to origins and proxies with a public address: they are yours
    #[arg(long, help_heading = WHO)]
    pub i_own_this_target: bool,

    /// Send requests to the proxies when the client's response is complete (the default)
    #[arg(long, conflicts_with = "at_once", help_heading = ORDER)]
    pub after: bool,
    /// Send requests to the proxies at once, at the clients' own pace
    #[arg(long, help_heading = ORDER)]
    pub at_once: bool,
    /// Send requests to the proxies in the order in which they are named, instead of another for each request
    #[arg(long, help_heading = ORDER)]
    pub fixed_order: bool,
    /// Seed of the order
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = ORDER)]
    pub seed: u64,
    /// Requests that may wait for one proxy; more are not sent to it, and they are counted
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = ORDER)]
    pub max_waiting: u32,
    /// How long a proxy may take for each step of a response
    #[arg(long, value_name = "DUR", default_value = "60s", value_parser = units::duration, help_heading = ORDER)]
    pub response_timeout: Duration,

    /// How long a response that may not be cached is kept for the proxies that have not seen it
    #[arg(long, value_name = "DUR", default_value = "180s", value_parser = units::duration, help_heading = COLLECTOR)]
    pub minimum_freshness: Duration,
    /// Recordings of that age are made anew
    #[arg(long, value_name = "DUR", default_value = "1h", value_parser = units::duration, help_heading = COLLECTOR)]
    pub maximum_age: Duration,
    /// Send recordings as fast as possible, instead of at their pace
    #[arg(long, help_heading = COLLECTOR)]
    pub no_replay: bool,
    /// Memory for recordings
    #[arg(long, value_name = "SIZE", default_value = "512MB", value_parser = units::size, help_heading = COLLECTOR)]
    pub collector_memory: u64,
    /// Disk for recordings that memory has no room for
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = units::size, help_heading = COLLECTOR)]
    pub collector_disk: u64,

    /// A TOML file of further differences to ignore (docs/reference/spe.md)
    #[arg(long, value_name = "FILE", help_heading = RECORD)]
    pub rules: Option<PathBuf>,
    /// Where results go; it must be empty or not be there [default: spe/PROXIES-DATE-TIME, labels joined by `_`]
    #[arg(long, value_name = "DIR", help_heading = RECORD)]
    pub dir: Option<PathBuf>,
    /// Write each response to responses.log and each request at the Collector to collector.log too, a line of text
    #[arg(long, help_heading = RECORD)]
    pub text_log: bool,
    /// End after DUR [default: with Ctrl-C]
    #[arg(long, value_name = "DUR", value_parser = units::duration, help_heading = RECORD)]
    pub duration: Option<Duration>,
}

/// What else can be done with an evaluation.
#[derive(Debug, Subcommand)]
pub enum SpeCommand {
    /// Make summary and HTML report from the directory of an evaluation
    Report(SpeReportArgs),
    /// Make an authority of your own, with which `assay spe --intercept` opens tunnels
    Authority(AuthorityArgs),
}

/// Evaluates proxies until it is over, or says what an evaluation came to.
pub fn spe(args: &SpeArgs) -> Result<Exit, Failure> {
    match &args.what {
        Some(SpeCommand::Report(report)) => return spe_report::report(report),
        Some(SpeCommand::Authority(made)) => return authority::make(made),
        None => {}
    }
    leftovers::clear();
    let plan = plan(args)?;
    assay_lab::evaluation::check(&plan).map_err(Failure::usage)?;
    let can = match &plan.origin {
        Some((origin, _)) => format!("send requests to {origin} through it"),
        None => match &plan.destinations {
            None => "use it as a proxy to every host that this machine reaches".to_owned(),
            Some(_) => "use it as a proxy to the hosts that it may request".to_owned(),
        },
    };
    let to_clients = opened::note(plan.listen, &can, "--listen");
    let to_proxies = plan.listeners.and_then(|address| opened::note(address, &can, "--collector-listen"));
    for note in to_clients.into_iter().chain(to_proxies) {
        output::eprint(&note);
    }
    for note in plan_warnings(&plan) {
        output::say(&format!("note: {note}"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the evaluation")
        .map_err(Failure::failed)?;
    match runtime.block_on(watched(plan))? {
        Some(outcome) => {
            output::stdout(&words::summary(&outcome))?;
            match nothing_compared(&outcome) {
                Some(why) if matches!(outcome.how, How::Finished) => Err(Failure::failed(anyhow!("{why}"))),
                _ => Ok(exit(&outcome)),
            }
        }
        None => Ok(Exit::Interrupted),
    }
}

/// Warnings about plans that will work and are hardly what was meant.
fn plan_warnings(plan: &SpePlan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.intercept.is_some() {
        notes.push(
            "tunnels are opened (--intercept): what clients send to https servers, passwords among it, is in the clear in Assay and in \
             the proxies, and URLs are in the results; everybody whose traffic it is must know and agree"
                .to_owned(),
        );
    }
    if plan.destinations.is_some() {
        notes.push(
            "clients may request public addresses, and others only in networks that --may-request names"
                .to_owned(),
        );
    }
    if plan.proxies.is_empty() {
        notes.push(
            "no proxy is named: clients get their responses, and nothing is compared with them (--proxy)"
                .to_owned(),
        );
    }
    let absent = |address: &SocketAddr| TcpStream::connect_timeout(address, KNOCK).err();
    if let Some((name, address)) = &plan.origin
        && let Some(error) = absent(address)
    {
        notes.push(format!(
            "the origin {name} does not respond now ({error}); until it does, clients get 502"
        ));
    }
    for proxy in &plan.proxies {
        if let ProxyChoice::Running(address) = &proxy.choice
            && let Some(error) = absent(address)
        {
            let label = &proxy.label;
            notes.push(format!(
                "the proxy {label} does not respond at {address} now ({error}); until it does, its responses count as failed"
            ));
        }
    }
    notes
}

/// Reason why nothing is known of a proxy that was to be compared, with a remedy; none: something is known of all.
fn nothing_compared(outcome: &SpeOutcome) -> Option<String> {
    let SpeProgress { labels, multiplier, .. } = &outcome.progress;
    if multiplier.requests == 0 {
        let why = "no client sent a request, so nothing was measured; let clients use the address that is printed when it is ready, \
                   and end it later (--duration)";
        return Some(why.to_owned());
    }
    let silent = |(_, target): &(&String, &TargetCounters)| {
        target.requested + target.dropped > 0 && target.responses == 0
    };
    let named: Vec<&str> =
        labels.iter().zip(&multiplier.targets).filter(silent).map(|(label, _)| label.as_str()).collect();
    (!named.is_empty()).then(|| {
        format!(
            "no whole response came from {}, so nothing was compared there; roles/multiplier.log in the directory of results says why no \
             connection could be made",
            named.join(", ")
        )
    })
}

fn exit(outcome: &SpeOutcome) -> Exit {
    if outcome.progress.multiplier.responses_lost > 0 {
        return Exit::Undecided;
    }
    match outcome.how {
        How::Interrupted => Exit::Interrupted,
        How::Finished => Exit::Fine,
        How::Failed(_) => Exit::Failed,
    }
}

/// Evaluates while the user watches; Ctrl-C once ends it well, twice at once. None: there is nothing to show.
async fn watched(plan: SpePlan) -> Result<Option<SpeOutcome>, Failure> {
    let mut interrupts = Interrupts::listen().context("cannot watch for Ctrl-C").map_err(Failure::failed)?;
    let (events, mut told) = mpsc::unbounded_channel::<SpeEvent>();
    let (stop_sender, stop) = watch::channel(false);
    let is_reverse = plan.mode == Mode::Reverse;
    let view = async {
        let mut view = words::ProgressView::new(is_reverse);
        while let Some(event) = told.recv().await {
            output::eprint(&view.say(&event));
        }
    };
    let all = async { tokio::join!(assay_lab::evaluation::run(plan, events, stop), view).0 };
    tokio::pin!(all);
    let mut requested_before = false;
    loop {
        tokio::select! {
            result = &mut all => return match result {
                Ok(outcome) => Ok(Some(outcome)),
                Err(LabError::Interrupted) => {
                    output::eprint("interrupted before the first request; nothing was measured\n");
                    Ok(None)
                }
                Err(error) if error.before_start() => Err(Failure::usage(error)),
                Err(error) => Err(Failure::failed(error)),
            },
            () = interrupts.next() => {
                if requested_before {
                    output::eprint("quit at once\n");
                    return Ok(None);
                }
                requested_before = true;
                // The receiver is gone when it has just ended; then there is nothing to stop.
                let _ = stop_sender.send(true);
            }
        }
    }
}

/// Everything the lab needs to know.
fn plan(args: &SpeArgs) -> Result<SpePlan, Failure> {
    let exe = std::env::current_exe().context("cannot find the program itself").map_err(Failure::failed)?;
    let mode = if args.origin.is_some() { Mode::Reverse } else { Mode::Forward };
    let origin = args.origin.as_ref().map(|origin| secured::origin_and_tls(origin, args)).transpose()?;
    let (origin, origin_tls) = origin.map_or((None, None), |(name, tls)| (Some(name), tls));
    let origin = origin.map(|name| resolve(&name).map(|address| (name, address))).transpose()?;
    let typed: Vec<(String, bool)> =
        args.proxy.iter().map(|typed| over_tls::split(typed, &args.proxy_dir)).collect();
    let named: Vec<String> = typed.iter().map(|(typed, _)| typed.clone()).collect();
    let proxies = targets::under_test(
        &named,
        &args.proxy_dir,
        &args.settings,
        targets::CacheCapacity { memory_bytes: args.memory, disk_bytes: args.disk },
    )?;
    let name_of_origin = origin.as_ref().map(|(name, _)| name.as_str());
    let over_tls = over_tls::destinations(args, &typed, &proxies, name_of_origin)?;
    let proxies_tls = over_tls::trust(args, &typed)?;
    let name: Vec<&str> = proxies.iter().map(|proxy| proxy.label.as_str()).collect();
    let directory = args.dir.clone().unwrap_or_else(|| run_name::fresh_evaluation(&name.join("-")));
    let absolute = |path: &PathBuf| {
        let attempt = || format!("cannot make sense of the path {}", path.display());
        std::path::absolute(path).with_context(attempt).map_err(Failure::usage)
    };
    Ok(SpePlan {
        exe,
        assay_version: env!("CARGO_PKG_VERSION").into(),
        listen: args.listen,
        mode,
        origin,
        tls: secured::to_clients(args)?,
        origin_tls,
        intercept: secured::intercept(args)?,
        proxies,
        over_tls,
        proxies_tls,
        listeners: args.listeners,
        when: if args.at_once { When::AtOnce } else { When::After },
        turns: if args.fixed_order { Turns::Fixed } else { Turns::Permuted },
        seed: args.seed,
        minimum_freshness: args.minimum_freshness,
        maximum_age: args.maximum_age,
        replay: !args.no_replay,
        collector_memory_bytes: args.collector_memory,
        collector_disk_bytes: args.collector_disk,
        max_waiting: args.max_waiting,
        response_timeout: args.response_timeout,
        rules: args.rules.as_ref().map(absolute).transpose()?,
        directory: absolute(&directory)?,
        text_log: args.text_log,
        duration: args.duration,
        destinations: destinations(args),
        own_target: args.i_own_this_target,
    })
}

/// Destinations that clients may request. Clients on this machine alone can reach nothing more through a proxy on it.
fn destinations(args: &SpeArgs) -> Option<Destinations> {
    let is_for_others =
        [Some(args.listen), args.listeners].into_iter().flatten().any(|a| !a.ip().is_loopback());
    let is_limited = is_for_others || !args.may_request.is_empty();
    (args.origin.is_none() && is_limited).then(|| Destinations::public_and(args.may_request.clone()))
}

/// Reads `ADDR:PORT` or `:PORT`.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    whole
        .parse()
        .map_err(|_| format!("`{text}` is no address with a port; write it like 127.0.0.1:3128 or :3128"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn args(typed: &[&str]) -> Box<SpeArgs> {
        let all = ["assay", "spe"].iter().chain(typed);
        let Command::Spe(args) = Cli::parse_from(all).command else { panic!("not spe") };
        args
    }

    #[test]
    fn an_origin_makes_it_a_reverse_proxy() {
        assert_eq!(plan(&args(&["--forward"])).unwrap().mode, Mode::Forward);
        let reverse = plan(&args(&["--origin", "127.0.0.1:9000"])).unwrap();
        assert_eq!((reverse.mode, reverse.origin.unwrap().0.as_str()), (Mode::Reverse, "127.0.0.1:9000"));
    }

    #[test]
    fn who_is_not_on_this_machine_may_request_public_addresses_and_those_that_are_named() {
        let may = |typed: &[&str], address: &str| {
            let destinations = plan(&args(typed)).unwrap().destinations;
            destinations.is_none_or(|destinations| destinations.allow(address.parse().unwrap()))
        };
        let (here, elsewhere) = (["--listen", "[::1]:3128"], ["--listen", ":3128"]);
        assert!(may(&here, "127.0.0.1") && may(&here, "10.0.0.1") && may(&elsewhere, "8.8.8.8"));
        assert!(!may(&elsewhere, "127.0.0.1") && !may(&elsewhere, "10.0.0.1"));
        assert!(
            !may(&["--collector-listen", "10.0.0.5:3200"], "127.0.0.1"),
            "its listeners are open to others, too"
        );
        let named = ["--may-request", "10.0.0.0/8", "--may-request", "127.0.0.1"];
        for listen in [here, elsewhere] {
            let typed = [&listen[..], &named].concat();
            assert!(may(&typed, "10.0.0.1") && may(&typed, "127.0.0.1") && !may(&typed, "192.168.0.1"));
        }
        assert!(may(&["--listen", ":80", "--origin", "127.0.0.1:9000"], "127.0.0.1"), "clients name nothing");
    }

    #[test]
    fn a_proxy_gets_its_requests_over_tls_if_it_is_verified_or_that_is_declined() {
        let refused = |typed: &[&str]| {
            let failure = plan(&args(typed)).expect_err("is refused");
            format!("{}; {}", failure.error, failure.hint.unwrap_or_default())
        };
        let https = ["--proxy", "a=https://127.0.0.1:8443/"];
        assert!(refused(&https).contains("--proxy-ca FILE"));
        assert!(refused(&["--proxy-insecure"]).contains("write --proxy https://"));
        assert!(refused(&["--proxy", "https://builtin", "--proxy-insecure"]).contains("--proxy-tls builtin"));
        let origin = ["--origin", "www.test:80", "--proxy", "b=builtin", "--proxy", "c=127.0.0.1:80"];
        let secured = |label| [&origin[2..], &["--origin", "127.0.0.1:9", "--proxy-tls", label]].concat();
        assert!(refused(&secured("d")).contains("there are: b, c"));
        assert!(refused(&secured("c")).contains("--proxy c=https://127.0.0.1:80"));
        assert!(refused(&["--proxy", "builtin", "--proxy-tls", "builtin"]).contains("forward proxy"));
        let missing = [&https[..], &["--proxy-ca", "/nowhere.pem"]].concat();
        assert!(refused(&missing).contains("cannot read /nowhere.pem"));

        let taken = plan(&args(&[&https[..], &["--proxy-insecure"]].concat())).unwrap();
        assert_eq!(taken.over_tls["a"], "127.0.0.1:8443", "as a forward proxy, it stands for itself");
        assert!(taken.proxies_tls.is_some_and(|tls| tls.ca.is_none()));
        let taken = plan(&args(&secured("b"))).unwrap();
        assert_eq!(taken.over_tls, [("b".to_owned(), "127.0.0.1:9".to_owned())].into());
        assert!(taken.proxies_tls.is_none(), "its certificate is made for it");
    }

    #[test]
    fn an_https_origin_is_verified_or_that_is_declined() {
        let refused = |typed: &[&str]| plan(&args(typed)).expect_err("is refused").error.to_string();
        let https = "https://127.0.0.1";
        assert!(refused(&["--origin", https]).contains("--origin-ca FILE"));
        assert!(
            refused(&["--origin", "127.0.0.1:80", "--origin-insecure"]).contains("write --origin https://")
        );
        assert!(
            refused(&["--origin", https, "--origin-ca", "/nowhere.pem"]).contains("cannot read /nowhere.pem")
        );
        let files = ["--certificate", "/nowhere.pem", "--key", "/nowhere.key"];
        assert!(refused(&files).contains("cannot read /nowhere.pem"));
        let taken = plan(&args(&["--origin", https, "--origin-insecure"])).unwrap();
        assert_eq!(taken.origin.unwrap().0, "127.0.0.1:443");
        assert!(taken.origin_tls.is_some_and(|tls| tls.ca.is_none()) && taken.tls.is_none());
    }

    #[test]
    fn who_is_not_there_before_it_begins_is_told() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = taken.local_addr().unwrap().to_string();
        let gone = "127.0.0.1:1";
        let noted = |typed: &[&str]| plan_warnings(&plan(&args(typed)).unwrap()).join("\n");
        assert!(
            noted(&["--origin", gone, "--proxy", "builtin"])
                .contains("the origin 127.0.0.1:1 does not respond")
        );
        let running = format!("now={gone}");
        assert!(noted(&["--proxy", &running]).contains("the proxy now does not respond at 127.0.0.1:1"));
        assert_eq!(noted(&["--origin", &there, "--proxy", "builtin"]), "");
        assert!(noted(&["--duration", "1s"]).contains("no proxy is named"));
    }

    #[test]
    fn a_port_alone_means_all_addresses() {
        assert_eq!(listen_address(":3128").unwrap().to_string(), "0.0.0.0:3128");
        assert!(listen_address("3128").is_err());
    }
}
