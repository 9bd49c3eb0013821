//! Where the waits of a thread lie exactly: from its switches, and the kernel's sum of what it waited.
//!
//! A thread that lost its processor waited until it got one again. One that slept was woken at some time before it got one: the
//! kernel's sum tells how long all waits of a window were together. What of a wait the threads of the same role had the
//! processor is the role's own, and is left out.
//!
//! *Does not:* read anything; switches and sums are given to it.

use std::collections::{BTreeMap, VecDeque};

use assay_measurement::waits::Wait;

use super::Counts;
use super::felt::Felt;
use super::idle::IdleEnds;
use super::switches::{Kind, Switch};

/// For how long it is known who had a processor, in nanoseconds: a wait that was longer was for others before that.
const KNOWN_NS: u64 = 200_000_000;

/// When the threads of a role had which processor.
#[derive(Debug, Default)]
pub struct Runs {
    /// By processor: from when until when, in the order of ends.
    ended: BTreeMap<u32, VecDeque<[u64; 2]>>,
}

impl Runs {
    /// A thread had a processor for so long.
    fn add(&mut self, cpu: u32, run: [u64; 2]) {
        let runs = self.ended.entry(cpu).or_default();
        let place = runs.partition_point(|known| known[1] <= run[1]);
        runs.insert(place, run);
    }

    /// Forgets what no wait that ends after `now_ns` is compared with.
    pub fn forget(&mut self, now_ns: u64) {
        for runs in self.ended.values_mut() {
            while runs.front().is_some_and(|run| run[1] + KNOWN_NS < now_ns) {
                runs.pop_front();
            }
        }
    }

    /// For how long a processor was had by threads of the role between two instants.
    fn had_ns(&self, cpu: u32, [from_ns, to_ns]: [u64; 2]) -> u64 {
        let runs = self.ended.get(&cpu).into_iter().flat_map(|runs| runs.iter().rev());
        // One thread at a time has a processor: those that ended before the stretch are behind all others.
        let runs = runs.skip_while(|run| run[0] >= to_ns).take_while(|run| run[1] > from_ns);
        runs.map(|run| run[1].min(to_ns).saturating_sub(run[0].max(from_ns))).sum()
    }
}

/// The switches of a thread, as far as they were looked at.
#[derive(Debug, Default)]
pub struct Placed {
    /// Not looked at yet.
    pub switches: VecDeque<Switch>,
    /// Up to here in them, runs were added.
    seen: usize,
    /// The last time that it got a processor, of those that were added.
    running: Option<Switch>,
    /// The last time that it gave up or lost its processor, of those that were looked at.
    out: Option<Switch>,
}

impl Placed {
    /// Adds when the thread had its processors, as far as that is new.
    pub fn add_runs(&mut self, runs: &mut Runs) {
        for switch in self.switches.iter().skip(self.seen) {
            let since = std::mem::take(&mut self.running);
            match (switch.kind, since) {
                (Kind::In, _) => self.running = Some(*switch),
                (_, Some(since)) => runs.add(since.cpu, [since.at_ns, switch.at_ns]),
                (_, None) => {}
            }
        }
        self.seen = self.switches.len();
    }

    /// The switches that belong to what the kernel has counted up to `to_ns`: among them the thread got a processor so often.
    /// None: it did so more often than is known.
    fn counted(&mut self, to_ns: u64, times: u64) -> Option<Vec<Switch>> {
        let (mut seen, mut taken) = (0, 0);
        for (place, switch) in self.switches.iter().enumerate() {
            if switch.kind == Kind::In && switch.at_ns > to_ns && seen == times {
                break;
            }
            seen += u64::from(switch.kind == Kind::In);
            taken = place + 1;
        }
        self.seen -= taken;
        let counted: Vec<Switch> = self.switches.drain(..taken).collect();
        (seen >= times).then_some(counted)
    }

    /// Places what the thread waited in a window. `idle`: when its processor was idle until, if it is bound to one that is
    /// watched.
    pub fn place(
        &mut self,
        [from_ns, to_ns]: [u64; 2],
        had: &Counts,
        is_complete: bool,
        (felt, runs, idle): (&mut Felt, &Runs, Option<&IdleEnds>),
        waits: &mut Vec<Wait>,
    ) {
        let counted = self.counted(to_ns, had.times).filter(|_| is_complete);
        let Some(counted) = counted else {
            // Somewhere in it.
            self.out = None;
            if had.waited_ns > 0 {
                felt.wait([from_ns, to_ns], had.waited_ns, waits);
            }
            return;
        };
        let preempted_ns = |out: Option<Switch>, at_ns: u64| match out {
            Some(Switch { kind: Kind::Lost, at_ns: out_ns, .. }) => Some(at_ns.saturating_sub(out_ns)),
            _ => None,
        };
        let (mut out, mut known_ns) = (self.out, 0);
        for switch in &counted {
            match switch.kind {
                Kind::In => known_ns += preempted_ns(out, switch.at_ns).unwrap_or(0),
                Kind::Slept | Kind::Lost => out = Some(*switch),
            }
        }
        let rest_ns = had.waited_ns.saturating_sub(known_ns);
        for switch in counted {
            if switch.kind != Kind::In {
                self.out = Some(switch);
                if switch.kind == Kind::Slept {
                    felt.sleep(switch.at_ns, 1, 1, waits);
                }
                continue;
            }
            let slept_ns = self.out.map_or(u64::MAX, |out| switch.at_ns.saturating_sub(out.at_ns));
            let busy_ns = idle.and_then(|idle| idle.since_ns(switch.at_ns)).unwrap_or(u64::MAX);
            let wait_ns = preempted_ns(self.out, switch.at_ns).unwrap_or(rest_ns.min(slept_ns).min(busy_ns));
            let stayed = self.out.is_some_and(|out| out.cpu == switch.cpu);
            let own_ns = if stayed {
                runs.had_ns(switch.cpu, [switch.at_ns.saturating_sub(wait_ns), switch.at_ns])
            } else {
                0
            };
            let wait_ns = wait_ns.saturating_sub(own_ns);
            if wait_ns > 0 {
                felt.wait([switch.at_ns; 2], wait_ns, waits);
            }
        }
        // It may have run all the time.
        felt.sleep(to_ns, 0, 1, waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn switch(at_us: u64, kind: Kind) -> Switch {
        Switch { at_ns: at_us * US, cpu: 1, kind }
    }

    fn had(waited_us: u64, times: u64) -> Counts {
        Counts { ran_ns: 0, waited_ns: waited_us * US, times }
    }

    fn wait(from_us: u64, to_us: u64, wait_us: u64) -> Wait {
        Wait { from_ns: from_us * US, to_ns: to_us * US, wait_us }
    }

    /// A thread that slept at 1 ms, with what it did then.
    fn after_sleep(switches: &[Switch]) -> Placed {
        let switches = std::iter::once(switch(1_000, Kind::Slept)).chain(switches.iter().copied()).collect();
        Placed { switches, ..Placed::default() }
    }

    fn place(placed: &mut Placed, had: &Counts, others: &mut [Placed]) -> Vec<Wait> {
        let (mut runs, mut felt, mut waits) = (Runs::default(), Felt::default(), Vec::new());
        placed.add_runs(&mut runs);
        others.iter_mut().for_each(|other| other.add_runs(&mut runs));
        placed.place([2_000 * US, 4_000 * US], had, true, (&mut felt, &runs, None), &mut waits);
        waits
    }

    #[test]
    fn a_wait_begins_where_the_processor_was_lost_and_is_felt_until_sleep() {
        let mut placed = after_sleep(&[
            switch(2_100, Kind::In),
            switch(2_200, Kind::Lost),
            switch(2_700, Kind::In),
            switch(2_900, Kind::Slept),
        ]);
        let waits = place(&mut placed, &had(540, 2), &mut []);
        assert_eq!(waits, [wait(2_100, 2_700, 40), wait(2_700, 2_900, 540)]);
    }

    #[test]
    fn after_sleep_it_waited_no_longer_than_the_kernel_has_counted_nor_than_it_was_away() {
        let woken = [switch(2_100, Kind::In), switch(2_200, Kind::Slept), switch(2_230, Kind::In)];
        let mut placed = after_sleep(&[&woken[..], &[switch(2_300, Kind::Slept)]].concat());
        let waits = place(&mut placed, &had(300, 2), &mut []);
        assert_eq!(waits, [wait(2_100, 2_200, 300), wait(2_230, 2_300, 30)]);
    }

    #[test]
    fn waiting_for_threads_of_the_same_role_is_left_out() {
        let mut placed =
            after_sleep(&[switch(2_100, Kind::In), switch(2_200, Kind::Lost), switch(2_700, Kind::In)]);
        let mut other = Placed {
            switches: [switch(2_300, Kind::In), switch(2_600, Kind::Slept)].into(),
            ..Placed::default()
        };
        let elsewhere = Placed {
            switches: [switch(2_200, Kind::In), switch(2_700, Kind::Slept)]
                .map(|switch| Switch { cpu: 0, ..switch })
                .into(),
            ..Placed::default()
        };
        placed.switches.push_back(switch(2_900, Kind::Slept));
        let waits = place(&mut placed, &had(500, 2), &mut [std::mem::take(&mut other), elsewhere]);
        assert_eq!(waits, [wait(2_700, 2_900, 200)]);
    }

    #[test]
    fn after_sleep_it_waited_for_others_only_since_its_processor_was_idle() {
        let woken = [switch(2_100, Kind::In), switch(2_200, Kind::Slept), switch(2_600, Kind::In)];
        let mut placed = after_sleep(&[&woken[..], &[switch(2_700, Kind::Slept)]].concat());
        placed.add_runs(&mut Runs::default());
        let idle = IdleEnds::from_iter([2_100 * US, 2_530 * US]);
        let (mut felt, mut waits) = (Felt::default(), Vec::new());
        let known = (&mut felt, &Runs::default(), Some(&idle));
        placed.place([2_000 * US, 4_000 * US], &had(300, 2), true, known, &mut waits);
        assert_eq!(waits, [wait(2_600, 2_700, 70)], "it followed idleness, then another thread");
    }

    #[test]
    fn switches_that_the_kernel_had_not_counted_yet_are_kept_for_the_next_window() {
        let mut placed =
            after_sleep(&[switch(3_900, Kind::In), switch(4_100, Kind::Slept), switch(4_200, Kind::In)]);
        let waits = place(&mut placed, &had(50, 1), &mut []);
        assert_eq!(waits, [wait(3_900, 4_100, 50)]);
        assert_eq!(placed.switches, [switch(4_200, Kind::In)]);
    }

    #[test]
    fn where_switches_are_missing_a_wait_lies_somewhere_in_its_window() {
        let mut placed = after_sleep(&[switch(2_100, Kind::In)]);
        let (runs, mut felt, mut waits) = (Runs::default(), Felt::default(), Vec::new());
        placed.add_runs(&mut Runs::default());
        placed.place([2_000 * US, 4_000 * US], &had(700, 3), true, (&mut felt, &runs, None), &mut waits);
        felt.report(5_000 * US, &mut waits);
        assert_eq!(waits, [wait(2_000, 5_000, 700)]);
    }
}
