//! A spec that came from elsewhere, made one of this machine: paths, threads and addresses of its own, or a refusal.
//!
//! Whatever an order says, roles load only what the agent may load, listen only at its address, and write only in its directory.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::machines::fleet::message::RoleSpec;
use crate::placement;
use crate::target_spec::TargetSpec;
use assay_load::spec::{OriginsSpec, RobotsSpec, Target};
use assay_protocol::network::Network;
use assay_proxy::spec::{OriginRoute, ProxySpec};

use crate::machines::error::FleetError;

/// Limits on the roles of an agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentBounds<'a> {
    pub address: IpAddr,
    /// Networks that may be loaded.
    pub may_load: &'a [Network],
    /// The directory of the run.
    pub dir: &'a Path,
}

/// The spec as it is carried out here.
pub fn adapt(spec: RoleSpec, bounds: AgentBounds<'_>) -> Result<RoleSpec, FleetError> {
    let threads = placement::threads(0, &[], &placement::available());
    let mut spec = spec;
    own_tls_files(&mut spec, bounds.dir);
    Ok(match spec {
        RoleSpec::Robots(spec) => RoleSpec::Robots(robots(spec, bounds, threads)?),
        RoleSpec::Origins(spec) => RoleSpec::Origins(origins(spec, bounds, threads)?),
        RoleSpec::Builtin(spec) => RoleSpec::Builtin(builtin(spec, bounds)?),
        RoleSpec::Target(spec) => RoleSpec::Target(target(spec, bounds)?),
    })
}

fn robots(spec: RobotsSpec, bounds: AgentBounds<'_>, threads: u32) -> Result<RobotsSpec, FleetError> {
    match &spec.target {
        Target::Direct { origins } => bounds.may_load_all(origins.iter())?,
        Target::Reverse { proxy } => bounds.may_load_all([proxy])?,
        Target::Forward { proxy, origins } => bounds.may_load_all([proxy].into_iter().chain(origins))?,
    }
    bounds.may_load_all(spec.listeners.iter().map(|listener| &listener.proxy))?;
    let mut spec = spec;
    spec.universe.workload = bounds.dir.join(super::agent_run::WORKLOAD);
    spec.xact_log = spec.xact_log.map(|_| bounds.dir.join(super::agent_run::XACTS));
    // Agents do not report the waits of a target.
    spec.joins_waits = false;
    (spec.threads, spec.cpus, spec.timing.realtime) = (threads, Vec::new(), false);
    Ok(spec)
}

fn origins(spec: OriginsSpec, bounds: AgentBounds<'_>, threads: u32) -> Result<OriginsSpec, FleetError> {
    spec.listen.iter().try_for_each(|listen| bounds.listens_here(*listen))?;
    let mut spec = spec;
    spec.universe.workload = bounds.dir.join(super::agent_run::WORKLOAD);
    (spec.threads, spec.cpus, spec.timing.realtime) = (threads, Vec::new(), false);
    Ok(spec)
}

fn builtin(spec: ProxySpec, bounds: AgentBounds<'_>) -> Result<ProxySpec, FleetError> {
    bounds.listens_here(spec.listen)?;
    bounds.serves_only(&spec.origins)?;
    if spec.cooperation.is_some() {
        return Err(FleetError::plan("proxies that query each other are not started by agents"));
    }
    Ok(ProxySpec { cpus: Vec::new(), access_log: None, ..spec })
}

fn target(spec: TargetSpec, bounds: AgentBounds<'_>) -> Result<TargetSpec, FleetError> {
    bounds.listens_here(spec.listen)?;
    bounds.serves_only(&spec.origins)?;
    // A path would name a file of this machine, and a description holds commands.
    if !spec.description.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(FleetError::plan(format!(
            "`{}` is not the name of a description",
            spec.description.escape_debug()
        )));
    }
    let description = bounds.dir.join(super::agent_run::DESCRIPTION).display().to_string();
    Ok(TargetSpec { description, keep: bounds.dir.join(super::agent_run::PROXY), ..spec })
}

/// Certificates and keys are where this agent puts those that come with an order: no spec names another file.
fn own_tls_files(spec: &mut RoleSpec, dir: &Path) {
    for path in spec.tls_files() {
        let name = path.file_name().unwrap_or_default().to_owned();
        *path = dir.join(super::agent_run::TLS).join(name);
    }
}

impl AgentBounds<'_> {
    fn may_load_all<'s>(
        &self,
        addresses: impl IntoIterator<Item = &'s SocketAddr>,
    ) -> Result<(), FleetError> {
        let allowed =
            |address: &&SocketAddr| !self.may_load.iter().any(|network| network.contains(address.ip()));
        match addresses.into_iter().find(allowed) {
            None => Ok(()),
            Some(address) => {
                let networks: Vec<String> = self.may_load.iter().map(ToString::to_string).collect();
                Err(FleetError::plan(format!(
                    "this agent may not load {address}; it may load {}, and --may-load at its start says what else",
                    networks.join(", ")
                )))
            }
        }
    }

    fn listens_here(&self, listen: SocketAddr) -> Result<(), FleetError> {
        if listen.ip() == self.address {
            return Ok(());
        }
        Err(FleetError::plan(format!(
            "a role was to listen at {listen}, and the address of this agent is {}",
            self.address
        )))
    }

    /// A proxy without origins would send requests wherever a client says. Authorities go into the proxy's configuration: what
    /// is no authority could add lines to it.
    fn serves_only(&self, origins: &[OriginRoute]) -> Result<(), FleetError> {
        if origins.is_empty() {
            return Err(FleetError::plan("a proxy was to be started without origins"));
        }
        if let Some(wrong) = origins.iter().find(|route| !is_host_and_port(&route.authority)) {
            return Err(FleetError::plan(format!(
                "`{}` is no host and port of an origin",
                wrong.authority.escape_debug()
            )));
        }
        self.may_load_all(origins.iter().map(|route| &route.address))
    }
}

/// Less than a URL may have: nothing that means anything in the configuration of a proxy.
fn is_host_and_port(authority: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    authority.bytes().any(|byte| byte.is_ascii_alphanumeric()) && authority.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::target_spec::TargetTls;
    use assay_load::spec::UniverseSpec;
    use assay_net::tls::settings::ServerTls;

    use super::*;

    fn bounds(may_load: &[Network]) -> AgentBounds<'_> {
        AgentBounds { address: [10, 0, 0, 7].into(), may_load, dir: Path::new("/agent/run") }
    }

    fn robots_for(target: Target) -> RoleSpec {
        let universe =
            UniverseSpec { workload: "/etc/passwd".into(), seed: 1, world: 1, private_as_public: false };
        RoleSpec::Robots(RobotsSpec {
            universe,
            robots: Some((0, 4)),
            threads: 500,
            cpus: vec![1],
            timing: Default::default(),
            target,
            tls: None,
            listeners: Vec::new(),
            sources: Vec::new(),
            behaviour: Default::default(),
            timeout_ms: 1000,
            xact_log: Some("/etc/shadow".into()),
            joins_waits: true,
        })
    }

    fn target_of(description: &str) -> RoleSpec {
        let origins = vec![OriginRoute { authority: "a:80".into(), address: "10.0.0.1:80".parse().unwrap() }];
        RoleSpec::Target(TargetSpec {
            description: description.into(),
            settings: Default::default(),
            forward: false,
            http2: false,
            origin_http2: false,
            listen: "10.0.0.7:8080".parse().unwrap(),
            origins,
            memory_bytes: 1,
            disk_bytes: 1,
            connections: 1,
            tls: None,
            keep: "/etc".into(),
        })
    }

    #[test]
    fn roles_write_only_in_the_agents_directory_with_its_own_threads() {
        let networks = Network::private();
        let proxy = "10.0.0.9:8080".parse().unwrap();
        let RoleSpec::Robots(spec) = adapt(robots_for(Target::Reverse { proxy }), bounds(&networks)).unwrap()
        else {
            panic!("it is robots")
        };
        assert_eq!(spec.universe.workload, PathBuf::from("/agent/run/workload.json"));
        assert_eq!(spec.xact_log, Some(PathBuf::from("/agent/run/xacts.parquet")));
        assert!(spec.threads < 500 && spec.cpus.is_empty());
        assert!(!spec.joins_waits, "an agent does not report any, and intervals would be held in vain");
        let RoleSpec::Target(spec) = adapt(target_of("varnish"), bounds(&networks)).unwrap() else {
            panic!("it is a target")
        };
        assert_eq!(spec.keep, PathBuf::from("/agent/run/proxy"));
    }

    #[test]
    fn certificates_and_keys_are_the_agents_own_whatever_a_spec_names() {
        let networks = Network::private();
        let mut spec = target_of("nginx");
        if let RoleSpec::Target(target) = &mut spec {
            let listen = ServerTls {
                offer: Default::default(),
                certificate: "/etc/ssl/own.pem".into(),
                key: "../../etc/ssl/private/own.key".into(),
            };
            target.tls = Some(TargetTls { listen: Some(listen), to_origins: true, ca: "..".into() });
        }
        let mut spec = adapt(spec, bounds(&networks)).unwrap();
        let named: Vec<PathBuf> = spec.tls_files().into_iter().map(|path| path.clone()).collect();
        assert_eq!(
            named,
            ["/agent/run/tls/own.pem", "/agent/run/tls/own.key", "/agent/run/tls/"].map(PathBuf::from)
        );
    }

    #[test]
    fn nothing_is_loaded_that_was_not_permitted() {
        let networks = Network::private();
        let (own, public) = ("10.0.0.9:80".parse().unwrap(), "8.8.8.8:80".parse().unwrap());
        for target in [
            Target::Reverse { proxy: public },
            Target::Direct { origins: vec![own, public] },
            Target::Forward { proxy: own, origins: vec![public] },
        ] {
            let error = adapt(robots_for(target), bounds(&networks)).unwrap_err().to_string();
            assert!(error.contains("may not load 8.8.8.8:80") && error.contains("--may-load"), "{error}");
        }
    }

    #[test]
    fn a_description_is_named_and_never_a_path() {
        let networks = Network::private();
        for wrong in ["/tmp/mine.toml", "../x", "mine.toml", "a b"] {
            let error = adapt(target_of(wrong), bounds(&networks)).unwrap_err().to_string();
            assert!(error.contains("is not the name of a description"), "{error}");
        }
        let RoleSpec::Target(spec) = adapt(target_of("nginx"), bounds(&networks)).unwrap() else {
            panic!("it stays a target");
        };
        assert_eq!(spec.description, "/agent/run/description.toml", "where the agent has put it");
    }

    #[test]
    fn an_origin_has_a_host_and_nothing_that_could_be_configuration() {
        let networks = Network::private();
        for wrong in ["a:80;\n}", "a b", "a\"; access_log /etc/cron.d/x; #", "a;b:80", "../x", ""] {
            let mut spec = target_of("nginx");
            if let RoleSpec::Target(target) = &mut spec {
                target.origins[0].authority = wrong.into();
            }
            let error = adapt(spec, bounds(&networks)).unwrap_err().to_string();
            assert!(error.contains("is no host and port of an origin"), "{wrong:?}: {error}");
        }
    }

    #[test]
    fn listeners_are_at_the_agents_own_address() {
        let networks = Network::private();
        let mut spec = target_of("varnish");
        if let RoleSpec::Target(target) = &mut spec {
            target.listen = "0.0.0.0:80".parse().unwrap();
        }
        let error = adapt(spec, bounds(&networks)).unwrap_err().to_string();
        assert!(error.contains("the address of this agent is 10.0.0.7"), "{error}");
    }
}
