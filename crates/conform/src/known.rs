//! Files of known failures: which cases may fail on which target, and why.

use assay_settings::{Fields, Mistake, Source};

use crate::document::Document;
use crate::verdict::Verdict;

const TOP: [&str; 1] = ["known"];
const KNOWN: [&str; 3] = ["target", "case", "reason"];

/// A failure that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The target; none: any.
    pub target: Option<String>,
    /// The case, or the name without a row.
    pub case: String,
    /// Why it is accepted.
    pub reason: String,
}

/// Reads a file of known failures; `file` names it in messages.
pub fn read(file: &str, text: &str) -> Result<Vec<Known>, Mistake> {
    let source = Source { file, text };
    let table = source.parse()?;
    let top = Fields::whole(source, "a file of known failures", &table);
    top.only(&TOP)?;
    let known = |fields: Fields<'_>| {
        let reason = fields.need("reason", "why the failure is accepted")?;
        if reason.text()?.trim().is_empty() {
            return Err(reason.wrong("it is empty; say why the failure is accepted"));
        }
        Ok(Known {
            target: fields.get("target").map(|value| value.text().map(str::to_owned)).transpose()?,
            case: fields.need("case", "the name of a case")?.text()?.to_owned(),
            reason: reason.text()?.to_owned(),
        })
    };
    top.tables("known", "[[known]]", &KNOWN)?.into_iter().map(known).collect()
}

/// Marks the failures that are known; those of the list that did not fail anywhere.
pub fn apply<'k>(document: &mut Document, known: &'k [Known]) -> Vec<&'k Known> {
    let mut unused: Vec<&Known> = known.iter().collect();
    for result in document.results.iter_mut().filter(|result| result.verdict == Verdict::Fail) {
        let is_meant = |known: &&Known| {
            let of_target = known.target.as_ref().is_none_or(|target| *target == result.target);
            of_target && (known.case == result.case || result.case.split('/').next() == Some(&known.case))
        };
        if let Some(found) = known.iter().find(is_meant) {
            result.known = Some(found.reason.clone());
            unused.retain(|other| *other != found);
        }
    }
    unused
}
