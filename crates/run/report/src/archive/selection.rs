//! Which runs are old enough to be removed. Pure: time is an argument.

use std::time::Duration;

use crate::archive::entry::{Entry, State};

/// A run whose files were written to within this time may still go on.
const STILL_GOING: Duration = Duration::from_secs(60);

/// What makes a run old. Where both are given, a run must be old by both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Age {
    /// It began longer ago than this.
    pub older_than: Option<Duration>,
    /// It is not among this many latest ones.
    pub keep: Option<usize>,
}

/// The old ones of a list that has the latest first. Without any condition, none. One that may still go on is never old.
pub fn old(entries: &[Entry], age: Age, now_unix_ms: u64) -> Vec<&Entry> {
    if age == Age::default() {
        return Vec::new();
    }
    let limit = |duration: Duration| now_unix_ms.saturating_sub(duration.as_millis() as u64);
    let is_old = |(index, entry): &(usize, &Entry)| {
        age.older_than.is_none_or(|duration| entry.started_unix_ms < limit(duration))
            && age.keep.is_none_or(|keep| *index >= keep)
            && !may_go_on(entry, now_unix_ms)
    };
    entries.iter().enumerate().filter(is_old).map(|(_, entry)| entry).collect()
}

/// True for a run or an experiment that may be in progress at this time.
pub fn may_go_on(entry: &Entry, now_unix_ms: u64) -> bool {
    let silent_ms = now_unix_ms.saturating_sub(entry.written_unix_ms);
    entry.state == State::Unfinished && silent_ms < STILL_GOING.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::entry::Kind;

    const NOW: u64 = 1_000_000_000;

    fn entry(name: &str, age_s: u64, state: State) -> Entry {
        Entry {
            name: name.into(),
            path: name.into(),
            kind: Kind::Run,
            title: String::new(),
            started_unix_ms: NOW - age_s * 1000,
            state,
            bytes: 0,
            written_unix_ms: NOW - age_s * 1000,
            page: None,
        }
    }

    fn names(age: Age) -> Vec<String> {
        let entries = [
            entry("running", 10, State::Unfinished),
            entry("today", 3_600, State::Fine),
            entry("killed", 90_000, State::Unfinished),
            entry("old", 100_000, State::Failed),
        ];
        old(&entries, age, NOW).into_iter().map(|entry| entry.name.clone()).collect()
    }

    #[test]
    fn old_is_what_began_long_ago_and_is_not_among_the_latest() {
        let day = Some(Duration::from_secs(86_400));
        assert_eq!(names(Age { older_than: day, keep: None }), ["killed", "old"]);
        assert_eq!(names(Age { older_than: None, keep: Some(2) }), ["killed", "old"]);
        assert_eq!(names(Age { older_than: day, keep: Some(3) }), ["old"]);
        assert_eq!(names(Age::default()), Vec::<String>::new());
    }

    #[test]
    fn a_run_in_progress_is_never_old() {
        assert_eq!(names(Age { older_than: None, keep: Some(0) }), ["today", "killed", "old"]);
    }
}
