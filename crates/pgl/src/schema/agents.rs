//! Robots, servers, proxies, and what only they have.

use super::{
    ADDRESS, ADDRESSES, BOOL, Base, Effect, FLOAT, FLOATS, Field, INT, INTS, RATE, REGEX, RecordKind,
    RecordType, SIZE, TEXT, TEXTS, TIME, TIMES, Ty, full, none, object, part,
};

const CONTENTS: Ty = object(RecordKind::Content).array();

/// What all agents have.
const AGENT: [Field; 13] = [
    full("kind", TEXT),
    full("addresses", ADDRESSES),
    none("ssl_wraps", object(RecordKind::SslWrap).array(), "connections are plain TCP"),
    none(
        "socket",
        object(RecordKind::Socket),
        "sockets send at once (no Nagle delay) and close as the system does",
    ),
    none("world", Ty::one(Base::Id), "agents are identified by their number"),
    full("http_versions", TEXTS),
    none("xact_lifetime", TIMES, "a transaction may take as long as the run's own time limit"),
    full("pconn_use_lmt", INTS),
    full("idle_pconn_tout", TIME),
    none("abort_prob", FLOAT, "no transaction is aborted"),
    none("cookie_sender", FLOAT, "no cookies are sent"),
    none("custom_stats_scope", TEXTS, "statistics cover all status codes"),
    none("http_headers", object(RecordKind::MimeHeader).array(), "no header is added"),
];

const ROBOT_ONLY: [Field; 42] = [
    none("xact_think", TIMES, "robots do not think: their pace is `req_rate`, or best effort"),
    full("pop_model", object(RecordKind::PopModel)),
    full("origins", ADDRESSES),
    full("http_proxies", ADDRESSES),
    full("proxies", ADDRESSES),
    none("ftp_proxies", ADDRESSES, "there is no FTP traffic"),
    none("socks_proxies", ADDRESSES, "SOCKS is not spoken; robots go to the target directly"),
    none("socks_prob", FLOAT, "SOCKS is not spoken"),
    none("socks_chaining_prob", FLOAT, "SOCKS is not spoken"),
    none("passive_ftp", FLOAT, "there is no FTP traffic"),
    full("req_rate", RATE),
    part(
        "req_inter_arrival",
        TIMES,
        "only `exp()` as written; of others the mean counts, arrivals are Poisson",
    ),
    full("recurrence", FLOAT),
    full("embed_recur", FLOAT),
    part("interests", TEXTS, "\"foreign\" is asked of the public world"),
    none("foreign_trace", TEXT, "no foreign URLs are requested"),
    part("req_types", TEXTS, "\"Range\" and \"Upload\" are sent as \"Basic\""),
    part("req_methods", TEXTS, "\"PUT\" is sent as \"GET\""),
    full("post_contents", CONTENTS),
    none("upload_contents", CONTENTS, "there are no PUT requests"),
    none("put_contents", CONTENTS, "there are no PUT requests"),
    none("req_body_pause_prob", FLOAT, "request bodies are sent without asking first"),
    none("req_body_pause_start", SIZE, "request bodies are sent without asking first"),
    none("req_body_recurrence", FLOAT, "every request body is new"),
    none("ranges", object(RecordKind::Range).array(), "no ranges are requested"),
    none("accept_content_encodings", TEXTS, "no Accept-Encoding is sent"),
    none("container_tags", TEXTS, "pages link their objects in the engine's own way"),
    none("raw_uri_thrower", TEXT, "no scripts are searched for URLs"),
    none("private_cache_cap", INT, "robots have no cache of their own"),
    full("unique_urls", BOOL),
    full("open_conn_lmt", INT),
    full("wait_xact_lmt", INT),
    full("pipeline_depth", FLOATS),
    none("minimize_new_conn", FLOAT, "a connection is reused for its own address only"),
    none("credentials", TEXTS, "robots are anonymous"),
    none("auth_error", FLOAT, "robots are anonymous"),
    none("spnego_auth_ratio", FLOAT, "robots are anonymous"),
    none("kerberos_wrap", object(RecordKind::KerberosWrap), "robots are anonymous"),
    none("acl", object(RecordKind::Acl), "filtering decisions are not checked"),
    none("session", object(RecordKind::Session), "robots are always busy"),
    none(
        "dns_resolver",
        object(RecordKind::DnsResolver),
        "no name is looked up; origins are known by their addresses",
    ),
    none("cookies_keep_lmt", FLOATS, "no cookies are kept"),
];

/// Sibling caches.
const ROBOT_ICP: [Field; 3] = [
    none("icp_port", INT, "ICP is not spoken"),
    none("peer_icp", ADDRESS, "ICP is not spoken"),
    none("peer_http", ADDRESS, "ICP is not spoken"),
];

const SERVER_ONLY: [Field; 11] = [
    full("xact_think", TIMES),
    none("pop_model", object(RecordKind::PopModel), "servers do not redirect"),
    full("contents", CONTENTS),
    full("direct_access", CONTENTS),
    part("rep_types", TEXTS, "\"302 Found\" is answered as \"Basic\""),
    none("accept_lmt", INT, "connections are accepted as they come"),
    part("protocol", TEXTS, "\"FTP\" servers speak HTTP"),
    none("cookie_set_prob", FLOAT, "no cookies are set"),
    none("cookie_set_count", FLOATS, "no cookies are set"),
    none("cookie_value_size", super::SIZES, "no cookies are set"),
    none("req_body_allowed", FLOAT, "every request body is accepted"),
];

const PROXY_ONLY: [Field; 2] = [
    none("xact_think", TIMES, "the proxy under test is named on the command line"),
    none("pop_model", object(RecordKind::PopModel), "the proxy under test is named on the command line"),
];

pub(super) const ROBOT: RecordType =
    RecordType { name: "Robot", effect: Effect::Full, groups: &[&AGENT, &ROBOT_ONLY, &ROBOT_ICP] };

pub(super) const SERVER: RecordType =
    RecordType { name: "Server", effect: Effect::Full, groups: &[&AGENT, &SERVER_ONLY] };

pub(super) const PROXY: RecordType = RecordType {
    name: "Proxy",
    effect: Effect::None("the proxy under test is named on the command line"),
    groups: &[&AGENT, &PROXY_ONLY],
};

pub(super) const CACHE: RecordType = RecordType {
    name: "Cache",
    effect: Effect::None("the capacity of the proxy under test is given on the command line"),
    groups: &[&[
        none("capacity", SIZE, "the capacity of the proxy under test is given on the command line"),
        none("icp_port", INT, "ICP is not spoken"),
    ]],
};

pub(super) const SOCKET: RecordType = RecordType {
    name: "Socket",
    effect: Effect::None("sockets send at once (no Nagle delay) and close as the system does"),
    groups: &[&[
        none("nagle", BOOL, "sockets send at once (no Nagle delay)"),
        none("linger_tout", TIME, "sockets close as the system does"),
    ]],
};

pub(super) const SESSION: RecordType = RecordType {
    name: "Session",
    effect: Effect::None("robots are always busy"),
    groups: &[&[
        none("busy_period", object(RecordKind::Goal), "robots are always busy"),
        none("idle_period_duration", TIMES, "robots are always busy"),
        none("heartbeat_notif_rate", RATE, "nothing is notified"),
    ]],
};

pub(super) const ACL: RecordType = RecordType {
    name: "Acl",
    effect: Effect::None("filtering decisions are not checked"),
    groups: &[&[
        none("allow", REGEX, "filtering decisions are not checked"),
        none("deny", REGEX, "filtering decisions are not checked"),
        none("rewrite", REGEX, "filtering decisions are not checked"),
        none("check_domestic", FLOAT, "filtering decisions are not checked"),
        none("check_foreign", FLOAT, "filtering decisions are not checked"),
    ]],
};

pub(super) const KERBEROS_WRAP: RecordType = RecordType {
    name: "KerberosWrap",
    effect: Effect::None("robots are anonymous"),
    groups: &[&[
        none("realm", TEXT, "robots are anonymous"),
        none("servers", ADDRESSES, "robots are anonymous"),
        none("servers_tcp", ADDRESSES, "robots are anonymous"),
        none("servers_udp", ADDRESSES, "robots are anonymous"),
        none("timeout", TIME, "robots are anonymous"),
    ]],
};
