//! Origin of a response at the target (stored, validated, fetched), told by the ids that origins put into responses.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// Handling by the target of a request that got its response without error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
    /// The name used in JSON and tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
