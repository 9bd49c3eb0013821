//! A certificate in files.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_net::tls::authority::{Authority, KeyKind, Validity};
use assay_net::tls::settings::{Offer, ServerTls};

/// Writes the certificate of `www.test` and its authority into a directory.
pub fn certificate(dir: &Path) -> ServerTls {
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let authority = Authority::new(KeyKind::P256, Validity::around(now_unix_s)).unwrap();
    let identity = authority.issue(&["www.test".to_owned()], Validity::around(now_unix_s)).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(dir.join(name), text).unwrap();
        dir.join(name)
    };
    write("ca.pem", &authority.certificate);
    ServerTls {
        offer: Offer::default(),
        certificate: write("www.pem", &identity.certificate),
        key: write("www.key", &identity.key),
    }
}
