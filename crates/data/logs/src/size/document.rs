//! The result as one document. Everything that is shown anywhere is in it; its schema is made from it.

use crate::document::MalformedLine;
use assay_cache::policy::Admission;
use schemars::JsonSchema;
use serde::Serialize;

use crate::size::confidence::ErrorCause;
use crate::size::cooperate::Hierarchy;
use crate::size::cooperation::Cooperation;
use crate::size::curve;
use crate::size::error::SizeError;
use crate::size::group_by::GroupBy;
use crate::size::input::SizeInput;
use crate::size::keys::suggest::KeySuggestion;
use crate::size::policy::Policy;
use crate::size::proof::Proof;
use crate::size::requests::Requests;
use crate::size::result_view::ResultView;
use crate::size::sample::{FEWEST_OBJECTS, Sampled};
use crate::size::simulate::HitCounts;
use crate::size::trace::operation::OperationCount;
use crate::size::words;

/// Name and version of the document.
pub const SCHEMA: &str = "assay-size/1";

/// Curves of hit ratio over cache size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct SizeDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Assay.
    pub assay_version: String,
    /// What the sizes say, a sentence each, the most important first.
    pub advice: Vec<String>,
    /// The requests.
    pub input: InputSummary,
    /// The sample that was simulated; none: all requests were.
    pub sample: Option<SampleInfo>,
    /// Where errors come from; none: the input is too short to tell.
    pub error_from: Option<ErrorSource>,
    /// What an infinite cache makes of the requests after the warm-up.
    pub infinite: HitFigures,
    /// Lowest and highest document hit ratio that an infinite cache may have; none: it is not known.
    pub infinite_interval: Option<(f64, f64)>,
    /// What the figures are divided by; none: nobody asked.
    pub by: Option<GroupBy>,
    /// What an infinite cache makes of the requests with each label; empty without `by`.
    pub infinite_by: Vec<LabelFigures>,
    /// A curve for each policy.
    pub curves: Vec<Curve>,
    /// Where another policy would gain most over the first one; none: nowhere as much as a tenth of a point, or no more than by chance.
    pub best: Option<Gain>,
    /// What caches that work together make of the requests; none: nobody asked.
    pub together: Option<Cooperation>,
    /// Changes of the key that would gain hits, and additions that would lose them, the most first; none: nobody asked.
    pub suggestions: Option<Vec<KeyChange>>,
    /// Predictions beside what real proxies reached; none: none was run.
    pub proof: Option<Proof>,
    /// The proxy as which objects were stored; none: only their bodies take room.
    pub stored_as: Option<StoredAs>,
    /// What a reader should know, a sentence each.
    pub notes: Vec<String>,
}

/// The sample of an input.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SampleInfo {
    /// Share of the objects that are in it.
    pub rate: f64,
    /// Its objects.
    pub objects: u64,
    /// Their requests.
    pub requests: u64,
    /// The input was too large for a simulation of all requests; nobody asked for a sample.
    pub is_forced: bool,
    /// The smallest size that it says something of.
    pub smallest_bytes: u64,
    /// The smallest size whose byte hit ratio is known.
    pub smallest_bytes_for_bhr: u64,
}

/// Where errors come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorSource {
    /// Which objects happen to be in the sample.
    Sample,
    /// What happens to be requested when: the differences among stretches of the requests.
    Time,
}

/// A number of points (hundredths of a ratio), and the interval that contains the true one with a probability of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Points {
    /// The estimate.
    pub points: f64,
    /// Lower end of the interval; none: the error is not known.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What another policy would gain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Gain {
    /// The policy.
    pub policy: Policy,
    /// The size at which it gains most.
    pub size_bytes: u64,
    /// Points of document hit ratio more than those of the first policy.
    pub gained: Points,
}

/// A change of the key that would gain or lose hits in a cache without bounds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeyChange {
    /// What the key would do, as it is written for `--key`.
    pub rule: String,
    /// It leaves something out of the key; false: it adds something to it.
    pub leaves_out: bool,
    /// Requests that it concerns.
    pub requests: u64,
    /// Misses that would be hits, of an object with the same length, and the same validator if it is logged.
    pub gained_hits: u64,
    /// The same in points of document hit ratio.
    pub gained_points: Option<f64>,
    /// Hits that would be misses.
    pub lost_hits: u64,
    /// Requests that would be hits of an object with another length or validator: they may be for another object.
    pub different_length: u64,
    /// At least 99 of 100 have the same length; what is added to a key is safe.
    pub is_safe: bool,
}

/// How much room objects take.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoredAs {
    /// Name of the proxy.
    pub proxy: String,
    /// Bytes of each object beside its body.
    pub overhead_bytes: u64,
    /// Room is taken in multiples of this.
    pub unit_bytes: u64,
    /// Share of its size that it fills before it evicts, in percent: objects take as much more room.
    pub filled_percent: u64,
}

/// The requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "InputInfo")]
pub struct InputSummary {
    /// The files, in the order in which they were read; `-` is standard input.
    pub files: Vec<String>,
    /// Name of their format.
    pub format: String,
    /// Unit of all sizes of caches and objects, and of all sums of bytes.
    pub unit: SizeUnit,
    /// All requests, those of the warm-up among them.
    pub requests: u64,
    /// Requests that filled the caches before any was counted.
    pub warm_up_requests: u64,
    /// Requests that no cache may serve: they count as misses.
    pub uncachable_requests: u64,
    /// Requests that act on caches and are in no figure: those of a workload that are no plain GETs, or of other phases.
    pub uncounted_requests: u64,
    /// Different objects.
    pub objects: u64,
    /// Objects that are requested once.
    pub requested_once: u64,
    /// Bytes of these objects.
    pub requested_once_bytes: u64,
    /// Bytes of all objects: what an infinite cache holds at the end.
    pub footprint_bytes: u64,
    /// Bytes of the largest object.
    pub largest_bytes: u64,
    /// Requests whose object had changed its size: they are misses.
    pub size_changes: u64,
    /// Seconds from the first request to the last one; none: the input has no times.
    pub lasts_s: Option<u64>,
    /// Lines or records that could not be read.
    pub malformed: u64,
    /// The first of them, where it is known why: in traces of text.
    pub malformed_lines: Vec<MalformedLine>,
    /// What else than reading was done with objects of a trace: no requests.
    pub other_operations: Vec<OperationCount>,
}

/// What sizes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Unit")]
pub enum SizeUnit {
    /// Bytes.
    Bytes,
    /// Objects: the input has no sizes, and each object counts 1.
    Objects,
}

/// What a cache makes of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Figures")]
pub struct HitFigures {
    /// Requests after the warm-up.
    pub requests: u64,
    /// Those that the cache served.
    pub hits: u64,
    /// Those that it did not.
    pub misses: u64,
    /// Those among the misses that found an expired copy which the origin confirmed: no body was fetched.
    pub validated: u64,
    /// Requests that came while the response to another one for their object was on its way: hits of a cache that collapses requests,
    /// misses of others. 0 where responses take no time.
    pub collapsible: u64,
    /// Bytes of the responses to all of them.
    pub bytes: u64,
    /// Bytes of the responses to hits.
    pub hit_bytes: u64,
    /// Document hit ratio: hits over requests; none: there are no requests.
    pub dhr: Option<f64>,
    /// Byte hit ratio: bytes of hits over bytes; none: there are no bytes, or no sizes.
    pub bhr: Option<f64>,
}

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// The replacement policy.
    pub policy: Policy,
    /// The smallest simulated sizes that are nearly as good as an infinite cache.
    pub enough: Vec<Enough>,
    /// Sizes, smallest first.
    pub points: Vec<Point>,
}

/// A size that is nearly as good as an infinite cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Enough {
    /// By how much its document hit ratio is lower, at most, in points (hundredths).
    pub within_points: f64,
    /// The smallest simulated size from which on all are near enough; none: there is none.
    pub size_bytes: Option<u64>,
    /// By how much the document hit ratio of this size is below that of an infinite cache.
    pub below: Option<Points>,
    /// The smallest simulated size from which on none is further below in 95 of 100 cases; none: there is none, or the error is not known.
    pub sure_size_bytes: Option<u64>,
}

/// One size of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Size of the cache.
    pub size_bytes: u64,
    /// What it makes of the requests.
    #[serde(flatten)]
    pub figures: HitFigures,
    /// Lower end of the band of document hit ratios, which contains the whole true curve with a probability of 95 %; none: nothing was
    /// sampled.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Lower end of the band of byte hit ratios; none: nothing was sampled, or the ratio is not known.
    pub bhr_low: Option<f64>,
    /// Its upper end.
    pub bhr_high: Option<f64>,
    /// How that was computed.
    pub method: PointMethod,
    /// Further hits of the next size, in points of document hit ratio for each further GB (2^30 bytes); none: there is no next
    /// size, or no bytes.
    pub next_gb: Option<Points>,
    /// The estimate of `next_gb`.
    pub next_gb_points: Option<f64>,
    /// The figures by host, content type or class, those with the most requests first; empty without `by`, and for bounds.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub by: Vec<LabelFigures>,
}

/// The figures of the requests with one label.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Share")]
pub struct LabelFigures {
    /// The host, the content type or the class; `(none)`: it has none; `(others)`: all beyond the 20 with the most requests.
    pub name: String,
    /// What the cache makes of them. In a sample, all of these are estimates.
    #[serde(flatten)]
    pub figures: HitFigures,
}

/// How a point was computed. Both are exact for the requests that are simulated: all, or a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PointMethod {
    /// From reuse distances, with other sizes in one pass.
    OnePass,
    /// By simulation of a cache of this size.
    Simulated,
}

/// Settings of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeOptions {
    /// The policies, a curve each.
    pub policies: Vec<Policy>,
    /// Sizes in bytes (in objects, for an input without sizes); empty: those that suit the input.
    pub sizes: Vec<u64>,
    /// Share of the requests that fill the caches and are not counted, from 0 to 1.
    pub warm_up: f64,
    pub admission: Admission,
    /// The proxy as which the objects of the requests were laid out.
    pub stored_as: Option<StoredAs>,
}

impl SizeDocument {
    /// Simulates all policies at all sizes.
    ///
    /// # Errors
    /// If the requests are a sample that is too small for any size.
    pub fn of(read: &SizeInput, options: &SizeOptions) -> Result<Self, SizeError> {
        let requests = &read.requests;
        let sample =
            requests.sampled.as_ref().map(|sampled| SampleInfo::of(requests, sampled, options.admission));
        let (sizes, left_out) = sizes(requests, options, sample.as_ref())?;
        let plan = curve::CurvePlan {
            policies: &options.policies,
            sizes: &sizes,
            warm_up: options.warm_up.clamp(0.0, 1.0),
            admission: options.admission,
        };
        let found = curve::curves(requests, &plan);
        let unit = if requests.has_sizes { SizeUnit::Bytes } else { SizeUnit::Objects };
        let names = requests.labels.as_ref().map_or(&[][..], |labels| &labels.names);
        let view = ResultView { curves: &found, unit, sample: sample.clone(), names };
        let mut document = Self {
            schema: SCHEMA.into(),
            assay_version: env!("CARGO_PKG_VERSION").into(),
            advice: Vec::new(),
            input: InputSummary::of(read, unit, found.warm_up),
            sample,
            error_from: found.source.map(|source| match source {
                ErrorCause::Sample => ErrorSource::Sample,
                ErrorCause::Time => ErrorSource::Time,
            }),
            infinite: HitFigures::of(&found.infinite.counts, unit),
            infinite_interval: view.infinite_interval(),
            by: requests.labels.as_ref().map(|labels| labels.by),
            infinite_by: view.shares(&found.infinite),
            curves: found.curves.iter().map(|curve| view.curve(curve)).collect(),
            best: view.best(),
            together: None,
            suggestions: read.suggestions.as_ref().map(|(found, _)| {
                found.iter().map(|suggestion| KeyChange::of(suggestion, requests.read())).collect()
            }),
            proof: None,
            stored_as: options.stored_as.clone(),
            notes: Vec::new(),
        };
        document.notes = words::notes(&document, requests.unordered, &read.notes);
        document.notes.extend(words::left_out(&left_out, unit));
        if let Some((_, unexamined @ 1..)) = read.suggestions {
            document.notes.push(words::unexamined(unexamined));
        }
        document.advice = words::advice(&document);
        Ok(document)
    }

    /// Adds predictions beside measurements.
    pub fn prove(&mut self, proof: Proof) {
        self.proof = Some(proof);
        self.advice = words::advice(self);
    }

    /// Adds what caches that work together make of the same requests.
    /// `warm_up` is the share of the requests that fill the caches.
    pub fn cooperate(&mut self, requests: &Requests, hierarchy: &Hierarchy, warm_up: f64) {
        self.together = Some(Cooperation::of(requests, hierarchy, warm_up, self.input.unit));
        self.advice = words::advice(self);
    }

    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(SizeDocument).to_value()
    }

    /// The document as text.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

impl KeyChange {
    fn of(suggestion: &KeySuggestion, requests: u64) -> Self {
        let gained = assay_measurement::ratios::ratio(suggestion.gained, requests);
        Self {
            rule: suggestion.rule.clone(),
            leaves_out: suggestion.leaves_out,
            requests: suggestion.requests,
            gained_hits: suggestion.gained,
            gained_points: gained.map(|share| share * 100.0),
            lost_hits: suggestion.lost,
            different_length: suggestion.different,
            is_safe: suggestion.is_safe(),
        }
    }
}

impl InputSummary {
    fn of(read: &SizeInput, unit: SizeUnit, warm_up: u64) -> Self {
        let requests = &read.requests;
        let (once, once_bytes) = requests.requested_once();
        Self {
            files: read.files.iter().map(|file| file.display().to_string()).collect(),
            format: read.form.clone(),
            unit,
            requests: requests.read(),
            warm_up_requests: warm_up,
            uncachable_requests: requests.uncachable,
            uncounted_requests: requests.uncounted(),
            objects: requests.all_objects(),
            requested_once: once,
            requested_once_bytes: once_bytes,
            footprint_bytes: requests.footprint_bytes,
            largest_bytes: requests.largest_bytes,
            size_changes: requests.size_changes,
            lasts_s: requests.lasts_s,
            malformed: read.malformed,
            malformed_lines: read.malformed_lines.clone(),
            other_operations: read.other_operations.clone(),
        }
    }
}

impl SampleInfo {
    fn of(requests: &Requests, sampled: &Sampled, admission: Admission) -> Self {
        let (smallest_bytes, smallest_bytes_for_bhr) = requests.smallest_known(admission);
        Self {
            rate: sampled.rate,
            objects: requests.objects as u64,
            requests: requests.list.len() as u64,
            is_forced: sampled.is_forced,
            smallest_bytes,
            smallest_bytes_for_bhr,
        }
    }
}

/// The sizes that are simulated, smallest first, and those that a sample is too small for.
fn sizes(
    requests: &Requests,
    options: &SizeOptions,
    sample: Option<&SampleInfo>,
) -> Result<(Vec<u64>, Vec<u64>), SizeError> {
    let mut sizes = options.sizes.clone();
    if sizes.is_empty() {
        sizes = curve::usual_sizes(requests.footprint_bytes);
    }
    sizes.sort_unstable();
    sizes.dedup();
    let Some(sample) = sample else { return Ok((sizes, Vec::new())) };
    let (objects, rate) = (requests.drawn_objects() as u64, sample.rate);
    if objects < FEWEST_OBJECTS as u64 {
        return Err(SizeError::SampleTooSmall { objects, rate, fewest: FEWEST_OBJECTS as u64 });
    }
    let large = sizes.split_off(sizes.partition_point(|size| *size < sample.smallest_bytes));
    if large.is_empty() {
        return Err(SizeError::SizesTooSmall { rate, smallest_bytes: sample.smallest_bytes });
    }
    let left_out = if options.sizes.is_empty() { Vec::new() } else { sizes };
    Ok((large, left_out))
}

impl HitFigures {
    pub(crate) fn of(counts: &HitCounts, unit: SizeUnit) -> Self {
        Self {
            requests: counts.requests,
            hits: counts.hits,
            misses: counts.requests - counts.hits,
            validated: counts.validated,
            collapsible: counts.collapsible,
            bytes: counts.bytes,
            hit_bytes: counts.hit_bytes,
            dhr: counts.dhr(),
            bhr: if unit == SizeUnit::Bytes { counts.bhr() } else { None },
        }
    }
}
