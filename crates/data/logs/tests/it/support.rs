//! What the tests share.

use std::path::{Path, PathBuf};

use assay_logs::analysis::AnalysisOptions;
use assay_logs::document::LogsDocument;
use assay_logs::format::Format;

/// A file of the tests.
pub fn lines_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/lines").join(name)
}

/// The analysis of a text, in a format of that name or recognised.
pub fn analyse_text(text: &[u8], format: Option<&str>) -> LogsDocument {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, text).unwrap();
    analyse(&[path], format)
}

/// The analysis of files.
pub fn analyse(files: &[PathBuf], format: Option<&str>) -> LogsDocument {
    let format = format.map(|text| Format::parse(text).unwrap());
    let options = AnalysisOptions { top: 5, cache_bytes: vec![1 << 20], ..AnalysisOptions::default() };
    assay_logs::analyse(files, format.as_ref(), options).unwrap()
}

/// Requests by the name of a group.
pub fn group(document: &LogsDocument, by: &str) -> Vec<(String, u64, u64)> {
    let grouping = document.groups.iter().find(|grouping| grouping.by == by);
    let groups = grouping.map(|grouping| grouping.groups.as_slice()).unwrap_or_default();
    let mut groups: Vec<_> = groups
        .iter()
        .map(|g| (g.name.clone(), g.figures.requests, g.figures.bytes.unwrap_or_default()))
        .collect();
    groups.sort();
    groups
}
