//! Nonces: whether this server made one, and how long ago.
//!
//! A nonce is the second it was made in, with a digest of that and a key. Whoever has the key can tell its own nonces from
//! others without having kept any.

use crate::digest::hexadecimal_sha256;
use crate::field::write_decimal;

/// Digits of the digest in a nonce.
const PROOF_DIGITS: usize = 32;

/// A maker of nonces.
#[derive(Debug, Clone, Copy)]
pub struct Nonces {
    key: u64,
    /// For how long a nonce is good, in seconds.
    life_s: u64,
}

/// State of a nonce that a client sends back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonceState {
    /// Ours, and young enough.
    Good,
    /// Ours, and too old.
    Stale,
    /// The nonce is not ours.
    Foreign,
}

impl Nonces {
    /// With a key that clients do not know, and nonces that are good for `life_s` seconds.
    pub fn new(key: u64, life_s: u64) -> Self {
        Self { key, life_s }
    }

    /// The nonce of this second.
    pub fn make(&self, now_s: u64) -> Vec<u8> {
        let mut nonce = Vec::with_capacity(64);
        write_decimal(&mut nonce, now_s);
        let proof = self.proof(&nonce);
        nonce.push(b'-');
        nonce.extend_from_slice(proof.as_bytes());
        nonce
    }

    /// Judges a nonce at a time.
    pub fn judge(&self, nonce: &[u8], now_s: u64) -> NonceState {
        let Some(dash) = memchr::memchr(b'-', nonce) else { return NonceState::Foreign };
        let (issued, proof) = (&nonce[..dash], &nonce[dash + 1..]);
        match crate::field::decimal(issued) {
            Some(issued_s) if proof == self.proof(issued).as_bytes() => {
                if now_s <= issued_s.saturating_add(self.life_s) {
                    NonceState::Good
                } else {
                    NonceState::Stale
                }
            }
            _ => NonceState::Foreign,
        }
    }

    fn proof(&self, issued: &[u8]) -> String {
        let mut proof = hexadecimal_sha256(&[&self.key.to_le_bytes(), issued]);
        proof.truncate(PROOF_DIGITS);
        proof
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_nonce_is_good_for_its_life_and_for_its_key(key: u64, made_s in 0u64..1 << 40, life_s in 0u64..1000, later_s in 0u64..2000) {
            let nonces = Nonces::new(key, life_s);
            let nonce = nonces.make(made_s);
            let want = if later_s <= life_s { NonceState::Good } else { NonceState::Stale };
            prop_assert_eq!(nonces.judge(&nonce, made_s + later_s), want);
            prop_assert_eq!(Nonces::new(key ^ 1, life_s).judge(&nonce, made_s), NonceState::Foreign);
            let mut forged = nonce;
            forged[0] ^= 1;
            prop_assert_eq!(nonces.judge(&forged, made_s), NonceState::Foreign);
        }

        #[test]
        fn any_bytes_give_a_result(nonce in prop::collection::vec(any::<u8>(), 0..50)) {
            Nonces::new(1, 2).judge(&nonce, 3);
        }
    }
}
