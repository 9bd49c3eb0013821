//! How is a recording sent at its pace?
//!
//! Each part has an absolute due instant: when the request came, plus the part's own offset. Errors do not add up, and who
//! joins while the recording is under way gets every part as late after its own request as the first one did. The one
//! who caused the fetch is sent it by the same rule: then everything is due when it comes.

use std::io::{self, IoSlice};
use std::rc::Rc;

use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, LAST_CHUNK, chunk_head};
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, Version};
use assay_plane::clock::monotonic_ns;
use assay_plane::fields;
use assay_plane::wire::{self, Chunk};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::collector::answer::Answer;
use crate::collector::ask::Ask;
use crate::collector::recording::{Reader, Recording};
use crate::collector::shared::{CLIENT_WRITE, Shared};
use crate::collector::timeline::{Due, End};
use crate::number;

/// How the end of an answer is told to this client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// There is no body, but one of this length would be.
    Described(u64),
    /// So many bytes.
    Length(u64),
    /// Chunked coding.
    Chunked,
    /// The connection ends with it.
    UntilClose,
}

/// A connection of a proxy, or of the Multiplier.
pub struct Client {
    /// What all share.
    pub shared: Rc<Shared>,
    /// The connection.
    pub stream: TcpStream,
    /// Where it came in.
    pub door: u16,
    /// Another request may follow.
    pub persists: bool,
    /// The number of the client's request, where the answer is another one than that got, which is gone.
    pub lost: Option<u64>,
    version: Version,
    bell: Rc<Notify>,
    batch: Vec<Chunk>,
    text: Vec<u8>,
}

impl Client {
    /// A new connection.
    pub fn new(shared: Rc<Shared>, stream: TcpStream, door: u16) -> Self {
        Self {
            shared,
            stream,
            door,
            persists: true,
            lost: None,
            version: Version::Http11,
            bell: Rc::default(),
            batch: Vec::new(),
            text: Vec::new(),
        }
    }

    /// The next request is this one.
    pub fn turn_to(&mut self, head: &RequestHead<'_>) {
        self.version = head.facts.version;
        self.persists = head.persists();
        self.lost = None;
    }

    /// Sends a recording as if it had been asked for at `base_ns`.
    pub async fn play(
        &mut self,
        ask: &Ask<'_>,
        recording: &Recording,
        reader: Reader,
        base_ns: u64,
    ) -> io::Result<()> {
        let Some(answer) = recording.answer() else { return Ok(()) };
        let head_ns = base_ns.saturating_add(recording.steps().head_ns);
        if self.shared.replays {
            self.shared.sleep_until(head_ns, &self.bell).await;
        }
        let age_s = answer.age_s(self.shared.now_ms());
        self.text.clear();
        let is_not_modified = answer.is_not_modified_for(&ask.conditions);
        if is_not_modified || answer.status == 304 {
            self.shared.count_door(self.door, |c| c.validations += 1);
        }
        if is_not_modified && answer.status != 304 {
            answer.write_not_modified(&mut self.text);
            self.write_tail(age_s, Framing::None);
            return self.write_text().await;
        }
        let framing = self.framing(&answer, ask.head.method);
        self.text.extend_from_slice(answer.head());
        self.write_tail(age_s, framing);
        if matches!(framing, Framing::None | Framing::Described(_)) {
            return self.write_text().await;
        }
        self.play_body(&reader, base_ns, framing).await
    }

    /// Sends what is in `text`, and then the body.
    async fn play_body(&mut self, reader: &Reader, base_ns: u64, framing: Framing) -> io::Result<()> {
        loop {
            let now_ns = monotonic_ns();
            let offset_ns = if self.shared.replays { now_ns.saturating_sub(base_ns) } else { u64::MAX };
            self.batch.clear();
            match reader.take(offset_ns, &mut self.batch) {
                Due::Parts { first_ns, end } => {
                    if self.shared.replays {
                        let late_us = now_ns.saturating_sub(base_ns.saturating_add(first_ns)) / 1_000;
                        self.shared.count_door(self.door, |c| c.late_max_us = c.late_max_us.max(late_us));
                    }
                    self.write(framing, end == Some(End::Complete)).await?;
                    match end {
                        Some(End::Complete) => return Ok(()),
                        Some(End::Broken) => return Err(self.break_off(framing)),
                        None => {}
                    }
                }
                Due::End { end, .. } => {
                    self.write(framing, end == End::Complete).await?;
                    return match end {
                        End::Complete => Ok(()),
                        End::Broken => Err(self.break_off(framing)),
                    };
                }
                Due::At(at_ns) => {
                    self.write_text().await?;
                    self.shared.sleep_until(base_ns.saturating_add(at_ns), &self.bell).await;
                }
                Due::Unknown => {
                    self.write_text().await?;
                    reader.grown().await;
                }
            }
        }
    }

    /// Sends a message of the Collector's own.
    pub async fn send_error(&mut self, status: u16, text: &str, is_head: bool) -> io::Result<()> {
        let answer = Answer::failed(status, self.shared.now_ms(), text.len() as u64 + 1);
        self.text.clear();
        self.text.extend_from_slice(answer.head());
        self.write_tail(None, Framing::Length(text.len() as u64 + 1));
        if !is_head {
            self.text.extend_from_slice(text.as_bytes());
            self.text.push(b'\n');
        }
        self.write_text().await
    }

    /// Tells a client that waits for it to send its body.
    pub async fn send_continue(&mut self) -> io::Result<()> {
        let mut slices = [IoSlice::new(b"HTTP/1.1 100 Continue\r\n\r\n")];
        wire::write_all(&mut self.stream, &mut slices, CLIENT_WRITE).await
    }

    fn framing(&mut self, answer: &Answer, method: &str) -> Framing {
        match (answer.framing, answer.length) {
            (BodyFraming::None, Some(bytes)) if method == "HEAD" => Framing::Described(bytes),
            (BodyFraming::None, _) => Framing::None,
            (BodyFraming::Length(bytes), _) => Framing::Length(bytes),
            (BodyFraming::Chunked | BodyFraming::UntilClose, _) => match self.version {
                Version::Http11 => Framing::Chunked,
                Version::Http10 => {
                    self.persists = false;
                    Framing::UntilClose
                }
            },
        }
    }

    /// The fields of this connection, and the empty line that ends the head.
    fn write_tail(&mut self, age_s: Option<u64>, framing: Framing) {
        if let Some(seconds) = age_s {
            fields::append_number(&mut self.text, "Age", seconds);
        }
        if let Some(number) = self.lost {
            fields::append_number(&mut self.text, number::LOST, number);
        }
        match framing {
            Framing::Length(bytes) | Framing::Described(bytes) => {
                fields::append_number(&mut self.text, "Content-Length", bytes);
            }
            Framing::Chunked => self.text.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Framing::None | Framing::UntilClose => {}
        }
        match (self.persists, self.version) {
            (false, _) => self.text.extend_from_slice(b"Connection: close\r\n"),
            (true, Version::Http10) => self.text.extend_from_slice(b"Connection: keep-alive\r\n"),
            (true, Version::Http11) => {}
        }
        self.text.extend_from_slice(b"\r\n");
    }

    /// Sends what is in `text`, and empties it.
    async fn write_text(&mut self) -> io::Result<()> {
        wire::write_all(&mut self.stream, &mut [IoSlice::new(&self.text)], CLIENT_WRITE).await?;
        self.text.clear();
        Ok(())
    }

    /// Sends what is in `text` and in `batch`, and the end of the coding.
    async fn write(&mut self, framing: Framing, is_last: bool) -> io::Result<()> {
        let bytes: usize = self.batch.iter().map(|part| part.len()).sum();
        let mut room = [0; CHUNK_HEAD_BYTES];
        let mut slices = Vec::with_capacity(self.batch.len() + 4);
        slices.push(IoSlice::new(&self.text));
        let is_chunked = framing == Framing::Chunked;
        if is_chunked && bytes > 0 {
            slices.push(IoSlice::new(chunk_head(bytes as u64, &mut room)));
        }
        slices.extend(self.batch.iter().map(|part| IoSlice::new(part)));
        if is_chunked && bytes > 0 {
            slices.push(IoSlice::new(CHUNK_END));
        }
        if is_chunked && is_last {
            slices.push(IoSlice::new(LAST_CHUNK));
        }
        wire::write_all(&mut self.stream, &mut slices, CLIENT_WRITE).await?;
        self.text.clear();
        self.shared.count_door(self.door, |c| c.bytes_out += bytes as u64);
        Ok(())
    }

    /// The body broke off after its head was sent: the client must see that, so the connection is lost for it.
    fn break_off(&self, framing: Framing) -> io::Error {
        if framing == Framing::UntilClose {
            // An orderly end would look like the end of the body: reset instead. Nothing more can be done if that fails.
            let _ = self.stream.set_zero_linger();
        }
        io::Error::new(io::ErrorKind::UnexpectedEof, "the origin's answer broke off")
    }
}
