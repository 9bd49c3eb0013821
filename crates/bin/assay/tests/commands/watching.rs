//! A run that is to be watched: mistakes.

use crate::support::Assay;

#[test]
fn a_port_that_is_taken_and_a_collector_that_cannot_be_ours_are_mistakes() {
    let assay = Assay::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = taken.local_addr().expect("bound").to_string();
    let run = ["run", "demo", "--rehearse", "2s"];
    assay.run(&[&run[..], &["--serve", &address]].concat()).exits(2).complains("choose another port");
    assay.run(&[&run[..], &["--serve", "example.net:80"]].concat()).exits(2).complains("ADDRESS:PORT");
    assay
        .run(&[&run[..], &["--otlp", "https://localhost"]].concat())
        .exits(2)
        .complains("does not speak https");
    assay.run(&[&run[..], &["--keep-serving"]].concat()).exits(2).complains("--serve");
}
