//! The result on a terminal: what it says in sentences, then a table of sizes with a column for each policy.

use crate::terminal::TextStyle;
use assay_base::settings::show::{count, several};

use crate::size::cooperation::Cooperation;
use crate::size::document::{Curve, SizeDocument, SizeUnit};
use crate::size::numbers::percent;
use crate::size::proof::Proof;
use crate::size::words::{shown_size, size};

const BOLD: &str = "1";
const DIM: &str = "2";
/// Characters of a policy's column in the table, at least.
const COLUMN: usize = 11;
/// Characters of the column of caches and their sizes, at least.
const FIRST: usize = 16;
/// Spaces before a head.
const GAP: usize = 2;

/// Writes the result for people.
pub fn render(document: &SizeDocument, style: TextStyle) -> String {
    let paint = |code: &str, text: &str| {
        if style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    };
    let mut lines = Vec::new();
    for (number, sentence) in document.advice.iter().enumerate() {
        let wrapped = wrap(sentence, style.width);
        lines.extend(wrapped.into_iter().map(|line| if number == 0 { paint(BOLD, &line) } else { line }));
    }
    lines.push(String::new());
    lines.extend(wrap(&input(document), style.width).iter().map(|line| paint(DIM, line)));
    if let Some(proof) = &document.proof {
        lines.push(String::new());
        lines.extend(proven(proof, &paint));
    }
    if let Some(together) = &document.together {
        lines.push(String::new());
        lines.extend(side_by_side(together, document.input.unit, &paint));
    }
    let column = column_width(document.curves.iter().map(|curve| curve.policy.name()), COLUMN);
    let columns = (style.width.saturating_sub(FIRST) / column).max(1);
    for curves in document.curves.chunks(columns) {
        lines.push(String::new());
        lines.extend(by_size(document, curves, column, &paint));
    }
    lines.extend(divided(document, &paint, column, columns));
    if !document.notes.is_empty() {
        lines.push(String::new());
    }
    for note in &document.notes {
        lines.extend(wrap(note, style.width).iter().map(|line| paint(DIM, line)));
    }
    lines.join("\n") + "\n"
}

/// The characters of a column: of its longest text with the spaces before it, and at least so many.
fn column_width<'t>(texts: impl Iterator<Item = &'t str>, least: usize) -> usize {
    texts.map(|text| text.chars().count() + GAP).fold(least, usize::max)
}

/// A table of sizes, with a column of so many characters for each of these policies.
fn by_size(
    document: &SizeDocument,
    curves: &[Curve],
    column: usize,
    paint: &impl Fn(&str, &str) -> String,
) -> Vec<String> {
    let heads: String = curves.iter().map(|curve| format!("{:>column$}", curve.policy.name())).collect();
    let mut lines = vec![paint(BOLD, &format!("{:<FIRST$}{heads}", "hits by size"))];
    for (at, point) in curves[0].points.iter().enumerate() {
        let ratio = |curve: &Curve| percent(curve.points.get(at).and_then(|p| p.figures.dhr));
        let cells: String = curves.iter().map(|curve| format!("{:>column$}", ratio(curve))).collect();
        lines.push(format!("{:<FIRST$}{cells}", size(point.size_bytes, document.input.unit)));
    }
    let most = format!("{:>column$}", percent(document.infinite.dhr)).repeat(curves.len());
    lines.push(format!("{:<FIRST$}{most}", "infinite"));
    lines
}

/// A table of caches that work together.
fn side_by_side(
    together: &Cooperation,
    unit: SizeUnit,
    paint: &impl Fn(&str, &str) -> String,
) -> Vec<String> {
    let heads = ["size", "requests", "own", "sibling", "parent"];
    let sizes: Vec<String> = together.caches.iter().map(|cache| size(cache.size_bytes, unit)).collect();
    let room = column_width(sizes.iter().map(String::as_str), RATIO);
    let row = |[size, others @ ..]: [String; 5]| {
        let others: String = others.iter().map(|cell| format!("{cell:>RATIO$}")).collect();
        format!("{size:>room$}{others}")
    };
    let mut lines =
        vec![paint(BOLD, &format!("{:<FIRST$}{}", "hits by cache", row(heads.map(String::from))))];
    for (cache, size) in together.caches.iter().zip(sizes) {
        let share = |hits| match cache.requests {
            0 => "–".into(),
            requests => percent(assay_measurement::ratios::ratio(hits, requests)),
        };
        let cells = [
            size,
            count(cache.requests),
            share(cache.own_hits),
            share(cache.sibling_hits),
            share(cache.parent_hits),
        ];
        lines.push(format!("{:<FIRST$}{}", truncated_name(&plain(&cache.name)), row(cells)));
    }
    lines
}

/// Hits by host, content type or class, at one size.
fn divided(
    document: &SizeDocument,
    paint: &impl Fn(&str, &str) -> String,
    column: usize,
    columns: usize,
) -> Vec<String> {
    let (Some(by), Some(at)) = (document.by, shown_size(document)) else { return Vec::new() };
    let policies: Vec<_> = document.curves.iter().filter(|curve| !curve.points[at].by.is_empty()).collect();
    let policies = &policies[..policies.len().min(columns.saturating_sub(2))];
    let at_size = document.curves[0].points[at].size_bytes;
    let heads: String = policies.iter().map(|curve| format!("{:>column$}", curve.policy.name())).collect();
    let head = format!(
        "{:<FIRST$}{:>column$}{heads}{:>column$}",
        truncated_name(&format!("by {}", by.name())),
        "requests",
        "infinite"
    );
    let mut lines = vec![String::new(), paint(BOLD, &head)];
    for (place, share) in document.infinite_by.iter().enumerate() {
        let ratio =
            |curve: &&&Curve| percent(curve.points[at].by.get(place).and_then(|share| share.figures.dhr));
        let cells: String = policies.iter().map(|curve| format!("{:>column$}", ratio(&curve))).collect();
        let requests = count(share.figures.requests);
        lines.push(format!(
            "{:<FIRST$}{requests:>column$}{cells}{:>column$}",
            truncated_name(&share.name),
            percent(share.figures.dhr)
        ));
    }
    lines.push(paint(DIM, &format!("hits at {}", size(at_size, document.input.unit))));
    lines
}

/// A name that leaves a space before the next column.
fn truncated_name(name: &str) -> String {
    if name.chars().count() <= 15 {
        return name.to_owned();
    }
    // The end tells hosts and types apart better than the beginning does.
    let end: Vec<char> = name.chars().rev().take(14).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// Columns of the table of predictions.
const NAME: usize = 20;
const RATIO: usize = 10;

fn proven(proof: &Proof, paint: &impl Fn(&str, &str) -> String) -> Vec<String> {
    let (_, rows) = proof.table();
    let heads = ["DHR pred.", "measured", "points", "BHR pred.", "measured", "points"];
    let row = |cells: &[String]| cells.iter().map(|cell| format!("{cell:>RATIO$}")).collect::<String>();
    let mut lines =
        vec![paint(BOLD, &format!("{:<NAME$}{}", "predicted, measured", row(&heads.map(String::from))))];
    for (cell, cells) in proof.cells.iter().zip(&rows) {
        let mut name = format!("{} {}", plain(&cell.title()), size(cell.size_bytes, SizeUnit::Bytes));
        if name.chars().count() > NAME {
            lines.push(std::mem::take(&mut name));
        }
        lines.push(format!("{name:<NAME$}{}", row(cells)));
    }
    lines.push(paint(DIM, &format!("experiment {}", plain(&proof.experiment))));
    lines
}

pub(crate) fn input(document: &SizeDocument) -> String {
    let input = &document.input;
    let bytes = match input.unit {
        SizeUnit::Bytes => format!(" of {} together", size(input.footprint_bytes, input.unit)),
        SizeUnit::Objects => String::new(),
    };
    let warm_up = match input.warm_up_requests {
        0 => String::new(),
        requests => format!(", the first {} to fill the caches", count(requests)),
    };
    format!(
        "{} ({}): {}{warm_up}, for {}{bytes}.",
        input.files.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", "),
        input.format,
        several(input.requests, "request"),
        several(input.objects, "object")
    )
}

/// A text without control characters, which might control the terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Lines of at most so many characters, broken between words.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width.max(20) {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
