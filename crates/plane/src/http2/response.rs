//! Between the two versions: a request as HTTP/1.1 writes it, and a response that HTTP/1.1 has written.

use assay_http::head::ResponseHead;
use assay_http2::{Connection, Head, Stream};

use crate::carrier::Carrier;

/// Appends the head of a request. Its body comes in chunks unless it has none or its length is told: whether it does.
pub(super) fn append_request(out: &mut Vec<u8>, head: Head<'_>, ends: bool) -> bool {
    for part in [head.method().as_bytes(), b" ", head.path().as_bytes(), b" HTTP/1.1\r\n"] {
        out.extend_from_slice(part);
    }
    if let Some(host) = head.host() {
        for part in [b"host: ", host, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    // `te` is about this connection, and would need to be named in `connection`.
    for field in head.fields().filter(|field| !field.is("host") && !field.is("te")) {
        for part in [field.name, b": ", field.value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    let in_chunks = !ends && head.content_length().is_none();
    if in_chunks {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    out.extend_from_slice(b"\r\n");
    in_chunks
}

/// A response on its way.
pub(super) struct Response {
    is_head: bool,
    stage: Stage,
    /// What was taken out of chunks and could not be sent yet.
    unchunked: Vec<u8>,
}

enum Stage {
    /// The final head has not been written.
    Head,
    Body(Carrier),
    Complete,
}

/// What became of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// All that there is; more may be written.
    All,
    /// There is more, and the peer's window is used up.
    Stalled,
    /// There is more; it is another stream's turn.
    Some,
    /// The response is complete.
    Complete,
    /// What was written is no response, or it broke off.
    Broken,
}

impl Response {
    /// To a request, which may be HEAD.
    pub(super) fn new(is_head: bool) -> Self {
        Self { is_head, stage: Stage::Head, unchunked: Vec::new() }
    }

    /// All of it was sent.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.stage, Stage::Complete)
    }

    /// Sends of what was `written` what can be sent, but no more than about `most` bytes of a body; `is_over`: nothing more will be
    /// written.
    pub(super) fn send(
        &mut self,
        wire: &mut Connection,
        stream: Stream,
        written: &mut Vec<u8>,
        is_over: bool,
        most: usize,
    ) -> Sent {
        loop {
            match &mut self.stage {
                Stage::Complete => return Sent::Complete,
                Stage::Head => match self.send_head(wire, stream, written) {
                    Ok(true) => {}
                    Ok(false) if is_over => return Sent::Broken,
                    Ok(false) => return Sent::All,
                    Err(()) => return Sent::Broken,
                },
                Stage::Body(carrier) => {
                    let sent = if carrier.is_plain() {
                        send_plain(carrier, wire, stream, written, most)
                    } else {
                        send_chunked(carrier, &mut self.unchunked, wire, stream, written, most)
                    };
                    match sent {
                        Sent::All if is_over && carrier.end(&mut Vec::new()) => {
                            // The end of the connection was the end of the body.
                            let ended = wire.data(stream, &[], true);
                            self.stage = Stage::Complete;
                            return if ended.is_ok() { Sent::Complete } else { Sent::Broken };
                        }
                        Sent::All if is_over => return Sent::Broken,
                        Sent::Complete => self.stage = Stage::Complete,
                        _ => {}
                    }
                    return sent;
                }
            }
        }
    }

    /// Sends one head, if there is a whole one.
    fn send_head(
        &mut self,
        wire: &mut Connection,
        stream: Stream,
        written: &mut Vec<u8>,
    ) -> Result<bool, ()> {
        let Some((head, length)) = ResponseHead::parse(written).map_err(drop)? else { return Ok(false) };
        let fields = head.headers().map(|field| (field.name, field.value));
        if head.status == 101 {
            return Err(());
        }
        if head.is_interim() {
            wire.respond(stream, head.status, fields, false).map_err(drop)?;
        } else {
            let carrier = Carrier::new(head.body(if self.is_head { "HEAD" } else { "GET" }), false);
            wire.respond(stream, head.status, fields, carrier.is_done()).map_err(drop)?;
            self.stage = if carrier.is_done() { Stage::Complete } else { Stage::Body(carrier) };
        }
        written.drain(..length);
        Ok(true)
    }
}

/// Sends a body as it was written.
fn send_plain(
    carrier: &mut Carrier,
    wire: &mut Connection,
    stream: Stream,
    written: &mut Vec<u8>,
    most: usize,
) -> Sent {
    let room = wire.sendable(stream);
    let count = carrier.take_plain(written.len().min(room).min(most));
    if count > 0 {
        if wire.data(stream, &written[..count], carrier.is_done()).is_err() {
            return Sent::Broken;
        }
        written.drain(..count);
    }
    match (carrier.is_done(), written.is_empty()) {
        (true, _) => Sent::Complete,
        (false, true) => Sent::All,
        (false, false) if count == room => Sent::Stalled,
        (false, false) => Sent::Some,
    }
}

/// Takes a body out of its chunks and sends it.
fn send_chunked(
    carrier: &mut Carrier,
    unchunked: &mut Vec<u8>,
    wire: &mut Connection,
    stream: Stream,
    written: &mut Vec<u8>,
    most: usize,
) -> Sent {
    if unchunked.is_empty() && !carrier.is_done() {
        let Ok(used) = carrier.take(written, unchunked) else { return Sent::Broken };
        written.drain(..used);
    }
    let room = wire.sendable(stream);
    let count = unchunked.len().min(room).min(most);
    let is_last = carrier.is_done() && count == unchunked.len();
    if count > 0 || is_last {
        if wire.data(stream, &unchunked[..count], is_last).is_err() {
            return Sent::Broken;
        }
        unchunked.drain(..count);
    }
    match (is_last, unchunked.is_empty()) {
        (true, _) => Sent::Complete,
        // What is left of what was written is the start of a chunk's head.
        (false, true) => Sent::All,
        (false, false) if count == room => Sent::Stalled,
        (false, false) => Sent::Some,
    }
}
