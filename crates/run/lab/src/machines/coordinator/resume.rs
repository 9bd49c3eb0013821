//! A run whose coordinator has ended, taken up by another one.
//!
//! Roles go on while agents wait for a coordinator, and what they say is stored. Another coordinator reads all of it from the first
//! message on, measures clocks again, and speaks to the same roles. Of agents that have waited for too long it has what was
//! stored; it says so, and the run ends there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::LabError;
use crate::instant::StartInstant;
use crate::machines::fleet::clock::AgentClock;
use crate::machines::fleet::message::{AgentInfo, What};
use crate::machines::fleet::name::Name;
use crate::remote::{self, RemoteRole, ResumedRun};
use crate::roles::{RoleEvent, RoleKind};
use futures_util::future::join_all;
use tokio::sync::mpsc;

use super::Fleet;
use super::distributed_role::DistributedRole;
use super::router;
use super::run::{Coordinator, CoordinatorState, EXCHANGES, lock};
use super::saved::{FILE, SavedPart, SavedRole, SavedRun};
use crate::machines::discovery;
use crate::machines::error::FleetError;
use assay_base::clock::monotonic_ns;

/// Findings when a run was taken up.
#[derive(Debug, Default)]
pub(super) struct ResumeSurvey {
    /// The last message that was stored by then.
    until: u64,
    /// Machines whose agents do not take part any more, and why.
    absent: Vec<(Name, String)>,
}

impl Coordinator {
    /// For a run that another coordinator wrote down. Agents that still wait for one go on waiting from now.
    pub fn resume(
        fleet: Arc<Fleet>,
        run_dir: &Path,
        saved: SavedRun,
        by: String,
        version: &str,
    ) -> Result<Self, FleetError> {
        if saved.version != version {
            return Err(FleetError::plan(format!(
                "the coordinator of the run was Assay {}, and this is {version}; take the run up with the same version",
                saved.version
            )));
        }
        let held = lock_run_dir(run_dir)?;
        let (client, looked_at) = (fleet.client.clone(), saved.clone());
        let found = fleet.background.wait_for(async move { look(&client, &looked_at).await })??;
        let begun = saved.start.is_some_and(|start| start.all_told);
        let inner =
            Arc::new(CoordinatorState::resumed(fleet.client.clone(), saved, by, run_dir, held, found));
        if !begun {
            let ending = inner.clone();
            fleet.background.wait_for(async move { ending.give_up().await })?;
            return Err(FleetError::failed(
                "the run had not begun when its coordinator ended, so nothing was measured; its machines are free again: start it anew",
            ));
        }
        Ok(Self::of(inner, fleet))
    }
}

/// Takes a run directory for this coordinator.
pub(super) fn lock_run_dir(run_dir: &Path) -> Result<std::fs::File, FleetError> {
    let held = remote::lock_run_dir(run_dir);
    let run_dir = run_dir.display();
    match held {
        Ok(Some(directory)) => Ok(directory),
        Ok(None) => Err(FleetError::plan(format!(
            "the coordinator of the run in {run_dir} still runs; there is nothing to take up"
        ))),
        Err(e) => Err(FleetError::plan(format!("cannot hold the run directory {run_dir}: {e}"))),
    }
}

/// Finds the agents that still take part, and the last message that was stored.
async fn look(client: &async_nats::Client, saved: &SavedRun) -> Result<ResumeSurvey, FleetError> {
    let run = &saved.run;
    let Some(until) = router::last_stored(client, run).await? else {
        return Err(FleetError::plan(format!(
            "the server has nothing of the run {run} (it keeps that for a day, or until the run has ended); `assay report` reads \
             what is in the run directory"
        )));
    };
    let machines = saved.chosen.all();
    // From here on they wait again; whoever has stopped waiting says so to the next question.
    join_all(machines.iter().map(|machine| discovery::exchange(client, &machine.name, Some(run)))).await;
    let (found, _) = discovery::discover(client).await?;
    let why = |machine: &AgentInfo| {
        let Some(now) = found.iter().find(|info| info.name == machine.name) else {
            return Some("its agent is not connected".to_owned());
        };
        if now.instance != machine.instance {
            return Some("its agent was started again".to_owned());
        }
        let takes_part = now.busy.as_ref().is_some_and(|busy| busy.run == *run);
        let waited = Duration::from_millis(saved.wait_ms);
        (!takes_part)
            .then(|| format!("its agent waited {waited:?} for a coordinator, and ended its roles then"))
    };
    let absent = machines.iter().filter_map(|machine| Some((machine.name.clone(), why(machine)?)));
    Ok(ResumeSurvey { until, absent: absent.collect() })
}

impl CoordinatorState {
    /// Speaks to the roles of the run again.
    pub(super) async fn resume(
        self: Arc<Self>,
        handle: tokio::runtime::Handle,
        said: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> Result<ResumedRun, LabError> {
        let saved = lock(&self.saved).clone();
        let Some(start) = saved.start else { return Err(LabError::run("the run had not begun")) };
        let ResumeSurvey { until, absent } = std::mem::take(&mut *lock(&self.found));
        let roles = saved.roles.iter().map(|role| self.resume_role(role, &handle, &said)).collect();
        if let Some(target) = saved.chosen.proxy.as_ref().or(saved.chosen.origins.first()) {
            self.router.measure(target.name.clone());
        }
        let replayed = self.router.replay(until);
        let is_absent = |name: &Name| absent.iter().any(|(other, _)| other == name);
        let present: Vec<Name> =
            saved.chosen.all().into_iter().map(|info| info.name).filter(|name| !is_absent(name)).collect();
        join_all(present.iter().map(|name| self.rejoin(name))).await;
        self.note_absence(&saved);
        let lost = self.clone().go_on(present);
        let inner = self.clone();
        let late = tokio::spawn(async move {
            // It ends without this only where the run does.
            let _ = replayed.await;
            for (name, why) in absent {
                let reported_ms = inner.router.reported_ms(&name).unwrap_or(0);
                inner.clocks.lose(
                    &name,
                    start.monotonic_ns.saturating_add(reported_ms.saturating_mul(1_000_000)),
                    why,
                );
                let _ = lost.send(name);
            }
        });
        lock(&self.tasks).push(late);
        Ok(ResumedRun {
            start: StartInstant { monotonic_ns: start.monotonic_ns, unix_s: start.unix_s },
            roles,
        })
    }

    fn resume_role(
        self: &Arc<Self>,
        role: &SavedRole,
        handle: &tokio::runtime::Handle,
        said: &mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> (RoleKind, Box<dyn RemoteRole>) {
        let part = |part: &SavedPart| (part.machine.clone(), part.number, part.threads);
        let parts: Vec<_> = role.parts.iter().map(part).collect();
        let place = self.router.add(role.kind, &parts, said.clone());
        let parts = parts.into_iter().map(|(name, number, _)| (name, number)).collect();
        (
            role.kind,
            Box::new(DistributedRole {
                inner: self.clone(),
                handle: handle.clone(),
                kind: role.kind,
                place,
                parts,
            }),
        )
    }

    /// Measures a machine's clock anew.
    async fn rejoin(&self, name: &Name) {
        let mut measured = AgentClock::default();
        for _ in 0..EXCHANGES {
            if let Ok((exchange, ..)) = discovery::exchange(&self.client, name, Some(&self.run)).await {
                // Readings that go backwards say nothing; others follow.
                let _ = measured.take(exchange);
            }
        }
        self.clocks.rejoin(name, measured);
    }

    /// Notes the effect of the time without a coordinator on the numbers.
    fn note_absence(&self, before: &SavedRun) {
        let (from_ms, to_ms) = (before.ms_of(before.saved_ns), before.ms_of(monotonic_ns()));
        lock(&self.saved).away_ms.push((from_ms, to_ms));
        let told_us = before.told_ns / 1000;
        let meaning = match self.clocks.error_ns() {
            Some(error_ns) if error_ns <= before.told_ns => {
                "robots allowed for all that clocks can have drifted meanwhile".to_owned()
            }
            known => {
                let apart =
                    known.map_or("not known how far".to_owned(), |ns| format!("up to {} µs", ns / 1000));
                format!(
                    "meanwhile the clocks of two machines can have been apart (by {apart}) for more than the {told_us} µs that robots \
                     allowed for, so hits and collapsed requests of that time can have been taken for each other, and a response \
                     can have been called stale or wrong"
                )
            }
        };
        let second = |ms: u64| ms as f64 / 1000.0;
        lock(&self.warnings).push(format!(
            "from {:.1} to {:.1} s the run had no coordinator; what its machines stored meanwhile was read afterwards; {meaning}",
            second(from_ms),
            second(to_ms)
        ));
    }

    /// Ends what has not begun.
    async fn give_up(&self) {
        let machines = self.chosen.all();
        // Those that do not take part refuse it; those that are gone ended by themselves.
        join_all(machines.iter().map(|machine| self.order(&machine.name, What::Finish))).await;
        router::remove(&self.client, &self.run).await;
        let _ = std::fs::remove_file(self.run_dir().join(FILE));
    }
}
