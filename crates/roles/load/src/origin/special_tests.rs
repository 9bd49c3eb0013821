//! Responses of origins other than plain objects, over real sockets.

use std::cell::Cell;

use assay_http::authentication::{Challenge, DigestClient, Nonces, challenges, write_basic};
use assay_http::coding::GzipReader;
use assay_http::cookie::SetCookie;
use assay_http::digest::{ContentMd5, parse_content_md5};
use assay_http::head::ResponseHead;
use assay_http::range::{MultipartReader, Part, boundary};
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::measured::Measured;
use assay_workload::Object;
use assay_workload::XactId;
use assay_workload::model::{
    AuthDemand, AuthScheme, BodySource, Coding, CookieSetting, Distribution, Embedded, FileEntry, FileSet,
    ForeignUrl, HeaderRule, Method, UserRun, Weighted, Workload,
};
use assay_workload::object::{ObjectId, Space};

use super::testing::{path, workload};
use super::tests::{WrittenResponse, start};
use super::*;

/// The test universe, with connections that last.
pub(super) fn lasting() -> Workload {
    let mut workload = workload();
    workload.servers[0].connection_use_limit = Some(Distribution::Constant(1000.0));
    workload
}

pub(super) fn public(shared: &SharedOrigins, serial: u64) -> Object {
    shared.universe.object(ObjectId { origin: 0, content: 0, space: Space::Public, serial })
}

/// All bytes of version 0 of a public object.
pub(super) fn bytes(shared: &SharedOrigins, serial: u64) -> Vec<u8> {
    let body = shared.universe.body(&public(shared, serial), 0);
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < body.size() {
        bytes.extend_from_slice(body.chunk(shared.universe.pool(), bytes.len() as u64, usize::MAX));
    }
    bytes
}

pub(super) fn xact(number: u64) -> XactId {
    XactId { robot: 1, number, place: 0 }
}

pub(super) fn mark(number: u64) -> String {
    format!("X-Assay: 1-{number}-0-0-b")
}

fn fields<'r>(response: &'r WrittenResponse, name: &str) -> Vec<&'r [u8]> {
    let (head, _) = ResponseHead::parse(&response.head).expect("is HTTP").expect("is complete");
    let named: Vec<(usize, usize)> = head
        .headers()
        .filter(|field| field.is(name))
        .map(|field| (field.value.as_ptr() as usize - response.head.as_ptr() as usize, field.value.len()))
        .collect();
    named.into_iter().map(|(at, length)| &response.head[at..at + length]).collect()
}

#[test]
fn one_part_is_sent_alone_and_says_which_it_is() {
    let origins = start(lasting(), 1);
    let whole = bytes(&origins.shared, 1);
    let (path, size) = (path(&origins.shared, 1), whole.len());
    let mut client = origins.connect();
    for (range, from, to) in [
        ("0-0", 0, 1),
        ("5-99", 5, 100),
        ("100-", 100, size),
        ("-7", size - 7, size),
        ("3-99999999", 3, size),
    ] {
        let response = client.request("GET", &path, &format!("Range: bytes={range}"));
        assert_eq!((response.status, response.mark().status), (206, 206), "{range}");
        assert_eq!(response.field("content-range"), Some(&*format!("bytes {from}-{}/{size}", to - 1)));
        assert!(response.body == whole[from..to], "{range}");
        assert_eq!(response.field("cache-control"), Some("public"));
    }
    let beyond = client.request("GET", &path, &format!("Range: bytes={size}-"));
    assert_eq!((beyond.status, beyond.mark().status, beyond.body.len()), (416, 416, 0));
    assert_eq!(beyond.field("content-range"), Some(&*format!("bytes */{size}")));
    assert_eq!(beyond.field("cache-control"), Some("no-store"));
    let counts = &origins.stop()[0];
    assert_eq!((counts.ranges, counts.multiparts, counts.unsatisfied, counts.responses), (5, 0, 1, 6));
}

#[test]
fn several_parts_are_sent_in_one_body() {
    let origins = start(lasting(), 1);
    let whole = bytes(&origins.shared, 1);
    let response = origins.get(&path(&origins.shared, 1), "Range: bytes=0-9, 20-29, -5, 999999999-");
    assert_eq!(response.status, 206);
    let kind = response.field("content-type").expect("has a type").as_bytes();
    let mut reader = MultipartReader::new(boundary(kind).expect("names a boundary"));
    let (mut rest, mut parts) = (&response.body[..], Vec::new());
    loop {
        let (part, used) = reader.next(rest).expect("is multipart");
        rest = &rest[used..];
        match part {
            Part::Begin { span, total } => {
                assert_eq!(total, Some(whole.len() as u64));
                parts.push((span, Vec::new()));
            }
            Part::Data(data) => parts.last_mut().expect("has begun").1.extend_from_slice(data),
            Part::NeedMore | Part::End => break,
        }
    }
    assert!(reader.is_done() && rest == b"\r\n");
    assert_eq!(parts.len(), 3);
    for (span, data) in parts {
        assert!(data == whole[span.from as usize..span.to as usize]);
    }
    let counts = &origins.stop()[0];
    assert_eq!((counts.ranges, counts.multiparts), (1, 1));
}

#[test]
fn parts_are_sent_only_where_parts_may_be_requested() {
    let origins = start(lasting(), 1);
    let path = path(&origins.shared, 1);
    let whole = origins.get(&path, "");
    let dated = |date: &str| origins.get(&path, &format!("Range: bytes=0-0\r\nIf-Range: {date}")).status;
    assert_eq!(dated(whole.field("last-modified").expect("is dated")), 206);
    assert_eq!(dated("Sun, 06 Nov 1994 08:49:37 GMT"), 200);
    assert_eq!(dated("\"tag\""), 200);
    assert_eq!(origins.get(&path, "Range: bytes=2-1").status, 200);
    assert_eq!(origins.get(&path, "Range: lines=1-2").status, 200);
    let head = origins.connect().request("HEAD", &path, "Range: bytes=0-0");
    assert_eq!((head.status, head.field("content-length")), (200, whole.field("content-length")));
    let since = format!("Range: bytes=0-0\r\nIf-Modified-Since: {}", whole.field("date").expect("is dated"));
    assert_eq!(origins.get(&path, &since).status, 304);
}

fn unzipped(coded: &[u8]) -> Vec<u8> {
    let (mut reader, mut out) = (GzipReader::new(1 << 24), Vec::new());
    reader.push(coded, |bytes| out.extend_from_slice(bytes)).expect("is gzip");
    assert!(reader.is_done());
    out
}

#[test]
fn bodies_are_coded_when_the_client_likes_that_best() {
    let mut coded = lasting();
    coded.contents[0].body.codings = vec![Coding::Identity, Coding::Gzip];
    coded.contents[0].body.source = BodySource::Words;
    coded.contents[0].checksum = 1.0;
    coded.contents[0].size_bytes = Distribution::Constant(30_000.0);
    let origins = start(coded, 1);
    let (path, whole) = (path(&origins.shared, 1), bytes(&origins.shared, 1));
    for (accepts, is_coded) in [
        ("Accept-Encoding: gzip", true),
        ("Accept-Encoding: br, gzip;q=0.5", true),
        ("Accept-Encoding: identity, gzip;q=0.5", false),
        ("Accept-Encoding: br", false),
        ("A: b", false),
        ("Accept-Encoding: gzip\r\nRange: bytes=0-999999999", false),
    ] {
        let response = origins.get(&path, accepts);
        assert_eq!(response.field("vary"), Some("Accept-Encoding"), "{accepts}");
        assert_eq!(response.field("content-encoding"), is_coded.then_some("gzip"), "{accepts}");
        assert!(
            if is_coded { unzipped(&response.body) == whole } else { response.body == whole },
            "{accepts}"
        );
        assert!(
            !is_coded || 2 * response.body.len() < whole.len(),
            "{} of {}",
            response.body.len(),
            whole.len()
        );
        if response.status == 200 {
            let mut digest = ContentMd5::new();
            digest.update(&response.body);
            let said = parse_content_md5(response.field("content-md5").expect("is there").as_bytes());
            assert_eq!(said, Some(digest.finish()));
        }
        let head = origins.connect().request("HEAD", &path, accepts);
        if response.status == 200 {
            for name in ["content-length", "content-encoding", "content-md5", "vary"] {
                assert_eq!(head.field(name), response.field(name), "{name}");
            }
        }
    }
    let date = origins.get(&path, "").field("date").expect("is dated").to_owned();
    let unchanged = origins.get(&path, &format!("If-Modified-Since: {date}"));
    assert_eq!((unchanged.status, unchanged.field("vary")), (304, Some("Accept-Encoding")));
    assert_eq!(origins.stop()[0].coded, 5, "three of them to HEAD, which has no parts");
}

#[test]
fn a_coding_that_nobody_wants_is_refused() {
    let mut coded = lasting();
    coded.contents[0].body.codings = vec![Coding::Gzip];
    let origins = start(coded, 1);
    let path = path(&origins.shared, 1);
    let refused = origins.get(&path, "Accept-Encoding: identity");
    assert_eq!((refused.status, refused.mark().status, refused.field("vary")), (406, 406, None));
    assert_eq!(origins.get(&path, "A: b").field("content-encoding"), Some("gzip"));
    assert_eq!(origins.get(&path, "Accept-Encoding: gzip\r\nRange: bytes=0-0").status, 200);
    let counts = &origins.stop()[0];
    assert_eq!((counts.unacceptable, counts.coded), (1, 2));
}

#[test]
fn cookies_and_added_fields_are_sent() {
    let mut rich = lasting();
    let rule = |name: &str| HeaderRule { fields: vec![(name.into(), "x".into())], probability: 1.0 };
    rich.servers[0].headers = vec![rule("X-Server")];
    rich.contents[0].headers = vec![rule("X-Content")];
    rich.servers[0].cookies = Some(CookieSetting {
        senders: 1.0,
        share: 1.0,
        count: Distribution::Constant(3.0),
        value_bytes: Distribution::Constant(20.0),
    });
    let origins = start(rich, 1);
    let path = path(&origins.shared, 1);
    let response = origins.get(&path, "");
    assert!(response.is_object(&origins.shared, 0, 1));
    assert_eq!((response.field("x-server"), response.field("x-content")), (Some("x"), Some("x")));
    let said: Vec<(Vec<u8>, Vec<u8>)> = fields(&response, "set-cookie")
        .into_iter()
        .map(|value| SetCookie::parse(value).expect("sets a cookie"))
        .map(|cookie| (cookie.name.to_vec(), cookie.value.to_vec()))
        .collect();
    let want: Vec<_> = origins.shared.universe.cookies(&public(&origins.shared, 1)).collect();
    assert_eq!(
        said,
        want.into_iter().map(|c| (c.name.into_bytes(), c.value.into_bytes())).collect::<Vec<_>>()
    );
    assert_eq!(said.len(), 3);
    let unchanged =
        origins.get(&path, &format!("If-Modified-Since: {}", response.field("date").expect("is dated")));
    assert_eq!(
        (unchanged.status, unchanged.field("x-server"), unchanged.field("x-content")),
        (304, Some("x"), None)
    );
    assert!(unchanged.field("set-cookie").is_none());
    assert_eq!(origins.stop()[0].cookies_set, 3);
}

#[test]
fn redirections_lead_to_older_objects_and_end_somewhere() {
    let mut moved = lasting();
    moved.servers[0].redirect_share = 0.7;
    moved.servers[0].popularity = Some(Default::default());
    let origins = start(moved, 1);
    let mut redirects = 0;
    for number in 0..30 {
        let (mut serial, mut at) = (50, path(&origins.shared, 50));
        loop {
            let response = origins.get(&at, &mark(number));
            let want = origins.shared.universe.redirect(xact(number), 0, &public(&origins.shared, serial));
            assert_eq!(response.mark().xact.number, number);
            let Some(older) = want else {
                assert!(response.is_object(&origins.shared, 0, serial));
                break;
            };
            assert_eq!((response.status, response.mark().status, response.body.len()), (302, 302, 0));
            assert!(older.serial < serial);
            at = response.field("location").expect("leads somewhere").to_owned();
            assert_eq!(at, path(&origins.shared, older.serial), "a path without host");
            serial = older.serial;
            redirects += 1;
        }
    }
    assert!(redirects > 10);
    assert_eq!(origins.get(&path(&origins.shared, 50), "").status, 200, "nobody is not redirected");
    assert_eq!(origins.stop()[0].redirects, redirects);
}

#[test]
fn clients_must_be_proven_and_a_wrong_password_is_refused() {
    let mut guarded = lasting();
    guarded.servers[0].authentication = Some(AuthDemand {
        schemes: vec![AuthScheme::Basic, AuthScheme::Digest],
        realm: "Assay \"test\"".into(),
        share: 1.0,
    });
    guarded.robots[0].credentials.users = vec![
        UserRun::One { user: "joe".into(), password: "secret".into() },
        UserRun::Made { count: 9, realm: "r".into() },
    ];
    let origins = start(guarded, 1);
    let path = path(&origins.shared, 1);
    let refused = origins.get(&path, &mark(1));
    assert_eq!((refused.status, refused.mark().xact.number), (401, 1));
    let said = fields(&refused, "www-authenticate");
    let found: Vec<Challenge<'_>> = said.iter().flat_map(|value| challenges(value)).collect();
    assert_eq!(found.len(), 3);
    let request = |text: Vec<u8>| {
        let value = String::from_utf8(text).expect("is text");
        origins.get(&path, &format!("Authorization: {value}"))
    };
    let made = origins.shared.universe.login(1, 0).expect("has a user");
    for (user, password, status) in [
        ("joe", "secret", 200),
        ("joe", "Secret", 401),
        ("jim", "secret", 401),
        (&*made.user, &*made.password, 200),
    ] {
        let mut basic = Vec::new();
        write_basic(user.as_bytes(), password.as_bytes(), &mut basic);
        assert_eq!(request(basic).status, status, "{user}");
        for challenge in &found {
            let Challenge::Digest(challenge) = challenge else { continue };
            let mut client = DigestClient::new(challenge);
            for _ in 0..2 {
                let mut digest = Vec::new();
                client.write(user.as_bytes(), password.as_bytes(), "GET", path.as_bytes(), 7, &mut digest);
                assert_eq!(request(digest).status, status, "{user}");
            }
        }
    }
    let Some(Challenge::Digest(challenge)) = found.iter().find(|c| matches!(c, Challenge::Digest(_))) else {
        panic!("{found:?}")
    };
    for (nonce, uri, is_stale) in [
        (origins.shared.nonces.make(1), path.as_str(), true),
        (Nonces::new(1, 9).make(1), path.as_str(), false),
        (challenge.nonce.to_vec(), "/elsewhere", false),
    ] {
        let mut digest = Vec::new();
        DigestClient::new(&assay_http::authentication::DigestChallenge {
            nonce: nonce.into(),
            ..challenge.clone()
        })
        .write(b"joe", b"secret", "GET", uri.as_bytes(), 7, &mut digest);
        let again = request(digest);
        let stale = fields(&again, "www-authenticate").iter().any(|v| v.ends_with(b"stale=true"));
        assert_eq!((again.status, stale), (401, is_stale));
    }
    let counts = &origins.stop()[0];
    assert_eq!((counts.authenticated, counts.wrong_credentials, counts.challenges), (10, 12, 14));
}

#[test]
fn a_body_that_is_not_wanted_is_refused_before_it_comes() {
    let mut choosy = lasting();
    choosy.servers[0].body_allowed = 0.5;
    let origins = start(choosy, 1);
    let path = path(&origins.shared, 1);
    let (mut allowed, mut refused) = (0, 0);
    for number in 0..20 {
        let mut client = origins.connect();
        client.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nX-Assay: 1-{number}-0-0-o\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        ));
        let word = client.response("POST");
        if origins.shared.universe.body_allowed(xact(number), 0) {
            assert_eq!(word.status, 100);
            client.send("abc");
            assert!(client.response("POST").is_object(&origins.shared, 0, 1));
            allowed += 1;
        } else {
            assert_eq!((word.status, word.mark().status, word.persists), (417, 417, false));
            assert!(client.is_closed());
            refused += 1;
        }
    }
    assert!(allowed > 3 && refused > 3);
    let counts = &origins.stop()[0];
    assert_eq!((counts.continued, counts.expectations_refused), (allowed, refused));
    assert_eq!((counts.broken, counts.responses), (0, 20));
}

#[test]
fn urls_of_a_trace_are_served_like_any_object() {
    let mut traced = lasting();
    traced.foreign = vec![ForeignUrl { origin: 0, path: "/some/page?x=1".into() }];
    traced.robots[0].foreign_share = 0.5;
    let origins = start(traced, 1);
    let id = origins.shared.universe.parse_path(0, b"/some/page?x=1").expect("is known");
    assert_eq!(id.space, Space::Foreign);
    let object = origins.shared.universe.object(id);
    let response = origins.get("/some/page?x=1", &mark(1));
    assert_eq!((response.status, response.mark().key), (200, object.key));
    let body = origins.shared.universe.body(&object, 0);
    assert_eq!(body.matches(origins.shared.universe.pool(), 0, &response.body), Ok(()));
    assert_eq!(response.body.len() as u64, object.size_bytes);
    assert_eq!(origins.get("/some/page", "").status, 404);
}

#[test]
fn files_are_served_as_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let texts = ["<p>one</p>", "<p>the second file</p>"];
    let files = ["a.html", "b.html"].iter().zip(texts).map(|(name, text)| {
        std::fs::write(dir.path().join(name), text).expect("is written");
        let bytes = text.as_bytes();
        FileEntry { path: name.into(), bytes: bytes.len() as u64, digest: FileEntry::digest_of(bytes) }
    });
    let mut served = lasting();
    served.files = vec![FileSet { root: dir.path().into(), files: files.collect() }];
    served.contents[0].body.source = BodySource::Files(0);
    let origins = start(served, 1);
    let mut seen = Vec::new();
    for serial in 0..20 {
        let at = path(&origins.shared, serial);
        assert!(at.ends_with(".html"), "{at}");
        let response = origins.get(&at, "");
        assert_eq!(response.body.len() as u64, public(&origins.shared, serial).size_bytes);
        seen.push(String::from_utf8(response.body).expect("is text"));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen, texts);
}

#[test]
fn pages_hold_their_links() {
    let mut paged = lasting();
    paged.contents[0].mime_type = Some("text/html".into());
    paged.contents[0].embedded =
        Some(Embedded { count: Distribution::Constant(7.0), contents: Weighted::one(1) });
    let origins = start(paged, 1);
    let response = origins.get(&path(&origins.shared, 1), "");
    assert!(response.is_object(&origins.shared, 0, 1));
    let text = String::from_utf8(response.body).expect("a page is text");
    let links: Vec<&str> =
        text.split("src=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect();
    assert_eq!(links.len(), 7);
    for link in links {
        assert_eq!(origins.get(link, "").status, 200, "{link}");
    }
}

/// The first xact of a robot with a body to send, and the bytes of that.
fn upload(shared: &SharedOrigins, method: Method) -> (u64, Vec<u8>) {
    (0..100)
        .find_map(|number| {
            let id = shared.universe.request_body(xact(number), method, 0)?;
            let body = shared.universe.body(&shared.universe.object(id), 0);
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < body.size() {
                bytes.extend_from_slice(body.chunk(shared.universe.pool(), bytes.len() as u64, usize::MAX));
            }
            (bytes.len() > 100).then_some((number, bytes))
        })
        .expect("there is one")
}

#[test]
fn request_bodies_are_compared_byte_for_byte() {
    use std::io::Write;
    let mut sending = lasting();
    sending.robots[0].post_contents = Weighted::one(1);
    sending.robots[0].put_contents = Weighted::one(1);
    let origins = start(sending, 1);
    let path = path(&origins.shared, 1);
    let attempts = Cell::new(0);
    let send = |method: Method, framing: &str, number: u64, body: &[u8]| {
        let name = crate::tally::method_name(method);
        let mut client = origins.connect();
        let attempt = attempts.replace(attempts.get() + 1);
        client.send(&format!(
            "{name} {path} HTTP/1.1\r\nHost: a\r\nX-Assay: 1-{number}-0-0-o{attempt}\r\n{framing}\r\n\r\n"
        ));
        // In two pieces.
        client.stream.write_all(&body[..body.len() / 2]).expect("is read");
        client.stream.write_all(&body[body.len() / 2..]).expect("is read");
        assert!(client.response(name).is_object(&origins.shared, 0, 1));
    };
    for method in [Method::Post, Method::Put] {
        let (number, right) = upload(&origins.shared, method);
        send(method, &format!("Content-Length: {}", right.len()), number, &right);
        let chunked = [format!("{:x}\r\n", right.len()).as_bytes(), &right, b"\r\n0\r\n\r\n"].concat();
        send(method, "Transfer-Encoding: chunked", number, &chunked);
        let mut wrong = right.clone();
        wrong[77] ^= 1;
        send(method, &format!("Content-Length: {}", wrong.len()), number, &wrong);
        send(method, "Content-Length: 50", number, &right[..50]);
        send(method, "Content-Length: 0", number, &[]);
    }
    let mut client = origins.connect();
    client.send(&format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"));
    assert!(client.response("POST").is_object(&origins.shared, 0, 1), "nobody's body is anything");
    let (counts, events) = origins.stop_and_tell();
    assert_eq!((counts[0].wrong_uploads, counts[0].repeated_posts, counts[0].requests), (6, 0, 11));
    let examples = examples(&events);
    assert_eq!(examples.len(), 3);
    assert_eq!((examples[0].kind, examples[1].kind), (ErrorKind::WrongUpload, ErrorKind::WrongUpload));
    assert!(examples[0].detail.contains("byte 77 "), "{examples:?}");
    assert!(examples[0].request.starts_with("POST ") && examples[0].request.ends_with(&path), "{examples:?}");
    assert!(examples[2].detail.starts_with("0 bytes "), "{examples:?}");
}

fn examples(events: &[Event]) -> Vec<&ErrorExample> {
    let measured = events.iter().filter_map(|event| match event {
        Event::Measured(Measured::Example(example)) => Some(&**example),
        _ => None,
    });
    measured.collect()
}

#[test]
fn a_post_that_comes_again_is_an_error_unless_its_robot_has_sent_it_again() {
    let origins = start(lasting(), 2);
    let path = path(&origins.shared, 1);
    for (method, mark) in [
        ("POST", "X-Assay: 1-1-0-0-o\r\n"),
        ("POST", "X-Assay: 1-1-0-0-o1\r\n"),
        ("POST", "X-Assay: 1-2-0-0-o\r\n"),
        ("POST", "X-Assay: 1-1-0-0-o\r\n"),
        ("POST", "X-Assay: 1-1-0-0-o1\r\n"),
        ("PUT", "X-Assay: 1-3-0-0-o\r\n"),
        ("PUT", "X-Assay: 1-3-0-0-o\r\n"),
        ("GET", "X-Assay: 1-4-0-0-b\r\n"),
        ("GET", "X-Assay: 1-4-0-0-b\r\n"),
        ("POST", ""),
        ("POST", ""),
    ] {
        let mut client = origins.connect();
        client.send(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{mark}Content-Length: 0\r\n\r\n"));
        assert!(client.response(method).is_object(&origins.shared, 0, 1), "{method} {mark}");
    }
    let (counts, events) = origins.stop_and_tell();
    assert_eq!((counts[0].repeated_posts, counts[0].requests), (2, 11));
    let examples = examples(&events);
    assert_eq!((examples.len(), examples[0].xact.as_str()), (2, "1.1.0"), "{examples:?}");
    assert_eq!(examples[0].kind, ErrorKind::RepeatedPost);
}
