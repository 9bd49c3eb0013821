//! Requests (and responses) from their first byte to the last of their body: whatever is taken for a message, a reader of its own that
//! forgives nothing takes for the same message; and what it does not take can be written down so that it does.
#![no_main]

#[path = "../../crates/net/http/tests/corpus/agree.rs"]
mod agree;
#[path = "../../crates/net/http/tests/corpus/ending.rs"]
mod ending;
#[path = "../../crates/net/http/tests/corpus/reader.rs"]
mod reader;
#[path = "../../crates/net/http/tests/corpus/response_reader.rs"]
mod response_reader;
#[path = "../../crates/net/http/tests/corpus/strict.rs"]
mod strict;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for judged in [agree::judge(bytes), agree::judge_response(bytes, "GET"), agree::judge_response(bytes, "HEAD")] {
        if let Err(what) = judged {
            panic!("{what}");
        }
    }
    reader::serve(bytes);
});
