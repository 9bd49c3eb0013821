//! Surroundings of an intermediary under test: a [`Server`] behind it that responds as it is told, [`Client`]s before it that send bytes as
//! they are given, and patience that ends. All on the one runtime of [`run`], with the intermediary between them. And a place for a real
//! [`Browser`], with what tests of [`pages`] need; a checker of servers of HTTP/2 ([`h2spec`]), and of documents ([`violations`]); [`fixture`]s that many tests share, and a
//! [`corpus`] of wrong messages.
//!
//! *Does not:* simulate an origin (that is `assay-load`), measure, or run outside tests: what surprises it, panics.

mod body;
mod browser;
mod checker;
mod client;
pub mod corpus;
mod elsewhere;
pub mod fixture;
pub mod pages;
mod real;
mod schema;
mod server;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::task::yield_now;

pub use browser::Browser;
pub use checker::h2spec;
pub use client::{Client, Response};
pub use elsewhere::{elsewhere, response_to};
pub use real::{python, skip};
pub use schema::violations;
pub use server::{Part, Seen, Server, ok, pause_ms, send};

/// No test takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test on a runtime like that of a worker: one thread, tasks that need not be `Send`.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    block_on(Box::pin(test))
}

/// The runtime, compiled once instead of for each test.
fn block_on<T>(test: Pin<Box<dyn Future<Output = T> + '_>>) -> T {
    let runtime =
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") })
}

/// Waits until something is so, while everything else goes on.
pub async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_does_as_it_is_told_and_a_client_says_what_came() {
        run(async {
            let server = Server::start(|seen, before| match before {
                0 => ok("ETag: \"a\"\r\n", seen.line()),
                1 => vec![
                    send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
                    send("0\r\n\r\n"),
                ],
                2 => vec![send("HTTP/1.1 200 OK\r\n\r\nto the end"), Part::Close],
                _ => unreachable!("nobody asks again"),
            })
            .await;
            let mut client = Client::connect(server.address).await;
            client.send("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").await;
            let response = client.response("POST").await;
            assert_eq!(
                (response.status, response.body(), response.field("etag")),
                (200, "POST /1 HTTP/1.1", Some("\"a\""))
            );
            assert_eq!(client.request("GET", "/2", "").await.body(), "ab");
            assert_eq!(server.open(), 1);
            let last = client.request("GET", "/3", "").await;
            assert_eq!(
                (last.body(), last.arrivals.last().map(|&(bytes, _)| bytes)),
                ("to the end", Some(10))
            );
            assert!(client.is_closed().await);
            until(|| server.open() == 0).await;
            let seen = server.seen();
            assert_eq!(
                (seen[0].body.as_slice(), seen[0].connection, server.count()),
                (b"hi".as_slice(), 0, 3)
            );
            assert!(seen[0].has("content-length: 2") && !seen[0].has("Content-Length: 20"));
        });
    }

    #[test]
    fn a_response_that_breaks_off_has_no_body() {
        run(async {
            let cut = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
            for end in [Part::Close, Part::Reset] {
                let server = Server::of(vec![send(cut), end]).await;
                let response = Client::connect(server.address).await.request("GET", "/", "").await;
                assert_eq!((response.status, response.body), (200, None));
            }
        });
    }
}
