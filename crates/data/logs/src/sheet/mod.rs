//! The analysis as numbers and words for a page.

mod plots;
mod senders;

use assay_base::settings::show::{bytes, count};
use assay_record::sheet::{Row, Section, Sheet, Table, Tile};

use assay_measurement::ratios::ratio;

use crate::document::{Figures, Grouping, LogsDocument, TopUrl};
use crate::terminal::{date, duration, estimate, lines, logged_ms, partial_steps, percent, plural};

/// Content of the page of an analysis.
pub fn sheet(document: &LogsDocument) -> Sheet {
    let time = plots::time(document);
    let over_time = time.as_ref().map(|axis| plots::over_time(document, axis)).unwrap_or_default();
    let section =
        |id, title: &str, plots, tables, words| Section { id, title: title.into(), plots, tables, words };
    let mut sections = vec![
        section(
            "outcomes",
            "What became of requests",
            plots::response(document).into_iter().collect(),
            outcome_tables(document),
            not_logged(document),
        ),
        section("time", "Over time", over_time, time_table(document).into_iter().collect(), Vec::new()),
        senders::section(document, time.as_ref()),
        section(
            "groups",
            "By what they were",
            Vec::new(),
            (document.groups.iter().filter(|grouping| !senders::has(grouping)))
                .map(|groups| grouping(document, groups))
                .collect(),
            Vec::new(),
        ),
        section("urls", "URLs that stand out", Vec::new(), top_tables(document), Vec::new()),
        senders::failed(document),
        section(
            "caches",
            "Other caches",
            Vec::new(),
            caches(document).into_iter().collect(),
            if document.caches.caches.is_empty() { Vec::new() } else { document.caches.assumptions.clone() },
        ),
        section(
            "notes",
            "Notes",
            Vec::new(),
            malformed(document).into_iter().collect(),
            document.notes.clone(),
        ),
    ];
    sections.retain(|section| !section.is_empty());
    Sheet {
        title: title(document),
        eyebrow: when(document),
        lead: document.inputs.iter().take(20).map(input).collect(),
        tiles: tiles(document),
        sections,
        time,
        footer: "from access logs alone; this page is one file and loads nothing from the network".into(),
    }
}

fn title(document: &LogsDocument) -> String {
    match document.inputs.as_slice() {
        [one] => format!("What {} says", one.name),
        plural => format!("What {} access logs say", plural.len()),
    }
}

fn when(document: &LogsDocument) -> String {
    match (document.first_unix_ms, document.last_unix_ms) {
        (Some(first), Some(last)) => {
            format!("{} to {} UTC · {}", date(first), date(last), duration((last - first) / 1e3))
        }
        _ => "times not known".into(),
    }
}

fn input(input: &crate::document::InputInfo) -> String {
    let how = if input.recognised.is_some() { "recognised" } else { "given" };
    let compressed = input.compression.as_ref().map(|how| format!(", {how}")).unwrap_or_default();
    format!(
        "{}: {} ({}; {how}), {}, {}{compressed}",
        input.name,
        input.format,
        input.format_about,
        lines(input.lines),
        bytes(input.bytes)
    )
}

fn tiles(document: &LogsDocument) -> Vec<Tile> {
    let all = &document.all;
    let share = |part: Option<u64>| percent(all.share_of_known(part));
    let ms = |value| logged_ms(value, document.response_resolution_ms);
    let mut tiles = vec![Tile {
        title: "Requests".into(),
        value: count(all.requests),
        detail: format!(
            "{} of responses; {} could not be read",
            all.bytes.map_or("unknown bytes".into(), bytes),
            lines(document.lines.malformed)
        ),
    }];
    if all.dhr.is_some() {
        let detail = format!(
            "local {}, sibling {}, parent {}; {} revalidated",
            share(all.local_hits),
            share(all.sibling_hits),
            share(all.parent_hits),
            share(all.revalidated)
        );
        tiles.push(Tile { title: "Document hit ratio".into(), value: percent(all.dhr), detail });
        tiles.push(Tile {
            title: "Byte hit ratio".into(),
            value: percent(all.bhr),
            detail: "bytes of hits over those of requests whose outcome is known".into(),
        });
    } else if all.requests > 0 {
        let detail = "the log does not say what became of requests".into();
        tiles.push(Tile { title: "Hit ratios".into(), value: "not known".into(), detail });
    }
    if let Some(response) = &all.response {
        let detail = format!(
            "mean {}, 99 % {}, longest {}",
            ms(response.mean_ms),
            ms(response.p99_ms),
            ms(response.max_ms)
        );
        tiles.push(Tile { title: "Median response time".into(), value: ms(response.p50_ms), detail });
    }
    if let Some(ideal) = document.caches.caches.first() {
        let detail =
            format!("byte hit ratio {}; a cache without bounds, on these requests", percent(ideal.bhr));
        tiles.push(Tile { title: "Ideal hit ratio".into(), value: percent(ideal.dhr), detail });
    }
    let distinct = &document.distinct;
    let others = [(&distinct.hosts, "host"), (&distinct.clients, "client"), (&distinct.agents, "user agent")];
    let others = others.iter().filter_map(|(number, what)| Some(plural(number.as_ref()?, what)));
    if let Some(urls) = &distinct.urls {
        let detail = others.collect::<Vec<_>>().join(", ");
        tiles.push(Tile { title: "Different URLs".into(), value: estimate(urls), detail });
    }
    tiles
}

fn figures_table<'a>(
    document: &LogsDocument,
    title: &str,
    first: &str,
    rows: impl Iterator<Item = (String, &'a Figures)>,
) -> Table {
    let ms = |value| logged_ms(value, document.response_resolution_ms);
    let total = document.all.requests;
    let heads = ["requests", "share", "bytes", "DHR", "BHR", "mean", "median", "95 %", "99 %", "longest"];
    let rows = rows.map(|(name, figures)| {
        let share = ratio(figures.requests, total);
        let mut cells = vec![
            count(figures.requests),
            percent(share),
            figures.bytes.map_or("–".into(), bytes),
            percent(figures.dhr),
            percent(figures.bhr),
        ];
        let response = figures.response.as_ref();
        let times = response.map(|r| [r.mean_ms, r.p50_ms, r.p95_ms, r.p99_ms, r.max_ms].map(ms));
        cells.extend(times.unwrap_or_else(|| std::array::from_fn(|_| "–".into())));
        Row { name, share: share.map(|share| (share * 1000.0).round() / 10.0), cells }
    });
    Table {
        title: title.into(),
        about: String::new(),
        first: first.into(),
        heads: heads.map(Into::into).into(),
        rows: rows.collect(),
    }
}

fn outcome_tables(document: &LogsDocument) -> Vec<Table> {
    let classes = document.by_class.iter().map(|class| (class.name.clone(), &class.figures));
    let mut tables = Vec::new();
    if document.all.dhr.is_some() {
        tables.push(figures_table(document, "Requests by outcome", "outcome", classes));
    }
    if !document.phases.is_empty() {
        let phases = document.phases.iter().map(|phase| (phase.name.clone(), &phase.figures));
        tables.push(figures_table(document, "Phases of the run", "phase", phases));
    }
    if let Some(reconciliation) = &document.reconciliation {
        let rows = reconciliation.rows.iter().map(|row| Row {
            name: row.what.clone(),
            share: None,
            cells: vec![
                count(row.run as u64),
                count(row.log as u64),
                format!("{:+}", row.log - row.run),
                if row.log == row.run { String::new() } else { row.why.clone() },
            ],
        });
        tables.push(Table {
            title: "What robots counted, and what the log says".into(),
            about: reconciliation.why.join(" "),
            first: "what".into(),
            heads: ["run", "log", "apart", "why"].map(Into::into).into(),
            rows: rows.collect(),
        });
    }
    tables
}

fn time_table(document: &LogsDocument) -> Option<Table> {
    if document.time.len() < 2 {
        return None;
    }
    let steps = document.time.iter().map(|step| (date(step.from_unix_ms), &step.figures));
    let title = format!("Every {}", duration(document.every_ms? / 1e3));
    let mut table = figures_table(document, &title, "from (UTC)", steps);
    if let Some(partial) = partial_steps(document) {
        table.about = format!("Steps are complete but for the ends: {partial}.");
    }
    Some(table)
}

/// Facts that the logs lack, a sentence for each kind of log.
fn not_logged(document: &LogsDocument) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for lack in document.inputs.iter().flat_map(|input| &input.not_logged) {
        let how: Vec<String> =
            lack.how.iter().map(|notation| format!("{}: {}", notation.proxy, notation.field)).collect();
        let how = if how.is_empty() { String::new() } else { format!(" To log it, {}.", how.join(", ")) };
        let word =
            format!("Not in these lines: {}. {} are not known.{how}", lack.what, capital(&lack.unknown));
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn grouping(document: &LogsDocument, grouping: &Grouping) -> Table {
    let rows = grouping.groups.iter().take(50).map(|group| (group.name.clone(), &group.figures));
    let mut table = figures_table(document, &grouping.title, &grouping.by, rows);
    if grouping.error_requests > 0 {
        let missing = count(grouping.error_requests);
        table.about = format!("An estimate: up to {missing} requests of a row can be missing.");
    }
    table
}

fn top_tables(document: &LogsDocument) -> Vec<Table> {
    let top = &document.top;
    let lists = [
        ("Most requests", &top.by_requests, top.floor_requests, "requests"),
        ("Most bytes", &top.by_bytes, top.floor_bytes, "bytes"),
        ("Most misses", &top.by_misses, top.floor_misses, "misses"),
    ];
    let nonempty = lists.into_iter().filter(|(_, urls, _, _)| !urls.is_empty());
    nonempty
        .map(|(title, urls, floor, what)| Table {
            title: title.into(),
            about: if floor > 0 {
                format!("An estimate: a URL that is not listed can have up to {} {what}.", count(floor))
            } else {
                String::new()
            },
            first: "URL".into(),
            heads: ["requests", "bytes", "misses"].map(Into::into).into(),
            rows: urls.iter().map(url).collect(),
        })
        .collect()
}

/// A count that can be higher.
fn lower_bound(text: String, error: u64) -> String {
    if error > 0 { format!("≥ {text}") } else { text }
}

fn url(url: &TopUrl) -> Row {
    Row {
        name: url.url.clone(),
        share: None,
        cells: vec![
            lower_bound(count(url.requests), url.requests_error),
            lower_bound(bytes(url.bytes), url.bytes_error),
            url.misses.map_or("–".into(), |misses| lower_bound(count(misses), url.misses_error)),
        ],
    }
}

fn caches(document: &LogsDocument) -> Option<Table> {
    if document.caches.caches.is_empty() {
        return None;
    }
    let rows = document.caches.caches.iter().map(|cache| Row {
        name: cache
            .size_bytes
            .map_or("ideal, without bounds".into(), |capacity| format!("LRU of {}", bytes(capacity))),
        share: None,
        cells: vec![percent(cache.dhr), percent(cache.bhr)],
    });
    let own = Row {
        name: "this one, as logged".into(),
        share: None,
        cells: vec![percent(document.all.dhr), percent(document.all.bhr)],
    };
    let about = if document.caches.sampling_rate < 1.0 {
        format!(
            "Estimates from a sample of {} objects, {:.2} % of all.",
            count(document.caches.objects),
            document.caches.sampling_rate * 100.0
        )
    } else {
        String::new()
    };
    Some(Table {
        title: "What other caches would have made of these requests".into(),
        about,
        first: "cache".into(),
        heads: ["DHR", "BHR"].map(Into::into).into(),
        rows: rows.chain([own]).collect(),
    })
}

fn malformed(document: &LogsDocument) -> Option<Table> {
    if document.malformed.is_empty() {
        return None;
    }
    let rows = document.malformed.iter().map(|line| Row {
        name: format!("{}:{}", line.input, line.line),
        share: None,
        cells: vec![line.reason.clone(), line.text.clone()],
    });
    Some(Table {
        title: "Lines that could not be read".into(),
        about: format!("{} in all; the first of them.", count(document.lines.malformed)),
        first: "line".into(),
        heads: ["why", "text"].map(Into::into).into(),
        rows: rows.collect(),
    })
}
