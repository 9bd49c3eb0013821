//! How busy are the processors of this machine, and how much of them did the hypervisor take?

use std::collections::BTreeMap;
use std::fs;

use assay_record::health::ProcessorInterval;

use super::processes::ticks_us;

/// The machine's own account since it was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// All processors together.
    pub all: Work,
    /// Each of them, by its number.
    pub each: BTreeMap<u32, Work>,
}

/// What a processor did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// User, system and interrupts.
    pub busy_us: u64,
    /// Taken by the hypervisor.
    pub steal_us: u64,
}

impl Work {
    /// The difference to an earlier account.
    pub fn since(self, before: Work) -> Work {
        Work {
            busy_us: self.busy_us.saturating_sub(before.busy_us),
            steal_us: self.steal_us.saturating_sub(before.steal_us),
        }
    }
}

impl Machine {
    /// Reads `/proc/stat`.
    pub fn now() -> Self {
        parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// What each processor did since an earlier account.
    pub fn intervals_since(&self, before: &Machine, start_ms: u64, length_ms: u64) -> Vec<ProcessorInterval> {
        let interval = |(&cpu, work): (&u32, &Work)| {
            let Work { busy_us, steal_us } = work.since(before.each.get(&cpu).copied().unwrap_or(*work));
            ProcessorInterval { start_ms, length_ms, cpu, busy_us, steal_us }
        };
        self.each.iter().map(interval).collect()
    }
}

fn parse(stat: &str) -> Machine {
    let mut machine = Machine::default();
    for line in stat.lines() {
        let Some((name, ticks)) = line.strip_prefix("cpu").and_then(|rest| rest.split_once(' ')) else {
            break;
        };
        let ticks: Vec<u64> = ticks.split_whitespace().filter_map(|tick| tick.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal
        let busy = at(0) + at(1) + at(2) + at(5) + at(6);
        let work = Work { busy_us: ticks_us(busy), steal_us: ticks_us(at(7)) };
        match name.parse() {
            Ok(cpu) => drop(machine.each.insert(cpu, work)),
            Err(_) => machine.all = work,
        }
    }
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_one_by_one_and_together() {
        let machine =
            parse("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1\ncpu11 0 0 0 0 0 0 1 2 0 0\nintr 7 8\ncpu7 9 9 9");
        assert_eq!(machine.all, Work { busy_us: ticks_us(19), steal_us: ticks_us(8) });
        assert_eq!(machine.each.keys().copied().collect::<Vec<u32>>(), [0, 11]);
        assert_eq!(machine.each[&11], Work { busy_us: ticks_us(1), steal_us: ticks_us(2) });
        assert_eq!(parse(""), Machine::default());
    }

    #[test]
    fn a_processor_that_has_just_come_did_nothing_before() {
        let before = parse("cpu 1\ncpu0 10");
        let now = parse("cpu 1\ncpu0 30\ncpu1 500");
        let seen = now.intervals_since(&before, 1000, 500);
        let busy: Vec<(u32, u64)> = seen.iter().map(|each| (each.cpu, each.busy_us)).collect();
        assert_eq!(busy, [(0, ticks_us(20)), (1, 0)]);
        assert_eq!((seen[0].start_ms, seen[0].length_ms), (1000, 500));
    }
}
