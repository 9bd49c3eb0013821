//! Comparison of bodies, independent of their content coding.

use assay_http::coding::{Coding, GzipReader};
use assay_http::digest::ContentMd5;
use assay_http::field::list;
use assay_http::head::ResponseHead;

use super::json;
use super::patterns::{self, TextPattern};
use super::rules::Rules;

/// Bound on the bytes decoded from a body, plus [`DECODED_MAX_PER_BYTE`] for each coded byte; larger bodies are compared
/// undecoded. A megabyte can hold a gigabyte, and clients wait while it is decoded; ordinary text is compressed to a tenth at
/// best.
const DECODED_MAX_BYTES: u64 = 8 << 20;
const DECODED_MAX_PER_BYTE: u64 = 32;
/// Default bound on the bytes kept of a body that is compared by more than its checksum.
pub const KEPT_DEFAULT_BYTES: usize = 1 << 20;

/// Comparison of the bodies of a media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyRule {
    /// `text/html`, `text/*` or `*`, in lower case.
    pub media_type: String,
    pub comparison: BodyComparison,
    /// Larger bodies are compared byte for byte.
    pub max_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyComparison {
    /// Byte for byte.
    Bytes,
    /// Not compared.
    Ignore,
    /// As JSON, without the values at these paths.
    Json(Vec<json::JsonPath>),
    /// As text, without the parts that match these patterns.
    Text(Vec<TextPattern>),
}

impl BodyRule {
    fn fits(&self, media_type: &[u8]) -> bool {
        match self.media_type.strip_suffix('*') {
            Some(prefix) => media_type.starts_with(prefix.as_bytes()),
            None => media_type == self.media_type.as_bytes(),
        }
    }

    fn needs_bytes(&self) -> bool {
        matches!(self.comparison, BodyComparison::Json(_) | BodyComparison::Text(_))
    }
}

fn rule_for<'r>(rules: &'r Rules, content_type: Option<&[u8]>) -> Option<&'r BodyRule> {
    if rules.bodies.is_empty() {
        return None;
    }
    let value = content_type.unwrap_or_default();
    let name = value.split(|byte| *byte == b';').next().unwrap_or_default();
    let name = name.trim_ascii().to_ascii_lowercase();
    rules.bodies.iter().rev().find(|rule| rule.fits(&name))
}

/// Digest of a body that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyDigest {
    /// Bytes as received.
    pub bytes: u64,
    /// Bytes after decoding, as far as that was possible.
    pub decoded_bytes: u64,
    /// MD5 as received.
    raw: [u8; 16],
    /// MD5 after decoding; `None` for an unknown coding or a damaged body.
    decoded: Option<[u8; 16]>,
    is_coded: bool,
    /// Decoded bytes, where a rule needs them and they are not too many.
    kept: Option<Vec<u8>>,
}

impl BodyDigest {
    pub fn nothing() -> Self {
        let digest = ContentMd5::new().finish();
        Self { bytes: 0, decoded_bytes: 0, raw: digest, decoded: Some(digest), is_coded: false, kept: None }
    }

    /// Checksum in hexadecimal, of the decoded body where it could be decoded.
    pub fn checksum(&self) -> String {
        let digest = self.decoded.unwrap_or(self.raw);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Incremental digest of a body.
pub struct BodyDigester {
    bytes: u64,
    decoded_bytes: u64,
    raw: ContentMd5,
    decoder: Decoder,
    decoded: ContentMd5,
    /// Bytes kept, and their limit; `None` if none are to be kept, or there were too many.
    kept: Option<(Vec<u8>, usize)>,
}

enum Decoder {
    Identity,
    Gzip(Box<GzipReader>),
    /// Unknown coding, or damaged body.
    Unknown,
}

impl BodyDigester {
    /// Starts the digest of the body of a response with this head.
    pub fn new(head: &ResponseHead<'_>, rules: &Rules) -> Self {
        let codings =
            head.headers().filter(|field| field.is("content-encoding")).flat_map(|field| list(field.value));
        let mut decoder = Decoder::Identity;
        for name in codings {
            decoder = match (decoder, Coding::from_name(name)) {
                (decoder, Some(Coding::Identity)) => decoder,
                (Decoder::Identity, Some(Coding::Gzip)) => {
                    Decoder::Gzip(Box::new(GzipReader::new(DECODED_MAX_BYTES)))
                }
                _ => Decoder::Unknown,
            };
        }
        let rule = rule_for(rules, head.header("content-type")).filter(|rule| rule.needs_bytes());
        Self {
            bytes: 0,
            decoded_bytes: 0,
            raw: ContentMd5::new(),
            decoder,
            decoded: ContentMd5::new(),
            kept: rule.map(|rule| (Vec::new(), rule.max_bytes)),
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.raw.update(bytes);
        let (decoded, decoded_bytes, kept) = (&mut self.decoded, &mut self.decoded_bytes, &mut self.kept);
        match &mut self.decoder {
            Decoder::Identity => {
                *decoded_bytes += bytes.len() as u64;
                keep(kept, bytes);
            }
            Decoder::Gzip(reader) => {
                let sink = |piece: &[u8]| {
                    *decoded_bytes += piece.len() as u64;
                    decoded.update(piece);
                    keep(kept, piece);
                };
                reader.allow(DECODED_MAX_PER_BYTE * bytes.len() as u64);
                if reader.push(bytes, sink).is_err() {
                    self.decoder = Decoder::Unknown;
                }
            }
            Decoder::Unknown => {}
        }
    }

    pub fn finish(self) -> BodyDigest {
        let raw = self.raw.finish();
        let (decoded, is_coded) = match self.decoder {
            Decoder::Identity => (Some(raw), false),
            // An empty body is not valid gzip, and yet unambiguous.
            Decoder::Gzip(_) if self.bytes == 0 => (Some(raw), true),
            Decoder::Gzip(reader) if reader.is_done() => (Some(self.decoded.finish()), true),
            Decoder::Gzip(_) | Decoder::Unknown => (None, true),
        };
        let kept = self.kept.filter(|_| decoded.is_some()).map(|(bytes, _)| bytes);
        BodyDigest { bytes: self.bytes, decoded_bytes: self.decoded_bytes, raw, decoded, is_coded, kept }
    }
}

fn keep(kept: &mut Option<(Vec<u8>, usize)>, bytes: &[u8]) {
    let Some((all, most)) = kept else { return };
    if all.len() + bytes.len() > *most {
        *kept = None;
    } else {
        all.extend_from_slice(bytes);
    }
}

/// Result of comparing two bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyMatch {
    Same,
    Different,
    /// Coded differently, and at least one cannot be decoded here.
    OtherCoding,
}

/// Compares two bodies; `content_type` is that of the first.
pub fn compare(
    rules: &Rules,
    one: &BodyDigest,
    content_type: Option<&[u8]>,
    other: &BodyDigest,
) -> BodyMatch {
    let rule = rule_for(rules, content_type);
    if one.raw == other.raw || rule.is_some_and(|rule| rule.comparison == BodyComparison::Ignore) {
        return BodyMatch::Same;
    }
    match (one.decoded, other.decoded) {
        (Some(a), Some(b)) if a == b => return BodyMatch::Same,
        (Some(_), Some(_)) => {}
        _ if one.is_coded != other.is_coded => return BodyMatch::OtherCoding,
        _ => return BodyMatch::Different,
    }
    let (Some(one), Some(other), Some(rule)) = (&one.kept, &other.kept, rule) else {
        return BodyMatch::Different;
    };
    let is_same = match &rule.comparison {
        BodyComparison::Json(ignored) => json::are_same(one, other, ignored) == Some(true),
        BodyComparison::Text(patterns) => {
            patterns::strip_all(patterns, one) == patterns::strip_all(patterns, other)
        }
        BodyComparison::Bytes | BodyComparison::Ignore => false,
    };
    if is_same { BodyMatch::Same } else { BodyMatch::Different }
}

/// Whether a body consists of several parts, separated by a boundary that each response chooses for itself.
pub fn are_parts(head: &ResponseHead<'_>) -> bool {
    let value = head.header("content-type").unwrap_or_default();
    let name = b"multipart/byteranges";
    head.status == 206 && value.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use assay_http::coding::GzipWriter;

    use super::super::read;
    use super::*;

    fn digested(rules: &Rules, fields: &str, body: &[u8]) -> BodyDigest {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        let mut digester = BodyDigester::new(&head, rules);
        body.chunks(3).for_each(|piece| digester.push(piece));
        digester.finish()
    }

    fn compared(rules: &str, media_type: &str, one: &str, other: &str) -> BodyMatch {
        let rules = read("rules.toml", rules).unwrap();
        let field = format!("Content-Type: {media_type}\r\n");
        let [one, other] = [one, other].map(|body| digested(&rules, &field, body.as_bytes()));
        compare(&rules, &one, Some(media_type.as_bytes()), &other)
    }

    #[test]
    fn a_body_that_holds_far_more_than_its_size_is_compared_as_it_came() {
        let coded = |bytes: usize| {
            let mut body = Vec::new();
            GzipWriter::new().encode([vec![0; bytes].as_slice()], &mut body);
            let digested = digested(&Rules::with_defaults(), "Content-Encoding: gzip\r\n", &body);
            (digested.decoded.is_some(), digested.decoded_bytes)
        };
        assert_eq!(coded(1 << 20), (true, 1 << 20));
        let (is_decoded, decoded_bytes) = coded(24 << 20);
        assert!(!is_decoded && decoded_bytes < 12 << 20, "{decoded_bytes}");
    }

    #[test]
    fn json_is_compared_by_what_it_says_where_a_rule_demands_it() {
        let rules = "[[body]]\ntype = \"application/json\"\ncompare = \"json\"\nignore = [\"time\"]\n";
        let (one, other) = ("{\"time\":1,\"a\":2}", "{ \"a\":2, \"time\":9 }");
        assert_eq!(compared(rules, "application/json; charset=utf-8", one, other), BodyMatch::Same);
        assert_eq!(compared(rules, "application/json", one, "{\"a\":3}"), BodyMatch::Different);
        assert_eq!(compared(rules, "text/json", one, other), BodyMatch::Different);
        assert_eq!(compared("", "application/json", one, other), BodyMatch::Different);
    }

    #[test]
    fn html_is_compared_without_what_fits_a_pattern() {
        let rules = "[[body]]\ntype = \"text/*\"\ncompare = \"html\"\nignore = ['nonce=\"*\"', '<!--*-->']\n";
        let (one, other) = ("<p nonce=\"1\">x", "<p nonce=\"22\"><!-- made by b -->x");
        assert_eq!(compared(rules, "text/html", one, other), BodyMatch::Same);
        assert_eq!(compared(rules, "text/html", one, "<p nonce=\"1\">y"), BodyMatch::Different);
    }

    #[test]
    fn what_is_too_large_to_keep_is_compared_byte_for_byte() {
        let rules = "[[body]]\ntype = \"*\"\ncompare = \"json\"\nat-most = \"20B\"\n";
        assert_eq!(compared(rules, "a/b", "{\"a\":1}", "{ \"a\":1 }"), BodyMatch::Same);
        let long = format!("{{\"a\":{}1}}", " ".repeat(30));
        assert_eq!(compared(rules, "a/b", "{\"a\":1}", &long), BodyMatch::Different);
    }

    #[test]
    fn a_type_may_be_left_out_of_the_comparison() {
        let rules =
            "[[body]]\ntype = \"*\"\ncompare = \"ignore\"\n[[body]]\ntype = \"a/b\"\ncompare = \"bytes\"\n";
        assert_eq!(compared(rules, "x/y", "1", "2"), BodyMatch::Same);
        assert_eq!(compared(rules, "a/b", "1", "2"), BodyMatch::Different);
    }

    #[test]
    fn a_checksum_is_that_of_the_decoded_body() {
        let rules = Rules::with_defaults();
        assert_eq!(digested(&rules, "", b"abc").checksum(), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(BodyDigest::nothing().checksum(), digested(&rules, "", b"").checksum());
    }
}
