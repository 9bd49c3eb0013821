//! Rules of `assay size`: the first line is a rule of a key, the second a pattern, then a host, a path, a query and a line of a log with
//! fields and cookies. Whatever they are, nothing panics, a key is a function of its request, and the same request twice suggests no
//! other key.
#![no_main]

use assay_logs::access::Access;
use assay_logs::format::Format;
use assay_logs::size::keys::fields::RequestFields;
use assay_logs::size::keys::rules::KeyRules;
use assay_logs::size::keys::pattern::{Pattern, RuleSubject};
use assay_logs::size::keys::suggest::{KeySuggester, WholeRequest};
use libfuzzer_sys::fuzz_target;

const FORMAT: &str = "$request_uri \"$http_cookie\" \"$http_accept_language\" \"$cookie_a\" \"$sent_http_vary\" \"$sent_http_etag\"";

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (rules, pattern) = (String::from_utf8_lossy(line()), String::from_utf8_lossy(line()));
    let (host, path, query) = (line(), line(), line());
    if let Ok(pattern) = Pattern::parse(&pattern) {
        pattern.matches(&RuleSubject { host, path, content_type: query });
    }
    if let Ok(rules) = KeyRules::parse(&rules) {
        let format = Format::parse(FORMAT).expect("a format");
        let mut access = Access::default();
        let fields = match format.read(line(), &mut access) {
            Ok(()) => RequestFields::of(&access, &format),
            Err(_) => RequestFields::default(),
        };
        let url = rules.key(host, path, query);
        let varies: [Box<str>; 1] = ["accept-language".into()];
        assert_eq!(rules.variant(url, &fields, &varies), rules.clone().variant(url, &fields, &varies));
        let mut suggest = KeySuggester::new(rules);
        for _ in 0..2 {
            suggest.take(&WholeRequest { url: (host, path, query), fields: &fields, varies: &varies, bytes: 9 });
        }
        let (found, _) = suggest.finish();
        assert!(found.is_empty(), "the same URL twice gains nothing by another key");
    }
});
