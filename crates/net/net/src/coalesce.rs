//! Coalescing: how long a busy thread lets messages accumulate before it polls for them. Pure: time is an argument.
//!
//! A thread that sleeps as soon as there is nothing to read is woken for nearly every message when it is faster than the
//! other side, and both pay: a sleep and a wake-up cost it several times what a message does, and the other side, which
//! has to wake it, does less of its own work meanwhile. Where many responses are under way, a thread therefore pauses for a
//! moment before it waits, and then finds several.
//!
//! A thread that sends requests ([`ResponseCoalescer`]): pauses hardly affect measurements. A pause is never more than one part in
//! [`SHARE`] of the time within which the quickest eighth of all responses come ([`LowQuantile`]), nor of the mean response time, which
//! is the number under way times the gap between two responses, and never more than [`MAX_PAUSE_NS`]. The mean alone would not do:
//! where a few slow responses make it, a small part of it is much to the quick ones. There is no pause while something is about to
//! be due, with few under way, or when responses come far apart.
//!
//! A thread of an intermediary ([`ConnectionCoalescer`]) cannot know how long its clients have waited, so that the longest pause is a
//! setting. It pauses only where new connections come in quick succession, a request with each: then it sleeps between any
//! two of them, near its limit though it is. Over connections that stay, it finds work without sleeping, and a pause would
//! only delay.

/// Upper bound on a pause, as the divisor of a quick response's time and of the mean.
const SHARE: u64 = 24;
/// Upper bound on a pause.
const MAX_PAUSE_NS: u64 = 50_000;
/// Responses that must be expected during a pause, or it costs more than it saves.
const MIN_RESPONSES: u64 = 2;
/// A pause may last this much longer than intended; beyond that, due requests would be late.
const OVERSLEEP_NS: u64 = 100_000;
/// Number of polls over which the gap between arrivals is averaged.
const AVERAGED_OVER: u64 = 8;
/// Inverse of the quantile that [`LowQuantile`] tracks.
const QUANTILE_ONE_IN: u64 = 8;
/// Step of [`LowQuantile`] per response, as the divisor of its value.
const QUANTILE_STEP: u64 = 256;

/// Running estimate of a low quantile of response times: each response that is quicker lowers it by as much as seven slower ones raise it,
/// so that it stays where one in eight is quicker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LowQuantile {
    ns: u64,
}

impl LowQuantile {
    /// Records the time of a response.
    #[inline]
    pub fn record(&mut self, took_ns: u64) {
        self.ns = match self.ns {
            0 => took_ns,
            ns if took_ns < ns => ns - ns * (QUANTILE_ONE_IN - 1) / QUANTILE_STEP,
            ns => ns + ns.div_ceil(QUANTILE_STEP),
        };
    }

    /// The estimate, in nanoseconds; 0 before the first response.
    #[inline]
    pub fn ns(self) -> u64 {
        self.ns
    }
}

/// A thread that finds more messages than this at once need not wait for more.
const MAX_FEW: u32 = 8;

/// Average gap between arrivals at a thread.
#[derive(Debug, Clone, Copy, Default)]
struct ArrivalGap {
    /// Time of the last arrival.
    last_ns: u64,
    gap_ns: u64,
}

impl ArrivalGap {
    /// Records arrivals up to `now_ns`; a gap counts as `longest_ns` at most.
    fn record(&mut self, now_ns: u64, arrived: u32, longest_ns: u64) {
        let passed_ns = now_ns.saturating_sub(std::mem::replace(&mut self.last_ns, now_ns));
        let gap_ns = (passed_ns / u64::from(arrived.max(1))).min(longest_ns);
        self.gap_ns = (self.gap_ns * (AVERAGED_OVER - 1) + gap_ns).div_ceil(AVERAGED_OVER);
    }
}

/// Coalescing for a thread that sends requests, by the rate of responses.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseCoalescer(ArrivalGap);

impl ResponseCoalescer {
    /// Length of the pause before a wait at `now_ns`, with `arrived` messages since the last call, `in_flight` requests, the quickest of
    /// which take `quick`, and work to do at `due_ns`.
    pub fn pause_ns(
        &mut self,
        now_ns: u64,
        arrived: u32,
        in_flight: u64,
        quick: LowQuantile,
        due_ns: Option<u64>,
    ) -> u64 {
        if arrived > 0 {
            self.0.record(now_ns, arrived, MAX_PAUSE_NS);
        }
        let gap_ns = self.0.gap_ns;
        let mean_ns = in_flight.saturating_mul(gap_ns);
        let pause_ns = (mean_ns.min(quick.ns()) / SHARE).min(MAX_PAUSE_NS);
        let is_worth_it = pause_ns > 0 && pause_ns >= gap_ns * MIN_RESPONSES;
        let is_free = due_ns.is_none_or(|due_ns| due_ns > now_ns + pause_ns + OVERSLEEP_NS);
        if arrived > 0 && is_worth_it && is_free { pause_ns } else { 0 }
    }
}

/// Coalescing for a thread of an intermediary, by the rate of new connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectionCoalescer(ArrivalGap);

impl ConnectionCoalescer {
    /// Length of the pause before a wait at `now_ns`, up to `longest_ns`, with `arrived` messages from either side and the number of new
    /// `connections` since the last call.
    pub fn pause_ns(&mut self, now_ns: u64, arrived: u32, connections: u32, longest_ns: u64) -> u64 {
        if connections > 0 {
            self.0.record(now_ns, connections, longest_ns.saturating_mul(2));
        }
        let ArrivalGap { last_ns, gap_ns } = self.0;
        // At least one more is to be expected meanwhile, and the last did not come long ago.
        let is_worth_it = gap_ns <= longest_ns && now_ns.saturating_sub(last_ns) <= longest_ns;
        if (1..=MAX_FEW).contains(&arrived) && is_worth_it { longest_ns } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SLOW: LowQuantile = LowQuantile { ns: u64::MAX };

    /// The last rest of a thread to which a response comes every `gap_ns`, in batches, with so many under way.
    fn settled(gap_ns: u64, batch: u32, in_flight: u64, due_in_ns: Option<u64>) -> u64 {
        settled_with(gap_ns, batch, in_flight, SLOW, due_in_ns)
    }

    fn settled_with(
        gap_ns: u64,
        batch: u32,
        in_flight: u64,
        quick: LowQuantile,
        due_in_ns: Option<u64>,
    ) -> u64 {
        let (mut coalescer, mut now_ns) = (ResponseCoalescer::default(), 1_000_000_000);
        (0..100)
            .map(|_| {
                now_ns += gap_ns * u64::from(batch);
                coalescer.pause_ns(now_ns, batch, in_flight, quick, due_in_ns.map(|due| now_ns + due))
            })
            .last()
            .unwrap_or(0)
    }

    #[test]
    fn it_rests_where_many_responses_come_in_quick_succession() {
        assert_eq!(settled(10_000, 1, 64, None) / 1_000, 26, "64 * 10 µs / 24");
        assert_eq!(settled(10_000, 5, 1_000, None), MAX_PAUSE_NS);
    }

    #[test]
    fn it_never_rests_with_few_in_flight_or_when_responses_come_far_apart() {
        assert_eq!(settled(10_000, 1, 40, None), 0);
        assert_eq!(settled(30_000, 1, 10_000, None), 0);
        assert_eq!(settled(1_000_000, 1, 10_000, None), 0);
    }

    #[test]
    fn it_never_rests_when_something_is_about_to_be_due() {
        assert_eq!(settled(10_000, 1, 64, Some(120_000)), 0);
        assert!(settled(10_000, 1, 64, Some(130_000)) > 0);
    }

    #[test]
    fn slow_responses_among_quick_ones_do_not_make_it_rest_longer() {
        assert_eq!(settled_with(10_000, 1, 1_000, LowQuantile { ns: 600_000 }, None), 25_000);
        assert_eq!(settled_with(10_000, 1, 1_000, LowQuantile { ns: 400_000 }, None), 0, "not worth it");
        assert_eq!(settled_with(10_000, 1, 1_000, LowQuantile::default(), None), 0, "nothing is known yet");
    }

    #[test]
    fn one_response_in_eight_is_quick_wherever_the_search_began() {
        for first_us in [1, 100, 100_000] {
            let mut quick = LowQuantile::default();
            quick.record(first_us * 1_000);
            // Times from 100 to 900 µs, all as frequent, in an order that is mixed.
            (0..20_000_u64).for_each(|number| quick.record((100 + number * 7_919 % 800) * 1_000));
            assert!((180_000..220_000).contains(&quick.ns()), "{first_us}: {quick:?}");
        }
    }

    #[test]
    fn it_rests_once_after_something_came_and_then_waits() {
        let mut coalescer = ResponseCoalescer(ArrivalGap { last_ns: 1_000_000, gap_ns: 10_000 });
        assert!(coalescer.pause_ns(1_010_000, 1, 64, SLOW, None) > 0);
        assert_eq!(coalescer.pause_ns(1_060_000, 0, 64, SLOW, None), 0);
    }

    /// The last rest of a thread in between to which a connection comes every `gap_ns`, so many at once.
    fn between(gap_ns: u64, batch: u32, longest_ns: u64) -> u64 {
        let (mut coalescer, mut now_ns) = (ConnectionCoalescer::default(), 1_000_000_000);
        (0..100)
            .map(|_| {
                now_ns += gap_ns * u64::from(batch);
                coalescer.pause_ns(now_ns, batch, batch, longest_ns)
            })
            .last()
            .unwrap_or(0)
    }

    #[test]
    fn a_thread_in_between_rests_where_connections_come_singly_and_quickly() {
        assert_eq!(between(40_000, 1, 50_000), 50_000);
        assert_eq!(between(10_000, MAX_FEW, 50_000), 50_000);
    }

    #[test]
    fn a_thread_in_between_never_rests_when_it_is_behind_or_connections_come_far_apart() {
        assert_eq!(between(10_000, MAX_FEW + 1, 50_000), 0);
        assert_eq!(between(60_000, 1, 50_000), 0);
    }

    #[test]
    fn a_thread_in_between_never_rests_over_connections_that_stay() {
        let mut coalescer = ConnectionCoalescer(ArrivalGap { last_ns: 1_000_000, gap_ns: 10_000 });
        assert_eq!(
            coalescer.pause_ns(1_010_000, 1, 0, 50_000),
            50_000,
            "a response, and connections come as well"
        );
        assert_eq!(coalescer.pause_ns(1_020_000, 0, 0, 50_000), 0, "it has just paused, and nothing came");
        assert_eq!(coalescer.pause_ns(1_060_000, 1, 0, 50_000), 0, "connections have ceased to come");
    }

    #[test]
    fn a_thread_in_between_that_may_not_rest_does_not() {
        assert_eq!(between(10, 1, 0), 0);
    }

    proptest! {
        #[test]
        fn a_rest_is_a_small_part_of_the_mean_response_time(gap_ns in 1u64..200_000, in_flight in 0u64..100_000) {
            let pause_ns = settled(gap_ns, 1, in_flight, None);
            // The average is rounded up a little.
            prop_assert!(pause_ns <= (in_flight * (gap_ns + AVERAGED_OVER)).div_ceil(SHARE).min(MAX_PAUSE_NS));
        }
    }
}
