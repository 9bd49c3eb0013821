//! The targets of `assay conform`: each is started with an origin of its own behind it, more than once where cases may upset connections or
//! keep a target busy.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use assay_conform::case::Case;
use assay_conform::document::{Document, TargetInfo};
use assay_conform::http2::connection::Connection;
use assay_conform::origin::Origin;
use assay_conform::run::{Http2, Outcome, Target, mark_unresponsive, resolve_dependencies, run};
use assay_conform::transport::{Endpoint, Tls};
use assay_lab::Mode;
use assay_lab::harness::AddressReservation;
use tokio::task::{JoinSet, LocalSet};

use super::subject::{self, StartedTarget, Subject};
use super::{ConformArgs, switch};
use crate::exit::Failure;
use crate::interrupt::Interrupts;
use crate::opened;
use crate::output;

/// Lines of a log that are quoted when a proxy ended, and characters of each.
const LAST_LINES: usize = 2;
const MOST_OF_A_LINE: usize = 200;

/// Tries cases on all targets at the same time. None: it was interrupted.
pub fn tried(args: &ConformArgs, cases: &[Rc<Case>]) -> Result<Option<Document>, Failure> {
    let (directory, temporary) = directory(args)?;
    let subjects = subject::all(args, &directory)?;
    opened::print_notice(
        args.origin_listen.as_slice(),
        "request the responses of its cases",
        "--origin-listen",
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")
        .map_err(Failure::failed)?;
    let document = runtime.block_on(LocalSet::new().run_until(all(args, subjects, cases)));
    match (document, temporary) {
        (Err(failure), Some(temporary)) => Err(keep_what_is_named(failure, temporary)),
        (document, _) => document,
    }
}

/// A message that says where the logs of a proxy are is of use only while they are there. They are kept under a name that no later start
/// of Assay takes for something left behind.
fn keep_what_is_named(mut failure: Failure, directory: tempfile::TempDir) -> Failure {
    let words = format!("{:#}", failure.error);
    let path = directory.path().display().to_string();
    if words.contains(&path)
        && let Ok(unmarked) = tempfile::Builder::new().prefix("assay-conform-").tempdir()
    {
        let (marked, kept) = (directory.keep(), unmarked.keep());
        // It takes the place of one that is empty.
        if std::fs::rename(&marked, &kept).is_ok() {
            failure.error = anyhow!(words.replace(&path, &kept.display().to_string()));
        }
    }
    failure
}

/// Directory of configurations and logs, with a guard that removes it in the end.
fn directory(args: &ConformArgs) -> Result<(PathBuf, Option<tempfile::TempDir>), Failure> {
    match &args.dir {
        Some(named) => {
            let directory = crate::commands::replay::fresh(named).map_err(Failure::usage)?;
            Ok((directory, None))
        }
        None => {
            let made = assay_lab::cleanup::temporary_dir("conform");
            let made = made.context("cannot make a temporary directory").map_err(Failure::failed)?;
            Ok((made.path().to_owned(), Some(made)))
        }
    }
}

async fn all(
    args: &ConformArgs,
    subjects: Vec<Subject>,
    cases: &[Rc<Case>],
) -> Result<Option<Document>, Failure> {
    let mut interrupts = Interrupts::listen().context("cannot watch for Ctrl-C").map_err(Failure::failed)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut document = Document::new(env!("CARGO_PKG_VERSION"), now);
    let progress = Rc::new(Progress::new(args.quiet, cases.len() * subjects.len()));
    let labels: Vec<String> = subjects.iter().map(|subject| subject.label().to_owned()).collect();
    let mut tasks = JoinSet::new();
    for subject in subjects {
        let (cases, progress) = (cases.to_vec(), Rc::clone(&progress));
        let at = CaseSetup {
            origin: args.origin_listen,
            host: args.host.clone(),
            stores: !args.no_cache,
            keeps_logs: args.dir.is_some(),
        };
        let (is_forward, has_tls) = (args.forward, args.tls);
        tasks.spawn_local(async move {
            let label = subject.label().to_owned();
            let results = match subject {
                Subject::Running { label, address } => {
                    let setup = RunningTarget { label, address, is_forward, has_tls };
                    running(setup, at, cases, progress).await
                }
                Subject::Started(subject) => run_cases(*subject, at, cases, progress).await,
                Subject::Switch(label) => switch::run_cases(label, at.host, cases, progress).await,
            };
            (label, results)
        });
    }
    let mut done: BTreeMap<String, (TargetInfo, Vec<Outcome>)> = BTreeMap::new();
    loop {
        tokio::select! {
            next = tasks.join_next() => match next {
                None => break,
                Some(ended) => {
                    let (label, results) = ended.context("a target's task ended").map_err(Failure::failed)?;
                    done.insert(label, results?);
                }
            },
            () = interrupts.next() => {
                // Dropping the tasks ends the proxies that they hold.
                tasks.shutdown().await;
                progress.end();
                output::eprint("interrupted; there are no results\n");
                return Ok(None);
            }
        }
    }
    progress.end();
    for label in labels {
        if let Some((info, outcomes)) = done.remove(&label) {
            document.add(info, &outcomes);
        }
    }
    Ok(Some(document))
}

/// Address of the origin of a target that runs already, and the `Host` that clients send.
struct CaseSetup {
    origin: Option<SocketAddr>,
    host: Option<String>,
    /// The target stores responses.
    stores: bool,
    /// The target's logs are kept.
    keeps_logs: bool,
}

/// A target that runs already.
struct RunningTarget {
    label: String,
    address: SocketAddr,
    is_forward: bool,
    has_tls: bool,
}

/// All cases on a target that runs already.
async fn running(
    running: RunningTarget,
    at: CaseSetup,
    cases: Vec<Rc<Case>>,
    progress: Rc<Progress>,
) -> Result<(TargetInfo, Vec<Outcome>), Failure> {
    let RunningTarget { label, address, is_forward, has_tls } = running;
    let listen = at.origin.ok_or_else(|| Failure::usage(anyhow!("{address} needs --origin-listen")))?;
    let origin = Origin::start(listen).with_context(|| format!("cannot listen on {listen}"));
    let origin = Rc::new(origin.map_err(Failure::usage)?);
    let host = at.host.unwrap_or_else(|| origin.address.to_string());
    let place = Endpoint { address, tls: tls(has_tls, &host)? };
    let http2 = if Connection::is_spoken_by(&place).await { Http2::Beside } else { Http2::No };
    let target =
        Target { address, host, stores: at.stores, is_forward, several: false, tls: place.tls, http2 };
    let began = Instant::now();
    let mut outcomes = run(&cases, &target, &origin, |_, _| progress.advance()).await;
    mark_unresponsive(&mut outcomes);
    let info = TargetInfo { label, took_s: began.elapsed().as_secs_f64(), ..TargetInfo::default() };
    Ok((info, outcomes))
}

/// TLS parameters of the connection to a host, if TLS is spoken.
fn tls(is_spoken: bool, host: &str) -> Result<Option<Tls>, Failure> {
    let made = is_spoken.then(|| Tls::to(host)).transpose();
    made.map_err(|error| Failure::usage(anyhow::Error::new(error).context("cannot speak TLS to the target")))
}

/// All cases on a target that is started.
async fn run_cases(
    subject: StartedTarget,
    at: CaseSetup,
    cases: Vec<Rc<Case>>,
    progress: Rc<Progress>,
) -> Result<(TargetInfo, Vec<Outcome>), Failure> {
    let mut info = TargetInfo {
        label: subject.label().to_owned(),
        settings: subject.settings(),
        ..TargetInfo::default()
    };
    let http2 = subject.http2();
    let (over_http2, others): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|case| case.uses_http2() && http2 != Http2::No);
    let (isolated, together): (Vec<_>, Vec<_>) = others.into_iter().partition(|case| case.isolated);
    let (floods, over_http2): (Vec<_>, Vec<_>) = over_http2.into_iter().partition(|case| case.is_flood());
    let second = subject.another("isolated", false);
    let (third, fourth) = (subject.another("http2", true), subject.another("floods", true));
    let began = Instant::now();
    let (first, second, third, fourth) = tokio::join!(
        on_instance(&subject, &at, Http2::No, &together, &progress),
        on_instance(&second, &at, Http2::No, &isolated, &progress),
        on_instance(&third, &at, http2, &over_http2, &progress),
        on_instance(&fourth, &at, http2, &floods, &progress),
    );
    info.took_s = began.elapsed().as_secs_f64();
    let mut outcomes = Vec::new();
    for instance in [first?, second?, third?, fourth?] {
        outcomes.extend(instance.outcomes);
        info.ended = info.ended.or(instance.ended);
        info.crashes = info.crashes.or(instance.crashes);
        if let Some(software) = instance.software {
            info.software = software;
        }
    }
    // All have the same cases to depend on only now.
    resolve_dependencies(&mut outcomes);
    mark_unresponsive(&mut outcomes);
    Ok((info, outcomes))
}

/// Exit of a proxy, on one line: its status with the last of its log, and the directory of the rest.
fn exit_summary(words: &str, logs: Option<&Path>) -> String {
    let mut lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut out = lines.next().unwrap_or_default().trim_end_matches(':').to_owned();
    let said: Vec<&str> = lines.collect();
    let last: Vec<String> =
        said[said.len().saturating_sub(LAST_LINES)..].iter().map(|line| cut(line)).collect();
    if !last.is_empty() {
        out.push_str(&format!(": {}", last.join(" / ")));
    }
    match logs {
        Some(logs) => out.push_str(&format!(" (its logs are in {})", logs.display())),
        None => out.push_str(" (--dir DIR keeps its logs)"),
    }
    out
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MOST_OF_A_LINE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[derive(Default)]
struct Instance {
    software: Option<String>,
    outcomes: Vec<Outcome>,
    ended: Option<String>,
    crashes: Option<String>,
}

/// Cases on an instance of a target of their own.
async fn on_instance(
    subject: &StartedTarget,
    at: &CaseSetup,
    http2: Http2,
    cases: &[Rc<Case>],
    progress: &Progress,
) -> Result<Instance, Failure> {
    if cases.is_empty() {
        return Ok(Instance::default());
    }
    make(subject.directory())?;
    let is_kept = at.keeps_logs;
    let reservation = AddressReservation::claim().map_err(Failure::failed)?;
    let listen = reservation.listener(0).map_err(Failure::failed)?;
    let origin = Origin::start(listen)
        .with_context(|| format!("cannot listen on {listen}"))
        .map_err(Failure::failed)?;
    let origin = Rc::new(origin);
    let mut started = subject.start(reservation, origin.address).await.map_err(Failure::failed)?;
    let host = at.host.clone().unwrap_or_else(|| origin.address.to_string());
    let is_forward = subject.mode() == Mode::Forward;
    let tls = tls(subject.has_tls(), &host)?;
    let target = Target {
        address: started.address,
        host,
        stores: at.stores,
        is_forward,
        several: matches!(subject, StartedTarget::Topology(..)),
        tls,
        http2,
    };
    let outcomes = run(cases, &target, &origin, |_, _| progress.advance()).await;
    let logs = is_kept.then_some(subject.directory());
    let ended = started.exit_message().await.map(|words| exit_summary(&words, logs));
    let crashes = started.crashes();
    let software = Some(started.software.clone());
    started.stop().await;
    Ok(Instance { software, outcomes, ended, crashes })
}

fn make(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))
        .map_err(Failure::usage)
}

/// Progress of the cases, on a terminal.
pub(super) struct Progress {
    done: Cell<usize>,
    all: usize,
    is_shown: bool,
}

impl Progress {
    fn new(quiet: bool, all: usize) -> Self {
        Self { done: Cell::new(0), all, is_shown: !quiet && std::io::stderr().is_terminal() }
    }

    pub(super) fn advance(&self) {
        self.done.set(self.done.get() + 1);
        if self.is_shown {
            output::draw(&format!("\r{} of {} cases", self.done.get(), self.all));
        }
    }

    fn end(&self) {
        if self.is_shown {
            output::draw("\r\u{1b}[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_ended_is_one_line_with_the_last_of_its_log() {
        let words = "Squid ended by itself (signal: 9); the last it said:\nfirst\nsecond\n\nthird\n";
        let said = "Squid ended by itself (signal: 9); the last it said: second / third";
        assert_eq!(exit_summary(words, None), format!("{said} (--dir DIR keeps its logs)"));
        assert_eq!(
            exit_summary(words, Some(Path::new("kept/squid"))),
            format!("{said} (its logs are in kept/squid)")
        );
        assert_eq!(exit_summary("it ended (1)", None), "it ended (1) (--dir DIR keeps its logs)");
        assert!(exit_summary(&format!("a:\n{}", "é".repeat(999)), None).chars().count() < 260);
    }
}
