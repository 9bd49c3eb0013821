//! A proxy's own counters, under its names, and what they are in our terms.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use assay_protocol::message::ProxyCounters;

use crate::description::{CounterFormat, CounterSource};

/// Values by the proxy's own names.
pub type CounterValues = BTreeMap<String, i64>;

/// In a source that is read by requests to the proxy: how many there have been. A proxy that counts them can be told from
/// the requests of others.
pub const REQUESTED: &str = "$asked";

/// A text of counters that cannot be read. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum CounterTextError {
    #[error("not varnishstat's JSON: {0}")]
    Varnishstat(serde_json::Error),
    #[error("not JSON: {0}")]
    Json(serde_json::Error),
    #[error("not HAProxy's table: no line begins with `# `")]
    Haproxy,
    #[error("a log is followed, not parsed as a whole")]
    Log,
}

/// Reads a text of counters.
pub fn parse(format: CounterFormat, text: &str) -> Result<CounterValues, CounterTextError> {
    match format {
        CounterFormat::VarnishstatJson => parse_varnishstat(text),
        CounterFormat::Json => parse_json(text),
        CounterFormat::Lines => Ok(parse_lines(text)),
        CounterFormat::HaproxyCsv => parse_haproxy(text),
        CounterFormat::LogWords => Err(CounterTextError::Log),
    }
}

fn parse_varnishstat(text: &str) -> Result<CounterValues, CounterTextError> {
    #[derive(serde::Deserialize)]
    struct Document {
        counters: BTreeMap<String, CounterValue>,
    }
    #[derive(serde::Deserialize)]
    struct CounterValue {
        value: i64,
    }
    let document: Document = serde_json::from_str(text).map_err(CounterTextError::Varnishstat)?;
    Ok(document.counters.into_iter().map(|(name, value)| (name, value.value)).collect())
}

/// Every number of a JSON document, and every text that is one, under the keys that lead to it.
fn parse_json(text: &str) -> Result<CounterValues, CounterTextError> {
    fn walk(value: &serde_json::Value, name: &str, into: &mut CounterValues) {
        let number = match value {
            serde_json::Value::Number(number) => number.as_f64(),
            // Some proxies write numbers as texts.
            serde_json::Value::String(text) => text.parse().ok(),
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                    walk(value, &name, into);
                }
                None
            }
            _ => None,
        };
        if let Some(number) = number.filter(|number| number.is_finite()) {
            into.insert(name.to_owned(), number as i64);
        }
    }
    let document: serde_json::Value = serde_json::from_str(text).map_err(CounterTextError::Json)?;
    let mut values = CounterValues::new();
    walk(&document, "", &mut values);
    Ok(values)
}

/// HAProxy's table: names of columns behind `# `, then a line for each proxy and server, which the first two columns name.
fn parse_haproxy(text: &str) -> Result<CounterValues, CounterTextError> {
    let mut lines = text.lines();
    let head = lines.find_map(|line| line.strip_prefix("# ")).ok_or(CounterTextError::Haproxy)?;
    let columns: Vec<&str> = head.split(',').collect();
    let mut values = CounterValues::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let [proxy, server, ..] = fields[..] else { continue };
        for (column, field) in columns.iter().zip(&fields) {
            if let Ok(number) = field.parse::<i64>() {
                values.insert(format!("{proxy}/{server}.{column}"), number);
                *values.entry(format!("all/{server}.{column}")).or_default() += number;
            }
        }
    }
    Ok(values)
}

/// Lines `name = 12.5 unit` or `name: 12`; the number's fraction is dropped; other lines are passed over.
fn parse_lines(text: &str) -> CounterValues {
    let number = |value: &str| {
        let first = value.split_whitespace().next()?;
        // Counters above 2^63 do not occur; a float that large saturates.
        first.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number as i64)
    };
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.split_once('=').or_else(|| line.split_once(':'))?;
            Some((name.trim().to_owned(), number(value)?))
        })
        .collect()
}

/// Follows a log and counts the lines in which one of some words stands at the beginning of a word.
#[derive(Debug, Default)]
pub struct LogFollower {
    words: BTreeSet<String>,
    counts: CounterValues,
    offset: u64,
    /// The last line, as long as its end is missing.
    rest: Vec<u8>,
}

impl LogFollower {
    /// Follows from the beginning, counting the words that `source` names.
    pub fn new(source: &CounterSource) -> Self {
        let words = source.names.values().flatten().map(|term| term.name.clone()).collect();
        Self { words, ..Self::default() }
    }

    /// Reads what is new. A log that is not there yet is an empty one.
    pub fn read(&mut self, path: &Path) -> io::Result<&CounterValues> {
        let mut file = match assay_base::files::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(&self.counts),
            Err(e) => return Err(e),
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut new = Vec::new();
        self.offset += file.read_to_end(&mut new)? as u64;
        self.take(&new);
        Ok(&self.counts)
    }

    fn take(&mut self, new: &[u8]) {
        self.rest.extend_from_slice(new);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        for line in String::from_utf8_lossy(&whole).lines() {
            for word in &self.words {
                let begins = |at: usize| at == 0 || line.as_bytes()[at - 1] == b' ';
                if line.match_indices(word.as_str()).any(|(at, _)| begins(at)) {
                    *self.counts.entry(word.clone()).or_default() += 1;
                }
            }
        }
    }
}

/// Adds what a source says to our own counters; what it does not have counts as 0.
pub fn translate(source: &CounterSource, values: &CounterValues, into: &mut ProxyCounters) {
    for (counter, terms) in &source.names {
        let value = |name: &str| values.get(name).copied().unwrap_or(0);
        let sum: i64 = terms.iter().map(|term| term.factor.saturating_mul(value(&term.name))).sum();
        into.add(counter.name(), u64::try_from(sum).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(counters: &ProxyCounters) -> BTreeMap<String, f64> {
        counters.sample("", 0).counters
    }

    /// Names in proxy.parquet, which analyses request.
    #[test]
    fn counters_keep_their_names_in_the_record() {
        let mut all = ProxyCounters::default();
        assert_eq!(by_name(&all).len(), 14, "nothing is said of what a cache alone does not do");
        (all.peers.loops, all.prefetch.prefetched_used) = (1, 2);
        let names: Vec<String> = by_name(&all).into_keys().collect();
        assert_eq!(
            names.join(" "),
            "collapsed dismissed_clients evictions false_hits hits icp_bytes icp_hits icp_hits_sent \
             icp_refused icp_responses icp_responses_sent icp_sent icp_timeouts icp_wait_us loops misses objects origin_errors origin_requests parent_bytes \
             parent_fetches parent_hits passed peer_errors peer_hits peer_requests prefetched prefetched_bytes \
             prefetched_used prefetches_dropped refused requests revalidated sibling_bytes sibling_hits slow_clients stored_bytes"
        );
    }

    fn source(text: &str) -> CounterSource {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn varnishstats_counters_are_found_by_name() {
        let text = r#"{"version": 1, "counters": {"MAIN.cache_hit": {"description": "x", "value": 7}}}"#;
        assert_eq!(parse(CounterFormat::VarnishstatJson, text).unwrap()["MAIN.cache_hit"], 7);
        assert!(parse(CounterFormat::VarnishstatJson, "no").is_err());
    }

    #[test]
    fn lines_of_both_kinds_are_read_and_others_passed_over() {
        let text = "a.b = 3\n\tStorage Swap size:\t12 KB\nload: 1.9%\nratio = 2.5\nStart Time:\tFri\nodd\n";
        let values = parse(CounterFormat::Lines, text).unwrap();
        assert_eq!((values["a.b"], values["Storage Swap size"], values["ratio"]), (3, 12, 2));
        assert_eq!(values.len(), 3);
    }

    #[test]
    fn numbers_in_json_are_named_by_the_keys_that_lead_to_them() {
        let text = r#"{"global": {"a.b": "12", "c": 3.9, "d": "text", "e": {"f": -1}}, "n": null, "l": [1]}"#;
        let values = parse(CounterFormat::Json, text).unwrap();
        let expected = [("global.a.b", 12), ("global.c", 3), ("global.e.f", -1)];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value)).into());
        assert!(parse(CounterFormat::Json, "{").is_err());
    }

    #[test]
    fn haproxys_table_is_read_by_row_and_summed_over_proxies() {
        let text = "# pxname,svname,stot,rate,\nin,FRONTEND,7,1,\no0,s,3,,\no1,s,4,2,\n\n";
        let values = parse(CounterFormat::HaproxyCsv, text).unwrap();
        assert_eq!((values["in/FRONTEND.stot"], values["o1/s.stot"], values["all/s.stot"]), (7, 4, 7));
        assert_eq!(values["all/s.rate"], 2);
        assert!(parse(CounterFormat::HaproxyCsv, "Unknown command.\n").is_err());
    }

    #[test]
    fn a_word_that_is_counted_may_have_blanks_in_it() {
        let source = source("format = \"log-words\"\nlog = \"a\"\n[names]\nhits = ['\"cache hit']");
        let mut follower = LogFollower::new(&source);
        follower.take(b"1 \"cache hit\"/200\n2 \"cache miss: x\"/200 \n3 \"conditional cache hit\"\n");
        assert_eq!(follower.counts["\"cache hit"], 1);
    }

    #[test]
    fn a_log_is_counted_line_by_line_wherever_it_is_cut() {
        let source =
            source("format = \"log-words\"\nlog = \"a\"\n[names]\nhits = [\"HIT/\"]\nmisses = [\"MISS/\"]");
        let log = "1 HIT/200 x\n2 MISS/200 HIT/ish\n3 XHIT/200 y\n4 HIT/304 z";
        for cut in 0..log.len() {
            let mut follower = LogFollower::new(&source);
            follower.take(&log.as_bytes()[..cut]);
            follower.take(&log.as_bytes()[cut..]);
            follower.take(b"\n");
            let mut counters = ProxyCounters::default();
            translate(&source, &follower.counts, &mut counters);
            assert_eq!((counters.hits, counters.misses), (3, 1), "cut at {cut}");
        }
    }

    #[test]
    fn terms_are_added_with_their_factors_and_never_go_below_zero() {
        let source = source(
            "format = \"lines\"\npath = \"/\"\n[names]\nmisses = [\"all\", \"-hits\"]\nstored-bytes = [\"1024*kb\"]\n\
             hits = [\"-all\"]",
        );
        let values = CounterValues::from([("all".into(), 10), ("hits".into(), 4), ("kb".into(), 2)]);
        let mut counters = ProxyCounters::default();
        translate(&source, &values, &mut counters);
        assert_eq!((counters.misses, counters.stored_bytes, counters.hits), (6, 2048, 0));
        assert_eq!(by_name(&counters)["misses"], 6.0);
    }
}
