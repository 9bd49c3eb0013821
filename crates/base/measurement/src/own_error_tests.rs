//! Whether bounds hold the truth.

use proptest::prelude::*;

use super::*;

fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    values.into_iter().for_each(|us| histogram.record(us));
    histogram
}

fn at_share(mut times: Vec<u64>, share: f64) -> f64 {
    times.sort_unstable();
    let rank = ((times.len() as f64 * share).ceil() as usize).max(1);
    times[rank - 1] as f64
}

/// What a time would have been, and what was done to it: its own delay, what was taken from the target, and by how much it
/// was moved by delays of others, which took `D` and kept half of the target's time.
fn time() -> impl Strategy<Value = (u64, u64, u64, Option<(u64, i64)>)> {
    let moved = (0u64..600).prop_flat_map(|delay| {
        let half = delay as i64 / 2;
        (Just(delay), -half..=half)
    });
    (600u64..1500, prop_oneof![3 => Just(0), 1 => 0u64..400], 0u64..100, prop::option::weighted(0.2, moved))
}

proptest! {
    #[test]
    fn bounds_hold_the_truth_whatever_was_done_to_the_times(
        times in prop::collection::vec(time(), 1..80),
        lost in prop::collection::vec(0u64..3000, 0..4),
        percent in 1u32..=100,
        unrecorded in prop::sample::select(vec![Unrecorded::Fixed, Unrecorded::ByTime]),
    ) {
        let share = f64::from(percent) / 100.0;
        let least = |(time, _, taken, moved): &(u64, u64, u64, Option<(u64, i64)>)| {
            (time + taken).saturating_add_signed(moved.map_or(0, |(_, by)| by))
        };
        let seen = |time: &(u64, u64, u64, Option<(u64, i64)>)| least(time) + time.1;
        let disturbed = || times.iter().filter(|time| time.1 >= unrecorded.recorded_from_us(seen(time)));
        let all = histogram(times.iter().map(seen));
        let taken: u64 = times.iter().map(|time| time.2).sum();
        let error = OwnError::new(&all, &[
            histogram(disturbed().map(seen)),
            histogram(disturbed().map(least)),
        ], unrecorded)
        .aftermath(histogram(times.iter().filter_map(|time| time.3.map(|(delay, _)| delay))), Histogram::new())
        .busy(0.5)
        .spread(taken as f64 / times.len() as f64)
        .lost(lost.len() as u64);
        let truth: Vec<u64> = times.iter().map(|time| time.0).chain(lost.iter().copied()).collect();
        let bounds = error.quantile(share).unwrap();
        let quantile = at_share(truth.clone(), share);
        prop_assert!(bounds.low_us <= quantile, "{bounds:?} {quantile}");
        prop_assert!(bounds.high_us.is_none_or(|high| quantile <= high), "{bounds:?} {quantile}");
        let bounds = error.mean().unwrap();
        let mean = truth.iter().sum::<u64>() as f64 / truth.len() as f64;
        prop_assert!(bounds.low_us <= mean + 1e-6, "{bounds:?} {mean}");
        prop_assert!(bounds.high_us.is_none_or(|high| mean <= high + 1e-6), "{bounds:?} {mean}");
        let longest = truth.iter().copied().max().unwrap() as f64;
        let bounds = error.max().unwrap();
        prop_assert!(bounds.low_us <= longest && bounds.high_us.is_none_or(|high| longest <= high));
    }
}

proptest! {
    #[test]
    fn bounds_hold_the_truth_where_times_begin_a_moment_after_requests_were_due(
        // What is seen, how late the request was, and by which part of that it would have taken longer on time.
        times in prop::collection::vec((200u64..1500, 0u64..160, 0u64..=4), 1..80),
        percent in 1u32..=100,
    ) {
        let share = f64::from(percent) / 100.0;
        let all = histogram(times.iter().map(|time| time.0));
        let error = OwnError::undisturbed(&all, Unrecorded::Fixed)
            .begun_late(histogram(times.iter().map(|time| time.1)))
            .busy(0.1);
        let truth = times.iter().map(|(seen, late, part)| seen + (*late).min(u64::from(BEGUN_LATE_US)) * part / 4);
        let truth: Vec<u64> = truth.collect();
        let mean = truth.iter().sum::<u64>() as f64 / truth.len() as f64;
        let quantile = at_share(truth, share);
        let bounds = error.quantile(share).unwrap();
        prop_assert!(bounds.low_us <= quantile && bounds.high_us.is_some_and(|high| quantile <= high), "{bounds:?} {quantile}");
        let bounds = error.mean().unwrap();
        prop_assert!(bounds.low_us <= mean && bounds.high_us.is_some_and(|high| mean <= high), "{bounds:?} {mean}");
    }
}

#[test]
fn the_mean_allows_for_how_late_requests_were_and_for_how_busy_the_target_was() {
    let all = histogram([10_000; 1_000]);
    let allowed_us = |late: Histogram, busy: f64, arrivals: Option<RandomArrivals>| {
        let error = OwnError::undisturbed(&all, Unrecorded::Fixed).busy(busy);
        let without_us = error.mean().unwrap().high_us.unwrap();
        let error = arrivals.into_iter().fold(error, OwnError::random_arrivals).begun_late(late);
        error.mean().unwrap().high_us.unwrap() - without_us
    };
    let by_chance = Some(RandomArrivals { needs: 1.0, batch: 1.0 });
    // A tenth of the requests were late by a second: 50 µs of each are no part of its time.
    let few = histogram((0..1_000).map(|n| if n % 10 == 0 { 1_000_000 } else { 0 }));
    assert_eq!(allowed_us(few, 0.5, None), 5.0);
    assert_eq!(allowed_us(histogram([40; 1_000]), 0.5, None), 40.0);
    // At most one in a hundred, and three standard deviations more, found the target busy.
    let busy_us = allowed_us(histogram([40; 1_000]), 0.01, by_chance);
    assert!((0.4..0.9).contains(&busy_us), "{busy_us}");
    // Lateness of others, too, can have been of these: none has more than there is.
    assert_eq!(allowed_us(histogram(std::iter::repeat_n(40, 100_000)), 0.5, None), 40.0);
}

#[test]
fn of_requests_in_passing_only_those_count_that_can_have_met_the_target_busy() {
    let all = histogram((0..10_000).map(|n| 20_000 + n));
    let passing = || histogram([50_000; 4_000]);
    let width = |error: OwnError| {
        let median = error.busy(0.1).quantile(0.5).unwrap();
        median.high_us.unwrap() - median.low_us
    };
    let error = OwnError::undisturbed(&all, Unrecorded::Fixed);
    let met = width(error.clone().aftermath(passing(), Histogram::new()));
    let unknown = width(error.clone().aftermath(Histogram::new(), passing()));
    let by_chance = width(
        error
            .clone()
            .aftermath(Histogram::new(), passing())
            .random_arrivals(RandomArrivals { needs: 1.0, batch: 1.0 }),
    );
    assert_eq!(met, unknown);
    // A tenth of four in ten, three standard deviations of that, and both ways.
    assert!((850.0..1_200.0).contains(&by_chance) && met > 6_000.0, "{by_chance} {met}");
    let often = width(
        error
            .aftermath(Histogram::new(), passing())
            .random_arrivals(RandomArrivals { needs: 10.0, batch: 1.0 }),
    );
    assert_eq!(often, met, "each needs the target so often that it has met it");
}

#[test]
fn a_few_late_requests_touch_the_percentiles_that_they_make_and_no_others() {
    let all = histogram((0..990).map(|_| 30_000).chain((0..10).map(|_| 90_000)));
    let (seen, least) = (histogram([90_000; 10]), histogram([30_000; 10]));
    let error = OwnError::new(&all, &[seen, least], Unrecorded::Fixed);
    let median = error.quantile(0.5).unwrap();
    assert!(median.high_us.unwrap() - median.low_us < 120.0, "{median:?}");
    let p999 = error.quantile(0.999).unwrap();
    assert!(p999.low_us <= 30_000.0 && p999.high_us.unwrap() >= 90_000.0, "{p999:?}");
}

#[test]
fn processors_that_were_taken_now_and_then_leave_the_median_almost_alone() {
    let all = histogram((0..1000).map(|n| 10_000 + n));
    let error = OwnError::undisturbed(&all, Unrecorded::Fixed).spread(20.0);
    let median = error.quantile(0.5).unwrap();
    assert!(median.low_us > 9_900.0 && median.low_us < 10_500.0, "{median:?}");
}

#[test]
fn waits_that_are_few_and_long_leave_the_median_alone_though_their_sum_could_move_it() {
    let all = histogram((0..1000).map(|n| 300 + n % 20));
    let error = OwnError::undisturbed(&all, Unrecorded::Fixed).spread(180.0);
    assert!(error.quantile(0.5).unwrap().low_us < 10.0, "{:?}", error.quantile(0.5));
    let waits = histogram((0..100).map(|n| if n % 10 == 0 { 4_000 } else { 5 }));
    let long = error.clone().windows(waits.clone(), 100.0 * 10_000.0, 1.0);
    assert!(long.quantile(0.5).unwrap().low_us > 240.0, "{:?}", long.quantile(0.5));
    assert!(long.quantile(0.95).unwrap().low_us > 240.0);
    assert_eq!(long.quantile(0.05).unwrap().low_us, 0.0);
    // In windows of half the wait, one in ten waits reaches into three of ten windows.
    let short = error.windows(waits, 100.0 * 2_000.0, 1.0);
    assert!(short.quantile(0.35).unwrap().low_us > 240.0, "{:?}", short.quantile(0.35));
    assert_eq!(short.quantile(0.25).unwrap().low_us, 0.0);
}

#[test]
fn a_delay_of_others_moves_times_by_no_more_than_the_work_that_was_held_back() {
    let all = histogram((0..1000).map(|n| 20_000 + n));
    let width = |busy: f64, touched: usize| {
        let error = OwnError::undisturbed(&all, Unrecorded::Fixed)
            .aftermath(histogram(vec![50_000; touched]), Histogram::new())
            .busy(busy);
        let p99 = error.quantile(0.99).unwrap();
        p99.high_us.unwrap() - p99.low_us
    };
    assert!(width(1.0, 200) > 40_000.0);
    assert!((2_000.0..4_000.0).contains(&width(0.05, 200)), "{}", width(0.05, 200));
    assert!(width(1.0, 5) < 100.0, "so few are not the 99th percentile");
}

#[test]
fn segments_that_were_sent_again_leave_what_lies_below_them_alone() {
    let error =
        OwnError::undisturbed(&histogram((1..=1000).map(|n| n * 1_000)), Unrecorded::Fixed).touched(0.01);
    let low_us = |quantile| error.quantile(quantile).unwrap().low_us;
    assert!((489_000.0..491_000.0).contains(&low_us(0.5)), "{}", low_us(0.5));
    assert!(low_us(1.0) >= 989_000.0);
}

#[test]
fn a_figure_is_known_within_a_tenth_or_a_tenth_of_a_millisecond() {
    let certainty = |value, low, high| OwnInterval::of(value, low, high, PRECISION_US).certainty;
    assert_eq!(certainty(30_000.0, 27_100.0, Some(30_000.0)), Certainty::Known);
    assert_eq!(certainty(30_000.0, 26_900.0, Some(30_000.0)), Certainty::Roughly);
    assert_eq!(certainty(200.0, 100.0, Some(200.0)), Certainty::Known);
    assert_eq!(certainty(200.0, 99.0, Some(200.0)), Certainty::Roughly);
    assert_eq!(certainty(200.0, 150.0, None), Certainty::Roughly);
    assert_eq!(certainty(200.0, 0.0, None), Certainty::Unknown);
    let inside = OwnInterval::of(5.0, 6.0, Some(4.0), 1.0);
    assert_eq!((inside.low, inside.high), (Some(5.0), Some(5.0)), "the value itself is possible");
}

#[test]
fn waits_lengthen_all_that_was_under_way_and_what_came_behind_it() {
    let times = histogram([20_000; 100]);
    let taken_us = |waited_us: f64, passed_us: f64| {
        let of = |waited_us| OwnError::beside_waits(&times, waited_us, passed_us).mean().unwrap().low_us;
        of(0.0) - of(waited_us)
    };
    // One by one, each wait delays one; one at a time without a pause, another behind it; ten at a time, all ten and as many.
    assert!((taken_us(100_000.0, 200e6) - 1_010.0).abs() < 1.0);
    assert!((taken_us(100_000.0, 2e6) - 2_000.0).abs() < 10.0);
    assert!((taken_us(10_000.0, 0.2e6) - 2_000.0).abs() < 10.0);
}
