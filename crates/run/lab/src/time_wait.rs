//! Connections in TIME_WAIT on loopback: closed, but their addresses and ports stay taken for a minute.
//!
//! A run takes a loopback network in which none are left, so nothing waits for them to expire. They still take room in the
//! kernel's table, which is limited; whoever starts many runs in a row must leave some ([`TimeWaitTable`]).

use std::fs;
use std::net::Ipv4Addr;

/// List of the kernel's IPv4 connections; runs on loopback have no others.
const CONNECTIONS: &str = "/proc/net/tcp";
/// Number of connections in each state, of IPv4 and IPv6 together.
const COUNTS: &str = "/proc/net/sockstat";
/// Number of connections that may be in TIME_WAIT. The kernel ends further ones at once.
const LIMIT: &str = "/proc/sys/net/ipv4/tcp_max_tw_buckets";
/// The state in the kernel's list.
const TIME_WAIT: &str = "06";
/// The first byte of a loopback address.
const LOOPBACK: u8 = 127;

/// Connections in TIME_WAIT in each network 127.N.0.0/16, by N. None where the kernel does not list them.
pub fn by_network() -> [u32; 256] {
    count(&fs::read_to_string(CONNECTIONS).unwrap_or_default())
}

/// Room for connections in TIME_WAIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWaitTable {
    /// Connections in TIME_WAIT.
    pub taken: u64,
    /// The most that there can be.
    pub limit: u64,
}

impl TimeWaitTable {
    /// As the kernel has it now; none if it does not tell.
    pub fn now() -> Option<Self> {
        let taken = in_time_wait(&fs::read_to_string(COUNTS).ok()?)?;
        let limit = fs::read_to_string(LIMIT).ok()?.trim().parse().ok()?;
        Some(Self { taken, limit })
    }

    /// Number of connections that have to expire before a run that leaves up to `more` behind finds room for all of them. A run that needs more
    /// than there can be waits until none are left.
    pub fn excess(&self, more: u64) -> u64 {
        self.taken.saturating_sub(self.limit.saturating_sub(more))
    }
}

/// The number after `tw` in the line of TCP.
fn in_time_wait(counts: &str) -> Option<u64> {
    let line = counts.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut fields = line.split_whitespace();
    fields.find(|field| *field == "tw")?;
    fields.next()?.parse().ok()
}

fn count(table: &str) -> [u32; 256] {
    let mut networks = [0; 256];
    for line in table.lines().skip(1) {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote, state) = (fields.next(), fields.next(), fields.next());
        if state != Some(TIME_WAIT) {
            continue;
        }
        // Proxies send requests to origins from 127.0.0.1, so either end can be in the network of a run.
        let mut ends = [local.and_then(network), remote.and_then(network)];
        if ends[0] == ends[1] {
            ends[1] = None;
        }
        ends.into_iter().flatten().for_each(|network| networks[usize::from(network)] += 1);
    }
    networks
}

/// N of a field like `0100637F:1F90` if it is an address 127.N.x.x: the bytes are in the machine's order.
fn network(field: &str) -> Option<u8> {
    let (ip, _) = field.split_once(':')?;
    let bytes = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
    let [first, second, ..] = Ipv4Addr::from(bytes).octets();
    (first == LOOPBACK).then_some(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100637F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0140637F:C350 0100637F:1F90 06 00000000:00000000 03:000017A0 00000000     0        0 0 3
   2: 0100007F:C351 0100647F:1F90 06 00000000:00000000 03:000017A0 00000000     0        0 0 3
   3: 0140637F:C352 0100637F:1F90 01 00000000:00000000 03:000017A0 00000000     0        0 0 3
   4: 0140000A:C352 0100000A:1F90 06 00000000:00000000 03:000017A0 00000000     0        0 0 3
";

    #[test]
    #[cfg(target_endian = "little")]
    fn connections_in_time_wait_count_for_the_networks_of_both_ends() {
        let networks = count(TABLE);
        assert_eq!((networks[0], networks[99], networks[100]), (1, 1, 1));
        assert_eq!(
            networks.iter().sum::<u32>(),
            3,
            "listeners, open connections and other networks do not count"
        );
        assert_eq!(count(""), [0; 256]);
        assert_eq!(count("x\n1: 2 3 06\n4: 5:6 7:8 06\n"), [0; 256]);
    }

    #[test]
    fn a_run_waits_for_so_many_as_would_not_fit() {
        let room = TimeWaitTable { taken: 900, limit: 1000 };
        assert_eq!([0, 100, 101, 500, 2000].map(|more| room.excess(more)), [0, 0, 1, 400, 900]);
    }

    #[test]
    fn what_the_kernel_counts_is_read() {
        let counts = "sockets: used 98\nTCP: inuse 7 orphan 0 tw 11 alloc 9 mem 2\nUDP: inuse 1 mem 0\n";
        assert_eq!(in_time_wait(counts), Some(11));
        assert_eq!(in_time_wait("TCP: inuse 7 tw"), None);
        assert_eq!(in_time_wait(""), None);
    }
}
