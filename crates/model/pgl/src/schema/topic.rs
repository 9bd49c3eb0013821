//! What Assay leaves out on purpose, and what has gone from the language.

use super::types::RecordKind;

/// Something that Assay leaves out on purpose. All fields and types that belong to it give one warning together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    Ftp,
    Socks,
    Kerberos,
    Ntlm,
    Icp,
    Dns,
    Https,
    Filtering,
}

impl Topic {
    /// All of them, in the order of the reference.
    #[cfg(test)]
    pub const ALL: [Topic; 8] = [
        Topic::Ftp,
        Topic::Socks,
        Topic::Kerberos,
        Topic::Ntlm,
        Topic::Icp,
        Topic::Dns,
        Topic::Https,
        Topic::Filtering,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Ftp => "FTP",
            Topic::Socks => "SOCKS",
            Topic::Kerberos => "Kerberos",
            Topic::Ntlm => "NTLM and SPNEGO",
            Topic::Icp => "ICP",
            Topic::Dns => "DNS",
            Topic::Https => "`https` URLs in traces",
            Topic::Filtering => "the checking of filters",
        }
    }

    pub fn instead(self) -> &'static str {
        match self {
            Topic::Ftp => "robots and servers speak HTTP only",
            Topic::Socks => "robots go to the target directly",
            Topic::Kerberos | Topic::Ntlm => "robots authenticate with Basic and Digest",
            Topic::Icp => "no sibling cache is asked",
            Topic::Dns => "no name is looked up; origins are where the lab puts them",
            Topic::Https => {
                "they are passed over; which legs speak TLS is said with `ssl_wraps`, or on the command line"
            }
            Topic::Filtering => "no response is checked against rules for users, groups or URLs",
        }
    }
}

/// Fields of older versions that are rejected, and why.
pub(crate) const REJECTED: [(RecordKind, &str, &str); 5] = [
    (RecordKind::Robot, "priv_cache_cap", "it is called `private_cache_cap`"),
    (
        RecordKind::Robot,
        "public_interest",
        "interests are a selector now: `interests = [ \"public\": 90%, \"private\" ]`",
    ),
    (RecordKind::Proxy, "client", "the proxy under test is named on the command line"),
    (RecordKind::Proxy, "server", "the proxy under test is named on the command line"),
    (RecordKind::Proxy, "cache", "the capacity of the proxy under test is given on the command line"),
];
