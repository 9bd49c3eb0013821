//! Names, links and encryption.

use super::omitted::OmittedFeature;
use super::types::{
    ADDRESSES, BOOL, Base, FLOAT, INT, INTS, RecordKind, RecordType, SIZE, Support, TEXT, TEXTS, TIME, TIMES,
    Ty, full, ignored, object, out_of_scope, partial,
};

pub(super) const ADDR_MAP: RecordType = RecordType {
    name: "AddrMap",
    support: Support::Partial("a name for several addresses (a balancer's) is requested under each of them"),
    groups: &[&[
        partial("zone", TEXT, "no DNS server is configured with it"),
        full("names", ADDRESSES),
        full("addresses", ADDRESSES),
    ]],
};

pub(super) const NET_PIPE: RecordType = RecordType {
    name: "NetPipe",
    support: Support::Partial(
        "all robots have one link, and all servers another, each alike in both directions",
    ),
    groups: &[&[
        full("kind", TEXT),
        partial(
            "addresses",
            ADDRESSES,
            "where agents of a side differ, they have what most of their addresses have",
        ),
        partial(
            "packet_delay",
            TIMES,
            "constant or uniform, with the mean and deviation of other distributions",
        ),
        full("bandwidth", Ty::one(Base::Bandwidth)),
        full("packet_loss", FLOAT),
        partial("queue_packet_size", INT, "a packet counts as 1,500 bytes"),
        full("queue_byte_size", SIZE),
        partial(
            "outgoing",
            BOOL,
            "if directions differ, both have the mean delay, and all else of that of responses",
        ),
    ]],
};

pub(super) const DNS_RESOLVER: RecordType = RecordType {
    name: "DnsResolver",
    support: Support::OutOfScope(OmittedFeature::Dns),
    groups: &[&[
        out_of_scope("servers", ADDRESSES, OmittedFeature::Dns),
        out_of_scope("timeout", TIME, OmittedFeature::Dns),
        out_of_scope("query_type", TEXT, OmittedFeature::Dns),
        out_of_scope("cache", object(RecordKind::DnsCache), OmittedFeature::Dns),
    ]],
};

pub(super) const DNS_CACHE: RecordType = RecordType {
    name: "DnsCache",
    support: Support::OutOfScope(OmittedFeature::Dns),
    groups: &[&[
        out_of_scope("capacity", INT, OmittedFeature::Dns),
        out_of_scope("sharing_group", TEXT, OmittedFeature::Dns),
    ]],
};

const OWN_AUTHORITY: &str = "each run makes its own authority and certificates, and trusts no others";

pub(super) const SSL_WRAP: RecordType = RecordType {
    name: "SslWrap",
    support: Support::Partial("all agents of a run speak TLS alike"),
    groups: &[&[
        partial(
            "protocols",
            TEXTS,
            "`any`, `TLSv1.2`, `TLSv1.3`; older versions must not be used (RFC 8996), and mean TLS 1.2",
        ),
        partial("ciphers", TEXTS, "each means the nearest of AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305"),
        partial(
            "rsa_key_sizes",
            Ty::one(Base::Size).array(),
            "RSA-2048, whatever the size; P-256 where it is not set",
        ),
        ignored("certificates", TEXTS, OWN_AUTHORITY),
        partial("generate_certificates", BOOL, OWN_AUTHORITY),
        ignored("root_certificate", TEXT, OWN_AUTHORITY),
        partial("verify_peer_certificate", BOOL, "of robots; yes unless said otherwise"),
        ignored("ssl_config_file", TEXT, OWN_AUTHORITY),
        ignored("sharing_group", TEXT, OWN_AUTHORITY),
        full("session_resumption", FLOAT),
        partial("session_cache", INT, "0 keeps no session; a robot keeps at most four for each server"),
        ignored("compression", FLOAT, "records are not compressed (RFC 9325, section 3.3)"),
    ]],
};

pub(super) const MEMBERSHIP_MAP: RecordType = RecordType {
    name: "MembershipMap",
    support: Support::OutOfScope(OmittedFeature::Filtering),
    groups: &[&[
        out_of_scope("group_space", TEXTS, OmittedFeature::Filtering),
        out_of_scope("member_space", TEXTS, OmittedFeature::Filtering),
        out_of_scope("groups_per_member", INTS, OmittedFeature::Filtering),
    ]],
};
