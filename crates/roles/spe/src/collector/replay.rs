//! Replay of recordings at their recorded pace.
//!
//! Each part has an absolute due instant: the time of the request plus the part's offset. So errors do not add up, and a request
//! that joins a recording under way gets every part as late after its own request as the first one did. The request that caused
//! the fetch is served by the same rule: then everything is due on arrival.

use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use assay_base::clock::monotonic_ns;
use assay_http::framing::BodyFraming;
use assay_net::body::Chunk;
use assay_net::exchange::{ClientLimits, Exchange};
use assay_net::fields;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::collector::client_request::CollectorRequest;
use crate::collector::log::SentResponse;
use crate::collector::recording::{RecordedInterim, Recording, RecordingOutcome, RecordingReader};
use crate::collector::response::RecordedResponse;
use crate::collector::shared::{CLIENT_READ, CLIENT_WRITE, CollectorShared, FetchAddress, slot_key};
use crate::collector::timeline::{BodyEnd, DueParts};
use crate::number;

/// A connection of a proxy, or of the Multiplier.
pub struct CollectorClient {
    pub shared: Rc<CollectorShared>,
    pub exchange: Exchange,
    pub listener: u16,
    /// Number of the client's request, if its response is lost and another one is sent.
    pub lost: Option<u64>,
    /// Address of the tunnel that the connection becomes.
    pub tunnel: Option<FetchAddress>,
    /// Key of the last request; kept for its allocation.
    pub key: Vec<u8>,
    /// For the log.
    pub sent: SentResponse,
    pub arrived_ns: u64,
    pub peer: IpAddr,
    /// Interim responses sent so far.
    pub interim: usize,
    wakeup: Rc<Notify>,
    batch: Vec<Chunk>,
    text: Vec<u8>,
}

impl CollectorClient {
    pub fn new(shared: Rc<CollectorShared>, stream: TcpStream, listener: u16) -> Self {
        let limits = ClientLimits::new(CLIENT_READ, CLIENT_WRITE);
        let exchange = Exchange::new(stream, &shared.resources, limits);
        // Connections are dismissed by listener when room is needed.
        exchange.connection.deadline.hold_slot(slot_key(listener));
        let peer =
            exchange.connection.stream.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |address| address.ip());
        Self {
            exchange,
            shared,
            listener,
            lost: None,
            tunnel: None,
            key: Vec::new(),
            sent: SentResponse::default(),
            arrived_ns: 0,
            peer,
            interim: 0,
            wakeup: Rc::default(),
            batch: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Sends a recording as if it had been requested at `base_ns`.
    pub async fn replay(
        &mut self,
        client_request: &CollectorRequest<'_>,
        recording: &Recording,
        reader: RecordingReader,
        base_ns: u64,
    ) -> io::Result<()> {
        let Some(response) = recording.response() else { return Ok(()) };
        self.replay_interim(recording, base_ns).await?;
        let head_ns = base_ns.saturating_add(recording.timings().head_ns);
        if self.shared.replays {
            self.shared.sleep_until(head_ns, &self.wakeup).await;
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
            self.write_tail(age_s, response.named(), BodyFraming::None);
            return self.write_text().await;
        }
        self.note(if is_not_modified { 304 } else { response.status }, &response);
        self.text.extend_from_slice(response.head());
        if client_request.head.method == "HEAD" {
            // The recording of a failure has a text, which a HEAD does not get.
            if let Some(bytes) = response.length {
                fields::append_number(&mut self.text, "Content-Length", bytes);
            }
            self.write_tail(age_s, response.named(), BodyFraming::None);
            return self.write_text().await;
        }
        let framing = self.exchange.framing_for(response.status, response.framing);
        self.write_tail(age_s, response.named(), framing);
        if framing == BodyFraming::None {
            return self.write_text().await;
        }
        self.replay_body(&reader, base_ns, framing).await
    }

    /// Waits for the outcome of the fetch that this request has caused, and sends interim responses meanwhile.
    pub async fn outcome_of(&mut self, recording: &Recording) -> io::Result<RecordingOutcome> {
        loop {
            match recording.settled_after(self.interim).await {
                Ok(interim) => self.send_interim(&interim).await?,
                Err(outcome) => return Ok(outcome),
            }
        }
    }

    /// Sends the remaining interim responses, each at its recorded offset.
    async fn replay_interim(&mut self, recording: &Recording, base_ns: u64) -> io::Result<()> {
        while let Some(interim) = recording.interim(self.interim) {
            if self.shared.replays {
                self.shared.sleep_until(base_ns.saturating_add(interim.at_ns), &self.wakeup).await;
            }
            self.send_interim(&interim).await?;
        }
        Ok(())
    }

    async fn send_interim(&mut self, interim: &RecordedInterim) -> io::Result<()> {
        self.interim += 1;
        if self.exchange.accepts_interim() { self.exchange.write(&[&interim.head]).await } else { Ok(()) }
    }

    /// Records the response for the log.
    fn note(&mut self, status: u16, response: &RecordedResponse) {
        self.sent.status = Some(status);
        if self.shared.log.borrow().is_some() {
            let content_type = response.content_type().unwrap_or_default();
            self.sent.content_type = String::from_utf8_lossy(content_type).into_owned();
        }
    }

    /// Sends `text`, and then the body.
    async fn replay_body(
        &mut self,
        reader: &RecordingReader,
        base_ns: u64,
        framing: BodyFraming,
    ) -> io::Result<()> {
        loop {
            let now_ns = monotonic_ns();
            let offset_ns = if self.shared.replays { now_ns.saturating_sub(base_ns) } else { u64::MAX };
            match reader.take(offset_ns, &mut self.batch) {
                DueParts::Parts { first_ns, end } => {
                    if self.shared.replays {
                        let late_us = now_ns.saturating_sub(base_ns.saturating_add(first_ns)) / 1_000;
                        self.shared
                            .count_listener(self.listener, |c| c.late_max_us = c.late_max_us.max(late_us));
                    }
                    self.write(framing, end == Some(BodyEnd::Complete)).await?;
                    match end {
                        Some(BodyEnd::Complete) => return Ok(()),
                        Some(BodyEnd::Broken) => return Err(self.exchange.abort(framing)),
                        None => {}
                    }
                }
                DueParts::End { end, .. } => {
                    self.write(framing, end == BodyEnd::Complete).await?;
                    return match end {
                        BodyEnd::Complete => Ok(()),
                        BodyEnd::Broken => Err(self.exchange.abort(framing)),
                    };
                }
                DueParts::At(at_ns) => {
                    self.write_text().await?;
                    self.shared.sleep_until(base_ns.saturating_add(at_ns), &self.wakeup).await;
                }
                DueParts::Unknown => {
                    self.write_text().await?;
                    reader.grown().await;
                }
            }
        }
    }

    /// Sends a message of the Collector's own.
    pub async fn send_error(&mut self, status: u16, text: &str, is_head: bool) -> io::Result<()> {
        let response = RecordedResponse::failed(status, self.shared.now_ms(), text.len() as u64 + 1);
        self.note(status, &response);
        self.sent.body_bytes = if is_head { 0 } else { text.len() as u64 + 1 };
        self.text.clear();
        self.text.extend_from_slice(response.head());
        self.write_tail(None, b"", BodyFraming::Length(text.len() as u64 + 1));
        if !is_head {
            self.text.extend_from_slice(text.as_bytes());
            self.text.push(b'\n');
        }
        self.write_text().await
    }

    /// Appends `Age`, the mark of a lost response, and the hop-by-hop fields with those names that the origin listed in
    /// `Connection`.
    fn write_tail(&mut self, age_s: Option<u64>, named: &[u8], framing: BodyFraming) {
        if let Some(seconds) = age_s {
            fields::append_number(&mut self.text, "Age", seconds);
        }
        if let Some(number) = self.lost {
            let mark = number::lost(number, &self.shared.lost_key);
            fields::append(&mut self.text, number::LOST.as_bytes(), mark.as_bytes());
        }
        self.exchange.append_framing_with(&mut self.text, named, framing);
    }

    /// Sends and clears `text`.
    async fn write_text(&mut self) -> io::Result<()> {
        self.exchange.write(&[&self.text]).await?;
        self.text.clear();
        Ok(())
    }

    /// Sends and clears `text` and `batch`, and ends the chunked coding if `is_last`.
    async fn write(&mut self, framing: BodyFraming, is_last: bool) -> io::Result<()> {
        let bytes: usize = self.batch.iter().map(|part| part.len()).sum();
        self.exchange.write_body(&[&self.text], &self.batch, framing, is_last).await?;
        self.text.clear();
        // Else an idle connection would hold parts of a recording that was evicted.
        self.batch.clear();
        self.sent.body_bytes += bytes as u64;
        self.shared.count_listener(self.listener, |c| c.bytes_out += bytes as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use assay_http::head::RequestHead;
    use tokio::net::TcpListener;

    use super::*;
    use crate::collector::recording::FetchTimings;
    use crate::collector::shared::testing::spec;
    use crate::collector::url::FetchTarget;

    #[test]
    fn a_connection_holds_nothing_of_a_body_that_it_has_sent() {
        assay_testbed::run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let _proxy = TcpStream::connect(address).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let shared = Rc::new(CollectorShared::new(&spec(address), &[address; 2], None).unwrap());
            let mut client = CollectorClient::new(shared, stream, 1);
            let recording = Recording::begin(0, 1, false, None);
            let part = Chunk::from(&b"abc"[..]);
            recording.append(1, Rc::clone(&part));
            recording.finish(2, BodyEnd::Complete);
            let response = Rc::new(RecordedResponse::failed(502, 0, 3));
            recording.settle(FetchTimings::default(), RecordingOutcome::Response(response));
            let reader = RecordingReader::new(&recording, false).unwrap();
            let (head, _) = RequestHead::parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().unwrap();
            let request = CollectorRequest::new(&head, FetchTarget::from_head(&head, None).unwrap());
            client.replay(&request, &recording, reader, 0).await.unwrap();
            assert_eq!((client.sent.body_bytes, Rc::strong_count(&part)), (3, 2));
            drop(recording);
            assert_eq!(Rc::strong_count(&part), 1);
        });
    }
}
