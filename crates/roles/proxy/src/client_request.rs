//! The properties of a client's request that matter to a cache.

use assay_cache::conditional::{Conditions, IfRange};
use assay_cache::freshness::RequestControl;
use assay_cache::http_fields;
use assay_cache::storage::MethodClass;
use assay_http::cache_control::CacheControl;
use assay_http::field::list_has;
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;
use assay_http::range::{ByteRange, parse_range};
use assay_net::fields::ReceivedProtocol;

/// A request whose fields were read in one pass.
pub struct ClientRequest<'b> {
    pub head: &'b RequestHead<'b>,
    pub received: ReceivedProtocol,
    pub class: MethodClass,
    /// From `Cache-Control` and `Pragma`.
    pub control: RequestControl,
    /// From `If-None-Match` and `If-Modified-Since`.
    pub conditions: Conditions<'b>,
    /// Has `Authorization`.
    pub is_authorised: bool,
    /// `Range` of a GET; `None` also for an invalid one, which is ignored.
    pub ranges: Option<Vec<ByteRange>>,
    pub if_range: Option<IfRange<'b>>,
    /// Only the origin can respond: conditions on changing an object, repeated fields, or a body.
    pub is_for_origin: bool,
}

impl<'b> ClientRequest<'b> {
    /// Reads the fields of `head`.
    pub fn new(head: &'b RequestHead<'b>, received: impl Into<ReceivedProtocol>) -> Self {
        let mut client_request = Self {
            class: MethodClass::from_method(head.method),
            control: RequestControl::default(),
            conditions: Conditions::default(),
            is_authorised: false,
            ranges: None,
            if_range: None,
            is_for_origin: !matches!(head.body(), BodyFraming::None | BodyFraming::Length(0)),
            head,
            received: received.into(),
        };
        let mut directives: Option<CacheControl> = None;
        let mut pragma_no_cache = false;
        let mut range: Option<&[u8]> = None;
        for field in head.headers() {
            // By length first: most fields of most requests are none of these.
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
                // The origin decides which of two counts.
                5 if field.is("range") => {
                    client_request.is_for_origin |= range.replace(field.value).is_some()
                }
                8 if field.is("if-range") => client_request.if_range = Some(if_range(field.value)),
                8 if field.is("if-match") => client_request.is_for_origin = true,
                19 if field.is("if-unmodified-since") => client_request.is_for_origin = true,
                _ => {}
            }
        }
        if client_request.class == MethodClass::Get {
            client_request.ranges = range.and_then(|value| parse_range(value).ok());
        }
        client_request.control = http_fields::request_control(directives, pragma_no_cache);
        client_request
    }

    /// Whether there are conditions that a cache evaluates on a stored response.
    pub fn has_conditions(&self) -> bool {
        self.conditions.if_none_match.is_some() || self.conditions.if_modified_since_s.is_some()
    }

    /// Whether the request may be served from the store.
    pub fn is_for_cache(&self) -> bool {
        matches!(self.class, MethodClass::Get | MethodClass::Head) && !self.is_for_origin
    }
}

fn if_range(value: &[u8]) -> IfRange<'_> {
    match value.trim_ascii() {
        tag @ ([b'"', ..] | [b'W', b'/', ..]) => IfRange::Tag(tag),
        date => IfRange::Date(http_fields::date_s(date)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_cache::freshness::MaxStale;

    fn client_request(fields: &str) -> ClientRequest<'static> {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").leak();
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        let version = head.facts.version;
        ClientRequest::new(Box::leak(Box::new(head)), version)
    }

    #[test]
    fn directives_and_conditions_are_found() {
        let client_request = client_request(
            "Cache-Control: max-age=5, max-stale\r\nIf-None-Match: \"a\"\r\nAuthorization: x\r\n\
             If-Modified-Since: Thu, 01 Jan 1970 00:00:10 GMT\r\n",
        );
        assert_eq!(client_request.control.max_age_s, Some(5));
        assert_eq!(client_request.control.max_stale, Some(MaxStale::Any));
        assert_eq!(client_request.conditions.if_none_match, Some(&b"\"a\""[..]));
        assert_eq!(client_request.conditions.if_modified_since_s, Some(10));
        assert!(client_request.is_authorised && client_request.is_for_cache());
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        assert!(client_request("Pragma: no-cache\r\n").control.no_cache);
        assert!(!client_request("Pragma: no-cache\r\nCache-Control: max-age=1\r\n").control.no_cache);
    }

    #[test]
    fn bodies_and_preconditions_are_for_the_origin() {
        for fields in [
            "If-Match: \"a\"\r\n",
            "Range: bytes=0-1\r\nRange: bytes=1-2\r\n",
            "If-Unmodified-Since: x\r\n",
            "Content-Length: 5\r\n",
            "If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n",
        ] {
            assert!(!client_request(fields).is_for_cache(), "{fields}");
        }
        assert!(client_request("").is_for_cache());
    }

    #[test]
    fn ranges_are_read_of_gets_and_ignored_where_they_are_none() {
        let both = client_request("Range: bytes=0-1, -5\r\nIf-Range: Thu, 01 Jan 1970 00:00:10 GMT\r\n");
        assert_eq!(both.ranges.as_ref().map(Vec::len), Some(2));
        assert_eq!(both.if_range, Some(IfRange::Date(Some(10))));
        assert!(both.is_for_cache());
        assert_eq!(client_request("If-Range: W/\"a\"\r\n").if_range, Some(IfRange::Tag(b"W/\"a\"")));
        for ignored in ["Range: lines=1-2\r\n", "Range: bytes=2-1\r\n"] {
            let client_request = client_request(ignored);
            assert!(client_request.ranges.is_none() && client_request.is_for_cache(), "{ignored}");
        }
        let text = b"HEAD / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n";
        let (head, _) = RequestHead::parse(text).unwrap().unwrap();
        assert!(ClientRequest::new(&head, head.facts.version).ranges.is_none());
    }
}
