//! The curves as comma-separated values: a line for each policy and size.

use std::fmt::Write as _;

use crate::document::Document;

/// The header, and a line for each point. Ratios that are not known are empty.
pub fn write(document: &Document) -> String {
    let mut text = "policy,size_bytes,requests,hits,misses,bytes,hit_bytes,dhr,bhr,validated\n".to_owned();
    let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| ratio.to_string());
    for curve in &document.curves {
        for point in &curve.points {
            let f = &point.figures;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{}",
                curve.policy.name(),
                point.size_bytes,
                f.requests,
                f.hits,
                f.misses,
                f.bytes,
                f.hit_bytes,
                ratio(f.dhr),
                ratio(f.bhr),
                f.validated
            );
        }
    }
    text
}
