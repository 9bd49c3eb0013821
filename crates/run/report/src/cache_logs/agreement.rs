//! Comparison of the counts of robots and logs, with the reasons for differences.

use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::ratios::Outcomes;
use assay_record::caches::{CacheLogs, Responses, Seen, Source};

use super::ALL;
use super::document::Agreement;
use crate::format::count;

/// Counts of robots and logs over the whole run: by cache where requests were joined one by one, in all otherwise.
pub(super) fn agreement(logs: &CacheLogs, robots: &RobotCounts, origins: &OriginCounts) -> Vec<Agreement> {
    let all: Vec<&Responses> = logs.responses.iter().collect();
    if !logs.joined {
        return sums(&all, robots, origins);
    }
    let mut found = Vec::new();
    if logs.logs.len() > 1 {
        for log in logs.logs.iter().filter(|log| log.unread.is_empty()) {
            let own: Vec<&Responses> = all.iter().copied().filter(|row| row.cache == log.cache).collect();
            if !own.is_empty() {
                found.extend(one_by_one(&log.cache, &own));
            }
        }
    }
    found.extend(one_by_one(ALL, &all));
    found
}

fn is_response(seen: Seen) -> bool {
    matches!(seen, Seen::Hit | Seen::Collapsed | Seen::Revalidated | Seen::Miss | Seen::Other)
}

fn count_of(rows: &[&Responses], which: impl Fn(&Responses) -> bool) -> u64 {
    rows.iter().filter(|row| which(row)).map(|row| row.requests).sum()
}

/// From rows in which each request has both sides.
fn one_by_one(cache: &str, rows: &[&Responses]) -> Vec<Agreement> {
    let of = |which: &dyn Fn(&Responses) -> bool| count_of(rows, which);
    let agree = |what: &str, robots: u64, logs: u64, why: String| Agreement {
        cache: cache.to_owned(),
        what: what.to_owned(),
        robots,
        logs,
        why,
    };
    let logged = |row: &Responses| row.source != Source::Unlogged;
    let is_plain = |row: &Responses| row.basic && is_response(row.seen) && logged(row);
    let seen_hit = |row: &Responses| matches!(row.seen, Seen::Hit | Seen::Collapsed);
    let failed = of(&|row| row.seen == Seen::Failed && logged(row));
    let nothing = of(&|row| row.seen == Seen::Nothing);
    let unlogged = of(&|row| is_response(row.seen) && !logged(row));
    let responded = agree(
        "requests answered",
        of(&|row| is_response(row.seen)),
        of(&logged),
        reasons(&[
            (failed, "are in the log, and were an error, or never came to an end, to the robot"),
            (nothing, "are in the log, and no robot has sent them by its own log"),
            (
                unlogged,
                "were answered, and are in no log: its end was not written, or the cache does not know their name",
            ),
        ]),
    );
    let hits = agree(
        "plain GETs: hits",
        of(&|row| is_plain(row) && seen_hit(row)),
        of(&|row| is_plain(row) && row.source.is_hit()),
        odd_hits(rows, &is_plain),
    );
    let revalidated = agree(
        "plain GETs: revalidated",
        of(&|row| is_plain(row) && row.seen == Seen::Revalidated),
        of(&|row| is_plain(row) && row.source == Source::Revalidated),
        reasons(&[
            (
                of(&|row| is_plain(row) && seen_hit(row) && row.source == Source::Revalidated),
                "were confirmed by the origin, and the response does not show it: hits to robots",
            ),
            (
                of(&|row| {
                    is_plain(row) && row.seen == Seen::Revalidated && row.source != Source::Revalidated
                }),
                "were confirmed for them, and the cache calls them something else",
            ),
            (
                of(&|row| is_plain(row) && row.seen == Seen::Miss && row.source == Source::Revalidated),
                "were validated by the cache, and sent anew",
            ),
        ]),
    );
    let both: u64 = of(&|row| is_response(row.seen) && logged(row));
    let other: u64 = rows.iter().filter(|row| is_response(row.seen)).map(|row| row.other_status).sum();
    let statuses = agree(
        "responses of the same status",
        both,
        both - other.min(both),
        reasons(&[(other, "have another status in the log: of several steps, each side keeps its own")]),
    );
    let bytes = |of: fn(&Responses) -> u64| -> u64 {
        rows.iter().filter(|row| is_response(row.seen) && logged(row)).map(|row| of(row)).sum()
    };
    let (got, sent) = (bytes(|row| row.body_bytes), bytes(|row| row.logged_bytes));
    let per_response = (sent as f64 - got as f64) / both.max(1) as f64;
    let why = if got == sent {
        String::new()
    } else {
        format!(
            "{per_response:.1} bytes a response: robots count what came of bodies, proxies what they sent, many with heads"
        )
    };
    vec![responded, hits, revalidated, statuses, agree("bytes of responses", got, sent, why)]
}

/// Plain GETs that are a hit to one side only.
fn odd_hits(rows: &[&Responses], is_plain: &dyn Fn(&Responses) -> bool) -> String {
    let of = |seen: &dyn Fn(Seen) -> bool, source: &dyn Fn(Source) -> bool| {
        count_of(rows, |row| is_plain(row) && seen(row.seen) && source(row.source))
    };
    let hit = |seen: Seen| matches!(seen, Seen::Hit | Seen::Collapsed);
    let fetched = |source: Source| matches!(source, Source::Origin | Source::ThroughParent);
    reasons(&[
        (
            of(&hit, &|source| source == Source::Revalidated),
            "are hits to robots, and were confirmed by the origin, which the response does not show",
        ),
        (
            of(&hit, &fetched),
            "are hits to robots (their response was made for another request), and fetched to the cache",
        ),
        (
            of(&hit, &|source| matches!(source, Source::Failed | Source::Unsaid)),
            "are hits to robots, and the log calls them an error or nothing",
        ),
        (
            of(&|seen| seen == Seen::Miss, &Source::is_hit),
            "are hits to the cache, and an origin made the response for this very request",
        ),
        (
            of(&|seen| seen == Seen::Revalidated, &Source::is_hit),
            "are hits to the cache, and an origin was asked to confirm them",
        ),
    ])
}

/// From the sums of both sides: why they differ can only be guessed.
fn sums(all: &[&Responses], robots: &RobotCounts, origins: &OriginCounts) -> Vec<Agreement> {
    let outcomes = Outcomes::of(robots, origins);
    let rows = [
        (
            "requests answered",
            robots.completed + robots.retries,
            count_of(all, |_| true),
            "a request that a robot gave up is in the log, and no response to the robot; `--xact-log` tells which",
        ),
        (
            "plain GETs: hits",
            outcomes.hit + outcomes.collapsed,
            count_of(all, |row| row.basic && row.source.is_hit()),
            "robots tell a hit by whom the response was made for, the cache by what it had; `--xact-log` tells which",
        ),
        (
            "plain GETs: revalidated",
            outcomes.revalidated,
            count_of(all, |row| row.basic && row.source == Source::Revalidated),
            "not every proxy has a word for what an origin confirmed",
        ),
    ];
    let agreement = rows.map(|(what, robots, logs, why)| Agreement {
        cache: ALL.to_owned(),
        what: what.to_owned(),
        robots,
        logs,
        why: if robots == logs { String::new() } else { why.to_owned() },
    });
    agreement.to_vec()
}

/// Reasons that apply to at least one request, with their counts.
fn reasons(all: &[(u64, &str)]) -> String {
    let there = all.iter().filter(|(requests, _)| *requests > 0);
    there.map(|(requests, why)| format!("{} {why}", count(*requests))).collect::<Vec<_>>().join("; ")
}
