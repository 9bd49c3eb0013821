//! ICP: any datagram gives a response, and what is read is written the same again.
#![no_main]

use assay_http::icp::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::parse(bytes) {
        let mut out = Vec::new();
        if message.write(&mut out) {
            assert_eq!(out[4..], bytes[4..out.len()]);
            assert_eq!(Message::parse(&out), Ok(message));
        }
    }
});
