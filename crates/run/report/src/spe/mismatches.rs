//! Responses that differed from the Collector's, and those that never came: grouped, with examples.

use std::collections::BTreeMap;

use assay_record::spe::{ResponseError, ResponseRow, SpeDir, SpeInfo, Verdict, for_each_response};

use super::document::{MismatchExample, MismatchGroup};
use super::figures::label;
use super::tables::EvaluationData;
use crate::ReportError;
use crate::figures::ratio;

/// Examples of each group.
const EXAMPLES: usize = 3;
/// Groups of a target, after which the rest is one: names of fields come from the proxies.
const MOST_GROUPS: usize = 100;
/// Characters of a URL that are shown.
const URL_CHARS: usize = 300;

type GroupedMismatches = BTreeMap<(u16, Verdict, String), (u64, Vec<MismatchExample>)>;

/// Goes through the responses once more, if some differed.
pub(super) fn groups(
    dir: &SpeDir,
    info: &SpeInfo,
    data: &EvaluationData,
) -> Result<Vec<MismatchGroup>, ReportError> {
    let mut groups = GroupedMismatches::new();
    if data.differs {
        let mut known = BTreeMap::<u16, usize>::new();
        for_each_response(&dir.responses_path(), |row| {
            if row.method != "CONNECT" && (row.verdict.is_mismatch() || row.verdict == Verdict::NoResponse) {
                add_mismatch(&mut groups, &mut known, data, row);
            }
            Ok::<_, ReportError>(())
        })?;
    }
    let mut found: Vec<(u16, MismatchGroup)> = groups
        .into_iter()
        .map(|((target, verdict, what), (count, examples))| {
            let requested = data.sums.get(usize::from(target)).map_or(0, |sums| sums.requested);
            let share = ratio(count, requested).unwrap_or(0.0);
            let target_label = label(info, usize::from(target));
            (target, MismatchGroup { target: target_label, verdict, what, count, share, examples })
        })
        .collect();
    found.sort_by(|(one, a), (other, b)| {
        (one, b.count, a.verdict, &a.what).cmp(&(other, a.count, b.verdict, &b.what))
    });
    Ok(found.into_iter().map(|(_, group)| group).collect())
}

fn add_mismatch(
    groups: &mut GroupedMismatches,
    known: &mut BTreeMap<u16, usize>,
    data: &EvaluationData,
    row: ResponseRow,
) {
    let direct_status = data.direct_status(row.request);
    let mut key = (row.target, row.verdict, detail(&row, direct_status));
    if !groups.contains_key(&key) {
        let of_target = known.entry(row.target).or_default();
        if *of_target >= MOST_GROUPS {
            key.2 = "others".to_owned();
        } else {
            *of_target += 1;
        }
    }
    let (count, examples) = groups.entry(key).or_default();
    *count += 1;
    if examples.len() < EXAMPLES {
        examples.push(MismatchExample {
            request: row.request,
            method: row.method,
            url: row.url.chars().take(URL_CHARS).collect(),
            direct_status,
            status: row.status,
            at_us: row.at_us,
        });
    }
}

fn detail(row: &ResponseRow, direct_status: Option<u16>) -> String {
    let status = |status: Option<u16>| status.map_or_else(|| "none".to_owned(), |status| status.to_string());
    match row.verdict {
        Verdict::StatusCodeMismatch => format!("{} → {}", status(direct_status), status(row.status)),
        Verdict::HeaderMismatch => row.header.clone().unwrap_or_default(),
        Verdict::NoResponse => row.error.map_or("unknown", ResponseError::name).to_owned(),
        _ => String::new(),
    }
}
