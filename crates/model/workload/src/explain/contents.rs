//! Content types in words: sizes, life, what bodies are made of, what robots do differently with them.

use assay_base::settings::show::{bytes, count, plain};

use std::time::Duration;

use super::robots::{coding_name, headers, popularity};
use super::words::{draws, kinds, percent, time};
use crate::model::{BodySource, Content, FileSetIndex, Workload};

/// A content type: a line, and another for what its bodies are made of and what is sent with them.
pub(super) fn content(workload: &Workload, content: &Content) -> Vec<String> {
    let mut line = format!(
        "content {:?}: {} on average, {} cachable",
        content.kind,
        bytes(mean_size(workload, content).round() as u64),
        percent(content.cachable)
    );
    if let Some(cycle) = &content.life_cycle {
        let every = Duration::try_from_secs_f64(cycle.length_s.mean().max(0.0)).unwrap_or_default();
        line += &format!(", modified every {}", time(every));
    }
    if let Some(embedded) = &content.embedded {
        line += &format!(
            ", a page with {} embedded objects on average: {}",
            plain(embedded.count.mean_count()),
            kinds(workload, &embedded.contents)
        );
    }
    let mut lines = vec![line];
    for part in [body(workload, content), behaviour(content)] {
        if !part.is_empty() {
            lines.push(format!("  {}", part.join("; ")));
        }
    }
    lines
}

fn mean_size(workload: &Workload, content: &Content) -> f64 {
    match content.body.source {
        BodySource::Files(set) => {
            let files = workload.files.get(usize::from(set)).map_or(&[][..], |set| set.files.as_slice());
            files.iter().map(|file| file.bytes as f64).sum::<f64>() / (files.len() as f64).max(1.0)
        }
        _ => content.size_bytes.mean_count(),
    }
}

fn body(workload: &Workload, content: &Content) -> Vec<String> {
    let spec = &content.body;
    let files = |set: FileSetIndex| {
        let set = workload.files.get(usize::from(set));
        set.map_or_else(String::new, |set| {
            format!("{} files below {}", count(set.files.len() as u64), set.root.display())
        })
    };
    let mut parts = Vec::new();
    match spec.source {
        BodySource::Data => {}
        BodySource::Text => parts.push("text".into()),
        BodySource::Words => parts.push("words as of prose".into()),
        BodySource::Files(set) => parts.push(format!("whole files, one of {}", files(set))),
        BodySource::Database(set) => parts.push(format!("the {} one after another", files(set))),
    }
    if let Some(unique) = spec.unique.filter(|unique| *unique < 1.0) {
        parts.push(format!("{} of objects share one body", percent(1.0 - unique)));
    }
    let coded: Vec<_> = spec.codings.iter().map(|coding| coding_name(*coding)).collect();
    if !coded.is_empty() {
        parts.push(format!("sent as {}", coded.join(" or ")));
    }
    if let Some(injection) = spec.injection.as_ref().filter(|injection| injection.share > 0.0) {
        let what = match injection.lines {
            Some(_) => format!("lines every {}", draws(&injection.gap_bytes, "bytes")),
            None => "its path at the end".into(),
        };
        parts.push(format!("{} of objects have {what} put in", percent(injection.share)));
    }
    if content.checksum > 0.0 {
        parts.push(format!("{} with a checksum", percent(content.checksum)));
    }
    parts.extend(headers(&content.headers));
    parts
}

/// Behaviour of robots that is specific to this type.
fn behaviour(content: &Content) -> Vec<String> {
    let own = &content.behaviour;
    let mut parts = Vec::new();
    parts.extend(own.recurrence.map(|recurrence| format!("recurrence {}", percent(recurrence))));
    parts.extend(own.popularity.as_ref().map(popularity));
    let says = [
        (own.request_types.is_some(), "request types"),
        (own.methods.is_some(), "methods"),
        (own.ranges.is_some(), "parts"),
    ];
    let says: Vec<_> = says.into_iter().filter(|(set, _)| *set).map(|(_, what)| what).collect();
    if !says.is_empty() {
        parts.push(format!("{} of its own", says.join(", ")));
    }
    if let Some(first) = parts.first_mut() {
        *first = format!("for all robots: {first}");
    }
    parts
}
