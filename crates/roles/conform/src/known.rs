//! Files of known failures: which cases may fail on which target, why, and what that explanation rests on.

use assay_base::settings::{Fields, Mistake, Source, Value};

use crate::document::{CaseResult, Document};
use crate::verdict::Verdict;

const TOP: [&str; 1] = ["known"];
const KNOWN: [&str; 4] = ["target", "case", "reason", "evidence"];

/// The kinds of evidence, and whether an item must say where it is to be found.
const KINDS: [(&str, bool); 6] = [
    ("documentation", true),
    ("source", true),
    ("issue", true),
    ("configuration", true),
    ("by hand", false),
    ("exchanges", false),
];

/// A failure that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFailure {
    /// The target; none: any.
    pub target: Option<String>,
    /// The case, or the name without a row.
    pub case: String,
    /// Reason for accepting it.
    pub reason: String,
    /// Evidence for the reason: a kind of [`KINDS`], and behind a colon where it is to be found.
    pub evidence: Vec<String>,
}

impl KnownFailure {
    /// True if nothing but the exchanges of the case speaks for the reason.
    pub fn rests_on_exchanges_alone(&self) -> bool {
        self.evidence.iter().all(|item| kind(item) == "exchanges")
    }

    /// True if it names this case, or the case that this is a row of.
    pub fn names(&self, case: &str) -> bool {
        self.case == case || case.split('/').next() == Some(&self.case)
    }

    fn is_of(&self, result: &CaseResult) -> bool {
        self.target.as_ref().is_none_or(|target| *target == result.target) && self.names(&result.case)
    }
}

fn kind(item: &str) -> &str {
    item.split_once(':').map_or(item, |(kind, _)| kind).trim()
}

/// An item of evidence, in one line; or what is wrong with it.
fn evidence(item: &Value<'_>) -> Result<String, Mistake> {
    let text = item.text()?.trim();
    let kinds = || KINDS.map(|(kind, _)| kind).join(", ");
    let Some((kind, needs_place)) = KINDS.iter().find(|(name, _)| *name == kind(text)) else {
        return Err(item.wrong(&format!("it begins with no kind of evidence; expected one of: {}", kinds())));
    };
    let place = text.split_once(':').map_or("", |(_, place)| place.trim());
    if place.is_empty() && (*needs_place || text.contains(':')) {
        return Err(item.wrong(&format!(
            "it says nothing behind \"{kind}:\"; name the place, like a file and a function"
        )));
    }
    if text.contains('\n') {
        return Err(item.wrong("it has more than one line"));
    }
    Ok(text.to_owned())
}

/// Reads a file of known failures; `file` names it in messages.
pub fn read(file: &str, text: &str) -> Result<Vec<KnownFailure>, Mistake> {
    let source = Source { file, text };
    let table = source.parse()?;
    let top = Fields::whole(source, "a file of known failures", &table);
    top.only(&TOP)?;
    let known = |fields: Fields<'_>| -> Result<Vec<KnownFailure>, Mistake> {
        let reason = fields.need("reason", "why the failure is accepted")?;
        if reason.text()?.trim().is_empty() {
            return Err(reason.wrong("it is empty; say why the failure is accepted"));
        }
        let target = fields.get("target").map(|value| value.text().map(str::to_owned)).transpose()?;
        let reason = reason.text()?;
        let evidence = match fields.get("evidence") {
            Some(items) => items.list()?.iter().map(evidence).collect::<Result<Vec<_>, _>>()?,
            None => Vec::new(),
        };
        let cases = fields.need("case", "the name of a case, or a list of them")?.list()?;
        let one = |case: &Value<'_>| {
            let case = case.text()?.to_owned();
            let evidence = evidence.clone();
            Ok(KnownFailure { target: target.clone(), case, reason: reason.to_owned(), evidence })
        };
        cases.iter().map(one).collect()
    };
    let all: Vec<Vec<KnownFailure>> =
        top.tables("known", "[[known]]", &KNOWN)?.into_iter().map(known).collect::<Result<_, _>>()?;
    Ok(all.concat())
}

/// Marks the failures that are known; those of the list that did not fail anywhere, although a case that they name was tried and decided.
pub fn apply<'k>(document: &mut Document, known: &'k [KnownFailure]) -> Vec<&'k KnownFailure> {
    let decided = |result: &&CaseResult| {
        use Verdict::{DependencyMissing, Inconclusive, NotApplicable};
        !matches!(result.verdict, NotApplicable | DependencyMissing | Inconclusive)
    };
    let was_tried =
        |known: &&KnownFailure| document.results.iter().filter(decided).any(|result| known.is_of(result));
    let mut unused: Vec<&KnownFailure> = known.iter().filter(was_tried).collect();
    for result in document.results.iter_mut().filter(|result| result.fails()) {
        let is_meant = |known: &&KnownFailure| known.is_of(result);
        // What names a row says more than what names the whole case.
        let of_row = |known: &&KnownFailure| known.case == result.case && is_meant(known);
        if let Some(found) = known.iter().find(of_row).or_else(|| known.iter().find(is_meant)) {
            result.known = Some(found.reason.clone());
            result.evidence.clone_from(&found.evidence);
            unused.retain(|other| *other != found);
        }
    }
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(evidence: &str) -> Result<Vec<KnownFailure>, Mistake> {
        read("k.toml", &format!("[[known]]\ncase = \"a\"\nreason = \"why\"\nevidence = {evidence}\n"))
    }

    #[test]
    fn evidence_is_of_a_named_kind_and_says_where_it_is_found() {
        let known = &with("[\"source: a.c, f\", \"by hand\"]").unwrap()[0];
        assert_eq!(known.evidence, ["source: a.c, f", "by hand"]);
        assert!(!known.rests_on_exchanges_alone());
        assert!(with("[\"exchanges: 28 of 96\"]").unwrap()[0].rests_on_exchanges_alone());
        for (wrong, says) in [
            ("[\"rumour: a friend\"]", "no kind of evidence"),
            ("[\"source\"]", "name the place"),
            ("[\"issue: \"]", "name the place"),
            ("[\"by hand:\"]", "name the place"),
            ("[\"source: a\\nb\"]", "more than one line"),
        ] {
            let told = with(wrong).unwrap_err().to_string();
            assert!(told.contains("k.toml:4") && told.contains(says), "{wrong}: {told}");
        }
    }
}
