//! The tables and lists of the HTML page, as text.

use std::path::Path;

use assay_record::dir::RunDir;
use serde::Serialize;

use crate::document::{BoundedFigure, Figures, Percentiles, Summary};
use crate::figure_text;
use crate::format::{bytes, count, date, duration_s, number, opt_number, percent};
use crate::resources::{host, resources};
use crate::speed;
use crate::{repeat, special, text};

/// A table: groups of columns, and rows that begin with a name.
#[derive(Debug, Serialize)]
pub struct TableView {
    /// Name in the page.
    pub id: &'static str,
    pub title: &'static str,
    /// Content of the table, in a sentence.
    pub about: &'static str,
    /// Heading of the first column.
    pub first: &'static str,
    /// (heading, number of columns).
    pub groups: Vec<(&'static str, usize)>,
    /// Headings of the other columns.
    pub heads: Vec<&'static str>,
    pub rows: Vec<RowView>,
}

/// A row of a table.
#[derive(Debug, Default, Serialize)]
pub struct RowView {
    /// Heading of the row.
    pub name: String,
    pub cells: Vec<String>,
    /// The last row adds up the others.
    pub total: bool,
    /// Assay or the lab could have shaped it.
    pub disturbed: bool,
}

/// A name and what it stands for.
#[derive(Debug, Serialize)]
pub struct Fact {
    pub name: String,
    pub text: String,
}

/// A number that is shown large.
#[derive(Debug, Serialize)]
pub struct Tile {
    pub(crate) title: &'static str,
    pub(crate) value: String,
    pub(crate) unit: &'static str,
    pub(crate) detail: String,
    /// `good`, `bad` or nothing.
    pub mood: &'static str,
    /// Hit ratios: measured, ideal, offered, in percent.
    pub bar: Option<[f64; 3]>,
}

/// A file of the target, shown where it is short text.
#[derive(Debug, Serialize)]
pub struct FileView {
    pub(crate) name: String,
    pub(crate) size: String,
    pub(crate) text: Option<String>,
}

/// A name and what it stands for.
pub fn fact(name: &str, text: impl Into<String>) -> Fact {
    Fact { name: name.to_owned(), text: text.into() }
}

/// Formats a figure of a phase for a column.
pub type FormatFigure = fn(&Figures) -> String;

pub(crate) fn phase_table(
    summary: &Summary,
    id: &'static str,
    title: &'static str,
    about: &'static str,
    groups: &[(&'static str, &[(&'static str, FormatFigure)])],
) -> TableView {
    let columns: Vec<(&'static str, FormatFigure)> =
        groups.iter().flat_map(|group| group.1.iter().copied()).collect();
    let row = |name: &str, figures: &Figures, disturbed| RowView {
        name: name.to_owned(),
        cells: columns.iter().map(|(_, cell)| cell(figures)).collect(),
        total: false,
        disturbed,
    };
    let phases = summary.phases.iter();
    let mut rows: Vec<RowView> =
        phases.map(|phase| row(&phase.name, &phase.figures, phase.disturbed)).collect();
    rows.push(RowView { total: true, ..row("whole run", &summary.total, summary.disturbance.is_some()) });
    TableView {
        id,
        title,
        about,
        first: "phase",
        groups: groups.iter().map(|(name, columns)| (*name, columns.len())).collect(),
        heads: columns.iter().map(|(head, _)| *head).collect(),
        rows,
    }
}

/// The tables per phase.
pub fn phase_tables(summary: &Summary) -> Vec<TableView> {
    let tables = [load(summary), savings(summary), times(summary), resources(summary)];
    tables.into_iter().chain(host(summary)).chain(special(summary)).collect()
}

fn load(summary: &Summary) -> TableView {
    phase_table(
        summary,
        "load-table",
        "Load",
        "A request belongs to the phase it was due in. Unsent: due, but not sent by the end of its phase. Not \
         reached: its page failed, or its link was not seen in time.",
        &[
            ("", &[("length", |f| f.duration_s.map_or_else(|| "did not run".to_owned(), duration_s))]),
            (
                "requests",
                &[
                    ("due", |f| count(f.counts.due)),
                    ("sent", |f| count(f.counts.requests)),
                    ("unsent", |f| count(f.counts.unsent)),
                    ("not reached", |f| count(f.counts.not_reached)),
                    ("errors", |f| count(f.errors.total)),
                ],
            ),
            (
                "rate, per second",
                &[
                    ("offered", |f| opt_number(f.rate.offered)),
                    ("measured", |f| figure(f.figure("rate.measured"))),
                    ("origins", |f| opt_number(f.origins.rate)),
                ],
            ),
            (
                "bandwidth, Mbit/s",
                &[
                    ("to robots", |f| opt_number(f.bandwidth_mbit_s.client_in)),
                    ("from origins", |f| opt_number(f.bandwidth_mbit_s.origin_out)),
                ],
            ),
        ],
    )
}

fn savings(summary: &Summary) -> TableView {
    phase_table(
        summary,
        "savings-table",
        "Hit ratios and offload",
        "Of plain GETs. Offered is known from the stream alone; ideal is what an infinite cache would have hit \
         of the requests that were sent.",
        &[
            (
                "document hit ratio, %",
                &[
                    ("offered", |f| percent(f.dhr.offered)),
                    ("ideal", |f| percent(f.dhr.ideal)),
                    ("measured", |f| ratio(f.figure("dhr.measured"))),
                ],
            ),
            (
                "byte hit ratio, %",
                &[
                    ("offered", |f| percent(f.bhr.offered)),
                    ("ideal", |f| percent(f.bhr.ideal)),
                    ("measured", |f| ratio(f.figure("bhr.measured"))),
                ],
            ),
            (
                "responses",
                &[
                    ("hit", |f| count(f.outcomes.hit)),
                    ("collapsed", |f| count(f.outcomes.collapsed)),
                    ("revalidated", |f| count(f.outcomes.revalidated)),
                    ("miss", |f| count(f.outcomes.miss)),
                ],
            ),
            (
                "offload, %",
                &[
                    ("requests", |f| ratio(f.figure("offload.requests"))),
                    ("bytes", |f| ratio(f.figure("offload.bytes"))),
                ],
            ),
        ],
    )
}

fn times(summary: &Summary) -> TableView {
    phase_table(
        summary,
        "times-table",
        "Response time, ms",
        "From when a request was due to the last byte of its response. \"All\" counts requests that were never sent or \
         timed out as long as they had waited: ≥ is a lower bound.",
        &[
            (
                "all",
                &[
                    ("mean", |f| figure(f.response_time_ms.all.figure("mean"))),
                    ("p50", |f| figure(f.response_time_ms.all.figure("p50"))),
                    ("p90", |f| figure(f.response_time_ms.all.figure("p90"))),
                    ("p99", |f| figure(f.response_time_ms.all.figure("p99"))),
                ],
            ),
            (
                "hits",
                &[
                    ("mean", |f| figure(f.response_time_ms.hit.figure("mean"))),
                    ("p50", |f| figure(f.response_time_ms.hit.figure("p50"))),
                    ("p99", |f| figure(f.response_time_ms.hit.figure("p99"))),
                ],
            ),
            (
                "misses",
                &[
                    ("mean", |f| figure(f.response_time_ms.miss.figure("mean"))),
                    ("p50", |f| figure(f.response_time_ms.miss.figure("p50"))),
                    ("p99", |f| figure(f.response_time_ms.miss.figure("p99"))),
                ],
            ),
        ],
    )
}

/// Requests that are more than a plain GET; none when there were none.
fn special(summary: &Summary) -> Option<TableView> {
    let phases = summary.phases.iter().map(|phase| (phase.name.as_str(), &phase.figures, phase.disturbed));
    let rows: Vec<_> = phases.chain([("whole run", &summary.total, summary.disturbance.is_some())]).collect();
    let groups = special::columns(&rows.iter().map(|row| row.1).collect::<Vec<_>>());
    let columns: Vec<&special::SpecialColumn> = groups.iter().flat_map(|group| &group.1).collect();
    let last = rows.len() - 1;
    let rows = rows.iter().enumerate().map(|(index, (name, _, disturbed))| RowView {
        name: (*name).to_owned(),
        cells: columns.iter().map(|(_, shown)| count(shown[index])).collect(),
        total: index == last,
        disturbed: *disturbed,
    });
    (!groups.is_empty()).then(|| TableView {
        id: "special-table",
        title: "More than plain GETs",
        about: "What became of requests for parts, coded bodies, redirections, logins, uploads and faults on purpose. \
                None of these is an error.",
        first: "phase",
        groups: groups.iter().map(|(title, columns)| (*title, columns.len())).collect(),
        heads: columns.iter().map(|(head, _)| *head).collect(),
        rows: rows.collect(),
    })
}

/// The distribution of all times of the whole run.
pub fn percentile_table(summary: &Summary) -> TableView {
    let total = &summary.total;
    let row = |name: &str, p: &Percentiles| RowView {
        name: name.to_owned(),
        cells: [
            vec![count(p.count)],
            ["mean", "p50", "p90", "p99", "p999", "max"].map(|name| figure(p.figure(name))).to_vec(),
        ]
        .concat(),
        ..RowView::default()
    };
    let mut rows = Vec::new();
    for (name, times) in [
        ("response time", &total.response_time_ms),
        ("service time", &total.service_time_ms),
        ("first byte", &total.ttfb_ms),
    ] {
        rows.push(row(&format!("{name}: all"), &times.all));
        if times.all.count > times.completed.count {
            rows.push(row(&format!("{name}: those that ended"), &times.completed));
        }
        rows.push(row(&format!("{name}: hits"), &times.hit));
        rows.push(row(&format!("{name}: misses"), &times.miss));
        if times.other.count > 0 {
            rows.push(row(&format!("{name}: joined, confirmed or not told"), &times.other));
        }
    }
    rows.push(row("at the origins", &total.origins.service_time_ms));
    TableView {
        id: "percentiles-table",
        title: "Percentiles of the whole run, ms",
        about: "Response time runs from when a request was due, service time and first byte from when it was \
                sent. Each line is one merged histogram. Requests that were never sent or timed out are in \"all\" with how \
                long they had waited; figures that they could have raised are lower bounds (≥).",
        first: "time",
        groups: vec![],
        heads: vec!["count", "mean", "p50", "p90", "p99", "p99.9", "max"],
        rows,
    }
}

/// A number, as well as it is known.
fn figure(figure: Option<BoundedFigure>) -> String {
    figure_text::cell(figure, number)
}

/// A hit ratio in percent, as well as it is known.
fn ratio(ratio: Option<BoundedFigure>) -> String {
    figure_text::cell(ratio, |ratio| percent(Some(ratio)))
}

/// The large numbers at the top.
pub fn tiles(summary: &Summary) -> Vec<Tile> {
    let total = &summary.total;
    let tile =
        |title, value: String, unit, detail: String| Tile { title, value, unit, detail, mood: "", bar: None };
    // What the baseline phase shows stands beside the whole run, if it is known.
    let beside = |read: &dyn Fn(&Figures) -> Option<BoundedFigure>,
                  show: &dyn Fn(BoundedFigure) -> String| {
        let shown = text::baseline(summary).and_then(|phase| {
            let figure = read(&phase.figures).filter(|figure| figure.value.is_some())?;
            Some(format!("; {} in {}", show(figure), text::phase_label(phase)))
        });
        shown.unwrap_or_default()
    };
    let rate = beside(&|f| f.figure("rate.measured"), &|rate| format!("{}/s", figure(Some(rate))));
    let mut tiles = vec![tile(
        "Rate",
        figure(total.figure("rate.measured")),
        "requests/s",
        format!(
            "{} offered; {} completed{rate}",
            opt_number(total.rate.offered),
            count(total.counts.completed)
        ),
    )];
    if !text::is_direct(summary) {
        for (title, of, name) in [
            ("Document hit ratio", &total.dhr, "dhr.measured"),
            ("Byte hit ratio", &total.bhr, "bhr.measured"),
        ] {
            let beside = beside(&|f| f.figure(name), &|measured| format!("{} %", ratio(Some(measured))));
            let bar = match (of.measured, of.ideal, of.offered) {
                (Some(measured), Some(ideal), Some(offered)) => {
                    Some([measured, ideal, offered].map(|ratio| (ratio * 100.0).clamp(0.0, 100.0)))
                }
                _ => None,
            };
            let detail = format!("{} % ideal, {} % offered{beside}", percent(of.ideal), percent(of.offered));
            tiles.push(Tile { bar, ..tile(title, ratio(total.figure(name)), "%", detail) });
        }
        tiles.push(tile(
            "Offload",
            ratio(total.figure("offload.requests")),
            "% of requests",
            format!("{} % of bytes", ratio(total.figure("offload.bytes"))),
        ));
    }
    let times = &total.response_time_ms.all;
    tiles.push(tile(
        "Median response time",
        figure(times.figure("p50")),
        "ms",
        format!(
            "{} ms mean, {} ms p99{}",
            figure(times.figure("mean")),
            figure(times.figure("p99")),
            beside(&|f| f.response_time_ms.all.figure("p50"), &|p50| format!("{} ms", figure(Some(p50))))
        ),
    ));
    if let Some(per_request) = total.cpu_us_per_request.get("proxy") {
        let cores = total.resources.get("proxy").and_then(|used| used.cpu_cores);
        let detail = format!("{} processors on average", opt_number(cores));
        tiles.push(tile("Proxy CPU", opt_number(*per_request), "µs per request", detail));
    }
    let bad = |n: u64| if n > 0 { "bad" } else { "good" };
    tiles.push(Tile {
        mood: bad(total.errors.total),
        ..tile("Errors", count(total.errors.total), "", "bodies are checked byte for byte".into())
    });
    tiles.push(Tile {
        mood: if speed::keep_up(summary) == speed::KeepUp::Yes && total.counts.unsent > 0 {
            ""
        } else {
            bad(total.counts.unsent)
        },
        ..tile(
            "Unsent",
            count(total.counts.unsent),
            "",
            format!("of {} requests due", count(total.counts.due)),
        )
    });
    tiles
}

/// Target, machine and version of Assay.
pub fn setup(summary: &Summary) -> Vec<Fact> {
    let target = &summary.target;
    let mut facts = vec![
        fact("Started", date(summary.started_unix_ms)),
        fact("Assay", summary.assay_version.clone()),
        fact("Tested", text::target(summary)),
    ];
    if !target.address.is_empty() {
        facts.push(fact("Address", target.address.clone()));
    }
    if let Some(memory) = target.memory_bytes {
        facts.push(fact("Memory given", bytes(memory)));
    }
    if let Some(disk) = target.disk_bytes {
        facts.push(fact("Disk given", bytes(disk)));
    }
    let host = &summary.host;
    let cpus = if host.cpus == 1 { "1 processor".to_owned() } else { format!("{} processors", host.cpus) };
    facts
        .push(fact("Machine", format!("{cpus}, {}, {} of memory", host.cpu_model, bytes(host.memory_bytes))));
    facts.push(fact("Kernel", host.kernel.clone()));
    facts.push(fact("Descriptor limit", count(host.descriptor_limit)));
    facts.extend(host.settings.iter().map(|(name, value)| fact(name, value.clone())));
    facts
}

/// A line of the workload in words.
#[derive(Debug, Serialize)]
pub struct ExplainedLine {
    pub(crate) text: String,
    /// A detail of the line before it.
    pub more: bool,
}

/// The workload in words.
pub fn explained(summary: &Summary) -> Vec<ExplainedLine> {
    let lines = summary.workload_info.explained.iter();
    lines.map(|line| ExplainedLine { text: line.trim().to_owned(), more: line.starts_with(' ') }).collect()
}

pub fn placement(summary: &Summary) -> Vec<Fact> {
    let describe = |role: &assay_record::run::PlacementInfo| {
        let mut parts = Vec::new();
        parts.push(match role.cpus.as_slice() {
            [] => "any processor".to_owned(),
            [one] => format!("processor {one}"),
            many => format!("processors {}", many.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        });
        parts.push(if role.threads == 1 {
            "1 thread".to_owned()
        } else {
            format!("{} threads", role.threads)
        });
        match role.listening.as_slice() {
            [] => {}
            [one] => parts.push(format!("on {one}")),
            [first, .., last] => parts.push(format!("on {first} to {last} ({})", role.listening.len())),
        }
        fact(&role.role, parts.join(", "))
    };
    let network = summary.bed.iter().flat_map(crate::network::facts).map(|(name, value)| fact(&name, value));
    let unsure = summary.total.counts.unsure_outcomes;
    let machines = summary.fleet.iter().flat_map(|fleet| crate::fleet::facts(fleet, unsure));
    let machines = machines.map(|(name, value)| fact(&name, value));
    summary.placement.iter().map(describe).chain(network).chain(machines).collect()
}

pub fn workload(summary: &Summary) -> Vec<Fact> {
    let info = &summary.workload_info;
    let mut facts = vec![
        fact("Name", summary.workload.clone()),
        fact("Robots", count(info.robots.into())),
        fact("Origins", count(info.origins.into())),
        fact("Seed", summary.seed.to_string()),
        fact(
            "Stream digest",
            format!(
                "{} (first {} requests of every robot)",
                summary.stream_digest,
                count(summary.stream_digest_requests)
            ),
        ),
        fact("Digest of what came due", summary.total.due_digest.clone()),
    ];
    facts.extend(text::working_set(summary).map(|text| fact("Working set", text)));
    if let Some(scale) = info.scale.filter(|scale| *scale > 0.0) {
        facts.push(fact(
            "Schedule multiplied by",
            if scale < 1.0 { format!("1/{}", number(1.0 / scale)) } else { number(scale) },
        ));
    }
    facts.extend(info.sources.iter().map(|(path, digest)| fact(path, format!("digest {digest}"))));
    facts
}

/// The schedule, phase by phase.
pub fn schedule(summary: &Summary) -> TableView {
    let ramp = |(begin, end): (f64, f64)| {
        if begin == end { number(begin) } else { format!("{} → {}", number(begin), number(end)) }
    };
    let rows = summary.phases.iter().map(|phase| {
        let seconds =
            |ms: Option<u64>| ms.map_or_else(|| "–".to_owned(), |ms| format!("{:.2}", ms as f64 / 1000.0));
        RowView {
            name: phase.name.clone(),
            cells: vec![
                phase.goal.clone(),
                ramp(phase.load),
                ramp(phase.recurrence),
                seconds(phase.start_ms),
                seconds(phase.end_ms),
            ],
            disturbed: phase.disturbed,
            ..RowView::default()
        }
    });
    TableView {
        id: "schedule-table",
        title: "Schedule",
        about: "Load and recurrence factors at the start and end of each phase; when it began and ended, in seconds.",
        first: "phase",
        groups: vec![],
        heads: vec!["goal", "load factor", "recurrence factor", "began", "ended"],
        rows: rows.collect(),
    }
}

/// Commands that make the same run again, and the report again.
pub fn repeat_commands(summary: &Summary) -> Vec<Fact> {
    let mut facts = Vec::new();
    if !summary.command.is_empty() {
        facts.push(fact("The same stream again", repeat::same_stream(&summary.command, summary.seed)));
        facts.push(fact("As it was typed", repeat::command_line(&summary.command)));
    }
    let again = ["assay".to_owned(), "report".to_owned(), summary.run.clone()];
    facts.push(fact("This report again", repeat::command_line(&again)));
    facts
}

/// The target's own counters, as last read.
pub fn counters(summary: &Summary) -> Vec<Fact> {
    let shown = |value: f64| if value.fract() == 0.0 { format!("{value:.0}") } else { number(value) };
    summary.counters.iter().map(|(name, value)| fact(name, shown(*value))).collect()
}

/// Longest file that is shown in full, and how many of them.
const SHOWN_BYTES: u64 = 24_000;
const SHOWN_FILES: usize = 6;

/// The target's files, with the text of its configuration.
pub fn files(dir: &RunDir) -> Vec<FileView> {
    let mut found = Vec::new();
    collect(&dir.proxy_dir(), "", &mut found, 0);
    found.sort();
    let mut shown = 0;
    let view = |(name, size): (String, u64)| {
        let log = name.ends_with(".log") || name.contains("stderr") || name.contains("stdout");
        let text = if log || size == 0 || size > SHOWN_BYTES || shown >= SHOWN_FILES {
            None
        } else {
            assay_base::files::text(&dir.proxy_dir().join(&name), SHOWN_BYTES).ok()
        };
        shown += usize::from(text.is_some());
        FileView { name: format!("proxy/{name}"), size: bytes(size), text }
    };
    found.into_iter().take(100).map(view).collect()
}

/// Files below a directory, a few levels deep. What cannot be read is not shown: it is an extra.
fn collect(directory: &Path, prefix: &str, found: &mut Vec<(String, u64)>, depth: usize) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if kind.is_dir() && depth < 3 && found.len() < 1000 {
            collect(&entry.path(), &format!("{name}/"), found, depth + 1);
        } else if kind.is_file() {
            found.push((name, entry.metadata().map_or(0, |metadata| metadata.len())));
        }
    }
}
