//! What became of a request. The words of all proxies, in one list of classes.

use schemars::JsonSchema;
use serde::Serialize;

use crate::access::{Access, LineKind};

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
    /// No request of a client: a fetch of the cache itself from a backend.
    Fetch,
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
            Class::Fetch => "fetch from a backend",
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

/// Outcome that a proxy's word states by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeWord {
    Class(Class),
    /// Fetched from somewhere; the hierarchy code may say more.
    Fetched,
    /// The cache had no part in it.
    NoCache,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HierarchyCode {
    /// A sibling had it.
    SiblingHit,
    /// A parent had it.
    ParentHit,
    /// Nothing about hits.
    Other,
}

/// Words for what failed, one after the other as [`split_words`] has them; each is a whole word or several.
const FAILED: [&str; 6] =
    [" ABORTED ", " TIMEDOUT ", " FAIL ERR ", " ERROR ", " LIMITEXCEEDED ", " CAPACITYEXCEEDED "];
/// For what the cache had no part in.
const NO_CACHE: [&str; 5] =
    [" NOSRV ", " REDIRECT ", " CONSTRUCTED ", " LAMBDAGENERATEDRESPONSE ", " FUNCTIONGENERATEDRESPONSE "];
const JOINED: [&str; 3] = [" CF HIT ", " CF MISS ", " HIT WAIT "];
const REVALIDATED: [&str; 5] =
    [" REFRESH UNMODIFIED ", " REFRESH HIT ", " REFRESHHIT ", " REVALIDATED ", " CONDITIONAL CACHE HIT "];
/// For what was fetched. What Varnish and Fastly remember as not worth caching is called a hit on that. The reasons for which httpd
/// does not keep a response stand behind the words of all.
const FETCHED: [&str; 20] = [
    " MISS ",
    " HITMISS ",
    " HITPASS ",
    " HIT FOR ",
    " PASS ",
    " BYPASS ",
    " EXPIRED ",
    " DYNAMIC ",
    " IGNORED ",
    " REFRESH MODIFIED ",
    " NO STORE ",
    " INVALIDATED ",
    " HTTP STATUS ",
    " NOT CACHEABLE ",
    " NOTCACHEABLE ",
    " QUERY STRING PRESENT ",
    " CACHE CONTROL ",
    " NO LAST MODIFIED ",
    " EXPIRES HEADER ",
    " VARY HEADER ",
];
/// Squid and nginx serve what is stale while, or because, a refresh cannot be had.
const HIT: [&str; 6] =
    [" HIT ", " STALE ", " HITSTALE ", " UPDATING ", " REFRESH FAIL ", " ORIGINSHIELDHIT "];

/// Reads a proxy's word for an outcome. Only whole words count: a service called *whitelabel* is no hit.
pub fn parse_outcome(text: &[u8]) -> OutcomeWord {
    let text = nearest_cache(text).trim_ascii();
    if let Some(word) = cache_status(text) {
        return word;
    }
    let mut upper = [0; WORDS_BYTES];
    let words = split_words(text, &mut upper);
    let has = |part: &&str| memchr::memmem::find(words, part.as_bytes()).is_some();
    let has_any = |parts: &[&str]| parts.iter().any(has);
    if words == b" " {
        return OutcomeWord::Unknown;
    }
    // The order counts: several of these words may stand in one outcome, and the earlier ones decide.
    if words.starts_with(b" UDP ") || words.starts_with(b" ICP ") {
        return OutcomeWord::Class(if has(&" HIT ") { Class::QueryHit } else { Class::QueryMiss });
    }
    if has(&" DENIED ") {
        return OutcomeWord::Class(Class::Denied);
    }
    // TCP_MISS_ABORTED and its like: the client or a time-out ended it.
    if words.starts_with(b" ERR ") || has_any(&FAILED) {
        return OutcomeWord::Class(Class::Error);
    }
    if has_any(&[" TUNNEL ", " PIPE "]) {
        return OutcomeWord::Class(Class::Tunnel);
    }
    let is_none = words.starts_with(b" TAG NONE ") || words.starts_with(b" NONE ");
    // Varnish made it up; `HIT-SYNTH` of Fastly was kept.
    if is_none || words == b" SYNTH " || has_any(&NO_CACHE) {
        return OutcomeWord::NoCache;
    }
    if has_any(&JOINED) {
        return OutcomeWord::Class(Class::Joined);
    }
    if has_any(&REVALIDATED) {
        return OutcomeWord::Class(Class::Revalidated);
    }
    if has_any(&[" MEM HIT ", " RAM HIT "]) || text.eq_ignore_ascii_case(b"<CACHE>") {
        return OutcomeWord::Class(Class::MemoryHit);
    }
    if has_any(&FETCHED) {
        return OutcomeWord::Fetched;
    }
    if words == b" TCP HIT " {
        return OutcomeWord::Class(Class::DiskHit);
    }
    if has_any(&HIT) {
        return OutcomeWord::Class(Class::Hit);
    }
    OutcomeWord::Unknown
}

/// The word of the cache that is the nearest to the client. Each cache on the way adds its own behind those before it; Akamai writes
/// `Miss from child, Hit from parent`.
fn nearest_cache(text: &[u8]) -> &[u8] {
    // Without a comma there is a single cache.
    let Some(comma) = memchr::memrchr(b',', text) else { return text };
    if memchr::memmem::find(text, b" from child").is_some() {
        let end = memchr::memchr(b',', text).unwrap_or(comma);
        return &text[..end];
    }
    &text[comma + 1..]
}

const WORDS_BYTES: usize = 80;

/// The words of a text in capitals, each with a blank before and behind it: ` TCP MEM HIT `. What stands behind *from* is the name of a
/// cache (`HIT from cache-1`).
fn split_words<'b>(text: &[u8], buffer: &'b mut [u8; WORDS_BYTES]) -> &'b [u8] {
    buffer[0] = b' ';
    let mut length = 1;
    // Room is left for the blank behind the last word.
    for byte in text.iter().chain(b" ").take(WORDS_BYTES - 2) {
        if byte.is_ascii_alphanumeric() {
            buffer[length] = byte.to_ascii_uppercase();
            length += 1;
        } else if buffer[length - 1] != b' ' {
            buffer[length] = b' ';
            length += 1;
            // The blank before `FROM` stays as the one behind the last word.
            if buffer[..length].ends_with(b" FROM ") {
                return &buffer[..length - b"FROM ".len()];
            }
        }
    }
    if buffer[length - 1] != b' ' {
        buffer[length] = b' ';
        length += 1;
    }
    &buffer[..length]
}

/// A member of `Cache-Status` (RFC 9211): the name of a cache, and parameters that say what it did.
fn cache_status(text: &[u8]) -> Option<OutcomeWord> {
    let (_, parameters) = text.split_at(memchr::memchr(b';', text)?);
    let has = |wanted: &[u8]| {
        parameters.split(|byte| *byte == b';').any(|one| one.trim_ascii().eq_ignore_ascii_case(wanted))
    };
    let is_forwarded = memchr::memmem::find(parameters, b"fwd=").is_some();
    if has(b"hit") {
        Some(OutcomeWord::Class(Class::Hit))
    } else if has(b"collapsed") {
        Some(OutcomeWord::Class(Class::Joined))
    } else if has(b"fwd=stale") && has(b"fwd-status=304") {
        Some(OutcomeWord::Class(Class::Revalidated))
    } else {
        is_forwarded.then_some(OutcomeWord::Fetched)
    }
}

/// True for the code of a hierarchy: capitals and low lines. `-` is none, and one all the same.
pub(crate) fn is_hierarchy_code(text: &[u8]) -> bool {
    let is_code = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    matches!(text, b"" | b"-") || (text.iter().all(is_code) && text.iter().any(u8::is_ascii_uppercase))
}

/// Reads a hierarchy code.
pub fn parse_hierarchy(text: &[u8]) -> HierarchyCode {
    let has = |part: &str| memchr::memmem::find(text, part.as_bytes()).is_some();
    if has("SIBLING_HIT") {
        HierarchyCode::SiblingHit
    } else if has("PARENT_HIT") {
        HierarchyCode::ParentHit
    } else {
        HierarchyCode::Other
    }
}

/// Class of a request, from its line.
pub fn classify(access: &Access<'_>) -> Class {
    let word = if access.outcome.is_empty() { OutcomeWord::Unknown } else { parse_outcome(access.outcome) };
    classify_parsed(word, parse_hierarchy(access.hierarchy), access, access.status)
}

/// Class of a request, from parsed words. The status is an argument, because a format may lack it.
#[inline]
pub fn classify_parsed(word: OutcomeWord, route: HierarchyCode, access: &Access<'_>, status: u16) -> Class {
    let failed = status >= 500 || status == 0;
    match access.kind {
        LineKind::Request => {}
        LineKind::Fetch => return Class::Fetch,
        LineKind::Connection => return Class::Nothing,
    }
    // How HAProxy's session ended decides before who responded: a hit that the client broke off is no hit.
    match access.termination.first() {
        Some(b'C' | b'S' | b'R' | b'I' | b'c' | b's') => return Class::Error,
        Some(b'P') => return Class::Denied,
        _ => {}
    }
    match word {
        OutcomeWord::Class(class) => class,
        OutcomeWord::Fetched => match route {
            HierarchyCode::SiblingHit => Class::SiblingHit,
            HierarchyCode::ParentHit => Class::ParentHit,
            HierarchyCode::Other if failed => Class::Error,
            HierarchyCode::Other => Class::Miss,
        },
        OutcomeWord::NoCache if status == 0 => Class::Nothing,
        OutcomeWord::NoCache if status >= 400 => Class::Error,
        OutcomeWord::Unknown if status >= 500 => Class::Error,
        // A balancer writes such a line for a connection that never spoke HTTP.
        OutcomeWord::Unknown if status == 0 && access.url.is_empty() && !access.is_rootless => Class::Nothing,
        OutcomeWord::NoCache | OutcomeWord::Unknown => Class::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(code: &str, hierarchy: &str, status: u16) -> Class {
        let access = Access { url: b"/", ..Access::default() };
        classify_parsed(
            parse_outcome(code.as_bytes()),
            parse_hierarchy(hierarchy.as_bytes()),
            &access,
            status,
        )
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
            assert_eq!(classify(code, hierarchy, status), expected, "{code} {hierarchy} {status}");
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
            assert_eq!(classify(code, "", status), expected, "{code} {status}");
        }
    }

    #[test]
    fn the_words_of_networks_of_caches_are_known() {
        for (code, expected) in [
            ("Hit from cloudfront", Class::Hit),
            ("RefreshHit from cloudfront", Class::Revalidated),
            ("OriginShieldHit", Class::Hit),
            ("LimitExceeded", Class::Error),
            ("Error", Class::Error),
            ("Redirect", Class::Unknown),
            ("HIT from permissions-1", Class::Hit),
            ("MISS from whitelabel:3128", Class::Miss),
            // Of several caches the last is the nearest to the client.
            ("MISS, HIT", Class::Hit),
            ("HIT, MISS", Class::Miss),
            ("Miss from child, Hit from parent", Class::Miss),
            ("HitStale from child", Class::Hit),
            ("NotCacheable from child", Class::Miss),
            ("HIT-CLUSTER", Class::Hit),
            ("HIT-STALE", Class::Hit),
            ("HIT-WAIT", Class::Joined),
            ("HIT-SYNTH", Class::Hit),
            ("MISS-WAIT-CLUSTER", Class::Miss),
            ("HITPASS", Class::Miss),
            ("MISS-CLUSTER", Class::Miss),
            ("dynamic", Class::Miss),
            ("bypass", Class::Miss),
            ("revalidated", Class::Revalidated),
            ("none", Class::Unknown),
            ("miss-1; hit; ttl=376", Class::Hit),
            ("origin-hit; hit, edge; fwd=uri-miss; stored", Class::Miss),
            ("edge; fwd=stale; fwd-status=304", Class::Revalidated),
            ("edge; fwd=miss; collapsed", Class::Joined),
        ] {
            assert_eq!(classify(code, "", 200), expected, "{code}");
        }
    }

    #[test]
    fn words_that_only_contain_an_outcome_are_none() {
        for code in
            ["whitelabel", "shop-permissions-80", "PASSWORD", "compassion", "transmission", "HITS", "-", ""]
        {
            assert_eq!(parse_outcome(code.as_bytes()), OutcomeWord::Unknown, "{code}");
        }
    }

    #[test]
    fn how_haproxy_ended_a_session_decides_before_its_server_does() {
        let of = |code: &str, termination: &'static str, status| {
            let access = Access { url: b"/", termination: termination.as_bytes(), ..Access::default() };
            classify_parsed(parse_outcome(code.as_bytes()), HierarchyCode::Other, &access, status)
        };
        assert_eq!(of("MISS", "CD--", 200), Class::Error);
        assert_eq!(of("<CACHE>", "CD--", 200), Class::Error);
        assert_eq!(of("<NOSRV>", "PR--", 403), Class::Denied);
        assert_eq!(of("<CACHE>", "LR--", 200), Class::MemoryHit);
        assert_eq!(of("MISS", "----", 200), Class::Miss);
    }

    #[test]
    fn what_is_no_request_of_a_client_has_a_class_of_its_own() {
        let of = |access: Access<'static>| super::classify(&access);
        let hit = Access { outcome: b"hit", url: b"/", status: 200, ..Access::default() };
        assert_eq!(of(Access { kind: LineKind::Fetch, ..hit }), Class::Fetch);
        assert_eq!(of(Access { kind: LineKind::Connection, ..hit }), Class::Nothing);
        assert_eq!(of(Access { outcome: b"", status: 0, url: b"", ..hit }), Class::Nothing);
        assert!(!Class::Fetch.is_request() && !Class::Nothing.is_request());
    }
}
