//! Conformance: cases as data, the exchanges that try them on a proxy or a cache, and verdicts.
//!
//! A [`case`] is a requirement with its level and its source, and the steps that show whether it is met. Case files are TOML
//! ([`read`]); those that come with Assay are in `conformance/` ([`suite`]). [`run`] tries cases on a target, with an [`origin`] of
//! its own behind it and a raw [`client`] before it; both write down what they see ([`observe`]). [`check`] holds that against what a
//! step expects, and [`verdict`] decides what it comes to; `retries` decides how often a case is tried, and what its tries come to,
//! and `schedule` when each begins. [`under_load`] tries cases now and then, over and over, on a target that
//! is under load. Everything but `run`, `schedule`, `under_load`, `origin`, `client` and
//! the [`transport`] beneath it is pure.
//!
//! *Does not:* start a target (that is `assay-lab`), measure time or load, or repair what a target sends: bytes are kept as they came.

pub mod case;
pub mod check;
pub mod client;
pub mod document;
mod explain;
pub mod http2;
pub mod known;
pub mod matrix;
pub mod message;
pub mod observe;
pub mod origin;
pub mod read;
mod retries;
pub mod run;
mod schedule;
pub mod show;
pub mod suite;
pub mod template;
pub mod transport;
pub mod under_load;
pub mod verdict;
