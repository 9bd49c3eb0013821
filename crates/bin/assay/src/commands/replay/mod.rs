//! `assay replay`: send the requests of access logs, or of a list of URLs, to any address, or through a proxy under test.

mod secured;
mod through;

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use assay_lab::{ProcessorWaits, units};
use assay_load::replay::filter::{Filter, METHODS, Statuses};
use assay_load::replay::plan::list::Arrivals;
use assay_load::replay::{
    ListSource, LogSource, ReplayError, ReplayOptions, ReplayResults, ReplayTls, RequestSource, drive,
};
use assay_logs::format::Format;
use assay_protocol::network::is_private;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use tokio::runtime::{Builder, LocalOptions};

use crate::commands::logs::hint;
use crate::commands::schema;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::{output, target};
use through::ThroughArgs;
pub use through::{fresh, legacy_args};

const EXAMPLES: &str = "\
Examples:
  assay replay access.log --proxy squid
      through Squid, with simulated origins behind it: hits, DHR, times
  assay replay access.log --to 127.0.0.1:8080
      as its clients once did, in the log's own time
  assay replay access.log.gz --to proxy:3128 --forward --speed 10
      through a forward proxy, ten times as fast
  assay replay access.log --to https://www.example.org:8443 --ca ca.pem
      over TLS, with certificates verified by that authority
  assay replay '/var/log/apache2/access.log*' --to 127.0.0.1:8080 \\
    --host www.example.org --for 10m
      ten minutes of a rotated set that says no host
  assay replay --urls urls.txt --to 127.0.0.1:3128 --forward \\
    --connections 1000 --per-connection 2 --rate 1
      a list of URLs at random: 1,000 connections, one a second

Exit codes:
  0 fine · 1 it failed, no request got a response, or the proxy ended by itself
  2 usage error
  96 undecided: threads of Assay or of the proxy waited for processors
  99 responses were cut short, wrong or missing
  105 interrupted";

/// Flags of `assay replay`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// Access logs, plain, gzip or zstd; `*` and `?` in a name; `-` is standard input. With --urls: files with a URL
    /// per line
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub files: Vec<PathBuf>,
    /// Send to this address; `https://` before it: over TLS
    #[arg(long, value_name = "HOST:PORT")]
    pub to: Option<String>,
    /// It is a forward proxy: send whole URLs, and `https` ones through tunnels (CONNECT)
    #[arg(long)]
    pub forward: bool,
    /// Verify certificates by the authorities in FILE (PEM)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["insecure", "proxy"])]
    pub ca: Option<PathBuf>,
    /// Do not verify certificates
    #[arg(long, conflicts_with = "proxy")]
    pub insecure: bool,
    /// How it goes through a proxy under test.
    #[command(flatten)]
    pub through: ThroughArgs,
    /// How much faster than it was; 0.5 is half as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive, allow_negative_numbers = true)]
    pub speed: f64,
    /// Name of the log's format, or a format string as the proxy itself takes it; without, it is recognised
    #[arg(short, long, value_name = "NAME|STRING")]
    pub format: Option<String>,
    /// Host for lines without one; default: the address that is sent to, or `origin.example` with --proxy
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Files hold a URL per line: request them at random
    #[arg(long, conflicts_with_all = ["speed", "format", "limit"])]
    pub urls: bool,
    /// With --urls: connections in all; without, so many that every URL is requested once
    #[arg(long, value_name = "N", requires = "urls", value_parser = clap::value_parser!(u64).range(1..))]
    pub connections: Option<u64>,
    /// With --urls: requests of a connection, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, requires = "urls", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub per_connection: u32,
    /// With --urls: connections a second, on average
    #[arg(long, value_name = "N", default_value_t = 1.0, requires = "urls", value_parser = positive, allow_negative_numbers = true)]
    pub rate: f64,
    /// With --urls: seed of random numbers
    #[arg(long, value_name = "N", default_value_t = 1, requires = "urls")]
    pub seed: u64,
    /// Send requests with these methods only: GET, HEAD
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = METHODS, conflicts_with = "urls")]
    pub method: Vec<String>,
    /// Send requests only whose responses had these statuses, like 200,304 or 2xx
    #[arg(long, value_name = "STATUS,...", value_delimiter = ',', value_parser = Statuses::parse, conflicts_with = "urls")]
    pub status: Vec<Statuses>,
    /// Send requests only of which the log says so, in the proxy's words, like TCP_HIT,TCP_MEM_HIT
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "urls")]
    pub result: Vec<String>,
    /// Leave out URLs with `?`, `cgi-bin` or `.cgi`
    #[arg(long = "static", conflicts_with = "urls")]
    pub is_static: bool,
    /// Send so many requests of the log at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Send nothing that is due later than this
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
    pub for_: Option<Duration>,
    /// A further header field, like 'User-Agent: me'; can be given several times
    #[arg(long, value_name = "NAME: VALUE", value_parser = field)]
    pub header: Vec<String>,
    /// How long a response may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub timeout: Duration,
    /// How long an idle connection of a client is kept
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = units::duration)]
    pub keep_idle: Duration,
    /// Requests under way at most; one that is due beyond that is not sent, and counted
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub most_open: usize,
    /// You may send to a public address: it is yours
    #[arg(long)]
    pub i_own_this_target: bool,
    /// Write every request to FILE, as Parquet
    #[arg(long, value_name = "FILE")]
    pub xacts: Option<PathBuf>,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Say nothing while it runs
    #[arg(short, long)]
    pub quiet: bool,
    /// Print the JSON Schema of the document instead
    #[arg(long, conflicts_with_all = ["files", "json"])]
    pub schema: bool,
}

/// Sends, and says what came back.
pub fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    let file = args.output.as_deref();
    if args.schema {
        output::result(&schema::of_document("replay"), file)?;
        return Ok(Exit::Fine);
    }
    if args.to.is_none() && args.through.proxy.is_none() {
        return Err(Failure::usage(anyhow!("nothing says where the requests go")).hint(
            "--to HOST:PORT sends them to an address; --proxy PROXY starts a proxy and sends them through it",
        ));
    }
    output::check_results(file, [args.xacts.as_deref()])?;
    let tls = secured::tls(args)?;
    let source = source(args)?;
    let start = || "cannot start the replay";
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .with_context(start)
        .map_err(Failure::failed)?;
    let results = runtime.block_on(async {
        let listen = || Interrupts::listen().with_context(start).map_err(Failure::failed);
        let (interrupts, second) = (listen()?, listen()?);
        tokio::select! {
            results = send_log(args, source, tls, interrupts) => results,
            () = twice(second) => {
                output::eprint("quit at once\n");
                Ok(None)
            }
        }
    });
    // A log may still be being read; nobody waits for that.
    runtime.shutdown_background();
    if !args.quiet && output::is_watched() {
        output::draw("\r\u{1b}[K");
    }
    let Some(results) = results? else { return Ok(Exit::Interrupted) };
    let text = if args.json { results.to_json().map_err(Failure::failed)? } else { results.to_terminal() };
    output::result(&text, file)?;
    let lost = results.without_response();
    // In words they stand in the result; who reads that with another program is told here.
    if args.json || args.output.is_some() {
        let words = [results.own.doubt(), lost.clone(), results.fault()];
        words.iter().flatten().for_each(|words| output::say(&format!("warning: {words}")));
    }
    match lost {
        _ if results.proxy_ended.is_some() => Err(proxy_ended(&results)),
        _ if results.interrupted => Ok(Exit::Interrupted),
        Some(words) if results.responses == 0 => {
            let scheme = if args.to.as_deref().is_some_and(secured::is_https) { "https" } else { "http" };
            let usual = || {
                let to = &results.to;
                format!(
                    "check that something listens at {to} and speaks HTTP, like `curl -v {scheme}://{to}/`"
                )
            };
            let hint = results.tls_failure().map_or_else(usual, str::to_owned);
            Err(Failure::failed(anyhow!("{words}")).hint(hint))
        }
        _ if results.requests == 0 => Err(nothing_sent(&results)),
        _ if results.fault().is_some() => Ok(Exit::Unmet),
        _ if results.own.leaves_unknown() => Ok(Exit::Undecided),
        _ => Ok(Exit::Fine),
    }
}

/// All that was to be sent was not.
fn nothing_sent(results: &ReplayResults) -> Failure {
    let why = match results.skipped {
        0 => "the log or list has no request that came due".to_owned(),
        skipped => format!("{skipped} were due while too many were under way"),
    };
    Failure::failed(anyhow!("no request was sent, so nothing was measured: {why}"))
        .hint("replay more of it (--for, --limit), or allow more requests under way (--most-open)")
}

/// The proxy did not last until the end: what came back is of the time before.
fn proxy_ended(results: &ReplayResults) -> Failure {
    let how = results.proxy_ended.as_deref().unwrap_or_default();
    let lost = results.without_response().unwrap_or_else(|| "every request got a response".into());
    Failure::failed(anyhow!("the proxy did not last until the end of the replay ({lost}): {how}"))
        .hint("its configuration and logs are in the directory of the replay")
}

/// Sends all of it, or what is sent before the first Ctrl-C. None: that was nothing.
async fn send_log(
    args: &ReplayArgs,
    source: RequestSource,
    tls: Option<ReplayTls>,
    mut interrupts: Interrupts,
) -> Result<Option<ReplayResults>, Failure> {
    if args.through.is_wanted() {
        return through::replay(args, source, tls, interrupts).await;
    }
    let stop = async move { interrupts.next().await };
    let to = resolved(args)?;
    let options = ReplayOptions { tls, ..options(args, to) };
    let waits = assay_lab::watched_processes::processor_waits(to);
    watched(args, options, source, waits, stop).await.map(Some)
}

/// Sends all of it, shows how it goes, and watches for how long the target's threads wait for a processor.
async fn watched(
    args: &ReplayArgs,
    mut options: ReplayOptions,
    source: RequestSource,
    mut waits: Option<ProcessorWaits>,
    stop: impl Future<Output = ()>,
) -> Result<ReplayResults, Failure> {
    let waited_us = waits.as_ref().map(|_| Rc::new(Cell::new(0)));
    options.target_waited_us.clone_from(&waited_us);
    let each_second = |so_far: &ReplayResults| {
        if let (Some(waits), Some(waited_us)) = (&mut waits, &waited_us) {
            waited_us.set(waits.until_now_us());
        }
        print_progress(args, so_far);
    };
    drive(options, source, each_second, stop).await.map_err(failure)
}

/// Waits for the second Ctrl-C.
async fn twice(mut interrupts: Interrupts) {
    interrupts.next().await;
    interrupts.next().await;
}

/// The address that was named.
fn resolved(args: &ReplayArgs) -> Result<SocketAddr, Failure> {
    let to =
        args.to.as_deref().ok_or_else(|| Failure::usage(anyhow!("say where to send to: --to HOST:PORT")))?;
    let to = target::resolve(secured::authority(to))?;
    if !is_private(to.ip()) && !args.i_own_this_target {
        let why = anyhow!("{to} is a public address");
        return Err(Failure::usage(why).hint("if it is yours, say so with --i-own-this-target"));
    }
    Ok(to)
}

fn options(args: &ReplayArgs, to: SocketAddr) -> ReplayOptions {
    let own_agent = args.header.iter().any(|line| line.to_ascii_lowercase().starts_with("user-agent:"));
    let mut fields = String::from("Accept: */*\r\n");
    if !own_agent {
        fields.push_str(concat!("User-Agent: assay-replay/", env!("CARGO_PKG_VERSION"), "\r\n"));
    }
    args.header.iter().for_each(|line| fields.extend([line.as_str(), "\r\n"]));
    ReplayOptions {
        to,
        forward: args.forward,
        tls: None,
        fields: fields.into_bytes(),
        timeout: args.timeout,
        keep_idle: args.keep_idle,
        max_in_flight: args.most_open,
        xacts: args.xacts.clone(),
        simulated: None,
        target_waited_us: None,
    }
}

fn source(args: &ReplayArgs) -> Result<RequestSource, Failure> {
    // Requests to a server carry its own name; those to a forward proxy must name their host.
    let host = args.host.clone().or_else(|| match &args.to {
        Some(to) => Some(secured::authority(to).to_owned()).filter(|_| !args.forward),
        None => Some(through::HOST.to_owned()),
    });
    let for_ns = args.for_.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let files = args.files.clone();
    let skips_https = secured::skips_https(args);
    if args.urls {
        let arrivals = Arrivals {
            connections: args.connections.unwrap_or(u64::MAX),
            requests_each: args.per_connection,
            per_second: args.rate,
            seed: args.seed,
        };
        let once = args.connections.is_none();
        return Ok(RequestSource::List(ListSource { files, host, arrivals, once, for_ns, skips_https }));
    }
    let format = args
        .format
        .as_deref()
        .map(|text| Format::parse(text).map(Box::new))
        .transpose()
        .map_err(Failure::usage)?;
    let filter = Filter {
        methods: args.method.clone(),
        statuses: args.status.clone(),
        results: args.result.clone(),
        is_static: args.is_static,
    };
    let (speed, limit) = (args.speed, args.limit);
    Ok(RequestSource::Log(LogSource { files, format, speed, host, filter, limit, for_ns, skips_https }))
}

/// A line a second, over itself, where somebody looks.
fn print_progress(args: &ReplayArgs, so_far: &ReplayResults) {
    if args.quiet || !output::is_watched() || so_far.requests == 0 {
        return;
    }
    let mean = so_far.response_ms.mean.map_or_else(String::new, |ms| format!(", {ms:.1} ms on average"));
    let failed: u64 = so_far.errors.values().sum();
    output::draw(&format!(
        "\r{:.0} s: {} sent, {} under way, {} responses, {failed} failed{mean}\u{1b}[K",
        so_far.duration_s, so_far.requests, so_far.under_way, so_far.responses
    ));
}

fn failure(error: ReplayError) -> Failure {
    match error {
        ReplayError::Logs(inner) => match hint(&inner) {
            Some(hint) => Failure::usage(inner).hint(hint),
            None => Failure::usage(inner),
        },
        ReplayError::List { .. } | ReplayError::Nothing { .. } => Failure::usage(error),
        _ => Failure::failed(error),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(format!("`{text}` is not a number above 0")),
    }
}

/// `Name: value`, without anything that would end the line.
fn field(text: &str) -> Result<String, String> {
    let name = text.split(':').next().unwrap_or_default();
    let is_name = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&b));
    if !is_name || !text.contains(':') || text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(format!("`{text}` is no header field; write it as 'Name: value'"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_field_cannot_smuggle_a_second_one_in() {
        assert_eq!(field("X-One: 1").unwrap(), "X-One: 1");
        for bad in ["X-One", ": 1", "X One: 1", "X: 1\r\nY: 2"] {
            assert!(field(bad).is_err(), "{bad}");
        }
        assert!(positive("0").is_err() && positive("inf").is_err() && positive("x").is_err());
    }
}
