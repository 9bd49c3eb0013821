//! The histograms of a run that go into an HdrHistogram log, and their tags.

use std::io::{self, Write};

use assay_measurement::hdr_log::HdrLog;
use assay_record::dir::RunDir;

use super::cannot_write;
use crate::error::ReportError;

/// Writes all times of robots and origins as an interval log; values are microseconds. Tags are
/// `<phase>/<side>/<metric>/<class>`: `top1/robots/response/hit`.
pub fn hdr_log(dir: &RunDir, out: &mut dyn Write) -> Result<(), ReportError> {
    let there = dir.read_partial()?;
    let name = |phase: u16| match there.info.phases.get(usize::from(phase)) {
        Some(phase) if !phase.name.is_empty() => phase.name.replace('/', "_"),
        _ => format!("phase{phase}"),
    };
    let write = || -> io::Result<()> {
        let comments = [
            format!("workload {}, target {}", there.info.workload.name, there.info.target.name),
            "values are microseconds; tags are phase/side/metric/class".to_owned(),
        ];
        let mut log = HdrLog::create(out, there.info.started_unix_ms, &comments)?;
        for interval in &there.series.robots {
            let phase = name(interval.phase);
            for (metric, class, values) in interval.times.histograms() {
                let tag = format!("{phase}/robots/{metric}/{class}");
                log.push(&tag, interval.start_ms, interval.length_ms, values)?;
            }
        }
        for interval in &there.series.origins {
            let phase = name(interval.phase);
            for (tag, values) in [("service/all", &interval.service), ("lateness/all", &interval.lateness)] {
                log.push(&format!("{phase}/origins/{tag}"), interval.start_ms, interval.length_ms, values)?;
            }
        }
        log.finish()
    };
    write().map_err(|cause| cannot_write(std::path::Path::new("the log"), cause))
}
