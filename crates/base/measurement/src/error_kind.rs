//! Everything that can be wrong with an xact, each under its own name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares [`ErrorKind`]: a row holds a kind, the plural by which a verdict counts it, and its meaning for the users of the target.
macro_rules! error_kinds {
    ($($kind:ident $plural:literal $meaning:literal)*) => {
        /// The class of an error. The order is the order of tables; names are part of the JSON document.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        pub enum ErrorKind {
            $(#[doc = $meaning] $kind,)*
        }

        impl ErrorKind {
            /// Words behind the number of such requests.
            pub fn plural(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => $plural,)*
                }
            }

            /// Meaning for the users of the target, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => $meaning,)*
                }
            }
        }
    };
}

error_kinds! {
    // Content: the response is not the object that was requested.
    Foreign "without X-Assay of our origins"
        "The response did not come from the origins of this run (a page of the target, most likely), or the target has dropped their X-Assay."
    WrongObject "wrong objects" "Another object was delivered in place of the one requested."
    WrongLength "wrong lengths" "Content-Length, or the length received in full, is not the object's."
    WrongBytes "with wrong bytes" "The response was as long as it should be, and not the same: bytes were damaged."
    TruncatedBody "truncated bodies" "The connection ended before the body did."
    WrongVersion "wrong versions" "The response was of a version that the object never had, or no longer should have."
    WrongNotModified "wrong 304s"
        "A 304 to a request that was not conditional, or for an object that had changed."
    WrongStatus "wrong statuses"
        "The status is not the one that the origin sent, or it is no error and does not fit the request, such as 206 to a request without Range."
    UnrequestedCoding "unrequested codings" "The body is in a coding that the robot did not ask for."
    // Caching: the response may not be served.
    Stale "stale responses" "The response had expired before it was served, and no origin had confirmed it."
    HitOnReload "hits on a reload" "The robot requested a fresh response and got one from the store."
    HitOnUncachable "hits on what may not be stored" "A response that no cache may store was stored, and served to another request."
    WrongVariant "wrong variants"
        "A stored response was used for a request that differs, in a field named by Vary, from the one it was fetched for."
    // Protocol.
    ErrorStatus "error statuses" "The client got an error (4xx or 5xx) that the workload did not ask the origin for."
    Malformed "malformed responses" "Bytes that are not HTTP, or a head over the limit."
    ExtraBytes "with extra bytes" "Bytes after the end of the response."
    WrongUpload "request bodies changed on the way"
        "The origin got another request body than the robot had sent: longer, shorter, or with other bytes."
    RepeatedPost "repeated POSTs"
        "The origin got a POST again that the robot had sent once: an order would have been placed twice."
    // Transport.
    ConnectFailed "failed connects" "No connection could be made: the target refused, or did not listen."
    TlsCertificateExpired "expired certificates" "The certificate of the target was expired, or not valid yet."
    TlsCertificateName "certificates for another name" "The certificate of the target was for another name."
    TlsCertificateUntrusted "untrusted certificates"
        "No authority that robots trust had signed the certificate of the target, or it was not acceptable."
    TlsNoCommonParameters "without common TLS parameters"
        "The target and the robots have no version of TLS, cipher suite or application protocol in common."
    TlsNotSpoken "without TLS on the other side" "The target does not speak TLS where robots connected."
    TlsFailed "failed TLS handshakes or records" "The TLS handshake failed in another way, or a record was damaged."
    TlsTruncated "cut off without close_notify"
        "The body ends with the connection, and that ended without close_notify: nobody can tell whether all of it came."
    StreamReset "reset streams"
        "The target reset the stream of HTTP/2 before a response, and not because it had done nothing for the request."
    ConnectionLost "lost connections" "The connection ended before a response began, after one retry on a fresh connection."
    TimedOut "timed out" "No complete response came in time."
    QueueOverflow "over the waiting limit"
        "More requests waited for a connection than the workload allows: the target is far behind."
    // Assay's own limits: they say nothing of the target.
    PortsExhausted "without a source port (Assay's limit)"
        "Assay itself had no source port left: this says nothing about the target."
    DescriptorsExhausted "without a file descriptor (Assay's limit)"
        "Assay itself had no file descriptor left: this says nothing about the target."
}

impl ErrorKind {
    /// The name used in JSON and tables.
    pub fn name(self) -> &'static str {
        self.into()
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
    use strum::VariantArray;

    use super::*;

    fn names_of(class: fn(ErrorKind) -> bool) -> Vec<&'static str> {
        ErrorKind::VARIANTS.iter().copied().filter(|kind| class(*kind)).map(ErrorKind::name).collect()
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
