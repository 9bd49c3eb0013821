//! What the machine is, and what processes and the machine used in each interval.

use std::fs;
use std::path::Path;

use assay_record::interval::HostInterval;
use assay_record::run::HostInfo;

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

/// What a tree of processes has used since it began, and holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    cpu_us: u64,
    run_delay_us: u64,
    rss_bytes: u64,
    descriptors: u64,
}

/// Measures roles and the machine once an interval.
#[derive(Debug)]
pub struct Meter {
    roles: Vec<(String, Vec<u32>, Usage)>,
    machine: Machine,
    last_ms: u64,
    ticks_per_s: u64,
    page_bytes: u64,
}

/// The machine's own account, since it was started, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Machine {
    busy_us: u64,
    steal_us: u64,
}

impl Meter {
    /// Begins to measure: each role with the first processes of its trees.
    pub fn new(roles: Vec<(String, Vec<u32>)>) -> Self {
        let ticks_per_s = rustix::param::clock_ticks_per_second().max(1);
        let mut meter = Self {
            roles: Vec::new(),
            machine: Machine::default(),
            last_ms: 0,
            ticks_per_s,
            page_bytes: rustix::param::page_size() as u64,
        };
        meter.roles =
            roles.into_iter().map(|(name, pids)| (name, pids.clone(), meter.usage(&pids))).collect();
        meter.machine = meter.machine_now();
        meter
    }

    /// What each role and the machine used since the last time (or since the start of the run).
    pub fn sample(&mut self, now_ms: u64) -> Vec<HostInterval> {
        let interval = HostInterval {
            start_ms: self.last_ms,
            length_ms: now_ms.saturating_sub(self.last_ms),
            ..HostInterval::default()
        };
        let mut samples = Vec::new();
        for index in 0..self.roles.len() {
            let now = self.usage(&self.roles[index].1);
            let (name, _, before) = &mut self.roles[index];
            samples.push(HostInterval {
                role: name.clone(),
                // A process that ended takes its account with it when nobody waited for it: never below zero.
                cpu_us: now.cpu_us.saturating_sub(before.cpu_us),
                run_delay_us: now.run_delay_us.saturating_sub(before.run_delay_us),
                rss_bytes: now.rss_bytes,
                descriptors: now.descriptors,
                ..interval.clone()
            });
            *before = now;
        }
        let machine = self.machine_now();
        let used = memory("MemTotal").unwrap_or(0).saturating_sub(memory("MemAvailable").unwrap_or(0));
        samples.push(HostInterval {
            role: "host".into(),
            cpu_us: machine.busy_us.saturating_sub(self.machine.busy_us),
            steal_us: machine.steal_us.saturating_sub(self.machine.steal_us),
            rss_bytes: used,
            ..interval
        });
        self.machine = machine;
        self.last_ms = now_ms;
        samples
    }

    /// The sum over the processes and all their descendants.
    fn usage(&self, roots: &[u32]) -> Usage {
        let mut sum = Usage::default();
        let mut open: Vec<u32> = roots.to_vec();
        // Bounded: a tree that grows faster than it is walked is not one of ours.
        let mut left = 4096;
        while let Some(pid) = open.pop() {
            left -= 1;
            if left == 0 {
                break;
            }
            self.add_process(pid, &mut sum, &mut open);
        }
        sum
    }

    fn add_process(&self, pid: u32, sum: &mut Usage, open: &mut Vec<u32>) {
        let proc = format!("/proc/{pid}");
        let Some(stat) = fs::read_to_string(format!("{proc}/stat")).ok().and_then(|text| parse_stat(&text))
        else {
            return;
        };
        sum.cpu_us += stat.ticks * 1_000_000 / self.ticks_per_s;
        sum.rss_bytes += stat.rss_pages * self.page_bytes;
        sum.descriptors += count_descriptors(Path::new(&format!("{proc}/fd")));
        let Ok(threads) = fs::read_dir(format!("{proc}/task")) else { return };
        for thread in threads.flatten() {
            let path = thread.path();
            if let Ok(text) = fs::read_to_string(path.join("schedstat")) {
                sum.run_delay_us += parse_run_delay_ns(&text) / 1000;
            }
            if let Ok(text) = fs::read_to_string(path.join("children")) {
                open.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
        }
    }

    fn machine_now(&self) -> Machine {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (busy, steal) = parse_machine(&text);
        let us = |ticks: u64| ticks * 1_000_000 / self.ticks_per_s;
        Machine { busy_us: us(busy), steal_us: us(steal) }
    }
}

/// What is read of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// User and system time, with that of children that ended and were waited for.
    ticks: u64,
    rss_pages: u64,
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name, in parentheses, may hold anything: fields are counted from behind the last one.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat { ticks: number(14)? + number(15)? + number(16)? + number(17)?, rss_pages: number(24)? })
}

fn parse_run_delay_ns(schedstat: &str) -> u64 {
    schedstat.split_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
}

/// Busy and stolen ticks of all processors.
fn parse_machine(stat: &str) -> (u64, u64) {
    let line = stat.lines().find(|line| line.starts_with("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|tick| tick.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    // user nice system idle iowait irq softirq steal
    (at(0) + at(1) + at(2) + at(5) + at(6), at(7))
}

fn count_descriptors(dir: &Path) -> u64 {
    // Since Linux 6.2 the size of the directory is the number of descriptors; before, it is 0.
    match dir.metadata().map(|meta| meta.len()) {
        Ok(0) => fs::read_dir(dir).map_or(0, |entries| entries.count() as u64),
        Ok(count) => count,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_confuses_nobody() {
        let text = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5 1000 77 0 0";
        assert_eq!(parse_stat(text), Some(Stat { ticks: 100, rss_pages: 77 }));
        assert_eq!(parse_stat("7 (gone"), None);
    }

    #[test]
    fn kernel_texts_are_read() {
        assert_eq!(meminfo("MemTotal:       100 kB\nMemAvailable: 7 kB\n", "MemAvailable"), Some(7168));
        assert_eq!(meminfo("MemTotal: 1 kB\n", "Mem"), None);
        assert_eq!(parse_run_delay_ns("5000 7000 3\n"), 7000);
        assert_eq!(parse_machine("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1\n"), (19, 8));
        assert_eq!(parse_machine(""), (0, 0));
    }

    #[test]
    fn this_process_uses_memory_and_descriptors() {
        let mut meter = Meter::new(vec![("robots".into(), vec![std::process::id()])]);
        let samples = meter.sample(1000);
        assert_eq!(samples.len(), 2);
        assert_eq!((samples[0].role.as_str(), samples[1].role.as_str()), ("robots", "host"));
        assert!(samples[0].rss_bytes > 0 && samples[0].descriptors > 0);
        assert_eq!((samples[0].start_ms, samples[0].length_ms), (0, 1000));
        assert_eq!(meter.sample(2500)[0].start_ms, 1000);
    }

    #[test]
    fn a_process_that_is_gone_counts_as_nothing() {
        let mut meter = Meter::new(vec![("proxy".into(), vec![u32::MAX])]);
        assert_eq!(meter.sample(1000)[0].rss_bytes, 0);
    }

    #[test]
    fn the_machine_has_facts() {
        let facts = facts(20_000);
        assert!(facts.cpus > 0 && facts.memory_bytes > 0 && !facts.kernel.is_empty());
        assert!(facts.settings.contains_key("ip_local_port_range"));
    }
}
