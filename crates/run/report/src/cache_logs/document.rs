//! Figures from the logs of the caches, beside those of the robots: a part of the summary's document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::Percentiles;

/// What the logs of the caches say of the robots' requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheLogFigures {
    /// The phase that the first two tables are about; null: the whole run.
    pub phase: Option<String>,
    /// Robots kept a log of every request, and each was looked for in the caches' logs.
    pub joined: bool,
    /// Each cache, and all of them together.
    pub caches: Vec<CacheSources>,
    /// Requests between caches.
    pub traffic: Vec<TrafficFigures>,
    /// Robots' counts beside the logs', of the whole run.
    pub agreement: Vec<Agreement>,
}

/// Where the responses to robots' plain GETs came from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheSources {
    /// The cache; `all`: all of them.
    pub cache: String,
    /// Plain GETs of robots.
    pub requests: u64,
    /// Of these, answered by any cache that had them.
    pub hit_ratio: Option<f64>,
    /// By where the response came from; without those that never occurred.
    pub sources: Vec<SourceFigures>,
}

/// Responses from one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceFigures {
    /// `local`, `joined`, `sibling`, `parent`, `through_parent`, `revalidated`, `origin`, `failed`, `unsaid` or `unlogged`.
    pub source: String,
    /// Plain GETs.
    pub requests: u64,
    /// Share of all.
    pub ratio: Option<f64>,
    /// Bytes of bodies that robots got.
    pub body_bytes: u64,
    /// Response times to robots, in milliseconds; they run from when a request was due.
    pub response_ms: Percentiles,
    /// Times to the cache, as it logged them, in milliseconds.
    pub logged_ms: Percentiles,
}

/// Requests of a cache to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrafficFigures {
    /// The cache that sent them.
    pub from: String,
    /// The cache that received them.
    pub to: String,
    /// `sibling` or `parent`.
    pub relation: String,
    /// Requests.
    pub requests: u64,
    /// Of these, answered from the store.
    pub hits: u64,
    /// Of these, refused by a sibling that was thought to have it.
    pub false_hits: u64,
    /// Bytes of responses.
    pub bytes: u64,
    /// Times to the cache that received them, in milliseconds.
    pub logged_ms: Percentiles,
}

/// The same thing, counted by robots and by logs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// The cache; `all`: all of them.
    pub cache: String,
    /// What is counted.
    pub what: String,
    /// By robots.
    pub robots: u64,
    /// By logs.
    pub logs: u64,
    /// Why they differ, as far as that can be told request by request; empty: they agree.
    pub why: String,
}
