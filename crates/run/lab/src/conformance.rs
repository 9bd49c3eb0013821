//! Cases of conformance beside the load of a run: an origin of their own behind the target, and a client that tries one now and then.
//!
//! Robots and origins know nothing of them, so that digests, ratios and times are those of the workload alone. They run on a thread of this
//! process; what they have shown is `conform.json` in the run directory.

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_conform::case::Case;
use assay_conform::document::{Document, TargetInfo};
use assay_conform::origin::Origin;
use assay_conform::run::{Http2, Target};
use assay_conform::under_load::{is_applicable, run_under_load};
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use crate::error::{FileError, LabError};
use crate::http_versions::robots_speak_http2;
use crate::mode::Mode;
use crate::plan::{RunPart, RunPlan, TargetChoice};
use crate::run::Session;

/// Between the start of the schedule and the first case: robots have begun by then.
const LEAD: Duration = Duration::from_secs(1);
/// Time that the thread may take to give its results.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Name of the results in a run directory.
pub const FILE: &str = "conform.json";

/// Results of cases that are missing. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultsError {
    #[error("the cases of --with-conform gave no results")]
    Missing,
    #[error("the results of cases cannot be written: {0}")]
    Encode(serde_json::Error),
    #[error("{0}")]
    Write(FileError),
}

/// Cases that are tried. Dropped, they end, and there are no results.
pub(crate) struct ConformanceRun {
    /// Address at which their origin listens.
    pub(crate) origin: SocketAddr,
    target: Option<oneshot::Sender<(Target, TargetInfo, Duration)>>,
    stop: Option<oneshot::Sender<()>>,
    results: Option<oneshot::Receiver<Document>>,
}

impl ConformanceRun {
    pub(crate) async fn open(
        plan: &ConformPlan,
        version: &str,
        listen: SocketAddr,
    ) -> Result<Self, LabError> {
        let (opened_sender, opened) = oneshot::channel();
        let (target_sender, target) = oneshot::channel();
        let (stop_sender, stop) = oneshot::channel();
        let (results_sender, results) = oneshot::channel();
        let (cases, version) = (Arc::clone(&plan.cases), version.to_owned());
        let cannot =
            |error: std::io::Error| LabError::run(format!("cannot try cases beside the load: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let tried = move || {
            let all = async {
                let origin = match Origin::start(listen) {
                    Ok(origin) => Rc::new(origin),
                    Err(error) => return drop(opened_sender.send(Err(error))),
                };
                // Nobody waits any more if the run has failed meanwhile; then there is no target either.
                let _ = opened_sender.send(Ok(origin.address));
                let Ok((target, info, lead)) = target.await else { return };
                sleep(lead).await;
                let made_unix_s =
                    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                let cases: Vec<Rc<Case>> = cases.iter().cloned().map(Rc::new).collect();
                let document = Document::new(&version, made_unix_s);
                let stop = async { drop(stop.await) };
                let document = run_under_load(&cases, &target, info, &origin, document, stop).await;
                let _ = results_sender.send(document);
            };
            runtime.block_on(LocalSet::new().run_until(all));
        };
        std::thread::Builder::new().name("conform".into()).spawn(tried).map_err(cannot)?;
        let origin = match opened.await {
            Ok(Ok(origin)) => origin,
            Ok(Err(error)) => {
                return Err(LabError::run(format!(
                    "cannot listen on {listen} for the origin of cases: {error}"
                )));
            }
            Err(_) => return Err(LabError::run("the thread that tries cases has ended")),
        };
        Ok(Self { origin, target: Some(target_sender), stop: Some(stop_sender), results: Some(results) })
    }

    /// The schedule starts in `until_start`: cases begin soon after that.
    pub(crate) fn begin(
        &mut self,
        address: SocketAddr,
        mode: Mode,
        info: TargetInfo,
        stores: bool,
        until_start: Duration,
    ) {
        let is_forward = mode == Mode::Forward;
        let target = Target {
            address,
            host: self.origin.to_string(),
            stores,
            is_forward,
            several: false,
            tls: None,
            http2: Http2::No,
        };
        if let Some(sender) = self.target.take() {
            // The thread may have ended; that is noticed when its results are missing.
            let _ = sender.send((target, info, until_start + LEAD));
        }
    }

    /// The load is over: ends what is under way, and writes what was found out. What is wrong, in words.
    pub(crate) async fn end(mut self, run_dir: &Path) -> Result<(), ResultsError> {
        drop(self.stop.take());
        let Some(results) = self.results.take() else { return Ok(()) };
        let document = match timeout(TIMEOUT, results).await {
            Ok(Ok(document)) => document,
            Ok(Err(_)) | Err(_) => return Err(ResultsError::Missing),
        };
        let path = run_dir.join(FILE);
        let text = document.to_json().map_err(ResultsError::Encode)?;
        std::fs::write(&path, text).map_err(|e| ResultsError::Write(FileError::write(&path, e)))
    }
}

/// Conformance cases to try beside the load.
#[derive(Debug, Clone)]
pub struct ConformPlan {
    /// As chosen: topics, or names of cases.
    pub chosen: Vec<String>,
    /// The cases, with those that they depend on.
    pub cases: Arc<[Case]>,
}

impl ConformPlan {
    /// Of the cases that were chosen, those that can be tried beside other requests; none, if none can.
    pub fn new(chosen: &[String], cases: &[Rc<Case>]) -> Option<Self> {
        let fit: Vec<Case> =
            cases.iter().filter(|case| is_applicable(case)).map(|case| (**case).clone()).collect();
        let is_chosen = |case: &Case| chosen.iter().any(|name| case.is_called(name));
        fit.iter().any(is_chosen).then(|| Self { chosen: chosen.to_vec(), cases: fit.into() })
    }
}

/// Refuses a run whose target cases cannot be tried on.
pub(crate) fn check(plan: &RunPlan) -> Result<(), LabError> {
    if plan.conform.is_none() {
        return Ok(());
    }
    let why = match &plan.target {
        TargetChoice::Direct => "there is no target: robots speak to the origins",
        TargetChoice::Running { .. } => {
            "the target runs already, and does not know the origin of the cases; try it without load, with `assay conform HOST:PORT`"
        }
        _ if plan.remote.is_some() => "the target is on another machine; leave --fleet out",
        _ if plan.part != RunPart::Whole => "this is only a part of a run",
        _ if plan.needs_network() => {
            "robots and target live in networks of their own; leave links and --congestion out"
        }
        _ if plan.tls.is_some() => "cases are tried in clear; leave TLS out",
        _ if robots_speak_http2(&plan.workload) => "cases are tried over HTTP/1.1; let robots speak it too",
        _ => return Ok(()),
    };
    Err(LabError::plan(format!("--with-conform: {why}")))
}

impl Session {
    /// Conformance cases begin with the load.
    pub(crate) fn begin_conformance(&mut self) {
        let until_start = Duration::from_millis(self.until_start_ms());
        let target = self.prepared.target.zip(self.plan.target.mode());
        if let (Some(cases), Some((address, mode))) = (&mut self.conformance, target) {
            let version = self.info.target.version.trim();
            let info = TargetInfo {
                label: self.info.target.name.clone(),
                software: format!("{} {version}", self.info.target.name).trim_end().to_owned(),
                ..TargetInfo::default()
            };
            cases.begin(address, mode, info, self.prepared.behaviour.caches, until_start);
        }
    }

    /// Conformance cases end with the load.
    pub(crate) async fn end_conformance(&mut self) {
        let run_dir = self.run_dir();
        if let Some(cases) = self.conformance.take()
            && let Err(error) = cases.end(&run_dir).await
        {
            self.findings.warn(error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_conform::suite::Suite;

    use super::*;
    use crate::mode::Mode;
    use crate::testing;

    fn plan(topics: &[&str]) -> Option<ConformPlan> {
        let topics: Vec<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        ConformPlan::new(&topics, &Suite::bundled().unwrap().chosen(&topics).unwrap())
    }

    #[test]
    fn only_cases_that_can_be_tried_beside_load_are_taken_and_none_is_no_plan() {
        let stale = plan(&["stale"]).unwrap();
        assert!(stale.cases.iter().any(|case| case.name == "stores"), "what they depend on is among them");
        assert!(plan(&["framing"]).is_none());
    }

    #[test]
    fn a_target_that_cases_do_not_reach_is_refused_before_anything_starts() {
        let refused = |target: TargetChoice| {
            check(&RunPlan { target, conform: plan(&["stale"]), ..testing::plan() }).unwrap_err().to_string()
        };
        assert!(refused(TargetChoice::Direct).contains("there is no target"));
        let address = "127.0.0.1:1".parse().unwrap();
        assert!(refused(TargetChoice::Running { address, mode: Mode::Reverse }).contains("runs already"));
        let builtin = TargetChoice::Builtin(Mode::Reverse);
        assert!(check(&RunPlan { target: builtin, conform: plan(&["stale"]), ..testing::plan() }).is_ok());
    }
}
