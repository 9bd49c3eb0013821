//! Requests of rtnetlink(7) that create routes and devices: one request, one response.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::link::namespace::check;

// From the kernel's interface, linux/netlink.h.
const REQUEST_ACK_CREATE: u16 = 0x1 | 0x4 | 0x400;
const NLMSG_ERROR: u16 = 2;
const HEADER_BYTES: usize = 16;
/// Flag of an attribute that contains attributes.
pub(crate) const NESTED: u16 = 0x8000;

/// A request that creates something.
#[derive(Debug)]
pub(crate) struct NetlinkRequest {
    kind: u16,
    body: Vec<u8>,
}

impl NetlinkRequest {
    /// A request of a type (`RTM_…`), with the fixed part of its body.
    pub fn new(kind: u16, fixed: &[u8]) -> Self {
        Self { kind, body: fixed.to_vec() }
    }

    /// Adds an attribute. Values of callers are short, so that lengths fit 16 bits.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.body.extend((value.len() as u16 + 4).to_ne_bytes());
        self.body.extend(kind.to_ne_bytes());
        self.body.extend(value);
        self.align();
    }

    /// Adds a string with its terminating zero.
    pub fn text(&mut self, kind: u16, text: &str) {
        let value: Vec<u8> = text.bytes().chain([0]).collect();
        self.attribute(kind, &value);
    }

    /// Adds an attribute that contains those added by `fill`.
    pub fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let at = self.body.len();
        self.attribute(kind, &[]);
        fill(self);
        let length = (self.body.len() - at) as u16;
        self.body[at..at + 2].copy_from_slice(&length.to_ne_bytes());
    }

    /// Adds bytes that are no attribute, which precede the attributes of some nested ones.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.body.extend(bytes);
        self.align();
    }

    fn align(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = ((HEADER_BYTES + self.body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(self.kind.to_ne_bytes());
        bytes.extend(REQUEST_ACK_CREATE.to_ne_bytes());
        bytes.extend(1_u32.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(&self.body);
        bytes
    }

    /// Sends the request, in the namespace of the calling thread.
    pub fn send(&self) -> io::Result<()> {
        // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
        let socket = unsafe {
            let socket =
                libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
            check(socket)?;
            OwnedFd::from_raw_fd(socket)
        };
        rustix::io::write(&socket, &self.bytes())?;
        let mut response = [0_u8; 1024];
        let length = rustix::io::read(&socket, &mut response)?;
        parse_response(&response[..length])
    }
}

/// Result of a response, which is an error message with number 0 on success.
fn parse_response(response: &[u8]) -> io::Result<()> {
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's response makes no sense");
    let kind = response.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let error = response.get(HEADER_BYTES..HEADER_BYTES + 4).and_then(|bytes| bytes.try_into().ok());
    match (kind, error.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(odd()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_long_as_they_say_and_aligned() {
        for name in ["bbr", "cubic", "reno"] {
            let mut message = NetlinkRequest::new(24, &[0; 12]);
            message.nested(8 | NESTED, |inner| {
                inner.raw(&[7; 16]);
                inner.text(16, name);
            });
            let bytes = message.bytes();
            let said = u32::from_ne_bytes(bytes[..4].try_into().unwrap());
            assert_eq!(said as usize, bytes.len());
            assert!(bytes.len().is_multiple_of(4));
            let outer = u16::from_ne_bytes(bytes[28..30].try_into().unwrap());
            assert_eq!(usize::from(outer), bytes.len() - 28);
        }
    }

    #[test]
    fn responses_are_good_bad_or_odd() {
        let response = |error: i32| {
            let mut bytes = vec![0; 4];
            bytes.extend(NLMSG_ERROR.to_ne_bytes());
            bytes.resize(HEADER_BYTES, 0);
            bytes.extend(error.to_ne_bytes());
            bytes
        };
        assert!(parse_response(&response(0)).is_ok());
        assert_eq!(
            parse_response(&response(-libc::EEXIST)).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert!(parse_response(&response(i32::MIN)).is_err());
        assert!(parse_response(b"short").is_err());
    }
}
