//! Policies by name, with their settings.

use crate::dispatch::policies::bounded_hash::{BoundedHash, BoundedHashSettings};
use crate::dispatch::policies::cap::{Cap, CapSettings};
use crate::dispatch::policies::cap_with_state::{CapWithState, CapWithStateSettings};
use crate::dispatch::policies::lard::{Lard, LardSettings};
use crate::dispatch::policies::lard_replicated::{LardReplicated, LardReplicatedSettings};
use crate::dispatch::policies::least_connections::LeastConnections;
use crate::dispatch::policies::peak_ewma::{PeakEwma, PeakEwmaSettings};
use crate::dispatch::policies::power_of_two::PowerOfTwo;
use crate::dispatch::policies::prequal::{Prequal, PrequalSettings};
use crate::dispatch::policies::random::Random;
use crate::dispatch::policies::round_robin::RoundRobin;
use crate::dispatch::policies::ward::Ward;
use crate::dispatch::policies::weighted_by_load::{WeightedByLoad, WeightedByLoadSettings};
use crate::dispatch::policies::weighted_least_connections::WeightedLeastConnections;
use crate::dispatch::policies::weighted_round_robin::WeightedRoundRobin;
use crate::dispatch::policy::Policy;

/// A policy and its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyConfig {
    /// `rand`
    Random,
    /// `rr`
    RoundRobin,
    /// `wrr`
    WeightedRoundRobin,
    /// `wrr-load`
    WeightedByLoad(WeightedByLoadSettings),
    /// `lc`
    LeastConnections,
    /// `wlc`
    WeightedLeastConnections,
    /// `p2c`
    PowerOfTwo,
    /// `peak-ewma`
    PeakEwma(PeakEwmaSettings),
    /// `prequal`
    Prequal(PrequalSettings),
    /// `bounded-hash`
    BoundedHash(BoundedHashSettings),
    /// `lard`
    Lard(LardSettings),
    /// `lard-r`
    LardReplicated(LardReplicatedSettings),
    /// `ward`, with the hashes of its core's documents
    Ward(Vec<u64>),
    /// `cap`
    Cap(CapSettings),
    /// `cap-state`
    CapWithState(CapWithStateSettings),
}

impl PolicyConfig {
    /// All policies with the settings of their papers. WARD has no core: that is computed for a site.
    pub fn all() -> Vec<Self> {
        vec![
            Self::Random,
            Self::RoundRobin,
            Self::WeightedRoundRobin,
            Self::WeightedByLoad(WeightedByLoadSettings::default()),
            Self::LeastConnections,
            Self::WeightedLeastConnections,
            Self::PowerOfTwo,
            Self::PeakEwma(PeakEwmaSettings::default()),
            Self::Prequal(PrequalSettings::default()),
            Self::BoundedHash(BoundedHashSettings::default()),
            Self::Lard(LardSettings::default()),
            Self::LardReplicated(LardReplicatedSettings::default()),
            Self::Ward(Vec::new()),
            Self::Cap(CapSettings::default()),
            Self::CapWithState(CapWithStateSettings::default()),
        ]
    }

    /// Policy with this name and the settings of its paper.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|choice| choice.name() == name)
    }

    /// Name in files and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Random => "rand",
            Self::RoundRobin => "rr",
            Self::WeightedRoundRobin => "wrr",
            Self::WeightedByLoad(_) => "wrr-load",
            Self::LeastConnections => "lc",
            Self::WeightedLeastConnections => "wlc",
            Self::PowerOfTwo => "p2c",
            Self::PeakEwma(_) => "peak-ewma",
            Self::Prequal(_) => "prequal",
            Self::BoundedHash(_) => "bounded-hash",
            Self::Lard(_) => "lard",
            Self::LardReplicated(_) => "lard-r",
            Self::Ward(_) => "ward",
            Self::Cap(_) => "cap",
            Self::CapWithState(_) => "cap-state",
        }
    }

    /// True if the policy chooses by the class or the document of a request.
    pub fn needs_request(&self) -> bool {
        match self {
            Self::BoundedHash(_)
            | Self::Lard(_)
            | Self::LardReplicated(_)
            | Self::Ward(_)
            | Self::Cap(_)
            | Self::CapWithState(_) => true,
            Self::Random
            | Self::RoundRobin
            | Self::WeightedRoundRobin
            | Self::WeightedByLoad(_)
            | Self::LeastConnections
            | Self::WeightedLeastConnections
            | Self::PowerOfTwo
            | Self::PeakEwma(_)
            | Self::Prequal(_) => false,
        }
    }

    /// The policy for a cluster in which everything takes `times` as long: its own time constants are scaled.
    pub fn with_time_scale(&self, times: f64) -> Self {
        let mut slower = self.clone();
        match &mut slower {
            Self::PeakEwma(settings) => settings.decay_s *= times,
            Self::Prequal(settings) => settings.age_s *= times,
            Self::LardReplicated(settings) => settings.shrink_after_s *= times,
            Self::CapWithState(settings) => settings.stale_after_s *= times,
            Self::WeightedByLoad(settings) => settings.stale_after_s *= times,
            Self::Random
            | Self::RoundRobin
            | Self::WeightedRoundRobin
            | Self::LeastConnections
            | Self::WeightedLeastConnections
            | Self::PowerOfTwo
            | Self::BoundedHash(_)
            | Self::Lard(_)
            | Self::Ward(_)
            | Self::Cap(_) => {}
        }
        slower
    }

    /// True if the policy uses reports of servers.
    pub fn wants_reports(&self) -> bool {
        matches!(self, Self::CapWithState(_) | Self::WeightedByLoad(_))
    }

    /// The policy without servers. Its random draws follow from the seed.
    pub fn build(&self, seed: u64) -> Box<dyn Policy> {
        match self {
            Self::Random => Box::new(Random::new(seed)),
            Self::RoundRobin => Box::new(RoundRobin::new()),
            Self::WeightedRoundRobin => Box::new(WeightedRoundRobin::new()),
            Self::WeightedByLoad(settings) => Box::new(WeightedByLoad::new(*settings)),
            Self::LeastConnections => Box::new(LeastConnections::new()),
            Self::WeightedLeastConnections => Box::new(WeightedLeastConnections::new()),
            Self::PowerOfTwo => Box::new(PowerOfTwo::new(seed)),
            Self::PeakEwma(settings) => Box::new(PeakEwma::new(*settings, seed)),
            Self::Prequal(settings) => Box::new(Prequal::new(*settings, seed)),
            Self::BoundedHash(settings) => Box::new(BoundedHash::new(*settings)),
            Self::Lard(settings) => Box::new(Lard::new(*settings)),
            Self::LardReplicated(settings) => Box::new(LardReplicated::new(*settings)),
            Self::Ward(core) => Box::new(Ward::new(core.iter().copied())),
            Self::Cap(settings) => Box::new(Cap::new(settings.clone())),
            Self::CapWithState(settings) => Box::new(CapWithState::new(settings.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_world_slows_what_policies_time_and_nothing_else() {
        let slow = |choice: PolicyConfig| choice.with_time_scale(5.0);
        let usual = PeakEwmaSettings::default();
        assert_eq!(
            slow(PolicyConfig::PeakEwma(usual)),
            PolicyConfig::PeakEwma(PeakEwmaSettings { decay_s: 5.0 * usual.decay_s })
        );
        let usual = PrequalSettings::default();
        assert_eq!(
            slow(PolicyConfig::Prequal(usual)),
            PolicyConfig::Prequal(PrequalSettings { age_s: 5.0 * usual.age_s, ..usual })
        );
        let usual = LardReplicatedSettings::default();
        let shrink_after_s = 5.0 * usual.shrink_after_s;
        assert_eq!(
            slow(PolicyConfig::LardReplicated(usual)),
            PolicyConfig::LardReplicated(LardReplicatedSettings { shrink_after_s, ..usual })
        );
        for timeless in ["rand", "rr", "wrr", "lc", "wlc", "p2c", "bounded-hash", "lard", "ward", "cap"] {
            let choice = PolicyConfig::from_name(timeless).expect("is there");
            assert_eq!(slow(choice.clone()), choice);
        }
        assert!(PolicyConfig::all().into_iter().all(|choice| choice.with_time_scale(1.0) == choice));
    }

    #[test]
    fn every_policy_is_found_by_the_name_that_it_gives_itself() {
        for choice in PolicyConfig::all() {
            assert_eq!(choice.build(1).name(), choice.name());
            assert_eq!(PolicyConfig::from_name(choice.name()), Some(choice));
        }
        assert_eq!(PolicyConfig::from_name("fastest"), None);
    }
}
