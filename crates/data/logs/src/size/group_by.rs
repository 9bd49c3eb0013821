//! What requests are told apart by: the host, the content type, or what the log says became of them.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use crate::size::error::ArgumentError;

/// Labels with the most requests are shown, the others together.
const MAX_SHOWN: usize = 20;
/// Labels that are told apart while the input is read.
const MAX_LABELS: usize = u16::MAX as usize;
/// Longer labels are cut off.
const MAX_LABEL_BYTES: usize = 200;
const OTHERS: &str = "(others)";
const NONE: &str = "(none)";

/// What requests are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "By")]
pub enum GroupBy {
    /// The host.
    Host,
    /// The content type.
    Type,
    /// What the log says became of the request.
    Class,
}

impl GroupBy {
    /// The word for it, as it is typed and shown.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The heading of a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Host => "Host",
            Self::Type => "Content type",
            Self::Class => "Class in the log",
        }
    }

    /// Reads the word.
    ///
    /// # Errors
    /// A message that lists the words.
    pub fn parse(text: &str) -> Result<Self, ArgumentError> {
        text.parse().map_err(|_| ArgumentError::Label { text: text.to_owned() })
    }
}

/// The labels of all requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLabels {
    pub by: GroupBy,
    pub names: Vec<String>,
    /// A label for each request, by its place among the names.
    pub of: Vec<u16>,
}

/// Collects labels, one for each request.
#[derive(Debug)]
pub(crate) struct LabelCollector {
    by: GroupBy,
    known: HashMap<Vec<u8>, u16>,
    names: Vec<String>,
    pub(crate) of: Vec<u16>,
}

impl LabelCollector {
    pub(crate) fn new(by: GroupBy) -> Self {
        // The first label is of requests that get none, and of labels beyond the most.
        Self { by, known: HashMap::new(), names: vec![NONE.into()], of: Vec::new() }
    }

    /// Labels the last request.
    pub(crate) fn label(&mut self, text: &[u8]) {
        let Some(last) = self.of.last_mut() else { return };
        let text = &text[..text.len().min(MAX_LABEL_BYTES)];
        *last = match self.known.get(text) {
            Some(label) => *label,
            None if text.is_empty() || self.names.len() == MAX_LABELS => 0,
            None => {
                let label = self.names.len() as u16;
                let shown = String::from_utf8_lossy(text);
                self.names.push(shown.chars().map(|c| if c.is_control() { '?' } else { c }).collect());
                self.known.insert(text.to_vec(), label);
                label
            }
        };
    }

    /// The labels with the most requests, and the others as one.
    pub(crate) fn finish(self) -> RequestLabels {
        let mut counts: Vec<(u64, usize)> = (0..self.names.len()).map(|label| (0, label)).collect();
        self.of.iter().for_each(|label| counts[usize::from(*label)].0 += 1);
        counts.retain(|(count, _)| *count > 0);
        counts.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(self.names[a.1].cmp(&self.names[b.1])));
        let shown = if counts.len() > MAX_SHOWN + 1 { MAX_SHOWN } else { counts.len() };
        let mut ranks = vec![shown as u16; self.names.len()];
        for (rank, (_, label)) in counts.iter().take(shown).enumerate() {
            ranks[*label] = rank as u16;
        }
        let mut names: Vec<String> =
            counts.iter().take(shown).map(|(_, label)| self.names[*label].clone()).collect();
        if counts.len() > shown {
            names.push(OTHERS.into());
        }
        let of = self.of.iter().map(|label| ranks[usize::from(*label)]).collect();
        RequestLabels { by: self.by, names, of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(texts: &[&str]) -> RequestLabels {
        let mut labelling = LabelCollector::new(GroupBy::Host);
        for text in texts {
            labelling.of.push(0);
            labelling.label(text.as_bytes());
        }
        labelling.finish()
    }

    #[test]
    fn labels_are_in_the_order_of_their_requests() {
        let found = labels(&["b", "a", "b", "", "c\u{1}", "a", "b"]);
        assert_eq!(found.names, ["b", "a", NONE, "c?"]);
        assert_eq!(found.of, [0, 1, 0, 2, 3, 1, 0]);
    }

    #[test]
    fn beyond_twenty_the_rest_is_one() {
        let texts: Vec<String> = (0..30).flat_map(|n| (0..40 - n).map(move |_| format!("h{n}"))).collect();
        let found = labels(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(
            (found.names.len(), found.names[20].as_str(), found.names[0].as_str()),
            (21, OTHERS, "h0")
        );
        assert_eq!(
            found.of.iter().filter(|label| **label == 20).count(),
            (20..30).map(|n| 40 - n).sum::<usize>()
        );
        let all = labels(&texts.iter().take(21 * 30 + 150).map(String::as_str).collect::<Vec<_>>());
        assert!(all.names.len() <= 21);
    }

    #[test]
    fn words_are_read_and_others_refused() {
        assert_eq!(GroupBy::parse("type"), Ok(GroupBy::Type));
        assert!(GroupBy::parse("size").unwrap_err().to_string().contains("host, type or class"));
    }
}
