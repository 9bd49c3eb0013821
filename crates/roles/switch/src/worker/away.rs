//! A client that goes away while a server is waited for: its request is to keep no place at that server any longer.
//!
//! Known is a stream of HTTP/2 that was reset, the end of its connection, and a connection that was reset. A client of HTTP/1.1 that
//! only ends its own side still gets its response, and whether it has closed its connection instead is not known before something is
//! written to it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;

use super::stream::Stream;
use assay_net::watch::Deadline;

/// Waits for a server as long as the client is there; an error: it has gone. `work` waits under that deadline. A wait that is short, as nearly
/// all are, does not make the client's socket known to the system ([`Deadline::remind`]).
pub fn unless_gone<'c, T>(
    client: &'c Stream,
    deadline: &'c Deadline,
    mut work: impl Future<Output = T> + Unpin + 'c,
) -> impl Future<Output = io::Result<T>> + 'c
where
    T: 'c,
{
    poll_fn(move |cx| match Pin::new(&mut work).poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => {
            client.poll_gone(deadline.is_reminded(), cx).map(|()| Err(io::ErrorKind::ConnectionReset.into()))
        }
    })
}
