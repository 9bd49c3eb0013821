//! Health checks of servers. Two judges that see only what they are given: one the responses to its own probes,
//! one at how ordinary requests fared. Time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

/// How many responses in a row change the verdict of a server that is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveRules {
    /// Good responses until a server that is down is up.
    pub rise: u32,
    /// Bad responses until a server that is up is down.
    pub fall: u32,
}

/// When failures of ordinary requests take a server out, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassiveRules {
    /// So many failures…
    pub failures: u32,
    /// …in so much time…
    pub within: Duration,
    /// …take it out for so long.
    pub out: Duration,
}

/// A server that is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    rules: ActiveRules,
    is_up: bool,
    /// Responses in a row that speak against the verdict.
    against: u32,
}

impl Active {
    /// Taken for well until probes say otherwise: a switch that starts must not wait for its first probes.
    pub fn new(rules: ActiveRules) -> Self {
        Self { rules, is_up: true, against: 0 }
    }

    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// A response; whether the verdict has changed.
    pub fn responded(&mut self, is_well: bool) -> bool {
        if is_well == self.is_up {
            self.against = 0;
            return false;
        }
        self.against += 1;
        let enough = if self.is_up { self.rules.fall } else { self.rules.rise };
        if self.against < enough {
            return false;
        }
        (self.is_up, self.against) = (is_well, 0);
        true
    }
}

/// A server whose requests are watched.
#[derive(Debug, Clone)]
pub struct Passive {
    rules: PassiveRules,
    /// When it failed, in nanoseconds, oldest first; no more than count.
    failures: VecDeque<u64>,
    out_until_ns: Option<u64>,
}

impl Passive {
    /// One that has not failed.
    pub fn new(rules: PassiveRules) -> Self {
        Self { rules, failures: VecDeque::new(), out_until_ns: None }
    }

    /// What it is judged by.
    pub fn rules(&self) -> PassiveRules {
        self.rules
    }

    /// Whether it may get requests.
    pub fn is_in(&self) -> bool {
        self.out_until_ns.is_none()
    }

    /// A request failed; whether that took it out. Failures of requests that it had when it went out count for nothing.
    pub fn failed(&mut self, now_ns: u64) -> bool {
        if self.out_until_ns.is_some() {
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
        self.out_until_ns = Some(now_ns.saturating_add(self.rules.out.as_nanos() as u64));
        true
    }

    /// When it comes back.
    pub fn back_ns(&self) -> Option<u64> {
        self.out_until_ns
    }

    /// Time has passed; whether that brought it back.
    pub fn passed(&mut self, now_ns: u64) -> bool {
        let is_due = self.out_until_ns.is_some_and(|until_ns| until_ns <= now_ns);
        if is_due {
            self.out_until_ns = None;
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
        let mut server = Active::new(ActiveRules { rise: 2, fall: 3 });
        let told: Vec<bool> = [false, false, true, false, false, false]
            .into_iter()
            .map(|well| server.responded(well))
            .collect();
        assert_eq!(told, [false, false, false, false, false, true]);
        assert!(!server.is_up());
        assert!(!server.responded(true) && !server.responded(false) && !server.responded(true));
        assert!(server.responded(true) && server.is_up());
    }

    #[test]
    fn failures_close_together_take_a_server_out_for_a_while() {
        const S: u64 = 1_000_000_000;
        let rules =
            PassiveRules { failures: 3, within: Duration::from_secs(10), out: Duration::from_secs(5) };
        let mut server = Passive::new(rules);
        assert!(
            !server.failed(0) && !server.failed(9 * S) && !server.failed(12 * S),
            "the first is long ago"
        );
        assert!(server.failed(18 * S) && !server.is_in());
        assert!(!server.failed(19 * S), "it is out already");
        assert_eq!(server.back_ns(), Some(23 * S));
        assert!(!server.passed(23 * S - 1) && server.passed(23 * S) && server.is_in());
        assert!(!server.passed(24 * S) && !server.failed(24 * S), "it begins anew");
    }

    proptest! {
        #[test]
        fn a_server_is_down_only_after_enough_bad_responses_since_the_last_good_one(
            responses in prop::collection::vec(any::<bool>(), 0..60), rise in 1u32..5, fall in 1u32..5,
        ) {
            let mut server = Active::new(ActiveRules { rise, fall });
            let mut before = true;
            for (at, well) in responses.iter().enumerate() {
                server.responded(*well);
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
