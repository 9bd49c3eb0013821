//! Two tiers of tests, which the layout shows. The first depends on no clock: what waits for an instant or measures one belongs to
//! `tests/real`.

use std::path::Path;

use crate::architecture::{code_lines, files, is_test, packages, pure_crates, shown, test_modules};
use crate::support::{read, root};

/// What makes the outcome of a test depend on when something happens.
const TIMED: [&str; 8] = [
    "Instant::now",
    "thread::sleep(",
    "time::sleep(",
    "sleep_until(",
    ".elapsed(",
    "kill(",
    "kill_process(",
    "SIGSTOP",
];

/// Where that cannot change the outcome: the beginning of a path below `crates`, and why.
const HARMLESS: [(&str, &str); 21] = [
    ("bin/assay/tests/commands/experiments.rs", "ends a process of its own and waits until it is gone"),
    ("bin/assay/tests/commands/replaying.rs", "a limit that ends a hang"),
    ("bin/assay/tests/commands/support.rs", "a limit that ends a hang"),
    ("bin/assay/tests/commands/tiers.rs", "it names what it looks for"),
    ("roles/load/src/origin/fault_tests.rs", "lower bounds"),
    ("run/host/src/metrics/network.rs", "an instant as an argument"),
    ("run/host/src/metrics/pacer.rs", "an instant as an argument"),
    ("run/host/src/metrics/states.rs", "an instant as an argument"),
    ("run/host/src/owner.rs", "ends a process of its own"),
    ("run/lab/tests/it/killed.rs", "a limit that ends a hang; waits for conditions"),
    ("roles/load/tests/it/node/nodes.rs", "a lower bound"),
    ("net/net/src/listen.rs", "less time only means fewer bytes, and the test bounds them from above"),
    ("net/net/src/connection_limit.rs", "a lower bound"),
    ("net/net/src/timer/mod.rs", "a lower bound"),
    ("roles/load/tests/it/replay/replaying.rs", "a limit that ends a hang"),
    ("run/report/src/serve/report_cache.rs", "a lower bound"),
    ("run/report/tests/it/serve/requested.rs", "a limit that ends a hang"),
    ("roles/spe/src/multiplier/deferred.rs", "an instant as an argument"),
    ("roles/switch/tests/it/harness.rs", "a limit that ends a hang"),
    ("roles/switch/tests/it/layer4.rs", "closes a server of its own"),
    ("roles/switch/tests/it/leaving.rs", "a server that is slow, by which no outcome is decided"),
];

/// The part of a source file that is compiled for tests of the first tier.
fn first_tier(file: &Path, text: &str, is_module_of_tests: bool) -> String {
    let tests = if is_test(file) || is_module_of_tests {
        text
    } else {
        text.split_once("#[cfg(test)]\nmod tests {").map_or("", |(_, tests)| tests)
    };
    let mut kept = String::new();
    let mut second_tier_indent = None;
    for line in code_lines(tests) {
        let indent = line.len() - line.trim_start().len();
        if line.trim_start().starts_with("mod real_tests {") {
            second_tier_indent = Some(indent);
        }
        if second_tier_indent.is_none() {
            kept.push_str(line);
            kept.push('\n');
        } else if line.trim() == "}" && second_tier_indent == Some(indent) {
            second_tier_indent = None;
        }
    }
    kept
}

/// Whether a statement binds a port and lets it go at once: any other program may take it before it is bound again.
fn frees_a_port(code: &str) -> bool {
    code.split(';').any(|statement| statement.contains("bind(") && statement.contains(".local_addr()"))
}

#[test]
fn tests_of_the_first_tier_read_no_clock_and_wait_for_no_instant() {
    let crates = root().join("crates");
    let sources = files(&[".rs"]);
    let modules: Vec<_> = sources.iter().flat_map(|file| test_modules(&read(file))).collect();
    let pure = pure_crates();
    let mut wrong = Vec::new();
    for file in &sources {
        let Ok(path) = file.strip_prefix(&crates) else { continue };
        let place = path.display().to_string();
        let name = place.split('/').nth(1).unwrap_or_default();
        let is_second_tier = place.contains("/tests/real/") || place.contains("/examples/");
        // Limits that end a hang.
        let is_testbed = place.starts_with("tests/");
        if is_second_tier
            || is_testbed
            || pure.iter().any(|pure| pure == name)
            || HARMLESS.iter().any(|(begin, _)| place.starts_with(begin))
        {
            continue;
        }
        let is_module_of_tests =
            file.file_stem().is_some_and(|name| modules.iter().any(|module| name == module.as_str()));
        let code = first_tier(file, &read(file), is_module_of_tests);
        wrong
            .extend(TIMED.iter().filter(|word| code.contains(**word)).map(|word| format!("{place}: {word}")));
        if frees_a_port(&code) {
            wrong.push(format!("{place}: a port that is bound and let go at once"));
        }
    }
    assert!(wrong.is_empty(), "move it to tests/real, or give a reason here: {wrong:#?}");
}

#[test]
fn the_second_tier_of_unit_tests_is_left_out() {
    let text = "fn a() { sleep(1) }\n#[cfg(test)]\nmod tests {\n    fn b() {}\n    mod real_tests {\n        fn c() { sleep(2) }\n    }\n    fn d() {}\n}\n";
    let kept = first_tier(Path::new("x.rs"), text, false);
    assert!(kept.contains("fn b") && kept.contains("fn d") && !kept.contains("sleep"), "{kept}");
    assert!(frees_a_port("let a = TcpListener::bind(b).unwrap().local_addr().unwrap();"));
    assert!(!frees_a_port("let l = TcpListener::bind(b).unwrap(); let a = l.local_addr().unwrap();"));
}

/// A tier is chosen by the names of targets (`.config/nextest.toml`): `real` is the second, all others are the first.
#[test]
fn every_integration_test_is_of_a_target_of_one_of_the_two_tiers() {
    let mut targets = Vec::new();
    for package in packages() {
        let tests = std::fs::read_dir(package.directory.join("tests"));
        for entry in tests.into_iter().flatten().flatten().map(|entry| entry.path()) {
            if entry.join("main.rs").exists() || entry.extension().is_some_and(|extension| extension == "rs")
            {
                targets.push(shown(&entry));
            }
        }
    }
    let has_tier = |target: &str| {
        ["/tests/it", "/tests/real"].iter().any(|name| target.ends_with(name))
            || target == "crates/bin/assay/tests/commands"
    };
    let wrong: Vec<_> = targets.iter().filter(|target| !has_tier(target)).collect();
    assert!(targets.len() > 10 && wrong.is_empty(), "{targets:?}: call them `it` or `real`: {wrong:?}");
}
