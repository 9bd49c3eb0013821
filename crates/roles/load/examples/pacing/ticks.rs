//! How exactly wrk2's way of pacing sends. A stand-in for it, written from a description of what it does.
//!
//! Each connection has a schedule of its own: request *n* is due *n* periods after the connection was begun, and
//! connections are begun 5 ms apart. After a response (and at first) a connection looks whether its next request is due;
//! if not it has the event loop wake it after the time that is left, rounded up to whole milliseconds. The loop keeps
//! its timers in milliseconds and sleeps for whole milliseconds. A connection that has fallen behind sends at twice its rate
//! until it has caught up. Not here: what wrk2 measures, its scripts and its parser.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use assay_net::clock::{SECOND_NS, monotonic_ns};

use crate::due::request_id;
use crate::sender::discard;
use crate::sys::{Epoll, Row, connect, request, write_rows};

const MS_NS: u64 = 1_000_000;
/// Between the beginnings of two connections.
const STAGGER_MS: u64 = 5;

/// What is to be offered.
pub struct Job {
    pub address: SocketAddr,
    /// Requests a second, of all connections together.
    pub rate: u64,
    pub connections: u64,
    pub start_ns: u64,
    pub seconds: u64,
}

struct Connection {
    stream: Option<TcpStream>,
    began_ns: u64,
    responded: u64,
    /// When it fell behind, and how many responses it had by then; none: it is on time.
    behind: Option<(u64, u64)>,
}

impl Connection {
    fn due_ns(&self, period_ns: u64) -> u64 {
        self.began_ns + self.responded * period_ns
    }

    /// How long until it may send; 0: now.
    fn wait_ns(&mut self, period_ns: u64, now_ns: u64) -> u64 {
        let due_ns = self.due_ns(period_ns);
        if due_ns > now_ns {
            self.behind = None;
            return due_ns - now_ns;
        }
        let (since_ns, responded) = *self.behind.get_or_insert((now_ns, self.responded));
        (since_ns + (self.responded - responded) * period_ns / 2).saturating_sub(now_ns)
    }
}

struct Loop {
    epoll: Epoll,
    connections: Vec<Connection>,
    /// Milliseconds, and whose.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    period_ns: u64,
    address: SocketAddr,
    due: Vec<Row>,
    buffer: Vec<u8>,
}

/// Offers the job; writes when each request it sent was due by its connection's schedule.
pub fn run(job: &Job, out: &str) -> Result<(), Box<dyn Error>> {
    let fresh = || Connection { stream: None, began_ns: 0, responded: 0, behind: None };
    let mut this = Loop {
        epoll: Epoll::new()?,
        connections: (0..job.connections).map(|_| fresh()).collect(),
        timers: (0..job.connections)
            .map(|index| Reverse((job.start_ns / MS_NS + index * STAGGER_MS, index as usize)))
            .collect(),
        period_ns: SECOND_NS * job.connections / job.rate,
        address: job.address,
        due: Vec::new(),
        buffer: vec![0; 16_384],
    };
    let end_ns = job.start_ns + job.seconds * SECOND_NS;
    while monotonic_ns() < end_ns {
        this.turn()?;
    }
    Ok(write_rows(out, &this.due)?)
}

impl Loop {
    fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        let now_ms = monotonic_ns() / MS_NS;
        let sleep_ms = self.timers.peek().map_or(100, |Reverse((at_ms, _))| at_ms.saturating_sub(now_ms));
        for token in self.epoll.wait(sleep_ms.min(1000) as i32)? {
            let connection = &mut self.connections[token as usize];
            let Some(stream) = &mut connection.stream else { continue };
            discard(stream, &mut self.buffer)?;
            connection.responded += 1;
            self.send_or_wait(token as usize)?;
        }
        let now_ms = monotonic_ns() / MS_NS;
        while self.timers.peek().is_some_and(|Reverse((at_ms, _))| *at_ms <= now_ms) {
            let Some(Reverse((_, index))) = self.timers.pop() else { break };
            self.begin(index)?;
            self.send_or_wait(index)?;
        }
        Ok(())
    }

    fn begin(&mut self, index: usize) -> Result<(), Box<dyn Error>> {
        let connection = &mut self.connections[index];
        if connection.stream.is_none() {
            connection.began_ns = monotonic_ns();
            let stream = connect(self.address)?;
            self.epoll.add(stream.as_raw_fd(), index as u64)?;
            connection.stream = Some(stream);
        }
        Ok(())
    }

    fn send_or_wait(&mut self, index: usize) -> Result<(), Box<dyn Error>> {
        let connection = &mut self.connections[index];
        let now_ns = monotonic_ns();
        let wait_ns = connection.wait_ns(self.period_ns, now_ns);
        if wait_ns > 0 {
            self.timers.push(Reverse((now_ns / MS_NS + wait_ns / MS_NS + 1, index)));
            return Ok(());
        }
        let id = request_id(index as u32, connection.responded);
        self.due.push((id, connection.due_ns(self.period_ns)));
        if let Some(stream) = &mut connection.stream {
            stream.write_all(&request(id))?;
        }
        Ok(())
    }
}
