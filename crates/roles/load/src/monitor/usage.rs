//! Processor time of a thread, and the time for which it waited for a processor.

use std::fs::File;

use assay_base::clock::thread_cpu_ns;

/// File of the calling thread; opened, it stays the same thread's.
const SCHEDSTAT: &str = "/proc/thread-self/schedstat";

/// Processor time and waits of a thread since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedulerUsage {
    pub cpu_ns: u64,
    /// Time it was ready to run and had no processor. 0 where the kernel does not count it.
    pub run_delay_ns: u64,
    /// Times it was put on a processor.
    pub slices: u64,
}

impl SchedulerUsage {
    /// Usage since an earlier reading.
    pub fn since(&self, before: &SchedulerUsage) -> SchedulerUsage {
        SchedulerUsage {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(before.run_delay_ns),
            slices: self.slices.saturating_sub(before.slices),
        }
    }
}

/// Reads a thread's [`SchedulerUsage`], in two system calls.
#[derive(Debug)]
pub struct SchedulerUsageMeter {
    schedstat: Option<File>,
}

impl SchedulerUsageMeter {
    /// Only the thread that makes it may read it.
    pub fn of_this_thread() -> Self {
        Self { schedstat: File::open(SCHEDSTAT).ok() }
    }

    /// The calling thread's usage up to now.
    pub fn read(&mut self) -> SchedulerUsage {
        // The clock is up to the moment; what schedstat says of the same is as old as the last tick of the scheduler.
        let cpu_ns = thread_cpu_ns();
        let (run_delay_ns, slices) = self.schedstat().unwrap_or_default();
        SchedulerUsage { cpu_ns, run_delay_ns, slices }
    }

    fn schedstat(&self) -> Option<(u64, u64)> {
        let mut text = [0; 96];
        let length = rustix::io::pread(self.schedstat.as_ref()?, &mut text, 0).ok()?;
        parse(&text[..length])
    }
}

/// Run delay and slices from `cpu delay slices\n`, with no more work than it takes: nobody but the kernel writes that.
fn parse(text: &[u8]) -> Option<(u64, u64)> {
    let mut rest = text.strip_suffix(b"\n")?.iter();
    rest.find(|byte| **byte == b' ')?;
    let mut run_delay_ns = 0u64;
    for &byte in rest.by_ref().take_while(|byte| **byte != b' ') {
        run_delay_ns = run_delay_ns.wrapping_mul(10).wrapping_add(u64::from(byte.wrapping_sub(b'0')));
    }
    let slices = rest
        .fold(0u64, |slices, &byte| slices.wrapping_mul(10).wrapping_add(u64::from(byte.wrapping_sub(b'0'))));
    Some((run_delay_ns, slices))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_and_the_third_number_are_read() {
        assert_eq!(parse(b"123 456 7\n"), Some((456, 7)));
        for bad in ["", "1\n", "1 2 3"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_thread_that_works_has_used_its_processor() {
        let mut meter = SchedulerUsageMeter::of_this_thread();
        let before = meter.read();
        let mut used = SchedulerUsage::default();
        while used.cpu_ns < 2_000_000 {
            used = meter.read().since(&before);
        }
        assert!(meter.read().slices >= before.slices);
    }
}
