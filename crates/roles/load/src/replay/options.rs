//! How requests are sent.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::replay::origin::Simulated;
use crate::replay::tls::Tls;

/// How requests are sent.
#[derive(Debug, Clone)]
pub struct Options {
    pub to: SocketAddr,
    /// With whole URLs, as to a forward proxy.
    pub forward: bool,
    /// How TLS is spoken; none: not at all.
    pub tls: Option<Tls>,
    /// Further header fields, lines with their ends.
    pub fields: Vec<u8>,
    /// How long a response may take.
    pub patience: Duration,
    /// How long an idle connection is kept.
    pub keep_idle: Duration,
    /// Requests under way at most; one that is due beyond that is not sent, and counted.
    pub most_open: usize,
    /// Where every request is written down; none: nowhere.
    pub xacts: Option<PathBuf>,
    /// The origins that it all comes from, where they are our own: hits are told, and responses are checked against what they
    /// must be.
    pub simulated: Option<Arc<Simulated>>,
    /// For how long threads of the target have waited for a processor, in microseconds, added up: kept up to date by whoever is told how
    /// the replay goes; none: nobody watches them.
    pub target_waited_us: Option<Rc<Cell<u64>>>,
}
