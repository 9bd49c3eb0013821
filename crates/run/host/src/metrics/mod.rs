//! Facts about the machine, and metrics of roles, processors, disks and network in each interval.
//!
//! The lab reads them once a second, from files of `/proc` that are kept open. Costly readings (connections by state,
//! proportional memory) are made less often if they would take more than a small share of a processor: see [`pacer`].

mod disks;
mod group;
mod instance;
pub(crate) mod machine;
mod network;
mod pacer;
pub(crate) mod proc_file;
mod processes;
mod states;
mod trace;
mod waits;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use assay_measurement::interval::HostInterval;
use assay_measurement::machine::MachineInterval;
use assay_measurement::measured::Series;
use assay_measurement::waits::WaitReport;
use assay_record::run::HostInfo;

use disks::Disks;
use group::{ControlGroup, GroupUsage};
use machine::{MachineCounters, MachineFiles};
use network::NetworkNamespace;
use pacer::thread_cpu_time;
use proc_file::ReadBuffer;
use processes::ProcessTree;
use waits::WaitMonitor;

pub use instance::TraceError;
pub use processes::ProcessorWaits;
pub use trace::BlockTrace;

/// The role whose waits are monitored in short windows.
const TARGET: &str = "proxy";

/// Settings of the machine that can affect results: name in `run.json`, and file.
const SETTINGS: [(&str, &str); 10] = [
    ("tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ("ip_local_port_range", PORT_RANGE),
    ("tcp_tw_reuse", TW_REUSE),
    ("tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"),
    ("tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem"),
    ("somaxconn", "/proc/sys/net/core/somaxconn"),
    // With autogroups, nice values have an effect within a session only.
    ("sched_autogroup", "/proc/sys/kernel/sched_autogroup_enabled"),
    ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("scaling_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
];
/// The range of source ports.
pub const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Reuse of ports in TIME_WAIT.
pub const TW_REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";

/// Facts about the machine.
pub fn facts(descriptor_limit: u64) -> HostInfo {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |line: &str| line.split_once(':').map(|(_, value)| value.trim().to_owned());
    let cpu_model =
        cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(value).unwrap_or_default();
    let settings =
        SETTINGS.iter().filter_map(|(name, path)| Some(((*name).to_owned(), read_words(path)?))).collect();
    HostInfo {
        kernel: read_words("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpus: u32::try_from(cpuinfo.lines().filter(|line| line.starts_with("processor")).count())
            .unwrap_or(0),
        cpu_model,
        memory_bytes: memory("MemTotal").unwrap_or(0),
        descriptor_limit,
        clock: clock().unwrap_or_default(),
        settings,
    }
}

/// Identity of `CLOCK_MONOTONIC`, which starts with a boot and is shifted by a time namespace.
fn clock() -> Option<String> {
    let boot = read_words("/proc/sys/kernel/random/boot_id")?;
    let namespace = fs::read_link("/proc/self/ns/time").ok()?;
    Some(format!("{boot} {}", namespace.display()))
}

/// A line of `/proc/meminfo`, in bytes.
pub fn memory(name: &str) -> Option<u64> {
    meminfo(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Text of a small file, with single spaces between its words.
pub fn read_words(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Reader of the metrics of roles and machine, called once per interval.
#[derive(Debug)]
pub struct Meter {
    roles: Vec<MeteredRole>,
    files: MachineFiles,
    machine: MachineCounters,
    disks: Disks,
    networks: Vec<NetworkNamespace>,
    trace: Option<BlockTrace>,
    buffer: ReadBuffer,
    last_ms: u64,
    /// Processor time of the last sample and its storage.
    cost: Duration,
}

#[derive(Debug)]
struct MeteredRole {
    name: String,
    tree: ProcessTree,
    group: ControlGroup,
    group_usage: GroupUsage,
    /// Waits of threads in short windows; for the target only.
    waits: Option<WaitMonitor>,
}

impl MeteredRole {
    fn new(name: String, pids: Vec<u32>, buffer: &mut ReadBuffer) -> Self {
        let group = pids.first().map_or_else(ControlGroup::default, |pid| ControlGroup::of_process(*pid));
        let group_usage = group.usage(buffer);
        let tree = ProcessTree::new(pids, buffer);
        let waits = (name == TARGET).then(WaitMonitor::start).flatten();
        if let Some(waits) = &waits {
            waits.watch(&tree.threads_by_wait());
        }
        Self { name, tree, group, group_usage, waits }
    }

    fn interval(
        &mut self,
        start_ms: u64,
        length_ms: u64,
        now: Instant,
        buffer: &mut ReadBuffer,
    ) -> HostInterval {
        let used = self.tree.usage(now, buffer);
        let waits = self.waits.as_ref().map(|waits| {
            let taken = waits.take(used.run_delay_us, buffer);
            waits.watch(&self.tree.threads_by_wait());
            taken
        });
        let group_usage = self.group.usage(buffer);
        let by_group = group_usage.cpu.zip(self.group_usage.cpu).map(|(now, before)| now.since(before));
        self.group_usage = group_usage;
        let by_process = group::CpuTime {
            all_us: used.user_us + used.system_us,
            user_us: used.user_us,
            system_us: used.system_us,
        };
        let time = by_group.unwrap_or(by_process);
        HostInterval {
            start_ms,
            length_ms,
            role: self.name.clone(),
            cpu_us: time.all_us,
            rss_bytes: used.rss_bytes,
            run_delay_us: used.run_delay_us,
            descriptors: used.descriptors,
            steal_us: 0,
            user_us: time.user_us,
            system_us: time.system_us,
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            minor_faults: used.minor_faults,
            major_faults: used.major_faults,
            processes: used.processes,
            threads: used.threads,
            pss_bytes: used.pss_bytes,
            disk_read_bytes: used.disk_read_bytes,
            disk_written_bytes: used.disk_written_bytes,
            group_bytes: group_usage.bytes,
            cache_bytes: group_usage.cache_bytes,
            waits: waits.unwrap_or_default(),
        }
    }
}

impl Meter {
    /// Takes the first readings. `roles` are names with root processes; `store` is the directory of the proxy's files, and
    /// `trace` a trace of its disk.
    pub fn new(roles: Vec<(String, Vec<u32>)>, store: Option<&Path>, trace: Option<BlockTrace>) -> Self {
        let mut buffer = ReadBuffer::default();
        let first: Vec<_> = roles.iter().map(|(name, pids)| (name.clone(), pids.first().copied())).collect();
        let files = MachineFiles::open();
        let store = store.and_then(disks::disk_of).map(|device| device.name);
        // Discards requests from before the run.
        trace.iter().for_each(|trace| drop(trace.intervals(0, 0)));
        Self {
            machine: files.now(&mut buffer),
            disks: Disks::open(store, &mut buffer),
            networks: network::namespaces(&first, &mut buffer),
            roles: roles.into_iter().map(|(name, pids)| MeteredRole::new(name, pids, &mut buffer)).collect(),
            files,
            trace,
            buffer,
            last_ms: 0,
            cost: Duration::ZERO,
        }
    }

    /// Takes a sample and stores it; the cost of both is part of the next sample.
    pub fn measure<E>(&mut self, now_ms: u64, store: impl FnOnce(Series) -> Result<(), E>) -> Result<(), E> {
        let before = thread_cpu_time();
        let sample = self.sample(now_ms);
        let stored = store(sample);
        self.cost = thread_cpu_time().saturating_sub(before);
        stored
    }

    /// Waits of the target for processors since the last call; none if they are not monitored.
    pub fn waits(&self) -> Option<WaitReport> {
        self.roles.iter().find_map(|role| role.waits.as_ref()?.report())
    }

    /// Metrics since the last sample, or since the start of the run.
    fn sample(&mut self, now_ms: u64) -> Series {
        let (start_ms, length_ms) = (self.last_ms, now_ms.saturating_sub(self.last_ms));
        let (now, buffer) = (Instant::now(), &mut self.buffer);
        let mut host: Vec<HostInterval> =
            self.roles.iter_mut().map(|role| role.interval(start_ms, length_ms, now, buffer)).collect();
        let machine = self.files.now(buffer);
        let all = machine.all.since(self.machine.all);
        host.push(HostInterval {
            start_ms,
            length_ms,
            role: "host".into(),
            cpu_us: all.busy_us(),
            user_us: all.user_us(),
            system_us: all.kernel_us(),
            steal_us: all.steal_us(),
            rss_bytes: machine.memory.used,
            cache_bytes: Some(machine.memory.cached),
            ..HostInterval::default()
        });
        let networks = &mut self.networks;
        let monitor_cost: Duration =
            self.roles.iter().filter_map(|role| role.waits.as_ref().map(WaitMonitor::cost)).sum();
        let cost = self.cost + monitor_cost + self.trace.as_ref().map_or(Duration::ZERO, BlockTrace::cost);
        let sample = Series {
            host,
            processors: machine.processors_since(&self.machine, start_ms, length_ms),
            network: networks
                .iter_mut()
                .map(|each| each.interval(start_ms, length_ms, now, buffer))
                .collect(),
            machine: vec![MachineInterval {
                metering_us: u64::try_from(cost.as_micros()).unwrap_or(u64::MAX),
                ..machine.interval_since(&self.machine, start_ms, length_ms)
            }],
            disks: self.disks.intervals(start_ms, length_ms, buffer),
            interfaces: networks
                .iter_mut()
                .flat_map(|each| each.traffic(start_ms, length_ms, buffer))
                .collect(),
            blocks: self.trace.as_ref().map_or_else(Vec::new, |trace| trace.intervals(start_ms, length_ms)),
            ..Series::default()
        };
        (self.machine, self.last_ms) = (machine, now_ms);
        sample
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
        let mut meter =
            Meter::new(vec![("robots".into(), vec![std::process::id()])], Some(Path::new("/")), None);
        let sample = meter.sample(1000);
        let [robots, host] = sample.host.as_slice() else { panic!("{sample:?}") };
        assert_eq!((robots.role.as_str(), host.role.as_str()), ("robots", "host"));
        assert!(robots.rss_bytes > 0 && robots.descriptors > 0);
        assert_eq!((robots.start_ms, robots.length_ms), (0, 1000));
        assert!(!sample.processors.is_empty() && sample.network[0].length_ms == 1000);
        assert!(sample.machine[0].used_bytes > 0 && host.cache_bytes.is_some_and(|bytes| bytes > 0));
        assert!(robots.threads > 0 && robots.cpu_us == robots.user_us + robots.system_us);
        let later = meter.sample(2500);
        assert_eq!((later.host[0].start_ms, later.processors[0].length_ms), (1000, 1500));
    }

    #[test]
    fn a_process_that_is_gone_counts_as_nothing() {
        let mut meter = Meter::new(vec![("proxy".into(), vec![u32::MAX])], None, None);
        assert_eq!(meter.sample(1000).host[0].rss_bytes, 0);
    }

    #[test]
    fn the_machine_has_facts() {
        let facts = facts(20_000);
        assert!(facts.cpus > 0 && facts.memory_bytes > 0 && !facts.kernel.is_empty());
        assert!(facts.settings.contains_key("ip_local_port_range"));
    }
}
