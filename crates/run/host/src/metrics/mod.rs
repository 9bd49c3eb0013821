//! What the machine is, and what the roles' processes, the processors, disks and network did in each interval.
//!
//! All of it is read once a second by the lab itself, from files of the kernel's that are kept open. What costs more than a
//! little (connections by state, proportional memory) is read less often where it would take more than a small part of a
//! processor: see [`pace`].

mod disks;
mod group;
mod instance;
pub(crate) mod kept;
pub(crate) mod machine;
mod network;
mod pace;
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
use group::{Charged, Group};
use kept::Room;
use machine::{Files, Machine};
use network::Namespace;
use pace::own_time;
use processes::Tree;
use waits::Waits;

pub use processes::ProcessorWaits;
pub use trace::Trace;

/// The role whose waits are watched in short stretches.
const TARGET: &str = "proxy";

/// Facts that can change numbers: name in `run.json`, and where the kernel keeps it.
const SETTINGS: [(&str, &str); 10] = [
    ("tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ("ip_local_port_range", PORT_RANGE),
    ("tcp_tw_reuse", TW_REUSE),
    ("tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"),
    ("tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem"),
    ("somaxconn", "/proc/sys/net/core/somaxconn"),
    // Where it is 1, a low priority in one session does not make room for another.
    ("sched_autogroup", "/proc/sys/kernel/sched_autogroup_enabled"),
    ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("scaling_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
];
/// Where the range of source ports is.
pub const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Where it says whether ports of connections closed a moment ago are used again.
pub const TW_REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";

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
        clock: clock().unwrap_or_default(),
        settings,
    }
}

/// Which `CLOCK_MONOTONIC` this is: that of a boot of the kernel, as a time namespace moves it.
fn clock() -> Option<String> {
    let boot = read_line("/proc/sys/kernel/random/boot_id")?;
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

/// The first line of a file of the kernel's, without space around it.
pub fn read_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Measures roles and the machine once an interval.
#[derive(Debug)]
pub struct Meter {
    roles: Vec<Role>,
    files: Files,
    machine: Machine,
    disks: Disks,
    networks: Vec<Namespace>,
    trace: Option<Trace>,
    room: Room,
    last_ms: u64,
    /// What the last sample cost, keeping it included.
    cost: Duration,
}

/// A role that is measured.
#[derive(Debug)]
struct Role {
    name: String,
    tree: Tree,
    group: Group,
    charged: Charged,
    /// How its threads wait, in short stretches; of the target only.
    waits: Option<Waits>,
}

impl Role {
    fn new(name: String, pids: Vec<u32>, room: &mut Room) -> Self {
        let group = pids.first().map_or_else(Group::default, |pid| Group::of(*pid));
        let charged = group.now(room);
        let tree = Tree::new(pids, room);
        let waits = (name == TARGET).then(Waits::begin).flatten();
        if let Some(waits) = &waits {
            waits.follow(&tree.waiting());
        }
        Self { name, tree, group, charged, waits }
    }

    fn interval(&mut self, start_ms: u64, length_ms: u64, now: Instant, room: &mut Room) -> HostInterval {
        let used = self.tree.usage(now, room);
        let waits = self.waits.as_ref().map(|waits| {
            let taken = waits.take(used.run_delay_us, room);
            waits.follow(&self.tree.waiting());
            taken
        });
        let charged = self.group.now(room);
        let by_group = charged.cpu.zip(self.charged.cpu).map(|(now, before)| now.since(before));
        self.charged = charged;
        let by_process = group::Time {
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
            group_bytes: charged.bytes,
            cache_bytes: charged.cache_bytes,
            waits: waits.unwrap_or_default(),
        }
    }
}

impl Meter {
    /// Begins to measure: each role with the first processes of its trees. `store` is where the proxy keeps its files; `trace` is
    /// that of its disk, if there is to be one.
    pub fn new(roles: Vec<(String, Vec<u32>)>, store: Option<&Path>, trace: Option<Trace>) -> Self {
        let mut room = Room::default();
        let first: Vec<_> = roles.iter().map(|(name, pids)| (name.clone(), pids.first().copied())).collect();
        let files = Files::open();
        let store = store.and_then(disks::device_of).map(|device| device.name);
        // Requests to it before the run are not the run's.
        trace.iter().for_each(|trace| drop(trace.intervals(0, 0)));
        Self {
            machine: files.now(&mut room),
            disks: Disks::open(store, &mut room),
            networks: network::namespaces(&first, &mut room),
            roles: roles.into_iter().map(|(name, pids)| Role::new(name, pids, &mut room)).collect(),
            files,
            trace,
            room,
            last_ms: 0,
            cost: Duration::ZERO,
        }
    }

    /// Measures, has it kept, and notes what both cost for the next sample.
    pub fn measure<E>(&mut self, now_ms: u64, keep: impl FnOnce(Series) -> Result<(), E>) -> Result<(), E> {
        let before = own_time();
        let sample = self.sample(now_ms);
        let kept = keep(sample);
        self.cost = own_time().saturating_sub(before);
        kept
    }

    /// When the target waited for processors since the last call, as often as anybody asks; none where it is not watched.
    pub fn waits(&self) -> Option<WaitReport> {
        self.roles.iter().find_map(|role| role.waits.as_ref()?.report())
    }

    /// What each role and the machine did since the last time (or since the start of the run).
    fn sample(&mut self, now_ms: u64) -> Series {
        let (start_ms, length_ms) = (self.last_ms, now_ms.saturating_sub(self.last_ms));
        let (now, room) = (Instant::now(), &mut self.room);
        let mut host: Vec<HostInterval> =
            self.roles.iter_mut().map(|role| role.interval(start_ms, length_ms, now, room)).collect();
        let machine = self.files.now(room);
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
        let watching: Duration =
            self.roles.iter().filter_map(|role| role.waits.as_ref().map(Waits::cost)).sum();
        let cost = self.cost + watching + self.trace.as_ref().map_or(Duration::ZERO, Trace::cost);
        let sample = Series {
            host,
            processors: machine.processors_since(&self.machine, start_ms, length_ms),
            network: networks.iter_mut().map(|each| each.interval(start_ms, length_ms, now, room)).collect(),
            machine: vec![MachineInterval {
                metering_us: u64::try_from(cost.as_micros()).unwrap_or(u64::MAX),
                ..machine.interval_since(&self.machine, start_ms, length_ms)
            }],
            disks: self.disks.intervals(start_ms, length_ms, room),
            interfaces: networks
                .iter_mut()
                .flat_map(|each| each.traffic(start_ms, length_ms, room))
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
