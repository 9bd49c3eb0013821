//! One connection of a client.
//!
//! Requests are served one after the other from the Collector. Those of a client that pipelines are sent to the Collector before
//! their turn ([`super::pipeline`]); it gets its responses in order.

use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use assay_http::head::RequestHead;
use assay_plane::byte_stream::ByteStream;
use assay_plane::exchange::{self, ClientLimits, Handler, Next, Refusal, Request};
use assay_plane::fields::Received;
use assay_plane::http_stream::{HttpStream, serve_client, serve_connection};
use assay_record::spe::ResponseError;
use tokio::net::TcpStream;

use super::board::count;
use super::exchange::Exchange;
use super::lanes::ToProxies;
use super::message::{self, Order, Role};
use super::opened::{self, Opening};
use super::pipeline::Pipeline;
use super::place::Place;
use super::shared::Shared;
use super::tunnel;

/// A client's connection, or a request of HTTP/2 on it.
pub struct Client {
    /// What it shares with others.
    pub shared: Rc<Shared>,
    /// The connection.
    pub exchange: exchange::Exchange<HttpStream>,
    /// Its number: the same for all requests of a connection.
    pub id: u64,
    /// Who it is.
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
struct Connected {
    shared: Rc<Shared>,
    id: u64,
}

/// Serves a connection until it ends. Errors are the client's own doing, and of no further interest.
pub async fn serve(stream: ByteStream<TcpStream>, (id, ip): (u64, IpAddr), shared: Rc<Shared>) {
    let limits = ClientLimits::new(shared.limits.client_read, shared.limits.client_write);
    count(&shared.board.clients);
    count(&shared.board.open_clients);
    let connected = Rc::new(Connected { shared: Rc::clone(&shared), id });
    let serve = |exchange| {
        let mut client = Client::new(&shared, exchange, (id, ip), None, &connected);
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
        shared: &Rc<Shared>,
        exchange: exchange::Exchange<HttpStream>,
        (id, ip): (u64, IpAddr),
        place: Option<&Rc<Place>>,
        connected: &Rc<Connected>,
    ) -> Self {
        Self {
            shared: Rc::clone(shared),
            exchange,
            id,
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
    client.pipeline.end(client.id, &client.shared, error);
}

/// Serves what is in a tunnel that is to be opened.
async fn serve_opened(client: Client, opening: Opening) {
    let Client { shared, exchange, id, ip, connected, .. } = client;
    let exchange::Exchange { mut connection, limits, .. } = exchange;
    let Some(place) = opened::open(&shared, &mut connection, &limits, opening).await else { return };
    let place = Rc::new(place);
    let serve = |exchange| {
        let mut client = Client::new(&shared, exchange, (id, ip), Some(&place), &connected);
        async move { requests(&mut client).await }
    };
    serve_connection(connection, limits, serve).await;
}

impl Drop for Connected {
    fn drop(&mut self) {
        let shared = Rc::clone(&self.shared);
        shared.board.open_clients.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        let (id, telling) = (self.id, Rc::clone(&self.shared));
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
            return self.respond_as_last(head.method).await;
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
        if order.about.method == "CONNECT" {
            count(&self.shared.board.connects);
            return match self.shared.interceptor.is_some() {
                true => self.begin_tunnel(&order).await,
                false => tunnel::run(self, order).await,
            };
        }
        Exchange::new(self, order).run(ahead).await.map(|()| Next::Request)
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

    /// Responds to a request that may not be passed on (RFC 9110, 7.6.2). A trace would only show what the client has just sent.
    async fn respond_as_last(&mut self, method: &str) -> io::Result<Next> {
        if !self.exchange.is_read() {
            self.exchange.give_up();
        }
        let (status, lines, text): (u16, &[u8], &str) = match method {
            "OPTIONS" => (200, b"Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS\r\n", ""),
            _ => (501, b"", "a trace is passed on, or gets no other response\n"),
        };
        self.exchange.send_text(status, lines, text, false).await?;
        Ok(Next::Request)
    }

    /// Refuses a request that is not served; after that the connection cannot be used.
    pub async fn send_refusal(&mut self, status: u16, words: &str, is_head: bool) -> io::Result<()> {
        self.exchange.give_up();
        self.exchange.send_text(status, b"", &format!("{words}\n"), is_head).await
    }
}
