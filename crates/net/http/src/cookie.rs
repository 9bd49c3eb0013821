//! Cookies: those that a response sets, and those that a client sends back.
//!
//! The part of RFC 6265 that caches and robots meet: a name, a value, how long it is kept, and below which path it is
//! sent. A [`Jar`] belongs to one client and one server, so domains do not come into it.

use crate::date::{DATE_BYTES, parse_date, write_date};
use crate::field::{decimal, trim, write_decimal};

/// A parsed `Set-Cookie` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetCookie<'v> {
    /// Name, which is not empty.
    pub name: &'v [u8],
    pub value: &'v [u8],
    /// `Path`, when it begins with a slash.
    pub path: Option<&'v [u8]>,
    /// `Max-Age`, in seconds; 0 or less forgets the cookie.
    pub max_age_s: Option<i64>,
    /// `Expires`, in Unix seconds.
    pub expires_s: Option<u64>,
}

impl<'v> SetCookie<'v> {
    /// A cookie for the session, sent everywhere.
    pub fn session(name: &'v [u8], value: &'v [u8]) -> Self {
        Self { name, value, path: Some(b"/"), max_age_s: None, expires_s: None }
    }

    /// Reads the value of a `Set-Cookie` field; none when it sets nothing. Attributes that are not known are passed over.
    pub fn parse(field: &'v [u8]) -> Option<Self> {
        let mut parts = field.split(|byte| *byte == b';');
        let (name, value) = pair(parts.next()?)?;
        let mut cookie = Self { path: None, ..Self::session(name, value) };
        for part in parts {
            let (attribute, value) = pair(part).unwrap_or((trim(part), b""));
            if attribute.eq_ignore_ascii_case(b"path") {
                cookie.path = value.starts_with(b"/").then_some(value);
            } else if attribute.eq_ignore_ascii_case(b"max-age") {
                cookie.max_age_s = seconds(value).or(cookie.max_age_s);
            } else if attribute.eq_ignore_ascii_case(b"expires") {
                cookie.expires_s = cookie_date(value).or(cookie.expires_s);
            }
        }
        Some(cookie)
    }

    /// Appends the value of the field.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_pair(self.name, self.value, out);
        if let Some(path) = self.path {
            out.extend_from_slice(b"; Path=");
            out.extend_from_slice(path);
        }
        if let Some(max_age_s) = self.max_age_s {
            out.extend_from_slice(b"; Max-Age=");
            if max_age_s < 0 {
                out.push(b'-');
            }
            write_decimal(out, max_age_s.unsigned_abs());
        }
        if let Some(expires_s) = self.expires_s {
            let mut date = [0; DATE_BYTES];
            write_date(expires_s, &mut date);
            out.extend_from_slice(b"; Expires=");
            out.extend_from_slice(&date);
        }
    }

    /// Expiry in Unix seconds; none: the end of the session. `Max-Age` goes before `Expires`.
    pub fn forgotten_s(&self, now_s: u64) -> Option<u64> {
        match self.max_age_s {
            Some(age_s) if age_s <= 0 => Some(0),
            Some(age_s) => Some(now_s.saturating_add_signed(age_s)),
            None => self.expires_s,
        }
    }
}

/// `name=value` with a name, both trimmed.
fn pair(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = memchr::memchr(b'=', part)?;
    let name = trim(&part[..equals]);
    (!name.is_empty()).then(|| (name, trim(&part[equals + 1..])))
}

fn seconds(value: &[u8]) -> Option<i64> {
    let (negative, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = decimal(digits).and_then(|size| i64::try_from(size).ok()).unwrap_or(i64::MAX);
    Some(if negative { -size } else { size })
}

/// Dates of cookies may also be written `Sun, 06-Nov-1994 08:49:37 GMT`.
fn cookie_date(value: &[u8]) -> Option<u64> {
    parse_date(value).or_else(|| {
        let mut text: [u8; DATE_BYTES] = value.try_into().ok()?;
        if text[7] != b'-' || text[11] != b'-' {
            return None;
        }
        (text[7], text[11]) = (b' ', b' ');
        parse_date(&text)
    })
}

/// The names and values in a `Cookie` field, in order.
pub fn parse_cookies(field: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    field.split(|byte| *byte == b';').filter_map(pair)
}

fn write_pair(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.push(b'=');
    out.extend_from_slice(value);
}

/// A cookie that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StoredCookie {
    /// Name, `=`, value: as it is sent.
    text: Box<[u8]>,
    name_bytes: usize,
    path: Box<[u8]>,
    forgotten_s: Option<u64>,
}

/// The cookies that one client keeps for one server: the newest first, and no more than a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jar {
    cookies: Vec<StoredCookie>,
    limit: usize,
}

impl Jar {
    /// Keeps up to `limit` cookies; the oldest make room.
    pub fn new(limit: usize) -> Self {
        Self { cookies: Vec::new(), limit }
    }

    /// Number of cookies in it.
    pub fn len(&self) -> usize {
        self.cookies.len()
    }

    /// True when nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Takes a cookie in, instead of one with the same name and path. One that is to be forgotten at once is.
    pub fn store(&mut self, cookie: &SetCookie<'_>, now_s: u64) {
        let path = cookie.path.unwrap_or(b"/");
        self.cookies.retain(|stored| stored.name() != cookie.name || *stored.path != *path);
        let forgotten_s = cookie.forgotten_s(now_s);
        if self.limit == 0 || forgotten_s.is_some_and(|at_s| at_s <= now_s) {
            return;
        }
        self.cookies.truncate(self.limit - 1);
        let mut text = Vec::with_capacity(cookie.name.len() + 1 + cookie.value.len());
        write_pair(cookie.name, cookie.value, &mut text);
        let stored =
            StoredCookie { text: text.into(), name_bytes: cookie.name.len(), path: path.into(), forgotten_s };
        self.cookies.insert(0, stored);
    }

    /// Appends the value of the `Cookie` field of a request for `path`; false: there is none to send.
    pub fn write(&self, path: &[u8], now_s: u64, out: &mut Vec<u8>) -> bool {
        let mut any = false;
        for stored in self.cookies.iter().filter(|stored| stored.is_sent(path, now_s)) {
            if any {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(&stored.text);
            any = true;
        }
        any
    }

    /// The session ends: what was kept for it is forgotten.
    pub fn end_session(&mut self) {
        self.cookies.retain(|stored| stored.forgotten_s.is_some());
    }
}

impl StoredCookie {
    fn name(&self) -> &[u8] {
        &self.text[..self.name_bytes]
    }

    /// RFC 6265, 5.1.4: the path is the cookie's, or lies below it.
    fn is_sent(&self, path: &[u8], now_s: u64) -> bool {
        let below = path.strip_prefix(&*self.path).is_some_and(|rest| {
            rest.is_empty() || self.path.ends_with(b"/") || rest.starts_with(b"/") || rest.starts_with(b"?")
        });
        below && self.forgotten_s.is_none_or(|at_s| now_s < at_s)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> SetCookie<'_> {
        SetCookie::parse(text.as_bytes()).expect("sets a cookie")
    }

    fn sent(jar: &Jar, path: &str, now_s: u64) -> String {
        let mut out = Vec::new();
        assert_eq!(jar.write(path.as_bytes(), now_s, &mut out), !out.is_empty());
        String::from_utf8(out).expect("is ASCII")
    }

    #[test]
    fn attributes_are_found_whatever_their_case() {
        let cookie =
            set(" a = b c ;PATH=/x; max-age=60; Secure; HttpOnly; Expires=Sun, 06-Nov-1994 08:49:37 GMT");
        assert_eq!((cookie.name, cookie.value, cookie.path), (&b"a"[..], &b"b c"[..], Some(&b"/x"[..])));
        assert_eq!((cookie.max_age_s, cookie.expires_s), (Some(60), Some(784_111_777)));
        assert_eq!(cookie.forgotten_s(1000), Some(1060));
        assert_eq!(set("a=; Path=x; Max-Age=soon").path, None);
        assert_eq!(set("a=b; Max-Age=-99999999999999999999").forgotten_s(5), Some(0));
        for bad in ["", "a", "=b", ";a=b", " = "] {
            assert_eq!(SetCookie::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_request_names_its_cookies() {
        let all: Vec<_> = parse_cookies(b"a=b; c=d=e;; f=").collect();
        assert_eq!(all, [(&b"a"[..], &b"b"[..]), (b"c", b"d=e"), (b"f", b"")]);
    }

    #[test]
    fn the_newest_come_first_and_the_oldest_make_room() {
        let mut jar = Jar::new(2);
        for text in ["a=1", "b=2", "a=3", "c=4"] {
            jar.store(&set(text), 0);
        }
        assert_eq!(sent(&jar, "/", 0), "c=4; a=3");
        assert_eq!(jar.len(), 2);
        let mut none = Jar::new(0);
        none.store(&set("a=1"), 0);
        assert!(none.is_empty());
    }

    #[test]
    fn a_cookie_is_sent_until_it_is_forgotten_and_below_its_path() {
        let mut jar = Jar::new(9);
        jar.store(&set("short=1; Max-Age=10"), 100);
        jar.store(&set("deep=2; Path=/x"), 100);
        jar.store(&set("gone=3; Max-Age=0"), 100);
        assert_eq!(sent(&jar, "/x/y", 109), "deep=2; short=1");
        assert_eq!(sent(&jar, "/xy", 109), "short=1");
        assert_eq!(sent(&jar, "/x", 110), "deep=2");
        jar.end_session();
        assert_eq!(sent(&jar, "/x", 109), "short=1");
        jar.store(&set("short=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"), 109);
        assert!(jar.is_empty());
    }

    proptest! {
        #[test]
        fn a_cookie_that_is_written_is_read_back(
            name in "[a-zA-Z0-9]{1,8}", value in "[a-z0-9=]{0,20}", path in prop::option::of("/[a-z/]{0,9}"),
            max_age_s: Option<i32>, expires_s in prop::option::of(0u64..253_402_300_799),
        ) {
            let cookie = SetCookie {
                name: name.as_bytes(),
                value: value.as_bytes(),
                path: path.as_ref().map(|path| path.as_bytes()),
                max_age_s: max_age_s.map(i64::from),
                expires_s,
            };
            let mut out = Vec::new();
            cookie.write(&mut out);
            prop_assert_eq!(SetCookie::parse(&out), Some(cookie));
            let mut jar = Jar::new(1);
            jar.store(&SetCookie { path: None, max_age_s: None, expires_s: None, ..cookie }, 0);
            out.clear();
            prop_assert!(jar.write(b"/", 0, &mut out));
            prop_assert_eq!(parse_cookies(&out).collect::<Vec<_>>(), [(cookie.name, cookie.value)]);
        }

        #[test]
        fn any_bytes_give_a_result(bytes in prop::collection::vec(prop::sample::select(&b"a=;, -/\xff9"[..]), 0..60), limit in 0usize..3) {
            let mut jar = Jar::new(limit);
            if let Some(cookie) = SetCookie::parse(&bytes) {
                jar.store(&cookie, 5);
            }
            prop_assert!(jar.len() <= limit);
            parse_cookies(&bytes).for_each(drop);
        }
    }
}
