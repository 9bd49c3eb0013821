//! Health of servers, decided from the responses to active checks and from failures of ordinary requests (passive). Time is an
//! argument.

use std::collections::VecDeque;
use std::time::Duration;

/// Consecutive check results that change the state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveRules {
    /// Good results until a server that is down is up.
    pub rise: u32,
    /// Bad results until a server that is up is down.
    pub fall: u32,
}

/// Failures of ordinary requests after which a server is ejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassiveRules {
    /// Failures that eject a server…
    pub failures: u32,
    /// …if they happen within this time.
    pub within: Duration,
    /// Time for which an ejected server gets no requests.
    pub ejection: Duration,
}

/// Health of a server by active checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveHealth {
    rules: ActiveRules,
    is_up: bool,
    /// Consecutive results that contradict the current state.
    against: u32,
}

impl ActiveHealth {
    /// Starts as up: a switch must not wait for the first checks before it serves.
    pub fn new(rules: ActiveRules) -> Self {
        Self { rules, is_up: true, against: 0 }
    }

    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// Records the result of a check; returns whether the state has changed.
    pub fn on_probe(&mut self, is_healthy: bool) -> bool {
        if is_healthy == self.is_up {
            self.against = 0;
            return false;
        }
        self.against += 1;
        let enough = if self.is_up { self.rules.fall } else { self.rules.rise };
        if self.against < enough {
            return false;
        }
        (self.is_up, self.against) = (is_healthy, 0);
        true
    }
}

/// Health of a server by the failures of its requests.
#[derive(Debug, Clone)]
pub struct PassiveHealth {
    rules: PassiveRules,
    /// Recent failures, oldest first; never more than `rules.failures`.
    failures: VecDeque<u64>,
    ejected_until_ns: Option<u64>,
}

impl PassiveHealth {
    /// Starts as admitted, without failures.
    pub fn new(rules: PassiveRules) -> Self {
        Self { rules, failures: VecDeque::new(), ejected_until_ns: None }
    }

    pub fn rules(&self) -> PassiveRules {
        self.rules
    }

    /// Whether the server may get requests.
    pub fn is_admitted(&self) -> bool {
        self.ejected_until_ns.is_none()
    }

    /// Records a failed request; returns whether it ejected the server. Failures while ejected, of requests that were under way,
    /// do not count.
    pub fn on_failure(&mut self, now_ns: u64) -> bool {
        if self.ejected_until_ns.is_some() {
            return false;
        }
        self.failures.push_back(now_ns);
        let since_ns = now_ns.saturating_sub(self.rules.within.as_nanos() as u64);
        while self.failures.front().is_some_and(|at_ns| *at_ns < since_ns) {
            self.failures.pop_front();
        }
        if (self.failures.len() as u64) < u64::from(self.rules.failures) {
            return false;
        }
        self.failures.clear();
        self.ejected_until_ns = Some(now_ns.saturating_add(self.rules.ejection.as_nanos() as u64));
        true
    }

    /// End of the current ejection.
    pub fn returns_ns(&self) -> Option<u64> {
        self.ejected_until_ns
    }

    /// Ends an ejection whose time is over; returns whether it did.
    pub fn on_time(&mut self, now_ns: u64) -> bool {
        let is_due = self.ejected_until_ns.is_some_and(|until_ns| until_ns <= now_ns);
        if is_due {
            self.ejected_until_ns = None;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_responses_in_a_row_change_the_verdict() {
        let mut server = ActiveHealth::new(ActiveRules { rise: 2, fall: 3 });
        let told: Vec<bool> =
            [false, false, true, false, false, false].into_iter().map(|well| server.on_probe(well)).collect();
        assert_eq!(told, [false, false, false, false, false, true]);
        assert!(!server.is_up());
        assert!(!server.on_probe(true) && !server.on_probe(false) && !server.on_probe(true));
        assert!(server.on_probe(true) && server.is_up());
    }

    #[test]
    fn failures_close_together_take_a_server_out_for_a_while() {
        const S: u64 = 1_000_000_000;
        let rules =
            PassiveRules { failures: 3, within: Duration::from_secs(10), ejection: Duration::from_secs(5) };
        let mut server = PassiveHealth::new(rules);
        assert!(
            !server.on_failure(0) && !server.on_failure(9 * S) && !server.on_failure(12 * S),
            "the first is long ago"
        );
        assert!(server.on_failure(18 * S) && !server.is_admitted());
        assert!(!server.on_failure(19 * S), "it is out already");
        assert_eq!(server.returns_ns(), Some(23 * S));
        assert!(!server.on_time(23 * S - 1) && server.on_time(23 * S) && server.is_admitted());
        assert!(!server.on_time(24 * S) && !server.on_failure(24 * S), "it begins anew");
    }

    proptest! {
        #[test]
        fn a_server_is_down_only_after_enough_bad_responses_since_the_last_good_one(
            responses in prop::collection::vec(any::<bool>(), 0..60), rise in 1u32..5, fall in 1u32..5,
        ) {
            let mut server = ActiveHealth::new(ActiveRules { rise, fall });
            let mut before = true;
            for (at, well) in responses.iter().enumerate() {
                server.on_probe(*well);
                if server.is_up() != before {
                    let needed = if before { fall } else { rise } as usize;
                    prop_assert!(at + 1 >= needed);
                    prop_assert!(responses[at + 1 - needed..=at].iter().all(|one| *one == server.is_up()));
                }
                before = server.is_up();
            }
        }
    }
}
