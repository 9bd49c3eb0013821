//! What does a request ask an origin for?

use assay_http::date::parse_date;
use assay_http::head::{RequestHead, Version};
use assay_workload::Object;
use assay_workload::model::OriginIndex;

use super::site::World;
use crate::wire::{Kind, RequestMark, XactId};

/// The path that answers anyone.
const HEALTH: &[u8] = b"/assay/health";

/// What is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An object.
    Object {
        /// Which.
        object: Object,
        /// `If-Modified-Since` of a GET or HEAD, in Unix seconds.
        since_s: Option<u64>,
    },
    /// Something fixed with this status.
    Plain(u16),
}

/// A request, as far as it matters for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// What for.
    pub what: What,
    /// The origin that is meant.
    pub origin: OriginIndex,
    /// Who asks; none: the request does not say.
    pub mark: Option<RequestMark>,
    /// HEAD: no body goes back.
    pub head_only: bool,
    /// The client lets the connection live on; `Some(true)`: it says so in a field.
    pub client: ClientWish,
    /// The request carries a condition that no robot made: the proxy validates.
    pub validates: bool,
}

/// What the client wants to become of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientWish {
    /// HTTP/1.1, nothing else said.
    Persist,
    /// `Connection: keep-alive`.
    KeepAlive,
    /// `Connection: close`, or HTTP/1.0.
    Close,
}

impl Ask {
    /// Reads a request that came to the address of origin `at`.
    pub fn read(world: &World, at: OriginIndex, head: &RequestHead<'_>) -> Self {
        let fields = OurFields::find(head);
        let (authority, path) = split_target(head.target);
        let origin = world.sites.asked(at, authority.or(head.host));
        let head_only = head.method == "HEAD";
        let known_method = head_only || matches!(head.method, "GET" | "POST");
        let what = match world.universe.parse_path(origin, path) {
            _ if !known_method => What::Plain(405),
            Ok(id) => {
                let since_s = fields.since.filter(|_| head.method != "POST").and_then(parse_date);
                What::Object { object: world.universe.object(id), since_s }
            }
            Err(_) if path == HEALTH => What::Plain(200),
            Err(_) => What::Plain(404),
        };
        let kind = fields.mark.map(|mark| mark.kind);
        Self {
            what,
            origin,
            mark: fields.mark,
            head_only,
            client: wish(head),
            validates: fields.conditional && kind != Some(Kind::Conditional),
        }
    }

    /// The xact that is answered.
    #[inline]
    pub fn xact(&self) -> XactId {
        self.mark.map_or(XactId::NOBODY, |mark| mark.xact)
    }

    /// True for a request that does not count: somebody asks whether the origin is there.
    pub fn is_health(&self) -> bool {
        self.what == What::Plain(200)
    }
}

fn wish(head: &RequestHead<'_>) -> ClientWish {
    match head.facts.version {
        _ if head.facts.close => ClientWish::Close,
        _ if head.facts.keep_alive => ClientWish::KeepAlive,
        Version::Http11 => ClientWish::Persist,
        Version::Http10 => ClientWish::Close,
    }
}

/// The fields that only origins look at, found in one walk.
#[derive(Default)]
struct OurFields<'b> {
    mark: Option<RequestMark>,
    since: Option<&'b [u8]>,
    conditional: bool,
}

impl<'b> OurFields<'b> {
    fn find(head: &RequestHead<'b>) -> Self {
        let mut found = Self::default();
        for field in head.headers() {
            match field.name.len() {
                7 if field.is(crate::wire::HEADER) => found.mark = RequestMark::parse(field.value),
                17 if field.is("if-modified-since") => {
                    found.since = Some(field.value);
                    found.conditional = true;
                }
                13 if field.is("if-none-match") => found.conditional = true,
                _ => {}
            }
        }
        found
    }
}

/// Authority (absolute form only) and path of a request target.
fn split_target(target: &str) -> (Option<&[u8]>, &[u8]) {
    const SCHEME: &str = "http://";
    let has_scheme = target.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    if target.starts_with('/') || !has_scheme {
        return (None, target.as_bytes());
    }
    let rest = &target.as_bytes()[SCHEME.len()..];
    let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    (Some(&rest[..end]), &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn ask(text: &str) -> Ask {
        let world = testing::world();
        let text = text.replace("PATH", &testing::path(&world, 5));
        let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        Ask::read(&world, 0, &head)
    }

    fn since(ask: &Ask) -> Option<u64> {
        match ask.what {
            What::Object { since_s, .. } => since_s,
            What::Plain(status) => panic!("{status}"),
        }
    }

    #[test]
    fn both_forms_of_a_target_name_the_same_object() {
        let origin_form = ask("GET PATH HTTP/1.1\r\nHost: a.test:80\r\nX-Assay: 1-2-0-0-b\r\n\r\n");
        let absolute = ask("GET HTTP://a.test:80PATH HTTP/1.1\r\nHost: other\r\nX-Assay: 1-2-0-0-b\r\n\r\n");
        assert_eq!(origin_form, absolute);
        assert!(matches!(origin_form.what, What::Object { since_s: None, .. }));
        assert_eq!(origin_form.xact(), XactId { robot: 1, number: 2, place: 0 });
    }

    #[test]
    fn the_authority_of_the_target_goes_before_host() {
        assert_eq!(ask("GET http://b.testPATH HTTP/1.1\r\nHost: a.test\r\n\r\n").origin, 1);
        assert_eq!(ask("GET PATH HTTP/1.1\r\nHost: b.test\r\n\r\n").origin, 1);
    }

    #[test]
    fn a_request_that_names_nobody_is_answered_to_nobody() {
        assert_eq!(ask("GET PATH HTTP/1.1\r\nHost: a\r\n\r\n").xact(), XactId::NOBODY);
        assert_eq!(ask("GET PATH HTTP/1.1\r\nHost: a\r\nX-Assay: who?\r\n\r\n").xact(), XactId::NOBODY);
    }

    #[test]
    fn a_condition_is_the_proxys_own_unless_the_robot_says_that_it_made_it() {
        let with = |kind: &str, field: &str| {
            ask(&format!("GET PATH HTTP/1.1\r\nHost: a\r\nX-Assay: 1-2-0-0-{kind}\r\n{field}\r\n\r\n"))
                .validates
        };
        let since = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT";
        assert!(with("b", since) && with("r", since) && with("b", "If-None-Match: \"x\""));
        assert!(!with("c", since) && !with("b", "A: b"));
    }

    #[test]
    fn dates_count_for_get_and_head_and_only_when_they_are_dates() {
        let with = |method: &str, date: &str| {
            since(&ask(&format!("{method} PATH HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: {date}\r\n\r\n")))
        };
        assert_eq!(with("GET", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(with("HEAD", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(with("POST", "Sun, 06 Nov 1994 08:49:37 GMT"), None);
        assert_eq!(with("GET", "yesterday"), None);
    }

    #[test]
    fn what_is_no_object_is_refused_by_name() {
        let what = |line: &str| ask(&format!("{line}\r\nHost: a\r\n\r\n")).what;
        assert_eq!(what("GET /assay/health HTTP/1.1"), What::Plain(200));
        assert_eq!(what("GET http://x/assay/health HTTP/1.1"), What::Plain(200));
        for line in ["GET / HTTP/1.1", "GET * HTTP/1.1", "GET PATH?q HTTP/1.1", "GET http://x HTTP/1.1"] {
            assert_eq!(what(line), What::Plain(404), "{line}");
        }
        assert_eq!(what("PUT PATH HTTP/1.1"), What::Plain(405));
        assert_eq!(what("get PATH HTTP/1.1"), What::Plain(405));
    }

    #[test]
    fn the_clients_wish_is_read_from_version_and_field() {
        let wish = |version: &str, field: &str| {
            ask(&format!("GET PATH {version}\r\nHost: a\r\n{field}\r\n\r\n")).client
        };
        assert_eq!(wish("HTTP/1.1", "A: b"), ClientWish::Persist);
        assert_eq!(wish("HTTP/1.1", "Connection: close"), ClientWish::Close);
        assert_eq!(wish("HTTP/1.0", "A: b"), ClientWish::Close);
        assert_eq!(wish("HTTP/1.0", "Connection: Keep-Alive"), ClientWish::KeepAlive);
    }
}
