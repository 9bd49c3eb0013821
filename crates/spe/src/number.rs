//! The two fields by which the Multiplier and the Collector know which client's request they are talking about, through
//! a proxy between them that passes on what it does not know.
//!
//! The Multiplier numbers each request ([`REQUEST`]). A request that a proxy sends on has the number still, so the Collector
//! serves it with what that very request of the client got, in whatever order requests of proxies come. Where it could not
//! keep that, the response says so ([`LOST`]), and is not held against the proxy. Neither field reaches an origin or a client.

use assay_http::field::{Field, decimal};
use assay_http::head::RequestHead;

/// In requests: the number of the client's request.
pub const REQUEST: &str = "X-Assay-Request";
/// In responses to proxies: the number of the request whose own response was not kept.
pub const LOST: &str = "X-Assay-Lost";

/// The number in a request; none: it has no number, or more than one.
pub fn of_request(head: &RequestHead<'_>) -> Option<u64> {
    only(head.headers().filter(|field| field.is(REQUEST)))
}

/// True where a response is marked as one in place of what request `number` got.
pub fn is_lost<'b>(mut fields: impl Iterator<Item = Field<'b>>, number: u64) -> bool {
    fields.any(|field| field.is(LOST) && decimal(field.value) == Some(number))
}

fn only<'b>(mut fields: impl Iterator<Item = Field<'b>>) -> Option<u64> {
    let first = fields.next()?;
    if fields.next().is_some() { None } else { decimal(first.value) }
}

#[cfg(test)]
mod tests {
    use assay_http::head::ResponseHead;

    use super::*;

    #[test]
    fn a_number_is_read_where_there_is_one_and_only_one() {
        let number = |fields: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
            of_request(&RequestHead::parse(text.as_bytes()).unwrap().unwrap().0)
        };
        assert_eq!(number("x-assay-request: 17\r\n"), Some(17));
        assert_eq!(number("X-Assay-Request: 0\r\n"), Some(0));
        for none in ["", "X-Assay-Request: \r\n", "X-Assay-Request: -1\r\n", "X-Assay-Request: 1, 2\r\n"] {
            assert_eq!(number(none), None, "{none}");
        }
        assert_eq!(number("X-Assay-Request: 1\r\nX-Assay-Request: 1\r\n"), None);
    }

    #[test]
    fn a_mark_holds_for_its_own_request_only() {
        let text = "HTTP/1.1 200 OK\r\nX-Assay-Lost: 5\r\n\r\n";
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        assert!(is_lost(head.headers(), 5) && !is_lost(head.headers(), 6));
    }
}
