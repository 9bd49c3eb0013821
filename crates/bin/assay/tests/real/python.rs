//! The package for Python (`contrib/python`): its own tests, its types, and its wheel in an environment that has nothing else.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Assay, Said, root};
use assay_testbed::python;

const PROGRAM: &str = env!("CARGO_BIN_EXE_assay");

/// A command in the package's directory, or below the test's own. Nothing is written into the tree.
fn command(program: &Path, arguments: &[&str], within: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(within).stdin(Stdio::null()).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn said(mut command: Command) -> Said {
    Said::from(command.output().expect("a Python"))
}

#[test]
fn the_package_passes_its_tests_with_pandas_and_with_polars() {
    let Some(python) = python() else { return };
    let (assay, package) = (Assay::new(), root().join("contrib/python"));
    let base = format!("--basetemp={}", assay.path("pytest").display());
    let tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", &base];
    let mut tests = command(&python, &tests, &package);
    tests.env("ASSAY_BINARY", PROGRAM);
    let passed = said(tests).exits(0);
    assert!(passed.stdout.contains(" passed") && !passed.stdout.contains("skipped"), "{passed:?}");
}

#[test]
fn the_package_is_typed() {
    let Some(python) = python() else { return };
    let (assay, package) = (Assay::new(), root().join("contrib/python"));
    let cache = format!("--cache-dir={}", assay.path("mypy").display());
    said(command(&python, &["-m", "mypy", &cache], &package)).exits(0);

    // A use that is wrong is seen by who installs it, too.
    assay.file("wrong.py", "import assay\nassay.run(1, rehearse=60)\n");
    let mut wrong = command(&python, &["-m", "mypy", &cache, "wrong.py"], assay.directory.path());
    wrong.env("MYPYPATH", package.join("src"));
    let wrong = said(wrong).exits(1);
    assert!(wrong.stdout.contains("arg-type"), "{wrong:?}");
}

#[test]
fn the_wheel_has_the_program_and_works_in_an_empty_environment() {
    let Some(python) = python() else { return };
    let assay = Assay::new();
    let directory = assay.directory.path();
    // As it is packaged: without symbols, which are most of it here.
    let strip = ["--strip-all", PROGRAM, "program"];
    said(command(Path::new("objcopy"), &strip, directory)).exits(0);
    std::fs::create_dir(assay.path("wheels")).expect("a directory");
    let script = root().join("scripts/dist/wheel.sh");
    let mut wheel = command(&script, &["program", "wheels"], directory);
    wheel.env("MATURIN", python.with_file_name("maturin"));
    said(wheel).exits(0);
    let wheels: Vec<String> = std::fs::read_dir(assay.path("wheels"))
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path().display().to_string())
        .collect();
    let [wheel] = wheels.as_slice() else { panic!("not one wheel: {wheels:?}") };
    assert!(wheel.contains(&format!("assay_bench-{}-py3-none-", env!("CARGO_PKG_VERSION"))), "{wheel}");

    said(command(&python, &["-m", "venv", "--without-pip", "empty"], directory)).exits(0);
    let pip = ["-m", "pip", "--disable-pip-version-check", "--python", "empty/bin/python"];
    let install = [&pip[..], &["install", "--quiet", "--no-index", "--no-deps", wheel]].concat();
    said(command(&python, &install, directory)).exits(0);
    let program = "import assay; print(assay.program()); print(assay.version()['version'])";
    let run = "run = assay.run('demo', duration='1s', rate=20, no_report=True); print(run.summary['total']['completed'])";
    let script = format!("{program}; {run}");
    let mut installed = command(&assay.path("empty/bin/python"), &["-c", &script], directory);
    // No other program can be found.
    installed.env_remove("ASSAY_BINARY").env("PATH", "/nonexistent");
    let printed = said(installed).exits(0).stdout;
    let [program, version, completed] = printed.lines().collect::<Vec<_>>()[..] else { panic!("{printed}") };
    assert!(Path::new(program).ends_with("empty/bin/assay"), "{program}");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    assert!(completed.parse::<u64>().is_ok_and(|completed| completed > 0), "{completed}");
}
