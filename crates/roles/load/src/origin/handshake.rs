//! What origins count of TLS.

use std::io;

use assay_net::byte_stream::{ByteStream, tls_error};
use tokio::net::TcpStream;

use super::local::Local;

/// Counts the handshake of a connection, once: after it is over.
#[cold]
pub(super) fn count_handshake(local: &Local, stream: &mut ByteStream<TcpStream>) {
    let Some(handshake) = stream.take_handshake() else { return };
    let mut tally = local.tally.borrow_mut();
    let counts = &mut tally.here().counts;
    let session = if handshake.agreed.resumed { &mut counts.tls_resumed } else { &mut counts.tls_full };
    *session += 1;
}

/// Counts an error of TLS, and a handshake that came to no end.
pub(super) fn count_tls_error(local: &Local, stream: &ByteStream<TcpStream>, error: &io::Error) {
    if tls_error(error).is_some() || !stream.is_open() {
        local.tally.borrow_mut().here().counts.tls_failed += 1;
    }
}
