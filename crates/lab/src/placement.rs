//! Who runs on which processor.

/// Processors of each role; empty: any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// The proxy under test, if the lab starts one.
    pub proxy: Vec<u32>,
    /// Robots, and the lab's own helpers.
    pub robots: Vec<u32>,
    /// Origins.
    pub origins: Vec<u32>,
}

/// With two processors or more, the proxy gets one of its own (the last: interrupts tend to be on the first),
/// and robots and origins share the rest.
pub fn place(available: &[u32], lab_starts_proxy: bool, pin: bool) -> Placement {
    if !pin || available.len() < 2 {
        return Placement::default();
    }
    if !lab_starts_proxy {
        return Placement { proxy: Vec::new(), robots: available.to_vec(), origins: available.to_vec() };
    }
    let (rest, last) = available.split_at(available.len() - 1);
    Placement { proxy: last.to_vec(), robots: rest.to_vec(), origins: rest.to_vec() }
}

/// Worker threads for a role: what was asked for, or one for each processor it may use.
pub fn threads(asked: u32, cpus: &[u32], available: &[u32]) -> u32 {
    if asked > 0 {
        return asked;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_has_a_processor_of_its_own_where_there_are_two() {
        let placed = place(&[0, 1], true, true);
        assert_eq!((placed.proxy, placed.robots, placed.origins), (vec![1], vec![0], vec![0]));
        let placed = place(&[2, 3, 5, 7], true, true);
        assert_eq!((placed.proxy, placed.robots, placed.origins), (vec![7], vec![2, 3, 5], vec![2, 3, 5]));
    }

    #[test]
    fn without_a_proxy_robots_and_origins_share_all() {
        let placed = place(&[0, 1], false, true);
        assert_eq!((placed.proxy, placed.robots, placed.origins), (vec![], vec![0, 1], vec![0, 1]));
    }

    #[test]
    fn one_processor_or_no_pinning_pins_nobody() {
        assert_eq!(place(&[0], true, true), Placement::default());
        assert_eq!(place(&[0, 1], true, false), Placement::default());
    }

    #[test]
    fn threads_follow_processors_unless_asked_for() {
        assert_eq!(threads(0, &[0, 1, 2], &[0, 1, 2, 3]), 3);
        assert_eq!(threads(0, &[], &[0, 1]), 2);
        assert_eq!(threads(7, &[0], &[0]), 7);
        assert_eq!(threads(0, &[], &[]), 1);
    }

    #[test]
    fn this_process_may_use_some_processor() {
        assert!(!available().is_empty());
    }
}
