//! Whether the machines of a fleet can carry a plan, each its own part of it. The arithmetic is that of one machine.

use assay_base::settings::show::bytes;

use super::demand::{PhaseLoad, TargetDemand, whole};
use super::{
    CONNECTION_BYTES, DISK_STORE_SLACK, Demand, Need, REMEMBERED_BYTES, ROBOT_BYTES, ROLES_BYTES, Resource,
    Supply, XACT_BYTES, descriptors, ports, processors,
};

/// Room in an agent's directory beside what grows: workload, logs and specs of roles, logs of a proxy.
const AGENT_DIR_BYTES: u64 = 8 << 20;

/// A machine, and what it is to carry.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineLoad {
    pub name: String,
    /// First and last of its robots, counted from 0.
    pub robots: Option<(u32, u32)>,
    /// First and last of its origins, counted from 0.
    pub origins: Option<(u32, u32)>,
    /// Whether it runs the proxy.
    pub proxy: bool,
    pub supply: Supply,
}

impl MachineLoad {
    /// Name, and its part.
    pub fn title(&self) -> String {
        let range = |what: &str, (first, last): (u32, u32)| match first == last {
            true => format!("{what} {first}"),
            false => format!("{what}s {first} to {last}"),
        };
        let robots = self.robots.map(|robots| range("robot", robots));
        let origins = self.origins.map(|origins| range("origin", origins));
        let proxy = self.proxy.then(|| "the proxy".to_owned());
        let parts: Vec<String> = [robots, origins, proxy].into_iter().flatten().collect();
        format!("{} ({})", self.name, parts.join(", "))
    }
}

/// Number of members of a part, and their share of all.
fn share(part: Option<(u32, u32)>, all: u64) -> (u64, f64) {
    let count = part.map_or(0, |(first, last)| u64::from(last.saturating_sub(first)) + 1);
    (count, count as f64 / all.max(1) as f64)
}

/// Everything that a machine's part of the plan needs and that can run out there.
pub fn needs(demand: &Demand, machine: &MachineLoad) -> Vec<Need> {
    let (robot_count, of_robots) = share(machine.robots, demand.robots);
    let (origin_count, of_origins) = share(machine.origins, demand.origins);
    let supply = &machine.supply;
    let robots = robots_of(demand, robot_count, of_robots);
    let origins = origins_of(demand, origin_count, of_origins);
    let mut needs = Vec::new();
    if machine.robots.is_some() {
        needs.push(descriptors(&robots, supply).robots);
        needs.push(ports(&robots, supply).robots);
    }
    if machine.origins.is_some() {
        needs.extend(descriptors(&origins, supply).origins);
    }
    if machine.proxy {
        needs.extend(descriptors(demand, supply).proxy);
        needs.extend(ports(demand, supply).proxy);
    }
    needs.push(memory(demand, &robots, &origins, machine));
    let direct = demand.target.is_none();
    let loads =
        |part: Option<(u32, u32)>, share| part.map_or_else(Vec::new, |_| scaled(&demand.loads, share));
    let (robot_loads, origin_loads) = (loads(machine.robots, of_robots), loads(machine.origins, of_origins));
    needs.extend(processors::needs_of_parts(&robot_loads, &origin_loads, direct, supply.shared_cpus));
    needs.extend(disk(demand, &robots, machine));
    for need in &mut needs {
        need.machine = Some(machine.title());
    }
    needs
}

/// Demands of the robots of one machine: from one address, to the destinations of all.
fn robots_of(demand: &Demand, robots: u64, share: f64) -> Demand {
    let part = |all: u64| whole(all as f64 * share);
    // All connections go to the proxy. Straight to origins, the busiest of them gets as many of each address as of all.
    let to_one = demand.connections_per_source.saturating_mul(demand.sources).min(demand.connections);
    Demand {
        robots,
        connections: part(demand.connections),
        connections_per_source: part(to_one),
        new_connections_per_s: demand.new_connections_per_s * share,
        sources: 1,
        remembered_objects: demand.remembered_objects * share,
        recorded_requests: demand.recorded_requests * share,
        ..demand.clone()
    }
}

/// Demands on the origins of one machine: from the proxy, or from all robots.
fn origins_of(demand: &Demand, origins: u64, share: f64) -> Demand {
    let part = |all: u64| whole(all as f64 * share);
    let target = demand.target.as_ref().map(|target| TargetDemand {
        least_upstream: part(target.least_upstream),
        likely_upstream: part(target.likely_upstream),
        ..target.clone()
    });
    Demand { origins, connections: part(demand.connections), target, ..demand.clone() }
}

fn scaled(loads: &[PhaseLoad], share: f64) -> Vec<PhaseLoad> {
    let part = |load: &PhaseLoad| PhaseLoad {
        requests_per_s: load.requests_per_s * share,
        new_connections_per_s: load.new_connections_per_s * share,
        ..load.clone()
    };
    loads.iter().map(part).collect()
}

fn memory(demand: &Demand, robots: &Demand, origins: &Demand, machine: &MachineLoad) -> Need {
    // Each end of a connection is on a machine of its own.
    let upstream = |demand: &Demand| demand.target.as_ref().map_or(0, |target| target.likely_upstream);
    let of_robots = machine.robots.map_or(0, |_| robots.connections);
    let of_origins = machine.origins.map_or(0, |_| match demand.target {
        Some(_) => upstream(origins),
        None => origins.connections,
    });
    let of_proxy = if machine.proxy { demand.connections.saturating_add(upstream(demand)) } else { 0 };
    let ends = of_robots.saturating_add(of_origins).saturating_add(of_proxy);
    let connections = ends.saturating_mul(CONNECTION_BYTES / 2);
    let count = machine.robots.map_or(0, |_| robots.robots);
    let remembered = machine.robots.map_or(0, |_| whole(robots.remembered_objects * REMEMBERED_BYTES));
    let cache = if machine.proxy { demand.cache_memory_bytes } else { 0 };
    let own = count.saturating_mul(ROBOT_BYTES);
    let parts = [cache, cache / 4, connections, own, remembered, ROLES_BYTES];
    let needed = parts.into_iter().fold(0, u64::saturating_add);
    let mut how = Vec::new();
    if machine.proxy {
        how.push(format!("cache {} and a quarter more for what a proxy keeps beside it", bytes(cache)));
    }
    how.push(format!("{ends} ends of connections {}", bytes(connections)));
    if machine.robots.is_some() {
        how.push(format!("{count} robots {}, objects that they remember {}", bytes(own), bytes(remembered)));
    }
    how.push(format!("Assay itself {}", bytes(ROLES_BYTES)));
    Need::new("bytes of memory", Resource::Memory, needed, machine.supply.memory_bytes).words(
        how.join(", "),
        "MemAvailable there",
        "give the proxy less (--memory), or the workload fewer robots, or take more machines",
    )
}

fn disk(demand: &Demand, robots: &Demand, machine: &MachineLoad) -> Vec<Need> {
    let recorded = machine.robots.map_or(0.0, |_| robots.recorded_requests);
    let xacts = whole(recorded).saturating_mul(XACT_BYTES);
    let mut how = format!("workload and logs {}", bytes(AGENT_DIR_BYTES));
    if recorded > 0.0 {
        how += &format!(", {recorded:.0} requests recorded {}", bytes(xacts));
    }
    let needed = AGENT_DIR_BYTES.saturating_add(xacts);
    let free = machine.supply.run_dir_free_bytes;
    let dir = Need::new("bytes for the agent's directory", Resource::Disk, needed, free).words(
        how,
        "free there",
        "make room, or start the agent with another --dir",
    );
    if !machine.proxy || demand.cache_disk_bytes == 0 {
        return vec![dir];
    }
    let needed = demand.cache_disk_bytes.saturating_add(DISK_STORE_SLACK);
    let how = format!("--disk {} and {} beside it", bytes(demand.cache_disk_bytes), bytes(DISK_STORE_SLACK));
    let free = machine.supply.work_dir_free_bytes;
    let store = Need::new("bytes for the proxy's disk cache", Resource::Disk, needed, free).words(
        how,
        format!("free in {}", machine.supply.work_dir),
        "make room, give it less (--disk), or start the agent with another place in TMPDIR",
    );
    vec![dir, store]
}

#[cfg(test)]
mod tests {
    use super::super::refusal;
    use super::super::tests::{plenty, usual};
    use super::*;

    fn carrier(
        name: &str,
        robots: Option<(u32, u32)>,
        origins: Option<(u32, u32)>,
        proxy: bool,
    ) -> MachineLoad {
        MachineLoad { name: name.into(), robots, origins, proxy, supply: plenty() }
    }

    fn named<'a>(needs: &'a [Need], name: &str) -> &'a Need {
        needs.iter().find(|need| need.name.starts_with(name)).unwrap_or_else(|| panic!("{name}: {needs:#?}"))
    }

    #[test]
    fn a_machine_needs_what_its_part_needs_and_no_more() {
        let demand =
            Demand { robots: 1000, connections: 1000, connections_per_source: 1000, sources: 1, ..usual() };
        let all = needs(&demand, &carrier("m1", Some((0, 999)), None, false));
        let half = needs(&demand, &carrier("m1", Some((0, 499)), None, false));
        for name in ["source ports of a robot address", "processors of robots"] {
            let (all, half) = (named(&all, name).needed, named(&half, name).needed);
            assert!((all - 2.0 * half).abs() <= 1.0, "{name}: {all} of all, {half} of half of them");
        }
        assert_eq!(named(&half, "descriptors of robots").needed, 600.0);
        assert!(
            !half.iter().any(|need| need.name.contains("proxy") || need.name.contains("origins")),
            "{half:#?}"
        );
        let proxy = needs(&demand, &carrier("m2", None, None, true));
        assert!(named(&proxy, "descriptors of the proxy").needed >= 1000.0);
        assert!(!proxy.iter().any(|need| need.name.contains("robot")), "{proxy:#?}");
    }

    #[test]
    fn a_refusal_names_the_machine_its_part_and_the_numbers() {
        let demand = Demand { connections: 1_000_000, ..usual() };
        let mut machine = carrier("m1", Some((0, 999_999)), None, false);
        machine.supply.descriptors = 20_000;
        let demand = Demand { robots: 1_000_000, ..demand };
        let message = refusal(&needs(&demand, &machine)).unwrap();
        let words = "m1 (robots 0 to 999999): too few descriptors of robots: 1000100 needed";
        assert!(message.contains(words) && message.contains("there are 20000"), "{message}");
    }

    #[test]
    fn an_agent_whose_disk_is_full_is_refused() {
        let mut machine = carrier("m3", None, Some((0, 0)), false);
        machine.supply.run_dir_free_bytes = 4096;
        let message = refusal(&needs(&usual(), &machine)).unwrap();
        assert!(message.contains("m3 (origin 0): too few bytes for the agent's directory"), "{message}");
        assert!(message.contains("another --dir"), "{message}");
    }
}
