//! Interim responses (1xx) on their way from a server to the clients that wait for its final response (RFC 9110, 15.2).
//!
//! A proxy must pass them on, rewritten like any other head, except 100, which is for whoever has sent the expectation that it
//! is a response to, and 101, which ends HTTP. Several clients may wait for one response: each gets all of them.
//!
//! *Does not:* bound their number: the connection to the server does ([`crate::limits::MAX_INTERIM_RESPONSES`]).

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;

use assay_http::field::write_decimal;
use assay_http::head::ResponseHead;
use tokio::sync::Notify;

use crate::exchange::{Exchange, Transport, unless_disconnected, wait_disconnected};
use crate::fields;

/// Interim responses to one request so far, as clients get them.
#[derive(Default)]
pub struct InterimResponses {
    all: RefCell<Vec<Rc<[u8]>>>,
    added: Notify,
}

impl InterimResponses {
    /// Adds a server's interim response, if it is for clients; `name` is ours in `Via`.
    pub fn push(&self, head: &ResponseHead<'_>, name: &str) {
        if let Some(rewrite) = rewrite(head, name) {
            self.all.borrow_mut().push(rewrite.into());
            self.added.notify_waiters();
        }
    }

    fn get(&self, number: usize) -> Option<Rc<[u8]>> {
        self.all.borrow().get(number).cloned()
    }

    /// Waits for the one of this number, from 0.
    async fn wait(&self, number: usize) -> Rc<[u8]> {
        loop {
            let added = self.added.notified();
            if let Some(one) = self.get(number) {
                return one;
            }
            added.await;
        }
    }

    /// Waits for a final response, and forwards the interim ones before it to a client meanwhile. An error is the client's, which may have
    /// gone: then nothing is waited for any more.
    pub async fn forward<S: Transport, T>(
        &self,
        client: &mut Exchange<S>,
        last: impl Future<Output = T>,
    ) -> io::Result<T> {
        if !client.accepts_interim() {
            return unless_disconnected(&client.connection, last).await;
        }
        let mut last = pin!(last);
        let mut number = 0;
        let taken = loop {
            let one = tokio::select! {
                biased;
                one = self.wait(number) => one,
                taken = &mut last => break taken,
                () = wait_disconnected(&client.connection) => return Err(io::ErrorKind::ConnectionReset.into()),
            };
            client.write(&[&one]).await?;
            number += 1;
        };
        while let Some(one) = self.get(number) {
            client.write(&[&one]).await?;
            number += 1;
        }
        Ok(taken)
    }
}

/// Rewrites an interim response as clients get it; none: it is not for them.
pub fn rewrite(head: &ResponseHead<'_>, name: &str) -> Option<Vec<u8>> {
    is_for_clients(head).then(|| {
        let mut out = Vec::with_capacity(256);
        append(&mut out, head, name);
        out
    })
}

/// Rewrites an interim response like [`rewrite`], without `Via`.
pub fn rewrite_unnamed(head: &ResponseHead<'_>) -> Option<Vec<u8>> {
    is_for_clients(head).then(|| {
        let mut out = Vec::with_capacity(256);
        append_unnamed(&mut out, head);
        out.extend_from_slice(b"\r\n");
        out
    })
}

fn is_for_clients(head: &ResponseHead<'_>) -> bool {
    head.is_interim() && !matches!(head.status, 100 | 101)
}

/// Appends an interim response of any status: without what is for one connection, and without a length, as it has no body.
pub fn append(out: &mut Vec<u8>, head: &ResponseHead<'_>, name: &str) {
    append_unnamed(out, head);
    fields::append_via(out, head.facts.version.into(), name);
    out.extend_from_slice(b"\r\n");
}

fn append_unnamed(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(head.status));
    out.push(b' ');
    out.extend_from_slice(head.reason.as_bytes());
    out.extend_from_slice(b"\r\n");
    let is_length = |field: &assay_http::field::Field<'_>| field.is("content-length");
    fields::append_forwardable(out, head.headers(), is_length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str) -> Option<String> {
        let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        rewrite(&head, "one").map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn interim_responses_go_on_without_what_is_for_one_connection() {
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Own\r\nX-Own: 1\r\nContent-Length: 3\r\n\r\n";
        let expected = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nVia: 1.1 one\r\n\r\n";
        assert_eq!(passed(early).as_deref(), Some(expected));
        let (head, _) = ResponseHead::parse(early.as_bytes()).expect("is HTTP").expect("is complete");
        let unnamed = String::from_utf8(rewrite_unnamed(&head).expect("is for clients")).expect("text");
        assert_eq!(unnamed, expected.replace("Via: 1.1 one\r\n", ""));
    }

    #[test]
    fn what_is_for_this_hop_or_final_does_not_go_on_as_interim() {
        for status in ["100 Continue", "101 Switching Protocols", "200 OK"] {
            assert_eq!(passed(&format!("HTTP/1.1 {status}\r\n\r\n")), None, "{status}");
        }
    }
}
