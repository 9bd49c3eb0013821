//! The action for GitHub and the component for GitLab, run by a stand-in for their runners: the shell steps as they are
//! written, with the inputs filled in, on two checkouts of the sample repository.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Assay, Said, read, root};
use crate::workflows::{scripts_of_component, steps_of_action};

/// Checkouts of the sample repository as `base` and `head`, and a `gh` that keeps what it is given.
fn checkouts(head_args: &str) -> Assay {
    let assay = Assay::new();
    for side in ["base", "head"] {
        std::fs::create_dir(assay.path(side)).expect("a writable directory");
        let sample = root().join("contrib/ci/sample/assay.args");
        std::fs::copy(sample, assay.path(side).join("assay.args")).expect("the sample");
    }
    std::fs::write(assay.path("head/assay.args"), head_args).expect("a writable directory");
    std::fs::create_dir(assay.path("bin")).expect("a writable directory");
    let gh = assay.path("bin/gh");
    std::fs::write(&gh, "#!/bin/sh\necho \"$@\" > gh.txt\n").expect("a script");
    std::fs::set_permissions(&gh, std::fs::Permissions::from_mode(0o755)).expect("a script");
    assay
}

fn shell(assay: &Assay, script: &str, env: &BTreeMap<String, String>) -> Said {
    let binary = Path::new(env!("CARGO_BIN_EXE_assay")).parent().expect("a folder");
    let (own, path) = (assay.path("bin"), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    // As GitHub runs the steps of an action.
    command
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
        .current_dir(assay.directory.path());
    command
        .env("PATH", format!("{}:{}:{path}", binary.display(), own.display()))
        .envs(env)
        .stdin(Stdio::null());
    command.output().expect("bash").into()
}

#[test]
fn a_pull_request_that_shrinks_the_cache_is_failed_with_a_comment() {
    let assay = checkouts("--proxy builtin --memory 100KB");
    let given = BTreeMap::from([
        ("inputs.workload", "demo"),
        ("inputs.length", "4s"),
        ("inputs.repetitions", "1"),
        ("inputs.tolerance", "dhr=1pt"),
        ("github.event.pull_request.number", "7"),
        ("github.repository", "you/edge"),
    ]);
    let mut codes = BTreeMap::new();
    for step in steps_of_action(&given) {
        let mut env = step.env.clone();
        for file in ["GITHUB_PATH", "GITHUB_STEP_SUMMARY"] {
            env.insert(file.into(), assay.path(file).display().to_string());
        }
        let said = shell(&assay, &step.script, &env);
        codes.insert(step.name.clone(), (said.code, said));
    }
    assert_eq!(codes["Install Assay"].0, Some(0), "{codes:?}");
    assert_eq!(codes["Show the comparison"].0, Some(0), "{codes:?}");
    let junit = read(&assay.path("assay-results/junit.xml"));
    let summary = read(&assay.path("GITHUB_STEP_SUMMARY"));
    assert!(summary.contains("## head against base"), "{summary}");
    assert!(read(&assay.path("gh.txt")).starts_with("pr comment 7 --repo you/edge --edit-last"));
    match codes["Run both and compare"].0 {
        Some(99) => assert!(junit.contains("<failure message=\"worse by"), "{junit}"),
        // A machine that is busy with other tests may leave the numbers of so short a run unknown.
        Some(96) => assert!(junit.contains("<skipped"), "{junit}"),
        _ => panic!("{codes:?}"),
    }

    // GitLab's job runs the same lines. Runs that are kept are not run again, so only the comparison is.
    let scripts = scripts_of_component();
    assert_eq!(scripts.len(), 3, "{scripts:?}");
    let env = BTreeMap::from([
        ("REPETITIONS", "1"),
        ("TOLERANCE", "dhr=100pt"),
        ("WORKLOAD", "demo"),
        ("LENGTH", "4s"),
    ]);
    let env = env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let said = shell(&assay, &scripts[2], &env);
    assert!(matches!(said.code, Some(0 | 96)), "{said:?}");
}

#[test]
fn a_run_says_what_was_required_of_it_as_junit() {
    let assay = Assay::new();
    let quick = ["run", "demo", "--duration", "1s", "--rate", "20", "--no-report"];
    let said = assay.run(&[&quick[..], &["--require", "requests == 0", "--junit", "junit.xml"]].concat());
    said.exits(99);
    let junit = read(&assay.path("junit.xml"));
    assert!(junit.contains("<testsuite name=\"demo through builtin\" tests=\"2\" failures=\"1\""), "{junit}");
    assert!(junit.contains("name=\"requests == 0\""), "{junit}");
}
