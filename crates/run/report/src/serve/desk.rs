//! Documents for requests. Made now, or made a moment ago; never so often that making it would take
//! more than one part in fifty of the time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::serve::maker::{Document, Kind, Maker};

/// After making something, the maker rests until the time since it began is this many times what it took.
const REST_FACTOR: u32 = 50;
/// And never less than this: a run tells something new once a second.
const REST_MIN: Duration = Duration::from_secs(1);
/// How long a request waits for the first document before being told to come again.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why there is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// There is no run directory yet.
    TooEarly,
    /// It takes longer than a client should wait.
    Slow,
    /// It cannot be made; why.
    Failed(String),
}

/// All documents, as they were made last.
pub(crate) struct Desk {
    maker: Rc<Maker>,
    run_dir: RefCell<Option<PathBuf>>,
    /// How often the run has ended or its report was written: what was made under another number is old for good.
    edition: Cell<u32>,
    ended: Cell<bool>,
    made: RefCell<BTreeMap<&'static str, (u32, Rc<Document>)>>,
    /// From then on something may be made again. Held while something is made.
    rested: Mutex<Instant>,
    next: Cell<Instant>,
}

impl Desk {
    pub fn new(maker: Rc<Maker>) -> Self {
        let now = Instant::now();
        Self {
            maker,
            run_dir: RefCell::default(),
            edition: Cell::new(0),
            ended: Cell::new(false),
            made: RefCell::default(),
            rested: Mutex::new(now),
            next: Cell::new(now),
        }
    }

    /// The run directory is there.
    pub fn found(&self, run_dir: PathBuf) {
        *self.run_dir.borrow_mut() = Some(run_dir);
    }

    /// The run has ended, or more was written since: what was made before is old.
    pub fn ended(&self) {
        self.ended.set(true);
        self.edition.set(self.edition.get() + 1);
    }

    /// Processor time that making took.
    pub fn cpu_time(&self) -> Duration {
        self.maker.cpu_time()
    }

    /// The document of this kind, fresh enough.
    pub async fn get(&self, kind: Kind) -> Result<Rc<Document>, Missing> {
        let run_dir = self.run_dir.borrow().clone().ok_or(Missing::TooEarly)?;
        // The directory is made a moment before there is anything in it.
        if !self.ended.get() && !run_dir.join("run.json").is_file() {
            return Err(Missing::TooEarly);
        }
        match tokio::time::timeout(PATIENCE, self.fresh(kind, run_dir)).await {
            Ok(result) => result,
            // Better one that is older than none.
            Err(_) => self.kept(kind).map(|(_, document)| document).ok_or(Missing::Slow),
        }
    }

    async fn fresh(&self, kind: Kind, run_dir: PathBuf) -> Result<Rc<Document>, Missing> {
        if let Some(document) = self.good_enough(kind) {
            return Ok(document);
        }
        // A request that waits here finds what the one before made.
        let mut rested = self.rested.lock().await;
        if let Some(document) = self.good_enough(kind) {
            return Ok(document);
        }
        // Once the run has ended there is nothing to be disturbed.
        if !self.ended.get() {
            tokio::time::sleep_until(*rested).await;
        }
        let (edition, ended, began) = (self.edition.get(), self.ended.get(), Instant::now());
        let (made, took) = self.maker.make(kind, run_dir, ended).await.ok_or(Missing::Slow)?;
        *rested = began + (took * REST_FACTOR).max(REST_MIN);
        self.next.set(*rested);
        match made {
            Ok(document) => {
                let document = Rc::new(document);
                self.made.borrow_mut().insert(name(kind), (edition, document.clone()));
                Ok(document)
            }
            // While the run goes on, a file may be read while it is being written: the last one is good enough.
            Err(why) => {
                self.kept(kind).map(|(_, document)| document).filter(|_| !ended).ok_or(Missing::Failed(why))
            }
        }
    }

    /// What was made last, if it is final or nothing may be made yet.
    fn good_enough(&self, kind: Kind) -> Option<Rc<Document>> {
        let (edition, document) = self.kept(kind)?;
        let current = edition == self.edition.get();
        let final_word = current && self.ended.get();
        (final_word || (current && Instant::now() < self.next.get())).then_some(document)
    }

    fn kept(&self, kind: Kind) -> Option<(u32, Rc<Document>)> {
        self.made.borrow().get(name(kind)).cloned()
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Page => "page",
        Kind::Summary => "summary",
    }
}

#[cfg(test)]
mod tests {
    use assay_record::run::RunInfo;

    use super::*;

    fn desk_of(seed: u64) -> (Desk, tempfile::TempDir) {
        let place = tempfile::tempdir().unwrap();
        let dir = assay_record::dir::RunDir::create(&place.path().join("run")).unwrap();
        dir.write_info(&RunInfo { seed, ..RunInfo::default() }).unwrap();
        std::fs::write(dir.journal_path(), "").unwrap();
        let desk = Desk::new(Maker::start().unwrap());
        desk.found(dir.path().to_owned());
        (desk, place)
    }

    /// What a request gets in the end, however long the thread that makes it waits for a processor.
    async fn get(desk: &Desk, kind: Kind) -> Result<Rc<Document>, Missing> {
        loop {
            let found = desk.get(kind).await;
            if found != Err(Missing::Slow) {
                return found;
            }
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn before_there_is_a_run_there_is_no_document() {
        let desk = Desk::new(Maker::start().unwrap());
        assert_eq!(desk.get(Kind::Page).await, Err(Missing::TooEarly));
        let empty = tempfile::tempdir().unwrap();
        desk.found(empty.path().to_owned());
        assert_eq!(desk.get(Kind::Page).await, Err(Missing::TooEarly));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn repeated_requests_get_the_same_until_the_run_has_ended() {
        let (desk, place) = desk_of(1);
        let before = Instant::now();
        let first = get(&desk, Kind::Summary).await.unwrap();
        assert!(desk.next.get() >= before + REST_MIN);
        // A rest that is not over before the next request, however busy the machine is.
        desk.next.set(before + Duration::from_secs(3600));
        let dir = assay_record::dir::RunDir::open(&place.path().join("run")).unwrap();
        dir.write_info(&RunInfo { seed: 2, ..RunInfo::default() }).unwrap();
        assert_eq!(get(&desk, Kind::Summary).await, Ok(first.clone()));
        desk.ended();
        let last = get(&desk, Kind::Summary).await.unwrap();
        assert_ne!(last.etag, first.etag);
        assert!(String::from_utf8_lossy(&last.body).contains("\"seed\": 2"));
        assert_eq!(get(&desk, Kind::Summary).await, Ok(last));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_run_that_cannot_be_read_says_why() {
        let desk = Desk::new(Maker::start().unwrap());
        desk.found("/nowhere/at/all".into());
        desk.ended();
        assert!(matches!(get(&desk, Kind::Page).await, Err(Missing::Failed(_))));
    }
}
