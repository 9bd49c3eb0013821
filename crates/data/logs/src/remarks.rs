//! What a reader should know of how a log was read.

use std::collections::BTreeMap;

use assay_base::settings::show::count;

use crate::format::prefix::LinePrefix;
use crate::format::{FormatTracker, UnusedField};
use crate::input::Input;

/// Peculiarities of logs that a reader should know, beside lines that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Lines by format, for logs with lines of several.
    lines: BTreeMap<String, u64>,
    unused: Vec<UnusedField>,
    /// NULs that were skipped before lines.
    nuls: u64,
    ends_in_cr: bool,
    /// Durations of the log end where responses begin.
    lacks_bodies: bool,
    /// Prefixes that were removed, and how often.
    prefixes: Vec<(LinePrefix, u64)>,
    /// Lines that are fetches of a cache from a backend.
    pub fetches: u64,
    /// Lines that are connections, and say nothing of requests.
    pub connections: u64,
    copies: Copies,
}

impl Remarks {
    /// Adds those on a log that was read to its end.
    pub(crate) fn add(&mut self, input: &Input, current: &FormatTracker) {
        self.copies.add(input);
        self.nuls += input.nuls;
        self.ends_in_cr |= input.ends_in_cr;
        self.lacks_bodies |= current.lines().any(|(name, _)| matches!(name, "aws-alb" | "aws-elb"));
        if let Some(prefix) = input.prefix() {
            match self.prefixes.iter_mut().find(|(own, _)| *own == prefix) {
                Some((_, prefixes)) => *prefixes += input.prefixes,
                None => self.prefixes.push((prefix, input.prefixes)),
            }
        }
        for unused in current.unused() {
            if !self.unused.contains(unused) {
                self.unused.push(unused.clone());
            }
        }
        if current.lines().count() > 1 {
            for (name, lines) in current.lines() {
                *self.lines.entry(name.to_owned()).or_default() += lines;
            }
        }
    }

    /// The remarks, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.copies.notes();
        if !self.lines.is_empty() {
            let shares: Vec<String> =
                self.lines.iter().map(|(name, lines)| format!("{} of {name}", count(*lines))).collect();
            notes.push(format!("The log has lines of several formats: {}.", shares.join(", ")));
        }
        for UnusedField { word, what, used } in &self.unused {
            notes.push(format!("Two fields of the format say the {what}: {used} is read, {word} is not."));
        }
        if self.lacks_bodies {
            notes.push(
                "Balancers of AWS measure until they begin to send a response: response times are without that of the body."
                    .into(),
            );
        }
        if self.fetches > 0 {
            notes.push(format!(
                "{} lines are fetches of the cache from a backend: they are no requests of clients, and are not counted.",
                count(self.fetches)
            ));
        }
        if self.connections > 0 {
            notes.push(format!(
                "{} lines are of connections and say nothing of requests: they are not counted.",
                count(self.connections)
            ));
        }
        for (prefix, stripped) in &self.prefixes {
            notes.push(format!(
                "Lines begin with the head of {}: it was skipped {} times, and times are those of the lines themselves.",
                prefix.product(),
                count(*stripped)
            ));
        }
        if self.nuls > 0 {
            notes.push(format!(
                "{} NULs before lines were skipped: the log was truncated while it was being written, and lines may be \
                 missing.",
                count(self.nuls)
            ));
        }
        if self.ends_in_cr {
            notes.push("Lines of the log end in CR alone, and were read as such.".into());
        }
        notes
    }
}

/// Files with the same content, however each of them is compressed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Copies {
    contents: Vec<Content>,
    notes: Vec<String>,
}

/// Content of a file, known by its beginning and its length.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    name: String,
    head_hash: u64,
    bytes: u64,
}

impl Copies {
    /// Adds a file that was read to its end.
    pub(crate) fn add(&mut self, input: &Input) {
        let Some(head_hash) = input.head_hash.filter(|_| input.bytes > 0) else { return };
        let content = Content { name: input.name.clone(), head_hash, bytes: input.bytes };
        let is_same = |other: &&Content| (other.head_hash, other.bytes) == (content.head_hash, content.bytes);
        if let Some(first) = self.contents.iter().find(is_same) {
            self.notes.push(format!(
                "{} holds the same lines as {}: all of their requests are counted twice. Leave one of the two out.",
                content.name, first.name
            ));
        }
        self.contents.push(content);
    }

    /// Sentences on files that are copies of others.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
