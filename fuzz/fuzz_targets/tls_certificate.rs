//! Bytes that claim to be a certificate: no panic, and what is found does not depend on what follows.
#![no_main]

use assay_net::tls::der::validity;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(found) = validity(bytes) {
        assert_eq!(validity(&[bytes, b"\x30\x82\xff\xff"].concat()), Some(found));
    }
});
