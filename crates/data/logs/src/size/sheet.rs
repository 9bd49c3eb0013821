//! The result as numbers and words for a page.

use assay_base::settings::show::count;
use assay_record::sheet::{Plot, PlotKind, PlotLine, Row, Section, Sheet, Table, Tile};

use crate::size::cooperation::CooperatingCache;
use crate::size::document::{Curve, HitFigures, LabelFigures, Point, SizeDocument, SizeUnit};
use crate::size::numbers::percent;
use crate::size::terminal::input;
use crate::size::words::size;

const COLOURS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// Columns of a table of hits by label.
const SIZES_BY_LABEL: usize = 8;

/// Figure of a point, and its band.
#[derive(Clone, Copy)]
struct RatioColumn {
    ratio: fn(&HitFigures) -> Option<f64>,
    band: fn(&Point) -> Option<(f64, f64)>,
}

const BANDED: &str = " The band around a line contains the curve of all requests with 95 % certainty.";

/// Content of the page of a simulation.
pub fn sheet(document: &SizeDocument) -> Sheet {
    let has_bytes = document.input.unit == SizeUnit::Bytes;
    let documents = RatioColumn { ratio: |figures| figures.dhr, band: |point| point.low.zip(point.high) };
    let bytes = RatioColumn { ratio: |figures| figures.bhr, band: |point| point.bhr_low.zip(point.bhr_high) };
    let mut plots = vec![plot(document, "documents", "Document hit ratio", documents)];
    let mut tables = vec![table(document, "Document hit ratio", documents)];
    if has_bytes {
        plots.push(plot(document, "bytes", "Byte hit ratio", bytes));
        tables.push(table(document, "Byte hit ratio", bytes));
    }
    let section =
        |id, title: &str, plots, tables, words| Section { id, title: title.into(), plots, tables, words };
    let mut sections = vec![
        section("advice", "What follows", Vec::new(), Vec::new(), document.advice.clone()),
        section("proof", "Predicted and measured", Vec::new(), proven(document), Vec::new()),
        section("together", "Caches that work together", Vec::new(), side_by_side(document), Vec::new()),
        section("curves", "Hit ratio by size", plots, tables, Vec::new()),
        section("divided", "Hit ratio by label", Vec::new(), divided(document), Vec::new()),
        section("notes", "Notes", Vec::new(), Vec::new(), document.notes.clone()),
    ];
    sections.retain(|section| !section.is_empty());
    Sheet {
        title: "How large the cache must be".into(),
        eyebrow: document.input.format.clone(),
        lead: vec![input(document)],
        tiles: tiles(document),
        sections,
        time: None,
        footer:
            "from simulations of these requests; this page is one file and loads nothing from the network"
                .into(),
    }
}

/// Caches that work together, and who served what.
fn side_by_side(document: &SizeDocument) -> Vec<Table> {
    let Some(together) = &document.together else { return Vec::new() };
    let share = |hits, requests| percent(assay_measurement::ratios::ratio(hits, requests));
    let row = |cache: &CooperatingCache| Row {
        name: cache.name.clone(),
        share: None,
        cells: vec![
            size(cache.size_bytes, document.input.unit),
            count(cache.requests),
            share(cache.own_hits, cache.requests),
            share(cache.sibling_hits, cache.requests),
            share(cache.parent_hits, cache.requests),
            count(cache.from_caches),
            share(cache.from_caches_hits, cache.from_caches),
        ],
    };
    let heads = [
        "size",
        "requests of clients",
        "own hits",
        "of siblings",
        "of parents",
        "requests of caches",
        "their hits",
    ];
    vec![Table {
        title: together.name.clone(),
        about: format!(
            "All together {}; without each other {}; one cache with the room of all {}.",
            percent(together.figures.dhr),
            percent(together.apart.dhr),
            percent(together.as_one.dhr)
        ),
        first: "cache".into(),
        heads: heads.map(String::from).to_vec(),
        rows: together.caches.iter().map(row).collect(),
    }]
}

/// A table for each policy: hits by host, content type or class, at some of the sizes.
fn divided(document: &SizeDocument) -> Vec<Table> {
    let Some(by) = document.by else { return Vec::new() };
    let known = document.curves.iter().filter(|curve| curve.points.iter().all(|point| !point.by.is_empty()));
    let table = |curve: &Curve| {
        let step = curve.points.len().div_ceil(SIZES_BY_LABEL).max(1);
        // Always the largest, and every so many below it.
        let mut shown: Vec<&Point> = curve.points.iter().rev().step_by(step).collect();
        shown.reverse();
        let row = |(place, share): (usize, &LabelFigures)| {
            let ratio = |point: &&Point| percent(point.by.get(place).and_then(|share| share.figures.dhr));
            let cells = shown.iter().map(ratio).chain([percent(share.figures.dhr)]);
            let requests = [count(share.figures.requests)].into_iter();
            Row { name: share.name.clone(), share: None, cells: requests.chain(cells).collect() }
        };
        let sizes = shown.iter().map(|point| size(point.size_bytes, document.input.unit));
        Table {
            title: format!("{}, {}", by.title(), curve.policy.title()),
            about: "Document hit ratio at some of the sizes.".into(),
            first: by.name().into(),
            heads: ["requests".to_owned()].into_iter().chain(sizes).chain(["infinite".to_owned()]).collect(),
            rows: document.infinite_by.iter().enumerate().map(row).collect(),
        }
    };
    known.map(table).collect()
}

/// The table of predictions, if there are any.
fn proven(document: &SizeDocument) -> Vec<Table> {
    let Some(proof) = &document.proof else { return Vec::new() };
    let (heads, rows) = proof.table();
    let rows = proof.cells.iter().zip(rows).map(|(cell, cells)| Row {
        name: format!("{}, {}", cell.title(), size(cell.size_bytes, SizeUnit::Bytes)),
        share: None,
        cells,
    });
    let about = "A positive difference: the proxy hit more than was predicted.";
    vec![Table {
        title: "Hit ratios".into(),
        about: about.into(),
        first: "proxy and size".into(),
        heads: heads.into_iter().map(Into::into).collect(),
        rows: rows.collect(),
    }]
}

fn tiles(document: &SizeDocument) -> Vec<Tile> {
    let infinite = Tile {
        title: "Infinite cache".into(),
        value: percent(document.infinite.dhr),
        detail: format!(
            "of the requests, with {}",
            size(document.input.footprint_bytes, document.input.unit)
        ),
    };
    let enough = document.curves.iter().filter_map(|curve| {
        let enough = curve.enough.iter().find(|enough| enough.size_bytes.is_some())?;
        Some(Tile {
            title: format!("Enough for {}", curve.policy.title()),
            value: size(enough.size_bytes?, document.input.unit),
            detail: within(enough.within_points),
        })
    });
    [infinite].into_iter().chain(enough).collect()
}

fn within(points: f64) -> String {
    let plural = if points == 1.0 { "" } else { "s" };
    format!("at most {points} point{plural} below an infinite cache")
}

fn plot(
    document: &SizeDocument,
    id: &'static str,
    title: &str,
    RatioColumn { ratio: of, band }: RatioColumn,
) -> Plot {
    let (divisor, unit) = match document.input.unit {
        SizeUnit::Bytes => ((1u64 << 20) as f64, "MB"),
        SizeUnit::Objects => (1.0, "objects"),
    };
    let in_percent = |ratio: f64| ratio * 100.0;
    let ends = |curve: &Curve| -> (Vec<Option<f64>>, Vec<Option<f64>>) {
        let each = curve
            .points
            .iter()
            .map(|point| band(point).map(|(low, high)| (in_percent(low), in_percent(high))));
        each.map(|ends| (ends.map(|(low, _)| low), ends.map(|(_, high)| high))).unzip()
    };
    let line = |(curve, role): (&Curve, &&'static str)| {
        let (low, high) = if document.sample.is_some() { ends(curve) } else { Default::default() };
        PlotLine {
            name: curve.policy.title().into(),
            role,
            x: curve.points.iter().map(|point| point.size_bytes as f64 / divisor).collect(),
            values: curve.points.iter().map(|point| of(&point.figures).map(in_percent)).collect(),
            low,
            high,
        }
    };
    let banded = if document.sample.is_some() { BANDED } else { "" };
    Plot {
        id,
        title: title.into(),
        about: format!(
            "Of caches of each size; an infinite one has {}.{banded}",
            percent(of(&document.infinite))
        ),
        unit: "%".into(),
        kind: PlotKind::Lines,
        x_label: format!("size of the cache ({unit})"),
        lines: document.curves.iter().zip(COLOURS.iter().cycle()).map(line).collect(),
        ..Plot::default()
    }
}

fn table(document: &SizeDocument, title: &str, RatioColumn { ratio: of, band }: RatioColumn) -> Table {
    let cell = |point: &Point| {
        let range = band(point)
            .map_or(String::new(), |(low, high)| format!(" [{:.1}, {:.1}]", low * 100.0, high * 100.0));
        percent(of(&point.figures)) + &range
    };
    let points = document.curves.first().map(|curve| curve.points.as_slice()).unwrap_or_default();
    let rows = points.iter().enumerate().map(|(at, point)| Row {
        name: size(point.size_bytes, document.input.unit),
        share: None,
        cells: document
            .curves
            .iter()
            .map(|curve| curve.points.get(at).map_or_else(String::new, cell))
            .collect(),
    });
    Table {
        title: title.into(),
        about: String::new(),
        first: "size".into(),
        heads: document.curves.iter().map(|curve| curve.policy.title().into()).collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_point_is_no_points() {
        assert_eq!(within(1.0), "at most 1 point below an infinite cache");
        assert_eq!(within(5.0), "at most 5 points below an infinite cache");
        assert_eq!(within(0.5), "at most 0.5 points below an infinite cache");
    }
}
