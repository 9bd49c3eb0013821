//! The result as one document. Everything that is shown anywhere is in it; its schema is `docs/reference/size.schema.json`.

use assay_cache::policy::Admission;
use schemars::JsonSchema;
use serde::Serialize;

use crate::curve::{self, Method};
use crate::keys::suggest::Suggestion;
use crate::policy::Policy;
use crate::proof::Proof;
use crate::read::Read;
use crate::simulate::{self, Counts, Rules};
use crate::words;

/// Name and version of the document.
pub const SCHEMA: &str = "assay-size/1";

/// How far below an infinite cache a size may be to be called enough, in points of document hit ratio.
const WITHIN_POINTS: [f64; 3] = [1.0, 2.0, 5.0];

/// Curves of hit ratio over cache size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Assay.
    pub assay_version: String,
    /// What the sizes say, a sentence each, the most important first.
    pub advice: Vec<String>,
    /// The requests.
    pub input: InputInfo,
    /// What an infinite cache makes of the requests after the warm-up.
    pub infinite: Figures,
    /// A curve for each policy.
    pub curves: Vec<Curve>,
    /// Changes of the key that would gain hits, the most first; none: nobody asked.
    pub suggestions: Option<Vec<KeyChange>>,
    /// Predictions beside what real proxies reached; none: none was run.
    pub proof: Option<Proof>,
    /// The proxy as which objects were stored; none: only their bodies take room.
    pub stored_as: Option<StoredAs>,
    /// What a reader should know, a sentence each.
    pub notes: Vec<String>,
}

/// A change of the key that would gain hits in a cache without bounds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeyChange {
    /// What the key would do, as it is written for `--key`.
    pub rule: String,
    /// Requests that it concerns.
    pub requests: u64,
    /// Misses that would be hits, of an object with the same length.
    pub gained_hits: u64,
    /// The same in points of document hit ratio.
    pub gained_points: Option<f64>,
    /// Requests that would be hits of an object with another length: they may be for another object.
    pub different_length: u64,
    /// At least 99 of 100 have the same length.
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
}

/// The requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct InputInfo {
    /// The files, in the order in which they were read; `-` is standard input.
    pub files: Vec<String>,
    /// Name of their format.
    pub format: String,
    /// Unit of all sizes of caches and objects, and of all sums of bytes.
    pub unit: Unit,
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
}

/// What sizes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Objects: the input has no sizes, and each object counts 1.
    Objects,
}

/// What a cache makes of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Requests after the warm-up.
    pub requests: u64,
    /// Those that the cache served.
    pub hits: u64,
    /// Those that it did not.
    pub misses: u64,
    /// Those among the misses that found an expired copy which the origin confirmed: no body was fetched.
    pub validated: u64,
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
    /// The smallest simulated size; none: no simulated size is large enough.
    pub size_bytes: Option<u64>,
}

/// One size of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Size of the cache.
    pub size_bytes: u64,
    /// What it makes of the requests.
    #[serde(flatten)]
    pub figures: Figures,
    /// How that was computed.
    pub method: PointMethod,
    /// Further hits of the next size, in points of document hit ratio for each further GB (2^30 bytes); none: there is no next
    /// size, or no bytes.
    pub next_gb_points: Option<f64>,
}

/// How a point was computed. Both are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PointMethod {
    /// From reuse distances, with other sizes in one pass.
    OnePass,
    /// By simulation of a cache of this size.
    Simulated,
}

/// What is to be simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The policies, a curve each.
    pub policies: Vec<Policy>,
    /// Sizes in bytes (in objects, for an input without sizes); empty: those that suit the input.
    pub sizes: Vec<u64>,
    /// Share of the requests that fill the caches and are not counted, from 0 to 1.
    pub warm_up: f64,
    /// What caches store.
    pub admission: Admission,
    /// The proxy as which the objects of the requests were laid out.
    pub stored_as: Option<StoredAs>,
}

impl Document {
    /// Simulates all policies at all sizes.
    pub fn of(read: &Read, options: &Options) -> Self {
        let requests = &read.requests;
        let warm_up = (requests.list.len() as f64 * options.warm_up.clamp(0.0, 1.0)) as usize;
        let mut sizes = options.sizes.clone();
        if sizes.is_empty() {
            sizes = curve::usual_sizes(requests.footprint_bytes);
        }
        sizes.sort_unstable();
        sizes.dedup();
        let infinite = simulate::infinite(requests, warm_up);
        let unit = if requests.has_sizes { Unit::Bytes } else { Unit::Objects };
        let curves = curve::curves(
            requests,
            &options.policies,
            &sizes,
            Rules { warm_up, admission: options.admission },
        );
        let mut document = Self {
            schema: SCHEMA.into(),
            assay_version: env!("CARGO_PKG_VERSION").into(),
            advice: Vec::new(),
            input: InputInfo {
                files: read.files.iter().map(|file| file.display().to_string()).collect(),
                format: read.form.clone(),
                unit,
                requests: requests.list.len() as u64,
                warm_up_requests: warm_up as u64,
                uncachable_requests: requests.uncachable,
                uncounted_requests: requests.uncounted(),
                objects: requests.objects as u64,
                requested_once: requests.requested_once(),
                footprint_bytes: requests.footprint_bytes,
                largest_bytes: requests.largest_bytes,
                size_changes: requests.size_changes,
                lasts_s: requests.lasts_s,
                malformed: read.malformed,
            },
            infinite: Figures::of(&infinite, unit),
            curves: curves.iter().map(|curve| Curve::of(curve, &infinite, unit)).collect(),
            suggestions: read.suggestions.as_ref().map(|(found, _)| {
                found.iter().map(|suggestion| KeyChange::of(suggestion, requests.list.len() as u64)).collect()
            }),
            proof: None,
            stored_as: options.stored_as.clone(),
            notes: Vec::new(),
        };
        document.notes = words::notes(&document, read.requests.unordered, &read.notes);
        if let Some((_, unexamined @ 1..)) = read.suggestions {
            document.notes.push(words::unexamined(unexamined));
        }
        document.advice = words::advice(&document);
        document
    }

    /// Adds predictions beside measurements.
    pub fn prove(&mut self, proof: Proof) {
        self.proof = Some(proof);
        self.advice = words::advice(self);
    }

    /// The JSON Schema.
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Document)
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
    fn of(suggestion: &Suggestion, requests: u64) -> Self {
        let gained = assay_measurement::ratios::ratio(suggestion.gained, requests);
        Self {
            rule: suggestion.rule.clone(),
            requests: suggestion.requests,
            gained_hits: suggestion.gained,
            gained_points: gained.map(|share| share * 100.0),
            different_length: suggestion.different,
            is_safe: suggestion.is_safe(),
        }
    }
}

impl Figures {
    fn of(counts: &Counts, unit: Unit) -> Self {
        Self {
            requests: counts.requests,
            hits: counts.hits,
            misses: counts.requests - counts.hits,
            validated: counts.validated,
            bytes: counts.bytes,
            hit_bytes: counts.hit_bytes,
            dhr: counts.dhr(),
            bhr: if unit == Unit::Bytes { counts.bhr() } else { None },
        }
    }
}

impl Curve {
    fn of(curve: &curve::Curve, infinite: &Counts, unit: Unit) -> Self {
        let enough = |within_points| Enough {
            within_points,
            size_bytes: curve.enough(infinite, within_points).map(|point| point.size),
        };
        let next = curve.points.iter().skip(1).map(Some).chain([None]);
        let points = curve.points.iter().zip(next).map(|(point, next)| Point {
            size_bytes: point.size,
            figures: Figures::of(&point.counts, unit),
            method: match point.method {
                Method::OnePass => PointMethod::OnePass,
                Method::Simulated => PointMethod::Simulated,
            },
            next_gb_points: next
                .filter(|_| unit == Unit::Bytes)
                .and_then(|next| points_for_each_gb(point, next)),
        });
        Self { policy: curve.policy, enough: WITHIN_POINTS.map(enough).to_vec(), points: points.collect() }
    }
}

fn points_for_each_gb(from: &curve::Point, to: &curve::Point) -> Option<f64> {
    let gained = (to.counts.dhr()? - from.counts.dhr()?) * 100.0;
    Some(gained / ((to.size - from.size) as f64 / (1u64 << 30) as f64))
}
