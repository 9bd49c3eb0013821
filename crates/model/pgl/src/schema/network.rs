//! Names, links and encryption.

use super::topic::Topic;
use super::types::{
    ADDRESSES, BOOL, Base, Effect, FLOAT, INT, INTS, RecordKind, RecordType, SIZE, TEXT, TEXTS, TIME, TIMES,
    Ty, full, left_out, none, object, part,
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
    effect: Effect::Part("all robots have one link, and all servers another, each alike in both directions"),
    groups: &[&[
        full("kind", TEXT),
        part(
            "addresses",
            ADDRESSES,
            "where agents of a side differ, they have what most of their addresses have",
        ),
        part(
            "packet_delay",
            TIMES,
            "constant or uniform, with the mean and deviation of other distributions",
        ),
        full("bandwidth", Ty::one(Base::Bandwidth)),
        full("packet_loss", FLOAT),
        part("queue_packet_size", INT, "a packet counts as 1,500 bytes"),
        full("queue_byte_size", SIZE),
        part(
            "outgoing",
            BOOL,
            "if directions differ, both have the mean delay, and all else of that of responses",
        ),
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

/// For all that is about files of certificates.
const OWN_AUTHORITY: &str = "each run makes its own authority and certificates, and trusts no others";

pub(super) const SSL_WRAP: RecordType = RecordType {
    name: "SslWrap",
    effect: Effect::Part("all agents of a run speak TLS alike"),
    groups: &[&[
        part(
            "protocols",
            TEXTS,
            "`any`, `TLSv1.2`, `TLSv1.3`; older versions must not be used (RFC 8996), and mean TLS 1.2",
        ),
        part("ciphers", TEXTS, "each means the nearest of AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305"),
        part(
            "rsa_key_sizes",
            Ty::one(Base::Size).array(),
            "RSA-2048, whatever the size; P-256 where it is not set",
        ),
        none("certificates", TEXTS, OWN_AUTHORITY),
        part("generate_certificates", BOOL, OWN_AUTHORITY),
        none("root_certificate", TEXT, OWN_AUTHORITY),
        part("verify_peer_certificate", BOOL, "of robots; yes unless said otherwise"),
        none("ssl_config_file", TEXT, OWN_AUTHORITY),
        none("sharing_group", TEXT, OWN_AUTHORITY),
        full("session_resumption", FLOAT),
        part("session_cache", INT, "0 keeps no session; a robot keeps at most four for each server"),
        none("compression", FLOAT, "records are not compressed (RFC 9325, section 3.3)"),
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
