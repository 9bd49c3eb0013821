//! The response of an origin, or why there is none.

use std::io;
use std::net::SocketAddr;

use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, ResponseHead};
use assay_net::fields;
use assay_net::listen::leads_to;
use assay_net::upstream::{self, Patience, UpstreamError};
use thiserror::Error;

use crate::response::{Response, Times};
use crate::target::Route;

/// Why there is no usable response. The texts go to the client.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no origin for the request.
    #[error("no origin is configured for this request")]
    Nowhere,
    /// It is this proxy itself.
    #[error("the request leads back to this proxy")]
    Loop,
    /// No parent could serve the request, and it may not go to the origin.
    #[error("no parent cache is available, and the origin may be reached through one only")]
    NoParent,
    /// A 304 to a request without a condition of ours.
    #[error("the origin at {0} confirmed what was not in the request")]
    BadConfirmation(SocketAddr),
    /// What is stored may not be used without it (RFC 9111, 5.2.2.2), and it did not respond.
    #[error("what is stored may not be used without its origin: {0}")]
    Unconfirmed(UpstreamError),
    /// It did not respond, or not in HTTP.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

impl Failure {
    /// The status that tells the client.
    pub fn status(&self) -> u16 {
        match self {
            Failure::Upstream(error) => error.status(),
            Failure::Unconfirmed(_) => 504,
            Failure::Loop => 508,
            _ => 502,
        }
    }

    /// Its type among those of RFC 9209, 2.3.
    fn error_type(&self) -> &'static str {
        match self {
            Failure::Nowhere | Failure::NoParent => "destination_not_found",
            Failure::Loop => "proxy_loop_detected",
            Failure::BadConfirmation(_) => "http_protocol_error",
            Failure::Unconfirmed(error) | Failure::Upstream(error) => match error {
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

    /// Appends the field that says what went wrong; `name` is ours.
    pub fn append_proxy_status(&self, name: &str, out: &mut Vec<u8>) {
        let detail: String = self.to_string().chars().filter(|c| matches!(c, ' '..='~')).collect();
        let detail = detail.replace('\\', "\\\\").replace('"', "\\\"");
        let value = format!("{name}; error={}; details=\"{detail}\"", self.error_type());
        fields::append(out, b"Proxy-Status", value.as_bytes());
    }
}

/// The head of a response, and what it says about the rest.
pub struct OriginResponse {
    /// The part that goes to clients.
    pub response: Response,
    /// How the body is delimited.
    pub framing: BodyFraming,
    /// `Content-Length`, whether or not there is a body.
    pub described_length: Option<u64>,
    /// The connection can be used again when the body was read.
    pub persists: bool,
}

impl OriginResponse {
    /// Of the final response to a request of `method`; `name` is ours.
    pub fn of(head: &ResponseHead<'_>, method: &str, name: &str, times: Times) -> Result<Self, HeadError> {
        Ok(Self {
            response: Response::from_origin(head, name, times)?,
            framing: head.body(method),
            described_length: head.facts.content_length,
            persists: head.persists(method),
        })
    }

    /// Bytes of the body, if they are known.
    pub fn body_length(&self) -> Option<u64> {
        match self.framing {
            BodyFraming::None => Some(0),
            BodyFraming::Length(bytes) => Some(bytes),
            BodyFraming::Chunked | BodyFraming::UntilClose => None,
        }
    }
}

/// The address of a route; names are looked up.
pub async fn address_of(route: &Route, own: SocketAddr, patience: Patience) -> Result<SocketAddr, Failure> {
    let address = match route {
        Route::Nowhere => return Err(Failure::Nowhere),
        Route::Address(address) => *address,
        Route::Name(name) => upstream::resolve(name, patience).await?,
    };
    if leads_to(address, own) { Err(Failure::Loop) } else { Ok(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_in_proxy_status_what_went_wrong_and_keeps_its_string_whole() {
        let said = |failure: Failure| {
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
            said(Failure::Unconfirmed(UpstreamError::TimedOut(address)))
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
