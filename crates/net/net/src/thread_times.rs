//! Times that a thread ran, and waited for a processor.

use std::fs::read_to_string;

/// Times of a thread since it began, or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    pub ran_ns: u64,
    /// Time in which the thread was ready to run and had no processor.
    pub waited_ns: u64,
}

impl ThreadTimes {
    /// Times of the calling thread; none: the system does not tell.
    pub fn now() -> Option<Self> {
        Self::parse(&read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    /// Times of a thread of this process, by the system's number for it; none: it has ended, or the system does not tell.
    pub fn of_thread(thread: u32) -> Option<Self> {
        Self::parse(&read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        Some(Self { ran_ns: numbers.next()?, waited_ns: numbers.next()? })
    }

    /// Difference to an earlier reading.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
        }
    }
}

/// The number that the system knows the calling thread by.
pub fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_thread_are_read_if_the_system_tells_them() {
        let times = |ran_ns, waited_ns| ThreadTimes { ran_ns, waited_ns };
        assert_eq!(ThreadTimes::parse("12 34 5\n"), Some(times(12, 34)));
        assert_eq!(ThreadTimes::parse("12\n"), None);
        assert_eq!(ThreadTimes::parse(""), None);
        assert_eq!(times(12, 34).since(times(10, 40)), times(2, 0));
    }

    #[test]
    fn the_calling_thread_is_found_by_its_number() {
        assert_eq!(ThreadTimes::of_thread(this_thread()).is_some(), ThreadTimes::now().is_some());
        assert_eq!(ThreadTimes::of_thread(u32::MAX), None);
    }
}
