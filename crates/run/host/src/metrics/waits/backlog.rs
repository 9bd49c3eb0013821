//! Backlog of a thread after waits for a processor.
//!
//! Work arrives while a thread waits, so what arrives afterwards is delayed too, until the thread has caught up and sleeps. A
//! further wait before that adds to the backlog.

use assay_measurement::waits::Wait;

/// Upper bound on the duration of a backlog, as a multiple of the wait that caused it.
const MAX_BACKLOG_FACTOR: u64 = 20;
/// Upper bound, in nanoseconds, on a wait whose beginning was taken for sleep.
const REMEMBERED_NS: u64 = 500_000_000;

/// Waits of a thread whose backlog may not be worked off.
#[derive(Debug, Default)]
pub struct Backlog {
    pending: Vec<PendingWait>,
    /// Time since which `pending` is unchanged.
    since_ns: u64,
    /// Recently closed waits: end of the backlog, and length of the wait.
    closed: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct PendingWait {
    wait_ns: u64,
    /// Latest time at which the wait can have ended.
    over_ns: u64,
    /// Sleep of the thread since then.
    slept_ns: u64,
}

impl Backlog {
    /// Adds a wait that ended between two instants; reports the backlog before it to `waits`.
    pub fn wait(&mut self, [from_ns, to_ns]: [u64; 2], wait_ns: u64, waits: &mut Vec<Wait>) {
        self.report(from_ns, waits);
        // A sleep that closed a backlog after the beginning of this wait may have been this wait.
        let begun_ns = from_ns.saturating_sub(wait_ns);
        let again = self.closed.extract_if(.., |(until_ns, _)| *until_ns > begun_ns);
        self.pending.extend(again.map(|(_, wait_ns)| PendingWait { wait_ns, over_ns: to_ns, slept_ns: 0 }));
        self.pending.push(PendingWait { wait_ns, over_ns: to_ns, slept_ns: 0 });
        self.since_ns = from_ns;
    }

    /// Adds sleep until `now_ns`, and closes waits after which the thread has slept for `sure_ns` in total.
    pub fn sleep(&mut self, now_ns: u64, slept_ns: u64, sure_ns: u64, waits: &mut Vec<Wait>) {
        self.closed.retain(|(until_ns, _)| until_ns + REMEMBERED_NS > now_ns);
        self.pending.iter_mut().for_each(|pending| pending.slept_ns += slept_ns);
        let is_over = |pending: &PendingWait| {
            pending.slept_ns >= sure_ns || now_ns >= pending.over_ns + MAX_BACKLOG_FACTOR * pending.wait_ns
        };
        if self.pending.iter().any(is_over) {
            self.report(now_ns, waits);
            let over = self.pending.extract_if(.., |pending| is_over(pending));
            self.closed.extend(over.map(|pending| (now_ns, pending.wait_ns)));
        }
    }

    /// Reports the backlog until `now_ns` to `waits`, without closing it.
    pub fn report(&mut self, now_ns: u64, waits: &mut Vec<Wait>) {
        let sum_ns: u64 = self.pending.iter().map(|pending| pending.wait_ns).sum();
        if sum_ns > 0 {
            let to_ns = now_ns.max(self.since_ns);
            waits.push(Wait { from_ns: self.since_ns, to_ns, wait_us: sum_ns.div_ceil(1_000) });
            self.since_ns = to_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn wait(from_ms: u64, to_ms: u64, wait_us: u64) -> Wait {
        Wait { from_ns: from_ms * MS, to_ns: to_ms * MS, wait_us }
    }

    #[test]
    fn a_wait_is_felt_until_the_thread_has_slept() {
        let (mut backlog, mut waits) = (Backlog::default(), Vec::new());
        backlog.wait([10 * MS, 12 * MS], 2 * MS, &mut waits);
        backlog.sleep(14 * MS, MS, 3 * MS, &mut waits);
        assert_eq!(waits, [], "it may not have slept at all");
        backlog.sleep(16 * MS, 2 * MS, 3 * MS, &mut waits);
        assert_eq!(waits, [wait(10, 16, 2_000)]);
        backlog.sleep(18 * MS, 2 * MS, 3 * MS, &mut waits);
        assert_eq!(waits.len(), 1);
    }

    #[test]
    fn waits_without_sleep_in_between_add_up_and_each_ends_by_itself() {
        let (mut backlog, mut waits) = (Backlog::default(), Vec::new());
        backlog.wait([10 * MS, 12 * MS], 2 * MS, &mut waits);
        backlog.sleep(14 * MS, 2 * MS, 3 * MS, &mut waits);
        backlog.wait([12 * MS, 14 * MS], 3 * MS, &mut waits);
        backlog.sleep(16 * MS, MS, 3 * MS, &mut waits);
        backlog.sleep(18 * MS, 2 * MS, 3 * MS, &mut waits);
        assert_eq!(waits, [wait(10, 12, 2_000), wait(12, 16, 5_000), wait(16, 18, 3_000)]);
    }

    #[test]
    fn what_seemed_to_be_sleep_may_have_been_the_beginning_of_the_next_wait() {
        let (mut backlog, mut waits) = (Backlog::default(), Vec::new());
        backlog.wait([10 * MS, 12 * MS], 2 * MS, &mut waits);
        backlog.sleep(16 * MS, 4 * MS, 3 * MS, &mut waits);
        backlog.wait([18 * MS, 20 * MS], 5 * MS, &mut waits);
        backlog.sleep(30 * MS, 4 * MS, 3 * MS, &mut waits);
        assert_eq!(waits, [wait(10, 16, 2_000), wait(18, 30, 7_000)]);
        backlog.wait([40 * MS, 42 * MS], MS, &mut waits);
        backlog.sleep(50 * MS, 4 * MS, 3 * MS, &mut waits);
        assert_eq!(waits[2], wait(40, 50, 1_000), "it slept long before that");
    }

    #[test]
    fn a_thread_that_never_sleeps_has_caught_up_after_twenty_times_the_wait() {
        let (mut backlog, mut waits) = (Backlog::default(), Vec::new());
        backlog.wait([10 * MS, 12 * MS], MS, &mut waits);
        backlog.sleep(30 * MS, 0, 3 * MS, &mut waits);
        assert_eq!(waits, []);
        backlog.report(30 * MS, &mut waits);
        backlog.sleep(32 * MS, 0, 3 * MS, &mut waits);
        assert_eq!(waits, [wait(10, 30, 1_000), wait(30, 32, 1_000)]);
    }
}
