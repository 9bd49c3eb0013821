//! Upstream server for an object that no cache has, and the head of the request to it.

use assay_net::fields;

use crate::cache_status::ResponseSource;
use crate::client_request::ClientRequest;
use crate::shared::ProxyShared;
use crate::target::{Destination, Target};

pub struct UpstreamRoute {
    pub destination: Destination,
    /// Set if the upstream is a parent, which is sent this URL; `None`: it is the origin.
    parent_url: Option<String>,
}

impl UpstreamRoute {
    /// Routes a request to the origin, or, where requests may not go there, to a parent.
    pub fn to(shared: &ProxyShared, target: &Target<'_>) -> Self {
        let url = shared.peers.never_direct().then(|| shared.routes.url(target)).flatten();
        match url.as_deref().and_then(|url| shared.peers.required_parent(url)) {
            Some(parent) => Self { destination: Destination::Address(parent), parent_url: url },
            None => Self { destination: shared.routes.route(target), parent_url: None },
        }
    }

    pub fn source(&self) -> ResponseSource {
        if self.parent_url.is_some() { ResponseSource::Parent } else { ResponseSource::Origin }
    }

    /// Counts a request.
    pub fn count(&self, shared: &ProxyShared) {
        match self.source() {
            ResponseSource::Parent => shared.peers.count(|c| c.parent_fetches += 1),
            ResponseSource::Origin | ResponseSource::Sibling => shared.count(|c| c.origin_requests += 1),
        }
    }

    /// Writes `METHOD path HTTP/1.1` and `Host`.
    pub fn write_request_line(
        &self,
        shared: &ProxyShared,
        method: &str,
        target: &Target<'_>,
        request: &mut Vec<u8>,
    ) {
        request.extend_from_slice(method.as_bytes());
        request.push(b' ');
        match &self.parent_url {
            Some(url) => request.extend_from_slice(url.as_bytes()),
            None => target.write_path(request),
        }
        request.extend_from_slice(b" HTTP/1.1\r\n");
        let authority = target.authority.unwrap_or(shared.routes.fallback_authority());
        fields::append(request, b"Host", authority.as_bytes());
    }

    /// Appends the head for the origin, without the client's conditions and ranges: missing objects are fetched whole.
    pub fn append_fetch_request(
        &self,
        shared: &ProxyShared,
        client_request: &ClientRequest<'_>,
        target: &Target<'_>,
        request: &mut Vec<u8>,
    ) {
        self.write_request_line(shared, client_request.head.method, target, request);
        fields::append_end_to_end(
            request,
            client_request.head.headers(),
            client_request.received,
            &shared.name,
            |field| {
                const OWN: [&str; 7] = [
                    "host",
                    "content-length",
                    "expect",
                    "if-none-match",
                    "if-modified-since",
                    "range",
                    "if-range",
                ];
                OWN.iter().any(|name| field.is(name))
            },
        );
        request.extend_from_slice(b"\r\n");
    }
}
