//! Spec of a real proxy that is started as a role: on a machine that is not the run's own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use assay_net::tls::settings::ServerTls;
use assay_proxy::spec::OriginRoute;

/// Spec of the role that starts, empties, reads and stops a real proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// The name of a description, or the file (`.toml`) into which an agent has put it. A description holds commands: agents take
    /// none from elsewhere unless they were told to.
    pub description: String,
    /// Settings of the proxy, by name.
    pub settings: BTreeMap<String, String>,
    /// Requests name whole URLs: it is a forward proxy.
    pub forward: bool,
    /// Robots speak HTTP/2 to it.
    pub http2: bool,
    /// Origins speak HTTP/2 to it.
    #[serde(default)]
    pub origin_http2: bool,
    /// Address at which it is to listen.
    pub listen: SocketAddr,
    /// Hosts of the origins, each with its real address, in the workload's order.
    pub origins: Vec<OriginRoute>,
    /// Memory for its cache, in bytes.
    pub memory_bytes: u64,
    /// Disk for its cache, in bytes.
    pub disk_bytes: u64,
    /// Connections that robots may open at once.
    pub connections: u64,
    /// TLS; none: all of it speaks in the clear.
    #[serde(default)]
    pub tls: Option<TargetTls>,
    /// Directory in which its configuration, logs and counters are kept.
    pub keep: PathBuf,
}

/// TLS of a real proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetTls {
    /// Certificate and key towards robots; none: they speak in the clear.
    pub listen: Option<ServerTls>,
    /// Origins speak TLS.
    pub to_origins: bool,
    /// The certificate of the authority that vouches for both (PEM).
    pub ca: PathBuf,
}
