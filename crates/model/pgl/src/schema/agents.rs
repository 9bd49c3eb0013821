//! Robots, servers, proxies and the types of their fields.

use super::omitted::OmittedFeature;
use super::types::{
    ADDRESS, ADDRESSES, BOOL, Base, FLOAT, FLOATS, Field, INT, INTS, RATE, REGEX, RecordKind, RecordType,
    SIZE, Support, TEXT, TEXTS, TIME, TIMES, Ty, assay_only, full, ignored, object, out_of_scope, partial,
};

const CONTENTS: Ty = object(RecordKind::Content).array();

const TARGET: &str = "the proxy under test is named on the command line";

/// Fields of all agents.
const AGENT: [Field; 12] = [
    full("kind", TEXT),
    full("addresses", ADDRESSES),
    partial(
        "ssl_wraps",
        object(RecordKind::SslWrap).array(),
        "its leg speaks TLS; all agents of a run speak it alike (see `SslWrap`)",
    ),
    partial("socket", object(RecordKind::Socket), "sockets send at once (`nagle = no`), whatever it says"),
    partial("world", Ty::one(Base::Id), "agents are identified by their number, which is fixed as well"),
    full("http_versions", TEXTS),
    full("pconn_use_lmt", INTS),
    full("idle_pconn_tout", TIME),
    full("abort_prob", FLOAT),
    ignored("custom_stats_scope", TEXTS, "statistics cover all status codes, each by itself"),
    full("http_headers", object(RecordKind::MimeHeader).array()),
    full("pop_model", object(RecordKind::PopModel)),
];

const ROBOT_ONLY: [Field; 44] = [
    full("xact_lifetime", TIMES),
    partial("xact_think", TIMES, "only of robots without a rate, between a response and the next request"),
    full("cookie_sender", FLOAT),
    full("origins", ADDRESSES),
    full("http_proxies", ADDRESSES),
    full("proxies", ADDRESSES),
    out_of_scope("ftp_proxies", ADDRESSES, OmittedFeature::Ftp),
    out_of_scope("socks_proxies", ADDRESSES, OmittedFeature::Socks),
    out_of_scope("socks_prob", FLOAT, OmittedFeature::Socks),
    out_of_scope("socks_chaining_prob", FLOAT, OmittedFeature::Socks),
    out_of_scope("passive_ftp", FLOAT, OmittedFeature::Ftp),
    full("req_rate", RATE),
    partial(
        "req_inter_arrival",
        TIMES,
        "time between a robot's own requests; where they bring embedded objects, it is longer by those, so that all \
         requests keep the rate",
    ),
    partial(
        "launch_win",
        TIME,
        "best-effort robots begin within it; those with a rate begin at random moments anyhow",
    ),
    full("recurrence", FLOAT),
    full("embed_recur", FLOAT),
    full("interests", TEXTS),
    partial("foreign_trace", TEXT, "the host of every URL must be an origin of the workload; HTTP only"),
    full("req_types", TEXTS),
    full("req_methods", TEXTS),
    full("post_contents", CONTENTS),
    full("upload_contents", CONTENTS),
    full("put_contents", CONTENTS),
    full("req_body_pause_prob", FLOAT),
    full("req_body_pause_start", SIZE),
    full("req_body_recurrence", FLOAT),
    full("ranges", object(RecordKind::Range).array()),
    partial(
        "accept_content_encodings",
        TEXTS,
        "\"gzip\" and \"identity\"; others are left out with a warning",
    ),
    partial(
        "container_tags",
        TEXTS,
        "`[]`: no embedded object is requested; all else: links of any kind are followed",
    ),
    ignored("raw_uri_thrower", TEXT, "no scripts are searched for URLs"),
    partial("private_cache_cap", INT, "what `assay check` expects to be requested does not know of it"),
    full("unique_urls", BOOL),
    full("open_conn_lmt", INT),
    full("wait_xact_lmt", INT),
    full("pipeline_depth", FLOATS),
    full("minimize_new_conn", FLOAT),
    partial(
        "credentials",
        TEXTS,
        "users are taken in turn, one for each session; `${target_ip}` stays as written",
    ),
    full("auth_error", FLOAT),
    out_of_scope("spnego_auth_ratio", FLOAT, OmittedFeature::Ntlm),
    out_of_scope("kerberos_wrap", object(RecordKind::KerberosWrap), OmittedFeature::Kerberos),
    out_of_scope("acl", object(RecordKind::Acl), OmittedFeature::Filtering),
    full("session", object(RecordKind::Session)),
    out_of_scope("dns_resolver", object(RecordKind::DnsResolver), OmittedFeature::Dns),
    full("cookies_keep_lmt", FLOATS),
];

const ROBOT_ICP: [Field; 3] = [
    out_of_scope("icp_port", INT, OmittedFeature::Icp),
    out_of_scope("peer_icp", ADDRESS, OmittedFeature::Icp),
    out_of_scope("peer_http", ADDRESS, OmittedFeature::Icp),
];

const SERVER_ONLY: [Field; 12] = [
    partial(
        "xact_lifetime",
        TIMES,
        "held against `xact_think` alone; a request that would need longer is met with a reset, a fault on purpose",
    ),
    full("xact_think", TIMES),
    full("cookie_sender", FLOAT),
    full("contents", CONTENTS),
    full("direct_access", CONTENTS),
    full("rep_types", TEXTS),
    ignored("accept_lmt", INT, "connections are accepted as they come"),
    partial("protocol", TEXTS, "\"HTTP\"; \"FTP\" is left out with a warning"),
    full("cookie_set_prob", FLOAT),
    full("cookie_set_count", FLOATS),
    full("cookie_value_size", super::types::SIZES),
    full("req_body_allowed", FLOAT),
];

/// Faults and authentication of servers.
const SERVER_OWN: [Field; 11] = [
    assay_only("error_prob", FLOAT),
    assay_only("error_statuses", TEXTS),
    assay_only("reset_prob", FLOAT),
    assay_only("slow_start_prob", FLOAT),
    assay_only("slow_start", TIMES),
    assay_only("slow_body_prob", FLOAT),
    assay_only("slow_body_bw", Ty::one(Base::Bandwidth)),
    assay_only("delay_per_active", TIME),
    assay_only("auth_schemes", TEXTS),
    assay_only("auth_realm", TEXT),
    assay_only("auth_prob", FLOAT),
];

const PROXY_ONLY: [Field; 3] = [
    ignored("xact_lifetime", TIMES, TARGET),
    ignored("xact_think", TIMES, TARGET),
    ignored("cookie_sender", FLOAT, TARGET),
];

pub(super) const ROBOT: RecordType =
    RecordType { name: "Robot", support: Support::Full, groups: &[&AGENT, &ROBOT_ONLY, &ROBOT_ICP] };

pub(super) const SERVER: RecordType =
    RecordType { name: "Server", support: Support::Full, groups: &[&AGENT, &SERVER_ONLY, &SERVER_OWN] };

pub(super) const PROXY: RecordType = RecordType {
    name: "Proxy",
    support: Support::Partial(
        "only `ssl_wraps` has an effect: the proxy under test is named on the command line",
    ),
    groups: &[&AGENT, &PROXY_ONLY],
};

pub(super) const CACHE: RecordType = RecordType {
    name: "Cache",
    support: Support::Ignored("the capacity of the proxy under test is given on the command line"),
    groups: &[&[
        ignored("capacity", SIZE, "the capacity of the proxy under test is given on the command line"),
        out_of_scope("icp_port", INT, OmittedFeature::Icp),
    ]],
};

pub(super) const SOCKET: RecordType = RecordType {
    name: "Socket",
    support: Support::Partial("sockets send at once (`nagle = no`), whatever it says"),
    groups: &[&[
        ignored("nagle", BOOL, "sockets send at once: there is no Nagle delay"),
        ignored("linger_tout", TIME, "sockets close as the system does"),
    ]],
};

pub(super) const SESSION: RecordType = RecordType {
    name: "Session",
    support: Support::Full,
    groups: &[&[
        partial("busy_period", object(RecordKind::Goal), "`duration` and `xactions` end it"),
        full("idle_period_duration", TIMES),
        ignored("heartbeat_notif_rate", RATE, "nobody is notified"),
    ]],
};

pub(super) const ACL: RecordType = RecordType {
    name: "Acl",
    support: Support::OutOfScope(OmittedFeature::Filtering),
    groups: &[&[
        out_of_scope("allow", REGEX, OmittedFeature::Filtering),
        out_of_scope("deny", REGEX, OmittedFeature::Filtering),
        out_of_scope("rewrite", REGEX, OmittedFeature::Filtering),
        out_of_scope("check_domestic", FLOAT, OmittedFeature::Filtering),
        out_of_scope("check_foreign", FLOAT, OmittedFeature::Filtering),
    ]],
};

pub(super) const KERBEROS_WRAP: RecordType = RecordType {
    name: "KerberosWrap",
    support: Support::OutOfScope(OmittedFeature::Kerberos),
    groups: &[&[
        out_of_scope("realm", TEXT, OmittedFeature::Kerberos),
        out_of_scope("servers", ADDRESSES, OmittedFeature::Kerberos),
        out_of_scope("servers_tcp", ADDRESSES, OmittedFeature::Kerberos),
        out_of_scope("servers_udp", ADDRESSES, OmittedFeature::Kerberos),
        out_of_scope("timeout", TIME, OmittedFeature::Kerberos),
    ]],
};
