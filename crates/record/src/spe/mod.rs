//! What a simultaneous evaluation of proxies leaves behind.
//!
//! A directory: `spe.json` ([`SpeInfo`]), `answers.parquet` (a row for each answer of each target, [`AnswerRow`]) and
//! `doors.parquet` (what the Collector did for each target, a row a second, [`assay_role::evaluation::DoorRow`]). Target 0 is `direct`: the
//! Collector's own answer, which the client got and all others are held against.

mod answer;
mod dir;
mod door;
mod info;

pub use answer::{AnswerError, AnswerRow, AnswerWriter, Verdict, for_each_answer, read_answers};
pub use dir::{SpeDir, SpeDirError};
pub use door::{DoorWriter, read_doors};
pub use info::{CollectorSettings, Ended, How, SCHEMA, SpeInfo, Target, Totals};

use crate::columns::TableSpec;

/// Label of target 0.
pub const DIRECT: &str = "direct";

/// The tables of the directory as Markdown, a section each. The reference page holds this text.
pub fn tables_as_markdown() -> String {
    let tables: [&TableSpec; 2] = [&answer::ANSWERS, &door::DOORS];
    crate::layout::as_markdown(tables.into_iter())
}
