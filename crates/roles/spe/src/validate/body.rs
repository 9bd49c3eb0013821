//! Whether two bodies are the same, however they were coded.

use assay_http::coding::{Coding, GzipReader};
use assay_http::digest::ContentMd5;
use assay_http::field::list;
use assay_http::head::ResponseHead;

use super::json;
use super::patterns::{self, Pattern};
use super::rules::Rules;

/// So many bytes may come out of a coded body, and so many more for each byte of it: one that holds more is compared as it came.
/// A body of a megabyte can hold a gigabyte, and clients wait while it is decoded; what people write is coded to a tenth at best.
const MOST_DECODED: u64 = 8 << 20;
const MOST_DECODED_PER_BYTE: u64 = 32;
/// Bytes kept of a body whose type is compared by more than its checksum, where the rule does not say.
pub const USUAL_MOST_KEPT: usize = 1 << 20;

/// How bodies of a type are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyRule {
    /// `text/html`, `text/*` or `*`, in lower case.
    pub media_type: String,
    pub how: BodyHow,
    /// Larger ones are compared byte for byte.
    pub at_most: usize,
}

/// How a body is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyHow {
    /// Byte for byte.
    Bytes,
    /// Not at all.
    Ignore,
    /// As JSON, without what stands at these paths.
    Json(Vec<json::Path>),
    /// As text, without what fits these patterns.
    Text(Vec<Pattern>),
}

impl BodyRule {
    fn fits(&self, media_type: &[u8]) -> bool {
        match self.media_type.strip_suffix('*') {
            Some(prefix) => media_type.starts_with(prefix.as_bytes()),
            None => media_type == self.media_type.as_bytes(),
        }
    }

    fn needs_bytes(&self) -> bool {
        matches!(self.how, BodyHow::Json(_) | BodyHow::Text(_))
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

/// What is known of a body that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digested {
    /// Bytes as they came.
    pub bytes: u64,
    /// Bytes that came out of them, as far as they could be decoded.
    pub decoded_bytes: u64,
    /// MD5 of them.
    raw: [u8; 16],
    /// MD5 of what they mean; none: their coding is not known here, or they are damaged.
    decoded: Option<[u8; 16]>,
    /// They had a coding.
    is_coded: bool,
    /// What they mean, where a rule needs it and it is not too large.
    kept: Option<Vec<u8>>,
}

impl Digested {
    pub fn nothing() -> Self {
        let digest = ContentMd5::new().finish();
        Self { bytes: 0, decoded_bytes: 0, raw: digest, decoded: Some(digest), is_coded: false, kept: None }
    }

    /// The checksum, in hexadecimal: of what was decoded, where that could be done.
    pub fn checksum(&self) -> String {
        let digest = self.decoded.unwrap_or(self.raw);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Takes a body in as it comes.
pub struct Digester {
    bytes: u64,
    decoded_bytes: u64,
    raw: ContentMd5,
    decoder: Decoder,
    decoded: ContentMd5,
    /// Bytes that are kept, and how many may be; none: none are to be, or they became too many.
    kept: Option<(Vec<u8>, usize)>,
}

enum Decoder {
    /// It means what it says.
    Identity,
    /// gzip.
    Gzip(Box<GzipReader>),
    /// Not known here, or damaged.
    Unknown,
}

impl Digester {
    /// For the body of a response with this head.
    pub fn new(head: &ResponseHead<'_>, rules: &Rules) -> Self {
        let codings =
            head.headers().filter(|field| field.is("content-encoding")).flat_map(|field| list(field.value));
        let mut decoder = Decoder::Identity;
        for name in codings {
            decoder = match (decoder, Coding::from_name(name)) {
                (decoder, Some(Coding::Identity)) => decoder,
                (Decoder::Identity, Some(Coding::Gzip)) => {
                    Decoder::Gzip(Box::new(GzipReader::new(MOST_DECODED)))
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
            kept: rule.map(|rule| (Vec::new(), rule.at_most)),
        }
    }

    /// The next bytes.
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
                reader.allow(MOST_DECODED_PER_BYTE * bytes.len() as u64);
                if reader.push(bytes, sink).is_err() {
                    self.decoder = Decoder::Unknown;
                }
            }
            Decoder::Unknown => {}
        }
    }

    pub fn finish(self) -> Digested {
        let raw = self.raw.finish();
        let (decoded, is_coded) = match self.decoder {
            Decoder::Identity => (Some(raw), false),
            // An empty body is no gzip, and yet it means nothing else.
            Decoder::Gzip(_) if self.bytes == 0 => (Some(raw), true),
            Decoder::Gzip(reader) if reader.is_done() => (Some(self.decoded.finish()), true),
            Decoder::Gzip(_) | Decoder::Unknown => (None, true),
        };
        let kept = self.kept.filter(|_| decoded.is_some()).map(|(bytes, _)| bytes);
        Digested { bytes: self.bytes, decoded_bytes: self.decoded_bytes, raw, decoded, is_coded, kept }
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

/// What two bodies are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    Same,
    /// Not the same.
    Different,
    /// They are coded differently, and not in a way that can be undone here.
    OtherCoding,
}

/// Holds one body against another; the first comes with its type.
pub fn compare(rules: &Rules, (one, content_type): (&Digested, Option<&[u8]>), other: &Digested) -> Sameness {
    let rule = rule_for(rules, content_type);
    if one.raw == other.raw || rule.is_some_and(|rule| rule.how == BodyHow::Ignore) {
        return Sameness::Same;
    }
    match (one.decoded, other.decoded) {
        (Some(a), Some(b)) if a == b => return Sameness::Same,
        (Some(_), Some(_)) => {}
        _ if one.is_coded != other.is_coded => return Sameness::OtherCoding,
        _ => return Sameness::Different,
    }
    let (Some(one), Some(other), Some(rule)) = (&one.kept, &other.kept, rule) else {
        return Sameness::Different;
    };
    let is_same = match &rule.how {
        BodyHow::Json(ignored) => json::are_same(one, other, ignored) == Some(true),
        BodyHow::Text(patterns) => patterns::strip_all(patterns, one) == patterns::strip_all(patterns, other),
        BodyHow::Bytes | BodyHow::Ignore => false,
    };
    if is_same { Sameness::Same } else { Sameness::Different }
}

/// True where a body is several parts of an object, with a boundary that each response chooses for itself.
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

    fn digested(rules: &Rules, fields: &str, body: &[u8]) -> Digested {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        let mut digester = Digester::new(&head, rules);
        body.chunks(3).for_each(|piece| digester.push(piece));
        digester.finish()
    }

    fn compared(rules: &str, media_type: &str, one: &str, other: &str) -> Sameness {
        let rules = read("rules.toml", rules).unwrap();
        let field = format!("Content-Type: {media_type}\r\n");
        let [one, other] = [one, other].map(|body| digested(&rules, &field, body.as_bytes()));
        compare(&rules, (&one, Some(media_type.as_bytes())), &other)
    }

    #[test]
    fn a_body_that_holds_far_more_than_its_size_is_compared_as_it_came() {
        let coded = |bytes: usize| {
            let mut body = Vec::new();
            GzipWriter::new().encode([vec![0; bytes].as_slice()], &mut body);
            let digested = digested(&Rules::usual(), "Content-Encoding: gzip\r\n", &body);
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
        assert_eq!(compared(rules, "application/json; charset=utf-8", one, other), Sameness::Same);
        assert_eq!(compared(rules, "application/json", one, "{\"a\":3}"), Sameness::Different);
        assert_eq!(compared(rules, "text/json", one, other), Sameness::Different);
        assert_eq!(compared("", "application/json", one, other), Sameness::Different);
    }

    #[test]
    fn html_is_compared_without_what_fits_a_pattern() {
        let rules = "[[body]]\ntype = \"text/*\"\ncompare = \"html\"\nignore = ['nonce=\"*\"', '<!--*-->']\n";
        let (one, other) = ("<p nonce=\"1\">x", "<p nonce=\"22\"><!-- made by b -->x");
        assert_eq!(compared(rules, "text/html", one, other), Sameness::Same);
        assert_eq!(compared(rules, "text/html", one, "<p nonce=\"1\">y"), Sameness::Different);
    }

    #[test]
    fn what_is_too_large_to_keep_is_compared_byte_for_byte() {
        let rules = "[[body]]\ntype = \"*\"\ncompare = \"json\"\nat-most = \"20B\"\n";
        assert_eq!(compared(rules, "a/b", "{\"a\":1}", "{ \"a\":1 }"), Sameness::Same);
        let long = format!("{{\"a\":{}1}}", " ".repeat(30));
        assert_eq!(compared(rules, "a/b", "{\"a\":1}", &long), Sameness::Different);
    }

    #[test]
    fn a_type_may_be_left_out_of_the_comparison() {
        let rules =
            "[[body]]\ntype = \"*\"\ncompare = \"ignore\"\n[[body]]\ntype = \"a/b\"\ncompare = \"bytes\"\n";
        assert_eq!(compared(rules, "x/y", "1", "2"), Sameness::Same);
        assert_eq!(compared(rules, "a/b", "1", "2"), Sameness::Different);
    }

    #[test]
    fn a_checksum_is_that_of_the_decoded_body() {
        let rules = Rules::usual();
        assert_eq!(digested(&rules, "", b"abc").checksum(), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(Digested::nothing().checksum(), digested(&rules, "", b"").checksum());
    }
}
