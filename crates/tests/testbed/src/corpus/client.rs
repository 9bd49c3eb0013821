//! Client that sends bytes as they are, and reads responses strictly.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::corpus::strict::{Message, Read, response};

/// No case takes this long unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
    is_ended: bool,
}

impl Client {
    pub fn connect(front: SocketAddr) -> Self {
        let stream = TcpStream::connect(front).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, bytes: Vec::new(), is_ended: false }
    }

    /// Sends; whoever has had enough may have closed by now.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Nothing more is sent.
    pub fn end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next final response; none when the connection ends before it is whole.
    pub fn response(&mut self, method: &str) -> Result<Option<Message>, String> {
        loop {
            match response(&self.bytes, method, self.is_ended) {
                Read::Bad(what) => {
                    return Err(format!("a response is no response: {what}: {}", self.bytes.escape_ascii()));
                }
                Read::Whole(message) => {
                    self.bytes.drain(..message.length);
                    if !message.start[1].starts_with('1') {
                        return Ok(Some(message));
                    }
                }
                Read::Partial if self.is_ended => return Ok(None),
                Read::Partial => self.fill()?,
            }
        }
    }

    /// Unread bytes up to the end of the connection.
    pub fn rest(&mut self) -> Result<&[u8], String> {
        while !self.is_ended {
            self.fill()?;
        }
        Ok(&self.bytes)
    }

    fn fill(&mut self) -> Result<(), String> {
        let mut room = [0; 16 * 1024];
        match self.stream.read(&mut room) {
            Ok(0) => self.is_ended = true,
            Ok(count) => self.bytes.extend(&room[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => self.is_ended = true,
            Err(error) => return Err(format!("nothing came: {error}")),
        }
        Ok(())
    }
}
