//! What is taken along is what the run directory holds, in the eyes of another program.

use assay_report::export;
use assay_report::summary::Summary;

use assay_testbed::python;

use crate::python::run;
use crate::synthetic::{self, Story};

/// Reads the log with HdrHistogram's own Python library and adds up what it finds.
const DECODE: &str = r"
import json, sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600000000, 3))
sums, tags = {}, 0
while True:
    one = reader.get_next_interval_histogram()
    if one is None:
        break
    tags += 1
    into = sums.setdefault(one.get_tag(), HdrHistogram(1, 3600000000, 3))
    into.add(one)
print(json.dumps({tag: [h.get_total_count(), h.get_max_value()] for tag, h in sums.items()}))
";

#[test]
fn the_log_of_times_is_read_by_hdrhistograms_own_tools() {
    let Some(python) = python() else { return };
    let run_dir = synthetic::run(Story::Good);
    let mut out = Vec::new();
    export::hdr_log(&run_dir.dir, &mut out).unwrap();
    let place = tempfile::tempdir().unwrap();
    let (log, script) = (place.path().join("times.hlog"), place.path().join("decode.py"));
    std::fs::write(&log, out).unwrap();
    std::fs::write(&script, DECODE).unwrap();
    let text = run(&python, &[script.as_os_str(), log.as_os_str()], place.path());
    let decoded: serde_json::Value = serde_json::from_str(&text).unwrap();
    let summary = Summary::from_run(&run_dir.dir).unwrap();
    for phase in &summary.phases {
        let hits = &phase.figures.response_time_ms.hit;
        let found = &decoded[format!("{}/robots/response/hit", phase.name)];
        assert_eq!(found[0].as_u64(), Some(hits.count), "{}", phase.name);
        // Its buckets are as wide as ours; its percentiles round ranks otherwise.
        let (theirs, ours) = (found[1].as_f64().unwrap(), hits.max.unwrap() * 1000.0);
        assert!((theirs - ours).abs() <= ours / 1000.0 + 1.0, "{}: {theirs} and {ours}", phase.name);
    }
}
