//! The number of processors that robots and origins need for a plan. Requests and bytes at the peak, times what they cost.
//!
//! Costs were measured on a virtual 2-processor Xeon over loopback, best effort, robots on one processor and origins on
//! the other: 5.3 µs at each for a response of 1 KB (150,000 a second), 11 to 12 µs for 64 KB, 163 and 203 µs for 1 MB, 30
//! and 21 µs with a new connection for each request. At lower rates a request costs more, as there is less to do each
//! time a thread wakes up (36 and 21 µs at 20,000 a second); that is no limit, and it is not counted.

use assay_base::settings::show::bytes;

use super::demand::PhaseLoad;
use super::{Demand, Need, Resource, Supply};

/// Processor time of one request.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// For each request, in microseconds.
    request_us: f64,
    /// For each byte of its body, in nanoseconds.
    byte_ns: f64,
    /// For each new connection, in microseconds.
    connection_us: f64,
}

/// Robots on a machine twice as fast as any that was measured: a plan that exceeds even this cannot be carried.
const ROBOTS_LEAST: Cost = Cost { request_us: 2.5, byte_ns: 0.04, connection_us: 8.0 };
/// Origins, the same.
const ORIGINS_LEAST: Cost = Cost { request_us: 2.5, byte_ns: 0.04, connection_us: 5.0 };
/// Robots as measured, under load.
const ROBOTS_LIKELY: Cost = Cost { request_us: 8.0, byte_ns: 0.15, connection_us: 25.0 };
/// Origins as measured, under load.
const ORIGINS_LIKELY: Cost = Cost { request_us: 6.0, byte_ns: 0.18, connection_us: 16.0 };
/// Above this share of their processors, what robots and origins add to response times shows.
const TIGHT: f64 = 0.7;

impl Cost {
    /// Processors for so many requests, and so many connections, in a second.
    fn processors(self, requests_per_s: f64, bytes_per_request: f64, connections_per_s: f64) -> f64 {
        let us_per_s = requests_per_s * (self.request_us + bytes_per_request * self.byte_ns / 1e3)
            + connections_per_s * self.connection_us;
        if us_per_s.is_finite() { (us_per_s / 1e6).max(0.0) } else { 0.0 }
    }
}

/// Processors that one role needs in one phase.
#[derive(Debug, Clone, Default)]
struct ProcessorShare {
    least: f64,
    likely: f64,
    how: String,
}

/// The needs of robots, of origins, and of both where they share.
pub fn needs(demand: &Demand, supply: &Supply) -> Vec<Need> {
    let direct = demand.target.is_none();
    let robots = worst(&demand.loads, robots);
    let origins = worst(&demand.loads, |load| origins(load, direct));
    let both = worst(&demand.loads, |load| {
        let (robots, origins) = (self::robots(load), self::origins(load, direct));
        ProcessorShare {
            least: robots.least + origins.least,
            likely: robots.likely + origins.likely,
            how: format!("the sum of both in phase {}", load.phase),
        }
    });
    let apart = supply.robot_cpus.saturating_add(supply.origin_cpus) <= supply.shared_cpus;
    let mut needs = Vec::new();
    let roles = [
        ("robots", robots, supply.robot_cpus, true),
        ("origins", origins, supply.origin_cpus, true),
        ("robots and origins together", both, supply.shared_cpus, !apart),
    ];
    for (role, share, cpus, counts) in roles {
        if let Some(share) = share.filter(|_| counts) {
            needs.push(need(role, share, cpus));
        }
    }
    needs
}

/// The needs of the robots and of the origins of one machine, each with its own share of the load; empty: it has none.
pub fn needs_of_parts(robots: &[PhaseLoad], origins: &[PhaseLoad], direct: bool, cpus: u64) -> Vec<Need> {
    let both = if robots.is_empty() || origins.is_empty() {
        None
    } else {
        let pairs = robots.iter().zip(origins).rev().map(|(robots, origins)| {
            let (robots, origins) = (self::robots(robots), self::origins(origins, direct));
            ProcessorShare {
                least: robots.least + origins.least,
                likely: robots.likely + origins.likely,
                how: format!("robots in {}; origins in {}", robots.how, origins.how),
            }
        });
        pairs.max_by(|a, b| a.likely.total_cmp(&b.likely))
    };
    if let Some(both) = both {
        return vec![need("robots and origins together", both, cpus)];
    }
    let robots = worst(robots, self::robots).map(|share| need("robots", share, cpus));
    let origins =
        worst(origins, |load| self::origins(load, direct)).map(|share| need("origins", share, cpus));
    robots.into_iter().chain(origins).collect()
}

fn need(role: &str, share: ProcessorShare, cpus: u64) -> Need {
    let need = Need::new(format!("processors of {role}"), Resource::Processors, 0, cpus);
    let need = Need { at_least: share.least, needed: share.likely, tight_above: TIGHT, ..need };
    need.words(
        share.how,
        "those that they may run on, and have threads for",
        "lower the rate, use a machine with more processors, or give them more (--robot-cpus, --origin-cpus, \
         --threads); `--calibrate` measures what there is",
    )
}

fn worst(loads: &[PhaseLoad], share: impl Fn(&PhaseLoad) -> ProcessorShare) -> Option<ProcessorShare> {
    // Of several that are alike, the first.
    loads.iter().rev().map(share).max_by(|a, b| a.likely.total_cmp(&b.likely))
}

fn robots(load: &PhaseLoad) -> ProcessorShare {
    let PhaseLoad { requests_per_s, bytes_per_request, new_connections_per_s, .. } = *load;
    let of = |cost: Cost| cost.processors(requests_per_s, bytes_per_request, new_connections_per_s);
    ProcessorShare {
        least: of(ROBOTS_LEAST),
        likely: of(ROBOTS_LIKELY),
        how: format!("phase {}: {}", load.phase, words(load, 1.0, ROBOTS_LEAST, ROBOTS_LIKELY)),
    }
}

fn origins(load: &PhaseLoad, direct: bool) -> ProcessorShare {
    let PhaseLoad { requests_per_s, bytes_per_request, new_connections_per_s, origin_share, .. } = *load;
    // How often a proxy opens connections to origins is its own affair.
    let opened = if direct { new_connections_per_s } else { 0.0 };
    let of = |cost: Cost, share: f64| cost.processors(requests_per_s * share, bytes_per_request, opened);
    ProcessorShare {
        least: of(ORIGINS_LEAST, origin_share),
        // A cache that fills has passed on more than an ideal one has to in the long run.
        likely: of(ORIGINS_LIKELY, origin_share),
        how: format!("phase {}: {}", load.phase, words(load, origin_share, ORIGINS_LEAST, ORIGINS_LIKELY)),
    }
}

fn words(load: &PhaseLoad, share: f64, least: Cost, likely: Cost) -> String {
    format!(
        "{:.0} requests/s of {} at {} to {} us each, {} to {} ns a byte",
        load.requests_per_s * share,
        bytes(load.bytes_per_request.clamp(0.0, 1e18) as u64),
        least.request_us,
        likely.request_us,
        least.byte_ns,
        likely.byte_ns,
    )
}

/// Processors, for people.
pub fn show(processors: f64) -> String {
    match processors {
        whole if whole == whole.trunc() => format!("{whole:.0}"),
        small if small < 0.1 => format!("{small:.4}"),
        other => format!("{other:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{plenty, usual};
    use super::super::{refusal, warnings};
    use super::*;

    fn with(rate: f64, bytes: f64) -> Demand {
        let mut demand = usual();
        (demand.loads[0].requests_per_s, demand.loads[0].bytes_per_request) = (rate, bytes);
        demand
    }

    #[test]
    fn ten_million_requests_a_second_are_refused_with_the_arithmetic() {
        let message = refusal(&super::super::needs(&with(1e7, 1000.0), &plenty())).unwrap();
        for words in
            ["processors of robots", "phase top: 10000000 requests/s", "2.5 to 8 us", "there are 1 ("]
        {
            assert!(message.contains(words), "{words}: {message}");
        }
    }

    #[test]
    fn more_bytes_than_a_processor_can_look_at_are_refused() {
        assert!(refusal(&super::super::needs(&with(100_000.0, 1e6), &plenty())).is_some());
    }

    #[test]
    fn what_is_likely_to_be_too_much_is_a_warning_only() {
        let demand = with(80_000.0, 1000.0);
        let needs = super::super::needs(&demand, &plenty());
        assert_eq!(refusal(&needs), None);
        assert!(warnings(&needs).iter().any(|line| line.contains("processors of robots")), "{needs:?}");
    }

    #[test]
    fn best_effort_robots_need_no_more_than_there_is() {
        assert!(needs(&Demand { loads: Vec::new(), ..usual() }, &plenty()).is_empty());
    }

    #[test]
    fn those_who_share_processors_are_added_up() {
        let names = |supply: &Supply| -> Vec<String> {
            needs(&usual(), supply).into_iter().map(|need| need.name).collect()
        };
        assert_eq!(names(&plenty()).len(), 3);
        assert_eq!(names(&Supply { shared_cpus: 2, ..plenty() }).len(), 2);
    }

    #[test]
    fn processors_are_shown_as_far_as_they_are_known() {
        assert_eq!((show(2.0), show(0.125), show(25.0)), ("2".into(), "0.12".into(), "25".into()));
    }
}
