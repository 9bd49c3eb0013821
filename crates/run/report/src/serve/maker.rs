//! The thread that makes the report of a run that goes on. A thread of its own, which runs when a processor has nothing else
//! to do.
//!
//! It reads the run directory, like `assay report` does, so what it makes is the very same report. For a long run that is
//! work: [`crate::serve::desk`] decides how often it is done.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::ReportError;
use crate::html::{self, Live};
use crate::summary::Summary;
use assay_http::coding::GzipWriter;
use assay_record::dir::RunDir;
use tokio::sync::oneshot;

use crate::serve::error::ServeError;
use crate::serve::idle;

/// What can be made of a run directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The report as a page.
    Page,
    /// The summary as JSON.
    Summary,
}

/// Something that was made, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub content_type: &'static str,
    pub body: Vec<u8>,
    pub gzipped: Vec<u8>,
    /// Differs when the body does, quotes included.
    pub etag: String,
}

impl Document {
    pub fn new(content_type: &'static str, body: Vec<u8>) -> Self {
        let mut gzipped = Vec::new();
        GzipWriter::new().encode([body.as_slice()], &mut gzipped);
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        Self { content_type, body, gzipped, etag: format!("\"{:016x}\"", hasher.finish()) }
    }
}

/// What came of an order: a document, or why there is none; and the processor time that it took.
pub(crate) type Made = (Result<Document, String>, Duration);

/// Something to be made.
struct Order {
    kind: Kind,
    run_dir: PathBuf,
    ended: bool,
    done: oneshot::Sender<Made>,
}

/// The thread that makes reports. It ends when this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    orders: mpsc::Sender<Order>,
    cpu_us: Arc<AtomicU64>,
}

impl Maker {
    pub fn start() -> Result<Rc<Self>, ServeError> {
        let (orders, received) = mpsc::channel::<Order>();
        let cpu_us = Arc::new(AtomicU64::new(0));
        let counted = cpu_us.clone();
        let work = move || {
            idle::give_way();
            for order in received {
                let before = idle::cpu_time();
                let made = make(&order).map_err(|error| error.to_string());
                let after = idle::cpu_time();
                counted.store(u64::try_from(after.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
                // Who ordered it may have gone; then nobody needs it.
                let _ = order.done.send((made, after.saturating_sub(before)));
            }
        };
        std::thread::Builder::new().name("assay-report".into()).spawn(work).map_err(ServeError::Thread)?;
        Ok(Rc::new(Self { orders, cpu_us }))
    }

    /// Makes a document; none: the thread is gone.
    pub async fn make(&self, kind: Kind, run_dir: PathBuf, ended: bool) -> Option<Made> {
        let (done, made) = oneshot::channel();
        self.orders.send(Order { kind, run_dir, ended, done }).ok()?;
        made.await.ok()
    }

    /// Processor time that it has used.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_micros(self.cpu_us.load(Ordering::Relaxed))
    }
}

fn make(order: &Order) -> Result<Document, ReportError> {
    let dir = RunDir::open(&order.run_dir)?;
    Ok(match order.kind {
        Kind::Page => {
            let page = html::page(&dir, Some(&Live { url: "./".into(), ended: order.ended }))?;
            Document::new("text/html; charset=utf-8", page.into_bytes())
        }
        Kind::Summary => Document::new("application/json", Summary::from_run(&dir)?.to_json()?.into_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_differ_have_tags_that_differ() {
        let (one, other) =
            (Document::new("text/plain", b"a".repeat(9999)), Document::new("text/plain", b"b".to_vec()));
        assert_ne!(one.etag, other.etag);
        assert_eq!(one.etag, Document::new("text/html", b"a".repeat(9999)).etag);
        assert!(one.gzipped.len() < 200);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_directory_without_a_run_is_no_reason_to_stop() {
        let maker = Maker::start().unwrap();
        let nowhere = tempfile::tempdir().unwrap();
        for kind in [Kind::Page, Kind::Summary] {
            let (made, _) = maker.make(kind, nowhere.path().to_owned(), false).await.unwrap();
            assert!(made.unwrap_err().contains("run.json"));
        }
    }
}
