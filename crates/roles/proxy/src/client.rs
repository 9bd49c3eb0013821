//! One client connection: requests are served from the store, or fetched.

use std::io;
use std::rc::Rc;

use assay_cache::freshness::Reuse;
use assay_cache::storage::MethodClass;
use assay_cache::vary::Vary;
use assay_http::head::RequestHead;
use tokio::net::TcpStream;

use crate::access_log::Note;
use crate::client_request::ClientRequest;
use crate::fetch::{self, Order};
use crate::fetched::{Fetch, Fetched, Outcome};
use crate::handling::{Handling, Source, Why};
use crate::part::{self, Selection};
use crate::pass::{self, Fallback, PassOrder};
use crate::prefetch::{Base, Page};
use crate::respond::Client;
use crate::shared::Shared;
use crate::store::{Found, Stored};
use crate::target::Target;
use crate::through::{self, Went};
use crate::way::Way;
use assay_net::byte_stream::ByteStream;
use assay_net::exchange::{self, Exchange, Handler, Next, Refusal, Request};
use assay_net::fields::{self, Received};
use assay_net::flow::{End, Reader, Taken};
use assay_net::http_stream::{HttpStream, serve_client};

/// Serves a connection until it ends. Errors were caused by the client, or have been reported to it: they are
/// of no further interest.
pub async fn serve(stream: ByteStream<TcpStream>, shared: Rc<Shared>) {
    let limits = shared.limits.of_clients();
    let serve = |exchange| {
        let shared = Rc::clone(&shared);
        async move { drop(exchange::serve(&mut Client::new(shared, exchange)).await) }
    };
    serve_client(stream, &shared.resources, limits, serve).await;
}

/// What is to be done once the request's head is no longer needed.
enum Step {
    Responded,
    Pass(Box<PassOrder>),
}

impl Step {
    fn pass(order: PassOrder) -> Self {
        Step::Pass(Box::new(order))
    }
}

/// What happens rarely is boxed from here on: the state of a task is moved about for each request, and is as large as the
/// largest way through it.
impl Handler for Client {
    type Stream = HttpStream;

    fn exchange(&mut self) -> &mut Exchange<Self::Stream> {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, received, .. }: &Request<'_>) -> io::Result<Next> {
        if let Step::Pass(order) = origin_response(self, head, *received).await? {
            Box::pin(pass::run(self, *order)).await?;
        }
        Ok(Next::Request)
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        refuse(self, refusal.status(), &refusal.to_string(), is_head).await
    }

    fn ended(&mut self, complete: bool) {
        self.write_down(complete);
    }
}

/// Responds to a malformed request; after that the connection cannot be used.
async fn refuse(client: &mut Client, status: u16, text: &str, is_head: bool) -> io::Result<()> {
    client.exchange.give_up();
    client.shared.count(|c| {
        c.requests += 1;
        c.refused += 1;
    });
    client.send_error(status, text, None, is_head).await
}

async fn origin_response(
    client: &mut Client,
    head: &RequestHead<'_>,
    received: Received,
) -> io::Result<Step> {
    let target = match Target::of_scheme(head, client.exchange.connection.stream.scheme()) {
        Ok(target) => target,
        Err(error) => {
            Box::pin(refuse(client, error.status(), &error.to_string(), head.method == "HEAD")).await?;
            return Ok(Step::Responded);
        }
    };
    client.shared.count(|c| c.requests += 1);
    if client.shared.access_log.is_some() {
        client.noted = Some(Note::new(head, client.shared.routes.url(&target)));
    }
    if head.max_forwards() == Some(0) {
        Box::pin(respond_and_close(client, head)).await?;
        return Ok(Step::Responded);
    }
    let client_request = ClientRequest::new(head, received);
    count_caches(client, &client_request);
    let mut key = std::mem::take(&mut client.key);
    client.shared.routes.write_key(&target, &mut key);
    let step = if client_request.is_for_cache() {
        // What is stored and fresh has the shortest way.
        match look_up(client, &client_request, &key) {
            Ok(hit) => {
                if hit.is_stale {
                    revalidate(client, &client_request, &target, &key, &hit.stored);
                }
                hit.send(client, &client_request).await.map(|()| Step::Responded)
            }
            Err(miss) => fetched(client, &client_request, &target, &key, miss).await,
        }
    } else {
        let why = if client_request.is_for_origin && client_request.class != MethodClass::Unsafe {
            Why::Bypass
        } else {
            Why::Method
        };
        Ok(Step::pass(PassOrder::new(&client.shared, &client_request, &target, &key, why)))
    };
    client.key = key;
    step
}

/// Responds to a request that may not be forwarded. A trace would only show what the client has just sent.
async fn respond_and_close(client: &mut Client, head: &RequestHead<'_>) -> io::Result<()> {
    if !client.exchange.is_read() {
        client.exchange.give_up();
    }
    match head.method {
        "OPTIONS" => client.send_options().await,
        _ => client.send_error(501, "a trace goes on, or there is no response to it", None, false).await,
    }
}

/// Counts requests of other caches: robots and browsers put no `Via` into theirs.
fn count_caches(client: &mut Client, client_request: &ClientRequest<'_>) {
    let shared = &client.shared;
    let passed = shared
        .is_cooperating
        .then(|| fields::has_passed(client_request.head.headers(), &shared.name))
        .flatten();
    if passed.is_some() {
        shared.peers.count(|c| c.peer_requests += 1);
    }
    (client.is_from_cache, client.was_here) = (passed.is_some(), passed == Some(true));
}

/// What is stored, and may be sent as it is.
struct Hit {
    stored: Rc<Stored>,
    ttl_s: i64,
    now_ms: i64,
    /// It may be sent while it is validated.
    is_stale: bool,
}

impl Hit {
    async fn send(self, client: &mut Client, client_request: &ClientRequest<'_>) -> io::Result<()> {
        client
            .send_stored(client_request, &self.stored, Handling::Hit { ttl_s: self.ttl_s }, self.now_ms)
            .await
    }
}

/// Why nothing that is stored may be sent, and what is stored that the origin may confirm.
struct Miss {
    why: Why,
    stored: Option<Rc<Stored>>,
}

/// Looks in the store for a response to a GET or HEAD.
fn look_up(client: &Client, client_request: &ClientRequest<'_>, key: &[u8]) -> Result<Hit, Miss> {
    let shared = &client.shared;
    let found = shared.store.borrow_mut().find(key, client_request.head.headers());
    let stored = match found {
        Found::Nothing => return Err(Miss { why: Why::Miss, stored: None }),
        Found::OtherVariant => return Err(Miss { why: Why::VaryMiss, stored: None }),
        Found::Response(stored) => stored,
    };
    let freshness = &stored.response.freshness;
    let now_ms = shared.clock.now_ms();
    let remaining_ms = freshness.remaining_ms(now_ms);
    let reuse = freshness.reuse(&client_request.control, now_ms);
    let is_stale = reuse == Reuse::Validate
        && client_request.class == MethodClass::Get
        && freshness.serves_while_revalidated(&client_request.control, now_ms);
    match reuse {
        _ if is_stale => {
            shared.count(|c| c.hits += 1);
            Ok(Hit { stored, ttl_s: remaining_ms.div_euclid(1000), now_ms, is_stale })
        }
        Reuse::Serve => {
            shared.count(|c| c.hits += 1);
            if stored.is_unrequested.replace(false) {
                shared.prefetcher.count(|c| c.prefetched_used += 1);
            }
            if client.is_from_cache {
                shared.peers.count(|c| c.peer_hits += 1);
            }
            Ok(Hit { stored, ttl_s: remaining_ms.div_euclid(1000), now_ms, is_stale })
        }
        Reuse::Refetch => Err(Miss { why: Why::Request, stored: None }),
        Reuse::Validate if remaining_ms > 0 => Err(Miss { why: Why::Request, stored: Some(stored) }),
        Reuse::Validate => Err(Miss { why: Why::Stale, stored: Some(stored) }),
    }
}

/// Validates what is sent though it is stale (`stale-while-revalidate`), once for all that request it meanwhile. Nobody waits for it: if
/// it fails, the next request tries again.
fn revalidate(
    client: &Client,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    key: &[u8],
    stored: &Rc<Stored>,
) {
    let shared = &client.shared;
    if client_request.control.only_if_cached || shared.fetches.borrow().contains_key(key) {
        return;
    }
    let way = Way::to(shared, target);
    let mut request = Vec::with_capacity(512);
    way.append_fetch_request(shared, client_request, target, &mut request);
    let order = Order {
        key: key.into(),
        request,
        way,
        validating: Some(Rc::clone(stored)),
        peers_url: None,
        control: client_request.control,
        is_authorised: client_request.is_authorised,
        replaces: true,
        page: None,
        is_unrequested: false,
    };
    let may_be_joined = !client_request.is_authorised && !client_request.control.no_store;
    // The fetch goes on without a reader, as long as its response is being stored.
    drop(fetch::start(shared, order, may_be_joined));
}

/// Serves a GET or HEAD for which the store has no response that may be sent as it is: from a fetch under way, or from one of its
/// own.
async fn fetched(
    client: &mut Client,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    key: &[u8],
    miss: Miss,
) -> io::Result<Step> {
    let Miss { mut why, mut stored } = miss;
    let mut may_join = !client_request.is_authorised && !was_here(client, client_request, key);
    let mut failed = None;
    loop {
        let is_head = client_request.class == MethodClass::Head;
        if client_request.control.only_if_cached {
            let text = "nothing that may be used is stored, and the origin may not be asked";
            Box::pin(client.send_error(504, text, Some(Handling::NotRequested), is_head)).await?;
            return Ok(Step::Responded);
        }
        if is_head {
            let order = PassOrder::new(&client.shared, client_request, target, key, why);
            let fallback = stored.and_then(|stored| Fallback::new(&client.shared, client_request, stored));
            return Ok(Step::pass(order.or(fallback)));
        }
        let is_partial = client_request.ranges.is_some() || client_request.has_conditions();
        if is_partial && stored.is_none() && is_of_no_use(client, client_request, key) {
            return Ok(Step::pass(PassOrder::new(&client.shared, client_request, target, key, why)));
        }
        if may_join && !client_request.control.no_cache {
            let current = client.shared.fetches.borrow().get(key).cloned();
            if let Some((fetch, reader)) = current.and_then(|f| Reader::new(&f.flow).map(|r| (f, r))) {
                match Box::pin(join(client, client_request, &fetch, reader, (why, failed))).await? {
                    Joined::Responded => return Ok(Step::Responded),
                    // That response is not for this request: look again, and then go alone.
                    Joined::Unsuitable => may_join = false,
                    // The first of those that waited leads the next fetch, and the others join that.
                    Joined::Failed(how) => failed = Some(how),
                }
                match look_up(client, client_request, key) {
                    Ok(hit) => {
                        return Box::pin(hit.send(client, client_request)).await.map(|()| Step::Responded);
                    }
                    Err(miss) => Miss { why, stored } = miss,
                }
                continue;
            }
        }
        return lead(client, client_request, target, key, why, stored, may_join).await;
    }
}

/// The request was here before: what it could join may wait for it, by an address that is not known to be this proxy's.
fn was_here(client: &Client, client_request: &ClientRequest<'_>, key: &[u8]) -> bool {
    let passed = || fields::has_passed(client_request.head.headers(), &client.shared.name) == Some(true);
    client.was_here || (client.shared.fetches.borrow().contains_key(key) && passed())
}

/// Fetching the whole object for its parts, or to evaluate conditions on it, is in vain: it is known that it would not be stored.
fn is_of_no_use(client: &Client, client_request: &ClientRequest<'_>, key: &[u8]) -> bool {
    client_request.control.no_store
        || client.shared.store.borrow_mut().is_unshared(key, client_request.is_authorised)
}

/// Fetches, and sends the response.
async fn lead(
    client: &mut Client,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    key: &[u8],
    why: Why,
    stored: Option<Rc<Stored>>,
    may_be_joined: bool,
) -> io::Result<Step> {
    let shared = Rc::clone(&client.shared);
    let is_unshared = shared.store.borrow_mut().is_unshared(key, client_request.is_authorised);
    let is_open = may_be_joined && !client_request.control.no_store && !is_unshared;
    if client_request.control.no_cache {
        // A response that is on its way already is older than this reload wants.
        let tick = shared.store.borrow_mut().next_tick();
        shared.store.borrow_mut().outdate(key, tick);
    }
    let heard = match !is_open && stored.is_none() && through::may(&shared, client_request) {
        false => None,
        // Nobody else will have it, as far as is known.
        true => match through::run(client, client_request, target, (key, is_unshared), why).await? {
            Went::Through => return Ok(Step::Responded),
            Went::ForMany(heard) => Some(heard),
        },
    };
    let way = Way::to(&shared, target);
    let mut request = Vec::with_capacity(512);
    way.append_fetch_request(&shared, client_request, target, &mut request);
    let order = Order {
        key: key.into(),
        request,
        way,
        peers_url: peers_url(client, client_request, target, stored.is_some())
            .filter(|_| is_open || shared.peers.never_direct()),
        replaces: stored.is_some() || client_request.control.no_cache,
        validating: stored,
        control: client_request.control,
        is_authorised: client_request.is_authorised,
        page: shared.prefetcher.is_on().then(|| page(&shared, client_request, target)).flatten(),
        is_unrequested: false,
    };
    let (fetch, reader) = match heard {
        None => fetch::start(&shared, order, is_open),
        Some(heard) => fetch::go_on(&shared, order, *heard),
    };
    Box::pin(respond_from(client, client_request, target, (key, why), (fetch, reader))).await
}

/// Sends the response of the client's own fetch.
async fn respond_from(
    client: &mut Client,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    (key, why): (&[u8], Why),
    (fetch, mut reader): (Rc<Fetch>, Reader),
) -> io::Result<Step> {
    let shared = Rc::clone(&client.shared);
    let handling = |is_confirmed, is_stored, source| Handling::Forwarded {
        why,
        is_confirmed,
        is_stored,
        is_collapsed: false,
        source,
    };
    match fetch.pass_on(&mut client.exchange).await? {
        Outcome::Response(fetched) => {
            shared.count(|c| c.misses += 1);
            let response = &fetched.response;
            let age_s = response.has_age.then(|| response.freshness.age_s(shared.clock.now_ms()));
            let handling = handling(false, fetched.is_shared, fetched.source);
            if fetched.is_not_modified_for(&client_request.conditions) {
                drop(reader);
                client.send_not_modified(response, handling, age_s).await?;
                return Ok(Step::Responded);
            }
            let selection = part::select(client_request, response, fetched.length);
            if !fetched.is_shared && matches!(selection, Selection::Parts(_)) {
                // All of it would go through to get at a part of it.
                drop(reader);
                return Ok(Step::pass(PassOrder::new(&shared, client_request, target, key, why)));
            }
            if !send_fetched(client, &fetched, selection, &mut reader, handling, age_s).await? {
                client.send_error(502, BROKE_OFF, Some(handling), false).await?;
            }
        }
        Outcome::Confirmed(stored) => {
            shared.count(|c| c.revalidated += 1);
            let now_ms = shared.clock.now_ms();
            client
                .send_stored(client_request, &stored, handling(true, false, Source::Origin), now_ms)
                .await?;
        }
        Outcome::Stale { stored, status } => {
            send_on_error(client, client_request, &stored, status, false).await?
        }
        Outcome::Failed(failure) => {
            let handling = handling(false, false, Source::Origin);
            client.send_failure(&failure, handling, false).await?;
        }
    }
    Ok(Step::Responded)
}

/// Sends a response that is still arriving, or parts of it. False: it broke off before anything of it was sent.
async fn send_fetched(
    client: &mut Client,
    fetched: &Fetched,
    selection: Selection,
    reader: &mut Reader,
    handling: Handling,
    age_s: Option<u64>,
) -> io::Result<bool> {
    let (spans, total) = match (selection, fetched.length) {
        (Selection::Unsatisfied { total }, _) => {
            return client.send_unsatisfied(total, handling).await.map(|()| true);
        }
        (Selection::Parts(spans), Some(total)) => (spans, total),
        (Selection::Whole, _) | (Selection::Parts(_), None) => {
            return client.send_flow(fetched, reader, handling, age_s).await.map(|()| true);
        }
    };
    if let [span] = spans[..] {
        let response = (&*fetched.response, total);
        return client.send_part_of_flow(response, reader, span, handling, age_s).await.map(|()| true);
    }
    // Several may be requested in any order: they wait until everything is there. It is kept anyway.
    let mut chunks = Vec::new();
    loop {
        let taking = reader.take(&mut chunks);
        match exchange::unless_gone(&client.exchange.connection, taking).await? {
            Taken::Chunks => {}
            Taken::End(End::Complete) => break,
            Taken::End(End::Broken) => return Ok(false),
        }
    }
    let whole = Stored::new(Rc::clone(&fetched.response), chunks);
    client.send_parts(&whole, &spans, handling, age_s).await.map(|()| true)
}

/// Sends a stored response though it is stale, because the origin failed.
async fn send_on_error(
    client: &mut Client,
    client_request: &ClientRequest<'_>,
    stored: &Stored,
    status: Option<u16>,
    is_collapsed: bool,
) -> io::Result<()> {
    client.shared.count(|c| c.hits += 1);
    let now_ms = client.shared.clock.now_ms();
    let ttl_s = stored.response.freshness.remaining_ms(now_ms).div_euclid(1000);
    client
        .send_stored(client_request, stored, Handling::OnError { ttl_s, status, is_collapsed }, now_ms)
        .await
}

/// Why there is no response to a request for several parts.
const BROKE_OFF: &str = "the origin's response broke off";

/// What came of joining a fetch.
enum Joined {
    /// The client has its response.
    Responded,
    /// The fetch's response is not for this request.
    Unsuitable,
    /// The fetch failed at once, and nothing was sent to the client: the next may succeed.
    Failed(HowFailed),
}

/// How a fetch failed that a request had joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HowFailed {
    /// It had no response.
    NoResponse,
    /// Its body broke off. The request has been counted as collapsed.
    BrokeOff,
}

/// Sends the response of another request's fetch. If another fetch has `failed` before, the failure of this one is the response:
/// repeating it for every client that waits would only make it worse.
async fn join(
    client: &mut Client,
    client_request: &ClientRequest<'_>,
    fetch: &Fetch,
    mut reader: Reader,
    (why, failed): (Why, Option<HowFailed>),
) -> io::Result<Joined> {
    let shared = Rc::clone(&client.shared);
    let handling = |is_confirmed, source| Handling::Forwarded {
        why,
        is_confirmed,
        is_stored: false,
        is_collapsed: true,
        source,
    };
    let outcome = fetch.pass_on(&mut client.exchange).await?;
    let now_ms = shared.clock.now_ms();
    match outcome {
        Outcome::Response(fetched) => {
            let response = &fetched.response;
            let is_fresh = response.freshness.reuse(&client_request.control, now_ms) == Reuse::Serve;
            if !is_fresh || !fetched.suits(client_request.head.headers()) {
                return Ok(Joined::Unsuitable);
            }
            if failed != Some(HowFailed::BrokeOff) {
                shared.count(|c| c.collapsed += 1);
            }
            let age_s = Some(response.freshness.age_s(now_ms));
            let handling = handling(false, fetched.source);
            if fetched.is_not_modified_for(&client_request.conditions) {
                drop(reader);
                client.send_not_modified(response, handling, age_s).await?;
            } else {
                let selection = part::select(client_request, response, fetched.length);
                match send_fetched(client, &fetched, selection, &mut reader, handling, age_s).await? {
                    true => {}
                    false if failed.is_none() => return Ok(Joined::Failed(HowFailed::BrokeOff)),
                    false => client.send_error(502, BROKE_OFF, Some(handling), false).await?,
                }
            }
        }
        Outcome::Stale { stored, status } => {
            drop(reader);
            let freshness = &stored.response.freshness;
            let may = freshness.serves_on_error(&client_request.control, shared.stale_if_error_s, now_ms);
            if !may || !matches!(stored.response.vary, Vary::Nothing) {
                return Ok(Joined::Unsuitable);
            }
            send_on_error(client, client_request, &stored, status, true).await?;
        }
        Outcome::Confirmed(stored) => {
            drop(reader);
            let is_same_variant = matches!(stored.response.vary, Vary::Nothing);
            if !is_same_variant
                || stored.response.freshness.reuse(&client_request.control, now_ms) != Reuse::Serve
            {
                return Ok(Joined::Unsuitable);
            }
            shared.count(|c| c.collapsed += 1);
            client.send_stored(client_request, &stored, handling(true, Source::Origin), now_ms).await?;
        }
        // What took long to fail would take as long again.
        Outcome::Failed(failure) if failed.is_none() && failure.status() == 502 => {
            return Ok(Joined::Failed(HowFailed::NoResponse));
        }
        Outcome::Failed(failure) => {
            client.send_failure(&failure, handling(false, Source::Origin), false).await?;
        }
    }
    Ok(Joined::Responded)
}

/// The page that is fetched, if it turns out to be one; none: nothing it names is to be fetched for this request.
fn page(shared: &Shared, client_request: &ClientRequest<'_>, target: &Target<'_>) -> Option<Page> {
    let authority = target.authority.unwrap_or(shared.routes.fallback_authority()).to_owned();
    let mut path = Vec::new();
    target.write_path(&mut path);
    let base = Base { authority, path: String::from_utf8(path).ok()? };
    (!client_request.is_authorised).then_some(Page { base, is_absolute: target.is_absolute })
}

/// The URL that other caches are queried for; none: they are not queried. A request that wants it fresh, or is authorised, needs
/// the origin's response; and so does one that has passed this cache before, as it must not loop.
fn peers_url(
    client: &Client,
    client_request: &ClientRequest<'_>,
    target: &Target<'_>,
    is_stored: bool,
) -> Option<String> {
    let shared = &client.shared;
    if shared.peers.is_alone() || is_stored || client_request.control.no_cache || client_request.is_authorised
    {
        return None;
    }
    if client.was_here {
        shared.peers.count(|c| c.loops += 1);
        return None;
    }
    shared.routes.url(target)
}
