//! Another configuration, and the end: nothing that runs is lost.

use assay_switch::SwitchError;

use crate::harness::{Client, Server, config, eventually, field, file, on_command, own_host, switch};

#[test]
fn counters_are_where_the_latest_file_says() {
    let server = Server::named("a");
    let mut switch = switch(&file("metrics = \"127.0.0.1:0\"", &[&server], ""));
    let before = switch.metrics().expect("are shown");
    switch.reload(config(&file("metrics = \"[::1]:0\"", &[&server], ""))).expect("is taken on");
    let after = switch.metrics().expect("are shown");
    assert!(after != before && after.is_ipv6(), "{after}");
    assert_eq!(Client::to(after).get("/metrics").0, 200);
    switch.reload(config(&file("", &[&server], ""))).expect("is taken on");
    assert_eq!(switch.metrics(), None);
}

#[test]
fn a_server_that_drains_ends_what_it_has_and_gets_nothing_new() {
    let (slow, go) = on_command("slow");
    let other = Server::named("other");
    let text = |more: &str| {
        format!("listen = \"127.0.0.1:0\"\npolicy = \"rr\"\n{}{}", slow.toml(more), other.toml(""))
    };
    let mut switch = switch(&text(""));
    let mut first = Client::new(&switch);
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is there", || slow.count() == 1);
    switch.reload(config(&text("drain = true"))).expect("is taken on");
    let mut second = Client::new(&switch);
    assert_eq!([second.body("/"), second.body("/")], ["other", "other"]);
    let server = |at: usize| switch.snapshot().expect("runs").servers[at].clone();
    assert_eq!((server(0).up, server(0).in_flight), (false, 1));
    go.send(()).expect("it waits");
    assert_eq!(first.response().2, b"slow");
    eventually("it has nothing left", || server(0).in_flight == 0 && server(0).idle == 0);
}

#[test]
fn a_request_that_waits_goes_by_the_new_configuration() {
    let (slow, _go) = on_command("slow");
    let other = Server::named("other");
    let limits = "[limits]\nserver-connections = 1\n";
    let mut switch = switch(&file("", &[&slow], limits));
    let mut first = Client::new(&switch);
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is there", || slow.count() == 1);
    let mut second = Client::new(&switch);
    second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it waits", || switch.snapshot().expect("runs").waiting == 1);
    switch.reload(config(&file("policy = \"p2c\"", &[&slow, &other], limits))).expect("is taken on");
    assert_eq!(second.response().2, b"other");
}

#[test]
fn addresses_come_and_go_and_what_cannot_be_had_changes_nothing() {
    let server = Server::named("s");
    let with = |listen: &str| format!("listen = {listen}\n{}", server.toml(""));
    let mut switch = switch(&with(&format!("[\"{}:0\", \"[::1]:0\"]", own_host())));
    let [four, six] = switch.addresses()[..] else { panic!("two addresses") };
    let mut on_four = Client::to(four);
    assert_eq!((on_four.get("/").0, Client::to(six).get("/").0), (200, 200));
    switch.reload(config(&with("\"[::1]:0\""))).expect("is taken on");
    assert_eq!(switch.addresses(), [six]);
    assert_eq!(on_four.get("/").0, 200, "a connection that is there stays");
    assert!(std::net::TcpStream::connect(four).is_err());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let refused = switch.reload(config(&with(&format!("\"{}\"", taken.local_addr().expect("is bound")))));
    assert!(matches!(refused, Err(SwitchError::Listen { .. })));
    let refused = switch.reload(config(&format!("workers = 2\n{}", with("\"[::1]:0\""))));
    assert!(matches!(refused, Err(SwitchError::Workers(1, 2))));
    assert_eq!(Client::to(six).get("/").0, 200);
}

#[test]
fn the_end_waits_for_running_requests() {
    let (slow, go) = on_command("slow");
    let mut gentle = switch(&file("", &[&slow], ""));
    let mut idle = Client::new(&gentle);
    let mut running = Client::new(&gentle);
    running.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is there", || slow.count() == 1);
    gentle.stop();
    assert!(idle.is_closed());
    eventually("nothing is accepted", || std::net::TcpStream::connect(gentle.addresses()[0]).is_err());
    assert!(!gentle.has_ended());
    go.send(()).expect("it waits");
    let (status, head, _) = running.response();
    assert_eq!((status, field(&head, "connection")), (200, None), "its head was written before");
    gentle.wait().expect("ends well");
}

#[test]
fn several_workers_share_the_work_and_the_limits() {
    let (a, b) = (Server::named("a"), Server::named("b"));
    let mut switch = switch(&file("workers = 2\npolicy = \"rr\"", &[&a, &b], ""));
    let mut total = 0;
    for _ in 0..20 {
        let mut client = Client::new(&switch);
        assert_eq!([client.get("/").0, client.get("/").0], [200, 200]);
        total += 2;
    }
    switch.reload(config(&file("workers = 2\npolicy = \"lc\"", &[&b], ""))).expect("is taken on");
    assert_eq!(Client::new(&switch).body("/"), "b");
    let now = switch.snapshot().expect("runs");
    assert_eq!((now.total().responses[1], now.accepted), (total + 1, 21));
    switch.stop();
    switch.wait().expect("ends well");
}
