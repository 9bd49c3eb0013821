//! A workload before anything runs: compiled, squeezed if requested, put on the time line.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Error, anyhow};
use assay_lab::experiment::cells::multiply_rate;
use assay_report::require::Requirement;
use assay_workload::digest::stream_digest;
use assay_workload::explain::explain;
use assay_workload::model::{HttpVersion, Workload};
use assay_workload::overrides::Overrides;
use assay_workload::rehearse::Rehearsal;
use assay_workload::{Timeline, Universe, UniverseOptions};

use crate::exit::Failure;
use crate::{bundled, overrides, source};

/// Requests per robot in a stream digest, unless the user says otherwise: enough to tell streams apart.
const DIGEST_REQUESTS: u64 = 100;
/// Requests of all robots together in a stream digest, so that it is done in a moment; robots beyond that have one each.
const DIGEST_REQUESTS_IN_ALL: u64 = 1_000_000;

/// Requests of each robot in the stream digest of a workload with so many robots.
fn digest_requests(robots: u32) -> u64 {
    (DIGEST_REQUESTS_IN_ALL / u64::from(robots.max(1))).clamp(1, DIGEST_REQUESTS)
}

/// The user's choices about a workload.
#[derive(Debug)]
pub struct WorkloadOptions<'a> {
    /// File or bundled workload.
    pub workload: &'a str,
    /// Directories of included files.
    pub include: &'a [PathBuf],
    /// Factor of every rate; 1: as the workload has it.
    pub rate: f64,
    /// Replacements of the workload's own length, rate and number of robots.
    pub overrides: Overrides,
    /// Squeeze the schedule.
    pub rehearse: Option<Rehearsal>,
    pub seed: u64,
    /// Treat private interests as public ones.
    pub private_as_public: bool,
    /// Requests per robot in the digest.
    pub digest_requests: Option<u64>,
    /// The digest is left out, which takes long where there are very many robots: whoever wants it calls [`PreparedWorkload::reseeded`].
    pub digest_later: bool,
    /// Threads that compute the digest; none: as many as there are processors.
    pub threads: Option<u32>,
    /// Show the compiler's remarks on a bundled workload, too. Users who only run one cannot change it.
    pub remarks_on_bundled: bool,
}

/// A workload that can run.
#[derive(Debug, Clone)]
pub struct PreparedWorkload {
    /// As it will run.
    pub workload: Arc<Workload>,
    /// Factor of the schedule in a rehearsal.
    pub scale: Option<f64>,
    /// Replacements of the workload's own length, rate and number of robots.
    pub overrides: Overrides,
    pub timeline: Arc<Timeline>,
    /// In words, a line each.
    pub explained: Vec<String>,
    /// Digest of the first requests of every robot.
    pub stream_digest: String,
    /// Number of requests of each robot in the digest.
    pub stream_digest_requests: u64,
    /// Texts it was compiled from: name and text.
    pub sources: Vec<(String, String)>,
    /// Warnings of the compiler, a line each.
    pub warnings: Vec<String>,
    /// Notes of the workload and of the command line, a line each.
    pub notes: Vec<String>,
}

/// Prepares a workload, or says why it cannot run.
pub fn prepare(wish: &WorkloadOptions) -> Result<PreparedWorkload, Failure> {
    let is_quiet = !wish.remarks_on_bundled && bundled::find(wish.workload).is_some();
    let mut compiled = source::compile(wish.workload, wish.include, is_quiet)?;
    let warnings = compiled
        .warnings
        .iter()
        .map(|warning| format!("the workload, {}: {}", warning.location(&compiled.sources), warning.message))
        .collect();
    let cannot_run = |error: Error| Failure::usage(error.context(format!("{} cannot run", wish.workload)));
    multiply_rate(&mut compiled.workload, wish.rate).map_err(|why| cannot_run(anyhow!(why)))?;
    wish.overrides.apply(&mut compiled.workload).map_err(|error| cannot_run(error.into()))?;
    let dropped = drop_requirements(&mut compiled.workload);
    let (workload, scale) = match wish.rehearse {
        None => (compiled.workload, None),
        Some(rehearsal) => {
            let (workload, scale) =
                rehearsal.apply(&compiled.workload).map_err(|error| cannot_run(error.into()))?;
            (workload, Some(scale))
        }
    };
    let options = UniverseOptions { private_as_public: wish.private_as_public };
    let timeline = Timeline::with(&workload, options, &[]).map_err(|error| cannot_run(error.into()))?;
    let mut explained = explain(&workload, &timeline);
    let changes = overrides::in_words(&wish.overrides);
    explained.extend(changes.iter().map(|changes| format!("note: {changes}")));
    let timeline = Arc::new(timeline);
    let workload = Arc::new(workload);
    let stream_digest_requests =
        wish.digest_requests.unwrap_or_else(|| digest_requests(workload.robot_count()));
    let stream_digest = match wish.digest_later {
        true => String::new(),
        false => digest(&workload, &timeline, wish, stream_digest_requests).map_err(cannot_run)?,
    };
    let notes = [
        changes,
        endless(&timeline),
        named_proxies(&workload).filter(|_| !is_quiet),
        unused_depth(&workload),
    ];
    let notes = notes.into_iter().flatten().chain(dropped).collect();
    let sources = compiled.sources.into_iter().map(|source| (source.name, source.text)).collect();
    let overrides = wish.overrides;
    Ok(PreparedWorkload {
        workload,
        scale,
        overrides,
        timeline,
        explained,
        stream_digest,
        stream_digest_requests,
        sources,
        warnings,
        notes,
    })
}

impl PreparedWorkload {
    /// The same workload with another seed.
    pub fn reseeded(&self, wish: &WorkloadOptions) -> Result<Self, Failure> {
        let stream_digest = digest(&self.workload, &self.timeline, wish, self.stream_digest_requests)
            .map_err(Failure::usage)?;
        Ok(Self { stream_digest, ..self.clone() })
    }
}

/// Robots that speak HTTP/2 have no use for a setting of their kind.
fn unused_depth(workload: &Workload) -> Option<String> {
    let speaks_http2 =
        |(version, weight): &(HttpVersion, f64)| *version == HttpVersion::Http2 && *weight > 0.0;
    let mut groups = workload.robots.iter();
    let group = groups.find(|group| {
        group.pipeline_depth.is_some() && group.http_versions.items().iter().any(speaks_http2)
    })?;
    Some(format!("pipeline_depth of {} does not apply to HTTP/2: streams are not pipelined", group.kind))
}

fn digest(
    workload: &Arc<Workload>,
    timeline: &Arc<Timeline>,
    wish: &WorkloadOptions,
    requests: u64,
) -> Result<String, Error> {
    let options = UniverseOptions { private_as_public: wish.private_as_public };
    // The world's tag is in paths only, and paths are in no digest.
    let universe = Universe::new(workload.clone(), wish.seed, 0, options)?;
    Ok(stream_digest(&Arc::new(universe), timeline, requests, threads(wish.threads)))
}

/// Requirements of the workload about phases that an override replaced cannot be judged; says which are left out.
fn drop_requirements(workload: &mut Workload) -> Vec<String> {
    let names: Vec<&str> = workload.schedule.phases.iter().map(|phase| phase.name.as_str()).collect();
    let applies = |text: &str| {
        // What cannot be read was refused when the workload was compiled.
        text.parse::<Requirement>().is_ok_and(|one| one.check_phase(names.iter().copied()).is_ok())
    };
    let (kept, dropped): (Vec<String>, Vec<String>) =
        workload.requirements.iter().cloned().partition(|text| applies(text));
    workload.requirements = kept;
    let note = |text| {
        format!("the workload requires `{text}`, of a phase that --duration replaces; it is not judged")
    };
    dropped.into_iter().map(note).collect()
}

/// A schedule without an end is what the workload says, and may be more than the user expects.
fn endless(timeline: &Timeline) -> Option<String> {
    timeline.is_endless().then(|| {
        "the workload schedules no phases, so it runs at constant full load (phase dflt) until Ctrl-C; --duration DUR \
         ends it by itself"
            .into()
    })
}

/// Proxies that the workload names are not measured for that: the command line says what is.
fn named_proxies(workload: &Workload) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in workload.robots.iter().flat_map(|group| &group.proxies) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let (proxy, it) = if names.len() == 1 { ("the proxy", "it") } else { ("the proxies", "they") };
    let is = if names.len() == 1 { "is" } else { "are" };
    let list = match names.as_slice() {
        [] => return None,
        [first, second, third, .., last] => format!("{first}, {second}, {third} … {last}"),
        few => few.join(", "),
    };
    Some(format!(
        "the workload names {proxy} {list}; {it} {is} not used: what is measured is chosen with --proxy"
    ))
}

/// As many threads as requested, else one for each processor.
fn threads(requested: Option<u32>) -> u32 {
    requested.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get) as u32)
}
