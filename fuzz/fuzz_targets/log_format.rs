//! Format strings of access logs, and lines read by them: the first line is the format (or the name of one), the rest a log. Whatever it
//! is, nothing panics, and what is malformed is told with a place in its line.
#![no_main]

use assay_logs::access::Access;
use assay_logs::agent;
use assay_logs::format::{Format, instant_us, detect};
use assay_logs::referrer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (first, log) = text.split_once('\n').unwrap_or((text, ""));
    let mut access = Access::default();
    match Format::parse(first) {
        Ok(format) => {
            for line in log.lines().map(str::as_bytes) {
                match format.read(line, &mut access) {
                    Ok(()) => format.each_extra(access.line, |extra, value| {
                        assert!(!value.is_empty() && format.extras().any(|known| known == extra));
                    }),
                    Err(malformed) => {
                        assert!(malformed.at <= line.len() && !format.explain(&malformed).is_empty());
                    }
                }
                assert!(agent::family_index(access.agent) < agent::families().len());
                assert!(referrer::classify(access.referrer, access.host()).1.len() <= access.referrer.len());
            }
        }
        Err(error) => assert!(!error.why.to_string().is_empty()),
    }
    match detect(log.as_bytes()) {
        Ok(recognised) => assert!(0 < recognised.fit && recognised.fit <= recognised.tried),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
    let _ = instant_us(first);
});
