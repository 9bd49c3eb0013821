//! Names, links and encryption.

use super::{
    ADDRESSES, BOOL, Base, Effect, FLOAT, INT, INTS, RecordKind, RecordType, SIZE, TEXT, TEXTS, TIME, TIMES,
    Ty, full, none, object,
};

/// For all that encrypts.
const NO_TLS: &str = "connections are plain TCP";
/// For all that shapes links.
const NO_PIPES: &str = "links are as the machine's are";
/// For all that looks up names.
const NO_DNS: &str = "no name is looked up; origins are known by their addresses";
/// For users and their groups.
const NO_GROUPS: &str = "robots are anonymous";

pub(super) const ADDR_MAP: RecordType = RecordType {
    name: "AddrMap",
    effect: Effect::Part("robots ask for the real addresses behind a name, not for the name"),
    groups: &[&[none("zone", TEXT, NO_DNS), full("names", ADDRESSES), full("addresses", ADDRESSES)]],
};

pub(super) const NET_PIPE: RecordType = RecordType {
    name: "NetPipe",
    effect: Effect::None(NO_PIPES),
    groups: &[&[
        none("kind", TEXT, NO_PIPES),
        none("addresses", ADDRESSES, NO_PIPES),
        none("packet_delay", TIMES, NO_PIPES),
        none("bandwidth", Ty::one(Base::Bandwidth), NO_PIPES),
        none("packet_loss", FLOAT, NO_PIPES),
        none("queue_packet_size", INT, NO_PIPES),
        none("queue_byte_size", SIZE, NO_PIPES),
        none("outgoing", BOOL, NO_PIPES),
    ]],
};

pub(super) const DNS_RESOLVER: RecordType = RecordType {
    name: "DnsResolver",
    effect: Effect::None(NO_DNS),
    groups: &[&[
        none("servers", ADDRESSES, NO_DNS),
        none("timeout", TIME, NO_DNS),
        none("query_type", TEXT, NO_DNS),
        none("cache", object(RecordKind::DnsCache), NO_DNS),
    ]],
};

pub(super) const DNS_CACHE: RecordType = RecordType {
    name: "DnsCache",
    effect: Effect::None(NO_DNS),
    groups: &[&[none("capacity", INT, NO_DNS), none("sharing_group", TEXT, NO_DNS)]],
};

pub(super) const SSL_WRAP: RecordType = RecordType {
    name: "SslWrap",
    effect: Effect::None(NO_TLS),
    groups: &[&[
        none("protocols", TEXTS, NO_TLS),
        none("ciphers", TEXTS, NO_TLS),
        none("rsa_key_sizes", Ty::one(Base::Size).array(), NO_TLS),
        none("certificates", TEXTS, NO_TLS),
        none("generate_certificates", BOOL, NO_TLS),
        none("root_certificate", TEXT, NO_TLS),
        none("verify_peer_certificate", BOOL, NO_TLS),
        none("ssl_config_file", TEXT, NO_TLS),
        none("sharing_group", TEXT, NO_TLS),
        none("session_resumption", FLOAT, NO_TLS),
        none("session_cache", INT, NO_TLS),
        none("compression", FLOAT, NO_TLS),
    ]],
};

pub(super) const MEMBERSHIP_MAP: RecordType = RecordType {
    name: "MembershipMap",
    effect: Effect::None(NO_GROUPS),
    groups: &[&[
        none("group_space", TEXTS, NO_GROUPS),
        none("member_space", TEXTS, NO_GROUPS),
        none("groups_per_member", INTS, NO_GROUPS),
    ]],
};
