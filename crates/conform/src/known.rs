//! Files of known failures: which cases may fail on which target, and why.

use assay_settings::{Fields, Mistake, Source, Value};

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
    let known = |fields: Fields<'_>| -> Result<Vec<Known>, Mistake> {
        let reason = fields.need("reason", "why the failure is accepted")?;
        if reason.text()?.trim().is_empty() {
            return Err(reason.wrong("it is empty; say why the failure is accepted"));
        }
        let target = fields.get("target").map(|value| value.text().map(str::to_owned)).transpose()?;
        let reason = reason.text()?;
        let cases = fields.need("case", "the name of a case, or a list of them")?.list()?;
        let one = |case: &Value<'_>| {
            let case = case.text()?.to_owned();
            Ok(Known { target: target.clone(), case, reason: reason.to_owned() })
        };
        cases.iter().map(one).collect()
    };
    let all: Vec<Vec<Known>> =
        top.tables("known", "[[known]]", &KNOWN)?.into_iter().map(known).collect::<Result<_, _>>()?;
    Ok(all.concat())
}

/// Marks the failures that are known; those of the list that did not fail anywhere.
pub fn apply<'k>(document: &mut Document, known: &'k [Known]) -> Vec<&'k Known> {
    let mut unused: Vec<&Known> = known.iter().collect();
    for result in document.results.iter_mut().filter(|result| result.verdict == Verdict::Fail) {
        let is_meant = |known: &&Known| {
            let of_target = known.target.as_ref().is_none_or(|target| *target == result.target);
            of_target && (known.case == result.case || result.case.split('/').next() == Some(&known.case))
        };
        // What names a row says more than what names the whole case.
        let of_row = |known: &&Known| known.case == result.case && is_meant(known);
        if let Some(found) = known.iter().find(of_row).or_else(|| known.iter().find(is_meant)) {
            result.known = Some(found.reason.clone());
            unused.retain(|other| *other != found);
        }
    }
    unused
}
