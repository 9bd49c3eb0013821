//! Messages between agents and coordinators: one JSON document each.
//!
//! Every message that begins something carries [`PROTOCOL`]. [`read`] tells a message of another protocol from one that is no
//! message at all, so that both sides can say which version the other has.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::target_spec::{TargetSpec, TargetTls};
use assay_load::spec::{OriginsSpec, RobotsSpec};
use assay_net::tls::settings::{ClientTls, ServerTls};
use assay_protocol::message::{Command, Event};
use assay_protocol::network::Network;
use assay_proxy::spec::ProxySpec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::machines::fleet::name::Name;

/// The version of these messages. A change of any of them makes it a new one.
pub const PROTOCOL: u32 = 5;

/// Description of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The version of Assay that it is.
    pub version: String,
    pub name: Name,
    /// A number of its own: two agents that were given one name differ in it.
    pub instance: u64,
    /// Labels by which it can be selected, besides its name.
    pub labels: Vec<Name>,
    /// The kernel of its machine.
    pub kernel: String,
    /// Processors that it may use.
    pub cpus: u32,
    /// Memory of its machine, in bytes.
    pub memory_bytes: u64,
    /// Descriptors that a process may have there.
    pub descriptors: u64,
    /// Other resources that can run out.
    pub free: Free,
    /// The address under which other machines reach what its roles open.
    pub address: IpAddr,
    /// Networks that it agrees to load.
    pub may_load: Vec<Network>,
    /// Real proxies that it can start.
    pub proxies: Vec<InstalledProxy>,
    /// Whether it drives a proxy by a description that a coordinator sends.
    pub accepts_descriptions: bool,
    /// Current activity; none: nothing.
    pub busy: Option<Busy>,
}

impl AgentInfo {
    /// Whether it is the one of this name, or carries this label.
    pub fn is_called(&self, label: &Name) -> bool {
        self.name == *label || self.labels.contains(label)
    }
}

/// Free resources of an agent's machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Free {
    /// Memory that can be had, in bytes.
    pub memory_bytes: u64,
    /// Free space where the agent writes, in bytes.
    pub dir_bytes: u64,
    /// Free space where its proxies keep what they store, in bytes.
    pub work_bytes: u64,
    pub work_dir: String,
    /// First and last port that connections are given.
    pub ports: (u16, u16),
    /// Time for which the port of a closed connection rests, in seconds.
    pub port_rest_s: f64,
}

/// A real proxy on an agent's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledProxy {
    /// The name of its description.
    pub name: String,
    /// A digest of its description: two of one name may differ.
    pub description: String,
    /// The version that it reports.
    pub version: String,
}

/// Activity of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// The run that it takes part in.
    pub run: Name,
    /// Author of the order, as the coordinator says: user and host.
    pub by: String,
    /// The roles that run.
    pub roles: Vec<String>,
}

/// The part of a message by which its version is known, whatever else it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The protocol of the sender.
    pub protocol: u32,
    /// Version of Assay; empty: it did not say.
    #[serde(default)]
    pub version: String,
    /// Name; empty: it did not say.
    #[serde(default)]
    pub name: String,
}

/// Order of a coordinator to one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The coordinator's version of Assay.
    pub version: String,
    /// The run that it is about.
    pub run: Name,
    /// Author: user and host.
    pub by: String,
    /// One that is sent again, because no response to it came, has the same number, and is carried out once.
    pub number: u64,
    /// Experiment to run.
    pub what: What,
}

/// Experiment to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Take part in the run: fetch its workload, and do nothing for other coordinators until its end.
    Begin {
        /// Milliseconds to go on without a word from a coordinator of this run, in milliseconds.
        wait_ms: u64,
        /// The proxy that runs there already, and is to be measured; none: there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        watch: Option<WatchOrder>,
        /// The description (TOML) by which the run's proxy is to be driven there; none: there is no proxy, or the agent has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// Start a role under a number of the coordinator's.
    Start {
        role: u32,
        /// Spec of the role. The agent puts paths, threads and processors of its own in.
        spec: Box<RoleSpec>,
        /// The files that it names, certificates and keys, by their names without a directory. They are in no stream or store.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, String>,
    },
    /// Pass a command on to a role. Instants in it are of the agent's own clock.
    Tell { role: u32, command: Command },
    /// The schedule begins at this instant of the agent's own clock: its machine is measured from then on, whether or not roles
    /// run there.
    Measure {
        /// In nanoseconds.
        at_monotonic_ns: u64,
    },
    /// End a role: close its input, and kill it if it does not end by itself.
    End { role: u32 },
    /// The run is over: end what still runs, put its files into the object store, forget it.
    Finish,
}

/// A proxy that runs on an agent's machine already, and that no agent starts or stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchOrder {
    /// Processes, as `--watch` names them; none: its machine is measured, its processes are not.
    pub processes: Option<String>,
    pub address: SocketAddr,
    /// The directory that it keeps its files in: their disk is measured as its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<PathBuf>,
}

/// Spec of a role, by kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleSpec {
    Robots(RobotsSpec),
    Origins(OriginsSpec),
    Builtin(ProxySpec),
    /// A real proxy, as a description drives it that is installed at the agent, or came with the run.
    Target(TargetSpec),
}

impl RoleSpec {
    /// The files that it names for TLS, wherever they are.
    pub fn tls_files(&mut self) -> Vec<&mut PathBuf> {
        fn client(tls: &mut Option<ClientTls>) -> Option<&mut PathBuf> {
            tls.as_mut().and_then(|tls| tls.ca.as_mut())
        }
        fn server(tls: &mut Option<ServerTls>) -> impl Iterator<Item = &mut PathBuf> {
            tls.iter_mut().flat_map(|tls| [&mut tls.certificate, &mut tls.key])
        }
        fn target(tls: &mut TargetTls) -> Vec<&mut PathBuf> {
            server(&mut tls.listen).chain([&mut tls.ca]).collect()
        }
        match self {
            RoleSpec::Robots(spec) => client(&mut spec.tls).into_iter().collect(),
            RoleSpec::Origins(spec) => server(&mut spec.tls).collect(),
            RoleSpec::Builtin(spec) => server(&mut spec.tls).chain(client(&mut spec.origin_tls)).collect(),
            RoleSpec::Target(spec) => spec.tls.as_mut().map(target).unwrap_or_default(),
        }
    }

    /// The name of the role on the command line, which is that of its files too.
    pub fn role(&self) -> &'static str {
        match self {
            RoleSpec::Robots(_) => "robots",
            RoleSpec::Origins(_) => "origins",
            RoleSpec::Builtin(_) => "proxy",
            RoleSpec::Target(_) => "target",
        }
    }
}

/// Response to an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Order that was carried out.
    Done,
    /// Order that was carried out, while the proxy of the description that came with it reports this version.
    Version(String),
    /// The run is over, and these files are in the object store.
    Files(Vec<String>),
    /// Order that was refused, and why.
    Refused(String),
}

/// A request to read an agent's clock. It also tells the agent that its coordinator is still there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRequest {
    /// The run that the coordinator makes; none: it only looks.
    pub run: Option<Name>,
}

/// Reading of an agent's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub instance: u64,
    /// `CLOCK_MONOTONIC` when the request was received, in nanoseconds.
    pub received_ns: u64,
    /// `CLOCK_MONOTONIC` when the response was made, in nanoseconds.
    pub responded_ns: u64,
    /// The wall clock when the response was made, in microseconds of Unix time.
    pub unix_us: u64,
}

/// Something that a role said. Messages of an agent are numbered from 0 in each run, so that one that arrives twice counts once
/// and none is missed unseen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Number among those of the agent.
    pub number: u64,
    /// The role's number; none: the agent itself.
    pub role: Option<u32>,
    pub output: Output,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    Event(Box<Event>),
    /// A line that is none.
    Nonsense(String),
    /// The role has ended: how, and the last that it wrote.
    Ended(String),
}

/// Reason why a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// The sender speaks another protocol.
    #[error(
        "{name} is Assay {version} (protocol {protocol}), and this is protocol {PROTOCOL}; install the same version on both"
    )]
    Version {
        name: String,
        /// Version.
        version: String,
        protocol: u32,
    },
    /// Bytes that are no message.
    #[error("what was received is no message of Assay's: {0}")]
    Nonsense(String),
}

/// Reads a message that carries a protocol.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MessageError> {
    let nonsense = |cause: serde_json::Error| MessageError::Nonsense(cause.to_string());
    let Envelope { protocol, version, name } = serde_json::from_slice(bytes).map_err(nonsense)?;
    if protocol != PROTOCOL {
        let name = if name.is_empty() { "the other side".to_owned() } else { name };
        return Err(MessageError::Version { name, version, protocol });
    }
    serde_json::from_slice(bytes).map_err(nonsense)
}

/// Reads a message that belongs to an exchange whose protocol is known.
pub fn read_plain<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MessageError> {
    serde_json::from_slice(bytes).map_err(|cause| MessageError::Nonsense(cause.to_string()))
}

/// Most messages of an agent that wait for one before them. An agent sends 64 at once: one that is missing by then does not come.
const MOST_EARLY: usize = 1024;

/// Puts the messages of one agent into their order again: each once, none before the one that it follows.
#[derive(Debug, Default)]
pub struct InOrder {
    next: u64,
    early: std::collections::BTreeMap<u64, Report>,
}

impl InOrder {
    /// Takes one as it arrives; gives those whose turn it is now. The first that is taken under a number counts. One for which there is no
    /// room is not taken.
    pub fn take(&mut self, report: Report) -> Vec<Report> {
        if report.number == self.next || (report.number > self.next && self.early.len() < MOST_EARLY) {
            self.early.entry(report.number).or_insert(report);
        }
        let mut turn = Vec::new();
        while let Some(report) = self.early.remove(&self.next) {
            self.next += 1;
            turn.push(report);
        }
        turn
    }

    /// The number of a message that is missing, so that nothing that came after it is of use; none: there is none.
    pub fn missing(&self) -> Option<u64> {
        (self.early.len() >= MOST_EARLY).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(what: What) -> Order {
        let run = "r1".parse().unwrap();
        Order { protocol: PROTOCOL, version: "0.1.0".into(), run, by: "ann@desk".into(), number: 7, what }
    }

    #[test]
    fn an_order_is_what_it_was_after_a_way_as_json() {
        let start = Command::Start { at_monotonic_ns: u64::MAX, at_unix_s: 7 };
        for what in [
            What::Begin { wait_ms: 15_000, watch: None, description: None },
            What::Tell { role: 3, command: start },
            What::End { role: 0 },
            What::Finish,
        ] {
            let order = order(what);
            assert_eq!(read::<Order>(&serde_json::to_vec(&order).unwrap()), Ok(order));
        }
    }

    #[test]
    fn another_protocol_is_told_from_nonsense() {
        let newer = br#"{"protocol": 99, "version": "9.0", "name": "far", "something": {"new": true}}"#;
        let error = read::<AgentInfo>(newer).unwrap_err().to_string();
        assert!(
            error.contains("far is Assay 9.0 (protocol 99)") && error.contains("same version"),
            "{error}"
        );
        let (list, alone) = (format!("[{PROTOCOL}]"), format!(r#"{{"protocol": {PROTOCOL}}}"#));
        for nonsense in [&b""[..], b"hello", b"{}", list.as_bytes(), alone.as_bytes(), b"\xff"] {
            assert!(matches!(read::<AgentInfo>(nonsense), Err(MessageError::Nonsense(_))), "{nonsense:?}");
        }
    }

    #[test]
    fn messages_that_wait_for_one_that_does_not_come_are_bounded() {
        let report = |number| Report { number, role: None, output: Output::Nonsense("x".into()) };
        let mut line = InOrder::default();
        for number in 1..=MOST_EARLY as u64 {
            assert_eq!(line.missing(), None);
            assert!(line.take(report(number)).is_empty());
        }
        assert_eq!(line.missing(), Some(0));
        assert!(line.take(report(u64::MAX)).is_empty());
        assert_eq!(line.early.len(), MOST_EARLY);
        assert_eq!(line.take(report(0)).len(), MOST_EARLY + 1);
        assert_eq!(line.missing(), None);
    }

    proptest! {
        #[test]
        fn messages_come_in_order_and_once_however_they_arrive(
            order in Just((0_u64..30).collect::<Vec<_>>()).prop_shuffle(),
            again in proptest::collection::vec(0_u64..30, 0..20),
        ) {
            let report = |number| Report { number, role: None, output: Output::Event(Box::new(Event::Done)) };
            let mut line = InOrder::default();
            let arrivals = order.iter().chain(&again);
            let seen: Vec<u64> =
                arrivals.flat_map(|number| line.take(report(*number))).map(|report| report.number).collect();
            prop_assert_eq!(seen, (0..30).collect::<Vec<_>>());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read::<AgentInfo>(&bytes);
            let _ = read::<Order>(&bytes);
            let _ = read_plain::<Report>(&bytes);
        }
    }
}
