//! Rules of `assay size`: the first line is a rule of a key, the second a pattern, the rest a host, a path and a query, a line each.
//! Whatever they are, nothing panics, a key is a function of its URL, and the same URL twice suggests no other key.
#![no_main]

use assay_size::keys::normal::KeyRules;
use assay_size::keys::pattern::{Pattern, Shown};
use assay_size::keys::suggest::Suggest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (rules, pattern) = (String::from_utf8_lossy(line()), String::from_utf8_lossy(line()));
    let (host, path, query) = (line(), line(), line());
    if let Ok(pattern) = Pattern::parse(&pattern) {
        pattern.matches(&Shown { host, path, content_type: query });
    }
    if let Ok(rules) = KeyRules::parse(&rules) {
        assert_eq!(rules.key(host, path, query), rules.clone().key(host, path, query));
        let mut suggest = Suggest::new(rules);
        suggest.take(host, path, query, 9);
        suggest.take(host, path, query, 9);
        let (found, _) = suggest.finish();
        assert!(found.is_empty(), "the same URL twice gains nothing by another key");
    }
});
