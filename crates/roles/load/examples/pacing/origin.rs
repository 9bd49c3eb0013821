//! When each request arrives. An origin that notes it, for robots and for other clients.
//!
//! The instant is the kernel's receive timestamp, which loopback takes while the sender is still writing: how late
//! this process wakes and reads is not in it. A request is told by its `X-Assay`, by vegeta's sequence number, or by a
//! path `/i/NUMBER`. Robots get the object that they request, other clients 1 KB of zeros.

use std::error::Error;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use assay_http::field::{decimal, write_decimal};
use assay_http::head::RequestHead;
use assay_net::clock::{SECOND_NS, monotonic_ns};
use assay_protocol::mark::{self, RequestMark, ResponseMark, XactId};
use assay_workload::Universe;
use rustix::time::{ClockId, clock_gettime};

use crate::due::{read_universe, request_id};
use crate::sys::{Epoll, Row, write_rows};

const LISTENER: u64 = u64::MAX;
const STDIN: u64 = u64::MAX - 1;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// By how much the two clocks may have moved against each other in a run.
const MOST_DRIFT_NS: u64 = 5_000;

struct Connection {
    stream: TcpStream,
    /// What has been read of a head, and when its first byte arrived.
    head: Vec<u8>,
    arrived_ns: u64,
}

struct Origin {
    universe: Arc<Universe>,
    epoll: Epoll,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    arrivals: Vec<Row>,
    /// Wall clock minus `CLOCK_MONOTONIC`: timestamps are of the former.
    offset_ns: u64,
    buffer: Vec<u8>,
    response: Vec<u8>,
}

/// Serves until the end of standard input; then writes the arrivals, and says how many connections there were.
pub fn serve(spec: &str, address: SocketAddr, out: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address)?;
    // SAFETY: takes no pointer; listening again only makes the queue longer.
    unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) };
    listener.set_nonblocking(true)?;
    // Before there is a connection: the first request may arrive before it is accepted.
    request_timestamps(listener.as_raw_fd())?;
    let epoll = Epoll::new()?;
    epoll.add(listener.as_raw_fd(), LISTENER)?;
    epoll.add(io::stdin().as_raw_fd(), STDIN)?;
    let mut origin = Origin {
        universe: read_universe(spec)?,
        epoll,
        listener,
        connections: Vec::new(),
        arrivals: Vec::with_capacity(1 << 20),
        offset_ns: clock_offset_ns(),
        buffer: vec![0; 16_384],
        response: Vec::with_capacity(4096),
    };
    println!("listening");
    while origin.turn()? {}
    let drift_ns = clock_offset_ns().abs_diff(origin.offset_ns);
    if drift_ns > MOST_DRIFT_NS {
        return Err(
            format!("the wall clock moved by {drift_ns} ns against CLOCK_MONOTONIC; run again").into()
        );
    }
    write_rows(out, &origin.arrivals)?;
    println!("{}", origin.connections.len());
    Ok(())
}

impl Origin {
    /// False at the end of standard input.
    fn turn(&mut self) -> io::Result<bool> {
        for token in self.epoll.wait(-1)? {
            match token {
                STDIN => return Ok(false),
                LISTENER => self.accept()?,
                _ => {
                    if !self.read(token as usize)? {
                        self.connections[token as usize] = None;
                    }
                }
            }
        }
        Ok(true)
    }

    fn accept(&mut self) -> io::Result<()> {
        match self.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                self.epoll.add(stream.as_raw_fd(), self.connections.len() as u64)?;
                self.connections.push(Some(Connection { stream, head: Vec::new(), arrived_ns: 0 }));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads what is there and responds to complete requests; false when the connection is over.
    fn read(&mut self, place: usize) -> io::Result<bool> {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return Ok(false) };
        let (count, stamp_ns) = match receive(connection.stream.as_raw_fd(), &mut self.buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(_) => return Ok(false),
        };
        if count == 0 {
            return Ok(false);
        }
        let Some(stamp_ns) = stamp_ns else {
            return Err(io::Error::other("the kernel gives no receive timestamps on loopback"));
        };
        if connection.head.is_empty() {
            connection.arrived_ns = stamp_ns - self.offset_ns;
        }
        connection.head.extend_from_slice(&self.buffer[..count]);
        while let Ok(Some((head, length))) = RequestHead::parse(&connection.head) {
            let id = respond(&self.universe, &head, &mut self.response);
            if let Some(id) = id {
                self.arrivals.push((id, connection.arrived_ns));
            }
            // A client that has sent its last request may be gone.
            if connection.stream.write_all(&self.response).is_err() {
                return Ok(false);
            }
            connection.head.drain(..length);
        }
        Ok(true)
    }
}

/// Makes the response; gives the number of the request, if it has one.
fn respond(universe: &Universe, head: &RequestHead<'_>, response: &mut Vec<u8>) -> Option<u64> {
    response.clear();
    let target = head.target.as_bytes();
    if let Some(mark) = head.header(mark::HEADER).and_then(RequestMark::parse) {
        write_object(universe, mark.xact, target, response);
        return Some(request_id(mark.xact.robot, mark.xact.number));
    }
    response.extend_from_slice(
        b"HTTP/1.1 200 OK\r\nCache-Control: public, max-age=31536000\r\nContent-Length: 1024\r\n",
    );
    response.extend_from_slice(b"X-Assay: 0-0-0-0000000000000000-0-0-200\r\n\r\n");
    response.resize(response.len() + 1024, 0);
    head.header("x-vegeta-seq").and_then(decimal).or_else(|| decimal(target.strip_prefix(b"/i/")?))
}

fn write_object(universe: &Universe, xact: XactId, path: &[u8], response: &mut Vec<u8>) {
    let Ok(id) = universe.parse_path(0, path) else {
        response.extend_from_slice(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        return;
    };
    let object = universe.object(id);
    let body = universe.body(&object, 0);
    response
        .extend_from_slice(b"HTTP/1.1 200 OK\r\nCache-Control: public, max-age=31536000\r\nContent-Length: ");
    write_decimal(response, object.size_bytes);
    response.extend_from_slice(b"\r\nX-Assay: ");
    ResponseMark {
        xact,
        key: object.key,
        version: 0,
        made_us: 0,
        status: 200,
        held_us: 0,
        delay_us: 0,
        note: None,
    }
    .write(response);
    response.extend_from_slice(b"\r\n\r\n");
    let mut from = 0;
    while from < object.size_bytes {
        let chunk = body.chunk(universe.pool(), from, usize::MAX);
        response.extend_from_slice(chunk);
        from += chunk.len() as u64;
    }
}

/// What the wall clock is ahead of `CLOCK_MONOTONIC`: the reading that took the least time, of many.
fn clock_offset_ns() -> u64 {
    let read = || {
        let before_ns = monotonic_ns();
        let wall = clock_gettime(ClockId::Realtime);
        let after_ns = monotonic_ns();
        let wall_ns = wall.tv_sec as u64 * SECOND_NS + wall.tv_nsec as u64;
        (after_ns - before_ns, wall_ns - (before_ns + after_ns) / 2)
    };
    (0..1000).map(|_| read()).min().map_or(0, |(_, offset_ns)| offset_ns)
}

/// Connections that a listener accepts do as it does.
fn request_timestamps(socket: RawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the option is an int that lives as long as the call.
    let done = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads from a socket; gives how much, and when the kernel received it, in nanoseconds of the wall clock.
fn receive(socket: RawFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut control = [0u64; 16];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeros is a message header without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header points to buffers that live as long as the call, with their lengths.
    let count = unsafe { libc::recvmsg(socket, &raw mut message, 0) };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the header was filled by the kernel; the macro keeps within its control buffer.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    let mut stamp_ns = None;
    if !first.is_null() {
        // SAFETY: not null, so it points to a whole header within the (aligned) control buffer.
        let kind = unsafe { ((*first).cmsg_level, (*first).cmsg_type) };
        if kind == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: a message of this kind carries one timespec.
            let stamp = unsafe { libc::CMSG_DATA(first).cast::<libc::timespec>().read_unaligned() };
            stamp_ns = Some(stamp.tv_sec as u64 * SECOND_NS + stamp.tv_nsec as u64);
        }
    }
    Ok((count as usize, stamp_ns))
}
