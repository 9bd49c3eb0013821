//! Requests as the Collector reads them, and the key under which equivalent requests share recordings.
//!
//! The *key* consists of the method, the normalised URL, the body, and the fields that make a response personal (cookies,
//! authorisation) or partial (ranges). Fields that a response varies by are known only from the response, and compared there.

use assay_cache::conditional::Conditions;
use assay_cache::freshness::RequestControl;
use assay_cache::http_fields;
use assay_cache::storage::MethodClass;
use assay_http::cache_control::CacheControl;
use assay_http::digest::ContentMd5;
use assay_http::field::{Field, list_has};
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;
use assay_net::fields;

use crate::collector::url::FetchTarget;
use crate::number;

/// Name of the Collector in `Via`.
pub const NAME: &str = "assay-collector";

/// Fields that are part of the key. `true`: as a digest, since values are long or secret.
const KEY_FIELDS: [(&str, bool); 6] = [
    ("cookie", true),
    ("authorization", true),
    ("range", false),
    ("if-range", false),
    ("if-match", false),
    ("if-unmodified-since", false),
];

/// A request whose fields were read in one pass.
pub struct CollectorRequest<'b> {
    pub head: &'b RequestHead<'b>,
    pub target: FetchTarget<'b>,
    pub class: MethodClass,
    /// From `Cache-Control` and `Pragma`.
    pub control: RequestControl,
    /// From `If-None-Match` and `If-Modified-Since` of a GET or HEAD.
    pub conditions: Conditions<'b>,
    /// Has `Authorization`.
    pub is_authorised: bool,
    /// Number of the client's request.
    pub number: Option<u64>,
    /// Has conditions that only the origin can evaluate.
    is_for_origin: bool,
}

impl<'b> CollectorRequest<'b> {
    pub fn new(head: &'b RequestHead<'b>, target: FetchTarget<'b>) -> Self {
        let class = MethodClass::from_method(head.method);
        let mut client_request = Self {
            class,
            head,
            target,
            control: RequestControl::default(),
            conditions: Conditions::default(),
            is_authorised: false,
            number: number::request_number(head),
            is_for_origin: !matches!(class, MethodClass::Get | MethodClass::Head),
        };
        let mut directives: Option<CacheControl> = None;
        let mut pragma_no_cache = false;
        for field in head.headers() {
            match field.name.len() {
                6 if field.is("pragma") => pragma_no_cache |= list_has(field.value, "no-cache"),
                13 if field.is("cache-control") => directives.get_or_insert_default().add(field.value),
                13 if field.is("authorization") => client_request.is_authorised = true,
                13 if field.is("if-none-match") => {
                    // Two lists would have to be joined; the origin can do that.
                    client_request.is_for_origin |=
                        client_request.conditions.if_none_match.replace(field.value).is_some();
                }
                17 if field.is("if-modified-since") => {
                    client_request.conditions.if_modified_since_s = http_fields::date_s(field.value);
                }
                _ => {}
            }
        }
        if client_request.is_for_origin {
            client_request.conditions = Conditions::default();
        }
        client_request.control = http_fields::request_control(directives, pragma_no_cache);
        client_request
    }

    /// The client requests an end-to-end reload or revalidation.
    pub fn wants_new(&self) -> bool {
        self.control.no_cache || self.control.max_age_s == Some(0)
    }

    /// Writes the key; `body` is the digest of the request's body.
    pub fn write_key(&self, body: Option<[u8; 16]>, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.head.method.as_bytes());
        key.push(b' ');
        self.target.write_normalised(key);
        if let Some(digest) = body {
            key.extend_from_slice(b"\nbody ");
            key.extend_from_slice(&digest);
        }
        let mut conditions = [("if-none-match", false), ("if-modified-since", false)].iter();
        let of_the_origin = self.is_for_origin.then_some(&mut conditions).into_iter().flatten();
        for &(name, by_digest) in KEY_FIELDS.iter().chain(of_the_origin) {
            self.write_key_field(name, by_digest, key);
        }
    }

    fn write_key_field(&self, name: &str, by_digest: bool, key: &mut Vec<u8>) {
        let mut values =
            self.head.headers().filter(|field| field.is(name)).map(|field| field.value).peekable();
        if values.peek().is_none() {
            return;
        }
        // A line end occurs neither in URLs nor in field values.
        key.push(b'\n');
        key.extend_from_slice(name.as_bytes());
        key.push(b' ');
        if by_digest {
            let mut digest = ContentMd5::new();
            for value in values {
                digest.update(value);
                digest.update(b"\n");
            }
            key.extend_from_slice(&digest.finish());
        } else {
            values.for_each(|value| {
                key.extend_from_slice(value);
                key.push(b'\r');
            });
        }
    }

    /// Heads for the origin: the request line and fields without the empty line, and separately the client's conditions, since
    /// what is fetched for many is requested in full.
    pub fn request(&self, body_bytes: u64) -> (Vec<u8>, Vec<u8>) {
        let head = &self.head;
        let mut request = Vec::with_capacity(512);
        request.extend_from_slice(head.method.as_bytes());
        request.push(b' ');
        self.target.write_path(&mut request);
        request.extend_from_slice(b" HTTP/1.1\r\n");
        fields::append(&mut request, b"Host", self.target.host().as_bytes());
        let is_condition = |field: &Field<'_>| {
            !self.is_for_origin && (field.is("if-none-match") || field.is("if-modified-since"))
        };
        fields::append_end_to_end(&mut request, head.headers(), head.facts.version, NAME, |field| {
            ["host", "content-length", "expect", number::REQUEST].iter().any(|name| field.is(name))
                || (head.max_forwards().is_some() && field.is("max-forwards"))
                || is_condition(field)
        });
        if let Some(left) = head.max_forwards() {
            fields::append_number(&mut request, "Max-Forwards", left.saturating_sub(1));
        }
        if !matches!(head.body(), BodyFraming::None) {
            fields::append_number(&mut request, "Content-Length", body_bytes);
        }
        // Every response must cost what it costs over a connection of its own (11.3.1 of the thesis).
        request.extend_from_slice(b"Connection: close\r\n");
        let mut conditions = Vec::new();
        for field in head.headers().filter(is_condition) {
            fields::append(&mut conditions, field.name, field.value);
        }
        (request, conditions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_request(line: &str, fields: &str) -> CollectorRequest<'static> {
        let text = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").leak();
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        let head = Box::leak(Box::new(head));
        CollectorRequest::new(head, FetchTarget::from_head(head, None).unwrap())
    }

    fn key(line: &str, fields: &str) -> Vec<u8> {
        let mut key = Vec::new();
        client_request(line, fields).write_key(None, &mut key);
        key
    }

    #[test]
    fn what_makes_a_response_ones_own_or_a_part_tells_requests_apart() {
        let plain = key("GET /x", "");
        for fields in
            ["Cookie: a=1\r\n", "Authorization: x\r\n", "Range: bytes=0-1\r\n", "If-Match: \"a\"\r\n"]
        {
            assert_ne!(key("GET /x", fields), plain, "{fields}");
            assert_eq!(key("GET /x", fields), key("GET http://A:80/x", fields), "{fields}");
        }
        assert_ne!(key("GET /x", "Cookie: a=1\r\n"), key("GET /x", "Cookie: a=2\r\n"));
        assert_ne!(key("HEAD /x", ""), plain);
    }

    #[test]
    fn conditions_and_what_is_negotiated_do_not() {
        let plain = key("GET /x", "");
        for fields in [
            "If-None-Match: \"a\"\r\n",
            "Accept: b\r\n",
            "Cache-Control: no-cache\r\n",
            "X-Assay-Request: 1\r\n",
        ] {
            assert_eq!(key("GET /x", fields), plain, "{fields}");
        }
        assert_ne!(
            key("PUT /x", "If-None-Match: *\r\n"),
            key("PUT /x", ""),
            "that is for the origin to weigh"
        );
    }

    #[test]
    fn the_body_is_told_apart_by_its_digest() {
        let post = client_request("POST /x", "Content-Length: 1\r\n");
        let keys = [None, Some([1; 16]), Some([2; 16])].map(|digest| {
            let mut key = Vec::new();
            post.write_key(digest, &mut key);
            key
        });
        assert!(keys[0] != keys[1] && keys[1] != keys[2]);
    }

    #[test]
    fn the_request_to_the_origin_closes_its_connection_and_conditions_stand_apart() {
        let fields = "If-None-Match: \"a\"\r\nX: 1\r\nX-Assay-Request: 7\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\
                      Content-Length: 3\r\n";
        let (request, conditions) = client_request("GET http://b/x", fields).request(3);
        assert_eq!(
            String::from_utf8(request).unwrap(),
            "GET /x HTTP/1.1\r\nHost: b\r\nX: 1\r\nVia: 1.1 assay-collector\r\nContent-Length: 3\r\n\
             Connection: close\r\n"
        );
        assert_eq!(conditions, b"If-None-Match: \"a\"\r\n");
    }

    #[test]
    fn who_reloads_wants_it_from_the_origin() {
        assert!(client_request("GET /", "Pragma: no-cache\r\n").wants_new());
        assert!(client_request("GET /", "Cache-Control: max-age=0\r\n").wants_new());
        assert!(!client_request("GET /", "Cache-Control: max-age=1\r\nPragma: no-cache\r\n").wants_new());
    }
}
