//! TCP connections by state, without looking at most of them.
//!
//! The kernel is queried (`sock_diag`) for sockets in the states that few are in for long; those in ESTABLISHED and TIME_WAIT,
//! of which there may be tens of thousands, it counts itself. It still walks over all of them, so it is not queried more
//! often than a small part of the time allows.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::kept::Room;
use super::network::number_of;
use super::pace::Pace;

/// Numbers of states, as the kernel has them.
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

/// Message types of netlink: a query of ours, the end of a response, an error.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// A query for all of them.
const REQUEST_DUMP: u16 = 0x301;
const HEAD_BYTES: usize = 16;
const TCP: u8 = 6;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct States {
    /// SYN_SENT.
    pub syn_sent: u64,
    /// SYN_RECV.
    pub syn_received: u64,
    /// FIN_WAIT1.
    pub fin_wait1: u64,
    /// FIN_WAIT2.
    pub fin_wait2: u64,
    /// CLOSE_WAIT.
    pub close_wait: u64,
    /// LAST_ACK or CLOSING.
    pub last_ack: u64,
    /// LISTEN.
    pub listening: u64,
}

impl States {
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

/// Queries the kernel about the sockets of one namespace.
#[derive(Debug)]
pub struct Sockets {
    socket: OwnedFd,
    pace: Pace,
}

impl Sockets {
    /// A socket in the namespace that a process is in; none where that is not allowed.
    pub fn open(pid: u32) -> Option<Self> {
        let socket = if number_of(&pid.to_string()) == number_of("self") {
            diagnosing()
        } else {
            let namespace = File::open(format!("/proc/{pid}/ns/net")).ok()?;
            // A thread of its own goes there and ends; the socket stays where it was made.
            let there = std::thread::spawn(move || {
                move_into_link_name_space(
                    rustix::fd::AsFd::as_fd(&namespace),
                    Some(LinkNameSpaceType::Network),
                )
                .ok()?;
                diagnosing()
            });
            there.join().ok()?
        };
        Some(Self { socket: socket?, pace: Pace::new(Duration::from_secs(1)) })
    }

    /// Counts, if that is due and the kernel tells.
    pub fn count(&mut self, now: Instant, room: &mut Room) -> Option<States> {
        let socket = &self.socket;
        self.pace.when_due(now, || {
            let mut states = States::default();
            for family in [AddressFamily::INET, AddressFamily::INET6] {
                request(socket, family, &mut states, room)?;
            }
            Some(states)
        })?
    }
}

fn diagnosing() -> Option<OwnedFd> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG)).ok()
}

fn request(socket: &OwnedFd, family: AddressFamily, states: &mut States, room: &mut Room) -> Option<()> {
    send(socket, &question(u8::try_from(family.as_raw()).ok()?), SendFlags::empty()).ok()?;
    loop {
        let room = room.bytes();
        let (length, _) = recv(socket, &mut *room, RecvFlags::empty()).ok()?;
        match take(&room[..length.min(room.len())], states) {
            Taken::More => {}
            Taken::All => return Some(()),
            Taken::Refused => return None,
        }
    }
}

fn question(family: u8) -> [u8; 72] {
    let mut message = [0; 72];
    message[..4].copy_from_slice(&72u32.to_ne_bytes());
    message[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    (message[16], message[17]) = (family, TCP);
    let wanted = state::ALL.iter().fold(0u32, |mask, state| mask | 1 << state);
    message[20..24].copy_from_slice(&wanted.to_ne_bytes());
    message
}

/// What a part of a response leaves to be done.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    More,
    All,
    Refused,
}

fn take(mut part: &[u8], states: &mut States) -> Taken {
    while let Some((head, _)) = part.split_first_chunk::<HEAD_BYTES>() {
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        match u16::from_ne_bytes([head[4], head[5]]) {
            DONE => return Taken::All,
            ERROR => return Taken::Refused,
            _ if length < HEAD_BYTES => return Taken::Refused,
            // The family, then the state.
            SOCK_DIAG_BY_FAMILY => part.get(HEAD_BYTES + 1).into_iter().for_each(|state| states.add(*state)),
            _ => {}
        }
        part = part.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Taken::More
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
        let mut states = States::default();
        let part = [socket(state::CLOSE_WAIT), socket(state::CLOSE_WAIT), socket(state::CLOSING)].concat();
        assert_eq!(take(&part, &mut states), Taken::More);
        assert_eq!(take(&message(DONE, &[0; 4]), &mut states), Taken::All);
        assert_eq!(states, States { close_wait: 2, last_ack: 1, ..States::default() });
        assert_eq!(take(&message(ERROR, &[0; 4]), &mut states), Taken::Refused);
        assert_eq!(take(&[0; 40], &mut states), Taken::Refused, "a length of nothing never ends");
    }

    #[test]
    fn a_listener_of_this_process_is_counted() {
        let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sockets = Sockets::open(std::process::id()).unwrap();
        let states = sockets.count(Instant::now(), &mut Room::default()).unwrap();
        assert!(states.listening > 0, "{states:?}");
    }
}
