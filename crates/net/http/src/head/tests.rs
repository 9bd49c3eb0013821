//! Invariants of heads.

use proptest::prelude::*;

use super::*;

fn request(text: &str) -> Result<Option<(RequestHead<'_>, usize)>, HeadError> {
    RequestHead::parse(text.as_bytes())
}

fn request_error(text: &str) -> Option<HeadError> {
    request(text).err()
}

#[test]
fn a_request_gives_its_line_its_facts_and_its_fields() {
    let text = "GET http://a:1/x HTTP/1.1\r\nHost: a:1\r\nX-Assay:  1-2 \r\nExpect: 100-Continue\r\n\
                Connection: close\r\n\r\nrest";
    let (head, length) = request(text).unwrap().unwrap();
    assert_eq!((head.method, head.target, head.facts.version), ("GET", "http://a:1/x", Version::Http11));
    assert_eq!(length, text.len() - 4);
    assert_eq!(head.host, Some(&b"a:1"[..]));
    assert_eq!(head.header("x-assay"), Some(&b"1-2"[..]));
    assert_eq!(head.header("y"), None);
    assert!(head.expect_continue && head.facts.close && !head.facts.keep_alive);
    assert_eq!(head.headers().count(), 4);
}

#[test]
fn empty_lines_before_a_request_are_passed_over() {
    let text = "\r\n\r\nGET / HTTP/1.0\r\nA: b\r\n\r\n";
    let (head, length) = request(text).unwrap().unwrap();
    assert_eq!((head.header("a"), length), (Some(&b"b"[..]), text.len()));
}

#[test]
fn a_line_feed_alone_ends_no_line_of_a_request() {
    for text in [
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let refused = request(text).map(drop).unwrap_err();
        assert!(matches!(refused, HeadError::Syntax(why) if why.contains("LF alone")), "{text:?}: {refused}");
    }
}

#[test]
fn a_line_feed_alone_ends_no_line_of_a_response() {
    for text in [
        "HTTP/1.1 200 OK\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nX-One: 1\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\nabc",
        "HTTP/1.1 200 OK\n\n",
        "\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 103 Early Hints\nLink: x\r\n\r\n",
    ] {
        let refused = ResponseHead::parse(text.as_bytes()).map(drop).unwrap_err();
        assert!(matches!(refused, HeadError::Syntax(why) if why.contains("LF alone")), "{text:?}: {refused}");
    }
    let body = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\nabc";
    assert!(ResponseHead::parse(body).unwrap().is_some(), "what is behind the head is no part of it");
}

#[test]
fn only_options_and_trace_count_how_often_they_are_passed_on() {
    let left = |method: &str, value: &str| {
        let text = format!("{method} * HTTP/1.1\r\nHost: a\r\nMax-Forwards: {value}\r\n\r\n");
        request(&text).unwrap().unwrap().0.max_forwards()
    };
    assert_eq!((left("OPTIONS", "0"), left("TRACE", "7")), (Some(0), Some(7)));
    assert_eq!((left("GET", "0"), left("OPTIONS", "x")), (None, None));
}

#[test]
fn a_response_gives_its_status_and_its_facts() {
    let text = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\n";
    let (head, length) = ResponseHead::parse(text).unwrap().unwrap();
    assert_eq!((head.status, head.reason, length), (304, "Not Modified", text.len()));
    assert_eq!(head.facts.content_length, Some(5));
    assert!(matches!(ResponseHead::parse(b"HTTP/1.1 099 No\r\n\r\n"), Err(HeadError::Syntax(_))));
    let interim = |text: &str| ResponseHead::parse(text.as_bytes()).unwrap().unwrap().0.is_interim();
    assert!(
        interim("HTTP/1.1 100 Continue\r\n\r\n") && interim("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n")
    );
    assert!(!interim("HTTP/1.1 200 OK\r\n\r\n") && !interim("HTTP/1.1 101 Switch\r\n\r\n"));
    let bare = ResponseHead::parse(b"HTTP/1.0 200\r\n\r\n").unwrap().unwrap().0;
    assert_eq!((bare.status, bare.facts.version), (200, Version::Http10));
}

#[test]
fn heads_that_two_parties_could_read_differently_are_refused() {
    let with = |fields: &str| request_error(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"));
    assert_eq!(with("Content-Length: 1\r\nTransfer-Encoding: chunked"), Some(HeadError::LengthAndCoding));
    assert_eq!(with("Content-Length: 1\r\nContent-Length: 2"), Some(HeadError::ConflictingContentLength));
    assert_eq!(with("Content-Length: 1, 2"), Some(HeadError::ConflictingContentLength));
    for bad in ["", "+1", "1x", "0x10", "-1", "1 1", "1,", ",1", "1,,1", "18446744073709551616"] {
        assert_eq!(with(&format!("Content-Length: {bad}")), Some(HeadError::BadContentLength), "{bad}");
    }
    for bad in
        ["gzip", "chunked, chunked", "chunked, gzip", "xchunked", "identity", "\"chunked\"", "chunked,"]
    {
        assert_eq!(with(&format!("Transfer-Encoding: {bad}")), Some(HeadError::BadTransferEncoding), "{bad}");
    }
    assert_eq!(with("Transfer-Encoding: gzip, chunked"), Some(HeadError::UnknownCoding));
    assert_eq!(with("Host: b"), Some(HeadError::BadHost));
    assert!(matches!(with("A: b\r\n c"), Some(HeadError::Syntax(_))), "folded line");
    assert!(matches!(with("A : b"), Some(HeadError::Syntax(_))), "white space before the colon");
    assert!(matches!(with("A: b\0c"), Some(HeadError::Syntax(_))), "control character");
    assert!(matches!(with("A: b\rc"), Some(HeadError::Syntax(_))), "bare CR");
    assert!(matches!(with(": b"), Some(HeadError::Syntax(_))), "no name");
    assert_eq!(with("Content-Length: 1, 1"), None);
    assert_eq!(with("Transfer-Encoding: CHUNKED"), None);
}

#[test]
fn versions_and_hosts_must_be_right() {
    assert_eq!(request_error("GET / HTTP/1.1\r\n\r\n"), Some(HeadError::BadHost));
    assert_eq!(request_error("GET / HTTP/1.0\r\n\r\n"), None);
    assert_eq!(request_error("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Some(HeadError::Version));
    let coded = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(request_error(coded), Some(HeadError::BadTransferEncoding));
}

#[test]
fn limits_are_kept() {
    let many = "A: b\r\n".repeat(MAX_HEADERS + 1);
    let text = format!("GET / HTTP/1.0\r\n{many}\r\n");
    assert_eq!(request_error(&text), Some(HeadError::TooManyHeaders));
    let long = format!("GET /{} HTTP/1.0\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
    assert_eq!(request_error(&long), Some(HeadError::LineTooLong));
    assert_eq!(request_error(&long[..MAX_HEAD_BYTES]), Some(HeadError::LineTooLong));
    let wide = format!("GET / HTTP/1.0\r\nA: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
    assert_eq!(request_error(&wide), Some(HeadError::TooLong));
    assert!(request(&long[..MAX_HEAD_BYTES - 1]).unwrap().is_none());
}

proptest! {
    #[test]
    fn fields_come_back_as_they_were_written(
        fields in prop::collection::vec(("X-[A-Za-z0-9]{1,12}", "[!-~]([ -~]{0,20}[!-~])?"), 0..20),
        next in "[ -~]{0,20}",
    ) {
        let mut text = "HTTP/1.1 200 OK\r\n".to_owned();
        for (name, value) in &fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        let length = text.len();
        text.push_str(&next);
        let (head, parsed) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        prop_assert_eq!(parsed, length);
        let back: Vec<_> = head.headers().collect();
        prop_assert_eq!(back.len(), fields.len());
        for (got, (name, value)) in back.iter().zip(&fields) {
            prop_assert_eq!(got.name, name.as_bytes());
            prop_assert_eq!(got.value, value.as_bytes());
        }
        for cut in 0..length {
            prop_assert!(ResponseHead::parse(&text.as_bytes()[..cut]).unwrap().is_none());
        }
    }

    #[test]
    fn any_bytes_give_a_result(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = RequestHead::parse(&bytes);
        let _ = ResponseHead::parse(&bytes);
    }

    #[test]
    fn a_broken_head_gives_a_result(at in 0usize..70, byte: u8) {
        let mut text = b"GET /a HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\nConnection: close\r\n\r\n".to_vec();
        let at = at % text.len();
        text[at] = byte;
        if let Ok(Some((head, length))) = RequestHead::parse(&text) {
            prop_assert!(length <= text.len());
            for field in head.headers() {
                prop_assert!(!field.name.is_empty());
            }
        }
    }
}

/// Field lines as they come, and as they must not.
fn lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "Host: a\r\n",
        "hOST:b\r\n",
        "Connection: close\r\n",
        "Connection: Keep-Alive, X\r\n",
        "connection: keep-alive\r\n",
        "Content-Length: 12\r\n",
        "Content-Length: 12, 12\r\n",
        "Content-Length: 7\r\n",
        "Content-Length: 00000000000000000000007\r\n",
        "Content-Length: +7\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Expect: 100-continue\r\n",
        "X-Assay: 1-2 \r\n",
        "x-assay:3\r\n",
        "Empty:\r\n",
        "Spaces:   \r\n",
        "Tab:\ta\tb\t\r\n",
        "Bare: a\n",
        "Before : a\r\n",
        " Folded: a\r\n",
        ": a\r\n",
        "Return: a\rb\r\n",
        "Delete: a\u{7f}\r\n",
        "Other: \u{e4}\r\n",
        "Long-field-name: a value that is longer than a few words of a machine\r\n",
    ]);
    prop::collection::vec(line, 0..5).prop_map(|lines| lines.concat())
}

/// All that a parser says, to compare.
fn shown(parsed: Result<Option<impl std::fmt::Debug>, HeadError>) -> Result<Option<String>, HeadError> {
    parsed.map(|parsed| parsed.map(|parsed| format!("{parsed:?}")))
}

proptest! {
    #[test]
    fn a_usual_request_is_read_as_any_other(
        start in prop::sample::select(vec![
            "GET /a?b HTTP/1.1\r\n", "POST http://a/ HTTP/1.0\r\n", "get / HTTP/1.1\r\n", "GET / HTTP/1.1\n",
            "GET  / HTTP/1.1\r\n", "GET /\u{e4} HTTP/1.1\r\n", "GET / HTTP/2.0\r\n", "GET /x\u{7f} HTTP/1.1\r\n",
            "GET HTTP/1.1\r\n", "\r\nGET / HTTP/1.1\r\n",
        ]),
        lines in lines(), end in prop::sample::select(vec!["\r\n", "\r\nrest", "\n", "", "\r"]),
    ) {
        let text = [start, &lines, end].concat();
        let any = shown(RequestHead::parse_any(text.as_bytes()));
        if let Some(usual) = RequestHead::parse_usual(text.as_bytes()) {
            prop_assert_eq!(&shown(Ok(Some(usual))), &any);
        }
        prop_assert_eq!(shown(request(&text)), any);
    }

    #[test]
    fn a_usual_response_is_read_as_any_other(
        start in prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\n", "HTTP/1.0 304 Not Modified\r\n", "HTTP/1.1 200\r\n", "HTTP/1.1 200 \r\n",
            "HTTP/1.1 099 x\r\n", "HTTP/1.1 20x OK\r\n", "HTTP/1.1 200 \u{e4}\r\n", "HTTP/1.2 200 OK\r\n",
            "HTTP/1.1 200 a\tb\r\n", "HTTP/1.1  200 OK\r\n", "HTTP/1.1 2000 OK\r\n", "http/1.1 200 OK\r\n",
        ]),
        lines in lines(), end in prop::sample::select(vec!["\r\n", "\r\nrest", "\n", "", "\r"]),
    ) {
        let text = [start, &lines, end].concat();
        let any = ResponseHead::parse_any(text.as_bytes());
        let noted = any.as_ref().ok().and_then(Option::as_ref).and_then(|(head, _)| head.header("X-Assay"));
        let any = shown(any);
        if let Some((head, length, value)) = ResponseHead::parse_usual(text.as_bytes(), "X-Assay") {
            prop_assert_eq!(shown(Ok(Some((head, length)))), any.clone());
            prop_assert_eq!(value, noted);
        }
        let parsed = ResponseHead::parse_noting(text.as_bytes(), "X-Assay");
        prop_assert_eq!(parsed.as_ref().ok().and_then(Option::as_ref).and_then(|found| found.2), noted);
        prop_assert_eq!(shown(parsed.map(|found| found.map(|(head, length, _)| (head, length)))), any);
    }
}
