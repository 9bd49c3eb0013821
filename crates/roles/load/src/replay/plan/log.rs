//! Plan of a log: due times of its requests.
//!
//! Each keeps its distance from the first one, divided by the speed; lines a little out of order come into order
//! (`order`), and stamps of whole seconds are spread (`spread`). Memory does not grow with the log.

use std::collections::VecDeque;

use super::Planned;
pub use super::order::LogEntry;
use super::order::ReorderBuffer;
use super::spread::SecondSpreader;

/// Entries that are held to put them in order.
const MOST_OUT_OF_ORDER: usize = 10_000;
const NS_PER_US: f64 = 1_000.0;

/// The plan of a log, made while the log is read.
pub struct LogPlan {
    speed: f64,
    order: ReorderBuffer,
    spread: SecondSpreader,
    spread_entries: VecDeque<(i64, LogEntry)>,
    first_us: Option<i64>,
    last_us: i64,
}

impl LogPlan {
    /// With `speed` as a factor on the log's own.
    pub fn new(speed: f64) -> Self {
        Self {
            speed,
            order: ReorderBuffer::new(MOST_OUT_OF_ORDER),
            spread: SecondSpreader::default(),
            spread_entries: VecDeque::new(),
            first_us: None,
            last_us: 0,
        }
    }

    /// Takes the next entry of the log.
    pub fn push(&mut self, entry: LogEntry) {
        if let Some(earliest) = self.order.push(entry) {
            self.spread.push(earliest, &mut self.spread_entries);
        }
    }

    /// Passes on all entries that are held, as the log has ended.
    pub fn finish(&mut self) {
        while let Some(earliest) = self.order.pop() {
            self.spread.push(earliest, &mut self.spread_entries);
        }
        self.spread.finish(&mut self.spread_entries);
    }

    /// Takes the next request of which everything is known, in order of time.
    pub fn pop(&mut self) -> Option<Planned> {
        let (at_us, entry) = self.spread_entries.pop_front()?;
        let first_us = *self.first_us.get_or_insert(at_us);
        self.last_us = at_us;
        let passed_us = at_us.saturating_sub(first_us).max(0);
        Some(Planned {
            due_ns: (passed_us as f64 * NS_PER_US / self.speed) as u64,
            client: entry.client,
            requests: vec![entry.request],
            keep: true,
            logged_outcome: entry.logged_outcome,
        })
    }

    /// Planned time of the log's own time, in microseconds.
    pub fn covered_us(&self) -> i64 {
        self.first_us.map_or(0, |first_us| self.last_us.saturating_sub(first_us))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::replay::request::ReplayRequest;

    fn entry(at_us: i64, number: usize) -> LogEntry {
        let path = format!("/{number}").into_boxed_str();
        LogEntry {
            at_us,
            client: format!("c{}", number % 3).into_boxed_str(),
            request: ReplayRequest { head_only: false, is_https: false, authority: "a".into(), path },
            logged_outcome: Default::default(),
        }
    }

    fn planned(times_us: &[i64], speed: f64) -> Vec<(u64, String)> {
        let mut plan = LogPlan::new(speed);
        let mut found = Vec::new();
        for (number, at_us) in times_us.iter().enumerate() {
            plan.push(entry(*at_us, number));
            found.extend(std::iter::from_fn(|| plan.pop()));
        }
        plan.finish();
        found.extend(std::iter::from_fn(|| plan.pop()));
        found
            .into_iter()
            .map(|one| (one.due_ns, one.requests[0].path.trim_start_matches('/').to_owned()))
            .collect()
    }

    #[test]
    fn gaps_are_kept_and_a_higher_speed_makes_them_shorter() {
        let times = [1_500_000_250_000, 1_500_000_251_000, 1_500_010_250_000];
        let due = |speed| planned(&times, speed).into_iter().map(|one| one.0).collect::<Vec<_>>();
        assert_eq!(due(1.0), [0, 1_000_000, 10_000_000_000]);
        assert_eq!(due(10.0), [0, 100_000, 1_000_000_000]);
        assert_eq!(due(0.5), [0, 2_000_000, 20_000_000_000]);
    }

    #[test]
    fn requests_of_one_second_are_spread_evenly_over_it() {
        let second = 1_000_000;
        let due: Vec<u64> =
            planned(&[5 * second, 5 * second, 5 * second, 5 * second, 7 * second, 7 * second], 1.0)
                .into_iter()
                .map(|one| one.0 / 1_000_000)
                .collect();
        assert_eq!(due, [0, 250, 500, 750, 2000, 2500]);
    }

    #[test]
    fn stamps_with_fractions_are_taken_as_they_are() {
        let due: Vec<u64> = planned(&[0, 0, 500_000], 1.0).into_iter().map(|one| one.0).collect();
        assert_eq!(due, [0, 0, 500_000_000]);
    }

    #[test]
    fn lines_out_of_order_come_into_order() {
        let found = planned(&[100, 50, 200, 120], 1.0);
        let order: Vec<&str> = found.iter().map(|one| one.1.as_str()).collect();
        assert_eq!(order, ["1", "0", "3", "2"]);
        assert_eq!(found[1].0, 50_000);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_time_never_goes_back(
            gaps in prop::collection::vec(0i64..3_000_000, 1..60),
            whole in any::<bool>(),
            speed in 0.1..50.0f64,
        ) {
            let mut at_us = 1_700_000_000_000_000 + i64::from(!whole);
            let times: Vec<i64> = gaps.iter().map(|gap| {
                at_us += if whole { gap / 1_000_000 * 1_000_000 } else { *gap };
                at_us
            }).collect();
            let found = planned(&times, speed);
            prop_assert_eq!(found.len(), times.len());
            prop_assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            let numbers: Vec<String> = (0..times.len()).map(|number| number.to_string()).collect();
            prop_assert_eq!(found.iter().map(|one| one.1.clone()).collect::<Vec<_>>(), numbers, "in the log's order");
            for ((due_ns, _), at_us) in found.iter().zip(&times) {
                let passed_us = *due_ns as f64 * speed / 1000.0 - (at_us - times[0]) as f64;
                prop_assert!((-1.0..1_000_000.0).contains(&passed_us), "within its own second: {passed_us}");
                prop_assert!(whole || passed_us.abs() < 2.0, "as it stands: {passed_us}");
            }
        }
    }
}
