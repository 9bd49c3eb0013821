//! One connection of a proxy, or of the Multiplier.

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
use assay_net::exchange::{self, Exchange, Handler, Next, Refusal, Request};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::collector::client_request::ClientRequest;
use crate::collector::fetch::{self, Order};
use crate::collector::log::{Came, Line, Sent};
use crate::collector::lost::Gone;
use crate::collector::play::Client;
use crate::collector::recording::{Claim, Outcome, Reader, Recording};
use crate::collector::shared::{Connected, Shared};
use crate::collector::shelf::{Found, Key, Requester};
use crate::collector::tunnel;
use crate::number;

/// After so many recordings that were waited for in vain, a request gets a fetch of its own.
const MOST_WAITS: usize = 8;
/// What a proxy is told in place of a response that was its client's own, and is gone.
const NOT_KEPT: &str = "the Collector has not kept the response that the client got, and fetches nothing twice: this is not compared";

/// Serves a connection until it ends. Errors are the client's own doing, or were reported to it: they are of no further interest.
pub async fn serve(stream: TcpStream, connected: Connected) {
    let Connected { shared, listener } = &connected;
    let mut client = Client::new(Rc::clone(shared), stream, *listener);
    if exchange::serve(&mut client).await.is_err() {
        shared.count(|c| c.client_gone += 1);
    }
    if let Some(place) = client.tunnel.take() {
        tunnel::serve(client, &place).await;
    }
}

impl Handler for Client {
    type Stream = TcpStream;

    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, .. }: &Request<'_>) -> io::Result<Next> {
        self.lost = None;
        if is_question_of_the_lab(head) && !self.shared.is_direct(self.listener) {
            self.send_error(200, "the listener is open", false).await?;
            return Ok(Next::Request);
        }
        self.shared.count_listener(self.listener, |c| c.requests += 1);
        (self.sent, self.came_ns) = (Sent::default(), monotonic_ns());
        let next = self.served(head).await;
        self.log(head);
        next
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        refuse(self, refusal.status(), &refusal.to_string(), is_head).await.map(drop)
    }
}

impl Client {
    /// Responds to a request.
    async fn served(&mut self, head: &RequestHead<'_>) -> io::Result<Next> {
        let shared = Rc::clone(&self.shared);
        if head.method == "CONNECT" {
            return self.begin_tunnel(head).await;
        }
        let is_head = head.method == "HEAD";
        let target = match shared.target(head, self.listener) {
            Ok(target) => target,
            Err(error) => {
                return refuse(self, error.status(), &error.to_string(), is_head).await;
            }
        };
        let client_request = ClientRequest::new(head, target);
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
        let served = serve_request(self, &client_request, &key, body).await;
        self.key = key;
        served.map(|()| Next::Request)
    }

    /// What follows the head of a CONNECT belongs to the tunnel, so nothing may say that it is a body (RFC 9110, 9.3.6).
    async fn begin_tunnel(&mut self, head: &RequestHead<'_>) -> io::Result<Next> {
        let Some(place) = self.shared.routes.tunnel(head.target) else {
            return refuse(self, 501, "tunnels are not served in front of an origin", false).await;
        };
        if !matches!(head.body(), BodyFraming::None) {
            return refuse(self, 400, "a request for a tunnel has no body", false).await;
        }
        let host = head.host.map(target::authority).transpose();
        if let Err(error) = host.and(target::authority(head.target.as_bytes())) {
            return refuse(self, error.status(), &error.to_string(), false).await;
        }
        self.tunnel = Some(place);
        Ok(Next::Detached)
    }

    /// Puts a request and its response into the log, if there is one. Tunnels are not in it.
    fn log(&mut self, head: &RequestHead<'_>) {
        let shared = Rc::clone(&self.shared);
        let log = shared.log.borrow();
        let Some(log) = log.as_ref().filter(|_| self.tunnel.is_none()) else { return };
        let (host, url) = match shared.target(head, self.listener) {
            Ok(target) => (target.host().to_owned(), target.url()),
            Err(_) => ("-".to_owned(), head.target.to_owned()),
        };
        log.note(Line {
            came_ns: self.came_ns,
            ended_ns: monotonic_ns(),
            listener: self.listener,
            request: number::of_request(head),
            client: self.peer,
            method: head.method.to_owned(),
            url,
            host,
            sent: std::mem::take(&mut self.sent),
        });
    }
}

/// The program that starts a proxy checks through it that it is ready; that is no client's request, and goes to no origin.
fn is_question_of_the_lab(head: &RequestHead<'_>) -> bool {
    let path = match head.target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => head.target,
    };
    head.method == "GET" && path == HEALTH_PATH
}

/// Responds to a malformed request; after that the connection cannot be used.
async fn refuse(client: &mut Client, status: u16, text: &str, is_head: bool) -> io::Result<Next> {
    client.exchange.give_up();
    client.shared.count(|c| c.refused += 1);
    client.send_error(status, text, is_head).await?;
    Ok(Next::Request)
}

/// The body of a request, with the room that it takes.
struct Body {
    parts: Vec<Chunk>,
    digest: Option<[u8; 16]>,
    room: Room,
}

/// Memory that is taken as long as this lives.
struct Room {
    shared: Rc<Shared>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shared.shelf.borrow_mut().release(self.bytes);
    }
}

/// Reads the body of a request: which recording serves it is known only then.
async fn receive(client: &mut Client, client_request: &ClientRequest<'_>) -> Result<Body, BodyError> {
    let shared = Rc::clone(&client.shared);
    let mut body =
        Body { parts: Vec::new(), digest: None, room: Room { shared: Rc::clone(&shared), bytes: 0 } };
    if client.exchange.is_read() {
        return Ok(body);
    }
    if client_request.head.expect_continue {
        client.exchange.send_continue().await?;
    }
    let mut digest = ContentMd5::new();
    while let Some(part) = client.exchange.next_part().await? {
        digest.update(&part);
        if !shared.shelf.borrow_mut().reserve_for_request(body.room.bytes, part.len() as u64) {
            return Err(BodyError::Io(io::ErrorKind::FileTooLarge.into()));
        }
        body.room.bytes += part.len() as u64;
        body.parts.push(part);
    }
    body.digest = Some(digest.finish());
    shared.count_listener(client.listener, |c| c.bytes_in += body.room.bytes);
    Ok(body)
}

/// Responds to a request: from a recording, from one under way, or from one that begins with it.
async fn serve_request(
    client: &mut Client,
    client_request: &ClientRequest<'_>,
    key: &[u8],
    body: Body,
) -> io::Result<()> {
    let shared = Rc::clone(&client.shared);
    let requested_ns = monotonic_ns();
    let fields = client_request.head.headers();
    client.early = 0;
    let mut claimed: Option<Claim> = None;
    let mut confirmed: Option<(Rc<Recording>, i64)> = None;
    let mut confirming = None;
    for _ in 0..MOST_WAITS {
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
        let found = shared.shelf.borrow_mut().find(key, &requester);
        if is_gone_for(client, client_request, key, &found) {
            return client.send_error(503, NOT_KEPT, client_request.head.method == "HEAD").await;
        }
        match found {
            Found::Replay(recording, _) => {
                let Some(reader) = Reader::new(&recording, shared.is_direct(client.listener)) else { break };
                let is_complete = recording.end().is_some();
                client.sent.came = if is_complete { Came::Replayed } else { Came::Joined };
                shared.count_listener(client.listener, |c| match is_complete {
                    true => c.replays += 1,
                    false => c.joined += 1,
                });
                let ahead_ns = confirmed.filter(|(renewed, _)| Rc::ptr_eq(renewed, &recording));
                let base_ns = earlier(requested_ns, ahead_ns.map_or(0, |(_, ahead_ns)| ahead_ns));
                return client.play(client_request, &recording, reader, base_ns).await;
            }
            Found::Wait(recording, claim) => {
                claimed = claim.or(claimed);
                if let Outcome::Confirmed { recording: renewed, ahead_ns } = recording.settled().await {
                    // What was claimed of the fetch is claimed of what it has confirmed.
                    let is_claimed = claimed.as_ref().is_some_and(|claim| claim.is_of(&recording));
                    let renewed_claim = is_claimed.then(|| Claim::new(Rc::clone(&renewed)));
                    claimed = renewed_claim.or(claimed);
                    confirmed = Some((renewed, ahead_ns));
                }
            }
            Found::Confirm(old) => {
                confirming = Some(old);
                break;
            }
            Found::Nothing => break,
        }
    }
    if client_request.head.max_forwards() == Some(0) {
        // What was recorded is there for it all the same: behind a proxy, a request has a hop less than the client's own had.
        client.sent.status = client.exchange.respond_as_last(client_request.head.method).await?;
        return Ok(());
    }
    lead(client, client_request, key.into(), body, confirming, requested_ns).await
}

/// True where a proxy requests what its client got, that is gone, and another one would not do. What it gets instead
/// is marked.
fn is_gone_for(client: &mut Client, client_request: &ClientRequest<'_>, key: &[u8], found: &Found) -> bool {
    client.lost = None;
    let is_replay = matches!(found, Found::Replay(..));
    let Some(number) = client_request.number.filter(|_| !client.shared.is_direct(client.listener)) else {
        return false;
    };
    if matches!(found, Found::Replay(_, true)) {
        return false;
    }
    let gone = client.shared.shelf.borrow().gone(key, number);
    client.lost = gone.map(|_| number);
    gone == Some(Gone::Own) && !is_replay
}

/// Fetches, and sends the response.
async fn lead(
    client: &mut Client,
    client_request: &ClientRequest<'_>,
    key: Key,
    body: Body,
    confirming: Option<Rc<Recording>>,
    requested_ns: u64,
) -> io::Result<()> {
    let shared = Rc::clone(&client.shared);
    // A request that has waited for another fetch in vain begins only now.
    let began_ns = monotonic_ns();
    let is_first = began_ns.saturating_sub(requested_ns) < 1_000_000;
    let began_ns = if is_first { requested_ns } else { began_ns };
    let (request, mut conditions) = client_request.request(body.room.bytes);
    if confirming.is_some() {
        conditions.clear();
    }
    shared.count(|c| c.repeated += u64::from(client.lost.is_some()));
    // In place of what is gone: no client's own response.
    let number = client_request.number.filter(|_| client.lost.is_none());
    let recording = Recording::begin(began_ns, client.listener, !conditions.is_empty(), number);
    client.sent.came = Came::Fetched;
    shared.count_listener(client.listener, |c| c.fetches += 1);
    shared.shelf.borrow_mut().add(&key, &recording, monotonic_ns());
    let order = Order {
        key,
        place: shared.routes.place(&client_request.target),
        secured: client_request.target.is_secured.then(|| client_request.target.authority.to_owned()),
        request,
        conditions,
        body: body.parts,
        confirming,
        control: client_request.control,
        is_authorised: client_request.is_authorised,
        is_unsafe: client_request.class == MethodClass::Unsafe,
    };
    // Before the fetch can find that nobody wants it.
    let reader = Reader::new(&recording, shared.is_direct(client.listener));
    let (room, fetching) = (body.room, fetch::run(Rc::clone(&shared), Rc::clone(&recording), order));
    spawn_local(async move {
        fetching.await;
        drop(room);
    });
    match (client.outcome_of(&recording).await?, reader) {
        (Outcome::Response(_), Some(reader)) => {
            client.play(client_request, &recording, reader, began_ns).await
        }
        (Outcome::Confirmed { recording: renewed, ahead_ns }, _) => {
            match Reader::new(&renewed, shared.is_direct(client.listener)) {
                Some(reader) => {
                    client.play(client_request, &renewed, reader, earlier(began_ns, ahead_ns)).await
                }
                None => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        (Outcome::Response(_), None) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn earlier(at_ns: u64, by_ns: i64) -> u64 {
    at_ns.saturating_add_signed(by_ns.saturating_neg())
}
