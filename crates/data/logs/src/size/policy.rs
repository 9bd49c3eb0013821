//! The names of policies, as they are typed and shown.

use std::borrow::Cow;

use assay_base::settings::suggest::or_did_you_mean;
pub use assay_cache::policy::replacement::Replacement;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::size::error::ArgumentError;

/// A replacement policy that can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// One that a real cache can have.
    Online(Replacement),
    /// The object whose next request is latest: a bound, not a policy of a real cache.
    Belady,
    /// The object with the largest product of size and time to its next request.
    BeladySize,
    /// No cache hits more.
    BoundAbove,
    /// A cache that knows the future can hit so much.
    BoundBelow,
}

/// Policies that need future knowledge.
const OFFLINE: [Policy; 4] = [Policy::Belady, Policy::BeladySize, Policy::BoundAbove, Policy::BoundBelow];

impl Policy {
    /// Least recently used.
    pub const LRU: Self = Self::Online(Replacement::Lru);
    /// First in, first out.
    pub const FIFO: Self = Self::Online(Replacement::Fifo);

    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; Replacement::ALL.len() + OFFLINE.len()] = {
        let mut all = [Self::LRU; Replacement::ALL.len() + OFFLINE.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = match at.checked_sub(Replacement::ALL.len()) {
                Some(knowing) => OFFLINE[knowing],
                None => Self::Online(Replacement::ALL[at].0),
            };
            at += 1;
        }
        all
    };

    /// The name that is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Online(policy) => policy.name(),
            Self::Belady => "belady",
            Self::BeladySize => "belady-size",
            Self::BoundAbove => "bound-above",
            Self::BoundBelow => "bound-below",
        }
    }

    /// The name that is written in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Online(policy) => policy.title(),
            Self::Belady => "Belady's MIN",
            Self::BeladySize => "Belady's MIN by size",
            Self::BoundAbove => "the upper bound",
            Self::BoundBelow => "the lower bound of the optimum",
        }
    }

    /// The policy of a real cache; none: it needs the future.
    pub fn online(self) -> Option<Replacement> {
        match self {
            Self::Online(policy) => Some(policy),
            _ => None,
        }
    }

    /// Reads a name.
    ///
    /// # Errors
    /// A message that lists the names, and says which one is near.
    pub fn parse(text: &str) -> Result<Self, ArgumentError> {
        let is_meant = |policy: &Self| policy.name().eq_ignore_ascii_case(text.trim());
        Self::ALL.into_iter().find(is_meant).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            let near = or_did_you_mean(&text.to_ascii_lowercase(), names);
            ArgumentError::Policy { text: text.to_owned(), names: names.join(", "), near }
        })
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl JsonSchema for Policy {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A replacement policy that can be simulated.",
            "type": "string",
            "enum": Self::ALL.map(Self::name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_a_misspelt_one_gets_the_nearest() {
        for (place, policy) in Policy::ALL.into_iter().enumerate() {
            assert_eq!(Policy::parse(&policy.name().to_uppercase()), Ok(policy));
            assert!(!policy.title().is_empty() && !Policy::ALL[..place].contains(&policy));
            let written = serde_json::to_string(&policy).unwrap();
            assert_eq!(written, format!("\"{}\"", policy.name()));
        }
        let message = Policy::parse("s3fifo").unwrap_err().to_string();
        assert!(message.contains("did you mean `s3-fifo`?") && message.contains("lru, fifo"), "{message}");
    }
}
