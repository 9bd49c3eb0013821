//! Orders of a coordinator to its agents, and the files that they give back.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::LabError;
use crate::error::{Cause, FileError};
use crate::machines::fleet::message::{self, Order, PROTOCOL, Response, What};
use crate::machines::fleet::name::Name;
use crate::machines::fleet::subject;
use async_nats::client::RequestErrorKind;
use async_nats::{Request, jetstream};
use bytes::Bytes;

use super::run::CoordinatorState;
use crate::machines::object_store::{self, CopyError};

/// Time that an agent may take to carry out an order. Ending a real proxy and storing its logs takes longest.
const ORDER_TIMEOUT: Duration = Duration::from_secs(60);
/// After how long without a response an order is sent again, at first.
const ORDER_AGAIN: Duration = Duration::from_secs(1);
/// Time for which an agent that is about to reconnect may be absent.
const ABSENT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for which a machine is told repeatedly to end its part and to store its files.
const FINISH_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Files of a machine that cannot be brought. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub(super) enum BringError {
    #[error("{0}")]
    Order(LabError),
    /// The object store of the run does not respond, or lacks the object.
    #[error("{0}")]
    Store(Cause),
    #[error("{0}")]
    Directory(io::Error),
    #[error("{0}")]
    File(FileError),
    #[error("{file}: {cause}")]
    Copy { file: String, cause: CopyError },
}

impl CoordinatorState {
    /// Gives an order, and waits until it was carried out. Where a server starts anew, an order or its response can be lost, and agents
    /// may not be there yet: it is sent again, and carried out once.
    pub(super) async fn order(&self, name: &Name, what: What) -> Result<Response, LabError> {
        let order = Order {
            protocol: PROTOCOL,
            version: self.version.clone(),
            run: self.run.clone(),
            by: self.by.clone(),
            number: self.next_order.fetch_add(1, Ordering::Relaxed),
            what,
        };
        let text =
            serde_json::to_vec(&order).map_err(|e| LabError::run(format!("cannot write an order: {e}")))?;
        let text = Bytes::from(text);
        let (begun, mut wait) = (Instant::now(), ORDER_AGAIN);
        let response = loop {
            // It may have been lost meanwhile.
            if let Some(machine) = self.clocks.machine(name).filter(|machine| machine.lost.is_some()) {
                return Err(LabError::assay(self.loss_message(&machine)));
            }
            let left = ORDER_TIMEOUT.saturating_sub(begun.elapsed());
            let request = Request::new().payload(text.clone()).timeout(Some(wait.min(left)));
            let failed = match self.client.send_request(subject::orders(name), request).await {
                Ok(response) => break response,
                Err(failed) => failed,
            };
            wait *= 2;
            match failed.kind() {
                RequestErrorKind::NoResponders if begun.elapsed() < ABSENT_TIMEOUT => {
                    tokio::time::sleep(PAUSE).await;
                }
                RequestErrorKind::NoResponders => {
                    return Err(LabError::assay(format!("the agent {name} is gone")));
                }
                RequestErrorKind::TimedOut if begun.elapsed() < ORDER_TIMEOUT => {}
                RequestErrorKind::TimedOut => {
                    return Err(LabError::assay(format!(
                        "the agent {name} did not respond to an order within {ORDER_TIMEOUT:?}"
                    )));
                }
                _ => {
                    return Err(LabError::assay(format!(
                        "the agent {name} could not be given an order: {failed}"
                    )));
                }
            }
        };
        match message::read_plain(&response.payload)
            .map_err(|e| LabError::assay(format!("the agent {name}: {e}")))?
        {
            done @ (Response::Done | Response::Version(_) | Response::Files(_)) => Ok(done),
            Response::Refused(why) => Err(LabError::run(format!("the agent {name} refused: {why}"))),
        }
    }

    /// Ends a machine's part and brings its files; again for a while where that fails, as the server may be starting anew.
    pub(super) async fn bring(&self, name: &Name, run_dir: &Path) -> Result<(), BringError> {
        let begun = Instant::now();
        loop {
            let error = match self.order(name, What::Finish).await {
                Ok(response) => match self.fetch(name, &files_of(response), run_dir).await {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                },
                Err(error) => BringError::Order(error),
            };
            if begun.elapsed() >= FINISH_TIMEOUT {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn fetch(&self, name: &Name, files: &[String], run_dir: &Path) -> Result<(), BringError> {
        let store = jetstream::new(self.client.clone()).get_object_store(subject::bucket(&self.run)).await;
        let store = store.map_err(|e| BringError::Store(Box::new(e)))?;
        for file in files {
            let Some(to) = place_of(run_dir, name, file) else { continue };
            let mut object =
                store.get(subject::file(name, file)).await.map_err(|e| BringError::Store(Box::new(e)))?;
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent).map_err(BringError::Directory)?;
            }
            let mut whole = File::create(&to).map_err(|e| BringError::File(FileError::write(&to, e)))?;
            if let Err(cause) =
                object_store::copy(&mut object, &mut whole, u64::MAX, object_store::QUIET).await
            {
                // Half a file would look whole.
                let _ = std::fs::remove_file(&to);
                return Err(BringError::Copy { file: file.clone(), cause });
            }
        }
        Ok(())
    }
}

fn files_of(response: Response) -> Vec<String> {
    if let Response::Files(files) = response { files } else { Vec::new() }
}

/// Path of a file of a machine: what is one of its kind has its usual place. None: its name leads out of the directory.
fn place_of(run_dir: &Path, machine: &Name, file: &str) -> Option<PathBuf> {
    let path = Path::new(file);
    let is_inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !is_inside {
        return None;
    }
    let is_one_of_its_kind = path.starts_with("proxy") || file == "xacts.parquet";
    Some(match is_one_of_its_kind {
        true => run_dir.join(path),
        false => run_dir.join("machines").join(machine.as_str()).join(path),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_machines_stay_in_the_run_directory() {
        let (run_dir, name): (_, Name) = (Path::new("/runs/r"), "m1".parse().unwrap());
        let place = |file| place_of(run_dir, &name, file);
        assert_eq!(place("proxy/varnish.log"), Some("/runs/r/proxy/varnish.log".into()));
        assert_eq!(place("roles/robots.log"), Some("/runs/r/machines/m1/roles/robots.log".into()));
        for wrong in ["../x", "/etc/passwd", "roles/../../x"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
