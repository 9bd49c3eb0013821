//! A role that is divided among machines: one to the run, several to their agents.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::LabError;
use crate::machines::fleet::message::{RoleSpec, What};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::share;
use crate::remote::{BoxFuture, RemoteRole};
use crate::roles::RoleKind;
use assay_protocol::message::Command;
use futures_util::future::{join_all, try_join_all};

use super::assignment;
use super::run::{CoordinatorState, lock};
use super::saved::SavedStart;

/// A role whose parts are on machines.
#[derive(Debug)]
pub(super) struct DistributedRole {
    pub(super) inner: Arc<CoordinatorState>,
    pub(super) handle: tokio::runtime::Handle,
    pub(super) kind: RoleKind,
    pub(super) place: usize,
    pub(super) parts: Vec<(Name, u32)>,
}

impl DistributedRole {
    fn spawn_there<T: Send + 'static>(
        &self,
        otherwise: T,
        work: impl Future<Output = T> + Send + 'static,
    ) -> BoxFuture<'static, T> {
        let handle = self.handle.spawn(work);
        Box::pin(async move { handle.await.unwrap_or(otherwise) })
    }
}

impl RemoteRole for DistributedRole {
    fn send(&mut self, command: Command) -> BoxFuture<'_, Result<(), LabError>> {
        let (inner, parts, kind) = (self.inner.clone(), self.parts.clone(), self.kind);
        self.spawn_there(Err(LabError::assay("an order was not given")), async move {
            let is_start = matches!(command, Command::Start { .. });
            inner.note_start(&command, false)?;
            let tell = |(name, role): &(Name, u32)| {
                let command = inner.for_machine(name, command.clone());
                let (inner, name, role) = (inner.clone(), name.clone(), *role);
                async move {
                    if let Some(machine) =
                        inner.clocks.machine(&name).filter(|machine| machine.lost.is_some())
                    {
                        return Err(LabError::assay(inner.loss_message(&machine)));
                    }
                    inner.order(&name, What::Tell { role, command: command? }).await.map(|_| ())
                }
            };
            try_join_all(parts.iter().map(tell)).await?;
            if is_start && kind == RoleKind::Robots {
                inner.measure_target(&command).await?;
            }
            // Robots are the last to be told of the start.
            if is_start { inner.note_start(&command, kind == RoleKind::Robots) } else { Ok(()) }
        })
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        let (inner, parts) = (self.inner.clone(), self.parts.clone());
        self.spawn_there((), async move {
            let is_there =
                |name: &Name| inner.clocks.machine(name).is_some_and(|machine| machine.lost.is_none());
            let reachable = parts.iter().filter(|(name, _)| is_there(name));
            // An agent that does not respond ends it by itself.
            join_all(reachable.map(|(name, role)| inner.order(name, What::End { role: *role }))).await;
        })
    }

    fn exit_summary(&mut self) -> BoxFuture<'_, String> {
        let summary = self.inner.router.exit_summary(self.place);
        let mut lines: Vec<String> = summary.lines().map(ToOwned::to_owned).collect();
        // Where several machines were lost at once, the role that is heard of first may have had a part on one of them only.
        let lost = self.inner.clocks.machines().into_iter().filter(|machine| machine.lost.is_some());
        for message in lost.map(|machine| self.inner.loss_message(&machine)) {
            if !lines.contains(&message) {
                lines.push(message);
            }
        }
        if lines.is_empty() {
            lines.push(format!("{} ended without a message", self.kind.name()));
        }
        Box::pin(async move { lines.join("\n") })
    }
}

impl CoordinatorState {
    /// The parts of a role, each with the machine that it goes to.
    pub(super) fn divide(&self, spec: RoleSpec) -> Result<Vec<(Name, RoleSpec)>, LabError> {
        let cannot = |what: &str| LabError::plan(format!("{what} cannot be divided among these machines"));
        match spec {
            RoleSpec::Robots(spec) => {
                let (first, last) = spec.robots.ok_or_else(|| cannot("robots"))?;
                let machines = &self.chosen.robots;
                let parts = share::divide(last - first + 1, &assignment::weights(machines))
                    .ok_or_else(|| cannot("robots"))?;
                let part =
                    |(machine, (from, to)): (&crate::machines::fleet::message::AgentInfo, (u32, u32))| {
                        let robots = Some((first + from, first + to));
                        (
                            machine.name.clone(),
                            RoleSpec::Robots(assay_load::spec::RobotsSpec { robots, ..spec.clone() }),
                        )
                    };
                Ok(machines.iter().zip(parts).map(part).collect())
            }
            RoleSpec::Origins(spec) => {
                let machines = &self.chosen.origins;
                let count = u32::try_from(spec.listen.len()).unwrap_or(u32::MAX);
                let parts =
                    share::divide(count, &assignment::weights(machines)).ok_or_else(|| cannot("origins"))?;
                let part = |(machine, (from, to)): (
                    &crate::machines::fleet::message::AgentInfo,
                    (u32, u32),
                )| {
                    let listen = spec.listen[from as usize..=to as usize].iter();
                    let remote =
                        |address: &&SocketAddr| address.port() != 0 && address.ip() != machine.address;
                    if let Some(address) = listen.clone().find(remote) {
                        return Err(LabError::plan(format!(
                            "origins {from} to {to} run on the machine {} at {}, and one was to listen at {address}; name addresses of \
                             that machine with --origin-listen, or another machine with --origins-on",
                            machine.name, machine.address
                        )));
                    }
                    let listen =
                        listen.map(|address| SocketAddr::new(machine.address, address.port())).collect();
                    // Origins are numbered in 16 bits.
                    let first = spec.first + from as u16;
                    let part = assay_load::spec::OriginsSpec { listen, first, ..spec.clone() };
                    Ok((machine.name.clone(), RoleSpec::Origins(part)))
                };
                machines.iter().zip(parts).map(part).collect()
            }
            RoleSpec::Builtin(_) | RoleSpec::Target(_) => {
                let machine = self.chosen.proxy.as_ref().ok_or_else(|| cannot("the proxy"))?;
                Ok(vec![(machine.name.clone(), spec)])
            }
        }
    }

    /// The machine of a proxy that runs already may have no role that is told of the start.
    async fn measure_target(&self, command: &Command) -> Result<(), LabError> {
        let Some(proxy) = self.chosen.proxy.as_ref().filter(|_| self.proxy_order.watch.is_some()) else {
            return Ok(());
        };
        let Command::Start { at_monotonic_ns, .. } = self.for_machine(&proxy.name, command.clone())? else {
            return Ok(());
        };
        self.order(&proxy.name, What::Measure { at_monotonic_ns }).await.map(drop)
    }

    /// Writes down that a start is told.
    fn note_start(&self, command: &Command, all_told: bool) -> Result<(), LabError> {
        let Command::Start { at_monotonic_ns, at_unix_s } = command else { return Ok(()) };
        let start = SavedStart { monotonic_ns: *at_monotonic_ns, unix_s: *at_unix_s, all_told };
        lock(&self.saved).start = Some(start);
        self.save()
    }

    /// The directory of the run.
    pub(super) fn run_dir(&self) -> PathBuf {
        lock(&self.held).as_ref().map(|(run_dir, _)| run_dir.clone()).unwrap_or_default()
    }

    /// A command with instants of a machine's own clock.
    fn for_machine(&self, name: &Name, command: Command) -> Result<Command, LabError> {
        let Command::Start { at_monotonic_ns, at_unix_s } = command else { return Ok(command) };
        let at = self.clocks.start(name, at_monotonic_ns);
        let at_monotonic_ns = at.map_err(|e| LabError::assay(format!("the machine {name}: {e}")))?;
        Ok(Command::Start { at_monotonic_ns, at_unix_s })
    }
}
