//! Resource that was used up first, among all that the lab watches, at the lowest rate that was not kept.

use assay_host::link::LinkSettings;
use assay_measurement::measured::Series;
use assay_record::peak::{Peak, Step, StepOutcome, Suspect};
use assay_record::run::RunInfo;

/// So much of something is all of it.
const FULL: f64 = 0.9;
/// Within this of one processor a target uses as much as one thread can.
const ONE_THREAD: f64 = 1.05;

/// The step that tells: the last one at the lowest rate that was not kept; where all were, the highest.
pub(super) fn telling_step(peak: &Peak) -> Option<&Step> {
    let above = peak.peak_per_s.unwrap_or(0.0);
    let broken = peak
        .steps
        .iter()
        .filter(|step| step.outcome != StepOutcome::Kept && step.offered_per_s > above * 0.98);
    let lowest = broken.rev().min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    lowest.or_else(|| peak.steps.iter().max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s)))
}

/// Everything that could have been the limit, what was used up first.
pub(super) fn suspects(info: &RunInfo, series: &Series, step: &Step) -> Vec<Suspect> {
    let window = StepWindow { from_ms: step.from_ms, to_ms: step.to_ms };
    let mut all: Vec<Suspect> = [
        own(series, &window, step),
        processor(info, series, &window),
        disk(series, &window),
        link(info, series, &window),
        connections(series, &window),
    ]
    .into_iter()
    .flatten()
    .collect();
    all.sort_by_key(|suspect| !suspect.is_full);
    if !all.iter().any(|suspect| suspect.is_full) {
        let seen = "nothing that is watched was used up: the target limits itself (a queue, a lock, a setting), or waits \
                    for what is behind it";
        all.insert(0, Suspect { name: "target".into(), used: None, is_full: true, seen: seen.into() });
    }
    all
}

/// A stretch of time.
struct StepWindow {
    from_ms: u64,
    to_ms: u64,
}

impl StepWindow {
    fn holds(&self, start_ms: u64, length_ms: u64) -> bool {
        // Processes are looked at when it comes to that, not at whole seconds.
        start_ms + length_ms / 2 >= self.from_ms && start_ms + length_ms / 2 <= self.to_ms && length_ms > 0
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Threads of robots and origins.
fn own(series: &Series, window: &StepWindow, step: &Step) -> Option<Suspect> {
    let threads = series.threads.iter().filter(|thread| window.holds(thread.start_ms, thread.length_ms));
    let busiest = threads
        .map(|thread| (thread.cpu_us as f64 / (thread.length_ms * 1000) as f64, &thread.role))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let (used, role) = busiest?;
    let mut seen = format!("a thread of {role} was busy {} of a second at most", percent(used));
    if step.outcome == StepOutcome::Undecided {
        // Late is not used up: whose work kept it waiting, this does not say.
        seen = format!("{}; {seen}", step.why);
    }
    Some(Suspect { name: "assay".into(), used: Some(used), is_full: used >= FULL, seen })
}

/// Processor time of the target.
fn processor(info: &RunInfo, series: &Series, window: &StepWindow) -> Option<Suspect> {
    let (cpu_us, length_ms) = series
        .host
        .iter()
        .filter(|host| host.role == "proxy" && window.holds(host.start_ms, host.length_ms))
        .fold((0, 0), |(cpu_us, length_ms), host| (cpu_us + host.cpu_us, length_ms + host.length_ms));
    if length_ms == 0 {
        return None;
    }
    let used = cpu_us as f64 / (length_ms * 1000) as f64;
    let placed =
        info.placement.iter().filter(|placed| placed.role == "proxy").flat_map(|placed| &placed.cpus);
    let mut cpus: Vec<u32> = placed.copied().collect();
    if cpus.is_empty() {
        cpus = series.processors.iter().map(|processor| processor.cpu).collect();
    }
    cpus.sort_unstable();
    cpus.dedup();
    let quota = info.limits.as_ref().and_then(|limits| limits.cpu_quota).unwrap_or(f64::INFINITY);
    let has = (cpus.len().max(1) as f64).min(quota);
    let is_one_thread = (FULL..ONE_THREAD).contains(&used) && has > ONE_THREAD;
    let mut seen = format!("the target used {used:.2} of the {has:.2} processors that it may use");
    if is_one_thread {
        seen += ": as much as one thread can";
    }
    let is_full = used / has >= FULL || is_one_thread;
    Some(Suspect { name: "processor".into(), used: Some(used / has), is_full, seen })
}

/// The disk that the target keeps its files on.
fn disk(series: &Series, window: &StepWindow) -> Option<Suspect> {
    let disks = series
        .disks
        .iter()
        .filter(|disk| disk.holds == "store" && window.holds(disk.start_ms, disk.length_ms));
    let (busy_ms, length_ms) =
        disks.fold((0, 0), |(busy, length), disk| (busy + disk.busy_ms, length + disk.length_ms));
    (length_ms > 0).then(|| {
        let used = busy_ms as f64 / length_ms as f64;
        let seen = format!("the disk of the target's store was busy {} of the time", percent(used));
        Suspect { name: "disk".into(), used: Some(used), is_full: used >= FULL, seen }
    })
}

/// Emulated links that have a rate: the fullest direction of them.
fn link(info: &RunInfo, series: &Series, window: &StepWindow) -> Option<Suspect> {
    let rate = |name: &str| {
        let links = &info.bed.as_ref()?.links;
        let settings: LinkSettings = links.iter().find(|link| link.name == name)?.settings.parse().ok()?;
        settings.rate_bits_per_s
    };
    let used =
        series.links.iter().filter(|link| window.holds(link.start_ms, link.length_ms)).filter_map(|link| {
            let carried = link.delivered_bytes as f64 * 8.0 / (link.length_ms as f64 / 1e3);
            Some((carried / rate(&link.link)? as f64, &link.link, &link.from))
        });
    let (used, name, from) = used.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let seen = format!("the link {name} carried {} of its rate, from {from}", percent(used));
    Some(Suspect { name: "link".into(), used: Some(used), is_full: used >= FULL, seen })
}

/// Requests that waited for a connection of their robot.
fn connections(series: &Series, window: &StepWindow) -> Option<Suspect> {
    let levels = || series.robots.iter().filter(|robots| window.holds(robots.start_ms, robots.length_ms));
    let count = levels().count().max(1) as f64;
    let mean = |of: fn(&assay_measurement::interval::RobotLevels) -> u64| {
        levels().map(|robots| of(&robots.levels)).sum::<u64>() as f64 / count
    };
    let (waiting, open) = (mean(|levels| levels.waiting), mean(|levels| levels.connections));
    (open > 0.0).then(|| Suspect {
        name: "connections".into(),
        used: None,
        is_full: waiting >= 1.0,
        seen: format!(
            "{waiting:.0} requests waited for a connection of their robot, of which {open:.0} were open: they may have no more \
             (open_conn_lmt), or the target gives none up"
        ),
    })
}

#[cfg(test)]
mod tests {
    use assay_measurement::health::ThreadInterval;
    use assay_measurement::interval::HostInterval;
    use assay_measurement::machine::DiskInterval;
    use assay_record::run::PlacementInfo;

    use super::*;

    fn step(rate_per_s: f64, outcome: StepOutcome) -> Step {
        Step { rate_per_s, offered_per_s: rate_per_s, from_ms: 5000, to_ms: 7000, outcome, ..Step::default() }
    }

    fn series(proxy_us: u64, disk_ms: u64, thread_us: u64) -> Series {
        let at = |start_ms| HostInterval {
            start_ms,
            length_ms: 1000,
            role: "proxy".into(),
            cpu_us: proxy_us,
            ..HostInterval::default()
        };
        let disk = DiskInterval {
            start_ms: 5100,
            length_ms: 1000,
            holds: "store".into(),
            busy_ms: disk_ms,
            ..DiskInterval::default()
        };
        let thread = ThreadInterval {
            start_ms: 5000,
            length_ms: 1000,
            role: "robots".into(),
            cpu_us: thread_us,
            ..ThreadInterval::default()
        };
        Series {
            host: vec![at(5050), at(6050), HostInterval { cpu_us: 999_999_999, ..at(9000) }],
            disks: vec![disk],
            threads: vec![thread],
            ..Series::default()
        }
    }

    fn first(series: &Series, cpus: &[u32]) -> String {
        let placed = PlacementInfo { role: "proxy".into(), cpus: cpus.to_vec(), ..PlacementInfo::default() };
        let info = RunInfo { placement: vec![placed], ..RunInfo::default() };
        suspects(&info, series, &step(100.0, StepOutcome::Broken))[0].name.clone()
    }

    #[test]
    fn what_was_used_up_is_named_and_where_nothing_was_the_target_itself_is() {
        assert_eq!(first(&series(950_000, 100, 100_000), &[0]), "processor");
        assert_eq!(first(&series(950_000, 100, 100_000), &[0, 1]), "processor", "as much as one thread can");
        assert_eq!(first(&series(600_000, 980, 100_000), &[0, 1]), "disk");
        assert_eq!(first(&series(600_000, 100, 950_000), &[0, 1]), "assay");
        assert_eq!(first(&series(600_000, 100, 100_000), &[0, 1]), "target");
    }

    #[test]
    fn assay_is_not_used_up_where_it_was_only_late() {
        let late = Step { why: "late".into(), ..step(100.0, StepOutcome::Undecided) };
        let all = suspects(&RunInfo::default(), &series(600_000, 100, 50_000), &late);
        let own = all.iter().find(|suspect| suspect.name == "assay").unwrap();
        assert!(!own.is_full && own.seen.starts_with("late; ") && own.seen.contains("busy 5 %"), "{own:?}");
        let busy = suspects(&RunInfo::default(), &series(600_000, 100, 950_000), &late);
        assert!(busy[0].name == "assay" && busy[0].is_full, "{busy:?}");
    }

    #[test]
    fn the_step_that_tells_is_the_lowest_that_was_not_kept_above_the_peak() {
        let steps = [
            (400.0, StepOutcome::Broken),
            (100.0, StepOutcome::Kept),
            (90.0, StepOutcome::Broken),
            (110.0, StepOutcome::Broken),
        ];
        let steps = steps.map(|(rate, outcome)| step(rate, outcome)).to_vec();
        let peak = Peak { peak_per_s: Some(100.0), steps, ..Peak::default() };
        assert_eq!(telling_step(&peak).unwrap().rate_per_s, 110.0);
        let all = Peak {
            steps: vec![step(10.0, StepOutcome::Kept), step(20.0, StepOutcome::Kept)],
            ..Peak::default()
        };
        assert_eq!(telling_step(&all).unwrap().rate_per_s, 20.0);
    }
}
