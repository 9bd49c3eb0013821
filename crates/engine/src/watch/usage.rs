//! What has a thread had of the processors, and for how long did it wait for one?

use std::fs::File;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::SECOND_NS;

/// What the calling thread is known by as long as it lives; opened, it stays the same thread's.
const SCHEDSTAT: &str = "/proc/thread-self/schedstat";

/// What a thread has used since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time.
    pub cpu_ns: u64,
    /// Time it was ready to run and had no processor. 0 where the kernel does not count it.
    pub run_delay_ns: u64,
    /// Times it was put on a processor.
    pub slices: u64,
}

impl Usage {
    /// What was used since an earlier reading.
    pub fn since(&self, before: &Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(before.run_delay_ns),
            slices: self.slices.saturating_sub(before.slices),
        }
    }
}

/// Reads a thread's [`Usage`], in two system calls.
#[derive(Debug)]
pub struct UsageMeter {
    schedstat: Option<File>,
}

impl UsageMeter {
    /// Only the thread that makes it may read it.
    pub fn of_this_thread() -> Self {
        Self { schedstat: File::open(SCHEDSTAT).ok() }
    }

    /// The calling thread's usage up to now.
    pub fn read(&mut self) -> Usage {
        // The clock is up to the moment; what schedstat says of the same is as old as the last tick of the scheduler.
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu_ns = cpu.tv_sec as u64 * SECOND_NS + cpu.tv_nsec as u64;
        let (run_delay_ns, slices) = self.schedstat().unwrap_or_default();
        Usage { cpu_ns, run_delay_ns, slices }
    }

    fn schedstat(&self) -> Option<(u64, u64)> {
        let mut text = [0; 96];
        let length = rustix::io::pread(self.schedstat.as_ref()?, &mut text, 0).ok()?;
        parse(&text[..length])
    }
}

/// Run delay and slices from `cpu delay slices\n`, read from its end: the first number is the longest, and not needed.
fn parse(text: &[u8]) -> Option<(u64, u64)> {
    let mut rest = text.strip_suffix(b"\n")?;
    let slices = last_number(&mut rest)?;
    let run_delay_ns = last_number(&mut rest)?;
    Some((run_delay_ns, slices))
}

/// Takes the last number and the space before it off a text.
fn last_number(text: &mut &[u8]) -> Option<u64> {
    let (mut number, mut unit) = (0u64, Some(1u64));
    while let Some((&last, rest)) = text.split_last() {
        *text = rest;
        if last == b' ' {
            return Some(number);
        }
        let digit = u64::from(last.checked_sub(b'0').filter(|&digit| digit <= 9)?);
        number = number.checked_add(digit.checked_mul(unit?)?)?;
        unit = unit.and_then(|unit| unit.checked_mul(10));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_and_the_third_number_are_read() {
        assert_eq!(parse(b"123 456 7\n"), Some((456, 7)));
        let most = format!("1 {} {}\n", u64::MAX, u64::MAX);
        assert_eq!(parse(most.as_bytes()), Some((u64::MAX, u64::MAX)));
        for bad in ["", "1", "1 2", "1 2\n", "1 x 3\n", "1 2 -3\n", "1 99999999999999999999 3\n"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_thread_that_works_has_used_its_processor() {
        let mut meter = UsageMeter::of_this_thread();
        let before = meter.read();
        let mut used = Usage::default();
        while used.cpu_ns < 2_000_000 {
            used = meter.read().since(&before);
        }
        assert!(meter.read().slices >= before.slices);
    }
}
