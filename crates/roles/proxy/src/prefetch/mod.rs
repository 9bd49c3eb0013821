//! Prefetching: what the proxy fetches before a client requests it.
//!
//! While a page arrives that is going to be stored, it is read for what it is shown with ([`scan`]), and, if that is wanted,
//! for the pages that it leads to; what those references mean ([`resolve`]) is fetched into the store, so that it is there
//! when the client has seen the page, or is on its way. Everything is bounded: how much a page may cause, how much is
//! fetched at once, how much waits. What was fetched in this way is not read in its turn.

mod resolve;
mod scan;
mod waiting;

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use crate::spec::Prefetch;
use assay_cache::freshness::{RequestControl, Reuse};
use assay_http::coding::GzipReader;
use assay_http::head::RequestHead;
use assay_net::fields;
use assay_net::flow::Taken;
use tokio::task::spawn_local;

pub use self::resolve::Base;
use self::scan::{Kind, Scanner};
use self::waiting::Job;
pub use self::waiting::{Page, Prefetcher};
use crate::fetch::{self, Order};
use crate::fetched::{Fetched, Outcome};
use crate::shared::Shared;
use crate::store::Found;
use crate::target::{Route, Target};
use crate::way::Way;

/// Most bytes of a page that are read, decoded.
const MOST_OF_A_PAGE: u64 = 1 << 20;
/// Fields of the page's request that are repeated: what negotiated responses usually depend on.
const REPEATED: [&str; 3] = ["accept-encoding", "accept-language", "user-agent"];

/// Reads one page while it arrives.
pub struct Reading {
    page: Page,
    own_authority: String,
    scanner: Scanner,
    decoder: Option<GzipReader>,
    settings: Prefetch,
    seen: HashSet<(String, String)>,
    read_bytes: u64,
    fields: Rc<[u8]>,
    budget: Rc<Cell<u64>>,
}

impl Reading {
    /// For the response to this request; none: it is not to be read.
    pub fn new(shared: &Shared, page: Option<&Page>, request: &[u8], fetched: &Fetched) -> Option<Self> {
        let (settings, page) = (shared.prefetcher.settings()?, page?);
        let response = &fetched.response;
        let kind = response.content_type().map(str::to_ascii_lowercase)?;
        let is_page = kind.starts_with("text/html") || kind.starts_with("application/xhtml+xml");
        if response.status != 200 || !is_page || !fetched.is_shared {
            return None;
        }
        let decoder = match response.coding() {
            None => None,
            Some(coding) if coding.eq_ignore_ascii_case(b"gzip") => Some(GzipReader::new(MOST_OF_A_PAGE)),
            Some(_) => return None,
        };
        let (head, _) = RequestHead::parse(request).ok()??;
        let mut repeated = Vec::new();
        for field in head.headers().filter(|field| REPEATED.iter().any(|name| field.is(name))) {
            fields::append(&mut repeated, field.name, field.value);
        }
        Some(Self {
            page: page.clone(),
            own_authority: page.base.authority.clone(),
            scanner: Scanner::default(),
            decoder,
            settings,
            seen: HashSet::new(),
            read_bytes: 0,
            fields: repeated.into(),
            budget: Rc::new(Cell::new(settings.page_bytes)),
        })
    }

    /// Reads on. False: there is nothing more to be found.
    pub fn push(&mut self, shared: &Rc<Shared>, bytes: &[u8]) -> bool {
        let mut found: Vec<(Kind, String)> = Vec::new();
        let (scanner, read_bytes) = (&mut self.scanner, &mut self.read_bytes);
        let mut read = |bytes: &[u8]| {
            *read_bytes += bytes.len() as u64;
            scanner.push(bytes, |kind, url| found.push((kind, url.to_owned())));
        };
        let is_sound = match &mut self.decoder {
            None => {
                read(bytes);
                true
            }
            Some(decoder) => decoder.push(bytes, read).is_ok(),
        };
        for (kind, reference) in found {
            self.follow(shared, kind, &reference);
        }
        is_sound && self.read_bytes < MOST_OF_A_PAGE && self.seen.len() < self.settings.per_page as usize
    }

    fn follow(&mut self, shared: &Rc<Shared>, kind: Kind, reference: &str) {
        let Some(what) = self.page.base.resolve(reference) else { return };
        match kind {
            Kind::Base => self.page.base = what,
            Kind::Link if !self.settings.links => {}
            Kind::Link | Kind::Embedded => {
                let name = (what.authority.clone(), what.path.clone());
                if self.seen.len() < self.settings.per_page as usize && self.seen.insert(name) {
                    let (fields, budget) = (Rc::clone(&self.fields), Rc::clone(&self.budget));
                    let is_own = what.authority.eq_ignore_ascii_case(&self.own_authority);
                    let job = Job { what, is_absolute: self.page.is_absolute, is_own, fields, budget };
                    if shared.prefetcher.submit(job) {
                        spawn_local(work(Rc::clone(shared)));
                    }
                }
            }
        }
    }
}

/// Does what waits, one after the other.
async fn work(shared: Rc<Shared>) {
    while let Some(job) = shared.prefetcher.next() {
        carry_out(&shared, &job).await;
    }
}

async fn carry_out(shared: &Rc<Shared>, job: &Job) {
    let target =
        Target { authority: Some(&job.what.authority), path: &job.what.path, is_absolute: job.is_absolute };
    let Some(order) = order(shared, job, &target) else { return };
    shared.prefetcher.count(|c| c.prefetched += 1);
    let (fetch, mut reader) = fetch::start(shared, order, true);
    let Outcome::Response(fetched) = fetch.settled().await else { return };
    if !fetched.is_shared || fetched.length.is_some_and(|bytes| bytes > job.budget.get()) {
        // Nobody is going to have any use for it, or it is too much, and so is what follows.
        fetch.flow.keep(false);
        if fetched.is_shared {
            job.budget.set(0);
        }
        return;
    }
    let mut parts = Vec::new();
    while reader.take(&mut parts).await == Taken::Chunks {
        let bytes: usize = parts.drain(..).map(|part| part.len()).sum();
        shared.prefetcher.count(|c| c.prefetched_bytes += bytes as u64);
        match job.budget.get().checked_sub(bytes as u64) {
            Some(left) => job.budget.set(left),
            None => {
                job.budget.set(0);
                fetch.flow.keep(false);
                return;
            }
        }
    }
}

/// What to fetch for a job; none: it is there, on its way, known to be of no use, or nobody knows where it is.
fn order(shared: &Shared, job: &Job, target: &Target<'_>) -> Option<Order> {
    let mut key = Vec::new();
    shared.routes.write_key(target, &mut key);
    let is_elsewhere = !job.is_own && !shared.routes.knows(target);
    if job.budget.get() == 0 || is_elsewhere || shared.fetches.borrow().contains_key(&key[..]) {
        return None;
    }
    let mut request = Vec::with_capacity(256);
    let way = Way::to(shared, target);
    way.write_request_line(shared, "GET", target, &mut request);
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
        Found::Response(stored) => match stored.response.freshness.reuse(&control, shared.clock.now_ms()) {
            Reuse::Serve => return None,
            Reuse::Validate | Reuse::Refetch => Some(stored),
        },
        Found::OtherVariant | Found::Nothing => None,
    };
    let from_peers = !shared.peers.is_alone() && stored.is_none();
    let peers_url = from_peers.then(|| shared.routes.url(target)).flatten();
    (way.route != Route::Nowhere).then(|| Order {
        key: key[..].into(),
        way,
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
