//! End of connections.

use super::*;

#[test]
fn go_away_gives_back_what_was_not_acted_on() {
    let mut payload = [0; 8];
    payload[3] = 1;
    let frames = [raw(kind::GOAWAY, 0, 0, &payload), raw(kind::HEADERS, WHOLE | END, 1, OK_BLOCK)];
    let (mut client, lines) = request(&frames);
    assert_eq!(
        lines,
        ["GoAway { last: 1, code: ErrorCode(0) }", "unprocessed 3", "unprocessed 5", "head 1  200  true"]
    );
    assert_eq!((client.openable(), client.is_closing()), (0, true));
    assert_eq!(client.request(&GET, NONE, true), Err(NotOpened::Closing));
}

/// Bytes that a side has to send.
fn said(connection: &mut Connection) -> Vec<u8> {
    let bytes = connection.output().to_vec();
    connection.wrote(bytes.len());
    bytes
}

/// Both sides read what the other has written.
fn exchange(client: &mut Connection, server: &mut Connection) -> [Vec<String>; 2] {
    let at_server = transcript(server, &said(client), usize::MAX);
    [at_server, transcript(client, &said(server), usize::MAX)]
}

#[test]
fn a_server_that_retires_takes_what_is_on_its_way_and_nothing_that_comes_later() {
    let mut client = Connection::client(Config::default());
    let mut server = Connection::server(Config::default());
    client.request(&GET, NONE, true).expect("is allowed");
    exchange(&mut client, &mut server);
    server.retire();
    server.retire();
    assert!(!server.is_closing(), "the client does not know yet");
    // On its way before the client has read anything.
    client.request(&GET, NONE, true).expect("is allowed");
    let [at_server, at_client] = exchange(&mut client, &mut server);
    assert_eq!(at_server, ["head 3 GET/a 0  true"]);
    assert_eq!(at_client, ["GoAway { last: 2147483647, code: ErrorCode(0) }"], "once");
    assert_eq!(client.request(&GET, NONE, true), Err(NotOpened::Closing));
    let [at_server, at_client] = exchange(&mut client, &mut server);
    assert!(at_server.is_empty() && server.is_closing(), "{at_server:?}");
    assert_eq!(at_client, ["GoAway { last: 3, code: ErrorCode(0) }"]);
    let late = raw(kind::HEADERS, WHOLE | END, 5, GET_BLOCK);
    assert!(transcript(&mut server, &late, usize::MAX).is_empty());
    assert_eq!(server.open_streams(), 2);
}

#[test]
fn a_peer_that_answers_another_ping_does_not_end_a_connection() {
    let mut server = Connection::server(Config::default());
    let pong = |payload: &[u8; 8]| raw(kind::PING, flag::ACK, 0, payload);
    transcript(&mut server, &[PREFACE, &settings(), &pong(b"retiring")].concat(), usize::MAX);
    server.retire();
    transcript(&mut server, &pong(b"anything"), usize::MAX);
    assert!(!server.is_closing());
    transcript(&mut server, &pong(b"retiring"), usize::MAX);
    assert!(server.is_closing());
}
