//! Logs as people have them, a few lines of each, and the figures that are right.

use assay_logs::analysis::AnalysisOptions;
use assay_logs::document::LogsDocument;
use assay_logs::error::LogsError;
use assay_logs::format::{DetectError, Format};

use crate::support::analyse_text;

/// Why a text is not analysed.
fn refusal(text: &[u8], format: Option<&str>) -> LogsError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, text).unwrap();
    let format = format.map(|text| Format::parse(text).unwrap());
    assay_logs::analyse(&[path], format.as_ref(), AnalysisOptions::default()).unwrap_err()
}

fn clients(document: &LogsDocument) -> Option<f64> {
    document.distinct.clients.as_ref().map(|count| count.count)
}

fn has_note(document: &LogsDocument, part: &str) -> bool {
    document.notes.iter().any(|note| note.contains(part))
}

const DAY: &str = "[01/Jul/2026:10:00:00 +0000]";

#[test]
fn names_of_services_are_no_outcomes() {
    let line = |second: u32, seconds: &str, service: &str| {
        format!(
            "192.0.2.16 - - [01/Jul/2026:10:00:{second} +0000] \"GET /a HTTP/2.0\" 200 163 \"-\" \"curl/8.9.1\" 244 {seconds} \
             [{service}] [] 172.17.0.6:8080 163 0.057 200 dbc8\n"
        )
    };
    let text = line(16, "0.057", "shop-whitelabel-80") + &line(17, "0.100", "shop-permissions-80");
    let document = analyse_text(text.as_bytes(), None);
    assert_eq!(document.inputs[0].format, "ingress-nginx");
    assert_eq!((document.all.requests, document.all.dhr, document.all.local_hits), (2, None, None));
    assert_eq!(document.all.response.as_ref().map(|response| response.mean_ms), Some(78.5));
}

#[test]
fn fields_behind_combined_are_not_swallowed() {
    let line = format!("192.0.2.1 - - {DAY} \"GET /a HTTP/1.1\" 200 10 \"-\" \"curl/8\"");
    for more in ["0.057 10.0.0.6:8080", "hitchhiker:3128", "17 TCP_HIT:HIER NONE", "x y z"] {
        let error = refusal(format!("{line} {more}\n").repeat(3).as_bytes(), None);
        let LogsError::Unrecognised { why: DetectError::Unknown { nearest: Some(nearest) }, .. } = &error
        else {
            panic!("{more}: {error}")
        };
        assert!(nearest.why.contains("more in the line"), "{more}: {}", nearest.why);
        let hint = format!(
            " (` {more}`); combined is --format '%h %l %u %t \"%r\" %>s %b \"%{{Referer}}i\" \"%{{User-Agent}}i\"'"
        );
        assert!(error.to_string().ends_with(&hint), "{error}");
    }
    let error = refusal(&[0xfe; 4096], None).to_string();
    assert!(error.contains("the nearest format is") && !error.contains("--format"), "{error}");
    // Two lines with a CR alone between them are no line of another format.
    let error = refusal(format!("{line}\r{line}\n").as_bytes(), None);
    assert!(matches!(error, LogsError::Unrecognised { .. }), "{error}");
}

#[test]
fn of_two_fields_for_the_same_the_direct_and_fine_one_is_read_and_the_other_is_named() {
    let text = format!(
        "192.0.2.1 - - {DAY} \"GET /a HTTP/1.1\" 200 10 \"-\"\n192.0.2.2 - - {DAY} \"GET /a HTTP/1.1\" 200 10 \
         \"203.0.113.1, 10.0.0.1\"\n192.0.2.3 - - {DAY} \"GET /a HTTP/1.1\" 200 10 \"-\"\n"
    );
    for format in [
        "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_x_forwarded_for\"",
        "%h %l %u %t \"%r\" %>s %b \"%{X-Forwarded-For}i\"",
    ] {
        let document = analyse_text(text.as_bytes(), Some(format));
        assert_eq!(clients(&document), Some(3.0), "{format}");
        assert!(has_note(&document, "say the client"), "{:?}", document.notes);
    }
    let line = |us: u32, s: u32| format!("192.0.2.1 - - {DAY} \"GET /a HTTP/1.1\" 200 10 {us} {s}\n");
    let text = line(150_000, 0) + &line(950_000, 0);
    let document = analyse_text(text.as_bytes(), Some("%h %l %u %t \"%r\" %>s %b %D %T"));
    assert_eq!(document.all.response.as_ref().map(|response| response.mean_ms), Some(550.0));
    assert!(has_note(&document, "%D is read, %T is not"), "{:?}", document.notes);
}

#[test]
fn fetches_from_a_backend_are_no_requests_of_clients() {
    let line = |side: &str, who: &str, outcome: &str, us: u32| {
        format!("{side} {who} - - {DAY} \"GET http://h/a HTTP/1.1\" 200 1000 \"-\" \"-\" {outcome} {us}\n")
    };
    let text = line("c", "192.0.2.1", "miss", 20_000)
        + &line("b", "app0", "-", 18_000)
        + &line("c", "192.0.2.1", "hit", 100);
    let format = "%{Varnish:side}x %h %l %u %t \"%r\" %s %b \"%{Referer}i\" \"%{User-agent}i\" %{Varnish:handling}x %D";
    let document = analyse_text(text.as_bytes(), Some(format));
    assert_eq!((document.all.requests, document.all.bytes, document.lines.fetches), (2, Some(2000), 1));
    assert_eq!((clients(&document), document.all.dhr), (Some(1.0), Some(0.5)));
    assert_eq!(document.all.response.as_ref().map(|response| response.mean_ms), Some(10.05));
    assert!(has_note(&document, "fetches of the cache"));
}

#[test]
fn a_unit_behind_a_duration_of_another_one_is_refused_with_the_right_field() {
    for (format, help) in [
        ("%h %t \"%r\" %>s %b %Dms", "%{ms}T"),
        ("%h %t \"%r\" %>s %b %Ds", "%T"),
        ("%h %t \"%r\" %>s %b %{ms}Tus", "%D"),
        ("$remote_addr $msec $status $request_uri ${request_time}ms", "{duration-ms}"),
        ("{time-s} {status} {url} {duration-us}ns", "{duration-ns}"),
    ] {
        let why = Format::parse(format).unwrap_err().why.to_string();
        assert!(why.contains(help), "{format}: {why}");
    }
    for format in
        ["%h %t \"%r\" %>s %b %{ms}Tms", "%h %t \"%r\" %>s %b %Ts", "{time-s} {status} {url} {duration-ns}ns"]
    {
        assert!(Format::parse(format).is_ok(), "{format}");
    }
    let line = format!("192.0.2.1 - - {DAY} \"GET /a HTTP/2.0\" 200 10 136ms\n");
    let document = analyse_text(line.as_bytes(), Some("%h %l %u %t \"%r\" %>s %b %{ms}Tms"));
    assert_eq!(document.all.response.as_ref().map(|response| response.mean_ms), Some(136.0));
}

#[test]
fn a_session_of_haproxy_that_was_broken_off_is_no_hit_and_nobody_is_no_client() {
    let line = |client: &str, server: &str, status: u16, ended: &str| {
        format!(
            "Jul  1 10:00:31 lb1 haproxy[3]: {client}:8211 [01/Jul/2026:10:00:31.396] fe be/{server} 0/0/1/33/35 {status} 100 - - \
             {ended} 3/3/0/0/0 0/0 \"GET /a HTTP/1.1\"\n"
        )
    };
    let text = [
        line("192.0.2.1", "app1", 200, "----"),
        line("192.0.2.2", "<CACHE>", 200, "----"),
        line("192.0.2.2", "<CACHE>", 200, "CD--"),
        line("192.0.2.2", "app1", 200, "CD--"),
        line("-", "app1", 304, "----"),
    ]
    .concat();
    let document = analyse_text(text.as_bytes(), None);
    assert_eq!((document.all.dhr, document.all.errors, clients(&document)), (Some(0.2), Some(2), Some(2.0)));
    // The reason is that of the line, and not of the head of the message before it.
    let cut = text.lines().next().unwrap();
    let document = analyse_text(format!("{text}{}\n", &cut[..cut.len() - 9]).as_bytes(), None);
    assert!(document.malformed[0].reason.contains("request line"), "{}", document.malformed[0].reason);
}

#[test]
fn lines_of_connections_between_those_of_requests_are_counted_apart() {
    let http = "192.0.2.1:8211 [01/Jul/2026:10:00:31.396] fe be/app1 0/0/1/33/35 200 100 - - ---- 3/3/0/0/0 0/0 \"GET /a HTTP/1.1\"\n";
    let tcp = "192.0.2.1:8211 [01/Jul/2026:10:00:31.396] fe be/app1 0/0/35 100 -- 3/3/0/0/0 0/0\n";
    let document = analyse_text((http.repeat(5) + &tcp.repeat(4)).as_bytes(), None);
    assert_eq!((document.all.requests, document.lines.without_request, document.lines.malformed), (5, 4, 0));
    let elb = |request: &str, status: &str| {
        format!(
            "2026-07-01T10:00:00.156000Z my-elb 192.0.2.39:2817 10.0.0.1:80 0.001 0.002 0.003 {status} {status} 82 305 \
             \"{request}\" \"-\" - -\n"
        )
    };
    let document = analyse_text(
        (elb("GET http://h:80/a HTTP/1.1", "200").repeat(3) + &elb("- - - ", "-")).as_bytes(),
        None,
    );
    assert_eq!((document.all.requests, document.lines.without_request), (3, 1));
    assert_eq!(document.all.response.as_ref().map(|response| response.mean_ms), Some(6.0));
}

#[test]
fn a_port_makes_no_client_and_an_url_ends_before_its_protocol() {
    let line = |client: &str, status: u16, request: &str| {
        format!("http 2026-07-01T10:00:00.156000Z {client} {status} 10 \"{request}\"\n")
    };
    let text = [
        line("192.0.2.7:64171", 200, "GET http://h:80/a HTTP/1.1"),
        line("192.0.2.7:64172", 200, "GET http://h:80/a HTTP/1.1"),
        line("192.0.2.7:64173", 400, "- http://lb-1.example:80- -"),
        line("192.0.2.7:64174", 400, "- - -"),
        // By itself that is an address.
        line("2001:db8:3::f:8080", 200, "GET http://h:80/a HTTP/1.1"),
        line("2001:db8:3::f:443", 200, "GET http://h:80/a HTTP/1.1"),
    ]
    .concat();
    for format in [
        "%{type}n %{%Y-%m-%dT%H:%M:%S.%fZ}t %h %>s %O \"%r\"",
        "$type $time_iso8601 $remote_addr $status $bytes_sent \"$request\"",
    ] {
        let document = analyse_text(text.as_bytes(), Some(format));
        assert_eq!((document.all.requests, clients(&document)), (6, Some(2.0)), "{format}");
        assert_eq!(document.first_unix_ms, Some(1_782_900_000_156.0), "{format}");
        let hosts = crate::support::group(&document, "host");
        assert!(hosts.iter().any(|(name, ..)| name == "lb-1.example"), "{hosts:?}");
    }
}

#[test]
fn a_time_is_read_in_its_own_unit_and_a_day_that_is_none_is_malformed() {
    let line = "HIT|200|1782900004156|100|192.0.2.1|/a\n";
    for (format, line) in [
        ("{outcome}|{status}|{time-s}|{bytes}|{client}|{url}", line.to_owned()),
        ("{outcome}|{status}|{time-ms}|{bytes}|{client}|{url}", line.to_owned()),
        ("$upstream_cache_status|$status|$msec|$bytes_sent|$remote_addr|$request_uri", line.to_owned()),
        ("{outcome}|{status}|{time-us}|{bytes}|{client}|{url}", line.replace("4156", "4156000")),
    ] {
        let document = analyse_text(line.as_bytes(), Some(format));
        assert_eq!(document.first_unix_ms, Some(1_782_900_004_156.0), "{format}");
    }
    let combined = |date: &str| format!("192.0.2.1 - - [{date}] \"GET /a HTTP/1.1\" 200 1 \"-\" \"-\"\n");
    let good = combined("01/Mar/2026:10:00:00 +0000").repeat(9);
    for date in [
        "30/Feb/2026:10:00:00 +0000",
        "29/Feb/2026:10:00:00 +0000",
        "31/Apr/2026:10:00:00 +0000",
        "00/Apr/2026:10:00:00 +0000",
        "01/Apr/2026:24:00:00 +0000",
        "01/Apr/2026:10:00:00 +9999",
    ] {
        let document = analyse_text((good.clone() + &combined(date)).as_bytes(), None);
        assert_eq!((document.all.requests, document.lines.malformed), (9, 1), "{date}");
    }
    let document = analyse_text((good + &combined("29/Feb/2028:23:59:60 +1400")).as_bytes(), None);
    assert_eq!(document.all.requests, 10);
}

#[test]
fn holes_of_a_truncated_copy_cost_no_line_and_are_counted() {
    let line = format!("192.0.2.1 - - {DAY} \"GET /a HTTP/1.1\" 200 10 \"-\" \"-\"\n");
    let hole = |size: usize| "\0".repeat(size);
    for text in [
        line.clone() + &hole(100) + &line + &line,
        hole(70_000) + &line.repeat(3),
        hole(270_000) + &line.repeat(3),
    ] {
        let document = analyse_text(text.as_bytes(), None);
        assert_eq!((document.all.requests, clients(&document), document.lines.malformed), (3, Some(1.0), 0));
        assert!(has_note(&document, "NULs before lines"), "{:?}", document.notes);
    }
    let document = analyse_text(line.repeat(3).replace('\n', "\r").as_bytes(), None);
    assert_eq!((document.all.requests, document.lines.malformed), (3, 0));
    assert!(has_note(&document, "CR alone"));
}

#[test]
fn a_log_of_which_no_line_can_be_read_is_an_error_with_the_reason() {
    let squid = "1.5 3 a TCP_HIT/200 156 GET http://a/ - HIER_NONE/- text/html\n".repeat(3);
    let error = refusal(squid.as_bytes(), Some("combined"));
    let LogsError::NoLine { lines: 3, line: 1, why, .. } = &error else { panic!("{error}") };
    assert!(!why.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, &squid).unwrap();
    let each = |_: &assay_logs::access::Access<'_>, _: &Format| std::ops::ControlFlow::Continue(());
    let error = assay_logs::for_each_access(&[path], Some(&Format::parse("combined").unwrap()), each);
    assert!(matches!(error, Err(LogsError::NoLine { .. })));
}

#[test]
fn json_is_read_by_its_keys_in_any_order_and_refused_with_a_format_string_for_them() {
    let lines = [
        r#"{"time":"2026-07-01T13:00:02+03:00","remote_addr":"192.0.2.16","request":"GET /a HTTP/1.1","status":200,"body_bytes_sent":10,"upstream_cache_status":"HIT"}"#,
        r#"{"status":"200","request":"GET /\"b HTTP/1.1","time":1782900003.5,"body_bytes_sent":"30","remote_addr":"192.0.2.17","upstream_cache_status":"MISS","new":[{"x":1},2]}"#,
    ];
    let document = analyse_text((lines.join("\n") + "\n").as_bytes(), None);
    assert_eq!((document.all.requests, document.all.bytes, document.all.dhr), (2, Some(40), Some(0.5)));
    assert_eq!((document.first_unix_ms, clients(&document)), (Some(1_782_900_002_000.0), Some(2.0)));
    assert_eq!(document.last_unix_ms, Some(1_782_900_003_500.0));
    // What is said of a request's body, or of another machine, is not said of the response.
    let nested = "{\"time\":1782900003.5,\"request\":{\"bytes\":7,\"method\":\"GET\",\"url\":\"/a\"},\"upstream\":{\"status\":502},\
                  \"response\":{\"status\":200,\"bytes\":30,\"duration_ms\":12.5},\"content_length\":9,\"geo\":{\"client_ip\":\"x\"}}\n";
    let document = analyse_text(nested.as_bytes(), None);
    assert_eq!((document.all.requests, document.all.bytes, clients(&document)), (1, Some(30), None));
    assert_eq!(document.all.response.as_ref().map(|response| response.mean_ms), Some(12.5));
    assert_eq!(crate::support::group(&document, "status"), [("200".to_owned(), 1, 30)]);
    // Keys that are known, and values that are not what they say.
    let error = refusal(b"{\"time\":\"yesterday\",\"status\":200,\"url\":\"/a\"}\n", None);
    let LogsError::Unrecognised { why: DetectError::Unknown { nearest: Some(nearest) }, .. } = &error else {
        panic!("{error}")
    };
    assert!(nearest.name == "json" && nearest.why.contains("`time`"), "{error}");
    let strange = "{\"when\":\"2026-07-01T13:00:02Z\",\"what\":\"GET /a HTTP/1.1\",\"result\":200}\n";
    let error = refusal(strange.as_bytes(), None);
    let LogsError::Unrecognised { why: DetectError::Json { template: Some(template), .. }, .. } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(template, r#"{"when":"$when","what":"$what","result":$result}"#);
    let own =
        template.replace("$when", "$time_iso8601").replace("$what", "$request").replace("$result", "$status");
    assert_eq!(analyse_text(strange.as_bytes(), Some(&own)).all.requests, 1);
}

#[test]
fn squids_words_are_squids_whatever_stands_between_them() {
    for between in ["|", ",", ";", "\t"] {
        let format = ["%ts.%03tu", "%tr", "%<st", "%>a", "%Ss/%03>Hs", "%rm", "%ru"].join(between);
        let line =
            ["1782900004.156", "12", "345", "192.0.2.1", "TCP_HIT/200", "GET", "http://h/a"].join(between);
        let document = analyse_text((line + "\n").as_bytes(), Some(&format));
        assert_eq!(
            (document.all.requests, document.all.bytes, document.all.dhr),
            (1, Some(345), Some(1.0)),
            "{format}"
        );
    }
}

#[test]
fn a_query_of_its_own_makes_another_object() {
    let text = "#Fields: date time cs-method cs-uri-stem cs-uri-query sc-status sc-bytes\n\
                2026-07-01 10:00:00 GET /a x=1 200 10\n2026-07-01 10:00:01 GET /a x=2 200 10\n\
                2026-07-01 10:00:02 GET /a - 200 10\n2026-07-01 10:00:03 GET /a x=1 200 10\n";
    let document = analyse_text(text.as_bytes(), None);
    assert_eq!(document.distinct.urls.as_ref().map(|count| count.count), Some(3.0));
    assert_eq!(document.caches.caches[0].dhr, Some(0.25));
}

#[test]
fn lines_of_json_that_are_of_no_request_are_malformed() {
    let request = "{\"ts\":1782900004.5,\"status\":200,\"duration\":0.1,\"request\":{\"method\":\"GET\",\"uri\":\"/a\"}}\n";
    let other = "{\"level\":\"error\",\"ts\":1782900005.5,\"logger\":\"tls\",\"msg\":\"no certificate\"}\n";
    let without_time = "{\"status\":200,\"request\":{\"uri\":\"/a\"}}\n";
    let document = analyse_text([request, other, request, without_time].concat().as_bytes(), None);
    assert_eq!((document.all.requests, document.lines.malformed), (2, 2));
    assert!(document.malformed.iter().all(|line| line.reason.contains("when a request was")));
}
