//! Authentication of a robot that is challenged. It responds to a 401 or a 407 within the xact, and sends its credentials unasked
//! from then on.
//!
//! Each origin with all its paths, and the target itself, is one protection space. A space's challenge is
//! kept until the robot's session ends; a password that it did not accept is not sent to it again.

use assay_http::authentication::{Algorithm, Challenge, DigestClient, challenges, write_basic};
use assay_http::field::Field;
use assay_http::head::ResponseHead;
use assay_workload::Login;
use assay_workload::model::OriginIndex;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenger {
    /// An origin (401).
    Origin(OriginIndex),
    /// The target (407).
    Target,
}

/// How a protection space is satisfied.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Space {
    Basic,
    Digest(DigestClient),
    /// Not at all: it has not taken the password.
    Closed,
}

/// The credentials that a request sends, and the robot's session that they belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    pub origin: bool,
    pub target: bool,
    /// The session of the credentials.
    pub session: u64,
}

/// The request that credentials are for.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    pub origin: OriginIndex,
    pub method: &'a str,
    /// Its target, as it is written.
    pub uri: &'a [u8],
    /// The client's own nonce.
    pub cnonce: u64,
}

/// The protection spaces that have sent a challenge so far.
#[derive(Debug, Default)]
pub struct Challengers {
    spaces: Vec<(Challenger, Space)>,
}

impl Challenger {
    /// The protection space of a challenge, by the status of the response.
    pub fn of(status: u16, origin: OriginIndex) -> Option<Self> {
        match status {
            401 => Some(Challenger::Origin(origin)),
            407 => Some(Challenger::Target),
            _ => None,
        }
    }

    fn challenge_field(self) -> &'static str {
        match self {
            Challenger::Origin(_) => "WWW-Authenticate",
            Challenger::Target => "Proxy-Authenticate",
        }
    }

    /// True when a request sent it credentials.
    fn was_told(self, shown: Shown) -> bool {
        match self {
            Challenger::Origin(_) => shown.origin,
            Challenger::Target => shown.target,
        }
    }
}

impl Challengers {
    /// There has been no challenge yet.
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// A challenge. True when a request with credentials may succeed after the one before, which sent what `shown`
    /// tells.
    pub fn challenged(&mut self, challenger: Challenger, head: &ResponseHead<'_>, shown: Shown) -> bool {
        let fields = head.headers().filter(|field| field.is(challenger.challenge_field()));
        let Some((space, is_stale)) = best(fields) else { return false };
        let known = self.spaces.iter().position(|(other, _)| *other == challenger);
        let space = if challenger.was_told(shown) && !is_stale { Space::Closed } else { space };
        let known = match known {
            Some(place) if self.spaces[place].1 == Space::Closed => return false,
            Some(place) => place,
            None => {
                self.spaces.push((challenger, Space::Closed));
                self.spaces.len() - 1
            }
        };
        self.spaces[known].1 = space;
        self.spaces[known].1 != Space::Closed
    }

    /// Appends the lines with credentials for the spaces that have sent a challenge; returns what was sent.
    pub fn write(&mut self, login: &Login, claim: &Claim<'_>, out: &mut Vec<u8>) -> Shown {
        let mut shown = Shown::default();
        let (user, password) = (login.user.as_bytes(), login.password.as_bytes());
        for (challenger, space) in &mut self.spaces {
            let (name, said) = match challenger {
                Challenger::Origin(origin) if *origin != claim.origin => continue,
                Challenger::Origin(_) => (&b"Authorization: "[..], &mut shown.origin),
                Challenger::Target => (&b"Proxy-Authorization: "[..], &mut shown.target),
            };
            if *space == Space::Closed {
                continue;
            }
            out.extend_from_slice(name);
            match space {
                Space::Digest(client) => {
                    client.write((user, password), claim.method, claim.uri, claim.cnonce, out);
                }
                Space::Basic | Space::Closed => write_basic(user, password, out),
            }
            out.extend_from_slice(b"\r\n");
            *said = true;
        }
        shown
    }
}

/// The best way to satisfy one of these challenges, and whether the password was right and only a nonce too old. None:
/// there is no way.
fn best<'v>(fields: impl Iterator<Item = Field<'v>>) -> Option<(Space, bool)> {
    let rank = |challenge: &Challenge<'_>| match challenge {
        Challenge::Digest(digest) if digest.algorithm == Algorithm::Sha256 => 3,
        Challenge::Digest(_) => 2,
        Challenge::Basic { .. } => 1,
        Challenge::Other { .. } => 0,
    };
    match fields.flat_map(|field| challenges(field.value)).max_by_key(rank)? {
        Challenge::Digest(digest) => Some((Space::Digest(DigestClient::new(&digest)), digest.stale)),
        Challenge::Basic { .. } => Some((Space::Basic, false)),
        Challenge::Other { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use assay_http::authentication::Credentials;

    use super::*;

    const SAID: Shown = Shown { origin: true, target: true, session: 0 };

    fn login() -> Login {
        Login { user: "u".into(), password: "p".into(), wrong: false }
    }

    fn challenged(
        challengers: &mut Challengers,
        challenger: Challenger,
        challenges: &[&str],
        shown: Shown,
    ) -> bool {
        let mut text = String::from("HTTP/1.1 401 No\r\n");
        for challenge in challenges {
            text.push_str(&format!("{}: {challenge}\r\n", challenger.challenge_field()));
        }
        text.push_str("\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        challengers.challenged(challenger, &head, shown)
    }

    fn said(challengers: &mut Challengers, origin: OriginIndex) -> (Shown, String) {
        let claim = Claim { origin, method: "GET", uri: b"/x", cnonce: 7 };
        let mut out = Vec::new();
        let shown = challengers.write(&login(), &claim, &mut out);
        (shown, String::from_utf8(out).expect("is ASCII"))
    }

    #[test]
    fn credentials_go_only_where_there_was_a_challenge() {
        let mut challengers = Challengers::default();
        assert!(challengers.is_empty());
        assert_eq!(said(&mut challengers, 0), (Shown::default(), String::new()));
        assert!(challenged(&mut challengers, Challenger::Origin(3), &["Basic realm=r"], Shown::default()));
        assert_eq!(said(&mut challengers, 2).1, "", "another origin has not");
        let (shown, text) = said(&mut challengers, 3);
        assert_eq!(text, "Authorization: Basic dTpw\r\n");
        assert!(shown.origin && !shown.target);
    }

    #[test]
    fn the_best_scheme_is_used() {
        let mut challengers = Challengers::default();
        let all = ["Basic realm=r", "Digest realm=r, nonce=a", "Digest realm=r, nonce=b, algorithm=SHA-256"];
        assert!(challenged(&mut challengers, Challenger::Target, &all, Shown::default()));
        let text = said(&mut challengers, 0).1;
        let value = text.strip_prefix("Proxy-Authorization: ").expect("goes to the target").trim_end();
        let Some(Credentials::Digest(digest)) = Credentials::parse(value.as_bytes()) else {
            panic!("{text}")
        };
        assert_eq!((&*digest.nonce, digest.algorithm), (&b"b"[..], Algorithm::Sha256));
        assert!(digest.proves(b"p", "GET"));
        assert!(!challenged(
            &mut challengers,
            Challenger::Origin(0),
            &["Negotiate", "Bearer x=y"],
            Shown::default()
        ));
        assert!(!challenged(&mut challengers, Challenger::Origin(0), &[], Shown::default()));
    }

    #[test]
    fn a_password_that_was_not_taken_is_not_shown_again() {
        let mut challengers = Challengers::default();
        let basic = ["Basic realm=r"];
        assert!(challenged(&mut challengers, Challenger::Origin(0), &basic, Shown::default()));
        assert!(!challenged(&mut challengers, Challenger::Origin(0), &basic, SAID));
        assert_eq!(said(&mut challengers, 0).1, "");
        assert!(!challenged(&mut challengers, Challenger::Origin(0), &basic, Shown::default()));
    }

    #[test]
    fn a_nonce_that_is_too_old_is_replaced_and_uses_are_counted() {
        let mut challengers = Challengers::default();
        let first = ["Digest realm=r, nonce=a, qop=\"auth\""];
        assert!(challenged(&mut challengers, Challenger::Origin(0), &first, Shown::default()));
        assert!(said(&mut challengers, 0).1.contains("nc=00000001"));
        assert!(said(&mut challengers, 0).1.contains("nc=00000002"));
        let stale = ["Digest realm=r, nonce=c, qop=\"auth\", stale=true"];
        assert!(challenged(&mut challengers, Challenger::Origin(0), &stale, SAID));
        let text = said(&mut challengers, 0).1;
        assert!(text.contains("nonce=\"c\"") && text.contains("nc=00000001"), "{text}");
    }
}
