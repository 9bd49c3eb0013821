//! Robots, servers, proxies, and what only they have.

use super::topic::Topic;
use super::types::{
    ADDRESS, ADDRESSES, BOOL, Base, Effect, FLOAT, FLOATS, Field, INT, INTS, RATE, REGEX, RecordKind,
    RecordType, SIZE, TEXT, TEXTS, TIME, TIMES, Ty, full, left_out, none, object, own, part,
};

const CONTENTS: Ty = object(RecordKind::Content).array();

/// For all that has the target on the command line instead.
const TARGET: &str = "the proxy under test is named on the command line";

/// What all agents have.
const AGENT: [Field; 12] = [
    full("kind", TEXT),
    full("addresses", ADDRESSES),
    part(
        "ssl_wraps",
        object(RecordKind::SslWrap).array(),
        "its leg speaks TLS; all agents of a run speak it alike (see `SslWrap`)",
    ),
    part("socket", object(RecordKind::Socket), "sockets send at once (`nagle = no`), whatever it says"),
    part("world", Ty::one(Base::Id), "agents are identified by their number, which is fixed as well"),
    full("http_versions", TEXTS),
    full("pconn_use_lmt", INTS),
    full("idle_pconn_tout", TIME),
    full("abort_prob", FLOAT),
    none("custom_stats_scope", TEXTS, "statistics cover all status codes, each by itself"),
    full("http_headers", object(RecordKind::MimeHeader).array()),
    full("pop_model", object(RecordKind::PopModel)),
];

const ROBOT_ONLY: [Field; 44] = [
    full("xact_lifetime", TIMES),
    part("xact_think", TIMES, "only of robots without a rate, between a response and the next request"),
    full("cookie_sender", FLOAT),
    full("origins", ADDRESSES),
    full("http_proxies", ADDRESSES),
    full("proxies", ADDRESSES),
    left_out("ftp_proxies", ADDRESSES, Topic::Ftp),
    left_out("socks_proxies", ADDRESSES, Topic::Socks),
    left_out("socks_prob", FLOAT, Topic::Socks),
    left_out("socks_chaining_prob", FLOAT, Topic::Socks),
    left_out("passive_ftp", FLOAT, Topic::Ftp),
    full("req_rate", RATE),
    part(
        "req_inter_arrival",
        TIMES,
        "time between a robot's own requests; where they bring embedded objects, it is longer by those, so that all \
         requests keep the rate",
    ),
    part(
        "launch_win",
        TIME,
        "best-effort robots begin within it; those with a rate begin at random moments anyhow",
    ),
    full("recurrence", FLOAT),
    full("embed_recur", FLOAT),
    full("interests", TEXTS),
    part("foreign_trace", TEXT, "the host of every URL must be an origin of the workload; HTTP only"),
    full("req_types", TEXTS),
    full("req_methods", TEXTS),
    full("post_contents", CONTENTS),
    full("upload_contents", CONTENTS),
    full("put_contents", CONTENTS),
    full("req_body_pause_prob", FLOAT),
    full("req_body_pause_start", SIZE),
    full("req_body_recurrence", FLOAT),
    full("ranges", object(RecordKind::Range).array()),
    part("accept_content_encodings", TEXTS, "\"gzip\" and \"identity\"; others are left out with a warning"),
    part(
        "container_tags",
        TEXTS,
        "`[]`: no embedded object is requested; all else: links of any kind are followed",
    ),
    none("raw_uri_thrower", TEXT, "no scripts are searched for URLs"),
    part("private_cache_cap", INT, "what `assay check` expects to be requested does not know of it"),
    full("unique_urls", BOOL),
    full("open_conn_lmt", INT),
    full("wait_xact_lmt", INT),
    full("pipeline_depth", FLOATS),
    full("minimize_new_conn", FLOAT),
    part(
        "credentials",
        TEXTS,
        "users are taken in turn, one for each session; `${target_ip}` stays as written",
    ),
    full("auth_error", FLOAT),
    left_out("spnego_auth_ratio", FLOAT, Topic::Ntlm),
    left_out("kerberos_wrap", object(RecordKind::KerberosWrap), Topic::Kerberos),
    left_out("acl", object(RecordKind::Acl), Topic::Filtering),
    full("session", object(RecordKind::Session)),
    left_out("dns_resolver", object(RecordKind::DnsResolver), Topic::Dns),
    full("cookies_keep_lmt", FLOATS),
];

const ROBOT_ICP: [Field; 3] = [
    left_out("icp_port", INT, Topic::Icp),
    left_out("peer_icp", ADDRESS, Topic::Icp),
    left_out("peer_http", ADDRESS, Topic::Icp),
];

const SERVER_ONLY: [Field; 12] = [
    part(
        "xact_lifetime",
        TIMES,
        "held against `xact_think` alone; a request that would need longer is met with a reset, a fault on purpose",
    ),
    full("xact_think", TIMES),
    full("cookie_sender", FLOAT),
    full("contents", CONTENTS),
    full("direct_access", CONTENTS),
    full("rep_types", TEXTS),
    none("accept_lmt", INT, "connections are accepted as they come"),
    part("protocol", TEXTS, "\"HTTP\"; \"FTP\" is left out with a warning"),
    full("cookie_set_prob", FLOAT),
    full("cookie_set_count", FLOATS),
    full("cookie_value_size", super::types::SIZES),
    full("req_body_allowed", FLOAT),
];

/// How servers misbehave on purpose, and whom they let in.
const SERVER_OWN: [Field; 11] = [
    own("error_prob", FLOAT),
    own("error_statuses", TEXTS),
    own("reset_prob", FLOAT),
    own("slow_start_prob", FLOAT),
    own("slow_start", TIMES),
    own("slow_body_prob", FLOAT),
    own("slow_body_bw", Ty::one(Base::Bandwidth)),
    own("delay_per_active", TIME),
    own("auth_schemes", TEXTS),
    own("auth_realm", TEXT),
    own("auth_prob", FLOAT),
];

const PROXY_ONLY: [Field; 3] = [
    none("xact_lifetime", TIMES, TARGET),
    none("xact_think", TIMES, TARGET),
    none("cookie_sender", FLOAT, TARGET),
];

pub(super) const ROBOT: RecordType =
    RecordType { name: "Robot", effect: Effect::Full, groups: &[&AGENT, &ROBOT_ONLY, &ROBOT_ICP] };

pub(super) const SERVER: RecordType =
    RecordType { name: "Server", effect: Effect::Full, groups: &[&AGENT, &SERVER_ONLY, &SERVER_OWN] };

pub(super) const PROXY: RecordType = RecordType {
    name: "Proxy",
    effect: Effect::Part("only `ssl_wraps` has an effect: the proxy under test is named on the command line"),
    groups: &[&AGENT, &PROXY_ONLY],
};

pub(super) const CACHE: RecordType = RecordType {
    name: "Cache",
    effect: Effect::None("the capacity of the proxy under test is given on the command line"),
    groups: &[&[
        none("capacity", SIZE, "the capacity of the proxy under test is given on the command line"),
        left_out("icp_port", INT, Topic::Icp),
    ]],
};

pub(super) const SOCKET: RecordType = RecordType {
    name: "Socket",
    effect: Effect::Part("sockets send at once (`nagle = no`), whatever it says"),
    groups: &[&[
        none("nagle", BOOL, "sockets send at once: there is no Nagle delay"),
        none("linger_tout", TIME, "sockets close as the system does"),
    ]],
};

pub(super) const SESSION: RecordType = RecordType {
    name: "Session",
    effect: Effect::Full,
    groups: &[&[
        part("busy_period", object(RecordKind::Goal), "`duration` and `xactions` end it"),
        full("idle_period_duration", TIMES),
        none("heartbeat_notif_rate", RATE, "nobody is notified"),
    ]],
};

pub(super) const ACL: RecordType = RecordType {
    name: "Acl",
    effect: Effect::LeftOut(Topic::Filtering),
    groups: &[&[
        left_out("allow", REGEX, Topic::Filtering),
        left_out("deny", REGEX, Topic::Filtering),
        left_out("rewrite", REGEX, Topic::Filtering),
        left_out("check_domestic", FLOAT, Topic::Filtering),
        left_out("check_foreign", FLOAT, Topic::Filtering),
    ]],
};

pub(super) const KERBEROS_WRAP: RecordType = RecordType {
    name: "KerberosWrap",
    effect: Effect::LeftOut(Topic::Kerberos),
    groups: &[&[
        left_out("realm", TEXT, Topic::Kerberos),
        left_out("servers", ADDRESSES, Topic::Kerberos),
        left_out("servers_tcp", ADDRESSES, Topic::Kerberos),
        left_out("servers_udp", ADDRESSES, Topic::Kerberos),
        left_out("timeout", TIME, Topic::Kerberos),
    ]],
};
