//! Authentication of a robot that is challenged. It responds to a 401 or a 407 within the xact, and sends its credentials
//! unasked from then on.
//!
//! Each origin with all its paths, and the target itself, is one protection space. A space's challenge is
//! kept until the robot's session ends; a password that it did not accept is not sent to it again.

use assay_http::authentication::{Algorithm, Challenge, DigestClient, challenges, write_basic};
use assay_http::field::Field;
use assay_http::head::ResponseHead;
use assay_workload::Login;
use assay_workload::model::OriginIndex;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtectionSpace {
    /// An origin (401).
    Origin(OriginIndex),
    /// The target (407).
    Target,
}

/// Authentication towards one protection space.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AuthState {
    Basic,
    Digest(DigestClient),
    /// The space has rejected the password.
    Rejected,
}

/// The credentials that a request sends, and the robot's session that they belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentCredentials {
    pub origin: bool,
    pub target: bool,
    /// The session of the credentials.
    pub session: u64,
}

/// The request that credentials are for.
#[derive(Debug, Clone, Copy)]
pub struct AuthRequest<'a> {
    pub origin: OriginIndex,
    pub method: &'a str,
    /// Request target, as it is written.
    pub uri: &'a [u8],
    /// The client's own nonce.
    pub cnonce: u64,
}

/// The protection spaces that have sent a challenge so far.
#[derive(Debug, Default)]
pub struct AuthStates {
    spaces: Vec<(ProtectionSpace, AuthState)>,
}

impl ProtectionSpace {
    /// Protection space of a challenge, by the status of the response.
    pub fn from_status(status: u16, origin: OriginIndex) -> Option<Self> {
        match status {
            401 => Some(ProtectionSpace::Origin(origin)),
            407 => Some(ProtectionSpace::Target),
            _ => None,
        }
    }

    /// Field of its challenges.
    pub fn challenge_field(self) -> &'static str {
        match self {
            ProtectionSpace::Origin(_) => "WWW-Authenticate",
            ProtectionSpace::Target => "Proxy-Authenticate",
        }
    }

    /// True when a request sent it credentials.
    fn received_credentials(self, sent_credentials: SentCredentials) -> bool {
        match self {
            ProtectionSpace::Origin(_) => sent_credentials.origin,
            ProtectionSpace::Target => sent_credentials.target,
        }
    }
}

impl AuthStates {
    /// True before the first challenge.
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// Takes a challenge to a request that sent `sent_credentials`. True when a request with credentials may succeed
    /// now.
    pub fn on_challenge(
        &mut self,
        space: ProtectionSpace,
        head: &ResponseHead<'_>,
        sent_credentials: SentCredentials,
    ) -> bool {
        let fields = head.headers().filter(|field| field.is(space.challenge_field()));
        let Some((state, is_stale)) = best(fields) else { return false };
        let known = self.spaces.iter().position(|(other, _)| *other == space);
        let was_rejected = space.received_credentials(sent_credentials) && !is_stale;
        let state = if was_rejected { AuthState::Rejected } else { state };
        let known = match known {
            Some(index) if self.spaces[index].1 == AuthState::Rejected => return false,
            Some(index) => index,
            None => {
                self.spaces.push((space, AuthState::Rejected));
                self.spaces.len() - 1
            }
        };
        self.spaces[known].1 = state;
        self.spaces[known].1 != AuthState::Rejected
    }

    /// Appends the lines with credentials for the spaces that have sent a challenge; returns what was sent.
    pub fn write(
        &mut self,
        login: &Login,
        auth_request: &AuthRequest<'_>,
        out: &mut Vec<u8>,
    ) -> SentCredentials {
        let mut sent_credentials = SentCredentials::default();
        let (user, password) = (login.user.as_bytes(), login.password.as_bytes());
        for (space, state) in &mut self.spaces {
            let (name, was_sent) = match space {
                ProtectionSpace::Origin(origin) if *origin != auth_request.origin => continue,
                ProtectionSpace::Origin(_) => (&b"Authorization: "[..], &mut sent_credentials.origin),
                ProtectionSpace::Target => (&b"Proxy-Authorization: "[..], &mut sent_credentials.target),
            };
            if *state == AuthState::Rejected {
                continue;
            }
            out.extend_from_slice(name);
            match state {
                AuthState::Digest(client) => {
                    client.write(
                        user,
                        password,
                        auth_request.method,
                        auth_request.uri,
                        auth_request.cnonce,
                        out,
                    );
                }
                AuthState::Basic | AuthState::Rejected => write_basic(user, password, out),
            }
            out.extend_from_slice(b"\r\n");
            *was_sent = true;
        }
        sent_credentials
    }
}

/// Strongest supported scheme of these challenges, and whether the password was right and only a nonce too old. None:
/// no scheme is supported.
fn best<'v>(fields: impl Iterator<Item = Field<'v>>) -> Option<(AuthState, bool)> {
    let rank = |challenge: &Challenge<'_>| match challenge {
        Challenge::Digest(digest) if digest.algorithm == Algorithm::Sha256 => 3,
        Challenge::Digest(_) => 2,
        Challenge::Basic { .. } => 1,
        Challenge::Other { .. } => 0,
    };
    match fields.flat_map(|field| challenges(field.value)).max_by_key(rank)? {
        Challenge::Digest(digest) => Some((AuthState::Digest(DigestClient::new(&digest)), digest.stale)),
        Challenge::Basic { .. } => Some((AuthState::Basic, false)),
        Challenge::Other { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use assay_http::authentication::Credentials;

    use super::*;

    const SAID: SentCredentials = SentCredentials { origin: true, target: true, session: 0 };

    fn login() -> Login {
        Login { user: "u".into(), password: "p".into(), wrong: false }
    }

    fn challenged(
        auth_states: &mut AuthStates,
        space: ProtectionSpace,
        challenges: &[&str],
        sent_credentials: SentCredentials,
    ) -> bool {
        let mut text = String::from("HTTP/1.1 401 No\r\n");
        for challenge in challenges {
            text.push_str(&format!("{}: {challenge}\r\n", space.challenge_field()));
        }
        text.push_str("\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        auth_states.on_challenge(space, &head, sent_credentials)
    }

    fn said(auth_states: &mut AuthStates, origin: OriginIndex) -> (SentCredentials, String) {
        let auth_request = AuthRequest { origin, method: "GET", uri: b"/x", cnonce: 7 };
        let mut out = Vec::new();
        let sent_credentials = auth_states.write(&login(), &auth_request, &mut out);
        (sent_credentials, String::from_utf8(out).expect("is ASCII"))
    }

    #[test]
    fn credentials_go_only_where_there_was_a_challenge() {
        let mut auth_states = AuthStates::default();
        assert!(auth_states.is_empty());
        assert_eq!(said(&mut auth_states, 0), (SentCredentials::default(), String::new()));
        assert!(challenged(
            &mut auth_states,
            ProtectionSpace::Origin(3),
            &["Basic realm=r"],
            SentCredentials::default()
        ));
        assert_eq!(said(&mut auth_states, 2).1, "", "another origin has not");
        let (sent_credentials, text) = said(&mut auth_states, 3);
        assert_eq!(text, "Authorization: Basic dTpw\r\n");
        assert!(sent_credentials.origin && !sent_credentials.target);
    }

    #[test]
    fn the_best_scheme_is_used() {
        let mut auth_states = AuthStates::default();
        let all = ["Basic realm=r", "Digest realm=r, nonce=a", "Digest realm=r, nonce=b, algorithm=SHA-256"];
        assert!(challenged(&mut auth_states, ProtectionSpace::Target, &all, SentCredentials::default()));
        let text = said(&mut auth_states, 0).1;
        let value = text.strip_prefix("Proxy-Authorization: ").expect("goes to the target").trim_end();
        let Some(Credentials::Digest(digest)) = Credentials::parse(value.as_bytes()) else {
            panic!("{text}")
        };
        assert_eq!((&*digest.nonce, digest.algorithm), (&b"b"[..], Algorithm::Sha256));
        assert!(digest.proves(b"p", "GET"));
        assert!(!challenged(
            &mut auth_states,
            ProtectionSpace::Origin(0),
            &["Negotiate", "Bearer x=y"],
            SentCredentials::default()
        ));
        assert!(!challenged(&mut auth_states, ProtectionSpace::Origin(0), &[], SentCredentials::default()));
    }

    #[test]
    fn a_password_that_was_not_taken_is_not_shown_again() {
        let mut auth_states = AuthStates::default();
        let basic = ["Basic realm=r"];
        assert!(challenged(&mut auth_states, ProtectionSpace::Origin(0), &basic, SentCredentials::default()));
        assert!(!challenged(&mut auth_states, ProtectionSpace::Origin(0), &basic, SAID));
        assert_eq!(said(&mut auth_states, 0).1, "");
        assert!(!challenged(
            &mut auth_states,
            ProtectionSpace::Origin(0),
            &basic,
            SentCredentials::default()
        ));
    }

    #[test]
    fn a_nonce_that_is_too_old_is_replaced_and_uses_are_counted() {
        let mut auth_states = AuthStates::default();
        let first = ["Digest realm=r, nonce=a, qop=\"auth\""];
        assert!(challenged(&mut auth_states, ProtectionSpace::Origin(0), &first, SentCredentials::default()));
        assert!(said(&mut auth_states, 0).1.contains("nc=00000001"));
        assert!(said(&mut auth_states, 0).1.contains("nc=00000002"));
        let stale = ["Digest realm=r, nonce=c, qop=\"auth\", stale=true"];
        assert!(challenged(&mut auth_states, ProtectionSpace::Origin(0), &stale, SAID));
        let text = said(&mut auth_states, 0).1;
        assert!(text.contains("nonce=\"c\"") && text.contains("nc=00000001"), "{text}");
    }
}
