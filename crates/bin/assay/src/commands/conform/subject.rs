//! Targets of cases, as the command line names them, and the start of an instance.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use assay_conform::run::Http2;
use assay_lab::harness::topology::{self, IsolatedTopologyPlan};
use assay_lab::harness::{
    self, AddressReservation, IsolatedProxy, IsolatedProxyPlan, ProxyChoice, TestedProxy,
};
use assay_lab::topology::CacheDefaults;
use assay_lab::{LabError, Mode, description};
use assay_protocol::network::is_private;

use super::labels::{free, given, proxies_labelled};
use super::{ConformArgs, switch};
use crate::commands::spe::targets::{CacheCapacity, check_label, under_test};
use crate::exit::Failure;
use crate::target::topology_as;

pub enum Subject {
    /// A proxy that runs already.
    Running { label: String, address: SocketAddr },
    /// Started for the cases.
    Started(Box<StartedTarget>),
    /// The web switch, with this label.
    Switch(String),
}

/// Target that is started for the cases.
pub enum StartedTarget {
    Proxy(IsolatedProxyPlan),
    /// Caches that work together, with a label.
    Topology(String, IsolatedTopologyPlan),
}

impl Subject {
    pub fn label(&self) -> &str {
        match self {
            Subject::Running { label, .. } | Subject::Switch(label) => label,
            Subject::Started(subject) => subject.label(),
        }
    }
}

/// All that the command line names, each with a label of its own; what is started keeps its files in `directory`.
pub fn all(args: &ConformArgs, directory: &Path) -> Result<Vec<Subject>, Failure> {
    let given = given(args.targets.iter().chain(&args.topologies))?;
    let (switches, proxies): (Vec<String>, Vec<String>) =
        args.targets.iter().cloned().partition(|typed| switch::label(typed).is_some());
    let proxies = proxies_labelled(&proxies, &args.proxy_dir, &given)?;
    let proxies = under_test(
        &proxies,
        &args.proxy_dir,
        &args.settings,
        CacheCapacity { memory_bytes: args.memory, disk_bytes: args.disk },
    )?;
    let exe = std::env::current_exe().context("cannot find the program itself").map_err(Failure::failed)?;
    let mode = if args.forward { Mode::Forward } else { Mode::Reverse };
    let mut subjects = Vec::new();
    for proxy in proxies {
        if let ProxyChoice::Running(address) = proxy.choice {
            check_running(args, address)?;
            subjects.push(Subject::Running { label: proxy.label, address });
            continue;
        }
        let directory = directory.join(&proxy.label);
        let plan =
            IsolatedProxyPlan { exe: exe.clone(), proxy, mode, http2: false, tls: args.tls, directory };
        harness::check(&plan).map_err(Failure::usage)?;
        subjects.push(Subject::Started(Box::new(StartedTarget::Proxy(plan))));
    }
    if args.tls && !(switches.is_empty() && args.topologies.is_empty()) {
        return Err(Failure::usage(anyhow!("the switch and caches that work together are tried in clear"))
            .hint("leave --tls out, or try them by themselves"));
    }
    for typed in &args.topologies {
        let (label, plan) = topology_plan(args, typed, &exe, directory)?;
        refuse_twice(&subjects, &label, "LABEL=FILE")?;
        subjects.push(Subject::Started(Box::new(StartedTarget::Topology(label, plan))));
    }
    if args.forward && !switches.is_empty() {
        return Err(Failure::usage(anyhow!("the switch is no forward proxy; leave --forward out")));
    }
    for typed in &switches {
        let label = match typed.split_once('=') {
            Some((label, _)) => label.to_owned(),
            None => free(typed, &given),
        };
        refuse_twice(&subjects, &label, "LABEL=switch")?;
        subjects.push(Subject::Switch(label));
    }
    Ok(subjects)
}

fn refuse_twice(subjects: &[Subject], label: &str, form: &str) -> Result<(), Failure> {
    match subjects.iter().any(|subject| subject.label() == label) {
        false => Ok(()),
        true => Err(Failure::usage(anyhow!("two targets are called `{label}`"))
            .hint(format!("give them labels of their own: {form}"))),
    }
}

/// The topology of `[LABEL=]FILE`; without a label it is called by its file.
fn topology_plan(
    args: &ConformArgs,
    typed: &str,
    exe: &Path,
    directory: &Path,
) -> Result<(String, IsolatedTopologyPlan), Failure> {
    let (label, file) = match typed.split_once('=') {
        Some((label, file)) => (Some(check_label(label)?), file),
        None => (None, typed),
    };
    let usual = CacheDefaults {
        proxy: "builtin".into(),
        memory_bytes: args.memory,
        disk_bytes: args.disk,
        set: BTreeMap::new(),
    };
    let mode = args.forward.then_some(Mode::Forward);
    let topology = topology_as(Path::new(file), mode, usual, &args.proxy_dir)?;
    topology::check(&topology).map_err(Failure::usage)?;
    if topology.mode == Mode::Forward && args.host.is_some() {
        return Err(Failure::usage(anyhow!(
            "the caches of {file} are forward proxies, and connect to the host that is named"
        ))
        .hint("leave --host out"));
    }
    let label = label.map_or_else(|| check_label(&topology.name), Ok)?;
    let directory = directory.join(&label);
    Ok((label, IsolatedTopologyPlan { exe: exe.to_owned(), topology, http2: false, directory }))
}

fn check_running(args: &ConformArgs, address: SocketAddr) -> Result<(), Failure> {
    if args.targets.len() + args.topologies.len() > 1 {
        return Err(Failure::usage(anyhow!("{address} runs already, and its origin serves it alone"))
            .hint("try one target that runs already at a time; results can be compared with --baseline"));
    }
    if !is_private(address.ip()) && !args.i_own_this_target {
        return Err(Failure::usage(anyhow!(
            "{address} is a public address, and cases send malformed requests"
        ))
        .hint("if it is yours, say so with --i-own-this-target"));
    }
    if args.origin_listen.is_none() {
        return Err(Failure::usage(anyhow!("{address} runs already, and needs Assay's origin behind it"))
            .hint("say where its origin is, as it is configured: --origin-listen ADDR:PORT"));
    }
    crate::target::reachable(address)
}

impl StartedTarget {
    pub fn label(&self) -> &str {
        match self {
            StartedTarget::Proxy(plan) => &plan.proxy.label,
            StartedTarget::Topology(label, _) => label,
        }
    }

    /// Directory of its files.
    pub fn directory(&self) -> &Path {
        match self {
            StartedTarget::Proxy(plan) => &plan.directory,
            StartedTarget::Topology(_, plan) => &plan.directory,
        }
    }

    /// Mode in which clients use it.
    pub fn mode(&self) -> Mode {
        match self {
            StartedTarget::Proxy(plan) => plan.mode,
            StartedTarget::Topology(_, plan) => plan.topology.mode,
        }
    }

    /// Another instance of it, with its files in a directory below.
    pub fn another(&self, name: &str, http2: bool) -> Self {
        let directory: PathBuf = self.directory().join(name);
        match self {
            StartedTarget::Proxy(plan) => {
                let is_secure_only =
                    http2 && self::http2(&plan.proxy) == Some(description::Http2Support::WithTls);
                let tls = plan.tls || is_secure_only;
                StartedTarget::Proxy(IsolatedProxyPlan { http2, tls, directory, ..plan.clone() })
            }
            StartedTarget::Topology(label, plan) => StartedTarget::Topology(
                label.clone(),
                IsolatedTopologyPlan { http2, directory, ..plan.clone() },
            ),
        }
    }

    /// Starts an instance in front of an origin, and waits until it is ready.
    pub async fn start(
        &self,
        reservation: AddressReservation,
        origin: SocketAddr,
    ) -> Result<IsolatedProxy, LabError> {
        match self {
            StartedTarget::Proxy(plan) => {
                IsolatedProxy::start(plan, reservation, &[(String::new(), origin)]).await
            }
            StartedTarget::Topology(_, plan) => {
                IsolatedProxy::start_topology(plan, reservation, origin).await
            }
        }
    }

    /// True if clients speak TLS to it.
    pub fn has_tls(&self) -> bool {
        matches!(self, StartedTarget::Proxy(plan) if plan.tls)
    }

    /// Whether it can speak HTTP/2; what can over TLS only is tried over that.
    pub fn http2(&self) -> Http2 {
        let spoken = match self {
            _ if self.mode() == Mode::Forward => None,
            StartedTarget::Proxy(plan) => http2(&plan.proxy),
            StartedTarget::Topology(_, plan) => topology::http2(&plan.topology),
        };
        match spoken {
            // Over TLS, both sides agree on a protocol for each connection.
            Some(_) if self.has_tls() => Http2::Beside,
            Some(description::Http2Support::Only) => Http2::Alone,
            Some(description::Http2Support::WithHttp1 | description::Http2Support::WithTls) => Http2::Beside,
            None => Http2::No,
        }
    }

    /// Settings that were chosen for it; those of a cache among others begin with its name.
    pub fn settings(&self) -> BTreeMap<String, String> {
        match self {
            StartedTarget::Proxy(plan) => match &plan.proxy.choice {
                ProxyChoice::Described(description) => description.settings_as_typed(),
                ProxyChoice::Builtin(_) | ProxyChoice::Running(_) => BTreeMap::new(),
            },
            StartedTarget::Topology(_, plan) => {
                let caches = plan.topology.caches.iter();
                let described = caches.filter_map(|cache| Some((&cache.name, cache.description.as_ref()?)));
                let of = |(name, description): (&String, &assay_lab::Description)| {
                    let typed = description.settings_as_typed().into_iter();
                    typed.map(|(key, value)| (format!("{name}.{key}"), value)).collect::<Vec<_>>()
                };
                described.flat_map(of).collect()
            }
        }
    }
}

fn http2(proxy: &TestedProxy) -> Option<description::Http2Support> {
    match &proxy.choice {
        ProxyChoice::Builtin(_) => Some(description::Http2Support::WithHttp1),
        ProxyChoice::Described(description) => description.http2,
        ProxyChoice::Running(_) => None,
    }
}
