//! Texts of a report on a run directory with missing or damaged parts.

use assay_base::settings::show::series;
use assay_record::missing::Missing;

use crate::document::{Finding, Mood, Summary, Topic};
use crate::text::finding;

/// A sentence for each thing that is missing.
pub(crate) fn warnings(missing: &[Missing]) -> Vec<String> {
    missing.iter().map(Missing::sentence).collect()
}

/// True if a file, or a part of it, is lost.
pub(crate) fn is_lost(missing: &[Missing], file: &str) -> bool {
    missing.iter().any(|missing| missing.is_loss() && missing.file == file)
}

/// True if a file with errors is lost, those that only origins find among them.
pub(crate) fn are_errors_lost(missing: &[Missing]) -> bool {
    ["robots.parquet", "errors.parquet", "origins.parquet"].iter().any(|file| is_lost(missing, file))
}

/// The verdict, without what cannot be known any more.
pub(crate) fn verdict(summary: &Summary, mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut lost: Vec<&str> = summary
        .missing
        .iter()
        .filter(|missing| missing.is_loss())
        .map(|missing| missing.file.as_str())
        .collect();
    if lost.is_empty() {
        return findings;
    }
    if lost.contains(&"robots.parquet") {
        for (about, what) in [
            (Topic::Speed, "whether it kept up"),
            (Topic::Savings, "what it saved"),
            (Topic::Correctness, "whether its responses were right"),
        ] {
            let text = format!("What the robots counted is lost (robots.parquet): nobody can say {what}.");
            let unknown = finding(about, Mood::Doubtful, text);
            findings
                .iter_mut()
                .filter(|known| known.about == about)
                .for_each(|known| *known = unknown.clone());
        }
    }
    let is_without_errors = summary.total.errors.total == 0;
    let of_errors = lost.iter().find(|file| ["errors.parquet", "origins.parquet"].contains(file));
    if let Some(file) = of_errors.filter(|_| is_without_errors && !lost.contains(&"robots.parquet")) {
        let text = format!(
            "Errors that were counted are lost ({file}): nobody can say whether the responses were right."
        );
        let unknown = finding(Topic::Correctness, Mood::Doubtful, text);
        findings
            .iter_mut()
            .filter(|known| known.about == Topic::Correctness)
            .for_each(|known| *known = unknown.clone());
    }
    // No number needs these.
    lost.retain(|file| !["examples.json", "SHA256SUMS"].contains(file));
    if lost.is_empty() {
        return findings;
    }
    for known in findings.iter_mut().filter(|known| known.about == Topic::Trust && known.mood != Mood::Bad) {
        let text = format!(
            "Only in part: {} cannot be read, so numbers that need {} are left out or too small.",
            series(&lost),
            if lost.len() == 1 { "it" } else { "them" }
        );
        *known = finding(Topic::Trust, Mood::Doubtful, text);
    }
    findings
}
