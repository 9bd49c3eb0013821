//! Credentials of a request, checked.
//!
//! What is protected is still sent with `Cache-Control: public` where it may be cached: by that directive (RFC 9111, 3.5) a shared
//! cache may serve it to any later client, and hits stay what they are elsewhere.

use assay_http::authentication::{Credentials, NonceState};
use assay_workload::model::{AuthDemand, AuthScheme, Method};

use super::request::{Special, method_name, split_target};
use super::site::World;

/// What a request shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Nobody is named, or in a way that is not understood.
    Nothing,
    /// A user, and that the password is known.
    Proven,
    /// The same, with a nonce that is too old.
    Stale,
    /// A user, and no or a wrong proof.
    Wrong,
}

/// What a request shows to an origin that demands authentication.
pub fn shown(world: &World, demand: &AuthDemand, special: &Special, method: Method, now_s: u64) -> Shown {
    let Some(credentials) = special.authorization.as_deref().and_then(Credentials::parse) else {
        return Shown::Nothing;
    };
    let password_of = |user: &[u8]| world.universe.password_of(std::str::from_utf8(user).ok()?);
    match credentials {
        Credentials::Basic { user, password } if demand.schemes.contains(&AuthScheme::Basic) => {
            let is_right = password_of(&user).is_some_and(|right| right.as_bytes() == password);
            if is_right { Shown::Proven } else { Shown::Wrong }
        }
        Credentials::Digest(said) if demand.schemes.contains(&AuthScheme::Digest) => {
            let is_right = password_of(&said.user)
                .is_some_and(|password| said.proves(password.as_bytes(), method_name(method)));
            let uri = std::str::from_utf8(&said.uri).unwrap_or_default();
            // A proxy may have made another form of the target; its path is the same.
            let is_meant = split_target(uri).1 == &*special.path && *said.realm == *demand.realm.as_bytes();
            match (is_right && is_meant, world.nonces.judge(&said.nonce, now_s)) {
                (true, NonceState::Good) => Shown::Proven,
                (true, NonceState::Stale) => Shown::Stale,
                _ => Shown::Wrong,
            }
        }
        Credentials::Basic { .. } | Credentials::Digest(_) => Shown::Nothing,
    }
}
