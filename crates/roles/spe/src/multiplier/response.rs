//! Connections to the Collector and to proxies, and how long they took.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_base::clock::monotonic_ns;
use assay_net::connection::Resources;
use assay_net::tls::session::Session;
use assay_net::upstream::{Patience, Upstream, UpstreamError};

use super::board::Measured;
use crate::reasons;

/// Opens a connection, with TLS if there is a session for it, and writes down how long that took.
pub async fn connect(
    address: SocketAddr,
    session: Option<Session>,
    patience: Patience,
    resources: &Rc<Resources>,
    measured: &mut Measured,
) -> Result<Box<Upstream>, UpstreamError> {
    let began_ns = monotonic_ns();
    let connected = Upstream::open(address, session, patience, resources).await;
    measured.connect_ns = Some(monotonic_ns() - began_ns);
    connected.map(Upstream::timed).inspect_err(reasons::tell)
}
