//! A request, as an origin reads it.

use assay_http::coding::Accepted;
use assay_http::date::parse_date;
use assay_http::head::{RequestHead, Version};
use assay_http::range::{ByteRange, parse_range};
use assay_http::target::{Target, TargetError};
use assay_net::HEALTH_PATH;
use assay_workload::XactId;
use assay_workload::mark::{RequestKind, RequestMark};
use assay_workload::model::{Method, OriginIndex};
use assay_workload::{Fault, Object};

use super::config::SharedOrigins;

/// The request that needs a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTarget {
    Object {
        object: Object,
        /// `If-Modified-Since` of a GET or HEAD, in Unix seconds.
        since_s: Option<u64>,
    },
    /// Whether the origin is there, and which it is.
    Health,
    /// Something fixed with this status.
    Plain(u16),
}

/// A request, as far as it matters for the response.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginRequest {
    pub target: RequestTarget,
    /// The origin that is meant.
    pub origin: OriginIndex,
    /// The robot and xact of the request; none: it does not say.
    pub mark: Option<RequestMark>,
    /// GET for a request that is refused.
    pub method: Method,
    pub client: ClientPersistence,
    /// The request carries a condition that no robot made: the proxy validates.
    pub validates: bool,
    /// Instant at which the origin had all of it, in nanoseconds of `CLOCK_MONOTONIC`.
    pub complete_ns: u64,
    /// Delay by the origin itself, in microseconds: the request lay unread, and its think time ended late.
    pub delay_us: u32,
    /// Parts that plain requests do not have; none: the response is an object or a 304, and nothing else.
    pub special: Option<Box<SpecialRequest>>,
}

/// The special parts of a request whose response may be other than a whole object.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecialRequest {
    /// Parts requested; empty: none, or none that are understood.
    pub ranges: Vec<ByteRange>,
    /// `If-Range`: the parts are wanted only if the object is still of this date; [`u64::MAX`] when it names something else.
    pub if_range_s: Option<u64>,
    /// Content codings that the client accepts.
    pub accepted: Accepted,
    /// The value of `Authorization`.
    pub authorization: Option<Box<[u8]>>,
    /// Path of the target; kept only where it matters (with `authorization`).
    pub path: Box<[u8]>,
    /// The client waits for 100 (Continue), and its body is refused.
    pub is_body_refused: bool,
    /// Fault that is injected.
    pub fault: Option<Fault>,
}

impl Default for SpecialRequest {
    fn default() -> Self {
        Self {
            ranges: Vec::new(),
            if_range_s: None,
            accepted: Accepted::ANYTHING,
            authorization: None,
            path: Box::default(),
            is_body_refused: false,
            fault: None,
        }
    }
}

/// Request of the client about the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientPersistence {
    /// HTTP/1.1 without a `Connection` field.
    Persist,
    /// `Connection: keep-alive`.
    KeepAlive,
    /// `Connection: close`, or HTTP/1.0.
    Close,
}

impl OriginRequest {
    /// Reads a request that came to the address of origin `address_origin`; an error: its target, or its host, is none.
    pub fn read(
        shared: &SharedOrigins,
        address_origin: OriginIndex,
        head: &RequestHead<'_>,
    ) -> Result<Self, TargetError> {
        let fields = OriginFields::find(head);
        let (authority, path) = split_target(head.target);
        let host = authority.or(head.host);
        let named = host.map(|host| shared.configs.requested(address_origin, host));
        let origin = named.flatten().unwrap_or(address_origin);
        let method = method(head.method);
        let target = match shared.universe.parse_path(origin, path) {
            _ if method.is_none() => RequestTarget::Plain(405),
            Ok(id) => {
                let since_s =
                    fields.since.filter(|_| !method.is_some_and(Method::has_body)).and_then(parse_date);
                RequestTarget::Object { object: shared.universe.object(id), since_s }
            }
            Err(_) if is_health_path(path) => RequestTarget::Health,
            Err(_) => RequestTarget::Plain(404),
        };
        // What is known to be there needs no closer look.
        if named == Some(None) || matches!(target, RequestTarget::Plain(404 | 405)) {
            Target::of(head)?;
        }
        let kind = fields.mark.map(|mark| mark.kind);
        let special = match &target {
            RequestTarget::Object { object, .. } if fields.range || !shared.is_plain(origin, object) => {
                Some(Box::new(SpecialRequest::read(method == Some(Method::Get), head, path)))
            }
            RequestTarget::Object { .. } | RequestTarget::Health | RequestTarget::Plain(_) => None,
        };
        Ok(Self {
            target,
            origin,
            mark: fields.mark,
            method: method.unwrap_or(Method::Get),
            client: client_persistence(head),
            complete_ns: 0,
            delay_us: 0,
            validates: fields.conditional && kind != Some(RequestKind::Conditional),
            special,
        })
    }

    #[inline]
    pub fn xact(&self) -> XactId {
        self.mark.map_or(XactId::NOBODY, |mark| mark.xact)
    }

    /// No body goes back.
    #[inline]
    pub fn head_only(&self) -> bool {
        self.method == Method::Head
    }

    /// True if an object is requested, and not something fixed.
    #[inline]
    pub fn is_for_object(&self) -> bool {
        matches!(self.target, RequestTarget::Object { .. })
    }

    /// True for a health check, which does not count.
    pub fn is_health(&self) -> bool {
        self.target == RequestTarget::Health
    }
}

impl SpecialRequest {
    /// Rate of the body; none: as fast as the client takes it.
    pub fn bytes_per_s(&self) -> Option<f64> {
        match self.fault {
            Some(Fault::SlowBody { bytes_per_s }) => Some(bytes_per_s),
            _ => None,
        }
    }

    /// Reads the fields that only matter here. Parts are requested with GET alone (RFC 9110, 14.2).
    #[cold]
    fn read(is_get: bool, head: &RequestHead<'_>, path: &[u8]) -> Self {
        let range = head.header("range").filter(|_| is_get);
        let if_range = head.header("if-range").map(|value| parse_date(value).unwrap_or(u64::MAX));
        let accepts = head.headers().filter(|field| field.is("accept-encoding")).map(|field| field.value);
        let authorization = head.header("authorization");
        Self {
            // A Range that is not understood is ignored.
            ranges: range.and_then(|value| parse_range(value).ok()).unwrap_or_default(),
            if_range_s: if_range,
            accepted: Accepted::parse(accepts),
            authorization: authorization.map(Into::into),
            path: authorization.map(|_| path.into()).unwrap_or_default(),
            ..Self::default()
        }
    }
}

fn method(name: &str) -> Option<Method> {
    match name {
        "GET" => Some(Method::Get),
        "HEAD" => Some(Method::Head),
        "POST" => Some(Method::Post),
        "PUT" => Some(Method::Put),
        _ => None,
    }
}

fn client_persistence(head: &RequestHead<'_>) -> ClientPersistence {
    match head.facts.version {
        _ if head.facts.close => ClientPersistence::Close,
        _ if head.facts.keep_alive => ClientPersistence::KeepAlive,
        Version::Http11 => ClientPersistence::Persist,
        Version::Http10 => ClientPersistence::Close,
    }
}

/// The fields that only origins look at, found in one walk.
#[derive(Default)]
struct OriginFields<'b> {
    mark: Option<RequestMark>,
    since: Option<&'b [u8]>,
    conditional: bool,
    range: bool,
}

impl<'b> OriginFields<'b> {
    fn find(head: &RequestHead<'b>) -> Self {
        let mut fields = Self::default();
        for field in head.headers() {
            match field.name.len() {
                7 if field.is(assay_workload::mark::HEADER) => fields.mark = RequestMark::parse(field.value),
                17 if field.is("if-modified-since") => {
                    fields.since = Some(field.value);
                    fields.conditional = true;
                }
                13 if field.is("if-none-match") => fields.conditional = true,
                5 if field.is("range") => fields.range = true,
                _ => {}
            }
        }
        fields
    }
}

/// Authority (absolute form only) and path of a request target.
pub fn split_target(target: &str) -> (Option<&[u8]>, &[u8]) {
    const SCHEME: &str = "http://";
    let has_scheme = target.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    if target.starts_with('/') || !has_scheme {
        return (None, target.as_bytes());
    }
    let rest = &target.as_bytes()[SCHEME.len()..];
    let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    (Some(&rest[..end]), &rest[end..])
}

/// A query makes a request that no cache has seen.
fn is_health_path(path: &[u8]) -> bool {
    path.strip_prefix(HEALTH_PATH.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'?')
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn request(text: &str) -> OriginRequest {
        let shared = testing::shared();
        let text = text.replace("PATH", &testing::path(&shared, 5));
        let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        OriginRequest::read(&shared, 0, &head).expect("names something")
    }

    #[test]
    fn what_names_nothing_that_could_be_here_is_refused_and_what_is_only_missing_is_not() {
        let shared = testing::shared();
        let read = |text: &str| {
            let text = text.replace("PATH", &testing::path(&shared, 5));
            let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
            OriginRequest::read(&shared, 0, &head).map(|request| request.target).map_err(TargetError::status)
        };
        assert_eq!(read("GET /none HTTP/1.1\r\nHost: elsewhere\r\n\r\n"), Ok(RequestTarget::Plain(404)));
        assert!(matches!(
            read("GET PATH HTTP/1.1\r\nHost: elsewhere\r\n\r\n"),
            Ok(RequestTarget::Object { .. })
        ));
        assert_eq!(read("GET PATH HTTP/1.1\r\nHost: a/b\r\n\r\n"), Err(400));
        assert_eq!(read("GET /none#x HTTP/1.1\r\nHost: a\r\n\r\n"), Err(400));
        assert_eq!(read("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), Err(400));
        assert_eq!(read("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"), Err(501));
        assert_eq!(read("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(RequestTarget::Plain(405)));
    }

    fn since(request: &OriginRequest) -> Option<u64> {
        match request.target {
            RequestTarget::Object { since_s, .. } => since_s,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_forms_of_a_target_name_the_same_object() {
        let origin_form = request("GET PATH HTTP/1.1\r\nHost: a.test:80\r\nX-Assay: 1-2-0-0-b\r\n\r\n");
        let absolute =
            request("GET HTTP://a.test:80PATH HTTP/1.1\r\nHost: other\r\nX-Assay: 1-2-0-0-b\r\n\r\n");
        assert_eq!(origin_form, absolute);
        assert!(matches!(origin_form.target, RequestTarget::Object { since_s: None, .. }));
        assert_eq!(origin_form.xact(), XactId { robot: 1, number: 2, place: 0 });
    }

    #[test]
    fn the_authority_of_the_target_goes_before_host() {
        assert_eq!(request("GET http://b.testPATH HTTP/1.1\r\nHost: a.test\r\n\r\n").origin, 1);
        assert_eq!(request("GET PATH HTTP/1.1\r\nHost: b.test\r\n\r\n").origin, 1);
    }

    #[test]
    fn a_request_without_an_xact_gets_a_response_without_one() {
        assert_eq!(request("GET PATH HTTP/1.1\r\nHost: a\r\n\r\n").xact(), XactId::NOBODY);
        assert_eq!(request("GET PATH HTTP/1.1\r\nHost: a\r\nX-Assay: who?\r\n\r\n").xact(), XactId::NOBODY);
    }

    #[test]
    fn a_condition_is_the_proxys_own_unless_the_robot_says_that_it_made_it() {
        let with = |kind: &str, field: &str| {
            request(&format!("GET PATH HTTP/1.1\r\nHost: a\r\nX-Assay: 1-2-0-0-{kind}\r\n{field}\r\n\r\n"))
                .validates
        };
        let since = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT";
        assert!(with("b", since) && with("r", since) && with("b", "If-None-Match: \"x\""));
        assert!(!with("c", since) && !with("b", "A: b"));
    }

    #[test]
    fn dates_count_for_get_and_head_and_only_when_they_are_dates() {
        let with = |method: &str, date: &str| {
            since(&request(&format!(
                "{method} PATH HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: {date}\r\n\r\n"
            )))
        };
        assert_eq!(with("GET", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(with("HEAD", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(with("POST", "Sun, 06 Nov 1994 08:49:37 GMT"), None);
        assert_eq!(with("GET", "yesterday"), None);
    }

    #[test]
    fn what_is_no_object_is_refused_by_name() {
        let target = |line: &str| request(&format!("{line}\r\nHost: a\r\n\r\n")).target;
        assert_eq!(target("GET /assay/health HTTP/1.1"), RequestTarget::Health);
        assert_eq!(target("GET http://x/assay/health HTTP/1.1"), RequestTarget::Health);
        assert_eq!(target("GET /assay/health?7 HTTP/1.1"), RequestTarget::Health);
        assert_eq!(target("GET /assay/health7 HTTP/1.1"), RequestTarget::Plain(404));
        for line in ["GET / HTTP/1.1", "GET PATH?q HTTP/1.1", "GET http://x HTTP/1.1"] {
            assert_eq!(target(line), RequestTarget::Plain(404), "{line}");
        }
        assert_eq!(target("DELETE PATH HTTP/1.1"), RequestTarget::Plain(405));
        assert_eq!(target("get PATH HTTP/1.1"), RequestTarget::Plain(405));
    }

    #[test]
    fn a_plain_request_a_plain_object_has_nothing_special() {
        let special =
            |line: &str, field: &str| request(&format!("{line}\r\nHost: a\r\n{field}\r\n\r\n")).special;
        for method in ["GET", "HEAD", "POST", "PUT"] {
            assert_eq!(
                special(&format!("{method} PATH HTTP/1.1"), "Accept-Encoding: gzip"),
                None,
                "{method}"
            );
        }
        let ranges = |field: &str| special("GET PATH HTTP/1.1", field).expect("is special").ranges;
        assert_eq!(ranges("Range: bytes=0-4").len(), 1);
        assert_eq!(ranges("Range: lines=0-4").len(), 0);
        let dated =
            special("GET PATH HTTP/1.1", "Range: bytes=-1\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(dated.expect("is special").if_range_s, Some(784_111_777));
        assert!(special("HEAD PATH HTTP/1.1", "Range: bytes=0-4").expect("is special").ranges.is_empty());
    }

    #[test]
    fn the_clients_wish_is_read_from_version_and_field() {
        let client_persistence = |version: &str, field: &str| {
            request(&format!("GET PATH {version}\r\nHost: a\r\n{field}\r\n\r\n")).client
        };
        assert_eq!(client_persistence("HTTP/1.1", "A: b"), ClientPersistence::Persist);
        assert_eq!(client_persistence("HTTP/1.1", "Connection: close"), ClientPersistence::Close);
        assert_eq!(client_persistence("HTTP/1.0", "A: b"), ClientPersistence::Close);
        assert_eq!(client_persistence("HTTP/1.0", "Connection: Keep-Alive"), ClientPersistence::KeepAlive);
    }
}
