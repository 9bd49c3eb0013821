//! Which requests RFC 9113 calls malformed is known.

use crate::translated::Translated;

#[test]
fn a_request_becomes_what_says_the_same_and_what_is_malformed_is_known() {
    let text =
        "POST /x?y HTTP/1.1\r\nHost: a\r\nX-One:  1\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\n\r\n";
    let sent = Translated::of(text.as_bytes()).unwrap();
    assert_eq!((&sent.method[..], &sent.path[..]), (&b"POST"[..], &b"/x?y"[..]));
    assert!(sent.body.starts_with(b"abcGET /2") && sent.is_malformed(), "more DATA than content-length");
    assert_eq!(sent.regular[0], (b"x-one".to_vec(), b" 1".to_vec()));
    let is_malformed = |head: &str, body: &str| {
        let text = format!("{head}\r\n\r\n{body}");
        Translated::of(text.as_bytes()).unwrap().is_malformed()
    };
    for (head, body) in [
        ("GET / HTTP/1.1\r\nHost: a", ""),
        ("GET / HTTP/1.1\r\nHost: a", "GET /2 HTTP/1.1\r\n\r\n"),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\nHost: a\r\nTE: trailers", ""),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1", "x"),
    ] {
        assert!(!is_malformed(head, body), "{head}");
    }
    for head in [
        "GET / HTTP/1.1",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b",
        "GET http://a/ HTTP/1.1\r\nHost: a",
        "GET /a#b HTTP/1.1\r\nHost: a",
        "GET /  HTTP/1.1\r\nHost: a",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\nb",
        "GET / HTTP/1.1\r\nHost: a\r\nX : a",
        "GET / HTTP/1.1\r\nHost: a\r\nX:  a",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1",
    ] {
        assert!(is_malformed(head, ""), "{head}");
    }
    assert_eq!(Translated::of(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), None);
    assert_eq!(Translated::of(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
}
