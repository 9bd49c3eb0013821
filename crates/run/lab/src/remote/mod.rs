//! Roles on other machines: what a run asks of whoever reaches them.
//!
//! A run starts its roles here, or through an [`RemoteMachines`]. The roles are the same: a spec, commands, events. Nothing else of a
//! run knows where they are.

pub(crate) mod prepare;
pub(crate) mod resume;
mod start;

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use crate::machines::fleet::message::RoleSpec;
use assay_protocol::message::Command;
use assay_record::run::FleetInfo;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::sync::mpsc;

use crate::checks::machines::MachineLoad;
use crate::error::LabError;
use crate::instant::StartInstant;
use crate::roles::{RoleEvent, RoleKind};

pub use resume::plan_of;

/// Something that is asked of other machines, and takes its time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A run that another coordinator began.
#[derive(Debug)]
pub struct ResumedRun {
    /// Time at which its schedule began.
    pub start: StartInstant,
    /// Roles, which say everything again that they have said so far.
    pub roles: Vec<(RoleKind, Box<dyn RemoteRole>)>,
}

/// The machines of a run. One role may be divided among several of them; it is one role to the run.
pub trait RemoteMachines: Debug + Send + Sync {
    /// Takes the machines for this run, and gives them its workload (`workload.json`).
    fn begin<'a>(&'a self, workload: &'a Path) -> BoxFuture<'a, Result<(), LabError>>;

    /// Whether they carry out a run already that another coordinator began.
    fn is_resumed(&self) -> bool;

    /// Takes that run up, in place of beginning one; what its roles say and have said goes to `said`.
    fn resume(
        &self,
        events: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> BoxFuture<'_, Result<ResumedRun, LabError>>;

    /// Starts a role; what it says goes to `said`. Paths, processors and threads of the spec are each machine's own affair.
    fn start<'a>(
        &'a self,
        kind: RoleKind,
        spec: RoleSpec,
        events: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    ) -> BoxFuture<'a, Result<Box<dyn RemoteRole>, LabError>>;

    /// The address at which a role opens its listeners.
    fn address(&self, kind: RoleKind) -> IpAddr;

    /// The machines, with what each is to carry; none of them is given anything by this.
    fn carriers(&self) -> Vec<MachineLoad>;

    /// Least time between the command to start and the start.
    fn lead(&self) -> Duration;

    /// The version of the real proxy of this name on the target's machine, as it reports it.
    fn proxy_version(&self, name: &str) -> Option<String>;

    /// Ends what still runs, and brings files of the machines into the run directory; gives what could not be had.
    fn finish<'a>(&'a self, run_dir: &'a Path) -> BoxFuture<'a, Vec<String>>;

    /// Machines, clocks and the start, as they are known by now; for the record.
    fn info(&self) -> FleetInfo;
}

/// Takes a run directory for one coordinator, for as long as the file is open: the kernel gives it back however that ends. None:
/// another one has it.
pub fn lock_run_dir(run_dir: &Path) -> io::Result<Option<File>> {
    let directory = File::open(run_dir)?;
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(directory)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// A role that runs elsewhere. Dropped, it is ended, soon.
pub trait RemoteRole: Debug + Send {
    /// Tells it something. Instants are those of this machine's clock.
    fn send(&mut self, command: Command) -> BoxFuture<'_, Result<(), LabError>>;

    fn end(&mut self) -> BoxFuture<'_, ()>;

    /// End of the role and its last output, for a message.
    fn exit_summary(&mut self) -> BoxFuture<'_, String>;
}
