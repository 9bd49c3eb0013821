//! Switch files: their settings as values, with defaults filled in.

mod conditions;
mod explain;
mod layer4;
mod policy;
mod read;
mod tls;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use assay_cluster::dispatch::PolicyConfig;
use assay_net::limits::MIN_BODY_RATE;
use assay_net::tls::settings::TlsVersion;
use assay_protocol::network::Network;

use crate::classes::Condition;
use crate::health::{ActiveRules, PassiveRules};

pub use explain::explain;
pub use read::read;

/// Layer on which the switch works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Layer 7: each request gets a server by the policy of its class.
    Http,
    /// Layer 4: each connection gets a server, and its bytes are not looked at.
    Tcp,
}

/// Condition on which the kernel moves bytes between connections, without a copy to the switch and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Splice {
    /// For bulk data only.
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub mode: Mode,
    pub splice: Splice,
    /// Addresses for clients in the clear.
    pub listen: Vec<SocketAddr>,
    pub tls: Option<ListenTls>,
    pub http2: ClientHttp2,
    /// Worker threads; each has policies of its own and an even part of every limit.
    pub workers: usize,
    /// Longest pause of a busy worker before it polls sockets, so that several events come together; 0: never.
    pub max_pause: Duration,
    /// Name of the switch in `Via`, and in `Forwarded` as `by`.
    pub name: String,
    /// Address at which counters are served to Prometheus.
    pub metrics: Option<SocketAddr>,
    pub access_log: Option<AccessLogSettings>,
    /// Peers whose forwarding fields are trusted.
    pub trusted: Vec<Network>,
    pub timeouts: Timeouts,
    pub limits: SwitchLimits,
    /// Protocols that a client's connection may be upgraded to, in lower case.
    pub upgrades: Vec<String>,
    /// Further servers that a failed request may be sent to.
    pub retries: u32,
    pub passive: Option<PassiveRules>,
    pub state: StateQuery,
    /// Seed of the policies' random numbers.
    pub seed: u64,
    /// Index in this list = server number in the settings.
    pub servers: Vec<ServerSpec>,
    /// In the order in which they are tried. The last takes every other request.
    pub classes: Vec<ClassSpec>,
    pub groups: Vec<GroupSpec>,
}

impl Config {
    /// Addresses for clients, in the clear or with TLS.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listen.iter().chain(self.tls.iter().flat_map(|tls| &tls.listen)).copied()
    }
}

/// TLS to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenTls {
    pub listen: Vec<SocketAddr>,
    /// A client gets the first certificate that is valid for the name that it sends, else the first of all.
    pub certificates: Vec<CertificateFiles>,
    /// Oldest version accepted.
    pub oldest: TlsVersion,
}

/// Files of a certificate, read at the start and on every reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Certificate chain (PEM).
    pub certificate: PathBuf,
    /// Private key (PEM).
    pub key: PathBuf,
}

/// Clients to which HTTP/2 is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientHttp2 {
    None,
    /// Clients that agree on it over TLS (ALPN).
    OverTls,
    /// Also those that begin with it in the clear (prior knowledge).
    All,
}

/// TLS to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// Authorities that verify the certificate (PEM); `None`: it is not verified.
    pub ca: Option<PathBuf>,
    /// Name that the certificate is verified for, and that is sent (SNI); `None`: the address, which is not sent.
    pub name: Option<String>,
    /// Oldest version accepted.
    pub oldest: TlsVersion,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// A server keeps its identity over a reload if its name, address, TLS and version of HTTP stay the same.
    pub name: String,
    pub address: SocketAddr,
    /// Relative to 1, the default.
    pub weight: f64,
    /// Time in which the weight grows from a tenth to the whole after the server comes up.
    pub slow_start: Option<Duration>,
    /// Maximum of concurrent requests.
    pub connections: u32,
    /// Used only while no other server of a class is available.
    pub is_backup: bool,
    /// Gets no new requests; those under way may finish.
    pub drains: bool,
    pub check: Option<HealthCheck>,
    /// Also used by health checks.
    pub tls: Option<ServerTls>,
    /// Also used by health checks.
    pub speaks_http2: bool,
}

/// Settings of active health checks.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthCheck {
    /// An accepted connection is enough: nothing is requested.
    pub connects: bool,
    pub path: String,
    /// Value of `Host`.
    pub host: Option<String>,
    pub interval: Duration,
    pub timeout: Duration,
    /// Ranges (first and last) of statuses that count as healthy.
    pub statuses: Vec<(u16, u16)>,
    pub rules: ActiveRules,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClassSpec {
    pub name: String,
    /// Conditions that a request must meet; none: every request does.
    pub conditions: Vec<Condition>,
    /// Index of the group whose policy serves the class.
    pub group: usize,
}

/// Classes that share a policy, and the servers that it selects from.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    pub policy: PolicyConfig,
    /// Indices of the servers, ascending.
    pub servers: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// Opened anew on every reload.
    pub file: PathBuf,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// `Combined`, followed by class, server and times.
    Switch,
    Combined,
    Common,
}

/// Settings for polling the state of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateQuery {
    pub path: String,
    /// Interval at which every server is polled, whether or not a policy needs it.
    pub interval: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Idle client connection.
    pub client_idle: Duration,
    /// Head of a request from first to last byte, and each gap in its body or in taking the response.
    pub client_request: Duration,
    /// Connection establishment to a server.
    pub connect: Duration,
    /// Time to the beginning of a response, and each gap in it.
    pub response: Duration,
    /// Wait of a request in the queue.
    pub queue: Duration,
    /// Idle connection to a server.
    pub server_idle: Duration,
    /// Silence of an upgraded connection.
    pub tunnel: Duration,
    /// Requests under way after a stop.
    pub stop: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            client_idle: seconds(60),
            client_request: seconds(15),
            connect: seconds(2),
            response: seconds(60),
            queue: seconds(5),
            server_idle: seconds(15),
            tunnel: seconds(600),
            stop: seconds(30),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchLimits {
    /// Client connections; more wait to be accepted.
    pub connections: u32,
    /// Requests in the queue; more are refused with 503.
    pub queue: u32,
    /// Bytes of a request's head; more are refused with 431.
    pub head_bytes: u64,
    /// Fields of a request's head; more are refused with 431.
    pub head_fields: u32,
    /// Bytes of a request's target; more are refused with 414.
    pub target_bytes: u64,
    /// Bytes of a request's body; more are refused with 413.
    pub body_bytes: Option<u64>,
    /// Lower bound, in bytes a second, on the rate at which a client sends or takes a body after `client-request`; 0: any.
    pub client_rate: u64,
}

impl Default for SwitchLimits {
    fn default() -> Self {
        Self {
            connections: 9000,
            queue: 1000,
            head_bytes: 32 << 10,
            head_fields: 100,
            target_bytes: 8 << 10,
            body_bytes: None,
            client_rate: MIN_BODY_RATE,
        }
    }
}
