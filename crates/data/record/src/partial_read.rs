//! Reading of a run directory as far as it can be read.
//!
//! # Damaged directories
//!
//! Code that judges reads strictly (`Series::read`): a comparison excludes a damaged run. Code that reports reads as much as
//! possible (`RunDir::read_partial`), and returns a `Missing` for each missing part: absent, damaged, or unknown to this
//! version. `SHA256SUMS` is written when the tables are, and `run.json` enters it with its last change; a table that differs is left
//! out. A number that is missing is null or too small, and never silently so. Every number of `summary.json` can be recomputed from the tables
//! and `run.json` (`crates/run/report/tests/recompute.py` does this); a new figure must be added to that script too, or its test fails.

use serde_json::{Map, Value};

use crate::caches::CacheLogs;
use crate::checksums::Checksums;
use crate::dir::{RunDir, RunDirError};
use crate::missing::{Gap, Gaps, Missing};
use crate::run::{PhaseInfo, RUN_SCHEMA, RunInfo};
use crate::table::FileError;
use assay_measurement::measured::Series;

/// Contents of a run directory as far as they can be read, and a list of what cannot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartialRead {
    /// `run.json`; a missing field has its default.
    pub info: RunInfo,
    pub series: Series,
    /// Logs of the run's caches; none: they were not read.
    pub caches: Option<CacheLogs>,
    /// The run's end was not written: it is in progress, or was killed.
    pub unfinished: bool,
    /// Files and fields that could not be read or understood.
    pub missing: Vec<Missing>,
}

impl RunDir {
    /// Reads a run as far as it can be read: also one that was damaged, cut short, or written by a newer version.
    pub fn read_partial(&self) -> Result<PartialRead, RunDirError> {
        let mut gaps = Gaps::tolerant();
        let info = self.head(&mut gaps)?;
        let series = self.read_series_with(&mut gaps)?;
        let has_journal = self.journal_path().exists();
        let caches = match self.read_caches() {
            Ok(caches) => caches,
            Err(error) => gaps.error(error).map(|()| None)?,
        };
        let mut partial = PartialRead {
            unfinished: has_journal,
            info: RunInfo::default(),
            series,
            caches,
            missing: Vec::new(),
        };
        match info {
            Some(info) => {
                partial.unfinished |= !info.finished;
                partial.info = info;
            }
            // The names of phases are lost; measurements still have their numbers.
            None => {
                let phases = partial.series.robots.iter().map(|interval| interval.phase).max();
                let named = |index| PhaseInfo { name: format!("phase {index}"), ..PhaseInfo::default() };
                partial.info.phases =
                    phases.map_or_else(Vec::new, |last| (0..=last.min(MAX_PHASES)).map(named).collect());
                partial.info.target.name = "unknown".to_owned();
                partial.info.workload.name = "unknown".to_owned();
            }
        }
        partial.missing = gaps.into_found();
        Ok(partial)
    }

    /// `run.json`, without fields that cannot be understood; none: no field can.
    fn head(&self, gaps: &mut Gaps) -> Result<Option<RunInfo>, RunDirError> {
        let path = self.info_path();
        let damaged = |detail: String| FileError::damaged(&path, detail);
        let text = match assay_base::files::bytes(&path, assay_base::files::DOCUMENT_MAX) {
            Ok(text) => text,
            Err(cause) => {
                gaps.error(FileError::read(&path, cause))?;
                return Ok(None);
            }
        };
        let value: Value = match serde_json::from_slice(&text) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return gaps.error(damaged("it is not a JSON object".into())).map(|()| None),
            Err(e) => return gaps.error(damaged(e.to_string())).map(|()| None),
        };
        let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default().to_owned();
        if schema != RUN_SCHEMA && !schema.is_empty() {
            gaps.note(&path, Gap::Unknown, format!("it says {schema:?}, and this one knows {RUN_SCHEMA:?}"));
        } else {
            let sums = Checksums::read(self);
            sums.and_then(|sums| sums.check(&path)).or_else(|error| gaps.error(error))?;
        }
        let mut lost = Vec::new();
        let fits = |value: &Value| serde_json::from_value::<RunInfo>(value.clone()).is_ok();
        let pruned = prune(value, &fits, "", &mut lost);
        for field in lost {
            gaps.note(&path, Gap::Unknown, format!("{field} cannot be understood"));
        }
        Ok(pruned.and_then(|value| serde_json::from_value(value).ok()))
    }
}

/// Upper bound on the number of phases.
const MAX_PHASES: u16 = 1000;

/// Removes what does not fit, as little as possible, and adds its path to `lost`.
fn prune(value: Value, fits: &dyn Fn(&Value) -> bool, path: &str, lost: &mut Vec<String>) -> Option<Value> {
    if fits(&value) {
        return Some(value);
    }
    let within = lost.len();
    let kept = match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, field) in fields {
                let one =
                    |inner: &Value| fits(&Value::Object(Map::from_iter([(name.clone(), inner.clone())])));
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if let Some(field) = prune(field, &one, &below, lost) {
                    kept.insert(name, field);
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => {
            let one = |inner: &Value| fits(&Value::Array(vec![inner.clone()]));
            let empty = Value::Object(Map::new());
            let mut kept = Vec::new();
            for (index, item) in items.into_iter().enumerate() {
                match prune(item, &one, &format!("{path}[{index}]"), lost) {
                    Some(item) => kept.push(item),
                    // Later items keep their index.
                    None if one(&empty) => kept.push(empty.clone()),
                    None => {}
                }
            }
            Value::Array(kept)
        }
        other => other,
    };
    if fits(&kept) {
        return Some(kept);
    }
    lost.truncate(within);
    lost.push(path.to_owned());
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_version_says_in_other_words_is_left_out_and_the_rest_is_read() {
        let tmp = tempfile::tempdir().unwrap();
        let head = r#"{"schema": "assay-run/2", "seed": 7, "finished": true, "moon": "full",
            "phases": [{"name": "fill"}, {"name": {"en": "top"}, "load": [1, 2]}, {"name": "cool"}],
            "verdict": {"valid": true, "doubts": [{"reason": "comet"}]}}"#;
        std::fs::write(tmp.path().join("run.json"), head).unwrap();
        let dir = RunDir::open(tmp.path()).unwrap();
        assert!(dir.read_info().is_err());
        let partial = dir.read_partial().unwrap();
        assert_eq!(partial.info.seed, 7);
        assert!(!partial.info.verdict.is_disturbed() && !partial.unfinished);
        let names: Vec<_> = partial.info.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["fill", "", "cool"]);
        assert_eq!(partial.info.phases[1].load, (1.0, 2.0));
        let head: Vec<_> = partial.missing.iter().filter(|missing| missing.file == "run.json").collect();
        assert_eq!(head.len(), 1);
        assert!(head[0].what.contains("assay-run/2"), "{head:?}");
        assert!(partial.missing.iter().any(|missing| missing.file == "robots.parquet"));
    }

    #[test]
    fn a_head_that_is_no_json_leaves_the_measurements() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("run.json"), "{\"seed\": 1").unwrap();
        let robots = r#"{"robots":{"phase":1,"start_ms":0,"length_ms":1000,"counts":{"due":3}}}"#;
        std::fs::write(tmp.path().join("journal.jsonl"), format!("{robots}\nrubbish\n{robots}\n{{\"rob"))
            .unwrap();
        let partial = RunDir::open(tmp.path()).unwrap().read_partial().unwrap();
        assert_eq!(partial.series.robots.len(), 2);
        assert_eq!(partial.info.phases.len(), 2);
        let files: Vec<_> = partial.missing.iter().map(|missing| missing.file.as_str()).collect();
        assert_eq!(files, ["run.json", "journal.jsonl"]);
        assert!(partial.missing[1].what.contains("line 2"), "{:?}", partial.missing);
    }
}
