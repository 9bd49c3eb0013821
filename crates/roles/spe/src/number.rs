//! The two fields by which the Multiplier and the Collector know which client's request they are talking about, through
//! a proxy between them that passes on what it does not know.
//!
//! The Multiplier numbers each request ([`REQUEST`]). A request that a proxy sends on has the number still, so the Collector
//! serves it with what that very request of the client got, in whatever order requests of proxies come. Where it could not
//! keep that, the response says so ([`LOST`]), and is not held against the proxy. Neither field reaches an origin or a client.
//!
//! A request that came through a tunnel which the Multiplier has opened is one for an `https` URL. Between the Multiplier, the proxies and the
//! Collector it goes in the clear; the number says what it was (`17-https`).

use assay_http::digest::hexadecimal_sha256;
use assay_http::field::{Field, decimal};
use assay_http::head::RequestHead;
use assay_net::fields;

/// In requests: the number of the client's request.
pub const REQUEST: &str = "X-Assay-Request";
/// In responses to proxies: the number of the request whose own response was not kept, and what only the Collector can add to it.
pub const LOST: &str = "X-Assay-Lost";

/// What follows the number of a request for an `https` URL.
const SECURED: &[u8] = b"-https";

/// The number in a request; none: it has no number, or more than one.
pub fn of_request(head: &RequestHead<'_>) -> Option<u64> {
    of_request_with_scheme(head).map(|(number, _)| number)
}

/// The number in a request, and whether it is one for an `https` URL.
pub fn of_request_with_scheme(head: &RequestHead<'_>) -> Option<(u64, bool)> {
    let mut fields = head.headers().filter(|field| field.is(REQUEST));
    let value = fields.next().filter(|_| fields.next().is_none())?.value;
    match value.strip_suffix(SECURED) {
        Some(number) => Some((decimal(number)?, true)),
        None => Some((decimal(value)?, false)),
    }
}

/// Appends the field that numbers a request.
pub fn append(out: &mut Vec<u8>, number: u64, is_secured: bool) {
    match is_secured {
        false => fields::append_number(out, REQUEST, number),
        true => fields::append(out, REQUEST.as_bytes(), &[number.to_string().as_bytes(), SECURED].concat()),
    }
}

/// The value of the mark in a response to request `number`. It is made with a key that no proxy knows: one that marks its own
/// responses would not be held against the client's.
pub fn lost(number: u64, key: &str) -> String {
    format!("{number}-{}", hexadecimal_sha256(&[key.as_bytes(), &number.to_be_bytes()]))
}

/// True where a response is marked as one in place of what request `number` got.
pub fn is_lost<'b>(mut fields: impl Iterator<Item = Field<'b>>, number: u64, key: &str) -> bool {
    fields.any(|field| field.is(LOST) && field.value == lost(number, key).as_bytes())
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
    fn a_number_says_whether_its_request_was_for_an_https_url() {
        for (is_secured, value) in [(false, "7"), (true, "7-https")] {
            let mut text = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
            append(&mut text, 7, is_secured);
            text.extend_from_slice(b"\r\n");
            let (head, _) = RequestHead::parse(&text).unwrap().unwrap();
            assert_eq!(of_request_with_scheme(&head), Some((7, is_secured)));
            assert_eq!(head.header(REQUEST), Some(value.as_bytes()));
        }
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nX-Assay-Request: -https\r\n\r\n";
        assert_eq!(of_request(&RequestHead::parse(text).unwrap().unwrap().0), None);
    }

    #[test]
    fn a_mark_holds_for_its_own_request_only_and_is_made_by_the_collector_alone() {
        let is_marked = |mark: &str, number, key| {
            let text = format!("HTTP/1.1 200 OK\r\nX-Assay-Lost: {mark}\r\n\r\n");
            is_lost(ResponseHead::parse(text.as_bytes()).unwrap().unwrap().0.headers(), number, key)
        };
        let mark = lost(5, "key");
        assert!(is_marked(&mark, 5, "key"));
        assert!(!is_marked(&mark, 6, "key") && !is_marked(&mark, 5, "other"));
        assert!(!is_marked("5", 5, "key") && !is_marked(&mark.replacen('5', "6", 1), 6, "key"));
    }
}
