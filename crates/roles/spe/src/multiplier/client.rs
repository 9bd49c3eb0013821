//! One connection of a client.
//!
//! Requests are served one after the other from the Collector. Those of a client that pipelines are sent to the Collector before
//! their turn ([`super::pipeline`]); it gets its responses in order.

use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use assay_http::head::RequestHead;
use assay_net::byte_stream::ByteStream;
use assay_net::exchange::{self, ClientLimits, Handler, Next, Refusal, Request};
use assay_net::fields::Received;
use assay_net::http_stream::{HttpStream, serve_client, serve_connection};
use assay_record::spe::ResponseError;
use tokio::net::TcpStream;

use super::board::{Line, count};
use super::exchange::Exchange;
use super::lanes::ToProxies;
use super::message::{self, Order, Role};
use super::opened::{self, Opening};
use super::pipeline::{Ahead, Pipeline};
use super::place::Place;
use super::rest::Rest;
use super::room::{Room, Taken};
use super::shared::Shared;
use super::tunnel;

/// A client's connection, or a request of HTTP/2 on it.
pub struct Client {
    /// What it shares with others.
    pub shared: Rc<Shared>,
    pub exchange: exchange::Exchange<HttpStream>,
    /// Which it is: the same for all requests of a connection.
    pub line: Line,
    pub ip: IpAddr,
    /// Requests that have come before their turn.
    pub pipeline: Pipeline,
    /// Where the tunnel leads that this is the inside of; none: it is no tunnel.
    pub place: Option<Rc<Place>>,
    /// The tunnel that was begun, and is to be opened.
    pub opening: Option<Box<Opening>>,
    /// Counts the connection as open.
    connected: Rc<Connected>,
}

/// A connection, as it is counted; dropped after the last request on it.
pub struct Connected {
    shared: Rc<Shared>,
    line: Line,
    /// Its requests that are under way to the Collector.
    under_way: Cell<u64>,
}

impl Connected {
    /// The next connection, which is open from now on.
    pub fn next(shared: &Rc<Shared>) -> Self {
        count(&shared.board.open_clients);
        let line = shared.board.line(shared.board.clients.fetch_add(1, Relaxed));
        Self { shared: Rc::clone(shared), line, under_way: Cell::new(0) }
    }
}

/// Serves a connection until it ends. Errors are the client's own doing, and of no further interest.
pub async fn serve(stream: ByteStream<TcpStream>, ip: IpAddr, connected: Connected) {
    let shared = Rc::clone(&connected.shared);
    let limits = ClientLimits::new(shared.limits.client_read, shared.limits.client_write);
    let connected = Rc::new(connected);
    let serve = |exchange| {
        let mut client = Client::new(exchange, ip, None, &connected);
        async move {
            requests(&mut client).await;
            if let Some(opening) = client.opening.take() {
                Box::pin(serve_opened(client, *opening)).await;
            }
        }
    };
    serve_client(stream, &shared.resources, limits, serve).await;
}

impl Client {
    /// On a connection, or a stream of HTTP/2, that has had no request; `place`: in an opened tunnel to it.
    fn new(
        exchange: exchange::Exchange<HttpStream>,
        ip: IpAddr,
        place: Option<&Rc<Place>>,
        connected: &Rc<Connected>,
    ) -> Self {
        Self {
            shared: Rc::clone(&connected.shared),
            exchange,
            line: connected.line.clone(),
            ip,
            pipeline: Pipeline::default(),
            place: place.map(Rc::clone),
            opening: None,
            connected: Rc::clone(connected),
        }
    }
}

/// Serves the requests of a connection, or the one of a stream of HTTP/2.
async fn requests(client: &mut Client) {
    let error = match exchange::serve(client).await {
        Ok(_) => ResponseError::Reset,
        Err(_) => ResponseError::ClientGone,
    };
    client.pipeline.end(&client.line, &client.shared, error);
}

/// Serves what is in a tunnel that is to be opened.
async fn serve_opened(client: Client, opening: Opening) {
    let Client { shared, exchange, ip, connected, .. } = client;
    let exchange::Exchange { mut connection, limits, .. } = exchange;
    let Some(place) = opened::open(&shared, &mut connection, &limits, opening).await else { return };
    let place = Rc::new(place);
    let serve = |exchange| {
        let mut client = Client::new(exchange, ip, Some(&place), &connected);
        async move { requests(&mut client).await }
    };
    serve_connection(connection, limits, serve).await;
}

impl Drop for Connected {
    fn drop(&mut self) {
        let shared = Rc::clone(&self.shared);
        shared.board.open_clients.fetch_sub(1, Relaxed);
        let (id, telling) = (self.line.id, Rc::clone(&self.shared));
        // After its last request, which may still be put off. At the very end there is no receiver.
        shared.later.put_off(move || drop(telling.to_proxies.send(ToProxies::Left(id))));
        shared.left.notify_waiters();
    }
}

impl Handler for Client {
    type Stream = HttpStream;

    fn exchange(&mut self) -> &mut exchange::Exchange<HttpStream> {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, received, .. }: &Request<'_>) -> io::Result<Next> {
        if head.max_forwards() == Some(0) {
            self.exchange.respond_as_last(head.method).await?;
            return Ok(Next::Request);
        }
        let known = match self.pipeline.next() {
            Some(known) => Ok(known),
            None => self.order(head, *received).map(|order| (order, None)),
        };
        let (order, ahead) = match known {
            Ok(known) => known,
            Err(refusal) => {
                count(&self.shared.board.refused);
                self.send_refusal(refusal.status(), &refusal.to_string(), head.method == "HEAD").await?;
                return Ok(Next::Request);
            }
        };
        self.exchange.persists = order.persists;
        count(&self.shared.board.requests);
        let (shared, is_connect) = (Rc::clone(&self.shared), order.about.method == "CONNECT");
        if is_connect {
            count(&shared.board.connects);
            if shared.interceptor.is_some() {
                return self.begin_tunnel(&order).await;
            }
        }
        let Room { tunnels, requests, .. } = shared.room;
        let tunnel = is_connect.then(|| Taken::one(&shared.tunnels, tunnels));
        let connected = Rc::clone(&self.connected);
        let request = Taken::share(&shared.under_way, &connected.under_way, requests);
        if request.is_none() || tunnel.as_ref().is_some_and(Option::is_none) {
            return self.refuse_for_want_of_room(order, ahead).await;
        }
        match is_connect {
            true => tunnel::run(self, order).await,
            false => Exchange::new(self, order).run(ahead).await.map(|()| Next::Request),
        }
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        count(&self.shared.board.refused);
        self.send_refusal(refusal.status(), &refusal.to_string(), is_head).await
    }
}

impl Client {
    /// What is to be sent on of a request, which gets the next number.
    pub fn order(&self, head: &RequestHead<'_>, received: Received) -> Result<Order, message::Refusal> {
        let number = self.shared.next_request.get();
        let role = match &self.place {
            Some(place) => Role::Tunnel(place),
            None if self.shared.is_forward => Role::Proxy,
            None => Role::Server(self.exchange.connection.stream.scheme()),
        };
        let order = Order::new((head, received), (number, self.ip), role, &self.shared.name)?;
        self.shared.next_request.set(number + 1);
        Ok(order)
    }

    /// There are as many requests under way as may be. One that the Collector has already is written down as others are that are
    /// not served.
    async fn refuse_for_want_of_room(&mut self, order: Order, ahead: Option<Ahead>) -> io::Result<Next> {
        let is_head = order.about.method == "HEAD";
        count(&self.shared.board.no_room);
        if ahead.is_some() {
            let mut rest = Rest::new(self.line.clone(), order, Rc::clone(&self.shared));
            rest.measured.error = Some(ResponseError::Refused);
            rest.end(None);
        }
        self.send_refusal(503, "as many requests are being served as may", is_head).await?;
        Ok(Next::Request)
    }

    /// Lets the client of a CONNECT begin with its handshake.
    async fn begin_tunnel(&mut self, order: &Order) -> io::Result<Next> {
        match opened::begin(&self.shared, order) {
            Ok(opening) => {
                self.exchange.write(&[b"HTTP/1.1 200 Connection established\r\n\r\n"]).await?;
                self.opening = Some(Box::new(opening));
                Ok(Next::Detached)
            }
            Err((status, words)) => {
                count(&self.shared.board.refused);
                self.send_refusal(status, &words, false).await.map(|()| Next::Request)
            }
        }
    }

    /// Refuses a request that is not served; after that the connection cannot be used.
    pub async fn send_refusal(&mut self, status: u16, words: &str, is_head: bool) -> io::Result<()> {
        self.exchange.give_up();
        self.exchange.send_text(status, b"", &format!("{words}\n"), is_head).await
    }
}
