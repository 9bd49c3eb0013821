//! Part of a run that a directory holds, and limits of what it can know.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a run: robots and origins that ran in one place while the others ran elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PartInfo {
    /// Robots that ran here: the first and the last of each stretch, counted from 0, in order.
    pub robots: Vec<(u32, u32)>,
    /// Origins that ran here, likewise.
    pub origins: Vec<(u32, u32)>,
    /// Robots of the whole run.
    pub all_robots: u32,
    /// Origins of the whole run.
    pub all_origins: u32,
    /// Requests that are to be expected of the whole run, by phase; none: that depends on what happens.
    pub expected_requests: Vec<Option<f64>>,
}

/// A part that a record was joined from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JoinedInfo {
    /// Its directory, as it was named.
    pub name: String,
    /// The command line that made it.
    pub command: Vec<String>,
    /// Robots that ran in it.
    pub robots: Vec<(u32, u32)>,
    /// Origins that ran in it.
    pub origins: Vec<(u32, u32)>,
    /// Its machine's monotonic clock; empty: not known.
    pub clock: String,
    /// Start of its schedule on that clock, in nanoseconds.
    pub started_monotonic_ns: u64,
}

impl PartInfo {
    /// Whether all robots and all origins are in this part.
    pub fn is_whole(&self) -> bool {
        self.has_all_robots() && covers(&self.origins, self.all_origins)
    }

    /// Whether all robots are in this part.
    pub fn has_all_robots(&self) -> bool {
        covers(&self.robots, self.all_robots)
    }

    /// Number of robots in it.
    pub fn robot_count(&self) -> u32 {
        self.robots.iter().map(|(first, last)| last.saturating_sub(*first).saturating_add(1)).sum()
    }

    /// Sentences on what a part cannot know; none for a whole run.
    pub fn notes(&self) -> Vec<String> {
        if self.is_whole() {
            return Vec::new();
        }
        if self.robots.is_empty() {
            let origins = ranges_text(&self.origins);
            return vec![format!("this is one part of a run: origins {origins}, without robots")];
        }
        let all = self.all_robots;
        let which = match self.has_all_robots() {
            true => format!("all {all} robots"),
            false => format!("robots {} of {all}", ranges_text(&self.robots)),
        };
        let elsewhere = match self.origins.is_empty() {
            true => "origins are measured elsewhere".to_owned(),
            false => format!("with origins {} of {}", ranges_text(&self.origins), self.all_origins),
        };
        let mut notes = vec![format!(
            "this is one part of a run: {which}; {elsewhere}, so what they were spared is not known here"
        )];
        if !self.has_all_robots() {
            notes.push(
                "requests of the other robots fill the cache too: ideal and offered hit ratios, which are of these robots' \
                 requests alone, are not those of the run"
                    .into(),
            );
        }
        notes
    }
}

/// Ranges as text: `0 to 19 and 40 to 59`.
pub(crate) fn ranges_text(ranges: &[(u32, u32)]) -> String {
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(" and ")
}

fn covers(ranges: &[(u32, u32)], all: u32) -> bool {
    merge_ranges(ranges) == [(0, all.wrapping_sub(1))] || (all == 0 && ranges.is_empty())
}

/// Sorted ranges, of which those that touch are merged.
pub(crate) fn merge_ranges(ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable();
    let mut all: Vec<(u32, u32)> = Vec::new();
    for (first, last) in ranges {
        match all.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => all.push((first, last)),
        }
    }
    all
}

/// First overlap of two lists of ranges.
pub(crate) fn overlap(one: &[(u32, u32)], other: &[(u32, u32)]) -> Option<(u32, u32)> {
    let both = |a: &(u32, u32), b: &(u32, u32)| (a.0.max(b.0), a.1.min(b.1));
    let mut pairs = one.iter().flat_map(|a| other.iter().map(move |b| both(a, b)));
    pairs.find(|(first, last)| first <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(robots: &[(u32, u32)], origins: &[(u32, u32)]) -> PartInfo {
        let (robots, origins) = (robots.to_vec(), origins.to_vec());
        PartInfo { robots, origins, all_robots: 40, all_origins: 2, expected_requests: Vec::new() }
    }

    #[test]
    fn a_part_says_what_it_cannot_know() {
        let half = part(&[(0, 19)], &[]).notes().join(" ");
        assert!(half.contains("robots 0 to 19 of 40") && half.contains("ideal and offered"), "{half}");
        let robots = part(&[(0, 39)], &[]).notes().join(" ");
        assert!(robots.contains("all 40 robots") && !robots.contains("ideal"), "{robots}");
        assert!(part(&[], &[(1, 1)]).notes().join(" ").contains("origins 1, without robots"));
        let most = part(&[(0, 9), (20, 39)], &[(0, 0)]).notes().join(" ");
        assert!(most.contains("0 to 9 and 20 to 39") && most.contains("origins 0 of 2"), "{most}");
        assert_eq!(part(&[(20, 39), (0, 19)], &[(0, 1)]).notes(), Vec::<String>::new());
    }

    #[test]
    fn stretches_are_joined_and_what_is_in_both_is_found() {
        assert_eq!(merge_ranges(&[(5, 9), (0, 4), (11, 11)]), [(0, 9), (11, 11)]);
        assert_eq!(overlap(&[(0, 4), (8, 9)], &[(5, 8)]), Some((8, 8)));
        assert_eq!(overlap(&[(0, 4)], &[(5, 8)]), None);
    }
}
