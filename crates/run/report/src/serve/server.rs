//! A small server of HTTP/1.1: what can be requested, and the responses.
//!
//! It serves GET and HEAD, on a bounded number of connections, each with a bounded head and bounded time. Names in `Host`
//! that are none of ours are refused, so that no page from elsewhere can read a run through somebody's browser.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use assay_base::metrics::text;
use assay_http::coding::{Accepted, Coding, GzipWriter};
use assay_http::field::list;
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;
use assay_http::status::reason;
use assay_net::allowed_hosts::is_allowed_host;
use assay_net::connection::Resources;
use assay_net::connection_limit::{ConnectionLimit, ConnectionSlot};
use assay_net::exchange::{self, AfterResponse, ClientLimits, Exchange, Handler, Refusal, Request};
use assay_net::limits::MIN_BODY_RATE;
use assay_net::listen;
use tokio::net::{TcpListener, TcpStream};

use crate::serve::negotiate::{self, MetricsFormat};
use crate::serve::renderer::{RenderedReport, ReportKind};
use crate::serve::report_cache::{ReportCache, Unavailable};
use crate::serve::times::Family;

/// Connections at a time; another one takes the place of the one that has waited longest for a request.
const CONNECTIONS_MAX: usize = 64;
/// Limits of a client: silence between requests (longer than most scrape intervals), time and bytes of a head, time
/// to receive a response.
const LIMITS: ClientLimits = ClientLimits {
    idle: Duration::from_secs(75),
    head: Duration::from_secs(5),
    read: Duration::from_secs(5),
    write: Duration::from_secs(30),
    head_bytes: 16 * 1024,
    target_bytes: 16 * 1024,
    least_rate: MIN_BODY_RATE,
};
/// Shorter bodies are not worth coding.
const GZIP_MIN_BYTES: usize = 1024;

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Page at `/` before there is a run to report.
const EARLY: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"1\">\
    <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
    <title>Assay: getting ready</title><p style=\"font:1rem system-ui;margin:3rem\">The run is getting ready. \
    This page becomes its report as soon as there is something to see.</p></html>\n";

/// Sources of the responses.
pub(crate) struct ReportSources<M> {
    pub reports: Rc<ReportCache>,
    /// All metrics, as they are now.
    pub metrics: M,
    /// The name of this machine.
    pub own_name: String,
}

/// Connection slots, buffers and deadlines that all clients share.
#[derive(Clone)]
pub(crate) struct Clients {
    places: Rc<ConnectionLimit>,
    resources: Rc<Resources>,
}

impl Clients {
    pub fn new() -> Self {
        Self { places: ConnectionLimit::new(CONNECTIONS_MAX), resources: Resources::new() }
    }

    /// Connections that were ended to make room for others.
    pub fn dismissed(&self) -> u64 {
        self.places.dismissed()
    }

    /// Clients that took too long with a request or a response.
    pub fn slow(&self) -> u64 {
        self.resources.deadlines.counts().slow
    }
}

/// Serves all connections, for as long as it is polled.
pub(crate) async fn accept<M: Fn() -> Vec<Family> + 'static>(
    listener: TcpListener,
    source: Rc<ReportSources<M>>,
    clients: Clients,
) {
    let Clients { places, resources } = clients;
    resources.run_deadlines();
    loop {
        let (stream, _) = listen::accept(&listener).await;
        let _ = stream.set_nodelay(true);
        let exchange = Exchange::new(stream, &resources, LIMITS);
        let source = source.clone();
        let serve = |place| async move {
            // A client that goes away has nothing to be told.
            let _ = exchange::serve(&mut Client { exchange, source, place }).await;
        };
        places.serve(serve).await;
    }
}

struct Client<M> {
    exchange: Exchange,
    source: Rc<ReportSources<M>>,
    place: ConnectionSlot,
}

impl<M: Fn() -> Vec<Family>> Handler for Client<M> {
    type Transport = TcpStream;

    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    async fn respond(&mut self, request: &Request<'_>) -> io::Result<AfterResponse> {
        self.place.set_busy(true);
        match parse_request(&request.head, &self.source.own_name) {
            Ok(requested) => {
                let response = respond(&requested, &self.source).await;
                send(&mut self.exchange, &response, requested.head_only).await?;
            }
            Err(response) => {
                self.exchange.close_after_response();
                send(&mut self.exchange, &response, request.head.method == "HEAD").await?;
            }
        }
        Ok(AfterResponse::Request)
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        send(&mut self.exchange, &HttpResponse::text(refusal.status(), refusal.to_string()), is_head).await
    }

    fn on_request_end(&mut self, _complete: bool) {
        self.place.set_busy(false);
    }
}

struct HttpResponse {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    gzip: bool,
    etag: Option<String>,
    extra: &'static str,
}

impl HttpResponse {
    fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, body: body.into(), gzip: false, etag: None, extra: "" }
    }

    fn text(status: u16, text: impl AsRef<str>) -> Self {
        Self::new(status, PLAIN, format!("{}\n", text.as_ref()))
    }

    fn with(self, extra: &'static str) -> Self {
        Self { extra, ..self }
    }
}

/// The parts of a request that its response depends on.
struct WatchRequest {
    path: String,
    head_only: bool,
    gzip: bool,
    format: MetricsFormat,
    /// The tags of `If-None-Match`.
    known: Vec<String>,
}

/// Reads a request; else the response that refuses it.
fn parse_request(head: &RequestHead<'_>, own_name: &str) -> Result<WatchRequest, HttpResponse> {
    let head_only = head.method == "HEAD";
    if head.method != "GET" && !head_only {
        let response = HttpResponse::text(405, "a run can only be looked at: GET and HEAD");
        return Err(response.with("Allow: GET, HEAD\r\n"));
    }
    if head.facts.chunked || head.facts.content_length.is_some_and(|length| length > 0) {
        return Err(HttpResponse::text(413, "a request needs no body here"));
    }
    if !is_allowed_host(head.host, own_name) {
        let words = "name an address of this machine, its own name, or localhost in the URL";
        return Err(HttpResponse::text(421, words));
    }
    // A proxy's form, http://host/path, means the same.
    let after = |scheme: &str| {
        head.target.strip_prefix(scheme).map(|rest| rest.find('/').map_or("/", |at| &rest[at..]))
    };
    let path = after("http://").unwrap_or(head.target);
    let path = path.split(['?', '#']).next().unwrap_or_default().to_owned();
    let values =
        |name: &'static str| head.headers().filter(move |field| field.is(name)).map(|field| field.value);
    let accepted = Accepted::parse(values("accept-encoding"));
    let tag = |tag: &[u8]| String::from_utf8_lossy(tag.strip_prefix(b"W/").unwrap_or(tag)).into_owned();
    Ok(WatchRequest {
        path,
        head_only,
        // A client that says nothing is not surprised with it.
        gzip: accepted != Accepted::ANYTHING
            && accepted.choose(&[Coding::Gzip, Coding::Identity]) == Some(Coding::Gzip),
        format: negotiate::format(values("accept")),
        known: values("if-none-match").flat_map(list).map(tag).collect(),
    })
}

async fn respond<M: Fn() -> Vec<Family>>(
    requested: &WatchRequest,
    source: &ReportSources<M>,
) -> HttpResponse {
    match requested.path.as_str() {
        "/" | "/index.html" => match source.reports.get(ReportKind::Page).await {
            Ok(document) => of_document(&document, requested),
            Err(Unavailable::TooEarly) => HttpResponse::new(200, HTML, EARLY),
            Err(missing) => absent(missing),
        },
        "/summary.json" => match source.reports.get(ReportKind::Summary).await {
            Ok(document) => of_document(&document, requested),
            Err(missing) => absent(missing),
        },
        "/metrics" => metrics(requested, &(source.metrics)()),
        "/healthz" => HttpResponse::text(200, "ok"),
        // Browsers request it by themselves, and would report that it is missing.
        "/favicon.ico" => HttpResponse::new(204, PLAIN, ""),
        _ => HttpResponse::text(404, "there are /, /metrics, /summary.json and /healthz"),
    }
}

fn absent(missing: Unavailable) -> HttpResponse {
    let later = |text: &str| HttpResponse::text(503, text).with("Retry-After: 1\r\n");
    match missing {
        Unavailable::TooEarly => later("the run is getting ready"),
        Unavailable::Slow => later("the machine is busy with the run; come again"),
        Unavailable::Failed(error) => HttpResponse::text(500, error.to_string()),
    }
}

fn of_document(document: &RenderedReport, requested: &WatchRequest) -> HttpResponse {
    if requested.known.iter().any(|tag| *tag == document.etag || tag == "*") {
        let response = HttpResponse::new(304, document.content_type, "");
        return HttpResponse { etag: Some(document.etag.clone()), ..response };
    }
    let body = if requested.gzip { &document.gzipped } else { &document.body };
    let response = HttpResponse::new(200, document.content_type, body.clone());
    HttpResponse { gzip: requested.gzip, etag: Some(document.etag.clone()), ..response }
}

fn metrics(requested: &WatchRequest, families: &[Family]) -> HttpResponse {
    let (content_type, body) = match requested.format {
        MetricsFormat::Text => (text::PROMETHEUS_TYPE, text::prometheus(families).into_bytes()),
        MetricsFormat::OpenMetrics => (text::OPENMETRICS_TYPE, text::openmetrics(families).into_bytes()),
    };
    let mut response = HttpResponse::new(200, content_type, body);
    if requested.gzip && response.body.len() >= GZIP_MIN_BYTES {
        let mut gzipped = Vec::new();
        GzipWriter::new().encode([response.body.as_slice()], &mut gzipped);
        (response.body, response.gzip) = (gzipped, true);
    }
    response
}

async fn send(exchange: &mut Exchange, response: &HttpResponse, head_only: bool) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
    let has_body = !matches!(response.status, 204 | 304);
    if has_body {
        head += &format!("Content-Type: {}\r\n", response.content_type);
    }
    if response.gzip {
        head += "Content-Encoding: gzip\r\n";
    }
    if let Some(etag) = &response.etag {
        head += &format!("ETag: {etag}\r\n");
    }
    head += "Cache-Control: no-cache\r\nVary: Accept, Accept-Encoding\r\nX-Content-Type-Options: nosniff\r\n";
    if response.content_type == HTML {
        // The report is one file: it loads nothing, and requests its next edition alone from this server.
        head += "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                 img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";
    }
    head += response.extra;
    let mut head = head.into_bytes();
    let framing = if has_body { BodyFraming::Length(response.body.len() as u64) } else { BodyFraming::None };
    exchange.append_framing(&mut head, framing);
    exchange.write(&[&head, if head_only { &[] } else { &response.body }]).await
}
