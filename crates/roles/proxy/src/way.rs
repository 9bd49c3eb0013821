//! The upstream for an object that no cache has, and the head of the request as it goes there.

use assay_net::fields;

use crate::client_request::ClientRequest;
use crate::handling::Source;
use crate::shared::Shared;
use crate::target::{Route, Target};

/// The upstream for an object that no cache has.
pub struct Way {
    pub route: Route,
    /// It is a parent, and this URL is requested from it; none: it is the origin.
    parent_url: Option<String>,
}

impl Way {
    /// To the origin, or, where requests may not go there, to a parent.
    pub fn to(shared: &Shared, target: &Target<'_>) -> Self {
        let url = shared.peers.never_direct().then(|| shared.routes.url(target)).flatten();
        match url.as_deref().and_then(|url| shared.peers.only_way(url)) {
            Some(parent) => Self { route: Route::Address(parent), parent_url: url },
            None => Self { route: shared.routes.route(target), parent_url: None },
        }
    }

    pub fn source(&self) -> Source {
        if self.parent_url.is_some() { Source::Parent } else { Source::Origin }
    }

    /// Counts a request on its way.
    pub fn count(&self, shared: &Shared) {
        match self.source() {
            Source::Parent => shared.peers.count(|c| c.parent_fetches += 1),
            Source::Origin | Source::Sibling => shared.count(|c| c.origin_requests += 1),
        }
    }

    /// `METHOD path HTTP/1.1` and `Host`.
    pub fn write_request_line(
        &self,
        shared: &Shared,
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

    /// Appends the head as the origin gets it, without the client's conditions: what is missing is fetched whole.
    pub fn append_fetch_request(
        &self,
        shared: &Shared,
        client_request: &ClientRequest<'_>,
        target: &Target<'_>,
        request: &mut Vec<u8>,
    ) {
        self.write_request_line(shared, client_request.head.method, target, request);
        let from = (client_request.received, &shared.name[..]);
        fields::append_end_to_end(request, client_request.head.headers(), from, |field| {
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
        });
        request.extend_from_slice(b"\r\n");
    }
}
