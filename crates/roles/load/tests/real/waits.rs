//! Times are joined with the waits of the target, as the parent reports them.

use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_measurement::own_error::DISTURBED_US;
use assay_measurement::waits::{Wait, WaitReport};

use crate::harness::{Reported, simple};
use crate::server::run;

/// A run that knows the waits of the minute that it lies in: those that `from_s` and `to_s` are the bounds of, in seconds from
/// now.
fn run_with(waits: &[(u64, u64)]) -> Reported {
    let now_ns = monotonic_ns();
    let wait = |&(from_s, to_s)| Wait {
        from_ns: now_ns + from_s * SECOND_NS,
        to_ns: now_ns + to_s * SECOND_NS,
        wait_us: 1_000_000,
    };
    let report = WaitReport {
        from_ns: now_ns,
        until_ns: now_ns + 60 * SECOND_NS,
        waits: waits.iter().map(wait).collect(),
    };
    run(&simple(), |setting| setting.waits = Some(report))
}

/// Completed requests, those that were joined, those that were disturbed, the least that these took, and what the others took,
/// in microseconds.
fn counted(run: &Reported) -> [u64; 5] {
    let total = run.total();
    let (mut disturbed, mut least_us, mut others_us) = (0, 0, 0);
    for times in run.intervals().flat_map(|interval| interval.times.completed()) {
        disturbed += times.disturbed.service.seen.count();
        least_us += times.disturbed.service.least.sum_us;
        others_us += times.service.sum_us - times.disturbed.service.seen.sum_us;
    }
    [total.completed, total.joined, disturbed, least_us, others_us]
}

#[test]
fn requests_that_can_have_met_a_wait_are_recorded_with_the_least_that_they_took() {
    let [completed, joined, disturbed, least_us, others_us] = counted(&run_with(&[(0, 60)]));
    assert!(disturbed > 0 && joined == completed);
    assert_eq!(least_us, 0, "all of their time may have been the wait");
    assert!(others_us <= DISTURBED_US * (completed - disturbed), "too short to be disturbed: {others_us} µs");
}

#[test]
fn requests_that_met_none_keep_their_times() {
    let quiet = counted(&run_with(&[(59, 60)]));
    assert!(quiet[0] > 0 && quiet[1] == quiet[0]);
    // Assay itself may have delayed some, and what that leaves is not nothing.
    assert!(quiet[2] == 0 || quiet[3] > 0, "{quiet:?}");
    let unwatched = counted(&run(&simple(), |_| ()));
    assert_eq!(unwatched[1], 0);
}
