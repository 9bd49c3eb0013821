//! The network stack of a namespace: TCP counters, traffic of interfaces, and connections by state.
//!
//! The sources are small files for each namespace, read through a process in it; none grows with the number of connections.
//! [`super::states`] counts the states that the kernel does not.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use assay_measurement::health::NetworkInterval;
use assay_measurement::machine::InterfaceInterval;

use super::proc_file::{ProcFile, ReadBuffer, read};
use super::states::{ConnectionStates, SocketDiag};

/// A network namespace with roles in it.
#[derive(Debug)]
pub struct NetworkNamespace {
    /// Names of the roles, joined by `+`.
    role: String,
    snmp: Option<ProcFile>,
    netstat: Option<ProcFile>,
    sockstat: Option<ProcFile>,
    dev: Option<ProcFile>,
    sockets: Option<SocketDiag>,
    last: TcpCounters,
    interfaces: BTreeMap<String, InterfaceCounters>,
}

/// The distinct namespaces of roles, given with a process of each.
pub fn namespaces(roles: &[(String, Option<u32>)], buffer: &mut ReadBuffer) -> Vec<NetworkNamespace> {
    let mut found: Vec<(u64, u32, Vec<&str>)> = Vec::new();
    for (role, pid) in roles {
        let Some(pid) = *pid else { continue };
        let Some(number) = network_namespace_of(&pid.to_string()) else { continue };
        match found.iter_mut().find(|(known, ..)| *known == number) {
            Some((.., names)) => names.push(role),
            None => found.push((number, pid, vec![role])),
        }
    }
    if found.is_empty() {
        // Without a role's process, read at least the namespace of this process.
        found.extend(network_namespace_of("self").map(|number| (number, std::process::id(), vec!["host"])));
    }
    found.into_iter().map(|(_, pid, names)| NetworkNamespace::open(names.join("+"), pid, buffer)).collect()
}

/// Inode of the network namespace of a process.
pub fn network_namespace_of(process: &str) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|meta| meta.ino())
}

impl NetworkNamespace {
    fn open(role: String, pid: u32, buffer: &mut ReadBuffer) -> Self {
        let open = |name: &str| ProcFile::open(format!("/proc/{pid}/net/{name}"));
        let mut namespace = Self {
            role,
            snmp: open("snmp"),
            netstat: open("netstat"),
            sockstat: open("sockstat"),
            dev: open("dev"),
            sockets: SocketDiag::open(pid),
            last: TcpCounters::default(),
            interfaces: BTreeMap::new(),
        };
        namespace.last = namespace.now(buffer);
        namespace.traffic(0, 0, buffer);
        namespace
    }

    fn now(&self, buffer: &mut ReadBuffer) -> TcpCounters {
        let page_bytes = rustix::param::page_size() as u64;
        let mut text = |file: &Option<ProcFile>| {
            read(file.as_ref(), buffer).map(std::borrow::Cow::into_owned).unwrap_or_default()
        };
        TcpCounters::parse(&text(&self.snmp), &text(&self.netstat), &text(&self.sockstat), page_bytes)
    }

    /// Differences of counters since the last call, and levels.
    pub fn interval(
        &mut self,
        start_ms: u64,
        length_ms: u64,
        now: Instant,
        buffer: &mut ReadBuffer,
    ) -> NetworkInterval {
        let counted = self.now(buffer);
        let states = self.sockets.as_mut().and_then(|sockets| sockets.count(now, buffer));
        let interval = counted.interval_since(&self.last, states, start_ms, length_ms);
        self.last = counted;
        NetworkInterval { role: self.role.clone(), ..interval }
    }

    /// Traffic of interfaces since the last call, without unused interfaces.
    pub fn traffic(
        &mut self,
        start_ms: u64,
        length_ms: u64,
        buffer: &mut ReadBuffer,
    ) -> Vec<InterfaceInterval> {
        let Some(text) = read(self.dev.as_ref(), buffer) else { return Vec::new() };
        let mut intervals = Vec::new();
        for (name, traffic) in text.lines().filter_map(parse_traffic) {
            let before = self.interfaces.get(name).copied().unwrap_or_default();
            if traffic.0.iter().any(|count| *count > 0) {
                intervals.push(traffic.interval_since(&before, &self.role, name, start_ms, length_ms));
            }
            if before != traffic {
                self.interfaces.insert(name.to_owned(), traffic);
            }
        }
        intervals
    }
}

/// Bytes, packets and drops: received, sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct InterfaceCounters([u64; 6]);

impl InterfaceCounters {
    fn interval_since(
        self,
        before: &InterfaceCounters,
        role: &str,
        name: &str,
        start_ms: u64,
        length_ms: u64,
    ) -> InterfaceInterval {
        let since = |at: usize| self.0[at].saturating_sub(before.0[at]);
        InterfaceInterval {
            start_ms,
            length_ms,
            role: role.to_owned(),
            interface: name.to_owned(),
            received_bytes: since(0),
            received_packets: since(1),
            receive_drops: since(2),
            sent_bytes: since(3),
            sent_packets: since(4),
            send_drops: since(5),
        }
    }
}

/// A line of `/proc/net/dev`: name, then 8 numbers for what came in and 8 for what went out.
fn parse_traffic(line: &str) -> Option<(&str, InterfaceCounters)> {
    let (name, numbers) = line.split_once(':')?;
    let numbers: Vec<u64> = numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
    let at = |index: usize| numbers.get(index).copied();
    Some((name.trim(), InterfaceCounters([at(0)?, at(1)?, at(3)?, at(8)?, at(9)?, at(11)?])))
}

/// Counters of the stack since boot, and levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TcpCounters {
    segments_out: u64,
    retransmitted: u64,
    listen_overflows: u64,
    listen_drops: u64,
    backlog_drops: u64,
    receive_drops: u64,
    memory_pressures: u64,
    sockets: u64,
    time_wait: u64,
    /// In ESTABLISHED or CLOSE_WAIT.
    established: Option<u64>,
    buffer_bytes: u64,
}

impl TcpCounters {
    fn parse(snmp: &str, netstat: &str, sockstat: &str, page_bytes: u64) -> Self {
        let tcp = |name| named_value(snmp, "Tcp:", name).unwrap_or(0);
        let netstat = NamedValues::parse(netstat, "TcpExt:");
        let extended = |name| netstat.value(name).unwrap_or(0);
        let level = |name| paired_value(sockstat, "TCP:", name);
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
            established: named_value(snmp, "Tcp:", "CurrEstab"),
            buffer_bytes: level("mem") * page_bytes,
        }
    }

    /// Differences of counters to an earlier reading; levels as they are.
    fn interval_since(
        &self,
        before: &TcpCounters,
        states: Option<ConnectionStates>,
        start_ms: u64,
        length_ms: u64,
    ) -> NetworkInterval {
        let close_wait = states.map(|states| states.close_wait);
        NetworkInterval {
            start_ms,
            length_ms,
            role: String::new(),
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
            // `CurrEstab` includes CLOSE_WAIT.
            established: self.established.map(|both| both.saturating_sub(close_wait.unwrap_or(0))),
            syn_sent: states.map(|states| states.syn_sent),
            syn_received: states.map(|states| states.syn_received),
            fin_wait1: states.map(|states| states.fin_wait1),
            fin_wait2: states.map(|states| states.fin_wait2),
            close_wait,
            last_ack: states.map(|states| states.last_ack),
            listening: states.map(|states| states.listening),
        }
    }
}

/// A group in a file of pairs of lines, names and values, both with the group as first word.
struct NamedValues<'a> {
    names: &'a str,
    values: &'a str,
}

impl<'a> NamedValues<'a> {
    fn parse(text: &'a str, group: &str) -> Self {
        let mut lines = text.lines().filter(|line| line.starts_with(group));
        Self { names: lines.next().unwrap_or(""), values: lines.next().unwrap_or("") }
    }

    fn value(&self, name: &str) -> Option<u64> {
        let mut both = self.names.split_whitespace().zip(self.values.split_whitespace());
        // Some values are -1 (no limit), but none of those that are read here.
        both.find_map(|(key, value)| (key == name).then(|| value.parse().ok())?)
    }
}

fn named_value(text: &str, group: &str, name: &str) -> Option<u64> {
    NamedValues::parse(text, group).value(name)
}

/// A value of a file whose lines are `GROUP: name value name value …`.
fn paired_value(text: &str, group: &str, name: &str) -> u64 {
    let Some(line) = text.lines().find_map(|line| line.strip_prefix(group)) else { return 0 };
    let words: Vec<&str> = line.split_whitespace().collect();
    let pair = words.chunks_exact(2).find(|pair| pair[0] == name);
    pair.and_then(|pair| pair[1].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding OutSegs\nIp: 1 99\n\
                        Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs CurrEstab\nTcp: 1 -1 5000 7 11\n";
    const NETSTAT: &str = "TcpExt: ListenOverflows ListenDrops RcvPruned TCPBacklogDrop TCPRcvQDrop TCPMemoryPressures\n\
                           TcpExt: 1 2 3 4 5 6\nIpExt: InNoRoutes\nIpExt: 0\n";
    const SOCKSTAT: &str =
        "sockets: used 300\nTCP: inuse 12 orphan 0 tw 30 alloc 15 mem 2\nUDP: inuse 1 mem 9\n";

    #[test]
    fn counters_are_found_by_name_in_their_own_group() {
        let seen = TcpCounters::parse(SNMP, NETSTAT, SOCKSTAT, 4096);
        assert_eq!(
            seen,
            TcpCounters {
                segments_out: 5000,
                retransmitted: 7,
                listen_overflows: 1,
                listen_drops: 2,
                backlog_drops: 4,
                receive_drops: 8,
                memory_pressures: 6,
                sockets: 12,
                time_wait: 30,
                established: Some(11),
                buffer_bytes: 8192,
            }
        );
    }

    #[test]
    fn what_an_older_kernel_does_not_count_is_zero() {
        assert_eq!(
            TcpCounters::parse("", "TcpExt: ListenDrops\n", "TCP: inuse\n", 4096),
            TcpCounters::default()
        );
        assert_eq!(named_value("Tcp: MaxConn\nTcp: -1\n", "Tcp:", "MaxConn"), None);
    }

    #[test]
    fn counters_become_differences_and_levels_stay() {
        let before = TcpCounters::parse(SNMP, NETSTAT, SOCKSTAT, 1);
        let now = TcpCounters { segments_out: 5100, retransmitted: 9, sockets: 40, ..before };
        let states = Some(ConnectionStates { close_wait: 3, ..ConnectionStates::default() });
        let interval = now.interval_since(&before, states, 1000, 500);
        assert_eq!((interval.segments_out, interval.retransmitted, interval.listen_drops), (100, 2, 0));
        assert_eq!((interval.sockets, interval.start_ms, interval.length_ms), (40, 1000, 500));
        assert_eq!(
            (interval.established, interval.close_wait, interval.syn_sent),
            (Some(8), Some(3), Some(0))
        );
        assert_eq!(now.interval_since(&before, None, 0, 1).established, Some(11));
    }

    #[test]
    fn interfaces_are_read_past_the_two_lines_of_headings() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop\n  \
                    lo: 10 2 0 1 0 0 0 0 30 4 0 5 0 0 0 0\nveth-a:1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n";
        let found: Vec<_> = text.lines().filter_map(parse_traffic).collect();
        assert_eq!(
            found,
            [("lo", InterfaceCounters([10, 2, 1, 30, 4, 5])), ("veth-a", InterfaceCounters([1; 6]))]
        );
    }

    #[test]
    fn roles_that_share_a_namespace_come_together() {
        let pid = std::process::id();
        let roles =
            [("robots".to_owned(), Some(pid)), ("proxy".to_owned(), None), ("origins".to_owned(), Some(pid))];
        let mut buffer = ReadBuffer::default();
        let mut found = namespaces(&roles, &mut buffer);
        assert_eq!(found.len(), 1);
        let interval = found[0].interval(0, 1000, Instant::now(), &mut buffer);
        assert_eq!((interval.role.as_str(), interval.length_ms), ("robots+origins", 1000));
        assert_eq!(namespaces(&[], &mut buffer)[0].role, "host");
    }
}
