//! Challenges and credentials: any bytes give a result, and what can be written is read back.
#![no_main]

use assay_http::authentication::{Challenge, Credentials, DigestClient, Nonces, challenges};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for challenge in challenges(bytes) {
        if let Challenge::Digest(challenge) = challenge {
            let mut out = Vec::new();
            DigestClient::new(&challenge).write(b"user", b"password", "GET", b"/", 1, &mut out);
            let Some(Credentials::Digest(said)) = Credentials::parse(&out) else {
                panic!("unreadable: {out:?}")
            };
            // A quoted string cannot hold everything: control characters are replaced, and then the proof fails.
            let plain = |text: &[u8]| text.iter().all(|byte| !byte.is_ascii_control());
            if plain(&challenge.realm) && plain(&challenge.nonce) {
                assert!(said.proves(b"password", "GET"));
            }
        }
    }
    if let Some(Credentials::Digest(said)) = Credentials::parse(bytes) {
        said.proves(b"password", "GET");
        Nonces::new(1, 60).judge(&said.nonce, 1000);
    }
});
