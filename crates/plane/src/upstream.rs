//! How are servers asked: connections, their reuse, and what can go wrong?
//!
//! The server is whoever stands behind: an origin, a node of a cluster, another proxy.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

use assay_http::head::{HeadError, ResponseHead};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::clock::coarse_ns;
use crate::wire::{self, Input, Scratch};

/// Most idle connections that are kept to one upstream.
const MOST_IDLE: usize = 4096;
/// Most interim answers (1xx) to one request: a server that goes on and on holds everyone who waits for it.
const MOST_INTERIM: u32 = 32;

/// Why a server gave no usable answer. The texts go to the client.
#[derive(Debug, Error)]
pub enum UpstreamError {
    /// Its name has no address.
    #[error("the address of {0} is not known")]
    Unknown(String),
    /// No connection.
    #[error("the server at {0} could not be reached: {1}")]
    Unreachable(SocketAddr, io::Error),
    /// It did not answer in time.
    #[error("the server at {0} did not answer in time")]
    TimedOut(SocketAddr),
    /// It closed the connection without an answer.
    #[error("the server at {0} closed the connection without an answer")]
    Lost(SocketAddr),
    /// What it answered is not HTTP, or makes no sense here.
    #[error("the answer of the server at {0} is not usable: {1}")]
    BadReply(SocketAddr, HeadError),
}

impl UpstreamError {
    /// The status that tells the client.
    pub fn status(&self) -> u16 {
        match self {
            UpstreamError::TimedOut(_) => 504,
            _ => 502,
        }
    }
}

/// How long a server may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// To accept a connection.
    pub connect: Duration,
    /// For each step of an answer.
    pub reply: Duration,
}

/// A connection to an upstream.
pub struct Upstream {
    /// Where it is.
    pub address: SocketAddr,
    /// The connection.
    pub stream: TcpStream,
    /// What came and was not used.
    pub input: Input,
    /// Interim answers since it was connected or taken from the pool.
    interim_answers: u32,
}

/// Idle connections to servers.
#[derive(Default)]
pub struct Pool {
    idle: RefCell<HashMap<SocketAddr, Vec<Idle>, BuildHasherDefault<AddressHasher>>>,
}

struct Idle {
    stream: TcpStream,
    since_ns: u64,
}

/// A short way to tell addresses apart: a connection is looked for and given back for every request.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        // The fractional part of the golden ratio, which spreads neighbours far apart.
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        // What tables take from both ends has to depend on everything.
        self.0 ^ (self.0 >> 32)
    }
}

impl Pool {
    /// The idle connection to a server that was used last and is not known to be closed.
    pub fn take(&self, address: SocketAddr) -> Option<Upstream> {
        let mut idle = self.idle.borrow_mut();
        let connections = idle.get_mut(&address)?;
        while let Some(Idle { stream, .. }) = connections.pop() {
            // Nothing may come on an idle connection: bytes or an end make it useless.
            let is_quiet =
                matches!(stream.try_read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
            if is_quiet {
                return Some(Upstream::new(address, stream));
            }
        }
        None
    }

    /// Keeps a connection whose exchange is complete, unless more came than was asked for.
    pub fn put_back(&self, upstream: Upstream) {
        if !upstream.input.unread().is_empty() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let connections = idle.entry(upstream.address).or_default();
        if connections.len() < MOST_IDLE {
            connections.push(Idle { stream: upstream.stream, since_ns: coarse_ns() });
        }
    }

    /// Closes what has been idle for longer than this.
    pub fn close_older_than(&self, age: Duration) {
        let now_ns = coarse_ns();
        self.idle.borrow_mut().retain(|_, connections| {
            connections.retain(|idle| u128::from(now_ns.saturating_sub(idle.since_ns)) < age.as_nanos());
            !connections.is_empty()
        });
    }
}

impl Upstream {
    fn new(address: SocketAddr, stream: TcpStream) -> Self {
        Self { address, stream, input: Input::default(), interim_answers: 0 }
    }

    /// Opens a connection.
    pub async fn connect(address: SocketAddr, patience: Patience) -> Result<Self, UpstreamError> {
        match timeout(patience.connect, TcpStream::connect(address)).await {
            Err(_) => Err(UpstreamError::TimedOut(address)),
            Ok(Err(error)) => Err(UpstreamError::Unreachable(address, error)),
            Ok(Ok(stream)) => {
                // Without it, the end of a request could wait for the acknowledgement of its beginning.
                stream.set_nodelay(true).map_err(|error| UpstreamError::Unreachable(address, error))?;
                Ok(Self::new(address, stream))
            }
        }
    }

    /// Sends bytes.
    pub async fn send(
        &mut self,
        slices: &mut [IoSlice<'_>],
        patience: Patience,
    ) -> Result<(), UpstreamError> {
        wire::write_all(&mut self.stream, slices, patience.reply).await.map_err(|error| self.failure(error))
    }

    /// Waits until a complete head is in the input: its length and status. Nothing is lost when the future is
    /// dropped.
    pub async fn head(
        &mut self,
        scratch: &Scratch,
        patience: Patience,
    ) -> Result<(usize, u16), UpstreamError> {
        loop {
            match ResponseHead::parse(self.input.unread()) {
                Err(error) => return Err(UpstreamError::BadReply(self.address, error)),
                Ok(Some((head, length))) => return Ok((length, head.status)),
                Ok(None) => {}
            }
            match self.input.fill(&mut self.stream, scratch, patience.reply).await {
                Ok(0) if self.input.unread().is_empty() => return Err(UpstreamError::Lost(self.address)),
                Ok(0) => {
                    let error = HeadError::Syntax("the connection ended within the head");
                    return Err(UpstreamError::BadReply(self.address, error));
                }
                Ok(_) => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
    }

    /// Passes over an interim answer of this length, unless there have been too many.
    pub fn pass_over_interim(&mut self, length: usize) -> Result<(), UpstreamError> {
        self.input.consume(length);
        self.count_interim()
    }

    /// Counts an interim answer; an error when there have been too many.
    pub fn count_interim(&mut self) -> Result<(), UpstreamError> {
        self.interim_answers += 1;
        if self.interim_answers > MOST_INTERIM {
            let error = HeadError::Syntax("interim answers without end");
            return Err(UpstreamError::BadReply(self.address, error));
        }
        Ok(())
    }

    /// Waits for the head of the final answer and passes over interim ones: its length.
    pub async fn final_head(
        &mut self,
        scratch: &Scratch,
        patience: Patience,
    ) -> Result<usize, UpstreamError> {
        loop {
            match self.head(scratch, patience).await? {
                (length, 100 | 102..=199) => self.pass_over_interim(length)?,
                (length, _) => return Ok(length),
            }
        }
    }

    /// What an error of its connection means, before it has answered.
    pub fn failure(&self, error: io::Error) -> UpstreamError {
        match error.kind() {
            io::ErrorKind::TimedOut => UpstreamError::TimedOut(self.address),
            _ => UpstreamError::Lost(self.address),
        }
    }
}

/// Sends a request without a body and waits for the head of the final answer: the connection, and the length
/// of the head in its input. An idle connection may have been closed by the server just now: then a new one
/// is tried.
pub async fn exchange(
    pool: &Pool,
    scratch: &Scratch,
    address: SocketAddr,
    request: &[u8],
    patience: Patience,
) -> Result<(Upstream, usize), UpstreamError> {
    if let Some(mut upstream) = pool.take(address) {
        match ask(&mut upstream, scratch, request, patience).await {
            Ok(length) => return Ok((upstream, length)),
            Err(UpstreamError::Lost(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    let mut upstream = Upstream::connect(address, patience).await?;
    let length = ask(&mut upstream, scratch, request, patience).await?;
    Ok((upstream, length))
}

async fn ask(
    upstream: &mut Upstream,
    scratch: &Scratch,
    request: &[u8],
    patience: Patience,
) -> Result<usize, UpstreamError> {
    upstream.send(&mut [IoSlice::new(request)], patience).await?;
    upstream.final_head(scratch, patience).await
}

/// The address of `host:port`, looked up by the system.
pub async fn resolve(name: &str, patience: Patience) -> Result<SocketAddr, UpstreamError> {
    let found = timeout(patience.connect, tokio::net::lookup_host(name)).await;
    let first = found.ok().and_then(Result::ok).and_then(|mut addresses| addresses.next());
    first.ok_or_else(|| UpstreamError::Unknown(name.to_owned()))
}
