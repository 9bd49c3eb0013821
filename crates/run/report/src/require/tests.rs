//! Requirements, read, judged and watched.

use assay_measurement::counts::RobotCounts;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::RobotInterval;
use assay_record::run::{PhaseInfo, RunInfo};
use proptest::prelude::*;

use super::*;
use crate::log_agreement::LogAgreement;
use crate::tally::{Span, Tally};

fn read(text: &str) -> Requirement {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    text.parse::<Requirement>().expect_err(text).to_string()
}

fn schedule() -> Vec<PhaseInfo> {
    let phase = |name: &str, log_stats, expected| PhaseInfo {
        name: name.into(),
        log_stats,
        expected_requests: expected,
        ..PhaseInfo::default()
    };
    vec![phase("fill", false, Some(1000.0)), phase("top1", true, Some(1000.0)), phase("top2", true, None)]
}

fn sparse(values_us: impl IntoIterator<Item = u64>) -> SparseHistogram {
    let mut histogram = Histogram::new();
    values_us.into_iter().for_each(|us| histogram.record(us));
    histogram.to_sparse()
}

/// A second in which `hits` of 100 requests were hits of 1 to so many ms, and `errors` failed.
fn second(phase: u16, hits: u64, errors: u64) -> RobotInterval {
    let mut counts = RobotCounts {
        due: 100,
        due_basic: 100,
        sent: 100,
        completed: 100 - errors,
        basic: 100 - errors,
        hits,
        misses: 100 - errors - hits,
        ideal_basic: 100,
        ideal_hits: 50,
        ..RobotCounts::default()
    };
    if errors > 0 {
        counts.errors.insert(ErrorKind::WrongBytes, errors);
    }
    let mut interval = RobotInterval { length_ms: 1000, phase, counts, ..RobotInterval::default() };
    interval.times.hit.response = sparse((1..=hits).map(|ms| ms * 1000));
    interval.times.miss.response = sparse((0..100 - errors - hits).map(|_| 200_000));
    interval
}

fn judged(text: &str, intervals: &[RobotInterval], partial: bool) -> RequirementResult {
    let info = RunInfo { phases: schedule(), requirements: vec![text.into()], ..RunInfo::default() };
    let span = |index: u64| Some(Span { start_ms: index * 1000, end_ms: index * 1000 + 1000 });
    let mut parts: Vec<Tally> = (0..3).map(|index| Tally { span: span(index), ..Tally::default() }).collect();
    parts.push(Tally::default());
    intervals.iter().for_each(|interval| parts[usize::from(interval.phase)].add_robots(interval));
    judge(
        &info,
        &parts,
        Some(Span { start_ms: 0, end_ms: 3000 }),
        Gap { is_partial: partial, ..Gap::default() },
    )
    .remove(0)
}

#[test]
fn everything_in_the_manual_is_a_requirement() {
    for text in [
        "top1.p99(hit) < 5ms",
        "dhr > 0.55",
        "dhr > 55%",
        "errors == 0",
        "errors < 0.1 %",
        "errors(timed_out) <= 3",
        "p99.9 < 1s",
        "service.mean(miss) <= 0.4 s",
        "top1.ttfb.max < 2 min",
        "lateness.p99 < 500us",
        "p99(handshake) < 5ms",
        "handshake.mean < 2ms",
        "p99(completed) < 10s",
        "dhr / ideal >= 0.95",
        "top2 . bhr(offered) > 40%",
        "offload(bytes) > -0.1",
        "rate > 1,000/s",
        "throughput >= 950",
        "run.unsent < 1%",
        "misreported < 0.1%",
        "run.misreported == 0",
        "\"a phase of mine\".requests != 0",
        "p50 = 1ms",
    ] {
        assert_eq!(read(text).text(), text);
    }
}

#[test]
fn hits_that_a_log_calls_misses_fail_a_run_that_requires_none() {
    let judged = |text: &str, log_agreement: Option<LogAgreement>| {
        let info = RunInfo { phases: schedule(), requirements: vec![text.into()], ..RunInfo::default() };
        let parts: Vec<Tally> = (0..4).map(|_| Tally { log_agreement, ..Tally::default() }).collect();
        judge(&info, &parts, None, Gap::default()).remove(0)
    };
    let some = Some(LogAgreement { plain: 200, misreported: 3 });
    let of_run = judged("run.misreported == 0", some);
    assert_eq!((of_run.decision, of_run.seen.as_str()), (Some(Decision::Failed), "12"));
    assert_eq!(judged("run.misreported < 2%", some).seen, "1.5 %");
    assert_eq!(judged("run.misreported < 2%", some).decision, Some(Decision::Held));
    for nothing in [None, Some(LogAgreement::default())] {
        let decision = judged("misreported == 0", nothing).decision;
        assert_eq!(decision, Some(Decision::Failed), "there is nothing to compare with");
    }
}

#[test]
fn what_is_wrong_is_pointed_at_with_what_to_write_instead() {
    for (text, message, help) in [
        ("", "expected a metric", "like `p99(hit) < 5ms`"),
        ("top1.p99(hits) < 5ms", "there is no class of requests `hits`", "did you mean `hit`?"),
        ("p99 < 5", "a time needs its unit", "`5ms`"),
        ("p99 < 5 parsecs", "`parsecs` is no unit of time", "us, ms, s or min"),
        ("dhrr > 1", "there is no metric `dhrr`", "did you mean `dhr`?"),
        ("foo < 5", "there is no metric `foo`", "throughput, errors, unsent, requests, completed"),
        ("foo < 5", "there is no metric `foo`", "`ttfb.p99`: response, service, ttfb, lateness, handshake"),
        ("errors 0", "expected one of < <=", ""),
        ("errors == none", "expected a number", ""),
        ("errors(stalee) == 0", "there is no class of errors `stalee`", "did you mean `stale`?"),
        ("p100 < 1s", "there is no percentile 100", "the longest is `max`"),
        ("top1.servce.p99 < 1s", "`servce` is no kind of time", "did you mean `service`?"),
        ("service < 1s", "`service` is many times", "`service.p99`"),
        ("service.dhr < 1", "`dhr` is no time", ""),
        ("rate > 100ms", "expected requests per second", "`100/s`"),
        ("dhr > 1s", "this has no unit", "in percent"),
        ("p99 < 5%", "this is no share of anything", ""),
        ("p99 / ideal < 5ms", "this cannot be divided so", "dhr / ideal"),
        ("errors == 0; dhr > 1", "this is too much", "one requirement at a time"),
        ("\"top < 1", "a quotation mark is missing", ""),
        ("lateness.p99(hit) < 1ms", "not kept apart", "leave it out"),
        ("p99(with_unsent) < 1s", "there is no class of requests `with_unsent`", "expected all, completed"),
    ] {
        let said = refused(text);
        assert!(said.contains(message) && said.contains(help), "{text}: {said}");
    }
    assert_eq!(
        refused("top1.p99(hits) < 5ms"),
        "there is no class of requests `hits`\n  top1.p99(hits) < 5ms\n           ^^^^\n  help: did you mean `hit`?"
    );
}

#[test]
fn a_limit_out_of_its_range_is_refused_with_the_range_and_what_may_have_been_meant() {
    for (text, range, meant) in [
        ("dhr > 90", "from 0 to 1", "`dhr > 90%` or `dhr > 0.9`"),
        ("top1.dhr>=55", "from 0 to 1", "`top1.dhr>= 55%` or `top1.dhr>= 0.55`"),
        ("bhr > -0.5", "from 0 to 1", "`bhr > 0.5`"),
        ("dhr > 150%", "from 0 % to 100 %", ""),
        ("dhr > 900", "from 0 to 1", ""),
        ("dhr / ideal > 95", "about 1", "`dhr / ideal > 95%` or `dhr / ideal > 0.95`"),
        ("offload > 60", "at most 1", "`offload > 60%` or `offload > 0.6`"),
        ("errors < 101%", "from 0 % to 100 %", ""),
        ("errors < -1", "0 or more", "`errors < 1`"),
        ("unsent < -2 %", "from 0 % to 100 %", "`unsent < 2 %`"),
        ("p99(hit) < -5ms", "a time is 0 or more", "`p99(hit) < 5ms`"),
        ("rate > -100/s", "a rate is 0 or more", "`rate > 100/s`"),
    ] {
        let said = refused(text);
        assert!(said.contains("out of range") && said.contains(range), "{text}: {said}");
        assert_eq!(said.contains("did you mean"), !meant.is_empty(), "{text}: {said}");
        assert!(said.contains(meant), "{text}: {said}");
    }
    for text in [
        "dhr > 1",
        "dhr > 100%",
        "dhr / ideal > 1.05",
        "offload > -0.1",
        "errors <= 0",
        "p99 < 0ms",
        "errors < 150",
    ] {
        assert_eq!(read(text).text(), text);
    }
}

#[test]
fn a_search_has_no_phases() {
    use super::promise::Promise;
    assert!("run.p99 < 5ms".parse::<Promise>().is_ok());
    let error = "errors == 0, top1.p99(hit) < 50ms".parse::<Promise>().unwrap_err();
    assert_eq!(
        (&*error.message, error.help.as_deref()),
        ("a search has no phases", Some("leave `top1.` out"))
    );
}

#[test]
fn a_phase_must_be_in_the_schedule_and_run_is_all_of_it() {
    let names = || ["fill", "top1", "top2"].into_iter();
    assert!(read("top1.dhr > 1").check_phase(names()).is_ok());
    assert!(read("run.dhr > 1").check_phase(names()).is_ok());
    let error = read("topl.dhr > 1").check_phase(names()).unwrap_err();
    assert_eq!((error.span, error.help.as_deref()), ((0, 4), Some("did you mean `top1`?")));
    let error = read("  topl.dhr > 1").check_phase(names()).unwrap_err();
    assert_eq!(
        (error.span, &*error.text),
        ((0, 4), "topl.dhr > 1"),
        "spaces before it do not shift the place"
    );
    let phases = |text: &str| read(text).phases(&schedule());
    assert_eq!(phases("dhr > 1"), [1, 2], "those that belong into the statistics");
    assert_eq!(phases("run.dhr > 1"), [0, 1, 2, 3]);
    assert_eq!(phases("fill.dhr > 1"), [0]);
}

#[test]
fn a_run_is_judged_by_the_phases_that_are_named() {
    let run = [second(0, 0, 7), second(1, 40, 0), second(2, 60, 0)];
    for (text, held, seen) in [
        ("errors == 0", true, "0"),
        ("run.errors == 0", false, "7"),
        ("run.errors < 3%", true, "2.33 %"),
        ("dhr >= 0.5", true, "0.5"),
        ("top1.dhr > 45%", false, "40 %"),
        ("top1.dhr / ideal > 0.75", true, "0.8"),
        ("top1.p50(hit) <= 20.1ms", true, "20.0 ms"),
        ("top1.max(hit) < 39ms", false, "40.0 ms"),
        ("top1.min(hit) >= 0.94ms", true, "1.00 ms"),
        ("p99(miss) > 1s", false, "200 ms"),
        ("rate == 100/s", true, "100/s"),
        ("run.rate < 98", true, "97.7/s"),
        ("unsent == 0", true, "0"),
    ] {
        let judged = judged(text, &run, false);
        assert_eq!((judged.held, judged.seen.as_str()), (Some(held), seen), "{text}");
    }
}

/// A second in which 90 of 100 requests took 1 ms, and 10 were never sent or timed out after 2,759 ms.
fn with_unanswered(phase: u16, timed_out: bool) -> RobotInterval {
    let counts = RobotCounts { due: 100, sent: 90, completed: 90, unsent: 10, ..RobotCounts::default() };
    let mut interval = RobotInterval { length_ms: 1000, phase, counts, ..RobotInterval::default() };
    interval.times.miss.response = sparse((0..90).map(|_| 1000));
    interval.times.miss.service = sparse((0..90).map(|_| 900));
    let waits =
        if timed_out { &mut interval.times.timed_out.response } else { &mut interval.times.unsent_wait };
    *waits = sparse((0..10).map(|_| 2_759_000));
    interval
}

#[test]
fn requests_without_a_response_count_as_long_as_they_waited_and_a_limit_above_that_is_not_shown_to_hold() {
    for timed_out in [false, true] {
        let run = [with_unanswered(1, timed_out)];
        for (text, held, seen, at_least) in [
            // 90 of 100 are known: what the others would have come to changes nothing.
            ("p50 < 2ms", true, "1.00 ms", false),
            ("p90 <= 1ms", true, "1.00 ms", false),
            ("p91 < 2ms", false, "≥ 2.76 s", true),
            // It may be more than 3 s as well.
            ("p99 < 3s", false, "≥ 2.76 s", true),
            ("p99 > 2.7s", true, "≥ 2.76 s", true),
            ("p99 >= 3s", false, "≥ 2.76 s", true),
            ("p99 != 1s", true, "≥ 2.76 s", true),
            ("max < 1min", false, "≥ 2.76 s", true),
            ("mean < 1min", false, "≥ 277 ms", true),
            ("p99(completed) < 2ms", true, "1.00 ms", false),
            ("mean(completed) < 2ms", true, "1.00 ms", false),
            ("p99(miss) < 2ms", true, "1.00 ms", false),
            ("service.p99 < 1ms", true, "900 µs", false),
        ] {
            let judged = judged(text, &run, false);
            assert_eq!(
                (judged.held, judged.seen.as_str(), judged.at_least),
                (Some(held), seen, at_least),
                "{text}, timed out: {timed_out}"
            );
        }
    }
}

#[test]
fn requests_that_assay_kept_from_being_sent_are_not_the_targets() {
    let mut second = with_unanswered(1, false);
    for (least_us, decision) in [(2_759_000, Decision::Failed), (1_000, Decision::Undecided)] {
        second.times.unsent_least = sparse((0..10).map(|_| least_us));
        let judged = judged("p99 < 3s", std::slice::from_ref(&second), false);
        assert_eq!(judged.decision, Some(decision), "{least_us}: {judged:?}");
    }
    // However long it was without Assay, it was longer than that.
    second.times.unsent_least = sparse((0..10).map(|_| 1_000_000));
    assert_eq!(judged("p99 < 0.5s", std::slice::from_ref(&second), false).decision, Some(Decision::Failed));
}

#[test]
fn a_percentile_between_two_known_times_holds_below_both() {
    // 50 of 1 ms, 49 of 5 ms, one that had waited for 2 ms: the median is 1 or 5 ms, whatever it would have come to.
    let mut second = RobotInterval { phase: 1, ..RobotInterval::default() };
    second.counts = RobotCounts { due: 100, completed: 99, unsent: 1, ..RobotCounts::default() };
    second.times.miss.response = sparse((0..49).map(|_| 1000).chain((0..50).map(|_| 5000)));
    second.times.unsent_wait = sparse([1000]);
    let of = |text| judged(text, std::slice::from_ref(&second), false);
    assert_eq!(
        (of("p50 < 6ms").held, of("p50 < 5ms").held, of("p50 > 0.9ms").held),
        (Some(true), Some(false), Some(true))
    );
    assert!(of("p50 < 6ms").at_least);
    assert!(!of("p60 < 6ms").at_least);
}

#[test]
fn a_limit_that_requests_without_a_response_cannot_keep_any_more_has_failed() {
    use RequirementState::{Failed, Failing};
    let run = [with_unanswered(1, true)];
    assert_eq!(watched("max < 1min", &run), [Failed], "what timed out has no longest");
    assert_eq!(watched("mean < 1min", &run), [Failed]);
    // 1,000 requests are expected: so few of them need not reach the 99th percentile.
    assert_eq!(watched("top1.p99 < 3s", &run), [Failing]);
}

#[test]
fn what_was_not_measured_did_not_hold_unless_the_run_ended_early() {
    assert_eq!(judged("p99(hit) < 5ms", &[second(1, 0, 0)], false).held, Some(false));
    let early = judged("top2.p99 < 5ms", &[second(1, 10, 0)], true);
    assert_eq!((early.held, early.seen.as_str(), early.value), (None, "nothing to measure", None));
}

/// How a requirement stands after each of some seconds.
fn watched(text: &str, seconds: &[RobotInterval]) -> Vec<RequirementState> {
    let mut tracker = RequirementTracker::new(&[read(text)], &schedule());
    seconds
        .iter()
        .map(|interval| {
            tracker.phase_began(interval.phase, 0);
            tracker.add_robots(interval);
            tracker.statuses()[0].state
        })
        .collect()
}

#[test]
fn failed_is_said_only_where_nothing_can_change_it() {
    use RequirementState::{Early, Failed, Failing, Holding};
    assert_eq!(
        watched("errors == 0", &[second(0, 9, 1), second(1, 9, 0), second(1, 9, 1)]),
        [Early, Holding, Failed]
    );
    // 1,000 requests are expected: more than 1 % of them (and of what chance may add) must be over.
    let slow = |hits| second(1, hits, 0);
    assert_eq!(watched("top1.p99 < 100ms", &[slow(95), slow(95), slow(90)]), [Failing, Failing, Failed]);
    assert_eq!(watched("top1.p99 < 300ms", &[slow(95)]), [Holding]);
    assert_eq!(watched("p99 < 100ms", &[slow(0), slow(0)]), [Failing, Failing], "top2 may be of any length");
    assert_eq!(watched("max < 100ms", &[slow(0)]), [Failed]);
    assert_eq!(watched("min > 2ms", &[slow(1)]), [Failed]);
    assert_eq!(watched("top1.dhr > 0.9", &[slow(0), slow(0)]), [Failing, Failed]);
    assert_eq!(watched("top1.dhr < 0.9", &[slow(0)]), [Holding]);
    assert_eq!(
        watched("top1.errors < 1%", &[second(1, 0, 5), second(1, 0, 5), second(1, 0, 5)]),
        [Failing, Failing, Failed]
    );
    assert_eq!(watched("top1.mean < 10ms", &[slow(0)]), [Failed], "all others may be as short as they like");
}

#[test]
fn a_phase_that_is_over_is_judged_when_all_its_requests_are_known() {
    let mut tracker =
        RequirementTracker::new(&[read("top1.p99 < 100ms"), read("top1.dhr > 0.9")], &schedule());
    let mut last = second(1, 95, 0);
    last.counts.completed -= 1;
    tracker.phase_began(1, 0);
    tracker.add_robots(&last);
    tracker.phase_ended(1, 1000);
    let states =
        |tracker: &RequirementTracker| tracker.statuses().iter().map(|one| one.state).collect::<Vec<_>>();
    // Five of 100 are too many, whatever becomes of the last.
    assert_eq!(states(&tracker), [RequirementState::Failed, RequirementState::Holding]);
    let mut straggler = RobotInterval { phase: 1, ..RobotInterval::default() };
    straggler.counts.completed = 1;
    straggler.times.miss.response = sparse([300_000]);
    tracker.add_robots(&straggler);
    assert_eq!(states(&tracker), [RequirementState::Failed, RequirementState::Held]);
    assert_eq!(tracker.statuses()[0].seen, "200 ms");
    assert!(tracker.statuses()[1].seen.starts_with("0.9"));
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_be_refused(text in "\\PC{0,60}") {
        if let Err(error) = text.parse::<Requirement>() {
            prop_assert!(error.span.0 <= error.span.1);
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn near_misses_are_read_or_refused_in_words(
        text in "(top1\\.|\"x\"\\.|run\\.)?(service\\.)?(p99|p9{1,5}|mean|dhr|errors|rate|p99\\.99)(\\((hit|miss|stale)\\))? ?(/ ideal)? ?(<|<=|==|!=|>) ?-?[0-9]{1,6}(\\.[0-9]{1,3})? ?(ms|s|%|/s|µs)?"
    ) {
        match text.parse::<Requirement>() {
            Ok(required) => {
                // What was read means the same when it is read again, and can be required of anything.
                prop_assert_eq!(required.text().parse::<Requirement>().unwrap(), required.clone());
                let tracker = RequirementTracker::new(&[required], &schedule());
                prop_assert_eq!(tracker.statuses().len(), 1);
            }
            Err(error) => prop_assert!(error.span.1 <= text.len() + 1, "{}", error),
        }
    }

    #[test]
    fn nothing_that_was_called_failed_holds_in_the_end(
        seconds in prop::collection::vec((0u64..=90, 0u64..=10), 1..12),
        limit in 1u64..300,
        what in 0usize..5,
    ) {
        let text = match what {
            0 => format!("top1.p90 < {limit}ms"),
            1 => format!("top1.mean <= {limit}ms"),
            2 => format!("top1.errors < {}%", limit as f64 / 20.0),
            3 => format!("top1.dhr > {}%", limit.min(100)),
            _ => format!("top1.max < {limit}ms"),
        };
        let seconds: Vec<RobotInterval> = seconds.iter().map(|(hits, errors)| second(1, *hits, *errors)).collect();
        let states = watched(&text, &seconds);
        if seconds.len() <= 10 && states.contains(&RequirementState::Failed) {
            prop_assert_eq!(judged(&text, &seconds, false).held, Some(false), "{} {:?}", text, states);
            prop_assert_eq!(states.last(), Some(&RequirementState::Failed), "what failed stays so");
        }
    }
}
