//! Who sent requests and where they came from: user agents by the rules of [`crate::agent`], referrers by site.

use strum::VariantArray;

use super::tally::{GroupTally, RequestSample};
use crate::agent::{self, Family};
use crate::hash::hash;
use crate::referrer;
use crate::sketch::distinct::DistinctCounter;
use crate::sketch::heavy_hitters::{Entry, HeavyHitters, Weights};
use crate::sketch::time_counts::TimeCounts;

/// Texts of user agents that are followed one by one.
const MAX_AGENTS: usize = 16_384;
/// Referring sites that are followed one by one.
const MAX_SITES: usize = 16_384;

/// Requests of a group, and how they went over time.
#[derive(Debug, Clone, Default)]
pub(super) struct SenderCounts {
    pub tally: GroupTally,
    pub over_time: TimeCounts,
}

impl SenderCounts {
    #[inline]
    pub(super) fn count(&mut self, counted: RequestSample, second: Option<i64>) {
        self.tally.count(counted);
        if let Some(second) = second {
            self.over_time.count(second);
        }
    }
}

#[derive(Debug)]
pub(super) struct AgentTable {
    /// Texts, with the places of their families.
    pub texts: HeavyHitters<u16>,
    pub different: DistinctCounter,
    /// Requests by family, in the order of [`agent::families`].
    pub families: Vec<SenderCounts>,
}

impl Default for AgentTable {
    fn default() -> Self {
        Self {
            texts: HeavyHitters::new(MAX_AGENTS),
            different: DistinctCounter::default(),
            families: vec![SenderCounts::default(); agent::families().len()],
        }
    }
}

impl AgentTable {
    /// Counts a request; the kind of its user agent.
    #[inline]
    pub(super) fn count(
        &mut self,
        text: &[u8],
        counted: RequestSample,
        second: Option<i64>,
    ) -> agent::AgentKind {
        let family = if text.is_empty() { agent::NO_AGENT } else { self.count_text(text, counted.bytes) };
        self.families[family].count(counted, second);
        agent::families()[family].kind
    }

    #[inline]
    fn count_text(&mut self, text: &[u8], bytes: u64) -> usize {
        let key = hash(text);
        let one = Weights { requests: 1, bytes, misses: 0 };
        match self.texts.find(key) {
            Some(entry) => {
                entry.sums += one;
                usize::from(entry.more)
            }
            None => self.add_text(key, text, one),
        }
    }

    #[cold]
    fn add_text(&mut self, key: u64, text: &[u8], one: Weights) -> usize {
        self.different.insert(key);
        let family = agent::family_index(text);
        let entry = self.texts.add(key, |kept| kept.extend_from_slice(text));
        entry.sums += one;
        entry.more = family as u16;
        family
    }

    /// Families that were seen, with their requests.
    pub(super) fn nonempty(&self) -> impl Iterator<Item = (Family, &SenderCounts)> {
        let all = agent::families().iter().copied().zip(&self.families);
        all.filter(|(_, row)| row.tally.requests() > 0)
    }
}

#[derive(Debug)]
pub(super) struct ReferrerTable {
    pub sites: HeavyHitters<SenderCounts>,
    pub different: DistinctCounter,
    /// Requests by kind, in the order of [`referrer::ReferrerKind::VARIANTS`].
    pub kinds: Vec<SenderCounts>,
}

impl Default for ReferrerTable {
    fn default() -> Self {
        Self {
            sites: HeavyHitters::new(MAX_SITES),
            different: DistinctCounter::default(),
            kinds: vec![SenderCounts::default(); referrer::ReferrerKind::VARIANTS.len()],
        }
    }
}

impl ReferrerTable {
    /// Counts a request; the kind of its referrer.
    #[inline]
    pub(super) fn count(
        &mut self,
        text: &[u8],
        host: &[u8],
        counted: RequestSample,
        second: Option<i64>,
    ) -> referrer::ReferrerKind {
        let (kind, site) = referrer::classify(text, host);
        self.kinds[kind as usize].count(counted, second);
        if kind == referrer::ReferrerKind::Site {
            let key = hash(site);
            let count = |entry: &mut Entry<SenderCounts>| {
                entry.sums += Weights { requests: 1, bytes: counted.bytes, misses: 0 };
                entry.more.count(counted.without_duration(), second);
            };
            match self.sites.find(key) {
                Some(entry) => count(entry),
                None => {
                    self.different.insert(key);
                    count(self.sites.add(key, |kept| kept.extend_from_slice(site)));
                }
            }
        }
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;

    fn one() -> RequestSample {
        RequestSample::new(Class::Hit, 10, None)
    }

    #[test]
    fn an_agent_in_a_crowd_of_others_is_still_counted_with_its_family() {
        let mut agents = AgentTable::default();
        for other in 0..40_000 {
            assert_eq!(agents.count(b"curl/8.11.0", one(), Some(0)), agent::AgentKind::Tool);
            agents.count(format!("scanner {other}").as_bytes(), one(), Some(0));
        }
        let curl = agents.texts.entries().max_by_key(|entry| entry.sums.requests).unwrap();
        assert_eq!((curl.text.as_slice(), curl.sums.requests), (b"curl/8.11.0".as_slice(), 40_000));
        assert!(agents.texts.floor().requests > 0 && agents.texts.len() <= MAX_AGENTS);
        // Families are exact, whatever became of the texts.
        let nonempty: Vec<_> =
            agents.nonempty().map(|(family, row)| (family.name, row.tally.requests())).collect();
        assert_eq!(nonempty, [("unknown", 40_000), ("curl", 40_000)]);
    }

    #[test]
    fn requests_are_counted_by_kind_of_referrer_and_by_site() {
        let mut referrers = ReferrerTable::default();
        for text in
            ["", "http://own/", "https://a.example/x", "https://a.example/y", "https://b.example/", "x"]
        {
            referrers.count(text.as_bytes(), b"own", one(), None);
        }
        let kinds: Vec<u64> = referrers.kinds.iter().map(|row| row.tally.requests()).collect();
        assert_eq!(kinds, [1, 1, 3, 1]);
        let mut sites: Vec<_> =
            referrers.sites.entries().map(|entry| (entry.text.clone(), entry.sums.requests)).collect();
        sites.sort();
        assert_eq!(sites, [(b"a.example".to_vec(), 2), (b"b.example".to_vec(), 1)]);
    }
}
