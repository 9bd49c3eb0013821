//! Content types and life cycles.

use std::collections::HashMap;
use std::rc::Rc;

use assay_workload::model::{
    ClientBehaviour, Content, ContentIndex, Distribution, Embedded, Expiry, ExpiryBase, LifeCycle,
    Popularity, Weighted,
};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::{Record, Value};

impl Builder<'_> {
    /// The index of a content type, which equal ones share.
    pub(super) fn content(&mut self, record: &Rc<Record>, span: Span) -> Option<ContentIndex> {
        let fingerprint = record.fingerprint();
        if let Some(index) = self.known_contents.get(&fingerprint) {
            return Some(*index);
        }
        let Ok(index) = ContentIndex::try_from(self.contents.len()) else {
            self.error(Code::TooMany, span, "too many content types", "at most 65536 fit into a workload");
            return None;
        };
        self.warn_unsupported_fields(record);
        let body = self.body(record, span);
        let size_bytes = self.body_size(record, &body.source, span);
        let mime = self.object(record, "mime");
        if let Some(mime) = mime {
            self.warn_unsupported_fields(mime);
        }
        let content = Content {
            kind: self.unique_label(record, span),
            mime_type: mime.and_then(|mime| self.text(mime, "type")),
            extensions: mime.map_or_else(Weighted::none, |mime| self.text_choices(mime, "extensions")),
            prefixes: mime.map_or_else(Weighted::none, |mime| self.text_choices(mime, "prefixes")),
            size_bytes,
            life_cycle: self.life_cycle(record, span),
            cachable: self.share(record, "cachable").unwrap_or(0.0),
            checksum: self.share(record, "checksum").unwrap_or(0.0),
            body,
            headers: self.header_rules(record, "mime_headers"),
            embedded: None,
            behaviour: self.behaviour(record, span),
        };
        self.contents.push(content);
        self.content_spans.push(span);
        self.known_contents.insert(fingerprint, index);
        self.pending_pages.push((index, record.clone()));
        Some(index)
    }

    /// A unique label for a content type; warns if its own is taken.
    fn unique_label(&mut self, record: &Record, span: Span) -> String {
        let kind = self.text(record, "kind").unwrap_or_else(|| "some-content".to_owned());
        let unique = self.content_labels.unique(&kind);
        if unique == kind {
            return kind;
        }
        let place = record.get("kind").map_or(span, |slot| slot.span);
        self.diagnostics.add(
            Diagnostic::warning(
                Code::Duplicate,
                place,
                format!("two different content types are called `{kind}`"),
            )
            .label(format!("this one is called `{unique}` in results"))
            .help("give each its own `kind`"),
        );
        unique
    }

    /// Builds the embedded content types of pages, and theirs in turn.
    pub(super) fn resolve_embedded(&mut self) {
        while !self.pending_pages.is_empty() {
            for (index, record) in std::mem::take(&mut self.pending_pages) {
                let embedded = self.embedded(&record);
                if let Some(content) = self.contents.get_mut(usize::from(index)) {
                    content.embedded = embedded;
                }
            }
        }
    }

    fn embedded(&mut self, record: &Record) -> Option<Embedded> {
        let contents = self.array(record, "may_contain").filter(|(array, _)| array.count() > 0);
        let count = record.get("embedded_obj_cnt");
        match (contents, count) {
            (Some(_), Some(_)) => {
                let count = self.distribution(record, "embedded_obj_cnt")?;
                let contents = self.content_choices(record, "may_contain");
                (!contents.is_empty()).then_some(Embedded { count, contents })
            }
            (Some((_, at)), None) => {
                self.error(
                    Code::Required,
                    at,
                    "a page must say how many objects it has",
                    "`embedded_obj_cnt` must be set too",
                );
                None
            }
            (None, Some(slot)) if !record.get("may_contain").is_some_and(|slot| slot.value.is_broken()) => {
                self.error(
                    Code::Required,
                    slot.span,
                    "a page must say what it has",
                    "`may_contain` must be set too",
                );
                None
            }
            _ => None,
        }
    }

    /// A selector of content types, with the weights of equal ones summed.
    pub(super) fn content_choices(&mut self, record: &Record, field: &str) -> Weighted<ContentIndex> {
        let mut sums: Vec<(ContentIndex, f64)> = Vec::new();
        let mut places: HashMap<ContentIndex, usize> = HashMap::new();
        for choice in self.choices(record, field) {
            let Value::Record(content) = &choice.value else { continue };
            let Some(index) = self.content(content, choice.span) else { continue };
            let place = *places.entry(index).or_insert(sums.len());
            match sums.get_mut(place) {
                Some((_, sum)) => *sum += choice.probability,
                None => sums.push((index, choice.probability)),
            }
        }
        Weighted::new(sums)
    }

    fn life_cycle(&mut self, content: &Record, span: Span) -> Option<LifeCycle> {
        let record = self.object(content, "obj_life_cycle")?;
        let span = content.get("obj_life_cycle").map_or(span, |slot| slot.span);
        self.warn_unsupported_fields(record);
        self.require(
            record,
            "length",
            span,
            "say how long an object stays as it is: `length = const(7day);`",
        );
        let length_s = self.distribution(record, "length")?;
        Some(LifeCycle {
            length_s,
            variance: self.share(record, "variance").unwrap_or(0.0),
            with_last_modified: self.share(record, "with_lmt").unwrap_or(0.0),
            expires: self.expires(record),
        })
    }

    fn expires(&mut self, record: &Record) -> Weighted<Option<Expiry>> {
        let mut all = Vec::new();
        for choice in self.choices(record, "expires") {
            let Value::Random(random) = &choice.value else { continue };
            let expiry = match random.moment {
                Some(base) => Some(Expiry { base, after_s: random.law.clone() }),
                None if random.law == Distribution::Constant(0.0) => None,
                None => {
                    self.diagnostics.add(
                        Diagnostic::warning(
                            Code::NoEffect,
                            choice.span,
                            "this expiry does not say what it is counted from",
                        )
                        .label("it is counted from the time of the response")
                        .help(format!("write `now + {random}`, or `lmt`, or `nmt`")),
                    );
                    Some(Expiry { base: ExpiryBase::Now, after_s: random.law.clone() })
                }
            };
            all.push((expiry, choice.probability));
        }
        Weighted::new(all)
    }

    fn behaviour(&mut self, content: &Record, span: Span) -> ClientBehaviour {
        let Some(record) = self.object(content, "client_behavior") else {
            return ClientBehaviour::default();
        };
        self.warn_unsupported_fields(record);
        ClientBehaviour {
            request_types: self.request_types(record),
            methods: self.methods(record),
            recurrence: self.share(record, "recurrence"),
            popularity: self.popularity(record, span),
            ranges: self.ranges(record),
        }
    }

    /// `pop_model` of a robot or a client behaviour.
    pub(super) fn popularity(&mut self, owner: &Record, span: Span) -> Option<Popularity> {
        let record = self.object(owner, "pop_model")?;
        let span = owner.get("pop_model").map_or(span, |slot| slot.span);
        self.warn_unsupported_fields(record);
        self.require(record, "pop_distr", span, "say which objects are popular: `pop_distr = popUnif();`");
        let Value::Popularity(law) = &record.get("pop_distr")?.value else { return None };
        Some(Popularity {
            law: law.clone(),
            hot_set_fraction: self.share(record, "hot_set_frac").unwrap_or(1.0),
            hot_set_probability: self.share(record, "hot_set_prob").unwrap_or(0.0),
            size_preference: self.share(record, "bhr_discrimination").unwrap_or(0.0),
        })
    }
}
