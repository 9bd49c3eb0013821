//! The roles of a run, once started: commands to them, their processes, and their end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_protocol::message::{Command, ProxyCounters};
use assay_record::run::LimitsInfo;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::cgroup::ControlGroup;
use crate::counter_reader::{CounterReadError, CounterReader};
use crate::error::LabError;
use crate::instant::StartInstant;
use crate::real_proxy::RealProxy;
use crate::roles::{Role, RoleKind};

/// All roles of a run. Dropped, all of them are killed.
#[derive(Default)]
pub(crate) struct RunningRoles {
    pub(crate) robots: Option<Role>,
    pub(crate) origins: Option<Role>,
    /// Proxies under test: none, one proxy, or several caches.
    pub(crate) proxies: Vec<StartedProxy>,
    /// Readings of the proxies' own counters.
    pub(crate) counted: CounterReadings,
    /// Holds the proxy to its limits; the last to go.
    pub(crate) limits: Option<ControlGroup>,
    pub(crate) links: Option<Role>,
}

/// A proxy that the lab has started.
pub(crate) enum StartedProxy {
    /// The built-in one, or one on another machine: a role like others.
    Role(Box<Role>),
    /// A real one, with the reader of its counters.
    Real {
        proxy: Box<RealProxy>,
        /// Reads its counters; none: it has none.
        counters: Option<CounterTask>,
        /// Directory in which what it leaves is kept.
        keep: PathBuf,
    },
}

/// Reading of a real proxy's counters.
pub(crate) struct CounterReading {
    /// Index of its cache.
    pub(crate) cache: u16,
    /// Since the start instant.
    pub(crate) at_ms: u64,
    pub(crate) counters: Result<ProxyCounters, CounterReadError>,
}

/// Channel of the readings of all real proxies' counters.
pub(crate) struct CounterReadings {
    send: mpsc::UnboundedSender<CounterReading>,
    read: mpsc::UnboundedReceiver<CounterReading>,
}

impl Default for CounterReadings {
    fn default() -> Self {
        let (send, read) = mpsc::unbounded_channel();
        Self { send, read }
    }
}

impl CounterReadings {
    /// Sender for a reader of counters.
    pub(crate) fn sender(&self) -> mpsc::UnboundedSender<CounterReading> {
        self.send.clone()
    }
}

/// Reads a real proxy's counters once a second, beside everything else.
pub(crate) struct CounterTask {
    start: watch::Sender<Option<StartInstant>>,
    handle: JoinHandle<CounterReader>,
}

/// Findings once everybody is stopped.
#[derive(Default)]
pub(crate) struct ShutdownReport {
    pub(crate) warnings: Vec<String>,
    /// Counters of each proxy at its end, by its place.
    pub(crate) counters: Vec<(u16, ProxyCounters)>,
    pub(crate) limits: Option<LimitsInfo>,
    /// Work directories of real proxies, which are being removed.
    removals: Vec<JoinHandle<()>>,
}

impl RunningRoles {
    pub(crate) fn role(&mut self, kind: RoleKind) -> Option<&mut Role> {
        match kind {
            RoleKind::Robots => self.robots.as_mut(),
            RoleKind::Origins => self.origins.as_mut(),
            RoleKind::Proxy(place) => match self.proxies.get_mut(usize::from(place)) {
                Some(StartedProxy::Role(role)) => Some(role),
                Some(StartedProxy::Real { .. }) | None => None,
            },
            RoleKind::Links => self.links.as_mut(),
            // They are no part of a run.
            RoleKind::Collector | RoleKind::Multiplier => None,
        }
    }

    /// The proxies that are roles, by their places.
    pub(crate) fn proxy_roles(&self) -> Vec<RoleKind> {
        let all = self.proxies.iter().zip(0..);
        all.filter(|(proxy, _)| matches!(proxy, StartedProxy::Role(_)))
            .map(|(_, place)| RoleKind::Proxy(place))
            .collect()
    }

    fn reals(&self) -> impl Iterator<Item = &RealProxy> {
        self.proxies.iter().filter_map(|proxy| match proxy {
            StartedProxy::Real { proxy, .. } => Some(proxy.as_ref()),
            StartedProxy::Role(_) => None,
        })
    }

    pub(crate) fn has(&mut self, kind: RoleKind) -> bool {
        self.role(kind).is_some()
    }

    pub(crate) async fn send(&mut self, kind: RoleKind, command: Command) -> Result<(), LabError> {
        match self.role(kind) {
            Some(role) => role.send(command).await,
            None => Ok(()),
        }
    }

    /// Sends a command to all roles; robots get it last.
    pub(crate) async fn send_all(&mut self, command: Command) -> Result<(), LabError> {
        if let Command::Start { at_monotonic_ns, at_unix_s } = &command {
            let start = StartInstant { monotonic_ns: *at_monotonic_ns, unix_s: *at_unix_s };
            for proxy in &self.proxies {
                if let StartedProxy::Real { counters: Some(task), .. } = proxy {
                    // A reader that has ended reads nothing, and says so by its silence.
                    let _ = task.start.send(Some(start));
                }
            }
        }
        let before = [RoleKind::Links, RoleKind::Origins].into_iter();
        for kind in before.chain(self.proxy_roles()).chain([RoleKind::Robots]) {
            self.send(kind, command.clone()).await?;
        }
        Ok(())
    }

    /// Result of waiting for built-in proxies. Where one of them has ended meanwhile, that is why nothing came.
    pub(crate) async fn or_role_failure<T>(&mut self, waited: Result<T, LabError>) -> Result<T, LabError> {
        if waited.is_err() {
            for kind in self.proxy_roles() {
                if self.role(kind).is_some_and(Role::has_ended) {
                    return Err(LabError::assay(self.exit_summary(kind).await));
                }
            }
        }
        waited
    }

    pub(crate) async fn exit_summary(&mut self, kind: RoleKind) -> String {
        match self.role(kind) {
            Some(role) => role.exit_summary().await,
            None => format!("{} ended", kind.name()),
        }
    }

    /// The next reading of a real proxy's counters; waits forever when there are none.
    pub(crate) async fn counters(&mut self) -> Option<CounterReading> {
        // Never ends: one sender is kept beside it.
        self.counted.read.recv().await
    }

    /// First processes of each role, for their accounts.
    pub(crate) fn accounts(&self) -> Vec<(String, Vec<u32>)> {
        let role = |role: &Option<Role>| role.as_ref().and_then(Role::pid).map(|pid| vec![pid]);
        let pids = self.proxies.iter().flat_map(|proxy| match proxy {
            StartedProxy::Role(role) => role.pid().into_iter().collect(),
            StartedProxy::Real { proxy, .. } => proxy.pids(),
        });
        let pids: Vec<u32> = pids.collect();
        let proxy = (!pids.is_empty()).then_some(pids);
        let named = [
            ("robots", role(&self.robots)),
            ("origins", role(&self.origins)),
            ("proxy", proxy),
            ("links", role(&self.links)),
        ];
        named.into_iter().filter_map(|(name, pids)| Some((name.to_owned(), pids?))).collect()
    }

    /// Directory in which the real proxy keeps its files; the first, where there are several.
    pub(crate) fn store(&self) -> Option<&Path> {
        self.reals().next().map(RealProxy::store)
    }

    /// Reason why a real proxy does not run any more; none while all do.
    pub(crate) fn proxy_exit_message(&mut self) -> Option<String> {
        self.proxies.iter_mut().find_map(|proxy| match proxy {
            StartedProxy::Real { proxy, .. } => proxy.exit_message(),
            StartedProxy::Role(_) => None,
        })
    }

    /// Stops all roles: robots first, then the target, origins last.
    pub(crate) async fn stop_all(mut self) -> ShutdownReport {
        let mut report = ShutdownReport::default();
        if let Some(mut robots) = self.robots.take() {
            robots.end().await;
        }
        // Children end before the parents that they send requests to.
        for (place, proxy) in
            (0..).zip(std::mem::take(&mut self.proxies)).collect::<Vec<_>>().into_iter().rev()
        {
            match proxy {
                StartedProxy::Role(mut role) => {
                    role.end().await;
                }
                StartedProxy::Real { proxy, counters, keep } => {
                    report.stop_real(place, *proxy, counters, &keep).await;
                }
            }
        }
        if let Some(mut origins) = self.origins.take() {
            origins.end().await;
        }
        report.limits = self.limits.as_ref().map(ControlGroup::info);
        if let Some(mut links) = self.links.take() {
            links.end().await;
        }
        report
    }
}

impl ShutdownReport {
    /// Waits until the work directories are gone.
    pub(crate) async fn wait_removed(&mut self) {
        for removal in self.removals.drain(..) {
            // One that panicked has removed what it could; the next start of Assay clears the rest.
            let _ = removal.await;
        }
    }

    async fn stop_real(&mut self, place: u16, proxy: RealProxy, task: Option<CounterTask>, keep: &Path) {
        let mut reader = match task {
            Some(task) => {
                drop(task.start);
                task.handle.await.ok()
            }
            None => None,
        };
        proxy.settle().await;
        let mut last = None;
        if let Some(reader) = &mut reader {
            last = reader.read().await.ok();
            for (name, text) in reader.raw() {
                let kept = crate::workdir::keep_text(keep, name, text);
                self.warnings.extend(kept.err().map(|e| format!("{name} could not be kept: {e}")));
            }
        }
        self.warnings.extend(proxy.crashes());
        let (stopped, counters, files) = proxy.stop_programs(reader.as_mut()).await;
        self.removals.push(tokio::spawn(files.remove()));
        self.counters.extend(counters.or(last).map(|counters| (place, counters)));
        if stopped.killed {
            let took = stopped.took;
            self.warnings
                .push(format!("the proxy did not end when asked to and was killed after {took:.1?}"));
        }
    }
}

impl CounterTask {
    /// Reads from the start instant on, which everybody is told.
    pub(crate) fn spawn(
        mut reader: CounterReader,
        cache: u16,
        send: mpsc::UnboundedSender<CounterReading>,
    ) -> Self {
        let (start, mut started) = watch::channel(None::<StartInstant>);
        let handle = tokio::spawn(async move {
            let Ok(start) = started.wait_for(Option::is_some).await.map(|start| *start) else {
                return reader;
            };
            let Some(start) = start else { return reader };
            tokio::time::sleep(Duration::from_millis(start.remaining_ms())).await;
            let mut ticker = tokio::time::interval(Duration::from_secs(1));
            ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticker.tick() => {
                        let counters = reader.read().await;
                        let reading = CounterReading { cache, at_ms: start.elapsed_ms(), counters };
                        if send.send(reading).is_err() {
                            return reader;
                        }
                    }
                    // The sender is dropped when the run is over.
                    changed = started.changed() => if changed.is_err() { return reader },
                }
            }
        });
        Self { start, handle }
    }
}
