//! Peak EWMA: of two servers at random the one whose recent response time, times its requests, is lower.
//!
//! Each server has a moving average of response times that jumps to every peak at once and decays slowly, in time rather
//! than in requests; the cost of a server is that average times the requests it has, plus one. So it turns away from a
//! server that became slow before its queue shows it. A server that has not responded yet but has requests is taken for
//! very slow, so a new one is tried with one request. A client that left says how long a response takes at least: that is a
//! peak, or nothing. Source: Twitter's Finagle, `PeakEwma` (2013), later in Linkerd.

use assay_base::random::{Rng, mix};

use crate::dispatch::in_flight::InFlight;
use crate::dispatch::members::{MemberIndex, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Completion, Policy, Request, RequestOutcome, ServerId};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakEwmaSettings {
    /// In so many seconds the average forgets all but 37 %.
    pub decay_s: f64,
}

impl Default for PeakEwmaSettings {
    fn default() -> Self {
        Self { decay_s: 10.0 }
    }
}

/// Cost of a server that has requests and has never responded: more than any that has.
const UNKNOWN: f64 = 1e18;

#[derive(Debug, Clone)]
pub struct PeakEwma {
    settings: PeakEwmaSettings,
    members: Members,
    in_flight: InFlight,
    averages: Vec<Average>,
    draws: Rng,
}

#[derive(Debug, Clone, Copy, Default)]
struct Average {
    nanos: f64,
    at: Moment,
}

impl Average {
    fn observe(&mut self, nanos: f64, decay_s: f64, now: Moment) {
        if nanos > self.nanos {
            self.nanos = nanos;
        } else {
            let kept = libm::exp(-now.secs_since(self.at) / decay_s);
            self.nanos = self.nanos * kept + nanos * (1.0 - kept);
        }
        self.at = self.at.max(now);
    }

    /// A response would have taken longer than this. Nothing is known of a server that has never responded: it stays so.
    fn observe_at_least(&mut self, nanos: f64, now: Moment) {
        if self.nanos > 0.0 && nanos > self.nanos {
            self.nanos = nanos;
            self.at = self.at.max(now);
        }
    }
}

impl PeakEwma {
    /// Draws follow from the seed.
    pub fn new(settings: PeakEwmaSettings, seed: u64) -> Self {
        Self {
            settings,
            members: Members::default(),
            in_flight: InFlight::default(),
            averages: Vec::new(),
            draws: Rng::new(mix(seed)),
        }
    }

    fn average(&mut self, server: ServerId) -> &mut Average {
        if self.averages.len() <= server.index() {
            self.averages.resize(server.index() + 1, Average::default());
        }
        &mut self.averages[server.index()]
    }

    fn cost(&mut self, member: MemberIndex, now: Moment) -> f64 {
        let server = self.members.at(member);
        let (decay_s, requests) = (self.settings.decay_s, f64::from(self.in_flight.count(server)));
        let average = self.average(server);
        // An average that is not fed falls: a server that was avoided is tried again.
        average.observe(0.0, decay_s, now);
        let nanos = average.nanos;
        let cost = if nanos == 0.0 && requests > 0.0 { UNKNOWN + requests } else { nanos * (requests + 1.0) };
        cost / self.members.weight(member)
    }
}

impl Policy for PeakEwma {
    fn name(&self) -> &'static str {
        "peak-ewma"
    }

    fn servers(&self) -> &[ServerId] {
        self.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, now: Moment) {
        if self.members.insert(server, weight).is_some() {
            // What it was before it went says nothing.
            *self.average(server) = Average { nanos: 0.0, at: now };
        }
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        self.members.remove(server);
    }

    fn choose(&mut self, _request: &Request, now: Moment) -> Option<ServerId> {
        let Some([one, other]) = self.members.draw_two(&mut self.draws) else {
            return self.members.servers().first().copied();
        };
        let cheaper = if self.cost(other, now) < self.cost(one, now) { other } else { one };
        Some(self.members.at(cheaper))
    }

    fn started(&mut self, server: ServerId, _request: &Request, _now: Moment) {
        self.in_flight.started(server);
    }

    fn finished(&mut self, server: ServerId, _request: &Request, completion: &Completion, now: Moment) {
        self.in_flight.finished(server);
        let (decay_s, nanos) = (self.settings.decay_s, completion.took_nanos as f64);
        let average = self.average(server);
        match completion.outcome {
            RequestOutcome::Responded | RequestOutcome::Failed => average.observe(nanos, decay_s, now),
            RequestOutcome::Left => average.observe_at_least(nanos, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{ANY, finish, up};
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Moment {
        Moment::from_nanos(ms * MS)
    }

    #[test]
    fn a_peak_counts_at_once_and_is_forgotten_slowly() {
        let mut average = Average::default();
        average.observe(10.0, 1.0, at(0));
        average.observe(100.0, 1.0, at(1));
        assert_eq!(average.nanos, 100.0);
        average.observe(0.0, 1.0, at(1001));
        assert!((average.nanos - 100.0 / std::f64::consts::E).abs() < 1e-9);
    }

    #[test]
    fn the_server_that_became_slow_is_avoided_and_tried_again_later() {
        let mut policy = PeakEwma::new(PeakEwmaSettings::default(), 1);
        up(&mut policy, 2);
        for (server, took) in [(0, MS), (1, 50 * MS)] {
            policy.started(ServerId(server), &ANY, at(0));
            finish(&mut policy, server, took, at(1));
        }
        let named = |policy: &mut PeakEwma, now| policy.choose(&ANY, now).unwrap().0;
        assert!((0..50).all(|_| named(&mut policy, at(2)) == 0));
        for second in 1..60 {
            policy.started(ServerId(0), &ANY, at(second * 1000));
            finish(&mut policy, 0, MS, at(second * 1000 + 1));
        }
        assert_eq!(named(&mut policy, at(59_100)), 1, "50 ms a minute ago weigh less than 1 ms just now");
    }

    #[test]
    fn a_server_without_a_response_so_far_gets_one_request() {
        let mut policy = PeakEwma::new(PeakEwmaSettings::default(), 1);
        up(&mut policy, 2);
        policy.started(ServerId(0), &ANY, at(0));
        finish(&mut policy, 0, MS, at(1));
        assert_eq!(policy.choose(&ANY, at(1)), Some(ServerId(1)), "it costs nothing yet");
        policy.started(ServerId(1), &ANY, at(1));
        assert!((0..20).all(|_| policy.choose(&ANY, at(1)) == Some(ServerId(0))));
    }

    /// What a server costs after requests, each with milliseconds before it, how long it took, and what it ended with; and after a
    /// rest.
    fn cost_after(requests: impl IntoIterator<Item = (u64, u64, RequestOutcome)>, rest_ms: u64) -> f64 {
        let mut policy = PeakEwma::new(PeakEwmaSettings::default(), 1);
        up(&mut policy, 1);
        let mut now_ms = 0;
        for (before_ms, took_ms, end) in requests {
            now_ms += before_ms;
            policy.started(ServerId(0), &ANY, at(now_ms));
            now_ms += took_ms;
            let completion = Completion { took_nanos: took_ms * MS, outcome: end };
            policy.finished(ServerId(0), &ANY, &completion, at(now_ms));
        }
        policy.started(ServerId(0), &ANY, at(now_ms));
        policy.cost(MemberIndex(0), at(now_ms + rest_ms))
    }

    proptest! {
        #[test]
        fn a_request_that_its_client_left_never_makes_a_server_look_faster(
            requests in proptest::collection::vec((0u64..20_000, 1u64..5_000, any::<bool>()), 1..20),
        ) {
            let all = requests.iter().map(|&(before_ms, took_ms, left)| {
                (before_ms, took_ms, if left { RequestOutcome::Left } else { RequestOutcome::Responded })
            });
            // Where those are not counted, their time passes all the same.
            let mut passed_ms = 0;
            let mut others = Vec::new();
            for &(before_ms, took_ms, left) in &requests {
                passed_ms += before_ms;
                if left {
                    passed_ms += took_ms;
                } else {
                    others.push((std::mem::take(&mut passed_ms), took_ms, RequestOutcome::Responded));
                }
            }
            prop_assert!(cost_after(all, 0) >= cost_after(others, passed_ms));
        }
    }

    #[test]
    fn a_client_that_leaves_after_long_tells_that_the_server_is_slow_and_one_that_leaves_soon_tells_nothing()
    {
        let after = |took_ms, end| cost_after([(0, 100, RequestOutcome::Responded), (0, took_ms, end)], 0);
        assert_eq!(after(3000, RequestOutcome::Left), after(3000, RequestOutcome::Responded));
        assert_eq!(after(1, RequestOutcome::Left), cost_after([(0, 100, RequestOutcome::Responded)], 1));
        assert_eq!(cost_after([(0, 1, RequestOutcome::Left)], 0), UNKNOWN + 1.0, "it has not responded yet");
    }
}
