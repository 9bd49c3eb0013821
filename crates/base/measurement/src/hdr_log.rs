//! The histograms of a run, as the tools of HdrHistogram read them.
//!
//! As an interval log, version 1.3: a line per histogram with a tag, when it began, how long it lasted, its largest
//! value, and the histogram itself in the V2 encoding, deflated, in base64. Values are microseconds; the largest value
//! in each line is milliseconds, as in the logs of other tools.

use std::io::{self, Write};

use crate::histogram::{MAX_US, SparseHistogram};

/// Writes an interval log.
#[derive(Debug)]
pub struct HdrLog<W: Write> {
    out: W,
    serializer: Deflate,
}

/// A histogram of the library, for its encodings: three significant digits, up to an hour.
fn of_the_library(values: &SparseHistogram) -> hdrhistogram::Histogram<u64> {
    let mut histogram =
        hdrhistogram::Histogram::new_with_bounds(1, MAX_US, 3).expect("bounds are constant and valid");
    for &(low_us, count) in &values.buckets {
        histogram.saturating_record_n(low_us.min(MAX_US), count);
    }
    histogram
}

/// The library's serializer with its buffers.
struct Deflate(hdrhistogram::serialization::V2DeflateSerializer);

impl std::fmt::Debug for Deflate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deflate")
    }
}

impl<W: Write> HdrLog<W> {
    /// Begins a log. `comments` are put above it, a line each.
    pub fn create(mut out: W, started_unix_ms: u64, comments: &[String]) -> io::Result<Self> {
        writeln!(out, "#[Logged with assay {}]", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "#[Histogram log format version 1.3]")?;
        for comment in comments {
            writeln!(out, "#[{}]", comment.replace(['\n', '\r'], " "))?;
        }
        let start = started_unix_ms as f64 / 1000.0;
        writeln!(out, "#[BaseTime: {start:.3} (seconds since epoch)]")?;
        writeln!(out, "#[StartTime: {start:.3} (seconds since epoch)]")?;
        let heads = ["StartTimestamp", "Interval_Length", "Interval_Max", "Interval_Compressed_Histogram"];
        writeln!(out, "{}", heads.map(|head| format!("\"{head}\"")).join(","))?;
        let serializer = Deflate(hdrhistogram::serialization::V2DeflateSerializer::new());
        Ok(Self { out, serializer })
    }

    /// Writes a histogram with its tag; nothing is written of an empty one.
    pub fn push(
        &mut self,
        tag: &str,
        start_ms: u64,
        length_ms: u64,
        values: &SparseHistogram,
    ) -> io::Result<()> {
        use base64::Engine as _;
        use hdrhistogram::serialization::Serializer as _;

        if values.buckets.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        self.serializer.0.serialize(&of_the_library(values), &mut bytes).map_err(io::Error::other)?;
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        let tag: String = tag
            .chars()
            .map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c })
            .collect();
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let max_ms = values.max_us as f64 / 1000.0;
        writeln!(self.out, "Tag={tag},{:.3},{:.3},{max_ms:.3},{text}", seconds(start_ms), seconds(length_ms))
    }

    /// Hands everything to the system.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
