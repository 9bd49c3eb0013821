//! Authentication: what a server requests, and what a client says.
//!
//! Basic (RFC 7617) and Digest (RFC 7616 with MD5 or SHA-256, `qop=auth` or none). Challenges come in
//! `WWW-Authenticate` or `Proxy-Authenticate`, several to a field if need be ([`challenges`]); credentials go in
//! `Authorization` or `Proxy-Authorization` ([`Credentials`]). A server needs no memory: its nonces say when they were
//! made, under a key ([`Nonces`]); so that a nonce is used twice with one count is not noticed.
//!
//! *Does not:* know user hashes, `auth-int`, session algorithms, or any other scheme; their challenges are passed over.

mod digest;
mod nonce;

pub use self::digest::{Algorithm, Counted, DigestChallenge, DigestClient, DigestCredentials};
pub use self::nonce::{NonceState, Nonces};

use std::borrow::Cow;

use crate::base64;
use crate::field::{List, list, trim};

/// One challenge of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge<'v> {
    /// RFC 7617.
    Basic {
        /// Protection space of the password.
        realm: Cow<'v, [u8]>,
    },
    /// RFC 7616.
    Digest(DigestChallenge<'v>),
    /// A scheme, or a variant of one, that is not ours.
    Other { scheme: &'v [u8] },
}

/// Credentials in an `Authorization` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials<'v> {
    /// RFC 7617.
    Basic { user: Vec<u8>, password: Vec<u8> },
    /// RFC 7616.
    Digest(DigestCredentials<'v>),
}

/// The challenges in the value of a `WWW-Authenticate` or `Proxy-Authenticate` field.
pub fn challenges(value: &[u8]) -> Challenges<'_> {
    let mut members = list(value);
    let next_member = members.next();
    Challenges { members, next_member }
}

#[derive(Debug, Clone)]
pub struct Challenges<'v> {
    members: List<'v>,
    /// The member that begins the next challenge.
    next_member: Option<&'v [u8]>,
}

impl<'v> Iterator for Challenges<'v> {
    type Item = Challenge<'v>;

    fn next(&mut self) -> Option<Challenge<'v>> {
        let next_member = self.next_member.take()?;
        let (scheme, first) = split_scheme(next_member);
        let mut parameters = Vec::new();
        parameters.extend(parameter(first));
        for member in self.members.by_ref() {
            match parameter(member) {
                Some(parameter) => parameters.push(parameter),
                None => {
                    self.next_member = Some(member);
                    break;
                }
            }
        }
        Some(Challenge::new(scheme, &parameters))
    }
}

impl<'v> Challenge<'v> {
    fn new(scheme: &'v [u8], parameters: &[Parameter<'v>]) -> Self {
        let other = Challenge::Other { scheme };
        if scheme.eq_ignore_ascii_case(b"basic") {
            find(parameters, "realm").map_or(other, |realm| Challenge::Basic { realm })
        } else if scheme.eq_ignore_ascii_case(b"digest") {
            DigestChallenge::new(parameters).map_or(other, Challenge::Digest)
        } else {
            other
        }
    }
}

impl<'v> Credentials<'v> {
    /// Reads the value of an `Authorization` or `Proxy-Authorization` field; none when it is none of ours.
    pub fn parse(value: &'v [u8]) -> Option<Self> {
        let (scheme, rest) = split_scheme(trim(value));
        if scheme.eq_ignore_ascii_case(b"basic") {
            let mut user = base64::decode(rest)?;
            let colon = memchr::memchr(b':', &user)?;
            let password = user.split_off(colon + 1);
            user.truncate(colon);
            return Some(Credentials::Basic { user, password });
        }
        if scheme.eq_ignore_ascii_case(b"digest") {
            let parameters = list(rest).map(parameter).collect::<Option<Vec<_>>>()?;
            return DigestCredentials::new(&parameters).map(Credentials::Digest);
        }
        None
    }
}

/// Appends a Basic challenge.
pub fn write_basic_challenge(realm: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"Basic realm=");
    write_quoted(realm, out);
}

/// Appends Basic credentials. A user's name cannot hold a colon.
pub fn write_basic(user: &[u8], password: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"Basic ");
    base64::encode(&[user, b":", password].concat(), out);
}

/// Name, and value without its quotes.
type Parameter<'v> = (&'v [u8], Cow<'v, [u8]>);

fn find<'v>(parameters: &[Parameter<'v>], name: &str) -> Option<Cow<'v, [u8]>> {
    let found = parameters.iter().find(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
    found.map(|(_, value)| value.clone())
}

/// Splits `Scheme rest`.
fn split_scheme(member: &[u8]) -> (&[u8], &[u8]) {
    let end = member.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(member.len());
    (&member[..end], trim(&member[end..]))
}

/// `name=value` or `name="value"`, where the name is a token; none when it is something else, such as the name of a scheme.
fn parameter(member: &[u8]) -> Option<Parameter<'_>> {
    let equals = memchr::memchr(b'=', member)?;
    let (name, value) = (trim(&member[..equals]), trim(&member[equals + 1..]));
    let is_name =
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_*".contains(byte));
    // What is left of `Basic Zg==` would look like a name with the value `=`.
    let is_value = !value.is_empty() && !value.iter().all(|byte| *byte == b'=');
    (is_name && is_value).then(|| (name, unescaped(value)))
}

/// Without quotes, and without the backslashes within them.
fn unescaped(value: &[u8]) -> Cow<'_, [u8]> {
    let Some(inner) = value.strip_prefix(b"\"").map(|inner| inner.strip_suffix(b"\"").unwrap_or(inner))
    else {
        return Cow::Borrowed(value);
    };
    if !inner.contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let (mut out, mut escaped) = (Vec::with_capacity(inner.len()), false);
    for &byte in inner {
        escaped = byte == b'\\' && !escaped;
        if !escaped {
            out.push(byte);
        }
    }
    Cow::Owned(out)
}

/// Appends a quoted string. Control characters, which a field cannot hold, become `?`.
fn write_quoted(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in value {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..=31 | 127 => out.push(b'?'),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn several_challenges_in_one_field_are_told_apart() {
        let value =
            b"Newauth realm=\"apps, all\", type=1, title=\"Login \\\"to\\\"\", Basic realm=\"simple\", \
                      Negotiate, NTLM TlRMTVNTUAAB==, Digest realm=\"d\", nonce=n1, qop=\"auth-int, auth\", \
                      algorithm=SHA-256, stale=TRUE, opaque=\"o\"";
        let all: Vec<_> = challenges(value).collect();
        assert_eq!(all.len(), 5);
        assert_eq!(all[0], Challenge::Other { scheme: b"Newauth" });
        assert_eq!(all[1], Challenge::Basic { realm: Cow::Borrowed(b"simple") });
        assert_eq!(all[2], Challenge::Other { scheme: b"Negotiate" });
        assert_eq!(all[3], Challenge::Other { scheme: b"NTLM" });
        let Challenge::Digest(digest) = &all[4] else { panic!("{:?}", all[4]) };
        assert_eq!((&*digest.realm, &*digest.nonce), (&b"d"[..], &b"n1"[..]));
        assert!(digest.qop_auth && digest.stale && digest.algorithm == Algorithm::Sha256);
    }

    #[test]
    fn a_challenge_that_cannot_be_met_is_another_scheme() {
        for bad in [
            "Digest realm=\"a\"",
            "Digest realm=a, nonce=b, algorithm=MD5-sess",
            "Digest realm=a, nonce=b, qop=\"auth-int\"",
            "Basic",
        ] {
            let all: Vec<_> = challenges(bad.as_bytes()).collect();
            assert!(matches!(all[..], [Challenge::Other { .. }]), "{bad}: {all:?}");
        }
        assert_eq!(challenges(b" , ").count(), 0);
    }

    #[test]
    fn basic_credentials_are_those_of_the_standard() {
        let mut out = Vec::new();
        write_basic(b"Aladdin", b"open sesame", &mut out);
        assert_eq!(out, b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(Credentials::parse(b"Basic QWxhZGRpbg==").is_none(), "no colon");
        assert!(Credentials::parse(b"Bearer abc").is_none());
        assert!(Credentials::parse(b"Digest username=\"a\"").is_none());
    }

    proptest! {
        #[test]
        fn basic_credentials_come_back(
            user in prop::collection::vec(any::<u8>().prop_filter("", |b| *b != b':'), 0..20),
            password in prop::collection::vec(any::<u8>(), 0..20),
            realm in "[ -~]{0,20}",
        ) {
            let mut out = Vec::new();
            write_basic(&user, &password, &mut out);
            prop_assert_eq!(Credentials::parse(&out), Some(Credentials::Basic { user, password }));
            out.clear();
            write_basic_challenge(realm.as_bytes(), &mut out);
            let found: Vec<_> = challenges(&out).collect();
            prop_assert_eq!(found, [Challenge::Basic { realm: Cow::Owned(realm.into_bytes()) }]);
        }

        #[test]
        fn any_bytes_give_a_result(pieces in prop::collection::vec(prop::sample::select(vec![
            "Basic ", "Digest ", "realm=", "nonce=\"", "\"", "\\", ",", "=", "Zg==", "a", " ", "nc=00000001", "uri=/",
            "response=", "username=x",
        ]), 0..20)) {
            let text = pieces.concat();
            challenges(text.as_bytes()).for_each(drop);
            let _ = Credentials::parse(text.as_bytes());
        }
    }
}
