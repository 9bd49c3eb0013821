//! A summary in a terminal: the verdict as text, then the numbers of every phase.

use std::path::Path;

use crate::cache_logs;
use crate::document::{BoundedFigure, Figures, Mood, Percentiles, PhaseFigures, Summary};
use crate::figure_text;
use crate::format::{NOTHING, count, number, opt_number, percent};
use crate::hierarchy;
use crate::origins_only;
use crate::own;
use crate::own::text::DoubtView;
use crate::require::Decision;
use crate::special;
use crate::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours may be used.
    pub colour: bool,
    /// Columns of the terminal; tables and sentences keep within it (but never under 40).
    pub width: usize,
}

/// Bold, as the number of an escape sequence, as are those that follow.
pub const BOLD: &str = "1";
pub const DIM: &str = "2";
pub const RED: &str = "31";
pub const GREEN: &str = "32";
pub const YELLOW: &str = "33";
pub const CYAN: &str = "36";

/// The summary as text, with a newline at its end; `report` is the HTML page, if there is one to point to.
pub fn render(summary: &Summary, report: Option<&Path>, style: &Style) -> String {
    let mut page = SummaryPage { style: Style { width: style.width.max(40), ..*style }, text: String::new() };
    page.headline(summary);
    page.verdict(summary);
    page.requirements(summary);
    page.tables(summary);
    page.hierarchy(summary);
    page.facts(summary);
    page.errors(summary);
    page.disturbances(summary);
    page.list("Warnings", "!", YELLOW, &summary.warnings);
    page.list("Notes", "·", DIM, &summary.notes);
    page.places(summary, report);
    page.text
}

struct SummaryPage {
    style: Style,
    text: String,
}

impl SummaryPage {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.style.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    fn headline(&mut self, summary: &Summary) {
        let title = format!("{} → {}", summary.workload, text::target(summary));
        let title = self.paint(BOLD, &clean(&title));
        self.line(&title);
        if summary.partial {
            self.banner(YELLOW, &format!("PARTIAL: {}", text::partial(summary)));
        }
        self.line("");
    }

    fn banner(&mut self, code: &str, text: &str) {
        for line in wrapped(&clean(text), self.style.width) {
            let line = self.paint(code, &line);
            self.line(&line);
        }
    }

    fn doubts(&mut self, mark: &str, code: &str, doubts: &[DoubtView]) {
        for (index, doubt) in doubts.iter().enumerate() {
            if index > 0 {
                self.line("");
            }
            self.doubt(mark, code, doubt);
        }
    }

    /// A doubt: observation, place, party at fault, consequence and remedy, a paragraph each.
    fn doubt(&mut self, mark: &str, code: &str, doubt: &DoubtView) {
        for found in &doubt.found {
            self.item(mark, code, &found.seen);
            self.part("where", &found.place);
        }
        self.part("whose fault", &doubt.blame);
        self.part("why it matters", &doubt.why);
        self.part("what to do", &doubt.advice);
    }

    fn part(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.labelled(&format!("  {name:<16}"), text);
        }
    }

    fn verdict(&mut self, summary: &Summary) {
        for finding in &summary.verdict {
            let (mark, code) = match finding.mood {
                Mood::Good => ("✓", GREEN),
                Mood::Plain => ("·", DIM),
                Mood::Doubtful => ("!", YELLOW),
                Mood::Bad => ("✗", RED),
            };
            self.item(mark, code, &finding.text);
        }
        self.line("");
    }

    /// Doubts about Assay and this machine, with advice.
    fn disturbances(&mut self, summary: &Summary) {
        for (serious, heading) in
            [(true, "What disturbed the run"), (false, "Worth knowing of Assay and this machine")]
        {
            let doubts = own::text::doubts(summary, serious);
            if !doubts.is_empty() {
                self.heading(heading);
                self.doubts("!", YELLOW, &doubts);
                self.line("");
            }
        }
    }

    fn requirements(&mut self, summary: &Summary) {
        if summary.requirements.is_empty() {
            return;
        }
        self.heading("Requirements");
        let width =
            summary.requirements.iter().map(|one| one.text.chars().count()).max().unwrap_or(0).min(40);
        for one in &summary.requirements {
            let (mark, code) = match one.decision {
                Some(Decision::Held) => ("✓", GREEN),
                Some(Decision::Failed) => ("✗", RED),
                Some(Decision::Undecided) => ("?", YELLOW),
                Some(Decision::TooEarly) | None => ("·", DIM),
            };
            let text = clean(&one.text);
            let mark = self.paint(code, mark);
            let undecided = if one.decision == Some(Decision::Undecided) { ", undecided" } else { "" };
            self.line(&format!("{mark} {text:<width$}  {}{undecided}", clean(&one.seen)));
        }
        self.line("");
    }

    /// A marked paragraph with a hanging indent.
    fn item(&mut self, mark: &str, code: &str, text: &str) {
        let mark = self.paint(code, mark);
        for (index, line) in wrapped(&clean(text), self.style.width - 2).into_iter().enumerate() {
            let head = if index == 0 { mark.as_str() } else { " " };
            self.line(&format!("{head} {line}"));
        }
    }

    fn heading(&mut self, text: &str) {
        let text = self.paint(BOLD, text);
        self.line(&text);
    }

    fn tables(&mut self, summary: &Summary) {
        let named = |phase: &PhaseFigures| clean(&phase.name);
        let mut names: Vec<String> = summary.phases.iter().map(named).collect();
        names.push("total".to_owned());
        let mut rows: Vec<&Figures> = summary.phases.iter().map(|phase| &phase.figures).collect();
        rows.push(&summary.total);
        let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(5);

        let mut block: Vec<ColumnGroup> = Vec::new();
        let mut used = name_width;
        let groups =
            if origins_only::is_origins_only(summary) { origin_groups(&rows) } else { groups(&rows) };
        for group in groups.into_iter().filter(ColumnGroup::says_something) {
            if !block.is_empty() && used + 3 + group.width() > self.style.width {
                self.block(&names, name_width, &std::mem::take(&mut block));
                used = name_width;
            }
            used += 3 + group.width();
            block.push(group);
        }
        self.block(&names, name_width, &block);
    }

    /// Groups of columns side by side, with the phases' names before them.
    fn block(&mut self, names: &[String], name_width: usize, groups: &[ColumnGroup]) {
        let mut titles = " ".repeat(name_width);
        let mut heads = format!("{:<name_width$}", "phase");
        for group in groups {
            titles.push_str(&format!("   {:<1$}", group.title, group.width()));
            heads.push_str("   ");
            heads.push_str(&group.row(&group.heads()));
        }
        let (titles, heads) = (self.paint(CYAN, titles.trim_end()), self.paint(DIM, &heads));
        self.line(&titles);
        self.line(&heads);
        for (index, name) in names.iter().enumerate() {
            let mut row = format!("{name:<name_width$}");
            for group in groups {
                row.push_str("   ");
                row.push_str(&group.row(&group.cells(index)));
            }
            let row = if index + 1 == names.len() { self.paint(BOLD, &row) } else { row };
            self.line(&row);
        }
        self.line("");
    }

    fn hierarchy(&mut self, summary: &Summary) {
        self.counted_by_caches(summary);
        let Some(logs) = &summary.cache_logs else { return };
        let when = logs.phase.as_ref().map_or("the whole run".to_owned(), |phase| format!("phase {phase}"));
        self.heading(&clean(&format!("What the access logs say of {when}")));
        for sentence in cache_logs::sentences(logs) {
            self.item("·", DIM, &sentence);
        }
        self.line("");
    }

    fn counted_by_caches(&mut self, summary: &Summary) {
        let Some(hierarchy) = &summary.hierarchy else { return };
        let when =
            hierarchy.phase.as_ref().map_or("the whole run".to_owned(), |phase| format!("phase {phase}"));
        self.heading(&clean(&format!("Caches, as they counted in {when}")));
        for sentence in hierarchy::sentences(hierarchy) {
            self.item("·", DIM, &sentence);
        }
        self.line("");
    }

    fn facts(&mut self, summary: &Summary) {
        let total = &summary.total;
        if origins_only::is_origins_only(summary) {
            self.origin_traffic(total);
        } else {
            self.traffic(total);
        }
        let cpu: Vec<String> = ["proxy", "robots", "origins"]
            .iter()
            .filter_map(|role| {
                let per_request = total.cpu_us_per_request.get(*role)?;
                let cores = opt_number(total.resources.get(*role).and_then(|used| used.cpu_cores));
                Some(match per_request {
                    Some(per_request) => format!("{role} {} µs ({cores} cores)", number(*per_request)),
                    None => format!("{role} {cores} cores"),
                })
            })
            .collect();
        if !cpu.is_empty() {
            let name = if origins_only::is_origins_only(summary) { "CPU" } else { "CPU/request" };
            self.fact(name, &cpu.join(", "));
        }
        if let Some(text) = text::working_set(summary) {
            self.fact("working set", &text);
        }
        for (name, text) in text::resource_lines(total) {
            self.fact(name, &text);
        }
        self.fact("stream", &format!("seed {}, digest {}", summary.seed, summary.stream_digest));
        for (name, text) in summary
            .fleet
            .iter()
            .flat_map(|fleet| crate::fleet::lines(fleet, summary.total.counts.unsure_outcomes))
        {
            self.fact(name, &text);
        }
        self.line("");
    }

    fn origin_traffic(&mut self, total: &Figures) {
        let bandwidth = opt_number(total.bandwidth_mbit_s.origin_out);
        self.fact("bandwidth", &format!("{bandwidth} Mbit/s from the origins"));
        let (opened, peak) = (total.connections.origin_opened, total.connections.origin_peak);
        self.fact(
            "connections",
            &format!("{} at the origins (at most {} at once)", count(opened), count(peak)),
        );
    }

    fn traffic(&mut self, total: &Figures) {
        let outcomes = &total.outcomes;
        self.fact(
            "outcomes",
            &format!(
                "{} hits, {} collapsed, {} revalidated, {} misses of {} plain GETs",
                count(outcomes.hit),
                count(outcomes.collapsed),
                count(outcomes.revalidated),
                count(outcomes.miss),
                count(total.counts.basic)
            ),
        );
        self.fact(
            "offload",
            &match [total.figure("offload.requests"), total.figure("offload.bytes")] {
                [Some(requests), Some(bytes)] if requests.value.is_some() => {
                    format!(
                        "{} of requests, {} of bytes",
                        figure_text::ratio(requests),
                        figure_text::ratio(bytes)
                    )
                }
                [None, _] | [_, None] => NOTHING.to_owned(),
                _ => "not known".to_owned(),
            },
        );
        let bandwidth = &total.bandwidth_mbit_s;
        self.fact(
            "bandwidth",
            &format!(
                "{} Mbit/s to the robots, {} Mbit/s from the origins",
                opt_number(bandwidth.client_in),
                opt_number(bandwidth.origin_out)
            ),
        );
        let connections = &total.connections;
        self.fact(
            "connections",
            &format!(
                "{} opened by robots (at most {} at once), {} at the origins (at most {})",
                count(connections.client_opened),
                count(connections.client_peak),
                count(connections.origin_opened),
                count(connections.origin_peak)
            ),
        );
        if let Some(spoken) = text::tls(total) {
            self.fact("TLS", &spoken);
        }
    }

    fn fact(&mut self, name: &str, text: &str) {
        self.labelled(&format!("{name:<15}"), text);
    }

    /// A paragraph beside its label.
    fn labelled(&mut self, label: &str, text: &str) {
        let room = label.chars().count();
        let head = self.paint(DIM, label);
        for (index, line) in wrapped(&clean(text), self.style.width - room).into_iter().enumerate() {
            let head = if index == 0 { head.clone() } else { " ".repeat(room) };
            self.line(&format!("{head}{line}"));
        }
    }

    fn errors(&mut self, summary: &Summary) {
        if summary.total.errors.total == 0 {
            return;
        }
        self.heading("Errors");
        for (kind, n) in &summary.total.errors.by_kind {
            self.item("✗", RED, &format!("{kind}: {}", count(*n)));
            if let Some(example) = summary.examples.iter().find(|example| example.kind == *kind) {
                let text = format!(
                    "for example {} ({}, phase {}, {:.3} s): {}",
                    example.request,
                    example.xact,
                    example.phase,
                    example.at_ms as f64 / 1000.0,
                    example.detail
                );
                self.item(" ", DIM, &text);
            }
        }
        self.line("");
    }

    fn list(&mut self, heading: &str, mark: &str, code: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.heading(heading);
        for item in items {
            self.item(mark, code, item);
        }
        self.line("");
    }

    fn places(&mut self, summary: &Summary, report: Option<&Path>) {
        self.fact("run directory", &summary.run);
        if let Some(report) = report {
            self.fact("report", &report.to_string_lossy());
        }
    }
}

/// Columns that belong together.
struct ColumnGroup {
    title: &'static str,
    columns: Vec<(&'static str, Vec<String>)>,
}

impl ColumnGroup {
    fn new(title: &'static str) -> Self {
        Self { title, columns: Vec::new() }
    }

    fn column(mut self, head: &'static str, rows: &[&Figures], cell: impl Fn(&Figures) -> String) -> Self {
        self.columns.push((head, rows.iter().map(|figures| cell(figures)).collect()));
        self
    }

    /// Without its columns, if this is false.
    fn only_if(mut self, wanted: bool) -> Self {
        if !wanted {
            self.columns.clear();
        }
        self
    }

    fn column_width(column: &(&'static str, Vec<String>)) -> usize {
        column.1.iter().map(|cell| cell.chars().count()).max().unwrap_or(0).max(column.0.chars().count())
    }

    fn width(&self) -> usize {
        let columns: usize = self.columns.iter().map(Self::column_width).sum();
        (columns + 2 * self.columns.len().saturating_sub(1)).max(self.title.chars().count())
    }

    fn says_something(&self) -> bool {
        self.columns.iter().any(|column| column.1.iter().any(|cell| cell != NOTHING))
    }

    fn heads(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.0).collect()
    }

    fn cells(&self, row: usize) -> Vec<&str> {
        self.columns.iter().map(|column| column.1[row].as_str()).collect()
    }

    fn row(&self, cells: &[&str]) -> String {
        let cells: Vec<String> = self
            .columns
            .iter()
            .zip(cells)
            .map(|(column, cell)| format!("{cell:>width$}", width = Self::column_width(column)))
            .collect();
        format!("{:<1$}", cells.join("  "), self.width())
    }
}

fn groups(rows: &[&Figures]) -> Vec<ColumnGroup> {
    let mut groups = plain_groups(rows);
    for (title, columns) in special::columns(rows) {
        let shown = |column: &special::SpecialColumn| {
            (column.0, column.1.iter().map(|number| count(*number)).collect())
        };
        groups.push(ColumnGroup { title, columns: columns.iter().map(shown).collect() });
    }
    groups
}

fn origin_groups(rows: &[&Figures]) -> Vec<ColumnGroup> {
    vec![
        ColumnGroup::new("requests")
            .column("received", rows, |f| count(f.origins.counts.requests))
            .column("per second", rows, |f| opt_number(f.origins.rate))
            .column("304", rows, |f| count(f.origins.counts.not_modified))
            .column("refused", rows, |f| count(f.origins.counts.refused))
            .column("broken", rows, |f| count(f.origins.counts.broken)),
        times("service time, ms", rows, |f| &f.origins.service_time_ms),
    ]
}

fn plain_groups(rows: &[&Figures]) -> Vec<ColumnGroup> {
    vec![
        ColumnGroup::new("requests")
            .column("sent", rows, |f| count(f.counts.requests))
            .column("unsent", rows, |f| count(f.counts.unsent))
            .column("errors", rows, |f| count(f.errors.total)),
        ColumnGroup::new("rate, per second").column("offered", rows, |f| opt_number(f.rate.offered)).column(
            "measured",
            rows,
            |f| figure(f.figure("rate.measured")),
        ),
        ColumnGroup::new("document hit ratio, %")
            .column("offered", rows, |f| percent(f.dhr.offered))
            .column("ideal", rows, |f| percent(f.dhr.ideal))
            .column("measured", rows, |f| ratio(f.figure("dhr.measured"))),
        ColumnGroup::new("byte hit ratio, %")
            .column("offered", rows, |f| percent(f.bhr.offered))
            .column("ideal", rows, |f| percent(f.bhr.ideal))
            .column("measured", rows, |f| ratio(f.figure("bhr.measured"))),
        times("response time, ms", rows, |f| &f.response_time_ms.all),
        times("of those that ended, ms", rows, |f| &f.response_time_ms.completed)
            .only_if(rows.iter().any(|f| f.response_time_ms.all.count > f.response_time_ms.completed.count)),
        times("of hits, ms", rows, |f| &f.response_time_ms.hit),
        times("of misses, ms", rows, |f| &f.response_time_ms.miss),
    ]
}

/// A number, as well as it is known.
fn figure(figure: Option<BoundedFigure>) -> String {
    figure_text::cell(figure, number)
}

/// A hit ratio in percent, as well as it is known.
fn ratio(figure: Option<BoundedFigure>) -> String {
    figure_text::cell(figure, |ratio| percent(Some(ratio)))
}

fn times(title: &'static str, rows: &[&Figures], pick: impl Fn(&Figures) -> &Percentiles) -> ColumnGroup {
    ColumnGroup::new(title)
        .column("mean", rows, |f| figure(pick(f).figure("mean")))
        .column("p50", rows, |f| figure(pick(f).figure("p50")))
        .column("p99", rows, |f| figure(pick(f).figure("p99")))
}

/// Text from elsewhere, without anything that could steer a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Lines of at most `width` characters; a longer word has a line of its own.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in unbroken(text) {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { break };
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += length;
    }
    if lines.len() == 1 && used == 0 {
        lines[0].push_str(NOTHING);
    }
    lines
}

/// The words of a text; a number and its unit are one.
pub(crate) fn unbroken(text: &str) -> Vec<String> {
    const UNITS: [&str; 16] = [
        "%", "s", "ms", "µs", "min", "h", "B", "KB", "MB", "GB", "MB/s", "Mbit/s", "points", "cores",
        "waits/s", "times/s",
    ];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
        match words.last_mut().filter(|last| is_unit && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => {
                number.push(' ');
                number.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use assay_measurement::counts::RobotRequests;

    use super::*;

    #[test]
    fn sentences_are_wrapped_at_the_width() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("after 3.00 s (99 %)", 10), ["after", "3.00 s", "(99 %)"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrapped("", 4), ["–"]);
    }

    #[test]
    fn text_from_a_proxy_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\nc"), "a [31mb c");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let counts = RobotRequests { requests: 1_234_567, ..RobotRequests::default() };
        let figures = Figures { counts, ..Figures::default() };
        let group = ColumnGroup::new("requests").column("sent", &[&figures], |f| count(f.counts.requests));
        assert_eq!(group.row(&group.heads()), "     sent");
        assert_eq!(group.row(&group.cells(0)), "1,234,567");
    }
}
