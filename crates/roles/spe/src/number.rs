//! Numbering of clients' requests: two header fields by which the Multiplier and the Collector identify a request through a proxy
//! between them that forwards unknown fields.
//!
//! The Multiplier numbers each request ([`REQUEST`]). A proxy forwards the number, so the Collector serves its request with the
//! response that the client's request of that number got, in whatever order requests of proxies arrive. If that response was not
//! kept, the one sent instead is marked ([`LOST`]), and is not held against the proxy. Neither field reaches an origin or a
//! client.
//!
//! A request from an intercepted tunnel is for an `https` URL. Between the Multiplier, the proxies and the Collector it is sent
//! in the clear; the number carries the scheme (`17-https`).

use assay_http::digest::hexadecimal_sha256;
use assay_http::field::{Field, decimal};
use assay_http::head::RequestHead;
use assay_net::fields;

/// Request field with the number of the client's request.
pub const REQUEST: &str = "X-Assay-Request";
/// Response field, sent to proxies, with the number of the request whose own response was not kept and a digest that only the
/// Collector can compute.
pub const LOST: &str = "X-Assay-Lost";

/// Suffix of the number of a request for an `https` URL.
const SECURED: &[u8] = b"-https";

/// Number of a request; `None` without a number, or with more than one.
pub fn request_number(head: &RequestHead<'_>) -> Option<u64> {
    request_number_and_scheme(head).map(|(number, _)| number)
}

/// Number of a request, and whether it is for an `https` URL.
pub fn request_number_and_scheme(head: &RequestHead<'_>) -> Option<(u64, bool)> {
    let mut fields = head.headers().filter(|field| field.is(REQUEST));
    let value = fields.next().filter(|_| fields.next().is_none())?.value;
    match value.strip_suffix(SECURED) {
        Some(number) => Some((decimal(number)?, true)),
        None => Some((decimal(value)?, false)),
    }
}

pub fn append(out: &mut Vec<u8>, number: u64, is_secured: bool) {
    match is_secured {
        false => fields::append_number(out, REQUEST, number),
        true => fields::append(out, REQUEST.as_bytes(), &[number.to_string().as_bytes(), SECURED].concat()),
    }
}

/// Value of [`LOST`] in a response to request `number`. The key is unknown to proxies: one that could mark its own responses
/// would not be compared.
pub fn lost(number: u64, key: &str) -> String {
    format!("{number}-{}", hexadecimal_sha256(&[key.as_bytes(), &number.to_be_bytes()]))
}

/// Whether a response is marked as sent in place of the one for request `number`.
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
            request_number(&RequestHead::parse(text.as_bytes()).unwrap().unwrap().0)
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
            assert_eq!(request_number_and_scheme(&head), Some((7, is_secured)));
            assert_eq!(head.header(REQUEST), Some(value.as_bytes()));
        }
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nX-Assay-Request: -https\r\n\r\n";
        assert_eq!(request_number(&RequestHead::parse(text).unwrap().unwrap().0), None);
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
