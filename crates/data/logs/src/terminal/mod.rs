//! The analysis on a terminal: what a reader wants to know first, in tables that keep within its width.

mod text;
mod urls;

use std::fmt::Write as _;

use assay_base::settings::show::{bytes, count};
use assay_measurement::ratios::ratio;

use crate::document::{Figures, Group, Grouping, LogsDocument, NotLogged, Slots};
pub(crate) use text::lines;
use text::{BAR_WIDTH, bar, pad, shorten, wrap};
pub(crate) use text::{date, duration, estimate, logged_ms, percent, plural, sparkline};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    /// ANSI colours may be used.
    pub colour: bool,
    pub width: usize,
}

/// Rows of a table that are shown; the document has all.
const MAX_ROWS: usize = 12;
/// Steps in time that are shown.
const MAX_STEPS: usize = 40;

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

struct TerminalReport {
    out: String,
    style: TextStyle,
    /// Resolution of response times.
    resolution_ms: Option<f64>,
    /// Slots of the counts over time.
    slots: Option<Slots>,
}

/// Writes the analysis for people.
pub fn render(document: &LogsDocument, style: TextStyle) -> String {
    let mut page = TerminalReport {
        out: String::new(),
        style: TextStyle { width: style.width.max(60), ..style },
        resolution_ms: document.response_resolution_ms,
        slots: document.slots.clone(),
    };
    page.inputs(document);
    page.headline(document);
    page.classes(document);
    page.phases(document);
    page.reconciliation(document);
    page.time(document);
    for grouping in &document.groups {
        page.grouping(grouping, document.all.requests);
    }
    page.unknown_agents(document);
    page.top(document);
    page.failed(document);
    page.caches(document);
    page.not_logged(document);
    page.malformed(document);
    page.notes(document);
    page.out
}

impl TerminalReport {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn heading(&mut self, text: &str) {
        let text = self.paint(BOLD, text);
        self.line("");
        self.line(&text);
    }

    fn ms(&self, value_ms: f64) -> String {
        logged_ms(value_ms, self.resolution_ms)
    }

    /// A name and what is said of it, wrapped.
    fn fact(&mut self, name: &str, text: &str) {
        let indent = 16;
        for (number, part) in wrap(text, self.style.width - indent).iter().enumerate() {
            let name = self.paint(DIM, &pad(if number == 0 { name } else { "" }, indent - 1));
            self.line(&format!("{name} {part}"));
        }
    }

    fn inputs(&mut self, document: &LogsDocument) {
        for input in document.inputs.iter().take(MAX_ROWS) {
            let how = match input.recognised {
                Some(share) if share < 1.0 => {
                    format!("recognised as {} ({:.0} % of its first lines)", input.format, share * 100.0)
                }
                Some(_) => format!("recognised as {}", input.format),
                None => format!("read as {}", input.format),
            };
            let compressed = input.compression.as_ref().map(|how| format!(", {how}")).unwrap_or_default();
            let text = format!(
                "{how}: {}; {}, {}{compressed}",
                input.format_about,
                lines(input.lines),
                bytes(input.bytes)
            );
            if input.name.chars().count() > 15 {
                self.fact("log", &format!("{} {text}", input.name));
            } else {
                self.fact(&input.name, &text);
            }
            if let Some(broken) = &input.broken {
                let text = self.paint(YELLOW, &format!("! it ends early: {broken}"));
                self.fact("", &text);
            }
        }
        if document.inputs.len() > MAX_ROWS {
            self.fact("", &format!("and {} more files", document.inputs.len() - MAX_ROWS));
        }
    }

    fn headline(&mut self, document: &LogsDocument) {
        let all = &document.all;
        self.line("");
        if let (Some(first), Some(last)) = (document.first_unix_ms, document.last_unix_ms) {
            let covered_s = document.time.iter().map(|step| step.covered_ms).sum::<f64>() / 1e3;
            self.fact("time", &time_span(first, last, covered_s, all.requests));
        } else {
            self.fact("time", "not known");
        }
        let size = all.bytes.map_or("bytes not known".into(), |sum| format!("{} in all", bytes(sum)));
        self.fact("requests", &format!("{}, {size}", count(all.requests)));
        if all.dhr.is_none() && all.requests > 0 {
            self.fact("hit ratios", "not known: the log does not say what became of requests");
        }
        if let (Some(dhr), Some(bhr)) = (all.dhr, all.bhr) {
            let text = format!("DHR {}, BHR {}", percent(Some(dhr)), percent(Some(bhr)));
            let text = self.paint(GREEN, &text);
            let share = |part: Option<u64>| percent(all.share_of_known(part));
            let parts = format!(
                "{text}: local {}, sibling {}, parent {}; {} revalidated",
                share(all.local_hits),
                share(all.sibling_hits),
                share(all.parent_hits),
                share(all.revalidated)
            );
            self.fact("hit ratios", &parts);
        }
        if let Some(response) = &all.response {
            let text = format!(
                "mean {}, median {}, 95 % {}, 99 % {}, longest {}",
                self.ms(response.mean_ms),
                self.ms(response.p50_ms),
                self.ms(response.p95_ms),
                self.ms(response.p99_ms),
                self.ms(response.max_ms)
            );
            self.fact("response time", &text);
        } else if all.requests > 0 {
            self.fact("response time", "not known: the log does not say how long requests took");
        }
        let distinct = &document.distinct;
        let parts = [
            (&distinct.urls, "URL"),
            (&distinct.hosts, "host"),
            (&distinct.clients, "client"),
            (&distinct.agents, "user agent"),
            (&distinct.referring_sites, "referring site"),
        ];
        let known = parts.iter().filter_map(|(number, what)| Some(plural(number.as_ref()?, what)));
        let known: Vec<String> = known.collect();
        if !known.is_empty() {
            self.fact("different", &known.join(", "));
        }
        let queries = &document.peer_queries;
        if queries.hits + queries.misses > 0 {
            let text = format!(
                "{} hits, {} others (not among the requests)",
                count(queries.hits),
                count(queries.misses)
            );
            self.fact("peer queries", &text);
        }
        self.others(document);
    }

    fn others(&mut self, document: &LogsDocument) {
        let lines = &document.lines;
        let parts = [
            (lines.malformed, "could not be read"),
            (lines.cut, "cut off"),
            (lines.outside, "outside the selected time"),
            (lines.other_urls, "of requests that no robot sent"),
            (lines.without_request, "without a request"),
            (lines.fetches, "fetches from a backend"),
            (lines.empty, "empty or comments"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))).collect();
        if !parts.is_empty() {
            self.fact("other lines", &parts.join(", "));
        }
    }

    fn classes(&mut self, document: &LogsDocument) {
        if document.all.dhr.is_none() {
            return;
        }
        self.heading("What became of requests");
        let rows = document.by_class.iter().map(|class| GroupRow::of(class.name.clone(), &class.figures));
        let rows = rows.collect();
        self.table("", rows, document.all.requests, false);
    }

    fn phases(&mut self, document: &LogsDocument) {
        if document.phases.is_empty() {
            return;
        }
        self.heading("Phases of the run");
        let rows =
            document.phases.iter().map(|phase| GroupRow::of(phase.name.clone(), &phase.figures)).collect();
        self.table("phase", rows, document.all.requests, true);
    }

    fn reconciliation(&mut self, document: &LogsDocument) {
        let Some(reconciliation) = &document.reconciliation else { return };
        self.heading("What robots counted, and what the log says");
        let head = format!("{} {:>12} {:>12} {:>9}", pad("", 34), "run", "log", "apart");
        let head = self.paint(DIM, &head);
        self.line(&head);
        for row in &reconciliation.rows {
            let apart = row.log - row.run;
            let apart = if apart == 0.0 { "0".into() } else { format!("{apart:+}") };
            self.line(&format!(
                "{} {:>12} {:>12} {apart:>9}",
                pad(&row.what, 34),
                count(row.run as u64),
                count(row.log as u64)
            ));
            if row.log != row.run && !row.why.is_empty() {
                for part in wrap(&row.why, self.style.width - 4) {
                    let part = self.paint(DIM, &part);
                    self.line(&format!("    {part}"));
                }
            }
        }
        for why in &reconciliation.why {
            for part in wrap(why, self.style.width) {
                let part = self.paint(DIM, &part);
                self.line(&part);
            }
        }
    }

    fn time(&mut self, document: &LogsDocument) {
        let Some(every_ms) = document.every_ms.filter(|_| document.time.len() > 1) else { return };
        self.heading(&format!("Over time, every {}", duration(every_ms / 1e3)));
        let skip = document.time.len().saturating_sub(MAX_STEPS);
        let shown = &document.time[..document.time.len() - skip];
        let rows = shown.iter().map(|step| GroupRow::of(date(step.from_unix_ms), &step.figures)).collect();
        self.table("from", rows, document.all.requests, true);
        if let Some(partial) = partial_steps(document) {
            self.remark(&partial);
        }
        if skip > 0 {
            self.remark(&format!("… and {skip} more steps (--json, --html or --parquet have all of them)"));
        }
    }

    fn grouping(&mut self, grouping: &Grouping, total: u64) {
        self.heading(&grouping.title);
        let by_size = grouping.by == "size";
        let shown = grouping.groups.iter().take(if by_size { 64 } else { MAX_ROWS });
        let rows = shown.map(GroupRow::group).collect();
        self.table("", rows, total, true);
        let more = grouping.groups.len().saturating_sub(MAX_ROWS);
        if more > 0 && !by_size {
            self.remark(&format!("… and {more} more"));
        }
        if grouping.error_requests > 0 {
            let text = format!(
                "an estimate: up to {} requests of a row can be missing",
                count(grouping.error_requests)
            );
            self.remark(&text);
        }
    }

    /// Groups of requests, a row each.
    fn table(&mut self, first: &str, rows: Vec<GroupRow<'_>>, total: u64, ratios: bool) {
        let timed = rows.iter().any(|row| row.figures.response.is_some());
        let sized = rows.iter().any(|row| row.figures.bytes.is_some());
        let ratios = ratios && rows.iter().any(|row| row.figures.dhr.is_some());
        let mut fixed = 11 + 7;
        fixed += if sized { 9 } else { 0 } + if ratios { 14 } else { 0 } + if timed { 27 } else { 0 };
        let most = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(first.len());
        let width = most.clamp(12, self.style.width.saturating_sub(fixed).max(12));
        let with_bar = self.style.width >= fixed + width + BAR_WIDTH + 2;
        let mut head = format!("{} {:>10} {:>6}", pad(first, width), "requests", "share");
        if sized {
            let _ = write!(head, " {:>8}", "bytes");
        }
        if ratios {
            let _ = write!(head, " {:>6} {:>6}", "DHR", "BHR");
        }
        if timed {
            let _ = write!(head, " {:>8} {:>8} {:>8}", "mean", "median", "99 %");
        }
        if with_bar && rows.iter().any(|row| row.over_time.is_some()) {
            head.push_str("  over time");
        }
        self.remark(&head);
        for GroupRow { name, figures, over_time } in rows {
            let share = ratio(figures.requests, total).unwrap_or(0.0);
            let mut row = format!(
                "{} {:>10} {:>6}",
                pad(&shorten(&name, width), width),
                count(figures.requests),
                percent(Some(share))
            );
            if sized {
                let _ = write!(row, " {:>8}", figures.bytes.map_or("–".into(), bytes));
            }
            if ratios {
                let _ = write!(row, " {:>6} {:>6}", percent(figures.dhr), percent(figures.bhr));
            }
            if timed {
                let of = |value: Option<f64>| value.map_or("–".into(), |value| self.ms(value));
                let response = figures.response.as_ref();
                let _ = write!(
                    row,
                    " {:>8} {:>8} {:>8}",
                    of(response.map(|r| r.mean_ms)),
                    of(response.map(|r| r.p50_ms)),
                    of(response.map(|r| r.p99_ms))
                );
            }
            if with_bar {
                let course = over_time.zip(self.slots.as_ref());
                let bar =
                    course.map_or_else(|| bar(share), |(counts, slots)| sparkline(counts, slots, BAR_WIDTH));
                let bar = self.paint(CYAN, &bar);
                let _ = write!(row, "  {bar}");
            }
            self.line(&row);
        }
    }

    fn caches(&mut self, document: &LogsDocument) {
        if document.all.requests == 0 || document.caches.caches.is_empty() {
            return;
        }
        self.heading("What other caches would have made of these requests");
        let head = format!("{} {:>8} {:>8}", pad("", 24), "DHR", "BHR");
        let head = self.paint(DIM, &head);
        self.line(&head);
        for cache in &document.caches.caches {
            let name = match cache.size_bytes {
                None => "ideal (no bounds)".to_owned(),
                Some(capacity) => format!("LRU of {}", bytes(capacity)),
            };
            let error = cache.dhr_standard_error.filter(|error| *error > 0.0);
            let error = error.map(|error| format!("  ± {:.2} %", error * 100.0)).unwrap_or_default();
            self.line(&format!(
                "{} {:>8} {:>8}{error}",
                pad(&name, 24),
                percent(cache.dhr),
                percent(cache.bhr)
            ));
        }
        if document.all.dhr.is_some() {
            let (dhr, bhr) = (percent(document.all.dhr), percent(document.all.bhr));
            self.line(&format!("{} {dhr:>8} {bhr:>8}", pad("this one, as logged", 24)));
        }
        let mut text = format!("Taken for granted: {}.", document.caches.assumptions.join("; "));
        if document.caches.sampling_rate < 1.0 {
            let _ = write!(
                text,
                " These are estimates from a sample of {} objects, {:.2} % of all.",
                count(document.caches.objects),
                document.caches.sampling_rate * 100.0
            );
        }
        for part in wrap(&text, self.style.width) {
            let part = self.paint(DIM, &part);
            self.line(&part);
        }
    }

    /// Facts that the logs lack, and how to log them.
    fn not_logged(&mut self, document: &LogsDocument) {
        let mut lacks: Vec<&NotLogged> = Vec::new();
        for lack in document.inputs.iter().flat_map(|input| &input.not_logged) {
            if !lacks.iter().any(|known| known.what == lack.what) {
                lacks.push(lack);
            }
        }
        if lacks.is_empty() {
            return;
        }
        self.heading("What these lines do not say");
        for lack in lacks {
            let how: Vec<String> =
                lack.how.iter().map(|notation| format!("{}: {}", notation.proxy, notation.field)).collect();
            let how = if how.is_empty() { String::new() } else { format!("; to log it, {}", how.join(", ")) };
            self.fact(&lack.what, &format!("{} are not known{how}", lack.unknown));
        }
    }

    fn malformed(&mut self, document: &LogsDocument) {
        if document.malformed.is_empty() {
            return;
        }
        let total = count(document.lines.malformed);
        self.heading(&format!(
            "Lines that could not be read: {total}, the first {}",
            document.malformed.len()
        ));
        for line in &document.malformed {
            let place = self.paint(YELLOW, &format!("{}:{}", line.input, line.line));
            for part in wrap(&format!("{place} {}", line.reason), self.style.width) {
                self.line(&part);
            }
            let text = self.paint(DIM, &shorten(&line.text, self.style.width.saturating_sub(4)));
            self.line(&format!("    {text}"));
        }
    }

    fn notes(&mut self, document: &LogsDocument) {
        if document.notes.is_empty() {
            return;
        }
        self.line("");
        for note in &document.notes {
            for (number, part) in wrap(note, self.style.width - 2).iter().enumerate() {
                self.line(&format!("{} {part}", if number == 0 { "·" } else { " " }));
            }
        }
    }
}

/// A row of a table of groups.
struct GroupRow<'a> {
    name: String,
    figures: &'a Figures,
    over_time: Option<&'a [u64]>,
}

impl<'a> GroupRow<'a> {
    fn of(name: String, figures: &'a Figures) -> Self {
        Self { name, figures, over_time: None }
    }

    fn group(group: &'a Group) -> Self {
        Self { name: group.name.clone(), figures: &group.figures, over_time: group.over_time.as_deref() }
    }
}

/// From when to when, and the rate over the time that the log covers, where that is long enough to have one.
fn time_span(first_ms: f64, last_ms: f64, covered_s: f64, requests: u64) -> String {
    if last_ms <= first_ms {
        return format!("{} UTC", date(first_ms));
    }
    let seconds = (last_ms - first_ms) / 1e3;
    let rate = match requests as f64 / covered_s.max(seconds) {
        rate if rate < 0.05 => String::new(),
        rate if rate < 100.0 => format!(", {rate:.1} requests/s"),
        rate => format!(", {} requests/s", count(rate.round() as u64)),
    };
    format!("{} to {} UTC, {}{rate}", date(first_ms), date(last_ms), duration(seconds))
}

/// Sentence on a first or last step that is not complete.
pub(crate) fn partial_steps(document: &LogsDocument) -> Option<String> {
    let every_ms = document.every_ms?;
    let (first, last) = (document.time.first()?, document.time.last()?);
    let parts = [("first", first), ("last", last)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, step)| step.covered_ms < every_ms)
        .map(|(name, step)| format!("{} of the {name} step", duration(step.covered_ms / 1e3)))
        .collect();
    (!parts.is_empty()).then(|| format!("the log covers only {}", parts.join(" and ")))
}
