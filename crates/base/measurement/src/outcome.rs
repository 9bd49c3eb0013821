//! Origin of a response at the target (stored, validated, fetched), told by the ids that origins put into responses.

use serde::{Deserialize, Serialize};

/// Handling by the target of a request that got its response without error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Served from the store: the response was made by the origin before this request was sent.
    Hit,
    /// Joined another request's fetch: the response was made for another request, after this one was sent.
    Collapsed,
    /// The origin confirmed the stored response with a 304 for this very request.
    Revalidated,
    /// The origin made the response for this very request.
    Miss,
}

impl Outcome {
    pub const ALL: [Outcome; 4] = [Outcome::Hit, Outcome::Collapsed, Outcome::Revalidated, Outcome::Miss];

    /// The name used in JSON and tables.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Hit => "hit",
            Outcome::Collapsed => "collapsed",
            Outcome::Revalidated => "revalidated",
            Outcome::Miss => "miss",
        }
    }

    /// The outcome with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}
