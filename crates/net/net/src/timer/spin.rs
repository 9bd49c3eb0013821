//! When a timer stops sleeping and begins to poll. Pure: time is an argument.
//!
//! Waking up takes longer than a poll, so whoever must be punctual sleeps until a little before the deadline and polls for
//! the rest. At least half of each wait is slept through, whatever the caller wants: a thread with real-time priority that
//! never sleeps takes its processor away from everybody else.

/// Action of a dispatcher until the next deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpinAction {
    /// None: the deadline has passed.
    Over,
    /// Looks at the clock again, after the sockets had their turn.
    Poll,
    /// Sleeps until this instant, then decides again.
    Sleep(u64),
}

/// Spinning before deadlines: for how long a timer polls, and for which deadline.
#[derive(Debug, Clone, Copy)]
pub struct Spin {
    longest_ns: u64,
    /// The deadline that was waited for last.
    deadline_ns: u64,
    /// Time from which on it polls.
    from_ns: u64,
}

impl Spin {
    /// Polls for so long before a deadline; 0: never.
    pub fn new(longest_ns: u64) -> Self {
        Self { longest_ns, deadline_ns: 0, from_ns: 0 }
    }

    /// Action at `now_ns` until `deadline_ns`.
    #[inline]
    pub fn wait(&mut self, deadline_ns: u64, now_ns: u64) -> SpinAction {
        if deadline_ns <= now_ns {
            return SpinAction::Over;
        }
        if self.longest_ns == 0 {
            return SpinAction::Sleep(deadline_ns);
        }
        if self.deadline_ns != deadline_ns {
            let half_ns = (deadline_ns - now_ns) / 2;
            self.deadline_ns = deadline_ns;
            self.from_ns = deadline_ns - self.longest_ns.min(half_ns);
        }
        if self.from_ns <= now_ns { SpinAction::Poll } else { SpinAction::Sleep(self.from_ns) }
    }

    /// Whether to look for responses again rather than sleep until one comes: for as long as before deadlines, after
    /// something was done at `active_ns` by which one can have been requested.
    #[inline]
    pub fn polls_for_responses(&self, active_ns: u64, now_ns: u64) -> bool {
        now_ns < active_ns.saturating_add(self.longest_ns)
    }

    /// The latest instant to wake up at for a deadline that has just become known.
    #[inline]
    pub fn wake_ns(&self, deadline_ns: u64) -> u64 {
        deadline_ns.saturating_sub(self.longest_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_polls_for_responses_for_as_long_as_for_deadlines_and_never_without_spin() {
        assert!(Spin::new(50).polls_for_responses(1_000, 1_049));
        assert!(!Spin::new(50).polls_for_responses(1_000, 1_050));
        assert!(!Spin::new(0).polls_for_responses(1_000, 1_000));
    }

    #[test]
    fn without_spin_it_sleeps_up_to_the_deadline() {
        let mut spin = Spin::new(0);
        assert_eq!(spin.wait(100, 0), SpinAction::Sleep(100));
        assert_eq!(spin.wait(100, 99), SpinAction::Sleep(100));
        assert_eq!(spin.wait(100, 100), SpinAction::Over);
    }

    #[test]
    fn it_sleeps_first_and_polls_at_the_end() {
        let mut spin = Spin::new(50);
        assert_eq!(spin.wait(1_000, 0), SpinAction::Sleep(950));
        assert_eq!(spin.wait(1_000, 949), SpinAction::Sleep(950), "woken for something else");
        assert_eq!(spin.wait(1_000, 950), SpinAction::Poll);
        assert_eq!(spin.wait(1_000, 999), SpinAction::Poll);
        assert_eq!(spin.wait(1_000, 1_000), SpinAction::Over);
    }

    #[test]
    fn half_of_a_short_wait_is_slept_through() {
        let mut spin = Spin::new(50);
        assert_eq!(spin.wait(40, 0), SpinAction::Sleep(20));
        assert_eq!(spin.wait(40, 20), SpinAction::Poll);
    }

    proptest! {
        #[test]
        fn never_more_than_half_of_the_time_is_polled(
            longest_ns in 0u64..500, gaps in prop::collection::vec(0u64..300, 1..100),
        ) {
            let mut spin = Spin::new(longest_ns);
            let (mut now_ns, mut deadline_ns, mut polled_ns) = (0, 0, 0);
            for gap_ns in gaps {
                deadline_ns += gap_ns;
                loop {
                    match spin.wait(deadline_ns, now_ns) {
                        SpinAction::Over => break,
                        SpinAction::Poll => {
                            polled_ns += 1;
                            now_ns += 1;
                        }
                        SpinAction::Sleep(until_ns) => {
                            prop_assert!(now_ns < until_ns && until_ns <= deadline_ns);
                            now_ns = until_ns;
                        }
                    }
                }
                prop_assert_eq!(now_ns, deadline_ns, "neither early nor late");
            }
            prop_assert!(2 * polled_ns <= now_ns, "{} of {}", polled_ns, now_ns);
        }
    }
}
