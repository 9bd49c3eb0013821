//! Metrics in Prometheus' protocol-buffer format: length-delimited `io.prometheus.client.MetricFamily`, with native histograms.
//!
//! The few messages are written by hand: a field is its number and wire type, then its value. Names of fields stand beside
//! their numbers, as in `metrics.proto`.

use assay_base::metrics::{Histogram as _, Kind};

use crate::serve::exponential::{SCALE, ZERO_THRESHOLD_S, spans};
use crate::serve::times::{Family, Sample, Times, Value};

/// `Content-Type` of [`delimited`].
pub const TYPE: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// All families, each after its length.
pub fn delimited(families: &[Family]) -> Vec<u8> {
    let mut out = Vec::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        let message = metric_family(family);
        varint(&mut out, message.len() as u64);
        out.extend_from_slice(&message);
    }
    out
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// A number in groups of seven bits, least first.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn key(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

fn unsigned(out: &mut Vec<u8>, field: u64, value: u64) {
    key(out, field, VARINT);
    varint(out, value);
}

fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    key(out, field, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(out, field, BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Signed numbers with the sign in the lowest bit, so that small ones are short.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn metric_family(family: &Family) -> Vec<u8> {
    let kind = match family.kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Histogram => 4,
    };
    let mut out = Vec::new();
    bytes(&mut out, 1, family.name().as_bytes()); // name
    bytes(&mut out, 2, family.help.as_bytes()); // help
    unsigned(&mut out, 3, kind); // type
    for sample in &family.samples {
        bytes(&mut out, 4, &metric(family.kind, sample)); // metric
    }
    if let Some(unit) = family.unit.suffix() {
        bytes(&mut out, 5, unit.as_bytes()); // unit
    }
    out
}

fn metric(kind: Kind, sample: &Sample) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in &sample.labels {
        let mut pair = Vec::new();
        bytes(&mut pair, 1, name.as_bytes()); // name
        bytes(&mut pair, 2, value.as_bytes()); // value
        bytes(&mut out, 1, &pair); // label
    }
    let value = match &sample.value {
        Value::Number(value) => *value,
        Value::Count(count) => *count as f64,
        Value::Times(times) => {
            bytes(&mut out, 7, &histogram(times)); // histogram
            return out;
        }
    };
    let mut message = Vec::new();
    double(&mut message, 1, value); // value
    let field = if kind == Kind::Counter { 3 } else { 2 };
    bytes(&mut out, field, &message); // counter or gauge
    out
}

fn histogram(times: &Times) -> Vec<u8> {
    let mut out = Vec::new();
    unsigned(&mut out, 1, times.count); // sample_count
    double(&mut out, 2, times.sum_s()); // sample_sum
    for (bound, count) in times.cumulative().chain([(f64::INFINITY, times.count)]) {
        let mut bucket = Vec::new();
        unsigned(&mut bucket, 1, count); // cumulative_count
        double(&mut bucket, 2, bound); // upper_bound
        bytes(&mut out, 3, &bucket); // bucket
    }
    unsigned(&mut out, 5, zigzag(i64::from(SCALE))); // schema
    double(&mut out, 6, ZERO_THRESHOLD_S); // zero_threshold
    unsigned(&mut out, 7, times.zeros); // zero_count
    let (mut end, mut before, mut deltas) = (0, 0, Vec::new());
    let spans = spans(times.exponential.iter().map(|(index, count)| (*index, *count)));
    for span in &spans {
        let length = span.counts.len();
        positive_span(&mut out, span.first - end, length);
        end = span.first + length as i32;
        for count in &span.counts {
            varint(&mut deltas, zigzag(*count as i64 - before));
            before = *count as i64;
        }
    }
    if spans.is_empty() {
        // A span of nothing says that this is a native histogram, in which there is nothing yet.
        positive_span(&mut out, 0, 0);
    } else {
        bytes(&mut out, 13, &deltas); // positive_delta, packed
    }
    out
}

fn positive_span(out: &mut Vec<u8>, offset: i32, length: usize) {
    let mut message = Vec::new();
    unsigned(&mut message, 1, zigzag(i64::from(offset))); // offset
    unsigned(&mut message, 2, length as u64); // length
    bytes(out, 12, &message); // positive_span
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use assay_base::metrics::Unit;

    /// A message taken apart again: (field, value), where nothing of the writer is used.
    #[derive(Debug, Clone, PartialEq)]
    enum Field {
        Number(u64),
        Double(f64),
        Bytes(Vec<u8>),
    }

    fn number(input: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = input.split_first().unwrap();
            *input = rest;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }

    fn decoded(mut input: &[u8]) -> Vec<(u64, Field)> {
        let mut fields = Vec::new();
        while !input.is_empty() {
            let key = number(&mut input);
            let value = match key & 7 {
                0 => Field::Number(number(&mut input)),
                1 => {
                    let (bytes, rest) = input.split_at(8);
                    input = rest;
                    Field::Double(f64::from_le_bytes(bytes.try_into().unwrap()))
                }
                2 => {
                    let length = number(&mut input) as usize;
                    let (bytes, rest) = input.split_at(length);
                    input = rest;
                    Field::Bytes(bytes.to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, value));
        }
        fields
    }

    fn inner(fields: &[(u64, Field)], wanted: u64) -> Vec<Vec<u8>> {
        let of = |(field, value): &(u64, Field)| match value {
            Field::Bytes(bytes) if *field == wanted => Some(bytes.clone()),
            _ => None,
        };
        fields.iter().filter_map(of).collect()
    }

    fn unsigned_of(fields: &[(u64, Field)], wanted: u64) -> u64 {
        match fields.iter().find(|(field, _)| *field == wanted) {
            Some((_, Field::Number(value))) => *value,
            other => panic!("field {wanted}: {other:?}"),
        }
    }

    fn signed(value: u64) -> i64 {
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    /// The buckets of a native histogram, and how many values it says it has.
    fn native(message: &[u8]) -> (BTreeMap<i32, u64>, u64, u64) {
        let fields = decoded(message);
        assert_eq!(signed(unsigned_of(&fields, 5)), i64::from(SCALE));
        let mut deltas = Vec::new();
        for packed in inner(&fields, 13) {
            let mut rest = packed.as_slice();
            while !rest.is_empty() {
                deltas.push(signed(number(&mut rest)));
            }
        }
        let (mut at, mut count, mut deltas, mut buckets) = (0, 0, deltas.into_iter(), BTreeMap::new());
        for span in inner(&fields, 12) {
            let span = decoded(&span);
            at += signed(unsigned_of(&span, 1)) as i32;
            for _ in 0..unsigned_of(&span, 2) {
                count += deltas.next().unwrap();
                if count > 0 {
                    buckets.insert(at, count as u64);
                }
                at += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        (buckets, unsigned_of(&fields, 1), unsigned_of(&fields, 7))
    }

    fn family(kind: Kind, value: Value) -> Family {
        let samples = vec![Sample { labels: vec![("class", "hit".into())], value }];
        Family { kind, stem: "response_time", unit: Unit::Seconds, help: "Time.".into(), samples }
    }

    #[test]
    fn a_counter_and_a_gauge_are_read_back() {
        for (kind, name, message, number) in [
            (Kind::Counter, "assay_response_time_seconds_total", 3, 0),
            (Kind::Gauge, "assay_response_time_seconds", 2, 1),
        ] {
            let stream = delimited(&[family(kind, Value::Number(-2.5)), family(kind, Value::Number(1.0))]);
            let mut rest = stream.as_slice();
            let length = super::tests::number(&mut rest) as usize;
            let fields = decoded(&rest[..length]);
            assert_eq!(inner(&fields, 1), [name.as_bytes()]);
            assert_eq!(unsigned_of(&fields, 3), number);
            assert_eq!(inner(&fields, 5), [b"seconds"]);
            let metric = decoded(&inner(&fields, 4)[0]);
            let label = decoded(&inner(&metric, 1)[0]);
            assert_eq!(
                (inner(&label, 1), inner(&label, 2)),
                (vec![b"class".to_vec()], vec![b"hit".to_vec()])
            );
            assert_eq!(decoded(&inner(&metric, message)[0]), [(1, Field::Double(-2.5))]);
            assert!(rest.len() > length, "the second family follows");
        }
    }

    #[test]
    fn an_empty_histogram_says_that_it_is_native() {
        let message = histogram(&Times::default());
        assert_eq!(native(&message), (BTreeMap::new(), 0, 0));
        assert_eq!(inner(&decoded(&message), 12).len(), 1);
    }

    proptest! {
        #[test]
        fn every_native_bucket_is_read_back(
            exponential in prop::collection::btree_map(-400i32..400, 1u64..1 << 40, 0..50),
            zeros in 0u64..99,
        ) {
            let count = zeros + exponential.values().sum::<u64>();
            let times = Times { count, zeros, exponential, sum_us: 7, ..Times::default() };
            prop_assert_eq!(native(&histogram(&times)), (times.exponential, count, zeros));
        }

        #[test]
        fn every_number_is_read_back(value in any::<u64>(), with_sign in any::<i64>()) {
            let mut out = Vec::new();
            varint(&mut out, value);
            prop_assert_eq!(number(&mut out.as_slice()), value);
            prop_assert_eq!(signed(zigzag(with_sign)), with_sign);
        }
    }
}
