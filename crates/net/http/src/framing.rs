//! End of a message's body, and whether the connection persists after it.

use crate::head::{RequestHead, ResponseHead};

/// Framing of a body: how its end is found (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body, whatever the fields say.
    None,
    Length(u64),
    Chunked,
    /// The body ends when the connection does (responses only).
    UntilClose,
}

impl RequestHead<'_> {
    /// Framing of the body of this request.
    pub fn body(&self) -> BodyFraming {
        match (self.facts.chunked, self.facts.content_length) {
            (true, _) => BodyFraming::Chunked,
            (false, Some(length)) => BodyFraming::Length(length),
            (false, None) => BodyFraming::None,
        }
    }

    /// Whether the client wants to go on using the connection.
    pub fn persists(&self) -> bool {
        self.facts.persists()
    }
}

impl ResponseHead<'_> {
    /// Framing of the body of this response to a request of `method`.
    pub fn body(&self, method: &str) -> BodyFraming {
        let bodiless = method == "HEAD"
            || matches!(self.status, 100..=199 | 204 | 304)
            || (method == "CONNECT" && matches!(self.status, 200..=299));
        match (self.facts.chunked, self.facts.content_length) {
            _ if bodiless => BodyFraming::None,
            (true, _) => BodyFraming::Chunked,
            (false, Some(length)) => BodyFraming::Length(length),
            (false, None) => BodyFraming::UntilClose,
        }
    }

    /// Whether the connection can be used again after this response to a request of `method`.
    pub fn persists(&self, method: &str) -> bool {
        self.facts.persists() && self.body(method) != BodyFraming::UntilClose && self.status != 101
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> (BodyFraming, bool) {
        let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        (head.body(), head.persists())
    }

    fn response(method: &str, text: &str) -> (BodyFraming, bool) {
        let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        (head.body(method), head.persists(method))
    }

    #[test]
    fn a_request_without_length_has_no_body() {
        assert_eq!(request("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), (BodyFraming::None, true));
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
        assert_eq!(request(post), (BodyFraming::Length(3), false));
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n";
        assert_eq!(request(chunked), (BodyFraming::Chunked, true));
    }

    #[test]
    fn http_1_0_persists_only_when_requested_to() {
        assert!(!request("GET / HTTP/1.0\r\n\r\n").1);
        assert!(request("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").1);
        assert!(!request("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n").1);
    }

    #[test]
    fn responses_to_head_and_304_have_no_body_whatever_their_length_says() {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(response("HEAD", ok), (BodyFraming::None, true));
        assert_eq!(response("GET", ok), (BodyFraming::Length(9), true));
        for status in ["304 Not Modified", "204 No Content", "100 Continue"] {
            let text = format!("HTTP/1.1 {status}\r\nContent-Length: 9\r\n\r\n");
            assert_eq!(response("GET", &text).0, BodyFraming::None, "{status}");
        }
    }

    #[test]
    fn a_response_without_length_ends_with_its_connection() {
        assert_eq!(response("GET", "HTTP/1.1 200 OK\r\n\r\n"), (BodyFraming::UntilClose, false));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(response("GET", chunked), (BodyFraming::Chunked, true));
    }
}
