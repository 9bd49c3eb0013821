//! Header fields of responses that are not plain ones.

use assay_http::authentication::{Algorithm, DigestChallenge, write_basic_challenge};
use assay_http::cookie::SetCookie;
use assay_http::digest::write_content_md5;
use assay_http::field::write_decimal;
use assay_http::range::ContentRange;
use assay_measurement::counts::OriginCounts;
use assay_workload::model::{AuthDemand, AuthScheme, Coding};

use super::head::{DateWriters, ObjectHead};
use super::special::{DecisionContext, OriginDecision};
use crate::coded::on_the_wire;

/// A response whose fields are to be written.
#[derive(Debug, Clone, Copy)]
pub struct SpecialHead<'a> {
    pub head: ObjectHead<'a>,
    /// The request, and the origin that it is for.
    pub context: DecisionContext<'a>,
    pub decision: &'a OriginDecision,
    /// Bytes of the body, whether it is sent or not.
    pub body_bytes: u64,
    /// Digest of the body.
    pub digest: Option<[u8; 16]>,
}

impl SpecialHead<'_> {
    /// Appends the head; counts the cookies in it.
    pub fn write(&self, out: &mut Vec<u8>, dates: &mut DateWriters, counts: &mut OriginCounts) {
        self.head.start(out, dates);
        if self.decision.is_of_object() {
            self.head.freshness(out, dates);
        } else {
            out.extend_from_slice(b"Cache-Control: no-store\r\n");
        }
        let universe = &self.context.shared.universe;
        if universe.varies(self.context.object.id.content) {
            out.extend_from_slice(b"Vary: Accept-Encoding\r\n");
        }
        for (name, value) in universe.server_headers(self.context.object) {
            field(out, name, value.as_bytes());
        }
        match self.decision {
            OriginDecision::NotModified => {}
            OriginDecision::Whole(_) | OriginDecision::Parts(_) => self.write_content_fields(out, counts),
            _ => self.write_refusal_fields(out),
        }
        self.head.end(out);
    }

    /// Appends the fields that describe the body of an object.
    fn write_content_fields(&self, out: &mut Vec<u8>, counts: &mut OriginCounts) {
        let universe = &self.context.shared.universe;
        for (name, value) in universe.content_headers(self.context.object) {
            field(out, name, value.as_bytes());
        }
        match self.decision {
            OriginDecision::Parts(spans) if spans.len() > 1 => {
                out.extend_from_slice(b"Content-Type: ");
                self.context.multipart(&self.context.boundary()).content_type(out);
                out.extend_from_slice(b"\r\n");
            }
            _ => {
                if let Some(mime_type) = self.context.mime_type() {
                    field(out, "Content-Type", mime_type.as_bytes());
                }
            }
        }
        match self.decision {
            OriginDecision::Parts(spans) => {
                if let [span] = spans[..] {
                    let range = ContentRange::Part { span, total: Some(self.context.object.size_bytes) };
                    content_range(out, range);
                }
            }
            OriginDecision::Whole(coding) => {
                if *coding != Coding::Identity {
                    field(out, "Content-Encoding", on_the_wire(*coding).name().as_bytes());
                }
                for cookie in universe.cookies(self.context.object) {
                    out.extend_from_slice(b"Set-Cookie: ");
                    SetCookie::session(cookie.name.as_bytes(), cookie.value.as_bytes()).write(out);
                    out.extend_from_slice(b"\r\n");
                    counts.cookies_set += 1;
                }
            }
            _ => {}
        }
        if let Some(digest) = &self.digest {
            out.extend_from_slice(b"Content-MD5: ");
            write_content_md5(digest, out);
            out.extend_from_slice(b"\r\n");
        }
        content_length(out, self.body_bytes);
    }

    /// Appends the fields that say why there is no object, and where it is.
    fn write_refusal_fields(&self, out: &mut Vec<u8>) {
        match self.decision {
            OriginDecision::Challenge { is_stale } => {
                if let Some(demand) = self.context.demand() {
                    self.challenges(demand, *is_stale, out);
                }
            }
            OriginDecision::Redirect(older) => {
                let universe = &self.context.shared.universe;
                field(out, "Location", universe.path(&universe.object(*older)).as_bytes());
            }
            OriginDecision::Unsatisfied => {
                content_range(out, ContentRange::Unsatisfied { total: self.context.object.size_bytes });
            }
            _ => {}
        }
        if self.body_bytes > 0 {
            field(out, "Content-Type", b"text/plain");
        }
        content_length(out, self.body_bytes);
    }

    /// Appends one field for each authentication scheme, the strongest first.
    fn challenges(&self, demand: &AuthDemand, is_stale: bool, out: &mut Vec<u8>) {
        let realm = demand.realm.as_bytes();
        if demand.schemes.contains(&AuthScheme::Digest) {
            let nonce = self.context.shared.nonces.make(self.context.now_s);
            for algorithm in [Algorithm::Sha256, Algorithm::Md5] {
                let challenge = DigestChallenge {
                    realm: realm.into(),
                    nonce: nonce.as_slice().into(),
                    opaque: None,
                    algorithm,
                    qop_auth: true,
                    stale: is_stale,
                };
                out.extend_from_slice(b"WWW-Authenticate: ");
                challenge.write(out);
                out.extend_from_slice(b"\r\n");
            }
        }
        if demand.schemes.contains(&AuthScheme::Basic) {
            out.extend_from_slice(b"WWW-Authenticate: ");
            write_basic_challenge(realm, out);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn content_range(out: &mut Vec<u8>, range: ContentRange) {
    out.extend_from_slice(b"Content-Range: ");
    range.write(out);
    out.extend_from_slice(b"\r\n");
}

fn content_length(out: &mut Vec<u8>, bytes: u64) {
    out.extend_from_slice(b"Content-Length: ");
    write_decimal(out, bytes);
    out.extend_from_slice(b"\r\n");
}

fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
