//! Results of a simultaneous evaluation of proxies.
//!
//! A directory: `spe.json` ([`SpeInfo`]), `responses.parquet` (a row for each response of each target, [`ResponseRow`]),
//! `listeners.parquet` (what the Collector did for each target, a row a second, [`assay_protocol::evaluation::ListenerRow`]) and
//! `collector.parquet` (a row for each request at each listener, [`assay_protocol::evaluation::ExchangeRow`]). Target 0 is `direct`: the
//! Collector's own response, which the client got and all others are held against.
//!
//! # Evaluations and replays
//!
//! `record::spe` defines the results of an evaluation: `spe.json`, a row per response of each target (0 is `direct`, the Collector's own
//! response), a row per second and listener. `report::spe` reads only these: response time is connection + first byte +
//! transfer, differences are computed request by request, and intervals come from sections (stretches of consecutive requests), so
//! that they are valid if neighbours are correlated. A *replay* (`load::replay::plan`) is a pure plan of clients, requests and times: it keeps
//! the gaps of a log and keeps clients apart, spreads timestamps of whole seconds evenly, and holds no more of a log than necessary to sort
//! its lines. It is open loop; `load::replay` measures its own lateness. *Simulated origins* (`load::replay::origin`, a thread of the
//! replay's own process) respond from a `Catalogue`, which a first pass over the log fills; requests and responses carry `X-Assay` as in
//! runs (robot 0; `made` is microseconds of `CLOCK_MONOTONIC`), and an object's bytes are a pure function of its URL's hash, so that
//! `load::replay` recognises outcomes and checks bodies. `lab::harness` starts one proxy that uses given listeners as its only upstreams, for replays
//! and for evaluations.

mod dir;
mod exchange;
mod info;
mod listener;
mod response;

pub use dir::{SpeDir, SpeDirError};
pub use exchange::{ExchangeRow, ExchangeWriter, read_exchanges};
pub use info::{CollectorSettings, Ended, EvaluationTarget, How, SCHEMA, SpeInfo, Totals, Waits};
pub use listener::{ListenerWriter, read_listeners};
pub use response::{ResponseError, ResponseRow, ResponseWriter, Verdict, for_each_response, read_responses};

pub use crate::table::is_readable;

use crate::columns::TableSpec;

/// Label of target 0.
pub const DIRECT: &str = "direct";

/// The tables of the directory as Markdown, a section each. The reference page holds this text.
pub fn tables_as_markdown() -> String {
    let tables: [&TableSpec; 3] = [&response::RESPONSES, &listener::LISTENERS, &exchange::EXCHANGES];
    crate::layout::as_markdown(tables.into_iter())
}
