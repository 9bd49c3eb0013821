//! Runs that cannot be, and are refused before anything starts.

use crate::samples::UNSCHEDULED;
use crate::support::Assay;

#[test]
fn a_target_that_does_not_speak_http_2_is_refused_before_anything_starts() {
    let assay = Assay::new();
    for (arguments, why) in [
        (&["--forward", "--origin-http", "2"][..], "the built-in proxy is to be a forward proxy"),
        (&["--forward", "--robot-http", "2"], "the built-in proxy is to be a forward proxy"),
        (&["--proxy", "squid", "--robot-http", "2"], "Squid does not speak HTTP/2 to clients"),
        (&["--proxy", "varnish", "--origin-http", "2"], "sends requests to origins over HTTP/1.1"),
        (&["--direct", "--robot-http", "2"], "must speak the same version of HTTP"),
        (&["--robot-http", "3"], "write 1.0, 1.1 or 2"),
        (&["--robot-http", "2", "--streams", "10"], "this workload has none of them"),
    ] {
        let all = [&["run", "demo", "--rehearse", "3s", "--run-dir", "none"], arguments].concat();
        let said = assay.run(&all).exits(2);
        // A proxy that is not installed is refused as such.
        assert!(said.stderr.contains(why) || said.stderr.contains("was not found"), "{why}: {}", said.stderr);
        assert!(!assay.path("none").exists(), "{why}");
    }
}

#[test]
fn a_schedule_without_an_end_cannot_be_rehearsed_or_be_part_of_an_experiment() {
    let assay = Assay::new();
    let name = assay.file("plain.pg", UNSCHEDULED);
    assay.run(&["check", name, "--rehearse", "5s"]).exits(2).complains("has no end").complains("--duration");
    let experiment = assay.file("x.toml", "workloads = [\"plain.pg\"]\n[[proxy]]\nname = \"builtin\"\n");
    assay.run(&["lab", experiment]).exits(2).complains("would ever end");
}
