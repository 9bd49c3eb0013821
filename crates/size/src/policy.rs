//! The names of policies, as they are typed and shown.

use assay_settings::suggest::or_did_you_mean;
use schemars::JsonSchema;
use serde::Serialize;

/// A replacement policy that can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Least recently used.
    Lru,
    /// First in, first out.
    Fifo,
    /// FIFO that passes over objects that were requested.
    Clock,
    /// Clock whose hand keeps its place.
    Sieve,
    /// Segmented LRU.
    Slru,
    /// Three FIFO queues.
    S3Fifo,
    /// Two queues, and a memory of what left the first.
    #[serde(rename = "2q")]
    TwoQ,
    /// Adaptive replacement cache.
    Arc,
    /// A small window, and a main part that admits by frequency.
    #[serde(rename = "w-tinylfu")]
    WTinyLfu,
    /// Least frequently used.
    Lfu,
    /// LFU with dynamic ageing.
    Lfuda,
    /// Greedy-Dual-Size.
    Gds,
    /// Greedy-Dual-Size-Frequency.
    Gdsf,
    /// Any object, with the same probability.
    Random,
    /// The object whose next request is latest: a bound, not a policy of a real cache.
    Belady,
    /// The object with the largest product of size and time to its next request.
    BeladySize,
    /// No cache hits more.
    BoundAbove,
    /// A cache that knows the future can hit so much.
    BoundBelow,
}

impl Policy {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 18] = [
        Self::Lru,
        Self::Fifo,
        Self::Clock,
        Self::Sieve,
        Self::Slru,
        Self::S3Fifo,
        Self::TwoQ,
        Self::Arc,
        Self::WTinyLfu,
        Self::Lfu,
        Self::Lfuda,
        Self::Gds,
        Self::Gdsf,
        Self::Random,
        Self::Belady,
        Self::BeladySize,
        Self::BoundAbove,
        Self::BoundBelow,
    ];

    /// The name that is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Fifo => "fifo",
            Self::Clock => "clock",
            Self::Sieve => "sieve",
            Self::Slru => "slru",
            Self::S3Fifo => "s3-fifo",
            Self::TwoQ => "2q",
            Self::Arc => "arc",
            Self::WTinyLfu => "w-tinylfu",
            Self::Lfu => "lfu",
            Self::Lfuda => "lfuda",
            Self::Gds => "gds",
            Self::Gdsf => "gdsf",
            Self::Random => "random",
            Self::Belady => "belady",
            Self::BeladySize => "belady-size",
            Self::BoundAbove => "bound-above",
            Self::BoundBelow => "bound-below",
        }
    }

    /// The name that is written in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Lru => "LRU",
            Self::Fifo => "FIFO",
            Self::Clock => "Clock",
            Self::Sieve => "SIEVE",
            Self::Slru => "SLRU",
            Self::S3Fifo => "S3-FIFO",
            Self::TwoQ => "2Q",
            Self::Arc => "ARC",
            Self::WTinyLfu => "W-TinyLFU",
            Self::Lfu => "LFU",
            Self::Lfuda => "LFUDA",
            Self::Gds => "GDS",
            Self::Gdsf => "GDSF",
            Self::Random => "random replacement",
            Self::Belady => "Belady's MIN",
            Self::BeladySize => "Belady's MIN by size",
            Self::BoundAbove => "the upper bound",
            Self::BoundBelow => "the lower bound of the optimum",
        }
    }

    /// True for what needs the future: no real cache can have it.
    pub fn needs_future(self) -> bool {
        matches!(self, Self::Belady | Self::BeladySize | Self::BoundAbove | Self::BoundBelow)
    }

    /// Reads a name.
    ///
    /// # Errors
    /// A message that lists the names, and says which one is near.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_meant = |policy: &Self| policy.name().eq_ignore_ascii_case(text.trim());
        Self::ALL.into_iter().find(is_meant).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            let near = or_did_you_mean(&text.to_ascii_lowercase(), names);
            format!("`{text}` is not a policy; there are {}{near}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use assay_cache::policy::replacement::Replacement;

    use super::*;

    #[test]
    fn a_real_cache_can_have_every_policy_that_needs_no_future() {
        for policy in Policy::ALL {
            let is_online = Replacement::from_name(policy.name()).is_some();
            assert_eq!(is_online, !policy.needs_future(), "{policy:?}");
        }
        assert_eq!(
            Policy::ALL.iter().filter(|policy| !policy.needs_future()).count(),
            Replacement::ALL.len()
        );
    }

    #[test]
    fn every_name_is_read_and_a_misspelt_one_gets_the_nearest() {
        for policy in Policy::ALL {
            assert_eq!(Policy::parse(&policy.name().to_uppercase()), Ok(policy));
            let written = serde_json::to_string(&policy).unwrap();
            assert_eq!(written, format!("\"{}\"", policy.name()));
        }
        let message = Policy::parse("s3fifo").unwrap_err();
        assert!(message.contains("did you mean `s3-fifo`?") && message.contains("lru, fifo"), "{message}");
    }
}
