//! For how long the waits of a thread can be felt by what arrives for it.
//!
//! A thread that has waited has more to do than it would have: what arrives then is kept waiting too, until the thread has nothing
//! left to do and sleeps. A wait that comes before that adds to the one that can still be felt.

use assay_measurement::waits::Wait;

/// A wait can be felt for so many times its length at most, however much the thread has to do.
const LONGEST: u64 = 20;
/// What was taken for sleep can turn out to have been a wait of this length at most, in nanoseconds.
const REMEMBERED_NS: u64 = 500_000_000;

/// The waits of one thread that can be felt.
#[derive(Debug, Default)]
pub struct Felt {
    open: Vec<Open>,
    /// From when on these can be felt, all together.
    since_ns: u64,
    /// Until when a wait of such a length could be felt, a short time ago.
    closed: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    wait_ns: u64,
    /// When it was over, at the latest.
    over_ns: u64,
    /// For how long the thread has slept since.
    slept_ns: u64,
}

impl Felt {
    /// The thread has waited for so long; that was over at an instant between these two. What could be felt before goes to
    /// `waits`.
    pub fn wait(&mut self, [from_ns, to_ns]: [u64; 2], wait_ns: u64, waits: &mut Vec<Wait>) {
        self.report(from_ns, waits);
        // What seemed to be sleep then may have been this wait.
        let begun_ns = from_ns.saturating_sub(wait_ns);
        let again = self.closed.extract_if(.., |(until_ns, _)| *until_ns > begun_ns);
        self.open.extend(again.map(|(_, wait_ns)| Open { wait_ns, over_ns: to_ns, slept_ns: 0 }));
        self.open.push(Open { wait_ns, over_ns: to_ns, slept_ns: 0 });
        self.since_ns = from_ns;
    }

    /// The thread has slept for so long until `now_ns`, after all waits so far. Those after which it has slept for `sure_ns`
    /// altogether are not felt any more.
    pub fn sleep(&mut self, now_ns: u64, slept_ns: u64, sure_ns: u64, waits: &mut Vec<Wait>) {
        self.closed.retain(|(until_ns, _)| until_ns + REMEMBERED_NS > now_ns);
        self.open.iter_mut().for_each(|open| open.slept_ns += slept_ns);
        let is_over =
            |open: &Open| open.slept_ns >= sure_ns || now_ns >= open.over_ns + LONGEST * open.wait_ns;
        if self.open.iter().any(is_over) {
            self.report(now_ns, waits);
            let over = self.open.extract_if(.., |open| is_over(open));
            self.closed.extend(over.map(|open| (now_ns, open.wait_ns)));
        }
    }

    /// What can be felt until now goes to `waits`; it may go on being felt.
    pub fn report(&mut self, now_ns: u64, waits: &mut Vec<Wait>) {
        let sum_ns: u64 = self.open.iter().map(|open| open.wait_ns).sum();
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
        let (mut felt, mut waits) = (Felt::default(), Vec::new());
        felt.wait([10 * MS, 12 * MS], 2 * MS, &mut waits);
        felt.sleep(14 * MS, MS, 3 * MS, &mut waits);
        assert_eq!(waits, [], "it may not have slept at all");
        felt.sleep(16 * MS, 2 * MS, 3 * MS, &mut waits);
        assert_eq!(waits, [wait(10, 16, 2_000)]);
        felt.sleep(18 * MS, 2 * MS, 3 * MS, &mut waits);
        assert_eq!(waits.len(), 1);
    }

    #[test]
    fn waits_without_sleep_in_between_add_up_and_each_ends_by_itself() {
        let (mut felt, mut waits) = (Felt::default(), Vec::new());
        felt.wait([10 * MS, 12 * MS], 2 * MS, &mut waits);
        felt.sleep(14 * MS, 2 * MS, 3 * MS, &mut waits);
        felt.wait([12 * MS, 14 * MS], 3 * MS, &mut waits);
        felt.sleep(16 * MS, MS, 3 * MS, &mut waits);
        felt.sleep(18 * MS, 2 * MS, 3 * MS, &mut waits);
        assert_eq!(waits, [wait(10, 12, 2_000), wait(12, 16, 5_000), wait(16, 18, 3_000)]);
    }

    #[test]
    fn what_seemed_to_be_sleep_may_have_been_the_beginning_of_the_next_wait() {
        let (mut felt, mut waits) = (Felt::default(), Vec::new());
        felt.wait([10 * MS, 12 * MS], 2 * MS, &mut waits);
        felt.sleep(16 * MS, 4 * MS, 3 * MS, &mut waits);
        felt.wait([18 * MS, 20 * MS], 5 * MS, &mut waits);
        felt.sleep(30 * MS, 4 * MS, 3 * MS, &mut waits);
        assert_eq!(waits, [wait(10, 16, 2_000), wait(18, 30, 7_000)]);
        felt.wait([40 * MS, 42 * MS], MS, &mut waits);
        felt.sleep(50 * MS, 4 * MS, 3 * MS, &mut waits);
        assert_eq!(waits[2], wait(40, 50, 1_000), "it slept long before that");
    }

    #[test]
    fn a_thread_that_never_sleeps_has_caught_up_after_twenty_times_the_wait() {
        let (mut felt, mut waits) = (Felt::default(), Vec::new());
        felt.wait([10 * MS, 12 * MS], MS, &mut waits);
        felt.sleep(30 * MS, 0, 3 * MS, &mut waits);
        assert_eq!(waits, []);
        felt.report(30 * MS, &mut waits);
        felt.sleep(32 * MS, 0, 3 * MS, &mut waits);
        assert_eq!(waits, [wait(10, 30, 1_000), wait(30, 32, 1_000)]);
    }
}
