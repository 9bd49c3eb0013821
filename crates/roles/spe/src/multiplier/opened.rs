//! Tunnels that are opened: inside, the client speaks TLS with a certificate for its host that is made here, and its requests are
//! served as all others are.
//!
//! The certificate is of an authority that the user keeps ([`assay_net::tls::intercept`]). A client that does not accept it, names another host or
//! speaks no TLS gets no tunnel, and is counted under the name of what was wrong ([`assay_protocol::evaluation::OpenedCounters`]). A handshake has as
//! long as the head of a request.
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
use assay_net::tls::intercept::OpenError;
use assay_net::tls::session::Session;
use assay_record::spe::{ResponseError, Verdict};

use super::board::{Entry, Measured, count};
use super::message::{About, Order};
use super::place::Place;
use super::shared::Shared;

/// A tunnel whose client was told that it may begin.
pub struct Opening {
    place: Place,
    session: Session,
    about: Arc<About>,
    began_ns: u64,
}

/// What a tunnel is opened with; or the status and the text with which its client is refused.
pub fn begin(shared: &Shared, order: &Order) -> Result<Opening, (u16, String)> {
    let place = Place::of(&order.about.url);
    let Some(interceptor) = &shared.interceptor else {
        return Err((501, "tunnels are not opened".to_owned()));
    };
    match interceptor.accept(place.authority(), realtime_ns() / 1_000_000_000) {
        Ok(session) => {
            let about = Arc::clone(&order.about);
            Ok(Opening { place, session, about, began_ns: monotonic_ns() })
        }
        Err(error @ OpenError::Host(_)) => Err((400, error.to_string())),
        Err(error) => Err((503, error.to_string())),
    }
}

/// Makes the handshake, and waits for the beginning of the first request: of which server. None: the client is served no longer.
pub async fn open(
    shared: &Shared,
    connection: &mut Connection<HttpStream>,
    limits: &ClientLimits,
    opening: Opening,
) -> Option<Place> {
    let Opening { place, session, about, began_ns } = opening;
    let begun = shake_hands(connection, session, limits).await;
    if !is_open(connection) {
        failed(shared, about, began_ns, begun.err());
        return None;
    }
    count(&shared.board.opened.opened);
    begun.is_ok().then_some(place)
}

/// Makes the handshake, and waits for the beginning of the first request.
async fn shake_hands(
    connection: &mut Connection<HttpStream>,
    session: Session,
    limits: &ClientLimits,
) -> io::Result<()> {
    // A client may begin before it is told that it may.
    let early = connection.input.unread().to_vec();
    connection.input.consume(early.len());
    let HttpStream::Socket(stream) = &mut connection.stream else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    match early.is_empty() {
        true => stream.secure(session),
        false => stream.secure_begun(session, &early)?,
    }
    http2::is_begun(connection, limits).await.map(drop)
}

fn is_open(connection: &Connection<HttpStream>) -> bool {
    matches!(&connection.stream, HttpStream::Socket(stream) if stream.is_secured() && stream.is_open())
}

/// Counts a tunnel that was not opened, and writes down where it was to lead, unless its client has just left: browsers begin more
/// connections than they use.
fn failed(shared: &Shared, about: Arc<About>, began_ns: u64, error: Option<io::Error>) {
    let opened = &shared.board.opened;
    let kind = error.as_ref().and_then(tls_error).map_or(TlsErrorKind::Failed, |error| error.kind);
    let counter = match kind {
        TlsErrorKind::CertificateRefused => &opened.certificate_refused,
        TlsErrorKind::NameRefused => &opened.name_refused,
        TlsErrorKind::NotTls => &opened.not_tls,
        TlsErrorKind::NoCommonParameters => &opened.no_common_parameters,
        _ => return count(&opened.failed),
    };
    count(counter);
    let measured = Measured {
        sent_ns: began_ns,
        status: Some(200),
        error: Some(ResponseError::Tls),
        ..Measured::default()
    };
    shared.board.requested(0);
    shared.board.tell(Entry {
        about,
        target: 0,
        place: 0,
        measured,
        checksum: None,
        verdict: Verdict::NoResponse,
        header: None,
        direct_status: measured.status,
    });
}
