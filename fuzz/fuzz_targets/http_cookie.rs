//! Cookies: any bytes give a result, a jar keeps its limit, and what is set is read again as it is written.
#![no_main]

use assay_http::cookie::{Jar, SetCookie, parse_cookies};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut jar = Jar::new(3);
    for (line, now_s) in bytes.split(|byte| *byte == b'\n').zip(0..) {
        if let Some(cookie) = SetCookie::parse(line) {
            let mut out = Vec::new();
            cookie.write(&mut out);
            assert_eq!(SetCookie::parse(&out), Some(cookie));
            jar.store(&cookie, now_s);
            assert!(jar.len() <= 3);
        }
    }
    let mut out = Vec::new();
    if jar.write(b"/", 0, &mut out) {
        assert!(parse_cookies(&out).count() <= 3);
    }
    parse_cookies(bytes).for_each(drop);
});
