//! What nodes respond, and that nothing comes before its time.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Instant;

use assay_load::node::ModelClock;
use assay_load::node::nodes::NodeKind;
use assay_testbed::elsewhere;

use crate::node::support::{SMALL, body_of, cluster, exchange, get, start};

#[test]
fn files_programs_and_files_that_only_a_name_describes_are_served() {
    let nodes = start(&cluster(SMALL), NodeKind::Virtual, ModelClock::now_at(1.0));
    for (number, address) in nodes.addresses().iter().enumerate() {
        for (path, bytes) in [
            ("/file5k.html", 5125),
            ("/file5k-19.html", 5125),
            ("/file100k-1.html", 102_500),
            ("/cgi-bin/cpu_light.cgi?x=1", 10),
            ("/file2m.html", 2_099_200),
            ("/file0k.html", 0),
        ] {
            let response = get(*address, path);
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{path}: {response:.200}");
            assert!(response.contains(&format!("X-Node: {number}\r\n")), "{response:.200}");
            assert_eq!(body_of(&response).len(), bytes, "{path}");
        }
        assert!(get(*address, "/nothing").starts_with("HTTP/1.1 404 "));
        assert!(get(*address, "/file5k-20.html").starts_with("HTTP/1.1 200 "), "its name says its size");
        assert!(exchange(*address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "), "no host");
    }
}

#[test]
fn a_connection_is_reused_and_only_a_head_is_requested() {
    let nodes = start(&cluster(SMALL), NodeKind::Virtual, ModelClock::now_at(1.0));
    let two = "HEAD /file5k.html HTTP/1.1\r\nHost: a\r\n\r\n\
               POST /cgi-bin/cpu_light.cgi HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
    let response = exchange(nodes.addresses()[0], two);
    assert_eq!(response.matches("HTTP/1.1 200 OK").count(), 2, "{response}");
    assert!(
        response.contains("Content-Length: 5125\r\n")
            && response.ends_with("\r\n\r\n") | (body_of(&response).len() < 5000)
    );
}

#[test]
fn a_node_serves_every_host_itself_and_sends_no_requests() {
    let nodes = start(&cluster(SMALL), NodeKind::Virtual, ModelClock::now_at(1.0));
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    other.set_nonblocking(true).expect("a socket");
    let (node, elsewhere_at) = (nodes.addresses()[0], other.local_addr().expect("is bound"));
    for request in elsewhere(node, elsewhere_at) {
        let response = exchange(node, &request);
        assert!(
            ["200", "400", "404", "405", "501"].contains(&response.get(9..12).unwrap_or("")),
            "{request}{response}"
        );
        assert!(
            !request.starts_with("CONNECT ") || !response.starts_with("HTTP/1.1 200 "),
            "{request}{response}"
        );
    }
    assert_eq!(other.accept().map_err(|error| error.kind()).err(), Some(ErrorKind::WouldBlock));
}

#[test]
fn no_response_comes_before_its_time() {
    let nodes = start(&cluster(SMALL), NodeKind::Virtual, ModelClock::now_at(2.0));
    let before = Instant::now();
    get(nodes.addresses()[0], "/cgi-bin/cpu_light.cgi");
    assert!(before.elapsed().as_millis() >= 40, "20 ms at half the pace: {:?}", before.elapsed());
}

#[test]
fn a_real_node_works_and_leaves_nothing_but_its_documents() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = SMALL.replace("processor = \"20ms\"", "processor = \"2ms\"\ndisk = \"1ms\"");
    let nodes = start(&cluster(&text), NodeKind::Real(directory.path().to_owned()), ModelClock::now_at(1.0));
    for path in ["/file5k.html", "/file5k.html", "/cgi-bin/cpu_light.cgi"] {
        assert!(get(nodes.addresses()[0], path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    let state = get(nodes.addresses()[0], "/assay/state");
    assert!(state.contains("\"in_flight\":0"), "{state}");
    drop(nodes);
    let files = std::fs::read_dir(directory.path().join("node-0")).expect("its own").count();
    assert_eq!(files, 1);
}

#[test]
fn two_nodes_cannot_listen_at_one_place() {
    let nodes = start(&cluster(SMALL), NodeKind::Virtual, ModelClock::now_at(1.0));
    let experiment = cluster(SMALL);
    let taken = nodes.addresses()[0];
    let clock = ModelClock::now_at(1.0);
    let spec = assay_load::node::nodes::NodesSpec::new(
        &experiment,
        &experiment.clusters[0],
        &experiment.mixes[0],
        taken,
        NodeKind::Virtual,
        clock,
    );
    let error = assay_load::node::nodes::Nodes::start(spec).expect_err("it is taken").to_string();
    assert!(error.contains(&taken.to_string()) && error.contains("name another address"), "{error}");
}
