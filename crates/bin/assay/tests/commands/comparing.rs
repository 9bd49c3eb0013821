//! `assay compare` as people and pipelines use it.

use std::path::Path;

use assay_measurement::histogram::Histogram;
use assay_measurement::interval::RobotInterval;
use assay_measurement::measured::Measured;
use assay_record::dir::RunDir;
use assay_record::run::{PhaseInfo, RUN_SCHEMA, RunInfo, RunVerdict, TargetInfo, WorkloadInfo};
use assay_record::series::SeriesWriter;
use serde_json::Value;

use crate::support::{Assay, read, root};

/// A run of ten seconds, a hundred requests each, all with response times of about so many microseconds.
fn run(path: &Path, seed: u64, us: u64, change: impl Fn(&mut RunInfo)) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    let dir = RunDir::create(path).expect("a run directory");
    let mut writer = SeriesWriter::create(&dir).expect("a series");
    for second in 0..10 {
        let mut interval =
            RobotInterval { start_ms: second * 1000, length_ms: 1000, ..RobotInterval::default() };
        let counts = &mut interval.counts;
        (counts.due, counts.sent, counts.completed, counts.basic) = (100, 100, 100, 100);
        (counts.hits, counts.misses) = (60, 40);
        let mut times = Histogram::new();
        (0..100).for_each(|n| times.record(us + n + seed * 3));
        interval.times.miss.response = times.to_sparse();
        writer.keep(&Measured::Robots(interval.into())).expect("an interval");
    }
    writer.finish().expect("its end");
    let mut info = RunInfo {
        schema: RUN_SCHEMA.into(),
        workload: WorkloadInfo { name: "image".into(), ..WorkloadInfo::default() },
        seed,
        stream_digest: format!("stream-{seed}"),
        target: TargetInfo { name: "10.0.0.7:8080".into(), mode: "reverse".into(), ..TargetInfo::default() },
        phases: vec![PhaseInfo {
            name: "top1".into(),
            planned_start_ms: Some(0),
            planned_end_ms: Some(10_000),
            start_ms: Some(0),
            end_ms: Some(10_000),
            load: (1.0, 1.0),
            recurrence: (1.0, 1.0),
            log_stats: true,
            ..PhaseInfo::default()
        }],
        own_errors: true,
        verdict: RunVerdict::default(),
        finished: true,
        ..RunInfo::default()
    };
    change(&mut info);
    dir.write_info(&info).expect("its head");
}

/// `base/` and `head/` with three runs each; the head's are slower by a third.
fn base_and_head(assay: &Assay) {
    for seed in 1..=3 {
        run(&assay.path(&format!("base/{seed}")), seed, 3000, |_| ());
        run(&assay.path(&format!("head/{seed}")), seed, 4000, |_| ());
    }
}

#[test]
fn a_pipeline_learns_from_the_exit_code_whether_something_got_worse() {
    let assay = Assay::new();
    base_and_head(&assay);
    let said = assay.run(&["compare", "base", "head"]).exits(0);
    assert!(said.stdout.starts_with("head against base\n"), "{}", said.stdout);
    let said = assay.run(&["compare", "base", "head", "--tolerance", "5%"]).exits(99);
    assert!(
        said.stdout.contains("REGRESSED")
            && said.stdout.contains("Response time of complete responses, mean"),
        "{}",
        said.stdout
    );
    assay.run(&["compare", "base", "head", "--tolerance", "50%"]).exits(0);
    assay
        .run(&[
            "compare",
            "base",
            "head",
            "--tolerance",
            "5%",
            "--tolerance",
            "mean=50%",
            "--tolerance",
            "response_by_second_ms=50%",
        ])
        .exits(0);
    assay.run(&["compare", "head", "base", "--tolerance", "5%"]).exits(0);
    assay.run(&["compare", "base/1", "head/1", "--tolerance", "mean=0.5ms"]).exits(99);
    assay
        .run(&["compare", "old=base/1", "old=base/2", "new=head/1", "new=head/2", "--tolerance", "5%"])
        .exits(99);
}

#[test]
fn runs_of_unknown_numbers_are_no_gate_and_runs_of_another_stream_are_no_pass() {
    let assay = Assay::new();
    base_and_head(&assay);
    run(&assay.path("head/4"), 4, 3000, |info| {
        info.verdict.doubts = vec![assay_measurement::doubt::Doubt::serious(
            assay_measurement::doubt::Reason::RoleFailed,
            "gone",
        )];
    });
    assay.run(&["compare", "base", "head", "--tolerance", "5%"]).exits(96);
    assay.run(&["compare", "base", "head"]).exits(0);
    run(&assay.path("other/1"), 1, 3000, |info| info.stream_digest = "another".into());
    let gate = ["compare", "base/1", "other/1", "--tolerance", "5%"];
    let said = assay.run(&gate).exits(1).complains("nothing is known about a regression");
    assert!(
        said.stdout.contains("! stream digest") && said.stdout.contains("not comparable"),
        "{}",
        said.stdout
    );
    assay.run(&[&gate[..], &["--any-stream"]].concat()).exits(0);
}

#[test]
fn the_result_comes_as_markdown_json_and_a_page() {
    let assay = Assay::new();
    base_and_head(&assay);
    let gate = ["compare", "base", "head", "--tolerance", "5%"];
    let said = assay.run(&[&gate[..], &["--markdown", "-o", "comment.md", "--html", "page.html"]].concat());
    let said = said.exits(99).complains("Worse by more than the tolerance");
    assert_eq!(said.stdout, "");
    let comment = read(&assay.path("comment.md"));
    assert!(comment.starts_with("## head against base\n\n> [!CAUTION]\n> **Regressed.**"), "{comment}");
    assert!(comment.contains("<details>"));
    assert!(read(&assay.path("page.html")).contains("head against base"));
    let said = assay.run(&[&gate[..], &["--json"]].concat()).exits(99);
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(document["gate"]["outcome"], "regressed");
    assert_eq!(document["command"][1], "compare");
    assert!(!assay.path("base/comparison.json").exists(), "nothing is written where nothing was requested");
}

#[test]
fn charts_and_numbers_of_both_subjects_are_taken_along() {
    let assay = Assay::new();
    base_and_head(&assay);
    let said = assay.run(&["compare", "base", "head", "--figures", "figures", "--csv", "tables"]).exits(0);
    assert!(said.stderr.contains("figures are in figures"), "{said:?}");
    let rate = read(&assay.path("figures/rate.csv"));
    assert!(rate.contains("rate-0,base,") && rate.contains("rate-0,head,"), "{rate}");
    assert!(read(&assay.path("figures/miss.svg")).starts_with("<svg"), "what is drawn is a picture");
    let lines = |file: &str, with: &str| read(&assay.path(file)).lines().filter(|l| l.contains(with)).count();
    assert_eq!(lines("tables/metrics.csv", ",top1,response_p99_ms,"), 2, "one of each subject");
    assert_eq!(lines("tables/differences.csv", ",top1,response_p99_ms,head,base,"), 1);
    assay.run(&["compare", "base", "head", "--figures", "all.svg"]).exits(2).complains("name a directory");
}

#[test]
fn mistakes_are_said_before_anything_is_compared() {
    let assay = Assay::new();
    base_and_head(&assay);
    assay.run(&["compare"]).exits(2);
    assay.run(&["compare", "nowhere", "base"]).exits(2).complains("nowhere");
    assay.run(&["compare", "base"]).exits(2).complains("one subject only");
    assay.run(&["compare", "base", "head", "--tolerance", "5"]).exits(2).complains("`5%`");
    assay.run(&["compare", "base", "head", "--tolerance", "speed=5%"]).exits(2).complains("throughput");
    assay.run(&["compare", "base", "head", "-o", "no/such/file"]).exits(2).complains("no/such");
}

/// The words of each `assay` command in a workflow's shell lines, those that go on over several lines joined.
fn commands(workflow: &str) -> Vec<Vec<String>> {
    let joined = workflow.replace("\\\n", " ");
    let lines =
        joined.lines().map(str::trim).filter(|line| !line.starts_with('#') && !line.starts_with("- name"));
    lines
        .filter_map(|line| {
            let start = line.find("assay ").filter(|at| *at == 0 || line[..*at].ends_with(['/', ' ']))?;
            let line = line[start..].split(['|', ';', '>', '&']).next()?;
            Some(line.split_whitespace().map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn every_command_of_the_workflow_for_a_hosted_ci_is_understood() {
    let workflow = read(&root().join("contrib/ci/github-actions.yml"));
    let commands: Vec<Vec<String>> = commands(&workflow)
        .into_iter()
        .filter(|words| ["run", "compare", "check"].contains(&words.get(1).map_or("", String::as_str)))
        .collect();
    let of = |name: &str| commands.iter().filter(|words| words[1] == name).count();
    assert!(of("run") >= 1 && of("compare") >= 1, "{commands:?}");
    let assay = Assay::new();
    for words in commands {
        let arguments: Vec<String> = words[1..]
            .iter()
            .map(|word| word.trim_matches('"').replace("$seed", "1").replace("$side", "base"))
            .collect();
        let said = assay.run(&arguments.iter().map(String::as_str).chain(["--help"]).collect::<Vec<_>>());
        // A flag that is not known is found before help is printed.
        said.exits(0);
        let known = assay.run(&[&arguments[0], "--help"]).exits(0).stdout;
        for flag in arguments.iter().filter(|word| word.starts_with("--")) {
            let flag = flag.split('=').next().unwrap_or(flag);
            assert!(known.contains(flag), "`assay {}` knows no {flag}", arguments[0]);
        }
    }
}
