//! Access logs and lists of URLs, sent again: requests as clients once sent them, sent to any address.
//!
//! [`plan`] says which client sends what when, and is pure: a log keeps the gaps between its requests and keeps clients apart, in
//! real time, faster or slower; the URLs of a list are requested over connections that arrive at random, from a seed, with
//! several requests each. [`source`] reads logs and lists in a thread of its own, as far ahead as is needed; [`drive()`]
//! sends each request when it is due, whatever became of those before (*open loop*), and [`results`] adds up what came back.
//!
//! Where the origins of a log are not to be had, [`origin`] stands for them: it responds for each URL with the size, status and
//! type that a first pass over the log has found ([`catalogue`]). Then hits are told, and every byte is checked.
//!
//! *Does not:* check what it gets from other origins than its own, follow redirections, run scripts, send bodies, or speak HTTP/2.
//! Nothing here knows what the responses should be: that is for the Multiplier (`assay-spe`), or for robots.

mod cache;
mod catalogue;
mod content;
mod drive;
mod exchange;
pub mod filter;
mod mark;
mod origin;
mod own_influence;
pub mod plan;
mod request;
pub mod results;
mod source;
mod tls;
mod xacts;

pub use cache::CacheResults;
pub use catalogue::Catalogue;
pub use drive::{ReplayOptions, drive};
pub use origin::{OriginListener, OriginServer, SimulatedOrigins};
pub use results::ReplayResults;
pub use source::{ListSource, LogSource, RequestSource};
pub use tls::ReplayTls;

use std::io;
use std::path::PathBuf;

use assay_logs::error::LogsError;
use assay_record::dir::RunDirError;
use thiserror::Error;

/// Failure of a replay. A failure of single requests is never an error.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A log cannot be read.
    #[error(transparent)]
    Logs(#[from] LogsError),
    /// A list cannot be read.
    #[error("cannot read the list of URLs {}: {cause}; check the path", assay_base::quote::line::path(path))]
    List {
        path: PathBuf,
        /// Part of the message, and so no `source` of this error.
        cause: io::Error,
    },
    /// There is nothing to send.
    #[error("there is no request in {name} that can be sent: {why}")]
    Nothing {
        name: String,
        /// Reason, and advice.
        why: String,
    },
    /// The timer, a thread or a descriptor was not to be had.
    #[error("cannot get ready to send: {0}")]
    System(#[from] io::Error),
    /// Simulated origins cannot listen.
    #[error("cannot listen on {address} for simulated origins: {cause}; name another address with --origins")]
    Origin {
        address: std::net::SocketAddr,
        /// Part of the message, and so no `source` of this error.
        cause: io::Error,
    },
    /// The table of requests cannot be written.
    #[error(transparent)]
    Table(#[from] RunDirError),
    /// The result cannot be written as JSON.
    #[error("cannot write the result as JSON: {0}; this is a fault of Assay, please report it")]
    Json(#[from] serde_json::Error),
}
