//! How is a role's thread started, pinned and joined?

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Why a worker could not do its work.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The thread could not be tied to its processors.
    #[error(
        "cannot pin to processors {cpus:?}: {source}; give processors that exist and that this process may use"
    )]
    Pin {
        /// The processors.
        cpus: Vec<u32>,
        /// What the system said.
        source: io::Error,
    },
    /// No thread, or no runtime in it.
    #[error("cannot start worker {name}: {source}")]
    Start {
        /// The worker.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// It panicked; the message is on standard error.
    #[error("worker {name} panicked: this is a bug of Assay")]
    Panicked {
        /// The worker.
        name: String,
    },
}

/// Ties the calling thread, and those it starts from now on, to `cpus`; empty: leaves it as it is.
pub fn pin(cpus: &[u32]) -> Result<(), WorkerError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let failed = |source| WorkerError::Pin { cpus: cpus.to_vec(), source };
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(failed(io::Error::from(io::ErrorKind::InvalidInput)));
        }
        set.set(cpu as usize);
    }
    sched_setaffinity(None, &set).map_err(|errno| failed(errno.into()))
}

/// Lets this process open as many descriptors as the system allows it to; one that may not stays as it is, and whoever
/// runs out says so.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// The processor of worker `index`, round robin; none when there is nothing to choose from.
pub fn cpu_of(cpus: &[u32], index: usize) -> Option<u32> {
    (!cpus.is_empty()).then(|| cpus[index % cpus.len()])
}

/// A thread with a runtime of its own.
#[derive(Debug)]
pub struct Worker<R> {
    name: String,
    thread: JoinHandle<Result<R, WorkerError>>,
}

impl<R: Send + 'static> Worker<R> {
    /// Starts a thread named `name`, pins it to `cpu`, and runs the future that `body` makes there on a
    /// current-thread runtime, with local tasks (`spawn_local`) allowed.
    pub fn start<B, F>(name: String, cpu: Option<u32>, body: B) -> Result<Self, WorkerError>
    where
        B: FnOnce() -> F + Send + 'static,
        F: Future<Output = R>,
    {
        let inner_name = name.clone();
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || run_here(inner_name, cpu, body))
            .map_err(|source| WorkerError::Start { name: name.clone(), source })?;
        Ok(Self { name, thread })
    }

    /// True once its future has ended, or it has failed.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end.
    pub fn join(self) -> Result<R, WorkerError> {
        self.thread.join().map_err(|_| WorkerError::Panicked { name: self.name })?
    }
}

fn run_here<B, F, R>(name: String, cpu: Option<u32>, body: B) -> Result<R, WorkerError>
where
    B: FnOnce() -> F,
    F: Future<Output = R>,
{
    pin(cpu.as_slice())?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| WorkerError::Start { name, source })?;
    Ok(LocalSet::new().block_on(&runtime, async { body().await }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_gives_back_what_its_future_gives() {
        let worker = Worker::start("w".into(), None, || async {
            tokio::task::spawn_local(async { 7 }).await.expect("does not panic")
        });
        assert_eq!(worker.expect("starts").join().expect("ends"), 7);
    }

    #[test]
    fn a_panic_is_an_error_that_names_the_worker() {
        let worker: Worker<()> =
            Worker::start("w3".into(), None, || async { panic!("on purpose") }).expect("starts");
        let error = worker.join().expect_err("panicked");
        assert!(error.to_string().contains("w3"), "{error}");
    }

    #[test]
    fn a_processor_that_does_not_exist_is_an_error() {
        for cpu in [1023, 1_000_000] {
            let worker: Worker<()> = Worker::start("w".into(), Some(cpu), || async {}).expect("starts");
            assert!(matches!(worker.join(), Err(WorkerError::Pin { .. })), "{cpu}");
        }
        assert!(pin(&[]).is_ok());
    }

    #[test]
    fn workers_take_processors_in_turn() {
        assert_eq!((0..5).map(|i| cpu_of(&[2, 3], i)).collect::<Vec<_>>(), [2, 3, 2, 3, 2].map(Some));
        assert_eq!(cpu_of(&[], 1), None);
    }
}
