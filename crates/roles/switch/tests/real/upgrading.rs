//! Another protocol on a connection ends when nothing comes.

use std::io::Read;

use crate::harness::{Client, eventually, file, read_head, switch};
use crate::upgrade_server::{WISH, echo};

#[test]
fn a_tunnel_in_which_nothing_comes_is_closed() {
    let server = echo();
    let switch = switch(&file("[timeouts]\ntunnel = \"100ms\"\n", &[&server], ""));
    let mut client = Client::new(&switch);
    client.send(WISH);
    read_head(&mut client.reader).expect("a response");
    let mut rest = Vec::new();
    client.reader.read_to_end(&mut rest).expect("an end");
    assert_eq!(rest, b"hello");
    eventually("the server's too", || switch.snapshot().expect("runs").in_flight == 0);
}
