//! Placement of roles on processors: as the user says, else so that nobody is in another's way.

/// Processors of each role; empty: any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// The proxy under test, if the lab starts one.
    pub proxy: Vec<u32>,
    /// Robots, and the lab's own helpers.
    pub robots: Vec<u32>,
    pub origins: Vec<u32>,
}

/// Proxy between robots and origins, as far as processors go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyPlacement {
    None,
    /// A proxy that the lab starts, and places.
    Started,
    /// A proxy that already runs, wherever it likes.
    Running,
}

/// Processors that the user names; empty: chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestedCpus<'a> {
    /// `--robot-cpus`.
    pub robots: &'a [u32],
    /// `--origin-cpus`.
    pub origins: &'a [u32],
    /// `--proxy-cpus`.
    pub proxy: &'a [u32],
}

/// Processors that cannot be given to a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    #[error(
        "{flag} names processor {cpu}, and Assay may use {available}; name one of those, or start Assay where it may use more (taskset, cpuset)"
    )]
    Unavailable { flag: &'static str, cpu: u32, available: String },
    #[error("--proxy-cpus places a proxy that Assay starts, and this run has none; leave it out")]
    NoProxy,
}

/// From how many processors on robots and origins are kept apart beside a proxy.
const ENOUGH_TO_KEEP_APART: usize = 4;

/// Places everybody: processors that were named are taken as they are (and left to their role), the rest is chosen.
/// Says what is wrong with a name.
pub fn assign(
    available: &[u32],
    proxy_placement: ProxyPlacement,
    pin: bool,
    named: RequestedCpus<'_>,
) -> Result<Placement, PlacementError> {
    for (flag, cpus) in
        [("--robot-cpus", named.robots), ("--origin-cpus", named.origins), ("--proxy-cpus", named.proxy)]
    {
        if let Some(cpu) = cpus.iter().find(|cpu| !available.contains(cpu)) {
            return Err(PlacementError::Unavailable { flag, cpu: *cpu, available: format_cpus(available) });
        }
    }
    if !named.proxy.is_empty() && proxy_placement != ProxyPlacement::Started {
        return Err(PlacementError::NoProxy);
    }
    if !pin || available.len() < 2 {
        return Ok(Placement {
            proxy: named.proxy.to_vec(),
            robots: named.robots.to_vec(),
            origins: named.origins.to_vec(),
        });
    }
    let is_named =
        |cpu: &u32| [named.robots, named.origins, named.proxy].iter().any(|cpus| cpus.contains(cpu));
    let free: Vec<u32> = available.iter().copied().filter(|cpu| !is_named(cpu)).collect();
    // Whoever is left without a processor shares with everybody.
    let free = if free.is_empty() { available.to_vec() } else { free };
    let chosen = choose(&free, available.len(), proxy_placement, named);
    let or = |named: &[u32], chosen: Vec<u32>| if named.is_empty() { chosen } else { named.to_vec() };
    Ok(Placement {
        proxy: or(named.proxy, chosen.proxy),
        robots: or(named.robots, chosen.robots),
        origins: or(named.origins, chosen.origins),
    })
}

/// Divides free processors among the roles that have none of their own. The proxy gets the last (interrupts tend to be on
/// the first); robots and origins get halves of the rest where there are enough, and share it where there are not.
fn choose(free: &[u32], all: usize, proxy_placement: ProxyPlacement, named: RequestedCpus<'_>) -> Placement {
    let wants_proxy = proxy_placement == ProxyPlacement::Started && named.proxy.is_empty();
    let (rest, proxy) = match free.split_last() {
        Some((last, rest)) if wants_proxy && !rest.is_empty() => (rest, vec![*last]),
        _ if wants_proxy => (free, free.to_vec()),
        _ => (free, Vec::new()),
    };
    let both = named.robots.is_empty() && named.origins.is_empty();
    let apart = proxy_placement == ProxyPlacement::None || all >= ENOUGH_TO_KEEP_APART;
    if !both || !apart || rest.len() < 2 {
        return Placement { proxy, robots: rest.to_vec(), origins: rest.to_vec() };
    }
    // Robots check every byte: an odd one is theirs.
    let (robots, origins) = rest.split_at(rest.len().div_ceil(2));
    Placement { proxy, robots: robots.to_vec(), origins: origins.to_vec() }
}

/// Worker threads for a role: the configured number, or one for each processor it may use.
pub fn threads(requested: u32, cpus: &[u32], available: &[u32]) -> u32 {
    if requested > 0 {
        return requested;
    }
    let usable = if cpus.is_empty() { available.len() } else { cpus.len() };
    u32::try_from(usable).unwrap_or(1).max(1)
}

/// Processors that this process may use.
pub fn available() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return vec![0] };
    let cpus = 0..rustix::thread::CpuSet::MAX_CPU;
    cpus.filter(|cpu| set.is_set(*cpu)).filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// Processors as they are typed: `0,2-3`.
pub fn format_cpus(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: [u32; 4] = [2, 3, 5, 7];

    fn chosen(available: &[u32], proxy_placement: ProxyPlacement) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        let placed = assign(available, proxy_placement, true, RequestedCpus::default()).unwrap();
        (placed.proxy, placed.robots, placed.origins)
    }

    #[test]
    fn the_proxy_has_a_processor_of_its_own_where_there_are_two() {
        assert_eq!(chosen(&[0, 1], ProxyPlacement::Started), (vec![1], vec![0], vec![0]));
        assert_eq!(chosen(&[0, 1, 2], ProxyPlacement::Started), (vec![2], vec![0, 1], vec![0, 1]));
    }

    #[test]
    fn robots_and_origins_are_kept_apart_where_there_are_enough() {
        assert_eq!(chosen(&FOUR, ProxyPlacement::Started), (vec![7], vec![2, 3], vec![5]));
        assert_eq!(chosen(&FOUR, ProxyPlacement::Running), (vec![], vec![2, 3], vec![5, 7]));
        assert_eq!(chosen(&[0, 1], ProxyPlacement::Running), (vec![], vec![0, 1], vec![0, 1]));
    }

    #[test]
    fn without_a_proxy_robots_get_one_half_and_origins_the_other() {
        assert_eq!(chosen(&[0, 1], ProxyPlacement::None), (vec![], vec![0], vec![1]));
        assert_eq!(chosen(&[0, 1, 2], ProxyPlacement::None), (vec![], vec![0, 1], vec![2]));
    }

    #[test]
    fn one_processor_or_no_pinning_pins_nobody() {
        assert_eq!(
            assign(&[0], ProxyPlacement::Started, true, RequestedCpus::default()),
            Ok(Placement::default())
        );
        assert_eq!(
            assign(&[0, 1], ProxyPlacement::Started, false, RequestedCpus::default()),
            Ok(Placement::default())
        );
    }

    #[test]
    fn named_processors_are_taken_and_left_to_their_role() {
        let named = RequestedCpus { robots: &[3], ..RequestedCpus::default() };
        let placed = assign(&FOUR, ProxyPlacement::Started, true, named).unwrap();
        assert_eq!((placed.robots, placed.origins, placed.proxy), (vec![3], vec![2, 5], vec![7]));
        let named = RequestedCpus { proxy: &[2, 3], ..RequestedCpus::default() };
        let placed = assign(&FOUR, ProxyPlacement::Started, true, named).unwrap();
        assert_eq!((placed.robots, placed.origins, placed.proxy), (vec![5], vec![7], vec![2, 3]));
    }

    #[test]
    fn who_is_left_without_a_processor_shares() {
        let named = RequestedCpus { robots: &[0], origins: &[1], proxy: &[] };
        let placed = assign(&[0, 1], ProxyPlacement::Started, true, named).unwrap();
        assert_eq!((placed.robots, placed.origins, placed.proxy), (vec![0], vec![1], vec![1]));
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused_with_those_that_are() {
        let named = RequestedCpus { origins: &[0, 9], ..RequestedCpus::default() };
        let message = assign(&FOUR, ProxyPlacement::Started, true, named).unwrap_err().to_string();
        assert!(
            message.contains("--origin-cpus names processor 0") && message.contains("2-3,5,7"),
            "{message}"
        );
    }

    #[test]
    fn a_proxy_that_the_lab_does_not_start_cannot_be_placed() {
        let named = RequestedCpus { proxy: &[2], ..RequestedCpus::default() };
        for proxy_placement in [ProxyPlacement::None, ProxyPlacement::Running] {
            assert!(
                assign(&FOUR, proxy_placement, true, named).unwrap_err().to_string().contains("--proxy-cpus")
            );
        }
    }

    #[test]
    fn threads_follow_processors_unless_set() {
        assert_eq!(threads(0, &[0, 1, 2], &[0, 1, 2, 3]), 3);
        assert_eq!(threads(0, &[], &[0, 1]), 2);
        assert_eq!(threads(7, &[0], &[0]), 7);
        assert_eq!(threads(0, &[], &[]), 1);
    }

    #[test]
    fn processors_are_shown_as_they_are_typed() {
        assert_eq!(format_cpus(&[3, 0, 2, 3, 9]), "0,2-3,9");
        assert_eq!(format_cpus(&[]), "");
    }

    #[test]
    fn this_process_may_use_some_processor() {
        assert!(!available().is_empty());
    }

    proptest::proptest! {
        #[test]
        fn everybody_gets_processors_that_there_are(
            mut available in proptest::collection::btree_set(0_u32..64, 2..20),
            robots in proptest::collection::vec(0_usize..20, 0..4),
            proxy in 0_usize..2,
            origins in proptest::collection::vec(0_usize..20, 0..4),
        ) {
            available.insert(64);
            let available: Vec<u32> = available.into_iter().collect();
            let pick = |indices: &[usize]| -> Vec<u32> {
                indices.iter().map(|index| available[index % available.len()]).collect()
            };
            let (robots, origins) = (pick(&robots), pick(&origins));
            let named = RequestedCpus { robots: &robots, origins: &origins, proxy: &available[..proxy] };
            let placed = assign(&available, ProxyPlacement::Started, true, named).unwrap();
            for (got, named) in
                [(&placed.robots, named.robots), (&placed.origins, named.origins), (&placed.proxy, named.proxy)]
            {
                proptest::prop_assert!(!got.is_empty());
                proptest::prop_assert!(got.iter().all(|cpu| available.contains(cpu)));
                proptest::prop_assert!(named.is_empty() || got == named);
            }
        }
    }
}
