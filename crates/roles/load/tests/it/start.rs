//! What is known of a start before it, and after it.

use assay_base::clock::monotonic_ns;
use assay_measurement::doubt::Reason;
use assay_protocol::clock::RunClock;
use assay_protocol::message::{Command, Event};

use crate::harness::{START_UNIX_S, simple};
use crate::origins::{Both, Origins, play};

#[test]
fn robots_that_are_told_something_before_the_start_wait_for_it() {
    let before = vec![Command::Clock { error_us: u64::MAX }, Command::Load { factor: 1.0 }];
    let both = Both::of(play(&simple(), |setting| setting.before = before));
    // Whatever the clocks show: nothing of an origin's clock is held against a response.
    both.check();
    assert!(both.robots.completed > 0, "{:#?}", both.robots);
}

#[test]
fn origins_that_learn_of_a_start_too_late_say_so() {
    let mut origins = Origins::start(&simple());
    origins.start_at(RunClock { start_ns: monotonic_ns() - 70_000_000, start_unix_s: START_UNIX_S });
    let is_late = |event: &Event| matches!(event, Event::Fault { reason: Reason::Stalled, message } if message.contains("learned of the start"));
    assert!(origins.stop().iter().any(is_late));
}
