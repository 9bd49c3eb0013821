//! The report as one HTML file that needs no network.

use std::path::PathBuf;

use assay_record::dir::RunDir;
use assay_record::series::Series;

use crate::error::ReportError;
use crate::summary::Summary;

/// Writes `report.html` (and `summary.json`) into the run directory and says where the report is.
pub fn write(dir: &RunDir) -> Result<PathBuf, ReportError> {
    let (info, series) = (dir.read_info()?, Series::read(dir)?);
    let summary = Summary::from_parts(dir, &info, &series, dir.is_unfinished()?);
    summary.write(dir)?;
    let path = dir.report_path();
    dir.write_whole(&path, page(&summary, &series)?.as_bytes())?;
    Ok(path)
}
fn page(summary: &Summary, _series: &Series) -> Result<String, ReportError> {
    Ok(format!(
        "<pre>{}</pre>",
        crate::terminal::render(summary, &crate::terminal::Style { colour: false, width: 140 })
            .replace('<', "&lt;")
    ))
}
