//! A small server of HTTP/1.1: who may ask what, and how is it answered?
//!
//! It answers GET and HEAD, on a bounded number of connections, each with a bounded head and bounded time. Names in `Host`
//! that are none of ours are refused on loopback, so that no page from elsewhere can read a run through somebody's browser.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use assay_http::coding::{Accepted, Coding, GzipWriter};
use assay_http::field::list;
use assay_http::head::{HeadError, RequestHead};
use assay_metrics::text;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::address::is_host_of_ours;
use crate::desk::{Desk, Missing};
use crate::maker::{Document, Kind};
use crate::negotiate::{self, Format};
use crate::protobuf;
use crate::times::Family;

/// Connections at a time; more wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// Longest head of a request.
const HEAD_MAX_BYTES: usize = 16 * 1024;
/// How long a connection may be silent between requests: longer than most scrape intervals.
const IDLE: Duration = Duration::from_secs(75);
/// How long a head may take from its first byte on.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a client may take to receive an answer.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// Shorter bodies are not worth coding.
const GZIP_MIN_BYTES: usize = 1024;

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// What `/` shows before there is a run to report.
const EARLY: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"1\">\
    <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
    <title>Assay: getting ready</title><p style=\"font:1rem system-ui;margin:3rem\">The run is getting ready. \
    This page becomes its report as soon as there is something to see.</p></html>\n";

/// Where answers come from.
pub(crate) struct Source<M> {
    pub desk: Rc<Desk>,
    /// All metrics, as they are now.
    pub metrics: M,
    /// Where this server listens.
    pub listening: IpAddr,
}

/// Answers everybody who comes, for as long as it is polled.
pub(crate) async fn accept<M: Fn() -> Vec<Family> + 'static>(listener: TcpListener, source: Rc<Source<M>>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Never closed.
        let Ok(place) = free.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let source = source.clone();
                tokio::task::spawn_local(async move {
                    // A client that goes away has nothing to be told.
                    let _ = converse(stream, &source).await;
                    drop(place);
                });
            }
            // Out of descriptors or the like: it passes, or it does not; the run goes on either way.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// An answer.
struct Reply {
    status: (u16, &'static str),
    content_type: &'static str,
    body: Vec<u8>,
    gzip: bool,
    etag: Option<String>,
    extra: &'static str,
}

impl Reply {
    fn new(status: (u16, &'static str), content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, body: body.into(), gzip: false, etag: None, extra: "" }
    }

    fn words(status: u16, reason: &'static str, words: impl AsRef<str>) -> Self {
        Self::new((status, reason), PLAIN, format!("{}\n", words.as_ref()))
    }

    fn with(self, extra: &'static str) -> Self {
        Self { extra, ..self }
    }
}

/// What a request is, as far as its answer depends on it.
struct Asked {
    path: String,
    head_only: bool,
    gzip: bool,
    format: Format,
    /// The tags of `If-None-Match`.
    known: Vec<String>,
}

/// Requests and answers on one connection.
async fn converse<M: Fn() -> Vec<Family>>(mut stream: TcpStream, source: &Source<M>) -> std::io::Result<()> {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    loop {
        let head = match next_head(&mut stream, &mut buffer).await? {
            Next::Request(length) => length,
            Next::End => return Ok(()),
            Next::Refused(reply) => return send(&mut stream, &reply, false, true).await,
        };
        let (asked, persists) = match understand(&buffer[..head], source.listening) {
            Ok(understood) => understood,
            Err((reply, head_only)) => return send(&mut stream, &reply, head_only, true).await,
        };
        buffer.drain(..head);
        let reply = answer(&asked, source).await;
        send(&mut stream, &reply, asked.head_only, !persists).await?;
        if !persists {
            return Ok(());
        }
    }
}

enum Next {
    /// A whole head of this length is there.
    Request(usize),
    /// The client has gone, or says nothing more.
    End,
    Refused(Reply),
}

async fn next_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Next> {
    if buffer.is_empty() {
        match timeout(IDLE, stream.read_buf(buffer)).await {
            Ok(Ok(1..)) => {}
            Ok(Err(error)) => return Err(error),
            _ => return Ok(Next::End),
        }
    }
    let whole = async {
        loop {
            match RequestHead::parse(buffer) {
                Ok(Some((_, length))) if length <= HEAD_MAX_BYTES => return Ok(Next::Request(length)),
                Ok(None) if buffer.len() < HEAD_MAX_BYTES => {}
                Ok(_) => return Ok(Next::Refused(refusal(HeadError::TooLong))),
                Err(error) => return Ok(Next::Refused(refusal(error))),
            }
            if stream.read_buf(buffer).await? == 0 {
                return Ok(Next::End);
            }
        }
    };
    let late = || Next::Refused(Reply::words(408, "Request Timeout", "the request did not come in time"));
    timeout(HEAD_TIME, whole).await.unwrap_or_else(|_| Ok(late()))
}

fn refusal(error: HeadError) -> Reply {
    let reason = match error.status() {
        414 => "URI Too Long",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        505 => "HTTP Version Not Supported",
        _ => "Bad Request",
    };
    Reply::words(error.status(), reason, error.to_string())
}

/// What a head asks for, and whether the connection lives on; else the answer that refuses it, and whether to HEAD.
fn understand(head: &[u8], listening: IpAddr) -> Result<(Asked, bool), (Reply, bool)> {
    let head = match RequestHead::parse(head) {
        Ok(Some((head, _))) => head,
        Ok(None) => return Err((Reply::words(400, "Bad Request", "the head has no end"), false)),
        Err(error) => return Err((refusal(error), false)),
    };
    let head_only = head.method == "HEAD";
    let refuse = |reply| Err((reply, head_only));
    if head.method != "GET" && !head_only {
        let reply = Reply::words(405, "Method Not Allowed", "a run can only be looked at: GET and HEAD");
        return refuse(reply.with("Allow: GET, HEAD\r\n"));
    }
    if head.facts.chunked || head.facts.content_length.is_some_and(|length| length > 0) {
        return refuse(Reply::words(413, "Content Too Large", "a request needs no body here"));
    }
    if !is_host_of_ours(head.host, listening) {
        return refuse(Reply::words(
            421,
            "Misdirected Request",
            "ask for this machine by its address, or as localhost",
        ));
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
    let asked = Asked {
        path,
        head_only,
        // A client that says nothing is not surprised with it.
        gzip: accepted != Accepted::ANYTHING
            && accepted.choose(&[Coding::Gzip, Coding::Identity]) == Some(Coding::Gzip),
        format: negotiate::format(values("accept")),
        known: values("if-none-match").flat_map(list).map(tag).collect(),
    };
    Ok((asked, head.facts.persists()))
}

async fn answer<M: Fn() -> Vec<Family>>(asked: &Asked, source: &Source<M>) -> Reply {
    match asked.path.as_str() {
        "/" | "/index.html" => match source.desk.get(Kind::Page).await {
            Ok(document) => of_document(&document, asked),
            Err(Missing::TooEarly) => Reply::new((200, "OK"), HTML, EARLY),
            Err(missing) => absent(missing),
        },
        "/summary.json" => match source.desk.get(Kind::Summary).await {
            Ok(document) => of_document(&document, asked),
            Err(missing) => absent(missing),
        },
        "/metrics" => metrics(asked, &(source.metrics)()),
        "/healthz" => Reply::words(200, "OK", "ok"),
        // Browsers ask for it unasked, and would note that it is missing.
        "/favicon.ico" => Reply::new((204, "No Content"), PLAIN, ""),
        _ => Reply::words(404, "Not Found", "there are /, /metrics, /summary.json and /healthz"),
    }
}

fn absent(missing: Missing) -> Reply {
    let later = |words| Reply::words(503, "Service Unavailable", words).with("Retry-After: 1\r\n");
    match missing {
        Missing::TooEarly => later("the run is getting ready"),
        Missing::Slow => later("the machine is busy with the run; come again"),
        Missing::Failed(why) => Reply::words(500, "Internal Server Error", why),
    }
}

fn of_document(document: &Document, asked: &Asked) -> Reply {
    if asked.known.iter().any(|tag| *tag == document.etag || tag == "*") {
        let reply = Reply::new((304, "Not Modified"), document.content_type, "");
        return Reply { etag: Some(document.etag.clone()), ..reply };
    }
    let body = if asked.gzip { &document.gzipped } else { &document.body };
    let reply = Reply::new((200, "OK"), document.content_type, body.clone());
    Reply { gzip: asked.gzip, etag: Some(document.etag.clone()), ..reply }
}

fn metrics(asked: &Asked, families: &[Family]) -> Reply {
    let (content_type, body) = match asked.format {
        Format::Text => (text::PROMETHEUS_TYPE, text::prometheus(families).into_bytes()),
        Format::OpenMetrics => (text::OPENMETRICS_TYPE, text::openmetrics(families).into_bytes()),
        Format::Protobuf => (protobuf::TYPE, protobuf::delimited(families)),
    };
    let mut reply = Reply::new((200, "OK"), content_type, body);
    if asked.gzip && reply.body.len() >= GZIP_MIN_BYTES {
        let mut gzipped = Vec::new();
        GzipWriter::new().encode([reply.body.as_slice()], &mut gzipped);
        (reply.body, reply.gzip) = (gzipped, true);
    }
    reply
}

async fn send(stream: &mut TcpStream, reply: &Reply, head_only: bool, close: bool) -> std::io::Result<()> {
    let (status, reason) = reply.status;
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
    if !matches!(status, 204 | 304) {
        head += &format!("Content-Type: {}\r\nContent-Length: {}\r\n", reply.content_type, reply.body.len());
    }
    if reply.gzip {
        head += "Content-Encoding: gzip\r\n";
    }
    if let Some(etag) = &reply.etag {
        head += &format!("ETag: {etag}\r\n");
    }
    head += "Cache-Control: no-cache\r\nVary: Accept, Accept-Encoding\r\nX-Content-Type-Options: nosniff\r\n";
    if reply.content_type == HTML {
        // The report is one file: it loads nothing, and asks this server for its next edition alone.
        head += "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                 img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";
    }
    head += reply.extra;
    head += if close { "Connection: close\r\n\r\n" } else { "\r\n" };
    let mut bytes = head.into_bytes();
    if !head_only {
        bytes.extend_from_slice(&reply.body);
    }
    let sent = async {
        stream.write_all(&bytes).await?;
        if close { stream.shutdown().await } else { Ok(()) }
    };
    timeout(WRITE_TIME, sent).await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}
