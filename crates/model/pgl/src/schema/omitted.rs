//! Features that Assay omits on purpose, and fields that the language no longer has.

use super::types::RecordKind;

/// A feature that Assay omits on purpose. Its fields and types cause one warning together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OmittedFeature {
    Ftp,
    Socks,
    Kerberos,
    Ntlm,
    Icp,
    Dns,
    Https,
    Filtering,
}

impl OmittedFeature {
    /// All features, in the order of the reference page.
    #[cfg(test)]
    pub const ALL: [OmittedFeature; 8] = [
        OmittedFeature::Ftp,
        OmittedFeature::Socks,
        OmittedFeature::Kerberos,
        OmittedFeature::Ntlm,
        OmittedFeature::Icp,
        OmittedFeature::Dns,
        OmittedFeature::Https,
        OmittedFeature::Filtering,
    ];

    pub fn name(self) -> &'static str {
        match self {
            OmittedFeature::Ftp => "FTP",
            OmittedFeature::Socks => "SOCKS",
            OmittedFeature::Kerberos => "Kerberos",
            OmittedFeature::Ntlm => "NTLM and SPNEGO",
            OmittedFeature::Icp => "ICP",
            OmittedFeature::Dns => "DNS",
            OmittedFeature::Https => "`https` URLs in traces",
            OmittedFeature::Filtering => "the checking of filters",
        }
    }

    /// Behaviour in place of the feature.
    pub fn replacement(self) -> &'static str {
        match self {
            OmittedFeature::Ftp => "robots and servers speak HTTP only",
            OmittedFeature::Socks => "robots go to the target directly",
            OmittedFeature::Kerberos | OmittedFeature::Ntlm => "robots authenticate with Basic and Digest",
            OmittedFeature::Icp => "no sibling cache is asked",
            OmittedFeature::Dns => "no name is looked up; origins are where the lab puts them",
            OmittedFeature::Https => {
                "they are passed over; which legs speak TLS is said with `ssl_wraps`, or on the command line"
            }
            OmittedFeature::Filtering => "no response is checked against rules for users, groups or URLs",
        }
    }
}

/// Fields of older versions of the language that are rejected, each with advice.
pub(crate) const REMOVED_FIELDS: [(RecordKind, &str, &str); 5] = [
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
