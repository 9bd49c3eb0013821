//! What did the network stack drop, send again or run out of?
//!
//! Three small files that the kernel keeps for each network namespace; none of them grows with the number of
//! connections.

use std::fs;

use assay_record::health::NetworkInterval;

/// What the stack has counted since it was started, and its levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Network {
    segments_out: u64,
    retransmitted: u64,
    listen_overflows: u64,
    listen_drops: u64,
    backlog_drops: u64,
    receive_drops: u64,
    memory_pressures: u64,
    sockets: u64,
    time_wait: u64,
    buffer_bytes: u64,
}

impl Network {
    /// Reads the files; what is not there counts as 0.
    pub fn now() -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default();
        let page_bytes = rustix::param::page_size() as u64;
        Self::parse(&read("snmp"), &read("netstat"), &read("sockstat"), page_bytes)
    }

    fn parse(snmp: &str, netstat: &str, sockstat: &str, page_bytes: u64) -> Self {
        let tcp = |name| named(snmp, "Tcp:", name);
        let extended = |name| named(netstat, "TcpExt:", name);
        let level = |name| after(sockstat, "TCP:", name);
        Self {
            segments_out: tcp("OutSegs"),
            retransmitted: tcp("RetransSegs"),
            listen_overflows: extended("ListenOverflows"),
            listen_drops: extended("ListenDrops"),
            backlog_drops: extended("TCPBacklogDrop"),
            receive_drops: extended("RcvPruned") + extended("TCPRcvQDrop"),
            memory_pressures: extended("TCPMemoryPressures"),
            sockets: level("inuse"),
            time_wait: level("tw"),
            buffer_bytes: level("mem") * page_bytes,
        }
    }

    /// Differences of counters to an earlier reading; levels as they are.
    pub fn interval_since(&self, before: &Network, start_ms: u64, length_ms: u64) -> NetworkInterval {
        NetworkInterval {
            start_ms,
            length_ms,
            segments_out: self.segments_out.saturating_sub(before.segments_out),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            listen_overflows: self.listen_overflows.saturating_sub(before.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(before.listen_drops),
            backlog_drops: self.backlog_drops.saturating_sub(before.backlog_drops),
            receive_drops: self.receive_drops.saturating_sub(before.receive_drops),
            memory_pressures: self.memory_pressures.saturating_sub(before.memory_pressures),
            sockets: self.sockets,
            time_wait: self.time_wait,
            buffer_bytes: self.buffer_bytes,
        }
    }
}

/// A value of a file in which a line of names is followed by a line of values, both with the same first word.
fn named(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut both = names.split_whitespace().zip(values.split_whitespace());
    // Some values are negative (-1: no limit); none of those that are asked for.
    both.find_map(|(key, value)| (key == name).then(|| value.parse().ok())?).unwrap_or(0)
}

/// A value of a file whose lines are `GROUP: name value name value …`.
fn after(text: &str, group: &str, name: &str) -> u64 {
    let Some(line) = text.lines().find_map(|line| line.strip_prefix(group)) else { return 0 };
    let words: Vec<&str> = line.split_whitespace().collect();
    let pair = words.chunks_exact(2).find(|pair| pair[0] == name);
    pair.and_then(|pair| pair[1].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding OutSegs\nIp: 1 99\n\
                        Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs InErrs\nTcp: 1 -1 5000 7 0\n";
    const NETSTAT: &str = "TcpExt: ListenOverflows ListenDrops RcvPruned TCPBacklogDrop TCPRcvQDrop TCPMemoryPressures\n\
                           TcpExt: 1 2 3 4 5 6\nIpExt: InNoRoutes\nIpExt: 0\n";
    const SOCKSTAT: &str =
        "sockets: used 300\nTCP: inuse 12 orphan 0 tw 30 alloc 15 mem 2\nUDP: inuse 1 mem 9\n";

    #[test]
    fn counters_are_found_by_name_in_their_own_group() {
        let seen = Network::parse(SNMP, NETSTAT, SOCKSTAT, 4096);
        assert_eq!(
            seen,
            Network {
                segments_out: 5000,
                retransmitted: 7,
                listen_overflows: 1,
                listen_drops: 2,
                backlog_drops: 4,
                receive_drops: 8,
                memory_pressures: 6,
                sockets: 12,
                time_wait: 30,
                buffer_bytes: 8192,
            }
        );
    }

    #[test]
    fn a_kernel_that_does_not_count_something_counted_nothing() {
        assert_eq!(Network::parse("", "TcpExt: ListenDrops\n", "TCP: inuse\n", 4096), Network::default());
        assert_eq!(named("Tcp: MaxConn\nTcp: -1\n", "Tcp:", "MaxConn"), 0);
    }

    #[test]
    fn counters_become_differences_and_levels_stay() {
        let before = Network::parse(SNMP, NETSTAT, SOCKSTAT, 1);
        let now = Network { segments_out: 5100, retransmitted: 9, sockets: 40, ..before };
        let interval = now.interval_since(&before, 1000, 500);
        assert_eq!((interval.segments_out, interval.retransmitted, interval.listen_drops), (100, 2, 0));
        assert_eq!((interval.sockets, interval.start_ms, interval.length_ms), (40, 1000, 500));
    }
}
