//! HTTP/2 on the wire (RFC 9113), with its header compression (RFC 7541).
//!
//! Bytes go in, events come out; requests, responses and data go in, bytes come out. One [`Connection`] is one side of one
//! connection, client or server:
//!
//! ```
//! use assay_http2::{Config, Connection, Event, RequestHead};
//!
//! let (mut client, mut server) = (Connection::client(Config::default()), Connection::server(Config::default()));
//! let head = RequestHead { method: b"GET", scheme: b"http", authority: b"origin.test", path: b"/a" };
//! client.request(&head, [(&b"accept"[..], &b"*/*"[..])].into_iter(), true)?;
//! // What is in `output` is written to the socket; here, it goes to the other side at once.
//! let sent = client.output().to_vec();
//! client.wrote(sent.len());
//! let mut rest = &sent[..];
//! loop {
//!     let (used, event) = server.next(rest)?;
//!     rest = &rest[used..];
//!     match event {
//!         Event::Head { stream, head, ends } => {
//!             assert_eq!((head.method(), head.path(), ends), ("GET", "/a", true));
//!             server.respond(stream, 200, std::iter::empty(), false)?;
//!             server.data(stream, b"body", true)?;
//!         }
//!         Event::NeedMore => break,
//!         _ => {}
//!     }
//! }
//! assert!(!server.output().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **In:** [`Connection::next`] takes bytes as they were received, whole frames or not, and gives one [`Event`] at a time.
//!   Data is handed out where it lies in the input; heads are borrowed from the connection. Nothing is allocated for a
//!   request once the buffers have grown to what is usual.
//! - **Out:** [`Connection::output`] has what must be written, [`Connection::wrote`] says what was. It grows by what the caller
//!   sends and by acknowledgements, which are bounded; a caller with much data sends while the output is short, and goes on
//!   when it was written.
//! - **Flow control:** what was handed out counts as consumed, and its windows are updated when half of them is used up: a
//!   reader that checks bodies as they come never stalls. [`Connection::sendable`] is what may be sent on a stream,
//!   [`Connection::openable`] how many streams may be opened; [`Event::Writable`] says that the former may have changed.
//! - **Errors:** an error of one stream is an [`Event::Failed`], and the connection goes on; an error of the connection is
//!   returned, and a GOAWAY is in the output. Both know their code. A GOAWAY of the peer is followed by an
//!   [`Event::Unprocessed`] for each request that it has not acted on, and that may be sent again.
//! - **Bounds:** what a peer can cause is limited, with the numbers in [`flood`] and [`Config`].
//!
//! # Use
//!
//! `http2::Connection` is one side of a connection as data: bytes in, events out, and a buffer to write. It does not depend on robots or
//! origins. Above it, messages have the same form as over HTTP/1.1: a decoded section is kept as field lines, and becomes a
//! `http::head::RequestHead` or `ResponseHead` without being parsed again, so everything that judges a response or decides on one is the same
//! for both versions. A message to be sent is written as a head of HTTP/1.1, and its fields are then coded. A robot's `Connection` has
//! `streams` if it uses HTTP/2 (`load::robot::multiplex`); an origin has a task of another type for such connections
//! (`load::origin::multiplex`). One function for both versions handles a request before its response (`load::origin::admit`). Retries
//! follow from the protocol alone: REFUSED_STREAM, and streams above the last one of a GOAWAY. Code that serves or sends HTTP/1.1 elsewhere
//! (`net::http2`) has a byte stream for each stream (`Pipe`), in a server and in a client (`http2::Client`): messages of HTTP/1.1 are read
//! from it and written to it. Counters bound floods; the owner of the connection refills them once a second, since the crate has no clock. An origin that
//! is about to close a connection with several requests under way says so twice (`Connection::retire`), as a single GOAWAY would refuse what is on its way; and a
//! connection that is closed with input unread takes back what was sent. So whoever closes reads on (`load::origin::closing`, `net::Connection::linger`), and whoever cannot write any more
//! reads what is left.
//!
//! *Does not:* read or write a socket, know a clock ([`Connection::refill`] is called once a second), push responses, use the
//! obsolete priorities of RFC 7540, upgrade from HTTP/1.1, or tunnel (CONNECT is a request like others).

mod connection;
mod error;
pub mod flood;
pub mod frame;
pub mod hpack;
mod message;
mod settings;
mod stream;

pub use connection::{ASSUMED_STREAMS, Config, Connection, Event, NotOpened, RequestHead, Side, Totals};
pub use error::{ConnectionError, Ended, ErrorCode, StreamError};
pub use frame::PREFACE;
pub use message::{Head, Malformed};
pub use settings::{DEFAULT_WINDOW_BYTES, Settings};
pub use stream::Stream;
