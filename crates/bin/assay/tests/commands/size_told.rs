//! `assay size` on logs that have more of requests and responses: what may be stored, for how long, how it is coded, and which fields and
//! cookies responses depend on.

use serde_json::Value;

use crate::support::Assay;

/// The notes, and hits, validated and uncachable requests of an infinite cache, of a log of nginx with these JSON fields beside the usual.
fn of_json_log(fields: &str, lines: &[String]) -> (String, [u64; 3]) {
    let assay = Assay::new();
    let log = assay.file("access.json", &lines.concat());
    let format = format!(
        r#"{{"at":"$msec","request":"$request","status":$status,"bytes":$body_bytes_sent,{fields}}}"#
    );
    let arguments = ["size", log, "--format", &format, "--policy", "lru", "--sizes", "1MB", "--json"];
    let document: Value = serde_json::from_str(&assay.run(&arguments).exits(0).stdout).unwrap();
    let figures = [
        &document["infinite"]["hits"],
        &document["infinite"]["validated"],
        &document["input"]["uncachable_requests"],
    ];
    (document["notes"].to_string(), figures.map(|figure| figure.as_u64().unwrap()))
}

#[test]
fn what_may_be_stored_and_for_how_long_comes_from_the_log_where_it_says_so() {
    let line = |second: u32, url: &str, control: &str| {
        format!(
            r#"{{"at":"{}.000","request":"GET {url} HTTP/1.1","status":200,"bytes":500,"control":"{control}","expires":"-"}}"#,
            1_700_000_000 + second
        ) + "\n"
    };
    // Every 20 seconds: fresh for a minute, private, and silent after the first.
    let lines: Vec<String> = (0..12)
        .map(|number| {
            let first = if number == 0 { "max-age=3600" } else { "-" };
            line(20 * number, "/a", "public, max-age=50")
                + &line(20 * number, "/mine", "private")
                + &line(20 * number, "/b", first)
        })
        .collect();
    let fields = r#""control":"$sent_http_cache_control","expires":"$sent_http_expires""#;
    let (notes, figures) = of_json_log(fields, &lines);
    // Of /a, two of three requests are hits, and the third is confirmed; /b is a hit from its second request on.
    assert_eq!(figures, [8 + 11, 3, 12], "{notes}");
    assert!(
        notes.contains("12 requests are for what may not be stored") && notes.contains("to be confirmed"),
        "{notes}"
    );
    assert!(!notes.contains("say nothing of their lifetime"), "{notes}");
    // The same without the field: nothing expires, and everything is stored.
    let (notes, figures) = of_json_log(r#""control":"$other","expires":"$another""#, &lines);
    assert_eq!(figures, [33, 0, 0], "{notes}");
}

#[test]
fn coded_variants_are_objects_of_their_own_where_the_log_tells_and_suspected_where_not() {
    let line = |number: u64| {
        let (bytes, coding) = if number.is_multiple_of(2) { (900, "-") } else { (300, "gzip") };
        format!(
            r#"{{"at":"{}.000","request":"GET /a HTTP/1.1","status":200,"bytes":{bytes},"coding":"{coding}"}}"#,
            1_700_000_000 + number
        ) + "\n"
    };
    let lines: Vec<String> = (0..40).map(line).collect();
    let (notes, figures) = of_json_log(r#""coding":"$sent_http_content_encoding""#, &lines);
    assert_eq!(figures, [38, 0, 0], "{notes}");
    assert!(notes.contains("Coded variants of a response"), "{notes}");
    let (notes, figures) = of_json_log(r#""coding":"$other""#, &lines);
    assert_eq!(figures, [0, 0, 0], "{notes}");
    assert!(notes.contains("38 of 39 changes of size are back to the size before"), "{notes}");
}

/// Two pages in two languages for five sessions, twenty times each, as nginx logs them with what responses vary by.
fn variants(vary: &str) -> Vec<String> {
    let line = |number: u64| {
        let (page, language, session) = (number % 2, number / 2 % 2, number / 40);
        let bytes = 1000 + 10 * page + language;
        let name = if language == 0 { "en" } else { "de" };
        format!(
            r#"{{"at":"{}.000","request":"GET /{page} HTTP/1.1","status":200,"bytes":{bytes},"language":"{name}","cookie":"sid={session}; theme=dark","vary":"{vary}"}}"#,
            1_700_000_000 + number
        ) + "\n"
    };
    (0..200).map(line).collect()
}

/// Fields of [`variants`] that are read.
const LANGUAGE: &str = r#""language":"$http_accept_language","cookie":"$other","vary":"$another""#;
const VARY: &str = r#""language":"$http_accept_language","cookie":"$http_cookie","vary":"$sent_http_vary""#;

#[test]
fn responses_that_vary_by_a_logged_field_or_cookie_are_objects_of_their_own() {
    // Each request is for the other language than the one before it.
    let blind = r#""language":"$one","cookie":"$other","vary":"$another""#;
    assert_eq!(of_json_log(blind, &variants("-")).1, [0, 0, 0]);
    let (notes, figures) = of_json_log(VARY, &variants("Accept-Language"));
    assert_eq!(figures, [196, 0, 0], "{notes}");
    assert!(notes.contains("Variants of a response follow from Vary"), "{notes}");
    // Five sessions have four variants each.
    assert_eq!(of_json_log(VARY, &variants("Accept-Language, Cookie")).1, [180, 0, 0]);
    let (notes, figures) = of_json_log(VARY, &variants("*"));
    assert_eq!(figures, [0, 0, 200], "{notes}");
    let unlogged = VARY.replace("$http_cookie", "$other");
    let (notes, figures) = of_json_log(&unlogged, &variants("Accept-Language, Cookie"));
    assert_eq!(figures, [196, 0, 0], "{notes}");
    assert!(notes.contains("200 responses vary by Cookie, which the log does not have"), "{notes}");
}

#[test]
fn keys_with_fields_and_cookies_split_or_join_objects_and_their_costs_are_found() {
    let assay = Assay::new();
    let log = assay.file("access.json", &variants("Accept-Language, Cookie").concat());
    let simulate = |fields: &str, more: &[&str]| -> Value {
        let format = format!(
            r#"{{"at":"$msec","request":"$request","status":$status,"bytes":$body_bytes_sent,{fields}}}"#
        );
        let arguments = ["size", log, "--format", &format, "--policy", "lru", "--sizes", "1MB", "--json"];
        serde_json::from_str(&assay.run(&[&arguments, more].concat()).exits(0).stdout).unwrap()
    };
    let hits =
        |fields: &str, key: &str| simulate(fields, &["--key", key])["infinite"]["hits"].as_u64().unwrap();
    assert_eq!([hits(VARY, "lower host"), hits(VARY, "ignore cookie sid")], [180, 196]);
    assert_eq!([hits(VARY, "ignore cookie"), hits(VARY, "ignore field accept-language")], [196, 0]);
    let own = VARY.replace("$sent_http_vary", "$another");
    assert_eq!([hits(&own, "lower host"), hits(&own, "vary Accept-Language")], [0, 196]);
    assert_eq!([hits(&own, "vary accept-language; cookie sid"), hits(&own, "cookie theme")], [180, 0]);

    let changes = |fields: &str, more: &[&str]| {
        let document = simulate(fields, &[&["--suggest-keys"], more].concat());
        let changes = document["suggestions"].as_array().unwrap().clone();
        let of = |change: &Value| {
            let text = change["rule"].as_str().unwrap().to_owned();
            let safe = change["is_safe"].as_bool().unwrap();
            (text, change["gained_hits"].as_u64().unwrap(), change["lost_hits"].as_u64().unwrap(), safe)
        };
        let sentences = document["advice"].to_string() + &document["notes"].to_string();
        (changes.iter().map(of).collect::<Vec<_>>(), sentences)
    };
    // The session is in the key by `Vary`, and costs 16 hits; the language has to be there.
    let (found, said) = changes(VARY, &[]);
    let session = |rule: &str| (rule.to_owned(), 16, 0, true);
    assert_eq!(found, [session("ignore cookie sid"), session("ignore field cookie")]);
    assert!(said.contains("--key 'ignore cookie sid' would gain 8.00 points"), "{said}");
    // A key of the URL alone lacks the language.
    let (found, said) = changes(LANGUAGE, &[]);
    assert_eq!(found, [("vary accept-language".to_owned(), 196, 0, true)]);
    assert!(said.contains("--key 'vary accept-language' would gain 98.0 points"), "{said}");
    let (found, said) = changes(&own, &["--key", "vary accept-language"]);
    let costs = |rule: &str| (rule.to_owned(), 0, 16, true);
    assert_eq!(found, [costs("cookie sid"), costs("vary cookie")]);
    assert!(said.contains("--key 'cookie sid' would cost 8.00 points"), "{said}");
}

#[test]
fn a_key_that_the_log_cannot_tell_is_said() {
    let assay = Assay::new();
    let line = "192.0.2.7 - - [10/Oct/2025:13:55:00 +0000] \"GET /a?x=1 HTTP/1.1\" 200 9 \"-\" \"agent\"\n";
    let log = assay.file("access.log", &line.repeat(9));
    let key = "drop utm_*; vary accept-language, user-agent; cookie sid; ignore cookie _ga";
    let said =
        assay.run(&["size", log, "--key", key, "--suggest-keys", "--policy", "lru"]).exits(0).stdout.clone();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "The rule --key 'drop utm_*': it matches no request.",
        "The rule --key 'vary accept-language': the log does not have Accept-Language, so the rule splits nothing. Log it: nginx \"$http_accept_language\"",
        "The rule --key 'cookie sid': the log does not have this cookie",
        "The rule --key 'ignore cookie _ga': it matches no request.",
        "whether these split objects is not known",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    assert!(!said.contains("'vary user-agent'"), "{said}");
}
