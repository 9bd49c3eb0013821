//! The result on a terminal: what it says in sentences, then a table of sizes with a column for each policy.

use assay_logs::terminal::Look;
use assay_settings::show::count;

use crate::document::{Curve, Document, Unit};
use crate::numbers::percent;
use crate::proof::Proof;
use crate::together::Together;
use crate::words::{shown_size, size};

const BOLD: &str = "1";
const DIM: &str = "2";
/// Columns of a policy in the table.
const COLUMN: usize = 11;

/// Writes the result for people.
pub fn render(document: &Document, look: Look) -> String {
    let paint = |code: &str, text: &str| {
        if look.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    };
    let mut lines = Vec::new();
    for (number, sentence) in document.advice.iter().enumerate() {
        let wrapped = wrap(sentence, look.width);
        lines.extend(wrapped.into_iter().map(|line| if number == 0 { paint(BOLD, &line) } else { line }));
    }
    lines.push(String::new());
    lines.extend(wrap(&input(document), look.width).iter().map(|line| paint(DIM, line)));
    if let Some(proof) = &document.proof {
        lines.push(String::new());
        lines.extend(proven(proof, &paint));
    }
    if let Some(together) = &document.together {
        lines.push(String::new());
        lines.extend(side_by_side(together, &paint));
    }
    let columns = (look.width.saturating_sub(16) / COLUMN).max(1);
    for curves in document.curves.chunks(columns) {
        lines.push(String::new());
        let heads: String = curves.iter().map(|curve| format!("{:>COLUMN$}", curve.policy.name())).collect();
        lines.push(paint(BOLD, &format!("{:<16}{heads}", "hits by size")));
        for (at, point) in curves[0].points.iter().enumerate() {
            let ratio = |curve: &Curve| percent(curve.points.get(at).and_then(|p| p.figures.dhr));
            let cells: String = curves.iter().map(|curve| format!("{:>COLUMN$}", ratio(curve))).collect();
            lines.push(format!("{:<16}{cells}", size(point.size_bytes, document.input.unit)));
        }
        let most = format!("{:>COLUMN$}", percent(document.infinite.dhr)).repeat(curves.len());
        lines.push(format!("{:<16}{most}", "infinite"));
    }
    lines.extend(divided(document, &paint, columns));
    if !document.notes.is_empty() {
        lines.push(String::new());
    }
    for note in &document.notes {
        lines.extend(wrap(note, look.width).iter().map(|line| paint(DIM, line)));
    }
    lines.join("\n") + "\n"
}

/// A table of caches that work together.
fn side_by_side(together: &Together, paint: &impl Fn(&str, &str) -> String) -> Vec<String> {
    let heads = ["size", "requests", "own", "sibling", "parent"];
    let row = |cells: [String; 5]| cells.iter().map(|cell| format!("{cell:>RATIO$}")).collect::<String>();
    let mut lines = vec![paint(BOLD, &format!("{:<16}{}", "hits by cache", row(heads.map(String::from))))];
    for cache in &together.caches {
        let share = |hits| match cache.requests {
            0 => "–".into(),
            requests => percent(assay_measurement::ratios::ratio(hits, requests)),
        };
        let cells = [
            size(cache.size_bytes, Unit::Bytes),
            count(cache.requests),
            share(cache.own_hits),
            share(cache.sibling_hits),
            share(cache.parent_hits),
        ];
        lines.push(format!("{:<16}{}", cut(&plain(&cache.name)), row(cells)));
    }
    lines
}

/// Hits by host, content type or class, at one size.
fn divided(document: &Document, paint: &impl Fn(&str, &str) -> String, columns: usize) -> Vec<String> {
    let (Some(by), Some(at)) = (document.by, shown_size(document)) else { return Vec::new() };
    let policies: Vec<_> = document.curves.iter().filter(|curve| !curve.points[at].by.is_empty()).collect();
    let policies = &policies[..policies.len().min(columns.saturating_sub(2))];
    let at_size = document.curves[0].points[at].size_bytes;
    let heads: String = policies.iter().map(|curve| format!("{:>COLUMN$}", curve.policy.name())).collect();
    let head = format!(
        "{:<16}{:>COLUMN$}{heads}{:>COLUMN$}",
        cut(&format!("by {}", by.name())),
        "requests",
        "infinite"
    );
    let mut lines = vec![String::new(), paint(BOLD, &head)];
    for (place, share) in document.infinite_by.iter().enumerate() {
        let ratio =
            |curve: &&&Curve| percent(curve.points[at].by.get(place).and_then(|share| share.figures.dhr));
        let cells: String = policies.iter().map(|curve| format!("{:>COLUMN$}", ratio(&curve))).collect();
        let requests = count(share.figures.requests);
        lines.push(format!(
            "{:<16}{requests:>COLUMN$}{cells}{:>COLUMN$}",
            cut(&share.name),
            percent(share.figures.dhr)
        ));
    }
    lines.push(paint(DIM, &format!("hits at {}", size(at_size, document.input.unit))));
    lines
}

/// A name that leaves a space before the next column.
fn cut(name: &str) -> String {
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
        let mut name = format!("{} {}", plain(&cell.title()), size(cell.size_bytes, Unit::Bytes));
        if name.chars().count() > NAME {
            lines.push(std::mem::take(&mut name));
        }
        lines.push(format!("{name:<NAME$}{}", row(cells)));
    }
    lines.push(paint(DIM, &format!("experiment {}", plain(&proof.experiment))));
    lines
}

/// What was simulated.
pub(crate) fn input(document: &Document) -> String {
    let input = &document.input;
    let bytes = match input.unit {
        Unit::Bytes => format!(" of {} together", size(input.footprint_bytes, input.unit)),
        Unit::Objects => String::new(),
    };
    let warm_up = match input.warm_up_requests {
        0 => String::new(),
        requests => format!(", the first {} to fill the caches", count(requests)),
    };
    format!(
        "{} ({}): {} requests{warm_up}, for {} object{}{bytes}.",
        input.files.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", "),
        input.format,
        count(input.requests),
        count(input.objects),
        if input.objects == 1 { "" } else { "s" }
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
