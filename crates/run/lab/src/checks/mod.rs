//! Whether this machine, or several, can carry a plan. The arithmetic, thing by thing, with its numbers as text; reads
//! nothing of the machine.

pub mod demand;
mod links;
pub mod machines;
mod processors;

use assay_base::settings::show::bytes;
use assay_measurement::doubt::Reason;
use serde::Serialize;

pub use self::demand::Demand;
use self::demand::whole;

/// Descriptors of a process that are no connections: files, timers, pipes.
const OWN_DESCRIPTORS: u64 = 100;
/// Time for which the port of a connection that a robot closed cannot be used again.
pub const TIME_WAIT_S: f64 = 60.0;
/// The same where the kernel gives such ports out again (`tcp_tw_reuse`).
pub const TIME_WAIT_REUSED_S: f64 = 1.0;
/// Memory of a connection, the kernel's part included, at both of its ends. (1.4 KB of ours and 4 KB of the kernel's at
/// each while it is idle; the rest is what lies in buffers.)
const CONNECTION_BYTES: u64 = 32 << 10;
/// Memory of a robot: its place in its stream.
const ROBOT_BYTES: u64 = 512;
/// Memory of an object that the ideal cache remembers: a key and eight bytes, in a table that doubles.
const REMEMBERED_BYTES: f64 = 40.0;
/// Memory of the role processes themselves, the universe's pool of bytes included.
const ROLES_BYTES: u64 = 128 << 20;
/// Room in the run directory beside what grows: report, configuration, first logs.
const RUN_DIR_BYTES: u64 = 32 << 20;
/// Series, as a journal, per second of the run.
const SERIES_BYTES_PER_S: u64 = 32 << 10;
/// A row of the xact log on disk.
const XACT_BYTES: u64 = 100;
/// Room that a disk store needs beside its capacity.
const DISK_STORE_SLACK: u64 = 64 << 20;

/// Resources of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Supply {
    /// Descriptors that a process may have.
    pub descriptors: u64,
    /// First and last port that connections are given.
    pub ports: (u16, u16),
    /// Time for which the port of a closed connection rests, in seconds.
    pub port_rest_s: f64,
    /// Memory that can be had.
    pub memory_bytes: u64,
    /// Free space where the run directory goes.
    pub run_dir_free_bytes: u64,
    /// Free space where the proxy works.
    pub work_dir_free_bytes: u64,
    pub work_dir: String,
    /// Processors that robots can use: as many as they may, or have threads for.
    pub robot_cpus: u64,
    /// Processors that origins can use.
    pub origin_cpus: u64,
    /// Processors that one or the other can use.
    pub shared_cpus: u64,
}

/// A kind of thing that can run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// File descriptors of a process.
    Descriptors,
    /// Source ports of an address.
    Ports,
    /// Memory, in bytes.
    Memory,
    Processors,
    /// Disk space, in bytes.
    Disk,
    /// Rate of an emulated link, in bits per second.
    Link,
}

impl Resource {
    /// The reason to doubt a run that ran out of it.
    pub fn reason(self) -> Reason {
        match self {
            Resource::Descriptors => Reason::Descriptors,
            Resource::Ports => Reason::Ports,
            Resource::Memory => Reason::SocketMemory,
            Resource::Processors => Reason::Saturated,
            Resource::Disk | Resource::Link => Reason::LabFailed,
        }
    }

    fn show(self, amount: f64) -> String {
        match self {
            Resource::Descriptors | Resource::Ports => format!("{amount:.0}"),
            Resource::Memory | Resource::Disk => bytes(amount.clamp(0.0, 1e18) as u64),
            Resource::Processors => processors::show(amount),
            Resource::Link => format!("{:.1} Mbit/s", amount / 1e6),
        }
    }
}

/// One thing that a plan needs, against what there is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Need {
    /// The machine of a fleet that has to have it, with its part of the plan; none: this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Resource and its user: `descriptors of robots`.
    pub name: String,
    pub resource: Resource,
    /// Amount that is needed at the very least.
    pub at_least: f64,
    /// Amount that is likely to be needed.
    pub needed: f64,
    /// Amount that there is.
    pub available: f64,
    /// Computation of the need.
    pub how: String,
    /// Amount that there is, as text.
    pub has: String,
    /// Advice for where it is not enough.
    pub advice: String,
    /// The share of what there is above which it is too near to be sure.
    tight_above: f64,
}

impl Need {
    fn new(name: impl Into<String>, resource: Resource, needed: u64, available: u64) -> Self {
        Self {
            machine: None,
            name: name.into(),
            resource,
            at_least: needed as f64,
            needed: needed as f64,
            available: available as f64,
            how: String::new(),
            has: String::new(),
            advice: String::new(),
            tight_above: 1.0,
        }
    }

    fn words(self, how: impl Into<String>, has: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { how: how.into(), has: has.into(), advice: advice.into(), ..self }
    }

    /// True: the plan cannot be carried.
    pub fn exceeds(&self) -> bool {
        self.at_least > self.available
    }

    /// True: it may be carried, and may not.
    pub fn is_tight(&self) -> bool {
        !self.exceeds() && self.needed > self.available * self.tight_above
    }

    /// Amount that is needed, for people.
    pub fn needed_words(&self) -> String {
        self.resource.show(if self.exceeds() { self.at_least } else { self.needed })
    }

    /// Amount that there is, for people.
    pub fn available_words(&self) -> String {
        self.resource.show(self.available)
    }

    /// The whole of it as one line; `too` is what it is too, if anything.
    fn sentence(&self, too: &str) -> String {
        let (needed, available) = (self.needed_words(), self.available_words());
        let machine = self.machine.as_ref().map(|machine| format!("{machine}: ")).unwrap_or_default();
        format!(
            "{machine}{too}{}: {needed} needed ({}), and there are {available} ({}); {}",
            self.name, self.how, self.has, self.advice
        )
    }
}

/// Everything that the plan needs and that can run out.
pub fn needs(demand: &Demand, supply: &Supply) -> Vec<Need> {
    let mut needs = descriptors(demand, supply).all();
    needs.extend(ports(demand, supply).all());
    needs.push(memory(demand, supply));
    needs.extend(processors::needs(demand, supply));
    needs.extend(disk(demand, supply));
    needs.extend(links::needs(demand));
    needs
}

/// Needs of each role for one resource.
struct RoleNeeds {
    robots: Need,
    /// None: robots need it for both.
    origins: Option<Need>,
    proxy: Option<Need>,
}

impl RoleNeeds {
    fn all(self) -> Vec<Need> {
        [Some(self.robots), self.origins, self.proxy].into_iter().flatten().collect()
    }
}

/// Reason why the plan cannot be carried, with the arithmetic of everything that is too little; none: it can.
pub fn refusal(needs: &[Need]) -> Option<String> {
    let short: Vec<String> =
        needs.iter().filter(|need| need.exceeds()).map(|need| need.sentence("too few ")).collect();
    let machines = if of_fleet(needs) { "these machines" } else { "this machine" };
    match short.as_slice() {
        [] => None,
        [one] => Some(format!("{machines} cannot carry the plan: {one}")),
        all => Some(format!("{machines} cannot carry the plan:\n  {}", all.join("\n  "))),
    }
}

/// Resources that may turn out to be too little, a line each.
pub fn warnings(needs: &[Need]) -> Vec<String> {
    let tight = needs.iter().filter(|need| need.is_tight());
    let machine = if of_fleet(needs) { "a machine" } else { "this machine" };
    let too_little = |need: &Need| match need.resource {
        Resource::Link => "an emulated link may be too slow".to_owned(),
        _ => format!("{machine} may be too small"),
    };
    tight.map(|need| format!("{} for the plan: {}", too_little(need), need.sentence(""))).collect()
}

fn of_fleet(needs: &[Need]) -> bool {
    needs.iter().any(|need| need.machine.is_some())
}

fn descriptors(demand: &Demand, supply: &Supply) -> RoleNeeds {
    let need = |who: &str, least: u64, likely: u64, how: String, advice: &str| {
        let least = least.saturating_add(OWN_DESCRIPTORS);
        let likely = likely.saturating_add(OWN_DESCRIPTORS).max(least);
        let need =
            Need::new(format!("descriptors of {who}"), Resource::Descriptors, likely, supply.descriptors);
        let need = Need { at_least: least as f64, ..need };
        need.words(
            format!("{how} and {OWN_DESCRIPTORS} files, pipes and timers"),
            "the limit of a process, ulimit -n",
            format!("raise the limit (`ulimit -n`), or give the workload {advice}"),
        )
    };
    let Demand { connections, origins, .. } = *demand;
    let fewer = "fewer robots or a lower open_conn_lmt";
    let robots =
        need("robots", connections, connections, format!("{connections} connections open at once"), fewer);
    let Some(target) = &demand.target else {
        let all = connections.saturating_add(origins);
        let how = format!("{connections} connections of robots, {origins} listening sockets");
        return RoleNeeds { robots, origins: Some(need("origins", all, all, how, fewer)), proxy: None };
    };
    let (least, likely) = (target.least_upstream, target.likely_upstream);
    let how = format!(
        "about {likely} connections of the proxy at the peak rate and think time (at least {least}), {origins} \
         listening sockets"
    );
    let origins = need(
        "origins",
        least.saturating_add(origins),
        likely.saturating_add(origins),
        how,
        "a lower rate or shorter think times",
    );
    let proxy = target.processes.map(|processes| {
        let of_one = |upstream: u64| connections.saturating_add(upstream).div_ceil(processes.max(1));
        let among =
            if processes > 1 { format!(", divided among {processes} processes") } else { String::new() };
        let how = format!(
            "{connections} connections of robots, about {likely} to origins (at least {least}){among}"
        );
        need(&format!("the proxy ({})", target.name), of_one(least), of_one(likely), how, fewer)
    });
    RoleNeeds { robots, origins: Some(origins), proxy }
}

fn ports(demand: &Demand, supply: &Supply) -> RoleNeeds {
    let (first, last) = supply.ports;
    let available = u64::from(last.saturating_sub(first)) + 1;
    let has = format!("{first} to {last}, net.ipv4.ip_local_port_range");
    let per_source = demand.new_connections_per_s / demand.sources.max(1) as f64;
    let resting = whole(per_source * supply.port_rest_s);
    let needed = demand.connections_per_source.saturating_add(resting);
    let how = format!(
        "{} connections from one address to one destination, and {resting} ports of connections closed in the last \
         {:.0} s",
        demand.connections_per_source, supply.port_rest_s
    );
    let advice = "widen that range, or give robots more addresses";
    let robots = Need::new("source ports of a robot address", Resource::Ports, needed, available)
        .words(how, &has, advice);
    let Some(target) = &demand.target else { return RoleNeeds { robots, origins: None, proxy: None } };
    let (least, likely) = (target.least_upstream, target.likely_upstream.max(target.least_upstream));
    let of_one = |upstream: u64| upstream.div_ceil(demand.origins.max(1));
    let proxy = Need::new("source ports of the proxy", Resource::Ports, of_one(likely), available);
    let how = format!("about {likely} connections to {} origins (at least {least})", demand.origins);
    let proxy = Need { at_least: of_one(least) as f64, ..proxy };
    let proxy = proxy.words(how, has, "widen that range, or give the workload more origins");
    RoleNeeds { robots, origins: None, proxy: Some(proxy) }
}

fn memory(demand: &Demand, supply: &Supply) -> Need {
    let cache = demand.cache_memory_bytes.saturating_add(demand.cache_memory_bytes / 4);
    let (hops, upstream) = match &demand.target {
        None => ("", 0),
        Some(target) => (" on both sides of the proxy", target.likely_upstream),
    };
    let open = demand.connections.saturating_add(upstream);
    let connections = open.saturating_mul(CONNECTION_BYTES);
    let robots = demand.robots.saturating_mul(ROBOT_BYTES);
    let remembered = whole(demand.remembered_objects * REMEMBERED_BYTES);
    let needed = [connections, robots, remembered, ROLES_BYTES].into_iter().fold(cache, u64::saturating_add);
    let how = format!(
        "cache {} and a quarter more for what a proxy keeps beside it, {open} connections{hops} {}, {} robots {}, {:.0} \
         objects that the ideal cache remembers {}, Assay itself {}",
        bytes(demand.cache_memory_bytes),
        bytes(connections),
        demand.robots,
        bytes(robots),
        demand.remembered_objects,
        bytes(remembered),
        bytes(ROLES_BYTES),
    );
    Need::new("bytes of memory", Resource::Memory, needed, supply.memory_bytes).words(
        how,
        "MemAvailable",
        "give the proxy less (--memory), or the workload fewer robots",
    )
}

fn disk(demand: &Demand, supply: &Supply) -> Vec<Need> {
    let seconds = demand.length.map_or(0, |length| length.as_secs());
    let series = seconds.saturating_mul(SERIES_BYTES_PER_S);
    let xacts = whole(demand.recorded_requests).saturating_mul(XACT_BYTES);
    let record = RUN_DIR_BYTES.saturating_add(series).saturating_add(xacts);
    let mut how =
        format!("{seconds} s of series {}, report and logs {}", bytes(series), bytes(RUN_DIR_BYTES));
    if demand.recorded_requests > 0.0 {
        how += &format!(", {:.0} requests recorded {}", demand.recorded_requests, bytes(xacts));
    }
    let record = Need::new("bytes for the run directory", Resource::Disk, record, supply.run_dir_free_bytes)
        .words(how, "free where it goes", "make room, or choose another place with --run-dir");
    if demand.cache_disk_bytes == 0 {
        return vec![record];
    }
    let store = demand.cache_disk_bytes.saturating_add(DISK_STORE_SLACK);
    let how = format!("--disk {} and {} beside it", bytes(demand.cache_disk_bytes), bytes(DISK_STORE_SLACK));
    let store =
        Need::new("bytes for the proxy's disk cache", Resource::Disk, store, supply.work_dir_free_bytes)
            .words(
                how,
                format!("free in {}", supply.work_dir),
                "make room, give it less (--disk), or name another place in TMPDIR",
            );
    vec![record, store]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::demand::{PhaseLoad, TargetDemand};
    use super::*;

    pub fn plenty() -> Supply {
        Supply {
            descriptors: 20_000,
            ports: (32_768, 60_999),
            port_rest_s: TIME_WAIT_REUSED_S,
            memory_bytes: 8 << 30,
            run_dir_free_bytes: 50 << 30,
            work_dir_free_bytes: 50 << 30,
            work_dir: "/tmp".into(),
            robot_cpus: 1,
            origin_cpus: 1,
            shared_cpus: 1,
        }
    }

    pub fn usual() -> Demand {
        let target = TargetDemand {
            name: "nginx".into(),
            processes: Some(1),
            least_upstream: 50,
            likely_upstream: 500,
        };
        let load = PhaseLoad {
            phase: "top".into(),
            requests_per_s: 160.0,
            bytes_per_request: 13_000.0,
            new_connections_per_s: 10.0,
            origin_share: 0.5,
        };
        Demand {
            robots: 1000,
            origins: 4,
            connections: 4000,
            connections_per_source: 4000,
            new_connections_per_s: 400.0,
            sources: 1,
            target: Some(target),
            cache_memory_bytes: 1 << 30,
            cache_disk_bytes: 1 << 30,
            remembered_objects: 1e6,
            length: Some(Duration::from_secs(60)),
            recorded_requests: 0.0,
            links: Vec::new(),
            loads: vec![load],
        }
    }

    fn refused(demand: &Demand, supply: &Supply) -> String {
        refusal(&needs(demand, supply)).expect("a refusal")
    }

    #[test]
    fn the_listings_plan_fits_a_usual_machine() {
        let needs = needs(&usual(), &plenty());
        assert_eq!((refusal(&needs), warnings(&needs)), (None, Vec::new()));
    }

    #[test]
    fn each_shortage_has_its_own_message_with_numbers_and_advice() {
        let cases: [(Supply, &[&str]); 6] = [
            (Supply { descriptors: 1024, ..plenty() }, &["4100", "4000 connections", "1024", "ulimit -n"]),
            (
                Supply { descriptors: 4120, ..plenty() },
                &["of the proxy (nginx)", "4150", "at least 50", "4120"],
            ),
            (Supply { ports: (40_000, 40_999), ..plenty() }, &["4000", "1000", "ip_local_port_range"]),
            (Supply { memory_bytes: 1 << 30, ..plenty() }, &["--memory", "1 GB", "1000 robots"]),
            (Supply { run_dir_free_bytes: 1 << 20, ..plenty() }, &["--run-dir", "1 MB"]),
            (Supply { work_dir_free_bytes: 1 << 30, ..plenty() }, &["--disk", "/tmp", "TMPDIR"]),
        ];
        for (supply, words) in cases {
            let message = refused(&usual(), &supply);
            for word in words {
                assert!(message.contains(word), "{word}: {message}");
            }
        }
    }

    #[test]
    fn everything_that_is_too_little_is_said_at_once() {
        let message = refused(&usual(), &Supply { descriptors: 64, memory_bytes: 1 << 20, ..plenty() });
        assert!(message.lines().count() >= 4 && message.contains("descriptors of origins"), "{message}");
    }

    #[test]
    fn without_a_proxy_origins_have_the_robots_connections() {
        let direct = Demand { target: None, connections: 150, ..usual() };
        let names: Vec<String> = needs(&direct, &plenty()).into_iter().map(|need| need.name).collect();
        assert!(!names.iter().any(|name| name.contains("proxy's") && name.contains("ports")), "{names:?}");
        let message = refused(&direct, &Supply { descriptors: 252, ..plenty() });
        assert!(
            message.contains("descriptors of origins: 254 needed (150 connections of robots, 4 listening")
        );
    }

    #[test]
    fn ports_of_closed_connections_count_as_long_as_the_kernel_keeps_them() {
        let supply = Supply { port_rest_s: TIME_WAIT_S, ..plenty() };
        let demand = Demand { new_connections_per_s: 500.0, ..usual() };
        assert!(refused(&demand, &supply).contains("30000 ports of connections closed in the last 60 s"));
        let many = Demand { sources: 10, connections_per_source: 400, ..demand };
        assert_eq!(refusal(&needs(&many, &supply)), None);
    }

    #[test]
    fn what_is_only_likely_to_be_too_little_is_a_warning() {
        let tight = needs(&usual(), &Supply { descriptors: 4300, ..plenty() });
        assert_eq!(refusal(&tight), None);
        assert!(warnings(&tight)[0].contains("descriptors of the proxy (nginx): 4600 needed"), "{tight:?}");
    }

    proptest::proptest! {
        #[test]
        fn no_demand_overflows(counts: [u64; 6], rates: [f64; 5], processes: Option<u64>, direct: bool) {
            let [robots, origins, connections, sources, memory, disk] = counts;
            let [new_connections_per_s, remembered_objects, recorded_requests, requests_per_s, bytes_per_request] =
                rates;
            let target = TargetDemand {
                name: "x".into(),
                processes,
                least_upstream: robots,
                likely_upstream: connections,
            };
            let load = PhaseLoad {
                phase: "x".into(),
                requests_per_s,
                bytes_per_request,
                new_connections_per_s,
                origin_share: bytes_per_request,
            };
            let demand = Demand {
                robots,
                origins,
                connections,
                connections_per_source: connections,
                new_connections_per_s,
                sources,
                target: (!direct).then_some(target),
                cache_memory_bytes: memory,
                cache_disk_bytes: disk,
                remembered_objects,
                length: Some(Duration::MAX),
                recorded_requests,
                loads: vec![load],
                links: vec![demand::LinkRate { is_to_origins: direct, bits_per_s: memory }],
            };
            for supply in [Supply::default(), plenty()] {
                let needs = needs(&demand, &supply);
                let _ = (refusal(&needs), warnings(&needs));
            }
        }

        #[test]
        fn whoever_has_more_is_never_refused_what_less_would_carry(
            connections in 0_u64..50_000,
            rate in 0.0..1e6_f64,
            descriptors in 0_u64..60_000,
            cpus in 1_u64..64,
        ) {
            let mut demand = Demand { connections, connections_per_source: connections, ..usual() };
            demand.loads[0].requests_per_s = rate;
            let less = Supply { descriptors, robot_cpus: cpus, origin_cpus: cpus, shared_cpus: cpus, ..plenty() };
            let more = Supply {
                descriptors: descriptors + 1,
                robot_cpus: cpus + 1,
                origin_cpus: cpus + 1,
                shared_cpus: cpus + 1,
                ..plenty()
            };
            if refusal(&needs(&demand, &less)).is_none() {
                proptest::prop_assert_eq!(refusal(&needs(&demand, &more)), None);
            }
        }
    }
}
