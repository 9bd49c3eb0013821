//! A connection over HTTP/2, on which requests of a case are sent one after the other.

use std::io;
use std::time::Duration;

use assay_http2::frame::{FrameHead, HEAD_BYTES, MAX_FRAME_BYTES, PREFACE, flag, kind};
use assay_http2::hpack::Decoder;
use tokio::time::{Instant, timeout_at};

use crate::case::Frame;
use crate::http2::frame::{self, Field, block, field_lines, line, payload, write};
use crate::http2::incoming::Incoming;
use crate::message::MAX_BYTES;
use crate::observe::Received;
use crate::template::{Values, with_values};
use crate::transport::{Endpoint, TargetStream};

/// Window of each stream and, with the update that follows, of the connection: no case needs more.
const WINDOW: u32 = 8 << 20;
/// Time in which the sender of a GOAWAY with an error may close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Most frames that are kept of an exchange.
const MAX_FRAMES: usize = 50_000;
/// Time in which a target must show that it speaks HTTP/2.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// SETTINGS_ENABLE_PUSH and SETTINGS_INITIAL_WINDOW_SIZE.
const SETTINGS: [(u16, u32); 2] = [(2, 0), (4, WINDOW)];

/// Request or frames of a step.
#[derive(Debug, Clone)]
pub enum Http2Content {
    /// A request: its fields, the pseudo-header fields first, and its body.
    Request {
        fields: Vec<Field>,
        /// Body; none: the header section ends the stream.
        body: Option<Vec<u8>>,
    },
    /// Frames as the case has them, so many times.
    Frames {
        frames: Vec<Frame>,
        /// Repetitions, each two streams further.
        repeat: u32,
        /// Values of placeholders.
        values: Values,
    },
}

/// Bytes with the lines that show them.
struct EncodedFrames {
    bytes: Vec<u8>,
    lines: Vec<String>,
    /// Number of streams used.
    streams: u32,
}

impl Http2Content {
    fn encode(&self, stream: u32) -> EncodedFrames {
        let mut wire = EncodedFrames { bytes: Vec::new(), lines: Vec::new(), streams: 1 };
        match self {
            Self::Request { fields, body } => {
                let ends = if body.is_some() { 0 } else { flag::END_STREAM };
                let head = wire.push(kind::HEADERS, flag::END_HEADERS | ends, stream, &block(fields), 1);
                wire.lines.push(head + &field_lines(fields));
                if let Some(body) = body {
                    let data = wire.push(kind::DATA, flag::END_STREAM, stream, body, 1);
                    wire.lines.push(data);
                }
            }
            Self::Frames { frames, repeat, values } => {
                wire.streams = *repeat;
                let payloads: Vec<Vec<u8>> = frames.iter().map(|frame| payload(frame, values)).collect();
                // A flood is shown by its first round alone.
                for (frame, payload) in frames.iter().zip(&payloads) {
                    let at = frame.stream.unwrap_or(stream);
                    let mut line = wire.push(frame.kind, frame.flags, at, payload, frame.times);
                    if frame.times > 1 {
                        line.push_str(&format!(", {} times", frame.times));
                    }
                    let fields = frame.fields().iter().map(|line| frame::field(&with_values(line, values)));
                    wire.lines.push(line + &field_lines(&fields.collect::<Vec<_>>()));
                }
                for round in 1..*repeat {
                    for (frame, payload) in frames.iter().zip(&payloads) {
                        let at = frame.stream.unwrap_or(stream + 2 * round);
                        for _ in 0..frame.times {
                            write(&mut wire.bytes, frame.kind, frame.flags, at, payload);
                        }
                    }
                }
                if *repeat > 1 {
                    wire.lines.push(format!("… {repeat} times, each time two streams further"));
                }
            }
        }
        wire
    }

    /// SETTINGS_INITIAL_WINDOW_SIZE, if one of the frames sets it.
    fn window(&self) -> Option<i64> {
        let Self::Frames { frames, values, .. } = self else { return None };
        let settings =
            frames.iter().filter(|frame| frame.kind == kind::SETTINGS && frame.flags & flag::ACK == 0);
        let payloads = settings.map(|frame| payload(frame, values));
        let of = |payload: Vec<u8>| {
            let found = payload.chunks_exact(6).find(|setting| setting[..2] == [0, 4])?;
            Some(i64::from(u32::from_be_bytes(found[2..].try_into().ok()?)))
        };
        payloads.filter_map(of).next()
    }

    /// The stream of the last HEADERS, if the case says which: the response to wait for is on it.
    fn last_stream(&self) -> Option<u32> {
        let Self::Frames { frames, .. } = self else { return None };
        frames.iter().rfind(|frame| frame.kind == kind::HEADERS)?.stream
    }

    /// True if the client itself resets the stream of its request, so that no response can be expected.
    fn resets(&self) -> bool {
        let Self::Frames { frames, .. } = self else { return false };
        frames.iter().any(|frame| frame.kind == kind::RST_STREAM && frame.stream.is_none())
    }

    /// True if something is sent over and over: the settings of the target are acknowledged before, so that its limits hold.
    pub fn is_flood(&self) -> bool {
        let Self::Frames { frames, repeat, .. } = self else { return false };
        *repeat > 1 || frames.iter().any(|frame| frame.times > 1)
    }

    /// The lines that show it, on a new connection.
    pub fn lines(&self) -> Vec<String> {
        self.encode(1).lines
    }
}

impl EncodedFrames {
    /// A frame so many times, and the line that shows one of them.
    fn push(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8], times: u32) -> String {
        for _ in 0..times {
            write(&mut self.bytes, kind, flags, stream, payload);
        }
        line(FrameHead { length: payload.len() as u32, kind, flags, stream }, payload)
    }
}

/// Stream on which a response is waited for, with the method of its request.
#[derive(Clone, Copy)]
struct RequestStream<'m> {
    id: u32,
    method: &'m str,
}

/// A connection to a target.
pub struct Connection {
    stream: TargetStream,
    decoder: Decoder,
    buf: Vec<u8>,
    next: u32,
    /// The header block that is on its way, with its stream and whether it ends it.
    block: Option<(u32, bool, Vec<u8>)>,
    /// Bytes of DATA that the peer may send on the stream of the request.
    window: i64,
    /// The settings of the peer came, and were acknowledged.
    has_settings: bool,
    /// Frames that came in the exchange.
    count: usize,
    /// The last of them with its payload, and how many times it came in a row.
    last: Option<(FrameHead, Vec<u8>, usize)>,
}

impl Connection {
    /// Connects, and sends the preface with our settings.
    pub async fn open(target: &Endpoint) -> io::Result<Self> {
        let mut stream = TargetStream::connect(target, true).await?;
        let mut out = PREFACE.to_vec();
        let settings: Vec<u8> = SETTINGS
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
            .collect();
        write(&mut out, kind::SETTINGS, 0, 0, &settings);
        write(&mut out, kind::WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes());
        stream.write_all(&out).await?;
        let decoder = Decoder::default();
        Ok(Self {
            stream,
            decoder,
            buf: Vec::new(),
            next: 1,
            block: None,
            window: i64::from(WINDOW),
            has_settings: false,
            count: 0,
            last: None,
        })
    }

    /// True if a target responds to the preface with SETTINGS, as who speaks HTTP/2 does.
    pub async fn is_spoken_by(target: &Endpoint) -> bool {
        let first = async {
            let mut connection = Self::open(target).await.ok()?;
            while connection.buf.len() < HEAD_BYTES {
                if connection.stream.read_buf(&mut connection.buf).await.ok()? == 0 {
                    return None;
                }
            }
            connection.buf.first_chunk().map(FrameHead::parse)
        };
        let head = timeout_at(Instant::now() + PROBE_TIMEOUT, first).await.ok().flatten();
        head.is_some_and(|head| head.kind == kind::SETTINGS && head.stream == 0)
    }

    /// True while nothing has ended it, as far as is known.
    pub fn is_usable(received: &Received) -> bool {
        !received.closed && received.goaway.is_none() && received.problem.is_none()
    }

    /// Sends what a step says, and waits for the response; then watches for `linger` what follows.
    pub async fn exchange(
        &mut self,
        outgoing: &Http2Content,
        method: &str,
        linger: Duration,
        deadline: Instant,
        received: &mut Received,
        now_ms: &impl Fn() -> f64,
    ) -> io::Result<()> {
        let wire = outgoing.encode(self.next);
        let own = RequestStream { id: outgoing.last_stream().unwrap_or(self.next), method };
        // Streams of clients have odd numbers.
        self.next += 2 * wire.streams;
        self.window = outgoing.window().unwrap_or(i64::from(WINDOW));
        (self.count, self.last) = (0, None);
        let mut incoming = Incoming::default();
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no response in time");
        // The limits of the target hold once its SETTINGS are acknowledged.
        while outgoing.is_flood() && !self.has_settings && !received.closed {
            let read = timeout_at(deadline, self.stream.read_buf(&mut self.buf)).await.map_err(late)?;
            received.closed = !matches!(read, Ok(1..));
            self.take_frames(own, &mut incoming, received, now_ms).await;
        }
        // A target may close before it has read everything: what it said is read even if writing fails.
        let wrote = timeout_at(deadline, self.stream.write_all(&wire.bytes)).await.map_err(late)?;
        let mut until = deadline;
        let mut lingers = false;
        loop {
            self.take_frames(own, &mut incoming, received, now_ms).await;
            let is_over = incoming.is_ended || received.reset.is_some() || outgoing.resets();
            if received.closed {
                break;
            }
            if received.goaway.is_some_and(|code| code != 0) && !is_over {
                // An error of the connection ends it; the response does not come any more.
                until = until.min(Instant::now() + CLOSE_TIMEOUT);
            }
            if is_over && !lingers {
                lingers = true;
                until = Instant::now() + linger;
            }
            match timeout_at(until, self.stream.read_buf(&mut self.buf)).await {
                Err(_) => break,
                Ok(Ok(0) | Err(_)) => received.closed = true,
                Ok(Ok(_)) if self.is_too_much(&incoming) => {
                    return Err(io::Error::other("the response is too long"));
                }
                Ok(Ok(_)) => {}
            }
        }
        self.append_repeat_count(received);
        received.interim = incoming.interim;
        received.bytes = incoming.bytes;
        received.fault = received.fault.take().or(incoming.fault);
        if let Some(mut response) = incoming.response {
            response.interim.clone_from(&received.interim);
            let is_complete = response.is_complete;
            received.response = Some(response);
            if is_complete {
                return Ok(());
            }
        }
        match (received.reset, received.ends_connection()) {
            (Some(code), _) => {
                Err(io::Error::other(format!("the stream was reset with {}", assay_http2::ErrorCode(code))))
            }
            (None, true) => {
                // Why nothing could be written any more is said by what came, if anything did.
                wrote.or_else(|error| if received.frames.is_empty() { Err(error) } else { Ok(()) })?;
                Err(io::Error::other("the connection ended without a complete response"))
            }
            // Whoever floods may never have sent a whole request.
            (None, false) if outgoing.resets() || outgoing.is_flood() => Ok(()),
            (None, false) => Err(io::Error::new(io::ErrorKind::TimedOut, "no complete response in time")),
        }
    }

    /// True if a target sends without end.
    fn is_too_much(&self, incoming: &Incoming) -> bool {
        self.buf.len() > MAX_BYTES || incoming.bytes.len() > MAX_BYTES || self.count > MAX_FRAMES
    }

    /// Takes whole frames from what was read.
    async fn take_frames(
        &mut self,
        own: RequestStream<'_>,
        incoming: &mut Incoming,
        received: &mut Received,
        now_ms: &impl Fn() -> f64,
    ) {
        let mut used = 0;
        let mut out = Vec::new();
        while let Some(head) = self.buf.get(used..).and_then(|rest| rest.first_chunk::<HEAD_BYTES>()) {
            let head = FrameHead::parse(head);
            if head.length > MAX_FRAME_BYTES || received.is_garbled {
                break;
            }
            let from = used + HEAD_BYTES;
            let Some(payload) = self.buf.get(from..from + head.length as usize).map(<[u8]>::to_vec) else {
                break;
            };
            used = from + payload.len();
            self.receive_frame(head, &payload, own, incoming, received, &mut out);
            if received.head_ms == 0.0 && incoming.response.is_some() {
                received.head_ms = now_ms();
            }
        }
        // A frame that has not come in full stays for the next read.
        self.buf.drain(..used);
        if !out.is_empty() && self.stream.write_all(&out).await.is_err() {
            received.closed = true;
        }
    }

    /// One frame; what it makes us send goes to `out`.
    fn receive_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        own: RequestStream<'_>,
        incoming: &mut Incoming,
        received: &mut Received,
        out: &mut Vec<u8>,
    ) {
        let number = |at: usize| {
            payload.get(at..at + 4).and_then(|four| Some(u32::from_be_bytes(four.try_into().ok()?)))
        };
        let is_own = head.stream == own.id;
        match head.kind {
            kind::SETTINGS if !head.has(flag::ACK) => {
                write(out, kind::SETTINGS, flag::ACK, 0, &[]);
                self.has_settings = true;
            }
            kind::PING if !head.has(flag::ACK) => write(out, kind::PING, flag::ACK, 0, payload),
            kind::RST_STREAM if is_own => received.reset = number(0),
            kind::GOAWAY => received.goaway = number(4),
            kind::PUSH_PROMISE => {
                received.fault.get_or_insert("a PUSH_PROMISE came, and push is not enabled".to_owned());
            }
            kind::DATA => {
                let data = unpadded(head, payload);
                if is_own {
                    self.window -= i64::from(head.length);
                    if self.window < 0 {
                        received.fault.get_or_insert("more DATA came than the window allows".to_owned());
                    }
                    incoming.data(data);
                }
                if head.length > 0 {
                    // The connection's window is kept open; the stream's is large enough for every case.
                    write(out, kind::WINDOW_UPDATE, 0, 0, &head.length.to_be_bytes());
                }
                if is_own && head.has(flag::END_STREAM) {
                    incoming.end(own.method);
                }
            }
            kind::HEADERS => {
                let payload = unpadded(head, payload);
                let payload =
                    if head.has(flag::PRIORITY) { payload.get(5..).unwrap_or_default() } else { payload };
                self.block = Some((head.stream, head.has(flag::END_STREAM), payload.to_vec()));
            }
            kind::CONTINUATION => {
                if let Some((_, _, block)) = &mut self.block {
                    block.extend_from_slice(payload);
                }
            }
            _ => {}
        }
        let has_block = matches!(head.kind, kind::HEADERS | kind::CONTINUATION);
        let Some(mut shown) = self.shown(head, payload, has_block, received) else { return };
        if has_block && head.has(flag::END_HEADERS) {
            let Some((stream, ends, block)) = self.block.take() else { return };
            let mut fields: Vec<Field> = Vec::new();
            let decoded =
                self.decoder.decode(&block, |field| fields.push((field.name.to_vec(), field.value.to_vec())));
            if let Err(error) = decoded {
                received.fault.get_or_insert(format!("a header block cannot be decoded: {error}"));
                received.is_garbled = true;
            }
            shown.push_str(&field_lines(&fields));
            if stream == own.id {
                incoming.fields(&fields, ends);
                if ends {
                    incoming.end(own.method);
                }
            }
        }
        received.frames.push(shown);
    }

    /// The line that shows a frame; none: it is the one before once more, as a flood is acknowledged.
    fn shown(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        has_block: bool,
        received: &mut Received,
    ) -> Option<String> {
        self.count += 1;
        if let Some((last, content, times)) = &mut self.last
            && *last == head
            && content == payload
        {
            *times += 1;
            return None;
        }
        self.append_repeat_count(received);
        // What a header block says depends on those before it.
        self.last = (!has_block).then(|| (head, payload.to_vec(), 1));
        Some(line(head, payload))
    }

    /// Says how many times the last frame came.
    fn append_repeat_count(&mut self, received: &mut Received) {
        if let Some((_, _, times @ 2..)) = self.last.take()
            && let Some(last) = received.frames.last_mut()
        {
            last.push_str(&format!(" ({times} times)"));
        }
    }
}

fn unpadded(head: FrameHead, payload: &[u8]) -> &[u8] {
    match payload.split_first() {
        Some((&padding, rest)) if head.has(flag::PADDED) => {
            &rest[..rest.len().saturating_sub(usize::from(padding))]
        }
        _ => payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Payload;

    #[test]
    fn a_flood_is_sent_whole_and_shown_in_a_line_for_each_frame_of_its_first_round() {
        let frame =
            |kind, times| Frame { kind, flags: 0, stream: None, payload: Payload::Bytes(vec![7; 4]), times };
        let values = Values { token: "t1".into(), host: "h".into(), scheme: "http", now_unix_s: 0 };
        let frames = vec![frame(kind::RST_STREAM, 1), frame(kind::CONTINUATION, 3)];
        let written = Http2Content::Frames { frames, repeat: 2000, values }.encode(5);
        assert_eq!(written.bytes.len(), 2000 * 4 * (HEAD_BYTES + 4));
        let last = written.bytes[written.bytes.len() - HEAD_BYTES - 4..].first_chunk().map(FrameHead::parse);
        assert_eq!(last.map(|head| head.stream), Some(5 + 2 * 1999));
        let lines: Vec<&str> = written.lines.iter().map(String::as_str).collect();
        let repeated = "… 2000 times, each time two streams further";
        assert_eq!(
            lines,
            ["RST_STREAM stream 5 error code 0x7070707", "CONTINUATION stream 5, 3 times", repeated]
        );
    }

    #[test]
    fn what_comes_over_and_over_is_one_line_with_its_count() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let target = Endpoint { address: listener.local_addr().unwrap(), tls: None };
            let mut connection = Connection::open(&target).await.unwrap();
            let ping = FrameHead { length: 0, kind: kind::PING, flags: flag::ACK, stream: 0 };
            let mut received = Received::default();
            for stream in [0, 0, 0, 3, 0] {
                let (mut incoming, mut out) = (Incoming::default(), Vec::new());
                let head = FrameHead { stream, ..ping };
                connection.receive_frame(
                    head,
                    &[],
                    RequestStream { id: 1, method: "GET" },
                    &mut incoming,
                    &mut received,
                    &mut out,
                );
            }
            connection.append_repeat_count(&mut received);
            assert_eq!(received.frames, ["PING ACK (3 times)", "PING stream 3 ACK", "PING ACK"]);
            assert!(frame::matches(&received.frames[0], "PING ACK"));
            assert_eq!(connection.count, 5);
        });
    }
}
