//! Times of the waits of a thread, from its switches and the kernel's sum of its waits.
//!
//! A preempted thread waits until it gets a processor again. A blocked one is woken at an unknown time before that; the
//! kernel's sum bounds all waits of a window. The part of a wait in which threads of the same role had the processor is the
//! role's own, and is not counted.
//!
//! *Does not:* read anything; switches and sums are arguments.

use std::collections::{BTreeMap, VecDeque};

use assay_measurement::waits::Wait;

use super::SchedCounters;
use super::backlog::Backlog;
use super::idle::IdleEnds;
use super::switches::{Switch, SwitchKind};

/// Retention of run intervals, in nanoseconds: the part of a wait before that counts as waiting for others.
const KNOWN_NS: u64 = 200_000_000;

/// Times for which the threads of a role had processors.
#[derive(Debug, Default)]
pub struct RunIntervals {
    /// Intervals by processor, in order of their ends.
    by_cpu: BTreeMap<u32, VecDeque<[u64; 2]>>,
}

impl RunIntervals {
    fn add(&mut self, cpu: u32, run: [u64; 2]) {
        let runs = self.by_cpu.entry(cpu).or_default();
        let place = runs.partition_point(|known| known[1] <= run[1]);
        runs.insert(place, run);
    }

    /// Forgets intervals that end long before `now_ns`.
    pub fn forget(&mut self, now_ns: u64) {
        for runs in self.by_cpu.values_mut() {
            while runs.front().is_some_and(|run| run[1] + KNOWN_NS < now_ns) {
                runs.pop_front();
            }
        }
    }

    /// Time between two instants for which threads of the role had a processor.
    fn used_ns(&self, cpu: u32, [from_ns, to_ns]: [u64; 2]) -> u64 {
        let runs = self.by_cpu.get(&cpu).into_iter().flat_map(|runs| runs.iter().rev());
        // Intervals of a processor do not overlap, so all that end before the stretch come last here.
        let runs = runs.skip_while(|run| run[0] >= to_ns).take_while(|run| run[1] > from_ns);
        runs.map(|run| run[1].min(to_ns).saturating_sub(run[0].max(from_ns))).sum()
    }
}

/// Sources for locating waits besides the thread's own switches.
#[derive(Debug, Clone, Copy)]
pub struct LocatorContext<'a> {
    pub runs: &'a RunIntervals,
    /// Idle times of the processor, for a thread that is pinned to a monitored one.
    pub idle: Option<&'a IdleEnds>,
}

/// Locates the waits of one thread.
#[derive(Debug, Default)]
pub struct WaitLocator {
    /// Switches that have not been processed.
    pub switches: VecDeque<Switch>,
    /// Number of `switches` whose run intervals were added.
    examined: usize,
    /// Switch that began the current run, of those that were added.
    running: Option<Switch>,
    /// Last switch away from a processor, of those that were processed.
    out: Option<Switch>,
}

impl WaitLocator {
    /// Adds new run intervals to `runs`.
    pub fn add_runs(&mut self, runs: &mut RunIntervals) {
        for switch in self.switches.iter().skip(self.examined) {
            let since = std::mem::take(&mut self.running);
            match (switch.kind, since) {
                (SwitchKind::In, _) => self.running = Some(*switch),
                (_, Some(since)) => runs.add(since.cpu, [since.at_ns, switch.at_ns]),
                (_, None) => {}
            }
        }
        self.examined = self.switches.len();
    }

    /// Removes the switches that the kernel's counters include at `to_ns`, by the number of times that the thread got a
    /// processor. None if records are missing.
    fn counted(&mut self, to_ns: u64, times: u64) -> Option<Vec<Switch>> {
        let (mut runs, mut taken) = (0, 0);
        for (place, switch) in self.switches.iter().enumerate() {
            if switch.kind == SwitchKind::In && switch.at_ns > to_ns && runs == times {
                break;
            }
            runs += u64::from(switch.kind == SwitchKind::In);
            taken = place + 1;
        }
        self.examined -= taken;
        let counted: Vec<Switch> = self.switches.drain(..taken).collect();
        (runs >= times).then_some(counted)
    }

    /// Locates the waits of a window.
    pub fn locate(
        &mut self,
        [from_ns, to_ns]: [u64; 2],
        used: &SchedCounters,
        is_complete: bool,
        backlog: &mut Backlog,
        LocatorContext { runs, idle }: LocatorContext<'_>,
        waits: &mut Vec<Wait>,
    ) {
        let counted = self.counted(to_ns, used.times).filter(|_| is_complete);
        let Some(counted) = counted else {
            // Records are missing: the wait was at any time in the window.
            self.out = None;
            if used.waited_ns > 0 {
                backlog.wait([from_ns, to_ns], used.waited_ns, waits);
            }
            return;
        };
        let preempted_ns = |out: Option<Switch>, at_ns: u64| match out {
            Some(Switch { kind: SwitchKind::Preempted, at_ns: out_ns, .. }) => {
                Some(at_ns.saturating_sub(out_ns))
            }
            _ => None,
        };
        let (mut out, mut known_ns) = (self.out, 0);
        for switch in &counted {
            match switch.kind {
                SwitchKind::In => known_ns += preempted_ns(out, switch.at_ns).unwrap_or(0),
                SwitchKind::Blocked | SwitchKind::Preempted => out = Some(*switch),
            }
        }
        let rest_ns = used.waited_ns.saturating_sub(known_ns);
        for switch in counted {
            if switch.kind != SwitchKind::In {
                self.out = Some(switch);
                if switch.kind == SwitchKind::Blocked {
                    backlog.sleep(switch.at_ns, 1, 1, waits);
                }
                continue;
            }
            let slept_ns = self.out.map_or(u64::MAX, |out| switch.at_ns.saturating_sub(out.at_ns));
            let busy_ns = idle.and_then(|idle| idle.since_ns(switch.at_ns)).unwrap_or(u64::MAX);
            let wait_ns = preempted_ns(self.out, switch.at_ns).unwrap_or(rest_ns.min(slept_ns).min(busy_ns));
            let stayed = self.out.is_some_and(|out| out.cpu == switch.cpu);
            let own_ns = if stayed {
                runs.used_ns(switch.cpu, [switch.at_ns.saturating_sub(wait_ns), switch.at_ns])
            } else {
                0
            };
            let wait_ns = wait_ns.saturating_sub(own_ns);
            if wait_ns > 0 {
                backlog.wait([switch.at_ns; 2], wait_ns, waits);
            }
        }
        // No further sleep is known: the thread may have run until the end of the window.
        backlog.sleep(to_ns, 0, 1, waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn switch(at_us: u64, kind: SwitchKind) -> Switch {
        Switch { at_ns: at_us * US, cpu: 1, kind }
    }

    fn used(waited_us: u64, times: u64) -> SchedCounters {
        SchedCounters { ran_ns: 0, waited_ns: waited_us * US, times }
    }

    fn wait(from_us: u64, to_us: u64, wait_us: u64) -> Wait {
        Wait { from_ns: from_us * US, to_ns: to_us * US, wait_us }
    }

    /// A thread that slept at 1 ms, with what it did then.
    fn after_sleep(switches: &[Switch]) -> WaitLocator {
        let switches =
            std::iter::once(switch(1_000, SwitchKind::Blocked)).chain(switches.iter().copied()).collect();
        WaitLocator { switches, ..WaitLocator::default() }
    }

    fn locate(locator: &mut WaitLocator, used: &SchedCounters, others: &mut [WaitLocator]) -> Vec<Wait> {
        let (mut runs, mut backlog, mut waits) = (RunIntervals::default(), Backlog::default(), Vec::new());
        locator.add_runs(&mut runs);
        others.iter_mut().for_each(|other| other.add_runs(&mut runs));
        let context = LocatorContext { runs: &runs, idle: None };
        locator.locate([2_000 * US, 4_000 * US], used, true, &mut backlog, context, &mut waits);
        waits
    }

    #[test]
    fn a_wait_begins_where_the_processor_was_lost_and_is_felt_until_sleep() {
        let mut locator = after_sleep(&[
            switch(2_100, SwitchKind::In),
            switch(2_200, SwitchKind::Preempted),
            switch(2_700, SwitchKind::In),
            switch(2_900, SwitchKind::Blocked),
        ]);
        let waits = locate(&mut locator, &used(540, 2), &mut []);
        assert_eq!(waits, [wait(2_100, 2_700, 40), wait(2_700, 2_900, 540)]);
    }

    #[test]
    fn after_sleep_it_waited_no_longer_than_the_kernel_has_counted_nor_than_it_was_away() {
        let woken = [
            switch(2_100, SwitchKind::In),
            switch(2_200, SwitchKind::Blocked),
            switch(2_230, SwitchKind::In),
        ];
        let mut locator = after_sleep(&[&woken[..], &[switch(2_300, SwitchKind::Blocked)]].concat());
        let waits = locate(&mut locator, &used(300, 2), &mut []);
        assert_eq!(waits, [wait(2_100, 2_200, 300), wait(2_230, 2_300, 30)]);
    }

    #[test]
    fn waiting_for_threads_of_the_same_role_is_left_out() {
        let mut locator = after_sleep(&[
            switch(2_100, SwitchKind::In),
            switch(2_200, SwitchKind::Preempted),
            switch(2_700, SwitchKind::In),
        ]);
        let mut other = WaitLocator {
            switches: [switch(2_300, SwitchKind::In), switch(2_600, SwitchKind::Blocked)].into(),
            ..WaitLocator::default()
        };
        let elsewhere = WaitLocator {
            switches: [switch(2_200, SwitchKind::In), switch(2_700, SwitchKind::Blocked)]
                .map(|switch| Switch { cpu: 0, ..switch })
                .into(),
            ..WaitLocator::default()
        };
        locator.switches.push_back(switch(2_900, SwitchKind::Blocked));
        let waits = locate(&mut locator, &used(500, 2), &mut [std::mem::take(&mut other), elsewhere]);
        assert_eq!(waits, [wait(2_700, 2_900, 200)]);
    }

    #[test]
    fn after_sleep_it_waited_for_others_only_since_its_processor_was_idle() {
        let woken = [
            switch(2_100, SwitchKind::In),
            switch(2_200, SwitchKind::Blocked),
            switch(2_600, SwitchKind::In),
        ];
        let mut locator = after_sleep(&[&woken[..], &[switch(2_700, SwitchKind::Blocked)]].concat());
        locator.add_runs(&mut RunIntervals::default());
        let idle = IdleEnds::from_iter([2_100 * US, 2_530 * US]);
        let (mut backlog, mut waits) = (Backlog::default(), Vec::new());
        let context = LocatorContext { runs: &RunIntervals::default(), idle: Some(&idle) };
        locator.locate([2_000 * US, 4_000 * US], &used(300, 2), true, &mut backlog, context, &mut waits);
        assert_eq!(waits, [wait(2_600, 2_700, 70)], "it followed idleness, then another thread");
    }

    #[test]
    fn switches_that_the_kernel_had_not_counted_yet_are_kept_for_the_next_window() {
        let mut locator = after_sleep(&[
            switch(3_900, SwitchKind::In),
            switch(4_100, SwitchKind::Blocked),
            switch(4_200, SwitchKind::In),
        ]);
        let waits = locate(&mut locator, &used(50, 1), &mut []);
        assert_eq!(waits, [wait(3_900, 4_100, 50)]);
        assert_eq!(locator.switches, [switch(4_200, SwitchKind::In)]);
    }

    #[test]
    fn where_switches_are_missing_a_wait_lies_somewhere_in_its_window() {
        let mut locator = after_sleep(&[switch(2_100, SwitchKind::In)]);
        let (runs, mut backlog, mut waits) = (RunIntervals::default(), Backlog::default(), Vec::new());
        locator.add_runs(&mut RunIntervals::default());
        let context = LocatorContext { runs: &runs, idle: None };
        locator.locate([2_000 * US, 4_000 * US], &used(700, 3), true, &mut backlog, context, &mut waits);
        backlog.report(5_000 * US, &mut waits);
        assert_eq!(waits, [wait(2_000, 5_000, 700)]);
    }
}
