//! Prefetching of resources before a client requests them.
//!
//! While a page arrives that is going to be stored, it is scanned ([`scanner`]) for embedded resources and, if that is wanted,
//! for links; the URLs that those references mean ([`resolve`]) are fetched into the store, for when the client has seen the
//! page. Everything is bounded: how much a page may cause, how many fetches run at a time, how many wait. Prefetched pages are
//! not scanned in their turn.

mod queue;
mod resolve;
mod scanner;

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use crate::spec::Prefetch;
use assay_cache::freshness::{RequestControl, Reuse};
use assay_http::coding::GzipReader;
use assay_http::head::RequestHead;
use assay_net::fields;
use assay_net::shared_body::BodyRead;
use tokio::task::spawn_local;

use self::queue::PrefetchJob;
pub use self::queue::{PrefetchPage, Prefetcher};
pub use self::resolve::BaseUrl;
use self::scanner::{ReferenceKind, Scanner};
use crate::fetch::{self, FetchPlan};
use crate::fetched::{FetchOutcome, FetchedHead};
use crate::shared::ProxyShared;
use crate::store::StoreLookup;
use crate::target::{Destination, Target};
use crate::upstream_route::UpstreamRoute;

/// Decoded bytes of a page that are scanned.
const PAGE_MAX_BYTES: u64 = 1 << 20;
/// Fields of the page's request that prefetches repeat: negotiated responses usually depend on them.
const REPEATED_FIELDS: [&str; 3] = ["accept-encoding", "accept-language", "user-agent"];

/// Scans one page while it arrives.
pub struct PageReader {
    page: PrefetchPage,
    own_authority: String,
    scanner: Scanner,
    decoder: Option<GzipReader>,
    settings: Prefetch,
    submitted: HashSet<(String, String)>,
    read_bytes: u64,
    fields: Rc<[u8]>,
    budget: Rc<Cell<u64>>,
}

impl PageReader {
    /// Starts scanning a response; `None` if it is not a page to be scanned.
    pub fn new(
        shared: &ProxyShared,
        page: Option<&PrefetchPage>,
        request: &[u8],
        fetched: &FetchedHead,
    ) -> Option<Self> {
        let (settings, page) = (shared.prefetcher.settings()?, page?);
        let response = &fetched.response;
        let kind = response.content_type().map(str::to_ascii_lowercase)?;
        let is_page = kind.starts_with("text/html") || kind.starts_with("application/xhtml+xml");
        if response.status != 200 || !is_page || !fetched.is_shared {
            return None;
        }
        let decoder = match response.coding() {
            None => None,
            Some(coding) if coding.eq_ignore_ascii_case(b"gzip") => Some(GzipReader::new(PAGE_MAX_BYTES)),
            Some(_) => return None,
        };
        let (head, _) = RequestHead::parse(request).ok()??;
        let mut repeated = Vec::new();
        for field in head.headers().filter(|field| REPEATED_FIELDS.iter().any(|name| field.is(name))) {
            fields::append(&mut repeated, field.name, field.value);
        }
        Some(Self {
            page: page.clone(),
            own_authority: page.base.authority.clone(),
            scanner: Scanner::default(),
            decoder,
            settings,
            submitted: HashSet::new(),
            read_bytes: 0,
            fields: repeated.into(),
            budget: Rc::new(Cell::new(settings.page_bytes)),
        })
    }

    /// Scans the next bytes; false: nothing more will be found.
    pub fn push(&mut self, shared: &Rc<ProxyShared>, bytes: &[u8]) -> bool {
        let mut references: Vec<(ReferenceKind, String)> = Vec::new();
        let (scanner, read_bytes) = (&mut self.scanner, &mut self.read_bytes);
        let mut scan = |bytes: &[u8]| {
            *read_bytes += bytes.len() as u64;
            scanner.push(bytes, |kind, url| references.push((kind, url.to_owned())));
        };
        let is_sound = match &mut self.decoder {
            None => {
                scan(bytes);
                true
            }
            Some(decoder) => decoder.push(bytes, scan).is_ok(),
        };
        for (kind, reference) in references {
            self.follow(shared, kind, &reference);
        }
        is_sound && self.read_bytes < PAGE_MAX_BYTES && self.submitted.len() < self.settings.per_page as usize
    }

    fn follow(&mut self, shared: &Rc<ProxyShared>, kind: ReferenceKind, reference: &str) {
        let Some(url) = self.page.base.resolve(reference) else { return };
        match kind {
            ReferenceKind::Base => self.page.base = url,
            ReferenceKind::Link if !self.settings.links => {}
            ReferenceKind::Link | ReferenceKind::Embedded => {
                let name = (url.authority.clone(), url.path.clone());
                if self.submitted.len() < self.settings.per_page as usize && self.submitted.insert(name) {
                    let (fields, budget) = (Rc::clone(&self.fields), Rc::clone(&self.budget));
                    let is_own = url.authority.eq_ignore_ascii_case(&self.own_authority);
                    let job = PrefetchJob { url, is_absolute: self.page.is_absolute, is_own, fields, budget };
                    if shared.prefetcher.submit(job) {
                        spawn_local(run_queue(Rc::clone(shared)));
                    }
                }
            }
        }
    }
}

/// Executes queued jobs, one after the other.
async fn run_queue(shared: Rc<ProxyShared>) {
    while let Some(job) = shared.prefetcher.next() {
        prefetch(&shared, &job).await;
    }
}

async fn prefetch(shared: &Rc<ProxyShared>, job: &PrefetchJob) {
    let target =
        Target { authority: Some(&job.url.authority), path: &job.url.path, is_absolute: job.is_absolute };
    let Some(plan) = plan_fetch(shared, job, &target) else { return };
    shared.prefetcher.count(|c| c.prefetched += 1);
    let (fetch, mut reader) = fetch::start(shared, plan, true);
    let FetchOutcome::Response(fetched) = fetch.wait().await else { return };
    if !fetched.is_shared || fetched.length.is_some_and(|bytes| bytes > job.budget.get()) {
        // Not shared, so of no use to any client; or too large, and so would be whatever follows.
        fetch.shared_body.set_retained(false);
        if fetched.is_shared {
            job.budget.set(0);
        }
        return;
    }
    let mut parts = Vec::new();
    while reader.read(&mut parts).await == BodyRead::Chunks {
        let bytes: usize = parts.drain(..).map(|part| part.len()).sum();
        shared.prefetcher.count(|c| c.prefetched_bytes += bytes as u64);
        match job.budget.get().checked_sub(bytes as u64) {
            Some(left) => job.budget.set(left),
            None => {
                job.budget.set(0);
                fetch.shared_body.set_retained(false);
                return;
            }
        }
    }
}

/// Plans the fetch of a job; `None` if the object is stored, under way, known not to be shared, or at an unknown host.
fn plan_fetch(shared: &ProxyShared, job: &PrefetchJob, target: &Target<'_>) -> Option<FetchPlan> {
    let mut key = Vec::new();
    shared.routes.write_key(target, &mut key);
    let is_elsewhere = !job.is_own && !shared.routes.knows(target);
    if job.budget.get() == 0 || is_elsewhere || shared.fetches.borrow().contains_key(&key[..]) {
        return None;
    }
    let mut request = Vec::with_capacity(256);
    let route = UpstreamRoute::to(shared, target);
    route.write_request_line(shared, "GET", target, &mut request);
    fields::append(&mut request, b"Accept", b"*/*");
    request.extend_from_slice(&job.fields);
    fields::append(&mut request, b"Via", format!("1.1 {}", shared.name).as_bytes());
    request.extend_from_slice(b"\r\n");
    let (head, _) = RequestHead::parse(&request).ok()??;
    let control = RequestControl::default();
    let mut store = shared.store.borrow_mut();
    if store.is_unshared(&key, false) {
        return None;
    }
    let stored = match store.find(&key, head.headers()) {
        StoreLookup::Response(stored) => {
            match stored.response.freshness.reuse(&control, shared.clock.now_ms()) {
                Reuse::Serve => return None,
                Reuse::Validate | Reuse::Refetch => Some(stored),
            }
        }
        StoreLookup::OtherVariant | StoreLookup::Nothing => None,
    };
    let from_peers = !shared.peers.is_alone() && stored.is_none();
    let peers_url = from_peers.then(|| shared.routes.url(target)).flatten();
    (route.destination != Destination::Nowhere).then(|| FetchPlan {
        key: key[..].into(),
        route,
        request,
        peers_url,
        replaces: stored.is_some(),
        validating: stored,
        control,
        is_authorised: false,
        page: None,
        is_unrequested: true,
    })
}
