//! Translation between the versions of HTTP: received messages are written as HTTP/1.1, and messages that HTTP/1.1 has written are sent.

use assay_http::framing::BodyDecoder;
use assay_http::head::{RequestHead, ResponseHead};
use assay_http2::{Connection, Head, NotOpened, RequestHead as WireHead, Stream};

/// Appends the head of a request, and returns whether its body is in chunked coding: it has one, and its length is unknown.
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

/// Appends the head of a final response, and returns whether its body is in chunked coding: it has one, and its length is unknown.
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

/// A message that is being sent.
pub(super) struct OutgoingMessage {
    kind: MessageKind,
    stage: SendStage,
    /// Decoded content that could not be sent yet.
    unchunked: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum MessageKind {
    Response { is_head: bool },
    Request { scheme: &'static str },
}

enum SendStage {
    /// The final head has not been written.
    Head,
    Body(BodyDecoder),
    Complete,
}

/// Result of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// Everything was sent; more may be written.
    All,
    /// There is more, and the peer's window is used up.
    Stalled,
    /// There is more; it is another stream's turn.
    Some,
    /// The response is complete.
    Complete,
    /// The bytes are no message, or it was cut off.
    Broken,
    /// As many streams are open as the server allows.
    NoStream,
    /// No stream is opened on this connection any more.
    Closing,
}

impl OutgoingMessage {
    /// A response to a request, which may be HEAD.
    pub(super) fn response(is_head: bool) -> Self {
        Self { kind: MessageKind::Response { is_head }, stage: SendStage::Head, unchunked: Vec::new() }
    }

    pub(super) fn request(scheme: &'static str) -> Self {
        Self { kind: MessageKind::Request { scheme }, stage: SendStage::Head, unchunked: Vec::new() }
    }

    /// Whether the final head was sent.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.stage, SendStage::Head)
    }

    /// Whether all was sent.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.stage, SendStage::Complete)
    }

    /// Bytes of decoded content that could not be sent yet.
    pub(super) fn kept_bytes(&self) -> usize {
        self.unchunked.len()
    }

    /// Sends what it can of `written`, but no more than about `most` bytes of a body; `is_over`: nothing more will be written.
    pub(super) fn send(
        &mut self,
        wire: &mut Connection,
        stream: &mut Option<Stream>,
        written: &mut Vec<u8>,
        is_over: bool,
        most: usize,
    ) -> SendOutcome {
        loop {
            match (&mut self.stage, *stream) {
                (SendStage::Complete, _) => return SendOutcome::Complete,
                (SendStage::Head, _) => match self.send_head(wire, stream, written) {
                    Ok(true) => {}
                    Ok(false) if is_over => return SendOutcome::Broken,
                    Ok(false) => return SendOutcome::All,
                    Err(unsent) => return unsent,
                },
                (SendStage::Body(_), None) => return SendOutcome::Broken,
                (SendStage::Body(body), Some(stream)) => {
                    let sent = if body.plain_left().is_some() {
                        send_plain(body, wire, stream, written, most)
                    } else {
                        send_chunked(body, &mut self.unchunked, wire, stream, written, most)
                    };
                    match sent {
                        SendOutcome::All if is_over && body.end() => {
                            // The end of the connection was the end of the body.
                            let ended = wire.data(stream, &[], true);
                            self.stage = SendStage::Complete;
                            return if ended.is_ok() { SendOutcome::Complete } else { SendOutcome::Broken };
                        }
                        SendOutcome::All if is_over => return SendOutcome::Broken,
                        SendOutcome::Complete => self.stage = SendStage::Complete,
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
    ) -> Result<bool, SendOutcome> {
        let (length, body) = match (self.kind, *stream) {
            (MessageKind::Request { scheme }, _) => {
                let parsed = RequestHead::parse(written).map_err(|_| SendOutcome::Broken)?;
                let Some((head, length)) = parsed else { return Ok(false) };
                let (opened, body) = request(wire, scheme, &head).map_err(|error| match error {
                    NotOpened::Limit => SendOutcome::NoStream,
                    NotOpened::Closing => SendOutcome::Closing,
                })?;
                *stream = Some(opened);
                (length, Some(body))
            }
            (MessageKind::Response { is_head }, Some(stream)) => {
                let sent = respond(wire, stream, is_head, written).map_err(|()| SendOutcome::Broken)?;
                let Some((length, body)) = sent else { return Ok(false) };
                (length, body)
            }
            (MessageKind::Response { .. }, None) => return Err(SendOutcome::Broken),
        };
        if let Some(body) = body {
            self.stage = if body.is_done() { SendStage::Complete } else { SendStage::Body(body) };
        }
        written.drain(..length);
        Ok(true)
    }
}

/// Opens a stream with a request, and returns it with the decoder of the body.
fn request(
    wire: &mut Connection,
    scheme: &str,
    head: &RequestHead<'_>,
) -> Result<(Stream, BodyDecoder), NotOpened> {
    let body = BodyDecoder::new(head.body());
    let wire_head = WireHead {
        method: head.method.as_bytes(),
        scheme: scheme.as_bytes(),
        authority: head.host.unwrap_or_default(),
        path: head.target.as_bytes(),
    };
    let fields = head.headers().filter(|field| !field.is("host")).map(|field| (field.name, field.value));
    let stream = wire.request(&wire_head, fields, body.is_done())?;
    Ok((stream, body))
}

/// Length of a head that was sent, and the decoder of the body behind it unless it is interim; none: the head is not whole.
type SentHead = Option<(usize, Option<BodyDecoder>)>;

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
    let body = BodyDecoder::new(head.body(if is_head { "HEAD" } else { "GET" }));
    wire.respond(stream, head.status, fields, body.is_done()).map_err(drop)?;
    Ok(Some((length, Some(body))))
}

/// Sends a body as it was written.
fn send_plain(
    body: &mut BodyDecoder,
    wire: &mut Connection,
    stream: Stream,
    written: &mut Vec<u8>,
    most: usize,
) -> SendOutcome {
    let room = wire.sendable(stream);
    let count = body.take_plain(written.len().min(room).min(most));
    if count > 0 {
        if wire.data(stream, &written[..count], body.is_done()).is_err() {
            return SendOutcome::Broken;
        }
        written.drain(..count);
    }
    match (body.is_done(), written.is_empty()) {
        (true, _) => SendOutcome::Complete,
        (false, true) => SendOutcome::All,
        (false, false) if count == room => SendOutcome::Stalled,
        (false, false) => SendOutcome::Some,
    }
}

/// Takes a body out of its chunks and sends it.
fn send_chunked(
    body: &mut BodyDecoder,
    unchunked: &mut Vec<u8>,
    wire: &mut Connection,
    stream: Stream,
    written: &mut Vec<u8>,
    most: usize,
) -> SendOutcome {
    let was_left = !unchunked.is_empty();
    if !was_left && !body.is_done() {
        let Ok(used) = body.decode_into(written, unchunked) else { return SendOutcome::Broken };
        written.drain(..used);
    }
    let room = wire.sendable(stream);
    let count = unchunked.len().min(room).min(most);
    let is_last = body.is_done() && count == unchunked.len();
    if count > 0 || is_last {
        if wire.data(stream, &unchunked[..count], is_last).is_err() {
            return SendOutcome::Broken;
        }
        unchunked.drain(..count);
    }
    match (is_last, unchunked.is_empty()) {
        (true, _) => SendOutcome::Complete,
        // It came while the rest of what was there before was still to be sent.
        (false, true) if was_left && !written.is_empty() => SendOutcome::Some,
        // What is left of what was written is the start of a chunk's head.
        (false, true) => SendOutcome::All,
        (false, false) if count == room => SendOutcome::Stalled,
        (false, false) => SendOutcome::Some,
    }
}
