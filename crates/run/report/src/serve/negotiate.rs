//! The format of metrics that a client wants.

use assay_http::field::{list, parameter, trim, unquoted};

/// A format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    Text,
    OpenMetrics,
}

/// The best of what `Accept` fields request; Prometheus' text when that says nothing that we have.
pub(crate) fn format<'v>(accept: impl IntoIterator<Item = &'v [u8]>) -> MetricsFormat {
    let mut best = (MetricsFormat::Text, 0);
    for member in accept.into_iter().flat_map(list) {
        let Some(format) = named(member) else { continue };
        let weight = parameter(member, "q").and_then(|q| std::str::from_utf8(q).ok()?.parse::<f64>().ok());
        let weight = (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32;
        // Of those that are wanted as much, the one that says most.
        if (weight, format as u8) > (best.1, best.0 as u8) && weight > 0 {
            best = (format, weight);
        }
    }
    best.0
}

fn named(member: &[u8]) -> Option<MetricsFormat> {
    let name = trim(member.split(|byte| *byte == b';').next()?);
    match name.to_ascii_lowercase().as_slice() {
        b"text/plain" | b"text/*" | b"*/*" => Some(MetricsFormat::Text),
        b"application/openmetrics-text" => {
            let is_ours = parameter(member, "version").is_none_or(|version| unquoted(version) == b"1.0.0");
            is_ours.then_some(MetricsFormat::OpenMetrics)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prometheus_gets_the_best_that_it_reads() {
        let protobuf =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let others = "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
                      text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, expected) in [
            (format!("{protobuf},{others}"), MetricsFormat::OpenMetrics),
            (others.to_owned(), MetricsFormat::OpenMetrics),
            ("application/openmetrics-text".into(), MetricsFormat::OpenMetrics),
            (
                "application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5".into(),
                MetricsFormat::Text,
            ),
            (protobuf.into(), MetricsFormat::Text),
            ("application/openmetrics-text;q=0.1,text/plain".into(), MetricsFormat::Text),
            ("application/openmetrics-text;q=0".into(), MetricsFormat::Text),
            ("application/openmetrics-text; version=\"1.0.0\",text/plain".into(), MetricsFormat::OpenMetrics),
            ("text/html,application/xhtml+xml,*/*;q=0.8".into(), MetricsFormat::Text),
            (String::new(), MetricsFormat::Text),
        ] {
            assert_eq!(format([accept.as_bytes()]), expected, "{accept}");
        }
        assert_eq!(format([]), MetricsFormat::Text);
    }
}
