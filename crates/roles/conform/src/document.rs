//! Results as one document: what each case has shown of each target, with the exchanges as evidence. Its schema is
//! made from it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::case::Level;
use crate::message::shown;
use crate::observe::Observation;
use crate::run::Outcome;
use crate::verdict::{TryCounts, Verdict};

/// Version of the document.
pub const SCHEMA: &str = "assay-conform/1";
/// Most bytes of a message that are kept as evidence.
const MAX_SHOWN: usize = 4096;
/// A target of whose MUST cases a larger share says nothing is not decided.
const MAX_INCONCLUSIVE: f64 = 0.05;

/// The results of cases on targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// `assay-conform/1`.
    pub schema: String,
    /// Version of Assay.
    pub version: String,
    /// When the cases were tried: seconds since the epoch.
    pub made_unix_s: u64,
    /// What they were tried on.
    pub targets: Vec<TargetInfo>,
    /// A result for each case on each target, by target, topic and case.
    pub results: Vec<CaseResult>,
}

/// A target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetInfo {
    /// What it is called in results.
    pub label: String,
    /// Product and version, as it says itself.
    pub software: String,
    /// Settings that were chosen for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// How it ended by itself, if it did: its other cases are inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What its logs tell of processes of it that crashed while it went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashes: Option<String>,
    /// How long its cases took, in seconds, without the time that it took to start.
    pub took_s: f64,
}

/// What a case has shown of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// The target.
    pub target: String,
    /// The case.
    pub case: String,
    /// Its topic.
    pub topic: String,
    /// How binding its requirement is.
    pub level: Level,
    /// RFC of the requirement; none: an attack, or a behaviour that no RFC describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rfc: Option<u32>,
    /// Section of the RFC, or where the behaviour is described.
    pub section: String,
    /// The requirement.
    pub rule: String,
    /// What the case has shown.
    pub verdict: Verdict,
    /// What was seen, where it is not what the case describes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why the failure is accepted, where the file of known failures lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// What that reason rests on, where the file says so: `source: …`, `documentation: …`, `by hand` and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// How often the case was tried.
    pub tries: usize,
    /// What the tries came to, where there was more than one and some of them were decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<TryCounts>,
    /// What came of it each time, where it was tried over and over while the target was under load. A case that does not hold is tried
    /// again at once; that counts as one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_load: Option<TryCounts>,
    /// The exchanges, where the verdict is not `pass` or `yes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}

/// One step as it was seen. Bytes outside printed ASCII are written as `\r`, `\n`, `\t` or `\x00`. Frames of HTTP/2 are shown in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// Number of the step, from 1.
    pub step: usize,
    /// When it was sent: milliseconds since the case began.
    pub at_ms: f64,
    /// What the client sent.
    pub sent: String,
    /// What reached the origin meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<RecordedRequest>,
    /// What the client got.
    pub received: String,
    /// Why there is no complete response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A request that reached the origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reached")]
pub struct RecordedRequest {
    /// When: milliseconds since the case began.
    pub at_ms: f64,
    /// The request.
    pub request: String,
    /// Status of the origin's response; 0: it sent none.
    pub status: u16,
}

/// A text that is no document of this kind.
#[derive(Debug, Error)]
pub enum ParseError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("its schema is `{0}`, not `{SCHEMA}`")]
    Schema(String),
}

/// Conclusion from all results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// No MUST fails that was not expected to.
    Fine,
    /// At least one does.
    Failed,
    /// Too many MUST cases of a target say nothing, or it ended by itself, or a process of it crashed.
    Undecided,
}

impl CaseResult {
    /// True if the requirement is not met, always or sometimes.
    pub fn fails(&self) -> bool {
        self.level.binds() && matches!(self.verdict, Verdict::Fail | Verdict::Sometimes)
    }

    /// Tries that held, of all, for a verdict of *sometimes*.
    pub fn share(&self) -> Option<(usize, usize)> {
        let times = self.under_load.or(self.times).filter(|times| times.contradict())?;
        (self.verdict == Verdict::Sometimes).then_some((times.held, times.held + times.unheld))
    }

    /// The verdict in words, with the counts of one that holds sometimes.
    pub fn words(&self) -> String {
        match self.share() {
            Some((held, all)) => format!("{} ({held} of {all})", self.verdict.words()),
            None => self.verdict.words().to_owned(),
        }
    }

    /// A few characters for a cell of a matrix.
    pub fn mark(&self) -> String {
        self.share().map_or_else(|| self.verdict.mark().to_owned(), |(held, all)| format!("{held}/{all}"))
    }
}

impl Document {
    pub fn new(version: &str, made_unix_s: u64) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: version.to_owned(),
            made_unix_s,
            targets: Vec::new(),
            results: Vec::new(),
        }
    }

    /// Adds a target with its outcomes.
    pub fn add(&mut self, target: TargetInfo, outcomes: &[Outcome]) {
        self.results.extend(outcomes.iter().map(|outcome| result(&target.label, outcome)));
        self.targets.push(target);
    }

    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Document).to_value()
    }

    /// As JSON, with a line end.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    pub fn from_json(text: &str) -> Result<Self, ParseError> {
        let document: Self = serde_json::from_str(text)?;
        match document.schema == SCHEMA {
            true => Ok(document),
            false => Err(ParseError::Schema(document.schema)),
        }
    }

    /// The result of a case on a target.
    pub fn find(&self, target: &str, case: &str) -> Option<&CaseResult> {
        self.results.iter().find(|result| result.target == target && result.case == case)
    }

    /// Number of results of a target with this level and verdict.
    pub fn count(&self, target: &str, level: Level, verdict: Verdict) -> usize {
        let is_counted = |result: &&CaseResult| {
            result.target == target && result.level == level && result.verdict == verdict
        };
        self.results.iter().filter(is_counted).count()
    }

    /// MUST failures that are neither known nor were there in the baseline.
    pub fn failures<'d>(&'d self, baseline: Option<&Document>) -> Vec<&'d CaseResult> {
        let failed_before = |result: &CaseResult| {
            let before = baseline.and_then(|before| before.find(&result.target, &result.case));
            // A case that is new has no past that could excuse it.
            before.is_some_and(CaseResult::fails)
        };
        let is_new = |result: &&CaseResult| {
            result.level == Level::Must && result.fails() && result.known.is_none() && !failed_before(result)
        };
        self.results.iter().filter(is_new).collect()
    }

    /// Results with another verdict than in the baseline, with the result there; what either of them says nothing of is left out.
    pub fn changes<'d>(&'d self, baseline: &'d Document) -> Vec<(&'d CaseResult, &'d CaseResult)> {
        let changed = |result: &'d CaseResult| {
            let before = baseline.find(&result.target, &result.case)?;
            let is_known = before.verdict != Verdict::Inconclusive && result.verdict != Verdict::Inconclusive;
            (is_known && before.verdict != result.verdict).then_some((result, before))
        };
        self.results.iter().filter_map(changed).collect()
    }

    /// Number of inconclusive cases of a target, and the most frequent reason, if they are too many.
    pub fn inconclusive_summary(&self, target: &str) -> Option<String> {
        let of_target: Vec<&CaseResult> =
            self.results.iter().filter(|result| result.target == target).collect();
        let open = |result: &&&CaseResult| result.verdict == Verdict::Inconclusive;
        let musts = of_target.iter().filter(|result| result.level == Level::Must);
        let (all, open_musts) = (musts.clone().count(), musts.filter(open).count());
        if open_musts as f64 <= all as f64 * MAX_INCONCLUSIVE {
            return None;
        }
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for result in of_target.iter().filter(open) {
            let reason = result.reason.as_str();
            // Where it was seen differs from case to case.
            let what = reason.strip_prefix("step ").and_then(|rest| rest.split_once(": "));
            *reasons.entry(what.map_or(reason, |(_, what)| what)).or_default() += 1;
        }
        let (most, _) = reasons.iter().max_by_key(|(_, count)| **count)?;
        let tried = of_target.iter().filter(|result| result.verdict != Verdict::NotApplicable).count();
        Some(format!("{} of {tried} cases say nothing; most often: {most}", reasons.values().sum::<usize>()))
    }

    /// Conclusion, with the failures of a baseline excused.
    pub fn conclusion(&self, baseline: Option<&Document>) -> Conclusion {
        if !self.failures(baseline).is_empty() {
            return Conclusion::Failed;
        }
        let is_undecided = |target: &TargetInfo| {
            target.ended.is_some()
                || target.crashes.is_some()
                || self.inconclusive_summary(&target.label).is_some()
        };
        let is_open = !self.has_decided() || self.targets.iter().any(is_undecided);
        if is_open { Conclusion::Undecided } else { Conclusion::Fine }
    }

    /// Whether anything was found out at all: cases can apply to none of the targets.
    pub fn has_decided(&self) -> bool {
        self.results.iter().any(|result| result.verdict.is_decided())
    }
}

fn result(target: &str, outcome: &Outcome) -> CaseResult {
    let (case, judgement) = (&outcome.case, &outcome.judgement);
    let exchanges = match judgement.verdict.holds() {
        true => Vec::new(),
        false => exchanges(&outcome.observations),
    };
    CaseResult {
        target: target.to_owned(),
        case: case.name.clone(),
        topic: case.topic.clone(),
        level: case.level,
        rfc: case.rfc,
        section: case.section.clone(),
        rule: case.rule.clone(),
        verdict: judgement.verdict,
        reason: judgement.reason.clone(),
        known: None,
        evidence: Vec::new(),
        tries: outcome.tries,
        times: Some(outcome.times).filter(|times| outcome.tries > 1 && times.held + times.unheld > 0),
        under_load: None,
        exchanges,
    }
}

/// Observations of a case, as text.
pub fn exchanges(observations: &[Observation]) -> Vec<Exchange> {
    let reached = |observation: &Observation| {
        let one = |arrival: &crate::observe::Arrival| RecordedRequest {
            at_ms: tenths(arrival.at_ms),
            request: shown(&arrival.bytes, MAX_SHOWN),
            status: arrival.status,
        };
        observation.arrivals.iter().map(one).collect()
    };
    let exchange = |(step, observation): (usize, &Observation)| {
        let received = observation.received.first();
        Exchange {
            step,
            at_ms: tenths(observation.sent_ms),
            sent: as_text(&observation.sent_frames, &observation.sent),
            origin: reached(observation),
            received: received.map(|got| as_text(&got.frames, &got.bytes)).unwrap_or_default(),
            problem: received.and_then(|received| received.problem.clone()),
        }
    };
    (1..).zip(observations).map(exchange).collect()
}

/// Frames in words where there are any, bytes otherwise.
fn as_text(frames: &[String], bytes: &[u8]) -> String {
    if frames.is_empty() {
        return shown(bytes, MAX_SHOWN);
    }
    let text = frames.join("\n");
    match text.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}… ({} bytes more)", &text[..at], text.len() - at),
        None => text,
    }
}

fn tenths(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}
