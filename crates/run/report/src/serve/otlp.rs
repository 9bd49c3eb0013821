//! Metrics as OpenTelemetry's `ExportMetricsServiceRequest`, in the JSON encoding of OTLP.
//!
//! As that encoding requires: names in lowerCamelCase, 64-bit integers as texts, enumerations as numbers. Sums and histograms are
//! cumulative since Assay started; histograms are exponential, with the buckets of [`crate::serve::exponential`].

use assay_base::metrics::{Histogram as _, Kind};
use serde_json::{Value as Json, json};

use crate::serve::exponential::{SCALE, ZERO_THRESHOLD_S};
use crate::serve::times::{Family, Sample, TimeBuckets, Value};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// Time range of the counts, Unix time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub start_unix_ns: u64,
    pub end_unix_ns: u64,
}

/// The document that is sent to `/v1/metrics`.
pub fn document(
    families: &[Family],
    resource: &[(String, String)],
    version: &str,
    stretch: TimeRange,
) -> Json {
    let metrics: Vec<Json> = families
        .iter()
        .filter(|family| !family.samples.is_empty())
        .map(|family| metric(family, stretch))
        .collect();
    let attributes: Vec<Json> = resource.iter().map(|(name, value)| attribute(name, value)).collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes},
        "scopeMetrics": [{"scope": {"name": "assay", "version": version}, "metrics": metrics}],
    }]})
}

fn attribute(name: &str, value: &str) -> Json {
    json!({"key": name, "value": {"stringValue": value}})
}

fn metric(family: &Family, stretch: TimeRange) -> Json {
    let points: Vec<Json> = family.samples.iter().map(|sample| point(family.kind, sample, stretch)).collect();
    let (field, data) = match family.kind {
        Kind::Counter => {
            ("sum", json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true}))
        }
        Kind::Gauge => ("gauge", json!({"dataPoints": points})),
        Kind::Histogram => {
            ("exponentialHistogram", json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE}))
        }
    };
    json!({
        "name": format!("assay.{}", family.stem),
        "description": family.help,
        "unit": family.unit.ucum(),
        field: data,
    })
}

fn point(kind: Kind, sample: &Sample, stretch: TimeRange) -> Json {
    let attributes: Vec<Json> = sample.labels.iter().map(|(name, value)| attribute(name, value)).collect();
    let mut point = match &sample.value {
        Value::Number(value) => json!({"asDouble": value}),
        Value::Count(count) => json!({"asDouble": *count as f64}),
        Value::Times(times) => exponential(times),
    };
    point["attributes"] = json!(attributes);
    point["timeUnixNano"] = json!(stretch.end_unix_ns.to_string());
    if kind != Kind::Gauge {
        point["startTimeUnixNano"] = json!(stretch.start_unix_ns.to_string());
    }
    point
}

fn exponential(times: &TimeBuckets) -> Json {
    let first = times.exponential.keys().next().copied().unwrap_or(1);
    let last = times.exponential.keys().next_back().copied().unwrap_or(first - 1);
    let count = |index: i32| times.exponential.get(&index).copied().unwrap_or(0).to_string();
    let counts: Vec<String> = (first..=last).map(count).collect();
    let mut point = json!({
        "count": times.count.to_string(),
        "sum": times.sum_s(),
        "scale": SCALE,
        "zeroCount": times.zeros.to_string(),
        "zeroThreshold": ZERO_THRESHOLD_S,
        // OpenTelemetry's index names the lower bound of a bucket.
        "positive": {"offset": first - 1, "bucketCounts": counts},
        "negative": {"offset": 0, "bucketCounts": []},
    });
    if times.count > 0 {
        point["max"] = json!(times.max_us as f64 / 1e6);
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_base::metrics::Unit;

    const STRETCH: TimeRange =
        TimeRange { start_unix_ns: 1_700_000_000_000_000_000, end_unix_ns: 1_700_000_005_000_000_000 };

    fn family(kind: Kind, value: Value) -> Family {
        let samples = vec![Sample { labels: vec![("class", "hit".into())], value }];
        Family { kind, stem: "response_time", unit: Unit::Seconds, help: "Time.".into(), samples }
    }

    fn metric_of(family: Family) -> Json {
        let resource = [("service.name".to_owned(), "assay".to_owned())];
        let document = document(&[family], &resource, "1.2.3", STRETCH);
        let resource = &document["resourceMetrics"][0];
        assert_eq!(
            resource["resource"]["attributes"][0],
            json!({"key": "service.name", "value": {"stringValue": "assay"}})
        );
        assert_eq!(resource["scopeMetrics"][0]["scope"], json!({"name": "assay", "version": "1.2.3"}));
        resource["scopeMetrics"][0]["metrics"][0].clone()
    }

    #[test]
    fn a_counter_is_a_monotonic_cumulative_sum_with_its_start() {
        let metric = metric_of(family(Kind::Counter, Value::Number(3.0)));
        assert_eq!((&metric["name"], &metric["unit"]), (&json!("assay.response_time"), &json!("s")));
        assert_eq!(
            (&metric["sum"]["aggregationTemporality"], &metric["sum"]["isMonotonic"]),
            (&json!(2), &json!(true))
        );
        assert_eq!(
            metric["sum"]["dataPoints"][0],
            json!({
                "asDouble": 3.0,
                "attributes": [{"key": "class", "value": {"stringValue": "hit"}}],
                "startTimeUnixNano": "1700000000000000000",
                "timeUnixNano": "1700000005000000000",
            })
        );
    }

    #[test]
    fn a_gauge_has_no_start() {
        let metric = metric_of(family(Kind::Gauge, Value::Number(0.5)));
        assert_eq!(metric["gauge"]["dataPoints"][0].get("startTimeUnixNano"), None);
    }

    #[test]
    fn a_histogram_is_exponential_with_every_bucket_from_its_first_to_its_last() {
        let exponential = [(0, 2), (3, 1)].into_iter().collect();
        let times = TimeBuckets {
            count: 5,
            zeros: 2,
            sum_us: 3_000_000,
            max_us: 1_200_000,
            exponential,
            ..TimeBuckets::default()
        };
        let metric = metric_of(family(Kind::Histogram, Value::Times(Box::new(times))));
        let point = &metric["exponentialHistogram"]["dataPoints"][0];
        assert_eq!(metric["exponentialHistogram"]["aggregationTemporality"], 2);
        // Bucket 0 ends at 1 s; OpenTelemetry names it by where it begins.
        assert_eq!(point["positive"], json!({"offset": -1, "bucketCounts": ["2", "0", "0", "1"]}));
        assert_eq!(
            (&point["count"], &point["zeroCount"], &point["scale"]),
            (&json!("5"), &json!("2"), &json!(4))
        );
        assert_eq!((&point["sum"], &point["max"]), (&json!(3.0), &json!(1.2)));
    }

    #[test]
    fn an_empty_histogram_has_no_buckets() {
        let metric = metric_of(family(Kind::Histogram, Value::Times(Box::default())));
        let point = &metric["exponentialHistogram"]["dataPoints"][0];
        assert_eq!(point["positive"]["bucketCounts"], json!([]));
        assert_eq!(point.get("max"), None);
    }
}
