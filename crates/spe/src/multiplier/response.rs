//! Connections to the Collector and to proxies, and how long they took.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_plane::clock::monotonic_ns;
use assay_plane::connection::Resources;
use assay_plane::upstream::{Patience, Upstream, UpstreamError};

use super::board::Measured;

/// Opens a connection and writes down how long it took.
pub async fn connect(
    address: SocketAddr,
    patience: Patience,
    resources: &Rc<Resources>,
    measured: &mut Measured,
) -> Result<Box<Upstream>, UpstreamError> {
    let began_ns = monotonic_ns();
    let connected = Upstream::connect(address, patience, resources).await;
    measured.connect_ns = Some(monotonic_ns() - began_ns);
    connected.map(Upstream::timed)
}
