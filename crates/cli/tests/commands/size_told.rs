//! `assay size` on logs whose responses say of themselves what may be stored, for how long, and how they are coded.

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
