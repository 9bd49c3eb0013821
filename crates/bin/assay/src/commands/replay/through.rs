//! A log, replayed through a proxy under test with simulated origins behind it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use assay_lab::Mode;
use assay_lab::harness::{self, AddressReservation, IsolatedProxy, IsolatedProxyPlan};
use assay_lab::harness::{ProxyChoice, TestedProxy};
use assay_load::replay::{
    Catalogue, OriginListener, OriginServer, ReplayOptions, ReplayResults, ReplayTls, RequestSource,
    SimulatedOrigins,
};
use assay_logs::format::detect;
use assay_logs::input::Input;
use clap::{ArgGroup, Args};

use super::{ReplayArgs, failure, options, resolved, watched};
use crate::commands::spe::targets::{self, CacheCapacity};
use crate::exit::Failure;
use crate::interrupt::Interrupts;
use crate::{opened, output, run_name, units};

/// The host of paths that say none.
pub const HOST: &str = "origin.example";
const HEADING: &str = "Through a proxy under test";

/// Flags of a proxy under test and of what is behind it.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("simulated").args(["proxy", "origins"])))]
pub struct ThroughArgs {
    /// Start this proxy and send through it, with simulated origins behind it that serve every URL with the size, status
    /// and type that the log has: `builtin`, a name from `assay proxies`, or a description FILE.toml
    #[arg(long, value_name = "PROXY", conflicts_with = "to", help_heading = HEADING)]
    pub proxy: Option<String>,
    /// It is a reverse proxy, which stands for the log's hosts [default: a forward proxy where the log names hosts and the
    /// proxy can be one]
    #[arg(long, conflicts_with = "forward", help_heading = HEADING)]
    pub reverse: bool,
    /// With --to: serve the log's origins at this address, which that proxy has as its origin or parent
    #[arg(long, value_name = "ADDR:PORT", requires = "to", help_heading = HEADING)]
    pub origins: Option<SocketAddr>,
    /// How long a response of simulated origins is fresh
    #[arg(long, value_name = "TIME", default_value = "365d", value_parser = units::duration, requires = "simulated", help_heading = HEADING)]
    pub lifetime: Duration,
    /// How long simulated origins think before they respond [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "simulated", help_heading = HEADING)]
    pub think: Option<Duration>,
    /// Memory for the proxy's cache
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = units::size, conflicts_with = "to", help_heading = HEADING)]
    pub memory: u64,
    /// Disk for the proxy's cache
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = units::size, conflicts_with = "to", help_heading = HEADING)]
    pub disk: u64,
    /// Choose one of the proxy's own settings, as `assay run --set` does; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = targets::setting, conflicts_with = "to", help_heading = HEADING)]
    pub settings: Vec<targets::ProxySetting>,
    /// Look for proxy descriptions in DIR too
    #[arg(long, value_name = "DIR", conflicts_with = "to", help_heading = HEADING)]
    pub proxy_dir: Vec<PathBuf>,
    /// Where the result, the requests and the proxy's configuration and logs go; it must be empty or not be there
    /// [default: replays/LOG-PROXY-DATE-TIME]
    // Required is `proxy`, too; clap does not insist on what cannot be there.
    #[arg(long, value_name = "DIR", requires = "proxy", conflicts_with = "to", help_heading = HEADING)]
    pub dir: Option<PathBuf>,
}

impl ThroughArgs {
    /// True where origins are to be simulated.
    pub fn is_wanted(&self) -> bool {
        self.proxy.is_some() || self.origins.is_some()
    }
}

/// Replays through a proxy before simulated origins. None: it was interrupted before the first request.
pub async fn replay(
    args: &ReplayArgs,
    source: RequestSource,
    tls: Option<ReplayTls>,
    mut interrupts: Interrupts,
) -> Result<Option<ReplayResults>, Failure> {
    if args.files.iter().any(|file| file.as_os_str() == "-") {
        return Err(Failure::usage(anyhow!(
            "simulated origins need the log twice, and standard input is read once"
        ))
        .hint("name a file"));
    }
    // In a thread: a log may be long, and an interrupt must not wait for its end.
    let surveying = tokio::task::spawn_blocking(move || {
        let catalogue = source.survey();
        (source, catalogue)
    });
    let (source, catalogue) = tokio::select! {
        surveyed = surveying => surveyed.context("cannot read the log").map_err(Failure::failed)?,
        () = interrupts.next() => return Ok(interrupted()),
    };
    let catalogue = catalogue.map_err(failure)?;
    let Some(name) = &args.through.proxy else {
        return through_running_proxy(args, source, tls, catalogue, interrupts).await.map(Some);
    };
    let mut prepared = Prepared::new(args, name, &catalogue)?;
    let simulated = Arc::new(SimulatedOrigins::new(
        catalogue,
        args.through.lifetime,
        args.through.think.unwrap_or_default(),
    ));
    let reservation = AddressReservation::claim().map_err(Failure::failed)?;
    let (origins, listeners) = prepared.open(&reservation, &simulated)?;
    say(args, &format!("directory: {}\n", prepared.plan.directory.display()));
    let mut proxy = tokio::select! {
        started = IsolatedProxy::start(&prepared.plan, reservation, &listeners) => started.map_err(Failure::failed)?,
        () = interrupts.next() => return Ok(interrupted()),
    };
    say(args, &format!("{} at {}, a {} proxy\n", proxy.software, proxy.address, prepared.plan.mode.name()));
    let mut options = options(args, proxy.address);
    options.forward = prepared.plan.mode == Mode::Forward;
    options.simulated = Some(simulated);
    options.xacts.get_or_insert_with(|| prepared.plan.directory.join("xacts.parquet"));
    let stop = async move { interrupts.next().await };
    let driven = watched(args, options, source, Some(proxy.processor_waits()), stop).await;
    let ended = proxy.exit_message().await;
    if let Some(words) = proxy.crashes() {
        output::say(&format!("warning: {words}"));
    }
    let software = proxy.software.clone();
    proxy.stop().await;
    drop(origins);
    let mut results = driven?;
    name_proxy(&mut results, &software);
    results.proxy_ended = ended;
    let document = prepared.plan.directory.join("replay.json");
    let text = results.to_json().map_err(Failure::failed)?;
    std::fs::write(&document, text)
        .with_context(|| format!("cannot write {}", document.display()))
        .map_err(Failure::failed)?;
    Ok(Some(results))
}

fn interrupted() -> Option<ReplayResults> {
    output::eprint("interrupted before the first request; nothing was measured\n");
    None
}

/// The proxy runs already, and finds the origins where it was told.
async fn through_running_proxy(
    args: &ReplayArgs,
    source: RequestSource,
    tls: Option<ReplayTls>,
    catalogue: Catalogue,
    mut interrupts: Interrupts,
) -> Result<ReplayResults, Failure> {
    let to = resolved(args)?;
    // A proxy may call its only origin as it likes.
    let host = catalogue.hosts().filter(|hosts| hosts.len() == 1).and_then(|mut hosts| hosts.pop());
    let simulated = Arc::new(SimulatedOrigins::new(
        catalogue,
        args.through.lifetime,
        args.through.think.unwrap_or_default(),
    ));
    let can = "request the objects of the log from its origins";
    opened::print_notice(args.through.origins.as_slice(), can, "--origins");
    let listen = args.through.origins.into_iter();
    let listeners = listen.map(|listen| OriginListener { listen, host: host.clone() }).collect();
    let _origins = OriginServer::start(listeners, Arc::clone(&simulated)).map_err(failure)?;
    let mut options = ReplayOptions { tls, ..options(args, to) };
    options.simulated = Some(simulated);
    let stop = async move { interrupts.next().await };
    let waits = assay_lab::watched_processes::processor_waits(to);
    let mut results = watched(args, options, source, waits, stop).await?;
    name_proxy(&mut results, &to.to_string());
    Ok(results)
}

fn name_proxy(results: &mut ReplayResults, name: &str) {
    if let Some(cache) = &mut results.cache {
        name.clone_into(&mut cache.proxy);
    }
}

fn say(args: &ReplayArgs, text: &str) {
    if !args.quiet {
        output::eprint(text);
    }
}

/// Inputs of a replay, before anything is started.
struct Prepared {
    plan: IsolatedProxyPlan,
    /// Reverse: the hosts that it stands for.
    hosts: Vec<String>,
}

impl Prepared {
    fn new(args: &ReplayArgs, name: &str, catalogue: &Catalogue) -> Result<Self, Failure> {
        let through = &args.through;
        let capacity = CacheCapacity { memory_bytes: through.memory, disk_bytes: through.disk };
        let proxy = targets::one(name, &through.proxy_dir, &through.settings, capacity)?;
        if let ProxyChoice::Running(address) = proxy.choice {
            return Err(Failure::usage(anyhow!("--proxy {address}: it runs already")).hint(format!(
                "send to it: --to {address}, with --origins ADDR:PORT for the origins behind it"
            )));
        }
        let mode = mode(args, &proxy, catalogue);
        let hosts = match mode {
            Mode::Forward => Vec::new(),
            Mode::Reverse => catalogue.hosts().ok_or_else(|| {
                Failure::usage(anyhow!(
                    "the log has too many hosts for a reverse proxy, which must be told of each beforehand"
                ))
                .hint("take a forward proxy, or a part of the log")
            })?,
        };
        let exe =
            std::env::current_exe().context("cannot find the program itself").map_err(Failure::failed)?;
        let log = args.files.first().and_then(|file| file.file_stem()).unwrap_or_default().to_string_lossy();
        let directory = through.dir.clone().unwrap_or_else(|| run_name::fresh_replay(&log, &proxy.label));
        let directory = fresh(&directory).map_err(Failure::usage)?;
        let plan = IsolatedProxyPlan { exe, proxy, mode, http2: false, tls: false, directory };
        harness::check(&plan).map_err(Failure::usage)?;
        std::fs::create_dir_all(&plan.directory)
            .with_context(|| format!("cannot make {}", plan.directory.display()))
            .map_err(Failure::usage)?;
        Ok(Self { plan, hosts })
    }

    /// Opens the listeners of the origins: where each host is behind them.
    fn open(
        &mut self,
        reservation: &AddressReservation,
        simulated: &Arc<SimulatedOrigins>,
    ) -> Result<(OriginServer, Vec<(String, SocketAddr)>), Failure> {
        let hosts = match self.hosts.is_empty() {
            true => vec![None],
            false => self.hosts.iter().cloned().map(Some).collect(),
        };
        let mut listeners = Vec::new();
        for (place, host) in (0..).zip(hosts) {
            listeners
                .push(OriginListener { listen: reservation.listener(place).map_err(Failure::failed)?, host });
        }
        let origins = OriginServer::start(listeners.clone(), Arc::clone(simulated)).map_err(failure)?;
        let named =
            listeners.into_iter().map(|listener| (listener.host.unwrap_or_default(), listener.listen));
        Ok((origins, named.collect()))
    }
}

/// Mode of the proxy: as configured, else as the log and the proxy allow.
fn mode(args: &ReplayArgs, proxy: &TestedProxy, catalogue: &Catalogue) -> Mode {
    if args.forward || args.through.reverse {
        return if args.forward { Mode::Forward } else { Mode::Reverse };
    }
    let (wanted, other) = match catalogue.names_hosts() {
        true => (Mode::Forward, Mode::Reverse),
        false => (Mode::Reverse, Mode::Forward),
    };
    match &proxy.choice {
        ProxyChoice::Described(description) if !harness::supports(description, wanted) => other,
        _ => wanted,
    }
}

/// The whole path of a directory that is not there, or empty.
pub fn fresh(directory: &Path) -> anyhow::Result<PathBuf> {
    let directory = std::path::absolute(directory)
        .with_context(|| format!("cannot make sense of the path {}", directory.display()))?;
    let is_used = std::fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        return Err(anyhow!("{} is not empty; name another directory", directory.display()));
    }
    Ok(directory)
}

/// Arguments of `assay replay` where `assay run` got an access log instead of a workload: a replay through the
/// built-in proxy unless another one is named.
pub fn legacy_args(typed: Vec<OsString>) -> Vec<OsString> {
    let is_run = typed.get(1).is_some_and(|word| word == "run");
    let is_help = |word: &OsString| word == "--help" || word == "-h";
    if !is_run || typed.iter().any(is_help) || !typed.iter().skip(2).any(|word| is_log(Path::new(word))) {
        return typed;
    }
    let names_target = |word: &OsString| {
        let word = word.to_string_lossy();
        ["--proxy", "--to"].iter().any(|flag| *word == **flag || word.starts_with(&format!("{flag}=")))
    };
    let has_target = typed.iter().any(names_target);
    let mut words = typed.into_iter();
    let program = words.next().into_iter();
    let more = if has_target { &[][..] } else { &["--proxy", "builtin"] };
    program
        .chain(["replay".into()])
        .chain(words.skip(1))
        .chain(more.iter().map(|word| OsString::from(*word)))
        .collect()
}

/// True for a file that is an access log, as far as its beginning tells.
fn is_log(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let is_other = name.starts_with('-') || [".pg", ".toml", ".json"].iter().any(|end| name.ends_with(end));
    let is_recognised = || Input::open(path).is_ok_and(|mut input| detect(input.head()).is_ok());
    !is_other && path.is_file() && (is_named_log(&name) || is_recognised())
}

/// True for a name that only a log has, whatever is in it: one that is empty, or of an unknown format, is not taken for a workload.
fn is_named_log(name: &str) -> bool {
    let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    name.ends_with(".log")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(words: &[&str]) -> Vec<String> {
        let words = words.iter().map(|word| OsString::from(*word)).collect();
        legacy_args(words).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_run_of_an_access_log_is_a_replay_and_any_other_run_is_what_it_was() {
        let tmp = tempfile::tempdir().unwrap();
        let log = tmp.path().join("access.log");
        let line = "192.0.2.1 - - [10/Oct/2025:13:55:01 +0000] \"GET /a HTTP/1.1\" 200 5\n";
        std::fs::write(&log, line).unwrap();
        let log = log.to_str().unwrap();
        assert_eq!(typed(&["assay", "run", log]), ["assay", "replay", log, "--proxy", "builtin"]);
        let named = typed(&["assay", "run", log, "--proxy=squid", "--speed", "9"]);
        assert_eq!(named, ["assay", "replay", log, "--proxy=squid", "--speed", "9"]);
        let empty = tmp.path().join("empty.log.gz");
        std::fs::write(&empty, "").unwrap();
        let empty = empty.to_str().unwrap();
        assert_eq!(typed(&["assay", "run", empty, "--to", "x"]), ["assay", "replay", empty, "--to", "x"]);
        let pgl = tmp.path().join("a.pg");
        std::fs::write(&pgl, line).unwrap();
        for other in [
            &["assay", "run", "demo"][..],
            &["assay", "run", pgl.to_str().unwrap()],
            &["assay", "logs", log],
            &["assay", "run", log, "--help"],
        ] {
            assert_eq!(typed(other), other);
        }
    }

    #[test]
    fn results_go_to_no_directory_that_has_something() {
        let tmp = tempfile::tempdir().unwrap();
        assert!(fresh(&tmp.path().join("new")).is_ok() && fresh(tmp.path()).is_ok());
        std::fs::write(tmp.path().join("x"), "").unwrap();
        assert!(fresh(tmp.path()).is_err());
    }
}
