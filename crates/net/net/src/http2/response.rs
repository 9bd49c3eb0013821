//! Between the two versions: messages that come, as HTTP/1.1 writes them, and messages that HTTP/1.1 has written.

use assay_http::head::{RequestHead, ResponseHead};
use assay_http2::{Connection, Head, NotOpened, RequestHead as WireHead, Stream};

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

/// Appends the head of a final response. Its body comes in chunks unless it has none or its length is told: whether it does.
pub(super) fn append_response(out: &mut Vec<u8>, head: Head<'_>, is_head: bool, ends: bool) -> bool {
    append_status(out, head);
    let has_body = !is_head && !matches!(head.status(), 204 | 304);
    let is_untold = has_body && head.content_length().is_none();
    if is_untold {
        let told: &[u8] = if ends { b"content-length: 0\r\n" } else { b"transfer-encoding: chunked\r\n" };
        out.extend_from_slice(told);
    }
    // The next request has a stream of its own.
    out.extend_from_slice(b"connection: close\r\n\r\n");
    is_untold && !ends
}

/// Appends the head of an interim response.
pub(super) fn append_interim(out: &mut Vec<u8>, head: Head<'_>) {
    append_status(out, head);
    out.extend_from_slice(b"\r\n");
}

fn append_status(out: &mut Vec<u8>, head: Head<'_>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    assay_http::field::write_decimal(out, u64::from(head.status()));
    out.extend_from_slice(b" \r\n");
    out.extend_from_slice(head.lines());
}

/// A message on its way.
pub(super) struct Outgoing {
    kind: Kind,
    stage: Stage,
    /// What was taken out of chunks and could not be sent yet.
    unchunked: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Response { is_head: bool },
    Request { scheme: &'static str },
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
    /// What was written is no message, or it broke off.
    Broken,
    /// As many streams are open as the server allows.
    NoStream,
    /// No stream is opened on this connection any more.
    Closing,
}

impl Outgoing {
    /// A response to a request, which may be HEAD.
    pub(super) fn response(is_head: bool) -> Self {
        Self { kind: Kind::Response { is_head }, stage: Stage::Head, unchunked: Vec::new() }
    }

    pub(super) fn request(scheme: &'static str) -> Self {
        Self { kind: Kind::Request { scheme }, stage: Stage::Head, unchunked: Vec::new() }
    }

    /// Its final head was sent.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Head)
    }

    /// All of it was sent.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.stage, Stage::Complete)
    }

    /// What it has taken out of what was written and could not send yet, in bytes.
    pub(super) fn kept_bytes(&self) -> usize {
        self.unchunked.len()
    }

    /// Sends of what was `written` what can be sent, but no more than about `most` bytes of a body; `is_over`: nothing more will be
    /// written.
    pub(super) fn send(
        &mut self,
        wire: &mut Connection,
        stream: &mut Option<Stream>,
        written: &mut Vec<u8>,
        is_over: bool,
        most: usize,
    ) -> Sent {
        loop {
            match (&mut self.stage, *stream) {
                (Stage::Complete, _) => return Sent::Complete,
                (Stage::Head, _) => match self.send_head(wire, stream, written) {
                    Ok(true) => {}
                    Ok(false) if is_over => return Sent::Broken,
                    Ok(false) => return Sent::All,
                    Err(unsent) => return unsent,
                },
                (Stage::Body(_), None) => return Sent::Broken,
                (Stage::Body(carrier), Some(stream)) => {
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
        stream: &mut Option<Stream>,
        written: &mut Vec<u8>,
    ) -> Result<bool, Sent> {
        let (length, carrier) = match (self.kind, *stream) {
            (Kind::Request { scheme }, _) => {
                let parsed = RequestHead::parse(written).map_err(|_| Sent::Broken)?;
                let Some((head, length)) = parsed else { return Ok(false) };
                let (opened, carrier) = request(wire, scheme, &head).map_err(|error| match error {
                    NotOpened::Limit => Sent::NoStream,
                    NotOpened::Closing => Sent::Closing,
                })?;
                *stream = Some(opened);
                (length, Some(carrier))
            }
            (Kind::Response { is_head }, Some(stream)) => {
                let sent = respond(wire, stream, is_head, written).map_err(|()| Sent::Broken)?;
                let Some((length, carrier)) = sent else { return Ok(false) };
                (length, carrier)
            }
            (Kind::Response { .. }, None) => return Err(Sent::Broken),
        };
        if let Some(carrier) = carrier {
            self.stage = if carrier.is_done() { Stage::Complete } else { Stage::Body(carrier) };
        }
        written.drain(..length);
        Ok(true)
    }
}

/// Opens a stream with a request: it, and what carries its body.
fn request(
    wire: &mut Connection,
    scheme: &str,
    head: &RequestHead<'_>,
) -> Result<(Stream, Carrier), NotOpened> {
    let carrier = Carrier::new(head.body(), false);
    let wire_head = WireHead {
        method: head.method.as_bytes(),
        scheme: scheme.as_bytes(),
        authority: head.host.unwrap_or_default(),
        path: head.target.as_bytes(),
    };
    let fields = head.headers().filter(|field| !field.is("host")).map(|field| (field.name, field.value));
    let stream = wire.request(&wire_head, fields, carrier.is_done())?;
    Ok((stream, carrier))
}

/// A head that was sent: its length, and what carries the body behind it unless it is interim; none: it is not whole.
type SentHead = Option<(usize, Option<Carrier>)>;

/// Sends the head of a response.
fn respond(wire: &mut Connection, stream: Stream, is_head: bool, written: &[u8]) -> Result<SentHead, ()> {
    let Some((head, length)) = ResponseHead::parse(written).map_err(drop)? else { return Ok(None) };
    let fields = head.headers().map(|field| (field.name, field.value));
    if head.status == 101 {
        return Err(());
    }
    if head.is_interim() {
        wire.respond(stream, head.status, fields, false).map_err(drop)?;
        return Ok(Some((length, None)));
    }
    let carrier = Carrier::new(head.body(if is_head { "HEAD" } else { "GET" }), false);
    wire.respond(stream, head.status, fields, carrier.is_done()).map_err(drop)?;
    Ok(Some((length, Some(carrier))))
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
    let was_left = !unchunked.is_empty();
    if !was_left && !carrier.is_done() {
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
        // It came while the rest of what was there before was still to be sent.
        (false, true) if was_left && !written.is_empty() => Sent::Some,
        // What is left of what was written is the start of a chunk's head.
        (false, true) => Sent::All,
        (false, false) if count == room => Sent::Stalled,
        (false, false) => Sent::Some,
    }
}
