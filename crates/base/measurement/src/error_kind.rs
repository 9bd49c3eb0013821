//! Everything that can be wrong with an xact, each under its own name.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of an error. The order is the order of tables; names are part of the JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    // Content: the response is not the object that was requested.
    /// The response carries no id of our origins: not a response of theirs, or the proxy dropped it.
    Foreign,
    /// Another object was delivered.
    WrongObject,
    /// `Content-Length`, or the length received in full, is not the object's.
    WrongLength,
    /// Body bytes differ from the object's.
    WrongBytes,
    /// The connection ended before the body did.
    TruncatedBody,
    /// A version that never was, or that is not yet.
    WrongVersion,
    /// 304 to a request that was not conditional, or though the object is newer than the date requested.
    WrongNotModified,
    /// A status that is neither an error (400 to 599) nor possible for the request, such as 206 without a range.
    WrongStatus,
    /// The body is in a coding that the request did not ask for.
    UnrequestedCoding,
    // Caching: the response may not be served.
    /// Served from the store after it had expired.
    Stale,
    /// A reload was served without a request to the origin.
    HitOnReload,
    /// A response that may not be stored was served from the store.
    HitOnUncachable,
    /// A stored response was served to a request that differs from its own in a field that `Vary` names.
    WrongVariant,
    // Protocol.
    /// An error (4xx or 5xx) in place of the object.
    ErrorStatus,
    /// Bytes that are not HTTP, or heads over the limit.
    Malformed,
    /// Bytes after the end of the response.
    ExtraBytes,
    /// A request body that reached its origin and was not what the robot had sent.
    WrongUpload,
    /// A POST that its robot sent once reached its origin again.
    RepeatedPost,
    // Transport.
    /// The target did not accept the connection.
    ConnectFailed,
    /// The certificate of the target was expired, or not valid yet.
    TlsCertificateExpired,
    /// The certificate of the target is for another name.
    TlsCertificateName,
    /// The certificate of the target is of no trusted authority, or not acceptable.
    TlsCertificateUntrusted,
    /// The target and the robot have no version of TLS, cipher suite or application protocol in common.
    TlsNoCommonParameters,
    /// The target does not speak TLS.
    TlsNotSpoken,
    /// TLS failed in another way.
    TlsFailed,
    /// A body that ends with its connection was cut off: there was no `close_notify`.
    TlsTruncated,
    /// The target reset a stream of HTTP/2 before a response began, for another reason than that it did nothing for the request.
    StreamReset,
    /// The connection was reset or closed before a response began (after one retry on a fresh connection).
    ConnectionLost,
    /// No complete response in time.
    TimedOut,
    /// The robot's waiting queue was full.
    QueueOverflow,
    // Assay's own limits: they say nothing of the target.
    /// No source port was left.
    PortsExhausted,
    /// No file descriptor was left.
    DescriptorsExhausted,
}

impl ErrorKind {
    /// All kinds, in table order.
    pub const ALL: [ErrorKind; 32] = [
        ErrorKind::Foreign,
        ErrorKind::WrongObject,
        ErrorKind::WrongLength,
        ErrorKind::WrongBytes,
        ErrorKind::TruncatedBody,
        ErrorKind::WrongVersion,
        ErrorKind::WrongNotModified,
        ErrorKind::WrongStatus,
        ErrorKind::UnrequestedCoding,
        ErrorKind::Stale,
        ErrorKind::HitOnReload,
        ErrorKind::HitOnUncachable,
        ErrorKind::WrongVariant,
        ErrorKind::ErrorStatus,
        ErrorKind::Malformed,
        ErrorKind::ExtraBytes,
        ErrorKind::WrongUpload,
        ErrorKind::RepeatedPost,
        ErrorKind::ConnectFailed,
        ErrorKind::TlsCertificateExpired,
        ErrorKind::TlsCertificateName,
        ErrorKind::TlsCertificateUntrusted,
        ErrorKind::TlsNoCommonParameters,
        ErrorKind::TlsNotSpoken,
        ErrorKind::TlsFailed,
        ErrorKind::TlsTruncated,
        ErrorKind::StreamReset,
        ErrorKind::ConnectionLost,
        ErrorKind::TimedOut,
        ErrorKind::QueueOverflow,
        ErrorKind::PortsExhausted,
        ErrorKind::DescriptorsExhausted,
    ];

    /// The name used in JSON and tables.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Foreign => "foreign",
            ErrorKind::WrongObject => "wrong_object",
            ErrorKind::WrongLength => "wrong_length",
            ErrorKind::WrongBytes => "wrong_bytes",
            ErrorKind::TruncatedBody => "truncated_body",
            ErrorKind::WrongVersion => "wrong_version",
            ErrorKind::WrongNotModified => "wrong_not_modified",
            ErrorKind::WrongStatus => "wrong_status",
            ErrorKind::UnrequestedCoding => "unrequested_coding",
            ErrorKind::Stale => "stale",
            ErrorKind::HitOnReload => "hit_on_reload",
            ErrorKind::HitOnUncachable => "hit_on_uncachable",
            ErrorKind::WrongVariant => "wrong_variant",
            ErrorKind::ErrorStatus => "error_status",
            ErrorKind::Malformed => "malformed",
            ErrorKind::ExtraBytes => "extra_bytes",
            ErrorKind::WrongUpload => "wrong_upload",
            ErrorKind::RepeatedPost => "repeated_post",
            ErrorKind::ConnectFailed => "connect_failed",
            ErrorKind::TlsCertificateExpired => "tls_certificate_expired",
            ErrorKind::TlsCertificateName => "tls_certificate_name",
            ErrorKind::TlsCertificateUntrusted => "tls_certificate_untrusted",
            ErrorKind::TlsNoCommonParameters => "tls_no_common_parameters",
            ErrorKind::TlsNotSpoken => "tls_not_spoken",
            ErrorKind::TlsFailed => "tls_failed",
            ErrorKind::TlsTruncated => "tls_truncated",
            ErrorKind::StreamReset => "stream_reset",
            ErrorKind::ConnectionLost => "connection_lost",
            ErrorKind::TimedOut => "timed_out",
            ErrorKind::QueueOverflow => "queue_overflow",
            ErrorKind::PortsExhausted => "ports_exhausted",
            ErrorKind::DescriptorsExhausted => "descriptors_exhausted",
        }
    }

    /// True where a response was not the object that was requested, whole and as the origin made it. Not all of it is the
    /// target's fault: a body can be cut off by the network, and a proxy's own error page is foreign.
    pub fn is_not_as_requested(self) -> bool {
        self <= ErrorKind::UnrequestedCoding
    }

    /// True where a response came from a cache that may not have been served from there.
    pub fn is_not_to_be_served(self) -> bool {
        (ErrorKind::Stale..=ErrorKind::WrongVariant).contains(&self)
    }

    /// True where a client got a response that is wrong: not as the origin made it, not whole, not HTTP, or not to be served
    /// to it; or where an origin got another request body than the client had sent, or a POST twice. One such message fails
    /// a run that does not allow it. No response at all, and an error that says so, are not among them: a busy machine or an origin can be
    /// the cause.
    pub fn is_wrong_content(self) -> bool {
        let is_not_http =
            matches!(self, ErrorKind::Malformed | ErrorKind::ExtraBytes | ErrorKind::TlsTruncated);
        let is_request = matches!(self, ErrorKind::WrongUpload | ErrorKind::RepeatedPost);
        self.is_not_as_requested() || self.is_not_to_be_served() || is_not_http || is_request
    }

    /// True where no response came: the target did not accept, lost or did not complete it in time.
    pub fn is_without_response(self) -> bool {
        matches!(
            self,
            ErrorKind::ConnectFailed
                | ErrorKind::TlsCertificateExpired
                | ErrorKind::TlsCertificateName
                | ErrorKind::TlsCertificateUntrusted
                | ErrorKind::TlsNoCommonParameters
                | ErrorKind::TlsNotSpoken
                | ErrorKind::TlsFailed
                | ErrorKind::StreamReset
                | ErrorKind::ConnectionLost
                | ErrorKind::TimedOut
                | ErrorKind::QueueOverflow
        )
    }

    /// True when Assay itself, not the target, ran into a limit.
    pub fn is_own(self) -> bool {
        matches!(self, ErrorKind::PortsExhausted | ErrorKind::DescriptorsExhausted)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One error, kept so that a person can look at it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorExample {
    /// Its class.
    pub kind: ErrorKind,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// Name of the phase.
    pub phase: String,
    /// Which xact: `robot.number.place`, as in the xact log.
    pub xact: String,
    /// Method and URL.
    pub request: String,
    /// What was seen, and what should have been.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(class: fn(ErrorKind) -> bool) -> Vec<&'static str> {
        ErrorKind::ALL.into_iter().filter(|kind| class(*kind)).map(ErrorKind::name).collect()
    }

    #[test]
    fn what_is_not_as_requested_and_what_may_not_be_served_are_told_apart() {
        assert_eq!(
            names_of(ErrorKind::is_not_as_requested),
            [
                "foreign",
                "wrong_object",
                "wrong_length",
                "wrong_bytes",
                "truncated_body",
                "wrong_version",
                "wrong_not_modified",
                "wrong_status",
                "unrequested_coding"
            ]
        );
        assert_eq!(
            names_of(ErrorKind::is_not_to_be_served),
            ["stale", "hit_on_reload", "hit_on_uncachable", "wrong_variant"]
        );
    }

    #[test]
    fn what_a_client_got_and_should_not_have_is_wrong_and_nothing_else_is() {
        assert_eq!(
            names_of(|kind| !kind.is_wrong_content()),
            [
                "error_status",
                "connect_failed",
                "tls_certificate_expired",
                "tls_certificate_name",
                "tls_certificate_untrusted",
                "tls_no_common_parameters",
                "tls_not_spoken",
                "tls_failed",
                "stream_reset",
                "connection_lost",
                "timed_out",
                "queue_overflow",
                "ports_exhausted",
                "descriptors_exhausted"
            ]
        );
    }
}
