//! Failures to start watching a run.

use std::net::SocketAddr;

use thiserror::Error;

/// Failure to start watching a run. Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("--serve: cannot listen on {address}: {cause}; choose another port, or 0 for any that is free")]
    Listen {
        address: SocketAddr,
        /// The system's error.
        cause: std::io::Error,
    },
    /// Not a place that metrics can be sent to.
    #[error(
        "--otlp: `{url}` is not the URL of a collector: {why}; write http://HOST:PORT, as OTEL_EXPORTER_OTLP_ENDPOINT has it"
    )]
    Collector {
        url: String,
        /// Fault of the URL.
        why: &'static str,
    },
    /// `--otlp env`, and nothing in the environment says where.
    #[error(
        "--otlp env: neither OTEL_EXPORTER_OTLP_METRICS_ENDPOINT nor OTEL_EXPORTER_OTLP_ENDPOINT is set; set one, or give --otlp a URL"
    )]
    NoCollector,
    /// The system gave no thread.
    #[error("cannot start the threads that watch the run: {0}")]
    Thread(std::io::Error),
}
