//! What does one connection of a client go through?
//!
//! Requests are read one after the other; each is answered from the Collector before the next is looked at, so one that
//! pipelines gets its answers in order.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use assay_http::head::RequestHead;
use assay_plane::upstream::{Patience, Pool};
use assay_plane::wire::{self, Input, Scratch};
use assay_role::evaluation::{Turns, When};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::board::{Board, count};
use super::exchange::Exchange;
use super::lanes::ToProxies;
use super::later::Later;
use super::message::Order;
use super::tunnel;
use crate::validate::Rules;

/// How long, and how much, is read from a client that was refused, so that it gets to read why.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_READS: usize = 16;

/// How long others may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A client without a request, and each step of receiving one.
    pub client_read: Duration,
    /// Each step of sending an answer.
    pub client_write: Duration,
    /// The Collector.
    pub collector: Patience,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            client_read: Duration::from_secs(120),
            client_write: Duration::from_secs(60),
            collector: Patience { connect: Duration::from_secs(10), reply: Duration::from_secs(600) },
        }
    }
}

/// What all clients' connections share.
pub struct Shared {
    /// Counters, and where answers are told.
    pub board: Arc<Board>,
    /// What is a difference.
    pub rules: Arc<Rules>,
    /// Idle connections to the Collector.
    pub pool: Pool,
    /// Where reads land.
    pub scratch: Scratch,
    /// The Collector.
    pub collector: SocketAddr,
    /// Requests must name the whole URL.
    pub is_forward: bool,
    /// When proxies are asked.
    pub when: When,
    /// In which order.
    pub turns: Turns,
    /// Seed of the order.
    pub seed: u64,
    /// How many proxies there are.
    pub proxies: u8,
    /// Where questions to proxies go.
    pub to_proxies: UnboundedSender<ToProxies>,
    /// What is done when clients are not waiting.
    pub later: Later,
    /// What we are called in `Via`: another name in each process, since one may stand behind another.
    pub name: String,
    /// Patience.
    pub limits: Limits,
    /// No new request is begun.
    pub is_stopping: Cell<bool>,
    /// Tells those who wait for a request.
    pub stop: Notify,
    /// Tells those who wait for the last client.
    pub left: Notify,
    /// Number of the next request.
    pub next_request: Cell<u64>,
}

/// A client's connection.
pub struct Client {
    /// What it shares with others.
    pub shared: Rc<Shared>,
    /// The connection.
    pub stream: TcpStream,
    /// What came and was not used.
    pub input: Input,
    /// Its number.
    pub id: u64,
    /// Who it is.
    pub ip: IpAddr,
    /// It is closed while something of it may be unread.
    pub leaves_unread: bool,
}

/// A request, or the status and the words of a refusal.
type Asked = Result<Order, (u16, String)>;

/// Serves a connection until it ends. Errors are the client's own doing: nobody else is interested.
pub async fn serve(stream: TcpStream, (id, ip): (u64, IpAddr), shared: Rc<Shared>) {
    let mut client = Client { shared, stream, input: Input::default(), id, ip, leaves_unread: false };
    count(&client.shared.board.clients);
    count(&client.shared.board.open_clients);
    while let Ok(true) = client.turn().await {}
    if client.leaves_unread {
        client.linger().await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let shared = Rc::clone(&self.shared);
        shared.board.open_clients.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        let (id, telling) = (self.id, Rc::clone(&self.shared));
        // After its last question, which may still be put off. Nobody is left to be told at the very end.
        shared.later.put_off(move || drop(telling.to_proxies.send(ToProxies::Left(id))));
        shared.left.notify_waiters();
    }
}

impl Client {
    /// One request and its answer; whether another may follow.
    async fn turn(&mut self) -> io::Result<bool> {
        let Some(asked) = self.next_request().await? else { return Ok(false) };
        let order = match asked {
            Ok(order) => order,
            Err((status, words)) => {
                count(&self.shared.board.refused);
                self.refuse(status, &words).await?;
                return Ok(false);
            }
        };
        count(&self.shared.board.requests);
        if order.about.method == "CONNECT" {
            count(&self.shared.board.connects);
            tunnel::run(self, order).await?;
            return Ok(false);
        }
        Exchange::new(self, order).run().await
    }

    /// The next request; none: the client is done, or nothing new is to be begun.
    async fn next_request(&mut self) -> io::Result<Option<Asked>> {
        let shared = Rc::clone(&self.shared);
        loop {
            match RequestHead::parse(self.input.unread()) {
                Ok(Some((head, length))) => {
                    let number = shared.next_request.get();
                    let order = Order::new(&head, (number, self.ip), shared.is_forward, &shared.name);
                    self.input.consume(length);
                    if order.is_ok() {
                        shared.next_request.set(number + 1);
                    }
                    return Ok(Some(order.map_err(|refusal| (refusal.status(), refusal.to_string()))));
                }
                Ok(None) => {}
                Err(error) => return Ok(Some(Err((error.status(), error.to_string())))),
            }
            let is_idle = self.input.unread().is_empty();
            if is_idle && shared.is_stopping.get() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                filled = self.input.fill(&mut self.stream, &shared.scratch, shared.limits.client_read) => {
                    if filled? == 0 {
                        return Ok(None);
                    }
                }
                () = shared.stop.notified(), if is_idle => {}
            }
        }
    }

    /// Answers what is not served; after that the connection is of no use.
    pub async fn refuse(&mut self, status: u16, words: &str) -> io::Result<()> {
        self.leaves_unread = true;
        let reason = match status {
            400 => "Bad Request",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            504 => "Gateway Timeout",
            505 => "HTTP Version Not Supported",
            508 => "Loop Detected",
            _ => "Refused",
        };
        let text = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{words}\n",
            words.len() + 1
        );
        self.write(&mut [IoSlice::new(text.as_bytes())]).await
    }

    /// Sends bytes.
    pub async fn write(&mut self, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        wire::write_all(&mut self.stream, slices, self.shared.limits.client_write).await
    }

    /// Closing while something is unread resets the connection, and could take the answer with it.
    async fn linger(&mut self) {
        let _ = self.stream.shutdown().await;
        for _ in 0..LINGER_READS {
            let scratch = &self.shared.scratch;
            match wire::read(&mut self.stream, scratch, LINGER, |bytes| bytes.len()).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }
}
