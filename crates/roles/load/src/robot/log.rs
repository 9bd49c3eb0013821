//! Writer of the xact log: a thread of its own, behind a bounded queue; workers never wait for it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use assay_measurement::xact::XactRow;
use assay_record::dir::RunDirError;
use assay_record::xact_log::XactLog;
use thiserror::Error;

/// Rows in one parcel; a worker sends what it has at the end of every interval, or when a parcel is full.
const ROWS_PER_PARCEL: usize = 8_192;
/// Parcels that may wait: at 20,000 xacts a second, more than ten seconds of them.
const PARCELS: usize = 32;

/// Failure of the xact log.
#[derive(Debug, Error)]
pub enum XactLogError {
    #[error("cannot create the xact log {path}: {cause}")]
    Create { path: PathBuf, cause: RunDirError },
    #[error("cannot write the xact log {path}: {cause}")]
    Write { path: PathBuf, cause: RunDirError },
    /// No thread for it.
    #[error("cannot start the thread that writes the xact log: {0}")]
    Thread(std::io::Error),
    #[error("the thread that writes the xact log panicked: this is a bug of Assay")]
    Panicked,
}

/// The thread that writes the log.
#[derive(Debug)]
pub struct XactLogWriter {
    thread: JoinHandle<Result<(), XactLogError>>,
}

/// A worker's way to it.
#[derive(Debug)]
pub struct XactLogQueue {
    parcel: Vec<XactRow>,
    parcels: SyncSender<Vec<XactRow>>,
}

impl XactLogWriter {
    /// Creates the log; returns a queue for each worker.
    pub fn start(path: &Path, workers: usize) -> Result<(Self, Vec<XactLogQueue>), XactLogError> {
        let log =
            XactLog::create(path).map_err(|cause| XactLogError::Create { path: path.to_owned(), cause })?;
        let (sender, receiver) = sync_channel(PARCELS);
        let path = path.to_owned();
        let thread = std::thread::Builder::new()
            .name("xact-log".to_owned())
            .spawn(move || write(log, &receiver).map_err(|cause| XactLogError::Write { path, cause }))
            .map_err(XactLogError::Thread)?;
        let queue = || XactLogQueue { parcel: Vec::new(), parcels: sender.clone() };
        let queues = (0..workers).map(|_| queue()).collect();
        Ok((Self { thread }, queues))
    }

    /// Waits until all rows are written. All queues must have been dropped.
    pub fn finish(self) -> Result<(), XactLogError> {
        self.thread.join().map_err(|_| XactLogError::Panicked)?
    }
}

fn write(mut log: XactLog, parcels: &Receiver<Vec<XactRow>>) -> Result<(), RunDirError> {
    for parcel in parcels {
        for row in &parcel {
            log.push(row)?;
        }
    }
    log.finish()
}

impl XactLogQueue {
    /// Adds a row; returns the number of rows that had to be dropped.
    pub fn push(&mut self, row: XactRow) -> u64 {
        self.parcel.push(row);
        if self.parcel.len() < ROWS_PER_PARCEL { 0 } else { self.flush() }
    }

    /// Sends the parcel; returns the number of rows that had to be dropped.
    pub fn flush(&mut self) -> u64 {
        if self.parcel.is_empty() {
            return 0;
        }
        match self.parcels.try_send(std::mem::take(&mut self.parcel)) {
            Ok(()) => 0,
            Err(TrySendError::Full(parcel) | TrySendError::Disconnected(parcel)) => parcel.len() as u64,
        }
    }
}
