//! A run directory that was damaged, cut short or written by a newer version gives a report of what is there, and says
//! what is missing.

use std::path::{Path, PathBuf};

use assay_base::random::Rng;
use assay_record::dir::RunDir;
use assay_record::missing::Gap;
use assay_report::headline::RunConclusion;
use assay_report::html;
use assay_report::require::Decision;
use assay_report::summary::{Figures, Mood, Summary, Topic};
use assay_report::terminal::{self, Style};
use proptest::prelude::*;

use crate::synthetic::{self, Story};

const STYLE: Style = Style { colour: false, width: 100 };

/// Every file right in the directory.
fn files(dir: &RunDir) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|p| p.is_file())
        .collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The report, in all of its forms, of whatever is there; it must name `file`.
fn report_names(dir: &RunDir, file: &str, what: &str) {
    let summary = Summary::from_run(dir).unwrap_or_else(|error| panic!("{file} {what}: {error}"));
    let named = summary.missing.iter().any(|missing| missing.file == file);
    assert!(named, "{file} {what}: {:?}", summary.missing);
    let text = terminal::render(&summary, None, &STYLE);
    assert!(text.contains(file), "{file} {what}:\n{text}");
    assert!(summary.partial);
}

#[test]
fn a_file_that_is_cut_changed_or_gone_is_named_in_the_report_of_what_is_there() {
    let run = synthetic::make(Story::Good, 2);
    let mut dice = Rng::new(6);
    for path in files(&run.dir) {
        let file = name(&path);
        if file == "SHA256SUMS" {
            continue;
        }
        let whole = std::fs::read(&path).unwrap();
        let at = dice.next_u64() as usize % whole.len();
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (dice.next_u64() % 8);
        for (what, bytes) in [("cut", &whole[..at]), ("changed", &flipped[..])] {
            std::fs::write(&path, bytes).unwrap();
            report_names(&run.dir, &file, what);
        }
        std::fs::remove_file(&path).unwrap();
        report_names(&run.dir, &file, "gone");
        if file == "robots.parquet" || file == "run.json" {
            let page = std::fs::read_to_string(html::write(&run.dir).unwrap()).unwrap();
            assert!(page.contains(&format!("{file} is missing")), "{file}");
            std::fs::remove_file(run.dir.report_path()).unwrap();
            std::fs::remove_file(run.dir.summary_path()).unwrap();
        }
        std::fs::write(&path, &whole).unwrap();
    }
    let summary = Summary::from_run(&run.dir).unwrap();
    assert_eq!((summary.missing, summary.partial), (Vec::new(), false), "whole again");
}

#[test]
fn of_several_files_that_are_gone_each_is_named() {
    let run = synthetic::make(Story::Good, 2);
    let gone: Vec<PathBuf> =
        files(&run.dir).into_iter().filter(|path| name(path).ends_with("parquet")).collect();
    for path in &gone {
        std::fs::remove_file(path).unwrap();
    }
    for path in &gone {
        report_names(&run.dir, &name(path), "gone with others");
    }
}

#[test]
fn without_counts_by_status_nobody_says_how_many_bodies_were_checked() {
    let run = synthetic::make(Story::Good, 2);
    let correctness = || {
        let summary = Summary::from_run(&run.dir).unwrap();
        let found = summary.verdict.into_iter().find(|finding| finding.about == Topic::Correctness).unwrap();
        found.text
    };
    assert!(correctness().contains("the bodies of "), "{}", correctness());
    std::fs::remove_file(run.dir.path().join("classes.parquet")).unwrap();
    assert!(correctness().contains("bodies were checked"), "{}", correctness());
    assert!(!correctness().contains("the bodies of"), "{}", correctness());
}

#[test]
fn a_run_without_checksums_never_brings_the_reader_down() {
    // Nothing says that a file was changed, so anything may come out, but an end.
    let run = synthetic::make(Story::Direct, 2);
    std::fs::remove_file(run.dir.checksums_path()).unwrap();
    let mut dice = Rng::new(7);
    for path in files(&run.dir) {
        let whole = std::fs::read(&path).unwrap();
        for _ in 0..3 {
            let mut bytes = whole.clone();
            for _ in 0..=dice.next_u64() % 4 {
                let at = dice.next_u64() as usize % bytes.len();
                bytes[at] = dice.next_u64() as u8;
            }
            std::fs::write(&path, &bytes).unwrap();
            match Summary::from_run(&run.dir) {
                Ok(summary) => drop(terminal::render(&summary, None, &STYLE)),
                Err(error) => assert!(error.to_string().contains(&name(&path)), "{error}"),
            }
        }
        std::fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn without_what_the_robots_counted_the_times_are_still_there_and_nobody_is_praised() {
    let run = synthetic::run(Story::Good);
    let whole = Summary::from_run(&run.dir).unwrap();
    std::fs::remove_file(run.dir.path().join("robots.parquet")).unwrap();
    let summary = Summary::from_run(&run.dir).unwrap();
    // How well they are known depends on what robots counted.
    let times = |figures: &Figures| {
        let all = &figures.response_time_ms.all;
        (all.count, all.mean, all.p50, all.p90, all.p99, all.p999, all.max)
    };
    assert_eq!(times(&summary.total), times(&whole.total));
    assert_eq!(times(&summary.phases[3].figures), times(&whole.phases[3].figures));
    for topic in [Topic::Speed, Topic::Savings, Topic::Correctness, Topic::Trust] {
        let finding = summary.verdict.iter().find(|finding| finding.about == topic).unwrap();
        assert_ne!(finding.mood, Mood::Good, "{finding:?}");
    }
}

#[test]
fn what_is_read_of_a_file_that_is_lost_is_undecided() {
    let run = synthetic::run(Story::Good);
    let mut info = run.dir.read_info().unwrap();
    info.requirements =
        ["errors(stale) == 0", "dhr > 0", "offload > 0", "p50 > 0ms"].map(str::to_owned).into();
    std::fs::write(run.dir.info_path(), serde_json::to_string(&info).unwrap()).unwrap();
    std::fs::remove_file(run.dir.checksums_path()).unwrap();
    let (held, undecided) = (Some(Decision::Held), Some(Decision::Undecided));
    for (file, decisions) in [
        ("errors.parquet", [undecided, held, held, held]),
        ("origins.parquet", [undecided, held, undecided, held]),
        ("robots.parquet", [undecided, undecided, undecided, held]),
    ] {
        let path = run.dir.path().join(file);
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let summary = Summary::from_run(&run.dir).unwrap();
        let found: Vec<_> = summary.requirements.iter().map(|one| one.decision).collect();
        assert_eq!(found, decisions, "{file}");
        let conclusion = summary.conclusion();
        assert!(
            matches!(conclusion, RunConclusion::Undecided | RunConclusion::NothingMeasured),
            "{file}: {conclusion:?}"
        );
        let found = summary.verdict.iter().find(|finding| finding.about == Topic::Correctness).unwrap();
        assert_eq!(found.mood, Mood::Doubtful, "{file}: {found:?}");
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_run_of_a_newer_version_is_read_as_far_as_it_is_understood() {
    let run = synthetic::run(Story::Good);
    let path = run.dir.info_path();
    let mut head: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    head["schema"] = "assay-run/9".into();
    head["weather"] = "fine".into();
    head["verdict"]["doubts"] = serde_json::json!([{"reason": "comet", "seen": "a comet"}]);
    std::fs::write(&path, head.to_string()).unwrap();
    std::fs::copy(run.dir.path().join("stalls.parquet"), run.dir.path().join("comets.parquet")).unwrap();
    let summary = Summary::from_run(&run.dir).unwrap();
    assert!(!summary.partial, "nothing is lost");
    let unknown: Vec<&str> = summary.missing.iter().map(|missing| missing.file.as_str()).collect();
    assert_eq!(unknown, ["run.json", "comets.parquet"]);
    assert!(summary.missing.iter().all(|missing| missing.gap == Gap::Unknown));
    let text = terminal::render(&summary, None, &STYLE);
    assert!(text.contains("assay-run/9") && text.contains("comets.parquet"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_that_breaks_off_or_is_damaged_anywhere_is_read_around_it(
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let run = synthetic::run(Story::Killed);
        let path = run.dir.journal_path();
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole[..cut.index(whole.len() - 1) + 1].to_vec();
        let at = at.index(bytes.len());
        let changed = bytes[at] != byte;
        bytes[at] = byte;
        std::fs::write(&path, &bytes).unwrap();
        let summary = Summary::from_run(&run.dir).unwrap();
        prop_assert!(summary.unfinished && summary.partial);
        let lines = bytes.split_inclusive(|b| *b == b'\n').filter(|line| line.ends_with(b"\n"));
        let bad = lines.filter(|line| serde_json::from_slice::<serde_json::Value>(line).is_err()).count();
        let named = summary.missing.iter().any(|missing| missing.file == "journal.jsonl");
        // A change within a line may leave it good JSON.
        prop_assert!(named || bad == 0, "{changed} {:?}", summary.missing);
    }
}
