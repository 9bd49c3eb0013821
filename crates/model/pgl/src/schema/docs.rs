//! Descriptions of types and fields, and the strings that fields accept, for the reference page and for editors.

use super::types::RecordKind::{self, *};

/// Description of the objects of a type.
pub(crate) fn type_doc(kind: RecordKind) -> &'static str {
    match kind {
        Robot => "simulated users: one for each of its addresses",
        Server => "simulated origin servers: one for each of its addresses",
        Proxy => "the proxy under test, as far as a workload describes it",
        Cache => "the cache of a proxy",
        Socket => "options of TCP",
        Session => "when a robot is busy and when it is idle",
        Acl => "which requests a filter must allow or deny",
        KerberosWrap => "authentication with Kerberos",
        Content => "a content type: the size, life cycle and body of its objects, and what pages embed",
        Mime => "the media type of objects, and how their paths end",
        MimeHeader => "a header field that is added to messages",
        ObjLifeCycle => "how often objects change, and what the origin says about it",
        ClientBehavior => "how objects of a content type are requested, in place of what the robot says",
        PopModel => "which of the known objects is requested again",
        DynamicName => "a host name that changes",
        Range => "which bytes a request is for: a `SingleRange` or a `MultiRange`",
        SingleRange => "one range of bytes",
        MultiRange => "several ranges of bytes in one request",
        Phase => "a part of the schedule with its own goal and factors",
        Goal => "when something ends: the first of its fields that is reached",
        Rptmstat => "a thermostat that changes the load to keep the response time in a range",
        StatsSample => "transactions that are logged one by one",
        StatSample => "statistics that a script reads",
        Bench => "the machines that addresses are dealt to, and the rate of all",
        BenchSide => "the machines and addresses of one side of a bench",
        PolyMix3As => "how addresses are dealt: PolyMix-3",
        PolyMix4As => "how addresses are dealt: PolyMix-4",
        WebAxe4As => "how addresses are dealt: WebAxe-4",
        SrvLb4As => "how addresses are dealt: balancers of servers",
        SpreadAs => "how addresses are dealt: evenly over all machines",
        AddrMap => "host names for addresses of servers",
        NetPipe => "a network link that is emulated",
        DnsResolver => "how robots look up names",
        DnsCache => "a cache of names",
        SslWrap => "how agents speak TLS",
        MembershipMap => "which users belong to which groups",
    }
}

/// Description of a field; none for a field without an effect.
pub(crate) fn field_doc(kind: RecordKind, field: &str) -> Option<&'static str> {
    let own = FIELDS.iter().find(|(of, name, _)| *of == kind && *name == field);
    let agent = || {
        let is_agent = matches!(kind, Robot | Server | Proxy);
        AGENT.iter().find(|(name, _)| is_agent && *name == field).map(|(_, meaning)| *meaning)
    };
    own.map(|(.., meaning)| *meaning).or_else(agent)
}

/// The strings that a field accepts; empty for a field that accepts any string.
pub(crate) fn keywords(kind: RecordKind, field: &str) -> &'static [&'static str] {
    match (kind, field) {
        (Robot | ClientBehavior, "req_types") => &["Basic", "Ims200", "Ims304", "Reload", "Range", "Upload"],
        (Robot | ClientBehavior, "req_methods") => &["GET", "HEAD", "POST", "PUT"],
        (Robot | Server, "http_versions") => &["1.0", "1.1", "2"],
        (Robot, "interests") => &["public", "private", "foreign"],
        (Robot, "accept_content_encodings") | (Content, "encodings") => &["identity", "gzip"],
        (Server, "rep_types") => &["Basic", "302 Found"],
        (Server, "protocol") => &["HTTP", "FTP"],
        (Server, "auth_schemes") => &["Basic", "Digest"],
        (Content, "generator") => &["random_text", "random_data", "words"],
        (Content, "inject_object") => &["db_text", "request_uri"],
        (SslWrap, "protocols") => &["any", "TLSv1.2", "TLSv1.3"],
        _ => &[],
    }
}

const AGENT: [(&str, &str); 11] = [
    ("kind", "name of these agents in reports"),
    (
        "addresses",
        "one agent for each address; `**` repeats one. Those of servers need a port, those of robots have none",
    ),
    ("ssl_wraps", "how the agent speaks TLS; without it, it does not"),
    ("socket", "options of TCP"),
    ("world", "identity of the agent"),
    ("http_versions", "versions of HTTP that agents speak, each always the same; 1.1 if not set"),
    ("pconn_use_lmt", "requests on one connection, drawn for each connection; 1 if not set"),
    ("idle_pconn_tout", "how long an idle connection stays open; for ever if not set"),
    ("abort_prob", "share of transactions that the agent cuts off in the middle of a body"),
    (
        "http_headers",
        "header fields that are added, each item with a probability of its own; those of an inner list go together",
    ),
    (
        "pop_model",
        "which of the known objects is requested again; for a server, which one a redirection leads to",
    ),
];

/// Fields of single types.
const FIELDS: &[(RecordKind, &str, &str)] = &[
    (Robot, "xact_lifetime", "how long a transaction may take, with the time it waits; then it is an error"),
    (Robot, "xact_think", "time between a response and the next request of a robot without a rate"),
    (Robot, "cookie_sender", "share of robots that keep cookies and send them; all if not set"),
    (Robot, "origins", "servers whose objects are requested, by address or name, with their shares"),
    (Robot, "http_proxies", "addresses at which the target is expected"),
    (Robot, "proxies", "older name of `http_proxies`"),
    (
        Robot,
        "req_rate",
        "mean rate of requests of one robot, sent whatever the proxy does; without it, the next request follows the last response",
    ),
    (Robot, "req_inter_arrival", "time between requests, in place of `req_rate`"),
    (Robot, "launch_win", "time within which best-effort robots begin"),
    (Robot, "recurrence", "share of requests for objects that have been requested before"),
    (Robot, "embed_recur", "share of the embedded objects of a page that are requested; none if not set"),
    (Robot, "interests", "whose objects are requested: of all robots, of this one, or the URLs of a trace"),
    (Robot, "foreign_trace", "file with the URLs for an interest in \"foreign\""),
    (Robot, "req_types", "types of requests, with their shares; \"Basic\" if not set"),
    (Robot, "req_methods", "methods of requests, with their shares; \"GET\" if not set"),
    (Robot, "post_contents", "bodies of POST requests"),
    (Robot, "upload_contents", "bodies of PUT requests and uploads"),
    (Robot, "put_contents", "older name of `upload_contents`"),
    (Robot, "req_body_pause_prob", "share of requests with a body that send `Expect: 100-continue` and wait"),
    (
        Robot,
        "req_body_pause_start",
        "size from which bodies of requests are announced with `Expect: 100-continue`",
    ),
    (Robot, "req_body_recurrence", "share of bodies of requests that were sent before"),
    (Robot, "ranges", "which bytes \"Range\" requests are for, with their shares"),
    (Robot, "accept_content_encodings", "codings in `Accept-Encoding`"),
    (Robot, "container_tags", "which links of pages lead to embedded objects"),
    (
        Robot,
        "private_cache_cap",
        "embedded objects that a robot keeps and does not request again; 0 if not set",
    ),
    (Robot, "unique_urls", "each request is for a URL of its own"),
    (Robot, "open_conn_lmt", "most open connections of a robot; others wait for one"),
    (Robot, "wait_xact_lmt", "most transactions that wait for a connection; more are errors"),
    (Robot, "pipeline_depth", "requests under way on one connection; 1 if not set"),
    (
        Robot,
        "minimize_new_conn",
        "share of requests that use an idle connection to a substitute address (`note_substitutes()`)",
    ),
    (Robot, "credentials", "users and passwords, `user:password`"),
    (Robot, "auth_error", "share of authentications with a wrong password"),
    (Robot, "session", "when the robot is busy and when idle; always busy if not set"),
    (Robot, "cookies_keep_lmt", "cookies that a robot keeps for each origin; 4 if not set"),
    (Server, "xact_lifetime", "how long a transaction may take; then the server resets the connection"),
    (Server, "xact_think", "time before a request is handled"),
    (Server, "cookie_sender", "share of servers that handle cookies"),
    (Server, "contents", "all content types of the server, with their shares of its traffic"),
    (
        Server,
        "direct_access",
        "content types that robots request themselves; others are only embedded. All if not set",
    ),
    (Server, "rep_types", "types of responses, with their shares; \"Basic\" if not set"),
    (Server, "protocol", "protocols that servers speak"),
    (Server, "cookie_set_prob", "share of responses that set cookies"),
    (Server, "cookie_set_count", "cookies in such a response"),
    (Server, "cookie_value_size", "length of the value of a cookie"),
    (
        Server,
        "req_body_allowed",
        "share of requests with `Expect` that get 100; others get 417. All if not set",
    ),
    (Server, "error_prob", "share of requests that get an error status"),
    (Server, "error_statuses", "these statuses, with their shares; 500 if not set"),
    (Server, "reset_prob", "share of requests whose connection is reset"),
    (Server, "slow_start_prob", "share of responses whose first byte is late"),
    (Server, "slow_start", "by how much"),
    (Server, "slow_body_prob", "share of responses whose body is slow"),
    (Server, "slow_body_bw", "how slow"),
    (Server, "delay_per_active", "think time that is added for every other request the server is busy with"),
    (Server, "auth_schemes", "schemes with which the server requires credentials"),
    (Server, "auth_realm", "the realm it names; \"assay\" if not set"),
    (Server, "auth_prob", "share of its objects that require credentials; all if not set"),
    (Session, "busy_period", "when a busy period ends"),
    (Session, "idle_period_duration", "how long the robot is idle then"),
    (Content, "kind", "name of the content type in reports"),
    (Content, "mime", "media type, and extensions of paths"),
    (Content, "size", "size of a body, fixed for each object"),
    (Content, "obj_life_cycle", "how objects change; without it, never, and responses carry no times"),
    (Content, "cachable", "share of objects that may be cached; none if not set"),
    (Content, "checksum", "share of objects with `Content-MD5`"),
    (Content, "unique", "share of objects with a body of their own; others share one"),
    (Content, "may_contain", "content types that pages of this one embed, with their shares"),
    (Content, "embedded_obj_cnt", "embedded objects of a page"),
    (Content, "client_behavior", "how its objects are requested, in place of what the robot says"),
    (Content, "generator", "what bodies are made of; \"random_text\" if not set"),
    (Content, "content_db", "file or directory whose entries bodies are made of"),
    (Content, "document_root", "directory whose files are the bodies"),
    (Content, "inject_object", "what is put into bodies: lines of `inject_db`, or the URI at their end"),
    (Content, "inject_db", "file with lines that are put into bodies"),
    (Content, "inject_gap", "distance between such lines"),
    (Content, "infect_prob", "share of objects that lines are put into"),
    (Content, "encodings", "codings in which objects can be sent; \"identity\" if not set"),
    (
        Content,
        "mime_headers",
        "header fields that are added to the content, each item with a probability of its own",
    ),
    (Mime, "type", "value of `Content-Type`; without it, the field is left out"),
    (Mime, "extensions", "how paths end, with their shares"),
    (Mime, "prefixes", "how paths begin, with their shares"),
    (MimeHeader, "name", "name of the header field"),
    (MimeHeader, "value", "value of the header field"),
    (ObjLifeCycle, "length", "time between two changes of an object"),
    (ObjLifeCycle, "variance", "share of that time by which a change may come earlier or later"),
    (ObjLifeCycle, "with_lmt", "share of objects with `Last-Modified`"),
    (
        ObjLifeCycle,
        "expires",
        "what `Expires` says, with shares: `now`, `lmt` or `nmt` plus a time; 0 for none",
    ),
    (ClientBehavior, "pop_model", "which of the known objects is requested again"),
    (ClientBehavior, "recurrence", "share of requests for objects that have been requested before"),
    (ClientBehavior, "req_types", "types of requests, with their shares"),
    (ClientBehavior, "req_methods", "methods of requests, with their shares"),
    (ClientBehavior, "ranges", "which bytes \"Range\" requests are for, with their shares"),
    (PopModel, "pop_distr", "which object is requested again: `popUnif()`, `popZipf(skew)`"),
    (PopModel, "hot_set_frac", "share of the objects that are in the hot set; all if not set"),
    (PopModel, "hot_set_prob", "share of the revisits that go to the hot set"),
    (
        PopModel,
        "bhr_discrimination",
        "share of the revisits that prefer the smallest of neighbouring objects",
    ),
    (SingleRange, "first_byte_pos_absolute", "first byte, as a position"),
    (SingleRange, "first_byte_pos_relative", "first byte, as a share of the object"),
    (SingleRange, "last_byte_pos_absolute", "last byte, as a position"),
    (SingleRange, "last_byte_pos_relative", "last byte, as a share of the object"),
    (SingleRange, "suffix_length_absolute", "so many bytes at the end"),
    (SingleRange, "suffix_length_relative", "this share of the object at its end"),
    (MultiRange, "first_range_start_absolute", "where the first range begins, as a position"),
    (MultiRange, "first_range_start_relative", "where the first range begins, as a share of the object"),
    (MultiRange, "range_length_absolute", "length of each range"),
    (MultiRange, "range_length_relative", "length of each range, as a share of the object"),
    (MultiRange, "range_count", "number of ranges"),
    (Phase, "name", "name of the phase in reports"),
    (Phase, "goal", "when the phase ends; never if not set"),
    (
        Phase,
        "populus_factor_beg",
        "share of the robots that are active, at the start; as the last phase left it if not set",
    ),
    (
        Phase,
        "populus_factor_end",
        "share of the robots that are active, at the end; as at the start if not set",
    ),
    (
        Phase,
        "load_factor_beg",
        "factor of the robots' rates at the start; as the last phase left it if not set",
    ),
    (Phase, "load_factor_end", "factor of the robots' rates at the end; as at the start if not set"),
    (Phase, "recur_factor_beg", "factor of `recurrence` at the start; as the last phase left it if not set"),
    (Phase, "recur_factor_end", "factor of `recurrence` at the end; as at the start if not set"),
    (
        Phase,
        "special_msg_factor_beg",
        "share of requests that heed types and methods, at the start; others are basic. As the last phase left it if not set",
    ),
    (
        Phase,
        "special_msg_factor_end",
        "share of requests that heed types and methods, at the end; as at the start if not set",
    ),
    (Phase, "log_stats", "whether results are recorded; yes if not set"),
    (Phase, "primary", "whether its results are the headline of the report"),
    (Phase, "wait_wss_freeze", "whether the phase goes on until the working set is frozen"),
    (Phase, "synchronize", "whether all robots end the phase together"),
    (Phase, "script", "what runs when the phase begins, and whenever a sample is complete"),
    (Phase, "rptmstat", "thermostat of the response time"),
    (Phase, "stats_samples", "transactions that are logged one by one"),
    (Goal, "duration", "ends after this time"),
    (Goal, "xactions", "ends after so many transactions"),
    (Goal, "fill_size", "ends when so much new cachable content has been requested"),
    (Goal, "errors", "ends the run: below 1 a share of transactions with errors, otherwise their number"),
    (Rptmstat, "sample_dur", "how often it decides"),
    (Rptmstat, "load_delta", "by which share it changes the load"),
    (Rptmstat, "rptm_min", "load is raised while the mean response time is below this"),
    (Rptmstat, "rptm_max", "load is lowered while the mean response time is above this"),
    (Bench, "peak_req_rate", "rate of all robots together at the peak"),
    (Bench, "client_side", "machines and addresses of robots"),
    (Bench, "server_side", "machines and addresses of servers"),
    (Bench, "proxy_side", "machines and addresses of proxies"),
    (BenchSide, "hosts", "addresses of the machines"),
    (BenchSide, "max_host_load", "highest rate of a machine"),
    (BenchSide, "max_agent_load", "highest rate of an agent"),
    (BenchSide, "addr_space", "addresses that agents get"),
    (BenchSide, "addr_mask", "network that addresses of agents are made in"),
    (PolyMix4As, "agents_per_addr", "robots at one address"),
    (WebAxe4As, "agents_per_addr", "robots at one address"),
    (SrvLb4As, "agents_per_addr", "robots at one address"),
    (SpreadAs, "agents_per_addr", "agents at one address"),
    (AddrMap, "zone", "domain of the names"),
    (AddrMap, "names", "names under which servers are requested"),
    (AddrMap, "addresses", "addresses of the servers behind them"),
    (NetPipe, "kind", "name of the link"),
    (NetPipe, "addresses", "agents that are behind it"),
    (NetPipe, "packet_delay", "delay of a packet"),
    (NetPipe, "bandwidth", "most that it carries"),
    (NetPipe, "packet_loss", "share of packets that are lost"),
    (NetPipe, "queue_packet_size", "packets that can wait"),
    (NetPipe, "queue_byte_size", "bytes that can wait"),
    (NetPipe, "outgoing", "the direction it is for; both if not set"),
    (SslWrap, "protocols", "versions of TLS, with their shares"),
    (SslWrap, "ciphers", "cipher suites, with their shares"),
    (SslWrap, "rsa_key_sizes", "sizes of RSA keys, with their shares"),
    (SslWrap, "generate_certificates", "whether certificates are made"),
    (SslWrap, "verify_peer_certificate", "whether the other side's certificate is verified"),
    (SslWrap, "session_resumption", "share of new connections that offer to resume a session"),
    (SslWrap, "session_cache", "sessions that are kept"),
];

#[cfg(test)]
mod tests {
    use super::super::types::{Base, Support};
    use super::*;

    #[test]
    fn every_field_with_an_effect_has_a_meaning_and_no_other_name_has_one() {
        for kind in RecordKind::ALL {
            assert!(!type_doc(kind).is_empty());
            for field in kind.fields() {
                let has_effect = matches!(field.support, Support::Full | Support::Partial(_));
                assert!(
                    !has_effect || field_doc(kind, field.name).is_some(),
                    "{}.{}",
                    kind.name(),
                    field.name
                );
                let texts = field.ty.base == Base::Text;
                assert!(texts || keywords(kind, field.name).is_empty(), "{}.{}", kind.name(), field.name);
            }
        }
        for (kind, name, meaning) in FIELDS {
            assert!(kind.field(name).is_some() && !meaning.is_empty(), "{}.{name}", kind.name());
        }
        for (name, _) in AGENT {
            assert!(Robot.field(name).is_some() && Server.field(name).is_some(), "{name}");
        }
    }
}
