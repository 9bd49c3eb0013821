//! Switch files. Its settings as values, with all that it leaves out filled in.

mod conditions;
mod explain;
mod layer4;
mod policy;
mod read;
mod table;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use assay_cluster::dispatch::Choice;
use assay_net::limits::LEAST_RATE;
use assay_net::tls::settings::Version;
use assay_protocol::network::Network;

use crate::classes::Condition;
use crate::health::{ActiveRules, PassiveRules};

pub use explain::explain;
pub use read::read;

/// What a switch looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Requests: each gets a server by the policy of its class (layer 7).
    Http,
    /// Connections: each gets a server, and what goes over it is not looked at (layer 4).
    Tcp,
}

/// When the kernel moves bytes from one connection to the other, without a copy to the switch and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Splice {
    /// Where much comes at once.
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What it looks at.
    pub mode: Mode,
    /// When the kernel moves bytes.
    pub splice: Splice,
    /// Where clients connect in the clear.
    pub listen: Vec<SocketAddr>,
    /// TLS to clients.
    pub tls: Option<ListenTls>,
    /// To which clients HTTP/2 is spoken.
    pub http2: Http2,
    /// Threads; each has policies of its own and an even part of every limit.
    pub workers: usize,
    /// How long a busy worker may rest before it looks for messages, so that several come together; none: 0.
    pub longest_rest: Duration,
    /// How it calls itself in `Via`, and in `Forwarded` as `by`.
    pub name: String,
    /// Where it shows its counters to Prometheus.
    pub metrics: Option<SocketAddr>,
    pub access_log: Option<AccessLog>,
    /// Peers whose forwarding fields are trusted.
    pub trusted: Vec<Network>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How much there may be.
    pub limits: Limits,
    /// Protocols that a client's connection may be upgraded to, in lower case.
    pub upgrades: Vec<String>,
    /// How often a request that is lost may be sent to another server.
    pub retries: u32,
    /// Failures of ordinary requests that take a server out.
    pub passive: Option<PassiveRules>,
    /// Where servers report their state, and how often they are polled for it.
    pub state: StateQuery,
    /// Seed of whatever policies draw.
    pub seed: u64,
    /// The servers; a server's number is its place here.
    pub servers: Vec<ServerSpec>,
    /// The classes, in the order in which they are tried. The last takes what is left.
    pub classes: Vec<ClassSpec>,
    /// Groups of classes that share a policy.
    pub groups: Vec<GroupSpec>,
}

impl Config {
    /// Where clients connect, in the clear or with TLS.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listen.iter().chain(self.tls.iter().flat_map(|tls| &tls.listen)).copied()
    }
}

/// TLS to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenTls {
    pub listen: Vec<SocketAddr>,
    /// Certificates; a client gets the first that is valid for the name that it sends, else the first of all.
    pub certificates: Vec<CertificateFiles>,
    /// The oldest version.
    pub oldest: Version,
}

/// Files of a certificate, read at the start and on every reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and those that lead from it to its authority (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

/// To which clients HTTP/2 is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2 {
    /// To none.
    None,
    /// To those that agree on it over TLS (ALPN).
    OverTls,
    /// Also to those that begin with it in the clear (prior knowledge).
    All,
}

/// TLS to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// Authorities that its certificate is verified by (PEM); none: it is not verified.
    pub ca: Option<PathBuf>,
    /// The name that it is verified for, and that is sent (SNI); none: its address, which is not sent.
    pub name: Option<String>,
    /// The oldest version.
    pub oldest: Version,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// What it is called; it stays the same server over a reload by name, address, TLS and version of HTTP.
    pub name: String,
    pub address: SocketAddr,
    /// Its weight; 1 is usual.
    pub weight: f64,
    /// Its weight grows from a tenth to the whole of it in this time after it comes up.
    pub slow_start: Option<Duration>,
    /// Most requests that it has at once.
    pub connections: u32,
    /// Only used when no other server of a class is there.
    pub is_backup: bool,
    /// Gets no new requests; those it has may finish.
    pub drains: bool,
    pub check: Option<Check>,
    /// It speaks TLS; its health checks do too.
    pub tls: Option<ServerTls>,
    /// It is spoken to over HTTP/2, in its health checks too.
    pub speaks_http2: bool,
}

/// How the health of a server is checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// It is enough that the server accepts a connection: nothing is requested.
    pub connects: bool,
    pub path: String,
    /// The host that is named.
    pub host: Option<String>,
    pub interval: Duration,
    /// How long a response may take.
    pub timeout: Duration,
    /// The first and last status that count as well.
    pub statuses: Vec<(u16, u16)>,
    /// How many responses change the verdict.
    pub rules: ActiveRules,
}

/// A class of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassSpec {
    /// What it is called.
    pub name: String,
    /// What a request must be like; empty: any is.
    pub conditions: Vec<Condition>,
    /// Place of the group whose policy serves it.
    pub group: usize,
}

/// Classes that share a policy, and the servers that it chooses from.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    pub choice: Choice,
    /// Places of its servers, ascending.
    pub servers: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    /// Where it is; opened anew on every reload.
    pub file: PathBuf,
    /// What its lines are like.
    pub format: LogFormat,
}

/// What lines of an access log are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Combined, followed by class, server and times.
    Switch,
    Combined,
    Common,
}

/// How a server's state is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateQuery {
    pub path: String,
    /// How often every server is polled, whether or not a policy needs that.
    pub interval: Option<Duration>,
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// A client between two requests.
    pub client_idle: Duration,
    /// A client from the first byte of a request's head to its last, and between parts of its body or of the response that
    /// it takes.
    pub client_request: Duration,
    /// A server to accept a connection.
    pub connect: Duration,
    /// A server until its response begins, and between parts of it.
    pub response: Duration,
    /// A request that waits for a server with room.
    pub queue: Duration,
    /// A connection to a server that is not used.
    pub server_idle: Duration,
    /// A connection that was upgraded, while nothing comes from either side.
    pub tunnel: Duration,
    /// Running requests, once the switch is to end.
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

/// How much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections of clients; more wait to be accepted.
    pub connections: u32,
    /// Requests that wait for a server with room; more are refused with 503.
    pub queue: u32,
    /// Bytes of a request's head; more are refused with 431.
    pub head_bytes: u64,
    /// Fields of a request's head; more are refused with 431.
    pub head_fields: u32,
    /// Bytes of a request's target; more are refused with 414.
    pub target_bytes: u64,
    /// Bytes of a request's body; more are refused with 413.
    pub body_bytes: Option<u64>,
    /// Bytes of a body that a client has to send or take in a second at least, after `client-request`; 0: any.
    pub client_rate: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 9000,
            queue: 1000,
            head_bytes: 32 << 10,
            head_fields: 100,
            target_bytes: 8 << 10,
            body_bytes: None,
            client_rate: LEAST_RATE,
        }
    }
}
