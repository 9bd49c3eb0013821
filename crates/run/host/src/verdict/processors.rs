//! Shortage of processors for robots and origins, stolen time, and an unquiet machine before the run.

use assay_measurement::doubt::Reason;
use strum::VariantArray;

use super::evidence::{JudgedRun, PhaseEvidence, ThreadSum, WatchedRole, share};
use super::finding::{Finding, format_percent, format_time};
use super::lateness::late_limit_us;
use super::limits::{
    ADDED_SHARE, KEPT_WAITING_SERIOUS_US, KEPT_WAITING_SHARE, LAG_SHARE, LATE_COUNT, OTHERS_SHARE, OWN_SHARE,
    SATURATED_SHARE, STEAL_KNOWN, STEAL_SERIOUS, UNQUIET_US, WAITED_SHARE,
};

/// Findings of phases, and of the time before the run.
pub fn findings(run: &JudgedRun<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, phase) in run.phases() {
        for &role in WatchedRole::VARIANTS {
            found.extend(processor_shortage(run, index, phase, role));
        }
        found.extend(stolen(index, phase));
    }
    found.extend(WatchedRole::VARIANTS.iter().copied().filter_map(|role| unquiet(run, role)));
    found
}

/// A thread in a phase, with the use of its processor.
struct ThreadLoad<'a> {
    role: WatchedRole,
    number: u32,
    thread: &'a ThreadSum,
    /// Busy share of the processor.
    busy: f64,
    /// Share used by robots and origins.
    own: f64,
    /// Share used by the target, if it shares the processor.
    proxy: Option<f64>,
}

impl<'a> ThreadLoad<'a> {
    fn new(
        run: &JudgedRun<'_>,
        phase: &'a PhaseEvidence,
        role: WatchedRole,
        number: u32,
        thread: &'a ThreadSum,
    ) -> Self {
        let processor = phase.processors_of(thread.cpu);
        // Without readings of the processor, take the time of the thread.
        let wall_us = if processor.wall_us == 0 { thread.wall_us } else { processor.wall_us };
        let own = share(phase.own_cpu_us(thread.cpu), wall_us);
        let proxy = run.proxy_beside(thread.cpu).map(|processors| {
            let all = if thread.cpu.is_none() { 1 } else { processors.max(1) };
            share(phase.proxy_cpu_us / all as u64, wall_us)
        });
        // The kernel counts busy time in ticks; the time of the threads is exact.
        let busy = share(processor.busy_us, wall_us).max(own).min(1.0);
        Self { role, number, thread, busy, own, proxy }
    }

    /// Share used by others than robots, origins and the target.
    fn others(&self) -> f64 {
        (self.busy - self.own - self.proxy.unwrap_or(0.0)).max(0.0)
    }

    /// True for a thread that ran all the time, or waited only for robots and origins.
    fn is_saturated(&self) -> bool {
        let only_own_waits = self.thread.wanted() >= SATURATED_SHARE && self.own >= OWN_SHARE;
        self.thread.ran() >= SATURATED_SHARE || only_own_waits
    }

    fn finding(&self, reason: Reason, index: u16, weight: f64, seen: &str) -> Finding {
        let processors = match self.thread.cpu {
            Some(cpu) => format!("processor {cpu} was"),
            None => "the processors of this machine were".to_owned(),
        };
        let proxy =
            self.proxy.map(|proxy| format!(", the proxy {}", format_percent(proxy))).unwrap_or_default();
        let (number, role) = (self.number, self.role.name());
        Finding {
            reason,
            serious: true,
            role,
            phase: Some(index),
            weight,
            at_ms: (reason == Reason::Starved).then_some(self.thread.worst_wait.at_ms),
            seen: format!(
                "thread {number} of {role} {seen}; {processors} busy for {}, robots and origins had {}{proxy}",
                format_percent(self.busy),
                format_percent(self.own)
            ),
        }
    }
}

/// Finding of the worst thread of a role that was saturated or waited for its processor. The reason depends on who used the
/// processor meanwhile.
fn processor_shortage(
    run: &JudgedRun<'_>,
    index: u16,
    phase: &PhaseEvidence,
    role: WatchedRole,
) -> Option<Finding> {
    let threads = phase.threads.iter().filter(|((of, _), _)| *of == role);
    let loads: Vec<ThreadLoad<'_>> =
        threads.map(|((role, number), thread)| ThreadLoad::new(run, phase, *role, *number, thread)).collect();
    let checks = [saturated, served_late, kept_waiting];
    checks.iter().find_map(|check| {
        let found = loads.iter().filter_map(|load| check(index, phase, load));
        found.max_by(|a, b| a.weight.total_cmp(&b.weight))
    })
}

fn saturated(index: u16, _: &PhaseEvidence, load: &ThreadLoad<'_>) -> Option<Finding> {
    let (ran, waited) = (format_percent(load.thread.ran()), format_percent(load.thread.waited()));
    let seen = format!("was running for {ran} of the time and waited for its turn for {waited}");
    load.is_saturated().then(|| load.finding(Reason::Saturated, index, load.thread.wanted(), &seen))
}

/// The timer was served late, and the thread had waited for a processor.
fn served_late(index: u16, phase: &PhaseEvidence, load: &ThreadLoad<'_>) -> Option<Finding> {
    let limit_us = late_limit_us(phase);
    let (late, all) = load.thread.lags_above(limit_us);
    let weight = share(late, all);
    if late < LATE_COUNT || weight < LAG_SHARE || load.thread.waited() < WAITED_SHARE {
        return None;
    }
    let seen = format!(
        "was ready to run and had no processor for {} of the time, and served its timer more than {} late in {} of all \
         cases",
        format_percent(load.thread.waited()),
        format_time(limit_us),
        format_percent(weight)
    );
    let reason = if load.own >= OWN_SHARE { Reason::Saturated } else { Reason::Starved };
    Some(load.finding(reason, index, weight, &seen))
}

/// The timer was served in time, but others delayed the thread enough to show in response times.
fn kept_waiting(index: u16, phase: &PhaseEvidence, load: &ThreadLoad<'_>) -> Option<Finding> {
    let thread = load.thread;
    let weight = share(thread.run_delay_us, thread.cpu_us + thread.run_delay_us);
    // The mean wait per wake-up, which a request or response meets.
    let each_us = thread.run_delay_us as f64 / thread.slices.max(1) as f64;
    let median_us = phase.response.quantile_us(0.5)?;
    let matters = each_us >= ADDED_SHARE * median_us as f64;
    if weight < KEPT_WAITING_SHARE || load.others() < OTHERS_SHARE || !matters {
        return None;
    }
    let seen = format!(
        "had no processor for {} of the time that it wanted to run, {each_us:.0} µs each time (the median response time \
         is {})",
        format_percent(weight),
        format_time(median_us)
    );
    let finding = load.finding(Reason::Starved, index, weight, &seen);
    Some(Finding { serious: each_us >= KEPT_WAITING_SERIOUS_US as f64, ..finding })
}

fn stolen(index: u16, phase: &PhaseEvidence) -> Option<Finding> {
    let processors = phase.processors.len().max(1) as u64;
    let weight = share(phase.machine.steal_us, phase.machine.wall_us * processors);
    (weight > STEAL_KNOWN).then(|| Finding {
        reason: Reason::Stolen,
        serious: weight > STEAL_SERIOUS,
        role: "",
        phase: Some(index),
        weight,
        at_ms: None,
        seen: format!("the hypervisor took {} of the processors' time away", format_percent(weight)),
    })
}

fn unquiet(run: &JudgedRun<'_>, role: WatchedRole) -> Option<Finding> {
    let late_us = run.baseline_us(role).filter(|late_us| *late_us > UNQUIET_US)?;
    Some(Finding {
        reason: Reason::Unquiet,
        serious: false,
        role: role.name(),
        phase: None,
        weight: late_us as f64,
        at_ms: None,
        seen: format!(
            "before the run, 1 % of the ticks of a bare timer in {} came more than {} late",
            role.name(),
            format_time(late_us)
        ),
    })
}

#[cfg(test)]
mod tests {
    use assay_measurement::health::ThreadInterval;

    use super::*;
    use crate::verdict::testing::{Run, late_timer, used};

    fn doubts_of(run: &Run) -> Vec<(Reason, bool, String)> {
        run.judge().into_iter().map(|doubt| (doubt.reason, doubt.serious, doubt.role)).collect()
    }

    #[test]
    fn short_waits_for_each_other_are_nobodys_fault() {
        let mut run = Run::new(&["a"]);
        // Robots and origins share a processor at half of its power.
        run.thread("robots", late_timer(used(300_000, 200_000), 9));
        run.thread("origins", late_timer(used(250_000, 200_000), 0));
        run.processor(0, 600_000);
        run.times(0, &[300], &[]);
        assert_eq!(doubts_of(&run), []);
    }

    #[test]
    fn a_timer_that_is_served_late_behind_others_is_starvation() {
        let mut run = Run::new(&["a"]);
        run.thread("robots", late_timer(used(200_000, 300_000), 20));
        run.thread("origins", used(50_000, 2_000));
        run.processor(0, 1_000_000);
        run.times(0, &[1_000], &[]);
        assert_eq!(doubts_of(&run), [(Reason::Starved, true, "robots".to_owned())]);
        let seen = &run.judge()[0].seen;
        assert!(
            seen.contains(
                "no processor for 30 % of the time, and served its timer more than 1.0 ms late in 2 %"
            ),
            "{seen}"
        );
        assert!(seen.contains("processor 0 was busy for 100 %, robots and origins had 25 %"), "{seen}");
    }

    #[test]
    fn a_timer_that_is_served_late_by_a_thread_that_had_its_processor_is_not() {
        let mut run = Run::new(&["a"]);
        run.thread("robots", late_timer(used(700_000, 2_000), 20));
        assert_eq!(doubts_of(&run), []);
    }

    #[test]
    fn others_that_keep_a_thread_waiting_starve_it_where_response_times_show_it() {
        let judge = |busy_us, slices, response_us| {
            let mut run = Run::new(&["a"]);
            run.thread("origins", ThreadInterval { slices, ..used(120_000, 90_000) });
            run.processor(0, busy_us);
            run.times(0, &[response_us], &[]);
            doubts_of(&run)
        };
        // 900 ms of waiting in ten seconds, in 20,000 parts: 45 µs each.
        let starved = |serious| [(Reason::Starved, serious, "origins".to_owned())];
        assert_eq!(judge(1_000_000, 20_000, 400), starved(false));
        assert_eq!(judge(1_000_000, 9_000, 400), starved(true), "100 µs each");
        assert_eq!(judge(1_000_000, 20_000, 2_000_000), [], "a slow target hides it");
        assert_eq!(judge(200_000, 20_000, 400), [], "nobody else was there");
        assert_eq!(judge(1_000_000, 100_000, 400), [], "9 µs each");
    }

    #[test]
    fn a_proxy_on_the_same_processor_is_no_stranger() {
        let judge = |late, cpus: &[u32]| {
            let mut run = Run::new(&["a"]);
            let thread = ThreadInterval { slices: 20_000, ..used(120_000, 90_000) };
            run.thread("robots", late_timer(thread, late));
            run.processor(0, 1_000_000);
            run.times(0, &[400], &[]);
            run.proxy(870_000, cpus);
            run.judge().into_iter().map(|doubt| doubt.seen).collect::<Vec<_>>()
        };
        assert!(judge(0, &[0]).is_empty() && judge(0, &[]).is_empty());
        assert!(!judge(0, &[1])[0].contains("proxy"));
        let late = judge(90, &[0]);
        assert!(late[0].ends_with("robots and origins had 12 %, the proxy 87 %"), "{late:?}");
    }

    #[test]
    fn waits_that_a_slow_target_hides_starve_nobody() {
        let mut run = Run::new(&["a"]);
        run.thread("robots", late_timer(used(200_000, 300_000), 300));
        run.processor(0, 1_000_000);
        run.times(0, &[2_000_000], &[]);
        assert_eq!(doubts_of(&run), []);
    }

    #[test]
    fn a_processor_that_robots_and_origins_used_up_is_their_limit() {
        let mut run = Run::new(&["a"]);
        run.thread("robots", late_timer(used(500_000, 480_000), 500));
        run.thread("origins", late_timer(used(480_000, 300_000), 500));
        run.processor(0, 990_000);
        run.times(0, &[1_000], &[]);
        let both = ["robots", "origins"].map(|role| (Reason::Saturated, true, role.to_owned()));
        assert_eq!(doubts_of(&run), both);
        let mut alone = Run::new(&["a"]);
        alone.thread("origins", used(960_000, 0));
        assert_eq!(doubts_of(&alone), [(Reason::Saturated, true, "origins".to_owned())]);
    }

    #[test]
    fn a_thread_that_wants_its_processor_all_the_time_and_shares_it_with_others_is_starved() {
        let mut run = Run::new(&["a"]);
        run.thread("robots", late_timer(used(500_000, 490_000), 200));
        run.processor(0, 1_000_000);
        run.times(0, &[1_000], &[]);
        assert_eq!(doubts_of(&run), [(Reason::Starved, true, "robots".to_owned())]);
    }

    #[test]
    fn stolen_time_is_worth_knowing_and_much_of_it_is_serious() {
        let judge = |steal_us| {
            let mut run = Run::new(&["a"]);
            run.machine(steal_us);
            run.judge().iter().map(|doubt| (doubt.reason, doubt.serious)).collect::<Vec<_>>()
        };
        assert_eq!(judge(9_000), [], "0.45 % of two processors");
        assert_eq!(judge(11_000), [(Reason::Stolen, false)]);
        assert_eq!(judge(101_000), [(Reason::Stolen, true)]);
    }

    #[test]
    fn a_machine_that_was_not_quiet_before_is_worth_knowing() {
        let mut run = Run::new(&["a"]);
        run.baseline("origins", 1, 900);
        run.baseline("robots", 0, 2_500);
        let doubts = run.judge();
        assert_eq!(doubts.len(), 1);
        assert_eq!(
            (doubts[0].reason, doubts[0].serious, doubts[0].role.as_str()),
            (Reason::Unquiet, false, "robots")
        );
        assert!(doubts[0].seen.contains("more than 2.5 ms late"), "{}", doubts[0].seen);
    }
}
