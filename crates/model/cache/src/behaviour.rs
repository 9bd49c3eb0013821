//! The choices that RFC 9111 leaves to a cache.

use serde::{Deserialize, Serialize};

/// Choices of a cache where RFC 9111 leaves them; declared in the proxy's description (`[behaviour]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CacheBehaviour {
    /// False for a target that stores nothing (direct): ideal is then zero.
    pub caches: bool,
    /// A HEAD miss fetches and stores the whole object.
    pub head_fills: bool,
    /// A conditional request that misses fetches and stores the whole object, not the client's condition.
    pub conditional_fills: bool,
    /// The response to a reload replaces what is stored.
    pub reload_fills: bool,
    /// A request for parts (`Range`) that misses fetches and stores the whole object.
    pub range_fills: bool,
    /// A POST to a URL drops what is stored under it.
    pub post_invalidates: bool,
    /// A request for what is being fetched for another joins that fetch, before its response has begun.
    pub collapses: bool,
    /// Where requests are not collapsed: a response that is still arriving goes to other requests too. False: it serves no other
    /// request before it is complete.
    pub shares_arriving: bool,
    /// A 304 from the origin updates the header fields of the stored response, as RFC 9111 (4.3.4) wants it, or the cache
    /// never validates at all. Where it does not hold, a validated response keeps the id of the one it was first stored
    /// from, and looks older than it is; what is stale is then judged by what validation could have found.
    pub validation_updates: bool,
    /// A GET with `no-cache` reaches the origin, as RFC 9111 (5.2.1.4) wants it. Several products ignore the field by default;
    /// where it is not declared, a reload that is served from the store is counted as the target's behaviour, and is no error.
    pub reloads_reach_origin: bool,
}

impl Default for CacheBehaviour {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl CacheBehaviour {
    /// Behaviour of a cache that does no more than RFC 9111 asks for, except that it collapses requests.
    pub const PLAIN: Self = Self {
        caches: true,
        head_fills: false,
        conditional_fills: false,
        reload_fills: true,
        range_fills: false,
        post_invalidates: true,
        collapses: true,
        shares_arriving: true,
        validation_updates: false,
        reloads_reach_origin: false,
    };

    /// Stage of a fetch from which on its response serves other requests.
    pub fn shares_from(&self) -> SharesFrom {
        match (self.collapses, self.shares_arriving) {
            (true, _) => SharesFrom::Sent,
            (false, true) => SharesFrom::Begun,
            (false, false) => SharesFrom::Complete,
        }
    }
}

/// Stage of a fetch from which on its response serves other requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharesFrom {
    /// The request has been sent: others join the fetch.
    Sent,
    /// The response has begun.
    Begun,
    /// The response is complete.
    Complete,
}
