//! The requests of a workload, without a socket: the streams of its robots, in the order in which requests come due.
//!
//! Of robots with a rate, every request and its time follow from the workload and the seed. Robots that send their next request
//! when they have a response (best effort) depend on the proxy; here each response takes the same time ([`WorkloadPlan::response`]).
//! Embedded objects are requested when their page is there.
//!
//! Only basic requests are counted, as in the hit ratios of runs. Others act on caches: a HEAD, a conditional request, a reload,
//! one for parts, a POST; one that is redirected requests the older object. Injected faults and refused credentials leave a
//! request without an effect. Bodies count as they are before they are coded.

mod best_effort;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay_cache::behaviour::CacheBehaviour;
use assay_workload::model::{Coding, Pace, Workload};
use assay_workload::{Timeline, Universe};

use crate::size::error::SizeError;
use crate::size::group_by::GroupBy;
use crate::size::http::Http;
use crate::size::input::{ReadOptions, SizeInput};
use crate::size::requests::{RequestCollector, Sizes};

/// Response time for best-effort robots, unless another one is given.
const BEST_EFFORT_RESPONSE: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub struct WorkloadPlan<'a> {
    /// Name, for the document and for messages.
    pub name: &'a str,
    pub universe: Arc<Universe>,
    pub timeline: Arc<Timeline>,
    /// Behaviour where RFC 9111 leaves caches a choice.
    pub behaviour: CacheBehaviour,
    /// Response time; none: 0, and 10 ms for best-effort robots.
    pub response: Option<Duration>,
    /// Phases whose requests are counted; empty: all of them.
    pub phases: &'a [String],
    pub how: ReadOptions,
}

/// The requests of a workload.
///
/// # Errors
/// If the schedule has no end, the phases to be counted do not exist, or the order of requests cannot be known.
pub fn read(plan: &WorkloadPlan<'_>) -> Result<SizeInput, SizeError> {
    let workload = plan.universe.workload();
    let name = || plan.name.to_owned();
    if plan.timeline.is_endless() {
        return Err(SizeError::Endless { name: name() });
    }
    let has_best_effort = workload.robots.iter().any(|group| is_best_effort(&group.pace));
    let has_scheduled = workload.robots.iter().any(|group| !is_best_effort(&group.pace));
    if has_best_effort && has_scheduled && plan.timeline.total().is_none() {
        return Err(SizeError::MixedRobots { name: name() });
    }
    let usual = if has_best_effort { BEST_EFFORT_RESPONSE } else { Duration::ZERO };
    let response = plan.response.unwrap_or(usual);
    let mut collector = RequestCollector::new(Sizes::Within(0), plan.how.sampling);
    match plan.how.by {
        Some(GroupBy::Class) => return Err(SizeError::ClassOfWorkload),
        Some(by) => collector.set_labels(by),
        None => {}
    }
    if plan.how.clients {
        collector.set_clients();
    }
    let response_ms = u64::try_from(response.as_millis()).unwrap_or(u64::MAX);
    collector.set_http(Http { response_ms, ..Http::new(plan.behaviour) });
    let walked = walk::Walk::new(plan, counted(plan, workload)?, response).all(collector)?;
    let requests = walked.finish();
    if requests.read() == 0 {
        return Err(SizeError::NoRequests { names: name(), malformed: 0, notes: Vec::new() });
    }
    Ok(SizeInput {
        files: vec![PathBuf::from(plan.name)],
        form: "PGL workload".into(),
        is_log: false,
        requests,
        malformed: 0,
        malformed_lines: Vec::new(),
        other_operations: Vec::new(),
        suggestions: None,
        notes: notes(plan, has_best_effort, response),
    })
}

fn is_best_effort(pace: &Pace) -> bool {
    matches!(pace, Pace::BestEffort | Pace::Think(_))
}

/// Whether each phase is counted.
fn counted(plan: &WorkloadPlan<'_>, workload: &Workload) -> Result<Vec<bool>, SizeError> {
    let phases = &workload.schedule.phases;
    let is_known = |cacheability: &&String| phases.iter().any(|phase| phase.name == **cacheability);
    if let Some(phase) = plan.phases.iter().find(|cacheability| !is_known(cacheability)) {
        let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        let (name, phase) = (plan.name.to_owned(), phase.clone());
        return Err(SizeError::NoPhase { name, phase, phases: names.join(", ") });
    }
    Ok(phases.iter().map(|phase| plan.phases.is_empty() || plan.phases.contains(&phase.name)).collect())
}

fn notes(plan: &WorkloadPlan<'_>, has_best_effort: bool, response: Duration) -> Vec<String> {
    let workload = plan.universe.workload();
    let mut notes = Vec::new();
    if has_best_effort {
        notes.push(format!(
            "Robots of the workload send a request when they have the response to the one before: each response is taken to need \
             {} ms. With a proxy that is faster or slower, they request other objects at other times.",
            response.as_millis()
        ));
    }
    if workload.schedule.phases.iter().any(|phase| phase.thermostat.is_some()) {
        notes.push("The workload adapts its load to response times; the planned load is simulated.".into());
    }
    let accepts = workload.robots.iter().any(|group| group.accepts.contains(&Coding::Gzip));
    if accepts && workload.contents.iter().any(|content| content.body.codings.contains(&Coding::Gzip)) {
        notes.push(
            "Some bodies are sent coded (gzip), and are smaller then; they are simulated with their plain sizes, each variant as an \
             object of its own."
                .into(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
