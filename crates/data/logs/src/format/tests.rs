//! Formats against lines as proxies write them.

use proptest::prelude::*;

use super::facts::Fact;
use super::*;
use crate::access::HttpVersion;

proptest! {
    #[test]
    fn a_byte_is_found_where_it_first_stands(text in proptest::collection::vec(0u8..16, 0..60), high in 0u8..2) {
        let text: Vec<u8> = text.into_iter().map(|byte| byte | high << 7).collect();
        for byte in [0, 1, 2, 3, 4, 5, 0x80, 0x81, 0x82, 0xff] {
            let first = |bytes: &[u8]| text.iter().position(|other| bytes.contains(other));
            prop_assert_eq!(find(byte, &text), first(&[byte]));
            prop_assert_eq!(find_either(byte, 7, &text), first(&[byte, 7]));
            prop_assert_eq!(is_without(byte, &text), first(&[byte]).is_none());
        }
    }
}

#[test]
fn a_byte_that_stands_once_in_a_text_is_found_at_every_place() {
    for (length, at) in (1..40).flat_map(|length| (0..length).map(move |at| (length, at))) {
        let mut text = vec![b'a'; length];
        text[at] = b' ';
        assert_eq!((find(b' ', &text), find_either(b':', b' ', &text)), (Some(at), Some(at)));
        assert!(!is_without(b' ', &text) && is_without(b':', &text), "{at} of {length}");
    }
}

/// A line in words: what was read of it.
fn read(format: &str, line: &str) -> Result<String, String> {
    let format = Format::parse(format).map_err(|error| error.to_string())?;
    let mut access = Access::default();
    read_line(&format, line.as_bytes(), &mut access).map_err(|malformed| format.explain(&malformed))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(format!(
        "{:?} {:?} c={} o={} h={} p={} t={} {} {} {} {} host={} type={}",
        access.time_us.unwrap_or(-1),
        access.duration_us.map_or(-1, u64::cast_signed),
        text(access.client),
        text(access.outcome),
        text(access.hierarchy),
        text(access.peer),
        text(access.termination),
        access.status,
        access.bytes,
        text(access.method),
        text(access.url),
        text(access.host()),
        text(access.content_type),
    ))
}

const AT: i64 = 971_211_336_000_000;

#[test]
fn every_known_format_compiles_and_has_a_name_of_its_own() {
    let mut names: Vec<&str> = Vec::new();
    for known in KNOWN_FORMATS {
        let format = known.format();
        assert!(format.fields() > 4, "{}", format.name);
        names.extend(known.names);
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn lines_of_squid_are_read() {
    assert_eq!(
        read(
            "squid",
            "971211336.250    240 10.0.0.9 TCP_MISS/200 2011 GET http://a.example/x?y - HIER_DIRECT/192.0.2.1 text/html"
        )
        .unwrap(),
        format!(
            "{} 240000 c=10.0.0.9 o=TCP_MISS h=HIER_DIRECT p=192.0.2.1 t= 200 2011 GET http://a.example/x?y \
             host=a.example type=text/html",
            AT + 250_000
        )
    );
    let own = r#"%tl %6tr %>a "%rm %ru" %>Hs %<st %Ss:%Sh/%<a "%{User-Agent}>h""#;
    assert_eq!(
        read(
            own,
            r#"10/Oct/2000:13:55:36 -0700     17 ::1 "GET http://a/ b" 404 0 TCP_HIT:HIER_NONE/- "x \" y""#
        )
        .unwrap(),
        format!("{AT} 17000 c=::1 o=TCP_HIT h=HIER_NONE p= t= 404 0 GET http://a/ b host=a type=")
    );
}

#[test]
fn lines_of_httpd_and_varnishncsa_are_read() {
    let expected = |duration: i64, outcome: &str, host: &str| {
        format!("{AT} {duration} c=127.0.0.1 o={outcome} h= p= t= 200 2326 GET /a.gif host={host} type=")
    };
    let common = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326"#;
    assert_eq!(read("common", common).unwrap(), expected(-1, "", ""));
    let combined = format!(r#"{common} "http://a/" "Mozilla/4.08 [en] (\"x\")""#);
    assert_eq!(read("combined", &combined).unwrap(), expected(-1, "", ""));
    let own = r#"%h %l %u %t \"%r\" %>s %b %D %{Host}i %{Varnish:hitmiss}x"#;
    assert_eq!(
        read(own, &format!("{common} 1234 a.example hit")).unwrap(),
        expected(1234, "hit", "a.example")
    );
    let assay = r#"%{sec}t.%{msec_frac}t %D %a "%{cache-status}e"/%>s %B %m http://%{Host}i%U%q"#;
    assert_eq!(
        read(assay, r#"971211336.125 7 ::1 "cache hit"/200 5 GET http://a:80/x?y=z"#).unwrap(),
        format!("{} 7 c=::1 o=cache hit h= p= t= 200 5 GET /x?y=z host=a:80 type=", AT + 125_000)
    );
}

#[test]
fn the_version_of_http_is_read_in_every_dialect() {
    let at = "[10/Oct/2000:13:55:36 -0700]";
    for (format, line) in [
        ("common", format!(r#"a - - {at} "GET / HTTP/V" 200 -"#)),
        (r#"%h %t %m %U %H %s %b"#, format!("a {at} GET / HTTP/V 200 1")),
        (
            "$time_local $request_uri $server_protocol $status",
            "10/Oct/2000:13:55:36 -0700 / HTTP/V 200".into(),
        ),
        (
            "#Fields: date time cs-uri-stem cs-protocol-version sc-status",
            "2000-10-10 20:55:36 / HTTP/V 200".into(),
        ),
        ("#Fields: date time cs-uri-stem cs-version sc-status", "2000-10-10 20:55:36 / HTTP/V 200".into()),
        ("%ci [%tr] %HM %HU %HV %ST %B", "1.2.3.4 [10/Oct/2000:20:55:36.655] GET / HTTP/V 200 9".into()),
        ("squid-combined", format!(r#"a - - {at} "GET http://b/ HTTP/V" 200 1 "-" "-" TCP_HIT:HIER_NONE"#)),
        ("%<cqtq> %<cquuc> %<cqpv> %<pssc>", "971211336.125 http://b/ HTTP/V 200".into()),
    ] {
        let format = Format::parse(format).unwrap_or_else(|error| panic!("{format}: {error}"));
        for (number, version) in
            [("1.1", HttpVersion::Http1), ("2.0", HttpVersion::Http2), ("3.0", HttpVersion::Http3)]
        {
            let line = line.replace('V', number);
            let mut access = Access::default();
            read_line(&format, line.as_bytes(), &mut access)
                .map_err(|wrong| format.explain(&wrong))
                .expect(&line);
            assert_eq!(access.version, Some(version), "{line}");
        }
    }
    let mut access = Access::default();
    let squid = Format::parse("squid").expect("is known");
    let line = b"971211336.000      0 a TCP_HIT/200 1 GET http://b/ - HIER_NONE/- -";
    assert!(read_line(&squid, line, &mut access).is_ok() && access.version.is_none());
}

#[test]
fn lines_of_nginx_are_read() {
    let own = "$msec $request_time $remote_addr $upstream_cache_status/$status $body_bytes_sent $bytes_sent \
               $request_method $scheme://$http_host$request_uri $connection $upstream_addr $upstream_response_time";
    assert_eq!(
        read(
            own,
            "971211336.000 0.012 10.1.1.1 EXPIRED/200 10 400 GET http://a/x 7 10.0.0.1:80, 10.0.0.2:80 0.001, 0.002"
        )
        .unwrap(),
        format!("{AT} 12000 c=10.1.1.1 o=EXPIRED h= p=10.0.0.2:80 t= 200 10 GET /x host=a type=")
    );
    let json = r#"{"time":"$time_iso8601","req":"$request","s":$status,"b":$body_bytes_sent,"c":"$upstream_cache_status"}"#;
    assert_eq!(
        read(json, r#"{"time":"2000-10-10T13:55:36-07:00","req":"GET /\"x HTTP/1.1","s":200,"b":3,"c":"-"}"#)
            .unwrap(),
        format!(r#"{AT} -1 c= o= h= p= t= 200 3 GET /\"x host= type="#)
    );
}

#[test]
fn the_query_is_read_once_wherever_json_has_it() {
    let read = |members: &str| {
        let line = format!(
            r#"{{"time":"2026-07-01T10:00:00Z","client_ip":"192.0.2.1","method":"GET","status":200,"bytes":100,{members}}}"#
        );
        let format = Format::from_json_lines(&[line.as_bytes()]).expect("an object");
        let mut access = Access::default();
        read_line(&format, line.as_bytes(), &mut access).expect("a request");
        [access.url, access.query].map(|text| String::from_utf8_lossy(text).into_owned())
    };
    for members in [
        r#""uri":"/p","args":"id=1""#,
        r#""uri":"/p","query_string":"id=1""#,
        r#""url":"/p","query":"?id=1""#,
        r#""request":"/p","query":"?id=1""#,
        r#""uri_path":"/p","uri_query":"id=1""#,
    ] {
        assert_eq!(read(members), ["/p", "id=1"], "{members}");
    }
    for members in [r#""path":"/p?id=1","query":"id=1""#, r#""request":"GET /p?id=1 HTTP/1.1","args":"id=1""#]
    {
        assert_eq!(read(members), ["/p?id=1", ""], "{members}");
    }
}

/// What is read of a JSON line with these members, beside an address and a URL.
fn read_json(members: &str) -> String {
    let line = format!(r#"{{"client_ip":"192.0.2.1","url":"/p","method":"GET","status":200,{members}}}"#);
    let format = Format::from_json_lines(&[line.as_bytes()]).expect("an object");
    let mut access = Access::default();
    read_line(&format, line.as_bytes(), &mut access).map_err(|wrong| format.explain(&wrong)).expect(&line);
    let outcome = String::from_utf8_lossy(access.outcome);
    format!("{} {:?} {outcome}", access.time_us.unwrap_or(-1) / 1_000_000, access.duration_us)
}

#[test]
fn the_time_of_a_request_is_read_before_that_of_a_shipper_in_every_order() {
    let own = ["\"time_local\":\"10/Oct/2000:13:55:36 -0700\"", "\"ts\":971211336", "\"time\":971211336.5"];
    let others =
        ["\"@timestamp\":\"2026-07-01T10:00:00Z\"", "\"timestamp\":1782900000", "\"date\":1782900000.5"];
    for (own, other) in own.iter().flat_map(|own| others.iter().map(move |other| (own, other))) {
        for members in [format!("{own},{other}"), format!("{other},{own}")] {
            assert!(read_json(&members).starts_with("971211336 "), "{members}");
        }
    }
    assert!(
        read_json(r#""@timestamp":"2026-07-01T10:00:00Z","timestamp":971211336"#).starts_with("971211336 ")
    );
    assert!(read_json(r#""@timestamp":"2000-10-10T20:55:36Z""#).starts_with("971211336 "));
    // Somebody calls the duration a time.
    for members in [r#""time":0.25,"@timestamp":971211336"#, r#""@timestamp":971211336,"time":"-""#] {
        assert!(read_json(members).starts_with("971211336 "), "{members}");
    }
}

#[test]
fn a_day_and_a_time_of_day_may_have_a_key_each() {
    for members in [
        r#""date":"2000-10-10","time":"20:55:36""#,
        r#""time":"20:55:36","date":"2000-10-10""#,
        r#""@timestamp":"2000-10-10T20:55:36Z","time":"00:00:01""#,
    ] {
        assert!(read_json(members).starts_with("971211336 "), "{members}");
    }
}

#[test]
fn the_host_of_a_shipper_is_not_the_one_that_was_asked_for() {
    let host = |members: &str| {
        let line = format!(r#"{{"ts":971211336,"url":"/a","status":200,{members}}}"#);
        let format = Format::from_json_lines(&[line.as_bytes()]).expect("an object");
        let mut access = Access::default();
        read_line(&format, line.as_bytes(), &mut access).expect("a request");
        String::from_utf8_lossy(access.host).into_owned()
    };
    for asked in ["http_host", "vhost", "request_host"] {
        assert_eq!(host(&format!(r#""host":"web-1","{asked}":"a.example""#)), "a.example", "{asked}");
        assert_eq!(host(&format!(r#""{asked}":"a.example","host":"web-1""#)), "a.example", "{asked}");
    }
    assert_eq!(host(r#""host":"a.example""#), "a.example");
}

#[test]
fn a_hit_may_be_a_truth_value() {
    for key in ["cacheHit", "cache_hit", "cached", "is_hit", "from-cache"] {
        for (value, outcome) in [
            ("true", "HIT"),
            ("false", "MISS"),
            ("\"true\"", "HIT"),
            ("1", "HIT"),
            ("0", "MISS"),
            ("null", ""),
        ] {
            let read = read_json(&format!(r#""ts":971211336,"{key}":{value}"#));
            assert_eq!(read, format!("971211336 None {outcome}"), "{key} {value}");
        }
    }
    // A word says more than a truth value, and either more than what a header field says of other caches.
    for members in [r#""cache_status":"STALE","cached":false"#, r#""cached":false,"cache_status":"STALE""#] {
        assert_eq!(read_json(&format!(r#""ts":971211336,{members}"#)), "971211336 None STALE");
    }
    for members in [r#""x_cache":"HIT","cached":false"#, r#""cached":false,"x_cache":"HIT""#] {
        assert_eq!(read_json(&format!(r#""ts":971211336,{members}"#)), "971211336 None MISS");
    }
}

#[test]
fn the_response_time_of_cloudflare_is_that_of_the_whole_response_or_not_known() {
    let read = |members: &str| {
        let line = format!(
            r#"{{"ClientRequestURI":"/a","EdgeResponseStatus":200,"EdgeTimeToFirstByteMs":3,{members}}}"#
        );
        let format = Format::from_json_lines(&[line.as_bytes()]).expect("an object");
        let mut access = Access::default();
        read_line(&format, line.as_bytes(), &mut access).expect("a request");
        assert_eq!(format.facts().contains(Fact::Duration), access.duration_us.is_some(), "{members}");
        access.duration_us
    };
    for members in [
        r#""EdgeStartTimestamp":1782900000156000000,"EdgeEndTimestamp":1782900000406000000"#,
        r#""EdgeEndTimestamp":1782900000406000000,"EdgeStartTimestamp":1782900000156000000"#,
        r#""EdgeStartTimestamp":"2026-07-01T10:00:00.156Z","EdgeEndTimestamp":"2026-07-01T10:00:00.406Z""#,
    ] {
        assert_eq!(read(members), Some(250_000), "{members}");
    }
    for members in [
        r#""EdgeStartTimestamp":1782900000156000000"#,
        r#""EdgeStartTimestamp":1782900000,"EdgeEndTimestamp":1782900001"#,
        r#""EdgeStartTimestamp":"2026-07-01T10:00:00Z","EdgeEndTimestamp":"2026-07-01T10:00:01Z""#,
    ] {
        assert_eq!(read(members), None, "{members}");
    }
}

#[test]
fn the_announced_length_of_akamai_is_not_taken_for_what_was_sent() {
    let read = |members: &str| {
        let line = format!(r#"{{"reqTimeSec":"1782900004.5","reqPath":"a","statusCode":"200",{members}}}"#);
        let format = Format::from_json_lines(&[line.as_bytes()]).expect("an object");
        let mut access = Access::default();
        read_line(&format, line.as_bytes(), &mut access).expect("a request");
        format.facts().contains(Fact::Bytes).then_some((access.bytes, format.counts_bodies()))
    };
    assert_eq!(read(r#""rspContentLen":"9","bytes":"5","totalBytes":"7""#), Some((5, true)));
    assert_eq!(read(r#""rspContentLen":"9","totalBytes":"7""#), Some((7, false)));
    assert_eq!(read(r#""rspContentLen":"9""#), None);
}

#[test]
fn a_path_of_akamai_is_one_path_with_and_without_a_leading_slash() {
    for path in ["/a/b.png", "a/b.png"] {
        let line = format!(
            r#"{{"reqTimeSec":"1782900004.5","cliIP":"192.0.2.1","reqHost":"h","reqMethod":"GET","reqPath":"{path}","statusCode":"200"}}"#
        );
        let format = Format::from_json_lines(&[line.as_bytes()]).expect("an object");
        let mut access = Access::default();
        read_line(&format, line.as_bytes(), &mut access).expect("a request");
        assert_eq!((access.url, access.is_rootless), (path.as_bytes(), path == "a/b.png"));
    }
}

#[test]
fn fields_of_responses_about_storing_are_read_in_every_dialect() {
    let text = "max-age=60, public|Thu, 01 Dec 2033 16:00:00 GMT|gzip|971211336|GET /x";
    for (format, line) in [
        (
            "$sent_http_cache_control|$upstream_http_expires|$sent_http_content_encoding|$msec|$request_method $request_uri",
            text,
        ),
        ("%{Cache-Control}o|%{Expires}o|%{Content-Encoding}o|%{sec}t|%m %U", text),
        ("%{Cache-Control}<h|%{Expires}<h|%{Content-Encoding}<h|%ts|%rm %ru", text),
        ("%<{Cache-Control}psh>|%<{Expires}ssh>|%<{Content-Encoding}psh>|%<cqts>|%<cqhm> %<cquc>", text),
        (
            "{cache-control}|{expires}|{content-encoding}|{time-s}|{status} {url}",
            "max-age=60, public|Thu, 01 Dec 2033 16:00:00 GMT|gzip|971211336|200 /x",
        ),
    ] {
        let format = Format::parse(format).unwrap();
        assert!(format.facts().contains(Fact::Lifetime) && format.facts().contains(Fact::Coding));
        let mut access = Access::default();
        format.read(line.as_bytes(), &mut access).unwrap();
        let said = [access.cache_control, access.expires, access.coding, access.url];
        assert_eq!(said, [&b"max-age=60, public"[..], b"Thu, 01 Dec 2033 16:00:00 GMT", b"gzip", b"/x"]);
    }
}

#[test]
fn lines_of_haproxy_are_read() {
    let http = r#"haproxy[14389]: 10.0.1.2:33317 [10/Oct/2000:20:55:36.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#;
    let expected = format!(
        "{} 109000 c=10.0.1.2 o=MISS h= p=srv1 t=---- 200 2750 GET /index.html host= type=",
        AT + 655_000
    );
    assert_eq!(read("haproxy", http).unwrap(), expected);
    assert_eq!(read("haproxy", &http.replace("{1wt.eu} {} ", "")).unwrap(), expected);
    assert_eq!(read("haproxy", &format!("Oct 10 20:55:36 lb {http}")).unwrap(), expected);
    let cached = r#"::1:5 [10/Oct/2000:20:55:36.655] f f/<CACHE> 0/0/0/0/1 200 9 - - LR-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
    assert!(read("haproxy", cached).unwrap().contains("c=::1 o=<CACHE> h= p= t=LR--"));
    let clf = r#"10.0.1.2 - - [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.1" 200 157 "" "" 55 655 "in" "b" "srv1" 0 0 0 1 1 "----" 1 1 1 1 0 0 0 "-" "-" "" """#;
    assert!(
        read("haproxy-clf", clf).unwrap().contains("1000 c=10.0.1.2 o=MISS h= p=srv1 t=---- 200 157 GET / "),
        "{:?}",
        read("haproxy-clf", clf)
    );
}

#[test]
fn lines_of_traffic_server_are_read() {
    let own = "%<cqtq> %<ttms> %<chi> %<crc>/%<pssc> %<psql> %<cqhm> %<cquc> %<caun> %<phr>/%<shn> %<psct>";
    assert_eq!(
        read(own, "971211336.000 3 127.0.0.1 TCP_MEM_HIT/200 156 GET http://a:9/x - NONE/- text/plain")
            .unwrap(),
        format!(
            "{AT} 3000 c=127.0.0.1 o=TCP_MEM_HIT h=NONE p= t= 200 156 GET http://a:9/x host=a:9 type=text/plain"
        )
    );
    let extended2 = r#"1.2.3.4 - - [10/Oct/2000:20:55:36 -0000] "GET http://a/x HTTP/1.1" 200 7 200 7 0 0 100 200 120 180 2 DIRECT FIN FIN TCP_MISS"#;
    assert!(
        read("trafficserver-extended2", extended2).unwrap().contains("2000000 c=1.2.3.4 o=TCP_MISS h=DIRECT")
    );
}

#[test]
fn formats_are_recognised_from_a_few_lines() {
    for (name, line) in [
        ("squid", "1.250 240 a TCP_MISS/200 2011 GET http://a/ - HIER_DIRECT/1.2.3.4 -"),
        ("common", r#"a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 -"#),
        ("combined", r#"a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "-" "-""#),
        ("vhost-combined", r#"v:80 a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "-" "-""#),
        (
            "squid-combined",
            r#"a - - [10/Oct/2000:13:55:36 -0700] "GET http://b/ HTTP/1.0" 200 1 "-" "-" TCP_HIT:HIER_NONE"#,
        ),
        (
            "haproxy",
            r#"a:1 [10/Oct/2000:20:55:36.655] f b/s 0/0/0/0/1 200 9 - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#,
        ),
        (
            "assay-switch",
            r#"a - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "-" "x \"y\"" disk s1 1 20 300"#,
        ),
        ("host-combined", r#"v 2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "-" "-""#),
        ("host-common", r#"v 192.0.2.1 - u [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1"#),
        (
            "nginx-main",
            r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "-" "-" "192.0.2.9""#,
        ),
        (
            "host-nginx-main",
            r#"v 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "-" "-" "-""#,
        ),
        ("assay-trafficserver", "1.5 3 a TCP_HIT/200 156 GET http://a/"),
        ("assay-haproxy", "1.5 3 a s/200 156 GET http://a/"),
        ("assay-httpd", r#"1.5 3 a "cache hit"/200 156 GET http://a/"#),
        ("assay-varnish", "1 hit/200 156 GET http://a/ 22977 miss"),
        ("assay-nginx", "1.5 HIT/200 156 GET http://a/ 0.001 0.000"),
        ("assay-nginx", "1.5 HIT/200 156 GET http://a/ 0.001 0.000, 0.002"),
        ("assay-squid-xact", "1.5 3 a TCP_HIT/200 1 GET http://a/ - HIER_NONE/- text/html 1-2-0-3-b"),
        ("assay-builtin", "1.5 3 a HIT/200 156 GET http://a/ NONE 1-2-0-3-b"),
        ("assay-trafficserver-xact", "1.5 3 a TCP_HIT/200 156 GET http://a/ 1-2-0-3-b"),
        ("assay-haproxy-xact", "1.5 3 a s/200 156 GET http://a/ 1-2-0-3-b"),
        ("assay-httpd-xact", r#"1.5 3 a "cache hit"/200 156 GET http://a/ 1-2-0-3-b"#),
        ("assay-varnish-xact", "1 hit/200 156 GET http://a/ 22977 1-2-0-3-b miss"),
        ("assay-nginx-xact", "1.5 HIT/200 156 GET http://a/ 0.001 1-2-0-3-b 0.000"),
    ] {
        let lines = format!("{line}\r\ngarbage\n{line}\n");
        let recognised =
            detect(lines.as_bytes()).unwrap_or_else(|why| panic!("{name} is not recognised: {why}"));
        assert_eq!(recognised.format.name, name);
        assert_eq!((recognised.fit, recognised.tried), (2, 3), "{name}");
    }
    assert!(detect(b"what is this\nsurely no log\n").is_err());
}

/// The name of the format of Combined lines that begin with these words.
fn recognised(begins: &[&str]) -> String {
    let rest = r#"[10/Oct/2000:13:55:36 -0700] "GET /x HTTP/1.1" 200 100 "-" "curl/8 [en]""#;
    let lines: String = begins.iter().map(|begin| format!("{begin} {rest}\n")).collect();
    detect(lines.as_bytes()).unwrap().format.name
}

#[test]
fn a_host_before_combined_is_told_by_the_address_behind_it() {
    assert_eq!(recognised(&["a.example 10.0.0.1 - -", "b.example 2001:db8::1 - frank"]), "host-combined");
    // A client whose name was looked up, requests for an address, and a line of something else change nothing.
    let mut begins = vec!["a.example 10.0.0.1 - -"; 18];
    begins.extend(["a.example c.example - -", "192.0.2.1 10.0.0.1 - -", "x - -"]);
    assert_eq!(recognised(&begins), "host-combined");
    assert_eq!(recognised(&["a.example:443 10.0.0.1 - -"]), "vhost-combined");
}

#[test]
fn combined_without_a_host_is_recognised_whatever_clients_and_users_are_called() {
    for begin in [
        "10.0.0.1 - -",
        "client.example - -",
        "client.example - frank",
        "2001:db8::1 ident frank",
        "client.example - John Smith",
        "client.example - 10.0.0.1",
        // The address of a client, and that of a proxy that it came through.
        "192.0.2.1 10.0.0.1 - -",
        "- 10.0.0.1 - -",
    ] {
        assert_eq!(recognised(&[begin, begin]), "combined", "{begin}");
    }
    let mut mixed = vec!["client.example - -"; 8];
    mixed.extend(["a.example 10.0.0.1 - -"; 2]);
    assert_eq!(recognised(&mixed), "combined");
}

#[test]
fn a_host_behind_the_client_is_told_from_the_name_of_a_user() {
    for begins in [
        &["192.0.2.1 www.example.org -", "2001:db8::1 example.net:8080 frank"][..],
        &["192.0.2.1 localhost -"],
        // Requests for an address are those of scanners.
        &["192.0.2.1 a.example -", "192.0.2.2 b.example -", "192.0.2.3 10.0.0.1 -"],
    ] {
        assert_eq!(recognised(begins), "lighttpd", "{begins:?}");
    }
    for begins in [
        &["192.0.2.1 frank -", "192.0.2.2 root frank"][..],
        &["192.0.2.1 john.doe -", "192.0.2.2 - -"],
        &["192.0.2.1 10.0.0.1 -", "192.0.2.2 10.0.0.1 - -"],
        &["client.example www.example.org -"],
    ] {
        assert_eq!(recognised(begins), "combined", "{begins:?}");
    }
    let line = r#"192.0.2.1 a.example frank [10/Oct/2000:13:55:36 -0700] "GET /x HTTP/1.1" 200 1 "-" "-""#;
    assert!(read("lighttpd", line).unwrap().contains("c=192.0.2.1 "));
    assert!(read("lighttpd", line).unwrap().contains(" host=a.example "));
}

#[test]
fn a_line_that_does_not_fit_says_where_and_why() {
    let why = |line: &str| read("squid", line).unwrap_err();
    assert_eq!(
        why("1.0 2 a TCP_MISS/200 x GET u - D/p t"),
        "what stands at character 22 is no number of bytes"
    );
    assert!(why("1.0 2 a TCP_MISS/200 5 GET u").contains("has no end"));
    assert!(why("").contains("has no end"));
    assert!(read("common", r#"a - - [x] "GET / HTTP/1.0" 200 -"#).unwrap_err().contains("is no time"));
    assert!(read("common", r#"a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 - more"#).is_err());
}

#[test]
fn a_format_that_cannot_be_used_says_why() {
    let why = |text: &str| Format::parse(text).unwrap_err().why.to_string();
    assert!(why("sqiud").contains("there are squid, combined"));
    assert!(why("%h %Q").contains("%Q"));
    assert!(why("$status$bytes_sent").contains("nothing stands between the status and the number of bytes"));
    assert!(why("{time-s} {code} {url}").contains("`{code}` is no field"));
    assert!(why("%<cqtq").len() > 5 && why("%%").contains("no field"));
}

proptest! {
    #[test]
    fn no_bytes_and_no_format_string_bring_a_parser_down(
        line in proptest::collection::vec(any::<u8>(), 0..300), text in "[%$<>{}a-zA-Z:/\\[\\]\" .-]{0,60}",
    ) {
        let mut access = Access::default();
        for known in KNOWN_FORMATS {
            let format = known.format();
            if let Err(malformed) = read_line(&format, &line, &mut access) {
                prop_assert!(malformed.at <= line.len());
                prop_assert!(!format.explain(&malformed).is_empty());
            }
        }
        for dialect in
            [Dialect::Squid, Dialect::Ncsa, Dialect::Nginx, Dialect::Haproxy, Dialect::TrafficServer, Dialect::Assay]
        {
            if let Ok(format) = Format::compile(dialect, &text) {
                let _ = read_line(&format, &line, &mut access);
            }
        }
    }

    #[test]
    fn no_bytes_bring_the_reader_of_json_down(
        text in "[{}\\[\\]\",:\\\\a-c0-9 u]{0,80}", line in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let own = r#"{"time":1782900004.5,"status":200,"request":{"uri":"/a","list":["b",{"c":1}]}}"#;
        for text in [text.as_bytes(), &line] {
            let _ = detect(&[text, b"\n", text, b"\n"].concat());
            let format = Format::from_json_lines(&[own.as_bytes(), text]).expect("the first is an object");
            if let Err(malformed) = read_line(&format, text, &mut Access::default()) {
                prop_assert!(malformed.at <= text.len() && !format.explain(&malformed).is_empty());
            }
        }
    }

    #[test]
    fn a_line_that_was_cut_or_changed_never_brings_a_parser_down(
        at in 0usize..120, byte in any::<u8>(), cut in any::<bool>(), which in 0usize..6,
    ) {
        let (name, line) = [
            ("squid", "971211336.250    240 10.0.0.9 TCP_MISS/200 2011 GET http://a.example/x - HIER_DIRECT/192.0.2.1 text/html"),
            ("combined", r#"a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "-" "agent \" x""#),
            ("haproxy", r#"a:1 [10/Oct/2000:20:55:36.655] f b/s 0/0/0/0/1 200 9 - - ---- 1/1/0/0/0 0/0 {a|b} "GET / HTTP/1.1""#),
            ("haproxy-clf", r#"a - - [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.1" 200 157 "" "" 55 655 "in" "b" "srv1" 0 0 0 1 1 "----" 1 1 1 1 0 0 0 "-" "-" "" """#),
            ("assay-nginx", "1.5 HIT/200 156 GET http://a/ 0.001 0.000, 0.001 : 0.002"),
            ("trafficserver-extended2", r#"a - - [10/Oct/2000:20:55:36 -0000] "GET http://a/x HTTP/1.1" 200 7 200 7 0 0 100 200 120 180 2 DIRECT FIN FIN TCP_MISS"#),
        ][which];
        let mut bytes = line.as_bytes().to_vec();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let mut access = Access::default();
        let _ = read_line(&Format::parse(name).unwrap(), &bytes, &mut access);
    }
}
