//! A run, watched from outside: the report as a live web page, Prometheus and OpenTelemetry metrics.
//!
//! [`Watcher`] receives the events of a run ([`RunEvent`](assay_record::event::RunEvent)) and serves requests ([`server`]):
//! the report of the run so far, made from its run directory ([`renderer`]); its figures as metrics ([`state`], [`metrics`])
//! in Prometheus' text and OpenMetrics; and it sends the same metrics to a collector of OpenTelemetry ([`otlp`], [`push`]).
//!
//! The run comes first. Whoever sends events never waits: they go through a channel to a thread that owns everything else,
//! without a lock. That thread and the one that makes reports run at the lowest priority that the kernel has (`SCHED_IDLE`),
//! and reports are made for at most one part in fifty of the time.
//!
//! # Watching from outside
//!
//! A measurement is declared once: its fields by `series!` or `counts!` (with their columns and metrics), its kind by a line of
//! `measurement::measured`, which generates both `Measured` (one of any kind) and `Series` (all of a run). A role reports a `Measured`;
//! `lab` writes it as a line of the journal and passes it on unchanged in a `record::event::RunEvent`. Consumers match on it; nothing
//! translates it. `assay` passes each event (an `Arc`) to all listeners, which never block it. `report::serve` listens on a thread of its own,
//! which owns all its state: events are aggregated there, and requests are served there, without a lock. A second thread creates
//! reports from the run directory, with the same code as `assay report`, for at most one part in fifty of the time. Both run at
//! `SCHED_IDLE`. A metric is a `base::metrics::Family`; Prometheus' and OpenTelemetry's formats are output formats of it. Names,
//! types and labels of metrics are an interface: `docs/reference/metrics.md` lists them, and a test checks this. Labels are bounded; the
//! phase is not a label.
//!
//! *Does not:* measure anything, keep anything after the run, decide anything, or speak TLS.

mod address;
mod error;
pub mod exponential;
mod idle;
mod metrics;
mod negotiate;
pub mod otlp;
mod push;
mod renderer;
mod report_cache;
mod server;
mod state;
pub mod times;
mod watcher;

pub use address::{ListenAddressError, listen_address};
pub use error::ServeError;
pub use push::{OtlpCollector, from_environment};
pub use state::RunIdentity;
pub use watcher::{WatchSettings, Watcher};
