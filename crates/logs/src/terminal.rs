//! The analysis on a terminal: what a reader wants to know first, in tables that keep within its width.

use assay_settings::show::{bytes, count};

use std::fmt::Write as _;

use assay_measurement::ratios::ratio;

use crate::document::{Count, Document, Figures, Grouping, TopUrl};

/// How text may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// ANSI colours may be used.
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

/// Rows of a table that are shown; the document has all.
const ROWS: usize = 12;
/// Steps in time that are shown.
const STEPS: usize = 40;
const BAR: usize = 12;

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

struct Page {
    out: String,
    look: Look,
}

/// Writes the analysis for people.
pub fn render(document: &Document, look: Look) -> String {
    let mut page = Page { out: String::new(), look: Look { width: look.width.max(60), ..look } };
    page.inputs(document);
    page.headline(document);
    page.classes(document);
    page.phases(document);
    page.reconciliation(document);
    page.time(document);
    for grouping in &document.groups {
        page.grouping(grouping);
    }
    page.top(document);
    page.caches(document);
    page.malformed(document);
    page.notes(document);
    page.out
}

impl Page {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.look.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
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

    /// A name and what is said of it, wrapped.
    fn fact(&mut self, name: &str, text: &str) {
        let indent = 16;
        for (number, part) in wrap(text, self.look.width - indent).iter().enumerate() {
            let name = self.paint(DIM, &pad(if number == 0 { name } else { "" }, indent - 1));
            self.line(&format!("{name} {part}"));
        }
    }

    fn inputs(&mut self, document: &Document) {
        for input in document.inputs.iter().take(ROWS) {
            let how = match input.recognised {
                Some(share) if share < 1.0 => {
                    format!("recognised as {} ({:.0} % of its first lines)", input.format, share * 100.0)
                }
                Some(_) => format!("recognised as {}", input.format),
                None => format!("read as {}", input.format),
            };
            let compressed = input.compression.as_ref().map(|how| format!(", {how}")).unwrap_or_default();
            let text = format!(
                "{how}: {}; {} lines, {}{compressed}",
                input.format_about,
                count(input.lines),
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
        if document.inputs.len() > ROWS {
            self.fact("", &format!("and {} more files", document.inputs.len() - ROWS));
        }
    }

    fn headline(&mut self, document: &Document) {
        let all = &document.all;
        self.line("");
        if let (Some(first), Some(last)) = (document.first_unix_ms, document.last_unix_ms) {
            let seconds = (last - first) / 1e3;
            let rate = match all.requests as f64 / seconds {
                rate if seconds <= 0.0 || rate < 0.05 => String::new(),
                rate if rate < 100.0 => format!(", {rate:.1} requests/s"),
                rate => format!(", {} requests/s", count(rate.round() as u64)),
            };
            self.fact("time", &format!("{} to {} UTC, {}{rate}", date(first), date(last), duration(seconds)));
        }
        self.fact("requests", &format!("{}, {} in all", count(all.requests), bytes(all.bytes)));
        if let (Some(dhr), Some(bhr)) = (all.dhr, all.bhr) {
            let text = format!("DHR {}, BHR {}", percent(Some(dhr)), percent(Some(bhr)));
            let text = self.paint(GREEN, &text);
            let share = |part: u64| percent(ratio(part, all.requests));
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
                ms(response.mean_ms),
                ms(response.p50_ms),
                ms(response.p95_ms),
                ms(response.p99_ms),
                ms(response.max_ms)
            );
            self.fact("response time", &text);
        }
        let distinct = &document.distinct;
        let parts = [(&distinct.urls, "URL"), (&distinct.hosts, "host"), (&distinct.clients, "client")];
        self.fact("different", &parts.map(|(count, what)| several(count, what)).join(", "));
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

    fn others(&mut self, document: &Document) {
        let lines = &document.lines;
        let parts = [
            (lines.malformed, "could not be read"),
            (lines.outside, "outside the time requested"),
            (lines.other_urls, "not asked by robots"),
            (lines.without_request, "without a request"),
            (lines.empty, "empty or comments"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))).collect();
        if !parts.is_empty() {
            self.fact("other lines", &parts.join(", "));
        }
    }

    fn classes(&mut self, document: &Document) {
        self.heading("What became of requests");
        let rows: Vec<_> =
            document.by_class.iter().map(|class| (class.name.clone(), &class.figures)).collect();
        self.table("", rows, document.all.requests, false);
    }

    fn phases(&mut self, document: &Document) {
        if document.phases.is_empty() {
            return;
        }
        self.heading("Phases of the run");
        let rows = document.phases.iter().map(|phase| (phase.name.clone(), &phase.figures)).collect();
        self.table("phase", rows, document.all.requests, true);
    }

    fn reconciliation(&mut self, document: &Document) {
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
                for part in wrap(&row.why, self.look.width - 4) {
                    let part = self.paint(DIM, &part);
                    self.line(&format!("    {part}"));
                }
            }
        }
        for why in &reconciliation.why {
            for part in wrap(why, self.look.width) {
                let part = self.paint(DIM, &part);
                self.line(&part);
            }
        }
    }

    fn time(&mut self, document: &Document) {
        let Some(every_ms) = document.every_ms.filter(|_| document.time.len() > 1) else { return };
        self.heading(&format!("Over time, every {}", duration(every_ms / 1e3)));
        let skip = document.time.len().saturating_sub(STEPS);
        let shown = &document.time[..document.time.len() - skip];
        let rows = shown.iter().map(|step| (date(step.from_unix_ms), &step.figures)).collect();
        self.table("from", rows, document.all.requests, true);
        if skip > 0 {
            let text = self.paint(
                DIM,
                &format!("… and {skip} more steps (--json, --html or --parquet have all of them)"),
            );
            self.line(&text);
        }
    }

    fn grouping(&mut self, grouping: &Grouping) {
        self.heading(&grouping.title);
        let total = grouping.groups.iter().map(|group| group.figures.requests).sum();
        let by_size = grouping.by == "size";
        let shown = grouping.groups.iter().take(if by_size { 64 } else { ROWS });
        let rows = shown.map(|group| (group.name.clone(), &group.figures)).collect();
        self.table("", rows, total, true);
        let more = grouping.groups.len().saturating_sub(ROWS);
        if more > 0 && !by_size {
            let text = self.paint(DIM, &format!("… and {more} more"));
            self.line(&text);
        }
        if grouping.error_requests > 0 {
            let text = format!(
                "an estimate: up to {} requests of a row can be missing",
                count(grouping.error_requests)
            );
            let text = self.paint(DIM, &text);
            self.line(&text);
        }
    }

    /// Groups of requests, a row each.
    fn table(&mut self, first: &str, rows: Vec<(String, &Figures)>, total: u64, ratios: bool) {
        let timed = rows.iter().any(|(_, figures)| figures.response.is_some());
        let ratios = ratios && rows.iter().any(|(_, figures)| figures.dhr.is_some());
        let mut fixed = 11 + 7 + 9;
        fixed += if ratios { 14 } else { 0 } + if timed { 27 } else { 0 };
        let most = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(first.len());
        let width = most.clamp(12, self.look.width.saturating_sub(fixed).max(12));
        let with_bar = self.look.width >= fixed + width + BAR + 2;
        let mut head = format!("{} {:>10} {:>6} {:>8}", pad(first, width), "requests", "share", "bytes");
        if ratios {
            let _ = write!(head, " {:>6} {:>6}", "DHR", "BHR");
        }
        if timed {
            let _ = write!(head, " {:>8} {:>8} {:>8}", "mean", "median", "99 %");
        }
        let head = self.paint(DIM, &head);
        self.line(&head);
        for (name, figures) in rows {
            let share = ratio(figures.requests, total).unwrap_or(0.0);
            let mut row = format!(
                "{} {:>10} {:>6} {:>8}",
                pad(&shorten(&name, width), width),
                count(figures.requests),
                percent(Some(share)),
                bytes(figures.bytes)
            );
            if ratios {
                let _ = write!(row, " {:>6} {:>6}", percent(figures.dhr), percent(figures.bhr));
            }
            if timed {
                let of = |value: Option<f64>| value.map_or("–".into(), ms);
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
                let bar = self.paint(CYAN, &bar(share));
                let _ = write!(row, "  {bar}");
            }
            self.line(&row);
        }
    }

    fn top(&mut self, document: &Document) {
        let top = &document.top;
        let lists = [
            ("Most requests", &top.by_requests, top.floor_requests, "requests"),
            ("Most bytes", &top.by_bytes, top.floor_bytes, "bytes"),
            ("Most misses", &top.by_misses, top.floor_misses, "misses"),
        ];
        for (title, urls, floor, what) in lists {
            if urls.is_empty() || (what == "misses" && document.all.dhr.is_none()) {
                continue;
            }
            self.heading(title);
            self.urls(urls);
            if floor > 0 {
                let floor = if what == "bytes" { bytes(floor) } else { count(floor) };
                let text = format!("an estimate: a URL that is not listed can have up to {floor} {what}");
                let text = self.paint(DIM, &text);
                self.line(&text);
            }
        }
    }

    fn urls(&mut self, urls: &[TopUrl]) {
        let head = format!("{:>10} {:>9} {:>9}  URL", "requests", "bytes", "misses");
        let head = self.paint(DIM, &head);
        self.line(&head);
        for url in urls {
            let marked = |text: String, error: u64| if error > 0 { format!("≥{text}") } else { text };
            let room = self.look.width.saturating_sub(33);
            self.line(&format!(
                "{:>10} {:>9} {:>9}  {}",
                marked(count(url.requests), url.requests_error),
                marked(bytes(url.bytes), url.bytes_error),
                marked(count(url.misses), url.misses_error),
                shorten(&url.url, room)
            ));
        }
    }

    fn caches(&mut self, document: &Document) {
        if document.all.requests == 0 {
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
        for part in wrap(&text, self.look.width) {
            let part = self.paint(DIM, &part);
            self.line(&part);
        }
    }

    fn malformed(&mut self, document: &Document) {
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
            for part in wrap(&format!("{place} {}", line.reason), self.look.width) {
                self.line(&part);
            }
            let text = self.paint(DIM, &shorten(&line.text, self.look.width.saturating_sub(4)));
            self.line(&format!("    {text}"));
        }
    }

    fn notes(&mut self, document: &Document) {
        if document.notes.is_empty() {
            return;
        }
        self.line("");
        for note in &document.notes {
            for (number, part) in wrap(note, self.look.width - 2).iter().enumerate() {
                self.line(&format!("{} {part}", if number == 0 { "·" } else { " " }));
            }
        }
    }
}

pub(crate) fn estimate(estimated: &Count) -> String {
    let text = count(estimated.count as u64);
    if estimated.standard_error > 0.0 {
        format!("about {text} (± {:.1} %)", estimated.standard_error * 100.0)
    } else {
        text
    }
}

/// So many of something, whose name takes an s.
pub(crate) fn several(estimated: &Count, what: &str) -> String {
    let text = estimate(estimated);
    if text == "1" { format!("{text} {what}") } else { format!("{text} {what}s") }
}

pub(crate) fn percent(share: Option<f64>) -> String {
    match share {
        None => "–".into(),
        Some(share) if share >= 0.9995 => "100 %".into(),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

/// A time in milliseconds, with the unit people would use.
pub(crate) fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 0.9995 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{} s", (seconds * 1e3).round() / 1e3),
        0..120 => format!("{whole} s"),
        120..7200 => format!("{} min {} s", whole / 60, whole % 60),
        7200..172_800 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// An instant as `2026-11-20 20:34:40`, UTC.
pub(crate) fn date(unix_ms: f64) -> String {
    let seconds = (unix_ms / 1e3).floor() as i64;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// The day of the Gregorian calendar so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// Text of at most so many characters: the middle goes.
fn shorten(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let tail = width / 3;
    let head = width.saturating_sub(tail + 1);
    let end: String = text.chars().skip(length - tail).collect();
    text.chars().take(head).chain(['…']).collect::<String>() + &end
}

fn bar(share: f64) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

/// Words in lines of at most so many characters; colours count as nothing.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let visible = |text: &str| {
        let mut inside = false;
        text.chars()
            .filter(|c| {
                let colour = inside || *c == '\x1b';
                inside = colour && *c != 'm';
                !colour
            })
            .count()
    };
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if visible(line) + 1 + visible(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_write_them() {
        assert_eq!(
            (ms(0.25), ms(12.34), ms(12_345.0)),
            ("250 µs".into(), "12.3 ms".into(), "12.35 s".into())
        );
        assert_eq!(date(971_211_336_000.0), "2000-10-10 20:55:36");
        assert_eq!(date(-1.0), "1969-12-31 23:59:59");
        assert_eq!((duration(0.5), duration(3723.0)), ("0.5 s".into(), "62 min 3 s".into()));
        assert_eq!(shorten("http://example/abcdefghij", 12), "http://…ghij");
    }
}
