//! The run that an agent takes part in: its roles, its files, and what its machine does meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::machines::fleet::message::{AgentInfo, Busy, Order, Output, RoleSpec, WatchOrder, What};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::subject;
use crate::process::Launch;
use crate::roles::{Role, RoleEvent, RoleKind};
use crate::watched_processes::{self, ProcessSelector};
use assay_host::metrics::Meter;
use assay_measurement::doubt::Reason;
use assay_protocol::message::{Command, Event};
use async_nats::{Client, jetstream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::adapt::{AgentBounds, adapt};
use super::descriptions::{self, SentDescription};
use super::outbox::Outbox;
use super::{AgentSettings, MOST_WAIT};
use crate::machines::error::FleetError;
use crate::machines::object_store;
use assay_base::clock::monotonic_ns;

/// The workload of the run, in its directory and in the object store.
pub const WORKLOAD: &str = "workload.json";
/// The log of all requests of the robots here.
pub const XACTS: &str = "xacts.parquet";
/// Directory of a real proxy's configuration and logs.
pub const PROXY: &str = "proxy";
/// Description by which it is driven.
pub const DESCRIPTION: &str = "description.toml";
/// Directory of the specs of roles, and of their standard error.
const ROLES: &str = "roles";
/// Certificates and keys of the run. They are not sent to its record.
pub const TLS: &str = "tls";
const MOST_WORKLOAD_BYTES: u64 = 256 << 20;
/// Time that fetching the workload may take: a coordinator gives an order up after the same time.
const FETCH_TIMEOUT: Duration = Duration::from_secs(60);
/// Time that a role may take to end once it was told to: a real proxy has files to close.
const END_TIMEOUT: Duration = Duration::from_secs(15);
/// Time that storing the last messages of roles may take.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(20);

/// An agent's part of a run.
pub struct AgentRun {
    run: Name,
    by: String,
    wait: Duration,
    agent: Name,
    dir: PathBuf,
    roles: BTreeMap<u32, Role>,
    outbox: Outbox,
    said: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    heard: mpsc::UnboundedReceiver<(RoleKind, RoleEvent)>,
    /// Time at which the run starts, on this machine's clock.
    start_ns: Option<u64>,
    /// The first processes of a proxy that runs here already, where they are watched.
    watched: Vec<u32>,
    /// Directory in which the proxy here keeps its files.
    store: Option<PathBuf>,
    /// The description that came with the run.
    sent: Option<SentDescription>,
    meter: Option<Meter>,
    next_sample: Instant,
}

impl AgentRun {
    /// Makes the directory of the run and fetches its workload, as an order to begin says.
    pub async fn begin(settings: &AgentSettings, client: &Client, order: &Order) -> Result<Self, FleetError> {
        let What::Begin { wait_ms, watch, description } = &order.what else {
            return Err(FleetError::plan("the run has not begun"));
        };
        let wait = Duration::from_millis(*wait_ms).min(MOST_WAIT);
        let watched = watch.as_ref().map(find_watched).transpose()?.unwrap_or_default();
        let sent = match description {
            Some(text) => Some(SentDescription::read(settings.accepts_descriptions, text).await?),
            None => None,
        };
        let workload = fetch_workload(client, &order.run).await?;
        refuse_files(&workload)?;
        let dir = settings.dir.join(format!("run-{}", order.run));
        prepare(&dir, &workload)?;
        let (said, heard) = mpsc::unbounded_channel();
        Ok(Self {
            run: order.run.clone(),
            by: order.by.clone(),
            wait,
            agent: settings.name.clone(),
            roles: BTreeMap::new(),
            outbox: Outbox::open(client, &order.run, &settings.name),
            said,
            heard,
            start_ns: None,
            watched,
            store: watch.as_ref().and_then(|watch| watch.store.clone()),
            sent,
            meter: None,
            next_sample: Instant::now(),
            dir,
        })
    }

    pub fn run(&self) -> &Name {
        &self.run
    }

    /// The version of the proxy whose description came with the run.
    pub fn version(&self) -> Option<String> {
        self.sent.as_ref().map(|sent| sent.version.clone())
    }

    /// Time for which it goes on without a word from a coordinator. A network that is cut for less costs nothing.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Activity of the agent in it.
    pub fn busy(&self) -> Busy {
        let roles = self.roles.values().map(|role| role.kind.name().to_owned());
        Busy { run: self.run.clone(), by: self.by.clone(), roles: roles.collect() }
    }

    pub fn start(
        &mut self,
        settings: &AgentSettings,
        info: &AgentInfo,
        number: u32,
        spec: RoleSpec,
        files: &BTreeMap<String, String>,
    ) -> Result<(), FleetError> {
        let kind = match &spec {
            RoleSpec::Robots(_) => RoleKind::Robots,
            RoleSpec::Origins(_) => RoleKind::Origins,
            RoleSpec::Builtin(_) | RoleSpec::Target(_) => RoleKind::Proxy(0),
        };
        if self.roles.values().any(|role| role.kind == kind) {
            return Err(FleetError::plan(format!("{} run here already", kind.name())));
        }
        let name = spec.role();
        let bounds = AgentBounds { address: info.address, may_load: &settings.may_load, dir: &self.dir };
        let description = match &spec {
            RoleSpec::Target(spec) => Some(spec.description.clone()),
            _ => None,
        };
        let spec = adapt(spec, bounds)?;
        if let Some(name) = description {
            let text = descriptions::text(settings, &info.proxies, self.sent.as_ref(), &name)?;
            let path = self.dir.join(DESCRIPTION);
            let cannot = |e| FleetError::failed(format!("cannot write {}: {e}", path.display()));
            std::fs::write(&path, text).map_err(cannot)?;
            // Its work directory is made there.
            self.store = Some(std::env::temp_dir());
        }
        write_tls(&self.dir, files)?;
        let roles = self.dir.join(ROLES);
        let path = roles.join(format!("{name}.json"));
        let cannot =
            |e: &dyn std::fmt::Display| FleetError::failed(format!("cannot write {}: {e}", path.display()));
        let text = document(&spec).map_err(|e| cannot(&e))?;
        std::fs::write(&path, text).map_err(|e| cannot(&e))?;
        let launch = Launch {
            program: settings.exe.clone().into(),
            arguments: vec!["role".into(), name.into(), path.clone().into()],
            environment: BTreeMap::new(),
            directory: &roles,
            cpus: &[],
            piped: true,
            output: &roles.join(format!("{name}.log")),
            group: None,
            procs_files: &[],
            namespace: None,
            inherit: Vec::new(),
        };
        let role = Role::start(kind, launch, self.said.clone()).map_err(FleetError::failed)?;
        self.roles.insert(number, role);
        Ok(())
    }

    /// The schedule begins at this instant of the kernel's clock.
    pub fn measure_from(&mut self, at_monotonic_ns: u64) {
        self.start_ns = Some(at_monotonic_ns);
        self.next_sample = Instant::now() + until(at_monotonic_ns);
    }

    /// Passes a command on.
    pub async fn tell(&mut self, number: u32, command: Command) -> Result<(), FleetError> {
        if let Command::Start { at_monotonic_ns, .. } = command {
            self.measure_from(at_monotonic_ns);
        }
        match self.roles.get_mut(&number) {
            Some(role) => role.send(command).await.map_err(FleetError::failed),
            None => Err(FleetError::plan(format!("there is no role {number} here"))),
        }
    }

    /// Ends a role, once all that it said before is on its way.
    pub async fn end(&mut self, number: u32) {
        if let Some(mut role) = self.roles.remove(&number) {
            role.end_within(END_TIMEOUT).await;
            while let Ok((kind, said)) = self.heard.try_recv() {
                if kind == role.kind {
                    self.put(Some(number), output_of(said));
                } else {
                    self.pass_on(kind, said).await;
                }
            }
        }
    }

    /// Waits for the next thing to do: something that a role said, or the next sample of the machine. Can be dropped half-way.
    pub async fn attend(&mut self) {
        let sample = async {
            match self.start_ns {
                Some(_) => tokio::time::sleep_until(self.next_sample).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = self.heard.recv() => if let Some((kind, said)) = heard {
                self.pass_on(kind, said).await;
            },
            () = sample => self.measure(),
        }
    }

    async fn pass_on(&mut self, kind: RoleKind, said: RoleEvent) {
        if matches!(&said, RoleEvent::Event(event) if matches!(**event, Event::Ready { .. })) {
            remove_keys(&self.dir);
        }
        let number = self.roles.iter().find(|(_, role)| role.kind == kind).map(|(number, _)| *number);
        let output = match (said, number.and_then(|number| self.roles.get_mut(&number))) {
            (RoleEvent::Ended, Some(role)) => Output::Ended(role.exit_summary().await),
            (said, _) => output_of(said),
        };
        self.put(number, output);
    }

    fn put(&mut self, number: Option<u32>, output: Output) {
        self.outbox.put(number, output);
    }

    /// Measures the machine and the roles on it over the last second.
    fn measure(&mut self) {
        let Some(start_ns) = self.start_ns else { return };
        self.next_sample += Duration::from_secs(1);
        let Some(meter) = &mut self.meter else {
            let accounts = self.roles.values();
            let accounts = accounts.filter_map(|role| Some((role.kind.name().to_owned(), vec![role.pid()?])));
            let watched = Some(self.watched.clone()).filter(|pids| !pids.is_empty());
            let accounts = accounts.chain(watched.map(|pids| ("proxy".to_owned(), pids)));
            self.meter = Some(Meter::new(accounts.collect(), self.store.as_deref(), None));
            return;
        };
        let now_ms = monotonic_ns().saturating_sub(start_ns) / 1_000_000;
        let ended = self.watched.iter().position(|pid| !watched_processes::is_alive(*pid));
        if let Some(pid) = ended.map(|place| self.watched.remove(place)) {
            let message = format!(
                "process {pid} of the proxy, which was watched, ended after {} s: what the proxy used after that is not, or not \
                 all, known",
                now_ms / 1000
            );
            let event = Event::Fault { reason: Reason::RoleFailed, message };
            self.outbox.put(None, Output::Event(Box::new(event)));
        }
        let outbox = &mut self.outbox;
        let kept: Result<(), std::convert::Infallible> = meter.measure(now_ms, |sample| {
            for measured in sample.into_measured() {
                outbox.put(None, Output::Event(Box::new(Event::Measured(measured))));
            }
            Ok(())
        });
        match kept {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Ends every role at once; nothing more is said.
    pub async fn abandon(mut self) {
        self.end_all().await;
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    async fn end_all(&mut self) {
        while let Some((_, mut role)) = self.roles.pop_first() {
            role.end_within(END_TIMEOUT).await;
        }
    }

    /// Ends what still runs, stores files in the object store of the run, and removes them here. What could not be stored is still
    /// here, to be stored when this is called again.
    pub async fn finish(&mut self, client: &Client) -> Result<Vec<String>, FleetError> {
        let numbers: Vec<u32> = self.roles.keys().copied().collect();
        for number in numbers {
            self.end(number).await;
        }
        self.outbox.close(LAST_WORDS_TIMEOUT).await;
        let stored = store(client, &self.run, &self.agent, &self.dir).await?;
        // What cannot be removed is in the agent's directory, and said nowhere else.
        let _ = std::fs::remove_dir_all(&self.dir);
        Ok(stored)
    }
}

/// Makes the directory of a run, with its workload. Nothing of it is left where that fails.
fn prepare(dir: &Path, workload: &[u8]) -> Result<(), FleetError> {
    let made =
        std::fs::create_dir_all(dir.join(ROLES)).and_then(|()| std::fs::write(dir.join(WORKLOAD), workload));
    made.map_err(|e| {
        // What cannot be removed is in the agent's directory, and said in the message.
        let _ = std::fs::remove_dir_all(dir);
        FleetError::failed(format!(
            "cannot prepare {}: {e}; make room there, or start the agent with another --dir",
            dir.display()
        ))
    })
}

/// The first processes of a proxy that runs on this machine.
fn find_watched(order: &WatchOrder) -> Result<Vec<u32>, FleetError> {
    if let Some(store) = order.store.as_ref().filter(|store| !store.is_dir()) {
        return Err(FleetError::plan(format!(
            "--watch-store {}: there is no such directory here",
            store.display()
        )));
    }
    let Some(selector) = &order.processes else { return Ok(Vec::new()) };
    let refuse = |why: &dyn std::fmt::Display| FleetError::plan(format!("--watch {selector}: {why}"));
    let processes = selector.parse::<ProcessSelector>().map_err(|e| refuse(&e))?;
    watched_processes::find(&processes, order.address).map_err(|e| refuse(&e))
}

/// Writes certificates and keys where only roles of this user read them. The names were made from paths by a coordinator; what
/// could be a path is refused.
fn write_tls(dir: &Path, files: &BTreeMap<String, String>) -> Result<(), FleetError> {
    for (name, text) in files {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        if !is_plain || !(name.ends_with(".pem") || name.ends_with(".key")) {
            return Err(FleetError::plan(format!(
                "`{}` is no name of a certificate or key",
                name.escape_debug()
            )));
        }
        let path = dir.join(TLS).join(name);
        let write = || {
            std::fs::create_dir_all(dir.join(TLS))?;
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(text.as_bytes())
        };
        write().map_err(|e| FleetError::failed(format!("cannot write {}: {e}", path.display())))?;
    }
    Ok(())
}

/// A role has read the key that it was given.
fn remove_keys(dir: &Path) {
    for path in
        files(&dir.join(TLS)).into_iter().filter(|path| path.extension().is_some_and(|it| it == "key"))
    {
        // What cannot be removed is removed with the directory of the run.
        let _ = std::fs::remove_file(path);
    }
}

fn until(at_ns: u64) -> Duration {
    Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()))
}

fn output_of(said: RoleEvent) -> Output {
    match said {
        RoleEvent::Event(event) => Output::Event(event),
        RoleEvent::Malformed(line) => Output::Nonsense(line),
        RoleEvent::Ended => Output::Ended(String::new()),
    }
}

fn document(spec: &RoleSpec) -> serde_json::Result<Vec<u8>> {
    match spec {
        RoleSpec::Robots(spec) => serde_json::to_vec_pretty(spec),
        RoleSpec::Origins(spec) => serde_json::to_vec_pretty(spec),
        RoleSpec::Builtin(spec) => serde_json::to_vec_pretty(spec),
        RoleSpec::Target(spec) => serde_json::to_vec_pretty(spec),
    }
}

/// The workload of a run, from its object store. Whoever ordered this waits no longer than [`FETCH_TIMEOUT`] either.
async fn fetch_workload(client: &Client, run: &Name) -> Result<Vec<u8>, FleetError> {
    let cannot =
        |e: &dyn std::fmt::Display| FleetError::failed(format!("cannot fetch the workload of {run}: {e}"));
    let fetch = async {
        let store = jetstream::new(client.clone()).get_object_store(subject::bucket(run)).await;
        let mut object = store.map_err(|e| cannot(&e))?.get(WORKLOAD).await.map_err(|e| cannot(&e))?;
        let mut bytes = Vec::new();
        let copied =
            object_store::copy(&mut object, &mut bytes, MOST_WORKLOAD_BYTES, object_store::QUIET).await;
        copied.map_err(|why| cannot(&why))?;
        Ok(bytes)
    };
    match tokio::time::timeout(FETCH_TIMEOUT, fetch).await {
        Ok(fetched) => fetched,
        Err(_) => Err(cannot(&format!("it did not come within {FETCH_TIMEOUT:?}"))),
    }
}

/// A workload may make bodies of files; those of this machine are nobody else's business.
fn refuse_files(workload: &[u8]) -> Result<(), FleetError> {
    let workload: serde_json::Value = serde_json::from_slice(workload)
        .map_err(|e| FleetError::plan(format!("the workload is no JSON document: {e}")))?;
    let files = workload.get("files").and_then(serde_json::Value::as_array);
    if files.is_some_and(|files| !files.is_empty()) {
        return Err(FleetError::plan(
            "the workload makes bodies of files, and agents read no files for a run",
        ));
    }
    Ok(())
}

/// Puts the files of the run into its object store; their names, relative to the run's directory.
async fn store(client: &Client, run: &Name, agent: &Name, dir: &Path) -> Result<Vec<String>, FleetError> {
    let cannot = |e: &dyn std::fmt::Display| FleetError::failed(format!("cannot store files of {run}: {e}"));
    let store = jetstream::new(client.clone())
        .get_object_store(subject::bucket(run))
        .await
        .map_err(|e| cannot(&e))?;
    let mut names = Vec::new();
    for path in files(dir) {
        let Ok(relative) = path.strip_prefix(dir) else { continue };
        let name = relative.to_string_lossy().into_owned();
        if name == WORKLOAD || relative.starts_with(TLS) {
            continue;
        }
        let bytes = assay_base::files::bytes(&path, assay_base::files::BODY_MAX).map_err(|e| cannot(&e))?;
        store
            .put(subject::file(agent, &name).as_str(), &mut bytes.as_slice())
            .await
            .map_err(|e| cannot(&e))?;
        names.push(name);
    }
    Ok(names)
}

/// All files below a directory; links are not followed.
fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_that_read_files_are_refused() {
        assert!(refuse_files(b"{}").is_ok() && refuse_files(br#"{"files": []}"#).is_ok());
        for wrong in [&br#"{"files": [{"root": "/etc"}]}"#[..], b"no json"] {
            assert!(refuse_files(wrong).is_err());
        }
    }

    #[test]
    fn a_directory_that_cannot_be_prepared_leaves_nothing_behind() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("run-r1");
        // The workload cannot be written where a directory has its name.
        std::fs::create_dir_all(dir.join(WORKLOAD)).unwrap();
        let error = prepare(&dir, b"{}").unwrap_err().to_string();
        assert!(error.contains("run-r1") && error.contains("--dir"), "{error}");
        assert!(!dir.exists());
    }

    #[test]
    fn keys_are_for_the_agent_alone_until_they_were_read_and_their_names_are_no_paths() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let order = |name: &str| BTreeMap::from([(name.to_owned(), "text".to_owned())]);
        for wrong in ["../x.key", "/etc/x.pem", "x.sh", "a/b.pem", ""] {
            let error = write_tls(dir.path(), &order(wrong)).unwrap_err().to_string();
            assert!(error.contains("is no name of a certificate or key"), "{error}");
        }
        write_tls(dir.path(), &order("target.pem")).unwrap();
        write_tls(dir.path(), &order("target.key")).unwrap();
        let key = dir.path().join("tls/target.key");
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        remove_keys(dir.path());
        assert!(!key.exists() && dir.path().join("tls/target.pem").exists());
    }

    #[test]
    fn files_are_found_below_a_directory_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("roles")).unwrap();
        std::fs::write(dir.path().join("roles/robots.log"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert_eq!(files(dir.path()), [dir.path().join("roles/robots.log")]);
    }
}
