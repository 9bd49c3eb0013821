//! Proof that a password is known, without sending it (RFC 7616).

use std::borrow::Cow;

use super::{Parameter, find, write_quoted};
use crate::digest::{hexadecimal_md5, hexadecimal_sha256};
use crate::field::list_has;

/// Hash algorithm of digests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The default when a challenge names none.
    #[default]
    Md5,
    Sha256,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestChallenge<'v> {
    /// Protection space of the password.
    pub realm: Cow<'v, [u8]>,
    /// The server's nonce, which goes into the digest.
    pub nonce: Cow<'v, [u8]>,
    /// To be sent back as it is.
    pub opaque: Option<Cow<'v, [u8]>>,
    pub algorithm: Algorithm,
    /// The server wants uses counted (`qop=auth`).
    pub qop_auth: bool,
    /// The password was right, the nonce too old.
    pub stale: bool,
}

/// Credentials in an `Authorization` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestCredentials<'v> {
    pub user: Cow<'v, [u8]>,
    pub realm: Cow<'v, [u8]>,
    pub nonce: Cow<'v, [u8]>,
    /// The target of the request, as the client wrote it.
    pub uri: Cow<'v, [u8]>,
    pub response: Cow<'v, [u8]>,
    pub algorithm: Algorithm,
    /// Number of the nonce's use; none: `qop` was not used.
    pub counted: Option<Counted<'v>>,
    pub opaque: Option<Cow<'v, [u8]>>,
}

/// Number of a use of a nonce, with the client's own nonce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted<'v> {
    /// The number (`nc`), as eight hexadecimal digits.
    pub count: Cow<'v, [u8]>,
    /// The client's own nonce.
    pub cnonce: Cow<'v, [u8]>,
}

/// State that a client keeps of a challenge, so that it need not be challenged again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestClient {
    realm: Box<[u8]>,
    nonce: Box<[u8]>,
    opaque: Option<Box<[u8]>>,
    algorithm: Algorithm,
    qop_auth: bool,
    uses: u32,
}

impl Algorithm {
    fn parse(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"md5") {
            return Some(Algorithm::Md5);
        }
        name.eq_ignore_ascii_case(b"sha-256").then_some(Algorithm::Sha256)
    }

    fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "MD5",
            Algorithm::Sha256 => "SHA-256",
        }
    }

    fn of(self, pieces: &[&[u8]]) -> String {
        match self {
            Algorithm::Md5 => hexadecimal_md5(pieces),
            Algorithm::Sha256 => hexadecimal_sha256(pieces),
        }
    }

    /// The `response` to a challenge.
    fn response(self, secret: &Secret<'_>, nonce: &[u8], counted: Option<(&[u8], &[u8])>) -> String {
        let Secret { user, realm, password, method, uri } = secret;
        let ha1 = self.of(&[user, b":", realm, b":", password]);
        let ha2 = self.of(&[method, b":", uri]);
        match counted {
            Some((count, cnonce)) => {
                self.of(&[ha1.as_bytes(), b":", nonce, b":", count, b":", cnonce, b":auth:", ha2.as_bytes()])
            }
            None => self.of(&[ha1.as_bytes(), b":", nonce, b":", ha2.as_bytes()]),
        }
    }
}

/// Input of a digest, not all of which is sent.
struct Secret<'a> {
    user: &'a [u8],
    realm: &'a [u8],
    password: &'a [u8],
    method: &'a [u8],
    uri: &'a [u8],
}

impl<'v> DigestChallenge<'v> {
    /// None when something is missing, or something is required that is not implemented.
    pub(super) fn new(parameters: &[Parameter<'v>]) -> Option<Self> {
        let qop = find(parameters, "qop");
        let qop_auth = match &qop {
            None => false,
            Some(offered) if list_has(offered, "auth") => true,
            Some(_) => return None,
        };
        Some(Self {
            realm: find(parameters, "realm")?,
            nonce: find(parameters, "nonce")?,
            opaque: find(parameters, "opaque"),
            algorithm: find(parameters, "algorithm")
                .map_or(Some(Algorithm::Md5), |name| Algorithm::parse(&name))?,
            qop_auth,
            stale: find(parameters, "stale").is_some_and(|value| value.eq_ignore_ascii_case(b"true")),
        })
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Digest realm=");
        write_quoted(&self.realm, out);
        out.extend_from_slice(b", nonce=");
        write_quoted(&self.nonce, out);
        if let Some(opaque) = &self.opaque {
            out.extend_from_slice(b", opaque=");
            write_quoted(opaque, out);
        }
        out.extend_from_slice(b", algorithm=");
        out.extend_from_slice(self.algorithm.name().as_bytes());
        if self.qop_auth {
            out.extend_from_slice(b", qop=\"auth\"");
        }
        if self.stale {
            out.extend_from_slice(b", stale=true");
        }
    }
}

impl<'v> DigestCredentials<'v> {
    /// None when something is missing, or something is required that is not implemented.
    pub(super) fn new(parameters: &[Parameter<'v>]) -> Option<Self> {
        let counted = match find(parameters, "qop") {
            None => None,
            Some(qop) if qop.eq_ignore_ascii_case(b"auth") => {
                let count = find(parameters, "nc").filter(|count| count.len() == 8)?;
                Some(Counted { count, cnonce: find(parameters, "cnonce")? })
            }
            Some(_) => return None,
        };
        Some(Self {
            user: find(parameters, "username")?,
            realm: find(parameters, "realm")?,
            nonce: find(parameters, "nonce")?,
            uri: find(parameters, "uri")?,
            response: find(parameters, "response")?,
            algorithm: find(parameters, "algorithm")
                .map_or(Some(Algorithm::Md5), |name| Algorithm::parse(&name))?,
            counted,
            opaque: find(parameters, "opaque"),
        })
    }

    /// True when its sender knows this password. Whether the nonce is good, and the target the request's, is
    /// another question.
    pub fn proves(&self, password: &[u8], method: &str) -> bool {
        let secret = Secret {
            user: &self.user,
            realm: &self.realm,
            password,
            method: method.as_bytes(),
            uri: &self.uri,
        };
        let counted = self.counted.as_ref().map(|counted| (&*counted.count, &*counted.cnonce));
        self.algorithm.response(&secret, &self.nonce, counted).as_bytes() == &*self.response
    }
}

impl DigestClient {
    /// Takes note of a challenge.
    pub fn new(challenge: &DigestChallenge<'_>) -> Self {
        Self {
            realm: (*challenge.realm).into(),
            nonce: (*challenge.nonce).into(),
            opaque: challenge.opaque.as_ref().map(|opaque| (**opaque).into()),
            algorithm: challenge.algorithm,
            qop_auth: challenge.qop_auth,
            uses: 0,
        }
    }

    /// The realm of the challenge.
    pub fn realm(&self) -> &[u8] {
        &self.realm
    }

    /// Appends credentials for the next request with this nonce. `cnonce` should differ from client to client.
    pub fn write(
        &mut self,
        user: &[u8],
        password: &[u8],
        method: &str,
        uri: &[u8],
        cnonce: u64,
        out: &mut Vec<u8>,
    ) {
        self.uses = self.uses.wrapping_add(1);
        let (count, cnonce) = (format!("{:08x}", self.uses), format!("{cnonce:016x}"));
        let secret = Secret { user, realm: &self.realm, password, method: method.as_bytes(), uri };
        let counted = self.qop_auth.then_some((count.as_bytes(), cnonce.as_bytes()));
        let response = self.algorithm.response(&secret, &self.nonce, counted);
        out.extend_from_slice(b"Digest username=");
        write_quoted(user, out);
        for (name, value) in [
            ("realm", &*self.realm),
            ("nonce", &*self.nonce),
            ("uri", uri),
            ("response", response.as_bytes()),
        ] {
            write_name(name, out);
            write_quoted(value, out);
        }
        write_name("algorithm", out);
        out.extend_from_slice(self.algorithm.name().as_bytes());
        if self.qop_auth {
            out.extend_from_slice(b", qop=auth, nc=");
            out.extend_from_slice(count.as_bytes());
            write_name("cnonce", out);
            write_quoted(cnonce.as_bytes(), out);
        }
        if let Some(opaque) = &self.opaque {
            write_name("opaque", out);
            write_quoted(opaque, out);
        }
    }
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b", ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Challenge, Credentials, challenges};
    use super::*;

    /// RFC 7616, 3.9.1.
    #[test]
    fn the_example_of_the_standard_is_proven() {
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let text = format!(
                "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", uri=\"/dir/index.html\", \
                 algorithm={algorithm}, nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", nc=00000001, \
                 cnonce=\"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ\", qop=auth, response=\"{response}\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            );
            let Some(Credentials::Digest(said)) = Credentials::parse(text.as_bytes()) else {
                panic!("{text}")
            };
            assert!(said.proves(b"Circle of Life", "GET"), "{algorithm}");
            assert!(!said.proves(b"circle of life", "GET") && !said.proves(b"Circle of Life", "POST"));
        }
    }

    /// RFC 2617, 3.2.2.1 without `qop`, by way of RFC 2069.
    #[test]
    fn a_server_that_does_not_count_gets_a_response_too() {
        let found: Vec<_> = challenges(b"Digest realm=\"r\", nonce=\"n\"").collect();
        let [Challenge::Digest(challenge)] = &found[..] else { panic!("{found:?}") };
        let mut out = Vec::new();
        DigestClient::new(challenge).write(b"u", b"p", "GET", b"/", 1, &mut out);
        let text = String::from_utf8(out).expect("is ASCII");
        assert!(!text.contains("qop") && !text.contains("nc="));
        let Some(Credentials::Digest(said)) = Credentials::parse(text.as_bytes()) else { panic!("{text}") };
        assert!(said.proves(b"p", "GET"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn who_knows_the_password_proves_it_and_nobody_else(
            realm in "[ -~]{0,12}", nonce in "[!-~]{1,12}", user in "[ -~]{1,12}", password in "[ -~]{1,12}",
            wrong in "[ -~]{1,12}", sha256: bool, qop_auth: bool, stale: bool, opaque in prop::option::of("[ -~]{1,8}"),
            cnonce: u64,
        ) {
            let challenge = DigestChallenge {
                realm: realm.as_bytes().into(),
                nonce: nonce.as_bytes().into(),
                opaque: opaque.as_ref().map(|opaque| opaque.as_bytes().into()),
                algorithm: if sha256 { Algorithm::Sha256 } else { Algorithm::Md5 },
                qop_auth,
                stale,
            };
            let mut written = Vec::new();
            challenge.write(&mut written);
            let found: Vec<_> = challenges(&written).collect();
            prop_assert_eq!(&found[..], &[Challenge::Digest(challenge.clone())]);
            let mut client = DigestClient::new(&challenge);
            for uses in 1..3 {
                let mut out = Vec::new();
                client.write(user.as_bytes(), password.as_bytes(), "GET", b"/a?b=\"c\"", cnonce, &mut out);
                let Some(Credentials::Digest(said)) = Credentials::parse(&out) else { panic!("{out:?}") };
                prop_assert_eq!((&*said.user, &*said.uri), (user.as_bytes(), &b"/a?b=\"c\""[..]));
                prop_assert!(said.proves(password.as_bytes(), "GET"));
                prop_assert!(!said.proves(password.as_bytes(), "HEAD"));
                prop_assert!(wrong == password || !said.proves(wrong.as_bytes(), "GET"));
                let count = said.counted.as_ref().map(|counted| counted.count.to_vec());
                prop_assert_eq!(count, qop_auth.then(|| format!("{uses:08x}").into_bytes()));
            }
        }
    }
}
