//! A server that speaks another protocol if its client wishes.

use std::io::{Read, Write};

use crate::harness::{Server, field, ok};

pub const WISH: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Key: k\r\n\r\n";

/// Agrees, greets, sends back what it gets, and says goodbye at the end.
pub fn echo() -> Server {
    Server::responding("echo", |got, stream| {
        if field(&got.head, "upgrade").is_none() {
            return ok(stream, b"plain");
        }
        let consent = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Accept: v\r\n\r\nhello";
        stream.write_all(consent.as_bytes()).expect("is taken");
        let mut room = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut room) {
            if stream.write_all(&room[..count]).is_err() {
                return false;
            }
        }
        let _ = stream.write_all(b"bye");
        false
    })
}
