//! How long robots of a group are busy and idle.

use crate::Purpose;
use crate::distribution::Sampler;
use crate::model::{Distribution, RobotGroup, Session};
use assay_base::random::Rng;

/// Session lengths of a group, ready for draws.
#[derive(Debug)]
pub(crate) struct SessionTable {
    /// Length of a busy period; none: the robot counts.
    pub(crate) busy_s: Option<f64>,
    idle: Sampler,
    /// The mean share of time in which a robot is busy; 1 when that depends on counts.
    pub(crate) busy_share: f64,
    /// Transactions after which a busy period of a robot without a rate ends; none: it need not count.
    pub(crate) transactions: Option<u64>,
}

impl SessionTable {
    pub(crate) fn new(session: &Session, group: &RobotGroup) -> Self {
        let goal = &session.busy;
        let positive = |count: Option<u64>| count.filter(|count| *count > 0);
        let counted_s =
            positive(goal.transactions).zip(group.pace.per_second()).map(|(n, rate)| n as f64 / rate);
        let timed_s = goal.duration.map(|duration| duration.as_secs_f64()).filter(|s| *s > 0.0);
        let busy_s = match (counted_s, timed_s) {
            (Some(counted_s), Some(timed_s)) => Some(counted_s.min(timed_s)),
            (either, other) => either.or(other),
        };
        let idle_s = mean_of(&session.idle_s);
        Self {
            busy_share: busy_s.map_or(1.0, |busy_s| busy_s / (busy_s + idle_s)),
            busy_s,
            idle: session.idle_s.sampler(),
            transactions: positive(goal.transactions).filter(|_| group.pace.is_closed()),
        }
    }

    /// The length of an idle period.
    pub(crate) fn idle_s(&self, rng: &mut Rng) -> f64 {
        libm::fabs(self.idle.sample(rng))
    }
}

/// The mean of draws that lose their sign, by many of them where no formula says it.
fn mean_of(idle_s: &Distribution) -> f64 {
    const DRAWS: u32 = 4096;
    let mean = idle_s.mean();
    if mean >= 4.0 * idle_s.deviation() || !matches!(idle_s, Distribution::Normal { .. }) {
        return libm::fabs(mean);
    }
    let (sampler, mut rng) = (idle_s.sampler(), Rng::of(Purpose::Session, &[]));
    (0..DRAWS).map(|_| libm::fabs(sampler.sample(&mut rng))).sum::<f64>() / f64::from(DRAWS)
}
