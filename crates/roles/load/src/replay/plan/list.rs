//! Plan of a list: due times and connections of its URLs.
//!
//! Connections arrive at random (a Poisson process from a seed), whatever became of those before; each requests the next
//! few URLs of the list, one after the other. The list begins anew when it is used up.

use assay_base::random::{STEP, finalize};

use super::{LoggedOutcome, Planned};
use crate::replay::request::ReplayRequest;

/// Connections that request a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    pub connections: u64,
    /// Requests of each of them.
    pub requests_each: u32,
    /// Connections a second, on average.
    pub per_second: f64,
    pub seed: u64,
}

/// The plan of a list.
pub struct ListPlan {
    requests: Vec<ReplayRequest>,
    arrivals: Arrivals,
    next: u64,
    at_s: f64,
}

impl ListPlan {
    pub fn new(requests: Vec<ReplayRequest>, arrivals: Arrivals) -> Self {
        Self { requests, arrivals, next: 0, at_s: 0.0 }
    }
}

impl Iterator for ListPlan {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        if self.next >= self.arrivals.connections || self.requests.is_empty() {
            return None;
        }
        let number = self.next;
        self.next += 1;
        if number > 0 {
            // The logarithm of a number that is never 0: from 2⁻⁵³ to 1.
            let chance = ((mixed(self.arrivals.seed, number) >> 11) + 1) as f64 / (1u64 << 53) as f64;
            self.at_s += -libm::log(chance) / self.arrivals.per_second;
        }
        let each = u64::from(self.arrivals.requests_each);
        let place = |request: u64| {
            (number.wrapping_mul(each).wrapping_add(request) % self.requests.len() as u64) as usize
        };
        Some(Planned {
            due_ns: (self.at_s * 1e9) as u64,
            client: format!("connection {number}").into_boxed_str(),
            requests: (0..each).map(|request| self.requests[place(request)].clone()).collect(),
            keep: false,
            logged_outcome: LoggedOutcome::default(),
        })
    }
}

/// Pseudo-random number from a seed and a number.
fn mixed(seed: u64, number: u64) -> u64 {
    finalize(seed ^ number.wrapping_mul(STEP))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn requests(count: usize) -> Vec<ReplayRequest> {
        (0..count)
            .map(|n| ReplayRequest::new(false, format!("http://a/{n}").as_bytes(), None).unwrap())
            .collect()
    }

    #[test]
    fn arrivals_are_those_of_a_poisson_process() {
        let arrivals = Arrivals { connections: 20_000, requests_each: 1, per_second: 50.0, seed: 3 };
        let due: Vec<f64> = ListPlan::new(requests(7), arrivals).map(|one| one.due_ns as f64 / 1e9).collect();
        let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 50.0 - 1.0).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "its deviation is its mean");
        let longer = gaps.iter().filter(|gap| **gap > mean).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1.0f64).exp()).abs() < 0.02, "{longer}");
    }

    proptest! {
        #[test]
        fn the_list_is_gone_through_in_order_and_again(
            urls in 1usize..20, connections in 0u64..50, each in 1u32..5, seed: u64,
        ) {
            let arrivals = Arrivals { connections, requests_each: each, per_second: 10.0, seed };
            let plan: Vec<Planned> = ListPlan::new(requests(urls), arrivals.clone()).collect();
            prop_assert_eq!(plan.len() as u64, connections);
            prop_assert!(plan.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns));
            let requested: Vec<String> =
                plan.iter().flat_map(|one| &one.requests).map(|request| request.path.to_string()).collect();
            let expected: Vec<String> = (0..requested.len()).map(|n| format!("/{}", n % urls)).collect();
            prop_assert_eq!(requested, expected);
            let again: Vec<Planned> = ListPlan::new(requests(urls), arrivals).collect();
            prop_assert_eq!(plan, again, "the same seed, the same plan");
        }
    }
}
