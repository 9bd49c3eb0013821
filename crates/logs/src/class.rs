//! What became of a request. The words of all proxies, in one list of classes.

use schemars::JsonSchema;
use serde::Serialize;

/// What became of a request, as its proxy wrote it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Class {
    /// Served from the cache's memory.
    MemoryHit,
    /// Served from the cache's disk.
    DiskHit,
    /// Served from the cache; where it lay is not said.
    Hit,
    /// Joined a fetch that was under way.
    Joined,
    /// Served by a sibling cache that had it.
    SiblingHit,
    /// Served by a parent cache that had it.
    ParentHit,
    /// Served from the cache after the origin had confirmed it.
    Revalidated,
    /// Fetched.
    Miss,
    /// A connection passed through, unseen.
    Tunnel,
    /// Failed, was broken off, or got a status of 500 and above without a hit.
    Error,
    /// Refused by the proxy.
    Denied,
    /// The log does not say.
    Unknown,
    /// No request of a client: a query of another cache (ICP, HTCP), whose response is a hit.
    QueryHit,
    /// The same, with any other response.
    QueryMiss,
    /// A connection without a request.
    Nothing,
}

/// Number of classes that are requests; the others come behind them.
pub const REQUEST_CLASSES: usize = 12;

impl Class {
    /// The classes of requests, in the order in which they are shown.
    pub const REQUESTS: [Class; REQUEST_CLASSES] = [
        Class::MemoryHit,
        Class::DiskHit,
        Class::Hit,
        Class::Joined,
        Class::SiblingHit,
        Class::ParentHit,
        Class::Revalidated,
        Class::Miss,
        Class::Tunnel,
        Class::Error,
        Class::Denied,
        Class::Unknown,
    ];

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Class::MemoryHit => "memory hit",
            Class::DiskHit => "disk hit",
            Class::Hit => "hit",
            Class::Joined => "joined",
            Class::SiblingHit => "sibling hit",
            Class::ParentHit => "parent hit",
            Class::Revalidated => "revalidated",
            Class::Miss => "miss",
            Class::Tunnel => "tunnel",
            Class::Error => "error",
            Class::Denied => "denied",
            Class::Unknown => "unknown",
            Class::QueryHit => "peer query, hit",
            Class::QueryMiss => "peer query, miss",
            Class::Nothing => "no request",
        }
    }

    /// Served by this cache without help.
    pub fn is_local_hit(self) -> bool {
        matches!(self, Class::MemoryHit | Class::DiskHit | Class::Hit | Class::Joined)
    }

    /// Served by this cache or by a peer that had it.
    pub fn is_hit(self) -> bool {
        self.is_local_hit() || matches!(self, Class::SiblingHit | Class::ParentHit)
    }

    /// A request of a client.
    pub fn is_request(self) -> bool {
        (self as usize) < REQUEST_CLASSES
    }
}

/// What a proxy's word for an outcome says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Exactly this class.
    Class(Class),
    /// Fetched from somewhere; the hierarchy code may say more.
    Fetched,
    /// The cache had no part in it.
    NoCache,
    /// Not known.
    Unknown,
}

/// What a hierarchy code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// A sibling had it.
    SiblingHit,
    /// A parent had it.
    ParentHit,
    /// Nothing about hits.
    Other,
}

/// Reads a proxy's word for an outcome.
pub fn word(text: &[u8]) -> Word {
    let mut upper = [0; 64];
    let length = text.len().min(upper.len());
    upper[..length].copy_from_slice(&text[..length]);
    upper.make_ascii_uppercase();
    let code = &upper[..length];
    let has = |part: &str| memchr::memmem::find(code, part.as_bytes()).is_some();
    if code.is_empty() {
        return Word::Unknown;
    }
    if code.starts_with(b"UDP_") || code.starts_with(b"ICP_") {
        return Word::Class(if has("HIT") { Class::QueryHit } else { Class::QueryMiss });
    }
    if has("DENIED") {
        return Word::Class(Class::Denied);
    }
    // TCP_MISS_ABORTED and its like: the client or a time-out ended it.
    if code.starts_with(b"ERR") || has("ABORTED") || has("TIMEDOUT") || has("FAIL_ERR") || has("ERROR") {
        return Word::Class(Class::Error);
    }
    if has("TUNNEL") || code == b"PIPE" {
        return Word::Class(Class::Tunnel);
    }
    if code.starts_with(b"TAG_NONE") || code.starts_with(b"NONE") || code == b"SYNTH" || code == b"<NOSRV>" {
        return Word::NoCache;
    }
    if has("CF_HIT") || has("CF_MISS") {
        return Word::Class(Class::Joined);
    }
    if has("REFRESH_UNMODIFIED") || has("REFRESH_HIT") || has("REVALIDATED") || has("CONDITIONAL CACHE HIT") {
        return Word::Class(Class::Revalidated);
    }
    if has("MEM_HIT") || has("CACHE>") || has("RAM_HIT") {
        return Word::Class(Class::MemoryHit);
    }
    // What Varnish remembers as not worth caching is called a hit on that, and is fetched.
    let fetched = [
        "MISS",
        "HITPASS",
        "HIT-FOR",
        "PASS",
        "EXPIRED",
        "REFRESH_MODIFIED",
        "NO-STORE",
        "INVALIDATED",
        "HTTP STATUS",
    ];
    if fetched.iter().any(|part| has(part)) {
        return Word::Fetched;
    }
    if code == b"TCP_HIT" {
        return Word::Class(Class::DiskHit);
    }
    // Squid and nginx serve what is stale while, or because, a refresh cannot be had.
    if has("HIT") || has("STALE") || has("UPDATING") || has("REFRESH_FAIL") {
        return Word::Class(Class::Hit);
    }
    Word::Unknown
}

/// Reads a hierarchy code.
pub fn route(text: &[u8]) -> Route {
    let has = |part: &str| memchr::memmem::find(text, part.as_bytes()).is_some();
    if has("SIBLING_HIT") {
        Route::SiblingHit
    } else if has("PARENT_HIT") {
        Route::ParentHit
    } else {
        Route::Other
    }
}

/// What became of a request, from its line.
pub fn of(access: &crate::access::Access<'_>) -> Class {
    let word = if access.outcome.is_empty() { Word::Unknown } else { word(access.outcome) };
    class(word, route(access.hierarchy), access.termination, access.status)
}

/// What became of a request. `termination` is HAProxy's.
#[inline]
pub fn class(word: Word, route: Route, termination: &[u8], status: u16) -> Class {
    let failed = status >= 500 || status == 0;
    match word {
        Word::Class(class) => class,
        _ if matches!(termination.first(), Some(b'C' | b'S' | b'R' | b'I' | b'c' | b's')) => Class::Error,
        _ if termination.first() == Some(&b'P') => Class::Denied,
        Word::Fetched => match route {
            Route::SiblingHit => Class::SiblingHit,
            Route::ParentHit => Class::ParentHit,
            Route::Other if failed => Class::Error,
            Route::Other => Class::Miss,
        },
        Word::NoCache if status == 0 => Class::Nothing,
        Word::NoCache if status >= 400 => Class::Error,
        Word::Unknown if status >= 500 => Class::Error,
        Word::NoCache | Word::Unknown => Class::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str, hierarchy: &str, status: u16) -> Class {
        class(word(code.as_bytes()), route(hierarchy.as_bytes()), b"", status)
    }

    #[test]
    fn the_words_of_squid_are_known() {
        for (code, hierarchy, status, expected) in [
            ("TCP_HIT", "HIER_NONE", 200, Class::DiskHit),
            ("TCP_MEM_HIT", "HIER_NONE", 200, Class::MemoryHit),
            ("TCP_IMS_HIT", "HIER_NONE", 304, Class::Hit),
            ("TCP_INM_HIT", "HIER_NONE", 304, Class::Hit),
            ("TCP_NEGATIVE_HIT", "HIER_NONE", 404, Class::Hit),
            ("TCP_CF_HIT", "HIER_DIRECT", 200, Class::Joined),
            ("TCP_MISS", "HIER_DIRECT", 200, Class::Miss),
            ("TCP_MISS", "SIBLING_HIT", 200, Class::SiblingHit),
            ("TCP_MISS", "CD_SIBLING_HIT", 200, Class::SiblingHit),
            ("TCP_MISS", "PARENT_HIT", 200, Class::ParentHit),
            ("TCP_MISS", "FIRST_PARENT_MISS", 200, Class::Miss),
            ("TCP_MISS", "HIER_NONE", 503, Class::Error),
            ("TCP_MISS_ABORTED", "HIER_DIRECT", 200, Class::Error),
            ("TCP_REFRESH_UNMODIFIED", "HIER_DIRECT", 200, Class::Revalidated),
            ("TCP_REFRESH_MODIFIED", "HIER_DIRECT", 200, Class::Miss),
            ("TCP_REFRESH_FAIL_OLD", "HIER_DIRECT", 200, Class::Hit),
            ("TCP_REFRESH_FAIL_ERR", "HIER_DIRECT", 503, Class::Error),
            ("TCP_CLIENT_REFRESH_MISS", "HIER_DIRECT", 200, Class::Miss),
            ("TCP_SWAPFAIL_MISS", "HIER_DIRECT", 200, Class::Miss),
            ("TCP_DENIED", "HIER_NONE", 403, Class::Denied),
            ("TCP_TUNNEL", "HIER_DIRECT", 200, Class::Tunnel),
            ("NONE", "HIER_NONE", 400, Class::Error),
            ("NONE_NONE", "HIER_NONE", 0, Class::Nothing),
            ("UDP_HIT", "HIER_NONE", 0, Class::QueryHit),
            ("UDP_MISS_NOFETCH", "HIER_NONE", 0, Class::QueryMiss),
        ] {
            assert_eq!(of(code, hierarchy, status), expected, "{code} {hierarchy} {status}");
        }
    }

    #[test]
    fn the_words_of_the_other_proxies_are_known() {
        for (code, status, expected) in [
            ("ERR_CLIENT_ABORT", 200, Class::Error),
            ("ERR_PROXY_DENIED", 403, Class::Denied),
            ("TCP_REFRESH_HIT", 200, Class::Revalidated),
            ("TCP_REF_FAIL_HIT", 200, Class::Hit),
            ("TCP_IMS_MISS", 200, Class::Miss),
            ("hit", 200, Class::Hit),
            ("hitmiss", 200, Class::Miss),
            ("hitpass", 200, Class::Miss),
            ("pass", 200, Class::Miss),
            ("pipe", 200, Class::Tunnel),
            ("synth", 503, Class::Error),
            ("HIT", 200, Class::Hit),
            ("STALE", 200, Class::Hit),
            ("UPDATING", 200, Class::Hit),
            ("EXPIRED", 200, Class::Miss),
            ("BYPASS", 200, Class::Miss),
            ("REVALIDATED", 200, Class::Revalidated),
            ("MISS", 502, Class::Error),
            ("", 200, Class::Unknown),
            ("", 500, Class::Error),
            ("<CACHE>", 200, Class::MemoryHit),
            ("<NOSRV>", 503, Class::Error),
            ("cache hit", 200, Class::Hit),
            ("cache miss", 200, Class::Miss),
            ("cache miss: attempting entity save", 200, Class::Miss),
            ("conditional cache hit: entity refreshed", 200, Class::Revalidated),
            ("Cache-Control: no-store present", 200, Class::Miss),
            ("HTTP Status 304 Not Modified", 304, Class::Miss),
        ] {
            assert_eq!(of(code, "", status), expected, "{code} {status}");
        }
    }

    #[test]
    fn how_haproxy_ended_a_session_decides_before_its_server_does() {
        assert_eq!(class(Word::Fetched, Route::Other, b"CD--", 200), Class::Error);
        assert_eq!(class(Word::NoCache, Route::Other, b"PR--", 403), Class::Denied);
        assert_eq!(class(word(b"<CACHE>"), Route::Other, b"LR--", 200), Class::MemoryHit);
        assert_eq!(class(Word::Fetched, Route::Other, b"----", 200), Class::Miss);
    }
}
