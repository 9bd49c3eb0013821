//! A real proxy from start to stop, as its description says.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use assay_host::link::Namespace;
use assay_net::HEALTH_PATH;
use assay_protocol::message::ProxyCounters;
use rustix::process::Signal;

use crate::counter_reader::CounterReader;
use crate::crash_log;
use crate::description::{
    Description, Leg, PeeringVariables, ProgramTemplate, StopSignal, TLS_FILES, TemplateOrigin,
    TemplateVariables, TlsTerminator, VersionCommand,
};
use crate::error::LabError;
use crate::mode::Mode;
use crate::probe::Endpoint;
use crate::process::{self, Launch, Process, Stopped, Watchdog};
use crate::readiness::{self, Readiness, ReadinessProbe};
use crate::shared_memory::instance;
use crate::tls::{ProxyTls, TlsProbe};
use crate::workdir::{self, WorkDir};

/// Everything that the proxy itself prints.
const OUTPUT: &str = "output.log";
/// Time that a program that only prints something may take.
pub(crate) const QUICK: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

impl RealProxyPlan {
    /// TLS side of a request to it; none: in the clear.
    fn probe(&self, authority: &str) -> Result<Option<TlsProbe>, LabError> {
        self.tls.as_ref().map_or(Ok(None), |tls| tls.probe(authority))
    }

    /// Program that speaks TLS to robots in its place; none: robots speak in the clear, or it does so itself.
    fn terminator(&self) -> Option<&TlsTerminator> {
        self.tls.as_ref()?.identity.as_ref()?;
        self.description.tls_terminator.as_ref()
    }
}

/// Plan for one real proxy.
#[derive(Debug, Clone)]
pub struct RealProxyPlan {
    /// Description by which it is driven.
    pub description: Description,
    /// Mode in which it is addressed.
    pub mode: Mode,
    /// Robots speak HTTP/2 to it.
    pub http2: bool,
    /// Origins speak HTTP/2 to it.
    pub origin_http2: bool,
    /// Address at which it is to listen.
    pub listen: SocketAddr,
    /// The origins behind it.
    pub origins: Vec<TemplateOrigin>,
    /// Memory for its cache.
    pub memory_bytes: u64,
    /// Disk for its cache.
    pub disk_bytes: u64,
    /// Processors it may use; empty: any.
    pub cpus: Vec<u32>,
    /// Number of these processors.
    pub cpu_count: u32,
    /// `cgroup.procs` of the control groups it is to run in.
    pub procs_files: Vec<PathBuf>,
    /// Processors that programs beside it may use; empty: any.
    pub helper_cpus: Vec<u32>,
    /// Descriptors that a process may have.
    pub descriptors: u64,
    /// Connections that robots may open at once.
    pub connections: u64,
    /// Other caches that it works together with; none: it stands alone.
    pub peering: Option<PeeringVariables>,
    /// TLS identity and trust; none: in the clear.
    pub tls: Option<ProxyTls>,
    /// Directory in which its configuration, logs and counters are kept.
    pub keep: PathBuf,
    /// Network it lives in; none: the lab's own.
    pub namespace: Option<Namespace>,
    /// Network that readiness is checked from; none: the lab's own.
    pub requested_from: Option<Namespace>,
    /// Directory in which its work directory is made; none: the system's temporary directory.
    pub temp: Option<PathBuf>,
}

/// A real proxy that runs. Dropped, it is killed; what is to be kept is kept either way.
#[derive(Debug)]
pub struct RealProxy {
    choice: RealProxyPlan,
    settings: TemplateVariables,
    // In this order: programs end before their directory goes.
    companions: Vec<Process>,
    terminator: Option<Process>,
    process: Process,
    watchdog: Option<Watchdog>,
    work: WorkDir,
    kept: bool,
}

/// The work directory of a proxy that was stopped. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct StoppedProxyFiles(Box<RealProxy>);

/// True when the lab may change users.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl RealProxy {
    /// Starts it, with an empty cache; it may not respond yet.
    pub async fn start(choice: RealProxyPlan) -> Result<Self, LabError> {
        let owner = match &choice.description.user {
            Some(user) if is_root() => Some(workdir::find_user(user).ok_or_else(|| no_user(&choice, user))?),
            _ => None,
        };
        let work = WorkDir::create(&choice.description.name, choice.temp.as_deref(), owner)?;
        let settings = settings(&choice, &work);
        let signal = signal_name(choice.description.stop.signal);
        let title = choice.description.title.clone();
        let cannot_watch = |e| LabError::run(format!("cannot watch over {title}: {e}"));
        // Before anything is written: whenever the lab is killed, the directory goes.
        let mut watchdog =
            Watchdog::start(signal, work.path(), &instance(work.path()), &work.path().join(OUTPUT))
                .map_err(cannot_watch)?;
        let set_up = set_up(&choice, &settings, &work).await;
        // Whatever happened: its configuration is worth looking at.
        let started = match set_up {
            Ok(()) => launch(&choice, &settings, &work, &choice.description.start, None),
            Err(error) => Err(error),
        };
        let process = match started {
            Ok(process) => process,
            Err(error) => {
                keep(&choice, &work);
                return Err(error);
            }
        };
        let watched = watchdog.watch(&process).await;
        let proxy = Self {
            choice,
            settings,
            companions: Vec::new(),
            terminator: None,
            process,
            watchdog: Some(watchdog),
            work,
            kept: false,
        };
        watched.map_err(cannot_watch)?;
        Ok(proxy)
    }

    /// Starts a program that counts as part of it.
    fn launch_companion(&self, program: &ProgramTemplate) -> Result<Process, LabError> {
        launch(&self.choice, &self.settings, &self.work, program, Some(self.process.pid))
    }

    /// Waits until a request through it to every origin gets a 200 response; starts what runs beside it.
    pub async fn wait_ready(&mut self) -> Result<(), LabError> {
        self.start_terminator().await?;
        self.wait_for_responses().await?;
        let companions = self.choice.description.companions.iter();
        self.companions =
            companions.map(|program| self.launch_companion(program)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Empties its cache while it runs, and waits until it is ready again. False: its description knows no way, and only
    /// a restart does it. Its counters may begin anew.
    pub async fn empty(&mut self) -> Result<bool, LabError> {
        let description = &self.choice.description;
        for program in &description.empty {
            run_program(&self.choice, &self.settings, program).await.map_err(|why| {
                LabError::run(format!("the cache of {} could not be emptied: {why}", description.title))
            })?;
        }
        if self.choice.description.empty.is_empty() {
            return Ok(false);
        }
        self.wait_for_responses().await.map(|()| true)
    }

    /// Leaves it alone for as long as it keeps things back: log lines, counters.
    pub async fn settle(&self) {
        tokio::time::sleep(self.choice.description.settling()).await;
    }

    async fn wait_for_responses(&mut self) -> Result<(), LabError> {
        let limit = self.choice.description.ready_timeout();
        let deadline = Instant::now() + limit;
        let path = self.choice.description.ready.path.clone();
        let origins = self.choice.origins.clone();
        for origin in readiness::order(&origins) {
            let tls = self.choice.probe(&origin.authority)?;
            let mut seen = "no attempt was made".to_owned();
            loop {
                if let Some((terminator, status)) = self.ended() {
                    let program = terminator.as_deref().unwrap_or("it");
                    let what = format!("{program} ended ({status}) before its first response");
                    return Err(self.did_not_start(&what));
                }
                if Instant::now() >= deadline {
                    let what = format!(
                        "a request through it for http://{}{path} got no response with status 200 within {limit:?} \
                         (last seen: {seen})",
                        origin.authority
                    );
                    return Err(self.did_not_start(&what));
                }
                let requested = ReadinessProbe {
                    from: self.choice.requested_from.as_ref(),
                    proxy: Endpoint { address: self.settings.listen, tls: tls.as_ref() },
                    mode: self.choice.mode,
                    origin,
                    path: &path,
                };
                match readiness::attempt(requested).await {
                    Readiness::Ready => break,
                    Readiness::NotYet(what) | Readiness::Untrusted(what) => seen = what,
                    Readiness::Other(other) => {
                        return Err(self.did_not_start(&readiness::mixed_up(requested, &other, &origins)));
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// First processes, for its account.
    pub fn pids(&self) -> Vec<u32> {
        let processes = std::iter::once(&self.process).chain(&self.terminator).chain(&self.companions);
        processes.map(|process| process.pid).collect()
    }

    /// Status with which it ended, or its TLS terminator, which is then named: without that, it serves nobody.
    fn ended(&mut self) -> Option<(Option<String>, ExitStatus)> {
        if let Some(status) = self.process.ended() {
            return Some((None, status));
        }
        let status = self.terminator.as_mut()?.ended()?;
        Some((Some(self.choice.terminator()?.title.clone()), status))
    }

    /// Directory of its files.
    pub fn store(&self) -> &Path {
        self.work.path()
    }

    /// Reason why it does not run any more; none while it does.
    pub fn exit_message(&mut self) -> Option<String> {
        let (terminator, status) = self.ended()?;
        let title = terminator.unwrap_or_else(|| self.choice.description.title.clone());
        Some(match self.last_output() {
            words if words.is_empty() => format!("{title} ended by itself ({status})"),
            words => format!("{title} ended by itself ({status}); the last it said:\n{words}"),
        })
    }

    /// Message on its processes that were killed or crashed, while it went on; none did.
    pub fn crashes(&self) -> Option<String> {
        let logs = self.choice.description.logs.iter().map(String::as_str).chain([OUTPUT]);
        let lines = crash_log::crash_lines(logs.map(|log| self.work.path().join(log)));
        let last = lines.last()?;
        let title = &self.choice.description.title;
        Some(format!(
            "{} of the processes of {title} were killed or crashed; the last it said of that: {last}",
            lines.len()
        ))
    }

    /// A reader of its counters.
    pub fn counter_reader(&self) -> CounterReader {
        CounterReader::new(
            &self.choice.description.counters,
            self.settings.clone(),
            self.choice.helper_cpus.clone(),
            self.choice.namespace.clone(),
            self.choice.tls.clone(),
        )
    }

    /// Stops it and what runs beside it, keeps what is to be kept, and removes its work directory. `last` may read its logs
    /// once more then.
    pub async fn stop(self, last: Option<&mut CounterReader>) -> (Stopped, Option<ProxyCounters>) {
        let (stopped, counters, files) = self.stop_programs(last).await;
        files.remove().await;
        (stopped, counters)
    }

    /// The same, except that its work directory is still there: a store of many files takes seconds to remove, while
    /// other things can be done.
    pub(crate) async fn stop_programs(
        mut self,
        last: Option<&mut CounterReader>,
    ) -> (Stopped, Option<ProxyCounters>, StoppedProxyFiles) {
        let stop = &self.choice.description.stop;
        let signal = match stop.signal {
            StopSignal::Term => Signal::TERM,
            StopSignal::Int => Signal::INT,
            StopSignal::Quit => Signal::QUIT,
        };
        let limit = self.choice.description.stop_timeout();
        for beside in self.companions.iter_mut().chain(&mut self.terminator) {
            beside.stop(Signal::TERM, limit).await;
        }
        let stopped = self.process.stop(signal, limit).await;
        let counters = match last {
            Some(reader) => reader.read_logs_again(),
            None => None,
        };
        keep(&self.choice, &self.work);
        self.kept = true;
        (stopped, counters, StoppedProxyFiles(Box::new(self)))
    }

    fn last_output(&self) -> String {
        let logs = self.choice.description.logs.iter();
        let mut files: Vec<PathBuf> = logs.map(|log| self.work.path().join(log)).collect();
        files.push(self.work.path().join(OUTPUT));
        process::last_lines(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>())
    }

    fn did_not_start(&self, what: &str) -> LabError {
        let title = &self.choice.description.title;
        let said = match self.last_output() {
            words if words.is_empty() => "it said nothing".to_owned(),
            words => format!("it said:\n{words}"),
        };
        LabError::run(format!(
            "{title} did not start: {what}; {said}\nIts configuration and output are in {}.",
            self.choice.keep.display()
        ))
    }
}

impl RealProxy {
    /// Starts what speaks TLS to robots in its place, if anything does, once what that waits for is there.
    pub(super) async fn start_terminator(&mut self) -> Result<(), LabError> {
        let Some(terminator) = self.choice.terminator().cloned() else { return Ok(()) };
        let limit = self.choice.description.ready_timeout();
        let deadline = Instant::now() + limit;
        while let Some(after) =
            terminator.after.as_ref().filter(|after| !self.work.path().join(after).exists())
        {
            if let Some((_, status)) = self.ended() {
                return Err(self.did_not_start(&format!("it ended ({status}) before there was {after}")));
            }
            if Instant::now() >= deadline {
                let title = &terminator.title;
                let what = format!("{after}, which {title} waits for, was not there within {limit:?}");
                return Err(self.did_not_start(&what));
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.terminator = Some(self.launch_companion(&terminator.program())?);
        Ok(())
    }
}

impl StoppedProxyFiles {
    pub(crate) async fn remove(mut self) {
        self.0.work.remove().await;
        // Last: should the lab be killed while the directory goes, the keeper finishes that.
        if let Some(watchdog) = self.0.watchdog.take() {
            watchdog.release().await;
        }
    }
}

impl Drop for RealProxy {
    fn drop(&mut self) {
        if !self.kept {
            keep(&self.choice, &self.work);
        }
    }
}

/// The proxy at an address did not respond for an origin; `seen` came instead.
pub(crate) fn no_response(
    requested: SocketAddr,
    mode: Mode,
    origin: &TemplateOrigin,
    seen: &str,
) -> LabError {
    let (authority, at) = (&origin.authority, format!("{}:{}", origin.ip, origin.port));
    let (named, remedy) = match mode {
        Mode::Reverse => (
            authority,
            format!(
                "it must send requests for {authority} to the origin at {at}, an address that --origin-listen chooses"
            ),
        ),
        Mode::Forward => {
            (&at, format!("it must allow requests for {at}; leave out --forward if it is a reverse proxy"))
        }
    };
    LabError::run(format!(
        "{requested} gives no usable response for http://{named}{HEALTH_PATH} (as a {} proxy; last seen: {seen}); if it is a \
         proxy that was running already, {remedy}",
        mode.name()
    ))
}

fn no_user(choice: &RealProxyPlan, user: &str) -> LabError {
    LabError::plan(format!(
        "{} is to run as the user `{user}`, and there is none of that name; install the Debian package `{}`, or change \
         `user` in its description",
        choice.description.title,
        choice.description.package.as_deref().unwrap_or(&choice.description.name)
    ))
}

fn settings(choice: &RealProxyPlan, work: &WorkDir) -> TemplateVariables {
    TemplateVariables {
        listen: choice.listen,
        work: work.path().to_owned(),
        origins: choice.origins.clone(),
        memory_bytes: choice.memory_bytes,
        disk_bytes: choice.disk_bytes,
        mode: choice.mode,
        http2: choice.http2,
        origin_http2: choice.origin_http2,
        is_root: is_root(),
        user: choice.description.user.clone().unwrap_or_default(),
        cpus: choice.cpu_count,
        descriptors: choice.descriptors,
        connections: choice.connections,
        instance: instance(work.path()),
        peering: choice.peering.clone(),
        tls: tls_legs(choice.tls.as_ref()),
        chosen: choice.description.chosen.clone(),
    }
}

fn tls_legs(tls: Option<&ProxyTls>) -> Vec<Leg> {
    let robots = tls.is_some_and(|tls| tls.identity.is_some()).then_some(Leg::Robots);
    let origins = tls.is_some_and(|tls| tls.to_origins).then_some(Leg::Origins);
    robots.into_iter().chain(origins).collect()
}

/// Makes directories and files, and runs what must run before.
async fn set_up(
    choice: &RealProxyPlan,
    settings: &TemplateVariables,
    work: &WorkDir,
) -> Result<(), LabError> {
    let description = &choice.description;
    let title = &description.title;
    let cannot =
        |what: &str, e: &dyn std::fmt::Display| LabError::run(format!("cannot {what} for {title}: {e}"));
    for directory in &description.directories {
        work.make_dir(directory).map_err(|e| cannot(&format!("make {directory}"), &e))?;
    }
    if let Some(tls) = &choice.tls {
        set_up_tls(tls, work).map_err(|e| cannot("write what TLS needs", &e))?;
    }
    for file in &description.files {
        let text = settings.fill(&file.text).map_err(|e| cannot(&format!("fill in {}", file.path), &e))?;
        work.write(&file.path, &text).map_err(|e| cannot(&format!("write {}", file.path), &e))?;
    }
    for program in &description.prepare {
        run_program(choice, settings, program)
            .await
            .map_err(|why| LabError::run(format!("{title} did not start: {why}")))?;
    }
    Ok(())
}

/// Writes certificates and keys where only the proxy reads them; they go with its work directory.
fn set_up_tls(tls: &ProxyTls, work: &WorkDir) -> std::io::Result<()> {
    let [certificate, key, both, ca] = TLS_FILES;
    work.write(ca, &tls.ca)?;
    if let Some(identity) = &tls.identity {
        work.write(certificate, &identity.certificate)?;
        work.write_private(key, &identity.key)?;
        work.write_private(both, &[&identity.certificate[..], &identity.key].concat())?;
    }
    Ok(())
}

/// A program of a description that did not run to a good end. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error("cannot fill in a command: {0}")]
    Template(minijinja::Error),
    #[error("cannot run `{command}`: {cause}")]
    Run { command: String, cause: std::io::Error },
    #[error("`{command}` ended with {status}; it said:\n{words}")]
    Failed { command: String, status: ExitStatus, words: String },
}

/// A version that cannot be found. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error("cannot run `{command}`: {cause}")]
    Run { command: String, cause: std::io::Error },
    #[error("`{command}` did not print `{after}` and a version")]
    NotPrinted { command: String, after: String },
}

/// Runs a program to its end, which must be a good one; else what it did instead.
async fn run_program(
    choice: &RealProxyPlan,
    settings: &TemplateVariables,
    program: &ProgramTemplate,
) -> Result<(), ProgramError> {
    let command = settings.fill_command(&program.command).map_err(ProgramError::Template)?;
    let spelt = command.join(" ");
    let limit = choice.description.ready_timeout();
    let output =
        process::run_to_end(&command, &settings.work, &choice.helper_cpus, choice.namespace.as_ref(), limit)
            .await
            .map_err(|cause| ProgramError::Run { command: spelt.clone(), cause })?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words).trim_end().to_owned();
    Err(ProgramError::Failed { command: spelt, status: output.status, words })
}

fn launch(
    choice: &RealProxyPlan,
    settings: &TemplateVariables,
    work: &WorkDir,
    program: &ProgramTemplate,
    group: Option<u32>,
) -> Result<Process, LabError> {
    let title = &choice.description.title;
    let cannot = |e: &dyn std::fmt::Display| {
        LabError::run(format!("{title} did not start: `{}` cannot be run: {e}", program.command.join(" ")))
    };
    let command = settings.fill_command(&program.command).map_err(|e| cannot(&e))?;
    let (name, arguments) = command.split_first().ok_or_else(|| cannot(&"no program is named"))?;
    let found = process::find_program(name).ok_or_else(|| cannot(&"it is not installed"))?;
    // Its temporary files, those of Varnish's compiler among them, go with the work directory, however it ends.
    let temporary = ("TMPDIR".to_owned(), work.path().display().to_string());
    let described = program.environment.iter().map(|(key, value)| Ok((key.clone(), settings.fill(value)?)));
    let environment: Result<_, minijinja::Error> = std::iter::once(Ok(temporary)).chain(described).collect();
    Process::start(Launch {
        program: found.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: environment.map_err(|e| cannot(&e))?,
        directory: work.path(),
        cpus: &choice.cpus,
        piped: false,
        output: &work.path().join(OUTPUT),
        group,
        procs_files: &choice.procs_files,
        namespace: choice.namespace.clone(),
        inherit: Vec::new(),
    })
    .map_err(|e| cannot(&e))
}

fn signal_name(signal: StopSignal) -> &'static str {
    match signal {
        StopSignal::Term => "TERM",
        StopSignal::Int => "INT",
        StopSignal::Quit => "QUIT",
    }
}

/// Copies configuration, logs and output to where the run keeps them. Best effort: the run goes on without.
fn keep(choice: &RealProxyPlan, work: &WorkDir) {
    let description = &choice.description;
    let files = description.files.iter().map(|file| file.path.clone());
    let all: Vec<String> = files.chain(description.all_logs().cloned()).chain([OUTPUT.to_owned()]).collect();
    let mut notes = work.keep(&all, &choice.keep);
    let source = workdir::keep_text(&choice.keep, "description.toml", &description.source);
    notes.extend(source.err().map(|e| format!("the description could not be kept: {e}")));
    if !notes.is_empty() {
        // If even this cannot be written, the disk is full and the run says so elsewhere.
        let _ = workdir::keep_text(&choice.keep, "not-kept.txt", &(notes.join("\n") + "\n"));
    }
}

/// Version that the proxy reports.
pub async fn version(description: &Description) -> Result<String, VersionError> {
    version_of(&description.version).await
}

/// The same, of one of its programs.
async fn version_of(version: &VersionCommand) -> Result<String, VersionError> {
    let command = &version.command;
    let output = process::run_to_end(command, Path::new("/"), &[], None, QUICK)
        .await
        .map_err(|cause| VersionError::Run { command: command.join(" "), cause })?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    extract_version(&text, &version.after)
        .ok_or_else(|| VersionError::NotPrinted { command: command.join(" "), after: version.after.clone() })
}

/// Note on the program that speaks TLS to robots in its place, for readers of the results; none: it does so itself.
pub(crate) async fn terminator_note(description: &Description) -> Result<Option<String>, LabError> {
    let Some(terminator) = &description.tls_terminator else { return Ok(None) };
    let version = version_of(&terminator.version).await.map_err(LabError::run)?;
    let (title, by) = (&description.title, &terminator.title);
    Ok(Some(format!(
        "{title} speaks TLS through {by} {version}, whose processor time and memory count as those of {title}."
    )))
}

fn extract_version(text: &str, after: &str) -> Option<String> {
    let (_, rest) = text.split_once(after)?;
    let version: String =
        rest.chars().take_while(|c| !c.is_whitespace() && !matches!(c, ')' | ',')).collect();
    (!version.is_empty()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_cut_out_of_what_programs_print() {
        let varnish = "varnishd (varnish-7.1.1 revision 7cee1c5)\nCopyright";
        assert_eq!(extract_version(varnish, "varnishd (varnish-").as_deref(), Some("7.1.1"));
        assert_eq!(extract_version("nginx version: nginx/1.22.1\n", "nginx/").as_deref(), Some("1.22.1"));
        assert_eq!(extract_version("Squid Cache: Version 5.7\n", "Version ").as_deref(), Some("5.7"));
        assert_eq!(extract_version("usage: x", "nginx/"), None);
    }
}
