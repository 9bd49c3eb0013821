//! The response of an origin, or why there is none.

use std::net::SocketAddr;

use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, ResponseHead};
use assay_plane::upstream::{self, Patience, UpstreamError};
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
    if address == own { Err(Failure::Loop) } else { Ok(address) }
}
