//! A run on agents: what the lab wants of other machines, carried out by orders.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::LabError;
use crate::checks::machines::MachineLoad;
use crate::error::FileError;
use crate::machines::fleet::message::{Response, RoleSpec, WatchOrder, What};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::subject;
use crate::remote::{BoxFuture, RemoteMachines, RemoteRole, ResumedRun};
use crate::roles::{RoleEvent, RoleKind};
use assay_protocol::message::Command;
use assay_record::run::{FleetInfo, FleetMachine};
use async_nats::connection::State as Link;
use async_nats::{Client, jetstream};
use futures_util::future::try_join_all;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Fleet;
use super::assignment::AgentAssignment;
use super::clocks::{Clocks, MachineClock};
use super::distributed_role::DistributedRole;
use super::resume::{self, ResumeSurvey};
use super::router::{self, Router};
use super::saved::{self, FILE, SavedPart, SavedRole, SavedRun};
use assay_base::clock::monotonic_ns;

/// Exchanges by which each clock is measured before the run.
pub(super) const EXCHANGES: u32 = 40;
/// Least time between the command to start and the start: three orders one after the other, to the machines of one role at once,
/// on links of up to 300 ms.
const LEAD: Duration = Duration::from_secs(2);
/// The workload of the run, in its object store.
const WORKLOAD: &str = "workload.json";
/// Interval between two messages to robots on the clocks.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// Two clocks drift apart by so much while a robot waits for the next word, at most.
const UNTIL_TOLD_NS: u64 = 2 * 2 * crate::machines::fleet::clock::MOST_DRIFT_PPM * 1000;

/// Order to the machine of the proxy when a run begins.
#[derive(Debug, Clone, Default)]
pub struct ProxyOrder {
    /// The proxy that runs there already.
    pub watch: Option<WatchOrder>,
    /// The description (TOML) of the one that is to be started, where the agent has none like it.
    pub description: Option<String>,
}

/// A run on agents.
#[derive(Debug)]
pub struct Coordinator {
    inner: Arc<CoordinatorState>,
    fleet: Arc<Fleet>,
}

#[derive(Debug)]
pub(super) struct CoordinatorState {
    pub(super) client: Client,
    pub(super) run: Name,
    pub(super) by: String,
    pub(super) version: String,
    pub(super) chosen: AgentAssignment,
    pub(super) clocks: Clocks,
    pub(super) router: Router,
    next_role: AtomicU32,
    pub(super) next_order: AtomicU64,
    /// Last error of the clocks that robots were told, in nanoseconds.
    told_ns: AtomicU64,
    /// Roles, as they are shown in the record.
    roles: Mutex<BTreeMap<Name, Vec<String>>>,
    robots: Mutex<BTreeMap<Name, (u32, u32)>>,
    /// Work that goes on while the run does.
    pub(super) tasks: Mutex<Vec<JoinHandle<()>>>,
    /// State for another coordinator.
    pub(super) saved: Mutex<SavedRun>,
    /// The run directory, which is held while this exists; none: the run has not begun.
    pub(super) held: Mutex<Option<(PathBuf, std::fs::File)>>,
    /// Findings of a run that was taken up; none: it is a new one.
    pub(super) found: Mutex<ResumeSurvey>,
    is_resumed: bool,
    pub(super) proxy_order: ProxyOrder,
    /// The version of the proxy whose description was sent.
    sent_version: Mutex<Option<String>>,
    /// Warnings beside the run's numbers.
    pub(super) warnings: Mutex<Vec<String>>,
}

impl Coordinator {
    /// For one run on these agents, which wait for so long should it end before the run does. `by` is who runs it, for the
    /// agents' logs.
    pub fn new(
        fleet: Arc<Fleet>,
        chosen: AgentAssignment,
        run: Name,
        by: String,
        version: String,
        wait: Duration,
        proxy_order: ProxyOrder,
    ) -> Self {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let saved = saved::first(run, version, &fleet.url, wait_ms, chosen);
        let clocks = Clocks::of(saved.chosen.all());
        let inner =
            CoordinatorState { proxy_order, ..CoordinatorState::of(fleet.client.clone(), saved, by, clocks) };
        Self::of(Arc::new(inner), fleet)
    }

    pub(super) fn of(inner: Arc<CoordinatorState>, fleet: Arc<Fleet>) -> Self {
        Self { inner, fleet }
    }

    /// Does something on the thread of the connection, which goes on even if nobody waits for it any more.
    fn spawn_there<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, LabError>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, LabError>> {
        let handle = self.fleet.background.handle.spawn(work);
        Box::pin(async move { handle.await.unwrap_or_else(|e| Err(LabError::assay(e))) })
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        // Agents end everything by themselves once no clock request comes.
        for task in lock(&self.inner.tasks).drain(..) {
            task.abort();
        }
    }
}

impl RemoteMachines for Coordinator {
    fn begin<'a>(&'a self, workload: &'a Path) -> BoxFuture<'a, Result<(), LabError>> {
        let (inner, workload) = (self.inner.clone(), workload.to_owned());
        self.spawn_there(async move { inner.begin(&workload).await })
    }

    fn start<'a>(
        &'a self,
        kind: RoleKind,
        spec: RoleSpec,
        said: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> BoxFuture<'a, Result<Box<dyn RemoteRole>, LabError>> {
        let inner = self.inner.clone();
        let handle = self.fleet.background.handle.clone();
        let starting = self.spawn_there(async move { inner.start(kind, spec, said).await });
        let inner = self.inner.clone();
        Box::pin(async move {
            let (place, parts) = starting.await?;
            Ok(Box::new(DistributedRole { inner, handle, kind, place, parts }) as Box<dyn RemoteRole>)
        })
    }

    fn is_resumed(&self) -> bool {
        self.inner.is_resumed
    }

    fn resume(
        &self,
        said: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> BoxFuture<'_, Result<ResumedRun, LabError>> {
        let (inner, handle) = (self.inner.clone(), self.fleet.background.handle.clone());
        self.spawn_there(async move { inner.resume(handle, said).await })
    }

    fn address(&self, kind: RoleKind) -> IpAddr {
        let machine = match kind {
            RoleKind::Proxy(_) => self.inner.chosen.proxy.as_ref(),
            RoleKind::Robots => self.inner.chosen.robots.first(),
            _ => self.inner.chosen.origins.first(),
        };
        machine.map_or(IpAddr::from([127, 0, 0, 1]), |machine| machine.address)
    }

    fn carriers(&self) -> Vec<MachineLoad> {
        self.inner.chosen.carriers()
    }

    fn lead(&self) -> Duration {
        LEAD
    }

    fn proxy_version(&self, name: &str) -> Option<String> {
        if let Some(version) = lock(&self.inner.sent_version).clone() {
            return Some(version);
        }
        let machine = self.inner.chosen.proxy.as_ref()?;
        machine.proxies.iter().find(|proxy| proxy.name == name).map(|proxy| proxy.version.clone())
    }

    fn finish<'a>(&'a self, run_dir: &'a Path) -> BoxFuture<'a, Vec<String>> {
        let (inner, run_dir) = (self.inner.clone(), run_dir.to_owned());
        let finishing = self.fleet.background.handle.spawn(async move { inner.finish(&run_dir).await });
        Box::pin(async move { finishing.await.unwrap_or_else(|e| vec![e.to_string()]) })
    }

    fn info(&self) -> FleetInfo {
        self.inner.info()
    }
}

impl CoordinatorState {
    fn of(client: Client, saved: SavedRun, by: String, clocks: Clocks) -> Self {
        Self {
            client,
            run: saved.run.clone(),
            by,
            version: saved.version.clone(),
            clocks,
            router: Router::default(),
            next_role: AtomicU32::new(0),
            // Those of a coordinator that takes the run up follow upon those of the one before.
            next_order: AtomicU64::new(monotonic_ns()),
            told_ns: AtomicU64::new(saved.told_ns),
            roles: Mutex::default(),
            robots: Mutex::default(),
            tasks: Mutex::default(),
            chosen: saved.chosen.clone(),
            saved: Mutex::new(saved),
            held: Mutex::default(),
            found: Mutex::default(),
            is_resumed: false,
            proxy_order: ProxyOrder::default(),
            sent_version: Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    /// Of a run that another coordinator wrote down.
    pub(super) fn resumed(
        client: Client,
        saved: SavedRun,
        by: String,
        run_dir: &Path,
        held: std::fs::File,
        found: ResumeSurvey,
    ) -> Self {
        let clocks = Clocks::resumed(saved.chosen.all(), &saved.clocks, saved.start_ns().unwrap_or(0));
        let (mut roles, mut robots) = (BTreeMap::<Name, Vec<String>>::new(), BTreeMap::new());
        for (role, part) in
            saved.roles.iter().flat_map(|role| role.parts.iter().map(move |part| (role, part)))
        {
            roles.entry(part.machine.clone()).or_default().push(role.kind.name().to_owned());
            robots.extend(part.robots.map(|range| (part.machine.clone(), range)));
        }
        Self {
            roles: Mutex::new(roles),
            robots: Mutex::new(robots),
            held: Mutex::new(Some((run_dir.to_owned(), held))),
            found: Mutex::new(found),
            is_resumed: true,
            ..Self::of(client, saved, by, clocks)
        }
    }

    /// Writes down what another coordinator would need, as it is now.
    pub(super) fn save(&self) -> Result<(), LabError> {
        let Some(run_dir) = lock(&self.held).as_ref().map(|(run_dir, _)| run_dir.clone()) else {
            return Ok(());
        };
        let mut saved = lock(&self.saved);
        saved.clocks = self.clocks.saved();
        saved.told_ns = self.told_ns.load(Ordering::Relaxed);
        saved.saved_ns = monotonic_ns();
        saved.write(&run_dir).map_err(LabError::run)
    }

    async fn begin(self: Arc<Self>, workload: &Path) -> Result<(), LabError> {
        let run_dir = workload.parent().unwrap_or(Path::new("."));
        let directory = resume::lock_run_dir(run_dir).map_err(LabError::plan)?;
        *lock(&self.held) = Some((run_dir.to_owned(), directory));
        self.save()?;
        router::make(&self.client, &self.run).await.map_err(LabError::plan)?;
        let cannot =
            |e: &dyn std::fmt::Display| LabError::run(format!("cannot give agents the workload: {e}"));
        let bytes =
            assay_base::files::bytes(workload, assay_base::files::DOCUMENT_MAX).map_err(|e| cannot(&e))?;
        let store = jetstream::new(self.client.clone()).get_object_store(subject::bucket(&self.run)).await;
        store.map_err(|e| cannot(&e))?.put(WORKLOAD, &mut bytes.as_slice()).await.map_err(|e| cannot(&e))?;
        // All at once: one after the other, the first of many distant ones would give the coordinator up before the last one begins.
        let machines = self.chosen.all();
        try_join_all(machines.iter().map(|machine| self.begin_on(&machine.name))).await?;
        if let Some(target) = self.chosen.proxy.as_ref().or(self.chosen.origins.first()) {
            self.router.measure(target.name.clone());
        }
        let machines = machines.into_iter().map(|machine| machine.name).collect();
        let _ = self.go_on(machines);
        Ok(())
    }

    /// Begins what goes on while the run does. A machine that was lost is put into what this gives.
    pub(super) fn go_on(self: Arc<Self>, machines: Vec<Name>) -> mpsc::UnboundedSender<Name> {
        let (lost, losses) = mpsc::unbounded_channel();
        let mut tasks = vec![
            tokio::spawn(router::read(self.client.clone(), self.run.clone(), self.router.clone())),
            tokio::spawn(self.clone().report_losses(losses)),
            tokio::spawn(self.clone().tell_of_clocks()),
        ];
        for name in machines {
            let following =
                self.clocks.clone().follow(self.client.clone(), name, self.run.clone(), lost.clone());
            tasks.push(tokio::spawn(following));
        }
        lock(&self.tasks).extend(tasks);
        lost
    }

    /// Measures a machine's clock, and makes it take part.
    async fn begin_on(&self, name: &Name) -> Result<(), LabError> {
        for _ in 0..EXCHANGES {
            if let Ok((exchange, instance, ahead_us)) =
                crate::machines::discovery::exchange(&self.client, name, Some(&self.run)).await
            {
                let taken = self.clocks.take(name, instance, exchange, ahead_us);
                taken.map_err(|why| LabError::run(format!("the machine {name}: {why}")))?;
            }
        }
        let wait_ms = lock(&self.saved).wait_ms;
        let is_targets = self.chosen.proxy.as_ref().is_some_and(|proxy| proxy.name == *name);
        let ProxyOrder { watch, description } =
            if is_targets { self.proxy_order.clone() } else { ProxyOrder::default() };
        if watch.is_some() {
            lock(&self.roles).entry(name.clone()).or_default().push(RoleKind::Proxy(0).name().to_owned());
        }
        // Nothing has been started yet.
        let begun = self.order(name, What::Begin { wait_ms, watch, description }).await;
        if let Response::Version(version) = begun.map_err(LabError::plan)? {
            *lock(&self.sent_version) = Some(version);
        }
        Ok(())
    }

    /// Tells roles of lost machines' ends.
    async fn report_losses(self: Arc<Self>, mut losses: mpsc::UnboundedReceiver<Name>) {
        while let Some(name) = losses.recv().await {
            let Some(machine) = self.clocks.machine(&name) else { continue };
            self.router.lose(&name, &self.loss_message(&machine));
        }
    }

    pub(super) fn loss_message(&self, machine: &MachineClock) -> String {
        let (at_ns, why) = machine.lost.clone().unwrap_or((0, "it is gone".to_owned()));
        let when = match self.clocks.start_ns() {
            Some(start_ns) if at_ns >= start_ns => {
                format!("{:.1} s after the start", (at_ns - start_ns) as f64 / 1e9)
            }
            _ => "before the start".to_owned(),
        };
        let roles = lock(&self.roles).get(&machine.info.name).cloned().unwrap_or_default().join(" and ");
        format!(
            "the machine {} was lost {when} ({why}); it ran {roles}; what they did after their last report is in no number",
            machine.info.name
        )
    }

    /// Tells robots, once a second, how far instants of origins can be from theirs.
    async fn tell_of_clocks(self: Arc<Self>) {
        let mut ticker = tokio::time::interval(TOLD_EVERY);
        ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticker.tick().await;
            if self.clocks.start_ns().is_none() {
                continue;
            }
            // A disk that is full ends the run elsewhere; what was written before is still there.
            let _ = self.save();
            // Where nothing is known of a clock, no instant of an origin can be held against a response.
            let told_ns =
                self.clocks.error_ns().map_or(u64::MAX, |error_ns| error_ns.saturating_add(UNTIL_TOLD_NS));
            if self.told_ns.fetch_max(told_ns, Ordering::Relaxed) >= told_ns {
                continue;
            }
            let error_us = if told_ns == u64::MAX { u64::MAX } else { told_ns.div_ceil(1000) };
            let command = Command::Clock { error_us };
            let parts = lock(&self.robots).keys().cloned().collect::<Vec<_>>();
            for machine in parts {
                if let Some(role) = self.role_on(&machine, RoleKind::Robots) {
                    // A machine that does not hear it is lost, or hears the next.
                    let _ = self.order(&machine, What::Tell { role, command: command.clone() }).await;
                }
            }
        }
    }

    fn role_on(&self, machine: &Name, kind: RoleKind) -> Option<u32> {
        self.router.number(machine, kind)
    }

    async fn start(
        self: Arc<Self>,
        kind: RoleKind,
        spec: RoleSpec,
        said: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> Result<(usize, Vec<(Name, u32)>), LabError> {
        let specs = self.divide(spec)?;
        let number = |(name, spec): (Name, RoleSpec), threads: u32| {
            (name, self.next_role.fetch_add(1, Ordering::Relaxed), threads, spec)
        };
        let numbered: Vec<_> = specs
            .into_iter()
            .map(|(name, spec)| {
                let threads = self.clocks.machine(&name).map_or(1, |machine| machine.info.cpus);
                number((name, spec), threads)
            })
            .collect();
        let parts: Vec<_> =
            numbered.iter().map(|(name, number, threads, _)| (name.clone(), *number, *threads)).collect();
        let place = self.router.add(kind, &parts, said);
        let saved_part = |(machine, number, threads, spec): &(Name, u32, u32, RoleSpec)| SavedPart {
            machine: machine.clone(),
            number: *number,
            threads: *threads,
            robots: if let RoleSpec::Robots(spec) = spec { spec.robots } else { None },
        };
        let role = SavedRole { kind, parts: numbered.iter().map(saved_part).collect() };
        lock(&self.saved).roles.push(role);
        self.save()?;
        for (name, number, _, mut spec) in numbered {
            if let RoleSpec::Robots(spec) = &spec
                && let Some(robots) = spec.robots
            {
                lock(&self.robots).insert(name.clone(), robots);
            }
            lock(&self.roles).entry(name.clone()).or_default().push(kind.name().to_owned());
            let files = tls_files(&mut spec)?;
            self.order(&name, What::Start { role: number, spec: Box::new(spec), files }).await?;
        }
        Ok((place, parts.into_iter().map(|(name, number, _)| (name, number)).collect()))
    }

    /// Ends everything, brings the files, removes stream and store.
    async fn finish(self: Arc<Self>, run_dir: &Path) -> Vec<String> {
        let mut missing = std::mem::take(&mut *lock(&self.warnings));
        for machine in self.clocks.machines() {
            let name = machine.info.name;
            if machine.lost.is_some() {
                continue;
            }
            let brought = self.bring(&name, run_dir).await;
            missing
                .extend(brought.err().map(|why| format!("files of the machine {name} are missing: {why}")));
        }
        for task in lock(&self.tasks).drain(..) {
            task.abort();
        }
        // With a server that is gone, that would only take its time; what stays there is removed by its age.
        let is_cut_off = self.client.connection_state() != Link::Connected
            && self.clocks.machines().iter().all(|machine| machine.lost.is_some());
        if !is_cut_off {
            router::remove(&self.client, &self.run).await;
        }
        // A run that has ended is not taken up; what cannot be removed says so by the stream that is not there.
        let _ = std::fs::remove_file(run_dir.join(FILE));
        missing
    }

    fn info(&self) -> FleetInfo {
        let us = |ns: u64| ns.div_ceil(1000);
        let start_ns = self.clocks.start_ns();
        let machines = self.clocks.machines().into_iter().map(|machine| {
            let MachineClock { info, clock, assumed_ns, at_start, worst_ns, wall_ahead_us, lost, .. } =
                machine;
            let start_error_ns =
                at_start.zip(assumed_ns).map(|(offset, assumed_ns)| offset.error_of_ns(assumed_ns));
            FleetMachine {
                roles: lock(&self.roles).get(&info.name).cloned().unwrap_or_default(),
                robots: lock(&self.robots).get(&info.name).copied(),
                name: info.name.to_string(),
                labels: info.labels.iter().map(ToString::to_string).collect(),
                address: info.address.to_string(),
                kernel: info.kernel,
                cpus: info.cpus,
                memory_bytes: info.memory_bytes,
                offset_ns: assumed_ns.unwrap_or(0),
                start_error_us: start_error_ns.map(us),
                clock_error_us: worst_ns.filter(|_| assumed_ns.is_some()).map(us),
                quickest_exchange_us: clock.quickest_ns().map(us),
                wall_clock_ahead_us: wall_ahead_us,
                lost_at_ms: lost
                    .map(|(at_ns, _)| at_ns.saturating_sub(start_ns.unwrap_or(at_ns)) / 1_000_000),
            }
        });
        FleetInfo {
            machines: machines.collect(),
            away_ms: lock(&self.saved).away_ms.clone(),
            start_spread_us: self.clocks.start_spread_ns().map(us),
            clock_error_us: start_ns.and_then(|_| self.clocks.error_ns()).map(us),
        }
    }
}

/// Contents of the files that a spec names for TLS; from here on it has their last names only.
fn tls_files(spec: &mut RoleSpec) -> Result<BTreeMap<String, String>, LabError> {
    let mut files = BTreeMap::new();
    for path in spec.tls_files() {
        let text = assay_base::files::text(path, assay_base::files::SETTINGS_MAX);
        let text = text.map_err(|e| LabError::run(FileError::read(path, e)))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        *path = PathBuf::from(&name);
        files.insert(name, text);
    }
    Ok(files)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_robots_are_told_covers_the_drift_until_they_are_told_again() {
        // Two clocks, each of which may drift by 500 ppm, two seconds: 2 ms.
        assert_eq!(UNTIL_TOLD_NS, 2_000_000);
    }
}
