//! Measurements of a response, and of the connection for it.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_base::clock::monotonic_ns;
use assay_net::connection::Resources;
use assay_net::tls::session::Session;
use assay_net::upstream::{Upstream, UpstreamError, UpstreamTimeouts};

use assay_record::spe::ResponseError;

use crate::connect_errors;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measurement {
    /// Instant of sending the request, by `CLOCK_MONOTONIC`: after connecting, if that was necessary.
    pub sent_ns: u64,
    pub status: Option<u16>,
    /// `None` for a connection that was open already.
    pub connect_ns: Option<u64>,
    /// From sending to the first byte.
    pub first_byte_ns: Option<u64>,
    /// From the first byte to the last.
    pub transfer_ns: Option<u64>,
    pub head_bytes: u64,
    pub body_bytes: u64,
    /// Reason for which the response is not complete.
    pub error: Option<ResponseError>,
}

impl Measurement {
    /// Instant of the last byte, by `CLOCK_MONOTONIC`.
    pub fn ended_ns(&self) -> u64 {
        self.sent_ns + self.first_byte_ns.unwrap_or(0) + self.transfer_ns.unwrap_or(0)
    }

    /// Response time as defined in the thesis.
    pub fn response_ns(&self) -> u64 {
        [self.connect_ns, self.first_byte_ns, self.transfer_ns].into_iter().flatten().sum()
    }
}

/// Opens a connection, with TLS if there is a session for it, and records its duration.
pub async fn connect(
    address: SocketAddr,
    session: Option<Session>,
    timeouts: UpstreamTimeouts,
    resources: &Rc<Resources>,
    measurement: &mut Measurement,
) -> Result<Box<Upstream>, UpstreamError> {
    let began_ns = monotonic_ns();
    let connected = Upstream::open(address, session, timeouts, resources).await;
    measurement.connect_ns = Some(monotonic_ns() - began_ns);
    connected.map(Upstream::with_timing).inspect_err(connect_errors::log_once)
}
