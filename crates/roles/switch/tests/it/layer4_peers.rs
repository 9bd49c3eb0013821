//! Servers of layer 4, and clients that see what becomes of a connection.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use assay_switch::Switch;

use crate::harness::{Client, Got, Server, anywhere};

/// Does this with each connection.
fn raw(name: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
    Server::raw(anywhere(), name, move |stream, _: &Mutex<Vec<Got>>| serve(stream))
}

/// Sends back what it gets, and says goodbye at the end of the client's side.
pub fn echo(name: &str) -> Server {
    raw(name, |mut stream| {
        let mut room = vec![0; 100_000];
        while let Ok(count @ 1..) = stream.read(&mut room) {
            if stream.write_all(&room[..count]).is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"bye");
    })
}

/// Says its name, and then waits for the client's end.
pub fn greeter(name: &str) -> Server {
    let greeting = name.to_owned();
    raw(name, move |mut stream| {
        let _ = stream.write_all(greeting.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
    })
}

/// The server that a new connection gets, which it stays with.
pub fn greeted(switch: &Switch) -> (Client, String) {
    let mut client = Client::new(switch);
    let mut name = [0];
    client.reader.read_exact(&mut name).expect("a greeting");
    (client, String::from_utf8(name.to_vec()).expect("text"))
}

/// The switch closes the connection without having sent anything.
pub fn is_turned_away(mut client: Client) -> bool {
    let mut all = Vec::new();
    let read = client.reader.read_to_end(&mut all);
    all.is_empty() && read.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |count| count == 0)
}
