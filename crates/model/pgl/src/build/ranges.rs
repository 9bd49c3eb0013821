//! Range requests.

use assay_workload::model::{Distribution, Extent, RandomExtent, RangeSpec, Weighted};

use super::Builder;
use crate::diagnostic::Code;
use crate::schema::RecordKind;
use crate::source::Span;
use crate::value::{Record, Value};

impl Builder<'_> {
    /// `ranges`; none if it is not set.
    pub(super) fn ranges(&mut self, owner: &Record) -> Option<Weighted<RangeSpec>> {
        owner.get("ranges")?;
        let mut all = Vec::new();
        for choice in self.choices(owner, "ranges") {
            let Value::Record(range) = &choice.value else { continue };
            let spec = match range.kind {
                RecordKind::SingleRange => self.single_range(range, choice.span),
                RecordKind::MultiRange => self.multiple_range(range, choice.span),
                _ => {
                    self.error(
                        Code::TypeMismatch,
                        choice.span,
                        "this range does not say of what kind it is",
                        "expected a `SingleRange` or a `MultiRange`",
                    );
                    None
                }
            };
            all.extend(spec.map(|spec| (spec, choice.probability)));
        }
        Some(Weighted::new(all))
    }

    fn single_range(&mut self, range: &Record, span: Span) -> Option<RangeSpec> {
        self.warn_unsupported_fields(range);
        let first = self.extent(range, "first_byte_pos");
        let last = self.extent(range, "last_byte_pos");
        let suffix = self.extent(range, "suffix_length");
        match (first, last, suffix) {
            (Some(first), last, None) => {
                let backwards = match (first, last) {
                    (Extent::Bytes(a), Some(Extent::Bytes(b))) => a > b,
                    (Extent::Share(a), Some(Extent::Share(b))) => a > b,
                    _ => false,
                };
                if backwards {
                    self.error(
                        Code::OutOfRange,
                        span,
                        "this range ends before it begins",
                        "expected the first byte before the last",
                    );
                }
                Some(RangeSpec::Span { first, last })
            }
            (None, None, Some(suffix)) => Some(RangeSpec::Suffix(suffix)),
            (None, None, None) => {
                self.empty_range(range, span, "`first_byte_pos_...` or `suffix_length_...` must be set");
                None
            }
            (None, Some(_), _) => {
                self.empty_range(range, span, "a last byte needs a first one: `first_byte_pos_...`");
                None
            }
            (Some(_), _, Some(_)) => {
                self.error(
                    Code::Conflict,
                    span,
                    "a range has a first byte or a suffix",
                    "expected only one of the two",
                );
                None
            }
        }
    }

    /// Reports a range without a position, unless an error in its fields is the cause.
    fn empty_range(&mut self, range: &Record, span: Span, label: &str) {
        let reported =
            range.set_fields().any(|(_, slot)| slot.value.is_broken()) || self.diagnostics.has_errors();
        if !reported {
            self.error(Code::Required, span, "this range does not say what it requests", label);
        }
    }

    /// `..._absolute` in bytes, or `..._relative` as a share of the object.
    fn extent(&mut self, range: &Record, name: &str) -> Option<Extent> {
        let (absolute, relative) = (format!("{name}_absolute"), format!("{name}_relative"));
        self.check_exclusive(range, [&absolute, &relative], "a position is absolute or relative");
        if range.get(&absolute).is_some() {
            let bytes = self.quantity(range, &absolute, true)?;
            return Some(Extent::Bytes(bytes.round() as u64));
        }
        self.share(range, &relative).map(Extent::Share)
    }

    fn multiple_range(&mut self, range: &Record, span: Span) -> Option<RangeSpec> {
        self.warn_unsupported_fields(range);
        let counted =
            self.require(range, "range_count", span, "say how many parts: `range_count = const(3);`");
        let count = self.distribution(range, "range_count");
        let first = self.random_extent(range, "first_range_start");
        let length = self.random_extent(range, "range_length");
        if length.is_none() {
            self.empty_range(range, span, "`range_length_absolute` or `range_length_relative` must be set");
        }
        let count = count.filter(|_| counted)?;
        if matches!(count, Distribution::Constant(n) if n < 1.0) {
            let at = self.field_span(range, "range_count");
            self.error(Code::OutOfRange, at, "there are no parts", "expected 1 or more");
        }
        Some(RangeSpec::Multiple { first, length: length?, count })
    }

    fn random_extent(&mut self, range: &Record, name: &str) -> Option<RandomExtent> {
        let (absolute, relative) = (format!("{name}_absolute"), format!("{name}_relative"));
        self.check_exclusive(range, [&absolute, &relative], "a position is absolute or relative");
        if range.get(&absolute).is_some() {
            return self.distribution(range, &absolute).map(RandomExtent::Bytes);
        }
        self.share_distribution(range, &relative).map(RandomExtent::Share)
    }
}
