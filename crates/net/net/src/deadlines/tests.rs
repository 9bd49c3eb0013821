//! Who is late, who makes room, and what is counted, at instants that the tests choose.

use std::task::{Context, Waker};

use super::*;

/// Looks at these ticks, the first to the last.
fn ticks(watch: &Deadlines, first: u64, last: u64) {
    (first..=last).for_each(|tick| {
        watch.tick(tick * TICK_NS);
    });
}

#[test]
fn who_is_late_is_told_and_others_are_not() {
    let watch = Rc::new(Deadlines::new(0));
    let (first, second) = (watch.register(), watch.register());
    let mut cx = Context::from_waker(Waker::noop());
    first.set(Duration::from_millis(100));
    second.set(Duration::from_secs(100));
    assert!(first.check(&mut cx).is_ok());
    watch.tick(100_000_000);
    assert!(first.check(&mut cx).is_ok(), "a tick is allowed for");
    watch.tick(150_000_000);
    assert!(first.check(&mut cx).is_err() && second.check(&mut cx).is_ok());
    first.set(Duration::from_secs(1));
    assert!(first.check(&mut cx).is_ok(), "a new deadline");
}

#[test]
fn time_in_which_nobody_looked_counts_against_nobody() {
    let watch = Rc::new(Deadlines::new(0));
    let deadline = watch.register();
    let mut cx = Context::from_waker(Waker::noop());
    deadline.set(Duration::from_millis(300));
    watch.tick(10_000_000_000);
    assert!(deadline.check(&mut cx).is_ok());
    watch.tick(10_100_000_000);
    watch.tick(10_200_000_000);
    assert!(deadline.check(&mut cx).is_ok());
    watch.tick(10_300_000_000);
    assert!(deadline.check(&mut cx).is_err());
}

#[test]
fn who_waits_for_long_is_reminded_once_and_is_not_late() {
    let watch = Rc::new(Deadlines::new(0));
    let deadline = watch.register();
    let mut cx = Context::from_waker(Waker::noop());
    deadline.set(Duration::from_secs(60));
    deadline.remind();
    for (tick, expected) in [(1, false), (2, true), (3, false)] {
        assert!(deadline.check(&mut cx).is_ok());
        watch.tick(tick * TICK_NS);
        let is_woken = deadline.waiter.waker.borrow().is_none();
        assert_eq!((is_woken, deadline.is_reminded()), (expected, tick > 1), "after tick {tick}");
    }
}

#[test]
fn leaving_keeps_the_places_of_the_others() {
    let watch = Rc::new(Deadlines::new(0));
    let mut all: Vec<Deadline> = (0..5).map(|_| watch.register()).collect();
    all.remove(1);
    all.remove(0);
    all[2].set_wait_reason(WaitReason::Request);
    watch.close_idle();
    let mut cx = Context::from_waker(Waker::noop());
    let late: Vec<bool> = all.iter().map(|one| one.check(&mut cx).is_err()).collect();
    assert_eq!(late, [false, false, true]);
    let entered = [watch.register(), watch.register()];
    assert!(entered.iter().all(|one| one.check(&mut cx).is_ok()), "another's place is a new one's");
    drop((all, entered));
    assert_eq!((watch.free.borrow().len(), watch.all.borrow().len()), (5, 5));
}

/// So many that wait for heads and are all late once two ticks have passed.
fn waiting_for_heads(watch: &Rc<Deadlines>, count: usize) -> Vec<Deadline> {
    let all: Vec<Deadline> = (0..count).map(|_| watch.register()).collect();
    all.iter().for_each(|one| one.set(Duration::from_millis(10)));
    all.iter().for_each(|one| one.set_wait_reason(WaitReason::Head));
    all
}

#[test]
fn many_that_are_late_together_are_ended_a_few_at_a_time() {
    let watch = Rc::new(Deadlines::new(0));
    let all = waiting_for_heads(&watch, 131);
    let mut cx = Context::from_waker(Waker::noop());
    let mut late = || all.iter().filter(|one| one.check(&mut cx).is_err()).count();
    assert_eq!(watch.tick(TICK_NS), TICK_NS, "nobody is late before 60 ms");
    let mut now_ns = 2 * TICK_NS;
    for ended in [3, 5, 7, 9] {
        assert_eq!((watch.tick(now_ns), late()), (SHORT_TICK_NS, ended));
        now_ns += SHORT_TICK_NS;
    }
    let looks = (0..1000).take_while(|_| watch.tick(now_ns) == SHORT_TICK_NS).count();
    assert_eq!((looks, late(), watch.counts().slow), (92, 131, 131));
}

#[test]
fn however_many_are_late_no_more_than_four_end_at_once() {
    let watch = Rc::new(Deadlines::new(0));
    let all = waiting_for_heads(&watch, 10_000);
    watch.tick(TICK_NS);
    watch.tick(2 * TICK_NS);
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(all.iter().filter(|one| one.check(&mut cx).is_err()).count(), 4);
}

#[test]
fn those_that_make_room_are_the_longest_waiting_however_many_there_are_and_whatever_others_do_meanwhile() {
    let watch = Rc::new(Deadlines::new(0));
    let mut all = Vec::new();
    for tick in 1..=300 {
        let one = watch.register();
        one.set(Duration::from_secs(100));
        one.set_wait_reason(WaitReason::Head);
        all.push(one);
        watch.tick(tick * TICK_NS);
    }
    let mut longest = LongestWaits::default();
    let mut cx = Context::from_waker(Waker::noop());
    let mut ended = Vec::new();
    let second = Duration::from_secs(1);
    for round in 0..200 {
        assert!(longest.dismiss(&watch, second, |_| true));
        let late = |number: &usize| all[*number].check(&mut cx).is_err();
        let own: Vec<usize> = (0..all.len()).filter(late).filter(|number| !ended.contains(number)).collect();
        ended.extend(&own);
        assert_eq!(own.len(), 1);
        // Of those that were found together, every fifth goes on with something else.
        let next = all.get(own[0] + 2).filter(|_| round % 5 == 0);
        next.inspect(|one| one.set_wait_reason(WaitReason::Other));
    }
    assert!(ended.is_sorted(), "{ended:?}");
    let passed_over = (ended[0]..ended[199]).filter(|number| !ended.contains(number)).count();
    assert_eq!(passed_over, 40);
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn who_sends_a_byte_now_and_then_is_as_late_as_who_sends_none() {
    let watch = Rc::new(Deadlines::new(0));
    let all: Vec<Deadline> = (0..3).map(|_| watch.register()).collect();
    all.iter().for_each(|one| one.set_min_rate(100));
    let mut cx = Context::from_waker(Waker::noop());
    let mut late_s = [0; 3];
    for second in 0..60 {
        // For nine tenths of each second they are waited for, and for the rest their server is.
        all.iter().for_each(|one| one.await_peer(Duration::from_secs(10)));
        for step in 1..=18 {
            watch.tick(second * SECOND + step * TICK_NS);
        }
        for ((one, bytes), late_s) in all.iter().zip([0, 1, 100]).zip(&mut late_s) {
            if one.check(&mut cx).is_err() && *late_s == 0 {
                *late_s = second;
            }
            one.credit(bytes);
            one.set(Duration::from_secs(100));
        }
        for step in 19..=20 {
            watch.tick(second * SECOND + step * TICK_NS);
        }
    }
    assert_eq!(late_s, [11, 11, 0], "the last owes nothing");
    assert!(watch.counts().slow > 0);
}

#[test]
fn a_client_does_not_owe_the_time_in_which_nobody_looked() {
    let watch = Rc::new(Deadlines::new(0));
    let client = watch.register();
    client.set_min_rate(100);
    client.await_peer(Duration::from_secs(10));
    watch.tick(60 * SECOND);
    client.credit(0);
    client.await_peer(Duration::from_secs(10));
    let mut cx = Context::from_waker(Waker::noop());
    for step in 1..=190 {
        watch.tick(60 * SECOND + step * TICK_NS);
    }
    assert!(client.check(&mut cx).is_ok(), "it has kept a server waiting for 9.5 s");
    for step in 191..=202 {
        watch.tick(60 * SECOND + step * TICK_NS);
    }
    assert!(client.check(&mut cx).is_err());
}

#[test]
fn those_that_have_waited_longest_make_room_and_nobody_who_has_just_begun() {
    let watch = Rc::new(Deadlines::new(0));
    let all: Vec<Deadline> = (0..6).map(|_| watch.register()).collect();
    all.iter().for_each(|one| one.set_min_rate(100));
    let mut cx = Context::from_waker(Waker::noop());
    for (second, one) in all.iter().enumerate() {
        for step in 1..=20 {
            watch.tick(second as u64 * SECOND + step * TICK_NS);
        }
        one.set(Duration::from_secs(100));
        match second {
            0 => one.set_wait_reason(WaitReason::Other),
            1 => one.set_wait_reason(WaitReason::Request),
            2 => one.set_wait_reason(WaitReason::Head),
            _ => {
                one.hold_slot(second as u32);
                one.await_peer(Duration::from_secs(100));
            }
        }
    }
    let mut late = || all.iter().map(|one| u8::from(one.check(&mut cx).is_err())).collect::<Vec<u8>>();
    let second = Duration::from_secs(1);
    let mut of_server = LongestWaits::default();
    let mut dismiss =
        || of_server.dismiss(&watch, second, |wait| wait.reason == WaitReason::Peer && wait.held_slot == 4);
    assert_eq!([dismiss(), dismiss()], [true, false]);
    assert_eq!(late(), [0, 0, 0, 0, 1, 0]);
    let mut of_all = LongestWaits::default();
    let mut dismiss = || of_all.dismiss(&watch, second, |_| true);
    assert_eq!([dismiss(), dismiss()], [true; 2]);
    assert_eq!(late(), [0, 1, 1, 0, 1, 0]);
    assert_eq!(
        [dismiss(), dismiss()],
        [true, false],
        "the last has begun just now, and the first waits for no peer"
    );
    assert_eq!(late(), [0, 1, 1, 1, 1, 0]);
    assert_eq!(watch.counts(), DeadlineCounts { slow: 0, dismissed: 4 });
}

#[test]
fn late_heads_and_bodies_are_counted_and_idle_connections_are_not() {
    let watch = Rc::new(Deadlines::new(0));
    let all: Vec<Deadline> = (0..4).map(|_| watch.register()).collect();
    all.iter().for_each(|one| one.set_min_rate(100));
    all.iter().for_each(|one| one.set(Duration::from_millis(100)));
    all[0].set_wait_reason(WaitReason::Request);
    all[1].set_wait_reason(WaitReason::Head);
    all[2].await_peer(Duration::from_millis(100));
    for tick in 1..9 {
        watch.tick(tick * TICK_NS);
    }
    assert_eq!(watch.counts(), DeadlineCounts { slow: 2, dismissed: 0 });
}

#[test]
fn a_byte_at_the_instant_at_which_a_client_is_late_does_not_make_it_late_twice() {
    let watch = Rc::new(Deadlines::new(0));
    let client = watch.register();
    client.set_min_rate(100);
    client.await_peer(Duration::from_millis(100));
    ticks(&watch, 1, 3);
    assert_eq!(watch.counts().slow, 1);
    client.credit(1);
    client.await_peer(Duration::from_millis(100));
    ticks(&watch, 4, 6);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(client.check(&mut cx).is_err());
    assert_eq!(watch.counts().slow, 1);
    client.clear_debt();
    client.await_peer(Duration::from_millis(100));
    ticks(&watch, 7, 12);
    assert_eq!(watch.counts().slow, 2, "with another request");
}

#[test]
fn who_does_not_close_has_its_own_time_for_it_and_is_not_counted() {
    let watch = Rc::new(Deadlines::new(0));
    let client = watch.register();
    client.set_min_rate(100);
    client.await_peer(Duration::from_secs(1));
    ticks(&watch, 1, 21);
    client.set_closing();
    client.await_peer(Duration::from_secs(1));
    let mut cx = Context::from_waker(Waker::noop());
    for (until, is_late) in [(41, false), (43, true)] {
        ticks(&watch, 22, until);
        assert_eq!(client.check(&mut cx).is_err(), is_late, "{until} ticks");
    }
    assert_eq!(watch.counts(), DeadlineCounts { slow: 1, dismissed: 0 });
}
