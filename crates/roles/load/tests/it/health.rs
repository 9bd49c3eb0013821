//! What workers say of themselves before they are ready, and where they are not to say anything.

use assay_load::spec::Timing;
use assay_measurement::measured::Measured;
use assay_protocol::message::Event;

use crate::harness::simple;
use crate::robot_run::{Options, run};

#[test]
fn a_worker_that_is_not_to_watch_itself_says_nothing() {
    let timing = Timing { unwatched: true, ..Timing::default() };
    let run = run(&simple(), Options { timing, ..Options::default() });
    let of_health = |event: &&Event| {
        matches!(
            event,
            Event::Measured(Measured::Thread(_))
                | Event::Measured(Measured::Stall(_))
                | Event::Measured(Measured::Baseline(_))
        )
    };
    assert_eq!(run.events.iter().find(of_health), None);
}

#[test]
fn a_bare_timer_is_measured_in_every_worker_before_it_is_ready() {
    let timing = Timing { baseline_ms: 30, ..Timing::default() };
    let run = run(&simple(), Options { timing, ..Options::default() });
    let [
        Event::Measured(Measured::Baseline(one)),
        Event::Measured(Measured::Baseline(other)),
        Event::Ready { .. },
        ..,
    ] = &run.events[..]
    else {
        panic!("{:#?}", &run.events[..3])
    };
    let mut threads = [one.thread, other.thread];
    threads.sort_unstable();
    assert_eq!(threads, [0, 1]);
    for baseline in [one, other] {
        assert_eq!((baseline.role.as_str(), baseline.length_ms), ("robots", 30));
        assert!(baseline.lag.buckets.iter().map(|b| b.1).sum::<u64>() > 0);
    }
}
