//! Meters of the machine of a run: the processes that they follow, and the directory of the target's files.

use std::path::Path;

use assay_host::metrics::{BlockTrace, Meter};

use crate::error::LabError;
use crate::run::Session;
use crate::running_roles::RunningRoles;
use crate::watched_processes;

impl Session {
    pub(crate) fn keep_host(&mut self, meter: &mut Meter) -> Result<(), LabError> {
        meter.measure(self.now_ms(), |sample| {
            sample.into_measured().try_for_each(|measured| self.record(measured))
        })
    }

    /// Whether the target's waits for processors are watched.
    pub(crate) fn watches_target(&self) -> bool {
        let is_here = self.plan.target.is_started() || !self.prepared.watched.is_empty();
        is_here && self.plan.remote.is_none()
    }

    /// First processes of each role, those of a target that is watched among them.
    pub(crate) fn accounts(&self, running: &RunningRoles) -> Vec<(String, Vec<u32>)> {
        let mut accounts = running.accounts();
        if !self.prepared.watched.is_empty() {
            accounts.push(("proxy".into(), self.prepared.watched.clone()));
        }
        accounts
    }

    /// Directory of the target's files, as far as that is known.
    pub(crate) fn store<'a>(&'a self, running: &'a RunningRoles) -> Option<&'a Path> {
        let watched = self.plan.watched.as_ref().and_then(|watched| watched.store.as_deref());
        running.store().or(watched)
    }

    /// Says, once, that a process ended which was watched: what the target uses is not known any more.
    pub(crate) fn check_watched(&mut self) {
        let ended = self.prepared.watched.iter().position(|pid| !watched_processes::is_alive(*pid));
        if let Some(place) = ended {
            let pid = self.prepared.watched.remove(place);
            let at_s = self.now_ms() / 1000;
            self.findings.warn(format!(
                "process {pid} of the target, which was watched, ended after {at_s} s: what the target used after that is \
                 not, or not all, known"
            ));
        }
    }

    /// Begins to trace the disk of the proxy's store, if that is wanted. Where it cannot be, the run goes on without.
    pub(crate) fn trace_disk(&mut self, running: &RunningRoles) -> Option<BlockTrace> {
        if !self.plan.trace_disk {
            return None;
        }
        let started = match self.store(running) {
            Some(store) => BlockTrace::start(store).map_err(|error| error.to_string()),
            None => Err("where the files of a proxy are that already runs is not known; say so with --watch-store DIR".to_owned()),
        };
        started
            .map_err(|why| self.findings.warn(format!("the disk was not traced (--trace-disk): {why}")))
            .ok()
    }
}
