//! Names, links and encryption.

use super::topic::Topic;
use super::types::{
    ADDRESSES, BOOL, Base, Effect, FLOAT, INT, INTS, RecordKind, RecordType, SIZE, TEXT, TEXTS, TIME, TIMES,
    Ty, full, left_out, object, part,
};

pub(super) const ADDR_MAP: RecordType = RecordType {
    name: "AddrMap",
    effect: Effect::Part("a name for several addresses (a balancer's) is requested under each of them"),
    groups: &[&[
        part("zone", TEXT, "no DNS server is configured with it"),
        full("names", ADDRESSES),
        full("addresses", ADDRESSES),
    ]],
};

pub(super) const NET_PIPE: RecordType = RecordType {
    name: "NetPipe",
    effect: Effect::LeftOut(Topic::Links),
    groups: &[&[
        left_out("kind", TEXT, Topic::Links),
        left_out("addresses", ADDRESSES, Topic::Links),
        left_out("packet_delay", TIMES, Topic::Links),
        left_out("bandwidth", Ty::one(Base::Bandwidth), Topic::Links),
        left_out("packet_loss", FLOAT, Topic::Links),
        left_out("queue_packet_size", INT, Topic::Links),
        left_out("queue_byte_size", SIZE, Topic::Links),
        left_out("outgoing", BOOL, Topic::Links),
    ]],
};

pub(super) const DNS_RESOLVER: RecordType = RecordType {
    name: "DnsResolver",
    effect: Effect::LeftOut(Topic::Dns),
    groups: &[&[
        left_out("servers", ADDRESSES, Topic::Dns),
        left_out("timeout", TIME, Topic::Dns),
        left_out("query_type", TEXT, Topic::Dns),
        left_out("cache", object(RecordKind::DnsCache), Topic::Dns),
    ]],
};

pub(super) const DNS_CACHE: RecordType = RecordType {
    name: "DnsCache",
    effect: Effect::LeftOut(Topic::Dns),
    groups: &[&[left_out("capacity", INT, Topic::Dns), left_out("sharing_group", TEXT, Topic::Dns)]],
};

pub(super) const SSL_WRAP: RecordType = RecordType {
    name: "SslWrap",
    effect: Effect::LeftOut(Topic::Tls),
    groups: &[&[
        left_out("protocols", TEXTS, Topic::Tls),
        left_out("ciphers", TEXTS, Topic::Tls),
        left_out("rsa_key_sizes", Ty::one(Base::Size).array(), Topic::Tls),
        left_out("certificates", TEXTS, Topic::Tls),
        left_out("generate_certificates", BOOL, Topic::Tls),
        left_out("root_certificate", TEXT, Topic::Tls),
        left_out("verify_peer_certificate", BOOL, Topic::Tls),
        left_out("ssl_config_file", TEXT, Topic::Tls),
        left_out("sharing_group", TEXT, Topic::Tls),
        left_out("session_resumption", FLOAT, Topic::Tls),
        left_out("session_cache", INT, Topic::Tls),
        left_out("compression", FLOAT, Topic::Tls),
    ]],
};

pub(super) const MEMBERSHIP_MAP: RecordType = RecordType {
    name: "MembershipMap",
    effect: Effect::LeftOut(Topic::Filtering),
    groups: &[&[
        left_out("group_space", TEXTS, Topic::Filtering),
        left_out("member_space", TEXTS, Topic::Filtering),
        left_out("groups_per_member", INTS, Topic::Filtering),
    ]],
};
