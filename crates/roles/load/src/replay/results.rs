//! Results of a replay: added up, as a document, and as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use assay_measurement::histogram::Histogram;
use assay_measurement::response_error::ResponseError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::replay::ReplayError;
use crate::replay::cache::{CacheResults, CacheTally};
use crate::replay::exchange::ExchangeResult;
use crate::replay::origin::SimulatedOrigins;
use crate::replay::own_influence::{OwnInfluence, ThreadUsage};
use crate::replay::request::ReplayRequest;
use crate::replay::source::{ReadSummary, UNVERIFIED};

/// Share of requests due up to which those without a whole response take nothing from a result.
const FEW: f64 = 0.01;

/// Version of the document.
pub const RESULTS_SCHEMA: &str = "assay-replay/1";

/// What became of a replay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Assay replay")]
pub struct ReplayResults {
    /// `assay-replay/1`.
    pub schema: String,
    /// To whom it was sent.
    pub to: String,
    /// With whole URLs, as to a forward proxy.
    pub forward: bool,
    /// What was read, and what of it was not sent.
    pub read: ReadSummary,
    /// It was ended before its end.
    pub interrupted: bool,
    /// How long it was, in seconds.
    pub duration_s: f64,
    /// Requests sent.
    pub requests: u64,
    /// Whole responses.
    pub responses: u64,
    /// Requests that were due while too many were under way, and were not sent.
    pub skipped: u64,
    /// Requests that were due after it was interrupted.
    pub unsent: u64,
    /// Requests under way now.
    pub under_way: u64,
    /// Requests sent a second time, because a connection turned out to be closed.
    pub retries: u64,
    /// Connections made.
    pub connections: u64,
    /// Whole responses a second.
    pub rate: Option<f64>,
    /// Whole responses by status.
    pub statuses: BTreeMap<String, u64>,
    /// Requests without a whole response, by what went wrong.
    pub errors: BTreeMap<String, u64>,
    /// Bytes of responses' heads.
    pub head_bytes: u64,
    /// Bytes of responses' bodies, chunked coding not among them.
    pub body_bytes: u64,
    /// From sending (connecting, where a connection was made) to the last byte.
    pub response_ms: TimeSummary,
    /// From sending to the first byte.
    pub first_byte_ms: TimeSummary,
    /// Time to connect, where a connection was made.
    pub connect_ms: TimeSummary,
    /// TLS: what both sides agreed upon, and how long that took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Handshakes>,
    /// How late requests were sent: our own fault.
    pub lateness_ms: TimeSummary,
    /// What the replay itself did to times.
    #[serde(default)]
    pub own: OwnInfluence,
    /// Requests that are missing from the table of requests, because the disk was too slow.
    pub rows_lost: u64,
    /// What the cache did, where the origins behind it were simulated.
    #[serde(default)]
    pub cache: Option<CacheResults>,
    /// How the proxy that was started for it ended by itself, if it did: it served nothing after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_ended: Option<String>,
}

/// Handshakes of TLS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handshakes {
    /// Full ones.
    pub full: u64,
    /// Those that resumed an earlier session.
    pub resumed: u64,
    /// Their number by version and cipher suite.
    pub by_parameters: BTreeMap<String, u64>,
    /// From the first byte of a handshake until a request could be sent.
    pub handshake_ms: TimeSummary,
    /// What was wrong with the first that failed, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Times")]
pub struct TimeSummary {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

impl Handshakes {
    fn to_terminal(&self) -> String {
        let by = if self.by_parameters.is_empty() {
            String::new()
        } else {
            format!(" ({})", listed(&self.by_parameters))
        };
        format!("{} full handshakes, {} resumed{by}", self.full, self.resumed)
    }
}

impl TimeSummary {
    pub(crate) fn from_histogram(histogram: &Histogram) -> Self {
        let at = |share| histogram.quantile_us(share).map(|us| us as f64 / 1000.0);
        Self {
            count: histogram.count(),
            mean: histogram.mean_us().map(|us| us.round() / 1000.0),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max_us().map(|us| us as f64 / 1000.0),
        }
    }

    /// A line of the table, with its end.
    fn line(&self, name: &str) -> String {
        // Times that are not known are there, those of nothing are not.
        let none = if self.count > 0 { "?" } else { "–" };
        let cell = |value: Option<f64>| value.map_or_else(|| none.to_owned(), |ms| format!("{ms:.3}"));
        let [mean, p50, p90, p99, p999, max] =
            [self.mean, self.p50, self.p90, self.p99, self.p999, self.max].map(cell);
        format!("{name:<16} {mean:>10} {p50:>10} {p90:>10} {p99:>10} {p999:>10} {max:>10}\n")
    }
}

/// A request that was sent, and what became of it.
pub(crate) struct SentRequest<'a> {
    pub client: &'a str,
    pub request: &'a ReplayRequest,
    pub due_ns: u64,
    pub result: &'a ExchangeResult,
}

/// Adds up.
#[derive(Default)]
pub(crate) struct ReplayTally {
    requests: u64,
    responded: u64,
    pub skipped: u64,
    pub unsent: u64,
    retries: u64,
    connections: u64,
    statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<&'static str, u64>,
    head_bytes: u64,
    body_bytes: u64,
    response: Histogram,
    from_due: Histogram,
    first_byte: Histogram,
    connect: Histogram,
    lateness: Histogram,
    tls: Handshakes,
    handshake: Histogram,
    cache: CacheTally,
}

impl ReplayTally {
    /// Counts a request to a proxy before simulated origins that is about to be sent.
    pub(crate) fn begin(&mut self, simulated: &SimulatedOrigins, request: &ReplayRequest) {
        self.cache.begin(simulated, request);
    }

    /// Results of the cache up to now.
    pub(crate) fn cache(&self, simulated: &SimulatedOrigins) -> CacheResults {
        self.cache.results(simulated)
    }

    pub(crate) fn count(&mut self, sent: &SentRequest<'_>) {
        let result = sent.result;
        self.requests += 1;
        self.retries += u64::from(result.retried);
        self.connections += u64::from(result.connected_ns.is_some());
        self.head_bytes += result.head_bytes;
        self.body_bytes += result.body_bytes;
        self.lateness.record(result.sent_ns.saturating_sub(sent.due_ns) / 1000);
        let after = |ns: Option<u64>| Some(ns?.saturating_sub(result.sent_ns) / 1000);
        if let Some(us) = after(result.connected_ns) {
            self.connect.record(us);
        }
        if let Some(handshake) = &result.handshake {
            self.handshake.record(handshake.ended_ns.saturating_sub(handshake.begun_ns) / 1000);
            let agreed = &handshake.negotiated;
            *(if agreed.resumed { &mut self.tls.resumed } else { &mut self.tls.full }) += 1;
            let parameters = format!("TLS {} {}", agreed.version, agreed.cipher);
            *self.tls.by_parameters.entry(parameters).or_default() += 1;
        }
        if self.tls.first_failure.is_none() {
            self.tls.first_failure.clone_from(&result.tls_failure);
        }
        if let Some(error) = result.error {
            *self.errors.entry(error.name()).or_default() += 1;
            return;
        }
        self.responded += 1;
        if let Some(cached) = result.cached {
            self.cache.count(cached, result);
        }
        if let Some(status) = result.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        if let Some(last_ns) = result.last_ns {
            self.from_due.record(last_ns.saturating_sub(sent.due_ns) / 1000);
        }
        for (histogram, us) in
            [(&mut self.first_byte, after(result.first_ns)), (&mut self.response, result.response_us())]
        {
            if let Some(us) = us {
                histogram.record(us);
            }
        }
    }

    /// None: TLS was not spoken.
    fn handshakes(&self) -> Option<Handshakes> {
        let was_spoken = self.handshake.count() > 0 || self.tls.first_failure.is_some();
        was_spoken.then(|| Handshakes {
            handshake_ms: TimeSummary::from_histogram(&self.handshake),
            ..self.tls.clone()
        })
    }

    pub(crate) fn results(
        &self,
        passed_ns: u64,
        summary: &ReadSummary,
        threads: &ThreadUsage,
    ) -> ReplayResults {
        let duration_s = (passed_ns / 1_000_000) as f64 / 1000.0;
        let rate = (duration_s > 0.0).then(|| (self.responded as f64 / duration_s * 1000.0).round() / 1000.0);
        ReplayResults {
            schema: RESULTS_SCHEMA.to_owned(),
            read: summary.clone(),
            duration_s,
            requests: self.requests,
            responses: self.responded,
            skipped: self.skipped,
            unsent: self.unsent,
            retries: self.retries,
            connections: self.connections,
            rate,
            statuses: self.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect(),
            errors: self.errors.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            head_bytes: self.head_bytes,
            body_bytes: self.body_bytes,
            response_ms: TimeSummary::from_histogram(&self.response),
            first_byte_ms: TimeSummary::from_histogram(&self.first_byte),
            connect_ms: TimeSummary::from_histogram(&self.connect),
            lateness_ms: TimeSummary::from_histogram(&self.lateness),
            own: OwnInfluence::new(&self.response, &self.from_due, threads),
            tls: self.handshakes(),
            ..ReplayResults::default()
        }
    }
}

impl ReplayResults {
    /// The document as text, with a newline at its end; what is unknown is null.
    pub fn to_json(&self) -> Result<String, ReplayError> {
        let mut text = serde_json::to_string_pretty(&self.without_unknown())?;
        text.push('\n');
        Ok(text)
    }

    /// JSON Schema of the document.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(ReplayResults).to_value()
    }

    /// As text, with a newline at its end; what is unknown is a question mark.
    pub fn to_terminal(&self) -> String {
        self.without_unknown().all_to_terminal()
    }

    fn all_to_terminal(&self) -> String {
        let mut text = String::new();
        let kind = if self.forward { "forward proxy" } else { "server" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Replayed to the {kind} at {} in {:.1} s", self.to, self.duration_s);
        if self.interrupted {
            text.push_str("  It was interrupted: this is what was sent until then.\n");
        }
        if let Some(words) = self.without_response() {
            let _ = writeln!(text, "  {words}.");
        }
        if let Some(fault) = self.fault() {
            let _ = writeln!(text, "  {fault}.");
        }
        if let Some(failure) = self.tls_failure() {
            let _ = writeln!(text, "  TLS: {failure}.");
        }
        if let Some(doubt) = self.own.doubt() {
            let _ = writeln!(text, "  {doubt}.");
        }
        text.push('\n');
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<16} {value}");
        };
        line(
            "requests",
            format!("{} sent, {}{}", self.requests, several(self.responses, "response"), self.rate_text()),
        );
        line(
            "connections",
            format!("{} made, {} sent again", self.connections, several(self.retries, "request")),
        );
        if let Some(tls) = &self.tls {
            line("TLS", tls.to_terminal());
        }
        line("statuses", listed(&self.statuses));
        line("errors", listed(&self.errors));
        line("bytes", format!("{} of bodies, {} of heads", self.body_bytes, self.head_bytes));
        if self.skipped + self.unsent > 0 {
            line(
                "not sent",
                format!("{} because too many were under way, {} after the end", self.skipped, self.unsent),
            );
        }
        let left_out = self.left_out();
        if !left_out.is_empty() {
            line("left out", left_out);
        }
        if self.read.logged.newer_versions > 0 {
            line("versions", self.versions());
        }
        for note in &self.read.notes {
            line("note", note.clone());
        }
        text.push('\n');
        let _ = writeln!(
            text,
            "{:<16} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "ms", "mean", "p50", "p90", "p99", "p99.9", "max"
        );
        text.push_str(&self.response_ms.line("response"));
        if let Some(cache) = &self.cache {
            text.push_str(&cache.hit_ms.line("  of hits"));
            text.push_str(&cache.miss_ms.line("  of misses"));
        }
        text.push_str(&self.first_byte_ms.line("first byte"));
        text.push_str(&self.connect_ms.line("connect"));
        if let Some(tls) = &self.tls {
            text.push_str(&tls.handshake_ms.line("TLS handshake"));
        }
        text.push_str(&self.lateness_ms.line("sent late"));
        text.push_str(&self.own.from_due_ms.line("due to last byte"));
        if let Some(words) = self.own.lateness_text(&self.lateness_ms) {
            let _ = writeln!(text, "\n{words}");
        }
        if let Some(cache) = &self.cache {
            text.push_str(&cache.to_terminal(&self.read.logged));
        }
        if self.rows_lost > 0 {
            let _ = writeln!(
                text,
                "\nmissing from the table, since the disk was too slow: {}",
                several(self.rows_lost, "request")
            );
        }
        text
    }

    /// Faults of the target; none: there are none. One wrong response is a fault, and so are more than one request in a
    /// hundred without a whole response.
    pub fn fault(&self) -> Option<String> {
        let of = |errors: &[ResponseError]| -> u64 {
            errors.iter().filter_map(|error| self.errors.get(error.name())).sum()
        };
        let [cut, extra, garbage] = [
            &[ResponseError::Truncated][..],
            &[ResponseError::ExtraBytes],
            &[ResponseError::Garbage, ResponseError::TooLong],
        ]
        .map(of);
        let other = self.cache.as_ref().map_or(0, |cache| cache.wrong);
        let wrong = [
            (other, "not what the origin made"),
            (cut, "cut short"),
            (extra, "followed by bytes that belong to none"),
            (garbage, "no HTTP that is of use"),
        ];
        let mut faults: Vec<String> = wrong
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{}: {what}", several(number, "response")))
            .collect();
        let (missing, due) = (self.requests - self.responses + self.skipped, self.requests + self.skipped);
        if missing as f64 > due as f64 * FEW {
            faults.push(format!(
                "it did not keep up: {missing} of {due} requests due got no whole response ({} were not sent, as too many were under way)",
                self.skipped
            ));
        }
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    /// Without what is not known: times, and hit ratios that waits can have changed as well.
    fn without_unknown(&self) -> Self {
        let mut results = self.clone();
        if !self.own.leaves_unknown() {
            return results;
        }
        let unknown =
            |times: &mut TimeSummary| *times = TimeSummary { count: times.count, ..TimeSummary::default() };
        unknown(&mut results.response_ms);
        unknown(&mut results.first_byte_ms);
        unknown(&mut results.own.from_due_ms);
        if let Some(cache) = &mut results.cache {
            (cache.dhr, cache.bhr) = (None, None);
            unknown(&mut cache.hit_ms);
            unknown(&mut cache.miss_ms);
        }
        results
    }

    /// Text about requests that got no whole response, if there are any.
    pub fn without_response(&self) -> Option<String> {
        let lost: u64 = self.errors.values().sum();
        if lost == 0 {
            return None;
        }
        let (of, share) = (self.requests, lost as f64 / self.requests.max(1) as f64 * 100.0);
        let number = if lost == of {
            format!("none of {of} requests")
        } else {
            format!("{lost} of {of} requests ({share:.1} %)")
        };
        let got = if lost == of { "got a whole response" } else { "got no whole response" };
        Some(format!("{number} {got}: {}", listed(&self.errors)))
    }

    /// First failure of TLS, with advice.
    pub fn tls_failure(&self) -> Option<&str> {
        self.tls.as_ref()?.first_failure.as_deref()
    }

    fn rate_text(&self) -> String {
        self.rate.map_or_else(String::new, |rate| format!(" ({rate:.1}/s)"))
    }

    /// Text about requests that came in a newer version of HTTP than they are sent in, which can change connections and
    /// times.
    fn versions(&self) -> String {
        let newer = self.read.logged.newer_versions;
        format!(
            "{newer} of {} came in HTTP/2 or HTTP/3; all were sent in HTTP/1.1",
            several(self.requests, "request")
        )
    }

    /// Entries of the log or list that are not sent, by reason.
    fn left_out(&self) -> String {
        let parts = [
            (
                self.read.malformed,
                if self.read.malformed == 1 { "line not of the format" } else { "lines not of the format" },
            ),
            (self.read.filtered, "left out by --method, --status, --result or --static"),
            (self.read.other_methods, "of other methods than GET and HEAD"),
            (self.read.unusable, "without a usable URL"),
            (self.read.other_schemes, "of other schemes than http and https"),
            (self.read.unverified, UNVERIFIED),
            (self.read.timeless, "without a time"),
        ];
        let named = parts.iter().filter(|part| part.0 > 0).map(|(count, what)| format!("{count} {what}"));
        named.collect::<Vec<_>>().join(", ")
    }
}

/// Number with its noun.
pub(crate) fn several(number: u64, one: &str) -> String {
    let end = match number {
        1 => "",
        _ if one.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {one}{end}")
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    let named = counts.iter().map(|(name, count)| format!("{name}: {count}"));
    let text = named.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use assay_measurement::own_error::{Certainty, OwnInterval};

    use super::*;
    use crate::replay::source::LoggedTotals;

    #[test]
    fn one_of_something_is_not_called_several() {
        assert_eq!([0, 1, 2].map(|number| several(number, "hit")), ["0 hits", "1 hit", "2 hits"]);
        assert_eq!([1, 2].map(|number| several(number, "miss")), ["1 miss", "2 misses"]);
        let read = ReadSummary { malformed: 1, ..ReadSummary::default() };
        let results = ReplayResults { requests: 1, responses: 1, read, ..ReplayResults::default() };
        let said = results.to_terminal();
        assert!(said.contains("1 sent, 1 response") && !said.contains("1 responses"), "{said}");
        assert!(said.contains("1 line not of the format"), "{said}");
    }

    #[test]
    fn requests_that_came_in_another_version_are_told_and_none_are_not() {
        let of = |newer_versions| {
            let logged = LoggedTotals { newer_versions, ..LoggedTotals::default() };
            let read = ReadSummary { lines: 30, logged, ..ReadSummary::default() };
            ReplayResults { requests: 20, read, ..ReplayResults::default() }.to_terminal()
        };
        assert!(
            of(12).contains("12 of 20 requests came in HTTP/2 or HTTP/3; all were sent in HTTP/1.1"),
            "{}",
            of(12)
        );
        assert!(!of(0).contains("HTTP/2"));
    }

    #[test]
    fn requests_without_a_response_are_stated_first_and_none_are_not() {
        let errors = BTreeMap::from([("refused".to_owned(), 3)]);
        let all = ReplayResults { requests: 3, errors: errors.clone(), ..ReplayResults::default() };
        assert_eq!(all.without_response().unwrap(), "none of 3 requests got a whole response: refused: 3");
        let some = ReplayResults { requests: 12, responses: 9, errors, ..ReplayResults::default() };
        let words = "3 of 12 requests (25.0 %) got no whole response";
        assert!(some.without_response().unwrap().starts_with(words));
        assert!(some.to_terminal().lines().nth(1).unwrap().contains(words), "{}", some.to_terminal());
        let none = ReplayResults { requests: 3, responses: 3, ..ReplayResults::default() };
        assert_eq!(none.without_response(), None);
    }

    #[test]
    fn one_wrong_response_is_a_fault_and_so_are_more_than_one_in_a_hundred_missing() {
        let with = |error: Option<ResponseError>, missing: u64, change: &dyn Fn(&mut ReplayResults)| {
            let errors = error.map(|error| (error.name().to_owned(), missing)).into_iter().collect();
            let mut results = ReplayResults {
                requests: 1_000,
                responses: 1_000 - missing,
                errors,
                ..ReplayResults::default()
            };
            change(&mut results);
            results.fault()
        };
        assert_eq!(with(None, 0, &|_| {}), None);
        let all = [
            ResponseError::Truncated,
            ResponseError::ExtraBytes,
            ResponseError::Garbage,
            ResponseError::TooLong,
        ];
        for wrong in all {
            assert!(with(Some(wrong), 1, &|_| {}).is_some_and(|fault| fault.starts_with("1 response: ")));
        }
        for absent in [ResponseError::Refused, ResponseError::Reset, ResponseError::TimedOut] {
            assert_eq!(with(Some(absent), 10, &|_| {}), None);
            assert!(with(Some(absent), 11, &|_| {}).is_some_and(|fault| fault.contains("11 of 1000")));
        }
        assert!(with(None, 0, &|results| results.skipped = 150).is_some());
        assert!(
            with(None, 0, &|results| results.cache =
                Some(CacheResults { wrong: 1, ..CacheResults::default() }))
            .is_some()
        );
    }

    #[test]
    fn what_waits_left_unknown_is_neither_shown_nor_in_the_document() {
        let times = TimeSummary { count: 10, p50: Some(1_108.0), ..TimeSummary::default() };
        let cache = CacheResults { dhr: Some(0.239), hit_ms: times, ..CacheResults::default() };
        let of = |certainty| {
            let own = OwnInfluence {
                p50_ms: Some(OwnInterval { certainty, ..OwnInterval::UNKNOWN }),
                ..OwnInfluence::default()
            };
            let results = ReplayResults {
                response_ms: times,
                cache: Some(cache.clone()),
                own,
                ..ReplayResults::default()
            };
            let document: ReplayResults = serde_json::from_str(&results.to_json().unwrap()).unwrap();
            (document, results.to_terminal())
        };
        let (known, shown) = of(Certainty::Roughly);
        assert_eq!((known.response_ms, known.cache.unwrap().dhr), (times, Some(0.239)));
        assert!(shown.contains("1108.000"), "{shown}");
        let (unknown, shown) = of(Certainty::Unknown);
        assert_eq!((unknown.response_ms.p50, unknown.response_ms.count), (None, 10));
        assert!(unknown.cache.is_some_and(|cache| cache.dhr.is_none() && cache.hit_ms.p50.is_none()));
        assert!(!shown.contains("1108") && !shown.contains("23.9"), "{shown}");
    }
}
