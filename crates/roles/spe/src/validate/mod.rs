//! Comparison of a proxy's response with the Collector's.
//!
//! Status, header fields and body are compared, in this order, as in Davison's thesis. [`Rules`] determine which fields may
//! differ, and how; bodies are compared after content decoding, by checksum, so that neither is ever held whole. Only where a
//! rule demands more ([`body::BodyRule`]) is a body of that type kept, up to a size.
//!
//! Pure but for [`Rules::load`], which reads a file: bytes arrive in pieces, nothing is fetched.

pub mod body;
pub mod fields;
mod json;
mod patterns;
mod read;
pub mod rules;

use assay_http::head::ResponseHead;
use assay_record::spe::Verdict;

pub use self::body::{BodyDigest, BodyDigester};
pub use self::read::read;
pub use self::rules::Rules;

/// A whole response, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseSample {
    pub status: u16,
    /// As received.
    pub head: Vec<u8>,
    /// Without a body whatever the fields say: the response to a HEAD, or a 304.
    pub is_bodiless: bool,
    pub body: BodyDigest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    pub verdict: Verdict,
    /// Field that differs, spelt as in the response that has it.
    pub header: Option<String>,
}

impl Comparison {
    fn plain(verdict: Verdict) -> Self {
        Self { verdict, header: None }
    }

    fn header(name: &[u8]) -> Self {
        let header = Some(String::from_utf8_lossy(name).into_owned());
        Self { verdict: Verdict::HeaderMismatch, header }
    }
}

/// Compares a proxy's response with the Collector's (`direct`).
pub fn compare(rules: &Rules, direct: &ResponseSample, proxy: &ResponseSample) -> Comparison {
    if direct.status != proxy.status {
        return Comparison::plain(Verdict::StatusCodeMismatch);
    }
    let (Ok(Some((one, _))), Ok(Some((other, _)))) =
        (ResponseHead::parse(&direct.head), ResponseHead::parse(&proxy.head))
    else {
        // The heads of samples have been parsed before.
        return Comparison::plain(Verdict::NotCompared);
    };
    let is_partial = direct.is_bodiless || proxy.is_bodiless;
    // Each response has a boundary of its own, in its type and in its body.
    let are_parts = body::are_parts(&one) && body::are_parts(&other);
    let except = if are_parts { "content-type" } else { "" };
    if let Some(name) = fields::difference(rules, &one, &other, is_partial, except) {
        return Comparison::header(name);
    }
    if are_parts {
        return Comparison::plain(Verdict::Ok);
    }
    match body::compare(rules, &direct.body, one.header("content-type"), &proxy.body) {
        body::BodyMatch::Same => Comparison::plain(Verdict::Ok),
        body::BodyMatch::Different => Comparison::plain(Verdict::BodyMismatch),
        body::BodyMatch::OtherCoding => Comparison::header(b"Content-Encoding"),
    }
}

#[cfg(test)]
mod tests {
    use assay_http::coding::GzipWriter;
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn sample(rules: &Rules, head: &str, body: &[u8]) -> ResponseSample {
        let text = format!("HTTP/1.1 {head}\r\n\r\n");
        let (parsed, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        let mut digester = BodyDigester::new(&parsed, rules);
        body.chunks(7).for_each(|piece| digester.push(piece));
        ResponseSample {
            status: parsed.status,
            head: text.clone().into_bytes(),
            is_bodiless: parsed.status == 304,
            body: digester.finish(),
        }
    }

    fn judged(one: (&str, &[u8]), other: (&str, &[u8])) -> (Verdict, Option<String>) {
        let rules = Rules::with_defaults();
        let finding = compare(&rules, &sample(&rules, one.0, one.1), &sample(&rules, other.0, other.1));
        (finding.verdict, finding.header)
    }

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        GzipWriter::new().encode([body], &mut out);
        out
    }

    #[test]
    fn status_comes_before_fields_and_fields_before_the_body() {
        let direct = ("200 OK\r\nX-A: 1", &b"body"[..]);
        assert_eq!(judged(direct, ("404 No\r\nX-A: 2", b"other")), (Verdict::StatusCodeMismatch, None));
        let other = ("200 OK\r\nX-A: 2", &b"other"[..]);
        assert_eq!(judged(direct, other), (Verdict::HeaderMismatch, Some("X-A".into())));
        assert_eq!(judged(direct, ("200 Fine\r\nx-a: 1", b"other")), (Verdict::BodyMismatch, None));
        assert_eq!(judged(direct, ("200 Fine\r\nx-a: 1", b"body")), (Verdict::Ok, None));
    }

    #[test]
    fn a_proxy_may_decode_a_body_or_code_it() {
        let coded = gzip(b"a text that is coded");
        let direct = ("200 OK\r\nContent-Encoding: gzip\r\nETag: \"x\"\r\nVary: Accept-Encoding", &coded[..]);
        let plain = ("200 OK\r\nETag: W/\"x\"\r\nContent-Length: 20", &b"a text that is coded"[..]);
        assert_eq!(judged(direct, plain), (Verdict::Ok, None));
        assert_eq!(judged(plain, direct), (Verdict::Ok, None));
        assert_eq!(judged(direct, (plain.0, b"another text")).0, Verdict::BodyMismatch);
    }

    #[test]
    fn a_coding_that_is_not_known_here_is_compared_as_it_came() {
        let direct = ("200 OK\r\nContent-Encoding: br", &b"\x01\x02"[..]);
        assert_eq!(judged(direct, direct), (Verdict::Ok, None));
        assert_eq!(judged(direct, (direct.0, b"\x01\x03")).0, Verdict::BodyMismatch);
        let other = judged(direct, ("200 OK", b"plain"));
        assert_eq!(other, (Verdict::HeaderMismatch, Some("Content-Encoding".into())));
    }

    #[test]
    fn damaged_gzip_is_compared_as_it_came() {
        let mut coded = gzip(b"a text that is coded");
        coded.truncate(12);
        let direct = ("200 OK\r\nContent-Encoding: gzip", &coded[..]);
        assert_eq!(judged(direct, direct), (Verdict::Ok, None));
    }

    #[test]
    fn a_304_need_not_repeat_what_the_client_has() {
        let direct = ("304 Not Modified\r\nETag: \"x\"\r\nCache-Control: max-age=5", &b""[..]);
        assert_eq!(judged(direct, ("304 Not Modified\r\nETag: \"x\"", b"")), (Verdict::Ok, None));
        let other = judged(direct, ("304 Not Modified\r\nETag: \"y\"", b""));
        assert_eq!(other, (Verdict::HeaderMismatch, Some("ETag".into())));
    }

    #[test]
    fn several_parts_have_boundaries_of_their_own() {
        let head =
            |boundary| format!("206 Partial\r\nContent-Type: multipart/byteranges; boundary={boundary}");
        assert_eq!(judged((&head("a"), b"--a--"), (&head("b"), b"--b--")), (Verdict::Ok, None));
    }

    proptest! {
        #[test]
        fn a_response_is_the_same_as_itself_however_it_is_cut_and_coded(
            body in prop::collection::vec(any::<u8>(), 0..3000),
            fields in prop::collection::vec(("[A-Za-z][A-Za-z0-9-]{0,12}", "[ -~]{0,20}"), 0..12),
        ) {
            let reserved = ["content-encoding", "content-length", "transfer-encoding", "content-type"];
            let fields: String = fields.iter()
                .filter(|(name, _)| !reserved.contains(&name.to_ascii_lowercase().as_str()))
                .map(|(name, value)| format!("\r\n{name}: {value}")).collect();
            let plain = format!("200 OK{fields}");
            prop_assert_eq!(judged((&plain, &body), (&plain, &body)), (Verdict::Ok, None));
            let coded = format!("{plain}\r\nContent-Encoding: gzip");
            prop_assert_eq!(judged((&plain, &body), (&coded, &gzip(&body))), (Verdict::Ok, None));
            let mut other = body.clone();
            other.push(0);
            prop_assert_eq!(judged((&plain, &body), (&plain, &other)).0, Verdict::BodyMismatch);
        }

        #[test]
        fn a_field_that_only_one_has_is_found_by_either(name in "X-[a-z]{1,8}") {
            prop_assume!(!name.to_ascii_lowercase().starts_with("x-cache"));
            let (with, without) = (format!("200 OK\r\n{name}: 1"), "200 OK");
            prop_assume!(!Rules::with_defaults().is_ignored(&name));
            let expected = (Verdict::HeaderMismatch, Some(name.clone()));
            prop_assert_eq!(judged((&with, b""), (without, b"")), expected.clone());
            prop_assert_eq!(judged((without, b""), (&with, b"")), expected);
        }
    }
}
