//! Did robots and origins get the processors they needed, and were those quiet?

use assay_record::doubt::Reason;

use super::Case;
use super::evidence::{PhaseEvidence, Side, ThreadSum, share};
use super::finding::{Finding, percent, time};
use super::limits::{
    OWN_SHARE, SATURATED_SHARE, STARVED_SHARE, STEAL_INVALID, STEAL_KNOWN, UNQUIET_US, WAIT_PART_OF_LATENESS,
};
use super::pace::late_limit_us;

/// Findings of every phase, and of the time before the first.
pub fn look(case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, phase) in case.phases() {
        for side in Side::ALL {
            found.extend(scarce(case, index, phase, side));
        }
        found.extend(stolen(index, phase));
    }
    found.extend(Side::ALL.into_iter().filter_map(|side| unquiet(case, side)));
    found
}

/// A role's thread in a phase, beside what its processor did.
struct Seat<'a> {
    side: Side,
    number: u32,
    thread: &'a ThreadSum,
    /// Share of the processor that worked, for whomever.
    busy: f64,
    /// Share of it that robots and origins had.
    own: f64,
}

impl Seat<'_> {
    /// It ran all the time, or was kept from running by robots and origins alone.
    fn is_saturated(&self) -> bool {
        let used_up_by_us = self.thread.wanted() >= SATURATED_SHARE && self.own >= OWN_SHARE;
        self.thread.ran() >= SATURATED_SHARE || used_up_by_us
    }

    fn name(&self) -> String {
        format!("thread {} of {}", self.number, self.side.name())
    }

    /// What its processor did, in words.
    fn processor(&self) -> String {
        let whose = match self.thread.cpu {
            Some(cpu) => format!("processor {cpu} was"),
            None => "the processors of this machine were".to_owned(),
        };
        format!("{whose} busy for {}, robots and origins had {}", percent(self.busy), percent(self.own))
    }
}

fn seats(phase: &PhaseEvidence, side: Side) -> impl Iterator<Item = Seat<'_>> {
    let of_side = phase.threads.iter().filter(move |((of, _), _)| *of == side);
    of_side.map(move |((_, number), thread)| {
        let processor = phase.processors_of(thread.cpu);
        // A processor that was not watched is taken to be as busy as the thread needs it to be.
        let wall_us = if processor.wall_us == 0 { thread.wall_us } else { processor.wall_us };
        let own = share(phase.own_cpu_us(thread.cpu), wall_us);
        // The kernel counts what a processor does in steps; what our threads had, exactly.
        let busy = share(processor.busy_us, wall_us).max(own).min(1.0);
        Seat { side, number: *number, thread, busy, own }
    })
}

/// The worst thread of a role: it had no time left, or it waited long for its processor. Whoever had the processor
/// meanwhile gives it its name.
fn scarce(case: &Case<'_>, index: u16, phase: &PhaseEvidence, side: Side) -> Option<Finding> {
    let finding = |reason, weight, at_ms, seen| Finding {
        reason,
        invalidates: true,
        role: side.name(),
        phase: Some(index),
        weight,
        at_ms,
        seen,
    };
    let wanted = |seat: &Seat<'_>| seat.thread.wanted();
    if let Some(seat) =
        seats(phase, side).filter(Seat::is_saturated).max_by(|a, b| wanted(a).total_cmp(&wanted(b)))
    {
        let seen = format!(
            "{} was running for {} of the time and waited for its turn for {}; {}",
            seat.name(),
            percent(seat.thread.ran()),
            percent(seat.thread.wanted() - seat.thread.ran()),
            seat.processor()
        );
        return Some(finding(Reason::Saturated, wanted(&seat), None, seen));
    }
    let long_us = late_limit_us(phase) / WAIT_PART_OF_LATENESS;
    let waited = |seat: &Seat<'_>| share(seat.thread.waited_long_us(long_us), seat.thread.wall_us);
    let seat = seats(phase, side).max_by(|a, b| waited(a).total_cmp(&waited(b)))?;
    let weight = waited(&seat);
    if weight < STARVED_SHARE {
        return None;
    }
    let (at_ms, mean_us) = seat.thread.worst_wait;
    let seen = format!(
        "{} was ready to run and had no processor for {} of the time, for {} each time in the worst second; {}{}",
        seat.name(),
        percent(weight),
        time(mean_us),
        seat.processor(),
        case.neighbours(seat.thread.cpu)
    );
    let reason = if seat.own >= OWN_SHARE { Reason::Saturated } else { Reason::Starved };
    Some(finding(reason, weight, Some(at_ms), seen))
}

fn stolen(index: u16, phase: &PhaseEvidence) -> Option<Finding> {
    let processors = phase.processors.len().max(1) as u64;
    let weight = share(phase.machine.steal_us, phase.machine.wall_us * processors);
    (weight > STEAL_KNOWN).then(|| Finding {
        reason: Reason::Stolen,
        invalidates: weight > STEAL_INVALID,
        role: "",
        phase: Some(index),
        weight,
        at_ms: None,
        seen: format!("the hypervisor took {} of the processors' time away", percent(weight)),
    })
}

fn unquiet(case: &Case<'_>, side: Side) -> Option<Finding> {
    let late_us = case.baseline_us(side).filter(|late_us| *late_us > UNQUIET_US)?;
    Some(Finding {
        reason: Reason::Unquiet,
        invalidates: false,
        role: side.name(),
        phase: None,
        weight: late_us as f64,
        at_ms: None,
        seen: format!(
            "before the run, 1 % of the ticks of a bare timer in {} came more than {} late",
            side.name(),
            time(late_us)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing::{Run, used};

    fn told(run: &Run) -> Vec<(Reason, bool, String)> {
        run.judge().into_iter().map(|doubt| (doubt.reason, doubt.invalidates, doubt.role)).collect()
    }

    #[test]
    fn short_waits_are_nobodys_fault_however_many() {
        let mut run = Run::of(&["a"]);
        // Robots and origins share a processor at half of its power: many waits of 50 µs.
        run.thread("robots", used(300_000, 200_000, 4_000));
        run.thread("origins", used(250_000, 200_000, 4_000));
        run.processor(0, 600_000);
        assert_eq!(told(&run), []);
    }

    #[test]
    fn long_waits_behind_others_are_starvation() {
        let mut run = Run::of(&["a"]);
        run.thread("robots", used(200_000, 300_000, 300));
        run.thread("origins", used(50_000, 2_000, 300));
        run.processor(0, 1_000_000);
        assert_eq!(told(&run), [(Reason::Starved, true, "robots".to_owned())]);
        let seen = &run.judge()[0].seen;
        assert!(seen.contains("had no processor for 30 % of the time, for 1.0 ms each time"), "{seen}");
        assert!(seen.contains("processor 0 was busy for 100 %, robots and origins had 25 %"), "{seen}");
    }

    #[test]
    fn waits_that_a_slow_target_hides_starve_nobody() {
        let mut run = Run::of(&["a"]);
        run.thread("robots", used(200_000, 300_000, 300));
        run.times(0, &[2_000_000], &[]);
        assert_eq!(told(&run), []);
    }

    #[test]
    fn a_processor_that_robots_and_origins_used_up_is_their_limit() {
        let mut run = Run::of(&["a"]);
        run.thread("robots", used(500_000, 480_000, 500));
        run.thread("origins", used(480_000, 300_000, 500));
        run.processor(0, 990_000);
        let both = ["robots", "origins"].map(|role| (Reason::Saturated, true, role.to_owned()));
        assert_eq!(told(&run), both);
        let mut alone = Run::of(&["a"]);
        alone.thread("origins", used(960_000, 0, 10));
        assert_eq!(told(&alone), [(Reason::Saturated, true, "origins".to_owned())]);
    }

    #[test]
    fn a_thread_that_wants_its_processor_all_the_time_and_shares_it_with_others_is_starved() {
        let mut run = Run::of(&["a"]);
        run.thread("robots", used(500_000, 490_000, 200));
        run.processor(0, 1_000_000);
        assert_eq!(told(&run), [(Reason::Starved, true, "robots".to_owned())]);
    }

    #[test]
    fn stolen_time_is_worth_knowing_and_much_of_it_makes_invalid() {
        let judge = |steal_us| {
            let mut run = Run::of(&["a"]);
            run.machine(steal_us);
            run.judge().iter().map(|doubt| (doubt.reason, doubt.invalidates)).collect::<Vec<_>>()
        };
        assert_eq!(judge(9_000), [], "0.45 % of two processors");
        assert_eq!(judge(11_000), [(Reason::Stolen, false)]);
        assert_eq!(judge(101_000), [(Reason::Stolen, true)]);
    }

    #[test]
    fn a_machine_that_was_not_quiet_before_is_worth_knowing() {
        let mut run = Run::of(&["a"]);
        run.baseline("origins", 1, 900);
        run.baseline("robots", 0, 2_500);
        let doubts = run.judge();
        assert_eq!(doubts.len(), 1);
        assert_eq!(
            (doubts[0].reason, doubts[0].invalidates, doubts[0].role.as_str()),
            (Reason::Unquiet, false, "robots")
        );
        assert!(doubts[0].seen.contains("more than 2.5 ms late"), "{}", doubts[0].seen);
    }
}
