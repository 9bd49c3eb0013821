//! Requests (and responses) from their first byte to the last of their body: whatever is taken for a message, a reader of its own that
//! forgives nothing takes for the same message; and what it does not take can be written down so that it does.
#![no_main]

use assay_testbed::corpus::{agree, reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for judged in [agree::judge(bytes), agree::judge_response(bytes, "GET"), agree::judge_response(bytes, "HEAD")] {
        if let Err(what) = judged {
            panic!("{what}");
        }
    }
    reader::serve(bytes);
});
