//! Authentication of requests by an origin.
//!
//! What is protected is still sent with `Cache-Control: public` where it may be cached: by that directive (RFC 9111, 3.5) a shared
//! cache may serve it to any later client, and hits stay what they are elsewhere.

use crate::tally::method_name;
use assay_http::authentication::{Credentials, NonceState};
use assay_workload::model::{AuthDemand, AuthScheme, Method};

use super::config::SharedOrigins;
use super::request::{SpecialRequest, split_target};

/// Credentials of a request, as an origin judges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presented {
    /// Nobody is named, or in a way that is not understood.
    Nothing,
    /// A user, and that the password is known.
    Proven,
    /// A user and the right password, with a nonce that is too old.
    Stale,
    /// A user, and no or a wrong proof.
    Wrong,
}

/// Judges the credentials that a request presents to an origin that demands authentication.
pub fn presented(
    shared: &SharedOrigins,
    demand: &AuthDemand,
    special: &SpecialRequest,
    method: Method,
    now_s: u64,
) -> Presented {
    let Some(credentials) = special.authorization.as_deref().and_then(Credentials::parse) else {
        return Presented::Nothing;
    };
    let password_of = |user: &[u8]| shared.universe.password_of(std::str::from_utf8(user).ok()?);
    match credentials {
        Credentials::Basic { user, password } if demand.schemes.contains(&AuthScheme::Basic) => {
            let is_right = password_of(&user).is_some_and(|right| right.as_bytes() == password);
            if is_right { Presented::Proven } else { Presented::Wrong }
        }
        Credentials::Digest(digest) if demand.schemes.contains(&AuthScheme::Digest) => {
            let is_right = password_of(&digest.user)
                .is_some_and(|password| digest.proves(password.as_bytes(), method_name(method)));
            let uri = std::str::from_utf8(&digest.uri).unwrap_or_default();
            // A proxy may have made another form of the target; its path is the same.
            let is_meant = split_target(uri).1 == &*special.path && *digest.realm == *demand.realm.as_bytes();
            match (is_right && is_meant, shared.nonces.judge(&digest.nonce, now_s)) {
                (true, NonceState::Good) => Presented::Proven,
                (true, NonceState::Stale) => Presented::Stale,
                _ => Presented::Wrong,
            }
        }
        Credentials::Basic { .. } | Credentials::Digest(_) => Presented::Nothing,
    }
}
