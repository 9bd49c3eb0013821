//! `caches.json`: requests in the logs of a run's caches, joined with what robots recorded of them.
//!
//! Robots know when a request was due and when its response came, and whether the response had been made for it; caches know
//! where they had it from. Their logs carry the robots' own name of each request, so both are put together request by request.
//! What is kept are counts and histograms of each combination, so that any table can be made of them, and every difference is
//! seen.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::dir::{RunDir, RunDirError};
use crate::file;
use crate::table::FileError;
use assay_measurement::histogram::SparseHistogram;

/// Version of the document.
pub const CACHES_SCHEMA: &str = "assay-caches/1";

/// The logs of all caches of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheLogs {
    /// [`CACHES_SCHEMA`].
    pub schema: String,
    /// Robots kept a log of every request, and each was looked for in the caches' logs. Otherwise everything is from the
    /// logs alone.
    pub joined: bool,
    pub logs: Vec<LogRead>,
    /// Requests of robots to their own caches: a row for each combination that occurred.
    pub responses: Vec<Responses>,
    /// Requests of caches to each other.
    pub traffic: Vec<Traffic>,
}

/// Summary of one cache's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogRead {
    /// The cache; empty where there is one proxy only.
    pub cache: String,
    /// Reason for which the log was not read; empty: it was read.
    pub unread: String,
    pub lines: u64,
    /// Lines that could not be read.
    pub malformed: u64,
    /// Lines that name no request of this run: the lab's checks that it is ready, reads of its counters.
    pub foreign: u64,
    /// Lines of this run's requests whose own cache had one already: a robot sent it again (a connection was closed under it,
    /// a redirection, a password).
    pub again: u64,
}

/// Outcome of a request according to robots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// A plain GET that was served from a store.
    Hit,
    /// A plain GET that joined another's fetch.
    Collapsed,
    /// A plain GET that an origin confirmed.
    Revalidated,
    /// A plain GET that an origin responded to.
    Miss,
    /// A request other than a plain GET got its response.
    Other,
    /// An error, or no response in time.
    Failed,
    /// Robots have no request of that name, or have not sent it.
    Nothing,
    /// Robots kept no log.
    Unknown,
}

/// Source of a response according to the caches' logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Source {
    /// The store of the cache that got the request.
    Local,
    /// The same cache was fetching it for another request.
    Joined,
    /// The store of a sibling.
    Sibling,
    /// The store of a parent.
    Parent,
    /// A parent, which fetched it.
    ThroughParent,
    /// An origin, which confirmed what was stored.
    Revalidated,
    Origin,
    /// Nobody: an error, a refusal.
    Failed,
    /// The log does not say.
    Unsaid,
    /// There is no such line.
    Unlogged,
}

impl Source {
    /// Name in documents.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether some cache had the response: a hit or collapsed to a robot.
    pub fn is_hit(self) -> bool {
        matches!(self, Source::Local | Source::Joined | Source::Sibling | Source::Parent)
    }
}

/// Requests of robots, counted by the fields up to `source`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Responses {
    /// The cache that they were sent to; empty where there is one proxy only.
    pub cache: String,
    /// The phase in which they were due.
    pub phase: u16,
    /// Plain GETs.
    pub basic: bool,
    pub seen: Seen,
    pub source: Source,
    pub requests: u64,
    /// Of these, how many have another status in the log than the robot got.
    pub other_status: u64,
    /// Bytes of bodies that robots got.
    pub body_bytes: u64,
    /// Bytes of responses that the log has.
    pub logged_bytes: u64,
    /// Time from due to the response, at robots; of requests with a response.
    pub response: SparseHistogram,
    /// Time according to the cache.
    pub duration: SparseHistogram,
}

/// Requests of one cache to another, as the other's log has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// The cache that sent the requests.
    pub from: String,
    /// The cache that got them.
    pub to: String,
    /// `sibling` or `parent`.
    pub relation: String,
    /// The phase in which the robot's request was due.
    pub phase: u16,
    pub requests: u64,
    /// Of these, served from the store.
    pub hits: u64,
    /// Of these, refused by a sibling: it was thought to have it, and had it no more.
    pub false_hits: u64,
    /// Bytes of responses.
    pub bytes: u64,
    /// Time according to the log of the cache that got them.
    pub duration: SparseHistogram,
}

impl RunDir {
    /// `caches.json`: what the logs of caches say, beside what robots saw.
    pub fn caches_path(&self) -> std::path::PathBuf {
        self.path().join("caches.json")
    }

    pub fn write_caches(&self, logs: &CacheLogs) -> Result<(), RunDirError> {
        let path = self.caches_path();
        let mut text = serde_json::to_vec(logs).map_err(|e| FileError::write(&path, e.into()))?;
        text.push(b'\n');
        self.write_whole(&path, &text)?;
        self.add_checksum(&path)
    }

    /// Reads `caches.json`; none: the run has none.
    pub fn read_caches(&self) -> Result<Option<CacheLogs>, RunDirError> {
        let path = self.caches_path();
        if !path.exists() {
            return Ok(None);
        }
        self.check_file(&path)?;
        Ok(Some(file::read_json(&path)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_logs_say_comes_back_as_it_was_and_damage_is_an_error() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&tmp.path().join("run")).unwrap();
        assert_eq!(dir.read_caches().unwrap(), None);
        let logs = CacheLogs {
            schema: CACHES_SCHEMA.into(),
            joined: true,
            responses: vec![Responses {
                cache: "a".into(),
                phase: 1,
                basic: true,
                seen: Seen::Hit,
                source: Source::Sibling,
                requests: 2,
                other_status: 0,
                body_bytes: 30,
                logged_bytes: 40,
                response: SparseHistogram { sum_us: 5, max_us: 3, buckets: vec![(2, 1), (3, 1)] },
                duration: SparseHistogram::default(),
            }],
            ..CacheLogs::default()
        };
        dir.write_caches(&logs).unwrap();
        assert_eq!(dir.read_caches().unwrap(), Some(logs));
        std::fs::write(dir.caches_path(), "{\"joined\": 7").unwrap();
        assert!(matches!(dir.read_caches(), Err(RunDirError::File(FileError::Damaged { .. }))));
    }
}
