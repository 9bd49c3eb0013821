//! Report of an evaluation of proxies on live traffic.
//!
//! [`evaluate`] reads the directory that `assay spe` left ([`assay_record::spe`]) and makes one document of it
//! ([`Evaluation`]): for each target bytes, responses, whether they were the Collector's, and how long they took; differences
//! between every two targets, request by request; what differed, grouped, with examples; whether the order of sending mattered.
//!
//! *Intervals* hold 95 %. Those of times come from sections: stretches of consecutive requests, each of which gives the
//! number once more; what these vary by says how well the whole is known, also where neighbouring requests are alike
//! (`sections`). Those of shares are Wilson's.
//!
//! *Does not:* measure, or read anything outside the directory.

mod charts;
pub mod document;
mod figures;
mod html;
mod mismatches;
mod sections;
mod send_order;
mod tables;
mod terminal;
mod verdict;
mod views;

use std::path::{Path, PathBuf};

use crate::figure::{self, Figure, FigureSet};
use assay_record::spe::SpeDir;

pub use document::Evaluation;

use crate::ReportError;
use crate::terminal::Style;

/// Reads the directory of an evaluation and computes everything that is said about it.
pub fn evaluate(dir: &SpeDir) -> Result<Evaluation, ReportError> {
    let info = dir.read_info()?;
    let data = tables::read(dir, info.targets.len().max(1))?;
    let mut evaluation = figures::evaluation(dir, &info, &data);
    evaluation.differing = mismatches::groups(dir, &info, &data)?;
    evaluation.verdict = verdict::conclusions(&evaluation);
    evaluation.charts = charts::charts(&evaluation, &data);
    Ok(evaluation)
}

impl Evaluation {
    /// The evaluation as text for a terminal, with a newline at its end; `report` is the HTML page, if there is one.
    pub fn to_terminal(&self, report: Option<&Path>, style: &Style) -> String {
        terminal::render(self, report, style)
    }

    /// The evaluation as one HTML page that needs no network. Its charts are there only as long as it was made by
    /// [`evaluate`]: a document that was read back has none.
    pub fn to_html(&self) -> Result<String, ReportError> {
        html::render(self)
    }

    /// The document as text, with a newline at its end.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// JSON Schema of the document.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Evaluation).to_value()
    }

    /// Writes `summary.json` into the directory; says where it is.
    pub fn write_json(&self, dir: &SpeDir) -> Result<PathBuf, ReportError> {
        let path = dir.summary_path();
        dir.write_whole(&path, self.to_json()?.as_bytes())?;
        Ok(path)
    }

    /// Draws every chart as SVG with its numbers as CSV into a directory; gives back their names. There are charts only as
    /// long as the evaluation was read by [`evaluate`].
    pub fn write_figures(&self, out: &Path) -> Result<Vec<String>, ReportError> {
        let figures = self.charts.charts.iter().cloned().map(Figure::alone).collect();
        figure::write_sets(&[FigureSet { figures, time: &self.charts.time, bands: &self.charts.phases }], out)
    }

    /// Writes `report.html` into the directory; says where it is.
    pub fn write_html(&self, dir: &SpeDir) -> Result<PathBuf, ReportError> {
        let path = dir.report_path();
        dir.write_whole(&path, self.to_html()?.as_bytes())?;
        Ok(path)
    }
}
