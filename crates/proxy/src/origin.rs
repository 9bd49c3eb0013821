//! How are origins asked: connections, their reuse, and what can go wrong?

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, ResponseHead};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::reply::{Reply, Times};
use crate::target::Route;
use crate::wire::{self, Input, Scratch};

/// Most idle connections that are kept to one origin.
const MOST_IDLE: usize = 4096;

/// Why an origin gave no usable answer. The texts go to the client.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no origin to ask.
    #[error("no origin is configured for this request")]
    Nowhere,
    /// Its name has no address.
    #[error("the address of {0} is not known")]
    Unknown(String),
    /// It is this proxy itself.
    #[error("the request leads back to this proxy")]
    Loop,
    /// No connection.
    #[error("the origin at {0} could not be reached: {1}")]
    Unreachable(SocketAddr, io::Error),
    /// Every parent was asked in vain, and the origin may not be asked.
    #[error("no parent cache could be asked, and the origin may only be asked through one")]
    NoParent,
    /// It did not answer in time.
    #[error("the origin at {0} did not answer in time")]
    TimedOut(SocketAddr),
    /// It closed the connection without an answer.
    #[error("the origin at {0} closed the connection without an answer")]
    Lost(SocketAddr),
    /// What it answered is not HTTP, or makes no sense here.
    #[error("the answer of the origin at {0} is not usable: {1}")]
    BadReply(SocketAddr, HeadError),
    /// A 304 to a request without a condition of ours.
    #[error("the origin at {0} confirmed what it was not asked about")]
    BadConfirmation(SocketAddr),
}

impl Failure {
    /// The status that tells the client.
    pub fn status(&self) -> u16 {
        match self {
            Failure::TimedOut(_) => 504,
            Failure::Loop => 508,
            _ => 502,
        }
    }
}

/// How long an origin may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// To accept a connection.
    pub connect: Duration,
    /// For each step of an answer.
    pub reply: Duration,
}

/// A connection to an origin.
pub struct Origin {
    /// Where it is.
    pub address: SocketAddr,
    /// The connection.
    pub stream: TcpStream,
    /// What came and was not used.
    pub input: Input,
}

/// The head of an answer, and what it says about the rest.
pub struct Answer {
    /// The part that goes to clients.
    pub reply: Reply,
    /// How the body is delimited.
    pub framing: BodyFraming,
    /// `Content-Length`, whether or not there is a body.
    pub described_length: Option<u64>,
    /// The connection can be used again when the body was read.
    pub persists: bool,
}

impl Answer {
    /// Bytes of the body, if they are known.
    pub fn body_length(&self) -> Option<u64> {
        match self.framing {
            BodyFraming::None => Some(0),
            BodyFraming::Length(bytes) => Some(bytes),
            BodyFraming::Chunked | BodyFraming::UntilClose => None,
        }
    }
}

/// Idle connections to origins.
#[derive(Default)]
pub struct Pool {
    idle: RefCell<HashMap<SocketAddr, Vec<Idle>>>,
}

struct Idle {
    stream: TcpStream,
    since: Instant,
}

impl Pool {
    /// The idle connection to an origin that was used last and is not known to be closed.
    pub fn take(&self, address: SocketAddr) -> Option<Origin> {
        let mut idle = self.idle.borrow_mut();
        let connections = idle.get_mut(&address)?;
        while let Some(Idle { stream, .. }) = connections.pop() {
            // Nothing may come on an idle connection: bytes or an end make it useless.
            let is_quiet =
                matches!(stream.try_read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
            if is_quiet {
                return Some(Origin { address, stream, input: Input::default() });
            }
        }
        None
    }

    /// Keeps a connection whose exchange is complete, unless more came than was asked for.
    pub fn put_back(&self, origin: Origin) {
        if !origin.input.unread().is_empty() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let connections = idle.entry(origin.address).or_default();
        if connections.len() < MOST_IDLE {
            connections.push(Idle { stream: origin.stream, since: Instant::now() });
        }
    }

    /// Closes what has been idle for longer than this.
    pub fn close_older_than(&self, age: Duration) {
        self.idle.borrow_mut().retain(|_, connections| {
            connections.retain(|idle| idle.since.elapsed() < age);
            !connections.is_empty()
        });
    }
}

impl Origin {
    /// Opens a connection.
    pub async fn connect(address: SocketAddr, patience: Patience) -> Result<Self, Failure> {
        match timeout(patience.connect, TcpStream::connect(address)).await {
            Err(_) => Err(Failure::TimedOut(address)),
            Ok(Err(error)) => Err(Failure::Unreachable(address, error)),
            Ok(Ok(stream)) => {
                // Without it, the end of a request could wait for the acknowledgement of its beginning.
                stream.set_nodelay(true).map_err(|error| Failure::Unreachable(address, error))?;
                Ok(Self { address, stream, input: Input::default() })
            }
        }
    }

    /// Sends bytes.
    pub async fn send(&mut self, slices: &mut [IoSlice<'_>], patience: Patience) -> Result<(), Failure> {
        wire::write_all(&mut self.stream, slices, patience.reply).await.map_err(|error| self.failure(error))
    }

    /// Waits until a complete head is in the input: its length and status. Nothing is lost when the future is
    /// dropped.
    pub async fn head(&mut self, scratch: &Scratch, patience: Patience) -> Result<(usize, u16), Failure> {
        loop {
            match ResponseHead::parse(self.input.unread()) {
                Err(error) => return Err(Failure::BadReply(self.address, error)),
                Ok(Some((head, length))) => return Ok((length, head.status)),
                Ok(None) => {}
            }
            match self.input.fill(&mut self.stream, scratch, patience.reply).await {
                Ok(0) if self.input.unread().is_empty() => return Err(Failure::Lost(self.address)),
                Ok(0) => {
                    let error = HeadError::Syntax("the connection ended within the head");
                    return Err(Failure::BadReply(self.address, error));
                }
                Ok(_) => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
    }

    /// Waits for the head of the final answer and passes over interim ones: its length.
    pub async fn final_head(&mut self, scratch: &Scratch, patience: Patience) -> Result<usize, Failure> {
        loop {
            match self.head(scratch, patience).await? {
                (length, 100 | 102..=199) => self.input.consume(length),
                (length, _) => return Ok(length),
            }
        }
    }

    /// Takes the head of the final answer to a request of `method` out of the input; `name` is ours.
    pub fn answer(
        &mut self,
        length: usize,
        method: &str,
        name: &str,
        times: Times,
    ) -> Result<Answer, Failure> {
        let answer =
            self.read_answer(method, name, times).map_err(|error| Failure::BadReply(self.address, error))?;
        self.input.consume(length);
        Ok(answer)
    }

    fn read_answer(&self, method: &str, name: &str, times: Times) -> Result<Answer, HeadError> {
        let head = ResponseHead::parse(self.input.unread())?;
        let (head, _) = head.ok_or(HeadError::Syntax("the head is not complete"))?;
        if head.status == 101 {
            return Err(HeadError::Syntax("it changes the protocol, which nobody asked for"));
        }
        Ok(Answer {
            reply: Reply::from_origin(&head, name, times)?,
            framing: head.body(method),
            described_length: head.facts.content_length,
            persists: head.persists(method),
        })
    }

    fn failure(&self, error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::TimedOut => Failure::TimedOut(self.address),
            _ => Failure::Lost(self.address),
        }
    }
}

/// Sends a request without a body and waits for the head of the final answer: the connection, and the length
/// of the head in its input. An idle connection may have been closed by the origin just now: then a new one
/// is tried.
pub async fn exchange(
    pool: &Pool,
    scratch: &Scratch,
    address: SocketAddr,
    request: &[u8],
    patience: Patience,
) -> Result<(Origin, usize), Failure> {
    if let Some(mut origin) = pool.take(address) {
        match ask(&mut origin, scratch, request, patience).await {
            Ok(length) => return Ok((origin, length)),
            Err(Failure::Lost(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    let mut origin = Origin::connect(address, patience).await?;
    let length = ask(&mut origin, scratch, request, patience).await?;
    Ok((origin, length))
}

async fn ask(
    origin: &mut Origin,
    scratch: &Scratch,
    request: &[u8],
    patience: Patience,
) -> Result<usize, Failure> {
    origin.send(&mut [IoSlice::new(request)], patience).await?;
    origin.final_head(scratch, patience).await
}

/// The address of a route; names are looked up.
pub async fn address_of(route: &Route, own: SocketAddr, patience: Patience) -> Result<SocketAddr, Failure> {
    let address = match route {
        Route::Nowhere => return Err(Failure::Nowhere),
        Route::Address(address) => *address,
        Route::Name(name) => {
            let found = timeout(patience.connect, tokio::net::lookup_host(name.as_str())).await;
            let first = found.ok().and_then(Result::ok).and_then(|mut addresses| addresses.next());
            first.ok_or_else(|| Failure::Unknown(name.clone()))?
        }
    };
    if address == own { Err(Failure::Loop) } else { Ok(address) }
}
