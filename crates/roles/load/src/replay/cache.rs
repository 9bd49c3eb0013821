//! Results of the cache, and of an ideal one, where the origins behind it are simulated.

use std::collections::HashSet;
use std::fmt::Write;

use assay_measurement::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::replay::catalogue::key;
use crate::replay::exchange::{CacheVerdict, ExchangeResult};
use crate::replay::mark::CacheOutcome;
use crate::replay::origin::{SimulatedCounts, SimulatedOrigins};
use crate::replay::request::ReplayRequest;
use crate::replay::results::{TimeSummary, several};
use crate::replay::source::LoggedTotals;

/// What a proxy made of a replay, told by which request caused each response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cache")]
pub struct CacheResults {
    /// Who it is.
    pub proxy: String,
    /// Responses that were there before they were requested.
    pub hits: u64,
    /// Responses that another request had caused which was under way.
    pub joined: u64,
    /// Responses that the origin had confirmed just then, as the response shows.
    pub revalidated: u64,
    /// Responses that the request itself caused.
    pub misses: u64,
    /// Responses that no origin made: the proxy's own, such as an error.
    pub own: u64,
    /// Responses that are not what the origin made: another object, status or size, or other bytes. They are among the above.
    pub wrong: u64,
    /// Hits and joined over all responses, without those hits that only a confirmation made.
    pub dhr: Option<f64>,
    /// Their bytes over the bytes of all responses.
    pub bhr: Option<f64>,
    /// What a cache without limits that forgets nothing would have answered, of the requests that were sent.
    pub ideal_dhr: Option<f64>,
    /// Its share of the bytes.
    pub ideal_bhr: Option<f64>,
    /// Response times of hits and joined.
    pub hit_ms: TimeSummary,
    /// Those of all else.
    pub miss_ms: TimeSummary,
    /// URLs that the log has.
    pub urls: u64,
    /// Lines of URLs for which there was no room: these are some other size.
    pub urls_left_out: u64,
    /// What the simulated origins did.
    pub origin: SimulatedCounts,
}

/// Adds up.
#[derive(Default)]
pub(crate) struct CacheTally {
    hits: u64,
    joined: u64,
    revalidated: u64,
    misses: u64,
    own: u64,
    wrong: u64,
    bytes: u64,
    hit_bytes: u64,
    hit_times: Histogram,
    miss_times: Histogram,
    /// Objects that have been requested and may be kept.
    kept: HashSet<u64>,
    begun: u64,
    begun_bytes: u64,
    ideal_hits: u64,
    ideal_bytes: u64,
}

impl CacheTally {
    /// Counts a request that is about to be sent, and asks the ideal cache.
    pub fn begin(&mut self, simulated: &SimulatedOrigins, request: &ReplayRequest) {
        let key = key(&request.authority, &request.path);
        let entry = simulated.catalogue().entry(key);
        let bytes = if request.head_only { 0 } else { entry.bytes };
        self.begun += 1;
        self.begun_bytes += bytes;
        if self.kept.contains(&key) {
            self.ideal_hits += 1;
            self.ideal_bytes += bytes;
        } else if entry.is_storable() && !request.head_only {
            self.kept.insert(key);
        }
    }

    /// Counts a whole response.
    pub fn count(&mut self, cached: CacheVerdict, result: &ExchangeResult) {
        let count = match cached.outcome {
            CacheOutcome::Hit => &mut self.hits,
            CacheOutcome::Joined => &mut self.joined,
            CacheOutcome::Revalidated => &mut self.revalidated,
            CacheOutcome::Miss => &mut self.misses,
            CacheOutcome::Own => &mut self.own,
        };
        *count += 1;
        self.wrong += u64::from(cached.wrong);
        self.bytes += result.body_bytes;
        let is_hit = matches!(cached.outcome, CacheOutcome::Hit | CacheOutcome::Joined);
        let times = if is_hit { &mut self.hit_times } else { &mut self.miss_times };
        if let Some(us) = result.response_us() {
            times.record(us);
        }
        if is_hit {
            self.hit_bytes += result.body_bytes;
        }
    }

    pub fn results(&self, simulated: &SimulatedOrigins) -> CacheResults {
        let origin = simulated.counts();
        let responses = self.hits + self.joined + self.revalidated + self.misses + self.own;
        // A proxy that does not show a confirmation in its responses had it all the same.
        let hidden = origin.confirmed.saturating_sub(self.revalidated).min(self.hits);
        CacheResults {
            proxy: String::new(),
            hits: self.hits,
            joined: self.joined,
            revalidated: self.revalidated,
            misses: self.misses,
            own: self.own,
            wrong: self.wrong,
            dhr: ratio(self.hits + self.joined - hidden, responses),
            bhr: ratio(self.hit_bytes, self.bytes),
            ideal_dhr: ratio(self.ideal_hits, self.begun),
            ideal_bhr: ratio(self.ideal_bytes, self.begun_bytes),
            hit_ms: TimeSummary::from_histogram(&self.hit_times),
            miss_ms: TimeSummary::from_histogram(&self.miss_times),
            urls: simulated.catalogue().urls(),
            urls_left_out: simulated.catalogue().left_out(),
            origin,
        }
    }
}

impl CacheResults {
    /// As text.
    pub(crate) fn to_terminal(&self, logged: &LoggedTotals) -> String {
        let share = |value: Option<f64>, none: &str| match value {
            Some(value) => format!("{:.2} %", value * 100.0),
            None => none.to_owned(),
        };
        let responses = self.hits + self.joined + self.revalidated + self.misses + self.own;
        // It is not known, or there is none.
        let measured = if responses > 0 { "?" } else { "–" };
        let mut text = format!("\n{:<16} {:>10} {:>10}\n", "", "DHR", "BHR");
        let logged_shares = (ratio(logged.hits, logged.known), ratio(logged.hit_bytes, logged.known_bytes));
        for (name, (dhr, bhr), none) in [
            ("measured", (self.dhr, self.bhr), measured),
            ("ideal", (self.ideal_dhr, self.ideal_bhr), "–"),
            ("in the log", logged_shares, "–"),
        ] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<16} {:>10} {:>10}", share(dhr, none), share(bhr, none));
        }
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<16} {value}");
        };
        line(
            "responses",
            format!(
                "{}, {} joined, {} revalidated, {}, {} of the proxy itself",
                several(self.hits, "hit"),
                self.joined,
                self.revalidated,
                several(self.misses, "miss"),
                self.own
            ),
        );
        line("wrong responses", self.wrong.to_string());
        let origin = &self.origin;
        line(
            "origins",
            format!(
                "{}, {} confirmed, {} of bodies, {} of no URL of the log",
                several(origin.requests, "request"),
                origin.confirmed,
                several(origin.body_bytes, "byte"),
                origin.unknown
            ),
        );
        if self.urls_left_out > 0 {
            line("no room", format!("for the sizes of {} of the log", several(self.urls_left_out, "line")));
        }
        text
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::replay::catalogue::Catalogue;

    fn result(bytes: u64, took_us: u64) -> ExchangeResult {
        ExchangeResult {
            sent_ns: 1_000,
            last_ns: Some(1_000 + took_us * 1_000),
            body_bytes: bytes,
            ..ExchangeResult::default()
        }
    }

    #[test]
    fn hits_are_what_was_there_and_the_ideal_is_what_was_requested_before() {
        let mut catalogue = Catalogue::default();
        let request = |path: &str| ReplayRequest::new(false, path.as_bytes(), Some(b"h")).unwrap();
        ["/a", "/b"].iter().for_each(|path| catalogue.mention(&request(path)));
        let simulated = SimulatedOrigins::new(catalogue, Duration::from_secs(60), Duration::ZERO);
        let mut tally = CacheTally::default();
        for (path, outcome) in [
            ("/a", CacheOutcome::Miss),
            ("/a", CacheOutcome::Joined),
            ("/a", CacheOutcome::Hit),
            ("/b", CacheOutcome::Own),
            ("/b", CacheOutcome::Miss),
        ] {
            tally.begin(&simulated, &request(path));
            tally.count(CacheVerdict { outcome, wrong: outcome == CacheOutcome::Joined }, &result(100, 5));
        }
        let found = tally.results(&simulated);
        assert_eq!((found.hits, found.joined, found.misses, found.own, found.wrong), (1, 1, 2, 1, 1));
        assert_eq!((found.dhr, found.bhr, found.ideal_dhr), (Some(0.4), Some(0.4), Some(0.6)));
        assert_eq!((found.hit_ms.count, found.miss_ms.count, found.urls), (2, 3, 2));
        let text = found.to_terminal(&LoggedTotals { known: 4, hits: 1, ..LoggedTotals::default() });
        assert!(text.contains("40.00 %") && text.contains("25.00 %") && text.contains("–"), "{text}");
    }
}
