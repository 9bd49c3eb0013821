//! Workloads in plain words.

use assay_workload::Timeline;
use assay_workload::explain::explain;

use crate::fixtures;

#[test]
fn a_listing_is_explained_with_its_numbers() {
    let workload = fixtures::mixed_listing();
    let text = explain(&workload, &Timeline::new(&workload).unwrap()).join("\n");
    for part in [
        "1,600 robots, 1 origin, 7 phases",
        "1/s each, 1600/s together at full load",
        "recurrence 95%, uniform popularity, 10% of launches to the robot's private world",
        "requests: Basic 70%, Ims200 10%, Ims304 10%, Reload 10%; methods: GET 70%, POST 15%, HEAD 15%",
        "think time 0.3 ± 0.1 s",
        "content \"HTML\": 8.5 KB on average, 90% cachable, modified every 7 days, a page with",
        "working set: frozen after 26.7 min, in phase \"top1\"",
        "phase \"top1\": 60 min (from 18.6 min to 78.6 min), load 20%; about 1,152,000 requests (peak 320/s)",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}
