//! TLS from the command line: what cannot be spoken is refused.

use std::net::TcpListener;

use crate::samples::RECONNECTING;
use crate::support::Assay;

#[test]
fn what_cannot_be_spoken_is_refused_before_anything_starts() {
    let assay = Assay::new();
    let workload = assay.file("small.pg", RECONNECTING);
    let run = |flags: &[&str]| assay.run(&[&["run", workload][..], flags].concat()).exits(2);
    run(&["--robot-tls", "--tls-ciphers", "RC4-MD5"]).complains("there is no cipher suite `RC4-MD5`");
    run(&["--robot-tls", "--tls-versions", "1.1"]).complains("write 1.2, 1.3 or 1.2-1.3");
    run(&["--robot-tls", "--forward"]).complains("leave --forward out");
    run(&["--insecure"]).complains("add --robot-tls");
    run(&["--tls-versions", "1.3"]).complains("--tls-versions is for robots or origins that speak TLS");
    run(&["--origin-tls", "--tls-resumption", "0"])
        .complains("--tls-resumption is for robots that speak TLS");
    run(&["--robot-tls", "--ca", "nowhere.pem"]).complains("leave --ca out");
    let listener = TcpListener::bind("127.83.0.1:0").expect("a free port");
    let target = listener.local_addr().expect("is bound").to_string();
    run(&["--proxy", &target, "--robot-tls", "--ca", "nowhere.pem"]).complains("nowhere.pem");
    let suite = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    run(&["--robot-tls", "--tls-versions", "1.2", "--tls-ciphers", suite]).complains("a key of p256");
    assert!(
        !std::fs::read_dir(assay.directory.path())
            .expect("is there")
            .flatten()
            .any(|entry| { entry.path().join("tls").exists() })
    );
}
