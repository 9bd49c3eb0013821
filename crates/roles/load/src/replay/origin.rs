//! Simulated origins that serve every URL of a log, where its real origins are not available.
//!
//! *Simulated origins* are a thread of this process that responds as the [catalogue](crate::replay::catalogue) says: status, size
//! and type as the log has them, with bytes of their own making. Each response says which request caused it, so that the other
//! end can tell hits; what may be kept is fresh for one lifetime, and can be confirmed by its `ETag`.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_base::clock::monotonic_ns;
use assay_http::date::{DATE_BYTES, write_date};
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;
use assay_http::status::reason;
use assay_http::target::Target;
use assay_net::HEALTH_PATH;
use assay_net::body::BodyError;
use assay_net::connection::Resources;
use assay_net::exchange::{self, AfterResponse, ClientLimits, Exchange, Handler, Refusal, Request};
use assay_net::listen::{accept, listen_std};
use assay_net::thread_times::{ThreadTimes, this_thread};
use assay_workload::mark::HEADER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use crate::replay::ReplayError;
use crate::replay::catalogue::{Catalogue, CatalogueEntry, key};
use crate::replay::content::ObjectBytes;
use crate::replay::mark::{ReplayMark, request_number};

/// Longest idle time of a proxy's connection, and of each step of a response.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Everything was modified last at this instant: 2001-09-09.
const MODIFIED_S: u64 = 1_000_000_000;

/// State that simulated origins and their clients share.
#[derive(Debug)]
pub struct SimulatedOrigins {
    pub(crate) catalogue: Catalogue,
    pub(crate) content: ObjectBytes,
    lifetime_s: u64,
    think: Duration,
    counts: AtomicCounts,
    /// The number of the thread that serves them.
    thread: OnceLock<u32>,
}

#[derive(Debug, Default)]
struct AtomicCounts {
    requests: AtomicU64,
    confirmed: AtomicU64,
    unknown: AtomicU64,
    bytes: AtomicU64,
}

/// What simulated origins did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OriginCounts")]
pub struct SimulatedCounts {
    /// Requests that came.
    pub requests: u64,
    /// Requests that were answered with 304: the proxy had it.
    pub confirmed: u64,
    /// Requests for what the log does not have.
    pub unknown: u64,
    /// Bytes of bodies that were sent.
    pub body_bytes: u64,
}

impl SimulatedOrigins {
    /// Origins of what the catalogue has; a response that may be kept is fresh for `lifetime`, and each takes `think` at
    /// least.
    pub fn new(catalogue: Catalogue, lifetime: Duration, think: Duration) -> Self {
        Self {
            catalogue,
            content: ObjectBytes::default(),
            lifetime_s: lifetime.as_secs(),
            think,
            counts: AtomicCounts::default(),
            thread: OnceLock::new(),
        }
    }

    /// Usage of their thread up to now; none: it does not run, or the system does not tell.
    pub(crate) fn thread_times(&self) -> Option<ThreadTimes> {
        ThreadTimes::of_thread(*self.thread.get()?)
    }

    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Counters of responses so far.
    pub fn counts(&self) -> SimulatedCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SimulatedCounts {
            requests: of(&self.counts.requests),
            confirmed: of(&self.counts.confirmed),
            unknown: of(&self.counts.unknown),
            body_bytes: of(&self.counts.bytes),
        }
    }
}

/// Listener of simulated origins: for everything, or for one host.
#[derive(Debug, Clone)]
pub struct OriginListener {
    pub listen: SocketAddr,
    /// Host that all requests are for, whatever their `Host`; none: the host that the request names.
    pub host: Option<String>,
}

/// Running simulated origins; they end when dropped.
#[derive(Debug)]
pub struct OriginServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
}

impl OriginServer {
    /// Opens all listeners.
    pub fn start(
        listeners: Vec<OriginListener>,
        simulated: Arc<SimulatedOrigins>,
    ) -> Result<Self, ReplayError> {
        let (mut open, mut addresses) = (Vec::new(), Vec::new());
        for listener in listeners {
            let refused = |cause| ReplayError::Origin { address: listener.listen, cause };
            let socket = listen_std(listener.listen).map_err(refused)?;
            addresses.push(socket.local_addr().map_err(refused)?);
            open.push((socket, listener.host));
        }
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("origins".into())
            .spawn(move || serve(open, simulated, stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread), addresses })
    }

    /// Addresses in the order of the listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for OriginServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What went wrong there shows in missing responses.
            let _ = thread.join();
        }
    }
}

fn serve(
    listeners: Vec<(TcpListener, Option<String>)>,
    simulated: Arc<SimulatedOrigins>,
    stopped: oneshot::Receiver<()>,
) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) else {
        return;
    };
    simulated.thread.get_or_init(this_thread);
    runtime.block_on(async move {
        let resources = Resources::new();
        resources.run_deadlines();
        for (socket, host) in listeners {
            let (resources, host) = (Rc::clone(&resources), host.map(Rc::<str>::from));
            let simulated = Arc::clone(&simulated);
            spawn_local(async move {
                let Ok(socket) = tokio::net::TcpListener::from_std(socket) else { return };
                loop {
                    let (stream, _) = accept(&socket).await;
                    let exchange = Exchange::new(stream, &resources, ClientLimits::new(TIMEOUT, TIMEOUT));
                    let mut client =
                        ProxyConnection { exchange, simulated: Arc::clone(&simulated), host: host.clone() };
                    // A proxy that leaves in the middle has its reasons.
                    spawn_local(async move { exchange::serve(&mut client).await });
                }
            });
        }
        // Either is the end.
        let _ = stopped.await;
    });
}

/// A response to be sent.
struct SimulatedResponse {
    status: u16,
    lines: Vec<u8>,
    framing: BodyFraming,
    key: u64,
    body_bytes: u64,
    /// After so long.
    think: Duration,
}

/// A connection of a proxy.
struct ProxyConnection {
    exchange: Exchange,
    simulated: Arc<SimulatedOrigins>,
    /// The host that all requests are for; none: the one that they name.
    host: Option<Rc<str>>,
}

impl Handler for ProxyConnection {
    type Transport = TcpStream;

    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, .. }: &Request<'_>) -> io::Result<AfterResponse> {
        let is_head = head.method == "HEAD";
        if let Err(error) = Target::of(head) {
            self.exchange.close_after_response();
            let text = format!("{error}\n");
            return self
                .exchange
                .send_text(error.status(), b"", &text, is_head)
                .await
                .map(|()| AfterResponse::Request);
        }
        let has_body = !self.exchange.is_body_read();
        if has_body && let Err(error) = self.skip_body(head.expect_continue).await {
            return self.refuse_body(error, is_head).await.map(|()| AfterResponse::Request);
        }
        let response = self.simulated.response(head, !has_body, self.host.as_deref());
        if !response.think.is_zero() {
            tokio::time::sleep(response.think).await;
        }
        self.send(&response).await.map(|()| AfterResponse::Request)
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        self.exchange.send_text(refusal.status(), b"", &format!("{refusal}\n"), is_head).await
    }
}

impl ProxyConnection {
    /// Reads a body that means nothing here, so that what is behind it is the next request.
    async fn skip_body(&mut self, is_expected: bool) -> Result<(), BodyError> {
        if is_expected {
            self.exchange.send_continue().await?;
        }
        while self.exchange.next_part().await?.is_some() {}
        Ok(())
    }

    async fn refuse_body(&mut self, error: BodyError, is_head: bool) -> io::Result<()> {
        match error {
            BodyError::Coding(error) => {
                self.exchange.close_after_response();
                self.exchange.send_text(400, b"", &format!("{error}\n"), is_head).await
            }
            BodyError::Io(error) => Err(error),
            BodyError::Truncated => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    async fn send(&mut self, response: &SimulatedResponse) -> io::Result<()> {
        let simulated = Arc::clone(&self.simulated);
        let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status)).into_bytes();
        head.extend_from_slice(&response.lines);
        self.exchange.append_framing(&mut head, response.framing);
        let (mut before, mut at) = (&head[..], 0);
        while !before.is_empty() || at < response.body_bytes {
            let there = simulated.content.from(response.key, at);
            let left = usize::try_from(response.body_bytes - at).unwrap_or(usize::MAX);
            let part = &there[..there.len().min(left)];
            self.exchange.write(&[before, part]).await?;
            before = &[];
            at += part.len() as u64;
        }
        simulated.counts.bytes.fetch_add(response.body_bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl SimulatedOrigins {
    fn response(&self, head: &RequestHead<'_>, is_plain: bool, host: Option<&str>) -> SimulatedResponse {
        let plain = |status: u16| SimulatedResponse {
            status,
            lines: b"Cache-Control: no-store\r\n".to_vec(),
            framing: BodyFraming::Length(0),
            key: 0,
            body_bytes: 0,
            think: Duration::ZERO,
        };
        let Ok(target) = Target::of(head) else { return plain(400) };
        if target.path == HEALTH_PATH {
            return plain(200);
        }
        if !is_plain || !matches!(head.method, "GET" | "HEAD") {
            return plain(405);
        }
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let authority = host.or(target.authority).unwrap_or_default();
        let mut path = Vec::with_capacity(target.path.len() + 1);
        target.write_path(&mut path);
        let key = key(authority, &String::from_utf8_lossy(&path));
        if !self.catalogue.has(key) {
            self.counts.unknown.fetch_add(1, Ordering::Relaxed);
        }
        let entry = self.catalogue.entry(key);
        let status = if is_confirmed(head, key, entry) { 304 } else { entry.status };
        if status == 304 {
            self.counts.confirmed.fetch_add(1, Ordering::Relaxed);
        }
        let has_body = head.method != "HEAD" && !matches!(status, 204 | 304);
        SimulatedResponse {
            status,
            lines: self.lines(head, key, entry, status),
            framing: if matches!(status, 204 | 304) {
                BodyFraming::None
            } else {
                BodyFraming::Length(entry.bytes)
            },
            key,
            body_bytes: if has_body { entry.bytes } else { 0 },
            think: self.think,
        }
    }

    fn lines(&self, requested: &RequestHead<'_>, key: u64, entry: CatalogueEntry, status: u16) -> Vec<u8> {
        let cause = requested.header(HEADER).and_then(request_number);
        let made_us = monotonic_ns().div_ceil(1000);
        let mut mark = String::with_capacity(64);
        ReplayMark { cause, key, made_us, status }.write(&mut mark);
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let [now, modified] = [now_s, MODIFIED_S].map(|second| {
            let mut date = [0; DATE_BYTES];
            write_date(second, &mut date);
            String::from_utf8_lossy(&date).into_owned()
        });
        let mut lines = format!("Date: {now}\r\n{HEADER}: {mark}\r\n");
        if entry.is_storable() {
            lines += &format!(
                "Cache-Control: public, max-age={}\r\nETag: \"{key:016x}\"\r\nLast-Modified: {modified}\r\n",
                self.lifetime_s
            );
        } else {
            lines += "Cache-Control: no-store\r\n";
        }
        if !matches!(status, 204 | 304) {
            lines += &format!("Content-Type: {}\r\n", self.catalogue.type_of(entry));
        }
        lines.into_bytes()
    }
}

/// True where a 304 response is due: the client already has what is there.
fn is_confirmed(head: &RequestHead<'_>, key: u64, entry: CatalogueEntry) -> bool {
    let tag = format!("\"{key:016x}\"");
    entry.is_storable()
        // `If-None-Match` goes before `If-Modified-Since`, and compares weakly (RFC 9110, 13.1.2 and 13.2.2).
        && match (head.header("if-none-match"), head.header("if-modified-since")) {
            (Some(tags), _) => {
                String::from_utf8_lossy(tags).split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
            }
            (None, Some(date)) => {
                assay_http::date::parse_date(date).is_some_and(|second| second >= MODIFIED_S)
            }
            (None, None) => false,
        }
}
