//! What an agent is told at its start, and how long it waits for a coordinator at most.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::machines::fleet::name::Name;
use assay_protocol::network::Network;

use crate::machines::login::Login;

/// The longest that an agent goes on without a word from its coordinator, whatever that wanted.
pub const MOST_WAIT: Duration = Duration::from_secs(3600);

/// What an agent is told at its start.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Where the server is, and who the agent is there.
    pub login: Login,
    pub name: Name,
    /// What it can be selected by.
    pub labels: Vec<Name>,
    /// Where other machines reach it; none: the address from which it reaches the server.
    pub address: Option<IpAddr>,
    /// What its roles may load.
    pub may_load: Vec<Network>,
    /// Directories with descriptions of proxies, beside those that ship with Assay.
    pub proxy_dirs: Vec<PathBuf>,
    /// Whether a coordinator may send a description of its own, which holds commands.
    pub accepts_descriptions: bool,
    /// The directory that it writes in.
    pub dir: PathBuf,
    /// The program itself, whose roles it starts.
    pub exe: PathBuf,
    /// The version of the program.
    pub version: String,
}
