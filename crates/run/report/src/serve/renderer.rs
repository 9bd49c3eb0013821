//! The thread that renders the report of a run that goes on. It runs when a processor has nothing else to do.
//!
//! The report is made from the run directory, with the code of `assay report`. For a long run that is work:
//! [`crate::serve::report_cache`] decides how often it is done.

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

/// Document that can be rendered from a run directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportKind {
    /// The report as a page.
    Page,
    /// The summary as JSON.
    Summary,
}

/// A report, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RenderedReport {
    pub content_type: &'static str,
    pub body: Vec<u8>,
    pub gzipped: Vec<u8>,
    /// Differs when the body does, quotes included.
    pub etag: String,
}

impl RenderedReport {
    pub fn new(content_type: &'static str, body: Vec<u8>) -> Self {
        let mut gzipped = Vec::new();
        GzipWriter::new().encode([body.as_slice()], &mut gzipped);
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        Self { content_type, body, gzipped, etag: format!("\"{:016x}\"", hasher.finish()) }
    }
}

/// Result of a job, and the processor time that it took.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub result: Result<RenderedReport, ReportError>,
    pub cpu_time: Duration,
}

/// A report to be rendered.
struct RenderJob {
    kind: ReportKind,
    run_dir: PathBuf,
    ended: bool,
    done: oneshot::Sender<Rendered>,
}

/// Handle of the thread that renders reports. The thread ends when this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Renderer {
    jobs: mpsc::Sender<RenderJob>,
    cpu_us: Arc<AtomicU64>,
}

impl Renderer {
    pub fn start() -> Result<Rc<Self>, ServeError> {
        let (jobs, received) = mpsc::channel::<RenderJob>();
        let cpu_us = Arc::new(AtomicU64::new(0));
        let counted = cpu_us.clone();
        let work = move || {
            idle::run_when_idle();
            for job in received {
                let before = idle::cpu_time();
                let result = render(&job);
                let after = idle::cpu_time();
                counted.store(u64::try_from(after.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
                // The client may have gone; then nobody needs it.
                let _ = job.done.send(Rendered { result, cpu_time: after.saturating_sub(before) });
            }
        };
        std::thread::Builder::new().name("assay-report".into()).spawn(work).map_err(ServeError::Thread)?;
        Ok(Rc::new(Self { jobs, cpu_us }))
    }

    /// Renders a report; none: the thread is gone.
    pub async fn render(&self, kind: ReportKind, run_dir: PathBuf, ended: bool) -> Option<Rendered> {
        let (done, rendered) = oneshot::channel();
        self.jobs.send(RenderJob { kind, run_dir, ended, done }).ok()?;
        rendered.await.ok()
    }

    /// Processor time that it has used.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_micros(self.cpu_us.load(Ordering::Relaxed))
    }
}

fn render(job: &RenderJob) -> Result<RenderedReport, ReportError> {
    let dir = RunDir::open(&job.run_dir)?;
    Ok(match job.kind {
        ReportKind::Page => {
            let page = html::page(&dir, Some(&Live { url: "./".into(), ended: job.ended }))?;
            RenderedReport::new("text/html; charset=utf-8", page.into_bytes())
        }
        ReportKind::Summary => {
            RenderedReport::new("application/json", Summary::from_run(&dir)?.to_json()?.into_bytes())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_differ_have_tags_that_differ() {
        let (one, other) = (
            RenderedReport::new("text/plain", b"a".repeat(9999)),
            RenderedReport::new("text/plain", b"b".to_vec()),
        );
        assert_ne!(one.etag, other.etag);
        assert_eq!(one.etag, RenderedReport::new("text/html", b"a".repeat(9999)).etag);
        assert!(one.gzipped.len() < 200);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_directory_without_a_run_is_no_reason_to_stop() {
        let renderer = Renderer::start().unwrap();
        let nowhere = tempfile::tempdir().unwrap();
        for kind in [ReportKind::Page, ReportKind::Summary] {
            let rendered = renderer.render(kind, nowhere.path().to_owned(), false).await.unwrap();
            assert!(rendered.result.unwrap_err().to_string().contains("run.json"));
        }
    }
}
