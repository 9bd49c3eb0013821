//! URLs and user agents that stand out, in lists.

use assay_base::settings::show::{bytes, count};

use super::text::{shorten, sparkline};
use super::{DIM, TerminalReport};
use crate::document::{Agents, Failed, LogsDocument, TopUrl};

/// Statuses whose URLs are shown; the document has all.
const MAX_STATUSES: usize = 8;
/// Characters of a course over time.
const SPARK_WIDTH: usize = 16;

impl TerminalReport {
    pub(super) fn top(&mut self, document: &LogsDocument) {
        let top = &document.top;
        let lists = [
            ("Most requests", &top.by_requests, top.floor_requests, "requests"),
            ("Most bytes", &top.by_bytes, top.floor_bytes, "bytes"),
            ("Most misses", &top.by_misses, top.floor_misses, "misses"),
        ];
        for (title, urls, floor, what) in lists {
            if urls.is_empty() {
                continue;
            }
            self.heading(title);
            self.urls(document, urls);
            if floor > 0 {
                let floor = if what == "bytes" { bytes(floor) } else { count(floor) };
                self.remark(&format!("an estimate: a URL that is not listed can have up to {floor} {what}"));
            }
        }
    }

    /// URLs with the columns that the log has.
    fn urls(&mut self, document: &LogsDocument, urls: &[TopUrl]) {
        let marked = |text: String, error: u64| if error > 0 { format!("≥{text}") } else { text };
        let (has_bytes, has_misses) =
            (document.all.bytes.is_some(), urls.iter().any(|url| url.misses.is_some()));
        let mut head = format!("{:>10}", "requests");
        head.push_str(&if has_bytes { format!(" {:>9}", "bytes") } else { String::new() });
        head.push_str(&if has_misses { format!(" {:>9}", "misses") } else { String::new() });
        let room = self.style.width.saturating_sub(head.chars().count() + 2);
        self.remark(&format!("{head}  URL"));
        for url in urls {
            let mut row = format!("{:>10}", marked(count(url.requests), url.requests_error));
            if has_bytes {
                row.push_str(&format!(" {:>9}", marked(bytes(url.bytes), url.bytes_error)));
            }
            if has_misses {
                let misses =
                    url.misses.map_or("–".into(), |misses| marked(count(misses), url.misses_error));
                row.push_str(&format!(" {misses:>9}"));
            }
            self.line(&format!("{row}  {}", shorten(&url.url, room)));
        }
    }

    /// URLs by status from 400 on.
    pub(super) fn failed(&mut self, document: &LogsDocument) {
        let Some(Failed { by_status, floor_requests }) = &document.failed else { return };
        if by_status.iter().all(|status| status.urls.is_empty()) {
            return;
        }
        self.heading("URLs with status 400 and above");
        self.remark(&format!("{:>6} {:>10}  {:SPARK_WIDTH$}  URL", "status", "requests", "over time"));
        let room = self.style.width.saturating_sub(6 + 1 + 10 + 2 + SPARK_WIDTH + 2);
        for status in by_status.iter().take(MAX_STATUSES) {
            for url in &status.urls {
                let requests = count(url.requests);
                let requests = if url.requests_error > 0 { format!("≥{requests}") } else { requests };
                let course = url.over_time.as_ref().zip(document.slots.as_ref());
                let course =
                    course.map_or(String::new(), |(counts, slots)| sparkline(counts, slots, SPARK_WIDTH));
                let url = shorten(&url.url, room);
                self.line(&format!("{:>6} {requests:>10}  {course:SPARK_WIDTH$}  {url}", status.status));
            }
            let listed: u64 = status.urls.iter().map(|url| url.requests).sum();
            if listed < status.requests {
                let others = count(status.requests - listed);
                self.line(&format!("{:>6} {others:>10}  {:SPARK_WIDTH$}  other URLs", status.status, ""));
            }
        }
        if by_status.len() > MAX_STATUSES {
            self.remark(&format!("… and {} more statuses", by_status.len() - MAX_STATUSES));
        }
        if *floor_requests > 0 {
            let floor = count(*floor_requests);
            self.remark(&format!(
                "an estimate: a URL that is not listed can have up to {floor} requests of a status"
            ));
        }
    }

    /// User agents that no rule knows.
    pub(super) fn unknown_agents(&mut self, document: &LogsDocument) {
        let Some(Agents { rules, unknown, floor_requests, .. }) = &document.agents else { return };
        if unknown.is_empty() {
            return;
        }
        self.heading(&format!("User agents that none of the {rules} rules knows"));
        self.remark(&format!("{:>10}  User-Agent", "requests"));
        let room = self.style.width.saturating_sub(12);
        for agent in unknown {
            let requests = count(agent.requests);
            let requests = if agent.requests_error > 0 { format!("≥{requests}") } else { requests };
            self.line(&format!("{requests:>10}  {}", shorten(&agent.text, room)));
        }
        if *floor_requests > 0 {
            let floor = count(*floor_requests);
            self.remark(&format!("an estimate: one that is not listed can have up to {floor} requests"));
        }
    }

    /// A line that stands back.
    pub(super) fn remark(&mut self, text: &str) {
        let text = self.paint(DIM, text);
        self.line(&text);
    }
}
