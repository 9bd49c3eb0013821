//! Client connections.
//!
//! Requests are served one after the other from the Collector. Those of a client that pipelines are sent to the Collector ahead
//! of their turn ([`super::pipeline`]); the client gets its responses in order.

use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use assay_http::head::RequestHead;
use assay_net::byte_stream::ByteStream;
use assay_net::exchange::{self, AfterResponse, ClientLimits, Handler, Refusal, Request};
use assay_net::fields::ReceivedProtocol;
use assay_net::http_stream::{HttpStream, serve_client, serve_connection};
use assay_record::spe::ResponseError;
use tokio::net::TcpStream;

use super::client_context::ClientContext;
use super::exchange::ClientExchange;
use super::fanout::Fanout;
use super::intercept::{self, Interception};
use super::limits::{ConnectionLimits, Permit};
use super::message::{self, ReceivedRequest, ServerRole};
use super::pipeline::{Ahead, RequestPipeline};
use super::proxy_connections::ProxyCommand;
use super::shared_state::{ClientLoad, count};
use super::tunnel;
use super::tunnel_target::TunnelTarget;

/// A client's connection, or a request of HTTP/2 on it.
pub struct MultiplierClient {
    pub shared: Rc<ClientContext>,
    pub exchange: exchange::Exchange<HttpStream>,
    /// Shared by all requests of a connection.
    pub load: ClientLoad,
    pub ip: IpAddr,
    /// Requests received ahead of their turn.
    pub pipeline: RequestPipeline,
    /// Target of the tunnel that this connection is the inside of.
    pub tunnel_target: Option<Rc<TunnelTarget>>,
    /// Tunnel to open after the response to its CONNECT.
    pub interception: Option<Box<Interception>>,
    open_connection: Rc<OpenConnection>,
}

/// Counts a connection while it is open; dropped after the last request on it.
pub struct OpenConnection {
    shared: Rc<ClientContext>,
    load: ClientLoad,
    /// Requests of this connection under way to the Collector.
    in_flight: Cell<u64>,
}

impl OpenConnection {
    /// Opens the next connection.
    pub fn next(shared: &Rc<ClientContext>) -> Self {
        count(&shared.state.open_clients);
        let load = shared.state.client_load(shared.state.clients.fetch_add(1, Relaxed));
        Self { shared: Rc::clone(shared), load, in_flight: Cell::new(0) }
    }
}

/// Serves a connection until it ends. Errors are the client's own doing, and of no further interest.
pub async fn serve(stream: ByteStream<TcpStream>, ip: IpAddr, open_connection: OpenConnection) {
    let shared = Rc::clone(&open_connection.shared);
    let limits = ClientLimits::new(shared.limits.client_read, shared.limits.client_write);
    let open_connection = Rc::new(open_connection);
    let serve = |exchange| {
        let mut client = MultiplierClient::new(exchange, ip, None, &open_connection);
        async move {
            requests(&mut client).await;
            if let Some(interception) = client.interception.take() {
                Box::pin(serve_intercepted(client, *interception)).await;
            }
        }
    };
    serve_client(stream, &shared.resources, limits, serve).await;
}

impl MultiplierClient {
    /// Starts with a connection, or a stream of HTTP/2, that has had no request; `tunnel_target`: in an opened tunnel to it.
    fn new(
        exchange: exchange::Exchange<HttpStream>,
        ip: IpAddr,
        tunnel_target: Option<&Rc<TunnelTarget>>,
        open_connection: &Rc<OpenConnection>,
    ) -> Self {
        Self {
            shared: Rc::clone(&open_connection.shared),
            exchange,
            load: open_connection.load.clone(),
            ip,
            pipeline: RequestPipeline::default(),
            tunnel_target: tunnel_target.map(Rc::clone),
            interception: None,
            open_connection: Rc::clone(open_connection),
        }
    }
}

/// Serves the requests of a connection, or the one of a stream of HTTP/2.
async fn requests(client: &mut MultiplierClient) {
    let error = match exchange::serve(client).await {
        Ok(_) => ResponseError::Reset,
        Err(_) => ResponseError::ClientGone,
    };
    client.pipeline.end(&client.load, &client.shared, error);
}

/// Serves the inside of a tunnel.
async fn serve_intercepted(client: MultiplierClient, interception: Interception) {
    let MultiplierClient { shared, exchange, ip, open_connection, .. } = client;
    let exchange::Exchange { mut connection, limits, .. } = exchange;
    let Some(tunnel_target) = intercept::open(&shared, &mut connection, &limits, interception).await else {
        return;
    };
    let tunnel_target = Rc::new(tunnel_target);
    let serve = |exchange| {
        let mut client = MultiplierClient::new(exchange, ip, Some(&tunnel_target), &open_connection);
        async move { requests(&mut client).await }
    };
    serve_connection(connection, limits, serve).await;
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let shared = Rc::clone(&self.shared);
        shared.state.open_clients.fetch_sub(1, Relaxed);
        let (id, context) = (self.load.id, Rc::clone(&self.shared));
        // Sent after the dispatch of the connection's last request, which may still be deferred. At the very end there is no
        // receiver.
        shared.deferred.defer(move || drop(context.to_proxies.send(ProxyCommand::Left(id))));
        shared.left.notify_waiters();
    }
}

impl Handler for MultiplierClient {
    type Transport = HttpStream;

    fn exchange(&mut self) -> &mut exchange::Exchange<HttpStream> {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, received, .. }: &Request<'_>) -> io::Result<AfterResponse> {
        if head.max_forwards() == Some(0) {
            self.exchange.respond_as_final_recipient(head.method).await?;
            return Ok(AfterResponse::Request);
        }
        let accepted = match self.pipeline.next() {
            Some(accepted) => Ok(accepted),
            None => self.accept_request(head, *received).map(|received_request| (received_request, None)),
        };
        let (received_request, ahead) = match accepted {
            Ok(accepted) => accepted,
            Err(refusal) => {
                count(&self.shared.state.refused);
                self.send_refusal(refusal.status(), &refusal.to_string(), head.method == "HEAD").await?;
                return Ok(AfterResponse::Request);
            }
        };
        self.exchange.persists = received_request.persists;
        count(&self.shared.state.requests);
        let (shared, is_connect) = (Rc::clone(&self.shared), received_request.summary.method == "CONNECT");
        if is_connect {
            count(&shared.state.connects);
            if shared.interceptor.is_some() {
                return self.begin_tunnel(&received_request).await;
            }
        }
        let ConnectionLimits { tunnels, requests, .. } = shared.connection_limits;
        let tunnel_permit = is_connect.then(|| Permit::acquire(&shared.tunnels, tunnels));
        let open_connection = Rc::clone(&self.open_connection);
        let permit = Permit::acquire_share(&shared.in_flight, &open_connection.in_flight, requests);
        if permit.is_none() || tunnel_permit.as_ref().is_some_and(Option::is_none) {
            return self.refuse_over_limit(received_request, ahead).await;
        }
        match is_connect {
            true => tunnel::run(self, received_request).await,
            false => {
                ClientExchange::new(self, received_request).run(ahead).await.map(|()| AfterResponse::Request)
            }
        }
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        count(&self.shared.state.refused);
        self.send_refusal(refusal.status(), &refusal.to_string(), is_head).await
    }
}

impl MultiplierClient {
    /// Reads a request, and gives it the next number.
    pub fn accept_request(
        &self,
        head: &RequestHead<'_>,
        received: ReceivedProtocol,
    ) -> Result<ReceivedRequest, message::MultiplierRefusal> {
        let number = self.shared.next_request.get();
        let role = match &self.tunnel_target {
            Some(tunnel_target) => ServerRole::Tunnel(tunnel_target),
            None if self.shared.is_forward => ServerRole::Proxy,
            None => ServerRole::Server(self.exchange.connection.stream.scheme()),
        };
        let received_request =
            ReceivedRequest::new(head, received, number, self.ip, role, &self.shared.name)?;
        self.shared.next_request.set(number + 1);
        Ok(received_request)
    }

    /// Responds with 503, as the limit of concurrent requests is reached. A request that the Collector has already is recorded
    /// like others that fail.
    async fn refuse_over_limit(
        &mut self,
        received_request: ReceivedRequest,
        ahead: Option<Ahead>,
    ) -> io::Result<AfterResponse> {
        let is_head = received_request.summary.method == "HEAD";
        count(&self.shared.state.no_room);
        if ahead.is_some() {
            let mut fanout = Fanout::new(self.load.clone(), received_request, Rc::clone(&self.shared));
            fanout.measurement.error = Some(ResponseError::Refused);
            fanout.end(None);
        }
        self.send_refusal(503, "as many requests are being served as may", is_head).await?;
        Ok(AfterResponse::Request)
    }

    /// Accepts a CONNECT, after which the client starts its handshake.
    async fn begin_tunnel(&mut self, received_request: &ReceivedRequest) -> io::Result<AfterResponse> {
        match intercept::begin(&self.shared, received_request) {
            Ok(interception) => {
                self.exchange.write(&[b"HTTP/1.1 200 Connection established\r\n\r\n"]).await?;
                self.interception = Some(Box::new(interception));
                Ok(AfterResponse::Detached)
            }
            Err(error) => {
                count(&self.shared.state.refused);
                self.send_refusal(error.status(), &error.to_string(), false)
                    .await
                    .map(|()| AfterResponse::Request)
            }
        }
    }

    /// Refuses a request; the connection cannot be used afterwards.
    pub async fn send_refusal(&mut self, status: u16, text: &str, is_head: bool) -> io::Result<()> {
        self.exchange.close_after_response();
        self.exchange.send_text(status, b"", &format!("{text}\n"), is_head).await
    }
}
