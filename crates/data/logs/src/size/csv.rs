//! The curves as comma-separated values: a line for each policy and size, and for each label where figures are divided by one.

use std::fmt::Write as _;

use assay_base::quote::csv::quoted;

use crate::size::document::{HitFigures, SizeDocument};

/// Ends of the bands of documents and of bytes.
type Ends = [Option<f64>; 4];

/// The header, and a line for each point. Ratios that are not known are empty. With `--by`, the last column names the host, the content
/// type or the class; it is empty in lines of all requests.
pub fn write(document: &SizeDocument) -> String {
    let mut text =
        "policy,size_bytes,requests,hits,misses,bytes,hit_bytes,dhr,bhr,validated,collapsible,low,high,bhr_low,bhr_high"
            .to_owned();
    if let Some(by) = document.by {
        text.push(',');
        text.push_str(by.name());
    }
    text.push('\n');
    for curve in &document.curves {
        for point in &curve.points {
            let ends = [point.low, point.high, point.bhr_low, point.bhr_high];
            let mut line = |figures: &HitFigures, ends: Ends, name: &str| {
                let (policy, size_bytes) = (curve.policy.name(), point.size_bytes);
                let name = document.by.map_or_else(String::new, |_| format!(",{}", quoted(name)));
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{}{name}", numbers(policy, size_bytes, figures, ends));
            };
            line(&point.figures, ends, "");
            for share in &point.by {
                line(&share.figures, [None; 4], &share.name);
            }
        }
    }
    text
}

fn numbers(policy: &str, size_bytes: u64, f: &HitFigures, ends: Ends) -> String {
    let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| ratio.to_string());
    let [dhr, bhr] = [f.dhr, f.bhr].map(ratio);
    let ends = ends.map(ratio).join(",");
    let [requests, hits, misses] = [f.requests, f.hits, f.misses];
    format!(
        "{policy},{size_bytes},{requests},{hits},{misses},{},{},{dhr},{bhr},{},{},{ends}",
        f.bytes, f.hit_bytes, f.validated, f.collapsible
    )
}
