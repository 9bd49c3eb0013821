//! Who sent requests, where they came from, and which URLs failed.

use assay_base::settings::show::count;
use assay_record::sheet::{Plot, Row, Section, Table, TimeAxis};

use super::{grouping, plots};
use crate::document::{Grouping, LogsDocument, Slots};
use crate::terminal::sparkline;

/// Characters of a course over time.
const SPARK_WIDTH: usize = 24;

/// True for groups that this section shows.
pub(super) fn has(grouping: &Grouping) -> bool {
    ["agent-kind", "agent", "referrer-kind", "referrer"].contains(&grouping.by.as_str())
}

/// User agents and referrers.
pub(super) fn section(document: &LogsDocument, axis: Option<&TimeAxis>) -> Section {
    let groups = document.groups.iter().filter(|grouping| has(grouping));
    let mut tables: Vec<Table> = groups.map(|groups| with_sparklines(document, groups)).collect();
    tables.extend(texts(document));
    let words = document.agents.iter().map(|agents| {
        format!(
            "Who sends a request is told by {} rules from its User-Agent, which nothing verifies; what fits none of them is \
             unknown.",
            agents.rules
        )
    });
    Section {
        id: "senders",
        title: "User agents and referrers".into(),
        plots: axis.map(|axis| kinds_over_time(document, axis)).unwrap_or_default(),
        words: words.collect(),
        tables,
    }
}

fn kinds_over_time(document: &LogsDocument, axis: &TimeAxis) -> Vec<Plot> {
    let agents = document.agents.is_some().then(|| {
        plots::counts(document, axis, "agents", "Requests by kind of user agent", |step| &step.by_agent_kind)
    });
    let has_referrers = document.distinct.referring_sites.is_some();
    let referrers = has_referrers.then(|| {
        plots::counts(document, axis, "referrers", "Requests by referrer", |step| &step.by_referrer_kind)
    });
    agents.into_iter().chain(referrers).collect()
}

/// A table of groups, each with how it went over time.
fn with_sparklines(document: &LogsDocument, groups: &Grouping) -> Table {
    let mut table = grouping(document, groups);
    table.heads.push("over time".into());
    for (row, group) in table.rows.iter_mut().zip(&groups.groups) {
        row.cells.push(over_time_cell(document.slots.as_ref(), group.over_time.as_deref()));
    }
    table
}

fn over_time_cell(slots: Option<&Slots>, counts: Option<&[u64]>) -> String {
    slots.zip(counts).map_or(String::new(), |(slots, counts)| sparkline(counts, slots, SPARK_WIDTH))
}

/// Texts of user agents: the most frequent ones, and those that are not known.
fn texts(document: &LogsDocument) -> Vec<Table> {
    let Some(agents) = &document.agents else { return Vec::new() };
    let about = if agents.floor_requests > 0 {
        format!(
            "An estimate: one that is not listed can have up to {} requests.",
            count(agents.floor_requests)
        )
    } else {
        String::new()
    };
    let lists =
        [("Most frequent texts of User-Agent", &agents.top), ("Not known by any rule", &agents.unknown)];
    let nonempty = lists.into_iter().filter(|(_, agents)| !agents.is_empty());
    nonempty
        .map(|(title, agents)| Table {
            title: title.into(),
            about: about.clone(),
            first: "User-Agent".into(),
            heads: ["requests", "kind", "name"].map(Into::into).into(),
            rows: agents
                .iter()
                .map(|agent| Row {
                    name: agent.text.clone(),
                    share: None,
                    cells: vec![
                        super::lower_bound(count(agent.requests), agent.requests_error),
                        agent.kind.clone(),
                        agent.name.clone(),
                    ],
                })
                .collect(),
        })
        .collect()
}

/// URLs with a status of 400 and above, a table for each.
pub(super) fn failed(document: &LogsDocument) -> Section {
    let failed = document.failed.iter();
    let statuses =
        failed.clone().flat_map(|failed| &failed.by_status).filter(|status| !status.urls.is_empty());
    let floor = failed.map(|failed| failed.floor_requests).sum();
    let tables = statuses.map(|status| {
        let rows = status.urls.iter().map(|url| Row {
            name: url.url.clone(),
            share: Some((url.requests as f64 / status.requests as f64 * 1000.0).round() / 10.0),
            cells: vec![
                super::lower_bound(count(url.requests), url.requests_error),
                over_time_cell(document.slots.as_ref(), url.over_time.as_deref()),
            ],
        });
        let estimate = match floor {
            0 => String::new(),
            floor => format!(" An estimate: a URL that is not listed can have up to {}.", count(floor)),
        };
        Table {
            title: format!("Status {}", status.status),
            about: format!("{} requests in all.{estimate}", count(status.requests)),
            first: "URL".into(),
            heads: ["requests", "over time"].map(Into::into).into(),
            rows: rows.collect(),
        }
    });
    Section {
        id: "failed",
        title: "URLs with status 400 and above".into(),
        tables: tables.collect(),
        ..Section::default()
    }
}
