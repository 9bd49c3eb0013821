//! Connections of proxies and of the Multiplier.

use std::io;
use std::rc::Rc;

use assay_base::clock::monotonic_ns;
use assay_cache::storage::MethodClass;
use assay_http::digest::ContentMd5;
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;
use assay_http::target;
use assay_net::HEALTH_PATH;
use assay_net::body::{BodyError, Chunk};
use assay_net::exchange::{self, AfterResponse, Exchange, Handler, Refusal, Request};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::collector::client_request::CollectorRequest;
use crate::collector::fetch::{self, OriginFetch};
use crate::collector::log::{ExchangeEntry, SentResponse, ServedFrom};
use crate::collector::lost::LossKind;
use crate::collector::recording::{Recording, RecordingClaim, RecordingOutcome, RecordingReader};
use crate::collector::recording_store::{RecordingKey, RecordingLookup, Requester};
use crate::collector::replay::CollectorClient;
use crate::collector::shared::{CollectorShared, ListenerConnection};
use crate::collector::tunnel;
use crate::number;

/// Recordings awaited in vain after which a request gets a fetch of its own.
const WAITS_MAX: usize = 8;
/// Text for a proxy, in place of a response that belonged to one client, and is lost.
const NOT_KEPT: &str = "the Collector has not kept the response that the client got, and fetches nothing twice: this is not compared";

/// Serves a connection until it ends. Errors are the client's own doing, or were reported to it: they are of no further interest.
pub async fn serve(stream: TcpStream, listener_connection: ListenerConnection) {
    let ListenerConnection { shared, listener } = &listener_connection;
    let mut client = CollectorClient::new(Rc::clone(shared), stream, *listener);
    if exchange::serve(&mut client).await.is_err() {
        shared.count(|c| c.client_gone += 1);
    }
    if let Some(destination) = client.tunnel.take() {
        tunnel::serve(client, &destination).await;
    }
}

impl Handler for CollectorClient {
    type Transport = TcpStream;

    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, .. }: &Request<'_>) -> io::Result<AfterResponse> {
        self.lost = None;
        if is_health_check(head) && !self.shared.is_direct(self.listener) {
            self.send_error(200, "the listener is open", false).await?;
            return Ok(AfterResponse::Request);
        }
        self.shared.count_listener(self.listener, |c| c.requests += 1);
        (self.sent, self.arrived_ns) = (SentResponse::default(), monotonic_ns());
        let next = self.respond_to(head).await;
        self.log(head);
        next
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        refuse(self, refusal.status(), &refusal.to_string(), is_head).await.map(drop)
    }
}

impl CollectorClient {
    async fn respond_to(&mut self, head: &RequestHead<'_>) -> io::Result<AfterResponse> {
        let shared = Rc::clone(&self.shared);
        if head.method == "CONNECT" {
            return self.accept_tunnel(head).await;
        }
        let is_head = head.method == "HEAD";
        let target = match shared.target(head, self.listener) {
            Ok(target) => target,
            Err(error) => {
                return refuse(self, error.status(), &error.to_string(), is_head).await;
            }
        };
        let client_request = CollectorRequest::new(head, target);
        let body = match receive(self, &client_request).await {
            Ok(body) => body,
            Err(BodyError::Coding(error)) => return refuse(self, 400, &error.to_string(), is_head).await,
            Err(BodyError::Io(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                let text = "the body of the request is larger than there is room for";
                return refuse(self, 413, text, is_head).await;
            }
            Err(BodyError::Io(error)) => return Err(error),
            Err(BodyError::Truncated) => return Err(io::ErrorKind::UnexpectedEof.into()),
        };
        let mut key = std::mem::take(&mut self.key);
        client_request.write_key(body.digest, &mut key);
        let result = serve_request(self, &client_request, &key, body).await;
        self.key = key;
        result.map(|()| AfterResponse::Request)
    }

    /// Accepts a CONNECT. Bytes after its head belong to the tunnel, so it must not announce a body (RFC 9110, 9.3.6).
    async fn accept_tunnel(&mut self, head: &RequestHead<'_>) -> io::Result<AfterResponse> {
        let Some(destination) = self.shared.routes.tunnel(head.target) else {
            return refuse(self, 501, "tunnels are not served in front of an origin", false).await;
        };
        if !matches!(head.body(), BodyFraming::None) {
            return refuse(self, 400, "a request for a tunnel has no body", false).await;
        }
        let host = head.host.map(target::authority).transpose();
        if let Err(error) = host.and(target::authority(head.target.as_bytes())) {
            return refuse(self, error.status(), &error.to_string(), false).await;
        }
        self.tunnel = Some(destination);
        Ok(AfterResponse::Detached)
    }

    /// Logs a request and its response, except for tunnels.
    fn log(&mut self, head: &RequestHead<'_>) {
        let shared = Rc::clone(&self.shared);
        let log = shared.log.borrow();
        let Some(log) = log.as_ref().filter(|_| self.tunnel.is_none()) else { return };
        let (host, url) = match shared.target(head, self.listener) {
            Ok(target) => (target.host().to_owned(), target.url()),
            Err(_) => ("-".to_owned(), head.target.to_owned()),
        };
        log.note(ExchangeEntry {
            arrived_ns: self.arrived_ns,
            ended_ns: monotonic_ns(),
            listener: self.listener,
            request: number::request_number(head),
            client: self.peer,
            method: head.method.to_owned(),
            url,
            host,
            sent: std::mem::take(&mut self.sent),
        });
    }
}

/// Whether a request is the readiness check that `assay-lab` sends through a proxy: no client's request, and not forwarded to an
/// origin.
fn is_health_check(head: &RequestHead<'_>) -> bool {
    let path = match head.target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => head.target,
    };
    head.method == "GET" && path == HEALTH_PATH
}

/// Responds to a malformed request; the connection cannot be used afterwards.
async fn refuse(
    client: &mut CollectorClient,
    status: u16,
    text: &str,
    is_head: bool,
) -> io::Result<AfterResponse> {
    client.exchange.close_after_response();
    client.shared.count(|c| c.refused += 1);
    client.send_error(status, text, is_head).await?;
    Ok(AfterResponse::Request)
}

/// Body of a request, with the memory reserved for it.
struct RequestBody {
    parts: Vec<Chunk>,
    digest: Option<[u8; 16]>,
    reservation: BodyReservation,
}

/// Memory reserved in the store until dropped.
struct BodyReservation {
    shared: Rc<CollectorShared>,
    bytes: u64,
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.shared.store.borrow_mut().release(self.bytes);
    }
}

/// Reads the body of a request, which is part of the recording's key.
async fn receive(
    client: &mut CollectorClient,
    client_request: &CollectorRequest<'_>,
) -> Result<RequestBody, BodyError> {
    let shared = Rc::clone(&client.shared);
    let mut body = RequestBody {
        parts: Vec::new(),
        digest: None,
        reservation: BodyReservation { shared: Rc::clone(&shared), bytes: 0 },
    };
    if client.exchange.is_body_read() {
        return Ok(body);
    }
    if client_request.head.expect_continue {
        client.exchange.send_continue().await?;
    }
    let mut digest = ContentMd5::new();
    while let Some(part) = client.exchange.next_part().await? {
        digest.update(&part);
        if !shared.store.borrow_mut().reserve_for_request(body.reservation.bytes, part.len() as u64) {
            return Err(BodyError::Io(io::ErrorKind::FileTooLarge.into()));
        }
        body.reservation.bytes += part.len() as u64;
        body.parts.push(part);
    }
    body.digest = Some(digest.finish());
    shared.count_listener(client.listener, |c| c.bytes_in += body.reservation.bytes);
    Ok(body)
}

/// Responds to a request: from a complete recording, from one under way, or from a new one.
async fn serve_request(
    client: &mut CollectorClient,
    client_request: &CollectorRequest<'_>,
    key: &[u8],
    body: RequestBody,
) -> io::Result<()> {
    let shared = Rc::clone(&client.shared);
    let requested_ns = monotonic_ns();
    let fields = client_request.head.headers();
    client.interim = 0;
    let mut claimed: Option<RecordingClaim> = None;
    let mut confirmed: Option<(Rc<Recording>, i64)> = None;
    let mut confirming = None;
    for _ in 0..WAITS_MAX {
        let requester = Requester {
            listener: client.listener,
            is_direct: shared.is_direct(client.listener),
            fields: &fields,
            conditions: &client_request.conditions,
            control: &client_request.control,
            wants_new: client_request.wants_new(),
            number: client_request.number,
            claimed: claimed.as_ref(),
            now_ns: monotonic_ns(),
            now_ms: shared.now_ms(),
        };
        let lookup = shared.store.borrow_mut().find(key, &requester);
        if is_lost_for(client, client_request, key, &lookup) {
            return client.send_error(503, NOT_KEPT, client_request.head.method == "HEAD").await;
        }
        match lookup {
            RecordingLookup::Replay(recording, _) => {
                let Some(reader) = RecordingReader::new(&recording, shared.is_direct(client.listener)) else {
                    break;
                };
                let is_complete = recording.end().is_some();
                client.sent.served_from = if is_complete { ServedFrom::Replayed } else { ServedFrom::Joined };
                shared.count_listener(client.listener, |c| match is_complete {
                    true => c.replays += 1,
                    false => c.joined += 1,
                });
                let ahead_ns = confirmed.filter(|(renewed, _)| Rc::ptr_eq(renewed, &recording));
                let base_ns = earlier(requested_ns, ahead_ns.map_or(0, |(_, ahead_ns)| ahead_ns));
                return client.replay(client_request, &recording, reader, base_ns).await;
            }
            RecordingLookup::Wait(recording, claim) => {
                claimed = claim.or(claimed);
                if let RecordingOutcome::Confirmed { recording: renewed, ahead_ns } =
                    recording.settled().await
                {
                    // A claim on the fetch becomes a claim on the recording that it has confirmed.
                    let is_claimed = claimed.as_ref().is_some_and(|claim| claim.is_of(&recording));
                    let renewed_claim = is_claimed.then(|| RecordingClaim::new(Rc::clone(&renewed)));
                    claimed = renewed_claim.or(claimed);
                    confirmed = Some((renewed, ahead_ns));
                }
            }
            RecordingLookup::Confirm(old) => {
                confirming = Some(old);
                break;
            }
            RecordingLookup::Nothing => break,
        }
    }
    if client_request.head.max_forwards() == Some(0) {
        // Only recordings may be replayed: behind a proxy, a request has a hop less left than the client's own had.
        let status = client.exchange.respond_as_final_recipient(client_request.head.method).await?;
        client.sent.status = Some(status);
        return Ok(());
    }
    fetch_and_replay(client, client_request, key.into(), body, confirming, requested_ns).await
}

/// Whether the response to the client's request, which the proxy now requests, is lost and another one would not do. The response
/// sent instead is marked.
fn is_lost_for(
    client: &mut CollectorClient,
    client_request: &CollectorRequest<'_>,
    key: &[u8],
    lookup: &RecordingLookup,
) -> bool {
    client.lost = None;
    let is_replay = matches!(lookup, RecordingLookup::Replay(..));
    let Some(number) = client_request.number.filter(|_| !client.shared.is_direct(client.listener)) else {
        return false;
    };
    if matches!(lookup, RecordingLookup::Replay(_, true)) {
        return false;
    }
    let loss = client.shared.store.borrow().loss(key, number);
    client.lost = loss.map(|_| number);
    loss == Some(LossKind::Own) && !is_replay
}

/// Fetches, and replays the response as it arrives.
async fn fetch_and_replay(
    client: &mut CollectorClient,
    client_request: &CollectorRequest<'_>,
    key: RecordingKey,
    body: RequestBody,
    confirming: Option<Rc<Recording>>,
    requested_ns: u64,
) -> io::Result<()> {
    let shared = Rc::clone(&client.shared);
    // A request that has waited for another fetch in vain begins only now.
    let began_ns = monotonic_ns();
    let is_first = began_ns.saturating_sub(requested_ns) < 1_000_000;
    let began_ns = if is_first { requested_ns } else { began_ns };
    let (request, mut conditions) = client_request.request(body.reservation.bytes);
    if confirming.is_some() {
        conditions.clear();
    }
    shared.count(|c| c.repeated += u64::from(client.lost.is_some()));
    // A replacement for a lost response is no client's own.
    let number = client_request.number.filter(|_| client.lost.is_none());
    let recording = Recording::begin(began_ns, client.listener, !conditions.is_empty(), number);
    client.sent.served_from = ServedFrom::Fetched;
    shared.count_listener(client.listener, |c| c.fetches += 1);
    shared.store.borrow_mut().add(&key, &recording, monotonic_ns());
    let plan = OriginFetch {
        key,
        destination: shared.routes.destination(&client_request.target),
        tls_authority: client_request.target.is_secured.then(|| client_request.target.authority.to_owned()),
        request,
        conditions,
        body: body.parts,
        confirming,
        control: client_request.control,
        is_authorised: client_request.is_authorised,
        is_unsafe: client_request.class == MethodClass::Unsafe,
    };
    // Created before the fetch starts, which would otherwise find that nobody wants it.
    let reader = RecordingReader::new(&recording, shared.is_direct(client.listener));
    let (reservation, fetching) =
        (body.reservation, fetch::run(Rc::clone(&shared), Rc::clone(&recording), plan));
    spawn_local(async move {
        fetching.await;
        drop(reservation);
    });
    match (client.outcome_of(&recording).await?, reader) {
        (RecordingOutcome::Response(_), Some(reader)) => {
            client.replay(client_request, &recording, reader, began_ns).await
        }
        (RecordingOutcome::Confirmed { recording: renewed, ahead_ns }, _) => {
            match RecordingReader::new(&renewed, shared.is_direct(client.listener)) {
                Some(reader) => {
                    client.replay(client_request, &renewed, reader, earlier(began_ns, ahead_ns)).await
                }
                None => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        (RecordingOutcome::Response(_), None) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn earlier(at_ns: u64, by_ns: i64) -> u64 {
    at_ns.saturating_add_signed(by_ns.saturating_neg())
}
