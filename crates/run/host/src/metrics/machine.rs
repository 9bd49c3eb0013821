//! Processors and memory of the machine as a whole, with stolen time.

use std::collections::BTreeMap;

use assay_measurement::health::ProcessorInterval;
use assay_measurement::machine::MachineInterval;

use super::proc_file::{ProcFile, ReadBuffer, read};
use super::processes::ticks_us;

/// Counters of the machine since boot, and its levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineCounters {
    pub all: CpuTicks,
    /// Processors by number.
    pub each: BTreeMap<u32, CpuTicks>,
    pub memory: MemoryLevels,
    context_switches: u64,
    interrupts: u64,
    forks: u64,
    running: u64,
    blocked: u64,
}

/// Time of a processor in clock ticks: user, nice, system, idle, iowait, irq, softirq, steal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks([u64; 8]);

impl CpuTicks {
    pub fn since(self, before: CpuTicks) -> CpuTicks {
        CpuTicks(std::array::from_fn(|at| self.0[at].saturating_sub(before.0[at])))
    }

    fn us<const N: usize>(self, parts: [usize; N]) -> u64 {
        ticks_us(parts.iter().map(|at| self.0[*at]).sum())
    }

    /// User, system and interrupt time.
    pub fn busy_us(self) -> u64 {
        self.us([0, 1, 2, 5, 6])
    }

    pub fn user_us(self) -> u64 {
        self.us([0, 1])
    }

    /// System and interrupt time.
    pub fn kernel_us(self) -> u64 {
        self.us([2, 5, 6])
    }

    /// Time stolen by the hypervisor.
    pub fn steal_us(self) -> u64 {
        self.us([7])
    }
}

/// Memory of the machine, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryLevels {
    /// Memory that is not available.
    pub used: u64,
    /// Page cache and buffers.
    pub cached: u64,
    dirty: u64,
    writeback: u64,
    swapped: u64,
}

/// Open files with the counters.
#[derive(Debug)]
pub struct MachineFiles {
    stat: Option<ProcFile>,
    memory: Option<ProcFile>,
}

impl MachineFiles {
    pub fn open() -> Self {
        Self { stat: ProcFile::open("/proc/stat"), memory: ProcFile::open("/proc/meminfo") }
    }

    /// Reads the counters; missing ones are 0.
    pub fn now(&self, buffer: &mut ReadBuffer) -> MachineCounters {
        let mut machine =
            read(self.stat.as_ref(), buffer).map_or_else(MachineCounters::default, |text| parse(&text));
        machine.memory =
            read(self.memory.as_ref(), buffer).map_or_else(MemoryLevels::default, |text| parse_memory(&text));
        machine
    }
}

impl MachineCounters {
    /// Activity of each processor since an earlier reading.
    pub fn processors_since(
        &self,
        before: &MachineCounters,
        start_ms: u64,
        length_ms: u64,
    ) -> Vec<ProcessorInterval> {
        let interval = |(&cpu, ticks): (&u32, &CpuTicks)| {
            let ticks = ticks.since(before.each.get(&cpu).copied().unwrap_or(*ticks));
            ProcessorInterval {
                start_ms,
                length_ms,
                cpu,
                busy_us: ticks.busy_us(),
                steal_us: ticks.steal_us(),
                user_us: ticks.user_us(),
                system_us: ticks.us([2]),
                irq_us: ticks.us([5]),
                softirq_us: ticks.us([6]),
                iowait_us: ticks.us([4]),
                idle_us: ticks.us([3]),
            }
        };
        self.each.iter().map(interval).collect()
    }

    /// Activity of the machine as a whole since an earlier reading.
    pub fn interval_since(&self, before: &MachineCounters, start_ms: u64, length_ms: u64) -> MachineInterval {
        MachineInterval {
            start_ms,
            length_ms,
            context_switches: self.context_switches.saturating_sub(before.context_switches),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            forks: self.forks.saturating_sub(before.forks),
            running: self.running,
            blocked: self.blocked,
            used_bytes: self.memory.used,
            cached_bytes: self.memory.cached,
            dirty_bytes: self.memory.dirty,
            writeback_bytes: self.memory.writeback,
            swapped_bytes: self.memory.swapped,
            // The caller knows what measuring cost.
            metering_us: 0,
        }
    }
}

fn parse(stat: &str) -> MachineCounters {
    let mut machine = MachineCounters::default();
    for line in stat.lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        let mut numbers = rest.split_whitespace().map_while(|number| number.parse().ok());
        if let Some(cpu) = name.strip_prefix("cpu") {
            let ticks = CpuTicks(std::array::from_fn(|_| numbers.next().unwrap_or(0)));
            match cpu.parse() {
                Ok(cpu) => drop(machine.each.insert(cpu, ticks)),
                Err(_) => machine.all = ticks,
            }
            continue;
        }
        let place = match name {
            "ctxt" => &mut machine.context_switches,
            // The first number is the sum of the others.
            "intr" => &mut machine.interrupts,
            "processes" => &mut machine.forks,
            "procs_running" => &mut machine.running,
            "procs_blocked" => &mut machine.blocked,
            _ => continue,
        };
        *place = numbers.next().unwrap_or(0);
    }
    machine
}

fn parse_memory(text: &str) -> MemoryLevels {
    let bytes = |name| super::meminfo(text, name).unwrap_or(0);
    MemoryLevels {
        used: bytes("MemTotal").saturating_sub(bytes("MemAvailable")),
        cached: bytes("Cached") + bytes("Buffers"),
        dirty: bytes("Dirty"),
        writeback: bytes("Writeback"),
        swapped: bytes("SwapTotal").saturating_sub(bytes("SwapFree")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_one_by_one_and_together() {
        let machine = parse(
            "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1\ncpu11 0 0 0 0 0 0 1 2 0 0\nintr 7 8\nctxt 99\nprocesses 5\n",
        );
        assert_eq!((machine.all.busy_us(), machine.all.steal_us()), (ticks_us(19), ticks_us(8)));
        assert_eq!(machine.all.user_us() + machine.all.kernel_us(), machine.all.busy_us());
        assert_eq!(machine.each.keys().copied().collect::<Vec<u32>>(), [0, 11]);
        assert_eq!((machine.each[&11].busy_us(), machine.each[&11].steal_us()), (ticks_us(1), ticks_us(2)));
        assert_eq!((machine.interrupts, machine.context_switches, machine.forks), (7, 99, 5));
        assert_eq!(parse(""), MachineCounters::default());
    }

    #[test]
    fn a_processor_that_has_just_come_did_nothing_before() {
        let before = parse("cpu 1\ncpu0 10");
        let now = parse("cpu 1\ncpu0 30 0 0 7 5\ncpu1 500");
        let seen = now.processors_since(&before, 1000, 500);
        let busy: Vec<(u32, u64)> = seen.iter().map(|each| (each.cpu, each.busy_us)).collect();
        assert_eq!(busy, [(0, ticks_us(20)), (1, 0)]);
        assert_eq!((seen[0].start_ms, seen[0].length_ms), (1000, 500));
        assert_eq!((seen[0].idle_us, seen[0].iowait_us), (ticks_us(7), ticks_us(5)));
    }

    #[test]
    fn page_cache_is_more_than_one_line() {
        let text = "MemTotal: 100 kB\nMemAvailable: 30 kB\nBuffers: 2 kB\nCached: 5 kB\nSwapCached: 9 kB\n\
                    SwapTotal: 10 kB\nSwapFree: 4 kB\nDirty: 1 kB\nWriteback: 3 kB\n";
        let memory = parse_memory(text);
        assert_eq!((memory.used, memory.cached, memory.swapped), (70 << 10, 7 << 10, 6 << 10));
        assert_eq!((memory.dirty, memory.writeback), (1 << 10, 3 << 10));
    }
}
