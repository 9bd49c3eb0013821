//! Comparison of runs: which did better, in what, and whether that can be told from chance.
//!
//! [`runs`] takes directories of runs and of experiments as they are named, finds out which of them are repetitions of one
//! subject (`group`) and in what they differ (`settings`), and compares them; [`Comparison::check_tolerances`] says whether something
//! got worse by more than is allowed ([`gate`]). [`experiment`] reads an experiment directory (`assay_record::experiment`) and
//! every run in it that counts, and makes one document of it ([`Comparison`]): what differs between the subjects, the better
//! performer of each scenario, every metric of every phase with its difference, ratio, interval, effect size and verdict, and
//! what was left out.
//!
//! *The unit is the run.* Cells of one repetition have the very same stream, and are compared in pairs; intervals
//! are Student's over repetitions ([`paired`]). The verdicts of one table hold together ([`verdict`]).
//!
//! # What a verdict rests on
//!
//! *Comparison.* The unit of every verdict is the run, never the request. Differences are computed between cells of one repetition;
//! their interval is Student's over repetitions; the verdicts of one table are jointly valid (Holm): those of the table of scenarios
//! (all scenarios, headline metrics and pairs of subjects) are one family, the others of each detailed table another. Pairing by
//! request is only used to reduce variance within a pair of runs. Cells that are not `done`, whose numbers are not known, or that have another stream are left out
//! and listed. `report::compare::experiment` makes the document, from the run directories alone. `report::compare::runs` makes an `ExperimentInfo` of
//! named directories (subjects by target and settings, pairs by stream digest) and then works in the same way; pairs with different requests
//! (stream, schedule, workload files) get differences but no verdict. `Comparison::check_tolerances` applies tolerances to the finished document: an
//! interval beyond the tolerance is a regression.
//!
//! *Does not:* run anything, or judge whether the numbers of a run are known: cells that are not `done` are left out and listed.

mod assemble;
mod chart_group;
mod charts;
pub mod document;
mod figures;
mod forest;
pub mod gate;
mod group;
mod html;
mod inputs;
mod markdown;
mod measured;
mod metric;
mod numbers;
pub mod paired;
mod read;
mod requests;
mod saturation;
mod scope;
mod settings;
pub mod student;
pub mod terminal;
mod text;
mod tolerance_check;
mod verdict;
pub mod views;
mod winners;

use std::path::{Path, PathBuf};

pub use document::Comparison;
pub use gate::{CheckOutcome, Gate, GateCheck, GateOutcome, Tolerance};
pub use inputs::InputDirectory;
pub use read::CompareOptions;
pub use verdict::ERROR_PROBABILITY;
pub use views::subject_style;

use crate::ReportError;
use crate::terminal::Style;

/// Compares the runs of an experiment directory. Cells that cannot be read are left out, and listed.
pub fn experiment(dir: &Path) -> Result<Comparison, ReportError> {
    whole_experiment(dir, CompareOptions::default())
}

fn whole_experiment(dir: &Path, liberties: CompareOptions) -> Result<Comparison, ReportError> {
    let read = read::read(dir, liberties)?;
    Ok(assemble::comparison(&read, &dir.to_string_lossy()))
}

/// Compares runs that were named: directories of runs, of experiments, and such that hold directories of runs. The first
/// subject is what the others are compared with. `command` is how it was requested.
pub fn runs(
    named: &[InputDirectory],
    liberties: CompareOptions,
    command: &[String],
) -> Result<Comparison, ReportError> {
    if let [InputDirectory { label: None, path }] = named
        && is_experiment(path)
    {
        return whole_experiment(path, liberties);
    }
    let mut info = group::group(&inputs::gather(named)?, liberties.any_stream);
    info.command = command.to_vec();
    let read = read::read_all(info, None, liberties);
    Ok(assemble::comparison(&read, ""))
}

/// Whether this is an experiment directory, rather than that of a run.
pub fn is_experiment(dir: &Path) -> bool {
    read::info_path(dir).is_file()
}

impl Comparison {
    /// Says whether something is worse by more than is tolerated, and keeps that with the comparison.
    pub fn check_tolerances(&mut self, tolerances: &[Tolerance]) -> &Gate {
        self.gate.insert(tolerance_check::check_tolerances(self, tolerances))
    }

    /// True where no two subjects got the same requests, so that nothing could be compared.
    pub fn is_meaningless(&self) -> bool {
        let contrasts = || self.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.contrasts);
        let said = |contrast: &document::Contrast| {
            contrast.pairs > 0
                && !matches!(
                    contrast.verdict,
                    document::Verdict::NotComparable | document::Verdict::NotJudged
                )
        };
        !self.incomparable.is_empty() && !contrasts().any(said)
    }

    /// The comparison as text for a terminal, with a newline at its end; `report` is the HTML page, if there is one.
    pub fn to_terminal(&self, report: Option<&Path>, style: &Style) -> String {
        terminal::render(self, report, style)
    }

    /// The comparison as Markdown, for a pull request or a page.
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }

    /// The comparison as one HTML page that needs no network. Its charts are there only as long as the runs were read
    /// by [`experiment`]: a document that was read back has none.
    pub fn to_html(&self) -> Result<String, ReportError> {
        html::render(self)
    }

    /// The document as text, with a newline at its end.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Draws every chart as SVG with its numbers as CSV into a directory; gives back their names. There are charts only as long
    /// as the runs were read, as for [`Comparison::to_html`].
    pub fn write_figures(&self, out: &Path) -> Result<Vec<String>, ReportError> {
        figures::write_figures(self, out)
    }

    /// Writes the values and the differences of all metrics as CSV into a directory; gives back the paths.
    pub fn write_csv(&self, out: &Path) -> Result<Vec<PathBuf>, ReportError> {
        figures::write_csv(self, out)
    }

    /// JSON Schema of the document.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Comparison).to_value()
    }

    /// Writes `comparison.json` into the experiment directory; says where it is.
    pub fn write_json(&self, dir: &Path) -> Result<PathBuf, ReportError> {
        write_whole(dir.join("comparison.json"), self.to_json()?.as_bytes())
    }

    /// Writes `comparison.html` into the experiment directory; says where it is.
    pub fn write_html(&self, dir: &Path) -> Result<PathBuf, ReportError> {
        write_whole(dir.join("comparison.html"), self.to_html()?.as_bytes())
    }
}

/// Writes a file under a temporary name and renames it: a reader sees the old one or the new one, never a part.
fn write_whole(path: PathBuf, bytes: &[u8]) -> Result<PathBuf, ReportError> {
    let partial = path.with_extension("partial");
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, &path));
    match written {
        Ok(()) => Ok(path),
        Err(cause) => Err(ReportError::WriteComparison { path, cause }),
    }
}
