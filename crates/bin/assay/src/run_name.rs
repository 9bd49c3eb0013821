//! The place of a run directory when the user names none. `runs/<workload>-<proxy>-<date>-<time>`; an experiment:
//! `runs/<name>-<date>-<time>`; an evaluation: `spe/<proxies>-<date>-<time>`; a replay through a proxy:
//! `replays/<log>-<proxy>-<date>-<time>`.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_report::calendar::Utc;

/// Directory of runs and experiments.
pub const RUNS: &str = "runs";
/// Directory of evaluations of several proxies at once.
const EVALUATIONS: &str = "spe";
/// Directory of replays through a proxy.
const REPLAYS: &str = "replays";
/// Most letters of the name of one: it is made of as many names as there are proxies.
const NAME_LETTERS: usize = 60;

/// A directory that is not there yet, for a run.
pub fn fresh(workload: &str, target: &str) -> PathBuf {
    dated(&format!("{}-{}", plain(workload), plain(target)))
}

/// A directory that is not there yet, for an experiment.
pub fn fresh_experiment(name: &str) -> PathBuf {
    dated(&plain(name))
}

/// A directory that is not there yet, for an evaluation of several proxies at once.
pub fn fresh_evaluation(name: &str) -> PathBuf {
    let short: String = plain(name).chars().take(NAME_LETTERS).collect();
    dated_in(EVALUATIONS, &short)
}

/// A directory that is not there yet, for a log that goes through a proxy.
pub fn fresh_replay(log: &str, proxy: &str) -> PathBuf {
    dated_in(REPLAYS, &format!("{}-{}", plain(log), plain(proxy)))
}

fn dated(name: &str) -> PathBuf {
    dated_in(RUNS, name)
}

fn dated_in(parent: &str, name: &str) -> PathBuf {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let name = format!("{name}-{}", stamp(now_s));
    let named = |suffix: String| Path::new(parent).join(format!("{name}{suffix}"));
    let more = (2..).map(|n| named(format!("-{n}")));
    std::iter::once(named(String::new()))
        .chain(more)
        .find(|path| !path.exists())
        .unwrap_or_else(|| named(String::new()))
}

/// Letters that need no quoting in a shell.
fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '_' };
    let plain: String = name.chars().map(letter).collect();
    if plain.is_empty() { "run".into() } else { plain }
}

/// `YYYYMMDD-HHMMSS` of a Unix time (UTC).
fn stamp(unix_s: u64) -> String {
    let Utc { year, month, day, hour, minute, second } = Utc::from_unix_s(unix_s);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_date_and_the_time() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_399), "20000228-235959");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_767_323_045), "20260102-030405");
    }

    #[test]
    fn a_name_needs_no_quoting() {
        assert_eq!(plain("10.1.2.3:80"), "10.1.2.3_80");
        assert_eq!(plain("a b/ü"), "a_b__");
    }

    #[test]
    fn a_fresh_directory_is_not_there_yet() {
        let path = fresh("demo", "builtin");
        assert!(!path.exists() && path.starts_with("runs"), "{path:?}");
    }
}
