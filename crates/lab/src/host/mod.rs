//! What the machine is, and what processes, processors and the network stack did in each interval.

mod machine;
mod network;
mod processes;

use std::fs;

use assay_record::health::{NetworkInterval, ProcessorInterval};
use assay_record::interval::HostInterval;
use assay_record::run::HostInfo;

use machine::Machine;
use network::Network;
use processes::{Accounts, Usage};

/// Facts that can change numbers: name in `run.json`, and where the kernel keeps it.
const SETTINGS: [(&str, &str); 9] = [
    ("tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ("ip_local_port_range", PORT_RANGE),
    ("tcp_tw_reuse", TW_REUSE),
    ("tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"),
    ("tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem"),
    ("somaxconn", "/proc/sys/net/core/somaxconn"),
    ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("scaling_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
];
/// Where the range of source ports is.
pub(crate) const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Where it says whether ports of connections closed a moment ago are used again.
pub(crate) const TW_REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";

/// What the machine is.
pub fn facts(descriptor_limit: u64) -> HostInfo {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |line: &str| line.split_once(':').map(|(_, value)| value.trim().to_owned());
    let cpu_model =
        cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(value).unwrap_or_default();
    let settings =
        SETTINGS.iter().filter_map(|(name, path)| Some(((*name).to_owned(), read_line(path)?))).collect();
    HostInfo {
        kernel: read_line("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpus: u32::try_from(cpuinfo.lines().filter(|line| line.starts_with("processor")).count())
            .unwrap_or(0),
        cpu_model,
        memory_bytes: memory("MemTotal").unwrap_or(0),
        descriptor_limit,
        settings,
    }
}

/// A line of `/proc/meminfo`, in bytes.
pub fn memory(name: &str) -> Option<u64> {
    meminfo(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The first line of a file of the kernel's, without space around it.
pub(crate) fn read_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What was seen in one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What each role used, and the machine as `host`.
    pub host: Vec<HostInterval>,
    /// What each processor did.
    pub processors: Vec<ProcessorInterval>,
    /// What the network stack counted.
    pub network: NetworkInterval,
}

/// Measures roles and the machine once an interval.
#[derive(Debug)]
pub struct Meter {
    accounts: Accounts,
    roles: Vec<(String, Vec<u32>, Usage)>,
    machine: Machine,
    network: Network,
    last_ms: u64,
}

impl Meter {
    /// Begins to measure: each role with the first processes of its trees.
    pub fn new(roles: Vec<(String, Vec<u32>)>) -> Self {
        let accounts = Accounts::default();
        let roles = roles.into_iter().map(|(name, pids)| {
            let usage = accounts.usage(&pids);
            (name, pids, usage)
        });
        Self {
            roles: roles.collect(),
            accounts,
            machine: Machine::now(),
            network: Network::now(),
            last_ms: 0,
        }
    }

    /// What each role and the machine did since the last time (or since the start of the run).
    pub fn sample(&mut self, now_ms: u64) -> Sample {
        let (start_ms, length_ms) = (self.last_ms, now_ms.saturating_sub(self.last_ms));
        let interval = HostInterval { start_ms, length_ms, ..HostInterval::default() };
        let mut host = Vec::with_capacity(self.roles.len() + 1);
        for (name, pids, before) in &mut self.roles {
            let now = self.accounts.usage(pids);
            host.push(HostInterval {
                role: name.clone(),
                cpu_us: now.cpu_us.saturating_sub(before.cpu_us),
                run_delay_us: now.run_delay_us.saturating_sub(before.run_delay_us),
                rss_bytes: now.rss_bytes,
                descriptors: now.descriptors,
                ..interval.clone()
            });
            *before = now;
        }
        let machine = Machine::now();
        let used = memory("MemTotal").unwrap_or(0).saturating_sub(memory("MemAvailable").unwrap_or(0));
        let all = machine.all.since(self.machine.all);
        host.push(HostInterval {
            role: "host".into(),
            cpu_us: all.busy_us,
            steal_us: all.steal_us,
            rss_bytes: used,
            ..interval
        });
        let processors = machine.intervals_since(&self.machine, start_ms, length_ms);
        let network = Network::now();
        let counted = network.interval_since(&self.network, start_ms, length_ms);
        (self.machine, self.network, self.last_ms) = (machine, network, now_ms);
        Sample { host, processors, network: counted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_whole_names() {
        assert_eq!(meminfo("MemTotal:       100 kB\nMemAvailable: 7 kB\n", "MemAvailable"), Some(7168));
        assert_eq!(meminfo("MemTotal: 1 kB\n", "Mem"), None);
    }

    #[test]
    fn this_process_uses_memory_and_descriptors() {
        let mut meter = Meter::new(vec![("robots".into(), vec![std::process::id()])]);
        let sample = meter.sample(1000);
        let [robots, host] = sample.host.as_slice() else { panic!("{sample:?}") };
        assert_eq!((robots.role.as_str(), host.role.as_str()), ("robots", "host"));
        assert!(robots.rss_bytes > 0 && robots.descriptors > 0);
        assert_eq!((robots.start_ms, robots.length_ms), (0, 1000));
        assert!(!sample.processors.is_empty() && sample.network.length_ms == 1000);
        let later = meter.sample(2500);
        assert_eq!((later.host[0].start_ms, later.processors[0].length_ms), (1000, 1500));
    }

    #[test]
    fn a_process_that_is_gone_counts_as_nothing() {
        let mut meter = Meter::new(vec![("proxy".into(), vec![u32::MAX])]);
        assert_eq!(meter.sample(1000).host[0].rss_bytes, 0);
    }

    #[test]
    fn the_machine_has_facts() {
        let facts = facts(20_000);
        assert!(facts.cpus > 0 && facts.memory_bytes > 0 && !facts.kernel.is_empty());
        assert!(facts.settings.contains_key("ip_local_port_range"));
    }
}
