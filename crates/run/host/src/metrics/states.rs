//! TCP connections by state, without a list of all.
//!
//! The kernel is queried (`sock_diag`) for sockets in states that few are in for long; it counts those in ESTABLISHED and
//! TIME_WAIT, of which there may be tens of thousands, itself. As it walks over all sockets for a query, queries are paced.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::network::network_namespace_of;
use super::pacer::Pacer;
use super::proc_file::ReadBuffer;

/// The kernel's numbers of states.
mod state {
    pub const SYN_SENT: u8 = 2;
    pub const SYN_RECV: u8 = 3;
    pub const FIN_WAIT1: u8 = 4;
    pub const FIN_WAIT2: u8 = 5;
    pub const CLOSE_WAIT: u8 = 8;
    pub const LAST_ACK: u8 = 9;
    pub const LISTEN: u8 = 10;
    pub const CLOSING: u8 = 11;
    pub const NEW_SYN_RECV: u8 = 12;
    pub const ALL: [u8; 9] =
        [SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING, NEW_SYN_RECV];
}

/// Message types of netlink: query and response, end of a response, error.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
const HEAD_BYTES: usize = 16;
const TCP: u8 = 6;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionStates {
    pub syn_sent: u64,
    pub syn_received: u64,
    pub fin_wait1: u64,
    pub fin_wait2: u64,
    pub close_wait: u64,
    /// LAST_ACK or CLOSING.
    pub last_ack: u64,
    pub listening: u64,
}

impl ConnectionStates {
    fn add(&mut self, state: u8) {
        let place = match state {
            state::SYN_SENT => &mut self.syn_sent,
            state::SYN_RECV | state::NEW_SYN_RECV => &mut self.syn_received,
            state::FIN_WAIT1 => &mut self.fin_wait1,
            state::FIN_WAIT2 => &mut self.fin_wait2,
            state::CLOSE_WAIT => &mut self.close_wait,
            state::LAST_ACK | state::CLOSING => &mut self.last_ack,
            state::LISTEN => &mut self.listening,
            _ => return,
        };
        *place += 1;
    }
}

/// A `sock_diag` socket in a namespace.
#[derive(Debug)]
pub struct SocketDiag {
    socket: OwnedFd,
    pacer: Pacer,
}

impl SocketDiag {
    /// Opens a socket in the namespace of a process; none if that is not permitted.
    pub fn open(pid: u32) -> Option<Self> {
        let socket = if network_namespace_of(&pid.to_string()) == network_namespace_of("self") {
            open_socket()
        } else {
            let namespace = File::open(format!("/proc/{pid}/ns/net")).ok()?;
            // The thread enters the namespace and ends; the socket stays in it.
            let thread = std::thread::spawn(move || {
                move_into_link_name_space(
                    rustix::fd::AsFd::as_fd(&namespace),
                    Some(LinkNameSpaceType::Network),
                )
                .ok()?;
                open_socket()
            });
            thread.join().ok()?
        };
        Some(Self { socket: socket?, pacer: Pacer::new(Duration::from_secs(1)) })
    }

    /// Counts connections by state, if that is due.
    pub fn count(&mut self, now: Instant, buffer: &mut ReadBuffer) -> Option<ConnectionStates> {
        let socket = &self.socket;
        self.pacer.if_due(now, || {
            let mut states = ConnectionStates::default();
            for family in [AddressFamily::INET, AddressFamily::INET6] {
                query(socket, family, &mut states, buffer)?;
            }
            Some(states)
        })?
    }
}

fn open_socket() -> Option<OwnedFd> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG)).ok()
}

fn query(
    socket: &OwnedFd,
    family: AddressFamily,
    states: &mut ConnectionStates,
    buffer: &mut ReadBuffer,
) -> Option<()> {
    send(socket, &dump_request(u8::try_from(family.as_raw()).ok()?), SendFlags::empty()).ok()?;
    loop {
        let buffer = buffer.bytes();
        let (length, _) = recv(socket, &mut *buffer, RecvFlags::empty()).ok()?;
        match parse_dump(&buffer[..length.min(buffer.len())], states) {
            DumpProgress::More => {}
            DumpProgress::Done => return Some(()),
            DumpProgress::Refused => return None,
        }
    }
}

fn dump_request(family: u8) -> [u8; 72] {
    let mut message = [0; 72];
    message[..4].copy_from_slice(&72u32.to_ne_bytes());
    message[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    (message[16], message[17]) = (family, TCP);
    let wanted = state::ALL.iter().fold(0u32, |mask, state| mask | 1 << state);
    message[20..24].copy_from_slice(&wanted.to_ne_bytes());
    message
}

/// Progress of a response after a part of it.
#[derive(Debug, PartialEq, Eq)]
enum DumpProgress {
    More,
    Done,
    Refused,
}

fn parse_dump(mut part: &[u8], states: &mut ConnectionStates) -> DumpProgress {
    while let Some((head, _)) = part.split_first_chunk::<HEAD_BYTES>() {
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        match u16::from_ne_bytes([head[4], head[5]]) {
            DONE => return DumpProgress::Done,
            ERROR => return DumpProgress::Refused,
            _ if length < HEAD_BYTES => return DumpProgress::Refused,
            // `inet_diag_msg` begins with the family and the state.
            SOCK_DIAG_BY_FAMILY => part.get(HEAD_BYTES + 1).into_iter().for_each(|state| states.add(*state)),
            _ => {}
        }
        part = part.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    DumpProgress::More
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = vec![0; HEAD_BYTES];
        message[..4].copy_from_slice(&((HEAD_BYTES + body.len()) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(body);
        message.resize(message.len().next_multiple_of(4), 0);
        message
    }

    #[test]
    fn sockets_of_a_response_are_counted_by_state() {
        let socket = |state| message(SOCK_DIAG_BY_FAMILY, &[2, state, 0, 0, 9]);
        let mut states = ConnectionStates::default();
        let part = [socket(state::CLOSE_WAIT), socket(state::CLOSE_WAIT), socket(state::CLOSING)].concat();
        assert_eq!(parse_dump(&part, &mut states), DumpProgress::More);
        assert_eq!(parse_dump(&message(DONE, &[0; 4]), &mut states), DumpProgress::Done);
        assert_eq!(states, ConnectionStates { close_wait: 2, last_ack: 1, ..ConnectionStates::default() });
        assert_eq!(parse_dump(&message(ERROR, &[0; 4]), &mut states), DumpProgress::Refused);
        assert_eq!(
            parse_dump(&[0; 40], &mut states),
            DumpProgress::Refused,
            "a length of nothing never ends"
        );
    }

    #[test]
    fn a_listener_of_this_process_is_counted() {
        let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sockets = SocketDiag::open(std::process::id()).unwrap();
        let states = sockets.count(Instant::now(), &mut ReadBuffer::default()).unwrap();
        assert!(states.listening > 0, "{states:?}");
    }
}
