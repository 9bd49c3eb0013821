//! Hint after the first run, for people only, and once.

use std::io::IsTerminal;
use std::path::Path;

const HINT: &str = "\
next: assay open                        the report in the browser
      assay run demo --proxy varnish    the same through another proxy (`assay proxies` lists them)
      assay init                        a workload or an experiment of your own
      assay doctor                      what this machine can measure, and what it lacks
";

/// The hint, where somebody reads it who has not had it before: after the first run in its directory, on a terminal, and not
/// in continuous integration.
pub fn after_run(run_dir: &Path) -> Option<&'static str> {
    let is_read = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    (is_read && !in_ci && is_first(run_dir)).then_some(HINT)
}

/// True when no other run or experiment is beside this one.
fn is_first(run_dir: &Path) -> bool {
    let Some(parent) = run_dir.parent() else { return false };
    let Ok(entries) = std::fs::read_dir(parent) else { return false };
    let is_result = |path: &Path| path.join("run.json").is_file() || path.join("experiment.json").is_file();
    let mut others = entries.flatten().map(|entry| entry.path()).filter(|path| path != run_dir);
    !others.any(|path| is_result(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_run_in_a_directory_is_followed_by_the_hint() {
        let tmp = tempfile::tempdir().unwrap();
        let run = |name: &str| {
            let dir = tmp.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("run.json"), "{}").unwrap();
            dir
        };
        let first = run("first");
        std::fs::create_dir(tmp.path().join("calibrations")).unwrap();
        assert!(is_first(&first));
        let second = run("second");
        assert!(!is_first(&first) && !is_first(&second));
    }

    #[test]
    fn nobody_reads_a_hint_in_a_pipe() {
        // The output of tests is captured, so standard output is no terminal, or a person sees the tests.
        if !std::io::stdout().is_terminal() {
            assert_eq!(after_run(Path::new("runs/one")), None);
        }
    }
}
