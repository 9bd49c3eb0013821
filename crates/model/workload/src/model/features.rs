//! What a workload can request beyond plain objects and plain requests: bodies from files, encodings, ranges,
//! request bodies, cookies, authentication, sessions, aborts, origins that misbehave on purpose, load that
//! adapts.
//!
//! Plain data; how each of them acts is said where it is acted on. Everything has a default that changes nothing.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Distribution, Goal, OriginIndex, Weighted};
use assay_base::random::{finalize, fold};

/// Index into [`super::Workload::files`].
pub type FileSetIndex = u16;

/// Composition of the bodies of a content type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BodySpec {
    pub source: BodySource,
    /// Share of objects with a body of their own; the rest share one. None: all have their own.
    pub unique: Option<f64>,
    /// Content codings that the origin can send, in its order of preference; empty: identity only. More than one
    /// adds `Vary: Accept-Encoding`.
    pub codings: Vec<Coding>,
    /// Lines put into bodies.
    pub injection: Option<Injection>,
}

/// Source of the bytes of bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodySource {
    /// Any byte (PGL `random_data`).
    #[default]
    Data,
    /// Bytes 33 to 126 but for `<` and `"` (PGL `random_text`). Bodies of pages are made of it, whatever is said.
    Text,
    /// Words as of prose, which a coding makes about three times smaller (PGL `words`; not in Web Polygraph).
    Words,
    /// Whole files of a set, chosen by object; size and name extension are the file's (PGL `document_root`).
    Files(FileSetIndex),
    /// The entries of a set one after another, from a place that the object decides (PGL `content_db`).
    Database(FileSetIndex),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coding {
    Identity,
    /// RFC 1952.
    Gzip,
}

/// Files whose bytes are bodies. Roles read them when they start; sizes and digests must still be the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FileSet {
    /// Directory, or the one file itself.
    pub root: PathBuf,
    /// Files below it, in order of their names.
    pub files: Vec<FileEntry>,
}

/// A file of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative to the root; empty when the root is the file.
    pub path: PathBuf,
    /// Length in bytes, positive.
    pub bytes: u64,
    /// 64-bit digest of its bytes, so that a file that changed is found out.
    pub digest: u64,
}

impl FileEntry {
    /// The digest of a file's bytes: its length, then its bytes as little-endian words (the last filled with
    /// zeros), folded one after another.
    pub fn digest_of(bytes: &[u8]) -> u64 {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let digest =
            words.iter().fold(finalize(bytes.len() as u64), |d, word| fold(d, u64::from_le_bytes(*word)));
        if rest.is_empty() { digest } else { fold(digest, u64::from_le_bytes(last)) }
    }
}

/// Lines put into bodies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Injection {
    /// A set with one file; each of its lines can be put in. None: the request URI is put at the end.
    pub lines: Option<FileSetIndex>,
    /// Bytes from one to the next.
    pub gap_bytes: Distribution,
    /// Share of objects that get any.
    pub share: f64,
}

/// A header field that is added to messages, with a probability of its own for each message (requests) or object
/// (responses). Fields of one rule go together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HeaderRule {
    /// Name and value of each.
    pub fields: Vec<(String, String)>,
    pub probability: f64,
}

/// Part of an object that a `Range` request asks for. Fractions are of the object's size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RangeSpec {
    /// `first-last`, or `first-` without a last.
    Span {
        /// First byte.
        first: Extent,
        /// Last byte, included; none: open-ended.
        last: Option<Extent>,
    },
    /// `-length`: the end.
    Suffix(Extent),
    /// Several parts; the gaps between them are exponential with the mean of their lengths.
    Multiple {
        /// Start of the first part; none: anywhere.
        first: Option<RandomExtent>,
        length: RandomExtent,
        count: Distribution,
    },
}

/// A position or a length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Bytes.
    Bytes(u64),
    /// Share of the object.
    Share(f64),
}

/// A random position or length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RandomExtent {
    /// Bytes.
    Bytes(Distribution),
    /// Share of the object.
    Share(Distribution),
}

/// Condition under which a robot waits for 100 before it sends a body (`Expect: 100-continue`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// Never.
    #[default]
    Never,
    Sometimes(f64),
    /// For bodies of at least so many bytes.
    From(u64),
}

/// Cookies that a kind of server sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CookieSetting {
    /// Share of the servers that set any; sticky.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub senders: f64,
    /// Share of objects whose 200 responses set any.
    pub share: f64,
    pub count: Distribution,
    /// Length of each value.
    pub value_bytes: Distribution,
}

fn all() -> f64 {
    1.0
}

fn is_all(share: &f64) -> bool {
    *share == all()
}

/// Cookies of a group of robots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CookieKeeping {
    /// Share of robots that send any; sticky.
    pub share: f64,
    /// Most cookies kept for each origin, the newest first; drawn once per robot.
    pub limit: Distribution,
}

/// An authentication scheme of RFC 7617 or RFC 7616.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthScheme {
    /// User and password with every request.
    Basic,
    /// A digest with a nonce of the server's (SHA-256, or MD5 when that is all that is offered).
    Digest,
}

/// A kind of server that demands authentication (PGL `auth_schemes`, `auth_realm`; not in Web Polygraph).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuthDemand {
    /// Schemes it offers, all at once.
    pub schemes: Vec<AuthScheme>,
    pub realm: String,
    /// Share of objects that are protected.
    pub share: f64,
}

/// Users of a group of robots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credentials {
    /// `user:password` each; robots take them in turn. Empty: anonymous.
    pub users: Vec<UserRun>,
    /// Share of authentications made with a wrong password.
    pub wrong_share: f64,
}

/// One user, or a run of made-up ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRun {
    One {
        user: String,
        password: String,
    },
    /// `count` generated ones (PGL `credentials(n, realm)`), never listed: see [`crate::credentials`].
    Made {
        count: u32,
        realm: String,
    },
}

/// Robots that come and go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// A busy period ends with the first of these (duration or transactions).
    pub busy: Goal,
    /// Length of the idle period that follows, in seconds.
    pub idle_s: Distribution,
}

/// Deliberate faults of an origin (PGL fields of `Server` that Web Polygraph does not have). Faults are hashed from the identity of a
/// request, so robots know them as well; a second attempt at the same request within ten seconds gets a correct response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Faults {
    /// Share of requests that get an error status.
    pub error_share: f64,
    /// Error statuses; empty: 500.
    pub statuses: Weighted<u16>,
    /// Share of requests whose connection is reset after the request was read.
    pub reset_share: f64,
    /// Share of requests whose first byte is late.
    pub slow_start_share: f64,
    /// Delay of a late first byte, in seconds.
    pub slow_start_s: Distribution,
    /// Share of responses whose body is sent slowly.
    pub slow_body_share: f64,
    /// Bytes per second of a slow body.
    pub slow_body_bytes_per_s: f64,
    /// Think time added for every other request under way at the origin, in seconds.
    pub delay_per_active_s: f64,
    /// Seconds that a request is given: one that would be thought about for longer is met with a reset then, if no other fault
    /// is meant for it. None: as long as it takes.
    pub lifetime_s: Option<Distribution>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            error_share: 0.0,
            statuses: Weighted::none(),
            reset_share: 0.0,
            slow_start_share: 0.0,
            slow_start_s: Distribution::Constant(0.0),
            slow_body_share: 0.0,
            slow_body_bytes_per_s: 0.0,
            delay_per_active_s: 0.0,
            lifetime_s: None,
        }
    }
}

/// Changes the load so that response times stay within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Thermostat {
    /// Length of a sample.
    pub sample: Duration,
    /// Relative change of the load after a sample.
    pub step: f64,
    /// Below this mean response time the load rises.
    pub low: Option<Duration>,
    /// Above this one it falls.
    pub high: Option<Duration>,
}

/// A request for a URL of a trace (PGL `foreign_trace`): its host is an origin of this workload, which
/// serves any path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignUrl {
    /// Origin that stands for its host.
    pub origin: OriginIndex,
    /// Path and query. [`ForeignUrl::NUMBER`] in it stands for the object's number: each new visit requests another URL.
    pub path: String,
}

impl ForeignUrl {
    /// Replaced by the number of the object, in at least eight hexadecimal digits.
    pub const NUMBER: &str = "${url_number}";

    /// True if each new visit requests another URL.
    pub fn is_numbered(&self) -> bool {
        self.path.contains(Self::NUMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::FileEntry;

    #[test]
    fn a_digest_tells_lengths_and_last_bytes_apart() {
        let texts: [&[u8]; 6] = [b"", b"\0", b"12345678", b"12345678\0", b"123456789", b"123456780"];
        let mut digests = texts.map(FileEntry::digest_of).to_vec();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), texts.len());
        assert_eq!(FileEntry::digest_of(b"abc"), FileEntry::digest_of(b"abc"));
    }
}
