//! A run, watched from outside: the report as a live web page, Prometheus and OpenTelemetry metrics.
//!
//! [`Watcher`] receives the events of a run ([`RunEvent`](assay_record::event::RunEvent)) and serves requests ([`server`]):
//! the report of the run so far, made from its run directory ([`maker`]); its figures as metrics ([`state`], [`figures`])
//! in each of Prometheus' formats (text, [`protobuf`]); and it sends the same metrics to a collector of OpenTelemetry ([`otlp`], [`push`]).
//!
//! The run comes first. Whoever sends events never waits: they go through a channel to a thread that owns everything else,
//! without a lock. That thread and the one that makes reports run at the lowest priority that the kernel has (`SCHED_IDLE`),
//! and reports are made for at most one part in fifty of the time.
//!
//! *Does not:* measure anything, keep anything after the run, decide anything, or speak TLS.

mod address;
mod desk;
mod error;
pub mod exponential;
mod figures;
mod idle;
mod maker;
mod negotiate;
pub mod otlp;
pub mod protobuf;
mod push;
mod server;
mod state;
pub mod times;
mod watcher;

pub use address::listen_address;
pub use error::ServeError;
pub use push::{Collector, from_environment};
pub use state::About;
pub use watcher::{Settings, Watcher};
