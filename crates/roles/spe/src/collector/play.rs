//! Recordings, sent at their pace.
//!
//! Each part has an absolute due instant: when the request came, plus the part's own offset. Errors do not add up, and a request
//! that joins while the recording is under way gets every part as late after its own request as the first one did. The request that
//! caused the fetch is served by the same rule: then everything is due when it comes.

use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use assay_base::clock::monotonic_ns;
use assay_http::framing::BodyFraming;
use assay_net::body::Chunk;
use assay_net::exchange::{ClientLimits, Exchange, Framing};
use assay_net::fields;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::collector::client_request::ClientRequest;
use crate::collector::log::Sent;
use crate::collector::recording::{Early, Outcome, Reader, Recording};
use crate::collector::response::Response;
use crate::collector::shared::{CLIENT_READ, CLIENT_WRITE, Place, Shared, place_of};
use crate::collector::timeline::{Due, End};
use crate::number;

/// A connection of a proxy, or of the Multiplier.
pub struct Client {
    pub shared: Rc<Shared>,
    pub exchange: Exchange,
    /// Where it came in.
    pub listener: u16,
    /// The number of the client's request, where the response is another one than that got, which is gone.
    pub lost: Option<u64>,
    /// It is to become a tunnel to this place.
    pub tunnel: Option<Place>,
    /// The key of the last request; kept for its memory.
    pub key: Vec<u8>,
    /// What was sent in response to it, for the log.
    pub sent: Sent,
    pub came_ns: u64,
    /// Who is at the other end.
    pub peer: IpAddr,
    /// Interim responses that were sent in response to it.
    pub early: usize,
    bell: Rc<Notify>,
    batch: Vec<Chunk>,
    text: Vec<u8>,
}

impl Client {
    pub fn new(shared: Rc<Shared>, stream: TcpStream, listener: u16) -> Self {
        let limits = ClientLimits::new(CLIENT_READ, CLIENT_WRITE);
        let exchange = Exchange::new(stream, &shared.resources, limits);
        // Should others need its place, it is that of this listener.
        exchange.connection.deadline.keep(place_of(listener));
        let peer =
            exchange.connection.stream.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |address| address.ip());
        Self {
            exchange,
            shared,
            listener,
            lost: None,
            tunnel: None,
            key: Vec::new(),
            sent: Sent::default(),
            came_ns: 0,
            peer,
            early: 0,
            bell: Rc::default(),
            batch: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Sends a recording as if it had been requested at `base_ns`.
    pub async fn play(
        &mut self,
        client_request: &ClientRequest<'_>,
        recording: &Recording,
        reader: Reader,
        base_ns: u64,
    ) -> io::Result<()> {
        let Some(response) = recording.response() else { return Ok(()) };
        self.play_early(recording, base_ns).await?;
        let head_ns = base_ns.saturating_add(recording.steps().head_ns);
        if self.shared.replays {
            self.shared.sleep_until(head_ns, &self.bell).await;
        }
        let age_s = response.age_s(self.shared.now_ms());
        self.text.clear();
        let is_not_modified = response.is_not_modified_for(&client_request.conditions);
        if is_not_modified || response.status == 304 {
            self.shared.count_listener(self.listener, |c| c.validations += 1);
        }
        if is_not_modified && response.status != 304 {
            self.note(304, &response);
            response.write_not_modified(&mut self.text);
            self.write_tail(age_s, response.named(), Framing::None);
            return self.write_text().await;
        }
        self.note(if is_not_modified { 304 } else { response.status }, &response);
        let framing = self.framing(&response, client_request.head.method);
        self.text.extend_from_slice(response.head());
        self.write_tail(age_s, response.named(), framing);
        if matches!(framing, Framing::None | Framing::Described(_)) {
            return self.write_text().await;
        }
        self.play_body(&reader, base_ns, framing).await
    }

    /// Waits for what comes of a fetch that this client's request has caused, and sends the interim responses before it meanwhile.
    pub async fn outcome_of(&mut self, recording: &Recording) -> io::Result<Outcome> {
        loop {
            match recording.settled_after(self.early).await {
                Ok(early) => self.send_early(&early).await?,
                Err(outcome) => return Ok(outcome),
            }
        }
    }

    /// Sends the interim responses that were not sent yet, each as long after the request as it came.
    async fn play_early(&mut self, recording: &Recording, base_ns: u64) -> io::Result<()> {
        while let Some(early) = recording.early(self.early) {
            if self.shared.replays {
                self.shared.sleep_until(base_ns.saturating_add(early.at_ns), &self.bell).await;
            }
            self.send_early(&early).await?;
        }
        Ok(())
    }

    async fn send_early(&mut self, early: &Early) -> io::Result<()> {
        self.early += 1;
        if self.exchange.takes_interim() { self.exchange.write(&[&early.head]).await } else { Ok(()) }
    }

    /// Keeps for the log what is sent.
    fn note(&mut self, status: u16, response: &Response) {
        self.sent.status = status;
        if self.shared.log.borrow().is_some() {
            let content_type = response.content_type().unwrap_or_default();
            self.sent.content_type = String::from_utf8_lossy(content_type).into_owned();
        }
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
                        self.shared
                            .count_listener(self.listener, |c| c.late_max_us = c.late_max_us.max(late_us));
                    }
                    self.write(framing, end == Some(End::Complete)).await?;
                    match end {
                        Some(End::Complete) => return Ok(()),
                        Some(End::Broken) => return Err(self.exchange.break_off(framing)),
                        None => {}
                    }
                }
                Due::End { end, .. } => {
                    self.write(framing, end == End::Complete).await?;
                    return match end {
                        End::Complete => Ok(()),
                        End::Broken => Err(self.exchange.break_off(framing)),
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
        let response = Response::failed(status, self.shared.now_ms(), text.len() as u64 + 1);
        self.note(status, &response);
        self.sent.body_bytes = if is_head { 0 } else { text.len() as u64 + 1 };
        self.text.clear();
        self.text.extend_from_slice(response.head());
        self.write_tail(None, b"", Framing::Length(text.len() as u64 + 1));
        if !is_head {
            self.text.extend_from_slice(text.as_bytes());
            self.text.push(b'\n');
        }
        self.write_text().await
    }

    fn framing(&mut self, response: &Response, method: &str) -> Framing {
        match (response.framing, response.length) {
            // A recording of what failed has a text, which a HEAD does not get.
            (BodyFraming::None | BodyFraming::Length(_), Some(bytes)) if method == "HEAD" => {
                Framing::Described(bytes)
            }
            (framing, _) => self.exchange.framing_of(response.status, framing),
        }
    }

    /// The fields of this connection, which names those that its origin did, and the empty line that ends the head.
    fn write_tail(&mut self, age_s: Option<u64>, named: &[u8], framing: Framing) {
        if let Some(seconds) = age_s {
            fields::append_number(&mut self.text, "Age", seconds);
        }
        if let Some(number) = self.lost {
            let mark = number::lost(number, &self.shared.lost_key);
            fields::append(&mut self.text, number::LOST.as_bytes(), mark.as_bytes());
        }
        self.exchange.append_framing_with(&mut self.text, named, framing);
    }

    /// Sends what is in `text`, and empties it.
    async fn write_text(&mut self) -> io::Result<()> {
        self.exchange.write(&[&self.text]).await?;
        self.text.clear();
        Ok(())
    }

    /// Sends what is in `text` and in `batch`, and the end of the coding.
    async fn write(&mut self, framing: Framing, is_last: bool) -> io::Result<()> {
        let bytes: usize = self.batch.iter().map(|part| part.len()).sum();
        self.exchange.write_body(&[&self.text], &self.batch, framing, is_last).await?;
        self.text.clear();
        self.sent.body_bytes += bytes as u64;
        self.shared.count_listener(self.listener, |c| c.bytes_out += bytes as u64);
        Ok(())
    }
}
