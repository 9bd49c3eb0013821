//! Modes in which proxies are addressed, and protocols between caches.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Form of request target that robots send to a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Proxy in place of the origins: origin-form targets.
    #[default]
    Reverse,
    /// Proxy for objects of other hosts: absolute-form targets.
    Forward,
}

impl Mode {
    /// The name used on the command line, in templates and in `run.json`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The protocol by which a cache finds out what another has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum PeerProtocol {
    /// A query by datagram before each fetch (RFC 2186).
    Icp,
    /// The same with whole request heads (RFC 2756).
    Htcp,
    /// A summary of what the other has, fetched now and then.
    Digest,
    /// No query: each parent has its own share of the URLs.
    Hash,
}

impl PeerProtocol {
    /// Name in files and templates.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Relation of a cache to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PeerRelation {
    /// Gives what it has.
    Sibling,
    /// Fetches what it has not.
    Parent,
}

impl PeerRelation {
    /// Name in templates and in the record.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
