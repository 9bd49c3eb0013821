//! Intercepted tunnels: the client speaks TLS with a certificate issued here for its host, and its requests are served like all
//! others.
//!
//! The certificate is signed by an authority that the user keeps ([`assay_net::tls::intercept`]). A client that does not accept
//! it, names another host or speaks no TLS gets no tunnel, and is counted by the kind of failure
//! ([`assay_protocol::evaluation::OpenedCounters`]). A handshake has as long as the head of a request.
//!
//! *Does not:* connect to the host. The Collector does, with the first request, and verifies the host's own certificate.

use std::io;
use std::sync::Arc;

use assay_base::clock::{monotonic_ns, realtime_ns};
use assay_net::byte_stream::tls_error;
use assay_net::connection::Connection;
use assay_net::exchange::ClientLimits;
use assay_net::http_stream::HttpStream;
use assay_net::http2;
use assay_net::tls::error::TlsErrorKind;
use assay_net::tls::intercept::TunnelError;
use assay_net::tls::session::Session;
use assay_record::spe::{ResponseError, Verdict};

use super::client_context::ClientContext;
use super::measurement::Measurement;
use super::message::{ReceivedRequest, RequestSummary};
use super::shared_state::{ResponseEntry, count};
use super::tunnel_target::TunnelTarget;

/// A tunnel whose client may start its handshake.
pub struct Interception {
    target: TunnelTarget,
    session: Session,
    summary: Arc<RequestSummary>,
    began_ns: u64,
}

/// Reasons for not opening a tunnel. The texts go to the client.
#[derive(Debug, thiserror::Error)]
pub enum InterceptError {
    #[error("tunnels are not opened")]
    Disabled,
    #[error(transparent)]
    Open(#[from] TunnelError),
}

impl InterceptError {
    pub fn status(&self) -> u16 {
        match self {
            InterceptError::Disabled => 501,
            InterceptError::Open(TunnelError::Host(_)) => 400,
            InterceptError::Open(_) => 503,
        }
    }
}

/// Prepares a TLS session with a certificate for the host of the tunnel.
pub fn begin(shared: &ClientContext, request: &ReceivedRequest) -> Result<Interception, InterceptError> {
    let target = TunnelTarget::new(&request.summary.url);
    let interceptor = shared.interceptor.as_ref().ok_or(InterceptError::Disabled)?;
    let session = interceptor.accept(target.authority(), realtime_ns() / 1_000_000_000)?;
    let summary = Arc::clone(&request.summary);
    Ok(Interception { target, session, summary, began_ns: monotonic_ns() })
}

/// Makes the handshake, and waits for the beginning of the first request. `None`: the client is not served any further.
pub async fn open(
    shared: &ClientContext,
    connection: &mut Connection<HttpStream>,
    limits: &ClientLimits,
    interception: Interception,
) -> Option<TunnelTarget> {
    let Interception { target, session, summary, began_ns } = interception;
    let begun = shake_hands(connection, session, limits).await;
    if !is_open(connection) {
        count_failure(shared, summary, began_ns, begun.err());
        return None;
    }
    count(&shared.state.opened.opened);
    begun.is_ok().then_some(target)
}

/// Makes the handshake, and waits for the beginning of the first request.
async fn shake_hands(
    connection: &mut Connection<HttpStream>,
    session: Session,
    limits: &ClientLimits,
) -> io::Result<()> {
    // A client may start before it gets the response to its CONNECT.
    let early = connection.input.unread().to_vec();
    connection.input.consume(early.len());
    let HttpStream::Socket(stream) = &mut connection.stream else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    match early.is_empty() {
        true => stream.start_tls(session),
        false => stream.start_tls_begun(session, &early)?,
    }
    http2::has_preface(connection, limits).await.map(drop)
}

fn is_open(connection: &Connection<HttpStream>) -> bool {
    matches!(&connection.stream, HttpStream::Socket(stream) if stream.is_tls() && stream.is_open())
}

/// Counts and logs a tunnel that was not opened, unless its client has just left: browsers open more connections than they use.
fn count_failure(
    shared: &ClientContext,
    summary: Arc<RequestSummary>,
    began_ns: u64,
    error: Option<io::Error>,
) {
    let opened = &shared.state.opened;
    let kind = error.as_ref().and_then(tls_error).map_or(TlsErrorKind::Failed, |error| error.kind);
    let counter = match kind {
        TlsErrorKind::CertificateRefused => &opened.certificate_refused,
        TlsErrorKind::NameRefused => &opened.name_refused,
        TlsErrorKind::NotTls => &opened.not_tls,
        TlsErrorKind::NoCommonParameters => &opened.no_common_parameters,
        _ => return count(&opened.failed),
    };
    count(counter);
    let measurement = Measurement {
        sent_ns: began_ns,
        status: Some(200),
        error: Some(ResponseError::Tls),
        ..Measurement::default()
    };
    shared.state.requested(0);
    shared.state.record(ResponseEntry {
        summary,
        target: 0,
        position: 0,
        measurement,
        checksum: None,
        verdict: Verdict::NoResponse,
        header: None,
        direct_status: measurement.status,
    });
}
