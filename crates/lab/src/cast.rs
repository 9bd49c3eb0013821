//! Everybody who takes part in a run, once started: how they are spoken to, watched and stopped again.

use std::path::Path;
use std::time::Duration;

use assay_record::role::{Command, ProxyCounters};
use assay_record::run::LimitsInfo;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::cgroup::Group;
use crate::error::LabError;
use crate::instant::StartInstant;
use crate::real::{CounterReader, RealProxy};
use crate::roles::{Role, RoleKind};

/// Everybody who takes part. Dropped, all of them are killed.
#[derive(Default)]
pub(crate) struct Cast {
    pub(crate) robots: Option<Role>,
    pub(crate) origins: Option<Role>,
    pub(crate) builtin: Option<Role>,
    pub(crate) real: Option<RealProxy>,
    pub(crate) counters: Option<CounterTask>,
    /// Holds the proxy to its limits; the last to go.
    pub(crate) limits: Option<Group>,
    pub(crate) links: Option<Role>,
}

/// Reads a real proxy's counters once a second, beside everything else.
pub(crate) struct CounterTask {
    read: mpsc::UnboundedReceiver<(u64, Result<ProxyCounters, String>)>,
    start: watch::Sender<Option<StartInstant>>,
    handle: JoinHandle<CounterReader>,
}

/// What is known once everybody is stopped.
#[derive(Default)]
pub(crate) struct Farewell {
    pub(crate) warnings: Vec<String>,
    pub(crate) counters: Option<ProxyCounters>,
    pub(crate) limits: Option<LimitsInfo>,
}

impl Cast {
    pub(crate) fn role(&mut self, kind: RoleKind) -> Option<&mut Role> {
        match kind {
            RoleKind::Robots => self.robots.as_mut(),
            RoleKind::Origins => self.origins.as_mut(),
            RoleKind::Proxy => self.builtin.as_mut(),
            RoleKind::Links => self.links.as_mut(),
        }
    }

    pub(crate) fn has(&mut self, kind: RoleKind) -> bool {
        self.role(kind).is_some()
    }

    pub(crate) async fn tell(&mut self, kind: RoleKind, command: Command) -> Result<(), LabError> {
        match self.role(kind) {
            Some(role) => role.tell(command).await,
            None => Ok(()),
        }
    }

    /// Tells everybody when to begin; robots last.
    pub(crate) async fn tell_all(&mut self, command: Command) -> Result<(), LabError> {
        if let (Some(task), Command::Start { at_monotonic_ns, at_unix_s }) = (&self.counters, &command) {
            let start = StartInstant { monotonic_ns: *at_monotonic_ns, unix_s: *at_unix_s };
            // A reader that has ended reads nothing, and says so by its silence.
            let _ = task.start.send(Some(start));
        }
        for kind in [RoleKind::Links, RoleKind::Origins, RoleKind::Proxy, RoleKind::Robots] {
            self.tell(kind, command.clone()).await?;
        }
        Ok(())
    }

    pub(crate) async fn obituary(&mut self, kind: RoleKind) -> String {
        match self.role(kind) {
            Some(role) => role.obituary().await,
            None => format!("{} ended", kind.name()),
        }
    }

    /// The next reading of a real proxy's counters; waits forever when there are none.
    pub(crate) async fn counters(&mut self) -> Option<(u64, Result<ProxyCounters, String>)> {
        match &mut self.counters {
            Some(task) => match task.read.recv().await {
                Some(read) => Some(read),
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// First processes of each role, for their accounts.
    pub(crate) fn accounts(&self) -> Vec<(String, Vec<u32>)> {
        let role = |role: &Option<Role>| role.as_ref().map(|role| vec![role.process.pid]);
        let proxy = role(&self.builtin).or(self.real.as_ref().map(RealProxy::pids));
        let named = [
            ("robots", role(&self.robots)),
            ("origins", role(&self.origins)),
            ("proxy", proxy),
            ("links", role(&self.links)),
        ];
        named.into_iter().filter_map(|(name, pids)| Some((name.to_owned(), pids?))).collect()
    }

    /// Where the real proxy keeps its files.
    pub(crate) fn store(&self) -> Option<&Path> {
        self.real.as_ref().map(RealProxy::store)
    }

    /// Why the real proxy does not run any more; none while it does.
    pub(crate) fn proxy_died(&mut self) -> Option<String> {
        self.real.as_mut().and_then(RealProxy::died)
    }

    /// Stops everybody: robots first, then the target, origins last.
    pub(crate) async fn stop_all(mut self, keep: &Path) -> Farewell {
        let mut farewell = Farewell::default();
        if let Some(mut robots) = self.robots.take() {
            robots.end().await;
        }
        if let Some(mut builtin) = self.builtin.take() {
            builtin.end().await;
        }
        let mut reader = match self.counters.take() {
            Some(task) => {
                drop(task.start);
                task.handle.await.ok()
            }
            None => None,
        };
        if let Some(real) = self.real.take() {
            real.settle().await;
            if let Some(reader) = &mut reader {
                farewell.counters = reader.read().await.ok();
                for (name, text) in reader.raw() {
                    let kept = crate::work::keep_text(keep, name, text);
                    farewell.warnings.extend(kept.err().map(|e| format!("{name} could not be kept: {e}")));
                }
            }
            let (stopped, counters) = real.stop(reader.as_mut()).await;
            farewell.counters = counters.or(farewell.counters);
            if stopped.killed {
                let took = stopped.took;
                farewell
                    .warnings
                    .push(format!("the proxy did not end when asked to and was killed after {took:.1?}"));
            }
        }
        if let Some(mut origins) = self.origins.take() {
            origins.end().await;
        }
        farewell.limits = self.limits.as_ref().map(Group::info);
        if let Some(mut links) = self.links.take() {
            links.end().await;
        }
        farewell
    }
}

impl CounterTask {
    /// Reads from the start instant on, which everybody is told.
    pub(crate) fn spawn(mut reader: CounterReader) -> Self {
        let (send, read) = mpsc::unbounded_channel();
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
                        if send.send((start.elapsed_ms(), counters)).is_err() {
                            return reader;
                        }
                    }
                    // The sender is dropped when the run is over.
                    changed = started.changed() => if changed.is_err() { return reader },
                }
            }
        });
        Self { read, start, handle }
    }
}
