//! A thread that does what agents and their connection need, whatever else the program waits for.

use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::machines::error::FleetError;

/// The thread. Dropped, it ends, and its work with it.
#[derive(Debug)]
pub struct Background {
    /// Handle by which it is given work.
    pub handle: Handle,
    _end: oneshot::Sender<()>,
}

impl Background {
    pub fn start() -> Result<Self, FleetError> {
        let cannot = |e| FleetError::plan(format!("cannot start a thread for the connection to agents: {e}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let work = move || {
            // An error is the end, too: nobody is left who would wait for it.
            let _ = runtime.block_on(ended);
        };
        std::thread::Builder::new().name("fleet".into()).spawn(work).map_err(cannot)?;
        Ok(Self { handle, _end: end })
    }

    /// Does something on it, and waits. Not to be called on a runtime.
    pub fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, FleetError> {
        let (done, result) = mpsc::channel();
        self.handle.spawn(async move {
            // Whoever waits may have been interrupted.
            let _ = done.send(work.await);
        });
        result.recv().map_err(|_| FleetError::failed("the connection to agents has ended"))
    }
}
