//! Selection of runs that are old enough to be removed. Pure: time is an argument.

use std::time::Duration;

use crate::archive::entry::{ArchiveEntry, ResultState};

/// A run whose files were written to within this time may still go on.
const STILL_GOING: Duration = Duration::from_secs(60);

/// Limits from which on a run is old. Where both are given, a run must exceed both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgeLimits {
    /// Time since the start.
    pub older_than: Option<Duration>,
    /// Number of the latest runs that are kept.
    pub keep: Option<usize>,
}

/// The old ones of a list that has the latest first. Without any condition, none. One that may still go on is never old.
pub fn select_old(entries: &[ArchiveEntry], age: AgeLimits, now_unix_ms: u64) -> Vec<&ArchiveEntry> {
    if age == AgeLimits::default() {
        return Vec::new();
    }
    let limit = |duration: Duration| now_unix_ms.saturating_sub(duration.as_millis() as u64);
    let is_old = |(index, entry): &(usize, &ArchiveEntry)| {
        age.older_than.is_none_or(|duration| entry.started_unix_ms < limit(duration))
            && age.keep.is_none_or(|keep| *index >= keep)
            && !may_go_on(entry, now_unix_ms)
    };
    entries.iter().enumerate().filter(is_old).map(|(_, entry)| entry).collect()
}

/// True for a run or an experiment that may be in progress at this time.
pub fn may_go_on(entry: &ArchiveEntry, now_unix_ms: u64) -> bool {
    let silent_ms = now_unix_ms.saturating_sub(entry.written_unix_ms);
    entry.state == ResultState::Unfinished && silent_ms < STILL_GOING.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::entry::ResultKind;

    const NOW: u64 = 1_000_000_000;

    fn entry(name: &str, age_s: u64, state: ResultState) -> ArchiveEntry {
        ArchiveEntry {
            name: name.into(),
            path: name.into(),
            kind: ResultKind::Run,
            title: String::new(),
            started_unix_ms: NOW - age_s * 1000,
            state,
            bytes: 0,
            written_unix_ms: NOW - age_s * 1000,
            page: None,
        }
    }

    fn names(age: AgeLimits) -> Vec<String> {
        let entries = [
            entry("running", 10, ResultState::Unfinished),
            entry("today", 3_600, ResultState::Fine),
            entry("killed", 90_000, ResultState::Unfinished),
            entry("old", 100_000, ResultState::Failed),
        ];
        select_old(&entries, age, NOW).into_iter().map(|entry| entry.name.clone()).collect()
    }

    #[test]
    fn old_is_what_began_long_ago_and_is_not_among_the_latest() {
        let day = Some(Duration::from_secs(86_400));
        assert_eq!(names(AgeLimits { older_than: day, keep: None }), ["killed", "old"]);
        assert_eq!(names(AgeLimits { older_than: None, keep: Some(2) }), ["killed", "old"]);
        assert_eq!(names(AgeLimits { older_than: day, keep: Some(3) }), ["old"]);
        assert_eq!(names(AgeLimits::default()), Vec::<String>::new());
    }

    #[test]
    fn a_run_in_progress_is_never_old() {
        assert_eq!(names(AgeLimits { older_than: None, keep: Some(0) }), ["today", "killed", "old"]);
    }
}
