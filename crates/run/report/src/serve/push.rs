//! Metrics, pushed to a collector of OpenTelemetry. By OTLP over plain HTTP, every few seconds; a collector that does not
//! take them is mentioned once, and tried again.

use std::io;
use std::time::Duration;

use assay_http::head::ResponseHead;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::serve::error::ServeError;

/// Export interval unless the environment says otherwise.
const INTERVAL: Duration = Duration::from_secs(5);
/// Metrics change once a second.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Timeout of an export.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);
/// Longest response that is read.
const RESPONSE_MAX_BYTES: usize = 16 * 1024;

/// Failure to push metrics to a collector.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it answered {0}")]
    Status(u16),
    #[error("its response is not HTTP")]
    NotHttp,
    #[error("no response in {} s", TIMEOUT.as_secs())]
    Timeout,
}

/// Collector of OpenTelemetry, with interval, header fields and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpCollector {
    /// `host:port`, for `Host`.
    authority: String,
    /// Address to connect to.
    address: String,
    path: String,
    headers: Vec<(String, String)>,
    pub interval: Duration,
    /// Resource attributes from the environment, name and value.
    pub resource: Vec<(String, String)>,
}

/// Reads a URL, or `env`, with the standard's variables for everything else. `variable` looks one up.
///
/// A URL is a base, to which `/v1/metrics` is added unless it ends so. `env` takes `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` as it
/// is, else `OTEL_EXPORTER_OTLP_ENDPOINT` as a base.
pub fn from_environment(
    url: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<OtlpCollector, ServeError> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let (url, whole) = match url {
        "env" => match set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") {
            Some(url) => (url, true),
            None => (set("OTEL_EXPORTER_OTLP_ENDPOINT").ok_or(ServeError::NoCollector)?, false),
        },
        url => (url.to_owned(), false),
    };
    let (authority, path) =
        split(url.trim()).map_err(|why| ServeError::Collector { url: url.clone(), why })?;
    let path = match path.trim_end_matches('/') {
        _ if whole && !path.is_empty() => path.to_owned(),
        base if base.ends_with("/v1/metrics") => base.to_owned(),
        base => format!("{base}/v1/metrics"),
    };
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let interval = set("OTEL_METRIC_EXPORT_INTERVAL").and_then(|ms| ms.trim().parse().ok());
    let headers = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"];
    let mut resource = pairs(&set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
    if let Some(name) = set("OTEL_SERVICE_NAME") {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".into(), name));
    }
    Ok(OtlpCollector {
        authority: authority.to_owned(),
        address,
        path,
        headers: headers.iter().flat_map(|name| pairs(&set(name).unwrap_or_default())).collect(),
        interval: interval.map_or(INTERVAL, Duration::from_millis).max(INTERVAL_MIN),
        resource,
    })
}

/// `http://host:port/path`: what comes before the path, and the path.
fn split(url: &str) -> Result<(&str, &str), &'static str> {
    let rest = match url.split_once("://") {
        Some(("http", rest)) => rest,
        Some(("https", _)) => {
            return Err("Assay does not speak https; let a collector on this machine pass metrics on");
        }
        _ => return Err("it does not begin with http://"),
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    match () {
        () if authority.is_empty() || authority.starts_with(':') => Err("it names no host"),
        () if authority.contains('@') => Err("it holds a password; give it in OTEL_EXPORTER_OTLP_HEADERS"),
        () if authority.contains(['?', '#']) || path.contains(['?', '#']) => {
            Err("it has a query or a fragment")
        }
        () if !plain(authority) || !plain(path) => Err("it has characters that a URL cannot have"),
        () => Ok((authority, path)),
    }
}

/// `name=value,name=value`, with `%20` and the like; pairs that could break a line are left out.
fn pairs(text: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        let (mut out, mut rest) = (Vec::new(), text.trim().as_bytes());
        while let Some((first, after)) = rest.split_first() {
            let code =
                after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
            (rest, _) = match (first, code) {
                (b'%', Some(byte)) => (&after[2..], out.push(byte)),
                _ => (after, out.push(*first)),
            };
        }
        String::from_utf8(out).ok().filter(|text| !text.chars().any(char::is_control))
    };
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((decoded(name).filter(|name| !name.is_empty())?, decoded(value)?))
    };
    text.split(',').filter_map(pair).collect()
}

impl OtlpCollector {
    /// URL of the collector, as it is shown.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }

    pub(crate) async fn send(&self, document: &[u8], version: &str) -> Result<(), ExportError> {
        let exchange = async {
            let mut stream = TcpStream::connect(&self.address).await?;
            let mut request = format!(
                "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: Assay/{version}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\nConnection: close\r\n",
                self.path,
                self.authority,
                document.len()
            );
            for (name, value) in &self.headers {
                request += &format!("{name}: {value}\r\n");
            }
            request += "\r\n";
            stream.write_all(&[request.as_bytes(), document].concat()).await?;
            let mut response = Vec::new();
            loop {
                match ResponseHead::parse(&response) {
                    Ok(Some((head, length))) if head.is_interim() => drop(response.drain(..length)),
                    Ok(Some((head, _))) => return Ok(head.status),
                    Ok(None) if response.len() < RESPONSE_MAX_BYTES => {
                        if stream.read_buf(&mut response).await? == 0 {
                            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                        }
                    }
                    _ => return Err(ExportError::NotHttp),
                }
            }
        };
        match timeout(TIMEOUT, exchange).await {
            Ok(Ok(200..300)) => Ok(()),
            Ok(Ok(status)) => Err(ExportError::Status(status)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(ExportError::Timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(url: &str, variables: &[(&str, &str)]) -> Result<OtlpCollector, ServeError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
        from_environment(url, find)
    }

    #[test]
    fn a_url_is_a_base_unless_it_is_whole() {
        for (url, expected) in [
            ("http://localhost:4318", "http://localhost:4318/v1/metrics"),
            ("http://localhost:4318/", "http://localhost:4318/v1/metrics"),
            ("http://10.0.0.1/otel/", "http://10.0.0.1/otel/v1/metrics"),
            ("http://[::1]:4318/v1/metrics", "http://[::1]:4318/v1/metrics"),
        ] {
            assert_eq!(collector(url, &[]).unwrap().url(), expected);
        }
        assert_eq!(collector("http://[::1]", &[]).unwrap().address, "[::1]:80");
    }

    #[test]
    fn the_environment_is_read_when_it_is_needed() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1");
        let whole = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://b:2/take");
        assert_eq!(collector("env", &[base]).unwrap().url(), "http://a:1/v1/metrics");
        assert_eq!(collector("env", &[base, whole]).unwrap().url(), "http://b:2/take");
        assert_eq!(collector("http://c:3", &[base, whole]).unwrap().url(), "http://c:3/v1/metrics");
        assert!(matches!(collector("env", &[]), Err(ServeError::NoCollector)));
        let more = [
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1,broken,bad=a%0d%0ab"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "2000"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=web,service.name=other"),
            ("OTEL_SERVICE_NAME", "bench"),
        ];
        let collector = collector("http://a:1", &more).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(collector.headers, [pair("api-key", "a b"), pair("x", "1")]);
        assert_eq!(collector.resource, [pair("team", "web"), pair("service.name", "bench")]);
        assert_eq!(collector.interval, Duration::from_secs(2));
    }

    #[test]
    fn what_is_no_plain_url_says_what_to_do() {
        for (url, words) in [
            ("https://a:1", "does not speak https"),
            ("a:1", "http://"),
            ("http:///x", "no host"),
            ("http://u:p@a", "password"),
            ("http://a/x?y", "query"),
            ("http://a b/", "characters"),
        ] {
            let error = collector(url, &[]).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
