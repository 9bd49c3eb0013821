//! Settings of HTTP/2: what is accepted can be written, and is the same when it is read again.
#![no_main]

use assay_http2::Settings;
use assay_http2::frame::HEAD_BYTES;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|payload: &[u8]| {
    let mut settings = Settings::default();
    if settings.apply(payload).is_ok() {
        let (mut out, mut again) = (Vec::new(), Settings::default());
        settings.write(&mut out);
        again.apply(&out[HEAD_BYTES..]).expect("our own settings are valid");
        assert_eq!(again, settings);
    }
});
