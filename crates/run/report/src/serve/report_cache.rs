//! Rendered reports for requests: the last one, or a new one; never rendered so often that it would take more than one part
//! in fifty of the time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::ReportError;
use crate::serve::renderer::{Rendered, RenderedReport, Renderer, ReportKind};

/// After rendering, the renderer rests until the time since it began is this many times what it took.
const REST_FACTOR: u32 = 50;
/// Shortest time between two renderings: a run reports once a second.
const REST_MIN: Duration = Duration::from_secs(1);
/// Longest wait of a request for the first document; after that, the client is told to retry.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Reason why there is no document.
#[derive(Debug)]
pub(crate) enum Unavailable {
    /// There is no run directory yet.
    TooEarly,
    /// Rendering takes longer than a client should wait.
    Slow,
    /// Rendering failed, with this error.
    Failed(ReportError),
}

/// The last rendered reports of a run.
pub(crate) struct ReportCache {
    renderer: Rc<Renderer>,
    run_dir: RefCell<Option<PathBuf>>,
    /// Incremented when the run ends and when its report is written: documents of another edition are stale for good.
    edition: Cell<u32>,
    ended: Cell<bool>,
    documents: RefCell<BTreeMap<&'static str, (u32, Rc<RenderedReport>)>>,
    /// Earliest time of the next rendering. Locked while something is rendered.
    rested: Mutex<Instant>,
    /// The same, readable while something is rendered.
    next: Cell<Instant>,
}

impl ReportCache {
    pub fn new(renderer: Rc<Renderer>) -> Self {
        let now = Instant::now();
        Self {
            renderer,
            run_dir: RefCell::default(),
            edition: Cell::new(0),
            ended: Cell::new(false),
            documents: RefCell::default(),
            rested: Mutex::new(now),
            next: Cell::new(now),
        }
    }

    /// Sets the directory of the run.
    pub fn set_run_dir(&self, run_dir: PathBuf) {
        *self.run_dir.borrow_mut() = Some(run_dir);
    }

    /// Marks the run as ended, or its directory as changed since: reports rendered before are stale.
    pub fn run_ended(&self) {
        self.ended.set(true);
        self.edition.set(self.edition.get() + 1);
    }

    /// Processor time that rendering took.
    pub fn cpu_time(&self) -> Duration {
        self.renderer.cpu_time()
    }

    /// The report of this kind, fresh enough.
    pub async fn get(&self, kind: ReportKind) -> Result<Rc<RenderedReport>, Unavailable> {
        let run_dir = self.run_dir.borrow().clone().ok_or(Unavailable::TooEarly)?;
        // The directory is made a moment before there is anything in it.
        if !self.ended.get() && !run_dir.join("run.json").is_file() {
            return Err(Unavailable::TooEarly);
        }
        match tokio::time::timeout(WAIT_MAX, self.render_if_stale(kind, run_dir)).await {
            Ok(result) => result,
            // Better one that is older than none.
            Err(_) => self.last(kind).map(|(_, document)| document).ok_or(Unavailable::Slow),
        }
    }

    async fn render_if_stale(
        &self,
        kind: ReportKind,
        run_dir: PathBuf,
    ) -> Result<Rc<RenderedReport>, Unavailable> {
        if let Some(document) = self.fresh_enough(kind) {
            return Ok(document);
        }
        // A request that waits here finds what the one before made.
        let mut rested = self.rested.lock().await;
        if let Some(document) = self.fresh_enough(kind) {
            return Ok(document);
        }
        // Once the run has ended there is nothing to be disturbed.
        if !self.ended.get() {
            tokio::time::sleep_until(*rested).await;
        }
        let (edition, ended, began) = (self.edition.get(), self.ended.get(), Instant::now());
        let Rendered { result, cpu_time } =
            self.renderer.render(kind, run_dir, ended).await.ok_or(Unavailable::Slow)?;
        *rested = began + (cpu_time * REST_FACTOR).max(REST_MIN);
        self.next.set(*rested);
        match result {
            Ok(document) => {
                let document = Rc::new(document);
                self.documents.borrow_mut().insert(name(kind), (edition, document.clone()));
                Ok(document)
            }
            // While the run goes on, a file may be read while it is being written: the last one is good enough.
            Err(error) => self
                .last(kind)
                .map(|(_, document)| document)
                .filter(|_| !ended)
                .ok_or(Unavailable::Failed(error)),
        }
    }

    /// Last document, if it is final or nothing may be rendered yet.
    fn fresh_enough(&self, kind: ReportKind) -> Option<Rc<RenderedReport>> {
        let (edition, document) = self.last(kind)?;
        let current = edition == self.edition.get();
        let is_final = current && self.ended.get();
        (is_final || (current && Instant::now() < self.next.get())).then_some(document)
    }

    fn last(&self, kind: ReportKind) -> Option<(u32, Rc<RenderedReport>)> {
        self.documents.borrow().get(name(kind)).cloned()
    }
}

fn name(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Page => "page",
        ReportKind::Summary => "summary",
    }
}

#[cfg(test)]
mod tests {
    use assay_record::run::RunInfo;

    use super::*;

    fn cache_of(seed: u64) -> (ReportCache, tempfile::TempDir) {
        let place = tempfile::tempdir().unwrap();
        let dir = assay_record::dir::RunDir::create(&place.path().join("run")).unwrap();
        dir.write_info(&RunInfo { seed, ..RunInfo::default() }).unwrap();
        std::fs::write(dir.journal_path(), "").unwrap();
        let cache = ReportCache::new(Renderer::start().unwrap());
        cache.set_run_dir(dir.path().to_owned());
        (cache, place)
    }

    /// What a request gets in the end, however long the thread that makes it waits for a processor.
    async fn get(cache: &ReportCache, kind: ReportKind) -> Result<Rc<RenderedReport>, Unavailable> {
        loop {
            let found = cache.get(kind).await;
            if !matches!(found, Err(Unavailable::Slow)) {
                return found;
            }
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn before_there_is_a_run_there_is_no_document() {
        let cache = ReportCache::new(Renderer::start().unwrap());
        assert!(matches!(cache.get(ReportKind::Page).await, Err(Unavailable::TooEarly)));
        let empty = tempfile::tempdir().unwrap();
        cache.set_run_dir(empty.path().to_owned());
        assert!(matches!(cache.get(ReportKind::Page).await, Err(Unavailable::TooEarly)));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn repeated_requests_get_the_same_until_the_run_has_ended() {
        let (cache, place) = cache_of(1);
        let before = Instant::now();
        let first = get(&cache, ReportKind::Summary).await.unwrap();
        assert!(cache.next.get() >= before + REST_MIN);
        // A rest that is not over before the next request, however busy the machine is.
        cache.next.set(before + Duration::from_secs(3600));
        let dir = assay_record::dir::RunDir::open(&place.path().join("run")).unwrap();
        dir.write_info(&RunInfo { seed: 2, ..RunInfo::default() }).unwrap();
        assert_eq!(get(&cache, ReportKind::Summary).await.unwrap(), first);
        cache.run_ended();
        let last = get(&cache, ReportKind::Summary).await.unwrap();
        assert_ne!(last.etag, first.etag);
        assert!(String::from_utf8_lossy(&last.body).contains("\"seed\": 2"));
        assert_eq!(get(&cache, ReportKind::Summary).await.unwrap(), last);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_run_that_cannot_be_read_says_why() {
        let cache = ReportCache::new(Renderer::start().unwrap());
        cache.set_run_dir("/nowhere/at/all".into());
        cache.run_ended();
        assert!(matches!(get(&cache, ReportKind::Page).await, Err(Unavailable::Failed(_))));
    }
}
