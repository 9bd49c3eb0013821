//! The format of metrics that a client wants.

use assay_http::field::{list, parameter, trim, unquoted};

/// A format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// OpenMetrics.
    OpenMetrics,
    /// Protocol buffers, with native histograms.
    Protobuf,
}

/// The best of what `Accept` fields request; Prometheus' text when that says nothing that we have.
pub(crate) fn format<'v>(accept: impl IntoIterator<Item = &'v [u8]>) -> Format {
    let mut best = (Format::Text, 0);
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

fn named(member: &[u8]) -> Option<Format> {
    let name = trim(member.split(|byte| *byte == b';').next()?);
    let is = |name: &str, value: &[u8]| {
        parameter(member, name).is_some_and(|found| unquoted(found).eq_ignore_ascii_case(value))
    };
    match name.to_ascii_lowercase().as_slice() {
        b"text/plain" | b"text/*" | b"*/*" => Some(Format::Text),
        b"application/openmetrics-text" => {
            (is("version", b"1.0.0") || parameter(member, "version").is_none()).then_some(Format::OpenMetrics)
        }
        b"application/vnd.google.protobuf" => {
            let ours = is("proto", b"io.prometheus.client.MetricFamily") && is("encoding", b"delimited");
            ours.then_some(Format::Protobuf)
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
            (format!("{protobuf},{others}"), Format::Protobuf),
            (others.to_owned(), Format::OpenMetrics),
            ("application/openmetrics-text".into(), Format::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5".into(), Format::Text),
            ("application/vnd.google.protobuf;q=1".into(), Format::Text),
            (format!("{protobuf};q=0.1,text/plain"), Format::Text),
            (format!("{protobuf};q=0"), Format::Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8".into(), Format::Text),
            (
                format!("{};encoding=\"delimited\",text/plain", protobuf.replace(";encoding=delimited", "")),
                Format::Protobuf,
            ),
            (String::new(), Format::Text),
        ] {
            assert_eq!(format([accept.as_bytes()]), expected, "{accept}");
        }
        assert_eq!(format([]), Format::Text);
    }
}
