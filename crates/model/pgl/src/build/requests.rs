//! Requests of robots: methods, types, bodies, ranges, `Expect` and `Accept-Encoding`.

use assay_workload::model::{
    Coding, ContentIndex, Expectation, Method, RangeSpec, RequestType, RobotGroup, Weighted,
};

use super::{Builder, active_slot};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::Record;

/// A method of requests with a body.
#[derive(Clone, Copy, PartialEq)]
enum BodyMethod {
    Post,
    Put,
}

/// Sources of a kind of request.
#[derive(Default)]
struct Occurrence {
    /// The robots themselves send such requests.
    own: bool,
    /// Label of a content type that is requested so.
    content: Option<String>,
}

impl Occurrence {
    fn is_possible(&self) -> bool {
        self.own || self.content.is_some()
    }
}

impl Builder<'_> {
    pub(super) fn requests(
        &mut self,
        record: &Record,
        reachable: &[ContentIndex],
        span: Span,
        group: RobotGroup,
    ) -> RobotGroup {
        let methods = self.methods(record).unwrap_or_else(|| Weighted::one(Method::Get));
        let request_types = self.request_types(record).unwrap_or_else(|| Weighted::one(RequestType::Basic));
        let has = |weighted: &Weighted<Method>, wanted| {
            weighted.items().iter().any(|(method, share)| *method == wanted && *share > 0.0)
        };
        let has_type = |weighted: &Weighted<RequestType>, wanted| {
            weighted.items().iter().any(|(request_type, share)| *request_type == wanted && *share > 0.0)
        };
        let posts = Occurrence {
            own: has(&methods, Method::Post),
            content: self
                .content_where(reachable, |b| b.methods.as_ref().is_some_and(|m| has(m, Method::Post))),
        };
        let puts = Occurrence {
            own: has(&methods, Method::Put) || has_type(&request_types, RequestType::Upload),
            content: self.content_where(reachable, |b| {
                b.methods.as_ref().is_some_and(|m| has(m, Method::Put))
                    || b.request_types.as_ref().is_some_and(|t| has_type(t, RequestType::Upload))
            }),
        };
        let parts = Occurrence {
            own: has_type(&request_types, RequestType::Range),
            content: self.content_where(reachable, |b| {
                b.ranges.is_none()
                    && b.request_types.as_ref().is_some_and(|t| has_type(t, RequestType::Range))
            }),
        };
        let post_contents = self.body_contents(record, BodyMethod::Post, &posts, span);
        let put_contents = self.body_contents(record, BodyMethod::Put, &puts, span);
        let ranges = self.robot_ranges(record, &parts, span);
        RobotGroup {
            methods,
            request_types,
            post_contents,
            put_contents,
            ranges,
            body_recurrence: self.share(record, "req_body_recurrence").unwrap_or(0.0),
            expectation: self.expectation(record, posts.is_possible() || puts.is_possible()),
            accepts: self.accepted_codings(record),
            ..group
        }
    }

    /// Label of the first content type whose client behaviour passes a test.
    fn content_where(
        &self,
        reachable: &[ContentIndex],
        test: impl Fn(&assay_workload::model::ClientBehaviour) -> bool,
    ) -> Option<String> {
        let mut contents = reachable.iter().filter_map(|content| self.contents.get(usize::from(*content)));
        contents.find(|content| test(&content.behaviour)).map(|content| content.kind.clone())
    }

    /// The bodies of POST or PUT requests: required if there can be such requests, without effect otherwise.
    fn body_contents(
        &mut self,
        record: &Record,
        body: BodyMethod,
        occurrence: &Occurrence,
        span: Span,
    ) -> Weighted<ContentIndex> {
        let (field, method) = match body {
            BodyMethod::Post => ("post_contents", "POST"),
            BodyMethod::Put => {
                self.check_exclusive(
                    record,
                    ["upload_contents", "put_contents"],
                    "`put_contents` is the old name of `upload_contents`",
                );
                let old = record.get("put_contents").is_some();
                (if old { "put_contents" } else { "upload_contents" }, "PUT")
            }
        };
        let contents = self.content_choices(record, field);
        self.resolve_embedded();
        let Some(slot) = record.get(field) else {
            if occurrence.is_possible() {
                self.report_missing_bodies(record, field, method, occurrence, span);
            }
            return contents;
        };
        if !occurrence.is_possible() && !contents.is_empty() {
            self.warn(
                Code::NoEffect,
                slot.span,
                format!("`{field}` has no effect"),
                format!("no request of these robots is a {method}"),
            );
        }
        contents
    }

    fn report_missing_bodies(
        &mut self,
        record: &Record,
        field: &str,
        method: &str,
        occurrence: &Occurrence,
        span: Span,
    ) {
        let at = ["req_methods", "req_types"].into_iter().find_map(|field| record.get(field));
        let at = at.map_or(span, |slot| slot.span);
        let why = match &occurrence.content {
            Some(kind) if !occurrence.own => format!("the content type `{kind}` is requested with {method}"),
            _ => format!("these robots send {method} requests"),
        };
        self.diagnostics.add(
            Diagnostic::error(Code::Required, at, why)
                .label(format!("`{field}` must say what they send"))
                .help(format!(
                    "write `{field} = [ cntSimpleRequest ];` (that type is in the bundled contents.pg)"
                )),
        );
    }

    /// `ranges`: required if there can be "Range" requests, without effect otherwise.
    fn robot_ranges(&mut self, record: &Record, occurrence: &Occurrence, span: Span) -> Weighted<RangeSpec> {
        let ranges = self.ranges(record);
        let at = self.field_span(record, "ranges");
        match (&ranges, occurrence.is_possible()) {
            (None, true) => {
                let at = record.get("req_types").map_or(span, |slot| slot.span);
                self.diagnostics.add(
                    Diagnostic::error(Code::Required, at, "these robots request parts of objects")
                        .label("`ranges` must say which parts")
                        .help(
                            "declare `SingleRange R1 = { first_byte_pos_absolute = 0; last_byte_pos_absolute = 1KB; };` and \
                             write `ranges = [ R1 ];`",
                        ),
                );
            }
            (Some(_), false) => {
                self.warn(
                    Code::NoEffect,
                    at,
                    "`ranges` has no effect",
                    "no request of these robots is a \"Range\"",
                );
            }
            _ => {}
        }
        ranges.unwrap_or_default()
    }

    /// `req_body_pause_prob` and `req_body_pause_start`.
    fn expectation(&mut self, record: &Record, bodies: bool) -> Expectation {
        let fields = ["req_body_pause_prob", "req_body_pause_start"];
        self.check_exclusive(
            record,
            fields,
            "robots send `Expect` before some bodies by chance, or before large ones",
        );
        if let Some(slot) = fields.into_iter().find_map(|field| active_slot(record, field))
            && !bodies
        {
            self.warn(
                Code::NoEffect,
                slot.span,
                "asking before bodies are sent has no effect",
                "no request of these robots has a body",
            );
        }
        if let Some(bytes) = self.quantity(record, "req_body_pause_start", true) {
            return Expectation::From(bytes.ceil() as u64);
        }
        match self.share(record, "req_body_pause_prob") {
            Some(share) if share > 0.0 => Expectation::Sometimes(share),
            _ => Expectation::Never,
        }
    }

    fn accepted_codings(&mut self, record: &Record) -> Vec<Coding> {
        let mut accepted = Vec::new();
        for choice in self.used_items(record, "accept_content_encodings") {
            let coding = match &*choice.value.to_string() {
                "gzip" | "x-gzip" => Coding::Gzip,
                "identity" => Coding::Identity,
                other => {
                    self.warn_unsupported(
                        &format!("Robot.accept_content_encodings: {other}"),
                        choice.span,
                        "robots accept \"gzip\" and \"identity\" only",
                    );
                    continue;
                }
            };
            if !accepted.contains(&coding) {
                accepted.push(coding);
            }
        }
        accepted
    }
}
