//! The start of roles on other machines, and what is known only once they listen there.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::machines::fleet::message::RoleSpec;
use crate::target_spec::TargetSpec;
use assay_record::event::{RunEvent, Stage};

use crate::description::Description;
use crate::error::LabError;
use crate::http_versions::{origins_speak_http2, robots_speak_http2};
use crate::mode::Mode;
use crate::roles::{Role, RoleKind};
use crate::run::Session;
use crate::running_roles::{RunningRoles, StartedProxy};

impl Session {
    /// A real proxy on another machine: a role there starts it, reads its counters and stops it.
    pub(crate) async fn start_described_remotely(
        &mut self,
        running: &mut RunningRoles,
        description: &Description,
        mode: Mode,
        origins: &[SocketAddr],
    ) -> Result<(), LabError> {
        let version = self.plan.remote.as_ref().and_then(|there| there.proxy_version(&description.name));
        self.info.target.version = version.unwrap_or_default();
        let name = format!("{} {}", description.title, self.info.target.version);
        self.notify(RunEvent::Stage(Stage::StartingTarget { name }));
        let spec = RoleSpec::Target(TargetSpec {
            description: description.name.clone(),
            settings: self.plan.settings.clone(),
            forward: mode == Mode::Forward,
            http2: robots_speak_http2(&self.plan.workload),
            origin_http2: origins_speak_http2(&self.plan.workload),
            listen: self.cache_address(0)?,
            origins: self.routes(origins),
            memory_bytes: self.plan.memory_bytes,
            disk_bytes: self.plan.disk_bytes,
            connections: self.prepared.connections,
            tls: self.secured.role.clone(),
            keep: PathBuf::new(),
        });
        let kind = RoleKind::Proxy(0);
        let role = self.start_role_here_or_remotely(kind, "proxy", spec, &[], &[]).await?;
        running.proxies.push(StartedProxy::Role(Box::new(role)));
        let listening = self.ready(running, kind, Vec::new(), 0).await?;
        let address = listening.first().copied();
        self.target_is_at(address.ok_or_else(|| LabError::run("the proxy says nowhere that it listens"))?);
        Ok(())
    }

    /// Notes the address of the target, which is known only now: its machine has chosen.
    pub(crate) fn target_is_at(&mut self, address: SocketAddr) {
        self.prepared.target = Some(address);
        self.info.target.address = address.to_string();
        self.notify(RunEvent::Stage(Stage::TargetReady { address }));
    }

    /// Starts a role here, or on the machines of the run.
    pub(crate) async fn start_role_here_or_remotely(
        &self,
        kind: RoleKind,
        file: &str,
        spec: RoleSpec,
        cpus: &[u32],
        procs_files: &[PathBuf],
    ) -> Result<Role, LabError> {
        match &self.plan.remote {
            Some(remote) => {
                let starting = remote.start(kind, spec, self.role_events.clone());
                Ok(Role::remote(kind, self.unless_stopped(starting).await?))
            }
            None => match &spec {
                RoleSpec::Robots(spec) => self.start_role_as(kind, file, spec, cpus, procs_files),
                RoleSpec::Origins(spec) => self.start_role_as(kind, file, spec, cpus, procs_files),
                RoleSpec::Builtin(spec) => self.start_role_as(kind, file, spec, cpus, procs_files),
                RoleSpec::Target(spec) => self.start_role_as(kind, file, spec, cpus, procs_files),
            },
        }
    }
}
