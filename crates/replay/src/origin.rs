//! Who answers every URL of a log, where its real origins are not to be had?
//!
//! *Simulated origins* are a thread of this process that answers what the [catalogue](crate::catalogue) says: status, size
//! and type as the log has them, with bytes of their own making. Each reply says which request caused it, so that the other
//! end can tell hits; what may be kept is fresh for one lifetime, and can be confirmed by its `ETag`.

use std::io::IoSlice;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_http::date::{DATE_BYTES, write_date};
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;
use assay_http::target::Target;
use assay_plane::clock::monotonic_ns;
use assay_plane::listen::listen_alone;
use assay_plane::wire::{Input, Scratch, write_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use crate::catalogue::{Catalogue, Thing, key};
use crate::content::Content;
use crate::error::ReplayError;
use crate::stamp::{FIELD, Stamp, number_of};

/// How long a connection of a proxy may be idle, and each step of an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long nobody is accepted after there was no descriptor left.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(20);
/// What whoever starts a proxy asks through it; no part of a log, and counted nowhere.
const HEALTH: &str = "/assay/health";
/// Everything was modified last at this instant: 2001-09-09.
const MODIFIED_S: u64 = 1_000_000_000;

/// What simulated origins, and whoever asks them, know.
#[derive(Debug)]
pub struct Simulated {
    pub(crate) catalogue: Catalogue,
    pub(crate) content: Content,
    lifetime_s: u64,
    think: Duration,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    confirmed: AtomicU64,
    unknown: AtomicU64,
    bytes: AtomicU64,
}

/// What simulated origins did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OriginCounts {
    /// Requests that came.
    pub requests: u64,
    /// Requests that were answered with 304: the proxy had it.
    pub confirmed: u64,
    /// Requests for what the log does not have.
    pub unknown: u64,
    /// Bytes of bodies that were sent.
    pub body_bytes: u64,
}

impl Simulated {
    /// Origins of what the catalogue has; an answer that may be kept is fresh for `lifetime`, and each takes `think` at
    /// least.
    pub fn new(catalogue: Catalogue, lifetime: Duration, think: Duration) -> Self {
        Self {
            catalogue,
            content: Content::default(),
            lifetime_s: lifetime.as_secs(),
            think,
            counts: Counts::default(),
        }
    }

    /// What is known of the log.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// What was answered so far.
    pub fn counts(&self) -> OriginCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        OriginCounts {
            requests: of(&self.counts.requests),
            confirmed: of(&self.counts.confirmed),
            unknown: of(&self.counts.unknown),
            body_bytes: of(&self.counts.bytes),
        }
    }
}

/// Where simulated origins listen: for everything, or for one host.
#[derive(Debug, Clone)]
pub struct Door {
    /// The address.
    pub listen: SocketAddr,
    /// Whatever `Host` says, it is for this one; none: for the host that the request names.
    pub host: Option<String>,
}

/// Simulated origins that answer; dropped, they end.
#[derive(Debug)]
pub struct Origins {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
}

impl Origins {
    /// Opens all doors.
    pub fn start(doors: Vec<Door>, simulated: Arc<Simulated>) -> Result<Self, ReplayError> {
        let (mut open, mut addresses) = (Vec::new(), Vec::new());
        for door in doors {
            let refused = |cause| ReplayError::Origin { address: door.listen, cause };
            let listener = listen_alone(door.listen).map_err(refused)?;
            addresses.push(listener.local_addr().map_err(refused)?);
            open.push((listener, door.host));
        }
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("origins".into())
            .spawn(move || serve(open, simulated, stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread), addresses })
    }

    /// Where they listen, in the order of the doors.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Origins {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What went wrong there shows in what it did not answer.
            let _ = thread.join();
        }
    }
}

fn serve(
    doors: Vec<(TcpListener, Option<String>)>,
    simulated: Arc<Simulated>,
    stopped: oneshot::Receiver<()>,
) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) else {
        return;
    };
    runtime.block_on(async move {
        let shared = Rc::new(Shared { simulated, scratch: Scratch::new() });
        for (listener, host) in doors {
            let (shared, host) = (Rc::clone(&shared), host.map(Rc::<str>::from));
            spawn_local(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => {
                            let (shared, host) = (Rc::clone(&shared), host.clone());
                            spawn_local(async move { connection(stream, &shared, host.as_deref()).await });
                        }
                        // The connection is gone, or no descriptor is left: others end, and then there are some again.
                        Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
                    }
                }
            });
        }
        // Either is the end.
        let _ = stopped.await;
    });
}

struct Shared {
    simulated: Arc<Simulated>,
    scratch: Scratch,
}

/// What is to be answered.
struct Reply {
    head: Vec<u8>,
    key: u64,
    body_bytes: u64,
    persists: bool,
    /// After so long.
    think: Duration,
}

/// Answers one connection to its end. A proxy that leaves or says nonsense finds it closed.
async fn connection(mut stream: TcpStream, shared: &Shared, host: Option<&str>) {
    let mut input = Input::default();
    loop {
        let (reply, length) = loop {
            match RequestHead::parse(input.unread()) {
                Ok(Some((head, length))) => break (shared.simulated.reply(&head, host), length),
                Ok(None) => {}
                Err(_) => return,
            }
            if !matches!(input.fill(&mut stream, &shared.scratch, PATIENCE).await, Ok(1..)) {
                return;
            }
        };
        input.consume(length);
        if !reply.think.is_zero() {
            tokio::time::sleep(reply.think).await;
        }
        if send(&mut stream, shared, &reply).await.is_err() || !reply.persists {
            return;
        }
    }
}

async fn send(stream: &mut TcpStream, shared: &Shared, reply: &Reply) -> std::io::Result<()> {
    let content = &shared.simulated.content;
    let some = |at: u64| {
        let there = content.from(reply.key, at);
        let left = usize::try_from(reply.body_bytes - at).unwrap_or(usize::MAX);
        &there[..there.len().min(left)]
    };
    let mut part = some(0);
    let mut at = part.len() as u64;
    write_all(stream, &mut [IoSlice::new(&reply.head), IoSlice::new(part)], PATIENCE).await?;
    while at < reply.body_bytes {
        part = some(at);
        at += part.len() as u64;
        write_all(stream, &mut [IoSlice::new(part)], PATIENCE).await?;
    }
    shared.simulated.counts.bytes.fetch_add(reply.body_bytes, Ordering::Relaxed);
    Ok(())
}

impl Simulated {
    fn reply(&self, head: &RequestHead<'_>, host: Option<&str>) -> Reply {
        let is_plain = matches!(head.body(), BodyFraming::None | BodyFraming::Length(0));
        let plain = |status: u16| Reply {
            head: format!(
                "HTTP/1.1 {status} {}\r\nCache-Control: no-store\r\nContent-Length: 0\r\n{}\r\n",
                reason(status),
                if is_plain { "" } else { "Connection: close\r\n" }
            )
            .into_bytes(),
            key: 0,
            body_bytes: 0,
            // What is left of a body is not read.
            persists: is_plain && head.persists(),
            think: Duration::ZERO,
        };
        let Ok(target) = Target::of(head) else { return plain(400) };
        if target.path == HEALTH {
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
        let thing = self.catalogue.thing(key);
        let status = if is_confirmed(head, key, thing) { 304 } else { thing.status };
        if status == 304 {
            self.counts.confirmed.fetch_add(1, Ordering::Relaxed);
        }
        let has_body = head.method != "HEAD" && !matches!(status, 204 | 304);
        Reply {
            head: self.head(head, key, thing, status),
            key,
            body_bytes: if has_body { thing.bytes } else { 0 },
            persists: head.persists(),
            think: self.think,
        }
    }

    fn head(&self, asked: &RequestHead<'_>, key: u64, thing: Thing, status: u16) -> Vec<u8> {
        let cause = asked.header(FIELD).and_then(number_of);
        let made_us = monotonic_ns().div_ceil(1000);
        let mut stamp = String::with_capacity(64);
        Stamp { cause, key, made_us, status }.write(&mut stamp);
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let [now, modified] = [now_s, MODIFIED_S].map(|second| {
            let mut date = [0; DATE_BYTES];
            write_date(second, &mut date);
            String::from_utf8_lossy(&date).into_owned()
        });
        let mut head = format!("HTTP/1.1 {status} {}\r\nDate: {now}\r\n{FIELD}: {stamp}\r\n", reason(status));
        if thing.is_storable() {
            head += &format!(
                "Cache-Control: public, max-age={}\r\nETag: \"{key:016x}\"\r\nLast-Modified: {modified}\r\n",
                self.lifetime_s
            );
        } else {
            head += "Cache-Control: no-store\r\n";
        }
        if !matches!(status, 204 | 304) {
            head += &format!(
                "Content-Type: {}\r\nContent-Length: {}\r\n",
                self.catalogue.type_of(thing),
                thing.bytes
            );
        }
        if !asked.persists() {
            head += "Connection: close\r\n";
        }
        head += "\r\n";
        head.into_bytes()
    }
}

/// True where the request says that whoever asks has what is there.
fn is_confirmed(head: &RequestHead<'_>, key: u64, thing: Thing) -> bool {
    let tag = format!("\"{key:016x}\"");
    thing.is_storable()
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

/// A word for people; nobody reads it.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        403 => "Forbidden",
        404 => "Not Found",
        500..=599 => "Server Error",
        _ => "As Logged",
    }
}
