//! Demands of a plan on a machine: connections, rates and volumes, from the workload alone.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_workload::model::{Distribution, RobotGroup, Workload};
use assay_workload::timeline::Timeline;

/// Time that responses may take before a robot without a connection limit has more connections than are counted
/// on.
const SLOW_RESPONSE_S: f64 = 10.0;
/// Connections of a best-effort robot that has no limit and fetches pages with what they embed.
const PAGE_CONNECTIONS: u64 = 8;
/// Time that an origin's response takes beside its think time, with room for bursts.
const ORIGIN_RESPONSE_S: f64 = 0.1;

/// Demands of a plan on a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demand {
    pub robots: u64,
    /// Origins: each listens.
    pub origins: u64,
    /// Connections that robots may have open at once.
    pub connections: u64,
    /// The most of them from one source address to one destination.
    pub connections_per_source: u64,
    /// Connections opened in a second, at most; all sources.
    pub new_connections_per_s: f64,
    pub sources: u64,
    /// Target between robots and origins; none: nothing.
    pub target: Option<TargetDemand>,
    /// Memory for the cache of a target that the lab starts.
    pub cache_memory_bytes: u64,
    pub cache_disk_bytes: u64,
    /// Objects that the ideal cache remembers at most.
    pub remembered_objects: f64,
    /// Length of the schedule, if it is known.
    pub length: Option<Duration>,
    /// Requests, if every one is recorded and their number is known.
    pub recorded_requests: f64,
    /// Each phase at its peak; empty at best effort.
    pub loads: Vec<PhaseLoad>,
    /// Emulated links that have a rate.
    pub links: Vec<LinkRate>,
}

/// The rate of an emulated link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRate {
    /// Whether it is between the target and origins; else between robots and the target.
    pub is_to_origins: bool,
    /// Bits per second in each direction.
    pub bits_per_s: u64,
}

/// Demands of the target itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TargetDemand {
    pub name: String,
    /// Processes that share its connections; none: it runs already, and what it may have is not known.
    pub processes: Option<u64>,
    /// Connections to origins at once, if it caches all it can and origins respond right after their think time.
    pub least_upstream: u64,
    /// The same with nothing cached, and a moment for each response.
    pub likely_upstream: u64,
}

/// A phase at its peak.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PhaseLoad {
    pub phase: String,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Body bytes per request.
    pub bytes_per_request: f64,
    /// Connections that robots open per second.
    pub new_connections_per_s: f64,
    /// The share of requests that an ideal cache has to pass on.
    pub origin_share: f64,
}

/// The phases with their peaks; best-effort robots have none.
pub fn loads(timeline: &Timeline, caches: bool) -> Vec<PhaseLoad> {
    let phases = timeline.phases().iter();
    phases
        .filter_map(|span| {
            let expected = span.expected.as_ref()?;
            let per_request = |sum: f64| if expected.requests > 0.0 { sum / expected.requests } else { 0.0 };
            let hits = if caches { per_request(expected.offered_hits) } else { 0.0 };
            Some(PhaseLoad {
                phase: span.name.clone(),
                requests_per_s: expected.peak_request_rate,
                bytes_per_request: per_request(expected.body_bytes),
                new_connections_per_s: expected.peak_new_connections,
                origin_share: (1.0 - hits).clamp(0.0, 1.0),
            })
        })
        .collect()
}

/// Connections to origins at once: the least that must be, and what is likely.
pub fn upstream(workload: &Workload, loads: &[PhaseLoad], connections: u64) -> (u64, u64) {
    if loads.is_empty() {
        // Best effort: whatever robots have under way may be under way at the origins.
        return (0, connections);
    }
    let thinks: Vec<f64> = workload
        .origins
        .iter()
        .filter_map(|origin| workload.servers.get(usize::from(origin.server)))
        .map(|server| server.think_s.as_ref().map_or(0.0, Distribution::mean).max(0.0))
        .collect();
    let least_s = thinks.iter().copied().fold(f64::INFINITY, f64::min);
    let most_s = thinks.iter().copied().fold(0.0, f64::max) + ORIGIN_RESPONSE_S;
    let peak = |of: &dyn Fn(&PhaseLoad) -> f64| loads.iter().map(of).fold(0.0, f64::max);
    let least =
        if least_s.is_finite() { peak(&|l| l.requests_per_s * l.origin_share * least_s) } else { 0.0 };
    let likely = peak(&|load| load.requests_per_s * most_s);
    (whole(least).min(connections), whole(likely).min(connections))
}

/// A number of things, rounded up; nothing overflows.
pub fn whole(number: f64) -> u64 {
    number.ceil().clamp(0.0, 1e15) as u64
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
            let under_way = |seconds: f64| whole(rate * seconds);
            match per_robot {
                Some(limit) => {
                    robots.saturating_mul(limit).min(robots.saturating_add(under_way(timeout.as_secs_f64())))
                }
                None => robots.saturating_add(under_way(SLOW_RESPONSE_S.min(timeout.as_secs_f64()))),
            }
        }
    }
}

/// Connections of all robots, and of the busiest of the workload's robot addresses.
pub fn connections(workload: &Workload, timeout: Duration) -> (u64, u64) {
    let peak_load = peak_load(workload);
    let mut all = 0_u64;
    let mut by_host: BTreeMap<&str, u64> = BTreeMap::new();
    for group in &workload.robots {
        let connections = group_connections(group, peak_load, timeout);
        all = all.saturating_add(connections);
        let robots = u64::from(group.count()).max(1);
        for address in &group.addresses {
            let share = u128::from(connections) * u128::from(address.count) / u128::from(robots);
            let host = by_host.entry(&address.host).or_default();
            *host = host.saturating_add(u64::try_from(share).unwrap_or(u64::MAX));
        }
    }
    (all, by_host.into_values().max().unwrap_or(0))
}

/// The highest load factor of the schedule.
pub fn peak_load(workload: &Workload) -> f64 {
    let phases = workload.schedule.phases.iter();
    phases.fold(0.0_f64, |peak, phase| peak.max(phase.load.begin).max(phase.load.end))
}

/// The share of the origin with the most requests.
pub fn busiest_origin(workload: &Workload) -> f64 {
    let mut share = vec![0.0_f64; workload.origins.len()];
    let robots = f64::from(workload.robot_count().max(1));
    for group in &workload.robots {
        for (origin, probability) in group.origins.items() {
            if let Some(share) = share.get_mut(usize::from(*origin)) {
                *share += probability * f64::from(group.count()) / robots;
            }
        }
    }
    let busiest = share.into_iter().fold(0.0, f64::max);
    if busiest > 0.0 { busiest.min(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use assay_workload::model::{Origin, Pace, Weighted};

    use super::*;
    use crate::testing;

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
    fn think_times_keep_connections_to_origins_open() {
        let mut workload = testing::workload();
        workload.servers[0].think_s = Some(Distribution::Constant(2.0));
        let load = PhaseLoad { requests_per_s: 100.0, origin_share: 0.5, ..PhaseLoad::default() };
        assert_eq!(upstream(&workload, std::slice::from_ref(&load), 1000), (100, 210));
        assert_eq!(upstream(&workload, &[load], 150), (100, 150));
        assert_eq!(upstream(&workload, &[], 150), (0, 150));
    }

    #[test]
    fn the_busiest_origin_is_found_over_groups() {
        let mut workload = testing::workload();
        workload.origins.push(Origin { authority: "192.168.0.4:80".into(), server: 0 });
        assert_eq!(busiest_origin(&workload), 1.0);
        workload.robots[0].origins = Weighted::new([(0, 1.0), (1, 3.0)]);
        assert_eq!(busiest_origin(&workload), 0.75);
    }
}
