//! The requests that an origin gives up. Those it would think about for longer than it gives any request.
//!
//! Both times are drawn, from seed and xact alone: so robots know it beforehand.

use std::time::Duration;

use crate::Purpose;
use crate::distribution::Sampler;
use crate::model::Server;
use crate::xact::XactId;
use assay_base::random::Rng;

/// Tells think times from what else is drawn for an origin.
const THINK_DRAW: u64 = 3;
/// Draws that the share of requests given up is estimated from.
const DRAWS: u64 = 4096;

/// Generator of the think time of an origin for an xact.
#[inline]
pub fn think_draws(seed: u64, xact: XactId) -> Rng {
    Rng::of(Purpose::Other, &[THINK_DRAW, seed, u64::from(xact.robot), xact.number, u64::from(xact.place)])
}

/// A kind of server that thinks, and not for ever.
#[derive(Debug)]
pub(crate) struct RequestExpiry {
    think_s: Sampler,
    lifetime_s: Sampler,
}

impl RequestExpiry {
    /// None: it responds to every request.
    pub(crate) fn new(server: &Server) -> Option<Self> {
        let (think_s, lifetime_s) = (server.think_s.as_ref()?, server.faults.lifetime_s.as_ref()?);
        Some(Self { think_s: think_s.sampler(), lifetime_s: lifetime_s.sampler() })
    }

    /// After how long a request is given up; none: it gets its response before.
    pub(crate) fn after(&self, thinks: &mut Rng, gives: &mut Rng) -> Option<Duration> {
        let (think_s, lifetime_s) = (self.think_s.sample(thinks), self.lifetime_s.sample(gives).max(0.0));
        (think_s > lifetime_s).then(|| Duration::try_from_secs_f64(lifetime_s).unwrap_or(Duration::MAX))
    }

    /// The share of requests that are given up.
    pub(crate) fn share(&self) -> f64 {
        let draws = |purpose, number| Rng::of(purpose, &[DRAWS, number]);
        let given_up = (0..DRAWS).filter(|number| {
            let after =
                self.after(&mut draws(Purpose::Other, *number), &mut draws(Purpose::Lifetime, *number));
            after.is_some()
        });
        given_up.count() as f64 / DRAWS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Distribution;

    fn share(think_s: Distribution, lifetime_s: Distribution) -> Option<f64> {
        let mut server = Server { think_s: Some(think_s), ..Server::default() };
        server.faults.lifetime_s = Some(lifetime_s);
        RequestExpiry::new(&server).map(|expiry| expiry.share())
    }

    #[test]
    fn what_needs_longer_than_it_is_given_is_given_up() {
        let uniform = Distribution::Uniform { low: 0.0, high: 2.0 };
        assert_eq!(share(Distribution::Constant(1.0), Distribution::Constant(1.0)), Some(0.0));
        assert_eq!(share(Distribution::Constant(1.1), Distribution::Constant(1.0)), Some(1.0));
        let half = share(uniform, Distribution::Constant(1.0)).expect("it may be given up");
        assert!((half - 0.5).abs() < 0.03, "{half}");
        assert!(RequestExpiry::new(&Server::default()).is_none(), "who answers at once gives nothing up");
    }
}
