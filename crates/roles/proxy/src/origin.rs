//! Responses of origins, and failures to get one.

use std::io;
use std::net::SocketAddr;

use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, ResponseHead};
use assay_net::fields;
use assay_net::listen::leads_to;
use assay_net::upstream::{self, UpstreamError, UpstreamTimeouts};
use thiserror::Error;

use crate::response::{ProxyResponse, ResponseTimes};
use crate::target::Destination;

/// Reasons for which there is no usable response. The texts go to the client.
#[derive(Debug, Error)]
pub enum OriginFailure {
    #[error("no origin is configured for this request")]
    Nowhere,
    /// The origin is this proxy itself.
    #[error("the request leads back to this proxy")]
    Loop,
    #[error("no parent cache is available, and the origin may be reached through one only")]
    NoParent,
    /// A 304 to a request without a condition of ours.
    #[error("the origin at {0} confirmed what was not in the request")]
    BadConfirmation(SocketAddr),
    /// The stored response must be revalidated (RFC 9111, 5.2.2.2), and the origin did not respond.
    #[error("what is stored may not be used without its origin: {0}")]
    Unconfirmed(UpstreamError),
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

impl OriginFailure {
    /// Status for the client.
    pub fn status(&self) -> u16 {
        match self {
            OriginFailure::Upstream(error) => error.status(),
            OriginFailure::Unconfirmed(_) => 504,
            OriginFailure::Loop => 508,
            _ => 502,
        }
    }

    /// Error type of RFC 9209, 2.3.
    fn error_type(&self) -> &'static str {
        match self {
            OriginFailure::Nowhere | OriginFailure::NoParent => "destination_not_found",
            OriginFailure::Loop => "proxy_loop_detected",
            OriginFailure::BadConfirmation(_) => "http_protocol_error",
            OriginFailure::Unconfirmed(error) | OriginFailure::Upstream(error) => match error {
                UpstreamError::Unknown(_) => "dns_error",
                UpstreamError::Full(_) => "connection_limit_reached",
                UpstreamError::Unreachable(_, cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
                    "connection_refused"
                }
                UpstreamError::Unreachable(_, cause) if cause.kind() == io::ErrorKind::TimedOut => {
                    "connection_timeout"
                }
                UpstreamError::Unreachable(..) => "destination_ip_unroutable",
                UpstreamError::Tls(..) => "tls_protocol_error",
                UpstreamError::TimedOut(_) => "http_response_timeout",
                UpstreamError::Lost(_) | UpstreamError::Unprocessed(_) => "connection_terminated",
                UpstreamError::Cut(_) => "http_response_incomplete",
                UpstreamError::BadResponse(_, HeadError::TooLong | HeadError::TooManyHeaders) => {
                    "http_response_header_section_size"
                }
                UpstreamError::BadResponse(..) | UpstreamError::EndlessInterim(_) => "http_protocol_error",
            },
        }
    }

    /// Appends `Proxy-Status` (RFC 9209); `name` identifies this proxy.
    pub fn append_proxy_status(&self, name: &str, out: &mut Vec<u8>) {
        let detail: String = self.to_string().chars().filter(|c| matches!(c, ' '..='~')).collect();
        let detail = detail.replace('\\', "\\\\").replace('"', "\\\"");
        let value = format!("{name}; error={}; details=\"{detail}\"", self.error_type());
        fields::append(out, b"Proxy-Status", value.as_bytes());
    }
}

/// Head of an origin's response, with what it determines about the body.
pub struct OriginHead {
    /// The end-to-end part.
    pub response: ProxyResponse,
    pub framing: BodyFraming,
    /// `Content-Length`, whether or not there is a body.
    pub described_length: Option<u64>,
    /// The connection can be reused after the body.
    pub persists: bool,
}

impl OriginHead {
    /// Reads the final response to a request of `method`; `name` identifies this proxy.
    pub fn of(
        head: &ResponseHead<'_>,
        method: &str,
        name: &str,
        times: ResponseTimes,
    ) -> Result<Self, HeadError> {
        Ok(Self {
            response: ProxyResponse::from_origin(head, name, times)?,
            framing: head.body(method),
            described_length: head.facts.content_length,
            persists: head.persists(method),
        })
    }

    /// Bytes of the body, if known.
    pub fn body_length(&self) -> Option<u64> {
        match self.framing {
            BodyFraming::None => Some(0),
            BodyFraming::Length(bytes) => Some(bytes),
            BodyFraming::Chunked | BodyFraming::UntilClose => None,
        }
    }
}

/// Resolves a destination to an address.
pub async fn address_of(
    route: &Destination,
    own: SocketAddr,
    timeouts: UpstreamTimeouts,
) -> Result<SocketAddr, OriginFailure> {
    let address = match route {
        Destination::Nowhere => return Err(OriginFailure::Nowhere),
        Destination::Address(address) => *address,
        Destination::Name(name) => upstream::resolve(name, timeouts).await?,
    };
    if leads_to(address, own) { Err(OriginFailure::Loop) } else { Ok(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_in_proxy_status_what_went_wrong_and_keeps_its_string_whole() {
        let said = |failure: OriginFailure| {
            let mut line = Vec::new();
            failure.append_proxy_status("assay", &mut line);
            String::from_utf8(line).unwrap()
        };
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let lost = said(UpstreamError::Lost(address).into());
        assert!(
            lost.starts_with("Proxy-Status: assay; error=connection_terminated; details=\"the server at"),
            "{lost}"
        );
        assert!(
            said(OriginFailure::Unconfirmed(UpstreamError::TimedOut(address)))
                .contains("error=http_response_timeout;")
        );
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(
            said(UpstreamError::Unreachable(address, refused).into()).contains("error=connection_refused;")
        );
        let odd = said(UpstreamError::Unknown("a\"b\r\n\\".into()).into());
        assert!(odd.contains("the address of a\\\"b\\\\ is not known"), "{odd}");
        assert!(odd.ends_with("\"\r\n") && odd.matches('\n').count() == 1, "{odd}");
    }
}
