//! Can this machine carry the plan? The arithmetic, with its numbers in every message; asks the machine
//! nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_workload::model::{Pace, RobotGroup, Workload};

/// Descriptors of a process that are no connections: files, timers, pipes.
const OWN_DESCRIPTORS: u64 = 100;
/// How long answers may take before a robot without a connection limit has more connections than are counted
/// on.
const SLOW_ANSWER_S: f64 = 10.0;
/// Connections of a best-effort robot that has no limit and fetches pages with what they embed.
const PAGE_CONNECTIONS: u64 = 8;
/// How long the port of a connection that a robot closed cannot be used again, unless the kernel allows it.
const TIME_WAIT_S: f64 = 60.0;
/// Memory of a connection, the kernel's part included, at both of its ends.
const CONNECTION_BYTES: u64 = 32 << 10;
/// Memory of the role processes themselves.
const ROLES_BYTES: u64 = 128 << 20;
/// Room in the run directory beside what grows: report, configuration, first logs.
const RUN_DIR_BYTES: u64 = 32 << 20;
/// Series, as a journal, per second of the run.
const SERIES_BYTES_PER_S: u64 = 32 << 10;
/// A row of the xact log on disk.
const XACT_BYTES: u64 = 100;
/// Room that a disk store needs beside its capacity.
const DISK_STORE_SLACK: u64 = 64 << 20;

/// What a plan asks of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demand {
    /// Connections that robots may have open at once.
    pub connections: u64,
    /// The most of them from one source address.
    pub connections_per_source: u64,
    /// Connections opened in a second, at most; all sources.
    pub new_connections_per_s: f64,
    /// Source addresses.
    pub sources: u64,
    /// Memory for the cache of a target that the lab starts.
    pub cache_memory_bytes: u64,
    /// Disk for it.
    pub cache_disk_bytes: u64,
    /// Length of the schedule, if it is known.
    pub length: Option<Duration>,
    /// Requests, if every one is recorded and their number is known.
    pub recorded_requests: f64,
}

/// What the machine has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Supply {
    /// Descriptors that a process may have.
    pub descriptors: u64,
    /// First and last port that connections are given.
    pub ports: (u16, u16),
    /// The kernel uses ports of connections that ended a moment ago again.
    pub reuses_ports: bool,
    /// Memory that can be had.
    pub memory_bytes: u64,
    /// Free space where the run directory goes.
    pub run_dir_free_bytes: u64,
    /// Free space where the proxy works.
    pub work_dir_free_bytes: u64,
    /// Where that is.
    pub work_dir: String,
}

/// Connections that the robots of a group may have open at once.
pub fn group_connections(group: &RobotGroup, peak_load: f64, timeout: Duration) -> u64 {
    let robots = u64::from(group.count());
    let per_robot = group.open_connection_limit.map(u64::from);
    match group.pace.per_second() {
        None => robots.saturating_mul(per_robot.unwrap_or(PAGE_CONNECTIONS)),
        Some(per_second) => {
            // An idle connection each, and one for every request that can be under way.
            let rate = per_second * peak_load * robots as f64;
            let under_way = |seconds: f64| (rate * seconds).ceil().clamp(0.0, 1e15) as u64;
            match per_robot {
                Some(limit) => {
                    robots.saturating_mul(limit).min(robots.saturating_add(under_way(timeout.as_secs_f64())))
                }
                None => robots.saturating_add(under_way(SLOW_ANSWER_S.min(timeout.as_secs_f64()))),
            }
        }
    }
}

/// Connections of all robots, and of the busiest of the workload's robot addresses.
pub fn connections(workload: &Workload, timeout: Duration) -> (u64, u64) {
    let peak_load = workload
        .schedule
        .phases
        .iter()
        .fold(0.0_f64, |peak, phase| peak.max(phase.load.begin).max(phase.load.end));
    let mut all = 0_u64;
    let mut by_host: BTreeMap<&str, u64> = BTreeMap::new();
    for group in &workload.robots {
        let connections = group_connections(group, peak_load, timeout);
        all = all.saturating_add(connections);
        let robots = u64::from(group.count()).max(1);
        for address in &group.addresses {
            let share = u128::from(connections) * u128::from(address.count) / u128::from(robots);
            *by_host.entry(&address.host).or_default() += u64::try_from(share).unwrap_or(u64::MAX);
        }
    }
    (all, by_host.into_values().max().unwrap_or(0))
}

/// The first thing that stands in the way, with its arithmetic and what to do.
pub fn check(demand: &Demand, supply: &Supply) -> Result<(), String> {
    check_descriptors(demand, supply)?;
    check_ports(demand, supply)?;
    check_memory(demand, supply)?;
    check_disk(demand, supply)
}

fn check_descriptors(demand: &Demand, supply: &Supply) -> Result<(), String> {
    let needed = demand.connections.saturating_add(OWN_DESCRIPTORS);
    if needed <= supply.descriptors {
        return Ok(());
    }
    Err(format!(
        "too few file descriptors: robots may have {} connections open at once, and with {OWN_DESCRIPTORS} more \
         that is {needed}, but a process may have {} (ulimit -n); raise the limit, give the workload fewer robots, \
         or a lower open_conn_lmt",
        demand.connections, supply.descriptors
    ))
}

fn check_ports(demand: &Demand, supply: &Supply) -> Result<(), String> {
    let (first, last) = supply.ports;
    let ports = u64::from(last.saturating_sub(first)) + 1;
    let waiting = if supply.reuses_ports {
        0
    } else {
        let per_source = demand.new_connections_per_s / demand.sources.max(1) as f64;
        (per_source * TIME_WAIT_S).ceil().clamp(0.0, 1e15) as u64
    };
    let needed = demand.connections_per_source.saturating_add(waiting);
    if needed <= ports {
        return Ok(());
    }
    Err(format!(
        "too few source ports: {} connections from one address{} need {needed}, but the system has {ports} for each \
         address ({first} to {last}, net.ipv4.ip_local_port_range); widen that range, or give robots more addresses",
        demand.connections_per_source,
        if waiting > 0 {
            format!(" and {waiting} ports of connections closed in the last minute")
        } else {
            String::new()
        }
    ))
}

fn check_memory(demand: &Demand, supply: &Supply) -> Result<(), String> {
    let cache = demand.cache_memory_bytes.saturating_add(demand.cache_memory_bytes / 4);
    let connections = demand.connections.saturating_mul(CONNECTION_BYTES);
    let needed = cache.saturating_add(connections).saturating_add(ROLES_BYTES);
    if needed <= supply.memory_bytes {
        return Ok(());
    }
    Err(format!(
        "too little memory: the cache ({} and a quarter more for what a proxy keeps beside it), {} connections ({}) \
         and Assay itself ({}) need {}, but {} can be had; give the proxy less (--memory)",
        size(demand.cache_memory_bytes),
        demand.connections,
        size(connections),
        size(ROLES_BYTES),
        size(needed),
        size(supply.memory_bytes)
    ))
}

fn check_disk(demand: &Demand, supply: &Supply) -> Result<(), String> {
    let seconds = demand.length.map_or(0, |length| length.as_secs());
    let xacts = (demand.recorded_requests.clamp(0.0, 1e15) as u64).saturating_mul(XACT_BYTES);
    let record =
        RUN_DIR_BYTES.saturating_add(seconds.saturating_mul(SERIES_BYTES_PER_S)).saturating_add(xacts);
    if record > supply.run_dir_free_bytes {
        return Err(format!(
            "too little disk space for the run directory: the record may take {}, but {} are free there; make room, \
             or choose another place with --run-dir",
            size(record),
            size(supply.run_dir_free_bytes)
        ));
    }
    let store = demand.cache_disk_bytes.saturating_add(DISK_STORE_SLACK);
    if demand.cache_disk_bytes > 0 && store > supply.work_dir_free_bytes {
        return Err(format!(
            "too little disk space for the proxy's cache: it is given {} and needs {} with what comes beside it, but \
             {} are free in {}; make room, give it less (--disk), or name another place in TMPDIR",
            size(demand.cache_disk_bytes),
            size(store),
            size(supply.work_dir_free_bytes),
            supply.work_dir
        ));
    }
    Ok(())
}

/// A size for people, in binary units.
pub fn size(bytes: u64) -> String {
    let units = [("GB", 30), ("MB", 20), ("KB", 10)];
    match units.into_iter().find(|(_, shift)| bytes >= 1 << shift) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn plenty() -> Supply {
        Supply {
            descriptors: 20_000,
            ports: (32_768, 60_999),
            reuses_ports: true,
            memory_bytes: 8 << 30,
            run_dir_free_bytes: 50 << 30,
            work_dir_free_bytes: 50 << 30,
            work_dir: "/tmp".into(),
        }
    }

    fn usual() -> Demand {
        Demand {
            connections: 4000,
            connections_per_source: 4000,
            new_connections_per_s: 400.0,
            sources: 1,
            cache_memory_bytes: 1 << 30,
            cache_disk_bytes: 1 << 30,
            length: Some(Duration::from_secs(60)),
            recorded_requests: 0.0,
        }
    }

    #[test]
    fn the_listings_plan_fits_a_usual_machine() {
        assert_eq!(check(&usual(), &plenty()), Ok(()));
    }

    #[test]
    fn each_shortage_has_its_own_message_with_numbers_and_advice() {
        let cases: [(Supply, &[&str]); 5] = [
            (Supply { descriptors: 1024, ..plenty() }, &["4100", "1024", "ulimit -n", "open_conn_lmt"]),
            (Supply { ports: (40_000, 40_999), ..plenty() }, &["4000", "1000", "ip_local_port_range"]),
            (Supply { memory_bytes: 1 << 30, ..plenty() }, &["--memory", "1.0 GB"]),
            (Supply { run_dir_free_bytes: 1 << 20, ..plenty() }, &["--run-dir", "1.0 MB"]),
            (Supply { work_dir_free_bytes: 1 << 30, ..plenty() }, &["--disk", "/tmp", "TMPDIR"]),
        ];
        for (supply, words) in cases {
            let message = check(&usual(), &supply).unwrap_err();
            for word in words {
                assert!(message.contains(word), "{word}: {message}");
            }
        }
    }

    #[test]
    fn ports_of_closed_connections_count_where_the_kernel_keeps_them() {
        let supply = Supply { reuses_ports: false, ..plenty() };
        let demand = Demand { new_connections_per_s: 500.0, ..usual() };
        assert!(check(&demand, &supply).unwrap_err().contains("30000 ports of connections closed"));
        assert_eq!(check(&Demand { sources: 10, connections_per_source: 400, ..demand }, &supply), Ok(()));
    }

    #[test]
    fn connections_are_bounded_by_limit_and_by_rate() {
        let timeout = Duration::from_secs(60);
        let mut workload = testing::workload();
        workload.robots = vec![testing::robots("192.168.0.3", 1000, Pace::Rate { per_second: 0.4 })];
        workload.robots[0].open_connection_limit = Some(4);
        assert_eq!(connections(&workload, timeout), (4000, 4000));
        workload.robots[0].open_connection_limit = Some(100);
        assert_eq!(connections(&workload, timeout).0, 25_000);
        workload.robots[0].open_connection_limit = None;
        assert_eq!(connections(&workload, timeout).0, 5000);
        workload.robots[0].pace = Pace::BestEffort;
        assert_eq!(connections(&workload, timeout).0, 1000 * PAGE_CONNECTIONS);
    }

    #[test]
    fn robots_of_one_address_are_added_up_over_groups() {
        let mut workload = testing::workload();
        let group = |host, count| testing::robots(host, count, Pace::BestEffort);
        workload.robots = vec![group("10.0.0.1", 10), group("10.0.0.2", 5), group("10.0.0.1", 1)];
        workload.robots.iter_mut().for_each(|group| group.open_connection_limit = Some(2));
        assert_eq!(connections(&workload, Duration::from_secs(1)), (32, 22));
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!((size(12), size(1536), size(3 << 30)), ("12 B".into(), "1.5 KB".into(), "3.0 GB".into()));
    }

    proptest::proptest! {
        #[test]
        fn no_demand_overflows(connections: u64, memory: u64, disk: u64, rate: f64, requests: f64) {
            let demand = Demand {
                connections,
                connections_per_source: connections,
                new_connections_per_s: rate,
                sources: 0,
                cache_memory_bytes: memory,
                cache_disk_bytes: disk,
                length: Some(Duration::MAX),
                recorded_requests: requests,
            };
            let _ = check(&demand, &Supply::default());
            let _ = check(&demand, &plenty());
        }
    }
}
