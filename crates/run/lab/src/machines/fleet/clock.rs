//! The offset of an agent's clock to the coordinator's, and how far it can be wrong.
//!
//! Both clocks are `CLOCK_MONOTONIC`, in nanoseconds since the boot of their machine. The *offset* at an instant is what the
//! agent's clock shows minus what the coordinator's shows. It is measured by exchanges: the coordinator notes when it sends a
//! request, the agent notes when it received it and when it responds, the coordinator notes when the response is back.
//!
//! The bound follows from causality alone. The agent received the request after it was sent, so the offset is at most
//! `received − sent`. It responded before the response was back, so the offset is at least `responded − back`. Neither way has to
//! take as long as the other. What several exchanges say holds at different instants; between them the offset can have moved
//! by the drift, at most [`MOST_DRIFT_PPM`]. Every exchange therefore gives an interval at any instant, wider the further away
//! it is, and the offset lies in all of them. Quick exchanges give narrow intervals, slow ones do no harm.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Drift of the offset, at most, in millionths of the time that passes. A kernel changes the rate of its clock by at most 500 ppm to follow
/// NTP, which includes the correction of the crystal (some 100 ppm at worst).
pub const MOST_DRIFT_PPM: u64 = 500;
/// Exchanges within so long of each other are kept as one: the best lower and the best upper bound among them.
const STRETCH_NS: u64 = 250_000_000;
/// Number of stretches that are kept. One that is 60 s old says the offset to within 30 ms, more than any new one.
const STRETCHES: usize = 240;

/// A request and its response. Two readings of the coordinator's clock, two of the agent's, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Coordinator: before the request was sent.
    pub sent_ns: u64,
    /// Agent: after the request was received.
    pub received_ns: u64,
    /// Agent: before the response was sent.
    pub responded_ns: u64,
    /// Coordinator: after the response was received.
    pub back_ns: u64,
}

/// An interval that the offset lies in: agent's clock − coordinator's, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// The least that it can be.
    pub least_ns: i64,
    /// The most that it can be.
    pub most_ns: i64,
}

/// Reason why the offset is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ClockError {
    /// No exchange was made.
    #[error("no exchange with its clock has succeeded")]
    Unmeasured,
    /// Exchanges contradict each other.
    #[error(
        "its clock and the coordinator's contradict each other by {by_us} µs: one of them was set, its machine was suspended, or they drift \
         apart by more than {MOST_DRIFT_PPM} ppm"
    )]
    Contradiction {
        /// Size of the jump, in microseconds.
        by_us: u64,
    },
    /// The readings of one exchange go backwards.
    #[error("a reading of a clock went backwards")]
    Backwards,
}

impl Offset {
    /// In the middle of the interval: the value with the smallest greatest error.
    pub fn middle_ns(self) -> i64 {
        self.least_ns + (self.most_ns - self.least_ns) / 2
    }

    /// Largest distance of the middle from the truth, in nanoseconds, rounded up.
    pub fn error_ns(self) -> u64 {
        (self.most_ns - self.middle_ns()).max(self.middle_ns() - self.least_ns).unsigned_abs()
    }

    /// Whether it can be this.
    pub fn contains(self, offset_ns: i64) -> bool {
        (self.least_ns..=self.most_ns).contains(&offset_ns)
    }

    /// Largest distance of the truth from `assumed_ns`, in nanoseconds.
    pub fn error_of_ns(self, assumed_ns: i64) -> u64 {
        (self.most_ns - assumed_ns).unsigned_abs().max((self.least_ns - assumed_ns).unsigned_abs())
    }

    /// The agent's reading at an instant of the coordinator's clock, as the middle says.
    pub fn agent_ns(self, coordinator_ns: u64) -> u64 {
        coordinator_ns.saturating_add_signed(self.middle_ns())
    }

    /// The interval around another value: what is left of the offset once `assumed_ns` was taken off.
    fn beyond(self, assumed_ns: i64) -> Self {
        Self { least_ns: self.least_ns - assumed_ns, most_ns: self.most_ns - assumed_ns }
    }
}

/// An interval that an exchange gives, and when it holds: at some instant of the coordinator's clock between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bound {
    offset_ns: i64,
    from_ns: u64,
    to_ns: u64,
}

impl Bound {
    /// Upper bound on the move of the offset between then and `at_ns`, rounded up.
    fn moved_ns(self, at_ns: u64) -> i64 {
        let away_ns = at_ns.abs_diff(self.from_ns).max(at_ns.abs_diff(self.to_ns));
        let moved = (u128::from(away_ns) * u128::from(MOST_DRIFT_PPM)).div_ceil(1_000_000);
        i64::try_from(moved).unwrap_or(i64::MAX / 4)
    }
}

/// The best of the exchanges of a stretch of time.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    number: u64,
    least: Bound,
    most: Bound,
}

/// Clock of one agent, as exchanges show it. Its memory does not grow.
#[derive(Debug, Clone, Default)]
pub struct AgentClock {
    stretches: VecDeque<Stretch>,
    quickest_ns: Option<u64>,
}

impl AgentClock {
    /// Takes note of an exchange. They come in the order of time.
    pub fn take(&mut self, exchange: Exchange) -> Result<(), ClockError> {
        let Exchange { sent_ns, received_ns, responded_ns, back_ns } = exchange;
        if back_ns < sent_ns || responded_ns < received_ns {
            return Err(ClockError::Backwards);
        }
        let way_ns = (back_ns - sent_ns).saturating_sub(responded_ns - received_ns);
        self.quickest_ns = Some(self.quickest_ns.map_or(way_ns, |quickest| quickest.min(way_ns)));
        let bound = |agent_ns: u64, coordinator_ns: u64| Bound {
            offset_ns: difference(agent_ns, coordinator_ns),
            from_ns: sent_ns,
            to_ns: back_ns,
        };
        let (least, most) = (bound(responded_ns, back_ns), bound(received_ns, sent_ns));
        let number = back_ns / STRETCH_NS;
        match self.stretches.back_mut() {
            Some(last) if last.number == number => {
                if least.offset_ns > last.least.offset_ns {
                    last.least = least;
                }
                if most.offset_ns < last.most.offset_ns {
                    last.most = most;
                }
            }
            _ => {
                if self.stretches.len() == STRETCHES {
                    self.stretches.pop_front();
                }
                self.stretches.push_back(Stretch { number, least, most });
            }
        }
        Ok(())
    }

    /// The offset at an instant of the coordinator's clock, in nanoseconds.
    pub fn at(&self, coordinator_ns: u64) -> Result<Offset, ClockError> {
        let least = |stretch: &Stretch| stretch.least.offset_ns - stretch.least.moved_ns(coordinator_ns);
        let most = |stretch: &Stretch| stretch.most.offset_ns + stretch.most.moved_ns(coordinator_ns);
        let least_ns = self.stretches.iter().map(least).max().ok_or(ClockError::Unmeasured)?;
        let most_ns = self.stretches.iter().map(most).min().ok_or(ClockError::Unmeasured)?;
        if least_ns > most_ns {
            return Err(ClockError::Contradiction {
                by_us: (least_ns - most_ns).unsigned_abs().div_ceil(1000),
            });
        }
        Ok(Offset { least_ns, most_ns })
    }

    /// The offset when the last exchange was made.
    pub fn now(&self) -> Result<Offset, ClockError> {
        self.now_at().map(|(_, offset)| offset)
    }

    /// The same, with that instant.
    pub fn now_at(&self) -> Result<(u64, Offset), ClockError> {
        let at_ns = self.stretches.back().ok_or(ClockError::Unmeasured)?.least.to_ns;
        Ok((at_ns, self.at(at_ns)?))
    }

    /// Time for which the quickest exchange was on its way, both ways together; none: there was none. In nanoseconds.
    pub fn quickest_ns(&self) -> Option<u64> {
        self.quickest_ns
    }
}

/// One reading minus another, kept within what can be added up without overflow.
fn difference(one_ns: u64, other_ns: u64) -> i64 {
    let difference = i128::from(one_ns) - i128::from(other_ns);
    difference.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64
}

/// Largest distance between the starts of machines that were given one instant, in nanoseconds. For each machine, the offset at that
/// instant and the offset that its instant was computed with.
pub fn start_spread_ns(machines: &[(Offset, i64)]) -> u64 {
    let errors = || machines.iter().map(|(offset, assumed_ns)| offset.beyond(*assumed_ns));
    let earliest = errors().map(|error| error.least_ns).min().unwrap_or(0);
    let latest = errors().map(|error| error.most_ns).max().unwrap_or(0);
    if machines.len() < 2 { 0 } else { (latest - earliest).unsigned_abs() }
}

#[cfg(test)]
mod tests {
    use assay_base::random::Rng;
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// An agent's clock as the test knows it: it starts anywhere and its rate changes once a second.
    struct Truth {
        /// The agent's reading at each second of the coordinator's clock, from the first on.
        readings: Vec<f64>,
        first_s: u64,
    }

    impl Truth {
        fn new(rng: &mut Rng, seconds: u64, most_ppm: f64) -> Self {
            let first_s = 1 + rng.below(1_000_000);
            let mut reading = rng.below(1_000_000_000) as f64 * 1e6;
            let mut readings = vec![reading];
            for _ in 0..seconds + 2 {
                let drift = (rng.unit() * 2.0 - 1.0) * most_ppm * 1e-6;
                reading += SECOND as f64 * (1.0 + drift);
                readings.push(reading);
            }
            Self { readings, first_s }
        }

        fn reading(&self, coordinator_ns: u64) -> u64 {
            let since = coordinator_ns - self.first_s * SECOND;
            let place = (since / SECOND) as usize;
            let (from, to) = (self.readings[place], self.readings[place + 1]);
            (from + (to - from) * ((since % SECOND) as f64 / SECOND as f64)).round() as u64
        }

        fn offset(&self, coordinator_ns: u64) -> i64 {
            difference(self.reading(coordinator_ns), coordinator_ns)
        }
    }

    /// An exchange that begins then, with ways that need not take equally long.
    fn exchange(truth: &Truth, sent_ns: u64, there_ns: u64, busy_ns: u64, back_ns: u64) -> Exchange {
        let received = sent_ns + there_ns;
        Exchange {
            sent_ns,
            received_ns: truth.reading(received),
            responded_ns: truth.reading(received + busy_ns),
            back_ns: received + busy_ns + back_ns,
        }
    }

    #[test]
    fn one_exchange_bounds_the_offset_by_its_two_ways() {
        let mut clock = AgentClock::default();
        assert_eq!(clock.at(5), Err(ClockError::Unmeasured));
        clock
            .take(Exchange { sent_ns: 1000, received_ns: 51_000, responded_ns: 52_000, back_ns: 5000 })
            .unwrap();
        let offset = clock.at(3000).unwrap();
        // At most what was received − sent, at least what was responded − back; and a nanosecond or two of drift.
        assert!(offset.contains(47_000) && offset.contains(50_000));
        assert!(!offset.contains(46_990) && !offset.contains(50_010));
        assert_eq!(clock.quickest_ns(), Some(3000));
        assert_eq!(offset.agent_ns(0), 48_500);
    }

    #[test]
    fn a_clock_that_was_set_is_found_out_and_readings_that_go_backwards_are_refused() {
        let mut clock = AgentClock::default();
        let at = |sent_ns, offset: u64| Exchange {
            sent_ns,
            received_ns: sent_ns + offset + 10,
            responded_ns: sent_ns + offset + 20,
            back_ns: sent_ns + 30,
        };
        clock.take(at(0, 5 * SECOND)).unwrap();
        clock.take(at(SECOND, 5 * SECOND)).unwrap();
        assert!(clock.at(SECOND).is_ok());
        clock.take(at(2 * SECOND, 6 * SECOND)).unwrap();
        let error = clock.at(2 * SECOND).unwrap_err();
        assert!(matches!(error, ClockError::Contradiction { by_us } if by_us > 990_000), "{error}");
        let backwards = Exchange { sent_ns: 10, received_ns: 5, responded_ns: 4, back_ns: 20 };
        assert_eq!(clock.take(backwards), Err(ClockError::Backwards));
        let backwards = Exchange { sent_ns: 10, received_ns: 5, responded_ns: 5, back_ns: 9 };
        assert_eq!(clock.take(backwards), Err(ClockError::Backwards));
    }

    #[test]
    fn memory_does_not_grow_and_clocks_at_the_ends_of_their_range_do_not_overflow() {
        let mut clock = AgentClock::default();
        for second in 0..10_000 {
            let sent_ns = second * SECOND;
            clock
                .take(Exchange { sent_ns, received_ns: sent_ns, responded_ns: sent_ns, back_ns: sent_ns })
                .unwrap();
        }
        assert_eq!(clock.stretches.len(), STRETCHES);
        let mut clock = AgentClock::default();
        let never = Exchange { sent_ns: 0, received_ns: u64::MAX, responded_ns: u64::MAX, back_ns: u64::MAX };
        clock.take(never).unwrap();
        for at_ns in [0, u64::MAX / 2, u64::MAX] {
            let offset = clock.at(at_ns).unwrap();
            let _ = (offset.middle_ns(), offset.error_ns(), offset.agent_ns(u64::MAX));
        }
    }

    #[test]
    fn the_spread_of_a_start_is_that_of_the_extremes() {
        let offset = |least_ns, most_ns| Offset { least_ns, most_ns };
        assert_eq!(start_spread_ns(&[]), 0);
        assert_eq!(start_spread_ns(&[(offset(100, 200), 150)]), 0);
        // One starts up to 50 early, the other up to 20 late.
        assert_eq!(start_spread_ns(&[(offset(100, 200), 150), (offset(-10, 20), 0)]), 100);
    }

    proptest! {
        /// Whatever the two ways take and however the clocks drift apart within ±100 ppm, at every instant between the first
        /// exchange and ten seconds after the last.
        #[test]
        fn the_true_offset_is_always_inside(
            seed in any::<u64>(),
            seconds in 1_u64..40,
            ways_ns in (1_u64..50_000_000, 1_u64..50_000_000),
            pause_ns in 10_000_000_u64..2_000_000_000,
        ) {
            let mut rng = Rng::of(7_u64, &[seed]);
            let truth = Truth::new(&mut rng, seconds + 12, 100.0);
            let first_ns = truth.first_s * SECOND;
            let (mut clock, mut now_ns) = (AgentClock::default(), first_ns);
            let end_ns = first_ns + seconds * SECOND;
            while now_ns < end_ns {
                let there = 1 + rng.below(ways_ns.0);
                let back = 1 + rng.below(ways_ns.1);
                let made = exchange(&truth, now_ns, there, rng.below(1_000_000), back);
                clock.take(made).unwrap();
                now_ns = made.back_ns + rng.below(pause_ns);
            }
            for _ in 0..50 {
                let at_ns = first_ns + rng.below((seconds + 10) * SECOND);
                let offset = clock.at(at_ns).unwrap();
                // A reading is rounded to a nanosecond in the test.
                let widened = Offset { least_ns: offset.least_ns - 2, most_ns: offset.most_ns + 2 };
                prop_assert!(widened.contains(truth.offset(at_ns)), "{offset:?} {}", truth.offset(at_ns));
                prop_assert!(offset.error_of_ns(offset.middle_ns()) == offset.error_ns());
            }
        }

        /// The error is no more than half the quickest way there and back, and what drift adds within the pause.
        #[test]
        fn quick_exchanges_give_a_small_error_however_slow_the_others_are(
            seed in any::<u64>(),
            quick_ns in 1_000_u64..200_000,
        ) {
            let mut rng = Rng::of(8_u64, &[seed]);
            let truth = Truth::new(&mut rng, 12, 100.0);
            let mut clock = AgentClock::default();
            let first_ns = truth.first_s * SECOND;
            for number in 0..100_u64 {
                // Every tenth is quick, and only its way back is not symmetrical.
                let slow = if number % 10 == 0 { 0 } else { rng.below(20_000_000) };
                clock.take(exchange(&truth, first_ns + number * 100_000_000, quick_ns + slow, 0, quick_ns)).unwrap();
            }
            let error = clock.at(first_ns + 5 * SECOND).unwrap().error_ns();
            prop_assert!(error <= quick_ns + 1_000_000_000 * MOST_DRIFT_PPM / 1_000_000, "{error}");
        }
    }
}
