//! What a simultaneous evaluation of proxies leaves behind.
//!
//! A directory: `spe.json` ([`SpeInfo`]), `responses.parquet` (a row for each response of each target, [`ResponseRow`]),
//! `listeners.parquet` (what the Collector did for each target, a row a second, [`assay_protocol::evaluation::ListenerRow`]) and
//! `collector.parquet` (a row for each request at each listener, [`assay_protocol::evaluation::ExchangeRow`]). Target 0 is `direct`: the
//! Collector's own response, which the client got and all others are held against.

mod dir;
mod exchange;
mod info;
mod listener;
mod response;

pub use dir::{SpeDir, SpeDirError};
pub use exchange::{ExchangeRow, ExchangeWriter, read_exchanges};
pub use info::{CollectorSettings, Ended, How, SCHEMA, SpeInfo, Target, Totals, Waits};
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
