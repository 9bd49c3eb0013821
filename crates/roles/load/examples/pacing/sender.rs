//! The least a generator must do: a timer loop that writes a request at each deadline, and reads what comes back
//! without looking at it.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use assay_net::clock::monotonic_ns;

use crate::sys::{Alarm, Epoll, connect, read_rows, request, write_rows};

/// No connection has this number.
const ALARM: u64 = u64::MAX;

/// Sends each request on the connection of its robot and notes when it began to write.
pub fn run(due: &str, start_ns: u64, address: SocketAddr, out: &str) -> Result<(), Box<dyn Error>> {
    let due = read_rows(due)?;
    let connections = due.iter().map(|(id, _)| id >> 32).max().map_or(0, |last| last + 1);
    let mut epoll = Epoll::new()?;
    let mut streams = Vec::new();
    for token in 0..connections {
        let stream = connect(address)?;
        epoll.add(stream.as_raw_fd(), token)?;
        streams.push(stream);
    }
    let alarm = Alarm::new()?;
    epoll.add(alarm.descriptor(), ALARM)?;
    let mut sent = Vec::with_capacity(due.len());
    let mut left = due.into_iter().peekable();
    let mut buffer = vec![0; 16_384];
    let mut is_set = false;
    while let Some((_, offset_ns)) = left.peek() {
        if !std::mem::replace(&mut is_set, true) {
            alarm.set(start_ns + offset_ns)?;
        }
        for token in epoll.wait(-1)? {
            match streams.get_mut(token as usize) {
                Some(stream) => discard(stream, &mut buffer)?,
                None => {
                    is_set = false;
                    while let Some((id, _)) = left.next_if(|(_, ns)| start_ns + ns <= monotonic_ns()) {
                        sent.push((id, monotonic_ns()));
                        streams[(id >> 32) as usize].write_all(&request(id))?;
                    }
                }
            }
        }
    }
    Ok(write_rows(out, &sent)?)
}

/// Reads whatever is there.
pub fn discard(stream: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<()> {
    match stream.read(buffer) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}
